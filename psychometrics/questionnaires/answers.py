"""The columns and the format of the table of answers to items, in any mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from ..checks import check_columns, check_names
from ..exceptions import ParameterError
from .model import Questionnaire

COLUMNS = ("respondent_id", "questionnaire", "mode", "run", "item_id", "value", "status")
"""The first columns of every table of answers, which a mode's own columns follow."""
IDENTITY = tuple(name for name in COLUMNS if name != "value")
"""The columns that no row may lack; only a question without an answer lacks a value."""


def tidy(rows: list[dict[str, Any]] | pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Convert answers to the format that every mode returns, and check them.

    Parameters
    ----------
    rows : list of dict or DataFrame
        Rows with all ``COLUMNS`` except ``questionnaire``; further columns are kept.
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame
        One row per answer; ``value`` is a float, and missing unless the status is ``ok``.

    Raises
    ------
    ParameterError
        A column is missing, or an item, a status or a value does not belong to the questionnaire.
    """
    if not isinstance(rows, list | pd.DataFrame):
        raise ParameterError(f"Answers must be a list of rows or a DataFrame, got {rows!r:.40}.")

    check_loaded([questionnaire])
    frame = pd.DataFrame(rows)
    if frame.empty:
        frame = pd.DataFrame(columns=list(COLUMNS))

    frame["questionnaire"] = questionnaire.id
    check_columns(frame, IDENTITY, ["value"])
    frame["value"] = frame["value"].astype(float).where(frame["status"] == "ok")
    spans = {item.id: questionnaire.ends(item) for item in questionnaire.items}
    strays = set(frame["item_id"].unique()) - set(spans)

    if strays:
        item = min(map(str, strays))
        raise ParameterError(f"{questionnaire.id} has no item '{item}': correct the item_id.")
    ends = pd.DataFrame(spans, index=["low", "high"], dtype=float).T.reindex(frame["item_id"])
    fits = frame["value"].between(*(ends[end].to_numpy() for end in ends))
    wrong = (frame["status"] == "ok") & ~fits
    if wrong.any():
        row = frame[wrong].iloc[0]
        low, high = ends[wrong.to_numpy()].iloc[0]
        raise ParameterError(
            f"{questionnaire.id}, item {row['item_id']}: {row['value']} is not from {low:g} to "
            f"{high:g}; record it as out of range."
        )

    extra = [column for column in frame.columns if column not in COLUMNS]
    return frame[[*COLUMNS, *extra]].reset_index(drop=True)


def check_loaded(questionnaires: Iterable[Questionnaire]) -> None:
    """Refuse names and files where loaded questionnaires are required.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_loaded(["gad7"])
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: 'gad7' is not loaded: use ...
    """
    check_names(questionnaires=questionnaires)
    for questionnaire in questionnaires:
        if not isinstance(questionnaire, Questionnaire):
            raise ParameterError(f"{questionnaire!r:.60} is not loaded: use load_questionnaire.")
