"""Labelled pairs for training: the project's samples, files, and data sets on the hub."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ..data import NLI_LABELS, fetch, text_table
from ..exceptions import DataError, needed

# Columns of other collections: the published SNLI and MNLI, and ANLI.
_NAMES = {
    "sentence1": "premise",
    "context": "premise",
    "sentence2": "hypothesis",
    "gold_label": "label",
}


def mnli_sample() -> pd.DataFrame:
    """Load the 18,000 labelled MNLI pairs, with the project's fixed split.

    A pair is held out if the SHA-256 of its premise is 0 modulo 10. No premise is therefore in both
    parts, and the split depends only on the text.

    Returns
    -------
    DataFrame
        ``premise, hypothesis, label`` (0 entailment, 1 neutral, 2 contradiction), ``genre``,
        ``held_out``.
    """
    frame = pd.concat(
        [pd.read_csv(fetch(f"mnli_{label}"), dtype={"premise": str}) for label in NLI_LABELS],
        ignore_index=True,
    ).dropna(subset=["premise", "hypothesis"])
    frame["held_out"] = _hash_split(frame["premise"])
    return frame[["premise", "hypothesis", "label", "genre", "held_out"]].reset_index(drop=True)


def nli_pairs(data: str | Sequence[str] | pd.DataFrame) -> pd.DataFrame:
    """Return labelled pairs for training: ``premise, hypothesis, label`` (0 entailment ... 2).

    Sources are named as in :func:`psychometrics.training.train_nli`; MNLI's held-out pairs are
    never included.
    """
    pairs = _labelled_pairs(data)
    return pairs[~pairs["held_out"]].drop(columns="held_out").reset_index(drop=True)


def _labelled_pairs(data: str | Sequence[str] | pd.DataFrame, split: bool = False) -> pd.DataFrame:
    """Return labelled pairs; ``held_out`` marks held-out pairs of MNLI and, if split, of others."""
    if isinstance(data, pd.DataFrame):
        frame = data.assign(held_out=False)
    else:
        frames = [_source(name, split) for name in ([data] if isinstance(data, str) else data)]
        frame = pd.concat(frames, ignore_index=True)

    named = {old: new for old, new in _NAMES.items() if old in frame and new not in frame}
    frame = frame.rename(columns=named)
    missing = {"premise", "hypothesis", "label"} - set(frame.columns)
    if missing:
        raise DataError(f"NLI data lack the columns {', '.join(sorted(missing))}: add them.")

    if frame["label"].dtype.kind not in "iu":
        names = frame["label"].astype(str).str.lower()
        numbers = {name: i for i, name in enumerate(NLI_LABELS)} | {str(i): i for i in range(-1, 3)}
        numbers |= {name[0]: i for i, name in enumerate(NLI_LABELS)} | {"-": -1}
        unknown = sorted(set(names) - set(numbers))
        if unknown:
            raise DataError(f"labels must be {', '.join(NLI_LABELS)} or 0-2; found {unknown[0]}.")

        frame = frame.assign(label=names.map(numbers))

    frame = frame[frame["label"].between(0, 2)].dropna(subset=["premise", "hypothesis"])
    if frame.empty:
        raise DataError("There are no labelled pairs to train on: give at least one.")

    if frame["held_out"].all():
        frame = frame.assign(held_out=False)

    return frame.reset_index(drop=True)


def _source(name: str, split: bool) -> pd.DataFrame:
    if name == "mnli":
        return mnli_sample()
    frame = _read_source(name)
    held_out = split and "premise" in frame and _hash_split(frame["premise"], len(frame) // 2000)
    return frame.assign(held_out=held_out)


def _hash_split(texts: Sequence[str], one_in: int = 10) -> list[bool]:
    """Select the texts to hold out, one in ten or fewer, by the SHA-256 of the text."""
    hashes = [hashlib.sha256(str(text).strip().encode()).hexdigest() for text in texts]
    return [int(found, 16) % max(10, one_in) == 0 for found in hashes]


def _snli_sample() -> pd.DataFrame:
    """Load SNLI's dev and test pairs, with the columns ``premise, hypothesis, label``."""
    names = ["premise", "hypothesis", "label"]
    parts = []
    for split in ("dev", "test"):
        files = (fetch(f"snli_{name}_{split}") for name in ("s1", "s2", "labels"))
        columns = [file.read_text(encoding="utf-8").splitlines() for file in files]
        if len({len(column) for column in columns}) != 1:
            raise DataError(f"e-SNLI's {split} files differ in length: fetch them again.")

        parts.append(pd.DataFrame(dict(zip(names, columns, strict=True))))

    frame = pd.concat(parts, ignore_index=True)
    for name in names[:2]:
        frame[name] = frame[name].str.replace(r"\s+([.,!?;:])", r"\1", regex=True).str.strip()

    frame["label"] = frame["label"].map(NLI_LABELS.index)
    return frame


def _read_source(name: str) -> pd.DataFrame:
    if name == "snli":
        return _snli_sample()
    path = Path(name)
    if path.suffix in (".csv", ".tsv"):
        return text_table(path).replace("", None)

    if path.suffix in (".jsonl", ".parquet"):
        if not path.is_file():
            raise DataError(f"{name} does not exist: name a file of labelled pairs.")

        try:
            return (
                pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_parquet(path)
            )
        except (ValueError, OSError) as error:  # including pyarrow's errors
            raise DataError(f"{path} cannot be read ({error}): correct the file.") from None

    datasets = needed("datasets")
    was_saved = any((path / file).is_file() for file in ("state.json", "dataset_dict.json"))
    read = datasets.load_from_disk if was_saved else datasets.load_dataset

    try:
        loaded = read(name)
        splits = loaded if isinstance(loaded, dict) else {"train": loaded}
        parts = [part.to_pandas() for split, part in splits.items() if split.startswith("train")]
        return pd.concat(parts, ignore_index=True)
    except Exception as error:
        said = f"'{name}' is neither mnli, snli, a .csv/.tsv/.jsonl/.parquet file nor on the hub"
        said = f"{said}, nor a folder of a dataset with a training part"
        raise DataError(f"{said} ({type(error).__name__}): check the name and network.") from error
