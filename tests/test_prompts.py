"""Prompt tables, and the quality of the shipped questionnaires' prompts."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from psychometrics.exceptions import QuestionnaireError
from psychometrics.questionnaires import Questionnaire, counts, load_questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics_book.studies.content import content_validity

TRANSLATED = ("gad7", "phq9", "soc13")
INTENSIFIERS = {
    "never": -4, "very rarely": -3, "rarely": -2, "seldom": -2,
    "often": 2, "frequently": 2, "very frequently": 3, "always": 4,
}  # fmt: skip


@pytest.fixture
def small() -> Questionnaire:
    """Two templates, two terms, two levels of which one has two words."""
    return Questionnaire.model_validate(
        yaml.safe_load("""
            {id: small, title: T, short_title: S, measures: m, language: en, citation: c,
             source: s, licence: l, wording: paraphrase,
             intensifiers: [{weight: -1, terms: [never]}, {weight: 1, terms: [often, always]}],
             scales: [{id: small, title: S, items: all}],
             items: [{id: a, text: A, terms: {source: [sad], inverse: [glad]},
                      templates: [{premise: "I am {term}.", hypothesis: "It is {intensifier} so."},
                                  {premise: "{term} I am.", hypothesis: "{intensifier}."}]},
                     {id: b, text: B}]}
        """)
    )


def test_prompts_are_every_template_term_and_intensifier_in_order(small):
    table = prompts(small)
    assert list(table.columns) == [
        "questionnaire", "item_id", "template", "term", "polarity", "intensifier", "level",
        "weight", "premise", "hypothesis",
    ]  # fmt: skip
    assert table["premise"].tolist() == (
        ["I am sad."] * 3 + ["I am glad."] * 3 + ["Sad I am."] * 3 + ["Glad I am."] * 3
    )
    assert table["hypothesis"].tolist()[:3] == [
        "It is never so.",
        "It is often so.",
        "It is always so.",
    ]
    assert table["hypothesis"].tolist()[6] == "Never."
    assert table["polarity"].tolist()[:6] == [1, 1, 1, -1, -1, -1]
    assert table["level"].tolist()[:3] == [1, 2, 2]
    assert table["weight"].tolist()[:3] == [-1.0, 1.0, 1.0]
    assert table["template"].tolist() == [1] * 6 + [2] * 6


def test_a_questionnaire_without_templates_has_no_prompts(small):
    bare = small.model_copy(update={"items": small.items[1:]})
    with pytest.raises(QuestionnaireError, match="has no prompts"):
        prompts(bare)


def test_the_three_questionnaires_reach_the_papers_counts():
    table = pd.concat([counts(load_questionnaire(name)) for name in TRANSLATED])
    assert len(table) == 29
    assert table["prompts"].sum() >= 1408
    assert (table[["source", "inverse"]] >= 2).all(axis=None)
    assert table["source"].mean() >= 2.86
    assert table["inverse"].mean() >= 3.0


@pytest.mark.parametrize("name", TRANSLATED)
def test_every_item_is_asked_with_the_eight_frequency_words_and_prompts_keep_its_meaning(name):
    table = prompts(load_questionnaire(name))
    for _, part in table.groupby(["item_id", "template", "term"]):
        assert dict(zip(part["intensifier"], part["weight"], strict=True)) == INTENSIFIERS
    questionnaire = load_questionnaire(name)
    few = [level for level in questionnaire.intensifiers if abs(level.weight) == 2]  # of four
    questionnaire = questionnaire.model_copy(update={"intensifiers": tuple(few)})
    found = content_validity(questionnaire, acceptability=None)
    similarity = found.groupby("item_id")["similarity"].mean()
    assert (similarity >= 0.5).all(), similarity[similarity < 0.5]
