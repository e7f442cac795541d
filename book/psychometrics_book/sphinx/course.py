"""The downloads of the page *Teaching*, and the list of its slides."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from psychometrics_book.course.downloads import slide_list, write_downloads


class SlideDecks(SphinxDirective):
    """The links to the slides of all chapters."""

    def run(self):
        links = slide_list(Path(self.env.srcdir) / "chapters")
        return [nodes.raw("", links, format="html")]


def _write(app, exception):
    if exception or app.builder.name != "html" or "teaching" not in app.env.found_docs:
        return

    write_downloads(Path(app.srcdir) / "chapters", Path(app.outdir) / "_static" / "course")


def setup(app):
    app.add_directive("slide-decks", SlideDecks)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
