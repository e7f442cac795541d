"""Models that are odd, damaged or of another kind answer rightly, or say in a sentence why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

import psychometrics as pm
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.models.loading import load_config, load_model
from psychometrics.modes.generation import replies
from psychometrics.modes.mode import Identity
from psychometrics.modes.option_scorers import _TorchScorer
from psychometrics.training import train_nli
from psychometrics_book.studies.sentence_encoders import load_sentence_encoder
from tests.tiny import log_probabilities, save_tiny_decoder, save_tiny_masked_lm

ASKED = {"progress": False, "store": "memory://odd"}


def _rewrite(folder: Path, file: str = "config.json", **changes: object) -> Path:
    """Change keys of a folder's JSON file; None takes a key away."""
    path = folder / file
    content = json.loads(path.read_text()) | changes
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(kept))
    return folder


@pytest.fixture
def copy(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "odd")


def _with_zero_head(folder: Path) -> Path:
    weights = load_file(folder / "model.safetensors")
    zeros = {name: torch.zeros_like(w) for name, w in weights.items() if "classifier" in name}
    save_file(weights | zeros, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.mark.parametrize(
    "spoil",
    [
        _with_zero_head,
        lambda folder: _rewrite(folder, is_decoder=True),
        lambda folder: _rewrite(folder, layer_norm_eps=1e9),
    ],
    ids=["zero head", "decoder", "layer norm"],
)
def test_a_model_whose_answers_are_all_equal_is_named(copy, spoil):
    with pytest.warns(UserWarning, match="odd gives all 192 prompts of challenges the same"):
        pm.ask("challenges", [spoil(copy)], **ASKED)


def test_a_model_that_reads_what_it_is_asked_is_not_named(tiny_model, recwarn):
    pm.ask("challenges", [tiny_model], **ASKED)
    assert not [one for one in recwarn if "the same answer" in str(one.message)]


def _with_a_token_beyond(folder: Path) -> Path:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    words = content["model"]["vocab"]
    content["model"]["vocab"] = words | {"i": 5000, "feel": 5001}
    path.write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: _rewrite(folder, num_hidden_layers=0), "num_hidden_layers is 0"),
        (lambda folder: _rewrite(folder, num_hidden_layers=-1), "num_hidden_layers is -1"),
        (lambda folder: _rewrite(folder, model_type=["bert"]), "does not know"),
        (lambda folder: _rewrite(folder, hidden_act="nix"), "settings"),
        (lambda folder: _rewrite(folder, id2label=["a", "b", "c"]), "settings"),
        (lambda folder: _rewrite(folder, "tokenizer_config.json", model_max_length="x"), "'x'"),
        (_with_a_token_beyond, "vocabulary"),
    ],
)
def test_a_damaged_setting_is_told_with_its_name(copy, spoil, said):
    with pytest.raises(RespondentError, match=said) as error:
        pm.ask("gad7", [spoil(copy)], **ASKED)

    assert error.value.kind in ("incomplete", "architecture")
    assert "Error" not in str(error.value)


def test_a_config_that_asks_for_tuples_gives_the_same_answers(tiny_model, tmp_path):
    plain = save_tiny_masked_lm(tmp_path / "plain", tiny_model)
    tuples = _rewrite(shutil.copytree(plain, tmp_path / "tuples"), return_dict=False)
    prompt = [("I feel calm.", "It rarely happens to me.", "rarely")]

    answers = [pm.load_respondent(one, "mlm").answer(prompt) for one in (plain, tuples)]

    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    ("kind", "ways"),
    [("masked", ["--mode mlm", "train-nli"]), ("decoder", ["--mode options", "train-nli"]),
     ("mamba", ["--mode options"])],
)  # fmt: skip
def test_a_base_model_in_mode_nli_is_told_the_modes_it_has(kind, ways, tiny_model, tmp_path):
    folder = tmp_path / "base"
    if kind == "masked":
        save_tiny_masked_lm(folder, tiny_model)
    elif kind == "decoder":
        save_tiny_decoder(folder)
    else:
        _save_state_model(folder, "mamba")

    with pytest.raises(RespondentError) as error:
        pm.load_respondent(folder)

    assert error.value.kind == "architecture"
    assert all(way in str(error.value) for way in ways)


def test_an_adapter_as_peft_saves_it_has_as_many_outputs_as_its_head(tiny_model, tmp_path):
    base = tmp_path / "base"
    AutoModel.from_pretrained(tiny_model).save_pretrained(base)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(base)
    _rewrite(base, id2label=None, label2id=None)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", target_modules=["query"]))
    adapted.save_pretrained(tmp_path / "adapter")

    loaded, tokenizer = load_model(tmp_path / "adapter", "classifier")

    inputs = tokenizer("I feel calm.", "It happens.", return_tensors="pt")
    with torch.no_grad():
        expected, found = adapted.eval()(**inputs).logits, loaded(**inputs).logits
    assert loaded.config.num_labels == 3
    torch.testing.assert_close(found, expected)


def test_a_funnel_trained_by_lora_is_loaded_by_what_trained_it(save_tiny_model, tmp_path):
    base = save_tiny_model(tmp_path / "funnel", "funnel")
    pairs = pd.DataFrame({"premise": ["I am calm.", "I am late.", "I rest."] * 8,
                          "hypothesis": ["I rest.", "I am calm.", "I am late."] * 8,
                          "label": ["entailment", "neutral", "contradiction"] * 8})  # fmt: skip
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    how = {"tuning": "lora", "epochs": 1, "progress": False}

    train_nli(base, [str(tmp_path / "pairs.csv")], tmp_path / "head", **how)
    answers = pm.load_respondent(tmp_path / "head").answer([("I am calm.", "I am late.")])

    assert np.isfinite(answers).all()
    assert load_config(tmp_path / "head").num_labels == 3
    with pytest.raises(ParameterError, match="leave layers out"):
        train_nli(base, [str(tmp_path / "pairs.csv")], tmp_path / "cut", layers=1, **how)


def test_a_decoder_without_a_padding_token_answers_as_plain_transformers(save_tiny_model, tmp_path):
    folder = save_tiny_model(tmp_path / "gpt2", "gpt2")
    _rewrite(folder, pad_token_id=None)
    _rewrite(folder, "tokenizer_config.json", pad_token=None)
    pairs = [("I feel calm.", "It rarely happens."), ("I am late.", "It was."), ("Rain.", "Sun.")]
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    answers = pm.load_respondent(folder).answer(pairs)

    assert tokenizer.pad_token is None
    with torch.no_grad():
        alone = [model(**tokenizer(*pair, return_tensors="pt")).logits for pair in pairs]
    np.testing.assert_allclose(answers, torch.cat(alone).softmax(-1), atol=1e-6)


def test_an_encoder_decoder_whose_texts_have_no_end_is_told(save_tiny_model, tmp_path):
    folder = save_tiny_model(tmp_path / "t5", "t5")
    _rewrite(folder, "tokenizer.json", post_processor=None)
    _rewrite(folder, "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")

    with pytest.raises(RespondentError, match="adds this token") as error:
        pm.load_respondent(folder)

    assert error.value.kind == "incomplete"


def test_a_sentence_encoder_without_pooling_is_told(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "encoder")
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (folder / "modules.json").write_text(json.dumps([module]))

    with pytest.raises(RespondentError, match="pooling") as error:
        load_sentence_encoder(folder)

    assert error.value.kind == "incomplete"


# Models that keep a state, and models that also see


def _spread(model: torch.nn.Module) -> torch.nn.Module:
    """Widen fresh weights, which are so small that all tokens would be alike."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(10 if weight.ndim > 1 else 1)
    return model


def _save_state_model(folder: Path, kind: str) -> Path:
    save_tiny_decoder(folder)
    state = {"mamba": {"state_size": 4}, "rwkv": {"attention_hidden_size": 32}}[kind]
    tokens = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    config = AutoConfig.for_model(
        kind, vocab_size=257, hidden_size=32, num_hidden_layers=2, **tokens, **state
    )
    torch.manual_seed(0)
    _spread(AutoModelForCausalLM.from_config(config)).save_pretrained(folder)
    return folder


def _save_seeing_model(folder: Path) -> Path:
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig

    save_tiny_decoder(folder)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}
    eyes = CLIPVisionConfig(image_size=8, patch_size=4, num_hidden_layers=1, **sizes)
    text = LlamaConfig(vocab_size=257, num_hidden_layers=2, max_position_embeddings=512, **sizes)
    config = LlavaConfig(vision_config=eyes, text_config=text, image_token_index=1)
    torch.manual_seed(0)
    _spread(AutoModelForImageTextToText.from_config(config)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["mamba", "rwkv", "llava"])
def test_options_are_scored_as_by_one_pass_of_the_model_itself(kind, tmp_path):
    folder = tmp_path / kind
    folder = _save_seeing_model(folder) if kind == "llava" else _save_state_model(folder, kind)
    model, _ = load_model(folder, "causal")
    scorer = _TorchScorer(folder, Identity(kind))
    asked = [(("You are good.", f"{'I am calm. ' * times}Yes or no?"), ["1", "2 yes"])
             for times in (1, 2, 5)]  # fmt: skip

    found = scorer(asked, mean=False)

    expected = []
    for prompt, options in asked:
        read, space = scorer._context(prompt)
        added = [scorer._tokens(f"{space}{option}") for option in options]
        expected += [log_probabilities(model, read, ids).sum() for ids in added]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("kind", ["mamba", "rwkv", "llava"])
def test_a_reply_does_not_depend_on_the_other_conversations(kind, tmp_path):
    folder = tmp_path / kind
    folder = _save_seeing_model(folder) if kind == "llava" else _save_state_model(folder, kind)
    loaded = load_model(folder, "causal")
    talks = [[{"role": "user", "content": text}] for text in ("Hi", "How are you today?", "Late.")]

    together = replies(loaded, talks, max_tokens=8)

    alone = [replies(loaded, [talk], max_tokens=8)[0] for talk in talks]
    assert together == alone
