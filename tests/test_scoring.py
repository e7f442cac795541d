"""Two-way normalisation and scores, against values worked by hand and invariants."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psychometrics import item_scores, load_questionnaire, prompts, scale_scores, two_way
from psychometrics.exceptions import ParameterError
from psychometrics.questionnaires import Questionnaire
from psychometrics.scoring import keyed_items, pss, raw_scores

SCORES = arrays(np.float64, (3, 4), elements=st.floats(1e-4, 1.0))


def answered(questionnaire: str | Questionnaire, respondents=("r1", "r2"), seed=0) -> pd.DataFrame:
    """Responses with random probabilities."""
    if isinstance(questionnaire, str):
        questionnaire = load_questionnaire(questionnaire)
    table = prompts(questionnaire)
    values = np.random.default_rng(seed).dirichlet([1, 1, 1], size=(len(respondents), len(table)))
    parts = []
    for name, answers in zip(respondents, values, strict=True):
        part = table.assign(respondent_id=name, mode="nli")
        part[["entailment", "neutral", "contradiction"]] = answers.astype("float32")
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_two_way_matches_the_hand_worked_example():
    # Columns: .2/.5, .3/.5 and .4/.5, .1/.5. Rows: .4/(.4+.8), .8/1.2 and .6/.8, .2/.8.
    np.testing.assert_allclose(
        two_way(np.array([[0.2, 0.4], [0.3, 0.1]])), [[1 / 3, 2 / 3], [3 / 4, 1 / 4]]
    )


def test_two_way_at_temperature_one_half_squares_the_scores():
    # Columns: .04/.13, .09/.13 and .16/.17, .01/.17.
    first = np.array([0.04 / 0.13, 0.16 / 0.17])
    second = np.array([0.09 / 0.13, 0.01 / 0.17])
    expected = [first / first.sum(), second / second.sum()]
    np.testing.assert_allclose(two_way(np.array([[0.2, 0.4], [0.3, 0.1]]), 0.5), expected)


@given(SCORES, st.floats(0.2, 5))
def test_pss_rows_sum_to_one(scores, temperature):
    shares = two_way(scores, temperature)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=-1), 1)


@given(SCORES, arrays(np.float64, 4, elements=st.floats(0.01, 1.0)))
def test_a_factor_common_to_an_intensifier_cancels(scores, factors):
    np.testing.assert_allclose(two_way(scores * factors), two_way(scores), rtol=1e-6)


@given(SCORES, st.permutations(range(3)), st.permutations(range(4)))
def test_the_order_of_terms_and_intensifiers_does_not_matter(scores, terms, words):
    shuffled = scores[np.ix_(terms, words)]
    np.testing.assert_allclose(two_way(shuffled), two_way(scores)[np.ix_(terms, words)])


def test_equal_scores_give_an_even_spread_also_when_all_are_zero():
    for value in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(two_way(np.full((2, 5, 8), value)), 1 / 8)


def test_leading_axes_are_normalised_on_their_own():
    cube = np.random.default_rng(0).random((2, 3, 4, 8))
    whole = two_way(cube)
    for i, j in itertools.product(range(2), range(3)):
        np.testing.assert_allclose(whole[i, j], two_way(cube[i, j]))


def test_extreme_temperatures_stay_finite():
    scores = np.random.default_rng(0).random((6, 8))
    for temperature in (1e-3, 1e3):
        shares = two_way(scores, temperature)
        assert np.isfinite(shares).all()
        np.testing.assert_allclose(shares.sum(axis=-1), 1)
    np.testing.assert_allclose(two_way(scores, 1e6), 1 / 8, atol=1e-5)


@pytest.mark.parametrize("temperature", [0, -1, float("nan"), float("inf")])
def test_a_temperature_must_be_positive(temperature):
    with pytest.raises(ParameterError, match="temperature must be a positive number"):
        two_way(np.ones((2, 2)), temperature)


@pytest.mark.parametrize("scores", [[0.1, 0.2], [[1.2, 0.1]], [[np.nan, 0.1]], [[]]])
def test_scores_must_be_probabilities_of_terms_by_intensifiers(scores):
    with pytest.raises(ParameterError, match="probabilities from 0 to 1"):
        two_way(np.array(scores))


def test_contrast_leaves_neutral_out():
    frame = pd.DataFrame({"entailment": [0.2, 0.0], "neutral": [0.6, 1], "contradiction": [0.2, 0]})
    np.testing.assert_allclose(raw_scores(frame, "contrast"), [0.5, 0.5])
    np.testing.assert_allclose(raw_scores(frame, "entailment"), [0.2, 0.0])
    with pytest.raises(ParameterError, match="score must be one of"):
        raw_scores(frame, "neutral")


def test_pss_keeps_the_rows_and_normalises_each_template_of_each_respondent():
    responses = answered("gad7").sample(frac=1, random_state=3)
    shares = pss(responses, temperature=0.7)
    pd.testing.assert_frame_equal(shares[responses.columns], responses)
    one = shares[
        (shares["respondent_id"] == "r2")
        & (shares["item_id"] == "gad7_4")
        & (shares["template"] == 2)
    ]
    table = one.pivot(index="term", columns="intensifier", values="raw")
    expected = pd.DataFrame(two_way(table.to_numpy(), 0.7), table.index, table.columns)
    actual = one.pivot(index="term", columns="intensifier", values="pss")
    pd.testing.assert_frame_equal(actual, expected)


def test_item_score_is_the_papers_formula_written_out():
    responses = answered("challenges", ["r1"])
    shares = pss(responses)
    total = 0.0
    for row in shares[(shares["item_id"] == "primed") & (shares["polarity"] == 1)].itertuples():
        total += row.pss * row.weight
    items = item_scores(responses).set_index("item_id")["score"]
    assert items["primed"] == pytest.approx(total / (3 * 8))


def test_item_score_averages_templates():
    responses = answered("phq9", ["r1"])
    shares = pss(responses).query("item_id == 'phq9_6' and polarity == 1")
    sums = (shares["pss"] * shares["weight"]).groupby(shares["template"]).sum() / (3 * 8)
    items = item_scores(responses).set_index("item_id")["score"]
    assert items["phq9_6"] == pytest.approx(sums.mean())


def test_item_scores_reach_their_bounds_when_one_intensifier_takes_all():
    responses = answered("gad7", ["always", "never"])
    for word in ("always", "never"):
        own = responses["respondent_id"] == word
        hit = (responses["intensifier"] == word) == (responses["polarity"] == 1)
        responses.loc[own, "entailment"] = np.where(hit[own], 1.0, 0.0)
    scores = item_scores(responses).groupby("respondent_id")["score"].mean()
    assert scores["always"] == pytest.approx(0.5, abs=1e-3)
    assert scores["never"] == pytest.approx(-0.5, abs=1e-3)


def test_both_terms_score_is_the_mean_of_source_and_reversed_inverse_scores():
    responses = answered("challenges", ["r1"])
    shares = pss(responses)
    signed = shares["pss"] * shares["weight"] * shares["polarity"]
    expected = signed.groupby(shares["item_id"]).mean()
    items = item_scores(responses, terms="both").set_index("item_id")["score"]
    pd.testing.assert_series_equal(items.sort_index(), expected.sort_index(), check_names=False)


def test_scale_scores_are_keyed_means_and_weigh_up_to_the_whole():
    responses = answered("soc13")
    items = item_scores(responses)
    scales = scale_scores(responses).pivot(index="respondent_id", columns="scale", values="score")
    soc = load_questionnaire("soc13")
    keys = pd.Series({item.id: item.keying for item in soc.items})
    one = items[items["respondent_id"] == "r1"].set_index("item_id")["score"]
    meaningfulness = ["soc13_1", "soc13_4", "soc13_7", "soc13_12"]
    expected = (one[meaningfulness] * keys[meaningfulness]).mean()
    assert scales.loc["r1", "meaningfulness"] == pytest.approx(expected)
    weighted = 5 * scales["comprehensibility"] + 4 * scales["manageability"]
    weighted += 4 * scales["meaningfulness"]
    np.testing.assert_allclose(weighted / 13, scales["soc13"])


def test_keyed_items_are_in_the_instruments_order():
    responses = answered("soc13")
    matrix = keyed_items(item_scores(responses), load_questionnaire("soc13"))
    assert list(matrix.columns) == [f"soc13_{n}" for n in range(1, 14)]
    assert list(matrix.index) == ["r1", "r2"]


def test_missing_and_doubled_answers_are_refused():
    responses = answered("gad7")
    with pytest.raises(ParameterError, match=r"gad7, item gad7_1, template 1: every respondent"):
        item_scores(responses.drop(index=3))
    with pytest.raises(ParameterError, match="every respondent must have answered"):
        item_scores(pd.concat([responses, responses.iloc[[5]]]))
    with pytest.raises(ParameterError, match="lack item gad7_7"):
        scale_scores(responses[responses["item_id"] != "gad7_7"])
    with pytest.raises(ParameterError, match="no responses"):
        item_scores(responses.iloc[:0])


def test_an_own_instrument_is_scored_when_it_is_given():
    own = load_questionnaire("gad7").model_copy(update={"id": "mine"})
    responses = answered(own)
    assert (scale_scores(responses, questionnaires=own)["questionnaire"] == "mine").all()
    with pytest.raises(ParameterError, match="responses are to mine too"):
        scale_scores(responses, questionnaires=load_questionnaire("phq9"))
