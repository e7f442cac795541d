"""Reading, scoring and judging a table of answers needs none of the packages that models need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
OPTIONAL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MISSING = {
    Requirement(text).name.replace("-", "_")
    for extra in ("book", "chat", "figures", "models", "train")
    for text in OPTIONAL[extra]
} - {"onnx"}  # its own extra brings it, too
BLOCK = f"""
import sys

MISSING = {sorted(MISSING | {"bs4", "nbformat", "sklearn"})}

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""


def _run_without_extras(code: str, folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _run_commands(commands: list[str], folder: Path) -> pd.DataFrame:
    """Return each command's exit status and what it printed, all in one fresh process."""
    code = f"""
import contextlib, io, json
from psychometrics.cli import main

rows = []
for command in {commands}:
    sys.argv = ["psychometrics", *command.split()]
    printed = io.StringIO()
    status = 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    rows.append({{"command": command, "status": status, "printed": printed.getvalue()}})

print(json.dumps(rows))
"""
    return pd.DataFrame(json.loads(_run_without_extras(code, folder).splitlines()[-1]))


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    people = pd.DataFrame({"respondent": [f"p{person}" for person in range(12)]})
    for item in range(1, 8):
        people[f"gad7_{item}"] = [(person * item + person) % 4 for person in range(12)]
    path = tmp_path_factory.mktemp("answers") / "people.csv"
    people.to_csv(path, index=False)
    return path


def test_a_table_is_read_scored_and_judged_from_python_without_the_extras(table):
    code = f"""
import psychometrics as pm
answers = pm.read_answers({str(table)!r}, "gad7")
scores = pm.scale_scores(answers, "gad7")
assert len(scores) == 12, scores
matrix = answers.pivot(index="respondent_id", columns="item_id", values="value")
assert pm.reliability.alpha(matrix)["n"] == 12
assert not set(MISSING) & set(sys.modules)
"""
    _run_without_extras(code, table.parent)


def test_commands_that_need_no_model_run_without_the_extras(table):
    commands = [
        "scores gad7 --answers people.csv",
        "profile --answers people.csv --questionnaires gad7",
        "scores gad7 --mode simulated --respondents 2",
        "questionnaires",
        "check gad7",
        "prompts gad7",
        "survey gad7 -o survey.html",
        "fill-in gad7",
        "population",
        "--help",
    ]
    ran = _run_commands(commands, table.parent)
    assert not ran.query("status != 0 or printed == ''").to_dict("records")


def test_a_command_that_needs_an_extra_names_it(table):
    extras = {
        "scores gad7": "models",
        "scores gad7 --respondents no-such-model": "models",
        "compare one other": "models",
        "scores gad7 --mode chat --respondents x": "chat",
        "run 01-first-score": "book",
    }
    ran = _run_commands(list(extras), table.parent)
    assert (ran["status"] == 1).all(), ran.to_dict("records")
    for command, printed in zip(ran["command"], ran["printed"], strict=True):
        assert f"[{extras[command]}]" in printed, command
        assert "Traceback" not in printed


def test_nulls_answer_other_tools_without_the_extras(tmp_path):
    code = """
import json, urllib.error, urllib.request
from psychometrics.serving.server import NullServer
message = {"role": "user", "content": "Rate from 1 to 5: I am calm."}
with NullServer(port=0) as server:
    for model in ("agrees", "desirable", "people-ipip50", "impostor-embedded-1"):
        body = json.dumps({"model": model, "messages": [message]}).encode()
        try:
            reply = urllib.request.urlopen(f"{server.url}/chat/completions", body)
            print(json.load(reply)["choices"][0]["message"]["content"])
        except urllib.error.HTTPError as error:
            print(error.code, json.load(error)["error"]["message"])
"""
    first, second, people, impostor = _run_without_extras(code, tmp_path).splitlines()[-4:]
    assert (first, second) == ("5", "5")
    assert people.startswith("400 people-ipip50")
    assert re.match(r"400 .*\[models\]", impostor)


def test_an_endpoint_is_asked_with_the_extra_chat_alone(tmp_path):
    pytest.importorskip("aiohttp", reason="needs the extra chat")
    code = f"""
MISSING.remove("aiohttp")

import psychometrics as pm
from psychometrics.serving.server import NullServer
with NullServer(port=0) as server:
    asking = {{"endpoint": pm.endpoints.Endpoint(base_url=server.url), "store": {str(tmp_path)!r}}}
    for mode in ("chat", "options"):
        answers = pm.ask("gad7", ["agrees"], mode=mode, progress=False, **asking)
        assert (answers["value"] == 3).all(), answers["value"]
assert not set(MISSING) & set(sys.modules), set(MISSING) & set(sys.modules)
"""
    _run_without_extras(code, tmp_path)
