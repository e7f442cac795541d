"""Train the decoder members: adapters on smollm2 that answer a pair with yes, maybe or no.

``python -m recipes.population`` calls it. :func:`psychometrics.training.train_nli` trains any base;
this module trains only one, but three times as fast on a processor, which makes eight members
affordable: the base stays in bfloat16 and its projections are joined, and the hypotheses of one
premise share a row, so that the premise is read once. Each pair gets the same numbers as it would
alone. A stopped run resumes from its last checkpoint.
"""

from __future__ import annotations

import json
import math
import random
import time
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from psychometrics.exceptions import DataError
from psychometrics.models.loading import load_config, load_tokenizer
from psychometrics.models.sources import SMOLLM2, find
from psychometrics.training.pairs import nli_pairs

ANSWERS = (" yes", " maybe", " no")
"""A member's words for entailment, neutral and contradiction."""
WORDINGS = {
    "plain": ("Premise: {premise}", " Hypothesis: {hypothesis} Answer:"),
    "follow": ('"{premise}"', ' Does it follow that "{hypothesis}"? Answer:'),
    "question": ("Passage: {premise}", " Question: Is it true that {hypothesis} Answer:"),
}
"""Wordings of a pair: the part that hypotheses of one premise share, and the rest."""
LINEARS = {
    "q_proj": "self_attn", "k_proj": "self_attn", "v_proj": "self_attn", "o_proj": "self_attn",
    "gate_proj": "mlp", "up_proj": "mlp", "down_proj": "mlp",
}  # fmt: skip
JOINED = (("q_proj", "k_proj", "v_proj"), ("o_proj",), ("gate_proj", "up_proj"), ("down_proj",))
BATCH = 16
MOST = 4
KEEP_EVERY = 50
WARM_UP = 0.04
"""Pairs per step, hypotheses per row, steps per checkpoint, share of steps until the peak rate."""


def train_decoder(recipe: dict, folder: Path, data: pd.DataFrame | None = None) -> dict:
    """Train one member and write its adapter in the form that peft reads.

    Parameters
    ----------
    recipe : dict
        ``data`` (as :func:`psychometrics.training.pairs.nli_pairs` names it, joined by "+"), number
        of ``pairs`` to use (0 for all), ``seed, rank, layers`` (how many to keep),
        ``adapt_from`` (the first adapted layer), ``wording`` (a key of ``WORDINGS``), ``lr,
        epochs``.
    folder : Path
        Folder for the adapter, its ``recipe.json``, and the checkpoint of a stopped run.
    data : DataFrame, optional
        Labelled pairs that replace those of ``data``.

    Returns
    -------
    dict
        ``steps, pairs, seconds`` and ``losses``, one per step.
    """
    steps = _batches_of(recipe, nli_pairs(recipe["data"].split("+")) if data is None else data)
    model = _Decoder(recipe)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["lr"], weight_decay=0.0)
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "checkpoint.pt"
    state = {"step": 0, "seconds": 0.0, "pairs": 0, "losses": []}

    if checkpoint.is_file():
        kept = torch.load(checkpoint, weights_only=True)
        if kept["recipe"] == recipe:
            model.load_state_dict(kept["model"])
            optimizer.load_state_dict(kept["optimizer"])
            state = kept["state"]

    while state["step"] < len(steps):
        began = time.perf_counter()
        batch = _collated(steps[state["step"]])
        for group in optimizer.param_groups:
            group["lr"] = recipe["lr"] * _rate(state["step"], len(steps))

        loss = F.cross_entropy(model(batch), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state["step"] += 1
        state["pairs"] += len(batch["labels"])
        state["seconds"] += time.perf_counter() - began
        state["losses"].append(round(loss.item(), 4))

        if state["step"] % KEEP_EVERY == 0:
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(kept | {"recipe": recipe, "state": state}, folder / "checkpoint.part")
            (folder / "checkpoint.part").replace(checkpoint)

    model.write(folder)
    checkpoint.unlink(missing_ok=True)
    return {"steps": state["step"]} | {k: state[k] for k in ("pairs", "seconds", "losses")}


class _Decoder(torch.nn.Module):
    """The frozen base in bfloat16 with adapters in float32."""

    def __init__(self, recipe: dict) -> None:
        super().__init__()
        source = find(SMOLLM2)
        self.recipe, self.config = recipe, load_config(source)
        weights = load_file(source.fetch() / "model.safetensors")
        self.embed = weights["model.embed_tokens.weight"]
        self.norm = weights["model.norm.weight"]
        ids = [load_tokenizer(source)(word)["input_ids"] for word in ANSWERS]
        self.answers = self.embed[[of_word[-1] for of_word in ids]].float()
        self.base, self.lora = [], torch.nn.ParameterDict()
        generator = torch.Generator().manual_seed(recipe["seed"])

        for number in range(recipe["layers"]):
            at = f"model.layers.{number}."
            joined = [
                torch.cat([weights[f"{at}{LINEARS[m]}.{m}.weight"] for m in names]).contiguous()
                for names in JOINED
            ]
            norms = [weights[f"{at}{n}_layernorm.weight"] for n in ("input", "post_attention")]
            self.base.append((norms, joined))

            if number < recipe["adapt_from"]:
                continue

            for module, block in LINEARS.items():
                outputs, inputs = weights[f"{at}{block}.{module}.weight"].shape
                a = torch.rand(recipe["rank"], inputs, generator=generator) * 2 - 1  # as in peft
                self.lora[f"{number}-{module}-A"] = torch.nn.Parameter(a / math.sqrt(inputs))
                b = torch.zeros(outputs, recipe["rank"])
                self.lora[f"{number}-{module}-B"] = torch.nn.Parameter(b)

    def forward(self, batch: dict) -> torch.Tensor:
        """Return logits of the three answers, shape (pairs, 3), in float32."""
        width = self.config.head_dim
        inverse = self.config.rope_parameters["rope_theta"] ** (
            -torch.arange(0, width, 2).float() / width
        )
        angle = (batch["positions"].float()[..., None] * inverse).repeat(1, 1, 2)[:, None]
        turn = angle.cos().bfloat16(), angle.sin().bfloat16()
        x = F.embedding(batch["ids"], self.embed)

        for number, base in enumerate(self.base):
            x = self._layer(x, turn, batch["mask"], base, self._joined(number))

        x = self._normed(x[batch["rows"], batch["ends"]], self.norm)
        return F.linear(x.float(), self.answers)

    def _layer(self, x, turn, mask, base, lora) -> torch.Tensor:
        (norm, second_norm), linears = base
        heads = self.config.num_attention_heads
        shared = self.config.num_key_value_heads
        h = _linear(self._normed(x, norm), linears[0], lora[0])
        h = h.unflatten(-1, (-1, self.config.head_dim)).transpose(1, 2)
        q, k, v = h.split((heads, shared, shared), 1)
        q = _turned(q, *turn)
        k = _turned(k, *turn)
        k, v = (part.repeat_interleave(heads // shared, 1) for part in (k, v))
        # Written out, since the fused kernel's backward pass takes five times as long on a
        # processor.
        h = torch.softmax(q @ k.mT * self.config.head_dim**-0.5 + mask, dim=-1) @ v
        x = x + _linear(h.transpose(1, 2).flatten(2), linears[1], lora[1])
        gate, up = _linear(self._normed(x, second_norm), linears[2], lora[2]).chunk(2, -1)

        return x + _linear(F.silu(gate) * up, linears[3], lora[3])

    def _normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return weight * y.to(x.dtype)

    def _joined(self, number: int) -> list:
        """Return a layer's adapters in bfloat16, as wide as the joined projections."""
        if number < self.recipe["adapt_from"]:
            return [None] * len(JOINED)

        return [
            (
                torch.cat([self.lora[f"{number}-{m}-A"] for m in names]).bfloat16(),
                # Doubled, since alpha is twice the rank.
                (torch.block_diag(*[self.lora[f"{number}-{m}-B"] for m in names]) * 2).bfloat16(),
            )
            for names in JOINED
        ]

    def write(self, folder: Path) -> None:
        """Write the adapter in fp16, its configuration, and the wording of pairs and answers."""
        layers = list(range(self.recipe["adapt_from"], self.recipe["layers"]))
        tensors = {
            f"base_model.model.model.layers.{n}.{block}.{m}.lora_{x}.weight": (
                self.lora[f"{n}-{m}-{x}"].detach().half().contiguous()
            )
            for n in layers
            for m, block in LINEARS.items()
            for x in "AB"
        }
        save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
        rank = self.recipe["rank"]
        config = {
            "peft_type": "LORA", "task_type": "CAUSAL_LM", 
            "base_model_name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct",
            "r": rank, "lora_alpha": 2 * rank, "lora_dropout": 0.0, "bias": "none",
            "target_modules": list(LINEARS), "layers_to_transform": layers,
            "layers_pattern": "layers", "inference_mode": True,
        }  # fmt: skip
        (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
        told = self.recipe | {
            "wording": "".join(WORDINGS[self.recipe["wording"]]),
            "answers": list(ANSWERS),
            "base": SMOLLM2,
            "tuning": "lora",
            "dtype": "bfloat16",
        }
        (folder / "recipe.json").write_text(json.dumps(told, indent=1) + "\n")


def _linear(x: torch.Tensor, weight: torch.Tensor, lora: tuple | None) -> torch.Tensor:
    y = F.linear(x, weight)
    return y if lora is None else y + F.linear(F.linear(x, lora[0]), lora[1])


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _batches_of(recipe: dict, data: pd.DataFrame) -> list[list[tuple]]:
    """Return the batches of all epochs: groups of (premise ids, [(hypothesis ids, label)])."""
    if data.empty:
        raise DataError("There are no labelled pairs to train on: give at least one.")

    tokenizer = load_tokenizer(SMOLLM2)
    head, tail = WORDINGS[recipe["wording"]]
    tails = tokenizer([tail.format(hypothesis=h.strip()) for h in data["hypothesis"]])["input_ids"]
    found: dict[str, list] = {}
    for premise, ids, label in zip(data["premise"], tails, data["label"], strict=True):
        found.setdefault(premise.strip(), []).append((ids, int(label)))

    heads = tokenizer([head.format(premise=premise) for premise in found])["input_ids"]
    groups = [
        (ids, members[at : at + MOST])
        for ids, members in zip(heads, found.values(), strict=True)
        for at in range(0, len(members), MOST)
    ]
    random.Random(recipe["seed"]).shuffle(groups)

    if recipe["pairs"]:
        taken = []
        count = 0
        for ids, members in groups:
            if count == recipe["pairs"]:
                break
            taken.append((ids, members[: recipe["pairs"] - count]))
            count += len(taken[-1][1])

        groups = taken

    return [
        batch
        for epoch in range(recipe["epochs"])
        for batch in _shuffled(groups, 1000 * recipe["seed"] + epoch)
    ]


def _shuffled(groups: list[tuple], seed: int) -> list[list[tuple]]:
    """Return batches of ``BATCH`` pairs of similar lengths, in random order."""
    rng = random.Random(seed)
    groups = list(groups)
    rng.shuffle(groups)
    batches = []
    for start in range(0, len(groups), 40 * BATCH):
        batch = []
        count = 0
        for group in sorted(groups[start : start + 40 * BATCH], key=_length):
            if batch and count + len(group[1]) > BATCH:
                batches.append(batch)
                batch = []
                count = 0

            batch.append(group)
            count += len(group[1])

        batches.append(batch)

    rng.shuffle(batches)
    return batches


def _length(group: tuple) -> int:
    return len(group[0]) + sum(len(ids) for ids, _ in group[1])


def _collated(batch: list[tuple]) -> dict:
    """Return rows of a premise and its hypotheses, which do not attend to each other."""
    shape = len(batch), max(map(_length, batch))
    ids = torch.full(shape, 2)
    positions = torch.zeros(shape, dtype=torch.long)
    segment = torch.full(shape, -1)
    rows = []
    ends = []
    labels = []
    for row, (head, members) in enumerate(batch):
        at = len(head)
        ids[row, :at], positions[row, :at] = torch.tensor(head), torch.arange(at)
        segment[row, :at] = 0

        for number, (tail, label) in enumerate(members, start=1):
            end = at + len(tail)
            ids[row, at:end] = torch.tensor(tail)
            positions[row, at:end] = torch.arange(len(tail)) + len(head)
            segment[row, at:end] = number
            rows.append(row), ends.append(end - 1), labels.append(label)
            at = end

    same = segment[:, :, None] == segment[:, None, :]
    shared = (segment == 0)[:, None, :] & (segment > 0)[:, :, None]
    seen = ((same | shared) & torch.ones(shape[1], shape[1], dtype=torch.bool).tril())[:, None]
    mask = torch.zeros(seen.shape, dtype=torch.bfloat16)
    mask = mask.masked_fill(~seen, torch.finfo(torch.bfloat16).min)

    return {
        "ids": ids, "positions": positions, "mask": mask, "rows": torch.tensor(rows),
        "ends": torch.tensor(ends), "labels": torch.tensor(labels),
    }  # fmt: skip


def _rate(step: int, steps: int) -> float:
    warm = max(1, round(WARM_UP * steps))
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))
