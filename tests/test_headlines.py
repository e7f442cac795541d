"""What the chapters say in numbers: `headlines.csv`, held against the executed notebooks."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
import torch

from psychometrics.paths import notebooks_dir

HEADLINES = pd.read_csv(Path(__file__).with_name("headlines.csv"), keep_default_na=False)
VARIABLES = {"mirror": "PSYCHOMETRICS_DATA_MIRROR", "wording": "PSYCHOMETRICS_WORDING"}
PROCESSOR = "AVX512-BF16, without AMX and a GPU"  # gave the numbers; others round otherwise
CASES = list(HEADLINES[["chapter", "needs"]].drop_duplicates().itertuples(index=False, name=None))
LIGHTER = {"04-validity": {"sets": 2, "null_respondents": 24}}
"""Parameters on which no headline rests, for time."""
CELL = '''
def displayed(*columns):
    """The first displayed table that has these columns, its values unformatted."""
    for shown in Out.values():
        table = getattr(shown, "data", shown)
        if hasattr(table, "columns") and hasattr(table, "iloc"):
            levels = [table.columns.get_level_values(i) for i in range(table.columns.nlevels)]
            if set(columns) <= set().union(*levels):
                return table
    raise LookupError(f"no displayed table has the columns {columns}")


def headlines(expressions, path):
    import json

    values = []
    for expression in expressions:
        try:
            values.append(float(eval(expression, globals())))
        except Exception as error:
            values.append(f"{type(error).__name__}: {error}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(values, file)


'''


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Callable[[str], pd.Series]:
    """Function from a chapter to what its expressions give; each chapter is executed once."""

    @functools.cache
    def values(chapter: str) -> pd.Series:
        folder = tmp_path_factory.mktemp(chapter)
        rows = HEADLINES[HEADLINES["chapter"] == chapter]
        notebook = nbformat.read(notebooks_dir() / f"{chapter}.ipynb", as_version=4)
        asked = f"headlines({rows['expression'].tolist()!r}, {str(folder / 'values.json')!r})"
        notebook.cells.append(nbformat.v4.new_code_cell(CELL + asked))
        nbformat.write(notebook, folder / "asked.ipynb")
        papermill.execute_notebook(
            str(folder / "asked.ipynb"),
            str(folder / "executed.ipynb"),
            parameters=LIGHTER.get(chapter, {}),
            kernel_name="python3",
            progress_bar=False,
            cwd=folder,
        )
        return pd.Series(json.loads((folder / "values.json").read_text()), rows.index, dtype=object)

    return values


@pytest.mark.skipif(
    os.environ.get("CI") != "true", reason="every chapter once more takes minutes: CI=true runs it"
)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("chapter", "needs"), CASES, ids=[" ".join(c).strip() for c in CASES])
def test_a_chapter_still_gives_its_headline_numbers(chapter, needs, found, monkeypatch):
    names = ["PSYCHOMETRICS_STORE", *VARIABLES.values()]
    for name in filter(os.environ.get, names):  # notebooks run in another folder
        monkeypatch.setenv(name, str(Path(os.environ[name]).expanduser().resolve()))
    if lacking := _lacking(needs):
        pytest.skip(f"these numbers rest on {lacking}")
    rows = HEADLINES[(HEADLINES["chapter"] == chapter) & (HEADLINES["needs"] == needs)]
    values = found(chapter)
    differ = [
        f"{row.name}: {row.value:.10g} (within {row.tolerance:g}) expected, {values[i]} found"
        for i, row in zip(rows.index, rows.itertuples(index=False), strict=True)
        if isinstance(values[i], str) or not abs(values[i] - row.value) <= row.tolerance
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
