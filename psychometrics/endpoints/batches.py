"""Send requests as files to endpoints with a batch API (``/files``, ``/batches``).

All conversations run at once. When all conversations wait for a reply, their requests go to the
endpoint as one batch; the next requests form the next batch. The store records each batch before
and after it is sent, so a killed run finds its batches again. A batch whose sending was interrupted
is looked up in the endpoint's list.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..exceptions import RespondentError
from ..store import StoredAnswers, key_of
from .client import _status_of
from .completions import _Completion, _NoReply, _read_completion, is_filtered
from .request_queue import PATIENCE, RequestQueue, _Unasked

_MOST_LINES = 50_000
# Limits of one file; endpoints allow 50,000 lines and 200 MB.
_MOST_BYTES = 100 * 2**20
# Most seconds between two checks of a batch.
_POLLS = 60.0
_ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class _Batch:
    """A batch that was sent, with its id at the endpoint and the keys of its requests."""

    id: str = ""
    keys: list[str] = field(default_factory=list)


class Batches:
    """Collect the requests of conversations, send them in batches, and deliver the replies.

    Parameters
    ----------
    queue : RequestQueue
    log : StoredAnswers
        Record of the batches that were sent: rows of ``mark, state, batch, keys, url``.
    """

    def __init__(self, queue: RequestQueue, log: StoredAnswers) -> None:
        self.queue = queue
        self.client = queue.client
        self.log = log
        self.asked: dict[str, tuple[str, asyncio.Future[_Completion]]] = {}
        self.reserved: dict[str, tuple[float, str]] = {}
        self.round: asyncio.Task[None] | None = None
        self.done: dict[str, list[str]] = {}  # by mark, the keys that no conversation asked for
        self.sent = self._unfinished()

    def _unfinished(self) -> dict[str, _Batch]:
        """Return the unfinished batches in the log, by mark."""
        batches: dict[str, _Batch] = {}
        over = set()
        for row in self.log.rows.to_dict("records") if len(self.log) else ():
            if row["url"] != self.queue.endpoint.place:
                continue
            batch = batches.setdefault(row["mark"], _Batch())
            batch.id = row["batch"] or batch.id
            batch.keys = row["keys"].split() or batch.keys
            if row["state"] == "over":
                over.add(row["mark"])

        return {mark: batch for mark, batch in batches.items() if mark not in over}

    async def reply(self, key: str, text: str) -> _Completion:
        """Wait until a request's batch has ended, and return the reply."""
        future: asyncio.Future[_Completion] = asyncio.get_running_loop().create_future()
        self.asked[key] = text, future
        self.start_if_all_wait()
        return await future

    def start_if_all_wait(self) -> None:
        """Start the next batch if all open conversations wait for a reply."""
        all_wait = bool(self.asked) and len(self.asked) >= self.queue.conversations
        if all_wait and not self.queue.stopped and (self.round is None or self.round.done()):
            self.round = asyncio.ensure_future(self._round())

    def stop(self) -> None:
        """Stop waiting for the batches, which continue at the endpoint."""
        if self.round is not None:
            self.round.cancel()
        for _, future in self.asked.values():
            future.cancel()
        while self.reserved:  # they will be paid for although nobody waits for them
            _, (most, text) = self.reserved.popitem()
            self.queue.budget.release(most, text, paid=True)

    async def finish(self) -> None:
        """Record which batches have ended, once all of their replies are stored."""
        while self.done:
            mark, left = self.done.popitem()
            self.sent[mark].keys = left
            await self._note(mark, "left" if left else "over", " ".join(left))

    async def _round(self) -> None:
        try:
            await self.finish()  # conversations that wait again have stored their replies
            running = await self._resume() + await self._submit_new()
            waits = [asyncio.ensure_future(self._wait(mark)) for mark in running]

            try:
                for wait in asyncio.as_completed(waits):
                    await wait
            finally:
                for wait in waits:
                    wait.cancel()

            if not running:  # nothing is under way, and the budget is used up
                for key in list(self.asked):
                    self._deliver(key, _Unasked())
        except asyncio.CancelledError:
            raise
        except Exception as error:
            for key in list(self.asked):
                self._deliver(key, error)
        finally:
            asyncio.get_running_loop().call_soon(self.start_if_all_wait)

    def _deliver(self, key: str, reply: _Completion | Exception) -> None:
        """Give a conversation its reply or its error."""
        _, future = self.asked.pop(key)
        if not future.done():
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

    async def _resume(self) -> list[str]:
        """Find batches of an earlier run that contain one of the present requests."""
        marks = []
        for mark, batch in list(self.sent.items()):
            if not self.asked.keys() & set(batch.keys):
                continue

            if not batch.id:
                batch.id = await self._look_up(mark) or ""
                if not batch.id:  # killed before it was sent
                    await self._note(mark, "over")
                    continue

                await self._note(mark, "sent")

            try:
                await self._patiently("GET", f"/batches/{batch.id}")
            except RespondentError as error:
                if " status 404" not in str(error):
                    raise
                await self._note(mark, "over")  # the endpoint has forgotten it
                continue

            for key in self.asked.keys() & set(batch.keys):  # it is paid for already
                self._reserve(key, within=False)

            marks.append(mark)

        return marks

    async def _submit_new(self) -> list[str]:
        """Send the requests that are not yet in a batch, as far as the budget allows."""
        there = {key for batch in self.sent.values() for key in batch.keys}
        files: list[dict[str, str]] = []
        size = 0

        for key, (text, _) in self.asked.items():
            if key in there or not self._reserve(key):
                continue
            body = {"custom_id": key, "method": "POST", "url": f"/v1{self.queue.path}"}
            row = json.dumps(body | {"body": json.loads(text)}, sort_keys=True)
            size += len(row) + 1

            if not files or len(files[-1]) >= _MOST_LINES or size > _MOST_BYTES:
                files.append({})
                size = len(row) + 1

            files[-1][key] = row

        return [await self._submit(rows) for rows in files]

    def _reserve(self, key: str, within: bool = True) -> bool:
        """Reserve the greatest possible cost of a request, if the budget allows it."""
        text = self.asked[key][0]
        most = self.queue.budget.reserve(text, within)
        if most is not None:
            self.reserved[key] = most, text
        return most is not None

    async def _submit(self, rows: dict[str, str]) -> str:
        mark = uuid.uuid4().hex
        file = ("\n".join(rows.values()) + "\n").encode()
        uploaded = await self._patiently("POST", "/files", file=file)
        wanted = {
            "input_file_id": uploaded["id"],
            "endpoint": f"/v1{self.queue.path}",
            "completion_window": "24h",
            "metadata": {"mark": mark},
        }
        self.sent[mark] = _Batch(keys=list(rows))
        await self._note(mark, "intended", " ".join(rows))
        made = await self._patiently("POST", "/batches", mark=mark, content=json.dumps(wanted))
        self.sent[mark].id = str(made["id"])
        await self._note(mark, "sent")

        return mark

    async def _wait(self, mark: str) -> None:
        """Check a batch until it has ended, and deliver its replies."""
        batch = self.sent[mark]
        state = await self._ended(batch.id)

        if state["status"] == "failed":
            errors = state.get("errors") or {}
            reasons = errors.get("data") if isinstance(errors, dict) else None
            why = self.client.excerpt(json.dumps(reasons or "it gives no reason"))

            for key in self.reserved.keys() & set(batch.keys):
                most, text = self.reserved.pop(key)
                self.queue.budget.release(most, text)

            await self._note(mark, "over")
            raise RespondentError(f"{self.client.where} refuses the batch {batch.id}: {why}")

        results: dict[str, dict[str, Any]] = {}
        for name in ("output_file_id", "error_file_id"):
            if state.get(name):
                results |= await self._lines(state[name], len(batch.keys))

        waiting = self.asked.keys() & set(batch.keys)
        left = [key for key in batch.keys if key not in waiting and not self.queue.has(key)]

        for key in sorted(waiting):
            self._settle(key, results.get(key, {}), state["status"])

        self.done[mark] = left
        if state["status"] == "cancelled" and waiting - results.keys():
            raise RespondentError(
                f"{self.client.where} has cancelled the batch {batch.id}: run again to send the "
                "remaining requests."
            )

    async def _ended(self, batch: str) -> dict[str, Any]:
        """Check a batch until it has ended, and return the endpoint's final description of it."""
        began = time.monotonic()
        while True:
            state: dict[str, Any] = await self._patiently("GET", f"/batches/{batch}")
            if state.get("status") in _ENDED:
                return state
            if not isinstance(state.get("status"), str):
                raise RespondentError(f"{self.client.where} reports no status: leave batch out.")

            waited = time.monotonic() - began
            await asyncio.sleep(min(_POLLS, max(self.queue.endpoint.pause, waited / 10)))

    def _settle(self, key: str, result: dict[str, Any], status: str) -> None:
        """Deliver a request's line of the results, or the reason why there is no line."""
        most, text = self.reserved.pop(key)
        response = result.get("response")
        code = response.get("status_code") if isinstance(response, dict) else None
        content = response.get("body") if isinstance(response, dict) else None
        reply: _Completion | Exception | None = None

        if code == 200 or is_filtered(content):
            try:
                reply = _read_completion(content, self.queue.logprobs)
            except _NoReply as error:
                reply = error

        if isinstance(reply, _Completion):
            reply = self.queue.budget.settle(most, reply, text)
        else:
            self.queue.budget.release(most, text, paid=code == 200)

        if isinstance(code, int):
            code = _status_of(code, content)
        if reply is None and isinstance(code, int) and _is_refusal(code):
            reply = RespondentError(self.client.refusal(code, content))

        if reply is None:
            failure = result.get("error")
            why = failure.get("code") if isinstance(failure, dict) else None
            why = self.client.excerpt(str(why or code or f"no line in a batch that is {status}"))
            reply = _NoReply(f"in a batch: {why}", after=0.0)

        self._deliver(key, reply)

    async def _lines(self, file: str, count: int) -> dict[str, dict[str, Any]]:
        """Return the valid lines of a file of results, by the keys of their requests."""
        body = await self._patiently("GET", f"/files/{file}/content", largest=count * 2**18)
        lines = {}
        for text in body.splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                line = json.loads(text)
                if isinstance(line, dict) and isinstance(line.get("custom_id"), str):
                    lines[line["custom_id"]] = line

        return lines

    async def _patiently(
        self,
        method: str,
        path: str,
        mark: str = "",
        content: str = "",
        file: bytes = b"",
        largest: int = 0,
    ) -> Any:
        """Repeat a request until it succeeds or is hopeless; return JSON, or the bytes of a file.

        A batch whose start was not confirmed is looked up by its mark instead of being sent again.
        """
        began = time.monotonic()
        tries = 0

        while True:
            try:
                reply, body = await self.client.exchange(method, path, content, file, largest)
                if path.endswith("/content"):
                    return body
                if isinstance(reply, dict) and (method == "GET" or reply.get("id")):
                    return reply
                raise _NoReply(f"unreadable reply: {self.client.excerpt(body)}")
            except _NoReply as error:
                batch = await self._look_up(mark) if mark else None
                if batch:
                    return {"id": batch}
                tries += 1
                waited = time.monotonic() - began
                if waited > PATIENCE or (method == "POST" and tries > self.queue.endpoint.retries):
                    raise RespondentError(
                        f"{self.client.where} does not reply about batches (last error: {error}): "
                        "run again to resume; batches already sent are found again."
                    ) from error

                pause = self.queue.endpoint.pause * 2 ** min(tries - 1, 10)
                await asyncio.sleep(error.after or min(pause, _POLLS))
            except RespondentError as error:
                if path in ("/files", "/batches") and " status 404" in str(error):
                    raise RespondentError(
                        f"{self.client.where} has no batch API: leave batch out."
                    ) from error
                raise

    async def _look_up(self, mark: str) -> str | None:
        """Return the id of the batch with a mark, if it is among the endpoint's latest batches."""
        after = ""
        for _ in range(10):
            try:
                page = await self._patiently("GET", f"/batches?limit=100{after}")
            except RespondentError:  # the endpoint has no list
                return None

            listed = page.get("data") or []
            for batch in listed:
                if (batch.get("metadata") or {}).get("mark") == mark:
                    return str(batch["id"])

            if not page.get("has_more") or not listed:
                return None
            after = f"&after={listed[-1]['id']}"

        return None

    async def _note(self, mark: str, state: str, keys: str = "") -> None:
        """Record the state of a batch in the store."""
        row = {"mark": mark, "state": state, "batch": self.sent[mark].id, "keys": keys}
        row["url"] = self.queue.endpoint.place
        index = pd.Index([key_of(mark, state, keys)], name="key")
        await asyncio.to_thread(self.log.add, pd.DataFrame([row], index=index))
        if state == "over":
            del self.sent[mark]


def _is_refusal(code: int) -> bool:
    """Return whether a status means that a request is wrong, not just too early."""
    return 400 <= code < 500 and code not in (408, 409, 429)
