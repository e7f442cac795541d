from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psychometrics import data, training
from psychometrics.data import text_table
from psychometrics.exceptions import DataError, ParameterError
from tests.conftest import needs

NLI_FILES = [key for key in data.registry() if key.startswith(("mnli_", "snli_"))]
needs_nli_text = needs(*NLI_FILES)


def test_every_registry_entry_says_where_what_and_under_which_terms():
    for key, entry in data.registry().items():
        assert set(entry) == {"repository", "commit", "path", "sha256", "licence"}, key
        assert len(entry["commit"]) == 40, key
        assert len(entry["sha256"]) == 64, key


def test_a_mirrored_file_with_other_content_is_refused(mirrored):
    with pytest.raises(DataError, match=r"wrong checksum .data/registry\.yml, .*delete"):
        data.fetch("mnli_neutral")


@pytest.fixture
def mirrored(tmp_path, monkeypatch):
    """A mirror with a file at the place of ``mnli_neutral``, and an empty cache."""
    entry = data.registry()["mnli_neutral"]
    path = tmp_path / entry["repository"] / entry["commit"] / entry["path"]
    path.parent.mkdir(parents=True)
    path.write_text("premise,hypothesis\n")
    monkeypatch.setenv("PSYCHOMETRICS_DATA_MIRROR", str(tmp_path))
    monkeypatch.setattr(data, "cache_dir", lambda: tmp_path / "cache")
    return path


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "/cache"), "/cache cannot be read or written"),
        (ValueError("SHA256 hash of downloaded file does not match"), "wrong checksum .*; repeat"),
        (ConnectionError("no route"), r"could not be downloaded .*\(ConnectionError\); connect"),
    ],
)
def test_what_keeps_a_download_away_is_told_with_the_mend(mirrored, monkeypatch, error, said):
    import pooch

    def refuse(*_, **__):
        raise error

    mirrored.unlink()
    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(data.DataError, match=said):
        data.fetch("mnli_neutral")


@pytest.mark.parametrize("key", ["mnli", None, 5, ["mnli_neutral"]])
def test_what_is_no_key_is_refused_also_when_asked_whether_it_is_there(key):
    for ask in (data.fetch, data.available):
        with pytest.raises(data.DataError, match="has no entry"):
            ask(key)


@needs_nli_text
def test_held_out_pairs_share_no_premise_with_the_rest_and_lines_of_snli_belong_together():
    frame = training.pairs.mnli_sample()
    out, rest = frame[frame["held_out"]], frame[~frame["held_out"]]
    assert len(out) >= 1500
    assert not set(out["premise"].str.strip()) & set(rest["premise"].str.strip())
    assert out["label"].value_counts(normalize=True).between(0.3, 0.37).all()
    frame = training.pairs.nli_pairs("snli")
    assert len(frame) == 9842 + 9824
    assert not frame.isna().any(axis=None)
    # the upstream's order is neutral, entailment, contradiction for its first image
    assert frame["label"].head(3).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.csv", "item,scale\nIch bin müde,s\n".encode()),
        ("a.csv", "\ufeffitem,scale\r\nIch bin müde,s\r\n\r\n".encode()),
        ("a.csv", "item;scale\nIch bin müde;s\n".encode("cp1252")),
        ("a.csv", '"item";"scale"\n"Ich bin müde";"s"\n'.encode("utf-16")),
        ("a.tsv", "item\tscale\nIch bin müde\ts\n".encode()),
        ("a.tsv", '"item"\tscale\n"Ich bin müde"\ts\n'.encode()),
    ],
)
def test_a_table_is_read_as_spreadsheets_save_it(name, raw, tmp_path):
    (tmp_path / name).write_bytes(raw)
    read = text_table(tmp_path / name, ["item"], notes=[])
    assert read.to_dict("records") == [{"item": "Ich bin müde", "scale": "s"}]


def test_a_lone_quotation_mark_in_a_table_with_tabs_is_a_letter(tmp_path):
    (tmp_path / "a.tsv").write_text('item\tscale\n"I said\ts\n')
    assert text_table(tmp_path / "a.tsv").to_dict("records") == [{"item": '"I said', "scale": "s"}]


@pytest.mark.parametrize(
    "raw",
    [
        b"item,options\nI like tea, and coffee,0=no;1=yes\n",
        b'item,scale\n"I like tea,s\nI like milk,s\n', b"item,item\na,b\n", b"text\na\n", b"",
        b"\xff\xfe\x00", b"item\n\x81\x8d\x00\n",
    ],
)  # fmt: skip
def test_a_table_that_would_lose_text_is_refused(raw, tmp_path):
    (tmp_path / "a.csv").write_bytes(raw)
    with pytest.raises(ParameterError):
        text_table(tmp_path / "a.csv", ["item"])


@given(st.lists(st.lists(st.text(max_size=20), min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_pandas_writes_is_read_back(tmp_path_factory, cells):
    rows = pd.DataFrame(cells, columns=["item", "scale", "options"]).map(
        lambda cell: "".join(c for c in cell if c not in "\0\r" and not 0xD800 <= ord(c) < 0xE000)
    )
    rows = rows[rows.map(str.strip).any(axis=1)].reset_index(drop=True)
    file = tmp_path_factory.mktemp("table") / "a.csv"
    rows.to_csv(file, index=False)
    assert text_table(file).to_dict("records") == rows.to_dict("records")
