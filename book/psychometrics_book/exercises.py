"""The answers to exercises, and a check of typed answers.

``data/exercises.csv`` gives each answer as the address of a cell that a chapter shows or, if pencil
and paper suffice, as a value.
"""

from __future__ import annotations

import difflib
import math
import re
from pathlib import Path

import pandas as pd

from psychometrics.exceptions import ParameterError
from psychometrics.paths import data_dir

from .record import cell


def answer(exercise: str, runs: str | Path | None = None) -> tuple[float | str, float]:
    """Return the answer to an exercise and, if it is a number, its tolerance.

    Parameters
    ----------
    exercise : str
        The exercise's label, such as ``"ex-first-range"``.
    runs : str or Path, optional
        The folder of executed chapters with the tables; by default the tables in the project's
        data.

    Returns
    -------
    answer : float or str
    tolerance : float
        The answer and its tolerance. The tolerance is by default 0 for a whole number, and
        otherwise 0.005 or one per cent, whichever is larger; it is missing for a text.

    Raises
    ------
    ParameterError
        The exercise does not exist.
    DataError
        The exercise's chapter does not show the cell.

    Examples
    --------
    >>> answer("ex-first-range")
    (0.4, 0.001)
    """
    table = listed()
    if exercise not in table.index:
        close_names = difflib.get_close_matches(exercise, table.index, n=5, cutoff=0.3)
        names = ", ".join(close_names or table.index)
        raise ParameterError(f"There is no exercise to check '{exercise}': name one of {names}.")

    row = table.loc[exercise]
    value = row["answer"]
    if "[" in value:
        value = cell(value, data_dir() / "tables" if runs is None else Path(runs), row["chapter"])

    try:
        value = float(value)
    except ValueError:
        return value, math.nan

    is_whole = value == round(value)
    return value, float(row["tolerance"] or (0 if is_whole else max(0.005, abs(value) / 100)))


def listed() -> pd.DataFrame:
    """Return ``data/exercises.csv``: ``chapter, answer, tolerance, hints``, by ``exercise``."""
    path = data_dir() / "exercises.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False).set_index("exercise")


def is_right(exercise: str, typed: str) -> bool:
    """Return whether a typed text is the answer to an exercise.

    A number may have a decimal point or comma, commas or spaces between thousands, or a per cent
    sign, or it may be a fraction such as 1/3. For answers in words, only letters and digits count,
    regardless of case; an answer may have alternatives separated by ``|``.

    Parameters
    ----------
    exercise : str
        The exercise's label, such as ``"ex-column-factor"``.
    typed : str
        The typed answer.

    Returns
    -------
    bool
        For a number, whether it lies within the tolerance.

    Raises
    ------
    ParameterError
        The exercise does not exist, or the answer is a number and the typed text is not a number.

    Examples
    --------
    >>> is_right("no-such-exercise", "0.42")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: There is no exercise to check 'no-such-exercise'...
    """
    right, tolerance = answer(str(exercise))  # the same rules as in book/_static/exercises.js
    if isinstance(right, str):
        return _letters(str(typed)) in {_letters(alternative) for alternative in right.split("|")}
    readings = _readings(typed)
    if not readings:
        message = f"The answer is a number, but '{typed}' is not: type one such as 0.42."
        raise ParameterError(message)
    slack = tolerance + 1e-9 * max(1, abs(right))
    return any(abs(reading - right) <= slack for reading in readings)


def hints(exercise: str) -> dict[float, str]:
    """Return hints on typical mistakes in an exercise, by the number to which each mistake leads.

    Examples
    --------
    >>> list(hints("ex-self-report-1"))  # 4.5 is right
    [3.0, -4.5]
    """
    right = answer(exercise)[0]
    pairs = [
        entry.split(": ", 1) for entry in listed().loc[exercise, "hints"].split(" | ") if entry
    ]
    sentences = {float(number): sentence for number, sentence in pairs}
    if isinstance(right, float) and right:
        sentences |= {-right: "The size is right: check the sign."}
        sentences |= {100 * right: "Give a share, or add a per cent sign."} if right < 1 else {}
    return sentences


def hint(exercise: str, typed: str) -> str:
    """Return a hint on a wrong answer, or an empty string.

    Parameters
    ----------
    exercise : str
        The exercise's label, such as ``"ex-self-report-1"``.
    typed : str
        The typed answer.

    Examples
    --------
    >>> hint("ex-self-report-1", "3")
    'Turn the answers to the reverse-keyed items around first.'
    """
    close = (
        sentence
        for number, sentence in hints(exercise).items()
        if any(abs(reading - number) <= abs(number) / 100 for reading in _readings(typed))
    )
    return next(close, "")


def _readings(typed: str) -> list[float]:
    """Return the possible readings of a number: ``1,515`` is 1.515 or 1515."""
    text = re.sub(r"\s", "", str(typed)).replace("\N{MINUS SIGN}", "-")
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
    parts = re.fullmatch(r"([+-]?\d+)/(\d*[1-9]\d*)", text)
    if parts:
        numbers.append(int(parts[1]) / int(parts[2]))

    return numbers + [number / 100 for number in numbers if share]


def _letters(text: str) -> str:
    return "".join(letter for letter in str(text).lower() if letter.isalnum())
