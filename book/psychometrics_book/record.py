"""Save the tables and figures that chapters show, and look up the numbers for the prose.

:func:`table` and :func:`figure` show a result and write its numbers to a CSV file in the folder of
the run. Prose, claims, exercises and expectations refer to a cell of these files by an address:
``tab-power[silhouette, auc]`` in the same chapter, ``04/tab-power[silhouette, auc]`` from
elsewhere. The last label is a column; the labels before it are looked up in the first columns.

If a table's numbers depend on texts that the project does not ship, such as a lexicon,
``tab-power.rests-on.txt`` next to its CSV file names them. Such a table is compared only with
tables that name the same texts.
"""

from __future__ import annotations

import csv
import functools
import json
import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pydantic import InstanceOf

from psychometrics.checks import check_kinds
from psychometrics.data import with_formulas, write_csv
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.formats import number
from psychometrics.paths import book_dir

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROLE = re.compile(r"\{num\}`([^`]+)`")
_ADDRESS = re.compile(r"(?:([\w-]+)/)?((?:tab|fig)-[\w-]+)\[(.+)\]", re.DOTALL)
_PAGE = 7.5  # inches of a page's width; wider figures are shrunk
_NAME = re.compile(r"(tab|fig)-[a-z0-9-]+")


@dataclass
class _Run:
    """The run of this process, with the folder to which it writes its tables and figures."""

    folder: Path = Path("runs/tables")


_RUN = _Run()


def write_to(folder: str | Path) -> None:
    """Set the folder for all tables and figures that this process shows from now on.

    Parameters
    ----------
    folder : str or Path
        The folder of a run, named after its chapter; by default ``runs/tables``. The first table
        creates the folder.
    """
    _RUN.folder = Path(folder)


def _own_folder() -> Path:
    """Return the folder to which this process writes its tables and figures."""
    return _RUN.folder


def _kernel_arguments(folder: Path) -> list[str]:
    """Return the arguments that make a notebook's kernel write its tables to a folder.

    Examples
    --------
    >>> _kernel_arguments(Path("runs"))[0].startswith("--IPKernelApp.exec_lines=")
    True
    """
    # Libraries create a million objects while they are imported, and all of these stay in use:
    # garbage is collected less often. There is no assignment, which would be in the namespace.
    line = f"__import__({__name__!r}, fromlist=['write_to']).write_to({str(folder)!r})"
    return [f"--IPKernelApp.exec_lines=__import__('gc').set_threshold(10_000); {line}"]


def table(
    frame: pd.DataFrame,
    name: str,
    caption: str,
    formats: dict[str, str] | None = None,
    rests_on: str = "",
) -> None:
    """Show a table and write it to the folder of the run.

    Parameters
    ----------
    frame : DataFrame
        A table of raw numbers and words, whose index has the labels of the rows. A default index is
        left out. Two levels of columns, such as a group and ``value``, ``low`` or ``high``, become
        one, in which the value has the name of its group.
    name : str
        A name that begins with ``tab-``, unique in the book.
    caption : str
        Caption in MyST.
    formats : dict, optional
        Format specifications by column, with ``"p"`` for p values; the key ``""`` applies to all
        other columns of numbers (by default ``"d"`` for whole numbers and ``".2f"`` for other
        numbers).
    rests_on : str
        Texts that the numbers depend on and that are not shipped, such as ``"HurtLex"``; empty if
        there are no such texts. The caption should name them, too.

    Raises
    ------
    ParameterError
        The name does not begin with ``tab-``, or a format names a column that does not exist.

    Examples
    --------
    >>> frame = pd.DataFrame({"auc": [0.734]}, index=pd.Index(["silhouette"], name="evidence"))
    >>> table(frame, "power", "Area under the curve.")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: power: the name of a table must be like tab-power.
    """
    from IPython.display import display

    kinds = {"name": str, "caption": str, "formats": dict | None, "rests_on": str}
    check_kinds(locals(), {"frame": InstanceOf[pd.DataFrame], **kinds})
    path = _write(frame, name, "tab")
    note = external_texts_file(path)
    note.unlink(missing_ok=True)

    if rests_on:
        note.write_text(f"{rests_on}\n", encoding="utf-8")

    formatted = {"text/html": _html(frame, formats or {}), "text/plain": frame.to_string()}
    display(formatted, raw=True, metadata={"record": {"name": name, "caption": caption}})


def figure(fig: Figure, frame: pd.DataFrame, name: str, caption: str, alt: str) -> None:
    """Show a figure and write its data to the folder of the run.

    Parameters
    ----------
    fig : Figure
        The figure, which is closed afterwards.
    frame : DataFrame
        The data in the figure.
    name : str
        A name that begins with ``fig-``, unique in the book.
    caption, alt : str
        The caption in MyST, and a description for readers who cannot see the figure.

    Raises
    ------
    ParameterError
        The name does not begin with ``fig-``.
    """
    import matplotlib.pyplot as plt
    from IPython.display import display

    _write(frame, name, "fig")
    record = {"name": name, "caption": caption, "alt": alt, "smallest_label": _smallest_label(fig)}
    display(fig, metadata={"record": record})
    plt.close(fig)


def _smallest_label(fig: Figure) -> float:
    """Return the size of the smallest text, in points, after shrinking the figure to a page."""
    from matplotlib.text import Text

    fig.draw_without_rendering()
    shrunk = min(1.0, _PAGE / (fig.get_tightbbox().width + 0.2))  # including padding
    texts = (t for t in fig.findobj(Text) if t.get_text().strip() and t.get_visible())
    sizes = [t.get_fontsize() for t in texts if t.axes is None or t.axes.axison]
    return round(float(shrunk * min(sizes, default=math.inf)), 2)


def read(name: str, runs: str | Path = "book") -> pd.DataFrame:
    """Return a table that an executed chapter has shown.

    Parameters
    ----------
    name : str
        The table's address, such as ``"04/tab-power"``.
    runs : str or Path
        The folder of executed chapters; ``"book"`` is the folder into which ``psychometrics book``
        writes them.

    Returns
    -------
    DataFrame
        The table, whose first column is the index.

    Raises
    ------
    DataError
        The chapter was not executed, or does not show this table.

    Examples
    --------
    >>> read("04/tab-power", "a-folder-without-runs")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: 04/tab-power: chapter 04 was not executed; run it.
    """
    chapter, _, table_name = name.partition("/")
    folder = book_dir() / "chapters" if runs == "book" else Path(runs)
    return with_formulas(pd.read_csv(_path(name, chapter, table_name, folder), index_col=0))


def cell(address: str, runs: Path, chapter: str = "") -> object:
    """Return the value of one cell.

    Parameters
    ----------
    address : str
        The cell's address, such as ``"04/tab-power[silhouette, auc]"``.
    runs : Path
        The folder that contains a folder of CSV files for each executed chapter.
    chapter : str
        The chapter to use if the address does not name a chapter.

    Returns
    -------
    float or str

    Raises
    ------
    DataError
        The table, row or column does not exist.

    Examples
    --------
    >>> cell("04/tab-power[silhouette, auc]", Path("a-folder-without-runs"))
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: 04/tab-power[silhouette, auc]: chapter 04 was not ...
    """
    row, column = _find_row(address, runs, chapter)
    return row[column]


def with_interval(address: str, runs: Path, chapter: str = "") -> dict[str, object]:
    """Return a cell as ``value``, with ``low, high, null, null_low, null_high`` of its row.

    ``p_of_the_claim`` is the p value of a test against the bar of a claim, if the row has such a
    value.

    All values but the first come from columns with these names (``null low`` for ``null_low``), or
    with these names after the name of the cell's column, such as ``auc low``. A missing cell gives
    a missing value.
    """
    row, column = _find_row(address, runs, chapter)
    values = {"value": row[column]}
    for name in ("low", "high", "null", "null_low", "null_high", "p_of_the_claim"):
        words = name.replace("_", " ")
        stem = column.rpartition(" ")[0]  # "less neutral mean" has the end "less neutral low"
        names_near = (f"{column} {words}", f"{stem} {words}", words, name)
        labels = [label for label in names_near if label in row]
        values[name] = row[labels[0]] if labels else math.nan
    return values


def _match_stars(address: str, runs: Path, chapter: str = "") -> list[list[str]]:
    """Return the labels that an address's stars stand for, for each row that it matches.

    Examples
    --------
    >>> _match_stars("04/tab-power[*, auc]", Path("a-folder-without-runs"))
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: 04/tab-power[*, auc]: chapter 04 was not executed; run it.
    """
    chapter, name, labels = _parts(address, chapter)
    path = _path(address, chapter, name, runs)
    _, rows = _read(path, path.stat().st_mtime_ns)
    paired = [list(zip(labels[:-1], row, strict=False)) for row in rows]
    return [
        [value for label, value in pairs if label == "*"]
        for pairs in paired
        if all(label in ("*", value) for label, value in pairs)
    ]


def printed(text: str, runs: Path, chapter: str = "") -> str:
    """Format a number for the role ``num``, given a cell's address and optionally a format.

    The format follows ``:`` and is one of Python's formats, ``p`` for a p value, or ``.2f ci`` for
    a value with its interval.
    """
    address, mark, form = text.partition("]:")
    if mark:
        address += "]"

    if form.endswith("ci"):
        values = with_interval(address, runs, chapter)
        ends = [number(values[key], form[:-2].strip()) for key in ("value", "low", "high")]
        return f"{ends[0]} ({ends[1]} to {ends[2]})"
    return number(cell(address, runs, chapter), form)


def shown(notebook: Path) -> list[dict]:
    """Return ``name``, ``caption`` and ``alt`` of an executed notebook's outputs, in order."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    outputs = (output for entry in cells for output in entry.get("outputs", []))
    return [o["metadata"]["record"] for o in outputs if "record" in o.get("metadata", {})]


def _mistakes(chapter: str, runs: Path) -> list[str]:
    """Return the mistakes in numbers of an executed chapter's prose, one sentence for each."""
    path = runs / f"{chapter}.ipynb"
    names = [record["name"] for record in shown(path)]
    mistakes = [f"{chapter}: {n} is shown twice." for n in sorted({*names}) if names.count(n) > 1]

    for entry in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(entry["source"]) if entry["cell_type"] == "markdown" else ""
        for match in ROLE.finditer(text):
            try:
                printed(match[1], runs, chapter)
            except (DataError, ValueError) as error:
                mistakes.append(f"{chapter}, {match[0]}: {error}")

    return mistakes


def external_texts_file(path: Path) -> Path:
    """Return the path of the file that names the external texts behind a table's CSV file.

    Examples
    --------
    >>> external_texts_file(Path("04/tab-power.csv")).name
    'tab-power.rests-on.txt'
    """
    return path.with_suffix(".rests-on.txt")


def _write(frame: pd.DataFrame, name: str, kind: str) -> Path:
    """Write the numbers of a table or figure; return the path of the CSV file."""
    if not _NAME.fullmatch(name) or not name.startswith(kind):
        thing = "table" if kind == "tab" else "figure"
        raise ParameterError(f"{name}: the name of a {thing} must be like {kind}-power.")
    _RUN.folder.mkdir(parents=True, exist_ok=True)
    flat = frame.set_axis([_flat(column) for column in frame], axis=1)
    path = _RUN.folder / f"{name}.csv"
    write_csv(flat, path, index=not _is_default(frame.index))
    return path


def _is_default(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.name is None


def _flat(column: object) -> str:
    if isinstance(column, tuple):
        return " ".join(map(str, column)).removesuffix(" value")
    return str(column)


def _html(frame: pd.DataFrame, formats: dict[str, str]) -> str:
    flat = frame.set_axis([_flat(column) for column in frame], axis=1).infer_objects()
    for name in [one for one in flat if pd.api.types.is_object_dtype(flat[one])]:  # with gaps
        numbers = pd.to_numeric(flat[name], errors="coerce")
        if flat[name].isna().equals(numbers.isna()):
            flat[name] = numbers

    strange = [name for name in formats if name and name not in flat]
    if strange:
        raise ParameterError(f"The table has no column '{strange[0]}' to format; correct formats.")

    words = pd.DataFrame(index=flat.index)
    last = ""
    for name in flat:
        before, mark, tail = name.rpartition("low")
        is_low_end = bool(mark) and not tail
        high = f"{before}high"
        default_form = formats.get(before.strip(), formats.get(last, formats.get("")))
        form = formats.get(name, default_form)

        if is_low_end and high in flat:
            ends = zip(_format(flat[name], form), _format(flat[high], form), strict=True)
            title = f"{before}95 % interval" if f"{before}95 % interval" not in words else name
            words[title] = ["" if low in ("", "–") else f"{low} to {up}" for low, up in ends]
        elif not (name.endswith("high") and f"{name.removesuffix('high')}low" in flat):
            words[name], last = _format(flat[name], formats.get(name, formats.get(""))), name

    words.columns = [column.replace("_", " ") for column in words]
    words.index.names = [name and str(name).replace("_", " ") for name in words.index.names]
    words = words.rename(index=_escape, columns=_escape).rename_axis(index=_escape)
    # left-align columns of words
    words_columns = {name for name in flat if not pd.api.types.is_numeric_dtype(flat[name])}
    html = words.map(_link_address).to_html(
        escape=False, border=0, index=not _is_default(frame.index), na_rep=""
    )

    if words_columns:
        html = html.replace('class="dataframe"', 'class="dataframe words"')
    return html


def _format(column: pd.Series, form: str | None) -> list[str]:
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return ["" if value is None or value != value else str(value) for value in column]
    is_whole = (column.dropna() % 1 == 0).all()
    form = form or ("d" if is_whole else ".2f")
    return ["" if math.isnan(value) else number(value, form) for value in column.astype(float)]


def _escape(label: object) -> object:
    return escape(label) if isinstance(label, str) else label


def _link_address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or not match[1]:
        return escape(text)
    return f'<a class="cell" href="{match[1]}.html#{match[2]}">{escape(match[1])}</a>'


def _find_row(address: str, runs: Path, chapter: str) -> tuple[dict[str, object], str]:
    """Return the row to which an address refers, by column, and the column."""
    where, name, labels = _parts(address, chapter)
    path = _path(address, where, name, runs)
    head, rows = _read(path, path.stat().st_mtime_ns)
    if len(labels) > 1 and labels[-1] in head:
        column = labels.pop()
    elif "value" in head:
        column = "value"
    else:
        column = head[-1] if len(head) == len(labels) + 1 else None

    if column is None:
        raise DataError(f"{address}: {name} has no column '{labels[-1]}', only {head}.")

    if re.fullmatch(r"#-?\d+", labels[0]):
        place = int(labels[0][1:])  # from 1, or from the end
        index = place - 1 if place > 0 else len(rows) + place
        matches = [row for at, row in enumerate(rows) if at == index]
    else:
        matches = [row for row in rows if row[: len(labels)] == labels]

    if len(matches) != 1:
        raise DataError(f"{address}: {name} has {len(matches)} rows {', '.join(labels)}, not one.")
    return dict(zip(head, map(_parse_cell, matches[0]), strict=True)), column


def _parts(address: str, chapter: str) -> tuple[str, str, list[str]]:
    """Return the chapter, the table and the labels of an address."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        raise DataError(f"{address}: not an address; write it like 04/tab-power[silhouette, auc].")

    labels = next(csv.reader([match[3]], skipinitialspace=True))
    return match[1] or chapter, match[2], [label.strip() for label in labels]


def _path(address: str, chapter: str, name: str, runs: Path) -> Path:
    folders = sorted(path for path in runs.glob(f"{chapter}*") if path.is_dir())
    if chapter and (runs / chapter).is_dir():  # another run's name may begin with this one's
        folders = [runs / chapter]
    if not chapter or not folders:
        raise DataError(f"{address}: chapter {chapter} was not executed; run it.")
    path = folders[0] / f"{name}.csv"
    if not path.is_file():
        raise DataError(f"{address}: {folders[0].name} shows no {name}; correct the name.")
    return path


@functools.lru_cache(256)
def _read(path: Path, _changed: int) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head, rows


def _parse_cell(text: str) -> float | str:
    try:
        return float(text) if text else math.nan
    except ValueError:
        return text
