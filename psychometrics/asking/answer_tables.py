"""Read a table of answers that another program wrote: cells, rows, and their descriptions.

Nothing here depends on a questionnaire. An error names the optional library that a file needs.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from ..data import text_table
from ..endpoints.client import is_filtered
from ..endpoints.completions import read_message
from ..exceptions import DataError, ParameterError
from ..modes.conversations import ENDED_WITHOUT_ANSWER

# Extensions of readable files.
_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xls", ".ods", ".parquet", ".sav", ".zsav",
           ".dta", ".json", ".jsonl", ".eval")  # fmt: skip
_SPREADSHEETS = {".xlsx": "openpyxl", ".xls": "xlrd", ".ods": "odf"}
_STATISTICS = {".sav": "read_sav", ".zsav": "read_sav", ".dta": "read_dta"}
_IMPORT_ID = '{"importid"'


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

    def add(self, what: str, said: str, count: int = 0) -> None:
        """Add a note on a number of cells, rows or columns."""
        self.rows.append({"what": what, "count": int(count), "said": said})

    def begin(self, said: str) -> None:
        """Put the number of answers before the other notes."""
        self.rows.insert(0, {"what": "count", "count": 0, "said": said})

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
        frame = source.reset_index(drop=True)
        rows = [f"row {name}" for name in source.index]
        return _tidy_headers(_AnswerTable(frame, rows, "the frame"))

    if not isinstance(source, str | Path):
        said = f"Answers must be a file or a DataFrame, got {type(source).__name__}"
        raise ParameterError(f"{said}; name a file.")

    path = Path(os.path.expanduser(source))  # which leaves ~nobody as it is
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise ParameterError(f"{path}: save answers as one of {', '.join(_ENDINGS)}.")
    if not os.path.isfile(path):  # Path.is_file raises an error for a long name
        raise DataError(f"{str(path)[:200]} is not a file: name a table of answers.")

    if ending in (".csv", ".tsv", ".tab", ".txt"):
        cells = text_table(path)
        table = _AnswerTable(cells, [f"line {n}" for n in cells.attrs.pop("lines")], path.name)
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
    first = ", ".join(map(shown, names[:most]))
    return f"{first} and {len(names) - most} more" if len(names) > most else first


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


def _binary_table(path: Path, ending: str) -> _AnswerTable:
    """Read a spreadsheet, a Parquet file, or a file of a statistics program."""
    texts = {}
    labels = {}
    notes = []
    first = 1
    if ending in _SPREADSHEETS:
        library(_SPREADSHEETS[ending], f"{path.name}: a spreadsheet")

    reader = None
    if ending in _STATISTICS:
        reader = getattr(library("pyreadstat", f"{path.name}: this format"), _STATISTICS[ending])

    try:
        if reader is not None:
            cells, about = reader(str(path))
            texts = {name: text for name, text in about.column_names_to_labels.items() if text}
            labels = dict(about.variable_value_labels)
        elif ending == ".parquet":
            cells = pd.read_parquet(path)
        else:
            sheets = pd.read_excel(path, sheet_name=None, dtype=object, header=None)
            sheet, cells = next(iter(sheets.items()))
            first, cells = _below_headers(cells)
            if len(sheets) > 1:
                rest = ", ".join(list(sheets)[1:])
                notes.append(f"the sheet '{sheet}' is read; left out: {rest}")
    except Exception as error:  # each library has its own errors
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path} cannot be read ({said}): save the table as CSV.") from None

    if first > 2:
        notes.append(f"{several(first - 2, 'row')} above the headers left out")

    cells = cells.reset_index(drop=True)
    rows = [f"row {number + first}" for number in range(len(cells))]
    return _AnswerTable(cells, rows, path.name, texts, labels, notes=notes)


def _below_headers(sheet: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Take the first row with enough cells as headers; return the next row's number and the rows.

    Enough means more than half as many cells as the fullest row has; a title above a table has
    fewer. If pandas read the headers, it would rename the second *item 1* to *item 1.1*, which
    resembles item 11.
    """
    filled = sheet.notna().sum(axis=1).tolist()
    top = next((row for row, count in enumerate(filled) if 2 * count > max(filled)), 0)
    names = [] if sheet.empty else sheet.iloc[top].tolist()
    names = [f"column {n}" if pd.isna(name) else name for n, name in enumerate(names, start=1)]
    return top + 2, sheet.iloc[top + 1 :].set_axis(names, axis=1)


def _json_table(path: Path) -> _AnswerTable:
    """Read JSON (a list, or an object per line), also from lm-evaluation-harness or a batch API."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix.lower() == ".json":
        content = _decoded(text, path, 1)
        numbered = list(enumerate(content if isinstance(content, list) else [content], start=1))
    else:
        lines = enumerate(text.splitlines(), start=1)
        numbered = [(n, _decoded(line, path, n)) for n, line in lines if line.strip()]

    stray = [number for number, row in numbered if not isinstance(row, dict)]
    if stray:
        raise DataError(f"{path}, row {stray[0]}: is not a JSON object; write one.")

    notes = []
    first = numbered[0][1] if numbered else {}
    if {"doc", "filtered_resps"} <= set(first):
        kind = "samples of lm-evaluation-harness"
        model = path.parent.name if "__" in path.parent.name else path.stem
        # each filter that extracts the answer from a reply has its own line
        filters = {row.get("filter"): None for _, row in numbered}
        numbered = [(n, row) for n, row in numbered if row.get("filter") == next(iter(filters))]

        if len(filters) > 1:
            notes.append(f"of the filters {', '.join(map(str, filters))}, only the first is read")

        rows = [_harness_row(row, model) for _, row in numbered]
    elif "custom_id" in first and isinstance(
        first.get("response", first.get("result", "")), dict | None
    ):
        kind = "a batch's output"
        rows = _batch_rows([row for _, row in numbered])
    else:
        kind = ""
        rows = [row for _, row in numbered]

    if kind:
        notes.insert(0, f"read as {kind}")

    places = [f"line {number}" for number, _ in numbered]
    return _AnswerTable(pd.DataFrame(rows), places, path.name, replies=bool(kind), notes=notes)


def _flat(value: object) -> object:
    """Turn a list, an object or a truth value within a cell into text."""
    if pd.api.types.is_bool(value):
        return str(value)
    return json.dumps(value, default=str) if pd.api.types.is_list_like(value) else value


def _decoded(text: str, path: Path, line: int) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{path}, line {line + error.lineno - 1}"
        raise DataError(f"{place}: is not JSON ({error.msg}); correct the line.") from None
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        raise DataError(f"{path}, line {line}: too nested or too long; write flat rows.") from None


def _harness_row(row: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the fields of a sample's document, with the continuation or text that was chosen."""
    doc = row["doc"] if isinstance(row["doc"], dict) else {"text": row["doc"]}
    fields = {name: value for name, value in doc.items() if isinstance(value, str | int | float)}
    responses = row["filtered_resps"]
    if len(responses) == 1 and isinstance(responses[0], list) and len(responses[0]) == 1:
        responses = responses[0]

    if len(responses) > 1:
        scores = [float(one[0] if isinstance(one, list | tuple) else one) for one in responses]
        answer: Any = _continuations(row)[scores.index(max(scores))]
    else:
        answer = responses[0] if responses else None

    return fields | {"model": model, "response": _choice(answer, doc.get("choices"))}


def _choice(answer: object, choices: object) -> object:
    """Return the text of the choice that a letter names, in the order of its own sample."""
    texts = choices.get("text") if isinstance(choices, dict) else choices
    letter = re.fullmatch(r"\(?([A-Z])[).:]?", str(answer).strip())
    place = ord(letter[1]) - ord("A") if letter else -1
    if not isinstance(texts, list) or not 0 <= place < len(texts) or answer in texts:
        return answer
    return texts[place]


def _continuations(row: dict[str, Any]) -> list[str]:
    """Return the texts appended to a prompt for each option of a multiple-choice sample."""
    arguments = row["arguments"]
    if isinstance(arguments, dict):  # format of newer versions
        arguments = [list(one.values()) for one in arguments.values()]
    return [str(one[1]).strip() for one in arguments]


def _batch_rows(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the replies in a batch's output, all with its model, which errors do not name."""
    rows = [_batch_row(line) for line in lines]
    models = {row["model"] for row in rows} - {None}
    if len(models) == 1:
        rows = [row | {"model": next(iter(models))} for row in rows]
    return rows


def _batch_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a reply in a batch's output; a refusal has a status instead."""
    reply = _first_object(row.get("response"), row.get("result"))
    body = _first_object(reply.get("body"), reply.get("message"))
    text, reason = read_message(_first_object(*(body.get("choices") or [body])))
    fields = {"custom_id": row.get("custom_id"), "model": body.get("model")}

    refuses = ENDED_WITHOUT_ANSWER.get((reason or "").lower()) == "refused"
    if refuses or is_filtered(body) or is_filtered(row):
        return fields | {"response": None, "status": "refused"}
    return fields | {"response": text or None, "status": None}


def _first_object(*values: Any) -> dict[str, Any]:
    """Return the first object that is not empty, or an empty one."""
    return next((value for value in values if isinstance(value, dict) and value), {})


def _inspect_log(path: Path) -> _AnswerTable:
    """Read the answers that scorers extracted, or else the completions, from an inspect log."""
    log = library("inspect_ai.log", f"{path.name}: an inspect log")
    try:
        content = log.read_eval_log(str(path))
    except Exception as error:  # any fault that the library finds in a file
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path} cannot be read ({said}): write the log again.") from None

    rows = list(_inspect_rows(content))
    places = [f"sample {row['id']}" for row in rows]
    cells = pd.DataFrame(rows).rename(columns={"id": "sample"})
    notes = ["read as an inspect log"]
    if content.status in ("error", "cancelled"):
        notes.append(f"the log's status is {content.status}: it may lack samples")

    return _AnswerTable(cells, places, path.name, replies=True, notes=notes)


def _inspect_rows(content: Any) -> Iterator[dict[str, Any]]:
    for sample in content.samples or []:
        asked = sample.input
        if not isinstance(asked, str):
            asked = asked[-1].text if asked else ""

        answers = [score.answer for score in (sample.scores or {}).values() if score.answer]
        details = {
            name: value
            for name, value in (sample.metadata or {}).items()
            if isinstance(value, str | int | float)
        }
        yield details | {
            "id": sample.id,
            "model": content.eval.model,
            "epoch": sample.epoch,
            "input": asked,
            "response": _choice(
                answers[0] if answers else sample.output.completion, sample.choices
            ),
        }


def _tidy_headers(table: _AnswerTable) -> _AnswerTable:
    """Strip spaces from headers, and separate question texts from the answers in survey exports."""
    cells = table.cells.set_axis([str(name).strip() for name in table.cells], axis=1)
    names = cells.columns
    twice = names[names.duplicated()]
    if twice.size:
        raise ParameterError(f"{table.place} has the column '{twice[0]}' twice: keep one.")

    for name in names:
        kind = cells[name].dtype
        if pd.api.types.is_object_dtype(kind) or pd.api.types.is_bool_dtype(kind):
            cells[name] = cells[name].astype(object).map(_flat)

    table.texts = {str(name).strip(): text for name, text in table.texts.items()}
    table.labels = {str(name).strip(): labels for name, labels in table.labels.items()}

    import_ids = [
        number
        for number, row in enumerate(cells.head(2).itertuples(index=False))
        if any(str(cell).replace(" ", "").lower().startswith(_IMPORT_ID) for cell in row)
    ]
    if import_ids:
        below = import_ids[0]
        if below:
            table.texts = cells.iloc[0].astype(str).to_dict()

        cells = cells.iloc[below + 1 :].reset_index(drop=True)
        table.rows = table.rows[below + 1 :]
        table.notes.append("read as a Qualtrics export: rows below the header are questions")

    if any(name.startswith("answer.") for name in names):
        for name in names[names.str.match(r"question_text\.\w+_question_text$")]:
            question = name.removeprefix("question_text.").removesuffix("_question_text")
            table.texts[question] = str(cells[name].iloc[0]) if len(cells) else ""

        kept = {name: name.removeprefix("answer.") for name in names if name.startswith("answer.")}
        kept |= {"model.model": "model", "iteration.iteration": "iteration"}
        kept |= {name: name.removeprefix("agent.") for name in names if name.startswith("agent.")}
        cells = cells[[name for name in names if name in kept]].rename(columns=kept)
        table.notes.append("read as results of EDSL")

    table.cells = cells
    return table
