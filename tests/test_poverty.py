"""The pretended poverty of ``tests.poverty`` hides what it says, and the embedded models answer."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import numpy as np
import pytest

from psychometrics.modes import load_respondent
from tests.poverty import poor_environment

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other processors refuse in other words"
)
_LACKS = """
import json, locale, multiprocessing, os, resource, sys, time
import torch
from pathlib import Path

def fails(call, *given):
    try:
        call(*given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def pack(dtype):
    return fails(torch.ops.mkldnn._reorder_linear_weight, torch.ones(4, 8, dtype=dtype))

began = time.perf_counter()
with open(sys.argv[1], "wb") as file:
    os.fsync(file)
print(json.dumps({
    "instructions": torch.backends.cpu.get_cpu_capability(),
    "bfloat16": pack(torch.bfloat16),
    "float32": pack(torch.float32),
    "cores": [os.cpu_count(), len(os.sched_getaffinity(0)), torch.get_num_threads()],
    "memory": fails(os.sysconf, "SC_PHYS_PAGES"),
    "semaphore": fails(multiprocessing.get_context("spawn").Lock),
    "disk": time.perf_counter() - began >= 0.01,
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "home": fails(Path.home().mkdir),
    "text": [sys.stdout.encoding, locale.getpreferredencoding(False), sys.flags.utf8_mode],
}))
"""
MODEL = "minilm-mnli-l3-s16"
PAIRS = [
    ("I feel nervous, anxious or on edge.", "It very rarely happens."),
    ("I feel nervous, anxious or on edge.", "It often happens."),
    ("My daily life is full of things that interest me.", "That never happens to me."),
]
_ANSWERS = f"""
import json
from psychometrics.modes import load_respondent
precisions = ("float32", "bfloat16", "float16")
answers = {{dtype: load_respondent("{MODEL}", dtype=dtype).answer({PAIRS}) for dtype in precisions}}
print(json.dumps({{dtype: rows.tolist() for dtype, rows in answers.items()}}))
"""


def _run_poor(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.run(
        command, env=poor_environment(), capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def lacks(tmp_path_factory):
    return json.loads(_run_poor(_LACKS, tmp_path_factory.mktemp("poor") / "file"))


def test_each_thing_that_is_listed_is_hidden_from_a_new_process(lacks):
    assert lacks["instructions"] == "DEFAULT"
    assert lacks["float32"] is None
    assert lacks["bfloat16"].startswith(
        "RuntimeError: mkldnn_reorder_linear_weight: bf16 path needs the cpu support"
    )
    assert lacks["cores"] == [1, 1, 1]
    assert lacks["memory"].startswith("ValueError")
    assert lacks["semaphore"].startswith("OSError")
    assert lacks["disk"]
    assert lacks["files"] == 256
    assert lacks["home"].startswith("NotADirectoryError")
    assert lacks["text"][0].lower() in ("ascii", "ansi_x3.4-1968", "us-ascii")
    assert lacks["text"][2] == 0


def test_every_precision_answers_there_as_float32_does_here():
    here = load_respondent(MODEL, dtype="float32").answer(PAIRS)
    there = json.loads(_run_poor(_ANSWERS))
    for dtype, rounding in (("float32", 1e-5), ("bfloat16", 0.05), ("float16", 0.005)):
        np.testing.assert_allclose(there[dtype], here, atol=rounding, err_msg=dtype)


def test_a_home_that_cannot_be_written_is_named_with_the_setting_that_replaces_it(tmp_path):
    environment = poor_environment()
    environment.pop("PSYCHOMETRICS_STORE", None)
    command = [sys.executable, "-m", "psychometrics", "ask", "challenges", "--respondents", MODEL]
    process = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert "PSYCHOMETRICS_STORE" in process.stderr
    assert "Traceback" not in process.stderr
