"""Work in a process of its own, which may be killed at random moments."""

from __future__ import annotations

import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterator

# One process imports what is tested and forks for each run: a fresh interpreter takes seconds, and
# the libraries of a command take more than most commands.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["psychometrics.asking.store", "psychometrics.cli", "pytest", "papermill", "peft", "pingouin",
     "seaborn", "sklearn.cluster", "torch", "transformers.models.auto.modeling_auto",
     "transformers.models.bert.modeling_bert", "transformers.models.llama.modeling_llama"]
)  # fmt: skip


def run_elsewhere(function: Callable, *arguments: object, kill_after: float | None = None) -> float:
    """Run a module's function in a process of its own; its seconds, at most.

    Parameters
    ----------
    function : callable
        Found by its name in a module (no lambda, nothing nested), as its arguments are pickled.
    kill_after : float, optional
        Seconds of work after which it is killed (SIGKILL), if it is not done by then.

    Raises
    ------
    AssertionError
        It failed by itself.
    """
    began, process = start_elsewhere(function, *arguments)
    process.join(kill_after)
    process.kill()
    process.join()
    assert process.exitcode in ((0,) if kill_after is None else (0, -9)), process.exitcode
    process.close()
    return time.perf_counter() - began


def start_elsewhere(function: Callable, *arguments: object):
    """Start a function in a process of its own; when its work began, and the process."""
    here, there = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_work, args=(there, function, arguments))
    process.start()
    there.close()
    here.recv()
    here.close()
    return time.perf_counter(), process


def killed_at_random(
    function: Callable, arguments: Callable[[int], tuple], moments: int = 20, seed: int = 1
) -> Iterator[tuple]:
    """Kill a function at random moments of its work and run it again, then to its end.

    Parameters
    ----------
    function : callable
        As in :func:`run_elsewhere`; what it has done must be seen in files that it writes.
    arguments : callable
        Gives the function's arguments for the run of a number: number 0 runs undisturbed, which
        says how long the work takes, and each of the numbers 1 to ``moments`` is killed once.

    Yields
    ------
    tuple
        The arguments of each run that was killed and has then come to its end.
    """
    seconds = run_elsewhere(function, *arguments(0))
    moment = random.Random(seed)
    for number in range(1, moments + 1):
        given = arguments(number)
        run_elsewhere(function, *given, kill_after=moment.uniform(0, seconds))
        run_elsewhere(function, *given)
        yield given


def _work(pipe, function: Callable, arguments: tuple) -> None:
    pipe.send("begun")
    pipe.close()
    function(*arguments)
    sys.stdout.flush()
