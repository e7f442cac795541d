from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Tokenizer,
)

from data.make import heads
from psychometrics import data, load_respondent, training
from psychometrics.exceptions import DataError, ParameterError, RespondentError
from psychometrics.interventions import adapt
from psychometrics.models import embedded
from psychometrics.models.embedded import acceptability, load_masked_lm
from psychometrics.models.sources import base_path
from psychometrics.training import (
    adapt_causal,
    adapt_encoder,
    nli_pairs,
    train_acceptability,
    train_nli,
)

PAIRS = pd.DataFrame(
    [
        (premise, hypothesis, label)
        for label, (premise, hypothesis) in enumerate(
            [
                ("I feel calm.", "I feel calm."),
                ("I feel calm.", "It happens."),
                ("I feel calm.", "I never do."),
            ]
        )
        for _ in range(8)
    ],
    columns=["premise", "hypothesis", "label"],
)


def save_tiny_decoder(folder: Path, architecture: str, end: str | None = "<|endoftext|>") -> Path:
    """A random causal model as published ones are: without a head, without a padding token."""
    from tokenizers.pre_tokenizers import ByteLevel

    tokens = ["<|endoftext|>", *sorted(ByteLevel.alphabet())]
    tokenizer = GPT2Tokenizer(vocab={token: i for i, token in enumerate(tokens)}, merges=[],
                              eos_token=end, bos_token=end, unk_token=end)  # fmt: skip
    assert tokenizer.pad_token is None
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 64, "max_position_embeddings": 130}  # fmt: skip
    if architecture == "gpt2":
        sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 130}
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokens), bos_token_id=0, eos_token_id=0, **sizes
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(10)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny_masked_lm(folder: Path, nli: Path) -> Path:
    """A random masked language model of a classifier's shape, with its tokenizer."""
    shutil.copytree(nli, folder)
    torch.manual_seed(0)
    AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(nli)).save_pretrained(folder)
    return folder


def trained_answers(monkeypatch, pairs, *arguments, **settings) -> np.ndarray:
    """Train, and give the model's answers as it is in memory, one pair at a time."""
    kept = {}

    def keep(model, tokenizer, *rest):
        kept["model"], kept["tokenizer"] = model.eval(), tokenizer
        return save(model, tokenizer, *rest)

    save = training._save
    monkeypatch.setattr(training, "_save", keep)
    monkeypatch.setattr(training, "_bf16", lambda: False)  # which would stay with the model
    train_nli(*arguments, progress=False, **settings)
    with torch.no_grad():
        logits = [
            kept["model"](**kept["tokenizer"](*pair, return_tensors="pt")).logits for pair in pairs
        ]
    return torch.cat(logits).softmax(dim=-1).numpy()


def changed(trained: Path, base: Path) -> set[str]:
    """Names of the base's weights that differ after training."""
    after, before = load_file(trained / "model.safetensors"), load_file(base / "model.safetensors")
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_a_trained_folder_is_a_respondent_that_learned_its_pairs(tiny_model, tmp_path):
    manifest = train_nli(tiny_model, PAIRS, tmp_path / "out", epochs=30, lr=5e-3, batch_size=8,
                         progress=False)  # fmt: skip
    respondent = load_respondent(tmp_path / "out", dtype="float32")
    answers = respondent.answer(list(zip(PAIRS.premise, PAIRS.hypothesis, strict=True)))
    assert (np.argmax(answers, axis=1) == PAIRS.label).all()
    assert manifest["pairs"] == 24
    assert manifest["steps"] == 90
    assert json.loads((tmp_path / "out" / "manifest.json").read_text()) == manifest


def test_frozen_tuning_leaves_the_encoder_as_it_was(tiny_model, tmp_path):
    train_nli(tiny_model, PAIRS, tmp_path, tuning="frozen", epochs=1, lr=1e-2, progress=False)
    names = changed(tmp_path, tiny_model)
    assert names
    assert all("pooler" in name or "classifier" in name for name in names)


def test_unfrozen_tuning_changes_the_encoder(tiny_model, tmp_path):
    train_nli(tiny_model, PAIRS, tmp_path, tuning="unfrozen", epochs=1, lr=1e-2, progress=False)
    assert any("encoder.layer.0" in name for name in changed(tmp_path, tiny_model))


def test_lora_saves_an_adapter_only(tiny_model, tmp_path):
    train_nli(tiny_model, PAIRS, tmp_path, tuning="lora", rank=2, epochs=1, progress=False)
    weights = load_file(tmp_path / "adapter_model.safetensors")
    assert not (tmp_path / "model.safetensors").exists()
    assert {name.split(".")[-2] for name in weights if "lora" in name} == {"lora_A", "lora_B"}
    assert any("classifier" in name for name in weights)


LONG_AND_SHORT = [("I feel calm at home.", "It happens very rarely."), ("I do.", "No.")]


@pytest.mark.parametrize("tuning", ["unfrozen", "lora"])
@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_a_decoder_without_a_padding_token_is_trained_and_answers_as_in_training(
    architecture, tuning, tmp_path, monkeypatch
):
    base = save_tiny_decoder(tmp_path / "base", architecture)
    answers = trained_answers(
        monkeypatch, LONG_AND_SHORT, base, PAIRS, tmp_path / "out", tuning=tuning, rank=2,
        epochs=1, lr=1e-2, batch_size=12,
    )  # fmt: skip
    found = load_respondent(tmp_path / "out", dtype="float32").answer(LONG_AND_SHORT)
    np.testing.assert_allclose(found, answers, atol=2e-5)
    assert np.ptp(found, axis=0).max() > 1e-3


@pytest.mark.parametrize("architecture", ["distilbert", "electra", "bert", "roberta"])
def test_an_adapter_answers_as_in_training_though_its_base_had_no_head(
    architecture, tmp_path, save_tiny_model, monkeypatch
):
    nli = save_tiny_model(tmp_path / "nli", architecture)
    base = save_tiny_masked_lm(tmp_path / "base", nli)  # BERT's has no pooler either
    answers = trained_answers(
        monkeypatch, LONG_AND_SHORT, base, PAIRS, tmp_path / "out", tuning="lora", rank=2,
        epochs=1, lr=1e-2, batch_size=12,
    )  # fmt: skip
    found = load_respondent(tmp_path / "out", dtype="float32").answer(LONG_AND_SHORT)
    np.testing.assert_allclose(found, answers, atol=2e-5)


def test_an_adapter_keeps_how_many_layers_its_base_was_left(tiny_model, tmp_path, monkeypatch):
    answers = trained_answers(
        monkeypatch, LONG_AND_SHORT, tiny_model, PAIRS, tmp_path / "out", tuning="lora", rank=2,
        layers=1, epochs=1, lr=1e-2,
    )  # fmt: skip
    found = load_respondent(tmp_path / "out", dtype="float32").answer(LONG_AND_SHORT)
    np.testing.assert_allclose(found, answers, atol=2e-5)


def test_a_base_that_can_be_padded_with_nothing_is_refused(tmp_path):
    base = save_tiny_decoder(tmp_path / "base", "gpt2", end=None)
    with pytest.raises(ParameterError, match=r"neither a padding nor an end token.*set pad_token"):
        train_nli(base, PAIRS, tmp_path / "out", progress=False)


@pytest.mark.parametrize("architecture", ["distilbert", "electra"])
def test_other_encoders_are_adapted_and_serve_in_interventions(
    architecture, tmp_path, save_tiny_model
):
    nli = save_tiny_model(tmp_path / "nli", architecture)
    base = save_tiny_masked_lm(tmp_path / "base", nli)
    sentences = ["I feel calm at home.", "It happens very rarely."] * 4
    adapt_encoder(base, sentences, tmp_path / "adapted", epochs=1, rank=2, progress=False)
    head = load_file(tmp_path / "adapted" / "head.safetensors")
    before = load_file(base / "model.safetensors")
    assert len(head) >= 5  # a linear layer, a norm and the output's bias
    assert any(not torch.equal(before[name], weight) for name, weight in head.items())
    model, _ = load_masked_lm(tmp_path / "adapted")
    named = model.state_dict()
    assert all(torch.equal(named[name], weight) for name, weight in head.items())

    respondent = load_respondent(nli, dtype="float32", device="cpu")
    weights = {name: value.clone() for name, value in respondent.model.state_dict().items()}
    adapt(respondent, sentences, lambda epoch: None, masked_lm=str(base), epochs=1, lr=1e-3)
    after = respondent.model.state_dict()
    moved = {name for name in weights if not torch.equal(weights[name], after[name])}
    assert any("attention" in name for name in moved)
    assert not any("classifier" in name or "embeddings.word" in name for name in moved)


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_a_decoder_learns_to_judge_sentences_and_its_packed_head_judges_alike(
    architecture, tmp_path, monkeypatch
):
    base = save_tiny_decoder(tmp_path / "base", architecture)
    judged = pd.DataFrame({"sentence": ["I am calm.", "calm I"] * 8, "acceptable": [1, 0] * 8})
    manifest = train_acceptability(
        base, judged, tmp_path / "out", epochs=20, rank=2, first=1, progress=False
    )
    weights = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert {name.split(".")[4] for name in weights if "lora" in name} == {"1"}
    assert (manifest["first"], manifest["layers"], manifest["rank"]) == (1, 2, 2)
    good, bad = acceptability(["I am calm.", "calm I"], tmp_path / "out")
    assert good > 0.5 > bad

    for module in (heads, embedded):
        monkeypatch.setattr(module, "data_dir", lambda: tmp_path / "data")
    monkeypatch.setattr(embedded, "SMOLLM2", str(base))
    monkeypatch.setattr(embedded, "resolve_dtype", lambda *_: "float32")
    folder = heads._pack_head(tmp_path / "out", "cola", str(base))
    heads._write_recipe(folder, manifest, {})
    packed = acceptability(["I am calm.", "calm I"])
    np.testing.assert_allclose(packed, [good, bad], atol=2e-3)  # it is kept in fp16
    heads._write_recipe(folder, manifest | {"wording": "calm {sentence}"}, {})
    reworded, plain = (
        acceptability(["I am calm."]),
        acceptability(["calm I am calm."], tmp_path / "out"),
    )
    np.testing.assert_allclose(reworded, plain, atol=2e-3)


def test_the_same_seed_gives_the_same_model_and_another_seed_another(tiny_model, tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        train_nli(tiny_model, PAIRS, tmp_path / folder, epochs=1, seed=seed, progress=False)
    assert not changed(tmp_path / "a", tmp_path / "b")
    assert changed(tmp_path / "a", tmp_path / "c")


def test_a_stopped_run_goes_on_from_its_last_epoch(tiny_model, tmp_path):
    whole = train_nli(tiny_model, PAIRS, tmp_path / "whole", epochs=4, lr=1e-3, progress=False)

    class Stopped(Exception):
        pass

    from transformers import TrainerCallback

    class StopAfterTwoEpochs(TrainerCallback):
        def on_epoch_begin(self, args, state, control, **kwargs):
            if state.epoch >= 2:
                raise Stopped

    class StoppingTrainer(training.Trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, callbacks=[StopAfterTwoEpochs()], **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "Trainer", StoppingTrainer)
        with pytest.raises(Stopped):
            train_nli(tiny_model, PAIRS, tmp_path / "twice", epochs=4, lr=1e-3, progress=False)
    assert not (tmp_path / "twice" / "manifest.json").exists()
    resumed = train_nli(tiny_model, PAIRS, tmp_path / "twice", epochs=4, lr=1e-3, progress=False)
    assert resumed["steps"] == whole["steps"]
    assert not changed(tmp_path / "twice", tmp_path / "whole")


def test_fewer_layers_make_a_shallower_model(tiny_model, tmp_path):
    train_nli(tiny_model, PAIRS, tmp_path, layers=1, epochs=1, progress=False)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert model.config.num_hidden_layers == 1
    assert len(model.base_model.encoder.layer) == 1


def test_an_unknown_tuning_is_refused_before_anything_is_loaded(tmp_path):
    with pytest.raises(ParameterError, match="unfrozen, frozen or lora, got 'melted'"):
        train_nli("nowhere", PAIRS, tmp_path, tuning="melted")


def test_an_adapted_encoder_can_be_trained_on(tiny_model, tmp_path):
    sentences = ["I feel calm at home.", "It happens very rarely.", "My daily life is empty."] * 8
    adapt_encoder(
        tiny_model, sentences, tmp_path / "adapted", epochs=2, lr=1e-2, rank=2, progress=False
    )
    train_nli(tiny_model, PAIRS, tmp_path / "from", tuning="lora", rank=2, epochs=1, lr=0.0,
              adapter=tmp_path / "adapted", progress=False)  # fmt: skip
    before = load_file(tmp_path / "adapted" / "adapter_model.safetensors")
    after = load_file(tmp_path / "from" / "adapter_model.safetensors")
    assert max(v.abs().max() for k, v in before.items() if "lora_B" in k) > 0
    for name, weight in before.items():  # nothing was learned at rate zero, so all is as adapted
        torch.testing.assert_close(after[name], weight)


def test_an_adapter_of_another_depth_is_refused(tiny_model, tmp_path):
    adapt_encoder(
        tiny_model, ["I feel calm."] * 4, tmp_path / "deep", epochs=1, rank=2, progress=False
    )
    with pytest.raises(ParameterError, match="another architecture or depth"):
        train_nli(tiny_model, PAIRS, tmp_path / "shallow", tuning="lora", rank=2, layers=1,
                  adapter=tmp_path / "deep", progress=False)  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_local_files_of_pairs_are_read_with_labels_by_name(tmp_path, suffix):
    frame = PAIRS.assign(label=[data.NLI_LABELS[i].upper() for i in PAIRS.label])
    path = tmp_path / f"pairs{suffix}"
    {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        ".parquet": lambda: frame.to_parquet(path),
    }[suffix]()
    assert nli_pairs(str(path))["label"].tolist() == PAIRS["label"].tolist()
    assert len(nli_pairs([str(path), str(path)])) == 2 * len(PAIRS)


def test_bad_pairs_are_refused_with_the_mend(tmp_path):
    with pytest.raises(DataError, match=r"lack the column.*label: add"):
        nli_pairs(PAIRS.drop(columns="label"))
    with pytest.raises(DataError, match="found maybe"):
        nli_pairs(PAIRS.assign(label="maybe"))
    with pytest.raises(DataError, match="no labelled pairs"):
        nli_pairs(PAIRS.head(0))
    with pytest.raises(DataError, match=r"missing\.csv does not exist"):
        nli_pairs(str(tmp_path / "missing.csv"))


class _Exploit:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def wants_code(tiny_model, tmp_path):
    """A base whose config asks for program code that lies beside it, and what that would touch."""
    base, touched = tmp_path / "base", tmp_path / "ran"
    shutil.copytree(tiny_model, base)
    code = f"from pathlib import Path\n\nPath({str(touched)!r}).touch()\n"
    (base / "own.py").write_text(code)
    config = json.loads((base / "config.json").read_text())
    classes = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification",
               "AutoModelForMaskedLM")  # fmt: skip
    config |= {"model_type": "of-its-own", "auto_map": {name: "own.Own" for name in classes}}
    (base / "config.json").write_text(json.dumps(config))
    return base, touched


@pytest.fixture
def pickled(tiny_model, tmp_path):
    """A base with weights in pickle alone, which touch a file when loaded."""
    base, touched = tmp_path / "pickled", tmp_path / "ran"
    shutil.copytree(tiny_model, base)
    (base / "model.safetensors").unlink()
    torch.save({"weight": _Exploit(touched)}, base / "pytorch_model.bin")
    return base, touched


TRAININGS = {
    "nli": lambda base, out: train_nli(base, PAIRS, out, epochs=1, progress=False),
    "encoder": lambda base, out: adapt_encoder(base, ["I am."], out, epochs=1, progress=False),
    "acceptability": lambda base, out: train_acceptability(
        base, pd.DataFrame({"sentence": ["I am."], "acceptable": [1]}), out, progress=False
    ),
}


@pytest.mark.parametrize("train", TRAININGS.values(), ids=list(TRAININGS))
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("wants_code", r"needs program code of its own \(auto_map in config.json\)"),
        ("pickled", "holds its weights only as pytorch_model.bin"),
    ],
)
def test_no_training_runs_a_bases_own_code(kind, said, train, request, tmp_path, monkeypatch):
    base, touched = request.getfixturevalue(kind)
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # whoever asks is told to go ahead
    with pytest.raises(RespondentError, match=said):
        train(str(base), tmp_path / "out")
    assert not touched.exists()
    assert not (tmp_path / "out").exists()


def test_the_unsafe_bases_of_these_tests_would_run_their_code(wants_code, pickled):
    base, touched = wants_code
    with pytest.raises((ImportError, AttributeError)):  # it has run, and has no class Own
        AutoConfig.from_pretrained(base, trust_remote_code=True)
    assert touched.exists()
    touched.unlink()
    torch.load(pickled[0] / "pytorch_model.bin", weights_only=False)
    assert touched.exists()


def test_a_causal_model_learns_its_text_in_place(tiny_model):
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=32, n_layer=1, n_head=2,
        bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config)
    first = {name: weight.clone() for name, weight in model.state_dict().items()}
    text = tokenizer("I feel calm at home.", return_tensors="pt")["input_ids"]

    def loss() -> float:
        model.eval()
        with torch.no_grad():
            return float(model(input_ids=text, labels=text).loss)

    before = loss()
    manifest = adapt_causal(
        model, tokenizer, ["I feel calm at home."] * 8, epochs=10, lr=1e-2, batch_size=4
    )
    assert manifest["steps"] == 20
    assert loss() < before / 2
    same = [name for name, weight in model.named_parameters() if torch.equal(weight, first[name])]
    assert not same, "all weights are trained"


def test_the_embedded_base_is_called_minilm(tmp_path):
    train_nli("minilm", PAIRS, tmp_path, tuning="frozen", layers=1, epochs=1, progress=False)
    after = load_file(tmp_path / "model.safetensors")
    before = load_file(Path(base_path()) / "model.safetensors")
    name = "encoder.layer.0.attention.self.query.weight"
    torch.testing.assert_close(after[f"bert.{name}"], before[name])
    assert load_respondent(tmp_path).answer([("I feel calm.", "I do.")]).shape == (1, 3)
