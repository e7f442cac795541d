"""The content of a questionnaire, and the rules for its parts.

All parts are in this one file, so that the rules for a part are next to its fields.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, NoReturn

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ..exceptions import ParameterError

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


def _key(value: object) -> object:
    if isinstance(value, bool) or value not in (1, -1):
        raise ValueError("must be 1, or -1 where agreement lowers the score")
    return int(value)


_Text = Annotated[str, Field(min_length=1), AfterValidator(_clean), AfterValidator(_one_line)]
_Paragraph = Annotated[str, Field(min_length=1), AfterValidator(_clean)]
_Word = Annotated[_Text, AfterValidator(_without_gaps)]
_Words = Annotated[tuple[_Word, ...], Field(min_length=1)]
_Number = Annotated[float, BeforeValidator(_number)]
_Size = Annotated[int, Field(strict=True, gt=0, le=_LARGEST)]
_Title = Annotated[_Text, Field(max_length=300)]
_Language = Annotated[_Text, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
_ItemId = Annotated[_Text, Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=100)]
_Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=100)]


class Part(BaseModel):
    """A part of a questionnaire, which is immutable and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _Level(Part):
    """A level of the scale of intensifiers: interchangeable words with a common weight."""

    weight: _Number
    terms: _Words


class _Terms(Part):
    """Construct terms: ``source`` (S+) keep an item's stance, and ``inverse`` (S−) reverse it."""

    source: _Words
    inverse: _Words

    @model_validator(mode="after")
    def _each_once(self) -> _Terms:
        twice = repeated([*self.source, *self.inverse])
        if twice:
            names = ", ".join(map(repr, twice))
            raise ValueError(f"{names} occurs more than once: keep one of them")
        return self


class _Template(Part):
    """A premise and a hypothesis, with a gap for a term and a gap for an intensifier."""

    premise: _Text
    hypothesis: _Text
    terms: _Terms | None = None

    @model_validator(mode="after")
    def _one_gap_each(self) -> _Template:
        text = self.premise + self.hypothesis
        gaps = re.findall(r"{([^{}]*)}", text)
        unknown = set(gaps) - set(_PLACEHOLDERS)
        if unknown:
            known = "the gaps are {term} and {intensifier}"
            raise ValueError(f"unknown placeholder {{{min(unknown)}}}: {known}")

        if set("{}") & set(re.sub(r"{[^{}]*}", "", text)):
            raise ValueError("has a brace without its partner: write {term} or {intensifier}")

        for name in _PLACEHOLDERS:
            times = gaps.count(name)
            if times != 1:
                raise ValueError(f"needs {{{name}}} once in its two sentences, not {times} times")

        return self


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


class Scale(Part):
    """Items that are added up or averaged, after the items in ``reverse`` are reversed.

    In a file, ``items: all`` means every item; a subscale names its parent.
    """

    id: _Text
    title: _Text
    items: _Words
    reverse: tuple[_Text, ...] = ()
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
    keying: Annotated[int, BeforeValidator(_key)] = 1
    terms: _Terms | None = None
    templates: tuple[_Template, ...] = ()
    candidates: tuple[_Candidates, ...] = ()
    intensifiers: Annotated[tuple[_Level, ...], Field(min_length=2)] | None = None
    options: Annotated[tuple[Option, ...], Field(min_length=2)] | None = None
    weights: tuple[tuple[_Number, ...], ...] | None = None
    paraphrases: tuple[_Paragraph, ...] = ()
    negated: _Paragraph | None = None


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
    options: tuple[Option, ...] = Field(
        default=(), validation_alias=AliasChoices("options", "response")
    )
    intensifiers: Annotated[tuple[_Level, ...], Field(min_length=2)] | None = None
    candidates: tuple[Annotated[tuple[_Level, ...], Field(min_length=2)], ...] = ()
    scales: tuple[Scale, ...] = ()
    norms: tuple[_Norm, ...] = ()
    categories: tuple[_Text, ...] = ()
    bias: tuple[_Number, ...] = ()
    items: Annotated[tuple[Item, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, content: object) -> object:
        """Expand ``items: all`` of a scale into a list, and a missing bias into zeros."""
        if not isinstance(content, dict):
            return content

        items, scales, categories = (content.get(k) for k in ("items", "scales", "categories"))
        if isinstance(categories, list | tuple):
            content = {"bias": [0.0] * len(categories)} | content

        if not isinstance(scales, list | tuple):
            return content
        items = items if isinstance(items, list | tuple) else ()
        ids = [i.get("id") if isinstance(i, dict) else getattr(i, "id", None) for i in items]
        ids = [name for name in ids if isinstance(name, str)]  # other ids are mistakes of the items
        whole = [
            {**scale, "items": ids or ["all"]}
            if isinstance(scale, dict) and scale.get("items") == "all"
            else scale
            for scale in scales
        ]

        return {**content, "scales": whole}

    @model_validator(mode="after")
    def _parts_fit(self, info: ValidationInfo) -> Questionnaire:
        mistakes = _mistakes(self, info.context or set())
        if mistakes:
            raise ValueError("\n".join(mistakes))
        return self

    def item(self, item_id: str) -> Item:
        """Return the item that has the given id."""
        found = next((item for item in self.items if item.id == item_id), None)
        return found or self._lacks("item", self.items, item_id)

    def scale(self, scale_id: str) -> Scale:
        """Return the scale that has the given id."""
        found = next((scale for scale in self.scales if scale.id == scale_id), None)
        return found or self._lacks("scale", self.scales, scale_id)

    def _lacks(self, kind: str, parts: Sequence[Item | Scale], name: str) -> NoReturn:
        known = ", ".join([part.id for part in parts][:9])
        raise ParameterError(f"{self.id} has no {kind} '{name}': it has {known} etc.")

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


def _mistakes(questionnaire: Questionnaire, unsure: set[str | int]) -> list[str]:
    """Return mistakes in how parts fit together, except those that depend on an uncertain part."""
    ids = [item.id for item in questionnaire.items]
    found = _twice("items", ids)
    found += _level_mistakes("intensifiers", questionnaire.intensifiers or ())

    for number, levels in enumerate(questionnaire.candidates, start=1):
        found += _level_mistakes(f"candidate {number}", levels)

    found += _option_mistakes("options", questionnaire.options)
    asked = any(item.templates or questionnaire.choices(item) for item in questionnaire.items)
    if not asked and not unsure & {"items", "options"}:
        found.append("items: none has templates or options; add templates or options")

    grouped = questionnaire.scales or questionnaire.categories
    if not grouped and not unsure & {"scales", "categories"}:
        found.append("scales: is missing; add scales or categories")

    first: dict[tuple[Any, ...], str] = {}
    for number, item in enumerate(questionnaire.items, start=1):
        if number - 1 in unsure:
            continue

        # Some instruments ask an item again for another scale, so it may repeat only across scales.
        owners = [scale.id for scale in questionnaire.scales if item.id in scale.items]
        for owner in owners or [""]:
            choices = tuple(questionnaire.choices(item))  # its own, or the common ones
            question = (owner, _fold(item.text), choices, item.templates)
            same = first.setdefault(question, item.id)
            if same != item.id:
                found.append(f"items: '{item.id}' is the same question as '{same}'; keep one")

        found += _item_mistakes(f"item {number} ({item.id})", questionnaire, item, unsure)

    found += _scale_mistakes(questionnaire, ids, unsure)
    found += _twice("categories", questionnaire.categories)
    if unsure & {"categories", "bias"}:
        return found

    if len(questionnaire.bias) not in (0, len(questionnaire.categories)):
        found.append("bias: must have one number for each category; correct it")

    return found


def _item_mistakes(
    place: str, questionnaire: Questionnaire, item: Item, unsure: set[str | int]
) -> list[str]:
    found = _level_mistakes(place, item.intensifiers or ())
    options = questionnaire.choices(item)
    found += _option_mistakes(place, item.options or ())

    if item.templates and not questionnaire.levels(item) and "intensifiers" not in unsure:
        found.append(f"{place}: has templates, but there are no intensifiers; add intensifiers")

    if len(options) == 1:
        found.append(f"{place}: has only one option; add a second option")

    for at, template in enumerate(item.templates, start=1):
        if not (template.terms or item.terms):
            found.append(f"{place}, template {at}: has no terms; add source and inverse terms")

        if template in item.templates[: at - 1]:
            found.append(f"{place}, template {at}: occurs twice; keep one")

    for at, candidate in enumerate(item.candidates, start=1):
        found += _candidate_mistakes(f"{place}, candidate {at}", item, candidate)

    if "categories" in unsure:
        return found

    categories = len(questionnaire.categories)
    if (
        "options" not in unsure
        and categories
        and [len(row) for row in item.weights or ()] != [categories] * len(options)
    ):
        found.append(
            f"{place}: weights must be {len(options)} options by {categories} categories; "
            "correct them"
        )

    if item.weights and not categories:
        found.append(f"{place}: has weights, but there are no categories; add categories")

    return found


def _candidate_mistakes(place: str, item: Item, candidate: _Candidates) -> list[str]:
    if candidate.template > len(item.templates):
        return [f"{place}: there is no template {candidate.template}; correct the number"]
    own = item.templates[candidate.template - 1]
    terms = own.terms or item.terms
    known = [*terms.source, *terms.inverse] if terms else []
    found = _twice(place, [*known, *candidate.source, *candidate.inverse])
    pairs = [(premise, own.hypothesis) for premise in candidate.premises]
    pairs += [(own.premise, hypothesis) for hypothesis in candidate.hypotheses]

    for premise, hypothesis in pairs:
        try:
            _Template(premise=premise, hypothesis=hypothesis)
        except ValidationError as error:
            reason = error.errors()[0]["ctx"]["error"]
            found.append(f"{place}: '{premise} {hypothesis}' {reason}; correct it")

    return found


def _option_mistakes(place: str, options: tuple[Option, ...]) -> list[str]:
    found = _twice(place, [option.label for option in options])
    if len({option.value for option in options}) < len(options):
        found.append(f"{place}: two options have the same value; correct one")
    return found


def _scale_mistakes(
    questionnaire: Questionnaire, ids: list[str], unsure: set[str | int]
) -> list[str]:
    found = _twice("scales", [scale.id for scale in questionnaire.scales])
    parents = {scale.id: scale.parent for scale in questionnaire.scales}
    for scale in questionnaire.scales:
        place = f"scale {scale.id}"
        child = scale.parent is not None and parents.get(scale.parent, "") is not None
        if child and "scales" not in unsure:
            found.append(f"{place}: its parent must be a scale without a parent; correct it")

        found += [
            f"{place}: there is no item '{name}'; correct it"
            for name in scale.items
            if name not in ids and "items" not in unsure
        ]
        found += _twice(place, scale.items) + _twice(f"{place}, reverse", scale.reverse)
        found += [
            f"{place}: reverses '{name}', which is not one of its items; correct the id"
            for name in scale.reverse
            if name not in scale.items
        ]

    found += [
        f"norms: there is no scale '{norm.scale}'; correct it"
        for norm in questionnaire.norms
        if norm.scale not in parents and "scales" not in unsure
    ]

    for norm in questionnaire.norms:
        named = [scale for scale in questionnaire.scales if scale.id == norm.scale][:1]
        with contextlib.suppress(ParameterError, KeyError):  # without options
            both = [one.model_copy(update={"mode": m}) for one in named for m in ("mean", "sum")]
            ends = [end for one in both for end in questionnaire.span(one)]
            off = ends and not min(ends) <= norm.mean <= max(ends)
            if off or (ends and norm.sd > max(ends) - min(ends)):
                found.append(
                    f"norms: {norm.scale}, {norm.group}: mean {norm.mean:g}, SD {norm.sd:g} do not "
                    "fit its options; correct them"
                )

    return found + _twice("norms", [f"{norm.scale}, {norm.group}" for norm in questionnaire.norms])


def _level_mistakes(place: str, levels: tuple[_Level, ...]) -> list[str]:
    found = _twice(place, [word for level in levels for word in level.terms])
    weights = [level.weight for level in levels]
    if weights != sorted(set(weights)):
        found.append(f"{place}: the weights must rise from level to level, got {weights}")
    return found


def _twice(place: str, names: Collection[str]) -> list[str]:
    return [f"{place}: '{name}' occurs twice; keep one" for name in repeated(names)]


def _fold(text: str) -> str:
    """Return a text without differences in capitals and encoding, which readers may not see."""
    return unicodedata.normalize("NFKC", text).casefold()


def repeated(names: Collection[str], fold: bool = True) -> list[str]:
    """Return the names that occur more than once, without repetitions."""
    told = {name: _fold(name) if fold else name for name in names}
    times = Counter(told[name] for name in names)
    return list({key: name for name, key in told.items() if times[key] > 1}.values())
