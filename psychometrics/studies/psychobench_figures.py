"""Figures of self-report: profiles against norms, forests, tiles and the two-axis compass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.ticker import MaxNLocator

from ..exceptions import ParameterError
from ..figures import INVERSE, SOURCE
from ..questionnaires import load_questionnaire

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P")


def norm_profile(
    comparisons: pd.DataFrame, ax: Axes | None = None, labels: Sequence[str] | None = None
) -> Axes:
    """Scales as points in standard deviations of the norm, people's middle 68 and 95 % shaded.

    Parameters
    ----------
    comparisons : DataFrame
        As :func:`psychometrics.norms.compare_norms` gives them; several respondents get several
        colours. Filled where the corrected test is significant, hollow elsewhere.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    labels : sequence of str, optional
        One for each row of a respondent; by default :func:`scale_labels`.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    ax.axvspan(-1.96, 1.96, color="#F0F0F0", zorder=0)
    ax.axvspan(-1, 1, color="#DDDDDD", zorder=0)
    ax.axvline(0, color="grey", linewidth=1, zorder=1)
    names = list(comparisons["respondent_id"].unique())
    for i, name in enumerate(names):
        part = comparisons[comparisons["respondent_id"] == name].reset_index(drop=True)
        y = len(part) - 1 - np.arange(len(part)) + (len(names) - 1) / 2 * 0.16 - i * 0.16
        colour, marker = PALETTE[i % 6], MARKERS[i % 6]
        error = np.abs(part[["delta_low", "delta_high"]].to_numpy().T - part["delta"].to_numpy())
        ax.errorbar(part["delta"], y, xerr=error, fmt="none", ecolor=colour, alpha=0.5, zorder=2)
        face = np.where(part["significant_corrected"], colour, "white")
        ax.scatter(part["delta"], y, marker=marker, c=face, edgecolors=colour, s=30, zorder=3)
        ax.scatter([], [], marker=marker, color=colour, label=name)
    rows = comparisons[comparisons["respondent_id"] == names[0]]
    labels = scale_labels(rows) if labels is None else labels
    ax.set_yticks(np.arange(len(rows))[::-1], labels, fontsize=8)
    ax.set(xlabel="difference from the norm, in its standard deviations", ylim=(-0.7, len(rows)))
    if len(names) > 1:
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


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
        short = load_questionnaire(name, texts=False).short_title
        who = group.removeprefix("Workers ").strip("()").lower()
        who = "" if who in ("", "whole sample") else f" ({who})"
        labels.append(f"{short}, {scale.replace('_', ' ')}{who}")
    return labels


def radar(
    profiles: Mapping[str, Sequence[float]],
    labels: Sequence[str],
    span: tuple[float, float],
    ax: Axes | None = None,
    band: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Axes:
    """Profiles on K spokes, all with one span; a band for people.

    The area of a radar depends on the order of its spokes and means nothing; only the distances
    along each spoke can be read.

    Parameters
    ----------
    profiles : mapping of str to sequence of K numbers
        Lines, by name.
    labels : sequence of K str
        Names of the spokes.
    span : pair of float
        Centre and rim.
    ax : Axes, optional
        Polar axes.
    band : pair of sequences of K numbers, optional
        Lower and upper edge of the shaded band.

    Returns
    -------
    Axes

    Raises
    ------
    ParameterError
        The axes are not polar, or a profile has another length than the labels.
    """
    ax = ax or plt.subplot(projection="polar")
    if ax.name != "polar":
        raise ParameterError("A radar needs polar axes: plt.subplots(subplot_kw={'polar': True}).")
    angles = np.linspace(0, 2 * np.pi, len(labels), endpoint=False)
    closed = np.r_[angles, angles[0]]
    ax.set_theta_offset(np.pi / 2)
    ax.set_theta_direction(-1)
    if band is not None:
        low, high = (np.resize(np.asarray(edge, float), len(labels) + 1) for edge in band)
        ax.fill_between(closed, low, high, color="#BBBBBB", alpha=0.5, label="people, mean ± 1 SD",
                        linewidth=0)  # fmt: skip
    for i, (name, values) in enumerate(profiles.items()):
        if len(values) != len(labels):
            raise ParameterError(f"'{name}' has {len(values)} values for {len(labels)} spokes.")
        values = np.resize(np.asarray(values, float), len(labels) + 1)  # back to the start
        ax.plot(closed, values, color=PALETTE[i % 6], marker=MARKERS[i % 6], markersize=4,
                linewidth=1.5, label=name, linestyle=("-", "--", "-.", ":")[i % 4])  # fmt: skip
    ax.set_ylim(*span)
    ax.set_xticks(angles, labels, fontsize=8)
    ax.tick_params(axis="x", pad=12)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.tick_params(axis="y", labelsize=7)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.2, 1.1))
    return ax


def forest(
    table: pd.DataFrame,
    value: str,
    low: str,
    high: str,
    labels: Sequence[str],
    ax: Axes | None = None,
    xlabel: str = "effect",
    reference: float = 0.0,
) -> Axes:
    """Effects as points with intervals, first row on top; filled where the reference is left out.

    Parameters
    ----------
    table : DataFrame
        One row per effect.
    value, low, high : str
        Columns of the effect and its interval.
    labels : sequence of str
        One per row.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    xlabel : str
        Name of the effect, with its unit.
    reference : float
        Where the line stands.

    Returns
    -------
    Axes
    """
    ax = ax or plt.gca()
    y = np.arange(len(table))[::-1]
    x = table[value].to_numpy()
    error = np.abs(table[[low, high]].to_numpy().T - x)
    outside = (table[low] > reference) | (table[high] < reference)
    ax.axvline(reference, color="grey", linewidth=1, zorder=0)
    ax.errorbar(x, y, xerr=error, fmt="none", ecolor="#9AA5B1", zorder=1)
    ax.scatter(x, y, c=np.where(outside, SOURCE, "white"), edgecolors=SOURCE, s=30, zorder=2)
    ax.set_yticks(y, labels, fontsize=8)
    ax.set(xlabel=xlabel, ylim=(-0.7, len(table) - 0.3))
    return ax


def difference_tiles(
    table: pd.DataFrame,
    rows: str = "label",
    columns: str = "respondent_id",
    value: str = "delta",
    ax: Axes | None = None,
    label: str = "difference in SD of the norm",
    limit: float = 3.0,
) -> Axes:
    """Tiles of differences: colour for size and sign, marks for significance.

    Parameters
    ----------
    table : DataFrame
        One row per tile, with ``significant, significant_corrected, settled``.
    rows, columns, value : str
        Columns that place a tile, and its number.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    label : str
        Name of the number.
    limit : float
        Where the colours end.

    Returns
    -------
    Axes
        With • where a tile stays significant after correction, ∘ where only before it, and ? where
        rounding decides.
    """
    ax = ax or plt.gca()
    order_r, order_c = list(table[rows].unique()), list(table[columns].unique())
    wide = table.pivot(index=rows, columns=columns, values=value).loc[order_r, order_c]
    image = ax.imshow(wide, cmap="PuOr_r", norm=TwoSlopeNorm(0, -limit, limit), aspect="auto")
    for row in table.itertuples():
        marks = "•" if row.significant_corrected else "∘" if row.significant else ""
        marks += "" if row.settled else "?"
        x, y = order_c.index(getattr(row, columns)), order_r.index(getattr(row, rows))
        dark = abs(getattr(row, value)) > 0.6 * limit
        ax.text(x, y, marks, ha="center", va="center", fontsize=8,
                color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(range(len(order_c)), order_c, rotation=35, ha="right", fontsize=8)
    ax.set_yticks(range(len(order_r)), order_r, fontsize=7)
    ax.figure.colorbar(image, ax=ax, label=label, extend="both", shrink=0.6)
    return ax


def compass(
    scores: pd.DataFrame,
    x: str = "economic",
    y: str = "social",
    ax: Axes | None = None,
    label: str = "respondent_id",
    ends: Mapping[str, tuple[str, str]] | None = None,
) -> Axes:
    """Respondents on two categories, with the spread of each if its answers were drawn.

    Parameters
    ----------
    scores : DataFrame
        As :func:`psychometrics.categories.category_scores` gives them.
    x, y : str
        The two categories.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    label : str
        The column that names a point; points of one name share colour and marker.
    ends : mapping, optional
        What either end of a category is called, such as ``{"economic": ("left", "right")}``.

    Returns
    -------
    Axes

    Raises
    ------
    ParameterError
        A category is not among the scores.
    """
    ax = ax or plt.gca()
    known = list(scores["category"].unique())
    for name in (x, y):
        if name not in known:
            raise ParameterError(f"There is no category '{name}'; there are {', '.join(known)}.")
    keys = [c for c in ("respondent_id", "questionnaire", "mode", "run", label) if c in scores]
    keys = list(dict.fromkeys(keys))
    wide = scores.pivot(index=keys, columns="category", values=["score", "sd"]).reset_index()
    ax.axhline(0, color="grey", linewidth=1, zorder=0)
    ax.axvline(0, color="grey", linewidth=1, zorder=0)
    for i, (name, part) in enumerate(wide.groupby(label, sort=False)):
        colour = PALETTE[i % 6]
        ax.errorbar(part["score", x], part["score", y], xerr=part["sd", x], yerr=part["sd", y],
                    fmt=MARKERS[i % 6], color=colour, ecolor=colour, elinewidth=0.8, alpha=0.8,
                    markersize=6, label=name)  # fmt: skip
    limits = scores.groupby("category")[["low", "high"]].first()
    ends = ends or {}
    names = {n: f"{ends[n][0]}  ←  {n}  →  {ends[n][1]}" if n in ends else n for n in (x, y)}
    ax.set(xlim=tuple(limits.loc[x]), ylim=tuple(limits.loc[y]), xlabel=names[x], ylabel=names[y])
    ax.set_aspect("equal" if np.ptp(limits.loc[x]) == np.ptp(limits.loc[y]) else "auto")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def variance_bars(
    table: pd.DataFrame, sources: Sequence[str], ax: Axes | None = None, label: str = "scale"
) -> Axes:
    """Shares of variance of each scale as stacked bars.

    Parameters
    ----------
    table : DataFrame
        As :func:`psychometrics.agreement.generalisability_table` gives it.
    sources : sequence of str
        Its columns of shares, in the order of stacking.
    ax : Axes, optional
        Where to draw; the current axes if not given.
    label : str
        The column that names a bar.

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
        ax.barh(y, width, left=left, color=PALETTE[i % 6], hatch=hatches[i % 7], edgecolor="white",
                label=source.replace("_id", ""), height=0.7)  # fmt: skip
        left += width
    ax.set_yticks(y, table[label], fontsize=8)
    ax.set(xlabel="share of variance", xlim=(0, 1))
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def claim_bars(claims: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How many cells of each claim the recomputed test bears out.

    Parameters
    ----------
    claims : DataFrame
        As :func:`psychometrics.norms.published_claims` gives them.
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
