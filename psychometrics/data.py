"""External data: files that belong to others, fetched on demand, checked and never shipped."""

from __future__ import annotations

import codecs
import csv
import functools
import io
import os
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import yaml

from .exceptions import DataError, ParameterError, writing
from .files import known_sha256, replacing
from .paths import cache_dir, data_dir

if TYPE_CHECKING:
    import pandas as pd

_MIRROR = "PSYCHOMETRICS_DATA_MIRROR"
_LARGEST = 64 << 20  # bytes of a user's table, unpacked
_MOST_CELLS = 5_000_000  # cells of a user's table, which are read in about 20 seconds
_BEGINNING = 1 << 18  # characters in which a table's separator is found
_DECLARED = re.compile(r'"?sep=(.)"?[,;\t ]*\r?(?:\n|$)', re.IGNORECASE)
_QUOTED = re.compile(r'(?:(?<=[,;\t\n])|\A)"(?:[^"]|"")*"')
# A text that a spreadsheet evaluates, or such a text with the ' that write_csv puts before it.
_FORMULA = re.compile(r"'*[=+@\t\r-]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+|inf)(?:e[+-]?\d+)?%?", re.IGNORECASE)
NLI_LABELS = ("entailment", "neutral", "contradiction")


@functools.cache
def registry() -> dict[str, dict[str, str]]:
    """Read ``data/registry.yml``: repository, commit, path, sha256 and licence by key."""
    entries: dict[str, dict[str, str]] = yaml.safe_load(
        (data_dir() / "registry.yml").read_text(encoding="utf-8")
    )
    return entries


def fetch(key: str) -> Path:
    """Return the local path of an external file, which is downloaded if necessary.

    Parameters
    ----------
    key : str
        A key of ``data/registry.yml``.

    Returns
    -------
    Path
        A file whose SHA-256 is the one in the registry.

    Raises
    ------
    DataError
        The key is unknown, the file cannot be fetched, or its checksum differs.

    Examples
    --------
    >>> try:
    ...     fetch("weather")
    ... except DataError as error:
    ...     print(str(error)[:41])
    data/registry.yml has no entry 'weather';
    """
    relative = _relative(key)
    mirror = os.environ.get(_MIRROR)
    path = Path(mirror or "") / relative

    try:
        if not mirror or not path.is_file():
            return _download(key, relative)
        digest = known_sha256(path)
    except DataError:  # DataError is an OSError
        raise
    except OSError as error:
        place = f"{error.filename or path} cannot be read or written ({error.strerror})"
        raise DataError(f"{place}: delete it, or give yourself access to it, and repeat.") from None

    if digest != registry()[key]["sha256"]:
        raise DataError(
            f"{path}: wrong checksum (data/registry.yml, '{key}'); delete the file and repeat the "
            "command, which downloads it."
        )
    return path


def available(*keys: str) -> bool:
    """Return whether files are in the mirror or the cache, so that no download is needed."""
    roots = [cache_dir() / "external"]
    mirror = os.environ.get(_MIRROR)
    if mirror:
        roots.append(Path(mirror))

    return all(any((root / _relative(key)).is_file() for root in roots) for key in keys)


def shipped(path: str | Path) -> Path:
    """Return the path of a file in ``data/`` after checking its bytes against ``data/SHA256SUMS``.

    Parameters
    ----------
    path : str or Path
        A path within ``data/``. A file that ``data/SHA256SUMS`` does not list is not checked.

    Raises
    ------
    DataError
        The file differs from the shipped file.

    Examples
    --------
    >>> shipped("nulls.parquet").name
    'nulls.parquet'
    """
    path = data_dir() / str(path)
    digest = checksums().get(os.path.relpath(path, data_dir()))
    if digest and path.is_file() and known_sha256(path) != digest:
        raise DataError(
            f"{path} is not the file that was shipped (data/SHA256SUMS): install the package or "
            "check the file out again; if you rebuilt it, run `make sums`."
        )
    return path


@functools.cache
def checksums() -> dict[str, str]:
    """Return the SHA-256 of shipped files by their paths in ``data/``.

    Examples
    --------
    >>> len(checksums()["nulls.parquet"])
    64
    """
    path = data_dir() / "SHA256SUMS"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def text_table(
    path: str | Path, needed: Sequence[str] = (), notes: list[str] | None = None
) -> pd.DataFrame:
    """Read a user's table as text, in the formats in which spreadsheets save tables.

    Parameters
    ----------
    path : str or Path
        A file with a line of headers; values are separated by commas, semicolons or tabs (whichever
        splits the lines alike, outside quotation marks), by the sign that a first line such as
        ``sep=;`` declares, or by tabs in ``.tsv`` and ``.tab`` files, where an unpaired quotation
        mark is an ordinary character. Lines of a title above the headers, and columns with neither
        a header nor a value, are left out. The encoding is UTF-8, UTF-16 with a byte order mark, or
        Windows-1252.
    needed : sequence of str
        Required columns.
    notes : list of str, optional
        A list to which decisions are added that may be wrong, such as the encoding; by default they
        are warnings.

    Returns
    -------
    DataFrame
        One row per non-empty line; values that are missing at the end of a line are empty.
        ``attrs["lines"]`` has the line numbers in the file.

    Raises
    ------
    DataError
        The file cannot be read.
    ParameterError
        A line has more values than the headers (an unquoted comma), the separator is ambiguous, a
        header is missing or occurs twice, or the file is too large (64 MB or 5 million cells).

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = file.write_bytes("Our items\\nitem;scale\\nI am tired, often;s\\n".encode())
    >>> text_table(file, ["item"], notes=[]).to_dict("records")
    [{'item': 'I am tired, often', 'scale': 's'}]
    """
    if not isinstance(path, str | Path):
        raise ParameterError(f"A table must be a file or a frame, got {type(path).__name__}.")
    path = Path(os.path.expanduser(path))  # which leaves ~nobody as it is
    decisions: list[str] = []
    text = read_text(path, decisions)
    is_tabbed = path.suffix.lower() in (".tsv", ".tab")
    declared = _DECLARED.match(text)
    if declared:  # Excel's own first line
        separator = declared[1]
        text = "\n" + text[declared.end() :]  # keeps the numbers of the lines
    else:
        separator = "\t" if is_tabbed else _find_separator(text, path)

    try:
        table, top = _cells(text, path, separator, csv.QUOTE_MINIMAL)
    except ParameterError:
        if not is_tabbed:
            raise
        table, top = _cells(text, path, separator, csv.QUOTE_NONE)

    if top:
        decisions.append(f"{top} line{'s' * (top > 1)} above the headers left out")
    names = table.columns
    twice = names[names.duplicated()]
    if twice.size:
        raise ParameterError(f"{path} has the column '{twice[0]}' twice: keep one.")

    missing = [name for name in needed if name not in names]
    if missing:
        has = "; ".join([", ".join(names) or "none", *decisions])
        raise ParameterError(f"{path} has no column '{missing[0]}'; it has {has}.")

    if notes is None:
        for decision in decisions:
            warnings.warn(f"{path}: {decision}.", stacklevel=2)
    else:
        notes += decisions
    return table


def write_csv(
    table: pd.DataFrame, target: Path | TextIO, index: bool = False, decimals: int | None = None
) -> None:
    """Write a table as CSV, with a ' before each text that a spreadsheet would evaluate.

    Parameters
    ----------
    table : DataFrame
    target : Path or file
        A file's path (the file is replaced only once the table is complete), or an open file.
    index : bool
        Whether to write the index, too.
    decimals : int, optional
        Number of decimals of all numbers that are not whole.

    Raises
    ------
    ParameterError
        The file cannot be written.

    Examples
    --------
    >>> import sys
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"respondent_id": ["=1+1", "-1"], "value": [-1, 2]})
    >>> write_csv(frame, sys.stdout)
    respondent_id,value
    '=1+1,-1
    -1,2
    """
    from pandas.api.types import is_numeric_dtype

    safe = table.apply(
        lambda column: column if is_numeric_dtype(column.dtype) else column.map(_without_formula)
    )
    safe = safe.rename(columns=_without_formula, index=_without_formula)
    safe = safe.rename_axis(index=_without_formula)

    form = None if decimals is None else f"%.{decimals}f"
    if not isinstance(target, Path):
        safe.to_csv(target, index=index, float_format=form)
        return

    with writing(target), replacing(target) as temporary:
        safe.to_csv(temporary, index=index, float_format=form)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8; on failure the old file is unchanged.

    Parameters
    ----------
    path : Path
    text : str

    Raises
    ------
    ParameterError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_text(path, "müde")
    >>> path.read_text(encoding="utf-8")
    'müde'
    """
    with writing(path), replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def with_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Remove the ' that :func:`write_csv` puts before texts.

    Examples
    --------
    >>> import pandas as pd
    >>> with_formulas(pd.DataFrame({"respondent_id": ["'=1+1", "it's"]}))["respondent_id"].tolist()
    ['=1+1', "it's"]
    """

    def restore(cell: object) -> object:
        if isinstance(cell, str) and cell[:1] == "'" and _FORMULA.match(cell):
            return cell[1:]
        return cell

    return table.map(restore).rename(columns=restore, index=restore)


def split_headers(rows: Sequence[Sequence[Any]]) -> tuple[int, pd.DataFrame]:
    """Split the rows of a sheet into a title, headers and the rows below them.

    The headers are the first row with more than half as many cells as the fullest row has; a title
    has fewer. A column with neither a header nor a cell is left out; a column with cells alone is
    called *column 3*.

    Parameters
    ----------
    rows : sequence of sequences
        All cells of the sheet; empty cells are ``""``, None or NaN.

    Returns
    -------
    int
        The number of rows above the headers.
    DataFrame
        The rows below the headers.

    Examples
    --------
    >>> split_headers([["A survey", "", ""], ["id", "E1", ""], ["a", 3, ""]])
    (1,   id  E1
    0  a   3)
    """
    import pandas as pd

    filled = [len(row) - sum(map(_is_empty, row)) for row in rows]
    most = max(filled, default=0)
    top = next((number for number, count in enumerate(filled) if 2 * count > most), 0)
    width = max(map(len, rows), default=0)
    cells = [[*row, *[""] * (width - len(row))] for row in rows[top:]] or [[]]

    names = {}
    for number, header in enumerate(cells[0]):
        if not _is_empty(header):
            names[number] = header.strip() if isinstance(header, str) else header
        elif not all(_is_empty(row[number]) for row in cells[1:]):
            names[number] = f"column {number + 1}"

    table = pd.DataFrame(cells[1:], columns=range(width), dtype=object)[list(names)]
    return top, table.set_axis(list(names.values()), axis=1)


def read_text(path: Path, notes: list[str]) -> str:
    """Read a user's file as text.

    Parameters
    ----------
    path : Path
        A file in UTF-8, in UTF-16 with a byte order mark, or in Windows-1252.
    notes : list of str
        A list to which a note is added if the encoding is doubtful.

    Raises
    ------
    DataError
        The file cannot be read.
    ParameterError
        The file is too large, or is not text.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_bytes("müde".encode("cp1252"))
    >>> notes = []
    >>> read_text(file, notes), notes[0][:22]
    ('müde', 'read as Windows-1252, ')
    """
    check_size(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): name another file.") from None

    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue

        if "\0" in text:  # found in damaged files and binary formats
            break
        if encoding == "cp1252":
            doubt = "since it is not UTF-8: check the letters with accents, or save it as UTF-8"
            notes.append(f"read as Windows-1252, {doubt}")
        return text

    raise ParameterError(f"{path} is not text: save it as CSV in UTF-8.")


def check_size(path: Path) -> None:
    """Refuse a user's file that is missing or too large, before it is read.

    Raises
    ------
    DataError
        The file cannot be read.
    ParameterError
        The file, or what a zipped file contains, is larger than 64 MB.

    Examples
    --------
    >>> check_size(Path("no-such.csv"))
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: no-such.csv is not a file: name a table.
    """
    try:
        if not path.is_file():
            raise DataError(f"{path} is not a file: name a table.")
        size = path.stat().st_size
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): name another file.") from None
    except zipfile.BadZipFile:
        raise DataError(f"{path} cannot be read (a damaged archive): save it again.") from None

    if size > _LARGEST:
        raise ParameterError(f"{path} is larger than {_LARGEST >> 20} MB: split the table.")


def check_cells(place: object, rows: int, columns: int) -> None:
    """Refuse a table with too many cells, before it is built in memory.

    Raises
    ------
    ParameterError

    Examples
    --------
    >>> check_cells("far.xlsx", 1_048_576, 16_384)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: far.xlsx: has 1,048,576 rows and 16,384 columns, ...
    """
    if rows * columns > _MOST_CELLS:
        raise ParameterError(
            f"{place}: has {rows:,} rows and {columns:,} columns, more than {_MOST_CELLS:,} cells; "
            "split the table, or delete stray cells far from it."
        )


def _find_separator(text: str, path: Path) -> str:
    """Return the separator that the most lines have equally often, outside quotation marks."""
    beginning = text[:_BEGINNING]
    if len(text) > _BEGINNING:  # without the line that was cut
        beginning = beginning.rpartition("\n")[0]
    lines = [line for line in _QUOTED.sub("", beginning).split("\n") if line.strip(" \r")]

    agreement = {}
    for separator in ",;\t":
        counts = Counter(line.count(separator) for line in lines)
        usual = max(counts, key=counts.__getitem__, default=0)
        agreement[separator] = (counts[usual], usual) if usual else (0, 0)

    best = max(agreement.values())
    equal = [separator for separator, value in agreement.items() if value == best]
    if len(equal) > 1 and best != (0, 0):
        raise ParameterError(
            f"{path}: {equal[0]!r} or {equal[1]!r} may separate the values; begin the file with a "
            "line such as sep=; or put values that contain one of them into quotation marks."
        )
    return equal[0]


def _cells(
    text: str, path: Path, separator: str, quoting: Literal[0, 3]
) -> tuple[pd.DataFrame, int]:
    """Return a table with the numbers of its rows' lines, and the number of lines above it."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, quoting=quoting, strict=True
    )
    rows: list[list[str]] = []
    lines = []
    end = 0

    try:
        for row in reader:
            line = end + 1
            end = reader.line_num
            if any(map(str.strip, row)):
                rows.append(row)
                lines.append(line)
    except csv.Error as error:
        raise ParameterError(
            f"{path}, line {reader.line_num}, cannot be parsed ({error}): correct the line."
        ) from None

    check_cells(path, len(rows), max(map(len, rows), default=0))
    top, table = split_headers(rows)
    widths = [len(row) for row in rows[top:]]
    is_regular = len(widths) > 1 and len(set(widths)) == 1  # or else a long row, not a title
    start = top if is_regular else 0
    for row, line in zip(rows[start:], lines[start:], strict=True):
        columns = len(rows[start])
        if any(map(str.strip, row[columns:])):
            sizes = f"{len(row)} values for {columns} columns"
            mend = f"put a value that contains '{separator}' into quotation marks"
            raise ParameterError(f"{path}, line {line}: {sizes}; {mend}.")

    table = table.astype(str)
    table.attrs["lines"] = lines[top + 1 :]
    return table, top


def _is_empty(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


def _without_formula(cell: object) -> object:
    """Put a ' before a text that a spreadsheet would evaluate as a formula."""
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def _relative(key: str) -> str:
    """Return the path of a file relative to the top of a mirror or the cache."""
    if not isinstance(key, str) or key not in registry():
        raise DataError(f"data/registry.yml has no entry '{key}'; it has {', '.join(registry())}.")
    entry = registry()[key]
    return f"{entry['repository']}/{entry['commit']}/{entry['path']}"


def _download(key: str, relative: str) -> Path:
    import pooch

    url = f"https://raw.githubusercontent.com/{relative}".replace(" ", "%20")
    target = cache_dir() / "external" / relative
    digest = f"sha256:{registry()[key]['sha256']}"

    try:
        return Path(pooch.retrieve(url, known_hash=digest, fname=target.name, path=target.parent))
    except PermissionError:
        raise
    except ValueError:  # pooch's error for a wrong checksum
        raise DataError(
            f"{url}: wrong checksum (data/registry.yml); repeat the command; if it fails again, "
            f"save the original file as {target}."
        ) from None
    except OSError as error:
        raise DataError(
            f"'{key}' could not be downloaded from {url} ({type(error).__name__}); connect to the "
            f"network and repeat the command, or save the file from elsewhere as {target}."
        ) from error
