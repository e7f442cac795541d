"""Answers and training on a CUDA device, compared with the processor's."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.models.devices import computing_on
from psychometrics.models.loading import load_model, to_device
from psychometrics.modes import generation, load_respondent, option_scorers
from psychometrics.modes.mode import Identity
from psychometrics.training import loop, train_nli
from tests.families import FAMILIES, save_family
from tests.tiny import save_tiny_decoder

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
CARD = "cuda"
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.03}
LEFT = 2**26  # bytes that a test leaves free


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    table = pm.prompts(pm.load_questionnaire("challenges", texts=False))
    return list(zip(table["premise"], table["hypothesis"], strict=True))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory) -> Path:
    return save_tiny_decoder(tmp_path_factory.mktemp("cuda") / "decoder", "llama")


@contextlib.contextmanager
def little_memory():
    """Allow this process 64 MiB more than it holds."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(CARD).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + LEFT) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def loaded(decoder: Path, device: str):
    """Return a model that replies, and its tokenizer."""
    model, tokenizer = load_model(decoder, "causal")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    return to_device(model, torch.device(device), "float32"), tokenizer


def talks(count: int) -> list[list[dict[str, str]]]:
    texts = [f"I feel calm at home, {number}." for number in range(count)]
    return [[{"role": "user", "content": text}] for text in texts]


@pytest.mark.parametrize(
    ("family", "dtype"),
    [*((family, "float32") for family in FAMILIES),
     *((family, "bfloat16") for family in ("bert", "roberta", "deberta"))],
)  # fmt: skip
def test_a_card_answers_like_the_processor_whatever_the_batches(family, dtype, pairs, tmp_path):
    folder = save_family(tmp_path, family)
    expected = load_respondent(folder, device="cpu").answer(pairs)
    respondent = load_respondent(folder, device=CARD, dtype=dtype)
    for budget in (respondent.token_budget, 60, 1000):
        respondent.token_budget = budget
        assert np.abs(respondent.answer(pairs) - expected).max() <= TOLERANCE[dtype]


@pytest.mark.parametrize(("mode", "column"), [("nli", "entailment"), ("mlm", "probability")])
def test_an_embedded_member_answers_on_a_card_like_on_the_processor(mode, column, tmp_path):
    answers = {
        device: pm.ask("gad7", "minilm-mnli-l3-s16", tmp_path / device, mode=mode, device=device,
                       progress=False)
        for device in ("cpu", CARD)
    }  # fmt: skip
    np.testing.assert_allclose(answers[CARD][column], answers["cpu"][column], atol=1e-5)


def test_options_and_replies_are_the_same_on_a_card(decoder):
    questions = [(("", f"I feel calm, {number}."), ["yes", "not at all"]) for number in range(40)]
    scores = {}
    replies = {}
    for device in ("cpu", CARD):
        with computing_on(device):
            scores[device] = option_scorers._TorchScorer(decoder, Identity("m"))(questions, False)
        replies[device] = generation.replies(loaded(decoder, device), talks(70), max_tokens=6)

    np.testing.assert_allclose(scores[CARD], scores["cpu"], atol=1e-4)
    assert replies[CARD] == replies["cpu"]


def test_prompts_that_do_not_fit_are_halved_and_none_is_lost(tiny_model):
    many = [("I feel calm.", f"It happens {number}.") for number in range(40_000)]
    respondent = load_respondent(tiny_model, device=CARD)
    expected = respondent.answer(many)
    respondent.token_budget = 10**9
    with little_memory():
        answers = respondent.answer(many)

    assert respondent.token_budget < 10**9
    assert np.abs(answers - expected).max() <= 1e-5


def test_replies_that_do_not_fit_are_halved_and_none_is_lost(decoder, monkeypatch):
    sizes = []
    generate = generation._generate

    def note(model, texts, *rest):
        sizes.append(len(texts))
        return generate(model, texts, *rest)

    monkeypatch.setattr(generation, "_generate", note)
    model = loaded(decoder, CARD)
    expected = generation.replies(model, talks(4000), max_tokens=8)
    kept = {}
    sizes.clear()
    with little_memory():
        replies = generation.replies(
            model, talks(4000), max_tokens=8, batch=4000, keep=kept.__setitem__
        )

    assert sizes[0] == 4000
    assert len(sizes) > 1
    assert sorted(kept) == list(range(4000))
    assert np.mean([a == b for a, b in zip(replies, expected, strict=True)]) > 0.99


def test_options_that_do_not_fit_are_halved_and_none_is_lost(decoder, monkeypatch):
    questions = [(("", f"I feel calm, {number}."), ["yes", "no"]) for number in range(8192)]
    with computing_on(CARD):
        scorer = option_scorers._TorchScorer(decoder, Identity("m"))
    expected = scorer(questions, False)
    monkeypatch.setattr(option_scorers, "batch_rows", lambda *_: 8192)
    with little_memory():
        np.testing.assert_allclose(scorer(questions, False), expected, atol=1e-4)


def test_a_model_that_does_not_fit_is_refused_with_a_sentence(decoder):
    model, _ = load_model(decoder, "causal")
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-9)
    try:
        with pytest.raises(RespondentError) as error:
            to_device(model, torch.device(CARD), "float32")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert error.value.kind == "memory"


def test_tf32_that_is_allowed_after_loading_is_refused(tiny_model, pairs):
    respondent = load_respondent(tiny_model, device=CARD)
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.raises(RespondentError, match="TF32"):
            respondent.answer(pairs)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert np.isfinite(respondent.answer(pairs)).all()


def test_a_second_card_gives_the_same_answers(tiny_model, pairs):
    if torch.cuda.device_count() < 2:
        pytest.skip("there is no second CUDA device")
    answers = [load_respondent(tiny_model, device=f"cuda:{i}").answer(pairs) for i in (0, 1)]
    assert np.abs(answers[0] - answers[1]).max() <= 1e-5


def test_many_respondents_leave_no_memory_behind(save_tiny_model, tmp_path):
    folders = [save_tiny_model(tmp_path / f"m{seed}", seed=seed) for seed in range(12)]
    held = []
    for number, folder in enumerate(folders):
        pm.ask("challenges", folder, tmp_path / "store", device=CARD, progress=False)
        if number in (2, 11):
            held.append(torch.cuda.memory_allocated())
    assert held[1] <= held[0] + 2**20


def test_a_stopped_training_goes_on_from_its_last_epoch(tiny_model, pairs, tmp_path, monkeypatch):
    monkeypatch.delenv("PSYCHOMETRICS_DEVICE", raising=False)
    frame = pd.DataFrame(pairs[:24], columns=["premise", "hypothesis"])
    frame["label"] = [0, 1, 2] * 8
    how = {"epochs": 4, "lr": 1e-3, "progress": False}
    whole = train_nli(tiny_model, frame, tmp_path / "whole", **how)

    class StoppingTrainer(loop.Trainer):
        def training_step(self, *batch):
            if self.state.epoch >= 2:
                raise KeyboardInterrupt
            return super().training_step(*batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "Trainer", StoppingTrainer)
        with pytest.raises(KeyboardInterrupt):
            train_nli(tiny_model, frame, tmp_path / "twice", **how)
    resumed = train_nli(tiny_model, frame, tmp_path / "twice", **how)

    assert resumed["resumed_at"] > 0
    assert resumed["steps"] == whole["steps"]
    answers = [load_respondent(tmp_path / name).answer(pairs) for name in ("whole", "twice")]
    assert np.abs(answers[0] - answers[1]).max() < 1e-3
