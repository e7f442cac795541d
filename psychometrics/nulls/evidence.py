"""Kinds of validity evidence, computed within one base at a time and compared with nulls."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real

import numpy as np
import pandas as pd
from scipy import stats

from ..checks import as_numbers, check_columns, check_kinds, check_numbers
from ..exceptions import ParameterError
from ..measures.factor import as_correlations
from ..measures.intervals import jackknife_half_width, merge_near_ties
from ..measures.normalisation import raw_scores, template_cubes, two_way
from ..measures.validity import silhouettes
from ..questionnaires import Questionnaire, load_questionnaires
from .kernels import _scale_statistics

_CLASSES = ["entailment", "neutral", "contradiction"]
# Fewest respondents for statistics of differences.
_FEWEST = 3
# Decimals of silhouettes that single precision resolves on any processor.
_DECIMALS = 6
# Largest factor of a size; long before it, each answer puts all weight on one class.
_LARGEST_FACTOR = 1000
_KINDS = ("source", "inverse", "silhouette")
_PROMPT = ["item_id", "template", "polarity", "term", "intensifier"]


def profiles(
    answers: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    score: str = "entailment",
    temperature: float = 1.0,
) -> pd.DataFrame:
    """Compute the inputs to all kinds of evidence, once for each respondent.

    Parameters
    ----------
    answers : DataFrame
        Answers to prompts, as :func:`psychometrics.asking.ask` returns them.
    questionnaires : sequence of Questionnaire or their names
    score, temperature
        As in :func:`psychometrics.measures.scoring.item_scores`.

    Returns
    -------
    DataFrame, shape (R, columns)
        A table with two levels of columns: ``source`` and ``inverse`` by item (expected weight
        divided by L, with the item's key, inverse terms reversed), and ``silhouette`` by item.

    Raises
    ------
    ParameterError
        There are no answers to a questionnaire, or respondents answered different prompts.

    References
    ----------
    Reuben et al. (2024), sections 3.2 and 3.3.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics import null_answers
    >>> answers = null_answers("challenges", "noise", respondents=3)
    >>> profiles(answers, [load_questionnaire("challenges")]).shape
    (3, 12)
    """
    questionnaires = load_questionnaires(questionnaires)
    check_columns(answers, [*_PROMPT, "respondent_id", "questionnaire"], ["weight"])
    keys = {item.id: item.keying for q in questionnaires for item in q.items}
    lacking = {q.id for q in questionnaires} - set(answers["questionnaire"].unique())

    if lacking:
        raise ParameterError(f"There are no answers to '{min(lacking)}'; add them.")
    answers = answers[answers["item_id"].isin(keys)]
    who, respondents = answers["respondent_id"].factorize()
    order = np.argsort(who, kind="stable")  # group the rows by respondent
    prompts = answers.groupby(_PROMPT, sort=False, observed=True).ngroup().to_numpy()[order]
    number = prompts.max() + 1

    if not np.array_equal(prompts, np.tile(np.arange(number), len(respondents))):
        raise ParameterError("Respondents answered different prompts; give all the same prompts.")

    raw = raw_scores(answers, score)[order].reshape(len(respondents), -1)
    frame = answers.iloc[order[: raw.shape[1]]]
    item, kind, weight = (frame[name].to_numpy() for name in ("item_id", "polarity", "weight"))
    by_template: dict[tuple[str, str], list[np.ndarray]] = {}
    for rows, (_, term, word), _ in template_cubes(frame, np.zeros(len(frame))):
        place = np.empty((term.max() + 1, word.max() + 1), dtype=int)
        place[term, word] = rows
        shares = two_way(raw[:, place], temperature)
        stance = kind[place[:, 0]]
        means = (shares * weight[place[0]]).mean(axis=2) * stance * keys[item[rows[0]]]
        values = {
            "source": means[:, stance == 1].mean(axis=1),
            "inverse": means[:, stance == -1].mean(axis=1),
            "silhouette": silhouettes(shares, stance),
        }
        for name, value in values.items():
            by_template.setdefault((name, item[rows[0]]), []).append(value)

    columns = itertools.product(("source", "inverse", "silhouette"), keys)
    means = {column: np.mean(by_template[column], axis=0) for column in columns}
    return pd.DataFrame(means, pd.Index(respondents, name="respondent_id"))


def evidence(
    table: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    expected: Mapping[tuple[str, str], int],
    bases: pd.Series | None = None,
) -> pd.Series | pd.DataFrame:
    """Return each kind of evidence for one set of respondents, or within each base.

    Respondents on different bases have scores of different sizes, so a correlation or an alpha over
    all respondents mostly describes the base with the larger scores.

    Parameters
    ----------
    table : DataFrame
        The result of :func:`profiles`, or some of its rows.
    questionnaires : sequence of Questionnaire or their names
    expected : mapping
        For pairs of questionnaires, the sign (1 or -1) of their correlation in human respondents.
        Means are taken over the questionnaires named here; all other questionnaires are placebos.
    bases : Series, optional
        The base of each respondent, in the order of the table's rows.

    Returns
    -------
    Series, or DataFrame of shape (bases + 1, kinds)
        With bases, one row for each base and a row ``both``, the mean over the bases that have a
        value, weighted by numbers of respondents. ``silhouette, alpha, omega`` are means over the
        questionnaires; ``correlations`` is the *smallest* of the expected correlations (Spearman),
        with its sign set so that a positive value means a correlation in the expected direction;
        ``source and inverse`` is the mean correlation of scores from source terms with scores from
        inverse terms. Further columns name their questionnaires: ``silhouette gad7``, ``lowest
        gad7`` (the lowest mean silhouette of an item) and ``omega gad7`` of each questionnaire,
        ``alpha gad7`` of each questionnaire and subscale, ``htmt gad7 phq9`` and (also for placebos
        and subscales) ``ρ gad7 phq9``. ``items at 0.6`` is the number of items whose mean
        silhouette is at least 0.6. With fewer than three respondents only the silhouettes are
        defined.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics import null_answers
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> table = profiles(null_answers(both, "noise", respondents=8), both)
    >>> found = evidence(table, both, {("challenges", "gad7"): 1})
    >>> bool(found["source and inverse"] > 0.5)  # the normalisation's doing
    True
    """
    questionnaires = load_questionnaires(questionnaires)
    if not isinstance(table, pd.DataFrame) or not {*_KINDS} <= {*table.columns.get_level_values(0)}:
        raise ParameterError("The table does not come from profiles(); pass its result.")

    if bases is not None:
        _check_bases(table, bases)
        within = {
            base: evidence(table[np.asarray(bases) == base], questionnaires, expected)
            for base in pd.unique(np.asarray(bases))
        }
        return _with_mean(pd.DataFrame(within).T, bases)

    source, inverse, width = (table[name].to_numpy()[None] for name in _KINDS)
    draws = evidence_of_draws(source, inverse, width, questionnaires, expected)
    return draws.iloc[0].rename(None)


def evidence_of_draws(
    source: np.ndarray,
    inverse: np.ndarray,
    width: np.ndarray,
    questionnaires: Sequence[Questionnaire],
    expected: Mapping[tuple[str, str], int],
) -> pd.DataFrame:
    """Return each kind of evidence for many sets of respondents at once.

    Parameters
    ----------
    source, inverse, width : ndarray, shape (draws, R, I)
        Keyed scores from source and from inverse terms, and silhouettes, for the items of all
        questionnaires in order.
    questionnaires, expected
        As in :func:`evidence`.

    Returns
    -------
    DataFrame, shape (draws, kinds)
        The columns of :func:`evidence`.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> draws = np.random.default_rng(0).normal(size=(3, 5, 8, 11))
    >>> len(evidence_of_draws(*draws, both, {("challenges", "gad7"): 1}))
    5
    """
    questionnaires = load_questionnaires(questionnaires)
    place = {item.id: k for k, item in enumerate(i for q in questionnaires for i in q.items)}
    items_of = {q.id: [place[item.id] for item in q.items] for q in questionnaires}
    source, inverse, width = _check_draws((source, inverse, width), len(place))
    real = _list_real(items_of, expected)
    parts = {
        scale.id: [place[item] for item in q.keys(scale)]
        for q in questionnaires
        if q.id in real
        for scale in q.scales
    }
    scales = {name: items_of[name] for name in real} | parts
    implied = _statistics_of_scales(source, scales)

    scored = items_of | parts
    scores = [source[:, :, places].mean(axis=2) for places in scored.values()]
    turned = [inverse[:, :, items_of[name]].mean(axis=2) for name in real]
    rank = rank_correlations(np.stack(scores + turned, axis=2))
    order = list(scored)
    average = width.mean(axis=1)
    of_real = average[:, [k for name in real for k in items_of[name]]]

    kinds = {f"silhouette {name}": average[:, items_of[name]].mean(axis=1) for name in real}
    kinds |= {f"alpha {name}": implied["alpha", name, ""] for name in scales}
    kinds |= {f"omega {name}": implied["omega", name, ""] for name in real}
    kinds |= {f"htmt {a} {b}": implied["htmt", a, b] for a, b in itertools.combinations(real, 2)}
    kinds |= {f"lowest {name}": average[:, items_of[name]].min(axis=1) for name in real}
    kinds["items at 0.6"] = (of_real.round(_DECIMALS) >= 0.6).sum(axis=1)

    for i, j in itertools.combinations(range(len(order)), 2):
        kinds[f"ρ {order[i]} {order[j]}"] = rank[:, i, j]

    signed = [sign * rank[:, order.index(a), order.index(b)] for (a, b), sign in expected.items()]
    agreement = [rank[:, order.index(name), len(order) + k] for k, name in enumerate(real)]
    summary = {
        "silhouette": of_real.mean(axis=1),
        "alpha": np.mean([kinds[f"alpha {name}"] for name in real], axis=0),
        "omega": np.mean([kinds[f"omega {name}"] for name in real], axis=0),
        "correlations": np.min(signed, axis=0),
        "source and inverse": np.mean(agreement, axis=0),
    }

    return pd.DataFrame(summary | kinds)


def _list_real(names: Iterable[str], expected: Mapping[tuple[str, str], int]) -> list[str]:
    """Return the questionnaires of the expected pairs, in order; all others are placebos."""
    pairs = [*expected] if isinstance(expected, Mapping) else []
    if not pairs or not all({*pair} <= {*names} for pair in pairs):
        listed = ", ".join(names)
        raise ParameterError(f"expected must have pairs of {listed}, got {expected!r:.60}.")

    return [name for name in names if any(name in pair for pair in pairs)]


def _check_draws(cubes: Sequence[np.ndarray], items: int) -> list[np.ndarray]:
    """Return scores and silhouettes as numbers, after checking that all have the right shape."""
    numbers = [as_numbers(name, cube, axes=3) for name, cube in zip(_KINDS, cubes, strict=True)]
    if len({values.shape for values in numbers}) > 1 or numbers[0].shape[2] != items:
        raise ParameterError(f"source, inverse, width: give each (draws, R, {items} items).")
    return numbers


def _statistics_of_scales(
    source: np.ndarray, scales: Mapping[str, list[int]]
) -> dict[tuple[str, str, str], np.ndarray]:
    """Return alpha, omega and HTMT of each draw, missing if there are too few respondents."""
    draws, respondents = source.shape[:2]
    missing = np.full(draws, np.nan)
    statistics = collections.defaultdict[tuple[str, str, str], np.ndarray](missing.copy)
    if respondents >= _FEWEST:
        items = source[:, :, np.concatenate(list(scales.values()))]
        centred = items - items.mean(axis=1, keepdims=True)
        covariances = centred.transpose(0, 2, 1) @ centred / (respondents - 1)
        sizes = pd.Series({name: len(places) for name, places in scales.items()})
        statistics.update(_scale_statistics(covariances, sizes))

    return statistics


def rank_correlations(scores: np.ndarray) -> np.ndarray:
    """Return Spearman's correlations of scores, shape (draws, R, S), as (draws, S, S).

    Scores that differ only by rounding share a rank.
    """
    scores = as_numbers("scores", scores, axes=3)
    draws, respondents, count = scores.shape

    if respondents < _FEWEST:
        return np.full((draws, count, count), np.nan)

    ranks = stats.rankdata(merge_near_ties(scores, axis=1), axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)

    return as_correlations(ranks.transpose(0, 2, 1) @ ranks)


def profile_agreement(
    scores: pd.DataFrame,
    scales: pd.Series | None = None,
    cells: pd.Series | None = None,
    draws: int | None = None,
) -> pd.Series:
    r"""Return how well independent respondents agree about items, with a 95 % interval.

    .. math::
        A = \frac{2}{R (R - 1)} \sum_{r < s} z_r \cdot z_s
          = \frac{\lVert \sum_r z_r \rVert^2 - R}{R (R - 1)}

    where :math:`z_r` are the scores of respondent *r*, centred and scaled to length 1. It is the
    mean correlation over pairs of respondents, from :math:`-1/(R - 1)` to 1. Without learning it
    is near 0 on any base, because an untrained head and its negative are equally likely.

    Cells of items, such as scale by key, divide each :math:`z_r` into the means of the cells
    :math:`m_r` and the rest :math:`e_r`, and the agreement into a part between and a part within
    cells:

    .. math::
        A = \frac{2}{R (R - 1)} \sum_{r < s} m_r \cdot m_s
          + \frac{2}{R (R - 1)} \sum_{r < s} e_r \cdot e_s

    The first part is what remains on average if each respondent's scores are dealt anew to the
    items of a cell.

    Parameters
    ----------
    scores : DataFrame, shape (R, items)
        Item scores of respondents that were trained apart on one base. Several runs of a model are
        one respondent. The unit of the scores does not matter. An item to which all respondents
        give the same score is an item that they agree about.
    scales : Series, optional
        The scale of each item, by the items' names, or else in the order of the columns. Each
        respondent's scale means are then removed first, so that only agreement within scales
        counts.
    cells : Series, optional
        The cell of each item, in the same form.
    draws : int, optional
        Number of permutations for the null, in which each respondent's scores are dealt anew to
        the items; by default there is no null.

    Returns
    -------
    Series
        ``value``, ``low`` and ``high`` (jackknife over respondents, missing for two), and the
        numbers of ``respondents`` and ``items``. With cells, the parts ``between`` and ``within``.
        With draws, ``null``, the 95 % point of the permutations, and ``p``, the share of
        permutations with at least this agreement, which counts the observed one; with cells and
        draws, ``p_within``, the same for permutations within the cells.

    Raises
    ------
    ParameterError
        There are fewer than two respondents or items, a score is missing, a respondent occurs twice
        or gives all items the same score, or there is not one scale or cell for each item.

    References
    ----------
    Stephenson (1935) for correlations between persons; Efron and Tibshirani (1993), equation 11.5;
    Phipson and Smyth (2010), equation 2, for p.

    Examples
    --------
    >>> scores = pd.DataFrame([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 3.0, 2.0]])
    >>> float(profile_agreement(scores)["value"].round(3))  # the mean of 1, 0.5 and 0.5
    0.667
    >>> parts = profile_agreement(scores, cells=pd.Series(["a", "b", "b"]))
    >>> parts[["between", "within"]].round(3).tolist()
    [0.75, -0.083]
    """
    values = as_numbers("scores", scores, axes=2)
    number, items = values.shape
    if min(number, items) < 2:
        raise ParameterError(f"scores: {number} by {items}; give two respondents and items.")
    if not np.isfinite(values).all():
        raise ParameterError("scores: some are missing; leave out these items or respondents.")
    table = pd.DataFrame(scores)
    if table.index.has_duplicates:
        raise ParameterError("scores: a respondent occurs twice; average its runs.")

    scales, cells = (
        _groups_of_items(name, groups, table.columns)
        for name, groups in {"scale": scales, "cell": cells}.items()
    )
    unit = _unit_scores(values, scales, table.index)
    total = unit.sum(axis=0)
    value = (total @ total - number) / (number * (number - 1))
    half = np.nan
    if number >= _FEWEST:
        lengths = ((total - unit) ** 2).sum(axis=1)
        without = (lengths - (number - 1)) / ((number - 1) * (number - 2))
        half = float(jackknife_half_width(without))

    low, high = np.clip([value - half, value + half], -1 / (number - 1), 1)
    result = {"value": value, "low": low, "high": high, "respondents": number, "items": items}
    if cells is not None:
        means = _group_means(unit, cells)
        result["between"] = _mean_product(means)
        result["within"] = _mean_product(unit - means)

    if draws is not None:
        check_numbers(draws=draws)
        dealt = _deal_scores(unit, np.zeros(items), draws)
        result["null"] = np.quantile(dealt, 0.95)
        result["p"] = (1 + (dealt >= value - 1e-9).sum()) / (1 + draws)
        if cells is not None:
            dealt = _deal_scores(unit, cells, draws)
            result["p_within"] = (1 + (dealt >= value - 1e-9).sum()) / (1 + draws)

    return pd.Series(result)


def _groups_of_items(name: str, groups: pd.Series | None, items: pd.Index) -> np.ndarray | None:
    """Return the group of each item, by the items' names or else in their order."""
    if groups is None:
        return None

    groups = pd.Series(groups)
    if not groups.index.equals(pd.RangeIndex(len(groups))):
        groups = groups[~groups.index.duplicated(keep=False)].reindex(items)
    if len(groups) != len(items) or groups.isna().any():
        raise ParameterError(f"{name}s: give a {name} for each of the {len(items)} items.")
    return np.asarray(groups)


def _unit_scores(values: np.ndarray, scales: np.ndarray | None, names: pd.Index) -> np.ndarray:
    """Return scores without scale means, centred and scaled to length 1 for each respondent."""
    size = np.abs(values).max(axis=1, keepdims=True)
    if scales is not None:
        values = values - _group_means(values, scales)

    centred = values - values.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    for name in names[(length <= 1e-12 * size)[:, 0]]:  # rounding is all that is left
        raise ParameterError(f"scores: {name} gives all items one score; leave it out.")

    return np.asarray(centred / length)


def _group_means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return each respondent's mean over the items of an item's group, shape (R, items)."""
    return np.asarray(pd.DataFrame(values.T).groupby(groups).transform("mean")).T


def _mean_product(vectors: np.ndarray) -> float:
    """Return the mean product over pairs of rows."""
    total = vectors.sum(axis=0)
    number = len(vectors)
    return float((total @ total - (vectors**2).sum()) / (number * (number - 1)))


def _deal_scores(unit: np.ndarray, groups: np.ndarray, draws: int) -> np.ndarray:
    """Return the agreement after dealing each respondent's scores anew within groups of items."""
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(groups == group) for group in pd.unique(groups)]
    agreement = np.empty(draws)
    dealt = unit.copy()
    for draw in range(draws):
        for items in places:
            dealt[:, items] = rng.permuted(unit[:, items], axis=1)
        agreement[draw] = _mean_product(dealt)

    return agreement


def jackknife(
    statistic: Callable[[pd.DataFrame], pd.Series], table: pd.DataFrame, bases: pd.Series
) -> pd.DataFrame:
    r"""Return half widths of 95 % intervals, by leaving out each respondent in turn.

    .. math:: s^2 = \frac{n-1}{n} \sum_i (\theta_{-i} - \bar\theta)^2

    within a base of *n* respondents; the half width is *s* times Student's quantile.

    Parameters
    ----------
    statistic : callable
        A function that takes rows of the table and returns statistics by name.
    table : DataFrame
        One row per respondent.
    bases : Series
        As in :func:`evidence`.

    Returns
    -------
    DataFrame
        Half widths by base, with a row ``both`` for the mean weighted by numbers of respondents.

    References
    ----------
    Efron and Tibshirani (1993), equation 11.5.

    Examples
    --------
    >>> table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    >>> found = jackknife(pd.DataFrame.mean, table, pd.Series(["a"] * 4))
    >>> float(found.loc["a", "x"].round(3))
    2.054
    """
    check_kinds({"statistic": statistic}, {"statistic": Callable})
    _check_bases(table, bases)

    halves = {}
    for base in pd.unique(np.asarray(bases)):
        within = table[np.asarray(bases) == base]
        number = len(within)
        if number < _FEWEST:
            halves[base] = pd.Series(dtype=float)
            continue

        estimates = pd.DataFrame([statistic(within.drop(index=row)) for row in within.index])
        width = jackknife_half_width(estimates.to_numpy(float))
        halves[base] = pd.Series(width, estimates.columns)

    return np.sqrt(_with_mean(pd.DataFrame(halves).T ** 2, bases, 2))


def _check_bases(table: pd.DataFrame, bases: pd.Series) -> None:
    """Refuse bases that do not name the base of each row of a table."""
    if not isinstance(table, pd.DataFrame) or np.shape(bases) != (len(table),):
        raise ParameterError("bases: the table needs one row for each entry of bases.")


def _with_mean(values: pd.DataFrame, bases: pd.Series, power: int = 1) -> pd.DataFrame:
    """Add the mean over bases, weighted by respondents (variances by the squared weights)."""
    weights = values.notna().mul(pd.Series(np.asarray(bases)).value_counts(), axis=0)
    shares = (weights / weights.sum()) ** power
    values.loc["both"] = values.mul(shares).sum(min_count=1)
    return values


def resized(answers: pd.DataFrame, like: pd.DataFrame, factor: float = 1.0) -> pd.DataFrame:
    """Rescale answers as if heads had weights of a different size, and no preference for a class.

    The *size* of a respondent is the root mean square of its log probabilities, minus their means
    over classes and over prompts. The size of an untrained head's weights is arbitrary, and so is
    the distance of its answers from uniform probabilities.

    Parameters
    ----------
    answers : DataFrame
        NLI answers, grouped by respondent; all respondents answer the same prompts in the same
        order.
    like : DataFrame
        Answers of equally many respondents, to whose sizes ``answers`` are rescaled.
    factor : float
        Factor by which these sizes are multiplied.

    Returns
    -------
    DataFrame
        The answers with new probabilities. If neutral and contradiction are pooled, each gets half
        of the remaining probability.

    Raises
    ------
    ParameterError
        A column is missing or not numeric, the two tables differ in the number of respondents, a
        respondent lacks answers, or the factor is out of range.

    Examples
    --------
    >>> from psychometrics import null_answers
    >>> heads, others = (null_answers("challenges", "noise", 2, seed=s) for s in (0, 2))
    >>> larger = resized(heads, others, 4)
    >>> bool(larger["entailment"].std() > heads["entailment"].std())
    True
    """
    if not isinstance(factor, Real) or not 0 < factor <= _LARGEST_FACTOR:
        raise ParameterError(f"factor must be from 0 to {_LARGEST_FACTOR}, got {factor!r}.")

    values = _logits(answers)
    goals = _logits(like)
    if len(values) != len(goals):
        raise ParameterError(f"like: give {len(values)} respondents, as many as in answers.")

    size, goal = (np.sqrt((x**2).mean(axis=(1, 2), keepdims=True)) for x in (values, goals))
    values = np.exp(values / size * goal * factor)
    values /= values.sum(axis=2, keepdims=True)
    return answers.assign(**dict(zip(_CLASSES, values.reshape(-1, 3).T, strict=True)))


def _logits(answers: pd.DataFrame) -> np.ndarray:
    """Return log probabilities minus their means, shape (R, prompts, 3)."""
    check_columns(answers, ["respondent_id"], _CLASSES)
    counts = answers["respondent_id"].value_counts()
    if answers.empty or counts.nunique() > 1:
        raise ParameterError("All respondents must answer the same prompts; complete the answers.")

    half_of_rest = (1 - answers["entailment"]) / 2
    shares = answers[_CLASSES].apply(lambda share: share.fillna(half_of_rest))
    logs: np.ndarray = np.log(np.maximum(shares.to_numpy(dtype=float), 1e-12))
    logs = logs.reshape(answers["respondent_id"].nunique(), -1, 3)
    logs -= logs.mean(axis=2, keepdims=True)
    logs -= logs.mean(axis=1, keepdims=True)

    return logs


def reached(observed: pd.Series, draws: pd.DataFrame) -> pd.DataFrame:
    r"""Compare observed statistics with independent draws of a null, in either direction.

    .. math:: p = \min\left(1, 2\,\frac{1 + \min(b_\ge, b_\le)}{1 + m}\right)

    for *m* draws, of which :math:`b_\ge` are at least as large and :math:`b_\le` at most as large.

    Parameters
    ----------
    observed : Series
        Statistics by name.
    draws : DataFrame, shape (m, statistics)
        Draws, with one column per statistic; missing draws are left out.

    Returns
    -------
    DataFrame
        Indexed by statistic: ``observed``; ``null`` (median), ``null low, null high`` (central 95
        %); ``reach``, the share of draws that are at least as large as the observed value; ``p``;
        ``draws``.

    Raises
    ------
    ParameterError
        A statistic has no draws.

    References
    ----------
    Clopper and Pearson (1934); Phipson and Smyth (2010), equation 2.

    Examples
    --------
    >>> found = reached(pd.Series({"r": 0.8}), pd.DataFrame({"r": [0.0, 0.9, -0.9, 0.5]}))
    >>> found.loc["r", ["null", "reach", "p"]].tolist()
    [0.25, 0.25, 0.8]
    """
    if not isinstance(observed, pd.Series):
        raise ParameterError(f"observed must be a Series of statistics, got {observed!r:.60}.")
    check_columns(draws, (), gaps=observed.index)
    rows = {}
    for name, value in observed.items():
        sample = draws[name].dropna().to_numpy(dtype=float)
        row = {"observed": value, "draws": len(sample)}
        if len(sample) and np.isfinite(value):
            low, middle, high = np.quantile(sample, [0.025, 0.5, 0.975])
            # rank correlations tie, and shipped draws are in single precision
            above = (sample >= value - 1e-6).sum()
            below = (sample <= value + 1e-6).sum()
            row |= {"null": middle, "null low": low, "null high": high}
            row["reach"] = above / len(sample)
            row["p"] = min(1.0, 2 * (1 + min(above, below)) / (1 + len(sample)))

        rows[name] = row

    columns = ["observed", "null", "null low", "null high", "reach", "p", "draws"]
    return pd.DataFrame.from_dict(rows, orient="index").reindex(columns=columns)
