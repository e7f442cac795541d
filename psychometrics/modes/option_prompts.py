"""The options of an item as a model reads them, and the replies that are scored."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from ..exceptions import ParameterError
from ..questionnaires import Item, Questionnaire
from .messages import _system_for_choice, messages, option_labels


def _scored_replies(questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
    """Return a row for every combination of a prompt to a language model and a reply to score.

    Returns
    -------
    DataFrame
        ``item_id, permutation, position, option, label, value, reply``, the ``prompt`` (system and
        user text), and ``is_baseline``.
    """
    voice = conditions["wording"] == "voice"
    baseline = conditions["baseline"]
    bare = questionnaire.model_copy(update={"stem": None})  # a baseline is a whole sentence
    rows = []
    for item in questionnaire.items:
        options = questionnaire.choices(item)
        names = option_labels(options, conditions["labels"])
        orders = [tuple(range(len(options)))]  # a voice prompt shows no options

        if not voice:
            orders = _orders_of(len(options), conditions["permutations"])

        for number, order in enumerate(orders, start=1):
            prompts = [_choice_prompt(questionnaire, item, conditions, order)]
            if baseline is not None:
                empty = item.model_copy(update={"text": baseline})
                prompts.append(_choice_prompt(bare, empty, conditions, order))

            for place, i in enumerate(order):
                reply = names[place] if conditions["score"] == "label" else options[i].label
                row = {
                    "item_id": item.id,
                    "permutation": number,
                    "position": place + 1,
                    "option": i + 1,
                    "label": options[i].label,
                    "value": options[i].value,
                    "reply": _voice_sentence(reply) if voice else reply,
                }

                for text in prompts:
                    rows.append(row | {"prompt": text, "is_baseline": text is not prompts[0]})

    return pd.DataFrame(rows)


def _choice_prompt(
    questionnaire: Questionnaire, item: Item, conditions: dict[str, Any], order: tuple[int, ...]
) -> tuple[str, str]:
    """Return the system and user text about an item; for a voice, only the text to continue."""
    if conditions["wording"] == "voice":
        statement = questionnaire.statement(item)
        persona = conditions["persona"]
        return "", f"{persona} {statement}" if persona else statement

    prompt = messages(
        questionnaire,
        [item],
        conditions["role"],
        conditions["wording"],
        labels=conditions["labels"],
        orders=[order],
        reply="choice",
    )
    *system, user = (message["content"] for message in prompt)
    return "".join(system), user  # a file's own prompt may have no system text


def _as_text(prompt: tuple[str, str]) -> str:
    """Return the text that a base model continues."""
    system, user = prompt
    return f"{system}\n{user}\nAnswer:" if system else user


def _endpoint_replies(questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
    """Return a row for every combination of a prompt to an endpoint and a label of an option."""
    own_system = _system_for_choice(questionnaire, conditions["labels"])
    if conditions["role"] == "default" and conditions["wording"] != "file" and own_system:
        conditions = conditions | {"role": own_system}

    rows = _scored_replies(questionnaire, conditions)
    long = [label for label in rows["reply"] if len(label) > 1]
    if long:
        raise ParameterError(f"The label {long[0]} may be several tokens: use labels=alphabetical.")

    if conditions["raw"]:
        rows["prompt"] = [("", _as_text(prompt)) for prompt in rows["prompt"]]

    return rows


def _option_sentence(label: str) -> str:
    """Turn an option into a sentence in the first person that can follow a statement.

    Examples
    --------
    >>> _option_sentence("very inaccurate")
    'As a description of me, this is very inaccurate.'
    >>> _option_sentence("Strongly agree")
    'I strongly agree with this.'
    >>> _option_sentence("yes")
    'Yes, this is true of me.'
    >>> _option_sentence("Paris")
    'The answer is: Paris.'
    """
    words = label.strip().rstrip(".")
    low = words.lower()

    if re.search(r"\b(in)?accurate\b|\b(un)?true\b|\bfalse\b|\b(un)?characteristic\b", low):
        return f"As a description of me, this is {low}."
    if re.search(r"\b(dis)?agree\b", low):
        return f"I {low} with this."
    if re.search(r"\b(dis)?like\b", low):
        return f"I {low} this."

    if low in ("yes", "no"):
        return "Yes, this is true of me." if low == "yes" else "No, this is not true of me."
    if re.fullmatch(r"(almost )?(always|never)|often|sometimes|rarely|seldom|usually", low):
        return f"This is {low} true of me."

    return f"The answer is: {words}."


def _voice_sentence(label: str) -> str:
    """Turn an option into a sentence with which a speaker could continue after a statement.

    Examples
    --------
    >>> _voice_sentence("very inaccurate")
    'This describes me very inaccurately.'
    >>> _voice_sentence("neither accurate nor inaccurate")
    'This describes me neither accurately nor inaccurately.'
    >>> _voice_sentence("Strongly agree")
    'I strongly agree with this.'
    """
    words = label.strip().rstrip(".").lower()
    if re.search(r"\b(in)?accurate\b", words):
        return f"This describes me {re.sub('accurate', 'accurately', words)}."
    return _option_sentence(label)


def _orders_of(count: int, permutations: str) -> list[tuple[int, ...]]:
    """Return the orders of options; an order lists the option at each place.

    Examples
    --------
    >>> _orders_of(3, "cyclic")
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    order = tuple(range(count))
    if permutations == "cyclic":
        return [order[i:] + order[:i] for i in range(count)]
    return [order if permutations == "given" else order[::-1]]
