from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bootstrap

from psychometrics.exceptions import ParameterError
from psychometrics.intervals import bootstrap_mean, scale_intervals
from psychometrics.questionnaires import load_questionnaire


def test_bootstrap_mean_agrees_with_scipy():
    values = np.random.default_rng(3).exponential(size=40)
    low, high = bootstrap_mean(values, seed=1, n_resamples=20_000)
    theirs = bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(2)
    ).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_bootstrap_mean_of_a_constant_has_no_width():
    low, high = bootstrap_mean(np.full((3, 5), 2.5))
    np.testing.assert_allclose(low, 2.5)
    np.testing.assert_allclose(high, 2.5)


def test_bootstrap_mean_covers_the_true_mean_about_as_often_as_it_says():
    # 600 samples of 30 from a normal distribution: the percentile interval of a mean is known to
    # cover a little less than its level (by about 1 % at n = 30), and Monte Carlo error is 0.9 %.
    samples = np.random.default_rng(5).normal(1.0, 2.0, size=(600, 30))
    low, high = bootstrap_mean(samples, seed=2, n_resamples=1000)
    coverage = ((low <= 1.0) & (high >= 1.0)).mean()
    assert 0.905 <= coverage <= 0.97


def test_scale_score_is_the_mean_of_keyed_items_and_lies_in_its_interval():
    soc = load_questionnaire("soc13")
    rng = np.random.default_rng(0)
    items = pd.DataFrame(
        [
            {
                "respondent_id": r,
                "questionnaire": "soc13",
                "item_id": item.id,
                "score": rng.normal(),
            }
            for r in ("a", "b")
            for item in soc.items
        ]
    )
    result = scale_intervals(items, soc, seed=4).set_index("respondent_id")
    keys = {item.id: item.keying for item in soc.items}
    assert set(keys.values()) == {1, -1}
    for respondent, part in items.groupby("respondent_id"):
        expected = sum(keys[i] * s for i, s in zip(part.item_id, part.score, strict=True)) / 13
        assert result.loc[respondent, "score"] == pytest.approx(expected)
    assert (result["low"] < result["score"]).all()
    assert (result["score"] < result["high"]).all()


def test_subscale_uses_its_own_items_only():
    soc = load_questionnaire("soc13")
    subscale = next(s for s in soc.scales if s.id == "meaningfulness")
    items = pd.DataFrame(
        [
            {
                "respondent_id": "a",
                "questionnaire": "soc13",
                "item_id": item.id,
                "score": item.keying * (1.0 if item.id in subscale.items else 99.0),
            }
            for item in soc.items
        ]
    )
    assert scale_intervals(items, soc, "meaningfulness")["score"].tolist() == [pytest.approx(1.0)]


def test_a_scale_that_is_not_there_and_no_observations_are_said():
    soc = load_questionnaire("soc13")
    items = pd.DataFrame(columns=["respondent_id", "questionnaire", "item_id", "score"])
    with pytest.raises(ParameterError, match="no scale 'mood'; it has soc13"):
        scale_intervals(items, soc, "mood")
    with pytest.raises(ParameterError, match="no column 'score'"):
        scale_intervals(items.drop(columns="score"), soc)
    with pytest.raises(ParameterError, match="no observation"):
        bootstrap_mean(np.array([]))
    with pytest.raises(ParameterError, match="Numbers are needed"):
        bootstrap_mean(np.array(["a"]))
