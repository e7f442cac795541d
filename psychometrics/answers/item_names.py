"""Recognise a questionnaire's items and options by the names that tables give them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
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
_MINUS = re.compile(r"[−–—‒﹣－](?=\d)")  # variants from word processors and some locales
# A comma before three digits may separate thousands, so it is not read as a decimal sign.
_NUMBER = re.compile(r"[(\[]?([-+]?\d+(?:\.\d+|,\d{1,2})?(?:e[-+]?\d+)?)[)\].:]*", re.IGNORECASE)
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

    Punctuation and blanks stay between two digits, a dash stays where it may be a sign, and a text
    without letters keeps all but its blanks.

    Examples
    --------
    >>> plain("Not at-all!"), plain("A-"), plain("1.5 hours"), plain(" < 3 ")
    ('notatall', 'a-', '1.5hours', '<3')
    """
    folded = " ".join(unicodedata.normalize("NFKC", str(text)).casefold().split())
    folded = re.sub(r" (?!\d)|(?<!\d) ", "", folded)
    if not any(map(str.isalpha, folded)):
        return folded

    kept = []
    for before, sign, after in zip(" " + folded, folded, folded[1:] + " ", strict=False):
        is_joint = before.isdigit() and after.isdigit()
        is_dash = unicodedata.category(sign) == "Pd" and not (before.isalpha() and after.isalpha())
        if _counts(sign) or is_joint or is_dash:
            kept.append(sign)

    return "".join(kept)


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
        near = difflib.get_close_matches(key, list(self._simple), 1, cutoff)
        things = self._simple[near[0]] if near else {}
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
        self._own = {_plain_name(questionnaire.id), _plain_name(questionnaire.short_title)}
        self._prefixes = self._own | {re.sub(r"\d+$", "", name) for name in self._own}

    def find(self, name: object) -> str | None:
        """Return the item that has the given id or text."""
        item: str | None = self._lookup.find(name)
        return item

    def find_all(self, names: Iterable[_Name], prefix: str | None = None) -> dict[_Name, str]:
        """Return a mapping from all recognised names, including item numbers, to items.

        A number is an item's position if the words before it are only *item* or the like, the
        questionnaire's own name, both, or `prefix`; if no number exceeds the number of items; and
        if no other names could be the items as well.

        Examples
        --------
        >>> from psychometrics import load_questionnaire
        >>> names = _ItemNames(load_questionnaire("gad7"))
        >>> names.find_all(["age", "gad1", "gad2"])
        {'gad1': 'gad7_1', 'gad2': 'gad7_2'}
        """
        names = list(names)
        if not prefix:
            found = {name: self.find(name) for name in names}
            items = {name: item for name, item in found.items() if item is not None}
            if items:
                self._refuse_from_nought(names, items)
                return items

        # the questionnaire's own name comes first, and then a complete series
        ranks = dict.fromkeys(_GENERIC, 1)
        ranks |= {own + word: 0 for own in self._prefixes for word in _GENERIC}
        if prefix:
            ranks = {_plain_name(prefix): 0}

        series = defaultdict(list)
        for beginning, group in _numbered_names(names).items():
            numbers = group if prefix else self._without_total(group)
            if beginning in ranks and numbers and self._fits(numbers):
                series[ranks[beginning], len(numbers) < len(self.ids)].append(numbers)

        if not series or len(series[min(series)]) > 1:
            return {}

        (numbers,) = series[min(series)]
        shift = 0 if 0 in numbers.values() else 1
        return {name: self.ids[number - shift] for name, number in numbers.items()}

    def _refuse_from_nought(self, names: list[Any], items: Mapping[Any, str]) -> None:
        """Refuse a series from 0 whose numbers from 1 on are the items' own ids."""
        for group in _numbered_names(names).values():
            numbers = sorted(group.values())
            if numbers == list(range(len(self.ids))) and any(name in items for name in group):
                first = min(group, key=group.__getitem__)
                prefix = str(first).rstrip("0")
                raise ParameterError(
                    f"{first}: the columns may count the items from 0; set columns={prefix}, or "
                    "rename this column if it is not an item."
                )

    def is_numbered(self, name: object) -> bool:
        """Return whether a name is a number of an item, alone or after a word like *question*."""
        return bool(_numbered_names([name]).keys() & _GENERIC) and bool(self.find_all([name]))

    def is_total(self, name: object) -> bool:
        """Return whether a name is the questionnaire's own, as a column of totals may have it."""
        return _plain_name(name) in self._own

    def _without_total(self, numbers: dict[_Name, int]) -> dict[_Name, int]:
        """Leave out the questionnaire's own name, unless it completes a series of like names."""
        totals = [name for name in numbers if self.is_total(name)]
        styles = {str(name).rstrip("0123456789]") for name in numbers if name not in totals}
        alike = [name for name in totals if str(name).rstrip("0123456789]") in styles]
        if len(alike) == 1 and len(numbers) - len(totals) == len(self.ids) - 1:
            totals.remove(alike[0])

        return {name: number for name, number in numbers.items() if name not in totals}

    def within(self, text: object) -> str | None:
        """Return the one item whose text is in a prompt, or whose id is in a request's id."""
        name = str(text).strip()
        if re.search(r"\s", name):
            return self.described(name)

        part = r"(?<![^\W_])%s(?![^\W_])"
        named = [i for i in self.ids if re.search(part % re.escape(i), name)]
        return max(named, key=len, default=self.described(name))  # tea_1 is part of tea_1_b

    def described(self, text: object) -> str | None:
        """Return the one item whose text is in brackets or anywhere in a column's description."""
        bracketed = {self.find(part) for part in _BRACKETED.findall(str(text))} - {None}
        if len(bracketed) == 1:
            return bracketed.pop()

        whole = _words(text)
        inside = [item for item, words in self._texts.items() if _separable(words) in whole]
        # a short item's text may be part of a longer item's
        inside = [
            item
            for item in inside
            if not any(
                other != item and self._texts[item] in self._texts[other] for other in inside
            )
        ]

        return inside[0] if len(inside) == 1 else None

    def nearest(self, name: object) -> str | None:
        """Return the id of the item whose id or text is most similar to a name, or None."""
        near = self._lookup.nearest(name, 0.8)
        return near[0] if near else None

    def _fits(self, numbers: Mapping[_Name, int]) -> bool:
        places = sorted(numbers.values())
        if len(set(places)) < len(places):
            return False
        from_nought = places == list(range(len(self.ids)))
        return from_nought or (places[0] >= 1 and places[-1] <= len(self.ids))


def _separable(words: str) -> str:
    """Return words without the blanks at their ends if their script has no blanks between words."""
    return words.strip() if words.lower() == words.upper() else words


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
        near = self._labels.nearest(text, 0.7)
        return near[1] if near and near[1] != text else None

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
            return _Cell("number", float(number[1].replace(",", ".")))

        value = self.label(text)
        if value is not None:
            return _Cell("value", value)
        if text.casefold() in _MISSING:
            return _Cell("missing")

        # a number with a label counts by its label, whatever the numbering
        words = {self._truth.get(text.casefold(), "")}
        words |= {_MARKER.sub("", text, count=1) if _MARKER.match(text) else ""}
        words |= {_TRAILING_NUMBER.sub("", text).strip()}
        values = {self.label(part) for part in words if any(map(str.isalpha, part))} - {None}
        if len(values) == 1:
            return _Cell("value", values.pop())

        letter = _LETTER.fullmatch(text)
        if letter:
            return _Cell("letter", ord(letter[1].upper()) - ord("A"))
        code = _CODE.fullmatch(text)
        if code:
            return _Cell(f"code {code[1].upper()}", float(code[2]))

        return _Cell("unreadable")
