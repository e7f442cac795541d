"""Kinds of evidence within one base at a time, and their comparison with untrained heads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import psychometrics as pm
from psychometrics import (
    ask,
    item_scores,
    load_questionnaire,
    null_answers,
    population,
    population_table,
    pss,
    untouched_bases,
)
from psychometrics.exceptions import ParameterError
from psychometrics.measures.reliability import alpha, omega
from psychometrics.measures.scoring import keyed_items
from psychometrics.measures.structure import heterotrait_monotrait
from psychometrics.measures.validity import term_silhouettes
from psychometrics.models.sources import BASE_MODEL, SMOLLM2, base_path, find
from psychometrics.nulls.evidence import (
    evidence,
    jackknife,
    profile_agreement,
    profiles,
    reached,
    resized,
)
from psychometrics.paths import data_dir
from psychometrics.reports.five_tests import examine_answers, examine_models
from psychometrics.reports.own_base import UntouchedBase, keep_possible_twins
from psychometrics.reports.populations import _with_intervals_over_bases, size_verdicts
from psychometrics_book.studies.untrained import EXPECTED as SIGNS
from psychometrics_book.studies.untrained import (
    PLACEBOS,
    compare,
)
from recipes.null_populations import centred
from tests.families import save_family
from tests.test_scoring import own_questionnaire

TWO = ("challenges", "gad7")
EXPECTED = {TWO: 1}


@pytest.fixture(scope="module")
def loaded():
    return [load_questionnaire(name) for name in TWO]


@pytest.fixture(scope="module")
def answers():
    return null_answers(TWO, "random-heads", respondents=10, seed=3)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_profile_holds_the_item_scores_and_silhouettes_of_the_package(answers, loaded, shuffled):
    given = answers.sort_values("questionnaire", kind="stable") if shuffled else answers
    table = profiles(given, loaded)
    scores = item_scores(answers).pivot(index="respondent_id", columns="item_id", values="score")
    keys = {item.id: item.keying for q in loaded for item in q.items}
    for item, key in keys.items():
        np.testing.assert_allclose(table["source"][item], key * scores[item][table.index])
    widths = term_silhouettes(pss(answers))
    widths = widths.pivot(index="respondent_id", columns="item_id", values="silhouette")
    np.testing.assert_allclose(table["silhouette"], widths.loc[table.index, list(keys)], atol=1e-7)


def test_respondents_that_answered_different_prompts_are_refused(answers, loaded):
    with pytest.raises(ParameterError, match="different prompts"):
        profiles(answers.iloc[:-1], loaded)
    with pytest.raises(ParameterError, match="'gad7'"):
        profiles(answers[answers["questionnaire"] != "gad7"], loaded)


def test_evidence_of_one_set_is_what_the_functions_for_each_kind_give(answers, loaded):
    table = profiles(answers, loaded)
    found = evidence(table, loaded, EXPECTED)
    items = [item.id for item in loaded[1].items]
    assert found["alpha gad7"] == pytest.approx(alpha(table["source"][items])["alpha"])
    assert found["omega gad7"] == pytest.approx(omega(table["source"][items])["omega"], abs=1e-3)
    scores = [table["source"][[i.id for i in q.items]].mean(axis=1) for q in loaded]
    rank = scores[0].corr(scores[1], "spearman")
    assert found["correlations"] == found["ρ challenges gad7"] == pytest.approx(rank)
    ratio = heterotrait_monotrait(item_scores(answers), loaded)["htmt"].iloc[0]
    assert found["htmt challenges gad7"] == pytest.approx(ratio)
    assert found["items at 0.6"] == (table["silhouette"].mean() >= 0.6).sum()


def test_a_base_with_larger_scores_does_not_decide_for_the_other(loaded):
    # Items unrelated within each base: pooled, the difference of the bases makes them one thing.
    rng = np.random.default_rng(1)
    noise = null_answers(TWO, "noise", respondents=12)
    table = profiles(noise, loaded)
    bases = pd.Series(["one"] * 6 + ["two"] * 6)
    source = [column for column in table if column[0] == "source"]
    table[source] = rng.normal(size=(12, len(source)))
    moved = table.copy()
    moved.loc[(bases == "two").to_numpy(), source] += 50.0
    pooled, within = evidence(moved, loaded, EXPECTED), evidence(moved, loaded, EXPECTED, bases)
    assert pooled["alpha"] > 0.99
    pd.testing.assert_frame_equal(
        within[["alpha", "correlations"]],
        evidence(table, loaded, EXPECTED, bases)[["alpha", "correlations"]],
    )
    own = [evidence(moved[(bases == b).to_numpy()], loaded, EXPECTED) for b in ("one", "two")]
    assert within.loc["both", "alpha"] == pytest.approx((own[0] + own[1])["alpha"] / 2)


def test_two_respondents_on_a_base_have_silhouettes_and_nothing_that_rests_on_differences(loaded):
    table = profiles(null_answers(TWO, "noise", respondents=7), loaded)
    for bases in (["one"] * 5 + ["two"] * 2, ["one"] * 6 + ["two"]):
        found = evidence(table, loaded, EXPECTED, bases)
        known = found.loc["two"].dropna().index
        assert known.str.match("silhouette|lowest|items").all()
        two_kinds = found[["alpha", "omega"]].astype(float)
        np.testing.assert_allclose(two_kinds.loc["both"], two_kinds.loc["one"])
        n = bases.count("two")
        mean = (7 - n) / 7 * found["silhouette"]["one"] + n / 7 * found["silhouette"]["two"]
        assert found["silhouette"]["both"] == pytest.approx(mean)
        half = jackknife(lambda part: evidence(part, loaded, EXPECTED), table, bases)
        assert half.loc["two"].isna().all()
        assert half.loc["both", "alpha"] == pytest.approx(half.loc["one", "alpha"])


def test_resized_heads_have_the_size_asked_for_and_no_preference_for_a_class(answers):
    def centred(table):
        logs = np.log(table[["entailment", "neutral", "contradiction"]].to_numpy(float))
        logs = logs.reshape(10, -1, 3)
        logs -= logs.mean(axis=2, keepdims=True)
        return logs - logs.mean(axis=1, keepdims=True)

    like = null_answers(TWO, "noise", respondents=10)
    values, before = centred(resized(answers, like, 0.5)), centred(answers)
    sizes = (np.sqrt((x**2).mean(axis=(1, 2))) for x in (values, centred(like)))
    np.testing.assert_allclose(*(s * f for s, f in zip(sizes, (1, 0.5), strict=True)))
    ratio = (values / before).reshape(10, -1)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:, :1], ratio.shape), rtol=1e-4)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(-3, 3))
def test_the_comparison_counts_in_both_directions(draws, value):
    frame = pd.DataFrame({"x": [float(x) for x in draws]})
    found = reached(pd.Series({"x": float(value)}), frame).loc["x"]
    turned = reached(pd.Series({"x": -float(value)}), -frame).loc["x"]
    assert found["p"] == turned["p"]
    assert 0 < found["p"] <= 1
    assert found["reach"] == np.mean([x >= value for x in draws])


def test_no_draw_of_200_gives_the_least_p():
    found = reached(pd.Series({"x": 2.0}), pd.DataFrame({"x": np.linspace(0, 1, 200)})).loc["x"]
    assert found["p"] == pytest.approx(2 / 201)


def test_the_jackknife_of_means_is_students_interval_within_each_base():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=9), "y": rng.normal(size=9)})
    bases = pd.Series(["a"] * 4 + ["b"] * 5)
    found = jackknife(pd.DataFrame.mean, table, bases)
    of_base = table[bases == "b"]
    half = of_base.sem() * 2.7764451  # Student's quantile, 4 degrees of freedom
    np.testing.assert_allclose(found.loc["b"], half)
    both = np.sqrt((4 / 9 * found.loc["a"]) ** 2 + (5 / 9 * found.loc["b"]) ** 2)
    np.testing.assert_allclose(found.loc["both"], both)


@pytest.mark.timeout(300)
def test_the_shipped_populations_are_those_that_are_computed():
    loaded = [load_questionnaire(name) for name in ("gad7", "phq9", "soc13", *PLACEBOS)]
    members = population("encoders")
    heads = null_answers(loaded, "random-heads", len(members), **untouched_bases(members))
    found = evidence(profiles(heads, loaded), loaded, SIGNS)
    shipped = pd.read_parquet(data_dir() / "null_populations.parquet")
    first = shipped.query("size == 'start' and population == 0 and base == 'MiniLM'").iloc[0]
    known = first[found.index].astype(float)
    np.testing.assert_allclose(known, found.astype(float), atol=1e-3)
    counts = shipped.groupby(["size", "base"]).size()
    assert (counts.drop("trained") == 2000).all()
    assert (counts["trained"] == 1).all()


def test_the_shipped_table_has_the_members_as_they_answer():
    members = population("decoders")
    names = ["gad7", "phq9", "soc13"]
    loaded = [load_questionnaire(name) for name in names]
    found = evidence(profiles(ask(names, members, progress=False), loaded), loaded, SIGNS)
    shipped = pd.read_parquet(data_dir() / "null_populations.parquet")
    shipped = shipped.query("size == 'trained' and base == 'SmolLM2'").iloc[0]
    for kind in ("alpha", "correlations", "silhouette", "source and inverse"):
        assert shipped[kind] == pytest.approx(found[kind], abs=1e-3)
    table = population_table().query("family == 'SmolLM2' and layers == 30")
    items = item_scores(ask(names, list(table["respondent_id"]), progress=False))
    by_depth = pd.read_csv(data_dir() / "within_depth.csv")
    row = by_depth.query("base == 'SmolLM2' and size == 'matched' and evidence == 'alpha'").iloc[0]
    alphas = [alpha(keyed_items(items, q))["alpha"] for q in loaded]
    assert row["observed"] == pytest.approx(np.mean(alphas), abs=1e-3)
    assert row["members"] == len(table)
    assert (by_depth["draws"].max(), by_depth["size"].nunique()) == (2000, 5)


def test_scores_within_a_depth_have_no_mean_and_the_size_of_every_other_depth():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 1, 9, 2))
    depths = np.array(["3"] * 4 + ["6"] * 4 + ["5"])
    values[:2, :, 4:8] = 100 * values[:2, :, :4] + 7  # the same pattern, larger and elsewhere
    found, shared = centred(values, depths)
    assert shared.tolist() == list(range(8)), "alone at its depth: left out"
    np.testing.assert_allclose(found[:2, :, :4], found[:2, :, 4:])
    np.testing.assert_allclose(found[0, 0, :4].var(axis=0, ddof=1).mean(), 1)
    np.testing.assert_array_equal(found[2], values[2, :, :8])


def test_two_members_are_compared_with_heads_in_their_silhouettes_alone():
    found = compare("minilm-both-l6-s1,minilm-mnli-l6-s2", populations=2)
    assert found.draws.groupby(level=["size", "base"]).size().eq(2).all()
    assert len(found.draws.loc[("matched", "encoders"), "single"].iloc[0]) == 2
    known = found.rows({"silhouette": "terms", "alpha": "items"}, "trained")
    assert known["trained"].notna().groupby(level="label").all().to_dict() == {
        "terms": True, "items": False,
    }  # fmt: skip
    judged = known["verdict"].groupby(level="label").agg(set)
    assert judged["items"] == {"not printed"}
    assert judged["terms"] == {"too few populations to say"}
    assert found.found["p"].isna().all()
    assert any("encoders (2)" in remark for remark in found.remarks)


def test_a_p_value_of_five_per_cent_needs_thirty_nine_populations():
    rows = pd.MultiIndex.from_product([["start", "matched"], ["a"], ["silhouette"]],
                                      names=["size", "base", "evidence"])  # fmt: skip
    verdicts = {}
    for number in (20, 38, 39, 200):
        draws = pd.DataFrame({"silhouette": np.linspace(0, 0.1, number)})
        row = reached(pd.Series({"silhouette": 0.5}), draws).iloc[0]
        table = pd.DataFrame([row, row]).set_axis(rows).assign(low=0.4, high=0.6)
        verdicts[number] = size_verdicts(table)["a", "silhouette"]
    few = "too few populations to say"
    assert verdicts == {20: few, 38: few, 39: "higher", 200: "higher"}


def test_models_are_compared_with_heads_on_their_own_bases_or_are_not_judged(tmp_path, tiny_model):
    models = [save_family(tmp_path, family) for family in ("bert", "roberta", "qwen")]
    names = ",".join(map(str, [*models, tiny_model]))
    found = compare(names, populations=40)
    bases = {model.name: f"{model.name}-base" for model in models}
    assert found.base.to_dict() == bases | {tiny_model.name: "others"}
    own = found.found.xs("silhouette", level="evidence")
    heads = null_answers(found.questionnaires, "random-heads", 40, base=str(models[0]) + "-base")
    drawn = profiles(heads, found.questionnaires)["silhouette"].iloc[:, :29].mean(axis=1)
    shown = found.draws.loc[("start", "bert-base"), "silhouette"]
    np.testing.assert_allclose(shown, drawn, atol=1e-6)
    for kind in ("others", "both"):  # the mean has a base without heads
        assert own.loc[kind, "verdict"] == "cannot be judged here"
        assert own.loc[kind, ["null", "null high", "p"]].isna().all()
    assert own.loc[list(bases.values()), "p"].notna().all()
    assert any("manifest.json" in remark for remark in found.remarks)


def test_means_over_bases_have_intervals_with_bases_as_the_sample():
    bases = pd.Series(["a", "b", "c", "c"])
    index = pd.MultiIndex.from_product([["matched"], ["a", "b", "c", "both"], ["silhouette"]],
                                       names=["size", "base", "evidence"])  # fmt: skip
    observed, null = np.array([0.5, 0.6, 0.4, 0.475]), np.array([0.1, 0.3, 0.2, 0.2])
    table = pd.DataFrame({"observed": observed, "null": null, "low": np.nan, "high": np.nan}, index)
    row = _with_intervals_over_bases(table, bases).xs("both", level="base").iloc[0]
    apart, weights = np.array([0.4, 0.3, 0.2]), np.array([1, 1, 2]) / 4
    variance = 3 / 2 * (weights**2 * (apart - apart @ weights) ** 2).sum()
    assert row["high"] - 0.475 == pytest.approx(stats.t.ppf(0.975, 2) * variance**0.5)


def test_noise_in_single_precision_moves_no_kind_of_evidence():
    loaded = [load_questionnaire(name) for name in TWO]
    rng = np.random.default_rng(8)
    columns = profiles(null_answers(TWO, "noise", respondents=2), loaded).columns
    values = 0.05 * rng.normal(size=(16, len(columns)))
    table = pd.DataFrame(values, columns=columns)
    table[[column for column in columns if column[0] == "silhouette"]] = 0.6  # at the bar
    table.iloc[3] = table.iloc[7]  # two respondents who answer alike

    before = evidence(table, loaded, EXPECTED)
    assert before["items at 0.6"] == len(columns) / 3
    for size in (1e-9, 1e-7):
        noisy = table + rng.uniform(-size, size, table.shape)
        after = evidence(noisy, loaded, EXPECTED)
        pd.testing.assert_series_equal(after, before, rtol=0, atol=1e-4)


def test_three_respondents_are_enough_for_what_rests_on_differences_and_two_are_not(loaded):
    table = profiles(null_answers(TWO, "noise", respondents=3), loaded)
    kinds = ["alpha", "correlations", "source and inverse", "htmt challenges gad7"]
    assert evidence(table, loaded, EXPECTED)[kinds].notna().all()
    assert evidence(table[:2], loaded, EXPECTED)[kinds].isna().all()
    scores = pd.DataFrame({"x": [1.0, 2.0, 6.0]})
    half = jackknife(pd.DataFrame.mean, scores, pd.Series(["a"] * 3))
    assert half.loc["a", "x"] == pytest.approx(scores["x"].sem() * 4.302653)  # Student's, 2 df
    assert jackknife(pd.DataFrame.mean, scores[:2], pd.Series(["a"] * 2)).isna().all(axis=None)


def test_where_neutral_and_contradiction_are_pooled_each_has_half_of_the_rest(answers):
    pooled = answers.assign(neutral=np.nan, contradiction=np.nan)
    rest = (1 - answers["entailment"]) / 2
    halved = answers.assign(neutral=rest, contradiction=rest)
    for heads, like in ((pooled, answers), (answers, pooled)):
        same = (halved if one is pooled else one for one in (heads, like))
        pd.testing.assert_frame_equal(resized(heads, like), resized(*same))


def test_scores_of_inverse_terms_are_the_expected_weight_turned_round(answers, loaded):
    table = profiles(answers, loaded)
    shares = pss(answers)
    shares = shares[shares["polarity"] == -1]
    parts = (shares["pss"] * shares["weight"]).groupby(
        [shares[name] for name in ("respondent_id", "item_id", "template", "term")]
    )
    words = shares["intensifier"].nunique()
    expected = -(parts.sum() / words).groupby(["respondent_id", "item_id"]).mean().unstack()
    keys = {item.id: item.keying for q in loaded for item in q.items}
    for item, key in keys.items():
        np.testing.assert_allclose(table["inverse"][item], key * expected[item][table.index])


def test_the_lowest_silhouette_is_that_of_the_questionnaires_worst_item(answers, loaded):
    table = profiles(answers, loaded)
    found = evidence(table, loaded, EXPECTED)
    for questionnaire in loaded:
        own = table["silhouette"][[item.id for item in questionnaire.items]].mean()
        assert found[f"lowest {questionnaire.id}"] == pytest.approx(own.min())
        assert found[f"silhouette {questionnaire.id}"] == pytest.approx(own.mean())


def test_the_null_of_a_statistic_by_hand_without_the_draws_that_lack_it():
    draws = pd.DataFrame({"x": [0.0, 1.0, 2.0, np.nan], "y": np.nan})
    found = reached(pd.Series({"x": 2.0 + 5e-7, "y": 1.0, "x ": np.nan}), draws.assign(**{"x ": 1}))
    row = found.loc["x"]
    assert (row["draws"], row["reach"]) == (3, pytest.approx(1 / 3))  # 2 is as large, but for noise
    assert row[["null low", "null", "null high"]].tolist() == pytest.approx([0.05, 1.0, 1.95])
    assert row["p"] == 1.0  # 2 (1 + 1) / (1 + 3)
    assert found.loc[["y", "x "], ["null", "reach", "p"]].isna().all(axis=None)
    assert found.loc["y", "draws"] == 0


@pytest.mark.parametrize(
    ("spoil", "factor"),
    [
        (lambda frame: frame, -1), (lambda frame: frame, 0), (lambda frame: frame, 1e12),
        (lambda frame: frame, "two"), (lambda frame: frame.drop(columns="neutral"), 1),
        (lambda frame: frame.assign(entailment="high"), 1), (lambda frame: frame.iloc[:-1], 1),
        (lambda frame: frame.iloc[:0], 1), (lambda frame: frame[frame["respondent_id"] == "a"], 1),
    ],
)  # fmt: skip
def test_heads_are_resized_by_a_positive_factor_and_whole_answers_alone(answers, spoil, factor):
    with pytest.raises(ParameterError):
        resized(spoil(answers), answers, factor)


# --- agreement of independent respondents


def test_agreement_is_the_mean_correlation_over_pairs_with_a_jackknife_interval():
    # Correlations 1, -1 and 1/2: [1, 2, 3] with [2, 4, 6], [6, 4, 2] and [1, 3, 2].
    scores = pd.DataFrame([[1, 2, 3], [2, 4, 6], [6, 4, 2], [1, 3, 2]])
    found = profile_agreement(scores)
    assert found["value"] == pytest.approx((1 - 1 + 0.5 - 1 + 0.5 - 0.5) / 6)
    assert found[["respondents", "items"]].tolist() == [4, 3]
    without = [(-1 + 0.5 - 0.5) / 3, (-1 + 0.5 - 0.5) / 3, (1 + 0.5 + 0.5) / 3, (1 - 1 - 1) / 3]
    error = np.sqrt(3 / 4 * np.sum((np.array(without) - np.mean(without)) ** 2))
    half = 3.182446 * error  # Student's t with three degrees of freedom
    assert half > 2
    expected = pytest.approx([-1 / 3, 1])
    assert found[["low", "high"]].tolist() == expected, "no mean correlation lies beyond"

    # Correlations of 1/2 between the first three, and of 4 / √24 with their sum
    scores = np.eye(4)[:3] - np.eye(4)[3]
    found = profile_agreement(pd.DataFrame([*scores, scores.sum(axis=0)]))
    with_sum = 4 / np.sqrt(2 * 12)
    without = np.array([*[(0.5 + 2 * with_sum) / 3] * 3, 0.5])
    error = np.sqrt(3 / 4 * np.sum((without - without.mean()) ** 2))
    assert found["value"] == pytest.approx((0.5 + with_sum) / 2)
    assert found["value"] - found["low"] == pytest.approx(3.182446 * error, rel=1e-6)


@given(st.integers(0, 1000), st.integers(2, 6), st.integers(3, 9))
def test_agreement_does_not_depend_on_units_order_or_keys_shared_by_all(seed, number, items):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(number, items))
    expected = np.corrcoef(scores)[np.triu_indices(number, 1)].mean()
    units = scores * rng.uniform(0.1, 9, (number, 1)) + rng.normal(size=(number, 1))
    for same in (scores, units, scores[::-1], scores[:, ::-1]):
        assert profile_agreement(pd.DataFrame(same))["value"] == pytest.approx(expected)


def test_agreement_within_scales_ignores_that_one_scale_is_higher_than_another():
    scores = pd.DataFrame([[1.0, 2.0, 11.0, 12.0], [2.0, 1.0, 15.0, 14.0], [1.0, 2.0, 9.0, 8.0]])
    scales = pd.Series(["a", "a", "b", "b"])
    assert profile_agreement(scores)["value"] > 0.9
    # Without means: [-1, 1, -1, 1], [1, -1, 1, -1] and [-1, 1, 1, -1] in halves.
    assert profile_agreement(scores, scales)["value"] == pytest.approx((-1 + 0 + 0) / 3)


def test_a_head_and_its_negative_disagree_and_two_respondents_have_no_interval():
    head = np.array([0.2, 0.5, -0.1])
    found = profile_agreement(pd.DataFrame([head, -head]))
    assert found["value"] == pytest.approx(-1)
    assert found[["low", "high"]].isna().all()


@pytest.mark.parametrize(
    ("scores", "scales", "names"),
    [
        ([[1, 2, 3]], None, "scores"),
        ([[1], [2]], None, "scores"),
        ([[1, 2, 3], [1, None, 2]], None, "scores"),
        ([[1, 2, 3], [2, 2, 2]], None, "scores"),
        ([[0.1, 0.2, 0.7, 0.7], [1, 2, 3, 4], [0.3, 0.3, 0.4, 0.4]], [*"aabb"], "scores"),
        ([["low", "high"], ["low", "low"]], None, "scores"),
        ([[1, 2, 3], [3, 1, 2]], ["a", "b"], "scales"),
        ([[1, 2, 3], [3, 1, 2]], ["a", "a", None], "scales"),
        ([[1, 2, 3], [3, 1, 2]], {"x": "a", "y": "a", "z": "b"}, "scales"),
    ],
)
def test_agreement_of_what_has_none_is_refused_with_the_argument_to_mend(scores, scales, names):
    with pytest.raises(ParameterError, match=names):
        profile_agreement(pd.DataFrame(scores), scales and pd.Series(scales))


def test_a_respondent_that_occurs_twice_is_refused():
    with pytest.raises(ParameterError, match="scores"):
        profile_agreement(pd.DataFrame([[1, 2, 3], [3, 1, 2]], ["a", "a"]))


def test_cells_belong_to_items_by_name_and_without_names_by_place():
    scores = pd.DataFrame([[1, 2, 3, 4], [1, 2, 4, 3]], columns=[*"wxyz"])
    by_place = profile_agreement(scores, cells=pd.Series([*"aabb"]), draws=99)
    for cells in ([*"aabb"], pd.Series([*"bbaa"], [*"zyxw"])):
        assert profile_agreement(scores, cells=cells, draws=99).equals(by_place)


def test_agreement_is_split_into_parts_between_and_within_cells_with_exact_nulls():
    # Centred and in units of 1/√20: [-3, -1, 1, 3], [-3, -1, 3, 1]; means of cells [-2, -2, 2, 2].
    scores = pd.DataFrame([[1, 2, 3, 4], [1, 2, 4, 3]])
    found = profile_agreement(scores, cells=pd.Series([*"aabb"]), draws=9999)
    assert found["value"] == pytest.approx(16 / 20)
    assert found["between"] == pytest.approx(16 / 20)
    assert found["within"] == pytest.approx(0)
    # Of 24 permutations of one against the other, 4 reach .8: the product is 20 once, 16 thrice.
    assert found["p"] == pytest.approx(4 / 24, abs=0.015)
    # Within cells, the four equally likely products are 16 + 4, 16, 16 and 16 - 4.
    assert found["p_within"] == pytest.approx(3 / 4, abs=0.02)
    assert found["null"] == pytest.approx(16 / 20)


def test_the_part_between_cells_is_what_remains_on_average_after_dealing_within_them():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 6))
    scores[:, :3] += 3
    result = profile_agreement(pd.DataFrame(scores), cells=pd.Series([*"aaabbb"]))
    dealt = []
    for _ in range(2000):
        halves = [rng.permuted(half, axis=1) for half in (scores[:, :3], scores[:, 3:])]
        dealt.append(profile_agreement(pd.DataFrame(np.hstack(halves)))["value"])
    assert result["between"] + result["within"] == pytest.approx(result["value"])
    assert np.mean(dealt) == pytest.approx(result["between"], abs=0.01)


def _table(scores: pd.DataFrame, **more) -> pd.DataFrame:
    items = scores.rename_axis("respondent_id").reset_index().melt("respondent_id", None, "item_id")
    items = items.rename(columns={"value": "score"})
    items = items.assign(questionnaire="ipip20", mode="options", run=1)
    return pm.agreement.agreement_table(items, "ipip20", **more).iloc[0]


def _keys() -> np.ndarray:
    questionnaire = pm.load_questionnaire("ipip20", texts=False)
    keys = {}
    for scale in questionnaire.scales:
        keys |= questionnaire.keys(scale)

    return np.array([keys[item.id] for item in questionnaire.items])


@pytest.fixture
def twenty():
    names = [item.id for item in pm.load_questionnaire("ipip20", texts=False).items]
    values = np.random.default_rng(0).integers(1, 6, (5, 20))
    return pd.DataFrame(values, list("abcde"), names).astype(float)


def test_a_table_of_agreement_keys_the_items_and_names_one_respondents_part(twenty):
    keyed = np.where(_keys() > 0, twenty, 6 - twenty)
    correlations = np.corrcoef(keyed)
    row = _table(twenty, respondent="b")
    assert row["agreement"] == pytest.approx(correlations[np.triu_indices(5, 1)].mean())
    assert row["with_others"] == pytest.approx(np.delete(correlations[1], 1).mean())
    assert row[["respondents", "items", "note"]].tolist() == [5, 20, ""]


def test_a_respondent_that_shares_nothing_exceeds_its_null_with_others_in_5_of_100_draws(twenty):
    rng = np.random.default_rng(1)
    exceeded = 0
    for _ in range(60):
        alike = rng.normal(size=20) + 0.5 * rng.normal(size=(9, 20))
        values = np.vstack([alike, rng.normal(size=20)])
        row = _table(
            pd.DataFrame(np.clip(3 + values, 1, 5), list("abcdefghij"), twenty.columns),
            respondent="j",
        )
        assert row["null"] < row["null_with_others"], "others that agree make it wider"
        exceeded += row["with_others"] > row["null_with_others"]

    assert exceeded <= 8  # 5 % of 60, and three standard deviations more


def test_who_has_gaps_or_one_score_for_all_items_is_left_out_of_the_agreement_and_counted(twenty):
    whole = _table(twenty.loc[["a", "b", "c"]])
    twenty.loc["d", twenty.columns[3]] = np.nan
    row = _table(twenty)
    assert (row["respondents"], row["note"]) == (4, "left out: 1 with gaps")
    assert set(_keys()) == {-1, 1}
    for flat in (np.where(_keys() > 0, 4.0, 2.0), 4.0):
        twenty.loc["e"] = flat
        row = _table(twenty)
        note = "left out: 1 with gaps; left out: 1 with one score for all items"
        assert row["note"] == note
    assert row["agreement"] == pytest.approx(whole["agreement"])


def test_a_respondent_with_one_answer_in_each_run_is_left_out_whatever_it_is(twenty):
    two = pd.concat([twenty, twenty], keys=[1, 2])
    two.loc[(1, "e")] = 4.0
    two.loc[(2, "e")] = 5.0
    items = two.rename_axis(["run", "respondent_id"]).reset_index()
    items = items.melt(["run", "respondent_id"], None, "item_id", "score")
    items = items.assign(questionnaire="ipip20", mode="options")
    (row,) = pm.agreement.agreement_table(items, "ipip20").itertuples()
    assert (row.respondents, row.note) == (4, "left out: 1 with one score for all items")


@pytest.mark.parametrize("answers", ["to prompts", "to items"])
def test_a_copy_of_a_model_is_no_respondent_but_people_may_answer_alike(twenty, answers):
    twenty.loc[["d", "e"]] = twenty.loc[["a", "a"]].to_numpy() + 1e-7 * (answers == "to prompts")
    items = twenty.rename_axis("respondent_id").reset_index().melt("respondent_id", None, "item_id")
    items = items.rename(columns={"value": "score"}).assign(questionnaire="ipip20", mode="nli")
    if answers == "to items":
        items["run"] = 1

    (row,) = pm.agreement.agreement_table(items, "ipip20").itertuples()
    of_three = pm.agreement.agreement_table(items[items["respondent_id"] < "d"], "ipip20")
    if answers == "to items":
        assert (row.respondents, row.note) == (5, "")
    else:
        assert (row.respondents, row.note) == (3, "left out: 2 with the same scores as another")
        assert row.agreement == of_three["agreement"].item()


def test_the_same_answers_of_all_and_a_single_item_are_noted(twenty):
    twenty[:] = twenty.loc[["a"] * 5].to_numpy()
    assert _table(twenty)["note"] == "all gave the same answers"
    one = own_questionnaire(
        items=[{"id": "a", "text": "A"}], scales=[{"id": "s", "title": "S", "items": "all"}]
    )
    items = pd.DataFrame({"respondent_id": [*"xy"], "item_id": "a", "score": [1.0, 2.0]})
    table = pm.agreement.agreement_table(items.assign(questionnaire="own", run=1), one)
    assert table["note"].item() == "agreement needs two items"


def _judge(**columns) -> str:
    table = {"questionnaire": ["gad7", "placebo_weather"], "respondents": 3, "agreement": 0.6}
    table |= {"null": 0.3, "low": 0.2, "p_beyond": np.nan} | columns
    tables = {"agreement": pd.DataFrame(table), "scales": pd.DataFrame({"alpha": []})}
    tables |= {"runs": pd.DataFrame(), "bias": pd.DataFrame()}
    titles = {name: name for name in table["questionnaire"]}
    *_, twin = examine_answers(tables, titles)
    assert twin.name == "twin"
    return twin.status


def test_a_twin_test_is_open_in_doubt_and_placebos_have_no_say():
    assert _judge() == "passed"
    assert _judge(low=-0.1) == "open"
    assert _judge(low=np.nan) == "passed"  # two respondents have no interval
    assert _judge(p_beyond=0.2) == "open"
    assert _judge(p_beyond=0.01) == "passed"
    assert _judge(agreement=0.2) == "failed"
    assert _judge(agreement=[0.6, 0.2]) == "passed"
    assert _judge(agreement=[0.2, 0.6]) == "failed"
    assert _judge(questionnaire=["placebo_defects", "placebo_weather"], agreement=0.2) == "failed"
    assert _judge(questionnaire=["gad7", "phq9"], agreement=[0.6, 0.2]) == "open"


def test_models_on_another_network_are_no_twins_of_the_first_in_a_comparison():
    names = ["minilm-both-l6-s1", "smol-both-r8-s2", "minilm-snli-l6-s3"]
    compared = pm.comparisons.compare_models(names, "gad7", against=None)
    (row,) = compared.agreement.itertuples()
    assert (row.respondents, row.note) == (2, "left out: 1 on another network or depth")
    *_, twin = examine_models(compared.assessments, compared.agreement)
    assert len(twin.results) == 1


@pytest.mark.parametrize(
    ("base", "twin"),
    [
        (base_path, "minilm-snli-l6-s3"),
        (lambda: BASE_MODEL, "minilm-snli-l6-s3"),
        (lambda: str(find(SMOLLM2).folder), "smol-both-r8-s2"),
        (lambda: "somebody/other-base", None),
    ],
)
def test_twins_are_known_by_their_base_whatever_the_model_calls_it(base, twin):
    rivals = pd.DataFrame({"respondent_id": ["minilm-snli-l6-s3", "smol-both-r8-s2", "mine"]})
    kept = keep_possible_twins(rivals, UntouchedBase(base()))["respondent_id"].tolist()
    assert kept == [*filter(None, [twin]), "mine"]
    not_own = keep_possible_twins(rivals, UntouchedBase("embedded", is_own=False))
    assert not_own["respondent_id"].tolist() == ["mine"]


def test_one_respondent_has_no_agreement_and_the_table_says_why(twenty):
    row = _table(twenty.loc[["a"]])
    assert np.isnan(row["agreement"])
    assert row["note"] == "agreement needs two independent respondents"


def test_respondents_that_answer_by_scale_and_key_alone_agree_in_nothing_beyond(twenty):
    questionnaire = pm.load_questionnaire("ipip20", texts=False)
    rng = np.random.default_rng(1)
    for name in twenty.index:
        for number, scale in enumerate(questionnaire.scales):
            for item, key in questionnaire.keys(scale).items():
                twenty.loc[name, item] = 3 + 2 * (-1) ** number * key
    row = _table((twenty + rng.normal(0, 0.5, twenty.shape)).clip(1, 5))
    assert row["p"] < 0.01
    assert row["share"] == pytest.approx(1, abs=0.05)
    assert row["p_beyond"] > 0.05
