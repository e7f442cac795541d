"""Run a notebook and write its page: once, as a report, or for many sets of parameters."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from psychometrics.checks import check_choice, parse_parameters
from psychometrics.data import write_csv, write_text
from psychometrics.exceptions import ParameterError, PsychometricsError, check_file, needed, writing
from psychometrics.paths import notebooks_dir
from psychometrics.store import key_of

from .page import write_page
from .parameters import CHAPTERS, check_parameters
from .record import _kernel_arguments

RUNS = Path("runs")
# A file in the temporary folder of a run, which is locked as long as its process lives.
_LOCK = "run.lock"


def run_notebook(
    name: str,
    parameters: dict[str, object] | None = None,
    output: str | Path | None = None,
    progress: bool = True,
    page: str | Path | None = None,
) -> Path:
    """Execute a notebook with papermill, and write its page.

    The run and its page are made in a temporary folder next to the executed copy. They replace an
    earlier result together, once both are complete, so a failed run leaves the earlier result
    unchanged. An earlier result with other parameters is kept, under a name made from its
    parameters.

    Parameters
    ----------
    name : str
        A notebook of the book or of a report.
    parameters : dict, optional
        Values for parameters in the notebook's parameters cell, by name; all other parameters keep
        their defaults.
    output : str or Path, optional
        Path of the executed copy, in an existing folder; by default ``runs/<name>.ipynb``.
    progress : bool
        Whether to show a progress bar over the cells.
    page : str or Path, optional
        The page to write, an HTML file.

    Returns
    -------
    Path
        The executed copy.

    Raises
    ------
    ParameterError
        The notebook, a parameter or the folder does not exist. No cell was executed.
    PsychometricsError
        A cell failed; the message is the cell's error, and ``<output>.failed.ipynb`` shows the
        place.

    Examples
    --------
    >>> run_notebook("03-assessment", {"questionaire": "phq9"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: parameter must be one of ..., got 'questionaire' ...
    """
    values = _given_parameters(name, parameters or {})
    output = RUNS / f"{name}.ipynb" if output is None else Path(output)
    if output.parent == RUNS:  # users make other folders: a name may be mistyped
        with writing(RUNS):
            RUNS.mkdir(exist_ok=True)

    output = check_file(output, (".ipynb",))
    if page is not None:
        page = check_file(page, (".html",))
    if name in CHAPTERS:  # refused before a kernel is started
        check_parameters(name, values)

    with _folder_beside(output) as folder:
        made = folder / output.name
        failed = output.with_name(f"{output.stem}.failed.ipynb")
        try:
            _execute_notebook(name, _source_of(name), made, values, progress)
        except PsychometricsError:
            if made.is_file():
                made.replace(failed)

            raise

        places = {made.with_suffix(""): output.with_suffix(""), made: output}
        if page is not None:
            places[write_page(made, folder / "page.html")] = page

        _put_in_place(places, _other_name(output, made))
        failed.unlink(missing_ok=True)

    return output


@contextmanager
def _folder_beside(output: Path) -> Iterator[Path]:
    """Provide a temporary folder for a run, and remove the folders of runs that were killed."""
    for lock in output.parent.glob(f".*/{_LOCK}"):
        with suppress(Timeout), FileLock(lock, timeout=0):
            shutil.rmtree(lock.parent, ignore_errors=True)

    with writing(output):
        place = tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.stem[:40]}-")

    with place as folder, FileLock(Path(folder) / _LOCK):
        yield Path(folder)


def parameter_kinds(notebook: str) -> dict[str, Any]:
    """Return the types of a notebook's parameters, as far as they are declared, by name.

    Raises
    ------
    ParameterError
        There is no such notebook.

    Examples
    --------
    >>> parameter_kinds("03-assessment")["score"]
    typing.Literal['entailment', 'contrast']
    """
    declared = _declared(notebook)
    kinds: dict[str, Any] = {
        name: str for name, entry in declared.items() if entry["default"][:1] in ("'", '"')
    }
    if notebook in CHAPTERS:
        fields = CHAPTERS[notebook].model_fields
        kinds |= {name: field.annotation for name, field in fields.items()}
    return kinds


def _source_of(name: str) -> Path:
    """Return the path of a notebook."""
    source = notebooks_dir() / f"{name}.ipynb"
    if not source.is_file():
        check_choice(sorted(path.stem for path in notebooks_dir().glob("*.ipynb")), notebook=name)
    return source


def _declared(name: str) -> dict[str, dict]:
    """Return what a notebook's cell of parameters says of each, by name."""
    declared: dict[str, dict] = needed("papermill").inspect_notebook(_as_template(_source_of(name)))
    return declared


def _given_parameters(notebook: str, parameters: Mapping[str, object]) -> dict[str, object]:
    """Return values for a notebook's parameters, after checking their names and types."""
    declared = _declared(notebook)
    kinds = parameter_kinds(notebook)
    values = dict(parameters)
    for parameter, value in values.items():
        check_choice(declared, parameter=parameter)
        if not isinstance(value, str | int | float | list | dict | None):
            raise ParameterError(f"{parameter}: a notebook accepts no {type(value).__name__}.")
        if kinds.get(parameter) is str and type(value) in (int, float):
            values[parameter] = str(value)  # a number given for a text, such as one epoch

    return values


def sweep(
    notebook: str,
    grid: Mapping[str, Sequence[object]] | Sequence[str],
    folder: str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Run a notebook once for each combination of parameters, and compare the tables.

    Completed runs with the same notebook and parameters are not repeated, so that a stopped sweep
    resumes. Failed runs are listed, and the others continue.

    Parameters
    ----------
    notebook : str
        The notebook's name, as in :func:`psychometrics_book.runs.run_notebook`.
    grid : mapping of str to sequence, or sequence of str
        Values by parameter, or texts such as ``"temperature=0.5,1"``; all combinations are run.
    folder : str or Path, optional
        Folder for the executed copies and the page, ``index.html``; by default
        ``runs/<notebook>-sweep``.
    parameters : mapping, optional
        Parameters that are the same for all runs.

    Returns
    -------
    DataFrame
        One row per run: the parameters of the grid; ``run``, the executed copy's name; ``status``,
        which is *run now*, *done before* or *failed*; ``seconds``; and the ``reason`` for a
        failure. ``runs.csv`` in the folder has the same rows, and ``attrs["page"]`` is the page's
        path.

    Raises
    ------
    ParameterError
        The notebook or a parameter does not exist, a parameter or a value occurs twice, no
        combination is valid, or the folder cannot be written. No cell was executed.

    Examples
    --------
    >>> sweep("03-assessment", {"temprature": [1, 2]})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: parameter must be one of ..., got 'temprature' ...
    """
    parameters = dict(parameters or {})
    grid = grid if isinstance(grid, Mapping) else _parse_grid(grid, parameter_kinds(notebook))
    combinations = _combinations(notebook, grid, parameters)
    folder = Path(folder) if folder is not None else RUNS / f"{notebook}-sweep"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").open("a").close()

    text = _source_of(notebook).read_text(encoding="utf-8")
    rows = []
    for chosen, impossible in combinations:
        values = parameters | chosen
        name = _name_of_parameters(chosen, text, json.dumps(values, sort_keys=True, default=str))
        row = _run_combination(notebook, values, folder / name, impossible)
        rows.append(chosen | {"run": name} | row)

    runs = pd.DataFrame(rows)
    write_csv(runs, folder / "runs.csv")
    settings = {"notebook": notebook, "folder": str(folder), "varied": list(grid)}
    executed = run_notebook("sweep", settings, folder / "sweep.ipynb", progress=False)
    runs.attrs["page"] = str(write_page(executed, folder / "index.html", "report"))

    return runs


def _execute_notebook(
    name: str, source: Path, output: Path, parameters: dict, progress: bool
) -> None:
    """Execute a notebook with papermill; write its tables to the folder of the copy's name.

    Raises
    ------
    PsychometricsError
        A cell failed; the message is the cell's error.
    """
    import papermill
    from papermill.exceptions import PapermillExecutionError

    folder = output.with_suffix("").resolve()
    shutil.rmtree(folder, ignore_errors=True)

    try:
        papermill.execute_notebook(
            _as_template(source),
            _as_template(output),
            parameters=parameters,
            kernel_name="python3",
            progress_bar=progress,
            extra_arguments=_kernel_arguments(folder),
        )
    except PapermillExecutionError as error:
        raise PsychometricsError(f"{name}, {error.ename}: {error.evalue}") from error


def _as_template(path: Path) -> str:
    """Return a path in papermill's syntax, where braces enclose parameters.

    Examples
    --------
    >>> _as_template(Path("page {1}.ipynb"))
    'page {{1}}.ipynb'
    """
    return str(path).replace("{", "{{").replace("}", "}}")


def _name_of_parameters(parameters: dict[str, object], *more: str) -> str:
    """Return a short file name made from parameters, with a digest that makes it unique.

    Examples
    --------
    >>> _name_of_parameters({"item": 2, "score": "contrast"})
    'item-2-score-contrast-...'
    """
    words = "-".join(f"{name}-{value}" for name, value in parameters.items())
    words = re.sub(r"[^A-Za-z0-9.-]+", "-", words)[:60].strip("-.")
    digest = key_of(*more, json.dumps(parameters, sort_keys=True, default=str))[:8]
    return f"{words or 'published'}-{digest}"


def _put_in_place(places: dict[Path, Path], name: str) -> None:
    """Replace an earlier run's tables, notebook and page with those of a finished run.

    With a name, the earlier ones are kept under it.
    """
    tables = next(iter(places))
    tables.mkdir(exist_ok=True)  # missing if the notebook shows no table

    with writing(places[tables]):
        for finished, place in places.items():
            if name and place.exists():
                earlier = place.with_name(f"{place.stem}-{name}{place.suffix}")
                _remove(earlier)
                place.rename(earlier)

            beside = place.with_name(f".{place.name}.{os.getpid()}")  # a page may go elsewhere
            shutil.move(finished, beside)
            _remove(place)
            beside.rename(place)


def _other_name(output: Path, made: Path) -> str:
    """Return the name under which to keep an earlier result, or an empty string without one."""
    if not output.is_file() and not output.with_suffix("").is_dir():
        return ""

    try:
        earlier, now = (
            json.loads(path.read_text(encoding="utf-8"))["metadata"]["papermill"]
            for path in (output, made)
        )
        is_same_notebook = Path(earlier["input_path"]).stem == Path(now["input_path"]).stem
        is_repeated = is_same_notebook and earlier["parameters"] == now["parameters"]

        return "" if is_repeated else _name_of_parameters(earlier["parameters"])
    except (OSError, ValueError, KeyError, TypeError):  # not written by a run
        return f"kept-{time.time():.0f}"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _parse_grid(pairs: Sequence[str], kinds: Mapping[str, object]) -> dict[str, list[object]]:
    """Parse ``["temperature=0.5,1", "score=contrast"]`` into values by name."""
    grid: dict[str, list[object]] = {}
    for pair in pairs:
        name, equals, values = pair.partition("=")
        texts = [value.strip() for value in values.split(",")]
        if not equals or not name or not all(texts):
            raise ParameterError(f"Write a sweep as name=value,value, got '{pair}'.")
        if name in grid:
            raise ParameterError(f"There are two sweeps of {name}: keep one.")

        grid[name] = [parse_parameters([f"{name}={value}"], kinds)[name] for value in texts]
        if len({str(value) for value in grid[name]}) < len(texts):
            raise ParameterError(f"The sweep of {name} has a value twice: keep one.")

    return grid


def _combinations(notebook: str, grid: Mapping, parameters: Mapping) -> list[tuple[dict, str]]:
    """Return all combinations, each with the reason if its values are invalid."""
    if not grid or not all(hasattr(v, "__len__") and len(v) for v in grid.values()):
        raise ParameterError("A sweep needs a parameter and its values: name=value,value.")

    declared = _declared(notebook)
    for name in [*grid, *parameters]:
        check_choice(declared, parameter=name)

    doubled = sorted(set(grid) & set(parameters))
    if doubled:
        raise ParameterError(f"{doubled[0]} is both swept and set: remove it from one of the two.")

    combinations = []
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        reason = ""
        if notebook in CHAPTERS:
            try:
                check_parameters(notebook, {**parameters, **chosen})
            except PsychometricsError as error:
                reason = " ".join(str(error).split())

        combinations.append((chosen, reason))

    if all(reason for _, reason in combinations):
        raise ParameterError(combinations[0][1])
    return combinations


def _run_combination(notebook: str, values: dict, path: Path, impossible: str) -> dict:
    """Run one combination unless its executed copy exists; only a complete copy gets its name."""
    done, failed = (path.with_name(f"{path.name}{end}") for end in (".ipynb", ".failed.txt"))
    if done.is_file():
        written = json.loads(done.read_text(encoding="utf-8"))["metadata"]
        seconds = written.get("papermill", {}).get("duration") or math.nan
        return {"status": "done before", "seconds": seconds, "reason": ""}

    began = time.perf_counter()
    reason = impossible
    _remove(path)  # of an earlier run whose copy was deleted
    if not reason:
        try:
            run_notebook(notebook, values, done)
        except PsychometricsError as error:
            reason = " ".join(str(error).split())

    seconds = time.perf_counter() - began
    if reason:
        write_text(failed, f"{reason}\n")
        return {"status": "failed", "seconds": seconds, "reason": reason}

    failed.unlink(missing_ok=True)
    return {"status": "run now", "seconds": seconds, "reason": ""}
