"""Personas: a table whose rows fill the gaps of a role, so that each is asked separately."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from ..data import text_table
from ..exceptions import ParameterError
from ..questionnaires.answers import COLUMNS
from .messages import _fill
from .mode import Mode


def fill_personas(
    mode: Mode, conditions: dict[str, Any]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Fill each row of a table of personas into the role of a mode's conditions.

    Parameters
    ----------
    mode : Mode
    conditions : dict
        Conditions, with a table ``personas`` (a DataFrame or a file's path) if there are any.

    Returns
    -------
    list of (dict, dict)
        The conditions and the row of each persona, with its number ``persona_row``; without
        personas, the conditions and an empty row.

    Raises
    ------
    ParameterError
        The table has no rows, no column for a gap, or an empty cell or a reserved name.

    Examples
    --------
    >>> from psychometrics.modes import mode_named
    >>> conditions = {"role": "You are {age}.", "personas": pd.DataFrame({"age": [30, 40]})}
    >>> fill_personas(mode_named("chat"), conditions)[1]
    ({'role': 'You are 40.'}, {'persona_row': 2, 'age': '40'})
    """
    shared = dict(conditions)
    personas = shared.pop("personas", None)
    if personas is None:
        return [(shared, {})]

    table = personas if isinstance(personas, pd.DataFrame) else text_table(personas)
    table = table.reset_index(drop=True).rename(columns=str).fillna("").astype(str)
    texts = {n: shared[n] for n in ("role", "persona") if isinstance(shared.get(n), str)}
    gaps = [gap for text in texts.values() for gap in re.findall(r"{(\w+)}", text)]
    columns = list(table)
    if not gaps or table.empty or any(columns.count(gap) != 1 for gap in gaps):
        raise ParameterError(
            f"personas needs rows, a role of mode {mode.name} with gaps, such as {{age}}, and one "
            f"column for each gap; the columns are {', '.join(columns)}."
        )

    reserved = {"persona_row", *COLUMNS, *mode.conditions}.intersection(columns)
    if reserved:
        raise ParameterError(
            f"personas: rename the column {min(reserved)}, which answers also have."
        )

    for gap in gaps:
        if table[gap].eq("").any():
            row = table[gap].eq("").idxmax() + 1
            raise ParameterError(f"personas, row {row}: {gap} is empty; fill in a value.")

    ways = []
    for number, cells in enumerate(table.to_dict("records"), start=1):
        filled = {name: _fill(text, cells) for name, text in texts.items()}
        ways.append((shared | filled, {"persona_row": number, **cells}))

    return ways
