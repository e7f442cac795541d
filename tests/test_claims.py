"""Claims: their list is whole, verdicts follow their rules, cells of chapters are found."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from psychometrics import claims
from psychometrics.claims import VERDICTS, published, verdicts
from psychometrics.exceptions import DataError
from psychometrics.paths import notebooks_dir

BOTH, EMPTY, NOT, UNTESTED = VERDICTS
FOUND = ["value", "low", "high", "null", "null_low", "null_high"]
HEAD = "claim_id,claim,source,place,published,rule,bar,tolerance,chapter,reason,basis,cell\n"


def test_every_claim_names_a_chapter_of_the_book():
    table = published()
    chapters = {path.stem for path in notebooks_dir().glob("*.ipynb")}
    assert set(table.loc[table["rule"] != "untestable", "chapter"]) <= chapters


@pytest.mark.parametrize(
    ("rule", "value", "low", "high", "null", "verdict"),
    [
        ("above", 0.7, 0.5, 0.9, (-0.3, 0.3), BOTH),
        ("above", 0.7, 0.5, 0.9, (0.5, 0.8), EMPTY),
        ("above", 0.7, -0.1, 0.9, (-0.3, 0.3), NOT),
        ("above", 0.7, None, None, (None, None), BOTH),
        ("above", -0.7, -0.9, -0.5, (-0.3, 0.3), NOT),
        ("below", -0.7, -0.9, -0.5, (-0.3, 0.3), BOTH),
        ("below", -0.7, -0.9, -0.5, (-0.8, 0.3), EMPTY),
        ("below", -0.7, -0.9, 0.1, (-0.3, 0.3), NOT),
        ("equal", 0.804, None, None, (None, None), BOTH),
        ("equal", 0.806, None, None, (None, None), NOT),
        ("above", None, None, None, (None, None), UNTESTED),
        ("untestable", None, None, None, (None, None), UNTESTED),
    ],
)
def test_a_verdict_follows_from_the_rule_the_interval_and_the_null(
    rule, value, low, high, null, verdict
):
    row = {"published": 0.8, "rule": rule, "bar": 0.0, "tolerance": 0.005}
    row |= dict(zip(FOUND, (value, low, high, None, *null), strict=True))
    table = pd.DataFrame([row]).astype(dict.fromkeys(FOUND, float))
    assert verdicts(table).tolist() == [verdict]


@pytest.fixture
def data(monkeypatch, tmp_path):
    """A data folder with one claim that can be tested, one that cannot, and two expectations."""
    folder = tmp_path / "data" / "claims"
    folder.mkdir(parents=True)
    for study in claims.STUDIES:
        (folder / f"{study}.csv").write_text(HEAD)
    (folder / "empalc.csv").write_text(
        HEAD
        + 'a,It rises,reuben2024,table 1,0.5,above,0,,09-own,,,"09/tab-own[rise, r]"\n'
        + "b,It is dear,reuben2024,table 2,,untestable,,,,It is.,,\n"
    )
    (tmp_path / "data" / "expectations.csv").write_text(
        "chapter,sentence,cell,rule,bar\n"
        '09-own,it rises,"09/tab-own[rise, r]",above,0\n'
        '09-own,it falls,"09/tab-own[rise, r]",below,"09/tab-own[rise, r low]"\n'
    )
    monkeypatch.setattr(claims, "data_dir", lambda: tmp_path / "data")
    return folder


@pytest.fixture
def runs(tmp_path):
    """A folder in which one chapter was executed."""
    folder = tmp_path / "runs"
    (folder / "09-own").mkdir(parents=True)
    (folder / "09-own.ipynb").write_text("{}")
    (folder / "09-own" / "tab-own.csv").write_text("what,r,r low,r high\nrise,0.4,0.1,0.7\n")
    return folder


@pytest.mark.parametrize(
    "row",
    [
        "a,It rises,x,y,0.5,above,0,,1,,,c\n",
        "d,It rises,x,y,0.5,upwards,0,,1,,,c\n",
        "d,It rises,x,y,,above,,,1,,,c\n",
        "d,It rises,x,y,,equal,,0.1,1,,,c\n",
        "d,It rises,x,y,1,equal,,,1,,,c\n",
        "d,It rises,x,y,1,untestable,,,1,,,\n",
        "d,It rises,x,,1,above,0,,1,,,c\n",
        "d,It rises,x,y,1,above,0,,1,,,\n",
    ],
)
def test_a_claim_that_is_not_whole_is_refused_by_name(data, row):
    path = data / "empalc.csv"
    path.write_text(path.read_text() + row)
    with pytest.raises(DataError, match=f"'{row[0]}'"):
        published()


def test_what_is_tested_on_data_on_models_and_by_another_scoring_is_counted_apart():
    table = pd.DataFrame(
        [
            ("diagnostic", "published data", BOTH),
            ("fairbelief", "published data", NOT),
            ("fairbelief", "our scoring", BOTH),
            ("empalc", "our respondents", EMPTY),
        ],
        columns=["study", "basis", "verdict"],
    )
    found = claims.counts(table)
    data, models, scoring = claims.BASES.values()
    assert found.loc[(data, "all")].tolist() == [1, 0, 1, 0, 2]
    assert found.loc[(models, "EMPALC")].tolist() == [0, 1, 0, 0, 1]
    assert found.loc[(scoring, "FairBelief")].tolist() == [1, 0, 0, 0, 1]
    assert found["claims"].drop("all", level="study").sum() == len(table)


def test_the_scorecard_reads_the_cells_that_chapters_show(data, runs):
    table = claims.scorecard(runs)
    assert table["verdict"].to_dict() == {"a": BOTH, "b": UNTESTED}
    assert table.loc["a", ["value", "low", "high"]].tolist() == [0.4, 0.1, 0.7]
    assert math.isnan(table.loc["b", "value"])


def test_a_cell_that_its_chapter_does_not_show_stops_the_scorecard(data, runs):
    (runs / "09-own" / "tab-own.csv").write_text("what,r\nfall,0.4\n")
    with pytest.raises(DataError):
        claims.scorecard(runs)


def test_a_chapter_that_was_not_executed_leaves_its_claims_untested(data, runs):
    (runs / "09-own.ipynb").rename(runs / "08-other.ipynb")
    assert set(claims.scorecard(runs)["verdict"]) == {UNTESTED}


def test_a_sentence_that_does_not_hold_is_found(data, runs):
    table = claims.expectations(runs)
    assert table["holds"].tolist() == [True, False]
