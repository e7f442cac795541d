"""Every family of models, in every command: tiny classifiers with random weights, saved here."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

import psychometrics as pm
import psychometrics_book as book
from psychometrics import profiles
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.models.loading import quietly
from psychometrics.models.sources import base_path
from psychometrics.models.vectors import is_decoder, prompt_vectors
from psychometrics.modes import load_respondent
from psychometrics.modes.nli import NLI
from psychometrics.reports import own_base
from psychometrics.reports.profiles import assess
from tests.conftest import _save_tiny_model
from tests.families import FAMILIES, save_family
from tests.test_respondents_nli import edit

PAIRS = (
    ("I feel calm.", "It rarely happens."),
    ("Over the last two weeks, at work and at home, I feel nervous and anxious.", "Never."),
    ("I enjoy what I do.", "It very rarely happens to me, but sometimes it does."),
)
STUDY = """
title: Nobody answers
question: What does a study say of a respondent that refuses everything?
planned:
  date: 2026-11-23
  expectations:
    - says: Neuroticism is lower where the order is turned.
      questionnaire: ipip20
      scale: neuroticism
      of: {order: reversed}
      than: {order: given}
      expect: lower
questionnaires: [ipip20]
respondents: [simulated-1]
mode: chat
conditions: {order: [given, reversed]}
analyses: [scores, expectations, effects, reliability, evidence]
"""
MASKED = [family for family, (_, kind) in FAMILIES.items() if kind.endswith("MaskedLM")]
every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="session")
def families(tmp_path_factory):
    """Folder of the families' classifiers and their bases."""
    folder = tmp_path_factory.mktemp("families")
    with quietly():
        for family in FAMILIES:
            save_family(folder, family)
    return folder


def _what_a_head_reads(folder, pairs) -> list[np.ndarray]:
    """By plain transformers: all vectors that the layers outside of the family's body are given."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    body, seen = model.base_model, []
    inside = {id(module) for name, module in body.named_modules() if "pooler" not in name}
    for module in model.modules():
        if isinstance(module, torch.nn.Linear) and id(module) not in inside:
            module.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    read = []
    for premise, hypothesis in pairs:
        seen.clear()
        with torch.no_grad():
            model(**tokenizer(premise, hypothesis, return_tensors="pt"))
        read.append(np.concatenate([given.reshape(-1, given.shape[-1]) for given in seen[:1]]))
    return read


@every_family
def test_random_heads_read_what_the_familys_own_classifier_reads(families, family):
    folder = families / family
    vectors = prompt_vectors(str(folder), PAIRS)
    assert vectors.shape == (3, len(PAIRS), 32)
    for vector, read in zip(vectors[-1], _what_a_head_reads(folder, PAIRS), strict=True):
        nearest = np.abs(read - vector).max(axis=1)
        assert nearest[-1 if is_decoder(str(folder)) else 0] < 1e-4
    assert np.ptp(vectors[-1], axis=0).max() > 0.01


@every_family
def test_nulls_stand_on_every_published_base(families, family):
    base = str(families / f"{family}-base")
    drawn = pm.null_answers("challenges", respondents=4, base=base)
    assert drawn["entailment"].between(0, 1).all()
    assert drawn.groupby("respondent_id")["entailment"].std().gt(0).all()
    K = pm.nulls.kernel("challenges", base)
    assert len(pm.nulls.kernel_statistics(K, 24)) == 3


@every_family
@pytest.mark.parametrize("side", ["left", "right"])
def test_answers_do_not_depend_on_batch_or_side_of_padding(families, family, side, tmp_path):
    folder = shutil.copytree(families / family, tmp_path / family)
    edit(folder / "tokenizer_config.json", padding_side=side)
    respondent = load_respondent(folder, device="cpu", dtype="float32")
    alone = np.concatenate([respondent.answer([pair]) for pair in PAIRS])
    np.testing.assert_allclose(respondent.answer(PAIRS), alone, atol=2e-5)
    assert np.ptp(alone, axis=0).max() > 0.001


@pytest.mark.parametrize("family", ["funnel", "convbert", "xlnet"])
def test_answers_of_families_that_notice_padding_are_those_of_single_prompts(family, tmp_path):
    folder = _save_tiny_model(tmp_path / family, family)
    respondent = load_respondent(folder, device="cpu")
    table = pm.prompts("challenges")[::4]
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    alone = np.concatenate([respondent.answer([pair]) for pair in pairs])
    np.testing.assert_allclose(respondent.answer(pairs), alone, atol=2e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", MASKED)
def test_masked_answers_do_not_depend_on_batch_or_side_of_padding(families, family, side, tmp_path):
    folder = shutil.copytree(families / f"{family}-base", tmp_path / family)
    edit(folder / "tokenizer_config.json", padding_side=side)
    respondent = load_respondent(folder, mode="mlm", device="cpu")
    asked = [(*PAIRS[0], "rarely"), (*PAIRS[1], "never"), (*PAIRS[2], "sometimes")]
    alone = np.concatenate([respondent.answer([prompt]) for prompt in asked])
    np.testing.assert_allclose(respondent.answer(asked), alone, rtol=1e-3)


def test_a_trained_xlnet_keeps_its_padding_on_the_left(families, tmp_path):
    pairs = pd.DataFrame(PAIRS, columns=["premise", "hypothesis"]).assign(label=[0, 1, 2])
    pm.training.train_nli(families / "xlnet-base", pairs, tmp_path, epochs=1, progress=False)
    assert AutoTokenizer.from_pretrained(tmp_path).padding_side == "left"


@every_family
def test_an_untrained_model_gets_a_cross_from_its_own_accuracy(families, family, tmp_path):
    found = assess(families / family, "challenges", against=None, store=tmp_path)
    assert found.scores["mark"].tolist() == ["✗"]
    assert "guessing" in set(found.flags["check"])
    assert found.asked.loc["null respondents", "how"].endswith(f"base, {family}-base")
    assert not found.asked.index.str.startswith("left out").any()
    assert len(found.kernel) == 3


def test_a_section_that_fails_is_left_out_with_its_reason(families, tmp_path, monkeypatch):
    torn = shutil.copytree(families / "bert-base", tmp_path / "torn")
    (torn / "model.safetensors").write_bytes(b"nothing")

    def fails(*_):
        raise TypeError("odd")

    monkeypatch.setattr(profiles, "kernel_statistics", fails)
    found = assess(families / "bert", "challenges", against=None, base=torn, store=tmp_path / "s")
    said = found.asked["how"]
    assert "torn cannot be loaded" in said["left out: its own base"]
    assert said["left out: kernel"] == "TypeError: odd"
    assert found.kernel is None
    assert len(found.scores) == 1
    assert found.flags.set_index("check").loc["terms", "mark"] == "–"


def test_a_base_of_another_architecture_or_width_is_refused(families, tmp_path):
    for base in ("roberta-base", "deberta-base"):
        with pytest.raises(ParameterError, match="trained from"):
            assess(families / "bert", "challenges", base=families / base, store=tmp_path)
    with pytest.raises(ParameterError, match="384 dimensions"):
        assess(families / "bert", "challenges", base=base_path(), store=tmp_path)


@pytest.mark.parametrize("tuning", ["unfrozen", "frozen", "lora"])
def test_a_base_of_other_weights_or_words_is_refused(families, tmp_path, tuning):
    base = families / "gpt2-base"
    pairs = pd.DataFrame(PAIRS, columns=["premise", "hypothesis"]).assign(label=[0, 1, 2])
    how = {"tuning": tuning, "epochs": 1, "lr": 1e-3, "progress": False}
    pm.training.train_nli(base, pairs, tmp_path / "model", **how)
    own_base._check_base(str(tmp_path / "model"), str(base))
    for name, why in (("weights", "weights"), ("words", "different tokenizers")):
        other = shutil.copytree(base, tmp_path / name)
        if name == "words":
            text = (other / "tokenizer.json").read_text(encoding="utf-8")
            turned = text.replace('"a":', '"?":').replace('"b":', '"a":').replace('"?":', '"b":')
            (other / "tokenizer.json").write_text(turned, encoding="utf-8")
        else:
            AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(base)).save_pretrained(
                other
            )
        with pytest.raises(ParameterError, match=why):
            own_base._check_base(str(tmp_path / "model"), str(other))


def test_a_model_that_fails_midway_keeps_the_scores_that_it_has(families, tmp_path, monkeypatch):
    def only_challenges(mode, questionnaire, asking, own=NLI.answer):
        if questionnaire.id != "challenges":
            raise RespondentError("the disk is gone")
        return own(mode, questionnaire, asking)

    monkeypatch.setattr(NLI, "answer", only_challenges)
    asked = ["challenges", "gad7"]
    with pytest.warns(UserWarning, match="the disk is gone"):
        found = {
            name: assess(families / name, asked, against=None, store=tmp_path)
            for name in ("bert", "t5")
        }
    scores = found["bert"].scores.set_index("questionnaire")
    assert np.isfinite(scores.loc["challenges", "score"])
    assert scores.loc["gad7", "verdict"] == "no score: 0 of 7 items answered"
    assert "the disk is gone" in found["bert"].asked.loc["left out: bert", "how"]
    apart = profiles.differences(found, asked).set_index("questionnaire")
    assert apart["n"].to_dict() == {"challenges": 4, "gad7": 0}


def test_every_family_is_asked_and_scored_by_the_commands(families, ended):
    names = ",".join(str(families / family) for family in FAMILIES)
    code, said, _ = ended("ask", "challenges", "--respondents", names)
    assert (code, said.split()[0]) == (0, str(len(FAMILIES)))
    code, said, _ = ended("scores", "challenges", "--respondents", names)
    assert code == 0
    assert pd.read_csv(io.StringIO(said))["score"].notna().sum() == len(FAMILIES)


def test_a_model_that_refuses_everything_is_a_row_of_page_and_study(ended, tmp_path, monkeypatch):
    mini = pm.load_questionnaire("ipip20")
    traits = pm.modes.simulated.draw_traits(mini, 1)
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.setattr(book.server, "_lines", lambda *_: "As a language model, I have no moods.")
    with book.server.simulated_endpoint(mini, traits) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        asked = ["--questionnaires", "ipip20", "--mode", "chat", "-c", "runs=1", "-o", "page.html"]
        code, said, errors = ended("profile", "simulated-1", *asked)
        assert (code, said.count("no score: 0 of 4 items answered")) == (0, 5), errors
        assert "0 of 20 answers could be read" in Path("page.html").read_text(encoding="utf-8")
        assert ended("study", "run", "study.yaml")[0] == 0
        tables = book.study.study_tables("study.yaml")
    assert tables["evidence"]["verdict"].str.startswith("no score").all()
    assert isinstance(tables["scores"], str) or tables["scores"]["score"].isna().all()
