"""Running notebooks and building the book."""

from __future__ import annotations

import ast
import json
import re
from concurrent.futures import ThreadPoolExecutor

import papermill
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook, writes

from psychometrics.asking.population import population_table
from psychometrics.checks import parse_parameters
from psychometrics.exceptions import ParameterError, PsychometricsError, RespondentError
from psychometrics.paths import book_dir, notebooks_dir, questionnaires_dir
from psychometrics_book import build, check_parameters, runs
from psychometrics_book.parameters import CHAPTERS
from psychometrics_book.record import _mistakes, printed

HTML = book_dir() / "_build" / "html"


def _text(path) -> str:
    """Printed and displayed text of an executed notebook."""
    cells = json.loads(path.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = [o.get("text", o.get("data", {}).get("text/plain", "")) for o in outputs]
    return "\n".join("".join(part) for part in shown)


def test_the_first_chapter_runs_on_a_questionnaire_and_model_of_ones_own(
    tmp_path, tiny_model, monkeypatch
):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))
    short = yaml.safe_load((questionnaires_dir() / "phq9.yaml").read_text(encoding="utf-8"))
    short |= {"id": "own", "items": short["items"][:3], "norms": []}
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(short), encoding="utf-8")
    parameters = {"questionnaire": str(own), "respondent": str(tiny_model), "null_respondents": 20}
    output = tmp_path / "01-first-score.ipynb"
    runs.run_notebook("01-first-score", parameters, output, progress=False)
    assert printed("tab-first-asked[questionnaire]", tmp_path, "01-first-score") == "PHQ-9"
    assert _mistakes("01-first-score", tmp_path) == []
    assert not re.search(r"Warning", _text(output)), "a chapter shows no warnings"


def test_a_wrong_notebook_or_parameter_stops_before_anything_runs(tmp_path):
    with pytest.raises(ParameterError, match=r"did you mean '03-assessment'\?"):
        runs.run_notebook("02-assesment", output=tmp_path / "o.ipynb")
    with pytest.raises(ParameterError, match=r"'temprature' \(did you mean 'temperat"):
        runs.run_notebook("03-assessment", {"temprature": 2}, tmp_path / "o.ipynb")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("chapter", "values", "said"),
    [
        ("first-score", {"null_respondents": 3}, "null_respondents"),
        ("prompt-design", {"questionnaire": "gad7", "item": 8}, "item"),
        ("assessment", {"respondents": " , "}, "at least one"),
        ("assessment", {"temperature": float("nan")}, "temperature"),
        ("consistency", {"dtype": "float8"}, "dtype"),
        ("interventions", {"talk": "./nowhere"}, "nowhere"),
        ("beliefs", {"group": "gender,shoes"}, "shoes"), ("self-report", {"level": 1}, "level"),
        ("interventions", {"measure_at": "2 to 5"}, "measure_at"),
        ("interventions", {"arms": "neutral,exam.txt"}, "exam.txt"),
        ("interventions", {"masked_lm": "nowhere"}, "nowhere"),
        ("consistency", {"encoder": "nowhere"}, "nowhere"),
        ("ways-of-asking", {"respondents": "minilm-both-l6-s1"}, "respondents"),
        ("ways-of-asking", {"questionnaire": "gad7"}, "gad7"),
        ("ways-of-asking", {"chat_model": "some-model"}, "OPENAI_BASE_URL"),
        ("ways-of-asking", {"people": 3, "runs": 1}, "people"), ("items", {"draws": 10}, "draws"),
        ("items", {"seed": True}, "seed"), ("items", {"simulations": 2.5}, "simulations"),
        ("items", {"category": "negation"}, "category"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_named(chapter, values, said, monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(PsychometricsError, match=said):
        check_parameters(next(n for n in CHAPTERS if n[3:] == chapter), values)


@pytest.mark.parametrize("name", build._notebook_names())
def test_every_parameter_of_a_notebook_is_checked_and_its_own_values_pass(name):
    values = {
        parameter: ast.literal_eval(about["default"])
        for parameter, about in papermill.inspect_notebook(
            str(notebooks_dir() / f"{name}.ipynb")
        ).items()
    }
    try:
        check_parameters(name, values)
    except RespondentError as error:
        if "fetch-model" not in str(error):
            raise
        pytest.skip(str(error))
    assert set(values) == set(CHAPTERS[name].model_fields)


def test_parameters_from_the_command_line_are_numbers_where_they_look_like_it():
    assert parse_parameters(["a=1", "b=0.5", "c=phq9", "d=x=y", "e=", "f=1e-3"]) == {
        "a": 1, "b": 0.5, "c": "phq9", "d": "x=y", "e": "", "f": 1e-3,
    }  # fmt: skip
    assert parse_parameters(["a=true", "b=False", "c=None", "d=none"]) == {
        "a": True, "b": False, "c": None, "d": "none",
    }  # fmt: skip
    with pytest.raises(ParameterError, match="name=value, got 'phq9'"):
        parse_parameters(["phq9"])
    with pytest.raises(ParameterError, match="occurs twice"):
        parse_parameters(["a=1", "a=2"])


def test_each_respondent_has_a_datasheet_with_its_accuracy():
    page = (book_dir() / "respondents.md").read_text(encoding="utf-8")
    sections = dict(part.split("\n", 1) for part in page.split("\n### ")[1:])
    table = population_table().set_index("respondent_id")
    assert sections.keys() == set(table.index)
    for name, row in table.iterrows():
        pairs, seed = f" on {row['pairs']:,} pairs of ", f", seed {row['seed']};"
        accuracy = f"{row['accuracy']:.3f} (95 % interval {row['low']:.3f} to {row['high']:.3f};"
        assert all(fact in sections[name] for fact in (pairs, seed, accuracy))


def test_a_docstring_or_comment_executes_no_chapter_again_and_code_does(tmp_path):
    program = tmp_path / "a.py"
    digests = set()
    for text in ('def f():\n    """Old."""\n    return 1\n',
                 'def f():\n    """New."""\n    return 1  # one\n',
                 'def f():\n    """New."""\n    return 2\n'):  # fmt: skip
        program.write_text(text)
        digests.add(build._digest_of_file(program))
    assert len(digests) == 2


def test_only_chapters_that_changed_or_read_one_that_did_are_executed_again(tmp_path, monkeypatch):
    sources, ran = tmp_path, []
    for name, code, reads in (("01-one", "1", []), ("02-two", "2", []), ("03-all", "3", ["*"])):
        cells, metadata = [new_code_cell(code)], {"reads": reads}
        text = writes(new_notebook(cells=cells, metadata=metadata))
        (sources / f"{name}.ipynb").write_text(text)

    def run(name, source, output, *_, progress):
        ran.append(name)
        notebook = json.loads(source.read_text())
        notebook["metadata"]["papermill"] = {"duration": 1}
        output.write_text(json.dumps(notebook))

    monkeypatch.setattr(build, "notebooks_dir", lambda: sources)
    monkeypatch.setattr(build, "worker_pool", lambda *_: ThreadPoolExecutor(1))
    monkeypatch.setattr(build, "_execute_notebook", run)
    monkeypatch.setattr(build, "_write_example", print)
    two = sources / "02-two.ipynb"
    again = {"2": ["02-two", "01-one", "03-all"], "2 + 2": ["02-two", "03-all"]}
    for changed, expected in (*again.items(), ("2 + 2", [])):
        two.write_text(two.read_text().replace('"2"', f'"{changed}"'))
        ran.clear()
        build.execute(tmp_path / "chapters", progress=False)
        assert ran == expected
