"""What a chat model reads: roles, wordings, chain of thought, option labels and a cipher.

Roles and wordings follow the paper's by purpose and structure; the sentences are the project's
own, so that results are comparable in kind and not to the word.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import numpy as np

from .exceptions import ParameterError
from .questionnaires import Item, Option, Questionnaire

ROLES = {
    "default": "You are a helpful assistant.",
    "none": "",
    "ordinary": "Take the part of an ordinary person and answer as that person would.",
    "hero": "Take the part of a hero, brave and upright, and answer as that person would.",
    "liar": "Take the part of a liar, who rarely tells the truth, and answer as that person would.",
    "psychopath": (
        "Take the part of a psychopath, without pity or remorse, and answer as that person would."
    ),
}
"""System texts by role; another text may be given instead of a name."""

PERSONAS = {
    "default": "I am a helpful assistant. I answer questions and do what I am asked.",
    "ordinary": "I am an ordinary person. I live and work like most people do.",
    "hero": "I am a hero. I am brave and upright, and I stand up for others.",
    "liar": "I am a liar. I rarely tell the truth, and I deceive others to get my way.",
    "psychopath": "I am a psychopath. I feel no pity and no remorse, and I use others.",
}
"""The roles in the first person: premises for respondents that answer by inference."""

WORDINGS = {
    "v1": (
        "Reply with nothing but {range}. {instructions} {levels}\n"
        "These are the {things}; give each a score:\n{statements}"
    ),
    "v2": (
        "Below, a person is described in a few words at a time. Read each description and say how "
        "much that person resembles you. {instructions} {levels}\n"
        "Answer each one, even where you are unsure.\n{statements}"
    ),
    "v3": (
        "These {things} are about you:\n{statements}\n"
        "From the options here, choose how well each one fits you. {levels}"
    ),
    "v4": (
        "Some characteristics follow, which may be yours or not. Rate your agreement with each on "
        "the scale given: {levels}\nThese are the {things}; give each a score:\n{statements}"
    ),
    "v5": (
        "Some characteristics follow, which may be yours or not. How much do you agree? Use the "
        "scale given: {levels}\nThese are the {things}; give each a score:\n{statements}"
    ),
}
"""User prompts: v1 has the structure of the paper's own, v2 to v5 that of the four it compares."""

THINK = "Think it through step by step, in words, before you choose."
LABELS = ("numeric", "alphabetical")
ORDERS = ("given", "reversed", "shuffled")


def role_text(role: str) -> str:
    """System text of a role, or the text itself if it is not a name in ``ROLES``.

    Raises
    ------
    ParameterError
        It is a single word that names no role.

    Examples
    --------
    >>> role_text("none")
    ''
    >>> role_text("You are a sailor.")
    'You are a sailor.'
    """
    if role in ROLES:
        return ROLES[role]
    if not isinstance(role, str) or " " not in role.strip():
        raise ParameterError(
            f"There is no role {role!r}: name one of {', '.join(ROLES)}, or write a sentence."
        )
    return role.strip()


def option_labels(options: Sequence[Option], labels: str = "numeric") -> list[str]:
    """What stands before the options, by position.

    Parameters
    ----------
    options : sequence of Option
        In the questionnaire's order.
    labels : {"numeric", "alphabetical"}
        The options' values in rising order, or A, B, C and so on. Labels belong to positions:
        where options are shown in another order, the first place still has the first label.

    Examples
    --------
    >>> option_labels([Option(value=0, label="no"), Option(value=1, label="yes")])
    ['0', '1']
    """
    if labels not in LABELS:
        raise ParameterError(f"labels must be one of {', '.join(LABELS)}, got {labels!r}.")
    if labels == "numeric":
        return [f"{value:g}" for value in sorted(option.value for option in options)]
    if len(options) > len(string.ascii_uppercase):
        raise ParameterError(f"{len(options)} options are more than letters; use numeric labels.")
    return list(string.ascii_uppercase[: len(options)])


def option_order(count: int, order: str, rng: np.random.Generator) -> tuple[int, ...]:
    """Which option stands at which place, for one of ``ORDERS``."""
    if order not in ORDERS:
        raise ParameterError(f"option_order must be one of {', '.join(ORDERS)}, got {order!r}.")
    places = np.arange(count)
    if order == "reversed":
        places = places[::-1]
    elif order == "shuffled":
        places = rng.permutation(count)
    return tuple(int(i) for i in places)


def messages(
    questionnaire: Questionnaire,
    items: Sequence[Item],
    role: str = "default",
    wording: str = "v1",
    think: bool = False,
    labels: str = "numeric",
    orders: Sequence[tuple[int, ...]] | None = None,
    shift: int = 0,
) -> list[dict[str, str]]:
    """The messages that put some items to a chat model.

    Parameters
    ----------
    questionnaire : Questionnaire
    items : sequence of Item
        In the order in which they are numbered.
    role, wording : str
        Of ``ROLES`` and ``WORDINGS``, or a text of the user's; a wording has ``{statements}``
        and may have ``{instructions}``, ``{levels}``, ``{range}`` and ``{things}``.
    think : bool
        Ask for an explanation before the scores.
    labels : {"numeric", "alphabetical"}
    orders : sequence of tuple of int, optional
        Per item, which option stands at which place; as given if left out.
    shift : int
        Of the Caesar cipher in which the user's message is put; 0 for none.

    Returns
    -------
    list of dict
        ``role`` and ``content``, system first unless it is empty.

    Raises
    ------
    ParameterError
        The role, wording or labels are unknown.

    References
    ----------
    Huang et al. (2024), section 3.1 and Table 21, in the project's own words.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> print(messages(mini, mini.items[:1], role="none")[-1]["content"].splitlines()[-1])
    1. I am the life of the party.
    """
    if not items:
        raise ParameterError("There are no items to ask: give at least one.")
    template = WORDINGS.get(wording, wording)
    if not isinstance(template, str) or "{statements}" not in template:
        raise ParameterError(
            f"There is no wording {wording!r}: name one of {', '.join(WORDINGS)}, or write a text "
            "with {statements} in it."
        )
    orders = orders or [tuple(range(len(questionnaire.choices(item)))) for item in items]
    shared = len({(questionnaire.choices(i), o) for i, o in zip(items, orders, strict=True)}) == 1
    shown = [
        listed(questionnaire, item, order, labels)
        for item, order in zip(items, orders, strict=True)
    ]
    lines = [f"{n}. {questionnaire.statement(item)}" for n, item in enumerate(items, start=1)]
    if not shared:
        lines = [f"{line} ({options})" for line, options in zip(lines, shown, strict=True)]
    names = option_labels(questionnaire.choices(items[0]), labels)
    parts = {
        "range": f"labels from {names[0]} to {names[-1]}" if shared else "the labels given",
        "instructions": without_numbers(questionnaire.instructions),
        "levels": f"The scale: {shown[0]}." if shared else "Each has its own options.",
        "things": "statements",
        "statements": "\n".join(lines),
    }
    user = re.sub(r" {2,}", " ", filled(template, parts))
    if think:
        user = f"{THINK} {user}"
    form = "Write one line for each statement: its number, a colon, the label you choose."
    if think:
        form = f"Explain yourself first. {form} Put these lines at the end."
    else:
        form = f"Write nothing else. {form}"
    system = " ".join(part for part in (role_text(role), form) if part)
    if shift:
        system += (
            f" We write in a Caesar cipher: each letter is moved {shift} places on in the "
            "alphabet, digits stay. Read my message so, and reply in the same cipher."
        )
        user = caesar(user, shift)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def without_numbers(instructions: str) -> str:
    """Instructions without the sentences that say which number means what.

    The prompt says it itself, for the labels and the order of options that it has; an old
    sentence beside it would contradict them.

    Examples
    --------
    >>> without_numbers("How true is each of these? 1 denotes 'false', 2 denotes 'true'.")
    'How true is each of these?'
    """
    sentences = re.split(r"(?<=[.!?])\s+", instructions.strip())
    kept = [s for s in sentences if not re.search(r"\d", s) and not s.startswith("Here are the")]
    return " ".join(kept)


def listed(questionnaire: Questionnaire, item: Item, order: Sequence[int], labels: str) -> str:
    """The options of an item behind their labels, in an order."""
    options = questionnaire.choices(item)
    names = option_labels(options, labels)
    return ", ".join(f"{n} = {options[i].label}" for n, i in zip(names, order, strict=True))


def filled(template: str, parts: dict[str, str]) -> str:
    """A template with its named gaps filled; other braces stay as they are."""
    out, rest = "", template
    while rest:
        start = rest.find("{")
        end = rest.find("}", start)
        if start < 0 or end < 0:
            return out + rest
        name = rest[start + 1 : end]
        out += rest[:start] + parts.get(name, rest[start : end + 1])
        rest = rest[end + 1 :]
    return out


def caesar(text: str, shift: int = 3) -> str:
    """Move each Latin letter on by some places; minus as many places turns it back.

    Examples
    --------
    >>> caesar("Xyz: 4", 3)
    'Abc: 4'
    >>> caesar(caesar("Xyz: 4", 3), -3)
    'Xyz: 4'
    """
    low, high = string.ascii_lowercase, string.ascii_uppercase
    n = shift % 26
    return text.translate(str.maketrans(low + high, low[n:] + low[:n] + high[n:] + high[:n]))
