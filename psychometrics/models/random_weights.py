"""A language model with random weights: its preferences do not depend on meaning."""

from __future__ import annotations

from pathlib import Path

from .loading import quietly
from .sources import base_path, find


def null_model(folder: str | Path, seed: int = 0) -> Path:
    """Save a small causal language model with random weights, a null respondent.

    Parameters
    ----------
    folder : str or Path
        Folder in which to make the model's folder; a model that exists there is reused.
    seed : int
        Seed of the weights.

    Returns
    -------
    Path
        The model's folder, ``null-<seed>`` in the given folder.
    """
    import torch
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    target = Path(folder) / f"null-{seed}"

    if (target / "model.safetensors").is_file():
        return target

    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(find(base_path()).fetch())
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=1024,
            n_embd=64,
            n_layer=2,
            n_head=4,
            initializer_range=0.2,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = GPT2LMHeadModel(config)

        model.save_pretrained(target)
        tokenizer.save_pretrained(target)

    return target
