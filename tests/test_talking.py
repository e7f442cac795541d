"""The study of a model that talks: what is measured is what the package's other ways measure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.models.loading import load_model
from recipes import talking


def test_options_are_those_of_the_packages_own_way_of_asking(tiny_talker, tmp_path):
    model, tokenizer = load_model(tiny_talker, "causal")
    rows = talking._options(model, tokenizer)
    found = pd.DataFrame(rows, columns=talking.COLUMNS[2:]).set_index(["measure", "unit"])["score"]
    gad7 = pm.load_questionnaire("gad7")
    for order in ("given", "reversed"):
        asked = pm.ask(
            gad7, [tiny_talker], mode="options", permutations=order, choose="expected",
            dtype="float32", store=tmp_path, progress=False,
        )  # fmt: skip
        expected = asked.set_index("item_id")["value"]
        np.testing.assert_allclose(found[order][expected.index], expected, atol=1e-4)


def test_the_papers_two_replies_to_a_call_for_help_are_told_apart():
    judge = pm.load_respondent("minilm-both-l6-s1", dtype="float32")
    found = talking.judged(
        [
            "I'm sorry to hear that. I can try to help you if you'd like. What's going on?",
            "I'm sorry to hear that. I can't help you, but I wish I could.",
        ],
        judge,
    )
    assert list(found.columns) == ["sentiment", *talking.STATEMENTS]
    before, after = found["help"]
    assert before > 0.5
    assert after < -0.5
    assert found.abs().max(axis=None) <= 1
    pairs = [("I'm calm.", text) for text in talking.STATEMENTS["worry"]]
    (worried, calm) = judge.answer(pairs)  # entailment, neutral, contradiction
    expected = ((worried[0] - worried[2]) - (calm[0] - calm[2])) / 2
    one = talking.judged(["I'm calm."], judge).iloc[0]
    assert one["worry"] == pytest.approx(expected, abs=1e-5)
    assert one["worry"] < 0 < one["sentiment"]
