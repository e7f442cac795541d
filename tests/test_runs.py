"""A run takes the place of an earlier one as a whole, or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import nbformat
import pytest

from psychometrics.exceptions import ParameterError, PsychometricsError
from psychometrics_book import runs


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Function that runs a notebook which shows a table and fails where x is 3."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    work = (
        "import pandas as pd\nimport psychometrics_book as book\n"
        "table = pd.DataFrame({'value': [2 * x]}, index=['double'])\n"
        "book.table(table, 'tab-small', 'A number.')\n"
        "assert x != 3, 'x is 3'"
    )
    code = nbformat.v4.new_code_cell
    cells = [code("x = 1", metadata={"tags": ["parameters"]}), code(work)]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), folder / "small.ipynb")
    monkeypatch.setattr(runs, "notebooks_dir", lambda: folder)
    (tmp_path / "runs").mkdir()
    output, page = tmp_path / "runs" / "small.ipynb", tmp_path / "runs" / "small.html"

    def run(**parameters: object) -> Path:
        return runs.run_notebook("small", parameters, output, progress=False, page=page)

    return run


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_failed_run_leaves_the_earlier_result_as_it_was_byte_for_byte(run, tmp_path):
    run(x=1)
    earlier = _digests(tmp_path / "runs")
    assert set(earlier) == {"small.ipynb", "small.html", "small/tab-small.csv"}
    with pytest.raises(PsychometricsError, match="x is 3"):
        run(x=3)
    now = _digests(tmp_path / "runs")
    assert now.pop("small.failed.ipynb")
    assert now == earlier
    run(x=1)
    assert set(_digests(tmp_path / "runs")) == set(earlier), "the failed copy is gone"


def test_a_page_that_cannot_be_written_leaves_the_earlier_result_as_it_was(
    run, tmp_path, monkeypatch
):
    run(x=1)
    earlier = _digests(tmp_path / "runs")

    def fail(*_: object) -> None:
        raise PsychometricsError("The browser did not print.")

    monkeypatch.setattr(runs, "write_page", fail)
    with pytest.raises(PsychometricsError, match="did not print"):
        run(x=2)
    assert _digests(tmp_path / "runs") == earlier


def test_a_run_with_other_parameters_keeps_the_earlier_one_under_a_name_of_its_own(run, tmp_path):
    run(x=1)
    first = _digests(tmp_path / "runs")
    run(x=2)
    now = _digests(tmp_path / "runs")
    for name in ("small.ipynb", "small.html", "small/tab-small.csv"):
        (kept,) = [key for key in now if key.startswith("small-x-1-") and key[-5:] == name[-5:]]
        assert now[kept] == first[name]
        assert now[name] != first[name]
    run(x=2)
    assert set(_digests(tmp_path / "runs")) == set(now), "the same parameters replace their own"


def test_a_folder_that_no_run_wrote_is_kept(run, tmp_path):
    (tmp_path / "runs" / "small").mkdir()
    (tmp_path / "runs" / "small" / "diary.txt").write_text("mine")
    run(x=1)
    (kept,) = (tmp_path / "runs").glob("small-kept-*")
    assert (kept / "diary.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["small", "small.html", "taken.ipynb", "nix/a.ipynb"])
def test_an_executed_copy_that_could_not_be_written_is_refused(name, run, tmp_path):
    (tmp_path / "taken.ipynb").mkdir()
    with pytest.raises(ParameterError):
        runs.run_notebook("small", {}, tmp_path / name, progress=False)
    assert not list((tmp_path / "taken.ipynb").iterdir())
    assert not (tmp_path / "nix").exists()
