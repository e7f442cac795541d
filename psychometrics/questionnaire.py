"""Instruments: what a questionnaire file holds, and how one is read and checked."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from .exceptions import QuestionnaireError
from .paths import questionnaires_dir

PLACEHOLDERS = ("term", "intensifier")

Text = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[Text, ...], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Level(_Part):
    """A level of the Likert scale: interchangeable intensifiers and their common weight."""

    weight: float
    terms: Words


class Terms(_Part):
    """Construct terms: ``source`` (S+) keep the item's stance, ``inverse`` (S−) turn it round."""

    source: Words
    inverse: Words

    @model_validator(mode="after")
    def _each_once(self) -> Terms:
        repeated = _repeated([*self.source, *self.inverse])
        if repeated:
            raise ValueError(f"{_listed(repeated)} occurs more than once: keep one of them")
        return self


class Template(_Part):
    """A premise and a hypothesis with one gap for a term and one for an intensifier."""

    premise: Text
    hypothesis: Text
    terms: Terms | None = None

    @field_validator("premise", "hypothesis")
    @classmethod
    def _placeholders_known(cls, text: str) -> str:
        unknown = [name for name in re.findall(r"{([^{}]*)}", text) if name not in PLACEHOLDERS]
        if unknown:
            raise ValueError(
                f"unknown placeholder {{{unknown[0]}}}: templates know {{term}} and {{intensifier}}"
            )
        if set("{}") & set(re.sub(r"{[^{}]*}", "", text)):
            raise ValueError("has a brace without its partner: write {term} or {intensifier}")
        return text

    @model_validator(mode="after")
    def _placeholders_once(self) -> Template:
        for name in PLACEHOLDERS:
            times = (self.premise + self.hypothesis).count(f"{{{name}}}")
            if times != 1:
                raise ValueError(
                    f"premise and hypothesis together need {{{name}}} exactly once, "
                    f"they have it {times} times"
                )
        return self


class Option(_Part):
    """A response option as people see it, with the value that scores it."""

    value: float
    label: Text


class Scale(_Part):
    """What items add up to: all of them, or those listed; a subscale names its parent."""

    id: Text
    title: Text
    items: Literal["all"] | Words
    parent: str | None = None


class Norm(_Part):
    """Mean and standard deviation of a scale in a group of people, with the source."""

    scale: Text
    group: Text
    n: Annotated[int, Field(gt=0)]
    mean: float
    sd: Annotated[float, Field(gt=0)]
    citation: Text


class Item(_Part):
    """One question: its text, its key and, where it is put to NLI models, terms and templates."""

    id: Text
    text: Text
    keying: Literal[1, -1] = 1
    terms: Terms | None = None
    templates: tuple[Template, ...] = ()
    intensifiers: Annotated[tuple[Level, ...], Field(min_length=2)] | None = None


class Questionnaire(_Part):
    """An instrument: items, scales, intensifiers, response options, norms, source and terms."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    title: Text
    short_title: Text
    measures: Text
    language: Text
    citation: Text
    source: Text
    licence: Text
    wording: Literal["verbatim", "paraphrase", "upstream"]
    instructions: str | None = None
    response: tuple[Option, ...] = ()
    intensifiers: Annotated[tuple[Level, ...], Field(min_length=2)] | None = None
    scales: Annotated[tuple[Scale, ...], Field(min_length=1)]
    norms: tuple[Norm, ...] = ()
    items: Annotated[tuple[Item, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _parts_fit(self) -> Questionnaire:
        mistakes = _mistakes(self)
        if mistakes:
            raise ValueError("\n".join(mistakes))
        return self

    def levels(self, item: Item) -> tuple[Level, ...]:
        """Levels of intensifiers that an item is asked with: its own, or the questionnaire's."""
        return item.intensifiers or self.intensifiers or ()

    def members(self, scale: Scale) -> list[Item]:
        """Items of a scale, in the questionnaire's order."""
        return [item for item in self.items if scale.items == "all" or item.id in scale.items]


def load_questionnaire(name_or_path: str | Path) -> Questionnaire:
    """Read and check an instrument.

    Parameters
    ----------
    name_or_path : str or Path
        One of :func:`questionnaire_names`, or the path of a YAML file.

    Returns
    -------
    Questionnaire
        Frozen; every part of it is checked.

    Raises
    ------
    QuestionnaireError
        The file is missing or malformed. The message has one line per mistake, each naming the
        file, the item and the mend.

    Examples
    --------
    >>> load_questionnaire("gad7").measures
    'anxiety'
    """
    path = _find(name_or_path)
    place = _shown(path)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise QuestionnaireError(f"{place}{where}: not valid YAML ({error.problem}).") from None
    except UnicodeDecodeError:
        raise QuestionnaireError(f"{place}: not a text file; save it as UTF-8.") from None
    if not isinstance(content, dict):
        raise QuestionnaireError(f"{place}: holds no questionnaire; start it with `id: ...`.")
    try:
        questionnaire = Questionnaire.model_validate(content)
    except ValidationError as error:
        lines = [line for mistake in error.errors() for line in _told(mistake, content)]
        raise QuestionnaireError("\n".join(f"{place}, {line}" for line in lines)) from None
    if questionnaire.id != path.stem:
        raise QuestionnaireError(
            f"{place}, id: '{questionnaire.id}' must be the file's name without its ending; "
            f"rename one of the two."
        )
    return questionnaire


def questionnaire_names() -> list[str]:
    """Names of the instruments that come with the project."""
    return sorted(path.stem for path in questionnaires_dir().glob("*.yaml"))


def counts(questionnaire: Questionnaire) -> pd.DataFrame:
    """Templates, terms, intensifiers and prompts of each item.

    Parameters
    ----------
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame
        Indexed by ``item_id``: ``templates``; ``source`` and ``inverse``, terms per template (a
        mean, where an item's templates have terms of their own); ``intensifiers``; ``prompts``.

    Examples
    --------
    >>> counts(load_questionnaire("gad7"))["intensifiers"].unique()
    array([8])
    """
    rows = []
    for item in questionnaire.items:
        terms = [template.terms or item.terms for template in item.templates]
        intensifiers = sum(len(level.terms) for level in questionnaire.levels(item))
        sizes = [(len(t.source), len(t.inverse)) for t in terms if t]
        rows.append(
            {
                "item_id": item.id,
                "templates": len(terms),
                "source": sum(s for s, _ in sizes) / max(len(sizes), 1),
                "inverse": sum(i for _, i in sizes) / max(len(sizes), 1),
                "intensifiers": intensifiers,
                "prompts": sum(s + i for s, i in sizes) * intensifiers,
            }
        )
    return pd.DataFrame(rows).set_index("item_id")


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, which also refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key}' is given twice: keep one", key_node.start_mark
                )
            if isinstance(key, str):
                seen.add(key)
        return super().construct_mapping(node, deep)


def _find(name_or_path: str | Path) -> Path:
    shipped = questionnaires_dir() / f"{name_or_path}.yaml"
    if isinstance(name_or_path, str) and "/" not in name_or_path and shipped.is_file():
        return shipped
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return path
    names = questionnaire_names()
    near = difflib.get_close_matches(str(name_or_path), names, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    raise QuestionnaireError(
        f"No questionnaire '{name_or_path}'{hint}: "
        f"give one of {', '.join(names)}, or the path of a YAML file."
    )


def _shown(path: Path) -> str:
    """The path as a reader would write it."""
    for base in (Path.cwd(), questionnaires_dir().parent):
        if path.resolve().is_relative_to(base):
            return path.resolve().relative_to(base).as_posix()
    return str(path)


def _mistakes(questionnaire: Questionnaire) -> list[str]:
    """What each part on its own cannot see."""
    found = []
    ids = [item.id for item in questionnaire.items]
    for repeated in _repeated(ids):
        found.append(f"items: the id '{repeated}' occurs more than once; rename one")
    found += _level_mistakes("intensifiers", questionnaire.intensifiers or ())
    for number, item in enumerate(questionnaire.items, start=1):
        place = f"item {number} ({item.id})"
        levels = questionnaire.levels(item)
        if item.templates and not levels:
            found.append(f"{place}: has templates, but there are no intensifiers; add them")
        found += _level_mistakes(place, item.intensifiers or ())
        for at, template in enumerate(item.templates, start=1):
            if not (template.terms or item.terms):
                found.append(
                    f"{place}, template {at}: has no terms; give the item source and inverse terms"
                )
    scale_ids = [scale.id for scale in questionnaire.scales]
    for repeated in _repeated(scale_ids):
        found.append(f"scales: the id '{repeated}' occurs more than once; rename one")
    for scale in questionnaire.scales:
        if scale.parent is not None and scale.parent not in scale_ids:
            found.append(f"scale {scale.id}: its parent '{scale.parent}' is no scale; correct it")
        if scale.items != "all":
            for missing in [name for name in scale.items if name not in ids]:
                found.append(f"scale {scale.id}: there is no item '{missing}'; correct it")
            for repeated in _repeated(scale.items):
                found.append(f"scale {scale.id}: item '{repeated}' is listed twice; keep one")
    for norm in questionnaire.norms:
        if norm.scale not in scale_ids:
            found.append(f"norms: there is no scale '{norm.scale}'; correct it")
    return found


def _level_mistakes(place: str, levels: tuple[Level, ...]) -> list[str]:
    words = [word for level in levels for word in level.terms]
    found = [f"{place}: '{word}' is in two places; keep one" for word in _repeated(words)]
    weights = [level.weight for level in levels]
    if weights != sorted(set(weights)):
        found.append(f"{place}: the weights must rise from level to level, got {weights}")
    return found


def _told(mistake: dict, content: dict) -> list[str]:
    """A pydantic mistake as lines that name the place and the mend."""
    place = _place(mistake["loc"], content)
    if mistake["type"] == "missing":
        return [f"{place}: is missing; add it."]
    if mistake["type"] == "extra_forbidden":
        return [f"{place}: is not a known key; remove or rename it."]
    if mistake["type"] == "value_error":
        lines = str(mistake["ctx"]["error"]).split("\n")
        return [f"{place}: {line}." if place else f"{line}." for line in lines]
    got = mistake["input"]
    said = mistake["msg"][0].lower() + mistake["msg"][1:]
    shown = f", got {got!r}" if isinstance(got, str | int | float | bool | None) else ""
    hint = "; put it in quotes" if mistake["type"] == "string_type" and shown else ""
    return [f"{place}: {said}{shown}{hint}."]


def _place(location: tuple, content: dict) -> str:
    """``("items", 2, "templates", 0, "premise")`` as *item 3 (phq9_3), template 1, premise*."""
    words, position, here = [], 0, content
    while position < len(location):
        key = location[position]
        following = location[position + 1] if position + 1 < len(location) else None
        here = here.get(key) if isinstance(here, dict) else None
        if isinstance(following, int) and isinstance(here, list):
            here = here[following]
            name = here.get("id") if isinstance(here, dict) else None
            words.append(
                f"{str(key).removesuffix('s')} {following + 1}" + (f" ({name})" * bool(name))
            )
            position += 2
        else:
            # pydantic names the branch of a union it tried; a reader has no use for it.
            if not str(key).startswith(("tuple[", "literal[", "constrained", "function-")):
                words.append(str(key))
            position += 1
    return ", ".join(words)


def _repeated(names: list[str] | tuple[str, ...]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
