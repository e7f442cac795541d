"""The bar that shows how far asking has come, and counts for its summary."""

from __future__ import annotations

from collections.abc import Iterable

from tqdm import tqdm


class Progress(tqdm):
    """A progress bar over all respondents and questionnaires that also counts for the summary.

    Attributes
    ----------
    kept, asked : int
        Answers that were in the store, and that were asked for.
    """

    def __init__(self, *args: object, puts: int = 1, **options: object) -> None:
        self.puts, self.begun, self.kept, self.asked, self._expected = puts, 0, 0, 0, 0
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
