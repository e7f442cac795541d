"""Closed-form statistics without training, and their accuracy: ``python -m recipes.kernels``.

``data/kernels.csv`` has alpha, omega and the correlations of scales of untrained heads in closed
form, for two bases at several depths and six questionnaires, with the interval for samples of 24
heads; ``python -m recipes.six_bases analyse`` adds the larger bases.
``data/kernel_errors.csv`` compares the closed form with 2,000 heads of four sizes on each.
``data/kernel_items.csv`` has the correlations of items; ``data/explorers/kernel.csv`` and
``kernel-members.csv`` are for the explorer of the kernel. Half an hour of one processor core.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, population_table
from psychometrics.measures.normalisation import two_way
from psychometrics.measures.reliability import alphas
from psychometrics.measures.scoring import item_scores
from psychometrics.models import vectors
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.nulls.kernels import kernel_statistics
from psychometrics.nulls.respondents import kernel
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.untrained import REAL

from . import frozen_heads

BASES = {
    "MiniLM, 3 layers": ("embedded", 3, None),
    "MiniLM, 4 layers": ("embedded", 4, None),
    "MiniLM, 5 layers": ("embedded", 5, None),
    "MiniLM, 6 layers": ("embedded", 6, None),
    "SmolLM2, 18 layers": ("smollm2", 18, frozen_heads.WORDING),
    "SmolLM2": ("smollm2", 30, frozen_heads.WORDING),
}
"""Base, layers, and the decoder's wording: the text of most members on it."""
QUESTIONNAIRES = (*REAL, "ipip20", "placebo_defects", "placebo_weather")
SIZES = {"start": None, "quarter": 0.25, "matched": 1.0, "fourfold": 4.0}
SAMPLES = (10, 24, 100)
HEADS = 2000
FEWEST_MEMBERS = 3
DRAWS = 1000
KEY = ["statistic", "scale", "other"]


def statistics_table() -> pd.DataFrame:
    """Return the statistics of all bases and questionnaires, with intervals for 24 heads."""
    parts = [
        kernel_statistics(kernel(QUESTIONNAIRES, *base), respondents=24).assign(base=name)
        for name, base in BASES.items()
    ]
    return pd.concat(parts)[["base", *KEY, "value", "low", "high"]]


def save_bases(table: pd.DataFrame, path: Path, first: Iterable[str]) -> None:
    """Save rows of bases, and leave the rows of other bases unchanged.

    Bases have the order of `first`, then of the file, then of the table.
    """
    order = list(first)
    if path.is_file():
        shipped = pd.read_csv(path)
        order += list(shipped["base"].unique())
        table = pd.concat([shipped[~shipped["base"].isin(table["base"])], table])

    order += list(table["base"].unique())
    path.parent.mkdir(exist_ok=True)
    _write(table.sort_values("base", key=lambda base: base.map(order.index), kind="stable"), path)


def correlations_within(covariances: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return the correlations of each questionnaire's items, by pair of items."""
    size = np.sqrt(np.diag(covariances))
    r = (covariances / size / size[:, None]).droplevel([0, 1]).T.droplevel([0, 1])
    items = [[item.id for item in load_questionnaire(name).items] for name in names]
    pairs = [pair for of_one in items for pair in itertools.combinations(of_one, 2)]
    return pd.Series({pair: r.loc[pair] for pair in pairs})


def item_correlations() -> pd.DataFrame:
    """Return the kernel's correlations of the items of GAD-7, PHQ-9 and SOC-13, by base."""
    columns = {}
    for name, base in BASES.items():
        K = kernel(REAL, *base).droplevel([0, 1]).T.droplevel([0, 1])
        size = np.sqrt(np.diag(K))
        columns[name] = (K / size / size[:, None]).stack()
    return pd.DataFrame(columns).rename_axis(["one", "other"])


# --- the error of the approximation


def entailments(
    base: str, layers: int, wording: str | None, sizes: list, numbers: range
) -> np.ndarray:
    """Return untrained heads' probabilities of entailment, (sizes, heads, prompts).

    A size is the root mean square of the centred log probabilities; None leaves heads unscaled.
    """
    table, _ = frozen_heads.templates(REAL)
    texts = tuple(table[["premise", "hypothesis"]].itertuples(index=False, name=None))
    states = torch.from_numpy(
        vectors.layer_vectors(base, {layers}, (texts,), wording)[layers].copy()
    )
    head = frozen_heads.untrained(numbers, states.shape[1], vectors.is_decoder(base))
    answers = frozen_heads.answer(head, states)
    scaled = [
        answers if size is None else frozen_heads.scaled_logs(answers, size) for size in sizes
    ]
    return np.stack([frozen_heads.shares(logs, "entailment") for logs in scaled])


def keyed_scores(entailment: np.ndarray, places: list[frozen_heads.Template]) -> np.ndarray:
    """Return scores of source terms with the items' keys, (heads, items)."""
    items: dict[str, list] = {}
    for item, key, rows, weights, polarity in places:
        source = two_way(entailment[:, rows])[:, polarity > 0]
        items.setdefault(item, []).append(key * (source @ weights).mean(axis=1) / len(weights))
    return np.stack([np.mean(of_item, axis=0) for of_item in items.values()], axis=1)


def scale_alphas(scores: np.ndarray, ends: list[int]) -> np.ndarray:
    """Return Cronbach's alpha of each questionnaire, of scores (..., respondents, items)."""
    parts = np.split(scores - scores.mean(axis=-2, keepdims=True), ends[:-1], axis=-1)
    return np.stack([alphas(np.swapaxes(part, -1, -2) @ part) for part in parts], axis=-1)


def errors(name: str, sizes: dict[str, float | None], heads: int = HEADS) -> pd.DataFrame:
    """Compare the kernel of a base with simulated heads, one row per size of the heads.

    Returns
    -------
    DataFrame
        ``r`` between the item correlations and the kernel's over pairs of items, and the
        ``largest`` difference; ``alpha`` in closed form and ``simulated`` (means over
        questionnaires) and the largest difference for one questionnaire, ``alpha off``; ``within
        10, 24, 100``: of 1,000 samples of that many heads, the share whose alpha lies in the
        interval of Wishart draws (mean over questionnaires).
    """
    stand = BASES[name]
    _, places = frozen_heads.templates(REAL)
    K = kernel(REAL, *stand)
    counts = K.index.get_level_values("questionnaire").value_counts(sort=False)
    ends = list(counts[list(REAL)].cumsum())
    upper = np.triu_indices(len(K), 1)
    size = np.sqrt(np.diag(K))
    closed = (K.to_numpy() / size / size[:, None])[upper]
    drawn = [[] for _ in sizes]

    for start in range(0, heads, 50):
        numbers = range(10_000 + start, 10_000 + start + 50)  # not used by any other table
        for drawn_scores, entailment in zip(
            drawn, entailments(*stand, [*sizes.values()], numbers), strict=True
        ):
            drawn_scores.append(keyed_scores(entailment, places))

    implied = {n: kernel_statistics(K, n).set_index("statistic") for n in SAMPLES}
    closed_alphas = implied[SAMPLES[0]].loc[["alpha"], "value"].to_numpy()
    rows = []
    rng = np.random.default_rng(0)

    for label, drawn_scores in zip(sizes, drawn, strict=True):
        scores = np.concatenate(drawn_scores)
        r = np.corrcoef(scores.T)[upper]
        alphas_of_heads = scale_alphas(scores, ends)
        row = {"base": name, "size": label, "heads": heads}
        row |= {"r": np.corrcoef(r, closed)[0, 1], "largest": np.abs(r - closed).max()}
        row |= {"alpha": closed_alphas.mean(), "simulated": alphas_of_heads.mean()}
        row["alpha off"] = np.abs(alphas_of_heads - closed_alphas).max()

        for n, table in implied.items():
            chosen = np.stack([rng.choice(heads, n, replace=False) for _ in range(DRAWS)])
            sample_alphas = scale_alphas(scores[chosen], ends)
            ends_of = table.loc[["alpha"]]
            low = ends_of["low"].to_numpy()
            high = ends_of["high"].to_numpy()
            row[f"within {n}"] = ((sample_alphas >= low) & (sample_alphas <= high)).mean()

        rows.append(row)

    return pd.DataFrame(rows)


def errors_table() -> pd.DataFrame:
    """Return the errors on all bases; *matched* heads have their family's median size."""
    tables = []
    for family, members in (
        ("MiniLM", population("encoders")),
        ("SmolLM2", population("decoders")),
    ):
        answers = ask(list(REAL), members, progress=False)[list(PROBABILITIES)]
        values = frozen_heads.centred_logs(np.log(answers.to_numpy().reshape(len(members), -1, 3)))
        median_size = float(np.median(np.sqrt((values**2).mean(axis=(1, 2)))))
        sizes = {label: factor and factor * median_size for label, factor in SIZES.items()}
        tables += [errors(name, sizes) for name in BASES if name.startswith(family)]
        print(tables[-1], flush=True)

    return pd.concat(tables)


# --- what the explorer of the kernel shows


def explorer_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return item correlations by base, and statistics at depths with at least three members.

    Returns
    -------
    DataFrame
        A row for each pair of items of one questionnaire, a column for each base.
    DataFrame
        The columns of :func:`psychometrics.nulls.kernels.kernel_statistics`: ``value`` for the
        members, and ``low, high`` of the kernel for as many respondents as ``members``.
    """
    pairs = {}
    rows = []
    loaded = [load_questionnaire(name) for name in QUESTIONNAIRES]
    table = population_table().set_index("respondent_id").loc[population("all")]

    for name, base in BASES.items():
        K = kernel(QUESTIONNAIRES, *base)
        pairs[name] = correlations_within(K, QUESTIONNAIRES)
        on_base = (table["family"] == name.split(",")[0]) & (table["layers"] == base[1])
        members = list(table.index[on_base])
        if len(members) < FEWEST_MEMBERS:
            continue
        scores = item_scores(ask(loaded, members, progress=False))
        wide = scores.pivot(index="respondent_id", columns="item_id", values="score")
        top = [(q, scale) for q in loaded for scale in q.scales if scale.parent is None]
        keys = {item: key for q, scale in top for item, key in q.keys(scale).items()}
        wide = (wide * pd.Series(keys))[K.index.get_level_values("item_id")]
        covariances = pd.DataFrame(np.cov(wide.T), K.index, K.index)
        of_members = kernel_statistics(covariances).set_index(KEY)
        ends = kernel_statistics(K, len(members)).set_index(KEY)[["low", "high"]]
        of_members = of_members.join(ends).loc[
            lambda t: t.index.isin(["alpha", "correlation"], level=0)
        ]
        rows.append(of_members.reset_index().assign(base=name, members=len(members)))

    pairs = pd.DataFrame(pairs).rename_axis(["one", "other"])
    return pairs, pd.concat(rows)[["base", "members", *KEY, "value", "low", "high"]]


def _write(table: pd.DataFrame, path: Path, digits: int = 4, index: bool = False) -> None:
    table.to_csv(path, index=index, float_format=f"%.{digits}f", lineterminator="\n")


if __name__ == "__main__":
    folder = data_dir()
    save_bases(statistics_table(), folder / "kernels.csv", BASES)
    _write(item_correlations(), folder / "kernel_items.csv", index=True)
    pairs, members = explorer_tables()
    _write(pairs, folder / "explorers" / "kernel.csv", 2, index=True)
    _write(members, folder / "explorers" / "kernel-members.csv", 3)
    _write(errors_table(), folder / "kernel_errors.csv", 3)
