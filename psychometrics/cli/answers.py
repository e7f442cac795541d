"""Collect or read answers for a command, write tables, and set the exit status."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import psychometrics as pm

from ..data import write_csv
from ..exceptions import ParameterError
from .options import parse_conditions, parse_reading_settings

if TYPE_CHECKING:  # slow to import
    import pandas as pd


def _collect_answers(
    questionnaires: Sequence[str | pm.questionnaires.Questionnaire],
    respondents: str,
    mode: str,
    condition: list[str] | None,
    dry_run: bool,
    planned: Path | None = None,
    **more: Any,
) -> pd.DataFrame:
    """Ask respondents; in a dry run, write the planned requests to a file and exit."""
    if dry_run and "endpoint" not in pm.modes.mode_named(mode).conditions:
        raise ParameterError(
            f"--dry-run shows the requests to an endpoint, and mode '{mode}' uses no endpoint: "
            "leave --dry-run out, or name --mode chat or options."
        )

    conditions = parse_conditions(condition, mode) | ({"dry_run": True} if dry_run else {})
    options = {"questionnaires", "respondents", "mode", *more} & conditions.keys()
    if options:
        raise ParameterError(f"{min(options)} is not a condition: use the command's own option.")

    named = pm.modes.mode_named(mode).named(respondents)

    with warnings.catch_warnings():  # failures are listed at the end, one per line
        warnings.filterwarnings("ignore", ".* did not answer everything", UserWarning)
        answers = pm.ask(questionnaires, named, mode=mode, **(conditions | more))

    if dry_run:
        if planned is not None:
            write_table(answers, planned)
            typer.echo(f"{planned}: the requests that would be sent")

        _exit_with_status(answers)

    return answers


def read_answer_file(
    file: Path,
    questionnaires: Sequence[str | pm.questionnaires.Questionnaire],
    respondents: str,
    mode: str,
    condition: list[str] | None,
) -> pd.DataFrame:
    """Read answers to questionnaires from a file, and report what the file contains."""
    if (respondents, mode) != ("embedded", "nli"):
        raise ParameterError("--answers replaces asking: leave out respondents and mode.")

    settings = parse_reading_settings(condition)
    return pm.answers.files.read_all(file, questionnaires, progress=True, **settings)


def write_table(
    table: pd.DataFrame,
    output: Path | None = None,
    as_json: bool = False,
    questionnaires: Sequence[pm.questionnaires.Questionnaire] = (),
) -> None:
    """Write a table in the format of the file's extension, or print it."""
    if output is None and as_json:
        table.to_json(sys.stdout, orient="records", indent=2)
    elif output is None or re.search(r"(?<!\.wide)(?<!\.irw)\.csv$", output.name, re.IGNORECASE):
        write_csv(table, output or sys.stdout, decimals=6)
    else:
        pm.write_answers(table, output, questionnaires)


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print rows for people, each on one line of the terminal, whose widest column is cut."""
    names = list(rows[0])
    lines = [names]
    for row in rows:
        values = [row.get(name) for name in names]
        lines.append(["" if value is None else str(value) for value in values])

    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    missing = sum(widths) + 2 * len(widths) - shutil.get_terminal_size().columns
    widest = widths.index(max(widths))
    widths[widest] = max(8, widths[widest] - max(0, missing))
    for line in lines:
        cells = [
            text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
            for text, width in zip(line, widths, strict=True)
        ]
        typer.echo("  ".join(cells).rstrip())


def _exit_with_status(answers: pd.DataFrame) -> None:
    """Exit with status 1 if a respondent failed (and say why) or if no answer is readable."""
    summary = answers.attrs["summary"]
    for name, reason in summary["failed"].items():
        kind = summary["kinds"][name]
        typer.echo(f"psychometrics: {name} did not answer everything ({kind}): {reason}", err=True)

    statuses = summary.get("statuses", {})
    is_unreadable = bool(statuses) and not (answers["status"] == "ok").any()
    if is_unreadable:
        counts = ", ".join(f"{n} {status}" for status, n in statuses.items())
        typer.echo(f"psychometrics: no answer can be read: {counts}.", err=True)

    raise typer.Exit(1 if summary["failed"] or is_unreadable else 0)
