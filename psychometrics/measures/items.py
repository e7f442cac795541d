"""Classical item analysis of a persons by items matrix: difficulty, correlations, clusters, bias.

Every function takes R respondents (rows) by I items (columns) and knows nothing of where the
answers come from. Correlations between items are ``answers.corr()``: for 0/1 answers, phi, each
over the respondents who answered both.

Gaps and constants have one rule. What is undefined is missing, and so are its p value and its
interval; what cannot be computed from answers with gaps says so in one :class:`ParameterError`.
Two tables of the same items are matched by their labels, whatever the order of the columns.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from ..asking.answers import check_choice, check_columns, check_numbers
from ..exceptions import ParameterError
from .intervals import fisher_interval, row_correlations

_EXACT_ITEMS = 18  # 2 to this power sets of medoids are tried
_MOST_TIES = 500  # partitions of equal cost that are kept for each k
_SEPARATED = 15  # log odds that only a likelihood without a maximum reaches
_ETS_LIMITS = (1.0, 1.5)  # of |delta|: below the first A, above the second C


def as_numbers(answers: pd.DataFrame) -> pd.DataFrame:
    """A table of answers as floats, gaps as NaN, or a sentence that says what is wrong with it.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Numbers, truth values, or text that holds numbers; anything that pandas calls missing is.

    Returns
    -------
    DataFrame of float, shape (R, I)

    Raises
    ------
    ParameterError
        The table is empty, names an item twice, or holds something else than finite numbers.

    Examples
    --------
    >>> as_numbers(pd.DataFrame({"a": ["1", None]}))["a"].tolist()
    [1.0, nan]
    """
    try:
        frame = pd.DataFrame(answers)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"answers must be a table: {error}.") from error
    if not frame.size:
        raise ParameterError("the matrix of answers is empty; it needs respondents and items.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ParameterError(f"the item '{twice}' is there twice; give each item its own name.")
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iufb" for dtype in frame.dtypes):
        values = frame.to_numpy(dtype=float)
    else:
        values = np.column_stack([_numeric(name, column) for name, column in frame.items()])
    frame = pd.DataFrame(values, frame.index, frame.columns)
    if (np.abs(values) > 1e100).any():  # squares would overflow
        raise ParameterError("answers must be finite; put a missing value where there is none.")
    return frame


def item_rest(answers: pd.DataFrame) -> pd.DataFrame:
    r"""Corrected item-total correlation: each item with the sum of the others.

    .. math:: r_{i(t-i)} = \mathrm{cor}\Bigl(x_i, \sum_{j \ne i} x_j\Bigr)

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores. A sum with a gap is no sum: respondents who left out an item are left out.

    Returns
    -------
    DataFrame
        Indexed by item: ``r``, missing where the item, or the sum of the others, has no variance;
        ``low, high``, its 95 % interval as in
        :func:`psychometrics.measures.intervals.fisher_interval`; ``n``, the respondents who
        answered everything.

    References
    ----------
    Laverghetta et al. (2021), section 6.

    Examples
    --------
    >>> item_rest(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]}))["r"].round(3).tolist()
    [0.577, 0.577]
    """
    answers = as_numbers(answers)
    x = answers.to_numpy()
    x = x[~np.isnan(x).any(axis=1)]
    n = len(x)
    rest = x.sum(axis=1, keepdims=True) - x
    r = row_correlations(x.T, rest.T) if n > 1 else np.full(x.shape[1], np.nan)
    low, high = fisher_interval(r, n)
    return pd.DataFrame({"r": r, "low": low, "high": high, "n": n}, index=answers.columns)


def mean_inter_item(answers: pd.DataFrame) -> float:
    """Mean of the Pearson correlations between different items, those without variance left out.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores; each correlation is over the respondents who answered both items.

    Returns
    -------
    float
        Between -1 and 1; missing if no two items have variance among those who answered both.

    References
    ----------
    Laverghetta et al. (2021), section 6.

    Examples
    --------
    >>> round(mean_inter_item(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})), 3)
    0.577
    """
    matrix = as_numbers(answers).corr().to_numpy()
    pairs = matrix[np.triu_indices_from(matrix, 1)]
    return float(np.nanmean(pairs)) if np.isfinite(pairs).any() else float("nan")


def null_p_value(value: float, null: np.ndarray) -> float:
    """Two-sided p value of a correlation in a simulated null distribution, never exactly zero.

    Parameters
    ----------
    value : float
        What was observed.
    null : ndarray, shape (draws,)
        What chance gives; draws without a value are left out.

    Returns
    -------
    float
        ``(1 + number at least as far from zero) / (1 + draws)``; missing where the value is
        missing, or no draw has one.

    Examples
    --------
    >>> null_p_value(0.5, np.array([-0.6, 0.1, 0.2]))
    0.5
    """
    null = np.asarray(null, dtype=float)
    null = null[~np.isnan(null)]
    if np.isnan(value) or not len(null):
        return float("nan")
    return float((1 + (np.abs(null) >= abs(value) - 1e-12).sum()) / (1 + len(null)))


def cluster_items(
    answers: pd.DataFrame,
    restarts: int = 100,
    seed: int = 0,
    method: str = "exact",
) -> pd.DataFrame:
    """k-medoids of the items on 1 - r for every k.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores; each correlation is over the respondents who answered both items.
    restarts : int
        Random starts for each k of ``alternating``.
    seed : int
        Seed of the starts.
    method : {"exact", "alternating"}
        ``exact`` tries all sets of medoids, of 18 items or fewer, and gives for each k *all*
        partitions of least cost, of which there are many: an item as far from two medoids may go
        with either. Of more than 500 for one k, 500 are drawn. An item that everyone or no one
        solved has no correlation; it is at distance 1 from all others, as if r were 0.
        ``alternating`` is the paper's script: turns of assigning items and choosing medoids, from
        random starts, in which such an item is at distance 1 *from itself*, too.

    Returns
    -------
    DataFrame
        One row per distinct partition: ``k, cost`` (sum of distances to the medoids),
        ``silhouette``, ``labels`` (tuple, in order of the items), ``items`` (tuple), ``hits``
        (starts, or sets of medoids and ways to share out the items, that ended there), best
        silhouette first.

    Raises
    ------
    ParameterError
        Fewer than four items, fewer than two with variance, or too many for ``exact``.

    References
    ----------
    Laverghetta et al. (2021), section 5.1 ("IIC-based clustering"); Rousseeuw (1987).

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 0, 0], "b": [1, 1, 0, 0], "c": [0, 1, 0, 1],
    ...                   "d": [0, 1, 0, 1], "e": [1, 0, 0, 1]})
    >>> cluster_items(x).iloc[0]["labels"]
    (0, 0, 1, 1, 2)
    """
    check_choice(("exact", "alternating"), method=method)
    check_numbers(restarts=restarts, seed=seed)
    answers = as_numbers(answers)
    matrix, rng = _distances(answers, method == "alternating"), np.random.default_rng(seed)
    if len(matrix) < 4:
        raise ParameterError(f"clusters need 4 items or more, here {len(matrix)}.")
    if (answers.nunique() > 1).sum() < 2:
        raise ParameterError("clusters need 2 items with variance or more.")
    if method == "exact" and len(matrix) > _EXACT_ITEMS:
        raise ParameterError(f"method='exact' takes {_EXACT_ITEMS} items; take 'alternating'.")
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for k in range(2, len(matrix) - 1):
        if method == "exact":
            ends = _all_cheapest(matrix, k, rng)
        else:
            starts = (rng.choice(len(matrix), k, replace=False) for _ in range(restarts))
            ends = (_alternating(matrix, start) for start in starts)
        for labels, cost in ends:
            labels = _relabelled(labels)
            least, hits = found.get(labels, (np.inf, 0))
            found[labels] = (min(least, cost), hits + 1)
    rows = [
        (max(labels) + 1, cost, _silhouette(matrix, labels), labels, tuple(answers), hits)
        for labels, (cost, hits) in found.items()
        if 1 < max(labels) + 1 < len(labels)
    ]
    table = pd.DataFrame(rows, columns=["k", "cost", "silhouette", "labels", "items", "hits"])
    # Ties are ties, whatever the last bit.
    order = table.assign(silhouette=-table["silhouette"].round(9), cost=table["cost"].round(9))
    order = order.sort_values(["silhouette", "k", "cost", "labels"]).index
    return table.loc[order].reset_index(drop=True)


def _block_orders(
    blocks: pd.Series, draws: int, seed: int = 0, labels: pd.Series | None = None
) -> np.ndarray:
    """Random orders of items in which those of one block, such as twins, stay together.

    Blocks of equal size change places as wholes, and items within a block with each other. With
    labels, items only take the places of items of the same label, and blocks those of blocks with
    the same labels.
    """
    labels = np.zeros(len(blocks)) if labels is None else np.asarray(labels)
    codes, named = pd.factorize(np.asarray(blocks))[0], pd.factorize(labels, sort=True)[0]
    alike: dict[tuple[int, ...], list[np.ndarray]] = {}
    for block in range(codes.max(initial=-1) + 1):
        places = np.flatnonzero(codes == block)
        places = places[np.argsort(named[places], kind="stable")]
        alike.setdefault(tuple(named[places]), []).append(places)
    rng, orders = np.random.default_rng(seed), np.tile(np.arange(len(codes)), (draws, 1))
    for kind, members in alike.items():
        members = np.array(members)
        dealt = rng.permuted(np.tile(np.arange(len(members)), (draws, 1)), axis=1)
        new = members[dealt]  # draws, blocks, items of a block
        for label in {name for name in kind if kind.count(name) > 1}:
            same = np.flatnonzero(np.array(kind) == label)
            new[..., same] = rng.permuted(new[..., same], axis=-1)
        orders[:, members.ravel()] = new.reshape(draws, -1)
    return orders


def blocked_correlation(
    first: pd.Series,
    second: pd.Series,
    blocks: pd.Series,
    draws: int = 2000,
    seed: int = 0,
    ranks: bool = False,
) -> pd.Series:
    r"""Return the correlation of two columns over items of which some belong together.

    The interval is :math:`\tanh(\mathrm{artanh}\, r \pm 1.96\, s)` with the greater of two standard
    errors s: that of drawing whole blocks again, and that of as many single items (see
    :func:`psychometrics.measures.intervals.fisher_interval`). The null distribution puts whole
    blocks to the wrong blocks.

    Parameters
    ----------
    first, second : Series, shape (I,)
        A value for each item, matched by label, without gaps.
    blocks : Series
        Which block each item is of, by label; it may name more items.
    draws : int
        Bootstrap samples of blocks, and random orders of them.
    seed : int
        Seed of both.
    ranks : bool
        Whether to correlate the ranks (Spearman).

    Returns
    -------
    Series
        ``r, low, high``, two-sided ``p``, ``null, null_low, null_high`` (median and central 95 %)
        and ``n`` items; all but ``n`` are missing with fewer than four items or without variance.

    References
    ----------
    Bonett and Wright (2000) for the ranks' variance.

    Examples
    --------
    >>> x = pd.Series([1.0, 2, 3, 4, 5, 6])
    >>> found = blocked_correlation(x, x**2, pd.Series([0, 0, 1, 1, 2, 2]), ranks=True)
    >>> float(found["r"]), int(found["n"])
    (1.0, 6)
    """
    second, blocks = second[first.index], blocks[first.index]
    if ranks:
        first, second = first.rank(), second.rank()
    a, b = first.to_numpy(float), second.to_numpy(float)
    names = ["r", "low", "high", "p", "null", "null_low", "null_high"]
    found = pd.Series(np.nan, index=[*names, "n"])
    found["n"] = n = len(a)
    if n < 4 or min(np.ptp(a), np.ptp(b)) < 1e-12:
        return found
    r = found["r"] = np.corrcoef(a, b)[0, 1]
    # How often each block was drawn is the weight of its items.
    codes, units = pd.factorize(blocks)
    rng, equal = np.random.default_rng(seed), np.full(len(units), 1 / len(units))
    again = _weighted_correlations(a, b, rng.multinomial(len(units), equal, draws)[:, codes])
    z = np.arctanh(again[np.abs(again) < 1 - 1e-9])  # undefined where one item was drawn alone
    if len(z) > 1 and abs(r) < 1 - 1e-12:
        single = np.sqrt((1 + ranks * r**2 / 2) / (n - 3))
        reach = 1.959964 * max(z.std(ddof=1), single)
        found["low"], found["high"] = np.tanh(np.arctanh(r) + np.array([-reach, reach]))
    null = _weighted_correlations(a, b[_block_orders(blocks, draws, seed)], np.ones((draws, n)))
    found[names[4:]] = np.nanquantile(null, [0.5, 0.025, 0.975])
    found["p"] = null_p_value(r, null)
    return found


def compare_partitions(
    first: pd.DataFrame,
    second: pd.DataFrame,
    choose: str = "cost",
    margin: float = 0.0,
    blocks: pd.Series | None = None,
    labels: pd.Series | None = None,
    seed: int = 0,
) -> pd.Series:
    """Return how well two clusterings of the items agree, with the range over equally good ones.

    Parameters
    ----------
    first, second : DataFrame
        As :func:`cluster_items` gives them; items that only one of them holds are left out.
    choose : {"cost", "silhouette"}
        For each k the partition of least cost, and then k by silhouette; or the partition of
        highest silhouette among all.
    margin : float
        Partitions whose silhouette is so much lower count as equally good, with ``silhouette``.
    blocks, labels : Series, optional
        Which block each item is of, and its right answer, by label. Blocks are permuted
        as wholes, and items within them.
    seed : int
        Seed of the permutations.

    Returns
    -------
    Series
        ``agreement`` of the two chosen partitions, the correlation over pairs of items of being in
        one cluster (1 or 0); ``low, high``
        over all pairs of equally good ones, of which there are ``ties_first, ties_second``;
        ``null, null_low, null_high``, median and central 95 % where blocks are permuted, ``p``
        among these, ``p_items`` with single items permuted, and ``p_labels`` with blocks that only
        take the places of blocks with the same labels.

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 0, 0], "b": [1, 1, 0, 0], "c": [0, 1, 0, 1],
    ...                   "d": [0, 1, 0, 1], "e": [1, 0, 0, 1]})
    >>> found = cluster_items(x, method="exact")
    >>> compare_partitions(found, found)[["agreement", "ties_first"]].round(6).tolist()
    [1.0, 1.0]
    """
    check_choice(("cost", "silhouette"), choose=choose)
    tables = [_equally_good(table, choose, margin) for table in (first, second)]
    shared = [item for item in tables[0]["items"].iloc[0] if item in tables[1]["items"].iloc[0]]
    sides = [pd.DataFrame([*t["labels"]], columns=t["items"].iloc[0])[shared] for t in tables]
    one, other = (_memberships(side.to_numpy()) for side in sides)
    values = one @ other.T
    row = {"agreement": values[0, 0], "low": np.nanmin(values), "high": np.nanmax(values)}
    row |= {"ties_first": len(one), "ties_second": len(other)}
    blocks = pd.Series(shared, shared) if blocks is None else blocks[shared]

    def agreements(orders: np.ndarray) -> np.ndarray:
        return _memberships(sides[1].iloc[0].to_numpy()[orders]) @ one[0]

    orders = _block_orders(blocks, 2000, seed)
    null = np.nanquantile(agreements(orders), [0.5, 0.025, 0.975])
    row |= dict(zip(("null", "null_low", "null_high"), null, strict=True))
    ways = {"p": (blocks, None), "p_items": (shared, None)}
    if labels is not None:
        ways["p_labels"] = (blocks, labels[shared])
    for name, (kept, alike) in ways.items():
        orders = _block_orders(kept, 10_000, seed, alike)
        row[name] = null_p_value(row["agreement"], agreements(orders))
    return pd.Series(row)


def dif(
    reference: pd.DataFrame, focal: pd.DataFrame, method: str = "mantel-haenszel"
) -> pd.DataFrame:
    r"""Differential item functioning: is an item harder for one of two groups at equal scores?

    Respondents are matched on the number t of items solved, the studied item included. With a
    right and b wrong answers of the reference group in a stratum of n, c and d of the focal group,
    Mantel and Haenszel's odds ratio is

    .. math:: \hat\psi = \frac{\sum_s a_s d_s / n_s}{\sum_s b_s c_s / n_s}, \qquad
       \Delta = -2.35 \ln \hat\psi.

    Logistic regression on t, then on the group g as well, then on their product, gives
    likelihood-ratio tests of uniform and of non-uniform DIF:

    .. math:: \mathrm{logit} P(x_i = 1) = \beta_0 + \beta_1 t + \beta_2 g + \beta_3 t g

    Parameters
    ----------
    reference, focal : DataFrame, shapes (R, I) and (F, I)
        0/1 answers without gaps of the two groups to the same items, matched by label.
    method : {"mantel-haenszel", "logistic"}

    Returns
    -------
    DataFrame
        Indexed by item, with ``p, p_holm, p_fdr``.

        Mantel-Haenszel: ``odds_ratio`` (above 1: easier for the reference group at equal score),
        ``delta`` (ETS scale, -2.35 ln of it: negative, harder for the focal group), ``se`` of
        delta with its 95 % interval ``low, high``, ``chi2`` with continuity correction, and
        ``ets``: A negligible *or not significant*, B moderate, C large. Delta is infinite, and
        ``se, low, high`` are missing, where no stratum has a right answer of one group beside a
        wrong one of the other; all are missing (and ``ets`` empty) where no stratum holds both
        groups and both answers.

        Logistic: ``group`` (log odds of the focal group at equal sum) with its standard error
        ``se``, ``p_uniform``, ``p_nonuniform``, ``p`` of both (two degrees of freedom), ``r2``
        (gain in Nagelkerke's R squared) and ``size``: A below 0.035 or not significant, B below
        0.07, else C. Where group and sum separate right answers from wrong ones, the tests are of
        the limits of the likelihood, and ``group`` is infinite without a standard error.
        Everything is missing where all answered an item alike, or where all sums are alike;
        ``p_nonuniform`` and ``p`` are where those of one group are.

    Raises
    ------
    ParameterError
        The items differ, or an answer is missing or neither 0 nor 1.

    References
    ----------
    Holland and Thayer (1988); Zieky (1993) for the ETS classes; Robins, Breslow and Greenland
    (1986) for the standard error. Swaminathan and Rogers (1990); Jodoin and Gierl (2001) for the
    sizes.

    Examples
    --------
    >>> reference = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 1, 1, 1], "c": [0, 0, 0, 1]})
    >>> focal = pd.DataFrame({"a": [1, 0, 0, 0], "b": [1, 1, 1, 1], "c": [0, 1, 1, 1]})
    >>> float(dif(reference, focal).loc["a", "odds_ratio"].round(6))  # 3 3 / 1 1
    9.0
    """
    check_choice(("mantel-haenszel", "logistic"), method=method)
    both, group = _two_groups(reference, focal)
    if method == "logistic":
        return _logistic(both, group.astype(float))
    total = both.sum(axis=1)
    rows = {item: _mantel_haenszel(both[item].to_numpy(), group, total) for item in both}
    frame = pd.DataFrame(rows, index=["odds_ratio", "delta", "se", "chi2", "p"]).T
    frame = frame.assign(p_holm=adjust(frame["p"]), p_fdr=adjust(frame["p"], "fdr_bh"))
    reach = 1.959964 * frame["se"]
    frame.insert(3, "low", frame["delta"] - reach)
    frame.insert(4, "high", frame["delta"] + reach)
    frame["ets"] = [_ets_class(*row) for row in frame[["delta", "se", "p"]].to_numpy()]
    return frame


def _logistic(both: pd.DataFrame, group: np.ndarray) -> pd.DataFrame:
    """DIF by logistic regression; `group` is 1 for respondents of the focal group."""
    from scipy.stats import chi2
    from statsmodels.api import GLM, families

    score = both.sum(axis=1).to_numpy(float)
    score = (score - score.mean()) / (score.std() or 1)
    design = np.c_[np.ones_like(score), score, group, group * score]
    # Without variance of the sums nothing is matched; with none in one group nothing can cross.
    ranks = [np.linalg.matrix_rank(design[:, :n]) for n in (2, 3, 4)]
    rows = {}
    for item in both.columns[both.nunique() > 1] if ranks[:2] == [2, 3] else ():
        y = both[item].to_numpy(float)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of separation, whose limit is what is wanted
            models = [GLM(y, design[:, :n], families.Binomial()) for n in (1, 2, 3, 4)]
            fitted = [model.fit(maxiter=100, tol=1e-13) for model in models]
        null, *likelihoods = (found.llf for found in fitted)
        gains = 2 * np.maximum(np.diff(likelihoods), 0)
        effect, se = fitted[2].params[-1], fitted[2].bse[-1]
        if np.abs(design[:, :3] @ fitted[2].params).max() > _SEPARATED:
            effect, se = np.sign(effect) * np.inf, np.nan
        shares = 1 - np.exp(2 * (null - np.array(likelihoods)) / len(y))
        r2 = (shares[ranks[2] - 2] - shares[0]) / (1 - np.exp(2 * null / len(y)))
        crossing = (
            [chi2.sf(gains[1], 1), chi2.sf(gains.sum(), 2)] if ranks[2] == 4 else [np.nan] * 2
        )
        rows[item] = [effect, se, chi2.sf(gains[0], 1), *crossing, r2]
    columns = ["group", "se", "p_uniform", "p_nonuniform", "p", "r2"]
    frame = pd.DataFrame(rows, index=columns).T.reindex(both.columns).astype(float)
    frame = frame.assign(p_holm=adjust(frame["p"]), p_fdr=adjust(frame["p"], "fdr_bh"))
    frame["size"] = np.select([frame["r2"] < 0.035, frame["r2"] < 0.07], ["A", "B"], "C")
    frame.loc[frame["p"].isna(), "size"] = ""
    # As in the ETS classes, what is not significant is negligible whatever its size.
    frame.loc[frame["p"] >= 0.05, "size"] = "A"
    return frame


def adjust(p: pd.Series, method: str = "holm") -> pd.Series:
    """Correct p values for multiple tests; gaps stay gaps and do not count as tests.

    Parameters
    ----------
    p : Series
    method : {"holm", "fdr_bh", "bonferroni", "none"}
        Holm's correction, Benjamini and Hochberg's of the false discovery rate, Bonferroni's.

    Returns
    -------
    Series

    Raises
    ------
    ParameterError
        There is no such correction, or a p value is not a number from 0 to 1.

    References
    ----------
    Holm (1979); Benjamini and Hochberg (1995); by :func:`pingouin.multicomp`.

    Examples
    --------
    >>> adjust(pd.Series([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    # As statsmodels' multipletests, which takes a tenth of a second a call to collect garbage.
    from pingouin import multicomp

    check_choice(("holm", "fdr_bh", "bonferroni", "none"), method=method)
    check_columns(pd.DataFrame({"p": p}), (), ["p"])
    p = pd.to_numeric(p).astype(float)
    if ((p < 0) | (p > 1)).any():
        raise ParameterError("p values must lie between 0 and 1; correct the column 'p'.")
    if method == "none" or p.isna().all():
        return p
    method = {"bonferroni": "bonf"}.get(method, method)
    return pd.Series(multicomp(p.to_numpy(), method=method)[1], p.index)


def _equally_good(table: pd.DataFrame, choose: str, margin: float) -> pd.DataFrame:
    """The partition that is chosen, and below it those that might as well have been."""
    if choose == "silhouette":
        return table[table["silhouette"] > table["silhouette"].iloc[0] - margin - 1e-9]
    cheapest = table[table["cost"] < table.groupby("k")["cost"].transform("min") + 1e-9]
    # A partition is chosen if it beats those of the other k, of which the worst may be taken.
    least = cheapest.groupby("k")["silhouette"].min()
    bar = {k: least.drop(k).max() if len(least) > 1 else -np.inf for k in least.index}
    return cheapest[cheapest["silhouette"] > cheapest["k"].map(bar) - 1e-9]


def _memberships(labels: np.ndarray) -> np.ndarray:
    """Standardised 0/1 of each pair of items being together, a row for each partition."""
    together = _together(labels).astype(float)
    together -= together.mean(axis=1, keepdims=True)
    length = np.linalg.norm(together, axis=1, keepdims=True)
    return together / np.where(length > 1e-12, length, np.nan)


def _weighted_correlations(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Correlation of a and b in each row of weights."""
    w = weights / weights.sum(axis=1, keepdims=True)
    a = a - (w * a).sum(axis=1, keepdims=True)
    b = b - (w * b).sum(axis=1, keepdims=True)
    scale = np.sqrt((w * a**2).sum(axis=1) * (w * b**2).sum(axis=1))
    out = np.full(len(w), np.nan)
    return np.divide((w * a * b).sum(axis=1), scale, out=out, where=scale > 1e-12)


def _numeric(name: object, column: pd.Series) -> np.ndarray:
    kind = getattr(column.dtype, "kind", "O")
    try:
        if kind in "mMc":  # times and complex numbers are numbers to pandas, not to a test
            raise TypeError(f"they are {column.dtype}")
        return pd.to_numeric(column).to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"answers must be numbers; '{name}': {error}.") from error


def _two_groups(reference: pd.DataFrame, focal: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Answers of both groups, one below the other, and who is in the focal one."""
    reference, focal = as_numbers(reference), as_numbers(focal)
    if set(reference) != set(focal):
        raise ParameterError("both groups must have answered the same items.")
    both = pd.concat([reference, focal], ignore_index=True)
    if both.isna().any(axis=None):
        raise ParameterError("matching on the sum needs answers without gaps: drop or fill them.")
    if not both.isin([0, 1]).all(axis=None):
        raise ParameterError("both groups' answers must be 0 or 1.")
    return both, np.arange(len(both)) >= len(reference)


def _distances(answers: pd.DataFrame, apart: bool) -> np.ndarray:
    """Distances 1 - r between items, and of constant items `apart` from themselves, too."""
    matrix = 1 - answers.corr().fillna(0).to_numpy().copy()
    np.fill_diagonal(matrix, (answers.nunique() < 2).to_numpy() & apart)
    return np.clip(matrix, 0, 2)


def _silhouette(matrix: np.ndarray, labels: tuple[int, ...]) -> float:
    """Mean silhouette width of a partition, 0 for an item alone in its cluster.

    By hand, because scikit-learn's refuses a precomputed matrix whose diagonal is not zero, as it
    is where constant items are far from themselves, and takes twenty times as long on the matrices
    of a few items of which thousands of partitions are judged.
    """
    labels = np.asarray(labels)
    member = labels[:, None] == np.unique(labels)[None, :]
    sizes, sums = member.sum(axis=0), matrix @ member
    own = member.argmax(axis=1)
    rows = np.arange(len(labels))
    size = sizes[own]
    inside = sums[rows, own] / np.maximum(size - 1, 1)
    other = np.where(member, np.inf, sums / sizes).min(axis=1)
    width = (other - inside) / np.maximum(np.maximum(inside, other), 1e-300)
    return float(np.where(size > 1, width, 0).mean())


def _together(labels: np.ndarray) -> np.ndarray:
    """For every pair of items (the last axis), whether one cluster holds both."""
    first, second = np.triu_indices(labels.shape[-1], 1)
    return labels[..., first] == labels[..., second]


def _relabelled(labels: np.ndarray) -> tuple[int, ...]:
    """The same partition named in order of appearance, so that equal ones compare equal."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(label), len(seen)) for label in labels)


def _all_cheapest(
    matrix: np.ndarray, k: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, float]]:
    """All partitions of least cost around k medoids, or some of them if they are many."""
    from itertools import combinations, product

    n = len(matrix)
    sets = np.array(list(combinations(range(n), k)))
    costs = np.concatenate([
        matrix[part].min(axis=1).sum(axis=1)
        for part in np.array_split(sets, 1 + len(sets) // 2000)
    ])  # fmt: skip
    least, ends = costs.min(), []
    cheapest = sets[costs < least + 1e-9]
    for medoids in rng.permutation(cheapest):
        distances = matrix[medoids]
        nearest = [np.flatnonzero(column < column.min() + 1e-9) for column in distances.T]
        for place, item in enumerate(medoids):  # a medoid is in its own cluster
            nearest[item] = np.array([place])
        room = max(_MOST_TIES // len(cheapest), 1)
        if np.prod([float(len(choice)) for choice in nearest]) <= room:
            ways = product(*nearest)
        else:
            ways = zip(*(rng.choice(choice, room) for choice in nearest), strict=True)
        ends += [(np.array(way), float(least)) for way in ways]
        if len(ends) >= _MOST_TIES:
            break
    return ends


def _alternating(matrix: np.ndarray, medoids: np.ndarray) -> tuple[np.ndarray, float]:
    """Assign, choose each cluster's medoid, again, until nothing moves; ties go to the first."""
    medoids = medoids.copy()
    for _ in range(300):
        labels, before = matrix[medoids].argmin(axis=0), medoids.copy()
        for place in range(len(medoids)):
            members = np.flatnonzero(labels == place)
            if not len(members):
                continue
            costs = matrix[np.ix_(members, members)].sum(axis=0)
            now = costs[np.argmax(members == medoids[place])]
            if costs.min() < now:
                medoids[place] = members[costs.argmin()]
        if (before == medoids).all():
            break
    labels = matrix[medoids].argmin(axis=0)
    return labels, float(matrix[medoids].min(axis=0).sum())


def _mantel_haenszel(y: np.ndarray, focal: np.ndarray, total: pd.Series) -> list[float]:
    from scipy.stats import chi2
    from statsmodels.stats.contingency_tables import StratifiedTable

    codes = pd.factorize(total)[0]
    a, b, c, d = (
        np.bincount(codes[chosen], minlength=codes.max() + 1).astype(float)
        for chosen in (~focal & (y == 1), ~focal & (y == 0), focal & (y == 1), focal & (y == 0))
    )
    n = a + b + c + d
    used = ((a + b) > 0) & ((c + d) > 0) & (n > 1)
    a, b, c, d, n = (counts[used] for counts in (a, b, c, d, n))
    variance = ((a + b) * (c + d) * (a + c) * (b + d) / (n**2 * (n - 1))).sum()
    if variance == 0:
        return [np.nan] * 5
    # The test by hand: statsmodels lets the correction overshoot, so that a difference of less
    # than a half counts as one in the other direction (R's mantelhaen.test stops at zero, too).
    expected = ((a + b) * (a + c) / n).sum()
    statistic = max(abs(a.sum() - expected) - 0.5, 0) ** 2 / variance
    p = float(chi2.sf(statistic, 1))
    right, wrong = (a * d).any(), (b * c).any()
    if not right or not wrong:  # everyone of one group solved it: no finite odds ratio
        ratio = np.inf if right else 0.0
        return [ratio, -np.inf if right else np.inf, np.nan, statistic, p]
    table = StratifiedTable(np.array([[a, b], [c, d]]))
    delta, se = -2.35 * table.logodds_pooled, 2.35 * table.logodds_pooled_se
    return [table.oddsratio_pooled, delta, se, statistic, p]


def _ets_class(delta: float, se: float, p: float) -> str:
    """A unless significant and at least 1; C if at least 1.5 and significantly above 1."""
    small, large = _ETS_LIMITS
    if np.isnan(p):
        return ""
    if p >= 0.05 or abs(delta) < small:
        return "A"
    beyond = np.isnan(se) or (abs(delta) - small) / se > 1.645
    return "C" if abs(delta) >= large and beyond else "B"
