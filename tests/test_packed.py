"""Packed models and adapters: where they come from, that they answer, and what is said of them."""

import json
import shutil

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import psychometrics as pm
from psychometrics.exceptions import RespondentError
from psychometrics.models import embedded, fetching, sources, unpacking
from psychometrics.models.embedded import embedded_head
from psychometrics.models.loading import load_model
from psychometrics.models.sources import find
from psychometrics.modes import load_respondent
from tests.tiny import save_tiny_decoder

WORDING = "Premise: {premise} Hypothesis: {hypothesis} Answer:"
WORDS = ["y", "m", "n"]
PAIRS = [("I feel nervous.", "It often happens to me."), ("My life is full.", "I never feel calm.")]


@pytest.fixture
def decoder(tmp_path):
    return save_tiny_decoder(tmp_path / "tiny-llama")


@pytest.fixture
def adapter(tmp_path, decoder):
    """A LoRA adapter of it with random weights, and the recipe of three answers."""
    model, _ = load_model(decoder, "causal")
    model.name_or_path = str(decoder)
    torch.manual_seed(1)
    settings = LoraConfig(
        r=2, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False
    )
    folder = tmp_path / "adapter"
    get_peft_model(model, settings).save_pretrained(folder)
    recipe = {"wording": WORDING, "answers": WORDS, "dtype": "float32"}
    (folder / "recipe.json").write_text(json.dumps(recipe))
    return folder


def test_an_adapter_answers_by_three_words_as_its_model_says_them_after_the_pair(adapter, decoder):
    found = load_respondent(adapter).answer(PAIRS)
    model = AutoModelForCausalLM.from_pretrained(decoder)
    model = PeftModel.from_pretrained(model, str(adapter)).eval()
    tokenizer = AutoTokenizer.from_pretrained(decoder)
    words = [tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in WORDS]
    for (premise, hypothesis), row in zip(PAIRS, found, strict=True):
        text = WORDING.format(premise=premise, hypothesis=hypothesis)
        with torch.inference_mode():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0, -1, words]
        np.testing.assert_allclose(row, logits.softmax(-1), atol=1e-5)


def test_an_adapter_of_a_classifier_is_loaded_with_its_head_and_label_names(tmp_path, tiny_model):
    model, tokenizer = load_model(tiny_model, "classifier")
    model.name_or_path = str(tiny_model)
    settings = LoraConfig(
        r=2, target_modules=["query"], task_type="SEQ_CLS", init_lora_weights=False
    )
    model, folder = get_peft_model(model, settings).eval(), tmp_path / "adapter"
    model.save_pretrained(folder)
    expected = model(**tokenizer(*PAIRS[0], return_tensors="pt")).logits.softmax(-1)
    (folder / "config.json").write_text(
        '{"id2label": {"0": "contradiction", "1": "neutral", "2": "entailment"}}'
    )
    found = load_respondent(folder, dtype="float32").answer(PAIRS[:1])
    np.testing.assert_allclose(found[0], expected.detach().numpy()[0][[2, 1, 0]], atol=1e-5)


@pytest.mark.parametrize("base", ["gone/nowhere here", None])
def test_an_adapter_without_its_base_is_refused(adapter, base):
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": base}))
    with pytest.raises(RespondentError):
        find(adapter)
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(RespondentError) as error:
        find(adapter)
    assert error.value.kind == "no safetensors", "a form that can carry code"


def test_a_download_that_broke_off_is_told_from_a_missing_one(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(fetching, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RespondentError, match="fetch-model smollm2` once"):
        find("smollm2")
    file = tmp_path / "external" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF")
    with pytest.raises(RespondentError, match="damaged"):
        find("smollm2")


def test_the_conversational_model_goes_on_with_a_sentence_as_one_would():
    model, tokenizer = load_model("smollm2", "causal")
    assert tokenizer.chat_template
    inputs = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        token = model(**inputs).logits[0, -1].argmax()
    assert tokenizer.decode(token) == " Paris"


def test_an_unpacked_model_that_was_changed_is_noticed(decoder, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "cache_dir", lambda: tmp_path)
    folder = unpacking._unpacked_folder(fetching.registry()["smollm2"]["sha256"])
    shutil.copytree(decoder, folder)
    (folder / unpacking._DIGESTS_FILE).write_text(json.dumps(unpacking._file_digests(folder)))
    assert find("smollm2").fetch() == folder
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(RespondentError, match="delete this folder") as error:
        find("smollm2")
    assert error.value.kind == "incomplete"


def test_an_unpacked_model_is_not_downloaded_again(decoder, tmp_path, monkeypatch):
    for module in (unpacking, fetching):
        monkeypatch.setattr(module, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(fetching, "_download", lambda *_: pytest.fail("it was downloaded"))
    folder = unpacking._unpacked_folder(fetching.registry()["smollm2"]["sha256"])
    shutil.copytree(decoder, folder)
    (folder / unpacking._DIGESTS_FILE).write_text(json.dumps(unpacking._file_digests(folder)))
    assert sources.fetch_indexed("smollm2") == folder


def test_an_adapter_or_a_head_that_lacks_weights_is_refused(adapter, tmp_path, monkeypatch):
    path = adapter / "adapter_model.safetensors"
    weights = load_file(path)
    save_file(dict(list(weights.items())[::2]), path)
    heads = [shutil.copytree(embedded_head("mlm")[0], tmp_path / name) for name in "ab"]
    for folder, file in zip(heads, ("head", "adapter_model"), strict=True):
        weights = load_file(folder / f"{file}.safetensors")
        save_file(dict(list(weights.items())[1:]), folder / f"{file}.safetensors")
    with pytest.raises(RespondentError, match=r"lacks|missing") as error:
        load_respondent(adapter)
    assert error.value.kind == "incomplete"
    for folder in heads:
        monkeypatch.setattr(embedded, "embedded_head", lambda _, folder=folder: (folder, {}))
        with pytest.raises(RespondentError, match=r"lacks|missing") as error:
            embedded.load_masked_lm()
        assert error.value.kind == "incomplete"


def test_a_model_that_reads_both_sides_is_not_asked_for_the_next_word(save_tiny_model, tmp_path):
    base = save_tiny_model(tmp_path / "masked", "bert")
    written = json.loads((base / "config.json").read_text())
    written["architectures"] = ["BertForMaskedLM"]
    (base / "config.json").write_text(json.dumps(written))
    for mode, questionnaire in (("causal", "challenges"), ("options", "ipip20")):
        with pytest.raises(RespondentError, match="name a decoder"):
            pm.ask(questionnaire, [base], tmp_path / "store", mode, progress=False)
