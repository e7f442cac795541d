"""What every response mode has: the interface through which respondents are asked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ..checks import check_model
from ..exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from ..progress import Progress
    from ..questionnaires import Questionnaire


Runs = Annotated[int, Field(gt=0, le=100_000)]
"""How often each item is asked; more than the limit is a slip, and would fill the memory."""


class Asking(NamedTuple):
    """Who is asked, and how: what all questions to a respondent share.

    Parameters
    ----------
    respondent, identity
        As :meth:`Mode.open` and :meth:`Mode.identify` return them.
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
    conditions : dict
        All conditions of the mode.
    """

    respondent: object
    identity: dict
    store: str | Path | None
    bar: Progress
    conditions: dict


class Conditions(BaseModel):
    """What may be varied in asking; each mode has a subclass with a field for each condition.

    A value is checked and then used as it was given, since answers are stored by it.
    """

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    @classmethod
    def defaults(cls) -> dict[str, object]:
        """Return the defaults of all conditions, by name."""
        return {name: field.default for name, field in cls.model_fields.items()}


class Mode:
    """A way of answering. Each mode is a subclass, which says of itself what others need to know.

    A method raises RespondentError if this respondent cannot answer (the others are still asked),
    and ParameterError if a condition does not fit (nobody is asked). Its conditions are complete.

    Attributes
    ----------
    name : str
    conditions_type : type of Conditions
        What may be varied: a field for each condition, with its type and its default.
    conditions : dict
        The defaults of all conditions.
    answers : {"prompts", "items"}
        What a row of answers is about: a prompt of the prompt table, or an item.
    sends : {"prompts", "messages", "statements", "nothing"}
        What a respondent reads, which :meth:`preview` shows.
    takes_populations : bool
        Whether its respondents are models by name, so that a population may be named.
    asked_once : dict
        Conditions under which each item is asked once, alone, and in its order.
    needs_options : bool
        Whether each item must have options, because an answer is one of them.
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
        cls.conditions = cls.conditions_type.defaults()

    def named(self, text: str) -> object:
        """Return the respondents that a text means, such as an option of the command.

        Raises
        ------
        ParameterError
            The text names none.

        Examples
        --------
        >>> from psychometrics.modes import mode_named
        >>> mode_named("simulated").named("20")
        20
        """
        return text

    def complete(self, given: dict) -> dict:
        """Return the conditions that were given with the defaults of all others.

        Raises
        ------
        ParameterError
            The mode has no condition of that name, or a value is impossible.

        Examples
        --------
        >>> from psychometrics.modes import mode_named
        >>> mode_named("causal").complete({})
        {'mean': 'product'}
        """
        unknown = sorted(set(given) - set(self.conditions))
        if unknown:
            has = ", ".join(self.conditions)
            has = f"its conditions are {has}" if has else "it has no conditions"
            raise ParameterError(f"Mode '{self.name}' has no condition '{unknown[0]}': {has}.")
        check_model(given, self.conditions_type)
        return self.conditions | given

    def identify(self, respondent: object, dtype: str | None = None, **conditions: object) -> dict:
        """Say who answers, cheaply and before any question.

        Returns
        -------
        dict
            ``respondent_id, source, model, revision, mode, dtype, fingerprint``; the last is a
            digest of everything that determines an answer.
        """
        raise NotImplementedError

    def check(self, questionnaire: Questionnaire, identity: dict, conditions: dict) -> None:
        """Refuse what this questionnaire cannot be asked with, before a model is loaded.

        Raises
        ------
        ParameterError, QuestionnaireError
            A condition does not fit the questionnaire, or it lacks what the mode asks.

        Examples
        --------
        >>> from psychometrics import load_questionnaire
        >>> from psychometrics.modes import mode_named
        >>> mode_named("human").check(load_questionnaire("gad7"), {}, {})
        """
        for item in questionnaire.items if self.needs_options else ():
            questionnaire.ends(item)

    def open(self, respondent: object, identity: dict, **conditions: object) -> object:
        """Return what :meth:`answer` gets as the respondent; called once per respondent.

        A model is loaded at its first question and then serves all questionnaires.
        """
        return respondent

    def preview(self, questionnaire: Questionnaire, conditions: dict) -> pd.DataFrame:
        """Return what a respondent would be sent about a questionnaire; nobody is asked.

        Raises
        ------
        ParameterError
            The mode sends no text, or a condition does not fit.
        """
        raise ParameterError(f"Mode '{self.name}' sends no text: name one whose respondents read.")

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Put one questionnaire to one respondent; save every answer in the store as it comes."""
        raise NotImplementedError

    def answer_all(
        self, questionnaires: Iterable[Questionnaire], asking: Asking
    ) -> Iterator[pd.DataFrame]:
        """Put several questionnaires to one respondent; yield the answers of each."""
        for questionnaire in questionnaires:
            yield self.answer(questionnaire, asking)

    @staticmethod
    def _when_asked(load: Callable[[], Callable]) -> Callable:
        """Return what loads a model at its first question and keeps it for all questionnaires."""
        loaded = functools.cache(load)

        def ask(*asked: object, **options: object) -> object:
            return loaded()(*asked, **options)

        return ask

    def _who(
        self,
        name: str,
        source: str,
        fingerprint: str,
        model: str | None = None,
        revision: str | None = None,
        dtype: str | None = None,
    ) -> dict:
        """Return what :meth:`identify` does."""
        about = {"respondent_id": name, "source": source, "model": model, "revision": revision}
        return about | {"mode": self.name, "dtype": dtype, "fingerprint": fingerprint}
