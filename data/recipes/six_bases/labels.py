"""Labels of the arms of ``data/plans/twins.yml``, which teach something else than inference.

All rules are those of the plan. Labels of most arms depend on a pair alone: on its words, or on the
untouched base's vector of it. Limits come from the pairs of the training pool.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pandas as pd
import torch
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from psychometrics.store import key_of

from .. import frozen_heads

OF_TEXTS = ("overlap", "sentiment", "premise sentiment", "length")
TEACHERS = ("teacher", "own teacher")
ARMS = (*TEACHERS, *OF_TEXTS, "noise")
FIRST_TEACHER = 40_000
"""Number of the untrained head that teaches all blocks; blocks' own teachers follow."""
CLEAR = 0.05
"""VADER's own limit of its compound score between neutral and positive or negative texts."""


def of_texts(arm: str, pairs: pd.DataFrame, train: pd.DataFrame) -> np.ndarray:
    """Return the labels that one of the arms ``OF_TEXTS`` gives to pairs.

    Parameters
    ----------
    arm : str
    pairs : DataFrame
        ``premise, hypothesis``.
    train : DataFrame
        The training pool, which sets the limits between thirds.

    Examples
    --------
    >>> pairs = pd.DataFrame({"premise": ["A man eats."] * 3,
    ...                       "hypothesis": ["A man eats.", "A man hates it.", "Dogs bark."]})
    >>> of_texts("overlap", pairs, pairs).tolist()
    [0, 1, 2]
    >>> of_texts("sentiment", pairs, pairs).tolist()
    [1, 2, 1]
    """
    if arm == "overlap":
        return 2 - _thirds(_overlap(pairs), _overlap(train))
    if arm == "length":
        return _thirds(pairs["hypothesis"].str.len(), train["hypothesis"].str.len())

    text = pairs["premise" if arm == "premise sentiment" else "hypothesis"]
    compound = text.map(valence).to_numpy()
    return np.where(compound >= CLEAR, 0, np.where(compound <= -CLEAR, 2, 1))


def _thirds(values: pd.Series, of: pd.Series) -> np.ndarray:
    """Return 0, 1 or 2: the number of limits between thirds that each value exceeds."""
    limits = np.quantile(of.to_numpy(dtype=float), [1 / 3, 2 / 3])
    return (values.to_numpy(dtype=float)[:, None] > limits).sum(axis=1)


def _overlap(pairs: pd.DataFrame) -> pd.Series:
    """Return the share of each hypothesis's words that its premise has."""
    words = pairs[["premise", "hypothesis"]].map(
        lambda text: re.findall(r"[a-z0-9']+", text.lower())
    )
    shares = [
        np.mean([word in row.premise for word in row.hypothesis]) if row.hypothesis else 0.0
        for row in words.itertuples()
    ]
    return pd.Series(shares, index=pairs.index)


@functools.cache
def valence(text: str) -> float:
    """Return VADER's compound score of a text, from -1 to 1."""
    return _vader().polarity_scores(text)["compound"]


@functools.cache
def _vader() -> SentimentIntensityAnalyzer:
    return SentimentIntensityAnalyzer()


def teacher_number(arm: str, block: int) -> int:
    """Return the number of the untrained head that teaches a block.

    Examples
    --------
    >>> teacher_number("teacher", 3), teacher_number("own teacher", 3)
    (40000, 40003)
    """
    return FIRST_TEACHER if arm == "teacher" else FIRST_TEACHER + block


def of_teacher(number: int, linear: bool, vectors: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the classes that an untrained head prefers, after its logits are standardised.

    Parameters
    ----------
    number : int
        The head's number.
    linear : bool
        Whether the head is linear, as on decoders.
    vectors, train : ndarray, shape (n, width)
        The untouched base's vectors of the pairs, and those of the training pool, by whose logits
        each class is centred and scaled. Otherwise nearly all pairs would have one class.
    """
    head = frozen_heads.untrained(range(number, number + 1), train.shape[1], linear)
    chosen, pool = (
        frozen_heads.logits(head, torch.from_numpy(part))[0].numpy().astype(float)
        for part in (vectors, train)
    )
    return ((chosen - pool.mean(axis=0)) / pool.std(axis=0)).argmax(axis=1)


def half_permuted(labels: pd.Series, block: int) -> np.ndarray:
    """Return the labels of a block, half of them permuted among their pairs."""
    rng = np.random.default_rng(int(key_of("noise", str(block)), 16))
    half = rng.permutation(len(labels))[: len(labels) // 2]
    values = labels.to_numpy(copy=True)
    values[half] = values[rng.permutation(half)]
    return values
