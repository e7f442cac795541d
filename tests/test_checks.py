"""Wrong tables and settings end in one error that names them, and every measure has its checks."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics import checks
from psychometrics.exceptions import ParameterError

TABLE = pd.DataFrame({"respondent_id": ["a", "b"], "score": [1.0, np.nan], "status": "ok"})


@pytest.mark.parametrize(
    "table",
    [
        None, 5, "text", [1, 2], {}, np.eye(2), pd.DataFrame(),
        TABLE.drop(columns="score"),
        pd.concat([TABLE, TABLE[["score"]]], axis=1),
        TABLE.assign(respondent_id=["a", None]),
        TABLE.assign(respondent_id=["a", pd.NA]),
        TABLE.assign(score=["1", "2"]),
        TABLE.assign(score=[1.0, "n/a"]),
        TABLE.assign(score=[1.0, np.inf]),
        TABLE.iloc[:0].assign(score=pd.Series(dtype="string")),
        TABLE.assign(status=["ok", "OK"]),
        pd.concat([TABLE, TABLE]),
    ],
    ids=range(17),
)  # fmt: skip
def test_a_table_that_cannot_be_measured_is_refused(table):
    with pytest.raises(ParameterError):
        checks.check_columns(table, ["respondent_id", "status"], ["score"], once=["respondent_id"])


@pytest.mark.parametrize(
    "score", [[1, 2], [True, False], [0.5, None], pd.array([1, None], "Int64"), [1, np.nan]]
)
def test_numbers_of_any_type_and_gaps_are_taken(score):
    table = TABLE.assign(score=score)
    checks.check_columns(table, ["respondent_id"], ["score"], once=["respondent_id"])
    checks.check_columns(table.assign(respondent_id=["a", None]), (), gaps=["respondent_id"])


@pytest.mark.parametrize("value", [["draws"], {}, TABLE, np.ones(2)])
def test_only_a_name_can_be_a_column_or_a_choice(value):
    with pytest.raises(ParameterError):
        checks.check_columns(TABLE, [value])
    with pytest.raises(ParameterError):
        checks.check_choice(("a", "b"), choice=value)


@pytest.mark.parametrize("name", ["draws", "n_resamples", "populations", "simulations", "runs"])
@pytest.mark.parametrize("number", [10**12, 0, -1, 2.5, np.nan, "many", True, None])
def test_numbers_of_draws_that_would_never_end_or_begin_are_refused(name, number):
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        checks.check_numbers(**{name: number})
    checks.check_numbers(**{name: np.int64(20)}, seed=0, retries=0)


@pytest.mark.parametrize("value", ["no", "false", 2, None])
def test_a_text_or_a_number_is_neither_true_nor_false(value):
    with pytest.raises(ParameterError, match=r"^overwrite "):
        checks.check_flags(overwrite=value)
    checks.check_flags(overwrite=np.True_)


@pytest.mark.parametrize("value", ["run", b"run", 3, None, TABLE, pm.load_questionnaire("gad7")])
def test_one_name_or_table_is_no_list(value):
    with pytest.raises(ParameterError, match=r"^by "):
        checks.check_names(by=value)


@pytest.mark.parametrize("values", ["x", True, None, {}, [["x"]], np.ones((2, 3, 4)), 3])
def test_what_is_no_table_of_numbers_is_refused(values):
    with pytest.raises(ParameterError, match=r"^scores "):
        checks.as_numbers("scores", values, axes=2)


def test_missing_values_of_pandas_own_are_numbers():
    frame = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [0.5, 2.0]})
    numbers = checks.as_numbers("x", frame, axes=2)
    np.testing.assert_array_equal(numbers, [[1, 0.5], [np.nan, 2]])


@pytest.mark.parametrize("layers", [0, 1.5, -1, "3", True, np.nan])
def test_a_depth_is_a_whole_number_of_layers(layers):
    with pytest.raises(ParameterError, match="layers"):
        checks.whole_depth(layers)


def test_a_value_of_another_type_is_named():
    for value in ("median", 3, None):
        with pytest.raises(ParameterError, match=r"^mean "):
            checks.check_kinds({"mean": value}, {"mean": Literal["product", "harmonic"]})
    assert "a\\1 should be" in str(checks.wrong_kind("a\\1", "Input should be an int", 2))


# Every measure calls the checks ------------------------------------------------------------------

PACKAGE = Path(pm.__file__).parent
CHECKED_BY_CALLERS = ("template_cubes",)


@functools.cache
def _functions(folder: Path) -> dict[str, list[ast.FunctionDef]]:
    functions: dict[str, list[ast.FunctionDef]] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
    return functions


@functools.cache
def _calls(name: str) -> set[str]:
    return {
        getattr(call.func, "id", getattr(call.func, "attr", ""))
        for node in _functions(PACKAGE).get(name, ())
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
    }


def _measures(annotation: str = "", names: tuple[str, ...] = ()) -> list[str]:
    """List the public functions of measures that have a parameter of a type or with a name."""
    return sorted(
        name
        for name, nodes in _functions(PACKAGE / "measures").items()
        if not name.startswith("_") and name not in CHECKED_BY_CALLERS
        for node in nodes
        if any(
            annotation in ast.unparse(parameter.annotation).split(" | ") or parameter.arg in names
            for parameter in (*node.args.args, *node.args.kwonlyargs)
            if parameter.annotation is not None
        )
    )


def _reached(name: str) -> set[str]:
    """Return the names of all functions that a function calls, directly or through others."""
    reached: set[str] = set()
    names = {name}
    while names:
        called = _calls(names.pop())
        names |= called - reached
        reached |= called
    return reached


@pytest.mark.parametrize("name", _measures("pd.DataFrame"))
def test_every_measure_of_a_table_checks_it(name):
    assert _reached(name) & {"check_columns", "as_numbers"}


@pytest.mark.parametrize("name", _measures("bool"))
def test_every_measure_with_a_flag_checks_it(name):
    assert "check_flags" in _reached(name)


@pytest.mark.parametrize("name", _measures(names=checks._DRAWS))
def test_every_measure_with_a_number_of_draws_checks_it(name):
    assert "check_numbers" in _reached(name)
