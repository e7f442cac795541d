"""Send requests to a chat endpoint within a budget; save each reply before use."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import math
import sys
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..exceptions import RespondentError
from ..progress import Progress
from ..store.replies import Reply, StoredReplies, Turn
from .budget import _Budget, _Reservation
from .client import _Client
from .completions import _Completion, _NoReply, _read_completion
from .endpoint import Endpoint
from .secrets import _SHORTEST_IN_REPLY, _mask_secrets

# Consecutive requests without a reply after which a run stops.
_GIVE_UP_AFTER = 3
# Most attempts at a request, whatever the number of retries, before an endpoint's first reply.
_FIRST_TRIES = 3
# Seconds of silence after which the user is told the reason for waiting.
_SILENCE = 5.0
# Most attempts at a request with unreadable replies: they are paid for, and rarely change.
_UNREADABLE_TRIES = 2
# Seconds that a stopped run waits for open replies, and saves them.
_GRACE = 1.0


_Row = dict[str, Any]
_Talk = Generator[Turn, Reply, list[_Row]]
# Gets a questionnaire's id, the rows of a conversation, and whether one of its replies is new.
_Finish = Callable[[str, list[_Row], bool], None]
_UNASKED = Reply(None, status="unasked")


class _GroupedSaves:
    """Save replies about one questionnaire, and group replies that arrive during a save.

    Parameters
    ----------
    replies : StoredReplies
    secrets : list of str
        Texts that are masked in requests and replies.
    """

    def __init__(self, replies: StoredReplies, secrets: list[str]) -> None:
        self.replies = replies
        self._secrets = secrets
        self._new: dict[str, tuple[tuple[Turn, str, dict[str, Any]], float]] = {}
        self._lock = asyncio.Lock()

    async def save(
        self, key: str, turn: Turn, request: str, completion: _Completion, seconds: float
    ) -> None:
        """Save a reply, and return once it is in the store."""
        columns = {
            "reply": completion.text,
            "finish_reason": completion.finish_reason,
            "usage": json.dumps(completion.usage),
            "model": completion.model,
        }
        long = [secret for secret in self._secrets if len(secret) >= _SHORTEST_IN_REPLY]
        request = _mask_secrets(request, self._secrets)
        row = turn, request, _mask_secrets(columns, long)
        self._new[key] = row, seconds
        await asyncio.shield(self._write(key))

    async def _write(self, key: str) -> None:
        async with self._lock:
            new = self._new
            if key in new:  # otherwise an earlier group had it
                self._new = {}
                rows = {key: row for key, (row, _) in new.items()}
                seconds = sum(seconds for _, seconds in new.values())
                await asyncio.to_thread(self.replies.add, rows, seconds)


class RequestQueue:
    """Send the requests of many conversations, with retries, a budget, and the store.

    Parameters
    ----------
    endpoint : Endpoint
    name : str
        Name of the respondent.
    settings : dict
        Settings of each request besides its messages.
    bar : Progress
    stored : dict of StoredReplies
        The replies about each questionnaire, by its id.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        settings: dict[str, Any],
        bar: Progress,
        stored: dict[str, StoredReplies],
    ) -> None:
        self._replies = stored
        self.endpoint = endpoint
        self.client = _Client(endpoint, name)
        secrets = self.client.secrets
        self._saves = {key: _GroupedSaves(replies, secrets) for key, replies in stored.items()}
        self._bar = bar
        self.budget = _Budget(endpoint, bar.spending, settings.get("max_tokens"))
        self.models: set[str] = set()  # that replied
        self.stopped = False
        self._settings = settings
        self.logprobs = bool(settings.get("logprobs"))
        self._replied = self._failures = 0
        self._says_wait = not bar.disable  # whether to report why the first reply takes long
        self._too_soon_since = math.inf  # start of refusals as coming too soon
        self._last_error = ""
        self._tries = 0  # most attempts at a request without a reply

    def work(self, talks: list[tuple[str, _Talk]], finish: _Finish) -> None:
        """Hold all conversations; on an error, save replies that are under way and end the run."""
        gc.freeze()  # spares loaded objects from garbage collection while replies arrive
        loop = asyncio.new_event_loop()
        task = loop.create_task(self._work(talks, finish))
        try:
            # In a thread, since a notebook already has a loop; Ctrl-C works at once.
            with ThreadPoolExecutor(max_workers=1) as pool:
                future = pool.submit(loop.run_until_complete, task)
                try:
                    future.result()
                except BaseException:
                    loop.call_soon_threadsafe(task.cancel)
                    raise
        finally:
            loop.close()
            gc.unfreeze()

    async def _work(self, talks: list[tuple[str, _Talk]], finish: _Finish) -> None:
        coming = iter(talks)
        many = min(self.endpoint.concurrency, len(talks))

        async def worker() -> None:
            for questionnaire, talk in coming:
                await self._converse(questionnaire, talk, finish)

        silence = asyncio.get_running_loop().call_later(_SILENCE, self._say_silence)
        async with self.client:
            tasks = [asyncio.ensure_future(worker()) for _ in range(many)]
            try:
                for done in asyncio.as_completed(tasks):
                    await done

                if self._failures and not self._replied:
                    raise self._make_error()
            finally:
                self.stopped = True
                silence.cancel()
                unfinished = {task for task in tasks if not task.done()}
                if unfinished:
                    await asyncio.wait(unfinished, timeout=_GRACE)

                for task in tasks:
                    task.cancel()

                await asyncio.gather(*tasks, return_exceptions=True)
                writing = asyncio.all_tasks() - {asyncio.current_task()}
                if writing:  # the loop is ours
                    await asyncio.wait(writing, timeout=_GRACE)

    async def _converse(self, questionnaire: str, talk: _Talk, finish: _Finish) -> None:
        """Hold one conversation to its end."""
        turn = next(talk)
        is_new = False
        while True:
            reply = await self._ask(questionnaire, turn)
            is_new |= reply.is_new
            self.models |= {reply.model} if reply.model else set()
            try:
                turn = talk.send(reply)
            except StopIteration as end:
                finish(questionnaire, end.value, is_new)
                return

    def unstored(self, talks: Iterable[tuple[str, _Talk]]) -> tuple[list[tuple[str, int]], int]:
        """Return the requests of conversations as far as known before the first reply.

        Parameters
        ----------
        talks : list of (str, generator)
            Conversations with their questionnaires' ids. Each is held to the end, with stored
            replies if there are any, and otherwise with requests that count as unasked.

        Returns
        -------
        list of (str, int)
            The requests without a stored reply, each with its number of statements.
        int
            The number of stored replies.
        """
        requests = []
        stored = 0

        for questionnaire, talk in talks:
            with contextlib.suppress(StopIteration):
                turn = next(talk)
                while True:
                    text, key = self._request(questionnaire, turn)
                    reply = self._replies[questionnaire].by_key.get(key, _UNASKED)
                    stored += reply is not _UNASKED
                    if reply is _UNASKED:
                        requests.append((text, len(turn.items)))

                    turn = talk.send(reply)

        return requests, stored

    def _request(self, questionnaire: str, turn: Turn) -> tuple[str, str]:
        """Return a request as text, and the key of its reply."""
        request = self._settings | {"messages": turn.messages}
        if "seed" in request:  # otherwise all runs would draw the same
            request["seed"] += turn.run - 1
        if turn.response_format is not None:
            request["response_format"] = turn.response_format

        text = json.dumps(request, sort_keys=True)
        return text, self._replies[questionnaire].key(text, turn)

    async def _ask(self, questionnaire: str, turn: Turn) -> Reply:
        """Return the reply to a request, from the store or by sending the request now."""
        replies = self._replies[questionnaire]
        text, key = self._request(questionnaire, turn)
        stored_reply = replies.by_key.get(key)
        if stored_reply is not None:
            return stored_reply

        if self.endpoint.dry_run:
            self.budget.plan(text, len(turn.items))
            return _UNASKED

        began = time.monotonic()
        try:
            completion = await self._send_until_reply(text)
        except _NoReply as error:
            self._failures += 1
            self._last_error = str(error)
            goes_on = self._replied or not error.unreachable
            if self._failures < _GIVE_UP_AFTER and goes_on and not error.slow:
                return Reply(None, status=error.status, is_new=True)

            self.stopped = True
            raise self._make_error(error.slow) from error
        except RespondentError:
            self.stopped = True  # at once, before the next request starts
            raise

        if completion is None:
            return _UNASKED

        seconds = time.monotonic() - began
        await self._saves[questionnaire].save(key, turn, text, completion, seconds)
        self._failures = 0
        return dataclasses.replace(replies.by_key[key], is_new=True)  # as stored

    async def _send_until_reply(self, text: str) -> _Completion | None:
        """Repeat a request until it succeeds or is hopeless, and return the reply.

        Without enough budget there is no request, and no reply.

        Raises
        ------
        NoReply
            The request is hopeless.
        """
        sent = 0
        failures = 0
        unreadable = 0
        while True:
            try:
                completion = await self._send(text)
                if completion is not None:
                    self._too_soon_since = math.inf
                    self._replied += 1
                return completion
            except _NoReply as error:
                sent += 1
                pause = min(self.endpoint.pause * 2 ** min(sent - 1, 10), 60.0)
                pause *= np.random.default_rng().uniform(0.75, 1.25)
                if error.after is not None:  # obeyed, and more than once if it was too short
                    pause = error.after if sent == 1 else max(pause, error.after)

                if error.slow:  # not a failure while the endpoint replies to others
                    now = time.monotonic()
                    self._too_soon_since = min(self._too_soon_since, now)
                    patience = self.endpoint.patience
                    if self.budget.spending.under_way:  # other requests may still get replies
                        patience += self.endpoint.timeout
                    is_hopeless = now + pause - self._too_soon_since > patience
                else:
                    failures += 1
                    unreadable += error.unreadable
                    tries = self.endpoint.retries + 1
                    if not (self._replied or error.busy):
                        tries = min(tries, _FIRST_TRIES)
                    is_hopeless = failures >= tries or unreadable >= _UNREADABLE_TRIES

                if is_hopeless:
                    self._tries = max(self._tries, sent)
                    raise

                most = f"{self.endpoint.retries} times (retries)"
                if error.slow:
                    most = f"{self.endpoint.patience:g} s (patience)"
                self._say_wait(f"{error}; it is sent again for at most {most}")

            await asyncio.sleep(pause)

    async def _send(self, text: str) -> _Completion | None:
        """Send a request when the limits allow it, if the budget does."""
        reservation = _Reservation(text)
        paid = False

        try:
            if not await self.budget.wait(reservation):
                return None

            while not self.stopped and self.client.held > time.monotonic():
                await asyncio.sleep(min(self.client.held - time.monotonic(), 1.0))
            if self.stopped:
                raise asyncio.CancelledError

            paid = True  # an aborted request may have got a reply
            content, body = await self.client.exchange(text)
            completion = _read_completion(content, self.logprobs)
            if completion is None:
                excerpt = self.client.excerpt(body) or "it is empty"
                raise _NoReply(f"unreadable reply: {excerpt}", paid=True, unreadable=True)

            completion = self.budget.settle(reservation, completion)
        except _NoReply as error:
            paid = error.paid
            if error.slow:
                self._bar.spending.refused += 1
                wait = f" after {error.after:g} s" if error.after else ""
                self._bar.say(
                    f"{self._bar.spending.refused} came too early (429), sent again{wait}"
                )

            raise
        except RespondentError:
            paid = False
            raise
        finally:
            self.budget.release(reservation, paid)  # unless it is settled

        return completion

    def _make_error(self, refuses_all: bool = False) -> RespondentError:
        """Return the error for an endpoint that does not reply, or refuses all as too early."""
        if refuses_all:
            return RespondentError(
                f"{self.client.where} refuses every request as too early ({self._last_error}) and "
                f"is given up after {self.endpoint.patience:g} s (patience): a quota may be used "
                "up; run again later to resume."
            )

        requests = "request" if self._failures == 1 else "requests"
        times = "once" if self._tries == 1 else f"up to {self._tries} times"
        return RespondentError(
            f"{self.client.where} gave no reply to {self._failures} {requests} in a row, sent "
            f"{times} each (the last: {self._last_error}): check that it is running and that "
            "OPENAI_BASE_URL is its address, and run again to resume."
        )

    def _say_silence(self) -> None:
        """Report that no reply has come yet, if requests are under way."""
        if self.budget.spending.under_way:
            self._say_wait(f"a request is aborted after {self.endpoint.timeout:g} s (timeout)")

    def _say_wait(self, reason: str) -> None:
        """Report, once and on a separate line, why the first reply has not come yet."""
        if self._says_wait and not self._replied:
            self._says_wait = False
            self._bar.write(f"{self.client.where}: no reply yet ({reason}).", file=sys.stderr)
