"""What the chapters say in numbers: `headlines.csv`, held against the executed notebooks."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from psychometrics.book import _timed
from psychometrics.pages import _headlines
from psychometrics.paths import book_dir, notebooks_dir

HEADLINES = _headlines.headlines()
VARIABLES = {"mirror": "PSYCHOMETRICS_DATA_MIRROR", "wording": "PSYCHOMETRICS_WORDING"}
PROCESSOR = "AVX512-BF16, without AMX and a GPU"  # gave the numbers; others round otherwise
CASES = list(HEADLINES[["chapter", "needs"]].drop_duplicates().itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Callable[[str], dict]:
    """Function from a chapter to what its expressions give, of the built book where it can be.

    A chapter that was not executed with the code and data at hand is executed, once.
    """

    @functools.cache
    def values(chapter: str) -> dict[str, float | str]:
        asked = set(HEADLINES.loc[HEADLINES["chapter"] == chapter, "expression"])
        built = _headlines.kept(chapter, book_dir() / "chapters" / f"{chapter}.ipynb")
        if asked <= set(built):
            return built
        executed = tmp_path_factory.mktemp(chapter) / f"{chapter}.ipynb"
        with pytest.MonkeyPatch.context() as patch:
            for name in filter(os.environ.get, ["PSYCHOMETRICS_STORE", *VARIABLES.values()]):
                patch.setenv(name, str(Path(os.environ[name]).expanduser().resolve()))
            patch.chdir(executed.parent)
            _timed(chapter, executed)
            return _headlines.kept(chapter, executed)

    return values


@pytest.mark.skipif(
    os.environ.get("CI") != "true", reason="chapters take minutes where no book is: CI=true runs it"
)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("chapter", "needs"), CASES, ids=[" ".join(c).strip() for c in CASES])
def test_a_chapter_still_gives_its_headline_numbers(chapter, needs, found):
    if lacking := _lacking(needs):
        pytest.skip(f"these numbers rest on {lacking}")
    rows = HEADLINES[(HEADLINES["chapter"] == chapter) & (HEADLINES["needs"] == needs)]
    values = found(chapter)
    differ = [
        f"{row.name}: {row.value:.10g} (within {row.tolerance:g}) expected, {value} found"
        for row in rows.itertuples(index=False)
        if isinstance(value := values[row.expression], str)
        or not abs(value - row.value) <= row.tolerance
    ]
    assert not differ, f"{chapter}, {len(differ)} of {len(rows)}:\n" + "\n".join(differ)


def _lacking(needs: str) -> str:
    """What numbers rest on and is not here; text that others own must be here where CI=true."""
    for need in needs.split():
        if need == "bfloat16":
            has = torch.cpu.get_capabilities().get
            if torch.cuda.is_available() or not has("avx512_bf16") or has("amx_bf16"):
                return f"bfloat16 by {PROCESSOR}"
        elif not os.environ.get(VARIABLES[need]) and os.environ.get("CI") != "true":
            return f"text that {VARIABLES[need]} names"
    return ""


def test_every_chapter_has_headlines():
    sums = {"14-scorecard", "13-finding"}  # say what the others found
    # a chapter's file begins with its number; other notebooks are pages of the appendix
    chapters = sorted({path.stem for path in notebooks_dir().glob("[0-9]*.ipynb")} - sums)
    assert sorted(HEADLINES["chapter"].unique()) == chapters
    assert not HEADLINES.duplicated(["chapter", "name"]).any()


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A chapter that displays a table, with headlines, in a folder of its own."""
    import nbformat

    (tmp_path / "notebooks").mkdir()
    (tmp_path / "tests").mkdir()
    code = "import pandas as pd\ntable = pd.DataFrame({'a': [1, 2], 'b': [3, 4.5]})"
    cells = [nbformat.v4.new_code_cell(text) for text in (code, "table.style.format('{:.0f}')")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, tmp_path / "notebooks" / "small.ipynb")
    rows = "small,a number,\"table.loc[1, 'a']\"\nsmall,shown,\"displayed('b')['b'].max()\"\n"
    rows += "small,missing,nothing\nother,other,1\n"
    (tmp_path / "tests" / "headlines.csv").write_text("chapter,name,expression\n" + rows)
    monkeypatch.setattr("psychometrics.book.notebooks_dir", lambda: tmp_path / "notebooks")
    monkeypatch.setattr(_headlines, "notebooks_dir", lambda: tmp_path / "notebooks")
    monkeypatch.setattr(_headlines, "book_dir", lambda: tmp_path / "book")
    monkeypatch.setattr(_headlines, "data_dir", lambda: tmp_path / "data")
    return tmp_path


def test_headlines_are_kept_beside_the_copy_until_code_data_or_texts_change(small, monkeypatch):
    executed = small / "book" / "chapters" / "small.ipynb"
    assert _headlines.kept("small", executed) == {}, "nothing is there"
    _timed("small", executed)
    error = "NameError: name 'nothing' is not defined"
    values = {"table.loc[1, 'a']": 2, "displayed('b')['b'].max()": 4.5, "nothing": error}
    assert _headlines.kept("small", executed) == values
    copy = json.loads(executed.read_text(encoding="utf-8"))
    assert len(copy["cells"]) == 2, "the copy has no cell that the notebook has not"
    assert "_headlines.keep" not in executed.read_text(encoding="utf-8")

    with monkeypatch.context() as patch:
        patch.setenv("PSYCHOMETRICS_WORDING", "another.csv")
        assert _headlines.kept("small", executed) == {}, "with other texts"
    (small / "data").mkdir()
    (small / "data" / "new.csv").touch()
    assert _headlines.kept("small", executed) == {}, "with other data"
    _timed("small", executed)
    assert _headlines.kept("small", executed) == values
    (small / "notebooks" / "small.ipynb").touch()
    assert _headlines.kept("small", executed) == {}, "of another notebook"
