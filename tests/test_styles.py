"""Response styles: what answers show whatever the items say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures import styles
from psychometrics.measures.intervals import correlation_interval
from psychometrics.measures.normalisation import pss
from psychometrics.questionnaires import load_questionnaire
from tests.test_scoring import answered, filled_in, own_questionnaire

MINI = load_questionnaire("ipip20")


def test_yea_saying_is_told_from_a_trait():
    reverse = {i for scale in MINI.scales for i in scale.reverse}
    ids = [item.id for item in MINI.items]
    yes = styles.response_styles(filled_in(np.full(20, 5.0)), MINI).iloc[0]
    assert [yes["agreeing"], yes["acquiescence"], yes["extreme"], yes["middle"]] == [1, 1, 1, 0]
    trait = styles.response_styles(
        filled_in([1.0 if i in reverse else 5.0 for i in ids]), MINI
    ).iloc[0]
    assert trait["acquiescence"] == pytest.approx(0)
    middle = styles.response_styles(filled_in(np.full(20, 3.0)), MINI).iloc[0]
    assert [middle["extreme"], middle["middle"], middle["commonest"]] == [0, 1, 1]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=20, max_size=20))
def test_mirrored_answers_mirror_acquiescence(values):
    values = np.array(values, dtype=float)
    first = styles.response_styles(filled_in(values), MINI).iloc[0]
    second = styles.response_styles(filled_in(6 - values), MINI).iloc[0]
    assert first["acquiescence"] == pytest.approx(-second["acquiescence"])
    assert first["extreme"] == second["extreme"]


def test_decisiveness_is_zero_for_an_even_spread_and_seven_roots_for_certainty():
    responses = answered("challenges", ["even", "sure"]).drop(columns=["neutral", "contradiction"])
    even = responses["respondent_id"] == "even"
    responses = agreeing_by(responses, responses["entailment"].mask(even, 0.5))
    found = styles.decisiveness(pss(responses))
    assert found["even"] == pytest.approx(0, abs=1e-4)
    assert found["sure"] > 10


def agreeing_by(answers, entailment):
    """The answers with this probability of entailment, the rest shared by the other two."""
    rest = (1 - entailment) / 2
    return answers.assign(entailment=entailment, neutral=rest, contradiction=rest)


def both_kinds(answers, q):
    """The correlation of scores from source and from inverse terms."""
    pairs = styles.balanced_pairs(answers, [q])
    return correlation_interval(pairs["source"], pairs["inverse"])


def test_source_and_inverse_terms_agree_unless_a_respondent_says_yes_to_all():
    responses = answered("challenges", [f"r{n}" for n in range(6)]).drop(
        columns=["neutral", "contradiction"]
    )
    strength = responses["respondent_id"].str[1:].astype(int) / 10
    stance = responses["polarity"] * responses["weight"]
    q = pm.load_questionnaire("challenges")
    content = agreeing_by(responses, 0.5 + 0.1 * strength * stance)
    assert both_kinds(content, q)["r"] == pytest.approx(1)
    nothing = agreeing_by(responses, 0.5 + 0.1 * strength * responses["weight"])
    spread = pm.item_scores(nothing)["score"].abs().max()
    assert spread < 1e-6, "two-way normalisation removes saying yes altogether"


def test_sides_normalised_each_on_its_own_are_independent_in_noise_and_show_agreeing():
    q = pm.load_questionnaire("challenges")
    table = pm.prompts(q)
    rng = np.random.default_rng(4)
    noise = pd.concat([table.assign(respondent_id=f"r{n}", entailment=rng.random(len(table)))
                       for n in range(40)])  # fmt: skip
    one = both_kinds(noise, q)
    assert one["low"] < 0 < one["high"]
    strength = noise["respondent_id"].str[1:].astype(int) / 40
    yes = noise.assign(entailment=0.5 + 0.1 * strength * noise["weight"])
    one = both_kinds(yes, q)
    assert one["r"] == pytest.approx(-1)
    pairs = styles.balanced_pairs(yes, [q])
    assert pairs["content"].abs().max() < 1e-9
    assert pairs["agreeing"].is_monotonic_increasing or pairs["agreeing"].corr(
        pairs["respondent_id"].str[1:].astype(int)
    ) == pytest.approx(1, abs=0.01)


def test_habits_give_the_internal_consistency_of_the_formula():
    gse = load_questionnaire("gse", texts=False)  # ten items, four options, none reversed
    answers = styles.empty_answers(gse, "habit", respondents=2000, runs=1)
    keyed = pm.scoring.keyed_items(pm.item_scores(answers), gse)
    assert pm.reliability.alpha(keyed)["alpha"] == pytest.approx(10 / 14, abs=0.03)
    random = styles.empty_answers(gse, "random", respondents=2000, runs=1)
    keyed = pm.scoring.keyed_items(pm.item_scores(random), gse)
    assert abs(pm.reliability.alpha(keyed)["alpha"]) < 0.12


def test_empty_answers_are_of_their_kind_and_strange_ones_are_refused():
    agree = styles.empty_answers("ipip20", "agree", respondents=2, runs=3)
    assert (agree["value"] == 5).all()
    assert agree.groupby(["respondent_id", "run"]).size().tolist() == [20] * 6
    middle = styles.empty_answers("gse", "middle", runs=1)
    assert (middle["value"] == 2).all()
    with pytest.raises(ParameterError, match="kind must be"):
        styles.empty_answers("ipip20", "honest")


@pytest.mark.parametrize("options", [2, 3, 4])
def test_ends_need_three_options_and_a_middle_an_odd_number_of_them(options):
    own = own_questionnaire(
        options=[{"value": i, "label": f"option {i}"} for i in range(options)],
        scales=[{"id": "own", "title": "Own", "items": "all", "mode": "sum"}],
    )
    row = styles.response_styles(filled_in([0, 1, options - 1], own), own).iloc[0]
    extreme = {2: np.nan, 3: 2 / 3, 4: 2 / 3}[options]
    middle = {2: np.nan, 3: 1 / 3, 4: np.nan}[options]
    assert row["extreme"] == pytest.approx(extreme, nan_ok=True)
    assert row["middle"] == pytest.approx(middle, nan_ok=True)
