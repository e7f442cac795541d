"""Fill the templates of pages and downloads."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
"""The folder of the templates, and of other texts that pages show."""


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(("html.j2", "xml.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def fill_template(name: str, /, **values: object) -> str:
    """Return a file of ``templates`` with values in the places of their names.

    Parameters
    ----------
    name : str
        The name of the file. In HTML and XML, values are escaped.
    **values
        The values.

    Examples
    --------
    >>> fill_template("check.html.j2", name="ex-<1>", kind="text", data={}).count("ex-&lt;1&gt;")
    6
    """
    return _environment().get_template(name).render(values)
