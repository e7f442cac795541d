"""Draw the pictures of the README and the landing page: ``python -m recipes.picture``.

``guess.png`` shows the eight decoders and, from 200 populations of untrained heads on the same
network, the one with the median correlation between anxiety and depression. ``share.png`` is the
preview of a link to the book, ``twins.png`` the preview of a link to the twin test.
"""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psychometrics import figures
from psychometrics.asking.ask import ask
from psychometrics.asking.population import population, untouched_bases
from psychometrics.nulls.evidence import profiles, resized
from psychometrics.nulls.respondents import null_answers
from psychometrics.paths import book_dir, data_dir
from psychometrics.questionnaires import load_questionnaire

from .null_populations import NAMES

SHOWN = {
    "alpha": ("items agree", "Cronbach's alpha"),
    "correlations": ("scales correlate as in people", "least of three correlations"),
    "silhouette": ("opposite words differ", "silhouette"),
}
"""Kinds of evidence, in words and as statistics; columns of ``data/null_populations.parquet``."""
DRAWN = 200
"""Number of populations drawn as dots."""
BASES = {"SmolLM2": "8 decoders", "MiniLM": "24 encoders"}


def _main() -> None:
    table = pd.read_parquet(data_dir() / "null_populations.parquet")
    table = table[table["population"] < DRAWN].set_index(["size", "base"])
    figures.style()
    figure, axes = plt.subplots(3, 1, figsize=(5.4, 5.8))
    rng = np.random.default_rng(0)

    for ax, (name, (title, label)) in zip(axes, SHOWN.items(), strict=True):
        for place, base in enumerate(BASES):
            untrained = table.loc[("matched", base), name]
            height = place + rng.uniform(-0.3, 0.3, len(untrained))
            ax.scatter(untrained, height, s=10, color="#7d8894", alpha=0.9, linewidths=0,
                       label="populations of untrained heads" if place else None)  # fmt: skip
            trained = table.loc[[("trained", base)], name].iloc[0]
            ax.plot([trained, trained], [place - 0.4, place + 0.4], color=figures.TRAINED,
                    linewidth=3, label="the trained models" if place else None)  # fmt: skip

        ax.set(xlabel=label, yticks=range(2), yticklabels=BASES.values(), ylim=(-0.6, 1.6))
        ax.set_title(title, fontsize=11)
        ax.spines["left"].set_visible(False)
        ax.tick_params(labelsize=10, length=0, axis="y")
        ax.tick_params(labelsize=10, axis="x")

    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2,
                  frameon=False, fontsize=10.5)  # fmt: skip
    figure.savefig(book_dir() / "_static" / "result.png", dpi=160)
    _draw_guess(table.loc[("matched", "SmolLM2")].sort_values(["ρ gad7 phq9", "population"]))
    _draw_twins()


def _draw_guess(populations: pd.DataFrame) -> None:
    """Draw anxiety against depression in the trained decoders and in the median population."""
    middle = int(populations["population"].iloc[len(populations) // 2])
    loaded = [load_questionnaire(name) for name in NAMES]
    members = population("encoders") + population("decoders")
    trained = ask(loaded, members, progress=False)
    seed = {"respondents": len(members), "seed": middle * len(members)}
    untrained = null_answers(loaded, "random-heads", **seed, **untouched_bases(members))
    untrained = resized(untrained, trained)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
    for ax, name, answers in zip(axes, "AB", (untrained, trained), strict=True):
        scores = profiles(answers, loaded)["source"].iloc[-len(population("decoders")) :]
        anxiety = scores.iloc[:, :7].mean(axis=1)
        depression = scores.iloc[:, 7:16].mean(axis=1)
        print(name, middle, anxiety.corr(depression, method="spearman"))
        ax.scatter(anxiety, depression, s=110, color="0.15", linewidths=0)
        ax.set(xticks=[], yticks=[], xlabel="anxiety (GAD-7)", ylabel="depression (PHQ-9)")
        ax.set_title(name, fontsize=18, fontweight="bold", loc="left")
        ax.margins(0.15)
        ax.xaxis.label.set_size(13)
        ax.yaxis.label.set_size(13)

    figure.savefig(book_dir() / "_static" / "guess.png", dpi=160)
    figure.set_size_inches(1200 / 160, 630 / 160)
    figure.suptitle("Which of these networks was never trained to answer?", fontsize=14)
    figure.savefig(book_dir() / "_static" / "share.png", dpi=160)


def _draw_twins() -> None:
    """Draw the item scores of two pairs of twins on MPNet, each as alike as its group's mean."""
    members = pd.read_csv(data_dir() / "bases" / "members-mpnet.csv").query("head == 'own'")
    items = members.filter(regex="^source: (gad7|phq9|soc13)_").columns
    groups = {"inference": "learnt from true labels", "shuffled": "learnt from shuffled labels"}
    colours = (figures.TRAINED, figures.NULL)
    figure, axes = plt.subplots(1, 2, figsize=(1200 / 160, 630 / 160))

    for ax, (group, title), colour in zip(axes, groups.items(), colours, strict=True):
        scores = members.loc[members["group"] == group, items].to_numpy()
        agreement = np.corrcoef(scores)
        mean = agreement[np.triu_indices(len(scores), 1)].mean()
        pairs = combinations(range(len(scores)), 2)
        one, other = min(pairs, key=lambda pair: abs(agreement[pair] - mean))

        ax.scatter(scores[one], scores[other], s=60, color=colour, linewidths=0)
        ax.set(xticks=[], yticks=[], xlabel="one twin's scores", ylabel="the other twin's scores")
        ax.set_title(f"{title}: r = {agreement[one, other]:.2f}", fontsize=12)
        ax.margins(0.1)

    figure.suptitle("Two models trained apart, 29 items: do they agree?", fontsize=14)
    figure.savefig(book_dir() / "_static" / "twins.png", dpi=160)


if __name__ == "__main__":
    _main()
