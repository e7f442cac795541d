"""The bar that shows how far asking has come, and counts for its summary."""

from __future__ import annotations

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
