"""Chat templates: programs by a model's makers that turn messages into one text.

They run in a sandbox without access to this machine. A sandbox does not limit time or size, so a
template that computes large numbers or texts is refused when it is loaded, and an endless template
is stopped while it runs.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..exceptions import IncompleteModelError, RespondentError, naming_extras

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Time limit for one conversation; templates in use need milliseconds.
_SECONDS = 5.0
# Most digits of a number in a template.
_DIGITS = 6
# Greatest product of numbers in a template.
_LARGEST = 10**8
# Most repetitions of a text that a template may write; a field's width is limited, too.
_LONGEST = 10**4
# Marks of transformers around the text of a reply, which is not marked here.
_GENERATION = re.compile(r"{%-?\s*(end)?generation\s*-?%}")
# Most characters that a template may add to a conversation, besides ten times its length.
_MOST_SIGNS = 10**6


def _check_template(name: str, text: str) -> None:
    """Refuse a chat template whose numbers are so large that running it may never end.

    Parameters
    ----------
    name : str
        Name of the model, for the error message.
    text : str
        The template.

    Raises
    ------
    RespondentError
        The template is refused; the message gives the line and the number. A template that cannot
        be parsed is not refused here, but reported when it runs.

    Examples
    --------
    >>> _check_template("a model", "{{ 'x' * 99999 * 999 }}")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.IncompleteModelError: a model has a chat template that computes ...
    """
    from jinja2 import Environment, TemplateSyntaxError, nodes

    environment = Environment(extensions=["jinja2.ext.loopcontrols"])
    large: list[tuple[str, int]] = []
    for line, kind, value in environment.lex(text):
        is_long = kind == "integer" and len(value) > _DIGITS
        wide = re.search(r"[%:][-+ #0<>=^]*\d{5,}", value) if kind == "string" else None
        if is_long or (kind == "operator" and value == "**"):
            large.append((value, line))
        elif wide:
            large.append((wide[0], line))

    with suppress(TemplateSyntaxError):
        for product in environment.parse(_GENERATION.sub("", text)).find_all(nodes.Mul):
            factors = [constant.value for constant in product.find_all(nodes.Const)]
            numbers = [abs(factor) for factor in factors if isinstance(factor, int | float)]
            repeats = any(isinstance(factor, str) for factor in factors)
            if math.prod(numbers) > (_LONGEST if repeats else _LARGEST):
                large.append(("*", product.lineno))

    for value, line in large[:1]:
        raise IncompleteModelError(
            f"{name} has a chat template that computes with {value} (line {line}), too large a "
            "number for any template, so it may never end: choose another model."
        )


def fill_template(
    tokenizer: PreTrainedTokenizerBase, conversation: Sequence[dict[str, str]]
) -> str:
    """Return the text of a conversation, ready for the reply.

    The template of a vision-language model may accept texts only as parts of a message. Texts are
    passed in this form if the user's last text would otherwise be missing.

    Raises
    ------
    RespondentError
        The template runs too long, or returns too long a text.
    jinja2.exceptions.TemplateError
        The template refuses the conversation.
    """
    from jinja2.exceptions import TemplateError

    name = getattr(tokenizer, "name_or_path", "") or "This model"

    def fill(messages: list[Any]) -> str:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return str(text)

    last = conversation[-1]["content"].strip()
    with _limit_time(name):
        text = fill(list(conversation))
        if last not in text:
            parts = [
                message | {"content": [{"type": "text", "text": message["content"]}]}
                for message in conversation
            ]

            try:
                typed = fill(parts)
            except (TemplateError, AttributeError, TypeError, ValueError):
                typed = ""  # the template does not accept parts

            text = typed if last in typed else text

    length = sum(len(message["content"]) for message in conversation)
    if len(text) > _MOST_SIGNS + 10 * length:
        raise IncompleteModelError(
            f"{name} has a chat template that turns one conversation into {len(text):,} "
            "characters: choose another model."
        )

    return text


def render_template(
    template: str, messages: list[dict[str, Any]], special_tokens: Mapping[str, str]
) -> str:
    """Return the text that a chat template makes of messages, as transformers would return it.

    Parameters
    ----------
    template : str
    messages : list of dict
    special_tokens : mapping
        Texts by name, such as ``bos_token``.

    Raises
    ------
    jinja2.exceptions.TemplateError
        The template is malformed, or refuses the messages.

    Examples
    --------
    >>> template = "{% for m in messages %}{{ bos_token }}{{ m.content }}{% endfor %}"
    >>> render_template(template, [{"role": "user", "content": "Hello."}], {"bos_token": "<s>"})
    '<s>Hello.'
    """
    with naming_extras():
        from jinja2.exceptions import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = functools.partial(json.dumps, ensure_ascii=False)
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    compiled = environment.from_string(_GENERATION.sub("", template))
    return compiled.render(
        messages=messages,
        tools=None,
        documents=None,
        add_generation_prompt=True,
        **special_tokens,
    )


@contextmanager
def _limit_time(name: str) -> Iterator[None]:
    """Stop the code in the block at its next line of Python after the time limit."""
    end = time.monotonic() + _SECONDS

    def watch(frame: FrameType, event: str, argument: object) -> Any:
        if time.monotonic() > end:
            raise IncompleteModelError(
                f"{name} has a chat template that ran longer than {_SECONDS:g} s: "
                "choose another model."
            )
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    except MemoryError as error:
        raise RespondentError.of(name, error) from error
    finally:
        sys.settrace(before)
