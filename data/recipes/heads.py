"""Train the embedded masked-LM and acceptability heads: ``python -m recipes.heads``.

A head whose folder ``data/heads/<name>`` has a ``recipe.json`` is left alone: remove the folder to
train it again.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    Trainer,
    set_seed,
)

from psychometrics.data import checksums, fetch
from psychometrics.exceptions import DataError
from psychometrics.models.embedded import (
    acceptability,
    embedded_head,
    load_masked_lm,
)
from psychometrics.models.sources import BASE_MODEL, SMOLLM2, base_path
from psychometrics.paths import cache_dir, data_dir
from psychometrics.training.heads import classifier_with_adapter, fresh_model, with_adapter
from psychometrics.training.loop import Settings, make_folder, tokenised, train_into
from psychometrics.training.pairs import mnli_sample

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


def adapt_encoder(
    base: str | Path,
    sentences: Sequence[str],
    output: str | Path,
    *,
    epochs: float = 3.0,
    lr: float = 2e-4,
    rank: int = 16,
    progress: bool = True,
) -> dict:
    """Adapt an encoder to a kind of text by masked language modelling, with a LoRA adapter.

    Parameters
    ----------
    base : str or Path
        Encoder: a hub id or a local folder. If the checkpoint lacks a masked-LM head, a new head is
        also trained, with its output tied to the word embeddings.
    sentences : sequence of str
        Sentences on which to train.
    output : str or Path
        Folder for the adapter, the masked-LM head (``head.safetensors``) and ``manifest.json``.
    epochs, rank, progress
        As in :func:`psychometrics.training.train_nli`.
    lr : float
        Peak learning rate of the adapter; the learning rate of the masked-LM head is 0.001.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    DataError
        There are no sentences.

    References
    ----------
    Devlin et al. (2019) for masked language modelling; Hu et al. (2022) for LoRA.
    """
    if not len(sentences):
        raise DataError("There are no sentences to adapt to: give at least one.")

    set_seed(0)
    model, tokenizer = fresh_model(base, "masked", dropout=0.0)
    # Everything outside of the encoder; weights tied to the embeddings are named there.
    encoder = f"{model.base_model_prefix}."
    head = {name: p for name, p in model.named_parameters() if not name.startswith(encoder)}
    model = with_adapter(model, rank, base)

    for parameter in head.values():
        parameter.requires_grad_(True)

    of_head = {id(parameter) for parameter in head.values()}
    adapted = [p for p in model.parameters() if p.requires_grad and id(p) not in of_head]
    optimizer = torch.optim.AdamW(
        [{"params": adapted, "lr": lr}, {"params": list(head.values()), "lr": 1e-3}],
        weight_decay=0.01,
    )

    def save_head() -> dict:
        weights = {name: parameter.detach().clone() for name, parameter in head.items()}
        save_file(weights, Path(output) / "head.safetensors")
        return {"base": str(base), "sentences": len(sentences), "rank": rank}

    dataset = tokenised(tokenizer, {"text": list(sentences)}, return_special_tokens_mask=True)
    collator = DataCollatorForLanguageModeling(tokenizer)
    return train_into(
        output, model, tokenizer, dataset, collator, Settings(epochs=epochs, lr=lr), save_head,
        progress, trainer=_MaskedTokensTrainer, optimizers=(optimizer, None),
    )  # fmt: skip


def train_acceptability(
    base: str | Path,
    sentences: pd.DataFrame,
    output: str | Path,
    *,
    wording: str = "{sentence}",
    progress: bool = True,
    **options: object,
) -> dict:
    """Train an acceptability classifier, that is, low-rank adapters and a head.

    Parameters
    ----------
    base : str or Path
        Encoder or decoder: a hub id or a local folder. In a decoder, the head reads a sentence's
        last token.
    sentences : DataFrame
        ``sentence`` and ``acceptable`` (0 or 1), such as CoLA's.
    output, progress
        As in :func:`psychometrics.training.train_nli`.
    wording : str
        Text that the model reads, with ``{sentence}``.
    **options
        As in :func:`psychometrics.training.train_nli`, with a learning rate of 5e-4 and no dropout.

    Returns
    -------
    dict
        The manifest.

    References
    ----------
    Warstadt et al. (2019) for the task; Hu et al. (2022) for LoRA.
    """
    settings = Settings.of(options, lr=5e-4, dropout=0.0)
    make_folder(output)
    set_seed(settings.seed)
    labels = ("unacceptable", "acceptable")
    model, tokenizer = fresh_model(base, "classifier", labels, settings.layers, settings.dropout)
    model = classifier_with_adapter(model, base, settings.rank)
    texts = [wording.format(sentence=sentence) for sentence in sentences["sentence"]]
    table = {"text": texts, "label": sentences["acceptable"].tolist()}
    facts = {"base": str(base), "sentences": len(sentences), "rank": settings.rank}
    facts |= {"layers": model.config.num_hidden_layers, "wording": wording}

    dataset = tokenised(tokenizer, table, settings.max_length)
    collator = DataCollatorWithPadding(tokenizer)
    return train_into(
        output, model, tokenizer, dataset, collator, settings, lambda: facts, progress
    )


class _MaskedTokensTrainer(Trainer):
    """A trainer that computes logits only at masked tokens, about a sixth of all tokens."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        if not hasattr(inner, "cls"):
            return super().compute_loss(model, {**inputs, "labels": labels}, return_outputs)
        hidden = inner.base_model(**inputs).last_hidden_state
        masked = labels != -100
        logits = inner.cls(hidden[masked])
        return torch.nn.functional.cross_entropy(logits.float(), labels[masked])


def _build_acceptability(work: Path) -> None:
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
    from safetensors.torch import load_file

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
