"""A chat endpoint on loopback that enforces its limits and counts what it is asked, for tests.

It speaks chat completions. What a statement is answered with follows from the
statement and its place alone, so that every way of asking must come to the same answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import math
import re
import threading
import time
import urllib.parse
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Endpoint:
    """What it is to do, and what it has seen."""

    delay: float = 0.0
    per_second: float = 0.0  # requests that it lets pass; more are refused with 429
    burst: int = 5
    says: str = "seconds"  # how a refusal says when to come again: seconds, date, headers, nothing
    usage: bool = True
    broken: int = 0  # of so many requests one is answered by half a reply
    url: str = ""
    log: Path | None = None  # a file that gets a line for each reply
    replied: Counter = field(default_factory=Counter)  # by request
    times: list = field(default_factory=list)  # of those that were let pass: when, and tokens
    refused: int = 0
    now: int = 0  # in flight
    most: int = 0
    tokens: Counter = field(default_factory=Counter)
    demands: dict = field(default_factory=dict)  # headers and query without which nothing is said
    tops: int = 20  # most tokens whose log-probabilities it gives
    requests: list = field(default_factory=list)
    level: float | None = None
    filled: float = 0.0

    def cost(self, price_in: float, price_out: float) -> float:
        """What it would put on the bill."""
        return (self.tokens["prompt"] * price_in + self.tokens["completion"] * price_out) / 1e6

    def too_many(self) -> float:
        """Seconds until a request may pass; 0 if this one may, which is counted then."""
        if not self.per_second:
            return 0.0
        now = time.monotonic()
        level = self.burst if self.level is None else self.level
        self.level = min(self.burst, level + (now - self.filled) * self.per_second)
        self.filled = now
        if self.level >= 1:
            self.level -= 1
            return 0.0
        return (1 - self.level) / self.per_second

    def completion(self, request: dict) -> dict:
        """The reply to a request, put on the bill."""
        text = json.dumps(request, sort_keys=True)
        self.replied[text] += 1
        self.requests.append(request)
        if self.log is not None:
            with self.log.open("a") as file:
                file.write("\n")
        content = request["messages"][-1]["content"]
        lines = content.splitlines()
        numbered = [line.split(". ", 1) for line in lines if line[:1].isdigit()]
        values = {n: 1 + zlib.crc32(what.encode()) % 5 for n, what in numbered}
        said = "\n".join(f"{n}: {value}" for n, value in values.items())
        said = json.dumps(values) if "response_format" in request else said
        prompt = len(text) // 4
        done = min(len(said), request.get("max_tokens", 10**6))
        self.tokens.update(prompt=prompt, completion=done)
        self.times.append((time.monotonic(), prompt + done))
        reply = {"id": "c", "object": "chat.completion", "created": 0, "model": request["model"]}
        message = {"role": "assistant", "content": said}
        reply["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
        if request.get("logprobs"):  # as if it drew the label by weights 1, 2, 3, ... of places
            labels = re.findall(r"(\w+) = ", content)
            weights = {f"{' ' * (n % 2)}{label}": n + 1 for n, label in enumerate(labels)}
            tops = [{"token": token, "logprob": math.log(weight / 2 / sum(weights.values()))}
                    for token, weight in weights.items()]  # fmt: skip
            tops = [{"token": "The", "logprob": math.log(0.5)}, *tops[::-1]][: self.tops]
            reply["choices"][0]["logprobs"] = {"content": [{"top_logprobs": tops}]}
        if self.usage:
            usage = {"prompt_tokens": prompt, "completion_tokens": done}
            usage |= {"total_tokens": prompt + done, "prompt_tokens_details": {"cached_tokens": 3}}
            reply["usage"] = usage
        return reply

    async def answer(self, path: str, body: bytes) -> tuple[int, object, dict]:
        """Status, content and headers for a request."""
        assert path.endswith("/chat/completions")
        if (wait := self.too_many()) > 0:
            self.refused += 1
            said = {"seconds": {"Retry-After": f"{wait:.3f}"}, "nothing": {}, "date": {
                "Retry-After": email.utils.formatdate(time.time() + wait + 1, usegmt=True)},
                "headers": {"x-ratelimit-remaining-requests": "0",
                            "x-ratelimit-reset-requests": f"{wait * 1000:.0f}ms"}}  # fmt: skip
            return 429, {"error": {"message": "slow down"}}, said[self.says]
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.delay)
        self.now -= 1
        return 200, self.completion(json.loads(body)), {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                _, path, _ = head[0].split(" ")
                given = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(given.get("content-length", 0)))
                path, _, query = path.partition("?")
                seen = given | dict(urllib.parse.parse_qsl(query))
                if any(seen.get(name) != value for name, value in self.demands.items()):
                    status, content, headers = 401, {"error": f"got {given}"}, {}
                else:
                    status, content, headers = await self.answer(path, body)
                text = json.dumps(content)
                lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(text.encode())}"]
                lines += [f"{name}: {value}" for name, value in headers.items()]
                whole = "\r\n".join([*lines, "", text]).encode()
                replied = sum(self.replied.values())
                if self.broken and status == 200 and replied % self.broken == 0:
                    writer.write(whole[: len(whole) // 2])
                    return
                writer.write(whole)
                await writer.drain()


@contextlib.contextmanager
def served(**how: object) -> Iterator[Endpoint]:
    """An endpoint in a thread of its own, while the context lasts."""
    endpoint, loop = Endpoint(**how), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin():
        return await asyncio.start_server(endpoint.serve, "127.0.0.1", 0, backlog=2048)

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    endpoint.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def end():
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield endpoint
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
