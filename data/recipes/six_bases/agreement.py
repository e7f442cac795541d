"""Agreement, placebos and shares between bases, from the kept rows of six bases.

``python -m recipes.six_bases.agreement`` writes ``data/bases/agreement.csv``, ``placebos.csv``,
``shares.csv`` and ``signs.csv``. None of these was planned in ``data/plans/six-bases.yml``: they
were computed after its results were known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from psychometrics.measures.intervals import jackknife_half_width
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.questionnaires import load_questionnaire

from . import plan, storage
from .comparisons import INFERENCE, PRIMARY, SHUFFLED, combined
from .plan import tables_dir

GROUPS = (INFERENCE, ("hypotheses", "own"), ("untouched", "refitted"), SHUFFLED)
"""Groups and heads whose members have learned apart, or could have."""
UNTRAINED = ("untouched", "untrained")
PLACEBOS = ("placebo_defects", "placebo_weather")
ALL = "four bases"
CONTRASTS = (
    (INFERENCE, SHUFFLED),
    (("inference", "untrained"), ("shuffled", "untrained")),
    (INFERENCE, UNTRAINED),
)


def write() -> None:
    """Write the four tables."""
    tables = {
        "agreement": agreement(),
        "placebos": placebos(),
        "shares": shares(),
        "signs": signs(),
    }
    for name, table in tables.items():
        path = tables_dir() / f"{name}.csv"
        table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


def members(base: str, group: str, head: str) -> pd.DataFrame:
    """Return the kept rows of a base, group and head, by block."""
    rows = storage.kept_rows(base)
    chosen = (rows["group"] == group) & (rows["head"] == head)
    return rows[chosen].sort_values("block")


def scores_of(
    rows: pd.DataFrame, names: Sequence[str] = plan.REAL, kind: str = "source"
) -> pd.DataFrame:
    """Return scores of one kind of the items of questionnaires, one row per member."""
    items = [item.id for name in names for item in load_questionnaire(name).items]
    return rows[[f"{kind}: {item}" for item in items]]


def scales_of(names: Sequence[str] = plan.REAL) -> pd.Series:
    """Return the questionnaire of each item, in the order of :func:`scores_of`."""
    return pd.Series([name for name in names for _ in load_questionnaire(name).items])


# --- agreement


def agreement() -> pd.DataFrame:
    """Return agreement about items by base, group and set of items, and differences of groups.

    Returns
    -------
    DataFrame
        ``base, group, head, less, items, respondents, value, low, high``. Rows with ``less`` are
        differences from that group. Intervals are from the jackknife over blocks; over bases from
        the random-effects mean.
    """
    rows = []
    for base in PRIMARY:
        label = plan.BASES[base].label
        for group, head in GROUPS:
            table = members(base, group, head)
            about = {"base": label, "group": group, "head": head, "less": ""}
            for items, result in _by_items(table).items():
                kept = result[["respondents", "value", "low", "high"]].to_dict()
                rows.append(about | {"items": items} | kept)

        about = {"base": label, "group": "untouched", "head": "untrained", "less": ""}
        rows.append(about | {"items": "real"} | _of_single_heads(members(base, *UNTRAINED)))

    for other in ("shuffled", "hypotheses"):
        rows += _differences(other)

    table = pd.DataFrame(rows)
    return table.astype({"respondents": int})


def _by_items(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return agreement about all real items, the placebos, and single questionnaires."""
    results = {
        "real": profile_agreement(scores_of(table)),
        "real, scale means removed": profile_agreement(scores_of(table), scales_of()),
        "placebos": profile_agreement(scores_of(table, PLACEBOS)),
    }
    alone = {name: profile_agreement(scores_of(table, [name])) for name in plan.ASKED}
    return results | alone


def _of_single_heads(table: pd.DataFrame) -> dict[str, float]:
    """Return the agreement of single untrained heads, from rows that are means of twenty heads.

    Spearman and Brown's formula leads from the correlation of means to that of single heads. It has
    no interval: where the upper limit for means is above 20/19, none follows for single heads.
    """
    result = profile_agreement(scores_of(table))
    of_means = result["value"]
    single = of_means / (storage.OWN_HEADS - (storage.OWN_HEADS - 1) * of_means)
    return {"respondents": result["respondents"], "value": single, "low": np.nan, "high": np.nan}


def _differences(other: str) -> list[dict[str, object]]:
    """Return true labels less another group, by base and over bases, by the jackknife."""
    group, head = INFERENCE
    about = {"group": group, "head": head, "less": other, "items": "real"}
    rows = []
    squares = []
    for base in PRIMARY:
        pair = [scores_of(members(base, name, head)).to_numpy() for name in (group, other)]
        number = len(pair[0])
        value = _gap(pair)
        without = [
            _gap([np.delete(scores, block, axis=0) for scores in pair]) for block in range(number)
        ]
        half = float(jackknife_half_width(np.array(without)))
        squares.append((half / stats.t.ppf(0.975, number - 1)) ** 2)
        row = {"base": plan.BASES[base].label, "respondents": number, "value": value}
        rows.append(about | row | {"low": value - half, "high": value + half})

    values = np.array([row["value"] for row in rows])
    over = combined(values, np.array(squares))
    number = sum(row["respondents"] for row in rows)
    ends = {name: over[name] for name in ("value", "low", "high")}
    return [*rows, about | {"base": ALL, "respondents": number} | ends]


def _gap(pair: list[np.ndarray]) -> float:
    first, second = (profile_agreement(pd.DataFrame(scores))["value"] for scores in pair)
    return float(first - second)


# --- placebos


def placebos() -> pd.DataFrame:
    """Return differences of silhouettes for real questionnaires and placebos.

    Returns
    -------
    DataFrame
        ``group, head, less, less head, items, base, blocks, value, low, high, p``, paired over
        blocks; over bases from the random-effects mean. ``items`` are the real ones, a placebo,
        both placebos, or the real ones less both placebos.
    """
    rows = []
    for first, second in CONTRASTS:
        about = {"group": first[0], "head": first[1], "less": second[0], "less head": second[1]}
        gaps = {
            base: _silhouettes(members(base, *first)) - _silhouettes(members(base, *second))
            for base in PRIMARY
        }
        for items in gaps[PRIMARY[0]]:
            by_base = {base: table[items].to_numpy() for base, table in gaps.items()}
            for base, values in by_base.items():
                row = {"items": items, "base": plan.BASES[base].label, "blocks": len(values)}
                test = stats.ttest_1samp(values, 0)
                low, high = test.confidence_interval()
                ends = {"value": values.mean(), "low": low, "high": high, "p": test.pvalue}
                rows.append(about | row | ends)

            means = np.array([values.mean() for values in by_base.values()])
            errors = np.array([stats.sem(values) for values in by_base.values()])
            over = combined(means, errors**2)
            row = {"items": items, "base": ALL, "blocks": sum(map(len, by_base.values()))}
            rows.append(about | row | {name: over[name] for name in ("value", "low", "high", "p")})

    return pd.DataFrame(rows)


def _silhouettes(table: pd.DataFrame) -> pd.DataFrame:
    """Return each member's mean silhouettes by set of items, indexed by block."""
    means = {
        "real": scores_of(table, plan.REAL, "silhouette").mean(axis=1),
        **{name: scores_of(table, [name], "silhouette").mean(axis=1) for name in PLACEBOS},
        "both placebos": scores_of(table, PLACEBOS, "silhouette").mean(axis=1),
    }
    frame = pd.DataFrame(means).set_axis(table["block"], axis=0)
    return frame.assign(**{"real less placebos": frame["real"] - frame["both placebos"]})


# --- whose is the score


def shares() -> pd.DataFrame:
    """Return the share of a scale score's variance that lies between bases, by group.

    It is the intraclass correlation ICC(1) from the mean squares of the one-way analysis of
    variance with unequal groups (Shrout and Fleiss 1979), as in
    :func:`psychometrics.measures.bias.runs_and_units`.
    """
    rows = []
    for group, head in (INFERENCE, SHUFFLED):
        for scale in plan.ASKED:
            parts = [_scale_scores(members(base, group, head), scale) for base in PRIMARY]
            row = {"group": group, "head": head, "scale": scale, "members": sum(map(len, parts))}
            rows.append(row | {"share": share_between(parts)})

    return pd.DataFrame(rows)


def share_between(parts: Sequence[np.ndarray]) -> float:
    """Return the intraclass correlation ICC(1) of values by group.

    Examples
    --------
    >>> share_between([np.array([1.0, 3.0]), np.array([5.0, 7.0])])  # mean squares 16 and 2
    0.777...
    """
    sizes = np.array([len(part) for part in parts])
    number = sizes.sum()
    means = np.array([part.mean() for part in parts])
    grand = np.concatenate(list(parts)).mean()
    between = (sizes * (means - grand) ** 2).sum() / (len(parts) - 1)
    within = sum(((part - part.mean()) ** 2).sum() for part in parts) / (number - len(parts))
    size = (number - (sizes**2).sum() / number) / (len(parts) - 1)
    return float((between - within) / (between + (size - 1) * within))


def signs() -> pd.DataFrame:
    """Return mean scale scores by base, and the number of members above zero."""
    rows = []
    for group, head in (INFERENCE, SHUFFLED):
        for base in PRIMARY:
            table = members(base, group, head)
            for scale in plan.ASKED:
                values = _scale_scores(table, scale)
                low, high = stats.ttest_1samp(values, 0).confidence_interval()
                about = {"group": group, "head": head, "base": plan.BASES[base].label}
                row = {"scale": scale, "members": len(values), "positive": (values > 0).sum()}
                rows.append(about | row | {"mean": values.mean(), "low": low, "high": high})

    return pd.DataFrame(rows)


def _scale_scores(table: pd.DataFrame, scale: str) -> np.ndarray:
    return scores_of(table, [scale]).mean(axis=1).to_numpy()


if __name__ == "__main__":
    write()
