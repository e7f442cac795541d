from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psychometrics.parsing import is_refusal, parse_reply
from psychometrics.questionnaires import load_questionnaire

MINI = load_questionnaire("ipip20")
OK, OUT, GONE = ("ok", None), ("out_of_range", None), ("missing", None)
REFUSED, BOTH, UNREAD = ("refused", None), ("ambiguous", None), ("unreadable", None)


def read(reply, count=3, **how):
    return parse_reply(reply, MINI, MINI.items[:count], **how)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1: 4\n2: 5\n3: 1", [4, 5, 1]),
        ("1: 4, 2: 5; 3: 1", [4, 5, 1]),
        ("3: 1\n1: 4\n2: 5", [4, 5, 1]),
        ("Here you are:\n\n**1:** 4\n**2.** `5`\n- 3) 1\nThank you!", [4, 5, 1]),
        ("Statement 1: score 4\nstatement 2: 5.\n(3) - 1", [4, 5, 1]),
        ("1: very accurate\n2: 2 (moderately inaccurate)\n3: Very inaccurate - 1", [5, 2, 1]),
        ("1. I am the life of the party: 4\n2. Sympathize with others’ feelings. = 5\n3: 1",
         [4, 5, 1]),
        ("1: 4\n2: 9\n3: -1", [4, OUT, OUT]),
        ("1: 3.5\n2: 0\n3: 1", [OUT, OUT, 1]),
        ("1: 4\n2: 4\n1: 5", [BOTH, 4, GONE]),
        ("1: 4\n1: 4\n2: 9\n2: 3\n3: 2", [4, BOTH, 2]),
        ("1: 4\n4: 5\n0: 2\n17: 1", [4, GONE, GONE]),
        ("1: 4\n2: 4 or 5\n3: perhaps", [4, UNREAD, UNREAD]),
        ("1: 4/5\n2: five\n3: 4 very accurate", [UNREAD, UNREAD, UNREAD]),
        ("1: 4\nI'm sorry, but I cannot answer the others.", [4, REFUSED, REFUSED]),
        ("As an AI language model, I do not have personal habits.", [REFUSED] * 3),
        ("I don’t have feelings.", [REFUSED] * 3),
        ("4\n5\n1", [UNREAD] * 3),
        ("4 5 1", [UNREAD] * 3),
        ("The weather is fine.", [UNREAD] * 3),
        ("", [GONE] * 3),
        ("  \n", [GONE] * 3),
        (None, [GONE] * 3),
        ("1: I like parties, on the whole.\n2: I care.\nSo:\n1: 4\n2: 5\n3: 1", [4, 5, 1]),
    ],
)  # fmt: skip
def test_replies_are_read_strictly(reply, expected):
    expected = [x if isinstance(x, tuple) else ("ok", float(x)) for x in expected]
    assert read(reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("4", ("ok", 4.0)), ("4.", ("ok", 4.0)), ("(4)", ("ok", 4.0)), ("Score: 3", ("ok", 3.0)),
        ("Very accurate.", ("ok", 5.0)), ("1: 4", ("ok", 4.0)), ("7", OUT), ("1.5", OUT),
        ("I think 4", UNREAD), ("4 or 5", UNREAD), ("4 because I like parties", UNREAD),
    ],
)  # fmt: skip
def test_a_single_statement_may_be_answered_by_the_label_alone(reply, expected):
    assert read(reply, count=1) == [expected]


def test_letters_and_turned_options_are_undone():
    turned = [(4, 3, 2, 1, 0)] * 3
    assert read("1: a\n2: (E)\n3: F", labels="alphabetical", orders=turned) == [
        ("ok", 5.0), ("ok", 1.0), OUT,
    ]  # fmt: skip
    assert read("1: 1\n2: 2 = moderately accurate\n3: 5", orders=turned) == [
        ("ok", 5.0), ("ok", 4.0), ("ok", 1.0),
    ]  # fmt: skip
    # The label says one option and the text another: neither is taken.
    assert read("1: 1 = very inaccurate", orders=turned)[0] == UNREAD


def test_options_of_a_questions_own_are_read_by_label_and_text():
    compass = load_questionnaire("two_axes")
    replies = "1: strongly agree\n2: 2\n3: 2 - disagree\n4: agree strongly"
    assert parse_reply(replies, compass, compass.items[:4]) == [
        ("ok", 4.0), ("ok", 2.0), ("ok", 2.0), UNREAD,
    ]  # fmt: skip


@given(
    values=st.lists(st.integers(1, 5), min_size=20, max_size=20),
    order=st.permutations(range(20)),
    mark=st.sampled_from([":", ": ", " = ", ") ", ". "]),
    options=st.permutations(range(5)),
    letters=st.booleans(),
)
def test_any_well_formed_reply_gives_back_every_value(values, order, mark, options, letters):
    names = "ABCDE" if letters else "12345"
    lines = [f"{i + 1}{mark}{names[options.index(values[i] - 1)]}" for i in order]
    labels = "alphabetical" if letters else "numeric"
    read_ = parse_reply("\n".join(lines), MINI, MINI.items, labels, [tuple(options)] * 20)
    assert read_ == [("ok", float(value)) for value in values]


@given(st.text(alphabet=st.characters(blacklist_characters="12345", max_codepoint=0x2FF)))
def test_text_without_a_label_never_gives_a_value(text):
    if not any(option.label in text.lower() for option in MINI.options):
        assert all(value is None and status != "ok" for status, value in read(text))


def test_words_of_refusal_are_told_from_answers():
    assert is_refusal("I'm not able to do that.")
    assert is_refusal("As an assistant, I stay neutral.")
    assert not is_refusal("1: 4\n2: 5")
    assert not is_refusal("I can do that: 1: 4")
