"""Personas: a table whose rows fill the gaps of a role, so that each is asked separately."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from ..data import text_table
from ..exceptions import ParameterError
from ..questionnaires.answers import COLUMNS
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
    unfilled = [gap for gap in gaps if gap not in table]
    if unfilled:
        said = f"no column fills {{{unfilled[0]}}}; the columns are {', '.join(table)}"
        raise ParameterError(f"personas: {said}.")

    if not gaps or table.empty or table.columns.has_duplicates:
        raise ParameterError(
            f"personas needs rows, a role of mode {mode.name} with gaps, such as {{age}}, and a "
            "single column for each gap."
        )

    taken = {"persona_row", *COLUMNS, *mode.conditions} & set(table)
    if taken:
        raise ParameterError(f"personas: rename the column {min(taken)}, which answers also have.")

    empty = table[gaps].eq("")
    if empty.to_numpy().any():
        row, gap = empty.stack().idxmax()
        raise ParameterError(f"personas, row {row + 1}: {gap} is empty; fill in a value.")

    ways = []
    for number, row in enumerate(table.to_dict("records"), start=1):
        filled = {name: _fill(text, row) for name, text in texts.items()}
        ways.append((shared | filled, {"persona_row": number, **row}))

    return ways


def _fill(text: str, row: dict[str, str]) -> str:
    """Fill the gaps of a text for which a row has a column."""
    return re.sub(r"{(\w+)}", lambda gap: row.get(gap[1], gap[0]), text)
