"""What is done of ``data/plans/six-bases.yml``, and what comes next."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from psychometrics.models.vectors import is_decoder

from . import plan, storage
from .plan import GROUPS, Member, tables_dir


def has_nulls(base: str) -> bool:
    """Return whether the tables have the nulls of an untouched base."""
    path = tables_dir() / "nulls.csv"
    return path.is_file() and plan.BASES[base].label in set(pd.read_csv(path)["base"])


def is_read(base: str) -> bool:
    """Return whether all vectors of an untouched base are stored."""
    folder = plan.folder_of(base) / "untouched"
    if not folder.is_dir():  # nor need the base itself be there
        return False

    names = [*plan.untouched_parts(base)]
    if is_decoder(base):
        names.append("words")
    return all((folder / f"{name}.safetensors").is_file() for name in names)


def order() -> Iterator[list[Member]]:
    """Yield turns of members, so that a balanced part of the design is complete at any time.

    A turn is one block of each base; the costliest base begins after the others have finished.
    """
    last = max(base.after + base.blocks for base in plan.BASES.values())
    for turn in range(1, 1 + last):
        yield [
            Member(name, group, turn - base.after)
            for name, base in plan.BASES.items()
            if 0 < turn - base.after <= base.blocks
            for group in GROUPS
        ]


def is_complete(base: str) -> bool:
    """Return whether the rows of all members of a base are stored."""
    return plan.BASES[base].blocks > 0 and len(done_blocks(base)) == plan.BASES[base].blocks


def done_blocks(base: str) -> list[int]:
    """Return the blocks for which the rows of all members are stored."""
    kept = storage.kept_members(base)
    numbers = range(1, 1 + plan.BASES[base].blocks)
    return [number for number in numbers if kept >= {Member(base, g, number) for g in GROUPS}]
