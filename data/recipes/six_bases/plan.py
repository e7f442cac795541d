"""What ``data/plans/six-bases.yml`` asks, of which bases, groups and members."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.torch import load_file

from psychometrics.models.vectors import is_decoder
from psychometrics.paths import cache_dir, data_dir

from .. import frozen_heads
from .criterion import criterion_prompts

GROUPS = ("inference", "shuffled", "hypotheses", "unlabelled", "untouched")
"""Kinds of adaptation of the base; the members of one block have the same pairs."""
WORDING = frozen_heads.WORDING
NULLS = (
    "gad7", "phq9", "soc13", "ipip20",
    "placebo_defects", "placebo_weather", "placebo_pleasures", "placebo_habits",
)  # fmt: skip
ASKED = ("gad7", "phq9", "soc13", "placebo_defects", "placebo_weather")
"""All questionnaires, for the nulls, and the plan's smaller set for the members."""
REAL = ASKED[:3]
CRITERION = "criterion"
OTHER_WORDINGS = {
    "follow": '"{premise}" Does it follow that "{hypothesis}"? Answer:',
    "question": "Passage: {premise} Question: Is it true that {hypothesis} Answer:",
}
TRIPLES = {
    "yes, maybe, no": (" yes", " maybe", " no"),
    "Yes, Maybe, No": (" Yes", " Maybe", " No"),
    "true, maybe, false": (" true", " maybe", " false"),
    "True, Maybe, False": (" True", " Maybe", " False"),
    "right, perhaps, wrong": (" right", " perhaps", " wrong"),
    "always, sometimes, never": (" always", " sometimes", " never"),
}
"""Words for entailment, neutral and contradiction; the last triple shares words with the items."""
DRAWN = 200


class Base(NamedTuple):
    """A base of the plan: its name in tables, its blocks, and the turn after which they begin."""

    label: str
    blocks: int
    after: int = 0


BASES = {
    "embedded": Base("MiniLM, 6 layers", 12),
    "mpnet": Base("MPNet", 8),
    "smollm2": Base("SmolLM2", 6),
    "gemma-3-270m": Base("Gemma 3 270M", 6),
    "qwen2.5-coder-0.5b": Base("Qwen2.5 0.5B", 4, after=12),
    "qwen2.5-coder-1.5b": Base("Qwen2.5 1.5B", 0),
}
LARGEST = "qwen2.5-coder-1.5b"
SHALLOW = 4
SHALLOW_LABEL = "MiniLM, 4 layers"
"""The embedded encoder is also read after four layers."""


class Member(NamedTuple):
    """A base, its adaptation, and the block, which is the seed."""

    base: str
    group: str
    block: int

    @property
    def name(self) -> str:
        """The name of the member's folder in its base's folder."""
        return f"{self.group}-{self.block}"


def tables_dir() -> Path:
    """Return the folder of the study's tables in the repository."""
    return data_dir() / "bases"


def folder_of(base: str) -> Path:
    """Return the folder for everything about a base."""
    return cache_dir() / "bases" / Path(base).name


@functools.cache
def prompted(part: str) -> list[tuple[str, str]]:
    """Return the pairs of a questionnaire, or of the criterion."""
    table = criterion_prompts() if part == CRITERION else frozen_heads.templates((part,))[0]
    return list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))


def asked_of_members() -> list[tuple[str, str]]:
    """Return the pairs that a member answers: questionnaires, then the criterion."""
    return [pair for part in (*ASKED, CRITERION) for pair in prompted(part)]


def untouched_parts(base: str) -> dict[str, tuple[str, str]]:
    """Return part and wording of each file of an untouched base, in the order of creation."""
    parts = {part: (part, WORDING) for part in (*NULLS, CRITERION)}
    if is_decoder(base):
        for name, wording in OTHER_WORDINGS.items():
            parts |= {f"{part}, {name}": (part, wording) for part in (REAL[0], CRITERION)}
    return parts


def untouched(base: str, name: str, key: str = "prompts") -> np.ndarray:
    """Return the stored vectors of an untouched base."""
    return load_file(folder_of(base) / "untouched" / f"{name}.safetensors")[key].numpy()
