"""Options that several commands share, and functions that parse their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer import Argument, Option

import psychometrics as pm

from ..exceptions import ParameterError

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Put questionnaires to language models, score the answers, and build the book.",
)
QuestionnaireName = Annotated[
    str, Argument(metavar="QUESTIONNAIRE", help="A name that `questionnaires` lists, or a file.")
]
Respondents = Annotated[
    str,
    Option(
        help='"embedded", its families "encoders" (seconds) and "decoders" (minutes with a '
        "questionnaire of your own), or names, folders, hub ids and populations' files, "
        "separated by commas; for chat, models at OPENAI_BASE_URL; for simulated, a number."
    ),
]
Store = Annotated[str | None, Option(help="Folder or URL of the store of answers.")]
Mode = Annotated[str, Option(help="How to ask: nli, mlm, options, chat, ...")]
Conditions = Annotated[
    list[str] | None,
    Option(
        "--condition",
        "-c",
        help="A condition of the mode, the run or the endpoint, as name=value, such as role=hero, "
        "dtype=float32, device=cpu, timeout=30, max_cost=2; may be repeated.",
    ),
]
AnswerFile = Annotated[
    Path | None,
    Option(
        "--answers",
        metavar="FILE",
        help="A table of answers (CSV, Excel, Parquet, SPSS, logs), read instead of asking; -c "
        "then takes settings for reading: respondent, run, conditions, item, value, columns, "
        "numbers, already_reversed.",
    ),
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Send nothing; estimate the requests and their price.")
]
Output = Annotated[Path | None, Option("--output", "-o", help="The file to write.")]


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated text."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_conditions(condition: list[str] | None, mode: str = "nli") -> dict[str, Any]:
    """Parse conditions of asking, each written as ``name=value``; refuse an endpoint's key."""
    kinds = get_type_hints(pm.ask) | {"personas": str}
    for name, field in pm.modes.mode_named(mode).conditions_type.model_fields.items():
        kinds[name] = type(field.default) if field.annotation is Any else field.annotation

    conditions = pm.checks.parse_parameters(condition or [], kinds)
    if "api_key" in conditions:  # other users of the machine, and pages, would see it
        raise ParameterError("api_key is not a condition: type `export OPENAI_API_KEY=KEY` first.")
    return conditions


def parse_reading_settings(condition: list[str] | None) -> dict[str, Any]:
    """Parse settings for reading a table of answers, each written as ``name=value``."""
    return pm.checks.parse_parameters(condition or [], get_type_hints(pm.read_answers))
