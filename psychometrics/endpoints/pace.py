"""Compute when the next request to an endpoint may start, given limits, headers and refusals."""

from __future__ import annotations

import functools
import math
import time

from .endpoint import Endpoint

# Share of recent requests that may be refused as too early before all requests slow down.
_ISOLATED = 0.2
# Most seconds between two requests to an endpoint that refuses them as coming too soon.
_LONGEST_GAP = 10.0


class _Limits:
    """The limits of an endpoint, which all models at its address share."""

    def __init__(self, endpoint: Endpoint) -> None:
        # Slightly slower than allowed, as requests arrive less evenly than they are sent.
        self.gap = 61.0 / endpoint.requests_per_minute if endpoint.requests_per_minute else 0.0
        self.tokens = endpoint.tokens_per_minute
        self.next = 0.0  # start time by the limit of requests
        self.next_tokens = 0.0  # start time by the limit of tokens
        self.largest = 0  # most tokens of a request so far

    def begin(self, now: float, tokens: int) -> None:
        """Count a request that begins now."""
        self.next = now + self.gap
        if self.tokens:
            self.largest = max(self.largest, min(tokens, int(self.tokens)))
            self.next_tokens = max(self.next_tokens, now) + self._seconds(tokens)

    def settle(self, estimated: int, actual: int) -> None:
        """Correct a request's number of tokens once it is known."""
        if self.tokens:
            self.next_tokens -= self._seconds(estimated) - self._seconds(actual)

    def _seconds(self, tokens: int) -> float:
        # No minute may exceed the limit, not even with a request that begins in its last second.
        limit = self.tokens or math.inf
        return 61.0 * tokens / max(limit - self.largest, min(tokens, limit), 1.0)


class _Pace:
    """The pace of requests to a model, which depends on limits, headers and refusals."""

    def __init__(self, limits: _Limits) -> None:
        self.limits = limits
        self.next = 0.0  # start time by our rate
        self.held = 0.0  # start time by the endpoint's wishes
        self.rate: float | None = None  # requests per second; None before any refusal

        now = time.monotonic()
        self.cut_at = now  # times of the rate's last cut and last growth
        self.grown_at = now
        self.since = now  # start of the counts of requests and replies
        self.sent = 0
        self.heard = 0
        self.refused = 0.0  # share of recent requests, with weights that fall by a tenth

    def left(self) -> float:
        """Return the seconds until a request may begin."""
        times = self.next, self.held, self.limits.next, self.limits.next_tokens
        return max(times) - time.monotonic()

    def begin(self, tokens: int) -> None:
        """Count a request that begins now."""
        now = time.monotonic()
        self.sent += 1
        self.next = now + (1 / self.rate if self.rate else 0.0)
        self.limits.begin(now, tokens)

    def hold(self, seconds: float) -> None:
        """Start no requests for a number of seconds."""
        self.held = max(self.held, time.monotonic() + seconds)

    def too_fast(self, begun: float, after: float | None) -> None:
        """Slow down if refusals are frequent, but at most once for all requests under way.

        A rare refusal comes from a busy endpoint, not from our rate: only the refused request
        waits. If an endpoint states a waiting time, requests are never slower than this time
        implies.
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

        self.cut_at = now
        self.grown_at = now
        self.since = now
        self.sent = 0
        self.heard = 0
        self.refused = 0.0
        self.next = max(self.next, now + 1 / self.rate)

    def replied(self) -> None:
        """Speed up again, by a twentieth with each reply or by a tenth with each second."""
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


_limits_of = functools.lru_cache(maxsize=64)(_Limits)


@functools.lru_cache(maxsize=1024)
def _pace_of(endpoint: Endpoint, model: str) -> _Pace:
    """Return the pace of a model at an endpoint, shared by questionnaires and calls.

    Endpoints limit each model separately, so a refusal by one model does not concern the others.
    """
    return _Pace(_limits_of(endpoint))
