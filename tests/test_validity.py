"""Validity statistics, against values worked by hand or by another library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats
from sklearn.metrics import silhouette_score

import psychometrics as pm
from psychometrics import validity
from psychometrics.exceptions import ParameterError
from psychometrics.scoring import pss
from tests.test_scoring import answered

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=24)
    frame = pd.DataFrame({"a": a, "b": a + rng.normal(size=24), "c": rng.normal(size=24)})
    return frame.rename_axis("respondent_id")


def test_silhouette_is_scikit_learns_on_correlation_distance():
    shares = pss(answered("challenges", ["r1"]))
    found = validity.term_silhouettes(shares).set_index("item_id")["silhouette"]
    for item, part in shares.groupby("item_id"):
        table = part.pivot(index=["polarity", "term"], columns="intensifier", values="pss")
        labels = table.index.get_level_values("polarity")
        expected = silhouette_score(table.to_numpy(), labels, metric="correlation")
        assert found[item] == pytest.approx(expected)


def test_silhouette_is_one_for_opposite_terms_and_low_when_sides_are_mixed():
    responses = answered("challenges", ["r1"])
    rising = responses["weight"].rank() / len(responses)
    responses["entailment"] = np.where(responses["polarity"] == 1, rising, 1.001 - rising)
    apart = validity.term_silhouettes(pss(responses))["silhouette"]
    assert (apart > 0.95).all()
    mixed = responses["term"].isin(["disappointed", "supported", "disappointment", "support"])
    responses["entailment"] = np.where(mixed, rising, 1.001 - rising)
    assert (validity.term_silhouettes(pss(responses))["silhouette"] < 0.1).all()


def test_silhouette_of_an_even_spread_is_not_undefined():
    responses = answered("challenges", ["r1"]).assign(entailment=0.3)
    assert validity.term_silhouettes(pss(responses))["silhouette"].tolist() == [0.0] * 4


def test_silhouettes_of_several_templates_are_averaged():
    shares = pss(answered("phq9", ["r1"])).query("item_id == 'phq9_6'")
    parts = [
        validity.term_silhouettes(part)["silhouette"].iloc[0]
        for _, part in shares.groupby("template")
    ]
    assert validity.term_silhouettes(shares)["silhouette"].iloc[0] == pytest.approx(np.mean(parts))


def test_correlations_agree_with_scipy_and_lie_in_their_intervals(scores):
    found = validity.correlations(scores, PAIRS, seed=2)
    for row in found.itertuples():
        x, y = scores[row.first], scores[row.second]
        assert row.spearman == pytest.approx(stats.spearmanr(x, y).statistic)
        normal = [stats.norm.ppf(v.rank() / (len(v) + 1)) for v in (x, y)]
        assert row.pearson == pytest.approx(stats.pearsonr(*normal).statistic)
        assert row.spearman_low < row.spearman < row.spearman_high
        assert row.pearson_low < row.pearson < row.pearson_high
        exact = stats.permutation_test(
            (x,), lambda z, y=y: stats.spearmanr(z, y).statistic,
            permutation_type="pairings", n_resamples=2000, rng=np.random.default_rng(1),
        ).pvalue  # fmt: skip
        assert row.p == pytest.approx(exact, abs=0.04)
    assert found["p"].min() >= 1 / 2001
    holm = pingouin.multicomp(found["p"].tolist(), method="holm")[1]
    np.testing.assert_allclose(found["p_holm"], holm)


def test_correction_for_attenuation_divides_by_the_root_of_the_reliabilities(scores):
    reliabilities = pd.Series({"a": 0.8, "b": 0.5, "c": 0.0})
    found = validity.correlations(scores, PAIRS, reliabilities, n_resamples=50)
    assert found["corrected"][0] == pytest.approx(found["pearson"][0] / np.sqrt(0.4))
    assert found["corrected"][1:].isna().all()


def test_the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says():
    # Percentile intervals of a correlation run a little short with 24 respondents: 0.90 to 0.97.
    truth, hits = 0.6, 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=24)
        y = truth * x + np.sqrt(1 - truth**2) * rng.normal(size=24)
        frame = pd.DataFrame({"x": x, "y": y})
        row = validity.correlations(frame, [("x", "y")], n_resamples=400, seed=seed).iloc[0]
        hits += row["pearson_low"] <= truth <= row["pearson_high"]
    assert 0.90 - 2 * 0.018 < hits / 150 < 0.97 + 2 * 0.018


def test_p_values_are_uniform_when_nothing_is_there():
    values = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["x", "y"])
        values.append(validity.correlations(frame, [("x", "y")], n_resamples=200, seed=1)["p"][0])
    assert stats.kstest(values, "uniform").pvalue > 0.01


def test_partial_correlation_is_the_correlation_of_rank_residuals(scores):
    found = validity.partial_correlations(scores[["a", "b"]], [("a", "b")], scores["c"]).iloc[0]
    ranks = scores.rank()
    r = ranks.corr()
    expected = (r.loc["a", "b"] - r.loc["a", "c"] * r.loc["b", "c"]) / np.sqrt(
        (1 - r.loc["a", "c"] ** 2) * (1 - r.loc["b", "c"] ** 2)
    )
    assert found["partial"] == pytest.approx(expected)
    assert found["low"] < found["partial"] < found["high"]


def test_multiverse_holds_every_combination_and_the_chapters_own_value():
    names = ("gad7", "phq9")
    who = [f"r{n}" for n in range(6)]
    responses = pd.concat([answered(name, who, seed=i) for i, name in enumerate(names)])
    questionnaires = [pm.load_questionnaire(name) for name in names]
    worlds = validity.multiverse(responses, questionnaires, [names], temperatures=(1.0, 2.0))
    assert len(worlds) == 2 * 2 * 3 * 3 * 2
    assert not worlds.duplicated(worlds.columns[:-1].tolist()).any()
    table = pm.scale_scores(
        responses, score="contrast", temperature=2.0, questionnaires=questionnaires
    )
    wide = table.pivot(index="respondent_id", columns="scale", values="score")
    own = worlds.query(
        "score == 'contrast' and temperature == 2 and terms == 'source' "
        "and templates == 'all' and transform == 'raw'"
    )["r"].item()
    # Templates of an item have equally many terms, so that both ways of averaging agree.
    assert own == pytest.approx(wide.corr().loc["gad7", "phq9"])


def test_too_few_respondents_are_refused(scores):
    with pytest.raises(ParameterError, match="At least 4 respondents"):
        validity.correlations(scores.iloc[:3], PAIRS)


def test_multitrait_multimethod_matrix_is_over_common_respondents(scores):
    noisy = scores + np.random.default_rng(1).normal(scale=0.1, size=scores.shape)
    found = validity.multitrait_multimethod({"nli": scores, "mlm": noisy.iloc[4:]})
    assert found.shape == (6, 6)
    expected = stats.spearmanr(scores["a"].iloc[4:], noisy["c"].iloc[4:]).statistic
    assert found.loc[("nli", "a"), ("mlm", "c")] == pytest.approx(expected)
    assert found.loc[("nli", "a"), ("mlm", "a")] > 0.9
    with pytest.raises(ParameterError, match="At least 4 respondents"):
        validity.multitrait_multimethod({"nli": scores, "mlm": noisy.iloc[:3]})


def test_a_scale_that_is_not_there_and_a_constant_control_are_said(scores):
    with pytest.raises(ParameterError, match="no column 'd'"):
        validity.correlations(scores, [("a", "d")])
    with pytest.raises(ParameterError, match="no reliability of 'b'"):
        validity.correlations(scores, PAIRS, pd.Series({"a": 0.8, "c": 0.8}))
    with pytest.raises(ParameterError, match="held constant is so already"):
        validity.partial_correlations(scores, PAIRS, scores["c"] * 0)
    with pytest.raises(ParameterError, match="holds 'x'; give numbers"):
        validity.correlations(scores.assign(a="x"), PAIRS)
    responses = answered("challenges", ["r1", "r2"])
    q = [pm.load_questionnaire("challenges")]
    with pytest.raises(ParameterError, match="no answers to 'phq9'"):
        validity.multiverse(responses, q, [("challenges", "phq9")])
