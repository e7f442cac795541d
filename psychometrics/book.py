"""Run notebooks with papermill, and build the book from the executed copies."""

from __future__ import annotations

import ast
import difflib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from .exceptions import ParameterError, PsychometricsError
from .paths import book_dir, notebooks_dir

RUNS = Path("runs")
_SCORES = ("entailment", "contrast")
_DTYPES = ("auto", "float32", "bfloat16")


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
    >>> run_notebook("02-assessment", {"questionnaire": "phq9"})  # doctest: +SKIP
    PosixPath('runs/02-assessment.ipynb')
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    if name not in notebook_names():
        raise ParameterError(_unknown("notebook", name, notebook_names()))
    source = notebooks_dir() / f"{name}.ipynb"
    known = list(papermill.inspect_notebook(str(source)))
    for parameter in parameters or {}:
        if parameter not in known:
            raise ParameterError(f"{name}: {_unknown('parameter', parameter, known)}")
    output = Path(output) if output is not None else RUNS / f"{name}.ipynb"
    output.parent.mkdir(parents=True, exist_ok=True)
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


def check_parameters(
    *,
    respondents: str,
    score: str,
    temperature: float,
    dtype: str,
    seed: int,
    questionnaire: str | None = None,
    item: int | None = None,
    respondent: str | None = None,
    n_resamples: int | None = None,
    models: int | None = None,
    live: int | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    **texts: str,
) -> None:
    """Check a notebook's parameters, before any model loads.

    Parameters
    ----------
    respondents, score, temperature, dtype, seed
        What every notebook on questionnaires has.
    questionnaire, item, respondent, n_resamples, models, live, epochs, lr
        What some of them have.
    **texts
        Others that hold a text, such as a model's name.

    Raises
    ------
    ParameterError
        A value is impossible, or papermill was given a name that the notebook does not have.
    QuestionnaireError, RespondentError
        The instrument or a respondent is not there.

    Examples
    --------
    >>> check_parameters(questionnaire="gad7", respondents="embedded", score="entailed",
    ...                  temperature=1.0, dtype="auto", seed=1)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: score must be ... contrast, got 'entailed'.
    """
    from .population import population
    from .questionnaires import load_questionnaire

    given = {name: value for name, value in locals().items() if value is not None}
    given |= given.pop("texts")
    refuse_unknown(given)
    _one_of("score", score, _SCORES)
    _one_of("dtype", dtype, _DTYPES)
    for name in ("temperature", "lr"):
        value = given.get(name, 1)
        if not _is_number(value) or not 0 < value < float("inf"):
            raise ParameterError(f"{name} must be a positive number, got {value!r}.")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ParameterError(f"seed must be a whole number from 0, got {seed!r}.")
    for name in ("n_resamples", "models", "epochs"):
        if name in given and (not isinstance(given[name], int) or given[name] < 1):
            raise ParameterError(f"{name} must be a whole number from 1, got {given[name]!r}.")
    if live is not None and (not isinstance(live, int) or not 0 <= live <= (models or live)):
        raise ParameterError(f"live must be a whole number from 0 to models, got {live!r}.")
    for name in ("questionnaire", "respondents", "respondent", *texts):
        if name in given and (not isinstance(given[name], str) or not given[name]):
            raise ParameterError(f"{name} must be text, got {given[name]!r}.")
    instrument = load_questionnaire(questionnaire) if questionnaire is not None else None
    if item is not None and instrument is not None:
        last = len(instrument.items)
        if not isinstance(item, int) or isinstance(item, bool) or not 1 <= item <= last:
            raise ParameterError(f"item must be a whole number from 1 to {last}, got {item!r}.")
        if not instrument.items[item - 1].templates:
            raise ParameterError(f"item {item} of {questionnaire} has no template: name another.")
    names = population(respondents)
    if respondent not in (None, "first", *names):
        raise ParameterError(_unknown("respondent", respondent, ["first", *names]))
    from .respondents import identify

    for name in names:
        identify(name)


def refuse_unknown(known: Iterable[str]) -> None:
    """Stop if plain papermill was given a name that the notebook's parameters cell does not have.

    Parameters
    ----------
    known : iterable of str
        The notebook's parameters.

    Raises
    ------
    ParameterError
        There is another one, which papermill itself would merely warn of.
    """
    known = list(known)
    for name in _injected_names():
        if name not in known:
            raise ParameterError(_unknown("parameter", name, known))


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
    (book / "execution.md").write_text(_execution_page(seconds), encoding="utf-8")
    start = "from jupyter_book.cli.main import main; main()"
    options = ["--warningiserror", "--keep-going", "--quiet"]
    command = [sys.executable, "-c", start, "build", str(book), *options]
    result = subprocess.run(command, check=False, cwd=book.parent)
    page = book / "_build" / "html" / "index.html"
    if result.returncode or not page.is_file():
        raise PsychometricsError("The book was not built: mend what is named above.")
    return page


def draw_result(questionnaire: str = "gad7", seed: int = 1) -> Path:
    """Draw the picture of the README and the landing page from the embedded population's answers.

    Parameters
    ----------
    questionnaire : str
        Whose answers to draw.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Path
        The picture.
    """
    import matplotlib.pyplot as plt

    from . import figures
    from .ask import ask
    from .intervals import scale_intervals
    from .questionnaires import load_questionnaire
    from .scoring import item_scores, pss
    from .trends import trends

    instrument = load_questionnaire(questionnaire)
    answers = ask(instrument, "embedded")
    curves = trends(pss(answers), seed=seed)
    scores = scale_intervals(item_scores(answers), instrument, seed=seed)
    figures.style()
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.8))
    figures.overview(curves, scores, f"{instrument.short_title}, mean item score", axes)
    path = book_dir() / "_static" / "result.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def parse_parameters(pairs: list[str]) -> dict[str, object]:
    """``["item=3", "score=contrast"]`` as a dict; values are numbers where they look like one.

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
        parameters[name] = _number_or_text(value)
    return parameters


def _number_or_text(value: str) -> object:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _injected_names() -> list[str]:
    """Names that papermill's injected cell assigns; none outside of a notebook it runs."""
    try:
        from IPython import get_ipython
    except ImportError:
        return []
    shell = get_ipython()
    cells = shell.user_ns.get("In", []) if shell else []
    injected = [cell for cell in cells if cell.startswith("# Parameters\n")]
    if not injected:
        return []
    assigned = [node for node in ast.parse(injected[-1]).body if isinstance(node, ast.Assign)]
    return [node.targets[0].id for node in assigned]


def _execution_page(seconds: dict[str, float]) -> str:
    from .population import population, population_table

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


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ParameterError(f"{name} must be one of {', '.join(known)}, got {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unknown(kind: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"There is no {kind} '{name}'{hint}: it must be one of {', '.join(known)}."
