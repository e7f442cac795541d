"""Write what the page *Teaching* offers: slides, questions, templates, an archive for teachers."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pandas as pd

from psychometrics.paths import book_dir, data_dir

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
    for chapter in sorted(chapters.glob("[0-9]*.ipynb")):
        slides = folder / f"slides-{chapter.stem}.html"
        if not slides.is_file() or slides.stat().st_mtime < chapter.stat().st_mtime:
            write_page(chapter, slides, "slides")

    for seed in SEEDS:
        sheet = items(seed)[["chapter", "question"]]
        sheet.to_csv(folder / f"questions-{seed}.csv", index=False)

    sources = book_dir() / "course"
    for name in ("lectures.csv", "without-python.csv", "claim.yaml", "claim.csv"):
        shutil.copyfile(sources / name, folder / name)

    template = (sources / "claim.md").read_text(encoding="utf-8")
    (folder / "claim.md").write_text(f"{template}\n{_checklist()}", encoding="utf-8")
    _write_archive(folder / "for-teachers.zip")


def _checklist() -> str:
    """Return the reporting checklist as boxes to tick."""
    rows = pd.read_csv(data_dir() / "checklist.csv").itertuples()
    return "".join(f"- [ ] {row.item} {row.asks} ({row.source})\n" for row in rows)


def _write_archive(path: Path) -> None:
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

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            # without the time of writing, so that the same texts make the same archive
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
