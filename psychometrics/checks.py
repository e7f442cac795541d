"""Check the tables and settings that users pass: columns, choices, numbers, types."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, TypeAdapter, ValidationError

from .exceptions import ParameterError

UNANSWERED = ("refused", "out_of_range", "missing", "ambiguous", "unreadable", "no_reply",
              "no_choice", "tool_call", "cut_off", "unasked", "unseen_labels", "little_mass",
              "tied")  # fmt: skip
"""The statuses of questions that have no value."""
_STATUSES = ("ok", *UNANSWERED)
# Greatest number of draws, respondents and the like: more is a mistake, and would never end.
_MOST = 10_000_000
# Greatest number of random draws, each of which repeats a whole analysis.
_MOST_DRAWS = 100_000
_DRAWS = ("draws", "n_resamples", "populations", "simulations")
_LARGEST_SEED = 2**64 - 1
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHAPES = {None: "numbers", 0: "a number", 1: "a row of numbers", 2: "a table of numbers",
           3: "a cube of numbers"}  # fmt: skip
# pydantic needs longer to build a validator than to use it.
_validator = functools.cache(TypeAdapter)


def check_columns(
    table: pd.DataFrame,
    columns: Iterable[str],
    numbers: Iterable[str] = (),
    once: Iterable[str] = (),
    gaps: Iterable[str] = (),
) -> None:
    """Refuse a table that lacks a column, has text in a numeric column, or repeats a row.

    All measures follow one rule: a row without a respondent, run, item or group is refused. Such a
    row belongs to nobody, and grouping would drop it without a word.

    Parameters
    ----------
    table : DataFrame
    columns : iterable of str
        Required columns without missing values, such as the columns that say whose row it is.
    numbers : iterable of str
        Required numeric columns, possibly with missing values.
    once : iterable of str
        Columns whose values together identify a row.
    gaps : iterable of str
        Required columns of any type, possibly with missing values.

    Raises
    ------
    ParameterError
        The table is not a DataFrame, lacks a column or repeats one, has a missing value in
        ``columns``, has text or infinity in a numeric column, or has an unknown ``status``; or two
        rows agree in all columns of ``once``.

    Examples
    --------
    >>> check_columns(pd.DataFrame({"score": ["high"]}), ["respondent_id"], ["score"])
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: The table has no column 'respondent_id'; add this ...
    """
    if not isinstance(table, pd.DataFrame):
        raise ParameterError(f"The table must be a DataFrame, got {type(table).__name__}.")

    if table.columns.has_duplicates:
        twice = table.columns[table.columns.duplicated()][0]
        raise ParameterError(f"The table has two columns '{twice}'; keep one.")

    for column in (*columns, *numbers, *gaps):
        if not isinstance(column, Hashable) or column not in table:
            raise ParameterError(f"The table has no column '{column!s:.60}'; add this column.")

    stray = set(table["status"].unique()) - set(_STATUSES) if "status" in columns else set()
    if stray:
        status = min(map(str, stray))
        raise ParameterError(f"status must be one of {', '.join(_STATUSES)}, got '{status}'.")

    for column in columns:
        if table[column].isna().any():
            raise ParameterError(f"The column '{column}' is missing in some rows; fill it in.")

    for column in numbers:
        values = table[column]
        is_text = isinstance(values.dtype, pd.StringDtype)  # even if all values are missing
        if is_text and values.empty:
            raise ParameterError(f"The column '{column}' has text; convert it to numbers.")

        if values.dtype.kind in "biuf":  # the fast case of most tables
            wrong = np.isinf(values.to_numpy(dtype=float, na_value=np.nan))
        else:
            fits = [
                cell is None or cell is pd.NA or (isinstance(cell, Real) and abs(cell) != np.inf)
                for cell in values
            ]
            wrong = np.array([is_text or not fit for fit in fits], dtype=bool)

        if wrong.any():
            raise ParameterError(f"Column '{column}' has {values[wrong].iloc[0]}, not a number.")

    doubled = table.duplicated([*once]) if once else pd.Series(False, table.index)
    if doubled.any():
        cell = table.loc[doubled, [*once]].iloc[0]
        where = ", ".join(f"{name} {value}" for name, value in cell.items())
        raise ParameterError(f"{where} occurs twice; keep one row.")


def check_three(answers: pd.DataFrame) -> None:
    """Refuse the answers of a respondent that does not separate neutral from contradiction.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_three(pd.DataFrame({"contradiction": [None]}))
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: The model separates only entailment from the rest: ...
    """
    pooled = answers["contradiction"].isna()
    if pooled.any():
        name = answers.get("respondent_id", pd.Series("The model", answers.index))[pooled].iloc[0]
        raise ParameterError(f"{name} separates only entailment from the rest: drop the model.")


def check_choice(choices: Iterable[str], **settings: object) -> None:
    """Refuse a setting whose value is unknown.

    Parameters
    ----------
    choices : iterable of str
    **settings
        The setting and its value, by name.

    Raises
    ------
    ParameterError
        The value is not one of the choices.

    Examples
    --------
    >>> check_choice(("source", "both"), terms="inverse")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: terms must be one of source, both, got 'inverse'.
    """
    choices = tuple(choices)
    words = [str(choice) for choice in choices]
    for name, value in settings.items():
        if not isinstance(value, Hashable) or value not in choices:
            hint = suggest(str(value), words)
            raise ParameterError(f"{name} must be one of {', '.join(words)}, got {value!r}{hint}.")


def suggest(name: str, names: Sequence[str]) -> str:
    """Return a remark on the known name that is most like an unknown one, for an error message.

    Examples
    --------
    >>> suggest("temprature", ["seed", "temperature"]), suggest("mood", ["seed"])
    (" (did you mean 'temperature'?)", '')
    """
    nearest = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def check_numbers(**numbers: object) -> None:
    """Refuse invalid numbers of runs, statements, tokens and the like.

    Parameters
    ----------
    **numbers
        Whole numbers from 1 to ten million (``draws, n_resamples, populations, simulations``: to
        100,000); ``seed`` (up to 2⁶⁴), ``retries`` and ``ask_again`` may be 0.

    Raises
    ------
    ParameterError
        A value is not a whole number, or is too small or too large.

    Examples
    --------
    >>> check_numbers(runs=0)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: runs must be a whole number of at least 1, got 0.
    """
    for name, value in numbers.items():
        low = 0 if name in ("seed", "retries", "ask_again") else 1
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
            raise ParameterError(f"{name} must be a whole number of at least {low}, got {value!r}.")
        most = {"seed": _LARGEST_SEED, **dict.fromkeys(_DRAWS, _MOST_DRAWS)}.get(name, _MOST)
        if value > most:
            raise ParameterError(f"{name} must be at most {most:,}, got {value:,}.")


def check_names(**lists: object) -> None:
    """Refuse a string, a table, a questionnaire or any other single value in place of a list.

    The letters of a string would be taken for names.

    Parameters
    ----------
    **lists
        Lists by their names.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_names(by="respondent_id")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: by must be a list, got 'respondent_id'; put ...
    """
    for name, value in lists.items():
        single = isinstance(value, str | bytes | BaseModel | pd.DataFrame)
        if single or not isinstance(value, Iterable):
            raise ParameterError(f"{name} must be a list, got {value!r:.60}; put it in [...].")


def check_flags(**flags: object) -> None:
    """Refuse a string, a number or any other value in place of True or False.

    A string such as ``"no"`` would count as true.

    Parameters
    ----------
    **flags
        Options by their names.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_flags(overwrite="no")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: overwrite must be True or False, got 'no'.
    """
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(f"{name} must be True or False, got {value!r:.60}.")


def as_numbers(name: str, values: object, axes: int | None = None) -> NDArray[np.float64]:
    """Return values as an array of floats; refuse text and other shapes.

    Parameters
    ----------
    name : str
        Name of the argument, for the error message.
    values : array-like
    axes : int, optional
        The number of axes that the array must have; by default any number.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ParameterError
        The values are not numbers, or the array has a different number of axes.

    Examples
    --------
    >>> as_numbers("theta", [0, 1], axes=1)
    array([0., 1.])
    >>> as_numbers("theta", "high", axes=1)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: theta must be a row of numbers, got 'high'; ...
    """
    try:
        if isinstance(values, pd.DataFrame):  # its columns may have missing values of pandas' own
            values = values.to_numpy(dtype=np.float64, na_value=np.nan)
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = None

    if isinstance(values, bool | np.bool_ | str):  # a truth value is no number, "1" is a text
        array = None
    if values is None or array is None or axes not in (None, array.ndim):
        raise ParameterError(f"{name} must be {_SHAPES[axes]}, got {values!r:.60}; correct it.")
    return array


def whole_depth(layers: Any) -> int | None:
    """Return a number of layers, or None for all layers; refuse any other value.

    Raises
    ------
    ParameterError
        The value is not a whole number of at least 1.

    Examples
    --------
    >>> whole_depth(4.0), whole_depth(None)
    (4, None)
    """
    if layers is None:
        return None

    is_number = isinstance(layers, int | float | np.number) and not isinstance(layers, bool)
    if not is_number or not layers >= 1 or layers % 1:
        raise ParameterError(f"layers must be whole numbers of at least 1, got {layers!r}.")
    return int(layers)


def check_kinds(values: Mapping[str, object], kinds: Mapping[str, object]) -> None:
    """Refuse conditions or settings whose values have the wrong type.

    Parameters
    ----------
    values : mapping
        Values by name.
    kinds : mapping
        The types of some of these values, by name, as pydantic accepts them.

    Raises
    ------
    ParameterError
        A value has the wrong type.

    Examples
    --------
    >>> from typing import Literal
    >>> check_kinds({"mean": "median"}, {"mean": Literal["product", "harmonic"]})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: mean should be 'product' or 'harmonic', got 'median'.
    """
    for name, kind in kinds.items():
        try:
            _validator(kind).validate_python(values[name], strict=True)
        except ValidationError as error:
            raise wrong_kind(name, error.errors()[0]["msg"], values[name]) from None


def check_model(values: Mapping[str, object], model: type[BaseModel]) -> None:
    """Refuse values that a model's fields do not allow, without changing the values.

    Parameters
    ----------
    values : mapping
        Values of some fields, by name.
    model : type of pydantic.BaseModel

    Raises
    ------
    ParameterError
        A value does not fit its field.

    Examples
    --------
    >>> class Weather(BaseModel):
    ...     rain: bool = False
    >>> check_model({"rain": "often"}, Weather)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: rain should be a valid boolean, got 'often'.
    """
    try:
        model.model_validate(dict(values), strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0])
        raise wrong_kind(name, fault["msg"], values[name]) from None


def wrong_kind(name: str, message: str, value: object) -> ParameterError:
    """Turn pydantic's message about an input into an error that names the value.

    Examples
    --------
    >>> wrong_kind("item", "Input should be a valid integer", 1.5)
    ParameterError('item should be a valid integer, got 1.5.')
    """
    rule = re.sub(r"^\w+", "", message.replace(r"match pattern '\S'", "not be blank"))
    return ParameterError(f"{name}{rule}, got {value!r}.")


def parse_parameters(pairs: list[str], kinds: Mapping[str, Any] | None = None) -> dict[str, object]:
    """Parse settings typed as ``["item=3", "score=contrast"]`` into a dict.

    Parameters
    ----------
    pairs : list of str
    kinds : mapping, optional
        The types of some settings, by name. A text stays as it is typed. In other settings, values
        that look like numbers become numbers, and true, false and None become the corresponding
        Python values, as in papermill.

    Raises
    ------
    ParameterError
        A setting has no ``=``, or a name occurs twice.

    Examples
    --------
    >>> parse_parameters(["item=3", "temperature=0.5", "score=contrast"])
    {'item': 3, 'temperature': 0.5, 'score': 'contrast'}
    >>> parse_parameters(["respondent=0012"], {"respondent": str | None})
    {'respondent': '0012'}
    """
    parameters: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ParameterError(f"Write a parameter as name=value, got '{pair}'.")
        if name in parameters:
            raise ParameterError(f"The parameter {name} occurs twice: keep one.")

        types = _single_types((kinds or {}).get(name))
        is_text = str in types and not types & {int, float, bool}
        words = {"true": True, "false": False, "True": True, "False": False, "None": None}
        if is_text and (value != "None" or type(None) not in types):
            parameters[name] = value
        elif value in words:
            parameters[name] = words[value]
        elif _WHOLE.fullmatch(value):
            parameters[name] = int(value)
        else:
            parameters[name] = float(value) if _DECIMAL.fullmatch(value) else value

    return parameters


def _single_types(kind: Any) -> set[Any]:
    """Return the types that a union, a literal or an annotated type consists of."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return {type(value) for value in parts}
    if get_origin(kind) is Annotated:
        return _single_types(parts[0])
    if get_origin(kind) in (Union, UnionType):
        return set().union(*map(_single_types, parts))
    return {kind}
