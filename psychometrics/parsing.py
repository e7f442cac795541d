"""Read a chat model's reply strictly: what is not plainly an answer is recorded, never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .messages import option_labels
from .questionnaires import Item, Questionnaire

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
    ``ambiguous``; a number that is no label ``out_of_range``; a line with the statement's
    number and anything else ``unreadable``. Where the rest is missing, words of refusal make it
    ``refused``; a reply with no answer at all is ``unreadable``, an empty one ``missing``.

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
    orders = orders or [tuple(range(len(questionnaire.choices(item)))) for item in items]
    readers = [
        _Reader(questionnaire, item, labels, order)
        for item, order in zip(items, orders, strict=True)
    ]
    found: dict[int, set[tuple[str, float | None]]] = {}
    for line in text.splitlines():
        for number, answer in _numbered(line, readers):
            found.setdefault(number, set()).add(answer)
    if not found and len(items) == 1:
        alone = readers[0].read(_bare(text))
        if alone[0] in ("ok", "out_of_range"):
            return [alone]
    rest = "missing" if found else "unreadable"
    if is_refusal(text):
        rest = "refused"
    return [_settled(found.get(number, set()), rest) for number in range(1, len(items) + 1)]


def is_refusal(text: str) -> bool:
    """Whether a reply has words of refusal in it.

    Examples
    --------
    >>> is_refusal("As a language model, I have no feelings."), is_refusal("1: 4")
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
        plain = _plain(text)
        for statement in self.statements:
            if plain.startswith(statement) and plain != statement:
                plain = plain.removeprefix(statement).strip()
        plain = re.sub(r"^(the )?(score|answer|choice|rating|option)( is)? (?=\S)", "", plain)
        values = self.values.get(plain, set())
        if len(values) == 1:
            return "ok", next(iter(values))
        number = _bare(text).rsplit(":", 1)[-1].strip()
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
    return re.sub(r"^[-•>\s]+(?=[^\d\s]|\d+\s*[:=.)])", "", re.sub(r"[*_`\"“”]", "", text)).strip()


def _plain(text: str) -> str:
    """Lower case, words and signs alone, for comparison."""
    text = re.sub(r"[()\[\]:;,.!?=–—]|\s-\s", " ", _bare(text).lower())
    return re.sub(r"\s+", " ", text).strip()
