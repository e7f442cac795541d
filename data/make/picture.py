"""Draws the picture of the README anew: ``python -m data.make.picture``."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psychometrics import figures
from psychometrics.paths import book_dir, data_dir

SHOWN = {
    "alpha": ("items agree", "Cronbach's alpha"),
    "correlations": ("scales correlate as in people", "least of three correlations"),
    "silhouette": ("opposite words are told apart", "silhouette"),
}
"""Kinds of evidence, in words and as statistics; columns of ``data/explorers/null.csv``."""


def _main() -> None:
    table = pd.read_csv(data_dir() / "explorers" / "null.csv").set_index("kind")
    trained, untrained = table.loc["our population"], table.loc["random heads, our bases"]
    figures.style()
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.5), sharey=True)
    height = np.random.default_rng(0).uniform(-1, 1, len(untrained))
    for ax, (name, (title, label)) in zip(axes, SHOWN.items(), strict=True):
        ax.scatter(untrained[name], height, s=12, color=figures.GREY, alpha=0.6, linewidths=0,
                   label=f"{len(untrained)} populations of untrained heads")  # fmt: skip
        ax.axvline(trained[name], color=figures.SOURCE, linewidth=2.5,
                   label="the trained models of this book")  # fmt: skip
        ax.set(xlabel=label, yticks=[], ylim=(-1.3, 1.3))
        ax.set_title(title, fontsize=11)
        ax.spines["left"].set_visible(False)
        ax.tick_params(labelsize=10)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2,
                  frameon=False, fontsize=10.5)  # fmt: skip
    figure.savefig(book_dir() / "_static" / "result.png", dpi=160)


if __name__ == "__main__":
    _main()
