"""Next-sentence heads: how probably does the hypothesis follow the premise?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from .prompting import Prompt, fitting, language_mode

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CONDITIONS: dict[str, object] = {}


@torch.inference_mode()
def _next_sentence_probability(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt]
) -> np.ndarray:
    """Probability, by a next-sentence head, that the hypothesis follows the premise.

    Returns
    -------
    ndarray, shape (n,)

    References
    ----------
    Devlin et al. (2019): the first of the head's outputs means that it follows.
    """
    premises, hypotheses, _ = map(list, zip(*prompts, strict=True))
    inputs = tokenizer(premises, hypotheses, padding=True, return_tensors="pt").to(model.device)
    fitting(inputs["input_ids"].tolist(), model, tokenizer)
    return model(**inputs).logits.float().softmax(dim=-1)[:, 0].cpu().numpy()


_MODE = language_mode("nsp", "next-sentence", _next_sentence_probability)
identify, load, opened, put = _MODE.identify, _MODE.load, _MODE.opened, _MODE.put
