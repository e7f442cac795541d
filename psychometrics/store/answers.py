"""The store of answers: files that are only ever added, by mode, questionnaire and respondent.

Each save adds one Parquet file, a *part*, to ``<store>/<mode>/<questionnaire>/<respondent>/``; no
part is ever changed. The stored answers are the union of the parts, one row per key. If two rows
have the same key, the one written first counts, by the writer's clock, which never goes back behind
what the writer has read. A key is a hash of everything that produced an answer (:func:`key_of`), so
an unchanged question is never asked twice and a changed one never gets an old answer. Processes of
one machine, and all that share a folder, add one after the other (by a lock in it): what one of
them has added is never replaced by what another adds later.

A part is written under another name and then renamed (on a local disk once the disk has confirmed
it), or put whole on an object store. So a killed process leaves a part or nothing, and any number
of processes and machines may write at once. The name of a part carries the SHA-256 of its bytes: a
part that was cut or changed is noticed when it is read, set aside, and its questions are asked
again. Each part also says who answered, how, with which version, and how long it took;
:func:`manifests` lists this. A part that was copied from another folder is set aside too.

Below every store lie the answers that the project ships, in ``data/answers``, by respondents that
take minutes to ask. They have the same keys, and nothing is written there.

A store is a local folder, or a URL that pyarrow or fsspec opens: ``file:///shared/answers``,
``s3://bucket/answers?endpoint_override=http://host:9000``, ``gs://…``, ``memory://…``. The umask
decides who may read its files; for a private store set ``umask 077`` or close the folder.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import timedelta
from json.encoder import encode_basestring
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pyarrow import fs

from .. import __version__
from ..exceptions import StoreError
from ..paths import cache_dir, data_dir

CHUNK = 512
"""Questions that are handed over at once, and at most between two saves."""
SAVE_EVERY = 20.0
"""Seconds between two saves within a chunk: what a killed run has to ask again at most."""
MANY_PARTS = 64
"""Closing merges the parts of a respondent and questionnaire if there are more than this."""
_MERGED_BYTES = 64 * 2**20  # bytes in memory from which on compaction begins another part
_BOOKKEEPING = ("key", "written", "seconds", "manifest")  # columns of every part
_PART = re.compile(r"v1-\d{19}-([0-9a-f]{64})\.parquet")
_NEWER = re.compile(r"v([2-9]|[1-9]\d+)-.*\.parquet", re.DOTALL)
_TEXT = pa.large_string()
_LOCAL = fs.LocalFileSystem()
_MISSING = fs.FileType.NotFound
# What file systems raise.
_ERRORS = (OSError, ValueError, pa.ArrowException)


def key_of(*parts: str) -> str:
    """Return the key of an answer: 32 hexadecimal digits, a hash of all that produced it, in order.

    Examples
    --------
    >>> key_of("fingerprint of the respondent", "I feel nervous.", "It often happens to me.")
    'b69f6cc0c3f897895372190ad5138b20'
    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    # As json.dumps writes a list of texts, in a third of its time.
    text = f"[{', '.join(map(encode_basestring, parts))}]"
    # A lone surrogate, which is not valid text, still has a key.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class StoredAnswers:
    """The stored answers of one respondent to one questionnaire in one mode.

    Several threads may share one object, and several processes or machines one folder. ``key in
    answers`` and ``len(answers)`` cost nothing; :attr:`rows` builds a frame if something was added
    since, so use it after a run rather than after each addition. As a context manager the object
    closes itself.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, else the user's cache.
    mode, questionnaire_id, respondent_id : str
        Whose answers they are; any text, made safe for a folder.
    manifest : dict, optional
        Who answers, and how: stored with each part, as :func:`manifests` shows it. The mode, both
        ids and the package's version are added.
    columns : list of str, optional
        The columns to read; by default all.

    Attributes
    ----------
    url : str
        The store's URL or absolute path, which names it in any process of this machine.
    path : str
        The folder of these answers in the store.

    Raises
    ------
    StoreError
        The store is a file, cannot be read, or holds parts of a newer version of the package.

    Warns
    -----
    UserWarning
        A part is damaged, belongs to another folder, or is not a part of a store: it is set aside,
        and its questions are asked again.

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
        manifest: dict | None = None,
        columns: Iterable[str] | None = None,
    ) -> None:
        given = {"mode": mode, "questionnaire": questionnaire_id, "respondent_id": respondent_id}
        given = (manifest or {}) | given | {"package_version": __version__}
        system, root = _open_store(store)
        names = _folder_names(given)
        below = data_dir().joinpath("answers", *names)
        self._folder = _Folder(system, "/".join([root, *names]))
        self._shipped = _Folder(_LOCAL, below.as_posix()) if below.is_dir() else None
        self.url = _store_url(store)
        self.path = self._folder.path
        self._root = root
        self._columns = None if columns is None else list(columns)
        self._manifest = _encodable(json.dumps(given, ensure_ascii=False, default=str))
        self._lock = threading.RLock()
        self._read_parts: set[str] = set()
        self._tables: list[pa.Table] = []
        self._schema = pa.schema([])
        self._keys: set[str] = set()
        self._last_written = 0
        self._added = False
        self._frame: pd.DataFrame | None = None
        self._waiting, self._questions, self._began = [], 0, time.perf_counter()
        self._respondent_id, self._watch = respondent_id, _WATCH.get()
        self._read()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def rows(self) -> pd.DataFrame:
        """The stored rows, by ``key``: the row written first for each, in the order of writing.

        After an addition, rows that others have added meanwhile are read too: if several processes
        asked the same question at once, all see the same answer, now and later.
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
        """Hold a lock of these answers, in the store or else in the cache, and read them.

        Parameters
        ----------
        name : str
            The lock's; a lock of another name does not hinder.
        timeout : float
            Seconds after which to go on without it; negative for ever.
        waits : callable
            Called if another process has it.
        """
        here = self._folder.system.type_name == "local"
        folder = Path(self._root) / ".locks" if here else cache_dir() / "locks"
        place = self.path.removeprefix(self._root) if here else self.url + self.path
        lock = FileLock(folder / f"{key_of(place, name)}.lock")

        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # also a time-out, and where no lock can be made
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
        """Store rows as one new part, which is safe on the disk when this returns.

        Rows whose key is stored already are left out; nothing is written if none is new.

        Parameters
        ----------
        rows : DataFrame
            Index ``key`` (see :func:`key_of`); columns as the mode needs them, of plain values. A
            lone surrogate in a text, which no file can hold, becomes "?".
        seconds : float
            Seconds that the answers took.

        Returns
        -------
        list of str
            The keys of the rows that were left out.

        Raises
        ------
        StoreError
            The disk is full, the store cannot be written to or was removed meanwhile, or a column
            holds another kind of value than in the parts before; what was stored before is still
            there.
        """
        given = rows.index
        with self._lock:
            if not set(given) <= self._keys:
                with self.alone(timeout=60.0):
                    rows = rows[[key not in self._keys for key in given] & ~given.duplicated()]
                    if len(rows):
                        self._add(rows, seconds)
                        return list(set(given) - set(rows.index))
        return list(given)

    def _add(self, rows: pd.DataFrame, seconds: float) -> None:
        if self._read_parts and not self._folder.files():
            raise StoreError(f"{self.path} was emptied while answers were added to it: run again.")
        table = _as_table(rows)
        schema = _common_schema(self._schema, table)
        if schema is None:
            raise StoreError(f"{self._folder.path} keeps other kinds of values: name another.")

        # Never earlier than what it is added to, though clocks may go back.
        written = max(time.time_ns(), self._last_written + 1)
        table = _with_bookkeeping(table, written, seconds / len(rows), self._manifest)
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
        """Store rows that answer a number of questions, together with those that follow soon.

        They are added every ``CHUNK`` questions or ``SAVE_EVERY`` seconds, and when the rows are
        read or the object is closed.
        """
        with self._lock:
            self._waiting.append(rows.set_index(pd.Index(keys, name="key")))
            self._questions += questions
            if self._questions >= CHUNK or time.perf_counter() - self._began >= SAVE_EVERY:
                self._save()

    def _save(self) -> None:
        waiting = self._waiting
        self._waiting = []
        self._questions = 0
        if waiting:
            self.add(pd.concat(waiting), seconds=time.perf_counter() - self._began)
            self._began = time.perf_counter()

    def close(self) -> None:
        """Add what was collected; merge small parts if they are more than ``MANY_PARTS``.

        The work grows with what was added. Nothing is merged where the store does not allow it.
        """
        with self._lock:
            self._save()
            if self._added and len(self._read_parts) > MANY_PARTS:
                with contextlib.suppress(StoreError):
                    self._folder.compact(only_small=True)
                self._read_parts.clear()
            self._added = False

    def __enter__(self) -> StoredAnswers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        """Read the parts that are new here."""

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


class Watch:
    """Notes which answers a call has read and added, to see at its end whether all are there.

    Attributes
    ----------
    has_added : bool
        Whether the call has added answers; what others remove from a store that is only read is
        not looked for.
    """

    def __init__(self) -> None:
        self.has_added = False
        self._notes: dict[tuple[str, str], _Note] = {}

    def note(
        self, respondent_id: str, folder: _Folder, parts: Iterable[str], keys: Iterable[str]
    ) -> None:
        """Note that a folder holds these parts and, in them, answers with these keys."""
        note = self._notes.setdefault((respondent_id, folder.path), _Note(folder))
        note.parts.update(parts)
        note.keys.update(keys)

    def removed(self) -> Counter[str]:
        """Count the noted answers that are not in the store any more, by respondent."""
        counts: Counter[str] = Counter()
        if not self.has_added:
            return counts

        for (respondent_id, _), note in self._notes.items():
            missing = note.missing()
            if missing:
                counts[respondent_id] += missing
        return counts


class _Note:
    """The parts that were seen in a folder, and the keys of the answers in them."""

    def __init__(self, folder: _Folder) -> None:
        self.folder = folder
        self.parts: set[str] = set()
        self.keys: set[str] = set()

    def missing(self) -> int:
        """Return how many of the answers are gone."""
        if self.parts <= {file.base_name for file in self.folder.files()}:
            return 0

        # A compaction removes parts, too, after it has written their rows into another.
        tables = self.folder.read_new(set(), pa.schema([]), "key".__eq__)
        there = {key for table in tables for key in table["key"].to_pylist()}
        return len(self.keys - there)


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
    """Watch the answers that are read and added within the block.

    Examples
    --------
    >>> import shutil, tempfile
    >>> store = tempfile.mkdtemp()
    >>> rows = pd.DataFrame({"probability": [0.25]}, index=pd.Index([key_of("a")], name="key"))
    >>> with watched() as watch:
    ...     _ = StoredAnswers(store, "mlm", "gad7", "owner/model").add(rows)
    ...     shutil.rmtree(store)
    >>> watch.removed()
    Counter({'owner/model': 1})
    """
    watch = Watch()
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        _WATCH.reset(token)


def compact(store: str | Path | None = None) -> int:
    """Merge the parts of each respondent and questionnaire, and remove what killed runs left.

    It may run at any time, also while other processes write, read or compact: the merged part is
    written first, then its sources are deleted. If it is killed in between, rows are there twice;
    reading and the next compaction remove the second ones.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, else the user's cache.

    Returns
    -------
    int
        By how many the parts became fewer.

    Raises
    ------
    StoreError
        The store cannot be read or written; nothing is lost.

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
    return sum(folder.compact() for folder in _folders(store))


def manifests(store: str | Path | None = None) -> pd.DataFrame:
    """List who answered what, how, and with which version, over a whole store.

    Parameters
    ----------
    store : str or Path, optional
        Folder or URL; by default ``PSYCHOMETRICS_STORE``, else the user's cache.

    Returns
    -------
    DataFrame
        One row per manifest: ``mode, questionnaire, respondent_id``, whatever else was passed to
        :class:`StoredAnswers`, ``package_version``, the number of ``answers``, the ``seconds`` they
        took, and when the ``first`` and the ``last`` were written (UTC).

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
    first = ["mode", "questionnaire", "respondent_id"]
    last = ["package_version", "answers", "seconds", "first", "last"]
    found = []
    for folder in _folders(store):
        tables = folder.read_new(set(), pa.schema([]), _BOOKKEEPING.__contains__)
        if not tables:
            continue

        books = _union(tables).drop_columns(["key"]).to_pandas()
        for text, rows in books.groupby("manifest", observed=True, sort=False):
            counts = {"answers": len(rows), "seconds": rows["seconds"].sum()}
            when = pd.to_datetime(rows["written"].agg(["min", "max"]), unit="ns", utc=True)
            found.append(
                json.loads(text) | counts | dict(zip(("first", "last"), when, strict=True))
            )

    frame = pd.DataFrame(found, columns=None if found else first + last)
    between = [name for name in frame.columns if name not in first + last]
    return frame[first + between + last]


class _Folder:
    """The parts of one respondent and questionnaire, in a file system of pyarrow's."""

    def __init__(self, system: fs.FileSystem, path: str):
        self.system = system
        self.path = path

    def files(self) -> list[fs.FileInfo]:
        """List the folder's files, in the order of writing."""
        return sorted(_list_files(self.system, self.path), key=lambda file: file.base_name)

    def read_new(
        self, seen: set[str], schema: pa.Schema, wanted: Callable[[str], bool]
    ) -> list[pa.Table]:
        """Read the wanted columns of the parts not yet seen, and add their names to ``seen``.

        Parts that are damaged, or do not fit the schema, are set aside with a warning.
        """
        tables = []
        met = set(seen)  # if one cannot be read, all are to be read again
        # Again until nothing is new: a compaction may exchange parts while this lists and reads.
        while unread := [
            file.base_name
            for file in self.files()
            if file.extension == "parquet" and file.base_name not in met
        ]:
            for name in unread:
                table = None
                with contextlib.suppress(FileNotFoundError):  # merged into one of the next look
                    table = self.read(name, wanted)

                met.add(name)
                if table is None:
                    continue

                common = _common_schema(schema, table)
                if common is None:
                    self._set_aside(name, "holds other kinds of values than the others")
                    continue

                schema = common
                tables.append(table)

        seen |= met
        return tables

    def read(self, name: str, wanted: Callable[[str], bool] = bool) -> pa.Table | None:
        """Read the wanted columns of a part; set it aside with a warning if it is damaged.

        Raises
        ------
        FileNotFoundError
            It is gone: a compaction has merged it into another.
        """
        path = f"{self.path}/{name}"

        if _NEWER.fullmatch(name):
            raise StoreError(
                f"{path} was written by a newer version of this package: update the package."
            )

        known = _PART.fullmatch(name)
        if known is None:
            return self._set_aside(name, "is not a part of a store")

        try:
            with self.system.open_input_file(path) as file:
                content = file.read_buffer()
        except OSError as error:
            # A network's disk calls a file that is gone stale.
            if isinstance(error, FileNotFoundError) or error.errno == errno.ESTALE:
                raise FileNotFoundError(path) from error

            with _explain_errors(f"{path} cannot be read"):
                raise

        if hashlib.sha256(content).hexdigest() != known[1]:
            return self._set_aside(name, "is damaged or cut short")

        with contextlib.suppress(pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            file = pq.ParquetFile(pa.BufferReader(content))
            names = file.schema_arrow.names
            if set(_BOOKKEEPING) <= set(names):
                table = file.read(list(filter(wanted, names)), use_threads=False)
                written = file.read(["manifest"], use_threads=False)["manifest"].unique()
                folders = ["/".join(["", *_folder_names(json.loads(m.as_py()))]) for m in written]
                if not _has_sound_keys(table):
                    return self._set_aside(name, "lacks keys or times of its answers")

                if all(self.path.endswith(folder) for folder in folders):
                    return table.replace_schema_metadata(None)
                return self._set_aside(name, "holds answers that belong to another folder")

        return self._set_aside(name, "is not a part of a store")

    def write(self, table: pa.Table) -> str:
        """Add a part; its name is returned."""
        # A random mark, so that no two parts ever have one name: to delete a part that was merged
        # can then never delete one that holds what was merged.
        table = table.replace_schema_metadata({"part": uuid.uuid4().hex})
        buffer = pa.BufferOutputStream()
        repeated = [name for name in table.column_names if name != "key"]
        pq.write_table(table, buffer, compression="zstd", use_dictionary=repeated)
        content = buffer.getvalue()
        written = table["written"][0].as_py()
        name = f"v1-{written:019d}-{hashlib.sha256(content).hexdigest()}.parquet"
        with _explain_errors(f"{self.path}/{name} cannot be written"):
            self._write_file(name, content)

        return name

    def _write_file(self, name: str, content: pa.Buffer) -> None:
        path, unfinished = f"{self.path}/{name}", f"{self.path}/.{name}.tmp"
        if self.system.type_name in ("s3", "gcs", "abfs"):  # an object is put whole or not at all
            with self.system.open_output_stream(path) as file:
                file.write(content)
            return

        for attempt in range(9):
            self.system.create_dir(self.path, recursive=True)
            try:
                with self.system.open_output_stream(unfinished) as file:
                    file.write(content)

                self._sync(unfinished)
                self.system.move(unfinished, path)
                break
            except BaseException as error:
                with contextlib.suppress(OSError):
                    self.system.delete_file(unfinished)

                # Gone before it was renamed: another took it for what a killed run has left.
                if not isinstance(error, FileNotFoundError) or attempt == 8:
                    raise

        with contextlib.suppress(OSError):  # not every system lets a folder be opened
            self._sync(self.path)

    def _sync(self, path: str) -> None:
        """Wait until a local disk has a file or folder, which a power cut may take otherwise."""
        if self.system.type_name == "local":
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _set_aside(self, name: str, what: str) -> None:
        number = 1
        path = f"{self.path}/{name}"
        try:
            while self.system.get_file_info(f"{path}.damaged-{number}").type != _MISSING:
                number += 1

            self.system.move(path, f"{path}.damaged-{number}")
            done = f"it was set aside as {name}.damaged-{number}"
        except OSError as error:
            done = f"it cannot be set aside ({_reason(error)})"

        warnings.warn(f"{path} {what}: {done}, and its questions are asked again.", stacklevel=2)

    def compact(self, only_small: bool = False) -> int:
        """Merge parts; the number that there are fewer."""
        files = self.files()
        parts = [file for file in files if _PART.fullmatch(file.base_name)]

        if only_small:
            # Of the parts by size, those no larger than all smaller ones together: a row is then
            # rewritten as often as the logarithm of the rows.
            parts.sort(key=lambda file: file.size)
            rest = sum(file.size for file in parts)
            while parts and 2 * parts[-1].size > rest:
                rest -= parts.pop().size

            parts.sort(key=lambda file: file.base_name)

        fewer = 0
        size = 0
        schema = pa.schema([])
        tables: dict[str, pa.Table] = {}
        for file in parts:
            try:
                table = self.read(file.base_name)
            except FileNotFoundError:  # another compaction took it
                continue

            common = None if table is None else _common_schema(schema, table)
            if common is not None:
                tables[file.base_name] = table
                schema = common
                size += table.nbytes

            if size >= _MERGED_BYTES:
                fewer += self._merge(tables)
                tables = {}
                size = 0

        fewer += self._merge(tables)
        # A day by the clock that stamps the files: this machine's may be wrong, and another writes.
        times = [file.mtime for file in self.files() if file.mtime is not None]
        for file in files:
            left = file.base_name.startswith(".v1-") and file.extension == "tmp"
            if left and file.mtime is not None and max(times) - file.mtime > timedelta(days=1):
                self._delete(file.base_name)

        return fewer

    def _merge(self, tables: dict[str, pa.Table]) -> int:
        if len(tables) < 2:
            return 0
        self.write(_union(list(tables.values())))
        for name in tables:
            self._delete(name)
        return len(tables) - 1

    def _delete(self, name: str) -> None:
        with (
            _explain_errors(f"{self.path}/{name} cannot be deleted"),
            contextlib.suppress(FileNotFoundError),
        ):
            self.system.delete_file(f"{self.path}/{name}")


def _folders(store: str | Path | None) -> list[_Folder]:
    """Folders of the store that hold parts."""
    system, root = _open_store(store)
    files = _list_files(system, root, recursive=True)
    names = [file.path[len(root) :].strip("/").split("/") for file in files]
    found = {
        tuple(folder)
        for *folder, name in names
        if len(folder) == 3 and (_PART.fullmatch(name) or _NEWER.fullmatch(name))
    }
    return [_Folder(system, "/".join([root, *folder])) for folder in sorted(found)]


def _list_files(system: fs.FileSystem, path: str, recursive: bool = False) -> list[fs.FileInfo]:
    """The files below a folder; none where it is not there."""
    selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
    with _explain_errors(f"{path} cannot be read"):
        for _ in range(9):
            # Arrow opens the folder and, where that fails, looks whether it is there: made by
            # another process between the two, it is neither listed nor counted as not found.
            with contextlib.suppress(FileNotFoundError):
                return list(filter(_is_named_file, system.get_file_info(selector)))
        return list(filter(_is_named_file, system.get_file_info(selector)))


def _is_named_file(info: fs.FileInfo) -> bool:
    """Return whether it is a file, and has a name that is text, as all that a store writes."""
    try:
        return info.is_file and bool(info.path)
    except UnicodeDecodeError:
        return False


def _store_url(store: str | Path | None) -> str:
    if store is None:
        store = os.environ.get("PSYCHOMETRICS_STORE") or cache_dir() / "responses"
    text = os.fspath(store)
    if not text.strip() or "://" in text:
        return text
    return Path(text).expanduser().absolute().as_posix()


def _open_store(store: str | Path | None) -> tuple[fs.FileSystem, str]:
    """The file system and the path in it of a store, which is a folder or nothing yet."""
    try:
        text = _store_url(store)
        _check_name(text)
        system, root = _open_url(text) if "://" in text else (_LOCAL, text)
        kind = system.get_file_info(root).type
    except StoreError:
        raise
    except (*_ERRORS, RuntimeError, TypeError, ImportError) as error:
        named = os.environ.get("PSYCHOMETRICS_STORE") if store is None else store
        said = f"{named!r} cannot be opened as a store ({_reason(error)})"
        # a URL may hold a key and its secret
        said = re.sub(r"//[^/@\s]*@", "//", said)
        said = re.sub(r"(?i)((?:secret|key|token|password)[\w-]*=)[^&'\s]+", r"\1...", said)
        raise StoreError(
            f"{said}: name a folder, or a URL that pyarrow or fsspec opens, in PSYCHOMETRICS_STORE."
        ) from None

    occupied = root if kind in (fs.FileType.File, fs.FileType.Unknown) else ""
    if system.type_name == "local" and kind == _MISSING:
        occupied = _not_a_folder(Path(root))

    if occupied:
        raise StoreError(
            f"{occupied} is a file, not a store: name another folder in PSYCHOMETRICS_STORE."
        )

    return system, root.rstrip("/")


def _check_name(text: str) -> None:
    """Refuse the name of a store that names no folder."""
    if not text.strip():
        raise StoreError("The store's name is empty: name a folder in PSYCHOMETRICS_STORE.")
    if re.match("file://(?!(localhost)?/.)|(s3|gs|abfs)://$", text):
        raise StoreError(
            f"{text} names no folder: write it like file:///folder or s3://bucket/folder in "
            "PSYCHOMETRICS_STORE."
        )


def _not_a_folder(path: Path) -> str:
    """Return what is in the way of making a folder: something on its path that is none."""
    for place in (path, *path.parents):
        if os.path.lexists(place):
            return "" if place.is_dir() else str(place)
    return ""


@functools.cache  # a connection is made once
def _open_url(url: str) -> tuple[fs.FileSystem, str]:
    if url.startswith("s3://") and "allow_delayed_open" not in url:
        # A part is sent in one request, which may be sent again where no reply came, not in three.
        url += ("&" if "?" in url else "?") + "allow_delayed_open=true"

    if url.startswith("gs://") and "retry_limit_seconds" not in url:
        url += ("&" if "?" in url else "?") + "retry_limit_seconds=10"  # not 15 minutes

    try:
        return fs.FileSystem.from_uri(url)
    except (ValueError, NotImplementedError):
        import fsspec

        system, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def _folder_names(manifest: dict) -> list[str]:
    """Folders, from the store's on, of the answers that a manifest speaks of."""
    given = [manifest[key] for key in ("mode", "questionnaire", "respondent_id")]
    mode, questionnaire, respondent = (_encodable(str(name)) for name in given)
    return [_safe_name(mode), _safe_name(questionnaire), _safe_name(respondent, always=True)]


def _safe_name(name: str, always: bool = False) -> str:
    """A name as a folder's: itself if it is safe, else, or always, with a hash of it."""
    # The hash keeps "a/b" and "a-b" apart, which are the same once made safe.
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:80]
    if safe == name and name[:1].isalnum() and not always:
        return name
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _as_table(rows: pd.DataFrame) -> pa.Table:
    """Rows as a table whose first column is the key."""
    taken = set(rows.columns) & set(_BOOKKEEPING)
    if taken:
        raise ValueError(f"A column may not be called {min(taken)}.")

    try:
        table = pa.Table.from_pandas(rows, preserve_index=False)
    except UnicodeEncodeError:  # a lone surrogate
        table = pa.Table.from_pandas(rows.map(_encodable), preserve_index=False)

    table = table.add_column(0, "key", pa.array(list(rows.index), _TEXT))
    fields = []
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        fields.append(pa.field(field.name, _TEXT if pa.types.is_string(kind) else kind))

    return table.cast(pa.schema(fields))


def _encodable(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _with_bookkeeping(table: pa.Table, written: int, seconds: float, manifest: str) -> pa.Table:
    """The table with what is noted of each row: when it was written, its seconds, its manifest."""
    n = len(table)
    said = pa.DictionaryArray.from_arrays(np.zeros(n, dtype="int32"), pa.array([manifest], _TEXT))
    table = table.append_column("written", pa.array(np.full(n, written, dtype="int64")))
    table = table.append_column("seconds", pa.array(np.full(n, seconds, dtype="float64")))
    return table.append_column("manifest", said)


def _union(tables: list[pa.Table]) -> pa.Table:
    """One row per key, the first written one; in the order of writing."""
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    written = table["written"].to_numpy()
    if (np.diff(written) < 0).any():
        table = table.take(np.argsort(written, kind="stable"))
    # Codes are given in the order of their first occurrence.
    codes = table["key"].combine_chunks().dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return table.take(first) if len(first) < len(table) else table


def _has_sound_keys(table: pa.Table) -> bool:
    """Return whether each row has a key and a time, as far as these columns were read."""
    kinds = {"key": (_TEXT, pa.string()), "written": (pa.int64(),)}
    columns = {name: table[name] for name in kinds if name in table.column_names}
    return len(table) > 0 and all(
        column.type in kinds[name] and not column.null_count for name, column in columns.items()
    )


def _common_schema(schema: pa.Schema, table: pa.Table) -> pa.Schema | None:
    """The schema that holds a table's values too; None if there is none."""
    try:
        return pa.unify_schemas([schema, table.schema], promote_options="permissive")
    except pa.ArrowException:
        return None


@contextlib.contextmanager
def _explain_errors(what: str) -> Iterator[None]:
    """Turn an error of the disk into one sentence, with what to do."""
    try:
        yield
    except StoreError:
        raise
    except _ERRORS as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise StoreError(
            f"{what} ({_reason(error)}): {'free some space' if full else 'give access to it'}, or "
            "name another folder in PSYCHOMETRICS_STORE; what was stored before is still there."
        ) from error


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else " ".join(str(error).split())
