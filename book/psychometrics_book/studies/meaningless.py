"""Nothing to understand: a model with random weights, and items with shuffled words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from psychometrics.models.loading import quietly
from psychometrics.models.sources import base_path, find
from psychometrics.questionnaires import Questionnaire


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


def shuffle_words(questionnaire: Questionnaire, seed: int = 0) -> Questionnaire:
    """Put the words of every item, without the full stop, into random order.

    Parameters
    ----------
    questionnaire : Questionnaire
    seed : int

    Returns
    -------
    Questionnaire

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> len(shuffle_words(mini).items[0].text.split()) == len(mini.items[0].text.split())
    True
    """
    rng = np.random.default_rng(seed)
    items = []
    for item in questionnaire.items:
        words = item.text.rstrip(".").split()
        text = " ".join(words[i] for i in rng.permutation(len(words)))
        items.append(item.model_copy(update={"text": text}))
    return questionnaire.model_copy(
        update={"id": f"{questionnaire.id}_shuffled", "items": tuple(items)}
    )
