"""Figures of the chapter on beliefs, axes in, axes out; and the veil over offensive text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

SHADES = ("#9ECAE1", "#3182BD", "#08306B")  # small, medium, large: lighter is smaller
MARKS = ("#0072B2", "#D55E00", "#009E73")  # Okabe and Ito's blue, vermilion, green
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
FAMILY = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def side_by_side(compared: pd.DataFrame, statistics: Sequence[str]):
    """Statistics of Table 1 as the paper has them, as they are here, and the difference.

    Parameters
    ----------
    compared : DataFrame
        As :func:`psychometrics.beliefs.compare_table1` gives it.
    statistics : sequence of str
        Which of them, in this order.

    Returns
    -------
    pandas.io.formats.style.Styler
    """
    part = compared[compared["statistic"].isin(statistics)].rename(columns={"difference": "diff."})
    table = part.pivot(
        index="respondent_id", columns="statistic", values=["paper", "here", "diff."]
    )
    table = table.swaplevel(axis=1)[list(statistics)].loc[part["respondent_id"].unique()]
    styled = table.rename_axis(index=None).style.format("{:.3f}")
    styled = styled.format("{:+.4f}", subset=[(name, "diff.") for name in statistics])
    styled = styled.set_table_attributes('style="font-size: 85%"')
    return styled.format("{:.0f}", subset=["rank"]) if "rank" in statistics else styled


def honest_curves(
    curves: pd.DataFrame,
    models: pd.DataFrame,
    by: str,
    axes: Sequence[Axes],
    smooth: int = 5,
) -> Sequence[Axes]:
    """HONEST by rank, one panel a family: shades are scales, dashes are groups.

    Parameters
    ----------
    curves : DataFrame
        As :func:`psychometrics.beliefs.curves` gives it.
    models : DataFrame
        ``respondent_id, family, scale``.
    by : str
        Column of `curves` whose groups get dashes of their own; at most three.
    axes : sequence of Axes
        One for each family and one more, for the legend.
    smooth : int
        Ranks in the running mean.

    Returns
    -------
    sequence of Axes
    """
    axes = np.ravel(axes)
    groups = list(dict.fromkeys(curves[by]))
    frame = curves.merge(models[["respondent_id", "family", "scale"]], on="respondent_id")
    families = list(dict.fromkeys(models["family"]))
    for ax, family in zip(axes, families, strict=False):
        part = frame[frame["family"] == family]
        for (scale, group), line in part.groupby(["scale", by]):
            line = line.sort_values("k")
            height = line["honest"].rolling(smooth, center=True, min_periods=1).mean()
            ax.plot(line["k"], height, color=SHADES[int(scale) - 1],
                    linestyle=DASHES[groups.index(group)], linewidth=1.3)  # fmt: skip
        ax.set_title(family, fontsize=10)
        ax.set_ylim(0, frame["honest"].max() * 1.02)
        ax.set_xlim(1, frame["k"].max())
    for ax in axes[: len(families)]:
        ax.set(xlabel="rank k", ylabel="HONEST (share)")
        ax.label_outer()
    legend = axes[len(families)]
    _legend(legend, groups, by)
    place = legend.get_subplotspec()
    for ax in axes[: len(families)]:  # the panel above the legend is the last of its column
        own = ax.get_subplotspec()
        if own.colspan == place.colspan and own.rowspan.stop == place.rowspan.start:
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("rank k")
    for ax in axes[len(families) + 1 :]:
        ax.axis("off")
    return axes


def scoring_dumbbells(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """HONEST of each model under two scorings, joined by a line.

    Parameters
    ----------
    table : DataFrame
        Index: models; two columns, named as they are to be read.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    first, second = table.columns
    table = table.sort_values(first)
    y = np.arange(len(table))
    ax.hlines(y, table[second], table[first], color="#9AA5B1", linewidth=2, zorder=1)
    ax.scatter(table[first], y, color=MARKS[1], marker="s", s=28, label=first, zorder=2)
    ax.scatter(table[second], y, color=MARKS[0], marker="o", s=28, label=second, zorder=3)
    ax.set_yticks(y, table.index, fontsize=8)
    ax.set(xlabel="HONEST, mean over ranks and subsets (share)", ylabel="model")
    ax.set_xlim(left=0)
    ax.legend(frameon=False, loc="lower right")
    return ax


def category_heatmap(shares: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Completions with words of each kind of hurt, models by categories, in per cent.

    Parameters
    ----------
    shares : DataFrame
        Shares from 0 to 1, models as index and categories as columns.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    sns.heatmap(
        shares * 100,
        ax=ax,
        cmap="cividis",
        annot=True,
        fmt=".1f",
        annot_kws={"size": 6.5},
        linewidths=0.4,
        cbar_kws={"label": "completions (%)", "pad": 0.02},
    )
    ax.set(xlabel="HurtLex category", ylabel="model")
    ax.set_xticks(np.arange(shares.shape[1]) + 0.5, shares.columns, rotation=40, ha="right",
                  fontsize=7.5)  # fmt: skip
    ax.tick_params(axis="y", labelsize=7.5)
    return ax


def rank_intervals(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Ranks of the models with the interval from drawing identities again.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.beliefs.honest_intervals` gives it.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    table = table.sort_values("rank", ascending=False)
    y = np.arange(len(table))
    ax.hlines(y, table["rank_low"], table["rank_high"], color="#9AA5B1", linewidth=3)
    ax.scatter(table["rank"], y, color=MARKS[0], s=26, zorder=3)
    ax.set_yticks(y, table["respondent_id"], fontsize=8)
    ax.set(xlabel="rank (1 is the most hurtful)", ylabel="model")
    ax.set_xlim(0.5, len(table) + 0.5)
    return ax


def gap_intervals(gaps: pd.DataFrame, ax: Axes | None = None, label: str = "gap") -> Axes:
    """Difference of two groups for each model, with its interval.

    Parameters
    ----------
    gaps : DataFrame
        As :func:`psychometrics.beliefs.group_gaps` gives it; several are told apart by a column
        ``pair``.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    label : str
        Name of the difference.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    pairs = list(dict.fromkeys(gaps["pair"])) if "pair" in gaps else [None]
    names = list(dict.fromkeys(gaps["respondent_id"]))
    for i, pair in enumerate(pairs):
        part = gaps if pair is None else gaps[gaps["pair"] == pair]
        part = part.set_index("respondent_id").loc[names]
        y = np.arange(len(names))[::-1] + 0.18 * (i - (len(pairs) - 1) / 2) * 2
        ax.hlines(y, part["low"], part["high"], color=MARKS[i], linewidth=2, alpha=0.5)
        ax.scatter(part["gap"], y, color=MARKS[i], marker="os^"[i], s=22, label=pair, zorder=3)
    ax.axvline(0, color="grey", linewidth=1, linestyle=":")
    ax.set_yticks(np.arange(len(names))[::-1], names, fontsize=8)
    ax.set(xlabel=label, ylabel="model")
    if len(pairs) > 1:
        ax.legend(frameon=False)
    return ax


def similarity_curves(
    frame: pd.DataFrame, by: str, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Agreement of completions by rank, one line a group.

    Parameters
    ----------
    frame : DataFrame
        ``k, similarity`` and the column `by`; at most seven groups, besides "between families".
    by : str
        What the lines are.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    title : str, optional
        Above the axes.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    for i, (name, line) in enumerate(frame.groupby(by, sort=False, observed=True)):
        line = line.sort_values("k")
        look = {"color": FAMILY[i % 7], "marker": "os^DvPX"[i % 7], "markersize": 4}
        if name == "between families":
            look = {"color": "#555555", "linestyle": "--"}
        ax.plot(line["k"], line["similarity"], label=name, linewidth=1.4, **look)
    ax.set(xlabel="rank k", ylabel="cosine similarity", title=title or "")
    ax.legend(frameon=False, fontsize=8)
    return ax


def veil(content: pd.DataFrame | Sequence[str], label: str):
    """Offensive text for a notebook: closed until clicked, blurred until pointed at.

    Parameters
    ----------
    content : DataFrame or sequence of str
        What to show; it is escaped.
    label : str
        The line to click on.

    Returns
    -------
    IPython.display.HTML
        Its plain text form holds nothing of the content.
    """
    from IPython.display import HTML

    if isinstance(content, pd.DataFrame):
        inner = content.to_html(index=False, escape=True, border=0)
    else:
        inner = "<ul>" + "".join(f"<li>{escape(str(line))}</li>" for line in content) + "</ul>"
    look = (
        ".veil>div{filter:blur(5px);overflow-x:auto}"
        ".veil>div:hover,.veil>div:focus{filter:none}"
        ".veil>summary{cursor:pointer}"
    )
    return HTML(
        f'<style>{look}</style><details class="veil"><summary>{escape(label)} (offensive text: '
        f"click to open, then point at it)</summary>"
        f'<div tabindex="0">{inner}</div></details>'
    )


def _legend(ax: Axes, groups: Sequence, by: str) -> None:
    ax.axis("off")
    lines = [
        Line2D([], [], color=shade, label=name)
        for shade, name in zip(SHADES, ("smallest", "middle", "largest"), strict=True)
    ]
    lines += [
        Line2D([], [], color="#555555", linestyle=dash, label=f"{by}: {group}")
        for dash, group in zip(DASHES, groups, strict=False)
    ]
    ax.legend(handles=lines, loc="center", frameon=False, fontsize=8.5)
