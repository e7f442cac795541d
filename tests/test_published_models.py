"""Published models without shipped answers: what is shipped of them follows from the files."""

from __future__ import annotations

import pandas as pd
import pytest

from psychometrics import data
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from tests.conftest import needs

KEYS = [key for key in data.registry() if key.startswith(("personality_illusion", "pellert"))]
needs_mirror = needs(*KEYS)
FOLDER = data_dir() / "published"


def test_twelve_models_have_their_scores_and_the_two_behaviours_of_each_role():
    table = pd.read_csv(FOLDER / "behaviour.csv")
    assert table.groupby("role")["model"].nunique().tolist() == [12, 12, 12]
    plain = table.query("role == 'none'")
    assert plain.notna().all(axis=None)
    for role, task in (("agreeableness", "sycophancy"), ("self-regulation", "risk taken")):
        own = table[table["role"] == role]
        assert own["strategy"].nunique() == 3
        assert own[[role, task]].notna().all(axis=None)


def test_the_items_that_are_reversed_stand_where_the_file_has_them():
    if not all(map(data.available, ["pellert_bfi44"])):
        pytest.skip("needs the published file")
    items = pd.read_csv(data.fetch("pellert_bfi44"), sep="\t").drop_duplicates("item_index")
    text = items.set_index("item_index")["item"]
    assert "quiet" in text[21]
    assert "bfi_21" in load_questionnaire("bfi", texts=False).scale("extraversion").reverse
