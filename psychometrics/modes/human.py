"""People: in the terminal, or by a form in a notebook; each answer is kept at once.

Conditions
----------
``run``: number of the sitting. ``read`` and ``write``: functions in place of the terminal;
``read=None`` asks nobody and gives what is kept.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..asking.answers import check_numbers, tidy
from ..asking.store import StoredAnswers, key_of, open_answers
from ..exceptions import ParameterError
from ..questionnaires import Item, Questionnaire
from .mode import Mode

if TYPE_CHECKING:
    import ipywidgets

    from ..asking.progress import Progress

CONDITIONS = {"run": 1, "read": input, "write": print}
BACK, SKIP, LEAVE = "b", "s", "q"


def identify(respondent: str, dtype: str | None = None, **conditions: object) -> dict:
    """Say who sits down to answer.

    Parameters
    ----------
    respondent : str
        What the person is called.
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
    ParameterError
        The name is empty, or a condition is impossible.

    Examples
    --------
    >>> identify("ann")["source"]
    'person'
    """
    how = CONDITIONS | conditions
    check_numbers(run=how["run"])
    for name in ("read", "write"):
        if not callable(how[name]) and not (name == "read" and how[name] is None):
            raise ParameterError(f"{name} must be a function, got {how[name]!r}.")
    if not isinstance(respondent, str) or not respondent.strip():
        raise ParameterError(f"A person needs a name, got {respondent!r}.")
    return {
        "respondent_id": respondent,
        "source": "person",
        "model": None,
        "revision": None,
        "mode": "human",
        "dtype": None,
        "fingerprint": key_of("human-1", respondent),
    }


def put(
    questionnaire: Questionnaire,
    respondent: str,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> pd.DataFrame:
    """Ask a person in the terminal; each answer is kept at once, and one may go back.

    A sitting that was left, or killed, goes on at the first item without an answer; of an item that
    was answered several times the last answer counts.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent, identity
        As in :func:`identify`, and what it gave.
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
        Is moved on at the end: in between it would write among the questions.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``; what was skipped or
        not reached is ``missing``.

    Raises
    ------
    StoreError
        Answers cannot be read or written.
    """
    how = CONDITIONS | conditions
    sitting = _Sitting(questionnaire, identity, how["run"], store)
    before = len(sitting.answers)
    bar.expect(len(questionnaire.items), before)
    if how["read"] is not None:
        _ask(sitting, how["read"], how["write"])
    bar.update(len(sitting.answers) - before)
    return sitting.table()


def form(
    questionnaire: Questionnaire,
    respondent: str = "me",
    run: int = 1,
    store: str | Path | None = None,
) -> ipywidgets.VBox:
    """A small form for a notebook: one item at a time, back and next, kept at each choice.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent : str
        What the person is called.
    run : int
        Number of the sitting; form and terminal share it.
    store : str or Path, optional
        As in :func:`psychometrics.asking.ask`, which gives the answers in mode ``human`` with
        ``read=None``.

    Returns
    -------
    ipywidgets.VBox
        Show it by ending a cell with it.

    Raises
    ------
    ParameterError
        ipywidgets is not installed; it comes with the ``book`` extra.
    StoreError
        Answers cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> box = form(load_questionnaire("ipip20"), "ann", store=tempfile.mkdtemp())
    >>> len(box.children)
    3
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        raise ParameterError(
            "The form needs ipywidgets: install the extra 'book', or ask in a terminal."
        ) from None
    identity = identify(respondent, run=run)
    sitting = _Sitting(questionnaire, identity, run, store)
    answers, items = sitting.answers, questionnaire.items
    first = next((i for i, item in enumerate(items) if item.id not in answers), 0)
    state = {"place": first, "showing": False}
    text = widgets.HTML()
    choice = widgets.RadioButtons(layout={"width": "max-content"})
    back = widgets.Button(description="Back")
    forward = widgets.Button(description="Next")

    def show() -> None:
        item = items[state["place"]]
        state["showing"] = True  # filling the choices in is no answer
        count = sum(value is not None for value in answers.values())
        text.value = (
            f"<p>{html.escape(questionnaire.instructions)}</p><p><b>{state['place'] + 1} of "
            f"{len(items)}:</b> {html.escape(questionnaire.statement(item))}</p>"
            f"<p>{count} answered and kept</p>"
        )
        choice.options = [(option.label, option.value) for option in questionnaire.choices(item)]
        choice.value = answers.get(item.id)
        back.disabled = state["place"] == 0
        forward.disabled = state["place"] == len(items) - 1
        state["showing"] = False

    def chosen(change: dict) -> None:
        if not state["showing"] and change["new"] is not None:
            sitting.keep(items[state["place"]], change["new"])

    def move(step: int) -> Callable:
        def moved(_button) -> None:
            state["place"] = min(max(state["place"] + step, 0), len(items) - 1)
            show()

        return moved

    choice.observe(chosen, names="value")
    back.on_click(move(-1))
    forward.on_click(move(1))
    show()
    return widgets.VBox([text, choice, widgets.HBox([back, forward])])


class _Sitting:
    """What a person has answered so far, kept answer by answer."""

    def __init__(
        self, questionnaire: Questionnaire, identity: dict, run: int, store: str | Path | None
    ) -> None:
        self.questionnaire, self.identity, self.run = questionnaire, identity, run
        name = identity["respondent_id"]
        self.kept: StoredAnswers = open_answers(store, "human", questionnaire.id, name, identity)
        self.answers: dict[str, float | None] = {}
        self.number = 0
        if not len(self.kept):
            return
        asked = {item.id: self._asked(item) for item in questionnaire.items}
        rows = self.kept.rows.query("run == @run").sort_values("number", kind="stable")
        for row in rows.itertuples():
            if asked.get(row.item_id) == row.asked:  # else the item has been changed since
                self.answers[row.item_id] = None if pd.isna(row.value) else row.value
            self.number = row.number

    def _asked(self, item: Item) -> str:
        """Hash of what the person saw."""
        options = [f"{o.value:g} {o.label}" for o in self.questionnaire.choices(item)]
        return key_of(self.questionnaire.statement(item), *options)

    def keep(self, item: Item, value: float | None) -> None:
        """Keep an answer; None for an item that was skipped. The last one counts."""
        self.number += 1
        row = {
            "run": self.run,
            "item_id": item.id,
            "number": self.number,
            "value": float("nan") if value is None else float(value),
            "asked": self._asked(item),
        }
        # The time keeps two sittings at once apart.
        key = key_of(self.identity["fingerprint"], item.id, str(self.number), str(time.time_ns()))
        self.kept.add(pd.DataFrame([row], index=pd.Index([key], name="key")))
        self.answers[item.id] = value

    def table(self) -> pd.DataFrame:
        rows = [
            {
                "respondent_id": self.identity["respondent_id"],
                "mode": "human",
                "run": self.run,
                "item_id": item.id,
                "value": self.answers.get(item.id),
                "status": "missing" if self.answers.get(item.id) is None else "ok",
            }
            for item in self.questionnaire.items
        ]
        return tidy(rows, self.questionnaire)


def _ask(sitting: _Sitting, read: Callable, write: Callable) -> None:
    questionnaire, answers = sitting.questionnaire, sitting.answers
    items = questionnaire.items
    write(f"{questionnaire.title}\n{questionnaire.instructions}")
    write(
        f"Type a number; {BACK} goes back, {SKIP} skips, {LEAVE} leaves; what was answered is kept."
    )
    place = next((i for i, item in enumerate(items) if item.id not in answers), len(items))
    if place == len(items):
        write("All items have an answer; b goes back to the last.")
    while True:
        if place == len(items):
            prompt = f"Done. Enter finishes, {BACK} goes back: "
        else:
            item = items[place]
            options = questionnaire.choices(item)
            listed = "\n".join(f"  {option.value:g}  {option.label}" for option in options)
            before = f" (now {answers[item.id]:g})" if answers.get(item.id) is not None else ""
            write(
                f"\n{place + 1} of {len(items)}: {questionnaire.statement(item)}{before}\n{listed}"
            )
            prompt = "> "
        try:
            typed = read(prompt).strip().lower()
        except EOFError:
            break
        if typed == BACK:
            place = max(place - 1, 0)
        elif typed == LEAVE or place == len(items):
            break
        elif typed == SKIP:
            sitting.keep(item, None)
            place += 1
        else:
            known = {f"{option.value:g}": option.value for option in options}
            if typed not in known:
                write(f"Type one of {', '.join(known)}, or {BACK}, {SKIP}, {LEAVE}.")
                continue
            sitting.keep(item, known[typed])
            place += 1


class Human(Mode):
    """People, who answer in the terminal or by a form."""

    name, conditions = "human", CONDITIONS
    identify, answer = staticmethod(identify), staticmethod(put)
