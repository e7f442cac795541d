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
from . import serving as serving
from . import reports as reports

# isort: on

# Errors of the system that a user can mend.
_OF_FILES = (
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG,
    errno.ENOSPC, errno.EROFS, errno.EDQUOT,
)  # fmt: skip


# Other packages add commands, as the book does.
for _point in entry_points(group="psychometrics.commands"):
    _point.load()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(pm.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_print_version, help="The version.")
    ] = False,
) -> None:
    pass


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
        if error.errno not in _OF_FILES:
            raise

        typer.echo(f"psychometrics: {error}: correct permissions, space or folder.", err=True)
        raise SystemExit(1) from None
