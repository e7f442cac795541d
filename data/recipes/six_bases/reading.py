"""Read texts on the bases of ``data/plans/six-bases.yml`` without repeating computations.

Members have adapters in the upper half of their layers, so the lower half's states of a batch are
the same for all members of a base. They are computed once per block and remembered, in about 1 GB
of memory. A decoder reads texts with the same beginning as one tree, in which each token attends to
earlier tokens of its own text. The tree has a third of a questionnaire's tokens. Neither method
changes the vectors, except for rounding when texts are read together.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

TEXTS = 32
"""Maximum number of tokens in a tree, or in a batch of one length."""


@functools.lru_cache(maxsize=1)
def lower_states(base: str, block: int) -> dict[str, object]:
    """Return the remembered states of a base's lower half in this block, by batch."""
    return {}


def remember_lower_half(model: PreTrainedModel, states: dict[str, object]) -> None:
    """Let a model skip the lower half of its layers for remembered batches.

    Parameters
    ----------
    model : PreTrainedModel
        A model whose lower half of layers is frozen.
    states : dict
        Outputs of the last lower layer, by batch; new batches are added.
    """
    body = model.base_model
    number = model.config.num_hidden_layers
    stacks = (part for part in body.modules() if isinstance(part, torch.nn.ModuleList))
    layers = next(stack for stack in stacks if len(stack) == number)
    memory = _Memory(states)
    body.register_forward_pre_hook(memory.begin, with_kwargs=True)
    last = number // 2 - 1

    for place in range(last + 1):
        layers[place] = _Passable(layers[place], memory, place == last)


class _Memory:
    """The current batch, and the states of earlier batches."""

    def __init__(self, states: dict[str, object]) -> None:
        self.states = states
        self.batch = ""

    def begin(self, body: torch.nn.Module, given: tuple, named: dict) -> None:
        """Identify a batch by all of its tensors."""
        digest = hashlib.sha256()
        for value in (*given, *named.values()):
            if isinstance(value, torch.Tensor):
                digest.update(repr(value.shape).encode())
                digest.update(value.numpy().tobytes())
        self.batch = digest.hexdigest()


class _Passable(torch.nn.Module):
    """A frozen layer that leaves remembered states unchanged."""

    def __init__(self, layer: torch.nn.Module, memory: _Memory, is_last: bool) -> None:
        super().__init__()
        self.layer = layer
        self.memory = memory
        self.is_last = is_last

    def forward(self, *given: object, **named: object) -> object:
        """Return the layer's output, or the last lower layer's output if it is remembered."""
        remembered = self.memory.states.get(self.memory.batch)
        if remembered is not None:
            return remembered

        with torch.no_grad():
            output = self.layer(*given, **named)
        if self.is_last:
            self.memory.states[self.memory.batch] = output
        return output


def first_states(body: PreTrainedModel, rows: Sequence[dict]) -> np.ndarray:
    """Return an encoder's states of the first token of tokenized texts, shape (n, width)."""
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]["input_ids"]))
    vectors = np.empty((len(rows), body.config.hidden_size), dtype="float32")

    for _, alike in itertools.groupby(order, lambda place: len(rows[place]["input_ids"])):
        for chosen in _batches(list(alike)):
            inputs = {name: torch.tensor([rows[i][name] for i in chosen]) for name in rows[0]}
            with torch.no_grad():
                states = body(**inputs).last_hidden_state
            vectors[chosen] = states[:, 0].numpy()

    return vectors


def last_states(body: PreTrainedModel, texts: Sequence[list[int]]) -> np.ndarray:
    """Return a decoder's states of the last token of each text (as token ids), shape (n, width)."""
    order = sorted(range(len(texts)), key=texts.__getitem__)  # puts shared beginnings together
    vectors = np.empty((len(texts), body.config.hidden_size), dtype="float32")

    for chosen in _batches(order):
        ids, depths, seen, ends = tree([texts[i] for i in chosen])
        mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        with torch.no_grad():
            states = body(
                input_ids=ids[None],
                position_ids=depths[None],
                attention_mask=mask[None, None],
                use_cache=False,
            ).last_hidden_state
        vectors[chosen] = states[0, ends].numpy()

    return vectors


def _batches(places: list[int]) -> list[list[int]]:
    return [places[start : start + TEXTS] for start in range(0, len(places), TEXTS)]


def tree(texts: Sequence[list[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[int]]:
    """Return texts as one tree of tokens, which contains each shared beginning once.

    Parameters
    ----------
    texts : sequence of list of int
        Token ids of each text, which may not be empty.

    Returns
    -------
    ids, depths : Tensor, shape (nodes,)
        Each node's token, and its position in its texts.
    seen : Tensor of bool, shape (nodes, nodes)
        Whether a node (row) attends to another: itself and earlier nodes of its text.
    ends : list of int
        The node of each text's last token.

    Examples
    --------
    >>> ids, depths, seen, ends = tree([[5, 6, 7], [5, 6, 8]])
    >>> ids.tolist(), depths.tolist(), ends
    ([5, 6, 7, 8], [0, 1, 2, 2], [2, 3])
    >>> seen[3].tolist()
    [True, True, False, True]
    """
    nodes: dict[tuple[int, ...], int] = {}
    paths = []

    for text in texts:
        path = [nodes.setdefault(tuple(text[:end]), len(nodes)) for end in range(1, len(text) + 1)]
        paths.append(path)

    seen = np.eye(len(nodes), dtype=bool)
    for path in paths:
        for before, node in itertools.pairwise(path):
            seen[node] |= seen[before]

    ids = torch.tensor([beginning[-1] for beginning in nodes])
    depths = torch.tensor([len(beginning) - 1 for beginning in nodes])
    return ids, depths, torch.from_numpy(seen), [path[-1] for path in paths]
