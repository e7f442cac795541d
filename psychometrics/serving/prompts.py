"""Find the items and their options in a prompt of any tool.

The forms that are read are lists with numbers or letters, legends (``1 = never, 2 = rarely``),
ranges (*on a scale from 1 to 7*), lists of words, and JSON. Nothing is guessed: a prompt without
options has no questions.
"""

from __future__ import annotations

import itertools
import json
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

# Only the end of a longer prompt is read, so that no request can keep the server busy.
_LONGEST = 30_000
# Only so many brackets are tried as the beginning of JSON.
_MOST_BRACKETS = 50
# More options than these are not a scale.
_WIDEST = 101
# Most steps of a range, unless it is of percents.
_MOST_POINTS = 20
_LABEL = r"-?\d{1,3}|[A-Za-z]"
# A line of a list: "(A) text", "1. text", "0: text", "2 - text".
_ENTRY = re.compile(
    rf"\s*(?:[-*•]\s*)?(?:\((?P<inside>{_LABEL})\)|\**(?P<bare>{_LABEL})\**\s*(?:[.):=\]](?!\d)"
    r"|(?=\s)\s[-–—]\s|[ ]*\t))\s*(?P<text>.*)"
)
# A line of a list without labels: "- text", "[ ] text"; and of one with codes: "Q1: text".
_BULLET = re.compile(r"[ \t]*(?:[-*•○●◦▪☐□]|\[ ?\])[ \t]+(?P<text>\S.*)")
_CODED = re.compile(r"[ \t]*(?P<code>[A-Za-z]{1,10}[ _]?\d{1,3})[ \t]*[.:)][ \t]+(?P<text>\S.*)")
# Other forms of digits, letters and signs, with the form that patterns know.
_PLAIN_SIGNS: dict[int, Any] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_PLAIN_SIGNS |= str.maketrans({"−": "-", "﹣": "-", "\ufe0f": "", "\u20e3": "."})
# Patterns with a free text are bounded in length, so that no prompt takes long to read.
_END_OF_WORDS = (
    r"(?=\s*['\"”’]?\s*(?:[,;|\n.()\]]|$|(?:,? ?(?:to|and|or|through)|\s)\s*\(?-?\d{1,3}\b))"
)
_WORDS = rf"['\"“‘]?\s*(?P<text>[^\W\d_][^,;|\n()'\"“”]{{0,80}}?){_END_OF_WORDS}"
_MEANS = (
    r"=|:|->|→|[-–—]|\b(?:denotes|means|meaning|is|being|for|indicat\w+|represent\w*|stands for)\b"
)
_BEGINNING = r"(?:^|(?<=[\n,;:|(])|(?<=[,;:|] ))"
# Marks around options and items, and rows of a table with a label and a text.
_MARKUP = re.compile(
    r"</?(?:options?|choices?|items?|statements?|questions?|ol|ul|li|p|br)\s*/?>", re.IGNORECASE
)
_TABLE_ROW = re.compile(rf"(?m)^[ \t]*\|[ \t]*({_LABEL})[ \t]*\|[ \t]*([^|\n]*?)[ \t]*\|[ \t]*$")
_TABLE_LINE = re.compile(r"(?m)^[ \t]*\|[^\n]*$")
_LABEL_BEFORE = re.compile(rf"(?:^|\s)\(?(?:{_LABEL})\s*[).:=(]\s*[\"'“]?\s*$")
# Legends: "1 = never", "1. never", "A = never", "1 (never)", "never (1)".
_LEGENDS = (
    re.compile(rf"(?<![\w.,])\(?(?P<label>-?\d{{1,3}})\s*(?P<sign>{_MEANS})\s*{_WORDS}"),
    re.compile(rf"{_BEGINNING}\(?(?P<label>-?\d{{1,3}})(?P<sign>[.)])\s+{_WORDS}"),
    re.compile(rf"{_BEGINNING}\(?(?P<label>[A-Za-z])(?P<sign>[.)])\s+{_WORDS}"),
    re.compile(rf"(?<![\w.,])(?P<label>[A-Za-z])\s*(?P<sign>[=:])\s*{_WORDS}"),
    re.compile(r"(?<![\w.,])(?P<label>-?\d{1,3})\s*(?P<sign>\()(?P<text>[^\W\d_][^()\n]{0,80})\)"),
    re.compile(
        r"(?P<text>[^\W\d_][^,;:()\n=]{0,60}?)\s*(?P<sign>[(=])\s*(?P<label>-?\d{1,3})(?:\)|\b)"
    ),
)
_RANGES = (
    re.compile(
        r"\b(?:scale|rat\w{1,3}|scores?|numbers?|integers?|range\w*|from|between|labels?|values?|likely"
        r"|escala|skala|échelle|scala)"
        r"[^.\n\d]{0,60}?(?P<low>-?\d{1,3})(?:\s*\([^()\n]*\))?"
        r"\s*(?:to|[-–—]>?|through|and|→|\.\.|bis|al?|à)"
        r"\s*(?P<high>-?\d{1,3})\b",
        re.IGNORECASE,
    ),
    re.compile(r"[(\[](?P<low>-?\d{1,3})\s*(?:[-–—]|to)\s*(?P<high>\d{1,3})\s*%?[)\]]"),
    re.compile(r"(?:^|\n)[ \t]{0,9}(?P<low>-?\d{1,3}) ?to ?(?P<high>\d{1,3})[ \t]{0,9}(?:\n|$)"),
)
_POINTS = re.compile(r"\b(\d{1,2})[- ]point\b", re.IGNORECASE)
_LISTS = (
    re.compile(r"\[\s*((?:\"[^\"\n]+\"|'[^'\n]+')(?:\s*,\s*(?:\"[^\"\n]+\"|'[^'\n]+'))+)\s*\]"),
    re.compile(
        r"(?:one of the following(?: \w+)?|one of these(?: \w+)?|one of|options(?: are)?"
        r"|choices(?: are)?|possible (?:answers|responses)(?: are)?|answer with(?: only)?"
        r"|(?:respond|reply) with(?: only)?|(?:choose|select|pick)(?: one)?(?: an answer)? "
        r"(?:from|between|among)(?: the list)?|which of the following is correct|either)"
        r"(?:\s*[:?]\s*|\s+)\[?((?:[^,;:|/\n.]{1,60}(?:[,;|/]| or ))+[^,;:|/\n.?]{1,60})",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b((?:yes|no|true|false|agree|disagree)\s*(?:/|,| or | and )\s*"
        r"(?:or )?(?:yes|no|true|false|agree|disagree))\b(?!\s*(?:,|/|\bor\b))",
        re.IGNORECASE,
    ),
)
_HEADER_OF_ITEMS = re.compile(r"\b(?:rows|statements?|items|questions|sentences)\b", re.IGNORECASE)
_HEADER_OF_OPTIONS = re.compile(r"\b(?:columns|options?|choices|scale|answers)\b", re.IGNORECASE)
_CHOOSING = re.compile(r"\b(?:choose|select|pick|tick|options?|choices)\b", re.IGNORECASE)
_SOLVED = re.compile(r"\s*(?:the )?(?:correct )?answer(?: is)?\s*:\s*(\S.*)", re.IGNORECASE)
_ITEM_MARK = re.compile(
    r"(?:^|\n)[ \t]*(?:statement|question|item|sentence|trait|q)\s*\d*\s*[:.)][ \t]*\n?[ \t]*"
    r"(\S[^\n]*)",
    re.IGNORECASE,
)
_ITEM_IN_JSON = re.compile(r'"(?:question|statement|item|text)"\s*:\s*"((?:[^"\\\n]|\\.)+)"')
_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{4,300})[\"”»]")
_INSTRUCTION = re.compile(
    r"\s*(?:answers?|answer options|respond|reply|choose|select|please|only|options?|choices|scale|"
    r"rate|instructions?|objective|use|using|indicate|after the answer|you|write|give|here are|"
    r"the scale|on a scale|be honest|do not|don't)\b",
    re.IGNORECASE,
)
_BARE_LABEL = re.compile(
    r"\b(?:letters?|numbers?|digits?|codes?|labels?|integers?)\b", re.IGNORECASE
)


_OPTION_KEYS = ("options", "choices", "answer_options", "answers", "responses", "scale", "labels")
_ITEM_KEYS = ("question", "statement", "item", "text", "prompt")
_LABEL_KEYS = ("value", "label", "key", "id", "code")
_TEXT_KEYS = ("text", "label", "name", "description")


class Choice(NamedTuple):
    """An option: the label by which a reply names it, and what it says."""

    label: str
    text: str


@dataclass(frozen=True)
class Question:
    """An item of a prompt.

    Parameters
    ----------
    text : str
        The item.
    choices : tuple of Choice
        The options, in the order in which the prompt shows them.
    key : str
        The number or name by which the prompt refers to the item; empty for a single item.
    """

    text: str
    choices: tuple[Choice, ...]
    key: str = ""

    def has_options(self, names: Sequence[str]) -> bool:
        """Return whether names are the texts of the options in order, or their labels."""
        texts = [re.sub(r"^\w+\s*[:.)]\s*", "", name) for name in names]
        by_text = texts == [choice.text for choice in self.choices]
        return by_text or [*names] == [choice.label for choice in self.choices]


class _Run(NamedTuple):
    """Lines of a list whose labels count on, with their place in the text."""

    start: int
    end: int
    entries: tuple[Choice, ...]

    @property
    def is_lettered(self) -> bool:
        return self.entries[0].label.isalpha()


def find_questions(text: str, context: str = "") -> list[Question]:
    """Find the items of a prompt, with their options.

    Parameters
    ----------
    text : str
        The last message.
    context : str
        The messages before it, which may give the options.

    Returns
    -------
    list of Question
        Empty if there are no options.

    Examples
    --------
    >>> find_questions("Rate from 1 to 3: I am calm.")[0].choices[-1]
    Choice(label='3', text='3')
    >>> [question.key for question in find_questions("Yes or no?\\n1. I am calm.\\n2. I talk.")]
    ['1', '2']
    """
    text = text[-_LONGEST:].replace("\r\n", "\n").translate(_PLAIN_SIGNS)
    text = _MARKUP.sub("", re.sub(r"<li>", "\n- ", text))
    text = _TABLE_LINE.sub("", _TABLE_ROW.sub(r"\1. \2", text))
    context = context[-_LONGEST:]
    lines = text.split("\n")
    in_json = _questions_in_json(text)
    if in_json:
        return in_json

    runs = list(_find_runs(lines))
    listed = {number for run in runs for number in range(run.start, run.end)}
    outside = "\n".join(line for number, line in enumerate(lines) if number not in listed)
    shared = find_choices(outside) or find_choices(context)
    items, options = _sort_runs(lines, runs, shared)

    if len(options) == 1 and items:
        shared = options[0].entries
    elif options:
        return _one_per_list(lines, options)

    if items:
        return [_numbered(entry, shared) for run in items for entry in run.entries]

    entries = _items_without_numbers(lines, shared)
    if entries:
        return [Question(entry.text, shared, entry.label) for entry in entries]
    if shared:
        item = _find_item(_without_choices(text, shared))
        return [Question(item or _find_item(context), shared)]
    return []


def find_choices(text: str) -> tuple[Choice, ...]:
    """Find the options that a text gives in a sentence, or in lines without labels.

    Examples
    --------
    >>> [choice.label for choice in find_choices("1 = never, 2 = rarely, 3 = often")]
    ['1', '2', '3']
    >>> find_choices("from 1 (never) to 3 (always)")[2]
    Choice(label='3', text='always')
    >>> find_choices("Hello, how are you?")
    ()
    """
    choices = _read_legends(text)
    if choices:
        return choices

    for pattern in _LISTS:
        for match in pattern.finditer(text):
            words = _split_words(match[1])
            if len(words) > 1:
                return tuple(Choice(word, word) for word in words)

    for pattern in _RANGES:
        for match in pattern.finditer(text):
            choices = _count(int(match["low"]), int(match["high"]))
            if choices:
                return choices

    points = _POINTS.search(text)
    if points:
        return _count(1, int(points[1]))

    words = _bulleted_options(text) or _short_lines(text)
    return tuple(Choice(word, word) for word in words)


def _read_bullets(lines: Sequence[str]) -> tuple[str, list[str]]:
    """Return the texts of lines with a bullet or an empty box, after the line before the first."""
    words = [match["text"].strip() for line in lines if (match := _BULLET.fullmatch(line))]
    before = list(itertools.takewhile(lambda line: not _BULLET.fullmatch(line), lines))
    return _first_line(reversed(before)), words


def _bulleted_options(text: str) -> list[str]:
    """Return the short lines with bullets that a question or a request to choose announces."""
    header, words = _read_bullets(text.split("\n"))
    is_announced = header.rstrip().endswith("?") or _CHOOSING.search(text)
    is_short = all(
        len(word.split()) < 8 and word[-1:] != "." and not _INSTRUCTION.match(word)
        for word in words
    )
    return words if 1 < len(words) < _WIDEST and is_short and is_announced else []


def _items_without_numbers(lines: Sequence[str], shared: tuple[Choice, ...]) -> list[Choice]:
    """Return the items of a list with codes, or of bullets that the line before announces."""
    if not shared:
        return []

    matches = [match for line in lines if (match := _CODED.fullmatch(line))]
    if len(matches) > 1:
        return [Choice(match["code"], match["text"].strip()) for match in matches]

    header, items = _read_bullets(lines)
    announced = _HEADER_OF_ITEMS.search(header) or find_choices(header)
    if len(items) < 2 or not announced or {choice.text for choice in shared} & {*items}:
        return []
    return [Choice(str(number), item) for number, item in enumerate(items, start=1)]


def _walk_json(value: Any, shared: tuple[Choice, ...], key: str = "") -> Iterator[Question]:
    """Yield the items of a JSON value that have options, their own or those above them."""
    if isinstance(value, list):
        for number, entry in enumerate(value, start=1):
            if isinstance(entry, str) and shared:
                yield Question(entry, shared, str(number))
            elif isinstance(entry, dict):
                yield from _walk_json(entry, shared, str(number))
    elif isinstance(value, dict):
        named = next((name for name in _OPTION_KEYS if _json_choices(value.get(name))), "")
        choices = _json_choices(value.get(named)) or shared
        item = next((text for name in _ITEM_KEYS if isinstance(text := value.get(name), str)), "")
        if item and choices:
            yield Question(item, choices, str(value.get("id", key)))
        else:
            for name, part in value.items():
                if name != named:
                    yield from _walk_json(part, choices, key)


def _json_choices(value: Any) -> tuple[Choice, ...]:
    """Return the options of a JSON value: a list of words, numbers or objects, or an object."""
    entries = list(value.items()) if isinstance(value, dict) else value
    choices = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            label = next((entry[name] for name in _LABEL_KEYS if name in entry), None)
            text = next((entry[name] for name in _TEXT_KEYS if name in entry), label)
        else:
            label, text = entry if isinstance(entry, tuple) else (entry, entry)
        if not isinstance(label, str | int) or not isinstance(text, str | int):
            return ()
        choices.append(Choice(str(label), str(text)))

    return tuple(choices) if 1 < len(choices) <= _WIDEST else ()


def _questions_in_json(text: str) -> list[Question]:
    """Read items that JSON in a prompt gives with their options, or with one list for all."""
    end = 0
    for bracket in itertools.islice(re.finditer(r"[{\[]", text), _MOST_BRACKETS):
        if bracket.start() < end:
            continue
        try:
            value, end = json.JSONDecoder().raw_decode(text, bracket.start())
        except (ValueError, RecursionError):
            continue

        questions = list(_walk_json(value, ()))
        if len(questions) == 1:
            return [replace(questions[0], key="")]
        if questions:
            return questions

    items = [match.replace('\\"', '"') for match in _ITEM_IN_JSON.findall(text)]
    lists = [_split_words(match) for match in _LISTS[0].findall(text)]
    lists *= len(items) if len(lists) == 1 else 1
    if not items or len(items) != len(lists):
        return []

    choices = [tuple(Choice(word, word) for word in words) for words in lists]
    keys = [""] if len(items) == 1 else [str(number) for number in range(1, len(items) + 1)]
    return [Question(*parts) for parts in zip(items, choices, keys, strict=True)]


def _find_runs(lines: Sequence[str]) -> Iterator[_Run]:
    """Yield the lists of a text: lines whose labels count up or down.

    A single line that lists all options, such as ``1. never, 2. rarely``, is not a list.
    """
    entries: list[Choice] = []
    start = end = 0
    for number, line in enumerate([*lines, "."]):
        match = _ENTRY.fullmatch(line)
        label = (match["inside"] or match["bare"]) if match else ""
        if match and entries and _follows(entries[-1].label, label):
            entries.append(Choice(label, match["text"].strip() or label))
            end = number + 1
        elif entries and not match and (not line.strip() or line.startswith(" (")):
            # an empty line, or a remark on the entry before
            words = f"{entries[-1].text} {line.strip()}".strip()
            entries[-1] = Choice(entries[-1].label, words)
        else:
            is_legend = False
            if len(entries) == 1:
                is_legend = len(_read_legends(f"{entries[0].label}. {entries[0].text}")) > 1
            if entries and not is_legend:
                yield _Run(start, end, tuple(entries))

            entries = [Choice(label, match["text"].strip() or label)] if match else []
            start = number
            end = number + 1


def _follows(label: str, following: str) -> bool:
    """Return whether a label is the next one, or the one before, of the same kind."""
    if label.isalpha() != following.isalpha():
        return False
    if label.isalpha():
        return ord(following) - ord(label) == 1
    return abs(int(following) - int(label)) == 1


def _sort_runs(
    lines: Sequence[str], runs: Sequence[_Run], shared: tuple[Choice, ...]
) -> tuple[list[_Run], list[_Run]]:
    """Return the lists of items, and the lists of options.

    A list with letters has options. A numbered list has what the line above it says; otherwise it
    has items if the options are given elsewhere.
    """
    lists: dict[str, list[_Run]] = {"items": [], "options": [], "neither": []}
    lettered = any(run.is_lettered and len(run.entries) > 1 for run in runs)
    for run in runs:
        # The line after a list gives its answer, as in an example; that of the last list may be
        # the beginning of the answer.
        solved = _SOLVED.match(_first_line(lines[run.end :]))
        is_example = solved and (run is not runs[-1] or len(solved[1].split()) == 1)
        if len(run.entries) > 1 and is_example:
            continue

        kind = "options" if len(run.entries) > 1 else "neither"
        if not run.is_lettered:
            header = _first_line(reversed(lines[: run.start]))
            if _has_items(run, header.strip(" :"), shared):
                kind = "items"
            elif lettered and not _HEADER_OF_OPTIONS.search(header):
                kind = "neither"
        lists[kind].append(run)

    return lists["items"], lists["options"]


def _has_items(run: _Run, header: str, shared: tuple[Choice, ...]) -> bool:
    """Return whether a numbered list has items."""
    if all(_numbered(entry, ()).choices for entry in run.entries):  # each has its own options
        return True

    texts = [entry.text for entry in run.entries]
    is_short = all(len(text.split()) < 8 and not text.endswith(".") for text in texts)
    announces_options = _HEADER_OF_OPTIONS.search(header) and not _read_legends(header)
    announces_items = shared and _HEADER_OF_ITEMS.search(header)
    if len(run.entries) > 1 and is_short and announces_options and not announces_items:
        return False
    if _HEADER_OF_ITEMS.fullmatch(header):
        return True

    # a scale's numbers with its words are not items
    is_scale = [entry.label for entry in run.entries] == [choice.label for choice in shared]
    return bool(shared) and not (is_scale and is_short)


def _first_line(lines: Iterable[str]) -> str:
    """Return the first line that is not empty."""
    return next((line for line in lines if line.strip()), "")


def _one_per_list(lines: Sequence[str], options: Sequence[_Run]) -> list[Question]:
    """Return a question for each list of options: the text before it, or after it if none."""
    questions = []
    end = 0
    for number, run in enumerate(options, start=1):
        before = "\n".join(lines[end : run.start])
        item = _find_item(before) or _find_item("\n".join(lines[run.end :]))
        entry = _ENTRY.fullmatch(item)
        key = "" if len(options) == 1 else str(number)
        if entry and len(options) > 1:
            key = entry["inside"] or entry["bare"]
            item = entry["text"]

        questions.append(Question(item, run.entries, key))
        end = run.end

    return questions


def _numbered(entry: Choice, shared: tuple[Choice, ...]) -> Question:
    """Return the question of a numbered line, which may end in its own options."""
    remark = re.search(r"\s*[(\[]([^()\[\]]*)[)\]]\s*$", entry.text)
    choices = find_choices(remark[0]) if remark else ()
    text = entry.text[: remark.start()] if remark and choices else entry.text
    return Question(text, choices or shared, entry.label)


def _read_legends(text: str) -> tuple[Choice, ...]:
    """Return the options of a legend; numbers between its ends are options without words.

    Options in a list such as ``1: never, 2: rarely`` are named as they are shown, unless the text
    asks for the number.
    """
    is_bare = bool(_BARE_LABEL.search(text))
    for legend in _LEGENDS:
        words: dict[str, str] = {}
        written: dict[str, str] = {}
        for match in legend.finditer(text):
            label = match["label"]
            if label in words:
                break
            words[label] = match["text"].strip(" '\"“”‘’")
            is_list = match["sign"] in (".", ":", ")") and not is_bare
            written[label] = f"{label}{match['sign']} {words[label]}" if is_list else label

        labels = _complete_labels(list(words))
        if labels:
            return tuple(Choice(written.get(each, each), words.get(each, each)) for each in labels)
    return ()


def _complete_labels(labels: list[str]) -> list[str]:
    """Return the labels of a scale, with the numbers between its ends, or none if it has gaps."""
    if len(labels) < 2:
        return []
    if labels[0].isalpha():
        letters = "".join(labels)
        alphabets = (string.ascii_lowercase, string.ascii_uppercase)
        return labels if any(alphabet.startswith(letters) for alphabet in alphabets) else []

    numbers = [int(label) for label in labels]
    complete = [choice.label for choice in _count(min(numbers), max(numbers))]
    if len(complete) == len(labels):
        return labels
    return complete if numbers == sorted(numbers) else []


def _count(low: int, high: int) -> tuple[Choice, ...]:
    """Return the numbers of a range as options, or none if it is not a scale.

    A wide range begins at 0 or 1 and ends at 100; others are ages or years.
    """
    is_percent = low in (0, 1) and high == _WIDEST - 1
    if not 0 < high - low <= _MOST_POINTS and not is_percent:
        return ()
    return tuple(Choice(str(number), str(number)) for number in range(low, high + 1))


def _split_words(text: str) -> list[str]:
    """Return the parts of a list, such as ``yes, no or perhaps``."""
    if text[:1] in "\"'" and re.search(r"[\"']\s*,\s*[\"']", text):
        return [a or b for a, b in re.findall(r"\"([^\"]+)\"|'([^']+)'", text)]
    parts = re.split(r"\s*[,;|/]\s*(?:or\s+)?|\s+(?:or|and)\s+", text)
    words = [piece.strip(" '\"“”‘’()[].?:*") for piece in parts]
    words = [word for word in words if word]
    return words if all(len(word.split()) < 8 for word in words) else []


def _short_lines(text: str) -> list[str]:
    """Return the last paragraph of several short lines, each of which is an option."""
    for paragraph in re.split(r"\n\n+", text)[::-1]:
        lines = [line.strip(" \t-*•") for line in paragraph.split("\n") if line.strip()]
        if lines and lines[0].endswith(":"):
            lines = lines[1:]
        is_short = [
            len(line.split()) < 8 and line[-1:] not in ".:?!" and not _INSTRUCTION.match(line)
            for line in lines
        ]
        if 1 < len(lines) < _WIDEST and all(is_short):
            return lines
    return []


def _without_choices(text: str, choices: Sequence[Choice]) -> str:
    """Return the parts of a text that do not list its options."""
    texts = {choice.text.lower() for choice in choices if not choice.text.lstrip("-").isdigit()}
    if not texts:
        return text

    rest_of_text = []
    for line in text.split("\n"):
        low = line.lower()
        bullet = _BULLET.fullmatch(low)
        if (bullet["text"] if bullet else low).strip(" \t-*•") in texts:
            continue
        places = [(low.rfind(words), low.rfind(words) + len(words)) for words in texts]
        if min(start for start, _ in places) < 0:
            rest_of_text.append(line)
        else:
            before = _LABEL_BEFORE.sub("", line[: min(start for start, _ in places)])
            after = line[max(end for _, end in places) :].lstrip(" .;,)]}\"'”")
            rest_of_text.append(f"{before} {after}" if re.search(r"[^\W\d_]|:", after) else before)
    return "\n".join(rest_of_text)


def _find_item(text: str) -> str:
    """Return the item in a text without options: what is marked, quoted, or no instruction."""
    text = re.sub(r"\{[^{}]*\}", "", text)
    marked = _ITEM_MARK.findall(text)
    if marked:
        return str(marked[-1]).strip()

    kept = [line for line in text.split("\n") if line.strip(" .:*-") and line[0] != "#"]
    lines = [line.strip().lstrip(":;) -*•") for line in kept]
    if len(lines) > 1 and lines[-2].endswith(":") and not _INSTRUCTION.match(lines[-1]):
        return lines[-1]
    quoted: list[str] = [words for words in _QUOTED.findall(text) if " " in words.strip()]
    if quoted:
        return max(quoted, key=len).strip()

    plain = []
    for line in lines:
        sentences = re.split(r"(?<=[.?!])\s+", line)
        statements = [
            each for each in sentences if not _INSTRUCTION.match(each) and each[-1:] != ":"
        ]
        plain.append(" ".join(statements))
    if any(plain):
        return [line for line in plain if line][-1]

    # an instruction and the item in one line: "Rate from 1 to 5: I am calm."
    tails = [tail.strip() for _, _, tail in (line.partition(": ") for line in lines)]
    return next((tail for tail in tails if tail), lines[-1] if lines else "")
