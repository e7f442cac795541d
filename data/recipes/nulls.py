"""Make ``data/nulls.parquet`` and ``data/null_heads.parquet``: ``python -m recipes.nulls``.

The files have answers, in float32, of slow null respondents: members of the embedded population's
kind trained on pairs with shuffled labels, and, in the second file, untrained heads on the decoder
that replace the default decoders, drawn as in the chapters on prompts and on assessment. ``python
-m recipes.nulls heads`` makes only the latter (ten minutes on one processor core).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.asking.population import population, untouched_bases
from psychometrics.models.sources import base_path
from psychometrics.modes import load_respondent
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.nulls.respondents import NullRespondent, null_answers
from psychometrics.paths import cache_dir, data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaires
from psychometrics.questionnaires.prompts import prompts
from psychometrics.store import key_of
from psychometrics.training import train_nli
from psychometrics.training.heads import nli_classifier
from psychometrics.training.pairs import nli_pairs

QUESTIONNAIRES = (
    "gad7", "phq9", "soc13",
    "placebo_defects", "placebo_pleasures", "placebo_habits", "placebo_weather",
)  # fmt: skip
DRAWN = ("gad7", "phq9", "soc13")
"""Questionnaires that the chapters put to untrained heads of the default population."""
DRAWS = 20
FIRST = 1
"""Number of the first head, which is the chapters' seed."""
SHUFFLED = 8
SHARE = 0.15
RECIPE = {"tuning": "lora", "epochs": 1, "lr": 1e-3, "dropout": 0.0}
"""Settings of the embedded members, with shuffled labels and less training."""


def _main() -> None:
    pairs = _pairs(QUESTIONNAIRES)
    columns = {"key": [key_of(*pair) for pair in pairs]}
    for number in range(SHUFFLED):
        answers = _shuffled_member(number).answer(pairs)
        columns |= _named(f"shuffled-labels-s{number}", answers)

    frame = pd.DataFrame(columns).drop_duplicates("key")
    frame.to_parquet(data_dir() / "nulls.parquet", index=False, compression="zstd")
    _write_heads()


def _write_heads() -> None:
    path = data_dir() / "null_heads.parquet"
    path.unlink(missing_ok=True)  # otherwise its own answers would be read again
    frame = head_answers(DRAWN)
    digits = {name: "BYTE_STREAM_SPLIT" for name in frame.columns[1:]}
    frame.to_parquet(
        path, index=False, compression="zstd", use_dictionary=["key"], column_encoding=digits
    )


def head_answers(questionnaires: Sequence[str | Questionnaire]) -> pd.DataFrame:
    """Return answers of untrained heads that replace the default population's decoders.

    Returns
    -------
    DataFrame
        A row for each prompt, by its ``key``; three columns for each head.
    """
    stands = list(zip(*untouched_bases(population()).values(), strict=True))
    columns = {"key": [key_of(*pair) for pair in _pairs(questionnaires)]}

    for number in range(FIRST, FIRST + DRAWS * len(stands)):
        base, layers, wording = stand = stands[number % len(stands)]
        if wording is None:
            continue

        answers = null_answers(questionnaires, "random-heads", 1, base, layers, number, wording)
        name = NullRespondent("random-heads", *stand, number).shipped_name
        columns |= _named(name, answers[list(PROBABILITIES)].to_numpy())

    return pd.DataFrame(columns).drop_duplicates("key")


def _pairs(questionnaires: Sequence[str | Questionnaire]) -> list[tuple[str, str]]:
    loaded = load_questionnaires(questionnaires)
    table = pd.concat([prompts(one) for one in loaded], ignore_index=True)
    return list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))


def _named(respondent: str, answers: np.ndarray) -> dict[str, np.ndarray]:
    return {
        f"{respondent} {name}": answers[:, column].astype("float32")
        for column, name in enumerate(PROBABILITIES)
    }


def _shuffled_member(number: int):
    """Return a respondent trained on pairs with shuffled labels."""
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
    _write_heads() if sys.argv[1:] == ["heads"] else _main()
