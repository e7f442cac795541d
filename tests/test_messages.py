from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psychometrics.exceptions import ParameterError
from psychometrics.messages import (
    PERSONAS,
    ROLES,
    WORDINGS,
    caesar,
    filled,
    messages,
    option_labels,
    without_numbers,
)
from psychometrics.questionnaires import load_questionnaire

MINI = load_questionnaire("ipip20")


def test_the_papers_roles_and_five_wordings_are_there_and_differ():
    assert set(ROLES) == {"default", "none", "ordinary", "hero", "liar", "psychopath"}
    assert set(PERSONAS) == set(ROLES) - {"none"}
    assert list(WORDINGS) == ["v1", "v2", "v3", "v4", "v5"]
    asked = {w: messages(MINI, MINI.items, wording=w)[-1]["content"] for w in WORDINGS}
    assert len(set(asked.values())) == 5


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("role", ROLES)
def test_every_prompt_has_each_statement_once_and_the_scale_once(role, wording):
    system, user = messages(MINI, MINI.items, role=role, wording=wording)
    assert ROLES[role] in system["content"]
    for number, item in enumerate(MINI.items, start=1):
        assert user["content"].count(f"\n{number}. {MINI.statement(item)}") == 1
    assert user["content"].count("1 = very inaccurate") == 1
    assert "{" not in user["content"]


def test_no_old_meaning_of_a_number_stays_beside_a_turned_scale():
    user = messages(MINI, MINI.items[:2], orders=[(4, 3, 2, 1, 0)] * 2)[-1]["content"]
    assert "1 = very accurate, 2 = moderately accurate" in user
    assert "denotes" not in user
    assert not re.search(r"1 (denotes|=) '?very inaccurate", user)


def test_statements_with_options_of_their_own_carry_them():
    own = MINI.items[1].model_copy(update={"options": MINI.options[:2]})
    user = messages(MINI, [MINI.items[0], own], labels="alphabetical")[-1]["content"]
    assert "1. I am the life of the party. (A = very inaccurate, B = moderately" in user
    assert "feelings. (A = very inaccurate, B = moderately inaccurate)" in user


def test_thinking_asks_for_an_explanation_first_and_the_lines_at_the_end():
    system, user = messages(MINI, MINI.items[:1], think=True)
    assert "step by step" in user["content"]
    assert "Explain yourself first" in system["content"]
    assert "nothing else" not in system["content"]


def test_in_cipher_the_statements_cannot_be_read_and_come_back_whole():
    plain = messages(MINI, MINI.items[:3])[-1]["content"]
    system, user = messages(MINI, MINI.items[:3], shift=3)
    assert "party" not in user["content"]
    assert caesar(user["content"], -3) == plain
    assert "moved 3 places" in system["content"]


@given(st.text(), st.integers(-60, 60))
def test_the_cipher_turns_back_and_leaves_all_but_latin_letters_alone(text, shift):
    secret = caesar(text, shift)
    assert caesar(secret, -shift) == text
    for a, b in zip(text, secret, strict=True):
        assert (a == b) if not (a.isascii() and a.isalpha()) else a.isupper() == b.isupper()


def test_shift_three_is_caesars():
    assert caesar("AXZ axz 3!", 3) == "DAC dac 3!"


def test_labels_rise_with_position_and_unknown_names_are_refused():
    assert option_labels(MINI.options, "alphabetical") == list("ABCDE")
    zero_up = load_questionnaire("lot-r", texts=False)
    assert option_labels(zero_up.options) == ["0", "1", "2", "3", "4"]
    for wrong in ({"role": "clown"}, {"wording": "v6"}, {"labels": "roman"}):
        with pytest.raises(ParameterError, match=next(iter(wrong.values()))):
            messages(MINI, MINI.items, **wrong)
    with pytest.raises(ParameterError, match="no items"):
        messages(MINI, [])


def test_a_wording_and_role_of_the_users_may_hold_braces():
    user = messages(MINI, MINI.items[:1], "I am {x}, a sailor.", "{statements} {what}?")
    assert user[0]["content"].startswith("I am {x}, a sailor.")
    assert user[1]["content"] == "1. I am the life of the party. {what}?"
    assert filled("{a}{b}{", {"a": "{b}", "b": "2"}) == "{b}2{"


def test_only_sentences_with_numbers_are_left_out_of_instructions():
    text = "Say how you are. 1 denotes 'no'. Be quick! Here are the statements, score them:"
    assert without_numbers(text) == "Say how you are. Be quick!"
