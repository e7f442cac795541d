"""Fill the templates of the pages and cards that recipes write."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def fill_template(name: str, **values: object) -> str:
    """Return a file of ``templates`` with values in the places of their names."""
    return _ENVIRONMENT.get_template(name).render(values)
