"""Intervals: how far a number could move if respondents or items were drawn again."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .answers import check_columns
from .exceptions import ParameterError
from .questionnaires import Questionnaire
from .scoring import keyed_items


def bootstrap_mean(
    values: np.ndarray, seed: int = 0, n_resamples: int = 2000
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap interval of the mean along the last axis.

    All series share one set of draws, as counts: ``scipy.stats.bootstrap`` draws other samples
    from the same seed, and resamples every series anew.

    Parameters
    ----------
    values : ndarray, shape (..., n)
        Observations along the last axis; all series are resampled with the same draws.
    seed : int
        Seed of the draws.
    n_resamples : int
        Bootstrap samples.

    Returns
    -------
    low, high : ndarray, shape (...)

    Raises
    ------
    ParameterError
        There is no observation, or something is no number.

    References
    ----------
    Efron and Tibshirani (1993), chapter 13.

    Examples
    --------
    >>> low, high = bootstrap_mean(np.array([1.0, 2.0, 3.0, 4.0]), seed=1)
    >>> bool(low < 2.5 < high)
    True
    """
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("Numbers are needed for the interval of a mean.") from None
    if not values.ndim or not values.shape[-1]:
        raise ParameterError("The mean of no observation has no interval.")
    n = values.shape[-1]
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=n_resamples)
    means = values @ counts.T / n
    low, high = np.quantile(means, [0.025, 0.975], axis=-1)
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
        For its keys.
    scale : str, optional
        Which scale; by default the first, which is the whole questionnaire.
    seed : int
        Seed of the bootstrap over the I items.

    Returns
    -------
    DataFrame
        ``respondent_id, score, low, high``, in the units of the item scores.

    Raises
    ------
    ParameterError
        The questionnaire has no such scale, or an item has no score.

    References
    ----------
    Efron and Tibshirani (1993), chapter 13.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> gad = load_questionnaire("gad7")
    >>> items = pd.DataFrame({"respondent_id": "a", "questionnaire": "gad7",
    ...     "item_id": [item.id for item in gad.items], "score": [1.0, 2, 3, 4, 5, 6, 7]})
    >>> scale_intervals(items, gad)[["score", "low", "high"]].round(1).to_numpy().tolist()
    [[4.0, 2.4, 5.4]]
    """
    check_columns(items, ["respondent_id", "questionnaire", "item_id"], ["score"])
    known = [s.id for s in questionnaire.scales]
    if not known or scale not in (None, *known):
        raise ParameterError(
            f"{questionnaire.id} has no scale '{scale}'; it has {', '.join(known) or 'none'}."
        )
    chosen = next(s for s in questionnaire.scales if scale is None or s.id == scale)
    members = [item.id for item in questionnaire.members(chosen)]
    keyed = keyed_items(items, questionnaire)[members]
    low, high = bootstrap_mean(keyed.to_numpy(), seed=seed)
    return pd.DataFrame(
        {"respondent_id": keyed.index, "score": keyed.mean(axis=1), "low": low, "high": high}
    ).reset_index(drop=True)
