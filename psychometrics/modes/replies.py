"""Read the replies of chat models.

Replies are read strictly: a reply without a plain answer gets a status, never a guess.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ..questionnaires import Item, Option, Questionnaire
from .messages import option_labels

_REFUSALS = re.compile(
    r"(?i)\bas an? (ai|artificial|(large )?language model|assistant|chatbot|machine)\b"
    r"|\b(i|we) (am|'m|are) (sorry|unable|not able|(just|only) an? (ai|language model))"
    r"|\bi'm (sorry|unable|not able|(just|only) an? (ai|language model))"
    r"|\bi('d| would)? (prefer|rather) not\b"
    r"|\bi (cannot|can't|can not|won't|will not|must decline|do not wish|refuse)\b"
    r"|\bi (do not|don't) have (any )?(personal|feelings|emotions|opinions|beliefs|experiences)"
    r"|\bcomo (un |una )?(modelo de lenguaje|inteligencia artificial|ia|asistente)\b|\blo siento\b"
    r"|\bno (puedo|tengo (sentimientos|emociones|opiniones|experiencias|creencias))\b"
    r"|\bals (eine? )?(ki|sprachmodell|künstliche intelligenz)\b|\btut mir leid\b"
    r"|\bich (kann|möchte|werde) (\w+ ){0,2}nicht\b|\bich habe keine (eigenen |persönlichen )?"
    r"(gefühle|emotionen|meinungen|erfahrungen)\b"
    r"|\ben tant qu(e |')(un )?(ia|modèle|intelligence artificielle)\b|\bje suis désolée?\b"
    r"|\bje ne (peux|veux) pas\b|\bje n'ai pas (de |d')"
    r"(sentiments|émotions|opinions|expériences)\b"
)
_STATEMENT = (
    r"(?:statement|question|item|number|q|no\.?|afirmación|pregunta|ítem|número|aussage|frage|nr\.?|"
    r"affirmation|énoncé|numéro)"
)
_LINE = re.compile(rf"(?i)(?:{_STATEMENT}\s*)?#?\(?(\d{{1,4}})\)?\s*(?:[:=)\]–]|\.\s|\s-\s)\s*(.+)")
_OPENING_PHRASE = re.compile(
    r"(?i)^(the |my |la |mi |die |meine |ma )?(final )?(score|answer|choice|rating|option|note|"
    r"puntuación|respuesta|opción|antwort|wertung|réponse|risposta|resposta|antwoord|svar|cevap|"
    r"odpowiedź|ответ|відповідь|答案|回答|答え|답|답변|الإجابة|उत्तर)"
    r"( is| es| would be| ist| est)?( ?:)? (?=\S)"
    r"|^if i (?:had|have) to (?:pick|choose|answer|decide|say)(?: one)?(?: ?[:,])? (?=\S)"
    r"|^i(?: would|'d)? (?:rate|give|score|choose|pick|select|answer|say|go with)"
    r"(?: (?:it|this|that|myself|the statement|this statement))?(?: (?:as|at|a|an|with))? (?=\S)"
)
_REMARK = re.compile(r"\s*(?:[(\[,;–—\n]|[.:]\s|\s-\s)")
# Words that a remark after an answer must not contain, because they could revoke the answer.
_DOUBT = re.compile(
    r"(?i)\d|\b(or|not|perhaps|maybe|between|o|no|quizás?|tal vez|entre|oder|nicht|vielleicht|ou|"
    r"pas|peut-être|one|two|three|four|five|six|seven|eight|nine|ten|scratch (?:that|this|it)|"
    r"(?:just|only) (?:kidding|joking)|take (?:that|this|it) back|chang\w+ my mind|hypothetical\w*|"
    r"oops|scherz|irrtum|broma|не|нет|ні|لا|ليس|नहीं)\b|[不没沒未]|ない|なく|ません|안 |않|아니"
)
# Words of denial that begin a remark agree with the lowest option, and revoke any other.
_DENIAL = re.compile(
    r"(?i)\W*(never|hardly|wrong|false|incorrect|untrue|reversed|a mistake|unsure|uncertain|unless|"
    r"instead|nie|niemals|falsch|nein|kein\w*|sondern|außer|nunca|jamás|falso|salvo|jamais|faux|non|"
    r"sauf|não|niet)\b"
)
_OPENING_WORDS = re.compile(
    r"(?i)^\W*(?:sure|certainly|of course|absolutely|okay|ok|here (?:you are|you go|are my "
    r"(?:answers|scores|ratings)))\b[\s!.,:–-]*(?=\(?\d{1,4}\)?\s*[:=)])"
)
_NUMBER_WORDS = {
    "en": "zero one two three four five six seven eight nine ten",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix",
}
# Number words in all languages: a reply need not be in the questionnaire's language. But *null* is
# also the word of programs for no value.
_SPELLED = {
    word: str(number)
    for words in _NUMBER_WORDS.values()
    for number, word in enumerate(words.split())
    if word != "null"
}
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
# Marks around a model's thoughts, as their makers write them.
_THINKING = r"(?:\w+:)?(?:think|thought|reason|reflection|analysis|scratchpad|inner_)[^<>\n]*"
_BEGINS = (
    rf"<\|?(?:{_THINKING})>|\[(?:BEGIN |START )?(?:THINK|REASON)(?:ING)?\]|◁think▷"
    r"|<unused94>(?:thought)?|<\|channel>(?:thought)?|<\|(?:START_THINKING|begin_of_thought)\|>"
)
_ENDS = (
    rf"<\|?/(?:{_THINKING})>|\[(?:/|END )(?:THINK|REASON)(?:ING)?\]|◁/think▷"
    r"|<unused95>|<channel\|>|<\|(?:END_THINKING|end_of_thought)\|>"
)
# The marks before and after a model's thoughts.
_THOUGHT_MARK = re.compile(rf"{_BEGINS}|{_ENDS}", re.IGNORECASE)
# The mark with which a template begins a model's thoughts, at the end of a prompt.
_THOUGHTS_BEGUN = re.compile(rf"(?:{_BEGINS})\s*\Z", re.IGNORECASE)
_THOUGHTS = re.compile(rf"(?:{_BEGINS}).*?(?:{_ENDS}|\Z)", re.IGNORECASE | re.DOTALL)
# The template may have written the first mark, so that the reply has only the second.
_THOUGHTS_BEFORE = re.compile(rf"\A.*(?:{_ENDS})", re.IGNORECASE | re.DOTALL)
_ANSWER_NAMES = (
    r"(?:\w+_)?(?:(?:begin|start|end|of|final|my)_?)*"
    r"(?:final|answer|score|rating|choice|option|value|label|"
    r"response|reply|result|output|solution|box|respuesta|puntuación|antwort|réponse)s?"
)
_ANSWER_MARKS = re.compile(rf"<[/|]*(?:{_ANSWER_NAMES})\s*\|?>|</s>\s*\Z", re.IGNORECASE)
# Marks of a text's form, and of the beginning of a turn, say nothing about what is between them.
_FORM_NAMES = (
    r"[biups]|br|hr|em|strong|span|div|code|pre|[uo]l|li|table|thead|tbody|t[rdh]|h[1-6]|html|body|"
    r"su[bp]|main|section|article|details|blockquote|markdown|text|content|message|document|root|json|"
    r"csv|xml|data|list|items?|survey|questionnaire|assessment|statements?|questions?|tool_call|"
    r"start_of_turn_token|chatbot_token|bos|begin_of_text|assistant|im_start\|>assistant|start_of_turn>model|"
    r"start_header_id\|>assistant|end_header_id"
)
# What is between other marks, or after one that nothing ends, is no answer, whatever its name.
_OTHER_NAME = rf"(?!(?:{_ANSWER_NAMES}|{_FORM_NAMES})(?![\w:.▁-]))([a-z][\w:.▁-]*)"
_OTHERS = re.compile(
    rf"(?ims)(?:^[^\w<\n]*<|<[|｜]){_OTHER_NAME}(?:\s+\w+=[^<>\n]*)?\s*[|｜]?>(?!\s*[:=])"
    r".*?(?:<[|｜]?/\1\s*[|｜]?>|<\1[|｜]>|\Z)"
)
_OTHERS_BEFORE = re.compile(rf"(?ims)\A.*^[^<\n]*</{_OTHER_NAME}>")
# Channels of gpt-oss, also without their special tokens.
_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?=<\||\Z)", re.DOTALL
)
_BARE_CHANNELS = re.compile(
    r"\A(?:.*assistantfinal|(?:analysis|commentary)(?=\w).*|final(?=[\dA-Z{\[*]))", re.DOTALL
)
# Most characters, without thinking, that are read: a longer reply comes from a model that did not
# stop, and would cost seconds for nothing.
_LONGEST = 100_000
_OTHER_DIGITS = re.compile(r"(?![0-9])\d")
# Full-width signs become plain ones; marks of direction, keycaps and signs without a width are left
# out.
_SIGNS: dict[int, int | str | None] = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}
_SIGNS[ord("’")] = "'"
_SIGNS |= dict.fromkeys([0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0x20E3, 0xFE0F, 0xFEFF])
_SIGNS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
# A statement's number at the beginning of a line, and signs of other scripts after it. Some of
# these may also separate answers, or be a decimal point.
_AFTER_NUMBER = r"(?m)^([^\w\n]{0,9}\d{1,4}) *([%s]) *(?=\S)"
_LIST_SIGNS = "・۔।"
_DOUBTFUL_SIGNS = "、،。"
_FULL_WIDTH_SIGNS = "．，"
# A statement's number, a separator and an answer after other words: "On reflection, 1: 5".
_LATER_ANSWER = re.compile(r"(?<=[\s(,;:.])(?<![-+*/×=] )(?<!of )\(?\d{1,4}\)?\s*[:=]\s*[^,;|\n]+")


_Answer = tuple[str, float | str | None]  # status and value
_Numbered = tuple[int, _Answer]  # a statement's number, and its answer


def parse_reply(
    reply: str | None,
    questionnaire: Questionnaire,
    items: Sequence[Item],
    labels: str = "numeric",
    orders: Sequence[tuple[int, ...]] | None = None,
) -> list[tuple[str, float | str | None]]:
    """Parse one reply, in lines or in JSON, into the status and value of each item.

    An item is answered by a line with its number, a separator, and the label or the whole text of
    an option (or both, if they agree). Besides these, the line may contain only the statement's own
    text, marks of emphasis, the highest label (``4/5``), words such as *I rate it* before the
    answer, and a remark (in brackets or after a comma, dash, colon or stop) without a number,
    doubt, refusal or other option. A label may be a word, such as *four*. A line
    may begin with *Sure!* or the like.
    Several such answers may share a line, separated by commas; in a table, a row has the number and
    one answer. Labels alone answer the statements in order if there are as many lines as
    statements, and the labels are not 1, 2, 3 and so on. For a single statement, the label or text
    alone suffices.

    A list of all options with their labels is not an answer; if the options are counted from 1
    instead, or the statements from 0, the reply is ``unreadable``. A statement with two different
    answers is ``ambiguous``, even if the second is a correction (*No, 1: 3*); a number that is not
    a label is ``out_of_range``; a line with the statement's number and anything else is
    ``unreadable``. Thoughts, in the forms of different makers, are never an answer, even if the
    thinking does not end; nor is anything between marks of any other name, except those of answers
    (``<answer>``) and of a text's form (``<pre>``). Other statements are ``refused`` if the reply
    contains words of refusal, and otherwise ``missing``; a reply without any answer, or with more
    than 100,000 characters besides its thoughts, is ``unreadable``; a reply that is empty or only
    thoughts is ``missing``. Digits, colons and the like may be those of other scripts.

    In JSON, bare or in a fenced block, an answer is a value under the statement's number, its id or
    its text, also within an object (``{"answers": {"1": 4}}``), or a list entry that holds both the
    statement's identifier and the answer (``[{"id": 1, "answer": 4}]``). A value may be an object
    with an ``answer``, which alone suffices for a single statement. A repeated key counts twice.
    Beside a highest label or a scale that is not the options' (``{"answer": 3, "max": 10}``), an
    answer is ``unreadable``. The complete entries of a truncated object count.

    Parameters
    ----------
    reply : str or None
        The model's reply, deciphered if it was in cipher.
    questionnaire : Questionnaire
    items : sequence of Item
        Items in the order of their numbers, from 1.
    labels : {"numeric", "alphabetical"}
        Kind of label before the options.
    orders : sequence of tuple of int, optional
        For each item, the index of the option at each place.

    Returns
    -------
    list of (status, value)
        One per item; the value is None unless the status is ``ok``.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> parse_reply("1: 4\\n2: 9\\nAs an AI, I have no moods.", mini, mini.items[:3])
    [('ok', 4.0), ('out_of_range', None), ('refused', None)]
    >>> parse_reply('{"1": 4, "2": "very accurate"}', mini, mini.items[:2])
    [('ok', 4.0), ('ok', 5.0)]
    """
    text = _remove_thoughts(reply or "").strip()
    text = re.sub(r"\$?\\boxed\{([^{}]*)\}\$?", r"\1", text)

    if not text:
        return [("missing", None)] * len(items)
    if len(text) > _LONGEST:
        return [("unreadable", None)] * len(items)

    # Colons after the numbers of statements, in place of other scripts' signs. A sign that may also
    # separate answers counts only if each of the statements has such a line.
    text = re.sub(_AFTER_NUMBER % _LIST_SIGNS, r"\1: ", text)
    signs = _DOUBTFUL_SIGNS if len(items) == 1 else _DOUBTFUL_SIGNS + _FULL_WIDTH_SIGNS
    numbered, lines = re.subn(_AFTER_NUMBER % signs, r"\1: ", text)
    text = _simplify_signs(numbered if lines == len(items) else text)

    orders = orders or [tuple(range(len(questionnaire.choices(item)))) for item in items]
    readers = []
    for item, order in zip(items, orders, strict=True):
        texts = item.id, item.text, questionnaire.statement(item)
        readers.append(_reader_of(texts, tuple(questionnaire.choices(item)), labels, tuple(order)))

    return _ReplyReader(readers).read(text)


def _remove_thoughts(reply: str) -> str:
    """Return a reply without the model's thoughts, in the forms of different makers.

    Thoughts stand between marks such as ``<think>``, ``[THINK]`` or ``◁think▷``, before a mark that
    only ends them, between marks of any other name (``<plan>``), after such a mark that nothing
    ends, or in channels other than ``final``.

    Examples
    --------
    >>> _remove_thoughts("Perhaps 3?</think>4"), _remove_thoughts("analysisIs it 3?assistantfinal4")
    ('4', '4')
    """
    if "<|channel|>" in reply:
        return "\n".join(_FINAL_CHANNEL.findall(reply))

    reply = _BARE_CHANNELS.sub("", reply.strip())
    reply = _THOUGHTS.sub("\n", reply)
    reply = _THOUGHTS_BEFORE.sub("\n", reply)
    reply = _OTHERS.sub("\n", _ANSWER_MARKS.sub("\n", reply))
    return _OTHERS_BEFORE.sub("\n", reply).strip()


def _simplify_signs(text: str) -> str:
    """Return a text with Western digits and signs, and without marks of direction."""
    plain = text.translate(_SIGNS)
    return _OTHER_DIGITS.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


def refuses(text: str) -> bool:
    """Return whether a reply contains words of refusal.

    Examples
    --------
    >>> refuses("As a language model, I have no feelings."), refuses("1: 4")
    (True, False)
    """
    return bool(_REFUSALS.search(text.replace("’", "'")))


class _Reader:
    """Map replies to the options of an item."""

    def __init__(
        self,
        item: tuple[str, str, str],
        options: tuple[Option, ...],
        labels: str,
        order: tuple[int, ...],
    ) -> None:
        names = option_labels(options, labels)
        self.id = item[0]
        self.statements = {_normalise(text) for text in item[1:]}
        self.values: dict[str, set[float | str]] = {}
        self.texts = {_normalise(option.label) for option in options}

        for name, i in zip(names, order, strict=True):
            replies = [_normalise(options[i].label), name]
            replies += [word for word, number in _SPELLED.items() if number == name]
            replies += [" ".join(forms) for forms in itertools.permutations(replies, 2)]

            for reply in replies:
                self.values.setdefault(_normalise(reply), set()).add(options[i].value)

        self.names = {_normalise(name) for name in names}
        self.lowest_value = options[0].value
        self.lowest, self.highest = names[0], names[-1]
        places = [str(place) for place in range(1, len(names) + 1)]
        texts = [options[i].label for i in order]
        self.labelled_scale = _compile_scale(names, texts)
        self.counted_scale = _compile_scale(places, texts)

    def read(self, text: str) -> _Answer:
        """Return the status of a reply, and the value of the one option that it names."""
        text = _OPENING_PHRASE.sub("", _strip_marks(text))
        text = re.sub(r"(?<![\d.,])(\d+)\.0+(?![\d.,])", r"\1", text)  # 4.0 is the label 4
        text = re.sub(rf"^(\d+) ?(/|(?:out )?of) ?{re.escape(self.highest)}(?!\w)", r"\1", text)
        plain = _normalise(text)

        for statement in self.statements:
            if plain.startswith(statement) and plain != statement:
                plain = plain.removeprefix(statement).strip()

        plain = re.sub(_OPENING_PHRASE, "", plain)
        values = self.values.get(plain, set()) or self._read_before_remark(text)
        if len(values) == 1:
            return "ok", next(iter(values))

        before, _, number = _strip_marks(text).rpartition(":")
        number = number.strip() if not re.search(r"\d", before) else ""  # part of another answer
        numbers = [text for text in (number, plain) if _NUMBER.fullmatch(text)]
        plain_numbers = {f"{float(text.replace(',', '.')):g}" for text in numbers}
        is_number = bool(numbers) and not plain_numbers & self.names
        is_word = plain in _SPELLED and self.highest.isdigit()
        is_letter = re.fullmatch(r"[a-z]", plain) and plain not in self.names
        is_other_label = not values and (is_number or is_word or is_letter)
        return "out_of_range" if is_other_label else "unreadable", None

    def find_options(self, text: str) -> set[str]:
        """Find the lines that are a label, or the number of a place, and an option's text."""
        lines = [_normalise(line) for line in text.splitlines()]
        pairs = [line.partition(" ") for line in lines]
        return {
            f"{name} {label}" for name, _, label in pairs if len(name) < 3 and label in self.texts
        }

    def _read_before_remark(self, text: str) -> set[float | str]:
        """Return the values of an answer before a remark, if the remark does not revoke it."""
        text = re.sub(_OPENING_PHRASE, "", _strip_marks(text))
        beginning = _REMARK.search(text)
        if not beginning:
            return set()

        remark = text[beginning.start() :]
        if _DOUBT.search(remark) or refuses(remark):
            return set()

        values = self.values.get(_normalise(text[: beginning.start()]), set())
        if _DENIAL.match(remark) and values != {self.lowest_value}:
            return set()

        words = _normalise(remark)
        texts = [t for t in self.texts if re.search(rf"(?<!\w){re.escape(t)}(?!\w)", words)]
        longest = [t for t in texts if not any(t != other and t in other for other in texts)]
        capitals = re.findall(r"\b[A-HJ-Z]\b", remark)
        letters = {_normalise(letter) for letter in capitals} & self.names

        return values if all(self.values[t] == values for t in [*longest, *letters]) else set()


_ANSWER_KEYS = ("answer", "score", "value", "label", "rating", "choice", "option", "response",
                "respuesta", "puntuación", "valor")  # fmt: skip
_SCALE_KEY = re.compile(
    r"(?i)(?!.*(?:total|sum|time|age|date))(?:|.*_)(?:max(?:imum)?|scale|range|out_of|highest)(?:_(?!min)|$)"
)
_ITEM_KEYS = ("number", "no", "id", "item", "statement", "question", "index", "afirmación")
_OPENING = re.compile(r"[{\[]")
_OPENINGS = 200  # most brackets to try
_DECODER = json.JSONDecoder(object_pairs_hook=tuple)  # keeps repeated keys


_reader_of = functools.lru_cache(maxsize=4096)(_Reader)  # an item has many replies


def _decode_json(text: str, begin: int) -> tuple[Any, int]:
    """Decode JSON at a place, or its complete entries if it is truncated; also return its end."""
    try:
        return _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        pass
    body = text[begin:].rpartition(",")[0]
    if text[begin] == "{" and "}" not in text[begin:] and body:
        with contextlib.suppress(ValueError, RecursionError):
            return _DECODER.decode(body + "}"), len(text)
    return None, begin


class _ReplyReader:
    """Read a reply as the answers to numbered statements."""

    def __init__(self, readers: list[_Reader]) -> None:
        self.readers = readers
        # Some models count several statements from 0.
        self.numbers = range(0 if len(readers) > 1 else 1, len(readers) + 1)

    def read(self, text: str) -> list[_Answer]:
        """Return the answer to each statement, or why there is none."""
        count = len(self.readers)
        text, is_doubtful = self._remove_options(text)
        text, in_json = self._extract_json(text.strip())
        answers: defaultdict[int, set[_Answer]] = defaultdict(set)
        for number, answer in in_json:
            answers[number].add(answer)

        for written in dict.fromkeys(text.splitlines()):  # identical lines count once
            line = _OPENING_WORDS.sub("", written)
            for number, answer in self._read_numbered(line):
                answers[number].add(answer)

            read = [n for n in answers if any(status == "ok" for status, _ in answers[n])]
            for piece in _LATER_ANSWER.findall(line):
                number, answer = self._read_line(piece) or (0, ("missing", None))
                is_of_scale = _normalise(piece) in self.readers[number - 1].values
                if answer[0] == "ok" and number in read and not is_of_scale:
                    answers[number].add(answer)

        is_from_0 = next(iter(answers), None) == 0 or len(answers) == count
        has_0 = any(status == "ok" for status, _ in answers.pop(0, ()))
        if is_doubtful or (has_0 and is_from_0 and answers and count not in answers):
            answers.clear()
        elif not answers and (in_order := self._read_labels(text)):
            return in_order

        status_of_others = "missing" if answers else "unreadable"
        if refuses(text):
            status_of_others = "refused"

        results: list[_Answer] = []
        for number in range(1, count + 1):
            candidates = answers.get(number, {(status_of_others, None)})
            good = {answer for answer in candidates if answer[0] == "ok"}
            if len(good) == 1 and all(status in ("ok", "unreadable") for status, _ in candidates):
                candidates = good  # other lines with the number are prose
            results.append(candidates.pop() if len(candidates) == 1 else ("ambiguous", None))

        return results

    def _remove_options(self, text: str) -> tuple[str, bool]:
        """Return a reply without lists of options, and whether its numbers may be their places."""
        is_single = len(self.readers) == 1
        readers = [reader for reader in self.readers if is_single or len(reader.names) > 2]
        for scale in {reader.labelled_scale for reader in readers}:
            # what is left of an object is an object
            text = scale.sub(lambda match: '": "' if '":' in match[0] else " ", text)

        # If the options are counted, a number may be that of a place, not a label.
        counted_scales = {reader.counted_scale for reader in readers}
        is_doubtful = any(scale.search(text) for scale in counted_scales)

        # Several labels with their texts do not answer a single statement.
        options = self.readers[0].find_options(text) if is_single else set()
        if len(options) > 1:
            is_doubtful = is_doubtful or not options <= set(self.readers[0].values)
            text = "\n".join(x for x in text.splitlines() if _normalise(x) not in options)

        return text, is_doubtful

    def _extract_json(self, text: str) -> tuple[str, list[_Numbered]]:
        """Return a reply without the JSON in it, and the answers in the JSON."""
        prose = ""
        answers: list[_Numbered] = []
        start = 0

        for _ in range(_OPENINGS):
            match = _OPENING.search(text, start)
            if match is None:
                break

            begin = match.start()
            content, end = _decode_json(text, begin)
            more = self._read_json(content)
            prose += text[start : begin if more else begin + 1]
            start = end if more else begin + 1
            answers += more

        return prose + text[start:], answers

    def _read_json(self, content: Any, depth: int = 0) -> list[_Numbered]:
        """Return the answers in JSON, whose objects are tuples of pairs."""
        if depth > 5:
            return []
        if isinstance(content, list):
            return [answer for entry in content for answer in self._read_json(entry, depth + 1)]

        if not isinstance(content, tuple):
            return []
        if self._has_other_scale(content):
            rest = tuple(pair for pair in content if not _SCALE_KEY.match(str(pair[0])))
            answers = self._read_json(rest, depth + 1)
            return [(number, ("unreadable", None)) for number, _ in answers]

        item = _find_value(content, _ITEM_KEYS)
        value = _find_value(content, _ANSWER_KEYS)
        number = None if item is None or value is None else self._find_number(item)
        if number is not None:
            return self._read_json_value(number, value)

        answers = []
        for key, value in content:
            number = self._find_number(key)
            if item is None and len(self.readers) == 1 and str(key).strip().lower() in _ANSWER_KEYS:
                number = 1  # the only statement

            if number is not None:
                answers += self._read_json_value(number, value)
            elif isinstance(value, tuple | list):
                answers += self._read_json(value, depth + 1)

        return answers

    def _read_json_value(self, number: int, value: Any) -> list[_Numbered]:
        """Return the answer that a value in JSON gives to a statement."""
        if value is None:  # null is not an answer
            return []
        if isinstance(value, tuple):  # an object
            value = None if self._has_other_scale(value) else _find_value(value, _ANSWER_KEYS)
        if value is None or isinstance(value, list):
            return [(number, ("unreadable", None))]

        return [(number, self.readers[number - 1].read(str(value)))]

    def _has_other_scale(self, content: tuple[tuple[Any, Any], ...]) -> bool:
        """Return whether an object names a highest label, or a range, that is not the options'."""
        reader = self.readers[0]
        bounds = {reader.lowest, reader.highest}
        alone = {reader.highest, str(len(reader.names))}
        if reader.highest.isdecimal():  # of a total
            alone.add(str(int(reader.highest) * len(self.readers)))

        for key, value in content:
            numbers = re.findall(r"(?<!\w)(?<![^\W\d]-)\d+(?!\w|-[^\W\d])", str(value))  # not GAD-7
            is_own = bounds <= {*numbers} or {*numbers} - {reader.lowest} <= alone
            if _SCALE_KEY.match(str(key)) and not is_own:
                return True

        return False

    def _find_number(self, name: object) -> int | None:
        """Return the number of the statement that a key or entry of JSON names."""
        text = str(name).strip()
        match = re.fullmatch(rf"(?i)(?:{_STATEMENT}[\s_]*)?(\d{{1,4}})\.?", text)
        if match:
            return int(match[1]) if int(match[1]) in self.numbers else None

        for number, reader in enumerate(self.readers, start=1):
            if text == reader.id or _normalise(text) in reader.statements:
                return number

        return None

    def _read_numbered(self, line: str) -> list[_Numbered]:
        """Return the answers on a line, read as a table's row, as a whole, or between commas."""
        cells = [cell.strip() for cell in _strip_marks(line).strip("|").split("|")]
        number = self._find_number(cells[0]) if len(cells) > 1 else None
        if number is not None:
            answers = [self.readers[number - 1].read(cell) for cell in cells[1:]]
            readable = [answer for answer in answers if answer[0] != "unreadable"]
            return [(number, readable[0] if len(readable) == 1 else ("unreadable", None))]

        line_answer = self._read_line(line)
        if line_answer and line_answer[1][0] == "ok":
            return [line_answer]

        pieces = [piece for piece in re.split(r"[,;|、،؛]", line) if piece.strip()]
        several = [answer for piece in pieces if (answer := self._read_line(piece))]
        if len(pieces) > 1 and len(several) == len(pieces) and all(n for n, _ in several):
            return several

        return [line_answer] if line_answer else []

    def _read_line(self, line: str) -> _Numbered | None:
        """Return the answer on a line that begins with a statement's number."""
        line = _strip_marks(line)
        match = _LINE.fullmatch(line)
        if not match or int(match[1]) not in self.numbers:
            return None
        if len(self.readers) == 1 and re.fullmatch(r"1 *– *[2-9]", line):  # a range?
            return None
        return int(match[1]), self.readers[int(match[1]) - 1].read(match[2])

    def _read_labels(self, text: str) -> list[_Answer]:
        """Return the answers of lines with only a label, if there is one line per statement."""
        lines = [line for line in text.splitlines() if line.strip()]
        if len(self.readers) == 1:
            lines = [text]

        numbers = [str(number) for number in range(1, len(self.readers) + 1)]
        counts_on = len(self.readers) > 1 and [*map(_normalise, lines)] == numbers
        if len(lines) != len(self.readers) or counts_on:
            return []

        answers = [
            reader.read(_strip_marks(line))
            for reader, line in zip(self.readers, lines, strict=True)
        ]
        is_read = all(status in ("ok", "out_of_range") for status, _ in answers)
        return answers if is_read else []


def _compile_scale(names: list[str], texts: list[str]) -> re.Pattern[str]:
    """Compile a pattern for all options, up or down, each as a name and its text.

    Where the names are statements' numbers, another number after the last shows that the texts
    are answers. A scale from 0 may begin with 1.
    """
    if not all(re.search(r"[^\W\d]", text) for text in texts):
        return re.compile(r"(?!)")  # options that are numbers look like answers

    gap = r"[\W_]+"
    words = [re.findall(r"[^\W_]+", _normalise(text)) for text in texts]
    parts = [gap.join([re.escape(name), *words[place]]) for place, name in enumerate(names)]
    downwards = gap.join(parts[::-1])
    if names[0] == "0" and len(names) > 3:
        parts = [f"(?:{parts[0]}{gap})?{parts[1]}", *parts[2:]]

    end = rf"(?!\W+{int(names[-1]) + 1}\b)" if names[-1].isdigit() else ""
    return re.compile(rf"(?i)(?<![\w.-])(?:{gap.join(parts)}|{downwards})(?!\w){end}")


def _find_value(content: tuple[tuple[Any, Any], ...], names: Sequence[str]) -> Any:
    """Return the value of an object's first key with one of several names."""
    values = {str(key).strip().lower(): value for key, value in content}
    return next((values[name] for name in names if name in values), None)


def _strip_marks(text: str) -> str:
    """Return a text without surrounding emphasis, quotes and bullets."""
    plain = re.sub(r"[*_`\"“”«»「」『』]", "", text)
    # A minus right before a digit is the number's sign, and > may mean more than a number.
    bullets = r"^(?:[•\s]|-(?!\d))+(?=[^\d\s]|\d+\s*[:=.)])"
    quotation = r"^(?:[•>\s]|-(?!\d))+(?=[^\d\s=]|\d+\s*[:=.)]\s*\S)"
    return re.sub(f"{quotation}|{bullets}", "", plain).strip()


@functools.lru_cache(maxsize=4096)  # each reply has the same statements and options
def _normalise(text: str) -> str:
    """Return a text in a form for comparison: only words and signs, in lower case."""
    text = _strip_marks(_simplify_signs(text)).lower()
    # a stop before a digit alone is a decimal point
    text = re.sub(r"[()\[\]:;?=、。،۔]|!(?!=)|[–—](?!\d)|(?<=\w)[.,]|[.,](?!\d)|\s-\s", " ", text)
    return re.sub(r"\s+", " ", text).strip()
