"""How much of a sum is one tendency: of structures whose answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics.exceptions import ParameterError
from psychometrics.measures.omega import _omegas_of_factors, omega_hierarchical

GROUPS = np.repeat(np.eye(3), 3, axis=0)


def respondents(general: float, group: float, n: int = 20_000) -> pd.DataFrame:
    """Nine items: a general factor, three of groups, and errors, whose variances add up to 1."""
    rng = np.random.default_rng(1)
    traits = rng.normal(size=(n, 1)) * np.sqrt(general)
    groups = rng.normal(size=(n, 3)) @ GROUPS.T * np.sqrt(group)
    errors = rng.normal(size=(n, 9)) * np.sqrt(1 - general - group)
    return pd.DataFrame(traits + groups + errors, columns=list("abcdefghi"))


def linear_omegas(table: pd.DataFrame) -> tuple[float, float]:
    return _omegas_of_factors(table.corr().to_numpy())


@pytest.mark.parametrize(("general", "group"), [(0.4, 0.2), (0.2, 0.3)])
def test_omegas_are_those_of_the_factors_that_the_items_were_made_of(general, group):
    # the sum of nine items varies by 81 g + 27 s of the factors and 9 (1 - g - s) of the errors
    whole = 81 * general + 27 * group + 9 * (1 - general - group)
    total, hierarchical = linear_omegas(respondents(general, group))
    assert hierarchical == pytest.approx(81 * general / whole, abs=0.02)
    assert total == pytest.approx((81 * general + 27 * group) / whole, abs=0.01)


def exact(correlations: np.ndarray, people: int = 60) -> pd.DataFrame:
    """Scores whose sample correlations are exactly these."""
    values = np.random.default_rng(0).normal(size=(people, len(correlations)))
    values = np.linalg.qr(values - values.mean(axis=0))[0]
    return pd.DataFrame(values @ np.linalg.cholesky(correlations).T)


def test_omegas_of_exact_correlations_are_worked_by_hand():
    # Correlations of .6 within three groups of three and .4 between groups: a general factor of
    # variance .4 and group factors of .2. The nine items' correlations add up to
    # 9 + 18 · .6 + 54 · .4 = 41.4, of which the general factor makes 81 · .4 = 32.4 and all factors
    # 81 · .4 + 27 · .2 = 37.8.
    correlations = GROUPS @ np.full((3, 3), 0.4) @ GROUPS.T + 0.2 * GROUPS @ GROUPS.T
    np.fill_diagonal(correlations, 1)
    omegas = linear_omegas(exact(correlations))
    assert omegas == pytest.approx((37.8 / 41.4, 32.4 / 41.4), abs=1e-5)


def test_of_coarse_answers_the_ordinal_omegas_are_those_of_the_tendencies():
    tendencies = respondents(0.4, 0.2, 4000)
    coarse = pd.DataFrame(np.digitize(tendencies, [0.5, 1.5]), columns=tendencies.columns)
    fine = linear_omegas(tendencies)
    ordinal = omega_hierarchical(coarse)
    assert ordinal.tolist() == pytest.approx([*fine, 4000], abs=0.03)
    assert linear_omegas(coarse)[0] < fine[0] - 0.03


def test_what_cannot_be_known_is_missing_or_refused():
    table = respondents(0.4, 0.2, 100)
    assert np.isnan(omega_hierarchical(table.round(1).assign(a=1.0))["omega_total"])
    with pytest.raises(ParameterError):
        omega_hierarchical(table.iloc[:, :5])
