"""Writes ``data/published`` anew: ``python -m data.make.published``.

Item by item only the answers under the MIT licence; of the others figures: counts, means and
covariances, sums by scale score, and how single runs and people fit. A minute of one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.studies.published import answers, by_score, person_fit

OPEN = ("llmpersonality", "ai_like_humans", "students_mexico", "students_bmi", "adults_peru")
"""Sets under the MIT licence."""
LEAST = 60
"""Rows without a gap that a group's covariances need."""
SEED = 1


def _build_published(folder: Path | None = None) -> None:
    """Write the five files from the fetched sets.

    Parameters
    ----------
    folder : Path, optional
        By default ``data/published``.

    Raises
    ------
    DataError
        A file cannot be had.
    """
    folder = data_dir() / "published" if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    text = {"index": False, "lineterminator": "\n"}
    whole = pd.concat([answers(source).assign(source=source) for source in OPEN])
    whole = whole[whole["questionnaire"] != "pss10"]  # no questionnaire of the project
    packed = {"method": "gzip", "mtime": 1}
    whole.to_csv(folder / "answers.csv.gz", compression=packed, **text)
    tables = _tables()
    _counts(tables).to_csv(folder / "counts.csv.gz", compression=packed, **text)
    questionnaire = load_questionnaire("ipip50")
    turned = {
        item for scale in questionnaire.scales for item in scale.reverse
    }  # a keyed answer is 6 less the given one
    keyed = {
        name: table.assign(**{item: 6 - table[item] for item in turned})
        for name, table in tables.items()
    }
    _moments(keyed).to_parquet(folder / "moments.parquet", index=False)
    parts = [
        by_score(table, questionnaire).assign(respondent_id=name[0], condition=name[1])
        for name, table in keyed.items()
        if name != ("people", "people") and name[1] != "inverted"
    ]
    pd.concat(parts, ignore_index=True).astype(
        {"score": "int16", "n": "int32", "sum": "int32", "squares": "int32"}
    ).to_parquet(folder / "by_score.parquet", index=False)
    _fit(tables).to_csv(folder / "fit.csv", float_format="%.6f", **text)


def _tables() -> dict[tuple[str, str], pd.DataFrame]:
    """Answers as given, runs or people by items, by group; with halves and answers by chance."""
    items = [item.id for item in load_questionnaire("ipip50").items]
    found = {}
    runs = answers("llm_questionnaires")
    for name, part in runs.groupby(["respondent_id", "condition"], sort=False):
        found[name] = part.pivot(index="run", columns="item_id", values="value")[items]
    people = answers("survey").pivot(index="respondent_id", columns="item_id", values="value")
    people = people[items].reset_index(drop=True)
    found["people", "people"] = people
    found["people_a", "people"], found["people_b", "people"] = people[::2], people[1::2]
    draws = np.random.default_rng(SEED).integers(1, 6, (1000, len(items)))
    found["random", "people"] = pd.DataFrame(draws, columns=items).astype(float)
    return found


def _counts(tables: dict) -> pd.DataFrame:
    parts = []
    for (name, condition), table in tables.items():
        if name in ("people_a", "people_b", "random"):
            continue
        found = pd.DataFrame({str(value): (table == value).sum() for value in range(1, 6)})
        found.insert(0, "missing", table.isna().sum())
        found = found.rename_axis("item_id").reset_index()
        found.insert(0, "condition", condition)
        found.insert(0, "respondent_id", name)
        parts.append(found)
    return pd.concat(parts, ignore_index=True)


def _moments(tables: dict) -> pd.DataFrame:
    parts = []
    for (name, condition), table in tables.items():
        whole = table.dropna()
        if len(whole) < LEAST:
            continue
        found = whole.cov().rename_axis("item_id").reset_index()
        for column, value in (("mean", whole.mean().to_numpy()), ("n", len(whole)),
                              ("condition", condition), ("respondent_id", name)):  # fmt: skip
            found.insert(0, column, value)
        parts.append(found)
    order = ["respondent_id", "condition", "item_id", "n", "mean"]
    frame = pd.concat(parts, ignore_index=True)
    return frame[[*order, *(c for c in frame if c not in order)]]


def _fit(tables: dict) -> pd.DataFrame:
    """Single rows against one half of the people; the other half, and shuffled rows, beside."""
    half = tables["people_a", "people"].dropna()
    mean, covariance = half.mean(), half.cov()
    rng = np.random.default_rng(SEED)
    rows, bars = [], None
    order = [("people_b", "people"), *(k for k in tables if not k[0].startswith("people"))]
    for name in order:
        whole = tables[name].dropna()
        if len(whole) < LEAST:
            continue
        mixed = pd.DataFrame(rng.permuted(whole.to_numpy(), axis=1), columns=whole.columns)
        for kind, values in (("given", whole), ("shuffled", mixed)):
            found = person_fit(values, mean, covariance)
            if bars is None:
                bars = found["profile"].quantile(0.01), found["distance"].quantile(0.99)
            row = {"respondent_id": name[0], "condition": name[1], "answers": kind, "n": len(found)}
            for column in found:
                for share in (0.025, 0.5, 0.975):
                    row[f"{column}_{share}"] = found[column].quantile(share)
            row["profile_unlike"] = (found["profile"] < bars[0]).mean()
            row["distance_unlike"] = (found["distance"] > bars[1]).mean()
            rows.append(row)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    _build_published()
