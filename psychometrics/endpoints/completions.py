"""Read the content of an endpoint's replies: text, finish reason, and numbers of tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..store.replies import well_formed

# Greatest sum of probabilities of distinct tokens: 1, and the rounding in bfloat16.
_MOST_PROBABILITY = 1.02
# Fields of a reply that hold its text, in the order in which they are read.
_FIELDS = ("output", "message", "content", "text", "refusal")
_THOUGHTS = ("reasoning", "thinking", "redacted_thinking", "thought")


@dataclass(eq=False)
class _NoReply(Exception):
    """The error for a request that got no reply and may be sent again.

    Attributes
    ----------
    why : str
        The reason, in words for the user.
    after : float, optional
        Number of seconds to wait, if the endpoint states one.
    slow : bool
        Whether the request came too soon.
    paid : bool
        Whether the endpoint may have replied, so that the request may have a cost.
    unreachable : bool
        Whether there was no connection.
    busy : bool
        Whether the endpoint says that it will reply later.
    unreadable : bool
        Whether the endpoint replied without a completion, as it will probably do again.
    status : str
        The status that the unanswered items get.
    """

    why: str
    after: float | None = None
    slow: bool = False
    paid: bool = False
    unreachable: bool = False
    busy: bool = False
    unreadable: bool = False
    status: str = "no_reply"

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class _Completion:
    """A reply of an endpoint.

    Parameters
    ----------
    text : str
    finish_reason : str, optional
        The reason why the reply ended, if the endpoint gives one.
    usage : mapping, optional
        The endpoint's count of tokens; None if it does not count the request's tokens.
    tokens : (int, int)
        Numbers of tokens in the request and in the reply; 0 if the endpoint does not count tokens.
    model : str, optional
        The model that replied, if the endpoint names it.
    """

    text: str
    finish_reason: str | None
    usage: dict[str, Any] | None
    tokens: tuple[int, int]
    model: str | None = None


def _read_completion(content: Any, logprobs: bool = False) -> _Completion | None:
    """Read the JSON of a reply; return None if it is not a completion.

    Text and reason are those of :func:`read_message`; a content filter's error is a reply without
    text. If ``logprobs`` were requested, the text is the first token's log-probabilities.

    Raises
    ------
    NoReply
        The completion has no choice.
    """
    if is_filtered(content):
        return _Completion("", "content_filter", None, (0, 0))
    if isinstance(content, dict) and content.get("choices") == []:
        raise _NoReply("a reply without choices", paid=True, unreadable=True, status="no_choice")

    try:
        choice = content["choices"][0]
        if not choice.get("message"):
            return None
        text, reason = read_message(choice)
    except (LookupError, TypeError, AttributeError, RecursionError):
        return None

    if logprobs and choice.get("logprobs") is not None:
        text = json.dumps(_read_first_tokens(choice["logprobs"]))

    usage = content.get("usage")
    model = content.get("model")
    counts = usage if isinstance(usage, dict) else {}
    tokens = _read_count(counts.get("prompt_tokens")), _read_count(counts.get("completion_tokens"))

    return _Completion(
        well_formed(text),
        None if reason is None else well_formed(reason),
        usage if tokens[0] else None,
        tokens,
        well_formed(model) if isinstance(model, str) else None,
    )


def is_filtered(content: object) -> bool:
    """Return whether a response is the error of a content filter, as Azure writes it.

    Examples
    --------
    >>> is_filtered({"error": {"code": "content_filter", "message": "The response was filtered."}})
    True
    """
    error = content.get("error") if isinstance(content, dict) else None
    return isinstance(error, dict) and error.get("code") == "content_filter"


def read_message(choice: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the text of a reply without its reasoning, and the reason why the reply ended.

    If the reply only refuses, the text is the refusal and the reason ``refusal``; if it only calls
    tools, they are the calls and ``tool_call``.

    Parameters
    ----------
    choice : mapping
        A choice of a chat completion, or a whole reply in the forms of other APIs.

    Examples
    --------
    >>> read_message({"message": {"content": "1: 4"}, "finish_reason": "stop"})
    ('1: 4', 'stop')
    >>> read_message({"content": [{"type": "refusal", "refusal": "No."}]})
    ('No.', 'refusal')
    """
    inner = choice.get("message")
    message = inner if isinstance(inner, dict) else choice
    written = {"text": "", "refusal": ""}
    for name, text in _list_texts(message):
        kind = "refusal" if name == "refusal" else "text"
        ends_amid_line = written[kind][-1:].strip() and text[:1].strip()
        written[kind] += f"\n{text}" if ends_amid_line else text  # parts are paragraphs

    text = written["text"]
    calls = message.get("tool_calls") or message.get("function_call")

    if not text.strip() and written["refusal"]:
        return written["refusal"], "refusal"
    if not text.strip() and calls:
        return json.dumps(calls), "tool_call"  # whatever else the endpoint calls it

    reason = choice.get("finish_reason") or choice.get("stop_reason")
    if choice.get("incomplete_details"):
        reason = choice["incomplete_details"].get("reason")
    return text, None if reason is None else str(reason)


def _list_texts(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a part of a reply, each with the name of its field."""
    if isinstance(content, list):
        for each in content:
            yield from _list_texts(each, name)
    elif isinstance(content, str):
        yield name, content
    elif isinstance(content, dict):
        if content.get("type") in _THOUGHTS or content.get("thought"):
            return

        fields = [field for field in _FIELDS if content.get(field) is not None]
        for field in fields:
            yield from _list_texts(content[field], field)

        if not fields and name == "content" and "type" not in content:
            yield name, json.dumps(content)
    elif content is not None:
        yield name, json.dumps(content)


def _read_first_tokens(logprobs: Any) -> dict[str, float]:
    """Return the likeliest first tokens with log-probabilities, or none if malformed.

    Tokens that have the same text, such as a letter and its byte in llama.cpp, are added.
    """
    tokens: dict[str, float] = {}
    try:
        for row in logprobs["content"][0]["top_logprobs"]:
            token = well_formed(row["token"])
            logprob = float(row["logprob"])
            if token in tokens:
                low, high = sorted((tokens[token], logprob))
                logprob = high + math.log1p(math.exp(low - high))
            tokens[token] = logprob

        total = sum(math.exp(logprob) for logprob in tokens.values())
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return {}

    are_finite = all(map(math.isfinite, tokens.values()))
    return tokens if are_finite and total <= _MOST_PROBABILITY else {}


def _read_count(count: object) -> int:
    """Return a number of tokens, or 0 if the value is not a number."""
    if isinstance(count, bool) or not isinstance(count, int | float):
        return 0
    return int(count) if 0 < count < 1e12 else 0
