"""The directive ``explorer``: controls, numbers and a picture that change in the page.

```` ```{explorer} two-way ```` inserts one with its data, so that it works from a file and
without a server; its script is loaded only on that page. If scripts are off, a picture made by
Python appears instead.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pandas as pd
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from psychometrics.checks import check_choice
from psychometrics.exceptions import ParameterError

from ..templating import fill_template
from .explorer_data import EXPLORERS

FOLDER = "_static/explorers"


def data_text(name: str, data: dict) -> str:
    """Write the data of an explorer as JSON that may be put inside a ``script`` element.

    The same data give the same text, whatever the order of the keys.

    Parameters
    ----------
    name : str
        The explorer's name, for the message of an error.
    data : dict
        Values that JSON knows, or arrays and numbers of NumPy. A missing value is written as
        ``null``; a string is never changed, whatever it contains.

    Returns
    -------
    str
        JSON without the character ``<``, so that no string can close the element.

    Raises
    ------
    ParameterError
        A number is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> data_text("own", {"share": np.float32("nan"), "packed": "NaN0", "text": "</script>"})
    '{"packed":"NaN0","share":null,"text":"\\\\u003c/script>"}'
    """
    text = json.dumps(data, default=_plain)
    values = json.loads(text, parse_constant=partial(_constant, name))
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _plain(value):
    """Return an array or a number of NumPy as JSON knows it."""
    return None if value is pd.NA else value.tolist()


def _constant(explorer: str, constant: str) -> None:
    """Return None for NaN, a missing number."""
    if constant != "NaN":
        raise ParameterError(
            f"explorer {explorer}: a number is infinite, which JSON cannot express; give a finite "
            "one or NaN."
        )


class ExplorerBox(SphinxDirective):
    """A box with controls that a reader can move."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        app = self.env.app
        if app.builder.format != "html":
            return []

        try:
            check_choice(EXPLORERS, explorer=name)
            explorer = EXPLORERS[name]
            data = data_text(name, explorer.data())
        except ParameterError as error:
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]

        file = Path(app.outdir, FOLDER, f"{name}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(explorer.picture())
        here = app.builder.get_target_uri(self.env.docname)
        picture = relative_uri(here, f"{FOLDER}/{name}.png")
        html = fill_template(
            "box.html.j2", name=name, title=f"Try it: {explorer.title}", hint=explorer.hint,
            data=data, picture=picture, alternative=explorer.alternative,
        )  # fmt: skip
        return [nodes.raw("", html, format="html", explorer=name)]


def _scripts_where_used(app, pagename, templatename, context, doctree):
    """Keep the explorers' scripts from pages that have none of them."""
    raw = doctree.findall(nodes.raw) if doctree is not None else ()
    used = {node["explorer"] for node in raw if "explorer" in node}
    stems = used | {"explorers"} if used else used
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if not _stem(script) or _stem(script) in stems
    ]


def _stem(script) -> str:
    """Return the name of an explorer's script without its parts (``ask.score.js``), or ""."""
    name = str(getattr(script, "filename", None) or script).partition("?")[0]
    return Path(name).name.partition(".")[0] if "explorers/" in name else ""


def setup(app):
    app.add_directive("explorer", ExplorerBox)
    app.connect("html-page-context", _scripts_where_used, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
