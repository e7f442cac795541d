"""Reliability, against hand-worked values, simulations with known truth, and invariants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures import factor, reliability
from psychometrics.nulls import kernel_statistics
from psychometrics.questionnaires import load_questionnaire


def parallel(loading: float, items: int, respondents: int, seed: int) -> pd.DataFrame:
    """Items of equal loading on one factor, standardised."""
    rng = np.random.default_rng(seed)
    trait = rng.normal(size=(respondents, 1))
    error = rng.normal(size=(respondents, items))
    values = loading * trait + np.sqrt(1 - loading**2) * error
    return pd.DataFrame(values, columns=[f"i{n}" for n in range(items)])


def test_alpha_of_a_small_table_is_the_formula_worked_by_hand():
    # Variances 5/3 and 4/3, of the sum 17/3 (values 3, 4, 7, 8): 2 · (1 - (3) / (17/3)) = 16/17.
    table = pd.DataFrame({"a": [1, 2, 3, 4], "b": [2, 2, 4, 4]})
    assert reliability.alpha(table)["alpha"] == pytest.approx(16 / 17)


def test_alphas_of_many_covariances_are_pingouins_with_feldts_interval():
    rng = np.random.default_rng(5)
    tables = rng.normal(size=(8, 15, 1)) + rng.normal(size=(8, 15, 5))
    found = reliability.alphas(np.stack([np.cov(table.T) for table in tables]))
    for table, value in zip(tables, found, strict=True):
        theirs, interval = pingouin.cronbach_alpha(pd.DataFrame(table))
        ours = reliability.alpha(pd.DataFrame(table))
        assert value == pytest.approx(theirs, rel=1e-12)
        assert ours["alpha"] == pytest.approx(theirs, rel=1e-12)
        assert ours[["low", "high"]].tolist() == pytest.approx(interval, abs=5.1e-4)  # 3 decimals


def test_omega_of_a_one_factor_model_is_its_loadings():
    loadings = np.array([0.9, 0.7, 0.5, -0.3])
    correlations = np.outer(loadings, loadings)
    np.fill_diagonal(correlations, 1)
    scale = np.diag([1.0, 3.0, 0.2, 50.0])
    assert factor.one_factor(scale @ correlations @ scale) == pytest.approx(loadings)
    # the sum is 1.8, its square 3.24; the rest 4 - 0.81 - 0.49 - 0.25 - 0.09 = 2.36
    assert reliability.omegas(correlations) == pytest.approx(3.24 / (3.24 + 2.36))


def _misfit(loadings, correlations):
    residuals = correlations - np.outer(loadings, loadings)
    return (residuals[np.triu_indices(len(loadings), 1)] ** 2).sum()


def _small_samples(count, items, people=24, seed=0):
    """Correlations of samples of weakly related items, some of them with negative loadings."""
    rng = np.random.default_rng(seed)
    loadings = rng.uniform(-0.2, 0.6, items)
    trait, error = rng.normal(size=(count, people, 1)), rng.normal(size=(count, people, items))
    return np.stack([np.corrcoef(table.T) for table in trait * loadings + error])


@pytest.mark.parametrize("items", [3, 4, 6, 9])
def test_loadings_are_the_least_misfit_that_any_start_finds(items):
    rng = np.random.default_rng(1)
    for correlations in _small_samples(4, items):
        ours = _misfit(factor.one_factor(correlations), correlations)
        starts = rng.uniform(-1, 1, (8, items))
        limits = [(-1, 1)] * items
        others = [
            optimize.minimize(_misfit, start, correlations, bounds=limits, options={"ftol": 1e-14})
            for start in starts
        ]
        assert ours <= min(one.fun for one in others) + 1e-9


def test_a_heywood_case_has_a_loading_of_one():
    # unbounded, the first squared loading would be 0.8 · 0.7 / 0.4 = 1.4
    correlations = np.array([[1.0, 0.8, 0.7], [0.8, 1.0, 0.4], [0.7, 0.4, 1.0]])
    first, *others = factor.one_factor(correlations)
    assert first == 1.0
    best = optimize.minimize(lambda free: _misfit([1.0, *free], correlations), [0.8, 0.7])
    assert others == pytest.approx(best.x, abs=1e-6)


def test_omega_of_no_more_respondents_than_items_is_missing_everywhere():
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.normal(size=(9, 1)) + rng.normal(size=(9, 8)))
    index = pd.MultiIndex.from_product([["q"], [""], range(8)])
    for people in (7, 8, 9):
        part = table.iloc[:people]
        covariance = pd.DataFrame(np.cov(part.T), index, index)
        sample = kernel_statistics(covariance).set_index("statistic")["value"]
        assert np.isnan(reliability.omega(part)["omega"]) == (people <= 8)
        assert np.isnan(sample["omega"]) == (people <= 8)
        assert np.isfinite(sample["alpha"])
        if people > 8:
            assert sample["omega"] == pytest.approx(reliability.omega(part)["omega"], abs=1e-8)

    known = pd.DataFrame(0.5 + 0.5 * np.eye(8), index, index)
    for people in (8, 24):
        row = kernel_statistics(known, people).set_index("statistic").loc["omega"]
        assert row["value"] == pytest.approx(8 / 9)  # closed form: no sample
        assert row[["low", "high"]].isna().all() == (people <= 8)


def test_scales_have_the_same_omega_by_respondents_and_by_covariances():
    rng = np.random.default_rng(6)
    for items in range(4, 10):
        for _ in range(3):
            values = rng.normal(size=(24, 1)) * rng.uniform(-0.3, 0.8, items)
            table = pd.DataFrame(values + rng.normal(size=(24, items)))
            by_respondents = reliability.omega(table)["omega"]
            assert reliability.omegas(np.cov(table.T)) == pytest.approx(by_respondents, abs=1e-8)


def test_the_interval_of_omega_is_students_of_its_pseudo_values():
    table = parallel(0.6, 5, 14, seed=3)
    found = reliability.omega(table)
    whole = np.log(1 - found["omega"])
    left = [np.log(1 - reliability.omega(table.drop(index=row))["omega"]) for row in table.index]
    pseudo = 14 * whole - 13 * np.array(left)
    half = stats.t.ppf(0.975, 13) * np.sqrt(((pseudo - pseudo.mean()) ** 2).sum() / 13 / 14)
    ends = [1 - np.exp(whole + half), 1 - np.exp(whole - half)]
    assert found[["low", "high"]].tolist() == pytest.approx(ends)


def test_no_interval_of_omega_reaches_below_zero():
    rng = np.random.default_rng(0)
    lows = [reliability.omega(pd.DataFrame(rng.normal(size=(10, 4))))["low"] for _ in range(10)]
    assert np.nanmin(lows) == 0


def test_noise_in_single_precision_does_not_move_alpha_or_omega():
    correlations = _small_samples(40, 7)
    noise = np.random.default_rng(2).uniform(-1e-6, 1e-6, correlations.shape)
    noise = (noise + np.swapaxes(noise, 1, 2)) / 2 * (1 - np.eye(7))
    for statistic in (reliability.alphas, reliability.omegas):
        before, after = statistic(correlations), statistic(correlations + noise)
        assert after == pytest.approx(before, abs=2e-5)


# Shrout and Fleiss (1979), table 2: six targets, four judges
RATINGS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
)


def crossed(cube, names):
    index = pd.MultiIndex.from_product([range(n) for n in cube.shape], names=names)
    return pd.Series(np.asarray(cube, dtype=float).ravel(), index=index, name="score").reset_index()


FACETS = ["respondent_id", "judge"]
FRAME = crossed(RATINGS, FACETS)


def components(frame, facets):
    table = reliability._variances(reliability._arrange_scores(frame, facets))
    table.index = ["×".join(facets[a] for a in s) for s in table.index]
    return table


def test_components_of_shrout_and_fleiss_by_hand():
    # BMS = 11.24, JMS = 32.49, EMS = 1.02
    table = components(FRAME, FACETS)
    assert table["ms"].round(2).tolist() == [11.24, 32.49, 1.02]
    assert table["variance"].tolist() == pytest.approx(
        [(11.2417 - 1.0194) / 4, (32.4861 - 1.0194) / 6, 1.0194], abs=1e-3
    )
    assert table["df"].tolist() == [5, 3, 15]


def test_coefficients_are_the_published_intraclass_correlations():
    found = reliability.generalisability(FRAME, FACETS).iloc[0]
    # Shrout and Fleiss (1979), table 4: ICC(3,4) .91, ICC(2,4) .62
    assert [round(found[name], 2) for name in ("relative", "absolute")] == [0.91, 0.62]


def test_the_relative_coefficient_of_one_facet_is_alpha():
    rng = np.random.default_rng(1)
    cube = rng.normal(size=(30, 1)) + rng.normal(size=(30, 6))
    frame = crossed(cube, ["respondent_id", "item"])
    found = reliability.generalisability(frame, ["item", "respondent_id"]).iloc[0]
    assert found["relative"] == pytest.approx(pingouin.cronbach_alpha(pd.DataFrame(cube))[0])
    assert found["relative_low"] < found["relative"] < found["relative_high"]
    assert found["objects"] == 30


def test_mean_squares_of_three_facets_are_those_of_statsmodels():
    cube = np.random.default_rng(2).normal(size=(4, 3, 2))
    frame = crossed(cube, ["p", "o", "w"])
    table = components(frame, ["p", "o", "w"])
    fit = ols("score ~ C(p) + C(o) + C(w) + C(p):C(o) + C(p):C(w) + C(o):C(w)", frame).fit()
    theirs = anova_lm(fit)["mean_sq"]
    names = {"p": "C(p)", "o": "C(o)", "w": "C(w)", "p×o": "C(p):C(o)", "p×w": "C(p):C(w)",
             "o×w": "C(o):C(w)", "p×o×w": "Residual"}  # fmt: skip
    for ours, name in names.items():
        assert table.loc[ours, "ms"] == pytest.approx(theirs[name])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.floats(0.1, 4))
def test_coefficients_do_not_change_with_the_unit(seed, shift, scale):
    cube = np.random.default_rng(seed).normal(size=(5, 3, 2)) + np.arange(5)[:, None, None]
    names = ["respondent_id", "order", "wording"]
    first = reliability.generalisability(crossed(cube, names), names).iloc[0]
    second = reliability.generalisability(crossed(shift + scale * cube, names), names).iloc[0]
    assert first["relative"] == pytest.approx(second["relative"], abs=1e-6)
    assert first["absolute"] <= first["relative"] + 1e-12
    assert first[["respondent_id", "order", "wording"]].between(0, 1).all()


def test_a_design_with_one_judge_has_the_published_single_ratings():
    found = reliability.design_study(FRAME, FACETS, {"judge": [1, 4]})
    # Shrout and Fleiss (1979), table 4: ICC(3,1) .71, ICC(2,1) .29; ICC(3,4) .91, ICC(2,4) .62
    assert found["judge"].tolist() == [1, 4]
    assert found["relative"].round(2).tolist() == [0.71, 0.91]
    assert found["absolute"].round(2).tolist() == [0.29, 0.62]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_a_planned_number_of_one_facet_follows_spearman_and_brown(seed, number):
    rng = np.random.default_rng(seed)
    frame = crossed(rng.normal(size=(9, 1)) + rng.normal(size=(9, 4)), ["respondent_id", "run"])
    found = reliability.design_study(frame, ["respondent_id", "run"], {"run": [1, number]})
    single, several = found["relative"]
    if single > 0:
        assert several == pytest.approx(number * single / (1 + (number - 1) * single))
    low, high = found["relative_low"].iloc[1], found["relative_high"].iloc[1]
    assert np.isnan(low) or low <= several + 1e-9 <= high + 2e-9


def test_a_design_with_the_numbers_observed_is_the_coefficient_itself():
    cube = np.random.default_rng(3).normal(size=(6, 3, 2)) + np.arange(6)[:, None, None]
    facets = ["respondent_id", "order", "wording"]
    frame = crossed(cube, facets).assign(scale="s")
    given = reliability.generalisability(frame, facets).iloc[0]
    found = reliability.design_study(frame, facets, {}).iloc[0]
    columns = ["relative", "relative_low", "relative_high", "absolute", "absolute_low",
               "absolute_high", "objects"]  # fmt: skip
    assert found[columns].tolist() == given[columns].tolist()
    assert found[["scale", "order", "wording"]].tolist() == ["s", 3, 2]


def test_a_design_of_two_facets_divides_each_source_by_its_own_numbers():
    cube = np.random.default_rng(4).normal(size=(8, 4, 3)) + np.arange(8)[:, None, None]
    facets = ["respondent_id", "o", "w"]
    frame = crossed(cube, facets)
    parts = components(frame, facets)["variance"].clip(lower=0)
    parts.index = parts.index.str.replace("respondent_id", "p")
    sizes = {"o": [10], "w": [2, 5]}
    found = reliability.design_study(frame, facets, sizes)
    assert found[["o", "w"]].to_numpy().tolist() == [[10, 2], [10, 5]]
    relative = parts["p×o"] / 10 + parts["p×w"] / 5 + parts["p×o×w"] / 50
    absolute = relative + parts["o"] / 10 + parts["w"] / 5 + parts["o×w"] / 50
    row = found.iloc[1]
    assert row["relative"] == pytest.approx(parts["p"] / (parts["p"] + relative))
    assert row["absolute"] == pytest.approx(parts["p"] / (parts["p"] + absolute))


@pytest.mark.parametrize("sizes", [{"respondent_id": 3}, {"day": 3}, {"judge": 0}, {"judge": "x"},
                                   {"judge": [2, 2.5]}])  # fmt: skip
def test_an_impossible_plan_is_refused(sizes):
    with pytest.raises(ParameterError, match="must be"):
        reliability.design_study(FRAME, FACETS, sizes)


def test_the_interval_of_the_relative_coefficient_is_the_jackknife_worked_by_hand():
    # Seven people were asked twice. With the mean squares of people and of the residuals, the
    # coefficient is 1 - MS_r / MS_p. The jackknife uses Student's quantile of 6 degrees of freedom,
    # 2.446912, on the scale ln (1 - coefficient).
    x = np.array(
        [[1.0, 2.0], [5.0, 4.0], [3.0, 3.5], [7.0, 6.0], [2.0, 2.5], [4.0, 5.5], [6.0, 7.0]]
    )

    def unreliable(rows: np.ndarray) -> float:
        people, runs = rows.mean(axis=1, keepdims=True), rows.mean(axis=0)
        residual = ((rows - people - runs + rows.mean()) ** 2).sum() / (len(rows) - 1)
        return residual / (2 * people.var(ddof=1))

    without = np.log([unreliable(np.delete(x, person, axis=0)) for person in range(7)])
    half = 2.446912 * np.sqrt(6 / 7 * ((without - without.mean()) ** 2).sum())
    whole = unreliable(x)
    frame = pd.DataFrame(x).rename_axis("respondent_id").reset_index()
    frame = frame.melt("respondent_id", var_name="run", value_name="score")
    row = reliability.generalisability(frame, ["respondent_id", "run"]).iloc[0]
    expected = [1 - whole, 1 - whole * np.exp(half), 1 - whole * np.exp(-half)]
    assert expected[1] > 0
    assert row[["relative", "relative_low", "relative_high"]].tolist() == pytest.approx(expected)
    assert 0 < row["absolute_low"] < row["absolute"] < row["absolute_high"] < 1


@pytest.mark.parametrize("scores", [3, "scores", None, pd.DataFrame()])
def test_what_has_no_scores_cannot_be_generalised(scores):
    with pytest.raises(ParameterError):
        reliability.generalisability(scores, ["respondent_id", "run"])


def test_an_unbalanced_design_is_refused():
    for said, frame, facets in (
        ("24 scores are needed", FRAME.iloc[1:], FACETS),
        ("twice", pd.concat([FRAME, FRAME.iloc[:1]]), FACETS),
        ("one level", FRAME[FRAME["judge"] == 0], FACETS),
        ("no column 'order'", FRAME, ["respondent_id", "order"]),
    ):
        with pytest.raises(ParameterError, match=said):
            components(frame, facets)
    with pytest.raises(ParameterError, match="must be one of"):
        reliability.generalisability(FRAME, FACETS, target="judges")


def test_a_table_of_scales_has_the_alpha_of_each():
    gad = load_questionnaire("gad7")
    values = parallel(0.7, 7, 12, seed=8).set_axis([item.id for item in gad.items], axis=1)
    items = values.rename_axis("respondent_id").reset_index()
    items = items.melt("respondent_id", var_name="item_id", value_name="score")
    row = reliability.reliability_table(items.assign(questionnaire="gad7"), [gad]).iloc[0]
    keyed = values * [item.keying for item in gad.items]
    assert row["alpha"] == pytest.approx(reliability.alpha(keyed)["alpha"])


def test_an_item_that_varies_by_rounding_only_is_constant():
    table = parallel(0.6, 4, 30, seed=1)
    table["i0"] = np.where(np.arange(30) % 2, 0.1 + 0.2, 0.3)
    assert np.isnan(reliability.omega(table)["omega"])


def test_the_table_lives_with_every_few_members_of_the_population():
    scales = [pm.load_questionnaire(name) for name in ("gad7", "soc13")]
    rng = np.random.default_rng(7)
    rows = [(n, q.id, item.id, trait + rng.normal()) for n, trait in enumerate(rng.normal(size=24))
            for q in scales for item in q.items]  # fmt: skip
    columns = ["respondent_id", "questionnaire", "item_id", "score"]
    items = pd.DataFrame(rows, columns=columns)
    for size in range(3, 9):
        chosen = rng.choice(24, size, replace=False)
        table = reliability.reliability_table(items[items["respondent_id"].isin(chosen)], scales)
        assert (table["n"] == size).all()
        assert table["alpha"].notna().all()


def test_a_gap_is_left_out_and_does_not_count_as_nothing():
    table = parallel(0.6, 4, 30, seed=6)
    gaps = table.mask(np.random.default_rng(1).random(table.shape) < 0.1)
    whole = gaps.dropna()
    assert 5 < len(whole) < 30
    pd.testing.assert_series_equal(reliability.alpha(gaps), reliability.alpha(whole))
    pd.testing.assert_series_equal(reliability.omega(gaps), reliability.omega(whole))
    assert reliability.alpha(gaps)["n"] == len(whole)
    # pairwise deletion, and degrees of freedom of all respondents, would give another interval
    low, high = pingouin.cronbach_alpha(whole)[1]
    # which are rounded to three decimals
    assert reliability.alpha(gaps)[["low", "high"]].tolist() == pytest.approx([low, high], abs=6e-4)


def test_fewer_than_three_complete_respondents_leave_alpha_open():
    table = parallel(0.6, 4, 5, seed=6)
    table.iloc[:3, 0] = np.nan
    found = reliability.alpha(table)
    assert found["n"] == 2
    assert found[["alpha", "low", "high"]].isna().all()
    assert np.isnan(reliability.omega(table)["omega"])
    table.iloc[:4, 0] = np.nan
    assert np.isnan(reliability.omega(table)["omega"]), "one respondent is left"
    opposed = pd.DataFrame({"a": [1.0, 2, 3], "b": [3.0, 2, 1]})
    assert np.isnan(reliability.alpha(opposed)["alpha"]), "the sum does not vary"
