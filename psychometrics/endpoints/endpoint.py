"""Addresses of chat models, with the rules for waiting and the budget."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlsplit

from pydantic import AnyHttpUrl, Field, FiniteFloat, InstanceOf, NonNegativeInt, TypeAdapter

from ..checks import check_kinds
from ..exceptions import ParameterError, RespondentError

_POSITIVE = Annotated[FiniteFloat, Field(gt=0)]
_FROM_ZERO = Annotated[FiniteFloat, Field(ge=0)]
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADERS_OF_THE_BODY = ("content-length", "content-encoding", "transfer-encoding")


@dataclass(frozen=True)
class Endpoint:
    """Addresses of chat models, with the rules for waiting and the budget.

    The settings of an endpoint are not part of an answer's key: answered questions are not asked
    again when these settings change.

    Parameters
    ----------
    base_url, api_key : str, optional
        Address and key; by default the environment's ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. An
        address may have a query, such as Azure's ``?api-version=2024-10-21``, which is sent with
        every request.
    headers : mapping or its JSON text, optional
        Headers sent with each request, by default the environment's ``OPENAI_HEADERS``. If a header
        contains ``{api_key}``, the key is sent only in this header: ``{"api-key": "{api_key}"}``
        for Azure. No other password is sent: ``~/.netrc`` is not read. Proxies are taken from
        ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY``, ``NO_PROXY``.
    timeout : float
        Time limit for a complete reply, in seconds.
    concurrency : int
        Maximum number of simultaneous requests, over all questionnaires of a model; several hundred
        are fine.
    retries : int
        Number of times that a request without a reply (no connection, a time-out, status 408, 409
        or 5xx) is sent again. A request with an unreadable reply is repeated at most once. An
        endpoint that has never replied is given up after three attempts at a request, unless it
        reports that it is busy (503, ``Retry-After``). A request that came too soon (429) is sent
        again as long as the endpoint replies to other requests.
    patience : float
        Number of seconds after which an endpoint that refuses every request as coming too soon
        (429) is given up; ``timeout`` is added while other requests are under way.
    pause : float
        First pause before a request is sent again, in seconds; it doubles each time, up to a
        minute. A ``Retry-After`` replaces the first pause and is the least of the later ones. All
        requests to a model wait if the ``x-ratelimit`` headers say that its limit is used up.
    name : str
        A prefix for the models' names, in case a different endpoint has a model of the same name.
    price_in, price_out : float, optional
        Prices per million tokens of requests, cached or not, and of replies, in any currency.
    max_cost : float, optional
        The budget for one call of ``ask``, regardless of earlier calls. A request is sent only if
        the budget covers its greatest cost, past spending, and the greatest cost of the requests
        under way; this needs ``max_tokens``. A request that does not fit gets the status
        ``unasked`` and is sent in the next call.
    dry_run : bool
        Whether to send nothing: questions without a stored answer are ``unasked``, and the summary
        estimates the number of requests and tokens.

    Raises
    ------
    ParameterError
        The address is invalid, the key cannot be sent, a number is out of range, or a budget has no
        prices.

    Examples
    --------
    >>> Endpoint("http://127.0.0.1:8000/v1", timeout=30).concurrency
    4
    """

    base_url: str | None = field(default=None, repr=False)  # it may hold a password
    api_key: str | None = field(default=None, repr=False)
    timeout: _POSITIVE = 120.0
    concurrency: Annotated[int, Field(gt=0, le=10_000)] = 4
    retries: NonNegativeInt = 5
    pause: _FROM_ZERO = 1.0
    name: str = ""
    price_in: _FROM_ZERO | None = None
    price_out: _FROM_ZERO | None = None
    max_cost: _FROM_ZERO | None = None
    dry_run: bool = False
    patience: _FROM_ZERO = 300.0
    headers: Mapping[str, str] | str | None = field(default=None, repr=False, hash=False)

    def __post_init__(self) -> None:
        if self.base_url is not None and not _is_address(self.base_url):
            raise ParameterError(
                "base_url: not an address (not shown, as it may hold a password); "
                "write http://host/v1 or https://…, and signs such as @ in a password as %40."
            )

        hints = get_type_hints(type(self), include_extras=True)
        # what may hold a password is checked below, where no message shows it
        public = [name for name, setting in self.__dataclass_fields__.items() if setting.repr]
        check_kinds(vars(self), {name: hints[name] for name in public})
        headers = _json_object("headers", self.headers)
        for header, text in headers.items():
            if not (_is_sendable(header) and _is_sendable(text)):
                advice = "write names and values as ASCII text."
                raise ParameterError(f"headers cannot be sent: {advice}")
            if not _HEADER_NAME.fullmatch(header):
                raise ParameterError(
                    f"headers: {header!r} is not a name; use letters, digits, hyphens."
                )
            if header.lower() in _HEADERS_OF_THE_BODY:
                raise ParameterError(f"headers: {header} is set by each request; leave it out.")

        object.__setattr__(self, "headers", headers)

        if self.max_cost is not None and None in (self.price_in, self.price_out):
            raise ParameterError("max_cost needs price_in and price_out, per million tokens.")
        if self.api_key is not None and not _is_sendable(self.api_key):
            raise ParameterError("api_key has characters that cannot be sent: copy the key again.")

    @property
    def address(self) -> str:
        """The address of a resolved endpoint."""
        return self.base_url or ""

    @property
    def place(self) -> str:
        """The address without its password and query, for errors and the store."""
        url = urlsplit(self.address)
        return url._replace(netloc=url.netloc.rpartition("@")[2], query="").geturl()

    def respondent_id(self, model: str) -> str:
        """Return the name that one of the endpoint's models has as a respondent.

        Examples
        --------
        >>> Endpoint(name="here").respondent_id("llama"), Endpoint().respondent_id("llama")
        ('here/llama', 'llama')
        """
        return f"{self.name}/{model}" if self.name else model

    @classmethod
    def gathered(cls, conditions: Mapping[str, Any]) -> dict[str, Any]:
        """Move an endpoint's settings from conditions into ``endpoint``.

        Examples
        --------
        >>> Endpoint.gathered({"role": "hero", "timeout": 30.0})["endpoint"].timeout
        30.0
        """
        settings = dict(conditions)
        names = [name for name in cls.__dataclass_fields__ if name in settings]
        if not names:
            return settings

        check_kinds({"endpoint": None} | settings, {"endpoint": InstanceOf[Endpoint] | None})
        changes = {name: settings.pop(name) for name in names}
        endpoint = settings.get("endpoint") or cls()
        return settings | {"endpoint": dataclasses.replace(endpoint, **changes)}

    def resolved(self) -> Endpoint:
        """Return the endpoint with the environment's address, key and headers if it has none.

        Raises
        ------
        RespondentError
            Neither the settings nor the environment gives an address.
        ParameterError
            The environment's address, key or headers are invalid.
        """
        url = self.base_url or os.environ.get("OPENAI_BASE_URL")
        key = self.api_key or os.environ.get("OPENAI_API_KEY")
        if not url and not key:
            raise RespondentError(
                "There is no endpoint: type `export OPENAI_BASE_URL=http://localhost:8000/v1` for "
                "a server of yours, or `export OPENAI_API_KEY=KEY` for OpenAI's."
            )
        url = (url or "https://api.openai.com/v1").rstrip("/")
        headers = self.headers or os.environ.get("OPENAI_HEADERS")
        return dataclasses.replace(self, base_url=url, api_key=key, headers=headers)


def _is_address(address: str) -> bool:
    """Return whether an address can be used, and shown without its password."""
    try:
        TypeAdapter(AnyHttpUrl).validate_python(address, strict=True)
        url = urlsplit(address)
        (url.hostname or "").encode("idna")
    except ValueError:
        return False

    # The rest of a password after its own @ would be taken for a host, and shown.
    has_two_signs = "@" in url.netloc and address.count("@") > 1
    return bool(url.hostname) and not has_two_signs


def _is_sendable(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isprintable()


def _json_object(name: str, value: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Read names and values from a mapping or from its JSON text."""
    try:
        content = json.loads(value) if isinstance(value, str) else dict(value or {})
    except (TypeError, ValueError):
        content = None
    if not isinstance(content, dict):  # not shown, since it may hold a key
        raise ParameterError(f"""{name} must be names and values in JSON: '{{"name": "value"}}'.""")
    return content
