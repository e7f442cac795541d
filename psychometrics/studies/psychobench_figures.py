"""Figures of self-report: profiles against norms, tiles and bars."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from ..figures import INVERSE, PALETTE, SOURCE, forest
from ..questionnaires import load_questionnaire, questionnaire_names


def norm_profile(comparisons: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Scales as points in standard deviations of the norm, people's middle 68 and 95 % shaded.

    Parameters
    ----------
    comparisons : DataFrame
        As :func:`psychometrics.norms.compare_norms` gives them; several respondents get several
        colours. Filled where the corrected test is significant, hollow elsewhere.
    ax : Axes, optional
        Where to draw; the current axes if not given.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    ax.axvspan(-1.96, 1.96, color="#F0F0F0", zorder=-2)
    ax.axvspan(-1, 1, color="#DDDDDD", zorder=-1)
    table = comparisons.assign(label=scale_labels(comparisons))
    return forest(
        table, "label", "delta", "delta_low", "delta_high", group="respondent_id",
        filled="significant_corrected", ax=ax,
        xlabel="difference from the norm, in its standard deviations",
    )  # fmt: skip


def scale_labels(table: pd.DataFrame) -> list[str]:
    """A label for each row: the questionnaire's short title, the scale, and the group of people.

    Parameters
    ----------
    table : DataFrame
        With ``questionnaire, scale`` and, if there are several norms, ``group``.

    Returns
    -------
    list of str
        A whole sample is not named.

    Examples
    --------
    >>> scale_labels(pd.DataFrame({"questionnaire": ["bsri"], "scale": ["masculine"],
    ...                            "group": ["Workers (Men)"]}))
    ['BSRI, masculine (men)']
    """
    groups = table["group"] if "group" in table else pd.Series("", index=table.index)
    labels = []
    for name, scale, group in zip(table["questionnaire"], table["scale"], groups, strict=True):
        # A user's own is known by its name alone.
        shipped = name in questionnaire_names()
        short = load_questionnaire(name, texts=False).short_title if shipped else name
        who = group.removeprefix("Workers ").strip("()").lower()
        who = "" if who in ("", "whole sample") else f" ({who})"
        labels.append(f"{short}, {scale.replace('_', ' ')}{who}")
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
        rounding decides.
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
        ax.text(x, y, marks, ha="center", va="center", fontsize=8,
                color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(range(len(order_c)), order_c, rotation=35, ha="right", fontsize=8)
    ax.set_yticks(range(len(order_r)), order_r, fontsize=7)
    label = "difference in SD of the norm"
    ax.figure.colorbar(image, ax=ax, label=label, extend="both", shrink=0.6)
    return ax


def variance_bars(table: pd.DataFrame, sources: Sequence[str], ax: Axes | None = None) -> Axes:
    """Shares of variance of each scale as stacked bars.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.reliability.generalisability` gives it.
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
                label=source.replace("_id", ""), height=0.7)  # fmt: skip
        left += width
    ax.set_yticks(y, table["scale"], fontsize=8)
    ax.set(xlabel="share of variance", xlim=(0, 1))
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


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
    ax.set_yticks(y, table.index, fontsize=8)
    ax.set(xlabel="cells of the tables")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return ax
