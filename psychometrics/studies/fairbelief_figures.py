"""Figures of the study of beliefs, and the veil over offensive text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..figures import forest
from ..measures.beliefs import honest_by_group
from .fairbelief import SCORING_NAMES

_SHADES = ("#9ECAE1", "#3182BD", "#08306B")  # small, medium, large: lighter is smaller
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))


def side_by_side(compared: pd.DataFrame) -> pd.DataFrame:
    """Table 1 as the paper prints it, and what the numbers computed here have more.

    Parameters
    ----------
    compared : DataFrame
        As :func:`psychometrics.studies.fairbelief.beside` gives it.

    Returns
    -------
    DataFrame of str
        Models by statistics: the paper's number and, in brackets, ours less the paper's in
        thousandths.
    """
    more = compared["difference"].mul(1000).map("{:+.2f}".format)
    cells = compared["paper"].map("{:.3f}".format) + " (" + more + ")"
    ranks = compared["statistic"] == "rank"
    cells = cells.mask(ranks, compared["paper"].map("{:.0f}".format))
    table = compared.assign(cell=cells).pivot(
        index="respondent_id", columns="statistic", values="cell"
    )
    table = table[list(dict.fromkeys(compared["statistic"]))]
    table = table.loc[compared["respondent_id"].unique()]
    return table.rename_axis(index="model", columns=None)


def _honest_curves(
    curves: pd.DataFrame,
    models: pd.DataFrame,
    by: str,
    axes: Sequence[Axes],
) -> Sequence[Axes]:
    """HONEST by rank, one panel a family: shades are scales, dashes are groups.

    Lines are running means over five ranks.

    Parameters
    ----------
    curves : DataFrame
        As :func:`psychometrics.measures.beliefs.honest_by_group` gives it.
    models : DataFrame
        ``respondent_id, family, scale``.
    by : str
        Column of `curves` whose groups get dashes of their own; at most three.
    axes : sequence of Axes
        One for each family and one more, for the legend.

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
            height = line["honest"].rolling(5, center=True, min_periods=1).mean()
            ax.plot(line["k"], height, color=_SHADES[int(scale) - 1],
                    linestyle=_DASHES[groups.index(group)], linewidth=1.3)  # fmt: skip
        ax.set_title(family, fontsize=11)
        ax.tick_params(labelsize=10)
        ax.set_xticks([1, 50, 100])
        ax.set_ylim(0, frame["honest"].max() * 1.02)
        ax.set_xlim(1, frame["k"].max())
    for ax in axes[: len(families)]:
        ax.set_xlabel("rank k", fontsize=11)
        ax.set_ylabel("HONEST (share)", fontsize=11)
        ax.label_outer()
    legend = axes[len(families)]
    _legend(legend, groups, by)
    place = legend.get_subplotspec()
    for ax in axes[: len(families)]:  # the panel above the legend is the last of its column
        own = ax.get_subplotspec()
        if own.colspan == place.colspan and own.rowspan.stop == place.rowspan.start:
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("rank k", fontsize=11)
    for ax in axes[len(families) + 1 :]:
        ax.axis("off")
    return axes


def curves_by_scoring(
    hits: dict[str, np.ndarray], groups: pd.DataFrame, models: pd.DataFrame, by: str
) -> Figure:
    """:func:`_honest_curves` under several scorings, one block below the other.

    Parameters
    ----------
    hits : dict of ndarray of bool, shape (R, T, K)
        By the block's title.
    groups : DataFrame, T rows
        With the column `by`; "other" is left out.
    models : DataFrame, R rows
        ``respondent_id, family, scale``.
    by : str

    Returns
    -------
    Figure
    """
    fig = plt.figure(figsize=(8, 4.4 * len(hits)), layout="constrained")
    blocks = fig.subfigures(len(hits), 1, squeeze=False).ravel()
    kept = (groups[by] != "other").to_numpy()
    for block, (title, part) in zip(blocks, hits.items(), strict=True):
        curves = honest_by_group(part[:, kept], groups[kept], by, models["respondent_id"])
        axes = block.subplots(2, 4, sharex=True, sharey=True)
        _honest_curves(curves, models, by, axes)
        block.suptitle(title, fontsize=12, fontweight="bold")
    return fig


def gap_forests(gaps: pd.DataFrame, axes: Sequence[Axes]) -> Sequence[Axes]:
    """Gaps of the models, one panel a pair of groups, scorings side by side, over their null.

    Parameters
    ----------
    gaps : DataFrame
        As :func:`psychometrics.studies.fairbelief.gap_table` gives it.
    axes : sequence of Axes
        One for each pair.

    Returns
    -------
    sequence of Axes
        The grey bars are the middle 95 % of gaps when identities are dealt to groups at random;
        the legend stands below the figure.
    """
    gaps = gaps.assign(scoring=gaps["scoring"].map(SCORING_NAMES))
    for ax, (pair, part) in zip(axes, gaps.groupby("pair", sort=False), strict=True):
        forest(part, "respondent_id", "gap", "low", "high", group="scoring", ax=ax)
        names, scorings = (list(dict.fromkeys(part[c])) for c in ("respondent_id", "scoring"))
        step = min(0.16, 0.8 / len(scorings))
        for i, name in enumerate(scorings):
            rows = part[part["scoring"] == name]
            y = len(names) - 1 - rows["respondent_id"].map(names.index)
            y = y + step * ((len(scorings) - 1) / 2 - i)
            ax.hlines(y, rows["null_low"], rows["null_high"], color="#DDDDDD", linewidth=4,
                      zorder=1, label="identities dealt at random" if i == 0 else None)  # fmt: skip
        ax.set_title(pair, fontsize=11)
        ax.set_xlabel("difference in HONEST (share)", fontsize=11)
        ax.tick_params(labelsize=10)
        ax.locator_params(axis="x", nbins=4)
        keys = ax.get_legend_handles_labels()
        ax.get_legend().remove()
        ax.label_outer()
    axes[0].figure.legend(*keys, frameon=False, fontsize=10, loc="outside lower center", ncols=2)
    return axes


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
        for shade, name in zip(_SHADES, ("smallest", "middle", "largest"), strict=True)
    ]
    lines += [
        Line2D([], [], color="#555555", linestyle=dash, label=f"{by}: {group}")
        for dash, group in zip(_DASHES, groups, strict=False)
    ]
    ax.legend(handles=lines, loc="center", frameon=False, fontsize=10)
