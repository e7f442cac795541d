"""Claims: their list is whole, verdicts follow their rules, cells of chapters are found."""

from __future__ import annotations

import functools
import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from psychometrics.exceptions import DataError
from psychometrics.paths import data_dir, notebooks_dir
from psychometrics_book import claims
from psychometrics_book.claims import VERDICTS, published, verdicts
from psychometrics_book.prose import _normal

HELD, ASIDE, EMPTY, OPEN, AGAINST, UNTESTED = VERDICTS
FOUND = ["value", "low", "high", "null", "null_low", "null_high", "p"]
HEAD = (
    "claim_id,claim,source,place,published,rule,bar,bar_of,tolerance,cluster,made,chapter,reason,"
    "basis,support,no_null,cell\n"
)


def _faulty(table: pd.DataFrame) -> list[str]:
    """Claims that are listed twice or lack a field that their rule needs."""
    untestable = table["rule"] == "untestable"
    texts = table[["claim", "source", "place", "cluster"]]
    of_both = table["rule"].isin(["above", "below"])
    wrong = [
        table.index.duplicated(),
        ~table["rule"].isin(["equal", "above", "below", "untestable"]),
        ~table["basis"].isin(claims.BASES),
        (texts == "").any(axis=1),
        ~untestable & ~table["made"].isin(["before", "after"]),
        ~untestable & (table[["chapter", "cell"]] == "").any(axis=1),
        untestable & (table["reason"] == ""),
        (table["rule"] == "equal") & table[["published", "tolerance"]].isna().any(axis=1),
        of_both & (table["bar"].isna() | ~table["bar_of"].isin(["paper", "ours"])),
    ]
    return table.index[np.any(wrong, axis=0)].tolist()


def test_every_claim_is_listed_once_and_has_the_fields_that_its_rule_needs():
    assert _faulty(published()) == []


def test_every_claim_names_a_chapter_of_the_book():
    table = published()
    chapters = {path.stem for path in notebooks_dir().glob("*.ipynb")}
    assert set(table.loc[table["rule"] != "untestable", "chapter"]) <= chapters


def test_a_claim_of_significance_is_never_judged_by_its_sign_alone():
    table = published()
    said = table[table["claim"].str.contains("significantly")]
    by_sign = (said["rule"] == "above") & (said["bar"] == 0) & (said["support"] != "")
    assert said.index[by_sign].tolist() == []


def test_a_likeness_is_shown_by_its_size_and_not_by_a_missing_significance():
    table = published()
    like = table[table["claim"].str.contains("approximate|similar to")]
    assert len(like) == 2
    assert like["claim"].str.contains("significant").sum() == 0
    assert set(like["bar_of"]) == {"ours"}


def test_a_high_similarity_is_not_shown_by_a_correlation_above_zero():
    table = published()
    alike = table[table["claim"].str.contains("highly similar")]
    assert len(alike) == 2
    assert (alike["bar"] >= 0.7).all()


def test_a_claim_about_most_or_all_models_says_that_their_mean_tests_it():
    table = published().query("study == 'psychobench' and rule != 'untestable'")
    many = table[table["claim"].str.match("Most models|All models")]
    assert len(many) == 5
    assert many.index[~many["claim"].str.contains("tested by the mean")].tolist() == []
    assert set(many["bar_of"]) == {"ours"}


def test_a_consistent_lead_that_is_tested_on_average_says_what_the_paper_says():
    leads = published().query("study == 'fairbelief' and cluster == 'section 4.1, three families'")
    assert len(leads) == 6
    assert leads.index[~leads["claim"].str.contains("the paper: consistently")].tolist() == []
    assert set(leads["bar_of"]) == {"ours"}


@pytest.mark.parametrize(
    ("sentence", "cells"),
    [
        ("In our respondents it separates no two constructs", 6),
        ("In the encoders, no specification changes the sign of a correlation", 3),
        ("On the clinical questionnaires nothing is decided", 21),
    ],
)
def test_a_sentence_about_none_has_a_rule_for_every_cell_it_speaks_of(sentence, cells):
    table = pd.read_csv(data_dir() / "expectations.csv", dtype=str)
    assert table.loc[table["sentence"] == sentence, "cell"].nunique() == cells


def test_a_number_is_reproduced_within_half_a_unit_of_its_last_printed_digit():
    for path in sorted((data_dir() / "claims").glob("*.csv")):
        table = pd.read_csv(path, dtype=str).query("rule == 'equal'")
        digits = table["published"].str.extract(r"\.(\d+)$")[0].str.len().fillna(0)
        within = table["tolerance"].astype(float) <= 0.5 / 10.0**digits + 1e-12
        assert table.loc[~within, "claim_id"].tolist() == []


def test_a_bar_that_the_library_does_not_print_is_ours():
    table = published().query("study == 'questionnaires' and rule != 'untestable'")
    assert set(table["bar_of"]) == {"ours"}


def test_the_ends_of_an_interval_have_two_digits_of_its_width():
    assert claims._words(0.0818, 0.0017, 0.193) == "0.0818 (0.00 to 0.19)"
    assert claims._words(2.49, 0.387, 6.5) == "2.49 (0.4 to 6.5)"
    assert claims._words(0.0236, 0.0023, 0.0443) == "0.0236 (0.002 to 0.044)"
    assert claims._words(3.0, 3.0, 3.0) == "3 (3 to 3)"


def test_a_null_that_is_set_aside_gives_a_verdict_of_its_own(data, runs):
    path = data / "empalc.csv"
    path.write_text(path.read_text().replace('our respondents,,,"', 'our respondents,,absent,"'))
    assert claims.scorecard(runs).loc["a", "verdict"] == HELD  # without a null

    shown = "what,r,r low,r high,r null,r null low,r null high\nrise,0.4,0.1,0.7,0.4,0.3,0.5\n"
    (runs / "09-own" / "tab-own.csv").write_text(shown)
    table = claims.scorecard(runs)
    assert table.loc["a", "verdict"] == ASIDE
    assert table.loc["a", ["null_low", "null_high"]].tolist() == [0.3, 0.5]
    assert claims.listed(table)["null"].tolist() == ["0.4 (0.30 to 0.50); set aside: absent", ""]


def test_setting_a_null_aside_does_not_add_to_what_is_reproduced(data, runs):
    shown = "what,r,r low,r high,r null,r null low,r null high\nrise,0.4,0.1,0.7,0.4,0.3,0.5\n"
    (runs / "09-own" / "tab-own.csv").write_text(shown)
    before = claims.counts(claims.scorecard(runs))["reproduced"].sum()

    path = data / "empalc.csv"
    path.write_text(path.read_text().replace('our respondents,,,"', 'our respondents,,absent,"'))
    assert claims.counts(claims.scorecard(runs))["reproduced"].sum() == before


def test_nulls_of_claims_that_nothing_differs_are_set_aside_in_every_study():
    table = published()
    said = table["claim"].str.contains("no significant difference|differs significantly")
    absent = table[said & (table["published"] == 0)]
    assert set(absent["study"]) == {"psychobench"}
    assert absent.index[absent["no_null"] == ""].tolist() == []


def test_the_scorecards_first_share_leaves_out_claims_whose_null_is_set_aside():
    cells = json.loads((notebooks_dir() / "14-scorecard.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(cell["source"]) for cell in cells["cells"]]
    (source,) = [text for text in sources if '"tab-verdicts", caption' in text]
    rows = [("diagnostic", "published data", one) for one in (HELD, ASIDE, EMPTY, UNTESTED)]
    table = pd.DataFrame(rows, columns=["study", "basis", "verdict"])
    shown = {}
    record = SimpleNamespace(table=lambda frame, name, *_: shown.update({name: frame}))
    short = {ASIDE: "null set aside", EMPTY: "also in the null", UNTESTED: "cannot be tested"}
    table = table.assign(null_low=0.0, null_high=1.0)
    exec(
        source,
        {
            "book": SimpleNamespace(claims=claims, table=record.table),
            "table": table,
            "short": short,
        },
    )
    first, second = shown["tab-verdicts"].iloc[0, :2]
    assert (first, second) == pytest.approx((100 / 3, 200 / 3))


def test_the_lead_of_roberta_is_negative_where_another_architecture_leads():
    cells = json.loads((notebooks_dir() / "08-items.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    source = "\n\n".join(
        text for text in sources if text.startswith("def ") and "agreement" in text
    )
    people = pd.Series([0.1, 0.4, 0.6, 0.9], list("abcd"))
    like_people = pd.DataFrame([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]], columns=list("abcd"))
    less_alike = like_people[[*"badc"]].set_axis(list("abcd"), axis=1)  # rank correlation .6
    book = {
        "np": np,
        "pd": pd,
        "stats": stats,
        "people": people,
        "asked": {"morphological negation": list("abcd")},
        "transformers": pd.concat([like_people, less_alike], ignore_index=True),
    }
    exec(source, book)  # the chapter's own code
    leads = {}
    for order in (["roberta", "bert"], ["bert", "roberta"]):
        families = pd.Series(order).repeat(3).reset_index(drop=True)
        leads[order[0]] = book["by_family"](families)["RoBERTa minus best other"]
    assert leads == pytest.approx({"roberta": 0.4, "bert": -0.4})


def test_a_paper_that_names_its_level_is_judged_at_it():
    levels = published().groupby("study")["level"].unique().map(list).to_dict()
    assert levels.pop("psychobench") == [0.01]  # Huang et al., section 3.1
    assert set(map(tuple, levels.values())) == {(0.05,)}


@pytest.mark.parametrize(
    ("rule", "value", "low", "high", "null", "p", "support", "verdict"),
    [
        ("above", 0.7, 0.5, 0.9, (-0.3, 0.3), None, "", HELD),
        ("above", 0.7, 0.5, 0.9, (0.5, 0.8), None, "", EMPTY),
        ("above", 0.7, -0.1, 0.9, (-0.3, 0.3), None, "", OPEN),
        ("above", 0.7, 0.5, 0.9, (-0.3, 0.3), 0.02, "", OPEN),
        ("above", 0.7, 0.5, 0.9, (-0.3, 0.3), 0.009, "", HELD),
        ("above", 0.7, None, None, (None, None), None, "", OPEN),
        ("above", 0.7, None, None, (None, None), None, "arithmetic", HELD),
        ("above", -0.7, None, None, (None, None), None, "arithmetic", AGAINST),
        ("above", 0.0, None, None, (None, None), None, "arithmetic", AGAINST),
        ("above", -0.7, -0.9, -0.5, (-0.3, 0.3), None, "", AGAINST),
        ("above", -0.7, -0.9, -0.5, (-0.3, 0.3), 0.02, "", OPEN),
        ("below", -0.7, -0.9, -0.5, (-0.3, 0.3), None, "", HELD),
        ("below", -0.7, -0.9, -0.5, (-0.8, 0.3), None, "", EMPTY),
        ("below", -0.7, -0.9, 0.1, (-0.3, 0.3), None, "", OPEN),
        ("below", 0.7, 0.5, 0.9, (-0.3, 0.3), None, "", AGAINST),
        ("equal", 0.804, None, None, (None, None), None, "arithmetic", HELD),
        ("equal", 0.804, None, None, (None, None), None, "", OPEN),
        ("equal", 0.804, None, None, (0.7, 0.9), None, "arithmetic", EMPTY),
        ("equal", 0.804, None, None, (0.1, 0.3), None, "arithmetic", HELD),
        ("equal", 0.9, None, None, (0.7, 0.95), None, "arithmetic", AGAINST),
        ("equal", 0.9, 0.7, 1.0, (None, None), None, "arithmetic", OPEN),
        ("above", None, None, None, (None, None), None, "", UNTESTED),
        ("untestable", None, None, None, (None, None), None, "", UNTESTED),
    ],
)
def test_a_verdict_follows_rule_interval_and_null(
    rule, value, low, high, null, p, support, verdict
):
    row = {"published": 0.8, "rule": rule, "bar": 0.0, "tolerance": 0.005}
    row |= {"support": support, "level": 0.01, "no_null": ""}
    row |= dict(zip(FOUND, (value, low, high, None, *null, p), strict=True))
    table = pd.DataFrame([row]).astype(dict.fromkeys(FOUND, float))
    found = verdicts(table).tolist()
    assert found == [verdict]


@pytest.fixture
def data(monkeypatch, tmp_path):
    """A data folder with one claim that can be tested, one that cannot, and two expectations."""
    folder = tmp_path / "data" / "claims"
    folder.mkdir(parents=True)
    for study in claims.STUDIES:
        (folder / f"{study}.csv").write_text(HEAD)
    (folder / "empalc.csv").write_text(
        HEAD
        + "a,It rises,reuben2024,table 1,0.5,above,0,paper,,one,after,09-own,,our respondents,,,"
        '"09/tab-own[rise, r]"\n'
        + "b,It is dear,reuben2024,table 2,,untestable,,,,two,,,It is.,our respondents,,,\n"
    )
    (tmp_path / "data" / "expectations.csv").write_text(
        "chapter,sentence,cell,rule,bar,needs\n"
        '09-own,it rises,"09/tab-own[rise, r]",above,0,\n'
        '09-own,it falls,"09/tab-own[rise, r]",below,"09/tab-own[rise, r low]",\n'
        '09-own,it is high,"09/tab-own[rise, r]",above,0.9,psychobench\n'
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
    "change",
    [
        {"claim_id": "a"}, {"rule": "upwards"}, {"bar": ""}, {"bar_of": "theirs"},
        {"rule": "equal", "tolerance": "0.1"}, {"rule": "equal", "published": "1"},
        {"rule": "untestable"}, {"place": ""}, {"cluster": ""}, {"made": ""}, {"cell": ""},
        {"chapter": ""}, {"basis": "hearsay"},
    ],
)  # fmt: skip
def test_a_claim_that_is_not_whole_is_found(data, change):
    row = {
        "claim_id": "d", "claim": "It rises", "source": "x", "place": "y", "rule": "above",
        "bar": "0", "bar_of": "ours", "cluster": "z", "made": "after", "chapter": "1",
        "basis": "our scoring", "cell": "c",
    } | change  # fmt: skip
    path = data / "empalc.csv"
    line = ",".join(row.get(name, "") for name in HEAD.strip().split(","))
    path.write_text(path.read_text() + line + "\n")
    assert {row["claim_id"]} == set(_faulty(published()))


def test_what_is_tested_on_data_on_models_and_by_another_scoring_is_counted_apart():
    table = pd.DataFrame(
        [
            ("diagnostic", "published data", HELD),
            ("fairbelief", "published data", AGAINST),
            ("fairbelief", "our scoring", HELD),
            ("empalc", "our respondents", EMPTY),
        ],
        columns=["study", "basis", "verdict"],
    )
    found = claims.counts(table)
    data, models, scoring, _ = claims.BASES.values()
    assert found.loc[(data, "all")].tolist() == [1, 0, 0, 0, 1, 0, 2]
    assert found.loc[(models, "EMPALC")].tolist() == [0, 0, 1, 0, 0, 0, 1]
    assert found.loc[(scoring, "FairBelief")].tolist() == [1, 0, 0, 0, 0, 0, 1]
    assert found["claims"].drop("all", level="study").sum() == len(table)


def test_the_scorecard_reads_the_cells_that_chapters_show(data, runs):
    table = claims.scorecard(runs)
    assert table["verdict"].to_dict() == {"a": HELD, "b": UNTESTED}
    assert table.loc["a", ["value", "low", "high"]].tolist() == [0.4, 0.1, 0.7]
    assert math.isnan(table.loc["b", "value"])
    # The interval is .3 below and above .4: normal, so that p is that of 1.96 x .4 / .3.
    assert table.loc["a", "p"] == pytest.approx(0.00896, abs=1e-4)


def test_a_p_value_of_the_chapter_takes_the_place_of_the_intervals(data, runs):
    shown = "what,r,r low,r high,p of the claim\nrise,0.4,0.1,0.7,0.2\n"
    (runs / "09-own" / "tab-own.csv").write_text(shown)
    assert claims.scorecard(runs).loc["a", ["verdict", "p"]].tolist() == [OPEN, 0.2]
    (runs / "09-own" / "tab-own.csv").write_text(shown.replace("rise,0.4", "rise,-0.4"))
    assert claims.scorecard(runs).loc["a", "p"] == 1  # the side that is not claimed


def test_a_cell_that_its_chapter_does_not_show_stops_the_scorecard(data, runs):
    (runs / "09-own" / "tab-own.csv").write_text("what,r\nfall,0.4\n")
    with pytest.raises(DataError):
        claims.scorecard(runs)


def test_a_chapter_that_was_not_executed_leaves_its_claims_untested(data, runs):
    (runs / "09-own.ipynb").rename(runs / "08-other.ipynb")
    assert set(claims.scorecard(runs)["verdict"]) == {UNTESTED}


def test_a_chapter_in_execution_lists_what_it_has_shown(data, runs, tmp_path, monkeypatch):
    (runs / "09-own.ipynb").rename(runs / "08-other.ipynb")
    now = tmp_path / "now" / "09-own"
    now.mkdir(parents=True)
    (now / "tab-own.csv").write_text("what,r,r low,r high\nrise,0.6,0.5,0.7\n")
    monkeypatch.setattr("psychometrics_book.record._RUN.folder", now)
    assert claims.scorecard(runs).loc["a", ["value", "verdict"]].tolist() == [0.6, HELD]


@pytest.mark.parametrize("at_hand", [True, False])
def test_a_false_sentence_is_found_where_its_data_are_at_hand(data, runs, monkeypatch, at_hand):
    monkeypatch.setattr(claims, "available", lambda key: at_hand)
    table = claims.expectations(runs)
    assert table["holds"].tolist() == [True, False, *[False] * at_hand]


def _judged(runs, data, cell: str, rule: str, bar: str) -> tuple[str, str]:
    head = "chapter,sentence,cell,rule,bar,needs\n"
    (data.parent / "expectations.csv").write_text(f'{head}09-own,it is,"{cell}",{rule},"{bar}",\n')
    row = claims.judged_sentences(runs / "09-own.ipynb").iloc[0]
    return row["verdict"], row["shown"]


@pytest.mark.parametrize(
    ("cell", "rule", "bar", "verdict"),
    [
        ("09/tab-own[rise, r]", "above", "0", "holds here"),
        ("09/tab-own[rise, r]", "below", "0", "does not hold here"),
        ("09/tab-own[rise, r]", "excludes", "0", "holds here"),
        ("09/tab-own[rise, r]", "excludes", "0.5", "does not hold here"),
        ("09/tab-own[rise, r]", "includes", "0.5", "holds here"),
        ("09/tab-own[rise, r low]", "below a hundredth of", "11", "holds here"),
        ("09/tab-own[rise, r low]", "below a hundredth of", "9", "does not hold here"),
        ("09/tab-own[rise, r]", "at least", "0.4", "holds here"),
        ("09/tab-own[rise, r]", "within a tenth of", "0.43", "holds here"),
        ("09/tab-own[rise, r]", "within a tenth of", "0.5", "does not hold here"),
        ("09/tab-own[rise, r]", "has the sign of", "-1", "does not hold here"),
        ("09/tab-own[rise, r]", "nearer zero than", "-0.5", "holds here"),
        ("09/tab-own[rise, r]", "farther from zero than", "-0.5", "does not hold here"),
        ("09/tab-own[*, r]", "above", "09/tab-own[*, r low]", "holds here"),
        ("09/tab-none[*, r]", "above", "0", "cannot be judged here"),
        ("09/tab-own[fall, r]", "above", "0", "cannot be judged here"),
        ("09/tab-own[rise, what]", "above", "0", "cannot be judged here"),
        ("08/tab-own[rise, r]", "above", "0", "cannot be judged here"),
    ],
)
def test_a_sentence_of_the_book_holds_fails_or_cannot_be_said_for_another_run(
    data, runs, cell, rule, bar, verdict
):
    assert _judged(runs, data, cell, rule, bar)[0] == verdict


def test_a_sentence_on_cells_that_the_run_did_not_touch_does_not_hold_here(
    data, runs, monkeypatch, tmp_path
):
    kept = tmp_path / "shipped" / "tables" / "09-own"
    kept.mkdir(parents=True)
    table = "who,r,n\n{}\npeople,0.25,27\n"
    (kept / "tab-own.csv").write_text(table.format("models,0.5,3"))
    (runs / "09-own" / "tab-own.csv").write_text(table.format("models,0.4,3"))
    monkeypatch.setattr(claims, "data_dir", lambda: kept.parent.parent)
    monkeypatch.setattr(claims, "own_parameters", lambda executed: {"respondents": "mine"})

    def judged(cell, bar):
        head = "chapter,sentence,cell,rule,bar,needs\n"
        rule = f'{head}09-own,it is,"{cell}",above,"{bar}",\n'
        (kept.parent.parent / "expectations.csv").write_text(rule)
        return claims.judged_sentences(runs / "09-own.ipynb")["verdict"].item()

    untouched = "published data, not this run"
    assert judged("09/tab-own[people, r]", "0") == untouched
    assert judged("09/tab-own[people, n]", "0") == untouched
    assert judged("09/tab-own[models, r]", "0") == "holds here"
    assert judged("09/tab-own[models, n]", "0") == "holds here"  # its row differs
    assert judged("09/tab-own[models, r]", "09/tab-own[people, r]") == "holds here"
    assert judged("09/tab-own[people, r]", "09/tab-own[models, r]") == "does not hold here"


def test_a_star_stands_for_every_row_and_each_must_meet_the_rule(data, runs):
    shown = 'scale,who,r,r low,r high\n"a, b",one,0.4,0.1,0.7\nc,one,0.5,0.2,0.6\nc,two,-1,-2,0\n'
    (runs / "09-own" / "tab-own.csv").write_text(shown)
    judged = functools.partial(_judged, runs, data)

    assert judged("09/tab-own[*, one, r]", "above", "0.3")[0] == "holds here"
    assert judged("09/tab-own[*, one, r]", "above", "0.45")[0] == "does not hold here"
    assert judged("09/tab-own[c, *, r]", "below", "09/tab-own[c, *, r high]")[0] == "holds here"
    assert judged("09/tab-own[*, *, r]", "has the sign of", "1")[0] == "does not hold here"
    assert claims.expectations(runs)["value"].tolist() == [0.4, 0.5, -1.0]


def test_every_sentence_with_a_rule_is_a_quotation_from_its_chapter():
    table = pd.read_csv(data_dir() / "expectations.csv", dtype=str, keep_default_na=False)
    lost = []
    for chapter, part in table.groupby("chapter"):
        cells = json.loads((notebooks_dir() / f"{chapter}.ipynb").read_text(encoding="utf-8"))
        text = _normal("\n".join("".join(cell["source"]) for cell in cells["cells"]))
        lost += [one for one in part["sentence"] if _normal(one).rstrip(".") not in text]
    assert not lost


def test_a_sentence_with_several_cells_holds_only_if_it_holds_in_each(data, runs):
    verdicts = claims.judged_sentences(runs / "09-own.ipynb").set_index("sentence")["verdict"]
    assert verdicts["it rises"] == "holds here"
    path = data.parent / "expectations.csv"
    path.write_text(path.read_text() + '09-own,it rises,"09/tab-own[rise, r]",above,0.6,\n')
    verdicts = claims.judged_sentences(runs / "09-own.ipynb").set_index("sentence")["verdict"]
    assert verdicts["it rises"] == "does not hold here"
