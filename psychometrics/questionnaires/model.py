"""The content of a questionnaire, and the rules for its parts.

All parts are in this one file, so that the rules for a part are next to its fields.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from ..exceptions import ParameterError

_PartT = TypeVar("_PartT", "Item", "Scale")
_PLACEHOLDERS = ("term", "intensifier")
_LARGEST = 1e9  # limit of the size of values, weights and scores


def _clean(text: str) -> str:
    for before, sign, after in zip(" " + text, text, text[1:] + " ", strict=False):
        # Persian, Hindi and emoji need the two joiners; between other letters they only hide.
        joins = sign in "\u200c\u200d" and not before.isascii() and not after.isascii()
        hidden = unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign != "\n"
        is_noncharacter = (ord(sign) & 0xFFFE) == 0xFFFE
        if (hidden and not joins) or is_noncharacter:
            raise ValueError(f"contains the invisible character U+{ord(sign):04X}: remove it")

    # Styled tables of a notebook do not escape text.
    tag = re.search(r"<[a-zA-Z/!?]", text)
    if tag:
        raise ValueError(f"has a text like an HTML tag ('{tag[0]}'): put a space after '<'")

    return text


def _one_line(text: str) -> str:
    if "\n" in text:
        raise ValueError("contains a line break: write it on one line")
    return text


def _without_gaps(text: str) -> str:
    if set("{}") & set(text):
        raise ValueError("contains a brace: only premise and hypothesis have gaps")
    return text


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if not abs(value) <= _LARGEST:  # NaN too
        raise ValueError(f"must be a finite number of at most {_LARGEST:g}")
    return float(value)


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = repeated(names)
    if twice:
        raise ValueError("\n".join(f"'{name}' occurs twice; keep one" for name in twice))
    return names


def _unique(field: str) -> AfterValidator:
    """Refuse a list of parts in which two agree in a field."""

    def check(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        _each_once(tuple(f"{field} {getattr(entry, field)}" for entry in parts))
        return parts

    return AfterValidator(check)


_Text = Annotated[str, Field(min_length=1), AfterValidator(_clean), AfterValidator(_one_line)]
_Paragraph = Annotated[str, Field(min_length=1), AfterValidator(_clean)]
_Word = Annotated[_Text, AfterValidator(_without_gaps)]
_Words = Annotated[tuple[_Word, ...], Field(min_length=1)]
_Names = Annotated[tuple[_Text, ...], AfterValidator(_each_once)]
_Number = Annotated[float, BeforeValidator(_number)]
_Size = Annotated[int, Field(strict=True, gt=0, le=_LARGEST)]
_Title = Annotated[_Text, Field(max_length=300)]
_Language = Annotated[_Text, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
_ItemId = Annotated[_Text, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=100)]
_Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=100)]


_IDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_ALL_OR_IDS = {"anyOf": [{"const": "all"}, _IDS]}


class Part(BaseModel):
    """A part of a questionnaire, which is immutable and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _Level(Part):
    """A level of the scale of intensifiers: interchangeable words with a common weight."""

    weight: _Number
    terms: _Words


def _check_levels(levels: tuple[_Level, ...]) -> tuple[_Level, ...]:
    _each_once(tuple(word for level in levels for word in level.terms))
    weights = [level.weight for level in levels]
    if weights != sorted(set(weights)):
        raise ValueError(f"the weights must rise from level to level, got {weights}")
    return levels


_Levels = Annotated[tuple[_Level, ...], Field(min_length=2), AfterValidator(_check_levels)]


class _Terms(Part):
    """Construct terms: ``source`` (S+) keep an item's stance, and ``inverse`` (S−) reverse it."""

    source: _Words
    inverse: _Words

    @model_validator(mode="after")
    def _check_terms(self) -> _Terms:
        _each_once(self.source + self.inverse)
        return self


class _Template(Part):
    """A premise and a hypothesis, with a gap for a term and a gap for an intensifier."""

    premise: _Text
    hypothesis: _Text
    terms: _Terms | None = None

    @model_validator(mode="after")
    def _check_sentences(self) -> _Template:
        _check_gaps(self.premise + self.hypothesis)
        return self


def _check_gaps(sentences: str) -> None:
    """Refuse a premise and a hypothesis without exactly one gap for each placeholder."""
    gaps = re.findall(r"{([^{}]*)}", sentences)
    unknown = set(gaps) - set(_PLACEHOLDERS)
    if unknown:
        raise ValueError(
            f"unknown placeholder {{{min(unknown)}}}: the gaps are {{term}} and {{intensifier}}"
        )

    if set("{}") & set(re.sub(r"{[^{}]*}", "", sentences)):
        raise ValueError("has a brace without its partner: write {term} or {intensifier}")

    for name in _PLACEHOLDERS:
        times = gaps.count(name)
        if times != 1:
            raise ValueError(f"needs {{{name}}} once in its two sentences, not {times} times")


class _Candidates(Part):
    """Alternatives to one of an item's templates or to its terms, to be compared.

    ``premises`` and ``hypotheses`` replace the parts of the template with the given number (the
    first by default); ``source`` and ``inverse`` terms are added to the item's own terms.
    """

    template: Annotated[int, Field(strict=True, ge=1)] = 1
    premises: tuple[_Text, ...] = ()
    hypotheses: tuple[_Text, ...] = ()
    source: tuple[_Word, ...] = ()
    inverse: tuple[_Word, ...] = ()


class Option(Part):
    """A response option as people see it, with the value that it adds to a score."""

    value: _Number
    label: _Text


_Options = Annotated[tuple[Option, ...], _unique("label"), _unique("value")]


class Scale(Part):
    """Items that are added up or averaged, after the items in ``reverse`` are reversed.

    In a file, ``items: all`` means every item; a subscale names its parent.
    """

    id: _Text
    title: _Text
    items: Annotated[_Names, Field(min_length=1), WithJsonSchema(_ALL_OR_IDS)]
    reverse: _Names = ()
    mode: Literal["mean", "sum"] = "mean"
    parent: str | None = None


class _Norm(Part):
    """The mean and standard deviation of a scale in a group of people, with the source."""

    scale: _Text
    group: _Text
    n: _Size
    mean: _Number
    sd: Annotated[_Number, Field(gt=0)]
    citation: _Text


class _Prompt(Part):
    """A prompt to send word for word; see :func:`psychometrics.modes.messages.messages`.

    The ``template`` has ``{statements}``, or ``{question}`` and ``{choices}`` for one item, whose
    choices have ``labels`` and the ``delimiter`` before them. Unless the prompt is ``usual``, it is
    sent only for ``wording="file"``.
    """

    model_config = ConfigDict(str_strip_whitespace=False)  # blanks at its end are sent, too

    template: Annotated[str, AfterValidator(_clean), Field(pattern=r"\{(statements|question)\}")]
    labels: Literal["numeric", "alphabetical", "lowercase"] = "numeric"
    delimiter: Annotated[str, Field(max_length=20), AfterValidator(_clean)] = ". "
    usual: bool = True


class Item(Part):
    """One question, its key, and the parts that the ways of asking need.

    The parts are ``terms``, ``templates`` and ``intensifiers`` for NLI prompts, and ``candidates``
    for better prompts; ``options`` that differ from the questionnaire's; ``weights``, each option's
    contribution to each category; ``paraphrases`` and ``negated``, rewordings and a denial of the
    text, for :func:`~psychometrics.questionnaires.perturbations.perturbed`.
    """

    id: _ItemId
    text: _Paragraph
    keying: Literal[1, -1] = 1
    terms: _Terms | None = None
    templates: tuple[_Template, ...] = ()
    candidates: tuple[_Candidates, ...] = ()
    intensifiers: _Levels | None = None
    options: Annotated[_Options, Field(min_length=2)] | None = None
    weights: tuple[tuple[_Number, ...], ...] | None = None
    paraphrases: tuple[_Paragraph, ...] = ()
    negated: _Paragraph | None = None

    @model_validator(mode="after")
    def _check_templates(self) -> Item:
        for number, template in enumerate(self.templates, start=1):
            if not (template.terms or self.terms):
                raise ValueError(f"template {number} has no terms; add source and inverse terms")
            if template in self.templates[: number - 1]:
                raise ValueError(f"template {number} occurs twice; keep one")

        for number, candidate in enumerate(self.candidates, start=1):
            try:
                self._check_candidate(candidate)
            except ValueError as error:
                raise ValueError(f"in candidate {number}, {error}") from None

        return self

    def _check_candidate(self, candidate: _Candidates) -> None:
        if candidate.template > len(self.templates):
            raise ValueError(f"there is no template {candidate.template}; correct the number")

        template = self.templates[candidate.template - 1]
        terms = template.terms or self.terms
        words = (*terms.source, *terms.inverse) if terms else ()
        _each_once((*words, *candidate.source, *candidate.inverse))
        for premise in candidate.premises:
            _check_gaps(premise + template.hypothesis)
        for hypothesis in candidate.hypotheses:
            _check_gaps(template.premise + hypothesis)


class Questionnaire(Part):
    """Items, response options, scales or categories, NLI templates, norms, source and terms."""

    id: _Identifier
    title: _Title
    short_title: _Title
    measures: _Text
    language: _Language = "en"
    citation: _Text
    source: _Text
    licence: _Text
    wording: Literal["verbatim", "paraphrase", "upstream"] = "verbatim"
    instructions: _Paragraph | None = None
    system: _Paragraph | None = None
    prompt: _Prompt | None = None
    stem: _Text | None = None
    options: _Options = Field(default=(), validation_alias=AliasChoices("options", "response"))
    intensifiers: _Levels | None = None
    candidates: tuple[_Levels, ...] = ()
    scales: Annotated[tuple[Scale, ...], _unique("id")] = ()
    norms: tuple[_Norm, ...] = ()
    categories: _Names = ()
    bias: tuple[_Number, ...] = ()
    items: Annotated[tuple[Item, ...], Field(min_length=1), _unique("id")]

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, content: object) -> object:
        """Expand ``items: all`` of a scale into a list, and a missing bias into zeros."""
        if not isinstance(content, dict):
            return content

        content = dict(content)
        if isinstance(content.get("categories"), list | tuple):
            content.setdefault("bias", [0.0] * len(content["categories"]))

        try:
            ids = [str(item["id"]) for item in content["items"]] or ["all"]
        except (KeyError, TypeError):
            ids = ["all"]  # the items have mistakes, which their own rules report

        scales = content.get("scales")
        if isinstance(scales, list | tuple):
            content["scales"] = [
                scale | {"items": ids}
                if isinstance(scale, dict) and scale.get("items") == "all"
                else scale
                for scale in scales
            ]

        return content

    @model_validator(mode="after")
    def _check_fit(self) -> Questionnaire:
        mistakes = [*_item_mistakes(self), *_scale_mistakes(self), *_norm_mistakes(self)]
        if mistakes:
            raise ValueError("\n".join(mistakes))
        return self

    def item(self, item_id: str) -> Item:
        """Return the item that has the given id."""
        return _choose_part(f"{self.id} has no item", self.items, item_id)

    def scale(self, scale_id: str) -> Scale:
        """Return the scale that has the given id."""
        return _choose_part(f"{self.id} has no scale", self.scales, scale_id)

    def members(self, scale: Scale) -> list[Item]:
        """Return the items of a scale, in the questionnaire's order."""
        return [item for item in self.items if item.id in scale.items]

    def keys(self, scale: Scale | None = None) -> dict[str, int]:
        """Return the keys of all items or of a scale's items: -1 if agreement lowers the score."""
        reverse = scale.reverse if scale else ()
        members = self.members(scale) if scale else self.items
        return {item.id: -item.keying if item.id in reverse else item.keying for item in members}

    def levels(self, item: Item) -> tuple[_Level, ...]:
        """Return an item's levels of intensifiers: its own, or else the questionnaire's."""
        return item.intensifiers or self.intensifiers or ()

    def choices(self, item: Item | str) -> tuple[Option, ...]:
        """Return an item's options: its own, or else the questionnaire's."""
        if isinstance(item, str):
            item = self.item(item)
        return item.options or self.options

    def statement(self, item: Item) -> str:
        """Return the item as a whole sentence, with the stem (if there is one) and a full stop."""
        text = item.text
        if self.stem:
            text = f"{self.stem} {text[0].lower()}{text[1:]}"
        return text if text[-1] in ".?!" else f"{text}."

    def ends(self, item: Item | str) -> tuple[float, float]:
        """Return the lowest and highest value of an item's options."""
        values = [option.value for option in self.choices(item)]
        if not values:
            raise ParameterError(f"{self.id} has no options for some items: use its prompts.")
        return min(values), max(values)

    def span(self, scale: Scale) -> tuple[float, float]:
        """Return the lowest and highest scores on a scale that the options allow."""
        size = 1 if scale.mode == "sum" else len(scale.items)
        low, high = map(sum, zip(*map(self.ends, scale.items), strict=True))
        return low / size, high / size


def _choose_part(problem: str, parts: tuple[_PartT, ...], name: str) -> _PartT:
    for entry in parts:
        if entry.id == name:
            return entry

    names = ", ".join([entry.id for entry in parts][:9])
    raise ParameterError(f"{problem} '{name}': it has {names} etc.")


def _item_mistakes(questionnaire: Questionnaire) -> Iterator[str]:
    """Yield the mistakes in how the items fit the options, intensifiers and categories."""
    if not any(item.templates or questionnaire.choices(item) for item in questionnaire.items):
        yield "items: none has templates or options; add templates or options"

    categories = len(questionnaire.categories)
    if len(questionnaire.bias) not in (0, categories):
        yield "bias: must have one number for each category; correct it"

    questions: dict[tuple[Any, ...], str] = {}
    for number, item in enumerate(questionnaire.items, start=1):
        place = f"item {number} ({item.id})"
        options = questionnaire.choices(item)

        # Some instruments ask an item again for another scale, so it may repeat only across scales.
        scales = [scale.id for scale in questionnaire.scales if item.id in scale.items]
        for scale in scales or [""]:
            question = (scale, _fold(item.text), options, item.templates)
            twin = questions.setdefault(question, item.id)
            if twin != item.id:
                yield f"items: '{item.id}' is the same question as '{twin}'; keep one"

        if len(options) == 1:
            yield f"{place}: has only one option; add a second option"
        if item.templates and not questionnaire.levels(item):
            yield f"{place}: has templates, but there are no intensifiers; add intensifiers"

        shape = [len(row) for row in item.weights or ()]
        if (categories or shape) and shape != [categories] * len(options):
            yield (
                f"{place}: weights must be {len(options)} options by {categories} categories; "
                "correct them"
            )


def _scale_mistakes(questionnaire: Questionnaire) -> Iterator[str]:
    """Yield the mistakes in how the scales fit the items and each other."""
    if not questionnaire.scales and not questionnaire.categories:
        yield "scales: is missing; add scales or categories"

    ids = {item.id for item in questionnaire.items}
    tops = {scale.id for scale in questionnaire.scales if scale.parent is None}
    for scale in questionnaire.scales:
        place = f"scale {scale.id}"
        if scale.parent not in {None, *tops}:
            yield f"{place}: its parent must be a scale without a parent; correct it"
        for name in scale.items:
            if name not in ids:
                yield f"{place}: there is no item '{name}'; correct it"
        for name in scale.reverse:
            if name not in scale.items:
                yield f"{place}: reverses '{name}', which is not one of its items"


def _norm_mistakes(questionnaire: Questionnaire) -> Iterator[str]:
    """Yield the norms whose scale is missing, or whose values its options do not allow."""
    for name in repeated([f"{norm.scale}, {norm.group}" for norm in questionnaire.norms]):
        yield f"norms: '{name}' occurs twice; keep one"

    scales = {scale.id: scale for scale in questionnaire.scales}
    for norm in questionnaire.norms:
        scale = scales.get(norm.scale)
        if scale is None:
            yield f"norms: there is no scale '{norm.scale}'; correct it"
            continue

        try:
            as_sum = questionnaire.span(scale.model_copy(update={"mode": "sum"}))
            as_mean = questionnaire.span(scale.model_copy(update={"mode": "mean"}))
        except ParameterError:  # without options, or with a name that is no item
            continue

        ends = as_sum + as_mean
        if not min(ends) <= norm.mean <= max(ends) or norm.sd > max(ends) - min(ends):
            yield (
                f"norms: {norm.scale}, {norm.group}: mean {norm.mean:g}, SD {norm.sd:g} do not "
                "fit its options; correct them"
            )


def _fold(text: str) -> str:
    """Return a text without differences in capitals and encoding, which readers may not see."""
    return unicodedata.normalize("NFKC", text).casefold()


def repeated(names: Collection[str], fold: bool = True) -> list[str]:
    """Return the names that occur more than once, without repetitions."""
    keys = {name: _fold(name) if fold else name for name in names}
    times = Counter(keys[name] for name in names)
    return list({key: name for name, key in keys.items() if times[key] > 1}.values())
