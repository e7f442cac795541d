"""The teacher's items: forty, different, and right by arithmetic of another kind."""

import re
import zipfile
from xml.etree import ElementTree

import pandas as pd
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook, writes

from psychometrics.paths import book_dir, data_dir, notebooks_dir
from psychometrics_book.course import downloads
from psychometrics_book.course.downloads import lecture_plans, slide_list, write_downloads
from psychometrics_book.course.items import items
from psychometrics_book.studies.study_files import load_study
from recipes import lab


@pytest.mark.parametrize("seed", [0, 7])
def test_forty_items_have_answers_that_plain_arithmetic_gives_too(seed):
    table = items(seed)
    assert len(table) == 40
    assert table["question"].is_unique
    assert table["answer"].between(-9, 99).all()
    for question, found in zip(table["question"], table["answer"], strict=True):
        x = [float(n.replace("−", "-")) for n in re.findall(r"[-−]?\d+(?:\.\d+)?", question)]
        if "PSS of *often*" in question:
            a, b = x[0] / (x[0] + x[2]), x[1] / (x[1] + x[3])
            assert found == pytest.approx(b / (a + b))
        elif "On a line" in question:
            near, far = abs(x[0] - x[1]), (abs(x[0] - x[2]) + abs(x[0] - x[3])) / 2
            assert found == pytest.approx((far - near) / max(near, far))
        elif "attenuation" in question:
            assert found**2 == pytest.approx(x[0] ** 2 / (x[1] * x[2]))
        elif "probability is it solved" in question:
            assert found == pytest.approx(1 / (1 + 2.718281828459045 ** (x[1] - x[0])))
        elif "What is δ" in question:
            assert found * x[3] == pytest.approx(x[0] - x[2])


def test_the_lab_has_twenty_links_and_the_scores_that_python_gets():
    folder = lab.data_dir() / "lab"
    sheet, answers = pd.read_csv(folder / "sheet.csv"), pd.read_csv(folder / "answers.csv")
    assert sheet["link"].str.contains("premise=.+&hypothesis=.+").sum() == 20
    found = lab.scores(lab.wordings()[:2]).to_numpy()
    assert answers.iloc[:2, 1:].to_numpy() == pytest.approx(found, abs=6e-4)


@pytest.mark.parametrize(("name", "rows"), [("scales", 48), ("items", 624)])
def test_the_codebook_names_every_column_of_the_data_for_students(name, rows):
    table = pd.read_csv(data_dir() / "course" / f"{name}.csv")
    page = (book_dir() / "teaching.md").read_text(encoding="utf-8")
    assert len(table) == rows
    assert not table.isna().any(axis=None)
    assert f"course/{name}.csv" in page
    named = [column for column in table if not re.search(r"\d$", column)]
    assert [column for column in named if f"`{column}`" not in page] == []


def test_every_goal_of_the_course_has_exercises_that_a_chapter_has():
    page = (book_dir() / "teaching.md").read_text(encoding="utf-8")
    table = page.partition("(course-goals)=")[2].partition("\n## ")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    chapters = "".join(path.read_text(encoding="utf-8") for path in notebooks_dir().glob("*.ipynb"))
    assert len(rows) == 12
    for row in rows:
        exercises = re.findall(r"\{ref\}`(ex-[\w-]+)`", row)
        assert exercises, row
        assert [one for one in exercises if f":label: {one}" not in chapters] == []


PLAN = """:::{admonition} For teachers: a lecture of 90 minutes
:class: dropdown

| minutes | what |
| --- | --- |
| 0 to 90 | *Work.* {ref}`ex-a` and {ref}`a game <b>`. |
:::"""


@pytest.fixture
def chapters(tmp_path):
    """A folder with a page for each chapter, with a title, a question and a lecture plan."""
    folder = tmp_path / "chapters"
    folder.mkdir()
    texts = ("# A chapter\n\n**Question.** What?", "## Exercises\n\nNone.", PLAN)
    page = writes(new_notebook(cells=[new_markdown_cell(text) for text in texts]))
    for path in notebooks_dir().glob("[0-9]*.ipynb"):
        (folder / path.name).write_text(page, encoding="utf-8")

    return folder


def test_every_lecture_plan_has_a_goal_ninety_minutes_and_homework():
    plans = lecture_plans(notebooks_dir())
    assert plans["chapter"].nunique() == len([*notebooks_dir().glob("[0-9]*.ipynb")])
    for chapter, plan in plans.groupby("chapter"):
        steps = plan["minutes"].str.extract(r"^(\d+) to (\d+)$").dropna().astype(int)
        assert [0, *steps[1]] == [*steps[0], 90], chapter
        assert {"goal", "homework"} <= {*plan["minutes"]}, chapter


def test_a_lecture_plan_in_the_table_has_words_and_labels_in_place_of_links(chapters):
    plans = lecture_plans(chapters).drop_duplicates("chapter")
    assert plans.iloc[0].tolist() == ["1. A chapter", "0 to 90", "*Work.* ex-a and a game."]


@pytest.mark.parametrize("printed", [True, False])
def test_every_download_of_the_teaching_page_is_written_with_the_book(
    chapters, tmp_path, monkeypatch, printed
):
    if printed and downloads.find_browser() is None:
        pytest.skip("neither Chromium nor Chrome is on the PATH")

    if not printed:
        monkeypatch.setattr(downloads, "find_browser", lambda: None)

    for path in sorted(chapters.iterdir())[1:]:
        path.unlink()
    folder = tmp_path / "course"
    write_downloads(chapters, folder)
    text = (book_dir() / "teaching.md").read_text(encoding="utf-8") + slide_list(chapters)
    linked = re.findall(r'"_static/course/([^"]+)"', text)
    assert sorted(linked) == sorted(path.name for path in folder.iterdir())
    slides = [name for name in linked if name.startswith("slides-")]
    assert len(slides) == (2 if printed else 1)

    sheet = pd.read_csv(folder / "questions-2.csv")
    assert sheet["question"].tolist() == items(2)["question"].tolist()
    assert "answer" not in sheet
    with zipfile.ZipFile(folder / "for-teachers.zip") as archive:
        quiz = ElementTree.fromstring(archive.read("questions-2/moodle.xml"))
        assert len(quiz.findall("question[@type='numerical']")) == 40
        assert {
            "exercises/qti.xml",
            "exercises/solutions.md",
            "lectures.csv",
            "marked-example.md",
            "scales.csv",
        } <= {*archive.namelist()}


def test_the_template_of_a_claim_is_a_study_without_mistakes(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    study = load_study(book_dir() / "course" / "claim.yaml")
    assert study.mode == "chat"
