"""People who answer in the terminal; their answers are saved one by one.

Conditions
----------
``run``: number of the session. ``read`` and ``write``: functions that replace the terminal; with
``read=None``, no person is asked, and the stored answers are returned.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
from pydantic import PositiveInt

from ..exceptions import ParameterError
from ..questionnaires import Item, Questionnaire
from ..questionnaires.answers import tidy
from ..store import StoredAnswers, key_of
from .mode import Asking, Conditions, Identity, Mode


class _HumanConditions(Conditions):
    """The number of the session, and functions that replace the terminal."""

    run: PositiveInt = 1
    read: Callable[..., Any] | None = input
    write: Callable[..., Any] = print


class Human(Mode):
    """People who answer in the terminal."""

    conditions_type = _HumanConditions
    sends = "statements"
    needs_options = True

    def identify(self, respondent: str, dtype: str | None = None, **conditions: Any) -> Identity:
        """Return the identity of the person with the given name."""
        if not isinstance(respondent, str) or not respondent.strip():
            raise ParameterError(f"A person needs a name: give text, not {respondent!r}.")
        path = os.path.expanduser(respondent)
        if os.path.isfile(path) or ("/" in respondent and os.path.exists(path)):
            raise ParameterError(
                f"{respondent}: this name is a file or folder; name a person, or read "
                "a table of answers with --answers."
            )
        fingerprint = key_of("human-1", respondent)
        return Identity(respondent, "person", mode=self.name, fingerprint=fingerprint)

    def preview(self, questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
        """Return the statement and the options of each item as a person reads them."""
        self.complete(conditions)
        items = questionnaire.items
        texts = [_text(questionnaire, item) for item in items]
        return pd.DataFrame({"items": [item.id for item in items], "content": texts})

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Ask a person, who may go back, in the terminal; unanswered items are ``missing``.

        An interrupted session resumes at the first item without an answer. The last answer to an
        item counts.
        """
        run = asking.conditions["run"]
        sitting = _Sitting(questionnaire, asking, run)
        before = len(sitting.answers)
        asking.bar.expect(len(questionnaire.items), before)

        if asking.conditions["read"] is not None:
            sitting.ask(asking.conditions["read"], asking.conditions["write"])

        # Updated earlier, the bar would write among the questions.
        asking.bar.update(len(sitting.answers) - before)
        items = [item.id for item in questionnaire.items]
        values = pd.Series([sitting.answers.get(item) for item in items], dtype=float)
        table = pd.DataFrame({"item_id": items, "value": values})
        table["status"] = values.isna().map({True: "missing", False: "ok"})
        person = {"respondent_id": asking.identity.respondent_id, "mode": "human", "run": run}
        return tidy(table.assign(**person), questionnaire)


class _Sitting:
    """A person's answers so far, which are saved one by one."""

    def __init__(self, questionnaire: Questionnaire, asking: Asking, run: int) -> None:
        identity = asking.identity
        name = identity.respondent_id
        self.questionnaire = questionnaire
        self.fingerprint = identity.fingerprint
        self.run = run
        self.stored = StoredAnswers(asking.store, "human", questionnaire.id, name, dict(identity))
        self.answers: dict[str, float | None] = {}
        self.number = 0

        if not len(self.stored):
            return
        digests = {item.id: self._digest(item) for item in questionnaire.items}
        rows = self.stored.rows.query("run == @run").sort_values("number", kind="stable")
        for row in rows.itertuples():
            if digests.get(row.item_id) == row.asked:  # otherwise the item has changed
                self.answers[row.item_id] = None if pd.isna(row.value) else row.value

            self.number = row.number

    def _digest(self, item: Item) -> str:
        """Return a hash of the text that the person saw."""
        options = [f"{o.value:g} {o.label}" for o in self.questionnaire.choices(item)]
        return key_of(self.questionnaire.statement(item), *options)

    def ask(self, read: Callable[..., Any], write: Callable[..., Any]) -> None:
        """Ask the items from the first without an answer on, until the person leaves."""
        questionnaire = self.questionnaire
        items = questionnaire.items
        write(f"{questionnaire.title}\n{questionnaire.instructions}")
        write("Type a number; b goes back, s skips, q leaves; answers are saved at once.")
        place = next((i for i, item in enumerate(items) if item.id not in self.answers), len(items))

        while True:
            options = {}
            prompt = "Done. Enter finishes, b goes back: "
            if place < len(items):
                item = items[place]
                options = {f"{option.value:g}": option for option in questionnaire.choices(item)}
                current = self.answers.get(item.id)
                now = f" (now {current:g})" if current is not None else ""
                write(f"\n{place + 1} of {len(items)}: {_text(questionnaire, item, now)}")
                prompt = "> "

            try:
                typed = read(prompt).strip().lower()
            except (EOFError, RuntimeError):  # RuntimeError: the terminal's input is closed
                break

            if typed == "b":
                place = max(place - 1, 0)
            elif typed == "q" or place == len(items):
                break
            elif typed == "s" or typed in options:
                self._save(item, float("nan") if typed == "s" else float(options[typed].value))
                place += 1
            else:
                write(f"Type one of {', '.join(options)}, or b, s, q.")

    def _save(self, item: Item, value: float) -> None:
        """Save an answer; NaN stands for a skipped item."""
        self.number += 1
        row = {
            "run": self.run,
            "item_id": item.id,
            "number": self.number,
            "value": value,
            "asked": self._digest(item),
        }
        # The time separates two simultaneous sessions.
        key = key_of(self.fingerprint, item.id, str(self.number), str(time.time_ns()))
        self.stored.add(pd.DataFrame([row], index=pd.Index([key], name="key")))
        self.answers[item.id] = None if pd.isna(value) else value


def _text(questionnaire: Questionnaire, item: Item, now: str = "") -> str:
    """Return an item's statement, with the answer so far, and its options, one per line."""
    options = questionnaire.choices(item)
    lines = [f"  {option.value:g}  {option.label}" for option in options]
    return "\n".join([f"{questionnaire.statement(item)}{now}", *lines])
