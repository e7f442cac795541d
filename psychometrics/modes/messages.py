"""The messages that put statements to a chat model.

Roles, wordings, chain of thought, option labels and a cipher make the messages; their texts, in
each language, are in ``data/messages.yml``. Roles and wordings follow the paper's in purpose and
structure; the sentences are the project's own, so results are comparable in kind, not to the word.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import yaml

from ..exceptions import ParameterError
from ..paths import data_dir
from ..questionnaires import Item, Option, Questionnaire

_LANGUAGES = yaml.safe_load((data_dir() / "messages.yml").read_text(encoding="utf-8"))
ROLES: dict[str, str] = _LANGUAGES["en"]["roles"]
"""System texts by role; another text may be given instead of a name."""
PERSONAS: dict[str, str] = _LANGUAGES["en"]["personas"]
"""The roles in the first person: premises for respondents that answer by inference."""
WORDINGS: dict[str, str] = _LANGUAGES["en"]["wordings"]
"""User prompts: v1 has the structure of the paper's own, v2 to v5 that of the four it compares."""
REPLIES = ("lines", "json", "json_schema", "choice")
"""How replies are to be written; ``json_schema`` also gives an endpoint their form, and ``choice``
is for a single statement, answered by the choice alone."""
LABELS = ("numeric", "alphabetical")


def option_labels(options: Sequence[Option], labels: str = "numeric") -> list[str]:
    """Return the labels of options, by position.

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


def messages(
    questionnaire: Questionnaire,
    items: Sequence[Item],
    role: str = "default",
    wording: str = "v1",
    think: bool = False,
    labels: str = "numeric",
    orders: Sequence[tuple[int, ...]] | None = None,
    reply: str = "lines",
    cipher: int = 0,
) -> list[dict[str, str]]:
    """Write the messages that put some items to a chat model, in the questionnaire's language.

    Parameters
    ----------
    questionnaire : Questionnaire
    items : sequence of Item
        In the order in which they are numbered.
    role, wording : str
        Names in ``ROLES`` and ``WORDINGS``, or texts of the user's; a wording has ``{statements}``
        and may have ``{instructions}``, ``{levels}``, ``{range}`` and ``{things}``.
    think : bool
        Ask for an explanation before the scores.
    labels : {"numeric", "alphabetical"}
    orders : sequence of tuple of int, optional
        For each item, which option is shown at which place; by default as given.
    reply : {"lines", "json", "json_schema", "choice"}
        Ask for a line for each statement, for one JSON object, or for the choice alone.
    cipher : int
        By how many places each letter of the user's message is moved on; the system text says so.

    Returns
    -------
    list of dict
        ``role`` and ``content``, system first unless it is empty.

    Raises
    ------
    ParameterError
        The role, wording, labels or form of the reply are unknown.

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
    tongue = questionnaire.language.partition("-")[0].lower()
    language = _LANGUAGES.get(tongue, _LANGUAGES["en"])
    phrases = language["phrases"]
    template = language["wordings"].get(wording, wording)
    if not isinstance(template, str) or "{statements}" not in template:
        raise ParameterError(
            f"There is no wording {wording!r}: name one of {', '.join(WORDINGS)}, or write a text "
            "with {statements} in it."
        )
    if reply not in REPLIES:
        raise ParameterError(f"reply must be one of {', '.join(REPLIES)}, got {reply!r}.")
    options = [questionnaire.choices(item) for item in items]
    orders = orders or [tuple(range(len(choices))) for choices in options]
    lines = [f"{n}. {questionnaire.statement(item)}" for n, item in enumerate(items, start=1)]
    shown = [_list_options(*pair, labels) for pair in zip(options, orders, strict=True)]
    names = option_labels(options[0], labels)
    if len(set(zip(options, orders, strict=True))) == 1:
        span = _fill(phrases["range"], {"first": names[0], "last": names[-1]})
        levels = _fill(phrases["levels"], {"options": shown[0]})
    else:
        span, levels = phrases["own range"], phrases["own levels"]
        lines = [f"{line} ({listed})" for line, listed in zip(lines, shown, strict=True)]
    parts = {"range": span, "levels": levels, "things": phrases["things"]}
    parts["instructions"] = _without_numbers(questionnaire.instructions or "")
    parts["statements"] = "\n".join(lines)
    user = re.sub(r" {2,}", " ", _fill(template, parts))
    if think:
        user = f"{phrases['think']} {user}"
    example = names[-1] if labels == "numeric" else f'"{names[-1]}"'
    system = _system_text(language, role, reply, think, example)
    if cipher:
        user = caesar(user, cipher)
        system = f"{system} {_fill(phrases['cipher'], {'places': f'{cipher}'})}"
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _system_text(language: dict, role: str, reply: str, think: bool, label: str) -> str:
    """The role, a name or a sentence, and what the reply is to look like."""
    role_text, phrases = language["roles"].get(role), language["phrases"]
    if role_text is None:
        if not isinstance(role, str) or " " not in role.strip():
            raise ParameterError(
                f"There is no role {role!r}: name one of {', '.join(ROLES)}, or write a sentence."
            )
        role_text = role.strip()
    if reply in ("lines", "choice"):
        form = f"{phrases['explain' if think else 'alone']} {phrases[reply]}"
        form += f" {phrases['last']}" if think else ""
    else:
        form = _fill(phrases["json"], {"example": f'{{"1": {label}}}'})
        if think and reply == "json":
            form = f"{phrases['explain']} {form} {phrases['last json']}"
        else:
            form = f"{phrases['explained json' if think else 'alone']} {form}"
    return f"{role_text} {form}" if role_text else form


def _without_numbers(instructions: str) -> str:
    """Instructions without the sentences that say which number means what.

    The prompt says it itself, for its own labels and order of options, which an old sentence would
    contradict.

    Examples
    --------
    >>> _without_numbers("How true is each of these? 1 denotes 'false', 2 denotes 'true'.")
    'How true is each of these?'
    """
    sentences = re.split(r"(?<=[.!?])\s+", instructions.strip())
    kept = [s for s in sentences if not re.search(r"\d", s) and not s.startswith("Here are the")]
    return " ".join(kept)


def _list_options(options: Sequence[Option], order: Sequence[int], labels: str) -> str:
    """Options in an order, each behind its label."""
    names = option_labels(options, labels)
    return ", ".join(f"{n} = {options[i].label}" for n, i in zip(names, order, strict=True))


def _fill(template: str, parts: dict[str, str]) -> str:
    """Fill the named gaps of a template; other braces stay as they are."""
    return re.sub(r"\{([^}]*)\}", lambda gap: parts.get(gap[1], gap[0]), template)


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
