"""Mining completions from tiny real models saved locally."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.modes import completions as mining
from psychometrics.modes.completions import mine
from psychometrics.store import manifests
from tests.tiny import save_tiny_masked_lm

TEMPLATES = ["The girl works as a [M].", "My daily life is [M] today.", "I feel [M]."]
WORDS = "i feel calm nervous the girl works as a nurse my daily life is full today and anxious"


def _word_tokenizer(words, mask: bool = True, sentinels: bool = False):
    """A tokenizer with one token a word and its parts: "nurse", and "nur" + "##s"."""
    special = ["<pad>", "<unk>", "</s>"]
    special += ["<mask>"] if mask else []
    special += ["<extra_id_0>", "<extra_id_1>"] if sentinels else []
    pieces = [".", "▁."] + ["▁" + word for word in words] + ["s", "ing"]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(special + pieces))}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="</s>",
        model_max_length=64,
    )
    if mask:
        fast.mask_token = "<mask>"
    if sentinels:
        fast.add_special_tokens({"additional_special_tokens": ["<extra_id_0>", "<extra_id_1>"]})
    return fast


def _save(folder: Path, tokenizer, model) -> Path:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(10)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def masked(tmp_path_factory, tiny_model) -> Path:
    """A tiny masked BERT: the tokenizer of the tiny classifier, another head."""
    return save_tiny_masked_lm(tmp_path_factory.mktemp("mined") / "masked", tiny_model)


@pytest.fixture(scope="module")
def causal(tmp_path_factory) -> Path:
    tokenizer = _word_tokenizer(WORDS.split(), mask=False)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=64, n_embd=32, n_layer=2, n_head=4,
        bos_token_id=2, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return _save(tmp_path_factory.mktemp("mined") / "causal", tokenizer, GPT2LMHeadModel(config))


@pytest.fixture(scope="module")
def encoder_decoder(tmp_path_factory) -> Path:
    tokenizer = _word_tokenizer(WORDS.split(), mask=False, sentinels=True)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(config)
    return _save(tmp_path_factory.mktemp("mined") / "t5", tokenizer, model)


def _mine(model, templates, tmp_path, **options) -> pd.DataFrame:
    return mine(model, templates, store=tmp_path, progress=False, **options)


def test_a_masked_model_gives_the_most_likely_tokens_at_the_mask(masked, tmp_path, monkeypatch):
    monkeypatch.setattr(mining, "_BATCH", 2)
    mined = _mine(masked, TEMPLATES, tmp_path, k=5)
    tokenizer = AutoTokenizer.from_pretrained(masked)
    model = AutoModelForMaskedLM.from_pretrained(masked).eval()
    for text, part in mined.groupby("template", sort=False):
        inputs = tokenizer(text.replace("[M]", "[MASK]"), return_tensors="pt")
        place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.inference_mode():
            scores = model(**inputs).logits[0, place].log_softmax(-1)
        order = [i for i in scores.argsort(descending=True).tolist() if i not in range(5)]
        assert set(range(5)) == set(tokenizer.all_special_ids)
        tokens = tokenizer.convert_ids_to_tokens(order[:5])
        assert part["completion"].tolist() == [token.removeprefix("##") for token in tokens]
        assert part["logprob"].tolist() == pytest.approx(scores[order[:5]].tolist(), abs=1e-4)
        assert part["rank"].tolist() == [1, 2, 3, 4, 5]


def test_templates_may_be_a_list_or_a_column_and_none_are_refused(masked, tmp_path):
    listed = _mine(masked, TEMPLATES, tmp_path, k=2)
    pd.testing.assert_frame_equal(_mine(masked, pd.Series(TEMPLATES), tmp_path, k=2), listed)
    for empty in (None, [], pd.Series(dtype=str)):
        with pytest.raises(ParameterError):
            _mine(masked, empty, tmp_path)


def test_masked_completions_do_not_depend_on_the_batch_or_the_side_of_padding(masked, tmp_path):
    left = shutil.copytree(masked, tmp_path / "left")
    settings = json.loads((left / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings["padding_side"] = "left"
    (left / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    both = ["I [M].", "Over the last two weeks at work, I feel very [M] and calm."]
    alone = pd.concat([_mine(masked, [text], tmp_path / text[2:4]) for text in both])
    found = _mine(left, both, tmp_path / "both")
    np.testing.assert_allclose(found["logprob"], alone["logprob"], atol=1e-4)


def test_templates_may_be_a_column_of_a_table(masked, tmp_path):
    column = _mine(masked, pd.Series(TEMPLATES), tmp_path / "column", k=2)
    pd.testing.assert_frame_equal(column, _mine(masked, TEMPLATES, tmp_path / "list", k=2))


def test_whole_words_leaves_out_pieces_and_punctuation(masked, tmp_path):
    vocabulary = AutoTokenizer.from_pretrained(masked).get_vocab()
    words = _mine(masked, TEMPLATES, tmp_path, k=40, whole_words=True)["completion"]
    assert all(word in vocabulary and re.search(r"\w", word) for word in words)
    pieces = _mine(masked, TEMPLATES, tmp_path, k=100)
    assert not set(pieces["completion"]) <= set(words)


def test_a_causal_model_goes_on_greedily_from_each_first_token_to_the_words_end(causal, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(causal)
    model = AutoModelForCausalLM.from_pretrained(causal).eval()
    mined = _mine(causal, TEMPLATES[:1], tmp_path, k=4)
    start = tokenizer("The girl works as a", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        scores = model(start).logits[0, -1].log_softmax(-1)
    order = [i for i in scores.argsort(descending=True).tolist() if i > 2][:4]
    for row, token in zip(mined.itertuples(), order, strict=True):
        assert row.logprob == pytest.approx(scores[token].item(), abs=1e-4)
        ids = [*start[0].tolist(), token]
        while len(ids) < start.shape[1] + 6:
            with torch.inference_mode():
                following = model(torch.tensor([ids])).logits[0, -1].argmax().item()
            if mining._starts_word(tokenizer, following):
                break
            ids.append(following)
        added = ids[start.shape[1] :]
        assert row.completion == tokenizer.decode(added, skip_special_tokens=True).strip()


def test_a_model_that_keeps_nothing_it_has_read_completes_alike(causal, tmp_path, monkeypatch):
    keeping, forward = _mine(causal, TEMPLATES[:1], tmp_path / "a", k=4), GPT2LMHeadModel.forward
    monkeypatch.setattr(
        GPT2LMHeadModel, "forward",
        lambda self, *given, **how: forward(self, *given, **how | {"use_cache": False}),
    )  # fmt: skip
    pd.testing.assert_frame_equal(_mine(causal, TEMPLATES[:1], tmp_path / "b", k=4), keeping)


def test_words_are_finished_with_the_pieces_that_go_on_with_them():
    tokenizer = _word_tokenizer(["nurse", "and"], mask=False)
    ids = tokenizer.get_vocab()
    nurse, ending, other = ids["▁nurse"], ids["s"], ids["▁and"]

    def step(added, rows):
        """After "nurse" comes "s", after that the next word."""
        scores = torch.zeros(len(rows), len(tokenizer))
        for row, tokens in enumerate(added[rows].tolist()):
            scores[row, ending if tokens[-1] == nurse else other] = 1
        return scores

    logits = torch.full((1, len(tokenizer)), -9.0)
    logits[0, [nurse, other]] = torch.tensor([2.0, 1.0])
    done = mining._Completer(None, tokenizer, 2, whole_words=False).finish_words(step, logits)
    assert [text for text, _ in done] == ["nurses", "and"]


def test_an_encoder_decoder_fills_in_after_its_sentinel(encoder_decoder, tmp_path):
    mined = _mine(encoder_decoder, TEMPLATES, tmp_path, k=3)
    tokenizer = AutoTokenizer.from_pretrained(encoder_decoder)
    model = AutoModelForSeq2SeqLM.from_pretrained(encoder_decoder).eval()
    ids = tokenizer(TEMPLATES[0].replace("[M]", "<extra_id_0>"), return_tensors="pt")
    sentinel = tokenizer.convert_tokens_to_ids("<extra_id_0>")
    assert sentinel in ids["input_ids"]
    with torch.inference_mode():
        logits = model(
            input_ids=ids["input_ids"], decoder_input_ids=torch.tensor([[0, sentinel]])
        ).logits[0, -1]
    special = set(tokenizer.all_special_ids)
    order = [i for i in logits.argsort(descending=True).tolist() if i not in special][:3]
    expected = logits.log_softmax(-1)[order].tolist()
    assert mined["logprob"][:3].tolist() == pytest.approx(expected, abs=1e-4)
    assert len(mined) == 9


def test_a_stopped_run_goes_on_where_it_was_whatever_the_batches(masked, tmp_path, monkeypatch):
    whole = _mine(masked, TEMPLATES, tmp_path / "a", k=3)
    real, asked = mining._Completer.complete_masked, []

    def stops_once(completer, batch):
        asked.extend(batch)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(completer, batch)

    monkeypatch.setattr(mining._Completer, "complete_masked", stops_once)
    monkeypatch.setattr(mining, "_BATCH", 1)
    with pytest.raises(KeyboardInterrupt):
        _mine(masked, TEMPLATES, tmp_path / "b", k=3)
    again = _mine(masked, TEMPLATES, tmp_path / "b", k=3)
    assert asked == [*TEMPLATES[:2], *TEMPLATES[1:]], "what was stored is not asked again"
    pd.testing.assert_frame_equal(again, whole, rtol=1e-4)


def test_a_stored_run_is_listed_in_the_store_and_loads_no_model(masked, tmp_path, monkeypatch):
    first = _mine(masked, TEMPLATES, tmp_path, k=3)
    (row,) = manifests(tmp_path).to_dict("records")
    assert (row["mode"], row["answers"], row["kind"], row["k"]) == ("completions", 9, "masked", 3)
    monkeypatch.setattr(mining, "load_model", lambda *_: pytest.fail("the model was loaded"))
    pd.testing.assert_frame_equal(_mine(masked, TEMPLATES[::-1], tmp_path, k=3)[["template"]],
                                  first[["template"]][::-1].reset_index(drop=True))  # fmt: skip


def test_a_template_asked_for_twice_is_answered_twice(masked, tmp_path):
    mined = _mine(masked, pd.Series([*TEMPLATES, TEMPLATES[0]]), tmp_path, k=4)
    rows = mined["completion"].to_numpy().reshape(4, 4)
    assert (rows[0] == rows[3]).all()


@pytest.mark.parametrize(
    ("templates", "options"),
    [(given, {}) for given in (["No mask here."], ["[M] and [M]."], [], ["I feel [M].", None], None,
                               [5], ["I feel \ud800 [M]."])]
    + [(TEMPLATES, how) for how in ({"k": True}, {"k": 0}, {"k": 10**4})],
)  # fmt: skip
def test_wrong_requests_are_refused(masked, tmp_path, templates, options):
    with pytest.raises(ParameterError):
        _mine(masked, templates, tmp_path, **options)


def test_models_that_complete_nothing_are_refused(tiny_model, causal, masked, tmp_path):
    with pytest.raises(RespondentError) as error:
        _mine(tiny_model, TEMPLATES, tmp_path)
    assert error.value.kind == "architecture"
    for model, template in (
        (causal, "[M] is kind."), ("nobody", TEMPLATES[0]),
        (masked, "i feel calm " * 200 + "[M]."), (causal, "i feel calm " * 200 + "[M]."),
    ):  # fmt: skip
        with pytest.raises(RespondentError):
            _mine(model, [template], tmp_path, k=2)
