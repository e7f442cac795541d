"""The command that serves null respondents to other tools."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from .options import app


@app.command("serve", rich_help_panel="Models")
def _serve(
    questionnaires: Annotated[
        list[Path] | None,
        Argument(help="Files of your own questionnaires, whose items are then recognised, too."),
    ] = None,
    port: Annotated[int, Option(help="The port; 0 takes any free one.")] = 8765,
    host: Annotated[str, Option(help="The address, by default of this machine alone.")] = (
        "127.0.0.1"
    ),
    public: Annotated[
        bool, Option("--public", help="Let other machines ask; needs PSYCHOMETRICS_SERVE_KEY.")
    ] = False,
    repeats: Annotated[
        bool,
        Option("--repeats", help="Draw anew if a request is repeated, as a model that samples."),
    ] = False,
) -> None:
    """Serve null respondents as chat models, for any tool that asks an OpenAI-compatible address.

    The models are random, first-option, middle, agrees, extreme, habit-SEED, desirable,
    repeats-last, simulated-TRAIT=VALUE, impostor-BASE-SEED and people-SAMPLE.
    """
    from ..serving.server import NullServer, environment_key  # loads pandas

    server = NullServer(
        host, port, questionnaires or (), environment_key(), public=public, repeats=repeats
    )
    typer.echo(f"{server.url} answers; stop it with Ctrl-C. Models: {server.url}/models")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
