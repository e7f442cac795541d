"""How far the items of a scale agree: alpha, omega, item-total correlations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .exceptions import ParameterError


def alpha(items: pd.DataFrame, level: float = 0.95) -> pd.Series:
    r"""Cronbach's alpha of a respondents by items matrix, with Feldt's interval.

    .. math:: \alpha = \frac{I}{I-1}\left(1 - \frac{\sum_i \sigma_i^2}{\sigma_X^2}\right)

    Parameters
    ----------
    items : DataFrame, shape (R, I)
        Keyed item scores, as :func:`psychometrics.scoring.keyed_items` gives them.
    level : float
        Coverage of the interval.

    Returns
    -------
    Series
        ``alpha, low, high``.

    Raises
    ------
    ParameterError
        There are fewer than two items or three respondents.

    References
    ----------
    Cronbach (1951); Feldt, Woodruff and Salih (1987) for the interval; computed by pingouin.

    Examples
    --------
    >>> alpha(pd.DataFrame({"a": [1, 2, 3, 4], "b": [2, 2, 4, 4]})).round(3)["alpha"]
    np.float64(0.941)
    """
    import pingouin

    _enough(items)
    value, (low, high) = pingouin.cronbach_alpha(items, ci=level)
    return pd.Series({"alpha": value, "low": low, "high": high})


def omega(items: pd.DataFrame) -> float:
    r"""McDonald's omega (total) from a one-factor model of the items' correlations.

    .. math:: \omega = \frac{(\sum_i \lambda_i)^2}{(\sum_i \lambda_i)^2 + \sum_i (1-\lambda_i^2)}

    Parameters
    ----------
    items : DataFrame, shape (R, I)
        Keyed item scores.

    Returns
    -------
    float
        Not a number where an item has no variance.

    Raises
    ------
    ParameterError
        There are fewer than three items, for which one factor is not determined, or fewer than
        three respondents.

    References
    ----------
    McDonald (1999), chapter 6. Loadings by iterated principal axes (statsmodels).
    """
    from statsmodels.multivariate.factor import Factor

    _enough(items, least_items=3)
    correlations = np.corrcoef(items.to_numpy(dtype=float), rowvar=False)
    if not np.isfinite(correlations).all():
        return float("nan")
    loadings = Factor(corr=correlations, n_factor=1, method="pa").fit(maxiter=500).loadings[:, 0]
    common = loadings.sum() ** 2
    return float(common / (common + (1 - loadings**2).clip(min=0).sum()))


def item_statistics(items: pd.DataFrame) -> pd.DataFrame:
    """Mean, spread, corrected item-total correlation and alpha if dropped, per item.

    Parameters
    ----------
    items : DataFrame, shape (R, I)
        Keyed item scores.

    Returns
    -------
    DataFrame
        Indexed by item: ``mean, sd, item_total`` (Pearson's correlation with the sum of the other
        items)``, alpha_if_dropped``.

    References
    ----------
    Nunnally and Bernstein (1994), chapter 8.

    Examples
    --------
    >>> table = pd.DataFrame({"a": [1, 2, 3], "b": [1, 3, 2], "c": [1, 2, 4]})
    >>> item_statistics(table).loc["a", "mean"]
    np.float64(2.0)
    """
    _enough(items, least_items=3)
    total = items.sum(axis=1)
    rows = {
        name: {
            "mean": items[name].mean(),
            "sd": items[name].std(),
            "item_total": items[name].corr(total - items[name]),
            "alpha_if_dropped": alpha(items.drop(columns=name))["alpha"],
        }
        for name in items.columns
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("item_id")


def _enough(items: pd.DataFrame, least_items: int = 2) -> None:
    respondents, number = items.shape
    if respondents < 3 or number < least_items:
        raise ParameterError(
            f"At least 3 respondents and {least_items} items are needed, "
            f"got {respondents} and {number}."
        )
