from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr, t

from psychometrics.measures.trends import monotony, separation, trends


def shares(source: list[float], inverse: list[float], respondent: str = "a") -> pd.DataFrame:
    """PSS rows of one item with one term a side and four intensifiers of weights -2, -1, 1, 2."""
    words = {"intensifier": ["never", "rarely", "often", "always"] * 2, "level": [1, 2, 3, 4] * 2}
    frame = pd.DataFrame(words | {"weight": [-2.0, -1.0, 1.0, 2.0] * 2, "pss": [*source, *inverse]})
    frame = frame.assign(term=["sad"] * 4 + ["glad"] * 4, polarity=[1] * 4 + [-1] * 4, template=1)
    return frame.assign(respondent_id=respondent, questionnaire="q", item_id="q_1")


def test_trends_are_means_over_respondents_in_the_order_of_the_levels():
    frame = pd.concat(
        [
            shares([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], "a"),
            shares([0.3, 0.2, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1], "b"),
        ]
    )
    curves = trends(frame)
    source = curves[curves["polarity"] == 1]
    assert source["intensifier"].tolist() == ["never", "rarely", "often", "always"]
    assert source["mean"].tolist() == pytest.approx([0.2, 0.2, 0.3, 0.3])
    # two respondents have no skewness: Student's interval with one degree of freedom
    half = t.ppf(0.975, 1) * 0.1
    assert source["low"].tolist() == pytest.approx([0.2 - half, 0.2, 0.3, 0.3 - half])
    assert source["n"].tolist() == [2, 2, 2, 2]
    inverse = curves[curves["polarity"] == -1]
    assert inverse["high"].tolist() == pytest.approx(inverse["mean"].tolist())


def test_separation_is_the_difference_of_expected_weights():
    # source: -2*.1 - .2 + .3 + 2*.4 = 0.7; inverse: -2*.4 - .3 + .2 + 2*.1 = -0.7
    row = separation(shares([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1])).iloc[0]
    assert row["source"] == pytest.approx(0.7)
    assert row["inverse"] == pytest.approx(-0.7)
    assert row["separation"] == pytest.approx(1.4)


def test_monotony_is_spearmans_correlation_with_the_weights():
    frame = shares([0.1, 0.3, 0.2, 0.4], [0.4, 0.3, 0.2, 0.1])
    row = monotony(frame).loc["a"]
    assert row["source"] == pytest.approx(spearmanr([-2, -1, 1, 2], [0.1, 0.3, 0.2, 0.4]).statistic)
    assert row["inverse"] == pytest.approx(-1.0)


def test_a_gap_leaves_the_separation_open_instead_of_counting_as_nothing():
    frame = shares([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1])
    frame.loc[3, "pss"] = np.nan
    assert np.isnan(separation(frame)["source"].item())
