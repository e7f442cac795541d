"""Surveys: attention checks, a page for people, and the rules that screen their answers."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

import psychometrics as pm
from psychometrics.asking.survey import read_survey, screen, survey, write_survey
from psychometrics.exceptions import ParameterError

from .conftest import browser_path, foreign_sources, needs_browser, policy_of

IPIP = survey("ipip20")
OWN = [item.id for item in pm.load_questionnaire("ipip20").items]
CHECKS = {item.id: item for item in IPIP.items if item.id not in OWN}


def wanted(check):
    """The value of the option that a check names in its text."""
    return next(o.value for o in IPIP.choices(check) if CHECKS[check].text.endswith(o.label))


def person(values=None, **more):
    """A row of a form: varied answers, checks as they ask, ten seconds an item."""
    rng = np.random.default_rng(1)
    row = {item: float(rng.integers(1, 6)) for item in OWN}
    row |= {check: wanted(check) for check in CHECKS}
    return {"respondent": more.pop("name"), "seconds": 220, **row, **(values or {}), **more}


def read(rows, conditions="seconds"):
    return pm.read_answers(pd.DataFrame(rows), IPIP, conditions=conditions, progress=False)


def test_a_survey_has_checks_between_its_items_and_the_scores_of_the_questionnaire(tmp_path):
    ids = [item.id for item in IPIP.items]
    assert [name for name in ids if name in OWN] == OWN
    assert len(CHECKS) == 2
    assert not {ids[0], ids[-1]} & set(CHECKS)
    rows = [person(name="a"), person({OWN[0]: 1.0}, name="b")]
    pd.DataFrame(rows).to_csv(tmp_path / "answers.csv", index=False)
    answers, screened = read_survey([tmp_path / "answers.csv"], IPIP, progress=False)
    assert screened["kept"].all()
    with_checks = pm.scale_scores(answers)
    frame = pd.DataFrame(rows)[["respondent", *OWN]]
    without = pm.scale_scores(pm.read_answers(frame, "ipip20", progress=False))
    keys = ["respondent_id", "scale"]
    pd.testing.assert_series_equal(
        with_checks.set_index(keys)["score"], without.set_index(keys)["score"]
    )


def test_each_rule_names_who_breaks_it():
    wrong = {check: 6.0 - wanted(check) if wanted(check) != 3 else 1.0 for check in CHECKS}
    rows = [
        person(name="careful"),
        person(wrong, name="elsewhere"),
        person(dict.fromkeys(OWN, 3.0), name="alike"),
        person(name="hasty", seconds=22),
        person(dict.fromkeys(OWN[:3], ""), name="gaps"),
    ]
    found = screen(read(rows), IPIP).set_index("respondent_id")
    why = {"careful": "", "elsewhere": "attention", "alike": "alike"}
    assert found["why"].to_dict() == why | {"hasty": "pace", "gaps": "missing"}
    assert found.index[found["kept"]].tolist() == ["careful"]
    assert found.loc["elsewhere", "failed"] == 2
    assert found.loc["hasty", "pace"] == 1.0
    assert found.loc["gaps", "missing"] == pytest.approx(3 / 20)


def test_equal_answers_are_no_sign_where_no_item_is_reversed_and_no_time_breaks_no_rule():
    gad7 = survey("gad7", checks=1)
    [check] = [item for item in gad7.items if item.id.startswith("attention")]
    row = {item.id: 0 for item in gad7.items}
    row[check.id] = next(o.value for o in gad7.choices(check) if check.text.endswith(o.label))
    answers = pm.read_answers(pd.DataFrame([row]), gad7, progress=False)
    assert screen(answers, gad7)["why"].tolist() == [""]


@pytest.mark.parametrize("seconds", ["", "1:30"])
def test_seconds_that_are_not_a_number_are_a_reason_of_their_own(seconds, tmp_path):
    rows = [person(name="a"), person(name="b") | {"seconds": seconds}]
    pd.DataFrame(rows).to_csv(tmp_path / "answers.csv", index=False)
    answers, found = read_survey([tmp_path / "answers.csv"], IPIP, progress=False)
    assert found["why"].tolist() == ["", "seconds"]
    assert np.isnan(found["pace"].iloc[1])
    assert set(answers["respondent_id"]) == {"a"}


def test_a_check_speaks_the_questionnaires_language():
    texts = [item.text for item in survey("gad7_es").items if item.id.startswith("attention")]
    assert all(text.startswith("Para mostrar") for text in texts)


def test_a_table_for_other_tools_has_each_item_with_its_options(tmp_path):
    write_survey(IPIP, tmp_path / "form.csv")
    table = pd.read_csv(tmp_path / "form.csv")
    assert table["item_id"].tolist() == [item.id for item in IPIP.items]
    assert table.loc[0, "options"].startswith("1=very inaccurate; 2=")


def test_a_page_holds_each_item_and_option_and_no_markup_of_theirs(tmp_path):
    odd = IPIP.model_copy(update={"title": 'A "<b>" & more'})
    write_survey(odd, tmp_path / "form.html")
    page = (tmp_path / "form.html").read_text(encoding="utf-8")
    assert re.findall(r'<fieldset id="([^"]+)"', page) == [item.id for item in IPIP.items]
    assert page.count('type="radio"') == 5 * len(IPIP.items)
    assert "<title>A &quot;&lt;b&gt;&quot; &amp; more</title>" in page
    policy = policy_of(BeautifulSoup(page, "html.parser"))
    assert policy["default-src"] == ["'none'"]
    assert foreign_sources(policy) == set()


@needs_browser
def test_a_page_that_was_filled_in_saves_a_file_that_is_read(tmp_path):
    from playwright.sync_api import sync_playwright

    write_survey(IPIP, tmp_path / "form.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path())
        page = browser.new_page()
        page.add_init_script("delete Crypto.prototype.randomUUID")  # as on a page without https
        page.goto((tmp_path / "form.html").as_uri())
        for item in IPIP.items:
            page.check(f'input[name="{item.id}"][value="4"]')
        for name in ("answers.csv", "again.csv"):
            with page.expect_download() as download:
                page.click("button")
            download.value.save_as(tmp_path / name)
        browser.close()

    answers = pm.read_answers(tmp_path / "answers.csv", IPIP, progress=False)
    assert (answers["value"] == 4).all()
    assert len(answers) == len(IPIP.items)
    again = pm.read_answers(tmp_path / "again.csv", IPIP, progress=False)
    assert set(again["respondent_id"]) == set(answers["respondent_id"])  # one person, saved twice
    with pytest.raises(ParameterError):
        read_survey([tmp_path / "answers.csv", tmp_path / "again.csv"], IPIP, progress=False)


def test_the_command_writes_a_page_and_keeps_who_answered_with_care(tmp_path, ended):
    page = tmp_path / "form.html"
    code, shown, _ = ended("survey", "ipip20", "-o", page)
    assert code == 0
    assert page.is_file()
    for name, seconds in (("a", 220), ("b", 20)):
        row = person(name=name, seconds=seconds)
        pd.DataFrame([row]).to_csv(tmp_path / f"{name}.csv", index=False)

    kept = tmp_path / "kept.csv"
    code, shown, _ = ended("survey", "ipip20", tmp_path / "a.csv", tmp_path / "b.csv", "-o", kept)
    assert code == 0
    screened = pd.read_csv(io.StringIO(shown)).set_index("respondent_id")
    assert screened["kept"].to_dict() == {"a": True, "b": False}
    assert set(pd.read_csv(kept)["respondent_id"]) == {"a"}
    assert ended("scores", "ipip20", "--answers", kept)[0] == 0
    assert ended("survey", "ipip20")[0] == 1
    assert ended("survey", "ipip20", tmp_path / "a.csv", tmp_path / "a.csv")[0] == 1


def test_what_cannot_be_a_survey_is_refused(tmp_path):
    with pytest.raises(ParameterError):
        survey("gad7", checks=8)
    with pytest.raises(ParameterError):
        write_survey(IPIP, tmp_path / "form.docx")
    with pytest.raises(ParameterError):
        screen(read([person(name="a")]), pm.load_questionnaire("ipip20"))
    with pytest.raises(ParameterError):
        read_survey([], IPIP)
    gad7 = pm.load_questionnaire("gad7")
    names = (f"attention_{n}" for n in range(1, 8))
    items = [
        one.model_copy(update={"id": name}) for one, name in zip(gad7.items, names, strict=True)
    ]
    with pytest.raises(ParameterError):
        survey(gad7.model_copy(update={"id": "attention", "items": tuple(items)}))


def test_a_table_without_the_attention_items_is_refused_and_not_empty(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("gad7_1,gad7_2\n1,2\n2,3\n")
    with pytest.raises(ParameterError, match="attention_1"):
        read_survey([table], survey("gad7"), progress=False)
