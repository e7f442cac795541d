"""Execute the chapters that have changed, and build the book from the executed copies."""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib.metadata import distributions, version
from pathlib import Path

import psychometrics
from psychometrics.asking.population import population, population_table
from psychometrics.exceptions import DataError, PsychometricsError
from psychometrics.files import digest_text, replacing, sha256
from psychometrics.paths import book_dir, data_dir, notebooks_dir, questionnaires_dir
from psychometrics_book.workers import worker_pool

from .claims import VERDICTS, counts, expectations, scorecard
from .exercises import answer
from .exercises import listed as exercises
from .record import _mistakes
from .runs import _execute_notebook
from .templating import fill_template


def _notebook_names() -> list[str]:
    """Return the names of the book's chapters, in order, without the notebooks for reports."""
    return sorted(path.stem for path in notebooks_dir().glob("[0-9abr]*.ipynb"))


def build_book() -> Path:
    """Execute every notebook with its own parameters and build the HTML.

    An executed chapter is executed again only if it has changed, or if the package, the data, the
    questionnaires or an installed package has changed.

    Returns
    -------
    Path
        The book's first page.

    Raises
    ------
    PsychometricsError
        A notebook or the build failed (a build warning counts as a failure), or a number
        contradicts a sentence, which is reported after the pages are written.
    """
    book = book_dir()
    chapters = book / "chapters"
    seconds = execute(chapters)
    (book / "verdicts.md").write_text(_verdicts(), encoding="utf-8")
    (book / "execution.md").write_text(_execution_page(seconds), encoding="utf-8")
    start = "from jupyter_book.cli.main import main; main()"
    options = ["--warningiserror", "--keep-going", "--quiet"]
    command = [sys.executable, "-c", start, "build", str(book), *options]
    page = book / "_build" / "html" / "index.html"
    doctrees = book / "_build" / ".doctrees"
    attempts = 2 if doctrees.is_dir() else 1  # a cached doctree may refer to labels that have moved
    for _ in range(attempts):
        result = subprocess.run(command, check=False, cwd=book.parent)
        if not result.returncode:
            break

        shutil.rmtree(doctrees, ignore_errors=True)  # a cached page does not warn again

    if result.returncode or not page.is_file():
        raise PsychometricsError("The book was not built: correct the errors above.")
    mistakes = _wrong(chapters)
    if mistakes:
        raise PsychometricsError("\n".join(mistakes))

    return page


def _wrong(chapters: Path) -> list[str]:
    """Return the mistakes in the prose, exercises and sentences of executed chapters.

    Parameters
    ----------
    chapters : Path
        The folder of the executed chapters.

    Returns
    -------
    list of str
        One sentence each.
    """
    names = [path.stem for path in sorted(chapters.glob("*.ipynb"))]
    mistakes = [sentence for name in names for sentence in _mistakes(name, chapters)]
    sentences = expectations(chapters)
    mistakes += [
        f"{row.chapter}: '{row.sentence}' does not hold: {row.cell} is {row.value}, and the rule "
        f"is '{row.rule} {row.bar}'."
        for row in sentences[~sentences["holds"]].itertuples()
    ]

    for name in exercises().query("chapter in @names").index:
        try:
            answer(name, chapters)
        except DataError as error:
            mistakes.append(f"{name}: {error}")

    return mistakes


def execute(folder: Path, progress: bool = True) -> dict[str, float]:
    """Execute all changed chapters, two at a time, and write them into a folder.

    A chapter mostly uses one core, and two chapters fit into the memory of a small machine. The
    slowest chapters come first: one fills the store, the other trains models. The others follow
    from the last to the first, and then the pages of records, since the first chapters and the
    records use answers that fill the store. A
    notebook whose metadata list chapters under ``reads`` (names in which a star matches any text)
    comes after all others, in order; it is executed again if one of these chapters has changed.

    Parameters
    ----------
    folder : Path
        Folder of the executed copies, each of which gets a folder with its tables.
    progress : bool
        Whether to show a progress bar over the chapters.

    Returns
    -------
    dict of float
        Execution time of each chapter in seconds.

    Raises
    ------
    PsychometricsError
        A chapter failed.
    """
    from tqdm import tqdm

    names = sorted(_notebook_names(), reverse=True)
    names.sort(key=lambda name: (name not in _LONGEST, name.startswith("records")))
    sources = {name: notebooks_dir() / f"{name}.ipynb" for name in names}
    texts = {name: path.read_text("utf-8") for name, path in sources.items()}
    chapters_read = {name: _chapters_read(text, names) for name, text in texts.items()}
    readers = sorted(name for name in names if chapters_read[name])
    common = _digest_of_what_is_read()
    inputs = {
        name: digest_text(common, text, *(texts[other] for other in chapters_read[name]))
        for name, text in texts.items()
    }

    seconds = _seconds_of_unchanged(folder, inputs)
    names = [name for name in names if name not in seconds]
    without_readers = [name for name in names if name not in readers]
    rounds = [without_readers, *([name] for name in readers if name in names)]
    bar = tqdm(total=len(names), unit="chapter", desc="Executing", disable=not progress)
    with worker_pool(_AT_ONCE, _share_cores) as pool:
        example = None
        for chapters in rounds:
            running = [
                pool.submit(_timed, sources[name], folder / f"{name}.ipynb", inputs[name])
                for name in chapters
            ]

            if names and example is None:  # it runs along with the last chapters of the first round
                page = book_dir() / "_static" / "profile-example.html"
                example = pool.submit(_write_example, page)

            seconds |= _await_chapters(running, bar, pool)

        if example is not None:
            example.result()

    bar.close()
    return dict(sorted(seconds.items()))


def _chapters_read(text: str, names: Sequence[str]) -> list[str]:
    """Return the chapters that a notebook's metadata say it reads, in alphabetical order."""
    patterns = json.loads(text)["metadata"].get("reads", [])
    return sorted({name for pattern in patterns for name in fnmatch.filter(names, pattern)})


def _seconds_of_unchanged(folder: Path, inputs: dict[str, str]) -> dict[str, float]:
    """Return the seconds of executed copies whose inputs are unchanged; remove other copies."""
    seconds = {}
    for path in folder.glob("*.ipynb"):
        metadata = json.loads(path.read_text("utf-8"))["metadata"]
        if metadata.get("inputs") == inputs.get(path.stem, ""):
            seconds[path.stem] = metadata["papermill"]["duration"]
        else:
            path.unlink()
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)

    return seconds


def _await_chapters(running: list[Future], bar, pool: ProcessPoolExecutor) -> dict[str, float]:
    """Return the seconds of each chapter; if a chapter fails, cancel those not yet started."""
    seconds = {}
    try:
        for done in as_completed(running):
            name, taken = done.result()
            seconds[name] = taken
            bar.set_postfix_str(f"{name} in {taken:.0f} s")
            bar.update()
    except PsychometricsError:
        pool.shutdown(cancel_futures=True)
        raise

    return seconds


def _share_cores() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // _AT_ONCE)))


def _digest_of_what_is_read() -> str:
    """Return a digest of all files that chapters read, except chapters."""
    root = notebooks_dir().parent
    not_read = {data_dir() / "recipes", data_dir() / "Makefile", Path(__file__).parent / "sphinx"}
    digests = []
    for folder in (
        Path(psychometrics.__file__).parent,
        Path(__file__).parent,
        data_dir(),
        questionnaires_dir(),
        root / "tests" / "benchmarks",
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and not not_read & {path, *path.parents}:
                digests.append(f"{path} {_digest_of_file(path)}")

    variables = (f"{name}={value}" for name, value in os.environ.items() if name[:5] == "PSYCH")
    packages = (f"{package.name} {package.version}" for package in distributions())
    return digest_text(*digests, *sorted(packages), *sorted(variables))


def _digest_of_file(path: Path) -> str:
    """Return a file's digest, which for a program ignores comments and docstrings."""
    if path.suffix != ".py":
        return sha256(path)

    program = ast.parse(path.read_bytes())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(program):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()

    return digest_text(ast.unparse(ast.fix_missing_locations(program)))


def _timed(source: Path, output: Path, inputs: str) -> tuple[str, float]:
    """Execute a chapter unchanged, record its inputs in the copy, and return its seconds."""
    name = source.stem
    began = time.perf_counter()
    output.parent.mkdir(parents=True, exist_ok=True)
    _execute_notebook(name, source, output, {}, progress=False)
    executed = json.loads(output.read_text("utf-8"))
    executed["metadata"]["inputs"] = inputs
    with replacing(output) as part:
        part.write_text(json.dumps(executed, indent=1, ensure_ascii=False), encoding="utf-8")

    return name, time.perf_counter() - began


def _write_example(page: Path) -> None:
    """Write the page that `psychometrics profile` makes for a model, as the book's example."""
    assessment = psychometrics.profiles.assess("minilm-both-l6-s1", ["gad7"])
    report = psychometrics.contents.report_profile(assessment)
    picture = psychometrics.pages.draw_scores(assessment)
    psychometrics.pages.write_page(report, picture, [page])


# Number of chapters executed at the same time.
_AT_ONCE = 2
_LONGEST = ("06-other-explanations", "07-interventions")
"""The chapters that are executed first."""


def _verdicts() -> str:
    """Return the landing page's summary of the scorecard, short enough for a phone."""
    claims = counts(scorecard())
    claims[VERDICTS[2]] += claims.pop(VERDICTS[1])  # the null reaches these, too
    parts = [
        (basis, [(study, row.tolist()) for (_, study), row in rows.iterrows()])
        for basis, rows in claims.groupby(level="how", sort=False)
    ]
    return fill_template("verdicts.md.j2", parts=parts)


def _execution_page(seconds: dict[str, float]) -> str:
    names = ("torch", "transformers", "peft", "pandas", "pingouin", "jupyter-book")
    members = population_table().set_index("respondent_id").loc[population()]
    return fill_template(
        "execution.md.j2",
        day=time.strftime("%Y-%m-%d"),
        python=platform.python_version(),
        system=f"{platform.system()} ({platform.machine()})",
        cores=os.cpu_count(),
        accuracy=members["accuracy"],
        seconds=seconds,
        packages={name: version(name) for name in names},
    )
