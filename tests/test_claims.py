"""Claims: their list is whole, verdicts follow their rules, a chapter's records are found again."""

from __future__ import annotations

import nbformat
import pandas as pd
import papermill
import pytest

from psychometrics import claims
from psychometrics.book import _notebook_names
from psychometrics.claims import RECORDED, VERDICTS, published, record, recorded, verdicts
from psychometrics.exceptions import DataError, ParameterError

BOTH, EMPTY, NOT, UNTESTED = VERDICTS[0], VERDICTS[1], VERDICTS[2], VERDICTS[3]


def test_every_claim_names_a_chapter_of_the_book_and_is_recorded_there_by_its_id():
    table = published()
    chapters = set(_notebook_names())
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
    row |= dict(zip(RECORDED, (value, low, high, None, *null), strict=True))
    table = pd.DataFrame([row]).astype(dict.fromkeys(RECORDED, float))
    assert verdicts(table).tolist() == [verdict]


@pytest.fixture
def one_claim(monkeypatch, tmp_path):
    """The data folder has one claim of each kind, of one study."""
    folder = tmp_path / "data" / "claims"
    folder.mkdir(parents=True)
    head = "claim_id,claim,source,place,published,rule,bar,tolerance,chapter,reason\n"
    for study in claims.STUDIES:
        (folder / f"{study}.csv").write_text(head)
    (folder / "empalc.csv").write_text(
        head
        + "a,It goes up,reuben2024,table 1,0.5,above,0,,09-own,\n"
        + "b,It is dear,reuben2024,table 2,,untestable,,,,It is.\n"
    )
    monkeypatch.setattr(claims, "data_dir", lambda: tmp_path / "data")
    return folder


def test_a_claim_that_cannot_be_tested_or_is_unknown_is_not_recorded(one_claim):
    with pytest.raises(ParameterError, match="cannot be tested"):
        record("b", 1.0)
    with pytest.raises(ParameterError, match="no claim 'c'"):
        record("c", 1.0)
    with pytest.raises(ParameterError, match="has no 'p'"):
        record(pd.DataFrame({"p": 1.0}, index=["a"]))


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("a,It goes up,x,y,0.5,above,0,,1,\n", "is there twice"),
        ("d,It goes up,x,y,0.5,upwards,0,,1,\n", "has no rule"),
        ("d,It goes up,x,y,,above,,,1,\n", "has no bar"),
        ("d,It goes up,x,y,,equal,,0.1,1,\n", "has no number to equal"),
        ("d,It goes up,x,y,1,equal,,,1,\n", "has no tolerance"),
        ("d,It goes up,x,y,1,untestable,,,1,\n", "has no reason"),
        ("d,It goes up,x,,1,above,0,,1,\n", "says nothing"),
    ],
)
def test_a_claim_that_is_not_whole_is_refused_by_name(one_claim, row, what):
    path = one_claim / "empalc.csv"
    path.write_text(path.read_text() + row)
    with pytest.raises(DataError, match=f"empalc.csv: the claim '[ad]' {what}"):
        published()


def test_what_is_tested_on_data_on_models_and_by_another_scoring_is_counted_apart():
    table = pd.DataFrame(
        [
            ("diagnostic", "published data", VERDICTS[0]),
            ("fairbelief", "published data", VERDICTS[2]),
            ("fairbelief", "our scoring", VERDICTS[0]),
            ("empalc", "our respondents", VERDICTS[1]),
        ],
        columns=["study", "basis", "verdict"],
    )
    found = claims.counts(table)
    data, models, scoring = claims.BASES.values()
    assert found.loc[(data, "all")].tolist() == [1, 0, 1, 0, 2]
    assert found.loc[(models, "EMPALC")].tolist() == [0, 1, 0, 0, 1]
    assert found.loc[(scoring, "FairBelief")].tolist() == [1, 0, 0, 0, 1]
    assert found["claims"].drop("all", level="study").sum() == len(table)


def test_only_what_a_paper_claimed_counts_as_its_claim():
    known = published()
    repeated = known[known["basis"] == "our scoring"]
    assert set(repeated["study"]) == {"fairbelief"}
    assert repeated["claim"].str.contains("by words of the lexicon").all()
    others = known[known["basis"] != "our scoring"]
    assert not others["claim"].str.contains("by words of the lexicon").any()


def test_the_scorecard_finds_what_an_executed_chapter_recorded(one_claim, tmp_path):
    output = nbformat.v4.new_output(
        "display_data", {claims.MIME: {"a": {"value": 0.4, "low": 0.1}}, "text/plain": ""}
    )
    cell = nbformat.v4.new_code_cell("", outputs=[output])
    runs = tmp_path / "runs"
    runs.mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), runs / "09-own.ipynb")
    table = claims.scorecard(runs)
    assert table["verdict"].to_dict() == {"a": BOTH, "b": UNTESTED}
    assert table.loc["a", ["value", "low"]].tolist() == [0.4, 0.1]
    (runs / "09-own.ipynb").rename(runs / "08-other.ipynb")
    with pytest.raises(DataError, match="recorded in 08-other"):
        claims.scorecard(runs)
    again = nbformat.v4.new_code_cell("", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell, again]), runs / "09-own.ipynb")
    with pytest.raises(DataError, match="recorded twice"):
        claims.scorecard(runs)


def test_what_was_not_recorded_stops_the_book_and_cannot_be_tested_elsewhere(
    one_claim, tmp_path, monkeypatch
):
    (one_claim / "empalc.csv").write_text(
        (one_claim / "empalc.csv").read_text() + "d,It falls,reuben2024,table 3,,below,0,,09-own,\n"
    )
    output = nbformat.v4.new_output("display_data", {claims.MIME: {"a": {"value": 1.0}}})
    cell = nbformat.v4.new_code_cell("", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "09-own.ipynb")
    found = claims.scorecard(tmp_path)["verdict"].to_dict()
    assert found == {"a": BOTH, "b": UNTESTED, "d": UNTESTED}
    monkeypatch.setattr(claims, "_BOOK", tmp_path)
    with pytest.raises(DataError, match="1 claims were not recorded, such as 'd', of which 09-own"):
        claims.scorecard()


def test_a_record_and_a_glued_number_survive_papermill(tmp_path):
    lines = [
        "import pandas as pd, psychometrics as pm",
        "from psychometrics import claims",
        "known = pd.DataFrame({'rule': ['above']}, index=['a'])",
        "claims.published = lambda: known",
        "claims.record('a', 0.25, null=0.125)",
        "pm.book.glue(rho=known.shape[0] / 8, word='yes')",
    ]
    source = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("\n".join(lines))])
    nbformat.write(source, tmp_path / "in.ipynb")
    out = tmp_path / "out"
    out.mkdir()
    papermill.execute_notebook(
        tmp_path / "in.ipynb", out / "01.ipynb", kernel_name="python3", progress_bar=False
    )
    assert recorded(out).loc["a", ["value", "null", "chapter"]].tolist() == [0.25, 0.125, "01"]
    outputs = nbformat.read(out / "01.ipynb", 4).cells[0].outputs
    glued = {o.metadata["scrapbook"]["name"]: o.data for o in outputs if o.metadata}
    assert glued["rho"] == {"application/papermill.record/text/plain": "0.125"}
    assert glued["word"] == {"application/papermill.record/text/plain": "'yes'"}
