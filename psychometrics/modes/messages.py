"""What a chat model reads, and how its reply is read.

Roles, wordings, chain of thought, option labels and a cipher make the messages. Roles and wordings
follow the paper's by purpose and structure; the sentences are the project's own, so that results
are comparable in kind and not to the word. Replies are read strictly: what is not plainly an answer
is recorded, never guessed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import string
import unicodedata
from collections.abc import Sequence

from ..exceptions import ParameterError
from ..questionnaires.model import Item, Option, Questionnaire

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
REPLIES = ("lines", "json", "json_schema", "choice")
"""How replies are to be written; ``json_schema`` also gives an endpoint their form, and ``choice``
is for a single statement, answered by the choice alone."""
LABELS = ("numeric", "alphabetical")
ORDERS = ("given", "reversed", "shuffled")
FORM = "Write one line for each statement: its number, a colon, the label you choose."
"""Last sentence of the system text, where the reply is in lines."""
_ENGLISH = {
    "range": "labels from {first} to {last}",
    "own range": "the labels given",
    "levels": "The scale: {options}.",
    "own levels": "Each has its own options.",
    "things": "statements",
    "think": THINK,
    "alone": "Write nothing else.",
    "explain": "Explain yourself first.",
    "lines": FORM,
    "json": (
        "Write one JSON object: each statement's number as a key and the label you choose as its "
        "value, as in {example}."
    ),
    "choice": "Reply with your choice alone.",
    "last": "Put these lines at the end.",
    "last json": "Put it at the end.",
    "explained json": 'Explain yourself first, under the key "explanation".',
    "cipher": (
        "We write in a Caesar cipher: each letter is moved {places} places on in the alphabet, "
        "digits stay. Read my message so, and reply in the same cipher."
    ),
}
_SPANISH = {
    "range": "etiquetas de {first} a {last}",
    "own range": "las etiquetas dadas",
    "levels": "La escala: {options}.",
    "own levels": "Cada una tiene sus propias opciones.",
    "things": "afirmaciones",
    "think": "Razone paso a paso, con palabras, antes de elegir.",
    "alone": "No escriba nada más.",
    "explain": "Primero explique su respuesta.",
    "lines": (
        "Escriba una línea por cada afirmación: su número, dos puntos, la etiqueta que elija."
    ),
    "json": (
        "Escriba un objeto JSON: como clave el número de cada afirmación y como valor la etiqueta "
        "que elija, como en {example}."
    ),
    "choice": "Responda solo con su elección.",
    "last": "Ponga estas líneas al final.",
    "last json": "Póngalo al final.",
    "explained json": 'Primero explique su respuesta, con la clave "explanation".',
    "cipher": (
        "Escribimos en cifrado César: cada letra se mueve {places} lugares en el alfabeto, los "
        "números quedan. Lea así mi mensaje y responda en el mismo cifrado."
    ),
}
_LANGUAGES = {
    "en": {**_ENGLISH, "wordings": WORDINGS, "roles": ROLES},
    "es": {
        **_SPANISH,
        "wordings": {
            "v1": (
                "Responda solo con {range}. {instructions} {levels}\n"
                "Estas son las {things}; dé una puntuación a cada una:\n{statements}"
            ),
            "v2": (
                "Abajo se describe a una persona en pocas palabras cada vez. Lea cada descripción "
                "y diga cuánto se le parece a usted esa persona. {instructions} {levels}\n"
                "Responda a todas, aunque no tenga seguridad.\n{statements}"
            ),
            "v3": (
                "Estas {things} tratan de usted:\n{statements}\n"
                "Elija entre estas opciones cuánto se ajusta cada una a usted. {levels}"
            ),
            "v4": (
                "Siguen algunas características que pueden ser suyas o no. Valore su acuerdo con "
                "cada una en la escala dada: {levels}\n"
                "Estas son las {things}; dé una puntuación a cada una:\n{statements}"
            ),
            "v5": (
                "Siguen algunas características que pueden ser suyas o no. ¿Hasta qué punto está "
                "de acuerdo? Use la escala dada: {levels}\n"
                "Estas son las {things}; dé una puntuación a cada una:\n{statements}"
            ),
        },
        "roles": {
            "default": "Usted es un asistente servicial.",
            "none": "",
            "ordinary": (
                "Póngase en el lugar de una persona corriente y responda como lo haría ella."
            ),
            "hero": (
                "Póngase en el lugar de un héroe, valiente y recto, y responda como lo haría él."
            ),
            "liar": (
                "Póngase en el lugar de un mentiroso, que rara vez dice la verdad, y responda como "
                "lo haría él."
            ),
            "psychopath": (
                "Póngase en el lugar de un psicópata, sin piedad ni remordimiento, y responda como "
                "lo haría él."
            ),
        },
    },
}
"""What stands around a questionnaire, by its language; that of others is English."""

_REFUSALS = re.compile(
    r"\bas an? (ai|artificial|(large )?language model|assistant|chatbot|machine)\b"
    r"|\b(i|we) (am|'m|are) (sorry|unable|not able|just an? (ai|language model))"
    r"|\bi'm (sorry|unable|not able|just an? (ai|language model))"
    r"|\bi (cannot|can't|can not|won't|will not|must decline|prefer not|do not wish|refuse)\b"
    r"|\bi (do not|don't) have (any )?(personal|feelings|emotions|opinions|beliefs|experiences)"
    r"|\bcomo (un |una )?(modelo de lenguaje|inteligencia artificial|ia|asistente)\b|\blo siento\b"
    r"|\bno (puedo|tengo (sentimientos|emociones|opiniones|experiencias|creencias))\b",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"(?:(?:statement|question|item|number|no\.?|afirmación|pregunta|ítem|número)\s*)?#?\(?(\d{1,4})\)?\s*(?:[:=)\]–]|\.\s|\s-\s)\s*(.+)",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    r"^(the |la )?(score|answer|choice|rating|option|puntuación|respuesta|opción)( is| es)? (?=\S)"
)
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.IGNORECASE | re.DOTALL)
_CORRECTION = re.compile(
    r"^\W*(?:correction|corrected|edit|sorry|wait|actually|rather|i mean|i meant)\b[\s,:;.–-]*",
    re.IGNORECASE,
)


def _role_text(role: str, roles: dict[str, str] = ROLES) -> str:
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
    if role in roles:
        return roles[role]
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
    reply: str = "lines",
) -> list[dict[str, str]]:
    """The messages that put some items to a chat model, in the questionnaire's language.

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
    reply : {"lines", "json", "json_schema", "choice"}
        Ask for a line for each statement, for one JSON object, or for the choice alone.

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
    >>> from psychometrics.questionnaires.model import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> print(messages(mini, mini.items[:1], role="none")[-1]["content"].splitlines()[-1])
    1. I am the life of the party.
    """
    if not items:
        raise ParameterError("There are no items to ask: give at least one.")
    language = _LANGUAGES.get(questionnaire.language.partition("-")[0].lower(), _LANGUAGES["en"])
    template = language["wordings"].get(wording, wording)
    if not isinstance(template, str) or "{statements}" not in template:
        raise ParameterError(
            f"There is no wording {wording!r}: name one of {', '.join(WORDINGS)}, or write a text "
            "with {statements} in it."
        )
    if reply not in REPLIES:
        raise ParameterError(f"reply must be one of {', '.join(REPLIES)}, got {reply!r}.")
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
    span = {"first": names[0], "last": names[-1]}
    parts = {
        "range": _filled(language["range"], span) if shared else language["own range"],
        "instructions": _without_numbers(questionnaire.instructions or ""),
        "levels": _filled(language["levels"], {"options": shown[0]})
        if shared
        else language["own levels"],
        "things": language["things"],
        "statements": "\n".join(lines),
    }
    user = re.sub(r" {2,}", " ", _filled(template, parts))
    if think:
        user = f"{language['think']} {user}"
    form = _form(language, reply, think, names[-1] if labels == "numeric" else f'"{names[-1]}"')
    system = " ".join(part for part in (_role_text(role, language["roles"]), form) if part)
    if cipher:
        system += " " + _filled(language["cipher"], {"places": f"{cipher}"})
        user = caesar(user, cipher)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _form(language: dict, reply: str, think: bool, label: str) -> str:
    """What the reply is to look like."""
    if reply in ("lines", "choice"):
        if think:
            return f"{language['explain']} {language[reply]} {language['last']}"
        return f"{language['alone']} {language[reply]}"
    form = _filled(language["json"], {"example": f'{{"1": {label}}}'})
    if think and reply == "json":
        return f"{language['explain']} {form} {language['last json']}"
    return f"{language['explained json'] if think else language['alone']} {form}"


def reply_schema(
    questionnaire: Questionnaire,
    items: Sequence[Item],
    labels: str = "numeric",
    think: bool = False,
) -> dict:
    """The JSON schema of a reply, as an OpenAI-compatible endpoint takes it to constrain replies.

    Parameters
    ----------
    questionnaire : Questionnaire
    items : sequence of Item
        In the order in which they are numbered.
    labels : {"numeric", "alphabetical"}
    think : bool
        With an explanation before the answers.

    Returns
    -------
    dict
        The request's ``response_format``: an object with a key for each statement's number, whose
        value is one of its labels.

    Examples
    --------
    >>> from psychometrics.questionnaires.model import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> form = reply_schema(mini, mini.items[:2])["json_schema"]["schema"]
    >>> form["required"], form["properties"]["2"]
    (['1', '2'], {'type': 'integer', 'enum': [1, 2, 3, 4, 5]})
    """
    properties = {"explanation": {"type": "string"}} if think else {}
    for number, item in enumerate(items, start=1):
        names = option_labels(questionnaire.choices(item), labels)
        kind = "string"
        if labels == "numeric":
            whole = all(re.fullmatch(r"-?\d+", name) for name in names)
            kind = "integer" if whole else "number"
            names = [int(name) if whole else float(name) for name in names]
        properties[f"{number}"] = {"type": kind, "enum": names}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "answers", "strict": True, "schema": schema},
    }


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
    """Status and value of each item, from one reply, in lines or in JSON.

    A statement is answered by a line with its number, a separator and the label or the whole
    text of an option (also both, if they agree), and nothing else but the statement's own text
    and marks of emphasis. Several such answers may stand on a line between commas. To a single
    statement the label or text alone will do. A statement answered twice, differently, is
    ``ambiguous``, also where the second stands in a line of correction; a number that is no label
    ``out_of_range``; a line with the statement's number and anything else ``unreadable``. What
    stands in ``<think>`` is no answer, even where the thinking never ends. Where the rest is
    missing, words of refusal make it ``refused``; a reply with no answer at all is ``unreadable``,
    an empty one ``missing``.

    In JSON, bare or in a fenced block, an answer is a value under the statement's number, its id or
    its text, also within an object (``{"answers": {"1": 4}}``), or an entry of a list that has both
    (``[{"id": 1, "answer": 4}]``). A value may be an object with an ``answer``. A key given twice
    counts twice; of an object that is cut off the whole entries count.

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
    >>> from psychometrics.questionnaires.model import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> parse_reply("1: 4\\n2: 9\\nAs an AI, I have no moods.", mini, mini.items[:3])
    [('ok', 4.0), ('out_of_range', None), ('refused', None)]
    >>> parse_reply('{"1": 4, "2": "very accurate"}', mini, mini.items[:2])
    [('ok', 4.0), ('ok', 5.0)]
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
    text, answers = _from_json(text, readers)
    for number, answer in answers:
        found.setdefault(number, set()).add(answer)
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
    if refuses(text):
        rest = "refused"
    return [_settled(found.get(number, set()), rest) for number in range(1, len(items) + 1)]


def refuses(text: str) -> bool:
    """Whether a reply has words of refusal in it.

    Examples
    --------
    >>> refuses("As a language model, I have no feelings."), refuses("1: 4")
    (True, False)
    """
    return bool(_REFUSALS.search(text.replace("’", "'")))


class _Reader:
    """Which replies mean which option of an item."""

    def __init__(self, questionnaire: Questionnaire, item: Item, labels: str, order) -> None:
        options = questionnaire.choices(item)
        names = option_labels(options, labels)
        self.statements = {_plain(item.text), _plain(questionnaire.statement(item))}
        self.id = item.id
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
        plain = re.sub(_SAID_BEFORE, "", plain)
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


_ANSWER_KEYS = ("answer", "score", "value", "label", "rating", "choice", "option", "response",
                "respuesta", "puntuación", "valor")  # fmt: skip
_ITEM_KEYS = ("number", "no", "id", "item", "statement", "question", "index", "afirmación")
_OPENING, _OPENINGS = re.compile(r"[{\[]"), 200  # brackets that are tried
_DECODER = json.JSONDecoder(object_pairs_hook=tuple)  # a key that is given twice stays twice


def _from_json(text: str, readers: list[_Reader]) -> tuple[str, list]:
    """A reply without its JSON, and what the JSON answers: number, (status, value)."""
    rest, answers, start = "", [], 0
    for _ in range(_OPENINGS):
        if (match := _OPENING.search(text, start)) is None:
            break
        begin = match.start()
        content, end = _decoded(text, begin)
        found = [] if content is None else _json_answers(content, readers)
        rest += text[start : begin + 1 if not found else begin]
        start = begin + 1 if not found else end
        answers += found
    return rest + text[start:], answers


def _decoded(text: str, begin: int) -> tuple[object, int]:
    """JSON that begins at a place, with where it ends; of an object cut off, its whole entries."""
    try:
        return _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        pass
    body = text[begin:].rpartition(",")[0]
    if text[begin] == "{" and "}" not in text[begin:] and body:
        with contextlib.suppress(ValueError, RecursionError):
            return _DECODER.decode(body + "}"), len(text)
    return None, begin


def _json_answers(content: object, readers: list[_Reader], depth: int = 0) -> list:
    """Answers in JSON whose objects are tuples of pairs."""
    if depth > 5:
        return []
    if isinstance(content, list):
        return [answer for part in content for answer in _json_answers(part, readers, depth + 1)]
    if not _is_object(content):
        return []
    said = {str(key).strip().lower(): value for key, value in content}
    item = next((said[key] for key in _ITEM_KEYS if key in said), None)
    value = next((said[key] for key in _ANSWER_KEYS if key in said), None)
    if item is not None and value is not None and (number := _number_of(item, readers)):
        return _json_answer(number, value, readers)
    answers = []
    for key, value in content:
        if number := _number_of(key, readers):
            answers += _json_answer(number, value, readers)
        elif isinstance(value, tuple | list):
            answers += _json_answers(value, readers, depth + 1)
    return answers


def _is_object(content: object) -> bool:
    return isinstance(content, tuple)


def _number_of(name: object, readers: list[_Reader]) -> int | None:
    """Which statement a key or entry of JSON names: by number, id or text."""
    text = str(name).strip()
    match = re.fullmatch(
        r"(?:(?:statement|question|item|q|afirmación|pregunta|ítem)[\s_]*)?(\d{1,4})\.?",
        text, re.IGNORECASE,
    )  # fmt: skip
    if match:
        return int(match[1]) if 1 <= int(match[1]) <= len(readers) else None
    for number, reader in enumerate(readers, start=1):
        if text == reader.id or _plain(text) in reader.statements:
            return number
    return None


def _json_answer(number: int, value: object, readers: list[_Reader]) -> list:
    if _is_object(value):
        said = {str(key).strip().lower(): part for key, part in value}
        value = next((said[key] for key in _ANSWER_KEYS if key in said), None)
        if value is None:
            return [(number, ("unreadable", None))]
    if value is None:  # null is no answer
        return []
    if isinstance(value, list):
        return [(number, ("unreadable", None))]
    return [(number, readers[number - 1].read(str(value)))]


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


@functools.lru_cache(maxsize=4096)  # the same statements and options stand in every reply
def _plain(text: str) -> str:
    """Lower case, words and signs alone, for comparison."""
    text = re.sub(r"[()\[\]:;,.!?=–—]|\s-\s", " ", _bare(text).lower())
    return re.sub(r"\s+", " ", text).strip()
