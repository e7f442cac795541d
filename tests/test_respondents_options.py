"""Real models saved here: a causal and an encoder-decoder one, and an NLI classifier."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    T5Config,
    T5ForConditionalGeneration,
)

from psychometrics import load_respondent
from psychometrics.asking.ask import ask
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.modes import option_table, options
from psychometrics.modes.messages import messages
from psychometrics.modes.mode import Identity
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.answers import COLUMNS
from psychometrics_book.studies.meaningless import null_model
from tests.tiny import log_probabilities

MINI = load_questionnaire("ipip20")
TWO = MINI.model_copy(update={"id": "two", "items": MINI.items[:2], "scales": ()})


def by_options(questionnaire, respondent, store, **how):
    return ask(questionnaire, [respondent], store, "options", progress=False, **how)


def shares_of(questionnaire, respondent, store, **how):
    return by_options(questionnaire, respondent, store, choose="none", **how)


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return null_model(tmp_path_factory.mktemp("models"), seed=3)


@pytest.fixture(scope="module")
def seq2seq(tmp_path_factory, causal):
    folder = tmp_path_factory.mktemp("models") / "t5"
    tokenizer = AutoTokenizer.from_pretrained(causal)
    torch.manual_seed(5)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=tokenizer.sep_token_id,
        initializer_factor=3.0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _prompt(order, labels="numeric"):
    system, user = (
        m["content"] for m in messages(TWO, TWO.items[:1], labels=labels, orders=[order])
    )
    form = "Write one line for each statement: its number, a colon, the label you choose."
    return f"{system.replace(form, 'Reply with your choice alone.')}\n{user}\n"


@pytest.mark.parametrize("score", ["label", "text"])
def test_log_probabilities_of_a_causal_model_equal_plain_transformers(causal, tmp_path, score):
    table = shares_of(TWO, causal, tmp_path, score=score, permutations="reversed")
    model = AutoModelForCausalLM.from_pretrained(causal)
    tokenizer = AutoTokenizer.from_pretrained(causal)
    ids = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else []
    ids += tokenizer(f"{_prompt((4, 3, 2, 1, 0))}Answer:", add_special_tokens=False)["input_ids"]
    for row in table[table["item_id"] == "ipip20_1"].to_dict("records"):
        reply = str(row["position"]) if score == "label" else row["label"]
        added = tokenizer(reply, add_special_tokens=False)["input_ids"]
        total = log_probabilities(model, ids, added).sum()
        assert row["log_probability"] == pytest.approx(total, abs=2e-3)
        assert row["option"] == 6 - row["position"]


def test_log_probabilities_of_an_encoder_decoder_equal_its_loss(seq2seq, tmp_path):
    table = shares_of(TWO, seq2seq, tmp_path, score="text", permutations="given")
    model = AutoModelForSeq2SeqLM.from_pretrained(seq2seq)
    tokenizer = AutoTokenizer.from_pretrained(seq2seq)
    read = tokenizer(_prompt((0, 1, 2, 3, 4)), return_tensors="pt")["input_ids"]
    for row in table[table["item_id"] == "ipip20_1"].to_dict("records"):
        ids = tokenizer(row["label"], add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            loss = model(input_ids=read, labels=ids).loss.item()
        assert row["log_probability"] == pytest.approx(-loss * ids.shape[1], abs=2e-3)
    assert by_options(TWO, seq2seq, tmp_path)["value"].between(1, 5).all()


def test_per_token_means_do_not_favour_short_texts(causal, tmp_path):
    whole = shares_of(TWO, causal, tmp_path, score="text", permutations="given")
    mean = shares_of(TWO, causal, tmp_path, score="text_mean", permutations="given")
    ratio = whole["log_probability"] / mean["log_probability"]  # tokens of each text
    assert ratio.round(3).tolist() == [2, 2, 4, 2, 2] * 2


def test_the_place_of_an_option_falls_out_exactly_over_cyclic_orders():
    rng = np.random.default_rng(0)
    liking, place = rng.normal(size=5), 3 * rng.normal(size=5)
    rows = []
    for number, order in enumerate(option_table._list_orders(5, "cyclic"), start=1):
        log = np.array([liking[i] + place[k] for k, i in enumerate(order)])
        p = np.exp(log) / np.exp(log).sum()
        rows += [
            ("r", "two", "options", "ipip20_1", number, k + 1, i + 1, f"o{i}", i + 1.0, p[k])
            for k, i in enumerate(order)
        ]
    columns = ["respondent_id", "questionnaire", "mode", "item_id", "permutation", "position",
               "option", "label", "value", "probability"]  # fmt: skip
    table = options.pooled(pd.DataFrame(rows, columns=columns))
    assert np.allclose(table["probability"], np.exp(liking) / np.exp(liking).sum())
    assert table["option"].tolist() == [1, 2, 3, 4, 5]


def test_answers_come_from_the_store_the_second_time(causal, tmp_path, monkeypatch):
    first = by_options(TWO, causal, tmp_path)
    monkeypatch.setattr("psychometrics.modes.options.load_scorer", None)
    pd.testing.assert_frame_equal(first, by_options(TWO, causal, tmp_path))
    with pytest.raises(RespondentError, match="TypeError"):  # another question needs the model
        by_options(TWO, causal, tmp_path, role="hero")


OF_LOGITS = (
    {"score": "both"}, {"labels": "roman"}, {"choose": "best"}, {"wording": "v9"}, {"runs": 0},
    {"permutations": "some"}, {"persona": "I am."}, {"score": "contrast"}, {"seed": -1},
    {"score": "label", "wording": "voice"},
)  # fmt: skip
OF_ENTAILMENT = (
    {"labels": "alphabetical"}, {"role": "hero"}, {"score": "text"}, {"wording": "It is so."},
    {"persona": ""}, {"baseline": 5}, {"persona": "I am.", "baseline": "I am."},
)  # fmt: skip


def test_a_condition_that_does_not_fit_is_named(causal, tiny_model, tmp_path, save_tiny_model):
    for model, wrongs in ((causal, OF_LOGITS), (tiny_model, OF_ENTAILMENT)):
        for wrong in wrongs:
            with pytest.raises(ParameterError, match=next(iter(wrong))):
                by_options(TWO, model, tmp_path, **wrong)
    headless = save_tiny_model(tmp_path / "headless")
    config = (headless / "config.json").read_text()
    (headless / "config.json").write_text(config.replace("BertForSequence", "BertForNoSequence"))
    with pytest.raises(RespondentError, match=r"causal or an encoder-decoder|head"):
        by_options(TWO, headless, tmp_path)


@given(st.integers(2, 5))
def test_orders_are_permutations_and_each_option_stands_at_each_place_once(count):
    table = np.array(option_table._list_orders(count, "cyclic"))
    assert (np.sort(table, axis=0) == np.arange(count)[:, None]).all()
    assert (np.sort(table, axis=1) == np.arange(count)).all()
    assert (
        option_table._list_orders(count, "reversed")[0][::-1]
        == option_table._list_orders(count, "given")[0]
    )


# --- inference -------------------------------------------------------------------------------


def test_shares_are_entailments_divided_by_their_sum(tiny_model, tmp_path):
    table = shares_of(MINI, tiny_model, tmp_path, dtype="float32")
    respondent = load_respondent(tiny_model, dtype="float32")
    statement = MINI.statement(MINI.items[3])
    asked = [(statement, option_table._write_sentence(option.label)) for option in MINI.options]
    entailed = respondent.answer(asked)[:, 0].astype(float)
    mine = table[table["item_id"] == "ipip20_4"]["probability"]
    assert np.allclose(mine, entailed / entailed.sum(), atol=1e-5)
    assert np.allclose(table.groupby("item_id")["probability"].sum(), 1)


def test_baseline_and_contrast_follow_their_formulas(tiny_model, tmp_path):
    respondent = load_respondent(tiny_model, dtype="float32")
    sentences = [option_table._write_sentence(option.label) for option in MINI.options]
    item = respondent.answer([(MINI.statement(MINI.items[0]), s) for s in sentences]).astype(float)
    empty = respondent.answer([("I am.", s) for s in sentences]).astype(float)
    first = {"item_id": "ipip20_1"}

    def shares(**how):
        table = shares_of(MINI, tiny_model, tmp_path, dtype="float32", **how)
        return table[table["item_id"] == first["item_id"]]["probability"].to_numpy()

    ratio = item[:, 0] / empty[:, 0]
    assert np.allclose(shares(baseline="I am."), ratio / ratio.sum(), atol=1e-5)
    contrast = item[:, 0] / (item[:, 0] + item[:, 2])
    assert np.allclose(shares(score="contrast"), contrast / contrast.sum(), atol=1e-5)


def test_a_personas_options_are_binomial_in_what_it_entails(tiny_model, tmp_path):
    persona = "I am calm."
    answers = by_options(
        MINI, tiny_model, tmp_path, choose="expected", persona=persona, dtype="float32"
    )
    respondent = load_respondent(tiny_model, dtype="float32")
    asked = [(persona, MINI.statement(item)) for item in MINI.items]
    e, _, c = respondent.answer(asked).astype(float).T
    assert np.allclose(answers["value"], 1 + 4 * (1 + e - c) / 2, atol=1e-4)  # mean of a binomial


def test_draws_follow_the_probabilities_and_argmax_takes_the_first_of_equals():
    rows = [("r", "two", "options", "ipip20_1", i, "x", float(i), p)
            for i, p in zip(range(1, 6), [0.1, 0.0, 0.4, 0.4, 0.1], strict=True)]  # fmt: skip
    columns = ["respondent_id", "questionnaire", "mode", "item_id", "option", "label", "value",
               "probability"]  # fmt: skip
    shares = pd.DataFrame(rows, columns=columns)

    def chosen(choose, runs=1):
        how = {"choose": choose, "runs": runs, "seed": 1}
        return options._choose_options(shares, {}, TWO, Identity("r"), how)

    assert chosen("argmax")["value"].tolist() == [3.0]
    assert chosen("expected")["value"].tolist() == [pytest.approx(3.4)]
    drawn = chosen("draw", runs=4000)
    counts = drawn["value"].value_counts(normalize=True)
    assert np.allclose(counts.sort_index(), [0.1, 0.4, 0.4, 0.1], atol=0.03)
    assert drawn.columns.tolist() == [*COLUMNS, "probability"]


@pytest.mark.parametrize("how", [{}, {"labels": "alphabetical"}, {"score": "text"}])
def test_a_baseline_of_logits_subtracts_what_the_options_get_without_an_item(causal, tmp_path, how):
    with_item = shares_of(TWO, causal, tmp_path, **how)
    corrected = shares_of(TWO, causal, tmp_path, baseline="I am a person.", **how)
    items = [item.model_copy(update={"text": "I am a person."}) for item in TWO.items]
    bare = TWO.model_copy(update={"id": "bare", "items": tuple(items), "stem": None})
    without = shares_of(bare, causal, tmp_path, **how)
    keys = ["item_id", "permutation", "position", "option"]
    assert corrected[keys].equals(with_item[keys])
    wanted = with_item["log_probability"] - without["log_probability"]
    assert np.allclose(corrected["log_probability"], wanted, atol=1e-4)
    empty = shares_of(bare, causal, tmp_path, baseline="I am a person.", **how)
    assert np.allclose(empty["probability"], 0.2, atol=1e-5)  # of nothing, nothing is left


def test_a_voice_goes_on_from_the_statement_and_shows_no_options(causal, tmp_path):
    table = shares_of(TWO, causal, tmp_path, wording="voice")
    assert len(table) == 10
    model = AutoModelForCausalLM.from_pretrained(causal)
    tokenizer = AutoTokenizer.from_pretrained(causal)
    row = table.iloc[4]
    start = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else []
    said = TWO.statement(TWO.items[0])
    read = start + tokenizer(said, add_special_tokens=False)["input_ids"]
    ids = tokenizer(" This describes me very accurately.", add_special_tokens=False)["input_ids"]
    total = log_probabilities(model, read, ids).sum()
    assert row["log_probability"] == pytest.approx(total, abs=2e-3)


def test_a_persona_stands_before_the_statement_of_a_voice_and_the_empty_item(causal, tmp_path):
    how = {"wording": "voice", "baseline": "I am a person."}
    table = shares_of(TWO, causal, tmp_path, persona="I am calm.", **how)
    items = [
        item.model_copy(update={"text": f"I am calm. {TWO.statement(item)}"}) for item in TWO.items
    ]
    written = TWO.model_copy(update={"id": "written", "stem": None, "items": tuple(items)})
    how["baseline"] = "I am calm. I am a person."
    same = shares_of(written, causal, tmp_path, **how)
    assert np.allclose(table["log_probability"], same["log_probability"], atol=1e-4)
    with pytest.raises(ParameterError, match="wording='voice'"):
        shares_of(TWO, causal, tmp_path, persona="I am calm.")
