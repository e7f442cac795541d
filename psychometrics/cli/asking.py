"""Commands that put questionnaires to respondents and score their answers."""

from __future__ import annotations

import math
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..exceptions import ParameterError
from .answers import _collect_answers, _exit_with_status, read_answer_file, write_table
from .options import (
    AnswerFile,
    Conditions,
    DryRun,
    Mode,
    Output,
    QuestionnaireName,
    Respondents,
    Store,
    app,
    parse_reading_settings,
)

if TYPE_CHECKING:  # slow to import
    import pandas as pd

_PANEL = "Ask and score"
_Questionnaires = Annotated[
    list[str],
    Argument(metavar="QUESTIONNAIRE...", help="Names that `questionnaires` lists, or files."),
]


_Plot = Annotated[
    Path | None,
    Option(
        callback=lambda plot: plot and pm.exceptions.check_file(plot, (".png", ".svg", ".pdf")),
        help="Also plot the scores (a compass for two axes) to a .png, .svg or .pdf file.",
    ),
]


@app.command("ask", rich_help_panel=_PANEL)
def _ask(
    questionnaires: _Questionnaires,
    respondents: Respondents = "embedded",
    mode: Mode = "nli",
    condition: Conditions = None,
    store: Store = None,
    failures: Annotated[Path | None, Option(help="A .csv file for failures and reasons.")] = None,
    engine: Annotated[Literal["local", "ray"], Option(help="This machine or a cluster.")] = "local",
    output: Output = None,
    dry_run: DryRun = False,
) -> None:
    """Put questionnaires to respondents and store the answers.

    --output names a .csv, .json or .parquet file with a row for each answer, including the request
    and the reply, or, with --dry-run, for each planned request. Answers to items can also be
    written as .wide.csv (a column for each item), .irw.csv (Item Response Warehouse) or .sav
    (SPSS).

    --failures names a file that lists the models that cannot answer; they are not tried again.

    Besides the conditions of the mode, -c accepts dtype (float32, bfloat16, float16), device (cpu,
    cuda:1), personas (a table with one per row), keep_downloads=false (remove downloaded weights
    after use), address (of a Ray cluster).

    For an endpoint, here and in the other commands: concurrency, timeout (seconds), retries,
    patience (seconds to wait while every request is refused as too soon), headers (JSON), price_in
    and price_out (per million tokens), and max_cost (skip requests that might exceed it).
    """
    more: dict[str, Any] = {"engine": engine, "failures": failures, "store": store}

    if output is not None:
        answers_items = pm.modes.mode_named(mode).answers == "items" and not dry_run
        output = pm.answers.files.check_answers_file(output, answers_items)
        more |= {"log": True} if "log" in pm.modes.mode_named(mode).conditions else {}

    answers = _collect_answers(
        questionnaires, respondents, mode, condition, dry_run, output, **more
    )
    summary = answers.attrs["summary"]
    stored = len(answers) - summary.get("unasked", 0) - summary.get("removed", 0)
    typer.echo(f"{answers['respondent_id'].nunique()} respondent(s), {stored} answers in the store")
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
    items: Annotated[bool, Option("--items", help="Print item scores, not scale scores.")] = False,
    output: Output = None,
    as_json: Annotated[bool, Option("--json/--csv", help="Output format.")] = False,
    plot: _Plot = None,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Print scores as CSV, for answers in a file or for respondents, who are asked if necessary.

    Each scale score comes with its 95 % interval (low, high) over its n items, and with the
    precision in which a local model answered. The column note says why a score or interval is
    missing. With --items, an item asked through prompts has an interval over its n source terms
    across all templates; a single answer has no interval.

    --output, a .csv, .json, .parquet or .sav file, replaces printing; with --items, answers to
    items can also be written as .wide.csv or .irw.csv.
    --temperature affects the normalisation; -c temperature=T sets how a chat model is sampled.
    """
    if output is not None:
        in_items = answer_file is not None or pm.modes.mode_named(mode).answers == "items"
        output = pm.answers.files.check_answers_file(output, items and in_items)

    loaded = [pm.load_questionnaire(name) for name in questionnaires]
    if len({bool(questionnaire.categories) for questionnaire in loaded}) > 1 and not items:
        raise ParameterError("Some questionnaires have scales, some categories: score each alone.")

    scoring: dict[str, Any] = {"score": score} if score else {}
    if temperature is not None:
        if not 0 < temperature < math.inf:
            raise ParameterError(f"--temperature must be a positive number, got {temperature}.")
        scoring["temperature"] = temperature

    if answer_file is not None:
        answers = read_answer_file(answer_file, loaded, respondents, mode, condition)
    else:
        answers = _collect_answers(loaded, respondents, mode, condition, dry_run)

    _show_scores(answers, loaded, items, plot, scoring, output=output, as_json=as_json)
    _exit_with_status(answers)


@app.command("fill-in", rich_help_panel=_PANEL)
def _fill_in(
    questionnaire: QuestionnaireName,
    name: Annotated[str, Option(help="Your name in the answers.")] = "me",
    store: Store = None,
    items: Annotated[bool, Option("--items", help="Print answers, not scale scores.")] = False,
    plot: _Plot = None,
) -> None:
    """Answer a questionnaire yourself; you may go back, or stop and resume later.

    `diagnostic` is the test of inference that people and models took, and `diagnostic-mn` is its
    part MN.
    """
    name_of_test, _, category = questionnaire.partition("-")
    if name_of_test == "diagnostic":
        points = entry_points(group="psychometrics.extras", name=name_of_test)
        if not points:
            package = "psychometrics-of-language-models"
            raise ParameterError(f"{name_of_test}: no package offers it; install {package}.")

        (point,) = points
        loaded = [point.load()(category.upper() or None)]
    else:
        loaded = [pm.load_questionnaire(questionnaire)]

    answers = pm.ask(loaded, [name], store=store, mode="human", progress=False)
    _show_scores(answers, loaded, items, plot, {})


@app.command("survey", rich_help_panel=_PANEL)
def _survey(
    questionnaire: QuestionnaireName,
    files: Annotated[
        list[Path] | None, Argument(metavar="[ANSWERS...]", help="Files of people's answers.")
    ] = None,
    condition: Conditions = None,
    output: Output = None,
) -> None:
    """Write a questionnaire for people, with attention checks, or screen their answers.

    Without answers, --output is a page (.html) that saves a file for each person, or a table (.csv)
    for a different survey tool. With answers, the careful people's answers are written to --output
    (in the format of `ask`), and the excluded people are printed with the reasons. -c takes
    settings for reading, as with --answers; a column `seconds` contains the time that each person
    took.
    """
    form = pm.asking.survey.survey(questionnaire)
    settings = parse_reading_settings(condition)
    if not files:
        if output is None:
            raise ParameterError("survey: no file is named; name a page or table with --output.")
        pm.asking.survey.write_survey(form, output)
        typer.echo(f"{output}: {len(form.items)} items, including attention checks")
        return

    if output is not None:
        output = pm.answers.files.check_answers_file(output, has_items=True)
    answers, screened = pm.asking.survey.read_survey(files, form, **settings)
    write_table(screened)
    typer.echo(f"{screened['kept'].sum()} of {len(screened)} people are kept", err=True)
    if output is not None:
        write_table(answers, output, questionnaires=[pm.load_questionnaire(questionnaire)])


def _show_scores(
    answers: pd.DataFrame,
    questionnaires: list[pm.questionnaires.Questionnaire],
    items: bool,
    plot: Path | None,
    scoring: dict[str, Any],
    **writing: Any,
) -> None:
    """Print scores or write them to a file, and plot them if a file is named for that."""
    if plot is not None and "persona_row" in answers:
        raise ParameterError("--plot shows one score per respondent: leave personas out.")

    table = pm.score_table(answers, questionnaires, items=items, **scoring)
    write_table(table, questionnaires=questionnaires, **writing)

    if plot is not None:
        pm.figures.draw_scores(answers, questionnaires, plot, **scoring)
        typer.echo(f"plotted in {plot}", err=True)
