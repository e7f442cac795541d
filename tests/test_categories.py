"""Category scores, by hand and on the political compass."""

import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psychometrics.categories import category_ranges, category_scores, option_probabilities
from psychometrics.data import available
from psychometrics.exceptions import ParameterError
from psychometrics.questionnaires import Questionnaire, load_questionnaire

WEIGHTS = {"1": [[2, 0], [0, 1], [-1, 3]], "2": [[1, 1], [0, 0]]}
TWO = Questionnaire.model_validate(
    {
        "id": "two", "title": "Two", "short_title": "Two", "measures": "x", "citation": "user",
        "source": "made up", "licence": "CC0", "instructions": "Choose.",
        "categories": ["a", "b"], "bias": [0.5, -1],
        "items": [
            {
                "id": key, "text": "Which?", "weights": rows,
                "options": [{"value": i, "label": f"option {i}"} for i in range(1, len(rows) + 1)],
            }
            for key, rows in WEIGHTS.items()
        ],
    }
)  # fmt: skip
needs_compass = pytest.mark.skipif(
    not available("political_compass") and os.environ.get("CI") != "true",
    reason="question_llm's pct.json is neither mirrored nor cached",
)


def probabilities(first, second, run=1):
    rows = [("1", i, p) for i, p in enumerate(first, 1)]
    rows += [("2", i, p) for i, p in enumerate(second, 1)]
    table = pd.DataFrame(rows, columns=["item_id", "value", "probability"])
    return table.assign(respondent_id="r", questionnaire="two", mode="option_logits", run=run)


def test_scores_and_spread_by_hand():
    table = category_scores(probabilities([0.5, 0.25, 0.25], [1, 0]), TWO).set_index("category")
    # a: 0.5 + (1 + 0 - 0.25) + 1; b: -1 + (0.25 + 0.75) + 1
    assert table["score"].tolist() == [2.25, 1.0]
    # a: E x² = 2 + 0.25, E x = 0.75; b: E x² = 0.25 + 2.25, E x = 1; the second item is certain
    assert table["sd"].tolist() == pytest.approx([np.sqrt(2.25 - 0.5625), np.sqrt(1.5)])


def test_without_bias_and_with_unnormalised_probabilities():
    certain = category_scores(probabilities([6, 0, 0], [0, 0.2]), TWO, bias=False)
    assert certain["score"].tolist() == [2, 0]
    assert certain["sd"].tolist() == [0, 0]


def test_ranges_are_reached_by_the_best_and_worst_answers():
    table = category_ranges(TWO).set_index("category")
    assert table.loc["a"].tolist() == pytest.approx([-0.5, 3.5, 0.5 + 1 / 3 + 0.5])
    assert table.loc["b"].tolist() == pytest.approx([-1, 3, -1 + 4 / 3 + 0.5])


def test_a_question_without_an_answer_leaves_the_score_missing():
    table = category_scores(probabilities([1, 0, 0], [1, 0]).query("item_id == '1'"), TWO)
    assert table["score"].isna().all()
    assert table[["answered", "items"]].drop_duplicates().to_numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("value", 4, "item 1: 4 is no option"),
        ("item_id", "9", "item 9"),
        ("probability", -0.1, "numbers from 0"),
        ("value", 2, "twice"),
        ("questionnaire", "three", None),
    ],
)
def test_impossible_probabilities_stop(column, value, message):
    table = probabilities([1.0, 0, 0], [1.0, 0])
    table.loc[0 if message else slice(None), column] = value
    with pytest.raises(ParameterError, match=message or "no answers to two"):
        category_scores(table, TWO)


def test_items_whose_options_are_all_impossible_stop():
    with pytest.raises(ParameterError, match="all 0"):
        category_scores(probabilities([0, 0, 0], [1, 0]), TWO)


def test_a_scale_inventory_is_refused():
    with pytest.raises(ParameterError, match="sum_scores"):
        category_scores(probabilities([1, 0, 0], [1, 0]), load_questionnaire("ipip20"))


def test_answers_become_probabilities_over_runs():
    answers = pd.DataFrame(
        {
            "respondent_id": "r", "questionnaire": "two", "mode": "chat", "run": [1, 2, 3, 1, 2, 3],
            "item_id": list("111222"), "value": [1, 1, 3, 2, 2, None],
            "status": ["ok"] * 5 + ["refused"],
        }
    )  # fmt: skip
    shares = option_probabilities(answers, over_runs=True).set_index(["item_id", "value"])
    assert shares["probability"].to_dict() == pytest.approx(
        {("1", 1.0): 2 / 3, ("1", 3.0): 1 / 3, ("2", 2.0): 1.0}
    )
    each = category_scores(option_probabilities(answers), TWO)
    assert each["score"].isna().sum() == 2  # the third run refused a question


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=2),
)
def test_scores_stay_in_their_range_and_are_means_over_all_answer_sheets(first, second):
    table = category_scores(probabilities(first, second), TWO).set_index("category")
    assert (table["score"] >= table["low"] - 1e-9).all()
    assert (table["score"] <= table["high"] + 1e-9).all()
    p, q = np.array(first) / sum(first), np.array(second) / sum(second)
    sheets = [
        (p[i] * q[j], 0.5 + WEIGHTS["1"][i][0] + WEIGHTS["2"][j][0])
        for i in range(3)
        for j in range(2)
    ]
    mean = sum(w * x for w, x in sheets)
    assert table.loc["a", "score"] == pytest.approx(mean)
    variance = sum(w * (x - mean) ** 2 for w, x in sheets)
    assert table.loc["a", "sd"] == pytest.approx(np.sqrt(variance), abs=1e-6)


@needs_compass
def test_the_compass_with_its_bias_runs_from_minus_ten_to_ten():
    table = category_ranges(load_questionnaire("political_compass"))
    assert table["low"].tolist() == pytest.approx([-10, -10], abs=0.01)
    assert table["high"].tolist() == pytest.approx([10, 10], abs=0.01)
    bare = category_ranges(load_questionnaire("political_compass"), bias=False)
    assert (table["low"] - bare["low"]).tolist() == pytest.approx([0.38, 2.41])
