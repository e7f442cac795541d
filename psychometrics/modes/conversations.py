"""Conversations about a questionnaire, which ask batches of statements in turns.

A conversation is a generator: it yields turns, is sent the replies, and returns the answers. The
code that owns the connection (an endpoint's queue, a local model, a function) therefore decides how
many conversations run at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from ..exceptions import ParameterError
from ..progress import Progress
from ..questionnaires import Item, Questionnaire
from ..questionnaires.answers import tidy
from ..store.replies import Reply, Turn
from .messages import Labels, as_filed, caesar, messages, option_labels
from .mode import Asking, Conditions, Identity, Mode, Runs
from .replies import _remove_thoughts, parse_reply

_Row = dict[str, Any]  # a row of the table of answers
_Talk = Generator[Turn, Reply, list[_Row]]  # yields turns, receives their replies
_Parser = Callable[..., Sequence[tuple[str, Any]]]  # like replies.parse_reply

# Conditions that determine the messages.
_LOOK = ("role", "wording", "think", "labels", "reply", "cipher")
ENDED_WITHOUT_ANSWER = {
    "length": "cut_off", "max_tokens": "cut_off", "max_output_tokens": "cut_off",
    "content_filter": "refused", "refusal": "refused", "safety": "refused",
    "prohibited_content": "refused", "blocklist": "refused", "tool_call": "tool_call"}  # fmt: skip
"""The statuses of unanswered statements, by the reason why a reply ended early."""
# An item of a batch, with the order of its options and its place in the run, from 1.
_Question = tuple[Item, tuple[int, ...], int]


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
    runs: Runs = 1
    ask_again: NonNegativeInt = 0
    seed: NonNegativeInt = 0
    log: bool = False


class _ConversationMode(Mode):
    """A mode that sends messages to its respondents and reads their replies."""

    conditions_type = _ConversationConditions
    sends = "messages"
    needs_options = True

    def complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return all conditions; refuse conditions that conflict."""
        conditions = super().complete(settings)
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
        self, questionnaire: Questionnaire, asking: Asking, parse: _Parser = parse_reply
    ) -> list[_Talk]:
        """Split all runs into batches of items, and begin a conversation about each batch.

        Parameters
        ----------
        questionnaire : Questionnaire
        asking : Asking
        parse : callable
            A function that reads replies, as :func:`psychometrics.modes.replies.parse_reply` does.

        Returns
        -------
        list of Talk
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
        talks = []

        for run in range(1, conditions["runs"] + 1):
            conversation = _Conversation(questionnaire, conditions, parse, who | {"run": run})
            batches = conversation.batches()
            subjects = [batches] if conditions["history"] else [[batch] for batch in batches]
            talks += [conversation.hold(subject) for subject in subjects]

        return talks

    def preview(self, questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
        """Return the messages that first ask all statements, without asking a respondent.

        Returns
        -------
        DataFrame
            A row for each message: ``run``, ``request`` (from 1), the ``items`` that it asks,
            ``role`` and ``content``. With ``history``, the
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
        turns: list[Turn] = []

        def skip(asked: list[Turn]) -> list[Reply]:
            turns.extend(asked)
            return [Reply(None, status="unasked")]

        for talk in self.talks(questionnaire, nobody):
            self.hold([talk], nobody, skip)

        rows: list[_Row] = []
        for number, turn in enumerate(turns, start=1):
            request = {"run": turn.run, "request": number, "items": " ".join(turn.items)}
            rows += [request | message for message in turn.messages]

        return pd.DataFrame(rows)

    def hold(
        self, talks: list[_Talk], asking: Asking, ask: Callable[[list[Turn]], list[Reply]]
    ) -> list[_Row]:
        """Hold all conversations to the end, turn by turn, and return a row per item.

        Parameters
        ----------
        talks : list of Talk
            Conversations, as :meth:`talks` returns them.
        asking : Asking
            The respondent and the conditions; the progress bar advances at the end of a
            conversation.
        ask : callable
            A function that returns the replies to the turns of all open conversations.
        """
        rows: list[_Row] = []
        open_talks = [(talk, next(talk), False) for talk in talks]
        while open_talks:
            replies = ask([turn for _, turn, _ in open_talks])
            waiting = []
            for (talk, _, was_asked), reply in zip(open_talks, replies, strict=True):
                is_asked = was_asked or reply.is_new
                try:
                    waiting.append((talk, talk.send(reply), is_asked))
                except StopIteration as end:
                    count = asking.bar.update if is_asked else asking.bar.count_stored
                    count(len(end.value))
                    rows += end.value

            open_talks = waiting

        return rows

    def table(
        self, rows: list[_Row], questionnaire: Questionnaire, conditions: dict[str, Any]
    ) -> pd.DataFrame:
        """Return the rows of all conversations as a table, by run and in item order."""
        conditions = as_filed(questionnaire, conditions)
        place = {item.id: i for i, item in enumerate(questionnaire.items)}
        table = tidy(sorted(rows, key=lambda r: (r["run"], place[r["item_id"]])), questionnaire)
        names = ["role", "wording", "think", "labels", "order", "cipher", "reply", "temperature",
                 "constrained"]  # fmt: skip
        optional = ("top_p", "reasoning_effort", "sampling_seed")
        names += [name for name in optional if conditions.get(name) is not None]
        columns = {name: conditions[name] for name in names if name in conditions}
        return table.assign(**columns)


@dataclass(frozen=True)
class _Conversation:
    """The conversations of a run: its batches, what each turn says, and how replies are read."""

    questionnaire: Questionnaire
    conditions: dict[str, Any]
    parse: _Parser
    who: _Row  # the respondent, the mode and the run

    def batches(self) -> list[list[_Question]]:
        """Split the run into batches of items, each item with its option order and its place."""
        # The order depends only on the run's number, not on the number of runs.
        rng = np.random.default_rng([self.conditions["seed"], self.who["run"]])
        items = list(self.questionnaire.items)
        if self.conditions["shuffle"]:
            items = [items[place] for place in rng.permutation(len(items))]

        orders = {}
        for count in sorted({len(self.questionnaire.choices(item)) for item in items}):
            order = tuple(range(count))
            if self.conditions["order"] == "shuffled":
                order = tuple(rng.permutation(count).tolist())
            orders[count] = order[::-1] if self.conditions["order"] == "reversed" else order

        questions = [
            (item, orders[len(self.questionnaire.choices(item))], position)
            for position, item in enumerate(items, start=1)
        ]
        size = self.conditions["batch_size"]
        return [questions[start : start + size] for start in range(0, len(questions), size)]

    def hold(self, batches: list[list[_Question]]) -> _Talk:
        """Ask batches in turn, each after the history so far, and return a row per item."""
        history: list[dict[str, str]] = []
        rows: dict[str, _Row] = {}

        for batch in batches:
            unanswered = batch
            for attempt in range(1, self.conditions["ask_again"] + 2):
                turn = self._write_turn(unanswered, history, attempt)
                reply = yield turn
                if self.conditions["history"] and reply.text is not None:
                    history = [*turn.messages, {"role": "assistant", "content": reply.text}]

                answers = self._read_reply(reply, unanswered)
                for (item, order, position), (status, value) in zip(
                    unanswered, answers, strict=True
                ):
                    rows[item.id] = self.who | {
                        "item_id": item.id,
                        "value": value,
                        "status": status,
                        "position": position,
                        "options": " ".join(str(place + 1) for place in order),
                        "attempts": attempt,
                        "raw": reply.text,
                    }
                    if self.conditions["log"]:
                        rows[item.id]["sent"] = json.dumps(turn.messages, ensure_ascii=False)

                unanswered = [each for each in unanswered if rows[each[0].id]["status"] != "ok"]
                if not unanswered or reply.text is None:
                    break

        return list(rows.values())

    def _write_turn(
        self, batch: list[_Question], history: list[dict[str, str]], attempt: int
    ) -> Turn:
        """Return the turn that asks the items of a batch."""
        items, orders, _ = zip(*batch, strict=True)
        look = {name: self.conditions[name] for name in _LOOK}
        prompt = messages(self.questionnaire, items, orders=orders, **look)
        if history:
            prompt = [*history, prompt[-1]]

        form = self._write_schema(items) if look["reply"] == "json_schema" else None
        return Turn(prompt, self.who["run"], attempt, tuple(item.id for item in items), form)

    def _write_schema(self, items: Sequence[Item]) -> dict[str, Any]:
        """Return the ``response_format`` of a request to an OpenAI-compatible endpoint.

        It is an object with a key for each statement's number; the value is one of the statement's
        labels.
        """
        labels = self.conditions["labels"]
        properties: dict[str, Any] = {}
        if self.conditions["think"]:
            properties["explanation"] = {"type": "string"}

        for number, item in enumerate(items, start=1):
            names = option_labels(self.questionnaire.choices(item), labels)
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
        form = {"name": "answers", "strict": True, "schema": schema}
        return {"type": "json_schema", "json_schema": form}

    def _read_reply(self, reply: Reply, batch: list[_Question]) -> Sequence[tuple[str, Any]]:
        """Read a reply; if it ended early, the unanswered items get a status that says so."""
        if reply.text is None:
            return [(reply.status, None)] * len(batch)

        cipher = self.conditions["cipher"]
        text = caesar(_remove_thoughts(reply.text), -cipher) if cipher else reply.text
        items, orders, _ = zip(*batch, strict=True)
        question = self.questionnaire, items, self.conditions["labels"], orders
        answers = self.parse(text, *question)

        status = ENDED_WITHOUT_ANSWER.get((reply.finish_reason or "").lower())
        if status is None:
            return answers
        if status == "tool_call":
            return [(status, None)] * len(answers)

        # Its last line may be unfinished: "1:" is not the label 1.
        certain = self.parse(_remove_thoughts(text).rpartition("\n")[0], *question)
        results = []
        for answer, last_answer in zip(certain, answers, strict=True):
            if answer[0] == "ok":
                results.append(answer)
            else:
                results.append(last_answer if last_answer[0] == "refused" else (status, None))

        return results
