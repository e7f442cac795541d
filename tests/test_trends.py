from __future__ import annotations

import pandas as pd
import pytest
from scipy.stats import spearmanr

from psychometrics.exceptions import ParameterError
from psychometrics.measures.trends import monotony


def shares(source: list[float], inverse: list[float], respondent: str = "a") -> pd.DataFrame:
    """PSS rows of one item with one term a side and four intensifiers of weights -2, -1, 1, 2."""
    words = {"intensifier": ["never", "rarely", "often", "always"] * 2, "level": [1, 2, 3, 4] * 2}
    frame = pd.DataFrame(words | {"weight": [-2.0, -1.0, 1.0, 2.0] * 2, "pss": [*source, *inverse]})
    frame = frame.assign(term=["sad"] * 4 + ["glad"] * 4, polarity=[1] * 4 + [-1] * 4, template=1)
    return frame.assign(respondent_id=respondent, questionnaire="q", item_id="q_1")


def test_monotony_is_spearmans_correlation_with_the_weights():
    frame = shares([0.1, 0.3, 0.2, 0.4], [0.4, 0.3, 0.2, 0.1])
    row = monotony(frame).loc["a"]
    assert row["source"] == pytest.approx(spearmanr([-2, -1, 1, 2], [0.1, 0.3, 0.2, 0.4]).statistic)
    assert row["inverse"] == pytest.approx(-1.0)


def test_two_intensifiers_have_no_order_and_three_have_one():
    frame = shares([0.1, 0.3, 0.2, 0.4], [0.4, 0.3, 0.2, 0.1])
    two = monotony(frame[frame["level"] < 3]).loc["a"]
    assert two.isna().all(), "two points always lie on a line"
    three = monotony(frame[frame["level"] < 4]).loc["a"]
    assert three.tolist() == pytest.approx([0.5, -1.0])


def test_shares_that_differ_by_rounding_tie():
    even, noise = [0.25] * 4, [1e-10, -3e-10, 2e-10, 0.0]
    noisy = [share + more for share, more in zip(even, noise, strict=True)]
    row = monotony(shares(noisy, [0.4 + 1e-8, 0.4, 0.1, 0.1 - 1e-8])).loc["a"]
    assert pd.isna(row["source"])
    assert row["inverse"] == pytest.approx(
        spearmanr([-2, -1, 1, 2], [0.4, 0.4, 0.1, 0.1]).statistic
    )


def test_a_polarity_in_words_is_refused_and_gives_no_missing_trend():
    frame = shares([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1])
    with pytest.raises(ParameterError, match="polarity"):
        monotony(frame.assign(polarity=["source"] * 4 + ["inverse"] * 4))


@pytest.mark.parametrize("polarity", [2, 0, 1.5, float("nan"), "S+", "1"])
def test_a_polarity_is_one_or_minus_one(polarity):
    frame = shares([0.1, 0.3, 0.2, 0.4], [0.4, 0.3, 0.2, 0.1])

    with pytest.raises(ParameterError, match="polarity"):
        monotony(frame.assign(polarity=polarity))
