"""Attributions: a word that is left out, by hand and against integrated gradients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures.attributions import _locate_parts, word_attributions
from psychometrics.paths import book_dir, data_dir

PROMPT = {
    "item_id": "a",
    "term": "on edge",
    "intensifier": "very rarely",
    "premise": "I feel on edge, really.",
    "hypothesis": "It very rarely happens.",
}
PROMPTS = pd.DataFrame([PROMPT])


def test_terms_and_intensifiers_of_several_words_are_left_out_whole():
    asked = []

    def answer(pairs):
        asked.extend(pairs)
        return np.full((len(pairs), 3), 1 / 3)

    found = word_attributions(answer, PROMPTS)
    assert ("I feel , really.", PROMPT["hypothesis"]) in asked
    assert (PROMPT["premise"], "It happens.") in asked
    words = ["I", "feel", "on edge", "really", "It", "very rarely", "happens"]
    assert found["word"].tolist() == words
    parts = ["premise", "premise", "term", "premise"]
    assert found["part"].tolist() == [*parts, "hypothesis", "intensifier", "hypothesis"]
    assert (found["attribution"] == 0).all()
    assert found["share"].isna().all()


def test_the_attribution_is_the_log_probability_less_that_without_the_word():
    def answer(pairs):
        shares = [0.5 * (1 if "edge" in p else 0.5) * (0.25 if "rarely" in h else 1)
                  for p, h in pairs]  # fmt: skip
        return np.column_stack([shares, shares, shares])

    found = word_attributions(answer, PROMPTS).set_index("word")
    assert found.loc["on edge", "attribution"] == pytest.approx(np.log(2))
    assert found.loc["very rarely", "attribution"] == pytest.approx(np.log(0.25))
    assert found["share"].abs().sum() == pytest.approx(1)
    assert found.loc["happens", "share"] == 0


def test_a_term_is_found_as_a_word_and_not_inside_of_one():
    spans = _locate_parts(PROMPT | {"term": "eel"})
    assert "term" not in spans


def test_leaving_out_words_agrees_with_the_integrated_gradients_that_are_shipped():
    respondent = pm.load_respondent("minilm-both-l6-s1", dtype="float32")
    prompts = pm.prompts("gad7").query("polarity == 1 and template == 1")
    found = word_attributions(respondent.answer, prompts)
    keys = ["item_id", "term", "intensifier", "part"]
    found = found.groupby(keys)["share"].sum()
    shipped = pd.read_csv(data_dir() / "attributions.csv").query("state == 'trained'")
    both = pd.concat([found, shipped.set_index(keys)["share"]], axis=1, join="inner")
    assert len(both) == 4 * len(prompts)
    assert both.corr().iloc[0, 1] > 0.7
    said = (book_dir() / "my-questionnaire.md").read_text(encoding="utf-8")
    mean = both.groupby(level="part").mean().loc["intensifier"]
    said_of_it = " and ".join(f"−{-value:.2f}" for value in mean)
    assert f"{said_of_it} for the intensifier" in said


def test_prompts_that_lack_a_column_and_answers_of_another_shape_are_refused():
    def answer(pairs):
        return np.ones(len(pairs))

    for wrong in (PROMPTS, PROMPTS.drop(columns="term"), PROMPTS.iloc[:0]):
        with pytest.raises(ParameterError):
            word_attributions(answer, wrong)
