"""Figures show what the tables hold: hand-made frames in, places and texts out."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
import psychometrics_book as book
from psychometrics import figures

mpl.use("Agg")
WHITE = (1.0, 1.0, 1.0)


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def _labels(axis) -> list[str]:
    return [tick.get_text() for tick in axis]


def _hollow(collection) -> list[bool]:
    return [tuple(face[:3]) == WHITE for face in collection.get_facecolors()]


def _intervals(collection) -> list[list[float]]:
    """Ends of horizontal lines."""
    return [segment[:, 0].tolist() for segment in collection.get_segments()]


def test_a_forest_is_hollow_where_the_interval_holds_the_reference(ax):
    columns = ["x", "low", "high"]
    rows = [[1.0, 0.5, 1.5], [0.1, -0.2, 0.4], [-1.0, -2.0, -0.5]]
    table = pd.DataFrame(rows, columns=columns)
    book.figures.forest(table, ["sure", "unsure", "below"], *columns, ax=ax, xlabel="points")
    lines, points = ax.collections
    assert points.get_offsets().tolist() == [[1.0, 2.0], [0.1, 1.0], [-1.0, 0.0]]
    assert _hollow(points) == [False, True, False]
    assert _intervals(lines) == [[0.5, 1.5], [-0.2, 0.4], [-2.0, -0.5]]
    assert _labels(ax.get_yticklabels()) == ["sure", "unsure", "below"]
    assert ax.get_xlabel() == "points"
    assert ax.lines[0].get_xdata()[0] == 0
    for reference, hollow in ((0.6, [True, False, False]), (None, [False] * 3)):
        ax.clear()
        book.figures.forest(table, ["a", "b", "c"], *columns, ax=ax, reference=reference)
        assert _hollow(ax.collections[1]) == hollow
        assert [line.get_xdata()[0] for line in ax.lines] == ([reference] if reference else [])
    ax.clear()
    book.figures.forest(table, ["a", "b", "c"], "x", ax=ax)
    assert len(ax.collections) == 1, "points without intervals"


def test_a_forest_puts_groups_side_by_side_and_equal_labels_in_a_row(ax):
    table = pd.DataFrame(
        {
            "scale": ["s", "t", "s", "t"], "who": ["a", "a", "b", "b"], "x": [1.0, 2.0, 3.0, 4.0],
            "told": [True, False, False, True],
        }
    )  # fmt: skip
    book.figures.forest(table, "scale", "x", group="who", filled="told", ax=ax)
    first, _, second, _ = ax.collections  # each followed by its entry in the legend
    assert first.get_offsets()[:, 0].tolist() == [1, 2]
    assert second.get_offsets()[:, 0].tolist() == [3, 4]
    heights = np.array([first.get_offsets()[:, 1], second.get_offsets()[:, 1]])
    np.testing.assert_allclose(heights.mean(axis=0), [1, 0])
    assert (heights[0] > heights[1]).all(), "the first group above the second"
    assert np.ptp(heights, axis=0).max() < 0.5, "nearer to their own row than to the next"
    assert (_hollow(first), _hollow(second)) == ([False, True], [True, False])
    assert _labels(ax.get_yticklabels()) == ["s", "t"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]
    assert tuple(first.get_edgecolors()[0]) != tuple(second.get_edgecolors()[0])


def test_the_compass_places_points_within_the_categories_range(ax):
    scores = pd.DataFrame(
        {
            "respondent_id": ["a", "a", "b", "b"], "questionnaire": "pct", "mode": "chat", "run": 1,
            "category": ["economic", "social"] * 2, "score": [1.0, -2.0, -3.0, 4.0], "sd": 0.5,
            "low": -10.0, "high": 10.0,
        }
    )  # fmt: skip
    figures._compass(scores, "economic", "social", ax)
    assert ax.get_xlim() == (-10, 10)
    assert ax.get_ylabel() == "social"
    found = {(c[0].get_xdata()[0], c[0].get_ydata()[0]) for c in ax.containers}
    assert found == {(1, -2), (-3, 4)}


def test_ranges_show_each_score_between_its_ends(ax):
    scores = pd.DataFrame(
        {"respondent_id": ["a", "a", "b", "b"], "category": ["x", "y"] * 2,
         "score": [1.0, 2.0, np.nan, 4.0], "low": 0.0, "high": [5.0, 6.0] * 2}
    )  # fmt: skip
    figures._ranges(scores, "category", ax)
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(0, 5), (0, 6)]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["x", "y"]
    points = [drawn.get_offsets()[:, 0].tolist() for drawn in ax.collections]
    assert points == [[1, 2], [None, 4]]


def test_people_are_drawn_below_the_score_of_their_scale(ax):
    loaded = pm.load_questionnaire("dtdd", texts=False)
    titles = [scale.title for scale in loaded.scales]
    ax.set_yticks([2, 1, 0])
    figures._people(loaded, titles[::-1], ax)
    ((points, *_),) = ax.containers
    assert points.get_xdata().tolist() == [norm.mean for norm in loaded.norms]
    assert points.get_ydata() == pytest.approx([-0.15, 0.85, 1.85])


def test_the_smallest_label_is_told_at_the_width_of_the_page(monkeypatch, tmp_path):
    monkeypatch.setattr(book.record._RUN, "folder", tmp_path)
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda _, metadata: shown.append(metadata))
    with plt.style.context("default"):  # other tests of this worker may have set a style
        figure, ax = plt.subplots(figsize=(15, 4))
        ax.set_xlabel("accuracy", fontsize=12)
        ax.text(0.5, 0.5, "small", fontsize=8)
        book.record.figure(figure, pd.DataFrame({"x": [1]}), "fig-wide", "A wide one.", "Axes.")
    label = shown[0]["record"]["smallest_label"]
    assert 4 <= label <= 5, "about half of 8 points: the figure is nearly twice as wide as the page"
