"""Requests a second against a chat endpoint that takes a while, with more and more in flight.

The endpoint is a process of its own on this machine that answers each request after a fixed delay,
however many it has: what is measured is how near asking comes to that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec

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
    command = [sys.executable, "-c", f"from {__name__} import _serve; _serve({delay})"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


def _serve(delay: float) -> None:
    """Answer every statement with 3 after the delay, until this process is ended."""
    message = {"role": "assistant", "content": "1: 3"}
    usage = {"prompt_tokens": 100, "completion_tokens": 4, "total_tokens": 104}
    reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "model"}
    reply |= {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    body = json.dumps(reply | {"usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    whole = head.encode() + b"\r\n\r\n" + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                await asyncio.sleep(delay)
                writer.write(whole)

    async def forever() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=2048)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(forever())
