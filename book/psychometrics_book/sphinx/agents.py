"""Write ``llms.txt`` beside the pages: what programs that read text should know of the book."""

from __future__ import annotations

import inspect
from pathlib import Path

import typer.main
import yaml

import psychometrics as pm
from psychometrics.cli import app as command
from psychometrics.paths import data_dir

from ..templating import fill_template


def setup(app):
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}


def _write(app, exception):
    if exception or app.builder.name != "html":
        return

    titles = {name: title.astext() for name, title in app.env.titles.items()}
    base = app.config.html_baseurl or ""
    (Path(app.outdir) / "llms.txt").write_text(overview(titles, base), encoding="utf-8")


def overview(titles: dict[str, str], base: str = "") -> str:
    """Return the text: what this is, its commands, its functions, and its pages.

    Examples
    --------
    >>> text = overview({"index": "Psychometrics of Language Models"})
    >>> "- `psychometrics scores`" in text, "- `pm.two_way(" in text
    (True, True)
    """
    metadata = yaml.safe_load((data_dir() / "metadata.yml").read_text(encoding="utf-8"))
    routines = [(name, getattr(pm, name)) for name in sorted(pm.__all__)]
    functions = [
        (name, inspect.signature(routine).parameters, _first_line(routine.__doc__))
        for name, routine in routines
        if inspect.isroutine(routine)
    ]
    return fill_template(
        "llms.txt.j2",
        about=metadata,
        commands=_commands(),
        functions=functions,
        titles=sorted(titles.items()),
        base=base,
    )


def _commands() -> list[tuple[str, str]]:
    """Return the name and the first sentence of each command."""
    group = typer.main.get_command(command)
    listed = []
    for name, entry in sorted(group.commands.items()):
        inner = getattr(entry, "commands", {})
        listed += [(f"{name} {verb}", _first_line(sub.help)) for verb, sub in inner.items()]
        if not inner:
            listed.append((name, _first_line(entry.help)))

    return listed


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
