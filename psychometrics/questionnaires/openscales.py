"""Questionnaires in the Open Scale Definition (``.osd``) of the OpenScales project.

Sums and means of coded answers are scored as the file defines them. A file with a different kind of
score is refused, so that no score differs from its definition in the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field

from .layout import _Layout, _make_identifier
from .model import Part


def _likert(name: str) -> Any:
    """Return a setting of Likert items, which has a shorter name in the scale's defaults."""
    return Field(None, validation_alias=AliasChoices(f"likert_{name}", name))


def _refuse(value: object) -> None:
    """Refuse a key of a score, unless it is empty."""
    if value:
        raise ValueError("makes the score more than a sum or a mean; write the scales as YAML")


# In a plain list of items, all keys are positive.
_Keyed = BeforeValidator(
    lambda items: dict.fromkeys(items, 1) if isinstance(items, list) else items
)
_Absent = Annotated[None, BeforeValidator(_refuse)]


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


class _Score(_Loose):
    """A sum or a mean; the last four keys would make it more than that."""

    method: Literal["mean_coded", "sum_coded"]
    items: Annotated[dict[str, Literal[-1, 0, 1]], _Keyed] = Field({})
    scores: _Absent = None
    transform: _Absent = None
    value_map: _Absent = None
    item_coding: _Absent = None


class _Definition(_Loose):
    scale_info: dict[str, Any]
    dimensions: tuple[dict[str, Any], ...] = ()
    likert_options: _Points = _Points()
    parameters: dict[str, dict[str, Any]] = Field({})
    items: tuple[_Entry, ...]
    scoring: Annotated[dict[str, _Score], Field(min_length=1)]


class _OpenScale(_Layout):
    """A questionnaire of OpenScales, without the items that no score uses."""

    model_config = ConfigDict(extra="ignore")

    definition: _Definition
    translations: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]

    @property
    def _language(self) -> str:
        return "en" if "en" in self.translations else next(iter(self.translations))

    def _text(self, key: Any) -> str:
        """Return the text with a given key in the questionnaire's language, without markup."""
        text = str(self.translations[self._language].get(key) or "")
        text = re.sub(r"</?(?:br|p|div|h\d|li|ul|ol)\b[^>]*>", " ", text)
        return " ".join(re.sub(r"</?[a-zA-Z][^>]*>", "", text).split())

    def _is_met(self, condition: Any) -> bool:
        """Return whether the default value of a parameter meets a condition."""
        if not condition:
            return True
        if not isinstance(condition, dict) or condition.get("operator") != "equals":
            return False
        parameter = self.definition.parameters.get(str(condition.get("parameter")), {})
        default = str(parameter.get("default")).lower()
        return bool(parameter) and str(condition.get("value")).lower() == default

    def _select_items(self) -> list[_Entry]:
        """Return the items that a score uses; refuse those that a questionnaire cannot hold."""
        scores = self.definition.scoring.values()
        scored = {name for score in scores for name, key in score.items.items() if key}
        items = []
        section = None
        for item in self.definition.items:
            if item.type == "section":
                section = item.visible_when
            if item.id not in scored or item.type not in ("likert", "multi"):
                continue

            if not (self._is_met(section) and self._is_met(item.visible_when)):
                raise ValueError(f"item {item.id}: is not asked of everyone")
            if re.search(r"<img|\{", str(self.translations[self._language].get(item.text_key))):
                raise ValueError(f"item {item.id}: shows a picture or a text that is filled in")
            items.append(item)

        strays = scored - {item.id for item in items}
        if strays:
            raise ValueError(f"item {min(strays)}: is scored, but is not a Likert item or a choice")
        return items

    def _options(self, item: _Entry) -> list[dict[str, Any]]:
        """Return an item's options; a scale point without a label is named by its number."""
        usual = self.definition.likert_options
        if item.type == "multi":
            if not all(isinstance(option, dict) for option in item.options):
                raise ValueError(f"item {item.id}: has options without a value")
            texts = [option.get("value") for option in item.options]
            values = [int(v) if str(v).lstrip("-").isdigit() else v for v in texts]
            keys = [option.get("text_key") for option in item.options]
        else:
            low = next((end for end in (item.min, usual.min) if end is not None), 1)
            high = item.max
            if high is None and not item.points:
                high = usual.max
            if high is None:
                high = low + (item.points or usual.points or 0) - 1
            values = list(range(low, high + 1))
            keys = list(item.labels or usual.labels or values)

        if len(keys) != len(values):
            raise ValueError(f"item {item.id}: has {len(keys)} labels for {len(values)} values")
        return [
            {"value": value, "label": self._text(key) or str(value)}
            for value, key in zip(values, keys, strict=True)
        ]

    def convert(self, path: Path) -> dict[str, Any]:
        """Return the questionnaire in the project's layout."""
        definition = self.definition
        info = definition.scale_info
        titles = {dimension.get("id"): dimension.get("name") for dimension in definition.dimensions}
        entries = self._select_items()

        heads = [item.question_head or definition.likert_options.question_head for item in entries]
        instructions = self._text(heads[0] if len(set(heads)) == 1 else None)
        items = []
        for item, head in zip(entries, heads, strict=True):
            start = "" if instructions else self._text(head)
            text = f"{start} {self._text(item.text_key)}".strip()
            items.append({"id": item.id, "text": text, "options": self._options(item)})

        scales = []
        for name, score in definition.scoring.items():
            scale: dict[str, Any] = {"id": name, "title": str(titles.get(name) or name)}
            scale["items"] = [item for item, key in score.items.items() if key]
            scale["reverse"] = [item for item, key in score.items.items() if key < 0]
            scales.append(scale | {"mode": score.method.removesuffix("_coded")})

        title = info.get("name")
        licence = [info[key] for key in ("license", "license_url") if info.get(key)]
        return {
            # The prefix separates its answers from those of a shipped questionnaire of this name.
            "id": f"osd-{_make_identifier(path.stem)}",
            "source": path.name,
            "title": title,
            "short_title": info.get("abbreviation") or title,
            "measures": ", ".join(scale["title"] for scale in scales),
            "language": self._language,
            "citation": info.get("citation") or title,
            "licence": ", ".join(map(str, licence)) or "not stated",
            "instructions": instructions or None,
            "items": items,
            "scales": scales,
        }
