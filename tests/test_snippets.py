"""Every shell and Python snippet of the prose pages runs as it is typed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest

from psychometrics.paths import book_dir, data_dir, notebooks_dir, questionnaires_dir

from .conftest import browser_path
from .endpoint import served
from .killing import fork_kernels, run_elsewhere

ROOT = book_dir().parent
PAGES = [ROOT / "README.md", questionnaires_dir() / "README.md", data_dir() / "README.md",
         *sorted(book_dir().glob("*.md"))]  # fmt: skip
WRITTEN = {"execution.md", "respondents.md", "verdicts.md"}
"""Pages that the build writes."""
CANNOT = {
    r"^make\b": "takes long, or changes what is installed or shipped",
    r"^source \.venv/bin/activate|^pip install": "this environment is active and complete",
    r"train-nli bert-base-uncased|--respondents nli\.yaml": "needs the hub, which "
    "tests of their own serve",
    r"my-models|my-adapter": "needs models that were trained; tests of training do as much",
    r"^psychometrics improve": "asks half of the population about each candidate, for minutes",
    r"--watch|^psychometrics view|^python3? -m http\.server": "goes on until it is stopped; tests "
    "of their own stop it",
    r"fill-in diagnostic-mn": "fetches sentences that others own",
    r"^ray start|s3://": "needs a cluster or a bucket; tests of their own have them",
}
"""What cannot run here, with the reason."""
LONG = re.compile(r"^(psychometrics (run|profile|compare|study run)|papermill) ")
"""Executes notebooks: of such commands one is run, the one that says most, of those that name the
same and differ in values alone. A chapter ends after its set-up: `make book` runs it whole."""
COMMAND = re.compile(r"^(\w+=\S+ )?(psychometrics|papermill) [^|&;<>$`#]*( #.*)?$")
"""Needs nothing of a shell but words: a fresh interpreter would take seconds."""
DEGREES = """
title: Degrees
question: Does the temperature move the scores?
planned: {date: 2026-11-23}
questionnaires: [ipip50]
respondents: [model-a, model-b]
mode: file
conditions: {temperature: [0, 1]}
"""
FENCE = re.compile(r"^(`{3,})(bash|python)\n(.*?)^\1$", re.M | re.S)


def _named(command: str) -> set[str]:
    """What a command that executes notebooks names: program, notebook, options, parameters."""
    words = command.split()
    names = {word.partition("=")[0] for word in words if word.startswith("-") or "=" in word}
    start = {"run": 3, "study": 4}.get(words[1], 2)
    return {*words[:start], *names} - {"-o"}


def _snippets() -> list:
    found = []
    for page in PAGES:
        if page.name in WRITTEN:
            continue
        for _, language, text in FENCE.findall(page.read_text(encoding="utf-8")):
            lines = text.replace("\\\n", " ").splitlines() if language == "bash" else [text]
            for line in lines:
                if line.strip() and not line.startswith("#"):
                    command = line.partition(" #")[0].strip()
                    named = _named(command) if LONG.match(command) else {line}
                    name = f"{page.relative_to(ROOT)}: {line.strip().splitlines()[-1][:70]}"
                    param = pytest.param(str(page.relative_to(ROOT)), language, line, id=name)
                    found.append((named, param))
    return [
        param
        for number, (named, param) in enumerate(found)
        if not any(named < other for other, _ in found)
        and not any(named == other for other, _ in found[number + 1 :])
    ]


SNIPPETS = _snippets()


@pytest.fixture(scope="module")
def place(page, tmp_path_factory, tiny_model):
    """A folder as a reader of the page would have it, and the environment of its shell."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("my-model", "my-nli-model"):
        shutil.copytree(tiny_model, folder / name)
    for source in (notebooks_dir(), questionnaires_dir(), data_dir()):
        (folder / source.name).symlink_to(source)
    scale = (questionnaires_dir() / "gad7.yaml").read_text(encoding="utf-8")
    for name in ("my-scale", "my-item", "item-feeling-nervous-anxious"):
        own = re.sub(r"^id: .*$", f"id: {name}", scale, flags=re.M)
        (folder / f"{name}.yaml").write_text(own, encoding="utf-8")
    shutil.copy(questionnaires_dir() / "trust10.csv", folder / "my-items.csv")
    study = re.search(r"^```yaml\n(.*?)^```$", (book_dir() / "study.md").read_text(), re.M | re.S)
    for name in ("choosing.yaml", "my-study.yaml"):
        (folder / name).write_text(study[1], encoding="utf-8")
    listed = re.search(r"^```yaml\n(.*?)^```$", (book_dir() / "using.md").read_text(), re.M | re.S)
    (folder / "three.yaml").write_text(listed[1], encoding="utf-8")
    (folder / "people.csv").write_text("age,job\n71,sailor\n34,nurse\n")
    items = ",".join(f"gad{number}" for number in range(1, 8))
    (folder / "my-answers.csv").write_text(f"model,{items}\nmine,0,1,0,2,1,0,1\n")
    (folder / "degrees.yaml").write_text(DEGREES, encoding="utf-8")
    for name in ("models.csv", "pilot.csv"):
        _two_models().to_csv(folder / name, index=False)
    store = folder / ".store"
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(paths),
        "PSYCHOMETRICS_STORE": os.environ.get("PSYCHOMETRICS_STORE", str(store)),
        "OPENAI_API_KEY": "none",
        "MPLBACKEND": "agg",
    }
    with served() as server:
        yield folder, environment | {"OPENAI_BASE_URL": server.url}


def _two_models() -> pd.DataFrame:
    """Return answers of two models at two temperatures, three runs each."""
    items = [f"ipip50_{number}" for number in range(1, 51)]
    rows = [
        {"model": model, "temperature": temperature, "run": 3 * temperature + run}
        for model in ("model-a", "model-b")
        for temperature in (0, 1)
        for run in range(3)
    ]
    answers = np.random.default_rng(0).integers(1, 6, (len(rows), len(items)))
    return pd.DataFrame(rows).join(pd.DataFrame(answers, columns=items))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("page", "language", "text"), SNIPPETS, scope="module")
def test_a_snippet_runs_as_it_is_typed(page, language, text, place):
    folder, environment = place
    for pattern, reason in CANNOT.items():
        if re.search(pattern, text):
            pytest.skip(reason)
    if " slides 0" in text and not (book_dir() / "chapters").is_dir():
        pytest.skip("needs the chapters that `make book` executes")
    text = re.sub(r"OPENAI_BASE_URL=\S+", f"OPENAI_BASE_URL={environment['OPENAI_BASE_URL']}", text)
    (folder / "typed").write_text("2\n" * 200 if "fill-in" in text else "")

    succeeded, said = _result(language, text, folder, environment)

    if "--pdf" in text and browser_path() is None:
        assert not succeeded
        assert "a PDF is printed by Chromium or Chrome, and neither is on the PATH" in said
        return
    assert succeeded, said[-3000:]


def _result(
    language: str, text: str, folder: Path, environment: dict[str, str]
) -> tuple[bool, str]:
    """Return whether a snippet ended well, and all that it printed."""
    if language == "python" or COMMAND.match(text):
        succeeded = True
        try:
            run_elsewhere(_run, language, text, folder, environment)
        except AssertionError:
            succeeded = False
        return succeeded, (folder / "said").read_text(encoding="utf-8")
    run = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, text=True,
                         capture_output=True, check=False, timeout=850)  # fmt: skip
    return run.returncode == 0, run.stdout + run.stderr


def _run(language: str, text: str, folder: Path, environment: dict[str, str]) -> None:
    """What a shell does with a command: its folder, variables, arguments, input and output."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open("typed", os.O_RDONLY), 0)
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    patch = pytest.MonkeyPatch()
    fork_kernels(patch)
    patch.setattr(papermill, "execute_notebook", _set_up)
    patch.setattr("papermill.cli.execute_notebook", _set_up)
    if language == "python":
        exec(text, {"__name__": "__main__"})
        return
    sys.argv = shlex.split(text, comments=True)
    while "=" in sys.argv[0]:
        name, _, value = sys.argv.pop(0).partition("=")
        os.environ[name] = value
    sys.stdin = os.fdopen(0, encoding="utf-8")
    (program,) = entry_points(group="console_scripts", name=sys.argv[0])
    program.load()()


def _set_up(input_path: str, output_path: str, execute=papermill.execute_notebook, **how):
    """Execute a chapter as far as its parameters are checked, and any other notebook."""
    notebook = nbformat.read(input_path, 4)
    if Path(input_path).stem[0].isdigit():
        checks = ["check_parameters" in cell.source for cell in notebook.cells]
        notebook.cells = notebook.cells[: checks.index(True) + 1]
        nbformat.write(notebook, input_path := "short.ipynb")
    return execute(input_path, output_path, **how)


def test_the_pages_have_snippets_and_every_reason_is_needed():
    texts = [snippet.values[2] for snippet in SNIPPETS]
    assert len(texts) > 20
    assert [p for p in CANNOT if not any(re.search(p, text) for text in texts)] == []
