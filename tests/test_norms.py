"""Scores of questionnaires and their comparison with norms, against other implementations."""

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from psychometrics.exceptions import ParameterError
from psychometrics.measures.norms import compare_means, corrected


def samples(seed, n1=10, n2=80, sd1=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.4, sd1, n1), rng.normal(0.0, 1.0, n2)


def summary_test(x, y, **options):
    return compare_means(
        x.mean(), x.std(ddof=1), len(x), y.mean(), y.std(ddof=1), len(y), **options
    ).iloc[0]


def test_equal_variances_give_students_test_of_pingouin():
    x, y = samples(0)
    ours, theirs = summary_test(x, y), pingouin.ttest(x, y, correction=False).iloc[0]
    assert ours["test"] == "student"
    assert ours["t"] == pytest.approx(theirs["T"])
    assert ours["p"] == pytest.approx(theirs["p_val"])
    assert abs(ours["g"]) == pytest.approx(abs(pingouin.compute_effsize(x, y, eftype="hedges")))


def test_unequal_variances_give_welchs_test_and_interval_of_statsmodels():
    x, y = samples(1, sd1=0.1)
    ours = summary_test(x, y)
    means = CompareMeans(DescrStatsW(x), DescrStatsW(y))
    t, p, df = means.ttest_ind(usevar="unequal")
    assert ours["test"] == "welch"
    assert [ours["t"], ours["p"], ours["df"]] == pytest.approx([t, p, df])
    assert [ours["low"], ours["high"]] == pytest.approx(means.tconfint_diff(usevar="unequal"))


def test_the_variance_test_is_that_of_the_f_table():
    # upper 2.5 % point of F(9, 9) is 4.03
    row = compare_means(0, np.sqrt(4.026), 10, 0, 1, 10).iloc[0]
    assert row["f"] == pytest.approx(4.026)
    assert row["f_p"] == pytest.approx(0.05, abs=1e-4)
    assert compare_means(0, 1, 10, 0, np.sqrt(4.026), 10)["f_p"].item() == pytest.approx(row["f_p"])


def test_the_interval_of_delta_is_bonetts_by_hand():
    # delta = (4 - 2) / 1; its variance 2² / (2 · 4) + 2² / (1² · 8) + 1 / 4 = 1.25
    row = compare_means(4, 2, 9, 2, 1, 5).iloc[0]
    half = 1.959964 * np.sqrt(1.25)
    assert row["delta"] == 2
    assert [row["delta_low"], row["delta_high"]] == pytest.approx([2 - half, 2 + half], abs=1e-5)


def test_a_single_score_is_compared_as_crawford_and_howell_do():
    # t = (60 - 50) / (10 * sqrt(1 + 1/15)) = 0.9682, df = 14
    row = compare_means(60, np.nan, 1, 50, 10, 15).iloc[0]
    assert row["test"] == "single"
    assert [row["t"], row["df"], row["delta"]] == pytest.approx(
        [10 / (10 * np.sqrt(16 / 15)), 14, 1]
    )
    assert row["p"] == pytest.approx(2 * stats.t.sf(row["t"], 14))
    assert np.isnan(row["f"])
    assert np.isnan(row["g"])


@settings(max_examples=50, deadline=None)
@given(
    st.floats(-5, 5), st.floats(0.1, 3), st.integers(2, 50),
    st.floats(-5, 5), st.floats(0.1, 3), st.integers(2, 500),
)  # fmt: skip
def test_the_interval_excludes_zero_exactly_where_the_test_is_significant(m1, s1, n1, m2, s2, n2):
    row = compare_means(m1, s1, n1, m2, s2, n2).iloc[0]
    if abs(row["p"] - 0.05) > 1e-6:
        assert (row["p"] < 0.05) == (row["low"] > 0 or row["high"] < 0)
    other = compare_means(m2, s2, n2, m1, s1, n1).iloc[0]
    assert other["p"] == pytest.approx(row["p"])
    assert other["t"] == pytest.approx(-row["t"])


def test_holm_and_benjamini_hochberg_by_hand_and_within_families():
    table = pd.DataFrame({"respondent_id": ["a"] * 3 + ["b"], "p": [0.01, 0.03, 0.04, 0.04]})
    holm = corrected(table, level=0.05)
    assert holm["p_corrected"].tolist() == pytest.approx([0.03, 0.06, 0.06, 0.04])
    assert holm["significant_corrected"].tolist() == [True, False, False, True]
    bh = corrected(table, level=0.05, correction="fdr_bh")
    assert bh["p_corrected"].tolist() == pytest.approx([0.03, 0.04, 0.04, 0.04])
    together = corrected(table.assign(respondent_id="a"), level=0.05)
    assert together["p_corrected"].tolist() == pytest.approx([0.04, 0.09, 0.09, 0.09])
    with pytest.raises(ParameterError, match="holm"):
        corrected(table, correction="sidak?")


def test_the_interval_of_delta_of_a_single_score_has_only_the_norms_error():
    # delta = (60 - 50) / 10 = 1, of variance 1² / (2 · 14) + 1 / 14 = 3 / 28: none is the score's
    row = compare_means(60, np.nan, 1, 50, 10, 15).iloc[0]
    half = 1.959964 * np.sqrt(3 / 28)
    assert [row["delta_low"], row["delta_high"]] == pytest.approx([1 - half, 1 + half], abs=1e-6)
    # Student's quantile of 14 degrees is 2.144787; the error of the difference is 10 √(16 / 15)
    reach = 2.144787 * 10 * np.sqrt(16 / 15)
    assert [row["low"], row["high"]] == pytest.approx([10 - reach, 10 + reach], abs=1e-4)


def test_hedges_g_is_worked_by_hand():
    # pooled variance (8 · 2² + 4 · 1²) / 12 = 3; the correction 1 - 3 / (4 · 12 - 1) = 44 / 47
    row = compare_means(4, 2, 9, 2, 1, 5).iloc[0]
    assert row["g"] == pytest.approx(2 / np.sqrt(3) * 44 / 47)


def test_without_spread_in_either_group_nothing_is_tested():
    row = compare_means(4, 0, 9, 2, 0, 5).iloc[0]
    assert row[["f", "t", "p", "low", "delta", "g"]].isna().all()
    # with a spread in the norm alone, t = (4 - 2) / √(1² / 5) at 4 degrees of freedom
    one = compare_means(4, 0, 9, 2, 1, 5).iloc[0]
    assert [one["test"], one["t"], one["df"]] == ["welch", pytest.approx(2 * np.sqrt(5)), 4]


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 1.5, "0.05"])
def test_a_level_lies_between_0_and_1(wrong):
    table = pd.DataFrame({"respondent_id": ["a"], "p": [0.5]})
    for call in (lambda: corrected(table, wrong), lambda: compare_means(4, 2, 9, 2, 1, 5, wrong)):
        with pytest.raises(ParameterError, match="level"):
            call()


@pytest.mark.parametrize("change", [{"n": 0.5}, {"norm_n": 1}, {"sd": -1}, {"norm_sd": -1}])
def test_sizes_and_deviations_that_cannot_be_are_refused(change):
    whole = {"mean": 4, "sd": 2, "n": 9, "norm_mean": 2, "norm_sd": 1, "norm_n": 5}
    with pytest.raises(ParameterError):
        compare_means(**whole | change)


def test_a_p_at_the_level_is_not_below_it():
    table = pd.DataFrame({"respondent_id": ["a"], "p": [0.05]})
    found = corrected(table, level=0.05).iloc[0]
    assert [found["significant"], found["significant_corrected"]] == [False, False]
