"""Respondents that answer by language modelling: how probable is the intensifier in its place?

Four ways of asking the same prompts, each a function below that gives one probability per prompt:
a masked LM fills the intensifier in, a causal LM continues up to it, a next-sentence head follows
the premise with the hypothesis, an acceptability classifier judges the two sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from tqdm import tqdm
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForNextSentencePrediction,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..exceptions import RespondentError
from .nli import DTYPES, quietly, resolve_device, resolve_dtype
from .sources import Source, digest_text, fetched

HANDLING = "lm-2"
"""Version of all that this file does to an answer; part of the fingerprint."""
BATCH = 256
Prompt = tuple[str, str, str]


class LMRespondent:
    """A language model that answers prompts with one probability; made by ``load_respondent``.

    Attributes
    ----------
    identity : dict
        What :func:`psychometrics.respondents.identify` gives, and the ``device``.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, identity: dict
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.identity = identity
        self._score = MODES[identity["mode"]][1]

    def answer(self, prompts: Iterable[Prompt], progress: bool = False) -> np.ndarray:
        """Probability of each prompt in this respondent's mode.

        Parameters
        ----------
        prompts : iterable of (premise, hypothesis, intensifier)
            n prompts; identical ones are asked once.
        progress : bool
            Show a progress bar.

        Returns
        -------
        ndarray of float32, shape (n, 1)

        Raises
        ------
        RespondentError
            There are no prompts, or an intensifier does not occur in its prompt.
        """
        prompts = list(prompts)
        if not prompts:
            raise RespondentError("There are no prompts to answer: give at least one.")
        unique = sorted(set(prompts), key=_without_intensifier)
        values = []
        starts = range(0, len(unique), BATCH)
        for start in tqdm(starts, desc=self.identity["respondent_id"], disable=not progress):
            batch = unique[start : start + BATCH]
            values.append(self._score(self.model, self.tokenizer, batch))
        known = dict(zip(unique, np.concatenate(values), strict=True))
        return np.array([[known[prompt]] for prompt in prompts], dtype=np.float32)


@torch.inference_mode()
def masked_probability(
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
    encoded, spans = _encoded(tokenizer, prompts)
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


@torch.inference_mode()
def causal_probability(
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
    encoded, spans = _encoded(tokenizer, prompts)
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


@torch.inference_mode()
def next_sentence_probability(
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
    return model(**inputs).logits.float().softmax(dim=-1)[:, 0].cpu().numpy()


@torch.inference_mode()
def acceptability_probability(
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
    return model(**inputs).logits.float().softmax(dim=-1)[:, 1].cpu().numpy()


def _causal(mean: str) -> Callable:
    return lambda model, tokenizer, prompts: causal_probability(model, tokenizer, prompts, mean)


MODES = {
    "mlm": (AutoModelForMaskedLM, masked_probability),
    "causal": (AutoModelForCausalLM, _causal("product")),
    "causal_geometric": (AutoModelForCausalLM, _causal("geometric")),
    "causal_harmonic": (AutoModelForCausalLM, _causal("harmonic")),
    "nsp": (AutoModelForNextSentencePrediction, next_sentence_probability),
    "acceptability": (AutoModelForSequenceClassification, acceptability_probability),
}
"""The kind of model each mode needs, and how it scores."""


def load_lm(source: Source, mode: str, device=None, dtype: str | None = None) -> LMRespondent:
    """Load a respondent of one of ``MODES`` that was found; parameters as in ``load_respondent``.

    Raises
    ------
    RespondentError
        The model has no head for this mode.
    """
    device = resolve_device(device)
    dtype = resolve_dtype(dtype, device)
    who = identity(source, mode, dtype)
    if source.kind == "embedded":
        model, tokenizer = _member_with_masked_lm_head(source, mode)
    else:
        folder = fetched(source)
        with quietly():
            try:
                model, report = MODES[mode][0].from_pretrained(
                    folder, use_safetensors=True, trust_remote_code=False, output_loading_info=True
                )
            except (ValueError, OSError) as error:
                raise RespondentError(
                    f"{source.name} cannot answer in mode '{mode}': name a model with such a head "
                    f"({str(error).splitlines()[0][:150]})."
                ) from error
        if report["missing_keys"]:
            raise RespondentError(
                f"{source.name} has no trained head for mode '{mode}': its checkpoint lacks "
                f"{min(report['missing_keys'])}."
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if mode == "acceptability" and model.config.num_labels != 2:
        raise RespondentError(f"{source.name} has not two outputs: name a CoLA classifier.")
    model = model.to(device=device, dtype=DTYPES[dtype])
    return LMRespondent(model, tokenizer, who | {"device": str(device)})


def identity(source: Source, mode: str, dtype: str) -> dict:
    """Who answers, in which mode, version and precision; see ``identify``."""
    digest = source.digest
    if source.kind == "embedded":
        from .heads import head_table

        digest = digest_text(digest, str(head_table().get("mlm")))
    return {
        "respondent_id": source.name,
        "source": source.kind,
        "model": source.model,
        "revision": source.revision,
        "mode": mode,
        "dtype": dtype,
        "fingerprint": digest_text(digest, mode, dtype, HANDLING),
    }


def _member_with_masked_lm_head(source: Source, mode: str):
    """The encoder of an embedded NLI member under the embedded masked-LM head."""
    if mode != "mlm":
        raise RespondentError(
            f"{source.name} has no head for mode '{mode}': embedded members answer in modes nli "
            f"and mlm; name a folder or a hub id."
        )
    from ..population import load_embedded
    from .heads import load_masked_lm

    with quietly():
        member, tokenizer = load_embedded(source.name)
        model, _ = load_masked_lm()
    setattr(model, model.base_model_prefix, member.base_model)
    model.tie_weights()
    return model, tokenizer


def _without_intensifier(prompt: Prompt) -> tuple[int, str]:
    """Sorts prompts by length, those that differ in the intensifier alone next to each other."""
    premise, hypothesis, intensifier = prompt
    text = re.sub(re.escape(intensifier), "", f"{premise} {hypothesis}", flags=re.IGNORECASE)
    return len(text), text


def _logits_at(model, ids, mask, places):
    """A masked LM's logits over the vocabulary, shape (n, V), at one place of each text."""
    if not hasattr(model, "cls"):
        return model(input_ids=ids, attention_mask=mask).logits[range(len(ids)), places]
    # The vocabulary costs as much as the encoder: BERT's head is put on one token a text.
    hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    return model.cls(hidden[range(len(ids)), places])


def _encoded(tokenizer, prompts: Sequence[Prompt]) -> tuple[list[list[int]], list[list[int]]]:
    """Token ids of premise and hypothesis as one text, and the places of the intensifier."""
    texts, spans = [], []
    for premise, hypothesis, intensifier in prompts:
        texts.append(f"{premise} {hypothesis}")
        places = list(re.finditer(rf"\b{re.escape(intensifier)}\b", texts[-1], re.IGNORECASE))
        if not places:
            raise RespondentError(f"'{intensifier}' does not occur in '{texts[-1]}': correct it.")
        spans.append(places[-1].span())
    encoded = tokenizer(texts, return_offsets_mapping=True)
    found = []
    for offsets, (first, last) in zip(encoded["offset_mapping"], spans, strict=True):
        found.append([i for i, (a, b) in enumerate(offsets) if a < last and b > first and b > a])
    return encoded["input_ids"], found
