"""Passwords and keys in an endpoint's settings: find them, and mask or refuse them.

A server may repeat a key in an error or in a reply, and a user may write one into the conditions of
a run. Both are masked before they are stored or printed; a page refuses them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from ..exceptions import ParameterError
from .endpoint import _json_object

MASK = "…"
"""The sign that stands for a secret."""
# Settings that may hold a secret, with the variables that keep them out of sight.
_VARIABLES = {
    "api_key": "OPENAI_API_KEY",
    "base_url": "OPENAI_BASE_URL",
    "headers": "OPENAI_HEADERS",
    "store": "PSYCHOMETRICS_STORE",
}
# Parts of an address's query that are no secrets, for endpoints and for stores.
_PUBLIC = {"api-version", "region", "scheme", "endpoint_override"}
# A header that names the key instead of holding it.
_PLACEHOLDER = re.compile(r"(\w+ )?\{api_key\}")
# Names of headers with a secret after a word such as Bearer.
_SECRET_NAME = re.compile(r"key|auth|token|secret|passw|credential|cookie", re.IGNORECASE)
# Shortest secret that is masked in other texts: a shorter one would be found in many words.
_SHORTEST = 4
# Shortest secret that is masked in replies, which may hold the placeholders that local servers take
# for a key, such as "none".
_SHORTEST_IN_REPLY = 6


def _find_secrets(settings: Mapping[str, Any], shortest: int = _SHORTEST) -> list[str]:
    """Return the texts in the settings of an endpoint and a store that must not be shown.

    These are keys, the user, the password and the query of an address, and all headers but
    ``{api_key}``; the longest is first. A setting may have a list of values, as in a study.

    Examples
    --------
    >>> _find_secrets({"api_key": "sk-12345", "headers": {"Authorization": "Bearer k-123"}})
    ['Bearer k-123', 'sk-12345', 'k-123']
    """
    texts: set[str | None] = {*_list_texts(settings.get("api_key"))}
    for address in _list_texts(settings.get("base_url")) + _list_texts(settings.get("store")):
        texts |= _find_address_secrets(address)

    for name, text in _list_headers(settings.get("headers")):
        if not _PLACEHOLDER.fullmatch(text):
            texts.add(text)
            if _SECRET_NAME.search(name):
                texts |= {*text.split()[-1:]}  # also without a scheme, such as Bearer

    texts |= {json.dumps(text)[1:-1] for text in texts if text}  # as a server repeats it in JSON
    secrets = [text for text in texts if text and len(text) >= shortest]
    return sorted(secrets, key=len, reverse=True)  # one may be part of another


def _find_address_secrets(address: str) -> set[str | None]:
    """Return the user, the password and the query of an address, in all forms of a server's text.

    Examples
    --------
    >>> sorted(_find_address_secrets("http://ada:l%40ve@host/v1?key=k-123&api-version=1"))
    ['YWRhOmxAdmU=', 'ada', 'k-123', 'l%40ve', 'l@ve']
    """
    if "://" not in address:
        return set()
    try:
        url = urlsplit(address)
    except ValueError:  # not an address, so any part may be the password
        return {address}

    if "@" in url.path + url.fragment:  # a password with a slash or # that is not quoted
        return {address}

    texts: set[str | None] = set()
    for field in url.query.split("&"):
        name, _, value = field.partition("=")
        if name not in _PUBLIC:
            texts |= {value or name, unquote(value or name)}

    if url.username is not None or url.password is not None:
        user = unquote(url.username or "")
        password = unquote(url.password or "")
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        texts |= {url.username, url.password, user, password, basic}
    return texts


def _mask_secrets(value: Any, secrets: Iterable[str]) -> Any:
    """Replace secrets in a text, or in all texts of a mapping or a list.

    Examples
    --------
    >>> _mask_secrets({"said": ["the key is k-123"]}, ["k-123"])
    {'said': ['the key is …']}
    """
    if isinstance(value, Mapping):
        return {name: _mask_secrets(text, secrets) for name, text in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mask_secrets(text, secrets) for text in value)
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
    return value


def mask_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions as they may be shown and stored: without passwords and keys.

    Parameters
    ----------
    conditions : mapping
        Conditions of a mode, and settings of the endpoint and the store.

    Examples
    --------
    >>> mask_conditions({"base_url": "http://ada:s3cret@host/v1", "temperature": 0.0})
    {'base_url': 'http://…:…@host/v1', 'temperature': 0.0}
    >>> mask_conditions({"headers": '{"api-key": "{api_key}"}'})
    {'headers': '{"api-key": "{api_key}"}'}
    """
    masked = dict(conditions)
    for name in _VARIABLES.keys() & masked.keys():
        secrets = _find_secrets({name: masked[name]}, shortest=1)
        masked[name] = _mask_secrets(masked[name], secrets)

    return masked


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
        or there is a key.

    Examples
    --------
    >>> refuse_secrets({"base_url": "http://ada:s3cret@host/v1"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: base_url: a page would show its secret; set ...
    """
    for name in _VARIABLES.keys() & conditions.keys():
        if name == "headers":
            _json_object(name, conditions[name])  # what is not JSON may be a secret
        if _find_secrets({name: conditions[name]}, shortest=1):
            raise ParameterError(
                f"{name}: a page would show its secret; set {_VARIABLES[name]} in the environment."
            )


def _list_texts(value: Any) -> list[str]:
    """Return a setting's texts: itself, or those of a list of values."""
    values = value if isinstance(value, list | tuple) else [value]
    return [text for text in values if isinstance(text, str)]


def _list_headers(headers: Any) -> list[tuple[str, str]]:
    """Return the names and texts of headers: a mapping, its JSON text, or a list of either."""
    if isinstance(headers, list | tuple):
        return [header for each in headers for header in _list_headers(each)]
    try:
        content = _json_object("headers", headers)
    except ParameterError:
        return []
    return [(str(name), text) for name, text in content.items() if isinstance(text, str)]
