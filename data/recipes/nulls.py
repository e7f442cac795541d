"""Makes ``data/nulls.parquet``: ``python -m recipes.nulls``.

Answers, in float32, of the null respondents that take long: members of the embedded population's
kind trained on pairs whose labels were shuffled, and random heads on encoders with random weights.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.asking.nulls import null_answers
from psychometrics.models.sources import base_path
from psychometrics.modes import load_respondent
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.paths import cache_dir, data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics.store import key_of
from psychometrics.training import nli_classifier, nli_pairs, train_nli

QUESTIONNAIRES = (
    "gad7", "phq9", "soc13",
    "placebo_defects", "placebo_pleasures", "placebo_habits", "placebo_weather",
)  # fmt: skip
SHUFFLED = 8
BASES = 24
SHARE = 0.15
RECIPE = {"tuning": "lora", "epochs": 1, "lr": 1e-3, "dropout": 0.0}
"""As the embedded members, but for the labels, and shorter: there is nothing to learn."""


def _main() -> None:
    pairs = _pairs()
    columns = {"key": [key_of(*pair) for pair in pairs]}
    for number in range(SHUFFLED):
        answers = _shuffled_member(number).answer(pairs)
        columns |= _named("shuffled-labels", number, answers)

    for number in range(BASES):
        answers = null_answers(QUESTIONNAIRES, "random-bases", 1, layers=6, seed=number)
        columns |= _named("random-bases", number, answers[list(PROBABILITIES)].to_numpy())

    frame = pd.DataFrame(columns).drop_duplicates("key")
    frame.to_parquet(data_dir() / "nulls.parquet", index=False, compression="zstd")


def _pairs() -> list[tuple[str, str]]:
    table = pd.concat([prompts(load_questionnaire(q)) for q in QUESTIONNAIRES], ignore_index=True)
    return list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))


def _named(null: str, number: int, answers: np.ndarray) -> dict[str, np.ndarray]:
    return {
        f"{null}-s{number} {name}": answers[:, column].astype("float32")
        for column, name in enumerate(PROBABILITIES)
    }


def _shuffled_member(number: int):
    """A respondent trained on pairs whose labels were dealt out anew."""
    from peft import PeftModel

    folder = cache_dir() / "training" / f"shuffled-labels-s{number}"
    if not (folder / "merged" / "config.json").is_file():
        pairs = nli_pairs("mnli").sample(frac=SHARE, random_state=number)
        rng = np.random.default_rng(number)
        pairs = pairs.assign(label=rng.permutation(pairs["label"].to_numpy()))
        train_nli(base_path(), pairs, folder, seed=number, progress=False, **RECIPE)
        model = PeftModel.from_pretrained(nli_classifier(base_path())[0], folder).merge_and_unload()
        _save(model, folder / "merged")

    return load_respondent(folder / "merged", dtype="float32")


def _save(model, folder: Path) -> None:
    from psychometrics.models.loading import load_tokenizer

    load_tokenizer(base_path()).save_pretrained(folder)
    model.save_pretrained(folder)


if __name__ == "__main__":
    _main()
