"""Read response options in the forms in which people write them."""

from __future__ import annotations

import re

import pandas as pd

from ..exceptions import ParameterError
from .wording import LANGUAGES

# The forms of options, for messages.
_FORMS = (
    "'Strongly disagree; Disagree; Agree', '0=Not at all; 1=Often', '1=never, 2=often', '1-5' or "
    "'1-5; 1=never; 5=always'"
)
_NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
_NUMBER_FIRST = re.compile(rf"\(?({_NUMBER})(?:\s*[=:)]|\.\s|\s+[-–—]\s)\s*(.*\S)")
_NUMBER_LAST = re.compile(rf"(.*\S)(?:\s*=\s*({_NUMBER})|\s*\(({_NUMBER})\))")
_RANGE = re.compile(
    r"([-+]?\d+)\s*(?:-|–|—|\.\.|to\b|bis\b|a\b|à\b)\s*([-+]?\d+)(?:\s*[(:;,|\n]\s*(.+?)\)?)?",
    re.DOTALL,
)
_COLUMN = re.compile(rf"(?:option[\s_-]*)?({_NUMBER})")
_MOST_IN_RANGE = 101
_WIDEST_PAIR = 2  # two options whose numbers are further apart may be the ends of a longer scale
# The weights of common words, by which labels without numbers are known to rise or fall.
_WEIGHTS = {
    word: level["weight"]
    for language in LANGUAGES.values()
    for level in [*language["frequency"], *language["agreement"]]
    for word in level["terms"]
}
_WEIGHTS |= dict.fromkeys(("yes", "ja", "sí", "oui", "true", "agree"), 1)
_WEIGHTS |= dict.fromkeys(("no", "nein", "non", "false", "disagree", "not at all"), -1)


def parse_options(text: str, place: str) -> list[tuple[float | None, str]]:
    """Read the response options of an item, from least to most.

    Parameters
    ----------
    text : str
        Options with their numbers (``0=Not at all; 1=Often``, ``1: never, 2: often``, ``Never
        (1)``), labels alone (``Disagree; Agree``), or a range of numbers (``1-5``), whose ends may
        be named (``1-5; 1=never; 5=always``). Options are separated by semicolons, vertical bars or
        line breaks; commas separate only options that begin with their numbers.
    place : str
        The place of the text, for messages.

    Returns
    -------
    list of (float or None, str)
        The number and the label of each option. Labels alone have no numbers.

    Raises
    ------
    ParameterError
        There is only one option, only some options have numbers, a range falls, labels without
        numbers begin with the most, or two options seem to be the ends of a longer scale.

    Examples
    --------
    >>> parse_options("0=Not at all; 1=Often", "tea.csv, line 2")
    [(0.0, 'Not at all'), (1.0, 'Often')]
    >>> parse_options("1-3; 1=never; 3=always", "tea.csv, line 2")
    [(1.0, 'never'), (2.0, '2'), (3.0, 'always')]
    >>> parse_options("Disagree; Agree", "tea.csv, line 2")
    [(None, 'Disagree'), (None, 'Agree')]
    """
    scale = _RANGE.fullmatch(text.strip())
    if scale is not None:
        return _parse_range(scale, place)

    texts = _split(text)
    options = [_parse_option(option) for option in texts]
    numbered = [(value, label) for value, label in options if value is not None]
    if len(options) < 2:
        raise ParameterError(f"{place}: one option only, '{text}'; write options as {_FORMS}.")
    if 0 < len(numbered) < len(options):
        other = next(label for value, label in options if value is None)
        raise ParameterError(
            f"{place}: '{other}' has no number, but other options have one; write {_FORMS}."
        )

    if not numbered:
        least, *_, most = texts
        start = _WEIGHTS.get(least.casefold())
        end = _WEIGHTS.get(most.casefold())
        if start is not None and end is not None and start > end:
            raise ParameterError(
                f"{place}: options are written from least to most, but these begin with "
                f"'{least}'; turn their order round, or number them: '{len(texts)}={least}; ...; "
                f"1={most}'."
            )
    elif len(options) == 2:
        (low, low_label), (high, high_label) = sorted(numbered)
        if high - low > _WIDEST_PAIR:
            ends = f"{low:g}={low_label}; {high:g}={high_label}"
            raise ParameterError(
                f"{place}: the options {low:g} and {high:g} may be the ends of a longer scale; "
                f"write '{low:g}-{high:g}; {ends}' if people may also choose a number between."
            )

    return options


def join_option_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Move the options of a table with one column an option into the column ``options``.

    Parameters
    ----------
    table : DataFrame
        A table of texts. The columns ``option 1``, ``option 2`` … or ``1``, ``2`` … hold the labels
        of the options with these numbers.

    Returns
    -------
    DataFrame
        The table with one column ``options``; a table without such columns is returned unchanged.

    Raises
    ------
    ParameterError
        The table has a column ``options``, too.

    Examples
    --------
    >>> table = pd.DataFrame({"item": ["I like tea."], "option 0": ["no"], "option 1": ["yes"]})
    >>> join_option_columns(table)["options"].tolist()
    ['0=no\\n1=yes']
    """
    numbers = {name: match[1] for name in table if (match := _COLUMN.fullmatch(name))}
    if not numbers:
        return table

    if "options" in table:
        raise ParameterError(
            f"The table has the columns 'options' and '{min(numbers)}': keep the options in one "
            "column, or in one column for each option."
        )

    def join(row: pd.Series) -> str:
        labels = {number: row[name].strip() for name, number in numbers.items()}
        return "\n".join(f"{number}={label}" for number, label in labels.items() if label)

    return table.drop(columns=list(numbers)).assign(options=table.apply(join, axis=1))


def _split(text: str) -> list[str]:
    """Split a text into options."""
    pattern = r"\n" if "\n" in text.strip() else "[;|]"
    if not re.search(pattern, text):
        # A label may contain a comma, but not a comma and the number of the next option.
        pattern = rf",\s*(?=\(?{_NUMBER}\s*[=:)])"
        if re.fullmatch(r"\s*\d+(\s*,\s*\d+){2,}\s*", text):
            pattern = ","
    return [option.strip() for option in re.split(pattern, text) if option.strip()]


def _parse_option(text: str) -> tuple[float | None, str]:
    """Return an option's number, or None, and its label."""
    number = label = text
    if not re.fullmatch(_NUMBER, text):
        if match := _NUMBER_FIRST.fullmatch(text):
            number, label = match.groups()
        elif match := _NUMBER_LAST.fullmatch(text):
            label = match[1]
            number = match[2] or match[3]
        else:
            return None, text

    return float(number.replace(",", ".")), label


def _parse_range(scale: re.Match[str], place: str) -> list[tuple[float | None, str]]:
    """Return the options of a range of whole numbers, some of which may be named."""
    low = int(scale[1])
    high = int(scale[2])
    if not low < high < low + _MOST_IN_RANGE:
        raise ParameterError(
            f"{place}: the options run from {low} to {high}; write the least first and at most "
            f"{_MOST_IN_RANGE} numbers, and mark reversed items in the column reverse."
        )

    labels = {float(value): str(value) for value in range(low, high + 1)}
    for option in _split(scale[3] or ""):
        value, label = _parse_option(option)
        if value not in labels:
            raise ParameterError(
                f"{place}: '{option}' names no number from {low} to {high}; write "
                f"'{low}-{high}; {low}=never; {high}=always'."
            )
        labels[value] = label

    return list(labels.items())
