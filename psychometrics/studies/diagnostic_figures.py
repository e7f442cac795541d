"""Figures of the study of diagnostic items."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from ..figures import GREY, INVERSE, MARKERS, PALETTE, SOURCE
from .diagnostic import CATEGORIES, REGIMES

_COLOURS = {"transformers": (SOURCE, "o"), "lstms": (INVERSE, "s")}
_NAMES = {"transformers": "transformers", "lstms": "LSTMs"}
_ETS = {"A": GREY, "B": PALETTE[4], "C": PALETTE[1]}


def correlations_with_null(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Correlations per category with their 95 % intervals, over two ranges of nothing.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.studies.diagnostic.difficulty_table` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    y = np.arange(len(table))
    ax.barh(y, table["label_high"] - table["label_low"], left=table["label_low"], height=0.84,
            color="none", edgecolor="#8A94A0", linewidth=0.9,
            label="preferring labels, 95 % of draws")  # fmt: skip
    ax.barh(y, table["null_high"] - table["null_low"], left=table["null_low"], height=0.7,
            color="#DDE3E9", label="guessing, 95 % of draws")  # fmt: skip
    for shift, (name, (colour, marker)) in zip((-0.14, 0.14), _COLOURS.items(), strict=True):
        ends = table[[f"low_{name}", f"high_{name}"]].to_numpy()
        reach = np.abs(ends - table[[name]].to_numpy()).T
        ax.errorbar(table[name], y + shift, xerr=reach, fmt=marker, color=colour, elinewidth=1,
                    markersize=6, label=_NAMES[name], zorder=3)  # fmt: skip
    ax.axvline(0, color="grey", linewidth=1)
    ax.set_yticks(y, [CATEGORIES[name] for name in table.index])
    ax.invert_yaxis()
    ax.set(xlim=(-1, 1), xlabel="rank correlation with people", ylabel="category")
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.4, 1.2), ncol=2)
    return ax


def dif_plot(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """MH delta of every item by category; beyond the dotted lines it may be large.

    Infinite deltas and those beyond 8 are drawn there, one above the other. What is not
    significant after correction for the false discovery rate is hollow.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.studies.diagnostic.dif` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    categories = list(dict.fromkeys(table["category"]))
    known = table[table["delta"].notna()]
    delta = known["delta"].clip(-8, 8).to_numpy()
    row = known["category"].map(categories.index).to_numpy()
    # Points of one category that would cover each other are spread over its row.
    bins = pd.Series(list(zip(row, (delta / 2).round(), strict=True)))
    many = bins.map(bins.value_counts()).to_numpy()
    place = row + 0.84 * ((bins.groupby(bins).cumcount().to_numpy() + 0.5) / many - 0.5)
    left = (known["p_fdr"] < 0.05).to_numpy()
    for name, colour in _ETS.items():
        own = (known["ets"] == name).to_numpy()
        for chosen, face in ((own & left, colour), (own & ~left, "none")):
            if chosen.any():
                ax.scatter(delta[chosen], place[chosen], s=24, facecolor=face, edgecolor=colour,
                           marker=MARKERS["ABC".index(name)],
                           label=name + ("" if face == colour else ", not significant"),
                           )  # fmt: skip
    for x in (-1.5, 1.5):
        ax.axvline(x, color="grey", linewidth=1, linestyle=":")
    ax.axvline(0, color="grey", linewidth=1)
    for edge in range(1, len(categories)):
        ax.axhline(edge - 0.5, color="#DDE3E9", linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(categories)), [CATEGORIES.get(c, c) for c in categories])
    ax.invert_yaxis()
    ends = ["−8 or\nbeyond", "−6", "−4", "−2", "0", "2", "4", "6", "8 or\nbeyond"]
    ax.set_xticks(range(-8, 9, 2), ends)
    ax.set(xlabel="Δ of Mantel and Haenszel (below 0: harder for models)",
           ylabel="category")  # fmt: skip
    ax.legend(frameon=False, title="ETS class", loc="lower center", bbox_to_anchor=(0.4, 1), ncol=2)
    return ax


def subset_lines(curve: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Agreement with the whole population against the number of models.

    Parameters
    ----------
    curve : DataFrame
        As :func:`psychometrics.studies.diagnostic.subset_curve` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    random, chosen = (curve[curve["way"] == way] for way in ("random", "chosen"))
    ax.fill_between(random["size"], random["low"], random["high"], color=SOURCE, alpha=0.2,
                    linewidth=0, label="random, 90 % of draws")  # fmt: skip
    ax.plot(random["size"], random["whole"], color=SOURCE, label="random, mean")
    ax.plot(chosen["size"], chosen["whole"], color=INVERSE, marker="s", markersize=4,
            linestyle="--", label="chosen")  # fmt: skip
    ax.plot(chosen["size"], chosen["people"], color=PALETTE[2], marker="^", markersize=4,
            linestyle="-.", label="chosen, with people")  # fmt: skip
    ax.set_xscale("log")
    sizes = [s for s in (1, 2, 5, 10, 20, 50, 100) if s <= curve["size"].max()]
    ax.set_xticks(sizes, [str(s) for s in sizes])
    ax.minorticks_off()
    ax.set(ylim=(0, 1), xlabel="number of models", ylabel="mean Spearman correlation")
    ax.legend(frameon=False, loc="lower right")
    return ax


def live_strip(
    models: pd.DataFrame, answers: pd.DataFrame, live: pd.DataFrame, ax: Axes | None = None
) -> Axes:
    """Share of items solved, by training regime: published models hollow, new ones filled.

    Parameters
    ----------
    models, answers : DataFrame
        As :func:`psychometrics.studies.diagnostic.models` and ``answers`` give them.
    live : DataFrame
        As :func:`psychometrics.studies.diagnostic.live_table` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    order = list(REGIMES.values())
    published = pd.DataFrame(
        {
            "population": models["population"],
            "regime": models["regime"],
            "share": answers.mean(axis=1),
        }
    )
    for shift, (name, (colour, marker)) in zip((-0.16, 0.16), _COLOURS.items(), strict=True):
        for table, face, size, above in ((published, "white", 18, 1), (live, colour, 34, 2)):
            part = table[table["population"] == name]
            place = part.groupby("regime").cumcount().to_numpy()
            x = part["regime"].map(order.index).to_numpy() + shift + 0.05 * (place % 5 - 2) / 2
            edge = ("white", 0.4) if above == 2 else (to_rgba(colour, 0.55), 0.9)
            ax.scatter(x, part["share"], facecolor=face, marker=marker, s=size, zorder=above,
                       edgecolor=edge[0], linewidth=edge[1],
                       label=f"{_NAMES[name]}, {'published' if above == 1 else 'of this book'}",
                       )  # fmt: skip
    ax.axhline(1 / 3, color="grey", linewidth=1, linestyle=":")
    ax.annotate("guessing", (len(order) - 0.52, 1 / 3), ha="right", va="top", fontsize=10)
    names = {"both": "pre-trained and\nfine-tuned"}
    ax.set_xticks(range(len(order)), [names.get(name, name) for name in order])
    ax.set(xlim=(-0.5, len(order) - 0.5), xlabel="training", ylabel="share of items solved")
    ax.legend(frameon=False, loc="upper left", fontsize=10)
    return ax
