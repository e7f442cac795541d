"""Figures on ways of asking."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..figures import INVERSE, PALETTE, SOURCE


def recovery_scatter(
    scores: pd.DataFrame, traits: pd.DataFrame, scale: str, ax: Axes | None = None
) -> Axes:
    """Scores of simulated respondents against the traits that made them.

    Parameters
    ----------
    scores : DataFrame
        Of :func:`psychometrics.measures.scoring.scale_scores`.
    traits : DataFrame, shape (respondents, scales)
    scale : str
        Which scale.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    part = scores[scores["scale"] == scale]
    score = part.groupby("respondent_id")["score"].mean()
    both = pd.concat([traits[scale].rename("trait"), score], axis=1, join="inner").dropna()
    ax.scatter(both["trait"], both["score"], color=SOURCE, s=16, alpha=0.7)
    slope, start = np.polyfit(both["trait"], both["score"], 1)
    along = np.linspace(both["trait"].min(), both["trait"].max(), 200)
    line = start + slope * along
    inside = (line >= both["score"].min()) & (line <= both["score"].max())
    ax.plot(along[inside], line[inside], color="grey", linewidth=1)
    ax.set(xlabel="true trait (standard deviations)", ylabel=f"{part['title'].iloc[0]} score")
    return ax


def share_bars(table: pd.DataFrame, x: str, group: str, ax: Axes | None = None) -> Axes:
    """Mean probability of places or options, grouped, with a line where an even share lies.

    Parameters
    ----------
    table : DataFrame
        ``probability`` and the two columns named.
    x, group : str
        What stands on the axis, and what is told apart by colour and hatching.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    wide = table.pivot_table(index=x, columns=group, values="probability", sort=False)
    width = 0.8 / len(wide.columns)
    for i, name in enumerate(wide.columns):
        places = np.arange(len(wide)) + (i - (len(wide.columns) - 1) / 2) * width
        hatch = ("", "//", "..", "xx")[i % 4]
        ax.bar(places, wide[name], width, label=name, color=PALETTE[i % 8], hatch=hatch, ec="white")
    ax.axhline(1 / len(wide), color="grey", linestyle=":", linewidth=1)
    ax.set_xticks(np.arange(len(wide)), wide.index)
    ax.set(xlabel=x, ylabel="mean probability")
    ax.legend(frameon=False)
    return ax


def style_dots(styles: pd.DataFrame, way: str, ax: Axes | None = None) -> Axes:
    """Acquiescence of each respondent in each way of asking, with the mean.

    Parameters
    ----------
    styles : DataFrame
        Of :func:`psychometrics.measures.styles.response_styles`.
    way : str
        The column that tells ways apart.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    names = list(styles[way].unique())[::-1]
    for y, name in enumerate(names):
        values = styles.loc[styles[way] == name, "acquiescence"]
        first = y == len(names) - 1
        ax.plot(values, np.full(len(values), y), "o", color=SOURCE, alpha=0.5, markersize=6,
                label="a respondent" if first else None)  # fmt: skip
        ax.plot(values.mean(), y, "|", color=INVERSE, markersize=18, markeredgewidth=2.5,
                label="their mean" if first else None)  # fmt: skip
    ax.axvline(0, color="grey", linestyle=":", linewidth=1)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set(xlabel="acquiescence (−1 disagrees with all, 1 agrees with all)", ylabel="")
    ax.set_xlim(-1.05, 1.05)
    ax.legend(frameon=False, fontsize=10)
    return ax
