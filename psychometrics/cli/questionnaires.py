"""Commands for a questionnaire's file: draft, check, print and improve it."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

import psychometrics as pm

from ..data import write_csv
from ..exceptions import ParameterError, PsychometricsError
from .answers import print_rows
from .options import Conditions, Mode, Output, QuestionnaireName, app, parse_conditions

_PANEL = "Questionnaires"


@app.command("new-questionnaire", rich_help_panel=_PANEL)
def _new_questionnaire(
    table: Annotated[Path, Argument(metavar="TABLE", help="A CSV file with the columns above.")],
    output: Output = None,
    language: Annotated[Literal["en", "de", "es", "fr"], Option(help="Items' language.")] = "en",
) -> None:
    """Draft a questionnaire's file from a table of items; comments in the file say what to add.

    By default, the file has the table's name with the ending .yaml. The table has the column item
    and optionally scale, reverse (yes), options from least to most ("0=Not at all; 1=Often",
    "Strongly disagree; Disagree; Agree", "1-5", or one column an option: "option 1", "option 2"),
    source and inverse terms (separated by semicolons), premise and hypothesis.
    """
    output = output or Path(f"{table.with_suffix('') if table.name else 'draft'}.yaml")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        path = pm.authoring.drafts.draft(table, output, language=language)

    for warning in warned:
        typer.echo(f"psychometrics: {warning.message}", err=True)
    _print_check(path, measured=False)
    typer.echo(f"{path}: a draft. Follow its comments; to check it at each save, run")
    typer.echo(f"  psychometrics check {path} --watch")

    questionnaire = pm.load_questionnaire(path)
    if all(map(questionnaire.choices, questionnaire.items)):
        typer.echo("A model can answer it now:")
        typer.echo(f"  psychometrics scores {path} --mode options --respondents minilm-both-l6-s1")


@app.command("check", rich_help_panel=_PANEL)
def _check(
    questionnaire: QuestionnaireName,
    measure: Annotated[bool, Option("--measure", help="Also check with models.")] = False,
    watch: Annotated[bool, Option("--watch", help="Check again at each save.")] = False,
) -> None:
    """Check a questionnaire's file: print its mistakes, its content and the broken wording rules.

    With --measure, small models check opposites and congruence.
    """
    path = Path(questionnaire)
    if not watch:
        _print_check(questionnaire, measure)
        return

    if not path.is_file():
        raise ParameterError(f"{questionnaire} is not a file: name a file that --watch can check.")

    checked_at = None
    while True:
        saved_at = checked_at
        with contextlib.suppress(FileNotFoundError):  # some editors replace the file
            saved_at = path.stat().st_mtime_ns

        if saved_at != checked_at:
            checked_at = saved_at
            typer.echo(f"--- {time.strftime('%H:%M:%S')}")
            try:
                _print_check(path, measure)
            except PsychometricsError as error:
                typer.echo(str(error))

        time.sleep(0.5)


def _print_check(name: str | Path, measured: bool) -> None:
    """Print a questionnaire's content and the violations of the wording rules."""
    questionnaire = pm.load_questionnaire(name, texts=False)
    table = pm.questionnaires.counts(questionnaire)
    with_prompts = table[table["prompts"] > 0]
    typer.echo(f"{questionnaire.short_title}: {questionnaire.title}")
    typer.echo(f"licence: {questionnaire.licence}")
    typer.echo(table.to_string(float_format="{:.2f}".format))
    typer.echo(
        f"{len(table)} items, {len(questionnaire.scales)} scales, {table['prompts'].sum()} prompts"
    )

    if len(with_prompts):
        typer.echo(
            f"terms per template: {with_prompts['source'].mean():.2f} source, "
            f"{with_prompts['inverse'].mean():.2f} inverse"
        )

    if questionnaire.wording == "upstream":
        return
    findings = pm.authoring.wording.wording(questionnaire, measured)
    for row in findings.itertuples():
        place = f"{row.item_id}, template {row.template}" if row.template else row.item_id
        typer.echo(f"{place}, {row.rule}: {row.finding}; {row.mend}.")

    nothing = "; the rules find no problem, but people may"
    if with_prompts.empty:
        nothing = "; most rules are about prompts, and there are none yet"

    typer.echo(
        f"wording: {len(findings)} finding(s)"
        + ("" if len(findings) else nothing)
        + ("" if questionnaire.language == "en" else " (only the rule `language` applies)")
    )


@app.command("prompts", rich_help_panel=_PANEL)
def _prompts(
    questionnaire: QuestionnaireName,
    mode: Mode = "nli",
    condition: Conditions = None,
    output: Output = None,
) -> None:
    """Print or save (.csv, .parquet) the requests that a questionnaire makes; send no request.

    By default, print the prompt table for inference models; with --mode chat or options, the
    messages under the conditions that -c names.
    """
    loaded = pm.load_questionnaire(questionnaire)

    # The default needs neither a mode's settings nor the packages that models need.
    is_plain = mode == "nli" and not condition
    asks_prompts = is_plain or pm.modes.mode_named(mode).answers == "prompts"
    if asks_prompts and not any(item.templates for item in loaded.items):
        raise ParameterError(
            f"{loaded.id} has no prompts: see what other modes send with --mode chat or --mode "
            "options, or add templates and terms."
        )

    if output is not None:
        output = pm.exceptions.check_file(output, (".csv", ".parquet"))
    if is_plain:
        table = pm.prompts(loaded)
    else:
        table = pm.modes.mode_named(mode).preview(loaded, parse_conditions(condition, mode))

    if output is None:
        return write_csv(table, sys.stdout)

    pm.write_answers(table, output)
    requests = table["request"].nunique() if "request" in table else len(table)
    typer.echo(f"{output}: {requests} {'requests' if 'request' in table else 'prompts'}")


@app.command("questionnaires", rich_help_panel=_PANEL)
def _questionnaires(
    scales: Annotated[bool, Option("--scales", help="Print a line for each scale.")] = False,
) -> None:
    """List the questionnaires of the project: scales, items, ways to ask, norms.

    A terminal gets a line for each questionnaire; a file or a pipe gets all scales as CSV.
    """
    names = pm.questionnaires.questionnaire_names()
    names.remove(pm.questionnaires.COMPASS)  # its file is fetched
    loaded = [pm.load_questionnaire(name, texts=False) for name in names]

    if not sys.stdout.isatty():
        import pandas as pd

        write_csv(pd.DataFrame(_list_scales(loaded)), sys.stdout)
    elif scales:
        print_rows(_list_scales(loaded))
    else:
        rows = []
        for questionnaire in loaded:
            modes = ["nli"] if all(item.templates for item in questionnaire.items) else []
            if all(map(questionnaire.choices, questionnaire.items)):
                modes += ["options"]

            n_scales = len(questionnaire.scales or questionnaire.categories)
            row: dict[str, Any] = {"name": questionnaire.id, "title": questionnaire.title}
            row |= {"items": len(questionnaire.items), "scales": n_scales}
            row |= {"modes": ", ".join(modes), "lang": questionnaire.language}
            rows.append(row | {"norms": len({norm.group for norm in questionnaire.norms})})

        print_rows(rows)
        typer.echo("What has options can be asked in mode chat, too. --scales lists the scales.")


def _list_scales(loaded: list[pm.questionnaires.Questionnaire]) -> list[dict[str, Any]]:
    """Return a row for each scale or category."""
    rows = []
    for questionnaire in loaded:
        named: dict[str, Any] = {"questionnaire": questionnaire.id}
        for scale in questionnaire.scales:
            is_ticked = all(map(questionnaire.choices, scale.items))
            low, high = questionnaire.span(scale) if is_ticked else (None, None)
            n_reversed = sum(key < 0 for key in questionnaire.keys(scale).values())
            row = named | {"scale": scale.title, "items": len(scale.items), "reversed": n_reversed}
            groups = sum(norm.scale == scale.id for norm in questionnaire.norms)
            rows.append(row | {"low": low, "high": high, "mode": scale.mode, "groups": groups})

        named |= {"items": len(questionnaire.items), "reversed": 0, "groups": 0}
        rows += [named | {"scale": name, "mode": "category"} for name in questionnaire.categories]

    return rows
