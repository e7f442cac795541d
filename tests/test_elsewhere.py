"""`make elsewhere` compares what chapters print, cell by cell."""

from __future__ import annotations

import json

from recipes import elsewhere


def _save_chapter(folder, name: str, table: str, value: str) -> None:
    html = f"<table><tr><th>who</th><th>r</th></tr><tr><td>a</td><td>{value}</td></tr></table>"
    cell = {
        "cell_type": "code",
        "source": [f'book.table(frame, "{table}", "A caption.")'],
        "outputs": [{"data": {"text/html": [html]}}],
    }
    prose = {"cell_type": "markdown", "source": ["no table"]}
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps({"cells": [prose, cell]}), encoding="utf-8")


def test_printed_cells_are_found_by_chapter_and_table_and_seconds_are_left_out(tmp_path):
    _save_chapter(tmp_path, "04-own", "tab-a", "0.50")
    _save_chapter(tmp_path, "benchmarks", "tab-speed", "1.3")
    cells = elsewhere.printed_cells(tmp_path)
    assert list(cells.values()) == ["who", "r", "a", "0.50"]
    assert {key[:2] for key in cells} == {("04-own", "tab-a")}


def test_every_setting_but_the_first_changes_something():
    first, *others = elsewhere.SETTINGS.values()
    assert first == {}
    assert all(others)
