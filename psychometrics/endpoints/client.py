"""The HTTP side of a chat endpoint: send one request, and read what comes back.

Requests are sent with aiohttp and not with the openai client. That client reads a reply to its end
however long it is, follows redirects, takes no total time-out, lets only the request that got a
``Retry-After`` obey it, and takes the processor many times as long.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import re
import time
import warnings
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit

import aiohttp

from ..exceptions import RespondentError
from .endpoint import Endpoint
from .proxies import proxy_for

# Most seconds for which a ``Retry-After`` is obeyed; after them the request is tried again.
_LONGEST_WAIT = 300.0
# Share of recent requests that may come too soon without all others being slowed down.
_ISOLATED = 0.2
# Most seconds between two requests to an endpoint that refuses them as coming too soon.
_LONGEST_GAP = 10.0
_LARGEST_REPLY = 4 * 2**20
# Most bytes of a response's header, and most headers: gateways put whole policies into them.
_LARGEST_HEADER = 2**16
_MOST_HEADERS = 1000
# Most that probabilities of distinct tokens may sum to: 1, and what rounding in bfloat16 adds.
_MOST_PROBABILITY = 1.02


class _Limits:
    """The limits that an Endpoint states, which all models at its address share."""

    def __init__(self, endpoint: Endpoint) -> None:
        # A little slower than is allowed, as requests do not arrive as evenly as they are sent.
        self.gap = 61.0 / endpoint.requests_per_minute if endpoint.requests_per_minute else 0.0
        self.tokens = endpoint.tokens_per_minute
        self.next = 0.0  # when the next request may begin, and when by the limit of tokens
        self.next_tokens = 0.0
        self.largest = 0  # most tokens of a request so far

    def begin(self, now: float, tokens: int) -> None:
        """Count a request that begins now."""
        self.next = now + self.gap
        if self.tokens:
            self.largest = max(self.largest, min(tokens, int(self.tokens)))
            self.next_tokens = max(self.next_tokens, now) + self._seconds(tokens)

    def settle(self, estimated: int, actual: int) -> None:
        """Correct the tokens of a request once they are known."""
        if self.tokens:
            self.next_tokens -= self._seconds(estimated) - self._seconds(actual)

    def _seconds(self, tokens: int) -> float:
        # No minute may exceed the limit, not even with a request that begins in its last second.
        return 61.0 * tokens / max(self.tokens - self.largest, min(tokens, self.tokens), 1.0)


class _Pace:
    """When the next request to a model may begin, by stated limits, headers and refusals."""

    def __init__(self, limits: _Limits) -> None:
        self.limits = limits
        self.next = 0.0  # when the next request may begin, by our rate
        self.held = 0.0  # and by what the endpoint asked for
        self.rate: float | None = None  # requests per second, None while nothing was refused

        now = time.monotonic()
        self.cut_at = now  # when the rate was last cut, and when it last grew
        self.grown_at = now
        self.since = now  # when the counts of requests and replies began
        self.sent = 0
        self.heard = 0
        self.refused = 0.0  # share of the recent requests, each counting a tenth less than the next

    def left(self) -> float:
        """Seconds until a request may begin."""
        times = self.next, self.held, self.limits.next, self.limits.next_tokens
        return max(times) - time.monotonic()

    def begin(self, tokens: int) -> None:
        """Count a request that begins now."""
        now = time.monotonic()
        self.sent += 1
        self.next = now + (1 / self.rate if self.rate else 0.0)
        self.limits.begin(now, tokens)

    def hold(self, seconds: float) -> None:
        """Begin nothing for so long."""
        self.held = max(self.held, time.monotonic() + seconds)

    def too_fast(self, begun: float, after: float | None) -> None:
        """Slow down if refusals are frequent, once for all requests that were under way.

        A rare refusal comes from a busy endpoint, not from our rate: only its own request waits.
        An endpoint that says when to come again is not asked more slowly than that.
        """
        if begun < self.cut_at:
            return

        self.refused += 0.1 * (1 - self.refused)
        if self.refused < _ISOLATED:
            return

        self.hold(after or 0.0)
        now = time.monotonic()
        seconds = max(now - self.since, 0.05)
        rate = 0.7 * self.sent / seconds

        if self.heard:
            rate = min(rate, self.heard / seconds)

        if self.rate:
            rate = min(rate, 0.7 * self.rate)

        longest = _LONGEST_GAP if after is None else min(max(after, 0.1), _LONGEST_GAP)
        self.rate = max(rate, 1 / longest)

        self.cut_at = self.since = self.grown_at = now
        self.sent = self.heard = 0
        self.refused = 0.0
        self.next = max(self.next, now + 1 / self.rate)

    def replied(self) -> None:
        """Speed up again: by a twentieth with each reply, or by a tenth with each second."""
        self.heard += 1
        self.refused *= 0.9
        if self.rate is None:
            return

        now = time.monotonic()
        waited = now - self.grown_at
        self.rate *= 1 + min(0.5 * waited, max(0.05, 0.1 * waited), 1.0)
        self.grown_at = now

        if self.rate > 10_000:
            self.rate = None


@functools.lru_cache(maxsize=64)
def _limits_of(endpoint: Endpoint) -> _Limits:
    return _Limits(endpoint)


@functools.lru_cache(maxsize=1024)
def _pace_of(endpoint: Endpoint, model: str) -> _Pace:
    """The pace of a model at an endpoint, which lasts from one questionnaire and call to the next.

    Endpoints limit each model by itself, so that what one was refused says nothing of another.
    """
    return _Pace(_limits_of(endpoint))


class NoReply(Exception):
    """A request had no reply and may be sent again.

    Attributes
    ----------
    after : float, optional
        Seconds to wait, if the endpoint said so.
    slow : bool
        The request came too soon.
    paid : bool
        The endpoint may have replied, so the request may cost something.
    unreachable : bool
        There was no connection.
    busy : bool
        The endpoint says that it will reply later.
    unreadable : bool
        The endpoint replied, but not with a completion, and is likely to do so again.
    status : str
        The status of the answers that there are not.
    """

    def __init__(
        self,
        why: str,
        after: float | None = None,
        slow: bool = False,
        paid: bool = False,
        unreachable: bool = False,
        busy: bool = False,
        unreadable: bool = False,
        status: str = "no_reply",
    ) -> None:
        super().__init__(why)
        self.after = after
        self.slow = slow
        self.paid = paid
        self.unreachable = unreachable
        self.busy = busy
        self.unreadable = unreadable
        self.status = status


class Client:
    """Connections to an endpoint.

    Parameters
    ----------
    endpoint : Endpoint
    name : str
        The respondent's, for error messages.
    """

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self.endpoint, self.pace = endpoint, _pace_of(endpoint, name)
        self.where = f"{name} at {endpoint.place}"
        self._address = functools.cache(self._address)
        own = endpoint.headers
        key = endpoint.api_key or ""
        base = urlsplit(endpoint.base_url)
        user = unquote(base.username or "")
        password = unquote(base.password or "")
        headers = {"Accept-Encoding": "identity"}
        basic = aiohttp.encode_basic_auth(user, password)

        if user or password:
            headers["Authorization"] = basic
        elif key and not any("{api_key}" in text for text in own.values()):
            headers["Authorization"] = f"Bearer {key}"

        self._headers = headers | {
            name: text.replace("{api_key}", key) for name, text in own.items()
        }
        self._proxy = proxy_for(endpoint.base_url)
        proxy = urlsplit(self._proxy or "")
        # A token may stand in the user's place, and a server may repeat either form of each.
        secrets = {key, user, password, base.username, base.password, basic.removeprefix("Basic ")}
        secrets |= {proxy.username, proxy.password, *own.values()}
        secrets = {text for text in secrets if text and len(text) > 3}
        self._secrets = sorted(secrets, key=len, reverse=True)  # one may be part of another
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def exchange(
        self, method: str, path: str, content: str | None = None, largest: int = 0, **sent: object
    ) -> tuple[object, bytes]:
        """Send a request and read the response to its end: parsed as JSON, and as bytes.

        Raises
        ------
        NoReply
            There was no whole reply, or one that asks to come again.
        RespondentError
            The endpoint refuses.
        """
        response, body = await self._send(
            method, path, max(_LARGEST_REPLY, largest), content=content, **sent
        )

        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None

        status = response.status
        if status in (408, 409, 429) or status >= 500:
            why = said.get("error") if isinstance(said, dict) else None
            if not (isinstance(why, dict) and why.get("code") == "insufficient_quota"):
                after = self._bounded(_retry_after(response.headers))
                if status != 429:
                    self.pace.hold(after or 0.0)

                busy = status == 503 or after is not None
                raise NoReply(f"status {status}", after, slow=status == 429, busy=busy)

        if not 200 <= status < 300:
            raise RespondentError(self.refusal(status, said, body, response))
        self.pace.hold(self._bounded(_used_up(response.headers)) or 0.0)
        return said, body

    async def _send(
        self, method: str, path: str, largest: int, content: str | None, file: bytes = b""
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        body = bytearray()
        sent = {}
        if content:
            sent = {"data": content.encode(), "headers": {"Content-Type": "application/json"}}

        if file:  # of a batch
            form = aiohttp.FormData({"purpose": "batch"})
            form.add_field(
                "file", file, filename="requests.jsonl", content_type="application/jsonl"
            )
            sent = {"data": form}

        try:
            async with (
                asyncio.timeout(self.endpoint.timeout),
                self._connections().request(
                    method, self._address(path), allow_redirects=False, proxy=self._proxy, **sent
                ) as response,
            ):
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > largest:
                        why = f"a reply of more than {largest:,} bytes"
                        raise NoReply(why, paid=True, unreadable=True)
        except TimeoutError as error:
            raise NoReply(f"no whole reply in {self.endpoint.timeout:g} s", paid=True) from error
        except (aiohttp.ClientError, OSError) as error:
            never = isinstance(error, aiohttp.ClientConnectorError)
            said = getattr(error, "message", error)  # the whole error tells the address
            why = self.excerpt(f"{type(error).__name__} {said}")
            raise NoReply(why, paid=not never, unreachable=never) from error

        return response, bytes(body)

    def _connections(self) -> aiohttp.ClientSession:
        """As many as are asked at the same time, made by the loop that asks."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(),  # the one time-out is of the whole exchange
                auto_decompress=False,
                trust_env=False,  # which would send what ~/.netrc has for the host
                max_line_size=_LARGEST_HEADER,
                max_field_size=_LARGEST_HEADER,
                max_headers=_MOST_HEADERS,
            )

        return self._session

    def _address(self, path: str) -> str:
        """Return the address of a path, with its query and the one of the endpoint."""
        base, (path, _, query) = urlsplit(self.endpoint.base_url), path.partition("?")
        query = "&".join(filter(None, (base.query, query)))
        path = base.path.rstrip("/") + path
        host = base.netloc.rpartition("@")[2]
        return base._replace(netloc=host, path=path, query=query).geturl()

    def _bounded(self, after: float | None) -> float | None:
        """Return the seconds that the server asks to wait, as far as they are obeyed."""
        if after is not None and after > _LONGEST_WAIT:
            warnings.warn(
                f"{self.where} asks to wait {after:g} s: it is asked again in {_LONGEST_WAIT:g} s.",
                stacklevel=2,
            )
            after = _LONGEST_WAIT
        return after

    def refusal(
        self, status: int, content: object, body: bytes = b"", response: object = None
    ) -> str:
        """Say why an endpoint does not take a request."""
        said = content.get("error", content) if isinstance(content, dict) else None
        said = said.get("message") if isinstance(said, dict) else said
        why = self.excerpt(said if isinstance(said, str) else body)
        if response is not None and 300 <= response.status < 400:
            why = self.excerpt(
                f"it sends elsewhere ({response.headers.get('location', 'nowhere')}), where "
                "prompts and key do not follow; name that address if you trust it"
            )
        return f"{self.where} refuses the request with status {status}: {why}"

    def excerpt(self, text: str | bytes) -> str:
        """Return the beginning of what the server said, without the key."""
        text = text.decode("utf-8", "replace") if not isinstance(text, str) else text
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return _valid(" ".join(text.split()))[:200]

    def unreadable(self, body: bytes) -> NoReply:
        """Return the error of a reply that is not a completion."""
        said = self.excerpt(body) or "it is empty"
        return NoReply(f"unreadable reply: {said}", paid=True, unreadable=True)

    @staticmethod
    def completion(content: object, logprobs: bool = False) -> dict | None:
        """Return text, finish reason and usage of a completion; None if it is not a completion.

        Also its ``tokens``, of the request and of the reply, 0 where the endpoint counts none. A
        reply that calls tools and says nothing has the calls as its text, and the finish reason
        ``tool_call``. Where ``logprobs`` were asked for, the text is those of the first token.

        Raises
        ------
        NoReply
            There is no choice in it.
        """
        if isinstance(content, dict) and content.get("choices") == []:
            raise NoReply("a reply without choices", paid=True, unreadable=True, status="no_choice")

        try:
            choice = content["choices"][0]
            message = choice.get("message") or {"content": choice["text"]}
            said = message.get("content")
        except (LookupError, TypeError, AttributeError):
            return None

        reason = choice.get("finish_reason")
        usage = content.get("usage")
        calls = message.get("tool_calls") or message.get("function_call")

        if said is None:
            said = message.get("refusal") or ""

        if not said and calls:
            said = json.dumps(calls)
            reason = "tool_call"  # endpoints write tool_calls, whatever else is in the reply

        if isinstance(said, list):  # of parts
            parts = [part.get("text", "") if isinstance(part, dict) else part for part in said]
            said = "".join(part if isinstance(part, str) else json.dumps(part) for part in parts)

        text = said if isinstance(said, str) else json.dumps(said)
        if logprobs and choice.get("logprobs") is not None:
            text = json.dumps(_first_tokens(choice["logprobs"]))

        names = ("prompt_tokens", "completion_tokens")
        tokens = tuple(_whole(usage.get(n)) if isinstance(usage, dict) else 0 for n in names)
        return {
            "reply": _valid(text),
            "finish_reason": None if reason is None else _valid(str(reason)),
            "usage": usage if tokens[0] else None,
            "tokens": tokens,
        }


def _first_tokens(logprobs: object) -> dict[str, float]:
    """Return the likeliest first tokens with their log-probabilities; none if they are not such."""
    try:
        if "content" not in logprobs:  # of a text to go on from
            tokens = {_valid(k): float(v) for k, v in logprobs["top_logprobs"][0].items()}
        else:
            listed = logprobs["content"][0]["top_logprobs"]
            tokens = {_valid(row["token"]): float(row["logprob"]) for row in listed}

        total = sum(math.exp(logprob) for logprob in tokens.values())
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return {}

    return tokens if total <= _MOST_PROBABILITY else {}  # nor where one is no number


def _valid(text: str) -> str:
    """Replace lone surrogates, which cannot be written."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _retry_after(headers: object) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    try:
        milliseconds = headers.get("retry-after-ms")
        value = headers.get("retry-after")
        if milliseconds is not None:
            seconds = float(milliseconds) / 1000
        elif value is None:
            return _used_up(headers)
        else:
            try:
                seconds = float(value)
            except ValueError:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None

    return None if math.isnan(seconds) else max(seconds, 0.0)


def _used_up(headers: object) -> float | None:
    """Seconds until there are requests and tokens again, where there are none left now."""
    waits = []
    for what in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0":
            waits.append(_seconds(headers.get(f"x-ratelimit-reset-{what}", "")))
    return max(filter(None, waits), default=None)


def _seconds(text: str) -> float | None:
    """Parse seconds as endpoints write them: 12, 1.5s, 250ms, 6m0s.

    Examples
    --------
    >>> [_seconds(text) for text in ("12", "1.5s", "250ms", "6m0s", "1h2m3s", "soon")]
    [12.0, 1.5, 0.25, 360.0, 3723.0, None]
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        # A number as large as a date is one: the second at which the limit is reset.
        return float(text) if float(text) < 1e8 else max(float(text) - time.time(), 0.0)
    if not re.fullmatch(r"(\d{1,9}(\.\d{1,9})?(ms|d|h|m|s))+", text):
        return None
    size = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    parts = re.findall(r"([\d.]+)(ms|d|h|m|s)", text)
    return sum(float(number) * size[unit] for number, unit in parts)


def _whole(count: object) -> int:
    """A number of tokens; 0 for what is no number."""
    sound = isinstance(count, int | float) and not isinstance(count, bool) and 0 < count < 1e12
    return int(count) if sound else 0
