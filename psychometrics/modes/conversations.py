"""Conversations about a questionnaire: its batches of statements, and how each batch is asked.

A conversation is a generator: it yields messages, is sent the reply, and returns the answers. So
whoever holds the connection (an endpoint's queue, a model on this machine, a function) decides how
many conversations go on at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from ..exceptions import ParameterError
from ..questionnaires import Item, Questionnaire
from ..questionnaires.answers import tidy
from .messages import LABELS, as_filed, caesar, messages, option_labels
from .mode import Asking, Conditions, Mode, Runs
from .replies import parse_reply

# Conditions that make the messages.
_LOOK = ("role", "wording", "think", "labels", "reply", "cipher", "demonstrations")
ENDED_WITHOUT_ANSWER = {"length": "cut_off", "content_filter": "refused", "tool_call": "tool_call"}
"""Statuses of statements without an answer, by the reason why their reply ended early."""
_Conversation = Generator[tuple[list[dict], dict], str | None, list[dict]]


class ConversationConditions(Conditions):
    """What a conversation is made of, and how often it is held."""

    role: Any = "default"
    wording: Any = None
    think: bool = False
    labels: Literal[LABELS] = "numeric"
    order: Literal["given", "reversed", "shuffled"] = "given"
    cipher: int = 0
    reply: Literal["lines", "json", "json_schema"] = "lines"
    shuffle: bool = True
    batch_size: PositiveInt = 30
    history: bool = False
    demonstrations: Annotated[int, Field(ge=0, le=4)] = 0
    runs: Runs = 1
    repeats: Runs = 1
    ask_again: NonNegativeInt = 0
    seed: NonNegativeInt = 0
    log: bool = False


class ConversationMode(Mode):
    """A mode whose respondents are put messages and reply with text."""

    conditions_type = ConversationConditions
    sends = "messages"
    needs_options = True

    def complete(self, given: dict) -> dict:
        """Return all conditions; refuse those that do not fit together."""
        how = super().complete(given)
        if how["reply"] == "json_schema" and how["cipher"]:
            raise ParameterError("A reply in cipher fits no schema: leave one of both out.")
        return how

    def check(self, questionnaire: Questionnaire, identity: dict, conditions: dict) -> None:
        """Refuse a role, a wording or labels that the messages cannot have."""
        super().check(questionnaire, identity, conditions)
        how = as_filed(questionnaire, conditions)
        messages(questionnaire, questionnaire.items[:1], **{name: how[name] for name in _LOOK})

    def talks(
        self, questionnaire: Questionnaire, asking: Asking, parse: Callable = parse_reply
    ) -> list[tuple[dict, _Conversation]]:
        """Split all runs into batches of items, and begin a conversation about each.

        Parameters
        ----------
        questionnaire : Questionnaire
        asking : Asking
        parse : callable
            Reads replies, as :func:`psychometrics.modes.replies.parse_reply` does.

        Returns
        -------
        list of (dict, generator)
            A batch is its ``run`` and ``items``, a list of (item, order of options, place from 1).
            A conversation asks a batch, then what is left of it, at most ``ask_again`` more times;
            with ``history`` it asks all batches of a run, each with what was said before.
            It yields what to send, and what that is about (``run, attempt, items``, and
            ``response_format`` if the reply has a schema). Send in the reply, or None if there is
            none; set its ``about["finish_reason"]``, ``about["unasked"]`` if it was not asked for,
            and ``about["status"]`` if there is none for a reason of its own. It returns one row per
            item.

        Raises
        ------
        ParameterError
            The role, the wording or the labels are unknown.
        """
        self.check(questionnaire, asking.identity, asking.conditions)
        who = asking.identity["respondent_id"]
        how = as_filed(questionnaire, asking.conditions)
        batches = _batches(questionnaire, how)
        rounds = [[batch] for batch in batches]

        if how["history"]:
            rounds = [[b for b in batches if b["run"] == run] for run in range(1, how["runs"] + 1)]

        talks = []
        for part in rounds:
            whole = {"run": part[0]["run"], "items": [i for batch in part for i in batch["items"]]}
            talk = _in_turn(questionnaire, part, (who, self.name), how, parse)
            talks.append((whole, talk))

        return talks

    def preview(self, questionnaire: Questionnaire, conditions: dict) -> pd.DataFrame:
        """Return the messages of the first attempt at all statements, without a respondent.

        Returns
        -------
        DataFrame
            A row for each message: ``run``, ``request`` (from 1), ``items`` that it asks, ``role``
            (``text`` where a base model goes on from it) and ``content``. With ``history`` the
            earlier messages and replies of a run come on top.

        Examples
        --------
        >>> from psychometrics.modes import mode_named
        >>> from psychometrics.questionnaires import load_questionnaire
        >>> sent = mode_named("chat").preview(load_questionnaire("ipip20"), {"batch_size": 10})
        >>> sent["role"].tolist()
        ['system', 'user', 'system', 'user']
        """
        how = self.complete(conditions)
        asking = Asking(None, {"respondent_id": ""}, None, None, how)
        rows = []
        number = 0

        for _, talk in self.talks(questionnaire, asking):
            asked = next(talk)
            while asked is not None:
                prompt, about = asked
                number += 1
                if how.get("raw"):
                    text = "\n\n".join(part["content"] for part in prompt)
                    prompt = [{"role": "text", "content": text}]

                request = {
                    "run": about["run"],
                    "request": number,
                    "items": " ".join(about["items"]),
                }
                rows += [request | message for message in prompt]
                about["unasked"] = True

                try:
                    asked = talk.send(None)
                except StopIteration:
                    asked = None

        return pd.DataFrame(rows)

    def hold(
        self,
        talks: list[tuple[dict, _Conversation]],
        asking: Asking,
        ask: Callable[[list[tuple[list[dict], dict]]], list[tuple[str | None, bool]]],
    ) -> list[dict]:
        """Hold conversations to their ends, one reply of each at a time; return a row per item.

        Parameters
        ----------
        talks : list of (dict, generator)
            As :meth:`talks` returns them.
        asking : Asking
            Its bar moves on at the end of a conversation.
        ask : callable
            From what the conversations yield to each reply, and whether it was asked for now.
        """
        rows = []
        turns = [(batch, talk, next(talk), False) for batch, talk in talks]
        while turns:
            replies = ask([asked for _, _, asked, _ in turns])
            left = []
            for (batch, talk, _, sent), (reply, now) in zip(turns, replies, strict=True):
                try:
                    left.append((batch, talk, talk.send(reply), sent or now))
                except StopIteration as end:
                    move_on = asking.bar.update if sent or now else asking.bar.count_stored
                    move_on(len(batch["items"]))
                    rows += end.value

            turns = left

        return rows

    def table(self, rows: list[dict], questionnaire: Questionnaire, how: dict) -> pd.DataFrame:
        """Return the rows of all conversations tidily, by run and in the questionnaire's order."""
        how = as_filed(questionnaire, how)
        place = {item.id: i for i, item in enumerate(questionnaire.items)}
        table = tidy(sorted(rows, key=lambda r: (r["run"], place[r["item_id"]])), questionnaire)
        shown = ("role", "wording", "think", "labels", "order", "cipher", "reply", "temperature",
                 "constrained")  # fmt: skip
        sent = ("top_p", "reasoning_effort", "sampling_seed", "body")  # where they are given
        shown += tuple(name for name in sent if how.get(name) is not None)
        return table.assign(**{name: how[name] for name in shown if name in how})


def _in_turn(
    questionnaire: Questionnaire, batches: list[dict], who: tuple, how: dict, parse: Callable
) -> _Conversation:
    """Hold the conversation that :meth:`ConversationMode.talks` describes."""
    said = []
    rows = []
    for batch in batches:
        rows += yield from _conversation(questionnaire, batch, who, how, parse, said)
    return rows


def _conversation(
    questionnaire: Questionnaire, batch: dict, who: tuple, how: dict, parse: Callable, said: list
) -> _Conversation:
    """Ask a batch; what was said before goes with it, and what is said now is added."""
    left = batch["items"]
    rows = {}
    look = {name: how[name] for name in _LOOK}

    for attempt in range(1, how["ask_again"] + 2):
        items = [item for item, _, _ in left]
        orders = [order for _, order, _ in left]
        about = {"run": batch["run"], "attempt": attempt, "items": [item.id for item in items]}
        if how["reply"] == "json_schema":
            about["response_format"] = _reply_schema(
                questionnaire, items, how["labels"], how["think"]
            )

        prompt = messages(questionnaire, items, orders=orders, **look)
        if said:
            prompt = [*said, prompt[-1]]

        reply = yield prompt, about
        if how["history"] and reply is not None:
            said[:] = [*prompt, {"role": "assistant", "content": reply}]

        if reply is None:
            read = [(status_without_reply(about), None)] * len(items)
        else:
            text = caesar(reply, -how["cipher"]) if how["cipher"] else reply
            asked = questionnaire, items, how["labels"], orders
            read = _read(text, about.get("finish_reason"), parse, asked)

        for part, (status, value) in zip(left, read, strict=True):
            row = {"respondent_id": who[0], "mode": who[1], "run": batch["run"]}
            row |= _answer(*part, status, value) | {"attempts": attempt, "raw": reply}
            if how["log"]:
                row["sent"] = json.dumps(prompt, ensure_ascii=False)

            rows[row["item_id"]] = row

        left = [part for part in left if rows[part[0].id]["status"] != "ok"]
        if not left or reply is None:
            break

    return list(rows.values())


def _answer(item: Item, order: Sequence[int], position: int, status: str, value: object) -> dict:
    shown = " ".join(str(number + 1) for number in order)
    row = {"item_id": item.id, "value": value, "status": status}
    return row | {"position": position, "options": shown}


def status_without_reply(about: dict) -> str:
    """Return why there is no reply: it was not asked for, none came, or it had no choice."""
    if about.get("unasked"):
        return "unasked"
    return about.get("status", "no_reply")


def _read(text: str, finish_reason: str | None, parse: Callable, asked: tuple) -> list[tuple]:
    """Read a reply; what it left out when it was ended early has the status of that ending."""
    read = parse(text, *asked)
    if finish_reason not in ENDED_WITHOUT_ANSWER:
        return read

    rest = ENDED_WITHOUT_ANSWER[finish_reason], None
    if finish_reason == "tool_call":
        return [rest] * len(read)

    # Its last line may be unfinished: "1:" is not the label 1.
    whole = parse(text.rpartition("\n")[0], *asked)
    results = []
    for done, seen in zip(whole, read, strict=True):
        if done[0] == "ok":
            results.append(done)
        else:
            results.append(seen if seen[0] == "refused" else rest)

    return results


def _batches(questionnaire: Questionnaire, how: dict) -> list[dict]:
    """Split all runs into batches of items, each with its order of options and its place."""
    plan = []
    count = len(questionnaire.items)

    for run in range(1, how["runs"] + 1):
        # An order of its own, whatever the number of runs; with repeats several share it.
        rng = np.random.default_rng([how["seed"], (run - 1) // how["repeats"] + 1])
        places = rng.permutation(count) if how["shuffle"] else range(count)
        counts = {len(questionnaire.choices(item)) for item in questionnaire.items}
        drawn = {n: _order(how["order"], n, rng) for n in sorted(counts)}
        items = []
        for position, place in enumerate(places, start=1):
            item = questionnaire.items[int(place)]
            items.append((item, drawn[len(questionnaire.choices(item))], position))

        for start in range(0, count, how["batch_size"]):
            plan.append({"run": run, "items": items[start : start + how["batch_size"]]})

    return plan


def _order(kind: str, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Return which option is shown at which place: as given, reversed or shuffled."""
    if kind == "shuffled":
        return tuple(rng.permutation(count).tolist())
    return tuple(range(count)[::-1] if kind == "reversed" else range(count))


def _reply_schema(
    questionnaire: Questionnaire, items: Sequence[Item], labels: str, think: bool
) -> dict:
    """Return the ``response_format`` of a request to an OpenAI-compatible endpoint.

    It is an object with a key for each statement's number, whose value is one of its labels.
    """
    properties = {"explanation": {"type": "string"}} if think else {}

    for number, item in enumerate(items, start=1):
        names = option_labels(questionnaire.choices(item), labels)
        kind = "string"
        if labels == "numeric":
            whole = all(re.fullmatch(r"-?\d+", name) for name in names)
            kind = "integer" if whole else "number"
            names = [int(name) if whole else float(name) for name in names]

        properties[f"{number}"] = {"type": kind, "enum": names}

    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }

    return {
        "type": "json_schema",
        "json_schema": {"name": "answers", "strict": True, "schema": schema},
    }
