"""The built book shows the kept tables; `make tables` renews them and prints what moved."""

from __future__ import annotations

import json
import shutil

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

import psychometrics as pm
from psychometrics.paths import book_dir, data_dir, notebooks_dir
from psychometrics_book import record
from recipes.tables import external_texts, moved, not_compared, renew
from tests.conftest import needs

KEPT, BUILT = data_dir() / "tables", book_dir() / "chapters"
FRAME = pd.DataFrame({"r": [0.5]}, index=pd.Index(["a"], name="who"))
OTHER = FRAME + 0.25


@pytest.fixture
def tops(tmp_path, monkeypatch):
    """Two folders of chapters, and a function that shows a table in one of them."""

    def show(top, frame, rests_on="", name="tab-a"):
        monkeypatch.setattr(record._RUN, "folder", tmp_path / top / "04-own")
        record.table(frame, name, "A.", rests_on=rests_on)

    return tmp_path / "kept", tmp_path / "runs", show


def test_the_built_book_shows_the_kept_tables():
    if not list(BUILT.glob("*/tab-*.csv")):
        pytest.skip("the book has not been built: make book")
    print(*not_compared(KEPT, BUILT), sep="\n")
    found = moved(KEPT, BUILT)
    assert found.empty, found.to_string()


def test_a_table_has_its_name_for_itself_since_references_go_by_it():
    names = [path.stem for path in KEPT.glob("*/*.csv")]
    assert sorted(set(names)) == sorted(names)


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


@pytest.mark.parametrize(
    ("now", "same"),
    [
        ("0.08 (0.0008 to 0.19)", True),
        ("0.08 (0.0038 to 0.19)", False),
        ("-0.08 (0.0017 to 0.19)", False),
        ("0.08 (0.0017 to 0.19), p 0.1", False),
    ],
)
def test_numbers_in_an_interval_may_differ_as_numbers_may(tmp_path, now, same):
    for top, text in (("kept", "0.08 (0.0017 to 0.19)"), ("runs", now)):
        (tmp_path / top / "04-own").mkdir(parents=True)
        (tmp_path / top / "04-own" / "tab-a.csv").write_text(f'who,r\na,"{text}"\n')
    assert moved(tmp_path / "kept", tmp_path / "runs").empty == same


def test_a_table_is_compared_only_with_one_that_rests_on_the_same_texts(tops):
    kept, runs, show = tops
    show("kept", FRAME, "HurtLex")
    show("kept", FRAME, name="tab-b")

    show("runs", OTHER)
    show("runs", OTHER, name="tab-b")
    assert moved(kept, runs)["cell"].tolist() == ["04-own/tab-b[#1 a, r]"]
    left_out = "04-own/tab-a: the kept table rests on HurtLex, the new one on no external texts."
    assert not_compared(kept, runs) == [left_out]

    show("runs", OTHER, "HurtLex")
    assert len(moved(kept, runs)) == 2
    assert not_compared(kept, runs) == []


def test_a_table_shown_again_without_external_texts_no_longer_names_them(tops):
    kept, runs, show = tops
    show("kept", FRAME)
    show("runs", FRAME, "HurtLex")
    assert len(not_compared(kept, runs)) == 1
    show("runs", FRAME)
    assert not_compared(kept, runs) == []


def test_a_table_that_rests_on_external_texts_and_is_not_shown_has_moved(tops):
    kept, runs, show = tops
    show("kept", FRAME, "HurtLex")
    show("runs", FRAME, name="tab-b")
    assert {"04-own/tab-a[#1 a, r]"} < set(moved(kept, runs)["cell"])


def test_renewal_keeps_a_table_of_external_texts_where_the_build_lacks_them(tops):
    kept, runs, show = tops
    show("kept", FRAME, "HurtLex")
    show("kept", FRAME, name="tab-b")
    show("kept", FRAME, name="tab-gone")

    show("runs", OTHER)
    show("runs", OTHER, "HurtLex", name="tab-b")
    show("runs", OTHER, name="tab-new")
    assert renew(kept, runs, []) == ["04-own/tab-a"]

    assert record.read("04/tab-a", kept)["r"].tolist() == [0.5]
    assert record.read("04/tab-b", kept)["r"].tolist() == [0.75]
    assert sorted(path.name for path in kept.glob("*/*")) == [
        "tab-a.csv", "tab-a.rests-on.txt", "tab-b.csv", "tab-b.rests-on.txt", "tab-new.csv",
    ]  # fmt: skip
    assert len(not_compared(kept, runs)) == 1

    show("runs", OTHER, "HurtLex")
    assert renew(kept, runs, []) == []
    assert moved(kept, runs).empty
    assert record.read("04/tab-a", kept)["r"].tolist() == [0.75]


def test_renewal_copies_the_figures_that_exercises_are_answered_from(tops):
    kept, runs, show = tops
    show("runs", FRAME)
    (runs / "04-own" / "fig-b.csv").write_text("who,r\na,0.5\n")
    (runs / "04-own" / "fig-c.csv").write_text("who,r\na,0.5\n")
    renew(kept, runs, ["fig-b"])
    assert {path.name for path in kept.glob("*/*")} == {"tab-a.csv", "fig-b.csv"}


def _sources(chapter, *marks):
    """Return the code cells of a chapter that hold the marks, in their order."""
    cells = json.loads((notebooks_dir() / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(one["source"]) for one in cells if one["cell_type"] == "code"]
    return [source for source in sources if any(mark in source for mark in marks)]


def _captions(sources, path, folder):
    """Execute cells in a kernel that writes to a folder; return the captions of what they show."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    arguments = record._kernel_arguments(folder)
    NotebookClient(notebook, timeout=None, extra_arguments=arguments).execute()
    nbformat.write(notebook, path)
    return [about["caption"] for about in record.shown(path)]


CONTENT = """
import os
import pandas as pd
import psychometrics as pm
import psychometrics_book as book

encoder, acceptability_model = "embedded", "embedded"
real = [pm.load_questionnaire(name) for name in ("gad7", "soc13")]
shortened = []
for q in real:
    items = []
    for item in q.items:
        terms = item.templates[0].terms or item.terms
        one = {"source": terms.source[:1], "inverse": terms.inverse[:1]}
        template = item.templates[0].model_copy(update={"terms": None})
        few = {"templates": (template,), "terms": terms.model_copy(update=one)}
        items.append(item.model_copy(update=few))
    few = {"intensifiers": q.intensifiers[:1], "items": tuple(items)}
    shortened.append(q.model_copy(update=few))
real = shortened
title = {q.id: q.short_title for q in real}
"""


def test_chapter_4_says_which_wording_of_the_soc13_its_prompts_are_compared_with(
    tmp_path, monkeypatch
):
    kept, runs = tmp_path / "kept", tmp_path / "runs"
    wording = tmp_path / "wording.csv"
    items = {"instrument": "SOC-13", "wording": [f"w{n}" for n in range(13)]}
    pd.DataFrame(items).to_csv(wording)
    monkeypatch.setenv("PSYCHOMETRICS_WORDING", str(wording))

    shown = _sources("04-consistency", "def content_of", '"tab-content"')
    without = f"""
del os.environ["PSYCHOMETRICS_WORDING"]
book.record.write_to({str(runs / "04-consistency")!r})
"""
    sources = [CONTENT, *shown, without, *shown]
    original, ours = _captions(sources, tmp_path / "04-consistency.ipynb", kept / "04-consistency")
    assert "The items of the SOC-13 have their original wording." in original
    assert "The items of the SOC-13 are this project's paraphrases." in ours
    assert "GAD-7" not in original

    (left_out,) = not_compared(kept, runs)
    assert "rests on SOC-13 in its original wording, the new one on no external texts" in left_out
    assert moved(kept, runs).empty


LIVE = """
import pandas as pd
import psychometrics as pm
import psychometrics_book as book
from psychometrics.modes import completions

live_lexicon, group = "auto", "gender"
live = pd.DataFrame({"completion": ["ugly", "kind"] * 4, "gender": ["female", "male"] * 4})
live = live.assign(respondent_id="m", identity=[0, 0, 1, 1, 2, 2, 3, 3])
"""


def _live_caption(folder):
    sources = [LIVE, *_sources("09-beliefs", '"tab-live"')]
    (caption,) = _captions(sources, folder / "09.ipynb", folder / "09-beliefs")
    return caption


def test_chapter_9_names_the_books_own_list_where_hurtlex_is_not_at_hand(tmp_path, monkeypatch):
    monkeypatch.delenv("PSYCHOMETRICS_DATA_MIRROR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    caption = _live_caption(tmp_path)
    words = len(pd.read_csv(data_dir() / "beliefs" / "own_lexicon.csv"))
    assert f"scored with the book's own list of {words} words" in caption
    assert external_texts(tmp_path / "09-beliefs" / "tab-live.csv") == ""


@needs("hurtlex_en")
def test_chapter_9_names_hurtlex_where_it_scores_with_it(tmp_path, monkeypatch):
    caption = _live_caption(tmp_path)
    assert "scored with HurtLex" in caption
    assert external_texts(tmp_path / "09-beliefs" / "tab-live.csv") == "HurtLex"


@needs("psychobench")
def test_scores_shipped_for_builds_without_the_thirteens_wording_equal_those_with_it():
    names = [*pm.questionnaires.psychobench_keys()]
    questionnaires = [pm.load_questionnaire(name) for name in names]
    how = {"choose": "draw", "runs": 10, "seed": 1, "baseline": "I am a person."}
    how |= {"mode": "options", "wording": "voice", "progress": False}  # as chapter 10 asks
    answers = pd.concat(pm.ask(name, "smollm2", **how) for name in names)

    keys = ["questionnaire", "scale", "run"]
    scores = pm.scale_scores(answers, questionnaires).set_index(keys)["score"].sort_index()
    shipped = pd.read_csv(data_dir() / "norms" / "smollm2_scores.csv")
    shipped = shipped.set_index(keys)["score"].sort_index()
    pd.testing.assert_series_equal(scores, shipped)
