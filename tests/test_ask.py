"""Asking: each question once, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.asking import plan
from psychometrics.exceptions import (
    ParameterError,
    PsychometricsError,
    QuestionnaireError,
    RespondentError,
)
from psychometrics.modes import MODES, mode_named, prompting
from psychometrics.modes.mode import Conditions, Mode
from psychometrics.modes.nli import NLIRespondent
from psychometrics.store import manifests
from tests.killing import start_elsewhere

PROBABILITIES = ["entailment", "neutral", "contradiction"]


@pytest.fixture
def counting(tiny_model):
    """A real tiny respondent that notes what it was asked."""
    respondent = pm.load_respondent(tiny_model, dtype="float32")
    respondent.asked = []
    batches = respondent.batches

    def noting(pairs):
        respondent.asked += list(pairs)
        return batches(pairs)

    respondent.batches = noting
    return respondent


def test_answers_are_the_respondents_own_in_the_order_of_the_prompts(tmp_path, tiny_model):
    answers = pm.ask(["gad7", "challenges"], tiny_model, tmp_path, dtype="float32", progress=False)
    tables = [pm.prompts(pm.load_questionnaire(name)) for name in ("gad7", "challenges")]
    expected = pd.concat(tables, ignore_index=True)
    assert list(answers.columns) == ["respondent_id", "mode", *expected.columns, *PROBABILITIES]
    pd.testing.assert_frame_equal(answers[expected.columns], expected)
    pairs = list(zip(expected["premise"], expected["hypothesis"], strict=True))
    loaded = pm.load_respondent(tiny_model, dtype="float32")
    np.testing.assert_allclose(answers[PROBABILITIES], loaded.answer(pairs), atol=1e-6)
    assert (answers[PROBABILITIES].dtypes == "float32").all()
    who = {"respondent_id": "mine", "mode": "nli", "dtype": "float32", "fingerprint": "1"}
    mine = SimpleNamespace(identity=who, answer=loaded.answer)  # any object, see book/using.md
    again = pm.ask(["gad7", "challenges"], mine, tmp_path, progress=False)
    assert again.drop(columns="respondent_id").equals(answers.drop(columns="respondent_id"))
    assert set(again["respondent_id"]) | set(answers["respondent_id"]) == {"mine", tiny_model.name}


def test_nothing_is_asked_twice_and_of_a_changed_questionnaire_what_changed(tmp_path, counting):
    instrument = pm.load_questionnaire("challenges")
    first = pm.ask(instrument, counting, tmp_path, progress=False)
    assert len(counting.asked) == len(first) == 4 * 48
    again = pm.ask("challenges", [counting], tmp_path, progress=False)
    assert len(counting.asked) == 4 * 48
    pd.testing.assert_frame_equal(first, again)
    content = instrument.model_dump()
    content["items"][0]["templates"][0]["premise"] = "People I relied on {term} me."
    counting.asked.clear()
    pm.ask(type(instrument).model_validate(content), counting, tmp_path, progress=False)
    assert len(counting.asked) == 48
    assert {premise[:18] for premise, _ in counting.asked} == {"People I relied on"}


# Modes


def test_modes_need_no_torch_and_stored_answers_neither_transformers_nor_ray(tmp_path, tiny_model):
    pm.ask("gad7", tiny_model, tmp_path, progress=False)
    code = (
        "import sys, psychometrics as pm; from pathlib import Path;"
        "print(*pm.modes.MODES); print({'torch', 'transformers'} & set(sys.modules));"
        f"said = pm.ask('gad7', Path({str(tiny_model)!r}), {str(tmp_path)!r}, progress=False);"
        "print(said.attrs['summary']['asked'], {'transformers', 'ray'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modes, *loaded = done.stdout.splitlines()
    assert {"nli", "mlm", "causal", "nsp", "acceptability"} <= set(modes.split())
    assert "completions" not in modes.split()
    assert loaded == ["set()", "0 set()"]


class _EchoConditions(Conditions):
    times: int = 1


class _Echo(Mode):
    name = "echo"
    conditions_type = _EchoConditions

    def identify(self, respondent, dtype=None, **conditions):
        return {"respondent_id": respondent}

    def answer(self, questionnaire, asking):
        times = asking.conditions["times"]
        asking.bar.expect(times, 1)
        asking.bar.update(times - 1)
        status = ["refused"] + ["ok"] * (times - 1)
        return pd.DataFrame({"respondent_id": asking.respondent, "run": 1, "status": status})


def test_a_subclass_is_a_new_mode_and_its_conditions_reach_it(monkeypatch):
    monkeypatch.setitem(MODES, "echo", "prompting._Echo")
    monkeypatch.setattr(prompting, "_Echo", _Echo, raising=False)
    answers = pm.ask("challenges", "me, you", mode="echo", times=3, progress=False)
    assert answers["respondent_id"].tolist() == ["me"] * 3 + ["you"] * 3
    summary = answers.attrs["summary"]
    assert (summary["asked"], summary["from_store"], summary["unanswered"]) == (4, 2, 2)


@pytest.mark.parametrize(
    ("given", "how", "error", "said"),
    [
        (("gad7", "m"), {"mode": "telepathy"}, ParameterError, "mode must be one of .*'telepathy'"),
        (("gad7", "m"), {"temprature": 1}, ParameterError, "'temprature': it has no conditions"),
        (("gad7", "m"), {"mode": "causal", "men": "x"}, ParameterError, "conditions are mean"),
        (("gad7", "m"), {"mode": "causal", "mean": "median"}, ParameterError, "mean should be"),
        (([], "m"), {}, ParameterError, "no questionnaire to ask"),
        ((["gad7", "gad7"], "m"), {}, ParameterError, "gad7"),
        (("gda7", "m"), {}, QuestionnaireError, "No questionnaire 'gda7'"),
        (("gad7", []), {}, RespondentError, "no respondent to ask"),
        (("gad7", ["m", "m"]), {}, RespondentError, "Two respondents are called"),
        (("gad7", "nobody, noone"), {}, RespondentError, "no respondent 'nobody'"),
        (("gad7", None), {}, RespondentError, "a folder or a hub id, got None"),
        ((None, "m"), {}, PsychometricsError, "None"),
        *(
            (("gad7", "m"), {name: "int8"}, ParameterError, name)
            for name in ("dtype", "progress", "engine", "keep_downloads")
        ),
        (("gad7", 3), {"mode": "simulated", "runs": 99_999_999_999}, ParameterError, "runs"),
    ],
)
def test_what_cannot_be_asked_is_refused_first(tmp_path, tiny_model, given, how, error, said):
    questionnaires, who = given
    if who is not None and "m" in list(who if isinstance(who, list) else [who]):
        who = [tiny_model] * len(who)
    with pytest.raises(error, match=said):
        pm.ask(questionnaires, who, tmp_path, **({"progress": False} | how))
    assert not list(tmp_path.iterdir())
    assert mode_named("causal").complete({}) == {"mean": "product"}


# One who fails


def test_one_bad_member_does_not_end_the_run(tmp_path, tiny_model):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.warns(UserWarning, match=f"{empty} did not answer everything") as told:
        answers = pm.ask(
            "challenges", [tiny_model, str(empty), "minilm-mnli-l3-s16"], tmp_path / "store",
            dtype="float32", progress=False,
        )  # fmt: skip
    assert answers["respondent_id"].unique().tolist() == [tiny_model.name, "minilm-mnli-l3-s16"]
    summary = answers.attrs["summary"]
    assert list(summary["failed"]) == [str(empty)]
    assert "has no config.json" in summary["failed"][str(empty)]
    assert (summary["asked"], summary["from_store"], summary["unanswered"]) == (384, 0, 0)
    assert len(told) == 1


def test_answers_are_kept_every_few_seconds_and_when_stopped(tmp_path, tiny_model, monkeypatch):
    respondent = pm.load_respondent(tiny_model, dtype="float32")
    respondent.token_budget = 400
    forward, calls = NLIRespondent._logits, []

    def stops(self, features):
        calls.append(len(features))
        if len(calls) > 5:
            raise KeyboardInterrupt
        return forward(self, features)

    monkeypatch.setattr(NLIRespondent, "_logits", stops)
    with pytest.raises(KeyboardInterrupt):
        pm.ask("gad7", respondent, tmp_path, progress=False)
    assert manifests(tmp_path)["answers"].sum() == sum(calls[:5])
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    monkeypatch.undo()
    monkeypatch.setattr("psychometrics.store.answers._SAVE_EVERY", 0.0)
    respondent.token_budget = 1500
    answers = pm.ask("gad7", respondent, tmp_path, progress=False)
    assert len(list(tmp_path.rglob("*.parquet"))) > 3
    assert answers.attrs["summary"]["asked"] == 672 - sum(calls[:5])
    at_once = pm.ask("gad7", respondent, tmp_path / "other", progress=False)
    pd.testing.assert_frame_equal(answers, at_once, atol=1e-6)


def note_failures(file, who: int, go) -> None:
    noted = plan._Failures(file, "nli", None, {})
    while not go.exists():
        time.sleep(0.001)
    for number in range(10):
        noted.add(f"{who}-{number}", ValueError("no"))


def test_failures_noted_by_several_processes_at_once_are_all_kept(tmp_path):
    file, go = tmp_path / "failures.csv", tmp_path / "go"
    running = [start_elsewhere(note_failures, file, who, go) for who in range(4)]
    go.touch()
    for process in running:
        process.join()
    assert len(pd.read_csv(file)) == 40


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full disk at hand")
def test_failures_that_a_full_disk_does_not_take_leave_those_before_and_nothing_else(tmp_path):
    noted = plan._Failures(tmp_path / "failures.csv", "nli", None, {})
    noted.add("first", ValueError("no"))
    (tmp_path / f".{os.getpid()}.failures.csv").symlink_to("/dev/full")
    with pytest.raises(ParameterError, match="free some space"):
        noted.add("second", ValueError("no"))
    assert pd.read_csv(tmp_path / "failures.csv")["respondent"].tolist() == ["first"]
    assert {p.name for p in tmp_path.iterdir()} <= {"failures.csv", ".failures.csv.lock"}


def test_a_table_of_personas_is_asked_row_by_row_and_compared(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("name;age\nBén;71\nAnna;34\n", encoding="utf-8")
    how = {"mode": "options", "store": tmp_path, "progress": False, "choose": "expected"}
    texts = ["I am Bén, aged 71.", "I am Anna, aged 34."]
    member = "minilm-mnli-l3-s16"
    told = pm.ask("ipip20", member, persona="I am {name}, aged {age}.", personas=file, **how)
    alone = [pm.ask("ipip20", member, persona=text, **how) for text in texts]
    assert told["value"].tolist() == pd.concat(alone)["value"].tolist()
    assert [part.attrs["summary"]["asked"] for part in alone] == [0, 0], "stored as any condition"
    assert told.groupby("persona_row")["age"].unique().map(list).tolist() == [["71"], ["34"]]
    scores = pm.scale_scores(told, by=["persona_row"])
    assert scores.groupby("persona_row")["scale"].size().tolist() == [5, 5]
    for wrong in ({"persona": "I am {nobody}."}, {"persona": "I am calm."}, {}):
        with pytest.raises(ParameterError, match="personas needs"):
            pm.ask("ipip20", member, personas=file, **how, **wrong)
    people = pd.DataFrame({"name": ["Bén", ""]})
    with pytest.raises(ParameterError, match="row 2: name is empty"):
        pm.ask("ipip20", member, persona="I am {name}.", personas=people, **how)
