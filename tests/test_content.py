"""Content validity: sheets for a panel, agreement of raters, models that cannot be loaded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.exceptions import DataError
from psychometrics.measures import content

RATINGS = ["meaning_kept", "natural", "neutral", "measures_it"]


def test_curation_sheets_go_out_and_come_back(tmp_path):
    instrument = pm.load_questionnaire("gad7")
    for rater, verdict in (("A", "1"), ("B", "1"), ("C", "0")):
        sheet = content.curation_sheet(instrument, rater)
        assert sheet["templates"].str.contains("{term}", regex=False).all()
        sheet[RATINGS] = "1"
        sheet.loc[0, "natural"] = verdict
        sheet.loc[1, "neutral"] = ""
        sheet.to_csv(tmp_path / f"{rater}.csv", index=False)
    ratings = content.read_curation(sorted(tmp_path.glob("*.csv")))
    assert len(ratings) == 3 * (7 * 4 - 1)
    found = content.rater_agreement(ratings)
    # One of seven items has one agreeing pair of three: (6 · 3 + 1) / 21.
    assert found.loc["natural", "agreement"] == pytest.approx(19 / 21)
    assert found.loc["meaning_kept", "agreement"] == 1
    assert np.isnan(found.loc["meaning_kept", "fleiss_kappa"]), "no variance, no kappa"


def test_agreement_matches_fleiss_published_example():
    # Fleiss (1971) has five categories; this is the two-category table of Krippendorff (2011), A.
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    ratings = pd.DataFrame(
        {
            "rater": ["A"] * 10 + ["B"] * 10,
            "item_id": [*range(10)] * 2,
            "criterion": "natural",
            "rating": first + second,
        }
    )
    found = content.rater_agreement(ratings).loc["natural"]
    assert found["krippendorff_alpha"] == pytest.approx(0.095, abs=0.0005)
    assert found["agreement"] == pytest.approx(0.6)


def test_a_sheet_has_the_wording_of_the_readers_own_file(tmp_path, monkeypatch):
    soc = pm.load_questionnaire("soc13")
    monkeypatch.delenv("PSYCHOMETRICS_WORDING", raising=False)
    assert content.curation_sheet(soc, "A")["text"].tolist() == [item.text for item in soc.items]
    path = tmp_path / "wording.csv"
    monkeypatch.setenv("PSYCHOMETRICS_WORDING", str(path))
    with pytest.raises(DataError, match="is no file"):
        content.curation_sheet(soc, "A")
    pd.DataFrame({"instrument": "SOC-13", "wording": [f"w{n}" for n in range(13)]}).to_csv(path)
    assert content.curation_sheet(soc, "A")["text"].iloc[-1] == "w12"
    pd.DataFrame({"instrument": "SOC-13", "wording": ["w"]}).to_csv(path)
    with pytest.raises(DataError, match="1 items of SOC-13, which has 13"):
        content.curation_sheet(soc, "A")
    path.write_text("")
    with pytest.raises(DataError, match="cannot be read as a CSV file"):
        content.curation_sheet(soc, "A")


def test_similarity_is_one_for_a_prompt_that_is_its_item_and_lies_within_bounds():
    gad = pm.load_questionnaire("gad7")
    table = content.content_validity(gad, acceptability=None)
    assert len(table) == len(pm.prompts(gad))
    assert table["similarity"].between(-1, 1).all()
    assert set(table["wording"]) == {"verbatim"}
    # the cosine that the library itself gives
    from sentence_transformers import SentenceTransformer

    from psychometrics.models.sources import base_path

    row, model = pm.prompts(gad).iloc[0], SentenceTransformer(base_path())
    pair = [gad.items[0].text, f"{row['premise']} {row['hypothesis']}"]
    expected = model.similarity(*model.encode(pair, show_progress_bar=False)[:, None]).item()
    assert table["similarity"].iloc[0] == pytest.approx(expected, abs=1e-5)


def test_a_stranger_is_the_next_item_and_of_the_last_the_first():
    questionnaire = pm.load_questionnaire("challenges")
    found = content.content_validity(questionnaire, acceptability=None)
    order = [item.id for item in questionnaire.items]
    texts = {item.id: item.text for item in questionnaire.items}
    turned = questionnaire.model_copy(
        update={
            "items": tuple(
                item.model_copy(update={"text": texts[order[(place + 1) % len(order)]]})
                for place, item in enumerate(questionnaire.items)
            )
        }
    )
    other = content.content_validity(turned, acceptability=None)
    np.testing.assert_allclose(found["stranger"], other["similarity"], atol=1e-6)
    assert found["similarity"].mean() != found["stranger"].mean()
