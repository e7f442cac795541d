"""The files of a model's folder: check their completeness and safety, and digest them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..exceptions import IncompleteModelError, RespondentError
from ..files import digest_text, known_sha256

# Files that hold a tokenizer's vocabulary; a model needs one of these.
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model",
                    "sentencepiece.bpe.model", "tokenizer.model")  # fmt: skip
# Files besides the weights that determine a model's answers.
_SETTINGS_FILES = {
    "config.json",
    "adapter_config.json",
    "adapter_model.safetensors",  # transformers adds it to a whole model in the same folder
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "recipe.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    *_TOKENIZER_FILES,
}
_UNSAFE_WEIGHTS = re.compile(r"(pytorch_|tf_|flax_)?model\b.*\.(bin|pt|pth|ckpt|h5|msgpack)")
_WHOLE_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


def _is_adapter(files: set[str]) -> bool:
    """Return whether a folder with the given files holds an adapter, not a whole model.

    In an adapter's folder, config.json only names the labels of the head.
    """
    return "adapter_config.json" in files and not files & set(_WHOLE_WEIGHTS)


def _check_folder(name: str, folder: Path) -> None:
    """Refuse a folder without a required file, with unsafe files, or with code of its own."""
    _check_settings(name, folder)
    _check_files(name, {path.name for path in folder.iterdir()})
    missing = [path.name for path in _weight_files(name, folder) if not path.is_file()]
    if missing:
        raise IncompleteModelError(
            f"{name} lacks the weight file {missing[0]}: copy the folder again."
        )

    config = read_json(name, folder / "config.json")
    if "auto_map" in config:
        from transformers import CONFIG_MAPPING

        if config.get("model_type") not in CONFIG_MAPPING:
            raise RespondentError(
                f"{name} needs program code of its own (auto_map in config.json), which is never "
                "run: choose a model of an architecture that transformers knows.",
                kind="remote code",
            )


def _check_settings(name: str, folder: Path) -> None:
    """Refuse pipes and folders named like settings files, since reading them might never end."""
    settings = [path for path in sorted(folder.iterdir()) if path.name in _SETTINGS_FILES]
    settings += sorted(folder.glob("additional_chat_templates/*.jinja"))
    for path in settings:
        if not path.is_file():
            raise IncompleteModelError(
                f"{name} has {path.name}, which is not a file: copy the folder again."
            )


def _check_files(name: str, files: set[str]) -> None:
    """Refuse a model by the names of its files alone."""
    unsafe = sorted(filter(_UNSAFE_WEIGHTS.fullmatch, files))
    kind = "incomplete"

    if "config.json" not in files and "adapter_config.json" in files:
        kind = "architecture"
        why = (
            "holds an adapter, not a whole model: merge it into its base (peft's "
            "merge_and_unload) and save the result with save_pretrained"
        )
    elif "config.json" not in files:
        why = "has no config.json: name a folder written by save_pretrained"
    elif not files & set(_WHOLE_WEIGHTS):
        kind = "no safetensors"
        why = "has no weights (model.safetensors): save the model there with save_pretrained"
        if unsafe:
            why = (
                f"holds its weights only as {unsafe[0]}, which can carry program code or needs "
                "another library: convert it to model.safetensors (load it where you trust it and "
                "call save_pretrained)"
            )
    elif not files & set(_TOKENIZER_FILES):
        why = "has no tokenizer: save its tokenizer there with save_pretrained"
    elif files & set(_TOKENIZER_FILES) == {"vocab.json"} and "merges.txt" not in files:
        why = "has the vocab.json of its tokenizer without merges.txt: copy merges.txt there, too"
    else:
        return

    raise RespondentError(f"{name} {why}.", kind=kind)


def _weight_files(name: str, folder: Path) -> list[Path]:
    """Return the safetensors files that hold a model's weights, whole or in shards."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file() or not index.is_file():
        return [folder / "model.safetensors"]

    weights = read_json(name, index).get("weight_map")
    shards = list(weights.values()) if isinstance(weights, dict) else []
    if not shards or not all(isinstance(s, str) and re.fullmatch(r"[^/\\]+", s) for s in shards):
        raise IncompleteModelError(
            f"{name}, {index.name}: lists no file names; copy the file again."
        )

    unsafe = [shard for shard in shards if not shard.endswith(".safetensors")]
    if unsafe:
        raise RespondentError(
            f"{name}, {index.name}: names {unsafe[0]}, which is not a safetensors file and "
            "can carry program code; save the model again with save_pretrained.",
            kind="no safetensors",
        )

    return [folder / shard for shard in sorted(set(shards))]


def read_json(name: str, path: Path, kind: type = dict) -> Any:
    """Read a JSON object (or list) from a file in a model's folder.

    Raises
    ------
    RespondentError
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise IncompleteModelError(
            f"{name}, {path.name}: not readable as JSON; copy the file again."
        ) from error

    if not isinstance(content, kind):
        expected = "object" if kind is dict else "list"
        raise IncompleteModelError(
            f"{name}, {path.name}: is not a JSON {expected}; copy the file again."
        )

    return content


def _check_token_limit(name: str, limit: object) -> None:
    """Refuse a tokenizer whose greatest number of tokens is not a number of at least 1."""
    if not isinstance(limit, int | float) or limit < 1:
        raise IncompleteModelError(
            f"{name}, tokenizer_config.json: model_max_length is {limit!r}, not a number of "
            "tokens; correct this value."
        )


def _folder_digest(folder: Path, weights: list[Path], left_out: Iterable[str] = ()) -> str:
    """Return a digest of all files in a folder that determine a model's answers."""
    settings = [folder / file for file in sorted(_SETTINGS_FILES) if (folder / file).is_file()]
    settings = [path for path in settings if path not in weights]
    settings += sorted(folder.glob("additional_chat_templates/*.jinja"))
    return digest_text(
        *(f"{path.name}={known_sha256(path)}" for path in settings + weights), *left_out
    )
