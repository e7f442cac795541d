"""Asking under several conditions; the untrained model; a questionnaire without word order."""

from __future__ import annotations

import pytest

from psychometrics.asking.grid import ask_crossed, ask_ways
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.endpoints.server import simulated_endpoint
from psychometrics.exceptions import ParameterError
from psychometrics.models.untrained import null_model
from psychometrics.modes.simulated import draw_traits
from psychometrics.questionnaires import load_questionnaire, shuffled_words

MINI = load_questionnaire("ipip20")


def test_every_combination_is_asked_once_and_told_apart(tmp_path):
    traits = draw_traits(MINI, 1, seed=3)
    varied = {"role": ["default", "hero"], "order": ["given", "reversed"], "cipher": [0, 3]}
    with simulated_endpoint(MINI, traits, refuses=0.3, seed=1) as url:
        how = {"endpoint": Endpoint(url), "runs": 2, "ask_again": 0, "batch_size": 5}
        table = ask_crossed(MINI, list(traits.index), varied, store=tmp_path, **how)
    assert table.groupby(list(varied)).size().tolist() == [40] * 8
    assert table.attrs["summary"]["asked"] == 320


def test_what_cannot_be_crossed_is_refused_before_anybody_is_asked():
    for varied, how, message in (
        ({"role": []}, {}, "list of values"),
        ({"role": "hero"}, {}, "list of values"),
        ({"role": ["hero"]}, {"role": "liar"}, "varied and held"),
        ({"weather": ["rain"]}, {}, "no condition 'weather'"),
    ):
        with pytest.raises(ParameterError, match=message):
            ask_crossed(MINI, "nobody", varied, **how)


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
    shuffled = shuffled_words(MINI, seed=3)
    for before, after in zip(MINI.items, shuffled.items, strict=True):
        assert sorted(before.text.rstrip(".").split()) == sorted(after.text.split())
    assert shuffled.id != MINI.id
    assert shuffled_words(MINI, seed=3) == shuffled
