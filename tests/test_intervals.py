from __future__ import annotations

import hypothesis
import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import strategies as st
from scipy import stats

from psychometrics.exceptions import ParameterError
from psychometrics.measures import beliefs, bias, groups, intervals, norms, reliability
from psychometrics.measures.items import item_rest
from psychometrics.measures.scoring import item_scores
from psychometrics.nulls.evidence import profile_agreement
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies import crossed_samples
from tests.test_scoring import filled_in, own_questionnaire


def test_without_skewness_the_interval_is_students():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 9.0, -3.0])
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    assert intervals.mean_interval(values) == pytest.approx((theirs.low, theirs.high))


def test_the_correction_for_skewness_by_hand():
    # mean 2, s = 2, skewness 2 (n = 4: third moment 6, times 16/(3 * 2) over 8): a = 2/(3 * 2)
    values = np.array([1.0, 1.0, 1.0, 5.0])
    a, q = 1 / 3, stats.t.ppf(0.975, 3)
    low, high = intervals.mean_interval(values)
    assert low == pytest.approx(2 - ((1 + 3 * a * (q - a / 2)) ** (1 / 3) - 1) / a)
    # the other arm would be longer than all four numbers; it is one and a half of Student's
    assert high == pytest.approx(2 + 1.5 * q)
    # where no arm is too long, the transformed ends are the quantiles themselves
    mild = np.array([1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 5.0])
    a, q = stats.skew(mild, bias=False) / (3 * np.sqrt(7)), stats.t.ppf(0.975, 6)
    t = (mild.mean() - np.array(intervals.mean_interval(mild))) / (mild.std(ddof=1) / np.sqrt(7))
    assert t + a * t**2 + a**2 * t**3 / 3 + a / 2 == pytest.approx([q, -q])


def _one_factor(rng, n, loadings):
    loadings = np.asarray(loadings)
    trait, error = rng.normal(size=(n, 1)), rng.normal(size=(n, len(loadings)))
    return pd.DataFrame(trait * loadings + error * np.sqrt(1 - loadings**2))


def _pair(rng, n, rho):
    x = rng.normal(size=n)
    return x, rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)


def _correlation(rng, n, method):
    return intervals.correlation_interval(*_pair(rng, n, 0.6), method)


def _crossed(rng, n, levels):
    index = pd.MultiIndex.from_product([range(n), range(levels)], names=["respondent_id", "run"])
    values = rng.normal(size=(n, 1)) + rng.normal(size=(n, levels))
    frame = pd.Series(values.ravel(), index=index, name="score").reset_index()
    return frame.assign(questionnaire="q", scale="s")


def _norm_difference(rng, n):
    own, norm = rng.normal(0.4, 1, n), rng.normal(0, 1, 200)
    figures = (own.mean(), own.std(ddof=1), n, norm.mean(), norm.std(ddof=1), 200)
    return norms.compare_means(*figures).iloc[0]


def _mean(values):
    return dict(zip(("low", "high"), intervals.mean_interval(values), strict=True))


def _generalisability(rng, n):
    return reliability.generalisability(_crossed(rng, n, 5), ["respondent_id", "run"]).iloc[0]


LOADINGS = np.linspace(0.4, 0.8, 7)
ALPHA = 7 * 0.36 / (1 + 6 * 0.36)
OMEGA = LOADINGS.sum() ** 2 / (LOADINGS.sum() ** 2 + (1 - LOADINGS**2).sum())
RANK = 6 / np.pi * np.arcsin(0.6 / 2)  # Spearman's of a normal pair with Pearson's 0.6
COVERAGE = {
    "mean of 7, normal": (lambda r, n: _mean(r.normal(1, 2, n)), 1, 7, 800),
    "mean of 13, normal": (lambda r, n: _mean(r.normal(1, 2, n)), 1, 13, 800),
    "mean of 7, exponential": (lambda r, n: _mean(r.exponential(1, n)), 1, 7, 800),
    "mean of 13, exponential": (lambda r, n: _mean(r.exponential(1, n)), 1, 13, 800),
    "Spearman's": (lambda r, n: _correlation(r, n, "spearman"), RANK, 24, 500),
    "Pearson's": (lambda r, n: _correlation(r, n, "pearson"), 0.6, 24, 500),
    "alpha": (lambda r, n: reliability.alpha(_one_factor(r, n, [0.6] * 7)), ALPHA, 24, 120),
    "omega": (lambda r, n: reliability.omega(_one_factor(r, n, LOADINGS)), OMEGA, 24, 20),
    "item-total": (  # of an item with the sum of four parallel ones
        lambda r, n: item_rest(_one_factor(r, n, [0.6] * 5)).iloc[0],
        4 * 0.36 / np.sqrt(4 + 12 * 0.36), 24, 30,
    ),
    "relative, generalisability": (_generalisability, 5 / 6, 24, 25),
    "difference from a norm": (_norm_difference, 0.4, 10, 200),
    "delta, from a norm": (_norm_difference, 0.4, 10, 200),
}  # fmt: skip
"""Each kind of interval: one sample's, the truth, size of a sample, how many here."""


@pytest.mark.parametrize("name", COVERAGE)
def test_an_interval_holds_the_truth_about_as_often_as_it_says(name):
    # Of many more samples all hold it in 92 to 96 %; three Monte Carlo standard errors below that
    # are allowed.
    once, truth, n, samples = COVERAGE[name]
    rng, prefix = np.random.default_rng(20), name.partition(", ")[0]
    prefix = f"{prefix}_" if prefix in ("relative", "delta") else ""
    found = [once(rng, n) for _ in range(samples)]
    held = np.mean([one[f"{prefix}low"] <= truth <= one[f"{prefix}high"] for one in found])
    assert held >= 0.925 - 3 * np.sqrt(0.925 * 0.075 / samples)


def test_correlation_matches_scipy_and_its_labels():
    x, y = _pair(np.random.default_rng(2), 30, 0.4)
    theirs = stats.pearsonr(x, y)
    found = intervals.correlation_interval(x, y, "pearson")
    assert found["r"] == pytest.approx(theirs.statistic)
    assert (found["low"], found["high"]) == pytest.approx(tuple(theirs.confidence_interval()))
    rank = intervals.correlation_interval(pd.Series(x), pd.Series(y).sample(frac=1, random_state=1))
    assert rank["r"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert rank["low"] < rank["r"] < rank["high"]


def test_an_undefined_correlation_has_no_interval():
    found = intervals.correlation_interval([1.0, 2, 3, 4, np.nan], [0.3, 0.3, 0.1 + 0.2, 0.3, 1.0])
    assert found["n"] == 4
    assert found[["r", "low", "high"]].isna().all()
    assert intervals.correlation_interval([1, 2, 3], [1, 3, 2])[["low", "high"]].isna().all()
    for said, *given in (
        ("the same length", [1, 2, 3], [1, 2]), ("method must be", [1, 2, 3], [1, 2, 3], "kendall"),
        ("its own label", pd.Series([1, 2], index=[0, 0]), pd.Series([1, 2])),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=said):
            intervals.correlation_interval(*given)


def test_the_runs_needed_are_the_fewest_whose_interval_is_narrow_enough():
    pilot = pd.DataFrame({"respondent_id": list("aaaabbbb"), "score": [1.0, 2, 3, 4, 2, 2, 2, 2]})
    found = intervals.runs_needed(pilot, "score", 0.5).set_index("respondent_id")
    sd = np.sqrt(5 / 3)
    widths = [2 * stats.t.ppf(0.975, n - 1) * sd / np.sqrt(n) for n in range(2, 200)]
    fewest = 2 + int(np.argmax(np.array(widths) <= 0.5))
    assert found.loc["a", "needed"] == fewest
    assert found.loc["a", "sd"] == pytest.approx(sd)
    assert found.loc["a", "width"] == pytest.approx(widths[2])
    assert found.loc["b", ["sd", "width", "needed", "assured"]].tolist() == [0, 0, 2, 2]
    once = intervals.runs_needed(pilot.iloc[:1], "score", 0.5).iloc[0]
    assert once[["sd", "width", "needed", "assured"]].isna().all()
    for wrong in (0, -1, np.nan, np.inf, "1", True):
        with pytest.raises(ParameterError, match="width"):
            intervals.runs_needed(pilot, "score", wrong)


def test_four_of_five_pilots_assure_an_interval_of_the_width():
    rng = np.random.default_rng(21)
    pilots = pd.DataFrame(rng.normal(size=(600, 8))).rename_axis("respondent_id").reset_index()
    pilots = pilots.melt("respondent_id", value_name="score")
    found = intervals.runs_needed(pilots, "score", 0.5)
    truth = intervals.runs_needed(
        pd.DataFrame({"respondent_id": 1, "score": [-1.0, 1.0] / np.sqrt(2)}), "score", 0.5
    )["needed"].iloc[0]  # runs whose standard deviation is 1
    assert np.mean(found["assured"] >= truth) == pytest.approx(0.8, abs=0.06)
    assert np.mean(found["needed"] >= truth) < 0.55


def test_prompts_of_one_item_are_one_observation():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"item_id": np.repeat(range(7), 40), "x": np.repeat(rng.normal(size=7), 40)}
    )
    row = intervals.mean_table(table, "x").iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(
        intervals.mean_interval(table["x"].to_numpy()[::40])
    )
    assert row["n"] == 7
    two = pd.concat([table.assign(kind="a"), table.assign(kind="b", x=np.nan)])
    assert intervals.mean_table(two, "x", ["kind"])["n"].tolist() == [7, 0]


def test_scale_score_is_the_mean_of_keyed_items_and_lies_in_its_interval():
    soc = load_questionnaire("soc13")
    rng = np.random.default_rng(0)
    rows = [(r, "soc13", item.id, rng.normal()) for r in ("a", "b") for item in soc.items]
    columns = ["respondent_id", "questionnaire", "item_id", "score"]
    items = pd.DataFrame(rows, columns=columns)
    result = intervals.scale_intervals(items, soc).set_index("respondent_id")
    keys = {item.id: item.keying for item in soc.items}
    assert set(keys.values()) == {1, -1}
    for respondent, part in items.groupby("respondent_id"):
        expected = sum(keys[i] * s for i, s in zip(part.item_id, part.score, strict=True)) / 13
        assert result.loc[respondent, "score"] == pytest.approx(expected)
    assert (result["low"] < result["score"]).all()
    assert (result["score"] < result["high"]).all()


def test_intervals_of_rank_correlations_are_bonett_and_wrights():
    reach = 1.959964 * np.sqrt((1 + 0.125) / 12)
    expected = np.tanh(np.arctanh(0.5) + np.array([-reach, reach]))
    found = intervals.fisher_interval(0.5, 15, ranks=True)
    assert found == pytest.approx(tuple(expected), abs=1e-5)
    known = pingouin.compute_esci(stat=0.5, nx=15, eftype="r", decimals=6)
    assert intervals.fisher_interval(0.5, 15) == pytest.approx(tuple(known), abs=1e-5)
    for r, n in ((1.0, 15), (np.nan, 15), (0.5, 3)):
        assert np.isnan(intervals.fisher_interval(r, n)).all()


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_an_interval_of_answers_ends_at_the_options_of_an_item(mode):
    scale = {"id": "own", "title": "Own", "items": "all", "mode": mode}
    own = own_questionnaire(scales=[scale])
    items = item_scores(filled_in([4, 0, 4], own))
    row = intervals.scale_intervals(items, own).iloc[0]
    assert row["score"] == pytest.approx(4)  # the second item is reversed
    assert row[["low", "high"]].tolist() == [4, 4]
    items = item_scores(filled_in([4, 0, 1], own))  # 3 ± 1.7 · Student's 4.3 on the scale of items
    assert intervals.scale_intervals(items, own)[["low", "high"]].iloc[0].tolist() == [0, 4]


def test_the_jackknife_of_a_mean_is_students_interval():
    values = np.array([1.0, 2.0, 4.0, 4.5, 7.0])
    without = np.array([np.delete(values, k).mean() for k in range(5)])
    theirs = stats.ttest_1samp(values, 0).confidence_interval()
    half = intervals.jackknife_half_width(without)
    assert half == pytest.approx((theirs.high - theirs.low) / 2)
    both = intervals.jackknife_half_width(np.stack([without, 10 * without], axis=1))
    assert both == pytest.approx([half, 10 * half])
    assert np.isnan(intervals.jackknife_half_width(without[:1]))
    assert np.isnan(intervals.jackknife_half_width(np.append(without, np.nan)))


def test_values_that_differ_by_rounding_alone_share_a_rank():
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, y = rng.integers(0, 4, (2, 24)) / 10
        noisy = (one + rng.uniform(-1e-9, 1e-9, 24) for one in (x, y))
        expected = stats.spearmanr(x, y).statistic
        assert intervals.correlation_interval(*noisy)["r"] == pytest.approx(expected)
    tiny = rng.normal(0, 1e-8, (2, 24))  # scores of untrained heads are as small
    expected = stats.spearmanr(*tiny).statistic
    assert intervals.correlation_interval(*tiny)["r"] == pytest.approx(expected, abs=1e-3)


def test_merged_near_ties_leave_gaps_and_constants_as_they_are():
    found = intervals.merge_near_ties(np.array([[2.0, np.nan, 4.0], [7.0, 7.0, 7.0]]))
    np.testing.assert_array_equal(found, [[0, np.nan, 1e5], [0, 0, 0]])
    turned = intervals.merge_near_ties(np.array([[2.0, 7.0], [4.0, 7.0]]), axis=0)
    np.testing.assert_array_equal(turned, [[0, 0], [1e5, 0]])


def test_items_and_ways_that_are_both_drawn_give_five_false_alarms_in_a_hundred():
    rng = np.random.default_rng(1)
    alarms = {}
    for shift in (0.0, 1.0):
        items = rng.normal(size=(1000, 1, 10))
        ways = shift * rng.normal(size=(1000, 3, 1))
        tables = items + ways + 0.5 * rng.normal(size=(1000, 3, 10))
        alarms["items and ways", shift] = np.mean(
            [crossed_samples.crossed_interval(t)[2] < 0.05 for t in tables]
        )
        low, high = intervals.mean_interval(tables.mean(axis=1))
        alarms["items alone", shift] = np.mean((low > 0) | (high < 0))

    assert all(0.03 < alarms["items and ways", shift] < 0.08 for shift in (0.0, 1.0))
    assert 0.03 < alarms["items alone", 0.0] < 0.08
    assert alarms["items alone", 1.0] > 0.2  # a wording that shifts all items is taken for more


def test_the_widest_of_the_intervals_over_crossed_samples_counts():
    values = np.array([[1.0, 2, 3], [2, 3, 4]])
    # Way means 2 and 3: s^2 / n is 1/4 with one degree of freedom, t = 12.7062. Items alone (1/3,
    # two degrees, t = 4.3027) and both (7/12, 2.88 degrees, t = 3.26) give 2.48 and 2.49.
    for table in (values, values.T, values[None], values[:, None]):
        low, high, p = crossed_samples.crossed_interval(table)
        assert (low, high) == pytest.approx((2.5 - 6.3531, 2.5 + 6.3531), abs=1e-3)
        assert p == pytest.approx(2 * stats.t.sf(5, 1))


def test_three_samples_add_their_variances_and_freedoms():
    rng = np.random.default_rng(0)
    effects = [4 * rng.normal(size=8), 5 * rng.normal(size=7), rng.normal(size=9)]
    values = effects[0][:, None, None] + effects[1][:, None] + effects[2]
    parts = np.array([one.var(ddof=1) / len(one) for one in effects])
    freedom = parts.sum() ** 2 / (parts**2 / [7, 6, 8]).sum()
    halves = stats.t.ppf(0.975, [7, 6, 8, freedom]) * np.sqrt([*parts, parts.sum()])
    low, high, _ = crossed_samples.crossed_interval(values)
    assert (high - low) / 2 == pytest.approx(halves.max())
    assert halves.argmax() == 3, "all samples together"


def test_missing_answers_are_left_out_of_the_means_of_crossed_samples():
    values = np.array([[1.0, 2, 3], [2, np.nan, 4], [3, 4, 5]])
    parts = [np.var([2, 3, 4], ddof=1) / 3, np.var([2, 3, 4], ddof=1) / 3]
    low, high, _ = crossed_samples.crossed_interval(values)
    assert (low + high) / 2 == pytest.approx(3)
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, 2) * parts[0] ** 0.5)


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3], [[1, 2, 3]], [[1], [2]], [[1, np.nan], [2, np.nan]], [[1, np.inf], [2, 3]]],
)
def test_one_sample_or_a_row_without_a_value_has_no_crossed_interval(values):
    with pytest.raises(ParameterError):
        crossed_samples.crossed_interval(np.array(values))


@pytest.mark.parametrize("nothing", [[], 3.0, np.empty((2, 0))])
def test_no_observation_has_no_mean(nothing):
    with pytest.raises(ParameterError):
        intervals.mean_interval(nothing)


def test_a_single_value_has_a_mean_and_no_interval():
    assert np.isnan(intervals.mean_interval([0.5])).all()
    table = pd.DataFrame({"item_id": ["a", "a"], "value": [True, False]})
    row = intervals.mean_table(table, "value").iloc[0]
    assert row[["mean", "n"]].tolist() == [0.5, 1]
    assert row[["low", "high"]].isna().all()


@hypothesis.given(st.lists(st.booleans(), min_size=2, max_size=12))
def test_the_interval_of_a_share_stays_within_0_and_1(hits):
    table = pd.DataFrame({"item_id": range(len(hits)), "hit": hits})
    row = intervals.mean_table(table, "hit").iloc[0]
    assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1


def _completions(table: pd.DataFrame) -> pd.DataFrame:
    """Completions of two models, hurtful where two columns are odd; units belong to two groups."""
    words = np.where(table.iloc[:, :2] % 2 == 1, "rat", "kind")
    frame = pd.DataFrame(words, columns=["m", "n"]).rename_axis("unit").reset_index()
    frame["template"] = [f"{unit} [M]" for unit in frame["unit"]]
    frame["group"] = np.where(frame["unit"] % 2, "a", "b")
    frame = frame.melt(["unit", "template", "group"], ["m", "n"], "respondent_id", "completion")
    return frame.assign(rank=1)


def _scores(table: pd.DataFrame) -> pd.DataFrame:
    """Item scores of respondents with two runs each on three items, of which one is reversed."""
    frame = table.iloc[:, :3].set_axis(["a", "b", "c"], axis=1) + 1.0
    frame["respondent_id"] = [f"r{number // 2}" for number in range(len(frame))]
    frame["run"] = np.arange(len(frame)) % 2
    frame = frame.assign(questionnaire=REVERSED.id, mode="human")
    return frame.melt(list(frame)[3:], ["a", "b", "c"], "item_id", "score")


def _as_runs(table: pd.DataFrame) -> pd.DataFrame:
    return table.melt(ignore_index=False, var_name="run", value_name="score").reset_index(
        names="respondent_id"
    )


REVERSED = own_questionnaire(
    items=[{"id": name, "text": name} for name in "abc"],
    scales=[{"id": "own", "title": "Own", "items": "all", "reverse": ["c"]}],
    options=[{"value": value, "label": f"option {value}"} for value in range(1, 5)],
)
BOUNDED = {
    "alpha": (reliability.alpha, [("low", "high", -np.inf, 1)]),
    "omega": (reliability.omega, [("low", "high", 0, 1)]),
    "reliability_table": (
        lambda table: reliability.reliability_table(_scores(table), [REVERSED]),
        [("low", "high", -np.inf, 1)],
    ),
    "generalisability": (
        lambda table: reliability.generalisability(_as_runs(table), ["respondent_id", "run"]),
        [("relative_low", "relative_high", 0, 1), ("absolute_low", "absolute_high", 0, 1)],
    ),
    "design_study": (
        lambda table: reliability.design_study(
            _as_runs(table), ["respondent_id", "run"], {"run": [1, 9]}
        ),
        [("relative_low", "relative_high", 0, 1), ("absolute_low", "absolute_high", 0, 1)],
    ),
    "item_rest": (item_rest, [("low", "high", -1, 1)]),
    "spearman": (
        lambda table: intervals.correlation_interval(table[0], table[1]), [("low", "high", -1, 1)],
    ),
    "pearson": (
        lambda table: intervals.correlation_interval(table[0], table[1], "pearson"),
        [("low", "high", -1, 1)],
    ),
    "congruence": (
        lambda table: groups.congruence(table, table.iloc[::-1] // 2, factors=2, draws=9),
        [("low", "high", -1, 1)],
    ),
    "profile_agreement": (
        lambda table: profile_agreement(table.to_numpy()), [("low", "high", -1, 1)],
    ),
    "bias": (
        lambda table: bias.bias_shares(_scores(table), REVERSED, draws=2).iloc[:2],
        [("low", "high", 0, 1), ("random_low", "random_high", 0, 1)],
    ),
    "alphas of bias": (
        lambda table: bias.bias_shares(_scores(table), REVERSED, draws=2).iloc[5:7],
        [("low", "high", -np.inf, 1)],
    ),
    "random_share": (lambda table: bias.random_share(len(table)), [("low", "high", 0, 1)]),
    "runs_and_units": (
        lambda table: bias.runs_and_units(_scores(table), REVERSED), [("low", "high", -1, 1)],
    ),
    "shares_by_rank": (
        lambda table: beliefs.shares_by_rank(_completions(table), ["rat"]),
        [("low", "high", 0, 1)],
    ),
    "group_differences": (
        lambda table: beliefs.group_differences(
            _completions(table), ["rat"], "group", "ab", "unit"
        ),
        [("low", "high", -1, 1), ("null low", "null high", -1, 1)],
    ),
    "agreement": (lambda table: beliefs.agreement(_completions(table)), [("low", "high", 0, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(seed=st.integers(0, 10_000), people=st.integers(3, 12), options=st.integers(1, 4))
def test_intervals_of_shares_alphas_and_correlations_stay_within_their_range(
    name, seed, people, options
):
    values = np.random.default_rng(seed).integers(0, options, (people, 5))
    compute, bounds = BOUNDED[name]
    try:
        result = compute(pd.DataFrame(values))
    except ParameterError:  # too few respondents, or items that do not vary
        return
    table = result.to_frame().T if isinstance(result, pd.Series) else result
    for low, high, smallest, largest in bounds:
        ends = table[[low, high]].dropna().astype(float)
        assert (ends[low] >= smallest).all()
        assert (ends[high] <= largest).all()
        assert (ends[low] <= ends[high]).all()


def test_means_of_no_row_and_columns_in_one_text_are_refused():
    table = pd.DataFrame({"item_id": ["a", "b"], "value": [1.0, 2.0]})
    for rows, by in ((table.iloc[:0], ()), (table, "item_id")):
        with pytest.raises(ParameterError):
            intervals.mean_table(rows, "value", by)


@pytest.mark.parametrize("respondents", [2, 3])
@pytest.mark.parametrize("ways", [1, 3])
def test_models_that_shift_all_items_are_not_taken_for_an_effect(respondents, ways):
    rng = np.random.default_rng(0)
    sd_of_ways = 0.5 if ways > 1 else 0
    findings = 0
    for _ in range(600):  # no effect: respondents, ways and items differ, each around zero
        differences = (
            rng.normal(0, 1, (respondents, 1, 1))
            + rng.normal(0, sd_of_ways, (1, ways, 1))
            + rng.normal(0, 0.5**0.5, (1, 1, 20))
            + rng.normal(0, 0.5**0.5, (respondents, ways, 20))
        )
        low, high, _ = crossed_samples.crossed_interval(differences)
        findings += low > 0 or high < 0

    assert findings / 600 <= 0.08


def test_an_infinite_value_has_no_interval():
    with pytest.raises(ParameterError):
        intervals.mean_interval(np.array([1.0, 2.0, np.inf]))


def test_a_condition_in_which_all_ways_agree_leaves_the_widest_interval_as_it_is():
    values = np.array([[[1.0, 2, 3], [2, 3, 4], [4, 3, 5]]])
    ways = np.array([["chat"], ["options"], ["prompts"]])
    constant = np.column_stack([ways, ["english"] * 3])
    alone = crossed_samples.interval_over_ways(values, ways)
    assert crossed_samples.interval_over_ways(values, constant) == alone


def test_equal_values_have_an_interval_without_width_and_a_certain_p():
    assert crossed_samples.crossed_interval(np.ones((2, 2))) == (1.0, 1.0, 0.0)
    assert crossed_samples.crossed_interval(np.zeros((2, 2))) == (0.0, 0.0, 1.0)


def test_a_jackknife_of_two_has_one_degree_of_freedom():
    half = intervals.jackknife_half_width([1.0, 3.0])
    assert half == pytest.approx(12.7062, abs=1e-4)  # t(1) at .975, times 1 / sqrt(2) * sqrt(2)
    assert np.isnan(intervals.jackknife_half_width([1.0]))


def test_an_interval_of_a_scale_needs_scores_of_items():
    items = pd.DataFrame({"respondent_id": ["a"], "questionnaire": ["gad7"], "score": [1.0]})
    with pytest.raises(ParameterError):
        intervals.scale_intervals(items, load_questionnaire("gad7"))


def test_a_missing_value_does_not_count_in_an_interval_of_a_mean():
    values = [1.0, 2.0, 3.0, 7.0]
    assert intervals.mean_interval([*values, np.nan]) == pytest.approx(
        intervals.mean_interval(values)
    )
