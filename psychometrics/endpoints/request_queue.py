"""Send requests to a chat endpoint at its pace and within a budget; save each reply before use."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..exceptions import RespondentError
from ..progress import Progress
from ..store.replies import Reply, StoredReplies, Turn
from .budget import _Budget
from .client import _Client
from .completions import _Completion, _NoReply, _read_completion
from .endpoint import Endpoint
from .secrets import _SHORTEST_IN_REPLY, _mask_secrets

PATIENCE = 600.0
"""The number of seconds after which a request without a reply is not repeated."""
# Consecutive requests without a reply after which a run stops.
_GIVE_UP_AFTER = 3
# Most attempts to reach an endpoint that has never replied, whatever the number of retries.
_CONNECTIONS = 3
# Seconds after the first failure during which an endpoint that has never replied is retried.
_FIRST_PATIENCE = 5.0
# Seconds of silence after which the user is told the reason for waiting.
_SILENCE = 5.0
# Most attempts at a request with unreadable replies: they are paid for, and rarely change.
_UNREADABLE_TRIES = 2
# Seconds that a stopped run waits for open replies, and saves them.
_GRACE = 1.0


def _most_tokens(request: Mapping[str, Any]) -> int | None:
    """Return the maximum number of tokens of a reply, under either name that endpoints use."""
    return request.get("max_completion_tokens") or request.get("max_tokens")


_Talk = Generator[Turn, Reply, list[dict[str, Any]]]
_UNASKED = Reply(None, status="unasked")


class _Unasked(Exception):
    """The error for a request that the budget or a dry run does not allow to be sent."""


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
        self._group: asyncio.Future[None] | None = None

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
        if self._group is None:
            self._group = asyncio.ensure_future(self._write())
        await asyncio.shield(self._group)

    async def _write(self) -> None:
        async with self._lock:
            new = self._new
            self._new = {}
            self._group = None
            rows = {key: row for key, (row, _) in new.items()}
            seconds = sum(seconds for _, seconds in new.values())
            await asyncio.to_thread(self.replies.add, rows, seconds)


class _Forecast(NamedTuple):
    """The requests that conversations would send, as far as known before the first reply."""

    stored: int
    """The number of replies in the store."""
    requests: int
    prompt: int
    """The approximate tokens of the requests; ``completion`` counts the tokens of the replies."""
    completion: int
    cost: float
    least: float
    """The greatest cost of the cheapest request."""


class _Batches(Protocol):
    """Send requests in files, as :class:`psychometrics.endpoints.batches.Batches` does."""

    async def reply(self, key: str, text: str) -> _Completion: ...

    def start_if_all_wait(self) -> None: ...

    def stop(self) -> None: ...

    async def finish(self) -> None: ...


class RequestQueue:
    """Send the requests of many conversations, with retries, pace, budget, and the store.

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
    raw : bool
        Whether requests are texts to continue instead of messages.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        settings: dict[str, Any],
        bar: Progress,
        stored: dict[str, StoredReplies],
        raw: bool = False,
    ) -> None:
        self.path = "/completions" if raw else "/chat/completions"
        self._replies = stored
        self.endpoint = endpoint
        self.client = _Client(endpoint, name, settings)
        secrets = self.client.secrets
        self._saves = {key: _GroupedSaves(replies, secrets) for key, replies in stored.items()}
        self._bar = bar
        self.budget = _Budget(endpoint, bar.spending, _most_tokens(settings))
        self.batches: _Batches | None = None
        self.stopped = False
        self.conversations = 0  # number of open conversations
        self._settings = settings
        self.logprobs = bool(settings.get("logprobs"))
        self._start_lock = asyncio.Lock()
        self._replied = self._failures = 0
        self._in_flight = 0  # requests sent and not yet answered
        self._too_soon_since = math.inf  # start of refusals as coming too soon
        self._last_error = ""
        self._first_failure = math.inf
        self._tries = 0  # most attempts at a request without a reply

    def work(
        self, converse: Callable[[str, _Talk], Awaitable[None]], talks: list[tuple[str, _Talk]]
    ) -> None:
        """Hold all conversations; on an error, save replies that are under way and end the run."""
        gc.freeze()  # spares loaded objects from garbage collection while replies arrive
        try:
            _run_in_thread(self._work(converse, talks))
        finally:
            gc.unfreeze()

    def has(self, key: str) -> bool:
        """Return whether the store has the reply for a key."""
        return any(key in replies.by_key for replies in self._replies.values())

    async def _work(
        self, converse: Callable[[str, _Talk], Awaitable[None]], talks: list[tuple[str, _Talk]]
    ) -> None:
        coming = iter(talks)
        many = len(talks) if self.batches else min(self.endpoint.concurrency, len(talks))

        async def worker() -> None:
            try:
                for questionnaire, talk in coming:
                    await converse(questionnaire, talk)
            finally:
                self.conversations -= 1
                if self.batches:
                    self.batches.start_if_all_wait()

        self.conversations = many
        silence = asyncio.get_running_loop().call_later(_SILENCE, self._say_silence)
        tasks = [asyncio.ensure_future(worker()) for _ in range(many)]
        try:
            for done in asyncio.as_completed(tasks):
                await done

            if self._failures and not self._replied:
                raise self._dead()
        finally:
            self.stopped = True
            silence.cancel()
            if self.batches:
                self.batches.stop()

            left = {task for task in tasks if not task.done()}
            if left:  # in batch mode all replies have arrived
                _, left = await asyncio.wait(left, timeout=60 if self.batches else _GRACE)

            for task in tasks:
                task.cancel()

            await asyncio.gather(*tasks, return_exceptions=True)
            writing = asyncio.all_tasks() - {asyncio.current_task()}
            if writing:  # the loop is ours
                await asyncio.wait(writing, timeout=_GRACE)

            if self.batches and not left:
                await self.batches.finish()

            await self.client.close()

    def forecast(self, talks: list[tuple[str, _Talk]]) -> _Forecast:
        """Estimate the requests of conversations and their cost, without sending any.

        Parameters
        ----------
        talks : list of (str, generator)
            Conversations with their questionnaires' ids. Each is held to the end, with stored
            replies if there are any, and otherwise with requests that count as unasked.
        """
        texts = []
        stored = 0

        for questionnaire, talk in talks:
            turn = next(talk)
            while True:
                text, key = self._request(questionnaire, turn)
                reply = self._replies[questionnaire].by_key.get(key)
                if reply is None:
                    texts.append((text, len(turn.items)))
                    reply = _UNASKED
                else:
                    stored += 1

                try:
                    turn = talk.send(reply)
                except StopIteration:
                    break

        tokens = [self.budget.estimate(*text) for text in texts]
        most = [self.budget.cost(*self.budget.most_tokens(text)) for text, _ in texts]
        prompt = sum(p for p, _ in tokens)
        completion = sum(c for _, c in tokens)
        cost = self.budget.cost(prompt, completion)

        return _Forecast(stored, len(texts), prompt, completion, cost, min(most, default=0.0))

    def _request(self, questionnaire: str, turn: Turn) -> tuple[str, str]:
        """Return a request as text, and the key of its reply."""
        request = dict(self._settings)
        if self.path == "/completions":
            request["prompt"] = "\n\n".join(message["content"] for message in turn.messages)
        else:
            request["messages"] = turn.messages

        if "seed" in request:  # otherwise all runs would draw the same
            request["seed"] += turn.run - 1
        if turn.response_format is not None:
            request["response_format"] = turn.response_format

        text = json.dumps(request, sort_keys=True)
        return text, self._replies[questionnaire].key(text, turn)

    async def ask(self, questionnaire: str, turn: Turn) -> Reply:
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
            completion = await self._patiently(key, text)
        except _Unasked:
            return _UNASKED
        except _NoReply as error:
            self._failures += 1
            self._last_error = str(error)
            goes_on = self._replied or not error.unreachable
            if self._failures < _GIVE_UP_AFTER and goes_on and not error.slow:
                return Reply(None, status=error.status, is_new=True)

            self.stopped = True
            raise (self._refusing() if error.slow else self._dead()) from error
        except RespondentError:
            self.stopped = True  # at once, before the next request starts
            raise

        seconds = time.monotonic() - began
        await self._saves[questionnaire].save(key, turn, text, completion, seconds)
        self._failures = 0
        self._replied += 1

        return dataclasses.replace(replies.by_key[key], is_new=True)  # as stored

    async def _patiently(self, key: str, text: str) -> _Completion:
        """Repeat a request until it succeeds or is hopeless."""
        send: Callable[[str, str], Awaitable[_Completion]]
        send = self.batches.reply if self.batches else self._reply
        sent = 0
        failed = 0
        unreadable = 0
        first = math.inf

        while True:
            try:
                return await send(key, text)
            except _NoReply as error:
                now = time.monotonic()
                first = min(first, now)
                self._first_failure = min(self._first_failure, now)
                grown = min(self.endpoint.pause * 2 ** min(sent, 10), 60.0)
                pause = grown * np.random.default_rng().uniform(0.75, 1.25)
                pause = pause if error.after is None else error.after

                if error.slow:  # not a failure while the endpoint replies to others
                    self._too_soon_since = min(self._too_soon_since, now)
                    patience = self.endpoint.patience
                    if self._in_flight:  # others may still get replies
                        patience += self.endpoint.timeout
                    enough = now + pause - self._too_soon_since > patience
                else:
                    failed += 1
                    unreadable += error.unreadable
                    enough = failed > self.endpoint.retries or unreadable >= _UNREADABLE_TRIES
                    enough |= self._seems_dead(error, failed)
                    enough |= not self.batches and now - first >= PATIENCE

                if enough:
                    self._tries = max(self._tries, sent + 1)
                    raise

                if self._first_failure == now and not self._replied:
                    most = f"{self.endpoint.retries} times (retries)"
                    most = f"{self.endpoint.patience:g} s (patience)" if error.slow else most
                    self._say_wait(f"{error}; it is sent again for at most {most}")

            sent += 1
            await asyncio.sleep(pause)

    def _seems_dead(self, error: _NoReply, failed: int) -> bool:
        """Return whether an endpoint that has never replied is unlikely to reply now."""
        if self._replied:
            return False
        if error.unreachable and failed >= _CONNECTIONS:
            return True

        waited = time.monotonic() - self._first_failure
        is_over = failed > 1 and waited >= _FIRST_PATIENCE  # a model may have to load first
        return is_over and not (self.batches or error.busy)

    async def _reply(self, key: str, text: str) -> _Completion:
        """Send a request when the budget and the pace allow it."""
        most = await self.budget.wait(text)
        if most is None:
            raise _Unasked

        completion = None
        paid = False
        begun = math.inf
        pace = self.client.pace
        tokens = sum(self.budget.most_tokens(text))

        try:
            begun = await self._begin(tokens)
            paid = True  # an aborted request may have got a reply
            content, body = await self.client.exchange("POST", self.path, text)
            completion = _read_completion(content, self.logprobs)
            if completion is None:
                raise self.client.unreadable(body)

            self._too_soon_since = math.inf
            pace.replied()
        except _NoReply as error:
            paid = error.paid
            if error.slow:
                pace.too_fast(begun, error.after)
                self._say_slow(error.after)

            raise
        except RespondentError:
            paid = False
            raise
        finally:
            self._in_flight -= begun < math.inf
            if completion is None:
                self.budget.release(most, text, paid)

        completion = self.budget.settle(most, completion, text)
        pace.limits.settle(tokens, sum(completion.tokens))
        return completion

    async def _begin(self, tokens: int) -> float:
        """Wait until the pace allows a request, and return the time at which it begins."""
        pace = self.client.pace
        async with self._start_lock:
            while pace.left() > 0 and not self.stopped:
                await asyncio.sleep(min(pace.left(), 1.0))

            if self.stopped:
                raise asyncio.CancelledError

            begun = time.monotonic()
            self._in_flight += 1
            pace.begin(tokens)

        return begun

    def _dead(self) -> RespondentError:
        """Return the error for an endpoint that does not reply."""
        requests = "request" if self._failures == 1 else "requests"
        times = "once" if self._tries == 1 else f"up to {self._tries} times"
        return RespondentError(
            f"{self.client.where} gave no reply to {self._failures} {requests} in a row, sent "
            f"{times} each (the last: {self._last_error}): check that it is running and that "
            "OPENAI_BASE_URL is its address, and run again to resume."
        )

    def _refusing(self) -> RespondentError:
        """Return the error for an endpoint that refuses every request as too early."""
        return RespondentError(
            f"{self.client.where} refuses every request as too early ({self._last_error}) and is "
            f"given up after {self.endpoint.patience:g} s (patience): a quota may be used up; run "
            "again later to resume."
        )

    def _say_silence(self) -> None:
        """Report that no reply has come yet, if requests are under way and none has failed."""
        quiet = not self._replied and math.isinf(self._first_failure)
        if quiet and self.budget.spending.under_way and not self.batches:
            limit = self.endpoint.timeout
            self._say_wait(f"a request is aborted after {limit:g} s (timeout)")

    def _say_wait(self, why: str) -> None:
        """Report, once and on a separate line, why the first reply has not come yet."""
        if not self._bar.disable:
            self._bar.write(f"{self.client.where}: no reply yet ({why}).", file=sys.stderr)

    def _say_slow(self, after: float | None) -> None:
        """Show on the progress bar that the endpoint refuses requests as too early."""
        spending = self.budget.spending
        rate = self.client.pace.rate
        spending.refused += 1
        pace = f"at most {rate:.2g} requests a second" if rate else "the others continue"
        wait = f" after {after:g} s" if after else ""
        self._bar.say(f"{spending.refused} came too early (429), sent again{wait}; {pace}")


def _run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread, since a notebook already has a loop; Ctrl-C works at once."""
    loop = asyncio.new_event_loop()
    ended = threading.Event()

    async def whole() -> None:
        try:
            await work
        finally:
            ended.set()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(whole(), loop)

    try:
        future.result()
    except BaseException:
        future.cancel()
        ended.wait(2 * _GRACE)
        raise
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_GRACE)
        if not thread.is_alive():
            loop.close()
