"""The store: nothing half-written is read, and nothing stored is lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

import pandas as pd
import pytest

from psychometrics.exceptions import StoreError
from psychometrics.store import (
    PROBABILITIES,
    answer_keys,
    answers_path,
    read_answers,
    read_manifest,
    write_answers,
)


@pytest.fixture
def answers() -> pd.DataFrame:
    rows = [["I am sad.", "It is so.", 0.5, 0.25, 0.25], ["I am glad.", "It is so.", 0.1, 0.2, 0.7]]
    frame = pd.DataFrame(rows, columns=["premise", "hypothesis", *PROBABILITIES])
    frame.index = pd.Index(answer_keys("f", frame), name="key")
    return frame


def test_what_was_written_is_read_back(tmp_path, answers):
    path = answers_path(tmp_path, "owner/model", "gad7", "nli")
    write_answers(path, answers, {"seconds": 1.5})
    pd.testing.assert_frame_equal(read_answers(path), answers)
    assert read_manifest(path) == {"seconds": 1.5}
    assert sorted(file.suffix for file in path.parent.iterdir()) == [".json", ".parquet"]


def test_keys_depend_on_respondent_premise_and_hypothesis(answers):
    swapped = answers.rename(columns={"premise": "hypothesis", "hypothesis": "premise"})
    keys = [answer_keys("f", answers), answer_keys("g", answers), answer_keys("f", swapped)]
    assert len({key for part in keys for key in part}) == 6
    assert answer_keys("f", answers) == keys[0]


def test_names_that_look_alike_do_not_share_a_file(tmp_path):
    paths = {answers_path(tmp_path, name, "gad7", "nli") for name in ("a/b", "a-b", "a b")}
    assert len(paths) == 3
    assert all(path.parent == tmp_path / "nli" / "gad7" for path in paths)


def test_a_file_cut_short_is_set_aside_with_a_warning(tmp_path, answers):
    path = tmp_path / "answers.parquet"
    for number in (1, 2):
        write_answers(path, answers, {})
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.warns(UserWarning, match=f"set aside as answers.parquet.damaged-{number}"):
            assert read_answers(path).empty
        assert (
            path.with_name(f"answers.parquet.damaged-{number}").read_bytes()
            == whole[: len(whole) // 2]
        )
        assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"not parquet at all"])
def test_a_file_that_is_no_parquet_is_set_aside(tmp_path, content):
    path = tmp_path / "answers.parquet"
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged or cut short"):
        assert read_answers(path).empty


def test_a_parquet_file_of_something_else_is_set_aside(tmp_path):
    path = tmp_path / "answers.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.warns(UserWarning, match="damaged"):
        assert read_answers(path).empty


def test_a_damaged_manifest_does_not_matter(tmp_path, answers):
    path = tmp_path / "answers.parquet"
    write_answers(path, answers, {})
    path.with_suffix(".json").write_text("{")
    assert read_manifest(path) == {}


def test_a_full_disk_ends_in_one_sentence_and_keeps_what_was_stored(tmp_path, answers):
    path = tmp_path / "answers.parquet"
    write_answers(path, answers, {"seconds": 1.0})
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError) as error:
            write_answers(path, pd.concat([answers] * 50), {"seconds": 2.0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert "free some space" in str(error.value)
    assert str(path) in str(error.value)
    pd.testing.assert_frame_equal(read_answers(path), answers)
    assert json.loads(path.with_suffix(".json").read_text()) == {"seconds": 1.0}
    assert len(list(tmp_path.iterdir())) == 2, "no temporary file is left"


def test_a_store_that_is_a_file_is_named(tmp_path, answers):
    (tmp_path / "store").write_text("")
    with pytest.raises(StoreError, match="name another folder in PSYCHOMETRICS_STORE"):
        write_answers(answers_path(tmp_path / "store", "r", "gad7", "nli"), answers, {})


def test_a_write_killed_at_any_moment_leaves_the_old_file_or_the_new(tmp_path, answers):
    path = tmp_path / "answers.parquet"
    write_answers(path, answers, {})
    code = (
        "import sys, pandas as pd\n"
        "from pathlib import Path\n"
        "from psychometrics.store import read_answers, write_answers\n"
        "path = Path(sys.argv[1]); answers = read_answers(path)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    write_answers(path, answers, {})\n"
    )
    for wait in (0.02, 0.05, 0.11):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(wait)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        pd.testing.assert_frame_equal(read_answers(path), answers)
