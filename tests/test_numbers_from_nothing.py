"""No answer comes from nothing: not from NaN, a renamed number, or a model that nobody named."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

import psychometrics as pm
from psychometrics.asking.ask import ask
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.models.loading import load_model
from psychometrics.modes import completions, mode_named
from psychometrics.modes.messages import as_filed
from psychometrics.modes.simulated import draw_traits
from psychometrics.questionnaires import Option, load_questionnaire
from tests.tiny import save_tiny_masked_lm

from .test_options_at_endpoints import put
from .test_respondents_chat import FOUR, http, raw_server

GAD7 = load_questionnaire("gad7")
WORDS = {"labels": ("unacceptable", "acceptable")}


def damaged(folder, value):
    """Write a value into the last weights that every output passes."""
    weights = load_file(folder / "model.safetensors")
    name = next(n for n in reversed(list(weights)) if "norm" in n.lower() and n.endswith("weight"))
    weights[name][:] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module", params=["nan", "inf"])
def broken(request, tmp_path_factory, tiny_model, tiny_talker, save_tiny_model):
    """Models of several kinds whose last normalisation is damaged."""
    root = tmp_path_factory.mktemp("broken")
    folders = {"nli": root / "nli", "causal": root / "causal"}
    shutil.copytree(tiny_model, folders["nli"])
    shutil.copytree(tiny_talker, folders["causal"])
    folders["mlm"] = save_tiny_masked_lm(root / "mlm", tiny_model)
    folders["acceptability"] = save_tiny_model(root / "cola", "bert", **WORDS)
    return {mode: damaged(folder, float(request.param)) for mode, folder in folders.items()}


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        ("nli", {}), ("causal", {}), ("mlm", {}), ("acceptability", {}), ("options", {}),
        ("options", {"choose": "expected"}), ("options", {"choose": "none"}),
        ("chat", {"constrained": True}), ("chat", {"temperature": 1.0}),
    ],
)  # fmt: skip
def test_a_model_that_computes_no_numbers_gives_no_answer_and_stores_none(
    broken, mode, how, tmp_path
):
    folder = broken.get(mode, broken["causal"])
    with pytest.raises(RespondentError, match="weights"):
        ask(GAD7, [folder], tmp_path, mode, progress=False, dtype="float32", **how)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_model_that_computes_no_numbers_completes_nothing(broken, tmp_path):
    with pytest.raises(RespondentError, match="weights"):
        completions.mine(broken["causal"], ["He is [M]."], k=3, store=tmp_path, progress=False)
    respondent = pm.load_respondent(broken["causal"], mode="causal", dtype="float32")
    with pytest.raises(RespondentError, match="weights"):
        respondent.answer([("I feel calm.", "It never happens.", "never")])


@pytest.mark.parametrize("damage", [-np.inf, np.nan, np.inf, 2.0])
def test_an_endpoint_without_numbers_gives_no_answer(tmp_path, damage):
    tops = [{"token": "1", "logprob": damage}]
    tops += [{"token": label, "logprob": np.log(0.2)} for label in "2345"]
    choice = {"message": {"content": "1"}, "logprobs": {"content": [{"top_logprobs": tops}]}}
    body = json.dumps({"choices": [choice]}).encode()
    with (
        raw_server(lambda connection, _: connection.sendall(http(200, body))) as url,
        pytest.raises(RespondentError, match="use mode chat"),
    ):
        put(url, tmp_path)


def test_probabilities_too_large_to_add_up_are_no_answer(tmp_path):
    def parse(reply, questionnaire, items, labels, orders):
        return [{"1": 1e308, "2": 1e308} for _ in items]

    answers = ask(FOUR, [lambda messages: "so"], tmp_path, "custom", progress=False, parse=parse)
    assert (answers["status"] == "unreadable").all()
    assert answers["value"].isna().all()


# --- labels ----------------------------------------------------------------------------------


def scale(labels, values=None):
    values = values or range(1, len(labels) + 1)
    options = tuple(
        Option(value=value, label=label) for value, label in zip(values, labels, strict=True)
    )
    items = tuple(item.model_copy(update={"options": None}) for item in FOUR.items)
    return FOUR.model_copy(update={"options": options, "items": items})


ENDS = scale(["strongly agree", "2", "3", "4", "strongly disagree"])


def shown(questionnaire, mode, **how):
    """The texts of all messages of a mode."""
    return "\n".join(mode_named(mode).preview(questionnaire, how)["content"])


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        ("options", {}), ("options", {"permutations": "reversed"}),
        ("options", {"labels": "numeric", "score": "text"}),
        ("chat", {"order": "reversed"}), ("chat", {"order": "shuffled", "runs": 3}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sheet", [ENDS, scale(["no", " 2.0", "3", "yes"])], ids=["ends", "2.0"])
def test_no_number_is_called_another_number(mode, how, sheet):
    text = shown(sheet, mode, **how)
    numbered = [
        part.split(" = ") for part in text.replace(".\n", ", ").split(", ") if " = " in part
    ]
    for label, option in numbered:
        assert not (label[-1:].isdecimal() and option[:1].isdecimal()), (label, option)
    assert "B = " in text


def test_a_number_that_is_its_own_label_or_an_option_in_words_keeps_its_number():
    numeric = {"wording": None, "labels": "numeric"}
    assert as_filed(ENDS, numeric | {"order": "given"})["labels"] == "numeric"
    assert as_filed(scale(["0", "1"]), numeric | {"order": "given"})["labels"] == "alphabetical"
    assert as_filed(GAD7, numeric | {"permutations": "cyclic"})["labels"] == "numeric"
    lower = numeric | {"labels": "lowercase", "permutations": "cyclic"}
    assert as_filed(ENDS, lower)["labels"] == "lowercase"


def test_letters_that_replace_numbers_stand_in_the_answers(tiny_talker, tmp_path):
    answers = ask(ENDS, [tiny_talker], tmp_path, "options", progress=False)
    assert set(answers["labels"]) == {"alphabetical"}
    assert answers["value"].between(1, 5).all()


# --- tokens that the model lacks ---------------------------------------------------------------


def with_more_tokens(folder, target, *tokens, **special):
    shutil.copytree(folder, target)
    tokenizer = AutoTokenizer.from_pretrained(target)
    tokenizer.add_tokens(list(tokens))
    tokenizer.add_special_tokens(special)
    tokenizer.save_pretrained(target)
    return target


def test_a_token_that_the_model_lacks_matters_only_where_it_is_used(tiny_model, tmp_path):
    folder = with_more_tokens(tiny_model, tmp_path / "more", "zzz")
    pairs = [("I feel calm.", "It never happens to me.")]
    expected = pm.load_respondent(tiny_model, dtype="float32").answer(pairs)
    respondent = pm.load_respondent(folder, dtype="float32")
    np.testing.assert_array_equal(respondent.answer(pairs), expected)
    with pytest.raises(RespondentError, match="tokenizer"):
        respondent.answer([("I feel zzz.", "It never happens to me.")])


@pytest.mark.parametrize("mode", ["causal", "options", "chat"])
def test_a_padding_token_that_the_model_lacks_changes_no_answer(tiny_talker, tmp_path, mode):
    folder = with_more_tokens(tiny_talker, tmp_path / "talker", pad_token="<|pad|>")
    how = {"constrained": True, "batch_size": 3} if mode == "chat" else {}
    column = {"causal": "probability", "options": "probability", "chat": "raw"}[mode]
    plain, padded = (
        ask(GAD7, [one], tmp_path / "s", mode, progress=False, dtype="float32", **how)[column]
        for one in (tiny_talker, folder)
    )
    if mode == "chat":
        assert plain.tolist() == padded.tolist()
    else:
        np.testing.assert_allclose(padded, plain, rtol=1e-4, atol=1e-30)


def test_a_masked_model_with_a_padding_token_that_it_lacks_reads_one_prompt_at_a_time(
    tiny_model, tmp_path
):
    plain = save_tiny_masked_lm(tmp_path / "plain", tiny_model)
    folder = with_more_tokens(plain, tmp_path / "padded", pad_token="<pad>")
    prompts = [("I feel calm.", "It never happens.", "never"), ("It is.", "I never go.", "never")]
    expected, found = (
        pm.load_respondent(one, mode="mlm", dtype="float32").answer(prompts)
        for one in (plain, folder)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# --- conditions and settings ---------------------------------------------------------------------


def test_a_loaded_respondents_answers_name_the_conditions_that_it_was_loaded_with(
    tiny_talker, tmp_path
):
    loaded = pm.load_respondent(tiny_talker, mode="causal", mean="harmonic", dtype="float32")
    how = {"store": tmp_path, "progress": False}
    by_name = ask(GAD7, [tiny_talker], mode="causal", mean="harmonic", dtype="float32", **how)
    for mode in ({}, {"mode": "causal"}):
        answers = ask(GAD7, loaded, **how, **mode)
        assert set(answers["mean"]) == {"harmonic"}
        np.testing.assert_array_equal(answers["probability"], by_name["probability"])


def test_settings_out_of_range_are_errors_of_the_setting(tiny_model):
    with pytest.raises(ParameterError, match="head"):
        load_model(tiny_model, "Encoder")
    with pytest.raises(ParameterError, match="seed"):
        draw_traits("gad7", 3, seed=-1)
    assert draw_traits("gad7", 3).equals(draw_traits(GAD7, 3))
