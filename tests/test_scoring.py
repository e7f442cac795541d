"""Two-way normalisation and scores, against values worked by hand and invariants."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import psychometrics as pm
from psychometrics import item_scores, load_questionnaire, prompts, scale_scores, two_way
from psychometrics.exceptions import ParameterError
from psychometrics.measures.categories import category_scores
from psychometrics.measures.normalisation import pss, template_cubes
from psychometrics.measures.scoring import keyed_items
from psychometrics.paths import data_dir, questionnaires_dir
from psychometrics.questionnaires import Questionnaire

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


def test_two_way_matches_the_hand_worked_example_and_a_half_squares_the_scores():
    scores = np.array([[0.2, 0.4], [0.3, 0.1]])
    # Columns: .2/.5, .3/.5 and .4/.5, .1/.5. Rows: .4/(.4+.8), .8/1.2 and .6/.8, .2/.8.
    np.testing.assert_allclose(two_way(scores), [[1 / 3, 2 / 3], [3 / 4, 1 / 4]])
    # Columns: .04/.13, .09/.13 and .16/.17, .01/.17.
    first = np.array([0.04 / 0.13, 0.16 / 0.17])
    second = np.array([0.09 / 0.13, 0.01 / 0.17])
    expected = [first / first.sum(), second / second.sum()]
    np.testing.assert_allclose(two_way(scores, 0.5), expected)


def test_a_missing_answer_is_not_an_even_one():
    responses = answered("challenges")
    responses.loc[0, "entailment"] = np.nan
    for score in ("entailment", "contrast"):
        with pytest.raises(ParameterError, match="no answer or several; give it one"):
            pss(responses, score)


@given(SCORES, arrays(np.float64, 4, elements=st.floats(0.01, 1.0)))
def test_a_factor_common_to_an_intensifier_cancels(scores, factors):
    np.testing.assert_allclose(two_way(scores * factors), two_way(scores), rtol=1e-6)


def test_extreme_temperatures_stay_finite():
    scores = np.random.default_rng(0).random((6, 8))
    for temperature in (1e-3, 1e3):
        shares = two_way(scores, temperature)
        assert np.isfinite(shares).all()
        np.testing.assert_allclose(shares.sum(axis=-1), 1)
    np.testing.assert_allclose(two_way(scores, 1e6), 1 / 8, atol=1e-5)


def test_contrast_leaves_neutral_out():
    frame = answered("challenges", ["r1"])
    frame[["entailment", "neutral", "contradiction"]] = [0.2, 0.6, 0.2]
    frame.loc[0, ["entailment", "neutral", "contradiction"]] = [0.0, 1.0, 0.0]
    np.testing.assert_allclose(pss(frame, "contrast")["raw"], 0.5)
    np.testing.assert_allclose(pss(frame, "entailment")["raw"].iloc[:2], [0.0, 0.2])
    with pytest.raises(ParameterError, match="score must be"):
        pss(frame, "neutral")


@pytest.mark.parametrize("shares", [(-0.2, 0.6, 0.6), (1.1, 0.0, -0.1), (0.5, 0.5, 0.5)])
def test_shares_outside_0_to_1_or_with_a_larger_sum_are_no_probabilities(shares):
    frame = answered("challenges", ["r1"])
    frame.loc[0, ["entailment", "neutral", "contradiction"]] = shares

    with pytest.raises(ParameterError, match="probabilities"):
        pss(frame, "contrast")


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


# --- answers to items


MINI = load_questionnaire("ipip20")


def filled_in(values, questionnaire: Questionnaire = MINI, **more) -> pd.DataFrame:
    """Answers to items, one for each."""
    ids = [item.id for item in questionnaire.items]
    frame = pd.DataFrame({"item_id": ids, "value": np.asarray(values, dtype=float)})
    about = {"respondent_id": "r", "mode": "human", "run": 1, "status": "ok"}
    return frame.assign(questionnaire=questionnaire.id, **about | more)


def own_questionnaire(**change) -> Questionnaire:
    """Three items from 0 to 4, the second keyed and the third reversed in the scale."""
    content = {
        "id": "own", "title": "Own", "short_title": "Own", "measures": "x", "citation": "user",
        "source": "made up", "licence": "CC0",
        "options": [{"value": i, "label": f"option {i}"} for i in range(5)],
        "items": [{"id": "a", "text": "A"}, {"id": "b", "text": "B", "keying": -1},
                  {"id": "c", "text": "C"}],
        "scales": [{"id": "own", "title": "Own", "items": "all", "reverse": ["c"], "mode": "sum"}],
    }  # fmt: skip
    return Questionnaire.model_validate(content | change)


@pytest.mark.parametrize("name", ["gad7", "ipip20"])
def test_tables_that_come_one_by_one_give_what_one_table_of_all_gives(name):
    questionnaire, keys = load_questionnaire(name), ["respondent_id", "scale"]
    if name == "gad7":
        whole = answered(questionnaire, ["r1", "r2", "r3"])
    else:
        whole = pm.ask(name, 3, mode="simulated", progress=False)
        whole.loc[::7, ["value", "status"]] = np.nan, "missing"
    parts = [part for _, part in whole.groupby("respondent_id")]
    scores, expected = (scale_scores(t).set_index(keys) for t in (iter(parts), whole))
    pd.testing.assert_frame_equal(scores, expected, check_like=True)
    items = keyed_items(map(item_scores, parts), questionnaire)
    pd.testing.assert_frame_equal(items, keyed_items(item_scores(whole), questionnaire))


def test_keys_of_items_and_of_scales_turn_answers_round_and_together_leave_them():
    own = own_questionnaire()
    # 3 + (4 - 1) + (4 - 0)
    assert scale_scores(filled_in([3, 1, 0], own), own)["score"].tolist() == [10.0]
    both = own_questionnaire(
        scales=[{"id": "own", "title": "Own", "items": "all", "reverse": ["b"], "mode": "mean"}]
    )
    assert scale_scores(filled_in([3, 1, 2], both), both)["score"].tolist() == [2.0]


def test_item_scores_of_answers_to_items_are_their_values_and_missing_without_an_answer():
    own = own_questionnaire()
    answers = filled_in([3, 1, 0], own).assign(status=["ok", "refused", "ok"])
    scores = item_scores(answers)
    assert list(scores) == ["respondent_id", "questionnaire", "mode", "run", "item_id", "score"]
    np.testing.assert_array_equal(scores["score"], [3, np.nan, 0])
    np.testing.assert_array_equal(keyed_items(scores, own).iloc[0], [3, np.nan, 0])
    np.testing.assert_array_equal(keyed_items(scores, own, own.scales[0]).iloc[0], [3, np.nan, 4])


def test_a_scale_is_scored_from_the_least_share_of_its_items_on():
    own = own_questionnaire()
    answers = filled_in([3, 1, 0], own).assign(status=["ok", "refused", "ok"])
    row = scale_scores(answers, own).iloc[0]
    assert np.isnan(row["score"])
    assert row[["answered", "items"]].tolist() == [2, 3]
    # (3 + 4) / 2 · 3
    assert scale_scores(answers, own, least_answered=0.6)["score"].tolist() == [10.5]
    assert scale_scores(answers, own, least_answered=0.7)["score"].isna().all()
    assert scale_scores(answers, own, least_answered=1)["score"].isna().all()


@pytest.mark.parametrize("share", [0, -0.5, 1.01, "half", float("nan")])
def test_a_least_share_that_no_scale_can_have_is_refused(share):
    own = own_questionnaire()
    with pytest.raises(ParameterError, match="least_answered must be"):
        scale_scores(filled_in([3, 1, 0], own), own, least_answered=share)


def test_questionnaires_are_given_as_names_paths_or_loaded_and_shipped_ones_not_at_all(tmp_path):
    answers = filled_in(np.arange(20) % 5 + 1)
    expected = scale_scores(answers)
    path = tmp_path / "ipip20.yaml"
    path.write_bytes((questionnaires_dir() / "ipip20.yaml").read_bytes())
    for named in ("ipip20", path, str(path), MINI, ["gad7", MINI], (x for x in ["ipip20"])):
        pd.testing.assert_frame_equal(scale_scores(answers, named), expected)
    with pytest.raises(ParameterError, match="'own'"):
        scale_scores(filled_in([1, 1, 1], own_questionnaire()))


def test_parameters_of_the_other_kind_of_answers_are_refused():
    prompted, filled = answered("gad7"), filled_in([3] * 20)
    for name, value in {"score": "contrast", "temperature": 0.5}.items():
        with pytest.raises(ParameterError, match=f"{name} does not apply to answers to items"):
            scale_scores(filled, **{name: value})
        scale_scores(prompted, **{name: value})
    for name, value in {"by": ["role"], "least_answered": 0.5}.items():
        with pytest.raises(ParameterError, match=f"{name} does not apply to answers to prompts"):
            scale_scores(prompted, **{name: value})
    scale_scores(filled.assign(role="x"), by=["role"], least_answered=0.5)


# --- categories


WEIGHTS = {"1": [[2, 0], [0, 1], [-1, 3]], "2": [[1, 1], [0, 0]]}
TWO = Questionnaire.model_validate(
    {
        "id": "two", "title": "Two", "short_title": "Two", "measures": "x", "citation": "user",
        "source": "made up", "licence": "CC0", "instructions": "Choose.",
        "categories": ["a", "b"], "bias": [0.5, -1],
        "items": [{"id": key, "text": "Which?", "weights": rows, "options": [
            {"value": i, "label": f"option {i}"} for i in range(1, len(rows) + 1)
        ]} for key, rows in WEIGHTS.items()],
    }
)  # fmt: skip


def probabilities(first, second, run=1):
    rows = [("1", i, p) for i, p in enumerate(first, 1)]
    rows += [("2", i, p) for i, p in enumerate(second, 1)]
    table = pd.DataFrame(rows, columns=["item_id", "value", "probability"])
    return table.assign(respondent_id="r", questionnaire="two", mode="options", run=run)


def test_scores_and_spread_by_hand():
    table = category_scores(probabilities([0.5, 0.25, 0.25], [1, 0]), TWO).set_index("category")
    # a: 0.5 + (1 + 0 - 0.25) + 1; b: -1 + (0.25 + 0.75) + 1
    assert table["score"].tolist() == [2.25, 1.0]
    # a: E x² = 2 + 0.25, E x = 0.75; b: E x² = 0.25 + 2.25, E x = 1; the second item is certain
    assert table["sd"].tolist() == pytest.approx([np.sqrt(2.25 - 0.5625), np.sqrt(1.5)])


def test_categories_add_up_as_question_llms_own_program_has_them(tmp_path):
    recorded = json.loads((data_dir() / "texts" / "library_answers.json").read_text())["random"]
    for case in recorded[::5]:  # every other one has a bias
        (tmp_path / "own.json").write_text(json.dumps(case["file"]))
        sheet = load_questionnaire(tmp_path / "own.json")
        rows = [
            {"item_id": item.id, "value": option.value, "probability": p}
            for item, shares in zip(sheet.items, case["probabilities"], strict=True)
            for option, p in zip(sheet.choices(item), shares, strict=True)
        ]
        rows = pd.DataFrame(rows).assign(questionnaire=sheet.id, respondent_id="m", mode="options")
        found = category_scores(rows, sheet).set_index("category")["score"]
        assert found.to_dict() == pytest.approx(case["evaluate"])


def test_a_question_without_an_answer_leaves_the_score_missing():
    table = category_scores(probabilities([1, 0, 0], [1, 0]).query("item_id == '1'"), TWO)
    assert table["score"].isna().all()
    assert table[["answered", "items"]].drop_duplicates().to_numpy().tolist() == [[1, 2]]


CHOSEN = pd.DataFrame(
    {
        "respondent_id": "r", "questionnaire": "two", "mode": "chat", "run": [1, 2, 3, 1, 2, 3],
        "item_id": list("111222"), "value": [1, 1, 3, 2, 2, None],
        "status": ["ok"] * 5 + ["refused"],
    }
)  # fmt: skip


def test_chosen_options_are_certain():
    each = category_scores(CHOSEN, TWO).query("run == 1")
    assert each["score"].tolist() == [2.5, -1.0]
    assert each["sd"].tolist() == [0, 0]
    assert category_scores(CHOSEN, TWO)["score"].isna().sum() == 2  # the third run refused one


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


def test_no_answers_have_no_scores():
    columns = ["respondent_id", "questionnaire", "item_id", "scale", "template", "term"]
    columns += ["intensifier", "level", "polarity", "weight", "entailment", "contradiction"]
    answers = pd.DataFrame(columns=columns, dtype=float)

    with pytest.raises(ParameterError, match="no answers"):
        pm.pss(answers)


def test_answers_without_a_template_are_in_no_cube():
    table = prompts(load_questionnaire("challenges")).assign(respondent_id="r")
    values = np.arange(len(table), dtype=float)
    loose = pd.concat([table, table.iloc[:1].assign(template=None)], ignore_index=True)
    cubes = [cube for _, _, cube in template_cubes(table, values)]
    others = [cube for _, _, cube in template_cubes(loose, np.append(values, 99.0))]
    np.testing.assert_equal(others, cubes)
