"""Scores of self-report questionnaires, and how far they are from human norms."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from .exceptions import ParameterError
from .paths import data_dir
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
    """
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


def bsri_conclusions(
    scores: pd.DataFrame,
    masculine: float | None = None,
    feminine: float | None = None,
) -> pd.DataFrame:
    """Bem's four-way conclusion of every run: above the median or not on each of two scales.

    Parameters
    ----------
    scores : DataFrame
        As :func:`sum_scores` gives them, of ``bsri``.
    masculine, feminine : float, optional
        The medians; by default the mean over the norm's groups of workers, since the file has no
        medians.

    Returns
    -------
    DataFrame
        ``respondent_id, mode, run, masculine, feminine, conclusion`` (*undifferentiated*,
        *masculine*, *feminine*, *androgynous*, or missing where a score is).

    References
    ----------
    Bem (1977); Huang et al. (2024), appendix A.2.
    """
    part = scores[scores["questionnaire"] == "bsri"]
    if part.empty:
        raise ParameterError("There are no BSRI scores; ask that questionnaire first.")
    norms = norm_table(["bsri"], paper=True).groupby("scale")["norm_mean"].mean()
    cut_m = norms["masculine"] if masculine is None else masculine
    cut_f = norms["feminine"] if feminine is None else feminine
    keys = ["respondent_id", "mode", "run"]
    table = part.pivot(index=keys, columns="scale", values="score").reset_index()
    table = table[[*keys, "masculine", "feminine"]].rename_axis(columns=None)
    high = (table["masculine"] > cut_m).astype(int) + 2 * (table["feminine"] > cut_f).astype(int)
    table["conclusion"] = high.map(dict(enumerate(_SEX_ROLES)))
    table.loc[table[["masculine", "feminine"]].isna().any(axis=1), "conclusion"] = None
    return table


def bsri_own_median(answers: pd.DataFrame) -> pd.DataFrame:
    """The conclusion with the median of the run's own answers, which fits the paper's counts.

    A scale is *high* where the mean of its answers exceeds their own median, that is, where they
    are skewed to the right. It says nothing of how masculine or feminine the answers are.

    Parameters
    ----------
    answers : DataFrame
        Answers to ``bsri``.

    Returns
    -------
    DataFrame
        ``respondent_id, mode, run, masculine, feminine`` (mean minus median), ``conclusion``.
    """
    questionnaire = load_questionnaire("bsri", texts=False)
    part = answers[(answers["questionnaire"] == "bsri") & (answers["status"] == "ok")]
    wide, _ = _matrix(part, questionnaire, list(ASKED))
    table = wide.index.to_frame(index=False)[["respondent_id", "mode", "run"]]
    for scale in ("masculine", "feminine"):
        values = wide[list(questionnaire.scale(scale).items)]
        table[scale] = (values.mean(axis=1) - values.median(axis=1)).to_numpy()
    high = (table["masculine"] > 0).astype(int) + 2 * (table["feminine"] > 0).astype(int)
    table["conclusion"] = high.map(dict(enumerate(_SEX_ROLES)))
    return table


@functools.cache
def published_tables() -> pd.DataFrame:
    """The paper's tables: ``study, table, questionnaire, scale, respondent_id, mean, sd, n``.

    Studies are *models* (Tables 1 to 4 and 7), *roles* (8 to 20), *wordings* (22), *assistant*
    (23) and *temperature* (24).

    Examples
    --------
    >>> published_tables()["study"].unique().tolist()
    ['models', 'roles', 'wordings', 'assistant', 'temperature']
    """
    table = pd.read_csv(data_dir() / "norms" / "psychobench_tables.csv")
    return table.rename(columns={"respondent": "respondent_id"})


@functools.cache
def published_conclusions() -> pd.DataFrame:
    """The paper's BSRI conclusions: ``study, respondent_id`` and counts of the four."""
    table = pd.read_csv(data_dir() / "norms" / "bsri_conclusions.csv")
    return table.rename(columns={"respondent": "respondent_id"})


def published_against_norms(
    study: str = "models", level: float = PAPER_LEVEL, correction: str = "holm"
) -> pd.DataFrame:
    """Every published mean of a study against its human norm, and whether rounding decides.

    Parameters
    ----------
    study : {"models", "roles"}
        Tables 1 to 4 and 7, or 8 to 20.
    level : float
        Of significance.
    correction : str
        As in :func:`compare_norms`.

    Returns
    -------
    DataFrame
        As :func:`compare_norms` gives it, and ``settled``: whether every mean and standard
        deviation that rounds to the published one gives the same significance and direction.
    """
    tables = published_tables()
    if study not in ("models", "roles"):
        raise ParameterError(f"study must be models or roles, got '{study}'.")
    part = tables[tables["study"] == study].drop(columns=["study"])
    table = compare_norms(part, norm_table(paper=True), level, correction)
    norm = table[["norm_mean", "norm_sd", "norm_n"]].to_numpy().T
    table["settled"] = _settled(table, norm, level, rounding=0.05)
    return table


def published_against(
    study: str, baseline: str, level: float = PAPER_LEVEL, correction: str = "holm"
) -> pd.DataFrame:
    """Every published mean of a study against that of one of its columns.

    Parameters
    ----------
    study : str
        Of :func:`published_tables`.
    baseline : str
        The respondent compared with, such as ``default`` or ``v1``.
    level : float
        Of significance.
    correction : str
        As in :func:`compare_norms`.

    Returns
    -------
    DataFrame
        As :func:`compare_norms` gives it, with the baseline's figures as ``norm_mean, norm_sd,
        norm_n``; ``delta`` is therefore in the baseline's standard deviations.
    """
    tables = published_tables()
    part = tables[tables["study"] == study].drop(columns="study")
    if baseline not in set(part["respondent_id"]):
        known = ", ".join(part["respondent_id"].unique())
        raise ParameterError(f"The study '{study}' has no '{baseline}'; it has {known}.")
    keys = ["table", "questionnaire", "scale"]
    base = part[part["respondent_id"] == baseline].drop(columns="respondent_id")
    base = base.rename(columns={"mean": "norm_mean", "sd": "norm_sd", "n": "norm_n"})
    table = part[part["respondent_id"] != baseline].merge(base, on=keys)
    figures = [table[c] for c in ("mean", "sd", "n", "norm_mean", "norm_sd", "norm_n")]
    table = corrected(table.join(compare_means(*figures, level=level)), level, correction)
    norm = table[["norm_mean", "norm_sd", "norm_n"]].to_numpy().T
    rounding = 0.005 if study in ("wordings", "assistant", "temperature") else 0.05
    table["settled"] = _settled(table, norm, level, rounding, both=True)
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


def significance_counts(
    comparisons: pd.DataFrame, level: float = PAPER_LEVEL, correction: str = "holm"
) -> pd.Series:
    """How many comparisons are significant, and under which reading.

    Parameters
    ----------
    comparisons : DataFrame
        As :func:`published_against_norms` gives them.
    level, correction
        As there.

    Returns
    -------
    Series
        Numbers of ``comparisons``; ``significant``; ``after correction``; ``settled`` (significant
        and not for rounding to decide); ``as one respondent`` (:func:`as_one_respondent`, not
        corrected).
    """
    single = as_one_respondent(comparisons, level, correction)
    return pd.Series(
        {
            "comparisons": len(comparisons),
            "significant": int(comparisons["significant"].sum()),
            "after correction": int(comparisons["significant_corrected"].sum()),
            "settled": int((comparisons["significant"] & comparisons["settled"]).sum()),
            "as one respondent": int(single["significant"].sum()),
        }
    )


def published_claims(level: float = PAPER_LEVEL) -> pd.DataFrame:
    """What the paper says of its tables, cell by cell, beside the recomputed test.

    The tables print no marks of significance; the text says which scores are higher, lower or
    not different. ``data/norms/psychobench_claims.csv`` has each statement with the cells it
    speaks of.

    Parameters
    ----------
    level : float
        Of significance.

    Returns
    -------
    DataFrame
        ``claim, section, text, study, respondent_id, questionnaire, scale, group, expected`` (*higher*,
        *lower*, *same*), ``found`` (likewise), ``agrees, p, delta, settled``.
    """
    claims = pd.read_csv(data_dir() / "norms" / "psychobench_claims.csv", keep_default_na=False)
    tests = {
        (study, against): _tests(study, against, level)
        for study, against in set(zip(claims["study"], claims["against"], strict=True))
    }
    parts = []
    for claim in claims.itertuples():
        table = _claimed(claim, tests[claim.study, claim.against])
        table = table.assign(claim=claim.claim, section=claim.section, text=claim.text,
                             study=claim.study, expected=claim.expected)  # fmt: skip
        parts.append(table)
    table = pd.concat(parts, ignore_index=True)
    table["found"] = _direction(table)
    table["agrees"] = table["found"] == table["expected"]
    columns = [
        "claim", "section", "text", "study", "respondent_id", "questionnaire", "scale", "group",
        "expected", "found", "agrees", "p", "delta", "settled",
    ]  # fmt: skip
    return table[columns]


def cabin_dimensions(interests: pd.DataFrame) -> pd.DataFrame:
    """Means of CABIN's eight (SETPOINT) and six (RIASEC) dimensions from those of 41 interests.

    Parameters
    ----------
    interests : DataFrame
        ``respondent_id, scale, mean`` of the 41 interests.

    Returns
    -------
    DataFrame
        ``respondent_id, model`` (*setpoint*, *riasec*), ``scale, title, interests`` (how many),
        ``mean``.

    References
    ----------
    Su et al. (2019); Huang et al. (2024), Table 7. Which interests form a dimension was found
    from that table; see ``data/norms/psychobench.yml``.
    """
    keys = psychobench_keys()["cabin"]
    ids = {scale["title"]: scale["id"] for scale in keys["scales"]}
    wide = interests.pivot(index="respondent_id", columns="scale", values="mean")
    if lacking := set(ids.values()) - set(wide):
        raise ParameterError(f"CABIN's interest '{min(lacking)}' has no mean; all 41 are needed.")
    rows = []
    for model, dimensions in keys["dimensions"].items():
        for title, members in dimensions.items():
            scale = f"{model}_{title.lower().replace(' ', '_')}"
            means = wide[[ids[m] for m in members]].mean(axis=1)
            rows += [(r, model, scale, title, len(members), x) for r, x in means.items()]
    columns = ["respondent_id", "model", "scale", "title", "interests", "mean"]
    return pd.DataFrame(rows, columns=columns)


def check_chapter(
    *,
    respondent: str,
    population: str,
    members: int,
    choose: str,
    baseline: str,
    wording: str,
    runs: int,
    level: float,
    correction: str,
    seed: int,
) -> None:
    """Check the parameters of the chapter on self-report, before any model loads.

    Raises
    ------
    ParameterError
        A value is impossible, or papermill was given a name that the chapter does not have.
    RespondentError
        A respondent is not there.
    """
    given = dict(locals())
    from .book import refuse_unknown
    from .population import population as names_of
    from .respondents import identify

    refuse_unknown(given)
    for name, known in (("choose", ("draw", "argmax", "expected")), ("wording", ("auto", "none")),
                        ("correction", ("holm", "fdr_bh", "bonferroni", "none"))):  # fmt: skip
        if given[name] not in known:
            raise ParameterError(f"{name} must be one of {', '.join(known)}, got {given[name]!r}.")
    for name in ("respondent", "population", "baseline"):
        if not isinstance(given[name], str) or not given[name]:
            raise ParameterError(f"{name} must be text, got {given[name]!r}.")
    for name, least in (("runs", 2), ("members", 2), ("seed", 0)):
        value = given[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ParameterError(f"{name} must be a whole number from {least}, got {value!r}.")
    if not isinstance(level, float) or not 0 < level < 1:
        raise ParameterError(f"level must be a number between 0 and 1, got {level!r}.")
    for name in [respondent, *names_of(population)[:members]]:
        identify(name)


_SEX_ROLES = ("undifferentiated", "masculine", "feminine", "androgynous")


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


def _direction(table: pd.DataFrame) -> np.ndarray:
    return np.select(
        [~table["significant"], table["difference"] > 0], ["same", "higher"], default="lower"
    )


def _settled(table, norm, level: float, rounding: float, both: bool = False) -> np.ndarray:
    """Whether figures anywhere within the rounding lead to the same direction."""
    steps = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * rounding
    found = _direction(table)
    same = np.ones(len(table), dtype=bool)
    others = [(a, b) for a in (-rounding, 0, rounding) for b in (-rounding, 0, rounding)]
    for shift in steps:
        for widen in steps:
            for base_shift, base_widen in others if both else [(0.0, 0.0)]:
                sd = np.clip(table["sd"] + widen, 1e-6, None)
                base_sd = np.clip(norm[1] + base_widen, 1e-6, None)
                mean, base = table["mean"] + shift, norm[0] + base_shift
                again = compare_means(mean, sd, table["n"], base, base_sd, norm[2], level)
                same &= _direction(again.assign(significant=again["p"] < level)) == found
    return same


def _tests(study: str, against: str, level: float) -> pd.DataFrame:
    if against == "norms":
        return published_against_norms(study, level)
    return published_against(study, against, level).assign(group=against)


def _claimed(claim, table: pd.DataFrame) -> pd.DataFrame:
    """Rows of a table of tests that a claim speaks of."""
    keep = pd.Series(True, index=table.index)
    for column, wanted in (
        ("respondent_id", claim.respondents), ("questionnaire", claim.questionnaires),
        ("scale", claim.scales), ("group", claim.groups),
    ):  # fmt: skip
        if wanted:
            keep &= table[column].isin(wanted.split("|"))
    if not keep.any():
        raise ParameterError(f"data/norms/psychobench_claims.csv, {claim.claim}: names no cell.")
    return table[keep]
