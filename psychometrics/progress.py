"""The progress bar of :func:`ask`, which also counts answers for the summary."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

# Seconds between two lines of progress in a log.
_LOG_INTERVAL = 30.0


class Progress(tqdm):
    """A progress bar over respondents and questionnaires, with the counts for the summary.

    Attributes
    ----------
    stored, asked, unasked : int
        Numbers of stored answers, of new answers, and of questions for which no budget was left.
    unused : int
        Number of stored answers of the same respondents to other prompts, with other weights or in
        a different precision, which do not answer the present questions.
    spending : Spending
        The tokens and the cost of endpoints' replies.
    """

    last_print_t: float

    def __init__(self, *args: object, pairs: int = 1, **options: object) -> None:
        self.pairs = pairs
        self.begun = 0
        self.stored = 0
        self.asked = 0
        self._expected = 0
        self.unasked = 0
        self.unused = 0
        self.spending = Spending()

        if not sys.stderr.isatty():  # a log gets a line only from time to time
            options.setdefault("mininterval", _LOG_INTERVAL)

        super().__init__(*args, **options)

    def say(self, text: str) -> None:
        """Show a text after the bar, immediately if enough time has passed since the last text."""
        self.set_postfix_str(text, refresh=False)
        if not self.disable and time.time() - self.last_print_t >= self.mininterval:
            self.refresh()
            self.last_print_t = time.time()

    def expect(self, questions: int, stored: int = 0) -> None:
        """Announce a questionnaire for a respondent, with the number of its stored answers."""
        self.begun += 1
        self._expected += questions
        self._estimate_total()
        self.count_stored(stored)

    def count_stored(self, n: int = 1) -> None:
        """Advance by questions whose answers are stored."""
        self.stored += n
        super().update(n)

    def count_unasked(self, n: int = 1) -> None:
        """Advance the bar by ``n`` questions that are not asked."""
        self.unasked += n
        super().update(n)

    def update(self, n: int = 1) -> bool | None:
        """Advance by questions that have just been asked."""
        self.asked += n
        is_shown: bool | None = super().update(n)
        return is_shown

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return the numbers of started questionnaires, and of all, stored and asked questions."""
        return self.begun, self._expected, self.stored, self.asked

    def show_sum(self, counts: Iterable[tuple[int, int, int, int]]) -> None:
        """Show the sums over the bars of several workers."""
        totals = [sum(column) for column in zip((0, 0, 0, 0), *counts, strict=True)]
        self.begun, self._expected, self.stored, self.asked = totals
        if self.begun:
            self._estimate_total()
        super().update(self.stored + self.asked - self.n)

    def _estimate_total(self) -> None:
        """Estimate the remaining length from the average so far."""
        self.total = self._expected * max(self.pairs, self.begun) // self.begun


class Spending:
    """The tokens and the cost of one call, and the greatest possible cost of open requests."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.cost = self.reserved = 0.0
        self.under_way = self.replies = self.estimated = self.planned = self.refused = 0
        self.priced = False

    def add(self, usage: dict[str, Any], prompt: int, completion: int, cost: float) -> None:
        """Count a reply, whose ``usage`` may give the number of cached tokens."""
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        cached = cached if isinstance(cached, int) else 0
        self.tokens.update(prompt=prompt, completion=completion, cached=cached)
        self.cost += cost
        self.replies += 1
        self.estimated += bool(usage.get("estimated"))

    def summary(self) -> dict[str, Any]:
        """Return the entries for the summary of a call."""
        counts = {name: self.tokens[name] for name in ("prompt", "completion", "cached")}
        entries: dict[str, Any] = {"tokens": counts | {"estimated": self.estimated}}
        if self.refused:
            entries["refused"] = self.refused
        if self.planned:
            entries["requests"] = self.planned
        if self.priced:
            entries["cost"] = round(self.cost, 6)
        return entries
