"""The design of reports: what a page holds, and what it does not need."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from psychometrics.exceptions import ParameterError
from psychometrics.reports import pages

OWN = pd.DataFrame(
    {"label": ["A", "B"], "who": "m", "score": [0.1, -0.2], "low": [0.0, -0.3], "high": [0.2, -0.1]}
)
OTHERS = pd.DataFrame({"label": ["A", "A", "B"], "score": [0.0, 0.3, 0.5]})


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_startendtag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def _read(path) -> tuple[str, _Tags]:
    text = path.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    return text, tags


@pytest.fixture
def written(tmp_path):
    figure, ax = plt.subplots()
    ax.plot([0, 1], [1, 0], label="falls", color="#0072B2")
    ax.legend()
    other, _ = plt.subplots()
    blocks = [
        pages.paragraph("Is p < .05 & small?"),
        pages.table(pd.DataFrame({"who": ["a<b"], "r": [-0.5]}), "Correlations"),
        pages.drawing(figure, "A fall.", "A line falls."),
        pages.drawing(other, "Nothing.", "Empty axes."),
        pages.strip(OWN, {"others": OTHERS}, "Scores.", "Two scores.", "score"),
    ]
    sections = [("Scores", blocks), ("Scores", pages.paragraph("Again."))]
    return pages.page("A <report>", sections, tmp_path / "r.html", lead="Of m.")


def test_a_page_is_well_formed_and_each_name_in_it_is_its_own(written):
    text, tags = _read(written)
    assert not tags.open
    assert len(tags.ids) == len(set(tags.ids))
    assert "A &lt;report&gt;" in text
    assert "Is p &lt; .05 &amp; small?" in text
    assert "<h2 id='scores-1'>" in text


def test_a_page_needs_no_other_file_and_no_script(written):
    text, tags = _read(written)
    assert all(address.startswith("#") for address in tags.addresses)
    assert "<script" not in text
    assert not re.search(r"url\((?!#)|@import", text)


def test_a_page_is_told_in_light_dark_and_print_and_every_picture_in_words(written):
    text, _ = _read(written)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert text.count("role='img' aria-label=") + text.count('role="img" aria-label=') == 3
    assert "var(--blue)" in text.partition("A line falls.")[2], "matplotlib's colours follow"
    assert "<caption>Correlations</caption>" in text


def test_a_number_of_a_table_has_a_true_minus_and_a_missing_one_a_dash():
    text = pages.table(pd.DataFrame({"n": ["a", "b"], "r": [-0.5, None]}), "T")
    assert "<td class='number'>−0.50</td>" in text
    assert "<td class='number'>–</td>" in text


def test_a_strip_puts_each_score_where_its_value_is_on_the_axis():
    text = pages.strip(OWN, {"others": OTHERS}, "c", "a", "score")
    # from -0.3 to 0.5 with 4 % beside: 0.1 is in the middle
    assert "cx='50.00%' cy='43' r='6'" in text
    assert text.count("class='cloud0'") == 3 + 1, "and one in the legend"
    assert "m: 0.100 (0.000 to 0.200)" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [("r.txt", "end the page's name in"), ("no/r.html", "there is no folder"), ("", "end the")],
)
def test_a_page_that_cannot_be_written_is_refused_in_a_sentence(tmp_path, name, said):
    with pytest.raises(ParameterError, match=said):
        pages.page("t", [], tmp_path / name)


def test_a_pdf_without_a_browser_is_refused_with_the_mend(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ParameterError, match="neither is found: install one"):
        pages.checked_path(tmp_path / "r.pdf")


@pytest.mark.skipif(not any(map(shutil.which, pages.BROWSERS)), reason="there is no Chromium")
def test_a_page_is_printed_to_pdf(tmp_path):
    sections = [("Scores", pages.paragraph("None."))]
    path = pages.page("A report", sections, tmp_path / "r.pdf")
    assert path.read_bytes().startswith(b"%PDF")
    assert [p.name for p in tmp_path.iterdir()] == ["r.pdf"]
