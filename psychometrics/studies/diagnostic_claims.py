"""What the paper on diagnostic items claims, beside what is found here: rows for the scorecard."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from ..measures import items
from .diagnostic import CATEGORIES, POPULATIONS, answers, item_table, models, rasch_difficulties

_NULLS = ("null", "null_low", "null_high")


def cells(name: str, ours: pd.DataFrame) -> pd.DataFrame:
    """The fourteen cells of a table.

    Parameters
    ----------
    name : {"table1", "table2", "table3"}
        Which table.
    ours : DataFrame
        As :func:`psychometrics.studies.diagnostic.difficulty_table`, ``cluster_table`` or
        ``rasch_table`` gives it.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it. The null is
        guessing (table 1) or items paired at random.

    Examples
    --------
    >>> from psychometrics.studies.diagnostic import rasch_table
    >>> cells("table3", rasch_table(draws=50)).loc["diagnostic-table3-mn-lstms", "value"].round(2)
    np.float64(0.29)
    """
    rows = {
        f"diagnostic-{name}-{category.lower()}-{population}": _cell(ours, category, population)
        for category in CATEGORIES
        for population in POPULATIONS
    }
    return pd.DataFrame(rows).T


def judgements(name: str, ours: pd.DataFrame) -> pd.DataFrame:
    """The cells of a table that the paper calls significant, or not strong.

    Parameters
    ----------
    name, ours
        As in :func:`cells`.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it. The null of a
        significant cell is respondents who only prefer some labels to others (tables 1 and 3) or
        whole pairs of items permuted at random. That a correlation is not strong is said of the
        number alone.

    Examples
    --------
    >>> from psychometrics.studies.diagnostic import rasch_table
    >>> len(judgements("table3", rasch_table(draws=50)))
    8
    """
    rows = {}
    for category, population in SIGNIFICANT[name]:
        row = _cell(ours, category, population)
        if "label" in ours:
            row |= {key: ours.loc[category, key.replace("null", "label")] for key in _NULLS}
        rows[f"diagnostic-{name}-{category.lower()}-{population}-significant"] = row
    for category, population in WEAK[name]:
        value = abs(ours.loc[category, population])
        rows[f"diagnostic-{name}-{category.lower()}-{population}-weak"] = {"value": value}
    return pd.DataFrame(rows).T


SIGNIFICANT = {
    "table1": [(category, "transformers") for category in ("PP", "LE", "Q", "PS", "WK")],
    "table2": [(category, "transformers") for category in ("PP", "LE", "Q", "PS", "RLS", "WK")],
    "table3": [
        *((category, "transformers") for category in ("LE", "Q", "PS", "WK")),
        ("PP", "lstms"),
        ("WK", "lstms"),
    ],
}
"""Cells whose correlation the paper calls statistically significant."""
WEAK = {
    "table1": [("MN", "transformers"), ("RLS", "transformers")],
    "table2": [("MN", "transformers")],
    "table3": [("MN", "transformers"), ("RLS", "transformers")],
}
"""Cells of which it says that the correlation is not strong."""


def comparisons(table1: pd.DataFrame, table2: pd.DataFrame, draws: int = 2000) -> pd.DataFrame:
    """Sentences that compare populations over the cells of the first two tables.

    Parameters
    ----------
    table1, table2 : DataFrame
        As in :func:`cells`.
    draws : int
        Bootstrap samples of items, and populations of the null.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it.

    Examples
    --------
    >>> from psychometrics.studies.diagnostic import cluster_table, difficulty_table
    >>> found = comparisons(difficulty_table(draws=50), cluster_table(restarts=1), draws=50)
    >>> found.loc["diagnostic-table1-ahead-of-lstms", "value"].round(2)
    np.float64(0.34)
    """
    ahead = table1["transformers"] - table1["lstms"]
    drawn = {seed: _label_table(draws, seed) for seed in (0, 1)}
    many = (np.abs(drawn[0]) >= _least(table1)).sum(axis=0)
    rows = {
        "diagnostic-table1-ahead-of-lstms": {
            "value": ahead.mean(),
            **_mean_interval(table1, "transformers", "lstms"),
            **_null(np.nanmean(drawn[0] - drawn[1], axis=0)),
        },
        "diagnostic-table1-ahead-of-guessing": {
            "value": table1["transformers"].mean(),
            **_mean_interval(table1, "transformers"),
            **_null(np.nanmean(drawn[0], axis=0)),
        },
        "diagnostic-table1-most-significant": {
            "value": (table1["p_transformers"] < 0.05).sum(),
            **_null(many),
        },
        "diagnostic-table2-mn-lstms-ahead": {
            "value": table2.loc["MN", "lstms"] - table2.loc["MN", "transformers"],
            "low": table2.loc["MN", "low_lstms"] - table2.loc["MN", "high_transformers"],
            "high": table2.loc["MN", "high_lstms"] - table2.loc["MN", "low_transformers"],
        },
    }
    return pd.DataFrame(rows).T


def rasch_comparisons(
    table1: pd.DataFrame, table2: pd.DataFrame, table3: pd.DataFrame, draws: int = 2000
) -> pd.DataFrame:
    """Sentences that compare populations over the cells of table 3, or of all three tables.

    Parameters
    ----------
    table1, table2, table3 : DataFrame
        As in :func:`cells`.
    draws : int
        Bootstrap samples of items, and populations of the null.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it.

    Examples
    --------
    >>> from psychometrics.studies.diagnostic import cluster_table, difficulty_table, rasch_table
    >>> tables = difficulty_table(draws=50), cluster_table(restarts=1), rasch_table(draws=50)
    >>> found = rasch_comparisons(*tables, draws=50)
    >>> found.loc["diagnostic-table3-most-ahead", "value"]
    np.float64(4.0)
    """
    rows = {
        "diagnostic-table3-most-ahead": {
            "value": (table3["transformers"] > table3["lstms"]).sum(),
            **_null(np.random.default_rng(0).binomial(len(table3), 0.5, draws)),
        },
        "diagnostic-negation-never-strong": {
            "value": max(abs(t.loc["MN", "transformers"]) for t in (table1, table2, table3)),
        },
    }
    for category in ("PP", "WK"):
        rows[f"diagnostic-table3-{category.lower()}-lstms-ahead"] = _lead(category, draws)
    return pd.DataFrame(rows).T


def counts() -> pd.DataFrame:
    """Sentences on who answered what, and how well.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it.

    Examples
    --------
    >>> counts().loc["diagnostic-models", "value"]
    np.float64(240.0)
    """
    table, who = item_table(), models()
    people = {category: answers("people", category) for category in CATEGORIES}
    asked = table[table["asked"] != ""]
    labels = asked.groupby(["asked", "label"]).size().unstack(fill_value=0)
    share = answers().mean(axis=1)
    tuned = share[(who["population"] == "transformers") & (who["regime"] == "both")]
    data = who.loc[tuned.index, "data"]
    more, less = tuned[data == "snli+mnli+anli"], tuned[data == "snli"]
    by_regime = answers("transformers").groupby(who["regime"])
    gains = {
        category: (lambda x: x.loc["both"] - x.loc["untrained"])(
            by_regime[list(people[category])].mean().mean(axis=1)
        )
        for category in CATEGORIES
    }
    spread = pd.Series({category: x.var().mean() for category, x in people.items()})
    right = {name: answers(name, "MN") for name in ("people", *POPULATIONS)}
    every = pd.concat([right[name] for name in POPULATIONS])
    rows = {
        "diagnostic-models": [len(who)],
        "diagnostic-transformers": [(who["population"] == "transformers").sum()],
        "diagnostic-lstms": [(who["population"] == "lstms").sum()],
        "diagnostic-people": [len(answers("people", "MN", "completers"))],
        "diagnostic-items": [len(table)],
        "diagnostic-subcategories": [table["subcategory"].nunique()],
        "diagnostic-enough-items": [table["subcategory"].value_counts().min()],
        "diagnostic-fifteen": [min(x.shape[1] for x in people.values())],
        "diagnostic-balanced": [(np.ptp(labels.to_numpy(), axis=1) > 1).sum()],
        "diagnostic-phase1": [len(people["MN"])],
        "diagnostic-phase2": [len(people["LE"])],
        "diagnostic-phase3": [len(people["PS"])],
        "diagnostic-more-data": [more.mean() - less.mean(), *_welch(more, less)],
        "diagnostic-solvable": [min(gains.values())],
        "diagnostic-negation-variance": [spread["MN"] - spread.drop("MN").min()],
        "diagnostic-negation-people": [
            right["people"].mean(axis=None), *_over_rows(right["people"]),
        ],
        "diagnostic-negation-models": [every.mean(axis=None), *_over_rows(every)],
    }  # fmt: skip
    keys = ("value", "low", "high")
    return pd.DataFrame(
        {name: dict(zip(keys, row, strict=False)) for name, row in rows.items()}
    ).T.astype(float)


def architectures(changes: pd.DataFrame, draws: int = 100, seed: int = 0) -> pd.DataFrame:
    """Sentences on figure 1, beside architectures dealt out to the transformers at random.

    Parameters
    ----------
    changes : DataFrame
        Categories by architectures: their correlation with people less that of all transformers.
    draws : int
        Deals.
    seed : int
        Their seed.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it.

    Examples
    --------
    >>> from psychometrics.studies.diagnostic import published
    >>> found = architectures(published("figure1"), draws=3)
    >>> round(float(found.loc["diagnostic-figure1-roberta", "value"]), 2)
    0.28
    """
    x = answers("transformers")
    people = {c: answers("people", c, "completers").mean() for c in CATEGORIES}
    family = models().loc[x.index, "family"].to_numpy()
    rng, close, lead = np.random.default_rng(seed), [], []
    whole = {c: _rank_correlation(people[c], x[people[c].index].mean()) for c in CATEGORIES}
    for _ in range(draws):
        dealt = x.groupby(rng.permutation(family)).mean()
        gaps = pd.DataFrame(
            {
                c: {
                    name: _rank_correlation(people[c], row[people[c].index])
                    for name, row in dealt.iterrows()
                }
                for c in CATEGORIES
            }
        ).T.sub(pd.Series(whole), axis=0)
        close.append(np.nanmedian(np.abs(gaps)))
        lead.append(gaps.loc["MN"].dropna().nlargest(2).diff().iloc[-1] * -1)
    best = changes.loc["MN"].drop("roberta").max()
    rows = {
        "diagnostic-figure1-roberta": {"value": changes.loc["MN", "roberta"] - best} | _null(lead),
        "diagnostic-figure1-close": {"value": changes.abs().stack().median()} | _null(close),
    }
    return pd.DataFrame(rows).T


def absences(rest: pd.DataFrame, means: pd.DataFrame, subsets: pd.DataFrame) -> pd.DataFrame:
    """Sentences on what the models do not predict.

    Parameters
    ----------
    rest : DataFrame
        As :func:`psychometrics.studies.diagnostic.item_rest_table` gives it.
    means : DataFrame
        Mean inter-item correlations by category.
    subsets : DataFrame
        As :func:`psychometrics.studies.diagnostic.subset_inter_item` gives them.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``, as :func:`psychometrics.claims.record` wants it.

    Examples
    --------
    >>> means = pd.DataFrame({"people": [0.1, 0.2, 0.4], "lstms": [0.3, 0.1, 0.2],
    ...                       "transformers": [0.1, 0.2, 0.4]})
    >>> rest = pd.DataFrame({"lstms": [0.1, 0.9], "transformers": [0.9, 0.9], "null_high": 0.5})
    >>> found = absences(rest, means, means)["value"]
    >>> names = ["diagnostic-item-rest", "diagnostic-inter-item-subsets-transformers"]
    >>> found[names].round(6).tolist()
    [3.0, 1.0]
    """
    above = rest[list(POPULATIONS)].gt(rest["null_high"], axis=0).sum(axis=None)
    chance = np.random.default_rng(0).binomial(2 * len(rest), 0.025, 2000)
    rows = {"diagnostic-item-rest": {"value": above} | _null(chance)}
    for name in POPULATIONS:
        rows[f"diagnostic-inter-item-categories-{name}"] = {
            "value": means["people"].corr(means[name])
        }
        rows[f"diagnostic-inter-item-subsets-{name}"] = {
            "value": subsets["people"].corr(subsets[name])
        }
    return pd.DataFrame(rows).T


def _cell(ours: pd.DataFrame, category: str, population: str) -> dict[str, float]:
    row = {"value": ours.loc[category, population]}
    for key in ("low", "high", *_NULLS):
        for column in (f"{key}_{population}", key):
            if column in ours:
                row[key] = ours.loc[category, column]
                break
    return row


def _null(drawn) -> dict[str, float]:
    return dict(zip(_NULLS, np.nanquantile(drawn, [0.5, 0.025, 0.975]), strict=True))


def _label_table(draws: int, seed: int) -> np.ndarray:
    """Table 1 of populations that only prefer some labels, shape (categories, draws)."""
    people = {c: answers("people", c, "completers").mean() for c in CATEGORIES}
    labels = item_table()["label"]
    kinds = sorted(labels.unique())
    return np.array([
        items.null_spearman(
            p.to_numpy(), draws=draws, seed=seed, labels=pd.Categorical(labels[p.index], kinds)
        )
        for p in people.values()
    ])  # fmt: skip


def _least(table1: pd.DataFrame) -> np.ndarray:
    """From which absolute correlation on a category of table 1 is beyond guessing."""
    return table1[["null_low", "null_high"]].abs().max(axis=1).to_numpy()[:, None]


def _mean_interval(table: pd.DataFrame, name: str, other: str | None = None) -> dict[str, float]:
    """Interval of the mean over the categories of correlations, or of their differences."""
    variance = sum(
        ((table[f"high_{who}"] - table[f"low_{who}"]) / (2 * 1.959964)) ** 2
        for who in (name, other) if who
    )  # fmt: skip
    value = table[name] - (table[other] if other else 0)
    reach = 1.959964 * np.sqrt(variance.sum()) / len(table)
    return {"low": value.mean() - reach, "high": value.mean() + reach}


def _lead(category: str, draws: int) -> dict[str, float]:
    """By how much LSTMs are ahead of transformers in a row of table 3, drawing items again."""
    from .diagnostic import R_GLM_LIMIT

    ends = {np.inf: R_GLM_LIMIT, -np.inf: -R_GLM_LIMIT}
    table = rasch_difficulties(category).replace(ends)
    pair = pd.factorize(item_table()["pair"].reindex(table.index))[0]
    table, rng = table.to_numpy(), np.random.default_rng(0)
    units = [np.flatnonzero(pair == k) for k in range(pair.max() + 1)]

    def lead(rows: np.ndarray) -> float:
        if min(np.ptp(column) for column in rows.T) < 1e-12:
            return np.nan
        matrix = np.corrcoef(rows.T)
        return matrix[0, 2] - matrix[0, 1]

    drawn = [
        lead(table[np.concatenate([units[k] for k in rng.integers(0, len(units), len(units))])])
        for _ in range(draws)
    ]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    swaps = []
    for _ in range(draws):  # who is called what is dealt out by pair of items
        swap, rows = (rng.random(len(units)) < 0.5)[pair], table.copy()
        rows[swap, 1], rows[swap, 2] = table[swap, 2], table[swap, 1]
        swaps.append(lead(rows))
    return {"value": lead(table), "low": low, "high": high} | _null(swaps)


def _welch(first: pd.Series, second: pd.Series) -> tuple[float, float]:
    return tuple(stats.ttest_ind(first, second, equal_var=False).confidence_interval())


def _over_rows(x: pd.DataFrame) -> tuple[float, float]:
    """Interval of the mean share correct over respondents."""
    shares = x.mean(axis=1)
    return stats.t.interval(0.95, len(shares) - 1, shares.mean(), stats.sem(shares))


def _rank_correlation(first: pd.Series, second: pd.Series) -> float:
    a, b = first.rank(), second.rank()
    return float(np.corrcoef(a, b)[0, 1]) if a.nunique() > 1 and b.nunique() > 1 else np.nan
