"""Causal language models: how probable is the intensifier after the text before it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from .prompting import Prompt, language_mode, located

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CONDITIONS: dict[str, object] = {"mean": "product"}
"""``mean``: how the probabilities of an intensifier's tokens are put together."""
MEANS = ("product", "geometric", "harmonic")


@torch.inference_mode()
def _causal_probability(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Prompt],
    mean: str = "product",
) -> np.ndarray:
    """Probability that a causal LM continues the text before the intensifier with it.

    Parameters
    ----------
    model, tokenizer
        A causal LM.
    prompts : sequence of (premise, hypothesis, intensifier)
    mean : {"product", "geometric", "harmonic"}
        How the probabilities of the intensifier's tokens are put together; the two means do not
        put words of several tokens at a disadvantage.

    Returns
    -------
    ndarray, shape (n,)
    """
    encoded, spans = located(model, tokenizer, prompts)
    for row, ids in enumerate(encoded):
        if ids[0] not in tokenizer.all_special_ids:  # the first word needs something before it
            encoded[row] = [model.config.bos_token_id or 0, *ids]
            spans[row] = [place + 1 for place in spans[row]]
    encoded = [ids[: span[-1] + 1] for ids, span in zip(encoded, spans, strict=True)]
    width = max(map(len, encoded))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in encoded])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in encoded])
    ids, mask = ids.to(model.device), mask.to(model.device)
    logs = model(input_ids=ids, attention_mask=mask).logits.float().log_softmax(dim=-1)
    values = []
    for row, span in enumerate(spans):
        tokens = torch.stack([logs[row, place - 1, ids[row, place]] for place in span])
        if mean == "product":
            values.append(tokens.sum().exp())
        elif mean == "geometric":
            values.append(tokens.mean().exp())
        else:
            values.append(len(span) / (-tokens).exp().sum())
    return torch.stack(values).cpu().numpy()


_MODE = language_mode("causal", "causal", _causal_probability, choices={"mean": MEANS})
identify, load, opened, put = _MODE.identify, _MODE.load, _MODE.opened, _MODE.put
