"""Numbers as pages and reports print them."""

from __future__ import annotations

import math
from string import Formatter

from .exceptions import ParameterError


def number(value: object, form: str = "") -> str:
    """Return a number or a word as the book prints it.

    Examples
    --------
    >>> number(-0.125, ".2f"), number(0.0002, "p"), number("always"), number(float("nan"))
    ('−0.12', '< .001', 'always', '–')
    """
    if not isinstance(value, int | float):
        return str(value)

    if math.isnan(value):
        return "–"

    if form == "p":  # in the style of the American Psychological Association
        if value < 0.001:
            return "< .001"
        return "> .999" if value > 0.999 else f"{value:.3f}".removeprefix("0")

    if form.endswith("d"):
        value = round(value)

    try:
        return format(value, form or ".3g").replace("-", "\N{MINUS SIGN}")
    except ValueError:
        raise ParameterError(f"{form!r} is not a number format; write one such as .2f.") from None


class _NumberFormatter(Formatter):
    def format_field(self, value: object, form: str) -> str:
        """Return a value as the book prints it."""
        return number(value, form) if form else str(value)


def fill(text: str, **values: object) -> str:
    """Fill values into the named places of a text, with numbers as the book prints them.

    Examples
    --------
    >>> fill("{name}: alpha {value:.2f}", name="Anxiety", value=-0.125)
    'Anxiety: alpha −0.12'
    """
    return _NumberFormatter().vformat(text, (), values)


def markdown_table(rows: list[list[str]]) -> str:
    """Return rows of texts, of which the first has the heads, as a Markdown table.

    Examples
    --------
    >>> print(markdown_table([["a", "b"], ["1", "x|y"]]))
    | a | b |
    | --- | --- |
    | 1 | x\\|y |
    <BLANKLINE>
    """
    heads, *body = rows
    lines = [heads, ["---"] * len(heads), *body]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)
