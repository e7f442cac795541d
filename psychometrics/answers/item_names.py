"""Recognise a questionnaire's items and options by the names that tables give them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from ..exceptions import ParameterError
from ..questionnaires import Item, Questionnaire

_LONGEST = 200  # characters of a header that may end in a number or in a mark
_JOINTS = re.compile(r"(?<=\d)[\s_.-]+(?=\d)")  # between the numbers of an id, such as gad7_1
_SEPARATORS = re.compile(r"(?<!\d)[_.‐-―-]|[_.‐-―-](?!\d)")
# A subquestion of LimeSurvey, such as GAD[SQ001], GAD_SQ001 or, in R, GAD.SQ001.
_SUBQUESTION = re.compile(r"[\[_.]SQ(\d{1,4})[\].]?$")
_BRACKETED = re.compile(r"\[([^\[\]]*)\]")
_GENERIC = {"", "q", "i", "v", "x", "item", "items", "question", "questions", "var", "statement",
            "frage", "pregunta", "sq"}  # fmt: skip
_MISSING = {"", "na", "nan", "n/a", "none", "null", ".", "-", "<na>", "#n/a"}
_TRUTH = {"true": "yes", "false": "no"}
# variants of the minus sign from word processors and some locales
_MINUS = re.compile(r"[-−–—‒‐﹣－]\s*(?=\.?\d)")
# A comma before three digits may separate thousands, so it is not read as a decimal sign. A stop
# after decimals belongs to a date, such as 01.02.
_NUMBER = re.compile(
    r"[(\[]?([-+]?(?=[.,]?\d)\d*(?:(?:\.\d+|,\d{1,2})(?![)\]]*[.:]))?(?:e[-+]?\d+)?)[)\].:]*",
    re.IGNORECASE,
)
# A number or a letter before a label, without a range such as 2-3 times or letters such as n.a.
_MARKER = re.compile(
    r"[(\[]?(?:(?:\d{1,4}|[A-Z])\s*[)\]:=]+\s*|\d{1,4}\s+(?=[(\[])"
    r"|(?:\d{1,4}\s*[.–—-]|[A-Z](?:\.|\s+[–—-]))\s*(?!\s|\d|[A-Z]\W*$))",
    re.IGNORECASE,
)
_TRAILING_NUMBER = re.compile(r"[(\[]\s*-?\d{1,4}\s*[)\]]$")
_LETTER = re.compile(r"[(\[]?([A-Z])[)\].:]?", re.IGNORECASE)
_CODE = re.compile(r"([A-Z]{1,3})0*(\d{1,3})", re.IGNORECASE)

_Name = TypeVar("_Name")


class _Cell(NamedTuple):
    """The content of a cell.

    Its ``kind`` is ``number``; ``value``, of an option; ``letter``, whose value is the letter's
    place from 0; ``code A`` for A1, A2 and so on; ``missing``; or ``unreadable``.
    """

    kind: str
    value: float | str | None = None


def plain(text: object) -> str:
    """Return only the letters, digits and signs of a text, in lower case, without blanks.

    All dashes are hyphens. Punctuation and blanks stay between two digits, a dash stays where it
    may be a sign, and a text without letters keeps all but its blanks.

    Examples
    --------
    >>> plain("Not at-all!"), plain("A-"), plain("1.5 hours"), plain(" < 3 ")
    ('notatall', 'a-', '1.5hours', '<3')
    """
    folded = re.sub(r"[‐-―−]", "-", unicodedata.normalize("NFKC", str(text)).casefold())
    folded = " ".join(folded.split())
    folded = re.sub(r" (?!\d)|(?<!\d) ", "", folded)
    if not any(map(str.isalpha, folded)):
        return folded

    signs = []
    for before, sign, after in zip(" " + folded, folded, folded[1:] + " ", strict=False):
        is_joint = before.isdigit() and after.isdigit()
        is_dash = unicodedata.category(sign) == "Pd" and not (before.isalpha() and after.isalpha())
        if _counts(sign) or is_joint or is_dash:
            signs.append(sign)

    return "".join(signs)


def _plain_name(name: object) -> str:
    """Return a header or an id as :func:`plain` does, with one joint between two numbers.

    Examples
    --------
    >>> _plain_name("GAD-7.1"), _plain_name("gad7_1"), _plain_name("gad71")
    ('gad7_1', 'gad7_1', 'gad71')
    """
    return plain(_SEPARATORS.sub("", _JOINTS.sub("_", str(name).strip())))


def _words(text: object) -> str:
    """Return the words of a text in lower case, without punctuation, between blanks."""
    folded = unicodedata.normalize("NFKC", str(text)).casefold()
    words = "".join(sign if _counts(sign) else " " for sign in folded).split()
    return f" {' '.join(words)} "


def _counts(sign: str) -> bool:
    """Return whether a character is a letter, a mark, a digit or a sign such as + or <."""
    kind = unicodedata.category(sign)
    return kind[0] in "LMN" or kind in ("Sm", "Sc", "So")


class _Lookup:
    """Things by their names: as written, or else in a simpler form.

    A name that several things share in this form names none of them.

    Parameters
    ----------
    names : iterable of (name, thing)
    simplify : function
        The simpler form of a name.

    Examples
    --------
    >>> hours = _Lookup([("< 1 hour", 0), ("1 hour", 1), ("> 1 hour", 2)])
    >>> hours.find("<1 hour"), hours.find("1 Hour."), hours.find("1-hour?")
    (0, 1, None)
    """

    def __init__(
        self, names: Iterable[tuple[str, Any]], simplify: Callable[[object], str] = plain
    ) -> None:
        self._simplify = simplify
        self._written: dict[str, dict[Any, str]] = defaultdict(dict)
        self._simple: dict[str, dict[Any, str]] = defaultdict(dict)
        for name, thing in names:
            self._written[_as_written(name)].setdefault(thing, name)
            self._simple[simplify(name)].setdefault(thing, name)

    def find(self, name: object) -> Any:
        """Return the thing with the given name, or None."""
        things = self._written.get(_as_written(name))
        if things is None:
            things = self._simple.get(self._simplify(name), {})
        return next(iter(things)) if len(things) == 1 else None

    def nearest(self, name: object, cutoff: float) -> tuple[Any, str] | None:
        """Return the thing whose name is most similar to the given one, and this name."""
        key = self._simplify(str(name)[:_LONGEST])
        matches = difflib.get_close_matches(key, list(self._simple), 1, cutoff)
        things = self._simple[matches[0]] if matches else {}
        return next(iter(things.items())) if len(things) == 1 else None


def _as_written(name: object) -> str:
    return unicodedata.normalize("NFC", str(name).strip())


class _ItemNames:
    """The names that a table may use for items: their ids, texts or numbers.

    Parameters
    ----------
    questionnaire : Questionnaire

    Attributes
    ----------
    ids : list of str
        The ids, in the questionnaire's order.
    options : dict of str to OptionNames
        The names of each item's options.
    reverse_keyed : set of str
        The items with a negative key in any scale.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> names = _ItemNames(load_questionnaire("gad7"))
    >>> names.find("GAD7.2"), names.find("Worrying too much about different things")
    ('gad7_2', 'gad7_3')
    """

    def __init__(self, questionnaire: Questionnaire) -> None:
        items = questionnaire.items
        self.ids = [item.id for item in items]
        self.options = {item.id: _OptionNames(questionnaire, item) for item in items}
        self._texts = {item.id: _words(item.text) for item in items}
        names = [
            (name, item.id)
            for item in items
            for name in (item.id, item.text, questionnaire.statement(item))
        ]
        self._lookup = _Lookup(names, _plain_name)
        self._names = {_plain_name(questionnaire.id), _plain_name(questionnaire.short_title)}
        keys = [questionnaire.keys(scale) for scale in questionnaire.scales or (None,)]
        self.reverse_keyed = {item for signs in keys for item, key in signs.items() if key < 0}
        self._titles = self._names | {re.sub(r"\d+$", "", name) for name in self._names}

    def find(self, name: object) -> str | None:
        """Return the item that has the given id or text."""
        item: str | None = self._lookup.find(name)
        return item

    def find_all(self, names: Iterable[_Name], prefix: str | None = None) -> dict[_Name, str]:
        """Return a mapping from all recognised names, including item numbers, to items.

        A number is read as an item's position under three conditions. The words before it are
        *item* or the like, the questionnaire's own name, both, or `prefix`. It is from 1 to the
        number of items. No other series of names could be the items.

        Raises
        ------
        ParameterError
            The names may count the items from 0, although some of them are other items' ids.

        Examples
        --------
        >>> from psychometrics import load_questionnaire
        >>> names = _ItemNames(load_questionnaire("gad7"))
        >>> names.find_all(["age", "gad1", "gad2"])
        {'gad1': 'gad7_1', 'gad2': 'gad7_2'}
        """
        names = list(names)
        groups = _numbered_names(names)
        if prefix:
            return self._find_series({_plain_name(prefix)}, groups) or {}

        items = {name: item for name in names if (item := self.find(name))}
        if not items:
            titled = {title + word for title in self._titles for word in _GENERIC}
            series = self._find_series(titled, groups)
            if series is None:
                series = self._find_series(_GENERIC, groups) or {}
                # I1 to I7 may be items of insomnia if G1 to G7 are items of something else
                letter = next((x for x in "ivxq" if series.keys() <= groups.get(x, {}).keys()), "")
                rivals = [stem for stem in groups.keys() - _GENERIC - {"t"} if len(stem) == 1]
                for stem in rivals if letter else ():
                    places = range(1, max(len(series), len(groups[stem])) + 1)
                    if {*groups[stem].values()} == {*places}:
                        return {}
            return series

        for group in groups.values():
            lowest = min(group, key=group.__getitem__)
            has_all = group[lowest] == 0 and len(group) == len(self.ids)
            if has_all and group.keys() & items.keys():
                raise ParameterError(
                    f"{lowest}: the columns may count the items from 0; set columns to a table "
                    "with the headers column,item_id, or rename this column if it is no item."
                )
        return items

    def _find_series(
        self, beginnings: set[str], groups: dict[str, dict[_Name, int]]
    ) -> dict[_Name, str] | None:
        """Return the items of the only series with such names: none of two, None if there is none.

        The questionnaire's own name is a total, unless it completes a series of like names.
        """
        series = []
        for beginning in beginnings & groups.keys():
            group = groups[beginning]
            numbers = {name: n for name, n in group.items() if not self.is_total(name)}
            stems = {_stem(name) for name in numbers}
            last = [name for name in group if name not in numbers and _stem(name) in stems]
            if len(last) == 1 and len(numbers) == len(self.ids) - 1:
                numbers[last[0]] = group[last[0]]

            places = set(numbers.values())
            if len(places) == len(numbers) > 0 and places <= set(range(1, len(self.ids) + 1)):
                series.append({name: self.ids[n - 1] for name, n in numbers.items()})

        if not series:
            return None
        return series[0] if len(series) == 1 else {}

    def is_total(self, name: object) -> bool:
        """Return whether a name is the questionnaire's own, which a column of totals may have."""
        return _plain_name(name) in self._names

    def within(self, text: object) -> str | None:
        """Return the one item whose text is in a prompt, or whose id is in a request's id."""
        name = str(text).strip()
        if re.search(r"\s", name):
            return self.described(name)

        word = r"(?<![^\W_])%s(?![^\W_])"
        named = [i for i in self.ids if re.search(word % re.escape(i), name)]
        return max(named, key=len, default=self.described(name))  # tea_1 is part of tea_1_b

    def described(self, text: object) -> str | None:
        """Return the one item whose text is in a column's description.

        The text is in brackets, or anywhere, or at the end, where it may be cut off after 15 signs.
        """
        bracketed = {
            self.find(text_in_brackets) for text_in_brackets in _BRACKETED.findall(str(text))
        } - {None}
        if len(bracketed) == 1:
            return bracketed.pop()

        words_of_text = _words(text)
        inside = []
        for item, words in self._texts.items():
            has_blanks = words.lower() != words.upper()  # some scripts have none between words
            if (words if has_blanks else words.strip()) in words_of_text:
                inside.append(item)

        if not inside:
            for item, words in self._texts.items():
                start = words_of_text.rfind(words[:16])
                if start >= 0 and words.startswith(words_of_text[start:].rstrip()):
                    inside.append(item)

        # a short item's text may be part of a longer item's
        inside = [
            item
            for item in inside
            if not any(
                other != item and self._texts[item] in self._texts[other] for other in inside
            )
        ]

        return inside[0] if len(inside) == 1 else None

    def exceeds(self, text: str, item: str) -> bool:
        """Return whether a text has more words than that of its item."""
        return self._texts[item] in _words(text) != self._texts[item]

    def nearest(self, name: object) -> str | None:
        """Return the id of the item whose id or text is most similar to a name, or None."""
        matches = self._lookup.nearest(name, 0.8)
        return matches[0] if matches else None


def _stem(name: object) -> str:
    return str(name).rstrip("0123456789]")


def _numbered_names(names: Iterable[_Name]) -> dict[str, dict[_Name, int]]:
    """Group the names that end in a number by the words before the number.

    Examples
    --------
    >>> _numbered_names(["D1", "D2", "BMI", "GAD[SQ001]"])
    {'d': {'D1': 1, 'D2': 2}, 'gad': {'GAD[SQ001]': 1}}
    """
    numbers: dict[str, dict[_Name, int]] = defaultdict(dict)
    for name in names:
        text = str(name).strip()
        if len(text) > _LONGEST:
            continue

        text = _SUBQUESTION.sub(r" \1", text)
        number = re.search(r"(?<!\d)0*\d{1,4}$", text.removesuffix("]"))
        if number:
            numbers[_plain_name(text[: number.start()])][name] = int(number[0])

    return dict(numbers)


class _OptionNames:
    """The values that cells may have for the options of an item: numbers, labels, or both.

    Parameters
    ----------
    questionnaire : Questionnaire
    item : Item

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> gad = load_questionnaire("gad7")
    >>> options = _OptionNames(gad, gad.items[0])
    >>> options.read("2 = More than half the days"), options.read("3"), options.read("mostly")
    (_Cell(kind='value', value=2.0), _Cell(kind='number', value=3.0), _Cell(kind='unreadable',
    value=None))
    """

    def __init__(self, questionnaire: Questionnaire, item: Item) -> None:
        self.options = questionnaire.choices(item)
        self.values = [option.value for option in self.options]
        self._labels = _Lookup([(option.label, option.value) for option in self.options])
        self._truth = {} if None in map(self.label, _TRUTH.values()) else _TRUTH

    def label(self, text: object) -> float | None:
        """Return the value of the option that has the given label."""
        value: float | None = self._labels.find(text)
        return value

    def nearest(self, text: object) -> str | None:
        """Return the label that is most similar to a text, or None."""
        matches = self._labels.nearest(text, 0.7)
        return matches[1] if matches and matches[1] != text else None

    def read(self, cell: Any) -> _Cell:
        """Return the content of a cell."""
        if isinstance(cell, str):
            return self._read_text(cell.strip())
        if pd.isna(cell):
            return _Cell("missing")
        try:
            return _Cell("number", float(cell))
        except (TypeError, ValueError):  # for example, a date
            return _Cell("unreadable")

    def _read_text(self, text: str) -> _Cell:
        number = _NUMBER.fullmatch(_MINUS.sub("-", text))
        if number:
            decimal = float(number[1].replace(",", "."))
            # a spreadsheet may write -2 as (2)
            is_doubtful = text.startswith("(") and number[1].isdigit() and min(self.values) < 0
            return _Cell("unreadable") if is_doubtful and decimal else _Cell("number", decimal)

        value = self.label(text)
        if value is not None:
            return _Cell("value", value)
        if text.casefold() in _MISSING:
            return _Cell("missing")

        # a number with a label counts by its label, whatever the numbering
        words = {self._truth.get(text.casefold(), "")}
        words |= {_MARKER.sub("", text, count=1) if _MARKER.match(text) else ""}
        words |= {_TRAILING_NUMBER.sub("", text).strip()}
        values = {self.label(word) for word in words if any(map(str.isalpha, word))} - {None}
        if len(values) == 1:
            return _Cell("value", values.pop())

        letter = _LETTER.fullmatch(text)
        if letter:
            return _Cell("letter", ord(letter[1].upper()) - ord("A"))
        code = _CODE.fullmatch(text)
        if code:
            return _Cell(f"code {code[1].upper()}", float(code[2]))

        return _Cell("unreadable")
