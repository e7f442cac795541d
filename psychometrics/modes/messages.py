"""The messages that put statements to a chat model.

Roles, wordings, chain of thought, option labels and a cipher determine the messages;
``data/messages.yml`` has the texts in each language. Roles and wordings have the purpose and
structure of those in Huang et al. (2024), but the sentences are the project's own, so results are
comparable in kind, not in size.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import yaml

from ..checks import check_kinds
from ..exceptions import ParameterError
from ..paths import data_dir
from ..questionnaires import Item, Option, Questionnaire

# Wording v1 has the structure of the paper's own, v2 to v5 of the four that it compares.
_LANGUAGES = yaml.safe_load((data_dir() / "messages.yml").read_text(encoding="utf-8"))
ROLES: dict[str, str] = _LANGUAGES["en"]["roles"]
"""The system texts by role. A user may also give a text instead of a role's name."""
PERSONAS: dict[str, str] = _LANGUAGES["en"]["personas"]
"""The roles in the first person, as premises for respondents that answer by inference."""
Labels = Literal["numeric", "alphabetical", "lowercase"]
"""The kinds of labels that are shown before the options."""
_Labelled = list[tuple[str, str]]  # the options of an item, as labels and texts
# Forms of a reply; ``json_schema`` also sends the form to an endpoint, and ``choice`` is for a
# single statement, answered by the choice alone.
_KINDS = {
    "think": bool,
    "reply": Literal["lines", "json", "json_schema", "choice"],
    "cipher": int,
}


def option_labels(options: Sequence[Option], labels: str = "numeric") -> list[str]:
    """Return the labels of options, by position.

    Parameters
    ----------
    options : sequence of Option
        Options in the questionnaire's order.
    labels : {"numeric", "alphabetical", "lowercase"}
        The options' values in rising order, or the letters A, B, C, ... or a, b, c, ... Labels
        belong to positions: even if options are shown in a different order, the first place has the
        first label.

    Examples
    --------
    >>> option_labels([Option(value=0, label="no"), Option(value=1, label="yes")])
    ['0', '1']
    """
    if labels not in get_args(Labels):
        names = ", ".join(get_args(Labels))
        raise ParameterError(f"labels must be one of {names}, got {labels!r}.")
    if labels == "numeric":
        return [f"{value:g}" for value in sorted(option.value for option in options)]
    if len(options) > len(string.ascii_uppercase):
        raise ParameterError(
            f"{len(options)} options exceed the alphabet: use labels='numeric' and, if options are "
            "numbers, the options in the order given."
        )
    letters = string.ascii_uppercase if labels == "alphabetical" else string.ascii_lowercase
    return list(letters[: len(options)])


def as_filed(questionnaire: Questionnaire, conditions: dict[str, Any]) -> dict[str, Any]:
    """Fill in the ``wording`` of conditions: the file's own prompt if it has one, or else v1.

    A file's own prompt fixes the labels, and asks one item at a time if it contains ``{question}``.
    Otherwise options that are themselves numbers, as in the middle of a scale with words only at
    its ends, get letters as labels where a numeric label would call one number another.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> as_filed(load_questionnaire("ipip20"), {"wording": None, "labels": "numeric"})
    {'wording': 'v1', 'labels': 'numeric'}
    """
    prompt = questionnaire.prompt
    wording = conditions["wording"]
    if wording is None:
        wording = "file" if prompt and prompt.usual else "v1"

    filed = conditions | {"wording": wording}
    if wording == "file" and prompt:
        filed["labels"] = prompt.labels
        if "{question}" in prompt.template and "batch_size" in filed:
            filed["batch_size"] = 1
    elif filed["labels"] == "numeric" and wording != "voice":  # a voice shows no labels
        order = conditions.get("permutations", conditions.get("order", "given"))
        if any(_renames_number(questionnaire.choices(i), order) for i in questionnaire.items):
            filed["labels"] = "alphabetical"

    return filed


def _renames_number(options: Sequence[Option], order: str) -> bool:
    """Return whether a numeric label would stand before an option that is a different number."""
    for name, option in zip(option_labels(options), options, strict=True):
        try:
            number = float(option.label)
        except ValueError:
            continue

        if order != "given" or number != float(name):
            return True

    return False


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
        Items in the order of their numbers.
    role, wording : str
        Names of a role in ``ROLES`` and of a wording, or the user's own texts. A wording contains
        ``{statements}`` and may contain ``{instructions}``, ``{levels}``, ``{range}`` and
        ``{things}``. The default role is the questionnaire's own system text, if it has one. The
        wording ``"file"`` is the questionnaire's own prompt, word for word: its ``prompt``, or else
        its instructions followed by the numbered statements, as PsychoBench sends them, without a
        sentence on the form of the reply.
    think : bool
        Whether to ask for an explanation before the scores.
    labels : {"numeric", "alphabetical"}
    orders : sequence of tuple of int, optional
        For each item, the index of the option at each place; by default the questionnaire's order.
    reply : {"lines", "json", "json_schema", "choice"}
        Form of the reply: a line for each statement, one JSON object, or the choice alone.
    cipher : int
        Number of places by which each letter of the user's message is shifted; the system text
        announces the shift.

    Returns
    -------
    list of dict
        Messages with ``role`` and ``content``: the system text unless it is empty, then the items.

    Raises
    ------
    ParameterError
        The role, the wording, the labels or the form of the reply is unknown, or there are no
        items.

    References
    ----------
    Huang et al. (2024), section 3.1 and Table 21; the sentences are the project's own.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> print(messages(mini, mini.items[:1], role="none")[-1]["content"].splitlines()[-1])
    1. I am the life of the party.
    """
    check_kinds(locals(), _KINDS)
    if not items:
        raise ParameterError("There are no items to ask: give at least one.")

    language = _choose_language(questionnaire)
    phrases = language["phrases"]
    labelled = _label_options(questionnaire, items, labels, orders)
    own_system = questionnaire.system or ""

    if wording == "file":
        if think or cipher or reply not in ("lines", "choice"):
            raise ParameterError("A file's own prompt is fixed: leave out think, cipher and reply.")

        system = own_system if role == "default" else _write_role(language, role)
        return _write_filed_messages(questionnaire, items, labelled, system)

    template = language["wordings"].get(wording, wording)
    if not isinstance(template, str) or "{statements}" not in template:
        raise ParameterError(
            f"There is no wording {wording!r}: name v1 to v5, or write a text with {{statements}}."
        )

    parts = _write_parts(questionnaire, items, labelled, phrases)
    user = re.sub(r" {2,}", " ", _fill(template, parts))
    if think:
        user = f"{phrases['think']} {user}"

    example, _ = labelled[0][-1]
    if labels != "numeric":
        example = f'"{example}"'

    role_text = _write_role(language, role)
    if role == "default" and reply != "choice":
        # The file's own system text has numbers only if replies use numbers.
        is_plain = labels == "numeric" and reply == "lines"
        role_text = (own_system if is_plain else _remove_numbers(own_system)) or role_text

    system = _write_system(role_text, phrases, reply, think, example)
    if cipher:
        user = caesar(user, cipher)
        system = f"{system} {_fill(phrases['cipher'], {'places': f'{cipher}'})}"

    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def attention_text(questionnaire: Questionnaire, option: Option) -> str:
    """Return a statement that asks for a certain option, in the questionnaire's language.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> gad7 = load_questionnaire("gad7")
    >>> attention_text(gad7, gad7.options[0])
    'To show that you are reading, choose this answer: Not at all'
    """
    text = _choose_language(questionnaire)["phrases"]["attention"]
    return _fill(text, {"option": option.label})


def _choose_language(questionnaire: Questionnaire) -> dict[str, Any]:
    """Return the texts in a questionnaire's language, or the English texts."""
    tongue = questionnaire.language.partition("-")[0].lower()
    language: dict[str, Any] = _LANGUAGES.get(tongue, _LANGUAGES["en"])
    return language


def _label_options(
    questionnaire: Questionnaire,
    items: Sequence[Item],
    labels: str,
    orders: Sequence[tuple[int, ...]] | None,
) -> list[_Labelled]:
    """Return the options of each item in the order shown, as pairs of a label and a text."""
    options = [questionnaire.choices(item) for item in items]
    usual = [tuple(range(len(choices))) for choices in options]
    if orders is not None and [tuple(sorted(order)) for order in orders] != usual:
        raise ParameterError("orders: give each option's index once for each item.")

    labelled = []
    for choices, order in zip(options, orders or usual, strict=True):
        texts = [choices[place].label for place in order]
        labelled.append(list(zip(option_labels(choices, labels), texts, strict=True)))

    return labelled


def _write_parts(
    questionnaire: Questionnaire,
    items: Sequence[Item],
    labelled: list[_Labelled],
    phrases: Mapping[str, str],
) -> dict[str, str]:
    """Return the texts for a wording's gaps: instructions, options and statements."""
    listed = [", ".join(f"{name} = {text}" for name, text in options) for options in labelled]
    lines = [f"{n}. {questionnaire.statement(item)}" for n, item in enumerate(items, start=1)]

    if all(options == labelled[0] for options in labelled):
        ends = {"first": labelled[0][0][0], "last": labelled[0][-1][0]}
        span = _fill(phrases["range"], ends)
        levels = _fill(phrases["levels"], {"options": listed[0]})
    else:
        span = phrases["own range"]
        levels = phrases["own levels"]
        lines = [f"{line} ({choices})" for line, choices in zip(lines, listed, strict=True)]

    parts = {"range": span, "levels": levels, "things": phrases["things"]}
    parts["instructions"] = _remove_numbers(questionnaire.instructions or "")
    return parts | {"statements": "\n".join(lines)}


def _shorten_system(questionnaire: Questionnaire, labels: str = "numeric") -> str:
    """Return a questionnaire's own system text for answering one item at a time by a label.

    The sentence about the form of a longer reply is left out, because a statement's index could be
    mistaken for a label; if labels are letters, the numbers in the text are left out, too.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> own = load_questionnaire("ipip20").model_copy(
    ...     update={"system": 'You reply with numbers from 1 to 5. Format: "index: score".'})
    >>> _shorten_system(own)
    'You reply with numbers from 1 to 5.'
    """
    text = questionnaire.system or ""
    if labels != "numeric":
        return _remove_numbers(text)
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    return " ".join(sentence for sentence in sentences if not sentence.startswith("Format:"))


def _write_filed_messages(
    questionnaire: Questionnaire, items: Sequence[Item], labelled: list[_Labelled], system: str
) -> list[dict[str, str]]:
    """Return the questionnaire's own prompt after the system text, if there is one."""
    prompt = questionnaire.prompt
    if prompt is None and not questionnaire.instructions:
        raise ParameterError(f"{questionnaire.id} has no prompt or instructions: name a wording.")

    template = prompt.template if prompt else f"{questionnaire.instructions}\n{{statements}}"
    parts = {"statements": "\n".join(f"{n}. {item.text}" for n, item in enumerate(items, start=1))}
    usual = [[option.label for option in questionnaire.choices(item)] for item in items]
    if prompt and "{question}" in template:
        lines = [f"{name}{prompt.delimiter}{text}" for name, text in labelled[0]]
        parts |= {"question": items[0].text, "choices": "\n".join(lines)}
    elif [[text for _, text in options] for options in labelled] != usual:
        raise ParameterError(f"The prompt of {questionnaire.id} fixes the order of its options.")

    user = {"role": "user", "content": _fill(template, parts)}
    return [{"role": "system", "content": system}, user] if system else [user]


def _write_role(language: dict[str, Any], role: str) -> str:
    """Return the text of a role that is given by its name or as text."""
    text: str = language["roles"].get(role, role) if isinstance(role, str) else role
    if text is role and (not isinstance(role, str) or " " not in role.strip()):
        raise ParameterError(f"There is no role {role!r}: write a sentence, or {', '.join(ROLES)}.")
    return text.strip()


def _write_system(
    role_text: str, phrases: Mapping[str, str], reply: str, think: bool, label: str
) -> str:
    """Return the role's text, followed by the form of the reply."""
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


def _remove_numbers(instructions: str) -> str:
    """Remove from instructions the sentences that explain the numbers.

    The prompt itself explains its labels, in its own order of options; such a sentence would
    contradict it.

    Examples
    --------
    >>> _remove_numbers("How true is each of these? 1 denotes 'false', 2 denotes 'true'.")
    'How true is each of these?'
    """
    sentences = re.split(r"(?<=[.!?])\s+", instructions.strip())
    stale = ("Here are the", "Format:")
    usable = [s for s in sentences if not re.search(r"\d", s) and not s.startswith(stale)]
    return " ".join(usable)


def _fill(template: str, parts: dict[str, str]) -> str:
    """Fill the named gaps of a template, and leave other braces unchanged."""
    return re.sub(r"\{([^}]*)\}", lambda gap: parts.get(gap[1], gap[0]), template)


def caesar(text: str, shift: int = 3) -> str:
    """Shift each Latin letter forward by a number of places, or back if it is negative.

    Examples
    --------
    >>> caesar("Xyz: 4", 3)
    'Abc: 4'
    >>> caesar(caesar("Xyz: 4", 3), -3)
    'Xyz: 4'
    """
    low = string.ascii_lowercase
    high = string.ascii_uppercase
    n = shift % 26
    return text.translate(str.maketrans(low + high, low[n:] + low[:n] + high[n:] + high[:n]))
