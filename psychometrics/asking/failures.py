"""What is kept of those who could not answer, and what is let go of after them."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from ..exceptions import ParameterError, RespondentError
from ..models.loading import out_of_memory

LASTING = ("no safetensors", "remote code", "architecture", "labels", "memory")
"""Kinds of failure that the same model would meet again, after a download."""


def told(name: str, error: Exception) -> RespondentError:
    """Why a respondent could not answer, in a sentence where there is one."""
    if isinstance(error, RespondentError):
        return error
    said, kind = f"{type(error).__name__}: {' '.join(str(error).split())}", "other"
    if out_of_memory(error):
        said = f"{name} does not fit into memory: use a smaller model, or dtype='bfloat16'."
        kind = "memory"
    found = RespondentError(said, kind=kind)
    found.__cause__ = error
    return found


def let_go(error: BaseException | None) -> None:
    """Empty the frames that an error holds on to, and with them the model that failed."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@contextmanager
def discarding(identity: dict) -> Iterator[None]:
    """Remove at the end what weights came into the hub's local cache meanwhile.

    The small files stay, by which a model is identified without a question to the hub.
    """
    if identity.get("source") != "hub":
        yield
        return
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = repo_folder_name(repo_id=identity["model"], repo_type="model")
    snapshots = Path(constants.HF_HUB_CACHE) / folder / "snapshots"

    def weights() -> dict[Path, Path]:
        return {file: file.resolve() for file in snapshots.glob("*/*.safetensors")}

    before = weights()
    try:
        yield
    finally:
        for file, blob in weights().items():
            if blob not in before.values():
                file.unlink()
                blob.unlink(missing_ok=True)


class Failures:
    """Who failed, by kind, in a CSV file if one is named; the lines of other ways of asking stay.

    It is read anew before each change, as another process may keep the same file.
    """

    columns = ("respondent", "kind", "reason", "mode", "dtype", "conditions", "questionnaire",
               "fingerprint", "at")  # fmt: skip

    def __init__(
        self, path: str | Path | None, mode: str, dtype: str | None, conditions: dict
    ) -> None:
        self.path = None if path is None else Path(path).expanduser()
        said = ", ".join(f"{name}={value}" for name, value in conditions.items())
        self.way = {"mode": mode, "dtype": dtype or "", "conditions": said}
        rows = self._rows()
        lasting = rows[rows["kind"].isin(LASTING) & (rows["fingerprint"] != "")]
        self.known = {row.pop("fingerprint"): row for row in lasting.to_dict("records")}
        if self.path is not None:
            self._write(rows)  # now rather than after the first failure, if it cannot be written

    def knows(self, identity: dict, questionnaire: str) -> bool:
        """Whether it was tried before and would fail again."""
        row = self.known.get(identity.get("fingerprint"))
        # What fits into memory depends on how long the questions are.
        return bool(row) and (row["kind"] != "memory" or row["questionnaire"] == questionnaire)

    def check(self, identity: dict, questionnaire: str) -> None:
        """Refuse what was tried before and would fail again."""
        if self.knows(identity, questionnaire):
            row = self.known[identity["fingerprint"]]
            raise RespondentError(row["reason"], kind=row["kind"])

    def add(self, name: str, error: Exception, identity: dict | None = None, put=None) -> None:
        """Enter a failure in place of an earlier one."""
        row = {
            **dict.fromkeys(self.columns, ""),
            **self.way,
            "respondent": name,
            "kind": getattr(error, "kind", "other"),
            "reason": " ".join(str(error).split()),
            "questionnaire": put.id if put is not None else "",
            "fingerprint": (identity or {}).get("fingerprint", ""),
            "at": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }
        if self.path is not None:
            rows = self._rows()
            same = self._of(rows, {name}) & (rows["reason"] == row["reason"])
            if same.any():  # as it was found first
                row["at"] = rows.loc[same, "at"].iloc[0]
            rows = rows[~self._of(rows, {name})]
            self._write(pd.concat([rows, pd.DataFrame([row])]))

    def drop(self, names: set[str]) -> None:
        """Take out who has answered after all."""
        if self.path is not None:
            rows = self._rows()
            if (gone := self._of(rows, names)).any():
                self._write(rows[~gone])

    def _of(self, rows: pd.DataFrame, names: set[str]) -> pd.Series:
        here = rows["respondent"].isin(names)
        for name, value in self.way.items():
            here &= rows[name] == value
        return here

    def _rows(self) -> pd.DataFrame:
        if self.path is None or not self.path.exists():
            return pd.DataFrame(columns=list(self.columns), dtype=str)
        try:
            rows = pd.read_csv(self.path, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:  # pandas' own errors are ValueErrors
            raise ParameterError(f"{self.path} cannot be read as a table: {error}.") from None
        if missing := set(self.columns) - set(rows):
            raise ParameterError(
                f"{self.path} is no table of failures, as it has no column {min(missing)}: name "
                "another file."
            )
        return rows[list(self.columns)]

    def _write(self, rows: pd.DataFrame) -> None:
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            rows.to_csv(part, index=False)
            part.replace(self.path)
        except OSError as error:
            raise ParameterError(
                f"{self.path} cannot be written ({error.strerror or error}): name another file."
            ) from None
