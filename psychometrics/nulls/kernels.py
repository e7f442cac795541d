"""Derive scale statistics from the items' covariances: reliability, validity, dimensions."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from ..checks import check_numbers
from ..exceptions import ParameterError
from ..measures.factor import as_correlations
from ..measures.reliability import alphas, omegas
from ..measures.structure import block_means


def kernel_statistics(covariance: pd.DataFrame, respondents: int | None = None) -> pd.DataFrame:
    r"""Return the reliability and validity statistics implied by the items' covariances.

    .. math::

        \alpha = \frac{I}{I-1}\Bigl(1 - \frac{\mathrm{tr} K}{\mathbf 1^\top K \mathbf 1}\Bigr),
        \qquad
        r_{ab} = \frac{\mathbf 1^\top K_{ab} \mathbf 1}
              {\sqrt{\mathbf 1^\top K_{aa} \mathbf 1 \cdot \mathbf 1^\top K_{bb} \mathbf 1}},

    Further statistics are omega and the heterotrait-monotrait ratio (HTMT), both computed from the
    correlations, and the share of the first principal component. The sample covariance of *n*
    respondents with normal scores of covariance *K* has the Wishart distribution with *n* − 1
    degrees of freedom; draws from it give the interval of a statistic of *n* untrained heads.

    Parameters
    ----------
    covariance : DataFrame, shape (I, I)
        Covariance, as :func:`psychometrics.nulls.respondents.kernel` returns it; its labels
        ``questionnaire`` and ``scale`` identify the scales.
    respondents : int, optional
        Number of respondents in each of 1,000 samples; by default there are no samples and no
        intervals.

    Returns
    -------
    DataFrame
        ``statistic`` (for each scale, alpha, omega and first component; for every two scales,
        correlation and htmt), ``scale``, ``other`` (the second scale, if any), ``value`` for *K*
        itself, and ``low, high``, the central 95 % of samples. Omega is missing for a scale of two
        items, and if correlations are singular, as in samples of no more respondents than the scale
        has items.

    Raises
    ------
    ParameterError
        A scale has a single item, there are fewer than three respondents, or an item has no
        variance.

    References
    ----------
    Cronbach (1951); McDonald (1999), equation 6.20b; Henseler, Ringle and Sarstedt (2015);
    Wishart (1928).

    Examples
    --------
    >>> from psychometrics import nulls
    >>> found = kernel_statistics(nulls.kernel("challenges"), respondents=24)
    >>> found["statistic"].tolist()
    ['alpha', 'omega', 'first component']
    """
    square = isinstance(covariance, pd.DataFrame) and covariance.index.equals(covariance.columns)
    if not square or covariance.empty or covariance.index.nlevels < 2:
        raise ParameterError("kernel_statistics needs the covariance from kernel(); pass that.")

    labels = [" ".join(dict.fromkeys(filter(None, name[:2]))) for name in covariance.index]
    sizes = pd.Series(labels).value_counts(sort=False)
    matrix = covariance.to_numpy(dtype=float)

    if (sizes < 2).any():
        raise ParameterError(f"{sizes.idxmin()} has one item; its statistics need two or more.")

    if not (np.diag(matrix) > 0).all():
        name = covariance.index[np.argmin(np.diag(matrix))][-1]
        raise ParameterError(f"Item {name} does not vary over heads: leave it out.")

    statistics = _scale_statistics(matrix[None], sizes)
    values = pd.Series({key: draws[0] for key, draws in statistics.items()}, name="value")
    table = values.rename_axis(["statistic", "scale", "other"]).reset_index()

    if respondents is None:
        return table
    check_numbers(respondents=respondents, answers=respondents * len(matrix))
    if respondents < 3:
        raise ParameterError("respondents: a sample needs at least three.")

    root = np.linalg.svd(matrix, hermitian=True)
    root = root[0] * np.sqrt(root[1])
    rng = np.random.default_rng(0)
    size = (respondents, len(matrix))
    samples = np.stack([np.cov((rng.normal(size=size) @ root.T).T) for _ in range(1000)])
    sampled = pd.DataFrame(dict(enumerate(_scale_statistics(samples, sizes).values())))
    low, high = sampled.quantile([0.025, 0.975]).to_numpy()  # missing if no sample has a value

    return table.assign(low=low, high=high)


def _scale_statistics(
    covariances: np.ndarray, sizes: pd.Series
) -> dict[tuple[str, str, str], np.ndarray]:
    """Return the scale statistics implied by item covariances, for many draws at once.

    Parameters
    ----------
    covariances : ndarray, shape (draws, I, I)
    sizes : Series
        Number of items of each scale, by its name, in the order of the covariances.

    Returns
    -------
    dict of ndarray, shape (draws,)
        By statistic, scale and other scale, as in :func:`kernel_statistics`.

    Examples
    --------
    >>> pair = np.array([[[1.0, 0.5], [0.5, 1.0]]])
    >>> round(float(_scale_statistics(pair, pd.Series({"both": 2}))["alpha", "both", ""][0]), 3)
    0.667
    """
    member = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    correlations = as_correlations(covariances)
    sums = member.T @ covariances @ member
    # a ratio is to mean correlations what a correlation is to covariances
    ratios = as_correlations(block_means(correlations, sizes.to_numpy()))

    statistics = {}
    end = 0

    for name, size in sizes.items():
        block = slice(end, end + size)
        end += size
        statistics["alpha", name, ""] = alphas(covariances[:, block, block])
        statistics["omega", name, ""] = omegas(covariances[:, block, block])
        largest = np.linalg.eigvalsh(correlations[:, block, block])[:, -1]
        statistics["first component", name, ""] = largest / size

    for i, j in itertools.combinations(range(len(sizes)), 2):
        pair = (sizes.index[i], sizes.index[j])
        statistics["correlation", *pair] = sums[:, i, j] / np.sqrt(sums[:, i, i] * sums[:, j, j])
        statistics["htmt", *pair] = ratios[:, i, j]

    return statistics
