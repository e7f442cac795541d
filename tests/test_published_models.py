"""Published models without shipped answers: what is shipped of them follows from the files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics import data
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from recipes import published_models
from tests.conftest import needs

KEYS = [key for key in data.registry() if key.startswith(("personality_illusion", "pellert"))]
needs_mirror = needs(*KEYS)
FOLDER = data_dir() / "published"


@needs_mirror
def test_what_is_shipped_is_what_the_recipe_gives():
    for name, table in {
        "behaviour": published_models.behaviour(),
        "nli_shares": published_models.nli_shares(),
    }.items():
        shipped = pd.read_csv(FOLDER / f"{name}.csv")
        pd.testing.assert_frame_equal(shipped, table, check_dtype=False, rtol=1e-6)


def test_twelve_models_have_their_scores_and_the_two_behaviours_of_each_role():
    table = pd.read_csv(FOLDER / "behaviour.csv")
    assert table.groupby("role")["model"].nunique().tolist() == [12, 12, 12]
    plain = table.query("role == 'none'")
    assert plain.notna().all(axis=None)
    for role, task in (("agreeableness", "sycophancy"), ("self-regulation", "risk taken")):
        own = table[table["role"] == role]
        assert own["strategy"].nunique() == 3
        assert own[[role, task]].notna().all(axis=None)


@needs_mirror
def test_shares_of_bias_are_those_of_plain_and_reversed_means_by_hand():
    answers = published_models.nli_answers()
    scale = load_questionnaire("bfi", texts=False).scale("extraversion")
    own = answers[answers["item_id"].isin(scale.items)]
    reverse = own["item_id"].isin(scale.reverse)
    means = own.groupby(["respondent_id", reverse])["score"].mean().unstack()
    share = (1 + np.corrcoef(means[False], means[True])[0, 1]) / 2
    shipped = pd.read_csv(FOLDER / "nli_shares.csv").set_index(["scale", "statistic"])["value"]
    assert shipped["extraversion", "bias"] == pytest.approx(share, abs=1e-4)


def test_the_items_that_are_reversed_stand_where_the_file_has_them():
    if not all(map(data.available, ["pellert_bfi44"])):
        pytest.skip("needs the published file")
    items = pd.read_csv(data.fetch("pellert_bfi44"), sep="\t").drop_duplicates("item_index")
    text = items.set_index("item_index")["item"]
    assert "quiet" in text[21]
    assert "bfi_21" in load_questionnaire("bfi", texts=False).scale("extraversion").reverse
