"""Measure, and print the table: ``python -m tests.benchmarks [part ...]``, or only ``print``."""

import sys

from . import PARTS, RECORDED, measure, recorded, summary

if __name__ == "__main__":
    if sys.argv[1:] != ["print"]:
        measure(RECORDED, sys.argv[1:] or PARTS)
    table = recorded(RECORDED)
    print(", ".join(table["processor"].dropna().unique()))
    how = {"float_format": "{:.3g}".format, "max_colwidth": 60}
    print(summary(table).drop(columns=["part", "note"]).to_string(index=False, **how))
