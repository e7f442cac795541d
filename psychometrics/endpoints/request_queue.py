"""How requests reach a chat endpoint: at its pace, within a budget, each reply saved before use."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import NamedTuple

import numpy as np

from ..exceptions import RespondentError
from ..progress import Progress
from ..store.replies import StoredReplies
from .client import Client, NoReply
from .endpoint import Endpoint

PATIENCE = 600.0
"""Seconds after which a request that has had no reply is not begun again."""
# Requests without a reply, one after the other, after which a run stops.
_GIVE_UP_AFTER = 3
# How often an endpoint that has never replied is tried to reach, however many the retries.
_CONNECTIONS = 3
# Seconds after the first failure for which an endpoint that has never replied is tried again.
_FIRST_PATIENCE = 5.0
# Seconds of silence after which a user is told what is waited for.
_SILENCE = 5.0
# How often a request is sent whose replies cannot be read: they are paid for, and rarely change.
_UNREADABLE_TRIES = 2
# Seconds for which a run that is stopped waits for replies under way, and saves them.
_GRACE = 1.0

# Tokens of a request beyond those of its text, at most: the marks between messages.
_OVERHEAD = 32


def _most_tokens(request: Mapping[str, object]) -> int | None:
    """Return the most tokens that a reply may have, by either of the names that endpoints use."""
    return request.get("max_completion_tokens") or request.get("max_tokens")


class Unasked(Exception):
    """A request was not sent: the budget does not allow it, or nothing is to be sent."""


class _GroupedSaves:
    """Saves replies about one questionnaire; those that come while others are written go together.

    Parameters
    ----------
    replies : StoredReplies
    """

    def __init__(self, replies: StoredReplies) -> None:
        self.replies = replies
        self._new: dict[str, tuple[tuple, float]] = {}
        self._lock = asyncio.Lock()
        self._group = None

    async def save(self, key: str, row: tuple[dict, str, dict], seconds: float) -> None:
        """Return when the row is safe."""
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


class _Budget:
    """What requests may cost: reserved before a request is sent, settled when its reply is there.

    Parameters
    ----------
    endpoint : Endpoint
        Its prices and ``max_cost``.
    spending : object
        Of the call's :class:`psychometrics.progress.Progress`.
    max_tokens : int, optional
        Most tokens of a reply.
    """

    def __init__(self, endpoint: Endpoint, spending: object, max_tokens: int | None) -> None:
        self._prices = endpoint.price_in or 0, endpoint.price_out or 0
        self._limit = endpoint.max_cost
        self._max_tokens = max_tokens
        self._lock, self._settled = asyncio.Lock(), asyncio.Event()
        self._tokens_per_byte: float | None = None
        self.spending = spending
        spending.priced = endpoint.price_in is not None or endpoint.price_out is not None

    def most_tokens(self, text: str) -> tuple[int, int]:
        """Return the most tokens that a request and its reply may have.

        A token has at least one byte; how many it has at this endpoint is learnt from its replies.
        """
        per_byte = min(1.0, 1.25 * (self._tokens_per_byte or 1.0))
        prompt = math.ceil(len(text) * per_byte) + _OVERHEAD
        return prompt, self._max_tokens or len(text) // 8 + _OVERHEAD

    def cost(self, prompt: int, completion: int) -> float:
        """Return what tokens cost, in the currency of the prices."""
        return (prompt * self._prices[0] + completion * self._prices[1]) / 1e6

    def estimate(self, text: str, statements: int) -> tuple[int, int]:
        """Return the likely tokens of a request: 4 bytes to a token, 8 tokens to an answer."""
        return len(text) // 4, self._max_tokens or 8 * statements

    def plan(self, text: str, statements: int) -> None:
        """Count a request that would be sent."""
        prompt, completion = self.estimate(text, statements)
        self.spending.planned += 1
        cost = self.cost(prompt, completion)
        self.spending.add({"estimated": True}, prompt, completion, cost)

    def reserve(self, text: str, within: bool = True) -> float | None:
        """Reserve the most that a request may cost; None if the budget (``within``) forbids it."""
        spending = self.spending
        most = self.cost(*self.most_tokens(text))
        total = spending.cost + spending.reserved + most
        if within and self._limit is not None and total > self._limit:
            return None
        spending.reserved += most
        spending.under_way += 1
        return most

    async def wait(self, text: str) -> float | None:
        """Reserve as soon as the requests under way leave enough; None if they never will."""
        async with self._lock:
            while (most := self.reserve(text)) is None:
                if not self.spending.under_way:
                    return None
                self._settled.clear()
                await self._settled.wait()
        return most

    def settle(self, most: float, found: dict | None, text: str, paid: bool = False) -> int:
        """Count what a request took, in place of its reservation; return its tokens.

        Completes ``found["usage"]``. Without a reply that the endpoint may nevertheless have given
        (``paid``), the most that it may have cost is counted.
        """
        spending = self.spending
        tokens = (0, 0)
        spending.under_way -= 1
        spending.reserved = spending.reserved - most if spending.under_way else 0.0

        if found is not None:
            tokens = found.pop("tokens")
            usage = found["usage"]
            if usage is None:
                tokens = tuple(max(1, len(part) // 4) for part in (text, found["reply"]))
                usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
                usage["estimated"] = True
            else:
                seen = tokens[0] / len(text)
                self._tokens_per_byte = max(self._tokens_per_byte or 0.0, seen)

            found["usage"] = json.dumps(usage)
            spending.add(usage, *tokens, self.cost(*tokens))
        elif paid:
            spending.add({"estimated": True}, *self.most_tokens(text), most)

        self._settled.set()
        return sum(tokens)


class _Forecast(NamedTuple):
    """What conversations would send, as far as that is known before the first reply."""

    stored: int
    """Replies that the store has."""
    requests: int
    prompt: int
    """Tokens of the requests, about; ``completion``, of the replies."""
    completion: int
    cost: float
    least: float
    """The most that the cheapest request may cost."""


class RequestQueue:
    """Sends the requests of many conversations: retries, pace, budget, and the store.

    Parameters
    ----------
    endpoint : Endpoint
    identity : dict
        The respondent's.
    settings : dict
        What each request says besides its messages.
    bar : Progress
    stored : dict of StoredReplies
        The replies about each questionnaire, by its id.
    raw : bool
        Requests are texts to go on from, not messages.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        identity: dict,
        settings: dict,
        bar: Progress,
        stored: dict[str, StoredReplies],
        raw: bool = False,
    ) -> None:
        self.path = "/completions" if raw else "/chat/completions"
        self._replies, self._saves = stored, {own: _GroupedSaves(stored[own]) for own in stored}
        self.endpoint, self.client = endpoint, Client(endpoint, identity["respondent_id"])
        self._bar, self.budget = bar, _Budget(endpoint, bar.spending, _most_tokens(settings))
        self.batches = None  # of endpoints.batches, where requests are sent by files
        self.stopped = False
        self.conversations = 0  # that go on
        self._settings = settings
        self.logprobs = bool(settings.get("logprobs"))
        self._start_lock = asyncio.Lock()
        self._replied = self._failures = 0
        self._last_reply = time.monotonic()
        self._last_error = ""
        self._first_failure = math.inf
        self._tries = 0  # most of a request that had no reply

    def work(self, converse: Callable[..., Awaitable[None]], jobs: list[tuple]) -> None:
        """Hold all conversations; an error ends the run, after the replies under way are saved."""
        gc.freeze()  # what is loaded would be looked through for garbage while replies come
        try:
            _run_in_thread(self._work(converse, jobs))
        finally:
            gc.unfreeze()

    def has(self, key: str) -> bool:
        """Return whether the store has the reply of a key."""
        return any(key in replies.known for replies in self._replies.values())

    async def _work(self, converse: Callable[..., Awaitable[None]], jobs: list[tuple]) -> None:
        coming = iter(jobs)
        many = len(jobs) if self.batches else min(self.endpoint.concurrency, len(jobs))

        async def worker() -> None:
            try:
                for job in coming:
                    await converse(*job)
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

            left = [task for task in tasks if not task.done()]
            if left:  # in batch mode all replies have arrived
                left = (await asyncio.wait(left, timeout=60 if self.batches else _GRACE))[1]

            for task in tasks:
                task.cancel()

            await asyncio.gather(*tasks, return_exceptions=True)
            writing = asyncio.all_tasks() - {asyncio.current_task()}
            if writing:  # the loop is ours
                await asyncio.wait(writing, timeout=_GRACE)

            if self.batches and not left:
                await self.batches.finish()

            await self.client.close()

    def forecast(self, talks: list[tuple[str, Generator]]) -> _Forecast:
        """Count what conversations would send, and its cost, without sending it.

        Parameters
        ----------
        talks : list of (str, generator)
            Questionnaires' ids and conversations, which are held to their ends with what is known.
        """
        texts = []
        stored = 0

        for own, talk in talks:
            asked = next(talk)
            while True:
                about = asked[1]
                text, key = self._request(own, *asked)
                known = self._replies[own].known.get(key)
                if known is None:
                    texts.append((text, len(about["items"])))
                    about["unasked"] = True
                else:
                    stored += 1
                    about["finish_reason"] = known["finish_reason"]

                try:
                    asked = talk.send(known["reply"] if known else None)
                except StopIteration:
                    break

        tokens = [self.budget.estimate(*text) for text in texts]
        most = [self.budget.cost(*self.budget.most_tokens(text)) for text, _ in texts]
        prompt = sum(p for p, _ in tokens)
        completion = sum(c for _, c in tokens)
        cost = self.budget.cost(prompt, completion)

        return _Forecast(stored, len(texts), prompt, completion, cost, min(most, default=0.0))

    def _request(self, own: str, prompt: list[dict], about: dict) -> tuple[str, str]:
        """Return a request as text, and the key of its reply."""
        request = {**self._settings, "messages": prompt}
        if self.path == "/completions":
            request["prompt"] = "\n\n".join(part["content"] for part in request.pop("messages"))
        if "seed" in request:  # else all runs would draw the same
            request["seed"] += about["run"] - 1
        if "response_format" in about:
            request["response_format"] = about["response_format"]
        text = json.dumps(request, sort_keys=True)
        return text, self._replies[own].key(text, about)

    async def ask(self, own: str, prompt: list[dict], about: dict) -> str | None:
        """Return the reply about a questionnaire, from the store if it is there, else asked now.

        None if all retries brought none.
        """
        replies = self._replies[own]
        text, key = self._request(own, prompt, about)
        known = replies.known.get(key)
        if known is not None:
            about["finish_reason"] = known["finish_reason"]
            return known["reply"]

        if self.endpoint.dry_run:
            self.budget.plan(text, len(about["items"]))
            about["unasked"] = True
            return None

        began = time.monotonic()
        try:
            found = await self._patiently(key, text)
        except Unasked:
            about["unasked"] = True
            return None
        except NoReply as error:
            about["sent"] = True
            about["status"] = error.status
            self._failures, self._last_error = self._failures + 1, str(error)
            if self._failures < _GIVE_UP_AFTER and (self._replied or not error.unreachable):
                return None

            self.stopped = True
            raise self._dead() from error
        except RespondentError:
            self.stopped = True  # at once, or the next request would be begun
            raise

        await self._saves[own].save(key, (about, text, found), time.monotonic() - began)
        found = replies.known[key]  # as the store has it
        about["sent"] = True
        about["finish_reason"] = found["finish_reason"]
        self._failures = 0
        self._replied = self._replied + 1

        return found["reply"]

    async def _patiently(self, key: str, text: str) -> dict:
        """Send a request again for as long as that is worth it."""
        send = self.batches.reply if self.batches else self._reply
        sent = 0
        failed = 0
        unreadable = 0
        first = None

        while True:
            try:
                return await send(key, text)
            except NoReply as error:
                now = time.monotonic()
                first = now if first is None else first
                self._first_failure = min(self._first_failure, now)

                if error.slow:  # no failure: as long as the endpoint replies to others
                    enough = now - max(first, self._last_reply) >= PATIENCE
                else:
                    failed += 1
                    unreadable += error.unreadable
                    enough = failed > self.endpoint.retries or unreadable >= _UNREADABLE_TRIES
                    enough |= self._seems_dead(error, failed)
                    enough |= not self.batches and now - first >= PATIENCE

                if enough:
                    self._tries = max(self._tries, sent + 1)
                    raise
                grown = min(self.endpoint.pause * 2 ** min(sent, 10), 60.0)
                pause = grown * np.random.default_rng().uniform(0.75, 1.25)
                pause = pause if error.after is None else error.after
                if self._first_failure == now and not self._replied:
                    most = f"{self.endpoint.retries} times (retries)"
                    most = f"{PATIENCE / 60:g} minutes" if error.slow else most
                    self._say_wait(f"{error}; it is sent again for at most {most}")

            sent += 1
            await asyncio.sleep(pause)

    def _seems_dead(self, error: NoReply, failed: int) -> bool:
        """Return whether an endpoint that has never replied is unlikely to reply now."""
        if self._replied:
            return False
        if error.unreachable and failed >= _CONNECTIONS:
            return True

        waited = time.monotonic() - self._first_failure
        is_over = failed > 1 and waited >= _FIRST_PATIENCE  # a model may be loaded for the first
        return is_over and not (self.batches or error.busy)

    async def _reply(self, key: str, text: str) -> dict:
        """Send a request when the budget and the pace allow it."""
        most = await self.budget.wait(text)
        if most is None:
            raise Unasked

        found = None
        paid = False
        begun = None
        pace = self.client.pace
        tokens = sum(self.budget.most_tokens(text))

        try:
            async with self._start_lock:
                while pace.left() > 0 and not self.stopped:
                    await asyncio.sleep(min(pace.left(), 1.0))

                if self.stopped:
                    raise asyncio.CancelledError
                begun = time.monotonic()
                pace.begin(tokens)

            paid = True  # a request that is broken off may have been replied to
            content, body = await self.client.exchange("POST", self.path, text)
            found = self.client.completion(content, self.logprobs)
            if found is None:
                raise self.client.unreadable(body)

            self._last_reply = time.monotonic()
            pace.replied()
            return found
        except NoReply as error:
            paid = error.paid
            if error.slow:
                pace.too_fast(begun, error.after)
                self._say_slow(error.after)

            raise
        except RespondentError:
            paid = False
            raise
        finally:
            used = self.budget.settle(most, found, text, paid)
            if found is not None:
                pace.limits.settle(tokens, used)

    def _dead(self) -> RespondentError:
        """The error of an endpoint that gives no replies."""
        requests = "request" if self._failures == 1 else "requests"
        times = "once" if self._tries == 1 else f"up to {self._tries} times"
        return RespondentError(
            f"{self.client.where} gave no reply to {self._failures} {requests} in a row, sent "
            f"{times} each (the last: {self._last_error}): see that it runs and that "
            "OPENAI_BASE_URL is its address, and run again to go on from there."
        )

    def _say_silence(self) -> None:
        """Say that nothing has come yet, where requests are under way and none has failed."""
        quiet = not self._replied and math.isinf(self._first_failure)
        if quiet and self.budget.spending.under_way and not self.batches:
            limit = self.endpoint.timeout
            self._say_wait(f"a request is broken off after {limit:g} s (timeout)")

    def _say_wait(self, why: str) -> None:
        """Say in a line of its own, at once, what is waited for before the first reply."""
        if not self._bar.disable:
            self._bar.write(f"{self.client.where}: no reply yet ({why}).", file=sys.stderr)

    def _say_slow(self, after: float | None) -> None:
        """Show on the bar that the endpoint refuses requests as too early, and what is done."""
        spending = self.budget.spending
        rate = self.client.pace.rate
        spending.refused += 1
        how = f"at most {rate:.2g} requests a second" if rate else "the others go on"
        wait = f" after {after:g} s" if after else ""
        self._bar.say(f"{spending.refused} came too early (429), sent again{wait}; {how}")


def _run_in_thread(work: Coroutine) -> None:
    """Run a coroutine in a thread: a notebook has a loop already, and Ctrl-C is heard at once."""
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
