"""Parameters of the notebooks, and the rules for their values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from psychometrics import modes  # a mode's file, and torch with it, is loaded at its first use
from psychometrics.answers.files import read_answers
from psychometrics.asking.population import population
from psychometrics.checks import check_choice, wrong_kind
from psychometrics.exceptions import ParameterError, PsychometricsError
from psychometrics.measures.scoring import item_scores, keyed_items
from psychometrics.models.sources import find
from psychometrics.modes import identify
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.model import Questionnaire


def check_parameters(notebook: str, values: dict[str, object] | None = None) -> None:
    """Check the parameters of a notebook, from the second line of its set-up cell.

    Parameters
    ----------
    notebook : str
        The notebook's name, such as ``"03-assessment"``.
    values : dict, optional
        Values by name; by default the values of the running notebook. Omitted names are not
        checked.

    Raises
    ------
    ParameterError
        A value is invalid (the message names all such values), or a parameter is unknown.
    QuestionnaireError, RespondentError, DataError
        A questionnaire, a respondent or a file is missing.

    Examples
    --------
    >>> check_parameters("03-assessment", {"score": "entailed"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: score should be 'entailment' or 'contrast', ...
    """
    check_choice(CHAPTERS, notebook=notebook)
    chapter = CHAPTERS[notebook]

    if values is None:
        values = _running_values(chapter)

    for name in values:
        check_choice(chapter.model_fields, parameter=name)

    try:
        chapter(**values).check()
    except ValidationError as error:
        mistakes = []
        for mistake in error.errors():
            reason = mistake.get("ctx", {}).get("error")
            if isinstance(reason, PsychometricsError):
                raise reason from None

            place = ".".join(map(str, mistake["loc"]))
            mistakes.append(str(wrong_kind(place, mistake["msg"], mistake["input"])))

        raise ParameterError("\n".join(mistakes)) from None


def _running_values(chapter: type[BaseModel]) -> dict[str, object]:
    """Return the running notebook's values, and other names that papermill received."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise ParameterError("No notebook is running: give the values.")

    space = shell.user_ns
    injected = [cell for cell in space.get("In", []) if cell.startswith("# Parameters\n")]
    nodes = ast.parse(injected[-1]).body if injected else []
    injected_names = [node.targets[0].id for node in nodes if isinstance(node, ast.Assign)]
    names = [name for name in (*chapter.model_fields, *injected_names) if name in space]

    return {name: space[name] for name in names}


def _passes(check: Callable[[str], object]) -> AfterValidator:
    def checked(value: str) -> str:
        check(value)
        return value

    return AfterValidator(checked)


def _find_table(path: str) -> None:
    if path != "none" and not Path(path).is_file():
        raise ParameterError(f"There is no file {path}; name a table.")


def _identify_all(names: str) -> None:
    for name in population(names):
        identify(name)


def _find_language_models(names: str) -> None:
    modes.completions.model_names(names)


# Greatest number of draws, epochs and the like: more is a mistake, and would never end.
_MOST = 100_000
# Fewest complete sheets for comparing a table with published groups.
_FEWEST_SHEETS = 10
_Whole = Annotated[int, Field(ge=0, lt=2**32)]
_Count = Annotated[int, Field(ge=1, le=_MOST)]
_Text = Annotated[str, Field(pattern=r"\S")]
_Respondents = Annotated[_Text, _passes(_identify_all)]
_Model = Literal["embedded"] | Annotated[_Text, _passes(find)]
_LanguageModel = Annotated[_Text, _passes(_find_language_models)]
_Table = Annotated[_Text, _passes(_find_table)]
_Questionnaire = Annotated[_Text, _passes(partial(load_questionnaire, texts=False))]


CHAPTERS: dict[str, type[BaseModel]] = {}


class _Page(BaseModel):
    """The parameters of the notebooks in `of`; with the defaults, any subset can be checked."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    def __init_subclass__(cls, of: str = "", **options: object) -> None:
        super().__init_subclass__(**options)
        CHAPTERS.update(dict.fromkeys(of.split(), cls))

    def check(self) -> None:
        """Check conditions that involve several parameters."""


class _Chapter(_Page, of="records-11"):
    seed: _Whole = 1


class _Scored(_Chapter):
    respondents: _Respondents | None = None
    score: Literal["entailment", "contrast"] = "entailment"
    temperature: PositiveFloat = 1.0
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


class _Item(_Chapter):
    questionnaire: _Questionnaire = "soc13"
    item: _Count = 1

    def check(self) -> None:
        items = load_questionnaire(self.questionnaire, texts=False).items
        place = f"item: {self.questionnaire}"
        if self.item > len(items):
            raise ParameterError(f"{place} has {len(items)} items, got {self.item}.")
        if not items[self.item - 1].templates:
            raise ParameterError(f"{place} has no template for item {self.item}: name another.")


class _FirstScore(_Item, of="01-first-score"):
    questionnaire: _Questionnaire = "gad7"
    respondent: Annotated[_Text, _passes(identify)] | None = None
    null_respondents: Annotated[int, Field(ge=20, le=_MOST)] = 200


class _PromptDesign(_Item, _Scored, of="02-prompt-design"):
    item: _Count = 3


class _Assessment(_PromptDesign, of="03-assessment"):
    respondent: _Text = "first"

    def check(self) -> None:
        super().check()
        names = ["first", *population(self.respondents or "embedded")]
        check_choice(names, respondent=self.respondent)


class _Evidence(_Scored):
    populations: Annotated[int, Field(ge=2, le=_MOST)] = 200


class _Consistency(_Evidence, of="04-consistency"):
    encoder: _Model = "embedded"
    acceptability_model: _Model = "embedded"


class _Relations(_Evidence, of="05-relations 06-other-explanations records-05"):
    pass


class _Interventions(_Chapter, of="07-interventions"):
    respondents: _Respondents | None = None
    models: _Count = 7
    live: _Whole = 1
    arms: _Text = "neutral"
    epochs: _Count = 20
    measure_at: Annotated[str, Field(pattern=r"^(all|\d+(, *\d+)*)$")] = "all"
    lr: Annotated[float, Field(gt=0, le=1)] = 2e-5
    masked_lm: _Model = "embedded"
    seeds: _Count = 1
    refit: _Whole = 0
    talk: _Text = "shipped"

    def check(self) -> None:
        from .studies.interventions import (
            intervention_texts,  # slow to load, and only for this chapter
        )

        for arm in set(self.arms.split(",")) - {"hate_speech"}:
            intervention_texts(arm)
        times = self.measure_at.replace(" ", "").split(",") if self.measure_at != "all" else []
        if any(not 1 <= int(time) <= self.epochs for time in times):
            raise ParameterError(f"measure_at must be 1 to {self.epochs}, got {self.measure_at}.")
        if self.live > self.models:
            raise ParameterError(f"live must be at most models ({self.models}), got {self.live}.")
        if self.talk != "shipped" and not (Path(self.talk) / "interventions_talk.csv").is_file():
            raise ParameterError(f"{self.talk} has no interventions_talk.csv: name its folder.")


class _Items(_Chapter, of="08-items"):
    respondents: Literal[""] | _Respondents = ""
    draws: Annotated[int, Field(ge=100, le=_MOST)] = 1000


class _Rasch(_Chapter, of="17-rasch"):
    category: Literal["MN", "PP", "LE", "Q", "PS", "RLS", "WK"] = "MN"
    simulations: Annotated[int, Field(ge=20, le=_MOST)] = 400


class _Beliefs(_Chapter, of="09-beliefs"):
    scoring: Literal["published", "words", "lexicon", "sifted", "unnamed"] = "unnamed"
    models: _LanguageModel | None = None
    live_templates: _Text = "own"
    live_lexicon: _Text = "auto"
    group: _Text = "gender"
    k: _Count = 20
    n_resamples: _Count = 2000

    def check(self) -> None:
        table = modes.completions.templates(self.live_templates)
        names = self.group.split(",")
        for name in names:
            check_choice(table.columns.drop("template"), group=name)
        if len(set(names)) < len(names):
            raise ParameterError(f"group: {self.group} names a column twice; keep one.")
        if table.empty:
            raise ParameterError(f"live_templates: {self.live_templates} has no template; add one.")
        if self.live_lexicon != "auto":
            modes.completions.lexicon(self.live_lexicon)


class _SelfReport(_Chapter, of="10-self-report"):
    respondent: Annotated[_Text, _passes(partial(identify, mode="options"))] | None = None
    answers: _Table = "none"
    choose: Literal["draw", "argmax", "expected"] = "draw"
    baseline: _Text = "none"
    wording: Literal["auto", "none"] = "auto"
    runs: Annotated[int, Field(ge=2, le=_MOST)] = 10
    level: Annotated[float, Field(gt=0, lt=1)] = 0.01
    correction: Literal["holm", "fdr_bh", "bonferroni", "none"] = "holm"


class _HighAlpha(_Chapter, of="16-high-alpha"):
    questionnaire: _Questionnaire | None = None
    answers: _Table = "none"
    people: Annotated[int, Field(ge=4, le=_MOST)] = 200

    def check(self) -> None:
        loaded = self.questionnaire and load_questionnaire(self.questionnaire, texts=False)
        if loaded and not any(scale.reverse for scale in loaded.scales):
            raise ParameterError(f"questionnaire: {loaded.id} has no reverse keys; name another.")


class _WaysOfAsking(_HighAlpha, of="11-ways-of-asking"):
    respondents: _Respondents | None = None
    members: Annotated[int, Field(ge=2, le=_MOST)] = 6
    chat_model: (
        Literal["simulated"] | Annotated[_Text, _passes(partial(identify, mode="chat"))] | None
    ) = None
    language_model: _LanguageModel | None = None
    labels: Literal["numeric", "alphabetical"] = "alphabetical"

    def check(self) -> None:
        super().check()
        if self.respondents and len(population(self.respondents)) < 2:
            raise ParameterError("respondents: a single one has no variance; name at least two.")


class _Published(_Chapter, of="12-published-answers"):
    answers: _Table = "none"
    questionnaire: _Questionnaire = "ipip50"
    draws: Annotated[int, Field(ge=20, le=_MOST)] = 200

    def check(self) -> None:
        loaded = load_questionnaire(self.questionnaire, texts=False)
        if not loaded.scales:
            raise ParameterError(f"questionnaire: {loaded.id} has no scales; name another.")
        if self.answers != "none":
            _check_sheets(self.answers, loaded)
        elif loaded.id != "ipip50":
            raise ParameterError("questionnaire: needs a table of answers; name one in answers.")


class _PublishedRecords(_Published, of="records-12"):
    permutations: Annotated[int, Field(ge=99, le=_MOST)] = 5000


class _Executed(_Page, of="13-finding 14-scorecard records-13 records-14"):
    executed: _Text = "book"

    def check(self) -> None:
        if self.executed != "book" and not Path(self.executed).is_dir():
            raise ParameterError(f"executed: there is no folder {self.executed}; name another.")


class _Invariance(_Page, of="15-invariance"):
    pass


class _Audit(_Page, of="audit"):
    table: _Table = "none"


class _Benchmarks(_Page, of="benchmarks"):
    measured: _Text = "data/benchmarks.csv"

    def check(self) -> None:
        if self.measured != "data/benchmarks.csv" and not Path(self.measured).is_file():
            raise ParameterError(f"measured: there is no file {self.measured}; name another.")


class _Sweep(_Page, of="sweep"):
    notebook: _Text = "03-assessment"
    folder: _Text = "runs/03-assessment-sweep"
    varied: list[str] = []


def _check_sheets(path: str, questionnaire: Questionnaire) -> None:
    """Refuse a table with too few complete rows for alphas, factors and shares of bias."""
    items = item_scores(read_answers(path, questionnaire, progress=False))
    scales = [keyed_items(items, questionnaire, scale) for scale in questionnaire.scales]
    complete = len(pd.concat(scales, axis=1).dropna())

    if complete < _FEWEST_SHEETS:
        raise ParameterError(
            f"answers: {path} has {complete} row(s) without a gap and needs {_FEWEST_SHEETS}: the "
            "intervals would be too wide; add respondents or runs."
        )
