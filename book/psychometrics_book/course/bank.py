"""Write the exercises as a question bank for course systems: ``make bank``.

``runs/question-bank`` gets ``moodle.xml`` (Moodle XML), ``qti.xml`` (IMS QTI 1.2) and
``solutions.md`` for teachers. Questions are the book's checked exercises; answers, tolerances and
hints come from ``data/exercises.csv`` and the kept tables, as on the page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from psychometrics.exceptions import DataError
from psychometrics.paths import book_dir, data_dir, notebooks_dir

from ..exercises import answer, hints, listed
from ..prose import FENCE
from ..record import ROLE, printed
from ..templating import fill_template
from .items import items

_OPTIONS = re.compile(r"^:[\w-]+:.*\n", re.M)
_CHECK = re.compile(r"^(`{3,})\{check\}.*?^\1$", re.M | re.S)
_REFERENCE = re.compile(r"\{[\w:]+\}`~?([^`<]*?)(?: ?<[^`]*>)?`")


class BankQuestion(NamedTuple):
    """An exercise with its answer."""

    name: str
    chapter: str
    text: str  # HTML
    solution: str  # Markdown
    answer: float | str
    tolerance: float
    hints: dict[float, str]


def questions() -> list[BankQuestion]:
    """Return the checked exercises in the order of the book."""
    texts = {chapter: _texts(chapter) for chapter in listed()["chapter"].unique()}
    return [
        BankQuestion(name, row.chapter, *texts[row.chapter][name], *answer(name), hints(name))
        for name, row in listed().iterrows()
        if name in texts[row.chapter]
    ]


def questions_of_items(seed: int) -> list[BankQuestion]:
    """Return the forty items with numbers of their own as questions, for the same course systems.

    Examples
    --------
    >>> len(questions_of_items(1)), questions_of_items(1)[0].name
    (40, 'seed-1-item-01')
    """
    return [
        BankQuestion(
            f"seed-{seed}-item-{number:02}",
            row.chapter,
            _html(row.question),
            row.how,
            round(float(row.answer), 4),
            tolerance=0.01,
            hints={},
        )
        for number, row in enumerate(items(seed).itertuples(), 1)
    ]


def _texts(chapter: str) -> dict[str, tuple[str, str]]:
    """Return text and solution of each exercise of a chapter."""
    cells = json.loads((notebooks_dir() / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    blocks = list(FENCE.finditer(prose))
    solution_of = {
        block[3].strip(): _plain(block[4], chapter) for block in blocks if block[2] == "solution"
    }
    texts = {}
    for block in blocks:
        if block[2] == "exercise":
            name = re.search(r"^:label: (\S+)", block[4], re.M)[1]
            text = _plain(_CHECK.sub("", block[4]), chapter)
            texts[name] = (_html(text), solution_of.get(name, ""))

    return texts


def _plain(text: str, chapter: str) -> str:
    """Replace roles with their output, since course systems do not know them."""
    text = ROLE.sub(lambda match: _number(match[1], chapter), _OPTIONS.sub("", text))
    text = re.sub(r"\[\]\(([^)]*)\)", r"the book's page \1", text)

    return _REFERENCE.sub(lambda match: f"*{match[1]}*", text).strip()


def _number(address: str, chapter: str) -> str:
    """Return a cell of a kept table, or of the built chapter if it belongs to a figure."""
    for folder in (data_dir() / "tables", book_dir() / "chapters"):
        try:
            return printed(address, folder, chapter)
        except DataError:
            continue

    return "(see the page)"


def _html(text: str) -> str:
    r"""Return Markdown as HTML, with formulas between ``\(`` and ``\)`` for course systems."""
    markdown = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, double_inline=True)
    for kind in ("math_inline", "math_inline_double", "math_block"):
        markdown.add_render_rule(kind, _formula)
    return markdown.render(text)


def _formula(_renderer, tokens, place: int, _options, _environment) -> str:
    return rf"\({tokens[place].content}\)"


def bank_files(bank: list[BankQuestion]) -> dict[str, str]:
    """Return the text of each file of a question bank, by its name.

    ``moodle.xml`` has a category for each chapter, ``qti.xml`` a section for each, and
    ``solutions.md`` answers and solutions for teachers.
    """
    names = ("moodle.xml", "qti.xml", "solutions.md")
    return {name: fill_template(f"{name}.j2", bank=bank) for name in names}


def _main() -> None:
    folder = Path("runs/question-bank")
    folder.mkdir(parents=True, exist_ok=True)
    bank = questions()
    for name, text in bank_files(bank).items():
        (folder / name).write_text(text, encoding="utf-8")

    print(f"{folder}: {len(bank)} questions as Moodle XML and QTI 1.2, and their solutions.")


if __name__ == "__main__":
    _main()
