"""Run tests as on a poor machine: ``make poor`` or ``python -m tests.poverty tests/test_x.py``.

A developer's machine and a server have what others lack. This is what the code could take for
granted, and how each thing is hidden from the tests and from every process that they start:

====================================  ============================================================
what a machine may lack               how it is hidden
====================================  ============================================================
AVX-512, and AVX for torch's loops    ``ATEN_CPU_CAPABILITY``, OpenBLAS's and numpy's variables
private operators of torch that       ``ONEDNN_MAX_CPU_ISA=AVX2``: they raise, word for word, what
multiply bfloat16, and its units      they raise on a processor with AVX2 alone
more than one core, a count of cores  ``os.cpu_count`` and ``os.sched_getaffinity`` say 1
that the process may use
a graphics card                       ``CUDA_VISIBLE_DEVICES``
a size of memory that can be asked    ``os.sysconf`` does not know it
/dev/shm                              semaphores of multiprocessing are refused
a fast disk                           ``os.fsync`` takes 10 ms longer
many open files                       256 at once
a home                                ``HOME`` is below a file, so that nobody can make it
text in UTF-8                         ``LC_ALL=C`` without Python's way around it
a terminal with colours, a known zone ``TERM``, ``NO_COLOR``, ``TZ``, ``PYTHONHASHSEED``
of time, an order of sets
====================================  ============================================================

Functions of torch that are missing altogether, or that fail in a later batch only, are the subject
of a test in ``test_respondents_nli``. Chromium, R and the texts that others own are hidden by
``.ci/run``. ``/proc`` is read by the benchmarks alone; nothing of the package forks.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLES = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "HOME": f"{os.devnull}/nobody",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "TZ": "Pacific/Kiritimati",
    "PYTHONHASHSEED": "7",
}


def wide_instructions() -> str:
    """Return this numpy's names for instructions wider than AVX2."""
    from numpy._core import _multiarray_umath as core

    wide = [name for name in core.__cpu_dispatch__ if "512" in name or "V4" in name]
    return " ".join(name for name in wide if core.__cpu_features__.get(name))


def poor_environment() -> dict[str, str]:
    """Return the variables of this process, changed so that a new process finds little."""
    here = Path(__file__).parent
    paths = [str(here / "everywhere"), str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    left_out = ("LANG", "LANGUAGE", "XDG_CACHE_HOME", "PYTHONIOENCODING")
    return {name: value for name, value in os.environ.items() if name not in left_out} | {
        **VARIABLES,
        "NPY_DISABLE_CPU_FEATURES": wide_instructions(),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
