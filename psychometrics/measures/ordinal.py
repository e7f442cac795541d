"""Reliability of ordered answers, from correlations of assumed continuous tendencies."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from scipy import special
from scipy.optimize import minimize_scalar

from ..exceptions import ParameterError
from .items import _as_numbers

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_LARGEST = 0.999
"""The largest correlation in the search, beyond which the likelihood is flat."""
_FEWEST = 1e-12
"""The floor for the probability of a cell, whose logarithm is taken."""


def polychoric(items: pd.DataFrame) -> pd.DataFrame:
    r"""Return the polychoric correlations of items with ordered options.

    The model assumes a normal tendency behind each answer, and thresholds :math:`\tau` that divide
    it into options. The shares of the options determine the thresholds. The estimated correlation
    of two tendencies maximises the likelihood of the two items' cross-table, with counts
    :math:`n_{ab}`:

    .. math:: \hat\rho = \arg\max_\rho \sum_{ab} n_{ab} \ln \pi_{ab}(\rho), \qquad
              \pi_{ab} = \Phi_2(\tau_a, \tau_b) - \Phi_2(\tau_{a-1}, \tau_b)
              - \Phi_2(\tau_a, \tau_{b-1}) + \Phi_2(\tau_{a-1}, \tau_{b-1})

    with the bivariate normal distribution :math:`\Phi_2` of correlation :math:`\rho`.

    Parameters
    ----------
    items : DataFrame, shape (R, I)
        Answers; a respondent with a gap is left out of the affected pairs.

    Returns
    -------
    DataFrame, shape (I, I)
        Correlations, at most 0.999 in magnitude, and missing for items that do not vary.

    Raises
    ------
    ParameterError
        A value is not a finite number, or there are fewer than three respondents.

    References
    ----------
    Olsson (1979), for the two-step estimate. The results were compared with ``psych::polychoric``
    in R.

    Examples
    --------
    >>> table = pd.DataFrame({"a": [0, 0, 1, 1] * 9, "b": [0, 0, 1, 1] * 6 + [0, 1, 0, 1] * 3})
    >>> polychoric(table).round(2).loc["a", "b"]
    np.float64(0.87)
    """
    items = _as_numbers(items)
    if len(items) < 3:
        raise ParameterError("items: a correlation needs at least three respondents.")

    size = items.shape[1]
    matrix = np.eye(size)
    for i, j in itertools.combinations(range(size), 2):
        pair = items.iloc[:, [j, i]].dropna()
        matrix[i, j] = matrix[j, i] = _correlation(pd.crosstab(pair.iloc[:, 0], pair.iloc[:, 1]))

    return pd.DataFrame(matrix, items.columns, items.columns)


def _correlation(counts: pd.DataFrame) -> float:
    """Return the maximum-likelihood correlation behind a table of two items' answers."""
    if min(counts.shape) < 2:
        return np.nan

    table = counts.to_numpy(dtype=float)
    rows, columns = (_thresholds(table.sum(axis=axis)) for axis in (1, 0))

    def misfit(rho: float) -> float:
        below = _bivariate_normal(rows[:, None], columns[None, :], rho)
        cells = np.diff(np.diff(below, axis=0), axis=1)
        return -float((table * np.log(np.maximum(cells, _FEWEST))).sum())

    ends = (-_LARGEST, _LARGEST)
    fitted = minimize_scalar(misfit, bounds=ends, method="bounded", options={"xatol": 1e-7})
    return float(fitted.x)


def _thresholds(counts: np.ndarray) -> np.ndarray:
    """Return the thresholds between options, with finite outer ends far out in the tails."""
    inner = special.ndtri(np.cumsum(counts)[:-1] / counts.sum())
    return np.concatenate([[-9.0], inner, [9.0]])


def _bivariate_normal(x: np.ndarray, y: np.ndarray, rho: float) -> np.ndarray:
    """Return the probability that two standard normal variables lie below x and y."""
    angles = np.arcsin(rho) * (_NODES + 1) / 2
    sines = np.sin(angles)
    x, y = x[..., None], y[..., None]
    exponents = -(x**2 + y**2 - 2 * x * y * sines) / (2 * np.cos(angles) ** 2)
    integral = (np.exp(exponents) * _WEIGHTS).sum(axis=-1) * np.arcsin(rho) / 2
    return special.ndtr(x[..., 0]) * special.ndtr(y[..., 0]) + integral / (2 * np.pi)
