"""The response store: one Parquet file per respondent, instrument and response mode.

An answer's key is a hash of what produced it (respondent, revision, precision, premise and
hypothesis), so an unchanged question is never asked twice, and a changed one never gets an old
answer. Files are written under a temporary name and renamed: a half-written one is never read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa

from .exceptions import StoreError

PROBABILITIES = ["entailment", "neutral", "contradiction"]


def probabilities_of(mode: str) -> list[str]:
    """Columns that hold an answer in a mode: three of NLI, one of the other modes."""
    return PROBABILITIES if mode == "nli" else ["probability"]


def answers_path(store: str | Path, respondent_id: str, questionnaire: str, mode: str) -> Path:
    """The store's file for a respondent, instrument and mode; the names made safe for a folder.

    Examples
    --------
    >>> answers_path("store", "owner/model", "gad7", "nli").name.startswith("owner-model-")
    True
    """
    # The hash keeps "a/b" and "a-b" apart, which are the same once made safe.
    safe = re.sub(r"[^\w.-]+", "-", respondent_id)[:80]
    digest = hashlib.sha256(respondent_id.encode()).hexdigest()[:8]
    return Path(store) / mode / questionnaire / f"{safe}-{digest}.parquet"


def answer_keys(fingerprint: str, prompts: pd.DataFrame) -> list[str]:
    """Key of each prompt's answer by the respondent with this fingerprint."""
    pairs = zip(prompts["premise"], prompts["hypothesis"], strict=True)
    return [_digest([fingerprint, *pair]) for pair in pairs]


def read_answers(path: Path, mode: str = "nli") -> pd.DataFrame:
    """Answers kept in a file of the store, indexed by key; none if there is no file.

    A file that cannot be read is set aside under another name, with a warning.

    Returns
    -------
    DataFrame
        Index ``key``, columns ``premise, hypothesis`` and those of the answer.

    Raises
    ------
    StoreError
        The file may not be opened.
    """
    columns = ["premise", "hypothesis", *probabilities_of(mode)]
    empty = pd.DataFrame(columns=columns, index=pd.Index([], name="key", dtype=str))
    if not path.exists():
        return empty
    try:
        answers = pd.read_parquet(path)
        if answers.index.name == "key" and list(answers.columns) == columns:
            return answers
    except (pa.ArrowException, ValueError):
        pass
    except OSError as error:
        # A cut file shows as an OSError without a number; one with a number is the disk's.
        if error.errno is not None:
            raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    aside = _free_name(path)
    try:
        path.rename(aside)
    except OSError as error:
        raise StoreError(f"{path} is damaged and cannot be moved: {error.strerror}.") from error
    warnings.warn(
        f"{path} is damaged or cut short: it was set aside as {aside.name}, and its questions "
        f"are asked again.",
        stacklevel=2,
    )
    return empty


def write_answers(path: Path, answers: pd.DataFrame, manifest: dict) -> None:
    """Replace a file of the store and its manifest; the old one stays if this fails.

    Raises
    ------
    StoreError
        The disk is full, or the folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, lambda temporary: answers.to_parquet(temporary))
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        _replace(path.with_suffix(".json"), lambda temporary: temporary.write_text(text))
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror or error}): free some space, or name "
            f"another folder in PSYCHOMETRICS_STORE; what was stored before is still there."
        ) from error


def read_manifest(path: Path) -> dict:
    """The manifest beside a file of the store; empty if there is none."""
    try:
        return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def prompts_digest(prompts: pd.DataFrame) -> str:
    """SHA-256 of a prompt table's content."""
    return _digest(prompts.astype(str).to_numpy().tolist())


def _replace(path: Path, write) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def _digest(content: list) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:32]
