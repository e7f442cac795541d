from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from psychometrics.trends import monotony, separation, trends, variance_shares


def shares(source: list[float], inverse: list[float], respondent: str = "a") -> pd.DataFrame:
    """PSS rows of one item with one term a side and four intensifiers of weights -2, -1, 1, 2."""
    words = list(
        zip(["never", "rarely", "often", "always"], [1, 2, 3, 4], [-2, -1, 1, 2], strict=True)
    )
    return pd.DataFrame(
        [
            {
                "respondent_id": respondent,
                "questionnaire": "q",
                "item_id": "q_1",
                "template": 1,
                "term": "sad" if polarity > 0 else "glad",
                "polarity": polarity,
                "intensifier": word,
                "level": level,
                "weight": float(weight),
                "pss": value,
            }
            for polarity, values in ((1, source), (-1, inverse))
            for (word, level, weight), value in zip(words, values, strict=True)
        ]
    )


def test_trends_are_means_over_respondents_in_the_order_of_the_levels():
    frame = pd.concat(
        [
            shares([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], "a"),
            shares([0.3, 0.2, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1], "b"),
        ]
    )
    curves = trends(frame, seed=1)
    source = curves[curves["polarity"] == 1]
    assert source["intensifier"].tolist() == ["never", "rarely", "often", "always"]
    assert source["mean"].tolist() == pytest.approx([0.2, 0.2, 0.3, 0.3])
    assert source["low"].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.2])
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


def test_variance_shares_of_an_additive_table_leave_nothing_to_the_pairing():
    rows, columns = np.array([0.0, 1.0, 5.0]), np.array([0.0, 2.0])
    shares_ = variance_shares(np.exp(rows[:, None] + columns))
    # squares: rows 2*(2^2+1^2+3^2) = 28, columns 3*(1+1) = 6
    np.testing.assert_allclose(shares_, [28 / 34, 6 / 34, 0], atol=1e-12)


@given(arrays(float, (2, 3, 4), elements=st.floats(0.01, 1.0)))
def test_variance_shares_sum_to_one_and_ignore_the_unit(scores):
    scores[..., 0, 0] += 1  # not constant
    result = variance_shares(scores)
    np.testing.assert_allclose(result.sum(axis=-1), 1)
    np.testing.assert_allclose(variance_shares(scores * 7), result, atol=1e-9)
