"""Find the role of each column of a table: items, answers, respondents, runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data import text_table
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from ..questionnaires.answers import COLUMNS
from .answer_tables import _AnswerTable, _Notes, listed, shown
from .item_names import _ItemNames, _numbered_names, _OptionNames, plain

_REVERSED = re.compile(r"^(.*?)[\W_]*(?:r|rc|rev|inv|reversed|recoded)$", re.IGNORECASE)

_RESPONDENTS = ("respondent_id", "respondent", "model", "model_id", "model_name", "llm",
                "participant", "participant_id", "subject", "subject_id", "person", "person_id",
                "user_id", "student", "response_id", "prolific_pid", "case", "case_id",
                "id")  # fmt: skip
# Columns whose repeated values mean runs; a repeated respondent elsewhere is a mistake.
_MODELS = ("respondent_id", "respondent", "model", "model_id", "model_name", "llm")
_RUNS = ("run", "run_id", "seed", "repeat", "repetition", "replicate", "iteration", "epoch",
         "wave")  # fmt: skip
_ITEMS = ("item_id", "item", "item_text", "item_name", "question_id", "question", "question_text",
          "statement", "qid", "variable", "custom_id", "input", "text", "prompt",
          "sample")  # fmt: skip
_VALUES = ("value", "resp", "response", "answer", "rating", "choice", "option", "reply",
           "score")  # fmt: skip
_CONDITIONS = ("condition", "persona_row", "agent_name")


# The columns of items and of values, and the items by the cells that name them.
_Long = tuple[str, str, dict[object, str]]


def _lay_out(
    table: _AnswerTable,
    questionnaire: Questionnaire,
    asked: dict[str, Any],
    columns: str | Path | Mapping[str, str | int] | None,
    notes: _Notes,
) -> pd.DataFrame:
    """Convert a table to the long format.

    Parameters
    ----------
    table : AnswerTable
    questionnaire : Questionnaire
    asked : dict
        The columns that the user named: ``respondent, run, item, value`` and ``conditions``.
    columns : str, Path or mapping, optional
        As in :func:`psychometrics.asking.answer_files.read_answers`.
    notes : _Notes
        Notes to which decisions and omissions are added.

    Returns
    -------
    DataFrame
        A row for each cell of an item: ``place``, its row; ``column``; ``item_id``; ``cell``;
        ``respondent_id``; ``run``; conditions; ``given_mode`` and ``given_status`` for answers that
        this package wrote. ``attrs`` indicate whether respondents ``are_named``, whether their
        ``repeats_are_runs`` and whether a column ``has_runs``. They also list the ``conditions``
        and the ``turned`` columns, whose headers mark them as reversed.

    Raises
    ------
    ParameterError
        No column or cell names an item, or a column is missing or occurs twice.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.asking.answer_tables import read_table
    >>> table = read_table(pd.DataFrame({"id": ["a"], "gad1": [2]}))
    >>> asked = dict.fromkeys(["respondent", "run", "item", "value", "conditions"])
    >>> rows = _lay_out(table, load_questionnaire("gad7"), asked, None, _Notes("a"))
    >>> rows[["respondent_id", "item_id", "cell"]].to_numpy().tolist()
    [['a', 'gad7_1', 2]]
    """
    asked = asked | {"conditions": _names(asked["conditions"])}
    names = _ItemNames(questionnaire)
    _check_headers(table, asked)
    _refuse_prompts(table)
    _keep_own_rows(table, questionnaire, notes)
    long = None

    if columns is None:
        long = _long_columns(table, names, asked)

    wide: dict[str, str] = {}
    turned: list[str] = []
    if columns is not None:
        wide = _named_columns(table, names, columns, _headers(table, asked))
    elif not asked["item"] and not asked["value"]:
        wide, turned = _wide_columns(table, names, asked)

    if long is None and not wide:
        raise ParameterError(_nothing_found(table, questionnaire, names))

    who = _identity(table, asked, taken={*wide, *(long[:2] if long else ())}, notes=notes)
    who.attrs["turned"] = turned
    if long is None or (wide and len(set(wide.values())) >= len(set(long[2].values()))):
        return _from_wide(table, names, wide, who, notes)

    return _from_long(table, names, long, who, notes)


def _names(given: str | Sequence[str] | None) -> list[str]:
    parts = given.split(",") if isinstance(given, str) else given or ()
    return [part.strip() for part in parts]


def _check_headers(table: _AnswerTable, asked: dict[str, Any]) -> None:
    """Refuse a setting that names a column missing from the table."""
    has = list(table.cells.columns)
    for setting, given in asked.items():
        for name in _names(given):
            if name not in has:
                raise ParameterError(
                    f"{table.place} has no column '{name}' ({setting}); it has {listed(has, 30)}."
                )


def _common(table: _AnswerTable, known: Sequence[str]) -> list[str]:
    """Return the table's columns that have one of the usual names, in the order of these names."""
    headers = {plain(name): name for name in reversed(table.cells.columns)}
    return [headers[name] for name in map(plain, known) if name in headers]


def _keep_own_rows(table: _AnswerTable, questionnaire: Questionnaire, notes: _Notes) -> None:
    """Leave out rows about other questionnaires, if a column names the questionnaire."""
    if "questionnaire" not in table.cells:
        return

    own = {plain(questionnaire.id), plain(questionnaire.short_title)}
    named = table.cells["questionnaire"].map(plain)
    is_own = named.isin(own)
    if not is_own.any():
        others = listed(table.cells["questionnaire"].unique().tolist(), 3)
        raise ParameterError(
            f"{table.place}, column questionnaire: the answers are to {others}, not to "
            f"{questionnaire.id}; name the questionnaire that was answered."
        )

    if not is_own.all():
        left = int((~is_own).sum())
        notes.add("rows", f"{left:,} rows are about other questionnaires and are left out", left)
        table.cells = table.cells[is_own].reset_index(drop=True)
        table.rows = [row for row, kept in zip(table.rows, is_own, strict=True) if kept]


def _refuse_prompts(table: _AnswerTable) -> None:
    if {"term", "polarity"} <= set(table.cells.columns):
        raise ParameterError(
            f"{table.place}: has answers to prompts, not to items; read it with pandas "
            "and pass the frame to scale_scores."
        )


def _long_columns(table: _AnswerTable, names: _ItemNames, asked: dict[str, Any]) -> _Long | None:
    """Return the columns of items and of values, and a mapping from the cells to the items."""
    candidates = [asked["item"]] if asked["item"] else _common(table, _ITEMS)
    cells = {column: table.cells[column].dropna().unique() for column in candidates}
    found = {column: names.find_all(texts) for column, texts in cells.items()}
    if not any(names.find(text) for texts in cells.values() for text in texts):
        # prompts that have the texts of most items come before the numbers of their samples
        most = max((len(set(items.values())) for items in found.values()), default=0)
        inside = {column: names.find_inside(texts) for column, texts in cells.items()}
        inside = {name: one for name, one in inside.items() if 2 * len(set(one.values())) > most}
        found = inside or found

    best = max(found, key=lambda column: len(set(found[column].values())), default="")
    items = found.get(best, {})
    if asked["item"] and not items:
        shown_cells = listed(cells[best].tolist(), 5)
        said = f"{table.place}, column {best}: no cell is an item; the cells are {shown_cells}."
        raise ParameterError(said)

    values = [asked["value"]] if asked["value"] else _common(table, _VALUES)
    values = [name for name in values if name != best]
    return (best, values[0], items) if items and values else None


def _headers(table: _AnswerTable, asked: dict[str, Any]) -> list[str]:
    """Return the headers that may name items."""
    taken = {*_names(asked["respondent"]), asked["run"], *asked["conditions"]}
    return [name for name in table.cells.columns if name not in taken]


def _wide_columns(
    table: _AnswerTable, names: _ItemNames, asked: dict[str, Any]
) -> tuple[dict[str, str], list[str]]:
    """Return a mapping from headers to items, and the headers marked as reversed."""
    headers = _headers(table, asked)
    wide = names.find_all(headers)
    turned: list[str] = []
    described = {}
    for header, text in table.texts.items():
        item = names.find(text) or names.within(text)
        if header in headers and item:
            described[header] = item

    more = len(set(described.values())) - len(set(wide.values()))
    contradicts = any(wide.get(header, item) != item for header, item in described.items())
    if more > 0 or (contradicts and not any(map(names.find, headers))):
        wide = described
        # a reversed column has the others' name and an ending, such as v3_R beside v1 and v2
        rests = {name: _without_reversal(name) or "" for name in wide}
        series = _numbered_names(name for name, rest in rests.items() if not rest).keys()
        turned = [name for name, rest in rests.items() if _numbered_names([rest]).keys() & series]

    # Use reversed columns if the original answers are not in the table.
    bare = {name: _without_reversal(name) for name in headers if name not in wide}
    bare = {name: rest for name, rest in bare.items() if rest}
    items = names.find_all([*wide, *bare.values()])
    for name, rest in bare.items():
        if rest in items and items[rest] not in wide.values():
            wide[name] = items[rest]
            turned.append(name)

    return wide, turned


def _named_columns(
    table: _AnswerTable,
    names: _ItemNames,
    columns: str | Path | Mapping[str, str | int],
    headers: list[str],
) -> dict[str, str]:
    """Map headers to items by the setting ``columns``."""
    wide: dict[str, str] = {}
    if isinstance(columns, str) and not Path(columns).is_file():
        wide = names.find_all(headers, prefix=columns)
        if not wide:
            raise ParameterError(
                f"{table.place}: no headers have the form '{columns}' and a number from 1 to "
                f"{len(names.ids)}; name a table with the headers column,item_id."
            )
        return wide

    if isinstance(columns, str | Path):
        written = text_table(columns, ["column", "item_id"])
        columns = dict(zip(written["column"], written["item_id"], strict=True))

    for header, item in columns.items():
        if header not in headers:
            raise ParameterError(f"{table.place} has no column '{header}' (columns); name another.")
        place = int(item) - 1 if str(item).isdecimal() else -1
        item_id = names.ids[place] if 0 <= place < len(names.ids) else names.find(item)
        if item_id is None:
            raise ParameterError(f"columns: '{item}' for {header} is not an item; name an item.")

        wide[header] = item_id

    return wide


def _nothing_found(table: _AnswerTable, questionnaire: Questionnaire, names: _ItemNames) -> str:
    """Describe the names that items may have, and the columns that resemble these names."""
    first = questionnaire.items[0]
    size = len(questionnaire.items)
    headers = list(table.cells.columns)
    if not headers:
        return f"{table.place}: is empty; save the table again."

    named = [one for one in headers if any(map(names.find, table.cells[one].dropna().unique()))]
    groups = [list(group) for group in _numbered_names(headers).values()]
    same = [group for group in groups if len(group) == size]
    many = [group for group in groups if len(group) > size]
    mend = "; name a table with the headers column,item_id in the setting columns"
    if named:
        mend = f"; {named[0]} contains items: set item={named[0]} and, as value, the column of "
        mend += "answers, or transpose the table if its columns are respondents"
    elif many:
        mend = f"; {many[0][0]} to {many[0][-1]} are {len(many[0])} columns for {size} items{mend}"
    elif same:
        beginning = next(iter(_numbered_names(same[0])))
        mend = f"; {same[0][0]} to {same[0][-1]} may be the items: if so, set columns={beginning}"

    called = f"{first.id} or '{first.text[:60]}' and so on, or item1 to item{size}{mend}"
    said = f"no column and no cell is an item of {questionnaire.id}; its items are called {called}"
    if named:
        said = f"no column of items and answers is found{mend}"

    read = "".join(f" ({note})" for note in table.notes)
    return f"{table.place}: {said}. The columns are {listed(headers, 20)}{read}."


def _identity(
    table: _AnswerTable, asked: dict[str, Any], taken: set[str], notes: _Notes
) -> pd.DataFrame:
    """Return the ``respondent_id``, the ``run`` and the conditions of each row."""
    cells = table.cells
    who = pd.DataFrame({"place": table.rows}, index=cells.index)
    named = _names(asked["respondent"])
    if not named:
        named = [name for name in _common(table, _RESPONDENTS) if name not in taken][:1]

    is_model = bool(named) and plain(named[0]) in map(plain, _MODELS)
    who.attrs["repeats_are_runs"] = is_model or asked["respondent"] is not None
    who.attrs["are_named"] = bool(named)

    if named:
        parts = [cells[name].map(_as_name) for name in named]
        who["respondent_id"] = [" ".join(names) for names in zip(*parts, strict=True)]
        if not asked["respondent"]:
            said = f"the column {named[0]} names the respondents (else set respondent)"
            notes.add("respondents", said)
    else:
        who["respondent_id"] = [f"row-{number + 1}" for number in range(len(cells))]

    column = asked["run"]
    if not column:
        columns = [name for name in _common(table, _RUNS) if name not in {*taken, *named}]
        column = columns[0] if columns else None

    who["run"] = "1"
    if column:
        who["run"] = cells[column].map(_as_name)
        who.attrs["has_runs"] = True
        if not asked["run"]:
            notes.add("runs", f"the column {column} numbers the runs (else set run)")

    used = {*taken, *named, column}
    _add_conditions(who, table, asked["conditions"], used)
    who.attrs["left_out"] = _left_out(cells, who, used)
    return who


def _add_conditions(
    who: pd.DataFrame, table: _AnswerTable, conditions: list[str], used: set[str]
) -> None:
    """Add the columns of conditions that the user named or that have a usual name."""
    cells = table.cells
    if not conditions:
        conditions = [name for name in _common(table, _CONDITIONS) if name not in used]

    for name in conditions:
        if name in COLUMNS:
            raise ParameterError(f"conditions: '{name}' is a reserved name; rename the column.")
        who[name] = cells[name]

    for name in ("mode", "status"):  # from a table that this package wrote
        if name in cells and name not in used:
            who[f"given_{name}"] = cells[name]

    who.attrs["conditions"] = conditions


def _left_out(cells: pd.DataFrame, who: pd.DataFrame, used: set[str]) -> list[str]:
    """Return the columns that are unrelated to the answers."""
    read = {*used, *who.columns, "questionnaire", "mode", "status"}
    return [name for name in cells.columns if name not in read]


def _as_name(cell: object) -> str:
    """Return a cell's value as a name, such as 3 for 3.0."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None or cell is pd.NA or cell != cell else str(cell).strip()


def _from_wide(
    table: _AnswerTable, names: _ItemNames, wide: dict[str, str], who: pd.DataFrame, notes: _Notes
) -> pd.DataFrame:
    """Turn the columns of a wide table into rows."""
    per_item: dict[str, list[str]] = {}
    for header, item in wide.items():
        per_item.setdefault(item, []).append(header)

    twice = {item: headers for item, headers in per_item.items() if len(headers) > 1}
    if twice:
        item, headers = next(iter(twice.items()))
        raise ParameterError(
            f"{table.place}: {' and '.join(headers)} are both {item}; drop one, or set columns."
        )

    if not who.attrs["are_named"]:
        said = "no column names the respondents: each row is one (else set respondent)"
        notes.add("respondents", said)

    left = [name for name in who.attrs["left_out"] if name not in wide]
    first, *_, last = [*wide, *wide]
    size = len(names.ids)
    said = f"wide: a row for each run; {len(wide)} columns, {first} to {last}, are {len(wide)} "
    by_id = all(plain(header) == plain(item) for header, item in wide.items())
    ends = f"{wide[first]} to {wide[last]}"
    notes.add("layout", f"{said}of {size} items" + ("" if by_id else f", {ends}"))

    if left:
        notes.add("columns", f"columns left out: {listed(left)}", len(left))
        for name in left:
            near = names.nearest(name)
            if near not in (None, name, *wide.values()):  # by its own name if columns are set
                said = f"column {name} is not an item; is it {near}? Rename it, or set columns"
                notes.add("unknown item", said, 1)

    parts = []
    for header, item in wide.items():
        cells = table.cells[header]
        cells = _labelled(cells, header, table, [names.options[item]], notes)
        parts.append(who.assign(column=header, item_id=item, cell=cells))

    answers = pd.concat(parts, ignore_index=True)
    answers.attrs = who.attrs
    return answers


def _from_long(
    table: _AnswerTable, names: _ItemNames, long: _Long, who: pd.DataFrame, notes: _Notes
) -> pd.DataFrame:
    """Identify the item of each row of a long table."""
    item_column, value_column, items = long
    cells = table.cells[item_column]
    said = f"long: a row for each answer; {item_column} is the item and {value_column} the answer"

    if any(plain(cell) != plain(item) for cell, item in items.items()):
        some, item = next(iter(items.items()))
        said += f" ('{str(some)[:40]}' is {item})"

    notes.add("layout", said)
    if not who.attrs["are_named"]:
        who["respondent_id"] = "1"
        notes.add("respondents", "no column of respondents: all rows are one (else set respondent)")

    options = list(names.options.values())
    values = _labelled(table.cells[value_column], value_column, table, options, notes)
    # the rest of a batch's ids names runs if it repeats over the items
    rests = cells[cells.isin(items)].map(lambda cell: str(cell).replace(items[cell], ""))
    repeats = rests.groupby(cells.map(items)).nunique().max()
    if item_column == "custom_id" and 1 < rests.nunique() == repeats:
        who = who.assign(run=rests)
        who.attrs["has_runs"] = True
        notes.add("runs", f"custom_id without the item ('{rests.iloc[0]}') names the runs")

    answers = who.assign(column=value_column, item_id=cells.map(items), cell=values)
    unknown = answers[answers["item_id"].isna()]
    for cell, rows in unknown.groupby(cells, sort=False, dropna=False):
        near = names.nearest(cell)
        places = listed(rows["place"].tolist(), 2)
        said = f"{places}, column {item_column}: '{shown(cell)}' is not an item; left out"
        notes.add("unknown item", said + (f"; is it {near}?" if near else ""), len(rows))

    left = [n for n in who.attrs["left_out"] if n not in (item_column, value_column)]
    if left:
        notes.add("columns", f"columns left out: {listed(left)}", len(left))

    answers = answers.dropna(subset="item_id").reset_index(drop=True)
    answers.attrs = who.attrs
    return answers


def _labelled(
    cells: pd.Series, header: str, table: _AnswerTable, options: list[_OptionNames], notes: _Notes
) -> pd.Series:
    """Replace labelled numbers by the values of the options that the labels name.

    If two options have labels, they also determine the numbers without a label. A cell with any
    other label is not an answer.
    """
    cells = cells.astype(object)
    labels = table.labels.get(header) or {}
    values = {number: _value(text, options) for number, text in labels.items()}
    known = {number: value for number, value in values.items() if value is not None}
    strange = [text for number, text in labels.items() if number not in known]
    if strange:
        read = "the others are used" if len(known) > 1 else "the numbers are used"
        said = f"the label '{shown(strange[0])}' is not an option: {read}"
        if not any(row["said"].endswith(said) for row in notes.rows):  # once, not for each item
            notes.add("labels", f"column {header}: {said}", len(strange))

    if len(known) < min(2, len(labels)):
        return cells

    texts = dict(labels)
    if len(set(known.values())) > 1 and not any(isinstance(number, str) for number in known):
        slope, start = np.polyfit(list(known), list(known.values()), 1)
        steps = [(one.value, one.label) for one in options[0].options]
        texts |= {round((value - start) / slope, 6): label for value, label in steps}
        texts |= {number: labels[number] for number in known}

    return cells.map(lambda cell: texts.get(cell, cell))


def _value(label: str, options: list[_OptionNames]) -> float | None:
    """Return the value of the first option that has the given label."""
    return next((v for v in (one.label(label) for one in options) if v is not None), None)


def _without_reversal(name: object) -> str | None:
    """Return a name without an ending that means *reversed*, or None if it has no such ending.

    Examples
    --------
    >>> _without_reversal("SOC_1_INV"), _without_reversal("SOC_1")
    ('SOC_1', None)
    """
    match = _REVERSED.match(str(name).strip())
    return match[1] if match and match[1] else None
