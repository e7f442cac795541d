"""Run notebooks with papermill, and build the book from the executed copies."""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from html import unescape
from importlib.metadata import distributions, version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import yaml

from ..asking.population import population, population_table
from ..checks import check_choice
from ..exceptions import DataError, ParameterError, PsychometricsError, check_file, writing
from ..files import digest_text, replacing, sha256
from ..paths import book_dir, data_dir, notebooks_dir, questionnaires_dir
from ..store import key_of
from .claims import VERDICTS, counts, expectations, scorecard
from .exercises import answer
from .exercises import listed as exercises
from .page import print_page, write_page
from .record import figure as figure
from .record import kernel_arguments, mistakes
from .record import plan as plan
from .record import read as read
from .record import table as table

if TYPE_CHECKING:
    from pypdf import PdfWriter

RUNS = Path("runs")


def _notebook_names() -> list[str]:
    """Names of the book's notebooks, in the order of the chapters; the others make reports."""
    return sorted(path.stem for path in notebooks_dir().glob("[0-9b]*.ipynb"))


def run_notebook(
    name: str,
    parameters: dict[str, object] | None = None,
    output: str | Path | None = None,
    progress: bool = True,
    pages: Sequence[str | Path] = (),
    kind: str = "page",
) -> Path:
    """Execute a notebook with papermill, and write its pages.

    The run and its pages are made in a temporary folder beside the executed copy and take the
    place of earlier ones together, once all of them are there: a run that fails leaves the
    earlier result as it was. An earlier result of other parameters is kept, under a name made of
    its parameters.

    Parameters
    ----------
    name : str
        A notebook of the book or of a report.
    parameters : dict, optional
        Values for names of its parameters cell; the others keep theirs.
    output : str or Path, optional
        The executed copy; by default ``runs/<name>.ipynb``.
    progress : bool
        Show a progress bar over the cells.
    pages : sequence of str or Path
        Pages to write, each .html or .pdf.
    kind : {"page", "report", "slides"}
        What pages they are, as in :func:`psychometrics.publishing.page.write_page`.

    Returns
    -------
    Path
        The executed copy.

    Raises
    ------
    ParameterError
        There is no such notebook or parameter; nothing was executed.
    PsychometricsError
        A cell failed; the message is the cell's error, and ``<output>.failed.ipynb`` shows where.

    Examples
    --------
    >>> run_notebook("03-assessment", {"questionaire": "phq9"})
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: parameter must be one of ..., got 'questionaire' ...
    """
    import papermill

    source = notebooks_dir() / f"{name}.ipynb"
    if not source.is_file():
        check_choice(sorted(path.stem for path in notebooks_dir().glob("*.ipynb")), notebook=name)

    known = papermill.inspect_notebook(str(source))
    given = dict(parameters or {})
    for parameter, value in given.items():
        check_choice(known, parameter=parameter)
        if known[parameter]["default"][:1] in ("'", '"') and type(value) in (int, float):
            given[parameter] = str(value)  # a text that looks like a number, such as one epoch

    output = Path(output) if output is not None else RUNS / f"{name}.ipynb"
    taken = [path for path in (output, *map(Path, pages)) if path.is_dir()]
    if taken:
        raise ParameterError(f"{taken[0]} is a folder: name a file.")
    if output.suffix != ".ipynb":
        raise ParameterError(f"{output}: end the file's name in .ipynb.")

    with writing(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.stem[:40]}-")

    with place as folder:
        made = Path(folder) / output.name
        failed = output.with_name(f"{output.stem}.failed.ipynb")
        try:
            _papermill(name, source, made, given, progress)
        except PsychometricsError:
            if made.is_file():
                made.replace(failed)

            raise

        made_pages = [
            write_page(made, Path(folder) / f"{number}{Path(page).suffix}", kind)
            for number, page in enumerate(pages)
        ]
        _put_in_place(made, output, dict(zip(made_pages, map(Path, pages), strict=True)))
        failed.unlink(missing_ok=True)

    return output


def _put_in_place(made: Path, output: Path, pages: dict[Path, Path]) -> None:
    """Let a finished run take the place of an earlier one: tables, notebook and pages."""
    places = {made.with_suffix(""): output.with_suffix(""), made: output} | pages
    made.with_suffix("").mkdir(exist_ok=True)  # of a notebook that shows no table
    name = _other_name(output, made)

    with writing(output):
        for part, place in places.items():
            if name and place.exists():
                kept = place.with_name(f"{place.stem}-{name}{place.suffix}")
                _remove(kept)
                place.rename(kept)

            beside = place.with_name(f".{place.name}.{os.getpid()}")  # a page may go elsewhere
            shutil.move(part, beside)
            _remove(place)
            beside.rename(place)


def _other_name(output: Path, made: Path) -> str:
    """Return the name under which an earlier result is kept; empty if there is none to keep."""
    if not output.is_file() and not output.with_suffix("").is_dir():
        return ""

    try:
        earlier, now = (
            json.loads(path.read_text(encoding="utf-8"))["metadata"]["papermill"]
            for path in (output, made)
        )
        is_same_notebook = Path(earlier["input_path"]).stem == Path(now["input_path"]).stem
        is_repeated = is_same_notebook and earlier["parameters"] == now["parameters"]

        return "" if is_repeated else name_of_parameters(earlier["parameters"])
    except (OSError, ValueError, KeyError, TypeError):  # a file or folder that no run wrote
        return f"kept-{time.time():.0f}"


def name_of_parameters(parameters: dict[str, object], *more: str) -> str:
    """Return a short name for a file from parameters, with a digest that tells them apart.

    Examples
    --------
    >>> name_of_parameters({"item": 2, "score": "contrast"})
    'item-2-score-contrast-...'
    """
    words = "-".join(f"{name}-{value}" for name, value in parameters.items())
    words = re.sub(r"[^A-Za-z0-9.-]+", "-", words)[:60].strip("-.")
    digest = key_of(*more, json.dumps(parameters, sort_keys=True, default=str))[:8]
    return f"{words or 'published'}-{digest}"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _papermill(name: str, source: Path, output: Path, parameters: dict, progress: bool) -> None:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    folder = output.with_suffix("").resolve()
    shutil.rmtree(folder, ignore_errors=True)

    try:
        papermill.execute_notebook(
            str(source),
            str(output),
            parameters=parameters,
            kernel_name="python3",
            progress_bar=progress,
            extra_arguments=kernel_arguments(folder),
        )
    except PapermillExecutionError as error:
        raise PsychometricsError(f"{name}, {error.ename}: {error.evalue}") from error


def build_book(progress: bool = True) -> Path:
    """Execute every notebook with its own parameters and build the HTML.

    A chapter whose executed copy is there is executed again only if it has changed, or if the
    package, the data, the questionnaires or an installed package have.

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
        A notebook or the build failed (a warning of the build is a failure), or, said once the
        pages are there, a sentence's number is not as the sentence says.
    """
    book = book_dir()
    chapters = book / "chapters"
    seconds = execute(chapters, progress)
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
        raise PsychometricsError("The book was not built: mend what is named above.")
    said = _wrong(chapters)
    if said:
        raise PsychometricsError("\n".join(said))

    return page


def _wrong(chapters: Path) -> list[str]:
    """Return what the executed chapters do not show as prose, exercises and sentences need it.

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
    said = [sentence for name in names for sentence in mistakes(name, chapters)]
    sentences = expectations(chapters)
    said += [
        f"{row.chapter}: '{row.sentence}' does not hold: {row.cell} is {row.value}, and the rule "
        f"is '{row.rule} {row.bar}'."
        for row in sentences[~sentences["holds"]].itertuples()
    ]

    for name in exercises().query("chapter in @names").index:
        try:
            answer(name, chapters)
        except DataError as error:
            said.append(f"{name}: {error}")

    return said


def execute(folder: Path, progress: bool = True) -> dict[str, float]:
    """Execute all chapters that have changed into a folder, two at a time.

    A chapter computes with one core for much of its time, and two want no more memory than a small
    machine has. Those that take longest come first: one fills the store that later chapters read,
    the other trains. A notebook whose metadata list chapters under ``reads``, by names in which a
    star stands for any text, comes after all others, in order; it is executed again if one of the
    chapters that it reads has changed.

    Parameters
    ----------
    folder : Path
        For the executed copies, and beside each the folder of its tables.
    progress : bool
        Show a progress bar over the chapters.

    Returns
    -------
    dict of float
        Seconds of each chapter.

    Raises
    ------
    PsychometricsError
        A chapter failed.
    """
    from tqdm import tqdm

    names = sorted(_notebook_names(), key=lambda name: name not in _LONGEST)
    sources = {name: notebooks_dir() / f"{name}.ipynb" for name in names}
    texts = {name: path.read_text("utf-8") for name, path in sources.items()}
    read = {name: _chapters_read(text, names) for name, text in texts.items()}
    readers = [name for name in names if read[name]]
    common = _digest_of_what_is_read()
    inputs = {
        name: digest_text(common, text, *(texts[other] for other in read[name]))
        for name, text in texts.items()
    }

    seconds = _seconds_of_unchanged(folder, inputs)
    names = [name for name in names if name not in seconds]
    first = [name for name in names if name not in readers]
    rounds = [first, *([name] for name in names if name in readers)]
    bar = tqdm(total=len(names), unit="chapter", desc="Executing", disable=not progress)
    with ProcessPoolExecutor(_AT_ONCE, get_context("spawn"), _share_cores) as pool:
        example = None
        for chapters in rounds:
            running = [
                pool.submit(_timed, sources[name], folder / f"{name}.ipynb", inputs[name])
                for name in chapters
            ]

            if names and example is None:  # it runs beside the last chapters of the first round
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
    """Return the seconds of each executed copy whose inputs are the same; remove the others."""
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
    """Return the seconds of each chapter; if one fails, those that wait are not begun."""
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
    """Digest of what any chapter reads beside itself and other chapters."""
    root = notebooks_dir().parent
    found = []
    for folder in (
        Path(__file__).parents[1],
        data_dir(),
        questionnaires_dir(),
        root / "tests" / "benchmarks",
    ):
        for path in sorted(folder.rglob("*")):
            is_recipe = data_dir() / "recipes" in path.parents
            if path.is_file() and "__pycache__" not in path.parts and not is_recipe:
                found.append(f"{path} {_digest_of_file(path)}")

    own = (f"{name}={value}" for name, value in os.environ.items() if name[:5] == "PSYCH")
    packages = (f"{one.name} {one.version}" for one in distributions())
    return digest_text(*found, *sorted(packages), *sorted(own))


def _digest_of_file(path: Path) -> str:
    """Digest of a file; of a program without comments and docstrings, which change no number."""
    if path.suffix != ".py":
        return sha256(path)

    program = ast.parse(path.read_bytes())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(program):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()

    return digest_text(ast.unparse(ast.fix_missing_locations(program)))


def _timed(source: Path, output: Path, inputs: str) -> tuple[str, float]:
    """Execute a chapter as it is, and note in its copy what it read; its seconds."""
    name = source.stem
    began = time.perf_counter()
    output.parent.mkdir(parents=True, exist_ok=True)
    _papermill(name, source, output, {}, progress=False)
    executed = json.loads(output.read_text("utf-8"))
    executed["metadata"]["inputs"] = inputs
    with replacing(output) as part:
        part.write_text(json.dumps(executed, indent=1, ensure_ascii=False), encoding="utf-8")

    return name, time.perf_counter() - began


def _write_example(page: Path) -> None:
    """The page that `psychometrics profile` writes of a model, to look at in the book."""
    ask = ["profile", "minilm-both-l6-s1", "--questionnaires", "gad7", "--output", str(page)]
    start = "from psychometrics.cli import main; main()"
    command = [sys.executable, "-c", start, *ask]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        raise PsychometricsError(result.stderr.strip().splitlines()[-1])


# Chapters that are executed at the same time.
_AT_ONCE = 2
_LONGEST = ("06-other-explanations", "07-interventions")
"""Chapters that are executed first."""


def print_book(output: str | Path = "book.pdf", progress: bool = True) -> Path:
    """The built book as one PDF: its pages in their order, with bookmarks and links between them.

    Parameters
    ----------
    output : str or Path
        The file to write.
    progress : bool
        Show a progress bar over the pages.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        The file cannot be written.
    PsychometricsError
        The book was not built, or there is no Chromium or Chrome to print it.

    Notes
    -----
    A browser without a window prints each page; ``pypdf`` joins them.
    """
    from pypdf import PdfWriter
    from tqdm import tqdm

    output = check_file(output, (".pdf",))
    html = book_dir() / "_build" / "html"
    pages = [html / f"{name}.html" for name in _page_names(book_dir() / "_toc.yml")]
    missing = [page.name for page in pages if not page.is_file()]

    if missing:
        raise PsychometricsError(f"There is no page {missing[0]}: run `psychometrics book` first.")
    writer = PdfWriter()
    starts = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(tqdm(pages, disable=not progress, unit="page")):
            starts[page.resolve()] = len(writer.pages)
            printed = Path(folder) / f"{number}.pdf"
            address = f"{page.resolve().as_uri()}?page={len(writer.pages) + 1}"
            print_page(address, printed, Path(folder) / "profile")
            writer.append(printed, import_outline=False)
            writer.add_outline_item(title=_page_title(page), page_number=starts[page.resolve()])

        _link_pages(writer, starts)
        writer.compress_identical_objects()
        writer.write(output)

    return output


def _page_names(toc: Path) -> list[str]:
    """Names of the pages in the order of the table of contents."""
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    parts = contents.get("parts", [contents])
    chapters = [chapter for part in parts for chapter in part.get("chapters", [])]
    below = [[c["file"], *(s["file"] for s in c.get("sections", []))] for c in chapters]
    return [contents["root"], *(name for names in below for name in names)]


def _page_title(page: Path) -> str:
    found = re.search(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"), re.S)
    return unescape(found.group(1)).partition(" — ")[0].strip()


def _link_pages(writer: PdfWriter, starts: dict[Path, int]) -> None:
    """Links to other pages of the book lead into the PDF instead of to a file."""
    from pypdf.generic import ArrayObject, NameObject

    for page in writer.pages:
        for reference in page.get("/Annots") or []:
            link = reference.get_object()
            address = str(link.get("/A", {}).get("/URI", ""))
            path = Path(unquote(urlsplit(address).path)) if address.startswith("file:") else None
            if path in starts:
                target = writer.pages[starts[path]].indirect_reference
                link[NameObject("/Dest")] = ArrayObject([target, NameObject("/Fit")])
                del link["/A"]


def _verdicts() -> str:
    """Return the landing page's summary of the scorecard, short enough for a phone."""
    claims = counts(scorecard()).rename(lambda study: "all three" if study == "all" else study)
    claims[VERDICTS[2]] += claims.pop(VERDICTS[1])  # the null reaches these, too
    words = ["holds", "null too", "open", "fails", "untested", "claims"]
    lines = ["| | " + " | ".join(words) + " |", "| --- " + "| ---: " * 6 + "|"]

    for how, part in claims.groupby(level="how", sort=False):
        lines += [f"| **{how}** | | | | | | |"] if len(part) > 1 else []
        names = [study if len(part) > 1 else f"{study}, {how}" for _, study in part.index]
        lines += [
            f"| {name} | " + " | ".join(map(str, row)) + " |"
            for name, row in zip(names, part.to_numpy(), strict=True)
        ]

    return "\n".join(lines) + "\n"


def _execution_page(seconds: dict[str, float]) -> str:
    rows = "\n".join(
        f"| [{name}](chapters/{name}.ipynb) | {taken:.0f} |" for name, taken in seconds.items()
    )
    packages = "\n".join(
        f"| {name} | {version(name)} |"
        for name in ("torch", "transformers", "peft", "pandas", "pingouin", "jupyter-book")
    )
    members = population_table().set_index("respondent_id").loc[population()]
    low = members["accuracy"].min()
    high = members["accuracy"].max()

    return (
        "(execution)=\n# How this book was executed\n\n"
        "Every number and figure of the chapters came out of the notebooks when the book was "
        "built. This page was written then, too.\n\n"
        f"- on {time.strftime('%Y-%m-%d')}, with Python {platform.python_version()} on "
        f"{platform.system()} ({platform.machine()}), {os.cpu_count()} processor cores\n"
        f"- answers from the embedded population of {len(members)} respondents, accuracy on "
        f"held-out MNLI from {low:.3f} to {high:.3f}\n\n"
        "- every answer in float32, in an order that does not depend on other respondents, so "
        "that other processors print the same numbers. Two studies that take hours were shipped "
        "as they had been measured in 16-bit floats: the interventions of Chapter 7, and the doses "
        "of training and the hypotheses of Chapter 13\n\n"
        "Two chapters are executed at a time. A chapter is quick when its answers are in the "
        "response store already. What takes longest is shipped: answers of decoders, of encoders "
        "to the placebos, of untrained heads on the decoder, null populations and studies. Shipped "
        "answers are used only where weights, prompts and wording have the digests with which they "
        "were made; else they are computed. Each run of the tests asks a tenth of the untrained "
        "heads' prompts and of the encoders' placebos again. The encoders' answers to the "
        "questionnaires are collected at build time.\n\n"
        f"| chapter | seconds |\n| --- | ---: |\n{rows}\n\n"
        f"| package | version |\n| --- | --- |\n{packages}\n"
    )
