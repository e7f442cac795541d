"""One notebook with many parameters: a run for each, and one page of what they found."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..asking.store import key_of
from ..book import glued, run_notebook
from ..claims import recorded
from ..exceptions import ParameterError, PsychometricsError
from ..paths import notebooks_dir
from .pages import page, paragraph, table


def sweep(
    notebook: str,
    grid: Mapping[str, Sequence[object]],
    folder: str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Execute a notebook once for each combination of parameters, and gather the results.

    A run that was finished with the same notebook and parameters is not executed again, so that a
    sweep that was stopped goes on. One that fails is named, and the others go on.

    Parameters
    ----------
    notebook : str
        As for :func:`psychometrics.book.run_notebook`.
    grid : mapping of str to sequence
        Values by parameter; all combinations are run.
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
        ``status``, *run now*, *done before* or *failed*; ``seconds``; ``reason`` of a failure;
        and a column for each number or word that was glued. ``attrs["page"]`` is the page's path.

    Raises
    ------
    ParameterError
        There is no such notebook or parameter, no combination is possible, or the folder cannot
        be written; nothing was executed.

    Examples
    --------
    >>> sweep("03-assessment", {"temprature": [1, 2]})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: 03-assessment: There is no parameter 'temprature' ...
    """
    combinations = _combinations(notebook, grid, parameters or {})
    folder = Path(folder) if folder is not None else Path("runs") / f"{notebook}-sweep"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").open("a").close()
    except OSError as error:
        raise ParameterError(
            f"{folder} cannot be written ({error.strerror}): name a folder of yours."
        ) from None
    text = (notebooks_dir() / f"{notebook}.ipynb").read_text(encoding="utf-8")
    rows, results, claims = [], [], []
    for chosen, impossible in combinations:
        values = dict(parameters or {}) | chosen
        name = _name(chosen, key_of(text, json.dumps(values, sort_keys=True, default=str)))
        if impossible:
            row = _failed(folder / name, impossible, 0.0)
        else:
            row = _executed(notebook, values, folder / name, progress)
        rows.append(chosen | {"run": name} | row)
        if row["status"] != "failed":
            results.append({"run": name} | _plain(glued(name, folder)))
            claims.append(_claims_of(folder / f"{name}.ipynb").assign(run=name))
    found = pd.DataFrame(rows)
    table_of_results = pd.DataFrame(results)
    recorded_claims = pd.concat(claims) if claims else pd.DataFrame()
    path = _write(
        notebook, grid, parameters or {}, found, table_of_results, recorded_claims, folder
    )
    if results:
        found = found.merge(table_of_results, "left", "run", suffixes=("", " (found)"))
    found.attrs = {"page": str(path)}
    return found


def parse_grid(pairs: Sequence[str]) -> dict[str, list[object]]:
    """``["temperature=0.5,1", "score=contrast"]`` as values by name.

    Parameters
    ----------
    pairs : sequence of str
        Values are read as :func:`psychometrics.book.parse_parameters` reads them.

    Returns
    -------
    dict

    Raises
    ------
    ParameterError
        One of them has no ``=`` or an empty value, or a name or a value is given twice.

    Examples
    --------
    >>> parse_grid(["temperature=0.5,1", "score=contrast"])
    {'temperature': [0.5, 1], 'score': ['contrast']}
    """
    from ..book import parse_parameters

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

    from ..parameters import CHAPTERS, check_parameters, unknown

    known = sorted(path.stem for path in notebooks_dir().glob("*.ipynb"))
    if notebook not in known:
        raise ParameterError(unknown("notebook", notebook, known))
    if not grid or not all(len(values) for values in grid.values()):
        raise ParameterError("A sweep needs a parameter and its values: name=value,value.")
    has = list(papermill.inspect_notebook(str(notebooks_dir() / f"{notebook}.ipynb")))
    for name in [*grid, *parameters]:
        if name not in has:
            raise ParameterError(f"{notebook}: {unknown('parameter', name, has)}")
    if both := sorted(set(grid) & set(parameters)):
        raise ParameterError(f"{both[0]} is swept and set: leave it out of one of the two.")
    found = []
    for values in itertools.product(*grid.values()):
        chosen, reason = dict(zip(grid, values, strict=True)), ""
        if notebook in CHAPTERS:
            try:
                check_parameters(notebook, dict(parameters) | chosen)
            except PsychometricsError as error:
                reason = " ".join(str(error).split())
        found.append((chosen, reason))
    if all(reason for _, reason in found):
        raise ParameterError(found[0][1])
    return found


def _name(chosen: dict, key: str) -> str:
    """A run's name: its parameters, as far as a file's name can hold them, and a digest of all."""
    said = "-".join(f"{name}-{value}" for name, value in chosen.items())
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '-', said)[:60].strip('-.')}-{key[:8]}"


def _executed(notebook: str, values: dict, path: Path, progress: bool) -> dict:
    """Execute one combination, unless its copy is there; a copy has its name when it is whole."""
    done = path.with_name(f"{path.name}.ipynb")
    if done.is_file():
        return {"status": "done before", "seconds": _seconds(done), "reason": ""}
    began = time.perf_counter()
    part = path.with_name(f".{path.name}.part.ipynb")
    try:
        run_notebook(notebook, values, part, progress=progress)
    except PsychometricsError as error:
        return _failed(path, " ".join(str(error).split()), time.perf_counter() - began)
    os.replace(part, done)
    path.with_name(f"{path.name}.failed.txt").unlink(missing_ok=True)
    return {"status": "run now", "seconds": time.perf_counter() - began, "reason": ""}


def _failed(path: Path, reason: str, seconds: float) -> dict:
    path.with_name(f"{path.name}.failed.txt").write_text(f"{reason}\n", encoding="utf-8")
    return {"status": "failed", "seconds": seconds, "reason": reason}


def _seconds(path: Path) -> float:
    written = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    return float(written.get("papermill", {}).get("duration") or float("nan"))


def _plain(values: dict) -> dict:
    """Numbers and short words of what was glued; tables in JSON are no results to compare."""
    return {
        name: value
        for name, value in values.items()
        if not isinstance(value, str | list | dict | tuple) or (
            isinstance(value, str) and len(value) <= 60)
    }  # fmt: skip


def _claims_of(path: Path) -> pd.DataFrame:
    """Claims that one executed copy recorded."""
    import tempfile

    with tempfile.TemporaryDirectory() as alone:  # recorded() reads a folder
        (Path(alone) / path.name).write_bytes(path.read_bytes())
        return recorded(alone).drop(columns="chapter").reset_index()


def _write(notebook, grid, parameters, runs, results, claims, folder: Path) -> Path:
    """The page of a sweep."""
    counts = runs["status"].value_counts()
    summary = ", ".join(f"{counts[name]} {name}" for name in ("run now", "done before", "failed")
                        if name in counts)  # fmt: skip
    fixed = ", ".join(f"{name}={value}" for name, value in parameters.items())
    names = list(grid)
    links = {name: f"{name}.ipynb" for name in runs.loc[runs["status"] != "failed", "run"]}
    links |= {name: f"{name}.failed.txt" for name in runs.loc[runs["status"] == "failed", "run"]}
    listed = runs[[*names, "status", "seconds", "run"]].astype(dict.fromkeys(names, str))
    marks = {"run now": "✓ run now", "done before": "✓ done before", "failed": "✗ failed"}
    listed["status"] = listed["status"].map(marks)
    blocks = [paragraph(f"{len(runs)} in all: {summary}.")]
    if fixed:
        blocks.append(paragraph(f"The same in all: {fixed}."))
    blocks.append(table(listed, "Runs, each with a link to its executed copy or its error.",
                        {"seconds": "{:.0f}"}, links))  # fmt: skip
    for row in runs[runs["status"] == "failed"].itertuples():
        blocks.append(paragraph(f"{row.run} failed: {row.reason}"))
    sections = [("Runs", blocks)]
    if len(results):
        heads = {
            row["run"]: ", ".join(f"{name}={row[name]}" for name in names)
            for row in runs.to_dict("records")
        }
        wide = results.set_index("run").T
        wide.columns = [heads[name] for name in wide.columns]
        differs = wide.astype(str).nunique(axis=1) > 1
        sections.append(
            ("Results", _results(wide[differs], wide[~differs], one=wide.shape[1] == 1))
        )
    if len(claims):
        claims = claims.assign(run=claims["run"].map(heads))
        sections.append(("Claims", _claims(claims)))
    lead = f"The same chapter with {' and '.join(names)} varied; nothing else differs."
    return page(f"Sweep of {notebook}", sections, folder / "index.html", lead)


def _results(varied: pd.DataFrame, same: pd.DataFrame, one: bool) -> list[str]:
    """Glued results by run: those that differ, then those that do not."""
    blocks = []
    if len(varied):
        frame = varied.map(_shown).rename_axis("result").reset_index()
        blocks.append(table(frame, "Results that differ between runs."))
    if len(same):
        column = same.columns[0] if one else "in all runs"
        frame = same.iloc[:, 0].map(_shown).rename(column).rename_axis("result").reset_index()
        blocks.append(table(frame, "Results." if one else "Results that are the same in all runs."))
    return blocks


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    return str(value)


def _claims(claims: pd.DataFrame) -> list[str]:
    """What each run found of each claim, with its interval and its null."""

    def said(row: pd.Series) -> str:
        text = _shown(row["value"])
        if row["low"] == row["low"]:
            text += f" ({_shown(row['low'])} to {_shown(row['high'])})"
        if row["null"] == row["null"]:
            text += f"; null {_shown(row['null'])}"
        return text

    claims = claims.assign(found=claims.apply(said, axis=1))
    wide = claims.pivot(index="claim_id", columns="run", values="found").fillna("–")
    wide = wide[list(dict.fromkeys(claims["run"]))].rename_axis("claim", axis=0).reset_index()
    note = paragraph(
        "A claim's number with its 95 % interval, and what the same analysis gives where there is "
        "nothing to find. Some chapters record claims under their own parameters only.",
        note=True,
    )
    return [table(wide, "Claims that the runs recorded."), note]
