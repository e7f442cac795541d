"""The directive ``explorer``: controls, numbers and a picture that move in the page.

```` ```{explorer} two-way ```` puts one there, with its data beside it, so that it works from a
file and without a server; its script is loaded on that page alone. Where scripts are off there is a
picture made by Python.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from docutils import nodes
from explorer_data import (
    ALTERNATIVES,
    HINTS,
    TITLES,
    explorer_data,
    explorer_picture,
)
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from psychometrics.exceptions import ParameterError

FOLDER = "_static/explorers"


class Explorer(SphinxDirective):
    """A box in which a reader moves things."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        app = self.env.app
        if app.builder.format != "html":
            return []
        try:
            data = json.dumps(explorer_data(name), allow_nan=True, separators=(",", ":"))
        except ParameterError as error:
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]
        file = Path(app.outdir, FOLDER, f"{name}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(explorer_picture(name))
        here = app.builder.get_target_uri(self.env.docname)
        picture = relative_uri(here, f"{FOLDER}/{name}.png")
        alternative = escape(ALTERNATIVES[name])
        data = data.replace("NaN", "null").replace("</", "<\\/")
        html = (
            f'<div class="explorer" id="explorer-{name}" data-explorer="{name}" role="group" '
            f'aria-labelledby="explorer-{name}-title">\n'
            f'<p class="explorer-title" id="explorer-{name}-title">Try it: {TITLES[name]}</p>\n'
            f'<p class="explorer-hint">{HINTS[name]}</p>\n'
            '<div class="explorer-body"></div>\n'
            f'<noscript><p>With scripts this can be moved.</p><img src="{picture}" '
            f'alt="{alternative}"></noscript>\n'
            f'<script type="application/json" class="explorer-data">{data}</script>\n'
            "</div>\n"
        )
        return [nodes.raw("", html, format="html", explorer=name)]


def _scripts_where_used(app, pagename, templatename, context, doctree):
    """Keep the explorers' scripts from pages that have none of them."""
    raw = doctree.findall(nodes.raw) if doctree is not None else ()
    used = {node["explorer"] for node in raw if "explorer" in node}
    wanted = used | {"explorers"} if used else used
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if not _stem(script) or _stem(script) in wanted
    ]


def _stem(script) -> str:
    """Name of an explorer's script, which may have parts (``ask.score.js``); empty for others."""
    name = str(getattr(script, "filename", None) or script).partition("?")[0]
    return Path(name).name.partition(".")[0] if "explorers/" in name else ""


def setup(app):
    app.add_directive("explorer", Explorer)
    app.connect("html-page-context", _scripts_where_used, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
