"""Hash files and texts, and write files so that readers never see a partial file."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHUNK = 2**22
_LONGEST = 50  # characters of a file's name in the name of its temporary file


def sha256(*files: Path) -> str:
    """Return the joint SHA-256 of files, read one after the other.

    Parameters
    ----------
    *files : Path

    Returns
    -------
    str
        The hash in hexadecimal digits.

    Examples
    --------
    >>> len(sha256(Path(__file__)))
    64
    """
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def known_sha256(*files: Path) -> str:
    """Return the SHA-256 of files as :func:`sha256` does; recompute it only if a file changes.

    Examples
    --------
    >>> known_sha256(Path(__file__)) == sha256(Path(__file__))
    True
    """
    stats = [(path, path.stat()) for path in files]
    return _known_sha256(tuple((str(path), s.st_size, s.st_mtime_ns) for path, s in stats))


def digest_text(*parts: str) -> str:
    """Return the SHA-256 of texts, joined as lines.

    Examples
    --------
    >>> digest_text("a", "b")[:8]
    '7e18f737'
    """
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Provide a temporary file that then replaces a file; on failure the old file is unchanged.

    Parameters
    ----------
    path : str or Path
        The file to replace; a link still leads to the same file, which keeps its permissions.

    Yields
    ------
    Path
        A temporary file in the same folder, with the same extension, for this process alone.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "table.csv") as part:
    ...         _ = part.write_text("a,b")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['table.csv']
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{os.getpid()}.{path.name[-_LONGEST:]}")

    try:
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@functools.lru_cache(maxsize=1024)
def _known_sha256(files: tuple[tuple[str, int, int], ...]) -> str:
    return sha256(*(Path(path) for path, _size, _modified in files))
