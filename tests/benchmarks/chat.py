"""Requests a second against a chat endpoint that takes a while, with more and more in flight.

The endpoint is a process of its own on this machine that answers each request after a fixed delay,
however many it has: what is measured is how near asking comes to that.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing.connection import Connection

from tests.endpoint import served

from .rows import OURS, alternated, row

IN_FLIGHT = (1, 8, 64, 256, 512)
DELAY = 0.2
"""Seconds after which the endpoint answers."""
ROUNDS = 10
"""Requests for each that is in flight at once; at most ``MOST`` in all."""
MOST = 2560


def chat(
    repetitions: int = 5, in_flight: tuple[int, ...] = IN_FLIGHT, delay: float = DELAY
) -> list[dict]:
    """Rows of asking, of the openai client alone, and of what the delay allows.

    Parameters
    ----------
    repetitions : int
    in_flight : tuple of int
        Most requests at the same time.
    delay : float
        Of the endpoint, in seconds.

    Returns
    -------
    list of dict
        ``seconds`` and ``cpu_seconds`` are of one request: their inverse is requests a second, and
        processor time is that of the process that asks.
    """
    rows = []
    with _served(delay) as url:
        for many in in_flight:
            count = min(ROUNDS * many, MOST)
            _asked(url, many, count)  # a first time, which is not counted
            tools = {OURS: lambda many=many, count=count: _asked(url, many, count)}
            if find_spec("openai"):
                tools["openai"] = lambda many=many, count=count: _bare(url, many, count)
            task = f"chat, {many} in flight"
            for name, number, took, gave in alternated(tools, repetitions):
                note = "the client alone: nothing is read or kept" if name == "openai" else None
                rows.append(row("chat", task, many, name, took, repetition=number, note=note,
                                **gave))  # fmt: skip
            rows += [row("chat", task, many, "the delay alone", delay / many, repetition=number + 1,
                         note=f"{delay:g} s a reply") for number in range(repetitions)]  # fmt: skip
    return rows


def _asked(url: str, many: int, count: int) -> dict:
    """Ask one statement a request, and keep each reply; seconds of a request."""
    from psychometrics.asking.ask import ask
    from psychometrics.endpoints.endpoint import Endpoint
    from psychometrics.questionnaires import load_questionnaire

    questionnaire, endpoint = load_questionnaire("ipip20"), Endpoint(url, concurrency=many)
    per_run = min(count, len(questionnaire.items))
    questionnaire = questionnaire.model_copy(
        update={"items": questionnaire.items[:per_run], "scales": (), "norms": ()}
    )
    how = {"endpoint": endpoint, "runs": count // per_run, "batch_size": 1, "progress": False}
    how["ask_again"] = 0
    with tempfile.TemporaryDirectory() as store, _timed(count // per_run * per_run) as took:
        answers = ask(questionnaire, ["model"], store, "chat", **how)
    if not (answers["status"] == "ok").all():
        raise RuntimeError("The endpoint was asked, and not all answers could be read.")
    return took


def _bare(url: str, many: int, count: int) -> dict:
    """The same number of requests by the openai client."""
    import openai

    prompt = [{"role": "user", "content": "1. I am the life of the party."}]

    async def whole() -> None:
        coming = iter(range(count))
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:

            async def worker() -> None:
                for _ in coming:
                    await client.chat.completions.create(
                        model="model", messages=prompt, temperature=0.0
                    )

            await asyncio.gather(*(worker() for _ in range(many)))

    with _timed(count) as took:
        asyncio.run(whole())
    return took


@contextlib.contextmanager
def _timed(count: int) -> Iterator[dict]:
    """Seconds of one of so many requests, by the clock and of this process."""
    took: dict = {}
    began, used = time.perf_counter(), time.process_time()
    yield took
    took["seconds"] = (time.perf_counter() - began) / count
    took["cpu_seconds"] = (time.process_time() - used) / count


@contextlib.contextmanager
def _served(delay: float) -> Iterator[str]:
    """The endpoint's address, while the context lasts."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(there, delay), daemon=True)
    server.start()
    try:
        yield here.recv()
    finally:
        server.kill()


def _serve(pipe: Connection, delay: float) -> None:
    """Answer every statement after the delay, until this process is ended."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with served(delay=delay) as endpoint:
        pipe.send(endpoint.url)
        threading.Event().wait()
