"""A build or a run that is killed leaves no process, and the next run removes its folder."""

from __future__ import annotations

import errno
import multiprocessing.synchronize
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest

from psychometrics_book import build, runs
from psychometrics_book.workers import worker_pool
from tests.killing import start_elsewhere

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked here")
SECONDS = 200
WORK = """
import os, pathlib, time
path = pathlib.Path({folder!r}) / f"{{os.getpid()}}.pids"
path.with_suffix(".part").write_text(f"{{os.getpid()}} {{os.getppid()}}")
path.with_suffix(".part").rename(path)
time.sleep(seconds)
"""


def _write_notebook(path: Path, folder: Path) -> None:
    """Write a notebook that notes its process and its parent's, and then sleeps."""
    code = nbformat.v4.new_code_cell
    cells = [code(f"seconds = {3 * SECONDS}", metadata={"tags": ["parameters"]}),
             code(WORK.format(folder=str(folder)))]  # fmt: skip
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), path)


def _await(condition: Callable[[], object]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _noted(folder: Path) -> list[int]:
    return [int(pid) for path in folder.glob("*.pids") for pid in path.read_text().split()]


def _execute_two_chapters(folder: Path) -> None:
    build.notebooks_dir = lambda: folder
    build._digest_of_what_is_read = str
    build._write_example = print
    build.execute(folder / "chapters", progress=False)


def test_a_killed_book_leaves_no_worker_and_no_kernel(tmp_path):
    for name in ("01-one", "02-two"):
        _write_notebook(tmp_path / f"{name}.ipynb", tmp_path)

    build = start_elsewhere(_execute_two_chapters, tmp_path)
    _await(lambda: len(_noted(tmp_path)) == 4)
    processes = set(_noted(tmp_path))
    assert len(processes) == 4  # two kernels and their workers
    assert all(map(_is_running, processes))
    build.kill()
    build.join()
    _await(lambda: not any(map(_is_running, processes)))


def test_a_pool_ends_as_usual_with_its_work_done():
    with worker_pool(1, print) as pool:
        assert pool.submit(divmod, 7, 2).result() == (3, 1)


def _run_forever(folder: Path) -> None:
    runs.notebooks_dir = lambda: folder
    runs.run_notebook("small", {}, folder / "runs" / "r.ipynb", progress=False)


def test_the_folder_of_a_killed_run_is_removed_by_the_next_and_that_of_a_living_one_is_not(
    tmp_path, monkeypatch
):
    _write_notebook(tmp_path / "small.ipynb", tmp_path)
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(runs, "notebooks_dir", lambda: tmp_path)

    def run_another() -> None:
        runs.run_notebook("small", {"seconds": 0}, tmp_path / "runs" / "s.ipynb", progress=False)

    process = start_elsewhere(_run_forever, tmp_path)
    _await(lambda: _noted(tmp_path))
    run_another()
    assert len(list((tmp_path / "runs").glob(".r-*"))) == 1

    process.kill()
    process.join()
    assert len(list((tmp_path / "runs").glob(".r-*"))) == 1
    run_another()
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"s", "s.ipynb"}
    _await(lambda: not any(_is_running(kernel) for kernel in _noted(tmp_path)[::2]))


def test_a_machine_without_semaphores_gets_threads(monkeypatch):
    def missing(*_, **__):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(multiprocessing.synchronize.SemLock, "__init__", missing)
    with worker_pool(2, print) as pool:
        assert pool.submit(abs, -3).result() == 3
