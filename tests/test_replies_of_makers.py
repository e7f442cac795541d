"""Thoughts, refusals and signs in the forms of all makers, over HTTP, from files and from here."""

from __future__ import annotations

import json
import re
import shutil

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from psychometrics.answers.files import read_answers
from psychometrics.modes import generation
from psychometrics.modes.replies import _remove_thoughts, parse_reply
from psychometrics.questionnaires import load_questionnaire

from .test_respondents_chat import FOUR, QUICK, ask_chat, raw_server, sends

MINI = load_questionnaire("ipip20")
GAD7 = load_questionnaire("gad7")

PAIRS = [
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"), ("<Reason>", "</Reason>"), ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"), ("<seed:think>", "</seed:think>"),
    ("<scratchpad>", "</scratchpad>"), ("<reasoning_content>", "</reasoning_content>"),
    ("<think budget=9>", "</think>"),
    ("<unused94>thought\n", "<unused95>"), ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>",
     "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("analysis", "assistantfinal"),
]  # fmt: skip
LONE = [end for _, end in PAIRS if not end.startswith("<|end|>")]
DIGITS = [
    "0123456789",
    "０１２３４５６７８９",
    "٠١٢٣٤٥٦٧٨٩",
    "۰۱۲۳۴۵۶۷۸۹",
    "०१२३४५६७८९",
    "๐๑๒๓๔๕๖๗๘๙",
]
SEPARATORS = [":", "：", "、", "・", "،", "۔", "．", "。", "।", ". ", ") ", "）", " = ", "＝"]
INVISIBLE = ["", "\u200e", "\u200f", "\u2066", "\u2067", "\u2068", "\u2069", "\u202b", "\ufeff"]


def lines(values):
    return "\n".join(f"{n}: {value}" for n, value in enumerate(values, start=1))


values = st.lists(st.integers(1, 5), min_size=3, max_size=3)
thoughts = st.builds(
    "{}\n{}\n".format, st.sampled_from(["Hm.", "I am an AI.", "1: 3, 2: 9", "3"]), values.map(lines)
)


@given(values, thoughts, st.sampled_from(PAIRS))
def test_an_answer_after_thoughts_is_read_and_the_thoughts_are_not(answer, thought, pair):
    begin, end = pair
    expected = [("ok", float(value)) for value in answer]
    for text in (lines(answer), json.dumps(dict(zip("123", answer, strict=True)))):
        assert parse_reply(begin + thought + end + text, MINI, MINI.items[:3]) == expected


@given(values, thoughts, st.sampled_from(LONE))
def test_what_precedes_a_mark_that_only_ends_thoughts_is_thinking(answer, thought, end):
    expected = [("ok", float(value)) for value in answer]
    assert parse_reply(thought + end + lines(answer), MINI, MINI.items[:3]) == expected
    assert parse_reply(thought + end, MINI, MINI.items[:3]) == [("missing", None)] * 3


@given(thoughts, st.sampled_from(PAIRS))
def test_thoughts_that_never_end_are_no_answer(thought, pair):
    assert parse_reply(pair[0] + thought, MINI, MINI.items[:3]) == [("missing", None)] * 3


NAMES = st.from_regex(r"[a-z]{3,8}(_[a-z]{2,5})?", fullmatch=True).filter(
    lambda name: (
        not re.search(
            "answer|score|rat|choice|opt|val|label|resp|repl|result|out|sol|box|final|div|span|small|bod|"
            "html|code|pre|str|cent|sub|sup|tab|head|bos|begin|end|assist|im_|start|punt|antw",
            name,
        )
    )
)


@given(values, thoughts, NAMES, st.sampled_from(["<{}> </{}>", "<|{}|> <|/{}|>", "<|{}> <{}|>"]))
def test_nothing_between_marks_of_any_other_name_is_an_answer(answer, thought, name, form):
    begin, end = form.format(name, name).split()
    expected = [("ok", float(value)) for value in answer]
    assert parse_reply(begin + thought + end + lines(answer), MINI, MINI.items[:3]) == expected
    for reply in (begin + thought + end, begin + thought):
        assert parse_reply(reply, MINI, MINI.items[:3]) == [("missing", None)] * 3


@given(
    values, st.sampled_from(["answer", "final_answer", "Response", "scores", "output", "result"])
)
def test_marks_of_an_answer_or_of_a_texts_form_hide_no_answer(answer, name):
    expected = [("ok", float(value)) for value in answer]
    forms = [f"<{name}>\n{{}}\n</{name}>", f"<{name}>{{}}</{name}>", f"<|{name}|>{{}}<|/{name}|>",
             "<pre>\n{}\n</pre>", "<|im_start|>assistant\n{}<|im_end|>\n<|im_start|>user\n1: 3",
             "{}</s>", "{}\n<|endoftext|>1: 3", "In the form <number>: <score>\n{}",
             "{}\nThat is <b>all</b>."]  # fmt: skip
    for form in forms:
        assert parse_reply(form.format(lines(answer)), MINI, MINI.items[:3]) == expected


def test_a_decimal_without_its_zero_is_no_label_and_a_keycap_is_one():
    for reply in (".4", "1: .4", "Answer: .4"):
        assert parse_reply(reply, MINI, MINI.items[:1]) == [("unreadable", None)]
    assert parse_reply("4\ufe0f\u20e3", MINI, MINI.items[:1]) == [("ok", 4.0)]
    assert parse_reply("Q1: 4\nQ2: 5", MINI, MINI.items[:2]) == [("ok", 4.0), ("ok", 5.0)]


def test_words_that_resemble_the_name_of_a_channel_are_no_mark():
    for text in ("analysis: I choose 4", "finally 4", "Final answer: 4", "I think 4"):
        assert _remove_thoughts(text) == text


@given(values, st.sampled_from(DIGITS), st.sampled_from(SEPARATORS), st.sampled_from(INVISIBLE))
def test_signs_of_other_scripts_and_marks_of_direction_lose_no_answer(
    answer, digits, separator, mark
):
    written = lines(answer).replace(": ", separator).translate(str.maketrans(DIGITS[0], digits))
    reply = "\n".join(mark + line + mark for line in written.splitlines())
    assert parse_reply(reply, MINI, MINI.items[:3]) == [("ok", float(v)) for v in answer]


def test_a_comma_of_another_script_separates_answers_unless_each_statement_has_a_line():
    answers = [("ok", 4.0), ("ok", 2.0), ("ok", 5.0)]
    assert parse_reply("1：4、2：2、3：5", MINI, MINI.items[:3]) == answers
    unread = parse_reply("4، 2، 5", MINI, MINI.items[:3])
    assert not any(status == "ok" for status, _ in unread)


WORDS = ["Final answer", "**Final Answer:**", "If I had to pick", "My choice would be", "So",
         "Therefore, I say", "Meine Antwort", "Mi respuesta final", "Ma réponse ", "Anything but",
         "the rating"]  # fmt: skip


@given(st.sampled_from(WORDS), st.integers(1, 5), st.sampled_from(["", "+", "0"]))
def test_a_label_after_words_is_never_out_of_range(words, value, sign):
    reply = f"{words.removesuffix(':**')}: {sign}{value}"
    ((status, read),) = parse_reply(reply, MINI, MINI.items[:1])
    assert (status, read) in (("ok", float(value)), ("unreadable", None))
    ((status, read),) = parse_reply(f"{words}: {value + 5}", MINI, MINI.items[:1])
    assert status in ("out_of_range", "unreadable")
    assert read is None


# --- refusals ------------------------------------------------------------------------------------

NO = "That is nothing I would say."  # no word of refusal
REFUSALS = {
    "field": ({"message": {"content": None, "refusal": NO}}, "stop"),
    "field beside empty content": ({"message": {"content": "", "refusal": NO}}, "stop"),
    "part": ({"message": {"content": [{"type": "refusal", "refusal": NO}]}}, "stop"),
    "part beside thoughts": (
        {"message": {"content": [{"type": "thinking", "thinking": "1: 4"},
                                 {"type": "refusal", "refusal": NO}]}}, "stop"),
    "filter": ({"message": {"content": ""}}, "content_filter"),
    "filter midway": ({"message": {"content": "1: 4"}}, "content_filter"),
    "reason": ({"message": {"content": NO}}, "refusal"),
    "reason in capitals": ({"message": {"content": ""}}, "SAFETY"),
}  # fmt: skip
FILTERED = {"code": "content_filter", "message": "The response was filtered.", "status": 400}
ONE = GAD7.model_copy(update={"items": GAD7.items[:1], "scales": ()})


def body_of(name):
    choice, reason = REFUSALS[name]
    return {"model": "m", "choices": [choice | {"finish_reason": reason}]}


@pytest.mark.parametrize(
    ("body", "status"),
    [*((body_of(name), 200) for name in REFUSALS), ({"error": FILTERED}, 400),
     ({"error": FILTERED}, 200)],
    ids=[*REFUSALS, "Azure's error", "Azure's error with status 200"],
)  # fmt: skip
def test_a_refusal_over_http_has_its_status_also_from_the_store(tmp_path, body, status):
    how = {"runs": 1, "ask_again": 0, "shuffle": False, **QUICK}
    with raw_server(sends(json.dumps(body).encode(), status)) as url:
        answers = ask_chat(ONE, "m", tmp_path, base_url=url, **how)
    assert answers["status"].tolist() == ["refused"]
    again = ask_chat(ONE, "m", tmp_path, base_url=url, **how)  # the server is gone
    pd.testing.assert_frame_equal(answers, again)


ROWS = {
    **{name: {"response": {"status_code": 200, "body": body_of(name)}} for name in REFUSALS},
    "Azure's error": {"response": {"status_code": 400, "body": {"error": FILTERED}}},
    "error of the line": {"response": None, "error": FILTERED},
    "Anthropic": {"result": {"type": "succeeded", "message": {
        "model": "m", "content": [], "stop_reason": "refusal"}}},
    "responses": {"response": {"body": {"model": "m", "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "1"}]},
        {"type": "message", "content": [{"type": "refusal", "refusal": NO}]}]}}},
    "responses, filtered": {"response": {"body": {
        "model": "m", "output": [], "incomplete_details": {"reason": "content_filter"}}}},
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_a_refusal_in_the_file_of_a_batch_has_the_same_status(tmp_path, row):
    path = tmp_path / "batch.jsonl"
    good = {"model": "m", "choices": [{"message": {"content": "1"}, "finish_reason": "stop"}]}
    rows = [{"custom_id": "gad7_1"} | row,
            {"custom_id": "gad7_2", "response": {"status_code": 200, "body": good}}]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    answers = read_answers(path, "gad7", progress=False).set_index("item_id")
    assert answers.loc["gad7_1", "status"] == "refused"
    assert answers.loc["gad7_2", ["status", "value"]].tolist() == ["ok", 1.0]


def test_parts_of_a_reply_are_lines_of_their_own(tmp_path):
    parts = [{"type": "text", "text": f"{n}: {n}"} for n in range(1, 5)]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    how = {"runs": 1, "ask_again": 0, "shuffle": False, **QUICK}
    with raw_server(sends(json.dumps(body).encode())) as url:
        answers = ask_chat(FOUR, "m", tmp_path, base_url=url, **how)
    assert answers["value"].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_reply_that_is_cut_off_after_its_thoughts_has_no_score(tmp_path):
    text = "1: 3\n2: 3\n3: 3\n4: 3 </think> 1: 1"
    body = {"choices": [{"message": {"content": text}, "finish_reason": "length"}]}
    how = {"runs": 1, "ask_again": 0, "shuffle": False, **QUICK}
    with raw_server(sends(json.dumps(body).encode())) as url:
        answers = ask_chat(FOUR, "m", tmp_path, base_url=url, **how)
    assert answers["status"].tolist() == ["cut_off"] * 4


# --- models on this machine ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def thinker(tmp_path_factory, tiny_talker):
    """A tokenizer with special tokens for thoughts and channels, which decoding would delete."""
    folder = tmp_path_factory.mktemp("thinker") / "t"
    shutil.copytree(tiny_talker, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    marks = ["[THINK]", "[/THINK]", "<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|pad|>"]
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    return tokenizer


@pytest.mark.parametrize(
    "text",
    ["[THINK]1: 3[/THINK]1: 4", "1: 3[/THINK]1: 4",
     "<|channel|>analysis<|message|>1: 3<|end|><|start|>assistant<|channel|>final<|message|>1: 4"],
)  # fmt: skip
def test_the_marks_of_thoughts_survive_the_decoding_of_special_tokens(thinker, text):
    tokens = thinker(f"{text}<|pad|>", add_special_tokens=False)["input_ids"]
    reply = generation._decode(thinker, [0], tokens)
    assert "<|pad|>" not in _remove_thoughts(reply)
    assert parse_reply(reply, MINI, MINI.items[:1]) == [("ok", 4.0)]


def test_thoughts_that_the_template_begins_are_marked_in_the_reply(thinker):
    prompt = thinker("<assistant> <think>\n")["input_ids"]
    reply = generation._decode(thinker, prompt, thinker("1: 3")["input_ids"])
    assert parse_reply(reply, MINI, MINI.items[:1]) == [("missing", None)]


def test_other_special_tokens_are_left_out_of_replies_as_before(thinker):
    tokens = thinker("1: 4<|end|><|pad|> so", add_special_tokens=False)["input_ids"]
    expected = thinker.decode(tokens, skip_special_tokens=True).strip()
    assert generation._decode(thinker, [0], tokens) == expected


@settings(max_examples=50)
@given(st.text(alphabet="<>|/think\n1: 4[]THINK", max_size=200))
def test_text_without_marks_keeps_its_words(text):
    if not re.search(r"<\W*[a-z]|\[\W*think", text.lower()):
        assert _remove_thoughts(text) == text.strip()
