"""The budget of a call: how much its requests may cost at an endpoint's prices."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace

from ..progress import Spending
from .completions import _Completion
from .endpoint import Endpoint

# Most tokens of a request besides its text: the marks between messages.
_OVERHEAD = 32


@dataclass
class _Reservation:
    """A request's text, and its greatest possible cost while that is reserved."""

    text: str
    most: float | None = None


class _Budget:
    """A budget for requests: an amount is reserved before sending and settled on reply.

    Parameters
    ----------
    endpoint : Endpoint
        The endpoint, with its prices and ``max_cost``.
    spending : Spending
        The spending of the call, from its :class:`psychometrics.progress.Progress`.
    max_tokens : int, optional
        Maximum number of tokens in a reply.
    """

    def __init__(self, endpoint: Endpoint, spending: Spending, max_tokens: int | None) -> None:
        self._prices = endpoint.price_in or 0, endpoint.price_out or 0
        self._limit = endpoint.max_cost
        self._max_tokens = max_tokens
        self._lock = asyncio.Lock()
        self._settled = asyncio.Event()
        self._tokens_per_byte: float | None = None
        self.spending = spending
        spending.priced = endpoint.price_in is not None or endpoint.price_out is not None

    def most_tokens(self, text: str) -> tuple[int, int]:
        """Return the greatest possible number of tokens in a request and in its reply.

        A token has at least one byte. The endpoint's bytes per token are learnt from its replies.
        """
        per_byte = min(1.0, 1.25 * (self._tokens_per_byte or 1.0))
        prompt = math.ceil(len(text) * per_byte) + _OVERHEAD
        return prompt, self._max_tokens or len(text) // 8 + _OVERHEAD

    def cost(self, prompt: int, completion: int) -> float:
        """Return the cost of a number of tokens, in the currency of the prices."""
        return (prompt * self._prices[0] + completion * self._prices[1]) / 1e6

    def estimate(self, text: str, statements: int) -> tuple[int, int]:
        """Estimate a request's tokens: one per 4 bytes, and 8 tokens per answer."""
        return len(text) // 4, self._max_tokens or 8 * statements

    def plan(self, text: str, statements: int) -> None:
        """Count a request that a real run would send."""
        prompt, completion = self.estimate(text, statements)
        self.spending.planned += 1
        cost = self.cost(prompt, completion)
        self.spending.add({"estimated": True}, prompt, completion, cost)

    async def wait(self, reservation: _Reservation) -> bool:
        """Reserve as soon as open requests leave enough money; return whether they ever do."""
        spending = self.spending
        async with self._lock:
            while True:
                most = self.cost(*self.most_tokens(reservation.text))
                total = spending.cost + spending.reserved + most
                if self._limit is None or total <= self._limit:
                    reservation.most = most
                    spending.reserved += most
                    spending.under_way += 1
                    return True

                if not spending.under_way:
                    return False

                self._settled.clear()
                await self._settled.wait()

    def settle(self, reservation: _Reservation, completion: _Completion) -> _Completion:
        """Count a reply in place of its reservation; return it with its usage or an estimate."""
        text = reservation.text
        usage = completion.usage
        tokens = completion.tokens

        if usage is None:
            tokens = max(1, len(text) // 4), max(1, len(completion.text) // 4)
            usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "estimated": True}
        else:
            per_byte = tokens[0] / len(text)
            self._tokens_per_byte = max(self._tokens_per_byte or 0.0, per_byte)

        self._take_back(reservation)
        self.spending.add(usage, *tokens, self.cost(*tokens))
        return replace(completion, usage=usage, tokens=tokens)

    def release(self, reservation: _Reservation, paid: bool = False) -> None:
        """Cancel the reservation of a request without a reply.

        If the endpoint may have replied nevertheless (``paid``), count the request's greatest
        possible cost.
        """
        most = reservation.most
        if most is not None:
            self._take_back(reservation)
            if paid:
                tokens = self.most_tokens(reservation.text)
                self.spending.add({"estimated": True}, *tokens, most)

    def _take_back(self, reservation: _Reservation) -> None:
        spending = self.spending
        spending.under_way -= 1
        most = reservation.most or 0.0
        spending.reserved = spending.reserved - most if spending.under_way else 0.0
        reservation.most = None
        self._settled.set()
