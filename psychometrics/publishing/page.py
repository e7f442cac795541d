"""Write an executed notebook as one HTML page: the numbers of its prose filled in, no network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import shutil
import subprocess
import tempfile
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from xml.etree import ElementTree

from ..checks import check_choice, check_kinds
from ..exceptions import ParameterError, PsychometricsError, check_file, writing
from ..paths import book_dir, data_dir, notebooks_dir
from .claims import SENTENCE_VERDICTS, chapter_of, judged_sentences, own_parameters
from .record import ROLE, printed, shown

if TYPE_CHECKING:
    import pandas as pd

_FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w-]+)\}[ \t]*(.*)\n((?:.*\n)*?)\1[ \t]*$", re.M)
_ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
_MATH = re.compile(r"\$\$(.+?)\$\$(?:[ \t]*\([\w-]+\))?|(?<![\w$])\$([^$\n]+?)\$(?!\d)", re.S)
_LABEL = re.compile(r"^\(([\w-]+)\)=\n+(?:#+ (.+)\n)?", re.M)
_HEADING = re.compile(r"^(?:\([\w-]+\)=\n+)?#+ .+$", re.M)
_SENTENCE = re.compile(r"\S.*?[.!?](?=[*)”\"']*(?:\s|$))[*)”\"']*|\S.*", re.S)
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_OPENING = (
    r"^# .+|^> \*\*This is not the published run\..+|^(?:> )?\*\*(?:Question|Finding)\.\*\*.+"
)
_FOR_THE_PUBLISHED_RUN = "*Written for the published run.*"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PAGE = """
{%- extends 'lab/index.html.j2' -%}
{%- block html_head -%}POLICY{{ super() }}{%- endblock -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block html_head_css -%}
{{ super() }}
<style>
main { max-width: 58rem; margin: auto; } details { margin: 0.5rem 0; }
.jp-OutputArea-output, .jp-RenderedHTMLCommon { overflow-x: auto; }
.jp-InputPrompt, .jp-OutputPrompt { display: none; } table.words td { overflow-wrap: anywhere; }
table.words :is(td, th) { text-align: left !important; vertical-align: top; }
@media (width < 600px) { table.words:has(tbody th + th + th) :is(tr, td + td) { display: block; } }
</style>
{%- endblock -%}
{% block input %}
{%- if cell.metadata.get('folded') -%}
<details><summary>Code</summary>{{ super() }}</details>
{%- else -%}{{ super() }}{%- endif -%}
{% endblock %}
"""
_TAGS = re.findall(
    r"\w+",
    "a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1 h2 h3 h4 "
    "h5 h6 hr i img li ol p pre s small span strong sub summary sup table tbody td tfoot th thead "
    "tr u ul",
)
_MATHML = re.findall(
    r"\w+",
    "math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none",
)
_SCRIPTS = re.compile(r"<(style|script)\b.*?(</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_PROTOCOLS = ("http", "https", "mailto", "data")
_ATTRIBUTES = ("class", "id", "title", "colspan", "rowspan", "href", "src", "alt")
# Forms of an output that a page shows; widgets and scripts are left out.
_SHOWN = ("image/svg+xml", "image/png", "image/jpeg", "text/html", "text/markdown", "text/latex",
          "text/plain")  # fmt: skip
_SLIDES = """
{%- extends 'reveal/index.html.j2' -%}
{%- block header -%}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
POLICY
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<title>{{ nb.metadata.title | escape }}</title>
{{ resources.include_css("static/index.css") }}
{{ resources.include_css("static/theme-light.css") }}
<style>
html { scroll-snap-type: y proximity; } body { margin: 0; } .anchor-link { display: none; }
main > section { box-sizing: border-box; min-height: 100vh; padding: 4vh 8vw;
  scroll-snap-align: start; border-bottom: 1px solid #ccc; }
main h1, main h2 { font-size: 1.6rem; }
main :is(p, .jp-RenderedHTMLCommon table) { font-size: 1.1rem; }
.jp-InputPrompt, .jp-OutputPrompt { display: none; }
main img { max-height: 70vh; } .jp-OutputArea-output { overflow-x: auto; }
.notes { display: none; background: #f4f4f4; padding: 0 1rem; }
.with-notes .notes { display: block; }
@media print { main > section { break-after: page; border: none; } }
</style>
</head>
{%- endblock -%}
{%- block body_header -%}
<body class="jp-Notebook" data-jp-theme-light="true" data-jp-theme-name="JupyterLab Light">
<main>
{%- endblock -%}
{%- block body_footer -%}
</main>
</body>
{%- endblock -%}
{%- block footer_js -%}<script>SCRIPT</script>{%- endblock -%}
"""
_TURN_SLIDES = """
const slides = [...document.querySelectorAll("main > section")];
const forward = ["ArrowRight", "ArrowDown", "PageDown", " "];
const back = ["ArrowLeft", "ArrowUp", "PageUp"];

addEventListener("keydown", (event) => {
  if (event.key === "s") document.body.classList.toggle("with-notes");
  const step = forward.includes(event.key) - back.includes(event.key);
  if (step === 0) return;

  event.preventDefault();
  const tops = slides.map((slide) => Math.abs(slide.getBoundingClientRect().top));
  const place = tops.indexOf(Math.min(...tops)) + step;
  slides[Math.max(0, Math.min(place, slides.length - 1))].scrollIntoView();
});
"""


def _policy(script: str = "") -> str:
    """Return the element that forbids a page whatever is not in it, but for one script.

    Examples
    --------
    >>> "script-src" in _policy(), "script-src 'sha256-" in _policy("alert(1);")
    (False, True)
    """
    rules = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; "
    rules += "base-uri 'none'; form-action 'none'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules += f"; script-src 'sha256-{digest}'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def write_page(executed: str | Path, output: str | Path | None = None, kind: str = "page") -> Path:
    """Write the page of an executed notebook.

    Parameters
    ----------
    executed : str or Path
        The copy that papermill wrote; the tables of its run lie in the folder of its name.
    output : str or Path, optional
        The HTML file, by default beside the copy; or a PDF file, which Chromium or Chrome prints.
    kind : {"page", "report", "slides"}
        A page with its code in open cells, a report with all code folded, or slides with a slide
        for each table and figure, its headline, and the text as speaker's notes. Each loads nothing
        from elsewhere, whoever wrote the notebook: widgets, scripts and pictures of other hosts are
        left out.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        There is no such copy, or the page cannot be written.
    PsychometricsError
        The browser did not print the page.

    Examples
    --------
    >>> write_page("runs/no-such-run.ipynb")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: runs/no-such-run.ipynb was not executed: ...
    """
    import nbformat

    check_choice(("page", "report", "slides"), kind=kind)
    check_kinds(locals(), {"executed": str | Path, "output": str | Path | None})
    executed = Path(executed)

    if len(executed.name.encode(errors="replace")) > 255 or not executed.is_file():
        raise ParameterError(f"{executed} was not executed: use `psychometrics run` first.")
    output = check_output(output or executed.with_suffix(".html"))

    try:
        notebook = nbformat.read(executed, as_version=4)
        nbformat.validate(notebook)
        notebook, held = _plain(notebook, executed, kind)
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError,
            nbformat.ValidationError) as error:  # fmt: skip
        reason = str(error).partition("\n")[0][:100]
        raise ParameterError(
            f"{executed} is not an executed notebook ({reason}): run the chapter again."
        ) from None

    text = _exported(notebook, executed, kind)
    text = re.sub(r"<style.*?</style>", _without_comments, text, flags=re.S)
    text = re.sub(r"HELD[0-9a-f]{24}", lambda match: held.get(match[0], match[0]), text)
    text = text.encode("utf-8", "replace").decode()  # no file can hold half a character

    with writing(output):
        if output.suffix == ".pdf":
            with tempfile.TemporaryDirectory() as folder:
                printed_from = Path(folder) / "page.html"
                printed_from.write_text(text, encoding="utf-8")
                print_page(printed_from.as_uri(), output.absolute(), Path(folder) / "browser")
        else:
            output.write_text(text, encoding="utf-8")

    return output


def _exported(notebook, executed: Path, kind: str) -> str:
    """Return the notebook as HTML, without tags and addresses that could do harm."""
    import bleach
    from jinja2 import DictLoader
    from nbconvert import HTMLExporter, SlidesExporter
    from nbconvert.filters.markdown_mistune import InvalidNotebook

    slides = _SLIDES.replace("POLICY", _policy(_TURN_SLIDES)).replace("SCRIPT", _TURN_SLIDES)
    templates = {"page.html.j2": _PAGE.replace("POLICY", _policy()), "slides.html.j2": slides}
    loaders = [DictLoader(templates)]

    if kind == "slides":
        exporter = SlidesExporter(
            template_file="slides.html.j2", exclude_input=True, extra_loaders=loaders
        )
    else:
        exporter = HTMLExporter(template_file="page.html.j2", extra_loaders=loaders)

    exporter.sanitize_html = True  # a reply, a name or another's notebook may hold anything
    clean = partial(
        bleach.clean, tags=_TAGS, attributes=_is_harmless, protocols=_PROTOCOLS, strip=True
    )
    exporter.register_filter("clean_html", lambda text: clean(_SCRIPTS.sub("", text)))

    try:
        text, _ = exporter.from_notebook_node(notebook)
    except InvalidNotebook as error:
        raise ParameterError(f"{executed} has no page ({error}): run the chapter again.") from None
    return text


def _without_comments(style: re.Match) -> str:
    """Return a style sheet without its comments, which name the hosts its colours come from."""
    return re.sub(r"/\*.*?\*/", "", style[0], flags=re.S)


def check_output(path: str | Path) -> Path:
    """Refuse a page that could not be written, before anything is computed for it.

    Returns
    -------
    Path
        With its ending, .html or .pdf, in small letters.

    Raises
    ------
    ParameterError
        As :func:`psychometrics.exceptions.check_file`, or no browser prints the page.

    Examples
    --------
    >>> check_output("report.doc")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: report.doc: end the file's name in .html or .pdf.
    """
    path = check_file(path, (".html", ".pdf"))
    if path.suffix == ".pdf":
        _find_browser(path)

    return path


def _find_browser(place: object) -> str:
    """Return the path of Chromium or Chrome.

    Raises
    ------
    ParameterError
        Neither is installed; ``place`` names what was to be printed.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ParameterError(
            f"{place}: a PDF is printed by Chromium or Chrome, and neither is on the PATH; "
            "install one, or write the .html page alone."
        )
    return browser


def print_page(address: str, output: Path, profile: Path) -> None:
    """Print an address to a PDF file by a browser without a window.

    Parameters
    ----------
    address : str
        Such as ``file:///tmp/page.html``.
    output : Path
    profile : Path
        A folder for the browser's own files, which several calls may share.

    Raises
    ------
    ParameterError
        There is no browser.
    PsychometricsError
        It did not print.
    """
    browser = _find_browser(address)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync",
               "--no-pdf-header-footer", "--virtual-time-budget=20000",
               f"--user-data-dir={profile}", f"--print-to-pdf={output}"]  # fmt: skip
    output.unlink(missing_ok=True)  # an earlier print is not taken for this one
    subprocess.run([browser, *options, address], check=False, capture_output=True, timeout=300)
    if not output.is_file():
        raise PsychometricsError(f"{browser} did not print {address}.")


def _is_harmless(tag: str, name: str, value: str) -> bool:
    """Return whether an attribute of another's HTML may stay: it loads nothing from elsewhere."""
    value = value.strip()
    if name == "href":
        return not value.lower().startswith("data:")

    if name == "src" and not value.startswith("data:image/"):
        try:
            parts = urlsplit(value)
        except ValueError:
            return False

        return not (parts.scheme or parts.netloc or value.startswith(("/", "\\")))

    return name in _ATTRIBUTES


def _is_plain_mathml(formula: str) -> bool:
    r"""Return whether a formula holds MathML alone; ``\text`` may hold any HTML.

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

    attributes = [(name, value) for one in elements for name, value in one.attrib.items()]
    return all(one.tag.rpartition("}")[2] in _MATHML for one in elements) and not any(
        name.startswith("on") or "href" in name or name == "style" or "url(" in value
        for name, value in attributes
    )


def _plain(notebook, executed: Path, kind: str):
    """A copy of a notebook in plain Markdown, and the HTML that its placeholders stand for."""
    from nbformat.v4 import new_markdown_cell

    cells = []
    prose = _prose_of(executed)

    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            own = {"attachments": cell.attachments} if "attachments" in cell else {}
            cells.append(new_markdown_cell(_few_brackets(prose.cell(cell.source)), **own))
        elif cell.cell_type == "code":
            cell.metadata["folded"] = kind == "report" or "hide-input" in tags
            cell.outputs = [part for one in cell.outputs for part in prose.captioned(one)]
            cells.append(cell)

    titles = (re.search(r"^# (.+)", cell.source, re.M) for cell in cells)
    title = next((title[1] for title in titles if title), executed.stem)
    notebook.metadata["title"] = title
    notebook.metadata.pop("widgets", None)

    banner = prose.banner()
    if banner:
        cells.insert(0, new_markdown_cell(banner))

    notebook.cells = _slides(cells) if kind == "slides" else cells
    return notebook, prose.held


def _few_brackets(text: str) -> str:
    """Return Markdown whose brackets are plain signs if there are more than any chapter has.

    The library that reads Markdown tries each opening bracket with all that follow.
    """
    return text if text.count("[") < 2000 else text.replace("[", "&#91;")


def _slides(cells: list) -> list:
    """A slide for each output, under its headline; the text that follows is for the speaker."""
    from nbformat.v4 import new_markdown_cell as new

    text = "\n\n".join(c.source for c in cells if "outputs" not in c).partition("# Exercises")[0]
    opening = re.findall(_OPENING, text, re.M)
    made = [("slide", new("\n\n".join(opening)))]
    notes = ""

    for cell in cells:
        if cell.cell_type == "markdown":
            notes += "\n\n" + cell.source
        elif cell.outputs and 'class="plan"' not in str(cell.outputs):
            made += [("notes", new(notes)), ("slide", new(_headline(cell, text))), ("-", cell)]
            notes = ""

    made.append(("notes", new(notes.partition("# Exercises")[0])))
    for kind, cell in made:
        cell.metadata["slideshow"] = {"slide_type": kind}

    return [cell for _, cell in made]


def _headline(cell, text: str) -> str:
    """What the paragraph on a table or figure says first in bold, or else its caption."""
    parts = "\n".join(str(one.get("data", {}).get("text/markdown")) for one in cell.outputs)
    own = parts.replace(f"{_FOR_THE_PUBLISHED_RUN} ", "")
    caption = re.search(r"^\*\*(\w+ \d+)\.\*\* (.+?)[.:](?=\s|$)", own, re.M)
    number, said = caption.groups() if caption else ("no number", "")
    lead = re.search(rf"\n\n\*\*([^*]{{20,}})\*\*(?:(?!\n\n).)*{number}\b", text, re.S)
    headline = " ".join((lead[1] if lead else said).split())
    return f"## {headline}" if own == parts else f"## {headline} (in the published run)"


def _prose_of(executed: Path) -> _Prose:
    """Return what writes the text of a run: as it is, or as text about the published run."""
    sentences = judged_sentences(executed)
    parameters = own_parameters(executed)
    is_chapter = re.match(r"\d\d-|benchmarks$", chapter_of(executed)) is not None
    is_other = bool(parameters) or (sentences["verdict"] == SENTENCE_VERDICTS[-1]).any()
    if is_chapter and is_other:
        return _OtherRun(executed, parameters, sentences)
    return _Prose(executed)


class _Prose:
    """What is MyST in a run's cells as plain Markdown."""

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
        """An output with its numbered caption, a table's before it; of messages, who failed."""
        from nbformat.v4 import new_output

        if output.get("name") == "stderr":
            failed = re.findall(r"UserWarning: (.+ was not asked to the end: .+)", output["text"])
            return [
                new_output("display_data", {"text/markdown": self._hold(escape(one))})
                for one in dict.fromkeys(failed)
            ]

        output.get("metadata", {}).pop("filenames", None)  # pictures are in the page
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
        """Return what is said before the page's first cell."""
        return ""

    def cell(self, source: str) -> str:
        """Return a cell of text."""
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
        """Directives as quotations with a bold first line; forms and explorers are left out."""

        def block(found: re.Match) -> str:
            kind = found[2]
            title = found[3]
            body = re.sub(r"^:\w+:.*\n", "", found[4], flags=re.M)
            if kind in ("check", "explorer", "ask-a-model"):
                return ""

            if kind == "math":
                return f"$$\n{body}$$\n"
            names = {"exercise": f"Exercise: {title}".rstrip(": "), "solution": "Solution"}
            lines = [f"**{names.get(kind, title or kind.capitalize())}**", ""]
            lines += self._blocks(body).strip().splitlines()

            return "".join(f"> {line}".rstrip() + "\n" for line in lines)

        return _FENCE.sub(block, text)

    def _formula(self, found: re.Match) -> str:
        from latex2mathml.converter import convert

        display = "block" if found[1] else "inline"
        try:
            formula = convert((found[1] or found[2]).strip(), display=display)
        except Exception:  # dollars of a text; the library's errors have no base of their own
            return found[0]

        if not _is_plain_mathml(formula):
            return found[0]
        return self._hold(formula)

    def _hold(self, html: str) -> str:
        """Return a placeholder for HTML that Markdown must not touch."""
        placeholder = f"HELD{secrets.token_hex(12)}"  # which no text of others can hold
        self.held[placeholder] = html
        return placeholder

    def _role(self, found: re.Match) -> str:
        kind = found[1]
        text = found[2]
        said, _, target = text.rstrip(">").rpartition("<")
        if kind == "num":
            return self.number(text)

        if kind == "numref":
            return self.numbers.get(target, "a table or figure of another chapter")
        if kind == "ref":
            return said.strip() or f"*{_title(target)}*"

        if kind in ("cite", "cite:p", "cite:t"):
            works = [_references().get(key.strip(), (key, "")) for key in text.split(",")]
            if kind == "cite:t":
                return "; ".join(f"{names} ({year})" for names, year in works)
            return f"({'; '.join(f'{names}, {year}' for names, year in works)})"

        return "" if kind == "eq" else said.strip() or text

    def number(self, text: str) -> str:
        """Return what the role ``num`` prints."""
        value = self._printed(text, self.executed.parent, self.executed.stem)
        return self._hold(value) if value else "–"

    @staticmethod
    def _printed(text: str, runs: Path, chapter: str) -> str:
        """Return a cell as it is printed; empty if there is none, or it has no value."""
        try:
            found = escape(printed(text, runs, chapter))
        except (PsychometricsError, ValueError):
            return ""
        return "" if found.startswith("–") else found


class _OtherRun(_Prose):
    """The text of a chapter on the page of a run that is not the published one.

    The text was written for the published run. It is shown as a quotation with the published
    numbers, this run's in brackets, and behind each sentence whether it holds for this run.
    """

    def __init__(self, executed: Path, parameters: dict, sentences: pd.DataFrame):
        super().__init__(executed)
        self.parameters = parameters
        self.sentences = sentences
        self.chapter = chapter_of(executed)
        self.fragments = {
            _normal(row.sentence).rstrip("."): row.verdict for row in sentences.itertuples()
        }

    def banner(self) -> str:
        given = ", ".join(f"{name} = {_code(value)}" for name, value in self.parameters.items())
        counts = self.sentences["verdict"].value_counts()
        held, unknown, failed = (counts.get(verdict, 0) for verdict in SENTENCE_VERDICTS)
        paragraphs = [
            f"**This is not the published run.** {f'It was run with {given}.' if given else ''} "
            "The text in quotations, captions and solutions was written for the published run: "
            "it has the published numbers, with those of this run in brackets.",
            f"{len(self.sentences)} sentences of this chapter have a rule. Hold here: {held}. "
            f"Do not hold here: {failed}. Cannot be said here: {unknown}. Sentences without a mark "
            "have no rule; they say nothing about this run.",
        ]
        false = self.sentences[self.sentences["verdict"] == SENTENCE_VERDICTS[-1]]
        lines = [f"- {row.sentence}: **{row.verdict}** ({row.why})" for row in false.itertuples()]

        return _quoted("\n\n".join([*paragraphs, "\n".join(lines)]))

    def cell(self, source: str) -> str:
        parts = []
        place = 0
        for fence in _FENCE.finditer(source + "\n"):
            parts += self._sections(source[place : fence.start()])
            parts.append(self.plain(self._directive(fence)))
            place = fence.end()
        parts += self._sections(source[place:])
        return "\n\n".join(parts)

    def caption(self, about: dict) -> str:
        parts = [f"{_FOR_THE_PUBLISHED_RUN} {self.plain(self._marked(about['caption']))}"]
        own = self.sentences[self.sentences["shown"] == about["name"]]
        lines = [f"- “{row.sentence}”: *{row.verdict}* ({row.why})" for row in own.itertuples()]
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
        """Return the number of this run; empty if it is missing, or another chapter's."""
        if "/" in text.partition("[")[0]:
            return ""
        return self._printed(text, self.executed.parent, self.executed.stem)

    def _sections(self, text: str) -> list[str]:
        """Return headings as they are, and what is between them as quotations."""
        parts = []
        place = 0
        for heading in _HEADING.finditer(text):
            parts += [self._quotation(text[place : heading.start()]), self.plain(heading[0])]
            place = heading.end()
        parts.append(self._quotation(text[place:]))
        return [part for part in parts if part.strip()]

    def _quotation(self, text: str) -> str:
        text = _LABEL.sub("", text).strip()
        if not text:
            return ""
        return _quoted(f"{_FOR_THE_PUBLISHED_RUN}\n\n{self.plain(self._marked(text))}")

    def _directive(self, fence: re.Match) -> str:
        """Return a directive with marks; exercises and the questions of a chapter have none."""
        kind = fence[2]
        body = fence[4]
        if kind not in ("admonition", "solution", "note", "tip", "warning"):
            return fence[0]

        options = re.match(r"(?::\w+:.*\n)*\s*", body)[0]
        rest = body.removeprefix(options)
        if "chapter-head" in options:
            finding = re.compile(r"^\*\*Finding\.\*\*.*$", re.M)
            rest = finding.sub(lambda found: self._finding(found[0]), rest)
        else:
            rest = f"{_FOR_THE_PUBLISHED_RUN}\n\n{self._marked(rest)}"

        start, end = (place - fence.start() for place in fence.span(4))
        return fence[0][:start] + options + rest + fence[0][end:]

    def _finding(self, text: str) -> str:
        text = text.replace("**Finding.**", "**Finding of the published run.**", 1)
        return self._marked(text)

    def _marked(self, text: str) -> str:
        """Return text without bold findings, and with a mark behind each sentence with a rule."""
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

        # a fragment may run over the end of a sentence; the sentence in which it ends is marked
        whole = " ".join(normal)

        for fragment, verdict in self.fragments.items():
            start = whole.find(fragment)
            if start >= 0:
                before = whole[: start + len(fragment) - 1]
                ends = [len(" ".join(normal[: n + 1])) for n in range(len(normal))]
                verdicts[next(n for n, end in enumerate(ends) if len(before) < end)].append(verdict)

        for sentence, own in zip(sentences, verdicts, strict=True):
            if any(not self._here(role[1]) for role in ROLE.finditer(sentence[0])):
                own.append(SENTENCE_VERDICTS[1])

        marked = ""
        place = 0
        for sentence, own in zip(sentences, verdicts, strict=True):
            marked += block[place : sentence.end()]
            place = sentence.end()
            if own:
                worst = max(own, key=SENTENCE_VERDICTS.index)
                marked += f" [**{worst}**]"

        return marked + block[place:]


def _normal(text: str) -> str:
    """Return a sentence without markup, as expectations quote it."""
    text = ROLE.sub("…", text)
    text = _ROLE.sub(lambda role: role[2].partition("<")[0].strip() or role[2], text)
    return " ".join(text.replace("*", "").casefold().split())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _code(value: object) -> str:
    """Return a value as code, so that no part of a name is read as Markdown."""
    return f"`{str(value).replace('`', '')}`"


def _title(target: str) -> str:
    """The heading of a label or of a page, or the label's words."""
    name = target.split("#")[-1].rpartition("/")[2].partition(".")[0]
    return _titles().get(name, name.replace("-", " "))


@cache
def _titles() -> dict[str, str]:
    """Headings by their labels and by the names of their pages."""
    found = {}
    for path in [*notebooks_dir().glob("*.ipynb"), *book_dir().rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])

        found |= dict(re.findall(r"^\(([\w-]+)\)=\n+#+ (.+)", text, re.M))
        first = re.search(r"^# (.+)", text, re.M)
        if first:
            found[path.stem] = first[1]

    return found


@cache
def _references() -> dict[str, tuple[str, str]]:
    """Authors and year of each reference by its key."""
    path = book_dir() / "references.bib"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = {}
    for key, entry in re.findall(r"^@\w+\{([\w-]+),\n(.*?)^\}", text, re.M | re.S):
        fields = dict(re.findall(r"^\s*(author|year)\s*=\s*\{(.*?)\},?$", entry, re.M))
        names = [
            re.split(", | and ", name)[0].strip("{}")
            for name in fields.get("author", key).split(" and ")
        ]
        said = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        found[key] = said, fields.get("year", "n.d.")

    return found
