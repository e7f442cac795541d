"""What PsychoBench's procedure finds where nothing is there, and its claims from the tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import psychometrics as pm
from psychometrics.claims import published, verdicts
from psychometrics.exceptions import ParameterError
from psychometrics.studies import psychobench
from psychometrics.studies import psychobench_nulls as nulls


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return nulls.claim_findings(draws=20)


def test_every_testable_claim_has_a_finding_and_no_other(found):
    table = published().query("study == 'psychobench'")
    assert set(found.index) == set(table.index[table["rule"] != "untestable"])
    assert found["value"].notna().all()
    assert found[["null", "null_low", "null_high"]].notna().all(axis=None)
    assert len(table) >= 45


def test_a_mean_over_models_is_of_their_distances_from_people(found):
    tests = psychobench.published_tests("models")
    five = tests[(tests["scale"] == "openness") & (tests["respondent_id"] != "gpt-4-jb")]["delta"]
    row = found.loc["psychobench-openness"]
    low, high = stats.t.interval(0.95, 4, five.mean(), five.sem())
    assert row[["value", "low", "high"]].tolist() == pytest.approx([five.mean(), low, high])


def test_a_difference_of_two_roles_is_in_peoples_standard_deviations(found):
    # Tables 8 to 20: hero against default on the Lying scale, both groups' deviations averaged.
    table = psychobench.published_tables().query(
        "study == 'roles' and questionnaire == 'epq-r' and scale == 'lying'"
    ).set_index("respondent_id")  # fmt: skip
    norms = pm.norms.norm_table(["epq-r"], paper=True).query("scale == 'lying'")["norm_sd"]
    expected = (table["mean"]["hero"] - table["mean"]["default"]) / norms.mean()
    assert found.loc["psychobench-hero-lying", "value"] == pytest.approx(expected)


def test_counts_of_significant_differences_are_those_of_the_tests(found):
    wordings = psychobench.published_tests("wordings", "v1", correction="none")
    others = wordings[wordings["respondent_id"] != "v1+cot"]
    assert found.loc["psychobench-prompts", "value"] == others["significant"].sum()
    women = pm.norms.compare_norms(
        psychobench.published_tables().query("study == 'models'").drop(columns="study"),
        pm.norms.norm_table(["bsri"], paper=True).query("group == 'Workers (Women)'"),
    ).query("scale == 'feminine' and respondent_id not in ['gpt-4', 'gpt-4-jb']")
    assert len(women) == 4
    assert found.loc["psychobench-femininity", "value"] == women["significant"].sum()


def test_random_answers_reach_the_claim_of_dark_traits_and_not_that_of_self_efficacy(found):
    table = published().query("study == 'psychobench'").join(found)
    verdict = verdicts(table.dropna(subset=["value"]))
    assert verdict["psychobench-psychopathy"] == "reproduced but also found in the null"
    assert verdict["psychobench-self-efficacy"] == "reproduced"
    assert verdict["psychobench-prompts"] == "not reproduced"


def test_random_tables_have_the_mean_of_evenly_drawn_options():
    table = nulls._random_tables()(np.random.default_rng(0))
    five = table[table["questionnaire"] == "bfi"]
    assert five["mean"].mean() == pytest.approx(3, abs=0.02)
    # Mean of ten items of variance 2: standard deviation of a run is the root of one fifth.
    openness = five[five["scale"] == "openness"]["sd"]
    assert openness.mean() == pytest.approx(np.sqrt(0.2), abs=0.05)
    efficacy = table[table["questionnaire"] == "gse"]["mean"]
    assert efficacy.mean() == pytest.approx(25, abs=0.8)


def test_habits_give_the_internal_consistency_of_the_formula():
    gse = pm.load_questionnaire("gse", texts=False)  # ten items, four options, none reversed
    answers = nulls.empty_answers(gse, "habit", respondents=2000, runs=1)
    keyed = pm.scoring.keyed_items(pm.item_scores(answers), gse)
    assert pm.reliability.alpha(keyed)["alpha"] == pytest.approx(10 / 14, abs=0.03)
    random = nulls.empty_answers(gse, "random", respondents=2000, runs=1)
    keyed = pm.scoring.keyed_items(pm.item_scores(random), gse)
    assert abs(pm.reliability.alpha(keyed)["alpha"]) < 0.12


def test_empty_answers_are_of_their_kind_and_strange_ones_are_refused():
    agree = nulls.empty_answers("ipip20", "agree", respondents=2, runs=3)
    assert (agree["value"] == 5).all()
    assert agree.groupby(["respondent_id", "run"]).size().tolist() == [20] * 6
    middle = nulls.empty_answers("gse", "middle", runs=1)
    assert (middle["value"] == 2).all()
    with pytest.raises(ParameterError, match="kind must be one of"):
        nulls.empty_answers("ipip20", "honest")


def test_counts_of_empty_answers_are_what_compare_norms_finds():
    gse, bfi = (pm.load_questionnaire(name, texts=False) for name in ("gse", "bfi"))
    answers = pd.concat([nulls.empty_answers(q, "agree") for q in (gse, bfi)])
    table = pm.norms.compare_norms(pm.scale_scores(answers, [gse, bfi]))
    found = nulls.beside_empty(table, draws=3)
    assert found["agree"].tolist() == found["agree-1"].tolist()
    assert found.loc["significant", "agree"] == table["significant"].sum()
    assert (found.loc["comparisons"] == 6).all()
    ends = found[["random, least", "random", "random, most"]].to_numpy()
    assert (ends[:, :-1] <= ends[:, 1:]).all(), "the median lies between the least and the most"
    assert "agree, least" not in found, "chance plays no part there"
    assert found.loc["significant", "middle"] >= found.loc["significant", "random"]


def test_generalisability_of_a_deal_is_that_of_its_scales():
    mini = pm.load_questionnaire("ipip20")
    rng = np.random.default_rng(0)
    cells = [
        nulls.empty_answers(mini, "random", respondents=6, runs=1, seed=seed).assign(wording=name)
        for seed, name in enumerate("abc")
    ]
    answers = pd.concat(cells)
    answers["value"] += answers["respondent_id"].map(
        dict(zip(answers["respondent_id"].unique(), rng.normal(size=6) * 0.1, strict=True))
    )
    answers["value"] = answers["value"].clip(1, 5)
    found = nulls.dealt_generalisability(answers, mini, draws=1, seed=3)
    ids = [item.id for item in mini.items]
    order = np.random.default_rng(3).permutation(len(ids))
    values = []
    for part in np.array_split(order, 5):
        rows = []
        for name, cell in answers.groupby("wording"):
            keyed = pm.scoring.keyed_items(pm.item_scores(cell.drop(columns="wording")), mini)
            mean = keyed.iloc[:, part].mean(axis=1).reset_index(name="score")
            rows.append(mean[["respondent_id", "score"]].assign(wording=name))
        table = pd.concat(rows)
        values.append(
            pm.reliability.generalisability(table, ["respondent_id", "wording"])["relative"].item()
        )
    assert found.item() == pytest.approx(np.mean(values))
    with pytest.raises(ParameterError, match="every item at each wording"):
        nulls.dealt_generalisability(answers.iloc[1:], mini)


def test_consistency_of_habits_falls_with_reversed_items():
    found = nulls.empty_consistency(["gse", "lot-r"], respondents=500).set_index("questionnaire")
    assert found.loc["gse", "habit_low"] < 10 / 14 < found.loc["gse", "habit_high"]
    assert found.loc["lot-r", "habit"] < 0.1  # half of its items are reversed
    assert (found["random_low"] < 0).all()


def test_items_that_two_questionnaires_share_count_in_the_shorter_only():
    both = [pm.load_questionnaire(name) for name in ("ipip50", "ipip20")]
    answers = pd.concat(
        [nulls.empty_answers(q, "random", respondents=2, runs=2, seed=n)
         for n, q in enumerate(both)]
    )  # fmt: skip
    found = psychobench.five_traits(answers, both)
    assert found.groupby("questionnaire")["items"].sum().to_dict() == {"ipip50": 60, "ipip20": 40}
    short = {item.text for item in both[1].items}
    own = answers[answers["questionnaire"] == "ipip50"]
    stable = both[0].scale("emotional_stability")
    ids = [i.id for i in both[0].members(stable) if i.text not in short]
    keys = pd.Series(both[0].keys(stable))[ids]
    values = own[own["item_id"].isin(ids) & (own["respondent_id"] == "random-1")]
    turned = np.where(values["item_id"].map(keys) > 0, values["value"], 6 - values["value"])
    row = found.query(
        "respondent_id == 'random-1' and questionnaire == 'ipip50' and trait == 'neuroticism'"
    )
    assert row["score"].item() == pytest.approx(6 - turned.mean())
    with pytest.raises(ParameterError, match="no answers to 'ipip20'"):
        psychobench.five_traits(own, both)
