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
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt

from psychometrics.exceptions import DataError
from psychometrics.paths import book_dir, data_dir, notebooks_dir

from ..exercises import answer, hints, listed
from ..record import ROLE, printed
from .items import items

_BLOCK = r"^(?P<fence>`{{3,}})\{{{kind}\}}(?P<first>[^\n]*)\n(?P<body>.*?)^(?P=fence)$"
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
        BankQuestion(name, row.chapter, *texts[row.chapter][name], *answer(name), _hints(name))
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


def _hints(name: str) -> dict[float, str]:
    return hints(name) if not isinstance(answer(name)[0], str) else {}


def _texts(chapter: str) -> dict[str, tuple[str, str]]:
    """Return text and solution of each exercise of a chapter."""
    cells = json.loads((notebooks_dir() / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    solution_of = {
        match["first"].strip(): _plain(match["body"], chapter)
        for match in _blocks("solution", prose)
    }
    texts = {}
    for match in _blocks("exercise", prose):
        name = re.search(r"^:label: (\S+)", match["body"], re.M)[1]
        text = _plain(_CHECK.sub("", match["body"]), chapter)
        texts[name] = (_html(text), solution_of.get(name, ""))

    return texts


def _blocks(kind: str, prose: str) -> list[re.Match]:
    return list(re.finditer(_BLOCK.format(kind=kind), prose, re.M | re.S))


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
    formulas = []

    def keep(match: re.Match) -> str:
        formulas.append(match[1] or match[2])
        return f"FORMULA{len(formulas) - 1}END"

    held = re.sub(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", keep, text, flags=re.S)
    html = MarkdownIt("commonmark").enable("table").render(held)

    return re.sub(r"FORMULA(\d+)END", lambda match: rf"\({formulas[int(match[1])]}\)", html)


def moodle(bank: list[BankQuestion]) -> str:
    """Return the bank as Moodle XML, a category for each chapter."""
    quiz = ET.Element("quiz")
    chapter = None
    for one in bank:
        if one.chapter != chapter:
            chapter = one.chapter
            category = ET.SubElement(quiz, "question", type="category")
            _text(ET.SubElement(category, "category"), f"$course$/{chapter}")

        is_word = isinstance(one.answer, str)
        question = ET.SubElement(quiz, "question", type="shortanswer" if is_word else "numerical")
        _text(ET.SubElement(question, "name"), one.name)
        _text(ET.SubElement(question, "questiontext", format="html"), one.text)
        for word in one.answer.split("|") if is_word else []:
            _text(ET.SubElement(question, "answer", fraction="100", format="plain_text"), word)

        if not is_word:
            _moodle_number(question, one.answer, one.tolerance, "100", "")
            for number, sentence in one.hints.items():
                _moodle_number(question, number, abs(number) / 100, "0", sentence)

    return _written(quiz)


def _moodle_number(parent, number: float, tolerance: float, fraction: str, feedback: str) -> None:
    place = ET.SubElement(parent, "answer", fraction=fraction, format="plain_text")
    _text(place, repr(number))
    ET.SubElement(place, "tolerance").text = repr(tolerance)
    if feedback:
        _text(ET.SubElement(place, "feedback", format="html"), feedback)


def _text(parent: ET.Element, text: str) -> None:
    ET.SubElement(parent, "text").text = text


def qti(bank: list[BankQuestion]) -> str:
    """Return the bank as IMS QTI 1.2, one section for each chapter."""
    root = ET.Element("questestinterop")
    assessment = ET.SubElement(root, "assessment", ident="psychometrics", title="Exercises")
    for chapter in dict.fromkeys(question.chapter for question in bank):
        section = ET.SubElement(assessment, "section", ident=chapter, title=chapter)
        for question in bank:
            if question.chapter == chapter:
                _qti_item(section, question)

    return _written(root)


def _qti_item(section: ET.Element, question: BankQuestion) -> None:
    item = ET.SubElement(section, "item", ident=question.name, title=question.name)
    presentation = ET.SubElement(item, "presentation")
    material = ET.SubElement(presentation, "material")
    ET.SubElement(material, "mattext", texttype="text/html").text = question.text
    is_word = isinstance(question.answer, str)
    kind = "String" if is_word else "Decimal"
    response = ET.SubElement(presentation, "response_str", ident="answer", rcardinality="Single")
    ET.SubElement(response, "render_fib", fibtype=kind, prompt="Box")

    processing = ET.SubElement(item, "resprocessing")
    outcomes = ET.SubElement(processing, "outcomes")
    ET.SubElement(
        outcomes, "decvar", varname="SCORE", vartype="Decimal", minvalue="0", maxvalue="1"
    )
    condition = ET.SubElement(processing, "respcondition", {"continue": "No"})
    variable = ET.SubElement(condition, "conditionvar")
    if is_word:
        either = ET.SubElement(variable, "or")
        for word in question.answer.split("|"):
            ET.SubElement(either, "varequal", respident="answer", case="No").text = word
    else:
        low = question.answer - question.tolerance
        high = question.answer + question.tolerance
        both = ET.SubElement(variable, "and")
        ET.SubElement(both, "vargte", respident="answer").text = repr(low)
        ET.SubElement(both, "varlte", respident="answer").text = repr(high)

    ET.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "1"


def _written(root: ET.Element) -> str:
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def solutions(bank: list[BankQuestion]) -> str:
    """Return answers and solutions for teachers, by chapter."""
    lines = ["# Solutions", "", "Keep this file from the class."]
    chapter = None
    for question in bank:
        if question.chapter != chapter:
            chapter = question.chapter
            lines += ["", f"## {chapter}"]

        margin = f" ± {question.tolerance:g}" if question.tolerance == question.tolerance else ""
        lines += ["", f"### {question.name}", ""]
        lines += [f"**{question.answer}**{margin}", "", question.solution]

    return "\n".join(lines) + "\n"


def _main() -> None:
    folder = Path("runs/question-bank")
    folder.mkdir(parents=True, exist_ok=True)
    bank = questions()
    written = {"moodle.xml": moodle(bank), "qti.xml": qti(bank), "solutions.md": solutions(bank)}
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")

    print(f"{folder}: {len(bank)} questions as Moodle XML and QTI 1.2, and their solutions.")


if __name__ == "__main__":
    _main()
