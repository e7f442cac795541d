"""Untidy tables through every statistic of items.py and irt.py: a documented result, or one
ParameterError; no other error, no warning, nothing significant without a value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psychometrics.exceptions import ParameterError
from psychometrics.measures import irt
from psychometrics.measures import items as classical

UNTIDY = settings(
    deadline=None, max_examples=30, suppress_health_check=list(HealthCheck), derandomize=True
)
CELLS = {
    "binary": st.sampled_from([0, 1]),
    "gaps": st.sampled_from([0, 1, np.nan]),
    "mostly gaps": st.sampled_from([np.nan, np.nan, np.nan, 1]),
    "ones": st.just(1),
    "graded": st.sampled_from([0, 1, 2]),
    "reals": st.floats(-1e6, 1e6),
    "large": st.sampled_from([1e300, -1e300, 0.0]),
    "infinite": st.sampled_from([0.0, np.inf]),
    "text": st.sampled_from(["0", "1", "yes", None]),
    "digits": st.sampled_from(["0", "1"]),
    "truth": st.booleans(),
    "nullable": st.sampled_from([0, 1, pd.NA]),
    "times": st.just(pd.Timestamp("2020-01-01")),
    "objects": st.sampled_from([1, [1], {}]),
}
USUAL = ("binary", "binary", "binary", "gaps", "ones")


@st.composite
def tables(draw, least_items: int = 1, most_items: int = 6) -> pd.DataFrame:
    """R by I, often R <= I; columns of any kind, now and then copied, turned round or one alone."""
    rows = draw(st.integers(1, 9))
    number = draw(st.integers(least_items, most_items))
    wild = draw(st.booleans())
    columns = {}
    for place in range(number):
        kind = draw(st.sampled_from([*CELLS] if wild else USUAL))
        column = draw(st.lists(CELLS[kind], min_size=rows, max_size=rows))
        if kind == "nullable":
            column = pd.array(column, dtype="Int64")
        columns["abcdef"[place]] = pd.Series(column)
    frame = pd.DataFrame(columns)
    twist = draw(st.sampled_from(["no"] * 8 + ["copy", "guttman", "twice", "empty"]))
    if twist == "copy":
        frame = frame.assign(**{name: frame["a"] for name in frame})
    elif twist == "guttman":
        frame = pd.DataFrame(np.tril(np.ones((rows, number), int)), columns=frame.columns)
    elif twist == "twice":
        frame.columns = ["a"] * number
    elif twist == "empty":
        frame = frame.iloc[:0]
    return frame


def outcome(function, *arguments, **options):
    """The result, or None where the one allowed error came; warnings are errors in these tests."""
    try:
        return function(*arguments, **options)
    except ParameterError as error:
        said = str(error)
    assert 10 < len(said) < 400
    return None


def coherent(frame: pd.DataFrame, statistic: str, *ps: str) -> None:
    """P values lie in [0, 1] and are missing where their statistic is."""
    for p in ps:
        known = frame[p].dropna()
        assert known.between(0, 1).all(), frame
        assert frame.loc[frame[statistic].isna(), p].isna().all(), frame


@UNTIDY
@given(tables())
def test_classical_statistics_of_any_table_are_documented_or_refused(x):
    shares = outcome(classical.difficulty, x)
    if shares is not None and shares.isin([0, 1]).all():
        assert shares.index.equals(x.columns)
    rest = outcome(classical.item_rest, x)
    if rest is not None:
        assert rest["r"].dropna().between(-1, 1).all()
        assert rest.loc[rest["r"].isna(), ["low", "high"]].isna().all(axis=None)
        inside = rest.dropna()
        assert (inside["low"] <= inside["r"]).all()
        assert (inside["r"] <= inside["high"]).all()
    mean = outcome(classical.mean_inter_item, x)
    assert mean is None or np.isnan(mean) or -1 - 1e-9 <= mean <= 1 + 1e-9
    if shares is not None:
        null = outcome(classical.null_spearman, shares.to_numpy(), 5, 20)
        named = outcome(
            classical.null_spearman, shares.to_numpy(), 5, 20, labels=list("xyxyxy")[: len(shares)]
        )
        for draws in (null, named):
            assert np.isnan(draws).all() or np.nanmax(np.abs(draws)) <= 1 + 1e-9
        assert np.isnan(classical.null_p_value(np.nan, null))


@UNTIDY
@given(tables(least_items=4), st.sampled_from(["uncorrelated", "self", "drop"]),
       st.sampled_from(classical.METHODS))  # fmt: skip
def test_clusters_of_any_table_are_partitions_or_refused(x, constant, method):
    found = outcome(classical.cluster_items, x, 2, 0, constant, method)
    if found is not None:
        assert found["silhouette"].between(-1, 1).all()
        assert (found["cost"] >= 0).all()
        assert not found["labels"].duplicated().any()


@UNTIDY
@given(tables(), tables(), st.lists(st.integers(0, 2), max_size=6), st.integers(1, 3))
def test_two_tables_agree_by_label_or_are_refused(x, y, labels, n):
    r, p = outcome(classical.partition_agreement, labels, labels[::-1], 20) or (np.nan, np.nan)
    assert np.isnan(r) == np.isnan(p)
    one = outcome(lambda t: classical.as_numbers(t).corr(), x)
    two = outcome(lambda t: classical.as_numbers(t).corr(), y)
    if one is not None and two is not None:
        found = outcome(classical.mantel_test, one, two, 20)
        if found is not None:
            assert np.isnan(found[0]) == np.isnan(found[1])
            turned = two.iloc[::-1, ::-1]
            again = classical.mantel_test(one, turned, 20)
            assert again == pytest.approx(found, nan_ok=True)


@UNTIDY
@given(tables(), tables())
def test_bias_of_items_of_any_two_tables_is_tested_or_refused(x, y):
    found = outcome(classical.mantel_haenszel, x, y)
    if found is not None:
        coherent(found, "delta", "p", "p_holm", "p_fdr")
        assert found.loc[found["p"].isna(), "ets"].eq("").all()
        assert found.loc[np.isinf(found["delta"]), ["se", "low", "high"]].isna().all(axis=None)
    found = outcome(classical.logistic_dif, x, y)
    if found is not None:
        coherent(found, "r2", "p", "p_uniform", "p_nonuniform", "p_holm", "p_fdr")
        assert found.loc[found["p"].isna(), "size"].eq("").all()
        assert found["r2"].dropna().between(-1e-9, 1 + 1e-9).all()
        turned = classical.logistic_dif(x, y.iloc[:, ::-1])
        pd.testing.assert_frame_equal(found, turned)


@UNTIDY
@given(st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0, np.nan, 2.0]), max_size=5))
def test_corrected_p_values_are_no_smaller_and_missing_where_p_is(ps):
    found = outcome(classical.adjust, pd.DataFrame({"p": ps}))
    if found is not None and len(found):
        for name in ("p_holm", "p_fdr"):
            assert found[name].isna().equals(found["p"].isna())
            assert (found[name].dropna() >= found["p"].dropna() - 1e-12).all()


@UNTIDY
@given(tables(), st.sampled_from(irt.MODELS))
def test_models_of_any_table_are_fitted_or_refused(x, model):
    fitted = outcome(irt.fit, x, model)
    conditional = outcome(irt.fit_conditional, x)
    if conditional is not None:
        finite = conditional[np.isfinite(conditional["difficulty"])]
        assert finite["difficulty"].mean() == pytest.approx(0, abs=1e-6)
        assert (finite["difficulty"].abs() < 20).all()
        assert (finite["se"] > 0).all()
    if fitted is None:
        return
    assert fitted.loc[~np.isfinite(fitted["difficulty"]), "se"].isna().all()
    assert (fitted["se"].dropna() > 0).all()
    found = irt.abilities(x, fitted)
    assert found.notna().all(axis=None)
    turned = x[x.columns[::-1]]
    pd.testing.assert_frame_equal(found, irt.abilities(turned, fitted))
    by_item = irt.item_fit(turned, fitted, simulations=3)
    pd.testing.assert_frame_equal(by_item, irt.item_fit(x, fitted, simulations=3))
    coherent(by_item, "infit", "p", "p_fdr")
    person = irt.person_fit(turned, fitted, simulations=2)
    pd.testing.assert_frame_equal(person, irt.person_fit(x, fitted, simulations=2))
    coherent(person, "lz", "p")
    table = irt.compare(x, ("rasch", model))
    assert table["p"].dropna().between(0, 1).all()
    assert np.isfinite(irt.probability(np.array([-1.0, 1.0]), fitted)).all()
    assert np.isfinite(irt.information(np.array([-1.0, 1.0]), fitted)).all()
    assert outcome(irt.abilities, x.drop(columns=x.columns[0]), fitted) is None
    assert outcome(irt.abilities, x.assign(new=1), fitted) is None


@settings(UNTIDY, max_examples=12)
@given(tables())
def test_graded_levels_of_any_table_are_fitted_or_refused(x):
    found = outcome(irt.graded, x)
    assert found is None or np.isfinite(found[["discrimination", "b1"]]).all(axis=None)
