"""Decide whether a model answers on this machine or at an endpoint."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..endpoints.endpoint import Endpoint
from ..exceptions import RespondentError
from ..models.sources import Source, find
from ..store import key_of
from .mode import Identity


def model_here(respondent: str | Path) -> Source | None:
    """Find the local model with a given name; return None if an endpoint has the model.

    Raises
    ------
    RespondentError
        The local model is unusable, or there is neither a model nor an endpoint.
    """
    no_endpoint = _find_endpoint_error()
    name = str(respondent).strip()
    is_path = isinstance(respondent, Path)
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # a long name, an unknown home
        is_path |= Path(name).expanduser().exists()

    if "/" in name and not is_path and no_endpoint is None:
        return None  # an endpoint, if there is one, gets a hub's id

    try:
        return find(respondent)
    except RespondentError as error:
        if is_path or "/" in name or not str(error).startswith("There is no respondent"):
            raise
        if no_endpoint is None:
            return None

        reason = str(no_endpoint).rstrip(".")
        raise RespondentError(
            f"{reason}, or name a model on this machine; {respondent!r} is not one."
        ) from no_endpoint


def _identify_at_endpoint(respondent: str | Path, endpoint: Endpoint | None, mode: str) -> Identity:
    """Return the identity of an endpoint's model."""
    model = str(respondent)
    name = (endpoint or Endpoint()).resolved().respondent_id(model)
    return Identity(name, "endpoint", model, mode=mode, fingerprint=key_of("chat-1", name))


def _find_endpoint_error() -> RespondentError | None:
    """Return the error of an environment that names no endpoint; None if it names one."""
    try:
        Endpoint().resolved()
    except RespondentError as error:
        return error
    return None
