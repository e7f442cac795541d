"""Item analysis of answers: discrimination, multiple tests, differential item functioning.

Every function takes a table of R respondents (rows) by I items (columns), from any source. For
correlations between items, use ``answers.corr()``: for 0/1 answers it returns phi coefficients,
each over the respondents who answered both items.

Gaps and constants follow one rule. An undefined statistic is missing, and so are its p value and
its interval; a statistic that needs complete answers raises a :class:`ParameterError` for gaps. Two
tables of the same items are matched by label, in any order of columns.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from ..checks import as_numbers, check_choice, check_columns
from ..exceptions import ParameterError
from .intervals import fisher_interval, row_correlations

_SEPARATED = 15  # log odds that only a likelihood without a maximum reaches
_ETS_LIMITS = (1.0, 1.5)  # |delta| below the first is A, above the second C


def _as_numbers(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a table of answers as floats with NaN in its gaps; refuse any other table.

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Numbers, truth values, or text that contains numbers; pandas' missing values are gaps.

    Returns
    -------
    DataFrame of float, shape (R, I)

    Raises
    ------
    ParameterError
        The table is empty, repeats an item's name, or contains anything but finite numbers.

    Examples
    --------
    >>> _as_numbers(pd.DataFrame({"a": ["1", None]}))["a"].tolist()
    [1.0, nan]
    """
    check_columns(answers, ())
    if not answers.size:
        raise ParameterError("the table of answers is empty; give respondents and items.")

    kinds = {getattr(dtype, "kind", "O") for dtype in answers.dtypes}
    try:
        if kinds & set("mMc"):  # pandas accepts times and complex numbers
            raise TypeError("times and complex numbers do not count")
        frame = (answers if kinds <= set("iufb") else answers.apply(pd.to_numeric)).astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError("answers must be numbers; leave out columns of text.") from error

    if (frame.abs() > 1e100).any(axis=None):  # squares would overflow
        raise ParameterError("answers must be finite; replace infinite values by missing ones.")
    return frame


def _binary_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """Return 0/1 answers as floats; refuse any other table."""
    frame = _as_numbers(answers)
    values = frame.to_numpy()
    if not np.isin(values[~np.isnan(values)], (0, 1)).all():
        raise ParameterError("answers must be 0, 1 or missing; recode all other values.")
    return frame


def item_rest(answers: pd.DataFrame) -> pd.DataFrame:
    r"""Return corrected item-total correlations, of each item with the sum of the other items.

    .. math:: r_{i(t-i)} = \mathrm{cor}\Bigl(x_i, \sum_{j \ne i} x_j\Bigr)

    Parameters
    ----------
    answers : DataFrame, shape (R, I)
        Scores. Respondents who skipped an item are left out.

    Returns
    -------
    DataFrame
        Indexed by item: ``r``, missing if the item or the sum of the other items has no variance;
        ``low, high``, its 95 % interval as in
        :func:`psychometrics.measures.intervals.fisher_interval`; ``n``, the number of complete
        respondents.

    References
    ----------
    Laverghetta et al. (2021), section 6.

    Examples
    --------
    >>> item_rest(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]}))["r"].round(3).tolist()
    [0.577, 0.577]
    """
    answers = _as_numbers(answers)
    x = answers.to_numpy()
    x = x[~np.isnan(x).any(axis=1)]
    n = len(x)
    rest_scores = x.sum(axis=1, keepdims=True) - x
    r = row_correlations(x.T, rest_scores.T) if n > 1 else np.full(x.shape[1], np.nan)
    low, high = fisher_interval(r, n)
    return pd.DataFrame({"r": r, "low": low, "high": high, "n": n}, index=answers.columns)


def dif(
    reference: pd.DataFrame, focal: pd.DataFrame, method: str = "mantel-haenszel"
) -> pd.DataFrame:
    r"""Test differential item functioning: whether an item is harder for a group at equal scores.

    Respondents are matched on the number t of solved items, including the studied item. A stratum
    has n respondents, with a right and b wrong answers in the reference group, and c right and d
    wrong answers in the focal group. The odds ratio of Mantel and Haenszel is

    .. math:: \hat\psi = \frac{\sum_s a_s d_s / n_s}{\sum_s b_s c_s / n_s}, \qquad
       \Delta = -2.35 \ln \hat\psi.

    Logistic regressions on t, then also on the group g, and then also on their product, give
    likelihood-ratio tests of uniform and of non-uniform DIF:

    .. math:: \mathrm{logit} P(x_i = 1) = \beta_0 + \beta_1 t + \beta_2 g + \beta_3 t g

    Parameters
    ----------
    reference, focal : DataFrame, shapes (R, I) and (F, I)
        The two groups' 0/1 answers, without gaps, to the same items, matched by label.
    method : {"mantel-haenszel", "logistic"}

    Returns
    -------
    DataFrame
        Indexed by item, with ``p`` (:func:`adjust` corrects it for several items).

        Mantel-Haenszel: ``odds_ratio`` (above 1: easier for the reference group at equal score),
        ``delta`` (ETS scale, -2.35 times its logarithm; negative: harder for the focal group),
        ``se`` of delta with its 95 % interval ``low, high``, ``chi2`` with continuity correction,
        and ``ets``: A negligible *or not significant*, B moderate, C large. If no stratum has a
        right answer in one group and a wrong one in the other, delta is infinite, and ``se, low,
        high`` are missing; all are missing (and ``ets`` empty) if no stratum has both groups and
        both answers.

        Logistic: ``group`` (log odds of the focal group at equal sum) with its standard error
        ``se``; the p values ``p_uniform``, ``p_nonuniform`` and, for both tests together (two
        degrees of freedom), ``p``; ``r2`` (gain in Nagelkerke's R squared) and ``size``: A below
        0.035 or not significant, B below 0.07, else C. If group and sum perfectly separate right
        from wrong answers, the tests use the limits of the likelihood, and ``group`` is infinite
        without a standard error. Everything is missing if all answers to an item or all sums are
        equal; ``p_nonuniform`` and ``p`` are also missing if the sums are equal within one group.

    Raises
    ------
    ParameterError
        The items differ, or an answer is missing or neither 0 nor 1.

    References
    ----------
    Holland and Thayer (1988); Zieky (1993) for the ETS classes; Robins, Breslow and Greenland
    (1986) for the standard error. Swaminathan and Rogers (1990) for logistic regression; Jodoin and
    Gierl (2001) for the sizes.

    Examples
    --------
    >>> reference = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 1, 1, 1], "c": [0, 0, 0, 1]})
    >>> focal = pd.DataFrame({"a": [1, 0, 0, 0], "b": [1, 1, 1, 1], "c": [0, 1, 1, 1]})
    >>> float(dif(reference, focal).loc["a", "odds_ratio"].round(6))  # 3 3 / 1 1
    9.0
    """
    check_choice(("mantel-haenszel", "logistic"), method=method)
    reference = _binary_answers(reference)
    focal = _binary_answers(focal)
    if set(reference) != set(focal):
        raise ParameterError("The groups answered different items: use the same items.")

    answers = pd.concat([reference, focal], ignore_index=True)
    if answers.isna().any(axis=None):
        raise ParameterError("Matching on the sum needs complete answers: drop rows with gaps.")

    group = np.arange(len(answers)) >= len(reference)  # whether a row is of the focal group
    if method == "logistic":
        return _logistic(answers, group.astype(float))
    total = answers.sum(axis=1)
    rows = {item: _mantel_haenszel(answers[item].to_numpy(), group, total) for item in answers}
    frame = pd.DataFrame(rows, index=["odds_ratio", "delta", "se", "chi2", "p"]).T
    reach = 1.959964 * frame["se"]
    frame.insert(3, "low", frame["delta"] - reach)
    frame.insert(4, "high", frame["delta"] + reach)
    frame["ets"] = _ets_classes(frame["delta"].abs(), frame["se"], frame["p"])

    return frame


def _logistic(answers: pd.DataFrame, group: np.ndarray) -> pd.DataFrame:
    """Return DIF by logistic regression, where `group` is 1 for the focal group."""
    from scipy.stats import chi2
    from statsmodels.api import GLM, families

    score = answers.sum(axis=1).to_numpy(float)
    score = (score - score.mean()) / (score.std() or 1)
    design = np.c_[np.ones_like(score), score, group, group * score]
    # Constant sums match nothing; sums that are constant in one group cannot show a crossing.
    ranks = [np.linalg.matrix_rank(design[:, :n]) for n in (2, 3, 4)]
    rows = {}
    for item in answers.columns[answers.nunique() > 1] if ranks[:2] == [2, 3] else ():
        y = answers[item].to_numpy(float)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # perfect separation is intended: its limit is used
            models = [GLM(y, design[:, :n], families.Binomial()) for n in (1, 2, 3, 4)]
            fitted = [model.fit(maxiter=100, tol=1e-13) for model in models]

        null, *likelihoods = (result.llf for result in fitted)
        gains = 2 * np.maximum(np.diff(likelihoods), 0)
        effect = fitted[2].params[-1]
        se = fitted[2].bse[-1]

        if np.abs(design[:, :3] @ fitted[2].params).max() > _SEPARATED:
            effect = np.sign(effect) * np.inf
            se = np.nan

        shares = 1 - np.exp(2 * (null - np.array(likelihoods)) / len(y))
        r2 = (shares[ranks[2] - 2] - shares[0]) / (1 - np.exp(2 * null / len(y)))
        crossing = (
            [chi2.sf(gains[1], 1), chi2.sf(gains.sum(), 2)] if ranks[2] == 4 else [np.nan] * 2
        )
        rows[item] = [effect, se, chi2.sf(gains[0], 1), *crossing, r2]

    columns = ["group", "se", "p_uniform", "p_nonuniform", "p", "r2"]
    frame = pd.DataFrame(rows, index=columns).T.reindex(answers.columns).astype(float)
    frame["size"] = np.select([frame["r2"] < 0.035, frame["r2"] < 0.07], ["A", "B"], "C")
    frame.loc[frame["p"].isna(), "size"] = ""
    # As in the ETS classes, an effect that is not significant is negligible whatever its size.
    frame.loc[frame["p"] >= 0.05, "size"] = "A"

    return frame


def adjust(p: pd.Series, method: str = "holm") -> pd.Series:
    """Correct p values for multiple tests; missing p values stay missing and are not counted.

    Parameters
    ----------
    p : Series
    method : {"holm", "fdr_bh", "bonferroni", "none"}
        The correction by Holm, by Benjamini and Hochberg (false discovery rate) or by Bonferroni,
        or none.

    Returns
    -------
    Series

    Raises
    ------
    ParameterError
        The correction is unknown, or a p value is not a number from 0 to 1.

    References
    ----------
    Holm (1979); Benjamini and Hochberg (1995), computed by
    :func:`scipy.stats.false_discovery_control`.

    Examples
    --------
    >>> adjust(pd.Series([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    check_choice(("holm", "fdr_bh", "bonferroni", "none"), method=method)
    as_numbers("p", p, axes=1)
    p = pd.Series(p).astype(float)

    if ((p < 0) | (p > 1)).any():
        raise ParameterError("p values must lie between 0 and 1; correct the column 'p'.")
    if method == "none" or p.isna().all():
        return p

    # statsmodels' multipletests spends a tenth of a second per call on garbage collection
    has_test = p.notna().to_numpy()  # by position, since labels may repeat
    tested = p.to_numpy()[has_test]
    if method == "fdr_bh":
        from scipy.stats import false_discovery_control

        corrected = false_discovery_control(tested)
    else:
        order = tested.argsort()
        tests = np.arange(len(tested), 0, -1) if method == "holm" else len(tested)
        steps = np.maximum.accumulate(tested[order] * tests)
        corrected = np.minimum(steps, 1)[order.argsort()]

    result = p.copy()
    result[has_test] = corrected
    return result


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
    # Computed by hand: statsmodels' correction overshoots, so that a difference below a half counts
    # in the other direction (R's mantelhaen.test also stops at zero).
    expected = ((a + b) * (a + c) / n).sum()
    statistic = max(abs(a.sum() - expected) - 0.5, 0) ** 2 / variance
    p = float(chi2.sf(statistic, 1))
    right = (a * d).any()
    wrong = (b * c).any()
    if not right or not wrong:  # without both products the odds ratio is not finite
        ratio = np.inf if right else 0.0
        return [ratio, -np.inf if right else np.inf, np.nan, statistic, p]

    table = StratifiedTable(np.array([[a, b], [c, d]]))
    delta = -2.35 * table.logodds_pooled
    se = 2.35 * table.logodds_pooled_se
    return [table.oddsratio_pooled, delta, se, statistic, p]


def _ets_classes(size: pd.Series, se: pd.Series, p: pd.Series) -> np.ndarray:
    """Return ETS classes: C from 1.5 and significantly above 1, A below 1 or not significant."""
    small, large = _ETS_LIMITS
    is_negligible = (p >= 0.05) | (size < small)
    is_large = (size >= large) & (se.isna() | ((size - small) / se > 1.645))
    return np.select([p.isna(), is_negligible, is_large], ["", "A", "C"], "B")
