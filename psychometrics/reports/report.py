"""The typed content of a page about a model, a comparison, a table of answers, a study or an audit.

A page, the terminal and the JSON file show the same :class:`Report`. The book's copy of its JSON
Schema is renewed with ``python -m psychometrics.reports.report``, whose output is
``book/_static/report.schema.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from .. import __version__

# The marks of all cases, from the worst of a kind to the best, and the tones of the marks.
_MARKS = {
    "no score": "✗", "fails": "✗", "not compared": "!", "as impostors": "!",
    "depends on size": "!", "reservations": "!", "passes": "✓", "placebo": "–",
    "does not fit": "✗", "changes": "!", "also without the trait": "!", "cannot tell": "–",
    "stays": "✓", "not explained by it": "✓", "fits": "✓",
}  # fmt: skip
_TONES = {"✗": "bad", "!": "doubt", "✓": "good", "–": ""}


def _load_texts(name: str) -> dict[str, Any]:
    """Return the sentences or headings of pages from a file beside their template."""
    path = Path(__file__).parent / "templates" / f"{name}.yml"
    texts: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return texts


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Statement(_Part):
    """What may be written about one questionnaire, and what may not."""

    about: str = Field(description="Title of the questionnaire, or of another subject.")
    case: str = Field(description="The worst case among the scales, such as 'as impostors'.")
    verdict: str = Field(description="The case in words.")
    text: str = Field(description="One to three sentences.")


class NamedTest(_Part):
    """One of the five tests, done or not."""

    name: str
    question: str = Field(description="What the test asks.")
    status: Literal["passed", "failed", "open", "not done", "not needed"]
    done: str = Field(description="What was done.")
    results: list[str] = Field(description="One line for each scale or questionnaire.")
    meaning: str
    command: str = Field("", description="How to do a test that was not done.")


class Column(_Part):
    """A column of a table: its key in the rows, its heading and its number format."""

    key: str
    heading: str
    form: str = ""


class Table(_Part):
    """A table with its title, a note and its rows, by the columns' keys."""

    name: str
    title: str
    columns: list[Column]
    rows: list[dict[str, str | float | int | bool | None]]
    note: str = ""


class Report(_Part):
    """Everything that a page shows.

    Parameters
    ----------
    kind : {"profile", "compare", "answers", "study", "audit"}
    title, about : str
        The heading, and how the answers were collected, in one line.
    statements : list of Statement
        What may be written, first.
    tests : list of NamedTest
        The five tests.
    results : Table
        The main table, whose rows have a ``mark`` and a ``verdict``.
    details : list of Table
        The tables on which the verdicts rest.
    checklist : Table, optional
        The reporting checklist.
    command : str
        The command that repeats the computation.
    """

    kind: Literal["profile", "compare", "answers", "study", "audit"]
    title: str
    about: str
    statements: list[Statement]
    tests: list[NamedTest]
    results: Table
    details: list[Table] = []
    checklist: Table | None = None
    command: str = ""
    package: str = f"psychometrics {__version__}"

    def to_json(self) -> str:
        """Return the report as JSON; missing numbers are null."""
        return self.model_dump_json(indent=1)


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of a report, in draft 2020-12.

    Examples
    --------
    >>> report_schema()["properties"]["kind"]["enum"]
    ['profile', 'compare', 'answers', 'study', 'audit']
    """
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Report.model_json_schema()


if __name__ == "__main__":
    print(json.dumps(report_schema(), indent=1, ensure_ascii=False))
