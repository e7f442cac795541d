"""Train the embedded masked-LM and acceptability heads: ``python -m recipes.heads``.

A head whose folder ``data/heads/<name>`` has a ``recipe.json`` is left alone: remove the folder to
train it again.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from psychometrics.data import checksums, fetch
from psychometrics.models.embedded import (
    acceptability,
    embedded_head,
    load_masked_lm,
)
from psychometrics.models.sources import BASE_MODEL, SMOLLM2, base_path
from psychometrics.paths import cache_dir, data_dir

ACCEPTABILITY = {
    "epochs": 2.0,
    "batch_size": 32,
    "rank": 16,
    "layers": 24,
    "wording": "<|im_start|>{sentence}",
}
"""Adapters on a decoder that is cut after four fifths of its layers."""
KEPT_RANK = 8
"""Rank to which the acceptability head's adapters are cut, so that they take half the space."""


def cola(part: str) -> pd.DataFrame:
    """Load a part of CoLA: sentences that linguists marked as acceptable or not.

    Parameters
    ----------
    part : {"train", "in_domain", "out_of_domain"}
        The training set or one of the two development sets.

    Returns
    -------
    DataFrame
        ``sentence`` and ``acceptable`` (0 or 1).

    Raises
    ------
    DataError
        The file cannot be fetched.

    References
    ----------
    Warstadt et al. (2019).
    """
    frame = pd.read_csv(
        fetch(f"cola_{part}"),
        sep="\t",
        header=None,
        names=["source", "acceptable", "mark", "sentence"],
        quoting=csv.QUOTE_NONE,
    )
    return frame[["sentence", "acceptable"]]


def _build_acceptability(work: Path) -> None:
    from psychometrics.training import train_acceptability

    judged = cola("train")
    held_out = judged.sample(frac=0.1, random_state=0)
    manifest = train_acceptability(SMOLLM2, judged.drop(held_out.index), work, **ACCEPTABILITY)
    folder = _pack_head(work, "cola", SMOLLM2, KEPT_RANK)
    manifest |= ACCEPTABILITY | {"base": SMOLLM2, "kept_rank": KEPT_RANK}
    _write_recipe(folder, manifest, {})
    parts = {part: cola(part) for part in ("in_domain", "out_of_domain")}
    figures = _agreement({"validation": held_out} | parts)
    _write_recipe(folder, manifest, figures)


def masked_perplexity(model, tokenizer, sentences: list[str]) -> float:
    """Return the perplexity at masked tokens: exp of the mean negative log probability.

    In the sentences 15 % of the tokens are masked, and none is replaced at random (Devlin et al.,
    2019, section 3.1). The perplexity is 1 for certain and correct predictions, otherwise larger.
    """
    generator = torch.Generator().manual_seed(0)
    total = 0.0
    count = 0
    ordered = sorted(sentences, key=len)

    with torch.inference_mode():
        for start in range(0, len(ordered), 64):
            inputs = tokenizer(
                ordered[start : start + 64], padding=True, truncation=True, max_length=128,
                return_tensors="pt", return_special_tokens_mask=True,
            )  # fmt: skip
            open_to_masking = inputs.pop("special_tokens_mask") == 0
            chosen = torch.rand(open_to_masking.shape, generator=generator) < 0.15
            chosen &= open_to_masking

            if not chosen.any():
                continue
            labels = inputs["input_ids"][chosen]
            inputs["input_ids"] = inputs["input_ids"].masked_fill(chosen, tokenizer.mask_token_id)

            if hasattr(model, "cls"):  # BERT's head, applied only to the chosen tokens
                logits = model.cls(model.base_model(**inputs).last_hidden_state[chosen])
            else:
                logits = model(**inputs).logits[chosen]

            loss = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="sum")
            total = total + float(loss)
            count = count + len(labels)

    return float(np.exp(total / count))


def _agreement(parts: dict[str, pd.DataFrame]) -> dict:
    """Return the head's Matthews correlation with linguists' labels, with 95 % intervals."""
    from sklearn.metrics import matthews_corrcoef

    figures = {}
    for part, judged in parts.items():
        truth = judged["acceptable"].to_numpy()
        chosen = acceptability(judged["sentence"].tolist()) > 0.5
        generator = np.random.default_rng(0)
        draws = generator.integers(0, len(truth), (2000, len(truth)))
        again = [matthews_corrcoef(truth[draw], chosen[draw]) for draw in draws]
        figures[f"matthews_{part}"] = round(float(matthews_corrcoef(truth, chosen)), 4)
        figures[f"matthews_{part}_interval"] = np.quantile(again, [0.025, 0.975]).round(4).tolist()

    return figures


def _build_masked_lm(work: Path) -> None:
    from psychometrics.training import adapt_encoder
    from psychometrics.training.pairs import mnli_sample

    pairs = mnli_sample()
    held_out = set(pairs.loc[pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel())
    rest = pairs.loc[~pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel()
    sentences = sorted(set(rest) - held_out)
    manifest = adapt_encoder(base_path(), sentences, work, epochs=2)
    folder = _pack_head(work, "mlm", BASE_MODEL)
    model, tokenizer = load_masked_lm()
    figures = {
        "held_out_sentences": len(held_out),
        "perplexity": round(masked_perplexity(model, tokenizer, sorted(held_out)), 2),
    }
    _write_recipe(folder, manifest | {"base": BASE_MODEL}, figures)


def _pack_head(trained: Path, name: str, base: str, rank: int | None = None) -> Path:
    """Save adapter and head in fp16, optionally with the adapter cut to a lower rank."""
    from safetensors.torch import load_file, save_file

    folder = data_dir() / "heads" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    for file in ("adapter_model.safetensors", "head.safetensors"):
        if (trained / file).is_file():
            weights = load_file(trained / file)
            if rank is not None:
                _cut(weights, rank)

            # The decoder's weights are the word embeddings of the base.
            kept = {k: v.half().contiguous() for k, v in weights.items() if v.numel() < 1e7}
            save_file(kept, folder / file)
            checksums().pop(f"heads/{name}/{file}", None)  # the earlier file's

    config = json.loads((trained / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base
    if rank is not None:
        config |= {"r": rank, "lora_alpha": rank * config["lora_alpha"] // config["r"]}

    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return folder


def _cut(weights: dict[str, torch.Tensor], rank: int) -> None:
    """Replace each product of low-rank matrices with the nearest one of a lower rank, in place."""
    for right in [name for name in weights if name.endswith("lora_A.weight")]:
        left = right.replace("lora_A", "lora_B")
        basis, rest = torch.linalg.qr(weights[left])
        u, size, v = torch.linalg.svd(rest @ weights[right], full_matrices=False)
        root = size[:rank].sqrt()
        weights[left], weights[right] = basis @ (u[:, :rank] * root), root[:, None] * v[:rank]


def _write_recipe(folder: Path, manifest: dict, figures: dict) -> None:
    left_out = ("versions", "digest", "resumed_at")
    manifest = {k: v for k, v in manifest.items() if k not in left_out}
    text = json.dumps({**manifest, **figures}, indent=1)
    (folder / "recipe.json").write_text(text + "\n")


if __name__ == "__main__":
    for name, build in (("cola", _build_acceptability), ("mlm", _build_masked_lm)):
        if not (data_dir() / "heads" / name / "recipe.json").is_file():
            build(cache_dir() / "training" / name)
    print({name: embedded_head(name)[1] for name in ("cola", "mlm")})
