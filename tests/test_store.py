"""The store: nothing half-written is read, nothing that is damaged is believed, nothing is lost."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import psychometrics as pm
from psychometrics.exceptions import StoreError
from psychometrics.store import StoredAnswers, compact, key_of, manifests, urls, watched
from psychometrics.store import answers as store_module
from psychometrics.store import folder as folder_module

from .killing import start_elsewhere

WHO = ("mlm", "gad7", "owner/model")


def rows_of(numbers, by: str = "") -> pd.DataFrame:
    """Answers to questions of these numbers; the text says who gave them."""
    numbers = list(numbers)
    index = pd.Index([key_of(str(number)) for number in numbers], name="key")
    values = np.array(numbers, dtype="float32") / 7
    return pd.DataFrame({"probability": values, "by": [by or "x"] * len(numbers)}, index=index)


def filled(store, parts: int = 3, each: int = 4, who=WHO) -> pd.DataFrame:
    kept = StoredAnswers(store, *who, {"dtype": "float32"})
    for part in range(parts):
        kept.add(rows_of(range(part * each, (part + 1) * each)), seconds=1.5)
    return kept.rows


def files_of(store) -> list[Path]:
    files = (path for path in Path(store).rglob("*") if path.is_file())
    return sorted(path for path in files if path.suffix != ".lock")


def read(store, who=WHO, columns=None) -> pd.DataFrame:
    return StoredAnswers(store, *who, columns=columns).rows


# What is kept


def test_what_was_added_is_read_back_in_the_order_of_writing_by_column(tmp_path):
    there = filled(tmp_path)
    pd.testing.assert_frame_equal(there, rows_of(range(12)))
    pd.testing.assert_frame_equal(read(tmp_path), there)
    assert [path.suffix for path in files_of(tmp_path)] == [".parquet"] * 3
    some = read(tmp_path, columns=["probability", "later"])
    assert list(some.columns) == ["probability", "later"]
    assert some["later"].isna().all()


def test_a_key_depends_on_each_part_and_their_order_and_never_changes():
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("c", "ab"), key_of("abc")}) == 4
    expected = hashlib.sha256(b'["respondent", "\xc3\xbcber"]').hexdigest()[:32]
    assert key_of("respondent", "über") == expected
    assert len(key_of("\ud800")) == 32, "a lone surrogate has a key too"


def test_kinds_of_values_come_back_as_they_were(tmp_path):
    kept = StoredAnswers(tmp_path, *WHO)
    one = pd.DataFrame({"value": [3], "status": ["ok"], "note": [None], "raw": ["a\x00ü"]})
    two = pd.DataFrame({"value": [np.nan], "status": ["no reply"], "note": ["why"], "n": [1.5]})
    kept.add(one.set_axis(["k1"]))
    kept.add(two.set_axis(["k2"]))
    for rows in (kept.rows, read(tmp_path)):
        assert rows["value"].tolist()[0] == 3
        assert np.isnan(rows["value"]["k2"])
        assert rows["note"].isna().tolist() == [True, False]
        assert rows["raw"]["k1"] == "a\x00ü"
        assert rows["n"].isna().tolist() == [True, False]
    kept.add(pd.DataFrame({"reply": ["4 \ud800", None]}, index=["k3", "k4"], dtype=object))
    assert read(tmp_path)["reply"].fillna("").tolist()[2:] == ["4 ?", ""], "what no file can hold"


def test_a_column_of_another_kind_of_value_is_refused_and_nothing_is_lost(tmp_path):
    there = filled(tmp_path)
    kept = StoredAnswers(tmp_path, *WHO)
    with pytest.raises(StoreError, match="other types"):
        kept.add(pd.DataFrame({"probability": ["text"]}, index=["k"]))
    pd.testing.assert_frame_equal(read(tmp_path), there)


# One row per key


def test_the_first_written_answer_counts_whoever_reads(tmp_path):
    early, late = StoredAnswers(tmp_path, *WHO), StoredAnswers(tmp_path, *WHO)
    early.add(rows_of([2, 3], "early"))
    late.add(rows_of([1, 2], "late"))
    expected = {key_of("1"): "late", key_of("2"): "early", key_of("3"): "early"}
    assert late.rows["by"].to_dict() == expected, "for who asked the same later too"
    assert early.rows["by"].to_dict() == expected
    assert read(tmp_path)["by"].to_dict() == expected
    compact(tmp_path)
    assert read(tmp_path)["by"].to_dict() == expected


def test_what_one_has_added_is_never_replaced_by_what_another_adds_later(tmp_path, monkeypatch):
    early, late = StoredAnswers(tmp_path, *WHO), StoredAnswers(tmp_path, *WHO)
    assert late.add(rows_of([1, 2], "late")) == []
    monkeypatch.setattr(store_module.time, "time_ns", lambda: 1)  # its clock is behind
    assert early.add(rows_of([2, 3], "early")) == [key_of("2")]
    assert early.rows["by"].tolist() == late.rows["by"].tolist() == ["late", "late", "early"]
    assert read(tmp_path)["by"].tolist() == ["late", "late", "early"]
    assert len({path.name[3:22] for path in files_of(tmp_path)}) == 2


def test_a_store_that_is_removed_while_answers_come_is_said(tmp_path):
    kept = StoredAnswers(tmp_path / "s", *WHO)
    kept.add(rows_of([1]))
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(StoreError, match="removed"):
        kept.add(rows_of([2]))


def test_answers_that_are_merged_meanwhile_are_still_there_and_removed_ones_are_counted(tmp_path):
    with watched() as watch:
        for seed in (1, 2, 3):
            StoredAnswers(tmp_path / "s", *WHO).add(rows_of([seed]))
        compact(tmp_path / "s")
        assert not watch.removed()
        shutil.rmtree(tmp_path / "s")
        StoredAnswers(tmp_path / "s", *WHO).add(rows_of([4]))
    assert watch.removed().total() == 3


@pytest.mark.parametrize("name", ["file/x", "fifo", "dangling", "fifo/x", "loop/x"])
def test_a_store_that_can_be_no_folder_is_refused_before_anyone_is_asked(name, tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for store in (tmp_path / name, (tmp_path / name).as_uri()):
        with pytest.raises(StoreError):
            StoredAnswers(store, *WHO)


@pytest.mark.parametrize("name", ["  ", "file://", "file:///", "file://here/x", "s3://", "gs://"])
def test_a_name_of_no_folder_is_refused_at_once(name):
    with pytest.raises(StoreError):
        StoredAnswers(name, *WHO)


ODD_PARTS = {
    "no rows": lambda rows: rows[:0],
    "no key": lambda rows: rows.assign(key=None),
    "keys that are numbers": lambda rows: rows.assign(key=range(len(rows))),
    "no time": lambda rows: rows.assign(written=None),
    "a time in words": lambda rows: rows.assign(written="today"),
    "a manifest of no table": lambda rows: rows.assign(manifest="[]"),
}


@pytest.mark.parametrize("damage", ODD_PARTS)
def test_a_part_without_keys_or_times_is_set_aside_and_the_others_are_read(damage, tmp_path):
    there = filled(tmp_path)
    (part, *_) = files_of(tmp_path)
    rows = pq.read_table(part).to_pandas()
    odd = tmp_path / "odd.parquet"
    pq.write_table(pa.Table.from_pandas(ODD_PARTS[damage](rows), preserve_index=False), odd)
    digest = hashlib.sha256(odd.read_bytes()).hexdigest()
    odd.rename(part.with_name(f"v1-{1:019d}-{digest}.parquet"))

    with pytest.warns(UserWarning, match="set aside"):
        pd.testing.assert_frame_equal(read(tmp_path), there)
    assert len(manifests(tmp_path)) == 1
    assert compact(tmp_path) == 2


def test_a_file_whose_name_is_no_text_is_passed_over(tmp_path):
    there = filled(tmp_path)
    folder = files_of(tmp_path)[0].parent
    Path(os.fsdecode(os.fsencode(folder) + b"/v1-\xff.parquet")).write_bytes(b"x")
    pd.testing.assert_frame_equal(read(tmp_path), there)


def test_a_key_is_kept_once_and_written_once(tmp_path):
    kept = StoredAnswers(tmp_path, *WHO)
    kept.add(pd.concat([rows_of([1, 2], "a"), rows_of([2, 3], "b")]))
    kept.add(rows_of([3, 1], "c"))
    assert kept.rows["by"].tolist() == ["a", "a", "b"]
    assert len(files_of(tmp_path)) == 1, "what is kept is not written again"
    assert key_of("3") in kept
    assert key_of("4") not in kept
    assert len(kept) == 3


# Where it is kept


@pytest.mark.parametrize(
    "name", ["../../x", "..", ".", "", "/etc/x", "a\x00b", "é" * 300, "𝔘" * 300, "\ud800", "a b\n"]
)
def test_no_name_leaves_the_store(tmp_path, name):
    store = tmp_path / "deep" / "store"
    for who in ((name, "q", "r"), ("m", name, "r"), ("m", "q", name)):
        StoredAnswers(store, *who).add(rows_of([1]))
        assert len(read(store, who)) == 1
    assert all(path.is_relative_to(store) for path in files_of(tmp_path))
    assert {len(path.relative_to(store).parts) for path in files_of(tmp_path)} == {4}


def test_the_store_is_where_the_variable_says(tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "here"))
    StoredAnswers(None, *WHO).add(rows_of([1]))
    assert len(read(None)) == 1
    assert (tmp_path / "here" / "mlm" / "gad7").is_dir()


@pytest.mark.parametrize("kind", ["file://{}", "memory://{}"])
def test_a_store_may_be_a_url(tmp_path, kind):
    url = kind.format(tmp_path / "store")
    there = filled(url)
    assert manifests(url)["answers"].tolist() == [12]
    assert compact(url) == 2
    pd.testing.assert_frame_equal(read(url), there)
    if kind.startswith("file"):
        pd.testing.assert_frame_equal(read(tmp_path / "store"), there)


@pytest.mark.parametrize(
    "store",
    [5, b"x", "", "~nosuchuser/x", "a\x00b", "nosuch://me:hidden1@x", "\ud800", "s3://",
     "s3://bucket/x?access_key=a&secret_key=hidden1"],
)  # fmt: skip
def test_what_is_no_store_is_said_without_the_secret_of_a_url(store):
    with pytest.raises(StoreError, match="--store") as error:
        StoredAnswers(store, *WHO).add(rows_of([1]))
    assert "hidden1" not in str(error.value)
    assert "PSYCHOMETRICS_STORE" not in str(error.value)


def test_what_is_configured_wrongly_names_the_variable_and_not_the_option(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("mine")
    for store in (" ", tmp_path / "file", "nosuch://x"):
        monkeypatch.setenv("PSYCHOMETRICS_STORE", str(store))
        with pytest.raises(StoreError, match="PSYCHOMETRICS_STORE") as error:
            StoredAnswers(None, *WHO).add(rows_of([1]))
        assert "--store" not in str(error.value)


def test_a_store_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("mine")
    for store in (tmp_path / "file", f"file://{tmp_path}/file"):
        for use in (lambda s: StoredAnswers(s, *WHO), compact, manifests):
            with pytest.raises(StoreError, match="is a file, not a store: name another folder"):
                use(store)
    with pytest.raises(StoreError, match="--store"):
        filled(tmp_path / "file" / "below")
    (tmp_path / "mlm").write_text("mine")
    with pytest.raises(StoreError, match="PSYCHOMETRICS_STORE"):
        filled(tmp_path)
    assert (tmp_path / "file").read_text("utf-8") == (tmp_path / "mlm").read_text("utf-8") == "mine"


def test_who_may_read_is_for_the_umask_to_say(tmp_path):
    for mask, mode in ((0o077, 0o600), (0o022, 0o644)):
        before = os.umask(mask)
        try:
            filled(tmp_path / oct(mask), parts=2)
            compact(tmp_path / oct(mask))
        finally:
            os.umask(before)
        assert {path.stat().st_mode & 0o777 for path in files_of(tmp_path / oct(mask))} == {mode}


# Damage


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_part_cut_short_is_set_aside_and_nothing_else_is_lost(tmp_path, share):
    filled(tmp_path)
    path = files_of(tmp_path)[1]
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.warns(UserWarning, match="its questions are asked again"):
        rows = read(tmp_path)
    pd.testing.assert_frame_equal(rows, rows_of([0, 1, 2, 3, 8, 9, 10, 11]))
    assert not path.exists()
    assert path.with_name(f"{path.name}.damaged-1").exists()
    kept = StoredAnswers(tmp_path, *WHO)  # without a warning now
    kept.add(rows_of(range(4, 8)))
    assert len(read(tmp_path)) == 12


def test_each_of_thirty_flipped_bytes_is_noticed(tmp_path):
    filled(tmp_path, parts=1, each=40)
    path = files_of(tmp_path)[0]
    whole = path.read_bytes()
    chance = random.Random(0)
    places = [0, len(whole) - 1, len(whole) - 6, *chance.sample(range(len(whole)), 27)]
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        with pytest.warns(UserWarning, match="damaged or cut short"):
            assert read(tmp_path).empty
    assert len(files_of(tmp_path)) == 30, "each is there to look at"
    path.write_bytes(whole)
    assert len(read(tmp_path)) == 40


@pytest.mark.parametrize("kind", ["text", "parquet", "copy", "named as a part"])
def test_a_foreign_part_is_set_aside_and_nothing_else_is_lost(tmp_path, kind):
    there = filled(tmp_path)
    path = files_of(tmp_path)[0].with_name("notes.parquet")
    if kind == "copy":
        shutil.copy(files_of(tmp_path)[0], path)
    elif kind == "text":
        path.write_text("not parquet at all")
    else:
        pd.DataFrame({"a": [1]}).to_parquet(path)
    if kind == "named as a part":
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        path.rename(path.with_name(f"v1-{7:019d}-{digest}.parquet"))
    with pytest.warns(UserWarning, match="is not a part of a store: it was set aside"):
        pd.testing.assert_frame_equal(read(tmp_path), there)
    pd.testing.assert_frame_equal(read(tmp_path), there)


@pytest.mark.parametrize("use", [read, compact])
@pytest.mark.parametrize(
    "who", [("chat", *WHO[1:]), (WHO[0], "phq9", WHO[2]), (*WHO[:2], "owner/another")]
)
def test_a_part_of_another_folder_is_set_aside_though_it_is_older_than_all(tmp_path, who, use):
    words = pd.DataFrame({"probability": ["text"]}, index=["k"])
    StoredAnswers(tmp_path / "other", *who).add(words)
    there = filled(tmp_path / "store")
    shutil.copy(files_of(tmp_path / "other")[0], files_of(tmp_path / "store")[0].parent)
    with pytest.warns(UserWarning, match="belong to another folder: it was set aside") as warned:
        use(tmp_path / "store")
    assert len(warned) == 1, "and none of those that belong here"
    pd.testing.assert_frame_equal(read(tmp_path / "store"), there)
    assert manifests(tmp_path / "store")["answers"].tolist() == [12]


def test_other_files_are_left_alone_and_a_part_of_a_newer_version_is_said(tmp_path):
    filled(tmp_path)
    folder = files_of(tmp_path)[0].parent
    (folder / "README.txt").write_text("mine")
    (tmp_path / "mlm" / "old.parquet").write_text("of an earlier version")
    newer = folder / "v2-of-another-kind.parquet"
    newer.write_text("what this version does not know")
    for use in (read, manifests):
        with pytest.raises(StoreError, match="newer version"):
            use(tmp_path)
    assert compact(tmp_path) == 2
    assert len(files_of(tmp_path)) == 4
    newer.unlink()
    assert len(read(tmp_path)) == 12


def test_a_store_that_may_only_be_read_is_read_and_damage_is_said(tmp_path, monkeypatch):
    there, allowed = filled(tmp_path), ["get_file_info", "open_input_file"]

    class Refusing:
        type_name = "local"

        def __getattr__(self, name):
            return getattr(pyarrow.fs.LocalFileSystem(), name) if name in allowed else self.refuse

        def refuse(self, *_, **__):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(urls, "_LOCAL", Refusing())
    kept = StoredAnswers(tmp_path, *WHO)
    pd.testing.assert_frame_equal(kept.rows, there)
    with pytest.raises(StoreError):
        kept.add(rows_of([50]))
    path = files_of(tmp_path)[2]
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):
        with pytest.warns(UserWarning, match="cannot be set aside"):
            assert len(read(tmp_path)) == 8
    assert path.exists()
    allowed.remove("open_input_file")
    with pytest.raises(StoreError):
        read(tmp_path)


# Full disks, kills, other processes


def test_a_limit_on_files_is_said_as_a_full_disk_is(tmp_path):
    there = filled(tmp_path)
    kept = StoredAnswers(tmp_path, *WHO)
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError, match="free some space"):
            kept.add(rows_of(range(50, 100)))
        with pytest.raises(StoreError, match="free some space"):
            compact(tmp_path)
        kept.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        signal.signal(signal.SIGXFSZ, before)
    pd.testing.assert_frame_equal(read(tmp_path), there)
    assert len(files_of(tmp_path)) == 3, "nothing half is left"


def put_own(store, writer: int, barrier: str, questions: int) -> None:
    """One writer of several: own questions, and some that all ask."""
    kept = StoredAnswers(store, *WHO)
    while not Path(barrier).exists():
        time.sleep(0.001)
    for start in range(0, questions, 10):
        own = range(1000 * (writer + 1) + start, 1000 * (writer + 1) + start + 10)
        kept.add(pd.concat([rows_of(own, f"w{writer}"), rows_of([start], f"w{writer}")]))


def test_four_writers_at_once_lose_no_row_and_agree_on_the_first(tmp_path):
    go = str(tmp_path / "go")
    started = [start_elsewhere(put_own, tmp_path / "s", writer, go, 80) for writer in range(4)]
    Path(go).touch()
    compactions = 0
    while any(process.is_alive() for process in started):
        compactions += compact(tmp_path / "s") > 0
    for process in started:
        process.join()
        assert process.exitcode == 0
    rows = read(tmp_path / "s")
    numbers = [1000 * (writer + 1) + n for writer in range(4) for n in range(80)]
    assert set(rows.index) == {key_of(str(n)) for n in [*numbers, *range(0, 80, 10)]}
    compact(tmp_path / "s")
    assert read(tmp_path / "s")["by"].to_dict() == rows["by"].to_dict()
    assert len(files_of(tmp_path / "s")) == 1
    assert compactions > 0, "some parts were merged beside the writers"


def compact_for_ever(store) -> None:
    while True:
        compact(store)


def test_readers_see_all_rows_while_others_compact_and_add(tmp_path):
    filled(tmp_path, parts=30, each=10)
    process = start_elsewhere(compact_for_ever, tmp_path)
    writer = StoredAnswers(tmp_path, *WHO)
    try:
        for number in range(40):
            writer.add(rows_of([1000 + number]))
            assert len(read(tmp_path)) == 301 + number
    finally:
        process.kill()
        process.join()
    assert len(read(tmp_path)) == 340


def test_after_a_part_could_not_be_read_none_is_missing(tmp_path, monkeypatch):
    kept = StoredAnswers(tmp_path, *WHO)
    kept.add(rows_of([50]))
    there = filled(tmp_path)
    opened = folder_module.Folder.read

    def failing(self, name, *others):
        if name == files_of(tmp_path)[1].name:
            raise StoreError("cannot be read")
        return opened(self, name, *others)

    with monkeypatch.context() as patch:
        patch.setattr(folder_module.Folder, "read", failing)
        with pytest.raises(StoreError):
            _ = kept.rows
    assert len(kept.rows) == len(there)


# Compaction


def test_compaction_changes_no_row_and_no_manifest(tmp_path):
    for who in (WHO, ("chat", "phq9", "r")):
        filled(tmp_path, parts=5, who=who)
    rows, said = read(tmp_path), manifests(tmp_path)
    assert compact(tmp_path) == 8
    pd.testing.assert_frame_equal(read(tmp_path), rows)
    pd.testing.assert_frame_equal(manifests(tmp_path), said)
    names = [path.name for path in files_of(tmp_path)]
    assert len(names) == 2
    assert compact(tmp_path) == 0
    assert [path.name for path in files_of(tmp_path)] == names, "one part is not written again"


def test_small_parts_are_merged_until_the_next_is_larger_than_all_of_them(tmp_path):
    # three parts of 4 rows and one of 20,000: the large one stays, the small ones become one
    filled(tmp_path, parts=3)
    small = set(files_of(tmp_path))
    StoredAnswers(tmp_path, *WHO).add(rows_of(range(100, 20_100)))
    (large,) = set(files_of(tmp_path)) - small
    (folder,) = folder_module.folders(tmp_path)
    assert folder.compact(only_small=True) == 2
    after = set(files_of(tmp_path))
    assert large in after
    assert len(after) == 2
    assert folder.compact(only_small=True) == 0, "the small one is no match for the large one"
    assert folder.compact() == 1


def test_killed_between_the_two_steps_of_compaction_nothing_is_lost_or_twice(tmp_path, monkeypatch):
    rows, said = filled(tmp_path, parts=5), manifests(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(folder_module.Folder, "_delete", killed)
    for parts in (6, 7):
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path)
        assert len(files_of(tmp_path)) == parts
        pd.testing.assert_frame_equal(read(tmp_path), rows)
        pd.testing.assert_frame_equal(manifests(tmp_path), said)
    monkeypatch.undo()
    assert compact(tmp_path) == 6
    pd.testing.assert_frame_equal(read(tmp_path), rows)
    pd.testing.assert_frame_equal(manifests(tmp_path), said)


def test_a_merged_part_is_bounded(tmp_path, monkeypatch):
    rows = filled(tmp_path, parts=20, each=50)
    monkeypatch.setattr(folder_module, "_MERGED_BYTES", 20_000)
    assert compact(tmp_path) == 20 - len(files_of(tmp_path))
    assert 3 <= len(files_of(tmp_path)) <= 8
    pd.testing.assert_frame_equal(read(tmp_path), rows)


def test_what_a_killed_writer_left_goes_a_day_later(tmp_path):
    filled(tmp_path)
    folder = files_of(tmp_path)[0].parent
    fresh, stale = folder / ".v1-1-a.parquet.tmp", folder / ".v1-2-b.parquet.tmp"
    for path in (fresh, stale):
        path.write_text("half")
    os.utime(stale, (time.time() - 90_000,) * 2)
    compact(tmp_path)
    assert fresh.exists()
    assert not stale.exists()


def test_a_part_that_another_takes_for_a_leftover_while_it_is_written_is_written_again(tmp_path):
    taken, done = set(), threading.Event()

    def take_each_once():
        while not done.is_set():
            for path in set(tmp_path.rglob(".v1-*.tmp")) - taken:
                path.unlink(missing_ok=True)
                taken.add(path)

    another = threading.Thread(target=take_each_once)
    another.start()
    kept = StoredAnswers(tmp_path, *WHO)
    try:
        for number in range(50):
            kept.add(rows_of([number]))
    finally:
        done.set()
        another.join()
    assert taken
    pd.testing.assert_frame_equal(read(tmp_path), rows_of(range(50)))


def test_closing_merges_many_small_parts_and_no_few(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_MANY_PARTS", 8)
    for number, parts in ((8, 8), (0, 8), (1, 1)):  # who only reads changes nothing
        with StoredAnswers(tmp_path, *WHO) as kept:
            for more in range(len(kept), len(kept) + number):
                kept.add(rows_of([more]))
        assert len(files_of(tmp_path)) == parts
    pd.testing.assert_frame_equal(read(tmp_path), rows_of(range(9)))


# Manifests


def test_manifests_say_who_answered_how_with_which_version(tmp_path):
    assert manifests(tmp_path / "nowhere").empty
    assert "answers" in manifests(tmp_path / "nowhere")
    for number, dtype in enumerate(("float32", "bfloat16", "float32")):
        kept = StoredAnswers(
            tmp_path, *WHO, {"revision": "abc", "dtype": dtype, "n": {"a": number % 2}}
        )
        kept.add(rows_of(range(number * 10, number * 10 + 5)), seconds=2.0)
    StoredAnswers(tmp_path, "chat", "phq9", "r\ud800", {"endpoint": "e"}).add(rows_of([1]))
    said = manifests(tmp_path).sort_values("answers", ignore_index=True)
    assert said["answers"].tolist() == [1, 5, 10]
    assert said["seconds"].round(6).tolist() == [0, 2, 4]
    assert said["dtype"].tolist()[1:] == ["bfloat16", "float32"]
    assert said["mode"].tolist() == ["chat", "mlm", "mlm"]
    assert said["questionnaire"].tolist() == ["phq9", "gad7", "gad7"]
    assert set(said["package_version"]) == {pm.__version__}
    assert (said["first"] <= said["last"]).all()
    text = b"".join(path.read_bytes() for path in files_of(tmp_path))
    assert os.uname().nodename.encode() not in text, "no host is named"


# Collecting


def test_collected_rows_are_saved_with_the_512th_question_and_when_they_are_read(tmp_path):
    kept = StoredAnswers(tmp_path, *WHO)

    def collect(numbers, questions):
        rows = rows_of(numbers)
        kept.collect(rows.reset_index(drop=True), list(rows.index), questions)

    collect([0, 1], 511)
    assert files_of(tmp_path) == []
    collect([2], 1)
    assert len(files_of(tmp_path)) == 1
    pd.testing.assert_frame_equal(read(tmp_path), rows_of([0, 1, 2]))
    collect([3], 511)
    assert len(read(tmp_path)) == 3, "the count begins anew after each save"
    pd.testing.assert_frame_equal(kept.rows, rows_of(range(4)))
    assert len(read(tmp_path)) == 4


def test_collected_rows_are_saved_after_20_seconds_which_are_counted_once(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(store_module.time, "perf_counter", lambda: now[0])
    with StoredAnswers(tmp_path, *WHO) as kept:
        for number, later in enumerate((19.9, 20.0, 30.0)):
            now[0] = 100.0 + later
            rows = rows_of([number])
            kept.collect(rows.reset_index(drop=True), list(rows.index), 1)
            assert len(files_of(tmp_path)) == (later >= 20.0)
    assert len(files_of(tmp_path)) == 2, "closing saves the rest"
    assert manifests(tmp_path)["seconds"].tolist() == pytest.approx([30.0])


# Growth


def test_many_short_runs_rewrite_a_row_few_times(tmp_path, monkeypatch):
    folder, merged = folder_module.Folder, []
    write = folder.write
    monkeypatch.setattr(store_module, "_MANY_PARTS", 4)
    monkeypatch.setattr(folder, "_sync", lambda *_: None)
    monkeypatch.setattr(folder, "write", lambda s, t: merged.append(len(t)) or write(s, t))
    for run in range(30):
        with StoredAnswers(tmp_path, *WHO) as kept:
            for start in range(run * 200, run * 200 + 200, 50):
                kept.add(rows_of(range(start, start + 50)))
    assert len(read(tmp_path)) == 6_000
    assert sum(merged) < 6_000 * 7, "about the logarithm of the runs, not their number"
    assert len(files_of(tmp_path)) < 20


def test_shipped_answers_lie_below_every_store_and_none_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "data_dir", lambda: tmp_path / "data")
    filled(tmp_path / "data" / "answers", parts=1, each=2)
    before = files_of(tmp_path / "data")
    with StoredAnswers(tmp_path / "mine", *WHO) as kept:
        assert len(kept) == 2
        kept.add(rows_of([1, 2], "mine"))
        pd.testing.assert_frame_equal(kept.rows, pd.concat([rows_of([0, 1]), rows_of([2], "mine")]))
    assert files_of(tmp_path / "data") == before
    assert read(tmp_path / "mine")["by"].tolist() == ["x", "x", "mine"]
    assert read(tmp_path / "mine", ("mlm", "phq9", "m")).empty
