"""Classifiers in ONNX files answer as torch does, without torch; see psychometrics.modes.onnx."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.models.onnx import find_onnx
from psychometrics.models.sources import find
from psychometrics.modes import identify, load_respondent
from tests.test_light_core import _run_commands, _run_without_extras

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs torch's exporter to ONNX")

PAIRS = [
    ("I feel calm.", "It rarely happens."),
    ("I worry about many things, and I cannot stop.", "It happens often."),
    ("It was dry.", "It rained all day, and I was late."),
]


def export(folder: Path, to: Path, optimize: bool = False) -> Path:
    """Export a folder's classifier as transformers.js writes it: ``to`` is the ONNX file."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    types = getattr(model.config, "type_vocab_size", 0) > 1

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, token_type_ids=None):
            more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            return self.model(input_ids=input_ids, attention_mask=attention_mask, **more).logits

    ids = torch.arange(18).reshape(2, 9) % 10 + 5
    inputs = (ids, torch.ones_like(ids), torch.zeros_like(ids))[: 3 if types else 2]
    names = ["input_ids", "attention_mask", "token_type_ids"][: len(inputs)]
    batch = torch.export.Dim("batch", min=1, max=999)
    length = torch.export.Dim("length", min=3, max=128)

    to.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(),
        torch.inference_mode(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Classifier(), inputs, dynamo=True, optimize=optimize, verbose=False, input_names=names,
            output_names=["logits"], dynamic_shapes=[{0: batch, 1: length}] * len(names),
        )  # fmt: skip
        program.save(to, external_data=False)

    settings = to.parent.parent if to.parent.name == "onnx" else to.parent
    for path in folder.glob("*.json"):
        shutil.copy(path, settings)
    return settings


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "deberta-v2", "electra"])
def test_answers_in_float32_equal_torchs_within_1e_5(family, save_tiny_model, tmp_path):
    plain = save_tiny_model(tmp_path / "plain", family)
    folder = export(plain, tmp_path / "onnx-model" / "onnx" / "model.onnx")
    expected = load_respondent(plain).answer(PAIRS)
    respondent = load_respondent(folder)
    np.testing.assert_allclose(respondent.answer(PAIRS), expected, rtol=0, atol=1e-5)
    assert expected.std() > 0.01
    assert respondent.identity.source == "onnx"
    assert respondent.identity.dtype == "float32"


@pytest.fixture(scope="module")
def folder(save_tiny_model, tmp_path_factory) -> Path:
    """Folder of a tiny BERT as ONNX: in float32, and quantized to int8."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    place = tmp_path_factory.mktemp("onnx")
    file = place / "tiny" / "onnx" / "model.onnx"
    exported = export(save_tiny_model(place / "plain"), file, optimize=True)
    quantize_dynamic(file, file.with_name("model_quantized.onnx"), weight_type=QuantType.QInt8)
    return exported


@pytest.fixture
def copy(folder, tmp_path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "tiny"))


def test_int8_is_stored_apart_from_float32_and_answers_each_pair_alone(folder, tmp_path):
    quantized = folder / "onnx" / "model_quantized.onnx"
    whole = identify(folder)
    small = identify(quantized)
    assert (whole.dtype, small.dtype) == ("float32", "int8")
    assert (whole.respondent_id, small.respondent_id) == ("tiny", "tiny-model_quantized")
    assert whole.fingerprint != small.fingerprint
    assert small.revision == hashlib.sha256(quantized.read_bytes()).hexdigest()

    respondent = load_respondent(quantized)
    together = respondent.answer(PAIRS)
    alone = np.vstack([respondent.answer([pair]) for pair in PAIRS])
    assert (together == alone).all()
    assert not np.allclose(together, load_respondent(folder).answer(PAIRS), atol=1e-6)

    answers = pm.ask("gad7", [str(folder), str(quantized)], store=tmp_path, progress=False)
    assert set(answers["respondent_id"]) == {"tiny", "tiny-model_quantized"}
    again = pm.ask("gad7", [str(quantized)], store=tmp_path, progress=False)
    assert again.attrs["summary"]["asked"] == 0


def test_safetensors_in_the_same_folder_answer_unless_the_onnx_file_is_named(copy, folder):
    shutil.copy(folder.parent / "plain" / "model.safetensors", copy)
    assert find(copy).kind == "local"
    assert find(copy / "onnx" / "model.onnx").kind == "onnx"
    assert find_onnx(copy) is None
    (copy / "model.safetensors").unlink()
    assert find(copy).file == copy / "onnx" / "model.onnx"


def test_outputs_of_an_onnx_file_are_read_from_the_names_in_the_config(copy):
    usual = load_respondent(copy).answer(PAIRS)
    labels = ["neutral", "contradiction", "entailment"]
    names = dict(enumerate(labels))
    numbers = {label: number for number, label in names.items()}
    _change(copy / "config.json", id2label=names, label2id=numbers)
    assert (load_respondent(copy).answer(PAIRS) == usual[:, [2, 0, 1]]).all()


def test_pairs_that_are_too_long_for_an_onnx_file_are_cut_as_by_torch(folder):
    pairs = [("I feel calm. " * 80, "It rarely happens.")]
    with pytest.warns(UserWarning, match="128 tokens"):
        expected = load_respondent(folder.parent / "plain").answer(pairs)
    with pytest.warns(UserWarning, match="128 tokens"):
        answers = load_respondent(folder).answer(pairs)
    np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-5)


def _change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def _rename_words(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    special = {token["content"] for token in tokenizer["added_tokens"]}
    renamed = {word if word in special else f"x{n}x": n for word, n in words.items()}
    tokenizer["model"]["vocab"] = renamed
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def _cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), "incomplete"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "incomplete"),
        (lambda f: (f / "config.json").unlink(), "incomplete"),
        (lambda f: (f / "onnx" / "model.onnx").write_bytes(b"no model"), "incomplete"),
        (lambda f: (f / "onnx" / "model.onnx").write_bytes(b""), "incomplete"),
        (lambda f: _cut_off(f / "onnx" / "model.onnx"), "incomplete"),
        (lambda f: _change(f / "config.json", vocab_size=7), "incomplete"),
        (lambda f: _change(f / "tokenizer_config.json", model_max_length=3), "incomplete"),
        (lambda f: _change(f / "tokenizer_config.json", model_max_length="all"), "incomplete"),
        (
            lambda f: _change(f / "config.json", id2label={0: "a", 1: "b"}, label2id=None),
            "incomplete",
        ),
        (lambda f: _change(f / "config.json", label2id={"neutral": 0}), "labels"),
        (
            lambda f: _change(f / "config.json", id2label={0: "a", 1: "b", 2: "c"}, label2id=None),
            "labels",
        ),
        (_rename_words, "incomplete"),
    ],
)
def test_a_damaged_onnx_folder_is_refused_with_its_kind(copy, spoil, kind):
    spoil(copy)
    with pytest.raises(RespondentError) as refusal:
        load_respondent(copy).answer(PAIRS)
    assert refusal.value.kind == kind


def test_another_precision_device_or_mode_is_refused(folder):
    with pytest.raises(RespondentError, match="dtype"):
        identify(folder, dtype="bfloat16")
    with pytest.raises(RespondentError, match="device"):
        load_respondent(folder, device="cuda")
    with pytest.raises(RespondentError) as refusal:
        load_respondent(folder, mode="mlm")
    assert refusal.value.kind == "no safetensors"


def test_equal_answers_of_an_onnx_file_are_warned_of(save_tiny_model, tmp_path):
    plain = save_tiny_model(tmp_path / "plain", spread=0.0)
    folder = export(plain, tmp_path / "flat" / "model.onnx")
    with pytest.warns(UserWarning, match="same answer"):
        pm.ask("gad7", [str(folder)], store=tmp_path / "store", progress=False)


def test_an_onnx_folder_is_asked_without_torch_and_transformers(folder, tmp_path):
    code = f"""
import psychometrics as pm
answers = pm.ask("gad7", [{str(folder)!r}], store={str(tmp_path / "store")!r}, progress=False)
assert len(pm.scale_scores(answers, "gad7")) == 1
assert not set(MISSING) & set(sys.modules), set(MISSING) & set(sys.modules)
"""
    _run_without_extras(code, tmp_path)


def test_the_command_scores_an_onnx_folder_without_torch(folder, tmp_path):
    ran = _run_commands([f"scores gad7 --respondents {folder}"], tmp_path)
    assert ran["status"].tolist() == [0], ran["printed"][0]
    assert "tiny" in ran["printed"][0]
