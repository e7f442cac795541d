"""Asking under several conditions; the untrained model; a questionnaire without word order."""

from __future__ import annotations

from psychometrics.asking.ask import ask_ways
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies.meaningless import null_model, shuffle_words

MINI = load_questionnaire("ipip20")


def test_ways_differ_in_nothing_but_the_way(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path))
    ways = {"one": {}, "same": {}, "other": {"wording": "It is {label}."}}
    table = ask_ways(MINI, [tiny_model], ways, "options", choose="expected")
    one, same, other = (table[table["way"] == w]["value"].to_numpy() for w in ways)
    assert (one == same).all()
    assert (one != other).any()


def test_a_null_model_is_saved_once_and_hangs_on_its_seed(tmp_path):
    first = null_model(tmp_path, 1)
    stamp = (first / "model.safetensors").stat().st_mtime_ns
    assert null_model(tmp_path, 1) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == stamp
    other = null_model(tmp_path, 2)
    assert (other / "model.safetensors").read_bytes() != (first / "model.safetensors").read_bytes()
    again = null_model(tmp_path / "again", 1)
    assert (again / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()


def test_shuffled_words_are_the_same_words_and_another_questionnaire():
    shuffled = shuffle_words(MINI, seed=3)
    for before, after in zip(MINI.items, shuffled.items, strict=True):
        assert sorted(before.text.rstrip(".").split()) == sorted(after.text.split())
    assert shuffled.id != MINI.id
    assert shuffle_words(MINI, seed=3) == shuffled
