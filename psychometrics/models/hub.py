"""Models on the hub: the hub's error messages, listings, and local cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exceptions import IncompleteModelError, RespondentError
from .model_files import _check_config, _check_files, _check_folder, read_json

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo


_GATED = "the model is only for users who accepted its terms: accept them and log in"


def check_listed(info: ModelInfo) -> tuple[dict[str, Any], Mapping[Any, int]]:
    """Refuse an unusable model on the hub without downloading its weights.

    Parameters
    ----------
    info : huggingface_hub.ModelInfo
        The hub's description of a model, with ``gated``, ``sha``, ``siblings`` and ``safetensors``.

    Returns
    -------
    config : dict
        The model's config.json.
    parameters : mapping
        Number of parameters of each type, such as ``{"F32": 109482240}``; if the hub has not
        counted them, they are read from the headers of the weight files.

    Raises
    ------
    RespondentError
        A required file is missing or unsafe, the model is gated, or the hub cannot be reached.
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
            raise IncompleteModelError(
                f"{info.id} has an unreadable safetensors file: choose another."
            ) from error

    return config, weights.parameter_count


def _only_snapshot(model: str) -> str | None:
    """Return the commit of a hub model in the local cache, if exactly one is there.

    A program that asks for a specific commit does not record which commit is the latest
    (``refs/main``).
    """
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=model, repo_type="model")
    commits = [path.name for path in folder.glob("snapshots/*") if path.is_dir()]
    return commits[0] if len(commits) == 1 else None


def _cached_folder(model: str, commit: str) -> Path | None:
    """Return the folder of a hub model in the local cache, if it is complete."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(model, "config.json", revision=commit)
    if not isinstance(config, str):
        return None

    try:
        _check_folder(model, Path(config).parent)
    except RespondentError:
        return None  # a stopped download, or files not requested yet

    return Path(config).parent


@contextlib.contextmanager
def _hub_errors(model: str) -> Iterator[None]:
    """Turn an error of the hub into one sentence."""
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
        missing = "there is no such folder here, no complete copy in the hub's cache, and"
        if isinstance(error, GatedRepoError):
            why = _GATED
            kind = "gated"
        elif isinstance(error, RevisionNotFoundError):
            why = "the hub has no such revision of the model: check what follows the @"
            kind = "not found"
        elif isinstance(error, (RepositoryNotFoundError, HFValidationError)):
            why = "there is no such folder here and no such model on the hub: check the name"
            kind = "not found"
        elif isinstance(error, OfflineModeIsEnabled):
            why = f"{missing} HF_HUB_OFFLINE forbids a download: unset it, or check the name"
        else:
            reason = type(error).__name__
            why = f"{missing} the hub cannot be reached ({reason}): check the name and the network"

        raise RespondentError(f"{model}: {why}.", kind=kind) from error
