"""Published models without shipped answers: what is shipped of them follows from the files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics import data
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.sheets import mean_of_pairs, profiles_within
from recipes import agreement
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


@needs("pellert_bfi44", *[key for key in data.registry() if key.startswith("ai_like_humans")])
def test_the_kept_agreement_of_nli_models_follows_from_the_file():
    rows = pd.DataFrame(agreement.agreement_of_models()).set_index(["who", "statistic"])
    kept = pd.read_csv(FOLDER / "agreement.csv", index_col=["who", "statistic"])
    pd.testing.assert_frame_equal(rows.round(4), kept.loc[rows.index, rows.columns])


def test_pairs_of_respondents_agree_within_cells_by_hand():
    cells = pd.Series([*"xxyy"])
    scores = pd.DataFrame([[0.0, 2, 5, 5], [9.0, 9, 1, 3], [1.0, 3, 2, 4], [4.0, 4, 7, 7]])
    profiles = profiles_within(scores, cells)
    r = profiles @ profiles.T
    # Rests: (-1, 1, 0, 0), (0, 0, -1, 1), their sum, and nothing.
    half = np.sqrt(0.5)
    assert r.to_numpy()[np.triu_indices(3, 1)] == pytest.approx([0, half, half])
    assert profiles.iloc[3].isna().all()


def test_the_mean_of_all_pairs_is_the_agreement_and_of_two_kinds_their_difference():
    cells = pd.Series([*"xxxyyyyy"])
    scores = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 8)))
    profiles = profiles_within(scores, cells)
    r, models = profiles @ profiles.T, pd.Series([*"abcdef"])
    everybody = np.full((6, 6), True)
    agreed = profile_agreement(scores, scales=cells)[["value", "low", "high"]]
    of_pairs = mean_of_pairs(r, everybody, models).clip(-1 / 5)  # the least mean of six
    assert of_pairs.tolist() == pytest.approx(agreed.tolist())

    first = np.arange(6) < 3
    alike = np.equal.outer(first, first)
    apart = np.outer(first, ~first)  # one direction of each pair is enough
    kinds = [r.to_numpy()[np.triu(alike, 1)].mean(), r.to_numpy()[:3, 3:].mean()]
    less = mean_of_pairs(r, alike, models, less=apart)
    assert less["value"] == pytest.approx(kinds[0] - kinds[1])
    assert less["low"] < less["value"] < less["high"]
