"""Figures that several chapters draw.

The style and the colours are those of :mod:`psychometrics.figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psychometrics.checks import check_columns
from psychometrics.figures import MARKERS, NULL, PALETTE, TRAINED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# a group of this name has the colour of its role, whatever its place
_ROLES = {"trained": TRAINED, "null": NULL, "neutral": NULL}


def forest(
    table: pd.DataFrame,
    labels: str | Sequence[str],
    value: str,
    low: str | None = None,
    high: str | None = None,
    group: str | None = None,
    filled: str | None = None,
    ax: Axes | None = None,
    xlabel: str = "",
    reference: float | None = 0.0,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Draw points with intervals, with the first row on top and groups side by side.

    Parameters
    ----------
    table : DataFrame
        One row per point.
    labels : str or sequence of str
        The rows' names, or the column that contains the names; points with equal names share a row.
    value : str
        Column of the values to draw.
    low, high : str, optional
        Columns of the ends of the intervals.
    group : str, optional
        Column of groups; each has its own colour, marker and place within a row.
    filled : str, optional
        Column that indicates which points are filled; by default, the points whose interval
        excludes the reference. The other points are hollow.
    ax : Axes, optional
        Axes to draw on; by default the current axes.
    xlabel : str
        Name of the value, with its unit.
    reference : float, optional
        Position of the reference line; None draws no line.
    colours : mapping, optional
        Colours of groups that have a role in the book, such as the null.

    Returns
    -------
    Axes

    Examples
    --------
    >>> effects = pd.DataFrame({"scale": ["a", "b"], "d": [0.1, -0.4], "lo": [-0.2, -0.7],
    ...                         "hi": [0.4, -0.1]})
    >>> forest(effects, "scale", "d", "lo", "hi", xlabel="difference (SD)").get_xlabel()
    'difference (SD)'
    """
    check_columns(table, (), gaps=[value] if low is None else [value, low, high])
    ax = ax or plt.gca()
    table = table.assign(_label=table[labels] if isinstance(labels, str) else list(labels))
    table["_filled"] = True if filled is None else table[filled].astype(bool)

    if None not in (low, reference) and filled is None:
        table["_filled"] = (table[low] > reference) | (table[high] < reference)

    names = list(dict.fromkeys(table["_label"]))
    groups = list(dict.fromkeys(table[group])) if group else [None]
    place = {name: len(names) - 1 - i for i, name in enumerate(names)}
    step = min(0.16, 0.8 / len(groups))

    if reference is not None:
        ax.axvline(reference, color="grey", linewidth=1, linestyle=":", zorder=0)

    for i, name in enumerate(groups):
        points = table if name is None else table[table[group] == name]
        colour = (colours or _ROLES).get(name, PALETTE[i % len(PALETTE)])
        marker = MARKERS[i % len(MARKERS)]
        y = points["_label"].map(place).to_numpy() + step * ((len(groups) - 1) / 2 - i)

        if low is not None:
            ax.hlines(y, points[low], points[high], color=colour if group else NULL, linewidth=1.5,
                      alpha=0.6 if group else 1, zorder=2)  # fmt: skip

        face = np.where(points["_filled"], colour, "white")
        ax.scatter(points[value], y, c=face, edgecolors=colour, marker=marker, s=28, zorder=3)
        if group:  # a colour's # sorts before white, which remains if all points are hollow
            ax.scatter([], [], c=min(face), edgecolors=colour, marker=marker, label=name)

    ax.set_yticks(list(place.values()), list(place), fontsize=10)
    ax.set(xlabel=xlabel, ylim=(-0.7, len(names) - 0.3))
    if len(groups) > 1:
        columns = 5 if max(len(str(name)) for name in groups) < 16 else 2
        ax.legend(frameon=False, fontsize=10, ncols=columns, loc="lower left",
                  bbox_to_anchor=(0, 1), handletextpad=0.3, columnspacing=1)  # fmt: skip

    return ax
