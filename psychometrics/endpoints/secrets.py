"""Keep an endpoint's secrets out of the conditions that pages, notebooks and records show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from ..exceptions import ParameterError
from .endpoint import _json_object

# Conditions that may hold a secret, with the variables that keep them out of sight.
_VARIABLES = {
    "api_key": "OPENAI_API_KEY",
    "base_url": "OPENAI_BASE_URL",
    "headers": "OPENAI_HEADERS",
    "body": "OPENAI_HEADERS",
    "store": "PSYCHOMETRICS_STORE",
}
# Parts of an address's query that are no secrets, for endpoints and for stores.
_PUBLIC = {"api-version", "region", "scheme", "endpoint_override"}
_SECRET_FIELD = re.compile(
    r"""["'][^"']*(key|auth|token|secret|passw|credential)[^"']*["']\s*:\s*["']""", re.IGNORECASE
)


def hide_secrets(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions as they may be shown, with a sign in place of what holds a secret.

    Parameters
    ----------
    conditions : mapping
        Conditions of a mode, and settings of the endpoint and the store.

    Examples
    --------
    >>> hide_secrets({"runs": 2, "base_url": "http://ada:s3cret@host/v1"})
    {'runs': 2, 'base_url': '…'}
    >>> hide_secrets({"headers": '{"api-key": "{api_key}"}'})
    {'headers': '{"api-key": "{api_key}"}'}
    """
    return {name: "…" if _is_secret(name, value) else value for name, value in conditions.items()}


def refuse_secrets(conditions: Mapping[str, Any]) -> None:
    """Refuse passwords and keys in conditions that a page, a notebook or a record would show.

    Parameters
    ----------
    conditions : mapping
        Conditions of a mode, and settings of the endpoint and the store.

    Raises
    ------
    ParameterError
        An address has a user, a password or a query; a header has a value without ``{api_key}``;
        the body has a field such as ``auth``; or there is a key.

    Examples
    --------
    >>> refuse_secrets({"base_url": "http://ada:s3cret@host/v1"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: base_url: a page would show its secret; set ...
    """
    for name, value in conditions.items():
        if _is_secret(name, value):
            raise ParameterError(
                f"{name}: a page would show its secret; set {_VARIABLES[name]} in the environment."
            )


def _is_secret(name: str, value: Any) -> bool:
    if value is None or name not in _VARIABLES:
        return False

    if name == "api_key":
        return True

    if name == "headers":
        texts = map(str, _json_object(name, value).values())
        return not all(re.fullmatch(r"(\w+ )?\{api_key\}", text) for text in texts)

    if name == "body":
        return bool(_SECRET_FIELD.search(str(value)))

    address, _, query = str(value).partition("?")
    names = {part for part, _ in parse_qsl(query, keep_blank_values=True)}
    return "://" in address and ("@" in address or not names <= _PUBLIC)
