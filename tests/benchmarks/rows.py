"""Rows of the table, repetitions that alternate, and peers that are asked in another process."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from psychometrics.exceptions import PsychometricsError

COLUMNS = (
    "part", "task", "size", "tool", "version", "precision", "repetition", "seconds",
    "cpu_seconds", "memory_mb", "store_mb", "gflop", "peak_gflops", "tokens", "agreement",
    "operations", "copies", "processor", "date", "note",
)  # fmt: skip
"""Of the table, which has one row for each repetition."""
OURS = "psychometrics"


def row(part: str, task: str, size: float | None, tool: str, seconds: float | None, **more) -> dict:
    """One measurement; what is not given stays empty."""
    base = tool.split(" ", 1)[0].split(":", 1)[-1]
    found = {
        "part": part, "task": task, "size": size, "tool": tool, "seconds": seconds,
        "processor": processor(), "date": datetime.now(UTC).date().isoformat(),
        "version": _version("psychometrics-of-language-models" if tool == OURS else base),
    }  # fmt: skip
    return dict.fromkeys(COLUMNS) | found | more


def alternated(
    tools: dict[str, Callable[[], dict | None]], repetitions: int
) -> Iterator[tuple[str, int, float, dict]]:
    """Tools in turn, round after round: name, round, seconds, and what it gave besides.

    A tool that gives ``seconds`` has timed itself. Each round begins with the next tool, so that
    none is always the one after a long rest or a long run.
    """
    names = list(tools)
    for number in range(repetitions):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            began = time.perf_counter()
            gave = tools[name]() or {}
            took = gave.pop("seconds", time.perf_counter() - began)
            yield name, number + 1, took, gave


def processor() -> str:
    """The processor's name, how many of its cores are used, and what it has for matrices."""
    import torch

    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        name = next(named, name)
    has = torch.cpu.get_capabilities()
    words = [word for word in ("avx512_bf16", "amx_bf16") if has.get(word)]
    return ", ".join([name, f"{torch.get_num_threads()} threads", *words])


def peak_mb() -> float | None:
    """Most memory that this process has had, on Linux.

    ``getrusage`` would count what the process had that started this one, too.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    return int(re.search(r"VmHWM:\s+(\d+)", status.read_text(encoding="utf-8"))[1]) / 1024


@contextlib.contextmanager
def worker(command: Sequence[str]) -> Iterator[Callable[..., dict]]:
    """Yield a function that asks a peer in a process of its own, line by line, in JSON.

    Raises
    ------
    PsychometricsError
        It has ended; the message has its last words.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": said}
        process = subprocess.Popen(list(command), text=True, **pipes)

        def ask(**request: object) -> dict:
            with contextlib.suppress(BrokenPipeError):
                print(json.dumps(request), file=process.stdin, flush=True)
                if line := process.stdout.readline():
                    return json.loads(line)
            said.seek(0)
            words = [text.strip() for text in said if text.strip()] or ["it said nothing"]
            raise PsychometricsError(f"{command[0]} has ended: {words[-1][:300]}")

        try:
            yield ask
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.communicate()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except Exception:
        return None
