"""What limits the requests to an endpoint: its pace, and the budget of a call."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import time

from ..asking.progress import Spending
from .endpoint import Endpoint

_OVERHEAD = 32
"""Tokens of a request beyond those of its text, at most: the marks between messages."""


class Pace:
    """When the next request may begin, by what an Endpoint, its headers and its refusals say."""

    def __init__(self, endpoint: Endpoint) -> None:
        # A little slower than is allowed, as requests do not arrive as evenly as they are sent.
        self.gap = 61.0 / endpoint.requests_per_minute if endpoint.requests_per_minute else 0.0
        self.tokens = endpoint.tokens_per_minute
        self.next = self.next_tokens = self.held = 0.0
        self.largest = 0
        self.rate: float | None = None
        self.cut_at = self.grown_at = self.since = time.monotonic()
        self.sent = self.heard = 0

    def left(self) -> float:
        """Seconds until a request may begin."""
        return max(self.next, self.next_tokens, self.held) - time.monotonic()

    def begin(self, tokens: int) -> None:
        """Count a request that begins now."""
        now = time.monotonic()
        self.sent += 1
        self.next = now + max(self.gap, 1 / self.rate if self.rate else 0.0)
        if self.tokens:
            self.largest = max(self.largest, min(tokens, int(self.tokens)))
            self.next_tokens = max(self.next_tokens, now) + self._seconds(tokens)

    def settle(self, estimated: int, actual: int) -> None:
        """Put right the tokens of a request once they are known."""
        if self.tokens:
            self.next_tokens -= self._seconds(estimated) - self._seconds(actual)

    def _seconds(self, tokens: int) -> float:
        # Those of any minute are at most the limit, the one that begins in its last second too.
        return 61.0 * tokens / max(self.tokens - self.largest, min(tokens, self.tokens), 1.0)

    def hold(self, seconds: float) -> None:
        """Begin nothing for so long."""
        self.held = max(self.held, time.monotonic() + seconds)

    def too_fast(self, begun: float) -> None:
        """Slow down after a refusal, once for all that were on their way."""
        if begun < self.cut_at:
            return
        now = time.monotonic()
        seconds = max(now - self.since, 0.05)
        rate = 0.7 * self.sent / seconds
        if self.heard:
            rate = min(rate, self.heard / seconds)
        self.rate = max(min(rate, 0.7 * self.rate) if self.rate else rate, 1 / 60)
        self.cut_at = self.since = self.grown_at = now
        self.sent = self.heard = 0
        self.next = max(self.next, now + 1 / self.rate)

    def replied(self) -> None:
        """Take up speed again, by little for each reply and by little in each second."""
        self.heard += 1
        if self.rate:
            now = time.monotonic()
            self.rate *= 1 + min(0.05, 0.5 * (now - self.grown_at))
            self.grown_at = now
            if self.rate > 10_000:
                self.rate = None


@functools.lru_cache(maxsize=64)
def pace_of(endpoint: Endpoint) -> Pace:
    """The pace of an endpoint, which goes on from one questionnaire, model and call to the next."""
    return Pace(endpoint)


class Budget:
    """What requests may cost: reserved before a request is sent, settled when its reply is there.

    Parameters
    ----------
    endpoint : Endpoint
        Its prices and ``max_cost``.
    spending : Spending
        Counts tokens and cost of the call.
    max_tokens : int, optional
        Most tokens of a reply.
    """

    def __init__(self, endpoint: Endpoint, spending: Spending, max_tokens: int | None) -> None:
        self._prices = endpoint.price_in or 0, endpoint.price_out or 0
        self._limit, self._max_tokens = endpoint.max_cost, max_tokens
        self._lock, self._settled = asyncio.Lock(), asyncio.Event()
        self._tokens_per_byte: float | None = None
        self.spending = spending
        spending.priced = endpoint.price_in is not None or endpoint.price_out is not None

    def most_tokens(self, text: str) -> tuple[int, int]:
        """Return the most tokens that a request and its reply may have.

        A token has at least one byte; how many it has at this endpoint is learnt from its replies.
        """
        per_byte = min(1.0, 1.25 * (self._tokens_per_byte or 1.0))
        prompt = math.ceil(len(text) * per_byte) + _OVERHEAD
        return prompt, self._max_tokens or len(text) // 8 + _OVERHEAD

    def cost(self, prompt: int, completion: int) -> float:
        """Return what tokens cost, in the currency of the prices."""
        return (prompt * self._prices[0] + completion * self._prices[1]) / 1e6

    def plan(self, text: str, statements: int) -> None:
        """Count a request that would be sent: 4 bytes to a token, 8 tokens to an answer."""
        prompt, completion = len(text) // 4, self._max_tokens or 8 * statements
        self.spending.planned += 1
        cost = self.cost(prompt, completion)
        self.spending.add({"estimated": True}, prompt, completion, cost)

    def reserve(self, text: str, within: bool = True) -> float | None:
        """Reserve the most that a request may cost; None if the budget (``within``) forbids it."""
        spending, most = self.spending, self.cost(*self.most_tokens(text))
        total = spending.cost + spending.reserved + most
        if within and self._limit is not None and total > self._limit:
            return None
        spending.reserved += most
        spending.under_way += 1
        return most

    async def wait(self, text: str) -> float | None:
        """Reserve as soon as the requests under way leave enough; None if they never will."""
        async with self._lock:
            while (most := self.reserve(text)) is None:
                if not self.spending.under_way:
                    return None
                self._settled.clear()
                await self._settled.wait()
        return most

    def settle(self, most: float, found: dict | None, text: str, paid: bool = False) -> None:
        """Count what a request took, in place of its reservation; complete ``found["usage"]``.

        Without a reply that the endpoint may nevertheless have given (``paid``), the most that it
        may have cost is counted.
        """
        spending = self.spending
        spending.under_way -= 1
        spending.reserved = spending.reserved - most if spending.under_way else 0.0
        if found is not None:
            usage = found["usage"]
            if usage is None:
                prompt, completion = (max(1, len(part) // 4) for part in (text, found["reply"]))
                usage = {"prompt_tokens": prompt, "completion_tokens": completion}
                usage["estimated"] = True
            else:
                seen = count_tokens(usage, "prompt_tokens") / len(text)
                self._tokens_per_byte = max(self._tokens_per_byte or 0.0, seen)
            found["usage"] = json.dumps(usage)
            prompt, completion = (
                count_tokens(usage, name) for name in ("prompt_tokens", "completion_tokens")
            )
            spending.add(usage, prompt, completion, self.cost(prompt, completion))
        elif paid:
            spending.add({"estimated": True}, *self.most_tokens(text), most)
        self._settled.set()


def count_tokens(usage: dict, *names: str) -> int:
    """Add up numbers of tokens; what is not a number counts 0."""
    total = 0
    for value in map(usage.get, names):
        sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12
        total += int(value) if sound else 0
    return total
