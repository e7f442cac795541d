"""Keep the tables of the built book, and print what moved: ``make tables``.

``data/tables`` holds one CSV file for each table that a chapter shows with its default parameters,
and for each figure that an exercise is answered from.
"""

import re
import shutil
import sys

import pandas as pd

from psychometrics.paths import book_dir, data_dir
from psychometrics.record import moved

if __name__ == "__main__":
    kept, runs = data_dir() / "tables", book_dir() / "chapters"
    if not any(runs.glob("*/tab-*.csv")):
        sys.exit("No chapter has run here: build the book first (make book).")
    with pd.option_context("display.max_rows", None, "display.max_colwidth", 90):
        found = moved(kept, runs)
        print(found.to_string(index=False) if len(found) else "nothing moved")
    for folder in kept.glob("*/"):
        shutil.rmtree(folder)
    figures = re.findall(r"fig-[\w-]+", (data_dir() / "exercises.csv").read_text())
    for table in [path for name in ("tab-*", *figures) for path in runs.glob(f"*/{name}.csv")]:
        copy = kept / table.relative_to(runs)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(table, copy)
