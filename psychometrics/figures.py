"""Figures of the book: one function per figure, axes in, axes out."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

SOURCE, INVERSE = "#0072B2", "#D55E00"  # Okabe and Ito's blue and vermilion
POLARITY = {1: ("source terms S+", SOURCE, "o", "-"), -1: ("inverse terms S−", INVERSE, "s", "--")}


def style() -> None:
    """One look for all figures: plain axes, readable at the book's width, safe in print."""
    sns.set_theme(context="notebook", style="ticks", palette="colorblind", font_scale=0.95)
    plt.rcParams |= {
        "figure.dpi": 110,
        "savefig.bbox": "tight",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.constrained_layout.use": True,
    }


def term_heatmap(
    matrix: pd.DataFrame,
    polarity: pd.Series,
    ax: Axes | None = None,
    label: str = "P(entailment)",
    **kwargs,
) -> Axes:
    """Heatmap of T terms by L intensifiers, source terms above the line, inverse terms below.

    Parameters
    ----------
    matrix : DataFrame, shape (T, L)
        Terms as index, intensifiers from least to most as columns.
    polarity : Series, shape (T,)
        +1 for source and −1 for inverse terms, indexed by term.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    label : str
        Name of the quantity, with its unit.
    **kwargs
        Passed on to :func:`seaborn.heatmap`.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    order = polarity.sort_values(ascending=False, kind="stable").index
    sns.heatmap(
        matrix.loc[order],
        ax=ax,
        cmap="cividis",
        annot=True,
        fmt=".2f",
        annot_kws={"size": 8},
        linewidths=0.5,
        cbar_kws={"label": label},
        **kwargs,
    )
    ax.axhline((polarity > 0).sum(), color="white", linewidth=4)
    ax.set(xlabel="intensifier, from least to most", ylabel="construct term")
    ax.set_yticks(ax.get_yticks(), [f"{t}  ({'+' if polarity[t] > 0 else '−'})" for t in order])
    ax.tick_params(axis="y", rotation=0)
    ax.tick_params(axis="x", rotation=35)
    plt.setp(ax.get_xticklabels(), ha="right")
    return ax


def intensifier_trends(
    curves: pd.DataFrame, ax: Axes | None = None, reference: float | None = None
) -> Axes:
    """Mean PSS by intensifier for source and inverse terms, with each mean's interval.

    Parameters
    ----------
    curves : DataFrame
        As :func:`psychometrics.trends.trends` gives it: ``polarity, intensifier, mean, low,
        high``, intensifiers in order.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    reference : float, optional
        Height of the dotted line; by default an even spread over the intensifiers.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    names = list(dict.fromkeys(curves["intensifier"]))
    for polarity, (label, colour, marker, line) in POLARITY.items():
        part = curves[curves["polarity"] == polarity].set_index("intensifier").loc[names]
        x = np.arange(len(names)) + 0.06 * polarity
        error = np.abs(part[["low", "high"]].to_numpy().T - part["mean"].to_numpy())
        ax.errorbar(x, part["mean"], yerr=error, label=label, color=colour, marker=marker,
                    linestyle=line, capsize=2)  # fmt: skip
    height = 1 / len(names) if reference is None else reference
    ax.axhline(height, color="grey", linewidth=1, linestyle=":", zorder=0)
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    ax.set(xlabel="intensifier, from least to most", ylabel="mean PSS (probability)")
    ax.legend(frameon=False)
    return ax


def score_profile(scores: pd.DataFrame, ax: Axes | None = None, label: str = "scale score") -> Axes:
    """Respondents' scores as points with intervals, from lowest to highest.

    Parameters
    ----------
    scores : DataFrame
        ``respondent_id, score, low, high``, one row per respondent (R rows).
    ax : Axes, optional
        Where to draw; the current axes if not given.
    label : str
        Name of the score, with its unit.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    scores = scores.sort_values("score")
    y = np.arange(len(scores))
    error = np.abs(scores[["low", "high"]].to_numpy().T - scores["score"].to_numpy())
    ax.errorbar(scores["score"], y, xerr=error, fmt="o", color=SOURCE, ecolor="#9AA5B1",
                markersize=4, capsize=0)  # fmt: skip
    ax.axvline(scores["score"].mean(), color="grey", linewidth=1, linestyle=":", zorder=0)
    ax.set_yticks(y, scores["respondent_id"], fontsize=7)
    ax.set(xlabel=label, ylabel="respondent")
    return ax


def overview(
    curves: pd.DataFrame, scores: pd.DataFrame, label: str, axes: tuple[Axes, Axes]
) -> tuple[Axes, Axes]:
    """The project in one picture: trends over the intensifiers, and a population's scores.

    Parameters
    ----------
    curves : DataFrame
        As :func:`psychometrics.trends.trends` gives it.
    scores : DataFrame
        As :func:`psychometrics.intervals.scale_intervals` gives it.
    label : str
        Name of the score.
    axes : pair of Axes
        Where to draw.

    Returns
    -------
    pair of Axes
    """
    intensifier_trends(curves, ax=axes[0])
    score_profile(scores, ax=axes[1], label=label)
    axes[0].set_title("answers over the intensifiers")
    axes[1].set_title("scores of a population")
    return axes


def score_scatter(
    scores: pd.DataFrame, x: str, y: str, ax: Axes | None = None, annotate: int = 0
) -> Axes:
    """Scatter of two columns over R respondents, the most extreme ones named.

    Parameters
    ----------
    scores : DataFrame
        One row per respondent, indexed by ``respondent_id``.
    x, y : str
        Columns to draw.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    annotate : int
        How many respondents to name, those farthest from the centre.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    ax.scatter(scores[x], scores[y], color=SOURCE, s=28)
    centred = (scores[[x, y]] - scores[[x, y]].mean()) / scores[[x, y]].std()
    for name in centred.pow(2).sum(axis=1).nlargest(annotate).index:
        ax.annotate(name, scores.loc[name, [x, y]], xytext=(4, 4), textcoords="offset points",
                    fontsize=7)  # fmt: skip
    ax.set(xlabel=x, ylabel=y)
    return ax
