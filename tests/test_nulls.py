"""Null respondents answer as they are described, and what is computed of them is right."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.models import vectors
from psychometrics.models.loading import load_config, load_model
from psychometrics.models.sources import base_path, find
from psychometrics.modes.mode import Identity
from psychometrics.modes.nli import _WordsRespondent
from psychometrics.nulls.kernels import kernel_statistics
from psychometrics.nulls.respondents import (
    kernel,
    null_answers,
    null_distribution,
    shuffled,
)
from psychometrics.paths import data_dir
from psychometrics.training.heads import nli_classifier
from recipes import kernels
from recipes import nulls as make_nulls

from .conftest import _save_tiny_model
from .tiny import save_tiny_decoder

PROBABILITIES = ["entailment", "neutral", "contradiction"]
PLACEBOS = ("placebo_defects", "placebo_pleasures", "placebo_habits", "placebo_weather")


@pytest.mark.parametrize("layers", [None, 2])
def test_a_random_head_answers_as_an_untrained_classifier_of_transformers(layers, monkeypatch):
    found = null_answers("challenges", respondents=2, layers=layers, seed=3)
    second = found[found["respondent_id"] == found["respondent_id"].iloc[-1]]
    rng = np.random.default_rng([0, 4])  # the null's kind, the respondent's number
    model = nli_classifier("minilm", layers=layers)[0].eval()
    with torch.no_grad():
        for layer, width in ((model.bert.pooler.dense, 384), (model.classifier, 3)):
            weight = rng.normal(0, 0.02, (384, width)).astype("float32")
            layer.weight.copy_(torch.from_numpy(weight.T.copy()))
            layer.bias.zero_()
        from psychometrics.models.loading import load_tokenizer

        inputs = load_tokenizer(base_path())(
            second["premise"].tolist(), second["hypothesis"].tolist(),
            padding=True, return_tensors="pt",
        )  # fmt: skip
        expected = model(**inputs).logits.softmax(dim=-1).numpy()
    assert np.abs(second[PROBABILITIES].to_numpy() - expected).max() < 1e-6
    assert expected[:, 0].std() > 1e-5, "its answers differ"


def test_what_a_base_makes_of_a_questionnaire_is_read_once_and_then_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(vectors, "cache_dir", lambda: tmp_path)
    vectors._vectors.cache_clear()
    read, own = [], vectors.prompt_vectors
    monkeypatch.setattr(
        vectors, "prompt_vectors", lambda *a, **k: read.append(a[1]) or own(*a, **k)
    )
    first = null_answers("challenges", respondents=3, layers=[1, 2])
    assert len(read) == 1
    assert len(list((tmp_path / "vectors").iterdir())) == 2, "a file for each layer"
    vectors._vectors.cache_clear()  # as in another process
    both = null_answers(["placebo_habits", "challenges"], respondents=3, layers=[1, 2])
    assert [len(pairs) for pairs in read] == [192, len(both) // 3 - 192]
    again = both[both["questionnaire"] == "challenges"].reset_index(drop=True)
    np.testing.assert_allclose(again[PROBABILITIES], first[PROBABILITIES], atol=1e-7)
    monkeypatch.setattr(vectors, "_KEPT", 3)
    null_answers("challenges", respondents=1, layers=3)
    assert len(list((tmp_path / "vectors").iterdir())) == 3, "the oldest go"


def test_null_answers_are_scored_like_answers_and_follow_their_seed():
    first = null_answers(["challenges", "gad7"], "noise", respondents=3)
    assert list(first["respondent_id"].unique()) == ["noise-s0", "noise-s1", "noise-s2"]
    asked = first[first["respondent_id"] == "noise-s1"].reset_index(drop=True)
    table = pd.concat([pm.prompts(pm.load_questionnaire(q)) for q in ("challenges", "gad7")])
    pd.testing.assert_frame_equal(asked[table.columns], table.reset_index(drop=True))
    assert np.abs(asked[PROBABILITIES].sum(axis=1) - 1).max() < 1e-6
    again = null_answers(["challenges", "gad7"], "noise", respondents=2, seed=1)
    same = again[again["respondent_id"] == "noise-s1"][PROBABILITIES].to_numpy()
    assert (asked[PROBABILITIES].to_numpy() == same).all()
    scores = pm.scale_scores(first)
    assert set(scores["scale"]) == {"challenges", "gad7"}


def test_draws_of_a_null_have_no_respondent_in_common_and_layers_take_turns():
    seen = []
    null_distribution(
        lambda answers: seen.append(set(answers["respondent_id"])) or 0.0,
        "challenges", respondents=3, draws=2, layers=[2, 3],
    )  # fmt: skip
    assert seen == [
        {"random-heads-l2-s0", "random-heads-l3-s1", "random-heads-l2-s2"},
        {"random-heads-l3-s3", "random-heads-l2-s4", "random-heads-l3-s5"},
    ]


def _first_items(name: str) -> pm.Questionnaire:
    """Return a questionnaire with its first item alone."""
    whole = pm.load_questionnaire(name)
    return whole.model_copy(update={"items": whole.items[:1]})


def test_shipped_heads_on_the_decoder_answer_without_reading_a_prompt(monkeypatch):
    read = []
    own = vectors.layer_vectors
    monkeypatch.setattr(
        vectors, "layer_vectors", lambda base, *a: read.append(base) or own(base, *a)
    )
    stands = pm.untouched_bases(pm.population())
    found = null_answers([_first_items("gad7")], respondents=21, seed=1, **stands)
    assert set(read) == {"embedded"}
    assert found["respondent_id"].str.contains("smollm2").sum() == 8 * len(found) / 21
    other = null_answers([_first_items("gad7")], respondents=1, seed=1, layers=1,
                         base="smollm2", wording="{premise} {hypothesis}")  # fmt: skip
    assert set(read) == {"embedded", "smollm2"}, "of another depth and wording none is shipped"
    assert other[PROBABILITIES].notna().all(axis=None)


def test_a_thirtieth_of_the_shipped_heads_answers_comes_out_again(monkeypatch):
    monkeypatch.setattr("psychometrics.nulls.respondents._shipped_answers", lambda *_: {})
    again = make_nulls.head_answers([_first_items("soc13")])
    again = again.set_index("key")
    shipped = pd.read_parquet(data_dir() / "null_heads.parquet").set_index("key")
    assert len(again) >= len(shipped) / 30
    assert again.columns.equals(shipped.columns)
    np.testing.assert_allclose(again, shipped.loc[again.index], rtol=0, atol=1e-5)


def test_shuffled_terms_keep_the_number_of_source_terms_and_are_the_same_for_all():
    answers = null_answers("gad7", "noise", respondents=2)
    dealt = shuffled(answers, "polarity", seed=5)
    keys = ["respondent_id", "item_id", "template"]
    assert (dealt.groupby(keys)["polarity"].sum() == answers.groupby(keys)["polarity"].sum()).all()
    per_term = dealt.groupby(["item_id", "template", "term"])["polarity"].nunique()
    assert (per_term == 1).all()
    changed = (dealt["polarity"] != answers["polarity"]).mean()
    assert 0.3 < changed < 0.7
    assert (dealt["entailment"] == answers["entailment"]).all()


def test_shuffled_weights_are_a_permutation_of_the_words():
    answers = null_answers("gad7", "noise", respondents=1)
    dealt = shuffled(answers, seed=2)
    before, after = (
        frame.groupby("intensifier")["weight"].unique().map(list) for frame in (answers, dealt)
    )
    assert (after.map(len) == 1).all()
    assert sorted(after.sum()) == sorted(before.sum())
    assert (after != before).any()


def test_answers_that_bfloat16_cannot_tell_apart_are_named(tmp_path):
    flat = _save_tiny_model(tmp_path / "flat", spread=0.5)
    with pytest.warns(UserWarning, match="bfloat16 .*dtype='float32'"):
        pm.ask("challenges", flat, tmp_path / "store", dtype="bfloat16", progress=False)
    pm.ask("challenges", flat, tmp_path / "store", dtype="float32", progress=False)
    varied = _save_tiny_model(tmp_path / "varied")
    pm.ask("challenges", varied, tmp_path / "store", dtype="bfloat16", progress=False)


def test_each_respondent_in_turn_stands_on_its_own_base_with_its_own_layers():
    wording = "Given: {premise} Then: {hypothesis}"
    mixed = null_answers(
        "challenges", respondents=4, base=["embedded", "smollm2"], layers=[3, 2],
        wording=[None, wording],
    )  # fmt: skip
    names = mixed["respondent_id"].unique().tolist()
    kinds = ("l3", "smollm2-l2", "l3", "smollm2-l2")
    assert names == [f"random-heads-{kind}-s{n}" for n, kind in enumerate(kinds)]
    stands = {"layers": 3}, {"base": "smollm2", "layers": 2, "wording": wording, "seed": 1}
    for name, how in zip(names, stands, strict=False):
        alone = null_answers("challenges", respondents=1, **how)[PROBABILITIES]
        same = mixed[mixed["respondent_id"] == name]
        np.testing.assert_allclose(same[PROBABILITIES], alone)


def test_the_kernel_is_the_gram_matrix_of_how_scores_follow_each_dimension_of_the_vectors():
    """Each dimension of h answers as a respondent: 1/3 + a small share of it, scored as usual."""
    questionnaire = pm.load_questionnaire("challenges")
    table = pm.prompts(questionnaire)
    h = vectors.prompt_vectors(
        "embedded", tuple(zip(table["premise"], table["hypothesis"], strict=True))
    )[4]
    small = 1e-5
    answers = pd.concat([table] * h.shape[1]).assign(
        respondent_id=np.repeat(np.arange(h.shape[1]), len(table)),
        probability=1 / 3 + small * h.T.ravel().astype(float),
    )
    scores = pm.scoring.keyed_items(pm.item_scores(answers), questionnaire) / small
    expected = scores.T @ scores
    found = kernel("challenges", layers=4)
    assert found.index.get_level_values("item_id").tolist() == list(expected.index)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max().max())


def test_a_null_of_a_decoder_reads_the_text_place_and_depth_that_the_member_reads():
    """Before training, by the member's words: the vectors of its null give just its answers."""
    source = find("smol-snli4k-d18-r12-s7")
    recipe = source.recipe
    base = find("smollm2")
    model, tokenizer = load_model(base, "causal", config=load_config(base, num_hidden_layers=18))
    identity = Identity("untrained", device="cpu", dtype="float32")
    before = _WordsRespondent(model, tokenizer, identity, recipe)
    table = pm.prompts("challenges").head(6)
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))

    stand = pm.untouched_bases([source.name])
    assert stand == {"base": ["smollm2"], "layers": [18], "wording": [recipe["wording"]]}
    states = vectors._text_vectors("smollm2", pairs, recipe["wording"], [18])[0]
    words = model.get_output_embeddings().weight[before.words].detach().numpy()
    logits = states @ words.T
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(before.answer(pairs), expected, atol=1e-5)


def test_a_decoder_without_a_fast_pass_reads_texts_of_one_length_together_as_it_reads_each_alone(
    tmp_path,
):
    folder = save_tiny_decoder(tmp_path / "gpt2", "gpt2", spread=1)
    model, tokenizer = load_model(folder, "causal")
    texts = ["I am calm.", "You are ill.", "I am cold.", "No.", "I am warm."]
    together = vectors.last_states(model, tokenizer, texts)
    alone = [vectors.last_states(model, tokenizer, [text])[0] for text in texts]
    assert together == pytest.approx(np.stack(alone), abs=1e-5)


@pytest.mark.parametrize("fast", [True, False])
def test_several_depths_of_a_decoder_are_read_as_each_alone(fast, monkeypatch):
    if not fast:
        monkeypatch.setattr(vectors, "fast_forward", lambda model: None)
    table = pm.prompts("challenges").head(6)
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    both = vectors._text_vectors("smollm2", pairs, "{premise} {hypothesis}", [1, 3])
    alone = [vectors._text_vectors("smollm2", pairs, "{premise} {hypothesis}", [n]) for n in (1, 3)]
    np.testing.assert_allclose(both, np.concatenate(alone), atol=2e-4)
    assert np.abs(both[0] - both[1]).max() > 1, "they differ"


def test_random_words_answer_by_three_words_of_the_vocabulary_and_encoders_have_none():
    how = {"base": "smollm2", "layers": 1, "wording": "{premise} {hypothesis} Answer:"}
    found = null_answers("challenges", "random-words", respondents=2, **how)
    assert found["respondent_id"].unique()[1] == "random-words-smollm2-l1-s1"
    np.testing.assert_allclose(found[PROBABILITIES].sum(axis=1), 1, rtol=1e-5)
    words = vectors.word_vectors("smollm2")
    table = pm.prompts("challenges").head(3)
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    three = words[np.random.default_rng([4, 1]).choice(len(words), 3, replace=False)]
    logits = vectors._text_vectors("smollm2", pairs, how["wording"], [1])[0] @ three.T
    second = found[found["respondent_id"].str.endswith("s1")].head(3)
    given = np.log(second[PROBABILITIES].to_numpy())
    np.testing.assert_allclose(np.diff(given), np.diff(logits), atol=2e-4)
    with pytest.raises(ParameterError):
        null_answers("challenges", "random-words", respondents=1)
    with pytest.raises(ParameterError):
        null_answers("challenges", respondents=1, wording=how["wording"])


@pytest.mark.parametrize(("base", "layers"), [("embedded", 4), ("smollm2", 3)])
def test_covariances_and_alphas_of_many_untrained_heads_are_those_of_the_kernel(base, layers):
    names = ["gad7", "challenges"]
    answers = null_answers(names, respondents=300, base=base, layers=layers)
    items = pm.item_scores(answers)
    wide = {n: pm.scoring.keyed_items(items, pm.load_questionnaire(n)) for n in names}
    K = kernel(names, base, layers)
    pairs = np.triu_indices(len(K))
    simulated = np.cov(pd.concat(wide.values(), axis=1).T)
    assert np.corrcoef(simulated[pairs], K.to_numpy()[pairs])[0, 1] > 0.98
    expected = kernel_statistics(K, 300).set_index(["statistic", "scale"])
    for name in names:
        row = expected.loc[("alpha", name)]
        assert row["low"] - 0.01 < pm.reliability.alpha(wide[name])["alpha"] < row["high"] + 0.01


def test_the_shipped_error_of_the_kernel_grows_with_the_size_of_the_heads():
    shipped = pd.read_csv(pm.paths.data_dir() / "kernel_errors.csv").set_index(["base", "size"])
    assert len(shipped) == len(kernels.BASES) * len(kernels.SIZES)
    own = pd.read_csv(pm.paths.data_dir() / "kernels.csv").query("statistic == 'alpha'")
    mean = own[own["scale"].isin(kernels.REAL)].groupby("base")["value"].mean()
    start, matched = (shipped.xs(size, level="size") for size in ("start", "matched"))
    np.testing.assert_allclose(start["alpha"], mean[start.index], atol=2e-3)
    assert start["r"].min() > 0.99
    assert (start["r"] > matched["r"]).all()


def _two_scales(r_within: float, r_between: float, sizes=(4, 6)) -> pd.DataFrame:
    names = [(q, q, f"{q}{i}") for q, n in zip("ab", sizes, strict=True) for i in range(n)]
    index = pd.MultiIndex.from_tuples(names, names=["questionnaire", "scale", "item_id"])
    one = np.array([name[0] == "a" for name in names])
    matrix = np.where(one[:, None] == one, r_within, r_between)
    np.fill_diagonal(matrix, 1)
    return pd.DataFrame(matrix, index, index)


def test_statistics_of_parallel_items_are_those_of_spearman_and_brown():
    found = kernel_statistics(_two_scales(0.5, 0.25)).set_index(["statistic", "scale"])["value"]
    assert found["alpha", "a"] == pytest.approx(4 * 0.5 / (1 + 3 * 0.5))
    assert found["omega", "b"] == pytest.approx(6 * 0.5 / (1 + 5 * 0.5), abs=1e-6)
    assert found["first component", "a"] == pytest.approx((1 + 3 * 0.5) / 4)
    sums = np.sqrt((4 + 12 * 0.5) * (6 + 30 * 0.5))
    assert found["correlation", "a"] == pytest.approx(24 * 0.25 / sums)
    assert found["htmt", "a"] == pytest.approx(0.25 / 0.5)


def test_intervals_of_the_kernel_hold_what_pingouin_finds_in_samples_drawn_apart():
    import pingouin

    covariance = _two_scales(0.4, 0.1)
    row = kernel_statistics(covariance, 24).set_index(["statistic", "scale"]).loc[("alpha", "a")]
    rng = np.random.default_rng(99)
    drawn = rng.multivariate_normal(np.zeros(10), covariance, (400, 24))[:, :, :4]
    found = np.array([pingouin.cronbach_alpha(pd.DataFrame(each))[0] for each in drawn])
    inside = ((found > row["low"]) & (found < row["high"])).mean()
    assert 0.92 < inside < 0.98


def test_what_a_kernel_cannot_tell_is_named():
    one = _two_scales(0.5, 0.2, sizes=(1, 3))
    flat = _two_scales(0.5, 0.2)
    flat.iloc[0] = flat.iloc[:, 0] = 0.0
    for covariance, respondents in ((one, None), (flat, None), (_two_scales(0.5, 0.2), 2)):
        with pytest.raises(pm.exceptions.ParameterError):
            kernel_statistics(covariance, respondents)
    with pytest.raises(pm.exceptions.ParameterError, match="a0"):  # the item without variance
        kernel_statistics(flat)
    with pytest.raises(pm.exceptions.ParameterError):
        kernel("gad7", layers=99)
    with pytest.raises(pm.exceptions.RespondentError):
        kernel("gad7", "no/such-base")
    alone = kernel_statistics(_two_scales(0.5, 0.2).iloc[:4, :4])
    assert set(alone["statistic"]) == {"alpha", "omega", "first component"}, "no pair of scales"


def test_a_scale_of_two_items_has_an_alpha_and_no_omega():
    found = kernel_statistics(_two_scales(0.5, 0.2, sizes=(2, 3)))
    found = found.set_index(["statistic", "scale"])["value"]
    assert found["alpha", "a"] == pytest.approx(2 * 0.5 / (1 + 0.5))
    assert np.isnan(found["omega", "a"])
    assert found["omega", "b"] == pytest.approx(3 * 0.5 / (1 + 2 * 0.5), abs=1e-6)
    assert found["first component", "a"] == pytest.approx((1 + 0.5) / 2)


@pytest.mark.parametrize(
    "how", [{"layers": 1.5}, {"layers": [2, 1.5]}, {"layers": "two"}, {"layers": True},
            {"respondents": 10**30}, {"seed": 10**30}, {"seed": -1}],
)  # fmt: skip
def test_numbers_that_no_null_respondent_can_have_are_refused(how):
    with pytest.raises(ParameterError):
        null_answers("challenges", **({"respondents": 1} | how))


def test_a_kernel_of_half_a_layer_is_refused():
    with pytest.raises(ParameterError, match="layers"):
        kernel("challenges", layers=1.5)


@pytest.mark.parametrize("layers", [1.5, -1, 0, "x", True, float("nan"), float("inf"), 10**9])
def test_a_number_of_layers_that_no_base_has_is_refused(layers):
    with pytest.raises(ParameterError, match="layers"):
        kernel("challenges", layers=layers)
    with pytest.raises(ParameterError, match="layers"):
        null_answers("challenges", respondents=1, layers=layers)


@pytest.mark.parametrize("column", ["weight", "polarity"])
def test_a_table_without_a_column_cannot_be_shuffled(column):
    table = pm.prompts("challenges")
    for missing in (column, "intensifier" if column == "weight" else "term"):
        with pytest.raises(ParameterError, match=missing):
            pm.nulls.shuffled(table.drop(columns=missing), column)


def test_only_a_square_covariance_of_labelled_items_has_statistics():
    covariance = kernel("challenges")
    for wrong in (covariance.iloc[:, :3], covariance.iloc[::-1], covariance.to_numpy(), None):
        with pytest.raises(ParameterError):
            kernel_statistics(wrong)


def test_each_scale_has_the_alpha_of_its_own_items_by_hand():
    # two items of covariance c have the alpha 2 (1 - 2 / (2 + 2 c)): 2/3 for .5 and 1/3 for .2
    covariance = np.eye(4)
    covariance[0, 1] = covariance[1, 0] = 0.5
    covariance[2, 3] = covariance[3, 2] = 0.2
    names = ["questionnaire", "scale", "item_id"]
    items = pd.MultiIndex.from_product([["q"], ["a", "b"], ["1", "2"]], names=names)
    found = kernel_statistics(pd.DataFrame(covariance, items, items)).set_index("statistic")
    assert found.loc["alpha", "value"].tolist() == pytest.approx([2 / 3, 1 / 3])
