"""The PsychoBench study: published tables, their tests, and the claims computed from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures.norms import compare_means
from psychometrics_book.claims import published
from psychometrics_book.studies import psychobench
from psychometrics_book.studies.psychobench import published_tests


def published_tables() -> pd.DataFrame:
    table = pd.read_csv(pm.paths.data_dir() / "norms" / "psychobench_tables.csv")
    return table.rename(columns={"respondent": "respondent_id"})


def test_published_tables_are_complete():
    sizes = published_tables().groupby("study").size().to_dict()
    # 28 subscales, 8 dimensions and 41 interests of six models; no dimensions for five roles
    assert sizes == {
        "models": 6 * (28 + 8 + 41), "roles": 5 * (28 + 41),
        "wordings": 30, "assistant": 10, "temperature": 25,
    }  # fmt: skip
    assert not published_tables().duplicated(["study", "table", "questionnaire", "scale",
                                              "respondent_id"]).any()  # fmt: skip


def test_one_published_comparison_by_hand():
    # gpt-4 on ICB: 1.9 ± 0.4 (10) against 3.66 ± 0.76 (254); F = 3.61, not significant at 0.01
    table = published_tests("models").set_index(["respondent_id", "questionnaire", "scale"])
    row = table.loc[("gpt-4", "icb", "overall")]
    assert stats.f.sf((0.76 / 0.4) ** 2, 253, 9) * 2 == pytest.approx(row["f_p"])
    t, p = stats.ttest_ind_from_stats(
        1.9, 0.4, 10, 3.66, 0.76, 254, equal_var=bool(row["f_p"] > 0.01)
    )
    assert [row["t"], row["p"]] == pytest.approx([t, p])
    assert row["significant"]
    assert row["settled"]


def test_settled_comparisons_survive_every_corner_of_the_rounding():
    table = published_tests("models")
    firm = table[table["settled"]].sample(20, random_state=1)
    for row in firm.itertuples():
        for mean in (row.mean - 0.05, row.mean + 0.05):
            for sd in (max(row.sd - 0.05, 1e-6), row.sd + 0.05):
                again = compare_means(mean, sd, row.n, row.norm_mean, row.norm_sd, row.norm_n)
                assert (again["p"].item() < 0.01) == row.significant
    assert not table["settled"].all()


def test_a_study_is_compared_with_its_own_baseline():
    table = published_tests("assistant", "with").set_index("scale")
    _, p = stats.ttest_ind_from_stats(4.06, 0.27, 10, 4.28, 0.33, 10)
    assert table.loc["conscientiousness", "p"] == pytest.approx(p)
    with pytest.raises(ParameterError, match="against"):
        published_tests("wordings", "v9")
    with pytest.raises(ParameterError, match="study"):
        published_tests("wordings")


COUNTED = [
    f"psychobench-{name}"
    for name in ("undifferentiated", "masculine-runs", "no-feminine-runs", "masculine-trend",
                 "counts-of-sex-roles")
]  # fmt: skip


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return psychobench.claim_findings(draws=20)


def test_every_testable_claim_has_a_finding_and_no_other(found):
    table = published().query("study == 'psychobench'")
    assert set(found.index) == set(table.index[table["rule"] != "untestable"])
    assert found["value"].notna().all()
    drawn = found.drop(index=[name for name in found.index if name in COUNTED])
    assert drawn[["null", "null low", "null high"]].notna().all(axis=None)
    assert len(table) >= 45


def test_a_mean_over_models_is_of_their_distances_from_people(found):
    tests = psychobench.published_tests("models")
    five = tests[(tests["scale"] == "openness") & (tests["respondent_id"] != "gpt-4-jb")]["delta"]
    row = found.loc["psychobench-openness"]
    low, high = stats.t.interval(0.95, 4, five.mean(), five.sem())
    assert row[["value", "low", "high"]].tolist() == pytest.approx([five.mean(), low, high])


def test_a_difference_of_two_roles_is_in_peoples_standard_deviations(found):
    # Tables 8 to 20: hero against default on the Lying scale, both groups' deviations averaged.
    table = published_tables().query(
        "study == 'roles' and questionnaire == 'epq-r' and scale == 'lying'"
    ).set_index("respondent_id")  # fmt: skip
    norms = pm.norms.norm_table(["epq-r"], paper=True).query("scale == 'lying'")["norm_sd"]
    expected = (table["mean"]["hero"] - table["mean"]["default"]) / norms.mean()
    assert found.loc["psychobench-hero-lying", "value"] == pytest.approx(expected)


def test_a_difference_of_two_respondents_is_tested_with_welchs_degrees_of_freedom(found):
    # Table 15 prints 38.5 (1.7) for the default; Table 3 39.9 (0.3) and 38.5 (1.7), ten runs each.
    test = stats.ttest_ind_from_stats(39.9, 0.3, 10, 38.5, 1.7, 10, equal_var=False)
    row = found.loc["psychobench-self-efficacy-gpt-4"]
    assert row["p of the claim"] == pytest.approx(test.pvalue)
    assert test.pvalue > psychobench.PAPER_LEVEL > 0


def test_roles_differ_as_in_welchs_analysis_of_variance(monkeypatch):
    import pingouin

    rng = np.random.default_rng(0)
    runs = {name: rng.normal(k / 3, 1 + k / 2, 10) for k, name in enumerate("abcd")}
    cells = {("roles", k, "q", "s"): [x.mean(), x.std(ddof=1), 10] for k, x in runs.items()}
    long = pd.DataFrame(runs).melt()
    expected = pingouin.welch_anova(long, dv="value", between="variable")["p_unc"].item()
    own = psychobench._roles_differ(cells, "roles", list(runs), ("q", "s"))
    assert own == pytest.approx(expected)


def test_the_trend_of_masculine_runs_is_cochrans_and_armitages(found):
    # 0, 2 and 4 of ten runs: T = 4, its variance .2 x .8 x 20 = 3.2.
    row = found.loc["psychobench-masculine-trend"]
    assert row["value"] == pytest.approx(0.2)
    assert row["p of the claim"] == pytest.approx(2 * stats.norm.sf(4 / np.sqrt(3.2)))


def test_counts_of_significant_differences_are_those_of_the_tests(found):
    wordings = psychobench.published_tests("wordings", "v1", correction="none")
    others = wordings[wordings["respondent_id"] != "v1+cot"]
    assert found.loc["psychobench-prompts", "value"] == others["significant"].sum()


def test_a_likeness_to_people_is_tested_by_the_size_of_the_distance(found):
    women = pm.norms.compare_norms(
        published_tables().query("study == 'models'").drop(columns="study"),
        pm.norms.norm_table(["bsri"], paper=True).query("group == 'Workers (Women)'"),
    ).query("scale == 'feminine' and respondent_id not in ['gpt-4', 'gpt-4-jb']")
    assert len(women) == 4
    row = found.loc["psychobench-femininity"]
    assert row["value"] == pytest.approx(women["delta"].abs().mean())
    test = stats.ttest_1samp(women["delta"].abs(), psychobench._MEDIUM_EFFECT)
    assert row["p of the claim"] == pytest.approx(test.pvalue)
    low, high = test.confidence_interval()
    assert row[["low", "high"]].tolist() == pytest.approx([low, high])


def test_the_distance_of_an_ordinary_person_is_a_mean_over_scales(found):
    tests = psychobench.published_tests("roles").query("respondent_id == 'ordinary'")
    scales = tests[tests["questionnaire"] != "cabin"].groupby(["questionnaire", "scale"])
    expected = scales["delta"].mean().abs().mean()
    assert found.loc["psychobench-ordinary-like-people", "value"] == pytest.approx(expected)


def test_scores_that_are_not_above_people_are_tested_against_a_bar_above_people(found):
    men = pm.norms.norm_table(["bsri"], paper=True).set_index(["group", "scale"])
    m, sd, n = men.loc[("Workers (Men)", "masculine"), ["norm_mean", "norm_sd", "norm_n"]]
    # Table 2 prints 4.5 (0.5) for the jailbroken GPT-4, the higher of the two, ten runs.
    bar = m + psychobench._MEDIUM_EFFECT * sd
    row = found.loc["psychobench-masculinity-not-gpt-4"]
    own = published_tables().query("study == 'models' and scale == 'masculine'")
    own = own.set_index("respondent_id").loc["gpt-4-jb", ["mean", "sd", "n"]]
    assert own["mean"] == 4.5
    test = pm.norms.compare_means(*own, bar, sd, n, level=psychobench.PAPER_LEVEL)
    assert row["p of the claim"] == pytest.approx(test["p"].iloc[0])


def test_random_tables_have_the_mean_of_evenly_drawn_options():
    table = psychobench._random_table(np.random.default_rng(0))
    five = table[table["questionnaire"] == "bfi"]
    assert five["mean"].mean() == pytest.approx(3, abs=0.02)
    # Mean of ten items of variance 2: standard deviation of a run is the root of one fifth.
    openness = five[five["scale"] == "openness"]["sd"]
    assert openness.mean() == pytest.approx(np.sqrt(0.2), abs=0.05)
    efficacy = table[table["questionnaire"] == "gse"]["mean"]
    assert efficacy.mean() == pytest.approx(25, abs=0.8)
