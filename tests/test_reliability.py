"""Reliability, against hand-worked values, simulations with known truth, and invariants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures import reliability
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


def test_omega_of_a_one_factor_model_is_its_loadings():
    loadings = np.array([0.9, 0.7, 0.5, 0.3])
    rng = np.random.default_rng(3)
    trait = rng.normal(size=(20000, 1))
    values = trait * loadings + rng.normal(size=(20000, 4)) * np.sqrt(1 - loadings**2)
    truth = loadings.sum() ** 2 / (loadings.sum() ** 2 + (1 - loadings**2).sum())
    assert reliability._omega(values) == pytest.approx(truth, abs=0.01)


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
    table = reliability._variances(reliability._cube(frame, facets))
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


def test_a_table_of_scales_has_alpha_and_omega_of_each():
    gad = load_questionnaire("gad7")
    values = parallel(0.7, 7, 12, seed=8).set_axis([item.id for item in gad.items], axis=1)
    items = values.rename_axis("respondent_id").reset_index()
    items = items.melt("respondent_id", var_name="item_id", value_name="score")
    row = reliability.reliability_table(items.assign(questionnaire="gad7"), [gad]).iloc[0]
    keyed = values * [item.keying for item in gad.items]
    assert row["alpha"] == pytest.approx(reliability.alpha(keyed)["alpha"])
    assert row["omega"] == pytest.approx(reliability.omega(keyed)["omega"])


def test_an_item_that_varies_by_rounding_only_is_constant():
    table = parallel(0.6, 4, 30, seed=1)
    table["i0"] = np.where(np.arange(30) % 2, 0.1 + 0.2, 0.3)
    assert np.isnan(reliability.omega(table)["omega"])
    assert reliability.alpha(table)["constant"] == 1


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
        assert table["omega"].isna().tolist() == (table["items"] >= size).tolist()
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
    assert reliability.alpha(gaps)[["low", "high"]].tolist() == [low, high]


def test_fewer_than_three_complete_respondents_leave_alpha_open():
    table = parallel(0.6, 4, 5, seed=6)
    table.iloc[:3, 0] = np.nan
    found = reliability.alpha(table)
    assert found["n"] == 2
    assert found[["alpha", "low", "high"]].isna().all()
    opposed = pd.DataFrame({"a": [1.0, 2, 3], "b": [3.0, 2, 1]})
    assert np.isnan(reliability.alpha(opposed)["alpha"]), "the sum does not vary"
