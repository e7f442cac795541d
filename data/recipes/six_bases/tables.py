"""The planned statistics of ``data/plans/six-bases.yml``, the files of ``data/bases/``, and the
larger bases in ``data/kernels.csv``.

Nulls and words of a base are computed once it has read all prompts, and the members' tables once
all of its blocks are complete. An interim analysis uses the complete blocks, and marks its files'
names and rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pandas as pd
from safetensors.torch import load_file
from scipy import stats

from psychometrics.models.vectors import is_decoder
from psychometrics.nulls.evidence import evidence_of_draws
from psychometrics.nulls.kernels import kernel_statistics
from psychometrics.nulls.respondents import kernel_of_vectors
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.untrained import EXPECTED

from .. import frozen_heads, kernels
from . import comparisons, plan, progress, storage
from .plan import tables_dir
from .storage import COMMON, criterion_of, drawn_heads, means_by_questionnaire, scored

SIZES = {"start": None, "0.25": 0.25, "1": 1.0, "4": 4.0}
"""Sizes of heads as root mean squares of the log probabilities; heads at the start are unscaled."""
HEADS = 200
RESPONDENTS = 24
FEWEST_BLOCKS = 3


def write(interim: bool = False) -> None:
    """Write all tables whose parts are complete."""
    read = [base for base in plan.BASES if progress.is_read(base)]
    nulls = list(_nulls(read))

    if nulls:
        closed_form = pd.concat([kernel_rows(*null) for null in nulls])
        kernels.save_bases(closed_form, tables_dir().parent / "kernels.csv", kernels.BASES)
        _save_with_others(pd.concat([null_rows(*null) for null in nulls]), "nulls")
        _save_items({label: item_correlations(*rest) for label, *rest in nulls})

    decoders = [base for base in read if is_decoder(base)]
    if decoders:
        words = pd.concat([word_rows(base) for base in decoders])
        _save_with_others(words, "words")
        _save_with_others(word_components(words), "words-components")

    blocks = {
        base: progress.done_blocks(base)
        for base in plan.BASES
        if progress.is_complete(base) or (interim and progress.done_blocks(base))
    }
    if blocks:
        mark = "interim-" if interim else ""
        tables = {k: v for k, v in member_tables(blocks).items() if len(v)}
        for name, table in tables.items():
            _save(table.assign(interim=interim), f"{mark}{name}")


def _save(table: pd.DataFrame, name: str) -> None:
    path = tables_dir() / f"{name}.csv"
    path.parent.mkdir(exist_ok=True)
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


def _save_with_others(table: pd.DataFrame, name: str) -> None:
    """Save rows of the bases read in this run, and leave other bases' rows unchanged."""
    kernels.save_bases(table, tables_dir() / f"{name}.csv", _null_labels())


def _save_items(columns: dict[str, pd.Series]) -> None:
    """Save correlations of items, one column per base, and leave other bases' columns unchanged."""
    path = tables_dir() / "items.csv"
    table = pd.DataFrame(columns).rename_axis(["one", "other"])
    if path.is_file():
        shipped = pd.read_csv(path, index_col=["one", "other"])
        table = pd.concat([table, shipped[shipped.columns.difference(table.columns)]], axis=1)

    kept = [label for label in _null_labels() if label in table]
    _save(table[kept].reset_index(), "items")


def _null_labels() -> list[str]:
    """Return the labels of all nulls, in the order of the tables."""
    return [plan.SHALLOW_LABEL, *(base.label for base in plan.BASES.values())]


# --- nulls of the untouched bases


def _nulls(read: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the label, the base and the key of the vectors of every null."""
    for base in read:
        if base == "embedded":
            yield plan.SHALLOW_LABEL, base, "shallow"
        yield plan.BASES[base].label, base, "prompts"


def _untouched(base: str, parts: tuple[str, ...], key: str = "prompts") -> np.ndarray:
    return np.concatenate([plan.untouched(base, part, key) for part in parts])


@functools.cache
def _kernel(base: str, key: str) -> pd.DataFrame:
    """Return the covariances of items over untrained heads."""
    names = plan.NULLS[:6]
    loaded = [load_questionnaire(name) for name in names]
    return kernel_of_vectors(loaded, frozen_heads.templates(names)[0], _untouched(base, names, key))


def item_correlations(base: str, key: str) -> pd.Series:
    """Return the correlations of each questionnaire's items over untrained heads."""
    return kernels.correlations_within(_kernel(base, key), plan.NULLS[:6])


def kernel_rows(label: str, base: str, key: str) -> pd.DataFrame:
    """Return the closed-form statistics without training, with intervals for 24 heads."""
    return kernel_statistics(_kernel(base, key), RESPONDENTS).assign(base=label)[
        ["base", "statistic", "scale", "other", "value", "low", "high"]
    ]


def null_rows(label: str, base: str, key: str) -> pd.DataFrame:
    """Return silhouettes and criterion of simulated heads and of random words, by size."""
    linear = is_decoder(base)
    vectors = _untouched(base, plan.REAL, key)
    asked = plan.untouched(base, plan.CRITERION, key)
    kinds = {"heads": [drawn_heads(v, 20_000, HEADS, linear) for v in (vectors, asked)]}

    if linear:
        words = load_file(plan.folder_of(base) / "untouched" / "words.safetensors")["drawn"]
        products = [np.einsum("pd,htd->hpt", v, words.numpy()) for v in (vectors, asked)]
        kinds["words"] = [product.astype(float) for product in products]

    rows = []
    for kind, (logits, of_criterion) in kinds.items():
        for size, goal in SIZES.items():
            silhouettes = means_by_questionnaire(scored(logits, goal)["silhouette"])
            rows += [
                (kind, size, "silhouette", name, *_spread(v)) for name, v in silhouettes.items()
            ]

        for name, values in criterion_of(of_criterion).items():
            rows.append((kind, "start", name, "", *_spread(values.to_numpy())))

    names = ["kind", "size", "statistic", "questionnaire", "mean", "sd", "low", "high"]
    table = pd.DataFrame(rows, columns=names)
    table.insert(0, "base", label)
    return table


def _spread(values: np.ndarray) -> tuple[float, ...]:
    """Return mean, standard deviation and the ends of the central 95 % of heads."""
    return (values.mean(), values.std(ddof=1), *np.quantile(values, [0.025, 0.975]))


# --- words of models that nobody tuned


def word_rows(base: str) -> pd.DataFrame:
    """Return silhouette and criterion by wording and triple, with those of random triples."""
    words = load_file(plan.folder_of(base) / "untouched" / "words.safetensors")
    words = {name: rows.numpy().astype(float) for name, rows in words.items()}
    drawn = words.pop("drawn")
    first = plan.REAL[0]
    rows = []

    for wording in ("plain", *plan.OTHER_WORDINGS):
        end = "" if wording == "plain" else f", {wording}"
        vectors = plan.untouched(base, f"{first}{end}")
        asked = plan.untouched(base, f"{plan.CRITERION}{end}")
        null = _word_statistics(vectors, asked, drawn)

        for name, triple in words.items():
            statistics = _word_statistics(vectors, asked, triple[None])
            for statistic, values in null.items():
                value = statistics[statistic][0]
                rows.append((plan.BASES[base].label, wording, name, statistic, value,
                             *_spread(values), (values >= value).mean()))  # fmt: skip

    names = ["base", "wording", "words", "statistic", "value",
             "null mean", "null sd", "null low", "null high", "reach"]  # fmt: skip
    return pd.DataFrame(rows, columns=names)


def _word_statistics(vectors: np.ndarray, asked: np.ndarray, triples: np.ndarray) -> dict:
    """Return silhouettes on the first questionnaire, and the criterion, of triples of words."""
    places = frozen_heads.templates(plan.REAL[:1])[1]
    logits = np.einsum("pd,htd->hpt", vectors.astype(float), triples)
    shares = frozen_heads.shares(frozen_heads.scaled_logs(logits, COMMON), "entailment")
    of_criterion = criterion_of(np.einsum("pd,htd->hpt", asked.astype(float), triples))
    silhouette = frozen_heads.score(shares, places)["silhouette"].mean(axis=1)
    return {"silhouette": silhouette, "criterion": of_criterion["criterion"].to_numpy()}


def word_components(words: pd.DataFrame) -> pd.DataFrame:
    """Return the variance due to triples and wordings, from their crossing, by base."""
    rows = []
    for (base, statistic), part in words.groupby(["base", "statistic"], sort=False):
        cells = part.pivot(index="words", columns="wording", values="value").to_numpy()
        triples, wordings = cells.shape
        residual = cells - cells.mean(axis=0) - cells.mean(axis=1, keepdims=True) + cells.mean()
        error = (residual**2).sum() / max((triples - 1) * (wordings - 1), 1)
        of_triples = max(cells.mean(axis=1).var(ddof=1) - error / wordings, 0)
        of_wordings = max(cells.mean(axis=0).var(ddof=1) - error / triples, 0)
        rows.append((base, statistic, *np.sqrt([of_triples, of_wordings, error])))

    return pd.DataFrame(rows, columns=["base", "statistic", "sd triples", "sd wordings", "sd rest"])


# --- members


class Cell:
    """Respondents of one base, group and head, one row per block: scores and statistics."""

    def __init__(self, base: str, group: str, head: str, blocks: list[int]) -> None:
        rows = storage.kept_rows(base).query("group == @group and head == @head")
        rows = rows.set_index("block").loc[blocks].reset_index()
        self.rows = storage.statistics(rows)
        self.rows.insert(0, "block", blocks)
        self.scores = tuple(storage.item_scores(rows, kind) for kind in storage.KINDS)

    def statistics(self, chosen: np.ndarray) -> dict[str, float]:
        """Return alpha and the smallest correlation over the chosen blocks."""
        parts = (values[chosen][None] for values in self.scores)
        loaded = [load_questionnaire(name) for name in plan.REAL]
        evidence = evidence_of_draws(*parts, loaded, EXPECTED).iloc[0]
        return {name: float(evidence[name]) for name in comparisons.GROUP_STATISTICS}


def member_tables(blocks: dict[str, list[int]]) -> dict[str, pd.DataFrame]:
    """Return the tables of members: single members, cells of the crossing, tests, covariates."""
    cells = {
        (base, group, head): Cell(base, group, head, numbers)
        for base, numbers in blocks.items()
        for group in plan.GROUPS
        for head in storage.heads_of(group)
    }
    members = pd.concat(
        [
            cell.rows.assign(base=plan.BASES[base].label, group=group, head=head)
            for (base, group, head), cell in cells.items()
        ]
    )
    tables = {"members": members, "cells": cell_means(members)}
    enough = {base: numbers for base, numbers in blocks.items() if len(numbers) >= FEWEST_BLOCKS}

    if enough:
        tests = comparisons.by_base(cells, list(enough))
        complete = members[members["base"].isin(tests["base"])]
        tables["tests"] = tests
        tables["combined"] = comparisons.over_bases(tests)
        tables["bar"] = comparisons.bar(cells, list(enough))
        tables["sensitivity"] = comparisons.sensitivity(cells, tests, list(enough))
        tables["covariates"] = comparisons.adjusted(complete)

    return tables


def cell_means(members: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each statistic in each cell, with its 95 % t interval over blocks."""
    rows = []
    kept = ["silhouette", "silhouette as answered", "criterion", "negation", "relevance",
            "sentences", "decisiveness", "accuracy"]  # fmt: skip
    for key, part in members.groupby(["base", "group", "head"], sort=False):
        for name in kept:
            rows.append((*key, name, len(part), *_t_interval(part[name].to_numpy())))

    names = ["base", "group", "head", "statistic", "blocks", "mean", "low", "high", "sd"]
    return pd.DataFrame(rows, columns=names)


def _t_interval(values: np.ndarray) -> tuple[float, float, float, float]:
    mean = values.mean()
    if len(values) < 2:
        return mean, np.nan, np.nan, np.nan
    sd = values.std(ddof=1)
    half = stats.t.ppf(0.975, len(values) - 1) * sd / np.sqrt(len(values))
    return mean, mean - half, mean + half, sd
