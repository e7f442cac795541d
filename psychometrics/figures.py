"""Figures: one style, one palette, and the plot of scores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .exceptions import ParameterError, needed, writing
from .files import replacing
from .measures.categories import category_scores
from .measures.scoring import scale_scores
from .questionnaires import Questionnaire

if TYPE_CHECKING:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
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


def strip(
    points: pd.DataFrame,
    impostors: pd.DataFrame | None = None,
    others: pd.DataFrame | None = None,
    people: pd.DataFrame | None = None,
    label: str = "score",
    null: str = "models that know nothing",
) -> Figure:
    """Draw each score with its interval over the scores of respondents that know nothing.

    The figure is as wide as a phone, so that its text can be read there. A score among the grey
    points is not unusual.

    Parameters
    ----------
    points : DataFrame
        ``row, who, score, low, high``: the label of the row, the name of the point, the score and
        its interval.
    impostors, others : DataFrame, optional
        ``row, score``: scores of null respondents, in grey with their central 95 %, and of other
        models, as blue ticks.
    people : DataFrame, optional
        ``row, mean, sd, who``: people's norms, drawn as means with one standard deviation.
    label, null : str
        Names of the score, with its unit, and of the null respondents.

    Returns
    -------
    Figure
    """
    rows = list(dict.fromkeys(points["row"]))
    names = list(dict.fromkeys(points["who"]))
    bands = {"impostors": impostors, "others": others, "people": people}
    lanes = {name: table for name, table in bands.items() if table is not None and len(table)}
    height = max(len(names), 1) * 0.5 + 0.5 * ("others" in lanes) + 0.5 * ("people" in lanes) + 0.9
    key = 0.22 * (len(names) + len(lanes))
    fig, ax = plt.subplots(figsize=(4.6, 0.8 + 0.42 * height * len(rows) + key))
    rng = np.random.default_rng(0)

    for number, row in enumerate(rows):
        top = -number * height
        ax.text(0, top, row, transform=ax.get_yaxis_transform(), fontsize=10, va="center",
                weight="bold")  # fmt: skip

        of_row = {name: table[table["row"] == row] for name, table in lanes.items()}
        if "impostors" in lanes:
            middle = top - 0.55 - 0.25 * (len(names) - 1)
            null_scores = of_row["impostors"]["score"].dropna().to_numpy()
            _draw_cloud(ax, null_scores, middle, 0.25 * len(names), rng)

        for _, point in points[points["row"] == row].dropna(subset="score").iterrows():
            place = names.index(point["who"])
            y = top - 0.55 - 0.5 * place
            ax.hlines(y, point["low"], point["high"], color=TRAINED, linewidth=2.5, zorder=4)
            ax.plot(point["score"], y, MARKERS[place % len(MARKERS)], color=TRAINED, markersize=8,
                    markeredgecolor="white", zorder=5)  # fmt: skip

        y = top - 0.55 - 0.5 * (len(names) - 1)
        if "others" in lanes:
            y -= 0.5
            rivals = of_row["others"]["score"].dropna()
            ax.plot(rivals, np.full(len(rivals), y), "|", color=TRAINED, alpha=0.6, markersize=8)
        if "people" in lanes:
            y -= 0.5
            norms = of_row["people"].head(1)
            ax.errorbar(norms["mean"], np.full(len(norms), y), xerr=norms["sd"], fmt="D",
                        color=PEOPLE, markersize=5, elinewidth=2)  # fmt: skip

    if ax.get_xlim()[0] < 0:  # scores of ticked options are never negative
        ax.axvline(0, linestyle=":", color="black", linewidth=1, zorder=0)
    ax.set(ylim=(-len(rows) * height + 0.35, 0.4), xlabel=label, yticks=[])
    ax.tick_params(labelsize=9.5)
    ax.locator_params(axis="x", nbins=5)
    ax.spines["left"].set_visible(False)
    _label_lanes(ax, names, lanes, null)
    return fig


def _draw_cloud(
    ax: Axes, scores: np.ndarray, middle: float, half: float, rng: np.random.Generator
) -> None:
    """Draw null respondents as points, in front of a band that covers their central 95 %."""
    if not len(scores):
        return

    low, high = np.quantile(scores, [0.025, 0.975])
    ax.fill_between([low, high], middle - half, middle + half, color=NULL, alpha=0.25, linewidth=0)
    y = middle + half * rng.uniform(-0.8, 0.8, len(scores))
    ax.plot(scores, y, "o", color=NULL, markersize=3, markeredgewidth=0, alpha=0.8, zorder=2)


def _label_lanes(ax: Axes, names: Sequence[str], lanes: Collection[str], null: str) -> None:
    """Draw the legend below the axes, one entry a line, so that a phone shows all of it."""
    for place, name in enumerate(names):
        ax.plot([], [], MARKERS[place % len(MARKERS)] + "-", color=TRAINED, markersize=7,
                markeredgecolor="white", label=f"{name}, with its interval")  # fmt: skip

    if "impostors" in lanes:
        ax.plot([], [], "o", color=NULL, markersize=4, label=f"{null}; band: 95 % of them")
    if "others" in lanes:
        ax.plot([], [], "|", color=TRAINED, markersize=9, label="other models")
    if "people" in lanes:
        ax.plot([], [], "D", color=PEOPLE, markersize=5, label="people: mean and SD")

    ax.figure.legend(frameon=False, fontsize=9.5, loc="outside lower left")


def draw_scores(
    answers: pd.DataFrame, questionnaires: Sequence[Questionnaire], path: Path, **settings: Any
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


def alphas_over_chance(scales: pd.DataFrame) -> Figure:
    """Draw alphas with their intervals over what random answers and habits reach.

    Parameters
    ----------
    scales : DataFrame
        ``row, alpha, alpha_low, alpha_high, independent, habit``, one row per scale. What lies
        below −1 is drawn at −1.

    Returns
    -------
    Figure
    """
    fig, ax = plt.subplots(figsize=(4.6, 1.5 + 0.6 * len(scales)))
    for place, (_, row) in enumerate(scales.iterrows()):
        top = -place * 1.5
        ax.text(0, top, row["row"], transform=ax.get_yaxis_transform(), fontsize=10, va="center",
                weight="bold")  # fmt: skip
        y = top - 0.6
        low, value, high = row[["alpha_low", "alpha", "alpha_high"]].astype(float).clip(-1, 1)
        for limit in (row["habit"], row["independent"]):
            ax.fill_between([-1, max(limit, -1)], y - 0.28, y + 0.28, color=NULL, alpha=0.3,
                            linewidth=0)  # fmt: skip
        ax.hlines(y, low, high, color=TRAINED, linewidth=2.5, zorder=4)
        ax.plot(value, y, "o", color=TRAINED, markersize=8, markeredgecolor="white", zorder=5)

    lowest = min(0.0, scales["alpha_low"].clip(lower=-1).min())
    ax.set(xlim=(lowest - 0.03, 1.02), ylim=(-1.5 * len(scales) + 0.3, 0.5), yticks=[],
           xlabel="alpha, with its 95 % interval")  # fmt: skip
    ax.spines["left"].set_visible(False)
    ax.plot([], [], "o-", color=TRAINED, markersize=7, label="these respondents")
    ax.fill_between([], [], [], color=NULL, alpha=0.6, label="within reach of random answers")
    ax.fill_between([], [], [], color=NULL, alpha=0.3, label="within reach of mere habits")
    fig.legend(frameon=False, fontsize=9.5, loc="outside lower left")
    return fig
