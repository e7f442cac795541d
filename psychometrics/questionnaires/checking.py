"""Check a questionnaire's content, and name the place of each mistake."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import ValidationError

from ..exceptions import QuestionnaireError
from .model import Part

_PartT = TypeVar("_PartT", bound=Part)


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
        mistakes = error.errors(include_url=False)

    lines = []
    for mistake in mistakes:
        where = _format_place(mistake["loc"], content)
        start = f"{place}, {where}: " if where else f"{place}, "
        value = mistake["input"]
        end = f", got {value!r:.60}" if isinstance(value, str | int | float) else ""
        messages = mistake["msg"].removeprefix("Value error, ").split("\n")
        lines += [f"{start}{message}{end}." for message in messages]

    # An unprintable character could hide the rest of a line.
    lines = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in lines]
    raise QuestionnaireError("\n".join(dict.fromkeys(lines)))


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
