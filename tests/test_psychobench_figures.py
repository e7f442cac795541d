"""Figures of self-report show what the tables hold."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from psychometrics.measures.norms import compare_norms, norm_table
from psychometrics.studies import psychobench_figures as draw
from psychometrics.studies.psychobench import published_tables


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


def test_labels_say_what_a_whole_questionnaire_and_a_short_name_measure():
    labels = draw.scale_labels(norm_table(["gse", "wleis", "empathy"]))
    assert labels[0] == "GSE, self-efficacy"
    assert labels[1] == "WLEIS, own emotions appraised"
    assert labels[-1] == "Empathy"


def test_what_marks_and_bands_mean_stands_in_the_legend(ax, compared):
    draw.norm_profile(compared, ax=ax)
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"significant after correction", "not significant"} <= set(said)
    assert {"middle 68 % of people", "middle 95 % of people"} <= set(said)
    assert {"gpt-4", "llama2-7b"} <= set(said)


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


def test_bars_of_variance_and_claims_are_as_long_as_their_numbers(ax):
    table = pd.DataFrame({"scale": ["s", "t"], "who": [0.25, 1.0], "when": [0.75, 0.0]})
    draw.variance_bars(table, ["who", "when"], ax=ax)
    assert [b.get_width() for b in ax.patches] == [0.25, 1, 0.75, 0]
    ax.clear()
    draw.claim_bars(pd.DataFrame({"text": ["a", "a", "b"], "agrees": [True, False, True]}), ax=ax)
    assert [b.get_width() for b in ax.patches] == [1, 1, 1, 0]
