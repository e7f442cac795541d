"""The question bank can be parsed, and gives each answer the mark that the page gives it."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest

from psychometrics_book.course import bank as question_bank
from psychometrics_book.exercises import is_right, listed


@pytest.fixture(scope="module")
def bank() -> list[question_bank.BankQuestion]:
    return question_bank.questions()


def test_every_checked_exercise_is_in_the_bank_with_text_and_solution(bank):
    assert {one.name for one in bank} == set(listed().index)
    assert [one.name for one in bank if not (one.text and one.solution)] == []


def test_no_markup_of_the_book_is_left_in_a_question(bank):
    marks = ("{num}", "{ref}", "{numref}", "{cite", "{check}", "```{", ":label:", "FORMULA")
    left = [one.name for one in bank if any(mark in one.text + one.solution for mark in marks)]
    assert left == []


def test_moodle_and_qti_hold_the_answer_and_tolerance_of_the_record(bank):
    quiz = ET.fromstring(question_bank.bank_files(bank)["moodle.xml"].encode())
    moodle = {q.findtext("name/text"): q for q in quiz if q.get("type") != "category"}
    items = {
        i.get("ident"): i
        for i in ET.fromstring(question_bank.bank_files(bank)["qti.xml"].encode()).iter("item")
    }
    assert set(moodle) == set(items) == {one.name for one in bank}
    for one in bank:
        right = moodle[one.name].find("answer[@fraction='100']")
        if isinstance(one.answer, str):
            words = [place.text for place in items[one.name].iter("varequal")]
            assert right.findtext("text") in words == one.answer.split("|")
            assert all(is_right(one.name, word) for word in words)
        else:
            low, high = (float(items[one.name].find(f".//{e}").text) for e in ("vargte", "varlte"))
            assert float(right.findtext("text")) == one.answer
            assert math.isclose(high - low, 2 * float(right.findtext("tolerance")), abs_tol=1e-9)
            assert is_right(one.name, repr((low + high) / 2))


def test_a_hint_is_a_wrong_answer_with_feedback_in_moodle(bank):
    quiz = ET.fromstring(question_bank.bank_files(bank)["moodle.xml"].encode())
    question = next(q for q in quiz if q.findtext("name/text") == "ex-first-paper")
    wrong = {float(a.findtext("text")): a.findtext("feedback/text")
             for a in question.findall("answer[@fraction='0']")}  # fmt: skip
    assert "columns before the rows" in wrong[0.727]
