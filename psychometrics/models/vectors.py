"""Prompt vectors from untouched models, for null respondents.

A null respondent reads the same text as its trained counterpart, at the same token and after the
same number of layers. For a classifier the text is the pair of premise and hypothesis; for a
decoder that answers by words it is the pair in the decoder's wording.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..checks import whole_depth
from ..exceptions import ParameterError
from ..files import replacing
from ..paths import cache_dir
from ..store import key_of
from .devices import resolve_device
from .embedded import is_wording, worded
from .fast import fast_forward
from .lengths import group_lengths
from .loading import decodes, load_config, load_model, load_tokenizer
from .sources import base_path, find

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

_Pair = tuple[str, str]  # premise and hypothesis
_Vectors = NDArray[np.float32]

_BATCH = 128
# Texts that a decoder reads in one pass; texts that share a beginning are neighbours.
_TEXTS_AT_ONCE = 64
_KEPT = 128  # most files of vectors in the user's cache
_READING = "vectors-2"
"""The version of the vectors' definition; a new version invalidates stored vectors."""


def layer_vectors(
    base: str,
    layers: set[int | None],
    parts: tuple[tuple[_Pair, ...], ...],
    wording: str | None = None,
) -> dict[int | None, _Vectors]:
    """Return the vectors of questionnaires' prompts after some layers of an untouched model.

    Null respondents spend nearly all their time reading prompts, and chapters reuse questionnaires,
    so the vectors are stored in the user's cache.

    Parameters
    ----------
    base : str
        ``"embedded"``, ``"smollm2"``, a folder or a hub id.
    layers : set of int or None
        Numbers of layers after which to read the vectors; None means all layers.
    parts : tuple of tuple of (premise, hypothesis)
        The prompts of each questionnaire.
    wording : str, optional
        A text with ``{premise}`` and ``{hypothesis}`` for a decoder; by default a decoder reads the
        pair as a classifier does.

    Returns
    -------
    dict of ndarray, shape (prompts, width)
        The vectors by number of layers.

    Raises
    ------
    ParameterError
        A number of layers is not positive or exceeds the base's, or an encoder gets a wording.

    Examples
    --------
    >>> layer_vectors("embedded", {1, None}, ((("I feel calm.", "It is so."),),))[None].shape
    (1, 384)
    """
    if wording is not None and not is_decoder(base):
        raise ParameterError(f"{base}: an encoder reads pairs; leave the wording out.")
    if not isinstance(layers, set | frozenset) or not layers:
        raise ParameterError(f"layers must be a set of whole numbers, got {layers!r}.")
    depths = {layer: _depth(base, whole_depth(layer)) for layer in layers}
    deep = tuple(sorted(set(depths.values())))
    vectors = dict(zip(deep, _vectors(base, deep, parts, wording), strict=True))
    return {layer: vectors[depth] for layer, depth in depths.items()}


@functools.lru_cache(maxsize=8)
def _vectors(
    base: str, layers: tuple[int, ...], parts: tuple[tuple[_Pair, ...], ...], wording: str | None
) -> _Vectors:
    vectors = [_cached_vectors(base, layers, pairs, wording) for pairs in parts]
    return np.concatenate(vectors, axis=1)


def _cached_vectors(
    base: str, layers: tuple[int, ...], pairs: tuple[_Pair, ...], wording: str | None
) -> _Vectors:
    """Return cached vectors of a questionnaire after some layers, (layers, prompts, width)."""
    reading = [reading_key(base, wording), torch.__version__, resolve_device(None).type]
    texts = [text for pair in pairs for text in pair]
    folder = cache_dir() / "vectors"
    paths = [folder / f"{key_of(*reading, str(layer), *texts)}.npy" for layer in layers]

    with contextlib.suppress(OSError):  # another run may have removed old files
        return np.stack([np.load(path) for path in paths])

    if wording is None:
        hidden = prompt_vectors(base, pairs, depth=max(layers))[list(layers)]
    else:
        hidden = _text_vectors(base, pairs, wording, layers)

    with contextlib.suppress(OSError):  # a read-only cache only costs time
        folder.mkdir(parents=True, exist_ok=True)
        for path, vectors in zip(paths, hidden, strict=True):
            with replacing(path) as temporary:
                np.save(temporary, vectors)

        for old in sorted(folder.glob("*.npy"), key=os.path.getmtime)[:-_KEPT]:
            old.unlink()

    return hidden


def reading_key(base: str, wording: str | None = None) -> str:
    """Return a digest of all that determines a model's vectors, except layers and prompts.

    Parameters
    ----------
    base, wording
        As in :func:`layer_vectors`. The base need not be on this machine if it is in the package
        index.

    Examples
    --------
    >>> len(reading_key("embedded"))
    32
    """
    if wording is not None and not is_wording(wording):
        raise ParameterError(f"wording needs {{premise}} and {{hypothesis}}, got {wording!r:.60}.")
    source = find(base_path() if base == "embedded" else base)
    return key_of(source.digest, _READING, wording or "")


@functools.cache
def _depth(base: str, layers: int | None) -> int:
    """Return the number of layers to use, by default all; refuse more than the base has."""
    config = load_config(base_path() if base == "embedded" else find(base))
    names = ("num_decoder_layers", "decoder_layers", "num_hidden_layers")
    depth: int = next(getattr(config, name) for name in names if getattr(config, name, None))
    if layers is not None and layers > depth:
        raise ParameterError(f"{base} has {depth} layers, not {layers}; lower layers.")
    return depth if layers is None else layers


def _text_vectors(
    base: str, pairs: Sequence[_Pair], wording: str, layers: Sequence[int]
) -> _Vectors:
    """Return an untouched decoder's states at the last token of worded prompts.

    A decoder with the given number of layers multiplies these states by its word vectors. The
    states come after its last normalisation, as in a member that answers by words before any
    training.

    Parameters
    ----------
    base : str
        A decoder's name, folder or hub id.
    pairs : sequence of n (premise, hypothesis)
    wording : str
        A text with ``{premise}`` and ``{hypothesis}``.
    layers : sequence of int
        Numbers of layers, counted from the input, in rising order; all are computed in one pass.

    Returns
    -------
    ndarray of float32, shape (layers, n, width)

    Examples
    --------
    >>> pairs = [("I feel calm.", "It is so.")]
    >>> _text_vectors("smollm2", pairs, "{premise} {hypothesis}", [1, 2]).shape
    (2, 1, 576)
    """
    config = load_config(find(base), num_hidden_layers=layers[-1])
    model, tokenizer = load_model(find(base), "causal", config=config)
    vectors = last_states(model, tokenizer, worded(pairs, wording), layers[:-1])
    return vectors if len(layers) > 1 else vectors[None]


def last_states(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    inner: Sequence[int] = (),
) -> _Vectors:
    """Return a causal model's last hidden state of each text, in float32, without padding.

    Parameters
    ----------
    model : PreTrainedModel
    tokenizer : PreTrainedTokenizerBase
    texts : sequence of n str
    inner : sequence of int
        Numbers of layers, in rising order, whose states are also returned.

    Returns
    -------
    ndarray, shape (n, width)
        The states; with inner layers, shape (inner + 1, n, width), with all layers normalised like
        the last.
    """
    ids = tokenizer(list(texts), verbose=False)["input_ids"]
    order = sorted(range(len(ids)), key=ids.__getitem__)  # puts shared beginnings together
    fast_states = fast_forward(model)
    vectors = np.empty((len(inner) + 1, len(ids), model.config.hidden_size), dtype="float32")
    for start in range(0, len(ids), _TEXTS_AT_ONCE):
        chosen = order[start : start + _TEXTS_AT_ONCE]
        rows = [ids[i] for i in chosen]
        states = fast_states(rows, inner) if fast_states else None
        if states is None:
            states = _own_states(model, rows, inner)
        vectors[:, chosen] = states.float().cpu().numpy()

    return vectors if inner else vectors[0]


@torch.inference_mode()
def _own_states(
    model: PreTrainedModel, texts: list[list[int]], inner: Sequence[int]
) -> torch.Tensor:
    """Return texts' last states, computed by the model's own forward pass."""
    base: Any = model.base_model
    size = len(inner) + 1, len(texts), model.config.hidden_size
    every = torch.empty(size, dtype=model.dtype)
    for rows in group_lengths([len(text) for text in texts]):
        inputs = torch.tensor([texts[i] for i in rows], device=model.device)
        output = base(inputs, output_hidden_states=bool(inner))
        depths = [_normalise(base, output.hidden_states[layer][:, -1]) for layer in inner]
        every[:, rows] = torch.stack([*depths, output.last_hidden_state[:, -1]]).cpu()

    return every if inner else every[0]


@functools.lru_cache(maxsize=4)
def word_vectors(base: str) -> _Vectors:
    """Return the output vectors of a decoder's whole words, shape (words, width), in float32.

    A whole word is a token of letters with a space before it, so that a decoder can answer with it.

    Examples
    --------
    >>> word_vectors("smollm2").shape[1]
    576
    """
    model, tokenizer = load_model(find(base), "causal", config=load_config(find(base)))
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    chosen = [i for i, word in enumerate(words) if word[:1] in "Ġ▁" and word[1:].isalpha()]
    weights: torch.Tensor = model.get_output_embeddings().weight
    return weights.detach()[chosen].float().numpy()


def prompt_vectors(
    base: str, pairs: tuple[_Pair, ...], number: int | None = None, depth: int | None = None
) -> _Vectors:
    """Return an untouched model's vectors of pairs after every layer.

    Parameters
    ----------
    base : str
        ``"embedded"``, ``"smollm2"``, a folder or a hub id.
    pairs : tuple of (premise, hypothesis)
        Each pair is tokenized as the family's classifiers tokenize it.
    number : int, optional
        Seed of random weights of the same shape, which replace the model's own.
    depth : int, optional
        Number of layers after which a decoder stops, to save time; by default all.

    Returns
    -------
    ndarray of float32, shape (layers + 1, prompts, width)
        After every layer, the state of the token that the family's classifiers read: the first
        token in an encoder; the last token in a decoder, in an encoder-decoder's decoder and in
        XLNet. Inner layers of a decoder are normalised like its last layer.

    Examples
    --------
    >>> prompt_vectors("embedded", (("I feel calm.", "It rarely happens."),)).shape
    (7, 1, 384)
    """
    from transformers import AutoModel  # slow to load

    source = base_path() if base == "embedded" else find(base)

    if number is None:
        cut = depth is not None and is_decoder(base)
        config = load_config(source, num_hidden_layers=depth) if cut else None
        model, tokenizer = load_model(source, "encoder", config=config)
    else:
        tokenizer = load_tokenizer(source)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(number)
            model = AutoModel.from_config(load_config(source)).eval()

    module: torch.nn.Module = model
    module.to(resolve_device(None))
    return pair_vectors(model, tokenizer, pairs)


def pair_vectors(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: Sequence[_Pair]
) -> _Vectors:
    """Return a headless model's vectors of pairs, as :func:`prompt_vectors` does for a base."""
    config = model.config
    # The token of a pair that the family's classifiers read: in XLNet and its relatives the last.
    is_summary = getattr(config, "summary_type", None) == "last"
    place = -1 if is_summary or config.is_encoder_decoder or decodes(config) else 0
    vectors = np.empty((0, len(pairs), 0), dtype="float32")
    network: Any = model

    for chosen, batch in _batches(tokenizer, pairs):
        inputs = batch.to(model.device)
        if model.config.model_type == "longformer":  # the first token attends to all
            looks = torch.zeros_like(inputs["input_ids"])
            looks[:, 0] = 1
            inputs["global_attention_mask"] = looks

        if hasattr(network, "_shift_right"):  # T5; BART shifts by itself
            inputs["decoder_input_ids"] = network._shift_right(inputs["input_ids"])

        with torch.inference_mode():
            output = network(**inputs, output_hidden_states=True)
            states = output.get("hidden_states") or output["decoder_hidden_states"]
            layers = [_normalise(model, state[:, place]) for state in states[:-1]]
            layers.append(output.last_hidden_state[:, place])

        if not vectors.size:
            shape = len(layers), len(pairs), layers[-1].shape[-1]
            vectors = np.empty(shape, dtype="float32")

        for layer, state in enumerate(layers):
            vectors[layer, chosen] = state.float().cpu().numpy()

    return vectors


def _normalise(model: Any, states: torch.Tensor) -> torch.Tensor:
    """Return an inner layer's states, normalised as if it were the decoder's last layer."""
    if not decodes(model.config):
        return states
    names = ("norm", "ln_f", "final_layer_norm", "final_layernorm")
    norms = (getattr(model, name) for name in names if hasattr(model, name))
    normalised: torch.Tensor = next(norms, torch.nn.Identity())(states)
    return normalised


def _batches(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[_Pair]
) -> Iterator[tuple[list[int], BatchEncoding]]:
    """Yield batches of prompts with tokens of one length, so that no prompt is padded."""
    options: dict[str, Any] = {"truncation": True, "verbose": False}
    premises, hypotheses = (list(texts) for texts in zip(*pairs, strict=True))
    lengths = [len(ids) for ids in tokenizer(premises, hypotheses, **options)["input_ids"]]
    for rows in group_lengths(lengths):
        for start in range(0, len(rows), _BATCH):
            chosen = rows[start : start + _BATCH]
            texts = ([side[i] for i in chosen] for side in (premises, hypotheses))
            yield chosen, tokenizer(*texts, return_tensors="pt", **options)


@functools.cache
def is_decoder(base: str) -> bool:
    """Return whether a base is a decoder, whose last token alone has seen the whole prompt."""
    return base != "embedded" and decodes(load_config(find(base)))
