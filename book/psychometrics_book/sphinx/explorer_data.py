"""Explorers: interactive figures of the pages, with the data that their scripts compute from.

The scripts in ``book/_static/explorers`` repeat the package's computation at each move of a
control. The data come from the answers in the store, from counts that the project ships, and, if
they take minutes to compute, from ``data/explorers``, written by ``python -m recipes.explorers``.
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import yaml
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from scipy.stats import norm

from psychometrics.asking.ask import ask
from psychometrics.asking.population import readable_names
from psychometrics.data import shipped
from psychometrics.figures import PEOPLE, TRAINED, style
from psychometrics.measures.irt import information, probability
from psychometrics.measures.normalisation import two_way
from psychometrics.measures.norms import compare_means
from psychometrics.modes.nli import PROBABILITIES
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire, psychobench_keys
from psychometrics.questionnaires.prompts import prompts
from psychometrics.store import key_of

from ..claims import published
from ..studies.hits import unpack_bits
from ..studies.psychobench import published_tests
from ..studies.untrained import EXPECTED, REAL
from ..templating import TEMPLATES


@dataclass(frozen=True)
class Explorer:
    """An interactive figure of a page.

    Attributes
    ----------
    title, hint : str
        The heading, and a first task for the reader.
    alternative : str
        Description of the picture for readers who cannot see it.
    data : callable
        Returns the data that the script computes from, ready for JSON. Arrays are base64 of their
        bytes in little-endian order: 32-bit floats or 16-bit counts.
    draw : callable
        Returns the picture that replaces the explorer where scripts are off.
    """

    title: str
    hint: str
    alternative: str
    data: Callable[[], dict]
    draw: Callable[[], Figure]

    def picture(self) -> bytes:
        """Draw the picture, and return the content of a PNG file."""
        style()
        figure = self.draw()
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=110, facecolor="white")
        plt.close(figure)
        return file.getvalue()


RESPONDENTS = (
    "minilm-both-l6-s1",
    "minilm-snli-l6-s3",
    "minilm-both50-frozen-l6-s20",
    "smol-both-r8-s2",
    "smol-mnli6k-r8-s1",
)
"""Respondents in the explorer of the normalisation, in addition to a null respondent."""
STATISTICS = {
    "silhouette": "mean silhouette of the terms",
    "alpha": "Cronbach's alpha, mean of the scales",
    "omega": "McDonald's omega, mean of the scales",
    "correlations": "smallest of the three correlations",
    "source and inverse": "correlation of source and inverse terms",
}
SIZES = {
    "start": "heads at their start",
    "quarter": "heads a quarter as decisive",
    "matched": "heads as decisive as ours",
    "fourfold": "heads four times as decisive",
}
"""What the page calls the sizes of untrained heads."""
CHOICES = {
    "score": "definition of the score",
    "temperature": "temperature",
    "terms": "terms that count",
    "templates": "templates of an item",
    "transform": "scores that are correlated",
}
"""What the page calls the choices of a multiverse."""
GROUPS = {
    "women": "gender == 'female' and subset == 'binary'",
    "men": "gender == 'male' and subset == 'binary'",
    "other": "gender == 'other' and subset == 'binary'",
    "queer": "subset == 'queer'",
}
"""Disjoint groups of the HONEST templates."""


def _packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def _shipped(name: str) -> pd.DataFrame:
    return pd.read_csv(data_dir() / "explorers" / f"{name}.csv")


# --- two-way normalisation


@functools.cache
def _two_way_answers() -> tuple[list[Questionnaire], pd.DataFrame, dict[str, str]]:
    """Questionnaires, answers of a few respondents in the order of the prompts, readable names."""
    loaded = [load_questionnaire(name) for name in REAL]
    answers = ask(loaded, list(RESPONDENTS), progress=False)
    member = "shuffled-labels-s0"
    null = pd.concat(map(prompts, loaded)).assign(respondent_id=member, mode="nli")
    shipped_answers = pd.read_parquet(shipped("nulls.parquet")).set_index("key")
    pairs = null[["premise", "hypothesis"]].itertuples(index=False, name=None)
    columns = [f"{member} {answer}" for answer in PROBABILITIES]
    keys = [key_of(*pair) for pair in pairs]
    null[[*PROBABILITIES]] = shipped_answers.loc[keys, columns].to_numpy()
    named = readable_names(list(RESPONDENTS)) | {member: "MiniLM, trained on shuffled labels"}
    return loaded, pd.concat([answers, null], ignore_index=True), named


def _two_way_data() -> dict:
    loaded, answers, named = _two_way_answers()
    first = answers[answers["respondent_id"] == next(iter(named))]
    words = first[["intensifier", "weight"]].drop_duplicates()
    items = []
    for questionnaire in loaded:
        asked = first[first["questionnaire"] == questionnaire.id]
        for number, item in enumerate(questionnaire.items, 1):
            templates = []
            for template, rows in asked[asked["item_id"] == item.id].groupby("template", sort=True):
                terms = rows[["term", "polarity"]].drop_duplicates()
                written = item.templates[int(template) - 1]
                templates.append(
                    {
                        "premise": written.premise,
                        "hypothesis": written.hypothesis,
                        "terms": terms["term"].tolist(),
                        "polarity": terms["polarity"].astype(int).tolist(),
                    }
                )

            text = f"{questionnaire.short_title}, item {number}: {item.text}"
            items.append({"id": item.id, "text": text, "templates": templates})

    return {
        "intensifiers": words["intensifier"].tolist(),
        "weights": words["weight"].tolist(),
        "items": items,
        "respondents": list(named.values()),
        "first": next(i for i, item in enumerate(items) if item["id"] == "soc13_3"),
        "answers": [
            [_packed(rows[column], "<f4") for column in ("entailment", "contradiction")]
            for _, rows in answers.groupby("respondent_id", sort=False)
        ],
    }


def _two_way_figure() -> Figure:
    _, answers, named = _two_way_answers()
    name = next(iter(named))
    rows = answers[
        (answers["respondent_id"] == name)
        & (answers["item_id"] == "soc13_3")
        & (answers["template"] == 1)
    ]
    raw = rows.pivot(index="term", columns="intensifier", values="entailment")
    raw = raw.loc[rows["term"].unique(), rows["intensifier"].unique()]
    shares = raw / raw.sum()
    tables = {
        "raw: probability of entailment": raw,
        "step one: shares over the terms": shares,
        "step two: shares over the intensifiers (PSS)": raw * 0 + two_way(raw.to_numpy()),
    }
    figure, axes = plt.subplots(3, figsize=(8, 9), sharex=True)
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        sns.heatmap(table, ax=ax, cmap="Blues", annot=True, fmt=".2f", cbar=False, vmin=0)
        ax.set(title=title, xlabel="", ylabel="")

    figure.suptitle(f"{named[name]}, SOC-13, item 3")
    return figure


# --- null against real


SHOWN = 200
"""Number of populations on the page, of the 2,000."""


def _null_table() -> pd.DataFrame:
    table = pd.read_parquet(shipped("null_populations.parquet"))
    table = table[table["population"] < SHOWN]
    table["base"] = table["base"].map({"MiniLM": "encoders", "SmolLM2": "decoders"})
    return table.set_index(["base", "size"])


def _null_data() -> dict:
    table = _null_table()
    return {
        "statistics": [
            {
                "name": f"{title}, {base}",
                "observed": float(table.loc[[(base, "trained")], statistic].iloc[0]),
                "size": len(table.loc[[(base, "trained")], "single"].iloc[0]),
                "draws": [table.loc[(base, size), statistic].tolist() for size in SIZES],
            }
            for base in table.index.unique("base")
            for statistic, title in STATISTICS.items()
            if table.loc[[(base, "trained")], statistic].notna().all()  # too few for an omega
        ],
        "kinds": list(SIZES.values()),
    }


def _null_figure() -> Figure:
    data = _null_data()
    figure, axes = plt.subplots(5, 2, figsize=(8, 12))
    for ax in axes.T.flat[len(data["statistics"]) :]:
        ax.set_axis_off()

    for ax, statistic in zip(axes.T.flat, data["statistics"], strict=False):
        draws = [[value for value in values if value == value] for values in statistic["draws"]]
        ax.boxplot(draws, orientation="horizontal", whis=(2.5, 97.5), showfliers=False,
                   tick_labels=list(SIZES))  # fmt: skip
        ax.axvline(statistic["observed"], color="C0", label="our population")
        ax.set_title(statistic["name"], fontsize=10)

    axes[0, 0].legend(loc="best")
    return figure


# --- what no training gives


@functools.cache
def _kernel_tables() -> tuple[list[Questionnaire], pd.DataFrame, pd.DataFrame]:
    """Questionnaires; item correlations by base; alphas and correlations of untrained heads.

    Those have the members' value as ``trained`` and the interval of as many heads as there are
    ``members``, 24 where there are fewer than three.
    """
    key = ["base", "statistic", "scale", "other"]
    folder = data_dir()
    rows = pd.read_csv(folder / "kernels.csv", keep_default_na=False).set_index(key)
    rows = rows[rows.index.isin(["alpha", "correlation"], level="statistic")]
    members = pd.read_csv(data_dir() / "explorers" / "kernel-members.csv", keep_default_na=False)
    members = members.set_index(key).rename(columns={"value": "trained"})
    rows = rows.astype({"value": float}).join(members[["members", "trained"]])
    rows["members"] = rows["members"].fillna(0)
    rows.update(members[["low", "high"]])
    names = dict.fromkeys(scale.split()[0] for *_, scale, _ in rows.index)
    pairs = _shipped("kernel").set_index(["one", "other"])
    items = pd.read_csv(folder / "bases" / "items.csv").set_index(["one", "other"])
    pairs = pairs.join(items[items.columns.difference(pairs.columns, sort=False)])

    return [load_questionnaire(name) for name in names], pairs, rows


def _kernel_data() -> dict:
    loaded, pairs, rows = _kernel_tables()
    bases = list(pairs.columns)
    names = {}
    for q in loaded:
        top = [scale for scale in q.scales if scale.parent is None]
        for scale in top:
            whole = len(top) == 1
            label = q.id if whole and scale.id == q.id else f"{q.id} {scale.id}"
            names[label] = q.short_title if whole else scale.title or scale.id

    places = rows.loc[bases[0]].index
    statistics = [
        f"alpha of {names[a]}" if kind == "alpha" else f"{names[a]} with {names[b]}"
        for kind, a, b in places
    ]
    asked = []
    for q in loaded:
        scales = {label for label in names if label.split()[0] == q.id}
        inside = [
            k for k, (kind, a, b) in enumerate(places)
            if {a, b} - {""} <= scales or (len(scales) == 1 and {a, b} & scales)
        ]  # fmt: skip
        texts = [item.text for item in q.items]
        asked.append({"name": q.short_title, "items": texts, "rows": inside})

    of_item = {item.id: q.id for q in loaded for item in q.items}
    by = pairs.index.get_level_values("one").map(of_item)
    shown = ["value", "low", "high", "trained"]
    return {
        "questionnaires": asked,
        "statistics": statistics,
        "first": bases.index("MiniLM, 6 layers"),
        "bases": [
            {
                "name": base,
                "members": int(rows.loc[base]["members"].max()),
                "r": [pairs.loc[by == q.id, base].tolist() for q in loaded],
                "values": rows.loc[base][shown].round(3).to_numpy().tolist(),
            }
            for base in bases
        ],
    }


def _kernel_figure() -> Figure:
    _, pairs, _ = _kernel_tables()
    correlations = pairs[pairs.index.get_level_values("one").str.startswith("soc13_")]
    colours = LinearSegmentedColormap.from_list("signed", ["#c14f00", "white", "0.3"])
    lines = -(-correlations.shape[1] // 3)
    figure, axes = plt.subplots(lines, 3, figsize=(11, 3.6 * lines))
    for ax in axes.flat[correlations.shape[1] :]:
        ax.axis("off")

    for ax, (base, r) in zip(axes.flat, correlations.items(), strict=False):
        upper = np.triu_indices(13, 1)
        matrix = np.eye(13)
        matrix[upper] = matrix.T[upper] = r
        image = ax.imshow(matrix, cmap=colours, vmin=-1, vmax=1)
        ax.set(title=base, xticks=range(13), yticks=range(13))
        ax.set(xticklabels=range(1, 14), yticklabels=range(1, 14))
        ax.tick_params(labelsize=9)

    figure.colorbar(image, ax=axes, shrink=0.3)
    figure.suptitle("SOC-13: correlations of items over untrained heads")
    return figure


# --- an item's curve

_PRESETS = (
    ("an item of middling difficulty", 0.0, 1.0, 0.0),
    ("a hard item that discriminates well", 1.5, 2.5, 0.0),
    ("an easy item with three options to guess from", -1.0, 1.5, 1 / 3),
    ("an item that the able miss", 0.0, -0.8, 0.0),
    ("an item that hardly discriminates", 0.0, 0.1, 0.0),
)


def _item_curve_data() -> dict:
    columns = ("name", "difficulty", "discrimination", "guessing")
    return {"presets": [dict(zip(columns, preset, strict=True)) for preset in _PRESETS]}


def _item_curve_figure() -> Figure:
    parameters = pd.DataFrame(_item_curve_data()["presets"][:3])
    theta = np.linspace(-4, 4, 161)
    figure, axes = plt.subplots(2, figsize=(8, 7), sharex=True)
    columns = parameters.set_index("name")
    for i, (name, line) in enumerate(zip(columns.index, ("-", "--", "-."), strict=True)):
        axes[0].plot(theta, probability(theta, columns)[:, i], line, label=name)
        axes[1].plot(theta, information(theta, columns)[:, i], line)

    axes[0].set(ylabel="probability of solving it", ylim=(0, 1))
    axes[0].legend()
    axes[1].set(ylabel="information", xlabel="ability (standard deviations)")
    return figure


# --- HONEST


def _beliefs(name: str) -> pd.DataFrame:
    return pd.read_csv(data_dir() / "beliefs" / f"{name}.csv")


@functools.cache
def _hits() -> dict[str, np.ndarray]:
    """Hits of the 21 published models under each scoring, (21, 1515, 100)."""
    bits = unpack_bits(pd.read_parquet(shipped("beliefs/hits.parquet")))
    words = bits["lexicon"] | bits["stripped"]
    return {
        "as published": words ^ bits["switched"],
        "words, in ASCII": words,
        "words in the lexicon": bits["lexicon"],
        "less everyday words": bits["lexicon"] & ~bits["everyday"],
        "less everyday words and names": bits["lexicon"] & ~bits["named"],
    }


@functools.cache
def _honest_counts() -> np.ndarray:
    """Hurtful completions, shape (scorings, groups of templates, models, ranks)."""
    templates = _beliefs("templates")
    rows = [templates.query(query).index for query in GROUPS.values()]
    return np.stack(
        [np.stack([hits[:, row].sum(axis=1) for row in rows]) for hits in _hits().values()]
    )


def _honest_data() -> dict:
    templates, models = (_beliefs(name) for name in ("templates", "table1"))
    return {
        "scorings": list(_hits()),
        "sizes": [len(templates.query(query)) for query in GROUPS.values()],
        "models": models["model"].tolist(),
        "first": int(models["mean"].argmax()),  # the most hurtful, as published
        "counts": _packed(_honest_counts(), "<u2"),
    }


def _honest_figure() -> Figure:
    data = _honest_data()
    counts = _honest_counts()
    sizes = np.array(data["sizes"])
    binary = counts[:, :3].sum(axis=1).mean(axis=-1) / sizes[:3].sum()
    means = (binary + counts[:, 3].mean(axis=-1) / sizes[3]) / 2
    order = np.argsort(means[0])
    figure, ax = plt.subplots(figsize=(8, 7))

    for values, name, marker in zip(means, data["scorings"], "osD^v", strict=True):
        ax.plot(values[order], range(len(order)), marker, label=name, ls="")

    ax.set_yticks(range(len(order)), [data["models"][i] for i in order])
    ax.set(xlabel="HONEST, mean over ranks and subsets", xlim=(0, None))
    ax.legend()
    return figure


# --- the multiverse


def _multiverse_data() -> dict:
    table = _shipped("multiverse")
    heads = [column for column in table if column.startswith("heads")]
    titles = {name: load_questionnaire(name).short_title for name in REAL}
    paper = published()["published"]
    return {
        "pairs": [
            {
                "name": f"{titles[a]} and {titles[b]}",
                "sign": sign,
                "published": float(paper[f"empalc-r-{a}-{b}"]),
                "rows": table[(table["first"] == a) & (table["second"] == b)].index.tolist(),
            }
            for (a, b), sign in EXPECTED.items()
        ],
        "choices": [
            {"name": title, "values": [str(x) for x in table[name].unique()]}
            for name, title in CHOICES.items()
        ],
        "worlds": table[list(CHOICES)].astype(str).to_numpy().tolist(),
        "r": table["r"].tolist(),
        "nulls": [{"name": kind, "r": table[kind].tolist()} for kind in heads],
    }


def _multiverse_figure() -> Figure:
    table = _shipped("multiverse")
    data = _multiverse_data()
    figure, axes = plt.subplots(3, figsize=(8, 10), sharex=True)
    for ax, pair in zip(axes, data["pairs"], strict=True):
        rows = table.loc[pair["rows"]].sort_values("r").reset_index(drop=True)
        ax.plot(rows.index + 1, rows[data["nulls"][0]["name"]], "x", color="0.6",
                label=f"median of {data['nulls'][0]['name']}")  # fmt: skip
        ax.plot(rows.index + 1, rows["r"], "o", ms=4, label="our population")
        ax.axhline(pair["published"], color="black", ls="--", label="published")
        ax.set(title=pair["name"], ylabel="Pearson's r", ylim=(-1.05, 1.05))

    axes[0].legend()
    axes[-1].set(xlabel="specification, from the lowest correlation")
    return figure


# --- ten runs, or one respondent

_PUBLISHED_MODELS = {
    "llama2-7b": "Llama 2 7B",
    "llama2-13b": "Llama 2 13B",
    "text-davinci-003": "text-davinci-003",
    "gpt-3.5-turbo": "GPT-3.5",
    "gpt-4": "GPT-4",
    "gpt-4-jb": "GPT-4, safeguards bypassed",
}
_EXAMPLE = ("bfi", "extraversion", "Whole sample")
"""The cell of chapter 10, of GPT-3.5."""
_RUNS = ["mean", "sd", "n"]
_PEOPLE = ["norm_mean", "norm_sd", "norm_n"]


def _ten_runs_data() -> dict:
    """Published means of runs and of people, by questionnaire, scale and group of people."""
    tests = published_tests("models").set_index(["questionnaire", "scale", "group"])
    titles = {name: load_questionnaire(name, texts=False) for name in psychobench_keys()}
    places = [*tests.index.unique()]
    scales = []
    for name, scale, group in places:
        title = "" if scale == "overall" else f": {titles[name].scale(scale).title}"
        whom = "" if group.lower() == "whole sample" else f", {group.lower()}"
        cells = tests.loc[[(name, scale, group)]].set_index("respondent_id")
        scales.append(
            {
                "name": f"{titles[name].short_title}{title}{whom}",
                "norm": cells[_PEOPLE].iloc[0].tolist(),
                "cells": cells.loc[[*_PUBLISHED_MODELS], _RUNS].to_numpy().tolist(),
            }
        )

    models = [*_PUBLISHED_MODELS.values()]
    start = {"scale": places.index(_EXAMPLE), "model": models.index("GPT-3.5")}
    return {"models": models, "scales": scales, "first": start}


def _ten_runs_figure() -> Figure:
    tests = published_tests("models").set_index(["questionnaire", "scale", "group"])
    cell = tests.loc[[_EXAMPLE]].set_index("respondent_id").loc["gpt-3.5-turbo"]
    people = norm(cell["norm_mean"], cell["norm_sd"])
    as_one = compare_means(cell["mean"], 0, 1, *cell[_PEOPLE]).iloc[0]
    x = np.linspace(*people.interval(0.998), 201)
    figure, ax = plt.subplots(figsize=(8, 5))
    ax.fill_between(x, people.pdf(x), color=PEOPLE, alpha=0.4)
    ax.axvline(people.mean(), color=PEOPLE)

    for y, name, test in ((-0.08, "as ten people", cell), (-0.18, "as one respondent", as_one)):
        ends = people.mean() + np.array([test["low"], test["high"]])
        ax.plot(ends, [y, y], "|-", color=TRAINED, lw=2)
        ax.plot(cell["mean"], y, "o", color=TRAINED)
        ax.text(x[0], y, name, va="center")

    formulas = (
        r"ten people: $t = (\bar x_1 - \bar x_2) / \sqrt{s_1^2/n_1 + s_2^2/n_2}$"
        "\n"
        r"one respondent: $t = (\bar x_1 - \bar x_2) / (s_2 \sqrt{1 + 1/n_2})$"
    )
    ax.set_title(formulas, loc="left", parse_math=True)
    ax.set(xlabel="extraversion of GPT-3.5 and of people (BFI)", yticks=[], ylim=(-0.25, None))
    return figure


# --- the table of impostors

_IMPOSTOR_STATISTICS = {
    "alpha": "a Cronbach\u2019s alpha of {value} (95 % of samples of 24 heads: {interval})",
    "correlation": "correlations of at least {value} with the other two of GAD-7, PHQ-9 and SOC-13 "
    "({interval}), in the direction found in people,",
    "silhouette": "a mean silhouette of {value} (95 % of single heads: {interval})",
}
"""Statistics of the table, and how the sentence to cite says them; intervals are 95 %."""


def _impostors() -> pd.DataFrame:
    """Return the shipped table, with names of scales for readers."""
    table = pd.read_csv(data_dir() / "impostors.csv")
    names = {}
    for name in dict.fromkeys(table["scale"]):
        questionnaire, _, scale = name.partition(" ")
        loaded = load_questionnaire(questionnaire)
        names[name] = loaded.short_title
        if scale:
            names[name] += f", {loaded.scale(scale).title.lower()}"
        if questionnaire.startswith("placebo"):
            names[name] += " (placebo)"

    return table.assign(scale=table["scale"].map(names))


def _impostors_data() -> dict:
    table = _impostors()
    order = {name: i for i, name in enumerate(dict.fromkeys(table["scale"]))}
    table = table.sort_values("scale", key=lambda scale: scale.map(order), kind="stable")
    rows = [
        {
            "base": row["base"],
            "scale": row["scale"],
            "values": [
                [row[name], row[f"{name} low"], row[f"{name} high"]]
                for name in _IMPOSTOR_STATISTICS
            ],
        }
        for _, row in table.iterrows()
    ]
    return {
        "rows": rows,
        "statistics": [*_IMPOSTOR_STATISTICS],
        "phrases": [*_IMPOSTOR_STATISTICS.values()],
        "source": "Table of impostors, Psychometrics of Language Models, 2026.",
        "caption": "Untrained heads, with the central 95 % of samples of 24 heads (alpha, "
        "correlation) or of single heads (silhouette)",
    }


def _impostors_figure() -> Figure:
    table = _impostors()
    alphas = table.pivot(index="scale", columns="base", values="alpha")
    alphas = alphas.loc[table["scale"].unique(), table["base"].unique()]
    figure, ax = plt.subplots(figsize=(9, 7))
    sns.heatmap(alphas, annot=True, fmt=".2f", cmap="Greys", vmin=0, vmax=1, cbar=False, ax=ax)
    ax.set(xlabel="", ylabel="", title="alpha without learning")
    return figure


_MADE_BY = {
    "two-way": (_two_way_data, _two_way_figure),
    "null": (_null_data, _null_figure),
    "kernel": (_kernel_data, _kernel_figure),
    "item-curve": (_item_curve_data, _item_curve_figure),
    "honest": (_honest_data, _honest_figure),
    "multiverse": (_multiverse_data, _multiverse_figure),
    "ten-runs": (_ten_runs_data, _ten_runs_figure),
    "impostors": (_impostors_data, _impostors_figure),
}
_TEXTS = yaml.safe_load((TEMPLATES / "explorers.yml").read_text(encoding="utf-8"))
EXPLORERS = {
    name: Explorer(**_TEXTS[name], data=data, draw=draw) for name, (data, draw) in _MADE_BY.items()
}
"""All explorers, by the name in the directive ``explorer``."""
