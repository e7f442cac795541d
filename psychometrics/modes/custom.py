"""Anything that turns messages into text: a library, a service, a script of one's own.

Conditions
----------
All but ``parse`` as for chat models, see :mod:`psychometrics.modes.chat`. ``parse`` takes
reply, questionnaire, items, labels and orders, and gives a (status, value) for each item; by
default :func:`psychometrics.modes.replies.parse_reply`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..asking.store import key_of, open_answers
from ..exceptions import ParameterError, RespondentError
from ..questionnaires import Questionnaire
from .conversations import batches, check_conditions, conversation, in_order
from .messages import messages
from .mode import Mode
from .replies import parse_reply

if TYPE_CHECKING:
    from ..asking.progress import Progress

CONDITIONS = {
    "role": "default",
    "wording": "v1",
    "think": False,
    "labels": "numeric",
    "order": "given",
    "cipher": 0,
    "reply": "lines",
    "shuffle": True,
    "batch_size": 30,
    "runs": 1,
    "ask_again": 0,
    "seed": 0,
    "parse": None,
}


def identify(respondent: Callable, dtype: str | None = None, **conditions: object) -> dict:
    """Say which function answers, and refuse impossible conditions.

    Parameters
    ----------
    respondent : callable
        Takes a list of messages (``role`` and ``content``), gives the reply; None for no reply. It
        is called by its attribute ``respondent_id``, else by its own name. Replies are kept only
        of those with that attribute: it promises that the same name is the same respondent.
    dtype : None
        Has no part in it.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    dict
        ``respondent_id, source, model, revision, mode, dtype, fingerprint``.

    Raises
    ------
    RespondentError, ParameterError
        It cannot be called, or a condition is impossible.

    Examples
    --------
    >>> def always_four(messages):
    ...     return "4"
    >>> identify(always_four)["respondent_id"]
    'always_four'
    """
    if not callable(respondent):
        raise RespondentError(
            f"{respondent!r} is no function: give one that takes messages and returns text."
        )
    how = CONDITIONS | conditions
    check_conditions(how)
    if how["parse"] is not None and not callable(how["parse"]):
        raise ParameterError(f"parse must be a function, got {how['parse']!r}.")
    given = getattr(respondent, "respondent_id", None)
    name = given or getattr(respondent, "__name__", type(respondent).__name__)
    return {
        "respondent_id": str(name),
        "source": "function" if given else "unnamed function",
        "model": str(name),
        "revision": None,
        "mode": "custom",
        "dtype": None,
        "fingerprint": key_of("custom-1", str(name)),
    }


def put(
    questionnaire: Questionnaire,
    respondent: Callable,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> pd.DataFrame:
    """Put a questionnaire to a function, and read what it returns like a chat model's reply.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent, identity
        As in :func:`identify`, and what it gave.
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
        Is moved on by a batch's statements.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    DataFrame
        As from :func:`psychometrics.modes.chat.Chat.answer_all`.

    Raises
    ------
    ParameterError
        A condition is impossible, or ``parse`` gives something else.
    RespondentError
        The function gives something that is no text.
    StoreError
        Replies cannot be written or read.

    References
    ----------
    The question_llm library's description (third document), *AdministerCustom*.
    """
    how = CONDITIONS | conditions
    parse = how.pop("parse") or parse_reply
    name = identity["respondent_id"]
    look = how["role"], how["wording"], how["think"], how["labels"]
    messages(questionnaire, questionnaire.items[:1], *look)  # refuse before asking
    kept = None
    if identity["source"] == "function":
        kept = open_answers(store, "custom", questionnaire.id, name, {**identity, **how})
    known = dict(kept.rows["reply"]) if kept is not None and len(kept) else {}

    def replied(prompt: list[dict], about: dict) -> str | None:
        text = json.dumps(prompt, sort_keys=True)
        run = str(about["run"]), str(about["attempt"])
        key = key_of(identity["fingerprint"], text, *run)
        if key in known:
            return known[key]
        about["sent"] = True
        began = time.perf_counter()
        reply = respondent(prompt)
        if reply is not None and not isinstance(reply, str):
            raise RespondentError(
                f"{name} gives {type(reply).__name__} where text belongs: let it return a str, or "
                "None for no reply."
            )
        if kept is not None and reply is not None:
            row = {"run": about["run"], "attempt": about["attempt"]}
            row |= {"items": " ".join(about["items"]), "request": text, "reply": reply}
            rows = pd.DataFrame([row], index=pd.Index([key], name="key"))
            kept.add(rows, seconds=time.perf_counter() - began)
        return reply

    def parsed(text, questionnaire, items, labels, orders):
        read = parse(text, questionnaire, items, labels, orders)
        read = list(read) if read is not None else []
        if len(read) != len(items) or not all(isinstance(r, tuple) and len(r) == 2 for r in read):
            raise ParameterError(
                f"parse must give a (status, value) for each of {len(items)} items, got {read!r}."
            )
        return read

    plan = batches(questionnaire, how)
    bar.expect(sum(len(batch["items"]) for batch in plan))
    rows = []
    for batch in plan:
        talk = conversation(questionnaire, batch, name, "custom", how, parsed)
        asked, sent = next(talk), False
        while True:
            try:
                reply = replied(*asked)
                sent |= asked[1].get("sent", False)
                asked = talk.send(reply)
            except StopIteration as end:
                rows += end.value
                break
        (bar.update if sent else bar.count_stored)(len(batch["items"]))
    if kept is not None:
        kept.close()
    return in_order(rows, questionnaire, how)


class Custom(Mode):
    """Functions that turn messages into text."""

    name, conditions = "custom", CONDITIONS
    identify, answer = staticmethod(identify), staticmethod(put)
