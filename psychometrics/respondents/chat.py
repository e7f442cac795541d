"""Chat models, on this machine or over HTTP: each reply is kept the moment it arrives.

A model that is here (``"smollm2"``, a folder, an adapter, a GGUF file) replies in this process, in
batches. Where ``endpoint`` is given, and for names that are an endpoint's, requests are sent.

Each request is a batch of statements in a run's order. Its reply goes into the store before it is
used, under a key made from all that produced it. A run that is killed goes on from there; a request
whose reply is kept is not sent again, and of two runs that would send the same requests from one
machine the second waits for the first.

Conditions
----------
``role``, ``wording``, ``think``, ``labels``, ``cipher`` and ``reply`` as in
:func:`psychometrics.messages.messages`; replies in cipher are deciphered before they are read.
``reply="json_schema"`` sends :func:`psychometrics.messages.reply_schema` as ``response_format``
along, so that the endpoint lets nothing else pass; not all endpoints know it.
``order`` of the options: ``"given"``, ``"reversed"``, or ``"shuffled"``, drawn for each run.
``temperature`` and ``max_tokens`` go to the endpoint; None leaves them to it. The paper has 0, or
0.01 where 0 is not taken. ``shuffle``: whether each run has the statements in an order of its own,
drawn with ``seed``. ``batch_size``: statements per request. ``runs``: how often the whole
questionnaire is asked; the paper's ten. ``ask_again``: how often statements without a valid answer
are put again, by themselves. ``endpoint``: an :class:`Endpoint`. ``constrained``: only for models
on this machine, which then can write nothing but a line with a valid label for each statement, so
that every reply can be read; what it chooses among them is its own.

On this machine a ``temperature`` of None is 1, ``max_tokens`` of None as much as the lines need
(and 512 tokens for thoughts), and each reply is drawn with a seed from ``seed``, its run and what
is asked, whoever else is asked. Rounding in bfloat16 can still tell two batches apart; in float32
it hardly ever does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..answers import check_numbers, tidy
from ..exceptions import ParameterError, RespondentError
from ..messages import ORDERS, REPLIES, caesar, messages, parse_reply, reply_schema
from ..paths import cache_dir
from ..questionnaires import Questionnaire
from ..store import Kept, key_of, open_kept

if TYPE_CHECKING:
    from ._local_chat import LocalModel
    from .progress import Progress
    from .sources import Source

CONDITIONS = {
    "role": "default",
    "wording": "v1",
    "think": False,
    "labels": "numeric",
    "order": "given",
    "cipher": 0,
    "reply": "lines",
    "temperature": 0.0,
    "max_tokens": None,
    "shuffle": True,
    "batch_size": 30,
    "runs": 10,
    "ask_again": 2,
    "seed": 0,
    "constrained": False,
    "endpoint": None,
}
OBEYED = 300.0
"""Most seconds that a ``Retry-After`` is obeyed for; a longer one is said, and tried again then."""
PATIENCE = 600.0
"""Seconds after which a request that has had no reply is not begun again."""
GIVE_UP_AFTER = 3
"""Requests without a reply, one after the other, after which a run stops."""
LARGEST_REPLY = 4 * 2**20
GRACE = 1.0
"""Seconds that replies on their way are waited for when a run is stopped, and kept."""


@dataclass(frozen=True)
class Endpoint:
    """Where chat models are, and how fast they may be asked.

    Parameters
    ----------
    base_url, api_key : str, optional
        By default from the environment: ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``.
    timeout : float
        Seconds that a whole reply may take.
    concurrency : int
        Most requests at the same time.
    requests_per_minute : float, optional
        Most requests begun in a minute.
    retries : int
        How often a request is sent again that had no reply (no connection, a time-out, status
        408, 409, 429 or 5xx, a reply that cannot be read).
    pause : float
        First pause before that, in seconds; it doubles each time, up to a minute. A
        ``Retry-After`` is obeyed by all requests.
    name : str
        Put before the models' names, where another endpoint has a model of the same name.

    Raises
    ------
    ParameterError
        The address is none, the key cannot be sent, or a number is impossible.

    Examples
    --------
    >>> Endpoint("http://127.0.0.1:8000/v1", requests_per_minute=30).concurrency
    4
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    concurrency: int = 4
    requests_per_minute: float | None = None
    retries: int = 5
    pause: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        import httpx2

        check_numbers(concurrency=self.concurrency, retries=self.retries)
        for name, least in {"timeout": 0, "requests_per_minute": 0, "pause": -1}.items():
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > least):
                raise ParameterError(f"{name} must be a positive number, got {value!r}.")
        if self.base_url is not None:
            try:
                url = httpx2.URL(self.base_url)
                fits = url.scheme in ("http", "https") and url.host and url.port != 0
            except (httpx2.InvalidURL, TypeError, ValueError):
                fits = False
            if not fits:
                raise ParameterError(
                    f"base_url must be an address such as https://host/v1, got {self.base_url!r}."
                )
        key = self.api_key
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
            raise ParameterError(
                "api_key holds characters that cannot be sent, such as a line's end: copy it anew."
            )

    def resolved(self) -> Endpoint:
        """The endpoint with what the environment says.

        Raises
        ------
        RespondentError
            Neither says where the endpoint is.
        ParameterError
            The environment's address or key is none.
        """
        url = self.base_url or os.environ.get("OPENAI_BASE_URL")
        key = self.api_key or os.environ.get("OPENAI_API_KEY")
        if not url and not key:
            raise RespondentError(
                "There is no chat endpoint: set OPENAI_BASE_URL and OPENAI_API_KEY in the "
                "environment."
            )
        url = (url or "https://api.openai.com/v1").rstrip("/")
        rest = {"timeout", "concurrency", "requests_per_minute", "retries", "pause", "name"}
        return Endpoint(url, key, **{name: getattr(self, name) for name in rest})


def identify(respondent: str, dtype: str | None = None, **conditions: object) -> dict:
    """Say which model is asked, and refuse impossible conditions before anything is sent.

    Parameters
    ----------
    respondent : str or Path
        A model on this machine, or the endpoint's name for one.
    dtype : {"float32", "bfloat16"}, optional
        Of a model on this machine; else the endpoint's business.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    dict
        ``respondent_id, source, model, revision, mode, dtype, fingerprint``.

    Raises
    ------
    RespondentError, ParameterError
        There is no endpoint, or a condition is impossible.

    Examples
    --------
    >>> identify("my-model", endpoint=Endpoint("http://127.0.0.1:8000/v1"))["respondent_id"]
    'my-model'
    """
    if not isinstance(respondent, str | Path) or not str(respondent).strip():
        raise ParameterError(
            f"model must be one on this machine or the endpoint's name for it, got {respondent!r}."
        )
    how = _checked(**(CONDITIONS | conditions))
    if how["endpoint"] is None and (source := _here(respondent)):
        from ._local_chat import identity_of

        if how["reply"] == "json_schema":
            raise ParameterError(
                "Only an endpoint keeps a schema: use reply='json', or constrained=True for lines."
            )
        return identity_of(source, dtype)
    respondent = str(respondent)
    how["endpoint"] = (how["endpoint"] or Endpoint()).resolved()
    if how["constrained"]:
        raise ParameterError(
            "constrained needs a model on this machine; an endpoint is asked without it."
        )
    name = how["endpoint"].name
    name = f"{name}/{respondent}" if name else respondent
    return {
        "respondent_id": name,
        "source": "endpoint",
        "model": respondent,
        "revision": None,
        "mode": "chat",
        "dtype": None,
        "fingerprint": key_of("chat-1", name),
    }


def opened(respondent: str | Path, identity: dict, **_: object) -> object:
    """A model on this machine, to be loaded at its first question; else the name as it is."""
    if identity["source"] == "endpoint":
        return respondent
    from ._local_chat import LocalModel

    return LocalModel(respondent, identity["dtype"])


def put(
    questionnaire: Questionnaire,
    respondent: str | Path | LocalModel,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> pd.DataFrame:
    """Put a questionnaire to a chat model, here or behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent, identity
        As :func:`opened` gives it, and what :func:`identify` gave.
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
        Is moved on by a batch's statements.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``, then ``position`` (in
        the run's order, from 1), ``options`` (the order of the options shown), ``attempts``,
        ``raw`` (the last reply about the item) and the conditions. Statuses are those of
        :func:`psychometrics.messages.parse_reply`, ``no_reply`` where none came, and ``cut_off``
        where a reply reached ``max_tokens`` before the statement was answered.

    Raises
    ------
    ParameterError
        A condition is impossible.
    RespondentError
        The endpoint refuses the key, the model or the request, or does not answer at all; or the
        model here has no chat template. What was answered before is kept.
    StoreError
        Replies cannot be written or read.

    References
    ----------
    Huang et al. (2024), section 3.1: prompts, shuffled statements, ten runs, temperature.
    """
    how = _checked(**(CONDITIONS | conditions))
    endpoint = how.pop("endpoint") or Endpoint()
    plan = batches(questionnaire, how)
    look = how["role"], how["wording"], how["think"], how["labels"]
    messages(questionnaire, questionnaire.items[:1], *look)  # refuse before asking
    settings = {"model": identity["model"]}
    settings |= {n: how[n] for n in ("temperature", "max_tokens") if how[n] is not None}
    name = identity["respondent_id"]
    if identity["source"] != "endpoint":
        from ._local_chat import rows_of
    bar.expect(sum(len(batch["items"]) for batch in plan))
    # Runs that differ in nothing but their number of runs would send the same requests.
    same = {key: value for key, value in how.items() if key != "runs"}
    same = key_of(str(store), identity["fingerprint"], questionnaire.model_dump_json(), repr(same))
    with (
        _alone(same, bar),
        open_kept(store, "chat", questionnaire.id, name, {**identity, **how}) as kept,
    ):
        if identity["source"] != "endpoint":
            talks = [(b, conversation(questionnaire, b, name, "chat", how)) for b in plan]
            rows = rows_of(talks, questionnaire, respondent, identity, kept, how, bar)
            return in_order(rows, questionnaire, how)
        line = _Line(endpoint.resolved(), kept, identity, settings)

        async def answered(batch: dict) -> list[dict]:
            talk = conversation(questionnaire, batch, name, "chat", how)
            async with line.room:
                asked, sent = next(talk), False
                while True:
                    reply = await line.ask(*asked)
                    sent |= asked[1].get("sent", False)
                    try:
                        asked = talk.send(reply)
                    except StopIteration as end:
                        (bar.update if sent else bar.found)(len(batch["items"]))
                        return end.value

        rows = _run(line.all(answered, plan))
    return in_order(rows, questionnaire, how)


def conversation(
    questionnaire: Questionnaire,
    batch: dict,
    name: str,
    mode: str,
    how: dict,
    parse: Callable = parse_reply,
) -> Generator[tuple[list[dict], dict], str | None, list[dict]]:
    """Ask a batch of :func:`batches`, then what is left of it, up to ``ask_again`` times more.

    Parameters
    ----------
    questionnaire : Questionnaire
    batch : dict
    name, mode : str
        Of the respondent.
    how : dict
        The conditions ``role, wording, think, labels, cipher, reply, ask_again``.
    parse : callable
        As :func:`psychometrics.messages.parse_reply`.

    Yields
    ------
    messages, about : list of dict, dict
        What to send, and what it is about (``run, attempt, items``, and ``response_format`` where
        the reply has a schema); is to be sent the reply, or None where there is none. Where ``cut``
        has been set in the latter, the reply was cut off. Returns one row per item.
    """
    left = batch["items"]
    results = {}
    for attempt in range(1, how["ask_again"] + 2):
        items = [item for item, _, _ in left]
        orders = [order for _, order, _ in left]
        look = how["role"], how["wording"], how["think"], how["labels"], orders, how["cipher"]
        look = *look, how.get("reply", "lines")
        about = {"run": batch["run"], "attempt": attempt, "items": [item.id for item in items]}
        if how.get("reply") == "json_schema":
            about["response_format"] = reply_schema(
                questionnaire, items, how["labels"], how["think"]
            )
        reply = yield messages(questionnaire, items, *look), about
        if reply is None:
            read = [("no_reply", None)] * len(items)
        else:
            text = caesar(reply, -how["cipher"]) if how["cipher"] else reply
            read = parse(text, questionnaire, items, how["labels"], orders)
            if about.get("cut"):  # its last line may be unfinished: "1:" is not the label 1
                before = parse(
                    text.rpartition("\n")[0], questionnaire, items, how["labels"], orders
                )
                read = [
                    done if done[0] == "ok" else seen if seen[0] == "refused" else ("cut_off", None)
                    for done, seen in zip(before, read, strict=True)
                ]
        for (item, order, position), (status, value) in zip(left, read, strict=True):
            results[item.id] = {
                "respondent_id": name,
                "mode": mode,
                "run": batch["run"],
                "item_id": item.id,
                "value": value,
                "status": status,
                "position": position,
                "options": " ".join(str(i + 1) for i in order),
                "attempts": attempt,
                "raw": reply,
            }
        left = [part for part in left if results[part[0].id]["status"] != "ok"]
        if not left or reply is None:
            break
    return list(results.values())


def batches(questionnaire: Questionnaire, how: dict) -> list[dict]:
    """Split all runs into batches: of each item its order of options and its place in the run.

    Parameters
    ----------
    questionnaire : Questionnaire
    how : dict
        The conditions ``runs, shuffle, batch_size, order, seed``.

    Returns
    -------
    list of dict
        ``run`` and ``items``, a list of (item, order of options, place from 1).
    """
    plan, count = [], len(questionnaire.items)
    for run in range(1, how["runs"] + 1):
        rng = np.random.default_rng([how["seed"], run])  # whatever the number of runs
        places = rng.permutation(count) if how["shuffle"] else range(count)
        counts = {len(questionnaire.choices(item)) for item in questionnaire.items}
        drawn = {n: _option_order(n, how["order"], rng) for n in sorted(counts)}
        items = []
        for position, place in enumerate(places, start=1):
            item = questionnaire.items[int(place)]
            items.append((item, drawn[len(questionnaire.choices(item))], position))
        for start in range(0, count, how["batch_size"]):
            plan.append({"run": run, "items": items[start : start + how["batch_size"]]})
    return plan


def in_order(rows: list[dict], questionnaire: Questionnaire, how: dict) -> pd.DataFrame:
    """Answers as a tidy table, by run and then as the questionnaire has its items; conditions last.

    Parameters
    ----------
    rows : list of dict
        Of :func:`conversation`.
    questionnaire : Questionnaire
    how : dict
        The conditions.
    """
    place = {item.id: i for i, item in enumerate(questionnaire.items)}
    table = tidy(sorted(rows, key=lambda r: (r["run"], place[r["item_id"]])), questionnaire)
    shown = ("role", "wording", "think", "labels", "order", "cipher", "reply", "temperature")
    shown = *shown, "constrained"
    return table.assign(**{name: how[name] for name in shown if name in how})


def _option_order(count: int, order: str, rng: np.random.Generator) -> tuple[int, ...]:
    """Which option stands at which place, for one of ``messages.ORDERS``."""
    if order not in ORDERS:
        raise ParameterError(f"order must be one of {', '.join(ORDERS)}, got {order!r}.")
    places = np.arange(count)
    if order == "reversed":
        places = places[::-1]
    elif order == "shuffled":
        places = rng.permutation(count)
    return tuple(int(i) for i in places)


def check_look(how: dict) -> None:
    """Refuse conditions of a conversation that no message can be made from.

    Raises
    ------
    ParameterError
    """
    check_numbers(**{n: how[n] for n in ("batch_size", "runs", "ask_again", "seed")})
    cipher = how["cipher"]
    if not isinstance(cipher, int) or isinstance(cipher, bool):
        raise ParameterError(f"cipher must be a whole number of places, got {cipher!r}.")
    _option_order(2, how["order"], np.random.default_rng(0))
    if (reply := how.get("reply", "lines")) not in REPLIES[:3]:
        raise ParameterError(f"reply must be one of {', '.join(REPLIES[:3])}, got {reply!r}.")
    if reply == "json_schema" and cipher:
        raise ParameterError("A reply in cipher fits no schema: leave cipher or json_schema out.")


def _checked(**how: object) -> dict:
    check_look(how)
    if (t := how["temperature"]) is not None and not (_is_number(t) and 0 <= t < math.inf):
        raise ParameterError(f"temperature must be a number from 0, or None, got {t!r}.")
    if how["max_tokens"] is not None:
        check_numbers(max_tokens=how["max_tokens"])
    if not isinstance(how["constrained"], bool):
        raise ParameterError(f"constrained must be True or False, got {how['constrained']!r}.")
    if how["constrained"] and (how["think"] or how.get("reply", "lines") != "lines"):
        raise ParameterError("Constrained replies are lines alone: leave think and reply out.")
    if how["endpoint"] is not None and not isinstance(how["endpoint"], Endpoint):
        raise ParameterError(f"endpoint must be an Endpoint, got {how['endpoint']!r}.")
    return how


def _here(respondent: str | Path) -> Source | None:
    """The model on this machine that a name means, None where it is an endpoint's."""
    from ._local_chat import found_here  # torch

    try:
        Endpoint().resolved()
    except RespondentError as no_endpoint:
        if "/" not in str(respondent) and not found_here(respondent, False):
            raise RespondentError(
                f"{str(no_endpoint).rstrip('.')}, or name a model on this machine; "
                f"{respondent!r} is none."
            ) from no_endpoint
        return found_here(respondent, True)
    return found_here(respondent, False)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


@contextlib.contextmanager
def _alone(key: str, bar: Progress) -> Iterator[None]:
    """Wait until no other process of this machine makes the same run: it would be paid twice."""
    import filelock

    folder = cache_dir() / "running"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / f"{key}.lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            bar.set_postfix_str("waiting for the same run in another process")
            lock.acquire()
    except OSError:  # no place for a lock: only money is at stake
        yield
        return
    with lock, contextlib.ExitStack() as stack:
        stack.callback(lock.release)
        yield


def _run(work: Coroutine) -> list[dict]:
    """Run a coroutine in a thread: a notebook has a loop already, and a key press is heard here."""
    loop, ended = asyncio.new_event_loop(), threading.Event()

    async def whole() -> list[dict]:
        try:
            return await work
        finally:
            ended.set()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(whole(), loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        ended.wait(2 * GRACE)
        raise
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(GRACE)
        if not thread.is_alive():
            loop.close()


class _Line:
    """Sends requests: retries, pauses that all requests keep, and the store.

    The requests are sent with httpx2 itself and not with the openai client, which reads a reply to
    its end however long it is, follows redirects, takes no total time-out, and obeys a
    ``Retry-After`` by the request that got it alone.
    """

    def __init__(self, endpoint: Endpoint, kept: Kept, identity: dict, settings: dict) -> None:
        import httpx2

        self.endpoint, self.kept, self.identity, self.settings = endpoint, kept, identity, settings
        self.known = dict(kept.rows["reply"]) if len(kept) else {}
        ended = dict(kept.rows["finish_reason"]) if len(kept) else {}
        self.cut = {key for key, reason in ended.items() if reason == "length"}
        self.room = asyncio.Semaphore(endpoint.concurrency)
        self.http = httpx2.AsyncClient(follow_redirects=False, timeout=endpoint.timeout)
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if endpoint.api_key:
            self.headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self.gap = 60.0 / endpoint.requests_per_minute if endpoint.requests_per_minute else 0.0
        self.free_at = 0.0
        self.stopped = False
        self.replies = self.failures = 0
        self.last = ""

    async def all(self, answered: Callable, plan: list[dict]) -> list[dict]:
        """The rows of all batches; an error ends the run, after what is on its way is kept."""
        rows: list[dict] = []
        tasks = [asyncio.ensure_future(answered(batch)) for batch in plan]
        try:
            for done in asyncio.as_completed(tasks):
                rows += await done
            if self.failures and not self.replies:
                raise self._dead()
            return rows
        finally:
            self.stopped = True
            if left := [task for task in tasks if not task.done()]:
                await asyncio.wait(left, timeout=GRACE)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.http.aclose()

    async def ask(self, prompt: list[dict], about: dict) -> str | None:
        """The reply, from the store if it is there; None if none came after all retries."""
        import tenacity as t

        request = {**self.settings, "messages": prompt}
        if "response_format" in about:
            request["response_format"] = about["response_format"]
        text = json.dumps(request, sort_keys=True)
        run = str(about["run"]), str(about["attempt"])
        key = key_of(self.identity["fingerprint"], text, *run)
        about["cut"] = key in self.cut
        if key in self.known:
            return self.known[key]
        about["sent"] = True
        again = t.AsyncRetrying(
            retry=t.retry_if_exception_type(_NoReply),
            stop=t.stop_after_attempt(self.endpoint.retries + 1) | t.stop_after_delay(PATIENCE),
            wait=self._pause,
            reraise=True,
        )
        began = time.perf_counter()
        try:
            found = await again(self._send, text)
        except _NoReply as error:
            self.failures += 1
            self.last = str(error)
            if self.failures < GIVE_UP_AFTER:
                return None
            self.stopped = True
            raise self._dead() from error
        except RespondentError:
            self.stopped = True  # at once, or the next request would be begun
            raise
        row = {"run": about["run"], "attempt": about["attempt"]}
        row |= {"items": " ".join(about["items"]), "request": text, **found}
        index = pd.Index([key], name="key")
        self.kept.add(pd.DataFrame([row], index=index), seconds=time.perf_counter() - began)
        self.known[key] = found["reply"]
        about["cut"] = found["finish_reason"] == "length"
        self.failures, self.replies = 0, self.replies + 1
        return found["reply"]

    async def _send(self, text: str) -> dict:
        import httpx2

        while (left := self.free_at - time.monotonic()) > 0:
            await asyncio.sleep(left)
        if self.stopped:
            raise asyncio.CancelledError
        self.free_at = time.monotonic() + self.gap
        url, body = f"{self.endpoint.base_url}/chat/completions", bytearray()
        try:
            async with (
                asyncio.timeout(self.endpoint.timeout),
                self.http.stream("POST", url, content=text, headers=self.headers) as response,
            ):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > LARGEST_REPLY:
                        raise _NoReply(f"a reply of more than {LARGEST_REPLY:,} bytes")
        except TimeoutError as error:
            raise _NoReply(f"no whole reply in {self.endpoint.timeout:g} s") from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise _NoReply(f"{type(error).__name__} {error}".strip()) from error
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        status = response.status_code
        if status in (408, 409, 429) or status >= 500:
            said = content.get("error") if isinstance(content, dict) else None
            if not (isinstance(said, dict) and said.get("code") == "insufficient_quota"):
                after = _retry_after(response.headers)
                self._hold(after)
                raise _NoReply(f"status {status}", after)
        if not response.is_success:
            raise RespondentError(self._refusal(response, content, body))
        found = _reply_of(content)
        if found is None:
            raise _NoReply(f"unreadable reply: {self._scrubbed(body)}")
        return found

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
                f"{self._where()} asks to wait {after:g} s: it is asked again in {OBEYED:g} s.",
                stacklevel=2,
            )
        self.free_at = max(self.free_at, time.monotonic() + min(after, OBEYED))

    def _where(self) -> str:
        import httpx2

        url = httpx2.URL(self.endpoint.base_url)
        return f"{self.identity['respondent_id']} at {url.copy_with(userinfo=b'')}"

    def _dead(self) -> RespondentError:
        return RespondentError(
            f"{self._where()} gave no reply to {self.failures} requests in a row, up to "
            f"{self.endpoint.retries + 1} times each (the last: {self.last}): see that it runs and "
            "that OPENAI_BASE_URL is its address, and run again to go on from there."
        )

    def _refusal(self, response: object, content: object, body: bytes) -> str:
        said = content.get("error", content) if isinstance(content, dict) else None
        said = said.get("message") if isinstance(said, dict) else said
        why = self._scrubbed(said if isinstance(said, str) else bytes(body))
        if response.is_redirect:
            why = self._scrubbed(
                f"it sends elsewhere ({response.headers.get('location', 'nowhere')}), where "
                "prompts and key do not follow; name that address if you trust it"
            )
        return f"{self._where()} refuses the request with status {response.status_code}: {why}"

    def _scrubbed(self, text: str | bytes) -> str:
        """The beginning of what the server said, without the key."""
        text = text.decode("utf-8", "replace") if not isinstance(text, str) else text
        if self.endpoint.api_key:
            text = text.replace(self.endpoint.api_key, "…")
        return _valid(" ".join(text.split()))[:200]


class _NoReply(Exception):
    """A request had no reply and may be sent again; ``after`` so many seconds, if it was said."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


def _reply_of(content: object) -> dict | None:
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
        "usage": None if usage is None else json.dumps(usage),
    }


def _valid(text: str) -> str:
    """Text that can be written: a lone surrogate becomes the sign for what cannot be read."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _retry_after(headers: object) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    try:
        if (value := headers.get("retry-after-ms")) is not None:
            seconds = float(value) / 1000
        elif (value := headers.get("retry-after")) is None:
            return None
        else:
            try:
                seconds = float(value)
            except ValueError:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(seconds) else max(seconds, 0.0)
