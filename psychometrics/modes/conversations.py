"""Conversations about a questionnaire: its batches of statements, and how each batch is asked.

A conversation is a generator: it yields messages, is sent the reply, and returns the answers. So
whoever holds the connection (an endpoint's queue, a model on this machine, a function) decides how
many conversations go on at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
import pandas as pd

from ..asking.answers import check_numbers, tidy
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from .messages import ORDERS, REPLIES, caesar, encipher, messages, reply_schema
from .replies import parse_reply

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
}
"""Conditions of all modes that hold conversations, with their defaults."""


def conversation(
    questionnaire: Questionnaire,
    batch: dict,
    name: str,
    mode: str,
    how: dict,
    parse: Callable = parse_reply,
) -> Generator[tuple[list[dict], dict], str | None, list[dict]]:
    """Ask a batch of :func:`batches`, then what is left of it, at most ``ask_again`` more times.

    Parameters
    ----------
    questionnaire : Questionnaire
    batch : dict
    name, mode : str
        The respondent's.
    how : dict
        The conditions ``role, wording, think, labels, cipher, reply, ask_again``.
    parse : callable
        Reads replies, as :func:`psychometrics.modes.replies.parse_reply` does.

    Yields
    ------
    messages, about : list of dict, dict
        What to send, and what it is about (``run, attempt, items``, and ``response_format`` if the
        reply has a schema). Send in the reply, or None if there is none; set ``about["cut"]`` if
        the reply was cut off, ``about["unasked"]`` if it was not asked for. The generator returns
        one row per item.
    """
    left, results = batch["items"], {}
    look = {name: how[name] for name in ("role", "wording", "think", "labels", "reply")}
    for attempt in range(1, how["ask_again"] + 2):
        items, orders = [item for item, _, _ in left], [order for _, order, _ in left]
        about = {"run": batch["run"], "attempt": attempt, "items": [item.id for item in items]}
        if look["reply"] == "json_schema":
            about["response_format"] = reply_schema(
                questionnaire, items, how["labels"], how["think"]
            )
        prompt = messages(questionnaire, items, orders=orders, **look)
        reply = yield encipher(prompt, questionnaire, how["cipher"]), about
        if reply is None:
            read = [("unasked" if about.get("unasked") else "no_reply", None)] * len(items)
        else:
            text = caesar(reply, -how["cipher"]) if how["cipher"] else reply
            asked = questionnaire, items, how["labels"], orders
            read = parse(text, *asked)
            if about.get("cut"):  # its last line may be unfinished: "1:" is not the label 1
                whole = parse(text.rpartition("\n")[0], *asked)
                read = [
                    done if done[0] == "ok" else seen if seen[0] == "refused" else ("cut_off", None)
                    for done, seen in zip(whole, read, strict=True)
                ]
        for (item, order, position), (status, value) in zip(left, read, strict=True):
            results[item.id] = {
                "respondent_id": name,
                "mode": mode,
                "run": batch["run"],
                "item_id": item.id,
                "value": value,
                "status": status,
                "position": position,
                "options": " ".join(str(i + 1) for i in order),
                "attempts": attempt,
                "raw": reply,
            }
        left = [part for part in left if results[part[0].id]["status"] != "ok"]
        if not left or reply is None:
            break
    return list(results.values())


def batches(questionnaire: Questionnaire, how: dict) -> list[dict]:
    """Split all runs into batches of items, each with its order of options and its place.

    Parameters
    ----------
    questionnaire : Questionnaire
    how : dict
        The conditions ``runs, shuffle, batch_size, order, seed``.

    Returns
    -------
    list of dict
        ``run`` and ``items``, a list of (item, order of options, place from 1).
    """
    plan, count = [], len(questionnaire.items)
    for run in range(1, how["runs"] + 1):
        rng = np.random.default_rng([how["seed"], run])  # whatever the number of runs
        places = rng.permutation(count) if how["shuffle"] else range(count)
        counts = {len(questionnaire.choices(item)) for item in questionnaire.items}
        drawn = {n: _option_order(n, how["order"], rng) for n in sorted(counts)}
        items = []
        for position, place in enumerate(places, start=1):
            item = questionnaire.items[int(place)]
            items.append((item, drawn[len(questionnaire.choices(item))], position))
        for start in range(0, count, how["batch_size"]):
            plan.append({"run": run, "items": items[start : start + how["batch_size"]]})
    return plan


def in_order(rows: list[dict], questionnaire: Questionnaire, how: dict) -> pd.DataFrame:
    """Return answers as a tidy table, by run and then in the questionnaire's order.

    Parameters
    ----------
    rows : list of dict
        What :func:`conversation` returned, of all batches.
    questionnaire : Questionnaire
    how : dict
        The conditions.
    """
    place = {item.id: i for i, item in enumerate(questionnaire.items)}
    table = tidy(sorted(rows, key=lambda r: (r["run"], place[r["item_id"]])), questionnaire)
    shown = ("role", "wording", "think", "labels", "order", "cipher", "reply", "temperature")
    shown = *shown, "constrained"
    return table.assign(**{name: how[name] for name in shown if name in how})


def _option_order(count: int, order: str, rng: np.random.Generator) -> tuple[int, ...]:
    """Which option stands at which place, for one of ``ORDERS``."""
    if order not in ORDERS:
        raise ParameterError(f"order must be one of {', '.join(ORDERS)}, got {order!r}.")
    places = np.arange(count)
    if order == "reversed":
        places = places[::-1]
    elif order == "shuffled":
        places = rng.permutation(count)
    return tuple(int(i) for i in places)


def check_conditions(how: dict) -> None:
    """Refuse conditions from which no message can be made.

    Raises
    ------
    ParameterError
    """
    check_numbers(**{n: how[n] for n in ("batch_size", "runs", "ask_again", "seed")})
    cipher = how["cipher"]
    if not isinstance(cipher, int) or isinstance(cipher, bool):
        raise ParameterError(f"cipher must be a whole number of places, got {cipher!r}.")
    _option_order(2, how["order"], np.random.default_rng(0))
    if (reply := how["reply"]) not in REPLIES[:3]:
        raise ParameterError(f"reply must be one of {', '.join(REPLIES[:3])}, got {reply!r}.")
    if reply == "json_schema" and cipher:
        raise ParameterError("A reply in cipher fits no schema: leave cipher or json_schema out.")
