"""Kinds of evidence of validity, computed for sets of respondents."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from .reliability import alpha, omega
from .scoring import pss
from .validity import term_silhouettes


def profiles(
    answers: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    score: str = "entailment",
    temperature: float = 1.0,
) -> pd.DataFrame:
    """Return what the kinds of evidence need of each respondent, computed once.

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
    >>> from psychometrics import null_answers
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
    """Return each kind of evidence for one set of respondents.

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
        ``silhouette, alpha, omega, correlations, source and inverse, two methods``: the mean
        silhouette; Cronbach's alpha and McDonald's omega, means over the questionnaires; the
        *least* of the expected correlations (Spearman), with the sign turned so that positive is
        as expected; the means over questionnaires of the correlations of source with inverse
        terms, and of the two methods (missing without `other`).

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
    """Return the evidence of many sets of respondents drawn from a pool.

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
    >>> from psychometrics import null_answers
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


def significant(respondents: int, level: float = 0.05) -> float:
    """Return the smallest correlation that differs from zero at a level, two-sided, by the t test.

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
