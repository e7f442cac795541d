"""Acceptability classifiers: how probably are premise and hypothesis well formed?"""

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
def _acceptability_probability(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt]
) -> np.ndarray:
    """Probability, by a classifier trained on CoLA, that premise and hypothesis are well formed.

    Returns
    -------
    ndarray, shape (n,)
        The second of the classifier's two outputs.
    """
    texts = [f"{premise} {hypothesis}" for premise, hypothesis, _ in prompts]
    inputs = tokenizer(texts, padding=True, return_tensors="pt").to(model.device)
    fitting(inputs["input_ids"].tolist(), model, tokenizer)
    return model(**inputs).logits.float().softmax(dim=-1)[:, 1].cpu().numpy()


_MODE = language_mode("acceptability", "classifier", _acceptability_probability)
identify, load, opened, put = _MODE.identify, _MODE.load, _MODE.opened, _MODE.put
