"""The prose of an executed notebook as plain Markdown, with its numbers filled in.

For a run whose parameters differ from those of the published run, the text is quoted, and a mark
after each sentence with a rule shows whether the sentence holds for the run.
"""

from __future__ import annotations

import json
import re
import secrets
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from psychometrics.exceptions import PsychometricsError
from psychometrics.paths import book_dir, data_dir, notebooks_dir

from .claims import SENTENCE_VERDICTS, _chapter_of, judged_sentences, own_parameters
from .record import ROLE, printed, shown
from .templating import fill_template

if TYPE_CHECKING:
    import pandas as pd


FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w-]+)\}[ \t]*(.*)\n((?:.*\n)*?)\1[ \t]*$", re.M)
_ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
_MATH = re.compile(r"\$\$(.+?)\$\$(?:[ \t]*\([\w-]+\))?|(?<![\w$])\$([^$\n]+?)\$(?!\d)", re.S)
_LABEL = re.compile(r"^\(([\w-]+)\)=\n+(?:#+ (.+)\n)?", re.M)
_HEADING = re.compile(r"^(?:\([\w-]+\)=\n+)?#+ .+$", re.M)
_SENTENCE = re.compile(r"\S.*?[.!?](?=[*)”\"']*(?:\s|$))[*)”\"']*|\S.*", re.S)
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
# Directives whose text may report results of the published run.
_CLAIMING = ("admonition", "exercise", "list-table", "note", "solution", "tip", "warning")
FOR_THE_PUBLISHED_RUN = "*Written for the published run.*"
_MATHML = re.findall(
    r"\w+",
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none",
)
# Formats of an output that a page shows; widgets and scripts are left out.
_SHOWN = ("image/svg+xml", "image/png", "image/jpeg", "text/html", "text/markdown", "text/latex",
          "text/plain")  # fmt: skip


def _prose_of(executed: Path) -> _Prose:
    """Return the object that writes a run's text, either unchanged or marked."""
    sentences = judged_sentences(executed)
    parameters = own_parameters(executed)
    is_chapter = re.match(r"\d\d-|audit$|benchmarks$|records-", _chapter_of(executed)) is not None
    is_other = bool(parameters) or (sentences["verdict"] == SENTENCE_VERDICTS[-1]).any()
    if is_chapter and is_other:
        return _OtherRun(executed, parameters, sentences)
    return _Prose(executed)


class _Prose:
    """Turn the MyST of a run's cells into plain Markdown."""

    def __init__(self, executed: Path):
        self.executed = executed
        self.held: dict[str, str] = {}
        kinds = {"tab": "Table", "fig": "Figure"}
        counts = dict.fromkeys(kinds, 0)
        self.numbers = {}
        for about in shown(executed):
            kind = about["name"][:3]
            counts[kind] += 1
            self.numbers[about["name"]] = f"{kinds[kind]} {counts[kind]}"

    def captioned(self, output) -> list:
        """Return an output with its numbered caption, or the failures that a message reports."""
        from nbformat.v4 import new_output

        if output.get("name") == "stderr":
            failed = re.findall(r"UserWarning: (.+ did not answer everything: .+)", output["text"])
            return [
                new_output("display_data", {"text/markdown": self._hold(escape(failure))})
                for failure in dict.fromkeys(failed)
            ]

        output.get("metadata", {}).pop("filenames", None)  # pictures are embedded in the page
        if "data" in output:
            output["data"] = {kind: output["data"][kind] for kind in _SHOWN if kind in output.data}
            if not output["data"]:
                return []

        about = output.get("metadata", {}).get("record")
        if about is None:
            return [output]

        text = f"**{self.numbers[about['name']]}.** {self.caption(about)}"
        caption = new_output("display_data", {"text/markdown": text})
        return [caption, output] if about["name"].startswith("tab") else [output, caption]

    def banner(self) -> str:
        """Return the text to put above the page's first cell."""
        return ""

    def cell(self, source: str) -> str:
        """Return the text of a text cell."""
        return self.plain(source)

    def caption(self, about: dict) -> str:
        """Return the caption of a table or figure."""
        return self.plain(about["caption"])

    def plain(self, text: str) -> str:
        text = self._blocks(text + "\n")
        text = _LABEL.sub(lambda label: f"# {label[2]}\n" if label[2] else "", text)
        text = re.sub(r"^%.*\n", "", text, flags=re.M)
        text = _ROLE.sub(self._role, _MATH.sub(self._formula, text))
        return re.sub(r"\[\]\(([^)]+)\)", lambda link: f"*{_title(link[1])}*", text)

    def _blocks(self, text: str) -> str:
        """Turn directives into quotations with a bold first line; leave out forms and explorers."""

        def block(fence: re.Match) -> str:
            kind = fence[2]
            title = fence[3]
            body = re.sub(r"^:[\w-]+:.*\n", "", fence[4], flags=re.M)
            if kind in ("check", "explorer", "ask-a-model", "raw", "share-card"):
                return ""

            if kind == "math":
                return f"$$\n{body}$$\n"
            names = {"exercise": f"Exercise: {title}".rstrip(": "), "solution": "Solution"}
            lines = [f"**{names.get(kind, title or kind.capitalize())}**", ""]
            lines += self._blocks(body).strip().splitlines()

            return "".join(f"> {line}".rstrip() + "\n" for line in lines)

        return FENCE.sub(block, text)

    def _formula(self, match: re.Match) -> str:
        from latex2mathml.converter import convert

        display = "block" if match[1] else "inline"
        try:
            formula = convert((match[1] or match[2]).strip(), display=display)
        except Exception:  # dollar signs in a text; the library's errors have no common base
            return match[0]

        if not _is_plain_mathml(formula):
            return match[0]
        return self._hold(formula)

    def _hold(self, html: str) -> str:
        """Return a placeholder for HTML that Markdown must not touch."""
        placeholder = f"HELD{secrets.token_hex(12)}"  # too random to occur in any text
        self.held[placeholder] = html
        return placeholder

    def _role(self, role: re.Match) -> str:
        kind = role[1]
        text = role[2]
        words, _, target = text.rstrip(">").rpartition("<")
        if kind == "num":
            return self.number(text)

        if kind == "numref":
            return self.numbers.get(target, "a table or figure of another chapter")
        if kind == "ref":
            return words.strip() or f"*{_title(target)}*"

        if kind in ("cite", "cite:p", "cite:t"):
            works = [references().get(key.strip(), (key, "")) for key in text.split(",")]
            if kind == "cite:t":
                return "; ".join(f"{names} ({year})" for names, year in works)
            return f"({'; '.join(f'{names}, {year}' for names, year in works)})"

        return "" if kind == "eq" else words.strip() or text

    def number(self, text: str) -> str:
        """Return the text that the role ``num`` prints."""
        value = self._printed(text, self.executed.parent, self.executed.stem)
        return self._hold(value) if value else "–"

    @staticmethod
    def _printed(text: str, runs: Path, chapter: str) -> str:
        """Return a cell as printed, or an empty string if the cell or its value is missing."""
        try:
            value = escape(printed(text, runs, chapter))
        except (PsychometricsError, ValueError):
            return ""
        return "" if value.startswith("–") else value


class _OtherRun(_Prose):
    """The text of a chapter on the page of a run with different parameters.

    The text was written for the published run. It is quoted with the published numbers, this run's
    numbers in brackets, and a mark after each sentence that shows whether it holds for this run.
    """

    def __init__(self, executed: Path, parameters: dict, sentences: pd.DataFrame):
        super().__init__(executed)
        self.parameters = parameters
        self.sentences = sentences
        self.chapter = _chapter_of(executed)
        self.fragments = {
            _normal(row.sentence).rstrip("."): row.verdict for row in sentences.itertuples()
        }

    def banner(self) -> str:
        verdicts = self.sentences["verdict"]
        text = fill_template(
            "other-run.md.j2",
            # as code, which Markdown does not interpret
            settings={k: f"`{str(v).replace('`', '')}`" for k, v in self.parameters.items()},
            counts=[int((verdicts == verdict).sum()) for verdict in SENTENCE_VERDICTS],
            failing=self.sentences[verdicts == SENTENCE_VERDICTS[-1]].to_dict("records"),
        )
        return _quoted(text)

    def cell(self, source: str) -> str:
        parts = []
        place = 0
        for fence in FENCE.finditer(source + "\n"):
            parts += self._sections(source[place : fence.start()])
            parts.append(self.plain(self._directive(fence)))
            place = fence.end()
        parts += self._sections(source[place:])
        return "\n\n".join(parts)

    def captioned(self, output) -> list:
        from nbformat.v4 import new_output

        outputs = super().captioned(output)
        if 'class="plan"' not in str(output.get("data")):
            return outputs
        return [new_output("display_data", {"text/markdown": FOR_THE_PUBLISHED_RUN}), *outputs]

    def caption(self, about: dict) -> str:
        parts = [f"{FOR_THE_PUBLISHED_RUN} {self.plain(self._marked(about['caption']))}"]
        sentences = self.sentences[self.sentences["shown"] == about["name"]]
        lines = [
            f"- “{row.sentence}”: *{row.verdict}* ({row.why})" for row in sentences.itertuples()
        ]
        if lines:
            parts.append("The book's sentences about it:\n\n" + "\n".join(lines))
        return "\n\n".join(parts)

    def number(self, text: str) -> str:
        here = self._here(text).replace(" (– to –)", " without an interval")
        published = self._printed(text, data_dir() / "tables", self.chapter)
        if not published:
            return f"(here {self._hold(here)})" if here else "(not in this run)"

        value = self._hold(published)
        return value if here in ("", published) else f"{value} (here {self._hold(here)})"

    def _here(self, text: str) -> str:
        """Return this run's number, or an empty string if it is missing or in another chapter."""
        if "/" in text.partition("[")[0]:
            return ""
        return self._printed(text, self.executed.parent, self.executed.stem)

    def _sections(self, text: str) -> list[str]:
        """Keep headings unchanged, and quote the text between them."""
        parts = []
        place = 0
        for heading in _HEADING.finditer(text):
            title = self.plain(self._marked(heading[0]))  # some titles are findings
            parts += [self._quotation(text[place : heading.start()]), title]
            place = heading.end()
        parts.append(self._quotation(text[place:]))
        return [section for section in parts if section.strip()]

    def _quotation(self, text: str) -> str:
        text = _LABEL.sub("", text).strip()
        if not text:
            return ""
        return _quoted(f"{FOR_THE_PUBLISHED_RUN}\n\n{self.plain(self._marked(text))}")

    def _directive(self, fence: re.Match) -> str:
        """Return a directive with marks after its sentences, unless it is a chapter's question."""
        kind = fence[2]
        body = fence[4]
        if kind not in _CLAIMING:
            return fence[0]

        options = re.match(r"(?::[\w-]+:.*\n)*\s*", body)[0]
        claims = body.removeprefix(options)
        if "chapter-head" in options:
            finding = re.compile(r"^\*\*Finding\.\*\*.*$", re.M)
            published = ("**Finding.**", "**Finding of the published run.**", 1)
            claims = finding.sub(lambda match: self._marked(match[0].replace(*published)), claims)
        elif kind == "exercise":
            claims = self._marked(claims)
        else:
            claims = f"{FOR_THE_PUBLISHED_RUN}\n\n{self._marked(claims)}"

        start, end = (place - fence.start() for place in fence.span(4))
        return fence[0][:start] + options + claims + fence[0][end:]

    def _marked(self, text: str) -> str:
        """Remove bold findings from a text, and mark each sentence that has a rule."""
        plain = _BOLD.sub(lambda bold: bold[1] if len(bold[1]) > 20 else bold[0], text)
        blocks = re.split(r"(\n\s*\n)", plain)
        return "".join(
            block if block.lstrip().startswith(("$$", "|", "```")) else self._marked_block(block)
            for block in blocks
        )

    def _marked_block(self, block: str) -> str:
        sentences = list(_SENTENCE.finditer(block))
        normal = [_normal(sentence[0]) for sentence in sentences]
        verdicts = [[] for _ in sentences]

        # a fragment may run past the end of a sentence; the mark follows the sentence in which it
        # ends
        joined = " ".join(normal)

        for fragment, verdict in self.fragments.items():
            start = joined.find(fragment)
            if start >= 0:
                before = joined[: start + len(fragment) - 1]
                ends = [len(" ".join(normal[: n + 1])) for n in range(len(normal))]
                verdicts[next(n for n, end in enumerate(ends) if len(before) < end)].append(verdict)

        marked = ""
        place = 0
        for sentence, verdicts_here in zip(sentences, verdicts, strict=True):
            if any(not self._here(role[1]) for role in ROLE.finditer(sentence[0])):
                verdicts_here.append(SENTENCE_VERDICTS[2])

            marked += block[place : sentence.end()]
            place = sentence.end()
            if verdicts_here:
                worst = max(verdicts_here, key=SENTENCE_VERDICTS.index)
                marked += f" [**{worst}**]"

        return marked + block[place:]


def _is_plain_mathml(formula: str) -> bool:
    r"""Return whether a formula is pure MathML, since ``\text`` may contain any HTML.

    Examples
    --------
    >>> _is_plain_mathml("<math><mi>x</mi></math>")
    True
    >>> _is_plain_mathml("<math><mtext><img/src=//host/b></mtext></math>")
    False
    """
    try:
        elements = list(ElementTree.fromstring(formula).iter())
    except ElementTree.ParseError:
        return False

    attributes = [(name, value) for element in elements for name, value in element.attrib.items()]
    return all(element.tag.rpartition("}")[2] in _MATHML for element in elements) and not any(
        name.startswith("on") or "href" in name or name == "style" or "url(" in value
        for name, value in attributes
    )


def _normal(text: str) -> str:
    """Return a sentence without markup, in the form in which expectations quote it."""
    text = ROLE.sub("…", text)
    text = _ROLE.sub(lambda role: role[2].partition("<")[0].strip() or role[2], text)
    return " ".join(text.replace("*", "").casefold().split())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _title(target: str) -> str:
    """Return the heading that a label or a page has, or else the words of the label."""
    name = target.split("#")[-1].rpartition("/")[2].partition(".")[0]
    return _titles().get(name, name.replace("-", " "))


@cache
def _titles() -> dict[str, str]:
    """Return the book's headings, by their labels and by the names of their pages."""
    titles = {}
    for path in [*notebooks_dir().glob("*.ipynb"), *book_dir().rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])

        titles |= dict(re.findall(r"^\(([\w-]+)\)=\n+#+ (.+)", text, re.M))
        heading = re.search(r"^# (.+)", text, re.M)
        if heading:
            titles[path.stem] = heading[1]

    return titles


@cache
def references() -> dict[str, tuple[str, str]]:
    """Return the authors, as the text names them, and the year of each reference by its key.

    Examples
    --------
    >>> references()["reuben2024"]
    ('Reuben et al.', '2024')
    """
    from pybtex.database import parse_file
    from pybtex.richtext import Text

    path = book_dir() / "references.bib"
    entries = parse_file(path).entries if path.is_file() else {}
    works = {}
    for key, entry in entries.items():
        surnames = [
            str(Text.from_latex(" ".join([*person.prelast_names, *person.last_names])))
            for person in entry.persons.get("author", [])
        ]
        many = len(surnames) > 2 or "others" in surnames
        authors = f"{surnames[0]} et al." if many else " and ".join(surnames) or key
        works[key] = authors, entry.fields.get("year", "n.d.")

    return works
