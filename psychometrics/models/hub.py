"""Models on the hub: the hub's error messages and its local cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ..exceptions import RespondentError
from .model_files import _check_folder


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
        missing = "there is no such folder here, no complete copy in the hub's cache, and"
        kind = "not found"
        if isinstance(error, GatedRepoError):
            why = "the model is only for users who accepted its terms: accept them and log in"
            kind = "gated"
        elif isinstance(error, RevisionNotFoundError):
            why = "the hub has no such revision of the model: check what follows the @"
        elif isinstance(error, (RepositoryNotFoundError, HFValidationError)):
            why = "there is no such folder here and no such model on the hub: check the name"
        elif isinstance(error, OfflineModeIsEnabled):
            why = f"{missing} HF_HUB_OFFLINE forbids a download: unset it, or check the name"
            kind = "network"
        else:
            reason = type(error).__name__
            why = f"{missing} the hub cannot be reached ({reason}): check the name and the network"
            kind = "network"

        raise RespondentError(f"{model}: {why}.", kind=kind) from error
