"""Find the role of each column of a table: items, answers, respondents, runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data import text_table
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from ..questionnaires.answers import COLUMNS
from .item_names import _LONGEST, _ItemNames, _numbered_names, _OptionNames, _plain_name
from .tables import _AnswerTable, _Notes, listed, several, shown

_MARK = re.compile(r"[\W_]*(?:r|rc|rev|inv|reversed|recoded|\*)\W*$", re.IGNORECASE)

_RESPONDENTS = ("respondent_id", "respondent", "model", "model_id", "model_name", "llm",
                "participant", "participant_id", "participant_code", "subject", "subject_id",
                "subj", "subj_id", "pid", "person", "person_id", "patient", "patient_id", "user",
                "user_id", "worker_id", "student", "student_id", "prolific_pid", "record_id",
                "study_id", "email_address", "email", "token", "code", "serial", "lfdn", "case",
                "case_id", "response_id", "id", "session", "session_id")  # fmt: skip
# Columns whose repeated values mean runs; a repeated respondent elsewhere is a mistake.
_MODELS = ("respondent_id", "respondent", "model", "model_id", "model_name", "llm")
_RUNS = ("run", "run_id", "seed", "repeat", "repetition", "replicate", "iteration", "epoch",
         "wave", "redcap_event_name", "event_name", "event", "visit", "timepoint",
         "redcap_repeat_instance", "repeat_instance", "session", "session_id")  # fmt: skip
_ITEMS = ("item_id", "item", "item_text", "item_name", "question_id", "question", "question_text",
          "statement", "qid", "variable", "custom_id", "input", "text", "prompt",
          "sample")  # fmt: skip
_VALUES = ("value", "resp", "response", "answer", "rating", "choice", "option", "reply",
           "score")  # fmt: skip
_CONDITIONS = ("condition", "persona_row", "agent_name")
# Endings of headers that often name persons.
_PERSONAL = ("id", "code", "token", "key", "name")
# Labels of rows below the answers, such as "Mean" or "n = 20".
_FOOTER = re.compile(
    r"(?:(?:grand |sub)?totals?|sums?|means?|averages?|avg|medians?|s\.?d\.?|std(?: ?dev)?\.?|"
    r"standard deviations?|counts?|summe|gesamt|mittelwert)\s*:?|n\s*[=:]\s*\d[\d.,]*",
    re.IGNORECASE,
)
_STATISTICS = ("sum", "mean", "median", "std", "count")


# The columns of items and of values, and the items by the cells that name them.
_Long = tuple[str, str, dict[object, str]]


@dataclass(frozen=True)
class _Layout:
    """A table in the long format, and what its columns and rows were taken for.

    Attributes
    ----------
    answers : DataFrame
        A row for each cell of an item: ``place``, its row; ``column``; ``item_id``; ``cell``;
        ``respondent_id``; ``run``; conditions; ``given_mode`` and ``given_status`` for answers that
        this package wrote.
    conditions : tuple of str
        The columns that are kept as conditions.
    are_named : bool
        Whether a column names the respondents.
    repeats_are_runs : bool
        Whether the rows of one respondent are its runs.
    has_runs : bool
        Whether a column names the runs.
    left_out : tuple of str
        The columns that are unrelated to the answers.
    marked : tuple of str
        The columns of items whose headers end in a mark, such as R, for *reversed*.
    """

    answers: pd.DataFrame
    conditions: tuple[str, ...]
    are_named: bool
    repeats_are_runs: bool
    has_runs: bool
    left_out: tuple[str, ...]
    marked: tuple[str, ...] = ()


def _lay_out(
    table: _AnswerTable,
    questionnaire: Questionnaire,
    asked: dict[str, Any],
    columns: str | Path | Mapping[str, str | int] | None,
    notes: _Notes,
) -> _Layout:
    """Convert a table to the long format.

    Parameters
    ----------
    table : AnswerTable
    questionnaire : Questionnaire
    asked : dict
        The columns that the user named: ``respondent, run, item, value`` and ``conditions``.
    columns : str, Path or mapping, optional
        As in :func:`psychometrics.answers.files.read_answers`.
    notes : _Notes
        Notes to which decisions and omissions are added.

    Returns
    -------
    Layout

    Raises
    ------
    ParameterError
        No column or cell names an item, or a column is missing or occurs twice.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.answers.tables import read_table
    >>> table = read_table(pd.DataFrame({"id": ["a"], "gad1": [2]}))
    >>> asked = dict.fromkeys(["respondent", "run", "item", "value", "conditions"])
    >>> rows = _lay_out(table, load_questionnaire("gad7"), asked, None, _Notes("a")).answers
    >>> rows[["respondent_id", "item_id", "cell"]].to_numpy().tolist()
    [['a', 'gad7_1', 2]]
    """
    asked = {
        name: setting if name in ("item", "value") else _names(setting, table.cells.columns)
        for name, setting in asked.items()
    }
    names = _ItemNames(questionnaire)
    _check_headers(table, asked)
    if {"term", "polarity"} <= set(table.cells.columns):
        raise ParameterError(
            f"{table.place}: has answers to prompts, not to items; read it with pandas "
            "and pass the frame to scale_scores."
        )

    _leave_out_headers(table, names, notes)
    _keep_own_rows(table, questionnaire, notes)
    long = _long_columns(table, names, asked) if columns is None else None

    wide: dict[str, str] = {}
    marked: list[str] = []
    if columns is not None:
        wide = _named_columns(table, names, columns, _headers(table, asked))
    elif not asked["item"] and not asked["value"]:
        wide, marked = _wide_columns(table, names, asked)

    if long is None and not wide:
        raise ParameterError(_nothing_found(table, questionnaire, names))

    is_wide = long is None or (wide and len({*wide.values()}) >= len({*long[2].values()}))
    if is_wide:
        _leave_out_footers(table, names, wide, notes)

    layout = _identify(table, asked, taken={*wide, *(long[:2] if long else ())}, notes=notes)
    if long is None or is_wide:
        return _from_wide(table, names, wide, replace(layout, marked=tuple(marked)), notes)

    return _from_long(table, names, long, layout, notes)


def _names(given: str | Sequence[str] | None, headers: Iterable[str]) -> list[str]:
    if isinstance(given, str) and given in headers:  # a header may have a comma
        return [given]
    parts = given.split(",") if isinstance(given, str) else given or ()
    return [part.strip() for part in parts]


def _check_headers(table: _AnswerTable, asked: dict[str, Any]) -> None:
    """Refuse a setting that names a column missing from the table."""
    has = list(table.cells.columns)
    for setting, given in asked.items():
        for name in [given] if isinstance(given, str) else given or ():
            if name not in has:
                raise ParameterError(
                    f"{table.place} has no column '{name}' ({setting}); it has {listed(has, 30)}."
                )


def _common(table: _AnswerTable, known: Sequence[str]) -> list[str]:
    """Return the table's columns that have one of the usual names, in the order of these names."""
    headers: dict[str, list[str]] = {}
    described: dict[str, list[str]] = {}
    for header in table.cells.columns:
        code = header.partition(". ")[0]  # LimeSurvey writes "id. Response ID"
        headers.setdefault(_plain_name(code), []).append(header)
        described.setdefault(_plain_name(table.texts.get(header, "")), []).append(header)

    common = []
    for name in known:
        alike = headers.get(_plain_name(name), [])
        if not alike and len(described.get(_plain_name(name), [])) == 1:
            alike = described[_plain_name(name)]
        if len(alike) > 1 and name not in alike:
            said = f"the columns {listed(alike)} have the same name but for capitals or signs"
            raise ParameterError(f"{table.place}: {said}; rename all but one.")
        common += [name] if name in alike else alike

    return common


def _leave_out_headers(table: _AnswerTable, names: _ItemNames, notes: _Notes) -> None:
    """Leave out rows that repeat the headers, and rows above the answers with the items' texts."""
    cells = table.cells
    repeats = cells.index
    for header in cells:
        repeats = repeats[cells.loc[repeats, header].map(_as_name) == header]

    dropped = cells.index.isin(repeats)
    for row in cells.index[:2]:
        texts = {header: text for header, text in cells.loc[row].items() if isinstance(text, str)}
        items = {text: names.described(text) for text in texts.values()}
        strange = {
            item for text, item in items.items()
            if item and names.options[item].read(text).kind == "unreadable"
        }  # fmt: skip
        if len(strange) > 1:  # a row of a long table has one item
            table.texts |= texts
            dropped[row] = True

    if dropped.any():
        left = int(dropped.sum())
        said = f"{several(left, 'row')} with headers or items' texts left out"
        notes.add("rows", said, left)
        _keep_rows(table, ~dropped)


def _leave_out_footers(
    table: _AnswerTable, names: _ItemNames, wide: dict[str, str], notes: _Notes
) -> None:
    """Leave out rows of totals, means or counts below a wide table's answers.

    Such a row has a label and nothing else; or its numbers are the totals, means or the like of all
    rows above, and it has a label or, without one, a number that no answer is. A row with a label
    and with other numbers is a respondent if these may be answers, and otherwise it is refused.
    """
    labels = [_footer_label(row, names, wide) for row in table.cells.to_dict("records")]
    end = len(labels)
    while end > 1 and labels[end - 1]:
        end -= 1

    end = max(min(end, len(labels) - 1), 1)  # the last row may be a footer without a label
    numbers = table.cells[[*wide]].apply(pd.to_numeric, errors="coerce")
    answers = numbers[:end]
    is_kept = np.ones(len(labels), dtype=bool)
    for place in range(end, len(labels)):
        row = numbers.loc[place].dropna()
        strange = set(row) - set(answers.to_numpy().ravel())
        if labels[place]:
            is_footer = row.empty or _repeats(row, answers, _STATISTICS)
            valid = {value for item in wide.values() for value in names.options[item].values}
            if not is_footer and strange - valid:
                raise ParameterError(
                    f"{table.place}, {table.rows[place]}: '{labels[place]}' may be a row below the "
                    "answers or a respondent; delete the row, or rename the respondent."
                )
        else:
            is_clear = bool(strange) and len(row) > 2 and end > 1
            is_footer = is_clear and _repeats(row, answers, ("sum", "mean"))

        is_kept[place] = not is_footer

    if not is_kept.all():
        rows = [table.rows[place] for place in np.flatnonzero(~is_kept)]
        said = f"{listed(rows, 3)}: totals, means or counts below the answers; left out"
        notes.add("rows", said, len(rows))
        _keep_rows(table, pd.Series(is_kept))


def _footer_label(row: dict[str, object], names: _ItemNames, wide: dict[str, str]) -> str:
    """Return the label of a row below the answers, such as *Mean*, or an empty text."""
    for header, cell in row.items():
        if isinstance(cell, str) and _FOOTER.fullmatch(cell.strip()):
            item = wide.get(header)
            if item is None or names.options[item].read(cell).kind == "unreadable":
                return cell.strip()
    return ""


def _repeats(row: pd.Series, answers: pd.DataFrame, statistics: tuple[str, ...]) -> bool:
    """Return whether numbers are, up to their rounding, a statistic of each column of answers."""
    decimals = next((n for n in range(6) if np.allclose(row, row.round(n), 0, 1e-9)), 6)
    largest = 0.5 * 10.0**-decimals + 1e-9
    return any((answers[row.index].agg(s) - row).abs().max() <= largest for s in statistics)


def _keep_rows(table: _AnswerTable, kept: pd.Series) -> None:
    table.cells = table.cells[kept].reset_index(drop=True)
    table.rows = [row for row, is_kept in zip(table.rows, kept, strict=True) if is_kept]


def _keep_own_rows(table: _AnswerTable, questionnaire: Questionnaire, notes: _Notes) -> None:
    """Leave out rows about other questionnaires, if a column names the questionnaire."""
    if "questionnaire" not in table.cells:
        return

    own = {_plain_name(questionnaire.id), _plain_name(questionnaire.short_title)}
    named = table.cells["questionnaire"].map(_plain_name)
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
        _keep_rows(table, is_own)


def _long_columns(table: _AnswerTable, names: _ItemNames, asked: dict[str, Any]) -> _Long | None:
    """Return the columns of items and of values, and a mapping from the cells to the items."""
    candidates = [asked["item"]] if asked["item"] else _common(table, _ITEMS)
    cells = {column: table.cells[column].dropna().unique() for column in candidates}
    found = {column: names.find_all(texts) for column, texts in cells.items()}
    if not any(names.find(text) for texts in cells.values() for text in texts):
        # prompts that have the texts of most items come before the numbers of their samples
        most = max((len(set(items.values())) for items in found.values()), default=0)
        inside = {
            column: {text: item for text in texts if (item := names.within(text))}
            for column, texts in cells.items()
        }
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
    taken = {*asked["respondent"], *asked["run"], *asked["conditions"]}
    return [name for name in table.cells.columns if name not in taken]


def _wide_columns(
    table: _AnswerTable, names: _ItemNames, asked: dict[str, Any]
) -> tuple[dict[str, str], list[str]]:
    """Return a mapping from headers to items, and the headers marked as reversed."""
    headers = _headers(table, asked)
    wide = names.find_all(headers)
    marked: list[str] = []
    described = {}
    for header in headers:
        text = table.texts.get(header, header)
        item = names.find(text) or names.described(text)
        if item:
            described[header] = item

    more = len(set(described.values())) - len(set(wide.values()))
    contradicts = any(wide.get(header, item) != item for header, item in described.items())
    by_place = not any(map(names.find, headers))
    if more > 0 or (by_place and (contradicts or more == 0)):
        wide = described
        # a marked column has the others' name and an ending, such as v3_R beside v1 and v2
        rests = {name: _without_mark(name) or "" for name in wide}
        series = _numbered_names(name for name, rest in rests.items() if not rest).keys()
        marked = [name for name, rest in rests.items() if _numbered_names([rest]).keys() & series]

    # Use marked columns if the table has no others for their items.
    bare = {name: _without_mark(name) for name in headers if name not in wide}
    bare = {name: rest for name, rest in bare.items() if rest}
    items = names.find_all([*wide, *bare.values()])
    for name, rest in bare.items():
        if rest in items and items[rest] not in wide.values():
            wide[name] = items[rest]
            marked.append(name)

    if len(wide) == 1 < len(names.ids) and names.is_numbered(*wide) and not described:
        return {}, []  # a question about something else may have such a number
    return wide, marked


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
    read = "".join(f" ({note})" for note in table.notes)
    if not headers:
        return f"{table.place}: is empty{read}; save the table again."

    named = [one for one in headers if any(map(names.find, table.cells[one].dropna().unique()))]
    groups = [list(group) for group in _numbered_names(headers).values()]
    same = [group for group in groups if len(group) == size]
    many = [group for group in groups if len(group) > size]
    lone = [name for name in headers if names.is_numbered(name)]
    mend = "; name a table with the headers column,item_id in the setting columns"
    if named:
        mend = f"; {named[0]} contains items: set item={named[0]} and, as value, the column of "
        mend += "answers, or transpose the table if its columns are respondents"
    elif many:
        mend = f"; {many[0][0]} to {many[0][-1]} are {len(many[0])} columns for {size} items{mend}"
    elif same:
        beginning = next(iter(_numbered_names(same[0])))
        mend = f"; {same[0][0]} to {same[0][-1]} may be the items: if so, set columns={beginning}"
    elif len(lone) == 1:
        beginning = next(iter(_numbered_names(lone))) or "a table"
        mend = f"; {lone[0]} may be any question: if it is an item, set columns={beginning}"

    called = f"{first.id} or '{first.text[:60]}' and so on, or item1 to item{size}{mend}"
    said = f"no column and no cell is an item of {questionnaire.id}; its items are called {called}"
    if named:
        said = f"no column of items and answers is found{mend}"

    return f"{table.place}: {said}. The columns are {listed(headers, 20)}{read}."


def _identify(
    table: _AnswerTable, asked: dict[str, Any], taken: set[str], notes: _Notes
) -> _Layout:
    """Return the ``respondent_id``, the ``run`` and the conditions of each row."""
    cells = table.cells
    who = pd.DataFrame({"place": table.rows}, index=cells.index)
    named = asked["respondent"]
    if not named:
        usual = [name for name in _common(table, _RESPONDENTS) if name not in taken]
        unnamed = {name: (cells[name].map(_as_name) == "").mean() for name in usual}
        named = [name for name in usual if unnamed[name] < 1]
        named = ([name for name in named if not unnamed[name]] or named)[:1]

    if named:
        who["respondent_id"] = _join_names(cells, named)
        if not asked["respondent"]:
            said = f"the column {named[0]} names the respondents (else set respondent)"
            notes.add("respondents", said)
    else:
        who["respondent_id"] = [f"row-{number + 1}" for number in range(len(cells))]

    runs = asked["run"]
    if not runs:
        runs = [name for name in _common(table, _RUNS) if name not in {*taken, *named}][:1]
        if runs:
            notes.add("runs", f"the column {runs[0]} numbers the runs (else set run)")

    who["run"] = _join_names(cells, runs) if runs else "1"
    used = {*taken, *named, *runs}
    conditions = _add_conditions(who, table, asked["conditions"], used)
    read = {*used, *who.columns, "questionnaire", "mode", "status"}
    is_model = bool(named) and _plain_name(named[0]) in map(_plain_name, _MODELS)
    return _Layout(
        answers=who,
        conditions=tuple(conditions),
        are_named=bool(named),
        repeats_are_runs=is_model or bool(asked["respondent"]),
        has_runs=bool(runs),
        left_out=tuple(name for name in cells.columns if name not in read),
    )


def _join_names(cells: pd.DataFrame, columns: list[str]) -> list[str]:
    parts = [cells[name].map(_as_name) for name in columns]
    return [" ".join(names) for names in zip(*parts, strict=True)]


def _add_conditions(
    who: pd.DataFrame, table: _AnswerTable, conditions: list[str], used: set[str]
) -> list[str]:
    """Add the columns of conditions that the user named or that have a usual name; return them."""
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

    return conditions


def _as_name(cell: object) -> str:
    """Return a cell's value as a name, such as 3 for 3.0."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None or cell is pd.NA or cell != cell else str(cell).strip()


def _from_wide(
    table: _AnswerTable, names: _ItemNames, wide: dict[str, str], layout: _Layout, notes: _Notes
) -> _Layout:
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

    if not layout.are_named:
        said = "no column names the respondents: each row is one (else set respondent)"
        notes.add("respondents", said)

    first, *_, last = [*wide, *wide]
    size = len(names.ids)
    said = f"wide: a row for each run; {len(wide)} columns, {shown(first)} to {shown(last)}, are "
    by_id = all(_plain_name(header) == _plain_name(item) for header, item in wide.items())
    ends = f"{wide[first]} to {wide[last]}"
    notes.add("layout", f"{said}{len(wide)} of {size} items" + ("" if by_id else f", {ends}"))

    left = [name for name in layout.left_out if name not in wide]
    if left:
        notes.add("columns", f"columns left out: {listed(left)}", len(left))
        for name in left:
            _question_column(table, name, names, notes)
            near = names.nearest(name)
            others = {None, name, *wide.values()}  # its own name if columns are set
            if not names.is_total(name) and near not in others:
                said = f"column {name} is not an item; is it {near}? Rename it, or set columns"
                notes.add("unknown item", said, 1)

    parts = []
    for header, item in wide.items():
        cells = table.cells[header]
        cells = _labelled(cells, header, table, [names.options[item]], notes)
        parts.append(layout.answers.assign(column=header, item_id=item, cell=cells))

    return replace(layout, answers=pd.concat(parts, ignore_index=True))


def _question_column(table: _AnswerTable, name: str, names: _ItemNames, notes: _Notes) -> None:
    """Say that a column that is left out may be a total, or may name the respondents."""
    if names.is_total(name):
        said = f"the column {name} has the questionnaire's name: taken as a total"
        notes.add("total", f"{said} (else set columns)", 1)
    elif _plain_name(name).endswith(_PERSONAL):
        given = table.cells[name].map(_as_name)
        if given[given != ""].duplicated().any():
            said = f"the column {name} repeats: if it names the respondents, set respondent={name}"
            notes.add("respondents", said)


def _from_long(
    table: _AnswerTable, names: _ItemNames, long: _Long, layout: _Layout, notes: _Notes
) -> _Layout:
    """Identify the item of each row of a long table."""
    item_column, value_column, items = long
    who = layout.answers
    cells = table.cells[item_column]
    said = f"long: a row for each answer; {item_column} is the item and {value_column} the answer"

    if any(_plain_name(cell) != _plain_name(item) for cell, item in items.items()):
        some, item = next(iter(items.items()))
        said += f" ('{str(some)[:40]}' is {item})"

    notes.add("layout", said)
    if not layout.are_named:
        who["respondent_id"] = "1"
        notes.add("respondents", "no column of respondents: all rows are one (else set respondent)")

    options = list(names.options.values())
    values = _labelled(table.cells[value_column], value_column, table, options, notes)
    # the rest of a batch's ids names runs if it repeats over the items
    rests = cells[cells.isin(items)].map(lambda cell: str(cell).replace(items[cell], ""))
    repeats = rests.groupby(cells.map(items)).nunique().max()
    if item_column == "custom_id" and 1 < rests.nunique() == repeats:
        who = who.assign(run=rests)
        layout = replace(layout, has_runs=True)
        notes.add("runs", f"custom_id without the item ('{rests.iloc[0]}') names the runs")

    answers = who.assign(column=value_column, item_id=cells.map(items), cell=values)
    unknown = answers[answers["item_id"].isna()]
    for cell, rows in unknown.groupby(cells, sort=False, dropna=False):
        near = names.nearest(cell)
        places = listed(rows["place"].tolist(), 2)
        said = f"{places}, column {item_column}: '{shown(cell)}' is not an item; left out"
        notes.add("unknown item", said + (f"; is it {near}?" if near else ""), len(rows))

    left = [name for name in layout.left_out if name not in (item_column, value_column)]
    if left:
        notes.add("columns", f"columns left out: {listed(left)}", len(left))

    return replace(layout, answers=answers.dropna(subset="item_id").reset_index(drop=True))


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


def _without_mark(name: object) -> str | None:
    """Return a name without an ending that means *reversed*, or None if it has no such ending.

    Examples
    --------
    >>> _without_mark("SOC_1_INV"), _without_mark("SOC_1")
    ('SOC_1', None)
    """
    text = str(name).strip()
    rest = _MARK.sub("", text) if len(text) <= _LONGEST else text
    return rest if rest and rest != text else None
