"""What a chat model reads, and how its reply is read.

Roles, wordings, chain of thought, option labels and a cipher make the messages. Roles and wordings
follow the paper's by purpose and structure; the sentences are the project's own, so that results
are comparable in kind and not to the word. Replies are read strictly: what is not plainly an answer
is recorded, never guessed.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

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
FORM = "Write one line for each statement: its number, a colon, the label you choose."
"""Last sentence of the system text; a way of asking that reads no lines puts its own there."""

_REFUSALS = re.compile(
    r"\bas an? (ai|artificial|(large )?language model|assistant|chatbot|machine)\b"
    r"|\b(i|we) (am|'m|are) (sorry|unable|not able|just an? (ai|language model))"
    r"|\bi'm (sorry|unable|not able|just an? (ai|language model))"
    r"|\bi (cannot|can't|can not|won't|will not|must decline|prefer not|do not wish|refuse)\b"
    r"|\bi (do not|don't) have (any )?(personal|feelings|emotions|opinions|beliefs|experiences)",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"(?:(?:statement|question|item|number|no\.?)\s*)?#?\(?(\d{1,4})\)?\s*(?:[:=)\]–]|\.\s|\s-\s)\s*(.+)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)
_CORRECTION = re.compile(
    r"^\W*(?:correction|corrected|edit|sorry|wait|actually|rather|i mean|i meant)\b[\s,:;.–-]*",
    re.IGNORECASE,
)


def _role_text(role: str) -> str:
    """System text of a role, or the text itself if it is not a name in ``ROLES``.

    Raises
    ------
    ParameterError
        It is a single word that names no role.

    Examples
    --------
    >>> _role_text("none")
    ''
    >>> _role_text("You are a sailor.")
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


def messages(
    questionnaire: Questionnaire,
    items: Sequence[Item],
    role: str = "default",
    wording: str = "v1",
    think: bool = False,
    labels: str = "numeric",
    orders: Sequence[tuple[int, ...]] | None = None,
    cipher: int = 0,
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
    cipher : int
        Places by which each letter of the user's message is moved on; 0 for none.

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
        _listed(questionnaire, item, order, labels)
        for item, order in zip(items, orders, strict=True)
    ]
    lines = [f"{n}. {questionnaire.statement(item)}" for n, item in enumerate(items, start=1)]
    if not shared:
        lines = [f"{line} ({options})" for line, options in zip(lines, shown, strict=True)]
    names = option_labels(questionnaire.choices(items[0]), labels)
    parts = {
        "range": f"labels from {names[0]} to {names[-1]}" if shared else "the labels given",
        "instructions": _without_numbers(questionnaire.instructions),
        "levels": f"The scale: {shown[0]}." if shared else "Each has its own options.",
        "things": "statements",
        "statements": "\n".join(lines),
    }
    user = re.sub(r" {2,}", " ", _filled(template, parts))
    if think:
        user = f"{THINK} {user}"
    if think:
        form = f"Explain yourself first. {FORM} Put these lines at the end."
    else:
        form = f"Write nothing else. {FORM}"
    system = " ".join(part for part in (_role_text(role), form) if part)
    if cipher:
        system += (
            f" We write in a Caesar cipher: each letter is moved {cipher} places on in the "
            "alphabet, digits stay. Read my message so, and reply in the same cipher."
        )
        user = caesar(user, cipher)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _without_numbers(instructions: str) -> str:
    """Instructions without the sentences that say which number means what.

    The prompt says it itself, for the labels and the order of options that it has; an old
    sentence beside it would contradict them.

    Examples
    --------
    >>> _without_numbers("How true is each of these? 1 denotes 'false', 2 denotes 'true'.")
    'How true is each of these?'
    """
    sentences = re.split(r"(?<=[.!?])\s+", instructions.strip())
    kept = [s for s in sentences if not re.search(r"\d", s) and not s.startswith("Here are the")]
    return " ".join(kept)


def _listed(questionnaire: Questionnaire, item: Item, order: Sequence[int], labels: str) -> str:
    """The options of an item behind their labels, in an order."""
    options = questionnaire.choices(item)
    names = option_labels(options, labels)
    return ", ".join(f"{n} = {options[i].label}" for n, i in zip(names, order, strict=True))


def _filled(template: str, parts: dict[str, str]) -> str:
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


def parse_reply(
    reply: str | None,
    questionnaire: Questionnaire,
    items: Sequence[Item],
    labels: str = "numeric",
    orders: Sequence[tuple[int, ...]] | None = None,
) -> list[tuple[str, float | None]]:
    """Status and value of each item, from one reply.

    A statement is answered by a line with its number, a separator and the label or the whole
    text of an option (also both, if they agree), and nothing else but the statement's own text
    and marks of emphasis. Several such answers may stand on a line between commas. To a single
    statement the label or text alone will do. A statement answered twice, differently, is
    ``ambiguous``, also where the second stands in a line of correction; a number that is no label
    ``out_of_range``; a line with the statement's number and anything else ``unreadable``. What
    stands in ``<think>`` is no answer, even where the thinking never ends. Where the rest is
    missing, words of refusal make it ``refused``; a reply with no answer at all is ``unreadable``,
    an empty one ``missing``.

    Parameters
    ----------
    reply : str or None
        As the model gave it; deciphered if it was in cipher.
    questionnaire : Questionnaire
    items : sequence of Item
        In the order in which they were numbered, from 1.
    labels : {"numeric", "alphabetical"}
        What stood before the options.
    orders : sequence of tuple of int, optional
        Per item, which option stood at which place.

    Returns
    -------
    list of (status, value)
        One per item; value None where the status is not ``ok``.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> parse_reply("1: 4\\n2: 9\\nAs an AI, I have no moods.", mini, mini.items[:3])
    [('ok', 4.0), ('out_of_range', None), ('refused', None)]
    """
    text = (reply or "").replace("’", "'").strip()
    if not text:
        return [("missing", None)] * len(items)
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    text = _THOUGHTS.sub("\n", text.replace("：", ":"))  # full-width, as its digits
    orders = orders or [tuple(range(len(questionnaire.choices(item)))) for item in items]
    readers = [
        _Reader(questionnaire, item, labels, order)
        for item, order in zip(items, orders, strict=True)
    ]
    found: dict[int, set[tuple[str, float | None]]] = {}
    for line in text.splitlines():
        for number, answer in _numbered(line, readers):
            found.setdefault(number, set()).add(answer)
        if (said := _CORRECTION.sub("", line, count=1)) != line:
            for number, answer in _numbered(said, readers):
                if number in found:
                    found[number].add(answer)
    if not found and len(items) == 1:
        alone = readers[0].read(_bare(text))
        if alone[0] in ("ok", "out_of_range"):
            return [alone]
    rest = "missing" if found else "unreadable"
    if _is_refusal(text):
        rest = "refused"
    return [_settled(found.get(number, set()), rest) for number in range(1, len(items) + 1)]


def _is_refusal(text: str) -> bool:
    """Whether a reply has words of refusal in it.

    Examples
    --------
    >>> _is_refusal("As a language model, I have no feelings."), _is_refusal("1: 4")
    (True, False)
    """
    return bool(_REFUSALS.search(text.replace("’", "'")))


class _Reader:
    """Which replies mean which option of an item."""

    def __init__(self, questionnaire: Questionnaire, item: Item, labels: str, order) -> None:
        options = questionnaire.choices(item)
        names = option_labels(options, labels)
        self.statements = {_plain(item.text), _plain(questionnaire.statement(item))}
        self.values = {}
        for name, i in zip(names, order, strict=True):
            text = _plain(options[i].label)
            for reply in (name, text, f"{name} {text}", f"{text} {name}"):
                self.values.setdefault(_plain(reply), set()).add(options[i].value)
        self.names = {_plain(name) for name in names}

    def read(self, text: str) -> tuple[str, float | None]:
        text = re.sub(r"(?<![\d.,])(\d+)\.0+(?![\d.,])", r"\1", text)  # 4.0 is the label 4
        plain = _plain(text)
        for statement in self.statements:
            if plain.startswith(statement) and plain != statement:
                plain = plain.removeprefix(statement).strip()
        plain = re.sub(r"^(the )?(score|answer|choice|rating|option)( is)? (?=\S)", "", plain)
        values = self.values.get(plain, set())
        if len(values) == 1:
            return "ok", next(iter(values))
        before, _, number = _bare(text).rpartition(":")
        number = number.strip() if not re.search(r"\d", before) else ""  # of another answer
        if not values and (_NUMBER.fullmatch(number) or _NUMBER.fullmatch(plain)):
            return "out_of_range", None
        if not values and re.fullmatch(r"[a-z]", plain) and plain not in self.names:
            return "out_of_range", None
        return "unreadable", None


def _numbered(line: str, readers: list[_Reader]) -> list[tuple[int, tuple[str, float | None]]]:
    """Answers on a line: as a whole, else between its commas."""
    whole = _read_line(line, readers)
    if whole and whole[1][0] == "ok":
        return [whole]
    parts = [part for part in re.split(r"[,;|]", line) if part.strip()]
    several = [_read_line(part, readers) for part in parts]
    if len(parts) > 1 and all(several):
        return several
    return [whole] if whole else []


def _read_line(line: str, readers: list[_Reader]) -> tuple[int, tuple[str, float | None]] | None:
    match = _LINE.fullmatch(_bare(line))
    if not match or not 1 <= int(match[1]) <= len(readers):
        return None
    return int(match[1]), readers[int(match[1]) - 1].read(match[2])


def _settled(answers: set[tuple[str, float | None]], rest: str) -> tuple[str, float | None]:
    if not answers:
        return rest, None
    good = {answer for answer in answers if answer[0] == "ok"}
    if len(good) == 1 and all(answer[0] in ("ok", "unreadable") for answer in answers):
        return next(iter(good))  # prose that begins with the number stands beside the answer
    if len(answers) > 1:
        return "ambiguous", None
    return next(iter(answers))


def _bare(text: str) -> str:
    """Without marks of emphasis, quotes and bullets around it."""
    plain = re.sub(r"[*_`\"“”]", "", text)
    # A minus right before a digit is the number's sign.
    return re.sub(r"^(?:[•>\s]|-(?!\d))+(?=[^\d\s]|\d+\s*[:=.)])", "", plain).strip()


def _plain(text: str) -> str:
    """Lower case, words and signs alone, for comparison."""
    text = re.sub(r"[()\[\]:;,.!?=–—]|\s-\s", " ", _bare(text).lower())
    return re.sub(r"\s+", " ", text).strip()
