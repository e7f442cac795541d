"""A study's file: define its permitted content, read it, and list its mistakes."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from psychometrics.asking.population import population
from psychometrics.endpoints.secrets import refuse_secrets
from psychometrics.exceptions import ParameterError, PsychometricsError, QuestionnaireError
from psychometrics.measures.intervals import mean_interval
from psychometrics.modes import identify, mode_named
from psychometrics.questionnaires import Questionnaire, Scale, load_questionnaire
from psychometrics.questionnaires.checking import parse_part
from psychometrics.questionnaires.model import Part
from psychometrics.questionnaires.readers import read

from .crossed_samples import interval_over_ways

_Value = str | float | int | bool | None


def _each_once(values: list | tuple) -> list | tuple:
    if len(set(map(repr, values))) < len(values):
        raise ValueError("lists a value twice: keep one")
    return values


def _day(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("must be a day such as 2026-11-23") from None


_Names = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_each_once)]
_Seed = Annotated[int, Field(strict=True, ge=0)]
# The mode of a study whose answers are read from a table.
_FILE = "file"
# Number of simulated studies from which power is computed.
_STUDIES = 2000
_ANALYSES = ("scores", "expectations", "effects", "reliability", "evidence")


class _Expectation(Part):
    says: Annotated[str, Field(pattern=r"\S")]
    questionnaire: str
    scale: str | None = None
    of: dict[str, _Value]
    than: dict[str, _Value]
    expect: Literal["higher", "lower", "different"]

    def scale_in(self, questionnaire: Questionnaire) -> Scale:
        """Return the scale to compare, by default the questionnaire's first scale."""
        return questionnaire.scale(self.scale) if self.scale else questionnaire.scales[0]


class _Planned(Part):
    date: Annotated[str, AfterValidator(_day)]
    expectations: tuple[_Expectation, ...] = ()
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    correction: Literal["none", "holm", "fdr_bh"] = "none"
    smallest_effect: Annotated[float, Field(gt=0)] | None = None
    spread: Annotated[float, Field(gt=0)] = 1.0
    spread_of_respondents: Annotated[float, Field(ge=0)] | None = None
    spread_of_ways: Annotated[float, Field(ge=0)] = 0.0
    exclusions: str = ""
    stopping: str = ""


class Study(Part):
    """The content of a study's file."""

    title: str
    question: str
    questionnaires: _Names
    respondents: _Names
    planned: _Planned = _Planned.model_construct(date="")
    mode: str = "nli"
    conditions: dict[
        str, Annotated[list[_Value], Field(min_length=1), AfterValidator(_each_once)]
    ] = Field({})
    seeds: Annotated[tuple[_Seed, ...], Field(min_length=1), AfterValidator(_each_once)] = (0,)
    analyses: Annotated[tuple[Literal[_ANALYSES], ...], Field(min_length=1)] = _ANALYSES

    @property
    def is_exploratory(self) -> bool:
        """Whether the file has no plan, so that the study tests nothing."""
        return not self.planned.date

    @property
    def reads_answers(self) -> bool:
        """Whether the answers are read from a table, so that no respondent is asked."""
        return self.mode == _FILE

    @property
    def combinations(self) -> list[dict[str, _Value]]:
        """All combinations of the conditions, without seeds, in order."""
        values = itertools.product(*self.conditions.values())
        return [dict(zip(self.conditions, chosen, strict=True)) for chosen in values]

    def load_questionnaires(self, folder: Path) -> list[Questionnaire]:
        """Load the questionnaires; files are looked up in the study's folder."""
        return [load_beside(name, folder) for name in self.questionnaires]

    def list_respondents(self, folder: Path, with_members: bool = True) -> list[str]:
        """List the names of the respondents, including those in the folder's population files."""
        takes_populations = not self.reads_answers and mode_named(self.mode).takes_populations
        names = []
        for name in self.respondents:
            if name.endswith((".yaml", ".yml")):
                members = population(folder / name)
                names += members if with_members else []
            else:
                names += population(name) if takes_populations else [name]

        return list(dict.fromkeys(names))

    def power(self, folder: Path) -> list[float]:
        """Simulate the power of each expectation for the smallest effect of interest.

        Parameters
        ----------
        folder : Path
            Folder of the study's file.

        Returns
        -------
        list of float
            Shares of 2,000 simulated studies whose interval, computed as in the report, excludes
            zero on the expected side; empty if the plan does not name a smallest effect, or has
            several respondents and no ``spread_of_respondents``. Differences of a scale's items are
            normally distributed around the smallest effect with the plan's ``spread``. Each
            respondent shifts all items by a normal draw with the ``spread_of_respondents`` and, if
            other conditions have several levels, each level by one with the ``spread_of_ways``.
            Corrected p values are not simulated.
        """
        if self.planned.smallest_effect is None or self.lacks_spread(folder):
            return []

        respondents = len(self.list_respondents(folder))
        questionnaires = {q.id: q for q in self.load_questionnaires(folder)}
        scales = [e.scale_in(questionnaires[e.questionnaire]) for e in self.planned.expectations]
        pairs = zip(self.planned.expectations, scales, strict=True)
        return [self._power_of(e, respondents, len(scale.items)) for e, scale in pairs]

    def lacks_spread(self, folder: Path) -> bool:
        """Return whether power needs the ``spread_of_respondents`` and the plan lacks it."""
        planned = self.planned
        without = planned.smallest_effect is not None and planned.spread_of_respondents is None
        return without and len(self.list_respondents(folder)) > 1

    def _power_of(self, expectation: _Expectation, respondents: int, items: int) -> float:
        """Return the power of one expectation; each row of ``ways`` has one way's levels."""
        if items < 2:  # the report does not test it
            return 0.0

        compared = {*expectation.of, *expectation.than}
        levels = [len(values) for name, values in self.conditions.items() if name not in compared]
        ways = np.array(list(np.ndindex(*[number for number in levels if number > 1])))
        rng = np.random.default_rng(0)
        planned = self.planned
        lows = []

        for _ in range(_STUDIES):
            values = rng.normal(planned.smallest_effect, planned.spread, (1, 1, items))
            if respondents > 1:
                spread = planned.spread_of_respondents
                values = values + rng.normal(0, spread, (respondents, 1, 1))

            for levels_of_condition in ways.T:
                shifts = rng.normal(0, planned.spread_of_ways, levels_of_condition.max() + 1)
                values = values + shifts[levels_of_condition, None]

            if values.size == items:
                lows.append(mean_interval(values[0, 0])[0])
            else:
                lows.append(interval_over_ways(values, ways)["low"])

        return float((np.array(lows) > 0).mean())


def load_study(path: str | Path, was_run: bool = False) -> Study:
    """Read and check a study's file, without asking any respondent.

    Parameters
    ----------
    path : str or Path
        YAML: ``title``; ``question``; unless the study is exploratory, ``planned`` with a ``date``
        and ``expectations``, each of which ``says`` in words that the scores of a ``questionnaire``
        (and ``scale``) under the conditions ``of`` are ``higher``, ``lower`` or ``different``
        (``expect``) ``than`` under others, and optionally ``alpha`` (0.05) and a ``correction`` of
        the expectations' p values (none, holm, fdr_bh), the ``smallest_effect`` of interest in
        points of an item and the ``spread`` of the items' differences (1) for its power, the
        ``spread_of_respondents``, by how much models differ in the effect (required for the power
        of several respondents), the ``spread_of_ways`` (0), by how much a wording or a different
        way of asking shifts all items, and in words ``exclusions`` and the ``stopping`` rule;
        ``questionnaires`` and ``respondents``, as in the commands; ``mode``, or ``file`` to read
        answers from a table; ``conditions``, each with a list of values, asked in all combinations;
        ``seeds``; ``analyses``, a selection of scores, expectations, effects, reliability and
        evidence.
    was_run : bool
        Whether to refuse a study that was not run.

    Returns
    -------
    Study
        The study, with these parts as attributes, and the ``combinations`` of the conditions.

    Raises
    ------
    ParameterError
        The file cannot be read, or refers to unknown parts. The message lists every mistake in the
        form of the file or, once there is none, in what its parts refer to.

    Examples
    --------
    >>> load_study("nowhere.yaml")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml: cannot be read (No such \
file or directory); name a readable file.
    """
    path = Path(path)

    try:
        content = read(path, str(path))
    except QuestionnaireError as error:
        raise ParameterError(str(error)) from None

    if isinstance(content, dict) and isinstance(content.get("planned"), dict):
        content["planned"]["date"] = str(content["planned"].get("date", ""))

    try:
        study = parse_part(content, str(path), Study)
    except QuestionnaireError as error:
        raise ParameterError(str(error)) from None

    mistakes = list(dict.fromkeys(_mistakes(study, path.parent)))
    if mistakes:
        raise ParameterError("\n".join(f"{path}, {mistake}" for mistake in mistakes))
    if was_run and not _record_path(path).is_file():
        raise ParameterError(f"{path} was not run: psychometrics study run {path}")

    return study


def study_schema() -> dict:
    """Return the JSON Schema of a study's file, by which editors complete and check it.

    Returns
    -------
    dict
        A schema in draft 2020-12; the book's copy is ``book/_static/study.schema.json``.

    Examples
    --------
    >>> study_schema()["required"]
    ['title', 'question', 'questionnaires', 'respondents']
    """
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Study.model_json_schema()


def load_beside(name: str, folder: Path) -> Questionnaire:
    """Load a study's questionnaire: a file in the study's folder, or a name.

    Examples
    --------
    >>> load_beside("gad7", Path()).short_title
    'GAD-7'
    """
    beside = folder / name
    return load_questionnaire(beside if beside.is_file() else name)


def _record_path(path: str | Path) -> Path:
    """Return the path of the record of a study's runs."""
    return Path(path).with_suffix("") / "record.json"


def _mistakes(study: Study, folder: Path) -> list[str]:
    """Return what a study's file refers to and does not exist, one sentence for each mistake."""
    mistakes = []

    def tried(place: str, call: Callable) -> object:
        try:
            return call()
        except PsychometricsError as error:
            mistakes.extend(f"{place}: {line}" for line in str(error).splitlines())

    questionnaires = {}
    for name in study.questionnaires:
        questionnaire = tried("questionnaires", partial(load_beside, name, folder))
        if questionnaire is not None:
            questionnaires[questionnaire.id] = questionnaire

    mistakes += _mistakes_of_asking(study, folder, tried)

    for number, expected in enumerate(study.planned.expectations, start=1):
        place = f"planned, expectation {number}"
        questionnaire = questionnaires.get(expected.questionnaire)
        if questionnaire is not None and expected.scale:
            tried(place, partial(questionnaire.scale, expected.scale))
        elif questionnaire is None and len(questionnaires) == len(study.questionnaires):
            mistakes.append(f"{place}: {expected.questionnaire} is not among the questionnaires.")

        for name, value in (*expected.of.items(), *expected.than.items()):
            if value not in study.conditions.get(name, ()):
                mistakes.append(f"{place}: {name}={value} is not among the conditions; add it.")

        if expected.of == expected.than:
            mistakes.append(f"{place}: 'of' and 'than' are the same; change one.")

    return mistakes


def _mistakes_of_asking(study: Study, folder: Path, tried: Callable) -> list[str]:
    """Return mistakes in seeds; ``tried`` records mistakes in conditions and respondents."""
    has_seeds = study.seeds != (0,)
    if study.reads_answers and has_seeds:
        return ["seeds: the runs are in the table of answers; leave seeds out."]
    if study.reads_answers:
        return []

    def complete(chosen: dict) -> dict:
        refuse_secrets(chosen)
        return mode_named(study.mode).complete(chosen)

    first, *_ = [tried("conditions", partial(complete, chosen)) for chosen in study.combinations]
    if first is None:
        return []

    # Some respondents in a population's file may fail: the run finds out, and records it.
    names = tried("respondents", partial(study.list_respondents, folder, with_members=False))
    for name in names or []:
        tried("respondents", partial(identify, name, study.mode, **study.combinations[0]))

    if has_seeds and "seed" not in first:
        return [f"seeds: mode {study.mode} does not use them; leave them out."]
    return []
