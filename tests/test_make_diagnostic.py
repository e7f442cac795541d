from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModel

from data.make import diagnostic as live
from psychometrics import data, load_respondent
from psychometrics.asking.population import population
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.modes import identify
from psychometrics.studies import diagnostic

needs_text = pytest.mark.skipif(
    not data.available("glue_diagnostic") and os.environ.get("CI") != "true",
    reason="the diagnostic's file is neither in the mirror nor in the cache",
)
RECIPE = {"data": "snli", "words": "random", "hidden": 16, "layers": 1, "lr": 1e-2, "seed": 3}


def toy(n: int = 240) -> pd.DataFrame:
    """Pairs whose label hangs on one word of the hypothesis."""
    rng = np.random.default_rng(0)
    words = {0: "surely", 1: "perhaps", 2: "never"}
    labels = rng.integers(0, 3, n)
    things = rng.choice(["dogs", "cats", "men", "women", "ships"], n)
    return pd.DataFrame(
        {
            "premise": [f"There are {thing} here." for thing in things],
            "hypothesis": [f"It is {words[label]} so." for label in labels],
            "label": labels,
        }
    )


@pytest.fixture(scope="module")
def lstm():
    return live._train_lstm(RECIPE, epochs=6, batch_size=16, pairs=toy())


def test_an_lstm_learns_what_it_is_taught(lstm):
    new = toy(300).iloc[240:]
    answers = lstm.answer(list(zip(new["premise"], new["hypothesis"], strict=True)))
    assert answers.shape == (60, 3)
    assert answers.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (answers.argmax(axis=1) == new["label"]).all()


def test_an_lstms_answer_does_not_hang_on_the_company_it_is_asked_in(lstm):
    pairs = [("A dog.", "It is never so."), ("There are many old cats here.", "Perhaps."), ("", "")]
    together = lstm.answer(pairs)
    alone = np.vstack([lstm.answer([pair]) for pair in pairs])
    assert together == pytest.approx(alone, abs=1e-5)
    assert lstm.answer(pairs[::-1])[::-1] == pytest.approx(together, abs=1e-5)


def test_the_same_seed_trains_the_same_lstm_and_another_another():
    first, again, other = (
        live._train_lstm(RECIPE | {"seed": seed}, epochs=1, batch_size=16, pairs=toy())
        for seed in (3, 3, 4)
    )
    assert again.identity == first.identity
    assert other.identity["fingerprint"] != first.identity["fingerprint"]


def test_pretrained_words_are_the_base_encoders_and_stay_as_they_are():
    recipe = RECIPE | {"words": "pretrained"}
    trained = live._train_lstm(recipe, epochs=1, batch_size=64, pairs=toy(64))
    assert trained.words.weight.shape[1] == 384
    assert torch.equal(trained.words.weight, live._words(True, 0))
    with pytest.raises(ParameterError, match="pretrained or random"):
        live._train_lstm(RECIPE | {"words": "glove"}, pairs=toy(8))


def test_untrained_respondents_answer_differently_by_seed_and_fresh_heads_leave_the_encoder(
    tmp_path,
):
    pairs = [("A man sleeps.", "A man is asleep."), ("A man sleeps.", "Nobody sleeps.")]
    answers = []
    for seed in (1, 2):
        base = live._random_encoder(tmp_path / f"base{seed}", seed, layers=1)
        folder = live._fresh_head(base, tmp_path / f"model{seed}", seed)
        respondent = load_respondent(folder, dtype="float32")
        own = respondent.model.base_model.encoder.state_dict()
        weights = AutoModel.from_pretrained(base).encoder.state_dict()
        assert all(torch.equal(own[name], weight) for name, weight in weights.items())
        answers.append(respondent.answer(pairs))
    assert np.abs(answers[0] - answers[1]).max() > 1e-3


def test_committed_answers_are_those_of_the_embedded_population_as_it_is():
    table = diagnostic.models(live=True)
    members = table[table["fingerprint"] != ""]
    assert set(members.index) == set(population("encoders")), (
        "run data.make.diagnostic.build_live()"
    )
    now = {name: identify(name, dtype="float32")["fingerprint"] for name in members.index}
    assert members["fingerprint"].to_dict() == now, "run data.make.diagnostic.build_live()"


@needs_text
def test_an_embedded_respondent_gives_the_committed_answers_again_from_the_store(
    tmp_path, monkeypatch
):
    table = diagnostic.models(live=True)
    members = table[table["fingerprint"] != ""]
    name = members.index[members.index.str.contains("-l3-")][0]
    asked = diagnostic.ask_diagnostic(name, store=tmp_path, progress=False)
    changed = (asked.loc[name] != diagnostic.answers(live=True).loc[name]).sum()
    assert changed <= 4  # a logit in the balance may fall differently on another processor

    def refuse(*_args, **_options):
        raise AssertionError("asked a second time")

    monkeypatch.setattr("psychometrics.modes.nli.NLIRespondent.answer", refuse)
    assert diagnostic.ask_diagnostic(name, store=tmp_path, progress=False).equals(asked)


def test_nobody_and_the_same_respondent_twice_are_refused(lstm):
    with pytest.raises(RespondentError, match="at least one respondent"):
        diagnostic.ask_diagnostic([])
    with pytest.raises(RespondentError, match=r"only once; got lstm-snli-random-h16-x1-s3, lstm"):
        diagnostic.ask_diagnostic([lstm, lstm])


@needs_text
def test_a_run_that_stops_keeps_what_was_answered_and_goes_on_there(lstm, tmp_path, monkeypatch):
    answer, calls = type(lstm).answer, []

    def stop(self, pairs, progress=False):
        calls.append(len(pairs))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return answer(self, pairs)

    monkeypatch.setattr(type(lstm), "answer", stop)
    with pytest.raises(KeyboardInterrupt):
        diagnostic.ask_diagnostic(lstm, store=tmp_path, progress=False)
    done = sum(calls[:2])
    monkeypatch.setattr(
        type(lstm), "answer", lambda self, pairs: calls.append(len(pairs)) or answer(self, pairs)
    )
    asked = diagnostic.ask_diagnostic(lstm, store=tmp_path, progress=False)
    pairs = diagnostic.sentences().drop_duplicates()
    assert done + sum(calls[3:]) == len(pairs)
    assert asked.shape == (1, 812)
