"""Tiny language models, saved here: random weights, causal ones with one token for each byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def save_tiny_decoder(
    folder: Path,
    architecture: str = "llama",
    end: str | None = "<|endoftext|>",
    spread: float = 10,
    positions: int = 130,
) -> Path:
    """Save a causal model as published ones are: without a head, without a padding token."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import AutoConfig, AutoModelForCausalLM, GPT2Tokenizer

    tokens = ["<|endoftext|>", *sorted(ByteLevel.alphabet())]
    tokenizer = GPT2Tokenizer(vocab={token: i for i, token in enumerate(tokens)}, merges=[],
                              eos_token=end, bos_token=end, unk_token=end)  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    assert tokenizer.pad_token is None
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 64, "max_position_embeddings": 1024}  # fmt: skip
    if architecture == "gpt2":
        sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": positions}
    if architecture == "qwen2":
        sizes["num_key_value_heads"] = 2
    config = AutoConfig.for_model(
        architecture, vocab_size=len(tokens), bos_token_id=0, eos_token_id=0, **sizes
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread if parameter.ndim > 1 else 1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def log_probabilities(model, read: list[int], added: list[int]) -> np.ndarray:
    """Log-probabilities of a causal model's tokens after those that it has read, in one pass."""
    with torch.no_grad():
        logs = model(torch.tensor([[*read, *added]])).logits[0].log_softmax(-1)
    return logs[range(len(read) - 1, len(read) + len(added) - 1), added].numpy()


def save_tiny_masked_lm(folder: Path, like: Path, spread: float = 10) -> Path:
    """A random masked language model of a saved model's shape, with its tokenizer."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    shutil.copytree(like, folder)
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(like))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread if parameter.ndim > 1 else 1)
    model.save_pretrained(folder)
    return folder
