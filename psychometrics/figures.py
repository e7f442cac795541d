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


def item_ranges(
    values: pd.DataFrame, column: str, ax: Axes | None = None, bar: float | None = None
) -> Axes:
    """Mean and range of a column over the prompts of each item.

    Parameters
    ----------
    values : DataFrame
        One row per prompt: ``item_id`` and the column.
    column : str
        What to draw.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    bar : float, optional
        Where to draw a dotted line.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    table = values.groupby("item_id", sort=False)[column].agg(["mean", "min", "max"])[::-1]
    y = np.arange(len(table))
    ax.hlines(y, table["min"], table["max"], color="#9AA5B1")
    ax.plot(table["mean"], y, "o", color=SOURCE, markersize=5)
    if bar is not None:
        ax.axvline(bar, color="grey", linewidth=1, linestyle=":", zorder=0)
    ax.set_yticks(y, table.index, fontsize=8)
    ax.set(xlabel=column, ylabel="item")
    return ax


def silhouette_map(silhouettes: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Silhouettes of I items by R respondents, the least accurate respondents first.

    Parameters
    ----------
    silhouettes : DataFrame
        As :func:`psychometrics.validity.silhouette` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    from .population import population_table

    ax = ax or plt.gca()
    table = silhouettes.pivot(index="item_id", columns="respondent_id", values="silhouette")
    accuracy = population_table().set_index("respondent_id")["accuracy"]
    order = accuracy.reindex(silhouettes["respondent_id"].unique()).sort_values().index
    sns.heatmap(
        table.loc[silhouettes["item_id"].unique(), order],
        ax=ax, cmap="cividis", vmin=-1, vmax=1, xticklabels=True, yticklabels=True,
        cbar_kws={"label": "silhouette coefficient"},
    )  # fmt: skip
    ax.tick_params(labelsize=7)
    ax.set(xlabel="respondent, from the least to the most accurate", ylabel="item")
    return ax


def specification_curve(
    worlds: pd.DataFrame,
    ax: Axes | None = None,
    reference: float | None = None,
    chosen: dict[str, object] | None = None,
) -> Axes:
    """Correlations under every specification, sorted, with one of them marked.

    Parameters
    ----------
    worlds : DataFrame
        Rows of one pair, as :func:`psychometrics.validity.multiverse` gives them.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    reference : float, optional
        A published value.
    chosen : dict, optional
        The specification to mark.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    ordered = worlds.sort_values("r").reset_index(drop=True)
    ax.plot(ordered.index + 1, ordered["r"], ".", color=SOURCE, markersize=4)
    if chosen is not None:
        marked = ordered[(ordered[list(chosen)] == pd.Series(chosen)).all(axis=1)]
        ax.plot(marked.index + 1, marked["r"], "o", color=INVERSE, markersize=8, zorder=3)
    if reference is not None:
        ax.axhline(reference, color="black", linewidth=1, linestyle="--", zorder=0)
    ax.axhline(0, color="grey", linewidth=1, linestyle=":", zorder=0)
    ax.set(xlabel="specification, from the lowest", ylabel="Pearson's r", ylim=(-1.03, 1.03))
    return ax


ARM_STYLES = {
    "depressive": ("#0072B2", "-"),
    "coherence": ("#009E73", "--"),
    "negative": ("#D55E00", "-."),
    "neutral": ("#666666", ":"),
}


def trajectory(scores: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Change of a scale's score since epoch 0, by arm, with single respondents as thin lines.

    Parameters
    ----------
    scores : DataFrame
        Rows of one scale, as :func:`psychometrics.interventions.trajectories` gives them.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    for arm, part in scores.groupby("arm", sort=False):
        colour, line = ARM_STYLES.get(arm, ("#CC79A7", "-"))
        wide = part.pivot(index="epoch", columns="respondent_id", values="score")
        change = wide - wide.iloc[0]
        ax.plot(change.index, change, color=colour, linewidth=0.5, alpha=0.5)
        ax.plot(change.index, change.mean(axis=1), color=colour, linestyle=line, marker="o",
                markersize=4, label=arm)  # fmt: skip
    ax.axhline(0, color="grey", linewidth=1, zorder=0)
    ax.set(xlabel="epoch of adaptation", ylabel="change of mean item score")
    ax.legend(frameon=False)
    return ax


def attribution_pairs(before: pd.DataFrame, after: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Token attributions of one prompt before and after, joined by lines.

    Parameters
    ----------
    before, after : DataFrame
        As :func:`psychometrics.interventions.attributions` gives them, of the same tokens.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    y = np.arange(len(before))[::-1]
    ax.hlines(y, before["attribution"], after["attribution"], color="#9AA5B1", zorder=1)
    ax.scatter(before["attribution"], y, color=SOURCE, marker="o", label="before", zorder=2)
    ax.scatter(after["attribution"], y, color=INVERSE, marker="s", label="after", zorder=2)
    ax.axvline(0, color="grey", linewidth=1, zorder=0)
    ax.set_yticks(y, before["token"])
    ax.set(xlabel="contribution to log P(entailment)", ylabel="token")
    ax.legend(frameon=False)
    return ax
