"""Forward passes without padding or unused computations: BERTs and Llama-like decoders.

Three changes make a classifier faster; none of them alters an answer beyond rounding:

- Texts are concatenated instead of padded. Linear layers and normalisations work on single tokens;
  attention is computed for all texts of one length at a time, without a mask.
- A classifier reads only the first token of the last layer, so this layer computes only keys and
  values for the other tokens. One of MiniLM's six layers then costs a sixth as much.
- Query, key and value take one multiplication; on a processor the weights are packed once more for
  fast multiplication, with the activation fused, so that the weights are in memory twice. Elsewhere
  only query, key and value are copied.

A decoder reads a beginning shared by neighbouring texts only once, and its last layer computes only
the last tokens.

The functions that pack weights and multiply by them are private to torch and were tested with torch
2.13.0. Each packed layer is compared once with the plain layer. If they differ, or if a function is
missing or raises an error, at first or in a later batch, the plain layer is used from then on. On a
processor that has neither AVX-512 nor AVX-NE-CONVERT, these functions refuse bfloat16.

Both kinds of models are in this one file, because encoders and decoders share the packed layers.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# Classes of transformers that have BERT's layers and a head that reads the first token.
_CLASSES = (
    "BertForSequenceClassification",
    "CamembertForSequenceClassification",
    "RobertaForSequenceClassification",
    "XLMRobertaForSequenceClassification",
)
# Decoders of transformers that have Llama's layers, with or without normalised queries and keys.
_DECODERS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_PACKED = torch.ops.mkldnn  # what torch.compile emits for linear layers on a processor
# Activations that it fuses with the multiplication; this GELU uses the error function.
_WITHIN = {"gelu": ("gelu", "none"), "silu": ("swish", "")}
# Types that it multiplies, and the allowed difference of packed from plain results, relative to the
# largest value.
_ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 0.05}
_TABLES = ("word", "token_type", "position")  # of the embeddings
_Attending = list[tuple[torch.Tensor, torch.Tensor]]  # query positions, shape (n, q), and keys
_Step = Callable[[torch.Tensor], torch.Tensor]
_Features = Mapping[str, list[int]]  # of a text: token ids, optionally their types
_Group = tuple[int, int, int]  # texts of one length: first position, number, length
_Packed = TypeVar("_Packed")


def fast_forward(model: PreTrainedModel) -> Callable[..., torch.Tensor | None] | None:
    """Return a forward pass without padding, or None if the model's own pass must be used.

    Parameters
    ----------
    model : PreTrainedModel
        A model in evaluation mode.

    Returns
    -------
    callable or None
        For a classifier, the function that :func:`packed_forward` returns. For a Llama-like
        decoder, a function that takes the token ids of n texts, in an order that keeps texts with a
        shared beginning together. It returns the states of their last tokens before the output
        embeddings, shape (n, width), in the model's type. If it is given numbers of inner layers,
        it returns the normalised states after each of these layers and after the last, shape
        (depths, n, width). None if the class is in neither ``_CLASSES`` nor ``_DECODERS``, or if
        the model was changed (modified layers, hooks, decoding). If it is changed later, or if a
        text is longer than a decoder's sliding window, the returned function returns None. It
        repacks weights that are trained or moved later, but does not notice edits through
        ``.data``.

    Examples
    --------
    >>> from psychometrics.modes import load_respondent
    >>> respondent = load_respondent("minilm-mnli-l3-s16", dtype="float32")
    >>> features = respondent._encode([("I feel calm.", "It rarely happens.")])
    >>> own = respondent.model(**{k: torch.tensor([v]) for k, v in features[0].items()}).logits
    >>> torch.allclose(fast_forward(respondent.model)(features), own, atol=1e-5)
    True
    """
    if type(model).__name__ in _DECODERS and not _is_changed(model):
        return _last_states(model)

    config = model.config
    is_plain = (
        type(model).__name__ in _CLASSES
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and not getattr(config, "is_decoder", False)
        and not getattr(config, "add_cross_attention", False)
    )
    if not is_plain or _is_changed(model):
        return None

    forward = _rebuilt_on_change(model, lambda: packed_forward(model.state_dict(), model.config))

    def logits(features: Sequence[_Features]) -> torch.Tensor | None:
        return None if _is_changed(model) else forward()(features)

    return logits


def packed_forward(
    weights: Mapping[str, torch.Tensor], config: PreTrainedConfig
) -> Callable[[Sequence[_Features]], torch.Tensor]:
    """Return the forward pass of a BERT-like classifier, computed from its weights.

    Parameters
    ----------
    weights : mapping of str to Tensor
        All weights, by their names in transformers, on one device and of one type.
    config : PreTrainedConfig
        The model's configuration, with its activation and numbers of heads and layers.

    Returns
    -------
    callable
        A function that takes the features of n texts (``input_ids``, optionally
        ``token_type_ids``), in any order, and returns float32 logits, shape (n, outputs).
    """
    body = next(name.partition(".")[0] for name in weights if ".embeddings." in name)
    places_of_layers = [f"{body}.encoder.layer.{i}" for i in range(config.num_hidden_layers)]
    layers = [_pack_layer(weights, place, config) for place in places_of_layers]
    tables = [weights[f"{body}.embeddings.{table}_embeddings.weight"] for table in _TABLES]
    normalise = _layer_norm(weights, f"{body}.embeddings", config.layer_norm_eps)
    # RoBERTa and its relatives number positions from behind the padding's.
    offset = 0 if body == "bert" else config.pad_token_id + 1

    head = [f"{body}.pooler.dense", "classifier"]
    if f"{body}.pooler.dense.weight" not in weights:
        head = ["classifier.dense", "classifier.out_proj"]
    pool, classify = (_pack_linears(weights, [name]) for name in head)

    @torch.inference_mode()
    def logits(features: Sequence[_Features]) -> torch.Tensor:
        order = sorted(range(len(features)), key=lambda i: len(features[i]["input_ids"]))
        places, groups, starts = _flat_texts([features[i] for i in order], offset)
        starts = starts.to(tables[0].device)
        words, kinds, positions = (
            F.embedding(place.to(table.device), table)
            for place, table in zip(places, tables, strict=True)
        )
        hidden = normalise(words + kinds + positions)

        for layer in layers[:-1]:
            hidden = layer(hidden, groups)

        hidden = layers[-1](hidden, groups, starts)
        values = classify(pool(hidden).tanh()).float()
        return values[torch.tensor(order, device=values.device).argsort()]

    return logits


def _pack_linears(
    weights: Mapping[str, torch.Tensor], names: Sequence[str], activation: str = ""
) -> _Step:
    """Combine the linear layers that have the given names into one product."""
    matrices = [weights[f"{name}.weight"] for name in names]
    biases = [weights[f"{name}.bias"] for name in names]
    if len(names) == 1:  # not copied, since only a processor needs packed weights
        return _pack_linear(matrices[0], biases[0], activation)
    return _pack_linear(torch.cat(matrices), torch.cat(biases), activation)


def _pack_layer(
    weights: Mapping[str, torch.Tensor], name: str, config: PreTrainedConfig
) -> Callable[..., torch.Tensor]:
    """Return a layer, with its three inputs to attention as one product.

    It takes hidden states and groups of texts; if it is also given the first tokens, it returns
    the states of these alone.
    """
    inputs = [f"{name}.attention.self.{side}" for side in ("query", "key", "value")]
    project = _pack_linears(weights, inputs)
    mix = _pack_linears(weights, [f"{name}.attention.output.dense"])
    norm = _layer_norm(weights, f"{name}.attention.output", config.layer_norm_eps)
    widen = _pack_linears(weights, [f"{name}.intermediate.dense"], config.hidden_act)
    narrow = _pack_linears(weights, [f"{name}.output.dense"])
    out_norm = _layer_norm(weights, f"{name}.output", config.layer_norm_eps)

    def layer(
        hidden: torch.Tensor, groups: list[_Group], only: torch.Tensor | None = None
    ) -> torch.Tensor:
        projected = project(hidden)
        mixed = []
        for start, count, length in groups:
            texts = projected[start : start + count * length]
            texts = texts.view(count, length, 3, config.num_attention_heads, -1)
            query, key, value = texts.permute(2, 0, 3, 1, 4)
            if only is not None:
                query = query[:, :, :1]

            attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2)
            mixed.append(attended.reshape(-1, hidden.shape[1]))

        if only is not None:
            hidden = hidden[only]

        hidden = norm(hidden + mix(torch.cat(mixed)))
        return out_norm(hidden + narrow(widen(hidden)))

    return layer


def _layer_norm(weights: Mapping[str, torch.Tensor], name: str, epsilon: float) -> _Step:
    """Return a normalisation that uses a layer's weights."""
    weight = weights[f"{name}.LayerNorm.weight"]
    bias = weights[f"{name}.LayerNorm.bias"]

    def normalise(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, weight.shape, weight, bias, epsilon)

    return normalise


def _rebuilt_on_change(model: nn.Module, lay_out: Callable[[], _Packed]) -> Callable[[], _Packed]:
    """Return a function that returns the packed weights, and rebuilds them if they changed.

    Weights change if the model is trained or moved; outdated copies would keep giving the old
    answers.
    """
    laid_out: dict[tuple[object, ...], _Packed] = {}

    def current() -> _Packed:
        weights = [weight.detach() for weight in model.parameters() if weight.numel()]
        # Weights loaded in inference mode have no version counter.
        places = [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in weights]
        # A fused optimizer changes weights without increasing their version.
        ends = torch.stack([weight[(-1,) * weight.dim()] for weight in weights])
        now = (*places, *ends.tolist())
        if now not in laid_out:
            laid_out.clear()
            laid_out[now] = lay_out()
        return laid_out[now]

    return current


def _is_changed(model: nn.Module) -> bool:
    """Return whether a model is training, has hooks, or has added layers, such as an adapter's."""
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


def _flat_texts(
    features: Sequence[_Features], offset: int
) -> tuple[list[torch.Tensor], list[_Group], torch.Tensor]:
    """Return all tokens' ids, types and positions, the groups of texts, and the first tokens.

    Texts are sorted by length.
    """
    lengths = np.array([len(text["input_ids"]) for text in features])
    starts = lengths.cumsum() - lengths
    widths, positions, counts = np.unique(lengths, return_index=True, return_counts=True)
    groups = list(zip(starts[positions].tolist(), counts.tolist(), widths.tolist(), strict=True))

    rows = (
        [text["input_ids"] for text in features],
        [text.get("token_type_ids") or [0] * len(text["input_ids"]) for text in features],
    )
    flat = [np.fromiter(itertools.chain.from_iterable(row), dtype=np.int64) for row in rows]
    flat.append(np.arange(offset, offset + lengths.sum()) - np.repeat(starts, lengths))

    return [torch.from_numpy(column) for column in flat], groups, torch.from_numpy(starts)


def _pack_linear(weight: torch.Tensor, bias: torch.Tensor | None, activation: str = "") -> _Step:
    """Return a linear layer with its activation, packed for fast multiplication if that works."""
    weight = weight.detach()
    bias = None if bias is None else bias.detach()
    from transformers.activations import ACT2FN

    act: Any = ACT2FN[activation or "linear"]

    def plain(x: torch.Tensor) -> torch.Tensor:
        activated: torch.Tensor = act(F.linear(x, weight, bias))
        return activated

    if weight.device.type != "cpu" or weight.dtype not in _ROUNDING:
        return plain

    name, algorithm = _WITHIN.get(activation, ("none", ""))

    def multiply(x: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = _PACKED._linear_pointwise(x, packed, bias, name, [], algorithm)
        return product if activation in _WITHIN else act(product)

    @functools.cache
    def pack() -> torch.Tensor:
        """Pack the weights, and compare a product of three rows with the plain product."""
        packed: torch.Tensor = _PACKED._reorder_linear_weight(weight)
        rows = torch.linspace(-1, 1, 3 * weight.shape[1]).view(3, -1).to(weight.dtype)
        expected = plain(rows).float()
        tolerance = _ROUNDING[weight.dtype] * max(1.0, float(expected.abs().max()))
        if not torch.allclose(multiply(rows, packed).float(), expected, atol=tolerance, rtol=0):
            raise ArithmeticError("The packed layer differs from the plain layer.")

        return packed

    works = True

    def guarded(x: torch.Tensor) -> torch.Tensor:
        nonlocal works
        if works:
            # Private functions may be missing, refuse, or take other arguments.
            with contextlib.suppress(Exception):
                return multiply(x, pack())

        values = plain(x)  # raises if the input is at fault, or memory is short
        works = False
        return values

    return guarded


def _last_states(model: PreTrainedModel) -> Callable[..., torch.Tensor | None]:
    """Return a decoder's forward pass over texts that share their beginnings."""
    base: Any = model.base_model
    layers_now = _rebuilt_on_change(
        base, lambda: [_decoder_layer(layer, model.config) for layer in base.layers]
    )
    window = getattr(model.config, "sliding_window", None) or math.inf

    @torch.inference_mode()
    def states(texts: Sequence[list[int]], inner: Sequence[int] = ()) -> torch.Tensor | None:
        if _is_changed(model) or max(map(len, texts)) > window:
            return None
        layers = layers_now()
        device = model.device
        ids, positions, attending, last = _flatten(texts)
        hidden = base.embed_tokens(torch.tensor(ids, device=device))
        places = torch.tensor([positions], device=device)
        cosine, sine = (turn[0, :, None] for turn in base.rotary_emb(hidden[None], places))
        turns = cosine, sine
        attending = [(looking.to(device), at.to(device)) for looking, at in attending]
        last = last.to(device)

        depths = []
        for depth, layer in enumerate(layers[:-1], start=1):
            hidden = layer(hidden, turns, attending)
            if depth in inner:
                depths.append(base.norm(hidden[last]))

        # The last token of a row attends to the whole row.
        ends = [(looking[:, -1:], at) for looking, at in attending]
        hidden = layers[-1](hidden, turns, ends, last)
        final: torch.Tensor = base.norm(hidden)
        return torch.stack([*depths, final]) if inner else final

    return states


def _shared_beginnings(texts: Sequence[list[int]]) -> tuple[list[list[int]], list[int]]:
    """Return neighbouring texts' shared beginnings, and the index of each text's beginning.

    Texts share a beginning if it makes up at least half of each text; a beginning is never a whole
    text.

    Examples
    --------
    >>> _shared_beginnings([[1, 2, 3, 4], [1, 2, 3, 5, 6], [7, 8]])
    ([[1, 2, 3], [7]], [0, 0, 1])
    """
    shared: list[list[int]] = []
    group = []
    for text in texts:
        before = shared[-1] if shared else []
        pairs = zip(before, text[:-1], strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        if shared and 2 * common >= max(len(text), len(before)):
            shared[-1] = before[:common]
        else:
            shared.append(text[:-1])
        group.append(len(shared) - 1)

    return shared, group


def _flatten(texts: Sequence[list[int]]) -> tuple[list[int], list[int], _Attending, torch.Tensor]:
    """Flatten beginnings and rests of texts: ids, positions, attention, last tokens."""
    beginnings, group = _shared_beginnings(texts)
    ids = list(itertools.chain.from_iterable(beginnings))
    places = list(itertools.chain.from_iterable(map(range, map(len, beginnings))))
    starts = [0, *itertools.accumulate(map(len, beginnings))]
    of_length = defaultdict(list)

    for beginning, start in zip(beginnings, starts, strict=False):
        positions = list(range(start, start + len(beginning)))
        if positions:
            of_length[len(positions), len(positions)].append((positions, positions))

    last = []
    for text, number in zip(texts, group, strict=True):
        shared = len(beginnings[number])
        tokens = list(range(len(ids), len(ids) + len(text) - shared))
        ids += text[shared:]
        places += range(shared, len(text))
        last.append(tokens[-1])
        at = [*range(starts[number], starts[number] + shared), *tokens]
        of_length[len(tokens), len(at)].append((tokens, at))

    attending = []
    for rows in of_length.values():
        looking = torch.tensor([row[0] for row in rows])
        attending.append((looking, torch.tensor([row[1] for row in rows])))

    return ids, places, attending, torch.tensor(last)


def _decoder_layer(layer: Any, config: PreTrainedConfig) -> Callable[..., torch.Tensor]:
    """Pack a layer of transformers' Llama, Mistral or Qwen.

    The result takes hidden states, the turns of their positions, and who attends to whom; if it is
    also given some tokens, it returns the states of these alone.
    """
    heads = config.num_attention_heads
    of_keys = config.num_key_value_heads
    attention = layer.self_attn
    mlp = layer.mlp
    inputs = (attention.q_proj, attention.k_proj, attention.v_proj)
    bias = torch.cat([linear.bias for linear in inputs]) if inputs[0].bias is not None else None
    # query, key and value side by side
    project = _pack_linear(torch.cat([linear.weight for linear in inputs]), bias)
    mix = _pack_linear(attention.o_proj.weight, attention.o_proj.bias)
    gate = _pack_linear(mlp.gate_proj.weight, mlp.gate_proj.bias, config.hidden_act)
    up = _pack_linear(mlp.up_proj.weight, mlp.up_proj.bias)
    narrow = _pack_linear(mlp.down_proj.weight, mlp.down_proj.bias)

    def forward(
        hidden: torch.Tensor,
        turns: tuple[torch.Tensor, torch.Tensor],
        attending: _Attending,
        only: torch.Tensor | None = None,
    ) -> torch.Tensor:
        projected = project(layer.input_layernorm(hidden)).view(
            len(hidden), heads + 2 * of_keys, -1
        )
        turned, value = projected.tensor_split([heads + of_keys], dim=1)
        if hasattr(attention, "q_norm"):
            query, key = turned.tensor_split([heads], dim=1)
            turned = torch.cat((attention.q_norm(query), attention.k_norm(key)), dim=1)

        left_half, right_half = turned.chunk(2, dim=-1)
        turned = turned * turns[0] + torch.cat((-right_half, left_half), dim=-1) * turns[1]
        mixed = _attend(turned[:, :heads], turned[:, heads:], value, attending)
        if only is not None:
            hidden = hidden[only]
            mixed = mixed[only]

        hidden = hidden + mix(mixed.flatten(1))
        inner = layer.post_attention_layernorm(hidden)
        return hidden + narrow(gate(inner).mul_(up(inner)))

    return forward


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attending: _Attending
) -> torch.Tensor:
    """Return what each token gathers from the tokens that it sees."""
    mixed = torch.empty_like(query)
    groups = query.shape[1] // key.shape[1]
    for looking, at in attending:
        q, k, v = (states.transpose(1, 2) for states in (query[looking], key[at], value[at]))
        k, v = (states.repeat_interleave(groups, dim=1) for states in (k, v))
        visible = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
        visible = visible.tril(k.shape[2] - q.shape[2])
        mixed[looking] = F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2)

    return mixed
