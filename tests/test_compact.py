"""Tables of chapters as pages show them: few columns, one row of heads, no word lost."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from psychometrics.paths import book_dir, data_dir
from psychometrics_book.record import _html
from psychometrics_book.sphinx.compact import LONG, compact
from psychometrics_book.sphinx.outputs import fold_code, without_caption
from tests.conftest import needs_browser, wait_until


def compacted(frame: pd.DataFrame) -> list[list[str]]:
    soup = BeautifulSoup(_html(frame, {}), "html.parser")
    compact(soup, soup.table)
    return [
        [cell.get_text(strip=True, separator=" ") for cell in row.find_all(["th", "td"])]
        for row in soup.find_all("tr")
    ]


@pytest.fixture
def scales() -> pd.DataFrame:
    values = {
        "mean": [0.1, 0.2, 0.3, 0.4], "low": [0.0, 0.1, 0.2, 0.3], "high": [0.2, 0.3, 0.4, 0.5],
        "null": [0.5] * 4, "p": [0.25] * 4, "n": [3] * 4, "verdict": ["higher"] * 4,
    }  # fmt: skip
    rows = pd.MultiIndex.from_product([["GAD-7", "PHQ-9"], ["encoders", "decoders"]])
    return pd.DataFrame(values, rows.set_names(["scale", "base"]))


def test_the_name_of_the_rows_stands_in_the_only_row_of_the_head():
    frame = pd.DataFrame({"score": [0.5]}, pd.Index(["nervous"], name="item"))
    assert compacted(frame) == [["item", "score"], ["nervous", "0.50"]]


def test_an_interval_stands_behind_its_value_and_a_missing_one_leaves_the_value_alone():
    values = {"r": [0.5, 0.25], "low": [0.1, None], "high": [0.9, None], "n": [4, 5]}
    frame = pd.DataFrame(values, pd.Index(["a", "b"], name="pair"))
    assert compacted(frame) == [
        ["pair", "r (95 % interval)", "n"],
        ["a", "0.50 (0.10 to 0.90)", "4"],
        ["b", "0.25", "5"],
    ]


def test_a_verdict_comes_first_and_outer_names_become_rows_of_their_own(scales):
    rows = compacted(scales)
    assert rows[0] == ["scale, base", "verdict", "mean (95 % interval)", "null", "p", "n"]
    assert rows[1] == ["GAD-7"]
    assert rows[2] == ["encoders", "higher", "0.10 (0.00 to 0.20)", "0.50", "0.25", "3"]
    assert rows[4] == ["PHQ-9"]
    assert len(rows) == 7


def test_a_narrow_table_keeps_two_columns_of_names(scales):
    assert compacted(scales[["null", "p", "n"]])[1] == ["GAD-7", "encoders", "0.50", "0.25", "3"]


def test_every_value_of_a_wide_table_is_still_there(scales):
    words = " ".join(word for row in compacted(scales) for word in row)
    for label in ("GAD-7", "PHQ-9", "encoders", "decoders", "0.40 (0.30 to 0.50)"):
        assert label in words


def test_a_cell_of_a_table_that_turns_on_phones_names_its_column_and_keeps_its_role(scales):
    soup = BeautifulSoup(_html(scales, {}), "html.parser")
    compact(soup, soup.table)
    assert "turns" in soup.table["class"]
    row = soup.tbody.find_all("tr")[1]
    assert [cell["data-label"] for cell in row.find_all("td")] == [
        "verdict", "mean", "null", "p", "n",
    ]  # fmt: skip
    assert [cell["role"] for cell in row.find_all(["th", "td"])] == ["rowheader"] + ["cell"] * 5
    assert soup.tbody.tr.th["role"] == "rowheader"


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> Path:
    """Every kept table of all chapters on one page, in the place that a chapter gives it."""
    style = (book_dir() / "_static" / "book.css").read_text(encoding="utf-8")
    regions = []
    for path in sorted((data_dir() / "tables").glob("*/tab-*.csv")):
        rows = pd.read_csv(path, index_col=0, nrows=LONG + 5)
        soup = BeautifulSoup(_html(rows, {}), "html.parser")
        compact(soup, soup.table)
        regions.append(f'<div class="table-region" id="{path.parent.name}">{soup}</div>')
    place = "body { margin: 0 auto; max-width: 46rem; } table { border-collapse: collapse; }"
    page = tmp_path_factory.mktemp("tables") / "tables.html"
    text = f"<style>{place}{style}</style><article class='bd-article'>{''.join(regions)}</article>"
    page.write_text(f"<!doctype html><meta charset='utf-8'>{text}", encoding="utf-8")
    return page


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_no_table_is_wider_than_its_place_but_long_ones_on_a_phone(shown, width, browser):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.goto(shown.as_uri())
    tab.add_script_tag(path=book_dir() / "_static" / "book.js")
    wait_until(tab, "document.querySelector('.turned')", 200)
    wide = """all => all.filter(e => e.scrollWidth > e.clientWidth + 2)
        .map(e => e.id + (e.querySelector('.long') ? ' long' : ''))"""
    found = tab.locator(".table-region").evaluate_all(wide)
    assert [name for name in found if width > 600 or not name.endswith("long")] == []
    turned = tab.locator(".turned td:not(:empty)").first
    label = turned.evaluate("e => getComputedStyle(e, '::before').content")
    assert label.strip('"').strip() == turned.get_attribute("data-label")
    tab.add_style_tag(content="body { max-width: none !important; }")
    tab.set_viewport_size({"width": 6000, "height": 900})
    wait_until(tab, "!document.querySelector('.turned')", 200)
    tab.close()


def test_a_caption_is_not_read_twice_once_as_code():
    caption = "Untrained heads reach a high alpha, too. Alpha of the scales with intervals."
    source = (
        'other = "a long text of another kind, which no caption of this cell holds"\n'
        'book.table(\n    frame, "tab-alpha",\n'
        '    "Untrained heads reach a high alpha, too. "\n'
        '    "Alpha of the scales with intervals.......",\n)'
    )
    shown = without_caption(source.replace(".......", "."), {"caption": caption})
    assert "another kind" in shown
    assert '"tab-alpha"' in shown
    assert "Untrained" not in shown


def test_each_interval_stands_behind_the_value_of_its_name():
    frame = pd.DataFrame(
        [[0.86, 0.71, 0.50, 0.88, 0.78, 0.95]],
        ["widths"],
        ["population", "null", "null low", "null high", "low", "high"],
    )
    first = ["0.86 (0.78 to 0.95)", "0.71 (0.50 to 0.88)"]
    assert compacted(frame.rename_axis("statistic"))[1] == ["widths", *first]


def test_a_later_column_gets_its_interval_and_one_without_a_value_stays():
    frame = pd.DataFrame(
        [[0.2, 0.1, 0.3, -0.1, 0.1, 2.0, 0.05, 0.4, 0.6]],
        ["GAD-7"],
        ["change", "low", "high", "null low", "null high", "dz", "null", "part low", "part high"],
    )
    head, row = compacted(frame.rename_axis("scale"))
    assert head == [
        "scale", "change (95 % interval)", "dz", "null (95 % interval)", "part 95 % interval",
    ]  # fmt: skip
    assert row == ["GAD-7", "0.20 (0.10 to 0.30)", "2", "0.05 (−0.10 to 0.10)", "0.40 to 0.60"]


def test_code_is_folded_unless_it_is_the_method():
    tags = [[], ["parameters"], ["method"], ["hide-input", "hide-output"]]
    cells = [{"cell_type": "code", "metadata": {"tags": one}} for one in tags]
    fold_code(cells)
    folded = ["hide-input" in cell["metadata"]["tags"] for cell in cells]
    assert folded == [True, True, False, True]
