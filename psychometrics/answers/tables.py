"""Read a table of answers that another program wrote: cells, rows, and their descriptions.

Nothing here depends on a questionnaire. An error names the optional library that a file needs.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from ..data import (
    check_cells,
    check_size,
    read_text,
    split_headers,
    text_table,
    with_formulas,
)
from ..endpoints.completions import is_filtered, read_message
from ..exceptions import DataError, ParameterError, PsychometricsError
from ..modes.conversations import ENDED_WITHOUT_ANSWER

# Extensions of readable files.
_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xls", ".ods", ".parquet", ".sav", ".zsav",
           ".dta", ".json", ".jsonl", ".eval")  # fmt: skip
_SPREADSHEETS = {".xlsx": "openpyxl", ".xls": "xlrd", ".ods": "odf"}
_STATISTICS = {".sav": "read_sav", ".zsav": "read_sav", ".dta": "read_dta"}
# What EDSL puts before the names of answers, agents, models and iterations.
_EDSL = re.compile(r"(?:answer|agent)\.|model\.(?=model$)|iteration\.(?=iteration$)")
_WRITE_ROWS = "write rows, as pandas does with reset_index() and to_json(orient='records')."


@dataclass
class _AnswerTable:
    """A table of answers before interpretation.

    Attributes
    ----------
    cells : DataFrame
        The rows of the file; headers are text without surrounding blanks.
    rows : list of str
        The name of each row, such as ``line 2``.
    place : str
        Name of the file, or ``the frame``.
    texts : dict of str to str
        The descriptions of columns, such as the question that a variable's name stands for.
    labels : dict of str to dict
        The labels of each column's numbers.
    replies : bool
        Whether the cells may be whole replies of models.
    notes : list of str
        Decisions made while the file was read.
    """

    cells: pd.DataFrame
    rows: list[str]
    place: str
    texts: dict[str, str] = field(default_factory=dict)
    labels: dict[str, dict[Any, str]] = field(default_factory=dict)
    replies: bool = False
    notes: list[str] = field(default_factory=list)


class _Replies(tuple[object, ...]):
    """Replies of a model to one item, of which the first that can be read is the answer."""

    def __str__(self) -> str:
        return str(self[0])


class _Notes:
    """Notes on a table's contents, on decisions and on omissions, in the order of reading.

    Parameters
    ----------
    place : str
        Name of the table.

    Examples
    --------
    >>> notes = _Notes("a.csv")
    >>> notes.add("missing", "2 cells empty", 2)
    >>> str(notes)
    'a.csv: 2 cells empty.'
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.rows: list[dict[str, Any]] = []

    def add(self, kind: str, text: str, count: int = 0) -> None:
        """Add a note on a number of cells, rows or columns."""
        self.rows.append({"what": kind, "count": int(count), "said": text})

    def begin(self, text: str) -> None:
        """Put the number of answers before the other notes."""
        self.rows.insert(0, {"what": "count", "count": 0, "said": text})

    def __str__(self) -> str:
        ends = ["" if row["said"].endswith("?") else "." for row in self.rows]
        lines = zip(self.rows, ends, strict=True)
        return "\n".join(f"{self.place}: {row['said']}{end}" for row, end in lines)


def read_table(source: str | Path | pd.DataFrame) -> _AnswerTable:
    """Read a file of answers, or accept a frame, without interpreting it.

    Parameters
    ----------
    source : str, Path or DataFrame
        A file with an extension in ``_ENDINGS``: a table, an inspect log (``.eval``), or a
        ``.jsonl`` file with samples of lm-evaluation-harness, the output of a batch API, or rows.

    Returns
    -------
    AnswerTable

    Raises
    ------
    DataError
        The file is missing or damaged.
    ParameterError
        The file has a different format, or the library that reads it is not installed.

    Examples
    --------
    >>> read_table(pd.DataFrame({" E1 ": [4], "E2": [2]})).cells.columns.tolist()
    ['E1', 'E2']
    """
    if isinstance(source, pd.DataFrame):
        rows = [f"row {name}" for name in source.index]
        return _tidy_headers(_AnswerTable(_with_index(source, "the frame"), rows, "the frame"))

    if not isinstance(source, str | Path):
        text = f"Answers must be a file or a DataFrame, got {type(source).__name__}"
        raise ParameterError(f"{text}; name a file.")

    path = Path(os.path.expanduser(source))  # which leaves ~nobody as it is
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise ParameterError(f"{path}: save answers as one of {', '.join(_ENDINGS)}.")
    check_size(path)
    if ending in (".csv", ".tsv", ".tab", ".txt"):
        notes: list[str] = []
        cells = text_table(path, notes=notes)
        rows = [f"line {n}" for n in cells.attrs.pop("lines")]
        if {*cells} >= {"respondent_id", "run"} or list(cells)[:3] == ["id", "item", "resp"]:
            cells = with_formulas(cells)  # written by write_answers
        table = _AnswerTable(cells, rows, path.name, notes=notes)
    elif ending in (".json", ".jsonl"):
        table = _json_table(path)
    elif ending == ".eval":
        table = _inspect_log(path)
    else:
        table = _binary_table(path, ending)

    return _tidy_headers(table)


def listed(names: list[str], most: int = 8) -> str:
    """Return the first names of a list, and the number of further names.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    beginning = ", ".join(map(shown, names[:most]))
    return f"{beginning} and {len(names) - most} more" if len(names) > most else beginning


def shown(cell: object) -> str:
    """Format a cell for a message.

    Examples
    --------
    >>> shown(" very  likely ")
    'very likely'
    """
    text = " ".join(str(cell).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def several(count: int, noun: str) -> str:
    """Return a count followed by its noun, in the singular or the plural.

    Examples
    --------
    >>> several(1, "cell"), several(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def library(name: str, needed_for: str) -> ModuleType:
    """Import an optional library.

    Raises
    ------
    ParameterError
        The library is not installed; the message contains the command that installs it.

    Examples
    --------
    >>> library("json", "a log").__name__
    'json'
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        package = {"inspect_ai.log": "inspect-ai", "odf": "odfpy"}.get(name, name)
        raise ParameterError(
            f"{needed_for} needs {package}, which is not installed: pip install {package}"
        ) from None


def _with_index(frame: pd.DataFrame, place: str) -> pd.DataFrame:
    """Keep an index as columns, unless it only numbers the rows."""
    names = list(frame.index.names)
    if names == [None] and (pd.api.types.is_integer_dtype(frame.index.dtype) or frame.empty):
        return frame.reset_index(drop=True)

    twice = [name for name in names if name in frame]
    if twice:
        raise ParameterError(
            f"{place} has a column and an index called '{twice[0]}'; rename or drop one."
        )
    return frame.reset_index()


def _binary_table(path: Path, ending: str) -> _AnswerTable:
    """Read a spreadsheet, a Parquet file, or a file of a statistics program."""
    from pyarrow.parquet import read_metadata

    texts = {}
    labels = {}
    notes = []
    above = 0
    if ending in _SPREADSHEETS:
        library(_SPREADSHEETS[ending], f"{path.name}: a spreadsheet")

    try:
        if ending in _STATISTICS:
            pyreadstat = library("pyreadstat", f"{path.name}: this format")
            reader = getattr(pyreadstat, _STATISTICS[ending])
            _, metadata = reader(str(path), metadataonly=True)
            check_cells(path.name, metadata.number_rows or 0, metadata.number_columns)
            cells, metadata = reader(str(path))
            texts = {name: text for name, text in metadata.column_names_to_labels.items() if text}
            labels = dict(metadata.variable_value_labels)
        elif ending == ".parquet":
            size = read_metadata(path)
            check_cells(path.name, size.num_rows, size.num_columns)
            cells = _with_index(pd.read_parquet(path), path.name)
        else:
            with pd.ExcelFile(path) as book:
                sheet, *further_sheets = book.sheet_names
                above, cells = split_headers(_sheet_rows(book, path.name))
            if further_sheets:
                notes.append(f"the sheet '{sheet}' is read; left out: {', '.join(further_sheets)}")
    except PsychometricsError:
        raise
    except Exception as error:  # each library has its own errors
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{path} cannot be read ({reason}): save the table as CSV.") from None

    if above:
        notes.append(f"{several(above, 'row')} above the headers left out")

    top = above + 2 if ending in _SPREADSHEETS else 1
    rows = [f"row {number + top}" for number in range(len(cells))]
    return _AnswerTable(cells, rows, path.name, texts, labels, notes=notes)


def _sheet_rows(book: pd.ExcelFile, place: str) -> list[list[Any]]:
    """Return the rows of a workbook's first sheet, after checking how far it reaches."""
    name = book.sheet_names[0]
    if book.engine == "openpyxl":
        sheet = book.book[name]
        sheet.reset_dimensions()  # programs may declare wrong ones
        return _filled_rows(sheet.iter_rows(values_only=True), place)

    if book.engine == "xlrd":
        sheet = book.book.sheet_by_name(name)
        check_cells(place, sheet.nrows, sheet.ncols)
    else:  # an OpenDocument, whose cells and rows may be repeated
        tables = library("odf.table", place)
        rows = columns = row = 0
        sheet = book.book.getElementsByType(tables.Table)[0]
        for line in sheet.getElementsByType(tables.TableRow):
            row += int(line.getAttribute("numberrowsrepeated") or 1)
            column = 0
            for cell in line.childNodes:
                column += int(cell.getAttribute("numbercolumnsrepeated") or 1)
                if cell.childNodes or cell.getAttribute("valuetype"):
                    rows = row
                    columns = max(columns, column)

            check_cells(place, rows, columns)

    cells = pd.read_excel(book, name, header=None, dtype=object, keep_default_na=False)
    filled: list[list[Any]] = cells.to_numpy().tolist()
    return filled


def _filled_rows(rows: Iterable[tuple[Any, ...]], place: str) -> list[list[Any]]:
    """Return rows without the empty cells at their ends and the empty rows at the table's end."""
    filled: list[list[Any]] = []
    width = 0
    gap = 0
    for row in rows:
        last = max((n for n, cell in enumerate(row, start=1) if cell is not None), default=0)
        if not last:
            gap += 1
            continue

        width = max(width, last)
        check_cells(place, len(filled) + gap + 1, width)
        filled += [[] for _ in range(gap)]
        gap = 0
        # a whole number may be saved with decimals
        filled.append([int(c) if type(c) is float and c % 1 == 0 else c for c in row[:last]])

    return filled


def _json_table(path: Path) -> _AnswerTable:
    """Read JSON (a list, or an object per line), also from lm-evaluation-harness or a batch API."""
    notes: list[str] = []
    text = read_text(path, notes)
    unit = "row" if path.suffix.lower() == ".json" else "line"
    if unit == "row":
        numbered = list(enumerate(_json_rows(_parse_json(text, path, 1), path), start=1))
    else:  # str.splitlines would split at signs that a text may contain
        lines = enumerate(text.split("\n"), start=1)
        numbered = [(n, _parse_json(line, path, n)) for n, line in lines if line.strip()]

    stray = [number for number, row in numbered if not isinstance(row, dict)]
    if stray:
        raise DataError(
            f"{path}, {unit} {stray[0]}: is not a JSON object; write rows, as pandas does with "
            "to_json(orient='records')."
        )

    kind = ""
    fields = numbered[0][1] if numbered else {}
    if {"doc", "filtered_resps"} <= fields.keys():
        kind = "samples of lm-evaluation-harness"
        model = path.parent.name if "__" in path.parent.name else path.stem
        # each filter that extracts the answer from a reply has its own line
        filters = {row.get("filter"): None for _, row in numbered}
        numbered = [(n, row) for n, row in numbered if row.get("filter") == next(iter(filters))]

        if len(filters) > 1:
            notes.append(f"of the filters {', '.join(map(str, filters))}, only the first is read")

        samples = [(n, _harness_rows(row, model, f"{path}, line {n}")) for n, row in numbered]
        numbered = [(n, row) for n, sample in samples for row in sample]
    elif "custom_id" in fields and isinstance(
        fields.get("response", fields.get("result", "")), dict | None
    ):
        kind = "a batch's output"
        numbered = [(n, row) for n, line in numbered for row in _batch_rows(line)]
        models = {row["model"] for _, row in numbered} - {None}
        if len(models) == 1:  # errors do not name the model
            numbered = [(n, row | {"model": next(iter(models))}) for n, row in numbered]

    rows = [row for _, row in numbered]
    if kind:
        notes.insert(0, f"read as {kind}")

    check_cells(path.name, len(rows), len({name for row in rows for name in row}))
    places = [f"{unit} {number}" for number, _ in numbered]
    return _AnswerTable(pd.DataFrame(rows), places, path.name, replies=bool(kind), notes=notes)


def _json_rows(content: Any, path: Path) -> list[Any]:
    """Return the rows of a JSON file in any of the forms that pandas writes."""
    if not isinstance(content, dict):
        return content if isinstance(content, list) else [content]

    data = content.get("data")
    if isinstance(content.get("schema"), dict) and isinstance(data, list):  # the form "table"
        return list(data)

    columns = list(content.values())
    try:
        if isinstance(content.get("columns"), list) and isinstance(data, list):
            frame = pd.DataFrame(**content, dtype=object)  # the form "split"
            is_table = frame.columns.is_unique and not {*map(type, frame.index)} - {int}
        elif columns and all(isinstance(column, list) for column in columns):
            frame = pd.DataFrame(content, dtype=object)
            is_table = not any(isinstance(cell, dict) for cell in columns[0])
        elif columns and all(isinstance(column, dict) for column in columns):
            keys = list(dict.fromkeys(key for column in columns for key in column))
            check_cells(path.name, len(keys), len(columns))
            frame = pd.DataFrame(content, index=keys, dtype=object)
            numbers_rows, numbers_columns = (all(map(str.isdecimal, n)) for n in (keys, content))
            is_table = numbers_rows != numbers_columns  # the forms "columns" and "index"
            frame = frame.T if numbers_columns else frame
        else:
            return [content]
    except (TypeError, ValueError):  # rows or columns of different lengths
        is_table = False

    if not is_table:
        raise DataError(f"{path}: may not be a table, or be one in two ways; {_WRITE_ROWS}")
    rows: list[Any] = frame.to_dict("records")
    return rows


def _flatten(value: object) -> object:
    """Turn a list, an object or a truth value within a cell into text."""
    if pd.api.types.is_bool(value):
        return str(value)
    if isinstance(value, _Replies):
        return value
    return json.dumps(value, default=str) if pd.api.types.is_list_like(value) else value


def _parse_json(text: str, path: Path, line: int) -> object:
    def check_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, count in Counter(name for name, _value in pairs).items():
            if count > 1:
                raise KeyError(name)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=check_once)
    except json.JSONDecodeError as error:
        place = f"{path}, line {line + error.lineno - 1}"
        is_lines = error.msg == "Extra data" and path.suffix.lower() == ".json"
        mend = "end the file's name in .jsonl" if is_lines else "correct the line"
        raise DataError(f"{place}: is not JSON ({error.msg}); {mend}.") from None
    except KeyError as error:
        raise DataError(f"{path}: has {error} twice in a row; keep one.") from None
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        raise DataError(f"{path}, line {line}: too nested or too long; write flat rows.") from None


def _harness_rows(row: dict[str, Any], model: str, place: str) -> list[dict[str, Any]]:
    """Return the fields of a sample's document with the option that is likeliest, or each text."""
    doc = row.get("doc")
    doc = doc if isinstance(doc, dict) else {"text": doc}
    fields = {name: value for name, value in doc.items() if isinstance(value, str | int | float)}
    fields |= {"model": model}
    responses = row.get("filtered_resps")
    requests = responses if isinstance(responses, list) else [responses]
    choices = doc.get("choices")
    scores = [_log_likelihood(request) for request in requests]
    if any(score is not None for score in scores):
        # The texts appended to a prompt for each option of a multiple-choice sample.
        arguments = row.get("arguments")
        if isinstance(arguments, dict):  # format of newer versions
            entries = [entry for entry in arguments.values() if isinstance(entry, dict)]
            arguments = [list(entry.values()) for entry in entries]
        pairs = [entry for entry in arguments or [] if isinstance(entry, list) and len(entry) > 1]
        options = [str(pair[1]).strip() for pair in pairs]

        likelihoods = pd.Series(scores, dtype=float)
        if not len(options) == len(likelihoods) > 1 or likelihoods.isna().any():
            raise DataError(
                f"{place}: has not one log-likelihood for each of {len(options)} options; write "
                "the samples again."
            )
        likeliest = np.flatnonzero(likelihoods == likelihoods.max())
        text = options[likeliest[0]] if len(likeliest) == 1 else None
        return [fields | {"response": _choice(text, choices)}]

    # a text, or the texts of repeated requests
    texts = pd.Series(requests, dtype=object).explode()
    return [fields | {"response": _choice(text, choices)} for text in texts]


def _choice(answer: object, choices: object) -> object:
    """Return the text of the choice that a letter names, in the order of its own sample."""
    texts = choices.get("text") if isinstance(choices, dict) else choices
    letter = re.fullmatch(r"\(?([A-Z])[).:]?", str(answer).strip())
    place = ord(letter[1]) - ord("A") if letter else -1
    if not isinstance(texts, list) or not 0 <= place < len(texts) or answer in texts:
        return answer
    return texts[place]


def _log_likelihood(response: Any) -> float | None:
    """Return the log-likelihood in a pair that also says whether the text is the likeliest."""
    is_pair = isinstance(response, list) and len(response) == 2
    if not is_pair or str(response[1]) not in ("True", "False"):
        return None
    score = pd.to_numeric(response[0], errors="coerce")
    return None if score > 0 else float(score)


def _batch_rows(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each reply in a line of a batch's output; several are numbered as runs.

    A row has the text of a reply; a refusal has a status instead.
    """
    reply = _first_object(line.get("response"), line.get("result"))
    body = _first_object(reply.get("body"), reply.get("message"))
    choices = body.get("choices") or [body]
    rows = []
    for number, choice in enumerate(choices, start=1):
        text, reason = read_message(_first_object(choice))
        refuses = ENDED_WITHOUT_ANSWER.get((reason or "").lower()) == "refused"
        refuses = refuses or is_filtered(body) or is_filtered(line)
        row = {"custom_id": line.get("custom_id"), "model": body.get("model")}
        row |= {"response": None if refuses else text or None}
        row |= {"status": "refused" if refuses else None}
        rows.append(row | ({"run": number} if len(choices) > 1 else {}))

    return rows


def _first_object(*values: Any) -> dict[str, Any]:
    """Return the first object that is not empty, or an empty one."""
    return next((value for value in values if isinstance(value, dict) and value), {})


def _inspect_log(path: Path) -> _AnswerTable:
    """Read the answers that scorers extracted, or else the completions, from an inspect log."""
    log = library("inspect_ai.log", f"{path.name}: an inspect log")
    try:
        content = log.read_eval_log(str(path))
    except Exception as error:  # any fault that the library finds in a file
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} cannot be read ({reason}): write the log again.") from None

    samples = content.samples or []
    repeated = len({sample.epoch for sample in samples}) > 1
    places = [f"sample {s.id}, epoch {s.epoch}" if repeated else f"sample {s.id}" for s in samples]
    notes = ["read as an inspect log"]
    scorers = dict.fromkeys(name for sample in samples for name in sample.scores or {})
    if scorers:
        notes.append(
            f"the answer of the scorer {' or else '.join(scorers)} is read, or else the completion"
        )
    if content.status in ("error", "cancelled"):
        notes.append(f"the log's status is {content.status}: it may lack samples")

    rows = []
    for sample in samples:
        prompt = sample.input
        if not isinstance(prompt, str):
            prompt = prompt[-1].text if prompt else ""

        metadata = sample.metadata or {}
        row = {k: value for k, value in metadata.items() if isinstance(value, str | int | float)}
        row |= {"sample": sample.id, "model": content.eval.model, "epoch": sample.epoch}
        # The answers of the scorers and the completion are replies, in this order.
        scores = sample.scores or {}
        texts = [scores[name].answer for name in scorers if name in scores]
        texts.append(sample.output.completion)
        replies = _Replies(_choice(text, sample.choices) for text in texts if text)
        rows.append(row | {"input": prompt, "response": replies or None})

    return _AnswerTable(pd.DataFrame(rows), places, path.name, replies=True, notes=notes)


def _tidy_headers(table: _AnswerTable) -> _AnswerTable:
    """Strip spaces from headers, and separate question texts from the answers in survey exports."""
    cells = table.cells.set_axis([str(name).strip() for name in table.cells], axis=1)
    names = cells.columns
    twice = names[names.duplicated()]
    if twice.size:
        raise ParameterError(f"{table.place} has the column '{twice[0]}' twice: keep one.")

    for name in names:
        kind = cells[name].dtype
        is_sparse = isinstance(kind, pd.SparseDtype)
        if is_sparse or pd.api.types.is_object_dtype(kind) or pd.api.types.is_bool_dtype(kind):
            cells[name] = cells[name].astype(object).map(_flatten)

    table.texts = {str(name).strip(): text for name, text in table.texts.items()}
    table.labels = {str(name).strip(): labels for name, labels in table.labels.items()}

    if any(name.startswith("answer.") for name in names):
        for name in names[names.str.match(r"question_text\.\w+_question_text$")]:
            question = name.removeprefix("question_text.").removesuffix("_question_text")
            table.texts[question] = str(cells[name].iloc[0]) if len(cells) else ""

        named = [name for name in names if _EDSL.match(name)]
        cells = cells[named].rename(columns=lambda name: _EDSL.sub("", name, count=1))
        table.notes.append("read as results of EDSL")

    table.cells = cells
    return table
