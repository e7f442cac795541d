"""Numbers that the chapters say, evaluated where a chapter has just been executed.

``tests/headlines.csv`` lists expressions over the variables of each chapter, and what they must
give. To execute every chapter once more for them would take as long as the book itself: the build
evaluates them in a last cell, which no copy and no page keeps, and writes what they gave into
``<chapter>.headlines.json`` beside the executed copy, where the tests find it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..paths import book_dir, data_dir, notebooks_dir, questionnaires_dir

_TEXTS = ["PSYCHOMETRICS_DATA_MIRROR", "PSYCHOMETRICS_WORDING"]
"""Variables that name texts of others, without which a chapter may find other numbers."""


def headlines() -> pd.DataFrame:
    """``tests/headlines.csv``, which a clone has: chapter, name, expression, value and others."""
    path = book_dir().parent / "tests" / "headlines.csv"
    if not path.is_file():
        return pd.DataFrame(columns=["chapter", "expression"])
    return pd.read_csv(path, keep_default_na=False)


def cell(chapter: str, executed: Path) -> str:
    """The code that keeps a chapter's headlines beside its executed copy, for its last cell."""
    table = headlines()
    asked = table.loc[table["chapter"] == chapter, "expression"].tolist()
    given = f"{asked!r}, globals(), {time.time()!r}, {str(_path(executed).resolve())!r}"
    return f"from psychometrics.pages import _headlines\n\n_headlines.keep({given})"


def keep(expressions: Sequence[str], names: dict, began: float, path: str) -> None:
    """Write what expressions give in a notebook, an error as a text, and on what it rests."""

    def displayed(*columns: str) -> pd.DataFrame:
        """The first displayed table that has these columns, its values unformatted."""
        for shown in names["Out"].values():
            table = getattr(shown, "data", shown)
            if hasattr(table, "columns") and hasattr(table, "iloc"):
                levels = [table.columns.get_level_values(i) for i in range(table.columns.nlevels)]
                if set(columns) <= set().union(*levels):
                    return table
        raise LookupError(f"no displayed table has the columns {columns}")

    values = {}
    for expression in expressions:
        try:
            values[expression] = float(eval(expression, {**names, "displayed": displayed}))
        except Exception as error:  # which the test tells, with the headline's name
            values[expression] = f"{type(error).__name__}: {error}"
    found = {"began": began, "texts": _texts(), "values": values}
    Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")


def kept(chapter: str, executed: Path) -> dict[str, float | str]:
    """What expressions gave when a copy was executed; nothing if that is of other code or data.

    The copy is of the code at hand where it began later than the notebook, the package, its data
    and its questionnaires were changed, with the same texts of others.
    """
    if not _path(executed).is_file():
        return {}
    found = json.loads(_path(executed).read_text(encoding="utf-8"))
    files = [notebooks_dir() / f"{chapter}.ipynb", *Path(__file__).parents[1].rglob("*.py")]
    for folder in (data_dir(), questionnaires_dir()):
        files += [path for path in folder.rglob("*") if path.is_file()]
    newest = max(path.stat().st_mtime for path in files)
    return found["values"] if newest < found["began"] and found["texts"] == _texts() else {}


def _path(executed: Path) -> Path:
    return executed.with_suffix(".headlines.json")


def _texts() -> list[str | None]:
    return [os.environ.get(name) for name in _TEXTS]
