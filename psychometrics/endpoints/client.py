"""HTTP requests to a chat endpoint: send one request, and read the response.

Requests are sent with aiohttp instead of the openai client. That client reads replies of any
length, follows redirects, has no total time-out, applies a ``Retry-After`` only to the request that
received it, and uses many times as much processor time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import time
import warnings
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib import request
from urllib.parse import unquote, urlsplit

import aiohttp

from ..exceptions import RespondentError
from ..store.replies import well_formed
from .completions import _NoReply, is_filtered
from .endpoint import Endpoint, _json_object
from .secrets import _find_secrets, _mask_secrets

# Longest ``Retry-After`` in seconds that is obeyed; then the request is tried again.
_LONGEST_WAIT = 300.0
_LARGEST_REPLY = 4 * 2**20
# Most bytes of a response's header, and most headers: gateways send long policies in them.
_LARGEST_HEADER = 2**16
_MOST_HEADERS = 1000
# Codes of errors that the same request would meet again, and of requests that came too soon.
_HOPELESS = re.compile(
    r"quota|billing|credit|payment|invalid|not.?found|auth|permission|forbidden|denied"
    r"|unsupported|context_length",
    re.IGNORECASE,
)
_TOO_SOON = re.compile(r"rate.?limit|too.?many", re.IGNORECASE)


class _Client:
    """Connections to an endpoint.

    Parameters
    ----------
    endpoint : Endpoint
    name : str
        The respondent's name, for error messages.
    """

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self.endpoint = endpoint
        self.held = 0.0  # time before which the endpoint wants no request for this model
        self.where = f"{name} at {endpoint.place}"
        headers = _json_object("headers", endpoint.headers)
        key = endpoint.api_key or ""
        base = urlsplit(endpoint.address)
        user = unquote(base.username or "")
        password = unquote(base.password or "")
        self._headers = {"Accept-Encoding": "identity"}

        if user or password:
            self._headers["Authorization"] = aiohttp.encode_basic_auth(user, password)
        elif key and not any("{api_key}" in text for text in headers.values()):
            self._headers["Authorization"] = f"Bearer {key}"

        self._headers |= {name: text.replace("{api_key}", key) for name, text in headers.items()}

        # The address of a request has the endpoint's query, and no password.
        path = base.path.rstrip("/") + "/chat/completions"
        self._url = base._replace(netloc=base.netloc.rpartition("@")[2], path=path).geturl()
        self._proxy = _find_proxy(endpoint.address)
        addresses = [endpoint.address, self._proxy or ""]
        self.secrets = _find_secrets({"api_key": key, "base_url": addresses, "headers": headers})

    async def __aenter__(self) -> None:
        """Open one HTTP client for all requests, in their event loop."""
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # the only time-out covers the whole exchange
            auto_decompress=False,
            trust_env=False,  # otherwise aiohttp would send passwords from ~/.netrc
            max_line_size=_LARGEST_HEADER,
            max_field_size=_LARGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()

    async def exchange(self, text: str) -> tuple[Any, bytes]:
        """Send a request in JSON, and return the whole response, parsed as JSON and as bytes.

        Raises
        ------
        NoReply
            No complete reply came, or the endpoint asks for the request to be sent again.
        RespondentError
            The endpoint refuses the request.
        """
        response, body = await self._send(text.encode())
        reply = None
        with contextlib.suppress(ValueError, RecursionError):
            reply = json.loads(body)

        self._check(response.status, reply, body, response.headers)
        self.hold(_read_reset(response.headers))
        return reply, body

    def _check(self, status: int, content: object, body: bytes, headers: Mapping[str, str]) -> None:
        """Raise the error that a response's status, or an error in its content, stands for."""
        if is_filtered(content):
            return

        code = _infer_status(status, content)
        if code in (408, 409, 429) or code >= 500:
            after = self._limit_wait(_read_retry_after(headers))
            if code != 429:
                self.hold(after)

            reason = f"status {status}"
            if status != code:
                reason += f" with an error: {self.excerpt(body)}"
            busy = code == 503 or after is not None
            raise _NoReply(reason, after, slow=code == 429, busy=busy)

        if not 200 <= code < 300:
            error = content.get("error", content) if isinstance(content, dict) else None
            message = error.get("message") if isinstance(error, dict) else error
            reason = self.excerpt(message if isinstance(message, str) else body)
            if 300 <= status < 400:
                reason = self.excerpt(
                    f"it redirects ({headers.get('location', 'nowhere')}), but "
                    "prompts and key are not sent there; name that address if you trust it"
                )

            raise RespondentError(
                f"{self.where} refuses the request with status {status}: "
                f"{reason or 'it gives no reason'}"
            )

    def hold(self, seconds: float | None) -> None:
        """Start no request for a number of seconds."""
        if seconds:
            self.held = max(self.held, time.monotonic() + (self._limit_wait(seconds) or 0.0))

    async def _send(self, data: bytes) -> tuple[aiohttp.ClientResponse, bytes]:
        body = bytearray()

        try:
            async with (
                asyncio.timeout(self.endpoint.timeout),
                self._session.post(
                    self._url,
                    allow_redirects=False,
                    proxy=self._proxy,
                    data=data,
                    headers={"Content-Type": "application/json"},
                ) as response,
            ):
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > _LARGEST_REPLY:
                        why = f"a reply of more than {_LARGEST_REPLY:,} bytes"
                        raise _NoReply(why, paid=True, unreadable=True)
        except TimeoutError as error:
            why = f"no complete reply within {self.endpoint.timeout:g} s"
            raise _NoReply(why, paid=True) from error
        except (aiohttp.ClientError, OSError) as error:
            never = isinstance(error, aiohttp.ClientConnectorError)
            message = getattr(error, "message", error)  # the full error would reveal the address
            why = self.excerpt(f"{type(error).__name__} {message}")
            raise _NoReply(why, paid=not never, unreachable=never) from error

        return response, bytes(body)

    def _limit_wait(self, after: float | None) -> float | None:
        """Return the number of seconds that the server asks us to wait, up to the limit."""
        if after is not None and after > _LONGEST_WAIT:
            warnings.warn(
                f"{self.where} asks us to wait {after:g} s; trying again in {_LONGEST_WAIT:g} s.",
                stacklevel=2,
            )
            after = _LONGEST_WAIT
        return after

    def excerpt(self, text: str | bytes) -> str:
        """Return the beginning of the server's text, without the key."""
        text = text.decode("utf-8", "replace") if not isinstance(text, str) else text
        masked: str = _mask_secrets(text, self.secrets)
        return well_formed(" ".join(masked.split()))[:200]


def _infer_status(status: int, content: object) -> int:
    """Return a response's status, or the status that suits an error in its content.

    Gateways report errors with status 200, and a quota that is used up with status 429.

    Examples
    --------
    >>> _infer_status(200, {"choices": []})
    200
    >>> _infer_status(429, {"error": {"code": "insufficient_quota"}})
    400
    >>> codes = 503, "rate_limit_exceeded", None
    >>> [_infer_status(200, {"error": {"code": code}}) for code in codes]
    [503, 429, 500]
    """
    error = content.get("error") if isinstance(content, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    reason = f"{code} {error.get('type')}" if isinstance(error, dict) else str(error)
    if "insufficient_quota" in reason:
        return 400
    if not error or not 200 <= status < 300:
        return status

    if re.fullmatch(r"[45]\d\d", str(code)):
        return int(str(code))
    if _HOPELESS.search(reason):
        return 400
    return 429 if _TOO_SOON.search(reason) else 500


def _find_proxy(address: str) -> str | None:
    """Return the proxy that the environment names for an address, or None for a direct request.

    A client that looks for proxies itself would also send the passwords of ``~/.netrc``.

    Raises
    ------
    RespondentError
        The variable's value is not the address of an HTTP proxy.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"ALL_PROXY": "proxy.test:3128"}, clear=True):
    ...     _find_proxy("https://models.test/v1")
    'http://proxy.test:3128'
    """
    url = urlsplit(address)
    proxies = request.getproxies_environment()
    variable = url.scheme if proxies.get(url.scheme) else "all"
    proxy = proxies.get(variable)
    host = url.netloc.rpartition("@")[2]
    # typeshed omits the function
    if not proxy or request.proxy_bypass_environment(host, proxies):  # type: ignore[attr-defined]
        return None

    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not re.fullmatch(
        r"https?://([^/]*@)?(\[.+\]|[^/@:\[]+)(:[1-9]\d*)?/?", proxy
    ):  # may hold a password
        raise RespondentError(
            f"{variable.upper()}_PROXY: not an HTTP proxy's address; write http://host:port, or "
            f"exclude the host by NO_PROXY={url.hostname}."
        )
    return proxy


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the number of seconds that the server asks us to wait, from a number or a date."""
    value = headers.get("retry-after")
    if value is None:
        return _read_reset(headers)

    try:
        is_date = "," in value
        seconds = parsedate_to_datetime(value).timestamp() if is_date else float(value)
        seconds -= time.time() if is_date else 0.0
    except (TypeError, ValueError, OverflowError):
        return None

    return None if math.isnan(seconds) else max(seconds, 0.0)


def _read_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until requests and tokens are available again, if they are used up."""
    waits = []
    for unit in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{unit}", "").strip() == "0":
            waits.append(_parse_duration(headers.get(f"x-ratelimit-reset-{unit}", "")))

    return max((seconds for seconds in waits if seconds), default=None)


def _parse_duration(text: str) -> float | None:
    """Parse a duration as endpoints write it (12, 1.5s, 250ms, 6m0s), in seconds.

    Examples
    --------
    >>> [_parse_duration(text) for text in ("12", "1.5s", "250ms", "6m0s", "1h2m3s", "soon")]
    [12.0, 1.5, 0.25, 360.0, 3723.0, None]
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        # A number as large as a date is a date: the second at which the limit is reset.
        return float(text) if float(text) < 1e8 else max(float(text) - time.time(), 0.0)
    if not re.fullmatch(r"(\d{1,9}(\.\d{1,9})?(ms|d|h|m|s))+", text):
        return None
    size = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    parts = re.findall(r"([\d.]+)(ms|d|h|m|s)", text)
    return sum(float(number) * size[unit] for number, unit in parts)
