"""The ``psychometrics`` command. Each module contains the commands of one panel of the help."""

from __future__ import annotations

import errno
import io
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer
from typer import Option

import psychometrics as pm

from ..exceptions import PsychometricsError, naming_extras
from .options import app

# Each module adds its commands; their order is the order of the panels.
# isort: off
from . import questionnaires as questionnaires
from . import asking as asking
from . import models as models
from . import reports as reports

# isort: on

# What to do about errors of the system that a user can mend.
_MENDS = {
    errno.EACCES: "choose a file or folder that you may write to, or change its permissions",
    errno.EPERM: "choose a file or folder that you may write to, or change its permissions",
    errno.EROFS: "choose a file or folder on a disk that you may write to",
    errno.ENOENT: "check the spelling, or make the folder first",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "name a folder, not a file",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "delete files that you no longer need, or choose another disk",
    errno.EADDRINUSE: "name another port, or leave --port out",
    errno.EDQUOT: "delete files that you no longer need, or choose another disk",
}
_FIRST_STEPS = """\
A model:  psychometrics profile minilm-both-l6-s1   # or a folder, or a hub id
A table:  psychometrics profile --answers my-answers.csv --questionnaires gad7
The book: psychometrics book                        # --help lists all commands"""


# Other packages add commands, as the book does.
for _point in entry_points(group="psychometrics.commands"):
    _point.load()


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="The version.")] = False,
) -> None:
    if version:
        typer.echo(pm.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(_FIRST_STEPS)


def main() -> None:
    """Run the command; report a user's error in one sentence, with exit status 1."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal may lack some signs

    try:
        with naming_extras():
            app()
    except PsychometricsError as error:
        typer.echo(f"psychometrics: {error}", err=True)
        raise SystemExit(1) from None
    except OSError as error:
        if error.errno not in _MENDS:
            raise

        place = f"{error.filename}: " if error.filename else ""
        reason = f"{place}{error.strerror}; {_MENDS[error.errno]}."
        typer.echo(f"psychometrics: {reason}", err=True)
        raise SystemExit(1) from None
