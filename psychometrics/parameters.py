"""Parameters of the notebooks: one model for each, checked before anything is computed."""

from __future__ import annotations

import ast
import difflib
import math
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from .asking.population import population
from .exceptions import ParameterError, PsychometricsError
from .modes import completions, identify
from .modes.completions import KINDS, model_names, require
from .modes.messages import LABELS, messages
from .questionnaires import load_questionnaire
from .studies import diagnostic


def check_parameters(notebook: str, values: dict[str, object] | None = None) -> None:
    """Check the parameters of a notebook; its second cell.

    Parameters
    ----------
    notebook : str
        Its name, such as ``"03-assessment"``.
    values : dict, optional
        Values by name; by default those of the notebook that is running. Names that are left out
        are not looked at.

    Raises
    ------
    ParameterError
        A value is impossible (every one is named), or there is no such parameter.
    QuestionnaireError, RespondentError, DataError
        A questionnaire, a respondent or a file is not there.

    Examples
    --------
    >>> check_parameters("03-assessment", {"score": "entailed"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: score must be one of entailment, contrast, got ...
    """
    if notebook not in CHAPTERS:
        raise ParameterError(unknown("notebook", notebook, list(CHAPTERS)))
    chapter = CHAPTERS[notebook]
    if values is None:
        values = _running(chapter)
    for name in values:
        if name not in chapter.model_fields:
            raise ParameterError(unknown("parameter", name, list(chapter.model_fields)))
    try:
        chapter.model_validate(values)
    except ValidationError as error:
        reasons = [mistake.get("ctx", {}).get("error") for mistake in error.errors()]
        for reason in reasons:
            if isinstance(reason, PsychometricsError):
                raise reason from None
        said = [
            f"{mistake['loc'][0]} {reason}, got {mistake['input']!r}."
            if mistake["loc"]
            else str(reason)
            for mistake, reason in zip(error.errors(), reasons, strict=True)
        ]
        raise ParameterError("\n".join(said)) from None


def unknown(kind: str, name: str, known: list[str]) -> str:
    """A sentence that there is no such thing, with what comes nearest."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"There is no {kind} '{name}'{hint}: it must be one of {', '.join(known)}."


def _running(chapter: type[BaseModel]) -> dict[str, object]:
    """Values in the running notebook, and names that papermill was given beside them."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise ParameterError("No notebook is running: give the values.")
    space = shell.user_ns
    injected = [cell for cell in space.get("In", []) if cell.startswith("# Parameters\n")]
    nodes = ast.parse(injected[-1]).body if injected else []
    given = [node.targets[0].id for node in nodes if isinstance(node, ast.Assign)]
    names = [name for name in (*chapter.model_fields, *given) if name in space]
    return {name: space[name] for name in names}


# --- kinds of values; each error begins after the parameter's name


def _whole(least: int):
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"must be a whole number from {least}")
        return value

    return Annotated[int, BeforeValidator(check)]


def _one_of(*known: str):
    def check(value: object) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return value

    return Annotated[str, BeforeValidator(check)]


def _positive(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError("must be a positive number")
    return float(value)


def _share(value: object) -> float:
    if not isinstance(value, float) or not 0 < value < 1:
        raise ValueError("must be a number between 0 and 1")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text")
    return value


def _respondents(value: object) -> str:
    for name in population(_text(value)):
        identify(name)
    return value


def _questionnaire(value: object) -> str:
    load_questionnaire(_text(value))
    return value


def _check_template(questionnaire: str, item: int) -> None:
    if not load_questionnaire(questionnaire).items[item - 1].templates:
        raise ParameterError(f"item {item} of {questionnaire} has no template: name another.")


Text = Annotated[str, BeforeValidator(_text)]
Positive = Annotated[float, BeforeValidator(_positive)]
Share = Annotated[float, BeforeValidator(_share)]
Respondents = Annotated[str, BeforeValidator(_respondents)]
QuestionnaireName = Annotated[str, BeforeValidator(_questionnaire)]
Precision = _one_of("auto", "float32", "bfloat16")
Score = _one_of("entailment", "contrast")
Seed = _whole(0)


class _Page(BaseModel):
    """Every parameter has a default, so that a part of them can be checked."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class _Chapter(_Page):
    seed: Seed = 1


class _Scored(_Chapter):
    respondents: Respondents | None = None
    score: Score = "entailment"
    temperature: Positive = 1.0
    dtype: Precision = "auto"


class _Asked(_Page):
    """A questionnaire and one of its items, which has prompts."""

    questionnaire: QuestionnaireName | None = None
    item: _whole(1) = 1

    @model_validator(mode="after")
    def _item_has_prompts(self) -> _Asked:
        if self.questionnaire is None:
            return self
        items = load_questionnaire(self.questionnaire).items
        if self.item > len(items):
            raise ParameterError(
                f"item must be a whole number from 1 to {len(items)}, got {self.item}."
            )
        _check_template(self.questionnaire, self.item)
        return self


class _FirstScore(_Chapter, _Asked):
    """Chapter 1."""

    respondent: Text | None = None
    null_respondents: _whole(20) = 200

    @model_validator(mode="after")
    def _respondent_is_there(self) -> _FirstScore:
        if self.respondent:
            identify(self.respondent)
        return self


class _PromptDesign(_Scored, _Asked):
    """Chapter 2."""


class _Assessment(_PromptDesign):
    """Chapter 3."""

    respondent: Text = "first"

    @model_validator(mode="after")
    def _respondent_is_one_of_them(self) -> _Assessment:
        names = ["first", *(population(self.respondents) if self.respondents else [])]
        if self.respondent not in names:
            raise ParameterError(unknown("respondent", self.respondent, names))
        return self


class _Validity(_Scored):
    """Chapter 4."""

    questionnaire: QuestionnaireName = "gad7"
    encoder: Text = "embedded"
    acceptability_model: Text = "embedded"
    n_resamples: _whole(1) = 2000
    null_respondents: _whole(24) = 36
    sets: _whole(2) = 40

    @model_validator(mode="after")
    def _items_have_prompts(self) -> _Validity:
        for item in range(len(load_questionnaire(self.questionnaire).items)):
            _check_template(self.questionnaire, item + 1)
        return self


class _Interventions(_Scored):
    """Chapter 5."""

    models: _whole(1) = 7
    live: _whole(0) = 1
    arms: Text = "neutral"
    epochs: _whole(1) = 20
    measure_at: Text = "all"
    lr: Positive = 2e-5
    masked_lm: Text = "embedded"
    talk: Text = "shipped"

    @model_validator(mode="after")
    def _live_are_some_of_them(self) -> _Interventions:
        if self.live > self.models:
            raise ParameterError(f"live must be a whole number from 0 to models, got {self.live}.")
        return self

    @model_validator(mode="after")
    def _talk_is_there(self) -> _Interventions:
        if self.talk != "shipped" and not (Path(self.talk) / "interventions_talk.csv").is_file():
            raise ParameterError(f"{self.talk} has no interventions_talk.csv: name its folder.")
        return self


class _Items(_Chapter):
    """Chapter 6."""

    category: _one_of(*diagnostic.CATEGORIES) = "MN"
    respondents: Text = "committed"
    draws: _whole(100) = 10_000
    restarts: _whole(1) = 100
    subset_draws: _whole(1) = 40

    @model_validator(mode="after")
    def _respondents_are_there(self) -> _Items:
        if self.respondents != "committed":
            _respondents(self.respondents)
        return self


class _Rasch(_Chapter):
    """Chapter 7."""

    category: _one_of(*diagnostic.CATEGORIES) = "MN"
    simulations: _whole(20) = 400


class _Beliefs(_Chapter):
    """Chapter 8."""

    scoring: _one_of("published", "words", "lexicon", "sifted", "unnamed") = "unnamed"
    text: _one_of("auto", "fetch", "none") = "auto"
    models: Text | None = None
    kind: _one_of("auto", *KINDS) = "auto"
    live_templates: Text = "own"
    live_lexicon: Text = "auto"
    group: Text = "gender"
    k: _whole(1) = 20
    n_resamples: _whole(1) = 2000

    @model_validator(mode="after")
    def _files_are_there(self) -> _Beliefs:
        columns = completions.templates(self.live_templates).columns.drop("template")
        if self.group not in columns:
            raise ParameterError(
                f"group must be a column of the templates ({', '.join(columns)}), got "
                f"'{self.group}'."
            )
        if self.live_lexicon != "auto":
            completions.lexicon(self.live_lexicon)
        for name in model_names(self.models) if self.models else ():
            require(name)
        return self


class _SelfReport(_Chapter):
    """Chapter 9."""

    respondent: Text | None = None
    choose: _one_of("draw", "argmax", "expected") = "draw"
    baseline: Text = "none"
    wording: _one_of("auto", "none") = "auto"
    runs: _whole(2) = 10
    level: Share = 0.01
    correction: _one_of("holm", "fdr_bh", "bonferroni", "none") = "holm"

    @model_validator(mode="after")
    def _respondent_is_there(self) -> _SelfReport:
        if self.respondent:
            identify(self.respondent, "options")
        return self


class _ResponseStyles(_SelfReport):
    """Chapter 10."""

    population: Text | None = None
    members: _whole(2) = 5

    @model_validator(mode="after")
    def _population_is_there(self) -> _ResponseStyles:
        names = population(self.population)[: self.members] if self.population else None
        for name in names or ():
            identify(name)
        if names is not None and len(names) < 2:
            raise ParameterError(
                "population must name at least two respondents: one has no variance among "
                "respondents."
            )
        return self


class _WaysOfAsking(_Chapter):
    """Chapter 11."""

    questionnaire: QuestionnaireName | None = None
    compass: QuestionnaireName | None = None
    respondents: Respondents | None = None
    members: _whole(1) = 6
    chat_model: Text | None = None
    language_model: Text | None = None
    labels: _one_of(*LABELS) = "alphabetical"
    role: Text = "default"
    wording: Text = "v1"
    people: _whole(4) = 200
    runs: _whole(2) = 10

    @model_validator(mode="after")
    def _parts_fit(self) -> _WaysOfAsking:
        if self.questionnaire:
            questionnaire = load_questionnaire(self.questionnaire)
            if not any(scale.reverse for scale in questionnaire.scales):
                raise ParameterError(
                    f"{questionnaire.id} has no reverse-keyed items, without which agreeing cannot "
                    "be told from a trait: name another questionnaire."
                )
            messages(questionnaire, questionnaire.items[:1], self.role, self.wording)
        if self.compass and len(load_questionnaire(self.compass).categories) != 2:
            raise ParameterError(f"compass must have two categories, and {self.compass} has not.")
        if self.chat_model not in (None, "simulated"):
            identify(self.chat_model, "chat")
        if self.language_model:
            require(self.language_model)
        return self


class _Published(_Page):
    """Chapter 12."""

    draws: _whole(20) = 200
    seed: _whole(0) = 1


class _Scorecard(_Page):
    """The scorecard and the finding."""

    executed: Text = "book"


class _Benchmarks(_Page):
    """The appendix of benchmarks."""

    measure: bool = False
    parts: Text = "all"
    models: Text = "all"
    repetitions: _whole(1) = 5
    qlatent: Text = "auto"
    largest: _whole(1000) = 100_000
    output: Text = "runs/benchmarks.csv"


CHAPTERS: dict[str, type[_Page]] = {
    "01-first-score": _FirstScore,
    "02-prompt-design": _PromptDesign,
    "03-assessment": _Assessment,
    "04-validity": _Validity,
    "05-interventions": _Interventions,
    "06-items": _Items,
    "07-rasch": _Rasch,
    "08-beliefs": _Beliefs,
    "09-self-report": _SelfReport,
    "10-response-styles": _ResponseStyles,
    "11-ways-of-asking": _WaysOfAsking,
    "12-published-answers": _Published,
    "14-scorecard": _Scorecard,
    "13-finding": _Scorecard,
    "benchmarks": _Benchmarks,
}
"""The model of each notebook's parameters, by its name."""
