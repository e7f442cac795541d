"""Addresses with a picture of their own, for a section that people share.

A messenger or a forum that is given such an address shows its title, its sentence and its picture;
a browser goes on to the section. The pictures are figures of chapters, or files of the book.
"""

from __future__ import annotations

import posixpath
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from ..templating import fill_template

LOGGER = logging.getLogger(__name__)
FOLDER = "_static/share"


class share_card(nodes.General, nodes.TextElement):
    """The address of a section, with the title, sentence and picture that it is shown with."""


class ShareCard(SphinxDirective):
    """A link to a page that has a card of its own and leads to the section around it."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = dict.fromkeys(
        ("title", "picture", "alt"), directives.unchanged_required
    )

    def run(self):
        words = " ".join(self.content)
        card = share_card(
            "", section=self.arguments[0], words=words, docname=self.env.docname, **self.options
        )
        return [card]


def _open_card(self, node):
    here = self.builder.get_target_uri(node["docname"])
    address = relative_uri(here, f"{FOLDER}/{node['section']}.html")
    self.body.append(f'<p><a class="share-card" href="{address}">Share {escape(node["title"])}')


def _close_card(self, node):
    self.body.append("</a></p>\n")


def _write_pages(app, exception):
    """Write the page of each card, which shows the card and leads to its section."""
    if exception or app.builder.name != "html":
        return

    folder = Path(app.outdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    for docname in sorted(app.env.found_docs):
        source = Path(app.env.doc2path(docname))
        if source.suffix != ".md" or "{share-card}" not in source.read_text(encoding="utf-8"):
            continue

        for card in app.env.get_doctree(docname).findall(share_card):
            text = card_page(card, _find_picture(app, card), app.config.html_baseurl or "../../")
            (folder / f"{card['section']}.html").write_text(text, encoding="utf-8")


def _find_picture(app, card) -> str:
    """Return the address of a card's picture, a file of the book or a figure of a chapter."""
    page, mark, name = card["picture"].partition("#")
    if not mark:
        return page

    for figure in app.env.get_doctree(page).findall(nodes.figure):
        if name in figure["ids"]:
            image = next(iter(figure.findall(nodes.image)))
            return f"{app.builder.imagedir}/{posixpath.basename(image['uri'])}"

    LOGGER.warning("%s: the card has no figure %s; name one of %s.", card["section"], name, page)
    return "_static/share.png"


def card_page(card, picture: str, base: str) -> str:
    """Return a page whose head is a card, and which leads to the card's section.

    Parameters
    ----------
    card : mapping
        ``title``, ``words``, ``alt``, ``docname`` and ``section``.
    picture : str
        Address of the picture in the book.
    base : str
        Address of the book, with a slash at its end.
    """
    target = f"../../{card['docname']}.html#{card['section']}"
    title = card["title"][0].upper() + card["title"][1:]
    return fill_template(
        "card.html.j2", card=card, title=title, picture=base + picture, target=target
    )


def setup(app):
    app.add_node(share_card, html=(_open_card, _close_card))
    app.add_directive("share-card", ShareCard)
    app.connect("build-finished", _write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
