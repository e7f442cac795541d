"""Devices and precisions, with devices that are only pretended; tests/test_cuda.py needs one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import TrainingArguments

import psychometrics as pm
import psychometrics_book as book
from psychometrics import training
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.models import devices, fast, lengths
from psychometrics.models.loading import load_model
from psychometrics.modes import generation, option_scorers, prompting
from psychometrics.modes.mode import Identity
from psychometrics.store import manifests

CUDA, CPU = torch.device("cuda"), torch.device("cpu")
MINILM = SimpleNamespace(hidden_size=384, intermediate_size=1536)
LARGE = SimpleNamespace(hidden_size=8192, intermediate_size=28672)


@pytest.fixture
def cuda(monkeypatch):
    """Pretend that there are two CUDA devices with 80 GB free on each."""
    monkeypatch.delenv("PSYCHOMETRICS_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (80 * 10**9, 80 * 10**9))


def test_the_device_is_the_one_asked_for_then_the_environments_then_the_gpu(cuda, monkeypatch):
    assert devices.resolve_device(None) == CUDA
    assert devices.resolve_device("cuda:1").index == 1
    monkeypatch.setenv("PSYCHOMETRICS_DEVICE", "cuda:1")
    assert devices.resolve_device(None).index == 1
    assert devices.resolve_device("cpu") == CPU
    with devices.computing_on("cpu"):
        assert devices.resolve_device(None) == CPU
    with devices.computing_on(None):
        assert devices.resolve_device(None).index == 1


def test_apples_gpu_is_taken_where_it_is_the_only_one(monkeypatch):
    monkeypatch.delenv("PSYCHOMETRICS_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert devices.resolve_device(None).type == "mps"
    assert devices.resolve_device("cpu") == CPU


def test_what_a_gpu_cannot_compute_names_the_way_back():
    def compute(rows):
        raise NotImplementedError("no such kernel on MPS")

    with pytest.raises(RespondentError, match="device='cpu'"):
        prompting._compute_first([1, 2], compute, Identity("a model", device="mps"))


def test_asking_takes_a_device_notes_it_and_needs_no_question_twice_on_another(
    tiny_model, tmp_path, monkeypatch
):
    monkeypatch.setenv("PSYCHOMETRICS_DEVICE", "cuda:7")
    how = {"store": tmp_path, "progress": False}
    answers = pm.ask("challenges", tiny_model, device="cpu", **how)
    assert answers.attrs["summary"]["asked"] == 192
    assert manifests(tmp_path)["device"].tolist() == ["cpu"]
    again = pm.ask("challenges", tiny_model, device="cpu:0", **how)
    assert again.attrs["summary"]["asked"] == 0
    with pytest.raises(RespondentError, match="cuda:9"):
        pm.ask("challenges", tiny_model, device="cuda:9", **how)
    with pytest.raises(ParameterError, match="ray"):
        pm.ask("challenges", tiny_model, device="cpu", engine="ray", **how)


def test_the_command_takes_a_device(ended, tiny_model):
    asked = ["ask", "challenges", "--respondents", tiny_model, "-c"]
    assert ended(*asked, "device=cpu")[0] == 0
    for name in ("nix", "", "meta", "cpu:9"):
        code, _, errors = ended(*asked, f"device={name}")
        assert code == 1
        assert "device='cpu'" in errors


STUDY = """
title: One model
question: Does the command take a device?
planned: {date: 2026-11-24}
questionnaires: [challenges]
respondents: [%s]
analyses: [scores]
"""


@pytest.mark.parametrize(
    "command",
    [
        "scores challenges --respondents {model}",
        "profile {model} --questionnaires challenges",
        "compare {model} minilm-mnli-l3-s16 --questionnaires challenges",
        "study run {study}",
        "improve gad7",
        "train-nli {model} {study}-out",
    ],
)
def test_every_command_that_computes_refuses_a_device_that_is_not_there_at_once(
    ended, tiny_model, tmp_path, command, monkeypatch
):
    refuse = lambda *_: pytest.fail("it was run")  # noqa: E731
    monkeypatch.setattr("psychometrics_book.runs._execute_notebook", refuse)
    study = tmp_path / "study.yaml"
    study.write_text(STUDY % tiny_model, encoding="utf-8")
    words = command.format(model=tiny_model, study=study).split()

    code, _, errors = ended(*words, "-c", "device=cuda:9")

    assert code == 1
    assert "cuda:9" in errors


def test_a_study_and_a_profile_compute_on_the_device_that_is_named(
    tiny_model, tmp_path, monkeypatch
):
    monkeypatch.setenv("PSYCHOMETRICS_DEVICE", "cuda:7")
    study = tmp_path / "study.yaml"
    study.write_text(STUDY % tiny_model, encoding="utf-8")

    summary = book.study.run_study(study, tmp_path / "store", progress=False, device="cpu")
    assert summary["failed"] == {}
    assert summary["asked"] == 192

    how = {"against": None, "store": tmp_path / "store"}
    found = pm.profiles.assess(tiny_model, "challenges", device="cpu", **how)
    assert found.scores["score"].notna().all()
    assert not [row for row in found.asked.index if row.startswith("left out")]


def test_a_batch_has_more_tokens_the_more_memory_is_free_and_the_smaller_the_model(
    cuda, monkeypatch
):
    on_processor = lengths.batch_tokens(MINILM, CPU, "float32")
    small = lengths.batch_tokens(MINILM, CUDA, "float32")
    large = lengths.batch_tokens(LARGE, CUDA, "float32")
    assert on_processor == 4096
    assert 4096 < large < small <= 2**17
    assert large < lengths.batch_tokens(LARGE, CUDA, "bfloat16")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10**6, 80 * 10**9))
    assert lengths.batch_tokens(LARGE, CUDA, "float32") == 4096, "memory that runs out halves it"


def test_float32_on_a_gpu_is_never_tf32(cuda, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    devices.check_float32(CUDA, "float32")
    assert not torch.backends.cudnn.allow_tf32

    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    devices.check_float32(CUDA, "bfloat16")
    devices.check_float32(CPU, "float32")
    with pytest.raises(RespondentError, match="TF32"):
        devices.check_float32(CUDA, "float32")

    def mixed():
        raise RuntimeError("mix of the legacy and new APIs")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", mixed)
    with pytest.raises(RespondentError, match="TF32"):
        devices.check_float32(CUDA, "float32")


def test_float16_is_a_precision_of_its_own(tiny_model, tmp_path):
    how = {"progress": False, "store": tmp_path}
    exact = pm.ask("challenges", tiny_model, **how)
    coarse = pm.ask("challenges", tiny_model, dtype="float16", **how)
    assert coarse.attrs["summary"]["asked"] == len(coarse), "under keys of their own"
    assert coarse.attrs["summary"]["precision"] == {tiny_model.name: "float16"}
    assert np.abs(exact["entailment"] - coarse["entailment"]).max() < 0.01
    with pytest.raises(RespondentError, match="float16"):
        devices.resolve_dtype("float8")


class _OnTwoGpus(TrainingArguments):
    """Arguments of a machine with two GPUs, both of which the Trainer would take."""

    def __post_init__(self):
        super().__post_init__()
        self._n_gpu = 2


def test_training_takes_one_gpu_of_two_so_that_a_batch_is_what_the_manifest_says(
    tiny_model, tmp_path, monkeypatch
):
    sizes = []

    class Noting(training.loop.Trainer):
        def training_step(self, model, inputs, *more):
            sizes.append(len(inputs["labels"]))
            return super().training_step(model, inputs, *more)

    monkeypatch.setattr(training.loop, "TrainingArguments", _OnTwoGpus)
    monkeypatch.setattr(training.loop, "Trainer", Noting)
    pairs = pd.DataFrame({"premise": "I feel calm.", "label": [0, 1, 2] * 8})
    pairs["hypothesis"] = [f"It happens {number}." for number in range(24)]
    manifest = training.train_nli(
        tiny_model, pairs, tmp_path / "out", epochs=1, batch_size=8, progress=False
    )
    assert sizes == [8, 8, 8]
    assert manifest["steps"] == 3


def test_training_refuses_another_gpu_than_the_first_and_names_the_way(cuda, tmp_path):
    pairs = pd.DataFrame({"premise": ["It rains."], "hypothesis": ["It is wet."], "label": [0]})
    with devices.computing_on("cuda:1"), pytest.raises(ParameterError, match="VISIBLE_DEVICES=1"):
        training.train_nli("nowhere", pairs, tmp_path / "out")
    assert not (tmp_path / "out").exists()

    with devices.computing_on("cuda:0"):
        assert training._trains_on_gpu()


def test_the_device_of_a_run_reaches_its_kernel_and_is_refused_before_it(ended, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_DEVICE", "cuda:7")
    seen = []

    def note(notebook, *arguments, **options):
        seen.append(devices.resolve_device(None))
        raise ParameterError("noted.")

    monkeypatch.setattr("psychometrics_book.runs.run_notebook", note)
    assert ended("run", "03-assessment", "--device", "cuda:9")[0] == 1
    assert ended("run", "03-assessment", "--device", "cpu")[0] == 1
    assert seen == [CPU]


def _limited(function, most: int, place: int):
    """Let a function run out of memory if its argument at a place has more rows than fit."""
    sizes = []

    def limited(*arguments):
        sizes.append(len(arguments[place]))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return function(*arguments)

    return sizes, limited


def test_replies_that_do_not_fit_into_memory_are_halved_and_none_is_lost(tiny_talker, monkeypatch):
    loaded = load_model(tiny_talker, "causal")
    talks = [[{"role": "user", "content": f"I feel calm, {number}."}] for number in range(20)]
    expected = generation.replies(loaded, talks, temperature=1.0, max_tokens=4)
    sizes, limited = _limited(generation._generate, 6, 1)
    monkeypatch.setattr(generation, "_generate", limited)
    kept = {}

    replies = generation.replies(
        loaded, talks, temperature=1.0, max_tokens=4, keep=kept.__setitem__
    )

    assert replies == expected
    assert kept == dict(enumerate(expected))
    assert sizes == [20, 10, 5, 5, 5, 5]


def test_options_that_do_not_fit_into_memory_are_halved_and_none_is_lost(tiny_talker, monkeypatch):
    scorer = option_scorers._TorchScorer(tiny_talker, Identity("m"))
    questions = [(("", f"I feel calm, {number}."), ["yes", "no"]) for number in range(20)]
    expected = scorer(questions, False)
    sizes, limited = _limited(scorer._logits_from, 6, 0)
    monkeypatch.setattr(scorer, "_logits_from", limited)

    np.testing.assert_allclose(scorer(questions, False), expected, atol=1e-5)
    assert sizes[:3] == [16, 8, 4]
    assert max(sizes[2:]) == 4


def test_a_batch_of_a_decoder_grows_with_the_memory_of_a_card_alone(cuda):
    assert lengths.batch_rows(MINILM, CPU, "float32", 100, 16) == 16
    assert lengths.batch_rows(MINILM, CUDA, "float32", 100, 16) == 256
    # 40 GB hold 54,253 tokens of 737,280 bytes.
    assert lengths.batch_rows(LARGE, CUDA, "float32", 1000, 16) == 54


def test_tf32_that_is_allowed_after_loading_is_refused_at_the_next_question(monkeypatch):
    identity = Identity("m", device="cuda")
    assert prompting._compute_first([1, 2], sum, identity) == ([1, 2], 3)
    if hasattr(torch.backends.cudnn, "conv"):
        assert torch.backends.cudnn.conv.fp32_precision == "ieee"

    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    with pytest.raises(RespondentError, match="TF32"):
        prompting._compute_first([1, 2], lambda rows: pytest.fail("it was computed"), identity)


def test_weights_are_read_in_the_precision_that_is_asked_for(tiny_model):
    model, _ = load_model(tiny_model, "classifier", dtype="bfloat16")
    whole, _ = load_model(tiny_model, "classifier")
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in whole.parameters()} == {torch.float32}
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight.to(torch.bfloat16), model.state_dict()[name])


def test_where_nothing_is_packed_only_query_key_and_value_are_copied(tiny_model, monkeypatch):
    model = load_model(tiny_model, "classifier", dtype="float16")[0]
    places = {weight.data_ptr() for weight in model.parameters()}
    copied = []
    plain = fast._pack_linear

    def note(weight, bias, activation=""):
        copied.append(weight.data_ptr() not in places)
        return plain(weight, bias, activation)

    monkeypatch.setattr(fast, "_pack_linear", note)
    fast.packed_forward(model.state_dict(), model.config)
    assert sum(copied) == model.config.num_hidden_layers
