"""Beliefs of models asked live; the model itself is replaced, mining has tests of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics.exceptions import ParameterError
from psychometrics.measures.beliefs import honest_summary
from psychometrics.studies import fairbelief
from psychometrics.studies.fairbelief import (
    group_scores,
    mine_templates,
    standing,
    typical_completions,
)

FRAME = pd.DataFrame(
    {
        "template": ["The woman is [M].", "The man is [M].", "The woman is [M]."],
        "sex": ["f", "m", "f"],
    }
)
ANSWERS = {"The woman is [M].": ["kind", "rat"], "The man is [M].": ["kind", "tall"]}


@pytest.fixture
def answered(monkeypatch):
    """Two models that know the answers by heart; the second says the reverse order."""

    def mine(model, templates, k, **_):
        lines = [
            (model, text, rank, word, -float(rank))
            for text in templates
            for rank, word in enumerate(ANSWERS[text][:: -1 if model == "b" else 1][:k], 1)
        ]
        return pd.DataFrame(
            lines, columns=["respondent_id", "template", "rank", "completion", "logprob"]
        )

    monkeypatch.setattr(fairbelief, "mine", mine)


def test_completions_carry_the_groups_of_their_template_even_where_one_is_asked_twice(answered):
    mined = mine_templates(["a", "b"], FRAME, k=2)
    assert len(mined) == 2 * 3 * 2
    expected = mined["template"].map({"The woman is [M].": "f", "The man is [M].": "m"})
    assert mined["sex"].tolist() == expected.tolist()
    assert mined["respondent_id"].unique().tolist() == ["a", "b"]


def test_what_is_typical_of_a_group_is_what_the_others_get_less(answered):
    mined = mine_templates(["a"], FRAME.iloc[:2], k=2)
    found = typical_completions(mined, "sex", n=1)
    assert found.to_dict("list") == {"f": ["rat"], "m": ["tall"]}
    with pytest.raises(ParameterError, match="sex has only one group"):
        typical_completions(mined[mined["sex"] == "f"], "sex")
    for function in (typical_completions, lambda *given: group_scores(given[0], [], given[1])):
        with pytest.raises(ParameterError, match="age is no column of what was mined"):
            function(mined, "age")


def test_groups_are_scored_by_hand(answered):
    mined = mine_templates(["a", "b"], FRAME, k=2)
    table = group_scores(mined, ["rat"], "sex").set_index(["respondent_id", "sex"])
    assert table["honest"].to_dict() == {
        ("a", "f"): 0.5,
        ("a", "m"): 0,
        ("b", "f"): 0.5,
        ("b", "m"): 0,
    }
    assert table.loc[("a", "f"), "templates"] == 2


def test_a_live_model_takes_its_place_among_the_published(answered):
    published = honest_summary(np.array([[[1, 1]], [[0, 0]]], bool), ["one"], ["high", "low"])
    subsets = {"one": FRAME["template"][:1], "two": FRAME["template"][1:2]}
    place = standing(["a", "b"], subsets, ["rat"], published, k=2)
    # One of two completions of the first subset is hurtful, none of the second: 1/4.
    assert place["mean"].tolist() == [0.25, 0.25]
    assert place["rank"].tolist() == [2, 2]
    assert place["respondent_id"].tolist() == ["a", "b"]
    assert place[["low", "high"]].isna().all(axis=None)
    subsets = {"one": FRAME["template"]}
    whom = {"one": ["woman", "man", "wife"]}
    place = standing(["a", "b"], subsets, ["rat"], published, k=2, identities=whom)
    # Shares 1/2, 0 and 1/2 of three identities: a draw may hold the man alone, or not at all.
    assert place[["mean", "low", "high"]].iloc[0].tolist() == pytest.approx([1 / 3, 0, 0.5])
