"""How much a forward pass computes, and how fast the machine multiplies matrices of its shapes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_GATED = {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "smollm3"}
_POOLED = {"bert", "roberta", "xlm-roberta", "camembert", "electra"}
"""Architectures that put the first token through one more square layer before they classify."""


def forward_flop(config: PretrainedConfig, lengths: Sequence[int]) -> float:
    r"""Floating-point operations of one forward pass over sequences without padding.

    A layer of width h, inner width f and k key-value heads of width d multiplies, for L tokens,

    .. math:: 2L\,(2h^2 + 2hkd + mhf) + 4L^2h

    with m = 2, or 3 where the inner layer is gated. Biases, norms, softmax and embeddings are not
    counted, as in ``torch.utils.flop_counter``.

    Parameters
    ----------
    config : PretrainedConfig
        Of a BERT-like classifier or a Llama-like decoder that answers by three words.
    lengths : sequence of int
        Tokens of each sequence.
    """
    tokens = np.asarray(lengths, dtype=np.float64)
    h, labels = config.hidden_size, 3
    linear = sum(2 * a * b for a, b, times in _layer_shapes(config) for _ in range(times))
    layer = tokens * linear + 4 * tokens**2 * h
    head = 2 * h * labels + (2 * h * h if config.model_type in _POOLED else 0)
    return float(config.num_hidden_layers * layer.sum() + head * len(tokens))


def matmul_rate(
    config: PretrainedConfig, tokens: int, dtype: torch.dtype, seconds: float = 0.4
) -> float:
    """Floating-point operations a second in the matrix multiplications of one layer, nothing else.

    Parameters
    ----------
    config : PretrainedConfig
    tokens : int
        Rows of the left matrix: the tokens of a batch.
    dtype : torch.dtype
        Of the matrices.
    seconds : float
        How long to measure, after a first round that is not counted.
    """
    shapes = [(a, b) for a, b, times in _layer_shapes(config) for _ in range(times)]
    inputs = {a: torch.randn(tokens, a, dtype=dtype) for a, _ in shapes}
    weights = [torch.randn(b, a, dtype=dtype) / a**0.5 for a, b in shapes]
    one = 2 * tokens * sum(a * b for a, b in shapes)

    def once() -> None:
        for weight in weights:
            torch.nn.functional.linear(inputs[weight.shape[1]], weight)

    return one * _rounds(once, seconds)


def memory_rate(width: int, tokens: int = 4096, seconds: float = 0.4) -> float:
    """Bytes a second that are read and written when the states of so many tokens are copied."""
    states, copy = torch.randn(2, tokens, width).bfloat16()
    return 4 * states.numel() * _rounds(lambda: copy.copy_(states), seconds)


def _rounds(once: Callable[[], object], seconds: float) -> float:
    """How often a second something can be done."""
    with torch.inference_mode():
        once()
        rounds, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds or not rounds:
            once()
            rounds += 1
    return rounds / took


def _layer_shapes(config: PretrainedConfig) -> list[tuple[int, int, int]]:
    """Weight matrices of a layer: inputs, outputs, and how many of them."""
    h, f = config.hidden_size, config.intermediate_size
    heads = config.num_attention_heads
    of_head = getattr(config, "head_dim", None) or h // heads
    keys = (getattr(config, "num_key_value_heads", None) or heads) * of_head
    gates = 2 if config.model_type in _GATED else 1
    return [(h, heads * of_head, 1), (h, keys, 2), (heads * of_head, h, 1),
            (h, f, gates), (f, h, 1)]  # fmt: skip
