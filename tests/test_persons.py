from __future__ import annotations

import os
import pty
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from psychometrics.asking.ask import ask
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.measures.scoring import scale_scores
from psychometrics.modes.simulated import answers as simulate
from psychometrics.modes.simulated import draw_traits
from psychometrics.questionnaires import load_questionnaire
from psychometrics.store import StoredAnswers

MINI = load_questionnaire("ipip20")
TWO = load_questionnaire("two_axes")


def test_known_traits_come_back_through_the_keys_as_far_as_the_model_lets_them():
    traits = draw_traits(MINI, 1500, seed=4)
    scores = scale_scores(simulate(MINI, traits, seed=4), MINI)
    wide = scores.pivot(index="respondent_id", columns="scale", values="score").loc[traits.index]
    r = pd.DataFrame({a: [wide[a].corr(traits[b]) for b in traits] for a in traits}).to_numpy()
    assert (np.diag(r) > 0.75).all()
    assert np.abs(r - np.diag(np.diag(r))).max() < 0.1  # and not in another scale


def test_the_share_of_each_answer_is_the_models():
    traits = draw_traits(MINI, 20000, seed=1)[["extraversion"]].assign(
        agreeableness=0.0, conscientiousness=0.0, neuroticism=0.0, intellect=0.0
    )
    answers = simulate(MINI, traits, difficulty_sd=0.0, seed=2)
    shares = answers.query("item_id == 'ipip20_2'")["value"].value_counts(normalize=True)
    # P(at least k) = logistic(1.5 (0 - threshold)), by hand
    expected = -np.diff([1, *(1 / (1 + np.exp(1.5 * np.array([-0.9, -0.3, 0.3, 0.9])))), 0])
    assert np.allclose(shares.sort_index(), expected, atol=0.012)


def test_options_that_add_to_categories_follow_the_nominal_model():
    traits = pd.DataFrame({"economic": [1.0] * 8000, "social": [0.0] * 8000})
    traits.index = pd.Index([f"p{i}" for i in range(8000)], name="respondent_id")
    answers = simulate(TWO, traits, discrimination=1.0, seed=3)
    item = next(i for i in TWO.items if i.weights[-1] == (1.0, 0.0))
    odds = np.exp([-1.0, -0.5, 0.5, 1.0])
    shares = answers[answers["item_id"] == item.id]["value"].value_counts(normalize=True)
    assert np.allclose(shares.sort_index(), odds / odds.sum(), atol=0.02)


def test_runs_keep_the_trait_and_draw_chance_anew_and_seeds_repeat():
    how = {"mode": "simulated", "progress": False, "runs": 2, "seed": 5}
    once = ask(MINI, 50, **how)
    pd.testing.assert_frame_equal(once, ask(MINI, 50, **how))
    traits = draw_traits(MINI, 50, seed=5)
    assert ask(MINI, traits, **how)["value"].equals(once["value"])
    first, second = (once[once["run"] == run]["value"].to_numpy() for run in (1, 2))
    assert (first != second).any()
    assert np.corrcoef(first, second)[0, 1] > 0.3


@pytest.mark.parametrize("loaded", [MINI, TWO], ids=["scales", "categories"])
def test_simulated_respondents_do_not_depend_on_how_many_are_asked_or_how_often(loaded):
    how = {"mode": "simulated", "progress": False, "seed": 3, "acquiescence": 1.0}
    few = ask(loaded, 5, **how)
    many = ask(loaded, 9, **how, runs=2)
    many = many[many["run"].eq(1) & many["respondent_id"].isin(few["respondent_id"])]
    pd.testing.assert_frame_equal(few, many.reset_index(drop=True))
    levels = [draw_traits(loaded, count, seed=3) for count in (5, 9)]
    pd.testing.assert_frame_equal(levels[0], levels[1][:5])


def test_acquiescence_agrees_with_both_keys():
    reverse = {item for scale in MINI.scales for item in scale.reverse}

    def together(acquiescence):
        given_ = simulate(MINI, draw_traits(MINI, 500, seed=6), acquiescence=acquiescence, seed=6)
        turned = given_["item_id"].isin(reverse).map({True: "reversed", False: "keyed"})
        means = given_.groupby(["respondent_id", turned])["value"].mean().unstack()
        return means["keyed"].corr(means["reversed"])

    assert together(0.0) < -0.3
    assert together(2.0) > 0.3


# --- custom ----------------------------------------------------------------------------------


def by_function(generate, store=None, **how):
    return ask(MINI, [generate], store, "custom", progress=False, **how)


def test_a_function_is_asked_in_the_runs_order_and_read_like_a_chat():
    seen = []

    def mine(prompt):
        seen.append(prompt[-1]["content"])
        return "1: 2\n2: 7" if len(seen) == 1 else None

    answers = by_function(mine, batch_size=2)
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

    assert set(by_function(lambda m: "xyz", parse=parse)["value"]) == {3.0}
    for reply, own, said in (
        ("x", lambda *a: [3], "parse must return"), ("abcdefgh", parse, "not from 1 to 5"),
        ("x", "strict", "parse should be"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=said):
            by_function(lambda m, reply=reply: reply, parse=own)
    for none, said in ((lambda m: 4, "int instead"), (4, "not 4")):
        with pytest.raises(RespondentError, match=said):
            by_function(none)


def test_replies_of_a_function_are_kept_only_where_it_promises_to_stay_the_same(tmp_path):
    seen = []

    def four(prompt):
        seen.append(prompt)
        return "1: 4"

    for _ in range(2):
        by_function(four, tmp_path, batch_size=1)
    assert len(seen) == 40
    assert not list(tmp_path.rglob("*.parquet"))
    four.respondent_id = "four"
    first, second = (by_function(four, tmp_path, batch_size=1) for _ in range(2))
    assert len(seen) == 60
    pd.testing.assert_frame_equal(first, second)


# --- a person --------------------------------------------------------------------------------

PROGRAM = (
    "import sys; from psychometrics.questionnaires import load_questionnaire; "
    "from psychometrics.asking.ask import ask; "
    "ask(load_questionnaire('ipip20'), ['ann'], sys.argv[1], 'human', progress=False)"
)


def sitting(store, name="ann", questionnaire=MINI, typed=None, run=1):
    lines = iter(typed or [])
    read = (lambda _prompt: next(lines)) if typed is not None else None
    how = {"read": read, "write": str, "run": run}
    return ask(questionnaire, [name], store, "human", progress=False, **how)


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
    shown = _in_terminal(tmp_path, "4\n9\n2\nb\n5\ns\nq\n")
    assert "1 of 20: I am the life of the party." in shown
    assert "Type one of 1, 2, 3, 4, 5" in shown  # for the 9
    assert "(now 2)" in shown  # gone back to the second item
    kept = StoredAnswers(tmp_path, "human", "ipip20", "ann").rows
    assert kept["item_id"].tolist() == ["ipip20_1", "ipip20_2", "ipip20_2", "ipip20_3"]
    assert kept["value"].fillna(0).tolist() == [4, 2, 5, 0]
    shown = _in_terminal(tmp_path, "1\n" * 17 + "\n")
    assert shown.index("4 of 20") < shown.index("5 of 20")
    assert "\n1 of 20:" not in shown
    answers = sitting(tmp_path)
    assert answers["value"].fillna(0).tolist() == [4, 5, 0, *[1] * 17]
    assert answers["status"].value_counts().to_dict() == {"ok": 19, "missing": 1}
    assert set(answers["mode"]) == {"human"}


def test_a_persons_end_of_input_keeps_and_the_last_answer_can_still_be_changed(tmp_path):
    answers = sitting(tmp_path, "a", typed=[*["3"] * 20, "b", "5", ""])
    assert answers["value"].tolist() == [3.0] * 19 + [5.0]
    for _ in range(2):  # back, by way of the store, to an earlier answer
        sitting(tmp_path, "a", typed=["b", "b", "2", "q"])
        sitting(tmp_path, "a", typed=["b", "4", ""])
    assert sitting(tmp_path, "a")["value"].tolist() == [3.0] * 18 + [2.0, 4.0]

    def ends(prompt):
        raise EOFError

    answers = ask(MINI, ["b"], tmp_path, "human", progress=False, read=ends, write=str)
    assert set(answers["status"]) == {"missing"}


def test_sittings_people_and_questionnaires_do_not_mix(tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path))
    for run, key in ((1, "2"), (2, "4")):
        sitting(None, "bo/b", typed=[key, "q"], run=run)
    sitting(None, "bo-b", TWO, typed=["1", "q"])
    assert sitting(None, "bo/b")["value"].iloc[0] == 2.0
    assert sitting(None, "bo/b", run=2)["value"].iloc[0] == 4.0
    assert sitting(None, "bo-b")["value"].isna().all()
