"""Read the cells of a table of answers: numbers, labels, or models' replies."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..checks import UNANSWERED
from ..modes.replies import parse_reply
from ..questionnaires import Questionnaire
from .answer_tables import _Notes, listed, several, shown
from .item_names import _Cell, _OptionNames

_CODINGS = ("values", "from 0", "from 1")
_EXAMPLES = 5
_Ends = dict[str, tuple[float, float]]  # the lowest and the highest value of each item's options


def _read_cells(
    answers: pd.DataFrame,
    questionnaire: Questionnaire,
    numbers: str,
    already_reversed: bool,
    replies: bool,
    notes: _Notes,
) -> pd.DataFrame:
    """Return the answers with the ``value`` and the ``status`` that each cell represents.

    Parameters
    ----------
    answers : DataFrame
        Answers, as ``_lay_out`` returns them.
    questionnaire : Questionnaire
    numbers, already_reversed
        Settings, as in :func:`psychometrics.asking.answer_files.read_answers`.
    replies : bool
        Whether cells may be whole replies of models.
    notes : _Notes
        Notes to which decisions and omissions are added.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> cells = pd.DataFrame({"place": ["line 2", "line 3"], "column": "gad1"})
    >>> cells = cells.assign(item_id="gad7_1", cell=["Several days", "often"])
    >>> gad, notes = load_questionnaire("gad7"), _Notes("a.csv")
    >>> _read_cells(cells, gad, "auto", False, False, notes)[["value", "status"]].to_numpy()
    array([[1.0, 'ok'],
           [nan, 'unreadable']], dtype=object)
    """
    readers = {item.id: _OptionNames(questionnaire, item) for item in questionnaire.items}
    answers = answers.reset_index(drop=True)
    kinds = np.empty(len(answers), dtype=object)
    values = np.full(len(answers), np.nan)

    for item, part in answers.groupby("item_id"):
        # read each distinct cell once
        code, distinct = pd.factorize(part["cell"], use_na_sentinel=False)
        cells = [_read_cell(readers[item], cell, replies, questionnaire, item) for cell in distinct]
        kinds[part.index] = np.array([cell.kind for cell in cells], dtype=object)[code]
        values[part.index] = np.array([cell.value for cell in cells], dtype=float)[code]

    answers = answers.assign(value=values, status="ok")
    is_number = kinds == "number"
    coding = numbers

    if numbers == "auto":
        coding = _coding(answers[is_number], readers, notes)

    for item, part in answers[is_number].groupby("item_id"):
        answers.loc[part.index, "value"] = _decode(part["value"], readers[item].values, coding)

    ends = {item: (min(reader.values), max(reader.values)) for item, reader in readers.items()}
    low, high = (
        answers["item_id"].map({k: end[side] for k, end in ends.items()}) for side in (0, 1)
    )
    outside = is_number & ~answers["value"].between(low, high)

    answers.loc[kinds == "missing", "status"] = "missing"
    answers.loc[np.isin(kinds, ["unreadable", "refused"]), "status"] = "unreadable"
    answers.loc[kinds == "refused", "status"] = "refused"
    answers.loc[outside, "status"] = "out_of_range"
    if "given_status" in answers:  # the status in a table that this package wrote
        lost = (answers["status"] == "missing") & answers["given_status"].isin(UNANSWERED)
        answers.loc[lost, "status"] = answers.loc[lost, "given_status"]

    _say_statuses(answers, readers, ends, notes)
    _say_means(answers[is_number & (answers["status"] == "ok")], readers, notes)
    answers["value"] = answers["value"].where(answers["status"] == "ok")

    return _turned_back(answers, questionnaire, already_reversed, ends, notes)


def _read_cell(
    reader: _OptionNames, cell: object, is_reply: bool, questionnaire: Questionnaire, item: str
) -> _Cell:
    answer = reader.read(cell)
    if answer.kind == "unreadable" and is_reply:
        ((status, value),) = parse_reply(str(cell), questionnaire, [questionnaire.item(item)])
        if status == "ok":
            return answer._replace(kind="value", value=value)
        if status == "refused":
            return answer._replace(kind="refused")

    return answer


def _decode(values: pd.Series, options: list[float], coding: str) -> NDArray[np.float64]:
    """Translate numbers into the values of options; a number that fits no option gets no value."""
    numbers: NDArray[np.float64] = values.to_numpy(dtype=float)
    if coding == "values":
        return numbers
    places = np.arange(len(options)) + (coding == "from 1")
    decoded: NDArray[np.float64] = np.interp(numbers, places, options, left=np.nan, right=np.nan)
    return decoded


def _coding(numbers: pd.DataFrame, readers: dict[str, _OptionNames], notes: _Notes) -> str:
    """Determine what the numbers mean, and report the decision if the table is ambiguous."""
    if numbers.empty:
        return "values"

    counts = numbers.groupby(["item_id", "value"]).size()
    shares = {}
    decoded: dict[str, list[float]] = {}
    for coding in _CODINGS:
        fitting = 0
        for item, part in counts.groupby(level="item_id"):
            values = readers[item].values
            choices = _decode(part.index.get_level_values("value").to_series(), values, coding)
            fitting += part.to_numpy()[(choices >= min(values)) & (choices <= max(values))].sum()
            decoded.setdefault(coding, []).extend(choices)

        shares[coding] = fitting / counts.sum()

    best = max(_CODINGS, key=shares.__getitem__)  # a tie goes to the options' own values
    known = sorted(counts.index.get_level_values("value").unique())
    span = f"{known[0]:g} to {known[-1]:g}"
    values = next(iter(readers.values())).values
    options = f"{min(values):g} to {max(values):g}"

    if best != "values" and shares[best] >= 0.95:
        said = f"numbers are {span}, the options {options}: taken as positions counted {best}"
        notes.add("numbers", f"{said} (else set numbers=values)")
        return best

    others = [c for c in _CODINGS if decoded[c] != decoded["values"] and shares[c] == 1]
    if shares["values"] == 1 and others:
        said = f"numbers are {span}, the options {options}: taken as the options' values, though "
        said += f"the table may count {others[0]} (then set numbers={others[0]!r})"
        notes.add("numbers", said)
    else:
        notes.add("numbers", f"numbers are taken as the options' values, {options}")

    return "values"


def _say_statuses(
    answers: pd.DataFrame, readers: dict[str, _OptionNames], ends: _Ends, notes: _Notes
) -> None:
    """Report missing answers, unreadable answers, and answers outside the options."""
    counts = answers["status"].value_counts()
    missing = int(counts.get("missing", 0))
    if missing:
        notes.add("missing", f"{several(missing, 'cell')} empty", missing)

    for status in ("out_of_range", "unreadable", "refused"):
        rows = answers[answers["status"] == status]
        groups = list(rows.groupby(rows["cell"].map(shown), sort=False))
        for text, part in groups[:_EXAMPLES]:
            first = part.iloc[0]
            if status == "out_of_range":
                low, high = ends[first["item_id"]]
                reason = f"is not from {low:g} to {high:g}"
            elif status == "refused":
                reason = "refuses"
            else:
                near = readers[first["item_id"]].nearest(text)
                reason = "is not an option" + (f"; is it '{near}'?" if near else "")

            more = f" (also in {several(len(part) - 1, 'cell')})" if len(part) > 1 else ""
            said = f"{first['place']}, column {first['column']}: '{text}'{more} {reason}"
            notes.add(status, said, len(part))

        if len(groups) > _EXAMPLES:
            rest = sum(len(part) for _, part in groups[_EXAMPLES:])
            said = f"{several(rest, 'cell')} more: {status.replace('_', ' ')}"
            notes.add(status, said, rest)


def _say_means(answers: pd.DataFrame, readers: dict[str, _OptionNames], notes: _Notes) -> None:
    """Report numbers between two options, such as means of several answers."""
    between = 0
    for item, part in answers.groupby("item_id"):
        between += int((~part["value"].isin(readers[item].values)).sum())
    if between:
        said = f"{several(between, 'number')} between two options, such as means of answers; kept"
        notes.add("means", said, between)


def _turned_back(
    answers: pd.DataFrame, questionnaire: Questionnaire, already: bool, ends: _Ends, notes: _Notes
) -> pd.DataFrame:
    """Restore the original answers to items that the table has already reversed."""
    reversed_items = _reversed_items(questionnaire)
    if already:
        turned = answers["item_id"].isin(reversed_items)
        said = "are reversed back, as already_reversed requests"
    else:
        turned = answers["column"].isin(answers.attrs.get("turned", []))
        said = "are marked as reversed, and are reversed back"

    if turned.any():
        low, high = (answers["item_id"].map({k: e[s] for k, e in ends.items()}) for s in (0, 1))
        answers.loc[turned, "value"] = (low + high - answers["value"])[turned]
        items = answers.loc[turned, "item_id"].unique()
        notes.add("reversed", f"{len(items)} items {said}: {listed(list(items))}", len(items))
    elif reversed_items:
        some = f"{len(reversed_items)} reversed items"
        said = "are taken as they were answered (else set already_reversed)"
        notes.add("reversed", f"{some} {said}", len(reversed_items))

    return answers


def _reversed_items(questionnaire: Questionnaire) -> set[str]:
    parts = questionnaire.scales or (None,)
    keys = [questionnaire.keys(scale) for scale in parts]
    return {item for part in keys for item, key in part.items() if key < 0}
