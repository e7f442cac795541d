from __future__ import annotations

import json
import re
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from psychometrics.exceptions import ParameterError
from psychometrics.modes.chat import Chat
from psychometrics.modes.messages import _LANGUAGES, ROLES, _fill, caesar, messages, option_labels
from psychometrics.modes.mode import Asking, Identity
from psychometrics.modes.replies import parse_reply
from psychometrics.paths import data_dir
from psychometrics.progress import Progress
from psychometrics.questionnaires import load_questionnaire

MINI = load_questionnaire("ipip20")


@pytest.mark.parametrize("wording", _LANGUAGES["en"]["wordings"])
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


def test_in_cipher_the_statements_cannot_be_read_and_come_back_whole():
    plain = messages(MINI, MINI.items[:3])[-1]["content"]
    system, user = messages(MINI, MINI.items[:3], cipher=3)
    assert "party" not in user["content"]
    assert caesar(user["content"], -3) == plain
    assert "moved 3 places" in system["content"]


@given(st.text(), st.integers(-60, 60))
def test_the_cipher_turns_back_and_leaves_all_but_latin_letters_alone(text, shift):
    secret = caesar(text, shift)
    assert caesar(secret, -shift) == text
    for a, b in zip(text, secret, strict=True):
        assert (a == b) if not (a.isascii() and a.isalpha()) else a.isupper() == b.isupper()


def test_labels_rise_with_position_and_unknown_names_are_refused():
    assert option_labels(MINI.options, "alphabetical") == list("ABCDE")
    zero_up = load_questionnaire("lot-r", texts=False)
    assert option_labels(zero_up.options) == ["0", "1", "2", "3", "4"]
    for wrong in ({"role": "clown"}, {"wording": "v6"}, {"labels": "roman"}, {"reply": "xml"}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            messages(MINI, MINI.items, **wrong)
    with pytest.raises(ParameterError, match="no items"):
        messages(MINI, [])
    for role in ({"a": 1}, ["hero"], 5):
        with pytest.raises(ParameterError, match="There is no role"):
            messages(MINI, MINI.items, role)


def test_a_wording_and_role_of_the_users_may_hold_braces():
    user = messages(MINI, MINI.items[:1], "I am {x}, a sailor.", "{statements} {what}?")
    assert user[0]["content"].startswith("I am {x}, a sailor.")
    assert user[1]["content"] == "1. I am the life of the party. {what}?"
    assert _fill("{a}{b}{", {"a": "{b}", "b": "2"}) == "{b}2{"


# --- replies ---------------------------------------------------------------------------------

OK, OUT, GONE = ("ok", None), ("out_of_range", None), ("missing", None)
REFUSED, BOTH, UNREAD = ("refused", None), ("ambiguous", None), ("unreadable", None)


def read(reply, count=3, **how):
    return parse_reply(reply, MINI, MINI.items[:count], **how)


READ = [
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
    ("1: 4/5\n2: five\n3: 4 very accurate", [4, 5, UNREAD]),
    ("1: 3/4\n2: 4 out of 5\n3: 4/55", [UNREAD, 4, UNREAD]),
    ("1: 4\nI'm sorry, but I cannot answer the others.", [4, REFUSED, REFUSED]),
    ("As an AI language model, I do not have personal habits.", [REFUSED] * 3),
    ("I don’t have feelings.", [REFUSED] * 3),
    ("4\n5\n1", [4, 5, 1]),
    ("4\n\nvery accurate\n9", [4, 5, OUT]),
    ("1\n2\n3", [UNREAD] * 3),  # numbers of the statements?
    ("4\n5", [UNREAD] * 3),
    ("Sure!\n4\n5\n1", [UNREAD] * 3),
    ("4\nfour\n1", [4, 4, 1]),
    # In words, and with words before.
    ("1. two\n2) Four\n3 : quatre", [2, 4, 4]),
    ("1: nine\n2: four - moderately accurate\n3: four very accurate", [OUT, 4, UNREAD]),
    ("1: four or five\n2: not two\n3: two, three", [UNREAD] * 3),
    ("1: I rate it 4/5\n2: I'd give it a 5\n3: I would rate this as one.", [4, 5, 1]),
    ("1: I would not rate it 4\n2: I rate it 4 or 5\n3: I rate 3: 5", [UNREAD] * 3),
    ("Sure! 1: 4, 2: 5", [4, 5, GONE]),
    ("Of course: 1) four\nHere are my answers: 2) 5, 3) 1", [4, 5, 1]),
    ("Sure, 4 and 5 and 1", [UNREAD] * 3),
    # With a remark.
    ("1: 4 (agree)\n2: 5, I do.\n3: Very inaccurate. I never do", [4, 5, 1]),
    ("1: 4 - moderately accurate\n2: 4 (very accurate)\n3: 1: it is wrong", [4, UNREAD, 1]),
    ("1: 4, or more\n2: 4 (not 5)\n3: 2, as an AI I have no moods.", [UNREAD] * 3),
    ("1: 4, three: 5\n2: 3 (not at all)\n3: 5; 4", [UNREAD] * 3),
    # In a table.
    ("| No. | Score |\n|---|---|\n| 1 | 4 |\n| 2 | **5** |\n| 3 | 9 |", [4, 5, OUT]),
    ("1 | I am the life of the party. | 4\n2 | 5 | I do\n3 | 1 | 2", [4, 5, UNREAD]),
    ("4 5 1", [UNREAD] * 3),
    ("The weather is fine.", [UNREAD] * 3),
    ("", [GONE] * 3),
    (None, [GONE] * 3),
    ("1: I like parties, on the whole.\n2: I care.\nSo:\n1: 4\n2: 5\n3: 1", [4, 5, 1]),
    ("-1: 4\n2: 5\n3: 1", [GONE, 5, 1]),  # minus one is no statement's number
    ("- 1: 4\n-2) 5", [4, GONE, GONE]),  # a bullet has a space behind it
    ("1: 3\n2: 2\n3: 1\nCorrection: 1: 5", [BOTH, 2, 1]),
    ("1: 3\n2: 2\nSorry, 2: 2.", [3, 2, GONE]),
    ("Correction: 1: 5", [UNREAD] * 3),  # of nothing that was said
    ("<think>\n1: 4\n2: 5\nHm,", [GONE] * 3),
    ("<think>1: 3\n2: 3</think>\n1: 4\n2: 5\n3: 1", [4, 5, 1]),
    ("1: 4.0\n2: 4.5\n3: 9.0", [4, OUT, OUT]),
    ("１：４\n2: ５\n3: ٣", [4, 5, 3]),
    ("1: 4 2: 5 3: 1", [UNREAD, GONE, GONE]),
    # In JSON.
    ('{"1": 4, "2": 5, "3": 1}', [4, 5, 1]),
    ('```json\n{"1": 4, "2": "5", "3": 1.0}\n```', [4, 5, 1]),
    ('Here you are: {"1": "very accurate", "2": "2 = moderately inaccurate", "3": 1}',
     [5, 2, 1]),
    ('{"answers": {"1": 4, "statement 2": 5, "Q3": 1}}', [4, 5, 1]),
    ('{"explanation": "2: 3, I think", "1": 4, "2": 5, "3": 1}', [4, 5, 1]),
    ('[{"id": 1, "answer": 4}, {"id": "ipip20_2", "score": 5}, {"number": "3", "value": 1}]',
     [4, 5, 1]),
    ('{"responses": [{"statement": "I am the life of the party.", "rating": 4}]}',
     [4, GONE, GONE]),
    ('{"1": {"reason": "2: 5", "answer": 4}, "2": {"reason": "none"}, "3": null}',
     [4, UNREAD, GONE]),
    ('{"1": 4, "1": 5, "2": 3}', [BOTH, 3, GONE]),
    ('{"1": 9, "2": 3.5, "3": "perhaps"}', [OUT, OUT, UNREAD]),
    ('{"1": [4, 5], "2": true, "4": 3}', [UNREAD, UNREAD, GONE]),
    ('{"1": 4, "2": 5, "3":', [4, 5, GONE]),  # cut off
    ('{"1": 4}\n2: 5\n{"3": 1}', [4, 5, 1]),
    ('{"1": 4}\n1: 5', [BOTH, GONE, GONE]),
    ("[4, 5, 1]", [UNREAD] * 3),  # of which statement?
    ('{"error": "As an AI, I have no moods."}', [REFUSED] * 3),
    ("<think>{\"1\": 3}</think>{\"1\": 4, \"2\": 5, \"3\": 1}", [4, 5, 1]),
    ("[[[[" * 2000, [UNREAD] * 3),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "expected"), READ)
def test_replies_are_read_strictly(reply, expected):
    assert read(reply) == [x if isinstance(x, tuple) else ("ok", float(x)) for x in expected]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("4", ("ok", 4.0)), ("4.", ("ok", 4.0)), ("(4)", ("ok", 4.0)), ("Score: 3", ("ok", 3.0)),
        ("I rate it 4/5", ("ok", 4.0)), ("Four.", ("ok", 4.0)), ("I rate it", UNREAD),
        ("Very accurate.", ("ok", 5.0)), ("1: 4", ("ok", 4.0)), ("7", OUT), ("1.5", OUT),
        ("I think 4", UNREAD), ("-1: 4", UNREAD), ("4 or 5", UNREAD),
        ("4\n\nI often do.", ("ok", 4.0)), ("Answer: 4 (true)", ("ok", 4.0)), ("4\n5", UNREAD),
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


# --- replies in JSON -------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.booleans())
def test_any_object_of_labels_gives_back_every_value_also_with_turned_options(values, turned):
    items = MINI.items[: len(values)]
    orders = [(4, 3, 2, 1, 0)] * len(items) if turned else None
    text = json.dumps({str(n): value for n, value in enumerate(values, start=1)})
    expected = [("ok", float(6 - v if turned else v)) for v in values]
    assert parse_reply(text, MINI, items, orders=orders) == expected


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["1", "id", "answer"]), inner)))  # fmt: skip
def test_whatever_json_comes_nothing_but_a_status_and_value_goes_out(content):
    for status, value in read(json.dumps(content)):
        assert (status == "ok") == (value is not None)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"answer": 4, "reason": "I went to 2 parties."}', ("ok", 4)),
        ('{"rating": "very accurate"}', ("ok", 5)),
        ('[{"answer": {"value": 2}}]', ("ok", 2)),
        ('{"value": 4, "label": "moderately accurate"}', ("ok", 4)),
        ('{"answer": 4, "score": 2}', ("ambiguous", None)),
        ('{"answer": 9}', ("out_of_range", None)),
        ('{"item": 2, "answer": 4}', ("unreadable", None)),
        ('{"confidence": 4}', ("unreadable", None)),
    ],
)
def test_a_single_statement_may_be_answered_by_an_object_with_an_answer(reply, expected):
    assert read(reply, count=1) == [expected]
    assert [status for status, _ in read(reply.replace("item", "no"), count=2)] != ["ok", "ok"]


def test_true_and_false_of_json_answer_true_and_false():
    own = MINI.items[0].model_copy(
        update={"options": (MINI.options[0].model_copy(update={"label": "True"}),
                            MINI.options[1].model_copy(update={"label": "False"}))}
    )  # fmt: skip
    assert parse_reply('{"1": false}', MINI, [own]) == [("ok", 2.0)]


def test_json_is_asked_for_in_words_and_its_schema_allows_the_labels_alone():
    system, _ = messages(MINI, MINI.items[:2], reply="json")
    assert 'as in {"1": 5}.' in system["content"]
    assert "one line" not in system["content"]
    thinking = messages(MINI, MINI.items[:2], think=True, reply="json")[0]["content"]
    assert "Explain yourself first." in thinking


def test_a_schema_lets_no_other_reply_pass_than_the_labels():
    def answers(items, **how):
        how = {**Chat.conditions, "reply": "json_schema", "shuffle": False, **how}
        questionnaire = MINI.model_copy(update={"items": items})
        asking = Asking(None, Identity("m"), None, Progress(disable=True), how)
        talk, *_ = Chat("chat").talks(questionnaire, asking)
        return next(talk).response_format["json_schema"]["schema"]

    schema = answers(MINI.items[:2], labels="alphabetical", think=True)
    assert schema["required"] == ["explanation", "1", "2"]
    assert schema["properties"]["1"] == {"type": "string", "enum": list("ABCDE")}
    halves = [o.model_copy(update={"value": o.value / 2}) for o in MINI.options]
    own = MINI.items[0].model_copy(update={"options": tuple(halves)})
    assert answers((own,))["properties"]["1"] == {
        "type": "number",
        "enum": [0.5, 1.0, 1.5, 2.0, 2.5],
    }


# --- other languages -------------------------------------------------------------------------


@pytest.mark.parametrize("wording", _LANGUAGES["en"]["wordings"])
@pytest.mark.parametrize("reply", ["lines", "json", "choice"])
def test_a_spanish_questionnaire_is_asked_in_spanish_from_end_to_end(wording, reply):
    gad7 = load_questionnaire("gad7_es")
    english = re.compile(r"\b(the|you|your|and|is|are|write|scale|with|nothing|statement)\b", re.I)
    for role in ROLES:
        for think in (False, True):
            talk = messages(gad7, gad7.items, role, wording, think, reply=reply)
            whole = " ".join(part["content"] for part in talk)
            assert not english.search(whole), english.search(whole)
            assert whole.count("0 = Ningún día, 1 = Varios días") == 1
    assert "cifrado" in messages(gad7, gad7.items, cipher=2)[0]["content"]


def test_every_language_has_each_text_with_its_gaps():
    def shape(part):
        if isinstance(part, dict):
            return {key: shape(value) for key, value in part.items() if key != "personas"}
        return len(part) if isinstance(part, list) else sorted(re.findall(r"{[^}]*}", part))

    texts = yaml.safe_load((data_dir() / "messages.yml").read_text(encoding="utf-8"))
    assert set(texts) == {"en", "de", "es", "fr"}
    assert all(shape(texts[name]) == shape(texts["en"]) for name in texts)


@pytest.mark.parametrize(
    "reply",
    ["Als KI habe ich keine Gefühle.", "Das kann ich nicht sagen, tut mir leid.",
     "En tant qu'IA, je n'ai pas d'émotions."],
)  # fmt: skip
def test_german_and_french_refusals_are_read(reply):
    assert read(reply) == [REFUSED] * 3
    assert read("Aussage 1: 4\nFrage 2: Antwort: 5\nÉnoncé 3: 1")[:2] == [("ok", 4), ("ok", 5)]


@pytest.mark.parametrize(
    "line",
    ["1: 4 blah {}\n", "1: 4, ", "|1|4 {}|\n", "zz ", '[{{"a": {}}},', "٣", ">", "> - ", "z<a>"],
)
def test_a_reply_that_does_not_end_is_read_within_a_second(line):
    long = "".join(line.format(number) for number in range(900_000 // len(line)))
    began = time.process_time()
    assert read(long) == [UNREAD] * 3
    read(long[:100_000])  # the longest that is read
    assert time.process_time() - began < 1


def test_thinking_may_be_as_long_as_it_likes_before_the_answers():
    assert read("<think>" + "I wonder. " * 50_000 + "</think>\n1: 4\n2: 4\n3: 4") == [("ok", 4)] * 3


def test_spanish_replies_are_read():
    gad7 = load_questionnaire("gad7_es")
    reply = "1: Varios días\nPregunta 2: 3\n3: Puntuación: 0\nLo siento, no puedo responder."
    assert parse_reply(reply, gad7, gad7.items[:4]) == [
        ("ok", 1.0), ("ok", 3.0), ("ok", 0.0), REFUSED,
    ]  # fmt: skip
    assert parse_reply("Como modelo de lenguaje no siento.", gad7, gad7.items[:1]) == [REFUSED]


# --- replies with more than answers --------------------------------------------------------------

TEXTS = [option.label for option in MINI.options]
GAD7 = load_questionnaire("gad7")


def read_gad7(reply, count=1, **how):
    return parse_reply(reply, GAD7, GAD7.items[:count], **how)


@given(
    st.integers(1, 5),
    st.sampled_from([1, 3, 20]),
    st.sampled_from([": ", " = ", ". ", " - ", ") "]),
    st.sampled_from(["\n", ", ", "; "]),
    st.booleans(),
)
def test_options_listed_with_their_labels_are_no_answers(value, count, mark, end, turned):
    order = (4, 3, 2, 1, 0) if turned else (0, 1, 2, 3, 4)
    scale = end.join(f"{n}{mark}{TEXTS[i].capitalize()}" for n, i in enumerate(order, start=1))
    orders = [order] * count
    assert read(scale, count, orders=orders) == [UNREAD] * count

    answers = "\n".join(f"{n}: {value}" for n in range(1, count + 1))
    expected = [("ok", 6.0 - value if turned else float(value))] * count
    assert read(f"({scale})\n\n{answers}", count, orders=orders) == expected
    if count == 1:
        assert read(f"{scale}\n\nMy answer: {value}", orders=orders, count=1) == expected


def test_options_listed_in_json_are_no_answers():
    scale = {str(n): option.label for n, option in enumerate(GAD7.options)}
    for reply in ({"options": scale}, {"scale": scale, "answers": [1, 2, 0]}):
        assert read_gad7(json.dumps(reply), 3) == [UNREAD] * 3
    reply = json.dumps({"legend": scale, "2": 3, "1": 0, "3": 1}, indent=1)
    assert read_gad7(reply, 3) == [("ok", 0.0), ("ok", 3.0), ("ok", 1.0)]


@pytest.mark.parametrize("mark", [": ", " = ", ". "])
def test_some_options_with_their_labels_do_not_answer_a_single_statement(mark):
    ends = f"1{mark}{TEXTS[0]}\n5{mark}{TEXTS[-1].title()}\n\n"
    assert read(f"{ends}My answer: 4", 1) == read(f"{ends}4", 1) == [("ok", 4.0)]
    assert read(ends, 1) == read(f"{ends}4 or 5", 1) == [UNREAD]
    downwards = "\n".join(f"{n}{mark}{TEXTS[n - 1]}" for n in (5, 4, 3, 2, 1))
    assert read(f"{downwards}\nAnswer: 2", 1) == [("ok", 2.0)]
    downwards = "\n".join(f"{n}{mark}{GAD7.options[n].label}" for n in (3, 2, 1, 0))
    assert read_gad7(f"{downwards}\nAnswer: 2") == [("ok", 2.0)]
    assert read(f"1{mark}{TEXTS[0]}\nI am not.", 1) == [("ok", 1.0)]
    counted = f"1{mark}Not at all\n4{mark}Nearly every day"
    assert read_gad7(counted) == read_gad7(f"{counted}\nI pick 3") == [UNREAD]


def test_a_number_after_counted_options_may_be_a_place_or_a_label():
    options = "\n".join(f"{n}) {option.label}" for n, option in enumerate(GAD7.options, start=1))
    assert read_gad7(f"{options}\n\nI pick 2") == [UNREAD]
    assert read_gad7(f"{options}\n\nAs an AI, I have no moods.") == [REFUSED]


def test_answers_by_text_that_go_on_after_the_options_order_are_answers():
    texts = [option.label for option in GAD7.options]
    lines = [f"{n}: {text}" for n, text in enumerate([*texts, *texts[:3]], start=1)]
    assert read_gad7("\n".join(lines), 7) == [("ok", v) for v in (0, 1, 2, 3, 0, 1, 2)]
    assert read_gad7("1: Several days\n2: Nearly every day", 2) == [("ok", 1.0), ("ok", 3.0)]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("0) 2\n1) 0\n2) 1", [UNREAD] * 3),
        ("| 0 | 2 |\n| 1 | 0 |\n| 2 | 1 |", [UNREAD] * 3),
        ('{"q0": 2, "q1": 0, "q2": 1}', [UNREAD] * 3),
        (
            '[{"item": 0, "score": 2}, {"item": 1, "score": 0}, {"item": 2, "score": 1}]',
            [UNREAD] * 3,
        ),
        ('{"0": 2, "1": null, "2": 1}', [UNREAD] * 3),
        ("2: 1\n1: 0\n0: 2", [UNREAD] * 3),
        ("0 = not at all\n1: 2\n2: 0\n3: 1", [2, 0, 1]),
        ("0. Introduction\n1: 2\n2: 0", [2, 0, GONE]),
        ("0\n1\n0", [0, 1, 0]),
        ("0: Not at all\n0: Not at all\n1: Several days", [UNREAD] * 3),
    ],
)
def test_statements_counted_from_0_are_not_read_as_counted_from_1(reply, expected):
    expected = [x if isinstance(x, tuple) else ("ok", float(x)) for x in expected]
    assert read_gad7(reply, 3) == expected
    assert read_gad7("0: Not at all") == [("ok", 0.0)]


@pytest.mark.parametrize(
    "reply", ["null", "1: Null.", '{"1": "null"}', '{"score": "NULL"}', "null (0 of 3)"]
)
def test_null_is_no_answer(reply):
    assert read_gad7(reply) == [UNREAD]


@pytest.mark.parametrize(
    "reply",
    [">=1", "> = 1", ">1.", "1: > 1)", "1: >= 1", "!=1", "1: != 1", "0–1", "1 – 2", "1-2", "—1",
     "1: –1"],
)  # fmt: skip
def test_bounds_and_ranges_are_no_labels(reply):
    assert read_gad7(reply) == [UNREAD]


def test_marks_of_a_quotation_or_list_before_an_answer_stay_harmless():
    replies = ["> 1: 2", ">> 1. 2", "- 1: 2", "• 1) 2", "1 - 2", "> More than half the days"]
    for reply in [*replies, "1 – More than half the days"]:
        assert read_gad7(reply) == [("ok", 2.0)]
    assert read_gad7("1 – 0") == [("ok", 0.0)]
    assert read_gad7("1 – 2\n2 - 0\n3 – 1", 3) == [("ok", 2.0), ("ok", 0.0), ("ok", 1.0)]


@pytest.mark.parametrize(
    ("siblings", "fits"),
    [({"max": 5}, False), ({"max_score": 3}, True), ({"out_of": 7}, False),
     ({"range": [0, 3]}, True), ({"range": [1, 3]}, False), ({"scale": "1 to 4"}, False),
     ({"scale": "0-3"}, True),
     ({"scale": "GAD-7"}, True), ({"scale": "4-point Likert"}, True),
     ({"scale": {"min": 0, "max": 100}}, False),
     ({"scale": {"0": "not at all", "3": "nearly every day"}}, True), ({"total": 12}, True),
     ({"rating_scale": "1-10"}, False), ({"max_value": 3, "scale": "0 to 3"}, True),
     ({"scale_min": 0, "scale_max": 3}, True), ({"subscale": 4}, True)],
)  # fmt: skip
def test_an_answer_in_json_on_another_scale_is_unreadable(siblings, fits):
    expected = [("ok", 2.0) if fits else UNREAD]
    for answer in ({"answer": 2}, {"1": 2}, {"id": 1, "rating": 2}):
        assert read_gad7(json.dumps(answer | siblings)) == expected
    assert read_gad7(json.dumps({"1": {"value": 2} | siblings})) == expected
    assert read_gad7(json.dumps({"answers": [{"id": 1, "value": 2}]} | siblings)) == expected


@pytest.mark.parametrize(
    "words",
    [
        "Hold on,",
        "After some thought:",
        "No wait.",
        "Let me revise that to",
        "(I mean",
        "Nein, lieber",
    ],
)
def test_another_answer_after_any_words_makes_a_statement_ambiguous(words):
    assert read(f"1: 4\n2: 5\n3: 1\n{words} 2: 3") == [("ok", 4.0), BOTH, ("ok", 1.0)]
    assert read(f"1: 4\n2: 5\n3: 1\n{words} 2: 5") == [("ok", 4.0), ("ok", 5.0), ("ok", 1.0)]
    assert read(f"{words} 2: 5") == [UNREAD] * 3


@pytest.mark.parametrize(
    "line",
    ["Sum: 4 + 2 = 5", "Sum: 4 + 1 = 2", "(1 = very inaccurate, 5 = very accurate)", "MINI-1: 3",
     "Statement 3 of 1: 2", "At 1:30 I left.", "Total: 12", "Sorry, 1: 4."],
)  # fmt: skip
def test_other_numbers_after_the_answers_revoke_nothing(line):
    answers = [("ok", 4.0), ("ok", 5.0), ("ok", 1.0)]
    assert read(f"1: 4\n2: 5\n3: 1\nThat is all. {line}") == answers


@pytest.mark.parametrize(
    "reply",
    ["<survey>\n1: 4\n</survey>", "<json>{\"answer\": 4}</json>", "4 – Es macht mir großen Spaß.",
     "<likert_response>4</likert_response>", "4（比较准确）", "4 (Довольно точно)",
     "4 - I never miss a chance.", "4 - I feel uncertain in new groups", "4, ich bin nie allein",
     '{"answer": 4, "total": 4, "max_score": 5}', '{"answer": 4, "time_range": "last 2 weeks"}',
     '{"answer": 4, "scale": {"min": 1, "max": 5, "points": 5}}',
     '{"answer": 4, "scale": "5=very accurate, 1=very inaccurate"}'],
)  # fmt: skip
def test_marks_reasons_and_scales_around_an_answer_leave_it_as_it_is(reply):
    assert read(reply, 1) == [("ok", 4.0)]


@pytest.mark.parametrize(
    "remark",
    [". Scratch that.", ", just kidding", " (unless I am tired)", " - oops", ", falsch", ": never",
     " (wrong)", ", nunca", "（我不确定）", " (не так)", "، ليس صحيحا", " - niet"],
)  # fmt: skip
def test_a_remark_that_may_revoke_an_answer_makes_it_unreadable(remark):
    assert read(f"1: 4{remark}", 1) == [UNREAD]


@pytest.mark.parametrize(
    ("answer", "value"),
    [("1 (never)", 1), ("1, that is false", 1), ("4 - I like it", 4), ("5 (très vrai)", 5),
     ("4 🙂", None), ("4 (😀)", 4)],
)  # fmt: skip
def test_other_remarks_leave_an_answer_as_it_is(answer, value):
    assert read(f"1: {answer}", 1) == [UNREAD if value is None else ("ok", float(value))]


@pytest.mark.parametrize("label", range(4))
@pytest.mark.parametrize(
    "form",
    ["{} of 3", "1: {} out of 3", "{word} ({})", "{} (= {word})", r"\boxed{{{}}}",
     r"$\boxed{{{word}}}$",
     "The answer is $\\boxed{{{}}}$.", "I would say {}", "I’d go with {word}.", "Antwoord: {}",
     "回答：{}", "Відповідь: {}", "उत्तर: {}"],
)  # fmt: skip
def test_plain_answers_are_read_in_more_forms(form, label):
    word = ("zero", "one", "two", "three")[label]
    assert read_gad7(form.format(label, word=word)) == [("ok", float(label))]


@pytest.mark.parametrize("reply", ["I'm only a language model.", "I’d rather not answer this."])
def test_refusals_are_read_in_more_forms(reply):
    assert read_gad7(reply) == [REFUSED]
