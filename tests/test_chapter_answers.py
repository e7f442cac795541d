"""Chapters 10, 11 and 12 on a table of answers of one's own."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.paths import data_dir
from psychometrics_book import check_parameters, runs
from recipes.talk import without_items

QUICK = {"10-self-report": {"runs": 2, "wording": "none"}}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Twelve models of 2024 on the IPIP-50, as a file with a row for each."""
    answers = pd.read_csv(data_dir() / "published" / "answers.csv.gz")
    answers = answers.query("source == 'llmpersonality'")[list(pm.questionnaires.answers.COLUMNS)]
    path = tmp_path_factory.mktemp("own") / "models.wide.csv"
    pm.write_answers(answers, path)
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory, table):
    """Function that runs a chapter on the table, once: the folder of its tables and its page."""
    folder = tmp_path_factory.mktemp("runs")

    def run(chapter: str) -> tuple[Path, str]:
        output = folder / f"{chapter}.ipynb"
        page = output.with_suffix(".html")
        if not page.exists():
            parameters = {"answers": str(table)} | QUICK[chapter]
            runs.run_notebook(chapter, parameters, output, progress=False, page=page)
        return folder, page.read_text(encoding="utf-8")

    return run


@pytest.mark.parametrize("chapter", ["10-self-report", "11-ways-of-asking", "12-published-answers"])
def test_a_table_that_is_not_there_is_named_before_anything_runs(chapter):
    with pytest.raises(ParameterError, match=r"nowhere\.csv"):
        check_parameters(chapter, {"answers": "nowhere.csv"})


def test_a_questionnaire_without_a_table_is_refused(table):
    with pytest.raises(ParameterError, match="answers"):
        check_parameters("12-published-answers", {"questionnaire": "ipip20"})
    check_parameters("12-published-answers", {"questionnaire": "ipip50", "answers": str(table)})
    with pytest.raises(ParameterError, match="ipip20"):  # the table answers another one
        check_parameters("12-published-answers", {"questionnaire": "ipip20", "answers": str(table)})


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_a_table_of_a_few_sheets_is_refused_before_anything_runs(table, tmp_path, rows):
    path = tmp_path / "few.csv"
    pd.read_csv(table).head(rows).to_csv(path, index=False)

    with pytest.raises(ParameterError, match=f" {rows} row"):
        check_parameters("12-published-answers", {"answers": str(path)})


@pytest.mark.timeout(1800)
def test_each_respondent_of_a_table_is_compared_with_peoples_norms(ran):
    folder, page = ran("10-self-report")
    scores = pd.read_csv(folder / "10-self-report" / "tab-people.csv")
    assert scores["respondent_id"].nunique() == 13  # with answers at random
    gpt = scores.set_index(["scale", "respondent_id"]).loc[("agreeableness", "gpt-4o")]
    answers = pd.read_csv(data_dir() / "published" / "answers.csv.gz")
    answers = answers.query("source == 'llmpersonality' and respondent_id == 'gpt-4o'")
    answers = answers[list(pm.questionnaires.answers.COLUMNS)]
    own = pm.scale_scores(answers, "ipip50").set_index("scale")["score"]
    assert gpt["score"] == pytest.approx(own["agreeableness"])
    assert "not the published run" in page


def test_the_larger_models_of_chapter_11_have_an_answer_to_every_item_in_every_cell():
    table = pd.read_csv(data_dir() / "larger.csv")
    by_options = table[table["mode"] == "options"]
    cells = by_options.groupby(["model", "role", "wording", "permutations"])["item_id"].nunique()
    assert set(cells.groupby("model").size()) == {12}
    assert set(cells) == {50}
    assert by_options["value"].between(1, 5).all()
    talked = table[table["mode"] == "chat"].groupby("model")["choice"]
    assert set(talked.size()) == {20}
    read = {"smollm2": 0, "qwen2.5-coder-0.5b": 20, "qwen2.5-coder-1.5b": 20}
    assert talked.count().to_dict() == read


def test_ten_orders_are_complete_and_a_place_is_where_the_order_has_the_option():
    table = pd.read_csv(data_dir() / "larger_orders.csv", dtype={"permutations": str})
    cells = table.groupby(["model", "mode", "role", "wording"])
    assert set(cells["permutations"].nunique()) == {10}
    assert set(cells.size()) == {100}
    by_options = table[table["mode"] == "options"]
    assert set(by_options.groupby("model").size()) == {600}
    assert by_options["value"].between(1, 4).all()
    read = table.dropna(subset="choice")
    shown = zip(read["permutations"], read["place"], strict=True)
    assert [int(order[int(place) - 1]) for order, place in shown] == read["choice"].to_list()


def test_a_shipped_reply_does_not_repeat_an_items_wording():
    mini = pm.load_questionnaire("ipip20")
    reply = "1. I am the life\nof the party: 4\n2. I am fine."
    assert without_items(reply, mini) == "1. …: 4\n2. I am fine."
