"""Draws the picture of the README again: ``python -m data.make.picture``."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psychometrics import figures
from psychometrics.paths import book_dir, data_dir

SHOWN = {
    "alpha": ("items agree", "Cronbach's alpha"),
    "correlations": ("scales correlate as in people", "least of three correlations"),
    "silhouette": ("opposite words differ", "silhouette"),
}
"""Kinds of evidence, in words and as statistics; columns of ``data/null_populations.parquet``."""
BASES = {"SmolLM2": "8 decoders", "MiniLM": "24 encoders"}


def _main() -> None:
    table = pd.read_parquet(data_dir() / "null_populations.parquet").set_index(["size", "base"])
    figures.style()
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), sharey=True)
    rng = np.random.default_rng(0)
    for ax, (name, (title, label)) in zip(axes, SHOWN.items(), strict=True):
        for place, base in enumerate(BASES):
            untrained = table.loc[("matched", base), name]
            height = place + rng.uniform(-0.3, 0.3, len(untrained))
            ax.scatter(untrained, height, s=10, color=figures.NULL, alpha=0.6, linewidths=0,
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


if __name__ == "__main__":
    _main()
