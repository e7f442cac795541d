"""Passwords and keys in an endpoint's settings: find them, and mask them wherever texts are shown.

A server may repeat a key in an error or in a reply, and a user may write one into the conditions of
a run. Both are masked before they are stored or printed.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

MASK = "…"
"""The sign that stands for a secret."""
# Names of headers and of fields of a request whose texts are secrets.
_SECRET_NAME = re.compile(r"key|auth|token|secret|passw|credential|cookie", re.IGNORECASE)
# Shortest secret: a shorter text would be masked inside of other words.
_SHORTEST = 4


def find_secrets(settings: Mapping[str, Any]) -> list[str]:
    """Return the texts in an endpoint's settings that must not be shown, longest first.

    These are keys, the user and the password of an address, all headers, fields of ``body`` with a
    name such as ``auth``, and the environment's key. A setting may have a list of values, as in a
    study.

    Examples
    --------
    >>> find_secrets({"base_url": "http://ada:s3cret@host/v1", "headers": {"api-key": "k-123"}})[-1]
    'k-123'
    """
    texts = {os.environ.get("OPENAI_API_KEY")}
    texts |= set(_texts(settings.get("api_key")))
    for address in _texts(settings.get("base_url")):
        texts |= address_secrets(address)

    for field in _fields(settings.get("headers")):
        texts |= {field[1], _credential(*field)}

    texts |= {_credential(*field) for field in _fields(settings.get("body"))}
    texts |= {json.dumps(text)[1:-1] for text in texts if text}  # as a server repeats it in JSON
    secrets = [text for text in texts if text and len(text) >= _SHORTEST]
    return sorted(secrets, key=len, reverse=True)  # one may be part of another


def address_secrets(address: str) -> set[str | None]:
    """Return the user and the password of an address, in all forms that a server may repeat.

    Examples
    --------
    >>> sorted(address_secrets("http://ada:l%40ve@host/v1"))
    ['YWRhOmxAdmU=', 'ada', 'l%40ve', 'l@ve']
    """
    url = urlsplit(address)
    if url.username is None and url.password is None:
        return set()

    user = unquote(url.username or "")
    password = unquote(url.password or "")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {url.username, url.password, user, password, basic}


def mask_secrets(value: Any, secrets: Iterable[str]) -> Any:
    """Replace secrets in a text, or in all texts of a mapping or a list.

    Examples
    --------
    >>> mask_secrets({"said": ["the key is k-123"]}, ["k-123"])
    {'said': ['the key is …']}
    """
    if isinstance(value, Mapping):
        return {name: mask_secrets(part, secrets) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mask_secrets(part, secrets) for part in value)
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value


def mask_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions as they may be shown and stored: without passwords and keys.

    Examples
    --------
    >>> mask_conditions({"base_url": "http://ada:s3cret@host/v1", "temperature": 0.0})
    {'base_url': 'http://ada:…@host/v1', 'temperature': 0.0}
    >>> mask_conditions({"body": '{"auth": "k-123456"}'})
    {'body': '{"auth": "…"}'}
    """
    masked: dict[str, Any] = mask_secrets(conditions, find_secrets(conditions))
    return masked


def _texts(value: Any) -> list[str]:
    """Return a setting's texts: itself, or those of a list of values."""
    values = value if isinstance(value, list | tuple) else [value]
    return [text for text in values if isinstance(text, str)]


def _fields(value: Any) -> list[tuple[str, str]]:
    """Return the names and texts in mappings or their JSON text, at any depth."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []

    if isinstance(value, list | tuple):
        return [field for part in value for field in _fields(part)]
    if not isinstance(value, Mapping):
        return []

    fields = [(str(name), text) for name, text in value.items() if isinstance(text, str)]
    deeper = [part for part in value.values() if isinstance(part, Mapping | list | tuple)]
    return fields + _fields(deeper)


def _credential(name: str, text: str) -> str:
    """Return a field's secret, without the scheme before it, or an empty text."""
    return text.rpartition(" ")[2] if _SECRET_NAME.search(name) else ""
