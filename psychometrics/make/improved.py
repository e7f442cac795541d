"""Makes the improved prompts anew: ``python -m psychometrics.make.improved [respondents]``.

Writes ``questionnaires/{gad7,phq9,soc13}_improved.yaml``, ``data/improved.csv`` (silhouettes of
each respondent and item) and ``data/improved_candidates.csv``. Respondents are named as
everywhere, by default the whole embedded population. What was asked before comes from the store.
"""

from __future__ import annotations

import sys

import pandas as pd

from ..paths import data_dir, questionnaires_dir
from ..population import population
from ..studies.improving import SHIPPED, held_out, improve, write_improved

QUESTIONNAIRES = ("gad7", "phq9", "soc13")
DTYPE = "bfloat16"


def _main(respondents: str = "embedded") -> None:
    names = population(respondents)
    silhouettes, candidates = [], []
    for name in QUESTIONNAIRES:
        found = improve(name, names, dtype=DTYPE)
        path = questionnaires_dir() / f"{name}_improved.yaml"
        path.unlink(missing_ok=True)  # of the last time; this is the one place that writes it anew
        write_improved(found, path)
        silhouettes.append(found.silhouettes)
        candidates.append(found.candidates)
        print(held_out(found.silhouettes).T.to_string(header=False), flush=True)
    for name, parts in zip(SHIPPED, (silhouettes, candidates), strict=True):
        whole = pd.concat(parts, ignore_index=True)
        whole.to_csv(data_dir() / f"{name}.csv", index=False, float_format="%.4f")


if __name__ == "__main__":
    _main(*sys.argv[1:])
