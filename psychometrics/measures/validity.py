"""Evidence that a scale measures what it says and nothing else: terms, correlations, methods."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from ..asking.answers import check_columns, check_numbers
from ..exceptions import ParameterError
from ..questionnaires.model import Questionnaire
from .scoring import keyed_items, template_cubes, two_way

TEMPERATURES = (0.5, 1.0, 2.0)
"""Of the two-way normalisation, in the multiverse."""
_LEAST = 4
"""Respondents below whom a rank correlation tells nothing: three have six orders."""
_LEAST_UNIQUE = 0.005
"""Bound of unique variances in factors by least squares, as psych in R has it."""


def term_silhouettes(shares: pd.DataFrame) -> pd.DataFrame:
    r"""Silhouette of source against inverse terms on their PSS rows, per respondent and item.

    With the mean distance :math:`a_i` of a term to those of its own kind and :math:`b_i` to those
    of the other,

    .. math:: s = \frac1T \sum_i \frac{b_i - a_i}{\max(a_i, b_i)}

    Parameters
    ----------
    shares : DataFrame
        As :func:`psychometrics.measures.scoring.pss` gives it.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, silhouette``, from -1 (each term is closer to
        the other kind) to 1 (two tight groups); correlation distance, mean over the item's
        templates. Rows without variance are as far from each other as uncorrelated ones. Missing
        where a template has terms of one kind only, or no more than one of each, or lacks an
        answer.

    Raises
    ------
    ParameterError
        A column is missing or holds no numbers, or a respondent answered a prompt twice.

    Notes
    -----
    An interval for a respondent's mean over items, as if the items were drawn again:
    ``wide = silhouettes.pivot(index="respondent_id", columns="item_id", values="silhouette")``,
    then :func:`psychometrics.measures.intervals.mean_interval` of ``wide.to_numpy()``. For a
    scale, the
    same of ``wide.mean()``, the items' means over respondents.

    References
    ----------
    Reuben et al. (2024), section 3.3 (intra-question consistency); Rousseeuw (1987). By hand for
    all respondents at once; scikit-learn's, one table at a time and undefined for rows without
    variance, gives the same.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.measures.scoring import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> term_silhouettes(pss(answers))["silhouette"].round(2).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    keys = ["questionnaire", "item_id", "template"]
    check_columns(
        shares, [*keys, "respondent_id", "polarity", "term", "intensifier"], ["level", "pss"]
    )
    rows = []
    told = ["questionnaire", "item_id", "template", "respondent_id", "polarity", "term", "level"]
    texts = [shares[name].to_numpy() for name in [*told, "intensifier"]]
    for own, places, cube in template_cubes(shares, shares["pss"].to_numpy(dtype=float)):
        questionnaire, item, template, who, kind, term, level, word = (t[own] for t in texts)
        if len(np.unique(np.ravel_multi_index(places, cube.shape))) < len(own):
            raise ParameterError(
                f"{questionnaire[0]}, item {item[0]}, template {template[0]}: a prompt has two "
                "answers of one respondent; choose one way of asking first."
            )
        firsts = [  # of each respondent, term and intensifier an answer, in an order of their own
            sorted(
                np.unique(place, return_index=True)[1],
                key=lambda row, by=by: tuple(values[row] for values in by),
            )
            for place, by in zip(places, ((who,), (kind, term), (level, word)), strict=True)
        ]
        cube = cube[np.ix_(*(place[first] for place, first in zip(places, firsts, strict=True)))]
        values = silhouettes(cube, kind[firsts[1]])
        rows += [
            (name, questionnaire[0], item[0], value)
            for name, value in zip(who[firsts[0]], values, strict=True)
        ]
    columns = ["respondent_id", "questionnaire", "item_id", "silhouette"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.groupby(columns[:3], sort=False)["silhouette"].mean().reset_index()


def silhouettes(cube: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean silhouette of each of R tables of T rows, whose labels are the same in all.

    Parameters
    ----------
    cube : ndarray, shape (R, T, L)
        PSS of each term (row) on each intensifier, of R respondents or choices of terms.
    labels : ndarray, shape (T,)
        The terms' kinds.

    Returns
    -------
    ndarray, shape (R,)
        As in :func:`term_silhouettes`, whose work this does for one template.

    Examples
    --------
    >>> rows = np.array([[0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1], [0.7, 0.2, 0.1]])
    >>> silhouettes(rows[None], np.array([1, 1, -1, -1])).round(2).tolist()
    [0.99]
    """
    own = labels[:, None] == labels[None, :]
    if not 1 < len(np.unique(labels)) < len(labels):
        return np.full(len(cube), np.nan)
    centred = cube - cube.mean(axis=2, keepdims=True)
    length = np.linalg.norm(centred, axis=2, keepdims=True)
    units = np.divide(centred, length, out=np.zeros_like(centred), where=length > 1e-12)
    distance = np.clip(1 - units @ units.transpose(0, 2, 1), 0, 2)
    diagonal = np.arange(len(labels))
    distance[:, diagonal, diagonal] = 0
    alone = own.sum(axis=1) == 1
    inside = (distance * own).sum(axis=2) / np.maximum(own.sum(axis=1) - 1, 1)
    outside = (distance * ~own).sum(axis=2) / (~own).sum(axis=1)
    larger = np.maximum(inside, outside)
    width = np.divide(outside - inside, larger, out=np.zeros_like(larger), where=larger > 0)
    found = np.where(alone, 0.0, width).mean(axis=1)
    return np.where(np.isnan(cube).any(axis=(1, 2)), np.nan, found)


def correlations(
    scores: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    reliabilities: pd.Series | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Correlations between scales over respondents, with what is needed to judge them.

    Corrected for attenuation by the reliabilities :math:`\alpha` of the two scales,

    .. math:: r^* = \frac{r_{xy}}{\sqrt{\alpha_x \alpha_y}}

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
        Scale scores, respondents as index. A pair is computed over the respondents with both.
    pairs : sequence of (str, str)
        Which columns to correlate.
    reliabilities : Series, optional
        Reliability by scale, for the correction for attenuation.
    n_resamples : int
        Bootstrap samples, and permutations.
    seed : int
        Seed of both.

    Returns
    -------
    DataFrame
        Per pair: ``n``, the respondents with both scores; ``spearman`` with its percentile
        interval ``spearman_low, spearman_high``; ``pearson`` of the normal scores with
        ``pearson_low, pearson_high``; ``p``, two-sided, by permutation of Spearman's rho;
        ``p_holm`` over the pairs that have a p; ``corrected``, Pearson's r over the root of the
        product of the reliabilities (it may exceed 1; missing without a positive reliability).
        With fewer than four respondents, or a scale on which they are all alike, a pair has ``n``
        and nothing else.

    Raises
    ------
    ParameterError
        There are fewer than four respondents in the table, no pair or no such scale; a respondent
        or a scale stands twice, or something is no number.

    References
    ----------
    Reuben et al. (2024), section 4 (construct validity); Spearman (1904) for attenuation;
    Phipson and Smyth (2010) for p values that are never zero; Holm (1979), by statsmodels.

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [2.0, 1.0, 4.0, 3.0, 5.0]})
    >>> correlations(scores, [("x", "y")], n_resamples=100)["spearman"].round(2).tolist()
    [0.8]
    """
    from pingouin import multicomp  # slow to load

    check_numbers(n_resamples=n_resamples, seed=seed)
    pairs = _checked_pairs(scores, pairs)
    if reliabilities is not None:
        reliabilities = _reliabilities(reliabilities, {name for pair in pairs for name in pair})
    if len(scores) < _LEAST:
        raise ParameterError(f"At least {_LEAST} respondents are needed, got {len(scores)}.")
    rows = []
    for first, second in pairs:
        x, y = _complete(scores[first], scores[second])
        ranks = [stats.rankdata(v) for v in (x, y)]
        rank = _bootstrap_correlation(*ranks, n_resamples, seed, ranked=True)
        normal = [_normal_scores(v) for v in (x, y)]
        pearson = _bootstrap_correlation(*normal, n_resamples, seed)
        row = {"first": first, "second": second, "n": len(x)}
        row |= dict(zip(("spearman", "spearman_low", "spearman_high"), rank, strict=True))
        row |= dict(zip(("pearson", "pearson_low", "pearson_high"), pearson, strict=True))
        row["p"] = _permutation_p(*ranks, n_resamples, seed)
        if reliabilities is not None:
            product = max(reliabilities[first], 0) * max(reliabilities[second], 0)
            row["corrected"] = pearson[0] / np.sqrt(product) if product else np.nan
        rows.append(row)
    frame = pd.DataFrame(rows)
    adjusted = frame["p"].copy()
    if (there := adjusted.notna()).any():
        adjusted[there] = multicomp(adjusted[there].to_numpy(), method="holm")[1]
    frame.insert(frame.columns.get_loc("p") + 1, "p_holm", adjusted)
    return frame


def partial_correlations(
    scores: pd.DataFrame, pairs: Sequence[tuple[str, str]], control: pd.Series | pd.DataFrame
) -> pd.DataFrame:
    """Spearman correlations between scales with one or more other variables held constant.

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
        Scale scores, respondents as index.
    pairs : sequence of (str, str)
        Which columns to correlate.
    control : Series, shape (R,), or DataFrame, shape (R, controls)
        What to hold constant, respondents as index: matched with `scores` by it. A control that
        follows from the others changes nothing.

    Returns
    -------
    DataFrame
        ``first, second, n, partial, low, high, p``; 95 % interval by Fisher's z, from pingouin.
        ``n`` counts the respondents with both scores and every control. The rest is missing where
        a scale is constant or follows from the controls, or where there are too few respondents
        for the interval: fewer than four more than controls.

    Raises
    ------
    ParameterError
        There is no pair or no such scale, a respondent or a column stands twice, something is no
        number, the control has no respondent of the scores, or a control does not vary.

    References
    ----------
    Vallat (2018), pingouin; of ranks, as ``ppcor::pcor.test(method = "spearman")`` in R.

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [1, 2, 3, 4, 5, 6.0], "y": [2, 1, 4, 3, 6, 5.0]})
    >>> control = pd.Series([1, 3, 2, 5, 4, 6.0])
    >>> partial_correlations(scores, [("x", "y")], control)["partial"].round(2).tolist()
    [0.98]
    """
    import pingouin  # slow to load

    pairs = _checked_pairs(scores, pairs)
    held = control.to_frame("control") if isinstance(control, pd.Series) else control
    check_columns(held, ())
    _each_once(held)
    check_columns(held, (), held.columns)
    if not held.shape[1]:
        raise ParameterError("There is no control; use correlations.")
    held = held.reindex(scores.index).apply(pd.to_numeric).astype(float)
    held.columns = [f"control {n}" for n in range(held.shape[1])]
    if held.isna().all(axis=None):
        raise ParameterError("The control has no respondent of the scores; give both one index.")
    if (held.nunique() < 2).any():
        raise ParameterError("What is held constant is so already; leave the control out.")
    rows = []
    for first, second in pairs:
        both = {"x": pd.to_numeric(scores[first]), "y": pd.to_numeric(scores[second])}
        table = held.assign(**both).astype(float).dropna()
        row = {"first": first, "second": second, "n": len(table)}
        row |= dict.fromkeys(("partial", "low", "high", "p"), np.nan)
        kept = _independent(table.rank()[held.columns])
        if len(table) >= len(kept) + _LEAST and _left(table.rank(), kept):
            result = pingouin.partial_corr(table, "x", "y", kept or None, method="spearman")
            r, p, interval = result.iloc[0][["r", "p_val", "CI95"]]
            row |= {"partial": r, "low": interval[0], "high": interval[1], "p": p}
        rows.append(row)
    return pd.DataFrame(rows)


def multiverse(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    temperatures: Sequence[float] = TEMPERATURES,
) -> pd.DataFrame:
    """Correlations between whole scales under every defensible choice.

    Parameters
    ----------
    responses : DataFrame
        Answers to all the questionnaires, as :func:`psychometrics.asking.ask` gives them. A
        respondent
        who lacks an answer to a template that counts in a specification is left out of it.
    questionnaires : sequence of Questionnaire
    pairs : sequence of (str, str)
        Ids of the questionnaires to correlate.
    temperatures : sequence of float
        Of the two-way normalisation.

    Returns
    -------
    DataFrame
        One row per pair and specification: ``first, second, score`` (entailment or contrast),
        ``temperature, terms`` (source, inverse or both), ``templates`` (all, first or last of
        each item), ``transform`` (raw or normal scores), ``r`` (Pearson's), missing where fewer
        than three respondents answered both or all score alike; ``n``, respondents with both.

    Raises
    ------
    ParameterError
        There is no questionnaire of a pair among the answers or among those given, or a respondent
        has answered a prompt twice.

    References
    ----------
    Steegen et al. (2016); Simonsohn, Simmons and Nelson (2020) for specification curves.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> table = pd.concat([prompts(q) for q in both])
    >>> answers = pd.concat([
    ...     table.assign(respondent_id=r, entailment=0.5 + s * table["polarity"] * table["weight"],
    ...                  contradiction=0.2) for r, s in (("a", 0.1), ("b", 0.05), ("c", -0.1))])
    >>> worlds = multiverse(answers, both, [("challenges", "gad7")], temperatures=[1.0])
    >>> len(worlds), worlds["r"].round(1).unique().tolist()
    (36, [1.0])
    """
    check_columns(responses, ["respondent_id", "questionnaire"])
    named = list(dict.fromkeys(name for pair in pairs for name in pair))
    if not named or not len(temperatures):
        raise ParameterError("A multiverse needs a pair of questionnaires and a temperature.")
    if lacking := set(named) - set(responses["questionnaire"]):
        raise ParameterError(f"There are no answers to '{min(lacking)}'; ask that too.")
    if lacking := set(named) - {q.id for q in questionnaires}:
        raise ParameterError(f"The questionnaire '{min(lacking)}' is not given; give it too.")
    _, worlds = _scales(responses, questionnaires, pairs, temperatures)
    return _correlated(worlds, pairs)


def multiverses(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    size: int,
    draws: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """The multiverse of many populations drawn from those that answered.

    Parameters
    ----------
    responses : DataFrame
        As :func:`psychometrics.asking.ask` gives them, of more respondents than a population has.
    questionnaires, pairs
        As in :func:`multiverse`.
    size, draws, seed
        Respondents in a population, drawn without repetition; how many; seed.

    Returns
    -------
    DataFrame
        A row for each row of :func:`multiverse`, a column for each draw:
        Pearson's r.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.measures.nulls import null_answers
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> answers = null_answers(both, "noise", respondents=5)
    >>> multiverses(answers, both, [("challenges", "gad7")], 4, draws=2).shape
    (108, 2)
    """
    rng = np.random.default_rng(seed)
    answers = responses[responses["questionnaire"].isin([q.id for q in questionnaires])]
    everyone = answers["respondent_id"].unique()
    people, worlds = _scales(answers, questionnaires, pairs, TEMPERATURES)
    runs = []
    for _ in range(draws):
        places = people.get_indexer(rng.permutation(everyone)[:size])
        runs.append(_correlated(worlds, pairs, places[places >= 0])["r"])
    return pd.concat(runs, axis=1, keys=range(draws))


def multitrait_multimethod(
    scores: Mapping[str, pd.DataFrame],
    reliabilities: pd.DataFrame | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Spearman correlations between traits measured by several methods, each with its interval.

    Parameters
    ----------
    scores : mapping of str to DataFrame
        Scale scores (respondents by scales) by method, such as the response mode; matched by
        respondent.
    reliabilities : DataFrame, optional
        For the diagonal: columns ``r`` (or ``alpha``), ``low, high``, indexed by method and trait.
    n_resamples : int
        Bootstrap samples of the respondents.
    seed : int
        Of the bootstrap, the same for every cell.

    Returns
    -------
    DataFrame
        One row per cell of the lower triangle and the diagonal: ``method_1, trait_1, method_2,
        trait_2, kind`` (``reliability``, ``monotrait-heteromethod``, ``heterotrait-monomethod``,
        ``heterotrait-heteromethod``), ``r, low, high``, ``n`` respondents with both scores. The
        same trait by two methods should correlate more than different traits do. A cell is
        missing where fewer than four respondents have both scores or score alike; the diagonal is
        missing without `reliabilities`. The matrix is ``found.pivot(index=["method_1",
        "trait_1"], columns=["method_2", "trait_2"], values="r")``.

    Raises
    ------
    ParameterError
        There is no method, fewer than four respondents are common to all methods, a respondent or
        a scale stands twice, or something is no number.

    References
    ----------
    Campbell and Fiske (1959).

    Examples
    --------
    >>> one = pd.DataFrame({"trait": [1.0, 2.0, 3.0, 4.0, 5.0]})
    >>> two = pd.DataFrame({"trait": [1.0, 3.0, 2.0, 4.0, 5.0]})
    >>> multitrait_multimethod({"nli": one, "mlm": two})[["kind", "r"]].round(2).to_numpy().tolist()
    [['reliability', nan], ['monotrait-heteromethod', 0.9], ['reliability', nan]]
    """
    check_numbers(n_resamples=n_resamples, seed=seed)
    if not scores:
        raise ParameterError("There is no method; give each method's table of scores by name.")
    for table in scores.values():
        check_columns(table, ())
        _each_once(table)
        check_columns(table, (), table.columns)
    common = set.intersection(*(set(table.index) for table in scores.values()))
    if len(common) < _LEAST:
        raise ParameterError(
            f"At least {_LEAST} respondents are needed in all methods, got {len(common)}."
        )
    known = _diagonal(reliabilities)
    wide = {(method, trait): table[trait] for method, table in scores.items() for trait in table}
    rows = []
    for number, (one, x) in enumerate(wide.items()):
        for two, y in list(wide.items())[: number + 1]:
            same_trait, same_method = one[1] == two[1], one[0] == two[0]
            pair = _complete(x, y.reindex(x.index))
            kind = (
                "reliability"
                if same_trait and same_method
                else f"{'mono' if same_trait else 'hetero'}trait-"
                f"{'mono' if same_method else 'hetero'}method"
            )
            if kind == "reliability":
                cell = known.get(one, (np.nan,) * 3)
            else:
                ranks = map(stats.rankdata, pair)
                cell = _bootstrap_correlation(*ranks, n_resamples, seed, ranked=True)
            rows.append((*one, *two, kind, *cell, len(pair[0])))
    columns = ["method_1", "trait_1", "method_2", "trait_2", "kind", "r", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def item_deals(
    items: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    reverse: Sequence[str] = (),
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """What scales of the same sizes show when the items are dealt to them at random.

    Statistics that hold for random deals as well say something of all the items together, and
    nothing of the constructs by which the questionnaires divide them.

    Parameters
    ----------
    items : DataFrame
        As :func:`psychometrics.measures.scoring.item_scores` gives them.
    questionnaires : sequence of Questionnaire
        Their scales that are no part of another scale are dealt anew, together.
    reverse : sequence of str
        Scales whose construct points the other way, such as the sense of coherence among scales of
        distress: their items are turned before the deal, and the dealt correlations turned back.
    draws, seed
        Of the deals.

    Returns
    -------
    DataFrame
        ``draw`` (from 1), ``statistic, first, second, value``, and ``own``, the same statistic of
        the questionnaires' own scales. Per pair of scales ``spearman`` and ``htmt`` (of
        :func:`heterotrait_monotrait`); per scale, with ``second`` empty, ``alpha`` and ``first
        component``, its share of the items' variance. ``n`` respondents have every item. A
        statistic is missing where an item of it does not vary.

    Raises
    ------
    ParameterError
        There are fewer than two scales, an item stands in two or has no score, a scale to reverse
        is not there, or fewer than four respondents have every item.

    References
    ----------
    This book; the null distribution of Phipson and Smyth (2010), with items in place of groups.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> both = [load_questionnaire(name) for name in ("gad7", "challenges")]
    >>> rows = [(f"r{r}", q.id, item.id, item.keying * (r + (r * n) % 3))
    ...         for q in both for r in range(9) for n, item in enumerate(q.items)]
    >>> items = pd.DataFrame(rows, columns=["respondent_id", "questionnaire", "item_id", "score"])
    >>> dealt = item_deals(items, both, draws=5)
    >>> dealt.query("statistic == 'spearman'")["value"].between(-1, 1).all()
    np.True_
    """
    check_numbers(draws=draws, seed=seed)
    values, sizes = _pooled(items, questionnaires, least=2)
    if lacking := set(reverse) - set(sizes):
        raise ParameterError(f"There is no scale '{min(lacking)}' to reverse.")
    signs = np.array([-1.0 if name in reverse else 1.0 for name in sizes])
    turned = values * np.repeat(signs, list(sizes.values()))
    order = np.arange(values.shape[1])
    dealt = np.random.default_rng(seed).permuted(np.tile(order, (draws, 1)), axis=1)
    found = _deal_statistics(turned, np.vstack([order, dealt]), list(sizes.values()), signs)
    names, parts = list(sizes), []
    for (statistic, first, second), series in found.items():
        row = {"draw": np.arange(1, draws + 1), "statistic": statistic, "first": names[first]}
        row |= {"second": "" if second is None else names[second]}
        parts.append(pd.DataFrame(row | {"value": series[1:], "own": series[0]}))
    return pd.concat(parts, ignore_index=True).assign(n=len(values))


def heterotrait_monotrait(
    items: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Heterotrait-monotrait ratio of every two scales: do their items tell them apart?

    With the mean correlation of items of one scale with those of the other above, and the mean
    correlations of items within each scale below,

    .. math:: HTMT_{xy} = \frac{\bar r_{xy}}{\sqrt{\bar r_{xx}\, \bar r_{yy}}}

    Parameters
    ----------
    items : DataFrame
        As :func:`psychometrics.measures.scoring.item_scores` gives them.
    questionnaires : sequence of Questionnaire
        Their scales that are no part of another scale.
    n_resamples : int
        Bootstrap samples of the respondents.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        ``first, second, n`` (respondents with every item), ``heterotrait, monotrait_first,
        monotrait_second`` (mean correlations), ``htmt``, ``low, high`` (percentile interval). It is
        negative for constructs that point opposite ways. Magnitudes below 0.85 are taken to speak
        for two constructs, and intervals that hold 1 against; above 1, items go with the other
        scale's more than with their own. Missing where an item does not vary, or a scale's items
        do not go together on average.

    Raises
    ------
    ParameterError
        There are fewer than two scales, an item stands in two or has no score, or fewer than four
        respondents have every item.

    Notes
    -----
    It needs item correlations one at a time and therefore no more respondents than items. With
    true ratios of 0.5, the intervals for scales of 7 to 13 items hold them 90 times of 100 with 24
    respondents, 94 times with 60.

    References
    ----------
    Henseler, Ringle and Sarstedt (2015).

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> both = [load_questionnaire(name) for name in ("gad7", "challenges")]
    >>> rows = [(f"r{r}", q.id, item.id, item.keying * (r + (r * n) % 3))
    ...         for q in both for r in range(9) for n, item in enumerate(q.items)]
    >>> items = pd.DataFrame(rows, columns=["respondent_id", "questionnaire", "item_id", "score"])
    >>> heterotrait_monotrait(items, both, n_resamples=20)["htmt"].round(2).tolist()
    [1.01]
    """
    check_numbers(n_resamples=n_resamples, seed=seed)
    values, sizes = _pooled(items, questionnaires, least=2)
    draws = np.random.default_rng(seed).integers(0, len(values), (n_resamples, len(values)))
    matrices = _correlation_matrices(np.vstack([values[None], values[draws]]))
    names, means = list(sizes), _block_means(matrices, list(sizes.values()))
    rows = []
    for i, j in itertools.combinations(range(len(names)), 2):
        ratio = _htmt(means, i, j)
        low, high = _percentiles(ratio[1:])
        row = {"first": names[i], "second": names[j], "n": len(values)}
        row |= {"heterotrait": means[0, i, j], "monotrait_first": means[0, i, i]}
        row |= {"monotrait_second": means[0, j, j], "htmt": ratio[0]}
        known = np.isfinite(ratio[0])
        row |= {"low": low if known else np.nan, "high": high if known else np.nan}
        rows.append(row)
    return pd.DataFrame(rows)


def components(
    items: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Principal components of all the items together, against those of unrelated items.

    Parameters
    ----------
    items : DataFrame
        As :func:`psychometrics.measures.scoring.item_scores` gives them.
    questionnaires : sequence of Questionnaire
        Their scales that are no part of another scale are pooled.
    draws : int
        Tables in which each item's scores are dealt anew to the respondents.
    seed : int
        Of these.

    Returns
    -------
    DataFrame
        Per component, largest first: ``component`` (from 1), ``eigenvalue`` of the item
        correlations, ``share`` of the variance with its 95 % interval ``low, high`` (jackknife
        over respondents, in 50 groups where there are more), ``chance, chance_high`` (median and
        95 % point of the share among the tables dealt anew), ``kept``: it and all before it are
        above that point; ``n`` respondents have every item, of ``items``. Numbers are missing where
        an item does not vary.

    Raises
    ------
    ParameterError
        An item stands in two scales or has no score, there are fewer than two items, or fewer than
        four respondents have every item.

    Notes
    -----
    One component that carries most of the variance is what several scales of one construct show,
    and what one tendency in all answers shows as well. The number of components is defined for
    fewer respondents than items, where factor models by maximum likelihood are not. The interval
    of the first share holds the true one 92 times of 100 with 24 respondents, 94 times with 60.

    References
    ----------
    Horn (1965), with permuted scores in place of normal ones; the 95 % point of Glorfeld (1995).

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> gad = load_questionnaire("gad7")
    >>> rows = [(f"r{r}", "gad7", item.id, r + (r * n) % 3)
    ...         for r in range(9) for n, item in enumerate(gad.items)]
    >>> items = pd.DataFrame(rows, columns=["respondent_id", "questionnaire", "item_id", "score"])
    >>> components(items, [gad], draws=50)["share"].round(2).tolist()[:2]
    [0.97, 0.01]
    """
    check_numbers(draws=draws, seed=seed)
    values, _ = _pooled(items, questionnaires)
    people, size = values.shape
    if size < 2:
        raise ParameterError("One item has no components; give a questionnaire of several.")
    rng = np.random.default_rng(seed)
    mixed = rng.permuted(np.tile(values, (draws, 1, 1)), axis=1)

    def shares(tables: np.ndarray) -> np.ndarray:
        return _eigenvalues(_correlation_matrices(tables)) / size

    own, chance = shares(values[None])[0], shares(mixed)
    reach = _jackknife(values, lambda part: shares(part[None])[0])
    top = np.quantile(chance, 0.95, axis=0)
    return pd.DataFrame(
        {
            "component": np.arange(1, size + 1),
            "eigenvalue": own * size,
            "share": own,
            "low": np.clip(own - reach, 0, 1),
            "high": np.clip(own + reach, 0, 1),
            "chance": np.median(chance, axis=0),
            "chance_high": top,
            "kept": np.cumprod(own > top).astype(bool),
            "n": people,
            "items": size,
        }
    )


def factor_models(
    items: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    parcels: int | None = None,
    draws: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    r"""One common factor against one factor a scale, by confirmatory factor analysis.

    Maximum likelihood makes :math:`F = \log|\Sigma| + tr(S\Sigma^{-1}) - \log|S| - p` smallest for
    the p observed variables, with :math:`\Sigma = \Lambda\Phi\Lambda^\top + \Theta`;
    :math:`\chi^2 = R F`. The two models are nested: in the first all :math:`\Phi` are 1 or -1.

    Parameters
    ----------
    items : DataFrame
        As :func:`psychometrics.measures.scoring.item_scores` gives them.
    questionnaires : sequence of Questionnaire
        Their scales that are no part of another scale.
    parcels : int, optional
        Means of items in so many parcels a scale in place of the items: with fewer respondents
        than items the likelihood has no maximum. Two or more, and as many as its smallest scale has
        items at most.
    draws : int
        Random allocations of items to parcels, since fit depends on them; of items there is one.
    seed : int
        Of the allocations.

    Returns
    -------
    DataFrame
        Two rows per draw: ``draw, model`` (``one factor``, ``a factor a scale``), ``n, observed,
        parameters, df, chi2, p, cfi, rmsea, aic, bic``; ``difference, difference_df,
        difference_p`` on the second row, how much worse one factor fits; a column ``first ~
        second`` for the correlation of every two factors; ``proper``, whether all residual
        variances are positive and the factors' correlations possible. Numbers are missing where an
        observed variable does not vary, where respondents are no more than these, or where no
        maximum was found.

    Raises
    ------
    ParameterError
        There are fewer than two scales, an item stands in two or has no score, a scale has fewer
        than two items or parcels, there are more parcels than items, or fewer than four respondents
        have every item.

    Notes
    -----
    With as few respondents as here :math:`\chi^2` rejects true models too often; read
    the difference and AIC, and the share of draws in which they agree. As in lavaan, nothing keeps
    estimates within bounds; ``proper`` tells where they are not.

    References
    ----------
    Jöreskog (1969); Little, Cunningham, Shahar and Widaman (2002) for parcels; Sterba and MacCallum
    (2010) for their allocations. Compared with lavaan in R.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> both = [load_questionnaire(name) for name in ("gad7", "challenges")]
    >>> draws, traits = np.random.default_rng(1), np.random.default_rng(2).normal(size=(200, 2))
    >>> rows = [(r, q.id, item.id, item.keying * (traits[r, k] + draws.normal()))
    ...         for k, q in enumerate(both) for r in range(200) for item in q.items]
    >>> items = pd.DataFrame(rows, columns=["respondent_id", "questionnaire", "item_id", "score"])
    >>> fitted = factor_models(items, both).set_index("model")
    >>> fitted["aic"].idxmin(), fitted["df"].tolist()
    ('a factor a scale', [44, 43])
    """
    check_numbers(draws=draws, seed=seed)
    values, sizes = _pooled(items, questionnaires, least=2)
    _check_parcels(parcels, sizes)
    rng = np.random.default_rng(seed)
    names, rows = list(sizes), []
    pairs = list(itertools.combinations(range(len(names)), 2))
    for draw in range(1, (draws if parcels else 1) + 1):
        table, counts = _parcelled(values, sizes, parcels, rng)
        of = np.repeat(np.arange(len(counts)), counts)
        one, several = (_confirmatory(table, groups) for groups in (of * 0, of))
        worse = one["chi2"] - several["chi2"]
        for name, fitted in (("one factor", one), ("a factor a scale", several)):
            phi = fitted.pop("phi")
            row = {"draw": draw, "model": name} | fitted
            several_factors = len(phi) > 1
            for i, j in pairs:
                row[f"{names[i]} ~ {names[j]}"] = phi[i, j] if several_factors else np.nan
            row["difference"] = worse if several_factors else np.nan
            row["difference_df"] = len(pairs) if several_factors else np.nan
            row["difference_p"] = stats.chi2.sf(row["difference"], len(pairs))
            rows.append(row)
    return pd.DataFrame(rows)


def omega_hierarchical(
    items: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    factors: int = 3,
    parcels: int | None = None,
    seed: int = 0,
) -> pd.Series:
    r"""Share of the variance of a sum of all items that one general factor explains.

    Of a bifactor solution by Schmid and Leiman with loadings :math:`\lambda_{ig}` on the general
    factor and :math:`\lambda_{if}` on the groups' factors, over the item correlations
    :math:`r_{ij}`,

    .. math:: \omega_h = \frac{(\sum_i \lambda_{ig})^2}{\sum_{ij} r_{ij}}, \qquad
              \omega_t = 1 - \frac{\sum_i u_i^2}{\sum_{ij} r_{ij}}, \qquad
              ECV = \frac{\sum_i \lambda_{ig}^2}{\sum_i h_i^2}

    Parameters
    ----------
    items : DataFrame
        As :func:`psychometrics.measures.scoring.item_scores` gives them.
    questionnaires : sequence of Questionnaire
        Their scales that are no part of another scale are pooled. Items that load negatively on
        the general factor are turned.
    factors : int
        Group factors, three or more: with two, their one correlation does not determine loadings
        on a general factor.
    parcels, seed
        As in :func:`factor_models`.

    Returns
    -------
    Series
        ``n`` respondents, ``observed`` items or parcels, ``hierarchical`` with its 95 % interval
        ``low, high`` (jackknife over respondents, in 50 groups where there are more), ``total``,
        ``explained`` (common variance); ``proper``, whether all unique variances and those of the
        group factors are above their bound, 0.005. Missing where an item does not vary, or
        respondents are no more than observed variables.

    Raises
    ------
    ParameterError
        As in :func:`factor_models`; there are fewer than three factors, or fewer than three
        observed variables a factor.

    References
    ----------
    Schmid and Leiman (1957); Zinbarg, Revelle, Yovel and Li (2005). As ``psych::omega``
    in R: least squares, then oblimin, by statsmodels.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> soc = load_questionnaire("soc13")
    >>> rng = np.random.default_rng(1)
    >>> general, group = rng.normal(size=300), rng.normal(size=(300, 3))
    >>> rows = [(r, "soc13", item.id, item.keying * (general[r] + group[r, n % 3] + rng.normal()))
    ...         for r in range(300) for n, item in enumerate(soc.items)]
    >>> items = pd.DataFrame(rows, columns=["respondent_id", "questionnaire", "item_id", "score"])
    >>> omega_hierarchical(items, [soc])["hierarchical"].round(2)
    np.float64(0.66)
    """
    check_numbers(factors=factors, seed=seed)
    values, sizes = _pooled(items, questionnaires)
    _check_parcels(parcels, sizes)
    table, _ = _parcelled(values, sizes, parcels, np.random.default_rng(seed))
    people, observed = table.shape
    if factors < 3 or observed < 3 * factors:
        raise ParameterError(
            f"A bifactor solution needs 3 factors and 3 variables for each; got {factors} for "
            f"{observed} variables."
        )
    own = _schmid_leiman(table, factors)
    reach = _jackknife(table, lambda part: np.array(_schmid_leiman(part, factors)[:1]))[0]
    return pd.Series(
        {
            "n": people,
            "observed": observed,
            "hierarchical": own[0],
            "low": np.clip(own[0] - reach, 0, 1),
            "high": np.clip(own[0] + reach, 0, 1),
            "total": own[1],
            "explained": own[2],
            "proper": own[3],
        }
    )


def _each_once(table: pd.DataFrame) -> None:
    for kind, labels in (("column", table.columns), ("respondent", table.index)):
        if labels.has_duplicates:
            raise ParameterError(
                f"The {kind} '{labels[labels.duplicated()][0]}' stands twice; keep one."
            )


def _checked_pairs(scores: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> list:
    check_columns(scores, ())
    _each_once(scores)
    pairs = [tuple(pair) for pair in pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ParameterError("Name pairs of scales, such as [('gad7', 'phq9')].")
    check_columns(scores, (), sorted({name for pair in pairs for name in pair}))
    return pairs


def _reliabilities(given: pd.Series, named: set) -> pd.Series:
    if not isinstance(given, pd.Series) or given.index.has_duplicates:
        raise ParameterError("Reliabilities must be a Series with each scale once.")
    if lacking := named - set(given.index):
        raise ParameterError(f"There is no reliability of '{min(lacking)}'; give it too.")
    check_columns(given.to_frame("reliability"), (), ["reliability"])
    return pd.to_numeric(given).astype(float)


def _diagonal(reliabilities: pd.DataFrame | None) -> dict[tuple, tuple[float, float, float]]:
    """Reliability and its interval by method and trait."""
    if reliabilities is None:
        return {}
    name = "r" if "r" in reliabilities else "alpha"
    check_columns(reliabilities, (), [name, "low", "high"])
    if reliabilities.index.nlevels != 2 or reliabilities.index.has_duplicates:
        raise ParameterError("Reliabilities must be indexed by method and trait, each pair once.")
    cells = reliabilities[[name, "low", "high"]].astype(float)
    return dict(zip(cells.index, map(tuple, cells.to_numpy()), strict=True))


def _complete(x, y) -> tuple[np.ndarray, np.ndarray]:
    """Two series, in one order, where both have a value."""
    x, y = (np.asarray(pd.to_numeric(pd.Series(v)), dtype=float) for v in (x, y))
    kept = ~(np.isnan(x) | np.isnan(y))
    return x[kept], y[kept]


def _normal_scores(values: np.ndarray) -> np.ndarray:
    """Each value replaced by the normal quantile of its rank (van der Waerden); ties share one."""
    return special.ndtri(stats.rankdata(values) / (len(values) + 1))


def _independent(controls: pd.DataFrame) -> list[str]:
    """Controls that do not follow from those before them, and vary."""
    kept: list[str] = []
    for name in controls:
        if _left(controls.rename(columns={name: "x"}).assign(y=controls[name]), kept):
            kept.append(name)
    return kept


def _left(ranks: pd.DataFrame, controls: list[str]) -> bool:
    """Whether anything is left of both x and y once what follows from the controls is taken out."""
    if len(ranks) <= len(controls) + 1:
        return False
    design = np.column_stack([np.ones(len(ranks)), ranks[controls].to_numpy()])
    for name in ("x", "y"):
        y = ranks[name].to_numpy()
        rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        if np.square(rest).sum() <= 1e-9 * max(np.square(y - y.mean()).sum(), 1e-9):
            return False
    return True


def _scales(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    temperatures: Sequence[float],
) -> tuple[pd.Index, list[tuple[tuple, dict[str, np.ndarray]]]]:
    """The respondents, and each specification with its scales' scores of them.

    No respondent's score hangs on who else answered.
    """
    named = list(dict.fromkeys(name for pair in pairs for name in pair))
    asked = responses[responses["questionnaire"].isin(named)]
    keys = {(q.id, item.id): item.keying for q in questionnaires for item in q.items}
    grids = _grids(asked, keys)
    worlds = []
    for score, temperature in itertools.product(("entailment", "contrast"), temperatures):
        sums, counts = _sums(grids, score, temperature)
        for (terms, sides), (templates, which) in itertools.product(
            (("source", [0]), ("inverse", [1]), ("both", [0, 1])),
            (("all", 0), ("first", 1), ("last", 2)),
        ):
            size = counts[:, sides, which].sum(axis=1)
            there = size > 0  # an item without inverse terms is no part of that specification
            means = sums[there][:, sides, which].sum(axis=1) / size[there][:, None]
            of = grids.of[there]
            scales = {name: means[of == name].mean(axis=0) for name in named if name in of}
            worlds.append(((score, temperature, terms, templates), scales))
    return grids.respondents, worlds


def _correlated(
    worlds: list[tuple[tuple, dict[str, np.ndarray]]],
    pairs: Sequence[tuple[str, str]],
    chosen: np.ndarray | slice = slice(None),
) -> pd.DataFrame:
    """The multiverse's table of all respondents, or of those at some places."""
    rows = []
    for choices, scales in worlds:
        for a, b in pairs:
            x, y = np.empty((2, 0))
            if a in scales and b in scales:
                x, y = scales[a][chosen], scales[b][chosen]
                both = ~(np.isnan(x) | np.isnan(y))
                x, y = x[both], y[both]
            for transform, change in (("raw", np.asarray), ("normal", _normal_scores)):
                r = _correlation(change(x), change(y)) if len(x) > 2 else np.nan
                rows.append((a, b, *choices, transform, r, len(x)))
    columns = ["first", "second", "score", "temperature", "terms", "templates", "transform"]
    return pd.DataFrame(rows, columns=[*columns, "r", "n"])


class _Grids(NamedTuple):
    """Answers to prompts as grids, one a template, for all respondents together."""

    of: np.ndarray  # questionnaire of each item
    templates: list[tuple]  # item, (all, first, last) it counts in, signed weights, cubes by score
    respondents: pd.Index


def _grids(asked: pd.DataFrame, keys: Mapping[tuple, int]) -> _Grids:
    words = ["respondent_id", "questionnaire", "item_id", "term", "intensifier"]
    scores = ["probability"] if "probability" in asked else ["entailment", "contradiction"]
    check_columns(asked, words, ["template", "polarity", "weight", *scores])
    short = asked[[*words, "template", "polarity", "weight", *scores]].reset_index(drop=True)
    short = short.astype(dict.fromkeys(words, "category"))
    plain, *against = (short[name].to_numpy(float) for name in scores)
    raw = {"entailment": plain, "contrast": plain}
    for other in against:  # as psychometrics.measures.scoring.pss has it
        total = plain + other
        raw["contrast"] = np.divide(plain, total, out=np.full_like(plain, 0.5), where=total != 0)
    who, term, word = (
        short[name].cat.codes.to_numpy() for name in ("respondent_id", "term", "intensifier")
    )
    weight, polarity = (short[name].to_numpy(float) for name in ("weight", "polarity"))
    parts = short.groupby(["questionnaire", "item_id", "template"], sort=True).indices
    numbers: dict[tuple, list] = {}
    for name, item, number in parts:
        numbers.setdefault((name, item), []).append(number)
    if stray := set(numbers) - set(keys):
        name, item = min(stray)
        raise ParameterError(f"{name} has no item '{item}'; give the questionnaire asked.")
    order, templates = list(numbers), []
    people = short["respondent_id"].cat.categories
    for (name, item, number), rows in parts.items():
        kinds, terms = np.unique(polarity[rows] * 1e6 + term[rows], return_inverse=True)
        levels, words_ = np.unique(word[rows], return_inverse=True)
        shape = (len(people), len(kinds), len(levels))
        given = np.bincount(np.ravel_multi_index((who[rows], terms, words_), shape))
        if given.max() > 1:
            raise ParameterError(
                f"{name}, item {item}, template {number}: a prompt has two answers of one "
                "respondent; choose one way of asking first."
            )
        cubes, weights, sides = {}, np.zeros(shape[1:]), np.zeros(len(kinds))
        for score, values in raw.items():
            cubes[score] = np.full(shape, np.nan)
            cubes[score][who[rows], terms, words_] = values[rows]
        weights[terms, words_] = weight[rows] * polarity[rows] * keys[name, item]
        sides[terms] = polarity[rows]
        own = numbers[name, item]
        which = [True, number == min(own), number == max(own)]
        templates.append((order.index((name, item)), which, weights, sides, cubes))
    return _Grids(np.array([name for name, _ in order]), templates, people)


def _sums(grids: _Grids, score: str, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Sums of weighted PSS by item, side (source, inverse), templates (all, first, last) and
    respondent, and how many terms by words each adds up."""
    shape = (len(grids.of), 2, 3)
    sums, counts = np.zeros((*shape, len(grids.respondents))), np.zeros(shape)
    for item, which, weights, sides, cubes in grids.templates:
        cube = cubes[score]
        there = ~np.isnan(cube).any(axis=(1, 2))
        values = np.full(cube.shape, np.nan)
        values[there] = two_way(cube[there], temperature) * weights
        for side, polarity in enumerate((1, -1)):
            own = sides == polarity
            total, size = values[:, own].sum(axis=(1, 2)), own.sum() * cube.shape[2]
            for kind in np.flatnonzero(which):
                sums[item, side, kind] += total
                counts[item, side, kind] += size
    return sums, counts


def _pooled(
    items: pd.DataFrame, questionnaires: Sequence[Questionnaire], least: int = 1
) -> tuple[np.ndarray, dict[str, int]]:
    """Keyed items of all scales side by side, of respondents with every item, and scales' sizes."""
    check_columns(items, ["respondent_id", "questionnaire", "item_id"], ["score"])
    parts, sizes = [], {}
    for questionnaire in questionnaires:
        scales = [scale for scale in questionnaire.scales if scale.parent is None]
        own = items[items["questionnaire"] == questionnaire.id]
        if not len(own):
            raise ParameterError(f"There are no scores of '{questionnaire.id}'; add them.")
        rest = [c for c in own if c not in ("item_id", "score")]
        if own.duplicated([*rest, "item_id"]).any():
            raise ParameterError(f"{questionnaire.id}: a respondent has two scores of an item.")
        members = [name for scale in scales for name in scale.items]
        if len(set(members)) < len(members):
            raise ParameterError(f"{questionnaire.id}: an item stands in two scales.")
        for scale in scales:
            keyed = keyed_items(own, questionnaire, scale)
            if keyed.index.nlevels > 1:
                keyed = keyed.droplevel("questionnaire")
            sizes[scale.id] = keyed.shape[1]
            parts.append(keyed)
    if len(sizes) < least:
        raise ParameterError(f"At least {least} scales are needed, got {len(sizes)}.")
    table = pd.concat(parts, axis=1, join="inner").astype(float).dropna()
    if np.isinf(table).any(axis=None):
        raise ParameterError("A score of an item is infinite; correct it.")
    table = table.loc[sorted(table.index, key=str)]  # random draws do not hang on the order given
    if len(table) < _LEAST:
        raise ParameterError(
            f"At least {_LEAST} respondents with every item are needed, got {len(table)}."
        )
    return table.to_numpy(), sizes


def _jackknife(
    table: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], groups: int = 50
) -> np.ndarray:
    """Half-widths of 95 % intervals, leaving out each respondent, or one of 50 groups of them."""
    groups = min(groups, len(table))
    of = np.arange(len(table)) % groups
    found = np.stack([statistic(table[of != group]) for group in range(groups)])
    return stats.t.ppf(0.975, groups - 1) * np.sqrt((groups - 1) * found.var(axis=0))


def _check_parcels(parcels: int | None, sizes: Mapping[str, int]) -> None:
    if parcels is not None:
        check_numbers(parcels=parcels)
    fewest = min(sizes.values()) if parcels is None else parcels
    if fewest < 2:
        raise ParameterError("A factor needs two or more observed variables a scale.")
    if fewest > min(sizes.values()):
        small = min(sizes, key=sizes.get)
        raise ParameterError(
            f"'{small}' has {sizes[small]} items, too few for {parcels} parcels; ask for fewer."
        )


def _parcelled(
    values: np.ndarray, sizes: Mapping[str, int], parcels: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, list[int]]:
    """Means of items, dealt at random to the parcels of their scale; and variables a scale."""
    if parcels is None:
        return values, list(sizes.values())
    columns, start = [], 0
    for size in sizes.values():
        order = start + rng.permutation(size)
        columns += [values[:, order[number::parcels]].mean(axis=1) for number in range(parcels)]
        start += size
    return np.column_stack(columns), [parcels] * len(sizes)


def _correlation_matrices(tables: np.ndarray) -> np.ndarray:
    """Correlations of the columns of each table; missing for a column that does not vary."""
    centred = tables - tables.mean(axis=-2, keepdims=True)
    length = np.linalg.norm(centred, axis=-2, keepdims=True)
    vary = np.ptp(tables, axis=-2, keepdims=True) > 0
    units = np.divide(centred, length, out=np.full_like(centred, np.nan), where=vary)
    return np.clip(np.swapaxes(units, -1, -2) @ units, -1, 1)


def _eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """Largest first; missing where a matrix is."""
    known = np.isfinite(matrices).all(axis=(-1, -2))
    found = np.full(matrices.shape[:-1], np.nan)
    found[known] = np.linalg.eigvalsh(matrices[known])[:, ::-1].clip(min=0)
    return found


def _block_means(matrices: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Mean correlations of the items of every two scales; within a scale of its different items."""
    member = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    sums = member.T @ matrices @ member
    n = np.array(sizes, dtype=float)
    count = np.outer(n, n) - np.diag(n)
    sums = sums - np.diag(n) * np.isfinite(matrices).all(axis=(-1, -2))[..., None, None]
    return np.divide(sums, count, out=np.full_like(sums, np.nan), where=count > 0)


def _htmt(means: np.ndarray, i: int, j: int) -> np.ndarray:
    one, two = means[:, i, i], means[:, j, j]
    known = (one > 0) & (two > 0)
    root = np.sqrt(np.where(known, one * two, 1.0))
    return np.where(known, means[:, i, j] / root, np.nan)


def _percentiles(values: np.ndarray) -> tuple[float, float]:
    """Central 95 % of a bootstrap; missing where fewer than half of its samples have a value."""
    values = values[np.isfinite(values)] if np.isfinite(values).mean() >= 0.5 else np.empty(0)
    low, high = np.quantile(values, [0.025, 0.975]) if len(values) else (np.nan, np.nan)
    return float(low), float(high)


def _deal_statistics(
    values: np.ndarray, deals: np.ndarray, sizes: list[int], signs: np.ndarray
) -> dict[tuple, np.ndarray]:
    """Statistics of the scales that each deal, an order of the items, makes."""
    blocks = np.split(np.arange(values.shape[1]), np.cumsum(sizes)[:-1])
    matrix = _correlation_matrices(values)
    correlations_dealt = matrix[deals[:, :, None], deals[:, None, :]]
    means = _block_means(correlations_dealt, sizes)
    scores = [values[:, deals[:, block]].mean(axis=2).T for block in blocks]  # deals by people
    ranks = [stats.rankdata(each, axis=1) for each in scores]
    found: dict[tuple, np.ndarray] = {}
    for i, j in itertools.combinations(range(len(sizes)), 2):
        sign = signs[i] * signs[j]
        found["spearman", i, j] = sign * _row_correlations(ranks[i], ranks[j])
        found["htmt", i, j] = sign * _htmt(means, i, j)
    variances = values.var(axis=0, ddof=1)
    for i, block in enumerate(blocks):
        size, total = len(block), (scores[i] * len(block)).var(axis=1, ddof=1)
        if size > 1:
            inner = np.divide(
                variances[deals[:, block]].sum(axis=1), total,
                out=np.full(len(deals), np.nan), where=np.ptp(scores[i], axis=1) > 0,
            )  # fmt: skip
            found["alpha", i, None] = size / (size - 1) * (1 - inner)
            own = correlations_dealt[:, block[:, None], block]
            found["first component", i, None] = _eigenvalues(own)[:, 0] / size
    return found


def _confirmatory(table: np.ndarray, of: np.ndarray) -> dict:
    """Factors without cross-loadings by maximum likelihood; `of` is each variable's factor."""
    people, size = table.shape
    factors = of.max() + 1
    pairs = np.triu_indices(factors, 1)
    parameters = 2 * size + len(pairs[0])
    df = size * (size + 1) // 2 - parameters
    result = {"n": people, "observed": size, "parameters": parameters, "df": df}
    result |= dict.fromkeys(("chi2", "p", "cfi", "rmsea", "aic", "bic"), np.nan)
    result |= {"proper": False, "phi": np.full((factors, factors), np.nan)}
    sample = _correlation_matrices(table)
    if people <= size or not np.isfinite(sample).all() or df < 0:
        return result
    sign, log_sample = np.linalg.slogdet(sample)
    if sign <= 0 or np.linalg.eigvalsh(sample)[0] < 1e-10:
        return result

    def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        loadings = np.zeros((size, factors))
        loadings[np.arange(size), of] = x[:size]
        phi = np.eye(factors)
        phi[pairs] = phi.T[pairs] = x[2 * size :]
        return loadings, phi, loadings @ phi @ loadings.T + np.diag(x[size : 2 * size])

    def misfit(x: np.ndarray) -> tuple[float, np.ndarray]:
        loadings, phi, implied = parts(x)
        try:
            np.linalg.cholesky(implied)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(x)
        inverse = np.linalg.inv(implied)
        slope = inverse - inverse @ sample @ inverse
        value = np.linalg.slogdet(implied)[1] + np.trace(sample @ inverse) - log_sample - size
        of_loadings = 2 * (slope @ loadings @ phi)[np.arange(size), of]
        of_phi = 2 * (loadings.T @ slope @ loadings)[pairs]
        return float(value), np.concatenate([of_loadings, np.diag(slope), of_phi])

    start = _start(sample, of)
    fitted = optimize.minimize(misfit, start, jac=True, method="BFGS", options={"gtol": 1e-7})
    if not np.isfinite(fitted.fun) or np.abs(fitted.jac).max() > 1e-4 or fitted.fun > 1e9:
        return result
    loadings, phi, _ = parts(fitted.x)
    side = np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)
    phi = phi * np.outer(side, side)
    chi2, none, none_df = people * fitted.fun, -people * log_sample, size * (size - 1) // 2
    # On the scale of the scores, with divisor R, so that AIC and BIC are lavaan's.
    logs = np.log(table.var(axis=0)).sum()
    least = people * (size * np.log(2 * np.pi) + logs + log_sample + size) + chi2
    own, base = max(chi2 - df, 0), max(none - none_df, chi2 - df, 0)
    return result | {
        "chi2": chi2,
        "p": stats.chi2.sf(chi2, df) if df else np.nan,
        "cfi": 1 - own / base if base else np.nan,
        "rmsea": np.sqrt(own / (df * people)) if df else np.nan,
        "aic": least + 2 * parameters,
        "bic": least + parameters * np.log(people),
        "proper": bool(
            (fitted.x[size : 2 * size] > 0).all() and np.linalg.eigvalsh(phi)[0] >= -1e-9
        ),
        "phi": phi,
    }


def _start(sample: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Loadings by the first component within each factor's variables; factors at those scores."""
    size, factors = len(sample), of.max() + 1
    loadings, weights = np.zeros(size), np.zeros((size, factors))
    for factor in range(factors):
        own = np.flatnonzero(of == factor)
        values, vectors = np.linalg.eigh(sample[np.ix_(own, own)])
        direction = vectors[:, -1] * (1 if vectors[:, -1].sum() >= 0 else -1)
        loadings[own] = 0.8 * direction * np.sqrt(values[-1])
        weights[own, factor] = direction
    covariance = weights.T @ sample @ weights
    spread = np.sqrt(np.diag(covariance))
    phi = np.clip(covariance / np.outer(spread, spread), -0.8, 0.8)
    loadings = np.clip(loadings, -0.9, 0.9)
    return np.concatenate([loadings, 1 - loadings**2, phi[np.triu_indices(factors, 1)]])


def _schmid_leiman(table: np.ndarray, factors: int) -> tuple[float, float, float, bool]:
    """Omega hierarchical and total, the general factor's share of the communality, properness."""
    sample = _correlation_matrices(table)
    if len(table) <= table.shape[1] or not np.isfinite(sample).all():
        return np.nan, np.nan, np.nan, False
    if np.linalg.eigvalsh(sample)[0] < 1e-10:
        return np.nan, np.nan, np.nan, False
    # An import here for cost; statsmodels is slow to load.
    from statsmodels.multivariate.factor_rotation import rotate_factors

    loadings, unique = _least_squares_factors(sample, factors)
    rotated, turn = rotate_factors(loadings, "quartimin")
    second, group = _least_squares_factors(turn.T @ turn, 1)
    general = rotated @ second[:, 0]
    turned = np.where(general < 0, -1.0, 1.0)
    total = (sample * np.outer(turned, turned)).sum()
    return (
        float(general @ turned) ** 2 / total,
        float(1 - unique.sum() / total),
        float((general**2).sum() / (loadings**2).sum()),
        bool(min(unique.min(), group.min()) > _LEAST_UNIQUE + 1e-6),
    )


def _least_squares_factors(matrix: np.ndarray, factors: int) -> tuple[np.ndarray, np.ndarray]:
    """Loadings and unique variances with the smallest squared residuals of the correlations."""

    def misfit(unique: np.ndarray) -> tuple[float, np.ndarray]:
        values, vectors = np.linalg.eigh(matrix - np.diag(unique))
        left = values[:-factors]
        return float((left**2).sum()), -2 * (vectors[:, :-factors] ** 2) @ left

    start = np.clip(1 / np.diag(np.linalg.pinv(matrix)), _LEAST_UNIQUE, 1)
    unique = optimize.minimize(
        misfit, start, jac=True, method="L-BFGS-B", bounds=[(_LEAST_UNIQUE, 1)] * len(matrix),
        options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 2000},
    ).x  # fmt: skip
    values, vectors = np.linalg.eigh(matrix - np.diag(unique))
    loadings = vectors[:, -factors:] * np.sqrt(values[-factors:].clip(min=0))
    return loadings[:, ::-1], unique


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    return float(_row_correlations(np.asarray(x)[None], np.asarray(y)[None])[0])


def _bootstrap_correlation(x, y, n_resamples: int, seed: int, ranked: bool = False) -> tuple:
    """Correlation and its percentile interval; samples are ranked anew where asked.

    :func:`scipy.stats.bootstrap` draws other samples from the same seed.
    """
    if len(x) < _LEAST or np.isnan(value := _correlation(x, y)):
        return (np.nan,) * 3
    draws = np.random.default_rng(seed).integers(0, len(x), size=(n_resamples, len(x)))
    xs, ys = (_ranks_of(v, draws) if ranked else v[draws] for v in (x, y))
    return value, *_percentiles(_row_correlations(xs, ys))


def _ranks_of(values: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Ranks within each sample of the values drawn: counting is four times as fast as sorting."""
    known, places = np.unique(values, return_inverse=True)
    places, own = places[draws], len(known) * np.arange(len(draws))[:, None]
    counts = np.bincount((places + own).ravel(), minlength=len(draws) * len(known))
    counts = counts.reshape(len(draws), -1)
    return np.take_along_axis(counts.cumsum(axis=1) - (counts - 1) / 2, places, axis=1)


def _permutation_p(x, y, n_resamples: int, seed: int) -> float:
    """Two-sided p by chance pairings; scipy's permutation test draws others from the same seed."""
    if len(x) < _LEAST or np.isnan(observed := abs(_correlation(x, y))):
        return np.nan
    x, y = x - x.mean(), y - y.mean()  # which no pairing changes, nor how much they vary
    shuffled = np.random.default_rng(seed).permuted(np.tile(y, (n_resamples, 1)), axis=1)
    drawn = np.abs(np.einsum("ij,j", shuffled, x)) / np.sqrt((x**2).sum() * (y**2).sum())
    return float((1 + (drawn >= observed - 1e-12).sum()) / (n_resamples + 1))


def _row_correlations(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Row by row; missing where a row does not vary, whatever rounding leaves of its deviations."""
    vary = (np.ptp(xs, axis=1) > 0) & (np.ptp(ys, axis=1) > 0)
    xs = xs - xs.mean(axis=1, keepdims=True)
    ys = ys - ys.mean(axis=1, keepdims=True)
    norms = np.sqrt((xs**2).sum(axis=1) * (ys**2).sum(axis=1))
    return np.divide((xs * ys).sum(axis=1), norms, out=np.full(len(xs), np.nan), where=vary)
