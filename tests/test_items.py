from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin
import pytest
import statsmodels.api as sm
from scipy.stats import chi2, pearsonr
from statsmodels.stats.contingency_tables import StratifiedTable

from psychometrics.exceptions import ParameterError
from psychometrics.measures import items as classical


def table(rows: list[str], columns: str = "abcdefgh") -> pd.DataFrame:
    return pd.DataFrame(
        [[int(c) for c in row] for row in rows], columns=list(columns[: len(rows[0])])
    )


SMALL = table(["1110", "1100", "1000", "1011", "0000"])


def test_item_rest_is_the_correlation_with_the_sum_of_the_others():
    found = classical.item_rest(SMALL)["r"]
    # By hand for the first item: (1,1,1,1,0) with (2,1,0,2,0).
    assert found["a"] == pytest.approx(pearsonr([1, 1, 1, 1, 0], [2, 1, 0, 2, 0])[0])
    assert found["d"] == pytest.approx(pearsonr([0, 0, 0, 1, 0], [3, 2, 1, 2, 0])[0])


def groups(shift: float = 0.0, n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rasch answers of two groups of equal ability; the first item is harder for the second."""
    rng = np.random.default_rng(seed)
    where = np.linspace(-1, 1, 12)
    parts = []
    for move in (0.0, shift):
        logits = rng.standard_normal((n, 1)) - where - move * (np.arange(12) == 0)
        parts.append(pd.DataFrame((rng.random((n, 12)) < 1 / (1 + np.exp(-logits))).astype(int)))
    return tuple(parts)


def test_mantel_haenszel_is_statsmodels_on_the_same_strata():
    reference, focal = groups(0.8, n=150)
    found = classical.dif(reference, focal)
    item = 3
    total = {"r": reference.sum(axis=1), "f": focal.sum(axis=1)}
    strata = [
        [[((x[item] == v) & (total[name] == s)).sum() for v in (1, 0)] for name, x in
         (("r", reference), ("f", focal))]
        for s in range(13)
    ]  # fmt: skip
    strata = [np.array(t, float) for t in strata if min(np.sum(t, axis=1)) > 0]
    known = StratifiedTable(strata)
    row = found.loc[item]
    assert row["odds_ratio"] == pytest.approx(known.oddsratio_pooled)
    assert row["se"] == pytest.approx(2.35 * known.logodds_pooled_se)
    test = known.test_null_odds(correction=True)
    assert row["chi2"] == pytest.approx(test.statistic)
    assert row["p"] == pytest.approx(test.pvalue)


def test_mantel_haenszel_by_hand_on_one_stratum():
    # Items b and c make every sum 2, so that all match: a is solved by 3 of 4 and by 1 of 4.
    reference = table(["110", "110", "110", "011"], "abc")
    focal = table(["110", "011", "011", "011"], "abc")
    row = classical.dif(reference, focal).loc["a"]
    assert row["odds_ratio"] == pytest.approx(3 * 3 / (1 * 1))
    assert row["delta"] == pytest.approx(-2.35 * np.log(9))
    # (|3 - 2| - 0.5)^2 over 4*4*4*4 / (64*7)
    assert row["chi2"] == pytest.approx(0.25 / (256 / 448))
    assert row["ets"] == "A"  # large, but not significant


def test_both_methods_find_the_planted_item_and_leave_the_others_alone():
    reference, focal = groups(1.2)
    mh, logistic = (
        classical.dif(reference, focal), classical.dif(reference, focal, "logistic")
    )  # fmt: skip
    assert mh.loc[0, "ets"] == "C"
    assert mh.loc[0, "delta"] == pytest.approx(-2.35 * 1.2, abs=0.8)  # the planted log odds ratio
    assert classical.adjust(mh["p"]).lt(0.05).tolist() == [True] + [False] * 11
    assert logistic.loc[0, "group"] < -0.5
    assert classical.adjust(logistic["p"]).lt(0.05).tolist() == [True] + [False] * 11


def test_logistic_dif_agrees_with_statsmodels():
    reference, focal = groups(0.7, n=120)
    both = pd.concat([reference, focal], ignore_index=True)
    score = both.sum(axis=1).to_numpy(float)
    design = np.c_[np.ones(240), (score - score.mean()) / score.std(), np.repeat([0.0, 1.0], 120)]
    row = classical.dif(reference, focal, "logistic").loc[2]
    fit, plain = (sm.Logit(both[2], design[:, :n]).fit(disp=0) for n in (3, 2))
    assert row["group"] == pytest.approx(fit.params.iloc[2], abs=1e-6)
    assert row["se"] == pytest.approx(fit.bse.iloc[2], abs=1e-5)
    assert row["p_uniform"] == pytest.approx(chi2.sf(2 * (fit.llf - plain.llf), 1), abs=1e-6)


def test_the_size_of_logistic_dif_is_the_gain_in_nagelkerkes_share():
    reference, focal = groups(0.8, n=120)
    both = pd.concat([reference, focal], ignore_index=True)
    found = classical.dif(reference, focal, "logistic")
    score = both.sum(axis=1).to_numpy(float)
    focal_group = np.r_[np.zeros(len(reference)), np.ones(len(focal))]
    design = sm.add_constant(np.c_[score, focal_group, score * focal_group])

    def share(columns):
        model = sm.Logit(both[2], design[:, :columns]).fit(disp=0)
        cox_and_snell = 1 - np.exp(2 * (model.llnull - model.llf) / len(both))
        return cox_and_snell / (1 - np.exp(2 * model.llnull / len(both)))

    assert found.loc[2, "r2"] == pytest.approx(share(4) - share(2), abs=1e-6)


def test_dif_is_missing_or_infinite_where_it_must_be():
    reference = table(["111", "110", "100", "101"], "abc")
    focal = table(["011", "010", "000", "001"], "abc").assign(c=[1, 0, 1, 1])
    mh = classical.dif(reference, focal)
    assert (mh.loc["a", "odds_ratio"], mh.loc["a", "delta"]) == (np.inf, -np.inf)
    same = table(["11", "10"], "ab")
    assert np.isnan(classical.dif(same, same).loc["a", "p"])
    assert np.isnan(classical.dif(same, same, "logistic").loc["a", "p"])


def test_the_continuity_correction_stops_at_no_difference():
    # a: 1 of 2 against 1 of 2, so that nothing is left to correct; statsmodels would find 0.25.
    reference = table(["110", "011"], "abc")
    row = classical.dif(reference, reference).loc["a"]
    assert (row["odds_ratio"], row["chi2"], row["p"]) == (1, 0, 1)


def test_an_item_that_a_whole_group_missed_has_a_likelihood_ratio_and_an_infinite_effect():
    reference, focal = groups(0.0, n=100)
    focal[0] = 0
    row = classical.dif(reference, focal, "logistic").loc[0]
    assert row["group"] == -np.inf
    assert np.isnan(row["se"])
    assert row["size"] == "C"
    # The limit of the likelihood: the focal group is predicted perfectly, the other by its sums.
    both = pd.concat([reference, focal], ignore_index=True)
    t = both.sum(axis=1).to_numpy(float)
    plain = sm.Logit(both[0], sm.add_constant(t)).fit(disp=0).llf
    alone = sm.Logit(reference[0], sm.add_constant(t[:100])).fit(disp=0).llf
    assert row["p_uniform"] == pytest.approx(chi2.sf(2 * (alone - plain), 1), rel=1e-4)
    assert row["p_nonuniform"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("delta", "se", "p", "size"),
    [
        (-0.99, 0.1, 0.001, "A"),  # smaller than 1
        (2.0, 0.1, 0.05, "A"),  # not significant
        (1.0, 0.1, 0.049, "B"),
        (-1.49, 0.1, 0.001, "B"),
        (-1.5, 0.1, 0.001, "C"),
        (1.5, 0.31, 0.001, "B"),  # (1.5 - 1) / 0.31 = 1.61 is not above 1.645
        (1.5, 0.30, 0.001, "C"),  # 1.67 is
        (-np.inf, np.nan, 0.001, "C"),
        (np.nan, np.nan, np.nan, ""),
    ],
)
def test_the_classes_of_ets_begin_at_1_and_at_15_if_that_is_significantly_above_1(
    delta, se, p, size
):
    values = (pd.Series([value]) for value in (abs(delta), se, p))
    assert classical._ets_classes(*values).tolist() == [size]


def test_the_interval_of_delta_is_196_standard_errors_to_both_sides():
    row = classical.dif(*groups(0.8, n=150)).loc[3]
    assert row["high"] - row["delta"] == pytest.approx(1.959964 * row["se"])
    assert row["delta"] - row["low"] == pytest.approx(1.959964 * row["se"])


@pytest.mark.parametrize(
    ("method", "corrected"),
    [
        ("holm", [0.04, 0.06, np.nan, 0.06, 0.5]),  # 4 .01, 3 .02, then no less: 2 .03 = .06
        ("fdr_bh", [0.04, 0.04, np.nan, 0.04, 0.5]),  # no more than 4 .03 / 3
        ("bonferroni", [0.04, 0.08, np.nan, 0.12, 1.0]),
        ("none", [0.01, 0.02, np.nan, 0.03, 0.5]),
    ],
)
def test_corrections_of_four_p_values_by_hand_and_a_gap_is_no_test(method, corrected):
    p = pd.Series([0.01, 0.02, np.nan, 0.03, 0.5], index=list("abcde"))
    found = classical.adjust(p, method)
    assert found.tolist() == pytest.approx(corrected, nan_ok=True)
    assert found.index.tolist() == list("abcde")


@pytest.mark.parametrize("method", ["holm", "fdr_bh", "bonferroni"])
def test_corrections_are_those_of_pingouin_with_ties_and_for_a_single_test(method):
    rng = np.random.default_rng(1)
    for size in (1, 2, 7, 200):
        p = rng.random(size).round(2)
        twin = pingouin.multicomp(p, method={"bonferroni": "bonf"}.get(method, method))[1]
        np.testing.assert_allclose(classical.adjust(pd.Series(p), method), twin, rtol=1e-12)


@pytest.mark.parametrize("wrong", [-0.01, 1.01])
def test_a_p_value_outside_0_to_1_is_refused_and_its_ends_are_taken(wrong):
    assert classical.adjust(pd.Series([0.0, 1.0])).tolist() == [0.0, 1.0]
    with pytest.raises(ParameterError, match="between 0 and 1"):
        classical.adjust(pd.Series([wrong]))


def test_an_item_without_variance_has_no_correlation_with_the_rest_and_gaps_leave_a_person_out():
    answers = SMALL.assign(e=1.0)
    answers.loc[5] = [1, 1, np.nan, 0, 1]
    found = classical.item_rest(answers)
    assert np.isnan(found.loc["e", "r"])
    assert found.loc["a", "r"] == pytest.approx(pearsonr([1, 1, 1, 1, 0], [2, 1, 0, 2, 0])[0])
    assert (found["n"] == 5).all()
