"""Execute the chapters as on other machines, and compare every table: ``make elsewhere``.

Each setting of ``SETTINGS`` executes all chapters with their default parameters in a copy of the
project, from an empty store and an empty cache. The printed tables are compared, cell by cell, with
those of the first setting, the unchanged machine. Names of settings after the command select some
of them. Each setting takes about twelve minutes on two processor cores.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from bs4 import BeautifulSoup

from psychometrics.paths import cache_dir, notebooks_dir
from tests.poverty import VARIABLES, wide_instructions

ROOT = notebooks_dir().parent
AS_IT_IS = "as it is"
SETTINGS = {
    AS_IT_IS: {},
    "AVX2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "wide",
    },
    "no wide registers": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"},
    "one thread": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "two threads": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
    "other surroundings": {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8"},
    "poor": {**VARIABLES, "NPY_DISABLE_CPU_FEATURES": "wide"},
}
"""Environment variables of each setting; *wide* stands for the instructions that AVX2 lacks.

No chapter computes in bfloat16 or float16: ``make poor`` runs the tests that do.
"""
_LINKED = ("data", "notebooks", "questionnaires", "tests")
_EXECUTE = """
from pathlib import Path
from psychometrics_book.build import execute
execute(Path("book") / "chapters", progress=False)
"""


def printed_cells(chapters: Path) -> dict[tuple[str, str, int], str]:
    """Return the printed cells of executed chapters, by chapter, table and place."""
    cells = {}
    for path in sorted(chapters.glob("*.ipynb")):
        if path.stem == "benchmarks":  # its tables are measured times
            continue

        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            name = re.search(r'"(tab-[\w-]+)"', "".join(cell["source"]))
            for output in cell.get("outputs", []):
                html = "".join(output.get("data", {}).get("text/html", ""))
                if name is None or "<table" not in html:
                    continue

                shown = BeautifulSoup(html, "html.parser").find_all(["td", "th"])
                for place, element in enumerate(shown):
                    cells[path.stem, name[1], place] = element.get_text()

    return cells


def link_downloads(cache: Path) -> None:
    """Make a cache that has the downloads of the user's cache, and nothing else."""
    cache.mkdir(parents=True)
    for name in ("external", "mirror", "models"):
        if (cache_dir() / name).is_dir():
            (cache / name).symlink_to(cache_dir() / name)


def _run(name: str, folder: Path) -> tuple[Path, float]:
    """Execute the chapters in a copy of the project; return its chapters, and the seconds."""
    copy = folder / re.sub(r"\W+", "-", name)
    hide = shutil.ignore_patterns("_build", "chapters", "__pycache__")

    for part in ("psychometrics", "book"):
        shutil.copytree(ROOT / part, copy / part, ignore=hide)

    for part in _LINKED:
        (copy / part).symlink_to(ROOT / part)

    link_downloads(copy / "cache" / "psychometrics")
    changes = dict(SETTINGS[name])
    if "NPY_DISABLE_CPU_FEATURES" in changes:
        changes["NPY_DISABLE_CPU_FEATURES"] = wide_instructions()

    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PSYCHOMETRICS_STORE": str(copy / "store"),
        "XDG_CACHE_HOME": str(copy / "cache"),
        **changes,
    }
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", _EXECUTE], check=True, cwd=copy, env=environment)

    return copy / "book" / "chapters", time.perf_counter() - began


def _main(names: list[str]) -> int:
    chosen = [AS_IT_IS, *(name for name in names or SETTINGS if name != AS_IT_IS)]
    rows = []
    moved = []
    with tempfile.TemporaryDirectory() as folder:
        first: dict = {}
        for name in chosen:
            chapters, seconds = _run(name, Path(folder))
            cells = printed_cells(chapters)
            first = first or cells
            differ = [key for key in first | cells if first.get(key) != cells.get(key)]
            rows.append((name, len(cells), len(differ), round(seconds)))
            moved += [(name, *key, first.get(key), cells.get(key)) for key in differ]
            print(*rows[-1], sep="\t", flush=True)

    columns = ["setting", "chapter", "table", "cell", AS_IT_IS, "there"]
    if moved:
        print(pd.DataFrame(moved, columns=columns).to_string(index=False))

    print(pd.DataFrame(rows, columns=["setting", "cells", "differ", "seconds"]).to_string(index=0))
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
