"""The reporting checklist."""

from __future__ import annotations

import pandas as pd
import pytest

import psychometrics as pm

KNOWN = "known"
AUTHOR = "to be added by the author"
MISSING = "missing"


def test_the_items_are_the_fourteen_of_guide_llm_and_four_of_this_book():
    table = pm.checklist.checklist({})
    assert table["source"].value_counts().to_dict() == {"GUIDE-LLM": 14, "this book": 4}
    assert table.index.is_unique
    assert set(table["status"]) == {AUTHOR, MISSING}


def test_what_is_known_is_shown_and_all_else_marked():
    table = pm.checklist.checklist({"G.1": "none", "N.4": "no plan was made"})
    assert table.index[table["status"] == KNOWN].tolist() == ["G.1", "N.4"]
    assert table.loc["E.1", "status"] == AUTHOR
    assert table.loc["C.1", "status"] == MISSING


@pytest.mark.parametrize(
    ("names", "status"), [(["gad7"], MISSING), (["gad7", "placebo_weather"], KNOWN)]
)
def test_a_placebo_is_known_only_where_one_was_asked(names, status):
    asked = pm.styles.empty_answers("gad7", respondents=3, runs=2)
    answers = pd.concat(asked.assign(questionnaire=name) for name in names)
    table = pm.checklist.of_answers(answers)
    assert table.loc["N.2", "status"] == status
    assert table.loc["N.3", "answer"].startswith("3 respondents; 6 runs")
    assert table.loc["B.1", "status"] == MISSING  # a file does not say which models these are


def test_markdown_has_a_row_for_each_item_and_no_cell_breaks_the_table():
    table = pm.checklist.checklist({"A.1": "to ask | to score\nand to judge"})
    lines = pm.pages.format_markdown(pm.contents.make_checklist(table)).splitlines()
    assert len(lines) == 2 + len(table)
    assert all(line.replace("\\|", "").count("|") == 6 for line in lines)
