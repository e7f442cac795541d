"""Evidence of validity for questionnaires in prompts, and what each kind of it is worth."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ..asking.answers import check_columns
from ..exceptions import ParameterError
from ..measures.correlations import multiverse, multiverses, partial_correlations
from ..measures.nulls import power
from ..measures.reliability import alpha, omega
from ..measures.scoring import pss
from ..measures.validity import term_silhouettes
from ..questionnaires import Questionnaire

CRITERIA = {
    "silhouette": 0.6,
    "alpha": 0.7,
    "omega": 0.7,
    "correlations": None,
    "source and inverse": None,
    "two methods": None,
}
"""Kinds of evidence with what has to be reached: the paper's bar, the usual one, or (None) the
correlation that is significant at 5 % (two-sided) for so many respondents."""


def profiles(
    answers: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    score: str = "entailment",
    temperature: float = 1.0,
) -> pd.DataFrame:
    """All that the kinds of evidence need of each respondent, computed once.

    Parameters
    ----------
    answers : DataFrame
        To prompts, as :func:`psychometrics.asking.ask` gives them.
    questionnaires : sequence of Questionnaire
    score, temperature
        As in :func:`psychometrics.measures.scoring.item_scores`.

    Returns
    -------
    DataFrame, shape (R, columns)
        Columns of two levels: ``source`` and ``inverse`` by item (expected weight over L by the
        item's key, of inverse terms reversed), and ``silhouette`` by item.

    Raises
    ------
    ParameterError
        There are no answers to a questionnaire.

    References
    ----------
    Reuben et al. (2024), sections 3.2 and 3.3.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.measures.nulls import null_answers
    >>> answers = null_answers("challenges", "noise", respondents=3)
    >>> profiles(answers, [load_questionnaire("challenges")]).shape
    (3, 12)
    """
    keys = {item.id: item.keying for q in questionnaires for item in q.items}
    if lacking := {q.id for q in questionnaires} - set(answers["questionnaire"]):
        raise ParameterError(f"There are no answers to '{min(lacking)}'; ask that too.")
    shares = pss(answers, score, temperature)
    shares = shares[shares["item_id"].isin(keys)]
    weighted = shares["pss"] * shares["weight"] * shares["polarity"] * shares["item_id"].map(keys)
    by = ["respondent_id", "polarity", "item_id", "template"]
    means = weighted.groupby([shares[name] for name in by], sort=False).mean()
    table = means.groupby(level=by[:3], sort=False).mean().unstack(["polarity", "item_id"])
    table.columns = pd.MultiIndex.from_tuples(
        [("source" if polarity == 1 else "inverse", item) for polarity, item in table]
    )
    silhouettes = term_silhouettes(shares).pivot(
        index="respondent_id", columns="item_id", values="silhouette"
    )
    silhouettes.columns = pd.MultiIndex.from_product([["silhouette"], silhouettes.columns])
    wide = table.join(silhouettes).reindex(shares["respondent_id"].unique())
    order = list(itertools.product(("source", "inverse", "silhouette"), keys))
    return wide[[column for column in order if column in wide]]


def evidence(
    table: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    expected: Mapping[tuple[str, str], int],
    other: pd.DataFrame | None = None,
) -> pd.Series:
    """What each kind of evidence gives for one set of respondents.

    Parameters
    ----------
    table : DataFrame
        As :func:`profiles` gives it, or some of its rows.
    questionnaires : sequence of Questionnaire
    expected : mapping
        The sign, 1 or -1, that the correlation of every two of them has in people.
    other : DataFrame, optional
        Scores of the same respondents (same order) by another method, a column a questionnaire.

    Returns
    -------
    Series
        By the names of :data:`CRITERIA`: the mean silhouette; Cronbach's alpha and McDonald's
        omega, means over the questionnaires; the *least* of the expected correlations (Spearman),
        with the sign turned so that positive is as expected; the means over questionnaires of the
        correlations of source with inverse terms, and of the two methods (missing without
        `other`).

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.measures.nulls import null_answers
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> table = profiles(null_answers(both, "noise", respondents=8), both)
    >>> found = evidence(table, both, {("challenges", "gad7"): 1})
    >>> bool(found["source and inverse"] > 0.5)  # the normalisation's doing
    True
    """
    members = {q.id: [item.id for item in q.items] for q in questionnaires}
    items = {name: table["source"][own] for name, own in members.items()}
    scores = pd.DataFrame({name: part.mean(axis=1) for name, part in items.items()})
    inverse = pd.DataFrame({n: table["inverse"][own].mean(axis=1) for n, own in members.items()})
    rank = scores.corr("spearman")
    found = {
        "silhouette": table["silhouette"].mean(axis=None),
        "alpha": np.mean([alpha(part)["alpha"] for part in items.values()]),
        "omega": np.mean([omega(part) for part in items.values()]),
        "correlations": min(sign * rank.loc[a, b] for (a, b), sign in expected.items()),
        "source and inverse": scores.corrwith(inverse, method="spearman").mean(),
        "two methods": np.nan,
    }
    if other is not None:
        same = other[list(members)].set_axis(scores.index)
        found["two methods"] = scores.corrwith(same, method="spearman").mean()
    return pd.Series(found)


def sets_of(
    table: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    expected: Mapping[tuple[str, str], int],
    other: pd.DataFrame | None = None,
    paired: bool = True,
    size: int = 12,
    sets: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Evidence for many sets of respondents drawn from those there are.

    Parameters
    ----------
    table, questionnaires, expected, other
        As in :func:`evidence`; `other` has the respondents as index.
    paired : bool
        Whether `other` holds scores of the same respondents. If not, as for null respondents that
        have no second method, each is paired with somebody else's.
    size, sets : int
        Respondents in a set, without repetition, and how many sets.
    seed : int

    Returns
    -------
    DataFrame, shape (sets, criteria)
        Sets share respondents, so that their spread is less than that of new ones.

    Raises
    ------
    ParameterError
        There are fewer respondents than a set needs.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.measures.nulls import null_answers
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> table = profiles(null_answers(both, "noise", respondents=8), both)
    >>> sets_of(table, both, {("challenges", "gad7"): 1}, size=6, sets=3).shape
    (3, 6)
    """
    if len(table) < size:
        raise ParameterError(f"Sets of {size} need as many respondents, here {len(table)}.")
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(sets):
        part = table.iloc[rng.permutation(len(table))[:size]]
        second = None
        if other is not None:
            second = (
                other.reindex(part.index) if paired
                else other.iloc[rng.permutation(len(other))[:size]]
            )  # fmt: skip
        rows.append(evidence(part, questionnaires, expected, second))
    return pd.DataFrame(rows)


def power_table(
    real: pd.DataFrame, nulls: Mapping[str, pd.DataFrame], size: int = 12
) -> pd.DataFrame:
    """How well each kind of evidence tells real from null respondents, for every null.

    Parameters
    ----------
    real : DataFrame
        As :func:`sets_of` gives it.
    nulls : mapping of str to DataFrame
        The same for null respondents, by their kind.
    size : int
        Respondents in a set, which decides what correlation is significant.

    Returns
    -------
    DataFrame
        One row per ``criterion`` and ``null``: ``bar``, medians ``real, null_median``,
        ``real_pass, null_pass`` (shares of sets that reach the bar), ``auc`` (of
        :func:`psychometrics.measures.nulls.power`; sets share respondents, so that it has no
        interval),
        ``null_missing`` (the share of null sets without a value, which the area leaves out).

    Examples
    --------
    >>> real = pd.DataFrame({"silhouette": [0.7, 0.8], "alpha": [0.9, 0.9]})
    >>> table = power_table(real, {"noise": real - 0.5})
    >>> table[["criterion", "auc", "null_pass"]].to_numpy().tolist()
    [['silhouette', 1.0, 0.0], ['alpha', 1.0, 0.0]]
    """
    check_columns(real, (), real.columns)
    rows = []
    for (criterion, bar), (null, table) in itertools.product(CRITERIA.items(), nulls.items()):
        if criterion not in real:
            continue
        bar = significant(size) if bar is None else bar
        found = power(real[criterion], table[criterion], bar)
        rows.append(
            {
                "criterion": criterion, "null": null, "bar": bar,
                "real": real[criterion].median(), "null_median": table[criterion].median(),
                "real_pass": found["real_pass"], "null_pass": found["null_pass"],
                "auc": found["auc"], "null_missing": table[criterion].isna().mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def agreeing(
    scores: pd.DataFrame | Sequence[pd.DataFrame],
    expected: Mapping[tuple[str, str], int],
    size: int,
    draws: int = 200,
    seed: int = 0,
) -> pd.Series:
    """How often populations show all the correlations that people show.

    Parameters
    ----------
    scores : DataFrame or sequence of DataFrame
        Scale scores, respondents by scales, from which populations are drawn without repetition
        (all are one population if there are no more); or the populations themselves.
    expected : mapping
        The sign, 1 or -1, of the correlation of every two scales.
    size : int
        Respondents in a population.
    draws, seed
        Of the populations.

    Returns
    -------
    Series
        For each pair the median Spearman correlation, ``first ~ second``, and the central 95 %,
        ``first ~ second low`` and ``high``; ``significant``, the share of populations in which all
        of them have the expected sign and are significant at 5 % (two-sided); ``populations``.

    Examples
    --------
    >>> scores = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": [1.0, 2, 3, 4, 6, 5]})
    >>> agreeing(scores, {("a", "b"): 1}, 5, draws=20)["significant"]
    np.float64(1.0)
    """
    if isinstance(scores, pd.DataFrame):
        rng = np.random.default_rng(seed)
        number = draws if len(scores) > size else 1
        scores = [scores.iloc[rng.permutation(len(scores))[:size]] for _ in range(number)]
    rows = []
    for table in scores:
        rank = table.corr("spearman")
        rows.append([rank.loc[pair] for pair in expected])
    values, signs = np.array(rows), np.array(list(expected.values()))
    low, middle, high = np.quantile(values, [0.025, 0.5, 0.975], axis=0)
    found = {}
    for place, (first, second) in enumerate(expected):
        name = f"{first} ~ {second}"
        found |= {name: middle[place], f"{name} low": low[place], f"{name} high": high[place]}
    found["significant"] = (values * signs >= significant(size)).all(axis=1).mean()
    return pd.Series(found | {"populations": len(rows)})


def separations(
    real: pd.DataFrame,
    null: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    expected: Mapping[tuple[str, str], int],
    seed: int = 0,
) -> pd.Series:
    """How far each specification of the multiverse sets real respondents apart from null ones.

    Parameters
    ----------
    real, null : DataFrame
        Answers, as :func:`psychometrics.asking.ask` gives them.
    questionnaires : sequence of Questionnaire
    expected : mapping
        The sign, 1 or -1, of the correlation of every two scales that are looked at.
    seed : int
        Of twelve populations of half of the null respondents each.

    Returns
    -------
    Series
        By specification: the correlation of the real ones beyond the mean of the null's, in the
        expected direction and in standard deviations of the null's, averaged over the pairs.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.measures.nulls import null_answers
    >>> both = [load_questionnaire(name) for name in ("challenges", "gad7")]
    >>> real, null = (null_answers(both, "noise", respondents=12, seed=s) for s in (0, 50))
    >>> len(separations(real, null, both, {("challenges", "gad7"): 1}))
    108
    """
    pairs, size = list(expected), max(6, null["respondent_id"].nunique() // 2)
    found = multiverse(real, questionnaires, pairs)
    chance = multiverses(null, questionnaires, pairs, size, 12, seed)
    signs = [expected[pair] for pair in zip(found["first"], found["second"], strict=True)]
    z = signs * (found["r"] - chance.mean(axis=1)) / chance.std(axis=1)
    choices = ["score", "temperature", "terms", "templates", "transform"]
    return z.groupby(found[choices].astype(str).agg(", ".join, axis=1)).mean()


def partial_separation(
    real: pd.DataFrame,
    null: pd.DataFrame,
    expected: Mapping[tuple[str, str], int],
    controls: Sequence[str],
) -> float:
    r"""How far correlations with other scales held constant set real respondents apart.

    .. math:: z = s\,(\operatorname{artanh} r - \operatorname{artanh} r_0) \sqrt{n - k - 3}

    for the partial correlation *r* of the n real respondents, that of the null ones
    :math:`r_0`, k controls and the expected sign *s*; the mean over the pairs.

    Parameters
    ----------
    real, null : DataFrame
        Scale scores, respondents by scales.
    expected : mapping
        As in :func:`separations`.
    controls : sequence of str
        Scales to hold constant, such as placebos.

    Returns
    -------
    float

    References
    ----------
    Fisher (1915).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> real = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    >>> null = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    >>> partial_separation(real.assign(b=real["a"] + real["b"]), null, {("a", "b"): 1}, ["c"]) > 2
    np.True_
    """
    pairs, signs = list(expected), np.array(list(expected.values()))
    left = [
        partial_correlations(table, pairs, table[list(controls)])["partial"].to_numpy()
        for table in (real, null)
    ]
    error = 1 / np.sqrt(len(real) - len(controls) - 3)
    return (signs * (np.arctanh(left[0]) - np.arctanh(left[1])) / error).mean()


def significant(respondents: int, level: float = 0.05) -> float:
    """The smallest correlation that differs from zero at a level, two-sided, by the t test.

    Parameters
    ----------
    respondents : int
    level : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(significant(24), 3)
    0.404
    """
    t = stats.t.ppf(1 - level / 2, respondents - 2)
    return float(t / np.sqrt(respondents - 2 + t**2))
