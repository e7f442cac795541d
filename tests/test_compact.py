"""Tables of chapters as pages show them: few columns, one row of heads, no word lost."""

from __future__ import annotations

import importlib.util

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from psychometrics.paths import book_dir
from psychometrics.publishing.record import _html

SPEC = importlib.util.spec_from_file_location("compact", book_dir() / "_ext" / "compact.py")
MODULE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MODULE)


def compacted(frame: pd.DataFrame) -> list[list[str]]:
    soup = BeautifulSoup(_html(frame, {}), "html.parser")
    MODULE.compact(soup, soup.table)
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
    MODULE.compact(soup, soup.table)
    assert "turns" in soup.table["class"]
    row = soup.tbody.find_all("tr")[1]
    assert [cell["data-label"] for cell in row.find_all("td")] == [
        "verdict", "mean", "null", "p", "n",
    ]  # fmt: skip
    assert [cell["role"] for cell in row.find_all(["th", "td"])] == ["rowheader"] + ["cell"] * 5
    assert soup.tbody.tr.th["role"] == "rowheader"


def test_a_caption_is_not_read_twice_once_as_code(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(book_dir() / "_ext"))
    outputs = importlib.import_module("outputs")
    caption = "Untrained heads reach a high alpha, too. Alpha of the scales with intervals."
    source = (
        'other = "a long text of another kind, which no caption of this cell holds"\n'
        'pm.book.table(\n    frame, "tab-alpha",\n'
        '    "Untrained heads reach a high alpha, too. "\n'
        '    "Alpha of the scales with intervals.......",\n)'
    )
    shown = outputs.without_caption(source.replace(".......", "."), {"caption": caption})
    assert "another kind" in shown
    assert '"tab-alpha"' in shown
    assert "Untrained" not in shown
