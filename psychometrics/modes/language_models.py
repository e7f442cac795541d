"""Language models that give each prompt one probability: modes mlm, causal, nsp, acceptability."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from ..exceptions import RespondentError
from ..models.embedded import head_table, load_embedded, load_masked_lm
from ..models.loading import load_model, moved, out_of_memory
from ..models.sources import Source, digest_text, recipe_of
from .prompting import Prompt, PromptMode, checked, fitting, gathered

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HANDLING = "lm-2"
"""Version of all that these modes do to an answer; part of the fingerprint."""
BATCH = 256


class LMRespondent:
    """A language model that answers prompts with one probability; made by ``load_respondent``.

    Attributes
    ----------
    identity : dict
        What :func:`psychometrics.modes.identify` gives, and the ``device``.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        identity: dict,
        score: Callable[[PreTrainedModel, PreTrainedTokenizerBase, Sequence[Prompt]], np.ndarray],
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.identity = identity
        self._score = score

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
            There are no prompts, one is too long or not three strings, or an intensifier does
            not occur in its prompt.
        """
        prompts = checked(prompts, ("premise", "hypothesis", "intensifier"), may_be_empty=1)
        return gathered(self, prompts, progress)

    def batches(self, prompts: Sequence[Prompt]) -> Iterator[tuple[list[Prompt], np.ndarray]]:
        """Prompts with their answers, shape (n, 1), batch by batch; each prompt once."""
        prompts = checked(prompts, ("premise", "hypothesis", "intensifier"), may_be_empty=1)
        unique = sorted(set(prompts), key=_without_intensifier)
        for start in range(0, len(unique), BATCH):
            batch = unique[start : start + BATCH]
            yield batch, self._scored(batch)[:, None]

    def _scored(self, batch: list[Prompt]) -> np.ndarray:
        try:
            return self._score(self.model, self.tokenizer, batch)
        except RespondentError:
            raise
        except Exception as error:
            if not out_of_memory(error):
                raise
            if len(batch) == 1:
                raise RespondentError(
                    f"{self.identity['respondent_id']} does not fit into the memory of "
                    f"{self.identity['device']} with even one prompt: use a smaller model or "
                    "another device.",
                    kind="memory",
                ) from None
        # Outside of the except block, where the error no longer holds on to tensors.
        half = len(batch) // 2
        return np.concatenate([self._scored(batch[:half]), self._scored(batch[half:])])


class LanguageMode(PromptMode):
    """A mode in which language models give each prompt one probability.

    Attributes
    ----------
    head : str
        The head that it needs, a key of :data:`psychometrics.models.loading.HEADS`.
    """

    head = ""

    @staticmethod
    def score(
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompts: Sequence[Prompt],
        **conditions: object,
    ) -> np.ndarray:
        """Return the probability of each of n prompts, shape (n,)."""
        raise NotImplementedError

    def digest(self, source: Source, dtype: str, **conditions: object) -> str:
        own = source.digest
        if source.kind == "embedded":
            if self.name != (answered_in := "causal" if _is_decoder(source) else "mlm"):
                raise RespondentError(
                    f"{source.name} has no head for mode '{self.name}': it answers in modes nli "
                    f"and {answered_in}; name a folder or a hub id."
                )
            if self.name == "mlm":
                own = digest_text(own, str(head_table().get("mlm")))
        return digest_text(own, self.name, dtype, HANDLING, *map(str, conditions.values()))

    def build(
        self, source: Source, identity: dict, device: torch.device, **conditions: object
    ) -> LMRespondent:
        if source.kind == "embedded" and _is_decoder(source):
            model, tokenizer = load_embedded(source.name)
        elif source.kind == "embedded":
            member, tokenizer = load_embedded(source.name)
            model, _ = load_masked_lm()
            setattr(model, model.base_model_prefix, member.base_model)
            model.tie_weights()
        else:
            model, tokenizer = load_model(source, self.head, what=f"a model for mode '{self.name}'")
        if self.name == "acceptability" and model.config.num_labels != 2:
            raise RespondentError(
                f"{source.name} has not two outputs: name a CoLA classifier.", kind="labels"
            )
        model = moved(model, device, identity["dtype"], source.name)
        return LMRespondent(model, tokenizer, identity, functools.partial(self.score, **conditions))


class MaskedLM(LanguageMode):
    """Masked language models: how probable is the intensifier in its place?"""

    name = "mlm"
    head = "masked"

    @staticmethod
    @torch.inference_mode()
    def score(
        model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt]
    ) -> np.ndarray:
        """Return the probability of the intensifier's tokens, chained from left to right.

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
        encoded, spans = _located(model, tokenizer, prompts)
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


class CausalLM(LanguageMode):
    """Causal language models: how probable is the intensifier after the text before it?"""

    name = "causal"
    head = "causal"
    conditions: ClassVar = {"mean": "product"}
    choices: ClassVar = {"mean": ("product", "geometric", "harmonic")}

    @staticmethod
    @torch.inference_mode()
    def score(
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        prompts: Sequence[Prompt],
        mean: str = "product",
    ) -> np.ndarray:
        """Return the probability that the text before the intensifier goes on with it.

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
        encoded, spans = _located(model, tokenizer, prompts)
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


class NextSentence(LanguageMode):
    """Next-sentence heads: how probably does the hypothesis follow the premise?"""

    name = "nsp"
    head = "next-sentence"

    @staticmethod
    @torch.inference_mode()
    def score(
        model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt]
    ) -> np.ndarray:
        """Return the probability that the hypothesis follows the premise.

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


class Acceptability(LanguageMode):
    """Acceptability classifiers: how probably are premise and hypothesis well formed?"""

    name = "acceptability"
    head = "classifier"

    @staticmethod
    @torch.inference_mode()
    def score(
        model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt]
    ) -> np.ndarray:
        """Return the probability that premise and hypothesis are well formed, as in CoLA.

        Returns
        -------
        ndarray, shape (n,)
            The second of the classifier's two outputs.
        """
        texts = [f"{premise} {hypothesis}" for premise, hypothesis, _ in prompts]
        inputs = tokenizer(texts, padding=True, return_tensors="pt").to(model.device)
        fitting(inputs["input_ids"].tolist(), model, tokenizer)
        return model(**inputs).logits.float().softmax(dim=-1)[:, 1].cpu().numpy()


def _logits_at(model, ids, mask, places):
    """A masked LM's logits over the vocabulary, shape (n, V), at one place of each text."""
    if not hasattr(model, "cls"):
        return model(input_ids=ids, attention_mask=mask).logits[range(len(ids)), places]
    # The vocabulary costs as much as the encoder: BERT's head is put on one token a text.
    hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    return model.cls(hidden[range(len(ids)), places])


def _located(
    model, tokenizer, prompts: Sequence[Prompt]
) -> tuple[list[list[int]], list[list[int]]]:
    """Token ids of premise and hypothesis as one text, and the places of the intensifier."""
    texts, spans = [], []
    for premise, hypothesis, intensifier in prompts:
        texts.append(f"{premise} {hypothesis}")
        places = list(re.finditer(rf"\b{re.escape(intensifier)}\b", texts[-1], re.IGNORECASE))
        if not places:
            raise RespondentError(f"'{intensifier}' does not occur in '{texts[-1]}': correct it.")
        spans.append(places[-1].span())
    if not tokenizer.is_fast:
        raise RespondentError(
            "This model's tokenizer does not say where a token stands in the text: choose a model "
            "with a fast tokenizer (tokenizer.json)."
        )
    encoded = tokenizer(texts, return_offsets_mapping=True, verbose=False)
    found = []
    for offsets, (first, last) in zip(encoded["offset_mapping"], spans, strict=True):
        found.append([i for i, (a, b) in enumerate(offsets) if a < last and b > first and b > a])
    return fitting(encoded["input_ids"], model, tokenizer), found


def _is_decoder(source: Source) -> bool:
    """Whether an embedded member is a decoder, which says its answers."""
    return "answers" in recipe_of(source)


def _without_intensifier(prompt: Prompt) -> tuple[int, str]:
    """Sorts prompts by length, those that differ in the intensifier alone next to each other."""
    premise, hypothesis, intensifier = prompt
    text = re.sub(re.escape(intensifier), "", f"{premise} {hypothesis}", flags=re.IGNORECASE)
    return len(text), text
