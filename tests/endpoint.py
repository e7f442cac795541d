"""A chat endpoint on loopback that enforces its limits and counts what it is asked, for tests.

It speaks chat completions, files and batches. What a statement is answered with follows from the
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
    refuses: int = 0  # of so many requests one is answered by a refusal, the first time it is asked
    batch_seconds: float = 0.2
    failing: int = 0  # of so many lines one fails in the first batch
    expires: bool = False  # the first batch expires when half of it is done
    fails: bool = False  # no batch passes the validation
    forgets: bool = False  # the first batch is begun without a word about it
    url: str = ""
    log: Path | None = None  # a file that gets a line for each reply
    replied: Counter = field(default_factory=Counter)  # by request
    times: list = field(default_factory=list)  # of those that were let pass: when, and tokens
    refused: int = 0
    now: int = 0  # in flight
    most: int = 0
    tokens: Counter = field(default_factory=Counter)
    files: dict = field(default_factory=dict)
    batches: dict = field(default_factory=dict)
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
        content = request.get("prompt") or request["messages"][-1]["content"]
        lines = content.splitlines()
        numbered = [line.split(". ", 1) for line in lines if line[:1].isdigit()]
        values = {n: 1 + zlib.crc32(what.encode()) % 5 for n, what in numbered}
        said = "\n".join(f"{n}: {value}" for n, value in values.items())
        said = json.dumps(values) if "response_format" in request else said
        if self.refuses and len(numbered) > 1 and zlib.crc32(text.encode()) % self.refuses == 0:
            said = "As a language model, I have no personality to describe."
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
            chat = {"content": [{"top_logprobs": tops}]}
            text = {"top_logprobs": [{top["token"]: top["logprob"] for top in tops}]}
            reply["choices"][0]["logprobs"] = text if "prompt" in request else chat
        if "prompt" in request:
            reply["choices"][0]["text"] = f" {reply['choices'][0].pop('message')['content']}"
        if self.usage:
            usage = {"prompt_tokens": prompt, "completion_tokens": done}
            usage |= {"total_tokens": prompt + done, "prompt_tokens_details": {"cached_tokens": 3}}
            reply["usage"] = usage
        return reply

    def begin(self, wanted: dict) -> dict:
        """Begin a batch: all of its lines are worked at once, and are there some time after."""
        number = len(self.batches) + 1
        rows = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        done, errors = [], []
        for place, row in enumerate(rows):
            late = self.expires and number == 1 and place >= len(rows) / 2
            fails = self.failing and number == 1 and place % self.failing == 0
            line = {"id": f"r{place}", "custom_id": row["custom_id"], "response": None}
            if late:
                error = {"code": "batch_expired", "message": "This request could not be executed."}
                errors.append(line | {"error": error})
            elif fails:
                body = {"error": {"message": "overloaded"}}
                response = {"status_code": 500, "request_id": "q", "body": body}
                errors.append(line | {"response": response, "error": None})
            else:
                body = self.completion(row["body"])
                response = {"status_code": 200, "request_id": "q", "body": body}
                done.append(line | {"response": response, "error": None})
        for name, lines in (("out", done), ("err", errors)):
            text = "".join(json.dumps(line) + "\n" for line in reversed(lines))
            self.files[f"{name}-{number}"] = text
        batch = {"id": f"batch_{number}", "object": "batch", "endpoint": wanted["endpoint"],
                 "input_file_id": wanted["input_file_id"], "completion_window": "24h",
                 "created_at": 0, "metadata": wanted.get("metadata"), "status": "in_progress",
                 "output_file_id": None, "error_file_id": None}  # fmt: skip
        ended = {"status": "expired" if self.expires and number == 1 else "completed"}
        ended |= {"output_file_id": f"out-{number}" if done else None}
        ended |= {"error_file_id": f"err-{number}" if errors else None}
        self.batches[batch["id"]] = batch, time.monotonic() + self.batch_seconds, ended
        return batch

    def batch(self, name: str) -> dict:
        """What is said of a batch now."""
        batch, ends, ended = self.batches[name]
        if self.fails:
            error = {"code": "invalid_json_line", "message": "not a line", "line": 1}
            ended = {"status": "failed", "errors": {"object": "list", "data": [error]}}
        return batch | (ended if time.monotonic() > ends else {})

    async def answer(self, method: str, path: str, body: bytes) -> tuple[int, object, dict]:
        """Status, content and headers for a request."""
        if path.endswith("/completions"):
            assert ("prompt" in json.loads(body)) != path.endswith("/chat/completions")
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
        path = path.partition("?")[0].removeprefix("/v1")
        if (method, path) == ("POST", "/files"):
            mark = body[: body.index(b"\r\n")]
            parts = dict(part.split(b"\r\n\r\n", 1) for part in body.split(mark)[1:-1])
            (text,) = (text for head, text in parts.items() if b"filename=" in head)
            assert any(
                b'"purpose"' in head and text == b"batch\r\n" for head, text in parts.items()
            )
            name = f"file-{len(self.files)}"
            self.files[name] = text.removesuffix(b"\r\n").decode()
            return 200, {"id": name, "object": "file", "bytes": len(text), "created_at": 0,
                         "filename": "requests.jsonl", "purpose": "batch",
                         "status": "processed"}, {}  # fmt: skip
        if path == "/batches" and method == "POST":
            batch = self.begin(json.loads(body))
            if self.forgets and len(self.batches) == 1:
                return 0, None, {}
            return 200, batch, {}
        if path == "/batches":
            listed = [self.batch(name) for name in reversed(self.batches)]
            return 200, {"object": "list", "data": listed, "has_more": False}, {}
        if path.startswith("/batches/") and path.rpartition("/")[2] not in self.batches:
            return 404, {"error": {"message": "No batch found."}}, {}
        if path.startswith("/batches/"):
            return 200, self.batch(path.rpartition("/")[2]), {}
        return 200, self.files[path.split("/")[2]], {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = head[0].split(" ")
                given = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(given.get("content-length", 0)))
                path, _, query = path.partition("?")
                seen = given | dict(urllib.parse.parse_qsl(query))
                if any(seen.get(name) != value for name, value in self.demands.items()):
                    status, content, headers = 401, {"error": f"got {given}"}, {}
                else:
                    status, content, headers = await self.answer(method, path, body)
                text = content if isinstance(content, str) else json.dumps(content)
                lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(text.encode())}"]
                lines += [f"{name}: {value}" for name, value in headers.items()]
                whole = "\r\n".join([*lines, "", text]).encode()
                replied = sum(self.replied.values())
                if not status or (self.broken and status == 200 and replied % self.broken == 0):
                    writer.write(whole[: len(whole) // 2] if status else b"")
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
