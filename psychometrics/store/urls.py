"""Open the location of a store, a local folder or a URL, as a pyarrow file system."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from ..exceptions import StoreError
from ..paths import cache_dir

_LOCAL = fs.LocalFileSystem()
_MISSING = fs.FileType.NotFound
# Errors that file systems raise.
_ERRORS = (OSError, ValueError, pa.ArrowException)


def _store_url(store: str | Path | None) -> str:
    """Return the URL or absolute path of a store, by default of the configured store."""
    if store is None:
        store = os.environ.get("PSYCHOMETRICS_STORE") or cache_dir() / "responses"
    text = os.fspath(store)
    if not text.strip() or "://" in text:
        return text
    return Path(text).expanduser().absolute().as_posix()


def _open_store(store: str | Path | None) -> tuple[fs.FileSystem, str]:
    """Return the file system of a store, and the store's path in it, which may not exist yet."""
    # the place to correct: the argument or the configuration
    setting = "PSYCHOMETRICS_STORE" if store is None else "store (--store)"

    try:
        text = _store_url(store)
        _check_name(text, setting)
        system, root = _open_url(text) if "://" in text else (_LOCAL, text)
        kind = system.get_file_info(root).type
    except StoreError:
        raise
    except (*_ERRORS, RuntimeError, TypeError, ImportError) as error:
        named = os.environ.get("PSYCHOMETRICS_STORE") if store is None else store
        problem = f"{named!r} cannot be opened as a store ({reason(error)})"
        # a URL may contain a key and its secret
        problem = re.sub(r"//[^/@\s]*@", "//", problem)
        problem = re.sub(r"(?i)((?:secret|key|token|password)[\w-]*=)[^&'\s]+", r"\1...", problem)
        raise StoreError(
            f"{problem}: name a folder, or a URL that pyarrow or fsspec opens, in {setting}."
        ) from None

    occupied = root if kind in (fs.FileType.File, fs.FileType.Unknown) else ""
    if system.type_name == "local" and kind == _MISSING:
        places = Path(root), *Path(root).parents
        nearest = next(filter(os.path.lexists, places), Path())
        occupied = "" if nearest.is_dir() else str(nearest)

    if occupied:
        raise StoreError(f"{occupied} is a file, not a store: name another folder in {setting}.")

    return system, root.rstrip("/")


def _check_name(text: str, setting: str) -> None:
    """Refuse the name of a store that does not name a folder."""
    if not text.strip():
        raise StoreError(f"The store's name is empty: name a folder in {setting}.")
    if re.match("file://(?!(localhost)?/.)|(s3|gs|abfs)://$", text):
        raise StoreError(
            f"{text} is not a folder: name one, like file:///folder or s3://bucket/x, in {setting}."
        )


@functools.cache  # connect only once
def _open_url(url: str) -> tuple[fs.FileSystem, str]:
    if url.startswith("s3://") and "allow_delayed_open" not in url:
        # A part is sent in one request, not three: it can be repeated if no reply comes.
        url += ("&" if "?" in url else "?") + "allow_delayed_open=true"

    if url.startswith("gs://") and "retry_limit_seconds" not in url:
        url += ("&" if "?" in url else "?") + "retry_limit_seconds=10"  # the default is 15 minutes

    try:
        system, path = fs.FileSystem.from_uri(url)
    except (ValueError, NotImplementedError):
        import fsspec

        opened, path = fsspec.core.url_to_fs(url)
        system = fs.PyFileSystem(fs.FSSpecHandler(opened))

    return system, path


@contextlib.contextmanager
def _explain_errors(what: str) -> Iterator[None]:
    """Turn an error of the disk into one sentence with its remedy."""
    try:
        yield
    except StoreError:
        raise
    except _ERRORS as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise StoreError(
            f"{what} ({reason(error)}): {'free some space' if full else 'give access to it'}, or "
            "name another folder in --store or PSYCHOMETRICS_STORE; earlier answers are "
            "still stored."
        ) from error


def reason(error: Exception) -> str:
    """Return the reason for a failure of the disk or the network, on one line."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else " ".join(str(error).split())
