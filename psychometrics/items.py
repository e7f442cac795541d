"""Classical item analysis of a persons by items matrix: difficulty, correlations, clusters, bias.

Every function takes R respondents (rows) by I items (columns) and knows nothing of where the
answers come from. Correlations between items are ``answers.corr()``: for 0/1 answers, phi.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .exceptions import ParameterError

_CONSTANT = ("uncorrelated", "self", "drop")
METHODS = ("fasterpam", "alternating")
_ETS_LIMITS = (1.0, 1.5)  # of |delta|: below the first A, above the second C


def difficulty(answers: pd.DataFrame) -> pd.Series:
    r"""Share of respondents who solved each item, the classical "difficulty" (high is easy).

    .. math:: p_i = \frac{1}{R} \sum_r x_{ri}

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        0 or 1, items as columns; missing answers are left out.

    Returns
    -------
    Series, shape (I,)
        Shares between 0 and 1.

    References
    ----------
    Laverghetta et al. (2021), section 5.1.

    Examples
    --------
    >>> difficulty(pd.DataFrame({"a": [1, 1, 0, 0], "b": [1, 1, 1, 0]})).tolist()
    [0.5, 0.75]
    """
    return _checked(answers).mean()


def item_rest(answers: pd.DataFrame) -> pd.Series:
    r"""Corrected item-total correlation: each item with the sum of the others.

    .. math:: r_{i(t-i)} = \mathrm{cor}\Bigl(x_i, \sum_{j \ne i} x_j\Bigr)

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores without gaps.

    Returns
    -------
    Series, shape (I,)
        Correlations; missing where the item, or the sum of the others, has no variance.

    References
    ----------
    Laverghetta et al. (2021), section 6.

    Examples
    --------
    >>> item_rest(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})).round(3).tolist()
    [0.577, 0.577]
    """
    answers = _checked(answers)
    x = answers.to_numpy(dtype=float)
    rest = x.sum(axis=1, keepdims=True) - x
    x, rest = x - x.mean(axis=0), rest - rest.mean(axis=0)
    scale = np.sqrt((x**2).sum(axis=0) * (rest**2).sum(axis=0))
    known = np.where(scale > 1e-9, scale, np.nan)
    return pd.Series((x * rest).sum(axis=0) / known, index=answers.columns)


def mean_inter_item(answers: pd.DataFrame) -> float:
    """Mean of the Pearson correlations between different items, those without variance left out.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores.

    Returns
    -------
    float
        Between -1 and 1; missing if fewer than two items have variance.

    References
    ----------
    Laverghetta et al. (2021), section 6.

    Examples
    --------
    >>> round(mean_inter_item(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})), 3)
    0.577
    """
    matrix = _checked(answers).corr().to_numpy()
    pairs = matrix[np.triu_indices_from(matrix, 1)]
    return float(np.nanmean(pairs)) if np.isfinite(pairs).any() else float("nan")


def null_spearman(
    shares: np.ndarray, people: int = 20, draws: int = 10_000, seed: int = 0
) -> np.ndarray:
    """Spearman correlations of given shares with those of populations that only guess.

    Parameters
    ----------
    shares : ndarray, shape (I,)
        Share of a population that solved each item.
    people : int
        Size of a guessing population.
    draws : int
        How many of them.
    seed : int
        Seed of the draws.

    Returns
    -------
    ndarray, shape (draws,)
        The null distribution of which one draw would be one arbitrary number.

    References
    ----------
    Laverghetta et al. (2021), table 1, whose random baseline is one such draw.

    Examples
    --------
    >>> null = null_spearman(np.array([0.2, 0.4, 0.5, 0.9]), draws=2000, seed=1)
    >>> bool(abs(null.mean()) < 0.05)
    True
    """
    from scipy.stats import rankdata

    shares = np.asarray(shares, dtype=float)
    counts = np.random.default_rng(seed).binomial(people, 0.5, size=(draws, len(shares)))
    ranks = rankdata(counts, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    target = rankdata(shares)
    target -= target.mean()
    scale = np.sqrt((ranks**2).sum(axis=1) * (target**2).sum())
    return np.divide(ranks @ target, scale, out=np.zeros(draws), where=scale > 0)


def null_p_value(value: float, null: np.ndarray) -> float:
    """Two-sided p value of a correlation in a simulated null distribution, never exactly zero.

    Parameters
    ----------
    value : float
        What was observed.
    null : ndarray, shape (draws,)
        What chance gives.

    Returns
    -------
    float
        ``(1 + number at least as far from zero) / (1 + draws)``.

    Examples
    --------
    >>> null_p_value(0.5, np.array([-0.6, 0.1, 0.2]))
    0.5
    """
    return float((1 + (np.abs(null) >= abs(value) - 1e-12).sum()) / (1 + len(null)))


def cluster_items(
    answers: pd.DataFrame,
    restarts: int = 100,
    seed: int = 0,
    constant: str = "uncorrelated",
    method: str = "fasterpam",
) -> pd.DataFrame:
    """k-medoids of the items on 1 - r for every k, from many random starts.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores.
    restarts : int
        Random starts for each k.
    seed : int
        Seed of the starts.
    constant : {"uncorrelated", "self", "drop"}
        An item that everyone or no one solved has no correlation. It is set at distance 1 from
        all others (as if r were 0); or at distance 1 from all others *and from itself*, which is
        what replacing a missing r by 0 does in the paper's script and goes with ``alternating``
        only; or left out.
    method : {"fasterpam", "alternating"}
        How one start is improved: by swaps, or by turns of assigning and choosing medoids, which
        gets stuck more often (and is what the paper used).

    Returns
    -------
    DataFrame
        One row per distinct partition: ``k, cost`` (sum of distances to the medoids),
        ``silhouette``, ``labels`` (tuple, in order of the items), ``items`` (tuple), ``hits``
        (starts that ended there), best silhouette first.

    References
    ----------
    Laverghetta et al. (2021), section 5.1 ("IIC-based clustering"); Schubert and Rousseeuw (2021);
    Rousseeuw (1987).

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 0, 0], "b": [1, 1, 0, 0], "c": [0, 1, 0, 1],
    ...                   "d": [0, 1, 0, 1], "e": [1, 0, 0, 1]})
    >>> cluster_items(x, restarts=5).iloc[0]["labels"]
    (0, 0, 1, 1, 2)
    """
    for name, value, known in (("constant", constant, _CONSTANT), ("method", method, METHODS)):
        if value not in known:
            raise ParameterError(f"{name}='{value}' is unknown; it is one of {', '.join(known)}.")
    if constant == "self" and method == "fasterpam":
        raise ParameterError("constant='self' is no distance; it goes with method='alternating'.")
    frame = _distances(_checked(answers), constant)
    matrix, rng = frame.to_numpy(), np.random.default_rng(seed)
    if len(matrix) < 4:
        raise ParameterError(f"clusters need 4 items or more, here {len(matrix)}.")
    improve = {"fasterpam": _fasterpam, "alternating": _alternating}[method]
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for k in range(2, len(matrix) - 1):
        for _ in range(restarts):
            labels, cost = improve(matrix, rng.choice(len(matrix), k, replace=False))
            labels = _relabelled(labels)
            least, hits = found.get(labels, (np.inf, 0))
            found[labels] = (min(least, cost), hits + 1)
    rows = [
        (max(labels) + 1, cost, _silhouette(matrix, labels), labels, tuple(frame.columns), hits)
        for labels, (cost, hits) in found.items()
        if 1 < max(labels) + 1 < len(labels)
    ]
    table = pd.DataFrame(rows, columns=["k", "cost", "silhouette", "labels", "items", "hits"])
    # Ties are ties, whatever the last bit.
    order = table.assign(silhouette=-table["silhouette"].round(9), cost=table["cost"].round(9))
    order = order.sort_values(["silhouette", "k", "cost", "labels"]).index
    return table.loc[order].reset_index(drop=True)


def partition_agreement(
    first: tuple[int, ...], second: tuple[int, ...], draws: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Do two partitions put the same pairs of items together? With a permutation p value.

    Parameters
    ----------
    first, second : sequence of int, shape (I,)
        Clusters of the same items.
    draws : int
        Random relabellings of the items of ``second``. Pairs share items, so that a test that
        takes the I (I - 1) / 2 pairs as independent, as the paper's does, is too sure of itself.
    seed : int
        Seed of the permutations.

    Returns
    -------
    (float, float)
        Pearson correlation of co-membership over the pairs, and its two-sided p value; missing
        if a partition puts all items together, or all apart.

    References
    ----------
    Laverghetta et al. (2021), table 2.

    Examples
    --------
    >>> r, p = partition_agreement((0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0), draws=1000)
    >>> round(r, 6), bool(p < 0.2)
    (1.0, True)
    """
    if len(first) != len(second):
        raise ParameterError("the partitions must be of the same items: their lengths differ.")
    a, b = (_together(np.asarray(labels)).astype(float) for labels in (first, second))
    if a.std() == 0 or b.std() == 0:
        return float("nan"), float("nan")
    observed = float(np.corrcoef(a, b)[0, 1])
    rng, second = np.random.default_rng(seed), np.asarray(second)
    shuffled = rng.permuted(np.tile(second, (draws, 1)), axis=1)
    together = _together(shuffled)  # as many pairs in every draw: same mean and spread
    null = (together @ (a - a.mean())) / (len(a) * a.std() * b.std())
    return observed, null_p_value(observed, null)


def mantel_test(
    first: pd.DataFrame, second: pd.DataFrame, draws: int = 2000, seed: int = 0
) -> tuple[float, float, int]:
    """Mantel's test: do two matrices of inter-item correlations agree? By permuting items.

    Parameters
    ----------
    first, second : DataFrame, shape (I, I)
        Correlations between the same items, as ``answers.corr()`` gives them; items without
        variance in either are left out.
    draws : int
        Random orders of the items of ``second``: pairs share items and are not independent.
    seed : int
        Their seed.

    Returns
    -------
    (float, float, int)
        Pearson correlation over the pairs, its two-sided p value, and the number of items.

    References
    ----------
    Mantel (1967).

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1, 1, 0, 0], "b": [1, 1, 1, 0], "c": [0, 1, 0, 1]}).corr()
    >>> r, p, items = mantel_test(x, x, draws=99)
    >>> round(r, 6), items
    (1.0, 3)
    """
    if list(first.columns) != list(second.columns):
        raise ParameterError("both matrices must be of the same items in the same order.")
    known = (np.isfinite(first).sum() > 1) & (np.isfinite(second).sum() > 1)
    a, b = (matrix.loc[known, known].to_numpy() for matrix in (first, second))
    if len(a) < 3:
        raise ParameterError(f"matrices need 3 items with variance or more, here {len(a)}.")
    upper = np.triu_indices_from(a, 1)
    observed = float(np.corrcoef(a[upper], b[upper])[0, 1])
    rng, null = np.random.default_rng(seed), np.empty(draws)
    for place in range(draws):
        order = rng.permutation(len(b))
        null[place] = np.corrcoef(a[upper], b[np.ix_(order, order)][upper])[0, 1]
    return observed, null_p_value(observed, null), len(a)


def mantel_haenszel(
    reference: pd.DataFrame, focal: pd.DataFrame, strata: int | None = None
) -> pd.DataFrame:
    r"""Differential item functioning by the Mantel-Haenszel odds ratio, with the ETS classes.

    Respondents are matched on the number of items solved, the studied item included. With a right
    and b wrong answers of the reference group in a stratum of n, c and d of the focal group,

    .. math:: \hat\alpha = \frac{\sum_s a_s d_s / n_s}{\sum_s b_s c_s / n_s}, \qquad
       \Delta = -2.35 \ln \hat\alpha.

    Parameters
    ----------
    reference, focal : DataFrame, shapes (R, I) and (F, I)
        0/1 answers of the two groups to the same items.
    strata : int, optional
        Merge the scores into so many bands with about as many respondents in each; by default
        every score is a stratum of its own.

    Returns
    -------
    DataFrame
        Indexed by item: ``odds_ratio`` (above 1: easier for the reference group at equal score),
        ``delta`` (ETS scale, -2.35 ln of it: negative, harder for the focal group), ``se`` of
        delta, ``chi2`` with continuity correction, ``p``, ``p_holm``, ``p_fdr`` and ``ets``: A
        negligible, B moderate, C large.

    References
    ----------
    Holland and Thayer (1988); Zieky (1993) for the classes; Robins, Breslow and Greenland (1986)
    for the standard error.

    Examples
    --------
    >>> reference = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 1, 1, 1], "c": [0, 0, 0, 1]})
    >>> focal = pd.DataFrame({"a": [1, 0, 0, 0], "b": [1, 1, 1, 1], "c": [0, 1, 1, 1]})
    >>> float(mantel_haenszel(reference, focal).loc["a", "odds_ratio"].round(6))  # 3 3 / 1 1
    9.0
    """
    both, group = _two_groups(reference, focal)
    total = both.sum(axis=1)
    if strata:
        total = pd.qcut(total.rank(method="average"), strata, labels=False, duplicates="drop")
    rows = {item: _mantel_haenszel(both[item].to_numpy(), group, total) for item in both}
    frame = adjust(pd.DataFrame(rows, index=["odds_ratio", "delta", "se", "chi2", "p"]).T)
    frame["ets"] = [
        _ets_class(*row) for row in frame[["delta", "se", "p"]].itertuples(index=False, name=None)
    ]
    return frame


def logistic_dif(reference: pd.DataFrame, focal: pd.DataFrame) -> pd.DataFrame:
    r"""Differential item functioning by logistic regression: uniform, non-uniform, effect size.

    Each item is regressed on the sum of all items, then on the group as well, then on their
    product; likelihood-ratio tests compare the three:

    .. math:: \mathrm{logit} P(x_i = 1) = \beta_0 + \beta_1 t + \beta_2 g + \beta_3 t g

    Parameters
    ----------
    reference, focal : DataFrame, shapes (R, I) and (F, I)
        0/1 answers of the two groups to the same items.

    Returns
    -------
    DataFrame
        Indexed by item: ``group`` (log odds of the focal group at equal sum), ``p_uniform``,
        ``p_nonuniform``, ``p`` (both, two degrees of freedom), ``p_holm``, ``p_fdr``, ``r2``
        (gain in Nagelkerke's R squared) and ``size``: A below 0.035, B below 0.07, else C.
        Missing where an item has no variance in a group or separates perfectly.

    References
    ----------
    Swaminathan and Rogers (1990); Jodoin and Gierl (2001) for the classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> one, two = (pd.DataFrame(rng.integers(0, 2, (200, 4)), columns=list("abcd")) for _ in "ab")
    >>> logistic_dif(one, two.assign(a=two["a"] & two["b"])).loc["a", "group"] < 0
    np.True_
    """
    from scipy.stats import chi2

    both, focal_group = _two_groups(reference, focal)
    group = focal_group.astype(float)
    score = both.sum(axis=1).to_numpy(float)
    score = (score - score.mean()) / (score.std() or 1)
    designs = [np.c_[np.ones_like(score), score], group[:, None], (group * score)[:, None]]
    rows = {}
    for item in both:
        y = both[item].to_numpy(float)
        fits = [_logistic(np.hstack(designs[: n + 1]), y) for n in range(3)]
        likelihoods = np.array([fit[1] for fit in fits])
        gains = 2 * np.maximum(np.diff(likelihoods), 0)
        null = _log_likelihood(np.full(len(y), y.mean()), y)
        nagelkerke = _nagelkerke(likelihoods, null, len(y))
        rows[item] = [
            fits[1][0][2], chi2.sf(gains[0], 1), chi2.sf(gains[1], 1), chi2.sf(gains.sum(), 2),
            nagelkerke[2] - nagelkerke[0],
        ]  # fmt: skip
    frame = adjust(pd.DataFrame(rows, index=["group", "p_uniform", "p_nonuniform", "p", "r2"]).T)
    frame["size"] = np.select([frame["r2"] < 0.035, frame["r2"] < 0.07], ["A", "B"], "C")
    frame.loc[frame["p"].isna(), "size"] = ""
    # As in the ETS classes, what is not significant is negligible whatever its size.
    frame.loc[frame["p"] >= 0.05, "size"] = "A"
    return frame


def adjust(frame: pd.DataFrame) -> pd.DataFrame:
    """Correct p values for multiple tests; gaps stay gaps and do not count as tests.

    Parameters
    ----------
    frame : DataFrame
        With a column ``p``.

    Returns
    -------
    DataFrame
        The same with ``p_holm`` and ``p_fdr`` (Benjamini and Hochberg), anew where it had them.

    References
    ----------
    Holm (1979); Benjamini and Hochberg (1995).

    Examples
    --------
    >>> adjust(pd.DataFrame({"p": [0.01, 0.04, 0.03]}))["p_holm"].round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    # As statsmodels' multipletests, which takes a tenth of a second a call to collect garbage.
    from pingouin import multicomp

    p = frame["p"].to_numpy(dtype=float)
    return frame.assign(p_holm=multicomp(p, method="holm")[1], p_fdr=multicomp(p, method="fdr")[1])


def _checked(answers: pd.DataFrame) -> pd.DataFrame:
    frame = pd.DataFrame(answers)
    if not frame.size:
        raise ParameterError("the matrix of answers is empty; it needs respondents and items.")
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column):
            try:
                frame = frame.apply(pd.to_numeric)
            except (TypeError, ValueError) as error:
                raise ParameterError(f"answers must be numbers; '{name}': {error}.") from error
    return frame


def _two_groups(reference: pd.DataFrame, focal: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Answers of both groups, one below the other, and who is in the focal one."""
    reference, focal = _checked(reference), _checked(focal)
    if list(reference.columns) != list(focal.columns):
        raise ParameterError("both groups must have answered the same items in the same order.")
    both = pd.concat([reference, focal], ignore_index=True)
    if both.isna().any(axis=None):
        raise ParameterError("matching on the sum needs answers without gaps: drop or fill them.")
    if not both.isin([0, 1]).all(axis=None):
        raise ParameterError("both groups' answers must be 0 or 1.")
    return both, np.arange(len(both)) >= len(reference)


def _distances(answers: pd.DataFrame, constant: str) -> pd.DataFrame:
    """Distances 1 - r between items, zero on the diagonal but for constant items of ``self``."""
    if constant == "drop":
        answers = answers.loc[:, answers.nunique() > 1]
    matrix = 1 - answers.corr().fillna(0).to_numpy().copy()
    alone = (answers.nunique() < 2).to_numpy() if constant == "self" else 0.0
    np.fill_diagonal(matrix, alone)
    return pd.DataFrame(np.clip(matrix, 0, 2), index=answers.columns, columns=answers.columns)


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


def _fasterpam(matrix: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
    import kmedoids

    result = kmedoids.fasterpam(matrix, start.astype(np.uint64), n_cpu=1)
    return result.labels, float(result.loss)


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


def _logistic(design: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients and log likelihood by Newton steps; missing if there is no finite optimum.

    By hand, because statsmodels' Logit warns or raises where an item separates perfectly, which
    items of language models often do, and takes three times as long.
    """
    missing = np.full(design.shape[1], np.nan), np.nan
    if y.min() == y.max() or np.linalg.matrix_rank(design) < design.shape[1]:
        return missing
    beta, last = np.zeros(design.shape[1]), -np.inf
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
        likelihood = _log_likelihood(p, y)
        if abs(likelihood - last) < 1e-10:
            break
        last = likelihood
        weights = p * (1 - p)
        hessian = design.T @ (design * weights[:, None])
        if np.linalg.cond(hessian) > 1e12:
            return missing
        beta = beta + np.linalg.solve(hessian, design.T @ (y - p))
    if np.abs(beta).max() > 15:  # perfect separation: the likelihood has no maximum
        return missing
    return beta, likelihood


def _log_likelihood(p: np.ndarray, y: np.ndarray) -> float:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return float((y * np.log(p) + (1 - y) * np.log(1 - p)).sum())


def _nagelkerke(likelihoods: np.ndarray, null: float, n: int) -> np.ndarray:
    return (1 - np.exp(2 * (null - likelihoods) / n)) / (1 - np.exp(2 * null / n))
