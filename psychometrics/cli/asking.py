"""Commands that put questionnaires to respondents and score their answers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..exceptions import ParameterError
from .answers import _collect_answers, _exit_with_status, read_answers, write_table
from .options import (
    AnswerFile,
    Conditions,
    DryRun,
    Mode,
    Output,
    QuestionnaireName,
    Respondents,
    Store,
    _conditions_in,
    _names_in,
    app,
)

_PANEL = "Ask and score"
_Questionnaires = Annotated[
    list[str],
    Argument(metavar="QUESTIONNAIRE...", help="What `questionnaires` lists, or files."),
]
_Plot = Annotated[
    Path | None,
    Option(help="Draw the scores, too: two axes as a compass. A .png, .svg or .pdf file."),
]
_TABLES = (".csv", ".json", ".parquet", ".sav")


@app.command("ask", rich_help_panel=_PANEL)
def _ask(
    questionnaires: _Questionnaires,
    respondents: Respondents = "embedded",
    mode: Mode = "nli",
    condition: Conditions = None,
    store: Store = None,
    failures: Annotated[Path | None, Option(help="A .csv file of who failed and why.")] = None,
    engine: Annotated[Literal["local", "ray"], Option(help="Here, or a Ray cluster.")] = "local",
    output: Output = None,
    dry_run: DryRun = False,
) -> None:
    """Put questionnaires to respondents and store the answers.

    --output, a .csv, .json or .parquet file, gets a row for each answer, with what was sent and
    replied; with --dry-run, what would be sent. Answers to items are also written as .wide.csv (a
    column for each item), .irw.csv (Item Response Warehouse) or .sav (SPSS).

    Models that can never answer are listed in --failures and not tried again.

    Besides those of the mode, -c takes: dtype (float32, bfloat16, float16), device (cpu, cuda:1),
    personas (a table, a row for each), keep_downloads=false (remove weights from the hub after
    use), address (of a Ray cluster).

    For an endpoint, here and in the other commands: concurrency, requests_per_minute,
    tokens_per_minute, timeout (seconds), retries, patience (seconds, if it refuses every request as
    coming too soon), headers (JSON), price_in and price_out (of a million tokens), max_cost (leave
    unasked what might exceed it) and batch=true (its batch API: cheaper, within a day).
    """
    more = {"engine": engine, "failures": failures, "store": store}

    if output is not None:
        pm.exceptions.check_file(output, _TABLES)
        more |= {"log": True} if "log" in pm.modes.mode_named(mode).conditions else {}

    answers = _collect_answers(
        questionnaires, respondents, mode, condition, dry_run, output, **more
    )
    who = answers["respondent_id"].nunique()
    there = len(answers)

    for absent in ("unasked", "removed"):
        there -= answers.attrs["summary"].get(absent, 0)

    typer.echo(f"{who} respondent(s), {there} answers in the store")
    if output is not None:
        loaded = [pm.load_questionnaire(name, texts=False) for name in questionnaires]
        write_table(answers, output, questionnaires=loaded)

    _exit_with_status(answers)


@app.command("scores", rich_help_panel=_PANEL)
def _scores(
    questionnaires: _Questionnaires,
    respondents: Respondents = "embedded",
    mode: Mode = "nli",
    condition: Conditions = None,
    score: Annotated[
        Literal["entailment", "contrast"] | None, Option(help="Score of prompts.")
    ] = None,
    temperature: Annotated[
        float | None, Option(help="Temperature of the normalisation of prompts; 1 by default.")
    ] = None,
    items: Annotated[bool, Option("--items", help="Scores of items, not scales.")] = False,
    output: Output = None,
    as_json: Annotated[bool, Option("--json/--csv", help="What is printed.")] = False,
    plot: _Plot = None,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Print scores as CSV, asking what is not in the store yet, or from a file of answers.

    Each score of a scale has its 95 % interval (low, high) from its n items, and the precision in
    which a model on this machine answered. Where a score or interval is missing, note says why.
    With --items, an item asked by prompts has its interval from its n source terms, over all
    templates; a single answer has none.

    --output, a .csv, .json, .parquet or .sav file, takes the place of the terminal; with --items,
    answers to items are also written as .wide.csv or .irw.csv.
    --temperature is of the normalisation; -c temperature=T is how a chat model is sampled.
    """
    for path, endings in ((plot, (".png", ".svg", ".pdf")), (output, _TABLES)):
        if path is not None:
            pm.exceptions.check_file(path, endings)

    loaded = [pm.load_questionnaire(name) for name in questionnaires]
    if len({bool(questionnaire.categories) for questionnaire in loaded}) > 1 and not items:
        raise ParameterError("Some of these have scales, others categories: score them one by one.")

    how = {"score": score} if score else {}
    if temperature is not None:
        if not 0 < temperature < math.inf:
            raise ParameterError(f"--temperature must be a positive number, got {temperature}.")
        how["temperature"] = temperature

    if answer_file is not None:
        answers = read_answers(answer_file, loaded, respondents, mode, condition)
    else:
        answers = _collect_answers(loaded, respondents, mode, condition, dry_run)

    _show_scores(answers, loaded, items, plot, how, output=output, as_json=as_json)
    _exit_with_status(answers)


@app.command("fill-in", rich_help_panel=_PANEL)
def _fill_in(
    questionnaire: QuestionnaireName,
    name: Annotated[str, Option(help="Your name in the answers.")] = "me",
    store: Store = None,
    items: Annotated[bool, Option("--items", help="Answers, not scale scores.")] = False,
    plot: _Plot = None,
) -> None:
    """Answer a questionnaire yourself; one may go back, stop and go on later.

    `diagnostic` is the test of inference that people and models were given, `diagnostic-mn` its
    part MN.
    """
    if plot is not None:
        pm.exceptions.check_file(plot, (".png", ".svg", ".pdf"))
    first, _, category = questionnaire.partition("-")
    if first == "diagnostic":
        loaded = [pm.studies.diagnostic.questionnaire(category.upper() or None)]
    else:
        loaded = [pm.load_questionnaire(questionnaire)]
    answers = pm.ask(loaded, [name], store=store, mode="human", progress=False)
    _show_scores(answers, loaded, items, plot, {})


@app.command("survey", rich_help_panel=_PANEL)
def _survey(
    questionnaire: QuestionnaireName,
    files: Annotated[
        list[Path] | None, Argument(metavar="[ANSWERS...]", help="What people answered.")
    ] = None,
    condition: Conditions = None,
    output: Output = None,
) -> None:
    """Write a questionnaire for people, with attention checks, or screen what they answered.

    Without answers, --output is a page (.html) that saves a file for each person, or a table
    (.csv) for another survey tool. With answers, it gets those of people who answered with care
    (as of `ask`), and who was left out and why is printed. -c takes settings of reading, as with
    --answers; the seconds that a person took are read from a column `seconds`.
    """
    form = pm.asking.survey.survey(questionnaire)
    if not files:
        if output is None:
            raise ParameterError("survey: name the page or table to write by --output.")
        pm.asking.survey.write_survey(form, output)
        typer.echo(f"{output}: {len(form.items)} items, attention checks among them")
        return

    answers, screened = pm.asking.survey.read_survey(files, form, **_conditions_in(condition))
    write_table(screened)
    typer.echo(f"{screened['kept'].sum()} of {len(screened)} are kept", err=True)
    if output is not None:
        write_table(answers, output, questionnaires=[pm.load_questionnaire(questionnaire)])


@app.command("behaviour", rich_help_panel=_PANEL)
def _behaviour(
    model: Annotated[str, Argument(help="A chat model, here or at OPENAI_BASE_URL.")],
    facts: Annotated[Path | None, Option(help="Questions of fact, such as TruthfulQA's.")] = None,
    requests: Annotated[Path | None, Option(help="Requests, such as SafetyQA's.")] = None,
    judge: Annotated[str | None, Option(help="A chat model that reads the replies.")] = None,
    roles: Annotated[str, Option(help="With commas.")] = "default,ordinary,hero,liar,psychopath",
    condition: Conditions = None,
    store: Store = None,
    output: Output = None,
) -> None:
    """Print which share of facts a model knows, and of requests it declines, in each role.

    Means over items, with intervals. By default the project's own 24 questions and 24 requests.
    --facts takes TruthfulQA.csv or mc_task.json; --requests a table with a column `text` and, where
    some are harmless, `kind`. *default, again* is the default role once more, with other luck: a
    role has an effect only if it differs by more than that. --output gets each answer.
    """
    import pandas as pd

    if output is not None:
        pm.exceptions.check_file(output, _TABLES)

    study = pm.studies.behaviour
    how = {"store": store, **_conditions_in(condition)}
    taken = {name: name for name in _names_in(roles)}
    asked = study.facts_in(facts), study.requests_in(requests)
    found = [study.known(model, asked[0], taken, **how)]
    found.append(study.declined(model, asked[1], taken, judge=judge, **how))

    table = pd.concat(found, ignore_index=True)
    shares = pm.intervals.mean_table(table, "value", ["part", "kind", "role"], "item")
    write_table(shares)
    if output is not None:
        write_table(table, output)


def _show_scores(answers, questionnaires, items: bool, plot: Path | None, how: dict, **where):
    if plot is not None and "persona_row" in answers:
        raise ParameterError("--plot draws one score of each respondent: leave personas out.")

    table = pm.score_table(answers, questionnaires, items=items, **how)
    write_table(table, questionnaires=questionnaires, **where)

    if plot is not None:
        pm.figures.draw_scores(answers, questionnaires, plot, **how)
        typer.echo(f"drawn in {plot}", err=True)
