"""What untrained heads reach on each base and scale: ``python -m recipes.impostors``.

``data/impostors.csv`` is the book's table of impostors, one row per base and scale: alpha in closed
form, the smallest of its correlations with the other two of GAD-7, PHQ-9 and SOC-13, and the mean
silhouette of 200 untrained heads. Bases that come with the book are read here (twenty minutes of
one processor core); rows of larger bases are taken from ``kernels.csv`` and ``bases/nulls.csv``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from psychometrics.models import vectors
from psychometrics.nulls.kernels import kernel_statistics
from psychometrics.nulls.respondents import kernel_of_vectors
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics_book.studies.untrained import EXPECTED

from . import dose
from .kernels import BASES

QUESTIONNAIRES = (
    "gad7", "phq9", "soc13", "ipip20", "esteem10", "gender8", "challenges",
    "placebo_defects", "placebo_habits", "placebo_pleasures", "placebo_weather",
)  # fmt: skip
HEADS = range(20_000, 20_200)
SAMPLE = 24
LARGER = ("MPNet", "Gemma 3 270M", "Qwen2.5 0.5B", "Qwen2.5 1.5B")


def closed_form(statistics: pd.DataFrame) -> pd.DataFrame:
    """Return alpha and the smallest correlation of each scale, from statistics of a kernel.

    Parameters
    ----------
    statistics : DataFrame
        As :func:`psychometrics.nulls.kernels.kernel_statistics` returns them.

    Returns
    -------
    DataFrame
        ``alpha, alpha low, alpha high`` and ``correlation, correlation low, correlation high``,
        by scale; a correlation is positive if it has the sign that it has in people.
    """
    columns = ["value", "low", "high"]
    by_kind = statistics.set_index("statistic")
    alphas = by_kind.loc[["alpha"]].set_index("scale")[columns]
    table = alphas.set_axis(["alpha", "alpha low", "alpha high"], axis=1)

    pairs = by_kind.loc[["correlation"]].set_index(["scale", "other"])[columns]
    keyed = {}
    for pair, sign in EXPECTED.items():
        value, low, high = pairs.loc[pair if pair in pairs.index else pair[::-1]]
        keyed[pair] = (value, low, high) if sign > 0 else (-value, -high, -low)

    names = ["correlation", "correlation low", "correlation high"]
    for scale in dict.fromkeys(name for pair in EXPECTED for name in pair):
        table.loc[scale, names] = min(values for pair, values in keyed.items() if scale in pair)

    return table


def silhouettes(given: np.ndarray, linear: bool) -> pd.DataFrame:
    """Return the mean silhouette of untrained heads and the central 95 % of heads, by scale.

    Parameters
    ----------
    given : ndarray, shape (prompts, width)
        A base's vectors of the questionnaires' prompts.
    linear : bool
        Whether a head has one layer, as on decoders.
    """
    _, places = dose.templates(QUESTIONNAIRES)
    values = torch.from_numpy(given.copy())
    parts = []
    for start in range(HEADS.start, HEADS.stop, 20):
        head = dose.untrained(range(start, start + 20), values.shape[1], linear)
        parts.append(
            dose.score(dose.shares(dose.answer(head, values), "entailment"), places)["silhouette"]
        )

    items = dict.fromkeys(place.item for place in places)
    by_item = pd.DataFrame(np.concatenate(parts), columns=[*items])
    rows = {}
    for scale, members in scales().items():
        of_heads = by_item[members].mean(axis=1)
        rows[scale] = [of_heads.mean(), *of_heads.quantile([0.025, 0.975])]

    names = ["silhouette", "silhouette low", "silhouette high"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)


def scales() -> dict[str, list[str]]:
    """Return the items of each scale, named as in the statistics of a kernel."""
    loaded = [load_questionnaire(name) for name in QUESTIONNAIRES]
    return {
        scale_name(one, scale.id): list(scale.items)
        for one in loaded
        for scale in one.scales
        if scale.parent is None
    }


def scale_name(questionnaire: Questionnaire, scale: str) -> str:
    """Return the questionnaire's name, followed by the scale's if there are several."""
    single = len([one for one in questionnaire.scales if one.parent is None]) == 1
    return questionnaire.id if single else f"{questionnaire.id} {scale}"


def read_base(label: str) -> pd.DataFrame:
    """Return the rows of a base that comes with the book."""
    base, layers, wording = BASES[label]
    loaded = [load_questionnaire(name) for name in QUESTIONNAIRES]
    table, _ = dose.templates(QUESTIONNAIRES)
    parts = tuple(
        tuple(part[["premise", "hypothesis"]].itertuples(index=False, name=None))
        for _, part in table.groupby("questionnaire", sort=False)
    )
    given = vectors.layer_vectors(base, {layers}, parts, wording)[layers]
    statistics = kernel_statistics(kernel_of_vectors(loaded, table, given), SAMPLE)
    closed = closed_form(statistics)
    return closed.join(silhouettes(given, vectors.is_decoder(base))).assign(base=label)


def larger_base(label: str) -> pd.DataFrame:
    """Return the rows of a larger base, from the tables that the study of six bases has made."""
    kernels = pd.read_csv(data_dir() / "kernels.csv")
    closed = closed_form(kernels[kernels["base"] == label])
    nulls = pd.read_csv(data_dir() / "bases" / "nulls.csv").query(
        "kind == 'heads' and size == 'start' and statistic == 'silhouette' and base == @label"
    )
    simulated = nulls.set_index("questionnaire")[["mean", "low", "high"]]
    names = ["silhouette", "silhouette low", "silhouette high"]
    return closed.join(simulated.set_axis(names, axis=1)).assign(base=label)


def main() -> None:
    parts = [read_base(label) for label in BASES] + [larger_base(label) for label in LARGER]
    table = pd.concat(parts).rename_axis("scale").reset_index()
    table.insert(0, "base", table.pop("base"))
    path = data_dir() / "impostors.csv"
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


if __name__ == "__main__":
    main()
