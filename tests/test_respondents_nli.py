"""NLI respondents against plain transformers, on tiny real models of eight architectures."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tokenizers
import torch
from huggingface_hub import constants
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)
from transformers.activations import ACT2FN

import psychometrics as pm
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.models import devices, fast, loading, sources
from psychometrics.models.embedded import acceptability, load_embedded
from psychometrics.models.fast import fast_forward as forward_of
from psychometrics.modes import identify, load_respondent, nli, nli_labels
from psychometrics.modes.mode import Identity
from psychometrics.training import train_nli
from psychometrics_book.studies.sentence_encoders import load_sentence_encoder
from tests.conftest import ARCHITECTURES, SENTENCES
from tests.hub import commit, serving

LABELS = ("entailment", "neutral", "contradiction")
PLAIN = {"device": "cpu", "dtype": "float32"}
PAIRS = [
    ("I feel nervous.", "It always happens to me."), (SENTENCES[0], "It happens."),
    ("I feel calm.", SENTENCES[1]), ("I feel nervous.", "It always happens to me."),
    ("My life is full of meaning.", "It seldom does."),
    (SENTENCES[4], "It very rarely happens to me."), ("Calm!", "Never."),
    ("I feel at ease, 7 days of 7.", "Frequently."),
]  # fmt: skip


def plainly(folder: Path, pairs, order=LABELS) -> np.ndarray:
    """The same by the plainest use of transformers: one pair at a time, no batches, no padding."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    positions = [model.config.label2id[label] for label in order]
    rows = []
    with torch.no_grad():
        for premise, hypothesis in pairs:
            logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits[0]
            rows.append(torch.softmax(logits, dim=0)[positions].numpy())
    return np.array(rows)


@pytest.fixture(scope="module")
def respondent(tiny_model):
    return load_respondent(tiny_model, **PLAIN)


@pytest.fixture
def copy(tiny_model, tmp_path):
    """A folder of a whole model, to be spoilt."""
    return Path(shutil.copytree(tiny_model, tmp_path / "copy"))


def edit(path: Path, **changes) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        content.pop(key, None)
        if value is not None:
            content[key] = value
    path.write_text(json.dumps(content), encoding="utf-8")


# Answers


@pytest.mark.parametrize(
    ("architecture", "labels"),
    list(zip(ARCHITECTURES, itertools.cycle(itertools.permutations(LABELS)), strict=False)),
)
def test_answers_equal_plain_transformers(
    architecture, labels, save_tiny_model, tmp_path, monkeypatch
):
    """Whatever the architecture, the order of the labels and the number of tokens in a batch."""
    folder = save_tiny_model(tmp_path / architecture, architecture, labels)
    respondent, expected = load_respondent(folder, **PLAIN), plainly(folder, PAIRS)
    shapes = record_batches(respondent, monkeypatch)
    for respondent.token_budget in (100_000, 1, 60, 150):
        shapes.clear()
        answers = respondent.answer(PAIRS)
        assert (answers.dtype, answers.shape) == (np.float32, (len(PAIRS), 3))
        assert np.abs(answers - expected).max() < 1e-5
        assert all(n == 1 or n * width <= respondent.token_budget for n, width in shapes)
        assert shapes == sorted(shapes, key=lambda shape: -shape[1])
    # The test could not tell pairs or outputs apart if they were all much the same.
    assert np.ptp(expected, axis=0).max() > 0.05
    assert len(np.unique(expected.round(3), axis=0)) == len(set(PAIRS))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_text_split_once_gives_the_tokenizers_own_tokens(architecture, save_tiny_model, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(save_tiny_model(tmp_path / "it", architecture))
    tokenizer(PAIRS[0][0], truncation=True, max_length=3, padding="max_length")  # not to be kept
    texts = [*itertools.chain.from_iterable(PAIRS), "  two  spaces ", "Ünïcode\u200b 🙂", "\n"]
    pairs = list(itertools.product(texts, repeat=2))
    own = tokenizer(*map(list, zip(*pairs, strict=True)))
    joined = nli._tokenize_once(tokenizer, pairs)
    assert {name: [row[name] for row in joined] for name in own} == dict(own)


@pytest.mark.parametrize("kinds", [True, False])
def test_texts_are_flattened_to_the_tokens_types_and_positions_of_each(kinds):
    features = [{"input_ids": ids} for ids in ([7], [3, 4], [5, 6], [1, 2, 9])]
    for text in features if kinds else []:
        text["token_type_ids"] = [0] + [1] * (len(text["input_ids"]) - 1)

    (words, types, positions), groups, first = fast._flat_texts(features, 2)

    assert words.tolist() == [7, 3, 4, 5, 6, 1, 2, 9]
    assert types.tolist() == ([0, 0, 1, 0, 1, 0, 1, 1] if kinds else [0] * 8)
    assert positions.tolist() == [2, 2, 3, 2, 3, 2, 3, 4]
    assert groups == [(0, 1, 1), (1, 2, 2), (5, 1, 3)]
    assert first.tolist() == [0, 1, 3, 5]
    assert {words.dtype, types.dtype, positions.dtype, first.dtype} == {torch.int64}


def test_a_tokenizer_that_puts_the_second_text_first_is_asked_for_each_pair(tiny_model):
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    backend = tokenizer.backend_tokenizer
    pairs = [("I feel calm.", "It happens."), ("It happens.", "I feel nervous.")]
    assert nli._tokenize_once(tokenizer, pairs) is not None
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $B [SEP] $A",
        special_tokens=[(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )  # fmt: skip
    assert nli._tokenize_once(tokenizer, pairs) is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta", "camembert"])
def test_the_forward_pass_without_padding_gives_the_models_logits(architecture, activation, dtype):
    config = AutoConfig.for_model(
        architecture, vocab_size=90, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=64, num_labels=3, max_position_embeddings=60, hidden_act=activation,
        initializer_range=0.5, type_vocab_size=2,
    )  # fmt: skip
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_config(config).to(getattr(torch, dtype)).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # fresh ones are 0, and would not be missed
            torch.nn.init.normal_(parameter)
    features = [
        {
            "input_ids": torch.randint(5, 90, (n,)).tolist(),
            "token_type_ids": [0] * 4 + [1] * (n - 4),
        }
        for n in (7, 19, 7, 12, 50, 7, 19)
    ]
    with torch.no_grad():
        own = torch.cat(
            [model(**{k: torch.tensor([v]) for k, v in one.items()}).logits for one in features]
        ).float()
    # All would be much the same if the weights stayed as small as fresh ones are.
    assert np.ptp(own.numpy(), axis=0).max() > 0.2
    away = (forward_of(model)(features) - own).abs().max()
    assert away < (1e-5 if dtype == "float32" else 0.1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_that_change_or_move_and_hooks_count_from_the_next_answer_on(tiny_model, dtype):
    respondent = load_respondent(tiny_model, device="cpu", dtype=dtype)
    model, layer = respondent.model, respondent.model.bert.encoder.layer[0].output
    answers = [respondent.answer(PAIRS)]
    with torch.no_grad():
        layer.dense.weight.mul_(-3)
    answers.append(respondent.answer(PAIRS))
    layer.register_forward_hook(lambda module, given, out: -3 * out)
    answers.append(respondent.answer(PAIRS))
    model.to(torch.float64)
    tokenizer = respondent.tokenizer
    with torch.no_grad():
        inputs = [tokenizer(*pair, return_tensors="pt") for pair in PAIRS]
        own = np.vstack([model(**one).logits.softmax(-1).numpy() for one in inputs])
    assert np.abs(respondent.answer(PAIRS) - own).max() < 1e-5
    assert np.abs(answers[2] - own).max() < 0.1
    assert all(np.abs(a - b).max() > 0.05 for a, b in itertools.pairwise(answers))


def test_what_is_no_plain_bert_keeps_its_own_forward_pass(save_tiny_model, tmp_path):
    for architecture in ("deberta-v2", "albert", "electra"):
        folder = save_tiny_model(tmp_path / architecture, architecture)
        assert forward_of(AutoModelForSequenceClassification.from_pretrained(folder).eval()) is None
    folder = save_tiny_model(tmp_path / "bert")
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert forward_of(model) is not None
    model.bert.encoder.layer[0].output.dense.register_forward_hook(lambda *_: None)
    assert forward_of(model) is None


@pytest.mark.parametrize(
    ("architecture", "dtype", "bias"),
    [("llama", "float32", False), ("llama", "float32", True), ("llama", "bfloat16", False),
     ("mistral", "float32", False), ("qwen2", "float32", False), ("qwen3", "float32", False),
     ("qwen3", "bfloat16", False)],
)  # fmt: skip
def test_a_decoder_reads_once_what_texts_share_and_answers_alike(
    architecture, dtype, bias, tiny_talker
):
    tokenizer = AutoTokenizer.from_pretrained(tiny_talker)
    more = {"attention_bias": bias, "mlp_bias": bias} if bias else {}
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, initializer_range=0.5,
        **more,
    )  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype)).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:  # fresh ones are 0 or 1, and not missed
            torch.nn.init.normal_(parameter)
    wording = "Premise: {premise} Hypothesis: {hypothesis} Answer:"
    identity = Identity("tiny", device="cpu", dtype=dtype)
    recipe = {"wording": wording, "answers": ["T", "F", "N"]}  # a token each
    respondent = nli._WordsRespondent(model, tokenizer, identity, recipe)
    assert respondent._fast_forward is not None
    words = [tokenizer(word)["input_ids"][0] for word in "TFN"]

    def expected() -> np.ndarray:
        rows = []
        for premise, hypothesis in PAIRS:
            text = tokenizer(wording.format(premise=premise, hypothesis=hypothesis))["input_ids"]
            with torch.no_grad():
                said = model(torch.tensor([text])).logits[0, -1, words].float()
            rows.append(said.softmax(-1).numpy())
        return np.array(rows)

    before, bound = expected(), 1e-5 if dtype == "float32" else 0.1
    assert np.ptp(before, axis=0).max() > 0.2
    for respondent.token_budget in (1, 100, 100_000):
        assert np.abs(respondent.answer(PAIRS) - before).max() < bound
    with torch.no_grad():  # what was laid out of weights that change is not kept
        model.model.layers[0].mlp.down_proj.weight.mul_(-3)
    assert np.abs(expected() - before).max() > 0.2
    assert np.abs(respondent.answer(PAIRS) - expected()).max() < bound


def test_weights_that_were_loaded_in_inference_mode_are_read_by_the_fast_pass():
    config = AutoConfig.for_model("llama", vocab_size=40, hidden_size=32, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=64)  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval()
    expected = forward_of(model)([[5, 7]])
    with torch.inference_mode():
        loaded = {name: values.clone() for name, values in model.state_dict().items()}
        model.load_state_dict(loaded, assign=True)

    assert torch.equal(forward_of(model)([[5, 7]]), expected)


def test_a_changed_decoder_keeps_its_own_forward_pass():
    config = AutoConfig.for_model("llama", vocab_size=40, hidden_size=32, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=64)  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval()
    assert forward_of(model) is not None
    assert forward_of(model)([[5], [5, 7], [5, 7, 9]]).shape == (3, 32)
    model.model.layers[0].mlp.register_forward_hook(lambda *_: None)
    assert forward_of(model) is None


def test_texts_longer_than_a_sliding_window_are_read_by_the_models_own_pass():
    config = AutoConfig.for_model("mistral", vocab_size=40, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
        sliding_window=4)  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval()
    states = forward_of(model)
    text = [5, 7, 9, 11]
    with torch.no_grad():
        expected = model.model(torch.tensor([text])).last_hidden_state[:, -1]

    assert torch.allclose(states([text]), expected, atol=1e-5)
    assert states([text, [*text, 13]]) is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.text(min_size=1, max_size=30).filter(str.strip)] * 2), min_size=1, max_size=5
    )
)
def test_any_text_gets_probabilities_that_sum_to_one_or_is_unknown(respondent, pairs):
    pairs.append((SENTENCES[0], SENTENCES[1]))
    try:
        answers = respondent.answer(pairs)
    except RespondentError as error:
        assume("tokens of the prompts" not in str(error))
        raise
    assert answers.shape == (len(pairs), 3)
    assert (answers >= 0).all()
    assert np.abs(answers.sum(axis=1) - 1).max() < 1e-5


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
def test_pairs_that_are_too_long_are_cut_with_one_warning(architecture, save_tiny_model, tmp_path):
    folder = save_tiny_model(tmp_path / architecture, architecture)
    # No limit of its own: the position table (130; two of RoBERTa's are not for tokens) decides.
    edit(folder / "tokenizer_config.json", model_max_length=None)
    limit = {"bert": 130, "roberta": 128, "electra": 130}[architecture]
    respondent = load_respondent(folder, **PLAIN)
    long = ("calm " * 300, "It happens.")
    with pytest.warns(UserWarning, match="1 of 2 pairs") as all_:
        answers = respondent.answer([long, PAIRS[0]])
    assert len(all_) == 1
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(*long, truncation=True, max_length=limit, return_tensors="pt")
    assert inputs["input_ids"].shape == (1, limit)
    with torch.no_grad():
        expected = model(**inputs).logits.softmax(-1).numpy()
    assert np.abs(answers[:1] - expected).max() < 1e-5
    rest = len(tokenizer("", long[1])["input_ids"])
    just_fits = ("." * (limit - rest), long[1])
    assert len(tokenizer(*just_fits)["input_ids"]) == limit
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (respondent.answer([PAIRS[0], just_fits])[0] - answers[1] < 1e-6).all()


# Memory


def record_batches(respondent, monkeypatch, most_rows=10**9, error=None) -> list[tuple[int, int]]:
    """Let the real forward pass run, unless there are more rows than fit."""
    shapes, forward = [], respondent._logits

    def limited(features):
        if len(features) > most_rows:
            raise error
        shapes.append((len(features), max(len(one["input_ids"]) for one in features)))
        return forward(features)

    monkeypatch.setattr(respondent, "_logits", limited)
    return shapes


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
        MemoryError(),
    ],
)
def test_out_of_memory_halves_the_batch_and_loses_no_answer(tiny_model, monkeypatch, error):
    respondent = load_respondent(tiny_model, **PLAIN)
    expected = respondent.answer(PAIRS)
    shapes = record_batches(respondent, monkeypatch, most_rows=3, error=error)
    assert np.abs(respondent.answer(PAIRS) - expected).max() < 1e-6
    assert sum(rows for rows, _ in shapes) == len(set(PAIRS))
    assert shapes[0][0] == 3  # 7 unique pairs, halved once


@pytest.mark.parametrize(
    ("error", "seen"), [(MemoryError(), RespondentError), (RuntimeError("shapes"), RuntimeError)]
)
def test_a_pair_that_does_not_fit_is_told_from_other_errors(tiny_model, monkeypatch, error, seen):
    respondent = load_respondent(tiny_model, **PLAIN)
    record_batches(respondent, monkeypatch, most_rows=0, error=error)
    with pytest.raises(seen) as told:
        respondent.answer(PAIRS)
    assert getattr(told.value, "kind", "memory") == "memory"


# Which output means what


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["entailment", "neutral", "contradiction"], [0, 1, 2]),
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [2, 1, 0]),
        (["Contradictory", "Entail", " neutral "], [1, 2, 0]),
        (["LABEL_0", "LABEL_1", "LABEL_2"], None),
        (["0", "1", "2"], None),
        (["entailment", "LABEL_1", "contradiction"], None),
        ([None, "", "class 2"], None),
        (["N", "c", "e"], [2, 0, 1]),
        (["label_neutral", "class-entailment", "label_contradiction"], [1, 0, 2]),
        (["0 - contradiction", "1 - entailment", "2 - neutral"], [1, 2, 0]),
    ],
)
def test_label_names_are_read_whatever_their_spelling(names, order):
    assert nli_labels.labels_from_names(names) == order


def test_names_of_another_kind_of_classifier_are_refused():
    for other in ("not_entailment", "entailment"):
        with pytest.raises(RespondentError) as error:
            nli_labels.labels_from_names(["entailment", other, "neutral"])
        assert error.value.kind == "labels"


@pytest.mark.parametrize(
    "settings",
    [{"id2label": ["entailment", "neutral"]}, {"id2label": {"output 0": "entailment"}},
     {"label2id": {"entailment": None}}, {"label2id": ["entailment"]}, {"id2label": "entailment"},
     {"id2label": {"0": "entailment"}, "label2id": {"neutral": 0}}],
)  # fmt: skip
def test_settings_that_do_not_map_outputs_to_names_are_refused(settings):
    with pytest.raises(RespondentError) as error:
        nli_labels.output_names(settings)
    assert error.value.kind == "labels"


def test_the_two_settings_of_names_may_differ_in_their_capitals():
    settings = {"id2label": {"0": "NEUTRAL", "1": "Other"}, "label2id": {"other": 1, "neutral": 0}}
    assert {i: name.lower() for i, name in nli_labels.output_names(settings).items()} == {
        0: "neutral", 1: "other"}  # fmt: skip
    assert nli_labels.output_names({"label2id": {"other": 1}, "id2label": None}) == {1: "other"}


def test_neutral_and_contradiction_that_cannot_be_told_apart_are_ambiguous():
    labels = np.repeat(LABELS, 12)
    answers = np.eye(3)[[0] * 12 + [1, 2] * 12]  # two thirds right, either way round
    with pytest.raises(RespondentError):
        nli_labels._infer_labels(answers, labels)


def test_outputs_without_names_are_found_from_the_labelled_pairs(tmp_path):
    model, tokenizer = load_embedded("minilm-both-l6-s1")
    tokenizer.save_pretrained(tmp_path)
    with torch.no_grad():
        for weight in (model.classifier.weight, model.classifier.bias):
            weight.copy_(weight[[2, 0, 1]].clone())
    model.config.id2label = {number: f"LABEL_{number}" for number in range(3)}
    model.config.label2id = {f"LABEL_{number}": number for number in range(3)}
    model.save_pretrained(tmp_path)
    expected = plainly(tmp_path, PAIRS, order=("LABEL_1", "LABEL_2", "LABEL_0"))
    assert np.abs(load_respondent(tmp_path, **PLAIN).answer(PAIRS) - expected).max() < 1e-5


REMOTE = {"AutoConfig": "code.Config", "AutoModelForSequenceClassification": "code.Model"}
LABEL2ID = {"Neutral": 1, "Contradiction": 2, "Entailment": 0}


@pytest.mark.parametrize(
    "changes", [{"id2label": None, "label2id": LABEL2ID}, {"auto_map": REMOTE}]
)
def test_a_config_with_label2id_alone_is_read_and_remote_code_that_is_not_needed_not_run(
    copy, changes
):
    expected = plainly(copy, PAIRS)
    (copy / "code.py").write_text("raise SystemExit('remote code was run')\n")
    edit(copy / "config.json", **changes)
    answers = load_respondent(copy, **PLAIN).answer(PAIRS)
    assert np.abs(answers - expected).max() < 1e-5


# Who answers


def test_identity_tells_what_determines_an_answer_and_changes_with_it(copy):
    before = identify(copy, dtype="float32")
    assert before["respondent_id"] == before["model"] == "copy"
    assert (before["source"], before["mode"], before["dtype"]) == ("local", "nli", "float32")
    loaded = load_respondent(copy, **PLAIN)
    assert loaded.identity == replace(before, device="cpu")
    assert identify(copy, dtype="bfloat16")["fingerprint"] != before["fingerprint"]
    (copy / "README.md").write_text("nothing to do with answers")
    assert identify(str(copy), dtype="float32") == before
    edit(copy / "tokenizer_config.json", do_lower_case=False)
    other_tokenizer = identify(copy, dtype="float32")
    assert other_tokenizer["fingerprint"] != before["fingerprint"]
    assert other_tokenizer["revision"] == before["revision"]
    seen = {other_tokenizer["fingerprint"]}
    for file in ("adapter_model.safetensors", "chat_template.jinja", "generation_config.json"):
        (copy / file).write_text("{}")
        seen.add(identify(copy, dtype="float32")["fingerprint"])
    assert len(seen) == 4, "every file that loading reads"
    headless(copy)
    assert identify(copy, dtype="float32")["revision"] != before["revision"]


def test_sharded_weights_are_loaded_and_a_lost_shard_is_named(tiny_model, tmp_path):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "sharded"))
    (folder / "model.safetensors").unlink()
    model = AutoModelForSequenceClassification.from_pretrained(tiny_model)
    model.save_pretrained(folder, max_shard_size="20KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    answers = load_respondent(folder, **PLAIN).answer(PAIRS)
    assert np.abs(answers - plainly(tiny_model, PAIRS)).max() < 1e-5
    shards[1].unlink()
    with pytest.raises(RespondentError, match=f"lacks the weight file {shards[1].name}"):
        identify(folder)


def test_an_embedded_member_is_its_head_on_the_base_encoder(tmp_path, monkeypatch):
    from safetensors.torch import save_file

    from psychometrics.training.heads import nli_classifier

    torch.manual_seed(3)
    model = nli_classifier(sources.base_path(), layers=3)[0].eval()
    head = {k: v for k, v in model.state_dict().items() if "pooler" in k or "classifier" in k}
    folder = tmp_path / "population" / "some-member"
    folder.mkdir(parents=True)
    save_file({k: v.half() for k, v in head.items()}, folder / "head.safetensors")
    (folder / "recipe.json").write_text(json.dumps({"layers": 3, "tuning": "frozen"}))
    monkeypatch.setattr(sources, "data_dir", lambda: tmp_path)

    who = identify("some-member", dtype="float32")
    assert (who["source"], who["respondent_id"]) == ("embedded", "some-member")
    respondent = load_respondent("some-member", **PLAIN)
    assert respondent.identity == replace(who, device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(sources.base_path())
    with torch.no_grad():
        model.load_state_dict({k: v.half().float() for k, v in head.items()}, strict=False)
        inputs = [tokenizer(*pair, return_tensors="pt") for pair in PAIRS]
        expected = np.vstack([model(**one).logits.softmax(-1).numpy() for one in inputs])
    assert np.abs(respondent.answer(PAIRS) - expected).max() < 1e-5

    (folder / "head.safetensors").unlink()
    with pytest.raises(RespondentError, match="some-member"):
        identify("some-member")


# The hub: a server on this machine


COMMIT = commit("acme/tiny")


@pytest.fixture
def hub(tiny_model, tmp_path):
    """The folder of acme/tiny, the one model of a hub on this machine."""
    with serving(tmp_path / "served") as hub:
        hub.add("acme/tiny", tiny_model)
        yield hub.folder / "acme" / "tiny"


def test_a_hub_model_is_identified_undownloaded_and_answers_offline(hub, tmp_path, monkeypatch):
    cache = tmp_path / "hub"
    who = identify("acme/tiny", dtype="float32")
    assert (who["source"], who["model"], who["revision"]) == ("hub", "acme/tiny", COMMIT)
    assert not list(cache.rglob("*.safetensors"))
    (hub / "pytorch_model.bin").write_bytes(b"never to be downloaded")
    main = cache / "models--acme--tiny" / "refs" / "main"
    for offline in (False, True):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        respondent = load_respondent("acme/tiny", **PLAIN)
        assert respondent.identity == replace(who, device="cpu")
        assert np.abs(respondent.answer(PAIRS) - plainly(hub, PAIRS)).max() < 1e-5
        main.parent.mkdir(exist_ok=True)
        main.write_text(COMMIT)  # as where another program has asked for it by its name alone
    assert not list(cache.rglob("*.bin"))
    next(cache.rglob("*.safetensors")).unlink()
    assert identify("acme/tiny", dtype="float32") == who
    with pytest.raises(RespondentError, match="HF_HUB_OFFLINE"):
        load_respondent("acme/tiny")


def test_an_adapter_on_the_hub_answers_with_its_base_on_this_machine(hub, tmp_path):
    from peft import LoraConfig, get_peft_model

    base = shutil.copytree(hub, tmp_path / "base")
    model = AutoModelForSequenceClassification.from_pretrained(base)
    settings = LoraConfig(
        r=2, target_modules=["query"], task_type="SEQ_CLS", init_lora_weights=False
    )
    for file in hub.iterdir():
        file.unlink()
    get_peft_model(model, settings).save_pretrained(hub)
    local = shutil.copytree(hub, tmp_path / "adapter")
    found = load_respondent("acme/tiny", **PLAIN)
    assert (found.identity["source"], found.identity["model"]) == ("hub", "acme/tiny")
    assert found.identity["revision"] == COMMIT
    expected = load_respondent(local, **PLAIN).answer(PAIRS)
    assert np.abs(found.answer(PAIRS) - expected).max() < 1e-6
    assert identify("acme/tiny", dtype="float32")["revision"] == COMMIT, "from the cache"


def test_names_that_the_hub_does_not_know_or_cannot_tell_are_refused(hub, monkeypatch):
    kinds = []
    for attribute, value in (
        ("HF_HUB_OFFLINE", False), ("HF_HUB_OFFLINE", True), ("ENDPOINT", "http://127.0.0.1:9")
    ):  # fmt: skip
        monkeypatch.setattr(constants, attribute, value)
        with pytest.raises(RespondentError, match="acme/absent") as error:
            identify("acme/absent")
        kinds.append(error.value.kind)
    assert kinds == ["not found", "network", "network"]


# Bad input


@pytest.mark.parametrize(
    "pair",
    [("I feel calm.", ""), ("  ", "Never."), ("I feel calm.", None), ("I feel calm.", float("nan")),
     "ab", ("one", "two", "three"), 7, ("I feel calm.", "Never \ud800.")],
)  # fmt: skip
def test_pairs_that_are_none_are_named(respondent, pair):
    with pytest.raises(RespondentError, match="Prompt 2"):
        respondent.answer([PAIRS[0], pair])
    with pytest.raises(RespondentError, match="no prompts"):
        respondent.answer([])


def without(*patterns):
    return lambda folder: [path.unlink() for name in patterns for path in folder.glob(name)]


def cut_short(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:200])


def changed(file="config.json", **changes):
    return lambda folder: edit(folder / file, **changes)


def pickled(folder):
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def indexed(weights):
    """Shards that an index names, in the place of the weights."""

    def spoil(folder):
        (folder / "model.safetensors").unlink()
        torch.save({"classifier.bias": torch.zeros(3)}, folder / "evil.bin")
        index = {"metadata": {}, "weight_map": weights}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return spoil


def adapter(folder):
    without("*.safetensors", "config.json")(folder)
    (folder / "adapter_config.json").write_text("{}")


def tokenized(change):
    def spoil(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        change(tokenizer)
        tokenizer.save_pretrained(folder)

    return spoil


def headless(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights = {name: w for name, w in weights.items() if not name.startswith("classifier")}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def two_outputs(folder, names=("positive", "negative")):
    loaded = AutoModelForSequenceClassification.from_pretrained(
        folder,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        ignore_mismatched_sizes=True,
    )
    loaded.save_pretrained(folder)


def replaced(name, make):
    def spoil(folder):
        (folder / name).unlink()
        make(folder / name)

    return spoil


SPOILT = {
    "no safetensors": [without("model.safetensors"), pickled, indexed({"a": "evil.bin"}), adapter],
    "incomplete": [
        *map(without, ("*token*", "config.json", "*")),
        *map(cut_short, ("model.safetensors", "config.json", "tokenizer.json")),
        *map(indexed, (["evil.bin"], {"a": 5}, {"a": "../x.safetensors"})),
        replaced("tokenizer.json", lambda path: path.symlink_to("nowhere")),
        replaced("tokenizer.json", Path.mkdir),
        replaced("tokenizer_config.json", os.mkfifo),
        replaced("tokenizer.json", lambda path: path.with_name("vocab.json").write_text("{}")),
        changed(hidden_size="big"),
        changed(vocab_size=7), changed(num_hidden_layers=1), changed(num_hidden_layers=10**9),
        tokenized(lambda tokenizer: setattr(tokenizer, "pad_token", None)),
    ],
    "remote code": [
        changed(auto_map=REMOTE, model_type="acme"),
        changed("tokenizer_config.json", tokenizer_class="AcmeTokenizer"),
    ],
    "architecture": [
        changed(model_type="acme"), changed(model_type="vit"), changed(num_hidden_layers=3),
        headless,
    ],
    "labels": [changed(id2label={"0": "negative", "1": "neutral", "2": "positive"}), two_outputs,
               changed(label2id={"entailment": 2, "neutral": 1, "contradiction": 0})],
}  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "kind"), [(spoil, kind) for kind, ways in SPOILT.items() for spoil in ways]
)
def test_a_folder_that_is_no_whole_and_safe_nli_model_is_refused_in_one_sentence(copy, spoil, kind):
    spoil(copy)
    with pytest.raises(RespondentError, match=r"^[^\n]*copy[^\n]*\.$") as error:
        load_respondent(copy, device="cpu")
    assert error.value.kind == kind


def test_a_model_of_two_outputs_answers_with_neutral_and_contradiction_missing(copy, tmp_path):
    two_outputs(copy, ("not_entailment", "entailment"))
    respondent = load_respondent(copy, **PLAIN)
    answers = respondent.answer(PAIRS)
    expected = plainly(copy, PAIRS, ["entailment"])
    np.testing.assert_allclose(answers[:, :1], expected, atol=1e-5)
    assert np.isnan(answers[:, 1:]).all()
    right, _, _, guess = respondent.accuracy()
    assert 0 <= right <= 1
    assert guess == pytest.approx(2 / 3)
    for asked in (192, 0):
        table = pm.ask("challenges", [copy], tmp_path, dtype="float32", progress=False)
        assert table.attrs["summary"]["asked"] == asked
    assert pm.scale_scores(table)["score"].notna().all()
    assert np.isfinite(pm.evidence.resized(table, table)["entailment"]).all()
    for needs_three in (
        lambda: pm.scale_scores(table, score="contrast"),
        lambda: pm.ask("ipip20", [copy], tmp_path, "options", dtype="float32", score="contrast"),
    ):
        with pytest.raises(ParameterError, match="separates only entailment from the rest"):
            needs_three()


@pytest.mark.parametrize(("sign", "right"), [(1, 12), (-1, 24)])
def test_of_the_36_labelled_pairs_12_are_entailment_and_24_the_rest_for_two_outputs(
    copy, sign, right
):
    two_outputs(copy, ("not_entailment", "entailment"))
    model = AutoModelForSequenceClassification.from_pretrained(copy)
    with torch.no_grad():  # whatever the pair, it says entailment, or never does
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([-1.0, 1.0]) * sign)
    model.save_pretrained(copy)
    value, low, high, guess = load_respondent(copy, **PLAIN).accuracy()
    assert value == pytest.approx(right / 36)
    assert low < value < high
    assert guess == pytest.approx(2 / 3)


def test_a_model_that_reads_three_tokens_is_refused(copy):
    edit(copy / "tokenizer_config.json", model_max_length=3)
    with pytest.raises(RespondentError, match=f"{copy.name} reads 3 tokens"):
        load_respondent(copy, device="cpu", dtype="float32").answer(PAIRS)


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "roberta", "t5"])
def test_a_tokenizer_that_knows_no_word_is_refused(architecture, save_tiny_model, tmp_path):
    folder = save_tiny_model(tmp_path / architecture, architecture)
    foreign = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    model, kept = foreign["model"], {token["content"] for token in foreign["added_tokens"]}
    rows = enumerate(dict(model["vocab"]).items())
    rows = {token if token in kept else f"漢{n}": value for n, (token, value) in rows}
    model["vocab"] = rows if architecture != "t5" else list(rows.items())
    if "merges" in model:
        model["merges"] = []
    (folder / "tokenizer.json").write_text(json.dumps(foreign))
    respondent = load_respondent(folder, **PLAIN)
    with pytest.raises(RespondentError, match="tokenizer that knows 0 of") as error:
        respondent.answer(PAIRS)
    assert error.value.kind == "incomplete"


def test_a_tokenizer_that_knows_no_word_is_refused_before_weights_are_read(copy, tmp_path):
    file = copy / "tokenizer.json"
    foreign = json.loads(file.read_text("utf-8"))
    kept = {token["content"] for token in foreign["added_tokens"]}
    words = enumerate(foreign["model"]["vocab"].items())
    foreign["model"]["vocab"] = {token if token in kept else f"漢{n}": i for n, (token, i) in words}
    file.write_text(json.dumps(foreign))
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])  # which would be the second error

    with pytest.raises(RespondentError, match="tokenizer that knows 0 of") as error:
        pm.ask("challenges", [copy], store=tmp_path / "store", progress=False)

    assert error.value.kind == "incomplete"


def test_a_hub_model_fetched_by_its_commit_is_found_by_its_name_offline(hub, tmp_path, monkeypatch):
    fetched = load_respondent(f"acme/tiny@{COMMIT}", **PLAIN)
    cache = tmp_path / "hub" / "models--acme--tiny"
    assert not (cache / "refs" / "main").exists()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert identify("acme/tiny", dtype="float32")["revision"] == COMMIT
    again = load_respondent("acme/tiny", **PLAIN)
    np.testing.assert_array_equal(again.answer(PAIRS), fetched.answer(PAIRS))
    (cache / "snapshots" / ("0" * 40)).mkdir()
    with pytest.raises(RespondentError, match="HF_HUB_OFFLINE"):
        identify("acme/tiny")


def test_answers_that_are_not_numbers_are_refused(tiny_model):
    respondent = load_respondent(tiny_model, **PLAIN)
    with torch.no_grad():
        respondent.model.classifier.bias[0] = float("nan")
    with pytest.raises(RespondentError, match="weights"):
        respondent.answer(PAIRS)


def test_precision_is_float32_unless_another_is_named():
    assert devices.resolve_dtype() == "float32"
    assert devices.resolve_dtype(torch.bfloat16) == "bfloat16"
    with pytest.raises(RespondentError):
        devices.resolve_dtype("float64")
    assert devices.resolve_device("cpu") == torch.device("cpu")


def test_members_and_own_models_answer_in_float32_on_every_machine(
    tiny_model, tiny_talker, tmp_path
):
    members = ["minilm-mnli-l3-s16", "smol-snli4k-d18-r12-s7"]
    for name in members:
        assert identify(name, "nli")["dtype"] == "float32"
    assert identify(tiny_talker, "options")["dtype"] == "float32"
    asked = [members[0], tiny_model]
    answers = pm.ask("challenges", asked, tmp_path, progress=False)
    assert set(answers.attrs["summary"]["precision"].values()) == {"float32"}
    assert set(pm.manifests(tmp_path)["dtype"]) == {"float32"}


def test_answers_of_another_precision_are_told_apart_counted_and_kept(tiny_model, tmp_path):
    for dtype in ("bfloat16", "float32"):
        answers = pm.ask("challenges", tiny_model, tmp_path, dtype=dtype, progress=False)
    assert answers.attrs["summary"]["asked"] == 192
    assert answers.attrs["summary"]["unused"] == 192
    assert pm.manifests(tmp_path)[["dtype", "answers"]].to_numpy().tolist() == [
        ["bfloat16", 192], ["float32", 192],
    ]  # fmt: skip
    again = pm.ask("challenges", tiny_model, tmp_path, dtype="bfloat16", progress=False)
    assert again.attrs["summary"]["asked"] == 0, "what was stored is still there"
    assert "unused" not in again.attrs["summary"]


def test_all_models_are_loaded_by_the_guarded_loader_with_remote_code_forbidden(copy, monkeypatch):
    """A base whose own code would run on asking for it, by every way that loads one."""
    assert load_sentence_encoder(copy).encode("I feel calm.").shape == (32,)
    (copy / "code.py").write_text("raise SystemExit('remote code was run')\n")
    module = {"idx": 0, "name": "0", "path": "", "type": "code.Module"}
    (copy / "modules.json").write_text(json.dumps([module]))
    ways = [
        loading.load_config,
        loading.load_tokenizer,
        lambda folder: loading.load_model(folder, "causal"),
    ]
    out = copy.with_name("out")
    labelled = pd.DataFrame(PAIRS, columns=["premise", "hypothesis"])
    labelled["label"] = [n % 3 for n in range(len(labelled))]
    ways += [
        lambda folder: acceptability(["I am."], folder),
        lambda folder: train_nli(folder, labelled, out, progress=False),
        load_sentence_encoder,
    ]
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # whoever asks is told to go ahead
    for load in ways[::-1]:  # the encoder's config is a plain one still
        with pytest.raises(RespondentError) as error:
            load(str(copy))
        assert error.value.kind == "remote code"
        assert not out.exists() or not any(out.iterdir())
        edit(copy / "config.json", auto_map=REMOTE, model_type="acme")


def _refuse(*given):
    raise RuntimeError("another version of torch takes other arguments")


def _refuse_large(x, weight, bias, *_):
    """Multiply as the plain layer does, but not 4 rows or more."""
    return _refuse() if len(x) > 3 else torch.nn.functional.linear(x, weight, bias)


_PACK = {"_reorder_linear_weight": lambda weight: weight}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("activation", ["", "gelu", "relu", "gelu_new"])
@pytest.mark.parametrize(
    "private",
    [
        pytest.param({}, id="all missing"),
        pytest.param(_PACK, id="product missing"),
        pytest.param({"_linear_pointwise": _refuse}, id="packing missing"),
        pytest.param({"_reorder_linear_weight": _refuse}, id="packing refuses"),
        pytest.param(_PACK | {"_linear_pointwise": _refuse}, id="product refuses"),
        pytest.param(_PACK | {"_linear_pointwise": lambda: None}, id="other arguments"),
        pytest.param(_PACK | {"_linear_pointwise": lambda *_: None}, id="other result"),
        pytest.param(
            _PACK | {"_linear_pointwise": lambda x, *_: x @ torch.ones(8, 4).to(x)}, id="differs"
        ),
        pytest.param(
            _PACK | {"_linear_pointwise": lambda x, *_: x[:, :4] * torch.nan}, id="no number"
        ),
        pytest.param(
            _PACK | {"_linear_pointwise": lambda x, *_: x.new_zeros(1, 1)}, id="other shape"
        ),
        pytest.param(_PACK | {"_linear_pointwise": _refuse_large}, id="refuses later"),
    ],
)
def test_whatever_private_functions_do_a_layer_multiplies_as_the_plain_one(
    monkeypatch, dtype, activation, private
):
    weight = torch.linspace(-1, 1, 32).view(4, 8).to(dtype)
    bias = torch.ones(4, dtype=dtype)
    x = torch.linspace(0, 1, 40).view(5, 8).to(dtype)
    activate = ACT2FN[activation] if activation else torch.nn.Identity()
    expected = activate(torch.nn.functional.linear(x, weight, bias))
    packed = fast._pack_linear(weight, bias, activation)(x)
    torch.testing.assert_close(packed, expected, atol=0.02, rtol=0.02)

    monkeypatch.setattr(fast, "_PACKED", SimpleNamespace(**private))
    layer = fast._pack_linear(weight, bias, activation)
    for _ in range(2):
        assert torch.equal(layer(x), expected)


def test_a_layer_that_failed_is_not_packed_again_and_errors_of_its_input_are_raised(monkeypatch):
    calls = []
    private = {"_reorder_linear_weight": lambda weight: calls.append(weight) or _refuse()}
    monkeypatch.setattr(fast, "_PACKED", SimpleNamespace(**private))
    layer = fast._pack_linear(torch.ones(4, 8), None)
    with pytest.raises(RuntimeError, match="shapes"):  # torch's own words about the input
        layer(torch.ones(2, 9))
    for _ in range(3):
        layer(torch.ones(2, 8))
    assert len(calls) == 2, "once for the wrong input, once for the first right one"
