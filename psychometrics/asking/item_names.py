"""Recognise a questionnaire's items and options by the names that tables give them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from ..questionnaires import Item, Questionnaire

_NUMBERED = re.compile(r"^(.*?)[\W_]*0*(\d{1,4})$")
_GENERIC = {"", "q", "i", "v", "x", "item", "items", "question", "questions", "var", "statement",
            "frage", "pregunta"}  # fmt: skip
_MISSING = {"", "na", "nan", "n/a", "none", "null", ".", "-", "<na>", "#n/a"}
# A dash right before a number is its sign: -9 often means no answer.
_LEADING_NUMBER = re.compile(r"^(?:\W*[^\w-])?(-?\d+(?:\.\d+)?)\s*[)\].:=–—-]*\s*(.*)$", re.DOTALL)
_MINUS = re.compile(r"[−–—‒﹣－](?=\d)")  # variants from word processors and some locales
_TRAILING_NUMBER = re.compile(r"^(.*\S)\s*[(\[]\s*(-?\d+(?:\.\d+)?)\s*[)\]]$", re.DOTALL)


_Name = TypeVar("_Name")


class _Cell(NamedTuple):
    """The content of a cell: a ``number``, an option's ``value``, ``missing``, ``unreadable``."""

    kind: str
    value: float | str | None = None


def plain(text: object) -> str:
    """Return only the letters and digits of a text, in lower case.

    Examples
    --------
    >>> plain("GAD-7, item 1")
    'gad7item1'
    """
    folded = unicodedata.normalize("NFKC", str(text)).casefold()
    return re.sub(r"[\W_]+", "", folded)


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
        self.ids = [item.id for item in questionnaire.items]
        self.options = {item.id: _OptionNames(questionnaire, item) for item in questionnaire.items}
        self._texts = {}
        names = defaultdict(set)

        for item in questionnaire.items:
            for name in (item.id, item.text, questionnaire.statement(item)):
                names[plain(name)].add(item.id)

            self._texts[item.id] = plain(item.text)

        # a name shared by several items is ambiguous
        self._names = {name: min(known) for name, known in names.items() if len(known) == 1}
        own = {plain(questionnaire.id), plain(questionnaire.short_title)}
        self._prefixes = own | {re.sub(r"\d+$", "", name) for name in own}

    def find(self, name: object) -> str | None:
        """Return the item that has the given id or text."""
        return self._names.get(plain(name))

    def find_all(self, names: Iterable[_Name], prefix: str | None = None) -> dict[_Name, str]:
        """Return a mapping from all recognised names, including item numbers, to items.

        A number is an item's position if the words before it are only *item* or the like, the
        questionnaire's own name, or `prefix`; and only if no number exceeds the number of items.

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
                return items

        allowed = {plain(prefix)} if prefix else _GENERIC | self._prefixes
        best: dict[_Name, str] = {}
        for beginning, numbers in _numbered_names(names).items():
            if beginning in allowed and self._fits(numbers) and len(numbers) > len(best):
                shift = 0 if 0 in numbers.values() else 1
                best = {name: self.ids[number - shift] for name, number in numbers.items()}

        return best

    def within(self, text: object) -> str | None:
        """Return the one item whose text is in a prompt, or whose id is in a request's id."""
        whole = plain(text)
        inside = [item for item, own in self._texts.items() if own in whole]
        if not inside and not re.search(r"\s", str(text).strip()):
            part = r"(?<![^\W_])%s(?![^\W_])"
            named = [i for i in self.ids if re.search(part % re.escape(i), str(text))]
            return max(named, key=len, default=None)  # tea_1 is part of tea_1_b

        # a short item's text may be part of a longer item's
        inside = [
            item
            for item in inside
            if not any(
                other != item and self._texts[item] in self._texts[other] for other in inside
            )
        ]

        return inside[0] if len(inside) == 1 else None

    def find_inside(self, texts: Iterable[_Name]) -> dict[_Name, str]:
        """Return the item of each text that contains exactly one item."""
        return {text: item for text in texts if (item := self.within(text))}

    def nearest(self, name: object) -> str | None:
        """Return the id of the item whose id or text is most similar to a name, or None."""
        near = difflib.get_close_matches(plain(name), list(self._names), n=1, cutoff=0.8)
        return self._names[near[0]] if near else None

    def _fits(self, numbers: dict[_Name, int]) -> bool:
        places = sorted(numbers.values())
        if len(set(places)) < len(places):
            return False
        from_nought = places == list(range(len(self.ids)))
        return from_nought or (places[0] >= 1 and places[-1] <= len(self.ids))


def _numbered_names(names: Iterable[_Name]) -> dict[str, dict[_Name, int]]:
    """Group the names that end in a number by the words before the number.

    Examples
    --------
    >>> _numbered_names(["D1", "D2", "BMI"])
    {'d': {'D1': 1, 'D2': 2}}
    """
    numbers: dict[str, dict[_Name, int]] = defaultdict(dict)
    for name in names:
        match = _NUMBERED.match(str(name).strip())
        if match:
            numbers[plain(match[1])][name] = int(match[2])

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
        self._labels = {plain(option.label): option for option in self.options}

    def label(self, text: object) -> float | None:
        """Return the value of the option that has the given label."""
        option = self._labels.get(plain(text))
        return None if option is None or not plain(text) else option.value

    def nearest(self, text: object) -> str | None:
        """Return the label that is most similar to a text, or None."""
        near = difflib.get_close_matches(plain(text), list(self._labels), n=1, cutoff=0.7)
        return self._labels[near[0]].label if near else None

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
        if text.casefold() in _MISSING:
            return _Cell("missing")

        signed = _MINUS.sub("-", text)
        try:
            return _Cell("number", float(signed))
        except ValueError:
            pass

        value = self.label(text)
        if value is not None:
            return _Cell("value", value)

        before = _LEADING_NUMBER.match(signed)
        after = _TRAILING_NUMBER.match(text)
        if before and not before[2]:
            return _Cell("number", float(before[1]))

        for match, words in ((before, 2), (after, 1)):
            # a number with a label counts by its label, whatever the numbering
            value = self.label(match[words]) if match else None
            if value is not None:
                return _Cell("value", value)

        return _Cell("unreadable")
