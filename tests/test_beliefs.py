"""HONEST, the published table, groups, intervals, similarity and annotation."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.make import beliefs as made
from psychometrics import claims, data
from psychometrics.exceptions import DataError, ParameterError, RespondentError
from psychometrics.measures.beliefs import (
    SCORINGS,
    _fold,
    _in_ascii,
    _unwritten,
    combine_parts,
    gap_counts,
    gap_null,
    group_gaps,
    hit_parts,
    honest,
    honest_by_group,
    honest_intervals,
    honest_of_lengths,
    honest_summary,
    hurt_categories,
    hurtful,
    missed,
    rank_stability,
    resampled,
    word_counts,
)
from psychometrics.parameters import check_parameters
from psychometrics.studies import fairbelief
from psychometrics.studies.fairbelief import (
    SUBSETS,
    _mean_similarity,
    annotation_agreement,
    beside,
    breakdown,
    completions,
    findings,
    gap_table,
    group_scores,
    length_null,
    lexicon,
    lexicon_errors,
    order_table,
    published,
    published_hits,
    score_published,
    sheets,
    templates,
    text_at_hand,
)
from psychometrics.studies.fairbelief_figures import (
    _honest_curves,
    curves_by_scoring,
    gap_forests,
    side_by_side,
    veil,
)
from psychometrics.studies.fairbelief_groups import theme_gaps

KEYS = [key for key in data.registry() if key.startswith(("fairbelief_", "honest_", "hurtlex"))]
needs_text = pytest.mark.skipif(
    not data.available(*KEYS) and os.environ.get("CI") != "true",
    reason="the published completions are neither in PSYCHOMETRICS_DATA_MIRROR nor in the cache",
)
PAPER = published()
MODELS = PAPER["respondent_id"].tolist()
GROUPS = published("templates")
WORDS = ["rat", "thief", "pédant", "👮", "gag reel"]


def _table(hits):
    return honest_summary(hits, GROUPS["subset"], MODELS)


def test_honest_at_k_is_the_share_of_templates_by_hand():
    # Templates of two completions each: first rank 2 of 4 hurtful, second rank 1 of 4.
    rows = [["a thief", "a baker"], ["rat", "thief!"], ["rate", "ratty"], ["the cook", "an aunt"]]
    hits = hurtful(rows, WORDS)
    assert hits.tolist() == [[True, False], [True, True], [False, False], [False, False]]
    assert honest(hits).tolist() == [0.5, 0.25]
    assert honest(hits, together=True).tolist() == [0.5, 0.375]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rat", True),
        ("what a rat.", True),
        ('"rat"', True),
        ("rat-like", True),
        ("rat's", True),
        ("love\nrat\tdog", True),
        ("rats", False),
        ("Rat", False),
        ("pedant", True),
        ("pédant", True),
        ("pe\u0301dant", True),
        ("gag reel", False),  # of a lemma of two words neither is the lemma
        ("", False),
        ("...", False),
        ("🙂", False),
        ("half a pair \ud83d of a rat", True),
        ("a\x01rat", False),  # the separator inside a completion is no blank
    ],
)
def test_a_completion_is_hurtful_if_a_word_of_it_is_a_lemma(text, expected):
    assert hurtful([[text, "fine"]], WORDS).tolist() == [[expected, False]]


def test_stripping_leaves_letters_of_other_scripts_and_removes_what_is_no_letter():
    assert _fold("naïve") == "naive"
    assert _fold("Ｆｕｌｌ") == "Full"
    assert _fold("приве́т") == "привет"
    assert _fold("��") == _fold("👮🏽") == _fold("❤️") == ""
    assert _fold("”") == "”", "quotation marks are not stripped to nothing"


def test_empty_words_count_only_in_the_scorings_that_retrace_the_paper():
    rows = [["fine, thanks", "so 🙂 kind"], ["good people", "�� a rat"]]
    assert hurtful(rows, WORDS).tolist() == [[False, False], [False, True]]
    assert hurtful(rows, WORDS, "words").tolist() == [[False, True], [False, True]]
    without = [word for word in WORDS if word != "👮"]
    assert hurtful(rows, without, "words").tolist() == [[False, False], [False, True]]


def test_a_rank_whose_first_completion_has_no_blank_is_scored_whole_as_published():
    rows = [["kind", "so kind"], ["a rat", "a rat"], ["rat", "rat"], ["rat.", "rat."]]
    assert hurtful(rows, WORDS, "words")[:, 0].tolist() == [False, True, True, True]
    assert hurtful(rows, WORDS, "published").tolist() == [
        [False, False],
        [False, True],
        [True, True],
        [False, True],
    ]
    parts = hit_parts(rows, WORDS)
    for scoring in SCORINGS:
        assert (combine_parts(parts, scoring) == hurtful(rows, WORDS, scoring)).all()


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6), st.sampled_from(["rat", "thief"]))
def test_adding_a_lemma_makes_any_completion_hurtful(texts, lemma):
    assert hurtful([[f"{text} {lemma} {text}" for text in texts]], WORDS).all()


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6))
def test_a_row_is_scored_as_its_completions_one_by_one(texts):
    alone = [hurtful([[text]], WORDS)[0, 0] for text in texts]
    assert hurtful([texts], WORDS)[0].tolist() == alone


def test_categories_are_kept_apart_and_their_union_is_the_score():
    words = pd.DataFrame(
        {"lemma": ["rat", "rat", "thief", "👮"], "category": ["an", "svp", "re", "re"]}
    )
    rows = [["a rat and a thief", "thief"], ["fine", "🙂"]]
    names, hits = hurt_categories(rows, words)
    assert names == ["an", "re", "svp"]
    assert hits[:, 0].tolist() == [[True, False], [True, True], [True, False]]
    assert (hits.any(axis=0) == hurtful(rows, words["lemma"])).all()


def test_near_misses_are_told_apart_and_are_not_hurtful():
    rows = [["a Rat", "rats"], ["one gag reel", "a rat, a Thief"], ["gag a reel", "as is"]]
    found = missed(rows, WORDS)
    assert found["capital"].tolist() == [[True, False], [False, False], [False, False]]
    assert found["plural"].tolist() == [[False, True], [False, False], [False, False]]
    assert found["phrase"].tolist() == [[False, False], [True, False], [False, False]]
    for hits in found.values():
        assert not (hits & hurtful(rows, WORDS)).any()


def test_table_1_pools_ranks_of_both_subsets_by_hand():
    hits = np.array([[[1, 0], [1, 0], [0, 0]], [[0, 0], [0, 0], [1, 1]]], dtype=bool)
    # Model a: subset one gives 1, 0, subset two 0, 0; model b: 0, 0 and 1, 1.
    table = honest_summary(hits, ["one", "one", "two"], ["a", "b"])
    assert table["mean"].tolist() == [0.25, 0.5]
    assert table["sd"].tolist() == pytest.approx([0.5, np.sqrt(1 / 3)])
    assert table["q50"].tolist() == [0, 0.5]
    assert table["q75"].tolist() == [0.25, 1]
    assert table["rank"].tolist() == [2, 1]


def test_the_shipped_figures_give_table_1_within_0_002_in_every_row():
    compared = beside(_table(published_hits()))
    assert len(compared) == 21 * 8
    means = compared[compared["statistic"] == "mean"]
    assert means["difference"].abs().max() <= 0.002
    numbers = compared[compared["statistic"] != "rank"]
    assert len(numbers) == 147
    # The paper's three decimals are cut, so that a difference is from 0 to 0.001.
    assert numbers["difference"].between(-1e-6, 0.001).all()
    assert numbers["same"].all()


def test_the_ranks_are_the_papers():
    ranks = beside(_table(published_hits())).query("statistic == 'rank'")
    assert (ranks["here"] == ranks["paper"]).all()


def test_without_empty_words_the_two_models_called_most_hurtful_are_not():
    plain = _table(published_hits("lexicon")).set_index("respondent_id")
    paper = published().set_index("respondent_id")
    for name in ("vicuna-7b", "vicuna-13b"):
        assert paper.loc[name, "rank"] <= 2
        assert plain.loc[name, "rank"] > 6
        assert plain.loc[name, "mean"] < paper.loc[name, "mean"] / 3
    assert plain.loc["gpt2", "mean"] == pytest.approx(paper.loc["gpt2", "mean"], abs=0.002)


@needs_text
def test_scoring_the_published_text_gives_the_shipped_figures_within_five_seconds():
    times = []
    for _ in range(2):  # the first run fills the cache of checksums and of the disk
        began = time.process_time()
        parts = score_published()
        times.append(time.process_time() - began)
    assert min(times) < 5
    for scoring in SCORINGS:
        assert (combine_parts(parts, scoring) == published_hits(scoring)).all()
    assert beside(_table(combine_parts(parts, "published")))["same"].all()


def test_what_is_written_as_nothing_is_frozen_as_unidecode_1_3_6_had_it():
    # The digest was made from that library: of all c from U+0080 with unidecode(c) == "".
    unwritten = [i for i in range(0x80, 0x110000) if _unwritten().match(chr(i))]
    assert len(unwritten) == 1072636
    digest = hashlib.sha256(np.array(unwritten, "<u4").tobytes()).hexdigest()
    assert digest == "3d410b90bddc98f4b2f71bb947d34eafe257aa9c571125bc16c99fd4a7832271"


@pytest.mark.parametrize("mark", ["ㅇ", "♥", "♔", "・・", "℃", "ー", "👮🏽", "�", "\u0361"])
def test_a_word_without_a_letter_in_ascii_is_the_empty_word_whatever_is_installed(mark):
    # "ㅇ" was missing; Unidecode 1.4 has letters for some of the others.
    assert _in_ascii(mark) == ""
    assert hurtful([[f"so {mark}", "so kind"]], WORDS, "words").tolist() == [[True, False]]
    assert not hurtful([[f"so {mark}"]], WORDS).any()


def test_letters_with_a_bar_are_spelled_out_in_ascii_alone():
    assert hurtful([["đồ"]], ["do", "👮"], "words").all()
    assert not hurtful([["đồ"]], ["do", "👮"]).any()


@needs_text
def test_names_of_identities_are_taken_out_and_nothing_else():
    words = lexicon()["lemma"]
    assert set(fairbelief.IDENTITIES) <= set(words)
    assert not set(fairbelief.IDENTITIES) & set(fairbelief.EVERYDAY)
    left = words[~words.isin([*fairbelief.EVERYDAY, *fairbelief.IDENTITIES])]
    unnamed = hurtful(completions("bert", "queer"), left)
    assert (published_hits("unnamed")[MODELS.index("bert"), 810:] == unnamed).all()


@needs_text
def test_sifting_takes_out_everyday_words_and_nothing_else():
    words = lexicon()["lemma"]
    assert set(fairbelief.EVERYDAY) <= set(words)
    sifted = hurtful(completions("gpt2", "queer"), words[~words.isin(fairbelief.EVERYDAY)])
    place = MODELS.index("gpt2")
    assert (published_hits("sifted")[place, 810:] == sifted).all()
    assert (published_hits("lexicon")[place, 810:] & sifted == sifted).all()
    assert sifted.sum() < published_hits("lexicon")[place, 810:].sum()


@needs_text
def test_the_shipped_templates_and_categories_follow_from_the_text():
    words = lexicon()
    assert sorted(words["category"].unique()) == sorted(fairbelief.CATEGORIES)
    groups = [templates(subset) for subset in SUBSETS]
    assert [len(frame) for frame in groups] == [810, 705]
    columns = ["type", "group", "gender", "age"]
    again = pd.concat(groups, ignore_index=True)[columns]
    pd.testing.assert_frame_equal(again, GROUPS[columns])
    names, hits = hurt_categories(completions("bert", "queer"), words)
    counts = published("categories").query("respondent_id == 'bert' and subset == 'queer'")
    shipped = counts.groupby(["category", "k"], observed=True)["n"].sum()
    for name, part in zip(names, hits.sum(axis=1), strict=True):
        expected = {(name, k + 1): n for k, n in enumerate(part) if n}
        assert shipped[shipped.index.get_level_values(0) == name].to_dict() == expected


@needs_text
def test_the_completions_are_those_of_the_templates_in_their_order():
    for subset in SUBSETS:
        with data.fetch(f"fairbelief_{subset}_bert").open(encoding="utf-8") as lines:
            asked = [json.loads(line)[2].lower() for line in lines]
        ours = templates(subset)["template"].str.lower().str.replace("[m]", "[mask]")
        assert asked == [text.removesuffix(".") + "." for text in ours]


def test_groups_are_balanced_as_the_identities_are():
    binary = GROUPS[GROUPS["subset"] == "binary"]
    assert binary["group"].value_counts().to_dict() == {"female": 405, "male": 405}
    assert set(binary["gender"]) == {"female", "male", "other"}
    assert set(binary["age"]) == {"young", "old", "other"}
    assert binary.groupby("identity").size().isin([15, 30]).all()


def test_curves_count_what_they_average():
    hits = np.array([[[1, 0], [1, 0], [0, 1]]], dtype=bool)
    groups = pd.DataFrame({"gender": ["f", "f", "m"]})
    frame = honest_by_group(hits, groups, "gender", ["a"]).set_index(["gender", "k"])
    assert frame["honest"].to_dict() == {("f", 1): 1, ("f", 2): 0, ("m", 1): 0, ("m", 2): 1}
    assert frame["templates"].to_dict() == {("f", 1): 2, ("f", 2): 2, ("m", 1): 1, ("m", 2): 1}


def test_hurtful_completions_of_all_groups_add_up_to_those_of_all_templates():
    hits = published_hits("lexicon")
    frame = honest_by_group(hits, GROUPS, ["subset", "gender", "age"], MODELS)
    total = (frame["honest"] * frame["templates"]).groupby(frame["respondent_id"]).sum()
    assert total[MODELS].to_numpy() == pytest.approx(hits.sum(axis=(1, 2)))


def test_intervals_hold_the_mean_and_shrink_to_it_where_identities_do_not_differ():
    hits = published_hits("lexicon")
    table = honest_intervals(hits, GROUPS, MODELS, seed=1, n_resamples=300)
    assert table["mean"].to_numpy() == pytest.approx(_table(hits)["mean"].to_numpy())
    assert ((table["low"] < table["mean"]) & (table["mean"] < table["high"])).all()
    assert (table["rank_low"] <= table["rank"]).all()
    assert (table["rank"] <= table["rank_high"]).all()
    same = np.ones((2, 1515, 3), bool)
    same[1] = False
    flat = honest_intervals(same, GROUPS, ["a", "b"], n_resamples=50)
    assert flat[["low", "high"]].to_numpy().tolist() == [[1, 1], [0, 0]]
    assert flat["rank_kept"].tolist() == [1, 1]
    assert rank_stability(same, GROUPS, n_resamples=20)["tau"] == pytest.approx(1)


def test_a_cluster_interval_has_the_width_that_theory_gives():
    rng = np.random.default_rng(3)
    groups = pd.DataFrame({"subset": "one", "identity": np.repeat(np.arange(200), 5)})
    levels = np.repeat(rng.random(200) < 0.3, 5)
    hits = np.repeat(levels[None, :, None], 4, axis=2)  # all templates of an identity alike
    table = honest_intervals(hits, groups, ["a"], seed=1)
    p = levels.mean()
    expected = 2 * 1.96 * np.sqrt(p * (1 - p) / 200)
    assert table["high"][0] - table["low"][0] == pytest.approx(expected, rel=0.1)


def test_gaps_are_differences_of_group_means_and_change_sign_with_the_order():
    hits, pair = published_hits("lexicon"), ("female", "male")
    gaps = group_gaps(hits, GROUPS, MODELS, "gender", pair, n_resamples=100)
    rows = {name: (GROUPS["gender"] == name).to_numpy() for name in pair}
    expected = hits[:, rows["female"]].mean(axis=(1, 2)) - hits[:, rows["male"]].mean(axis=(1, 2))
    assert gaps["gap"].to_numpy() == pytest.approx(expected)
    turned = group_gaps(hits, GROUPS, MODELS, "gender", pair[::-1], n_resamples=100)
    assert turned["gap"].to_numpy() == pytest.approx(-expected)
    with pytest.raises(ParameterError, match="No template has gender 'robot': it is one of"):
        group_gaps(hits, GROUPS, MODELS, "gender", ("female", "robot"))


def test_gaps_are_counted_by_their_intervals():
    gaps = pd.DataFrame(
        {"pair": "p", "gap": [0.1, 0.2, -0.1], "low": [0.05, -0.1, -0.2], "high": [0.2, 0.4, -0.05]}
    )
    row = gap_counts(gaps, "pair").loc["p"]
    assert row[["higher", "clearly higher", "clearly lower"]].tolist() == [2, 1, 1]
    assert row["mean gap"] == pytest.approx(0.2 / 3)


def _small(seed=0, identities=7, models=3):
    """Hits of a few models on identities of two groups, 3 in the first, with 1 to 3 templates."""
    rng = np.random.default_rng(seed)
    identity = np.repeat(np.arange(identities), rng.integers(1, 4, identities))
    groups = pd.DataFrame({"identity": identity, "sex": np.where(identity < 3, "f", "m")})
    groups["subset"] = "one"
    return rng.random((models, len(groups), 4)) < 0.4, groups


def test_the_p_value_of_a_gap_is_the_share_of_all_ways_to_deal_the_groups():
    hits, groups = _small()
    shares = hits.mean(axis=2)
    every = []
    for first in combinations(range(7), 3):
        inside = groups["identity"].isin(first).to_numpy()
        every.append(shares[:, inside].mean(axis=1) - shares[:, ~inside].mean(axis=1))
    every = np.array(every)
    gaps = group_gaps(hits, groups, list("abc"), "sex", ("f", "m"), n_resamples=20000)
    exact = (np.abs(every) >= np.abs(every[0]) - 1e-12).mean(axis=0)
    assert gaps["gap"].to_numpy() == pytest.approx(every[0])
    assert gaps["p"].to_numpy() == pytest.approx(exact, abs=0.015)
    assert gaps["null_low"].to_numpy() == pytest.approx(every.min(axis=0)), "one of 35 is 2.9 %"
    null = gap_null(hits, groups, list("abc"), "sex", ("f", "m"), n_resamples=20000)
    assert null["mean gap"].mean() == pytest.approx(every.mean(), abs=0.005)
    assert null["higher"].mean() == pytest.approx((every > 1e-12).sum(axis=1).mean(), abs=0.03)
    tails = (np.abs(every)[None] >= np.abs(every)[:, None] - 1e-12).mean(axis=1)
    assert null["p < 0.05"].mean() == pytest.approx((tails < 0.05).sum(axis=1).mean(), abs=0.05)


def test_gaps_of_groups_that_do_not_differ_are_rarely_significant():
    found = []
    for seed in range(60):
        hits, groups = _small(seed, identities=12, models=1)
        gaps = group_gaps(hits, groups, ["a"], "sex", ("f", "m"), n_resamples=200)
        found.append(gaps["p"][0] < 0.05)
    assert np.mean(found) < 0.12


def test_who_says_more_scores_higher_whatever_is_said():
    lengths = pd.DataFrame({"words": [0, 1, 3], "completions": [100, 300, 600]})
    draws = honest_of_lengths(lengths, 0.1, n_resamples=500)
    expected = (300 * 0.1 + 600 * (1 - 0.9**3)) / 1000
    assert draws.mean() == pytest.approx(expected, abs=0.002)
    assert draws.std() == pytest.approx(0.0117, rel=0.1)  # binomial, by hand
    null = length_null("lexicon", n_resamples=50)
    assert null.shape == (50, 21)
    means = dict(zip(MODELS, null.mean(axis=0), strict=True))
    assert means["gpt2-large"] > 5 * means["bert"]


@needs_text
def test_the_shipped_lengths_follow_from_the_text():
    counted = word_counts(completions("llama-7b", "queer"), lexicon()["lemma"])
    shipped = published("lengths").query("respondent_id == 'llama-7b' and subset == 'queer'")
    assert (
        shipped[["words", "completions", "lexicon"]].to_numpy().tolist()
        == counted[["words", "completions", "hits"]].to_numpy().tolist()
    )
    assert counted["completions"].sum() == 70500


def test_the_score_of_a_group_has_a_t_interval_over_its_units():
    mined = pd.DataFrame(
        {
            "respondent_id": "m",
            "rank": [1, 2] * 6,
            "identity": np.repeat(list("aabbcd"), 2),
            "sex": ["f"] * 8 + ["m"] * 2 + ["x"] * 2,
            "completion": ["rat", "kind", "rat", "rat", "a", "a", "a", "rat", *"aaaa"],
        }
    )
    table = group_scores(mined, ["rat"], "sex", unit="identity").set_index("sex")
    # Identities of f: 3/4 and 1/4; mean 1/2, standard error 1/4, t of one degree 12.706.
    assert table.loc["f", ["templates", "units", "honest"]].tolist() == [4, 2, 0.5]
    assert table.loc["f", ["low", "high"]].tolist() == [0, 1]
    alone = group_scores(mined, ["rat"], "sex").set_index("sex").loc["f"]
    half = 3.182446 * np.std([0.5, 1, 0, 0.5], ddof=1) / 2
    assert alone["high"] == pytest.approx(min(1, 0.5 + half))
    assert table.loc[["m", "x"], ["low", "high"]].isna().all(axis=None)
    with pytest.raises(ParameterError, match="A template has no sex"):
        group_scores(mined.assign(sex=None), ["rat"], "sex")


@given(
    st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.integers(0, 99),
    st.sampled_from(["whole", "gap", "half", "nameless", "constant", "shuffled"]),
)  # fmt: skip
def test_untidy_hits_give_a_documented_result_or_one_clear_error(models, n, k, seed, what):
    rng = np.random.default_rng(seed)
    hits = (rng.random((models, n, k)) < 0.5).astype(float)
    groups = pd.DataFrame(
        {
            "subset": rng.choice(["one", "two"], n),
            "identity": rng.integers(0, 3, n).astype(float),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    if what == "gap":
        hits.flat[0] = np.nan
    elif what == "half":
        hits.flat[0] = 0.5
    elif what == "nameless":
        groups.loc[0, ["subset", "identity", "sex"]] = np.nan
    elif what == "constant":
        hits[:] = 1
    elif what == "shuffled":
        groups.index = rng.permutation(n) + 10
    names = [f"m{i}" for i in range(models)]
    fails = what in ("gap", "half", "nameless")
    options = {"seed": 1, "n_resamples": 20}
    calls = {
        "summary": lambda: honest_summary(hits, groups["subset"], names),
        "group": lambda: honest_by_group(hits, groups, "sex", names),
        "intervals": lambda: honest_intervals(hits, groups, names, **options),
        "stability": lambda: pd.DataFrame([rank_stability(hits, groups, **options)]),
        "gaps": lambda: group_gaps(hits, groups, names, "sex", ("f", "m"), **options),
        "null": lambda: gap_null(hits, groups, names, "sex", ("f", "m"), **options),
        "resampled": lambda: pd.DataFrame(resampled(hits, groups, **options)[0]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {}
        for name, call in calls.items():
            try:
                found[name] = call()
            except ParameterError:
                assert fails or name in ("intervals", "stability", "gaps", "null")
    if fails:
        assert set(found) <= {"gaps", "null"}, "a template of no group is in neither of the two"
        assert what == "nameless" or not found
    else:
        assert {"summary", "group", "resampled"} <= set(found)
        assert found["summary"]["mean"].between(0, 1).all()
        assert found["summary"]["sd"].isna().all() == (groups["subset"].nunique() * k == 1)
    if "gaps" in found:
        gaps = found["gaps"]
        assert gaps["p"].between(0, 1).all()
        assert gaps["low"].isna().equals(gaps["high"].isna())


def test_a_template_without_identity_is_not_counted_with_another():
    hits, groups = _small()
    groups["identity"] = groups["identity"].astype(float)
    groups.loc[2, "identity"] = np.nan
    for call in (
        lambda: honest_intervals(hits, groups, list("abc")),
        lambda: rank_stability(hits, groups),
        lambda: group_gaps(hits, groups, list("abc"), "sex", ("f", "m")),
    ):
        with pytest.raises(ParameterError, match="Template 3 has no identity"):
            call()
    with pytest.raises(ParameterError, match="must be true or false, 1 or 0, got nan"):
        honest(np.array([[np.nan, 1.0]]))
    with pytest.raises(ParameterError, match="has one identity alone"):
        honest_intervals(hits, groups.assign(identity=1), list("abc"))
    with pytest.raises(ParameterError, match="two models or more"):
        rank_stability(hits[:1], groups.assign(identity=groups.index))
    with pytest.raises(ParameterError, match="compared with itself"):
        group_gaps(hits, groups.fillna(1), list("abc"), "sex", ("f", "f"))
    with pytest.raises(ParameterError, match="lemmas must be text, got nan"):
        hurtful([["a"]], [float("nan")])


def test_equal_models_share_a_rank_and_a_group_of_one_identity_has_no_interval():
    hits, groups = _small()
    hits[1] = hits[0]
    table = honest_intervals(hits, groups, list("abc"), n_resamples=50)
    assert table["rank"][0] == table["rank"][1]
    assert table["rank_kept"][0] == table["rank_kept"][1]
    lonely = groups.assign(sex=np.where(groups["identity"] == 0, "f", "m"))
    gaps = group_gaps(hits, lonely, list("abc"), "sex", ("f", "m"), n_resamples=50)
    assert gaps[["low", "high"]].isna().all(axis=None)
    assert gaps["p"].notna().all()
    counts = gap_counts(gaps.assign(pair="x"), "pair").loc["x"]
    assert counts[["models", "clearly higher", "clearly lower"]].tolist() == [3, 0, 0]


def test_the_breakdown_averages_the_curves_by_each_axis():
    curve = honest_by_group(published_hits("lexicon"), GROUPS, "subset", MODELS)
    table = breakdown(curve)["HONEST"]
    for axis in ("family", "scale", "subset"):
        weights = {"family": 7, "scale": 3, "subset": 2}[axis]
        assert len(table[axis]) == weights
        assert table[axis].mean() == pytest.approx(curve["honest"].mean())
    assert table["rank", "1"] == pytest.approx(curve.loc[curve["k"] == 1, "honest"].mean())
    sizes = np.array([1, 4, 15, 30, 50])
    assert (table["rank"].to_numpy() @ sizes) / 100 == pytest.approx(curve["honest"].mean())


def test_similarity_is_averaged_over_templates_and_families_are_kept_apart():
    a, b, c = "gpt2", "gpt2-medium", "bert"
    pairs = pd.DataFrame(
        [(a, b, "f", 1, 2, 0.5), (a, b, "m", 1, 1, 0.2), (a, c, "f", 1, 2, 0.1)],
        columns=["first", "second", "gender", "k", "templates", "similarity"],
    )
    frame = _mean_similarity(pairs, "family").set_index("family")["similarity"]
    assert frame["GPT2"] == pytest.approx((2 * 0.5 + 0.2) / 3)
    assert frame["between families"] == pytest.approx(0.1)
    by_gender = _mean_similarity(pairs, "gender").set_index("gender")["similarity"]
    assert by_gender.to_dict() == pytest.approx({"f": 0.3, "m": 0.2})


def test_agreement_is_one_for_the_same_completion_and_lower_for_another():
    rows = {"a": [["nurse", "pilot"]], "b": [["nurse", "volcano"]]}
    cube = made._similarity(["The woman is a [M]."], rows, [1, 2])
    assert cube[0, 0, 1, 0] == pytest.approx(1, abs=1e-5)
    assert cube[1, 0, 1, 0] < 0.95


def test_the_shipped_similarities_hold_every_pair_once():
    frame = published("similarity")
    pairs = frame[["first", "second"]].drop_duplicates()
    assert len(pairs) == 21 * 20 / 2
    assert not frame.duplicated(["first", "second", "subset", "gender", "age", "k"]).any()
    assert frame["similarity"].between(-1, 1.0001).all()
    assert set(frame["k"]) == set(made._SIMILARITY_RANKS)


def test_male_identities_get_the_least_similar_completions_and_agreement_falls_with_rank():
    # The paper's Figures 4 and 5 read the other way round; its script saves the distance.
    pairs = published("similarity").query("subset == 'binary'")
    by_gender = _mean_similarity(pairs, "gender").groupby("gender", observed=True)
    assert by_gender["similarity"].mean().idxmin() == "male"
    between = _mean_similarity(pairs, "family").query("family == 'between families'")
    heights = between.set_index("k")["similarity"]
    assert heights[1] > heights[20] > heights[100] - 0.01


@needs_text
def test_the_shipped_limits_follow_from_the_text():
    rows = [row for subset in SUBSETS for row in completions("gpt2", subset)]
    shipped = published("limits").query("respondent_id == 'gpt2'").set_index(["kind", "word"])
    assert shipped.loc["everyday", "completions"].to_dict() == {
        word: hurtful(rows, [word]).sum() for word in fairbelief.EVERYDAY
    }
    for kind, hits in missed(rows, lexicon()["lemma"]).items():
        assert shipped.loc[(kind, ""), "completions"] == hits.sum()


def test_a_sample_of_completed_sentences_is_seeded_and_holds_hits_alone():
    asked, rows = ["x [M].", "y [M].", "z [M]."], [["rat", "a"], ["rat ", "Rat"], ["c", "rats"]]
    label = "Counted for an everyday word alone"
    whole = lexicon_errors(asked, rows, ["rat"], ["rat"])[label]
    assert sorted(whole) == ["x rat.", "y rat."]
    assert lexicon_errors(asked, rows, ["rat"], ["rat"], n=1)[label] == whole[:1]


def test_errors_of_a_lexicon_are_told_apart():
    rows = [["we do", "a rat"], ["a Rat", "two rats"], ["gag reel", "kind"]]
    found = lexicon_errors(["I [M]"] * 3, rows, ["do", "rat", "gag reel"], ["do"])
    assert list(found.values()) == [["I we do"], ["I a Rat"], ["I two rats"], ["I gag reel"]]


QUERIES = [f"Template {i} is [M]." for i in range(30)]
ROWS = {"a": [[f"a{i}-{k}" for k in range(12)] for i in range(30)]}
ROWS["b"] = [[text.replace("a", "b") for text in row] for row in ROWS["a"]]


def test_sheets_are_even_seeded_and_hold_the_top_completions():
    names = ["ada", "ben", "cy"]
    frame = sheets(QUERIES, ROWS, names, instances=18, shared=3, top=10, seed=4)
    per = frame.groupby("annotator")["instance"].nunique()
    assert per.to_dict() == {"ada": 8, "ben": 8, "cy": 8}
    seen = frame.groupby("instance")["annotator"].nunique()
    assert (seen == 3).sum() == 3
    assert (seen == 1).sum() == 15
    assert len(frame) == 24 * 2 * 10
    row = frame.iloc[7]
    assert row["completion"] == f"{row['respondent_id']}{row['instance']}-{row['rank'] - 1}"
    pd.testing.assert_frame_equal(frame, sheets(QUERIES, ROWS, names, 18, 3, 10, 4))
    assert not frame.equals(sheets(QUERIES, ROWS, names, 18, 3, 10, 5))
    with pytest.raises(ParameterError, match="at most the 30 templates"):
        sheets(QUERIES, ROWS, names, instances=31)
    with pytest.raises(ParameterError, match="each only once"):
        sheets(QUERIES, ROWS, ["ada", "ada"], instances=3)


def _filled(tmp_path, choices):
    """One sheet a person, labelled in turn from the choices, saved and read back."""
    frame = sheets(QUERIES, ROWS, list(choices), instances=5, shared=5, top=2)
    paths = []
    for name, labels in choices.items():
        own = frame[frame["annotator"] == name]
        paths.append(tmp_path / f"{name}.csv")
        own.assign(label=[labels[i % len(labels)] for i in range(len(own))]).to_csv(
            paths[-1], index=False
        )
    return paths


def test_annotations_read_back_agree_as_computed_by_hand(tmp_path):
    paths = _filled(tmp_path, {"ada": ["s", "n"], "ben": ["s", "n"], "cy": ["s", "s"]})
    result = annotation_agreement(paths, ["s", "n"]).set_index("annotators")
    # 20 completions; ada and ben agree on all, cy with each of them on half.
    assert result.loc["ada, ben", "agreement"] == 1
    assert result.loc["ada, ben", "kappa"] == pytest.approx(1)
    assert result.loc["ada, cy", "agreement"] == 0.5
    assert result.loc["ada, cy", "kappa"] == pytest.approx(0)
    together = result.loc["ada, ben, cy"]
    assert together["agreement"] == pytest.approx(2 / 3)
    # Fleiss: observed (1 + 1/3) / 2 = 2/3; labels s 2/3 and n 1/3, so by chance 5/9.
    assert together["kappa"] == pytest.approx((2 / 3 - 5 / 9) / (1 - 5 / 9))


def test_a_faulty_sheet_is_refused_with_its_place(tmp_path):
    (path,) = _filled(tmp_path, {"ada": ["s", "?"]})
    with pytest.raises(ParameterError, match=r"ada\.csv, row 3: the label must be one of s, n"):
        annotation_agreement([path], ["s", "n"])
    with pytest.raises(ParameterError, match="twice"):
        annotation_agreement([path, path], ["s", "?"])
    with pytest.raises(ParameterError, match="two or more annotators"):
        annotation_agreement([path], ["s", "?"])
    with pytest.raises(ParameterError, match="at least one filled sheet"):
        annotation_agreement([])
    with pytest.raises(DataError, match="cannot be read"):
        annotation_agreement([tmp_path / "none.csv"])
    text = path.read_text()
    path.write_text(text.replace("ada,", "ada,x", 1))
    with pytest.raises(ParameterError, match=r"ada\.csv, row 2: instance must be a whole number"):
        annotation_agreement([path])
    path.write_text(text.replace(",label", ",mark", 1))
    with pytest.raises(ParameterError, match="has no column 'label'"):
        annotation_agreement([path])
    empty = sheets(QUERIES, ROWS, ["ada", "ben"], instances=2, shared=2)
    with pytest.raises(ParameterError, match="the sheet, row 2: the label must not be empty"):
        annotation_agreement(empty)


def test_own_templates_and_own_lexicon_are_files_in_any_language(tmp_path):
    own = tmp_path / "vorlagen.tsv"
    own.write_text("template\tGruppe\nDie Frau ist [M].\tFrau\nDer Mann ist [M].\tMann\n")
    frame = templates(own)
    assert list(frame.columns) == ["template", "Gruppe"]
    words = tmp_path / "woerter.csv"
    words.write_text("lemma,category\ndämlich,cds\n")
    hits = hurtful([["dämlich", "klug"], ["klug", "Dämlich"]], lexicon(words)["lemma"])
    assert honest_by_group(hits[None], frame, "Gruppe", ["m"])["honest"].tolist() == [1, 0, 0, 0]
    own.write_text("template\nDie Frau ist.\n")
    with pytest.raises(ParameterError, match=r"template 1: write \[M\] exactly once"):
        templates(own)
    words.write_text("word,category\nx,y\n")
    with pytest.raises(ParameterError, match="has no column 'lemma'"):
        lexicon(words)


def test_the_projects_own_lexicon_has_plain_single_lemmas_once():
    frame = lexicon("own")
    assert frame["category"].nunique() > 5
    assert not frame["lemma"].duplicated().any()
    assert frame["lemma"].str.fullmatch("[a-z]+").all()


def test_without_the_mirror_the_text_is_not_at_hand(monkeypatch, tmp_path):
    monkeypatch.delenv("PSYCHOMETRICS_DATA_MIRROR", raising=False)
    monkeypatch.setattr(data, "cache_dir", lambda: tmp_path)
    assert not text_at_hand()
    assert not text_at_hand("none")
    with pytest.raises(ParameterError, match="text must be one of auto, fetch, none"):
        text_at_hand("maybe")


@needs_text
def test_the_text_can_be_left_aside_where_it_is_at_hand():
    assert text_at_hand()
    assert text_at_hand("fetch")
    assert not text_at_hand("none")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"scoring": "honest"}, ParameterError, "scoring must be one of published, words"),
        ({"text": "yes"}, ParameterError, "text must be one of auto, fetch, none"),
        ({"kind": "diffusion"}, ParameterError, "kind must be one of auto, masked"),
        ({"group": "colour"}, ParameterError, "group must be a column of the templates .identity"),
        ({"k": 0}, ParameterError, "k must be a whole number from 1, got 0"),
        ({"seed": -1}, ParameterError, "seed must be a whole number from 0"),
        ({"models": " , "}, ParameterError, "Name at least one model"),
        ({"models": "nobody"}, RespondentError, "no folder here"),
        ({"live_templates": "no.csv"}, DataError, "cannot be read"),
        ({"live_lexicon": "no.csv"}, DataError, "cannot be read"),
    ],
)
def test_a_wrong_parameter_of_the_chapter_is_refused_in_one_sentence(wrong, error, message):
    with pytest.raises(error, match=message):
        check_parameters("08-beliefs", wrong)


def test_the_projects_own_templates_treat_all_groups_alike():
    frame = templates("own")
    bare = [
        text.lower().replace(identity, "PERSON")
        for text, identity in zip(frame["template"], frame["identity"], strict=True)
    ]
    assert pd.Series(bare).value_counts().tolist() == [10] * 5
    assert not frame["template"].duplicated().any()
    assert frame["gender"].value_counts()["woman"] == frame["gender"].value_counts()["man"]


def test_wrong_input_is_refused_in_one_sentence():
    with pytest.raises(ParameterError, match="same number of completions"):
        hurtful([["a"], ["b", "c"]], WORDS)
    with pytest.raises(ParameterError, match="same number of completions"):
        hurtful([], WORDS)
    with pytest.raises(ParameterError, match="scoring must be one of published, words, lexicon"):
        hurtful([["a"]], WORDS, "honest")
    with pytest.raises(ParameterError, match="Completions must be text, got None"):
        hurtful([["a", None]], WORDS)
    with pytest.raises(ParameterError, match="subset must be one of binary, queer"):
        completions("bert", "ternary")
    with pytest.raises(ParameterError, match=r"respondent_id must be one of .*gpt2"):
        completions("gpt5", "binary")
    with pytest.raises(ParameterError, match="table must be one of models, templates"):
        published("table9")


def test_hits_that_do_not_fit_their_templates_are_refused():
    hits, groups = np.ones((2, 3, 4), bool), pd.DataFrame({"subset": list("aab")})
    with pytest.raises(ParameterError, match=r"here \(2, 3, K\), got shape \(3, 4\)"):
        honest_summary(hits[0], groups["subset"], ["x", "y"])
    with pytest.raises(ParameterError, match=r"here \(1, 3, K\)"):
        honest_by_group(hits, groups, "subset", ["x"])
    with pytest.raises(ParameterError, match="the templates have no column 'sex'; subset"):
        honest_by_group(hits, groups, "sex", ["x", "y"])
    with pytest.raises(ParameterError, match="no column 'identity'"):
        rank_stability(hits, groups)


def test_a_veil_hides_its_content_until_asked_and_escapes_it():
    shown = veil(pd.DataFrame({"completion": ["<script>rat</script>"]}), "Look")
    assert "rat" not in repr(shown)
    assert "<details" in shown.data
    assert " open" not in shown.data.split("<summary>")[0]
    assert "blur" in shown.data
    assert "<script>" not in shown.data
    assert "src=" not in shown.data
    assert "http" not in shown.data


def test_the_table_beside_the_papers_shows_both_and_the_difference():
    compared = beside(_table(published_hits()))
    shown = side_by_side(compared)
    assert shown.shape == (21, 8)
    assert shown.loc["vicuna-7b", "mean"] == "0.257 (+0.88)", "paper, ours less it in thousandths"
    assert shown.loc["vicuna-7b", "rank"] == "1"


def test_the_curves_have_labelled_axes_and_a_line_for_every_model_and_group():
    _, axes = plt.subplots(2, 4)
    curve = honest_by_group(published_hits("lexicon"), GROUPS, "subset", MODELS)
    _honest_curves(curve, PAPER, "subset", axes)
    assert [len(ax.lines) for ax in axes.ravel()] == [6] * 7 + [0]
    assert axes[1, 0].get_xlabel() == "rank k"
    assert axes[0, 0].get_ylabel() == "HONEST (share)"
    plt.close("all")


def test_every_testable_claim_of_the_study_is_found_and_nothing_else():
    found = findings(n_resamples=50)
    listed = claims.published().query("study == 'fairbelief' and rule != 'untestable'")
    in_chapter = {name for name in listed.index if name.startswith("fb-read-")}  # of single words
    assert set(found.index) == set(listed.index) - in_chapter
    assert set(theme_gaps(n_resamples=20).index) == in_chapter
    assert found["value"].notna().all()
    both = found.dropna(subset=["low", "high"])
    assert (both["low"] <= both["high"]).all()
    means = found.filter(regex="^fb-mean-", axis=0)["value"]
    assert means.to_numpy() == pytest.approx(_table(published_hits())["mean"].to_numpy())
    counts = found.filter(regex="^fb-table-", axis=0)["value"]
    assert (counts == 21).all()
    family = PAPER["family"].to_numpy()
    plain = _table(published_hits("unnamed"))["mean"].to_numpy()
    rest = ~np.isin(family, ["VICUNA", "GPT2", "BLOOM"])
    expected = plain[family == "GPT2"].mean() - plain[rest].mean()
    assert found.loc["fb-lead-gpt2-words", "value"] == pytest.approx(expected)
    curve = published_hits("unnamed")
    halves = [curve[:, (GROUPS["subset"] == s).to_numpy()].mean(axis=(0, 1)) for s in SUBSETS]
    ranks = np.mean(halves, axis=0)
    fall = ranks[:20].mean() - ranks[20:].mean()
    assert found.loc["fb-decreasing-words", "value"] == pytest.approx(fall)
    of = published("categories").query("category == 'pr' and k <= 10 and gender == 'female'")
    women = of["n"].sum() / (21 * 10 * (GROUPS["gender"] == "female").sum())
    assert found.loc["fb-prostitution", "value"] < women


def test_gaps_stand_beside_what_dealing_the_identities_gives():
    gaps, counts = gap_table(["unnamed"], seed=1, n_resamples=400)
    row = counts.loc[("female minus male", "unnamed")]
    one = gaps[gaps["pair"] == "female minus male"]
    assert row["mean gap"] == pytest.approx(one["gap"].mean())
    assert row["low"] < row["mean gap"] < row["high"]
    assert row["null low"] < 0 < row["null high"]
    assert row["null low"] == pytest.approx(-row["null high"], rel=0.2)
    assert (row["higher"], row["clearly higher"]) == (18, 5)
    assert row["p"] > 0.05, "the direction is the paper's, the identities are too few to tell"
    assert row["higher"] <= row["null higher high"]


def test_the_order_of_the_models_hangs_on_the_scoring():
    table = order_table(["published", "lexicon", "unnamed"], n_resamples=40)
    assert table.loc[("published", "lexicon"), "tau"] == pytest.approx(0.5619, abs=1e-4)
    assert table.loc[("published", "unnamed"), "high"] < 0.2
    assert ((table["low"] <= table["tau"]) & (table["tau"] <= table["high"])).all()


def test_the_shipped_agreement_is_the_mean_of_the_shipped_pairs():
    pairs, agreement = published("similarity"), published("agreement")
    family = _mean_similarity(pairs, ["subset", "family"]).set_index(["subset", "family", "k"])
    shipped = agreement.query("by == 'family'").set_index(["subset", "group", "k"]).sort_index()
    expected = family["similarity"].rename_axis(["subset", "group", "k"])
    aligned = shipped["similarity"].to_numpy() - [expected[key] for key in shipped.index]
    assert np.abs(aligned).max() < 2e-4
    male = _mean_similarity(pairs.query("subset == 'binary'"), "gender").set_index(["gender", "k"])
    rows = agreement.query("by == 'gender' and subset == 'binary'").set_index(["group", "k"])
    assert rows.loc[("male", 20), "similarity"] == pytest.approx(
        male.loc[("male", 20), "similarity"], abs=2e-4
    )
    assert ((agreement["low"] <= agreement["similarity"]) | agreement["low"].isna()).all()
    contrasts = published("contrasts").set_index(["contrast", "subset"])
    curve = shipped["similarity"].loc["binary"].drop("between families").unstack()
    fall = (curve[20] - curve[1]).mean()
    name = "within families, rank 20 less rank 1"
    assert contrasts.loc[(name, "binary"), "value"] == pytest.approx(fall, abs=2e-4)


def test_figures_set_two_scorings_beside_each_other():
    hits = {name: published_hits(name) for name in ("published", "unnamed")}
    fig = curves_by_scoring(hits, GROUPS, PAPER, "gender")
    assert len(fig.subfigs) == 2
    assert len(fig.subfigs[1].axes[0].lines) == 3 * 2, "three sizes, two genders"
    _, axes = plt.subplots(1, 2)
    gap_forests(gap_table(["published", "unnamed"], n_resamples=20)[0], axes)
    assert [ax.get_title() for ax in axes] == ["female minus male", "old minus young"]
    assert [text.get_text() for text in axes[0].figure.legends[0].get_texts()] == [
        *(fairbelief.SCORING_NAMES[name] for name in ("published", "unnamed")),
        "identities dealt at random",
    ]
    plt.close("all")
