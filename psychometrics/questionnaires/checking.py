"""Check a questionnaire's content, and name the place and the correction of each mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from ..exceptions import QuestionnaireError
from .model import Part

_PartT = TypeVar("_PartT", bound=Part)
# pydantic's kinds of mistakes whose messages are for programmers, in words for authors.
_WORDS = {
    "missing": "is missing; add this key",
    "extra_forbidden": "is not a known key; remove or rename it",
    "tuple_type": "must be a list",
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dict_type"), "must be keys and values"
    ),
    "string_type": "must be text in quotes",
    "int_type": "must be a whole number",
    "too_short": "needs at least one more entry",
    "too_long": "is too long; shorten it",
    "string_too_short": "is empty; write something",
    "string_too_long": "must have at most 100 characters",
    "string_pattern_mismatch": "must be lower-case letters without accents, digits, - and _",
    "recursion_loop": "contains itself; write it out",
}


def parse_part(content: object, place: str, schema: type[_PartT]) -> _PartT:
    """Parse content as a part of a questionnaire.

    Parameters
    ----------
    content : object
        The content, as read from a file.
    place : str
        Name of the file in error messages.
    schema : type of Part

    Raises
    ------
    QuestionnaireError
        The content does not fit. The message is pydantic's list of mistakes, one per line with its
        place. Mistakes in how parts fit together are listed once each part is correct.

    Examples
    --------
    >>> from psychometrics.questionnaires import Option
    >>> parse_part({"value": "often", "label": "Often"}, "tea.yaml, option 1", Option)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.QuestionnaireError: tea.yaml, option 1, value: must be a number, ...
    """
    if not isinstance(content, dict):
        raise QuestionnaireError(f"{place}: holds no questionnaire; give it keys, such as `items`.")

    try:
        return schema.model_validate(content)
    except ValidationError as error:
        # A list that loses its wrong entries is not too short for that reason.
        mistakes = [
            mistake
            for mistake in error.errors()
            if mistake["type"] != "too_short"
            or mistake["ctx"]["actual_length"] == len(mistake["input"])
        ]

    lines = [
        f"{place}, {line}" for mistake in mistakes for line in _mistake_lines(mistake, content)
    ]
    # A repeated line is of no use, and an unprintable character could hide the rest of a line.
    shown = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in lines]
    raise QuestionnaireError("\n".join(f"{line}." for line in dict.fromkeys(shown)))


def _mistake_lines(mistake: Mapping[str, Any], content: dict[str, Any]) -> list[str]:
    """Return one of pydantic's mistakes as lines with place and correction."""
    place = _format_place(mistake["loc"], content)
    value = mistake["input"]
    if mistake["type"] == "value_error":
        messages = str(mistake["ctx"]["error"]).split("\n")
    else:
        message = mistake["msg"][0].lower() + mistake["msg"][1:].replace("Input should", "must")
        messages = [_WORDS.get(mistake["type"], message.replace("input should", "must"))]

    lines = [f"{place}: {message}" if place else message for message in messages]
    if messages[0].startswith("must be") and isinstance(value, str | int | float | None):
        lines[0] += f", got {value!r:.60}"
    return lines


def _format_place(location: tuple[Any, ...], content: Any) -> str:
    """Format ``("items", 2, "text")`` as *item 3 (phq9_3), text*."""
    words: list[str] = []
    for key in location:
        try:
            content = content[key]
        except (TypeError, LookupError):
            content = None

        if isinstance(key, int):
            name = content.get("id") if isinstance(content, dict) else None
            part = re.sub("(?<!a)s$", "", re.sub("ies$", "ys", words.pop() if words else "part"))
            words.append(f"{part} {key + 1}" + (f" ({name!s:.60})" if name else ""))
        elif key != "[key]":
            words.append(f"{key!s:.60}")

    return ", ".join(words)
