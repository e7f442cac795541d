"""Keep the tables of the built book, and print what moved: ``make tables``.

``data/tables`` holds one CSV file for each table that a chapter shows with its default parameters.
"""

import shutil

import pandas as pd

from psychometrics.paths import book_dir, data_dir
from psychometrics.record import moved

if __name__ == "__main__":
    kept, runs = data_dir() / "tables", book_dir() / "chapters"
    with pd.option_context("display.max_rows", None, "display.max_colwidth", 90):
        found = moved(kept, runs)
        print(found.to_string(index=False) if len(found) else "nothing moved")
    for folder in kept.glob("*/"):
        shutil.rmtree(folder)
    for table in runs.glob("*/tab-*.csv"):
        copy = kept / table.relative_to(runs)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(table, copy)
