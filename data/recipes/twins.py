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

from .six_bases import plan, runs
from .six_bases.labels import ARMS
from .six_bases.plan import Member
from .six_bases.reading import lower_states
from .six_bases.training import untouched_vectors

BASES = ("embedded", "mpnet", "smollm2", "gemma-3-270m", "qwen2.5-coder-0.5b")
KEPT = ("inference", "shuffled", "hypotheses")
ON_MINILM = "premise sentiment"


def arms(base: str) -> tuple[str, ...]:
    """Return the groups that the plan compares on a base.

    Examples
    --------
    >>> "premise sentiment" in arms("embedded"), "premise sentiment" in arms("mpnet")
    (True, False)
    """
    planned = (*KEPT, *ARMS)
    return planned if base == "embedded" else tuple(arm for arm in planned if arm != ON_MINILM)


def order(base: str) -> Iterator[Member]:
    """Yield a base's members block by block."""
    for block in range(1, 1 + plan.BASES[base].blocks):
        for arm in arms(base):
            yield Member(base, arm, block)


def run(names: Sequence[str] = BASES) -> None:
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
    parser.add_argument("names", nargs="*", metavar="BASE", help=", ".join(BASES))
    names = parser.parse_args().names
    if unknown := set(names) - set(BASES):
        parser.error(f"{', '.join(sorted(unknown))}: not in the plan; name some of {[*BASES]}.")
    run(names or BASES)


if __name__ == "__main__":
    _main()
