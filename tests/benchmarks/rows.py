"""Rows of the table, repetitions that alternate, and peers that are asked in another process."""

from __future__ import annotations

import contextlib
import json
import os
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
    "processor", "date", "note",
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
    return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024


class Worker:
    """A peer in a process of its own, which loads once and then answers line by line, in JSON."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        self._said = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env=os.environ | environment,
        )

    def ask(self, **request: object) -> dict:
        """Its answer to one request.

        Raises
        ------
        PsychometricsError
            It has ended; the message has its last words.
        """
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._said.seek(0)
            words = [text.strip() for text in self._said if text.strip()] or ["it said nothing"]
            raise PsychometricsError(f"{self._process.args[0]} has ended: {words[-1][:300]}")
        return json.loads(line)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except Exception:
        return None
