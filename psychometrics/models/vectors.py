"""What untouched models make of prompts: the vectors that a random head is put on."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from safetensors.numpy import load_file

from ..asking.store import key_of
from ..data import shipped
from ..exceptions import ParameterError
from ..paths import cache_dir
from .loading import decodes, load_config, load_model, load_tokenizer, resolve_device
from .sources import SMOLLM2, base_path, find

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedConfig

SHIPPED = "nulls_smollm2.safetensors"
_BATCH = 128
_PADDED = ("embedded", SMOLLM2)
"""Bases whose shipped vectors were read in batches with padding, which other families notice."""
_KEPT = 64  # files of vectors in the user's cache; older ones go


def layer_vectors(base: str, layers: set[int | None], parts: tuple) -> dict[int | None, np.ndarray]:
    """Return an untouched model's vectors of several questionnaires' prompts, after some layers.

    Reading the prompts is what random heads cost, and chapters ask the same questionnaires of
    them: so what a base makes of a questionnaire is stored in the user's cache.

    Parameters
    ----------
    base : str
        ``"embedded"``, ``"smollm2"``, a folder or a hub id.
    layers : set of int or None
        After how many layers; None is all of them.
    parts : tuple of tuple of (premise, hypothesis)
        The prompts of each questionnaire.

    Returns
    -------
    dict of ndarray, shape (prompts, width)
        By number of layers.

    Examples
    --------
    >>> layer_vectors("embedded", {1, None}, ((("I feel calm.", "It is so."),),))[None].shape
    (1, 384)
    """
    if base == SMOLLM2 and layers == {None}:
        shipped = _shipped_vectors(sum(parts, ()))
        if shipped is not None:
            return {None: shipped}
    depths = {layer: _depth(base, layer) for layer in layers}
    deep = tuple(sorted(set(depths.values())))
    vectors = dict(zip(deep, _vectors(base, deep, parts), strict=True))
    return {layer: vectors[depth] for layer, depth in depths.items()}


@functools.lru_cache(maxsize=4)
def _vectors(base: str, layers: tuple, parts: tuple) -> np.ndarray:
    return np.concatenate([_kept_vectors(base, layers, pairs) for pairs in parts], axis=1)


def _kept_vectors(base: str, layers: tuple, pairs: tuple) -> np.ndarray:
    """Some layers' vectors of a questionnaire, (layers, prompts, width), from the user's cache."""
    source = find(base_path() if base == "embedded" else base)
    by = [source.digest, torch.__version__, resolve_device(None).type, str(_BATCH)]
    if base not in _PADDED:
        by.append("without padding")
    prompted = [text for pair in pairs for text in pair]
    folder = cache_dir() / "vectors"
    paths = [folder / f"{key_of(*by, str(layer), *prompted)}.npy" for layer in layers]
    with contextlib.suppress(OSError):  # another run may have tidied up meanwhile
        return np.stack([np.load(path) for path in paths])
    hidden = prompt_vectors(base, pairs)[list(layers)]
    with contextlib.suppress(OSError):  # a cache that cannot be written saves no time, that is all
        folder.mkdir(parents=True, exist_ok=True)
        for path, vectors in zip(paths, hidden, strict=True):
            part = path.with_suffix(f".{os.getpid()}")
            with part.open("wb") as file:
                np.save(file, vectors)
            part.replace(path)
        for old in sorted(folder.glob("*.npy"), key=os.path.getmtime)[:-_KEPT]:
            old.unlink()
    return hidden


@functools.cache
def _depth(base: str, layers: int | None) -> int:
    """A number of layers that the base has; by default all."""
    config = load_config(base_path() if base == "embedded" else find(base))
    names = ("num_decoder_layers", "decoder_layers", "num_hidden_layers")
    whole = next(getattr(config, name) for name in names if getattr(config, name, None))
    if layers is not None and layers > whole:
        raise ParameterError(f"{base} has {whole} layers, not {layers}.")
    return whole if layers is None else layers


def prompt_vectors(base: str, pairs: tuple, number: int | None = None) -> np.ndarray:
    """What an untouched model makes of prompts: the vectors that a random head is put on.

    Parameters
    ----------
    base : str
        ``"embedded"``, ``"smollm2"``, a folder or a hub id.
    pairs : tuple of (premise, hypothesis)
    number : int, optional
        Seed of random weights of the same shape, in the place of the model's own.

    Returns
    -------
    ndarray of float32, shape (layers + 1, prompts, width)
        After every layer, of the token that the family's classifiers read: the first one of an
        encoder, the last one of a decoder, of an encoder-decoder's decoder and of XLNet.

    Examples
    --------
    >>> prompt_vectors("embedded", (("I feel calm.", "It rarely happens."),)).shape
    (7, 1, 384)
    """
    from transformers import AutoModel  # slow to load

    source = base_path() if base == "embedded" else find(base)
    if number is None:
        exact = "bfloat16" if base == SMOLLM2 else "float32"  # as its adapters were trained
        model, tokenizer = load_model(source, "encoder", dtype=getattr(torch, exact))
    else:
        tokenizer = load_tokenizer(source)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(number)
            model = AutoModel.from_config(load_config(source)).eval()
    model = model.to(resolve_device(None))
    place = -1 if _reads_last(model.config) else 0
    found = None
    for chosen, inputs in _batches(base, tokenizer, pairs):
        inputs = inputs.to(model.device)
        if model.config.model_type == "longformer":  # its classifiers' first token looks at all
            looks = torch.zeros_like(inputs["input_ids"])
            looks[:, 0] = 1
            inputs["global_attention_mask"] = looks
        if hasattr(model, "_shift_right"):  # T5, which BART does by itself
            inputs["decoder_input_ids"] = model._shift_right(inputs["input_ids"])
        with torch.inference_mode():
            output = model(**inputs, output_hidden_states=True)
        states = output.get("hidden_states") or output["decoder_hidden_states"]
        if found is None:
            shape = len(states), len(pairs), states[-1].shape[-1]
            found = np.empty(shape, dtype="float32")
        for layer, state in enumerate([*states[:-1], output.last_hidden_state]):
            found[layer, chosen] = state[:, place].float().cpu().numpy()
    return found


def _batches(base: str, tokenizer, pairs: tuple) -> Iterator[tuple[list[int], BatchEncoding]]:
    """Yield which prompts are a batch, and their tokens: of one length, so that nothing is padded.

    A decoder reads premise and hypothesis as one text.
    """
    texts = [" ".join(pair) for pair in pairs] if is_decoder(base) else list(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
    if base in _PADDED:
        tokenizer.padding_side = "left" if base == SMOLLM2 else "right"
        lengths = [0] * len(pairs)
    else:
        lengths = [len(ids) for ids in tokenizer(texts, truncation=True)["input_ids"]]
    order.sort(key=lengths.__getitem__)
    for _, same in itertools.groupby(order, lengths.__getitem__):
        alike = list(same)
        for start in range(0, len(alike), _BATCH):
            chosen = alike[start : start + _BATCH]
            how = {"padding": base in _PADDED, "truncation": True, "return_tensors": "pt"}
            yield chosen, tokenizer([texts[i] for i in chosen], **how)


@functools.cache
def is_decoder(base: str) -> bool:
    """Return whether a base is a decoder, whose last token alone has seen the whole prompt."""
    return base != "embedded" and decodes(load_config(find(base)))


def _reads_last(config: PreTrainedConfig) -> bool:
    """Return whether the family's classifiers read the last token of a pair."""
    summary = getattr(config, "summary_type", None) == "last"  # XLNet's and its kin's
    return summary or config.is_encoder_decoder or decodes(config)


@functools.lru_cache(maxsize=4)
def _shipped_vectors(pairs: tuple) -> np.ndarray | None:
    """The untouched decoder's last vectors of shipped prompts, shape (prompts, width)."""
    path = shipped(SHIPPED)
    if not path.is_file():
        return None
    held = load_file(path)
    keys = pd.Index([key_of(*pair) for pair in pairs])
    rows = pd.Index([row.tobytes().hex() for row in held["keys"]]).get_indexer(keys)
    return None if (rows < 0).any() else held["vectors"][rows].astype("float32")
