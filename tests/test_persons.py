from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psychometrics.ask import answer
from psychometrics.exceptions import ParameterError, StoreError
from psychometrics.questionnaires import load_questionnaire
from psychometrics.respondents.persons import (
    ask_custom,
    ask_person,
    draw_traits,
    graded_probabilities,
    person_answers,
    person_form,
    simulate_graded,
)
from psychometrics.scoring import scale_scores

MINI = load_questionnaire("ipip20")
TWO = load_questionnaire("two_axes")


def test_graded_probabilities_equal_those_worked_by_hand():
    # logistic(1) = 0.7311, logistic(-1) = 0.2689, logistic(2) = 0.8808
    found = graded_probabilities(np.array([0.0, 1.0]), 1.0, np.array([-1.0, 1.0]))
    assert found.round(4).tolist() == [[0.2689, 0.4621, 0.2689], [0.1192, 0.3808, 0.5]]


@given(
    trait=st.floats(-4, 4), slope=st.floats(0.1, 4), start=st.floats(-2, 2), gap=st.floats(0.01, 2)
)
def test_graded_probabilities_sum_to_one_and_turn_round_with_the_slope(trait, slope, start, gap):
    thresholds = start + gap * np.arange(4)
    there = graded_probabilities(np.array([trait]), slope, thresholds)
    back = graded_probabilities(np.array([-trait]), -slope, thresholds)
    assert there.sum() == pytest.approx(1)
    assert (there >= 0).all()
    assert np.allclose(there, back)


def test_known_traits_come_back_through_the_keys_as_far_as_the_model_lets_them():
    traits = draw_traits(MINI, 1500, seed=4)
    scores = scale_scores(simulate_graded(MINI, traits=traits, seed=4), MINI)
    wide = scores.pivot(index="respondent_id", columns="scale", values="score").loc[traits.index]
    r = pd.DataFrame({a: [wide[a].corr(traits[b]) for b in traits] for a in traits}).to_numpy()
    assert (np.diag(r) > 0.75).all()
    assert np.abs(r - np.diag(np.diag(r))).max() < 0.1  # and not in another scale


def test_the_share_of_each_answer_is_the_models():
    traits = draw_traits(MINI, 20000, seed=1)[["extraversion"]].assign(
        agreeableness=0.0, conscientiousness=0.0, neuroticism=0.0, intellect=0.0
    )
    answers = simulate_graded(MINI, traits=traits, difficulty_sd=0.0, seed=2)
    shares = answers.query("item_id == 'ipip20_2'")["value"].value_counts(normalize=True)
    expected = graded_probabilities(np.zeros(1), 1.5, np.array([-0.9, -0.3, 0.3, 0.9]))[0]
    assert np.allclose(shares.sort_index(), expected, atol=0.012)


def test_options_that_add_to_categories_follow_the_nominal_model():
    traits = pd.DataFrame({"economic": [1.0] * 8000, "social": [0.0] * 8000})
    traits.index = pd.Index([f"p{i}" for i in range(8000)], name="respondent_id")
    answers = simulate_graded(TWO, traits=traits, discrimination=1.0, seed=3)
    item = next(i for i in TWO.items if i.weights[-1] == (1.0, 0.0))
    odds = np.exp([-1.0, -0.5, 0.5, 1.0])
    shares = answers[answers["item_id"] == item.id]["value"].value_counts(normalize=True)
    assert np.allclose(shares.sort_index(), odds / odds.sum(), atol=0.02)


def test_runs_keep_the_trait_and_draw_chance_anew_and_seeds_repeat():
    once = simulate_graded(MINI, 50, runs=2, seed=5)
    pd.testing.assert_frame_equal(once, simulate_graded(MINI, 50, runs=2, seed=5))
    first, second = (once[once["run"] == run]["value"].to_numpy() for run in (1, 2))
    assert (first != second).any()
    assert np.corrcoef(first, second)[0, 1] > 0.3


def test_missing_answers_are_marked_and_acquiescence_agrees_with_both_keys():
    answers = simulate_graded(MINI, 500, missing=0.2, seed=6)
    assert (answers["status"] == "missing").mean() == pytest.approx(0.2, abs=0.02)
    assert answers.loc[answers["status"] == "missing", "value"].isna().all()
    reverse = {item for scale in MINI.scales for item in scale.reverse}

    def together(acquiescence):
        given_ = simulate_graded(MINI, 500, acquiescence=acquiescence, seed=6)
        turned = given_["item_id"].isin(reverse).map({True: "reversed", False: "keyed"})
        means = given_.groupby(["respondent_id", turned])["value"].mean().unstack()
        return means["keyed"].corr(means["reversed"])

    assert together(0.0) < -0.3
    assert together(2.0) > 0.3


def test_traits_can_be_correlated():
    assert draw_traits(MINI, 5000, correlation=0.5, seed=1).corr().iloc[0, 1] == pytest.approx(
        0.5, abs=0.05
    )


def test_impossible_numbers_and_lacking_traits_are_refused():
    for wrong in ({"respondents": 0}, {"missing": 1.0}, {"runs": 0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            simulate_graded(MINI, **wrong)
    with pytest.raises(ParameterError, match="correlation"):
        draw_traits(MINI, 3, correlation=1.0)
    with pytest.raises(ParameterError, match="no column 'agreeableness'"):
        simulate_graded(MINI, traits=draw_traits(MINI, 3)[["extraversion"]])


# --- custom ----------------------------------------------------------------------------------


def test_a_function_is_asked_in_the_runs_order_and_read_like_a_chat():
    seen = []

    def generate(prompt):
        seen.append(prompt[-1]["content"])
        return "1: 2\n2: 7" if len(seen) == 1 else None

    answers = ask_custom(MINI, generate, batch_size=2, respondent_id="mine")
    assert len(seen) == 10
    assert answers["status"].value_counts().to_dict() == {
        "no_reply": 18,
        "ok": 1,
        "out_of_range": 1,
    }
    assert answers.query("status == 'ok'")["value"].tolist() == [2.0]
    assert set(answers["respondent_id"]) == {"mine"}


def test_a_parser_of_the_users_is_used_and_checked():
    def parse(reply, questionnaire, items, labels, orders):
        return [("ok", float(len(reply)))] * len(items)

    assert set(answer(MINI, "custom", generate=lambda m: "xyz", parse=parse)["value"]) == {3.0}
    with pytest.raises(ParameterError, match="parse must give"):
        ask_custom(MINI, lambda m: "x", parse=lambda *a: [3])
    with pytest.raises(ParameterError, match="not between 1 and 5"):
        ask_custom(MINI, lambda m: "abcdefgh", parse=parse)


# --- a person --------------------------------------------------------------------------------

PROGRAM = (
    "import sys; from psychometrics.questionnaires import load_questionnaire; "
    "from psychometrics.respondents.persons import ask_person; "
    "ask_person(load_questionnaire('ipip20'), 'ann', path=sys.argv[1])"
)


def _in_terminal(path, typed: str) -> str:
    """Run the program with a terminal as its input, and type."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], stdin=theirs, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown, _ = process.communicate(timeout=60)
        os.close(ours)
    assert process.returncode == 0
    return shown


def test_a_person_answers_in_a_terminal_goes_back_leaves_and_goes_on(tmp_path):
    path = tmp_path / "ann.json"
    shown = _in_terminal(path, "4\n9\n2\nb\n5\ns\nq\n")
    assert "1 of 20: I am the life of the party." in shown
    assert "Type one of 1, 2, 3, 4, 5" in shown  # for the 9
    assert "(now 2)" in shown  # gone back to the second item
    saved = json.loads(path.read_text())["answers"]
    assert saved == {"ipip20_1": 4.0, "ipip20_2": 5.0, "ipip20_3": None}
    shown = _in_terminal(path, "1\n" * 17 + "\n")
    assert shown.index("4 of 20") < shown.index("5 of 20")
    assert "\n1 of 20:" not in shown
    answers = person_answers(MINI, "ann", path)
    assert answers["value"].fillna(0).tolist() == [4, 5, 0, *[1] * 17]
    assert answers["status"].value_counts().to_dict() == {"ok": 19, "missing": 1}
    assert set(answers["mode"]) == {"human"}


def test_a_persons_end_of_input_saves_and_the_last_answer_can_still_be_changed(tmp_path):
    lines = iter(["3"] * 20 + ["b", "5", ""])

    def read(prompt):
        return next(lines)

    answers = answer(MINI, "human", path=tmp_path / "a.json", read=read, write=lambda text: None)
    assert answers["value"].tolist() == [3.0] * 19 + [5.0]

    def ends(prompt):
        raise EOFError

    answers = ask_person(MINI, path=tmp_path / "b.json", read=ends, write=lambda text: None)
    assert set(answers["status"]) == {"missing"}


def test_by_default_answers_lie_in_the_store_one_file_a_sitting(tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path))
    for run, key in ((1, "2"), (2, "4")):
        lines = iter([key, "q"])
        ask_person(MINI, "bo/b", run=run, read=lambda _, lines=lines: next(lines), write=str)
    assert person_answers(MINI, "bo/b", run=1)["value"].iloc[0] == 2.0
    assert person_answers(MINI, "bo/b", run=2)["value"].iloc[0] == 4.0
    assert len(list(tmp_path.rglob("*.json"))) == 2


def test_a_file_of_another_inventory_or_of_no_kind_is_not_overwritten(tmp_path):
    path = tmp_path / "x.json"
    lines = iter(["1", "q"])
    ask_person(TWO, path=path, read=lambda _: next(lines), write=str)
    with pytest.raises(StoreError, match="answers to 'two_axes'"):
        ask_person(MINI, path=path, write=str)
    path.write_text("no")
    with pytest.raises(StoreError, match="no file of answers"):
        person_answers(MINI, path=path)
    assert path.read_text() == "no"


def test_the_form_saves_each_choice_goes_back_and_on_and_shares_the_terminals_file(tmp_path):
    pytest.importorskip("ipywidgets", reason="the form needs the extra 'book'")
    path = tmp_path / "form.json"
    form = person_form(MINI, "cy", path)
    text, choice, buttons = form.children
    back, forward = buttons.children
    assert "I am the life of the party." in text.value
    assert back.disabled
    choice.value = 4.0
    forward.click()
    assert "2 of 20" in text.value
    assert choice.value is None
    choice.value = 2.0
    back.click()
    assert choice.value == 4.0  # shown again, and not answered anew
    choice.value = 5.0
    answers = person_answers(MINI, "cy", path)
    assert answers["value"].tolist()[:2] == [5.0, 2.0]
    assert (answers["status"] == "ok").sum() == 2
    again = person_form(MINI, "cy", path)
    assert "3 of 20" in again.children[0].value
