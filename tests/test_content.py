"""Content validity: sheets for a panel, agreement of raters, models that cannot be loaded."""

from __future__ import annotations

import krippendorff
import numpy as np
import pandas as pd
import pytest
from sentence_transformers import SentenceTransformer

import psychometrics as pm
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.models.embedded import acceptability as judged
from psychometrics.models.sources import base_path
from psychometrics_book.studies import content

RATINGS = ["meaning_kept", "natural", "neutral", "measures_it"]


def test_agreement_counts_pairs_of_raters_and_leaves_gaps_out():
    sheets = pd.DataFrame(
        {"rater": np.repeat(["A", "B", "C"], 7), "item_id": [*range(7)] * 3}
    ).assign(**dict.fromkeys(RATINGS, 1.0))
    sheets.loc[14, "natural"] = 0
    sheets.loc[[1, 8, 15], "neutral"] = np.nan
    found = content.rater_agreement(sheets)
    # One of seven items has one agreeing pair of three: (6 · 3 + 1) / 21.
    assert found.loc["natural", "agreement"] == pytest.approx(19 / 21)
    assert found.loc["neutral", "items"] == 6
    assert found.loc["meaning_kept", "agreement"] == 1
    assert np.isnan(found.loc["meaning_kept", "fleiss_kappa"]), "no variance, no kappa"
    with pytest.raises(ParameterError, match="natural"):
        content.rater_agreement(sheets.replace({"natural": {0: 3}}))


def test_agreement_matches_fleiss_published_example():
    # Fleiss (1971) has five categories; this is the two-category table of Krippendorff (2011), A.
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    sheets = pd.DataFrame(
        {"rater": ["A"] * 10 + ["B"] * 10, "item_id": [*range(10)] * 2, "natural": first + second}
    )
    found = content.rater_agreement(sheets, ["natural"]).loc["natural"]
    assert found["krippendorff_alpha"] == pytest.approx(0.095, abs=0.0005)
    assert found["agreement"] == pytest.approx(0.6)


def test_krippendorffs_alpha_is_that_of_his_package_where_raters_leave_gaps():
    rng = np.random.default_rng(2)
    for gaps in (0.0, 0.2, 0.5):
        codes = rng.integers(0, 4, (12, 5)).astype(float)
        codes[1:][rng.random((11, 5)) < gaps] = np.nan
        twin = krippendorff.alpha(codes.T, level_of_measurement="nominal")
        assert content._krippendorff_alpha(codes, 4) == pytest.approx(twin, abs=1e-12)


def test_similarity_is_to_the_wording_of_the_readers_own_file(tmp_path, monkeypatch):
    soc, path = pm.load_questionnaire("soc13"), tmp_path / "wording.csv"
    soc = soc.model_copy(update={"intensifiers": soc.intensifiers[:1]})  # fewer prompts
    monkeypatch.delenv("PSYCHOMETRICS_WORDING", raising=False)

    def wording():
        return set(content.content_validity(soc, acceptability=None)["wording"])

    assert wording() == {"paraphrase"}
    monkeypatch.setenv("PSYCHOMETRICS_WORDING", str(path))
    with pytest.raises(DataError, match="is not a file"):
        wording()
    pd.DataFrame({"instrument": "SOC-13", "wording": [f"w{n}" for n in range(13)]}).to_csv(path)
    assert wording() == {"original"}
    pd.DataFrame({"instrument": "SOC-13", "wording": ["w"]}).to_csv(path)
    with pytest.raises(DataError, match="not 13"):
        wording()
    path.write_text("")
    with pytest.raises(ParameterError):
        wording()


def test_similarity_is_the_librarys_cosine_and_a_stranger_is_the_next_item_of_the_last_the_first():
    gad = pm.load_questionnaire("challenges")
    table, rows = content.content_validity(gad, acceptability=None), pm.prompts(gad)
    assert len(table) == len(rows)
    model = SentenceTransformer(base_path())
    texts = [item.text for item in gad.items]
    for place, other in ((0, 1), (-1, 0)):
        own = table[rows["item_id"].to_numpy() == gad.items[place].id].iloc[0]
        row = rows[rows["item_id"] == gad.items[place].id].iloc[0]
        asked = [f"{row['premise']} {row['hypothesis']}", texts[place], texts[other]]
        expected = model.similarity(*np.split(model.encode(asked, show_progress_bar=False), [1]))
        assert own[["similarity", "stranger"]].tolist() == pytest.approx(
            expected.ravel().tolist(), abs=1e-5
        )


def test_acceptability_of_a_prompt_is_the_mean_of_its_premise_and_its_hypothesis(
    save_tiny_model, tmp_path
):
    judge = save_tiny_model(tmp_path / "judge", labels=("unacceptable", "acceptable"))
    questionnaire = pm.load_questionnaire("challenges")
    few = {"intensifiers": questionnaire.intensifiers[:1], "items": questionnaire.items[:2]}
    questionnaire = questionnaire.model_copy(update=few)
    rows = pm.prompts(questionnaire)
    found = content.content_validity(questionnaire, acceptability=str(judge))["acceptability"]
    both = [judged(rows[part].tolist(), str(judge)) for part in ("premise", "hypothesis")]
    np.testing.assert_allclose(found, (both[0] + both[1]) / 2, atol=1e-6)
    assert np.ptp(found) > 0.01
