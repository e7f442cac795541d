"""Conversations about a questionnaire, which ask batches of statements in turns.

A conversation is a generator: it yields turns, is sent the replies, and returns the answers. The
code that owns the connection (an endpoint's queue, a local model, a function) therefore decides how
many conversations run at once.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from ..endpoints.secrets import mask_conditions
from ..exceptions import ParameterError
from ..progress import Progress
from ..questionnaires import Item, Questionnaire
from ..questionnaires.answers import tidy
from ..store.replies import Reply, Turn
from .messages import Labels, as_filed, caesar, messages, option_labels
from .mode import Asking, Conditions, Identity, Mode, Runs
from .replies import parse_reply, without_thoughts

if TYPE_CHECKING:
    Row = dict[str, Any]  # a row of the table of answers
    Talk = Generator[Turn, Reply, list[Row]]  # yields turns, receives their replies
    Parser = Callable[..., Sequence[tuple[str, Any]]]  # like replies.parse_reply

# Conditions that determine the messages.
_LOOK = ("role", "wording", "think", "labels", "reply", "cipher", "demonstrations")
ENDED_WITHOUT_ANSWER = {
    "length": "cut_off", "max_tokens": "cut_off", "max_output_tokens": "cut_off",
    "content_filter": "refused", "refusal": "refused", "safety": "refused",
    "prohibited_content": "refused", "blocklist": "refused", "tool_call": "tool_call"}  # fmt: skip
"""The statuses of unanswered statements, by the reason why a reply ended early."""
_Part = tuple[Item, tuple[int, ...], int]


@dataclass(frozen=True)
class _Batch:
    """The items of a run that are asked together.

    Parameters
    ----------
    run : int
    items : tuple of (Item, tuple of int, int)
        Items, each with the order of its options and its place in the run, from 1.
    """

    run: int
    items: tuple[_Part, ...]


class _ConversationConditions(Conditions):
    """The conditions that determine a conversation, and how often it is held."""

    role: Any = "default"
    wording: Any = None
    think: bool = False
    labels: Labels = "numeric"
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


class _ConversationMode(Mode):
    """A mode that sends messages to its respondents and reads their replies."""

    conditions_type = _ConversationConditions
    sends = "messages"
    needs_options = True

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return all conditions; refuse conditions that conflict."""
        conditions = super().complete(given)
        if conditions["reply"] == "json_schema" and conditions["cipher"]:
            raise ParameterError("A reply in cipher fits no schema: leave out one of the two.")
        return conditions

    def check(
        self, questionnaire: Questionnaire, identity: Identity, conditions: dict[str, Any]
    ) -> None:
        """Refuse a role, a wording or labels that the messages cannot contain."""
        super().check(questionnaire, identity, conditions)
        filed = as_filed(questionnaire, conditions)
        look = {name: filed[name] for name in _LOOK}
        messages(questionnaire, questionnaire.items[:1], **look)

    def talks(
        self, questionnaire: Questionnaire, asking: Asking, parse: Parser = parse_reply
    ) -> list[tuple[_Batch, Talk]]:
        """Split all runs into batches of items, and begin a conversation about each batch.

        Parameters
        ----------
        questionnaire : Questionnaire
        asking : Asking
        parse : callable
            A function that reads replies, as :func:`psychometrics.modes.replies.parse_reply` does.

        Returns
        -------
        list of (Batch, Talk)
            A conversation asks a batch, then the unanswered items of the batch, at most
            ``ask_again`` more times; with ``history`` it asks all batches of a run, each after the
            earlier messages and replies. It returns one row per item.

        Raises
        ------
        ParameterError
            The role, the wording or the labels are unknown.
        """
        self.check(questionnaire, asking.identity, asking.conditions)
        who = {"respondent_id": asking.identity.respondent_id, "mode": self.name}
        conditions = as_filed(questionnaire, asking.conditions)
        batches = _batches(questionnaire, conditions)
        rounds = [[batch] for batch in batches]

        if conditions["history"]:
            runs = range(1, conditions["runs"] + 1)
            rounds = [[batch for batch in batches if batch.run == run] for run in runs]

        talks = []
        for part in rounds:
            items = tuple(item for batch in part for item in batch.items)
            talk = _in_turn(questionnaire, part, who, conditions, parse)
            talks.append((_Batch(part[0].run, items), talk))

        return talks

    def preview(self, questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
        """Return the messages that first ask all statements, without asking a respondent.

        Returns
        -------
        DataFrame
            A row for each message: ``run``, ``request`` (from 1), the ``items`` that it asks,
            ``role`` (``text`` for a base model to continue) and ``content``. With ``history``, the
            earlier messages and replies of a run are sent, too.

        Examples
        --------
        >>> from psychometrics.modes import mode_named
        >>> from psychometrics.questionnaires import load_questionnaire
        >>> sent = mode_named("chat").preview(load_questionnaire("ipip20"), {"batch_size": 10})
        >>> sent["role"].tolist()
        ['system', 'user', 'system', 'user']
        """
        conditions = self.complete(conditions)
        nobody = Asking(None, Identity(""), None, Progress(disable=True), conditions)
        rows: list[Row] = []

        for number, turn in enumerate(self._first_turns(questionnaire, nobody), start=1):
            prompt = turn.messages
            if conditions.get("raw"):
                text = "\n\n".join(message["content"] for message in prompt)
                prompt = [{"role": "text", "content": text}]

            request = {"run": turn.run, "request": number, "items": " ".join(turn.items)}
            rows += [request | message for message in prompt]

        return pd.DataFrame(rows)

    def _first_turns(self, questionnaire: Questionnaire, asking: Asking) -> Iterator[Turn]:
        """Yield the turns of all conversations, assuming that no reply comes."""
        for _, talk in self.talks(questionnaire, asking):
            turn = next(talk)
            with contextlib.suppress(StopIteration):
                while True:
                    yield turn
                    turn = talk.send(Reply(None, status="unasked"))

    def hold(
        self,
        talks: list[tuple[_Batch, Talk]],
        asking: Asking,
        ask: Callable[[list[Turn]], list[Reply]],
    ) -> list[Row]:
        """Hold all conversations to the end, turn by turn, and return a row per item.

        Parameters
        ----------
        talks : list of (Batch, Talk)
            Conversations, as :meth:`talks` returns them.
        asking : Asking
            The respondent and the conditions; the progress bar advances at the end of a
            conversation.
        ask : callable
            A function that returns the replies to the turns of all open conversations.
        """
        rows: list[Row] = []
        waiting = [(batch, talk, next(talk), False) for batch, talk in talks]
        while waiting:
            replies = ask([turn for _, _, turn, _ in waiting])
            left = []
            for (batch, talk, _, was_asked), reply in zip(waiting, replies, strict=True):
                is_asked = was_asked or reply.is_new
                try:
                    left.append((batch, talk, talk.send(reply), is_asked))
                except StopIteration as end:
                    move_on = asking.bar.update if is_asked else asking.bar.count_stored
                    move_on(len(batch.items))
                    rows += end.value

            waiting = left

        return rows

    def table(
        self, rows: list[Row], questionnaire: Questionnaire, conditions: dict[str, Any]
    ) -> pd.DataFrame:
        """Return the rows of all conversations as a table, by run and in item order."""
        conditions = as_filed(questionnaire, conditions)
        place = {item.id: i for i, item in enumerate(questionnaire.items)}
        table = tidy(sorted(rows, key=lambda r: (r["run"], place[r["item_id"]])), questionnaire)
        shown = ["role", "wording", "think", "labels", "order", "cipher", "reply", "temperature",
                 "constrained"]  # fmt: skip
        optional = ("top_p", "reasoning_effort", "sampling_seed", "body")
        shown += [name for name in optional if conditions.get(name) is not None]
        columns = {name: conditions[name] for name in shown if name in conditions}
        return table.assign(**mask_conditions(columns))


def _in_turn(
    questionnaire: Questionnaire,
    batches: list[_Batch],
    who: dict[str, str],
    conditions: dict[str, Any],
    parse: Parser,
) -> Talk:
    """Hold one conversation, as :meth:`ConversationMode.talks` describes it."""
    history: list[dict[str, str]] = []
    rows: list[Row] = []
    for batch in batches:
        rows += yield from _conversation(questionnaire, batch, who, conditions, parse, history)
    return rows


def _conversation(
    questionnaire: Questionnaire,
    batch: _Batch,
    who: dict[str, str],
    conditions: dict[str, Any],
    parse: Parser,
    history: list[dict[str, str]],
) -> Talk:
    """Ask a batch after the history so far, and add the new turns to the history."""
    left = list(batch.items)
    rows: dict[str, Row] = {}

    for attempt in range(1, conditions["ask_again"] + 2):
        turn = _turn(questionnaire, left, conditions, history, batch.run, attempt)
        reply = yield turn
        if conditions["history"] and reply.text is not None:
            history[:] = [*turn.messages, {"role": "assistant", "content": reply.text}]

        read = _read(reply, questionnaire, left, conditions, parse)
        for (item, order, position), (status, value) in zip(left, read, strict=True):
            row = who | {"run": batch.run, "item_id": item.id, "value": value, "status": status}
            row["position"] = position
            row["options"] = " ".join(str(place + 1) for place in order)
            row |= {"attempts": attempt, "raw": reply.text}
            if conditions["log"]:
                row["sent"] = json.dumps(turn.messages, ensure_ascii=False)

            rows[item.id] = row

        left = [part for part in left if rows[part[0].id]["status"] != "ok"]
        if not left or reply.text is None:
            break

    return list(rows.values())


def _turn(
    questionnaire: Questionnaire,
    left: list[_Part],
    conditions: dict[str, Any],
    history: list[dict[str, str]],
    run: int,
    attempt: int,
) -> Turn:
    """Return the turn that asks the unanswered items."""
    items = [item for item, _, _ in left]
    orders = [order for _, order, _ in left]
    look = {name: conditions[name] for name in _LOOK}
    prompt = messages(questionnaire, items, orders=orders, **look)
    schema = None

    if history:
        prompt = [*history, prompt[-1]]

    if conditions["reply"] == "json_schema":
        schema = _reply_schema(questionnaire, items, conditions["labels"], conditions["think"])

    return Turn(prompt, run, attempt, tuple(item.id for item in items), schema)


def _read(
    reply: Reply,
    questionnaire: Questionnaire,
    left: list[_Part],
    conditions: dict[str, Any],
    parse: Parser,
) -> Sequence[tuple[str, Any]]:
    """Read a reply; if it ended early, the unanswered items get a status that says so."""
    if reply.text is None:
        return [(reply.status, None)] * len(left)

    cipher = conditions["cipher"]
    text = caesar(without_thoughts(reply.text), -cipher) if cipher else reply.text
    items = [item for item, _, _ in left]
    orders = [order for _, order, _ in left]
    labels = conditions["labels"]
    read = parse(text, questionnaire, items, labels, orders)

    status = ENDED_WITHOUT_ANSWER.get((reply.finish_reason or "").lower())
    if status is None:
        return read

    rest = status, None
    if status == "tool_call":
        return [rest] * len(read)

    # Its last line may be unfinished: "1:" is not the label 1.
    done_lines = without_thoughts(text).rpartition("\n")[0]
    whole = parse(done_lines, questionnaire, items, labels, orders)
    results = []
    for done, seen in zip(whole, read, strict=True):
        if done[0] == "ok":
            results.append(done)
        else:
            results.append(seen if seen[0] == "refused" else rest)

    return results


def _batches(questionnaire: Questionnaire, conditions: dict[str, Any]) -> list[_Batch]:
    """Split all runs into batches of items, each item with its option order and its place."""
    plan = []
    count = len(questionnaire.items)

    size = conditions["batch_size"]

    for run in range(1, conditions["runs"] + 1):
        # Each order depends only on its number, not on the number of runs; repeats share it.
        rng = np.random.default_rng([conditions["seed"], (run - 1) // conditions["repeats"] + 1])
        places = rng.permutation(count) if conditions["shuffle"] else range(count)
        counts = {len(questionnaire.choices(item)) for item in questionnaire.items}
        drawn = {n: _order(conditions["order"], n, rng) for n in sorted(counts)}
        items = []
        for position, place in enumerate(places, start=1):
            item = questionnaire.items[int(place)]
            items.append((item, drawn[len(questionnaire.choices(item))], position))

        for start in range(0, count, size):
            plan.append(_Batch(run, tuple(items[start : start + size])))

    return plan


def _order(kind: str, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the option shown at each place: as given, reversed or shuffled."""
    if kind == "shuffled":
        return tuple(rng.permutation(count).tolist())
    return tuple(range(count)[::-1] if kind == "reversed" else range(count))


def _reply_schema(
    questionnaire: Questionnaire, items: Sequence[Item], labels: str, think: bool
) -> dict[str, Any]:
    """Return the ``response_format`` of a request to an OpenAI-compatible endpoint.

    It is an object with a key for each statement's number; the value is one of the statement's
    labels.
    """
    properties: dict[str, Any] = {"explanation": {"type": "string"}} if think else {}

    for number, item in enumerate(items, start=1):
        names = option_labels(questionnaire.choices(item), labels)
        if labels != "numeric":
            values: dict[str, Any] = {"type": "string", "enum": names}
        elif all(re.fullmatch(r"-?\d+", name) for name in names):
            values = {"type": "integer", "enum": [int(name) for name in names]}
        else:
            values = {"type": "number", "enum": [float(name) for name in names]}

        properties[f"{number}"] = values

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
