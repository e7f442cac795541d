"""Scores of self-report questionnaires, and how far they are from human norms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from .answers import check_columns
from .exceptions import ParameterError
from .questionnaires import Questionnaire, load_questionnaire, psychobench_keys

ASKED = ("respondent_id", "questionnaire", "mode", "run")
PAPER_LEVEL = 0.01
NORMS_OF_THE_PAPER = {"bsri": ("Workers (Women)", "Workers (Men)"), "lms": ("Whole Sample",)}
"""Groups that the paper compares with, where its file has others too."""


def sum_scores(
    answers: pd.DataFrame,
    questionnaires: Questionnaire | Iterable[Questionnaire],
    by: Sequence[str] = (),
    least_answered: float = 1.0,
) -> pd.DataFrame:
    r"""Scale scores of every run: reversed items turned round, then added up or averaged.

        .. math:: v'_i = \min + \max - v_i \quad \text{for reversed items}

        Parameters
        ----------
        answers : DataFrame
            ``respondent_id, questionnaire, mode, run, item_id, value, status``, as
            :func:`psychometrics.ask.answer` gives them.
        questionnaires : Questionnaire or several
            Whose keys to use.
        by : sequence of str
            Further columns that tell askings apart, such as an order or a role.
        least_answered : float
            The share of a scale's items that must be answered, above 0. Below 1, what is missing is
            taken to be the mean of what is there (a sum is scaled up); at 1 a scale with an item
            missing has no score.

        Returns
        -------
        DataFrame
            ``respondent_id, questionnaire, mode, run``, those of ``by``, and ``scale, title, score,
            answered, items``. A score is missing where too few items were answered; nothing is
            guessed.

        Raises
        ------
        ParameterError
            Answers of an unknown questionnaire or item, a value outside the options' range, or an item
            that was answered twice in one run.

        References
        ----------
        Huang et al. (2024), Table 5.

        Examples
        --------
        >>> from psychometrics.ask import answer
    from psychometrics.questionnaires import load_questionnaire
        >>> mini = load_questionnaire("ipip20")
        >>> frame = pd.DataFrame({"respondent_id": "a", "questionnaire": "ipip20", "mode": "human",
        ...     "run": 1, "item_id": [item.id for item in mini.items], "value": 5.0, "status": "ok"})
        >>> float(sum_scores(frame, mini).set_index("scale").loc["extraversion", "score"])
        3.0
    """
    if not 0 < least_answered <= 1:
        raise ParameterError(f"least_answered must be above 0 and at most 1, got {least_answered}.")
    known = {i.id: i for i in _several(questionnaires)}
    keys = [*ASKED, *by]
    if lacking := [c for c in (*keys, "item_id", "value", "status") if c not in answers]:
        raise ParameterError(f"The answers have no column '{lacking[0]}'; add it.")
    parts = []
    for name, part in answers.groupby("questionnaire", sort=False):
        if name not in known:
            raise ParameterError(f"The answers are to '{name}'; give that questionnaire too.")
        wide, keyed = _matrix(part, known[name], keys)
        parts += [
            _scale_rows(wide.index, keyed, scale, least_answered) for scale in known[name].scales
        ]
    if not parts:
        raise ParameterError("There are no answers to score.")
    return pd.concat(parts, ignore_index=True)


def score_summary(
    scores: pd.DataFrame, by: Sequence[str] = ("respondent_id", "questionnaire", "scale")
) -> pd.DataFrame:
    """Mean, standard deviation and number of runs of each scale.

    Parameters
    ----------
    scores : DataFrame
        As :func:`sum_scores` gives them.
    by : sequence of str
        What a row of the summary is.

    Returns
    -------
    DataFrame
        The columns of ``by``, ``mean, sd, n``; missing scores are left out, and ``sd`` is missing
        for a single run.
    """
    table = scores.groupby(list(by), sort=False)["score"].agg(["mean", "std", "count"])
    table = table.rename(columns={"std": "sd", "count": "n"})
    return table[table["n"] > 0].reset_index()


def norm_table(names: Iterable[str] | None = None, paper: bool = False) -> pd.DataFrame:
    """Human norms as a frame.

    Parameters
    ----------
    names : iterable of str, optional
        Questionnaires; by default the thirteen of PsychoBench.
    paper : bool
        Only the groups that the paper compares with.

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
    columns = [
        "questionnaire", "scale", "title", "group", "norm_mean", "norm_sd", "norm_n", "citation"
    ]  # fmt: skip
    rows = []
    for name in psychobench_keys() if names is None else names:
        questionnaire = load_questionnaire(name, texts=False)
        for norm in questionnaire.norms:
            if paper and norm.group not in NORMS_OF_THE_PAPER.get(name, (norm.group,)):
                continue
            title = questionnaire.scale(norm.scale).title
            figures = (norm.mean, norm.sd, norm.n, norm.citation)
            rows.append((name, norm.scale, title, norm.group, *figures))
    return pd.DataFrame(rows, columns=columns)


def compare_means(
    mean, sd, n, norm_mean, norm_sd, norm_n, level: float = PAPER_LEVEL, coverage: float = 0.95
) -> pd.DataFrame:
    r"""Compare means from means, standard deviations and sizes: F test, then Student or Welch.

    .. math:: \delta = \frac{\bar x_1 - \bar x_2}{s_2}, \qquad
              t_{\text{single}} = \frac{x - \bar x_2}{s_2\sqrt{1 + 1/n_2}}

    Parameters
    ----------
    mean, sd, n : array-like, shape (K,)
        Of the runs. With ``n`` 1 there is no variance to compare and the single value is set
        against the norm's distribution (Crawford and Howell).
    norm_mean, norm_sd, norm_n : array-like, shape (K,)
        Of the people, or of what else is compared with.
    level : float
        Of the F test: below it, Welch's test; else Student's.
    coverage : float
        Of the intervals.

    Returns
    -------
    DataFrame, K rows
        ``f, f_p, test`` (*student*, *welch*, *single*), ``t, df, p``; ``difference, low, high``;
        ``delta, delta_low, delta_high``, the difference in standard deviations of the norm
        (Bonett's interval); ``g``, Hedges' g of the pooled standard deviation. Where a standard
        deviation is 0, F is not defined and Welch's test is used; where both are, there is no
        test.

    Raises
    ------
    ParameterError
        A standard deviation below 0, a size below 1, or a level or coverage outside (0, 1).

    References
    ----------
    Huang et al. (2024), section 3.1; Welch (1947); Bonett (2008), equation for one group's
    standard deviation; Crawford and Howell (1998); Hedges (1981).

    Examples
    --------
    >>> table = compare_means(4.2, 0.3, 10, 3.92, 0.66, 6076)
    >>> table["test"].item(), round(table["p"].item(), 3)
    ('student', 0.18)
    """
    for name, value in (("level", level), ("coverage", coverage)):
        if not 0 < value < 1:
            raise ParameterError(f"{name} must lie between 0 and 1, got {value}.")
    values = (mean, sd, n, norm_mean, norm_sd, norm_n)
    m1, s1, n1, m2, s2, n2 = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in values)
    )
    single = n1 == 1
    if (n1 < 1).any() or (n2 < 2).any() or (s1[~single] < 0).any() or (s2 < 0).any():
        raise ParameterError(
            "Standard deviations must not be negative, and sizes at least 1 and 2."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        f, f_p = _variance_test(s1, n1, s2, n2)
        equal = f_p > level
        v1, v2 = s1**2 / n1, s2**2 / n2
        pooled = ((n1 - 1) * s1**2 + (n2 - 1) * s2**2) / (n1 + n2 - 2)
        se = np.where(equal, np.sqrt(pooled * (1 / n1 + 1 / n2)), np.sqrt(v1 + v2))
        welch_df = (v1 + v2) ** 2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
        df = np.where(equal, n1 + n2 - 2, welch_df)
        se = np.where(single, s2 * np.sqrt(1 + 1 / n2), se)
        df = np.where(single, n2 - 1, df)
        difference = m1 - m2
        t = np.where(se > 0, difference / se, np.nan)
        p = 2 * stats.t.sf(np.abs(t), df)
        half = stats.t.isf((1 - coverage) / 2, df) * se
        delta = np.where(s2 > 0, difference / s2, np.nan)
        own = np.where(single, 0.0, s1**2 / (s2**2 * (n1 - 1)))
        spread = np.sqrt(delta**2 / (2 * (n2 - 1)) + own + 1 / (n2 - 1))
        width = stats.norm.isf((1 - coverage) / 2) * spread
        g = difference / np.sqrt(pooled) * (1 - 3 / (4 * (n1 + n2 - 2) - 1))
    test = np.select([single, equal], ["single", "student"], "welch")
    return pd.DataFrame(
        {
            "f": f, "f_p": f_p, "test": test, "t": t, "df": df, "p": p,
            "difference": difference, "low": difference - half, "high": difference + half,
            "delta": delta, "delta_low": delta - width, "delta_high": delta + width,
            "g": np.where(single, np.nan, g),
        }
    )  # fmt: skip


def compare_norms(
    scores: pd.DataFrame,
    norms: pd.DataFrame | None = None,
    level: float = PAPER_LEVEL,
    correction: str = "holm",
    family: Sequence[str] = ("respondent_id",),
    coverage: float = 0.95,
) -> pd.DataFrame:
    """Compare scale scores with human norms, from raw scores or from published figures.

    Parameters
    ----------
    scores : DataFrame
        Raw, as :func:`sum_scores` gives them, or a summary with ``respondent_id,
        questionnaire, scale, mean, sd, n``.
    norms : DataFrame, optional
        As :func:`norm_table` gives it, which is the default. Scales without a norm are left out.
    level : float
        Of the F test and of significance.
    correction : {"holm", "fdr_bh", "bonferroni", "none"}
        How ``p`` is corrected within a family of tests, as statsmodels names it.
    family : sequence of str
        Tests that share these columns' values are corrected together.
    coverage : float
        Of the intervals.

    Returns
    -------
    DataFrame
        The summary, the norm, what :func:`compare_means` gives, ``significant``, ``p_corrected``
        and ``significant_corrected``.

    Raises
    ------
    ParameterError
        No scale has a norm, or the correction is unknown.

    References
    ----------
    Huang et al. (2024), section 3.1; Holm (1979); Benjamini and Hochberg (1995).
    """
    if "score" in scores:
        by = [
            c for c in ("respondent_id", "questionnaire", "mode", "scale", *family) if c in scores
        ]
        scores = score_summary(scores, list(dict.fromkeys(by)))
    norms = norm_table(scores["questionnaire"].unique()) if norms is None else norms
    table = scores.merge(
        norms.drop(columns="title", errors="ignore"), on=["questionnaire", "scale"]
    )
    if table.empty:
        raise ParameterError("None of these scales has a norm; give norms for them.")
    figures = [table[c] for c in ("mean", "sd", "n", "norm_mean", "norm_sd", "norm_n")]
    table = table.join(compare_means(*figures, level=level, coverage=coverage))
    return corrected(table, level, correction, family)


def corrected(
    table: pd.DataFrame,
    level: float = PAPER_LEVEL,
    correction: str = "holm",
    family: Sequence[str] = ("respondent_id",),
) -> pd.DataFrame:
    """Add ``significant``, ``p_corrected`` and ``significant_corrected`` to a table of tests.

    Parameters
    ----------
    table : DataFrame
        With a column ``p``; tests without a p-value count as not significant.
    level : float
        Of significance.
    correction : {"holm", "fdr_bh", "bonferroni", "none"}
        Of statsmodels' :func:`multipletests`.
    family : sequence of str
        Tests that share these columns' values are corrected together; all, if empty.

    Returns
    -------
    DataFrame

    Raises
    ------
    ParameterError
        The correction is unknown, or a column is missing.

    References
    ----------
    Holm (1979); Benjamini and Hochberg (1995).

    Examples
    --------
    >>> table = pd.DataFrame({"p": [0.01, 0.03, 0.04]})
    >>> corrected(table, level=0.05, family=())["p_corrected"].tolist()
    [0.03, 0.06, 0.06]
    """
    check_columns(table, family, ["p"])
    if correction not in ("holm", "fdr_bh", "bonferroni", "none"):
        raise ParameterError(
            f"correction must be holm, fdr_bh, bonferroni or none, got '{correction}'."
        )
    table = table.copy()
    groups = [table.groupby(c, sort=False).ngroup().astype(str) for c in family]
    key = pd.Series("", index=table.index)
    for group in groups:
        key = key + "/" + group
    table["significant"] = table["p"] < level
    table["p_corrected"] = table["p"].groupby(key).transform(_corrected_p, method=correction)
    table["significant_corrected"] = table["p_corrected"] < level
    return table


def as_one_respondent(
    comparisons: pd.DataFrame, level: float = PAPER_LEVEL, correction: str = "holm"
) -> pd.DataFrame:
    """The same comparisons with the mean of the runs taken as one respondent's score.

    Runs of a model are no more people than one person asked ten times is ten people. This asks
    whether a person with such a score would be unusual among those of the norm.

    Parameters
    ----------
    comparisons : DataFrame
        As :func:`compare_norms` gives them.
    level, correction
        As there.

    Returns
    -------
    DataFrame
        Likewise, all tests being *single*.

    References
    ----------
    Crawford and Howell (1998).

    Examples
    --------
    >>> scores = pd.DataFrame({"respondent_id": "a", "questionnaire": "gse", "scale": "overall",
    ...                        "mean": [39.0], "sd": [0.5], "n": [10]})
    >>> table = compare_norms(scores)
    >>> bool(table["significant"].item()), bool(as_one_respondent(table)["significant"].item())
    (True, False)
    """
    given = [
        c for c in comparisons if c in ("study", "table", "title", "group", "citation", "mode")
    ]
    keys = ["respondent_id", "questionnaire", "scale", *given]
    table = comparisons[[*keys, "mean", "norm_mean", "norm_sd", "norm_n"]].reset_index(drop=True)
    table.insert(len(keys) + 1, "n", 1)
    figures = [table[c] for c in ("norm_mean", "norm_sd", "norm_n")]
    return corrected(
        table.join(compare_means(table["mean"], np.nan, 1, *figures, level=level)),
        level,
        correction,
    )


def _several(questionnaires) -> list[Questionnaire]:
    return [questionnaires] if isinstance(questionnaires, Questionnaire) else list(questionnaires)


def _matrix(
    answers: pd.DataFrame, questionnaire: Questionnaire, keys: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Askings by items, as answered and with every reversed item turned round, by scale's key."""
    ids = [item.id for item in questionnaire.items]
    if unknown := set(answers["item_id"]) - set(ids):
        raise ParameterError(
            f"{questionnaire.id} has no item '{min(unknown)}'; correct the answers."
        )
    if answers.duplicated([*keys, "item_id"]).any():
        row = answers[answers.duplicated([*keys, "item_id"])].iloc[0]
        raise ParameterError(
            f"{row['respondent_id']} answered {row['item_id']} twice in run {row['run']}; number "
            "the runs, or name the column that tells them apart in `by`."
        )
    value = answers["value"].where(answers["status"] == "ok").astype("float64")
    wide = answers.assign(value=value).pivot(index=keys, columns="item_id", values="value")
    wide = wide.reindex(columns=ids)
    ends = {i: [o.value for o in questionnaire.choices(i)] for i in ids}
    for name in ids:
        given = wide[name].dropna()
        low, high = min(ends[name]), max(ends[name])
        if (bad := given[~given.between(low, high)]).size:  # a mean of options is an answer too
            raise ParameterError(
                f"{name} has the answer {bad.iloc[0]:g}, outside {low:g} to {high:g}; correct it."
            )
    turned = wide.copy()
    for name in ids:
        turned[name] = min(ends[name]) + max(ends[name]) - wide[name]
    return wide, pd.concat({"as_is": wide, "turned": turned}, axis=1)


def _scale_rows(index: pd.MultiIndex, keyed, scale, least_answered: float) -> pd.DataFrame:
    sides = ["turned" if name in scale.reverse else "as_is" for name in scale.items]
    values = keyed[list(zip(sides, scale.items, strict=True))]
    answered = values.notna().sum(axis=1)
    score = values.mean(axis=1) * (len(scale.items) if scale.mode == "sum" else 1)
    score = score.where(answered >= max(1, np.ceil(least_answered * len(scale.items) - 1e-9)))
    rows = index.to_frame(index=False)
    rows["scale"], rows["title"] = scale.id, scale.title
    rows["score"], rows["answered"] = score.to_numpy(), answered.to_numpy()
    rows["items"] = len(scale.items)
    return rows


def _variance_test(s1, n1, s2, n2) -> tuple[np.ndarray, np.ndarray]:
    """F of the larger variance over the smaller, and its two-sided p; missing where one is 0."""
    first = s1 >= s2
    f = np.where(first, s1**2 / s2**2, s2**2 / s1**2)
    df1, df2 = np.where(first, n1 - 1, n2 - 1), np.where(first, n2 - 1, n1 - 1)
    defined = (s1 > 0) & (s2 > 0) & (n1 > 1)
    p = np.minimum(1.0, 2 * stats.f.sf(np.where(defined, f, np.nan), df1, df2))
    return np.where(defined, f, np.nan), np.where(defined, p, np.nan)


def _corrected_p(p: pd.Series, method: str) -> pd.Series:
    from statsmodels.stats.multitest import multipletests

    given = p.dropna()
    if method == "none" or given.empty:
        return p
    return pd.Series(multipletests(given, method=method)[1], index=given.index).reindex(p.index)


