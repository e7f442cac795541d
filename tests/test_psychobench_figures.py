"""Figures of self-report show what the tables hold."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from psychometrics.exceptions import ParameterError
from psychometrics.norms import compare_norms, norm_table, published_tables
from psychometrics.studies import psychobench_figures as draw


@pytest.fixture
def ax():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.fixture(scope="module")
def compared():
    table = published_tables().query("study == 'models' and questionnaire == 'bfi'")
    both = table[table["respondent_id"].isin(["gpt-4", "llama2-7b"])].drop(columns="study")
    return compare_norms(both, norm_table(["bfi"]))


def test_a_profile_has_every_scale_once_and_fills_what_is_significant(ax, compared):
    draw.norm_profile(compared, ax=ax)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels == [f"BFI, {s}" for s in compared["scale"].unique()]
    points = [c for c in ax.collections if len(c.get_offsets()) == 5]
    assert len(points) == 2
    filled = 0
    for collection in points:
        filled += (collection.get_facecolors()[:, :3] != 1).any(axis=1).sum()
    assert filled == compared["significant_corrected"].sum()
    first = compared[compared["respondent_id"] == compared["respondent_id"].iloc[0]]
    np.testing.assert_allclose(points[0].get_offsets()[:, 0], first["delta"])


def test_labels_name_groups_but_not_the_whole_sample():
    table = norm_table(["epq-r", "bfi", "bsri", "ecr-r"], paper=True)
    labels = draw.scale_labels(table)
    assert len(set(labels)) == len(labels)
    assert {"BFI, openness", "EPQ-R, lying (male)", "BSRI, feminine (women)"} <= set(labels)
    assert "ECR-R, attachment anxiety" in labels


def test_a_radar_closes_and_keeps_its_span():
    figure, ax = plt.subplots(subplot_kw={"polar": True})
    draw.radar({"a": [1, 2, 3]}, ["x", "y", "z"], (1, 5), ax=ax, band=([1, 1, 1], [2, 2, 2]))
    line = ax.get_lines()[0]
    assert line.get_ydata().tolist() == [1, 2, 3, 1]
    assert ax.get_ylim() == (1, 5)
    with pytest.raises(ParameterError, match="2 values for 3 spokes"):
        draw.radar({"a": [1, 2]}, ["x", "y", "z"], (1, 5), ax=ax)
    plt.close(figure)


def test_a_radar_refuses_plain_axes(ax):
    with pytest.raises(ParameterError, match="polar"):
        draw.radar({"a": [1]}, ["x"], (0, 1), ax=ax)


def test_a_forest_fills_what_leaves_the_reference_out(ax):
    table = pd.DataFrame({"x": [1.0, 0.1], "low": [0.5, -0.2], "high": [1.5, 0.4]})
    draw.forest(table, "x", "low", "high", ["sure", "unsure"], ax=ax, xlabel="points")
    points = ax.collections[-1]
    assert points.get_offsets().tolist() == [[1.0, 1.0], [0.1, 0.0]]
    assert (points.get_facecolors()[1, :3] == 1).all()
    assert (points.get_facecolors()[0, :3] != 1).any()


def test_tiles_are_marked_by_what_is_significant_and_settled(ax):
    table = pd.DataFrame(
        {
            "label": list("aabb"), "respondent_id": list("xyxy"), "delta": [0.1, 2.5, -2.5, 0.0],
            "significant": [False, True, True, False], "settled": [True, True, False, False],
            "significant_corrected": [False, True, False, False],
        }
    )  # fmt: skip
    draw.difference_tiles(table, ax=ax)
    assert [t.get_text() for t in ax.texts] == ["", "•", "∘?", "?"]


def test_the_compass_places_points_within_the_categories_range(ax):
    scores = pd.DataFrame(
        {
            "respondent_id": ["a", "a", "b", "b"], "questionnaire": "pct", "mode": "chat", "run": 1,
            "category": ["economic", "social"] * 2, "score": [1.0, -2.0, -3.0, 4.0], "sd": 0.5,
            "low": -10.0, "high": 10.0,
        }
    )  # fmt: skip
    draw.compass(scores, ax=ax, ends={"economic": ("left", "right")})
    assert ax.get_xlim() == (-10, 10)
    assert "left" in ax.get_xlabel()
    assert ax.get_ylabel() == "social"
    found = {(c[0].get_xdata()[0], c[0].get_ydata()[0]) for c in ax.containers}
    assert found == {(1, -2), (-3, 4)}
    with pytest.raises(ParameterError, match="no category 'moral'"):
        draw.compass(scores, x="moral", ax=ax)


def test_bars_of_variance_and_claims_are_as_long_as_their_numbers(ax):
    table = pd.DataFrame({"scale": ["s", "t"], "who": [0.25, 1.0], "when": [0.75, 0.0]})
    draw.variance_bars(table, ["who", "when"], ax=ax)
    assert [b.get_width() for b in ax.patches] == [0.25, 1, 0.75, 0]
    ax.clear()
    draw.claim_bars(pd.DataFrame({"text": ["a", "a", "b"], "agrees": [True, False, True]}), ax=ax)
    assert [b.get_width() for b in ax.patches] == [1, 1, 1, 0]
