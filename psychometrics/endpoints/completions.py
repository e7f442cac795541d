"""Read the content of an endpoint's replies: text, finish reason, and numbers of tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..store.replies import well_formed
from .client import _NoReply

# Greatest sum of probabilities of distinct tokens: 1, and the rounding in bfloat16.
_MOST_PROBABILITY = 1.02


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
    """

    text: str
    finish_reason: str | None
    usage: dict[str, Any] | None
    tokens: tuple[int, int]


def _read_completion(content: Any, logprobs: bool = False) -> _Completion | None:
    """Read the JSON of a reply; return None if it is not a completion.

    For a reply that only calls tools, the text consists of the calls, and the finish reason is
    ``tool_call``. If ``logprobs`` were requested, the text is the first token's log-probabilities.

    Raises
    ------
    NoReply
        The completion has no choice.
    """
    if isinstance(content, dict) and content.get("choices") == []:
        raise _NoReply("a reply without choices", paid=True, unreadable=True, status="no_choice")

    try:
        choice = content["choices"][0]
        message = choice.get("message") or {"content": choice["text"]}
        written = message.get("content")
    except (LookupError, TypeError, AttributeError):
        return None

    reason = choice.get("finish_reason")
    calls = message.get("tool_calls") or message.get("function_call")

    if written is None:
        written = message.get("refusal") or ""

    if not written and calls:
        written = json.dumps(calls)
        reason = "tool_call"  # endpoints write tool_calls, whatever else is in the reply

    text = _as_text(written)
    if logprobs and choice.get("logprobs") is not None:
        text = json.dumps(_first_tokens(choice["logprobs"]))

    usage = content.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    tokens = _whole(counts.get("prompt_tokens")), _whole(counts.get("completion_tokens"))

    return _Completion(
        well_formed(text),
        None if reason is None else well_formed(str(reason)),
        usage if tokens[0] else None,
        tokens,
    )


def _as_text(written: Any) -> str:
    """Return the content of a message, which may be a list of parts, as text."""
    if isinstance(written, list):
        parts = [part.get("text", "") if isinstance(part, dict) else part for part in written]
        return "".join(part if isinstance(part, str) else json.dumps(part) for part in parts)
    return written if isinstance(written, str) else json.dumps(written)


def _first_tokens(logprobs: Any) -> dict[str, float]:
    """Return the likeliest first tokens with log-probabilities, or none if malformed."""
    try:
        if "content" not in logprobs:  # the form for a text to continue
            listed: Mapping[str, Any] = logprobs["top_logprobs"][0]
            tokens = {well_formed(token): float(value) for token, value in listed.items()}
        else:
            rows = logprobs["content"][0]["top_logprobs"]
            tokens = {well_formed(row["token"]): float(row["logprob"]) for row in rows}

        total = sum(math.exp(logprob) for logprob in tokens.values())
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return {}

    return tokens if total <= _MOST_PROBABILITY else {}  # also empty if one is not a number


def _whole(count: object) -> int:
    """Return a number of tokens, or 0 if the value is not a number."""
    if isinstance(count, bool) or not isinstance(count, int | float):
        return 0
    return int(count) if 0 < count < 1e12 else 0
