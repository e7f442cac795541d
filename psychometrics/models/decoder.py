"""The forward pass of Llama-like decoders to the state of each text's last token.

What neighbouring texts begin with is read once, no padding is computed on, and of the last layer
nothing that is not read. As in :mod:`.fast_bert`, no answer changes beyond rounding.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from .fast_bert import is_changed, packed_linear, rebuilt_on_change

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_Attending = list[tuple[torch.Tensor, torch.Tensor]]  # places that look, shape (n, q), and at what


class _Layer(NamedTuple):
    norm: nn.Module
    project: Callable[[torch.Tensor], torch.Tensor]  # query, key and value beside each other
    mix: Callable[[torch.Tensor], torch.Tensor]
    out_norm: nn.Module
    gate: Callable[[torch.Tensor], torch.Tensor]  # with the activation
    up: Callable[[torch.Tensor], torch.Tensor]
    narrow: Callable[[torch.Tensor], torch.Tensor]


def last_states(model: PreTrainedModel) -> Callable[[Sequence[list[int]]], torch.Tensor] | None:
    """A decoder's forward pass over texts that share their beginnings, or None for its own.

    Parameters
    ----------
    model : PreTrainedModel
        In evaluation mode.

    Returns
    -------
    callable or None
        From the token ids of n texts, those with the same beginning beside each other, to the
        states of their last tokens, shape (n, width), of the model's type, that its output
        embeddings are multiplied with. None if the model is no Llama, or if it was changed.
    """
    if type(model).__name__ != "LlamaForCausalLM" or is_changed(model):
        return None
    base = model.base_model
    layers_now = rebuilt_on_change(base, lambda: map(_layer, base.layers))

    @torch.inference_mode()
    def states(texts: Sequence[list[int]]) -> torch.Tensor:
        layers = layers_now()
        ids, places, attending, last = _flat(texts)
        hidden = base.embed_tokens(torch.tensor(ids, device=model.device))
        places = torch.tensor([places], device=model.device)
        turns = tuple(turn[0, :, None] for turn in base.rotary_emb(hidden[None], places))
        attending = [tuple(part.to(model.device) for part in parts) for parts in attending]
        last = last.to(model.device)
        for layer in layers[:-1]:
            hidden = _through(layer, hidden, turns, attending, model.config)
        # The last token of a row looks at all of it.
        ends = [(looking[:, -1:], at) for looking, at in attending]
        hidden = _through(layers[-1], hidden, turns, ends, model.config, only=last)
        return base.norm(hidden)

    return states


def _shared_beginnings(texts: Sequence[list[int]]) -> tuple[list[list[int]], list[int]]:
    """Return what neighbouring texts begin with, and which beginning each text has.

    Texts share one as long as it is at least half of each; no beginning is a whole text.

    Examples
    --------
    >>> _shared_beginnings([[1, 2, 3, 4], [1, 2, 3, 5, 6], [7, 8]])
    ([[1, 2, 3], [7]], [0, 0, 1])
    """
    shared, group = [], []
    for text in texts:
        if shared:
            both = zip(shared[-1], text[:-1], strict=False)
            common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], both))
            if 2 * common >= max(len(text), len(shared[-1])):
                shared[-1] = shared[-1][:common]
                group.append(len(shared) - 1)
                continue
        shared.append(text[:-1])
        group.append(len(shared) - 1)
    return shared, group


def _flat(texts: Sequence[list[int]]) -> tuple[list[int], list[int], _Attending, torch.Tensor]:
    """Beginnings and then rests one after another: ids, positions, who looks where, last tokens."""
    beginnings, group = _shared_beginnings(texts)
    ids = list(itertools.chain.from_iterable(beginnings))
    places = list(itertools.chain.from_iterable(map(range, map(len, beginnings))))
    starts = [0, *itertools.accumulate(map(len, beginnings))]
    of_length = defaultdict(list)
    for begun, start in zip(beginnings, starts, strict=False):
        whole = list(range(start, start + len(begun)))
        if whole:
            of_length[len(whole), len(whole)].append((whole, whole))
    last = []
    for text, one in zip(texts, group, strict=True):
        begun = len(beginnings[one])
        rest = list(range(len(ids), len(ids) + len(text) - begun))
        ids += text[begun:]
        places += range(begun, len(text))
        last.append(rest[-1])
        at = [*range(starts[one], starts[one] + begun), *rest]
        of_length[len(rest), len(at)].append((rest, at))
    attending = [
        tuple(torch.tensor(part) for part in zip(*rows, strict=True)) for rows in of_length.values()
    ]
    return ids, places, attending, torch.tensor(last)


def _through(
    layer: _Layer,
    hidden: torch.Tensor,
    turns: tuple[torch.Tensor, torch.Tensor],
    attending: _Attending,
    config,
    only: torch.Tensor | None = None,
) -> torch.Tensor:
    """Hidden states after one layer: of all tokens, or of ``only`` some."""
    heads, of_keys = config.num_attention_heads, config.num_key_value_heads
    projected = layer.project(layer.norm(hidden)).view(len(hidden), heads + 2 * of_keys, -1)
    turned, value = projected[:, :-of_keys], projected[:, -of_keys:]
    turned = turned * turns[0] + _rotated(turned) * turns[1]
    query, key = turned[:, :heads], turned[:, heads:]
    mixed = torch.empty_like(query)
    for looking, at in attending:
        q, k, v = (part.transpose(1, 2) for part in (query[looking], key[at], value[at]))
        k, v = (part.repeat_interleave(heads // of_keys, dim=1) for part in (k, v))
        visible = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
        visible = visible.tril(k.shape[2] - q.shape[2])
        mixed[looking] = F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2)
    if only is not None:
        hidden, mixed = hidden[only], mixed[only]
    hidden = hidden + layer.mix(mixed.flatten(1))
    inner = layer.out_norm(hidden)
    return hidden + layer.narrow(layer.gate(inner).mul_(layer.up(inner)))


def _rotated(x: torch.Tensor) -> torch.Tensor:
    one, other = x.chunk(2, dim=-1)
    return torch.cat((-other, one), dim=-1)


def _layer(layer: nn.Module) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    bias = torch.cat([part.bias for part in parts]) if parts[0].bias is not None else None
    return _Layer(
        layer.input_layernorm,
        packed_linear(torch.cat([part.weight for part in parts]), bias),
        packed_linear(attention.o_proj.weight, attention.o_proj.bias),
        layer.post_attention_layernorm,
        packed_linear(mlp.gate_proj.weight, mlp.gate_proj.bias, mlp.act_fn),
        packed_linear(mlp.up_proj.weight, mlp.up_proj.bias),
        packed_linear(mlp.down_proj.weight, mlp.down_proj.bias),
    )
