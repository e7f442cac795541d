"""Keep the tables of the built book, and print the changes: ``make tables``.

``data/tables`` holds one CSV file for each table that a chapter shows with its default parameters,
and for each figure whose numbers the book cites. If a table depends on external texts that are not
shipped, ``tab-….rests-on.txt`` next to it names them. A build without these texts neither compares
nor replaces that table.
"""

import csv
import math
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from psychometrics.paths import book_dir, data_dir, notebooks_dir
from psychometrics_book.record import external_texts_file


def renew(kept: Path, runs: Path, figures: Sequence[str]) -> list[str]:
    """Replace the kept tables with those of executed chapters.

    Parameters
    ----------
    kept, runs : Path
        Folders of chapters, each a folder of CSV files.
    figures : sequence of str
        Names of the figures whose data are also kept.

    Returns
    -------
    list of str
        Kept tables that were not replaced, because they depend on external texts and the executed
        chapter used other texts or none.
    """
    shown = [path for name in ("tab-*", *figures) for path in runs.glob(f"*/{name}.csv")]
    stay = {
        kept / path.relative_to(runs)
        for path in shown
        if external_texts(kept / path.relative_to(runs)) not in ("", external_texts(path))
    }

    notes = {external_texts_file(path) for path in stay}

    for path in kept.glob("*/*"):
        if path not in stay | notes:
            path.unlink()

    for path in shown:
        copy = kept / path.relative_to(runs)
        if copy in stay:
            continue

        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
        if external_texts(path):
            shutil.copy(external_texts_file(path), external_texts_file(copy))

    for folder in kept.glob("*/"):
        if not any(folder.iterdir()):
            folder.rmdir()

    return sorted(f"{path.parent.name}/{path.stem}" for path in stay)


def moved(kept: Path, runs: Path, tolerance: float = 1e-3) -> pd.DataFrame:
    """Return the cells of shown tables that differ from the kept ones.

    Tables that depend on different texts from their kept copy are left out (:func:`not_compared`).

    Parameters
    ----------
    kept, runs : Path
        Folders of chapters, each a folder of CSV files.
    tolerance : float
        Tolerance relative to the kept number, and absolute below 1. ``tolerances.csv`` next to the
        kept chapters (``table, column, tolerance``) names columns with a larger tolerance.

    Returns
    -------
    DataFrame
        ``cell`` (an address), ``kept`` and ``now``; a table, row or column that only one side has
        is empty on the other.
    """
    tolerances = {}
    path = kept / "tolerances.csv"
    if path.is_file():
        wider = pd.read_csv(path).itertuples()
        tolerances = {(row.table, row.column): row.tolerance for row in wider}

    rows = []
    shown = [(kept, "*/*.csv"), (runs, "*/tab-*.csv")]  # of figures only the kept ones
    names = {file.relative_to(top) for top, form in shown for file in top.glob(form)}
    for name in sorted(names):
        if _other_texts(kept / name, runs / name):
            continue

        old = _cells(kept / name)
        new = _cells(runs / name)
        for label in dict.fromkeys([*old, *new]):
            was = old.get(label, "")
            is_now = new.get(label, "")
            limit = tolerances.get((name.stem, label[-1]), tolerance)
            if not _alike(was, is_now, limit):
                place = f"{name.parent}/{name.stem}[{', '.join(label)}]"
                rows.append({"cell": place, "kept": was, "now": is_now})

    return pd.DataFrame(rows, columns=["cell", "kept", "now"])


def not_compared(kept: Path, runs: Path) -> list[str]:
    """Return the tables that :func:`moved` leaves out, one sentence each.

    Parameters
    ----------
    kept, runs : Path
        Folders of chapters, each a folder of CSV files.

    Returns
    -------
    list of str
        Each names a table, and the external texts behind its two copies.

    Examples
    --------
    >>> not_compared(Path("a-folder-without-runs"), Path("a-folder-without-runs"))
    []
    """
    sentences = []
    for path in sorted(kept.glob("*/tab-*.csv")):
        new = runs / path.relative_to(kept)
        if _other_texts(path, new):
            old_texts = external_texts(path) or "no external texts"
            new_texts = external_texts(new) or "no external texts"
            sentences.append(
                f"{path.parent.name}/{path.stem}: the kept table rests on {old_texts}, "
                f"the new one on {new_texts}."
            )

    return sentences


def cited_figures() -> list[str]:
    """Return the names of figures that an exercise, a rule, a claim or a text cites."""
    places = [data_dir() / "exercises.csv", data_dir() / "expectations.csv"]
    places += [*(data_dir() / "claims").glob("*.csv"), *notebooks_dir().glob("*.ipynb")]
    texts = "".join(path.read_text(encoding="utf-8") for path in places)
    return sorted(set(re.findall(r"(fig-[\w-]+)\[", texts)))


def external_texts(path: Path) -> str:
    """Return the external texts that a table's CSV file depends on; empty if there are none."""
    note = external_texts_file(path)
    return note.read_text(encoding="utf-8").strip() if note.is_file() else ""


def _other_texts(old: Path, new: Path) -> bool:
    """Return whether two copies of a table exist and depend on different external texts."""
    return old.is_file() and new.is_file() and external_texts(old) != external_texts(new)


def _cells(path: Path) -> dict[tuple[str, str], str]:
    """Return the cells of a CSV file by row (its number and first label) and column."""
    if not path.is_file():
        return {}

    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return {
        (f"#{place} {row[0]}", column): text
        for place, row in enumerate(rows, 1)
        for column, text in zip(head, row, strict=True)
    }


_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def _alike(one: str, other: str, tolerance: float) -> bool:
    """Return whether two cells have the same words, and numbers within the tolerance."""
    try:
        a, b = float(one or "nan"), float(other or "nan")
    except ValueError:
        numbers = [map(float, _NUMBER.findall(text)) for text in (one, other)]
        same_words = _NUMBER.split(one) == _NUMBER.split(other)
        return same_words and all(_near(*pair, tolerance) for pair in zip(*numbers, strict=True))

    return (math.isnan(a) and math.isnan(b)) or _near(a, b, tolerance)


def _near(a: float, b: float, tolerance: float) -> bool:
    """Return whether two numbers differ by at most the tolerance, relative to the first or to 1."""
    return a == b or abs(a - b) <= tolerance * max(1, abs(a))


def _main() -> None:
    kept = data_dir() / "tables"
    runs = book_dir() / "chapters"
    if not any(runs.glob("*/tab-*.csv")):
        sys.exit("No chapter has run here: build the book first (make book).")

    with pd.option_context("display.max_rows", None, "display.max_colwidth", 90):
        cells = moved(kept, runs)
        print(cells.to_string(index=False) if len(cells) else "nothing moved")

    for sentence in not_compared(kept, runs):
        print(f"Not compared: {sentence}")

    for name in renew(kept, runs, cited_figures()):
        print(f"Not replaced: {name}; build the book with the texts it rests on to renew it.")


if __name__ == "__main__":
    _main()
