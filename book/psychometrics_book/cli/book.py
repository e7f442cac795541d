"""Commands for the book: run a notebook, build, print, check an exercise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import psychometrics as pm
import psychometrics_book as book
from psychometrics.cli.options import Output, app

_PANEL = "The book"


@app.command("run", rich_help_panel=_PANEL)
def _run(
    notebook: Annotated[str, Argument(help="A notebook's name, such as 03-assessment.")],
    parameter: Annotated[
        list[str] | None, Option("--parameter", "-p", help="name=value; may be repeated.")
    ] = None,
    output: Output = None,
    sweep: Annotated[
        list[str] | None,
        Option("--sweep", help="name=value,value: a run for each; may be repeated."),
    ] = None,
    device: Annotated[
        str | None, Option(help="Where models compute, such as cpu or cuda:1.")
    ] = None,
) -> None:
    """Execute a notebook with one or many sets of parameters; write a file or a folder of files."""
    values = pm.checks.parse_parameters(parameter or [], book.runs.parameter_kinds(notebook))
    if device is not None:
        pm.models.devices.resolve_device(device)  # refuse it before a kernel starts
        os.environ["PSYCHOMETRICS_DEVICE"] = device  # the kernel inherits it

    if not sweep:
        _run_once(notebook, values, output or book.runs.RUNS / f"{notebook}.ipynb")
        return

    runs = book.runs.sweep(notebook, sweep, output, values)
    for row in runs[runs["status"] == "failed"].itertuples():
        typer.echo(f"psychometrics: {row.run} failed: {row.reason}", err=True)

    counts = runs["status"].value_counts()
    summary = ", ".join(f"{n} {status}" for status, n in counts.items())
    typer.echo(f"{len(runs)} runs: {summary}; {runs.attrs['page']}")
    raise typer.Exit(1 if "failed" in counts else 0)


def _run_once(notebook: str, values: dict, output: Path) -> None:
    """Run a notebook, and list the book's sentences that do not hold for this run."""
    page = output.parent / f"{output.stem}.html"
    executed = book.runs.run_notebook(notebook, values, output, page=page)
    typer.echo(f"{executed}; as a page {page}")
    if not book.claims.own_parameters(executed):
        return

    sentences = book.claims.judged_sentences(executed)
    holds, published, unknown, fails = book.claims.SENTENCE_VERDICTS
    for row in sentences[sentences["verdict"] == fails].itertuples():
        typer.echo(f"{fails}: {row.sentence} ({row.why})")

    counts = sentences["verdict"].value_counts()
    summary = "; ".join(
        f"{verdict}: {counts.get(verdict, 0)}" for verdict in (holds, fails, unknown)
    )
    unaffected = counts.get(published, 0)
    if len(sentences):
        typer.echo(
            f"Sentences of the book tested on this run: {len(sentences) - unaffected}. {summary}. "
            f"Resting on published data, which this run did not touch: {unaffected}."
        )


@app.command("book", rich_help_panel=_PANEL)
def _book() -> None:
    """Execute all notebooks and build the book."""
    typer.echo(f"open {book.build_book()}")


@app.command(
    "check-answer", rich_help_panel=_PANEL, context_settings={"ignore_unknown_options": True}
)
def _check_answer(
    exercise: Annotated[str, Argument(help="The exercise's name, such as ex-column-factor.")],
    value: Annotated[list[str], Argument(help="Your answer: a number or words.")],
) -> None:
    """Check the answer to an exercise; exit with status 1 if it is not right yet."""
    typed = " ".join(value)
    if not book.exercises.is_right(exercise, typed):
        typer.echo(f"Not yet. {book.exercises.hint(exercise, typed)}".rstrip())
        raise typer.Exit(1)
    typer.echo("Right.")


@app.command("pdf", rich_help_panel=_PANEL)
def _pdf(
    output: Annotated[Path, Option("--output", "-o", help="The file.")] = Path("book.pdf"),
) -> None:
    """Print the built book to one PDF with Chromium or Chrome."""
    typer.echo(f"{book.printing.print_book(output)}")


@app.command("slides", rich_help_panel=_PANEL)
def _slides(
    chapter: Annotated[str, Argument(help="A chapter, such as 03-assessment, or a path.")],
    output: Output = None,
) -> None:
    """Make slides (an .html file) of the tables and figures of an executed chapter, with notes."""
    path = Path(chapter)
    if path.suffix != ".ipynb":
        path = pm.paths.book_dir() / "chapters" / f"{chapter}.ipynb"
    output = output or Path(f"{path.stem}-slides.html")
    typer.echo(f"open {book.page.write_page(path, output, 'slides')}")
