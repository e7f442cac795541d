"""Send requests as files to endpoints with a batch API (``/files``, ``/batches``).

All conversations run at once. When all conversations wait for a reply, their requests go to the
endpoint as one batch; the next requests form the next batch. The store records each batch before
and after it is sent, so a killed run finds the batches whose replies are not yet stored. A batch
whose sending was interrupted is looked up in the endpoint's list.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..exceptions import RespondentError
from ..store import StoredAnswers, key_of
from .completions import _NoReply
from .limits import _Reservation
from .request_queue import RequestQueue, _Unasked

# Most requests of one file; endpoints allow 50,000 and 200 MB.
_MOST_LINES = 20_000
# Most bytes of a line of results.
_LARGEST_LINE = 2**18
# Most seconds between two checks of a batch.
_POLLS = 60.0
_Response = tuple[int, Any]  # status and content
_ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class _Batch:
    """A batch that was sent, with its id at the endpoint and the keys of its requests."""

    id: str = ""
    keys: list[str] = field(default_factory=list)
    is_over: bool = False


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
        self.asked: dict[str, tuple[_Reservation, asyncio.Future[_Response]]] = {}
        self.waiting: Counter[str] = Counter()  # conversations by the request they wait for
        self.round: asyncio.Task[None] | None = None
        self.sent: dict[str, _Batch] = {}  # by mark, batches with replies that are not stored

        for row in log.rows.to_dict("records") if len(log) else ():
            if row["url"] == queue.endpoint.place:
                batch = self.sent.setdefault(row["mark"], _Batch())
                batch.id = row["batch"] or batch.id
                batch.keys = row["keys"].split() or batch.keys
                batch.is_over |= row["state"] == "over"

    async def exchange(self, key: str, reservation: _Reservation) -> tuple[Any, bytes]:
        """Wait until a request's batch has ended, and return the response as JSON and as bytes.

        Raises
        ------
        NoReply, RespondentError
            As :meth:`Client.exchange`.
        Unasked
            The budget does not allow the request to be sent.
        """
        if key not in self.asked:  # two questionnaires may need the same reply
            self.asked[key] = reservation, asyncio.get_running_loop().create_future()

        self.waiting[key] += 1
        self.start_if_all_wait()
        status, content = await asyncio.shield(self.asked[key][1])
        body = json.dumps(content).encode()
        self.client.check(status, content, body, {})
        return content, body

    def start_if_all_wait(self) -> None:
        """Start the next batch if all open conversations wait for a reply."""
        all_wait = bool(self.asked) and self.waiting.total() >= self.queue.conversations
        if all_wait and not self.queue.stopped and (self.round is None or self.round.done()):
            self.round = asyncio.ensure_future(self._round())

    def stop(self) -> None:
        """Stop waiting for the batches, which continue at the endpoint."""
        if self.round is not None:
            self.round.cancel()
        for _, future in self.asked.values():
            future.cancel()

    async def _round(self) -> None:
        try:
            running = await self._resume() + await self._submit_new()
            for mark in running:
                await self._collect(mark)

            if not running:  # nothing is under way, and the budget is used up
                raise _Unasked
        except Exception as error:
            for key in list(self.asked):
                self._deliver(key, error)
        finally:
            asyncio.get_running_loop().call_soon(self.start_if_all_wait)

    def _deliver(self, key: str, response: _Response | Exception) -> None:
        """Give a request's conversations its response or its error."""
        _, future = self.asked.pop(key)
        del self.waiting[key]
        if not future.done():
            if isinstance(response, Exception):
                future.set_exception(response)
            else:
                future.set_result(response)

    async def _resume(self) -> list[str]:
        """Find batches of an earlier run that contain one of the present requests."""
        marks = []
        for mark, batch in self.sent.items():
            # A request that failed in one batch is also in a later one.
            waiting = [key for key in self._asked_of(batch) if self.asked[key][0].most is None]
            if batch.is_over or not waiting:
                continue

            if not batch.id:  # killed while it was sent
                batch.id = await self._look_up(mark) or ""

            try:
                if batch.id:
                    await self._request("GET", f"/batches/{batch.id}")
            except RespondentError as error:
                if " status 404" not in str(error):
                    raise
                batch.id = ""  # the endpoint has forgotten it

            batch.is_over = not batch.id
            if not batch.is_over:
                marks.append(mark)
                for key in waiting:  # they are paid for already
                    self.queue.budget.reserve(self.asked[key][0], within=False)

        return marks

    async def _submit_new(self) -> list[str]:
        """Send the requests that are not yet in a batch, as far as the budget allows."""
        open_batches = [batch for batch in self.sent.values() if not batch.is_over]
        in_batches = {key for batch in open_batches for key in batch.keys}
        rows = []

        for key, (reservation, _) in self.asked.items():
            if key not in in_batches and self.queue.budget.reserve(reservation):
                row = {"custom_id": key, "method": "POST", "url": f"/v1{self.queue.path}"}
                rows.append(row | {"body": json.loads(reservation.text)})

        starts = range(0, len(rows), _MOST_LINES)
        return [await self._submit(rows[start : start + _MOST_LINES]) for start in starts]

    def _asked_of(self, batch: _Batch) -> list[str]:
        """Return the keys of a batch that conversations wait for."""
        return [key for key in batch.keys if key in self.asked]

    async def _submit(self, rows: list[dict[str, Any]]) -> str:
        """Send a batch, which is in the log before it is at the endpoint; return its mark."""
        mark = uuid.uuid4().hex
        file = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows).encode()
        uploaded = await self._request("POST", "/files", file=file)
        settings = {
            "input_file_id": uploaded["id"],
            "endpoint": f"/v1{self.queue.path}",
            "completion_window": "24h",
            "metadata": {"mark": mark},
        }

        self.sent[mark] = _Batch(keys=[row["custom_id"] for row in rows])
        await self._note(mark, "intended")
        batch = await self._request("POST", "/batches", json.dumps(settings), mark=mark)
        self.sent[mark].id = str(batch["id"])
        await self._note(mark, "sent")
        return mark

    async def _collect(self, mark: str) -> None:
        """Check a batch until it has ended, and deliver its replies."""
        batch = self.sent[mark]
        began = time.monotonic()
        state = await self._request("GET", f"/batches/{batch.id}")
        while state.get("status") not in _ENDED:
            if not isinstance(state.get("status"), str):
                raise RespondentError(f"{self.client.where} reports no status: leave batch out.")

            waited = time.monotonic() - began
            await asyncio.sleep(min(_POLLS, max(self.queue.endpoint.pause, waited / 10)))
            state = await self._request("GET", f"/batches/{batch.id}")

        waiting = [key for key in self._asked_of(batch) if self.asked[key][0].most is not None]
        if state["status"] == "failed":
            errors = state.get("errors") or {}
            reasons = errors.get("data") if isinstance(errors, dict) else None
            why = self.client.excerpt(json.dumps(reasons or "it gives no reason"))
            for key in waiting:
                self.queue.budget.release(self.asked[key][0])

            batch.is_over = True
            await self._note(mark, "over")
            raise RespondentError(f"{self.client.where} refuses the batch {batch.id}: {why}")

        results: dict[str, dict[str, Any]] = {}
        for name in ("output_file_id", "error_file_id"):
            if state.get(name):
                results |= await self._results(state[name], len(batch.keys))

        for key in waiting:
            self._deliver(key, self._response(results.get(key, {}), state["status"]))

        batch.keys = [key for key in batch.keys if key not in waiting]
        if state["status"] == "cancelled" and set(waiting) - results.keys():
            raise RespondentError(
                f"{self.client.where} has cancelled the batch {batch.id}: run again to send the "
                "remaining requests."
            )

    async def _results(self, file: str, count: int) -> dict[str, dict[str, Any]]:
        """Return the valid lines of a file of results, by the keys of their requests."""
        path = f"/files/{file}/content"
        body = await self._request("GET", path, largest=count * _LARGEST_LINE)
        results = {}
        for text in body.splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                line = json.loads(text)
                if isinstance(line, dict) and isinstance(line.get("custom_id"), str):
                    results[line["custom_id"]] = line

        return results

    def _response(self, line: dict[str, Any], status: str) -> _Response | _NoReply:
        """Return the response in a request's line of the results, or why there is none."""
        response = line.get("response")
        if isinstance(response, dict) and isinstance(response.get("status_code"), int):
            return response["status_code"], response.get("body")

        error = line.get("error")
        why = error.get("code") if isinstance(error, dict) else None
        why = self.client.excerpt(str(why or f"no line in a batch that is {status}"))
        return _NoReply(f"in a batch: {why}", after=0.0)

    async def _request(
        self,
        method: str,
        path: str,
        content: str = "",
        file: bytes = b"",
        largest: int = 0,
        mark: str = "",
    ) -> Any:
        """Repeat a request until it succeeds or is hopeless; return JSON, or the bytes of a file.

        A batch whose start was not confirmed is looked up by its mark instead of being sent again.
        """

        async def exchange() -> Any:
            try:
                reply, body = await self.client.exchange(method, path, content, file, largest)
                if path.endswith("/content"):
                    return body
                if isinstance(reply, dict) and (method == "GET" or reply.get("id")):
                    return reply
                raise _NoReply(f"unreadable reply: {self.client.excerpt(body)}")
            except _NoReply:
                batch = await self._look_up(mark) if mark else None
                if batch:
                    return {"id": batch}
                raise

        try:
            return await self.queue.persist(exchange, is_check=method == "GET")
        except _NoReply as error:
            raise RespondentError(
                f"{self.client.where} does not reply about batches (last error: {error}): "
                "run again to resume; batches already sent are found again."
            ) from error
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
                page = await self._request("GET", f"/batches?limit=100{after}")
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

    async def _note(self, mark: str, state: str) -> None:
        """Record the state of a batch in the store."""
        batch = self.sent[mark]
        keys = " ".join(batch.keys)
        row = {"mark": mark, "state": state, "batch": batch.id, "keys": keys}
        row["url"] = self.queue.endpoint.place
        index = pd.Index([key_of(mark, state, keys)], name="key")
        await asyncio.to_thread(self.log.add, pd.DataFrame([row], index=index))
