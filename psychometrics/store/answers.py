"""The store of answers: append-only files for each mode, questionnaire and respondent.

Each save adds one Parquet file, a *part*, to ``<store>/<mode>/<questionnaire>/<respondent>/``;
parts are never changed. The stored answers are the union of the parts, one row per key. If two rows
have the same key, the earlier one counts, by the writer's clock, which never falls behind the parts
it has read. A key is a hash of everything that determines an answer (:func:`key_of`), so an
unchanged question is never asked twice and a changed question never gets an old answer. A lock
makes processes on one machine, or with a shared folder, add answers in turn: no process replaces an
answer that another process added earlier.

A part is written under a temporary name and then renamed (on a local disk after the disk has
confirmed that it is written), or written as a whole to an object store. A killed process therefore
leaves a complete part or no part, and any number of processes and machines may write at once. The
name of a part contains the SHA-256 of its bytes: a truncated or altered part is noticed on reading
and set aside, and its questions are asked again. Each part also records the respondent, the
conditions, the version, and the time taken; :func:`manifests` lists these. A part that was copied
from a different folder is also set aside.

Every store also has the answers that the project ships in ``data/answers``, by respondents that
take minutes to ask. Their keys are made in the same way, and this folder is never changed.

A store is a local folder, or a URL that pyarrow or fsspec opens: ``file:///shared/answers``,
``s3://bucket/answers?endpoint_override=http://host:9000``, ``gs://…``, ``memory://…``. The umask
determines who may read its files; for a private store set ``umask 077`` or restrict the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout
from pyarrow import fs

from .. import __version__
from ..exceptions import StoreError
from ..paths import cache_dir, data_dir
from .folder import (
    _BOOKKEEPING,
    Folder,
    _as_table,
    _common_schema,
    _encodable_text,
    _folder_names,
    _union,
    _with_bookkeeping,
    folders,
)
from .urls import _open_store, _store_url
from .watching import _WATCH

CHUNK = 512
"""The number of questions per chunk, and the largest number between two saves."""
_SAVE_EVERY = 20.0
"""The seconds between two saves within a chunk: the most work that a killed run repeats."""
_MANY_PARTS = 64
"""The number of parts of a respondent and questionnaire above which closing merges the parts."""


def key_of(*parts: str) -> str:
    """Return the key of an answer: a hash, in 32 hexadecimal digits, of what determines it.

    Examples
    --------
    >>> key_of("fingerprint of the respondent", "I feel nervous.", "It often happens to me.")
    'b69f6cc0c3f897895372190ad5138b20'
    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    # The same text as json.dumps writes for a list, in a third of the time.
    text = f"[{', '.join(map(encode_basestring, parts))}]"
    # A lone surrogate is not valid text but still has a key.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class StoredAnswers:
    """The stored answers of one respondent to one questionnaire in one mode.

    Several threads may share one object, and several processes or machines one folder. ``key in
    answers`` and ``len(answers)`` are cheap; :attr:`rows` builds a frame after an addition, so use
    it after a run rather than after each addition. Used as a context manager, the object closes
    itself.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, or else the user's cache.
    mode, questionnaire_id, respondent_id : str
        Names that identify the answers. Any text is possible; it is made safe for a folder's name.
    manifest : mapping, optional
        The respondent and the conditions, which are stored with each part and listed by
        :func:`manifests`. The mode, both ids and the package's version are added.
    columns : list of str, optional
        The columns to read; by default all.

    Attributes
    ----------
    url : str
        The store's URL or absolute path, valid in any process of this machine.
    path : str
        The folder of these answers in the store.

    Raises
    ------
    StoreError
        The store is a file, cannot be read, or holds parts written by a newer version.

    Warns
    -----
    UserWarning
        A part is damaged, belongs to a different folder, or is not a part of a store. It is set
        aside, and its questions are asked again.

    Examples
    --------
    >>> import tempfile
    >>> store = tempfile.mkdtemp()
    >>> rows = pd.DataFrame({"probability": [0.25]}, index=pd.Index([key_of("a")], name="key"))
    >>> with StoredAnswers(store, "mlm", "gad7", "owner/model", {"dtype": "float32"}) as kept:
    ...     _ = kept.add(rows, seconds=0.5)
    >>> StoredAnswers(store, "mlm", "gad7", "owner/model").rows["probability"].tolist()
    [0.25]
    """

    def __init__(
        self,
        store: str | Path | None,
        mode: str,
        questionnaire_id: str,
        respondent_id: str,
        manifest: Mapping[str, Any] | None = None,
        columns: Iterable[str] | None = None,
    ) -> None:
        whose = {"mode": mode, "questionnaire": questionnaire_id, "respondent_id": respondent_id}
        facts = {**(manifest or {}), **whose, "package_version": __version__}
        system, root = _open_store(store)
        names = _folder_names(facts)
        below = data_dir().joinpath("answers", *names)
        self._folder = Folder(system, "/".join([root, *names]))
        self._shipped = Folder(fs.LocalFileSystem(), below.as_posix()) if below.is_dir() else None
        self.url = _store_url(store)
        self.path = self._folder.path
        self._root = root
        self._columns = None if columns is None else list(columns)
        self._manifest = facts
        self._lock = threading.RLock()
        self._read_parts: set[str] = set()
        self._tables: list[pa.Table] = []
        self._schema = pa.schema([])
        self._keys: set[str] = set()
        self._last_written = 0
        self._added = False
        self._frame: pd.DataFrame | None = None
        self._waiting: list[pd.DataFrame] = []
        self._questions = 0
        self._began = time.perf_counter()
        self._respondent_id = respondent_id
        self._watch = _WATCH.get()
        self._read()

    def describe(self, **fields: object) -> None:
        """Add fields to the manifest of the answers that are added from now on."""
        self._manifest |= fields

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def rows(self) -> pd.DataFrame:
        """The stored rows by ``key``: the row written first for each key, in the order of writing.

        After an addition, rows that other processes have added in the meantime are also read: if
        several processes asked the same question at once, all processes see the same answer, now
        and later.
        """
        with self._lock:
            self._save()
            if self._frame is None:
                self._read()
                self._frame = self._as_frame()
            return self._frame.copy(deep=False)

    @contextlib.contextmanager
    def alone(
        self, name: str = "", timeout: float = -1.0, waits: Callable[[], object] = bool
    ) -> Iterator[None]:
        """Hold a lock on these answers, in the store or else in the cache, and read them.

        Parameters
        ----------
        name : str
            Name of the lock; locks with different names are independent.
        timeout : float
            Number of seconds after which to continue without the lock; negative to wait for ever.
        waits : callable
            A function that is called once if a different process holds the lock.
        """
        here = self._folder.system.type_name == "local"
        folder = Path(self._root) / ".locks" if here else cache_dir() / "locks"
        place = self.path.removeprefix(self._root) if here else self.url + self.path
        lock = FileLock(folder / f"{key_of(place, name)}.lock")

        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # a time-out, or locks are impossible here
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    waits()
                    lock.acquire(timeout=timeout)

                held.callback(lock.release)

            self._read()
            yield

    def add(self, rows: pd.DataFrame, seconds: float = 0.0) -> list[str]:
        """Store rows as one new part, which is safely on the disk when the method returns.

        Rows with a stored key are left out. If there are no new rows, no part is written.

        Parameters
        ----------
        rows : DataFrame
            Rows indexed by ``key`` (see :func:`key_of`), with the mode's columns of plain values. A
            lone surrogate in a text cannot be written and becomes "?".
        seconds : float
            Time that the answers took, in seconds.

        Returns
        -------
        list of str
            The keys of the rows that were left out.

        Raises
        ------
        StoreError
            The disk is full, the store cannot be written to or was removed in the meantime, or a
            column's type differs from its type in earlier parts. Earlier answers are still stored.
        """
        keys = rows.index
        with self._lock:
            if not set(keys) <= self._keys:
                with self.alone(timeout=60.0):
                    rows = rows[[key not in self._keys for key in keys] & ~keys.duplicated()]
                    if len(rows):
                        self._add(rows, seconds)
                        return list(set(keys) - set(rows.index))
        return list(keys)

    def _add(self, rows: pd.DataFrame, seconds: float) -> None:
        if self._read_parts and not self._folder.files():
            raise StoreError(f"{self.path} was emptied while answers were added to it: run again.")
        table = _as_table(rows)
        schema = _common_schema(self._schema, table)
        if schema is None:
            raise StoreError(f"{self._folder.path} has columns of other types: name another store.")

        # Never earlier than existing rows, though clocks may go back.
        written = max(time.time_ns(), self._last_written + 1)
        manifest = _encodable_text(json.dumps(self._manifest, ensure_ascii=False, default=str))
        table = _with_bookkeeping(table, written, seconds / len(rows), manifest)
        self._read_parts.add(self._folder.write(table))
        columns = self._columns or list(rows.columns)
        columns = ["key", "written", *(name for name in columns if name in rows.columns)]
        self._tables.append(table.select(columns))
        self._keys.update(rows.index)
        self._schema = schema
        self._last_written = written
        self._frame = None
        self._added = True

        if self._watch is not None:
            self._watch.has_added = True
            self._watch.note(self._respondent_id, self._folder, self._read_parts, rows.index)

    def collect(self, rows: pd.DataFrame, keys: list[str], questions: int) -> None:
        """Buffer rows that answer a number of questions, to store them together with later rows.

        Buffered rows are stored every ``CHUNK`` questions or ``_SAVE_EVERY`` seconds, and when the
        rows are read or the object is closed.
        """
        with self._lock:
            self._waiting.append(rows.set_index(pd.Index(keys, name="key")))
            self._questions += questions
            if self._questions >= CHUNK or time.perf_counter() - self._began >= _SAVE_EVERY:
                self._save()

    def _save(self) -> None:
        waiting = self._waiting
        self._waiting = []
        self._questions = 0
        if waiting:
            self.add(pd.concat(waiting), seconds=time.perf_counter() - self._began)
            self._began = time.perf_counter()

    def close(self) -> None:
        """Store buffered rows, and merge small parts if there are more than ``_MANY_PARTS``.

        The time for merging grows with the number of added answers. If the store forbids deletion,
        no parts are merged.
        """
        with self._lock:
            self._save()
            if self._added and len(self._read_parts) > _MANY_PARTS:
                with contextlib.suppress(StoreError):
                    self._folder.compact(only_small=True)
                self._read_parts.clear()
            self._added = False

    def __enter__(self) -> StoredAnswers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        """Read the parts that have been added since the last reading."""

        def wanted(column: str) -> bool:
            needed = self._columns is None or column in ("key", "written", *self._columns)
            return needed and column not in ("seconds", "manifest")

        for folder in filter(None, (self._shipped, self._folder)):
            seen = self._read_parts if folder is self._folder else set()
            for table in folder.read_new(seen, self._schema, wanted):
                keys = table["key"].to_pylist()
                self._schema = _common_schema(self._schema, table)
                self._tables.append(table)
                self._keys.update(keys)

                if self._watch is not None and folder is self._folder:
                    self._watch.note(self._respondent_id, folder, seen, keys)

                self._last_written = max(self._last_written, pc.max(table["written"]).as_py())
                self._frame = None

        self._shipped = None

    def _as_frame(self) -> pd.DataFrame:
        if not self._tables:
            index = pd.Index([], name="key", dtype=str)
            return pd.DataFrame(columns=self._columns or [], index=index)
        self._tables = [_union(self._tables)]
        frame = self._tables[0].drop_columns(["written"]).to_pandas().set_index("key")
        return frame if self._columns is None else frame.reindex(columns=self._columns)


def compact(store: str | Path | None = None) -> int:
    """Merge each respondent and questionnaire's parts, and remove remains of killed runs.

    Compaction may run at any time, even while other processes write, read or compact: the merged
    part is written first, and then its sources are deleted. If the process is killed in between,
    rows are stored twice; reading ignores the duplicates, and the next compaction removes them.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, or else the user's cache.

    Returns
    -------
    int
        The decrease in the number of parts.

    Raises
    ------
    StoreError
        The store cannot be read or written. No answer is lost.

    Examples
    --------
    >>> import tempfile
    >>> store = tempfile.mkdtemp()
    >>> kept = StoredAnswers(store, "mlm", "gad7", "owner/model")
    >>> for name in ("a", "b", "c"):
    ...     index = pd.Index([key_of(name)], name="key")
    ...     _ = kept.add(pd.DataFrame({"probability": [0.25]}, index=index))
    >>> compact(store)
    2
    """
    return sum(folder.compact() for folder in folders(store))


def manifests(store: str | Path | None = None) -> pd.DataFrame:
    """List the respondents, conditions and versions of all answers in a store.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, or else the user's cache.

    Returns
    -------
    DataFrame
        One row per manifest: ``mode, questionnaire, respondent_id``, the other fields passed to
        :class:`StoredAnswers`, ``package_version``, the number of ``answers``, the ``seconds`` that
        they took, and the times at which the ``first`` and the ``last`` answer were written (UTC).

    Raises
    ------
    StoreError
        The store cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> store = tempfile.mkdtemp()
    >>> rows = pd.DataFrame({"probability": [0.25]}, index=pd.Index([key_of("a")], name="key"))
    >>> answers = StoredAnswers(store, "mlm", "gad7", "owner/model", {"dtype": "float32"})
    >>> _ = answers.add(rows, seconds=0.5)
    >>> manifests(store)[["respondent_id", "dtype", "answers", "seconds"]]
      respondent_id    dtype  answers  seconds
    0   owner/model  float32        1      0.5
    """
    begin = ["mode", "questionnaire", "respondent_id"]
    end = ["package_version", "answers", "seconds", "first", "last"]
    rows = []
    for folder in folders(store):
        tables = folder.read_new(set(), pa.schema([]), _BOOKKEEPING.__contains__)
        if not tables:
            continue

        books = _union(tables).drop_columns(["key"]).to_pandas()
        for text, answers in books.groupby("manifest", observed=True, sort=False):
            counts = {"answers": len(answers), "seconds": answers["seconds"].sum()}
            times = pd.to_datetime(answers["written"].agg(["min", "max"]), unit="ns", utc=True)
            rows.append(
                json.loads(text) | counts | dict(zip(("first", "last"), times, strict=True))
            )

    frame = pd.DataFrame(rows, columns=None if rows else begin + end)
    middle = [name for name in frame.columns if name not in begin + end]
    return frame[begin + middle + end]
