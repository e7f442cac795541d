"""Make ``data/profile.parquet``, the item scores that a profile compares with: ``make data``.

Without them a profile would first ask the whole embedded population, which takes minutes with an
empty store. A digest of its prompts identifies a questionnaire's scores.
"""

from __future__ import annotations

import pandas as pd

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population
from psychometrics.measures.scoring import item_scores
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics.store import key_of

ASKED = ("gad7", "phq9", "soc13", "challenges", "placebo_defects", "placebo_pleasures",
         "placebo_habits", "placebo_weather")  # fmt: skip
"""Questionnaires with shipped scores: those in the chapters that have prompts and scales."""


def _build_profiles() -> None:
    """Ask the embedded population, and ship its item scores."""
    parts = []
    for name in ASKED:
        questionnaire = load_questionnaire(name, texts=False)
        scores = item_scores(ask(questionnaire, population(), progress=False))
        digest = key_of(prompts(questionnaire).to_csv(index=False))
        parts.append(scores.assign(prompts=digest))
        print(name, flush=True)

    table = pd.concat(parts, ignore_index=True)
    table["score"] = table["score"].round(6)
    table.to_parquet(data_dir() / "profile.parquet", index=False, compression="zstd")


if __name__ == "__main__":
    _build_profiles()
