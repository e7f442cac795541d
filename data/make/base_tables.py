"""The planned statistics of ``data/plans/six-bases.yml``, and the files of ``data/bases/``."""

from __future__ import annotations

import numpy as np
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects


def combined(values: np.ndarray, variances: np.ndarray) -> dict[str, float]:
    """Return the random-effects mean of bases' effects with Hartung and Knapp's 95 % interval.

    Returns
    -------
    dict
        ``value, low, high, p``; ``between``, the standard deviation of effects over bases, and
        ``i2``, the share of their variance that is not within bases.

    References
    ----------
    Paule and Mandel (1982) for the variance between bases; Hartung and Knapp (2001).

    Examples
    --------
    >>> found = combined(np.array([0.1, 0.2, 0.3]), np.array([0.01, 0.01, 0.01]))
    >>> round(found["value"], 3), found["between"]
    (0.2, 0.0)
    """
    found = combine_effects(values, variances, method_re="iterated", use_t=True)
    freedom = len(values) - 1
    mean = float(found.mean_effect_re)
    error = float(found.sd_eff_w_re_hksj)
    half = stats.t.ppf(0.975, freedom) * error
    p = 2 * stats.t.sf(abs(mean) / error, freedom)
    between = float(np.sqrt(max(found.tau2, 0)))
    return {"value": mean, "low": mean - half, "high": mean + half, "p": float(p),
            "between": between, "i2": float(max(found.i2, 0))}  # fmt: skip
