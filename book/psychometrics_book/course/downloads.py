"""Write what the page *Teaching* offers: slides, plans, questions, an archive for teachers."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from html import escape
from pathlib import Path

import nbformat
import pandas as pd

from psychometrics.files import replacing
from psychometrics.paths import book_dir, data_dir
from psychometrics.reports.printing import find_browser, print_page

from ..page import write_page
from .bank import bank_files, questions, questions_of_items
from .items import items

SEEDS = (1, 2, 3)
"""Seeds of the question banks: for three years, or three rows of seats."""


def write_downloads(chapters: Path, folder: Path) -> None:
    """Write the downloads of the page *Teaching*, with the same names in every build.

    Parameters
    ----------
    chapters : Path
        The folder of the executed chapters. Slides are written for those that have changed.
    folder : Path
        The folder of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_slides(chapters, folder)
    plans = lecture_plans(chapters)
    plans.to_csv(folder / "lectures.csv", index=False)

    for seed in SEEDS:
        sheet = items(seed)[["chapter", "question"]]
        sheet.to_csv(folder / f"questions-{seed}.csv", index=False)

    sources = book_dir() / "course"
    for name in ("without-python.csv", "claim.yaml", "claim.csv"):
        shutil.copyfile(sources / name, folder / name)

    text = (sources / "claim.md").read_text(encoding="utf-8") + "\n"
    for row in pd.read_csv(data_dir() / "checklist.csv").itertuples():  # boxes to tick
        text += f"- [ ] {row.item} {row.asks} ({row.source})\n"

    (folder / "claim.md").write_text(text, encoding="utf-8")
    _write_archive(folder / "for-teachers.zip", plans)


def slide_list(chapters: Path) -> str:
    """Return the links to all slides as HTML; a PDF is listed if a browser can print it.

    Parameters
    ----------
    chapters : Path
        The folder of the executed chapters.
    """
    lines = []
    for chapter, (title, _) in _chapter_texts(chapters).items():
        address = f"_static/course/slides-{chapter.stem}"
        printed = f' (<a href="{address}.pdf">PDF</a>)' if find_browser() else ""
        lines.append(f'<li><a href="{address}.html">{escape(title)}</a>{printed}</li>\n')

    return f"<ul>\n{''.join(lines)}</ul>\n"


def lecture_plans(chapters: Path) -> pd.DataFrame:
    """Return the lecture plans at the ends of the chapters as one table.

    Parameters
    ----------
    chapters : Path
        A folder of chapters.

    Returns
    -------
    DataFrame
        ``chapter``, ``minutes`` and ``what``: a row for each line of a plan. Exercises, tables
        and figures have their labels.
    """
    rows = []
    for title, text in _chapter_texts(chapters).values():
        plan = text.partition("} For teachers: ")[2].partition("\n:::")[0]
        plain = re.sub(r"\{\w+\}`([^`<]*?)(?: <[^`]*)?`", r"\1", plan)
        lines = re.findall(r"^\| (.+?) \| (.+) \|$", plain, re.M)
        rows += [(title, *line) for line in lines[2:]]  # after the head and its rule

    return pd.DataFrame(rows, columns=["chapter", "minutes", "what"])


def _chapter_texts(chapters: Path) -> dict[Path, tuple[str, str]]:
    """Return the numbered title and the text of each chapter, by its path."""
    texts = {}
    for path in sorted(chapters.glob("[0-9]*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        heading = re.search(r"^# (.+)", text, re.M)[1]
        texts[path] = f"{int(path.name[:2])}. {heading}", text

    return texts


def _write_slides(chapters: Path, folder: Path) -> None:
    """Write the slides of chapters that have changed, also as PDF if there is a browser."""
    with tempfile.TemporaryDirectory() as profile:
        for chapter in sorted(chapters.glob("[0-9]*.ipynb")):
            slides = folder / f"slides-{chapter.stem}.html"
            printed = slides.with_suffix(".pdf")

            if not slides.is_file() or slides.stat().st_mtime < chapter.stat().st_mtime:
                printed.unlink(missing_ok=True)
                write_page(chapter, slides, "slides")

            if find_browser() and not printed.is_file():
                with replacing(printed) as part:
                    print_page(slides.resolve().as_uri(), part.absolute(), Path(profile))


def _write_archive(path: Path, plans: pd.DataFrame) -> None:
    """Write the archive for teachers: questions with answers, plans, data, a marked example."""
    banks = {"exercises": questions()}
    banks |= {f"questions-{seed}": questions_of_items(seed) for seed in SEEDS}
    texts = {
        f"{folder}/{name}": text
        for folder, bank in banks.items()
        for name, text in bank_files(bank).items()
    }
    files = [*(book_dir() / "course").glob("*.*"), *(data_dir() / "course").glob("*.csv")]
    texts |= {file.name: file.read_text(encoding="utf-8") for file in sorted(files)}
    texts["lectures.csv"] = plans.to_csv(index=False)

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            # without the time of writing, so that the same texts make the same archive
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
