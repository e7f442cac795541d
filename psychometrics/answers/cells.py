"""Read the cells of a table of answers: numbers, labels, or models' replies."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..checks import UNANSWERED
from ..exceptions import ParameterError
from ..modes.replies import parse_reply
from ..questionnaires import Questionnaire
from .item_names import _Cell, _OptionNames
from .layout import _Layout
from .tables import _Notes, listed, several, shown

_CODINGS = ("values", "from 0", "from 1")
_CODES = ("from 1", "values", "from 0")  # codes such as A1 and A2 usually count the options
_EXAMPLES = 5
_Ends = dict[str, tuple[float, float]]  # the lowest and the highest value of each item's options


def _read_cells(
    layout: _Layout,
    questionnaire: Questionnaire,
    numbers: str,
    already_reversed: bool | None,
    replies: bool,
    notes: _Notes,
) -> pd.DataFrame:
    """Return the answers with the ``value`` and the ``status`` that each cell represents.

    Parameters
    ----------
    layout : Layout
        Cells, as ``_lay_out`` returns them.
    questionnaire : Questionnaire
    numbers, already_reversed
        Settings, as in :func:`psychometrics.answers.files.read_answers`.
    replies : bool
        Whether cells may be whole replies of models.
    notes : _Notes
        Notes to which decisions and omissions are added.

    Raises
    ------
    ParameterError
        Numbers, or columns that are marked as reversed, have two possible meanings.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.answers.layout import _lay_out
    >>> from psychometrics.answers.tables import read_table
    >>> gad, notes = load_questionnaire("gad7"), _Notes("a.csv")
    >>> table = read_table(pd.DataFrame({"id": ["a", "b"], "gad1": ["Several days", "often"]}))
    >>> asked = dict.fromkeys(["respondent", "run", "item", "value", "conditions"])
    >>> layout = _lay_out(table, gad, asked, None, notes)
    >>> _read_cells(layout, gad, "auto", None, False, notes)[["value", "status"]].to_numpy()
    array([[1.0, 'ok'],
           [nan, 'unreadable']], dtype=object)
    """
    readers = {item.id: _OptionNames(questionnaire, item) for item in questionnaire.items}
    answers = layout.answers.reset_index(drop=True)
    kinds = np.empty(len(answers), dtype=object)
    values = np.full(len(answers), np.nan)

    for item, part in answers.groupby("item_id"):
        # read each distinct cell once
        code, distinct = pd.factorize(part["cell"], use_na_sentinel=False)
        cells = [_read_cell(readers[item], cell, replies, questionnaire, item) for cell in distinct]
        kinds[part.index] = np.array([cell.kind for cell in cells], dtype=object)[code]
        values[part.index] = np.array([cell.value for cell in cells], dtype=float)[code]

    answers = answers.assign(value=values, status="ok")
    is_number = _read_numbers(answers, kinds, readers, numbers, notes)
    ends = {item: (min(reader.values), max(reader.values)) for item, reader in readers.items()}
    low, high = (
        answers["item_id"].map({k: end[side] for k, end in ends.items()}) for side in (0, 1)
    )
    outside = is_number & ~answers["value"].between(low, high)

    answers.loc[kinds == "missing", "status"] = "missing"
    answers.loc[~(is_number | np.isin(kinds, ["missing", "value"])), "status"] = "unreadable"
    answers.loc[kinds == "refused", "status"] = "refused"
    answers.loc[outside, "status"] = "out_of_range"
    if "given_status" in answers:  # the status in a table that this package wrote
        lost = (answers["status"] == "missing") & answers["given_status"].isin(UNANSWERED)
        answers.loc[lost, "status"] = answers.loc[lost, "given_status"]

    _say_statuses(answers, readers, ends, notes)
    _say_means(answers[is_number & (answers["status"] == "ok")], readers, notes)
    answers["value"] = answers["value"].where(answers["status"] == "ok")

    return _undo_reversal(answers, layout, questionnaire, already_reversed, ends, notes)


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


def _read_numbers(
    answers: pd.DataFrame,
    kinds: NDArray[np.object_],
    readers: dict[str, _OptionNames],
    setting: str,
    notes: _Notes,
) -> NDArray[np.bool_]:
    """Translate numbers, codes and letters into options; return the cells that were translated."""
    is_read: NDArray[np.bool_] = kinds == "letter"
    is_read &= _letters_are_places(answers[is_read], readers, setting, notes)
    answers.loc[is_read, "value"] = _decode(answers[is_read], readers, "from 0")

    series = {"number": _CODINGS}
    codes = {kind for kind in kinds if kind.startswith("code ")}
    if len(codes) == 1:
        series[codes.pop()] = _CODES

    for kind, codings in series.items():
        is_kind = kinds == kind
        coding = setting
        if setting in ("auto", "letters"):
            if kind != "number" and answers.loc[is_kind, "value"].nunique() == 1:
                continue  # a single code may be a remark
            coding = _coding(answers[is_kind], readers, codings, notes)

        answers.loc[is_kind, "value"] = _decode(answers[is_kind], readers, coding)
        is_read |= is_kind

    return is_read


def _decode(numbers: pd.DataFrame, readers: dict[str, _OptionNames], coding: str) -> pd.Series:
    """Translate numbers into the values of options; a number that fits no option gets no value."""
    decoded = numbers["value"].copy()
    if coding == "values":
        return decoded

    for item, part in numbers.groupby("item_id")["value"]:
        values = readers[item].values
        if coding == "labels":
            labelled = [readers[item].label(f"{number:g}") for number in part]
            decoded[part.index] = np.array(labelled, dtype=float)
        else:
            places = np.arange(len(values)) + (coding == "from 1")
            decoded[part.index] = np.interp(part, places, values, left=np.nan, right=np.nan)

    return decoded


def _letters_are_places(
    letters: pd.DataFrame, readers: dict[str, _OptionNames], setting: str, notes: _Notes
) -> bool:
    """Determine whether letters name the options by their places: A is the first option.

    A letter may also abbreviate a label, such as A for *agree*, unless no label begins with a
    letter that names a place, or all places occur. A single letter may be a remark.
    """
    if letters.empty or setting != "auto":
        return setting == "letters"

    options = [readers[item].options for item in letters["item_id"].unique()]
    places = {chr(ord("A") + place) for place in range(max(map(len, options)))}
    initials = {option.label[:1].upper() for part in options for option in part}
    used = {chr(ord("A") + int(place)) for place in letters["value"].unique()}
    is_clear = len(used & places) > 1 and (not places & initials or places <= used)

    first = options[0][0].label
    said = f"letters are taken as the options' places: A is '{first}' (else set numbers=values)"
    if not is_clear:
        said = f"letters are left out: if A is '{first}' and so on, set numbers=letters"
    if used & places:
        notes.add("letters", said, 0 if is_clear else len(letters))
    return is_clear


def _coding(
    numbers: pd.DataFrame,
    readers: dict[str, _OptionNames],
    codings: tuple[str, ...],
    notes: _Notes,
) -> str:
    """Determine what numbers mean, with the usual meaning first; refuse them if it is doubtful.

    A number that fits no coding, such as 99, is a code for no answer and decides nothing. Numbers
    that do not fit the usual coding fit another one beyond doubt only if each item has all of its
    options: a 0 beside 1 to 4 may be the first of five options, or no answer.
    """
    usual = codings[0]
    if numbers.empty:
        return usual

    used = numbers[["item_id", "value"]].drop_duplicates()
    _refuse_renumbered(used["item_id"].unique(), readers, notes)
    decoded = {coding: _decode(used, readers, coding) for coding in codings}
    strays = pd.DataFrame({c: _find_strays(used, decoded[c], readers) for c in codings})
    codes = strays.all(axis=1)
    fitting = [coding for coding in codings if strays[coding].equals(codes)]
    values = next(iter(readers.values())).values
    span = f"{used['value'].min():g} to {used['value'].max():g}"
    doubt = f"numbers are {span}, the options {min(values):g} to {max(values):g}"

    if usual in fitting or not fitting:
        said = "taken as the options' values"
        if usual != "values":
            said = f"taken as the options' places, {usual}"

        others = [coding for coding in fitting if not decoded[coding].equals(decoded[usual])]
        mend = f"; if this is wrong, set numbers={others[0]!r}" if others else ""
        notes.add("numbers", f"{doubt}: {said}{mend}")
        return usual

    best = fitting[0]
    sizes = used[~codes.to_numpy()].groupby("item_id").size()
    if any(sizes.get(item) != len(readers[item].values) for item in used["item_id"]):
        raise ParameterError(
            f"{notes.place}: {doubt}, which has two meanings; set numbers={best!r}, or "
            f"numbers={usual!r} if a number outside the options means no answer."
        )

    notes.add(
        "numbers", f"{doubt}: taken as the options' places, {best} (else set numbers={usual!r})"
    )
    return best


def _refuse_renumbered(
    items: Iterable[str], readers: dict[str, _OptionNames], notes: _Notes
) -> None:
    """Refuse numbers if an option is labelled by a number that is not its value."""
    for item in items:
        for option in readers[item].options:
            label = readers[item].read(option.label)
            if label.kind == "number" and label.value != option.value:
                raise ParameterError(
                    f"{notes.place}: {item} has an option labelled {option.label} whose value is "
                    f"{option.value:g}; set numbers=labels or numbers=values."
                )


def _find_strays(
    numbers: pd.DataFrame, decoded: pd.Series, readers: dict[str, _OptionNames]
) -> list[bool]:
    """Find the numbers that are neither an option nor a mean between two options."""
    strays = []
    for item, number, value in zip(numbers["item_id"], numbers["value"], decoded, strict=True):
        values = readers[item].values
        is_mean = number % 1 != 0 and min(values) < value < max(values)
        strays.append(value not in values and not is_mean)

    return strays


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


def _undo_reversal(
    answers: pd.DataFrame,
    layout: _Layout,
    questionnaire: Questionnaire,
    already: bool | None,
    ends: _Ends,
    notes: _Notes,
) -> pd.DataFrame:
    """Restore the original answers to items that the table has already reversed."""
    keys = [questionnaire.keys(scale) for scale in questionnaire.scales or (None,)]
    reversed_items = {item for part in keys for item, key in part.items() if key < 0}
    turned = answers["item_id"].isin(reversed_items)
    if layout.marked:
        turned = answers["column"].isin(layout.marked)
        if already is None:
            raise ParameterError(
                f"{notes.place}: the headers {listed(list(layout.marked))} are marked as reversed; "
                "set already_reversed=true if their answers have been reversed, or "
                "already_reversed=false if the mark stands for the item and its answers are as "
                "they were given."
            )

    if already and turned.any():
        low, high = (answers["item_id"].map({k: e[s] for k, e in ends.items()}) for s in (0, 1))
        answers.loc[turned, "value"] = (low + high - answers["value"])[turned]
        items = answers.loc[turned, "item_id"].unique()
        said = f"{len(items)} items are reversed back, as already_reversed requests"
        notes.add("reversed", f"{said}: {listed(list(items))}", len(items))
    elif reversed_items:
        some = f"{len(reversed_items)} reversed items"
        said = "are taken as they were answered (else set already_reversed)"
        notes.add("reversed", f"{some} {said}", len(reversed_items))

    return answers
