"""The interface that every response mode implements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..checks import check_model
from ..exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from ..models.sources import Source
    from ..progress import Progress
    from ..questionnaires import Questionnaire


Runs = Annotated[int, Field(gt=0, le=100_000)]
"""The number of times that each item is asked, limited to what fits into memory."""


@dataclass(frozen=True)
class Identity(Mapping[str, Any]):
    """The identity of a respondent, under which its answers are stored.

    An identity is also a mapping, without ``device`` and ``by`` if they are None, so that a
    manifest can store it unchanged.

    Parameters
    ----------
    respondent_id : str
    source : str
        Source of the respondent, such as "embedded", "local", "hub", "endpoint", "person".
    model, revision : str, optional
        The model's name, and its commit on the hub or the SHA-256 of its weight files.
    mode : str
    dtype : str, optional
        Precision of a model's computations.
    fingerprint : str
        A digest of everything that determines an answer.
    device : str, optional
        Device on which a loaded model computes.
    by : str, optional
        Kind of respondent in mode options: "logits", "entailment" or "endpoint".

    Examples
    --------
    >>> ada = Identity("Ada", "person", mode="human")
    >>> ada["source"], "device" in ada
    ('person', False)
    """

    respondent_id: str
    source: str = ""
    model: str | None = None
    revision: str | None = None
    mode: str = ""
    dtype: str | None = None
    fingerprint: str = ""
    device: str | None = None
    by: str | None = None

    @property
    def precision(self) -> str:
        """The precision of a model's computations, float32 by default."""
        return self.dtype or "float32"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Identity:
        """Return the identity of a user's own respondent, or of a mode in another package.

        Examples
        --------
        >>> Identity.of({"respondent_id": "my-lstm", "mode": "nli", "tuned": True}).mode
        'nli'
        """
        if isinstance(values, Identity):
            return values
        names = [field.name for field in fields(cls)]
        return cls(**{name: values[name] for name in names if name in values})

    @classmethod
    def from_source(cls, source: Source, mode: str, dtype: str, fingerprint: str) -> Identity:
        """Return the identity of a model at a source.

        Examples
        --------
        >>> from psychometrics.models.sources import find
        >>> Identity.from_source(find("minilm-mnli-l3-s16"), "nli", "float32", "").source
        'embedded'
        """
        return cls(
            source.name, source.kind, source.model, source.revision, mode, dtype, fingerprint
        )

    @property
    def _entries(self) -> dict[str, Any]:
        is_absent = {name: getattr(self, name) is None for name in ("device", "by")}
        return {name: value for name, value in vars(self).items() if not is_absent.get(name)}

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Asking(NamedTuple):
    """A respondent, and the conditions that all questions to it share.

    Parameters
    ----------
    respondent
        The respondent, as :meth:`Mode.open` returns it.
    identity : Identity
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
    conditions : dict
        All conditions of the mode.
    """

    respondent: Any
    identity: Identity
    store: str | Path | None
    bar: Progress
    conditions: dict[str, Any]


class Conditions(BaseModel):
    """Conditions of a mode; each mode has a subclass with a field for each condition.

    A value is checked and then used unchanged, since it is part of the key of stored answers.
    """

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


class Mode:
    """A way of answering; each mode is a subclass that declares the attributes below.

    A method raises RespondentError if one respondent cannot answer (other respondents are still
    asked), and ParameterError if a condition does not fit (no respondent is asked). All conditions
    have values when a method gets them.

    Attributes
    ----------
    name : str
    conditions_type : type of Conditions
        A class with a field for each condition; the field has the condition's type and default.
    conditions : dict
        The defaults of all conditions.
    answers : {"prompts", "items"}
        The unit of a row of answers: a prompt of the prompt table, or an item.
    sends : {"prompts", "messages", "statements", "nothing"}
        The texts that a respondent reads; :meth:`preview` shows them.
    takes_populations : bool
        Whether the mode's respondents are models with names, so that a population can be asked.
    asked_once : dict
        Conditions under which each item is asked once, alone and in order.
    needs_options : bool
        Whether each item must have options, because an answer is one of the options.
    """

    conditions_type: ClassVar[type[Conditions]] = Conditions
    conditions: ClassVar[dict[str, object]] = {}
    answers: ClassVar[Literal["prompts", "items"]] = "items"
    sends: ClassVar[Literal["prompts", "messages", "statements", "nothing"]] = "nothing"
    takes_populations: ClassVar[bool] = False
    asked_once: ClassVar[dict[str, object]] = {}
    needs_options: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fields_by_name = cls.conditions_type.model_fields.items()
        cls.conditions = {name: field.default for name, field in fields_by_name}

    def named(self, text: str) -> object:
        """Return the respondents that a text names, such as the value of a command-line option.

        Raises
        ------
        ParameterError
            The text names no respondents.

        Examples
        --------
        >>> from psychometrics.modes import mode_named
        >>> mode_named("simulated").named("20")
        20
        """
        return text

    def complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Complete the given conditions with the defaults of all other conditions.

        Raises
        ------
        ParameterError
            The mode has no condition of that name, or a condition has an invalid value.

        Examples
        --------
        >>> from psychometrics.modes import mode_named
        >>> mode_named("causal").complete({})
        {'mean': 'product'}
        """
        unknown = sorted(set(settings) - set(self.conditions))
        if unknown:
            names = ", ".join(self.conditions)
            advice = f"its conditions are {names}" if names else "it has no conditions"
            raise ParameterError(f"Mode '{self.name}' has no condition '{unknown[0]}': {advice}.")
        check_model(settings, self.conditions_type)
        return self.conditions | settings

    def identify(self, respondent: Any, dtype: str | None = None, **conditions: Any) -> Identity:
        """Return a respondent's identity, cheaply and before any question."""
        raise NotImplementedError

    def check(
        self, questionnaire: Questionnaire, identity: Identity, conditions: dict[str, Any]
    ) -> None:
        """Refuse a questionnaire that does not fit the conditions, before a model is loaded.

        Raises
        ------
        ParameterError, QuestionnaireError
            A condition does not fit the questionnaire, or the questionnaire lacks a required part.

        Examples
        --------
        >>> from psychometrics import load_questionnaire
        >>> from psychometrics.modes import mode_named
        >>> mode_named("human").check(load_questionnaire("gad7"), Identity("Ada"), {})
        """
        for item in questionnaire.items if self.needs_options else ():
            questionnaire.ends(item)

    def open(self, respondent: Any, identity: Identity, **conditions: Any) -> Any:
        """Prepare the respondent for :meth:`answer`; this is called once per respondent.

        A model is loaded at its first question and then answers all questionnaires.
        """
        return respondent

    def preview(self, questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
        """Return the texts that a respondent would be sent, without asking any respondent.

        Raises
        ------
        ParameterError
            The mode sends no text, or a condition does not fit.
        """
        raise ParameterError(f"Mode '{self.name}' sends no text: name a mode that does.")

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Put one questionnaire to one respondent, and store every answer as it arrives."""
        raise NotImplementedError

    def answer_all(
        self, questionnaires: Iterable[Questionnaire], asking: Asking
    ) -> Iterator[pd.DataFrame]:
        """Put several questionnaires to one respondent; yield the answers to each."""
        for questionnaire in questionnaires:
            yield self.answer(questionnaire, asking)

    @staticmethod
    def _when_asked(load: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """Wrap a loader so that it loads a model at its first question and keeps it."""
        loaded = functools.cache(load)

        def ask(*questions: object, **options: object) -> object:
            return loaded()(*questions, **options)

        return ask
