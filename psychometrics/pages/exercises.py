"""Answers of exercises: computed in the chapters, kept in ``data/exercises.csv``, checked anywhere.

A chapter records an answer by :func:`psychometrics.book.answer` as an output of the cell that
computes it. ``python -m psychometrics.pages.exercises`` writes those of the executed chapters to
the file; the build of the book fails where the two differ.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from pathlib import Path

import pandas as pd

from ..exceptions import DataError, ParameterError
from ..parameters import unknown
from ..paths import book_dir, data_dir

MIME = "application/vnd.psychometrics.answer+json"
_FILE = data_dir() / "exercises.csv"
_CHAPTERS = book_dir() / "chapters"
_COLUMNS = ["chapter", "answer", "tolerance"]


def recorded(path: str | Path) -> pd.DataFrame:
    """Answers that an executed notebook, or those of a folder, have recorded.

    Parameters
    ----------
    path : str or Path
        An executed notebook, or a folder of them.

    Returns
    -------
    DataFrame
        Indexed by ``exercise``: ``chapter``, ``answer`` (a number or a text) and ``tolerance``
        (missing for a text).

    Raises
    ------
    DataError
        Two cells recorded the same exercise.

    Examples
    --------
    >>> recorded("a-folder-without-notebooks").empty
    True
    """
    path = Path(path)
    rows = {}
    for file in [path] if path.is_file() else sorted(path.glob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        for output in (output for cell in cells for output in cell.get("outputs", [])):
            for name, found in output.get("data", {}).get(MIME, {}).items():
                if name in rows:
                    raise DataError(f"{file.name}: the exercise '{name}' is recorded twice.")
                rows[name] = {"chapter": file.stem, **found}
    return _table(rows)


def known() -> pd.DataFrame:
    """The answers of ``data/exercises.csv``, as :func:`recorded` gives them.

    Examples
    --------
    >>> list(known().columns)
    ['chapter', 'answer', 'tolerance']
    """
    table = pd.read_csv(_FILE, dtype={"answer": str}, keep_default_na=False)
    numbers = table["tolerance"].map(str) != ""
    rows = {
        row.exercise: {
            "chapter": row.chapter,
            "answer": float(row.answer) if number else row.answer,
            "tolerance": float(row.tolerance) if number else math.nan,
        }
        for row, number in zip(table.itertuples(), numbers, strict=True)
    }
    return _table(rows)


def differences(folder: str | Path = _CHAPTERS) -> list[str]:
    """Sentences on answers of executed chapters that ``data/exercises.csv`` has not, or otherwise.

    Parameters
    ----------
    folder : str or Path
        Where the executed copies are; exercises of chapters that are not there are left out.

    Returns
    -------
    list of str
        One sentence for each exercise; none where all agree.

    Examples
    --------
    >>> differences("a-folder-without-notebooks")
    []
    """
    found, kept = recorded(folder), known()
    executed = {path.stem for path in Path(folder).glob("*.ipynb")}
    said = []
    for name in sorted({*found.index, *kept.index[kept["chapter"].isin(executed)]}):
        if name not in kept.index:
            said.append(f"The answer of {name} ({found.chapter[name]}) is not in the file.")
        elif name not in found.index:
            said.append(f"No cell of {kept.chapter[name]} records the answer of {name}.")
        elif found.chapter[name] != kept.chapter[name] or not _agree(
            found.answer[name], kept.answer[name], kept.tolerance[name]
        ):
            said.append(
                f"The answer of {name} is {found.answer[name]} in {found.chapter[name]}, and "
                f"{kept.answer[name]} ({kept.chapter[name]}) in the file."
            )
    return said


def is_right(exercise: str, said: str) -> bool:
    """Whether an answer, as somebody typed it, is that of the exercise.

    A number may have a decimal point or comma, commas or spaces between its thousands, a sign of
    per cent. Of words, only letters and digits count, in upper or lower case; an answer may name
    alternatives with ``|`` between them.

    Parameters
    ----------
    exercise : str
        Its label, such as ``"ex-column-factor"``.
    said : str
        What was typed.

    Returns
    -------
    bool
        For a number, whether it lies within the tolerance.

    Raises
    ------
    ParameterError
        There is no such exercise, or its answer is a number and no number was typed.

    Examples
    --------
    >>> is_right("no-such-exercise", "0.42")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: There is no exercise to check 'no-such-exercise'...
    """
    table = known()
    if exercise not in table.index:
        near = difflib.get_close_matches(exercise, table.index, n=5, cutoff=0.3)
        raise ParameterError(unknown("exercise to check", exercise, near or [*table.index]))
    return _is_right(said, table.answer[exercise], table.tolerance[exercise])


def _is_right(said: str, answer: float | str, tolerance: float) -> bool:
    """The same rules as in ``book/_static/exercises.js``."""
    if isinstance(answer, str):
        return _letters(said) in {_letters(one) for one in answer.split("|")}
    readings = _readings(said)
    if not readings:
        raise ParameterError(f"The answer is a number, such as 0.42; '{said}' is none.")
    slack = tolerance + 1e-9 * max(1, abs(answer))
    return any(abs(reading - answer) <= slack for reading in readings)


def _readings(said: str) -> list[float]:
    """Numbers that may be meant: ``1,515`` is one and a half, or one and a half thousand."""
    text = re.sub(r"\s", "", said).replace("\N{MINUS SIGN}", "-")
    share = text.endswith("%")
    text = text.removesuffix("%")
    spellings = {text.replace(",", ".")}
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", text):
        spellings.add(text.replace(",", ""))
    numbers = [
        float(spelling)
        for spelling in spellings
        if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", spelling, re.IGNORECASE)
    ]
    return numbers + [number / 100 for number in numbers if share]


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _agree(one: float | str, other: float | str, tolerance: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= tolerance + 1e-9 * max(1, abs(other))


def _table(rows: dict[str, dict]) -> pd.DataFrame:
    table = pd.DataFrame.from_dict(rows, orient="index", columns=_COLUMNS)
    table = table.rename_axis("exercise").astype({"answer": object, "tolerance": float})
    return table.sort_values(["chapter"], kind="stable")


def _write(folder: str | Path = _CHAPTERS, file: Path = _FILE) -> int:
    """Write the answers of the executed chapters; those of chapters that are not there stay."""
    found = recorded(folder)
    executed = {path.stem for path in Path(folder).glob("*.ipynb")}
    kept = known() if file == _FILE else _table({})
    table = pd.concat([found, kept[~kept["chapter"].isin(executed)]])
    table = table.sort_values("chapter", kind="stable").reset_index()
    for column in ("answer", "tolerance"):
        table[column] = [
            x if isinstance(x, str) else "" if math.isnan(x) else f"{x:.10g}" for x in table[column]
        ]
    table.to_csv(file, index=False)
    return len(table)


if __name__ == "__main__":
    print(f"{_FILE}: {_write()} exercises")
