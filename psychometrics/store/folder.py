"""A folder of a store, with the parts that hold a respondent's answers to a questionnaire."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import uuid
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ..exceptions import StoreError
from .urls import _explain_errors, _open_store, reason

_MERGED_BYTES = 64 * 2**20  # bytes in memory after which compaction begins a new part
_BOOKKEEPING = ("key", "written", "seconds", "manifest")  # columns of every part
_PART = re.compile(r"v1-\d{19}-([0-9a-f]{64})\.parquet")
_NEWER = re.compile(r"v([2-9]|[1-9]\d+)-.*\.parquet", re.DOTALL)
_TEXT = pa.large_string()


class Folder:
    """The parts of one respondent and questionnaire, in a pyarrow file system.

    Parameters
    ----------
    system : FileSystem
    path : str
    read_only : bool
        Whether damaged parts are only left out, not set aside.
    """

    def __init__(self, system: fs.FileSystem, path: str, read_only: bool = False):
        self.system = system
        self.path = path
        self.read_only = read_only

    def files(self) -> list[fs.FileInfo]:
        """List the folder's files, in the order of writing."""
        return sorted(_list_files(self.system, self.path), key=lambda file: file.base_name)

    def read_new(
        self, seen: set[str], schema: pa.Schema, wanted: Callable[[str], bool]
    ) -> list[pa.Table]:
        """Read the wanted columns of parts that are not in ``seen``, and add their names to it.

        Parts that are damaged or do not fit the schema are set aside with a warning.
        """
        tables = []
        met = set(seen)  # if one read fails, all are read again
        # Repeat until nothing is new: a compaction may replace parts during listing and reading.
        while unread := [
            file.base_name
            for file in self.files()
            if file.extension == "parquet" and file.base_name not in met
        ]:
            for name in unread:
                table = None
                with contextlib.suppress(FileNotFoundError):  # merged; the next listing has it
                    table = self.read(name, wanted)

                met.add(name)
                if table is None:
                    continue

                common = _common_schema(schema, table)
                if common is None:
                    self._set_aside(name, "has columns of other types than the other parts")
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
            The part no longer exists: a compaction has merged it into a different part.
        """
        path = f"{self.path}/{name}"

        if _NEWER.fullmatch(name):
            raise StoreError(f"{path} was written by a newer version: update this package.")

        match = _PART.fullmatch(name)
        if match is None:
            self._set_aside(name, "is not a part of a store")
            return None

        try:
            with self.system.open_input_file(path) as file:
                content = file.read_buffer()
        except OSError as error:
            # A network disk reports a deleted file as stale.
            if isinstance(error, FileNotFoundError) or error.errno == errno.ESTALE:
                raise FileNotFoundError(path) from error

            with _explain_errors(f"{path} cannot be read"):
                raise

        if hashlib.sha256(content).hexdigest() != match[1]:
            self._set_aside(name, "is damaged or cut short")
            return None

        with contextlib.suppress(pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            file = pq.ParquetFile(pa.BufferReader(content))
            names = file.schema_arrow.names
            if set(_BOOKKEEPING) <= set(names):
                table = file.read(list(filter(wanted, names)), use_threads=False)
                manifests = file.read(["manifest"], use_threads=False)["manifest"].unique()
                ends = ["/".join(["", *_folder_names(json.loads(m.as_py()))]) for m in manifests]
                if not _has_sound_keys(table):
                    self._set_aside(name, "lacks keys or times of its answers")
                    return None

                if all(self.path.endswith(end) for end in ends):
                    return table.replace_schema_metadata(None)
                self._set_aside(name, "holds answers that belong to another folder")
                return None

        self._set_aside(name, "is not a part of a store")
        return None

    def write(self, table: pa.Table) -> str:
        """Add a part, and return its name."""
        # A random mark makes names unique, so that deleting a merged part can never delete the part
        # that replaced it.
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
        if self.system.type_name in ("s3", "gcs", "abfs"):  # objects appear whole or not at all
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

                # Gone before renaming: another process took it for the remains of a killed run.
                if not isinstance(error, FileNotFoundError) or attempt == 8:
                    raise

        with contextlib.suppress(OSError):  # some systems cannot open folders
            self._sync(self.path)

    def _sync(self, path: str) -> None:
        """Wait until a local disk has written a file or folder, so that it survives a power cut."""
        if self.system.type_name == "local":
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _set_aside(self, name: str, what: str) -> None:
        if self.read_only:
            return

        number = 1
        path = f"{self.path}/{name}"
        try:
            while (
                self.system.get_file_info(f"{path}.damaged-{number}").type != fs.FileType.NotFound
            ):
                number += 1

            self.system.move(path, f"{path}.damaged-{number}")
            done = f"it was set aside as {name}.damaged-{number}"
        except OSError as error:
            done = f"it cannot be set aside ({reason(error)})"

        warnings.warn(f"{path} {what}: {done}, and its questions are asked again.", stacklevel=2)

    def compact(self, only_small: bool = False) -> int:
        """Merge parts, and return the decrease in the number of parts."""
        files = self.files()
        parts = [file for file in files if _PART.fullmatch(file.base_name)]

        if only_small:
            # Take the smallest parts, as long as each is no larger than all smaller ones together:
            # rows are then rewritten a logarithmic number of times.
            parts.sort(key=lambda file: file.size)
            total = sum(file.size for file in parts)
            while parts and 2 * parts[-1].size > total:
                total -= parts.pop().size

            parts.sort(key=lambda file: file.base_name)

        fewer = 0
        size = 0
        schema = pa.schema([])
        tables: dict[str, pa.Table] = {}
        for file in parts:
            try:
                table = self.read(file.base_name)
            except FileNotFoundError:  # deleted by another compaction
                continue

            common = None if table is None else _common_schema(schema, table)
            if table is not None and common is not None:
                tables[file.base_name] = table
                schema = common
                size += table.nbytes

            if size >= _MERGED_BYTES:
                fewer += self._merge(tables)
                tables = {}
                size = 0

        fewer += self._merge(tables)
        # Age by the clock that stamps the files, since this machine's may differ.
        times = [file.mtime for file in self.files() if file.mtime is not None]
        for file in files:
            is_temporary = file.base_name.startswith(".v1-") and file.extension == "tmp"
            has_age = is_temporary and file.mtime is not None
            if has_age and max(times) - file.mtime > timedelta(days=1):
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


def folders(store: str | Path | None, read_only: bool = False) -> list[Folder]:
    """List the folders of a store in which there are parts."""
    system, root = _open_store(store)
    files = _list_files(system, root, recursive=True)
    names = [file.path[len(root) :].strip("/").split("/") for file in files]
    paths = {
        tuple(folder)
        for *folder, name in names
        if len(folder) == 3 and (_PART.fullmatch(name) or _NEWER.fullmatch(name))
    }
    return [Folder(system, "/".join([root, *folder]), read_only) for folder in sorted(paths)]


def _folder_names(manifest: dict[str, Any]) -> list[str]:
    """Return the names of the folders, below the store, for the answers of a manifest."""
    names = [str(manifest[key]) for key in ("mode", "questionnaire", "respondent_id")]
    mode, questionnaire, respondent = map(_encodable_text, names)
    return [_safe_name(mode), _safe_name(questionnaire), _safe_name(respondent, always=True)]


def _safe_name(name: str, always: bool = False) -> str:
    """Return a folder's name: a name itself if it is safe, otherwise (or always) with a hash."""
    # The hash distinguishes "a/b" from "a-b", which become the same safe name.
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:80]
    if safe == name and name[:1].isalnum() and not always:
        return name
    return f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _encodable_text(text: str) -> str:
    """Replace lone surrogates, which cannot be written to a file, with "?"."""
    return text.encode("utf-8", "replace").decode()


def _union(tables: list[pa.Table]) -> pa.Table:
    """Keep the row written first for each key, in the order of writing."""
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    written = table["written"].to_numpy()
    if (np.diff(written) < 0).any():
        table = table.take(np.argsort(written, kind="stable"))
    # Codes are numbered by first occurrence.
    codes = table["key"].combine_chunks().dictionary_encode().indices.to_numpy()
    _, places = np.unique(codes, return_index=True)
    return table.take(places) if len(places) < len(table) else table


def _has_sound_keys(table: pa.Table) -> bool:
    """Return whether each row has a key and a time, if these columns were read."""
    kinds = {"key": (_TEXT, pa.string()), "written": (pa.int64(),)}
    columns = {name: table[name] for name in kinds if name in table.column_names}
    return len(table) > 0 and all(
        column.type in kinds[name] and not column.null_count for name, column in columns.items()
    )


def _common_schema(schema: pa.Schema, table: pa.Table) -> pa.Schema | None:
    """Return a schema that also fits a table's values, or None if there is no such schema."""
    try:
        return pa.unify_schemas([schema, table.schema], promote_options="permissive")
    except pa.ArrowException:
        return None


def _as_table(rows: pd.DataFrame) -> pa.Table:
    """Return rows as a table whose first column is the key."""
    taken = set(rows.columns) & set(_BOOKKEEPING)
    if taken:
        raise ValueError(f"A column may not be called {min(taken)}; rename it.")

    try:
        table = pa.Table.from_pandas(rows, preserve_index=False)
    except UnicodeEncodeError:  # a lone surrogate
        encodable = rows.map(lambda cell: _encodable_text(cell) if isinstance(cell, str) else cell)
        table = pa.Table.from_pandas(encodable, preserve_index=False)

    table = table.add_column(0, "key", pa.array(list(rows.index), _TEXT))
    fields = []
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        fields.append(pa.field(field.name, _TEXT if pa.types.is_string(kind) else kind))

    return table.cast(pa.schema(fields))


def _with_bookkeeping(table: pa.Table, written: int, seconds: float, manifest: str) -> pa.Table:
    """Add the columns that record each row's time of writing, seconds and manifest."""
    n = len(table)
    texts = pa.DictionaryArray.from_arrays(np.zeros(n, dtype="int32"), pa.array([manifest], _TEXT))
    table = table.append_column("written", pa.array(np.full(n, written, dtype="int64")))
    table = table.append_column("seconds", pa.array(np.full(n, seconds, dtype="float64")))
    return table.append_column("manifest", texts)


def _list_files(system: fs.FileSystem, path: str, recursive: bool = False) -> list[fs.FileInfo]:
    """List the files below a folder, or none if the folder does not exist."""
    selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
    with _explain_errors(f"{path} cannot be read"):
        for _ in range(9):
            # Arrow opens the folder and, on failure, checks whether it exists: a folder that
            # another process makes in between is neither listed nor reported as missing.
            with contextlib.suppress(FileNotFoundError):
                return list(filter(_is_named_file, system.get_file_info(selector)))
        return list(filter(_is_named_file, system.get_file_info(selector)))


def _is_named_file(info: fs.FileInfo) -> bool:
    """Return whether an entry is a file with a readable name, like all files of a store."""
    try:
        return info.is_file and bool(info.path)
    except UnicodeDecodeError:
        return False
