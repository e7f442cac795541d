"""Figures: one style, one palette, and the plot of scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .exceptions import ParameterError, needed, writing
from .files import replacing
from .measures.categories import category_scores
from .measures.scoring import scale_scores
from .questionnaires import Questionnaire

if TYPE_CHECKING:
    from matplotlib.axes import Axes

plt = needed("matplotlib.pyplot")

# Okabe and Ito's colours, which the colour-blind can distinguish; the first two form a pair.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")
TRAINED = PALETTE[0]
NULL = "#9AA5B1"
PEOPLE = PALETTE[4]


def style() -> None:
    """Set the style of all figures: plain axes, readable at the book's width and in print."""
    needed("seaborn").set_theme(context="notebook", style="ticks", palette=PALETTE, font_scale=0.95)
    plt.rcParams |= {
        "font.size": 11,
        "text.parse_math": False,  # a name or a text may contain a $
        "legend.fontsize": 10,
        "legend.title_fontsize": 10,
        "figure.dpi": 144,
        "savefig.bbox": "tight",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.constrained_layout.use": True,
    }


def draw_scores(
    answers: pd.DataFrame, questionnaires: Sequence[Questionnaire], path: Path, **settings: object
) -> None:
    """Draw scores into a file: two categories as a compass, other scores as points in their ranges.

    If the questionnaire has norms, people's means are added, with bars of one SD on either side.

    Parameters
    ----------
    answers : DataFrame
        Answers from :func:`psychometrics.asking.ask`.
    questionnaires : sequence of Questionnaire
        Questionnaires, each of which gets a panel.
    path : Path
        A .png, .svg or .pdf file.
    **settings
        Settings of :func:`psychometrics.measures.scoring.scale_scores`.

    Raises
    ------
    ParameterError
        There is no score to draw, or the file cannot be written.
    """
    style()
    size = (7, 4.5 * len(questionnaires))
    figure, axes = plt.subplots(len(questionnaires), figsize=size, squeeze=False)
    for questionnaire, ax in zip(questionnaires, axes.flat, strict=True):
        rows = answers[answers["questionnaire"] == questionnaire.id]
        by = "category" if questionnaire.categories else "scale"
        if questionnaire.categories:
            scores = category_scores(rows, questionnaire)
        else:
            scores = scale_scores(rows, questionnaires=questionnaire, **settings)
            scores = scores.groupby(["respondent_id", "scale"], sort=False, as_index=False)
            scores = scores["score"].mean()  # over runs

            if "term" not in answers:
                spans = [questionnaire.span(questionnaire.scale(s)) for s in scores["scale"]]
                scores[["low", "high"]] = spans

            titles = {scale.id: scale.title for scale in questionnaire.scales}
            scores["scale"] = scores["scale"].map(titles)

        if scores["score"].isna().all():
            raise ParameterError(f"{questionnaire.id} has no score yet: answer every question.")

        if len(questionnaire.categories) == 2 and (scores["low"] < 0).all():
            _compass(scores.dropna(subset="score"), *questionnaire.categories, ax=ax)
        else:
            _ranges(scores, by, ax)
            if "term" not in answers and questionnaire.norms:
                _people(questionnaire, list(scores["scale"].unique()), ax)

        ax.set_title(questionnaire.short_title)

    with writing(path), replacing(path) as temporary:
        figure.savefig(temporary)

    plt.close(figure)


def _ranges(scores: pd.DataFrame, by: str, ax: Axes) -> None:
    """Draw scores as points between their least and greatest possible values, one per row.

    Up to eight respondents have their own colours, markers and heights within a row.
    """
    rows = list(dict.fromkeys(scores[by]))
    places = {row: len(rows) - 1 - number for number, row in enumerate(rows)}  # the first on top
    names = scores["respondent_id"].unique()
    are_few = len(names) <= len(PALETTE)
    step = min(0.16, 0.8 / len(names)) if are_few else 0.0
    for number, (name, points) in enumerate(scores.groupby("respondent_id", sort=False)):
        heights = points[by].map(places) + step * ((len(names) - 1) / 2 - number)
        look = number if are_few else 0
        ax.scatter(points["score"], heights, s=28, color=PALETTE[look], marker=MARKERS[look],
                   label=name, zorder=3)  # fmt: skip

    label = f"score of {names[0]}" if len(names) == 1 else "score"
    label = label if are_few else f"score: a dot for each of {len(names)} respondents"
    ax.set_yticks([*places.values()], rows, fontsize=10)
    ax.set(xlabel=label, ylim=(-0.7, len(rows) - 0.3))
    if len(names) > 1 and are_few:
        ax.legend(frameon=False, fontsize=10, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    if {"low", "high"} <= set(scores):
        low, high = scores.groupby(by)[["low", "high"]].first().loc[rows].to_numpy().T
        ax.barh([*places.values()], high - low, left=low, height=0.5, color="#E5E5E5", zorder=0)


def _people(questionnaire: Questionnaire, titles: list[str], ax: Axes) -> None:
    """Draw people's means with their standard deviations below the scores of each scale."""
    norms = pd.DataFrame([dict(norm) for norm in questionnaire.norms])
    rows = ax.get_yticks()
    place = {scale.id: scale.title for scale in questionnaire.scales}
    y = norms["scale"].map(lambda scale: rows[titles.index(place[scale])])
    y = y - 0.15 - 0.1 * norms.groupby("scale").cumcount()  # one below another
    ax.errorbar(norms["mean"], y, xerr=norms["sd"], fmt="D", color=PEOPLE, markersize=4)
    ax.set_xlabel(f"{ax.get_xlabel()}; bars: people's means and SDs")


def _compass(scores: pd.DataFrame, x: str, y: str, ax: Axes) -> None:
    """Draw respondents' scores on two categories, with their standard deviations as bars.

    Up to eight respondents get their own colours and markers, which the legend lists.
    """
    keys = [c for c in ("respondent_id", "questionnaire", "mode", "run") if c in scores]
    wide = scores.pivot(index=keys, columns="category", values=["score", "sd"]).reset_index()
    ax.axhline(0, color="grey", linewidth=1, zorder=0)
    ax.axvline(0, color="grey", linewidth=1, zorder=0)

    for i, (name, points) in enumerate(wide.groupby("respondent_id", sort=False)):
        crosses = ax.errorbar(points["score", x], points["score", y], xerr=points["sd", x],
                            yerr=points["sd", y], fmt=MARKERS[i % 8], color=PALETTE[i % 8],
                            elinewidth=1, markeredgecolor="white", markersize=8,
                            label=name)  # fmt: skip
        for bars in crosses[2]:
            bars.set_alpha(0.3)  # keeps points visible behind crossing bars

    limits = scores.groupby("category")[["low", "high"]].first()
    ax.set(xlim=tuple(limits.loc[x]), ylim=tuple(limits.loc[y]), xlabel=x, ylabel=y)
    ax.set_aspect("equal" if np.ptp(limits.loc[x]) == np.ptp(limits.loc[y]) else "auto")
    ax.legend(frameon=False, fontsize=10, loc="lower left", bbox_to_anchor=(0.0, 1.0))
