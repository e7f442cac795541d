"""Reliability, against hand-worked values, simulations with known truth, and invariants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics.exceptions import ParameterError
from psychometrics.reliability import alpha, item_statistics, omega


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
    assert alpha(table)["alpha"] == pytest.approx(16 / 17)


def test_alpha_of_two_items_is_spearman_browns_formula_for_equal_variances():
    table = parallel(0.7, 2, 50, seed=1)
    standard = (table - table.mean()) / table.std()
    r = standard.corr().iloc[0, 1]
    assert alpha(standard)["alpha"] == pytest.approx(2 * r / (1 + r))


def test_alphas_interval_covers_the_truth_as_often_as_it_says():
    truth = 5 * 0.49 / (1 + 4 * 0.49)
    hits = 0
    for seed in range(400):
        found = alpha(parallel(0.7, 5, 24, seed))
        hits += found["low"] <= truth <= found["high"]
    # Three Monte Carlo standard errors around 95 %.
    assert abs(hits / 400 - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 400)


def test_omega_of_a_one_factor_model_is_its_loadings():
    loadings = np.array([0.9, 0.7, 0.5, 0.3])
    rng = np.random.default_rng(3)
    trait = rng.normal(size=(20000, 1))
    values = trait * loadings + rng.normal(size=(20000, 4)) * np.sqrt(1 - loadings**2)
    truth = loadings.sum() ** 2 / (loadings.sum() ** 2 + (1 - loadings**2).sum())
    assert omega(pd.DataFrame(values)) == pytest.approx(truth, abs=0.01)


def test_omega_equals_alpha_for_parallel_items():
    table = parallel(0.6, 6, 20000, seed=2)
    assert omega(table) == pytest.approx(alpha(table)["alpha"], abs=0.01)


def test_omega_does_not_depend_on_scale_or_sign_of_all_items():
    table = parallel(0.6, 5, 100, seed=4)
    assert omega(table * [1, 10, 0.1, 5, 2]) == pytest.approx(omega(table))
    assert omega(-table) == pytest.approx(omega(table))


def test_omega_is_undefined_for_an_item_without_variance():
    table = parallel(0.6, 4, 30, seed=5).assign(i0=1.0)
    with np.errstate(invalid="ignore"):
        assert np.isnan(omega(table))


def test_item_total_leaves_the_item_itself_out():
    table = parallel(0.6, 4, 30, seed=6)
    found = item_statistics(table)
    rest = table["i0"] + table["i1"] + table["i3"]
    assert found.loc["i2", "item_total"] == pytest.approx(np.corrcoef(table["i2"], rest)[0, 1])
    dropped = alpha(table[["i0", "i1", "i3"]])["alpha"]
    assert found.loc["i2", "alpha_if_dropped"] == pytest.approx(dropped)


def test_too_few_respondents_or_items_are_refused():
    with pytest.raises(ParameterError, match="3 respondents and 2 items are needed, got 2 and 5"):
        alpha(parallel(0.5, 5, 2, seed=0))
    with pytest.raises(ParameterError, match="3 items are needed"):
        omega(parallel(0.5, 2, 10, seed=0))
