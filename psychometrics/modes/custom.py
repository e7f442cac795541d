"""Custom respondents: any function from messages to text, such as a call to a service.

Conditions
----------
All conditions of chat models (:mod:`psychometrics.modes.chat`) and ``parse``, a function of reply,
questionnaire, items, labels and orders. For each item the function returns a pair (status, value),
or a dict with the probability of each label, such as ``{"A": 0.7, "B": 0.3}``; the default is
:func:`psychometrics.modes.replies.parse_reply`. Probabilities are divided by their sum. The answer
is then the expected value or, for a questionnaire with categories, one row per option, as
``choose="expected"`` does in mode ``options``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from ..exceptions import ParameterError, RespondentError
from ..questionnaires import Questionnaire
from ..store import StoredAnswers, key_of
from ..store.replies import Reply, StoredReplies, Turn, well_formed
from .conversations import _ConversationConditions, _ConversationMode, _Parser, _Row
from .messages import option_labels
from .mode import Asking, Identity
from .replies import parse_reply


class _CustomConditions(_ConversationConditions):
    """The conditions of a conversation, and the function that reads a reply."""

    parse: Callable[..., Any] | None = None


class Custom(_ConversationMode):
    """Respondents that are functions from messages to text."""

    conditions_type = _CustomConditions

    def identify(
        self, respondent: Callable[..., Any], dtype: str | None = None, **conditions: Any
    ) -> Identity:
        """Return the identity of the function that answers.

        A function takes a list of messages (``role`` and ``content``) and returns the reply, or
        None for no reply. The respondent's name is the function's attribute ``respondent_id``, or
        else the function's own name. Replies are stored only if the function has that attribute,
        which promises that the same name always means the same respondent.
        """
        if not callable(respondent):
            raise RespondentError(f"Give a function from messages to text, not {respondent!r}.")
        promised = getattr(respondent, "respondent_id", None)
        name = str(promised or getattr(respondent, "__name__", type(respondent).__name__))
        source = "function" if promised else "unnamed function"
        fingerprint = key_of("custom-1", name)
        return Identity(name, source, name, mode=self.name, fingerprint=fingerprint)

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Put a questionnaire to a function, and read its replies like those of a chat model.

        References
        ----------
        The description of the question_llm library (third document), *AdministerCustom*.
        """
        _, identity, store, bar, conditions = asking
        conditions = dict(conditions)
        parse = _check_parser(conditions.pop("parse") or parse_reply)
        talks = self.talks(questionnaire, asking, parse)
        bar.expect(conditions["runs"] * len(questionnaire.items))
        rows: list[_Row] = []

        with contextlib.ExitStack() as stack:
            replies = None
            if identity.source == "function":
                manifest = {**identity, **conditions}
                name = identity.respondent_id
                stored = StoredAnswers(store, "custom", questionnaire.id, name, manifest)
                replies = StoredReplies(stack.enter_context(stored), identity.fingerprint)

            def reply_to_all(turns: list[Turn]) -> list[Reply]:
                return [_request_reply(turn, asking, replies) for turn in turns]

            for talk in talks:  # in turn, so that the bar advances after each
                rows += self.hold([talk], asking, reply_to_all)

        if any(isinstance(row["value"], dict) for row in rows):
            rows = [option_row for row in rows for option_row in _weigh_options(row, questionnaire)]

        return self.table(rows, questionnaire, conditions)


def _request_reply(turn: Turn, asking: Asking, replies: StoredReplies | None) -> Reply:
    """Return the stored reply to a turn, or else call the function."""
    text = json.dumps(turn.messages, sort_keys=True)
    key = replies.key(text, turn) if replies else ""
    if replies and key in replies.by_key:
        return replies.by_key[key]

    began = time.perf_counter()
    written = asking.respondent(turn.messages)
    if written is None:
        return Reply(None, is_new=True)

    if not isinstance(written, str):
        raise RespondentError(
            f"{asking.identity.respondent_id} returns {type(written).__name__} instead of text: "
            "return a str or None."
        )

    reply = Reply(well_formed(written))
    if replies:
        replies.add({key: (turn, text, {"reply": reply.text})}, time.perf_counter() - began)
        reply = replies.by_key[key]

    return dataclasses.replace(reply, is_new=True)


def _check_parser(parse: _Parser) -> _Parser:
    """Wrap a parser to check that it returns a pair or a dict for each item."""

    def parse_all(text: str, *question: Any) -> list[tuple[str, Any]]:
        questionnaire, items, labels, orders = question
        answers: list[Any] = list(parse(text, *question) or [])
        for place, (item, order) in enumerate(zip(items, orders, strict=True)):
            if place < len(answers) and isinstance(answers[place], dict):
                options = questionnaire.choices(item)
                values = [options[i].value for i in order]
                by_label = dict(zip(option_labels(options, labels), values, strict=True))
                answers[place] = _share_options(answers[place], by_label)

        are_pairs = all(isinstance(answer, tuple) and len(answer) == 2 for answer in answers)
        if len(answers) != len(items) or not are_pairs:
            raise ParameterError(
                f"parse must return {len(items)} (status, value) or probabilities, got {answers!r}."
            )
        return answers

    return parse_all


def _share_options(
    by_label: Mapping[Any, float], values: Mapping[str, float | str]
) -> tuple[str, dict[float | str, float] | None]:
    """Return the status and the probability of each value, given probabilities of labels."""
    shares = {values[str(k)]: share for k, share in by_label.items() if str(k) in values}
    are_numbers = all(0 <= share < float("inf") for share in shares.values())
    if len(shares) < len(by_label) or not are_numbers:
        raise ParameterError(
            f"parse must return numbers of at least 0 for {', '.join(values)}, got {by_label}."
        )

    total = sum(shares.values())
    if not 0 < total < float("inf"):
        return "unreadable", None
    return "ok", {value: share / total for value, share in shares.items()}


def _weigh_options(row: _Row, questionnaire: Questionnaire) -> list[_Row]:
    """Turn an answer given as probabilities into its expected value, or a row for each option."""
    shares = row["value"] if isinstance(row["value"], dict) else {row["value"]: 1.0}
    if row["status"] != "ok":
        return [row | {"value": None}]
    if not questionnaire.categories:
        return [row | {"value": sum(value * share for value, share in shares.items())}]
    return [row | {"value": value, "probability": float(share)} for value, share in shares.items()]
