"""Commands that write pages: profiles, comparisons and studies."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import psychometrics as pm

from ..exceptions import ParameterError
from .answers import _collect_answers, _read_answers
from .options import (
    AnswerFile,
    Conditions,
    DryRun,
    Mode,
    Output,
    Store,
    _conditions_in,
    _names_in,
    _reading_settings_in,
    app,
)

_PANEL = "Profiles and studies"
_Profiled = Annotated[
    str,
    Option(
        "--questionnaires", "--questionnaire", "--instruments", help="Names or files, as in a,b,c."
    ),
]
_Against = Annotated[
    str,
    Option(
        help='Respondents to compare with: "default" (the embedded population in mode nli, '
        'otherwise none), names separated by commas, or "nobody" for none.'
    ),
]
_Pdf = Annotated[bool, Option("--pdf", help="Also print the page to a .pdf file.")]
_PROFILED = "gad7,phq9,soc13"
# Most respondents of a file that are compared without being named.
_SIDE_BY_SIDE = 12


@app.command("profile", rich_help_panel=_PANEL)
def _profile(
    model: Annotated[
        str | None,
        Argument(help="A member, a folder, a hub id or a chat model.", show_default=False),
    ] = None,
    questionnaires: _Profiled = _PROFILED,
    against: _Against = "default",
    mode: Mode = "nli",
    condition: Conditions = None,
    base: Annotated[str | None, Option(help="The model's base before training.")] = None,
    output: Output = None,
    pdf: _Pdf = False,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Write a page (.html or .pdf) about one model: its scores, nulls, norms, and warnings.

    With --answers, the page describes the answers in a file, from models or people, and no model is
    asked.
    """
    if answer_file is not None:
        return _profile_answers(answer_file, model, questionnaires, mode, condition, output, pdf)

    if model is None:
        raise ParameterError("Name a model, or a table with --answers.")

    if dry_run:
        _collect_answers(_names_in(questionnaires), model, mode, condition, dry_run)

    name = re.sub(r"[^\w.-]+", "-", Path(model).name or model)
    asked = {"model": model, "base": base} | _asked(questionnaires, against, mode, condition)
    tables = _report("profile", asked, output or Path(f"profile-{name}.html"), pdf)
    for row in tables["tab-profile-scores"].itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.title}: {_judged_score(row)}")


def _profile_answers(
    file: Path,
    model: str | None,
    questionnaires: str,
    mode: str,
    condition: list[str] | None,
    output: Path | None,
    pdf: bool,
) -> None:
    """Write the page about the answers in a file."""
    if model is not None:
        raise ParameterError("A page on --answers covers all respondents: leave the model out.")

    _, asked = _from_file(file, questionnaires, mode, condition)
    page = output or Path(f"profile-{file.name.partition('.')[0]}.html")
    tables = _report("answers", asked, page, pdf)
    for row in tables["tab-answers-scales"].itertuples():
        value = f"alpha {row.alpha:.2f} ({row.alpha_low:.2f} to {row.alpha_high:.2f}), "
        value = "" if math.isnan(row.alpha) else value
        typer.echo(f"{row.questionnaire}, {row.scale}: {value}{row.reading}")


@app.command("compare", rich_help_panel=_PANEL)
def _compare(
    models: Annotated[
        list[str] | None,
        Argument(metavar="MODEL1 MODEL2...", help="Models, as for `profile`.", show_default=False),
    ] = None,
    questionnaires: _Profiled = _PROFILED,
    against: _Against = "default",
    mode: Mode = "nli",
    condition: Conditions = None,
    output: Output = None,
    pdf: _Pdf = False,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Write a page (.html or .pdf) with models side by side and their paired differences.

    With --answers, the page compares the named respondents of a file, or all of them.
    """
    models = models or []
    if dry_run:
        _collect_answers(_names_in(questionnaires), ",".join(models), mode, condition, dry_run)

    if answer_file is None:
        asked = {"models": models} | _asked(questionnaires, against, mode, condition)
    else:
        answers, asked = _from_file(answer_file, questionnaires, mode, condition)
        asked["models"] = _side_by_side(answers, models)

    tables = _report("compare", asked, output or Path("compare.html"), pdf)
    for row in tables["tab-compare-scores"].itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.scale}: {row.model} {_judged_score(row)}")

    for row in tables["tab-compare-differences"].itertuples():
        typer.echo(
            f"{row.questionnaire}, {row.scale}: {row.model} {row.difference:+.3f} "
            f"({_ends(row.low, row.high, '+.3f')}), {row.verdict}"
        )

    failed = tables.get("tab-compare-failed")
    if failed is not None:
        for row in failed.itertuples():
            typer.echo(f"psychometrics: {row.model} could not be asked: {row.reason}", err=True)

        raise typer.Exit(1)


def _asked(questionnaires: str, against: str, mode: str, condition: list[str] | None) -> dict:
    return {
        "questionnaires": _names_in(questionnaires),
        "against": None if against == "nobody" else against,
        "mode": mode,
        "conditions": _conditions_in(condition, mode),
    }


def _report(notebook: str, asked: dict, page: Path, pdf: bool) -> dict:
    """Write a report and, if requested, its PDF; return its tables by name."""
    pages = [page, page.with_suffix(".pdf")] if pdf and page.suffix != ".pdf" else [page]
    tables = pm.runs.write_report(notebook, asked, pages)
    if f"tab-{notebook}-checklist" in tables:
        pages.append(page.with_name(f"{page.stem}-checklist.md"))
        pm.checklist.to_markdown(tables[f"tab-{notebook}-checklist"], pages[-1])

    typer.echo(", ".join(map(str, pages)))
    return tables


def _judged_score(row: tuple) -> str:
    """Return a row's score with its interval (if it has one) and its verdict."""
    if math.isnan(row.score):
        return row.verdict
    return f"{row.score:.3f} ({_ends(row.low, row.high, '.3f')}), {row.verdict}"


def _ends(low: float, high: float, form: str) -> str:
    """Format the ends of an interval, or say that a single item has no interval."""
    return "no interval" if math.isnan(low) else f"{low:{form}} to {high:{form}}"


def _from_file(file: Path, questionnaires: str, mode: str, condition: list[str] | None):
    """Return the answers in a file, and the parameters of the page about these answers."""
    if questionnaires == _PROFILED:
        raise ParameterError("--answers needs the questionnaires: name them with --questionnaires.")

    names = _names_in(questionnaires)
    answers = _read_answers(file, names, "embedded", mode, condition)
    settings = _reading_settings_in(condition)
    asked = {"answers": str(file.expanduser().absolute()), "settings": settings}
    return answers, asked | {"questionnaires": names}


def _side_by_side(answers, named: list[str]) -> list[str]:
    """Return the respondents to compare: the named ones, or all in the file if they are few."""
    known = answers["respondent_id"].unique().tolist()
    for name in named:
        pm.checks.check_choice(known, respondent=name)

    chosen = named or known
    most = len(named) or _SIDE_BY_SIDE
    if not 2 <= len(chosen) <= most:
        raise ParameterError(
            f"compare: --answers has {len(chosen)} respondent(s), but a page compares 2 to "
            f"{_SIDE_BY_SIDE}; name the respondents to compare."
        )
    return chosen


_study_app = typer.Typer(no_args_is_help=True, help="A study as one file: check, run, report.")
app.add_typer(_study_app, name="study", rich_help_panel=_PANEL)
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
    loaded = pm.study_files.load_study(study)
    ways = len(loaded.combinations) * len(loaded.seeds)
    typer.echo(f"{loaded.title}: {loaded.question}")
    typer.echo(
        f"{len(loaded.questionnaires)} questionnaire(s), {len(loaded.respondents)} respondent(s) "
        f"or population(s), asked in mode {loaded.mode} in {ways} way(s); "
        f"{len(loaded.planned.expectations)} expectation(s), planned on {loaded.planned.date}"
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
            pm.study_files.load_beside(name, study.parent) for name in loaded.questionnaires
        ]
        pilot = _read_answers(answer_file, questionnaires, "embedded", "nli", condition)
        _say_runs(pm.study.runs_for(pilot, width), width)


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
        how = _conditions_in(condition) | ({"dry_run": True} if dry_run else {})
    else:
        how = _reading_settings_in(condition) | {"answers": answer_file}

    summary = pm.study.run_study(study, store, **how)

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

    raise typer.Exit(1 if summary["failed"] else 0)


@_study_app.command("report")
def _study_report(study: _StudyFile, output: Output = None, store: Store = None) -> None:
    """Write the page of a completed study, and save its tables in the study's folder."""
    pm.study_files.load_study(study, was_run=True)
    folder = study.with_suffix("")
    page = output or folder / "report.html"
    asked = {"study": str(study), "store": store}
    tables = pm.runs.write_report("study", asked, [page], folder / "report.ipynb")
    pm.checklist.to_markdown(tables["tab-study-checklist"], page.with_name("checklist.md"))
    typer.echo(f"open {page}; {page.with_name('checklist.md')} is the reporting checklist")
