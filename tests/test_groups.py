"""Two groups compared: edges of what can be compared, and ties among exchanges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wishart
from sklearn.decomposition import PCA
from statsmodels.multivariate.factor_rotation import rotate_factors

from psychometrics.exceptions import ParameterError
from psychometrics.measures.factor import as_correlations
from psychometrics.measures.groups import (
    _loadings,
    _rotated_congruences,
    congruence,
    standardised_dif,
)
from psychometrics.measures.marginal_likelihood import _first_slopes
from psychometrics.nulls.kernels import _scale_statistics
from tests.test_validity import cell_of


def _answers(rows: int, items: int, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(rows, items)))


@pytest.mark.parametrize(("rows", "items", "factors"), [(300, 10, 2), (40, 10, 3), (18, 50, 5)])
def test_principal_components_are_scikit_learns(rows, items, factors):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, items)) @ rng.normal(size=(items, items)))
    components = PCA(svd_solver="full").fit((table - table.mean()) / table.std())
    variances = components.explained_variance_
    expected = (components.components_.T * np.sqrt(variances))[:, factors - 1 :: -1]

    def up_to_signs(found: np.ndarray) -> np.ndarray:
        return found * np.sign((found * expected).sum(axis=0))

    correlations = table.corr().to_numpy()
    found = _loadings(correlations[None], factors)[0]
    assert up_to_signs(found) == pytest.approx(expected, abs=1e-8)

    loadings = cell_of("12-published-answers", "def loadings")["loadings"]
    assert up_to_signs(loadings(table, factors)) == pytest.approx(expected, abs=1e-8)

    eigenvalues = cell_of("12-published-answers", "def eigenvalues")["eigenvalues"]
    assert eigenvalues(table.to_numpy())[: len(variances)] == pytest.approx(variances, abs=1e-8)

    share = _scale_statistics(correlations[None], pd.Series({"a": items}))[
        "first component", "a", ""
    ]
    assert share == pytest.approx(components.explained_variance_ratio_[:1], abs=1e-8)

    first = components.components_[0]
    slopes = np.clip(3 * first * np.sign(first.sum()), -1.5, 1.5)
    assert _first_slopes(table.to_numpy()) == pytest.approx(slopes, abs=1e-8)


def test_two_items_more_than_factors_are_enough_and_one_more_is_not():
    assert congruence(_answers(20, 4), _answers(20, 4, 1), factors=2, draws=5)["items"] == 4
    with pytest.raises(ParameterError, match="3 items vary, too few for 2 factors"):
        congruence(_answers(20, 3), _answers(20, 3, 1), factors=2, draws=5)


def test_three_rows_without_a_gap_are_enough_and_two_are_not():
    found = congruence(_answers(20, 4), _answers(3, 4, 1), factors=2, draws=5)
    assert found["n"] == 3
    gap = _answers(3, 4, 1)
    gap.iloc[0, 0] = np.nan
    with pytest.raises(ParameterError, match="at least three complete rows"):
        congruence(_answers(20, 4), gap, factors=2, draws=5)


def test_exchanges_that_leave_every_item_with_its_like_count_as_reaching_the_observed_value():
    # two factors of two items each, exactly
    correlations = np.kron(np.eye(2), [[1.0, 0.6], [0.6, 1.0]])
    correlations += np.kron(1 - np.eye(2), np.full((2, 2), 0.2))
    values = np.random.default_rng(3).normal(size=(40, 4))
    values = np.linalg.qr(values - values.mean(axis=0))[0]
    table = pd.DataFrame(values @ np.linalg.cholesky(correlations).T)

    rng = np.random.default_rng(7)
    orders = [rng.permutation(4) for _ in range(60)]
    alike = [set(order[:2]) in ({0, 1}, {2, 3}) for order in orders]
    found = congruence(table, table, factors=2, draws=60, seed=7)
    assert found["p"] == (1 + sum(alike)) / 61


@pytest.mark.parametrize("wrong", [np.inf, "five"])
def test_an_item_with_an_infinite_or_written_answer_is_refused_and_not_left_out(wrong):
    other = _answers(20, 5, 1).astype(object)
    other.iloc[0, 0] = wrong
    with pytest.raises(ParameterError, match="not a number"):
        congruence(_answers(20, 5), other, factors=2, draws=5)


def test_more_draws_than_could_end_are_refused():
    with pytest.raises(ParameterError, match="draws must be at most"):
        congruence(_answers(20, 4), _answers(20, 4, 1), factors=2, draws=10**12)


def _sums(n: int, score: int = 2) -> pd.DataFrame:
    """Answers of 4 and 2 in equal numbers (or one of 4), by the sum of the scale."""
    halves = [n // 2, n - n // 2]
    sums = 2 * halves[0] + 4 * halves[1]
    squares = 4 * halves[0] + 16 * halves[1]
    row = {"item_id": ["a"], "score": score, "n": n, "sum": sums, "squares": squares}
    return pd.DataFrame(row)


def test_differential_functioning_is_worked_by_hand():
    # reference: 20 answers of mean 3 and variance 1; focal: 10 answers of 4, of which none varies;
    # SMD = 4 - 3 = 1, its error variance 0 / 10 + 1 / 20
    focal = pd.DataFrame({"item_id": ["a"], "score": 2, "n": 10, "sum": 40, "squares": 160})
    row = standardised_dif(_sums(20), focal).loc["a"]
    half = 1.959964 * np.sqrt(1 / 20)
    assert [row["smd"], row["low"], row["high"]] == pytest.approx([1, 1 - half, 1 + half])
    assert [row["effect"], row["dif"], row["n"]] == [1, "C", 10]


def test_two_scores_are_weighted_by_the_focal_group():
    # at score 2 the focal group's 10 answers are 1 above, at score 3 its 30 answers are level with
    # the reference: SMD = 10 / 40; squared weights 1/16 and 9/16 of the error variances
    reference = pd.concat([_sums(20), _sums(40, score=3)])
    first = pd.DataFrame({"item_id": ["a"], "score": 2, "n": 10, "sum": 40, "squares": 160})
    row = standardised_dif(reference, pd.concat([first, _sums(30, score=3)])).loc["a"]
    half = 1.959964 * np.sqrt(1 / 16 / 20 + 9 / 16 * (1 / 30 + 1 / 40))
    assert [row["smd"], row["low"], row["high"]] == pytest.approx([0.25, 0.25 - half, 0.25 + half])
    assert row["dif"] == "A", "the interval includes 0"


def test_one_member_of_the_focal_group_has_no_interval_and_no_class():
    row = standardised_dif(_sums(20), _sums(1)).loc["a"]
    assert row["smd"] == 1
    assert row[["low", "high", "dif"]].isna().all()


def test_the_interval_of_congruence_is_that_of_200_wishart_samples_with_one_degree_less_than_rows():
    # covariances of nine normal rows have eight degrees of freedom
    rng = np.random.default_rng(4)
    traits = np.repeat(rng.normal(size=(400, 2)), 3, axis=1)
    people = pd.DataFrame(traits + 0.5 * rng.normal(size=(400, 6)))
    table = pd.DataFrame(traits[:9] + 0.8 * rng.normal(size=(9, 6)))

    target = rotate_factors(_loadings(people.corr().to_numpy()[None], 2)[0], "varimax")[0]
    draws = np.random.default_rng(0)
    orders = [draws.permutation(6) for _ in range(300)]
    samples = wishart.rvs(8, table.corr().to_numpy(), size=200, random_state=draws)
    repeats = _rotated_congruences(_loadings(as_correlations(samples), 2), target).mean(axis=1)

    found = congruence(people, table, factors=2, draws=300)
    middle = found["congruence"] - np.median(repeats)
    ends = np.quantile(repeats, [0.025, 0.975]) + middle
    assert found[["low", "high"]].tolist() == pytest.approx(ends.clip(-1, 1).tolist())

    loadings = _loadings(table.corr().to_numpy()[None], 2)[0]
    chance = [_rotated_congruences(loadings[order][None], target).mean() for order in orders]
    assert found["chance"] == pytest.approx(np.median(chance))


def test_an_interval_of_congruence_lies_from_minus_1_to_1():
    rng = np.random.default_rng(0)
    ends = []
    for spread in (0.2, 0.4, 2.0, 9.0):
        traits = np.repeat(rng.normal(size=(2, 25, 2)), 3, axis=2)
        first, second = (pd.DataFrame(t + spread * rng.normal(size=t.shape)) for t in traits)
        ends.append(congruence(first, second, factors=2, draws=60))
    found = pd.DataFrame(ends)
    assert (found["low"] >= -1).all()
    assert (found["low"] <= found["high"]).all()
    assert found["high"].max() == 1, "corrected for bias, the end would lie beyond 1"
