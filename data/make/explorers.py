"""The multiverse of the encoders and of untrained heads, as its explorer shows it: a small table.

``python -m data.make.explorers`` takes a minute of one processor core. Questionnaires, score and
the sizes of the heads are those of the chapter on validity.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, untouched_bases
from psychometrics.measures.correlations import multiverse
from psychometrics.measures.evidence import logits, resized
from psychometrics.measures.nulls import null_answers
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire

PAIRS = [("gad7", "phq9"), ("gad7", "soc13"), ("phq9", "soc13")]
DRAWS = 10
"""Populations of untrained heads; no two share a head."""


def multiverse_table(draws: int = DRAWS) -> pd.DataFrame:
    """Return the encoders' correlations, and the medians of as many untrained heads'."""
    loaded = [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]
    members = population("encoders")
    answers = ask(loaded, members, progress=False)
    sizes = np.sqrt((logits(answers) ** 2).mean(axis=(1, 2)))
    worlds, drawn = multiverse(answers, loaded, PAIRS), {"start": [], "matched": []}
    for draw in range(draws):
        heads = null_answers(
            loaded, "random-heads", len(members), seed=draw * len(members),
            **untouched_bases(members),
        )  # fmt: skip
        drawn["start"].append(multiverse(heads, loaded, PAIRS)["r"])
        drawn["matched"].append(multiverse(resized(heads, sizes), loaded, PAIRS)["r"])
    medians = {f"heads, {size}": pd.concat(found, axis=1).median(axis=1)
               for size, found in drawn.items()}  # fmt: skip
    return worlds.assign(**medians)


if __name__ == "__main__":
    multiverse_table().to_csv(
        data_dir() / "explorers" / "multiverse.csv", index=False, float_format="%.6g"
    )
