"""The planner of the page on sample size computes in the browser what its formulas say."""

from __future__ import annotations

import json
import math
import shutil
import subprocess

import pytest

from psychometrics.paths import book_dir, notebooks_dir

SCRIPT = book_dir() / "_static" / "planner.js"
TELL = (
    "const page = require(process.argv[1]); const design = JSON.parse(process.argv[3]); "
    "console.log(JSON.stringify(page[process.argv[2]](design)))"
)
DESIGN = {
    "models": 25, "items": 10, "asked": 1, "single": 1, "r": 0.5, "alpha": 0.8, "half": 0.1,
    "skewed": False,
}  # fmt: skip


def in_node(function: str, **change) -> dict | str:
    """What a function of the page's script returns for a design."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    command = ["node", "-e", TELL, str(SCRIPT), function, json.dumps(DESIGN | change)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_half_widths_and_numbers_of_models_follow_the_formulas():
    found = in_node("plan")
    assert found["r"] == pytest.approx(1.959964 * 0.75 / math.sqrt(24))
    assert found["alpha"] == pytest.approx(1.959964 * 0.0596, abs=1e-3)  # as in the exercise
    assert found["models_for_r"] == math.ceil(1 + (1.959964 * 0.75 / 0.1) ** 2)
    assert found["models_for_alpha"] == math.ceil((1.959964 * 0.2 / 0.1) ** 2 * 20 / 9)


def test_more_wordings_and_runs_make_a_score_reliable_and_skewed_scores_need_more_models():
    found = in_node("plan", asked=4, single=0.5)
    assert found["reliable"] == pytest.approx(0.8)  # four parallel halves
    assert found["observed"] == pytest.approx(0.4)
    assert in_node("plan", skewed=True)["r"] == pytest.approx(1.5 * in_node("plan")["r"])


@pytest.mark.parametrize("change", [{"models": 2}, {"items": 1}, {"half": 0}, {"r": None}])
def test_a_design_that_cannot_be_is_named(change):
    design = {"r": 2} if change == {"r": None} else change
    name = {"models": "models", "items": "items", "half": "wanted", "r": "correlation"}
    assert in_node("mistake", **design).startswith(name[next(iter(design))])


def test_the_page_has_the_form_with_a_field_for_each_number():
    page = (notebooks_dir() / "records-05.ipynb").read_text(encoding="utf-8")
    assert SCRIPT.name in page
    for name in set(DESIGN) - {"skewed"}:
        assert f'name=\\"{name}\\"' in page
