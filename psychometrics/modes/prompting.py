"""What the modes that answer prompts one by one share: nli, mlm, causal, nsp, acceptability.

Tables and store are imported where prompts are put, so that a model that is only loaded waits for
neither.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from tqdm import tqdm

from ..exceptions import ParameterError, RespondentError
from ..models.loading import resolve_device, resolve_dtype
from ..models.sources import Source, digest_text, find, recipe_of
from .mode import Mode

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ..asking.progress import Progress
    from ..asking.store import StoredAnswers
    from ..questionnaires import Questionnaire

CHUNK = 512
"""Prompts that are handed over at once, and at most between two saves."""
SAVE_EVERY = 20.0
"""Seconds between two saves within a chunk: what a killed run has to ask again at most."""
Prompt = tuple[str, str, str]


class PromptMode(Mode):
    """A mode whose respondents answer rows of the prompt table.

    Attributes
    ----------
    columns, asked : tuple of str
        Columns of an answer, and those of the prompt table that make a question.
    choices : dict
        The values that each condition may have.
    """

    columns: tuple[str, ...] = ("probability",)
    asked: tuple[str, ...] = ("premise", "hypothesis", "intensifier")
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}

    def build(self, source: Source, identity: dict, device: torch.device, **conditions: object):
        """Load a respondent, which has ``identity``, ``answer(prompts)``, ``batches(prompts)``."""
        raise NotImplementedError

    def digest(self, source: Source, dtype: str, **conditions: object) -> str:
        """Return the fingerprint of a respondent."""
        raise NotImplementedError

    def identify(self, respondent: object, dtype: str | None = None, **conditions: object) -> dict:
        """Who answers, in which mode, version and precision; nothing is loaded."""
        if hasattr(respondent, "answer"):
            if respondent.identity["mode"] != self.name:
                raise RespondentError(
                    f"{respondent.identity['respondent_id']} was loaded to answer in mode "
                    f"'{respondent.identity['mode']}': load it with mode='{self.name}'."
                )
            return respondent.identity
        source = find(respondent)
        return self._identity(source, _dtype(source, dtype, resolve_device(None)), conditions)

    def load(
        self,
        name_or_path: str | Path,
        device: str | torch.device | None = None,
        dtype: str | None = None,
        **conditions: object,
    ) -> object:
        """A respondent that is ready to answer."""
        device = resolve_device(device)
        source = find(name_or_path)
        identity = self._identity(source, _dtype(source, dtype, device), conditions)
        return self.build(source, identity | {"device": str(device)}, device, **conditions)

    def open(self, respondent: object, identity: dict, **conditions: object) -> object:
        """The respondent, to be loaded at its first question and then kept."""
        if hasattr(respondent, "answer"):
            return respondent
        return _Later(lambda: self.load(respondent, None, identity["dtype"], **conditions))

    def answer(
        self,
        questionnaire: Questionnaire,
        respondent: object,
        identity: dict,
        store: str | Path | None,
        bar: Progress,
        **conditions: object,
    ) -> pd.DataFrame:
        """The prompt table with one respondent's answers, from the store or asked now."""
        respondent = self.open(respondent, identity, **conditions)
        table, rows, keys = self._questions(questionnaire, identity)
        with self._kept(questionnaire, identity, store, table) as kept:
            new = {row: key for row, key in zip(rows, keys, strict=True) if key not in kept}
            bar.expect(len(table), len(table) - len(new))
            self.fill(respondent, new, kept, bar)
            values = kept.rows.loc[keys, list(self.columns)].to_numpy(dtype="float32")
        table.insert(0, "respondent_id", identity["respondent_id"])
        table.insert(1, "mode", self.name)
        table[list(self.columns)] = values
        return table.assign(**conditions)

    def answer_part(
        self,
        questionnaire: Questionnaire,
        respondent: object,
        identity: dict,
        store: str | Path | None,
        bar: Progress,
        part: slice,
    ) -> None:
        """Ask one part of the questions that differ, of which others may ask the other parts."""
        table, rows, keys = self._questions(questionnaire, identity)
        differing = dict(zip(rows, keys, strict=True))
        asked = dict(list(differing.items())[part])
        # Those that are there twice are the first part's.
        count = len(asked) + (0 if part.start else len(table) - len(differing))
        with self._kept(questionnaire, identity, store, table) as kept:
            new = {row: key for row, key in asked.items() if key not in kept}
            bar.expect(count, count - len(new))
            self.fill(respondent, new, kept, bar)

    def _questions(
        self, questionnaire: Questionnaire, identity: dict
    ) -> tuple[pd.DataFrame, list[tuple], list[str]]:
        """The prompt table, each row's question and the key of its answer."""
        from ..asking.store import key_of
        from ..questionnaires.prompts import prompts

        table = prompts(questionnaire)
        rows = list(zip(*(table[name].tolist() for name in self.asked), strict=True))
        return table, rows, [key_of(identity["fingerprint"], *row) for row in rows]

    def _kept(
        self,
        questionnaire: Questionnaire,
        identity: dict,
        store: str | Path | None,
        table: pd.DataFrame,
    ) -> StoredAnswers:
        from ..asking.store import open_answers

        manifest = {
            "prompts": len(table),
            "prompts_sha256": digest_text(*table.astype(str).to_numpy().ravel()),
            "device": str(resolve_device(None)),
            **identity,
        }
        who = identity["respondent_id"]
        return open_answers(store, self.name, questionnaire.id, who, manifest, self.columns)

    def fill(
        self, respondent: object, new: dict[tuple, str], kept: StoredAnswers, bar: Progress
    ) -> None:
        """Put prompts to a respondent, and keep its answers every chunk and every few seconds."""
        import pandas as pd

        asked, buffer = list(new), Buffer(kept)
        try:
            for start in range(0, len(asked), CHUNK):
                for done, values in _batches(respondent, asked[start : start + CHUNK]):
                    rows = pd.DataFrame(done, columns=list(self.asked))
                    rows[list(self.columns)] = values
                    buffer.add(rows, [new[row] for row in done], len(done))
                    bar.update(len(done))
        finally:  # also if it is stopped
            buffer.save()

    def _identity(self, source: Source, dtype: str, conditions: dict) -> dict:
        for name, values in self.choices.items():
            if conditions[name] not in values:
                raise ParameterError(
                    f"{name} must be one of {', '.join(values)}, got {conditions[name]!r}."
                )
        return {
            "respondent_id": source.name,
            "source": source.kind,
            "model": source.model,
            "revision": source.revision,
            "mode": self.name,
            "dtype": dtype,
            "fingerprint": self.digest(source, dtype, **conditions),
        }


class Buffer:
    """Answers on their way into the store: saved every ``CHUNK`` questions or ``SAVE_EVERY`` s."""

    def __init__(self, kept: StoredAnswers) -> None:
        self._kept, self._parts, self._questions, self._began = kept, [], 0, time.perf_counter()

    def add(self, rows: pd.DataFrame, keys: list[str], questions: int) -> None:
        """Take the rows that answer so many questions, and save if it is time."""
        import pandas as pd

        self._parts.append(rows.set_index(pd.Index(keys, name="key")))
        self._questions += questions
        if self._questions >= CHUNK or time.perf_counter() - self._began >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Put what there is into the store."""
        import pandas as pd

        if self._parts:
            self._kept.add(pd.concat(self._parts), seconds=time.perf_counter() - self._began)
        self._parts, self._questions, self._began = [], 0, time.perf_counter()


class _Later:
    """A respondent that is loaded when it is asked."""

    def __init__(self, load: Callable) -> None:
        self._load, self._loaded = load, None

    def batches(self, asked: list[tuple]) -> Iterator[tuple[list[tuple], np.ndarray]]:
        self._loaded = self._loaded or self._load()
        return self._loaded.batches(asked)

    def answer(self, asked: list[tuple]) -> np.ndarray:
        self._loaded = self._loaded or self._load()
        return self._loaded.answer(asked)


def gathered(respondent, prompts: list[tuple], progress: bool) -> np.ndarray:
    """Answers of a respondent's batches in the order of the prompts, with a bar if wanted."""
    label = respondent.identity["respondent_id"]
    known = {}
    with tqdm(total=len(set(prompts)), desc=label, unit="prompt", disable=not progress) as bar:
        for done, values in respondent.batches(prompts):
            known |= zip(done, values, strict=True)
            bar.update(len(done))
    return np.array([known[prompt] for prompt in prompts], dtype=np.float32)


def checked(prompts: Iterable, parts: tuple[str, ...], may_be_empty: int = -1) -> list[tuple]:
    """Prompts as tuples of strings, or one sentence about the first that is none.

    ``may_be_empty`` is the place of a part that may be an empty string.
    """
    prompts = [
        tuple(prompt) if isinstance(prompt, Iterable) and not isinstance(prompt, str) else prompt
        for prompt in prompts
    ]
    called = "Pair" if len(parts) == 2 else "Prompt"
    if not prompts:
        raise RespondentError(
            f"There are no prompts to answer: give at least one {called.lower()}."
        )
    for number, prompt in enumerate(prompts, start=1):
        if not isinstance(prompt, tuple) or len(prompt) != len(parts):
            raise RespondentError(
                f"{called} {number} is {prompt!r}: it must be a tuple of {', '.join(parts)}."
            )
        for place, (part, text) in enumerate(zip(parts, prompt, strict=True)):
            if not isinstance(text, str) or not (text.strip() or place == may_be_empty):
                raise RespondentError(
                    f"{called} {number} has the {part} {text!r}: it must be a non-empty string."
                )
            if re.search("[\ud800-\udfff]", text):
                raise RespondentError(
                    f"{called} {number} has the {part} {text!r}: it holds half a character (a "
                    "lone surrogate); correct its encoding."
                )
    return prompts


def token_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens that a text may have, for tokenizer and position table alike."""
    positions = getattr(model.config, "max_position_embeddings", None) or -1
    if positions < 1:  # relative positions alone, as in XLNet
        return tokenizer.model_max_length
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            positions -= padding + 1  # RoBERTa and its kin number positions from there on
            break
    return min(tokenizer.model_max_length, positions)


def fitting(encoded: list[list[int]], model, tokenizer, more: int = 0) -> list[list[int]]:
    """Token ids; refused if a text with ``more`` to come is longer than the model reads."""
    longest, limit = max(map(len, encoded)) + more, token_limit(model, tokenizer)
    if longest > limit:
        raise RespondentError(
            f"A prompt has {longest} tokens and the model reads {limit}: shorten its template."
        )
    return encoded


def _dtype(source: Source, dtype: str | None, device: torch.device) -> str:
    """The precision asked for, else the one a respondent was trained in, else the machine's."""
    return resolve_dtype(dtype or recipe_of(source).get("dtype"), device)


def _batches(respondent, asked: list[tuple]) -> Iterator[tuple[list[tuple], np.ndarray]]:
    if hasattr(respondent, "batches"):
        return respondent.batches(asked)
    return iter([(asked, respondent.answer(asked))])
