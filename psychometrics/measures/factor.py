"""Loadings of items on one common factor, for many samples at once."""

from __future__ import annotations

import numpy as np

from ..checks import as_numbers
from ..exceptions import ParameterError

# Smallest eigenvalue of correlations that allow estimating a factor.
_SINGULAR = 1e-8
# Convergence tolerance: largest change of a loading in the last round.
_TOLERANCE = 1e-10
# Maximum number of rounds; loadings that still change after them are missing.
_MOST_ROUNDS = 20_000


def one_factor(covariances: np.ndarray) -> np.ndarray:
    r"""Return the loadings of items on one factor of their correlations, by least squares.

    The loadings minimise the squared residuals of the correlations, with no loading above 1:

    .. math:: \min_{|\lambda_i| \le 1} \sum_{i < j} (r_{ij} - \lambda_i \lambda_j)^2

    With all other loadings fixed, the best :math:`\lambda_i` is :math:`\sum_{j \ne i} r_{ij}
    \lambda_j / \sum_{j \ne i} \lambda_j^2`, or the nearer limit. The loadings are updated in turn
    until no loading changes by more than 1e-10. With weak correlations there are several minima:
    started from the first principal component, the search ends in a poorer one in up to 8 % of
    samples of 24 respondents. So the estimation starts once from each item, as if it were the
    factor, and keeps the best result.

    Parameters
    ----------
    covariances : ndarray, shape (..., I, I)

    Returns
    -------
    ndarray, shape (..., I)
        Standardised loadings with a nonnegative sum. A Heywood case, a correlation matrix whose
        best unbounded loading is above 1, has a loading of 1 or -1. Loadings are missing if there
        are only two items; if the correlations are singular (an eigenvalue below 1e-8), as in
        samples of no more respondents than items; or if they still change after 20,000 rounds.

    References
    ----------
    Harman and Jones (1966) for the criterion (*minres*; *unweighted least squares* elsewhere);
    Harman and Fukuda (1966) for the limit. The results were compared with
    ``psych::fa(fm="minres")`` in R, which instead keeps the unique variance of each item at 0.005
    or more.

    Examples
    --------
    >>> loadings = np.array([0.9, 0.7, 0.5, 0.3])
    >>> correlations = np.outer(loadings, loadings)
    >>> np.fill_diagonal(correlations, 1)
    >>> one_factor(correlations).round(6)
    array([0.9, 0.7, 0.5, 0.3])
    """
    covariances = _square(covariances)
    *shape, size, _ = covariances.shape
    matrices = covariances.reshape(-1, size, size)
    loadings = np.full((len(matrices), size), np.nan)

    correlations = as_correlations(matrices)
    sound = np.isfinite(correlations).all(axis=(1, 2)) & (size > 2)
    sound[sound] = np.linalg.eigvalsh(correlations[sound])[:, 0] >= _SINGULAR

    if sound.any():
        loadings[sound] = _least_squares(correlations[sound])

    side = np.where(loadings.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    return (side * loadings).reshape(*shape, size)


def _square(covariances: np.ndarray) -> np.ndarray:
    """Return covariances as numbers; refuse arrays that are not square."""
    covariances = as_numbers("covariances", covariances)
    if covariances.ndim < 2 or covariances.shape[-2] != covariances.shape[-1]:
        raise ParameterError(f"covariances must be square, got the shape {covariances.shape}.")
    return covariances


def as_correlations(covariances: np.ndarray) -> np.ndarray:
    """Convert covariances to correlations, missing if an item does not vary."""
    variances = np.diagonal(covariances, axis1=-2, axis2=-1)
    deviations = np.sqrt(np.where(variances > 0, variances, np.nan))
    return covariances / deviations[..., :, None] / deviations[..., None, :]


def _least_squares(correlations: np.ndarray) -> np.ndarray:
    """Return least-squares loadings on one factor, as in :func:`one_factor`, shape (draws, I)."""
    draws, size, _ = correlations.shape
    off_diagonal = correlations * (1 - np.eye(size))

    # one start for each item: its correlations, as if it were the factor
    rows = np.repeat(np.arange(draws), size)
    loadings = correlations.reshape(-1, size).copy()
    moving = np.arange(len(loadings))

    for _ in range(_MOST_ROUNDS):
        before = loadings[moving]
        after = before.copy()
        others = off_diagonal[rows[moving]]
        for item in range(size):  # the best loading of an item, given those of all others
            after[:, item] = 0.0
            squares = (after**2).sum(axis=1)
            products = (others[:, item] * after).sum(axis=1)
            ratio = np.divide(products, squares, out=np.zeros_like(products), where=squares > 1e-12)
            after[:, item] = np.clip(ratio, -1, 1)

        loadings[moving] = after
        moving = moving[np.abs(after - before).max(axis=1) > _TOLERANCE]
        if not len(moving):
            break

    products = loadings[:, :, None] * loadings[:, None, :] * (1 - np.eye(size))
    misfits = ((off_diagonal[rows] - products) ** 2).sum(axis=(1, 2)).reshape(draws, size)
    best = np.arange(draws) * size + misfits.argmin(axis=1)
    unsettled = np.isin(best, moving)
    return np.where(unsettled[:, None], np.nan, loadings[best])
