"""The tests of members that ``data/plans/six-bases.yml`` names, from the cells of its crossing.

A cell has the members of one base, group and head: ``rows``, a table with a row per block, and
``statistics``, which returns alpha and the smallest correlation over chosen blocks. This module
reads no files.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests

from psychometrics.measures.intervals import jackknife_half_width

from . import plan

PRIMARY = ("embedded", "mpnet", "smollm2", "gemma-3-270m")
HELD_OUT = ("mpnet", "gemma-3-270m")
"""Primary bases whose answers nobody had seen when the plan was committed."""
INFERENCE = ("inference", "own")
SHUFFLED = ("shuffled", "own")
HYPOTHESES = (
    ("H1", "criterion", INFERENCE, SHUFFLED),
    ("H2", "silhouette", INFERENCE, SHUFFLED),
    ("H3", "silhouette", ("inference", "untrained"), ("shuffled", "untrained")),
    ("H4", "silhouette", INFERENCE, ("inference", "untrained")),
    ("H5", "silhouette", ("untouched", "refitted"), ("untouched", "untrained")),
    ("H6", "silhouette", ("unlabelled", "untrained"), ("untouched", "untrained")),
    ("H7", "alpha", INFERENCE, SHUFFLED),
    ("H7", "correlations", INFERENCE, SHUFFLED),
)
CONFIRMED = ("H1", "H2", "H3", "H4")
SMALLEST = {"silhouette": 0.10, "criterion": 0.15, "alpha": 0.10, "correlations": 0.20}
GROUP_STATISTICS = ("alpha", "correlations")
PLANNED = {name: base.label for name, base in plan.BASES.items()}
LEAST_ACCURACY = 0.40
"""Accuracy that a base's trained members must exceed to have learned to judge inference."""
SCORES = ("as answered", "medians", "against contradiction")
"""Further silhouettes in the sensitivity analysis."""
STARTING = "heads at the starting size"


class Cell(Protocol):
    """Members of one base, group and head, one row per block."""

    rows: pd.DataFrame

    def statistics(self, chosen: np.ndarray) -> dict[str, float]:
        """Return alpha and the smallest correlation over the chosen blocks."""


Cells = Mapping[tuple[str, str, str], Cell]


def by_base(cells: Cells, names: Sequence[str]) -> pd.DataFrame:
    """Return the test of every hypothesis on every base.

    Returns
    -------
    DataFrame
        ``base, hypothesis, statistic, first, second, blocks``; the difference ``value, low, high``
        with its standard ``error`` and ``p``; ``wilcoxon``, p of the signed ranks; ``accuracy`` of
        the base's trained members and whether they ``learned``; ``holm``, p of the criterion over
        the held-out bases that learned, once all of these are complete.
    """
    rows = []
    for name in names:
        accuracy = float(cells[name, *INFERENCE].rows["accuracy"].mean())
        facts = {"accuracy": accuracy, "learned": accuracy > LEAST_ACCURACY}
        for hypothesis, statistic, first, second in HYPOTHESES:
            test = difference(cells[name, *first], cells[name, *second], statistic)
            about = {
                "base": plan.BASES[name].label,
                "hypothesis": hypothesis,
                "statistic": statistic,
            }
            about |= {"first": ", ".join(first), "second": ", ".join(second)}
            rows.append(about | test | facts)

    table = pd.DataFrame(rows).assign(holm=np.nan)
    if set(HELD_OUT) <= set(names):
        labels = [plan.BASES[name].label for name in HELD_OUT]
        confirmed = (table["hypothesis"] == "H1") & table["base"].isin(labels) & table["learned"]
        _correct(table, confirmed)
    return table


def difference(
    first: Cell, second: Cell, statistic: str, other: str | None = None
) -> dict[str, float]:
    """Return the difference between two cells, paired over blocks, or for groups by the jackknife.

    Parameters
    ----------
    first, second : Cell
    statistic : str
        A column of the cells' rows, ``"alpha"`` or ``"correlations"``.
    other : str, optional
        The second cell's column, if it differs.
    """
    number = len(first.rows)
    wilcoxon = np.nan

    if statistic in GROUP_STATISTICS:
        whole = np.arange(number)
        samples = [whole, *(np.delete(whole, block) for block in whole)]
        gaps = np.array(
            [first.statistics(s)[statistic] - second.statistics(s)[statistic] for s in samples]
        )
        value = gaps[0]
        error = jackknife_half_width(gaps[1:]) / stats.t.ppf(0.975, number - 1)
    else:
        gaps = first.rows[statistic].to_numpy() - second.rows[other or statistic].to_numpy()
        value = gaps.mean()
        error = gaps.std(ddof=1) / np.sqrt(number)
        wilcoxon = float(stats.wilcoxon(gaps).pvalue) if gaps.any() else 1.0

    half = stats.t.ppf(0.975, number - 1) * error
    t = abs(value) / error if value else 0.0  # identical respondents
    p = 2 * stats.t.sf(t, number - 1)
    return {"blocks": number, "value": float(value), "low": float(value - half),
            "high": float(value + half), "error": float(error), "p": float(p),
            "wilcoxon": wilcoxon}  # fmt: skip


def _correct(table: pd.DataFrame, chosen: pd.Series) -> None:
    if chosen.any():
        table.loc[chosen, "holm"] = multipletests(table.loc[chosen, "p"], method="holm")[1]


def over_bases(tests: pd.DataFrame) -> pd.DataFrame:
    """Return the random-effects mean of each hypothesis, for primary bases and for all.

    Bases are combined once, when all of them are complete: first the primary ones, then all that
    have members. A base whose members did not learn to judge inference is left out for H1.
    """
    everything = [name for name, base in plan.BASES.items() if base.blocks]
    rows = []

    for which, names in {"primary": PRIMARY, "all": everything}.items():
        labels = {plan.BASES[name].label for name in names if name in plan.BASES}
        if len(labels) < len(names) or not labels <= set(tests["base"]):
            continue
        has_a_say = (tests["hypothesis"] != "H1") | tests["learned"]
        counted = tests[tests["base"].isin(labels) & has_a_say].dropna(subset="error")
        for key, part in counted.groupby(["hypothesis", "statistic"], sort=False):
            if len(part) < 2:
                continue
            about = dict(zip(["hypothesis", "statistic"], key, strict=True))
            row = combined(part["value"].to_numpy(), part["error"].to_numpy() ** 2)
            rows.append(about | {"bases": which, "n": len(part)} | row)

    table = pd.DataFrame(rows)
    if table.empty:
        return table
    table["holm"] = np.nan
    _correct(table, (table["bases"] == "primary") & table["hypothesis"].isin(CONFIRMED))
    return table.assign(verdict=[verdict(row) for _, row in table.iterrows()])


def verdict(row: pd.Series) -> str:
    """Return the plan's words for a combined effect.

    Examples
    --------
    >>> verdict(pd.Series({"statistic": "silhouette", "value": 0.02, "low": -0.05, "high": 0.09,
    ...                    "p": 0.4, "holm": 0.8}))
    'equivalent'
    """
    p = row["p"] if np.isnan(row["holm"]) else row["holm"]
    if p < 0.05:
        return "higher" if row["value"] > 0 else "lower"
    bound = SMALLEST[row["statistic"]]
    return "equivalent" if -bound < row["low"] and row["high"] < bound else "not shown"


def combined(values: np.ndarray, variances: np.ndarray, bounded: bool = False) -> dict[str, float]:
    """Return the random-effects mean of bases' effects with Hartung and Knapp's 95 % interval.

    Parameters
    ----------
    values, variances : ndarray, shape (bases,)
        The bases' effects and the squares of their standard errors.
    bounded : bool, optional
        Whether the standard error is at least the one that the bases' own errors imply. Without
        this bound it is smaller where effects happen to agree better than their errors allow.

    Returns
    -------
    dict
        ``value, low, high, p``; ``between``, the standard deviation of effects over bases, and
        ``i2``, the share of their variance between bases.

    References
    ----------
    Paule and Mandel (1982) for the variance between bases; Hartung and Knapp (2001); Röver, Knapp
    and Friede (2015) for the bound.

    Examples
    --------
    >>> found = combined(np.array([0.1, 0.2, 0.3]), np.array([0.01, 0.01, 0.01]))
    >>> round(found["value"], 3), found["between"]
    (0.2, 0.0)
    """
    effects = combine_effects(values, variances, method_re="iterated", use_t=True)
    freedom = len(values) - 1
    mean = float(effects.mean_effect_re)
    error = float(effects.sd_eff_w_re_hksj)
    if bounded:
        error = max(error, float(effects.sd_eff_w_re))
    half = stats.t.ppf(0.975, freedom) * error
    p = 2 * stats.t.sf(abs(mean) / error, freedom)
    between = float(np.sqrt(max(effects.tau2, 0)))
    return {"value": mean, "low": mean - half, "high": mean + half, "p": float(p),
            "between": between, "i2": float(max(effects.i2, 0))}  # fmt: skip


# --- the criterion's bar


def bar(cells: Cells, names: Sequence[str]) -> pd.DataFrame:
    """Return which groups and heads meet the criterion's bar on each base.

    The mean must be above zero (95 % t interval over blocks) and above the mean of the same head on
    the base adapted on shuffled labels (paired). Members adapted on shuffled labels are compared
    only with zero.

    Returns
    -------
    DataFrame
        ``base, group, head, blocks, mean, low, high``; ``more``, the excess over shuffled labels,
        with its interval ``more low, more high``; ``meets the bar``.
    """
    rows = []
    for (base, group, head), cell in cells.items():
        if base not in names:
            continue
        values = cell.rows["criterion"].to_numpy()
        half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
        row = {"base": plan.BASES[base].label, "group": group, "head": head, "blocks": len(values)}
        row |= {"mean": values.mean(), "low": values.mean() - half, "high": values.mean() + half}
        more = {"value": np.nan, "low": np.nan, "high": np.nan}

        if group != "shuffled":
            more = difference(cell, cells[base, "shuffled", head], "criterion")

        row |= {"more": more["value"], "more low": more["low"], "more high": more["high"]}
        is_more = group == "shuffled" or more["low"] > 0
        rows.append(row | {"meets the bar": bool(row["low"] > 0 and is_more)})

    return pd.DataFrame(rows)


# --- sensitivity and covariates


def sensitivity(cells: Cells, tests: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the hypotheses about the silhouette with other scores, and with bases left out.

    Returns
    -------
    DataFrame
        ``variant, hypothesis, statistic, bases, n, value, low, high, p``; ``bases`` is a base, or
        the set of combined bases.
    """
    rows = []
    about_silhouettes = [row for row in HYPOTHESES if row[1] == "silhouette"]
    variants = [*SCORES, *plan.REAL, STARTING]

    for variant, (hypothesis, _, first, second) in itertools.product(variants, about_silhouettes):
        columns = [_column(variant, head) for _, head in (first, second)]
        parts = {
            plan.BASES[name].label: difference(cells[name, *first], cells[name, *second], *columns)
            for name in names
        }
        about = {"variant": variant, "hypothesis": hypothesis, "statistic": "silhouette"}
        rows += [about | {"bases": label, "n": 1} | part for label, part in parts.items()]
        rows += _combined_primary(about, pd.DataFrame(parts).T)

    for (hypothesis, statistic), part in tests.groupby(["hypothesis", "statistic"], sort=False):
        by_label = part[part["learned"] | (hypothesis != "H1")].set_index("base")
        about = {"hypothesis": hypothesis, "statistic": statistic}
        labels = _primary_labels()
        if not set(labels) <= set(part["base"]):
            continue
        for label in by_label.index.intersection(labels):
            rest = by_label.drop(index=label)
            rows += _combined_primary({"variant": f"without {label}"} | about, rest, fewest=2)

    kept = ["variant", "hypothesis", "statistic", "bases", "n", "value", "low", "high", "p"]
    return pd.DataFrame(rows)[kept]


def _column(variant: str, head: str) -> str:
    """Return the column of a head's silhouettes; only untrained heads have their own size."""
    if variant == STARTING:
        return "silhouette as answered" if head == "untrained" else "silhouette"
    return f"silhouette {variant}"


def _primary_labels() -> list[str]:
    return [PLANNED[base] for base in PRIMARY]


def _combined_primary(about: dict, parts: pd.DataFrame, fewest: int = len(PRIMARY)) -> list[dict]:
    """Combine the primary bases, if there are enough of them."""
    chosen = parts.loc[parts.index.intersection(_primary_labels())].dropna(subset="error")
    if len(chosen) < fewest:
        return []
    row = combined(chosen["value"].to_numpy(float), chosen["error"].to_numpy(float) ** 2)
    return [about | {"bases": "primary", "n": len(chosen)} | row]


def adjusted(members: pd.DataFrame) -> pd.DataFrame:
    """Return inference minus shuffled labels, with and without the covariates.

    The plan has one intercept per base. With one intercept per block, members are compared with
    members that have the same pairs, as in the tests.
    """
    own = members[members["head"] == "own"].copy()
    own["group"] = pd.Categorical(own["group"], ["shuffled", "inference", "hypotheses"])
    own["own block"] = own["base"] + " " + own["block"].astype(str)
    rows = []

    for statistic in ("silhouette as answered", "criterion"):
        own["outcome"] = own[statistic]
        for of, covariates in itertools.product(("base", "own block"), (False, True)):
            formula = f"outcome ~ C(Q('{of}')) + C(group)"
            if covariates:
                formula += " + decisiveness + accuracy"
            fitted = smf.ols(formula, own).fit()
            name = "C(group)[T.inference]"
            low, high = fitted.conf_int().loc[name]
            row = {"statistic": statistic, "intercepts": of.replace("own ", "")}
            row |= {"adjusted": covariates, "respondents": int(fitted.nobs)}
            rows.append(row | {"value": fitted.params[name], "low": low, "high": high})

    return pd.DataFrame(rows)
