"""Ask and train respondents on six bases: ``make bases``, or ``python -m recipes.bases``.

The plan is ``data/plans/six-bases.yml``. A stopped run resumes. It first computes the untouched
bases' vectors of the prompts, then the members, block by block, of all bases or of the named ones:
``python -m recipes.bases embedded mpnet``. After each member its statistics and scores go into
``data/bases/members-*.csv``, which are part of the repository; a member in these tables is not made
again, whether or not the user's cache still has it. ``python -m recipes.bases analyse`` computes
the planned tests from these rows and writes the other tables of ``data/bases/``; with ``--interim``
also for bases with incomplete blocks, into tables that are marked as such. Run one process per base
at a time.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file, save_file

from psychometrics.models.fetching import registry
from psychometrics.models.loading import load_model, load_tokenizer
from psychometrics.models.sources import base_path, fetch_indexed, find
from psychometrics.models.vectors import (
    is_decoder,
    last_states,
    pair_vectors,
    word_vectors,
    worded,
)
from psychometrics.nulls.respondents import drawn_words
from psychometrics.paths import cache_dir

from . import base_members, dose
from .base_criterion import criterion_prompts
from .base_members import GROUPS, WORDING, Member, tables_dir

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


def folder_of(base: str) -> Path:
    """Return the folder for everything about a base."""
    return cache_dir() / "bases" / Path(base).name


@functools.cache
def prompted(part: str) -> list[tuple[str, str]]:
    """Return the pairs of a questionnaire, or of the criterion."""
    table = criterion_prompts() if part == CRITERION else dose.templates((part,))[0]
    return list(table[["premise", "hypothesis"]].itertuples(index=False, name=None))


def asked_of_members() -> list[tuple[str, str]]:
    """Return the pairs that a member answers: questionnaires, then the criterion."""
    return [pair for part in (*ASKED, CRITERION) for pair in prompted(part)]


# --- the untouched bases


def untouched_parts(base: str) -> dict[str, tuple[str, str]]:
    """Return part and wording of each file of an untouched base, in the order of creation."""
    parts = {part: (part, WORDING) for part in (*NULLS, CRITERION)}
    if is_decoder(base):
        for name, wording in OTHER_WORDINGS.items():
            parts |= {f"{part}, {name}": (part, wording) for part in (REAL[0], CRITERION)}
    return parts


def read_untouched(base: str) -> None:
    """Read all prompts on an untouched base, unless that was done before."""
    folder = folder_of(base) / "untouched"
    folder.mkdir(parents=True, exist_ok=True)
    parts = untouched_parts(base)
    for_nulls = not has_nulls(base)
    if not for_nulls:  # its nulls are in the tables, and members read fewer prompts
        parts = {name: parts[name] for name in (*ASKED, CRITERION)}

    missing = {k: v for k, v in parts.items() if not (folder / f"{k}.safetensors").is_file()}
    read = _untouched_reader(base) if missing else None

    for name, (part, wording) in missing.items():
        began = time.perf_counter()
        _keep(read(prompted(part), wording), folder / f"{name}.safetensors")
        _say(f"{base}: {name} read in {time.perf_counter() - began:.0f} s")

    read = None  # the largest base would not fit into memory twice
    if for_nulls and is_decoder(base) and not (folder / "words.safetensors").is_file():
        _keep(_words(base), folder / "words.safetensors")
        word_vectors.cache_clear()


def _untouched_reader(base: str) -> Callable:
    """Return a function from pairs and a wording to vectors by name."""
    source = base_path() if base == "embedded" else find(base)
    decodes = is_decoder(base)
    model, tokenizer = load_model(source, "causal" if decodes else "encoder")

    def read(pairs: list[tuple[str, str]], wording: str) -> dict[str, np.ndarray]:
        if decodes:
            return {"prompts": last_states(model, tokenizer, worded(pairs, wording))}
        layers = pair_vectors(model, tokenizer, pairs)
        shallow = {"shallow": layers[SHALLOW].copy()} if base == "embedded" else {}
        return {"prompts": layers[-1].copy()} | shallow

    return read


def _words(base: str) -> dict[str, np.ndarray]:
    """Return the output vectors of the plan's triples, and of triples drawn at random."""
    drawn = [drawn_words(base, np.random.default_rng([4, number])) for number in range(DRAWN)]
    model, _ = load_model(find(base), "causal")
    tokenizer = load_tokenizer(find(base))
    rows = model.get_output_embeddings().weight.detach().float()
    named = {}

    for name, words in TRIPLES.items():
        ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        if all(len(of_word) == 1 for of_word in ids):
            named[name] = rows[[of_word[0] for of_word in ids]].numpy()

    return {"drawn": np.stack(drawn)} | named


def _keep(arrays: dict[str, np.ndarray], path: Path) -> None:
    tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
    save_file(tensors, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def untouched(base: str, name: str, key: str = "prompts") -> np.ndarray:
    """Return the stored vectors of an untouched base."""
    return load_file(folder_of(base) / "untouched" / f"{name}.safetensors")[key].numpy()


def has_nulls(base: str) -> bool:
    """Return whether the tables have the nulls of an untouched base."""
    path = tables_dir() / "nulls.csv"
    return path.is_file() and BASES[base].label in set(pd.read_csv(path)["base"])


def is_read(base: str) -> bool:
    """Return whether all vectors of an untouched base are stored."""
    folder = folder_of(base) / "untouched"
    if not folder.is_dir():  # nor need the base itself be there
        return False

    names = [*untouched_parts(base)]
    if is_decoder(base):
        names.append("words")
    return all((folder / f"{name}.safetensors").is_file() for name in names)


# --- the members


def order() -> Iterator[list[Member]]:
    """Yield turns of members, so that a balanced part of the design is complete at any time.

    A turn is one block of each base; the costliest base begins after the others have finished.
    """
    last = max(base.after + base.blocks for base in BASES.values())
    for turn in range(1, 1 + last):
        yield [
            Member(name, group, turn - base.after)
            for name, base in BASES.items()
            if 0 < turn - base.after <= base.blocks
            for group in GROUPS
        ]


def is_complete(base: str) -> bool:
    """Return whether the rows of all members of a base are stored."""
    return BASES[base].blocks > 0 and len(done_blocks(base)) == BASES[base].blocks


def done_blocks(base: str) -> list[int]:
    """Return the blocks for which the rows of all members are stored."""
    from . import base_rows  # it needs names from this module

    kept = base_rows.kept_members(base)
    numbers = range(1, 1 + BASES[base].blocks)
    return [number for number in numbers if kept >= {Member(base, g, number) for g in GROUPS}]


def run(names: Sequence[str] = ()) -> None:
    """Compute everything that is missing: nulls, members, and the largest base's nulls in between.

    Parameters
    ----------
    names : sequence of str, optional
        Bases; by default all.
    """
    chosen = names or list(BASES)
    for base in chosen:
        if base in registry():
            fetch_indexed(base)

        if base != LARGEST:
            read_untouched(base)

    for turn, members in enumerate(order(), start=1):
        if turn == 3 and LARGEST in BASES and LARGEST in chosen:
            read_untouched(LARGEST)

        for member in members:
            if member.base in chosen:
                make(member)


def make(member: Member) -> None:
    """Train and ask a member and store its rows, unless they are stored."""
    from . import base_rows

    study = base_rows.study_of(member.group)
    if member in base_rows.kept_members(member.base, study):
        return
    known = None
    if member.group == "untouched":
        parts = [untouched(member.base, part) for part in (*ASKED, CRITERION)]
        known = np.concatenate(parts)

    folder = folder_of(member.base) / member.name
    facts = base_members.make(member, asked_of_members(), folder, known)
    base_rows.keep(member, folder)
    _say(f"{member.base} {member.name}: {facts['seconds']:.0f} s")


def _say(text: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BASE", help=f"{', '.join(BASES)}; or: analyse")
    parser.add_argument("--interim", action="store_true")
    given = parser.parse_args()

    if given.names == ["analyse"]:
        from . import base_tables

        base_tables.write(given.interim)
        return

    if unknown := set(given.names) - set(BASES):
        parser.error(f"{', '.join(sorted(unknown))}: not in the plan; name some of {[*BASES]}.")
    run(given.names)


if __name__ == "__main__":
    _main()
