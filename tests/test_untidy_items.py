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
    deadline=None, max_examples=12, suppress_health_check=list(HealthCheck), derandomize=True
)
CELLS = {
    "binary": st.sampled_from([0, 1]), "gaps": st.sampled_from([0, 1, np.nan]),
    "mostly gaps": st.sampled_from([np.nan, np.nan, np.nan, 1]), "ones": st.just(1),
    "graded": st.sampled_from([0, 1, 2]), "reals": st.floats(-1e6, 1e6),
    "large": st.sampled_from([1e300, -1e300, 0.0]), "infinite": st.sampled_from([0.0, np.inf]),
    "text": st.sampled_from(["0", "1", "yes", None]), "digits": st.sampled_from(["0", "1"]),
    "truth": st.booleans(), "nullable": st.sampled_from([0, 1, pd.NA]),
    "times": st.just(pd.Timestamp("2020-01-01")), "objects": st.sampled_from([1, [1], {}]),
}  # fmt: skip
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


def _fitted(x: pd.DataFrame) -> pd.DataFrame:
    return irt.fit(x.sort_index(axis=1), "rasch")


CALLS = {
    "item_rest": lambda x, _: classical.item_rest(x),
    "dif": classical.dif,
    "logistic dif": lambda x, y: classical.dif(x, y, "logistic"),
    "2pl": lambda x, _: irt.fit(x, "2pl"),
    "3pl": lambda x, _: irt.fit(x, "3pl"),
    "compare": lambda x, _: irt.compare(x, ("rasch", "1pl")),
    "abilities": lambda x, _: irt.abilities(x, _fitted(x)),
    "item_fit": lambda x, _: irt.item_fit(x, _fitted(x), simulations=2),
}
STATISTIC = {"dif": "delta", "logistic dif": "r2", "item_fit": "infit", "item_rest": "r"}
TURNED = ("logistic dif", "abilities", "item_fit")
"""Columns are matched by their labels: in another order they give the same."""


def outcome(name: str, x: pd.DataFrame, y: pd.DataFrame):
    """The result, or None where the one allowed error came; warnings are errors in these tests."""
    try:
        return CALLS[name](x, y)
    except ParameterError as error:
        said = str(error)
    assert 10 < len(said) < 400
    return None


@pytest.mark.parametrize("name", CALLS)
@UNTIDY
@given(x=tables(), y=tables())
def test_a_statistic_of_any_table_is_documented_or_refused(name, x, y):
    found = outcome(name, x, y)
    if isinstance(found, pd.DataFrame):
        ps = found[[c for c in found if c == "p" or str(c).startswith("p_")]]
        assert (ps.isna() | ((ps >= 0) & (ps <= 1))).all(axis=None)
        if name in STATISTIC:
            unknown = found[STATISTIC[name]].isna()
            assert ps[unknown].isna().all(axis=None)
            assert (
                found.loc[unknown, [c for c in ("low", "high") if c in found]].isna().all(axis=None)
            )
        if "se" in found:
            assert (found["se"].dropna() > 0).all()
    if name in TURNED and found is not None:
        again = outcome(name, x.iloc[:, ::-1], y.iloc[:, ::-1])
        if isinstance(found, pd.DataFrame):
            pd.testing.assert_frame_equal(found, again.reindex(found.index))
        else:
            assert again == pytest.approx(found, nan_ok=True)


@UNTIDY
@given(tables())
def test_fitted_models_have_what_is_finite_and_match_items_by_label(x):
    fitted = outcome("2pl", x, x)
    if fitted is not None:
        assert fitted.loc[~np.isfinite(fitted["difficulty"]), "se"].isna().all()
        for function in (irt.probability, irt.information):
            assert np.isfinite(function(np.array([-1.0, 1.0]), fitted)).all()
        for other in (x.drop(columns=x.columns[0]), x.assign(new=1)):
            for function in (irt.abilities, irt.item_fit):
                with pytest.raises(ParameterError):
                    function(other, fitted)
