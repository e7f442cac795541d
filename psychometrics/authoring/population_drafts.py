"""Write a population's file from a query of the hub, with the excluded models and the reasons."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import yaml
from pydantic import ByteSize, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError
from tqdm import tqdm

from .. import modes
from ..asking.population import population_table
from ..checks import check_kinds
from ..data import NLI_LABELS, write_text
from ..exceptions import ParameterError, RespondentError, check_file
from ..models.hub import check_listed

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

# Tasks of the hub whose models are classifiers.
_CLASSIFYING = ("text-classification", "zero-shot-classification")
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

    The models with the most downloads are examined one by one, as Reuben et al. (2024, section 4.1)
    chose their 88: by rank, size in memory, and the names of their outputs. Only the config.json of
    each model is downloaded. The file names each model's commit, so that the weights stay the same,
    and lists the excluded models with the kind of reason.

    Parameters
    ----------
    path : str or Path
        A new ``.yaml`` file.
    task : str, optional
        The hub's name of a task, such as ``"text-classification"`` or ``"fill-mask"``.
    search : sequence of str
        Words such as ``["mnli", "nli"]``. A model's id must contain at least one of these words.
    top : int
        Number of models to examine, in order of their downloads in the last 30 days.
    min_downloads : int
        Minimum number of downloads of a model; the ranking ends at the first model with fewer.
    licences : sequence of str
        The hub's names of licences, such as ``["mit", "apache-2.0"]``; by default, a model may have
        any licence or none.
    max_memory : str or int, optional
        The most memory that the weights may take in float32: ``"24GB"``, or a number of bytes.
    labels : sequence of str
        Names of the outputs, in any order and case. If these are entailment, neutral and
        contradiction, variants such as *entailed* are also accepted.

    Returns
    -------
    DataFrame
        The file's table, as :func:`psychometrics.asking.population.population_table` returns it.

    Raises
    ------
    ParameterError
        The file exists already, a value is wrong, or no model meets the requirements.
    RespondentError
        The hub cannot be reached. Fetched files stay in the cache, so a second try is quick.

    Examples
    --------
    >>> new_population("mine.csv", search=["mnli"])
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: mine.csv: end the file's name in .yaml or .yml.
    """
    path = Path(path)
    check_file(path, (".yaml", ".yml"))
    if path.exists():
        raise ParameterError(f"{path} exists already: name another file, or delete this one.")
    numbers = {"top": top, "min_downloads": min_downloads}
    check_kinds(numbers, {"top": PositiveInt, "min_downloads": NonNegativeInt})

    memory = _memory_limit(max_memory)
    query = {"task": task, "search": list(search), "top": top, "min_downloads": min_downloads}
    query |= {"licences": list(licences), "max_memory": memory, "labels": list(labels)}
    listed = _list_models(task, search, top)
    models = [info for info in listed if (info.downloads or 0) >= min_downloads]
    chosen = []
    left_out = []
    for info in tqdm(models, desc="looking at", unit="model", disable=None):
        entry, obstacle = _examine(info, query)
        (left_out if obstacle else chosen).append(_drop_empty(entry | obstacle))

    if not chosen:
        kinds = Counter(row["kind"] for row in left_out).most_common()
        reasons = ", leaving out " + ", ".join(f"{n} for {kind}" for kind, n in kinds)
        raise ParameterError(
            f"The query finds no suitable model among {len(models)}"
            f"{reasons if kinds else ''}: raise `top`, or change the query."
        )

    content = {"title": path.stem.replace("_", " ").replace("-", " ")}
    content |= {"written": time.strftime("%Y-%m-%d"), "query": _drop_empty(query)}
    content |= {"respondents": chosen, "left_out": left_out}
    form = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None}
    text = yaml.safe_dump(content, width=100, **form)
    write_text(path, _HEADER.format(name=path.name) + text)
    return population_table(path)


def _drop_empty(entry: dict) -> dict:
    return {name: value for name, value in entry.items() if value not in (None, [])}


def _examine(info: ModelInfo, query: dict) -> tuple[dict, dict]:
    """Return a model's entry, with the kind of reason and the reason if the query excludes it."""
    licences = [tag.removeprefix("license:") for tag in info.tags or [] if tag[:8] == "license:"]
    entry = {"model": info.id, "revision": info.sha, "downloads": info.downloads}
    entry["parameters"] = info.safetensors.total if info.safetensors else None
    entry["licence"] = licences[0] if licences else None
    base = (info.card_data or {}).get("base_model")
    entry["base"] = base if isinstance(base, str) else None

    try:
        config, counts = check_listed(info)
        entry["parameters"] = sum(counts.values())
        entry["bytes"] = sum(_BYTES.get(kind, 1) * n for kind, n in counts.items())
        classifier = query["labels"] or query["task"] in _CLASSIFYING
        entry["labels"] = _output_names(config) if classifier else []
        obstacle = _obstacle(entry, config, query, classifier)

        if obstacle:
            return entry, {"kind": obstacle[0], "reason": f"{info.id} {obstacle[1]}."}
    except RespondentError as error:
        if error.kind == "network":  # this is not a fault of the model
            raise
        return entry, {"kind": error.kind, "reason": str(error)}

    return entry, {}


def _obstacle(entry: dict, config: dict, query: dict, classifier: bool) -> tuple[str, str] | None:
    """Return the kind of reason for which the query excludes a model, and the reason."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto

    licences = query["licences"]
    memory = query["max_memory"]
    labels = query["labels"]

    if licences and entry["licence"] not in licences:
        return "licence", f"has the licence {entry['licence']}, not {', '.join(licences)}"
    model_type = config.get("model_type")
    architectures = config.get("architectures") or []
    if model_type not in CONFIG_MAPPING:
        return "architecture", f"has an unknown architecture, {model_type}"

    classes = modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.get(model_type, ())
    classes = {classes} if isinstance(classes, str) else set(classes)
    if classifier and not (classes & set(architectures) if architectures else classes):
        kind = ", ".join(map(str, architectures)) or model_type
        return "architecture", f"not a sequence classifier but {kind}"

    size = 4 * entry["parameters"]
    if memory is not None and size > memory:
        sizes = ByteSize(size).human_readable(True), ByteSize(memory).human_readable(True)
        return "memory", "takes {} in float32, more than {}".format(*sizes)

    plain = sorted(label.strip().lower() for label in labels)
    if plain == sorted(NLI_LABELS) and len(entry["labels"]) == 3:
        has_labels = modes.nli_labels.labels_from_names(entry["labels"], entry["model"]) is not None
    else:
        has_labels = not plain or sorted(name.strip().lower() for name in entry["labels"]) == plain

    names = ", ".join(entry["labels"]) or "nothing"
    return None if has_labels else ("labels", f"names its outputs {names}, not {', '.join(labels)}")


def _memory_limit(max_memory: str | int | None) -> int | None:
    """Return the memory limit in bytes."""
    try:
        memory = TypeAdapter(ByteSize | None).validate_python(max_memory)
        return memory if memory is None else int(memory)
    except ValidationError:
        form = "max_memory must be written as 24GB or 500MiB"
        raise ParameterError(f"{form}, got {max_memory!r}.") from None


def _list_models(task: str | None, search: Sequence[str], top: int) -> list[ModelInfo]:
    """Return the hub's most downloaded models that match the query, each once."""
    from huggingface_hub import HfApi, constants, get_session

    models = {}
    try:
        get_session().head(constants.ENDPOINT)  # fails at once; the list is tried for 24 seconds
        for word in search or [None]:
            for info in HfApi().list_models(
                search=word, pipeline_tag=task, sort="downloads", limit=top, expand=_ASKED_FOR
            ):
                models[info.id] = info
    except Exception as error:  # a fault of the network, the hub or the query
        reason = (str(error).strip().splitlines() or [""])[0].rstrip(".:")
        raise RespondentError(
            f"The hub did not list its models ({type(error).__name__}: {reason}): try again later.",
            kind="network",
        ) from error

    return sorted(models.values(), key=lambda info: (-(info.downloads or 0), info.id))[:top]


def _output_names(config: dict) -> list[str]:
    """Return the names of a classifier's outputs, in order."""
    names = config.get("id2label")
    if not names and isinstance(config.get("label2id"), dict):
        names = {number: name for name, number in config["label2id"].items()}
    if not isinstance(names, dict) or not all(str(number).isdecimal() for number in names):
        return []
    return [str(names[number]) for number in sorted(names, key=int)]
