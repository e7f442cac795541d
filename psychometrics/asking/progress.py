"""The bar that shows how far asking has come, and counts for its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tqdm import tqdm


class Progress(tqdm):
    """A progress bar over all respondents and questionnaires that also counts for the summary.

    Attributes
    ----------
    kept, asked, unasked : int
        Answers that were in the store, that were asked for, and that a budget left out.
    spent : object
        Tokens and cost of replies, for endpoints that have them.
    """

    def __init__(self, *args: object, puts: int = 1, **options: object) -> None:
        self.puts, self.begun, self.kept, self.asked, self._expected = puts, 0, 0, 0, 0
        self.unasked, self.spent = 0, _Spent()
        super().__init__(*args, **options)

    def expect(self, questions: int, kept: int = 0) -> None:
        """Say, once in each ``put``, how many questions it has and how many the store has."""
        self.begun += 1
        self._expected += questions
        # What is still to come is taken to be as long as what has been seen.
        self.total = self._expected * max(self.puts, self.begun) // self.begun
        self.kept += kept
        super().update(kept)
        self.refresh()

    def found(self, n: int = 1) -> None:
        """Move on by so many that the store has, where that shows only on the way."""
        self.kept += n
        super().update(n)

    def left_out(self, n: int = 1) -> None:
        """Move on by so many that are not asked now."""
        self.unasked += n
        super().update(n)

    def update(self, n: int = 1) -> bool | None:
        """Move on by so many questions that were asked now."""
        self.asked += n
        return super().update(n)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many were begun, and of them all questions, those in the store, and those asked."""
        return self.begun, self._expected, self.kept, self.asked

    def gather(self, counts: Iterable[tuple[int, int, int, int]]) -> None:
        """Show what the bars of several workers count together."""
        self.begun, self._expected, self.kept, self.asked = map(
            sum, zip((0, 0, 0, 0), *counts, strict=True)
        )
        if self.begun:
            self.total = self._expected * max(self.puts, self.begun) // self.begun
        super().update(self.kept + self.asked - self.n)


class _Spent:
    """Tokens and cost of one call, and what those on their way may cost at most."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.cost = self.reserved = 0.0
        self.open = self.replies = self.estimated = self.planned = 0
        self.priced = False

    def add(self, usage: dict, prompt: int, completion: int, cost: float) -> None:
        """Count a reply, whose ``usage`` may say how many of its tokens were cached."""
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        cached = cached if isinstance(cached, int) else 0
        self.tokens.update(prompt=prompt, completion=completion, cached=cached)
        self.cost += cost
        self.replies += 1
        self.estimated += bool(usage.get("estimated"))

    def plan(self, prompt: int, completion: int, cost: float) -> None:
        """Count a request that would be sent."""
        self.planned += 1
        self.add({"estimated": True}, prompt, completion, cost)

    def summary(self) -> dict:
        """What the summary of a call says of it."""
        counts = {name: self.tokens[name] for name in ("prompt", "completion", "cached")}
        said = {"tokens": counts | {"estimated": self.estimated}}
        if self.planned:
            said["requests"] = self.planned
        if self.priced:
            said["cost"] = round(self.cost, 6)
        return said
