"""Questionnaires in the Open Scale Definition (``.osd``) of the OpenScales project.

Sums and means of coded answers are scored as the file defines them. A file with a different kind of
score is refused, so that no score differs from its definition in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, model_validator

from .model import Part

_MODES = {"mean_coded": "mean", "sum_coded": "sum"}
_BEYOND = ("scores", "transform", "value_map", "item_coding")


def _likert(name: str) -> Any:
    """Return a setting of Likert items, which has a shorter name in the scale's defaults."""
    return Field(None, validation_alias=AliasChoices(f"likert_{name}", name))


def _keyed(items: object) -> object:
    """Return items with their keys; in a plain list all keys are positive."""
    return dict.fromkeys(items, 1) if isinstance(items, list) else items


class _Loose(Part):
    """A part of a file whose other keys, such as its page layout, are ignored."""

    model_config = ConfigDict(extra="ignore")


class _Points(_Loose):
    points: Annotated[int, Field(ge=2, le=101)] | None = _likert("points")
    min: int | None = _likert("min")
    max: int | None = _likert("max")
    labels: tuple[str | None, ...] | None = _likert("labels")
    question_head: str | None = None


class _Entry(_Points):
    """An entry in the list of items: a question, an instruction, or the start of a section."""

    id: str
    type: str
    text_key: str = ""
    options: tuple[Any, ...] = ()
    visible_when: Any = None


class _Score(Part):
    model_config = ConfigDict(extra="allow")

    method: str
    items: Annotated[dict[str, Literal[-1, 0, 1]], BeforeValidator(_keyed)] = Field({})

    def obstacle(self) -> str | None:
        """Return the reason why the score is more than a sum or a mean."""
        if self.method not in _MODES:
            return f"the method {self.method}"

        keys = self.model_extra or {}
        return next((f"`{key}`" for key in _BEYOND if keys.get(key)), None)


class _Definition(_Loose):
    scale_info: dict[str, Any]
    dimensions: tuple[dict[str, Any], ...] = ()
    likert_options: _Points = _Points()
    parameters: dict[str, dict[str, Any]] = Field({})
    items: tuple[_Entry, ...]
    scoring: dict[str, _Score] = Field({})


class _OpenScale(_Loose):
    """A questionnaire of OpenScales, without the items that no score uses."""

    definition: _Definition
    translations: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_scored(self) -> _OpenScale:
        obstacle = next(self._obstacles(), None)
        if obstacle:
            raise ValueError(f"{obstacle}; write the questionnaire as YAML with scales of your own")
        return self

    @property
    def _scored(self) -> set[str]:
        scores = self.definition.scoring.values()
        return {name for score in scores for name, key in score.items.items() if key}

    @property
    def _language(self) -> str:
        return "en" if "en" in self.translations else next(iter(self.translations))

    def _text(self, key: Any) -> str:
        """Return the text with a given key in the questionnaire's language, without markup."""
        text = str(self.translations[self._language].get(key) or "")
        text = re.sub(r"</?(?:br|p|div|h\d|li|ul|ol)\b[^>]*>", " ", text)
        return " ".join(re.sub(r"</?[a-zA-Z][^>]*>", "", text).split())

    def _obstacles(self) -> Iterator[str]:
        """Yield the parts of the file that this package cannot ask or score."""
        if not self.definition.scoring:
            yield "scoring: defines no score"

        for name, score in self.definition.scoring.items():
            obstacle = score.obstacle()
            if obstacle:
                yield f"scoring, {name}: {obstacle} is more than a sum or a mean"

        likert = {item.id for item in self.definition.items if item.type in ("likert", "multi")}
        for name in sorted(self._scored - likert):
            yield f"item {name}: is scored, but is neither a Likert item nor a choice"

        section = None
        for item in self.definition.items:
            if item.type == "section":
                section = item.visible_when

            if item.id not in self._scored:
                continue

            if not (self._met(section) and self._met(item.visible_when)):
                yield f"item {item.id}: is not asked of everyone"

            if re.search(r"<img|\{", str(self.translations[self._language].get(item.text_key))):
                yield f"item {item.id}: shows a picture or a text that is filled in"

            if not all(isinstance(option, dict) for option in item.options):
                yield f"item {item.id}: has options without a value"

            labels = item.labels or self.definition.likert_options.labels
            values = self._values(item)
            if item.type == "likert" and labels and len(labels) != len(values):
                yield f"item {item.id}: has {len(labels)} labels for {len(values)} values"

    def _met(self, condition: Any) -> bool:
        """Return whether the default value of a parameter meets a condition."""
        if not condition:
            return True
        if not isinstance(condition, dict) or condition.get("operator") != "equals":
            return False

        parameter = self.definition.parameters.get(str(condition.get("parameter")))
        if parameter is None:
            return False
        return str(condition.get("value")).lower() == str(parameter.get("default")).lower()

    def _values(self, item: _Entry) -> range:
        """Return the values of a Likert item: its own, or else the values of the scale."""
        usual = self.definition.likert_options
        low = next((end for end in (item.min, usual.min) if end is not None), 1)
        high = item.max
        if high is None and not item.points:
            high = usual.max
        if high is None:
            high = low + (item.points or usual.points or 0) - 1
        return range(low, high + 1)

    def _options(self, item: _Entry) -> list[dict[str, Any]]:
        """Return an item's options; a scale point without a label is named by its number."""
        if item.type == "multi":
            texts = [option.get("value") for option in item.options]
            values = [int(v) if str(v).lstrip("-").isdigit() else v for v in texts]
            keys = [option.get("text_key") for option in item.options]
        else:
            values = list(self._values(item))
            keys = list(item.labels or self.definition.likert_options.labels or values)

        return [
            {"value": value, "label": self._text(key) or str(value)}
            for value, key in zip(values, keys, strict=True)
        ]

    def ours(self) -> dict[str, Any]:
        """Return the questionnaire in the project's layout."""
        definition = self.definition
        about = definition.scale_info
        titles = {dimension.get("id"): dimension.get("name") for dimension in definition.dimensions}
        asked = [item for item in definition.items if item.id in self._scored]

        heads = [item.question_head or definition.likert_options.question_head for item in asked]
        shared = self._text(heads[0] if len(set(heads)) == 1 else None)
        items = []
        for item, head in zip(asked, heads, strict=True):
            text = f"{'' if shared else self._text(head)} {self._text(item.text_key)}".strip()
            items.append({"id": item.id, "text": text, "options": self._options(item)})

        scales = []
        for name, score in definition.scoring.items():
            scale: dict[str, Any] = {"id": name, "title": str(titles.get(name) or name)}
            scale["items"] = [item for item, key in score.items.items() if key]
            scale["reverse"] = [item for item, key in score.items.items() if key < 0]
            scales.append(scale | {"mode": _MODES[score.method]})

        title = about.get("name")
        licence = [about[key] for key in ("license", "license_url") if about.get(key)]
        return {
            "title": title,
            "short_title": about.get("abbreviation") or title,
            "measures": ", ".join(scale["title"] for scale in scales),
            "language": self._language,
            "citation": about.get("citation") or title,
            "licence": ", ".join(map(str, licence)) or "not stated",
            "instructions": shared or None,
            "items": items,
            "scales": scales,
        }
