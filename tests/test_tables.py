"""The built book shows the kept tables; `make tables` renews them and prints what moved."""

from __future__ import annotations

import os
import shutil

import pytest

from psychometrics.paths import book_dir, data_dir
from psychometrics.record import moved

KEPT, BUILT = data_dir() / "tables", book_dir() / "chapters"


def test_the_built_book_shows_the_kept_tables():
    if not list(BUILT.glob("*/tab-*.csv")):
        pytest.skip("the book has not been built: make book")
    if "PSYCHOMETRICS_DATA_MIRROR" not in os.environ:
        pytest.skip("some tables rest on texts that others own: PSYCHOMETRICS_DATA_MIRROR")
    found = moved(KEPT, BUILT)
    assert found.empty, found.to_string()


def test_a_number_that_moved_a_row_and_a_table_that_went_are_named(tmp_path):
    for top in ("kept", "runs"):
        (tmp_path / top / "04-own").mkdir(parents=True)
    (tmp_path / "kept" / "04-own" / "tab-a.csv").write_text("who,r,word\na,0.5,yes\nb,0.1,no\n")
    runs = tmp_path / "runs" / "04-own" / "tab-a.csv"
    runs.write_text("who,r,word\na,0.5004,yes\n")
    found = moved(tmp_path / "kept", tmp_path / "runs")
    assert set(found["kept"]) == {"b", "0.1", "no"}
    runs.write_text("who,r,word\na,0.6,no\nb,0.1,no\n")
    found = moved(tmp_path / "kept", tmp_path / "runs")
    assert found["now"].tolist() == ["0.6", "no"]
    (tmp_path / "kept" / "tolerances.csv").write_text("table,column,tolerance\ntab-a,r,0.2\n")
    assert moved(tmp_path / "kept", tmp_path / "runs")["now"].tolist() == ["no"]
    shutil.rmtree(tmp_path / "runs" / "04-own")
    assert (moved(tmp_path / "kept", tmp_path / "runs")["now"] == "").all()
