"""Heads on frozen vectors: their training pairs, initial weights, training, answers and scores.

The study of the number of training pairs (``data/plans/dose.yml``) began with these functions; the
recipes of kernels, null populations, six bases and twins use them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from psychometrics.measures.normalisation import two_way
from psychometrics.measures.validity import silhouettes
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics.training.pairs import mnli_sample, nli_pairs

from .nulls import QUESTIONNAIRES

WORDING = "Premise: {premise} Hypothesis: {hypothesis} Answer:"
"""The decoder's wording, which most members on it read."""
BATCH = 256
EVERY = 25
PATIENCE = 150
POOL = 8000
LONGEST = 157
HELD_OUT = 800


def pool() -> pd.DataFrame:
    """Return the pairs: ``premise, hypothesis, label, part`` (train, stop or test).

    The training pairs are 8,000 of MNLI and 8,000 of SNLI. MNLI's pairs are drawn from the shorter
    half of its training pairs, up to 157 characters, since prompts are short and long pairs cost
    most.
    """
    mnli = mnli_sample()
    mnli = mnli[mnli["premise"].str.len() + mnli["hypothesis"].str.len() <= LONGEST]
    held = mnli[mnli["held_out"]].sample(HELD_OUT, random_state=0)
    snli = nli_pairs("snli")
    premises = pd.Series(snli["premise"].unique()).sample(frac=1, random_state=0)
    snli = snli.set_index("premise").loc[premises].reset_index()  # pairs of a premise together
    half = HELD_OUT // 2
    parts = {
        "train": [mnli[~mnli["held_out"]].sample(POOL, random_state=0), snli[:POOL]],
        "stop": [held[:half], snli[-HELD_OUT:-half]],
        "test": [held[half:], snli[-half:]],
    }
    frame = pd.concat({name: pd.concat(pairs) for name, pairs in parts.items()}, names=["part"])

    return frame.reset_index("part")[["premise", "hypothesis", "label", "part"]]


class Template(NamedTuple):
    """A template's position among the prompts: rows (terms, intensifiers), weights and stances."""

    item: str
    key: int
    rows: np.ndarray
    weights: np.ndarray
    polarity: np.ndarray


def templates(names: tuple[str, ...] = QUESTIONNAIRES) -> tuple[pd.DataFrame, list[Template]]:
    """Return the prompts of questionnaires, and each template's position among them."""
    loaded = [load_questionnaire(name) for name in names]
    table = pd.concat([prompts(each) for each in loaded], ignore_index=True)
    keys = {item.id: item.keying for each in loaded for item in each.items}
    places = []
    for (item, _), template in table.groupby(["item_id", "template"], sort=False):
        terms = template["term"].ne(template["term"].shift()).sum()
        rows = template.index.to_numpy().reshape(terms, -1)
        weights = table["weight"].to_numpy()[rows[0]]
        polarity = table["polarity"].to_numpy()[rows[:, 0]]
        places.append(Template(item, keys[item], rows, weights, polarity))

    return table, places


def score(entailment: np.ndarray, places: list[Template]) -> dict[str, np.ndarray]:
    """Return ``source, inverse`` (by the items' keys) and ``silhouette``, each (heads, items)."""
    scores: dict[str, dict[str, list]] = {"source": {}, "inverse": {}, "silhouette": {}}
    for item, key, rows, weights, polarity in places:
        sides = two_way(entailment[:, rows])
        values = key * (sides @ weights) / len(weights) * polarity
        scores["source"].setdefault(item, []).append(values[:, polarity > 0].mean(axis=1))
        scores["inverse"].setdefault(item, []).append(values[:, polarity < 0].mean(axis=1))
        scores["silhouette"].setdefault(item, []).append(silhouettes(sides, polarity))

    return {
        kind: np.stack([np.mean(of_item, axis=0) for of_item in items.values()], axis=1)
        for kind, items in scores.items()
    }


def untrained(numbers: range, width: int, linear: bool) -> list[torch.Tensor]:
    """Return initial weights of heads, as :func:`psychometrics.null_answers` draws them.

    Shapes (heads, width, width) and (heads, width, 3); linear heads have only the second.
    """
    shapes = [(width, 3)] if linear else [(width, width), (width, 3)]
    drawn = []
    for number in numbers:
        rng = np.random.default_rng([0, number])
        drawn.append([torch.from_numpy(rng.normal(0, 0.02, shape)).float() for shape in shapes])
    return [torch.stack(layer) for layer in zip(*drawn, strict=True)]


def logits(head: list[torch.Tensor], vectors: torch.Tensor) -> torch.Tensor:
    """Return logits, (heads, n, 3), of vectors (n, width), or each head's own (heads, n, width)."""
    vectors = vectors.expand(len(head[0]), *vectors.shape[-2:])
    for layer in head[:-1]:
        vectors = torch.tanh(vectors @ layer)
    return vectors @ head[-1]


def train(
    head: list[torch.Tensor],
    vectors: torch.Tensor,
    labels: torch.Tensor,
    stop: tuple[torch.Tensor, torch.Tensor],
    rate: float,
    steps: int,
) -> list[torch.Tensor]:
    """Train heads side by side, each on its own pairs.

    Parameters
    ----------
    head : list of Tensor
        Initial weights, as :func:`untrained` returns them.
    vectors, labels : Tensor, shapes (pool, width) and (heads, 2, pairs)
        Vectors of the pool; for each head the rows of its pairs, and their labels.
    stop : Tensor and Tensor
        Vectors and labels of the pairs for early stopping.
    rate, steps
        Learning rate of Adam, and maximum number of steps.

    Returns
    -------
    list of Tensor
        Each head at the step with its lowest loss on the stopping pairs.
    """
    head = [layer.clone().requires_grad_() for layer in head]
    heads = len(head[0])
    size = labels.shape[2]
    best = [layer.detach().clone() for layer in head]
    lowest = np.full(heads, np.inf)
    last_gain = 0
    optimizer = torch.optim.Adam(head, lr=rate, fused=True)
    generator = torch.Generator().manual_seed(0)

    for step in range(steps + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                z = logits(head, stop[0]).mT

            losses = F.cross_entropy(z, stop[1].expand(heads, -1), reduction="none").mean(1).numpy()
            better = losses < lowest
            if better.any():
                last_gain = step
                lowest[better] = losses[better]
                for kept, layer in zip(best, head, strict=True):
                    kept[better] = layer.detach()[better]

            if step - last_gain >= PATIENCE:
                break

        chosen = torch.randint(size, (heads, 1, BATCH), generator=generator).expand(-1, 2, -1)
        rows, truth = labels.gather(2, chosen).unbind(1)
        z = logits(head, vectors[rows])
        loss = F.cross_entropy(z.flatten(0, 1), truth.flatten()) * heads
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return best


def centred_logs(scores: np.ndarray) -> np.ndarray:
    """Return log probabilities of logits (heads, n, 3), minus their means over classes and n."""
    logs = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
    logs = logs - logs.mean(axis=2, keepdims=True)
    return logs - logs.mean(axis=1, keepdims=True)


def scaled_logs(scores: np.ndarray, size: float) -> np.ndarray:
    """Return the centred log probabilities of logits, scaled to a root mean square."""
    logs = centred_logs(scores)
    return logs * (size / np.sqrt((logs**2).mean(axis=(1, 2), keepdims=True)))


def shares(logs: np.ndarray, kind: str) -> np.ndarray:
    """Return the score of each answer, (heads, n): by entailment, or against contradiction."""
    logs = logs if kind == "entailment" else logs[..., [0, 2]]
    return np.exp(logs[..., 0] - np.logaddexp.reduce(logs, axis=2))


@torch.no_grad()
def answer(head: list[torch.Tensor], vectors: torch.Tensor) -> np.ndarray:
    """Return logits, (heads, n, 3), head by head."""
    each = range(len(head[0]))
    return np.concatenate([logits([layer[k : k + 1] for layer in head], vectors) for k in each])
