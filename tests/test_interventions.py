"""Interventions: texts, adaptation of real small models, and paired tests."""

from __future__ import annotations

import os
import shutil
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
import torch
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

import psychometrics as pm
from psychometrics.exceptions import DataError, ParameterError, RespondentError
from psychometrics.modes.nli import NLIRespondent
from psychometrics.paths import data_dir
from psychometrics_book import workers
from psychometrics_book.studies import adapting, interventions
from psychometrics_book.studies.adapting import adapt
from psychometrics_book.studies.interventions import ARMS, intervention_texts, trajectories
from tests.conftest import needs
from tests.families import save_family
from tests.tiny import save_tiny_masked_lm

MEASURED = (2, 5, 10, 20)
"""Epochs after which the shipped study measured, besides 0."""
ROUNDING = 1e-6
"""Largest difference between two scores, means of probabilities, that float32 may round apart."""


def test_sentiment_of_the_control_texts_is_as_they_say():
    score = SentimentIntensityAnalyzer().polarity_scores
    mean = {arm: np.mean([score(t)["compound"] for t in intervention_texts(arm)]) for arm in ARMS}
    assert mean["negative"] < -0.4
    assert abs(mean["neutral"]) < 0.15
    with pytest.raises(DataError, match="happy"):
        intervention_texts("happy")


@needs("hate_speech")
def test_hate_speech_control_has_the_papers_number_of_negative_sentences():
    texts = intervention_texts("hate_speech", seed=1)
    assert len(texts) == len(set(texts)) == 1003
    score = SentimentIntensityAnalyzer().polarity_scores
    assert max(score(text)["compound"] for text in texts) <= -0.05
    assert texts == intervention_texts("hate_speech", seed=1)
    assert texts != intervention_texts("hate_speech", seed=2)


@pytest.fixture(scope="module")
def tiny_pair(tmp_path_factory, tiny_model):
    """A tiny NLI model and a tiny masked LM of the same shape."""
    return tiny_model, save_tiny_masked_lm(tmp_path_factory.mktemp("pair") / "mlm", tiny_model, 1)


SENTENCES = ["I feel nervous and anxious at home.", "It very rarely happens to me at work."] * 4


def test_adaptation_of_a_member_changes_the_encoder_and_leaves_the_nli_head_alone():
    respondent = pm.load_respondent(pm.population("encoders")[0], dtype="float32", device="cpu")
    before = {name: value.clone() for name, value in respondent.model.state_dict().items()}
    seen = []
    adapt(respondent, SENTENCES, seen.append, masked_lm="embedded", epochs=2, lr=1e-3)
    after = respondent.model.state_dict()
    assert seen == [1, 2]
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("attention" in name for name in changed)
    assert not {name for name in changed if name.startswith("classifier")}


def test_answers_between_epochs_are_those_of_the_weights_as_they_are_then(tiny_pair):
    nli, masked_lm = tiny_pair
    respondent = pm.load_respondent(nli, dtype="float32", device="cpu")
    pair = SENTENCES[:2]
    answers, expected = [], []

    def compare(epoch: int) -> None:
        answers.append(respondent.answer([pair])[0])
        with torch.no_grad():
            logits = respondent.model(**respondent.tokenizer(*pair, return_tensors="pt")).logits
        expected.append(logits.softmax(-1)[0].numpy())

    compare(0)
    adapt(respondent, SENTENCES, compare, masked_lm=str(masked_lm), epochs=3, lr=1e-2)
    np.testing.assert_allclose(answers, expected, rtol=0, atol=ROUNDING)
    assert np.abs(np.diff(expected, axis=0)).max(axis=1).min() > ROUNDING


@pytest.mark.parametrize(
    "family", ["bert", "distilbert", "electra", "gpt2", "llama", "modernbert", "t5", "xlnet"]
)
def test_a_family_learns_its_text_by_its_own_objective_and_its_nli_head_stays(
    family, tmp_path, monkeypatch
):
    folder, kept = save_family(tmp_path, family), {}
    respondent = pm.load_respondent(folder, dtype="float32", device="cpu")
    before = {name: value.clone() for name, value in respondent.model.state_dict().items()}
    collator, own = adapting._collator, adapting._language_model

    def loss(model) -> float:
        torch.manual_seed(0)
        features = [respondent.tokenizer(text) for text in SENTENCES[:2]]
        batches = [collator(model, respondent.tokenizer)(features) for _ in range(8)]
        with torch.no_grad():
            losses = [adapting._loss(model.eval(), batch) for batch in batches]
        return float(torch.stack([one for one in losses if one is not None]).mean())

    def keep(*given):
        kept["model"] = own(*given)
        kept["before"] = loss(kept["model"])
        return kept["model"]

    monkeypatch.setattr(adapting, "_language_model", keep)
    base = interventions._own_base(str(folder))
    assert base == f"{folder}-base"
    adapt(respondent, SENTENCES * 4, print, masked_lm=base, epochs=10, lr=3e-3)
    assert loss(kept["model"]) < 0.8 * kept["before"]
    after = respondent.model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    body = respondent.model.base_model_prefix + "."
    assert all(name.startswith(body) for name in changed)
    assert torch.equal(  # the words' vectors, too
        respondent.model.get_input_embeddings().weight,
        before[next(n for n in before if "embed" in n or "wte" in n or "shared" in n)],
    )


def test_spans_of_t5_put_together_give_the_text_back():
    torch.manual_seed(0)
    ids = [*range(10, 50), 1]
    kept, hidden = adapting._spans(ids, iter(range(100, 200)))
    parts, held = {}, None
    for token in hidden[:-1]:
        if token >= 100:
            held = parts.setdefault(token, [])
        else:
            held.append(token)
    assert all(parts.values())
    whole = [token for mark in kept for token in parts.get(mark, [mark])]
    assert whole == ids


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_a_refitted_head_learns_its_pairs_on_a_base_that_never_inferred(
    family, tmp_path, monkeypatch
):
    save_family(tmp_path, family)
    said = ["I never do.", "It happens.", "Always."]  # entailed, neutral, contradicted
    pairs = pd.DataFrame(
        {"premise": "I feel calm.", "hypothesis": said * 8, "label": [0, 1, 2] * 8}
    )
    monkeypatch.setattr(interventions, "nli_pairs", lambda name: pairs)
    asked = list(zip(pairs["premise"], pairs["hypothesis"], strict=True))[:3]
    with pytest.raises(RespondentError):
        interventions._open(f"{tmp_path}/{family}-base", 0)
    with pytest.raises(ParameterError, match="do not cover all labels"):
        interventions._refit(interventions._open(str(tmp_path / family), 2), 2)
    for name in (family, f"{family}-base"):
        respondent = interventions._open(str(tmp_path / name), 24)
        interventions._refit(respondent, 24)
        refitted = NLIRespondent(respondent.model, respondent.tokenizer, respondent.identity)
        assert refitted.answer(asked).argmax(axis=1).tolist() == [0, 1, 2]
    words = pm.load_respondent(tmp_path / family)
    words.model.config.num_labels, words.order = 2, [0]
    with pytest.raises(RespondentError, match="three outputs"):
        interventions._refit(words, 24)


def test_own_texts_are_arms(tmp_path):
    (tmp_path / "exam.txt").write_text("I fear the exam.\n\n I sleep badly. \n")
    (tmp_path / "exam.csv").write_text("text;source\nI fear the exam.;me\nI sleep badly.;me\n")
    for name in ("exam.txt", "exam.csv"):
        assert intervention_texts(str(tmp_path / name)) == ["I fear the exam.", "I sleep badly."]
    (tmp_path / "odd.csv").write_text("sentence\nI fear the exam.\n")
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ParameterError, match="text"):
        intervention_texts(str(tmp_path / "odd.csv"))
    for name in ("empty.txt", "nowhere.txt"):
        with pytest.raises(DataError):
            intervention_texts(str(tmp_path / name))


def test_other_architectures_and_half_precision_are_refused(tiny_pair, tmp_path, save_tiny_model):
    nli, masked_lm = tiny_pair
    half = pm.load_respondent(nli, dtype="bfloat16", device="cpu")
    with pytest.raises(RespondentError, match="float32"):
        adapt(half, SENTENCES, print, masked_lm=str(masked_lm))
    other = save_tiny_model(tmp_path / "electra", "electra")
    respondent = pm.load_respondent(other, dtype="float32", device="cpu")
    with pytest.raises(RespondentError, match=r"masked_lm is .* comes from"):
        adapt(respondent, SENTENCES, print, masked_lm=str(masked_lm))


@pytest.fixture
def study(tiny_pair, tmp_path, monkeypatch):
    """A small study: a function of its store, and the respondent; checkpoints lie in the test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(interventions, "available", lambda *keys: False)
    monkeypatch.setattr(interventions, "intervention_texts", lambda *arm: SENTENCES)
    monkeypatch.setattr(workers, "get_context", lambda _: get_context("forkserver"))
    nli, masked_lm = tiny_pair
    settings = {
        "questionnaires": [pm.load_questionnaire("challenges")], "arms": ["neutral"], "epochs": 3,
        "lr": 1e-3, "masked_lm": str(masked_lm), "progress": False,
    }  # fmt: skip

    def run(store: str, names: tuple = (str(nli),), **changes) -> pd.DataFrame:
        return trajectories(names, store=tmp_path / store, **(settings | changes))

    return run


def stopping(monkeypatch) -> list:
    """Stop the study once, at its third measurement; a list that grows with the measurements."""
    measured, original = [], interventions._measured

    def measure(*arguments):
        measured.append(1)
        if len(measured) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(interventions, "_measured", measure)
    return measured


@pytest.mark.parametrize("seconds", [60, -1], ids=["without a checkpoint", "from a checkpoint"])
def test_a_stopped_study_goes_on_and_measures_nothing_twice(study, tmp_path, monkeypatch, seconds):
    monkeypatch.setattr(adapting, "_CHECKPOINT_SECONDS", seconds)
    whole = study("whole")
    assert whole["epoch"].tolist() == [0, 1, 2, 3]

    measured, trained, plainly = stopping(monkeypatch), [], interventions.adapt

    def noted(respondent, sentences, after_epoch, **settings):
        def after(epoch: int) -> None:
            trained.append(epoch)
            after_epoch(epoch)

        plainly(respondent, sentences, after, **settings)

    monkeypatch.setattr(interventions, "adapt", noted)
    with pytest.raises(KeyboardInterrupt):
        study("parts")
    checkpoints = list((tmp_path / "cache").rglob("interventions/*.safetensors"))
    assert len(checkpoints) == (seconds < 0)
    resumed = study("parts")
    assert trained == ([1, 2, 2, 3] if seconds < 0 else [1, 2, 1, 2, 3])
    assert not list((tmp_path / "cache").rglob("interventions/*")), "done: nothing is left over"
    assert len(measured) == 3 + 2, "epochs 0 and 1 were there, 2 and 3 were measured"
    pd.testing.assert_frame_equal(resumed, whole, rtol=0, atol=ROUNDING)
    study("parts")
    assert len(measured) == 5


def test_a_torn_respondent_is_left_out_and_told(study, tiny_pair, tmp_path, monkeypatch):
    torn = shutil.copytree(tiny_pair[0], tmp_path / "torn")
    os.truncate(torn / "model.safetensors", 1000)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # in this process
    names = [str(torn), str(tmp_path / "none"), str(tiny_pair[0])]
    with pytest.warns(UserWarning, match="torn did not .*loaded|none did not") as told:
        found = study("store", names, epochs=1)
    assert len(told) == 2
    assert found["respondent_id"].unique().tolist() == names[2:]
    with pytest.raises(RespondentError, match="torn cannot be loaded"):
        study("store", names[:1])


def test_measurements_lie_in_the_store_with_what_made_them(study, tmp_path):
    found = study("store", measure_at=[2])
    assert found["epoch"].tolist() == [0, 2]
    kept = pd.concat(pd.read_parquet(path) for path in (tmp_path / "store").rglob("*.parquet"))
    assert set(interventions._COLUMNS) <= set(kept.columns)
    assert set(kept["run"]) == set(found["run"])
    told = pm.store.manifests(tmp_path / "store").query("mode == 'interventions'")
    assert set(found["run"]) <= set(told["run"])
    later = study("store", measure_at=[1, 3])
    assert later["epoch"].tolist() == [0, 1, 3]
    assert later["score"].iloc[0] == found["score"].iloc[0]


def test_a_head_of_two_outputs_is_right_where_it_tells_entailment_from_the_rest(
    save_tiny_model, tmp_path, monkeypatch
):
    two = save_tiny_model(tmp_path / "two", labels=("entailment", "not_entailment"))
    two = pm.load_respondent(two, dtype="float32")
    texts = {"premise": SENTENCES, "hypothesis": SENTENCES[::-1], "label": 0, "held_out": True}
    sample = pd.DataFrame(texts)
    sample["label"] = np.resize([0, 0, 1, 2], len(sample))
    monkeypatch.setattr(interventions, "_HELD_OUT_PAIRS", len(sample))
    monkeypatch.setattr(interventions, "available", lambda *keys: True)
    monkeypatch.setattr(interventions, "mnli_sample", lambda: sample)
    scale = pm.load_questionnaire("challenges")
    rows = interventions._measured(two, pm.prompts(scale), [scale])
    entailed = two.answer(list(zip(sample["premise"], sample["hypothesis"], strict=True)))[:, 0]
    assert rows[-1]["score"] == np.mean((entailed > 0.5) == (sample["label"] == 0))


def test_every_seed_runs_every_arm_and_ends_elsewhere(study, monkeypatch, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("I feel calm.\nIt rarely happens.\n")
    texts = {"neutral": SENTENCES, str(own): intervention_texts(str(own))}
    monkeypatch.setattr(interventions, "intervention_texts", lambda arm, seed: texts[arm])
    settings = {"epochs": 1, "arms": list(texts), "seeds": [0, 1], "lr": 1e-2}

    first = study("store", **settings)
    again = study("another store", **settings)

    runs = first[first["epoch"] == 1].groupby(["arm", "seed"])["run"].nunique()
    assert runs.to_dict() == {(arm, seed): 1 for arm in ("neutral", "own") for seed in (0, 1)}
    assert first[first["epoch"] == 1]["run"].nunique() == 4
    assert first[first["epoch"] == 0]["run"].nunique() == 1, "the same before any training"
    assert again["run"].tolist() == first["run"].tolist()
    np.testing.assert_allclose(again["score"], first["score"], rtol=0, atol=ROUNDING)
    ends = first.drop_duplicates("run")["score"].sort_values()
    assert len(ends) == 5, "before, and after each seed of each arm"
    assert ends.diff().min() > ROUNDING


def test_a_refitted_head_is_another_run_with_other_scores(study, monkeypatch):
    pairs = pd.DataFrame({"premise": "I.", "hypothesis": ["a", "b", "c"], "label": [0, 1, 2]})
    monkeypatch.setattr(interventions, "nli_pairs", lambda name: pairs)

    whole = study("store", epochs=1)
    refitted = study("store", epochs=1, refit=3)

    assert not set(refitted["run"]) & set(whole["run"])
    both = whole.merge(refitted, on=["arm", "seed", "epoch", "scale"])
    assert len(both) == 2
    assert (both["score_x"] - both["score_y"]).abs().min() > ROUNDING


def test_a_checkpoint_past_an_epoch_to_be_measured_is_not_taken_up(study, tmp_path, monkeypatch):
    monkeypatch.setattr(adapting, "_CHECKPOINT_SECONDS", -1)
    whole = study("whole")
    stopping(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        study("parts", measure_at=[2, 3])
    assert list((tmp_path / "cache").rglob("interventions/*.safetensors"))
    pd.testing.assert_frame_equal(study("parts"), whole, rtol=0, atol=ROUNDING)


def test_the_shipped_study_is_found_by_its_digests(tmp_path, monkeypatch):
    shipped = pd.read_csv(data_dir() / "interventions.csv")

    def fail(*work):
        raise AssertionError(f"{work[1]} was to be measured")

    monkeypatch.setattr(interventions, "_run", fail)
    names = list(shipped["respondent_id"].unique())
    assert len(names) == 7
    questionnaires = [pm.load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]
    found = trajectories(
        names, questionnaires, seeds=[1], store=tmp_path, measure_at=MEASURED, progress=False
    )
    assert found.groupby(["respondent_id", "arm", "epoch"]).ngroups == 7 * len(ARMS) * 5
    keys = ["respondent_id", "arm", "epoch", "scale"]
    expected = shipped[shipped["epoch"].isin(MEASURED)].set_index(keys)["score"]
    assert len(expected) == (len(shipped) - 7 * shipped["scale"].nunique())
    measured = found.set_index(keys)["score"]
    pd.testing.assert_series_equal(measured.loc[expected.index], expected)


def test_impossible_runs_are_named():
    gad7 = [pm.load_questionnaire("gad7")]
    with pytest.raises(ParameterError, match="Name respondents"):
        trajectories([], gad7)
    with pytest.raises(ParameterError, match="keep measure_at within"):
        trajectories("a", gad7, epochs=2, measure_at=[3])
