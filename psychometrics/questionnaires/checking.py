"""Check a questionnaire's content, and name the place and the correction of each mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import ValidationError

from ..exceptions import QuestionnaireError
from .model import Part

_PartT = TypeVar("_PartT", bound=Part)
# pydantic's kinds of mistakes whose messages are for programmers, in words for authors.
_WORDS = {
    "missing": "is missing; add this key",
    "extra_forbidden": "is not a known key; remove or rename it",
    "model_type": "must be keys and values",
    "dict_type": "must be keys and values",
    "tuple_type": "must be a list",
    "string_type": "must be text in quotes",
    "int_type": "must be a whole number",
    "too_short": "needs at least one more entry",
    "too_long": "is too long; shorten it",
    "string_too_short": "is empty; write something",
    "string_pattern_mismatch": "must be lower-case letters without accents, digits, - and _",
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
        The content does not fit. The message lists every mistake on a line with its place.
        Mistakes in how parts fit together are listed once each part is correct.

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
            for mistake in error.errors(include_url=False)
            if mistake["type"] != "too_short"
            or mistake["ctx"]["actual_length"] == len(mistake["input"])
        ]

    lines = []
    for mistake in mistakes:
        where = _format_place(mistake["loc"], content)
        start = f"{place}, {where}: " if where else f"{place}, "
        value = mistake["input"]
        message = mistake["msg"].removeprefix("Value error, ")
        message = _WORDS.get(mistake["type"], re.sub("^[A-Z][a-z]+ should", "must", message))
        if message.startswith("must be") and isinstance(value, str | int | float | None):
            message += f", got {value!r:.60}"
        lines += [f"{start}{sentence}." for sentence in message.split("\n")]

    raise QuestionnaireError(_join_lines(lines))


def _join_lines(lines: Iterable[str]) -> str:
    """Join different lines, without unprintable characters, which could hide the rest of a line."""
    printable = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in lines]
    return "\n".join(dict.fromkeys(printable))


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
            kind = words.pop() if words else "key"
            kind = re.sub("(?<!a)s$", "", re.sub("ies$", "ys", kind))
            words.append(f"{kind} {key + 1}" + (f" ({name!s:.60})" if name else ""))
        elif key != "[key]":
            words.append(f"{key!s:.60}")

    return ", ".join(words)
