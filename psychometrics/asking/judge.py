"""A judge: a chat model that reads the replies that the strict rules cannot read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import pandas as pd

from ..modes.messages import as_filed, caesar
from ..modes.mode import Asking, Mode
from ..modes.replies import without_thoughts
from ..questionnaires import Item, Option, Questionnaire, Scale

_UNREAD = ("unreadable", "ambiguous", "missing", "tool_call")
# Most readable replies that the judge also reads, without their answers.
_CHECKED = 20
_NONE = "none of these"


def judged(
    mode: Mode, answers: pd.DataFrame, questionnaires: Iterable[Questionnaire], asking: Asking
) -> pd.DataFrame:
    """Let a judge read the unread replies and, to measure its agreement, a sample of the others.

    Parameters
    ----------
    mode : Mode
        The chat mode, which also asks the judge: at the same endpoint, or on this machine, where
        the judge can write only an answer.
    answers : DataFrame
        One respondent's answers, with an empty column ``judge``.
    questionnaires : iterable of Questionnaire
    asking : Asking
        The conditions; the condition ``judge`` names the model.

    Returns
    -------
    DataFrame
        The answers. The column ``judge`` is ``read`` if the judge found an answer, whose status is
        now ``ok``; ``none`` if it found no answer; ``agrees`` or ``differs`` if the rules had read
        the answer, which is not changed; otherwise empty.
    """
    questionnaire_id = answers["questionnaire"].iloc[0]
    questionnaire = next(each for each in questionnaires if each.id == questionnaire_id)
    rows = _replies_to_judge(answers)
    if rows.empty:
        return answers

    items: dict[tuple[str, tuple[Option, ...]], Item] = {}
    item_of = {}
    values = {}
    size = as_filed(questionnaire, asking.conditions)["batch_size"]
    for row in rows.itertuples():
        text, options, values[row.Index] = _question(row, questionnaire, size)
        item = Item(id=f"reply_{len(items) + 1}", text=text, options=options)
        key = unicodedata.normalize("NFKC", text).casefold(), options  # equal questions, one item
        item_of[row.Index] = items.setdefault(key, item).id

    sheet = _sheet(questionnaire, tuple(items.values()))
    choices = _ask_judge(mode, sheet, asking, labels=rows["labels"].iloc[0])
    for row in rows.itertuples():
        choice = choices[item_of[row.Index]]
        value = values[row.Index].get(choice)
        if row.status == "ok":
            answers.loc[row.Index, "judge"] = "agrees" if value == row.value else "differs"
        elif value is None:
            answers.loc[row.Index, "judge"] = "none"
        else:
            answers.loc[row.Index, ["value", "status", "judge"]] = value, "ok", "read"

    return answers


def _replies_to_judge(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the replies that the rules could not read, and an even sample of the others."""
    texts = answers["raw"].fillna("").map(without_thoughts)
    unread = answers["status"].isin(_UNREAD) & texts.ne("")
    read = answers.index[answers["status"] == "ok"]
    step = len(read) // _CHECKED + 1
    sample = read[::step]

    return answers.loc[[*answers.index[unread], *sample]]


def _sheet(questionnaire: Questionnaire, items: tuple[Item, ...]) -> Questionnaire:
    """Turn the replies into a questionnaire for the judge."""
    scale = Scale(id="all", title="all", items=tuple(item.id for item in items))

    return Questionnaire(
        id=f"{questionnaire.id}-replies"[:100],
        title="Replies",
        short_title="Replies",
        measures="what a reply says",
        citation="user",
        source="replies",
        licence="none",
        instructions="Somebody replied to a statement. Which option does the reply choose?",
        items=items,
        scales=(scale,),
    )


def _ask_judge(mode: Mode, sheet: Questionnaire, asking: Asking, labels: str) -> pd.Series:
    """Return the judge's choice for each item."""
    name = asking.conditions["judge"]
    is_here = asking.identity.source != "endpoint"
    conditions = mode.complete(
        {"runs": 1, "batch_size": 1, "shuffle": False, "constrained": is_here, "labels": labels}
        | {name: asking.conditions[name] for name in ("endpoint", "max_tokens")}
    )
    identity = mode.identify(name, asking.identity.dtype, **conditions)
    judge = mode.open(name, identity, **conditions)
    judging = asking._replace(respondent=judge, identity=identity, conditions=conditions)

    return mode.answer(sheet, judging).set_index("item_id")["value"]


def _question(
    row: Any, questionnaire: Questionnaire, batch_size: int
) -> tuple[str, tuple[Option, ...], dict[Any, Any]]:
    """Return the judge's question about a reply, its options, and the meaning of their values.

    The options are labelled by position: the first has the lowest label, whichever option was shown
    there.
    """
    item = questionnaire.item(row.item_id)
    shown = [questionnaire.choices(item)[int(place) - 1] for place in row.options.split()]
    labels = sorted(option.value for option in shown)
    options = [Option(value=v, label=o.label) for v, o in zip(labels, shown, strict=True)]
    options.append(Option(value=labels[-1] + 1, label=_NONE))
    plain = caesar(without_thoughts(row.raw), -row.cipher)[:2000]
    reply = "".join(sign if sign.isprintable() else " " for sign in plain)
    reply = re.sub(r"<(?=\S)", "< ", re.sub(r"\s+", " ", reply)).strip()
    number = f" {(row.position - 1) % batch_size + 1}" if row.attempts == 1 else ""
    text = f'Statement{number}, among others: "{questionnaire.statement(item)}" Reply: "{reply}"'

    return text, tuple(options), {v: o.value for v, o in zip(labels, shown, strict=True)}
