"""Put questionnaires to chat models over HTTP, and keep every reply the moment it arrives.

Each request is a batch of statements in a run's order. Its reply is appended to a JSON-lines file
and forced to the disk before it is used, under a key made from all that produced it. A run that is
killed goes on from there; a request whose reply is in the file is not sent again.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..answers import tidy
from ..exceptions import ParameterError, RespondentError, StoreError
from ..messages import caesar, messages, option_order
from ..parsing import parse_reply
from ..paths import store_dir
from ..questionnaires import Questionnaire
from ..store import answers_path

if TYPE_CHECKING:
    from openai import OpenAI

LONGEST_PAUSE = 60.0
"""Seconds that a back-off may grow to; a longer Retry-After is obeyed up to ``PATIENCE``."""
PATIENCE = 600.0
GIVE_UP_AFTER = 3
"""Requests without a reply, one after the other, after which a run stops."""


def ask_chat(
    questionnaire: Questionnaire,
    model: str,
    respondent_id: str | None = None,
    role: str = "default",
    wording: str = "v1",
    think: bool = False,
    labels: str = "numeric",
    option_order: str = "given",
    shift: int = 0,
    shuffle: bool = True,
    batch_size: int = 30,
    runs: int = 10,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
    ask_again: int = 2,
    concurrency: int = 4,
    requests_per_minute: float | None = None,
    retries: int = 6,
    pause: float = 1.0,
    timeout: float = 120.0,
    base_url: str | None = None,
    api_key: str | None = None,
    seed: int = 0,
    store: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Put a questionnaire to a chat model behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    questionnaire : Questionnaire
    model : str
        The endpoint's name for it.
    respondent_id : str, optional
        What the respondent is called and its replies are kept under; by default the model's
        name. Give another one where another endpoint has a different model of the same name.
    role, wording, think, labels, shift
        As in :func:`psychometrics.messages.messages`. With a ``shift`` the statements go out in
        cipher, and replies are deciphered before they are read.
    option_order : {"given", "reversed", "shuffled"}
        Order of the options; ``"shuffled"`` is drawn for each run.
    shuffle : bool
        Whether each run has the statements in an order of its own.
    batch_size : int
        Statements per request.
    runs : int
        How often the whole questionnaire is asked; the paper's ten.
    temperature : float, optional
        None leaves it to the endpoint. The paper has 0, or 0.01 where 0 is not taken.
    max_tokens : int, optional
        Longest reply.
    ask_again : int
        How often statements without a valid answer are put again, by themselves.
    concurrency : int
        Most requests at the same time.
    requests_per_minute : float, optional
        Most requests begun in a minute.
    retries, pause
        How often a request is sent again that had no reply (no connection, a time-out, status
        408, 409, 429 or 5xx, a reply that cannot be read), and the first pause in seconds, which
        doubles each time. A ``Retry-After`` is obeyed by all requests.
    timeout : float
        Seconds to wait for a reply.
    base_url, api_key : str, optional
        By default from the environment: ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``.
    seed : int
        Of the orders.
    store : str or Path, optional
        Folder of the response store, as in :func:`psychometrics.ask`.
    progress : bool
        Show a progress bar over requests.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``, then ``position`` (in the
        run's order, from 1), ``options`` (the order of the options shown), ``role, wording,
        attempts`` and ``raw`` (the last reply about the item). Statuses are those of
        :func:`psychometrics.parsing.parse_reply`, and ``no_reply`` where none came.

    Raises
    ------
    ParameterError
        A parameter is impossible.
    RespondentError
        The endpoint refuses the key, the model or the request, or does not answer at all; what
        it answered before is kept.
    StoreError
        Replies cannot be written or read.

    References
    ----------
    Huang et al. (2024), section 3.1: prompts, shuffled statements, ten runs, temperature.

    Examples
    --------
    >>> ask_chat(load_questionnaire("ipip20"), "gpt-4o-mini", runs=2)  # doctest: +SKIP
    """
    check_numbers(
        batch_size=batch_size,
        runs=runs,
        concurrency=concurrency,
        ask_again=ask_again,
        retries=retries,
        seed=seed,
    )
    for what, value in {"timeout": timeout, "requests_per_minute": requests_per_minute}.items():
        if value is not None and not value > 0:
            raise ParameterError(f"{what} must be a positive number, got {value!r}.")
    if not isinstance(model, str) or not model:
        raise ParameterError(f"model must be the endpoint's name for it, got {model!r}.")
    messages(
        questionnaire, questionnaire.items[:1], role, wording, think, labels
    )  # refuse before asking
    store = Path(store).expanduser() if store is not None else store_dir()
    name = respondent_id or model
    replies = _Replies(replies_path(store, name, questionnaire.id))
    line = _Line(_client(base_url, api_key, timeout), replies, retries, pause, requests_per_minute)
    plan = batches(questionnaire, runs, shuffle, batch_size, option_order, seed)
    settings = {"model": model, "temperature": temperature, "max_tokens": max_tokens}
    settings = {key: value for key, value in settings.items() if value is not None}
    look = {"role": role, "wording": wording, "think": think, "labels": labels, "shift": shift}

    def answered(batch: dict) -> list[dict]:
        try:
            return ask_batch(
                questionnaire, batch, look, settings, ask_again, name, "chat", line.ask
            )
        except BaseException:
            line.stop()  # at once, or this thread would begin the next batch
            raise

    rows = []
    pool = ThreadPoolExecutor(max_workers=concurrency)
    try:
        waiting = [pool.submit(answered, batch) for batch in plan]
        for done in tqdm(as_completed(waiting), total=len(plan), desc=name, disable=not progress):
            with contextlib.suppress(_Stopped):  # the error that stopped it comes up by itself
                rows += done.result()
    finally:  # on an error or a key press: begin nothing more, but keep what is under way
        line.stop()
        pool.shutdown(wait=True, cancel_futures=True)
        replies.close()
        line.client.close()
    return in_order(rows, questionnaire)


def replies_path(store: str | Path, respondent_id: str, questionnaire_id: str) -> Path:
    """The JSON-lines file that keeps a respondent's replies to a questionnaire."""
    return answers_path(store, respondent_id, questionnaire_id, "chat").with_suffix(".jsonl")


def read_replies(path: str | Path) -> pd.DataFrame:
    """Every reply and failure that a file keeps, in the order in which they came.

    Parameters
    ----------
    path : str or Path
        As :func:`replies_path` gives it.

    Returns
    -------
    DataFrame
        ``key, time, run, attempt, items, request, reply, finish_reason, usage, error``.

    Raises
    ------
    StoreError
        The file cannot be read.
    """
    columns = ["key", "time", "run", "attempt", "items", "request", "reply", "finish_reason"]
    return pd.DataFrame(_records(Path(path)), columns=[*columns, "usage", "error"])


def ask_batch(
    questionnaire: Questionnaire,
    batch: dict,
    look: dict,
    settings: dict,
    ask_again: int,
    name: str,
    mode: str,
    send: Callable[[dict, dict, str], str | None],
    parse: Callable = parse_reply,
) -> list[dict]:
    """Ask a batch of :func:`batches`, then what is left of it, up to ``ask_again`` times more.

    Parameters
    ----------
    questionnaire : Questionnaire
    batch : dict
    look : dict
        ``role, wording, think, labels, shift``.
    settings : dict
        What a request holds besides its messages.
    ask_again : int
    name, mode : str
        Of the respondent.
    send : callable
        Takes the request, what it is about and the name; gives the reply or None.
    parse : callable
        As :func:`psychometrics.parsing.parse_reply`.

    Returns
    -------
    list of dict
        One row per item.
    """
    left = batch["items"]
    results = {}
    for attempt in range(1, ask_again + 2):
        items = [item for item, _, _ in left]
        orders = [order for _, order, _ in left]
        request = {
            **settings,
            "messages": messages(
                questionnaire,
                items,
                look["role"],
                look["wording"],
                look["think"],
                look["labels"],
                orders,
                look["shift"],
            ),
        }
        about = {"run": batch["run"], "attempt": attempt, "items": [item.id for item in items]}
        reply = send(request, about, name)
        if reply is None:
            read = [("no_reply", None)] * len(items)
        else:
            text = caesar(reply, -look["shift"]) if look["shift"] else reply
            read = parse(text, questionnaire, items, look["labels"], orders)
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
                "role": look["role"],
                "wording": look["wording"],
                "attempts": attempt,
                "raw": reply,
            }
        left = [part for part in left if results[part[0].id]["status"] != "ok"]
        if not left or reply is None:
            break
    return list(results.values())


def batches(
    questionnaire: Questionnaire, runs: int, shuffle: bool, batch_size: int, order: str, seed: int
) -> list[dict]:
    """Split all runs into batches: of each item its order of options and its place in the run."""
    plan = []
    for run in range(1, runs + 1):
        rng = np.random.default_rng([seed, run])  # a run's order does not hang on their number
        places = (
            rng.permutation(len(questionnaire.items))
            if shuffle
            else range(len(questionnaire.items))
        )
        counts = {len(questionnaire.choices(item)) for item in questionnaire.items}
        drawn = {count: option_order(count, order, rng) for count in sorted(counts)}
        items = []
        for position, place in enumerate(places, start=1):
            item = questionnaire.items[int(place)]
            items.append((item, drawn[len(questionnaire.choices(item))], position))
        for start in range(0, len(items), batch_size):
            plan.append({"run": run, "items": items[start : start + batch_size]})
    return plan


def in_order(rows: list[dict], questionnaire: Questionnaire) -> pd.DataFrame:
    """Answers as a tidy table, by run and then as the questionnaire has its items."""
    place = {item.id: i for i, item in enumerate(questionnaire.items)}
    return tidy(sorted(rows, key=lambda row: (row["run"], place[row["item_id"]])), questionnaire)


class _Line:
    """Sends requests: retries, pauses that all threads keep, and the replies' file."""

    def __init__(self, client: OpenAI, replies: _Replies, retries, pause, per_minute) -> None:
        self.client = client
        self.replies = replies
        self.retries = retries
        self.pause = pause
        self.gap = 60.0 / per_minute if per_minute else 0.0
        self.lock = threading.Lock()
        self.free_at = 0.0
        self.failures = 0
        self.stopped = threading.Event()

    def stop(self) -> None:
        self.stopped.set()

    def ask(self, request: dict, about: dict, name: str) -> str | None:
        """The reply, from the file if it is there; None if none came after all retries."""
        key = _key(request, about, name)
        if (known := self.replies.get(key)) is not None:
            return known
        for attempt in range(self.retries + 1):
            self._wait()
            try:
                reply = self._send(request)
            except _Retry as error:
                self.replies.append({"key": key, **about, "error": str(error)})
                pause = min(self.pause * 2**attempt, LONGEST_PAUSE) * random.uniform(0.75, 1.25)
                if error.after is not None:
                    self._hold(error.after)
                elif attempt < self.retries:
                    self.stopped.wait(pause)
                continue
            self.replies.append({"key": key, **about, "request": request, **reply})
            with self.lock:
                self.failures = 0
            return reply["reply"]
        with self.lock:
            self.failures += 1
            if self.failures >= GIVE_UP_AFTER:
                raise RespondentError(
                    f"{name} at {self.client.base_url} gave no reply to {self.failures} requests "
                    f"in a row, {self.retries + 1} times each: see the last error in "
                    f"{self.replies.path}, and run again to go on from there."
                )
        return None

    def _send(self, request: dict) -> dict:
        import openai

        try:
            answer = self.client.chat.completions.create(**request)
        except (openai.APITimeoutError, openai.APIConnectionError) as error:
            raise _Retry(f"{type(error).__name__}: {error.__cause__ or error}") from error
        except openai.APIStatusError as error:
            quota = getattr(error, "code", None) == "insufficient_quota"
            if not quota and (error.status_code in (408, 409, 429) or error.status_code >= 500):
                after = _retry_after(error.response.headers)
                raise _Retry(f"status {error.status_code}", after) from error
            raise RespondentError(
                f"{request['model']} at {self.client.base_url} refuses the request with status "
                f"{error.status_code}: {str(error.message)[:200]}"
            ) from error
        except (openai.OpenAIError, ValueError) as error:  # a body that is no JSON
            raise _Retry(f"unreadable reply: {str(error)[:200]}") from error
        try:
            choice = answer.choices[0]
            text = choice.message.content
            if text is None:
                text = getattr(choice.message, "refusal", None) or ""
            usage = answer.usage.model_dump(exclude_none=True) if answer.usage else None
        except (AttributeError, IndexError, TypeError) as error:
            raise _Retry(f"unreadable reply: {str(answer)[:200]}") from error
        return {"reply": text, "finish_reason": choice.finish_reason, "usage": usage}

    def _wait(self) -> None:
        """Until it is this request's turn; all threads share the turns."""
        while not self.stopped.is_set():
            with self.lock:
                now = time.monotonic()
                if now >= self.free_at:
                    self.free_at = now + self.gap
                    return
                left = self.free_at - now
            self.stopped.wait(left)
        raise _Stopped

    def _hold(self, seconds: float) -> None:
        with self.lock:
            self.free_at = max(self.free_at, time.monotonic() + min(seconds, PATIENCE))


class _Retry(Exception):
    """A request had no reply and may be sent again; ``after`` so many seconds, if it was said."""

    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


class _Stopped(Exception):
    """Another thread has ended the run."""


class _Replies:
    """The replies' file: what is in it, and appending to it so that a crash loses nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.known = {
            record["key"]: record["reply"]
            for record in _records(path)
            if isinstance(record.get("reply"), str) and "key" in record
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            size = os.fstat(self.file).st_size
            if size and os.pread(self.file, 1, size - 1) != b"\n":
                os.write(self.file, b"\n")  # a line that was cut short stays a line of its own
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}.") from error

    def get(self, key: str) -> str | None:
        with self.lock:
            return self.known.get(key)

    def append(self, record: dict) -> None:
        record = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **record}
        line = (json.dumps(record, ensure_ascii=False) + "\n").encode()
        with self.lock:
            try:
                while line:
                    line = line[os.write(self.file, line) :]
                os.fsync(self.file)
            except OSError as error:
                raise StoreError(
                    f"{self.path} cannot be written ({error.strerror}): free some space, and run "
                    "again; what it holds is kept."
                ) from error
            if "reply" in record:
                self.known[record["key"]] = record["reply"]

    def close(self) -> None:
        os.close(self.file)


def _records(path: Path) -> list[dict]:
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    records = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:  # cut short when its writer was killed
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def _key(request: dict, about: dict, name: str) -> str:
    from .sources import digest_text

    parts = [name, json.dumps(request, sort_keys=True, ensure_ascii=False)]
    return digest_text(*parts, str(about["run"]), str(about["attempt"]))[:32]


def _client(base_url: str | None, api_key: str | None, timeout: float) -> OpenAI:
    import openai

    if not (api_key or os.environ.get("OPENAI_API_KEY")):
        if not (base_url or os.environ.get("OPENAI_BASE_URL")):
            raise RespondentError(
                "There is no chat endpoint: set OPENAI_BASE_URL and OPENAI_API_KEY in the "
                "environment."
            )
        api_key = "none"  # a server of one's own asks for no key, the client for some text
    return openai.OpenAI(base_url=base_url, api_key=api_key, timeout=timeout, max_retries=0)


def _retry_after(headers) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    try:
        if (value := headers.get("retry-after-ms")) is not None:
            return max(float(value) / 1000, 0.0)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            return max(float(value), 0.0)
        except ValueError:
            return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def check_numbers(**given) -> None:
    """Refuse numbers of runs, batches and the like that make no sense.

    Raises
    ------
    ParameterError
    """
    for name, value in given.items():
        least = 1 if name in ("batch_size", "runs", "concurrency") else 0
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ParameterError(f"{name} must be a whole number from {least}, got {value!r}.")
