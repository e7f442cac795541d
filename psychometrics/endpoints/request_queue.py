"""How requests reach a chat endpoint: at its pace, within a budget, each reply kept before use."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import re
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..asking.store import StoredAnswers, key_of
from ..exceptions import RespondentError

if TYPE_CHECKING:
    from ..asking.progress import Progress

OBEYED = 300.0
"""Most seconds that a ``Retry-After`` is obeyed for; a longer one is said, and tried again then."""
PATIENCE = 600.0
"""Seconds after which a request that has had no reply is not begun again."""
GIVE_UP_AFTER = 3
"""Requests without a reply, one after the other, after which a run stops."""
LARGEST_REPLY = 4 * 2**20
GRACE = 1.0
"""Seconds that replies on their way are waited for when a run is stopped, and kept."""
SHARE = 8
"""Connections of one pool: its work for each request grows with their number."""
OVERHEAD = 32
"""Tokens of a request beyond those of its text, at most: what marks turns."""


def run(work: Coroutine) -> None:
    """Run a coroutine in a thread: a notebook has a loop already, and a key press is heard here."""
    loop, ended = asyncio.new_event_loop(), threading.Event()

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
        ended.wait(2 * GRACE)
        raise
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(GRACE)
        if not thread.is_alive():
            loop.close()


class NoReply(Exception):
    """A request had no reply and may be sent again.

    ``after`` so many seconds, if that was said; ``slow`` where it came too soon; ``paid`` where
    the endpoint may have replied, so that it may cost something.
    """

    def __init__(
        self, why: str, after: float | None = None, slow: bool = False, paid: bool = False
    ) -> None:
        super().__init__(why)
        self.after, self.slow, self.paid = after, slow, paid


class Unasked(Exception):
    """A request was not sent: the budget does not allow it, or nothing is to be sent."""


class Replies:
    """The replies about one questionnaire: those that are kept, and new ones, kept in groups."""

    def __init__(self, kept: StoredAnswers) -> None:
        rows = kept.rows if len(kept) else None
        self.kept = kept
        self.known = {} if rows is None else dict(rows["reply"])
        ended = {} if rows is None else dict(rows["finish_reason"])
        self.cut = {key for key, reason in ended.items() if reason == "length"}
        self.new: list[tuple[str, dict, float]] = []
        self.lock, self.group = asyncio.Lock(), None

    async def keep(self, key: str, row: dict, seconds: float) -> None:
        """Return when the row is safe; rows that come while others are written go together."""
        self.new.append((key, row, seconds))
        if self.group is None:
            self.group = asyncio.ensure_future(self._write())
        await asyncio.shield(self.group)
        self.known[key] = row["reply"]
        if row["finish_reason"] == "length":
            self.cut.add(key)

    async def _write(self) -> None:
        async with self.lock:
            rows, self.new, self.group = self.new, [], None
            index = pd.Index([key for key, _, _ in rows], name="key")
            frame = pd.DataFrame([row for _, row, _ in rows], index=index)
            await asyncio.to_thread(self.kept.add, frame, seconds=sum(row[2] for row in rows))


class Pace:
    """When the next request may begin, by what an Endpoint, its headers and its refusals say."""

    def __init__(self, endpoint: object) -> None:
        # A little slower than is allowed, as requests do not arrive as evenly as they are sent.
        self.gap = 61.0 / endpoint.requests_per_minute if endpoint.requests_per_minute else 0.0
        self.tokens = endpoint.tokens_per_minute
        self.next = self.next_tokens = self.held = 0.0
        self.largest = 0
        self.rate: float | None = None
        self.cut_at = self.grown_at = self.since = time.monotonic()
        self.sent = self.heard = 0

    def left(self) -> float:
        """Seconds until a request may begin."""
        return max(self.next, self.next_tokens, self.held) - time.monotonic()

    def begin(self, tokens: int) -> None:
        """Count a request that begins now."""
        now = time.monotonic()
        self.sent += 1
        self.next = now + max(self.gap, 1 / self.rate if self.rate else 0.0)
        if self.tokens:
            self.largest = max(self.largest, min(tokens, int(self.tokens)))
            self.next_tokens = max(self.next_tokens, now) + self._seconds(tokens)

    def settle(self, estimated: int, actual: int) -> None:
        """Put right the tokens of a request once they are known."""
        if self.tokens:
            self.next_tokens -= self._seconds(estimated) - self._seconds(actual)

    def _seconds(self, tokens: int) -> float:
        # Those of any minute are at most the limit, the one that begins in its last second too.
        return 61.0 * tokens / max(self.tokens - self.largest, min(tokens, self.tokens), 1.0)

    def hold(self, seconds: float) -> None:
        """Begin nothing for so long."""
        self.held = max(self.held, time.monotonic() + min(seconds, OBEYED))

    def too_fast(self, begun: float) -> None:
        """Slow down after a refusal, once for all that were on their way."""
        if begun < self.cut_at:
            return
        now = time.monotonic()
        seconds = max(now - self.since, 0.05)
        rate = 0.7 * self.sent / seconds
        if self.heard:
            rate = min(rate, self.heard / seconds)
        self.rate = max(min(rate, 0.7 * self.rate) if self.rate else rate, 1 / 60)
        self.cut_at = self.since = self.grown_at = now
        self.sent = self.heard = 0
        self.next = max(self.next, now + 1 / self.rate)

    def replied(self) -> None:
        """Take up speed again, by little for each reply and by little in each second."""
        self.heard += 1
        if self.rate:
            now = time.monotonic()
            self.rate *= 1 + min(0.05, 0.5 * (now - self.grown_at))
            self.grown_at = now
            if self.rate > 10_000:
                self.rate = None


@functools.lru_cache(maxsize=64)
def pace_of(endpoint: object) -> Pace:
    """The pace of an endpoint, which goes on from one questionnaire, model and call to the next."""
    return Pace(endpoint)


class Line:
    """Sends requests: retries, pace, budget, and the store.

    The requests are sent with httpx2 itself and not with the openai client, which reads a reply to
    its end however long it is, follows redirects, takes no total time-out, and obeys a
    ``Retry-After`` by the request that got it alone.

    Parameters
    ----------
    endpoint : psychometrics.modes.chat.Endpoint
    identity : dict
    settings : dict
        What each request says beside its messages.
    bar : Progress
    """

    def __init__(self, endpoint: object, identity: dict, settings: dict, bar: Progress) -> None:
        import httpx2

        self.endpoint, self.identity, self.settings = endpoint, identity, settings
        self.spent, self.pace = bar.spending, pace_of(endpoint)
        self.spent.priced = endpoint.price_in is not None or endpoint.price_out is not None
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=SHARE)
        how = {"follow_redirects": False, "timeout": endpoint.timeout, "limits": limits}
        self.pools = [
            httpx2.AsyncClient(**how, verify=_certificates())
            for _ in range(math.ceil(endpoint.concurrency / SHARE))
        ]
        self.busy = [0] * len(self.pools)
        self.headers = {"Accept-Encoding": "identity"}
        if endpoint.api_key:
            self.headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self.turn, self.purse = asyncio.Lock(), asyncio.Lock()
        self.returned = asyncio.Event()
        self.batches = None  # of _batch.Batches, where requests are sent by files
        self.stopped = False
        self.replies = self.failures = self.live = 0
        self.heard = time.monotonic()
        self.per_byte: float | None = None
        self.last = ""

    async def all(self, answer: Callable[..., Awaitable[None]], jobs: Iterable[tuple]) -> None:
        """Do all jobs; an error ends the run, after what is on its way is kept."""
        jobs = list(jobs)
        coming = iter(jobs)
        many = len(jobs) if self.batches else min(self.endpoint.concurrency, len(jobs))

        async def worker() -> None:
            try:
                for job in coming:
                    await answer(*job)
            finally:
                self.live -= 1
                if self.batches:
                    self.batches.look()

        self.live = many
        tasks = [asyncio.ensure_future(worker()) for _ in range(many)]
        try:
            for done in asyncio.as_completed(tasks):
                await done
            if self.failures and not self.replies:
                raise self.dead()
        finally:
            self.stopped = True
            if self.batches:
                self.batches.stop()
            left = [task for task in tasks if not task.done()]
            if left:  # of batches all have come, and are only written
                left = (await asyncio.wait(left, timeout=60 if self.batches else GRACE))[1]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if writing := asyncio.all_tasks() - {asyncio.current_task()}:  # the loop is ours
                await asyncio.wait(writing, timeout=GRACE)
            if self.batches and not left:
                await self.batches.finish()
            await asyncio.gather(*(pool.aclose() for pool in self.pools))

    async def ask(self, replies: Replies, prompt: list[dict], about: dict) -> str | None:
        """The reply, from the store if it is there; None if none came after all retries."""
        import tenacity as t

        request = {**self.settings, "messages": prompt}
        if "response_format" in about:
            request["response_format"] = about["response_format"]
        text = json.dumps(request, sort_keys=True)
        run = str(about["run"]), str(about["attempt"])
        key = key_of(self.identity["fingerprint"], text, *run)
        about["cut"] = key in replies.cut
        if key in replies.known:
            return replies.known[key]
        if self.endpoint.dry_run:
            # Four bytes to a token, eight tokens to an answer.
            prompt = len(text) // 4
            completion = self.settings.get("max_tokens") or 8 * len(about["items"])
            self.spent.planned += 1
            cost = self.cost(prompt, completion)
            self.spent.add({"estimated": True}, prompt, completion, cost)
            about["unasked"] = True
            return None
        about["sent"], began, failed, first = True, time.monotonic(), 0, None

        def enough(state: t.RetryCallState) -> bool:
            nonlocal failed, first
            error, now = state.outcome.exception(), time.monotonic()
            first = now if first is None else first
            if error.slow:  # no failure: as long as the endpoint replies to others
                return now - max(first, self.heard) >= PATIENCE
            failed += 1
            patient = self.batches or now - first < PATIENCE
            return failed > self.endpoint.retries or not patient

        again = t.AsyncRetrying(
            retry=t.retry_if_exception_type(NoReply), stop=enough, wait=self._pause, reraise=True
        )
        try:
            found = await again(self.batches.reply if self.batches else self._reply, key, text)
        except Unasked:
            about["sent"], about["unasked"] = False, True
            return None
        except NoReply as error:
            self.failures += 1
            self.last = str(error)
            if self.failures < GIVE_UP_AFTER:
                return None
            self.stopped = True
            raise self.dead() from error
        except RespondentError:
            self.stopped = True  # at once, or the next request would be begun
            raise
        row = {"run": about["run"], "attempt": about["attempt"]}
        row |= {"items": " ".join(about["items"]), "request": text, **found}
        await replies.keep(key, row, time.monotonic() - began)
        about["cut"] = found["finish_reason"] == "length"
        self.failures, self.replies = 0, self.replies + 1
        return found["reply"]

    def most(self, text: str) -> tuple[int, int]:
        """Tokens that a request and its reply may have at most.

        A token has at least one byte; what it has at this endpoint is learnt from its replies.
        """
        prompt = math.ceil(len(text) * min(1.0, 1.25 * (self.per_byte or 1.0))) + OVERHEAD
        return prompt, self.settings.get("max_tokens") or len(text) // 8 + OVERHEAD

    def cost(self, prompt: int, completion: int) -> float:
        """What tokens cost, in the currency of the prices."""
        paid = prompt * (self.endpoint.price_in or 0) + completion * (self.endpoint.price_out or 0)
        return paid / 1e6

    def afford(self, most: float, within: bool = True) -> bool:
        """Reserve what a request may cost, if the budget allows it beside those on their way."""
        limit, spent = self.endpoint.max_cost, self.spent
        if within and limit is not None and spent.cost + spent.reserved + most > limit:
            return False
        spent.reserved += most
        spent.under_way += 1
        return True

    def settled(self, most: float, found: dict | None, text: str, paid: bool = False) -> None:
        """Count what a request took, in the reservation's place; ``usage`` is put into ``found``.

        Where there is no reply, though the endpoint may have given one (``paid``), what it may
        have cost at most is counted.
        """
        self.spent.under_way -= 1
        self.spent.reserved = self.spent.reserved - most if self.spent.under_way else 0.0
        if found is not None:
            usage = found["usage"]
            if usage is None:
                prompt, completion = (max(1, len(part) // 4) for part in (text, found["reply"]))
                usage = {"prompt_tokens": prompt, "completion_tokens": completion}
                usage["estimated"] = True
            else:
                seen = _count(usage, "prompt_tokens") / len(text)
                self.per_byte = max(self.per_byte or 0.0, seen)
            found["usage"] = json.dumps(usage)
            prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
            self.spent.add(usage, prompt, completion, self.cost(prompt, completion))
        elif paid:
            prompt, completion = self.most(text)
            self.spent.add({"estimated": True}, prompt, completion, most)
        self.returned.set()

    async def _reply(self, key: str, text: str) -> dict:
        """Send a request when the budget and the pace allow it."""
        async with self.purse:
            while not self.afford(most := self.cost(*self.most(text))):
                if not self.spent.under_way:
                    raise Unasked
                self.returned.clear()
                await self.returned.wait()
        found, paid, begun = None, False, None
        tokens = sum(self.most(text))
        try:
            async with self.turn:
                while (left := self.pace.left()) > 0 and not self.stopped:
                    await asyncio.sleep(min(left, 1.0))
                if self.stopped:
                    raise asyncio.CancelledError
                begun = time.monotonic()
                self.pace.begin(tokens)
            paid = True  # a request that is broken off may have been replied to
            content, body = await self.exchange("POST", "/chat/completions", text)
            found = reply_of(content)
            if found is None:
                raise NoReply(f"unreadable reply: {self.scrubbed(body)}", paid=True)
            self.heard = time.monotonic()
            self.pace.replied()
            return found
        except NoReply as error:
            paid = error.paid
            if error.slow:
                self.pace.too_fast(begun)
            raise
        except RespondentError:
            paid = False
            raise
        finally:
            self.settled(most, found, text, paid)
            if found is not None:
                usage = json.loads(found["usage"])
                actual = _count(usage, "prompt_tokens") + _count(usage, "completion_tokens")
                self.pace.settle(tokens, actual)

    async def exchange(
        self, method: str, path: str, content: str | None = None, largest: int = 0, **sent: object
    ) -> tuple[object, bytes]:
        """Send and read to the end: what the JSON says, and the bytes.

        Raises
        ------
        NoReply
            There was no whole reply, or one that asks to come again.
        RespondentError
            The endpoint refuses.
        """
        import httpx2

        body = bytearray()
        headers = self.headers | ({"Content-Type": "application/json"} if content else {})
        which = self.busy.index(min(self.busy))
        self.busy[which] += 1
        try:
            async with (
                asyncio.timeout(self.endpoint.timeout),
                self.pools[which].stream(
                    method, self.endpoint.base_url + path, content=content, headers=headers, **sent
                ) as response,
            ):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > max(LARGEST_REPLY, largest):
                        most = max(LARGEST_REPLY, largest)
                        raise NoReply(f"a reply of more than {most:,} bytes", paid=True)
        except TimeoutError as error:
            raise NoReply(f"no whole reply in {self.endpoint.timeout:g} s", paid=True) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            never = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            raise NoReply(f"{type(error).__name__} {error}".strip(), paid=not never) from error
        finally:
            self.busy[which] -= 1
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        status = response.status_code
        if status in (408, 409, 429) or status >= 500:
            why = said.get("error") if isinstance(said, dict) else None
            if not (isinstance(why, dict) and why.get("code") == "insufficient_quota"):
                after = _retry_after(response.headers)
                self._hold(after)
                raise NoReply(f"status {status}", after, slow=status == 429)
        if not response.is_success:
            raise RespondentError(self.refusal(status, said, bytes(body), response))
        if (reset := _used_up(response.headers)) is not None:
            self._hold(reset)
        return said, bytes(body)

    def _pause(self, state: object) -> float:
        """Seconds until the next attempt, where the server did not say them."""
        if state.outcome.exception().after is not None:
            return 0.0
        grown = self.endpoint.pause * 2 ** min(state.attempt_number - 1, 10)
        return min(grown, 60.0) * np.random.default_rng().uniform(0.75, 1.25)

    def _hold(self, after: float | None) -> None:
        """Begin no request for the seconds that the server asks for."""
        if after is None:
            return
        if after > OBEYED:
            warnings.warn(
                f"{self.where()} asks to wait {after:g} s: it is asked again in {OBEYED:g} s.",
                stacklevel=2,
            )
        self.pace.hold(after)

    def where(self) -> str:
        """Who is asked where."""
        import httpx2

        url = httpx2.URL(self.endpoint.base_url)
        return f"{self.identity['respondent_id']} at {url.copy_with(userinfo=b'')}"

    def dead(self) -> RespondentError:
        """The error of an endpoint that gives no replies."""
        return RespondentError(
            f"{self.where()} gave no reply to {self.failures} requests in a row, up to "
            f"{self.endpoint.retries + 1} times each (the last: {self.last}): see that it runs and "
            "that OPENAI_BASE_URL is its address, and run again to go on from there."
        )

    def refusal(
        self, status: int, content: object, body: bytes = b"", response: object = None
    ) -> str:
        """What an endpoint says that does not take a request."""
        said = content.get("error", content) if isinstance(content, dict) else None
        said = said.get("message") if isinstance(said, dict) else said
        why = self.scrubbed(said if isinstance(said, str) else body)
        if response is not None and response.is_redirect:
            why = self.scrubbed(
                f"it sends elsewhere ({response.headers.get('location', 'nowhere')}), where "
                "prompts and key do not follow; name that address if you trust it"
            )
        return f"{self.where()} refuses the request with status {status}: {why}"

    def scrubbed(self, text: str | bytes) -> str:
        """The beginning of what the server said, without the key."""
        text = text.decode("utf-8", "replace") if not isinstance(text, str) else text
        if self.endpoint.api_key:
            text = text.replace(self.endpoint.api_key, "…")
        return _valid(" ".join(text.split()))[:200]


@functools.cache
def _certificates() -> object:
    """Whom connections trust: read once for all pools, as it takes a while."""
    import httpx2

    return httpx2.create_ssl_context()


def reply_of(content: object) -> dict | None:
    """Text, finish reason and usage of a completion; None if it is none."""
    try:
        choice = content["choices"][0]
        message = choice["message"]
        said = message.get("content")
    except (LookupError, TypeError, AttributeError):
        return None
    if said is None:
        said = message.get("refusal") or ""
    if isinstance(said, list):  # of parts
        parts = [part.get("text", "") if isinstance(part, dict) else part for part in said]
        said = "".join(part if isinstance(part, str) else json.dumps(part) for part in parts)
    text = said if isinstance(said, str) else json.dumps(said)
    reason, usage = choice.get("finish_reason"), content.get("usage")
    return {
        "reply": _valid(text),
        "finish_reason": None if reason is None else _valid(str(reason)),
        "usage": usage if isinstance(usage, dict) and _count(usage, "prompt_tokens") else None,
    }


def _count(usage: dict, name: str) -> int:
    """A number of tokens, 0 where it is none."""
    value = usage.get(name)
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12
    return int(value) if sound else 0


def _valid(text: str) -> str:
    """Text that can be written: a lone surrogate becomes the sign for what cannot be read."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _retry_after(headers: object) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    try:
        if (value := headers.get("retry-after-ms")) is not None:
            seconds = float(value) / 1000
        elif (value := headers.get("retry-after")) is None:
            return _used_up(headers)
        else:
            try:
                seconds = float(value)
            except ValueError:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(seconds) else max(seconds, 0.0)


def _used_up(headers: object) -> float | None:
    """Seconds until there are requests and tokens again, where there are none left now."""
    waits = []
    for what in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0":
            waits.append(_seconds(headers.get(f"x-ratelimit-reset-{what}", "")))
    return max(filter(None, waits), default=None)


def _seconds(text: str) -> float | None:
    """Seconds in the endpoints' ways of writing them: 12, 1.5s, 250ms, 6m0s.

    Examples
    --------
    >>> [_seconds(text) for text in ("12", "1.5s", "250ms", "6m0s", "1h2m3s", "soon")]
    [12.0, 1.5, 0.25, 360.0, 3723.0, None]
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        # A number as large as a date is one: the second at which the limit is reset.
        return float(text) if float(text) < 1e8 else max(float(text) - time.time(), 0.0)
    if not re.fullmatch(r"(\d{1,9}(\.\d{1,9})?(ms|d|h|m|s))+", text):
        return None
    size = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    parts = re.findall(r"([\d.]+)(ms|d|h|m|s)", text)
    return sum(float(number) * size[unit] for number, unit in parts)
