"""Forward passes without padding and without what no answer reads: BERTs and Llama-like decoders.

Three things make a classifier's faster than the model's own; none changes an answer beyond
rounding:

- Texts stand one after another instead of in a rectangle. Linear layers and normalisations do not
  care where a text ends; attention is computed for all texts of one length at a time, without mask.
- A classifier reads the first token of the last layer alone, so there the others are only looked
  at, not computed on: of the six layers of MiniLM one costs a sixth.
- Query, key and value are one multiplication; on a processor the weights are laid out once more as
  its multiplication wants them, with the activation within it. They are in memory twice then.

A decoder reads once what neighbouring texts begin with, and of the last layer only the last tokens.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CLASSES = (
    "BertForSequenceClassification",
    "CamembertForSequenceClassification",
    "RobertaForSequenceClassification",
    "XLMRobertaForSequenceClassification",
)
"""Classes of transformers whose layers are BERT's and whose head reads the first token."""
_PACKED = torch.ops.mkldnn  # what torch.compile emits for linear layers on a processor
_WITHIN = {"GELUActivation": ("gelu", "none"), "SiLUActivation": ("swish", "")}
"""Activations that it computes within the multiplication; this GELU is the error function's."""
_Attending = list[tuple[torch.Tensor, torch.Tensor]]  # places that look, shape (n, q), and at what


class _Layer(NamedTuple):
    project: Callable[[torch.Tensor], torch.Tensor]  # query, key and value beside each other
    mix: Callable[[torch.Tensor], torch.Tensor]
    norm: nn.Module
    widen: Callable[[torch.Tensor], torch.Tensor]  # with the activation
    narrow: Callable[[torch.Tensor], torch.Tensor]
    out_norm: nn.Module


def fast_forward(model: PreTrainedModel) -> Callable[[Sequence[dict]], torch.Tensor | None] | None:
    """A classifier's forward pass without padding, or None where its own must be taken.

    Parameters
    ----------
    model : PreTrainedModel
        In evaluation mode.

    Returns
    -------
    callable or None
        From the features of n texts (``input_ids``, perhaps ``token_type_ids``), in any order, to
        logits, shape (n, outputs), float32. None if the class is not one of ``_CLASSES``, or if it
        was changed: layers that are not plain, hooks, decoding; it returns None where that happened
        later. Weights that are trained or moved later are laid out again, but edits through
        ``.data`` are not seen.

    Examples
    --------
    >>> from psychometrics.modes import load_respondent
    >>> respondent = load_respondent("minilm-mnli-l3-s16", dtype="float32")
    >>> features = respondent._encode([("I feel calm.", "It rarely happens.")])
    >>> own = respondent.model(**{k: torch.tensor([v]) for k, v in features[0].items()}).logits
    >>> torch.allclose(fast_forward(respondent.model)(features), own, atol=1e-5)
    True
    """
    if type(model).__name__ not in _CLASSES or not _is_plain(model):
        return None
    layers_now = _rebuilt_on_change(
        model.base_model, lambda: map(_layer, model.base_model.encoder.layer)
    )
    heads = model.config.num_attention_heads

    @torch.inference_mode()
    def logits(features: Sequence[dict]) -> torch.Tensor | None:
        if _is_changed(model):
            return None
        layers = layers_now()
        order = sorted(range(len(features)), key=lambda i: len(features[i]["input_ids"]))
        ordered = [features[i] for i in order]
        hidden, groups, first = _embedded(model, ordered)
        for layer in layers[:-1]:
            hidden = _through(layer, hidden, groups, heads)
        hidden = _through(layers[-1], hidden, groups, heads, only=first)
        # The head looks at the first token of what it is given.
        pooler = getattr(model.base_model, "pooler", None)
        given = pooler(hidden[:, None]) if pooler is not None else hidden[:, None]
        found = torch.empty(len(features), model.config.num_labels, device=model.device)
        found[torch.tensor(order, device=model.device)] = model.classifier(given).float()
        return found

    return logits


def _rebuilt_on_change(model: nn.Module, lay_out: Callable[[], Iterable]) -> Callable[[], list]:
    """Return a function that gives the packed weights, rebuilt if the model was trained or moved.

    A copy of weights that are no longer there would answer as they did before.
    """
    laid_out: dict[tuple, list] = {}

    def current() -> list:
        now = tuple((one.data_ptr(), one._version) for one in model.parameters())
        if now not in laid_out:
            laid_out.clear()
            laid_out[now] = list(lay_out())
        return laid_out[now]

    return current


def _is_changed(model: nn.Module) -> bool:
    """Whether it trains, has hooks, or weights in layers that are not plain, as an adapter's."""
    plain = (nn.Linear, nn.LayerNorm, nn.Embedding)
    return model.training or any(
        module._forward_hooks
        or module._forward_pre_hooks
        or (
            "weight" in module._parameters
            and type(module) not in plain
            and not type(module).__name__.endswith("RMSNorm")
        )
        for module in model.modules()
    )


def _is_plain(model: PreTrainedModel) -> bool:
    config = model.config
    absolute = getattr(config, "position_embedding_type", "absolute") == "absolute"
    decodes = getattr(config, "is_decoder", False) or getattr(config, "add_cross_attention", False)
    return absolute and not (_is_changed(model) or decodes)


def _embedded(
    model: PreTrainedModel, features: Sequence[dict]
) -> tuple[torch.Tensor, list[tuple[int, int, int]], torch.Tensor]:
    """Embeddings of all tokens, the groups of texts of one length, the places of first tokens.

    A group is the place where it begins, its texts, and their length; texts are in order of length.
    """
    lengths = [len(one["input_ids"]) for one in features]
    groups, start = [], 0
    for length, texts in itertools.groupby(lengths):
        groups.append((start, count := len(list(texts)), length))
        start += count * length
    embeddings = model.base_model.embeddings
    # RoBERTa and its kin number positions from behind the padding's.
    offset = 0 if type(embeddings).__name__ == "BertEmbeddings" else embeddings.padding_idx + 1

    def flat(rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.tensor([list(itertools.chain.from_iterable(rows))], device=model.device)

    hidden = embeddings(
        input_ids=flat([one["input_ids"] for one in features]),
        token_type_ids=flat(
            [one.get("token_type_ids") or [0] * len(one["input_ids"]) for one in features]
        ),
        position_ids=flat([range(offset, offset + length) for length in lengths]),
    )
    first = torch.tensor([0, *itertools.accumulate(lengths[:-1])], device=model.device)
    return hidden[0], groups, first


def _through(
    layer: _Layer,
    hidden: torch.Tensor,
    groups: list[tuple[int, int, int]],
    heads: int,
    only: torch.Tensor | None = None,
) -> torch.Tensor:
    """Hidden states after one layer: of all tokens, or ``only`` of each text's first."""
    projected, mixed = layer.project(hidden), []
    for start, count, length in groups:
        own = projected[start : start + count * length].view(count, length, 3, heads, -1)
        query, key, value = own.permute(2, 0, 3, 1, 4)
        if only is not None:
            query = query[:, :, :1]
        seen = F.scaled_dot_product_attention(query, key, value).transpose(1, 2)
        mixed.append(seen.reshape(-1, hidden.shape[1]))
    if only is not None:
        hidden = hidden[only]
    hidden = layer.norm(hidden + layer.mix(torch.cat(mixed)))
    return layer.out_norm(hidden + layer.narrow(layer.widen(hidden)))


def _layer(layer: nn.Module) -> _Layer:
    attention, out = layer.attention.self, layer.attention.output
    parts = (attention.query, attention.key, attention.value)
    weight = torch.cat([part.weight for part in parts])
    activation = layer.intermediate.intermediate_act_fn
    widen = layer.intermediate.dense
    return _Layer(
        _packed_linear(weight, torch.cat([part.bias for part in parts])),
        _packed_linear(out.dense.weight, out.dense.bias),
        out.LayerNorm,
        _packed_linear(widen.weight, widen.bias, activation),
        _packed_linear(layer.output.dense.weight, layer.output.dense.bias),
        layer.output.LayerNorm,
    )


def _packed_linear(
    weight: torch.Tensor, bias: torch.Tensor | None, activation: nn.Module | None = None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a linear layer, with its activation, packed as the processor multiplies fastest."""
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    within = _WITHIN.get(type(activation).__name__)
    packs = weight.device.type == "cpu" and weight.dtype in (torch.bfloat16, torch.float32)
    if packs and torch.backends.mkldnn.is_available() and hasattr(_PACKED, "_linear_pointwise"):
        packed = _PACKED._reorder_linear_weight(weight)
        name, how = within or ("none", "")

        def fast(x: torch.Tensor) -> torch.Tensor:
            x = _PACKED._linear_pointwise(x, packed, bias, name, [], how)
            return x if within or activation is None else activation(x)

        return fast

    def plain(x: torch.Tensor) -> torch.Tensor:
        x = F.linear(x, weight, bias)
        return x if activation is None else activation(x)

    return plain


class _DecoderLayer(NamedTuple):
    norm: nn.Module
    project: Callable[[torch.Tensor], torch.Tensor]  # query, key and value beside each other
    mix: Callable[[torch.Tensor], torch.Tensor]
    out_norm: nn.Module
    gate: Callable[[torch.Tensor], torch.Tensor]  # with the activation
    up: Callable[[torch.Tensor], torch.Tensor]
    narrow: Callable[[torch.Tensor], torch.Tensor]


def last_states(
    model: PreTrainedModel,
) -> Callable[[Sequence[list[int]]], torch.Tensor | None] | None:
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
        embeddings are multiplied with. None if the model is no Llama, or if it was changed; it
        returns None where that happened later.
    """
    if type(model).__name__ != "LlamaForCausalLM" or _is_changed(model):
        return None
    base = model.base_model
    layers_now = _rebuilt_on_change(base, lambda: map(_decoder_layer, base.layers))

    @torch.inference_mode()
    def states(texts: Sequence[list[int]]) -> torch.Tensor | None:
        if _is_changed(model):
            return None
        layers = layers_now()
        ids, places, attending, last = _flat(texts)
        hidden = base.embed_tokens(torch.tensor(ids, device=model.device))
        places = torch.tensor([places], device=model.device)
        turns = tuple(turn[0, :, None] for turn in base.rotary_emb(hidden[None], places))
        attending = [tuple(part.to(model.device) for part in parts) for parts in attending]
        last = last.to(model.device)
        for layer in layers[:-1]:
            hidden = _through_decoder(layer, hidden, turns, attending, model.config)
        # The last token of a row looks at all of it.
        ends = [(looking[:, -1:], at) for looking, at in attending]
        hidden = _through_decoder(layers[-1], hidden, turns, ends, model.config, only=last)
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


def _through_decoder(
    layer: _DecoderLayer,
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


def _decoder_layer(layer: nn.Module) -> _DecoderLayer:
    attention, mlp = layer.self_attn, layer.mlp
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    bias = torch.cat([part.bias for part in parts]) if parts[0].bias is not None else None
    return _DecoderLayer(
        layer.input_layernorm,
        _packed_linear(torch.cat([part.weight for part in parts]), bias),
        _packed_linear(attention.o_proj.weight, attention.o_proj.bias),
        layer.post_attention_layernorm,
        _packed_linear(mlp.gate_proj.weight, mlp.gate_proj.bias, mlp.act_fn),
        _packed_linear(mlp.up_proj.weight, mlp.up_proj.bias),
        _packed_linear(mlp.down_proj.weight, mlp.down_proj.bias),
    )
