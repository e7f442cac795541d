"""Write a population's file from a query of the hub, with the models left out and why."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import yaml
from pydantic import ByteSize, TypeAdapter, ValidationError
from tqdm import tqdm

from .. import modes
from ..data import NLI_LABELS
from ..exceptions import ParameterError, RespondentError
from ..models.sources import check_listed
from .population import population_table

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

_CLASSIFYING = ("text-classification", "zero-shot-classification")
"""Tasks of the hub whose models are classifiers."""
_ASKED_FOR = ["cardData", "downloads", "gated", "safetensors", "sha", "siblings", "tags"]
_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2}
_HEADER = """\
# A population, written from a query of the hub; take out, add or correct what you like.
# A respondent is a hub id (with the commit that is asked), a folder beside this file, or an
# embedded member; only `model` is needed. See it as a table: psychometrics population {name}
"""


def new_population(
    path: str | Path,
    task: str | None = None,
    search: Sequence[str] = (),
    top: int = 100,
    min_downloads: int = 0,
    licences: Sequence[str] = (),
    max_memory: str | int | None = None,
    labels: Sequence[str] = (),
) -> pd.DataFrame:
    """Write a population's file from a query of the hub.

    The query's most downloaded models are examined one by one, as the first paper chose its 88
    (Reuben et al. 2024, section 4.1): by their rank, their size in memory, and the names of their
    outputs. Only their config.json is downloaded. The file names each model's commit, so that it
    means the same weights later, and lists the models left out with the kind of reason.

    Parameters
    ----------
    path : str or Path
        A ``.yaml`` file that is not there yet.
    task : str, optional
        The hub's name of a task, such as ``"text-classification"`` or ``"fill-mask"``.
    search : sequence of str
        A model's id holds at least one of these words, such as ``["mnli", "nli"]``.
    top : int
        How many models to examine, the most downloaded (in 30 days) first.
    min_downloads : int
        The ranking ends at the first model with fewer.
    licences : sequence of str
        The hub's names of licences, such as ``["mit", "apache-2.0"]``; by default any, or none.
    max_memory : str or int, optional
        Most memory that the weights may take in float32: ``"24GB"``, or a number of bytes.
    labels : sequence of str
        What the outputs must be named, in any order and case. Where these are entailment, neutral
        and contradiction, *entailed* and the like count, too.

    Returns
    -------
    DataFrame
        The file's table, as :func:`psychometrics.asking.population.population_table` gives it.

    Raises
    ------
    ParameterError
        The file exists already, a value is wrong, or no model passes.
    RespondentError
        The hub cannot be reached. What was fetched stays in the cache, so another try is quick.

    Examples
    --------
    >>> new_population("mine.csv", search=["mnli"])
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: mine.csv must end in .yaml.
    """
    path, licences, labels = Path(path), list(licences), list(labels)
    most = _checked(path, top, min_downloads, max_memory)
    found = [info for info in _listing(task, search, top) if (info.downloads or 0) >= min_downloads]
    classifier = bool(labels) or task in _CLASSIFYING
    chosen, left_out = [], []
    for info in tqdm(found, desc="looking at", unit="model", disable=None):
        entry = _known(info)
        try:
            _examine(info, entry, classifier, licences, most, labels)
            chosen.append(_plain(entry))
        except RespondentError as error:
            if error.kind == "network":  # says nothing of the model
                raise
            left_out.append(_plain(entry) | {"kind": error.kind, "reason": str(error)})
    if not chosen:
        kinds = Counter(row["kind"] for row in left_out).most_common()
        why = ", left out are " + ", ".join(f"{n} for {kind}" for kind, n in kinds)
        raise ParameterError(
            f"The query finds no model that can be taken: {len(found)} were looked at"
            f"{why if kinds else ''}. Ask for more, or for others."
        )
    query = {"task": task, "search": list(search), "top": top, "min_downloads": min_downloads}
    query |= {"licences": licences, "max_memory": most, "labels": labels}
    content = {
        "title": path.stem.replace("_", " ").replace("-", " "),
        "written": time.strftime("%Y-%m-%d"),
        "query": _plain(query),
        "respondents": chosen,
        "left_out": left_out,
    }
    text = yaml.safe_dump(
        content, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    try:
        path.write_text(_HEADER.format(name=path.name) + text, encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {error.strerror}.") from None
    return population_table(path)


def _examine(
    info: ModelInfo,
    entry: dict,
    classifier: bool,
    licences: list[str],
    most: int | None,
    labels: list[str],
) -> None:
    """Complete a model's entry; refuse a model that the query leaves out."""
    if licences and entry["licence"] not in licences:
        wanted = ", ".join(licences)
        raise _no(info, "licence", f"has the licence {entry['licence']}, not {wanted}")
    config, parameters = check_listed(info)
    entry["parameters"] = sum(parameters.values())
    entry["bytes"] = sum(_BYTES.get(kind, 1) * n for kind, n in parameters.items())
    entry["labels"] = _names(config) if classifier else []
    _check_architecture(info, config, classifier)
    if most is not None and 4 * entry["parameters"] > most:
        has, limit = (
            ByteSize(size).human_readable(decimal=True) for size in (4 * entry["parameters"], most)
        )
        raise _no(info, "memory", f"takes {has} in float32, more than {limit}")
    _check_labels(info, entry["labels"], labels)


def _checked(path: Path, top: int, min_downloads: int, max_memory: str | int | None) -> int | None:
    """The bytes of memory, if all parameters can be used."""
    if path.suffix not in (".yaml", ".yml"):
        raise ParameterError(f"{path} must end in .yaml.")
    if path.exists():
        raise ParameterError(f"{path} is there already: name another file, or remove it.")
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}; make it first.")
    if top < 1 or min_downloads < 0:
        raise ParameterError(
            f"top must be 1 or more and min_downloads 0 or more, got {top} and {min_downloads}."
        )
    if max_memory is None:
        return None
    try:
        most = int(TypeAdapter(ByteSize).validate_python(max_memory))
    except ValidationError:
        most = 0
    if most < 1:
        raise ParameterError(f"max_memory is written as 24GB or 500MiB, got {max_memory!r}.")
    return most


def _listing(task: str | None, search: Sequence[str], top: int) -> list[ModelInfo]:
    """The most downloaded models of the hub that the query finds, each once."""
    from huggingface_hub import HfApi

    found = {}
    try:
        for word in search or [None]:
            for info in HfApi().list_models(
                search=word, pipeline_tag=task, sort="downloads", limit=top, expand=_ASKED_FOR
            ):
                found[info.id] = info
    except Exception as error:  # of the network, of the hub, and what it says of a query
        reason = (str(error).strip().splitlines() or [""])[0].rstrip(".:")
        raise RespondentError(
            f"The hub does not list its models ({type(error).__name__}: {reason}): check the "
            "query and the network.",
            kind="network",
        ) from error
    return sorted(found.values(), key=lambda info: (-(info.downloads or 0), info.id))[:top]


def _known(info: ModelInfo) -> dict:
    """What the listing says of a model."""
    licences = [tag.removeprefix("license:") for tag in info.tags or [] if tag[:8] == "license:"]
    return {
        "model": info.id,
        "revision": info.sha,
        "downloads": info.downloads,
        "parameters": info.safetensors.total if info.safetensors else None,
        "bytes": None,
        "licence": licences[0] if licences else None,
        "labels": [],
    }


def _names(config: dict) -> list[str]:
    """Names of a classifier's outputs, in order."""
    named = config.get("id2label")
    if not named and isinstance(config.get("label2id"), dict):
        named = {number: name for name, number in config["label2id"].items()}
    if not isinstance(named, dict) or not all(str(number).isdecimal() for number in named):
        return []
    return [str(named[number]) for number in sorted(named, key=int)]


def _check_architecture(info: ModelInfo, config: dict, classifier: bool) -> None:
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto

    called = config.get("model_type")
    if called not in CONFIG_MAPPING:
        raise _no(info, "architecture", f"is of an architecture that is not known, {called}")
    if not classifier:
        return
    wanted = modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.get(called, ())
    wanted = {wanted} if isinstance(wanted, str) else set(wanted)
    has = config.get("architectures") or []
    if not wanted or (has and not wanted & set(has)):
        kind = ", ".join(map(str, has)) or called
        raise _no(info, "architecture", f"is not a sequence classifier but {kind}")


def _check_labels(info: ModelInfo, names: list[str], wanted: Sequence[str]) -> None:
    plain = sorted(label.strip().lower() for label in wanted)
    if plain == sorted(NLI_LABELS) and len(names) == 3:
        named = modes.nli.labels_from_names(names, info.id) is not None
    else:
        named = not plain or sorted(name.strip().lower() for name in names) == plain
    if not named:
        has = f"names its outputs {', '.join(names)}" if names else "names no outputs"
        raise _no(info, "labels", f"{has}, not {', '.join(wanted)}")


def _no(info: ModelInfo, kind: str, what: str) -> RespondentError:
    return RespondentError(f"{info.id} {what}.", kind=kind)


def _plain(entry: dict) -> dict:
    """What there is to say, without what is empty."""
    return {name: value for name, value in entry.items() if value not in (None, [])}
