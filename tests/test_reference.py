"""The reference of the book: what its pages name is there, public, documented and cited in full."""

from __future__ import annotations

import importlib
import re

import pytest

from psychometrics.paths import book_dir

PAGES = sorted((book_dir() / "reference").glob("*.md"))
FORMULAS = (book_dir() / "reference" / "formulas.md").read_text(encoding="utf-8")
ROOMS = {
    room: page.stem
    for page in PAGES
    for room in re.findall(r"automodule:: psychometrics\.([\w.]+)", page.read_text("utf-8"))
}
"""Documented rooms, and the page of each."""
NAMED = sorted(set(re.findall(r"\{func\}`~?psychometrics\.([\w.]+)`", FORMULAS)))
STATISTICS = [
    "mean_interval",
    "item_statistics",
    "generalisability",
    "retest",
    "partial_correlations",
    "multitrait_multimethod",
    "term_silhouettes",
    "decisiveness",
    "compare_norms",
    "compare_means",
    "corrected",
    "logistic_dif",
    "item_fit",
    "person_fit",
    "information",
    "partition_agreement",
    "category_scores",
    "desirability_contrast",
]


def _rows() -> list[list[str]]:
    lines = [line for line in FORMULAS.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[0] not in ("formula", "statistic") and row[0] != "---"]


@pytest.mark.parametrize("name", NAMED)
def test_a_function_of_the_formulas_is_public_and_has_an_entry_to_link_to(name):
    room, _, own = name.rpartition(".")
    assert room in ROOMS, "no page documents its room"
    function = getattr(importlib.import_module(f"psychometrics.{room}"), own)
    assert callable(function)
    assert not own.startswith("_")
    assert function.__module__ == f"psychometrics.{room}", "it is documented where it is defined"
    assert function.__doc__


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_statistic_that_no_chapter_writes_out_has_its_row(statistic):
    rest = FORMULAS.partition("## Not written out in the chapters")[2]
    assert re.search(rf"\.{statistic}`", rest)


def test_every_row_of_the_formulas_has_function_chapter_and_source():
    rows = _rows()
    assert len(rows) > 60
    for row in rows:
        function, chapter, source = row[-4:-1]
        assert re.search(r"\{func\}`~psychometrics\.[\w.]+`", function), row
        assert re.fullmatch(r"(\{ref\}`[\w-]+`(, )?)+", chapter), row
        assert "{cite:t}`" in source or source == "this book", row


def test_every_source_is_in_the_references():
    known = re.findall(r"^@\w+\{([^,]+),", (book_dir() / "references.bib").read_text("utf-8"), re.M)
    cited = {key for page in PAGES for key in re.findall(r"\{cite:t\}`(\w+)`", page.read_text())}
    assert cited - set(known) == set()
    assert len(known) == len(set(known))
