from __future__ import annotations

import pandas as pd
import pytest
from scipy.stats import spearmanr

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
