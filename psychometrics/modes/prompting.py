"""Code shared by modes that answer prompts one by one: nli, mlm, causal, nsp, acceptability."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from ..exceptions import MissingPackageError, RespondentError, naming_extras, out_of_memory
from ..files import digest_text
from ..models.devices import check_float32, resolve_device, resolve_dtype
from ..models.lengths import check_known
from ..models.loading import load_tokenizer
from ..models.onnx import find_onnx, resolve_precision
from ..models.sources import Source, find
from ..questionnaires import Questionnaire
from ..questionnaires.prompts import prompts as prompt_table
from ..store import CHUNK, StoredAnswers, key_of
from .mode import Asking, Identity, Mode

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_Prompt = tuple[str, ...]  # premise, hypothesis and, if separate, the intensifier
_Probabilities = NDArray[np.floating[Any]]
_Row = TypeVar("_Row")
_Computed = TypeVar("_Computed")

# Relative difference below which answers count as the same.
_SAME = 1e-6


class PromptMode(Mode):
    """A mode whose respondents answer rows of the prompt table.

    Attributes
    ----------
    question_columns, answer_columns : tuple of str
        The columns of the prompt table that make up a question, and the columns of an answer.
    """

    answers = "prompts"
    sends = "prompts"
    takes_populations = True
    question_columns: tuple[str, ...] = ("premise", "hypothesis", "intensifier")
    answer_columns: tuple[str, ...] = ("probability",)

    def digest(self, source: Source, dtype: str, **conditions: Any) -> str:
        """Return the fingerprint of the model at a source."""
        raise NotImplementedError

    def build(
        self, source: Source, identity: Identity, device: torch.device, **conditions: Any
    ) -> _PromptRespondent:
        """Load a respondent from the model at a source."""
        raise NotImplementedError

    def identify(self, respondent: Any, dtype: str | None = None, **conditions: Any) -> Identity:
        """Return the respondent's identity for this mode and precision, without loading it."""
        if hasattr(respondent, "answer"):
            identity = Identity.of(respondent.identity)
            if identity.mode != self.name:
                raise RespondentError(f"{identity.respondent_id} was loaded for another mode.")
            return identity
        return self._identity(_find_runnable(respondent), dtype, conditions)

    def load(
        self,
        name_or_path: str | Path | Source,
        device: str | torch.device | None = None,
        dtype: str | None = None,
        **conditions: Any,
    ) -> _PromptRespondent:
        """Load a respondent."""
        place = resolve_device(device)
        source = _find_runnable(name_or_path)
        identity = self._identity(source, dtype, conditions)
        loaded = self.build(source, replace(identity, device=str(place)), place, **conditions)
        loaded.conditions = conditions
        return loaded

    def check(
        self, questionnaire: Questionnaire, identity: Identity, conditions: dict[str, Any]
    ) -> None:
        """Refuse a questionnaire without prompts."""
        prompt_table(questionnaire)

    def _identity(self, source: Source, dtype: str | None, conditions: dict[str, Any]) -> Identity:
        if source.kind == "onnx" and source.file is not None:
            dtype = resolve_precision(source.file, dtype)
            fingerprint = self.digest(source, dtype, **conditions)
            identity = Identity.from_source(source, self.name, dtype, fingerprint)
            return replace(identity, device="cpu")

        dtype = resolve_dtype(dtype)
        fingerprint = self.digest(source, dtype, **conditions)
        return Identity.from_source(source, self.name, dtype, fingerprint)

    def open(self, respondent: Any, identity: Identity, **conditions: Any) -> Any:
        """Return a function from questions to batches of questions with their answers."""
        if hasattr(respondent, "batches"):
            return respondent.batches
        if hasattr(respondent, "answer"):
            return lambda questions: [(questions, respondent.answer(questions))]

        @functools.cache
        def load() -> Callable[..., Any]:
            return self.load(respondent, None, identity.dtype, **conditions).batches

        def ask(questions: list[_Prompt]) -> Any:
            if load.cache_info().currsize:
                return load()(questions)

            source = find(respondent)
            if source.kind in ("embedded", "packed", "onnx"):
                return load()(questions)

            # A tokenizer that does not know the questions' words is refused before weights are
            # loaded. If it cannot be read, loading the model reports all faults in order.
            tokenizer = None
            with contextlib.suppress(RespondentError):
                tokenizer = load_tokenizer(source)
            if tokenizer is not None:
                texts = [" ".join(question) for question in questions]
                check_known(tokenizer(texts, verbose=False)["input_ids"], tokenizer, source.name)

            return load()(questions)

        return ask

    def preview(self, questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
        """Return the prompt table, whose premises and hypotheses are the texts to be sent."""
        self.complete(conditions)
        return prompt_table(questionnaire)

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Return the prompt table with one respondent's answers, stored or new.

        Warns
        -----
        UserWarning
            All answers are the same number, which means that the respondent does not read the
            prompts.
        """
        table = prompt_table(questionnaire)
        identity = asking.identity
        columns = list(self.answer_columns)
        texts = (table[name].tolist() for name in self.question_columns)
        questions: list[_Prompt] = list(zip(*texts, strict=True))
        keys = [key_of(identity.fingerprint, *question) for question in questions]
        name = identity.respondent_id
        manifest = {
            "prompts": len(table),
            "prompts_sha256": digest_text(*table.astype(str).to_numpy().ravel()),
            "device": identity.device,
            **identity,
        }

        with StoredAnswers(
            asking.store, self.name, questionnaire.id, name, manifest, self.answer_columns
        ) as stored:
            distinct = dict(zip(questions, keys, strict=True))
            asking.bar.unused += len(stored) - sum(key in stored for key in distinct.values())
            self.ask_missing(asking, distinct, stored, len(table))
            values = stored.rows.loc[keys, columns].to_numpy(dtype="float32")

        _check_finite(values, identity)  # an older version may have stored NaN
        table.insert(0, "respondent_id", name)
        table.insert(1, "mode", self.name)
        table[columns] = values

        if _all_equal(table[columns[0]]):
            mend = "check its weights and its config.json"
            if identity.dtype == "bfloat16":
                mend = f"ask it with dtype='float32', or {mend}"

            warnings.warn(
                f"{name} gives all {len(table)} prompts of {questionnaire.id} the same answer "
                f"({columns[0]} {values[0, 0]:.4g}), so its scores mean nothing: {mend}.",
                stacklevel=3,
            )

        return table.assign(**asking.conditions)

    def ask_missing(
        self, asking: Asking, keys: dict[_Prompt, str], stored: StoredAnswers, count: int
    ) -> None:
        """Ask the questions whose answers are not stored, and store the answers.

        Parameters
        ----------
        asking : Asking
        keys : dict
            The key of the answer to each question.
        stored : StoredAnswers
        count : int
            Number of questions for the progress bar, including repeated questions.
        """
        respondent = asking.respondent
        bar = asking.bar
        new = {question: key for question, key in keys.items() if key not in stored}
        bar.expect(count, count - len(new))
        questions = list(new)
        if questions:  # finding the device imports torch
            stored.describe(device=asking.identity.device or str(resolve_device(None)))

        for start in range(0, len(questions), CHUNK):
            chunk = questions[start : start + CHUNK]
            for done, values in respondent(chunk):
                _check_finite(values, asking.identity)
                rows = pd.DataFrame(done, columns=list(self.question_columns))
                rows[list(self.answer_columns)] = values
                stored.collect(rows, [new[question] for question in done], len(done))
                bar.update(len(done))


def _find_runnable(respondent: str | Path | Source) -> Source:
    """Find a model; refuse one that needs torch where torch is missing, before any download.

    Raises
    ------
    RespondentError, MissingPackageError
    """
    if not isinstance(respondent, Source) and find_onnx(respondent) is None:
        with naming_extras():
            if importlib.util.find_spec("torch") is None:
                raise MissingPackageError("torch")

    return find(respondent)


class _PromptRespondent:
    """A model that answers prompts, as :func:`psychometrics.modes.load_respondent` returns it.

    Attributes
    ----------
    identity : Identity
        The identity from :func:`psychometrics.modes.identify`, with the ``device``.
    conditions : dict
        The mode's conditions, with which the respondent was loaded.
    """

    conditions: Mapping[str, Any] = MappingProxyType({})
    parts: tuple[str, ...] = ("premise", "hypothesis", "intensifier")

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, identity: Identity
    ) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.identity = identity

    def answer(self, prompts: Iterable[_Prompt], progress: bool = False) -> NDArray[np.float32]:
        """Return the probabilities for each prompt.

        Identical prompts are asked once. Answers do not depend on the order of the prompts. In
        float32 answers do not depend on the other prompts either, up to rounding (1e-6); bfloat16
        has only about three decimal digits.

        Parameters
        ----------
        prompts : iterable of tuple
            n pairs of premise and hypothesis in mode nli; in the other modes n triples of premise,
            hypothesis and intensifier.
        progress : bool
            Whether to show a progress bar.

        Returns
        -------
        ndarray of float32, shape (n, 3) or (n, 1)
            Probabilities in the order of the prompts: in mode nli of entailment, neutral and
            contradiction, which sum to one (neutral and contradiction are missing for a model with
            two outputs); in the other modes one probability.

        Raises
        ------
        RespondentError
            There are no prompts, a prompt is too long or has an empty part, or a single prompt does
            not fit into memory.
        """
        checked = _check_prompts(prompts, self.parts)
        total = len(set(checked))
        label = self.identity.respondent_id
        answers: dict[_Prompt, _Probabilities] = {}
        with tqdm(total=total, desc=label, unit="prompt", disable=not progress) as bar:
            for done, values in self.batches(checked):
                _check_finite(values, self.identity)
                answers |= zip(done, values, strict=True)
                bar.update(len(done))

        return np.array([answers[prompt] for prompt in checked], dtype=np.float32)

    def batches(self, prompts: Sequence[_Prompt]) -> Iterator[tuple[list[_Prompt], _Probabilities]]:
        """Yield prompts with their answers, batch by batch, each distinct prompt once."""
        raise NotImplementedError


def _compute_first(
    rows: list[_Row], compute: Callable[[list[_Row]], _Computed], identity: Identity
) -> tuple[list[_Row], _Computed]:
    """Compute as many rows as memory allows, from the first on; return both rows and result.

    The precision is checked at each call, since a process may allow TF32 at any time.

    Examples
    --------
    >>> _compute_first([1, 2, 3], sum, Identity("The model"))
    ([1, 2, 3], 6)
    """
    device = identity.device or "cpu"
    device_type = device.partition(":")[0]
    if device_type != "cpu":
        import torch

        check_float32(torch.device(device), identity.precision, identity.respondent_id)

    while True:
        try:
            return rows, compute(rows)
        except Exception as error:
            if isinstance(error, NotImplementedError) and device_type != "cpu":
                raise RespondentError(
                    f"{identity.respondent_id} needs an operation that torch lacks on {device}: "
                    "use device='cpu'."
                ) from error

            if not out_of_memory(error):
                raise
            if len(rows) == 1:
                raise RespondentError.of(identity.respondent_id, error) from None

        # Outside of the except block, where the error no longer keeps tensors alive.
        rows = rows[: len(rows) // 2]
        if device_type != "cpu":
            torch.get_device_module(device_type).empty_cache()


def _compute_batches(
    rows: list[_Row], size: int, compute: Callable[[list[_Row]], _Computed], identity: Identity
) -> Iterator[tuple[list[_Row], _Computed]]:
    """Yield rows with their results, in batches that get smaller if memory runs out.

    Examples
    --------
    >>> list(_compute_batches([1, 2, 3], 2, sum, Identity("The model")))
    [([1, 2], 3), ([3], 3)]
    """
    while rows:
        batch, computed = _compute_first(rows[:size], compute, identity)
        size = len(batch)
        rows = rows[size:]
        yield batch, computed


def _check_finite(values: Any, identity: Identity) -> None:
    """Refuse probabilities that are not finite numbers, before they are stored or become answers.

    Of several columns only the first counts: a model with two outputs lacks the others.

    Examples
    --------
    >>> _check_finite([0.2, float("nan")], Identity("m", dtype="float16"))
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.RespondentError: m returns NaN or infinity in float16: load it with ...
    """
    numbers = np.asarray(values, dtype=float)
    if not np.isfinite(numbers if numbers.ndim == 1 else numbers[:, 0]).all():
        name = identity.respondent_id
        finer = "" if identity.precision == "float32" else "load it with dtype='float32', or "
        raise RespondentError(
            f"{name} returns NaN or infinity in {identity.precision}: {finer}check its weights."
        )


def _all_equal(answers: pd.Series) -> bool:
    """Return whether several answers are the same number, up to rounding in float32.

    Examples
    --------
    >>> _all_equal(pd.Series([0.74, 0.74 + 1e-8])), _all_equal(pd.Series([0.74, 0.7401]))
    (True, False)
    """
    spread = answers.max() - answers.min()
    return len(answers) > 1 and bool(spread <= _SAME * answers.abs().max())


def _check_prompts(prompts: Iterable[object], parts: tuple[str, ...]) -> list[_Prompt]:
    """Return prompts as tuples of strings; an error names the first invalid prompt.

    A hypothesis may be empty if the intensifier is a separate part.
    """
    checked: list[_Prompt] = []
    for number, row in enumerate(prompts, start=1):
        prompt: Any = row
        if isinstance(row, Iterable) and not isinstance(row, str):
            prompt = tuple(row)

        if not isinstance(prompt, tuple) or len(prompt) != len(parts):
            raise RespondentError(f"Prompt {number} is {prompt!r}, not {', '.join(parts)}.")

        for name, text in zip(parts, prompt, strict=True):
            may_be_empty = name == "hypothesis" and len(parts) == 3
            sound = isinstance(text, str) and not re.search("[\ud800-\udfff]", text)
            if not sound or not (text.strip() or may_be_empty):
                raise RespondentError(f"Prompt {number} has {text!r} as its {name}: write text.")

        checked.append(prompt)

    if not checked:
        raise RespondentError("There are no prompts to answer: give at least one.")
    return checked
