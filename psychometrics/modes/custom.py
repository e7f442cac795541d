"""Anything that turns messages into text: a library, a service, a script of one's own.

Conditions
----------
All but ``parse`` as for chat models, see :mod:`psychometrics.modes.chat`. ``parse`` takes
reply, questionnaire, items, labels and orders, and returns a (status, value) for each item; by
default :func:`psychometrics.modes.replies.parse_reply`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import ClassVar

import pandas as pd

from ..asking.store import key_of, open_answers
from ..exceptions import ParameterError, RespondentError
from ..questionnaires import Questionnaire
from .conversations import CONDITIONS, batches, check_conditions, conversation, in_order
from .messages import messages
from .mode import Asking, Mode
from .replies import parse_reply


class Custom(Mode):
    """Functions that turn messages into text."""

    name = "custom"
    conditions: ClassVar = {**CONDITIONS, "parse": None}

    def identify(
        self, respondent: Callable, dtype: str | None = None, **conditions: object
    ) -> dict:
        """Say which function answers, and refuse impossible conditions.

        A function takes a list of messages (``role`` and ``content``) and returns the reply, or
        None for no reply. It is called by its attribute ``respondent_id``, else by its own name.
        Replies are stored only if it has that attribute: it promises that the same name is the same
        respondent.
        """
        if not callable(respondent):
            raise RespondentError(
                f"{respondent!r} is no function: give one that takes messages and returns text."
            )
        check_conditions(conditions)
        if conditions["parse"] is not None and not callable(conditions["parse"]):
            raise ParameterError(f"parse must be a function, got {conditions['parse']!r}.")
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
        how, name = dict(how), identity["respondent_id"]
        parse = _checked_parser(how.pop("parse") or parse_reply)
        look = how["role"], how["wording"], how["think"], how["labels"]
        messages(questionnaire, questionnaire.items[:1], *look)  # refuse before asking
        stored = None
        if identity["source"] == "function":
            stored = open_answers(store, "custom", questionnaire.id, name, {**identity, **how})
        known = dict(stored.rows["reply"]) if stored is not None and len(stored) else {}

        def reply_to(prompt: list[dict], about: dict) -> tuple[str | None, bool]:
            """Return the reply, and whether the function was called for it."""
            text = json.dumps(prompt, sort_keys=True)
            run = {"run": about["run"], "attempt": about["attempt"]}
            key = key_of(identity["fingerprint"], text, *map(str, run.values()))
            if key in known:
                return known[key], False
            began = time.perf_counter()
            reply = respondent(prompt)
            if reply is not None and not isinstance(reply, str):
                raise RespondentError(
                    f"{name} gives {type(reply).__name__} where text belongs: let it return a str, "
                    "or None for no reply."
                )
            if stored is not None and reply is not None:
                row = {**run, "items": " ".join(about["items"]), "request": text, "reply": reply}
                rows = pd.DataFrame([row], index=pd.Index([key], name="key"))
                stored.add(rows, seconds=time.perf_counter() - began)
            return reply, True

        plan = batches(questionnaire, how)
        bar.expect(sum(len(batch["items"]) for batch in plan))
        rows = []
        for batch in plan:
            talk = conversation(questionnaire, batch, name, "custom", how, parse)
            asked, called = next(talk), False
            try:
                while True:
                    reply, now = reply_to(*asked)
                    called |= now
                    asked = talk.send(reply)
            except StopIteration as end:
                rows += end.value
            (bar.update if called else bar.count_stored)(len(batch["items"]))
        if stored is not None:
            stored.close()
        return in_order(rows, questionnaire, how)


def _checked_parser(parse: Callable) -> Callable:
    """Wrap a parser so that it is refused where it does not return a pair for each item."""

    def parse_all(text, questionnaire, items, labels, orders):
        read = list(parse(text, questionnaire, items, labels, orders) or [])
        if len(read) != len(items) or not all(isinstance(r, tuple) and len(r) == 2 for r in read):
            raise ParameterError(
                f"parse must give a (status, value) for each of {len(items)} items, got {read!r}."
            )
        return read

    return parse_all
