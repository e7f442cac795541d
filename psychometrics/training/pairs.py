"""Labelled pairs for training: the project's samples, files, and data sets on the hub."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from statsmodels.stats.proportion import proportion_confint

from ..data import NLI_LABELS, fetch, text_table
from ..exceptions import DataError, needed
from ..modes import load_respondent

# Columns of other collections: the published SNLI and MNLI, and ANLI.
_NAMES = {
    "sentence1": "premise",
    "context": "premise",
    "sentence2": "hypothesis",
    "gold_label": "label",
}
# The forms of the names in NLI_LABELS, in the same order.
_FORMS = ("e|entail(s|ed|ment)?", "n|neutral", "c|contradict(s|ed|ion|ory)?")
_NUMBER = re.compile(r"(-1|[012])(\.0+)?")


@dataclass(frozen=True)
class _Pairs:
    """Labelled pairs, and what was decided when they were read.

    Attributes
    ----------
    frame : DataFrame
        ``premise, hypothesis, label`` (0 entailment ... 2) and ``held_out``, which marks held-out
        pairs.
    left_out : int
        Number of pairs without a label or a text, which are not in the frame.
    unnamed : list of str
        The sources whose labels are numbers without names, so that their order was assumed.
    """

    frame: pd.DataFrame
    left_out: int
    unnamed: list[str]


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
    pairs = _labelled_pairs(data).frame
    return pairs[~pairs["held_out"]].drop(columns="held_out").reset_index(drop=True)


def _labelled_pairs(data: str | Sequence[str] | pd.DataFrame, split: bool = False) -> _Pairs:
    """Read labelled pairs; with ``split``, pairs of files and data sets are held out, too."""
    is_frame = isinstance(data, pd.DataFrame)
    names = [data] if isinstance(data, str) else data
    frames = []
    unnamed = []

    for name in ["the frame"] if is_frame else names:
        table = data if isinstance(data, pd.DataFrame) else _read_source(name)
        renamed = {old: new for old, new in _NAMES.items() if old in table and new not in table}
        frame = table.rename(columns=renamed)
        missing = {"premise", "hypothesis", "label"} - set(frame.columns)
        if missing:
            columns = ", ".join(sorted(missing))
            raise DataError(f"{name}: NLI data lack the columns {columns}; add them.")

        if name != "mnli":
            is_split = split and not is_frame
            frame["held_out"] = is_split and _hash_split(frame["premise"], len(frame) // 2000)

        labels, is_unnamed = _read_labels(frame["label"], name)
        if is_unnamed and (meanings := _find_meanings(labels, frame.drop(columns="label"))):
            labels = labels.map({-1: -1} | meanings)
            is_unnamed = False

        frames.append(frame.assign(label=labels))
        if is_unnamed and name not in ("mnli", "snli"):
            unnamed.append(name)

    every = pd.concat(frames, ignore_index=True)
    pairs = every[every["label"] >= 0].dropna(subset=["premise", "hypothesis"])
    if pairs.empty:
        raise DataError("There are no labelled pairs to train on: give at least one.")

    if pairs["held_out"].all():
        pairs = pairs.assign(held_out=False)

    return _Pairs(pairs.reset_index(drop=True), len(every) - len(pairs), unnamed)


def _read_labels(labels: pd.Series, source: str) -> tuple[pd.Series, bool]:
    """Read labels as positions in ``NLI_LABELS``; a pair without a label gets -1.

    Returns
    -------
    numbers : Series of int
    unnamed : bool
        Whether there are numbers in place of names.

    Raises
    ------
    DataError
        A label is none of the three, such as *not_entailment*; or the numbers do not reach 2, so
        that 1 may mean everything that is not entailed.

    Examples
    --------
    >>> numbers, unnamed = _read_labels(pd.Series(["Entailed", "contradict", None]), "pairs.csv")
    >>> numbers.tolist(), unnamed
    ([0, 2, -1], False)
    """
    texts = labels.astype(object).where(labels.notna(), "").astype(str).str.strip().str.lower()
    numbers = {"": -1, "-": -1}
    unnamed = set()

    for text in set(texts) - set(numbers):
        positions = [i for i, forms in enumerate(_FORMS) if re.fullmatch(forms, text)]
        if not positions and not _NUMBER.fullmatch(text):
            raise DataError(
                f"{source}: the label '{text}' is not {', '.join(NLI_LABELS)} or 0 to 2; use data "
                "with these three classes, or rename it."
            )

        numbers[text] = positions[0] if positions else int(float(text))
        if not positions and numbers[text] >= 0:
            unnamed.add(numbers[text])

    if unnamed and max(unnamed) < 2:
        raise DataError(
            f"{source}: labels without names must be 0, 1 and 2, since two classes cannot teach "
            f"three; write {', '.join(NLI_LABELS)}."
        )
    return texts.map(numbers), bool(unnamed)


def _find_meanings(numbers: pd.Series, columns: pd.DataFrame) -> dict[int, int]:
    """Find the meaning of each number in the column that names the labels, if there is one."""
    for column in columns:
        if not re.search("label|gold|class|text|name", str(column).lower()):
            continue  # such as predictions
        try:
            names, is_unnamed = _read_labels(columns[column], column)
        except DataError:
            continue

        meanings = {pair for pair in zip(numbers, names, strict=True) if min(pair) >= 0}
        if not is_unnamed and len(meanings) == 3 and set(dict(meanings).values()) == {0, 1, 2}:
            return dict(meanings)

    return {}


def _hash_split(texts: Sequence[str], one_in: int = 10) -> list[bool]:
    """Select the texts to hold out, one in ten or fewer, by the SHA-256 of the text."""
    hashes = [hashlib.sha256(str(text).strip().encode()).hexdigest() for text in texts]
    return [int(digest, 16) % max(10, one_in) == 0 for digest in hashes]


def _snli_sample() -> pd.DataFrame:
    """Load SNLI's dev and test pairs, with the columns ``premise, hypothesis, label``."""
    names = ["premise", "hypothesis", "label"]
    tables = []
    for split in ("dev", "test"):
        files = (fetch(f"snli_{name}_{split}") for name in ("s1", "s2", "labels"))
        columns = [file.read_text(encoding="utf-8").splitlines() for file in files]
        if len({len(column) for column in columns}) != 1:
            raise DataError(f"e-SNLI's {split} files differ in length: fetch them again.")

        tables.append(pd.DataFrame(dict(zip(names, columns, strict=True))))

    frame = pd.concat(tables, ignore_index=True)
    for name in names[:2]:
        frame[name] = frame[name].str.replace(r"\s+([.,!?;:])", r"\1", regex=True).str.strip()

    frame["label"] = frame["label"].map(NLI_LABELS.index)
    return frame


def _read_source(name: str) -> pd.DataFrame:
    if name == "mnli":
        return mnli_sample()
    if name == "snli":
        return _snli_sample()
    path = Path(name)
    if path.suffix in (".csv", ".tsv"):
        return text_table(path).replace("", None)

    if path.suffix in (".jsonl", ".parquet"):
        if not path.is_file():
            raise DataError(f"{name} does not exist: name a file of labelled pairs.")

        try:
            if path.suffix == ".jsonl":
                return pd.read_json(path, lines=True)
            metadata = (pq.read_schema(path).metadata or {}).get(b"huggingface", b"{}")
            features = json.loads(metadata).get("info", {}).get("features", {})
            return _name_classes(pd.read_parquet(path), features)
        except (ValueError, OSError) as error:  # including pyarrow's errors
            raise DataError(f"{path} cannot be read ({error}): correct the file.") from None

    datasets = needed("datasets")
    was_saved = any((path / file).is_file() for file in ("state.json", "dataset_dict.json"))
    load = datasets.load_from_disk if was_saved else datasets.load_dataset

    try:
        loaded = load(name)
        splits = loaded if isinstance(loaded, dict) else {"train": loaded}
        tables = [
            _name_classes(dataset.to_pandas(), dataset.features.to_dict())
            for split, dataset in splits.items()
            if split.startswith("train")
        ]
        return pd.concat(tables, ignore_index=True)
    except Exception as error:
        raise DataError(
            f"'{name}' is neither mnli, snli, a .csv/.tsv/.jsonl/.parquet file nor on the hub, nor "
            f"a folder of a dataset with a training part ({type(error).__name__}): check the name "
            "and network."
        ) from error


def _name_classes(frame: pd.DataFrame, features: dict[str, Any]) -> pd.DataFrame:
    """Replace the numbers of classes by the names that a data set's features give them."""
    for column, feature in features.items():
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            frame[column] = frame[column].map(dict(enumerate(feature["names"])))

    return frame


def _measure_accuracy(folder: Path, pairs: pd.DataFrame) -> dict[str, float]:
    """Measure the saved model as a respondent, on held-out pairs."""
    respondent = load_respondent(folder, dtype="float32")
    answers = respondent.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
    correct = int((answers.argmax(axis=1) == pairs["label"].to_numpy()).sum())
    low, high = proportion_confint(correct, len(pairs), method="wilson")
    shares = {"accuracy": correct / len(pairs), "low": low, "high": high}
    return {"held_out": len(pairs)} | {name: round(float(x), 4) for name, x in shares.items()}
