"""Intervals of means over crossed samples: respondents, ways of asking and items."""

from __future__ import annotations

import numpy as np
from scipy import special

from psychometrics.checks import as_numbers
from psychometrics.exceptions import ParameterError


def crossed_interval(values: np.ndarray) -> tuple[float, float, float]:
    r"""Return the 95 % interval of a mean over crossed samples, and its p value.

    Respondents, ways of asking and items are all samples. An interval over items alone holds only
    for the respondents and the ways that were used: a respondent or a wording that shifts all items
    together leaves the differences between items unchanged. With the variance :math:`s_f^2` of the
    means of sample *f* and its size :math:`n_f`,

    .. math:: s_f^2 / n_f \quad (n_f - 1 \text{ degrees of freedom}) \qquad \text{and} \qquad
              \sum_f s_f^2 / n_f

    are the variances of the mean for each sample alone and for all together, the latter with
    Satterthwaite's degrees of freedom. The widest of the intervals by Student's quantile counts.
    All parts contain the residual of each answer, so the interval is somewhat too wide if the
    residuals are large.

    Parameters
    ----------
    values : ndarray, shape (n_1, n_2, ...)
        Values such as differences between two conditions, with an axis for each sample; at least
        two axes are longer than 1. Missing values are left out of the means.

    Returns
    -------
    low, high, p : float
        The widest interval, and the largest two-sided p value for a mean of zero.

    Raises
    ------
    ParameterError
        Fewer than two axes are longer than 1, a row of an axis has no value, or a value is
        infinite.

    References
    ----------
    Satterthwaite (1946); Helm and Priebe (2026) for wordings that shift all items.

    Examples
    --------
    >>> values = np.array([[1.0, 2, 3], [2, 3, 4], [3, 4, 5]])
    >>> [round(end, 2) for end in crossed_interval(values)]
    [0.52, 5.48, 0.04]
    """
    values = as_numbers("values", values)
    samples = [axis for axis, size in enumerate(values.shape) if size > 1]
    if len(samples) < 2 or np.isinf(values).any():
        raise ParameterError("values: give finite numbers for two samples of at least two each.")

    axes = range(values.ndim)
    means = [_observed_mean(values, tuple({*axes} - {axis})) for axis in samples]
    if np.isnan(np.concatenate(means)).any():
        raise ParameterError("values: a row or column has no value; leave it out.")

    mean = float(_observed_mean(values, tuple(axes)))
    parts = np.array([of_sample.var(ddof=1) / len(of_sample) for of_sample in means])
    if not parts.sum():
        return mean, mean, float(mean == 0)

    freedoms = np.array([len(of_sample) - 1.0 for of_sample in means])
    freedom_of_all = parts.sum() ** 2 / (parts**2 / freedoms).sum()
    errors = np.sqrt([*parts, parts.sum()])
    freedoms = np.array([*freedoms, freedom_of_all])[errors > 0]
    errors = errors[errors > 0]
    half = float((special.stdtrit(freedoms, 0.975) * errors).max())
    p = float((2 * special.stdtr(freedoms, -abs(mean) / errors)).max())
    return mean - half, mean + half, p


def _observed_mean(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return means over the axes without missing values, missing where there is no value."""
    observed = ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # 0 / 0
        return np.where(observed, values, 0.0).sum(axis=axes) / observed.sum(axis=axes)


def interval_over_ways(values: np.ndarray, ways: np.ndarray) -> dict[str, float]:
    """Return the widest of several intervals, each over the levels of one condition.

    Ways of asking that share a level of a condition are not independent. So an interval is computed
    for each condition, with its levels, averaged over the other conditions, as ways.

    Parameters
    ----------
    values : ndarray, shape (R, W, I)
        As in :func:`crossed_interval`: respondents, combinations of levels, items.
    ways : ndarray of int, shape (W, C)
        Level of each condition in each combination. Conditions with one level are not samples.

    Returns
    -------
    dict
        ``difference``, the mean; ``low``, ``high`` and ``ways`` (number of levels) of the widest
        interval; ``p``, the largest p value of any condition.

    Raises
    ------
    ParameterError
        As in :func:`crossed_interval`.

    Examples
    --------
    >>> values = np.array([[[1.0, 2, 3], [2, 3, 4], [3, 4, 5]]])
    >>> round(interval_over_ways(values, np.array([[0], [1], [2]]))["low"], 2)
    0.52
    """
    values = as_numbers("values", values, axes=3)
    ways = np.asarray(ways)
    if ways.size and len(ways) != values.shape[1]:
        raise ParameterError("ways: give the levels of each way, a row for each.")

    conditions = [levels for levels in ways.T if len(np.unique(levels)) > 1]
    rows = []
    for levels in conditions or [np.zeros(values.shape[1])]:
        by_level = [_observed_mean(values[:, levels == level], (1,)) for level in np.unique(levels)]
        low, high, p = crossed_interval(np.stack(by_level, axis=1))
        row = {"difference": (low + high) / 2, "low": low, "high": high, "p": p}
        rows.append(row | {"ways": len(by_level)})

    widest = max(rows, key=lambda row: row["high"] - row["low"])
    return widest | {"p": max(row["p"] for row in rows)}
