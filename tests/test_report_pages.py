"""The page about a result: what its sentences say in every case, and how it looks and behaves."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

import psychometrics as pm
from psychometrics.measures.styles import empty_answers
from psychometrics.modes import load_respondent
from psychometrics.paths import book_dir
from psychometrics.reports import five_tests
from psychometrics.reports.answer_profiles import assess_answers
from psychometrics.reports.contents import report_answers, report_comparison, report_profile
from psychometrics.reports.own_base import equal_member, untouched_base
from psychometrics.reports.pages import format_latex, format_markdown, render_page
from psychometrics.reports.report import Column, NamedTest, Report, Statement, Table, report_schema
from psychometrics.reports.sentences import (
    VERDICTS,
    read_scale,
    state_differences,
    state_questionnaire,
    state_scales_of_answers,
)
from psychometrics.reports.terminal import print_report
from tests.conftest import loads_from_elsewhere, needs_browser

SMALL = "minilm-mnli-l3-s16"
NULLS = pd.DataFrame({"score": np.linspace(-0.1, 0.1, 99)})
PROMPTS = {"terms": "✓", "score": "✓", "trend": "✓", "agreeing": "✓", "accuracy": "✓"}
ITEMS = {"content": "✓", "commonest": "✓", "acquiescence": "✓", "answered": "✓"}


def _read(marks: dict[str, str], score: float = 0.2, low: float = 0.1, value: float = 0.5):
    row = pd.Series({"scale": "fear", "title": "Fear", "score": score, "low": low, "high": 0.3,
                     "mark": "!", "verdict": "no score: 3 of 7 items answered"})  # fmt: skip
    flags = pd.DataFrame(
        {"scale": "", "check": [*marks], "mark": [*marks.values()], "value": value}
    )
    return read_scale(row, flags, NULLS)


@pytest.mark.parametrize(
    ("marks", "more", "case", "said"),
    [
        (PROMPTS, {}, "passes", "You may report this model's fear (0.200): only 0 of 99 models"),
        (PROMPTS, {"score": np.nan}, "no score", "3 of 7 items answered"),
        (PROMPTS | {"guessing": "✗"}, {"value": 0.34}, "fails", "34% of pairs"),
        (PROMPTS | {"guessing": "✗"}, {"value": 0.03}, "fails", "check the order of its labels"),
        (PROMPTS | {"terms": "✗"}, {}, "fails", "opposite words apart no better than models that"),
        (PROMPTS | {"terms": "–"}, {}, "not compared", "fear yet (0.200 on the Fear scale)"),
        (PROMPTS | {"terms": "!"}, {}, "depends on size", "of some sizes, not if they are of"),
        (PROMPTS | {"score": "!"}, {"score": 0.05}, "as impostors",
         "Do not write about this model's fear. Its score (0.050) differs from zero, but 50 of 99 "
         "models that know nothing score as far once they are as decided."),
        (PROMPTS | {"score": "!"}, {"score": 0.05, "low": -0.1}, "as impostors",
         "Its score (0.050) cannot be told from zero, and 50 of 99"),
        (PROMPTS | {"trend": "!"}, {}, "reservations", "only with this reservation: its answers"),
        (PROMPTS | {"trend": "!", "agreeing": "!"}, {}, "reservations", "these reservations"),
        (PROMPTS | {"accuracy": "!"}, {}, "reservations", "often wrong at inference"),
        (PROMPTS, {"low": -0.1}, "reservations", "its interval over items includes zero"),
        (ITEMS, {}, "passes", "better than the same answers dealt out at random"),
        (ITEMS | {"content": "✗"}, {}, "fails", "no better than the same answers dealt out"),
        (ITEMS | {"content": "✗"}, {"value": 0.0}, "fails", "the same answer to every item"),
        (ITEMS | {"content": "–"}, {}, "not compared", "all items are keyed alike"),
        (ITEMS | {"commonest": "!"}, {}, "reservations", "one option makes up most"),
        (ITEMS | {"acquiescence": "!"}, {}, "reservations", "leans to one end of the options"),
        (ITEMS | {"answered": "!"}, {}, "reservations", "refused or could not be read"),
        (ITEMS | {"alone": "–"}, {}, "reservations", "could not be tested by itself"),
    ],
)  # fmt: skip
def test_every_case_has_its_sentence(marks, more, case, said):
    reading = _read(marks, **more)
    assert reading.case == case
    assert reading.verdict == VERDICTS[case]
    assert said in state_questionnaire("Fear scale", [reading])


def test_scales_of_one_case_share_a_sentence_and_the_worst_case_comes_first():
    readings = [_read(PROMPTS), _read(PROMPTS | {"terms": "✗"}), _read(PROMPTS | {"terms": "✗"})]
    sentences = state_questionnaire("Fear scale", readings)
    assert sentences.startswith("Do not write about this model's fear and fear:")
    assert sentences.count("Do not write") == 1
    assert sentences.index("Do not") < sentences.index("You may report")


@pytest.mark.parametrize(
    ("verdict", "may_be_written"),
    [
        ("no difference shown", False),
        ("no clearer than between random heads", False),
        ("cannot be judged: no random heads on their own bases", False),
        ("cannot be tested", False),
        ("differ on these items", True),
        ("differ", True),
    ],
)
def test_every_verdict_on_a_difference_has_its_sentence(verdict, may_be_written):
    rows = pd.DataFrame(
        {"title": ["Anxiety"], "difference": [0.1], "null": [0.4], "verdict": [verdict]}
    )
    sentence = state_differences(rows, "a", "b")
    assert sentence.startswith("You may write" if may_be_written else "Do not write")
    unread = state_differences(rows, "a", "b", unread=["a"])
    assert unread.startswith("Do not write"), "the score of one of them must not be interpreted"


@pytest.mark.parametrize(
    ("alpha", "said"),
    [(np.nan, "No alpha"), (0.2, "random answers"), (0.4, "mere habits"), (0.9, "You may write")],
)
def test_every_alpha_has_its_sentence(alpha, said):
    rows = pd.DataFrame({"title": ["Anxiety"], "respondents": [40], "alpha": [alpha],
                         "independent": [0.3], "habit": [0.5]})  # fmt: skip
    assert said in state_scales_of_answers(rows)
    few = state_scales_of_answers(rows.assign(respondents=12))
    assert ("too few for a precise alpha" in few) == (alpha == 0.9)
    raw = state_scales_of_answers(rows.assign(alpha_raw=0.95, bias=0.6, random_low=0.4))
    assert ("without reversing any answer" in raw) == (alpha == 0.9)
    biased = state_scales_of_answers(rows.assign(alpha_raw=0.1, bias=0.5, random_low=0.4))
    assert ("agreeing may explain it" in biased) == (alpha == 0.9)
    nobody = state_scales_of_answers(rows.assign(respondents=0))
    assert nobody.startswith("Nothing can be written")


@pytest.fixture(scope="module")
def assessment(tmp_path_factory):
    store = tmp_path_factory.mktemp("page-store")
    return pm.profiles.assess(SMALL, ["gad7", "placebo_weather"], store=store)


@pytest.fixture(scope="module")
def page(assessment, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "profile.html"
    report = report_profile(assessment)
    pm.pages.write_page(report, pm.pages.draw_scores(assessment), [file])
    return file


def test_a_report_has_five_tests_and_a_test_that_was_not_done_says_how(assessment):
    tests = {test.name: test for test in report_profile(assessment).tests}
    assert list(tests) == ["impostor", "weather", "ten runs", "turn it round", "twin"]
    assert tests["weather"].status in ("passed", "failed")
    alone = pm.profiles.assess(SMALL, "gad7", against=None)
    for test in report_profile(alone).tests:
        assert (test.status == "not done") == bool(test.command)
        if test.command:
            assert test.command.startswith(f"psychometrics profile {SMALL} --questionnaires gad7")


def test_a_score_no_farther_than_that_of_the_weather_is_reserved(assessment):
    with_placebo = replace(assessment, scores=assessment.scores.assign(score=0.05))
    (statement, _) = report_profile(with_placebo).statements
    assert statement.case != "passes"
    flags = assessment.flags.assign(mark="✓")
    passing = replace(with_placebo, flags=flags)
    (statement, _) = report_profile(passing).statements
    assert statement.case == "reservations"
    assert "about nothing" in statement.text


def test_the_scores_of_a_page_are_those_of_the_assessment(assessment):
    report = report_profile(assessment)
    rows = pd.DataFrame(report.results.rows)
    np.testing.assert_allclose(rows["score"], assessment.scores["score"])
    nulls = assessment.nulls
    for row in rows.itertuples():
        drawn = nulls.loc[nulls["scale"] == row.scale, "score"].abs()
        assert row.impostors == f"{(drawn >= abs(row.score)).sum()} of {len(drawn)}"


def test_a_report_is_json_of_the_schema_that_the_book_publishes(assessment):
    report = report_profile(assessment)
    assert Report.model_validate_json(report.to_json()) == report
    published = json.loads((book_dir() / "_static" / "report.schema.json").read_text("utf-8"))
    assert published == report_schema()
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(published).validate(json.loads(report.to_json()))


def test_a_page_is_one_small_file_that_loads_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    assert loads_from_elsewhere(text) == []
    assert not re.search(r'(?:src|href)="https?:', text)
    for form in ("Copy as Markdown", "Copy as LaTeX", "Figure as SVG", "Figure as PDF"):
        assert form in text


def test_whatever_a_name_holds_is_text_on_the_page():
    evil = "<script>alert(1)</script>\"'&$x$"
    table = Table(name="t", title=evil, columns=[Column(key="a", heading=evil)], rows=[{"a": evil}])
    report = Report(
        kind="profile", title=evil, about=evil, results=table, details=[table], command=evil,
        statements=[Statement(about=evil, case="fails", verdict=evil, text=evil)],
        tests=[NamedTest(name="twin", question=evil, status="passed", done=evil, results=[evil],
                         meaning=evil)],
    )  # fmt: skip
    text = render_page(report, None, "page")
    assert "<script>alert" not in text
    assert text.count("<script>") == 1


def test_a_table_is_copied_as_markdown_and_latex():
    columns = [Column(key="a", heading="share|part"), Column(key="b", heading="b", form=".2f")]
    table = Table(name="t", title="T.", columns=columns, rows=[{"a": "5 % of a_b", "b": -0.5}])
    assert format_markdown(table).splitlines()[2] == "| 5 % of a_b | −0.50 |"
    assert "share\\|part" in format_markdown(table)
    assert r"5 \% of a\_b & $-$0.50 \\" in format_latex(table)


def test_results_show_themselves_in_jupyter(assessment):
    shown = assessment._repr_html_()
    assert report_profile(assessment).statements[0].text[:40] in shown.replace("&#39;", "'")
    assert "<svg" in shown
    assert "<script" not in shown


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_verdicts_whole_and_colours_only_where_they_are_wanted(
    assessment, width, monkeypatch
):
    report = report_profile(assessment)
    shown = {}
    for name, value in (("plain", "1"), ("coloured", "")):
        monkeypatch.setenv("NO_COLOR", value)
        file = io.StringIO()
        settings = {"force_terminal": True, "color_system": "256", "highlight": False}
        print_report(report, Console(file=file, width=width, **settings))
        shown[name] = file.getvalue()

    assert "\x1b[38;5;" in shown["coloured"] or "\x1b[3" in shown["coloured"]
    assert not re.search(r"\x1b\[3[0-9]", shown["plain"])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown["plain"]).splitlines()
    assert max(map(len, lines)) <= width
    for row in report.results.rows:
        assert any(row["verdict"] in line and row["scale_title"] in line for line in lines)
    assert ("others below" in shown["plain"]) == (width == 120), "no room"
    for test in report.tests:
        assert any(test.status in line and test.name in line for line in lines)


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900, 1600])
def test_a_page_is_accessible_and_its_verdicts_are_seen_at_every_width(
    page, browser, width, scheme
):
    from axe_playwright_python.sync_playwright import Axe

    tab = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    view = tab.new_page()
    view.goto(page.as_uri())
    view.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [rule["id"] for rule in Axe().run(view).response["violations"]] == []
    for badge in view.query_selector_all(".badge"):
        box = badge.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    heights = view.evaluate(
        "[...document.querySelectorAll('.plate text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) >= 10, "the figure's text can be read"
    tab.close()


@needs_browser
def test_a_page_prints_on_two_pages(assessment, tmp_path):
    pypdf = pytest.importorskip("pypdf")
    file = tmp_path / "profile.pdf"
    pm.pages.write_page(report_profile(assessment), pm.pages.draw_scores(assessment), [file])
    assert len(pypdf.PdfReader(file).pages) <= 2


@needs_browser
def test_a_button_copies_the_sentence(page, assessment, browser):
    tab = browser.new_context()
    tab.grant_permissions(["clipboard-read", "clipboard-write"])
    view = tab.new_page()
    view.goto(page.as_uri())
    view.get_by_text("Copy the sentence").first.click()
    view.wait_for_selector(".said:not(:empty)")
    copied = view.evaluate("navigator.clipboard.readText()")
    assert copied == report_profile(assessment).statements[0].text
    tab.close()


def test_a_member_that_was_saved_to_a_folder_has_the_same_page(tmp_path):
    member = load_respondent(SMALL)
    folder = tmp_path / "saved"
    member.model.save_pretrained(folder)
    member.tokenizer.save_pretrained(folder)
    assert equal_member(str(folder)) == SMALL
    reports = [
        report_profile(pm.profiles.assess(name, "gad7", store=tmp_path / "store"))
        for name in (SMALL, str(folder))
    ]
    assert reports[0].statements == reports[1].statements
    assert [test.results for test in reports[0].tests] == [t.results for t in reports[1].tests]


def test_a_base_is_found_where_the_models_own_configuration_names_it(tiny_model, tmp_path):
    def name_base(base: str) -> str:
        folder = shutil.copytree(tiny_model, tmp_path / f"names-{len(list(tmp_path.iterdir()))}")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"_name_or_path": base}))
        return str(folder)

    found = untouched_base(name_base(str(tiny_model)))
    assert found.is_own
    assert found.base == str(tiny_model)
    assert not untouched_base(name_base("nobody/has-this-model")).is_own
    assert not untouched_base(name_base("embedded")).is_own
    assert "--base" in untouched_base(str(tiny_model)).description


def test_pages_about_several_models_and_about_answers_say_what_may_be_written():
    models = [SMALL, "minilm-snli-l3-s17"]
    comparison = pm.comparisons.compare_models(models, "challenges", against=None)
    report = report_comparison(comparison)
    assert len(report.statements) == 3
    assert {row["model"] for row in report.results.rows} == set(models)

    answers = pm.styles.empty_answers("ipip20", "random", respondents=12, runs=2)
    tables = pm.answer_profiles.assess_answers(answers, "ipip20")
    report = report_answers(answers, tables, [pm.load_questionnaire("ipip20")], "my-table")
    assert report.title == "my-table"
    assert {statement.about for statement in report.statements} == {"Mini-IPIP"}
    assert [test.name for test in report.tests][2:4] == ["ten runs", "turn it round"]
    assert pm.pages.draw_alphas(tables["scales"], {"ipip20": "Mini-IPIP"}) is not None


def test_the_limits_of_five_scales_together_are_those_of_one_in_a_hundred():
    answers = empty_answers("ipip20", "random", respondents=40, runs=1)
    scales = assess_answers(answers, "ipip20")["scales"]
    limits = 1 - 1 / stats.f.ppf(0.99, 39, 39 * 3)
    np.testing.assert_allclose(scales["independent"], limits)


def test_every_case_of_a_test_says_what_was_done_and_what_it_means():
    for case, texts in five_tests._TEXTS["cases"].items():
        meanings = {"meaning", "failed", "open", "not done", "passed"} & texts.keys()
        assert texts["test"] in five_tests.QUESTIONS, case
        assert texts["done"], case
        assert "meaning" in meanings or {"failed", "passed"} <= meanings, case
        assert texts.keys() <= {"test", "done", "nothing", "line", *meanings}, case


def test_answers_at_random_hardly_ever_pass_by_being_turned_round():
    statuses = []
    for seed in range(8):
        answers = empty_answers("ipip20", "random", respondents=40, runs=1, seed=seed)
        bias = assess_answers(answers, "ipip20")["bias"]
        one_by_one = [bias[bias["title"] == title] for title in bias["title"]]
        statuses += [five_tests._turned_answers(scale).status for scale in one_by_one]

    assert len(statuses) == 40
    assert statuses.count("passed") <= 4  # 2.5 % of 40, and two standard deviations more
