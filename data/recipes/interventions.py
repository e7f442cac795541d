"""Repeat the studies of Chapter 7: ``python -m recipes.interventions [part]``.

``scales`` makes ``data/interventions.csv``: ``run`` is the digest of everything that determines a
run; epoch 0 belongs to no arm. ``refit`` makes ``data/interventions_refit.csv``: a small study of
the three most accurate encoders over five epochs, in which the NLI head is fitted to 1,000 pairs
before every measurement. It was planned after the first study's results were known, and its size
was fixed before its own results were known. ``talk`` makes ``data/interventions_talk.csv`` and
``data/interventions_replies.csv`` from a conversational model, in cells that are stored, so that a
stopped run resumes; ``talk MODEL FOLDER`` measures another model into a folder, which Chapter 7
reads with ``-p talk=FOLDER``. ``attributions`` makes ``data/attributions.csv`` from the most
accurate small encoder. Without a part, all files are made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from psychometrics.asking.population import population_table
from psychometrics.modes import load_respondent
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.interventions import trajectories

from . import talking
from .attributions import integrated_gradients

MEASURED = (2, 5, 10, 20)
"""Epochs after which to measure, besides 0."""
GENERATOR = "smollm2"
JUDGE = "minilm-both-l6-s1"
"""The most accurate of the population's small encoders; another judge would give other scores."""
SEEDS = (0, 1, 2)


def _measured(most: int = 7, **how: object) -> pd.DataFrame:
    table = population_table().query("family == 'MiniLM'")  # encoders have masks to fill
    table = table.sort_values("accuracy", ascending=False)
    respondents = list(table["respondent_id"].head(most))  # the most accurate; 7, as in the paper
    questionnaires = [load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]
    return trajectories(respondents, questionnaires, seed=1, shipped=False, **how)


def _scales() -> None:
    scores = _measured(measure_at=MEASURED)
    scores["arm"] = scores["arm"].where(scores["epoch"] > 0)
    frame = scores.drop_duplicates(["run", "epoch", "scale"])
    columns = ["run", "respondent_id", "arm", "epoch", "questionnaire", "scale", "score"]
    frame[columns].to_csv(data_dir() / "interventions.csv", index=False, float_format="%.6f")


def _refit() -> None:
    scores = _measured(3, epochs=5, measure_at=(5,), refit=1000)
    columns = ["respondent_id", "arm", "epoch", "scale", "score"]
    path = data_dir() / "interventions_refit.csv"
    scores[columns].to_csv(path, index=False, float_format="%.6f")


def _talk(generator: str = GENERATOR, folder: str | Path = "") -> None:
    parts = talking.talk(generator, JUDGE, seeds=SEEDS)
    for part, name in zip(parts, talking.SHIPPED.values(), strict=True):
        part.to_csv(Path(folder or data_dir()) / name, index=False, float_format="%.6f")


def _attributions() -> None:
    gad7 = load_questionnaire("gad7")
    respondent = load_respondent(JUDGE, dtype="float32")
    parts = [
        integrated_gradients(respondent, gad7, random_head=seed).assign(state=state)
        for state, seed in (("trained", None), ("random head", 0))
    ]
    frame = pd.concat(parts, ignore_index=True).assign(respondent_id=JUDGE)
    columns = ["respondent_id", "state", *frame.columns.drop(["respondent_id", "state"])]
    frame[columns].to_csv(data_dir() / "attributions.csv", index=False, float_format="%.5f")


if __name__ == "__main__":
    wanted = sys.argv[1:2] or ["scales", "refit", "talk", "attributions"]
    if "scales" in wanted:
        _scales()
    if "refit" in wanted:
        _refit()
    if "talk" in wanted:
        _talk(*sys.argv[2:])
    if "attributions" in wanted:
        _attributions()
