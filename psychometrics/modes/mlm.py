"""Masked language models: how probable is the intensifier in its place?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from .prompting import Prompt, language_mode, located

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CONDITIONS: dict[str, object] = {}


@torch.inference_mode()
def _masked_probability(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt]
) -> np.ndarray:
    """Probability that a masked LM fills in the intensifier; tokens from left to right, chained.

    Parameters
    ----------
    model, tokenizer
        A masked LM.
    prompts : sequence of (premise, hypothesis, intensifier)

    Returns
    -------
    ndarray, shape (n,)
        The product over the intensifier's tokens of each one's probability with those after it
        still masked.
    """
    encoded, spans = located(model, tokenizer, prompts)
    inputs = tokenizer.pad({"input_ids": encoded}, return_tensors="pt").to(model.device)
    ids = inputs["input_ids"].clone()
    for row, span in enumerate(spans):
        inputs["input_ids"][row, span] = tokenizer.mask_token_id
    total = torch.zeros(len(prompts), device=model.device)
    for step in range(max(map(len, spans))):
        rows = [row for row, span in enumerate(spans) if len(span) > step]
        places = torch.tensor([spans[row][step] for row in rows], device=model.device)
        truth = ids[rows, places]
        # Prompts that differ in a masked intensifier alone are one input.
        asked = torch.cat([inputs["input_ids"][rows], places[:, None]], dim=1)
        asked, where = asked.unique(dim=0, return_inverse=True)
        mask = torch.zeros(len(asked), ids.shape[1], dtype=torch.long, device=model.device)
        mask[where] = inputs["attention_mask"][rows]
        logs = _logits_at(model, asked[:, :-1], mask, asked[:, -1]).float().log_softmax(dim=-1)
        total[rows] += logs[where, truth]
        inputs["input_ids"][rows, places] = truth
    return total.exp().cpu().numpy()


def _logits_at(model, ids, mask, places):
    """A masked LM's logits over the vocabulary, shape (n, V), at one place of each text."""
    if not hasattr(model, "cls"):
        return model(input_ids=ids, attention_mask=mask).logits[range(len(ids)), places]
    # The vocabulary costs as much as the encoder: BERT's head is put on one token a text.
    hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    return model.cls(hidden[range(len(ids)), places])


_MODE = language_mode("mlm", "masked", _masked_probability)
identify, load, opened, put = _MODE.identify, _MODE.load, _MODE.opened, _MODE.put
