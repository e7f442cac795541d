from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from psychometrics import figures

mpl.use("Agg")


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_heatmap_puts_source_terms_first_and_marks_their_polarity(ax):
    matrix = pd.DataFrame({"never": [0.1, 0.9], "always": [0.6, 0.2]}, index=["glad", "sad"])
    figures.term_heatmap(matrix, pd.Series({"glad": -1, "sad": 1}), ax=ax, label="P")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["sad  (+)", "glad  (−)"]
    assert [t.get_text() for t in ax.texts] == ["0.90", "0.20", "0.10", "0.60"]
    assert ax.get_xlabel() == "intensifier, from least to most"


def test_trends_draw_each_polarity_with_its_interval(ax):
    curves = pd.DataFrame(
        {
            "polarity": [1, 1, -1, -1],
            "intensifier": ["never", "always"] * 2,
            "mean": [0.4, 0.6, 0.7, 0.3],
            "low": [0.3, 0.5, 0.6, 0.2],
            "high": [0.5, 0.9, 0.8, 0.4],
        }
    )
    figures.intensifier_trends(curves, ax=ax)
    source, inverse = (container.lines[0] for container in ax.containers)
    assert source.get_ydata().tolist() == [0.4, 0.6]
    assert inverse.get_ydata().tolist() == [0.7, 0.3]
    assert source.get_linestyle() != inverse.get_linestyle()
    segments = ax.containers[0].lines[2][0].get_segments()
    assert [s[:, 1].tolist() for s in segments] == [
        pytest.approx([0.3, 0.5]),
        pytest.approx([0.5, 0.9]),
    ]


def test_profile_runs_from_lowest_to_highest_with_intervals(ax):
    scores = pd.DataFrame(
        {"respondent_id": ["b", "a"], "score": [2.0, 1.0], "low": [1.5, 0.0], "high": [2.2, 1.5]}
    )
    figures.score_profile(scores, ax=ax, label="score")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    assert ax.containers[0].lines[0].get_xdata().tolist() == [1.0, 2.0]
    assert ax.get_xlabel() == "score"


def test_scatter_names_the_farthest_respondents(ax):
    frame = pd.DataFrame({"x": [0.0, 0.1, 5.0], "y": [0.0, 0.1, 5.0]}, index=["a", "b", "far"])
    figures.score_scatter(frame, "x", "y", ax=ax, annotate=1)
    assert [t.get_text() for t in ax.texts] == ["far"]
