"""Asking: each question once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics import ask as administer
from psychometrics.exceptions import ParameterError, QuestionnaireError, RespondentError
from psychometrics.prompts import PROMPT_COLUMNS
from psychometrics.store import PROBABILITIES


@pytest.fixture
def counting(tiny_model):
    """A real tiny respondent that notes what it was asked."""
    respondent = pm.load_respondent(tiny_model, dtype="float32")
    respondent.asked = []
    answer = respondent.answer

    def noting(pairs, progress=False):
        respondent.asked += list(pairs)
        return answer(pairs, progress)

    respondent.answer = noting
    return respondent


def test_answers_are_the_respondents_own_in_the_order_of_the_prompts(tmp_path, tiny_model):
    answers = pm.ask(["gad7", "challenges"], tiny_model, tmp_path, dtype="float32", progress=False)
    assert list(answers.columns) == ["respondent_id", "mode", *PROMPT_COLUMNS, *PROBABILITIES]
    tables = [pm.prompts(pm.load_questionnaire(name)) for name in ("gad7", "challenges")]
    expected = pd.concat(tables, ignore_index=True)
    pd.testing.assert_frame_equal(answers[PROMPT_COLUMNS], expected)
    pairs = list(zip(expected["premise"], expected["hypothesis"], strict=True))
    own = pm.load_respondent(tiny_model, dtype="float32").answer(pairs)
    np.testing.assert_allclose(answers[PROBABILITIES], own, atol=1e-6)
    assert (answers[PROBABILITIES].dtypes == "float32").all()
    assert (answers["respondent_id"] == tiny_model.name).all()


def test_nothing_is_asked_twice(tmp_path, counting):
    first = pm.ask("gad7", counting, tmp_path, progress=False)
    asked = len(counting.asked)
    assert asked == len(first) == 672
    second = pm.ask("gad7", [counting], tmp_path, progress=False)
    assert len(counting.asked) == asked
    pd.testing.assert_frame_equal(first, second)


def test_only_a_changed_question_is_asked_anew(tmp_path, counting):
    instrument = pm.load_questionnaire("challenges")
    pm.ask(instrument, counting, tmp_path, progress=False)
    counting.asked.clear()
    content = instrument.model_dump()
    content["items"][0]["templates"][0]["premise"] = "People I relied on {term} me."
    changed = type(instrument).model_validate(content)
    answers = pm.ask(changed, counting, tmp_path, progress=False)
    assert len(counting.asked) == 48
    assert {premise[:18] for premise, _ in counting.asked} == {"People I relied on"}
    assert len(answers) == 4 * 48


def test_another_precision_is_another_respondent_to_the_store(tmp_path, tiny_model):
    first = pm.ask("challenges", tiny_model, tmp_path, dtype="float32", progress=False)
    second = pm.ask("challenges", tiny_model, tmp_path, dtype="bfloat16", progress=False)
    assert not np.array_equal(first[PROBABILITIES], second[PROBABILITIES])
    again = pm.ask("challenges", tiny_model, tmp_path, dtype="float32", progress=False)
    pd.testing.assert_frame_equal(first, again)


def test_a_model_is_not_loaded_when_its_answers_are_there(tmp_path, tiny_model, monkeypatch):
    pm.ask("challenges", tiny_model, tmp_path, progress=False)

    def refuse(*args, **kwargs):
        raise AssertionError("loaded")

    monkeypatch.setattr(administer, "load_respondent", refuse)
    pm.ask("challenges", tiny_model, tmp_path, progress=False)


def test_the_manifest_tells_who_was_asked_what(tmp_path, tiny_model):
    pm.ask("challenges", tiny_model, tmp_path, dtype="float32", progress=False)
    (path,) = tmp_path.rglob("*.json")
    manifest = json.loads(path.read_text())
    assert manifest["respondent_id"] == tiny_model.name
    assert manifest["prompts"] == manifest["answers"] == 4 * 48
    assert manifest["package_version"] == pm.__version__
    assert (manifest["dtype"], manifest["device"], manifest["mode"]) == ("float32", "cpu", "nli")
    assert manifest["seconds"] > 0
    assert {"model", "revision", "prompts_sha256"} <= set(manifest)


CODE = """
import sys, time
import psychometrics as pm
from psychometrics import ask as administer
administer.CHUNK = 40
respondent = pm.load_respondent(sys.argv[1], dtype="float32")
answer = respondent.answer
log = open(sys.argv[3], "a")
def slowly(pairs, progress=False):
    log.writelines(f"{premise}|{hypothesis}\\n" for premise, hypothesis in pairs)
    log.flush()
    time.sleep(float(sys.argv[4]))
    return answer(pairs, progress)
respondent.answer = slowly
pm.ask("gad7", respondent, sys.argv[2], progress=False).to_parquet(sys.argv[3] + ".parquet")
"""


def test_killed_half_way_and_started_again_it_ends_with_the_same_table(tmp_path, tiny_model):
    store, log = tmp_path / "store", tmp_path / "log"

    def start(seconds: float) -> subprocess.Popen:
        arguments = [str(tiny_model), str(store), str(log), str(seconds)]
        return subprocess.Popen([sys.executable, "-c", CODE, *arguments])

    run = start(0.3)
    deadline = time.monotonic() + 120
    while not (list(store.rglob("*.parquet")) and len(log.read_text().splitlines()) >= 120):
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    (kept,) = store.rglob("[!.]*.parquet")
    stored = pd.read_parquet(kept)
    assert 40 <= len(stored) < 672

    asked_before = log.read_text().splitlines()
    assert start(0).wait() == 0
    asked_after = log.read_text().splitlines()[len(asked_before) :]
    answered = {f"{row.premise}|{row.hypothesis}" for row in stored.itertuples()}
    assert not answered & set(asked_after), "what was stored is not asked again"
    assert len(asked_after) == len(set(asked_after)) == 672 - len(stored)

    resumed = pd.read_parquet(f"{log}.parquet")
    at_once = pm.ask("gad7", tiny_model, tmp_path / "other", dtype="float32", progress=False)
    pd.testing.assert_frame_equal(resumed, at_once, atol=1e-6)


def test_a_store_file_cut_short_is_asked_again_and_kept_aside(tmp_path, tiny_model):
    first = pm.ask("challenges", tiny_model, tmp_path, progress=False)
    (path,) = tmp_path.rglob("*.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="damaged or cut short"):
        second = pm.ask("challenges", tiny_model, tmp_path, progress=False)
    pd.testing.assert_frame_equal(first, second)
    assert len(list(tmp_path.rglob("*.damaged-1"))) == 1


def test_bad_requests_end_before_any_question(tmp_path, tiny_model):
    with pytest.raises(ParameterError, match="no questionnaire to ask"):
        pm.ask([], tiny_model, tmp_path)
    with pytest.raises(RespondentError, match="no respondent to ask"):
        pm.ask("gad7", [], tmp_path)
    with pytest.raises(ParameterError, match="gad7 is given twice"):
        pm.ask(["gad7", "gad7"], tiny_model, tmp_path)
    with pytest.raises(RespondentError, match="Two respondents are called"):
        pm.ask("gad7", [tiny_model, tiny_model], tmp_path)
    with pytest.raises(QuestionnaireError, match="No questionnaire 'gda7'"):
        pm.ask("gda7", tiny_model, tmp_path)
    with pytest.raises(RespondentError, match="mode must be one of nli, mlm"):
        pm.ask("gad7", tiny_model, tmp_path, mode="telepathy")
    assert not list(tmp_path.iterdir())
