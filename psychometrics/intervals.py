"""Intervals: how far a number could move if respondents or items were drawn again."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .questionnaires import Questionnaire
from .scoring import keyed_items


def bootstrap_mean(
    values: np.ndarray, seed: int = 0, n_resamples: int = 2000, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap interval of the mean along the last axis.

    Parameters
    ----------
    values : ndarray, shape (..., n)
        Observations along the last axis; all series are resampled with the same draws.
    seed : int
        Seed of the draws.
    n_resamples : int
        Bootstrap samples.
    level : float
        Coverage aimed at.

    Returns
    -------
    low, high : ndarray, shape (...)

    References
    ----------
    Efron and Tibshirani (1993), chapter 13.

    Examples
    --------
    >>> low, high = bootstrap_mean(np.array([1.0, 2.0, 3.0, 4.0]), seed=1)
    >>> bool(low < 2.5 < high)
    True
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    means = values @ counts.T / n
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=-1)
    return low, high


def scale_intervals(
    items: pd.DataFrame, questionnaire: Questionnaire, scale: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """A scale's score per respondent, with the interval from drawing its items again.

    Parameters
    ----------
    items : DataFrame
        Item scores, as :func:`psychometrics.scoring.item_scores` gives them.
    questionnaire : Questionnaire
        The instrument, for its keys.
    scale : str, optional
        Which scale; by default the first, which is the whole instrument.
    seed : int
        Seed of the bootstrap over the I items.

    Returns
    -------
    DataFrame
        ``respondent_id, score, low, high``, in the units of the item scores.
    """
    chosen = next(s for s in questionnaire.scales if scale is None or s.id == scale)
    members = [item.id for item in questionnaire.members(chosen)]
    keyed = keyed_items(items, questionnaire)[members]
    low, high = bootstrap_mean(keyed.to_numpy(), seed=seed)
    return pd.DataFrame(
        {"respondent_id": keyed.index, "score": keyed.mean(axis=1), "low": low, "high": high}
    ).reset_index(drop=True)
