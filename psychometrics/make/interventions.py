"""Measures the studies of chapter 4 anew: ``python -m psychometrics.make.interventions [part]``.

``scales`` makes ``data/interventions.csv``: ``run`` is the digest of all that determines a run;
epoch 0 belongs to no arm. ``talk`` makes ``data/interventions_talk.csv`` and
``data/interventions_replies.csv``, from a conversational model, in cells that are kept, so that a
stopped run goes on. Without a part, both are made.
"""

from __future__ import annotations

import sys

from ..interventions import SHIPPED, trajectories
from ..paths import data_dir
from ..population import population_table
from ..questionnaires import load_questionnaire
from ..studies import talking

MEASURED = (2, 5, 10, 20)
"""Epochs after which the study is measured, besides 0."""
GENERATOR = "smollm2"
JUDGE = "minilm-both-l6-s1"
"""The most accurate of the population's small encoders; another judge makes other scores."""
SEEDS = (0, 1, 2)


def _scales() -> None:
    table = population_table().sort_values("accuracy", ascending=False)
    scores = trajectories(
        table["respondent_id"].head(7).tolist(),  # as many as in the paper, the most accurate
        [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")],
        measure_at=MEASURED,
        seed=1,
        shipped=False,
    )
    scores["arm"] = scores["arm"].where(scores["epoch"] > 0)
    frame = scores.drop_duplicates(["run", "epoch", "scale"])
    columns = ["run", "respondent_id", "arm", "epoch", "questionnaire", "scale", "score"]
    frame[columns].to_csv(data_dir() / SHIPPED, index=False, float_format="%.6f")


def _talk(generator: str = GENERATOR) -> None:
    parts = talking.talk(generator, JUDGE, seeds=SEEDS)
    for part, name in zip(parts, talking.SHIPPED.values(), strict=True):
        part.to_csv(data_dir() / name, index=False, float_format="%.6f")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["scales", "talk"]
    if "scales" in wanted:
        _scales()
    if "talk" in wanted:
        _talk(*wanted[1:])
