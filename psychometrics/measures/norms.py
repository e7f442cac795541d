"""Scores of self-report questionnaires, and their distances from human norms."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from ..checks import check_columns, check_flags
from ..exceptions import ParameterError
from ..questionnaires import AnyQuestionnaires, load_questionnaires, psychobench_keys
from .items import adjust

PAPER_LEVEL = 0.01
# The paper's comparison groups, for questionnaires whose files have other groups too.
_NORMS_OF_THE_PAPER = {"bsri": ("Workers (Women)", "Workers (Men)"), "lms": ("Whole Sample",)}


def norm_table(
    questionnaires: AnyQuestionnaires | None = None, paper: bool = False
) -> pd.DataFrame:
    """Return the human norms as a table.

    Parameters
    ----------
    questionnaires : Questionnaire, name or path, or several of them, optional
        Questionnaires with norms; by default PsychoBench's thirteen questionnaires.
    paper : bool
        Whether to keep only the groups that PsychoBench's paper uses.

    Returns
    -------
    DataFrame
        ``questionnaire, scale, title, group, norm_mean, norm_sd, norm_n, citation``.

    Examples
    --------
    >>> print(norm_table(["gse"])[["group", "norm_mean", "norm_sd"]].to_string(index=False))
           group  norm_mean  norm_sd
    Whole sample      29.55     5.32
    """
    check_flags(paper=paper)
    names = psychobench_keys() if questionnaires is None else questionnaires
    rows = []
    for questionnaire in load_questionnaires(names, texts=False):
        for norm in questionnaire.norms:
            groups = _NORMS_OF_THE_PAPER.get(questionnaire.id, (norm.group,))
            if not paper or norm.group in groups:
                title = questionnaire.scale(norm.scale).title
                row = (questionnaire.id, norm.scale, title, norm.group, norm.mean, norm.sd, norm.n)
                rows.append((*row, norm.citation))

    columns = ["questionnaire", "scale", "title", "group", "norm_mean", "norm_sd", "norm_n"]
    return pd.DataFrame(rows, columns=[*columns, "citation"])


def compare_means(
    mean: ArrayLike,
    sd: ArrayLike,
    n: ArrayLike,
    norm_mean: ArrayLike,
    norm_sd: ArrayLike,
    norm_n: ArrayLike,
    level: float = PAPER_LEVEL,
) -> pd.DataFrame:
    r"""Compare means by Student's or Welch's test after an F test, given their SDs and sizes.

    .. math:: \delta = \frac{\bar x_1 - \bar x_2}{s_2}, \qquad
              t_{\text{single}} = \frac{x - \bar x_2}{s_2\sqrt{1 + 1/n_2}}

    Parameters
    ----------
    mean, sd, n : array-like, shape (K,)
        Statistics of the runs. With an ``n`` of 1 there is no variance to compare, so the single
        value is tested against the norm's distribution by the test of Crawford and Howell.
    norm_mean, norm_sd, norm_n : array-like, shape (K,)
        Mean, standard deviation and size of the norm group.
    level : float
        Level of the F test: a smaller p selects Welch's test, any other p Student's.

    Returns
    -------
    DataFrame, K rows
        ``f, f_p, test`` (*student*, *welch*, *single*), ``t, df, p``; ``difference``
        with its 95 % interval ``low, high``;
        ``delta, delta_low, delta_high``, the difference in standard deviations of the norm
        (Bonett's interval); ``g``, Hedges' g with the pooled standard deviation. If one standard
        deviation is 0, F is undefined and Welch's test is used; if both are 0, there is no test.

    Raises
    ------
    ParameterError
        A standard deviation is below 0, a size is below 1, a level is outside (0, 1), the lengths
        differ, or a value is not a finite number.

    References
    ----------
    Huang et al. (2024), section 3.1; Welch (1947); Bonett (2008), the equation for one group's
    standard deviation; Crawford and Howell (1998); Hedges (1981).

    Examples
    --------
    >>> table = compare_means(4.2, 0.3, 10, 3.92, 0.66, 6076)
    >>> table["test"].item(), round(table["p"].item(), 3)
    ('student', 0.18)
    """
    _check_level(level)
    m1, s1, n1, m2, s2, n2 = _broadcast_values(mean, sd, n, norm_mean, norm_sd, norm_n)
    single = n1 == 1

    with np.errstate(divide="ignore", invalid="ignore"):
        f, f_p = _variance_test(s1, n1, s2, n2)
        equal = f_p > level
        v1 = s1**2 / n1
        v2 = s2**2 / n2
        pooled = ((n1 - 1) * s1**2 + (n2 - 1) * s2**2) / (n1 + n2 - 2)
        se = np.where(equal, np.sqrt(pooled * (1 / n1 + 1 / n2)), np.sqrt(v1 + v2))
        welch_df = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
        df = np.where(equal, n1 + n2 - 2, welch_df)
        se = np.where(single, s2 * np.sqrt(1 + 1 / n2), se)
        df = np.where(single, n2 - 1, df)

        difference = m1 - m2
        t = np.where(se > 0, difference / se, np.nan)
        p = 2 * stats.t.sf(np.abs(t), df)
        half = np.where(se > 0, stats.t.isf(0.025, df) * se, np.nan)

        delta = np.where(s2 > 0, difference / s2, np.nan)
        of_runs = np.where(single, 0.0, s1**2 / (s2**2 * (n1 - 1)))
        spread = np.sqrt(delta**2 / (2 * (n2 - 1)) + of_runs + 1 / (n2 - 1))
        width = stats.norm.isf(0.025) * spread
        scale = np.where(pooled > 0, np.sqrt(pooled), np.nan)
        g = difference / scale * (1 - 3 / (4 * (n1 + n2 - 2) - 1))

    test = np.select([single, equal], ["single", "student"], "welch")
    return pd.DataFrame(
        {
            "f": f, "f_p": f_p, "test": test, "t": t, "df": df, "p": p,
            "difference": difference, "low": difference - half, "high": difference + half,
            "delta": delta, "delta_low": delta - width, "delta_high": delta + width,
            "g": np.where(single, np.nan, g),
        }
    )  # fmt: skip


def _broadcast_values(*values: ArrayLike) -> tuple[np.ndarray, ...]:
    """Return means, deviations and sizes of the runs and of the norm, all of equal length."""
    try:
        arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, float)) for x in values))
    except (TypeError, ValueError):
        arrays = ()

    if not arrays or arrays[0].ndim > 1 or np.isinf(arrays).any():
        raise ParameterError("Give finite numbers: one, or as many as the other arguments have.")

    _, sd, n, _, norm_sd, norm_n = arrays
    negative = (sd[n != 1] < 0).any() or (norm_sd < 0).any()
    if negative or (n < 1).any() or (norm_n < 2).any():
        raise ParameterError("Deviations must be >= 0, sizes >= 1 for runs and >= 2 for norms.")

    return arrays


def compare_norms(
    scores: pd.DataFrame,
    norms: pd.DataFrame,
    level: float = PAPER_LEVEL,
    correction: str = "holm",
) -> pd.DataFrame:
    """Compare scale scores, raw or published, with human norms.

    Parameters
    ----------
    scores : DataFrame
        Raw scores, as :func:`psychometrics.measures.scoring.scale_scores` returns them, or a
        summary with ``respondent_id, questionnaire, scale, mean, sd, n``.
    norms : DataFrame
        The norms, as :func:`norm_table` returns them. Scales without a norm are left out.
    level : float
        Significance level of the F test and of the comparison.
    correction : {"holm", "fdr_bh", "bonferroni", "none"}
        Correction of ``p`` over a respondent's tests, by its name in statsmodels.

    Returns
    -------
    DataFrame
        The summary, the norm, the columns of :func:`compare_means`, ``significant``,
        ``p_corrected`` and ``significant_corrected``.

    Raises
    ------
    ParameterError
        No scale has a norm, the correction is unknown, a column is missing, or a value is not a
        finite number.

    References
    ----------
    Huang et al. (2024), section 3.1; Holm (1979); Benjamini and Hochberg (1995).
    """
    keys = ["respondent_id", "questionnaire", "scale"]
    numbers = ["score"] if "score" in getattr(scores, "columns", ()) else ["mean", "sd", "n"]
    check_columns(scores, keys, numbers)

    if "score" in scores:
        by = [c for c in ("respondent_id", "questionnaire", "mode", "scale") if c in scores]
        check_columns(scores, by)
        scores = scores.groupby(by, sort=False)["score"].agg(mean="mean", sd="std", n="count")
        scores = scores[scores["n"] > 0].reset_index()

    check_columns(norms, keys[1:], ["norm_mean", "norm_sd", "norm_n"])
    table = scores.merge(norms.drop(columns="title", errors="ignore"), on=keys[1:])
    if table.empty:
        raise ParameterError("None of these scales has a norm; give norms.")

    of_runs = table["mean"], table["sd"], table["n"]
    of_people = table["norm_mean"], table["norm_sd"], table["norm_n"]
    table = table.join(compare_means(*of_runs, *of_people, level))
    return corrected(table, level, correction)


def corrected(
    table: pd.DataFrame, level: float = PAPER_LEVEL, correction: str = "holm"
) -> pd.DataFrame:
    """Add ``significant``, ``p_corrected`` and ``significant_corrected`` to a table of tests.

    Parameters
    ----------
    table : DataFrame
        A table with a column ``p``; tests without a p value count as not significant.
    level : float
        Significance level.
    correction : {"holm", "fdr_bh", "bonferroni", "none"}
        Correction over a respondent's tests, by :func:`psychometrics.measures.items.adjust`.

    Returns
    -------
    DataFrame

    Raises
    ------
    ParameterError
        The correction is unknown, a column is missing, or a p value is not between 0 and 1.

    References
    ----------
    Holm (1979); Benjamini and Hochberg (1995).

    Examples
    --------
    >>> table = pd.DataFrame({"respondent_id": "a", "p": [0.01, 0.03, 0.04]})
    >>> corrected(table, level=0.05)["p_corrected"].tolist()
    [0.03, 0.06, 0.06]
    """
    check_columns(table, ["respondent_id"], ["p"])
    _check_level(level)
    table = table.astype({"p": "float64"})
    adjust(table["p"], correction)  # refuse impossible values before grouping
    table["significant"] = table["p"] < level
    by_respondent = table.groupby("respondent_id")["p"]
    table["p_corrected"] = by_respondent.transform(adjust, method=correction)
    table["significant_corrected"] = table["p_corrected"] < level
    return table


def _check_level(level: float) -> None:
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise ParameterError(f"level must lie between 0 and 1, got {level!r}.")


def _variance_test(
    s1: np.ndarray, n1: np.ndarray, s2: np.ndarray, n2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return F (larger over smaller variance) and its two-sided p, or NaN if a variance is 0."""
    is_larger = s1 >= s2
    f = np.where(is_larger, s1**2 / s2**2, s2**2 / s1**2)
    df1 = np.where(is_larger, n1 - 1, n2 - 1)
    df2 = np.where(is_larger, n2 - 1, n1 - 1)
    defined = (s1 > 0) & (s2 > 0) & (n1 > 1)
    p = np.minimum(1.0, 2 * stats.f.sf(np.where(defined, f, np.nan), df1, df2))
    return np.where(defined, f, np.nan), np.where(defined, p, np.nan)
