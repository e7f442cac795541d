"""Run a notebook and write its page: once, as a report, or for many parameters."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..checks import check_choice, parse_parameters
from ..exceptions import ParameterError, PsychometricsError, writing
from ..paths import notebooks_dir
from .book import RUNS, name_of_parameters, run_notebook
from .page import check_output, write_page
from .parameters import CHAPTERS, check_parameters


def write_report(
    notebook: str,
    parameters: Mapping[str, object],
    pages: Sequence[str | Path],
    executed: Path | None = None,
) -> dict[str, pd.DataFrame]:
    """Run a notebook such as ``profile`` and write its page, with the code folded.

    Parameters
    ----------
    notebook : str
        Its name.
    parameters : mapping
        Values for names of its parameters cell.
    pages : sequence of str or Path
        Each ends in .html, or in .pdf, which Chromium prints.
    executed : Path, optional
        The executed copy, by default in ``runs/``; its tables lie in the folder of its name.

    Returns
    -------
    dict of DataFrame
        The tables that it shows, by name.

    Raises
    ------
    ParameterError
        A parameter is impossible, or the page cannot be written; nothing was run.
    PsychometricsError
        The notebook or the printing failed.

    Examples
    --------
    >>> write_report("profile", {"model": "minilm-both-l6-s1"}, ["profile.txt"])
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: profile.txt: end the file's name in .html or .pdf.
    """
    pages = [check_output(page) for page in pages]
    check_parameters(notebook, dict(parameters))
    executed = executed or RUNS / f"{pages[0].stem}.ipynb"
    run_notebook(notebook, dict(parameters), executed, pages=pages, kind="report")
    return {path.stem: pd.read_csv(path) for path in executed.with_suffix("").glob("tab-*.csv")}


def sweep(
    notebook: str,
    grid: Mapping[str, Sequence[object]] | Sequence[str],
    folder: str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Run a notebook once for each combination of parameters, and compare the tables.

    A run that was finished with the same notebook and parameters is not repeated, so that a sweep
    that was stopped resumes. A run that fails is named, and the others go on.

    Parameters
    ----------
    notebook : str
        As for :func:`psychometrics.publishing.book.run_notebook`.
    grid : mapping of str to sequence, or sequence of str
        Values by parameter, also as ``"temperature=0.5,1"``; all combinations are run.
    folder : str or Path, optional
        For the executed copies and the page, ``index.html``; by default
        ``runs/<notebook>-sweep``.
    parameters : mapping, optional
        The same for all runs.
    progress : bool
        Show a progress bar over each run's cells.

    Returns
    -------
    DataFrame
        One row per run: the parameters of the grid; ``run``, the executed copy's name;
        ``status``, *run now*, *done before* or *failed*; ``seconds``; ``reason`` of a failure.
        ``runs.csv`` in the folder holds the same, ``attrs["page"]`` is the page's path.

    Raises
    ------
    ParameterError
        There is no such notebook or parameter, a parameter or a value is given twice, no
        combination is possible, or the folder cannot be written; nothing was executed.

    Examples
    --------
    >>> sweep("03-assessment", {"temprature": [1, 2]})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: parameter must be one of ..., got 'temprature' ...
    """
    parameters = dict(parameters or {})
    grid = grid if isinstance(grid, Mapping) else _parse_grid(grid)
    combinations = _combinations(notebook, grid, parameters)
    folder = Path(folder) if folder is not None else RUNS / f"{notebook}-sweep"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").open("a").close()

    text = (notebooks_dir() / f"{notebook}.ipynb").read_text(encoding="utf-8")
    rows = []
    for chosen, impossible in combinations:
        values = parameters | chosen
        name = name_of_parameters(chosen, text, json.dumps(values, sort_keys=True, default=str))
        row = _one(notebook, values, folder / name, impossible, progress)
        rows.append(chosen | {"run": name} | row)

    runs = pd.DataFrame(rows)
    runs.to_csv(folder / "runs.csv", index=False)
    about = {"notebook": notebook, "folder": str(folder), "varied": list(grid)}
    executed = run_notebook("sweep", about, folder / "sweep.ipynb", progress=False)
    runs.attrs["page"] = str(write_page(executed, folder / "index.html", "report"))

    return runs


def _parse_grid(pairs: Sequence[str]) -> dict[str, list[object]]:
    """Return ``["temperature=0.5,1", "score=contrast"]`` as values by name."""
    grid: dict[str, list[object]] = {}
    for pair in pairs:
        name, equals, values = pair.partition("=")
        given = [value.strip() for value in values.split(",")]
        if not equals or not name or not all(given):
            raise ParameterError(f"Write a sweep as name=value,value, got '{pair}'.")
        if name in grid:
            raise ParameterError(f"The sweep of {name} is given twice: keep one.")

        grid[name] = [parse_parameters([f"{name}={value}"])[name] for value in given]
        if len({str(value) for value in grid[name]}) < len(given):
            raise ParameterError(f"The sweep of {name} has a value twice: keep one.")

    return grid


def _combinations(notebook: str, grid: Mapping, parameters: Mapping) -> list[tuple[dict, str]]:
    """All combinations, each with what makes it impossible, if something does."""
    import papermill

    check_choice(sorted(path.stem for path in notebooks_dir().glob("*.ipynb")), notebook=notebook)
    if not grid or not all(len(values) for values in grid.values()):
        raise ParameterError("A sweep needs a parameter and its values: name=value,value.")

    has = list(papermill.inspect_notebook(str(notebooks_dir() / f"{notebook}.ipynb")))
    for name in [*grid, *parameters]:
        check_choice(has, parameter=name)

    both = sorted(set(grid) & set(parameters))
    if both:
        raise ParameterError(f"{both[0]} is swept and set: leave it out of one of the two.")

    found = []
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        reason = ""
        if notebook in CHAPTERS:
            try:
                check_parameters(notebook, {**parameters, **chosen})
            except PsychometricsError as error:
                reason = " ".join(str(error).split())

        found.append((chosen, reason))

    if all(reason for _, reason in found):
        raise ParameterError(found[0][1])
    return found


def _one(notebook: str, values: dict, path: Path, impossible: str, progress: bool) -> dict:
    """Run one combination, unless its copy is there; only a complete copy gets its name."""
    done, failed = (path.with_name(f"{path.name}{end}") for end in (".ipynb", ".failed.txt"))
    if done.is_file():
        written = json.loads(done.read_text(encoding="utf-8"))["metadata"]
        seconds = written.get("papermill", {}).get("duration") or math.nan
        return {"status": "done before", "seconds": seconds, "reason": ""}

    began = time.perf_counter()
    reason = impossible
    part = path.with_name(f"{path.name}.part.ipynb")

    if not reason:
        try:
            run_notebook(notebook, values, part, progress=progress)
        except PsychometricsError as error:
            reason = " ".join(str(error).split())

    seconds = time.perf_counter() - began
    if reason:
        failed.write_text(f"{reason}\n", encoding="utf-8")
        return {"status": "failed", "seconds": seconds, "reason": reason}

    part.with_suffix("").mkdir(exist_ok=True)  # of a notebook that shows no table
    part.with_suffix("").rename(path)
    part.rename(done)
    failed.unlink(missing_ok=True)
    return {"status": "run now", "seconds": seconds, "reason": ""}
