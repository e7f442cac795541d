"""Language models that score replies after prompts: by torch, or from an ONNX file without it."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from ..exceptions import RespondentError
from ..models.chat_templates import fill_template
from ..models.devices import check_float32, resolve_device
from ..models.lengths import batch_rows, check_length
from ..models.loading import load_config, load_model, to_device
from ..models.onnx_models import ONNXDecoder
from ..models.sources import find
from .mode import Identity
from .prompting import _compute_batches

if TYPE_CHECKING:
    import torch

_BATCH = 16
# Shortest common beginning of a batch that is worth reading separately.
_LEAST_SHARED = 32

# The token ids of a prompt, and those of a reply.
_Sequence = tuple[list[int], list[int]]


class _ReplyScorer:
    """A language model that scores replies after prompts."""

    tokenizer: Any
    # What check_length reads a model's limits from.
    limits: Any
    decodes = False

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    def __call__(
        self, questions: Sequence[tuple[tuple[str, str], list[str]]], mean: bool
    ) -> NDArray[np.float64]:
        """Return the log-probability of each reply, summed or averaged over its tokens."""
        sequences = []
        for prompt, replies in questions:
            context, space = self._context(prompt)
            for reply in replies:
                ids = self._tokens(f"{space}{reply}")
                if not ids:
                    raise RespondentError(f"The tokenizer has no tokens for {reply!r}: reword it.")

                sequences.append((context, ids))

        steps = self._score(sequences)
        return np.array([float(logs.mean() if mean else logs.sum()) for logs in steps])

    @abstractmethod
    def _batch_size(self, longest: int) -> int:
        """Return the number of texts that are read at once."""

    @abstractmethod
    def _logits_from(self, rows: list[tuple[int, ...]], place: int) -> Any:
        """Return the logits from one place on, (rows, places, V), since V is large."""

    @abstractmethod
    def _normalise(self, logits: Any) -> Any:
        """Return log-probabilities of the tokens, (places, V)."""

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _context(self, prompt: tuple[str, str]) -> tuple[list[int], str]:
        """Return the token ids of the prompt, and of the text between prompt and reply."""
        system, user = prompt
        voice = not system and not self.decodes  # a text to continue
        if not voice and getattr(self.tokenizer, "chat_template", None):
            turns = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            return self._tokens(fill_template(self.tokenizer, turns)), ""

        if self.decodes:
            return self.tokenizer(f"{system}\n{user}\n")["input_ids"], ""
        ids = self._tokens(f"{system}\n{user}\nAnswer:" if system else user)
        start = self.tokenizer.bos_token_id
        if start is not None:
            ids = [start, *ids]
        return ids, "" if user[-1:].isspace() else " "

    def _score(self, sequences: list[_Sequence]) -> list[Any]:
        """Score replies; replies of a single token share one pass over their prompt."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, (context, ids) in enumerate(sequences):
            groups.setdefault(tuple(context + ids[:-1]), []).append(number)

        distinct = list(groups)
        scored = {}
        check_length([list(tokens) for tokens in distinct], self.limits, self.tokenizer)
        size = self._batch_size(max(map(len, distinct)))

        def compute(batch: list[tuple[int, ...]]) -> tuple[int, Any]:
            place = min(len(sequences[number][0]) for row in batch for number in groups[row]) - 1
            return place, self._logits_from(batch, place)

        batches = _compute_batches(distinct, size, compute, self.identity)
        for batch, (place, logits) in batches:
            for row, tokens in enumerate(batch):
                for number in groups[tokens]:
                    context, ids = sequences[number]
                    last = len(context) - 1 - place
                    logs = self._normalise(logits[row, last : last + len(ids)])
                    scored[number] = logs[range(len(ids)), ids]

        return [scored[number] for number in range(len(sequences))]


class _TorchScorer(_ReplyScorer):
    """A causal or encoder-decoder model that torch computes."""

    def __init__(self, name_or_path: str | Path, identity: Identity) -> None:
        self.device = resolve_device(None)
        super().__init__(replace(identity, device=str(self.device)))
        source = find(name_or_path)
        self.decodes = bool(load_config(source).is_encoder_decoder)
        head = "encoder-decoder" if self.decodes else "causal"
        kinds = "a causal or an encoder-decoder model, which continues a text"
        model, self.tokenizer = load_model(source, head, dtype=identity.precision, what=kinds)
        self.model: Any = to_device(model, self.device, identity.precision, source.name)
        self.limits = self.model

    def __call__(
        self, questions: Sequence[tuple[tuple[str, str], list[str]]], mean: bool
    ) -> NDArray[np.float64]:
        """Return the log-probability of each reply, as :class:`_ReplyScorer` does."""
        import torch

        with torch.inference_mode():
            return super().__call__(questions, mean)

    def _score(self, sequences: list[_Sequence]) -> list[Any]:
        return self._encoder_decoder(sequences) if self.decodes else super()._score(sequences)

    def _batch_size(self, longest: int) -> int:
        return batch_rows(self.model.config, self.device, self.identity.precision, longest, _BATCH)

    def _normalise(self, logits: torch.Tensor) -> torch.Tensor:
        return logits.log_softmax(dim=-1)

    def _logits_from(self, rows: list[tuple[int, ...]], place: int) -> torch.Tensor:
        """Return the logits from one place on.

        The common beginning of all rows is read once: prompts differ only in their last line.
        """
        import torch

        least = min(rows)
        greatest = max(rows)  # least and greatest differ earliest
        pairs = enumerate(zip(least, greatest, strict=False))
        shared = min(place, next((i for i, (a, b) in pairs if a != b), len(least)))
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=self.device)
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        inputs: dict[str, Any] = {"attention_mask": torch.tensor(mask, device=self.device)}
        past: Any = None

        if shared >= _LEAST_SHARED and len(rows) > 1:
            begun = self.model(input_ids=ids[:1, :shared], use_cache=True)
            past = getattr(begun, "past_key_values", None)  # not in Mamba and RWKV

        if hasattr(past, "batch_repeat_interleave"):
            past.batch_repeat_interleave(len(rows))
            inputs |= {"past_key_values": past, "use_cache": True, "input_ids": ids[:, shared:]}
        else:
            inputs["input_ids"] = ids

        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            inputs["logits_to_keep"] = width - place

        logits: torch.Tensor = self.model(**inputs).logits
        return logits[:, place - width :].float()

    def _encoder_decoder(self, sequences: list[_Sequence]) -> list[torch.Tensor]:
        import torch

        check_float32(self.device, self.identity.precision, self.identity.respondent_id)
        scored = []
        start = self.model.config.decoder_start_token_id
        for context, ids in sequences:
            logits = self.model(
                input_ids=torch.tensor([context], device=self.device),
                decoder_input_ids=torch.tensor([[start, *ids[:-1]]], device=self.device),
            ).logits
            scored.append(logits[0].float().log_softmax(dim=-1)[range(len(ids)), ids])
        return scored


class _ONNXScorer(_ReplyScorer):
    """A causal model in an ONNX file, which reads each text alone."""

    def __init__(self, name_or_path: str | Path, identity: Identity) -> None:
        super().__init__(identity)
        self._decoder = ONNXDecoder(find(name_or_path))
        self.tokenizer = self._decoder.tokenizer
        self.limits = self._decoder.lengths

    def _batch_size(self, longest: int) -> int:
        return 1

    def _logits_from(self, rows: list[tuple[int, ...]], place: int) -> NDArray[np.float32]:
        return self._decoder.logits(rows[0], place)[None]

    def _normalise(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        logs: NDArray[np.float32] = log_softmax(logits, axis=-1)
        return logs


def load_scorer(name_or_path: str | Path, identity: Identity) -> _ReplyScorer:
    """Load a language model that scores replies."""
    if identity.source == "onnx":
        return _ONNXScorer(name_or_path, identity)
    return _TorchScorer(name_or_path, identity)
