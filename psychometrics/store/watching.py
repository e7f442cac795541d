"""Notice the removal of answers that a running call has read or added."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

import pyarrow as pa

from .folder import Folder

# The watch over the answers of the current call.
_WATCH: ContextVar[_Watch | None] = ContextVar("watch", default=None)


class _Watch:
    """A record of the answers that a call reads and adds, to check at its end that all still exist.

    Attributes
    ----------
    has_added : bool
        Whether the call has added answers; removals from a store that is only read are not
        detected.
    """

    def __init__(self) -> None:
        self.has_added = False
        self._notes: dict[tuple[str, str], _Note] = {}

    def note(
        self, respondent_id: str, folder: Folder, parts: Iterable[str], keys: Iterable[str]
    ) -> None:
        """Record that a folder holds the given parts, with answers that have the given keys."""
        note = self._notes.setdefault((respondent_id, folder.path), _Note(folder))
        note.parts.update(parts)
        note.keys.update(keys)

    def removed(self) -> Counter[str]:
        """Count the recorded answers that are no longer in the store, by respondent."""
        counts: Counter[str] = Counter()
        if not self.has_added:
            return counts

        for (respondent_id, _), note in self._notes.items():
            counts += Counter({respondent_id: note.missing()})  # without zeros
        return counts


class _Note:
    """The parts seen in a folder, and the keys of their answers."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.parts: set[str] = set()
        self.keys: set[str] = set()

    def missing(self) -> int:
        """Return the number of answers that are no longer in the folder."""
        if self.parts <= {file.base_name for file in self.folder.files()}:
            return 0

        # A compaction also removes parts, after writing their rows into another.
        tables = self.folder.read_new(set(), pa.schema([]), "key".__eq__)
        stored = {key for table in tables for key in table["key"].to_pylist()}
        return len(self.keys - stored)


@contextlib.contextmanager
def watched() -> Iterator[_Watch]:
    """Watch the answers that are read and added within the block.

    Examples
    --------
    >>> import shutil, tempfile
    >>> import pandas as pd
    >>> from psychometrics.store import StoredAnswers, key_of
    >>> store = tempfile.mkdtemp()
    >>> rows = pd.DataFrame({"probability": [0.25]}, index=pd.Index([key_of("a")], name="key"))
    >>> with watched() as watch:
    ...     _ = StoredAnswers(store, "mlm", "gad7", "owner/model").add(rows)
    ...     shutil.rmtree(store)
    >>> watch.removed()
    Counter({'owner/model': 1})
    """
    watch = _Watch()
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        _WATCH.reset(token)
