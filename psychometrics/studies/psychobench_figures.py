"""Figures of self-report: profiles against norms, tiles and bars."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..figures import GREY, INVERSE, PALETTE, SOURCE, forest
from ..questionnaires import load_questionnaire, psychobench_keys, questionnaire_names

FACETS = {
    "sea": "own emotions appraised",
    "oea": "others' emotions appraised",
    "uoe": "use of emotion",
    "roe": "regulation of emotion",
}
"""The WLEIS's scales in words."""
BANDS = {"#DDDDDD": (1.0, "middle 68 % of people"), "#F0F0F0": (1.96, "middle 95 % of people")}
SIZE = 10
"""Points of the smallest label, on a figure of at most eight inches."""


def norm_profile(comparisons: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Scales as points in standard deviations of the norm, people's middle 68 and 95 % shaded.

    Parameters
    ----------
    comparisons : DataFrame
        As :func:`psychometrics.measures.norms.compare_norms` gives them; several respondents get
        several
        colours. Filled where the corrected test is significant, hollow elsewhere.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    for colour, (half, _) in BANDS.items():
        ax.axvspan(-half, half, color=colour, zorder=-1 - half)
    table = comparisons.assign(label=scale_labels(comparisons))
    forest(
        table, "label", "delta", "delta_low", "delta_high", group="respondent_id",
        filled="significant_corrected", ax=ax,
        xlabel="difference from the norm, in its standard deviations",
    )  # fmt: skip
    ax.tick_params(axis="y", labelsize=SIZE)
    legend = ax.get_legend_handles_labels()[0]
    legend += [_mark("o", GREY, "significant after correction"),
               _mark("o", "white", "not significant")]  # fmt: skip
    legend += [Patch(color=colour, label=name) for colour, (_, name) in BANDS.items()]
    return _above(ax, legend, 2)


def scale_labels(table: pd.DataFrame) -> list[str]:
    """A label for each row: the questionnaire's short title, the scale, and the group of people.

    Parameters
    ----------
    table : DataFrame
        With ``questionnaire, scale`` and, if there are several norms, ``group``.

    Returns
    -------
    list of str
        A whole sample is not named; a scale that is the whole questionnaire is named by what it
        measures.

    Examples
    --------
    >>> scale_labels(pd.DataFrame({"questionnaire": ["bsri"], "scale": ["masculine"],
    ...                            "group": ["Workers (Men)"]}))
    ['BSRI, masculine (men)']
    >>> scale_labels(pd.DataFrame({"questionnaire": ["gse"], "scale": ["overall"]}))
    ['GSE, self-efficacy']
    """
    groups = table["group"] if "group" in table else pd.Series("", index=table.index)
    labels = []
    for name, scale, group in zip(table["questionnaire"], table["scale"], groups, strict=True):
        # A user's own is known by its name alone.
        shipped = name in questionnaire_names()
        short = load_questionnaire(name, texts=False).short_title if shipped else name
        if scale == "overall" and name in psychobench_keys():
            scale = psychobench_keys()[name]["measures"]
        elif name == "wleis":
            scale = FACETS.get(scale, scale)
        label = short if scale == short.lower() else f"{short}, {scale.replace('_', ' ')}"
        who = group.removeprefix("Workers ").strip("()").lower()
        who = "" if who in ("", "whole sample") else f" ({who})"
        labels.append(label + who)
    return labels


def difference_tiles(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Tiles of differences: colour for size and sign, marks for significance.

    Parameters
    ----------
    table : DataFrame
        One row per tile: ``label, respondent_id, delta, significant, significant_corrected,
        settled``.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
        With • where a tile stays significant after correction, ∘ where only before it, and ? where
        rounding decides; a legend says so.
    """
    ax = ax or plt.gca()
    order_r, order_c = list(table["label"].unique()), list(table["respondent_id"].unique())
    wide = table.pivot(index="label", columns="respondent_id", values="delta").loc[order_r, order_c]
    image = ax.imshow(wide, cmap="PuOr_r", norm=TwoSlopeNorm(0, -3, 3), aspect="auto")
    for row in table.itertuples():
        marks = "•" if row.significant_corrected else "∘" if row.significant else ""
        marks += "" if row.settled else "?"
        x, y = order_c.index(row.respondent_id), order_r.index(row.label)
        dark = abs(row.delta) > 1.8
        ax.text(x, y, marks, ha="center", va="center", fontsize=SIZE,
                color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(range(len(order_c)), order_c, rotation=35, ha="right", fontsize=SIZE)
    ax.set_yticks(range(len(order_r)), order_r, fontsize=SIZE)
    label = "difference in SD of the norm"
    ax.figure.colorbar(image, ax=ax, label=label, extend="both", shrink=0.6)
    marks = {"$•$": "significant after correction", "$∘$": "significant only without it",
             "$?$": "decided by rounding"}  # fmt: skip
    return _above(ax, [_mark(mark, "black", name) for mark, name in marks.items()], 1)


def variance_bars(table: pd.DataFrame, sources: Sequence[str], ax: Axes | None = None) -> Axes:
    """Shares of variance of each scale as stacked bars.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.measures.reliability.generalisability` gives it.
    sources : sequence of str
        Its columns of shares, in the order of stacking.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    y = np.arange(len(table))[::-1]
    left = np.zeros(len(table))
    hatches = ("", "//", "..", "xx", "\\\\", "++", "--")
    for i, source in enumerate(sources):
        width = table[source].fillna(0).to_numpy()
        ax.barh(y, width, left=left, color=PALETTE[i % 8], hatch=hatches[i % 7], edgecolor="white",
                label=source.replace("_id", "").replace("×", " × "), height=0.7)  # fmt: skip
        left += width
    ax.set_yticks(y, table["scale"], fontsize=SIZE)
    ax.set(xlabel="share of variance", xlim=(0, 1))
    return _above(ax, ax.get_legend_handles_labels()[0], 3)


def claim_bars(claims: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How many cells of each claim the recomputed test bears out.

    Parameters
    ----------
    claims : DataFrame
        As :func:`psychometrics.studies.psychobench.published_claims` gives them.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    table = claims.groupby("text", sort=False)["agrees"].agg(["sum", "size"])
    y = np.arange(len(table))[::-1]
    ax.barh(y, table["sum"], color=SOURCE, label="the test says so too", height=0.7)
    ax.barh(y, table["size"] - table["sum"], left=table["sum"], color=INVERSE, hatch="//",
            edgecolor="white", label="it does not", height=0.7)  # fmt: skip
    ax.set_yticks(y, [textwrap.fill(text, 46) for text in table.index], fontsize=SIZE)
    ax.set(xlabel="cells of the tables", ylim=(-0.6, len(table) - 0.4))
    return _above(ax, ax.get_legend_handles_labels()[0], 2)


def _mark(marker: str, face: str, name: str) -> Line2D:
    """An entry of a legend that is no line."""
    edge = GREY if face == "white" else face
    return Line2D([], [], linestyle="none", marker=marker, markerfacecolor=face,
                  markeredgecolor=edge, markersize=6, label=name)  # fmt: skip


def _above(ax: Axes, handles: Sequence, columns: int) -> Axes:
    """A legend above the axes, where it hides nothing."""
    ax.legend(handles=handles, frameon=False, fontsize=SIZE, loc="lower left", ncols=columns,
              bbox_to_anchor=(0.0, 1.0), borderaxespad=0.3)  # fmt: skip
    return ax
