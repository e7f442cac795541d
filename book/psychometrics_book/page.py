"""Write an executed notebook, with its numbers filled in, as one HTML page that works offline."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from psychometrics.checks import check_choice, check_kinds
from psychometrics.data import write_text
from psychometrics.exceptions import ParameterError, check_file

from .prose import FOR_THE_PUBLISHED_RUN, _prose_of
from .templating import TEMPLATES

_OPENING = (
    r"^# .+|^> \*\*This is not the published run\..+|^(?:> )?\*\*(?:Question|Finding)\.\*\*.+"
)
_TAGS = re.findall(
    r"\w+",
    "a abbr b blockquote br caption code dd del details div dl dt em figcaption figure h1 h2 h3 h4 "
    "h5 h6 hr i img li ol p pre s small span strong sub summary sup table tbody td tfoot th thead "
    "tr u ul",
)
_PROTOCOLS = {"http", "https", "mailto", "data"}
_ATTRIBUTES = {"class", "id", "title", "colspan", "rowspan", "href", "src", "alt"}
# More than any chapter has. The Markdown library pairs each opening bracket with all following
# ones, which is slow.
_MOST_BRACKETS = 2000
_TURN_SLIDES = (TEMPLATES / "slides.js").read_text(encoding="utf-8")


def _policy(script: str = "") -> str:
    """Return the HTML element that lets a page load only its own content and one script.

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
        The copy that papermill wrote; the run's tables are in the folder of the same name.
    output : str or Path, optional
        The HTML file, by default in the copy's folder.
    kind : {"page", "report", "slides"}
        A page with its code in open cells, a report with all code folded, or slides with one slide
        for each table and figure, under its headline, with the text as speaker's notes. No page
        loads anything from elsewhere, even if the notebook comes from someone else: its widgets,
        scripts and remote pictures are left out.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        The executed copy does not exist, or the page cannot be written.

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
    output = check_file(output or executed.with_suffix(".html"), (".html",))

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
    comments = re.compile(r"/\*.*?\*/", re.S)  # they name the hosts of colours
    text = re.sub(r"<style.*?</style>", lambda style: comments.sub("", style[0]), text, flags=re.S)
    text = re.sub(r"HELD[0-9a-f]{24}", lambda match: held.get(match[0], match[0]), text)
    write_text(output, _without_surrogates(text))
    return output


def _exported(notebook, executed: Path, kind: str) -> str:
    """Return an executed notebook as HTML, without harmful tags and addresses."""
    import nh3
    from jinja2 import FileSystemLoader
    from nbconvert import HTMLExporter, SlidesExporter
    from nbconvert.filters.markdown_mistune import InvalidNotebook

    loaders = [FileSystemLoader(TEMPLATES)]
    script = ""
    if kind == "slides":
        script = _TURN_SLIDES
        exporter = SlidesExporter(
            template_file="slides.html.j2", exclude_input=True, extra_loaders=loaders
        )
    else:
        exporter = HTMLExporter(template_file="page.html.j2", extra_loaders=loaders)

    exporter.sanitize_html = True  # replies, names and foreign notebooks may contain anything
    cleaner = nh3.Cleaner(
        tags=set(_TAGS),
        clean_content_tags={"style", "script"},
        attributes={"*": _ATTRIBUTES},
        attribute_filter=_harmless_value,
        url_schemes=_PROTOCOLS,
        link_rel=None,
    )
    exporter.register_filter("clean_html", lambda html: cleaner.clean(_without_surrogates(html)))

    resources = {"policy": _policy(script), "script": script}
    try:
        text, _ = exporter.from_notebook_node(notebook, resources)
    except InvalidNotebook as error:
        raise ParameterError(f"{executed} has no page ({error}): run the chapter again.") from None
    return text


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be written in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _harmless_value(_tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute of foreign HTML, or None if it loads from elsewhere."""
    address = value.strip()
    if name == "href" and address.lower().startswith("data:"):
        return None

    if name == "src" and not address.startswith("data:image/"):
        try:
            parts = urlsplit(address)
        except ValueError:
            return None

        if parts.scheme or parts.netloc or address.startswith(("/", "\\")):
            return None

    return value


def _plain(notebook, executed: Path, kind: str):
    """Return a copy of a notebook in plain Markdown, and the HTML behind its placeholders."""
    from nbformat.v4 import new_markdown_cell

    cells = []
    prose = _prose_of(executed)

    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            attachments = {"attachments": cell.attachments} if "attachments" in cell else {}
            text = prose.cell(cell.source)
            if text.count("[") >= _MOST_BRACKETS:
                text = text.replace("[", "&#91;")

            cells.append(new_markdown_cell(text, **attachments))
        elif cell.cell_type == "code":
            cell.metadata["folded"] = kind == "report" or "hide-input" in tags
            cell.outputs = [new for output in cell.outputs for new in prose.captioned(output)]
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


def _slides(cells: list) -> list:
    """Return a slide for each output, under its headline, with the following text as notes."""
    from nbformat.v4 import new_markdown_cell

    attachments = {}
    for number, cell in enumerate(cells):  # two cells may call their pictures image.png
        for name, picture in cell.get("attachments", {}).items():
            attachments[f"{number}-{name}"] = picture
            cell.source = cell.source.replace(f"attachment:{name}", f"attachment:{number}-{name}")

    new = partial(new_markdown_cell, attachments=attachments)
    text = "\n\n".join(c.source for c in cells if "outputs" not in c).partition("# Exercises")[0]
    opening = re.findall(_OPENING, text, re.M)
    made = [("slide", new("\n\n".join(opening)))]
    notes = ""

    for cell in cells:
        if cell.cell_type == "markdown":
            notes += "\n\n" + cell.source
        elif cell.outputs and not _is_check(cell) and 'class="plan"' not in str(cell.outputs):
            made += [("notes", new(notes)), ("slide", new(_headline(cell, text))), ("-", cell)]
            notes = ""

    made.append(("notes", new(notes.partition("# Exercises")[0])))
    for kind, cell in made:
        cell.metadata["slideshow"] = {"slide_type": kind}

    return [cell for _, cell in made]


def _is_check(cell) -> bool:
    """Return whether a cell shows only a value, such as ``True``, which makes no slide."""
    return all({*output.get("data", {})} == {"text/plain"} for output in cell.outputs)


def _headline(cell, text: str) -> str:
    """Return the first words in bold about a table or figure, or else its caption."""
    parts = "\n".join(str(output.get("data", {}).get("text/markdown")) for output in cell.outputs)
    captions = parts.replace(f"{FOR_THE_PUBLISHED_RUN} ", "")
    caption = re.search(r"^\*\*(\w+ \d+)\.\*\* (.+?)[.:](?=\s|$)", captions, re.M)
    number, sentence = caption.groups() if caption else ("no number", "")
    lead = re.search(rf"\n\n\*\*([^*]{{20,}})\*\*(?:(?!\n\n).)*{number}\b", text, re.S)
    headline = " ".join((lead[1] if lead else sentence).split())
    return f"## {headline}" if captions == parts else f"## {headline} (in the published run)"
