"""Run notebooks with papermill, and build the book from the executed copies."""

from __future__ import annotations

import ast
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from .claims import counts, scorecard
from .exceptions import ParameterError, PsychometricsError
from .parameters import unknown
from .paths import book_dir, notebooks_dir
from .population import population, population_table

RUNS = Path("runs")


def notebook_names() -> list[str]:
    """Names of the book's notebooks, in the order of the chapters."""
    return sorted(path.stem for path in notebooks_dir().glob("*.ipynb"))


def run_notebook(
    name: str,
    parameters: dict[str, object] | None = None,
    output: str | Path | None = None,
    progress: bool = True,
) -> Path:
    """Execute a notebook with papermill.

    Parameters
    ----------
    name : str
        One of :func:`notebook_names`.
    parameters : dict, optional
        Values for names of its parameters cell; the others keep theirs.
    output : str or Path, optional
        The executed copy; by default ``runs/<name>.ipynb``.
    progress : bool
        Show a progress bar over the cells.

    Returns
    -------
    Path
        The executed copy.

    Raises
    ------
    ParameterError
        There is no such notebook or parameter; nothing was executed.
    PsychometricsError
        A cell failed; the message is the cell's error, the copy shows where.

    Examples
    --------
    >>> run_notebook("02-assessment", {"questionaire": "phq9"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: 02-assessment: There is no parameter 'questionaire' ...
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    if name not in notebook_names():
        raise ParameterError(unknown("notebook", name, notebook_names()))
    source = notebooks_dir() / f"{name}.ipynb"
    known = list(papermill.inspect_notebook(str(source)))
    for parameter in parameters or {}:
        if parameter not in known:
            raise ParameterError(f"{name}: {unknown('parameter', parameter, known)}")
    output = Path(output) if output is not None else RUNS / f"{name}.ipynb"
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.open("a").close()
    except OSError as error:
        raise ParameterError(
            f"{output} cannot be written ({error.strerror}): name a file in a folder of yours."
        ) from None
    try:
        papermill.execute_notebook(
            str(source),
            str(output),
            parameters=parameters or {},
            kernel_name="python3",
            progress_bar=progress,
        )
    except PapermillExecutionError as error:
        raise PsychometricsError(f"{name}, {error.ename}: {error.evalue}") from error
    return output


def build_book(progress: bool = True) -> Path:
    """Execute every notebook with its own parameters and build the HTML.

    Parameters
    ----------
    progress : bool
        Show progress bars while the notebooks run.

    Returns
    -------
    Path
        The book's first page.

    Raises
    ------
    PsychometricsError
        A notebook or the build failed; a warning of the build is a failure.
    """
    book = book_dir()
    chapters = book / "chapters"
    shutil.rmtree(chapters, ignore_errors=True)
    seconds = {}
    for name in notebook_names():
        began = time.perf_counter()
        run_notebook(name, output=chapters / f"{name}.ipynb", progress=progress)
        seconds[name] = time.perf_counter() - began
    (book / "verdicts.md").write_text(_verdicts(), encoding="utf-8")
    (book / "execution.md").write_text(_execution_page(seconds), encoding="utf-8")
    start = "from jupyter_book.cli.main import main; main()"
    options = ["--warningiserror", "--keep-going", "--quiet"]
    command = [sys.executable, "-c", start, "build", str(book), *options]
    result = subprocess.run(command, check=False, cwd=book.parent)
    page = book / "_build" / "html" / "index.html"
    if result.returncode or not page.is_file():
        raise PsychometricsError("The book was not built: mend what is named above.")
    return page


def glue(**values: object) -> None:
    """Keep results of a cell for the prose, where the role ``glue:text`` shows them.

    Parameters
    ----------
    **values
        Numbers or words by name; names are unique in a notebook.

    References
    ----------
    The outputs are those of ``myst_nb.glue``, which is not needed where a notebook is only run.

    Examples
    --------
    >>> glue(rho=0.63)  # a notebook shows nothing
    {'application/papermill.record/text/plain': '0.63'}
    """
    from IPython.display import display

    kind = "application/papermill.record/"
    for name, value in values.items():
        value = getattr(value, "item", lambda value=value: value)()
        display(
            {f"{kind}text/plain": repr(value)},
            raw=True,
            metadata={"scrapbook": {"name": name, "mime_prefix": kind}},
        )


def glued(chapter: str, folder: str | Path = "book") -> dict[str, object]:
    """What an executed chapter has kept for its prose by :func:`glue`.

    Parameters
    ----------
    chapter : str
        Its name, such as ``"03-validity"``.
    folder : str or Path
        Where the executed copy is; ``"book"`` is where :func:`build_book` puts it.

    Returns
    -------
    dict
        Numbers and words by name.

    Raises
    ------
    ParameterError
        The chapter was not executed.

    Examples
    --------
    >>> glued("03-validity", "a-folder-without-notebooks")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: 03-validity was not executed: run `psychometrics book`.
    """
    folder = book_dir() / "chapters" if folder == "book" else Path(folder)
    path = folder / f"{chapter}.ipynb"
    if not path.is_file():
        raise ParameterError(f"{chapter} was not executed: run `psychometrics book`.")
    found = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name:
                text = "".join(output["data"]["application/papermill.record/text/plain"])
                found[name] = math.nan if text == "nan" else ast.literal_eval(text)
    return found


def parse_parameters(pairs: list[str]) -> dict[str, object]:
    """``["item=3", "score=contrast"]`` as a dict.

    Values are numbers where they look like one, and true, false and None are what Python means by
    them, as papermill has it.

    Raises
    ------
    ParameterError
        One of them has no ``=``, or a name is given twice.

    Examples
    --------
    >>> parse_parameters(["item=3", "temperature=0.5", "score=contrast"])
    {'item': 3, 'temperature': 0.5, 'score': 'contrast'}
    """
    parameters: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ParameterError(f"Write a parameter as name=value, got '{pair}'.")
        if name in parameters:
            raise ParameterError(f"The parameter {name} is given twice: keep one.")
        parameters[name] = _meant(value)
    return parameters


def _meant(value: str) -> object:
    words = {"true": True, "false": False, "True": True, "False": False, "None": None}
    if value in words:
        return words[value]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _verdicts() -> str:
    """The landing page's summary of the scorecard."""
    table = counts(scorecard())
    head = ["study", *table.columns]
    rows = [[name, *map(str, row)] for name, row in zip(table.index, table.to_numpy(), strict=True)]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _execution_page(seconds: dict[str, float]) -> str:
    rows = "\n".join(
        f"| [{name}](chapters/{name}.ipynb) | {taken:.0f} |" for name, taken in seconds.items()
    )
    packages = "\n".join(
        f"| {name} | {version(name)} |"
        for name in ("torch", "transformers", "peft", "pandas", "pingouin", "jupyter-book")
    )
    table = population_table().set_index("respondent_id").loc[population()]
    low, high = table["accuracy"].min(), table["accuracy"].max()
    return (
        "(execution)=\n# How this book was executed\n\n"
        "Every number and figure of the chapters came out of the notebooks when the book was "
        "built. This page was written then, too.\n\n"
        f"- on {time.strftime('%Y-%m-%d')}, with Python {platform.python_version()} on "
        f"{platform.system()} ({platform.machine()}), {os.cpu_count()} processor cores\n"
        f"- answers from the embedded population of {len(table)} respondents, accuracy on "
        f"held-out MNLI from {low:.3f} to {high:.3f}\n\n"
        "A chapter is quick when its answers are in the response store already.\n\n"
        f"| chapter | seconds |\n| --- | ---: |\n{rows}\n\n"
        f"| package | version |\n| --- | --- |\n{packages}\n"
    )
