"""Commands that judge respondents: profiles and comparisons, in the terminal and as pages."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..exceptions import ParameterError, PsychometricsError, needed, writing
from .answers import _collect_answers, read_answer_file, write_table
from .options import (
    AnswerFile,
    Conditions,
    DryRun,
    Mode,
    Store,
    _load_extra,
    app,
    parse_conditions,
    parse_reading_settings,
    split_names,
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
_Page = Annotated[Path | None, Option("--output", "-o", help="The page: .html or .pdf.")]
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
    output: _Page = None,
    pdf: _Pdf = False,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Judge one model, and write a page about it: its scores, nulls, norms, and warnings.

    The verdicts are printed; the page (.html or .pdf) needs the extra `book`. With --answers, the
    page describes the answers in a file, from models or people, and no model is asked.
    """
    if answer_file is not None:
        return _profile_answers(answer_file, model, questionnaires, mode, condition, output, pdf)

    if model is None:
        raise ParameterError("Name a model, or a table with --answers.")

    if dry_run:
        _collect_answers(split_names(questionnaires), model, mode, condition, dry_run)

    settings = _settings_of_asking(questionnaires, against, mode, condition)
    write_report = _find_page_writer(output, pdf)
    if write_report is None:
        conditions = settings.pop("conditions")
        assessment = pm.profiles.assess(model, base=base, **settings, **conditions)
        scores = assessment.scores
        agreement = assessment.agreement
        _print_flags(assessment.flags)
    else:
        name = re.sub(r"[^\w.-]+", "-", Path(model).name or model)
        page = output or Path(f"profile-{name}.html")
        parameters = {"model": model, "base": base} | settings
        tables = _write_page(write_report, "profile", parameters, page, pdf)
        scores = tables["tab-profile-scores"]
        agreement = tables["tab-profile-agreement"]

    for row in scores.itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.title}: {_judged_score(row)}")
    _print_agreement(agreement)


def _profile_answers(
    file: Path,
    model: str | None,
    questionnaires: str,
    mode: str,
    condition: list[str] | None,
    output: Path | None,
    pdf: bool,
) -> None:
    """Judge the answers in a file, and write the page about them."""
    if model is not None:
        raise ParameterError("A page on --answers covers all respondents: leave the model out.")

    write_report = _find_page_writer(output, pdf)
    answers, parameters = _read_file(file, questionnaires, mode, condition)
    if write_report is None:
        names = parameters["questionnaires"]
        tables = pm.answer_profiles.assess_answers(answers, names)
        scales = tables["scales"]
        agreement = tables["agreement"]
    else:
        page = output or Path(f"profile-{file.name.partition('.')[0]}.html")
        tables = _write_page(write_report, "answers", parameters, page, pdf)
        scales = tables["tab-answers-scales"]
        agreement = tables["tab-answers-agreement"]

    for row in scales.itertuples():
        value = f"alpha {row.alpha:.2f} ({row.alpha_low:.2f} to {row.alpha_high:.2f}), "
        value = "" if math.isnan(row.alpha) else value
        typer.echo(f"{row.questionnaire}, {row.scale}: {value}{row.reading}")
    _print_agreement(agreement)


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
    output: _Page = None,
    pdf: _Pdf = False,
    dry_run: DryRun = False,
    answer_file: AnswerFile = None,
) -> None:
    """Judge models side by side with their paired differences, and write a page about them.

    The verdicts are printed; the page (.html or .pdf) needs the extra `book`. With --answers, the
    page compares the named respondents of a file, or all of them.
    """
    models = models or []
    if dry_run:
        _collect_answers(split_names(questionnaires), ",".join(models), mode, condition, dry_run)

    write_report = _find_page_writer(output, pdf)
    answers = None
    if answer_file is None:
        settings = _settings_of_asking(questionnaires, against, mode, condition)
    else:
        answers, settings = _read_file(answer_file, questionnaires, mode, condition)
        models = _choose_respondents(answers, models)

    if write_report is None:
        tables = _compare_here(models, answers, settings)
    else:
        page = output or Path("compare.html")
        parameters = {"models": models} | settings
        tables = _write_page(write_report, "compare", parameters, page, pdf)

    for row in tables["tab-compare-scores"].itertuples():
        typer.echo(f"{row.mark} {row.questionnaire}, {row.scale}: {row.model} {_judged_score(row)}")

    for row in tables["tab-compare-differences"].itertuples():
        ends = _ends(row.low, row.high, "+.3f")
        place = f"{row.questionnaire}, {row.scale}: {row.model}"
        typer.echo(f"{place} {row.difference:+.3f} ({ends}), {row.verdict}")

    _print_agreement(tables["tab-compare-agreement"])
    if "tab-compare-failed" in tables:
        for row in tables["tab-compare-failed"].itertuples():
            typer.echo(f"psychometrics: {row.model} could not be asked: {row.reason}", err=True)

        raise typer.Exit(1)


def _compare_here(models: list[str], answers, settings: dict) -> dict:
    """Compare models without a page; return the tables that the page would show."""
    import pandas as pd

    names = settings["questionnaires"]
    failures = {}
    if answers is None:
        conditions = settings.pop("conditions")
        assessments, failures = pm.profiles.assess_models(models, **settings, **conditions)
    else:
        assessments = pm.profiles.judge_respondents(answers, names, models)

    scores = pd.concat({name: each.scores for name, each in assessments.items()}, names=["model"])
    items = pd.concat([each.items for each in assessments.values()])
    for name, assessment in assessments.items():
        typer.echo(name)
        _print_flags(assessment.flags)

    tables = {
        "tab-compare-scores": scores.reset_index("model").sort_values(
            "questionnaire", kind="stable"
        ),
        "tab-compare-differences": pm.profiles.differences(assessments, names),
        "tab-compare-agreement": pm.agreement.agreement_table(items, names),
    }
    if failures:
        rows = pd.DataFrame({"model": [*failures], "reason": [*failures.values()]})
        tables["tab-compare-failed"] = rows

    return tables


@app.command("table", rich_help_panel=_PANEL)
def _table(
    questionnaires: Annotated[
        list[str] | None,
        Argument(metavar="QUESTIONNAIRE...", help="Names or files.", show_default=False),
    ] = None,
    population: Annotated[
        str, Option("--population", "--respondents", help="A population's file, or names.")
    ] = "embedded",
    standardised: Annotated[
        bool, Option("--standardised", help="Also treat all models as one sample, as the paper.")
    ] = False,
    populations: Annotated[int, Option(help="Populations of random heads of each size.")] = 200,
    condition: Conditions = None,
    store: Store = None,
    failures: Annotated[Path | None, Option(help="A .csv file for failures and reasons.")] = None,
    engine: Annotated[Literal["local", "ray"], Option(help="This machine or a cluster.")] = "local",
    output: Annotated[Path, Option("--output", "-o", help="Folder of the tables.")] = Path("table"),
) -> None:
    """Write the tables of a population: scores, silhouettes, alphas, correlations, their nulls.

    By default, the questionnaires are gad7, phq9 and soc13. The folder gets scores.csv, with the
    scores and silhouettes of each model, and statistics.csv, by base and for all bases combined.
    All are compared with random heads on each model's own base; a model whose base is not known
    cannot be judged. Name it with the key `base` in the population's file. A stopped run resumes
    where it stopped; --condition, --failures, --store and --engine work as for `ask`.
    """
    questionnaires = questionnaires or _PROFILED.split(",")
    asking = {"store": store, "failures": failures, "engine": engine} | parse_conditions(condition)
    with warnings.catch_warnings():  # failures are listed at the end, one per line
        warnings.filterwarnings("ignore", ".* did not answer everything", UserWarning)
        tables = pm.populations.tabulate(
            questionnaires, population, standardised, populations, **asking
        )

    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        write_table(table, output / f"{name}.csv")
        typer.echo(output / f"{name}.csv")

    statistics = tables["statistics"]
    is_summary = statistics["base"].isin(pm.populations.SUMMARIES)
    for row in statistics[is_summary | ~is_summary.any()].itertuples():
        name = " ".join(filter(None, (row.statistic, row.scale, row.other)))
        value = f"{row.value:.2f} ({_ends(row.low, row.high, '.2f')}), "
        value = "" if math.isnan(row.value) else value
        typer.echo(f"{name}, {row.base} ({row.models}): {value}{row.verdict}")

    noted = tables["scores"].query("note != ''").drop_duplicates("respondent_id")
    for row in noted.itertuples():
        typer.echo(f"psychometrics: {row.respondent_id}: {row.note}", err=True)

    raise typer.Exit(int(tables["scores"]["questionnaire"].isna().any()))


def _settings_of_asking(
    questionnaires: str, against: str, mode: str, condition: list[str] | None
) -> dict:
    return {
        "questionnaires": split_names(questionnaires),
        "against": None if against == "nobody" else against,
        "mode": mode,
        "conditions": parse_conditions(condition, mode),
    }


def _find_page_writer(output: Path | None, pdf: bool) -> Callable | None:
    """Return the book's writer of pages; None, with a note, if it is neither there nor needed."""
    try:
        needed("papermill")
        return _load_extra("write_report")
    except PsychometricsError as error:
        if output is not None or pdf:
            raise

        typer.echo(f"psychometrics: no page is written: {error}", err=True)
        return None


def _write_page(
    write_report: Callable, notebook: str, parameters: dict, page: Path, pdf: bool
) -> dict:
    """Write a report and, if requested, its PDF; return its tables by name."""
    pages = [page, page.with_suffix(".pdf")] if pdf and page.suffix != ".pdf" else [page]
    tables = write_report(notebook, parameters, pages)
    if f"tab-{notebook}-checklist" in tables:
        pages.append(page.with_name(f"{page.stem}-checklist.md"))
        _load_extra("write_checklist")(tables[f"tab-{notebook}-checklist"], pages[-1])

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


def _print_flags(flags) -> None:
    """Print the evidence for and against interpreting the scores."""
    for row in flags.itertuples():
        place = f"{row.questionnaire}, {row.scale}" if row.scale else row.questionnaire
        typer.echo(f"  {row.mark} {place}, {row.check}: {row.words}")


def _print_agreement(table) -> None:
    """Print how well respondents agree about items, with the null, or why they cannot."""
    typer.echo("agreement of independent respondents:")
    typer.echo(table.dropna(axis=1, how="all").to_string(index=False, float_format="{:.3f}".format))
    typer.echo(pm.agreement.INDEPENDENT)


def _read_file(file: Path, questionnaires: str, mode: str, condition: list[str] | None):
    """Return the answers in a file, and the parameters of the page about these answers."""
    if questionnaires == _PROFILED:
        raise ParameterError("--answers needs the questionnaires: name them with --questionnaires.")

    names = split_names(questionnaires)
    answers = read_answer_file(file, names, "embedded", mode, condition)
    parameters = {
        "answers": str(file.expanduser().absolute()),
        "settings": parse_reading_settings(condition),
        "questionnaires": names,
    }
    return answers, parameters


def _choose_respondents(answers, names: list[str]) -> list[str]:
    """Return the respondents to compare: the named ones, or all in the file if they are few."""
    respondents = answers["respondent_id"].unique().tolist()
    for name in names:
        pm.checks.check_choice(respondents, respondent=name)

    chosen = names or respondents
    most = len(names) or _SIDE_BY_SIDE
    if not 2 <= len(chosen) <= most:
        raise ParameterError(
            f"compare: --answers has {len(chosen)} respondent(s), but a page compares 2 to "
            f"{_SIDE_BY_SIDE}; name the respondents to compare."
        )
    return chosen
