"""Correlations between scales: with intervals, controls, several methods, and every analysis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import special, stats

from ..asking.answers import check_columns, check_numbers, check_once
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from .intervals import percentiles, row_correlations
from .items import adjust, as_numbers, null_p_value
from .scoring import pss

_LEAST = 4
"""Respondents below whom a rank correlation tells nothing: three have six orders."""


def correlations(
    scores: pd.DataFrame,
    pairs: Sequence[tuple] | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Correlations between scales over respondents, with what is needed to judge them.

    Corrected for attenuation by the reliabilities :math:`\alpha` of the two scales, a correlation
    is :math:`r_{xy} / \sqrt{\alpha_x \alpha_y}`.

    Parameters
    ----------
    scores : DataFrame, shape (R, scales)
        Scale scores, respondents as index. A pair is computed over the respondents with both.
    pairs : sequence of (str, str), optional
        Which columns to correlate; by default every two.
    n_resamples : int
        Bootstrap samples, and permutations.
    seed : int
        Seed of both.

    Returns
    -------
    DataFrame
        Per pair: ``n``, the respondents with both scores; ``spearman`` with its percentile
        interval ``spearman_low, spearman_high``; ``p``, two-sided, by permutation; ``p_holm``
        over the pairs that have a p. With fewer than four respondents, or a scale on
        which they are all alike, a pair has ``n`` and nothing else. Columns of two levels, method
        and trait, make a multitrait-multimethod matrix, whose ``kind`` is such as
        ``monotrait-heteromethod``.

    Raises
    ------
    ParameterError
        There are fewer than four respondents in the table, no pair or no such scale; a respondent
        or a scale stands twice, or something is no number.

    References
    ----------
    Reuben et al. (2024), section 4 (construct validity); Spearman (1904) for attenuation;
    Campbell and Fiske (1959) for several methods; Phipson and Smyth (2010) for p values that are
    never zero; Holm (1979), by pingouin.

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [2.0, 1.0, 4.0, 3.0, 5.0]})
    >>> correlations(scores, [("x", "y")], n_resamples=100)["spearman"].round(2).tolist()
    [0.8]
    """
    check_numbers(n_resamples=n_resamples, seed=seed)
    pairs = list(itertools.combinations(scores, 2)) if pairs is None else pairs
    scores = _scores_of(scores, pairs)
    if len(scores) < _LEAST:
        raise ParameterError(f"At least {_LEAST} respondents are needed, got {len(scores)}.")
    rows = []
    for first, second in pairs:
        both = scores[[first, second]].dropna().to_numpy().T
        row = {"first": first, "second": second}
        if scores.columns.nlevels == 2:
            same = (a == b for a, b in zip(first, second, strict=True))
            method, trait = ("mono" if alike else "hetero" for alike in same)
            row["kind"] = f"{trait}trait-{method}method"
        ranks = stats.rankdata(both, axis=1)
        row["n"] = both.shape[1]
        found = _bootstrap_correlation(*ranks, n_resamples, seed)
        row |= dict(zip(("spearman", "spearman_low", "spearman_high"), found, strict=True))
        row["p"] = _permutation_p(*ranks, n_resamples, seed)
        rows.append(row)
    frame = pd.DataFrame(rows)
    return frame.assign(p_holm=adjust(frame["p"]))


def multiverse(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    temperatures: Sequence[float] = (0.5, 1.0, 2.0),
) -> pd.DataFrame:
    """Correlations between whole scales under every defensible choice.

    Parameters
    ----------
    responses : DataFrame
        Answers to all the questionnaires, as :func:`psychometrics.asking.ask` gives them. A
        respondent who lacks an answer to a questionnaire is left out of it.
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
    ...                  contradiction=0.1) for r, s in (("a", 0.1), ("b", 0.05), ("c", -0.1))])
    >>> worlds = multiverse(answers, both, [("challenges", "gad7")], temperatures=[1.0])
    >>> len(worlds), worlds["r"].round(1).unique().tolist()
    (36, [1.0])
    """
    return _correlated(_worlds(responses, questionnaires, pairs, temperatures), pairs)


def _table(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers of respondents, each once."""
    check_columns(table, ())
    if table.index.has_duplicates:
        raise ParameterError(
            f"'{table.index[table.index.duplicated()][0]}' stands twice; keep one."
        )
    return as_numbers(table)


def _scores_of(scores: pd.DataFrame, pairs: Sequence[tuple]) -> pd.DataFrame:
    """The scores that the pairs name."""
    if not len(pairs) or any(len(pair) != 2 for pair in pairs):
        raise ParameterError("Name pairs of scales, such as [('gad7', 'phq9')].")
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    check_columns(scores, names)
    return _table(scores[names])


def _normal_scores(values: np.ndarray) -> np.ndarray:
    """Each value replaced by the normal quantile of its rank (van der Waerden); ties share one."""
    return special.ndtri(stats.rankdata(values) / (len(values) + 1))


def _worlds(
    responses: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    pairs: Sequence[tuple[str, str]],
    temperatures: Sequence[float],
) -> dict[tuple, pd.DataFrame]:
    """Scores of respondents on the questionnaires, by specification.

    An item's score is the mean over its prompts, a questionnaire's the mean over its items. An
    item without inverse terms is no part of a specification that has these alone.
    """
    prompt = ["questionnaire", "item_id", "template", "polarity", "term", "intensifier"]
    scores = [c for c in ("probability", "entailment", "contradiction") if c in responses]
    check_columns(responses, ["respondent_id", *prompt], ["weight", *scores])
    named = {name for pair in pairs for name in pair}
    if not named or not len(temperatures):
        raise ParameterError("A multiverse needs a pair of questionnaires and a temperature.")
    keys = {(q.id, item.id): item.keying for q in questionnaires for item in q.items}
    if lacking := named - (set(responses["questionnaire"]) & {name for name, _ in keys}):
        raise ParameterError(f"'{min(lacking)}' is not asked or not given; ask it and give it.")
    asked = responses[responses["questionnaire"].isin(named)].dropna(subset=scores)
    check_once(asked, ["respondent_id", *prompt])
    who = ["respondent_id", "questionnaire"]
    size = asked.drop_duplicates(prompt).groupby("questionnaire").size()
    whole = asked.groupby(who)["term"].transform("size") == asked["questionnaire"].map(size)
    asked = asked[whole].astype(dict.fromkeys([*who, *prompt[1:2], *prompt[4:]], "category"))
    signs = pd.MultiIndex.from_frame(asked[prompt[:2]]).map(keys) * asked["polarity"]
    if signs.isna().any():
        raise ParameterError("The answers are to items that the questionnaires lack.")
    worlds = {}
    for score, temperature in itertools.product(("entailment", "contrast"), temperatures):
        values = pss(asked, score, temperature)["pss"] * asked["weight"] * signs
        by = [asked[c] for c in (*who, *prompt[1:4])]
        cells = values.groupby(by, observed=True).agg(["sum", "size"]).reset_index()
        number, item = cells["template"], cells.groupby(prompt[:2], observed=True)["template"]
        chosen = {"all": number > 0, "first": number == item.transform("min")}
        chosen["last"] = number == item.transform("max")
        for (terms, kinds), templates in itertools.product(
            {"source": [1], "inverse": [-1], "both": [1, -1]}.items(), chosen
        ):
            own = cells[chosen[templates] & cells["polarity"].isin(kinds)]
            items = own.groupby([*who, "item_id"], observed=True)[["sum", "size"]].sum()
            means = (items["sum"] / items["size"]).groupby(level=who, observed=True).mean()
            worlds[score, temperature, terms, templates] = means.unstack("questionnaire")
    return worlds


def _correlated(
    worlds: dict[tuple, pd.DataFrame], pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """The multiverse's table."""
    rows = []
    for choices, scales in worlds.items():
        for a, b in pairs:
            x, y = scales.reindex(columns=[a, b]).dropna().to_numpy().T
            for transform, change in (("raw", np.asarray), ("normal", _normal_scores)):
                r = _correlation(change(x), change(y)) if len(x) > 2 else np.nan
                rows.append((a, b, *choices, transform, r, len(x)))
    columns = ["first", "second", "score", "temperature", "terms", "templates", "transform"]
    return pd.DataFrame(rows, columns=[*columns, "r", "n"])


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    return float(row_correlations(np.asarray(x)[None], np.asarray(y)[None])[0])


def _bootstrap_correlation(x, y, n_resamples: int, seed: int) -> tuple:
    """Rank correlation and its percentile interval; samples are ranked anew."""
    if len(x) < _LEAST or np.isnan(value := _correlation(x, y)):
        return (np.nan,) * 3
    draws = np.random.default_rng(seed).integers(0, len(x), size=(n_resamples, len(x)))
    xs, ys = (stats.rankdata(v[draws], axis=1) for v in (x, y))
    return value, *percentiles(row_correlations(xs, ys))


def _permutation_p(x, y, n_resamples: int, seed: int) -> float:
    """Two-sided p by chance pairings; scipy's permutation test draws others from the same seed."""
    if len(x) < _LEAST or np.isnan(observed := abs(_correlation(x, y))):
        return np.nan
    x, y = x - x.mean(), y - y.mean()  # which no pairing changes, nor how much they vary
    shuffled = np.random.default_rng(seed).permuted(np.tile(y, (n_resamples, 1)), axis=1)
    return null_p_value(observed, shuffled @ x / np.sqrt((x**2).sum() * (y**2).sum()))
