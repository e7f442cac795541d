"""Measure, and print the table: ``python -m tests.benchmarks [part ...]``, or only ``print``."""

import sys

import pandas as pd

from . import PARTS, RECORDED, measure, recorded, slopes, summary

if __name__ == "__main__":
    if sys.argv[1:] != ["print"]:
        measure(RECORDED, sys.argv[1:] or PARTS)
    table = recorded(RECORDED)
    print(", ".join(table["processor"].dropna().unique()))
    columns = ["task", "tool", "version", "precision", "repetitions", "seconds", "low", "high"]
    columns += ["times_ours", "times_low", "times_high", "times_same", "share_of_peak"]
    columns += ["tokens_per_second", "agreement"]
    wide = {"display.width": 250, "display.max_columns": 20, "display.max_rows": 500,
            "display.max_colwidth": 60, "display.float_format": "{:.3g}".format}  # fmt: skip
    with pd.option_context(*[part for option in wide.items() for part in option]):
        print(summary(table[table["part"] != "growth"])[columns].to_string(index=False))
        print(slopes(table).to_string())
