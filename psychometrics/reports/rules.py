"""Rules, the same for all respondents, for when a score must not be interpreted.

The rules were fixed before any profile was examined, with four exceptions: *guessing* was added
after untrained models had passed without a cross; *alone* after a scale with meaningful answers had
made four random scales of the same respondent pass; and *score*, and the sizes of random heads in
*terms*, after the book had found both in its own models. A rule about alpha over other respondents
was dropped, since a mark concerns one respondent alone. :func:`flags` applies the rules to one
respondent, :func:`verdict` combines them for one scale, and :func:`rules` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from ..checks import check_columns, check_flags
from ..exceptions import ParameterError
from ..formats import fill
from ..measures.normalisation import pss
from ..measures.scoring import item_scores, keyed_items
from ..measures.styles import balanced_pairs, decisiveness, response_styles
from ..measures.trends import monotony
from ..measures.validity import term_silhouettes
from ..questionnaires import Questionnaire, Scale, load_questionnaire
from .report import _load_texts

FEWEST_RESPONDENTS = 8
"""The fewest respondents on a base whose alpha and correlations are printed, by power.

With 8 respondents a correlation of .85 is significant in 86 of 100 samples (ranks: 74), with 6 in
67 (54). The power for smaller effects is low: alpha of .90 against .75 in untrained heads is found
in 61 of 100 samples of 8, .85 in 25.
"""
ENOUGH_RESPONDENTS = 30
"""The number of respondents below which an alpha is marked as too uncertain.

COSMIN rates smaller samples as *poor* (Terwee et al., 2012, Quality of Life Research 21, 651-657).
"""
HEAD_SIZES = {"at their start": None, "as decisive": 1.0, "four times as large": 4.0}
"""Sizes of random heads, as multiples of equally decisive ones; None keeps the starting values."""
_MATCHED = "as decisive"
_CLASSES = ["entailment", "neutral", "contradiction"]
_COLUMNS = ["scale", "check", "mark", "words", "value"]
_BALANCE = ["content", "agreeing"]
_HEADS_TO_MATCH = 25
_LOG_FACTORS = (-8.0, 8.0)
_DEALS = 999
_RULES = _load_texts("rules")
_WORDS = _RULES["words"]
_Row = tuple[str, str, str, str, float]  # the values of _COLUMNS
_Places = dict[str, tuple[np.ndarray, np.ndarray]]  # of each scale's items, with their keys


def rules(to_prompts: bool) -> pd.DataFrame:
    """Return the rules as a table, for answers to prompts or for answers to items.

    Examples
    --------
    >>> rules(to_prompts=True).index.tolist()
    ['terms', 'score', 'trend', 'agreeing', 'accuracy', 'guessing']
    """
    check_flags(to_prompts=to_prompts)
    texts = _RULES["prompts" if to_prompts else "items"]
    return pd.DataFrame(texts).T.rename_axis("check")


def _heads_of_sizes(answers: pd.DataFrame, nulls: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return null respondents' answers with logits of several sizes, matched as in chapter 1.

    One number multiplies the logits of all heads, so that the mean decisiveness of 25 of them
    equals the respondent's, or comes as near as it can.
    """
    goal = decisiveness(pss(answers)).mean()
    names = nulls["respondent_id"].unique()[:_HEADS_TO_MATCH]
    sample = nulls[nulls["respondent_id"].isin(names)]

    def excess(log_factor: float) -> float:
        resized = _multiply_logits(sample, np.exp(log_factor))
        return float(decisiveness(pss(resized)).mean() - goal)

    least, most = map(excess, _LOG_FACTORS)
    if least < 0 < most:
        from scipy.optimize import brentq  # slow to load

        matched = np.exp(brentq(excess, *_LOG_FACTORS, xtol=0.02))
    else:
        matched = np.exp(_LOG_FACTORS[1 if most <= 0 else 0])

    return {
        size: nulls if factor is None else _multiply_logits(nulls, factor * matched)
        for size, factor in HEAD_SIZES.items()
    }


def _multiply_logits(answers: pd.DataFrame, factor: float) -> pd.DataFrame:
    entailment = answers["entailment"].to_numpy(dtype=float)
    shares = answers.reindex(columns=_CLASSES).to_numpy(dtype=float)
    # two classes: neutral and contradiction share the rest
    shares = np.where(np.isnan(shares), (1 - entailment)[:, None] / 2, shares)
    logs = np.log(np.maximum(shares, 1e-300))
    powers = np.exp(factor * (logs - logs.max(axis=1, keepdims=True)))
    powers /= powers.sum(axis=1, keepdims=True)
    return answers.assign(**dict(zip(_CLASSES, powers.T, strict=True)))


def flags(
    answers: pd.DataFrame,
    questionnaire: Questionnaire,
    nulls: pd.DataFrame | None = None,
    accuracy: tuple[float, ...] | None = None,
    level: float = 0.05,
) -> pd.DataFrame:
    """Return the evidence against interpreting one respondent's scores.

    Parameters
    ----------
    answers : DataFrame
        One respondent's answers to one questionnaire, from :func:`psychometrics.asking.ask`.
    questionnaire : Questionnaire, name or path
        A questionnaire with scales.
    nulls : DataFrame, optional
        Answers of null respondents to the same prompts; required for answers to prompts.
    accuracy : tuple of float, optional
        Share of correct answers to labelled pairs, with its 95 % interval; if guessing is not right
        for a third of the pairs, also the share that guessing would reach.
    level : float
        The probability that *terms*, or *content* and *alone*, pass by chance on any scale of the
        questionnaire. A page about several questionnaires divides .05 among the questionnaires.

    Returns
    -------
    DataFrame
        ``scale`` (empty if the flag concerns all scales), ``check``, ``mark`` (✗: do not interpret
        the score, !: a reservation, ✓: passed, –: not tested), ``words`` and ``value``.

    Raises
    ------
    ParameterError
        The answers are from several respondents, or null respondents are missing.

    Notes
    -----
    :func:`rules` lists the rules. *Larger than in random heads* compares a count with the level: if
    *k* of *n* heads have a value at least as large, (k + 1) / (n + 1) must be at most the level; if
    that holds for some sizes of the heads only, the verdict depends on the size of the head.
    For several scales, each head counts with its largest silhouette, in standard deviations of its
    scale, so that the level holds for all scales together. *Alone* tests the scales in the order of
    their p values, each against the smallest p value of the same deals, and deals again among the
    remaining scales after each scale that passes: a scale that follows its content does not help
    the others pass. The statistic of *trend* is half the difference between the Spearman
    correlations of source and of inverse terms with the weights. On both bases of the book only the
    silhouette separated trained respondents from untrained heads, so it is the only statistic of
    answers that rules out interpreting a score. Even without a flag, nothing proves that a score
    measures its construct.

    References
    ----------
    Reuben et al. (2024), section 3.3; Rousseeuw (1987); Phipson and Smyth (2010) for the count;
    Westfall and Young (1993) for several scales.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, null_answers
    >>> answers = null_answers("challenges", "noise", respondents=20)
    >>> first = answers["respondent_id"] == answers["respondent_id"].iloc[0]
    >>> table = flags(answers[first], load_questionnaire("challenges"), answers[~first])
    >>> table["check"].tolist()
    ['terms', 'score', 'trend', 'agreeing']
    """
    check_columns(answers, ["respondent_id", "questionnaire"])
    questionnaire = load_questionnaire(questionnaire, texts=False)
    if set(answers["questionnaire"]) != {questionnaire.id}:
        raise ParameterError(f"Flags need answers to {questionnaire.id} alone; choose them.")

    if answers["respondent_id"].nunique() != 1:
        raise ParameterError("Flags need the answers of one respondent; choose one.")

    if "term" not in answers:
        return _flag_items(answers, questionnaire, level)
    if nulls is None:
        raise ParameterError("Answers to prompts need null respondents; give some.")
    heads = _heads_of_sizes(answers, nulls)
    return _flag_prompts(answers, heads, questionnaire, accuracy, level)


def verdict(checks: pd.DataFrame, scale: Scale) -> tuple[str, str]:
    """Return the mark and the verdict for one scale, from the flags of a respondent.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> scale = load_questionnaire("challenges").scales[0]
    >>> row = {"scale": "", "check": "trend", "mark": "!", "words": "", "value": 0.1}
    >>> verdict(pd.DataFrame([row, row | {"check": "terms", "mark": "✓"}]), scale)
    ('!', 'with reservations: trend')
    """
    of_scale = checks[checks["scale"].isin(["", scale.id])].set_index("check")
    marks = of_scale["mark"]
    to_prompts = "terms" in marks

    failure = find_failure(of_scale)
    if failure:
        return "✗", f"{_RULES['failures'][failure]}; do not interpret"

    reserved = marks.index[marks == "!"].tolist()
    if to_prompts and marks["terms"] == "!":
        further = [check for check in reserved if check != "terms"]
        more = f"; with reservations: {', '.join(further)}" if further else ""
        return "!", f"depends on the size of the head{more}"

    if marks.get("terms" if to_prompts else "content") == "–":
        null = "random heads on its own base" if to_prompts else "answers dealt out at random"
        reserved.append(f"not compared with {null}")
    elif marks.get("alone") == "–":
        reserved.append("it could not be tested alone")

    if reserved:
        return "!", f"with reservations: {', '.join(reserved)}"
    return "✓", "no flag, which is not a proof"


def find_failure(checks: pd.DataFrame) -> str:
    """Return why a scale must not be interpreted: the check that fails, *same* or nothing.

    Parameters
    ----------
    checks : DataFrame
        The flags of one scale, indexed by check; *same* are equal answers to all items.

    Examples
    --------
    >>> checks = pd.DataFrame({"mark": ["✗"], "value": [0.0]}, index=["content"])
    >>> find_failure(checks)
    'same'
    """
    marks = checks["mark"]
    failed = [check for check in _RULES["failures"] if marks.get(check) == "✗"]
    if not failed:
        is_weather = (marks.get("content"), marks.get("weather")) == ("–", "!")
        return "weather" if is_weather else ""
    return "same" if failed[0] == "content" and checks.loc["content", "value"] == 0 else failed[0]


def _item_means(items: pd.DataFrame) -> pd.DataFrame:
    """Return each respondent's item scores, averaged over runs and other repetitions."""
    keys = [k for k in ("respondent_id", "questionnaire", "mode", "item_id") if k in items]
    means = items.groupby(keys, sort=False)["score"].mean().reset_index()
    return means.assign(run=1) if "run" in items else means


def _flag_prompts(
    answers: pd.DataFrame,
    heads: Mapping[str, pd.DataFrame],
    questionnaire: Questionnaire,
    accuracy: tuple[float, ...] | None,
    level: float,
) -> pd.DataFrame:
    """Return the flags of answers to prompts, judged against random heads of several sizes."""
    shares = pss(answers)
    head_shares = {size: pss(table) for size, table in heads.items()}
    rows = [
        *_check_terms(shares, head_shares, questionnaire, level),
        *_check_score(answers, heads[_MATCHED], questionnaire),
        *_check_trend(shares, head_shares[_MATCHED]),
        *_check_agreeing(answers, heads[_MATCHED], questionnaire),
    ]
    if accuracy is not None:
        value, low, high = accuracy[:3]
        guess = accuracy[3] if len(accuracy) > 3 else 1 / 3
        words = fill(_WORDS["accuracy"], value=value, low=low, high=high, guess=guess)
        row = ("", "accuracy", "!" if low < 0.5 else "✓", words, value)
        rows.append(("", "guessing", "✗", words, value) if low <= guess else row)

    return pd.DataFrame(rows, columns=_COLUMNS)


def _silhouettes(shares: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the mean silhouette of each scale's items, respondents by scales."""
    table = term_silhouettes(shares)
    by_scale = {
        scale.id: table[table["item_id"].isin(scale.items)]
        .groupby("respondent_id")["silhouette"]
        .mean()
        for scale in questionnaire.scales
    }
    return pd.DataFrame(by_scale)


def _check_terms(
    shares: pd.DataFrame,
    head_shares: Mapping[str, pd.DataFrame],
    questionnaire: Questionnaire,
    level: float,
) -> Iterator[_Row]:
    """Compare each scale's silhouette with random heads of every size."""
    values = _silhouettes(shares, questionnaire)
    nulls = {size: _silhouettes(table, questionnaire) for size, table in head_shares.items()}
    distances = {}
    largest = {}
    for size, null in nulls.items():
        # with the model, so that respondents that equal it count alike
        together = pd.concat([values, null])
        spread = together.std(ddof=0)
        standardised = (together - together.mean()) / spread.where(spread > 0, 1.0)
        distances[size] = standardised.iloc[0] - 1e-12
        largest[size] = standardised.iloc[1:].max(axis=1).dropna().to_numpy()

    for scale in questionnaire.scales:
        value = values[scale.id].iloc[0]
        heads = {size: null[scale.id].dropna().to_numpy() for size, null in nulls.items()}
        if np.isnan(value) or not all(map(len, heads.values())):
            yield scale.id, "terms", "–", _WORDS["terms"]["–"], value
            continue

        passes = [_is_rare(distances[size][scale.id], largest[size], level) for size in heads]
        mark = "✓" if all(passes) else "✗"
        if any(passes) and not all(passes):
            mark = "!"

        of_heads = ""
        for size, silhouettes in heads.items():
            median = float(np.median(silhouettes))
            counts = {"count": (silhouettes >= value).sum(), "heads": len(silhouettes)}
            of_heads += fill(_WORDS["of heads"], size=size, median=median, **counts)
            if len(questionnaire.scales) > 1:
                count = (largest[size] >= distances[size][scale.id]).sum()
                of_heads += fill(_WORDS["of scales"], count=count)

        words = {"verdict": _WORDS["terms"][mark], "value": float(value), "of_heads": of_heads}
        yield scale.id, "terms", mark, fill(_WORDS["silhouettes"], **words), value


def _check_score(
    answers: pd.DataFrame, heads: pd.DataFrame, questionnaire: Questionnaire
) -> Iterator[_Row]:
    """Compare the size of each scale score with that of equally decisive random heads."""
    items = _item_means(item_scores(answers))
    head_items = _item_means(item_scores(heads))
    for scale in questionnaire.scales:
        score, sizes = (
            keyed_items(table, questionnaire, scale).mean(axis=1, skipna=False).abs().to_numpy()
            for table in (items, head_items)
        )
        count = (sizes >= score[0] - 1e-12).sum()
        words = fill(_WORDS["score"], count=count, heads=len(sizes))
        mark = "✓" if _is_rare(score[0] - 1e-12, sizes) else "!"
        yield scale.id, "score", mark, words, score[0]


def _check_trend(shares: pd.DataFrame, head_shares: pd.DataFrame) -> Iterator[_Row]:
    """Compare how regularly source and inverse terms diverge with random heads."""
    rhos = monotony(shares).iloc[0]
    head_rhos = monotony(head_shares)
    value = abs(rhos["source"] - rhos["inverse"]) / 2 - 1e-12
    regularity = (head_rhos["source"] - head_rhos["inverse"]).abs() / 2
    if regularity.isna().all():
        return

    # a head whose normalised answers are the same for all intensifiers is not regular at all
    of_heads = regularity.fillna(0).to_numpy()
    if not np.isfinite(value):
        yield "", "trend", "!", _WORDS["no trend"], value
        return

    counts = {"count": (of_heads >= value).sum(), "heads": len(of_heads)}
    words = fill(_WORDS["trend"], rhos=rhos, **counts)
    yield "", "trend", "✓" if _is_rare(value, of_heads) else "!", words, value


def _check_agreeing(
    answers: pd.DataFrame, heads: pd.DataFrame, questionnaire: Questionnaire
) -> Iterator[_Row]:
    """Compare the response common to both kinds of terms with their difference."""
    if not set(answers["polarity"]) == set(heads["polarity"]) == {1, -1}:
        return

    content, agreeing = balanced_pairs(answers, [questionnaire]).iloc[0][_BALANCE].abs()
    of_heads = balanced_pairs(heads, [questionnaire])[_BALANCE].abs()
    exceeds = agreeing > content
    share = (of_heads["agreeing"] > of_heads["content"]).mean()
    sizes = {"agreeing": agreeing, "content": content, "share": share}
    words = fill(_WORDS["agreeing"], larger="larger" if exceeds else "no larger", **sizes)
    yield "", "agreeing", "!" if exceeds else "✓", words, agreeing


def _flag_items(answers: pd.DataFrame, questionnaire: Questionnaire, level: float) -> pd.DataFrame:
    """Return the flags of answers to items, judged against the same answers dealt at random."""
    items = _item_means(item_scores(answers)).set_index("item_id")["score"]
    styles = response_styles(answers, questionnaire)
    common = styles["commonest"].mean()
    agreement = styles["acquiescence"].mean()
    rows: list[_Row] = []

    if items.notna().sum() > 1:
        rows += _check_content(items.dropna(), questionnaire, level)

    if np.isfinite(common):
        words = fill(_WORDS["commonest"], value=common)
        rows.append(("", "commonest", "!" if common >= 0.8 else "✓", words, common))

    if np.isfinite(agreement):
        side = "agrees" if agreement > 0 else "disagrees"
        words = fill(_WORDS["acquiescence"], side=side, value=abs(agreement))
        mark = "!" if abs(agreement) >= 1 / 3 else "✓"
        rows.append(("", "acquiescence", mark, words, agreement))

    answered = int((answers["status"] == "ok").sum())
    share = answered / len(answers)
    words = fill(_WORDS["answered"], answered=answered, asked=len(answers))
    rows.append(("", "answered", "✓" if share == 1 else "!", words, share))

    return pd.DataFrame(rows, columns=_COLUMNS)


def _check_content(items: pd.Series, questionnaire: Questionnaire, level: float) -> Iterator[_Row]:
    """Test whether keyed answers are more alike within scales than after shuffling."""
    low, high = np.array([questionnaire.ends(name) for name in items.index]).T
    shares = (items.to_numpy() - low) / (high - low)
    if np.ptp(shares) < 1e-9:
        yield "", "content", "✗", _WORDS["same"], 0.0
        return

    parents = {scale.parent for scale in questionnaire.scales}
    keyed_places: _Places = {}
    for scale in questionnaire.scales:  # the finest, with two or more answered items
        keys = questionnaire.keys(scale)
        places = np.array([place for place, name in enumerate(items.index) if name in keys])
        if scale.id not in parents and len(places) > 1:
            keyed_places[scale.id] = places, np.array([keys[items.index[k]] for k in places])

    deals = _deal(shares, np.arange(len(shares)))
    spreads = [_spread(deals, *places) for places in keyed_places.values()]
    total = np.sum(spreads, axis=0) if spreads else np.zeros(len(deals))
    if np.ptp(total) < 1e-9:
        yield "", "content", "–", _WORDS["content"]["–"], np.nan
        return

    is_alike = _is_rare(-total[0] - 1e-12, -total[1:], level)
    mark = "✓" if is_alike else "✗"
    as_alike = (total[1:] <= total[0] + 1e-12).sum()
    words = fill(_WORDS["content"][mark], count=as_alike, deals=_DEALS)
    yield "", "content", mark, words, float(total[0])

    if is_alike and len(questionnaire.scales) > 1:
        yield from _check_alone(shares, keyed_places, questionnaire, level)


def _check_alone(
    shares: np.ndarray, keyed_places: _Places, questionnaire: Questionnaire, level: float
) -> Iterator[_Row]:
    """Test each scale separately; a scale with subscales gets the result of the worst subscale.

    The p values are corrected for the number of scales; a scale that passes leaves the pool.
    """
    untested = dict(keyed_places)
    p_values: dict[str, float] = {}
    least = 0.0
    while untested:
        pool = np.unique(np.concatenate([places for places, _ in untested.values()]))
        deals = _deal(shares, pool)
        ranks = {}
        for name, keyed in untested.items():  # the share of deals that are at least as much alike
            spread = np.round(_spread(deals, *keyed), 12)
            ranks[name] = np.searchsorted(np.sort(spread), spread, side="right") / len(spread)

        best = min(untested, key=lambda name: ranks[name][0])
        smallest = np.min(list(ranks.values()), axis=0)
        least = max(least, float((smallest <= ranks[best][0] + 1e-12).mean()))
        del untested[best]
        p_values[best] = least
        if least > level:
            p_values |= dict.fromkeys(untested, least)
            break

    for scale in questionnaire.scales:
        parts = [sub.id for sub in questionnaire.scales if sub.parent == scale.id] or [scale.id]
        tested = [p_values[name] for name in parts if name in p_values]
        if len(tested) < len(parts):
            yield scale.id, "alone", "–", _WORDS["alone"]["–"], np.nan
            continue

        p = max(tested)
        mark = "✓" if p <= level else "!"
        words = fill(_WORDS["alone"][mark], p=p, scales=len(p_values))
        yield scale.id, "alone", mark, words, p


def _deal(shares: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Return the answers in the first row, and shuffled answers of the pool in the other rows."""
    values = np.tile(shares, (_DEALS + 1, 1))
    rng = np.random.default_rng(0)
    values[1:, pool] = rng.permuted(values[1:, pool], axis=1)
    return values


def _spread(deals: np.ndarray, places: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return a scale's sum of squares of keyed answers around their mean, for each deal."""
    keyed = np.where(keys > 0, deals[:, places], 1 - deals[:, places])
    sums: np.ndarray = ((keyed - keyed.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return sums


def _is_rare(value: float, drawn: np.ndarray, level: float = 0.05) -> bool:
    return bool(((drawn >= value).sum() + 1) / (len(drawn) + 1) <= level)
