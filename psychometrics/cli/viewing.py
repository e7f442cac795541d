"""The command that shows the store's runs in the browser."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from .options import Store, app


@app.command("view", rich_help_panel="Profiles and studies")
def _view(
    folder: Annotated[
        Path, Argument(metavar="[FOLDER]", help="Folder of pages; by default this one.")
    ] = Path(),
    store: Store = None,
    port: Annotated[
        int, Option(max=65535, min=0, help="Port of this machine; by default a free one.")
    ] = 0,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Open the browser, or print the address only.")
    ] = True,
) -> None:
    """Show the runs in the store, with their answers, verdicts and pages, in the browser.

    The pages that `profile` and `compare` wrote to FOLDER give the verdicts. Nothing is changed,
    and only this machine can open the printed address. Ctrl-C ends the command.
    """
    # Imported here, as the store's packages take a second to import.
    from ..reports.viewer import Viewer

    with Viewer(store, folder, port) as viewer:
        typer.echo(f"{viewer.url} (Ctrl-C to stop)")
        if browser:
            webbrowser.open(viewer.url)
        with contextlib.suppress(KeyboardInterrupt):
            viewer.serve_forever()
