"""The lengths of texts that a model can read, and the sizes of batches that fit a device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import IncompleteModelError, RespondentError
from .loading import text_config

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

# Fewest tokens that a model must be able to read.
_FEWEST = 16
FEWEST_IN_BATCH = 4096
"""Number of tokens in a batch on a processor."""
# Most tokens in a batch on a GPU.
_MOST_IN_BATCH = 2**17


def batch_tokens(config: PreTrainedConfig, device: torch.device, dtype: str) -> int:
    """Return the number of tokens in a batch.

    On the processor, batches of more than 4,096 tokens gain nothing. On a CUDA device a batch may
    fill half of the free memory, estimated from the memory that one layer uses per token; if that
    is too much, batches are halved.

    Parameters
    ----------
    config : PreTrainedConfig
    device : torch.device
    dtype : str

    Returns
    -------
    int
    """
    import torch

    if device.type != "cuda":
        return FEWEST_IN_BATCH

    hidden = getattr(config, "hidden_size", 1024)
    wide = getattr(config, "intermediate_size", 4 * hidden)
    precision: torch.dtype = getattr(torch, dtype)
    of_token = (12 * hidden + 3 * wide) * precision.itemsize
    free, _ = torch.cuda.mem_get_info(device)
    # torch keeps the memory of earlier batches and models
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)

    return int(max(FEWEST_IN_BATCH, min(free // 2 // of_token, _MOST_IN_BATCH)))


def batch_rows(
    config: PreTrainedConfig, device: torch.device, dtype: str, tokens: int, few: int
) -> int:
    """Return the number of texts that a decoder reads or continues at once.

    On the processor it is always the same number, because the last digits of answers depend on it.
    On a CUDA device it is up to 16 times as large, if the free memory allows it; if memory runs
    out, batches are halved.

    Parameters
    ----------
    config : PreTrainedConfig
    device : torch.device
    dtype : str
    tokens : int
        Number of tokens of the longest text, with its continuation.
    few : int
        Number of texts on the processor.

    Returns
    -------
    int
    """
    if device.type != "cuda":
        return few
    return max(few, min(batch_tokens(text_config(config), device, dtype) // tokens, 16 * few))


def group_lengths(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of equal lengths, from the smallest length on.

    Texts of one length form a batch without padding, to which many families react, each in its own
    way.

    Examples
    --------
    >>> list(group_lengths([7, 5, 7]))
    [[1], [0, 2]]
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for _, group in itertools.groupby(order, lengths.__getitem__):
        yield list(group)


def token_limit(
    encoded: list[list[int]],
    model: PreTrainedModel | PreTrainedConfig,
    tokenizer: PreTrainedTokenizerBase,
    name: str = "The model",
) -> int:
    """Return the maximum number of tokens that the tokenizer and the position table allow.

    If a model's positions have no offset, its configuration can be passed in its place.

    Raises
    ------
    RespondentError
        The limit is too small for a sentence, or the tokenizer is broken: it does not know most
        tokens of the prompts.
    """
    settings: Any = getattr(model, "config", model)
    config = text_config(settings)
    check_known(encoded, tokenizer, name)
    words = vocabulary_size(model)
    largest = max(map(max, filter(None, encoded)), default=0)
    if largest >= words:
        raise IncompleteModelError(
            f"{name} has a tokenizer that returns the token {largest}, but a vocabulary of "
            f"{words}: save the model with its own tokenizer."
        )

    limit: int = tokenizer.model_max_length
    positions: int = getattr(config, "max_position_embeddings", None) or -1
    if positions > 0:  # XLNet has only relative positions
        for place, module in getattr(model, "named_modules", list)():
            padding = getattr(module, "padding_idx", None)
            if place.endswith("position_embeddings") and padding is not None:
                positions -= padding + 1  # RoBERTa's relatives number positions from there
                break

        limit = min(limit, positions)

    if limit < _FEWEST:
        raise IncompleteModelError(
            f"{name} reads {limit} tokens: set model_max_length in its tokenizer_config.json."
        )
    return limit


def check_length(
    encoded: list[list[int]],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    more: int = 0,
) -> list[list[int]]:
    """Return token ids; refuse a text that, with ``more`` tokens, exceeds the limit.

    Raises
    ------
    RespondentError
    """
    longest = max(map(len, encoded)) + more
    limit = token_limit(encoded, model, tokenizer)
    if longest > limit:
        raise RespondentError(f"A prompt has {longest} tokens, more than {limit}: shorten it.")
    return encoded


def vocabulary_size(model: PreTrainedModel | PreTrainedConfig) -> float:
    """Return the number of tokens that a model knows; its tokenizer may have more."""
    settings: Any = getattr(model, "config", model)
    config = text_config(settings)
    words: float = getattr(config, "vocab_size", None) or math.inf
    embeddings: Any = getattr(model, "get_input_embeddings", lambda: None)()
    return getattr(embeddings, "num_embeddings", words)


def check_known(
    encoded: list[list[int]], tokenizer: PreTrainedTokenizerBase, name: str = "The model"
) -> None:
    """Refuse a tokenizer that knows fewer than half of the tokens of some texts.

    Raises
    ------
    RespondentError
    """
    unknown: Any = tokenizer.unk_token_id
    if unknown in (tokenizer.eos_token_id, tokenizer.pad_token_id):  # texts also end with it
        unknown = None

    ids = np.fromiter(itertools.chain.from_iterable(encoded), dtype=np.int64)
    recognised = np.isin(ids, tokenizer.all_special_ids, invert=True).sum()
    lost = 0 if unknown is None else (ids == unknown).sum()
    if recognised <= lost:
        raise IncompleteModelError(
            f"{name} has a tokenizer that knows {recognised} of {recognised + lost} tokens of the "
            "prompts: copy the tokenizer's files again, or ask in a language that the model reads."
        )
