"""Keep the tables of the built book, and print what moved: ``make tables``.

``data/tables`` holds one CSV file for each table that a chapter shows with its default parameters,
and for each figure that an exercise is answered from. Where a table rests on external texts that
are not shipped, ``tab-….rests-on.txt`` next to it names them. A build that lacks these texts
neither moves nor replaces that table.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from psychometrics.paths import book_dir, data_dir
from psychometrics.publishing.record import external_texts, external_texts_file, moved, not_compared


def renew(kept: Path, runs: Path, figures: Sequence[str]) -> list[str]:
    """Replace the kept tables by those of executed chapters.

    Parameters
    ----------
    kept, runs : Path
        Folders of chapters, each a folder of CSV files.
    figures : sequence of str
        Names of the figures whose data are kept, too.

    Returns
    -------
    list of str
        Kept tables that were not replaced, because they rest on external texts and the executed
        chapter used others or none.
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

    figures = re.findall(r"fig-[\w-]+", (data_dir() / "exercises.csv").read_text())
    for name in renew(kept, runs, figures):
        print(f"Not replaced: {name}; build the book with the texts it rests on to renew it.")


if __name__ == "__main__":
    _main()
