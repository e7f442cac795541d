"""Make what is missing of the study of six bases: vectors of untouched bases, then members."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from psychometrics.models.embedded import worded
from psychometrics.models.fetching import registry
from psychometrics.models.loading import load_model, load_tokenizer
from psychometrics.models.sources import base_path, fetch_indexed, find
from psychometrics.models.vectors import is_decoder, last_states, pair_vectors, word_vectors
from psychometrics.nulls.respondents import drawn_words

from . import plan, progress, storage, training
from .plan import Member

# --- the untouched bases


def read_untouched(base: str) -> None:
    """Read all prompts on an untouched base, unless that was done before."""
    folder = plan.folder_of(base) / "untouched"
    folder.mkdir(parents=True, exist_ok=True)
    parts = plan.untouched_parts(base)
    for_nulls = not progress.has_nulls(base)
    if not for_nulls:  # its nulls are in the tables, and members read fewer prompts
        parts = {name: parts[name] for name in (*plan.ASKED, plan.CRITERION)}

    missing = {k: v for k, v in parts.items() if not (folder / f"{k}.safetensors").is_file()}
    read = _untouched_reader(base) if missing else None

    for name, (part, wording) in missing.items():
        began = time.perf_counter()
        _keep(read(plan.prompted(part), wording), folder / f"{name}.safetensors")
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
        shallow = {"shallow": layers[plan.SHALLOW].copy()} if base == "embedded" else {}
        return {"prompts": layers[-1].copy()} | shallow

    return read


def _words(base: str) -> dict[str, np.ndarray]:
    """Return the output vectors of the plan's triples, and of triples drawn at random."""
    drawn = [drawn_words(base, np.random.default_rng([4, number])) for number in range(plan.DRAWN)]
    model, _ = load_model(find(base), "causal")
    tokenizer = load_tokenizer(find(base))
    rows = model.get_output_embeddings().weight.detach().float()
    named = {}

    for name, words in plan.TRIPLES.items():
        ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        if all(len(of_word) == 1 for of_word in ids):
            named[name] = rows[[of_word[0] for of_word in ids]].numpy()

    return {"drawn": np.stack(drawn)} | named


def _keep(arrays: dict[str, np.ndarray], path: Path) -> None:
    tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
    save_file(tensors, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


# --- the members


def run(names: Sequence[str] = ()) -> None:
    """Compute everything that is missing: nulls, members, and the largest base's nulls in between.

    Parameters
    ----------
    names : sequence of str, optional
        Bases; by default all.
    """
    chosen = names or list(plan.BASES)
    for base in chosen:
        if base in registry():
            fetch_indexed(base)

        if base != plan.LARGEST:
            read_untouched(base)

    for turn, members in enumerate(progress.order(), start=1):
        if turn == 3 and plan.LARGEST in plan.BASES and plan.LARGEST in chosen:
            read_untouched(plan.LARGEST)

        for member in members:
            if member.base in chosen:
                make(member)


def make(member: Member) -> None:
    """Train and ask a member and store its rows, unless they are stored."""
    study = storage.study_of(member.group)
    if member in storage.kept_members(member.base, study):
        return
    known = None
    if member.group == "untouched":
        parts = [plan.untouched(member.base, part) for part in (*plan.ASKED, plan.CRITERION)]
        known = np.concatenate(parts)

    folder = plan.folder_of(member.base) / member.name
    facts = training.make(member, plan.asked_of_members(), folder, known)
    storage.keep(member, folder)
    _say(f"{member.base} {member.name}: {facts['seconds']:.0f} s")


def _say(text: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)
