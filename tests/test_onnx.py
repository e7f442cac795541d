"""Models in ONNX files answer as torch does, without torch."""

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
import pandas as pd
import pytest
import torch

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.models.chat_templates import render_template
from psychometrics.models.onnx import find_onnx
from psychometrics.models.sources import find
from psychometrics.modes import identify, load_respondent
from tests.test_light_core import _run_commands, _run_without_extras
from tests.tiny import TEMPLATE, save_tiny_decoder

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs torch's exporter to ONNX")

PAIRS = [
    ("I feel calm.", "It rarely happens."),
    ("I worry about many things, and I cannot stop.", "It happens often."),
    ("It was dry.", "It rained all day, and I was late."),
]


def export(folder: Path, to: Path, optimize: bool = False) -> Path:
    """Export a folder's classifier as transformers.js writes it: ``to`` is the ONNX file."""
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
    shapes = [{0: batch, 1: length}] * len(names)
    return _export(Classifier(), inputs, shapes, names, ["logits"], folder, to, optimize)


def export_decoder(folder: Path, to: Path, past: bool = False) -> Path:
    """Export a folder's causal model, if wanted with inputs for earlier keys and values."""
    from transformers import AutoModelForCausalLM
    from transformers.cache_utils import DynamicCache

    model = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype="float32"
    ).eval()
    config = model.config
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    size = config.hidden_size // config.num_attention_heads
    parts = [f"{i}.{part}" for i in range(config.num_hidden_layers) for part in ("key", "value")]

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, position_ids, earlier=None):
            inputs = {"attention_mask": attention_mask, "position_ids": position_ids}
            if earlier is None:
                return self.model(input_ids, **inputs, use_cache=False).logits

            cache = DynamicCache(list(zip(earlier[::2], earlier[1::2], strict=True)))
            written = self.model(input_ids, **inputs, past_key_values=cache, use_cache=True)
            layers = written.past_key_values.layers
            return written.logits, *(
                part for layer in layers for part in (layer.keys, layer.values)
            )

    before = 3 if past else 0
    ids = torch.arange(18).reshape(2, 9) % 10 + 5
    places = torch.arange(before, 9 + before).repeat(2, 1)
    inputs = [ids, torch.ones(2, 9 + before, dtype=torch.long), places]
    names = ["input_ids", "attention_mask", "position_ids"]
    outputs = ["logits"]
    free = torch.export.Dim.DYNAMIC
    shapes = [{0: free, 1: free}, {0: free, 1: free}, {0: free, 1: free}]

    if past:
        inputs.append([torch.randn(2, heads, before, size) for _ in parts])
        names += [f"past_key_values.{part}" for part in parts]
        outputs += [f"present.{part}" for part in parts]
        shapes.append([{0: free, 2: free}] * len(parts))

    return _export(Decoder(), tuple(inputs), shapes, names, outputs, folder, to, optimize=True)


def _export(module, inputs, shapes, names, outputs, folder, to, optimize) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with (
        warnings.catch_warnings(),
        torch.inference_mode(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, inputs, dynamo=True, optimize=optimize, verbose=False, input_names=names,
            output_names=outputs, dynamic_shapes=shapes,
        )  # fmt: skip
        program.save(to, external_data=False)

    settings = to.parent.parent if to.parent.name == "onnx" else to.parent
    for path in [*folder.glob("*.json"), *folder.glob("*.jinja")]:
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


def test_names_of_outputs_may_differ_in_their_capitals(copy):
    usual = load_respondent(copy).answer(PAIRS)
    config = json.loads((copy / "config.json").read_text())
    names = {i: name.upper() for i, name in config["id2label"].items()}
    _change(copy / "config.json", id2label=names)
    assert (load_respondent(copy).answer(PAIRS) == usual).all()


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


def ask_options(respondent: Path, store: Path, **conditions) -> pd.DataFrame:
    return pm.ask("gad7", [str(respondent)], mode="options", store=store, choose="none",
                  progress=False, **conditions)  # fmt: skip


@pytest.mark.parametrize(
    ("family", "past", "conditions"),
    [
        ("llama", False, {}),
        ("qwen2", True, {"score": "text"}),
        ("gpt2", True, {"wording": "voice", "score": "text_mean"}),
    ],
)
def test_options_of_a_decoder_equal_torchs_within_1e_5(family, past, conditions, tmp_path):
    plain = save_tiny_decoder(tmp_path / "plain", family, positions=1024)
    folder = export_decoder(plain, tmp_path / "onnx-model" / "onnx" / "model.onnx", past)
    expected = ask_options(plain, tmp_path, **conditions)
    answers = ask_options(folder, tmp_path, **conditions)
    np.testing.assert_allclose(answers["probability"], expected["probability"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(answers["log_probability"], expected["log_probability"], rtol=1e-5)
    assert expected["probability"].std() > 0.01
    assert identify(folder, "options").source == "onnx"


def test_options_of_a_classifier_equal_torchs_within_1e_5(folder, tmp_path):
    expected = ask_options(folder.parent / "plain", tmp_path)
    answers = ask_options(folder, tmp_path)
    np.testing.assert_allclose(answers["probability"], expected["probability"], atol=1e-5)
    assert answers["by"].eq("entailment").all()


@pytest.fixture(scope="module")
def decoder(tmp_path_factory) -> Path:
    """Folder of a tiny Llama as ONNX, in float32 and quantized to int8, with a chat template."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    place = tmp_path_factory.mktemp("decoder")
    file = place / "tiny" / "onnx" / "model.onnx"
    exported = export_decoder(save_tiny_decoder(place / "plain"), file)
    quantize_dynamic(file, file.with_name("model_quantized.onnx"), weight_type=QuantType.QInt8)
    return exported


def test_options_of_an_int8_decoder_are_stored_apart(decoder, tmp_path):
    quantized = decoder / "onnx" / "model_quantized.onnx"
    whole = identify(decoder, "options")
    small = identify(quantized, "options")
    assert (whole.dtype, small.dtype) == ("float32", "int8")
    assert whole.fingerprint != small.fingerprint

    answers = ask_options(decoder, tmp_path)
    rounded = ask_options(quantized, tmp_path)
    assert rounded["respondent_id"].unique() == ["tiny-model_quantized"]
    assert not np.allclose(answers["probability"], rounded["probability"], atol=1e-6)
    assert ask_options(quantized, tmp_path).attrs["summary"]["asked"] == 0


def test_a_decoder_is_asked_for_options_without_torch_and_transformers(decoder, tmp_path):
    copied = Path(shutil.copytree(decoder, tmp_path / "base"))
    (copied / "chat_template.jinja").unlink()  # jinja2 fills templates
    ran = _run_commands([f"scores gad7 --mode options --respondents {copied}"], tmp_path)
    assert ran["status"].tolist() == [0], ran["printed"][0]
    assert "base,gad7" in ran["printed"][0]


TURNS = [{"role": "system", "content": "é & <b>"}, {"role": "user", "content": "It's 'I'.\n"}]


@pytest.mark.parametrize(
    "template",
    [
        TEMPLATE,
        "{% for m in messages %}{% generation %}{{ m | tojson }}{% endgeneration %}{% break %}\n"
        "{% endfor %}{% if tools is not none %}{{ tools }}{% endif %}{{ bos_token }}",
        "{%- set ns = namespace(n=1) -%}\n  {% for m in messages %}\n  {% set ns.n = ns.n + 1 %}\n"
        "{{ m['content'] | trim }}{{ ns.n }}\n{% endfor %}{{ {'a': 'é<'} | tojson(indent=2) }}",
    ],
)
def test_a_chat_template_is_filled_as_by_transformers(template, decoder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(decoder.parent / "plain")
    tokenizer.chat_template = template
    expected = tokenizer.apply_chat_template(TURNS, tokenize=False, add_generation_prompt=True)
    assert render_template(template, TURNS, tokenizer.special_tokens_map) == expected


def _write_template(folder: Path, template: object) -> None:
    (folder / "chat_template.jinja").unlink()
    _change(folder / "tokenizer_config.json", chat_template=template)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda f: _change(f / "config.json", vocab_size=7), "incomplete"),
        (lambda f: _change(f / "config.json", max_position_embeddings=50), "other"),
        (lambda f: _write_template(f, "{{ 10 ** 10 }}"), "incomplete"),
        (lambda f: _write_template(f, [{"name": "other", "template": "x"}]), "incomplete"),
        (lambda f: _write_template(f, "{% for m in messages %}"), "other"),
        (lambda f: _write_template(f, "{{ raise_exception('no system') }}"), "other"),
        (lambda f: _cut_off(f / "onnx" / "model.onnx"), "incomplete"),
    ],
)
def test_a_damaged_decoder_is_refused_with_its_kind(decoder, tmp_path, spoil, kind):
    copied = Path(shutil.copytree(decoder, tmp_path / "tiny"))
    spoil(copied)
    with pytest.raises(RespondentError) as refusal:
        ask_options(copied, tmp_path / "store")
    assert refusal.value.kind == kind


def test_a_classifiers_file_is_not_asked_as_a_decoder(copy, tmp_path):
    names = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096}
    _change(copy / "config.json", **names)
    _change(copy / "tokenizer_config.json", model_max_length=4096)
    with pytest.raises(RespondentError) as refusal:
        ask_options(copy, tmp_path / "store")
    assert refusal.value.kind == "architecture"


def test_one_template_of_several_is_the_usual_one(decoder, tmp_path):
    copied = Path(shutil.copytree(decoder, tmp_path / "tiny"))
    several = [{"name": "rag", "template": "x"}, {"name": "default", "template": TEMPLATE}]
    _write_template(copied, several)
    answers = ask_options(copied, tmp_path / "store")
    pd.testing.assert_frame_equal(answers, ask_options(decoder, tmp_path / "store"))
