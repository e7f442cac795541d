"""Outputs of chapters as a page needs them.

What ``book.table`` and ``book.figure`` show gets its number, its caption and a link to its
CSV; every table can be scrolled where it is wider than the page; every figure links to its full
size. The role ``num`` prints a cell of such a table and links to it. Code is folded, except for the
few cells that are a chapter's method.
"""

import base64
import colorsys
import hashlib
import io
import json
import os
import posixpath
import re
from html import escape as html_escape
from pathlib import Path
from urllib.parse import quote

from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from psychometrics.exceptions import DataError

from ..record import printed
from .compact import compact

LOGGER = logging.getLogger(__name__)
INCH = 96  # pixels of a page
COLOURS = 256
SHADED = re.compile(r"(#T_[^{}]+)\{([^{}]*background-color:\s*(#[0-9a-fA-F]{6})[^{}]*)\}")


LONG_LITERAL = re.compile(r'f?"(?:[^"\\\n]|\\.){40,}"')  # as captions are; on one line
ELLIPSIS = '"…"'


class captioned_table(nodes.General, nodes.Element):
    """A table of an output with number, caption and a link to its data."""


class table_region(nodes.General, nodes.Element):
    """Where a table can be scrolled."""


class figure_image(nodes.image):
    """An image of known size, which Sphinx links to its full size."""


class table_caption(nodes.General, nodes.Element):
    """A caption on its way to its table."""


class TableCaption(SphinxDirective):
    """Reads a caption where all of Markdown can be used."""

    required_arguments = 1
    has_content = True

    def run(self):
        node = table_caption(name=self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def setup(app):
    app.connect("source-read", _prepare_notebook)
    app.add_directive("table-caption", TableCaption)
    app.add_role("num", Number())
    app.add_enumerable_node(captioned_table, "table", html=(_open_table, _close_table))
    app.add_node(table_region, html=(_open_region, _close_region))
    app.add_node(figure_image, html=(_image, None))
    app.add_transform(Outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}


class Number(SphinxRole):
    """A cell of a table that a chapter shows, such as ``tab-power[silhouette, auc]:.2f``."""

    def run(self):
        page = Path(self.env.doc2path(self.env.docname))
        runs = Path(self.env.srcdir) / "chapters"
        chapter = page.stem if page.parent == runs else ""

        try:
            text = printed(self.text, runs, chapter)
        except (DataError, ValueError) as error:
            message = f"{{num}}`{self.text}`: {error}"
            return [], [self.inliner.reporter.warning(message, line=self.lineno)]

        target = self.text.partition("[")[0].rpartition("/")[2].strip()
        node = addnodes.pending_xref(
            "", nodes.inline("", text, classes=["num"]), reftype="ref", refdomain="std",
            refexplicit=True, reftarget=target, refdoc=self.env.docname, refwarn=True,
        )  # fmt: skip

        return [node], []


class Outputs(SphinxTransform):
    """Finds each output of a notebook's cells in the page, and completes it."""

    default_priority = 500

    def apply(self, **kwargs):
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".ipynb":
            return

        cells = _with_captions(json.loads(path.read_text(encoding="utf-8")))["cells"]
        self.captions = {}
        for waiting in list(self.document.findall(table_caption)):
            paragraph = next(iter(waiting.findall(nodes.paragraph)))
            self.captions[waiting["name"]] = nodes.caption("", "", *paragraph.children)
            waiting.parent.remove(waiting)

        elements = [n for n in self.document.findall(nodes.container) if n.get("nb_element")]
        places = {n["cell_index"]: n for n in elements if n["nb_element"] == "cell_code"}
        for index, container in places.items():
            cell = cells[index]
            outputs = [o for o in cell.get("outputs", []) if "data" in o]
            self._tables(container, cell, outputs)
            self._figures(container, cell, outputs)

    def _tables(self, container, cell, outputs):
        record = cell["metadata"].get("table", {})
        waiting = [self.captions.pop(record["name"])] if record else []
        for raw in [n for n in container.findall(nodes.raw) if n.get("format") == "html"]:
            if "<table" not in raw.astext():
                continue
            bundle = raw.parent.parent
            output = next(
                (o for o in outputs if "".join(o["data"].get("text/html", "")) == raw.astext()), {}
            )
            replaced = nodes.raw("", accessible(raw.astext()), format="html")
            replaced["classes"] = ["output", "text_html"]

            if waiting:
                node = captioned_table(classes=["cell-table"])
                name = nodes.fully_normalize_name(record["name"])
                node["names"].append(name)
                self.document.note_explicit_target(node, node)
                caption = waiting.pop()
                label = _first_sentence(caption.astext())
                node += caption
                node += table_region("", replaced, label=label)
                node += self._data_link(output, name)
            else:
                node = table_region("", replaced, label="Table")

            if isinstance(bundle, nodes.container) and bundle.get("nb_element") == "mime_bundle":
                bundle.replace_self(node)
            else:
                raw.replace_self(node)

        if waiting and outputs:  # without any, what it shows is not at hand
            message = f"the cell has no table for the caption of {record['name']}"
            LOGGER.warning("%s", message, location=container, type="book", subtype="outputs")

    def _figures(self, container, cell, outputs):
        by_hash = {
            hashlib.sha256(base64.b64decode("".join(o["data"]["image/png"]))).hexdigest(): o
            for o in outputs
            if "image/png" in o["data"]
        }

        for image in list(container.findall(nodes.image)):
            output = by_hash.get(Path(image["uri"]).stem)
            if output is None:
                continue

            figure = _ancestor(image, nodes.figure)
            content = base64.b64decode("".join(output["data"]["image/png"]))
            content, width, height = small(content)
            file = self._write(f"{hashlib.sha256(content).hexdigest()}.png", content)
            node = figure_image(**image.attributes)
            node["uri"] = file
            node["width"], node["height"] = str(width), str(height)
            image.replace_self(node)

            if figure is None:
                node["alt"] = node.get("alt") or "Figure without a caption"
                continue

            caption = next(iter(figure.findall(nodes.caption)), None)
            if not node.get("alt"):
                node["alt"] = _first_sentence(caption.astext() if caption else "Figure")

            name = (figure["names"] or ["figure"])[0]
            links = self._data_link(output, name)
            if links:
                figure += nodes.legend("", *links)

    def _data_link(self, output, name):
        table = Path(self.env.doc2path(self.env.docname)).with_suffix("") / f"{name}.csv"
        if not table.is_file():
            return []

        text = table.read_text(encoding="utf-8")
        target = self._write(f"data/{self.env.docname}/{name}.csv", text.encode("utf-8"))
        label = "Data (CSV)"
        link = addnodes.download_reference(
            "", "", nodes.inline("", label, classes=["xref", "download"]),
            reftarget=target, refdoc=self.env.docname, classes=["data-link"],
        )  # fmt: skip

        return [nodes.paragraph("", "", link, classes=["data-line"])]

    def _write(self, name, content):
        """Keep a file beside what else was taken out of the notebooks."""
        folder = Path(self.env.mystnb_config.output_folder)
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)
        return "/" + os.path.relpath(file.resolve(), self.env.srcdir)


def _prepare_notebook(app, docname, source):
    if app.env.doc2path(docname).endswith(".ipynb"):
        notebook = json.loads(source[0])
        fold_code(notebook["cells"])
        source[0] = json.dumps(_with_captions(notebook))


def fold_code(cells):
    """Fold the code of all cells but those whose tag says that they are the chapter's method."""
    for cell in cells:
        tags = cell["metadata"].setdefault("tags", [])
        if cell["cell_type"] == "code" and not {"method", "hide-input"} & set(tags):
            tags.append("hide-input")


def _with_captions(notebook):
    """The notebook with the captions of what it shows where Sphinx and MyST look for them.

    Before each cell of a table comes a cell that holds its caption as Markdown; a cell that shows
    several things is followed by cells without code, one for each.
    """
    cells = []
    for entry in notebook["cells"]:
        for cell in _one_by_one(entry):
            for record in filter(None, _records(cell.get("outputs", []))):
                cell["source"] = without_caption(cell["source"], record)
                if record["name"].startswith("tab-"):
                    cell["metadata"]["table"] = record
                    text = f"````{{table-caption}} {record['name']}\n{record['caption']}\n````"
                    cells.append({"cell_type": "markdown", "id": f"caption-{len(cells)}",
                                  "metadata": {}, "source": text})  # fmt: skip
                else:
                    cell["metadata"]["mystnb"] = {
                        "figure": {"name": record["name"], "caption": record["caption"]},
                        "image": {"alt": record["alt"]},
                    }

            cells.append(cell)

    return notebook | {"cells": cells}


def without_caption(source, about):
    """The code with the words of a caption left out, because the page prints them beside it."""
    texts = about["caption"] + about.get("alt", "")

    def shorter(literal):
        begin = literal[0].lstrip("f")[1:-1].partition("{")[0][:30]
        return ELLIPSIS if begin and begin.replace('\\"', '"') in texts else literal[0]

    source = LONG_LITERAL.sub(shorter, "".join(source))
    return re.sub(rf"{ELLIPSIS}(\s+{ELLIPSIS})+", ELLIPSIS, source)


def _one_by_one(cell):
    """The cell up to the first thing that it shows, and a cell for each of the others."""
    parts = [[]]
    for output in cell.get("outputs", []):
        if "record" in output.get("metadata", {}) and any(_records(parts[-1])):
            parts.append([])

        parts[-1].append(output)

    yield cell | {"outputs": parts[0]} if "outputs" in cell else cell
    for place, outputs in enumerate(parts[1:], 1):
        metadata = {"tags": ["remove-input"]}
        name = f"{cell.get('id', 'cell')}-{place}"
        yield cell | {"id": name, "source": "# shown by the cell above",
                      "metadata": metadata, "outputs": outputs}  # fmt: skip


def _records(outputs):
    return (output.get("metadata", {}).get("record") for output in outputs)


def accessible(html):
    """A table whose header cells say what they head, in the colours of the page."""
    soup = BeautifulSoup(html, "html.parser")
    for style in soup.find_all("style"):
        rules = "".join(_in_the_dark(*match.groups()) for match in SHADED.finditer(style.text))
        style.string = style.text + rules
        if not style.text.strip() or "tbody tr th:only-of-type" in style.text:
            style.decompose()

    for table in soup.find_all("table"):
        compact(soup, table)
        del table["border"]
        classes = [name for name in table.get("class", []) if name in ("many", "turns", "long")]
        table["class"] = ["veiled" if table.find_parent("details") else "dataframe", *classes]
        for cell in table.find_all("th"):
            if not cell.get_text(strip=True):
                cell.name = "td"
                continue

            if cell.find_parent("thead"):
                cell["scope"] = "colgroup" if int(cell.get("colspan", 1)) > 1 else "col"
            else:
                cell["scope"] = "rowgroup" if int(cell.get("rowspan", 1)) > 1 else "row"

        if table.caption and not table.caption.get_text(strip=True):
            table.caption.decompose()

        for row in table.select("tr[style]"):
            del row["style"]

    return str(soup)


def _in_the_dark(selector, rule, colour):
    """The same shade from the dark end, with letters that can be read on it."""
    hue, light, saturation = colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255
                                                   for i in (1, 3, 5)))  # fmt: skip
    parts = colorsys.hls_to_rgb(hue, 0.1 + 0.85 * (1 - light), saturation)
    shade = "#" + "".join(f"{round(share * 255):02x}" for share in parts)
    letters = "#000000" if _luminance(parts) > 0.18 else "#ffffff"
    selectors = ", ".join(f'html[data-theme="dark"] {name.strip()}' for name in selector.split(","))
    return f"\n{selectors} {{ background-color: {shade}; color: {letters} }}"


def _luminance(colour):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def small(content):
    """A PNG with a palette, and its width and height on the page."""
    image = Image.open(io.BytesIO(content))
    dots = image.info.get("dpi", (INCH, INCH))[0] or INCH
    size = [round(pixels / dots * INCH) for pixels in image.size]
    packed = io.BytesIO()
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    # of the methods, the one that keeps every colour of a gradient within a few steps
    method = Image.Quantize.MAXCOVERAGE
    flat.quantize(COLOURS, method, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)

    return min(packed.getvalue(), content, key=len), *size


def _open_table(self, node):
    self.body.append(self.starttag(node, "figure", "") + "<figcaption>")


def _close_table(self, node):
    self.body.append("</figure>\n")


def _open_region(self, node):
    if isinstance(node.parent, captioned_table):
        self.body.append("</figcaption>")
    label = html_escape(node["label"], quote=True)
    self.body.append(f'<div class="table-region" role="region" tabindex="0" aria-label="{label}">')


def _close_region(self, node):
    self.body.append("</div>\n")


def _image(self, node):
    name = self.builder.images.get(node["uri"])
    address = posixpath.join(self.builder.imgpath, quote(name)) if name else node["uri"]
    alt = html_escape(node.get("alt", ""), quote=True)
    self.body.append(
        f'<img class="drawn dark-light" src="{address}" alt="{alt}" width="{node["width"]}" '
        f'height="{node["height"]}" loading="lazy">'
    )


def _first_sentence(text):
    return re.split(r"(?<=[.;:])\s", text)[0]


def _ancestor(node, kind):
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node
