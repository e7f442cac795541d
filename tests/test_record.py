"""The record: what a chapter shows is written down, and an address finds it again."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from psychometrics.exceptions import DataError, ParameterError
from psychometrics.paths import notebooks_dir
from psychometrics_book import plans, record

SHOWN = pd.DataFrame(
    {"auc": [0.7312, 0.5], "auc low": [0.6, 0.4], "auc high": [0.86, math.nan],
     "n": [12, 4], "p": [0.0002, 0.3], "word": ["near, or not", "far"]},
    index=pd.Index(["silhouette", "alpha, raw"], name="evidence"),
)  # fmt: skip


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of runs in which chapter 4 has shown one table."""
    monkeypatch.setattr(record._RUN, "folder", tmp_path / "04-own")
    record.table(SHOWN, "tab-power", "Areas.")
    return tmp_path


@pytest.mark.parametrize(
    ("address", "printed"),
    [
        ("04/tab-power[silhouette, auc]:.2f", "0.73"),
        ("tab-power[silhouette, auc]:.2f ci", "0.73 (0.60 to 0.86)"),
        ('tab-power["alpha, raw", n]', "4"),
        ("tab-power[silhouette, n]:d", "12"),
        ("tab-power[#1, evidence]", "silhouette"),
        ("tab-power[#-1, word]", "far"),
        ("tab-power[silhouette, p]:p", "< .001"),
        ('tab-power["alpha, raw", auc high]', "–"),
        ("04-own/tab-power[silhouette, word]", "near, or not"),
    ],
)
def test_an_address_prints_its_cell(runs, address, printed):
    assert record.printed(address, runs, "04-own") == printed


@pytest.mark.parametrize(
    "address",
    ["05/tab-power[silhouette, auc]", "tab-weak[silhouette, auc]", "tab-power[omega, auc]",
     "tab-power[silhouette, area]", "tab-power", "tab-power[#3, auc]"],
)  # fmt: skip
def test_a_dead_address_is_refused_by_name(runs, address):
    with pytest.raises(DataError) as error:
        record.cell(address, runs, "04-own")
    assert address.partition("[")[0] in str(error.value)


def test_a_cell_comes_with_the_interval_and_the_null_of_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(record._RUN, "folder", tmp_path / "01")
    frame = pd.DataFrame({"value": [2.0], "low": 1.0, "high": 3.0, "null": 0.5}, index=["a"])
    record.table(frame, "tab-a", "A.")
    found = record.with_interval("01/tab-a[a]", tmp_path)
    assert (found["value"], found["low"], found["high"], found["null"]) == (2, 1, 3, 0.5)
    assert math.isnan(found["null_low"])


def test_a_table_is_shown_with_intervals_and_written_raw(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record._RUN, "folder", tmp_path)
    html = record._html(SHOWN, {"p": "p", "n": "d"})
    assert "0.60 to 0.86" in html
    assert "&lt; .001" in html
    assert "auc low" not in html
    record.table(SHOWN, "tab-power", "Areas.")
    assert pd.read_csv(tmp_path / "tab-power.csv", index_col=0).loc["silhouette", "auc"] == 0.7312


def test_a_wrong_name_or_format_is_refused():
    with pytest.raises(ParameterError):
        record.table(SHOWN, "power", "Areas.")
    with pytest.raises(ParameterError):
        record._html(SHOWN, {"area": ".2f"})


def test_markup_in_a_cell_is_text():
    html = record._html(pd.DataFrame({"a": ["<b>"]}, index=["x & y"]), {})
    assert "&lt;b&gt;" in html


CHAPTERS = sorted(path.stem for path in notebooks_dir().glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_hides_only_set_up_and_plots_and_its_cells_are_short(name):
    path = notebooks_dir() / f"{name}.ipynb"
    lines = {"open": 0, "folded": 0}
    set_up = 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tags = cell["metadata"].get("tags", [])
        source = "".join(cell["source"])
        length = sum(
            bool(line.strip()) and not line.strip().startswith("#") for line in source.splitlines()
        )
        assert not any(tag.startswith("remove") for tag in tags)
        folded = "hide-input" in tags
        lines["folded" if folded else "open"] += length
        if "check_parameters" in source:
            set_up += 1
        elif "parameters" not in tags:
            assert length <= (25 if folded else 15), source
    assert set_up == 1
    assert lines["open"] >= 0.6 * sum(lines.values())


def test_a_plan_is_shown_with_commit_and_deviations_its_markup_as_text(tmp_path, monkeypatch):
    text = "committed: 0a1b2c3\nbar: p < .05\nnulls:\n  length: [stem, key]\ndeviations: [one]\n"
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "own.yml").write_text(text)
    monkeypatch.setattr(plans, "data_dir", lambda: tmp_path)
    monkeypatch.setattr("IPython.display.display", lambda html: shown.append(html.data))
    shown = []
    plans.plan("own")
    for part in ("0a1b2c3", "deviations: 1", "p &lt; .05", "<li>stem</li><li>key</li>"):
        assert part in shown[0]
    assert "<dt>committed" not in shown[0]
