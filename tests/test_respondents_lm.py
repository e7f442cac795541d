"""Other response modes, against the definitions computed one prompt at a time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoTokenizer,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    GPT2Config,
    GPT2LMHeadModel,
)

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.modes.language_models import _LMRespondent
from psychometrics.modes.mode import Identity
from tests.tiny import log_probabilities

PROMPTS = [
    ("I feel nervous.", "It never happens to me.", "never"),
    ("I feel calm at home.", "It very rarely happens to me.", "very rarely"),
    ("I feel calm at home.", "It frequently happens to me.", "frequently"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, save_tiny_model):
    """A folder of tiny models that share a tokenizer: mlm, nsp, causal."""
    root = tmp_path_factory.mktemp("modes")
    nli = save_tiny_model(root / "nli", "bert")
    tokenizer = AutoTokenizer.from_pretrained(nli)
    config = AutoConfig.from_pretrained(nli)
    torch.manual_seed(0)
    gpt = GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=64,
        bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id,
    )  # fmt: skip
    models = {
        "mlm": BertForMaskedLM(config),
        "nsp": BertForNextSentencePrediction(config),
        "causal": GPT2LMHeadModel(gpt),
    }
    save_tiny_model(root / "acceptability", "bert", labels=("unacceptable", "acceptable"))
    for name, model in models.items():
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return root


def _load(folder, mode: str, **conditions):
    return pm.load_respondent(folder / mode, mode=mode, dtype="float32", device="cpu", **conditions)


def test_masked_probability_is_chained_from_left_to_right(folder):
    respondent = _load(folder, "mlm")
    found = respondent.answer(PROMPTS)[:, 0]
    tokenizer, model = respondent.tokenizer, respondent.model
    for (premise, hypothesis, intensifier), value in zip(PROMPTS, found, strict=True):
        words = tokenizer(intensifier, add_special_tokens=False)["input_ids"]
        before, after = hypothesis.split(intensifier)
        start = tokenizer(f"{premise} {before}", add_special_tokens=False)["input_ids"]
        end = tokenizer(after, add_special_tokens=False)["input_ids"]
        expected = 1.0
        for place, token in enumerate(words):
            filled = [*words[:place], *[tokenizer.mask_token_id] * (len(words) - place)]
            ids = [tokenizer.cls_token_id, *start, *filled, *end, tokenizer.sep_token_id]
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0, 1 + len(start) + place]
            expected *= float(logits.softmax(-1)[token])
        assert value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("mean", ["product", "geometric", "harmonic"])
def test_causal_probability_puts_the_tokens_together_as_it_says(folder, mean):
    respondent = _load(folder, "causal", mean=mean)
    found = respondent.answer(PROMPTS)[:, 0]
    tokenizer, model = respondent.tokenizer, respondent.model
    for (premise, hypothesis, intensifier), value in zip(PROMPTS, found, strict=True):
        before = hypothesis.split(intensifier)[0]
        start = tokenizer(f"{premise} {before}", add_special_tokens=False)["input_ids"]
        words = tokenizer(intensifier, add_special_tokens=False)["input_ids"]
        p = np.exp(log_probabilities(model, [tokenizer.cls_token_id, *start], words))
        expected = {
            "product": p.prod(),
            "geometric": p.prod() ** (1 / len(p)),
            "harmonic": len(p) / (1 / p).sum(),
        }[mean]
        assert value == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("mode", ["nsp", "acceptability"])
def test_next_sentence_is_the_first_output_and_acceptability_the_second(folder, mode):
    respondent = _load(folder, mode)
    for prompt, value in zip(PROMPTS, respondent.answer(PROMPTS)[:, 0], strict=True):
        given = prompt[:2] if mode == "nsp" else (" ".join(prompt[:2]),)
        with torch.no_grad():
            logits = respondent.model(**respondent.tokenizer(*given, return_tensors="pt")).logits
        assert value == pytest.approx(float(logits.softmax(-1)[0, int(mode != "nsp")]), rel=1e-4)


@pytest.mark.parametrize("mode", ["mlm", "causal", "nsp"])
def test_questionnaires_are_asked_and_scored_in_other_modes(folder, tmp_path, mode):
    name = folder / mode
    answers = pm.ask("gad7", [name], tmp_path, mode=mode, dtype="float32", progress=False)
    assert len(answers) == 672
    assert answers["probability"].between(0, 1).all()
    again = pm.ask("gad7", [name], tmp_path, mode=mode, dtype="float32", progress=False)
    assert answers.equals(again)
    scores = pm.scale_scores(answers)
    assert scores["score"].abs().max() <= 0.5


def test_a_model_without_the_head_is_refused(folder, tiny_model):
    for model, mode, said in (
        (tiny_model, "mlm", "without the head for mode 'mlm'"),
        (folder / "causal", "nsp", "cannot be loaded as a model for mode 'nsp'"),
        (tiny_model, "acceptability", "needs two outputs"),
        ("minilm-mnli-l6-s2", "nsp", "it answers in modes nli and mlm"),
    ):
        with pytest.raises(RespondentError, match=said):
            pm.load_respondent(model, mode=mode)


def test_an_intensifier_that_opens_the_text_has_a_probability_too(folder):
    respondent = _load(folder, "causal")
    prompt = ("Never.", "", "never")
    assert 0 < respondent.answer([prompt])[0, 0] < 1


@pytest.mark.parametrize("usual", ["left", "right"])
@pytest.mark.parametrize("unchanged", ["left", "right", "neither"])
def test_prompts_are_padded_on_the_side_that_changes_no_answer(usual, unchanged):
    class Padding(_LMRespondent):
        def score(self, prompts):
            padded = len(prompts) > 1 and self.tokenizer.padding_side != unchanged
            return np.full(len(prompts), 0.4 if padded else 0.5)

    respondent = Padding(torch.nn.Identity(), SimpleNamespace(padding_side=usual), Identity("m"))
    assert respondent.may_pad() == (unchanged != "neither")
    assert respondent.tokenizer.padding_side == (usual if unchanged == "neither" else unchanged)


def test_answers_that_are_not_numbers_do_not_count_as_unchanged():
    class Broken(_LMRespondent):
        def score(self, prompts):
            return np.full(len(prompts), np.nan)

    tokenizer = SimpleNamespace(padding_side="right")
    assert not Broken(torch.nn.Identity(), tokenizer, Identity("m")).may_pad()
