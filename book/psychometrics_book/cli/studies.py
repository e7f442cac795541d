"""Commands of single studies: better prompts, behaviour, and a study as one file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal, get_type_hints

import typer
from typer import Argument, Option

import psychometrics as pm
import psychometrics_book as book
from psychometrics.cli.answers import read_answer_file, write_table
from psychometrics.cli.options import (
    AnswerFile,
    Conditions,
    DryRun,
    Output,
    QuestionnaireName,
    Respondents,
    Store,
    app,
    parse_conditions,
    parse_reading_settings,
    split_names,
)
from psychometrics.data import write_text
from psychometrics.exceptions import ParameterError


@app.command("improve", rich_help_panel="Questionnaires")
def _improve(
    questionnaire: QuestionnaireName,
    respondents: Respondents = "encoders",
    output: Output = None,
    seed: Annotated[int, Option(help="Seed of the halves and of the random prompts.")] = 1,
    condition: Conditions = None,
) -> None:
    """Choose better prompts on half of the respondents, and test them on the other half.

    The default file is NAME_improved.yaml in the questionnaire's folder.
    """
    loaded = pm.load_questionnaire(questionnaire)
    beside = Path(questionnaire) if Path(questionnaire).is_file() else Path(f"{loaded.id}.yaml")
    output = output or beside.with_name(f"{loaded.id}_improved.yaml")
    report = output.with_name(f"{output.stem}_candidates.csv")
    book.improving.check_new(output, report)
    settings = pm.checks.parse_parameters(condition or [], get_type_hints(pm.ask))
    with pm.models.devices.computing_on(settings.get("device")):
        improved = book.improving.improve(loaded, respondents, seed=seed, **settings)

    improved.write(output, report)
    items = book.improving.held_out(improved.silhouettes, ["questionnaire", "item_id"])
    columns = ["item_id", "present", "chance", "improved", "gain", "gain_low", "gain_high"]
    typer.echo(items[columns].to_string(index=False, float_format="{:.2f}".format))
    summary = book.improving.held_out(improved.silhouettes).drop(columns="questionnaire").T
    typer.echo(summary.to_string(header=False, float_format="{:.2f}".format))
    typer.echo(f"{output}: improved prompts; {report}: all candidates")


@app.command("behaviour", rich_help_panel="Ask and score")
def _behaviour(
    model: Annotated[str, Argument(help="A chat model: local or at OPENAI_BASE_URL.")],
    facts: Annotated[Path | None, Option(help="Factual questions, as in TruthfulQA.")] = None,
    requests: Annotated[Path | None, Option(help="Requests, such as SafetyQA's.")] = None,
    judge: Annotated[str | None, Option(help="A chat model that reads the replies.")] = None,
    roles: Annotated[str, Option(help="With commas.")] = "default,ordinary,hero,liar,psychopath",
    condition: Conditions = None,
    store: Store = None,
    output: Output = None,
) -> None:
    """Print the shares of facts a model knows and of requests it declines, in each role.

    The values are means over items, with Wilson's 95 % intervals. The default is the project's own
    24 questions and 24 requests. --facts takes TruthfulQA.csv or mc_task.json; --requests takes a
    table with a column `text` and, if some are harmless, `kind`. *default, again* repeats the
    default role with a different random seed: a role has an effect only if it changes the shares by
    more than this repetition does. The answers are written to --output.
    """
    import pandas as pd
    from statsmodels.stats.proportion import proportion_confint

    if output is not None:
        output = pm.answers.files.check_answers_file(output, has_items=False)

    study = book.studies.behaviour
    settings = {"store": store, **parse_conditions(condition, "chat")}
    taken = {name: name for name in split_names(roles)}
    items = study.facts_in(facts), study.requests_in(requests)
    parts = [study.known(model, items[0], taken, **settings)]
    parts.append(study.declined(model, items[1], taken, judge=judge, **settings))

    table = pd.concat(parts, ignore_index=True)
    shares = pm.intervals.mean_table(table, "value", ["part", "kind", "role"], "item")
    n = shares["n"].where(shares["n"] > 0)  # a judge may have read nothing
    shares["low"], shares["high"] = proportion_confint(shares["mean"] * n, n, method="wilson")
    write_table(shares)
    if output is not None:
        write_table(table, output)


_study_app = typer.Typer(no_args_is_help=True, help="A study as one file: check, run, report.")


app.add_typer(_study_app, name="study", rich_help_panel="Profiles and studies")


_StudyFile = Annotated[Path, Argument(metavar="STUDY", help="A .yaml file.")]


@_study_app.command("check")
def _study_check(
    study: _StudyFile,
    width: Annotated[
        float | None, Option(help="Desired width of the 95 % interval of one model's score.")
    ] = None,
    condition: Conditions = None,
    answer_file: AnswerFile = None,
) -> None:
    """Check a study's file and print the planned questions, without asking any respondent.

    With --width, and a pilot of several runs per model in --answers, also print how many runs an
    interval of this width needs, and how reliably that number of runs orders the models.
    """
    loaded = book.study_files.load_study(study)
    ways = len(loaded.combinations) * len(loaded.seeds)
    plan = f"{len(loaded.planned.expectations)} expectation(s), planned on {loaded.planned.date}"
    typer.echo(f"{loaded.title}: {loaded.question}")
    typer.echo(
        f"{len(loaded.questionnaires)} questionnaire(s), {len(loaded.respondents)} respondent(s) "
        f"or population(s), asked in mode {loaded.mode} in {ways} way(s); "
        f"{'exploratory, as there is no plan' if loaded.is_exploratory else plan}"
    )
    power = loaded.power(study.parent)
    if power:
        shares = ", ".join(f"{share:.0%}" for share in power)
        typer.echo(f"simulated power for the smallest effect of interest: {shares}")
    elif loaded.lacks_spread(study.parent):
        typer.echo(
            "power is not simulated: add spread_of_respondents to planned, the SD between models "
            "of the difference, in points of an item"
        )

    if (width is None) != (answer_file is None):
        raise ParameterError("--width and a pilot in --answers need each other: give both.")
    if answer_file is not None:
        questionnaires = [
            book.study_files.load_beside(name, study.parent) for name in loaded.questionnaires
        ]
        pilot = read_answer_file(answer_file, questionnaires, "embedded", "nli", condition)
        _say_runs(book.study.runs_for(pilot, width), width)


def _say_runs(table, width: float) -> None:
    """Print for each scale the number of runs that an interval needs."""
    for row in table.itertuples():
        if math.isnan(row.needed):
            typer.echo(f"{row.questionnaire}, {row.scale}: the pilot has no model with two runs")
            continue

        order = "" if math.isnan(row.order) else f"; reliability of their order: {row.order:.2f}"
        typer.echo(
            f"{row.questionnaire}, {row.scale}: {row.needed:.0f} runs of each model for an "
            f"interval of {width:g} ({row.assured:.0f} to be on the safe side){order}"
        )


@_study_app.command("register")
def _study_register(
    study: _StudyFile,
    form: Annotated[Literal["osf", "aspredicted"], Option(help="The registry's form.")] = "osf",
    output: Output = None,
) -> None:
    """Print a study's plan under the questions of a registry of plans, as Markdown."""
    text = book.registration.registration_text(study, form)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)


@_study_app.command("run")
def _study_run(
    study: _StudyFile,
    store: Store = None,
    condition: Conditions = None,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Ask all questions that a study plans; a stopped run resumes where it stopped.

    -c takes settings that the plan leaves open: the device and the endpoint's settings; max_cost
    limits the whole run. A study in mode file asks no respondents: its answers are in --answers.
    """
    if answer_file is None:
        settings = parse_conditions(condition) | ({"dry_run": True} if dry_run else {})
    else:
        settings = parse_reading_settings(condition) | {"answers": answer_file}

    summary = book.study.run_study(study, store, **settings)

    if dry_run:
        return
    typer.echo(
        f"{summary['asked']} asked, {summary['from_store']} from the store, "
        f"{summary['unanswered']} refused or unreadable, {len(summary['failed'])} failed, "
        f"in {summary['seconds']:.1f} s."
    )

    for who, reason in summary["failed"].items():
        typer.echo(f"{who}: {reason}")

    if not summary["plan"]:
        typer.echo("The plan has changed since the first run; the report will say so.")
    if summary["exploratory"]:
        typer.echo("The study has no plan: its results are exploratory.")

    raise typer.Exit(1 if summary["failed"] else 0)


@_study_app.command("report")
def _study_report(study: _StudyFile, output: Output = None, store: Store = None) -> None:
    """Write the page of a completed study, and save its tables in the study's folder."""
    page, checklist = book.study_report.write_study_report(
        study, output or study.with_suffix("") / "report.html", store
    )
    typer.echo(f"open {page}; {checklist} is the reporting checklist")


@app.command("contamination", rich_help_panel="Models")
def _contamination(
    models: Annotated[list[str], Argument(metavar="MODEL...", help="Causal language models.")],
    output: Output = None,
) -> None:
    """Measure whether models know the IPIP by heart: its order, its wording, its scoring key.

    Each sign is compared with what a model cannot have read: random orders, the wording of placebo
    items, keys dealt at random. The table is printed, or written to --output (.csv, .json or
    .parquet).
    """
    import pandas as pd

    if output is not None:
        output = pm.answers.files.check_answers_file(output, has_items=False)
    tables = [book.studies.contamination.contamination(model) for model in models]
    write_table(pd.concat(tables, ignore_index=True), output)
