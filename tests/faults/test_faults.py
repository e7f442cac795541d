"""Runs that are killed, drivers at once: nothing is lost.

What is done is real: see ``tests.faults``, which runs here with small numbers (or
``PSYCHOMETRICS_KILLS`` hits of each fault) and writes ``data/faults.csv`` with large ones.
"""

from __future__ import annotations

import os
import re
import sys

import pandas as pd
import pytest

from psychometrics.paths import data_dir
from psychometrics.store import StoredAnswers
from tests.faults import faults
from tests.killing import run_elsewhere

pytestmark = pytest.mark.timeout(1800)  # with large numbers, or where others work too
MANY = "PSYCHOMETRICS_KILLS" in os.environ
TIMES = int(os.environ.get("PSYCHOMETRICS_KILLS", "1"))
in_the_full_round = pytest.mark.skipif(not MANY, reason="minutes: make faults")


@pytest.fixture(scope="module")
def happened(tmp_path_factory):
    """Rows of the faults of this round, which lost nothing, by engine, fault and mode."""
    if sys.platform != "linux":
        pytest.skip("processes are watched as on Linux")
    output = tmp_path_factory.mktemp("faults") / "faults.csv"
    named = [fault for fault in faults.FAULTS if MANY or fault != "killed_on_ray"]
    run_elsewhere(faults.inject, named, TIMES, output)
    rows = pd.read_csv(output, keep_default_na=False).set_index(["engine", "fault", "mode"])
    assert (rows[["lost", "doubled", "different"]] == 0).all(axis=None), rows.to_string()
    return rows.sort_index()


def again(note: str) -> int:
    """How many requests were sent again, by a note."""
    return int(re.search(r"requests sent again: (\d+)", note)[1])


def test_each_mode_killed_at_random_ends_with_what_an_undisturbed_run_keeps(happened):
    rows = happened.loc["local", "kill -9"]
    assert set(rows.index) >= {*(faults.WAYS if TIMES > 1 else faults.SMALL_ROUND)}
    assert (rows["interrupted"] >= TIMES).all()
    # At most what was in the air: four requests at once, and one call.
    assert again(rows.loc["chat", "note"]) <= 4 * rows.loc["chat", "interrupted"]
    assert again(rows.loc["custom", "note"]) <= rows.loc["custom", "interrupted"]


@in_the_full_round
def test_drivers_and_workers_of_a_cluster_that_are_killed_lose_nothing(happened):
    pytest.importorskip("ray", reason="the engine for clusters is an extra")
    row = happened.loc["ray", "kill -9", "nli"]
    assert row["interrupted"] == TIMES
    assert re.search(rf"killed: {(TIMES + 1) // 2} drivers, {TIMES // 2} workers", row["note"])


def test_of_drivers_at_once_each_question_is_kept_once_while_another_compacts(happened):
    rows = happened.loc["local"]
    for count in (2, 4) if MANY else (2,):
        asked = rows.loc[f"{count} drivers at once"]
        assert set(asked.index) == {"nli", "chat"}
        assert (asked["runs"] >= count).all()
        # The second driver waits: what it would send is paid for once.
        assert again(asked.loc["chat", "note"]) <= 4 * asked.loc["chat", "interrupted"]


def test_the_comparison_sees_what_is_lost_different_and_too_much(tmp_path):
    def keep(store, **probabilities):
        values = pd.DataFrame({"probability": probabilities.values()}, index=list(probabilities))
        StoredAnswers(store, "mlm", "gad7", "model").add(values)

    keep(tmp_path / "undisturbed", a=0.1, b=0.2, c=0.3)
    keep(tmp_path / "equal", c=0.3, a=0.1)
    keep(tmp_path / "equal", b=0.2)
    keep(tmp_path / "other", a=0.1, b=0.25, d=0.4)
    for store, lost, different in (("equal", 0, 0), ("other", 1, 2)):
        expected = {"lost": lost, "doubled": 0, "different": different}
        assert faults._compared(tmp_path / store, tmp_path / "undisturbed") == expected


def test_the_shipped_table_has_twenty_hits_of_each_kill_and_nothing_lost():
    table = pd.read_csv(data_dir() / "faults.csv", keep_default_na=False)
    assert table.columns.tolist() == faults.COLUMNS
    assert not table.duplicated(["fault", "engine", "mode"]).any()
    assert (table[["lost", "doubled", "different"]] == 0).all(axis=None)
    local = table[(table["fault"] == "kill -9") & (table["engine"] == "local")]
    assert set(local["mode"]) == set(faults.WAYS)
    assert (local["interrupted"] >= 20).all()
    on_ray = table[(table["fault"] == "kill -9") & (table["engine"] == "ray")]
    assert (on_ray["interrupted"] >= 20).tolist() == [True]
    for what in ("clock", "drivers at once"):
        assert (table.loc[table["fault"].str.contains(what), "runs"] >= 20).all()
