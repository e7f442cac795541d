"""Ask larger conversational models for chapter 11: ``python -m recipes.larger [MODEL ...]``.

The answers go to ``data/answers``, as in ``recipes/talk.py``: IPIP-50 by the probabilities of
options, with every wording, order and role crossed, and IPIP-20 in conversation. Existing answers
are not asked again. ``psychometrics fetch-model`` fetches the models. ``data/larger.csv`` has the
answers to every item, for the named models and for earlier ones; ``data/larger_speed.csv`` has
their speed.

``data/larger_orders.csv`` has the answers to a short scale of PsychoBench, the GSE (10 items, 4
options; its wording comes from the mirror or is downloaded), with ten orders of the options: as
given, reversed, and eight drawn ones. In mode options each order is crossed with two wordings and
three roles; in conversation each item is asked once in each order, in the usual wording and role.
The plan, written before the first answer:

- By options we show the shares of the variance of expected values that lie between the means of
  items and between the means of orders. The orders' share is due to places, because a preference
  for an option is the same in every order. Null for the items: the answers of each order, wording
  and role are dealt to other items; we show the 95th percentile of the items' share over the deals.
- In both modes we count over the 45 pairs of orders how often an item gets the same place and how
  often the same option. Null for the option: the same deals, by their mean and 95th percentile. A
  model that chooses by place repeats the place, and repeats an option only as often as after a
  deal. A model that reads the items repeats the option more often than after a deal.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from psychometrics.asking.ask import ask_ways
from psychometrics.models.loading import load_tokenizer
from psychometrics.models.sources import SMOLLM2, find
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire

from .talk import ship_new

MODELS = (SMOLLM2, "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
CROSSING = {
    "role": ["default", "hero", "psychopath"],
    "wording": ["v1", "v2"],
    "permutations": ["given", "reversed"],
}
"""Crossed conditions, which must be the same in chapter 11."""
COLUMNS = ("mode", *CROSSING, "item_id")
CHAT_WAYS = {"one at a time": {"max_tokens": 16}}
"""Conditions of the conversations, which must be the same in chapter 11."""
SCALE = "gse"
"""Scale of PsychoBench that is asked with ten orders of its options."""


def crossed() -> dict[str, dict[str, str]]:
    """Return the conditions of each cell of the crossing, by name.

    Examples
    --------
    >>> len(crossed())
    12
    """
    cells = itertools.product(*CROSSING.values())
    return {" ".join(cell): dict(zip(CROSSING, cell, strict=True)) for cell in cells}


def orders(count: int = 4, number: int = 10, seed: int = 1) -> list[tuple[int, ...]]:
    """Return orders of options: as given, reversed, and different ones drawn with the seed.

    Examples
    --------
    >>> orders(3, 3)[:2], len(set(orders()))
    ([(0, 1, 2), (2, 1, 0)], 10)
    """
    given, *others, backwards = itertools.permutations(range(count))
    drawn = np.random.default_rng(seed).permutation(len(others))[: number - 2]
    return [given, backwards, *(others[i] for i in sorted(drawn))]


def reordered() -> Questionnaire:
    """Return the scale with a copy of each item for each order of its options.

    An item's id ends with the options' values in the order shown, such as ``gse_1_4321``.
    """
    scale = load_questionnaire(SCALE)
    items = []

    for order in orders(len(scale.options)):
        listed = tuple(scale.options[i] for i in order)
        name = "".join(f"{option.value:.0f}" for option in listed)
        for item in scale.items:
            changes = {"id": f"{item.id}_{name}", "options": listed}
            items.append(item.model_copy(update=changes))

    return scale.model_copy(update={"items": tuple(items), "scales": (), "norms": ()})


def ask_larger(model: str) -> None:
    """Ask a model in all ways, and ship its answers."""
    fifty = load_questionnaire("ipip50")
    for name, way in crossed().items():  # shipped one by one, since the largest model is slow
        ask_ways(fifty, model, {name: way}, "options")
        ship_new("options", fifty, model)

    mini = load_questionnaire("ipip20")
    ask_ways(mini, model, CHAT_WAYS, "chat")
    ship_new("chat", mini, model)


def answers(model: str) -> pd.DataFrame:
    """Return a model's answers, by ``mode, role, wording, permutations, item_id``.

    In mode options ``value`` is the mean of the options' values, weighted by their probabilities,
    and ``choice`` the value of the likeliest option. In mode chat, ``choice`` is the number read
    from the reply, missing if none could be read.
    """
    fifty = load_questionnaire("ipip50")
    crossing = crossed()
    expected = ask_ways(fifty, model, crossing, "options", choose="expected")
    likeliest = ask_ways(fifty, model, crossing, "options")
    chosen = likeliest.set_index(["way", "item_id"])["value"].rename("choice")
    of_options = expected.join(chosen, on=["way", "item_id"]).assign(mode="options")
    of_options = of_options[[*COLUMNS, "value", "choice"]]

    talked = ask_ways(load_questionnaire("ipip20"), model, CHAT_WAYS, "chat")
    talked = talked.rename(columns={"value": "choice"}).assign(mode="chat")
    of_chat = talked.reindex(columns=[*COLUMNS, "value", "choice"])
    table = pd.concat([of_options, of_chat])
    table.insert(0, "model", Path(model).name)
    return table


def answers_by_order(model: str) -> pd.DataFrame:
    """Return a model's answers to the scale in every order, as :func:`answers` does.

    ``permutations`` has the options' values in the order shown, and ``place`` the chosen option's
    place.
    """
    scale = reordered()
    ways = {name: way for name, way in crossed().items() if way["permutations"] == "given"}
    expected = ask_ways(scale, model, ways, "options", choose="expected")
    likeliest = ask_ways(scale, model, ways, "options")
    by_options = expected.assign(choice=likeliest["value"])  # the rows have the same order
    talked = ask_ways(scale, model, CHAT_WAYS, "chat").rename(columns={"value": "choice"})

    for mode in ("options", "chat"):
        ship_new(mode, scale, model)

    table = pd.concat([by_options, talked], ignore_index=True)
    table[["item_id", "permutations"]] = table["item_id"].str.rsplit("_", n=1, expand=True)
    shown = zip(table["permutations"], table["choice"], strict=True)
    table["place"] = [order.find(f"{value:.0f}") + 1 or None for order, value in shown]
    table = table[[*COLUMNS, "value", "choice", "place"]]
    table.insert(0, "model", Path(model).name)
    return table


def speed(model: str) -> pd.DataFrame:
    """Return the speed of a model on this machine: ``mode, prompts, tokens, cpu_seconds``.

    Processor time is used, so that other work on the machine matters less. ``tokens`` counts the
    replies' tokens; in mode options a model writes none. A first request, which loads the model, is
    not counted.
    """
    tokenizer = load_tokenizer(find(model))
    rows = []

    for mode, name in {"options": "ipip20", "chat": "gad7"}.items():
        asked = load_questionnaire(name)
        way = CHAT_WAYS["one at a time"] if mode == "chat" else {"permutations": "given"}
        for role in ("default", "liar"):  # shipped answers lack the liar
            began = time.process_time()
            with TemporaryDirectory() as store:
                table = ask_ways(asked, model, {role: {"role": role} | way}, mode, store)
            seconds = time.process_time() - began

        replies = list(table["raw"]) if mode == "chat" else []
        tokens = sum(len(tokenizer(reply)["input_ids"]) for reply in replies)
        rows.append((Path(model).name, mode, len(asked.items), tokens, seconds))

    return pd.DataFrame(rows, columns=["model", "mode", "prompts", "tokens", "cpu_seconds"])


def _write(models: Sequence[str]) -> None:
    """Write these models' answers and speed into the tables, and keep other models' rows."""
    tables = {"larger": answers, "larger_orders": answers_by_order, "larger_speed": speed}
    for name, of_one in tables.items():
        _save(pd.concat([of_one(model) for model in models]), data_dir() / f"{name}.csv")


def _save(table: pd.DataFrame, path: Path) -> None:
    if path.is_file():
        shipped = pd.read_csv(path)
        table = pd.concat([shipped[~shipped["model"].isin(table["model"])], table])

    order = {Path(model).name: place for place, model in enumerate(MODELS)}  # others come last
    table = table.sort_values("model", key=lambda name: name.map(order), kind="stable")
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


if __name__ == "__main__":
    names = sys.argv[1:] or MODELS
    for name in names:
        ask_larger(name)

    _write(names)
