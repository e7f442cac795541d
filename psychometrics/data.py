"""External data: files that belong to others, fetched on demand, checked and never shipped."""

from __future__ import annotations

import codecs
import csv
import functools
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from .exceptions import DataError, ParameterError
from .files import known_sha256
from .paths import cache_dir, data_dir

if TYPE_CHECKING:
    import pandas as pd

_MIRROR = "PSYCHOMETRICS_DATA_MIRROR"
_LARGEST = 64 << 20  # bytes of a user's table
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
        found = known_sha256(path)
    except DataError:  # DataError is an OSError
        raise
    except OSError as error:
        place = f"{error.filename or path} cannot be read or written ({error.strerror})"
        raise DataError(f"{place}: correct its permissions, or replace the file.") from None

    if found != registry()[key]["sha256"]:
        raise DataError(f"{path}: wrong checksum (data/registry.yml, '{key}'); replace the file.")
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
    known = checksums().get(os.path.relpath(path, data_dir()))
    if known and path.is_file() and known_sha256(path) != known:
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


def text_table(path: str | Path, needed: Sequence[str] = ()) -> pd.DataFrame:
    """Read a user's table as text, in the formats in which spreadsheets save tables.

    Parameters
    ----------
    path : str or Path
        A file with a line of headers; values are separated by commas or semicolons (whichever the
        headers contain more often), or by tabs in ``.tsv`` and ``.tab`` files, where an unpaired
        quotation mark is an ordinary character. The encoding is UTF-8, UTF-16 with a byte order
        mark, or Windows-1252.
    needed : sequence of str
        Required columns.

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
        A line has more values than the headers (an unquoted comma), a header is missing or occurs
        twice, or the file is too large (64 MB).

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = file.write_bytes("item;scale\\nIch bin müde;\\n".encode("cp1252"))
    >>> text_table(file, ["item"]).to_dict("records")
    [{'item': 'Ich bin müde', 'scale': ''}]
    """
    import pandas as pd

    if not isinstance(path, str | Path):
        raise ParameterError(f"A table must be a file or a frame, got {type(path).__name__}.")
    path = Path(path).expanduser()
    text = _text_of(path)
    tabs = path.suffix.lower() in (".tsv", ".tab")
    comma = "\t" if tabs else max(",;\t", key=text.lstrip().partition("\n")[0].count)

    try:
        names, rows, lines = _cells(text, path, comma, csv.QUOTE_MINIMAL)
    except ParameterError:
        if not tabs:
            raise
        names, rows, lines = _cells(text, path, comma, csv.QUOTE_NONE)

    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ParameterError(f"{path} has the column '{twice[0]}' twice: keep one.")

    missing = [name for name in needed if name not in names]
    if missing:
        has = ", ".join(names) or "none"
        raise ParameterError(f"{path} has no column '{missing[0]}'; it has {has}.")

    table = pd.DataFrame(rows, columns=names, dtype=str)
    table.attrs["lines"] = lines
    return table


def _cells(
    text: str, path: Path, comma: str, quoting: Literal[0, 3]
) -> tuple[list[str], list[Any], list[int]]:
    """Return a table's headers, its rows (padded to the headers' length), and the rows' lines."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=comma, quoting=quoting, strict=True
    )
    names: list[str] = []
    rows = []
    lines = []
    end = 0

    try:
        for row in reader:
            line = end + 1
            end = reader.line_num
            if not any(map(str.strip, row)):
                continue

            if not names:
                names = [name.strip() for name in row]
            elif len(row) > len(names):
                what = f"{len(row)} values for {len(names)} columns"
                mend = f"put a value that contains '{comma}' into quotation marks"
                raise ParameterError(f"{path}, line {reader.line_num}: {what}; {mend}.")
            else:
                rows.append(row + [""] * (len(names) - len(row)))
                lines.append(line)
    except csv.Error as error:
        raise ParameterError(
            f"{path}, line {reader.line_num}, cannot be parsed ({error}): correct the line."
        ) from None

    return names, rows, lines


def _text_of(path: Path) -> str:
    try:
        if not path.is_file():
            raise DataError(f"{path} is not a file: name a table.")
        if path.stat().st_size > _LARGEST:
            raise ParameterError(f"{path} is larger than {_LARGEST >> 20} MB: split the table.")

        raw = path.read_bytes()
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): name another file.") from None

    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue

        if "\0" not in text:  # found in damaged files and binary formats
            return text

    raise ParameterError(f"{path} is not text: save it as CSV in UTF-8.")


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
    known = f"sha256:{registry()[key]['sha256']}"

    try:
        return Path(pooch.retrieve(url, known_hash=known, fname=target.name, path=target.parent))
    except PermissionError:
        raise
    except ValueError:  # pooch's error for a wrong checksum
        raise DataError(f"{url}: wrong checksum (data/registry.yml); set {_MIRROR}.") from None
    except OSError as error:
        raise DataError(
            f"'{key}' could not be downloaded from {url} ({type(error).__name__}); connect to the "
            f"network, or set {_MIRROR} to a folder that contains {relative}."
        ) from error
