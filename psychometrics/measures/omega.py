"""Omega of ordered answers: the shares of a sum's variance due to one factor and to several."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..exceptions import ParameterError
from .items import _as_numbers
from .ordinal import polychoric

_FACTORS = 3
"""The number of group factors: two do not identify their loadings on the general factor."""
_STEPS = 2000
"""The number of steps in the search for communalities."""
_CLOSE = 1e-9


def omega_hierarchical(items: pd.DataFrame) -> pd.Series:
    r"""Return the shares of a sum's variance due to a general factor and to all factors.

    Three factors :math:`\Lambda` of the items' polychoric correlations
    (:func:`psychometrics.measures.ordinal.polychoric`) are rotated to simple structure (quartimin),
    and a general factor is fitted to the factors' correlations :math:`\Phi`: :math:`\Phi \approx
    \gamma\gamma^\top` off the diagonal. Each item then has the loading :math:`g = \Lambda \gamma`
    on the general factor, and with the items' uniquenesses :math:`u^2`

    .. math:: \omega_h = \frac{(\sum_i g_i)^2}{\sum_{ij} r_{ij}}, \qquad
              \omega_t = 1 - \frac{\sum_i u_i^2}{\sum_{ij} r_{ij}}

    Parameters
    ----------
    items : DataFrame, shape (R, I)
        Keyed item scores. Respondents with a gap are left out.

    Returns
    -------
    Series
        ``omega_total, omega_hierarchical, n``. The coefficients are missing if an item does not
        vary, or if the factors do not correlate positively.

    Raises
    ------
    ParameterError
        There are fewer than six items, two for each factor.

    References
    ----------
    Schmid and Leiman (1957) for the transformation; Zinbarg, Revelle, Yovel and Li (2005) for the
    coefficient. The results were compared with ``psych::omega`` in R.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> general, groups = rng.normal(size=(900, 1)), np.repeat(rng.normal(size=(900, 3)), 3, axis=1)
    >>> tendency = general + 0.8 * groups + rng.normal(size=(900, 9))
    >>> omegas = omega_hierarchical(pd.DataFrame(np.digitize(tendency, [-1, 0, 1])))
    >>> omegas[["omega_total", "omega_hierarchical"]].round(1).tolist()
    [0.9, 0.7]
    """
    items = _as_numbers(items)
    if items.shape[1] < 2 * _FACTORS:
        raise ParameterError(f"items: omega needs {2 * _FACTORS} items, got {items.shape[1]}.")

    complete = items.dropna()
    total, hierarchical = _omegas_of_factors(polychoric(complete).to_numpy(dtype=float))
    row = {"omega_total": total, "omega_hierarchical": hierarchical, "n": len(complete)}
    return pd.Series(row)


def _omegas_of_factors(matrix: np.ndarray) -> tuple[float, float]:
    """Return omega total and hierarchical of correlations; they are missing if one is missing."""
    if not np.isfinite(matrix).all():
        return np.nan, np.nan

    from statsmodels.multivariate.factor_rotation import rotate_factors  # slow to load

    loadings = _principal_axes(matrix, _FACTORS)
    simple, rotation = rotate_factors(loadings, "quartimin")
    signs = np.where(simple.sum(axis=0) < 0, -1.0, 1.0)
    between = (rotation.T @ rotation) * np.outer(signs, signs)
    general = (simple * signs) @ _principal_axes(between, 1).ravel()

    variance = matrix.sum()
    uniqueness = (1 - (loadings**2).sum(axis=1)).sum()
    return 1 - uniqueness / variance, general.sum() ** 2 / variance


def _principal_axes(matrix: np.ndarray, factors: int) -> np.ndarray:
    """Return the loadings that best reproduce the correlations, by iterated communalities."""
    communalities = np.abs(matrix - np.eye(len(matrix))).max(axis=0)
    loadings = np.zeros((len(matrix), factors))
    for _ in range(_STEPS):
        values, vectors = np.linalg.eigh(matrix - np.diag(1 - communalities))
        loadings = vectors[:, -factors:] * np.sqrt(values[-factors:].clip(min=0))
        previous = communalities
        communalities = (loadings**2).sum(axis=1).clip(max=1)
        if np.abs(communalities - previous).max() < _CLOSE:
            break

    return loadings * np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)
