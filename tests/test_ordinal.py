"""Correlations of the tendencies behind ordered answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from psychometrics.exceptions import ParameterError
from psychometrics.measures import ordinal


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.95])
def test_the_bivariate_normal_distribution_is_that_of_scipy(rho):
    points = np.array([[-1.2, 0.4], [0.0, 0.0], [2.0, -0.7], [9.0, 0.3]])
    ours = ordinal._bivariate_normal(points[:, 0], points[:, 1], rho)
    theirs = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf(points)
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_a_two_by_two_table_cut_at_the_middle_has_the_sine_of_its_agreement():
    # with thresholds 0 a share s of equal answers means rho = sin(pi (s - 1/2))
    table = pd.DataFrame({"a": [0] * 8 + [1] * 8, "b": [0] * 6 + [1] * 8 + [0] * 2})
    found = ordinal.polychoric(table).loc["a", "b"]
    assert found == pytest.approx(np.sin(np.pi * (12 / 16 - 1 / 2)), abs=1e-5)


@pytest.mark.parametrize("rho", [0.3, 0.7])
def test_the_correlation_behind_coarse_answers_is_recovered_where_pearsons_is_too_low(rho):
    rng = np.random.default_rng(1)
    tendencies = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 20_000)
    coarse = pd.DataFrame(np.digitize(tendencies, [0.8, 1.5]), columns=["a", "b"])
    assert ordinal.polychoric(coarse).loc["a", "b"] == pytest.approx(rho, abs=0.03)
    assert coarse.corr().loc["a", "b"] < rho - 0.04


def test_what_cannot_be_known_is_missing_or_refused():
    constant = pd.DataFrame({"a": [1, 2, 3, 2], "b": [1, 1, 1, 1], "c": [1, 3, 2, 2]})
    found = ordinal.polychoric(constant)
    assert np.isnan(found.loc["a", "b"])
    assert np.isfinite(found.loc["a", "c"])
    with pytest.raises(ParameterError):
        ordinal.polychoric(constant.head(2))
