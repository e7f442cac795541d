"""Running notebooks and building the book."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser

import pytest

from psychometrics.book import (
    _execution_page,
    check_parameters,
    notebook_names,
    parse_parameters,
    run_notebook,
)
from psychometrics.exceptions import ParameterError, PsychometricsError
from psychometrics.paths import book_dir, notebooks_dir

GOOD = {
    "questionnaire": "gad7",
    "respondents": "minilm-mnli-l6-s2",
    "score": "entailment",
    "temperature": 1.0,
    "dtype": "auto",
    "seed": 1,
}
HTML = book_dir() / "_build" / "html"


def _text(path) -> str:
    """Printed and displayed text of an executed notebook."""
    cells = json.loads(path.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = [o.get("text", o.get("data", {}).get("text/plain", "")) for o in outputs]
    return "\n".join("".join(part) for part in shown)


@pytest.mark.parametrize("name", ["01-prompt-design", "02-assessment"])
def test_a_notebook_runs_on_another_instrument_and_a_users_own_model(
    name, tmp_path, tiny_model, monkeypatch
):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))
    parameters = {
        "questionnaire": "phq9",
        "respondents": f"{tiny_model},minilm-mnli-l6-s2",
        "score": "contrast",
        "temperature": 0.5,
    }
    output = run_notebook(name, parameters, tmp_path / "out.ipynb", progress=False)
    assert "PHQ-9" in _text(output)
    figures = [
        output
        for cell in json.loads(output.read_text())["cells"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(figures) >= 3
    assert not re.search(r"Warning", _text(output)), "a chapter shows no warnings"


def test_papermill_alone_stops_at_a_wrong_name_before_a_model_loads(tmp_path):
    command = [sys.executable, "-m", "papermill", str(notebooks_dir() / "02-assessment.ipynb")]
    command += [str(tmp_path / "out.ipynb"), "-p", "questionaire", "phq9"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode
    assert "There is no parameter 'questionaire' (did you mean 'questionnaire'?)" in run.stderr


def test_a_wrong_value_stops_with_one_sentence_before_a_model_loads(tmp_path):
    with pytest.raises(PsychometricsError) as error:
        run_notebook("02-assessment", {"score": "neutral"}, tmp_path / "o.ipynb", progress=False)
    assert str(error.value) == (
        "02-assessment, ParameterError: score must be one of entailment, contrast, got 'neutral'."
    )


def test_a_wrong_notebook_or_parameter_stops_before_anything_runs(tmp_path):
    began = time.perf_counter()
    with pytest.raises(ParameterError, match=r"did you mean '02-assessment'\?"):
        run_notebook("02-assesment", output=tmp_path / "o.ipynb")
    with pytest.raises(ParameterError, match=r"no parameter 'temprature' \(did you mean 'temperat"):
        run_notebook("02-assessment", {"temprature": 2}, tmp_path / "o.ipynb")
    assert not list(tmp_path.iterdir())
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("questionnaire", "gad", r"did you mean 'gad7'\?"),
        ("questionnaire", 7, "questionnaire must be text"),
        ("respondents", "nobody-here", "nobody-here"),
        ("respondents", " , ", "name at least one"),
        ("respondent", "minilm", "There is no respondent 'minilm'"),
        ("temperature", 0, "temperature must be a positive number, got 0"),
        ("temperature", "hot", "temperature must be a positive number, got 'hot'"),
        ("dtype", "float16", "dtype must be one of auto, float32, bfloat16"),
        ("seed", -1, "seed must be a whole number from 0"),
        ("item", 8, "item must be a whole number from 1 to 7, got 8"),
        ("item", True, "item must be a whole number"),
    ],
)
def test_impossible_parameters_are_named(name, value, said):
    with pytest.raises(PsychometricsError, match=said):
        check_parameters(**(GOOD | {name: value}))


def test_good_parameters_pass():
    check_parameters(**GOOD, item=7, respondent="first")


def test_parameters_from_the_command_line_are_numbers_where_they_look_like_it():
    assert parse_parameters(["a=1", "b=0.5", "c=phq9", "d=x=y", "e=", "f=1e-3"]) == {
        "a": 1, "b": 0.5, "c": "phq9", "d": "x=y", "e": "", "f": 1e-3,
    }  # fmt: skip
    with pytest.raises(ParameterError, match="name=value, got 'phq9'"):
        parse_parameters(["phq9"])
    with pytest.raises(ParameterError, match="given twice"):
        parse_parameters(["a=1", "a=2"])


def test_the_execution_page_tells_times_versions_and_who_answered():
    page = _execution_page({"01-prompt-design": 12.3})
    assert "| [01-prompt-design](chapters/01-prompt-design.ipynb) | 12 |" in page
    assert "embedded population of" in page
    assert re.search(r"\| torch \| 2\.\d+", page)


class _Addresses(HTMLParser):
    """Addresses that a page loads by itself; links that a person clicks are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag, attributes):
        self._inside = tag
        for name, value in attributes:
            loads = name in ("src", "srcset", "data", "poster", "action", "style")
            if loads or (name == "href" and tag != "a"):
                self.loaded += re.findall(r"(?:https?:)?//[^\s\"')]+", value or "")

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            self.loaded += re.findall(r"https?://[^\s\"')]+|url\(\s*['\"]?//[^)]+", data)


def test_built_pages_load_nothing_from_elsewhere():
    pages = sorted(HTML.rglob("*.html"))
    if not pages:
        pytest.skip("the book has not been built: make book")
    assert len(pages) >= len(notebook_names()) + 5
    for page in pages:
        addresses = _Addresses()
        addresses.feed(page.read_text(encoding="utf-8"))
        assert not addresses.loaded, (page.name, addresses.loaded)
    for sheet in HTML.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]+", sheet.read_text())
        assert not found, (sheet.name, found)


def test_built_chapters_have_figures_formulas_and_no_errors():
    if not HTML.is_dir():
        pytest.skip("the book has not been built: make book")
    for name in notebook_names():
        page = (HTML / "chapters" / f"{name}.html").read_text(encoding="utf-8")
        assert page.count("<figure") >= 2, name
        assert "Traceback" not in page
        assert "UserWarning" not in page
    assert (HTML / "_static" / "mathjax" / "tex-chtml.js").is_file()
