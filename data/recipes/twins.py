"""Train the arms of the twin test: ``python -m recipes.twins [BASE ...]``.

The plan is ``data/plans/twins.yml``. Each arm repeats the members on true labels of
``recipes.six_bases`` with other labels. A stopped run resumes with the member that it was training;
within a base it makes one block after the other, so that a stop leaves complete blocks. After each
member its rows go into ``data/bases/twins-*.csv``: commit them. The members on true labels,
shuffled labels and hypotheses alone are kept rows of ``recipes.six_bases``, and made where they are
missing. Run one process per base at a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from psychometrics.models.fetching import registry
from psychometrics.models.sources import fetch_indexed

from .six_bases import runs
from .six_bases.labels import ARMS
from .six_bases.plan import Member
from .six_bases.reading import lower_states
from .six_bases.training import untouched_vectors

BLOCKS = {"embedded": 12, "mpnet": 8, "smollm2": 4, "gemma-3-270m": 4}
"""Blocks of each base, without what the plan's deviations name as dropped for lack of time."""
KEPT = ("inference", "shuffled", "hypotheses")
ON_MINILM = "premise sentiment"
WITHOUT_NOISE = ("smollm2", "gemma-3-270m")
"""Bases on which the arm of half-permuted labels was dropped."""


def arms(base: str) -> tuple[str, ...]:
    """Return the groups that the plan compares on a base.

    Examples
    --------
    >>> "premise sentiment" in arms("embedded"), "premise sentiment" in arms("mpnet")
    (True, False)
    """
    left_out = set() if base == "embedded" else {ON_MINILM}
    if base in WITHOUT_NOISE:
        left_out.add("noise")
    return tuple(arm for arm in (*KEPT, *ARMS) if arm not in left_out)


def order(base: str) -> Iterator[Member]:
    """Yield a base's members block by block."""
    for block in range(1, 1 + BLOCKS[base]):
        for arm in arms(base):
            yield Member(base, arm, block)


def run(names: Sequence[str] = tuple(BLOCKS)) -> None:
    """Train and ask all members of the named bases whose rows are missing."""
    for base in names:
        if base in registry():
            fetch_indexed(base)

        for part in ("train", "test"):  # before any lower half is remembered
            untouched_vectors(base, part)
        lower_states.cache_clear()

        for member in order(base):
            runs.make(member)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BASE", help=", ".join(BLOCKS))
    names = parser.parse_args().names
    if unknown := set(names) - set(BLOCKS):
        parser.error(f"{', '.join(sorted(unknown))}: not in the plan; name some of {[*BLOCKS]}.")
    run(names or tuple(BLOCKS))


if __name__ == "__main__":
    _main()
