"""Commands that write pages: profiles and comparisons."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..exceptions import ParameterError, writing
from .answers import _collect_answers, read_answer_file, write_table
from .options import (
    AnswerFile,
    Conditions,
    DryRun,
    Mode,
    Output,
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
        _collect_answers(split_names(questionnaires), model, mode, condition, dry_run)

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
        _collect_answers(split_names(questionnaires), ",".join(models), mode, condition, dry_run)

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


@app.command("contamination", rich_help_panel=_PANEL)
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
    tables = [pm.contamination.contamination(model) for model in models]
    write_table(pd.concat(tables, ignore_index=True), output)


def _asked(questionnaires: str, against: str, mode: str, condition: list[str] | None) -> dict:
    return {
        "questionnaires": split_names(questionnaires),
        "against": None if against == "nobody" else against,
        "mode": mode,
        "conditions": parse_conditions(condition, mode),
    }


def _report(notebook: str, asked: dict, page: Path, pdf: bool) -> dict:
    """Write a report and, if requested, its PDF; return its tables by name."""
    pages = [page, page.with_suffix(".pdf")] if pdf and page.suffix != ".pdf" else [page]
    tables = _load_extra("write_report")(notebook, asked, pages)
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


def _from_file(file: Path, questionnaires: str, mode: str, condition: list[str] | None):
    """Return the answers in a file, and the parameters of the page about these answers."""
    if questionnaires == _PROFILED:
        raise ParameterError("--answers needs the questionnaires: name them with --questionnaires.")

    names = split_names(questionnaires)
    answers = read_answer_file(file, names, "embedded", mode, condition)
    settings = parse_reading_settings(condition)
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
