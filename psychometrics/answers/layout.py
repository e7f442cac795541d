"""Find the role of each column of a table: items, answers, respondents, runs.

===========================  ============================================  =========================
question                     what is read without a setting                the setting that decides
===========================  ============================================  =========================
Which columns are items?     Headers or descriptions that are ids or       ``columns``
                             texts of items; or else the only series of
                             numbers after *item* or the like.
Which columns are long?      A usual name, such as ``item``, whose cells   ``item`` and ``value``
                             name items; a usual name, such as ``resp``.
Who answered?                The first usual name whose cells are filled;  ``respondent``
                             or else each row.
Which run is it?             The first usual name; or else the rows of a   ``run``
                             model are its runs.
Does R mean *reversed*?      Nothing: a needed column with a mark is       ``already_reversed``
                             refused.
What do labels mean?         Labels of all numbers of a column that are    ``numbers``
                             labels of options.
===========================  ============================================  =========================
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data import text_table
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from ..questionnaires.answers import COLUMNS
from .item_names import _GENERIC, _LONGEST, _ItemNames, _numbered_names, _OptionNames, _plain_name
from .tables import _AnswerTable, _Notes, listed, several, shown

_MARK = re.compile(
    r"[\W_]*(?:r|rc|rev|inv|reversed?|inverted|recoded?|flipped|\*)\W*$", re.IGNORECASE
)
_SIGN = re.compile(r"^\W*[-−–—*]|[-−–—*]\W*$")  # may stand for a negative key

# Columns whose repeated values mean runs; a repeated respondent elsewhere is a mistake.
_MODELS = ("respondent_id", "respondent", "model", "model_id", "model_name", "llm")
_PERSONS = ("participant", "participant_id", "participant_code", "subject", "subject_id", "subj",
            "subj_id", "pid", "person", "person_id", "patient", "patient_id", "user", "user_id",
            "worker_id", "student", "student_id", "prolific_pid")  # fmt: skip
_RESPONDENTS = (*_MODELS, *_PERSONS, "record_id", "study_id", "email_address", "email", "token",
                "code", "serial", "lfdn", "case", "case_id", "response_id", "id", "session",
                "session_id")  # fmt: skip
_RUNS_OF_ONE = ("run", "run_id", "seed", "repeat", "repetition", "replicate", "iteration", "epoch")
_RUNS = (*_RUNS_OF_ONE, "wave", "redcap_event_name", "event_name", "event", "visit", "timepoint",
         "redcap_repeat_instance", "repeat_instance", "session", "session_id")  # fmt: skip
_ITEMS = ("item_id", "item", "item_text", "item_name", "question_id", "question", "question_text",
          "statement", "qid", "variable", "custom_id", "input", "text", "prompt",
          "sample")  # fmt: skip
_VALUES = ("value", "resp", "response", "answer", "rating", "choice", "option", "reply",
           "score")  # fmt: skip
_CONDITIONS = ("condition", "persona_row", "agent_name")
_LONGEST_NAME = 60  # most characters in the name of a person
# Endings of headers that often name persons.
_PERSONAL = ("id", "code", "token", "key", "name")
# Labels of rows below the answers, such as "Mean" or "n = 20".
_FOOTER = re.compile(
    r"(?:(?:(?:grand|overall|item|scale) )?(?:(?:sub)?totals?|sums?|means?|averages?|avg|medians?|"
    r"s\.?d\.?|std(?: ?dev)?\.?|standard deviations?|counts?|summe|gesamt|mittelwert|durchschnitt|"
    r"moyenne|media|promedio)(?: scores?)?|n\s*[=:]\s*\d[\d.,]*)\s*(?:\(.*\))?\s*:?",
    re.IGNORECASE,
)
_EXTREME = re.compile(r"m(?:[ií]n|[aá]x)(?:im\w*)?\W*", re.IGNORECASE)
_IMPORT_ID = '{"importid"'  # begins a cell in the third row of a Qualtrics export
_BY_TABLE = "name a table with the headers column,item_id in the setting columns"


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
    repeats_are_runs : bool
        Whether the rows of one respondent are its runs.
    has_runs : bool
        Whether a column names the runs.
    marked : tuple of str
        The columns of items whose headers end in a mark, such as R, for *reversed*.
    """

    answers: pd.DataFrame
    conditions: tuple[str, ...]
    repeats_are_runs: bool
    has_runs: bool
    marked: tuple[str, ...]


@dataclass
class _LayoutReader:
    """A reader of the roles of a table's columns and rows.

    Parameters
    ----------
    table : AnswerTable
    questionnaire : Questionnaire
    settings : dict
        The columns that the user named: ``respondent, run, item, value`` and ``conditions``.
    columns : str, Path or mapping, optional
        As in :func:`psychometrics.answers.files.read_answers`.
    notes : _Notes
        Notes to which decisions and omissions are added.

    Raises
    ------
    ParameterError
        A column that the user named is missing.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.answers.tables import read_table
    >>> table = read_table(pd.DataFrame({"id": ["a"], "gad1": [2]}))
    >>> settings = dict.fromkeys(["respondent", "run", "item", "value", "conditions"])
    >>> reader = _LayoutReader(table, load_questionnaire("gad7"), settings, None, _Notes("a"))
    >>> reader.read().answers[["respondent_id", "item_id", "cell"]].to_numpy().tolist()
    [['a', 'gad7_1', 2]]
    """

    table: _AnswerTable
    questionnaire: Questionnaire
    settings: dict[str, Any]
    columns: str | Path | Mapping[str, str | int] | None
    notes: _Notes

    def __post_init__(self) -> None:
        self.place = self.table.place
        self.names = _ItemNames(self.questionnaire)
        headers = list(self.table.cells.columns)
        by_user: dict[str, list[str]] = {}
        for setting, value in self.settings.items():
            named = [value] if isinstance(value, str) else [*(value or ())]
            if setting not in ("item", "value") and not {*named} <= {*headers}:
                named = [name.strip() for text in named for name in text.split(",")]

            for name in named:
                if name not in headers:
                    raise ParameterError(
                        f"{self.place} has no column '{name}' ({setting}); "
                        f"it has {listed(headers, 30)}."
                    )
            by_user[setting] = named

        self.settings = by_user

    def read(self) -> _Layout:
        """Convert the table to the long format.

        Raises
        ------
        ParameterError
            No column or cell names an item, or a column occurs twice.
        """
        self._leave_out_headers()
        self._keep_own_rows()

        by_user = self.settings
        taken = {*by_user["respondent"], *by_user["run"], *by_user["conditions"]}
        headers = [name for name in self.table.cells.columns if name not in taken]
        long = None
        wide: dict[str, str] = {}
        marked: tuple[str, ...] = ()
        if self.columns is not None:
            wide = self._named_columns(headers)
        else:
            long = self._long_columns()
            if not by_user["item"] and not by_user["value"]:
                wide, marked = self._wide_columns(headers)

        if long is None and not wide:
            raise ParameterError(self._describe_names())
        if long and wide and len({*wide.values()}) >= len({*long[2].values()}):
            long = None

        if long is None:
            rows = self._identify({*wide})
            self._refuse_footer(wide, rows["respondent_id"] != "")
            answers = self._read_wide(wide, rows)
        else:
            answers = self._read_long(long, self._identify({*long[:2]}))

        is_named = answers["respondent_id"] != ""
        unnamed = answers.loc[~is_named, "place"].unique()
        if len(unnamed):
            text = f"{listed(unnamed.tolist(), 3)}: no respondent is named; left out"
            self.notes.add("unnamed", text, len(unnamed))
            answers = answers[is_named]

        if self.left_out:
            text = f"columns left out: {listed(self.left_out)}"
            self.notes.add("columns", text, len(self.left_out))

        conditions = tuple(self.conditions)
        return _Layout(answers, conditions, self.repeats_are_runs, self.has_runs, marked)

    def _find_common(self, usual: Sequence[str], taken: Collection[str] = ()) -> list[str]:
        """Return the other columns with one of the usual names, in the order of these names."""
        headers: dict[str, list[str]] = {}
        described: dict[str, list[str]] = {}
        for header in self.table.cells.columns:
            code = header.partition(". ")[0]  # LimeSurvey writes "id. Response ID"
            headers.setdefault(_plain_name(code), []).append(header)
            described.setdefault(_plain_name(self.table.texts.get(header, "")), []).append(header)

        common = []
        for name in usual:
            alike = headers.get(_plain_name(name), [])
            if not alike and len(described.get(_plain_name(name), [])) == 1:
                alike = described[_plain_name(name)]
            if len(alike) > 1 and name not in alike:
                raise ParameterError(
                    f"{self.place}: the columns {listed(alike)} have the same name but for "
                    "capitals or signs; rename all but one."
                )
            common += [name] if name in alike else alike

        return [name for name in common if name not in taken]

    def _leave_out_headers(self) -> None:
        """Leave out rows that repeat the headers, and rows above the answers that describe them."""
        cells = self.table.cells
        repeats = cells.index
        for header in cells:
            repeats = repeats[cells.loc[repeats, header].map(_as_name) == header]

        is_kept = ~cells.index.isin(repeats)
        for row in cells.index[:2][::-1]:
            texts = cells.loc[row]
            texts = texts[texts.map(lambda text: isinstance(text, str))].to_dict()
            codes = [text.replace(" ", "").lower() for text in texts.values()]
            if any(code.startswith(_IMPORT_ID) for code in codes):
                is_kept[: row + 1] = False
                continue

            items = {text: self.names.described(text) for text in texts.values()}
            strange = {
                item for text, item in items.items()
                if item and self.names.options[item].read(text).kind == "unreadable"
            }  # fmt: skip
            if len(strange) > 1 or not is_kept[row]:  # a row of a long table has one item
                self.table.texts |= texts
                is_kept[row] = False

        self._keep_rows(is_kept, "with headers or items' texts")

    def _keep_rows(self, is_kept: NDArray[np.bool_], description: str) -> None:
        count = int((~is_kept).sum())
        if count:
            self.notes.add("rows", f"{several(count, 'row')} {description} left out", count)
            self.table.cells = self.table.cells[is_kept].reset_index(drop=True)
            self.table.rows = [*np.array(self.table.rows, dtype=object)[is_kept]]

    def _refuse_footer(self, wide: dict[str, str], is_named: pd.Series) -> None:
        """Refuse a last row with a label such as *Mean* or with statistics of the rows above it.

        The label is left of the answers and must not occur above. One of the last six rows may have
        statistics, which must be no option in a column in which all numbers above are options, or
        be called a minimum or a maximum.
        """
        cells = self.table.cells
        left = cells.iloc[:, : cells.columns.get_loc(next(iter(wide)))]
        options = {header: self.names.options[item] for header, item in wide.items()}
        values = {h: {c: o.read(c).value for c in cells[h].unique()} for h, o in options.items()}
        numbers = pd.DataFrame({header: cells[header].map(values[header]) for header in wide})
        numbers = numbers.apply(pd.to_numeric, errors="coerce")
        is_odd = numbers.notna() & ~numbers.isin({h: o.values for h, o in options.items()})

        filled = np.flatnonzero(numbers.notna().any(axis=1))
        for end in filled[:0:-1][:6]:
            above, row = numbers[:end], numbers.iloc[end]
            label = next(filter(None, map(_as_name, left.iloc[end])), "")
            is_label = _FOOTER.fullmatch(label) and not left[:end].isin([label]).any(axis=None)
            is_label = is_label and end == filled[-1]
            is_new = (is_odd.iloc[end] & ~is_odd[:end].any()).any()
            statistics = [above.mean(), above.sum(), above.std()]
            if _EXTREME.fullmatch(label):
                is_new = True
                statistics = [above.min() if label[1] in "iíIÍ" else above.max()]
            is_equal = any(((s - row).abs() < 0.051)[row.notna()].all() for s in statistics)
            if is_named[end] and (is_label or (is_new and is_equal)):
                raise ParameterError(
                    f"{self.place}, {self.table.rows[end]}: may be a row below the answers, such "
                    "as their means, or a respondent; delete the row, or move the respondent up."
                )

    def _keep_own_rows(self) -> None:
        """Leave out rows about other questionnaires, if a column names the questionnaire."""
        if "questionnaire" not in self.table.cells:
            return

        titles = {_plain_name(self.questionnaire.id), _plain_name(self.questionnaire.short_title)}
        is_kept = self.table.cells["questionnaire"].map(_plain_name).isin(titles).to_numpy()
        if not is_kept.any():
            titles_of_others = listed(self.table.cells["questionnaire"].unique().tolist(), 3)
            raise ParameterError(
                f"{self.place}, column questionnaire: the answers are to {titles_of_others}, not "
                f"to {self.questionnaire.id}; name the questionnaire that was answered."
            )
        self._keep_rows(is_kept, "about other questionnaires")

    def _long_columns(self) -> _Long | None:
        """Return the columns of items and of values, and a mapping from the cells to the items.

        Ids and texts of items come first, then prompts most of which have an item's text, and then
        numbers; in each case the column that names the most items.
        """
        candidates = self.settings["item"] or self._find_common(_ITEMS)
        cells = {column: self.table.cells[column].dropna().unique() for column in candidates}
        mappings = {column: self.names.find_all(texts) for column, texts in cells.items()}
        named = [column for column, items in mappings.items() if any(map(self.names.find, items))]
        if not named:
            for column, texts in cells.items():
                inside = {text: item for text in texts if (item := self.names.within(text))}
                if 2 * len(inside) > len(texts):
                    mappings = {column: inside}
                    break

        sizes = {column: len({*items.values()}) for column, items in mappings.items()}
        best = max(sizes, key=lambda c: (sizes[c] > 1 and c in named, sizes[c]), default="")
        items = mappings.get(best, {})
        if self.settings["item"] and not items:
            raise ParameterError(
                f"{self.place}, column {candidates[0]}: no cell is an item; the cells are "
                f"{listed(cells[candidates[0]].tolist(), 5)}."
            )

        values = self.settings["value"] or self._find_common(_VALUES, {best})
        if not items or not values:
            return None

        # ids and texts of items must not contradict, nor numbers those of a column with any name
        rivals = self.table.cells.columns.difference([*candidates, *values])
        names = self.table.cells[best].map(items).dropna()
        for column in named if best in named else rivals:
            texts = self.table.cells.loc[names.index, column]
            distinct = texts.dropna().unique()[:1000]  # items have few names
            items_of_texts = {t: self.names.find(t) or self.names.within(t) for t in distinct}
            others = texts.map(items_of_texts).dropna()
            is_named = 2 * len(others) > len(names) and not self.settings["item"]
            if is_named and (others != names[others.index]).any():
                raise ParameterError(
                    f"{self.place}: the columns {best} and {column} name different items; set item "
                    f"to the one that was answered, such as item={column}."
                )
        return best, values[0], items

    def _wide_columns(self, headers: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return a mapping from headers to items, and the headers marked as reversed.

        Descriptions decide if they name more items than the headers do, or other items than headers
        that are only numbers.
        """
        wide = self.names.find_all(headers)
        described, marked = self._described_columns(headers)
        more = len({*described.values()}) - len({*wide.values()})
        by_number = not any(map(self.names.find, headers))
        differs = any(wide.get(header, item) != item for header, item in described.items())
        if more > 0 or (by_number and (differs or more == 0)):
            wide = described
            marked += [name for name in wide if _without_mark(name)[-1:].isdigit()]

        # Use marked columns if the table has no others for their items. A mark with an unknown
        # meaning may mean reversed if only reverse-keyed items have it.
        reverse = self.names.reverse_keyed
        for strip in (_without_mark, _without_words):
            bare = {name: strip(name) for name in headers if name not in wide}
            items = self.names.find_all([*wide, *filter(None, bare.values())])
            needed = {
                name: items[bare_name] for name, bare_name in bare.items()
                if bare_name in items and items[bare_name] not in wide.values()
            }  # fmt: skip
            if strip is _without_mark or reverse.issuperset(needed.values()):
                wide |= needed
                marked += needed

        # so may a sign, or further words after an item's text
        signed = {
            name: item for name, item in wide.items()
            if _SIGN.search(name) or self.names.exceeds(self.table.texts.get(name, name), item)
        }  # fmt: skip
        marked += signed if reverse.issuperset(signed.values()) else ()

        # A single question about something else may have a number, too.
        is_lone = len(wide) == 1 < len(self.names.ids) and not described
        if is_lone and _numbered_names(wide).keys() & _GENERIC:
            return {}, ()
        return wide, tuple(name for name in wide if name in marked)

    def _described_columns(self, headers: list[str]) -> tuple[dict[str, str], list[str]]:
        """Return the items of headers by their descriptions, and the headers marked as reversed."""
        described = {}
        marked = []
        for header in headers:
            text = self.table.texts.get(header, header)
            item = self.names.find(text) or self.names.described(text)
            if item is None:
                continue
            if self.names.find(header) not in (None, item):
                raise ParameterError(
                    f"{self.place}, column {header}: the description is the text of {item}; "
                    f"correct it or the header, or {_BY_TABLE}."
                )

            described[header] = item
            bare_text = _without_mark(text)
            is_word = bare_text and not text[len(bare_text)].isalnum() and not self.names.find(text)
            if is_word and item in (self.names.find(bare_text), self.names.described(bare_text)):
                marked.append(header)

        return described, marked

    def _named_columns(self, headers: list[str]) -> dict[str, str]:
        """Map headers to items by the setting ``columns``."""
        columns: Any = self.columns
        if isinstance(columns, str) and not Path(columns).is_file():
            wide = self.names.find_all(headers, prefix=columns)
            if not wide:
                raise ParameterError(
                    f"{self.place}: no headers have the form '{columns}' and a number from 1 "
                    f"to {len(self.names.ids)}; {_BY_TABLE}."
                )
            return wide

        if isinstance(columns, str | Path):
            written = text_table(columns, ["column", "item_id"])
            columns = dict(zip(written["column"], written["item_id"], strict=True))

        numbers = {str(n): item for n, item in enumerate(self.names.ids, start=1)}
        wide = {}
        for header, name in columns.items():
            if header not in headers:
                text = f"{self.place} has no column '{header}' (columns); name another."
                raise ParameterError(text)
            item = numbers.get(str(name)) or self.names.find(name)
            if item is None:
                text = f"columns: '{name}' for {header} is not an item; name an item."
                raise ParameterError(text)
            wide[header] = item

        return wide

    def _describe_names(self) -> str:
        """Describe the names that items may have, and the setting for the present columns."""
        headers = list(self.table.cells.columns)
        if not headers:
            return f"{self.place}: is empty; save the table again."

        size = len(self.names.ids)
        item = self.questionnaire.items[0]
        groups = _numbered_names(name for name in headers if not self.names.is_total(name))
        places = {*range(1, size + 1)}
        series = [stem for stem, group in groups.items() if {*group.values()} <= places]
        if len(series) != 1 or series[0] not in _GENERIC:  # else it may be one of several scales
            series = [stem for stem in series if {*groups[stem].values()} == places]
        settings = " or ".join(f"columns={stem}" for stem in series)
        beginning = f" to the beginning of their headers, such as {settings}, or" if series else ""
        mend = f"; set columns{beginning} to a table with the headers column,item_id"
        notes = "".join(f" ({note})" for note in self.table.notes)
        for header in headers:
            if any(map(self.names.find, self.table.cells[header].dropna().unique())):
                mend = f"; {header} contains items: set item={header} and, as value, the column of "
                mend += "answers, or transpose the table if its columns are respondents"

        return (
            f"{self.place}: no columns are the items of {self.questionnaire.id}, called {item.id} "
            f"or '{item.text[:60]}' and so on, or item1 to item{size}{mend}. "
            f"The columns are {listed(headers, 20)}{notes}."
        )

    def _identify(self, taken: set[str]) -> pd.DataFrame:
        """Return the ``respondent_id``, the ``run`` and the conditions of each row."""
        cells = self.table.cells
        rows = pd.DataFrame({"place": self.table.rows}, index=cells.index)
        respondents = self.settings["respondent"]
        if not respondents:
            usual = self._find_common(_RESPONDENTS, taken)
            empty = {name: (cells[name].map(_as_name) == "").mean() for name in usual}
            usual = [name for name in usual if empty[name] < 1]
            respondents = sorted(usual, key=lambda name: empty[name] > 0)[:1]

        if respondents:
            rows["respondent_id"] = self._join_names(respondents)
            if not self.settings["respondent"]:
                text = f"the column {respondents[0]} names the respondents (else set respondent)"
                self.notes.add("respondents", text)
        else:
            rows["respondent_id"] = [f"row-{number + 1}" for number in range(len(cells))]

        runs = self.settings["run"]
        if not runs:
            runs = self._find_common(_RUNS, {*taken, *respondents})[:1]
            if runs:
                self.notes.add("runs", f"the column {runs[0]} numbers the runs (else set run)")

        rows["run"] = self._join_names(runs) if runs else "1"
        used = {*taken, *respondents, *runs}
        self.conditions = self.settings["conditions"] or self._find_common(_CONDITIONS, used)
        for name in self.conditions:
            if name in COLUMNS:
                raise ParameterError(f"conditions: '{name}' is a reserved name; rename the column.")
            rows[name] = cells[name]
        for name in {"mode", "status"} & {*cells} - used:  # in a table that this package wrote
            rows[f"given_{name}"] = cells[name]

        used_or_own = {*used, *self.conditions, "questionnaire", "mode", "status"}
        is_model = bool(respondents) and _plain_name(respondents[0]) in map(_plain_name, _MODELS)
        if is_model and not self.settings["respondent"]:
            self._refuse_persons(rows["respondent_id"], respondents[0], {*used, *self.conditions})

        self.are_named = bool(respondents)
        self.repeats_are_runs = is_model or bool(self.settings["respondent"])
        self.has_runs = bool(runs)
        is_set = bool(self.settings["run"])
        self.has_runs_of_one = is_set or bool({*map(_plain_name, runs)} & {*_RUNS_OF_ONE})
        self.left_out = [name for name in cells.columns if name not in used_or_own]
        return rows

    def _refuse_persons(self, models: pd.Series, column: str, taken: set[str]) -> None:
        """Refuse several persons within a model, unless a setting says which are respondents."""
        for name in self._find_common(_PERSONS, taken):
            persons = self.table.cells[name].map(_as_name)
            is_text = persons.str.len().max() > _LONGEST_NAME  # such as a prompt
            if not is_text and persons[persons != ""].groupby(models).nunique().max() > 1:
                raise ParameterError(
                    f"{self.place}: {column} and {name} may both name the respondents; set "
                    f"respondent={column} if its rows are runs, or respondent={name}."
                )

    def _join_names(self, columns: list[str]) -> list[str]:
        parts = [self.table.cells[name].map(_as_name) for name in columns]
        return [" ".join(names) for names in zip(*parts, strict=True)]

    def _read_wide(self, wide: dict[str, str], rows: pd.DataFrame) -> pd.DataFrame:
        """Turn the columns of a wide table into rows."""
        columns = pd.Series(wide)
        twice = columns[columns.duplicated(keep=False)]
        if len(twice):
            headers = twice.index[twice == twice.iloc[0]]
            raise ParameterError(
                f"{self.place}: {' and '.join(headers)} are both {twice.iloc[0]}; drop one, or "
                "set columns."
            )

        if not self.are_named:
            text = "no column names the respondents: each row is one (else set respondent)"
            others = [*self.left_out, *self.conditions]  # may tell respondents apart
            if self.has_runs_of_one and rows["run"].is_unique and not others:
                rows["respondent_id"] = "1"
                text = "no column names respondents: all rows are runs of one (else set respondent)"
            self.notes.add("respondents", text)

        start, end = columns.index[[0, -1]]
        text = f"wide: a row for each run; {len(wide)} columns, {shown(start)} to {shown(end)}, "
        text += f"are {len(wide)} of {len(self.names.ids)} items"
        if any(_plain_name(header) != _plain_name(item) for header, item in wide.items()):
            text += f", {wide[start]} to {wide[end]}"
        self.notes.add("layout", text)
        table = self.table.cells
        before = () if self.are_named else table.columns[: table.columns.get_loc(start)]
        for name in self.left_out:
            is_text = name in before and pd.to_numeric(table[name], errors="coerce").isna().all()
            self._question_column(name, {*wide.values()}, is_text)

        parts = []
        for header, item in wide.items():
            cells = self._use_labels(header, [self.names.options[item]])
            parts.append(rows.assign(column=header, item_id=item, cell=cells))

        return pd.concat(parts, ignore_index=True)

    def _question_column(self, name: str, items: set[str], may_be_name: bool) -> None:
        """Say that a column that is left out may be a total, an item, or name the respondents."""
        nearest = self.names.nearest(name)
        if self.names.is_total(name):
            text = f"the column {name} has the questionnaire's name: taken as a total"
            self.notes.add("total", f"{text} (else set columns)", 1)
        elif nearest not in {None, name, *items}:  # its own name if columns are set
            text = f"column {name} is not an item; is it {nearest}? Rename it, or set columns"
            self.notes.add("unknown item", text, 1)
        elif may_be_name or _plain_name(name).endswith(_PERSONAL):
            persons = self.table.cells[name].map(_as_name)
            if persons[persons != ""].duplicated().any():
                text = f"the column {name} repeats: if it names the respondents, set "
                text += f"respondent={name}"
                self.notes.add("respondents", text)

    def _read_long(self, long: _Long, rows: pd.DataFrame) -> pd.DataFrame:
        """Identify the item of each row of a long table."""
        item_column, value_column, items = long
        cells = self.table.cells[item_column]
        text = f"long: a row for each answer; {item_column} is the item and {value_column} the "
        text += "answer"
        if any(_plain_name(cell) != _plain_name(item) for cell, item in items.items()):
            cell, item = next(iter(items.items()))
            text += f" ('{str(cell)[:40]}' is {item})"

        self.notes.add("layout", text)
        if not self.are_named:
            rows["respondent_id"] = "1"
            text = "no column of respondents: all rows are one (else set respondent)"
            self.notes.add("respondents", text)

        # the rest of a batch's ids names runs if it repeats over the items
        rests = cells[cells.isin(items)].map(lambda cell: str(cell).replace(items[cell], ""))
        repeats = rests.groupby(cells.map(items)).nunique().max()
        if item_column == "custom_id" and 1 < rests.nunique() == repeats:
            rows = rows.assign(run=rows["run"] + rests if self.has_runs else rests)
            self.has_runs = True
            self.notes.add("runs", f"custom_id without the item ('{rests.iloc[0]}') names the runs")

        values = self._use_labels(value_column, list(self.names.options.values()))
        answers = rows.assign(column=value_column, item_id=cells.map(items), cell=values)
        unknown = answers[answers["item_id"].isna()]
        for cell, group in unknown.groupby(cells, sort=False, dropna=False):
            nearest = self.names.nearest(cell)
            places = listed(group["place"].tolist(), 2)
            text = f"{places}, column {item_column}: '{shown(cell)}' is not an item; left out"
            text += f"; is it {nearest}?" if nearest else ""
            self.notes.add("unknown item", text, len(group))

        return answers.dropna(subset="item_id").reset_index(drop=True)

    def _use_labels(self, header: str, options: list[_OptionNames]) -> pd.Series:
        """Replace the labelled numbers of a column by their labels, if these are labels of options.

        A number with another label, or without one, is then not an answer.
        """
        cells = self.table.cells[header].astype(object)
        labels = self.table.labels.get(header) or {}
        named = {n for n, text in labels.items() if {o.label(text) for o in options} != {None}}
        strange = [text for n, text in labels.items() if n not in named]
        if strange:
            used = "the others are used" if len(named) > 1 else "the numbers are used"
            text = f"the label '{shown(strange[0])}' is not an option: {used}"
            # once, not for each item
            if not any(row["said"].endswith(text) for row in self.notes.rows):
                self.notes.add("labels", f"column {header}: {text}", len(strange))

        if len(named) < max(1, min(2, len(labels))):
            return cells

        bare = [n for n in cells.dropna().unique() if n not in labels and not isinstance(n, str)]
        if bare and len(named) < len(options[0].values):
            raise ParameterError(
                f"{self.place}, column {header}: {bare[0]:g} has no label, although other numbers "
                "have labels of options; set numbers, such as numbers='from 1', or label them all."
            )

        labels = labels | {number: f"{number:g} without a label" for number in bare}
        return cells.map(lambda cell: labels.get(cell, cell))


def _without_mark(name: object) -> str:
    """Return a name without an ending that means *reversed*, or "" if it has no such ending.

    Examples
    --------
    >>> _without_mark("SOC_1_INV"), _without_mark("SOC_1")
    ('SOC_1', '')
    """
    text = str(name).strip()
    bare_name = _MARK.sub("", text) if len(text) <= _LONGEST else text
    return bare_name if bare_name != text else ""


def _without_words(name: str) -> str:
    """Return a name without the words after its last number, or else without its first word.

    Examples
    --------
    >>> _without_words("E5_flipped"), _without_words("flipped_E5")
    ('E5', 'E5')
    """
    name = name[:_LONGEST]
    bare_name = re.sub(r"\D+$", "", name)
    return bare_name if bare_name != name else re.sub(r"^\W*[^\W\d_]+[\W_]+", "", name)


def _as_name(cell: object) -> str:
    """Return a cell's value as a name, such as 3 for 3.0."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None or cell is pd.NA or cell != cell else str(cell).strip()
