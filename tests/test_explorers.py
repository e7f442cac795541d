"""Things to try in the page: exercises that are checked, explorers; in headless Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from psychometrics.book import answer
from psychometrics.cli import main
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.pages import exercises
from psychometrics.paths import book_dir, notebooks_dir

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
THEME = "Got invalid theme mode"  # the theme says so at a first visit; nothing of ours
NOTEBOOK = {
    "number": "import psychometrics as pm\npm.book.answer('ex-number', -1515.25, 0.5)",
    "share": "pm.book.answer('ex-share', 0.42)",
    "word": "pm.book.answer('ex-word', 'PHQ-9|depression')",
}
PAGE = """# A page with exercises

````{{exercise}}
:label: {name}

What is it?

```{{check}} {name}
```
````
"""


def _toc(*pages: str) -> str:
    chapters = "".join(f"- file: {page}\n" for page in pages)
    return "format: jb-book\nroot: index\n" + (f"chapters:\n{chapters}" if pages else "")


def _build(folder: Path, *options: str) -> subprocess.CompletedProcess:
    """The book of a folder, with the settings, extensions and scripts of ours."""
    for name in ("_config.yml", "_ext", "_static", "references.bib"):
        source = book_dir() / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", str(folder), "-W", "--keep-going", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def executed(tmp_path_factory) -> Path:
    """An executed notebook that has recorded three answers in cells that no page shows."""
    folder = tmp_path_factory.mktemp("book")
    cells = [nbformat.v4.new_markdown_cell(PAGE.format(name=f"ex-{name}")) for name in NOTEBOOK]
    cells += [
        nbformat.v4.new_code_cell(source, metadata={"tags": ["remove-cell"]})
        for source in NOTEBOOK.values()
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "exercises.ipynb")
    papermill.execute_notebook(
        str(folder / "exercises.ipynb"),
        str(folder / "exercises.ipynb"),
        kernel_name="python3",
        progress_bar=False,
    )
    return folder


@pytest.fixture
def file(tmp_path, monkeypatch, executed) -> Path:
    """A file of answers, as the executed notebook gives them."""
    path = tmp_path / "exercises.csv"
    assert exercises._write(executed, path) == 3
    monkeypatch.setattr(exercises, "_FILE", path)
    return path


def test_recorded_answers_go_to_the_file_and_come_back(file, executed):
    known = exercises.known()
    assert known["answer"].to_dict() == {
        "ex-number": -1515.25,
        "ex-share": 0.42,
        "ex-word": "PHQ-9|depression",
    }
    assert known["tolerance"].to_dict() == pytest.approx(
        {"ex-number": 0.5, "ex-share": 0.005, "ex-word": float("nan")}, nan_ok=True
    )
    assert set(known["chapter"]) == {"exercises"}
    assert exercises.differences(executed) == []


def test_an_answer_that_is_not_in_the_file_or_otherwise_is_named(file, executed):
    text = file.read_text()
    file.write_text(text.replace("0.42", "0.43").replace("ex-word", "ex-gone"))
    assert exercises.differences(executed) == [
        "No cell of exercises records the answer of ex-gone.",
        "The answer of ex-share is 0.42 in exercises, and 0.43 (exercises) in the file.",
        "The answer of ex-word (exercises) is not in the file.",
    ]


@pytest.mark.parametrize(
    ("name", "said", "right"),
    [
        ("ex-number", "-1515.25", True),
        ("ex-number", "\N{MINUS SIGN}1 515,6", True),
        ("ex-number", "-1,515.2", True),
        ("ex-number", "-1515.8", False),
        ("ex-number", "1515.25", False),
        ("ex-share", ".42", True),
        ("ex-share", "0,425", True),
        ("ex-share", "42 %", True),
        ("ex-share", "4.2e-1", True),
        ("ex-share", "0.426", False),
        ("ex-share", "42", False),
        ("ex-word", " phq 9 ", True),
        ("ex-word", "Depression", True),
        ("ex-word", "GAD-7", False),
    ],
)
def test_what_was_typed_is_read_as_it_was_meant(file, name, said, right):
    assert exercises.is_right(name, said) is right


def test_the_command_says_right_or_not_yet_with_its_status(file, monkeypatch, capsys):
    def ended(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["psychometrics", "check-answer", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    assert ended("ex-number", "-1515,2") == (0, "Right.\n", "")
    assert ended("ex-word", "PHQ", "9") == (0, "Right.\n", "")
    assert ended("ex-share", "0.6") == (1, "Not yet.\n", "")
    status, _, said = ended("ex-shares", "0.42")
    assert status == 1
    assert "There is no exercise to check 'ex-shares' (did you mean 'ex-share'?)" in said
    status, _, said = ended("ex-share", "high")
    assert (status, said) == (
        1, "psychometrics: The answer is a number, such as 0.42; 'high' is none.\n"
    )  # fmt: skip


def test_answers_that_are_none_are_refused_and_what_is_not_finite_is_left_out(capsys):
    for value, tolerance in [(True, None), ("", None), ("word", 0.1), (0.5, -1), (None, None)]:
        with pytest.raises(ParameterError, match=r"^ex-a: "):
            answer("ex-a", value, tolerance)
    answer("ex-a", float("nan"))
    assert capsys.readouterr().out == ""


def test_an_exercise_that_is_recorded_twice_is_named(tmp_path, executed):
    for name in ("one", "two"):
        shutil.copy(executed / "exercises.ipynb", tmp_path / f"{name}.ipynb")
    with pytest.raises(DataError, match=r"two\.ipynb: the exercise 'ex-number' is recorded twice"):
        exercises.recorded(tmp_path)


def test_the_executed_chapters_give_what_the_file_holds():
    if not (book_dir() / "chapters").is_dir():
        pytest.skip("the book has not been built: make book")
    assert exercises.differences() == []


def test_every_checked_exercise_of_a_chapter_has_its_answer_in_the_file():
    asked = {}
    for path in notebooks_dir().glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for line in cell["source"]:
                if line.strip().startswith("```{check}"):
                    asked[line.split()[-1]] = path.stem
    known = exercises.known()["chapter"].to_dict()
    assert {name: known.get(name) for name in asked} == asked
    assert set(known) == set(asked), "every answer is asked for in a chapter"


# --- in the page


@pytest.fixture(scope="module")
def site(executed) -> Path:
    """Folder of the built trial book."""
    (executed / "index.md").write_text("# Trial\n")
    (executed / "_toc.yml").write_text(_toc("exercises"))
    run = _build(executed)
    assert run.returncode == 0, run.stderr[-3000:]
    return executed / "_build" / "html"


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, the system's own."""
    if not CHROMIUM:
        if os.environ.get("CI") == "true":
            pytest.fail("CI=true needs Chromium: apt-get install chromium")
        pytest.skip("there is no Chromium on this machine")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-quic"]
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, site):
    """Function that opens a page from its file; nothing may fail, or be loaded from elsewhere."""
    contexts, wrong = [], []

    def page(name: str, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and THEME not in m.text and wrong.append(m))
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or wrong.append(r.url))
        page.goto((site / name).as_uri())
        return page

    yield page
    for context in contexts:
        context.close()
    assert not wrong


def test_the_page_checks_an_answer_by_keyboard_alone_and_does_not_tell_it(visit):
    page = visit("exercises.html")
    field = page.get_by_label("Your answer").nth(1)
    said = page.locator("form.check-answer output").nth(1)
    field.focus()
    for typed, verdict in [("0,5", "Not yet"), ("high", "is a number"), ("0,42", "Right")]:
        field.fill(typed)
        page.keyboard.press("Enter")
        assert verdict in said.inner_text()
        assert ("0.42" in said.inner_text()) == (typed == "high")
    assert said.get_attribute("aria-live") == "polite"
    assert page.get_by_text("psychometrics check-answer").first.is_hidden()


@pytest.mark.parametrize(
    ("name", "said"),
    [("ex-number", "-1,515.2"), ("ex-number", "-1515.8"), ("ex-share", "42 %"), ("ex-share", "42"),
     ("ex-word", " phq 9"), ("ex-word", "GAD-7")],
)  # fmt: skip
def test_the_page_and_the_command_agree(visit, file, name, said):
    page = visit("exercises.html")
    form = page.locator(f"form:has(#check-{name})")
    form.locator("input").fill(said)
    form.locator("button").click()
    right = "Right" in form.locator("output").inner_text()
    assert right is exercises.is_right(name, said)


def test_without_scripts_the_page_names_the_command(visit):
    page = visit("exercises.html", java_script_enabled=False)
    assert page.locator("form.check-answer").first.is_hidden()
    assert page.get_by_text("psychometrics check-answer ex-share VALUE").is_visible()


def test_an_exercise_without_an_answer_fails_the_build(tmp_path):
    (tmp_path / "index.md").write_text(PAGE.format(name="ex-nowhere"))
    (tmp_path / "_toc.yml").write_text(_toc())
    run = _build(tmp_path)
    assert run.returncode
    assert "No cell records the answer of the exercise 'ex-nowhere'" in run.stderr
