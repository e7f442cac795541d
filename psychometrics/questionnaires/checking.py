"""Check a questionnaire's content, and name the place and the correction of each mistake."""

from __future__ import annotations

import re
from typing import Any, TypeVar, overload

from pydantic import ValidationError

from ..exceptions import QuestionnaireError
from .model import Part, Questionnaire

_PartT = TypeVar("_PartT", bound=Part)
_STAND_INS = dict.fromkeys(
    ("id", "title", "short_title", "measures", "citation", "source", "licence"), "stand-in"
)
"""The placeholders for missing or wrong values on which no other part depends."""
_LISTS = ("items", "scales", "options", "response")
"""The lists whose valid entries are checked even if other entries are wrong."""
_ASKED = ("terms", "templates", "candidates", "intensifiers", "options", "weights")
"""The keys of an item on which its other keys depend."""
_EXPECTED = {
    "tuple_type": "must be a list",
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dict_type"), "must be keys and values"
    ),
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "too_short": "needs at least one more entry",
    "too_long": "is too long; shorten it",
    "string_too_short": "is empty; write something",
    "string_too_long": "must have at most 100 characters",
    "string_pattern_mismatch": "must be lower-case letters without accents, digits, - and _",
    "recursion_loop": "contains itself; write it out",
}


@overload
def checked(content: object, place: str) -> Questionnaire: ...


@overload
def checked(content: object, place: str, schema: type[_PartT]) -> _PartT: ...


def checked(content: object, place: str, schema: type[Part] = Questionnaire) -> Part:
    """Parse content as a part of a questionnaire; the error names the place of each mistake."""
    if not isinstance(content, dict):
        raise QuestionnaireError(f"{place}: holds no questionnaire; give it keys, such as `items`.")

    try:
        return schema.model_validate(content)
    except ValidationError as error:
        found = error.errors()

    # A list with invalid parts is not also reported as too short.
    inside = {mistake["loc"][:size] for mistake in found for size in range(len(mistake["loc"]))}
    told = [
        _mistake_lines(dict(m), content)
        for m in found
        if m["type"] != "too_short" or m["loc"] not in inside
    ]
    if schema is Questionnaire:
        told.append(
            [f", {line}" for line in _mistakes_of_the_rest(content, [dict(m) for m in found])]
        )

    lines = dict.fromkeys(f"{place}{_on_one_line(line)}." for lines in told for line in lines)
    raise QuestionnaireError("\n".join(lines))


def _mistakes_of_the_rest(content: dict[str, Any], found: list[dict[str, Any]]) -> list[str]:
    """Return the mistakes in how the valid parts of an invalid questionnaire fit together."""
    places = [mistake["loc"] for mistake in found]
    if () in places or ("items",) in places:
        return []

    right = {key: value for key, value in content.items() if (key,) not in places}
    right |= {key: stand_in for key, stand_in in _STAND_INS.items() if (key,) in places}
    unsure: set[str | int] = set()

    for key in {place[0] for place in places} - _STAND_INS.keys():
        inside = {place[1:] for place in places if place[0] == key and len(place) > 1}
        if key in _LISTS and inside:
            right[key] = _right_entries(key, content[key], inside, unsure)
        else:
            unsure.add("options" if key == "response" else key)
            right.pop(key, None)

    try:
        Questionnaire.model_validate(right, context=unsure)
    except ValidationError as error:
        rest = [mistake for mistake in error.errors() if mistake["loc"] == ()]
        return [line for mistake in rest for line in str(mistake["ctx"]["error"]).split("\n")]

    return []


def _right_entries(
    key: str, entries: list[Any], wrong: set[tuple[Any, ...]], unsure: set[str | int]
) -> list[dict[str, object]]:
    """Return entries without their wrong keys, and record the checks that are not possible."""
    right = []
    for at, entry in enumerate(entries):
        off = {place[1] if len(place) > 1 else None for place in wrong if place[0] == at}
        if not off:
            right.append(entry)
            continue

        kept = entry if isinstance(entry, dict) and None not in off else {}
        if key == "items" and off & {None, *_ASKED}:
            unsure.add(at)
        if "id" in off or not kept:
            unsure.add(key)

        dropped = off | ({"reverse"} if "items" in off else set())
        right.append(
            _stand_in(key, at) | {name: kept[name] for name in kept if name not in dropped}
        )

    return right


def _stand_in(key: str, at: int) -> dict[str, object]:
    """Return placeholder values that make an entry of a list valid and unique."""
    if key == "items":
        return {"id": f"stand-in-{at}", "text": f"Stand-in {at}"}
    if key == "scales":
        return {"id": f"stand-in-{at}", "title": "stand-in", "items": "all"}
    return {"value": 1e6 + at, "label": f"stand-in {at}"}


def _mistake_lines(mistake: dict[str, Any], content: dict[str, Any]) -> list[str]:
    """Return pydantic's mistake as lines with file, place and correction."""
    place = _place(mistake["loc"], content)
    place = f", {place}" if place else ""
    got = mistake["input"]
    kind = mistake["type"]

    if kind == "missing":
        return [f"{place}: is missing; add this key"]

    if kind == "extra_forbidden":
        merge = " (YAML's merge key is not supported)" if mistake["loc"][-1:] == ("<<",) else ""
        return [f"{place}: is not a known key{merge}; remove or rename it"]

    shown = f", got {str(got)[:60]!r}" if isinstance(got, str) else ""
    shown = f", got {repr(got)[:60]}" if isinstance(got, int | float | None) else shown
    if kind == "value_error":
        lines = str(mistake["ctx"]["error"]).split("\n")
        shown = shown if lines[0].startswith("must be") else ""
        return [f"{place}: {line}{shown}" if place else f", {line}" for line in lines]

    said = mistake["msg"][0].lower() + mistake["msg"][1:]
    said = _EXPECTED.get(kind, said.replace("input should", "must"))
    quotes = "; put it in quotes" if kind == "string_type" and shown and got is not None else ""
    return [f"{place}: {said}{shown}{quotes}"]


def _place(location: tuple[Any, ...], content: Any) -> str:
    """Format ``("items", 2, "templates", 0, "premise")`` as *item 3 (phq9_3), template 1, ...*."""
    words: list[str] = []
    for key in location:
        inside = isinstance(content, dict | list | tuple)
        known = inside and (key in content if isinstance(content, dict) else isinstance(key, int))
        content = content[key] if known else None

        if isinstance(key, int):
            name = content.get("id") if isinstance(content, dict) else None
            several = words.pop() if words and not words[-1][-1:].isdigit() else "places"
            one = re.sub("ie$", "y", several.removesuffix("s"))
            words.append(f"{one} {key + 1}" + (f" ({str(name)[:60]})" if name else ""))
        elif key != "[key]":
            words.append(str(key)[:60])

    return ", ".join(words)


def _on_one_line(text: str) -> str:
    """Return a text on one line, with escapes for unprintable characters."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
