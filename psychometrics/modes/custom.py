"""Anything that turns messages into text: a library, a service, a script of one's own.

Conditions
----------
All but ``parse`` as for chat models, see :mod:`psychometrics.modes.chat`. ``parse`` takes
reply, questionnaire, items, labels and orders, and returns for each item a (status, value), or a
dict with the probability of each label, such as ``{"A": 0.7, "B": 0.3}``; by
default :func:`psychometrics.modes.replies.parse_reply`. Probabilities are divided by their sum.
They give the expected value, and of a questionnaire with categories one row per option, as
``choose="expected"`` does in mode ``options``.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import pandas as pd

from ..exceptions import ParameterError, RespondentError
from ..questionnaires import Questionnaire
from ..store import StoredAnswers, key_of
from ..store.replies import StoredReplies
from .conversations import ConversationConditions, ConversationMode
from .messages import option_labels
from .mode import Asking
from .replies import parse_reply


class _CustomConditions(ConversationConditions):
    """The conditions of a conversation, and what reads a reply."""

    parse: Callable[..., Any] | None = None


class Custom(ConversationMode):
    """Functions that turn messages into text."""

    conditions_type = _CustomConditions

    def identify(
        self, respondent: Callable, dtype: str | None = None, **conditions: object
    ) -> dict:
        """Say which function answers.

        A function takes a list of messages (``role`` and ``content``) and returns the reply, or
        None for no reply. It is called by its attribute ``respondent_id``, else by its own name.
        Replies are stored only if it has that attribute: it promises that the same name is the same
        respondent.
        """
        if not callable(respondent):
            raise RespondentError(f"{respondent!r} is no function from messages to text: give one.")
        given = getattr(respondent, "respondent_id", None)
        name = str(given or getattr(respondent, "__name__", type(respondent).__name__))
        source = "function" if given else "unnamed function"
        return self._who(name, source, key_of("custom-1", name), name)

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Put a questionnaire to a function, and read what it returns like a chat model's reply.

        References
        ----------
        The question_llm library's description (third document), *AdministerCustom*.
        """
        respondent, identity, store, bar, how = asking
        how = dict(how)
        name = identity["respondent_id"]
        talks = self.talks(questionnaire, asking, _checked_parser(how.pop("parse") or parse_reply))
        bar.expect(sum(len(batch["items"]) for batch, _ in talks))
        rows = []
        replies = None

        def reply_to(prompt: list[dict], about: dict) -> tuple[str | None, bool]:
            """Return the reply, and whether the function was called for it."""
            text = json.dumps(prompt, sort_keys=True)
            key = replies.key(text, about) if replies else ""
            if replies and key in replies.known:
                return replies.known[key]["reply"], False

            began = time.perf_counter()
            reply = respondent(prompt)
            if reply is not None and not isinstance(reply, str):
                raise RespondentError(
                    f"{name} gives {type(reply).__name__} where text belongs: return a str or None."
                )

            if reply is not None:  # a lone surrogate could not be stored
                reply = reply.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

            if replies and reply is not None:
                new = {key: (about, text, {"reply": reply})}
                replies.add(new, time.perf_counter() - began)
                reply = replies.known[key]["reply"]

            return reply, True

        with contextlib.ExitStack() as stack:
            if identity["source"] == "function":
                stored = StoredAnswers(store, "custom", questionnaire.id, name, {**identity, **how})
                replies = StoredReplies(stack.enter_context(stored), identity["fingerprint"])

            for talk in talks:  # one after the other, as the bar moves on at the end of each
                rows += self.hold([talk], asking, lambda turns: [reply_to(*turn) for turn in turns])

        if any(isinstance(row["value"], dict) for row in rows):
            rows = [one for row in rows for one in _weighed(row, questionnaire)]

        return self.table(rows, questionnaire, how)


def _checked_parser(parse: Callable) -> Callable:
    """Wrap a parser so that it is refused where it does not return a pair or dict for each item."""

    def parse_all(text, questionnaire, items, labels, orders):
        read = list(parse(text, questionnaire, items, labels, orders) or [])
        for at, (item, order) in enumerate(zip(items, orders, strict=True)):
            if at < len(read) and isinstance(read[at], dict):
                read[at] = _probabilities(read[at], questionnaire.choices(item), labels, order)
        if len(read) != len(items) or not all(isinstance(r, tuple) and len(r) == 2 for r in read):
            raise ParameterError(
                f"parse must give {len(items)} (status, value) or probabilities, got {read!r}."
            )
        return read

    return parse_all


def _probabilities(given: dict, options, labels: str, order: tuple[int, ...]) -> tuple[str, object]:
    """Status and probability of each value, from the probabilities of labels."""
    names = dict(zip(option_labels(options, labels), order, strict=True))
    shares = {options[names[str(key)]].value: p for key, p in given.items() if str(key) in names}
    if len(shares) < len(given) or not all(0 <= p < float("inf") for p in shares.values()):
        raise ParameterError(f"parse must give numbers from 0 for {', '.join(names)}, got {given}.")
    total = sum(shares.values())
    return ("ok", {v: p / total for v, p in shares.items()}) if total else ("unreadable", None)


def _weighed(row: dict, questionnaire: Questionnaire) -> list[dict]:
    """An answer by probabilities as its expected value, or as a row for each option."""
    shares = row["value"] if isinstance(row["value"], dict) else {row["value"]: 1.0}
    if row["status"] != "ok" or not questionnaire.categories:
        expected = sum(v * p for v, p in shares.items()) if row["status"] == "ok" else None
        return [row | {"value": expected}]
    return [row | {"value": value, "probability": float(p)} for value, p in shares.items()]
