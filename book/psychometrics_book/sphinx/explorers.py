"""The directive ``explorer``: controls, numbers and a picture that change in the page.

```` ```{explorer} two-way ```` inserts one with its data, so that it works from a file and
without a server; its script is loaded only on that page. If scripts are off, a picture made by
Python appears instead.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from psychometrics.exceptions import ParameterError

from ..templating import fill_template
from .explorer_data import EXPLORERS, explorer_data, explorer_picture

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
    >>> data_text("own", {"share": np.float32("nan"), "packed": "NaN0", "text": "</script>"})
    '{"packed":"NaN0","share":null,"text":"\\\\u003c/script>"}'
    """
    values = _without_missing(data, f"explorer {name}")
    text = json.dumps(values, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _without_missing(value, place: str):
    """Return a value as JSON knows it, with None wherever a value is missing."""
    if isinstance(value, dict):
        return {key: _without_missing(entry, f"{place}, {key}") for key, entry in value.items()}

    if isinstance(value, np.ndarray):
        value = value.tolist()

    if isinstance(value, (list, tuple)):
        return [_without_missing(entry, f"{place}, {i}") for i, entry in enumerate(value)]

    if pd.isna(value):
        return None

    if isinstance(value, np.generic):
        value = value.item()

    if isinstance(value, float) and math.isinf(value):
        raise ParameterError(
            f"{place}: the number is infinite, which JSON cannot express; give a finite one or NaN."
        )

    return value


class ExplorerBox(SphinxDirective):
    """A box with controls that a reader can move."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        app = self.env.app
        if app.builder.format != "html":
            return []

        try:
            data = data_text(name, explorer_data(name))
        except ParameterError as error:
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]

        file = Path(app.outdir, FOLDER, f"{name}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(explorer_picture(name))
        here = app.builder.get_target_uri(self.env.docname)
        picture = relative_uri(here, f"{FOLDER}/{name}.png")
        explorer = EXPLORERS[name]
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
