"""Language models that give each prompt a probability: mlm, causal, nsp, acceptability."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch

from ..exceptions import RespondentError
from ..files import digest_text
from ..models.embedded import embedded_head, load_embedded, load_masked_lm
from ..models.lengths import check_length, vocabulary_size
from ..models.loading import load_model, text_config, to_device
from ..models.sources import Source
from .mode import Conditions, Identity
from .prompting import PromptMode, _compute_batches, _Probabilities, _Prompt, _PromptRespondent

# Relative change of a probability that rounding in other batch shapes may cause, in float32.
_ROUNDING = 5e-5
# Prompts of several lengths, which show whether a model reacts to padding.
_PROBES: tuple[_Prompt, ...] = (
    ("It was.", "I was late.", "late"),
    ("It rained all day.", "I was late.", "late"),
    ("It rained, and I passed.", "It was dry.", "dry"),
    ("All of the students passed the exam, and it rained all day.", "I was late.", "late"),
)


class _LMRespondent(_PromptRespondent):
    """A language model that answers each prompt with one probability."""

    batch_size = 256

    def score(self, prompts: Sequence[_Prompt]) -> _Probabilities:
        """Return the probability that answers each of n prompts, shape (n,)."""
        raise NotImplementedError

    def batches(self, prompts: Sequence[_Prompt]) -> Iterator[tuple[list[_Prompt], _Probabilities]]:
        """Yield distinct prompts with their answers, shape (n, 1), batch by batch."""

        def length_and_text(prompt: _Prompt) -> tuple[int, str]:
            premise, hypothesis, word = prompt
            text = f"{premise} {hypothesis}"
            text = re.sub(re.escape(word), "", text, flags=re.IGNORECASE)
            return len(text), text

        # Prompts that differ only in the intensifier stay together.
        ordered = sorted(set(prompts), key=length_and_text)
        for batch, values in _compute_batches(ordered, self.batch_size, self.score, self.identity):
            yield batch, values[:, None]

    def may_pad(self) -> bool:
        """Return whether padding on one side, left or right, leaves all answers unchanged.

        A decoder that counts positions from the left needs padding on the right, XLNet needs it on
        the left, the convolutions of ConvBERT react to padding anywhere, and Funnel, which pools
        tokens, reacts only at some lengths. The tokenizer is set to the side that works.
        """
        alone = np.stack([self.score([probe])[0] for probe in _PROBES])
        usual = self.tokenizer.padding_side
        for side in (usual, "left" if usual == "right" else "right"):
            self.tokenizer.padding_side = side
            together = self.score(_PROBES)
            if (np.abs(together - alone) <= _ROUNDING * alone).all():  # false for NaN, too
                return True

        self.tokenizer.padding_side = usual
        return False

    def _encode_and_locate(
        self, prompts: Sequence[_Prompt]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return token ids of premise and hypothesis as one text, and the intensifier's places."""
        texts = []
        spans = []
        for premise, hypothesis, intensifier in prompts:
            texts.append(f"{premise} {hypothesis}")
            places = list(re.finditer(rf"\b{re.escape(intensifier)}\b", texts[-1], re.IGNORECASE))
            if not places:
                raise RespondentError(
                    f"'{intensifier}' is not in '{texts[-1]}': correct the prompt."
                )

            spans.append(places[-1].span())

        if not self.tokenizer.is_fast:
            raise RespondentError("Token positions are missing: name a model with tokenizer.json.")

        encoded = self.tokenizer(texts, return_offsets_mapping=True, verbose=False)
        tokens = []
        for offsets, (begin, end) in zip(encoded["offset_mapping"], spans, strict=True):
            tokens.append(
                [i for i, (a, b) in enumerate(offsets) if a < end and b > begin and b > a]
            )

        return check_length(encoded["input_ids"], self.model, self.tokenizer), tokens


class _MaskedRespondent(_LMRespondent):
    """A masked model that answers with the probability of the intensifier."""

    @torch.inference_mode()
    def score(self, prompts: Sequence[_Prompt]) -> _Probabilities:
        """Return the probability of the intensifier, shape (n,).

        It is the product of the probabilities of the intensifier's tokens, computed from left to
        right, each with all later tokens still masked.
        """
        model: Any = self.model
        tokenizer = self.tokenizer
        encoded, spans = self._encode_and_locate(prompts)
        inputs = tokenizer.pad({"input_ids": encoded}, return_tensors="pt").to(model.device)
        ids = inputs["input_ids"].clone()

        for row, span in enumerate(spans):
            inputs["input_ids"][row, span] = tokenizer.mask_token_id

        total = torch.zeros(len(prompts), device=model.device)
        for step in range(max(map(len, spans))):
            rows = [row for row, span in enumerate(spans) if len(span) > step]
            places = torch.tensor([spans[row][step] for row in rows], device=model.device)
            truth = ids[rows, places]
            # Prompts that differ only in a masked intensifier are the same input.
            texts = torch.cat([inputs["input_ids"][rows], places[:, None]], dim=1)
            texts, inverse = torch.unique(texts, dim=0, return_inverse=True)
            mask = torch.zeros(len(texts), ids.shape[1], dtype=torch.long, device=model.device)
            mask[inverse] = inputs["attention_mask"][rows]
            if hasattr(model, "cls"):
                # The vocabulary layer costs as much as the encoder, so BERT's head is applied to
                # one token a text.
                hidden = model.base_model(input_ids=texts[:, :-1], attention_mask=mask)
                logits = model.cls(hidden.last_hidden_state[range(len(texts)), texts[:, -1]])
            else:
                logits = model(input_ids=texts[:, :-1], attention_mask=mask).logits
                logits = logits[range(len(texts)), texts[:, -1]]

            logs = logits.float().log_softmax(dim=-1)
            total[rows] += logs[inverse, truth]
            inputs["input_ids"][rows, places] = truth

        return total.exp().cpu().numpy()


class _CausalRespondent(_LMRespondent):
    """A causal model that answers with the probability of the intensifier."""

    @torch.inference_mode()
    def score(self, prompts: Sequence[_Prompt]) -> _Probabilities:
        """Return the probability that the intensifier continues the text, shape (n,).

        The condition ``mean`` combines the probabilities of the intensifier's tokens. The
        geometric and the harmonic mean, unlike the product, do not penalise words of several
        tokens.
        """
        model = self.model
        encoded, spans = self._encode_and_locate(prompts)
        begin = getattr(text_config(model.config), "bos_token_id", None) or 0

        for row, ids in enumerate(encoded):
            if (
                ids[0] not in self.tokenizer.all_special_ids
            ):  # the first word needs a token before it
                encoded[row] = [begin, *ids]
                spans[row] = [place + 1 for place in spans[row]]

        encoded = [ids[: span[-1] + 1] for ids, span in zip(encoded, spans, strict=True)]
        width = max(map(len, encoded))
        device = model.device
        padded = torch.tensor([[*row, *[0] * (width - len(row))] for row in encoded], device=device)
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in encoded]
        attention = torch.tensor(mask, device=device)
        logs = model(input_ids=padded, attention_mask=attention).logits.float().log_softmax(dim=-1)
        values = []
        for row, span in enumerate(spans):
            tokens = torch.stack([logs[row, place - 1, padded[row, place]] for place in span])
            if self.conditions["mean"] == "product":
                values.append(tokens.sum().exp())
            elif self.conditions["mean"] == "geometric":
                values.append(tokens.mean().exp())
            else:
                values.append(len(span) / (-tokens).exp().sum())

        return torch.stack(values).cpu().numpy()


class _ClassRespondent(_LMRespondent):
    """A classifier that answers with the probability of one of its two outputs."""

    @torch.inference_mode()
    def score(self, prompts: Sequence[_Prompt]) -> _Probabilities:
        """Return a classifier's probability of one of its two outputs, shape (n,).

        In a next-sentence head the first output means that the hypothesis follows the premise
        (Devlin et al., 2019); in a classifier that was trained on CoLA the second output means that
        the text of both is well formed.
        """
        columns = [list(texts) for texts in zip(*prompts, strict=True)][:2]
        output = 0
        if self.identity.mode == "acceptability":
            columns = [[" ".join(texts) for texts in zip(*columns, strict=True)]]
            output = 1

        inputs = self.tokenizer(*columns, padding=True, return_tensors="pt").to(self.model.device)
        check_length(inputs["input_ids"].tolist(), self.model, self.tokenizer)
        logits: torch.Tensor = self.model(**inputs).logits
        return logits.float().softmax(dim=-1)[:, output].cpu().numpy()


# The head that each mode needs, and the respondents that answer with it.
_RESPONDENTS: dict[str, tuple[str, type[_LMRespondent]]] = {
    "acceptability": ("classifier", _ClassRespondent),
    "causal": ("causal", _CausalRespondent),
    "mlm": ("masked", _MaskedRespondent),
    "nsp": ("next-sentence", _ClassRespondent),
}


class LanguageMode(PromptMode):
    """A mode in which language models give each prompt one probability."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.head, self.respondent_type = _RESPONDENTS[name]

    def digest(self, source: Source, dtype: str, **conditions: Any) -> str:
        """Return the fingerprint of the model at a source."""
        weights = source.digest
        if source.kind == "embedded":
            answered_in = "causal" if "answers" in source.recipe else "mlm"  # a decoder answers
            if self.name != answered_in:
                raise RespondentError(
                    f"{source.name} has no head for mode '{self.name}': it answers in modes nli "
                    f"and {answered_in}; name a folder or a hub id."
                )

            if self.name == "mlm":
                weights = digest_text(weights, str(embedded_head("mlm")[1]))

        is_whole = source.kind == "local" and source.base is None
        kinds = str(source.config.get("architectures")) if is_whole else ""
        if "ForSequenceClassification" in kinds and self.head in ("masked", "next-sentence"):
            raise RespondentError(
                f"{source.name} is a classifier ({kinds}) without the head for mode "
                f"'{self.name}': ask it in mode nli, or name another model.",
                kind="architecture",
            )

        # as in mode nli; since version 3, batches are checked for effects of padding
        handling = "lm-2" if source.kind in ("embedded", "packed") else "lm-3"
        return digest_text(weights, self.name, dtype, handling, *map(str, conditions.values()))

    def build(
        self, source: Source, identity: Identity, device: torch.device, **conditions: Any
    ) -> _LMRespondent:
        """Load a respondent from the model at a source."""
        if source.kind == "embedded":
            model, tokenizer = load_embedded(source.name)
            if self.name == "mlm":
                member = model
                model, _ = load_masked_lm()
                setattr(model, model.base_model_prefix, member.base_model)
                model.tie_weights()
        else:
            model, tokenizer = load_model(source, self.head, what=f"a model for mode '{self.name}'")

        if self.name == "acceptability" and model.config.num_labels != 2:
            raise RespondentError(f"{source.name} needs two outputs: name a CoLA classifier.")

        respondent = self.respondent_type(model, tokenizer, identity)
        respondent.conditions = conditions
        pads = source.kind == "embedded"
        knows_padding = (tokenizer.pad_token_id or 0) < vocabulary_size(model)
        if not pads and (knows_padding or self.name == "causal"):  # which pads with any token
            pads = respondent.may_pad()

        respondent.model = to_device(model, device, identity.precision, source.name)
        respondent.batch_size = 256 if pads else 1
        return respondent


class _CausalConditions(Conditions):
    """The rule that combines the probabilities of an intensifier's tokens."""

    mean: Literal["product", "geometric", "harmonic"] = "product"


class Causal(LanguageMode):
    """Language models that read from left to right."""

    conditions_type = _CausalConditions
