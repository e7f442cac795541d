"""The tables of PsychoBench (Huang et al., 2024), tests of them, and evidence on its claims."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.oneway import anova_generic

from psychometrics.checks import check_choice
from psychometrics.measures.norms import (
    PAPER_LEVEL,
    compare_means,
    compare_norms,
    corrected,
    norm_table,
)
from psychometrics.paths import data_dir
from psychometrics.questionnaires import psychobench_keys

# In standard deviations of people. A difference of this size is "visible to the naked eye" (Cohen,
# 1988, section 2.2), so scores that are close to people's, or not above them, differ by less.
_MEDIUM_EFFECT = 0.5


@functools.cache
def _published() -> pd.DataFrame:
    """Return the tables of Huang et al. (2024): 1-4 and 7 (models), 8-20 (roles), 22, 23 and 24."""
    table = pd.read_csv(data_dir() / "norms" / "psychobench_tables.csv")
    return table.rename(columns={"respondent": "respondent_id"})


def published_tests(
    study: str = "models",
    against: str = "norms",
    level: float = PAPER_LEVEL,
    correction: str = "holm",
) -> pd.DataFrame:
    """Test every published mean of a study against people or against one of the study's columns.

    Parameters
    ----------
    study : str
        *models* (Tables 1 to 4 and 7), *roles* (8 to 20), *wordings* (22), *assistant* (23) or
        *temperature* (24); only the first two can be compared with people.
    against : str
        ``"norms"``, or a respondent to compare with, such as ``default`` or ``v1``: the
        respondent's figures are then ``norm_mean, norm_sd, norm_n``, and its standard deviation is
        the unit of ``delta``.
    level : float
        Level of significance.
    correction : str
        As in :func:`psychometrics.measures.norms.compare_norms`.

    Returns
    -------
    DataFrame
        The columns of :func:`psychometrics.measures.norms.compare_norms`, and ``settled``: whether
        all figures that round to the published figures give the same significance and direction.

    Raises
    ------
    ParameterError
        The study is unknown, or does not contain the respondent.

    Examples
    --------
    >>> table = published_tests("assistant", "with").set_index("scale")
    >>> round(float(table.loc["conscientiousness", "p"]), 2)
    0.12
    """
    tables = _published()
    people = against == "norms"
    studies = ["models", "roles"] if people else list(tables["study"].unique())
    check_choice(studies, study=study)

    rows = tables[tables["study"] == study].drop(columns="study")
    if people:
        table = compare_norms(rows, norm_table(paper=True), level, correction)
    else:
        check_choice(rows["respondent_id"].unique(), against=against)
        base = rows[rows["respondent_id"] == against].drop(columns="respondent_id")
        base = base.rename(columns={"mean": "norm_mean", "sd": "norm_sd", "n": "norm_n"})
        compared = rows[rows["respondent_id"] != against]
        table = compared.merge(base, on=["table", "questionnaire", "scale"])
        figures = table[["mean", "sd", "n", "norm_mean", "norm_sd", "norm_n"]].to_numpy().T
        table = corrected(table.join(compare_means(*figures, level=level)), level, correction)

    rounding = 0.05 if study in ("models", "roles") else 0.005
    table["settled"] = _settled(table, level, rounding, both=not people)
    return table


def claim_findings(draws: int = 100, seed: int = 0, level: float = PAPER_LEVEL) -> pd.DataFrame:
    """Compute the claims of Huang et al. (2024) from their tables, and from random answers.

    ``data/norms/psychobench_statistics.csv`` names the statistic and the cells of each claim.

    Parameters
    ----------
    draws : int
        Number of sets of tables in which every model and every role answers at random.
    seed : int
        Seed of the random tables.
    level : float
        Level of significance.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id`` of ``data/claims/psychobench.csv``: ``value`` with its 95 % interval
        ``low, high``; ``p of the claim``, two-sided, for a test against the bar of the claim (0;
        for shares of scales ``level``; for scores said to be close to people's or not above them,
        half a standard deviation of people); and ``null, null low, null high``, median and central
        95 % over the random tables, missing for the published counts. Differences are in standard
        deviations of people. An interval of a mean over models or scales treats these as a sample;
        an interval of a difference between two respondents treats their runs as samples.

    References
    ----------
    Huang et al. (2024), sections 3.2 and 4.1 and appendix B.3; Welch (1951); Armitage (1955);
    Cohen (1988).

    Examples
    --------
    >>> found = claim_findings(draws=2)
    >>> bool(found.loc["psychobench-lying", "value"] > 1)
    True
    """
    path = data_dir() / "norms" / "psychobench_statistics.csv"
    claims = pd.read_csv(path, index_col="claim_id", keep_default_na=False).to_dict("index")
    values = _statistics(claims, _published(), level)
    counted = {name: _counted(claim) for name, claim in claims.items() if _is_count(claim)}
    values = pd.DataFrame({name: (values | counted)[name] for name in claims}).T
    rng = np.random.default_rng(seed)
    random_values = (_statistics(claims, _random_table(rng), level) for _ in range(draws))
    random_values = pd.DataFrame(
        {name: value for name, (value, *_) in statistics.items()} for statistics in random_values
    )
    low, middle, high = random_values.quantile([0.025, 0.5, 0.975]).to_numpy()
    names = ["value", "low", "high", "p of the claim"]
    table = values.set_axis(names, axis=1).rename_axis("claim_id")
    null = pd.DataFrame({"null": middle, "null low": low, "null high": high}, random_values.columns)

    return table.join(null)


def _statistics(claims: dict[str, dict], tables: pd.DataFrame, level: float) -> dict[str, tuple]:
    """Return the value and the interval of every claim, from one set of tables."""
    keys = ["study", "respondent_id", "questionnaire", "scale"]
    names = tables[keys].itertuples(index=False, name=None)
    cells = dict(zip(names, tables[["mean", "sd", "n"]].to_numpy().tolist(), strict=True))
    interests = _interests(cells)
    statistics = {}
    for name, claim in claims.items():
        if claim["statistic"] == "interests":
            statistics[name] = interests[name.removeprefix("psychobench-")]
        elif claim["statistic"] == "largest, not above":
            statistics[name] = _largest(cells, claim, level)
        elif claim["statistic"] in _FROM_PEOPLE:
            statistics[name] = _from_people(cells, claim)
        elif not _is_count(claim):
            statistics[name] = _between_respondents(cells, claim, level)

    return statistics


# Statistics of respondents' distances from people, in people's standard deviations.
_FROM_PEOPLE = ("models", "scales, not above", "distance from people", "nearer people", "families")


@functools.cache
def _scales_of(cells: str) -> list[tuple[str, str]]:
    parts = cells.split("|")
    return [(q, s) for name in parts for q, s in _norms() if name in (q, f"{q}.{s}")]


def _group_norms(claim: dict[str, str], scale: tuple[str, str]) -> list[tuple]:
    """Return the mean, standard deviation and number of people in each group of a claim."""
    return [norm for group, *norm in _norms()[scale] if claim["group"] in ("", group)]


def _deltas(cells: dict[tuple, list], claim: dict[str, str], names: list[str]) -> np.ndarray:
    """Return the distance of each respondent's mean from people's, by scale.

    A cell, given by study, respondent, questionnaire and scale, has a mean, its SD and its n.
    """
    rows = []
    for name in names:
        row = []
        for scale in _scales_of(claim["cells"]):
            mean = cells[claim["study"], name, *scale][0]
            norms = _group_norms(claim, scale)
            row.append(np.mean([(mean - people) / sd for people, sd, _ in norms]))

        rows.append(row)

    return np.array(rows)


def _largest(cells: dict[tuple, list], claim: dict[str, str], level: float) -> tuple:
    """Compare the respondent that scores farthest above people with people and the bar."""
    who = claim["who"].split("|")
    scale = _scales_of(claim["cells"])[0]
    highest = who[int(_deltas(cells, claim, who)[:, 0].argmax())]
    scores = cells[claim["study"], highest, *scale]
    ((mean, sd, n),) = _group_norms(claim, scale)
    row = compare_means(*scores, mean, sd, n, level=level).iloc[0]
    against_bar = compare_means(*scores, mean + _MEDIUM_EFFECT * sd, sd, n, level=level).iloc[0]

    return row["delta"], row["delta_low"], row["delta_high"], against_bar["p"]


def _from_people(cells: dict[tuple, list], claim: dict[str, str]) -> tuple:
    statistic = claim["statistic"]
    who = claim["who"].split("|")
    deltas = _deltas(cells, claim, who)

    if statistic == "models":
        return _mean(deltas.mean(axis=1))
    if statistic == "scales, not above":
        return _mean(deltas[0], _MEDIUM_EFFECT)

    if statistic == "distance from people":
        distances = np.abs(deltas)
        sample = distances.mean(axis=1) if len(who) > 1 else distances[0]
        return _mean(sample, _MEDIUM_EFFECT)

    if statistic == "nearer people":
        return _mean(-np.diff(np.abs(deltas), axis=0)[0])

    mean_deltas = deltas.mean(axis=1)
    second = _deltas(cells, claim, claim["other"].split("|")).mean(axis=1)
    test = stats.ttest_ind(mean_deltas, second)
    return mean_deltas.mean() - second.mean(), *test.confidence_interval(), test.pvalue


def _between_respondents(cells: dict[tuple, list], claim: dict[str, str], level: float) -> tuple:
    statistic = claim["statistic"]
    study = claim["study"]
    who = claim["who"].split("|")
    other = claim["other"].split("|")
    scales = _scales_of(claim["cells"])

    if statistic in ("highest", "lowest"):
        sign = 1 if statistic == "highest" else -1
        rivals = [name for name in other if name not in who]
        other = [max(rivals, key=lambda name: sign * cells[study, name, *scales[0]][0])]

    if statistic in ("apart", "highest", "lowest"):
        return _apart(cells, study, who[0], other[0], scales)

    if statistic == "omnibus":
        hits = np.array([_roles_differ(cells, study, who, scale) < level for scale in scales])
        return _share(hits, level)

    pairs = [cells[study, a, *c] + cells[study, b, *c] for a in who for b in other for c in scales]
    hits = (compare_means(*np.array(pairs).T, level=level)["p"] < level).to_numpy()
    if statistic.startswith("number"):
        return float(hits.sum()), np.nan, np.nan, np.nan

    return _share(hits, level)


def _share(hits: np.ndarray, bar: float) -> tuple[float, float, float, float]:
    test = stats.binomtest(int(hits.sum()), len(hits), bar)
    return hits.mean(), *test.proportion_ci(0.95), test.pvalue


def _mean(values: np.ndarray, bar: float = 0.0) -> tuple[float, float, float, float]:
    test = stats.ttest_1samp(values, bar)
    return values.mean(), *test.confidence_interval(), test.pvalue


def _apart(cells, study: str, first: str, second: str, scales) -> tuple[float, float, float, float]:
    """Return two respondents' mean difference over scales, with Welch's test over runs."""
    difference = 0.0
    variances = []
    for q, s in scales:
        (m1, s1, n1), (m2, s2, n2) = cells[study, first, q, s], cells[study, second, q, s]
        unit = np.mean([sd for _, _, sd, _ in _norms()[q, s]]) * len(scales)
        difference += (m1 - m2) / unit
        variances += [(s1**2 / n1 / unit**2, n1 - 1), (s2**2 / n2 / unit**2, n2 - 1)]

    v, df = np.array(variances).T
    error = np.sqrt(v.sum())
    df = v.sum() ** 2 / (v**2 / df).sum()
    half = stats.t.isf(0.025, df) * error
    return (
        difference,
        difference - half,
        difference + half,
        2 * stats.t.sf(abs(difference) / error, df),
    )


def _is_count(claim: dict[str, str]) -> bool:
    return claim["statistic"].startswith("counted")


def _counted(claim: dict[str, str]) -> tuple[float, float, float, float]:
    """Return the shares of runs by sex role in Table 2, and how well they fit the means."""
    counts = pd.read_csv(data_dir() / "norms" / "bsri_conclusions.csv")
    counts = counts[counts["study"] == "models"].set_index("respondent")
    table = counts.loc[claim["who"].split("|")]
    statistic = claim["statistic"].removeprefix("counted ")
    runs = table[["undifferentiated", "masculine", "feminine", "androgynous"]]
    n = runs.sum(axis=1)

    if statistic == "trend":  # Cochran and Armitage, scores -1, 0, 1
        step = np.arange(len(table)) - (len(table) - 1) / 2
        shares = table["masculine"] / n
        pooled = table["masculine"].sum() / n.sum()
        z = (table["masculine"] * step).sum() / np.sqrt(pooled * (1 - pooled) * (n * step**2).sum())
        slope = (shares * step).sum() / (step**2).sum()
        error = np.sqrt((shares * (1 - shares) / n * step**2).sum()) / (step**2).sum()
        half = stats.norm.isf(0.025) * error

        return slope, slope - half, slope + half, 2 * stats.norm.sf(abs(z))

    if statistic == "fit":
        means = _published().query("study == 'models' and questionnaire == 'bsri'")
        means = means.pivot(index="respondent_id", columns="scale", values="mean").loc[table.index]
        fits = np.ones(len(table), bool)

        for scale in ("masculine", "feminine"):
            cut = np.mean([m for _, m, _, _ in _norms()["bsri", scale]])
            never = table[scale] + table["androgynous"] == 0
            fits &= ~(never & (means[scale] > cut)).to_numpy()

        return float(fits.sum()), np.nan, np.nan, np.nan

    first, *second = statistic.split(" less ")
    share = table[first] - sum(table[other] for other in second)
    return share.sum() / n.sum(), np.nan, np.nan, np.nan


def _roles_differ(cells, study: str, who: list[str], scale: tuple[str, str]) -> float:
    """Return the p value of Welch's analysis of variance of a scale, from summary statistics."""
    m, s, n = np.array([cells[study, name, *scale] for name in who]).T
    variances = np.maximum(s, 0.05) ** 2  # a printed 0.0 may be as large as 0.05
    return float(anova_generic(m, variances, n, use_var="unequal").pvalue)


def _interests(cells) -> dict[str, tuple[float, float, float, float]]:
    """Compute the claims about CABIN's 41 interests: their similarity and the favourites."""
    named = {
        "vocations-liked": ("social_service", "health_care_service", "teaching_education"),
        "vocations-disliked": ("physical_manual_labor", "protective_service"),
    }
    ids = [scale["id"] for scale in psychobench_keys()["cabin"]["scales"]]
    who = dict.fromkeys(
        who for study, who, name, _ in cells if (study, name) == ("models", "cabin")
    )
    means = pd.DataFrame({w: [cells["models", w, "cabin", s][0] for s in ids] for w in who}, ids)
    people = pd.Series({s: _norms()["cabin", s][0][1] for s in ids})
    models = means.drop(columns="gpt-4-jb")
    together = models.mean(axis=1)
    half = stats.norm.isf(0.025) / np.sqrt(len(ids) - 3)
    rho = models.corr("spearman").to_numpy()[np.triu_indices(models.shape[1], 1)].mean()
    of_people = together.corr(people, method="spearman")
    statistics = {}
    for name, r in (("interests-alike", rho), ("interests-of-people", of_people)):
        z = np.arctanh(r)
        wide = stats.norm.isf(0.025)
        p = 2 * stats.norm.sf(abs(z) * wide / half)
        statistics[name] = (r, *np.tanh(z + np.array([-half, half])), p)

    for name, interests in named.items():
        for who, table in ((name, together), (f"{name}-by-people", people)):
            ranked = table.sort_values(ascending=name != "vocations-liked", kind="stable").index
            hits = float(len({*interests} & {*ranked[: len(interests)]}))
            statistics[who] = hits, np.nan, np.nan, np.nan

    apart = (means["gpt-4"] - 3).abs() - (means["gpt-4-jb"] - 3).abs()
    return statistics | {"jailbreak-central": _mean(apart.to_numpy())}


@functools.cache
def _norms() -> dict[tuple[str, str], list[tuple]]:
    """Return people's means, standard deviations and sample sizes, by questionnaire and scale."""
    norms: dict[tuple, list] = {}
    for row in norm_table(paper=True).itertuples():
        norms.setdefault((row.questionnaire, row.scale), []).append(
            (row.group, row.norm_mean, row.norm_sd, row.norm_n)
        )
    return norms


def _random_table(rng: np.random.Generator) -> pd.DataFrame:
    """Draw tables like the published ones, with means and deviations of random answers."""
    sizes = {
        (name, scale["id"]): (len(scale["items"]), *key["range"], key["mode"])
        for name, key in psychobench_keys().items()
        for scale in key["scales"]
    }
    table = _published()
    shapes = pd.Series([*zip(table["questionnaire"], table["scale"], strict=True)]).map(sizes)
    table = table[shapes.notna()]
    shapes = shapes.dropna().reset_index(drop=True)
    mean = np.empty(len(table))
    sd = np.empty(len(table))

    for (items, low, high, mode), rows in shapes.groupby(shapes).indices.items():
        runs = rng.integers(low, high + 1, (len(rows), 10, items)).sum(axis=2)
        runs = runs / (1 if mode == "sum" else items)
        mean[rows], sd[rows] = runs.mean(axis=1), runs.std(axis=1, ddof=1)

    return table.assign(mean=mean, sd=sd, n=10)


def _direction(significant: pd.Series, difference: pd.Series) -> np.ndarray:
    return np.sign(difference.to_numpy()) * significant.to_numpy()


def _settled(table: pd.DataFrame, level: float, rounding: float, both: bool) -> np.ndarray:
    """Return whether all values that round to the published values give the same direction."""
    steps = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * rounding
    ends = (-rounding, 0, rounding) if both else (0.0,)
    direction = _direction(table["significant"], table["difference"])
    is_settled = np.ones(len(table), dtype=bool)

    for shift, widen, base_shift, base_widen in itertools.product(steps, steps, ends, ends):
        sd = (table["sd"] + widen).clip(1e-6)
        base_sd = (table["norm_sd"] + base_widen).clip(1e-6)
        mean = table["mean"] + shift
        base = table["norm_mean"] + base_shift
        again = compare_means(mean, sd, table["n"], base, base_sd, table["norm_n"], level)
        is_settled &= _direction(again["p"] < level, again["difference"]) == direction

    return is_settled
