"""Compare two groups that answered the same items: factors, items and profiles.

Each function takes the answers of a reference group, such as human respondents, and of a second
group, such as the runs of a model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..checks import check_columns, check_names, check_numbers
from ..exceptions import ParameterError
from .factor import as_correlations

_FEWEST_MATCHED = 10
"""Fewest members of the reference group at a score for a comparison at that score."""


def congruence(
    reference: pd.DataFrame,
    other: pd.DataFrame,
    factors: int = 5,
    draws: int = 500,
    seed: int = 0,
    order: Sequence[str] = (),
) -> pd.Series:
    r"""Compare the factors of two tables of answers by Tucker's coefficient, with its chance level.

    The loadings are on the first principal components of each table's item correlations. The
    reference's loadings are rotated by varimax; the other table's loadings are then rotated towards
    them by orthogonal Procrustes rotation:

    .. math:: \phi_f = \frac{\sum_i a_{if} b_{if}}{\sqrt{\sum_i a_{if}^2 \sum_i b_{if}^2}}

    Rotation finds agreement even in noise, so the null permutes the other table's items at random
    and rotates the loadings again.

    Parameters
    ----------
    reference, other : DataFrame, shape (R, I)
        Columns are matched by label. Rows with a gap, and items that are constant in either table,
        are left out.
    factors : int
        Number of factors in both tables.
    draws : int
        Number of permutations of the items, and of bootstrap samples of the other table's rows (at
        most 200).
    seed : int
        Seed of these draws.
    order : sequence of str, optional
        Order in which the items were asked. If it is given, the null does not permute the items but
        shifts them along this order by 1, 2, … places, with the last items moved to the front, so
        that neighbours stay neighbours.

    Returns
    -------
    Series
        ``congruence`` (mean of the factors) with its 95 % interval ``low, high``; ``chance,
        chance_high`` (median and 95th percentile of the
        permutations), ``p``; ``n, items``. The bootstrap is parametric (Wishart), over the other
        table's rows; its percentiles are corrected for bias, because rotation adapts to the noise
        of resampling. The interval is missing if there are no more rows than items.

    Raises
    ------
    ParameterError
        There are fewer than three rows, or fewer items than factors plus two; the order lacks an
        item; or a value is not a finite number.

    References
    ----------
    Tucker (1951); Lorenzo-Seva and ten Berge (2006), who regard factors as the same from 0.95 and
    as similar from 0.85 to 0.94; McCrae et al. (1996) for the rotation and its chance level.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> traits = np.repeat(rng.normal(size=(2, 300, 2)), 4, axis=2)
    >>> a, b = (pd.DataFrame(t + rng.normal(size=(300, 8))) for t in traits)
    >>> congruence(a, b, factors=2)[["congruence", "chance"]].round(2).tolist()
    [0.99, 0.52]
    """
    check_numbers(factors=factors, draws=draws, seed=seed)
    check_names(order=order)

    # Both are slow to load.
    from scipy.stats import wishart
    from statsmodels.multivariate.factor_rotation import rotate_factors

    answers, other_answers = _keep_varying_items(reference, other, factors)
    items = list(answers)
    correlations = np.corrcoef(answers.to_numpy(dtype=float), rowvar=False)
    other_correlations = np.corrcoef(other_answers.to_numpy(dtype=float), rowvar=False)
    target = rotate_factors(_loadings(correlations[None], factors)[0], "varimax")[0]
    loadings = _loadings(other_correlations[None], factors)
    phi = _rotated_congruences(loadings, target)[0].mean()

    rng = np.random.default_rng(seed)
    exchanges = np.array([rng.permutation(len(items)) for _ in range(draws)])
    if len(order):
        places = [items.index(item) for item in order if item in items]
        if len(places) != len(items) or len(set(places)) != len(items):
            raise ParameterError("order must list every item of both tables once; correct it.")

        exchanges = np.tile(np.arange(len(items)), (len(items) - 1, 1))
        for push, row in enumerate(exchanges, start=1):
            row[places] = np.roll(places, push)

    chance = _rotated_congruences(loadings[0][exchanges], target).mean(axis=1)
    low = high = np.nan
    if len(other_answers) > len(items) and np.linalg.eigvalsh(other_correlations)[0] > 1e-10:
        freedom = len(other_answers) - 1
        samples = wishart.rvs(freedom, other_correlations, min(draws, 200), random_state=rng)
        sampled = _loadings(as_correlations(samples), factors)
        repeats = _rotated_congruences(sampled, target).mean(axis=1)
        ends = np.quantile(repeats, [0.025, 0.975]) + phi - np.median(repeats)
        low, high = ends.clip(-1, 1)

    at_least = chance >= phi - 1e-6  # exchanges of like items tie but for rounding
    summary = {"congruence": phi, "low": low, "high": high}
    summary |= {"chance": np.median(chance), "chance_high": np.quantile(chance, 0.95)}
    summary |= {"p": (1 + at_least.sum()) / (1 + len(chance)), "n": len(other_answers)}
    return pd.Series(summary | {"items": len(items)})


def _keep_varying_items(
    reference: pd.DataFrame, other: pd.DataFrame, factors: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both tables' complete rows, with only the items that vary in both tables."""
    check_columns(reference, ())
    check_columns(other, ())
    shared = [column for column in reference if column in set(other)]
    check_columns(reference, (), shared)
    check_columns(other, (), shared)
    complete = reference[shared].dropna()
    other_complete = other[shared].dropna()
    if min(len(complete), len(other_complete)) < 3:
        raise ParameterError("Both tables need at least three complete rows; add rows.")

    items = list(complete.columns[(complete.std() > 1e-9) & (other_complete.std() > 1e-9)])
    if len(items) < factors + 2:
        raise ParameterError(f"{len(items)} items vary, too few for {factors} factors; add items.")

    return complete[items], other_complete[items]


def standardised_dif(reference: pd.DataFrame, focal: pd.DataFrame) -> pd.DataFrame:
    r"""Return each item's differential functioning: its mean difference at equal scale scores.

    With the focal group's numbers :math:`n_s` at each scale score as weights,

    .. math:: SMD = \sum_s \frac{n_s}{n} (\bar x_{\text{focal}, s} - \bar x_{\text{reference}, s})

    Parameters
    ----------
    reference, focal : DataFrame
        ``item_id, score`` (the sum of its scale), ``n, sum, squares`` (number, sum and sum of
        squares) of the item's keyed answers. Scores with fewer than ten members of the reference
        group are left out.

    Returns
    -------
    DataFrame
        Indexed by item: ``smd`` with its 95 % interval ``low, high``, ``effect`` (``smd`` divided
        by the item's standard deviation in the reference group), ``dif``: ``A`` (negligible: the
        interval includes 0, or the effect is at most 0.17), ``B``, ``C`` (above 0.25); and ``n``,
        the number of members of the focal group at the compared scores.
        The statistics are missing if there are no such members; the interval and ``dif`` are also
        missing for a single member.

    Raises
    ------
    ParameterError
        A column is missing.

    References
    ----------
    Dorans and Schmitt (1991); Zwick, Thayer and Mazzeo (1997) for the classes.

    Examples
    --------
    >>> people = pd.DataFrame({"item_id": "a", "score": [1, 2], "n": 20, "sum": [5, 12],
    ...                        "squares": [5, 14]})
    >>> focal = pd.DataFrame({"item_id": "a", "score": [2], "n": 10, "sum": [20], "squares": [40]})
    >>> table = standardised_dif(people, focal)
    >>> float(table.loc["a", "smd"].round(2)), table.loc["a", "dif"]
    (1.4, 'C')
    """
    columns = ["n", "sum", "squares"]

    for table in (reference, focal):
        check_columns(table, ["item_id"], ["score", *columns])

    totals = reference.groupby("item_id")[columns].sum()
    spread = totals["squares"] / totals["n"] - (totals["sum"] / totals["n"]) ** 2
    matched = focal.merge(reference[reference["n"] >= _FEWEST_MATCHED], on=["item_id", "score"])

    for side in ("_x", "_y"):
        n = matched[f"n{side}"]
        of_side = matched[f"sum{side}"] / matched[f"n{side}"]
        variance = (matched[f"squares{side}"] / n - of_side**2).clip(lower=0)
        matched = matched.assign(**{f"mean{side}": of_side, f"error{side}": variance / n})

    weight = matched["n_x"] / matched.groupby("item_id")["n_x"].transform("sum")
    matched["smd"] = weight * (matched["mean_x"] - matched["mean_y"])
    matched["error"] = weight**2 * (matched["error_x"] + matched["error_y"])
    items = focal["item_id"].unique()
    sums = matched.groupby("item_id")[["smd", "error", "n_x"]].sum().reindex(items)
    spread = np.sqrt(spread.reindex(items).where(spread > 0))
    smd = sums["smd"].where(spread.notna())
    half = (1.959964 * np.sqrt(sums["error"])).where(sums["n_x"] > 1)
    effect = smd / spread
    table = pd.DataFrame({"smd": smd, "low": smd - half, "high": smd + half, "effect": effect})
    has_zero = (table["low"] <= 0) & (table["high"] >= 0)
    classes = [
        effect.isna() | half.isna(), has_zero | (effect.abs() <= 0.17), effect.abs() <= 0.25
    ]  # fmt: skip
    table["dif"] = np.select(classes, np.array([None, "A", "B"]), "C")
    table["n"] = sums["n_x"].fillna(0).astype(int)

    return table.rename_axis("item_id")


def _loadings(matrices: np.ndarray, factors: int) -> np.ndarray:
    """Return loadings on the first principal components of correlations, shape (D, I, F)."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors[:, :, -factors:] * np.sqrt(values[:, None, -factors:].clip(min=0))


def _rotated_congruences(loadings: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return each factor's congruence with its target after rotation, shape (D, F)."""
    u, _, v = np.linalg.svd(np.swapaxes(loadings, 1, 2) @ target)
    rotated = loadings @ u @ v
    norms = np.sqrt((rotated**2).sum(axis=1) * (target**2).sum(axis=0))
    return (rotated * target).sum(axis=1) / norms.clip(min=1e-12)
