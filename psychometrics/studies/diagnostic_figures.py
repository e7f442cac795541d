"""Figures of item analysis: one function per figure, axes in, axes out."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from .. import irt
from ..figures import INVERSE, SOURCE

COLOURS = {"transformers": (SOURCE, "o"), "lstms": (INVERSE, "s")}
NAMES = {"transformers": "transformers", "lstms": "LSTMs"}
ETS_COLOURS = {"A": "#9AA5B1", "B": "#E69F00", "C": "#D55E00"}


def difficulty_scatter(people: pd.Series, models: pd.Series, ax: Axes | None = None) -> Axes:
    """Share of models against share of people who solved each item, shape (I,) each."""
    ax = ax or plt.gca()
    ax.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle=":", zorder=0)
    ax.scatter(people, models.loc[people.index], color=SOURCE, s=22)
    ax.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    ax.set(xlabel="share of people right", ylabel="share of models right")
    return ax


def correlations_with_null(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Correlations per category over the range that guessing gives.

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
    ax.barh(y, table["null_high"] - table["null_low"], left=table["null_low"], height=0.7,
            color="#DDE3E9", label="guessing, 95 % of draws")  # fmt: skip
    for name, (colour, marker) in COLOURS.items():
        ax.scatter(table[name], y, color=colour, marker=marker, label=NAMES[name], zorder=3)
    ax.axvline(0, color="grey", linewidth=1)
    ax.set_yticks(y, table.index)
    ax.invert_yaxis()
    ax.set(xlim=(-1, 1), xlabel="correlation with people", ylabel="category")
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncol=3)
    return ax


def change_heatmap(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Change in correlation by category (rows) and architecture (columns)."""
    ax = ax or plt.gca()
    sns.heatmap(table, ax=ax, cmap="RdBu_r", vmin=-1, vmax=1, annot=True, fmt=".2f",
                annot_kws={"size": 8}, linewidths=0.5,
                cbar_kws={"label": "change in Spearman correlation"})  # fmt: skip
    ax.set(xlabel="architecture", ylabel="category")
    ax.tick_params(axis="y", rotation=0)
    ax.tick_params(axis="x", rotation=35)
    return ax


def extreme_lines(curve: pd.DataFrame, published: float, ax: Axes | None = None) -> Axes:
    """Correlation against the place given to items without a finite difficulty.

    Parameters
    ----------
    curve : DataFrame
        One population's part of what :func:`psychometrics.studies.diagnostic.extreme_curve` gives.
    published : float
        Where the dotted line stands.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    styles = ["-", "--", "-.", ":"]
    for place, (category, part) in enumerate(curve.groupby("category", sort=False)):
        ax.plot(part["extreme"], part["correlation"], linestyle=styles[place % 4], label=category)
    ax.axvline(published, color="grey", linewidth=1, linestyle=":")
    ax.set(xlabel="place of infinite difficulties (logits)", ylabel="Pearson correlation")
    return ax


def characteristic_curves(
    parameters: pd.DataFrame, ax: Axes | None = None, limit: float = 4.0
) -> Axes:
    """Item characteristic curves; falling ones, where ability lowers the chance, in vermilion."""
    ax = ax or plt.gca()
    theta = np.linspace(-limit, limit, 161)
    curves = irt.probability(theta, parameters)
    for place, slope in enumerate(parameters["discrimination"].fillna(1)):
        falling = slope < 0
        ax.plot(theta, curves[:, place], color=INVERSE if falling else SOURCE,
                linestyle="--" if falling else "-", linewidth=1.2, alpha=0.85)  # fmt: skip
    ax.set(ylim=(0, 1), xlabel="ability (SD of the population)", ylabel="probability of solving it")
    return ax


def information_curves(
    fits: dict[str, pd.DataFrame], ax: Axes | None = None, limit: float = 4.0
) -> Axes:
    """Sum of the items' information over ability, one curve per named set of parameters."""
    ax = ax or plt.gca()
    theta = np.linspace(-limit, limit, 161)
    for place, (name, parameters) in enumerate(fits.items()):
        total = irt.information(theta, parameters).sum(axis=1)
        ax.plot(theta, total, label=name, linestyle=["-", "--", "-.", ":"][place % 4])
    ax.set(xlabel="ability (SD of the population)", ylabel="information (1 / squared error)")
    ax.legend(frameon=False)
    return ax


def wright_map(
    theta: pd.Series,
    difficulties: pd.Series,
    ax: Axes | None = None,
    limit: float = 4.0,
    labels: dict | None = None,
) -> Axes:
    """Abilities of respondents to the left, difficulties of items to the right, on one scale.

    Parameters
    ----------
    theta : Series, shape (R,)
        Abilities.
    difficulties : Series, shape (I,)
        On the same scale, infinite ones drawn as triangles at the edge.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    limit : float
        Edge of the scale, in logits.
    labels : dict, optional
        Names of the items, by index.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    bins = np.linspace(-limit, limit, 33)
    counts, edges = np.histogram(theta.clip(-limit, limit), bins=bins)
    ax.barh(edges[:-1], -counts / counts.max(), height=np.diff(edges), align="edge",
            color="#9AA5B1", edgecolor="white", linewidth=0.3)  # fmt: skip
    ordered = difficulties.sort_values().clip(-limit, limit)
    columns = 0.1 + 0.18 * (np.arange(len(ordered)) % 5)
    inside = ordered.abs() < limit
    ax.scatter(columns[inside], ordered[inside], color=SOURCE, s=14)
    ax.scatter(columns[~inside], ordered[~inside], color=INVERSE, s=26, marker="^")
    for x, (item, y) in zip(columns, ordered.items(), strict=True):
        ax.annotate((labels or {}).get(item, str(item)), (x, y), xytext=(4, -3),
                    textcoords="offset points", fontsize=7)  # fmt: skip
    ax.axvline(0, color="black", linewidth=1)
    ax.set(xlim=(-1.05, 1.05), ylim=(-limit - 0.3, limit + 0.3), ylabel="logits")
    ax.set_xticks([-0.5, 0.5], ["respondents", "items"])
    return ax


def dif_plot(table: pd.DataFrame, ax: Axes | None = None, limit: float = 8.0) -> Axes:
    """MH delta of every item by category; beyond the dotted lines it may be large.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.studies.diagnostic.people_dif` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    limit : float
        Infinite and larger deltas are drawn at this edge.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    categories = list(dict.fromkeys(table["category"]))
    known = table[table["delta"].notna()]
    place = known["category"].map(categories.index).to_numpy()
    place = place + 0.3 * (known.groupby("category").cumcount().to_numpy() % 5 - 2) / 2
    for name, colour in ETS_COLOURS.items():
        chosen = (known["ets"] == name).to_numpy()
        ax.scatter(known["delta"].clip(-limit, limit)[chosen], place[chosen], s=24, color=colour,
                   marker={"A": "o", "B": "s", "C": "D"}[name], label=name)  # fmt: skip
    for x in (-1.5, 1.5):
        ax.axvline(x, color="grey", linewidth=1, linestyle=":")
    ax.axvline(0, color="grey", linewidth=1)
    ax.set_yticks(range(len(categories)), categories)
    ax.invert_yaxis()
    ax.set(xlabel="MH delta (below 0: harder for the focal group)", ylabel="category")
    ax.legend(frameon=False, title="ETS class", loc="center left", bbox_to_anchor=(1, 0.5))
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
    ax.plot(chosen["size"], chosen["people"], color="#009E73", marker="^", markersize=4,
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
    """Share of items solved, by training regime: published models in grey, new ones in colour.

    Parameters
    ----------
    models, answers : DataFrame
        As :func:`psychometrics.studies.diagnostic.models` and ``model_answers`` give them.
    live : DataFrame
        As :func:`psychometrics.studies.diagnostic.live_table` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    from .diagnostic import REGIMES, regimes

    ax = ax or plt.gca()
    order = list(REGIMES.values())
    published = pd.DataFrame(
        {
            "population": models["population"],
            "regime": regimes(models),
            "share": answers.mean(axis=1),
        }
    )
    for shift, (name, (colour, marker)) in zip((-0.16, 0.16), COLOURS.items(), strict=True):
        for table, face, size, above in ((published, "#C4CBD3", 20, 1), (live, colour, 34, 2)):
            part = table[table["population"] == name]
            place = part.groupby("regime").cumcount().to_numpy()
            x = part["regime"].map(order.index).to_numpy() + shift + 0.05 * (place % 5 - 2) / 2
            ax.scatter(x, part["share"], color=face, marker=marker, s=size, zorder=above,
                       edgecolor="white", linewidth=0.4,
                       label=f"{NAMES[name]}, {'published' if above == 1 else 'of this book'}",
                       )  # fmt: skip
    ax.axhline(1 / 3, color="grey", linewidth=1, linestyle=":")
    ax.set_xticks(range(len(order)), order)
    ax.set(xlim=(-0.5, len(order) - 0.5), xlabel="training", ylabel="share of items solved")
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    return ax
