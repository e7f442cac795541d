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
:func:`psychometrics.modes.messages.messages`; replies in cipher are deciphered before they are
read.
``reply="json_schema"`` sends :func:`psychometrics.modes.messages.reply_schema` as
``response_format``
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

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..asking.answers import check_numbers, tidy
from ..asking.store import StoredAnswers, key_of, open_answers
from ..exceptions import ParameterError, RespondentError
from ..paths import cache_dir
from ..questionnaires import Questionnaire
from .messages import ORDERS, REPLIES, caesar, messages, reply_schema
from .mode import Mode
from .replies import parse_reply

if TYPE_CHECKING:
    from ..asking.progress import Progress
    from ..models.local_chat import LocalModel
    from ..models.sources import Source

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


@dataclass(frozen=True)
class Endpoint:
    """Where chat models are, how fast they may be asked, and for how much.

    Nothing of this is part of an answer's key: a question that was answered is not asked again
    when it would be sent in another way.

    Parameters
    ----------
    base_url, api_key : str, optional
        By default from the environment: ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``.
    timeout : float
        Seconds that a whole reply may take.
    concurrency : int
        Most requests at the same time, over all questionnaires of a model; some hundreds are fine.
    requests_per_minute, tokens_per_minute : float, optional
        Most requests begun, and most tokens of them and their replies, in a minute.
    retries : int
        How often a request is sent again that had no reply (no connection, a time-out, status
        408, 409 or 5xx, a reply that cannot be read). One that came too soon (429) is sent again
        for as long as the endpoint replies to others, and all are sent more slowly.
    pause : float
        First pause before that, in seconds; it doubles each time, up to a minute. A
        ``Retry-After``, and what ``x-ratelimit`` headers say is used up, is obeyed by all requests.
    name : str
        Put before the models' names, where another endpoint has a model of the same name.
    price_in, price_out : float, optional
        Of a million tokens of requests, cached or not, and of replies, in any currency.
    max_cost : float, optional
        The budget of one call of ``ask``, whatever calls before have cost: a request is sent only
        if it fits beside what was spent and what those on their way may cost at most, which needs
        ``max_tokens``. What does not fit has the status ``unasked``, and is asked in the next call.
    batch : bool
        Send the requests as files (``/files`` and ``/batches``), which some endpoints have for
        half the price and within a day. A run that was stopped finds its batches again.
    dry_run : bool
        Send nothing: what is not in the store is ``unasked``, and the summary says how many
        requests that would be, and about how many tokens.

    Raises
    ------
    ParameterError
        The address is none, the key cannot be sent, a number is impossible, or a budget has no
        prices.

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
    tokens_per_minute: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    max_cost: float | None = None
    batch: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        import httpx2

        check_numbers(concurrency=self.concurrency, retries=self.retries)
        for name in ("timeout", "requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                raise ParameterError(f"{name} must be a positive number, got {value!r}.")
        for name in ("pause", "price_in", "price_out", "max_cost"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 <= value < math.inf):
                raise ParameterError(f"{name} must be a number from 0, got {value!r}.")
        for name in ("batch", "dry_run"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        if self.max_cost is not None and (self.price_in is None or self.price_out is None):
            raise ParameterError(
                "max_cost needs price_in and price_out, the prices of a million tokens."
            )
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
        return dataclasses.replace(self, base_url=url, api_key=key)


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
        from ..models.local_chat import identity_of

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
    from ..models.local_chat import LocalModel

    return LocalModel(respondent, identity["dtype"])


def put(
    questionnaire: Questionnaire,
    respondent: str | Path | LocalModel,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> pd.DataFrame:
    """Put one questionnaire to a chat model, as :func:`put_all` does several."""
    (answers,) = put_all([questionnaire], respondent, identity, store, bar, **conditions)
    return answers


def put_all(
    questionnaires: Iterable[Questionnaire],
    respondent: str | Path | LocalModel,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> Iterator[pd.DataFrame]:
    """Put questionnaires to a chat model, here or behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    questionnaires : iterable of Questionnaire
        An endpoint gets the requests of all together.
    respondent, identity
        As :func:`opened` gives it, and what :func:`identify` gave.
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
        Is moved on by a batch's statements.
    **conditions
        Of ``CONDITIONS``.

    Yields
    ------
    DataFrame
        Of each questionnaire ``respondent_id, questionnaire, mode, run, item_id, value, status``,
        then ``position`` (in the run's order, from 1), ``options`` (the order of the options
        shown), ``attempts``, ``raw`` (the last reply about the item) and the conditions. Statuses
        are those of :func:`psychometrics.modes.replies.parse_reply`, ``no_reply`` where none came,
        ``unasked`` where the budget did not allow it, and ``cut_off`` where a reply reached
        ``max_tokens`` before the statement was answered.

    Raises
    ------
    ParameterError
        A condition is impossible.
    RespondentError
        The endpoint refuses the key, the model or the request, or does not answer at all; or the
        model here has no chat template. What was answered before is kept, and the questionnaires
        that were answered by then are there.
    StoreError
        Replies cannot be written or read.

    References
    ----------
    Huang et al. (2024), section 3.1: prompts, shuffled statements, ten runs, temperature.
    """
    how = _checked(**(CONDITIONS | conditions))
    endpoint = how.pop("endpoint") or Endpoint()
    name, here = identity["respondent_id"], identity["source"] != "endpoint"
    look = how["role"], how["wording"], how["think"], how["labels"]
    asked = []
    for questionnaire in questionnaires:
        plan = batches(questionnaire, how)
        messages(questionnaire, questionnaire.items[:1], *look)  # refuse before asking
        # Runs that differ in nothing but their number of runs would send the same requests.
        same = {key: value for key, value in how.items() if key != "runs"}
        text = questionnaire.model_dump_json()
        same = key_of(str(store), identity["fingerprint"], text, repr(same))
        asked.append((questionnaire, plan, same))

    def kept_of(questionnaire: Questionnaire) -> StoredAnswers:
        return open_answers(store, "chat", questionnaire.id, name, {**identity, **how})

    if here:
        from ..models.local_chat import rows_of

        for questionnaire, plan, same in asked:
            bar.expect(sum(len(batch["items"]) for batch in plan))
            with _alone(same, bar), kept_of(questionnaire) as kept:
                talks = [(b, conversation(questionnaire, b, name, "chat", how)) for b in plan]
                rows = rows_of(talks, questionnaire, respondent, identity, kept, how, bar)
            yield in_order(rows, questionnaire, how)
        return
    with contextlib.ExitStack() as stack:
        for same in sorted(same for _, _, same in asked):  # in one order, or two runs would block
            stack.enter_context(_alone(same, bar))
        kept = {q.id: stack.enter_context(kept_of(q)) for q, _, _ in asked}
        for _, plan, _ in asked:
            bar.expect(sum(len(batch["items"]) for batch in plan))
        rows = {questionnaire.id: [] for questionnaire, _, _ in asked}
        plans = [(q, plan) for q, plan, _ in asked]
        try:
            _ask_endpoint(plans, endpoint.resolved(), identity, store, kept, rows, bar, how)
        except RespondentError:
            for questionnaire, plan in plans:
                own, whole = rows[questionnaire.id], sum(len(batch["items"]) for batch in plan)
                if len(own) == whole and any(row["raw"] is not None for row in own):
                    yield in_order(own, questionnaire, how)
            raise
    for questionnaire, _ in plans:
        yield in_order(rows[questionnaire.id], questionnaire, how)


def _ask_endpoint(
    plans: list[tuple[Questionnaire, list[dict]]],
    endpoint: Endpoint,
    identity: dict,
    store: str | Path | None,
    kept: dict[str, StoredAnswers],
    rows: dict[str, list[dict]],
    bar: Progress,
    how: dict,
) -> None:
    """Hold all conversations with an endpoint; what comes of them goes into ``rows``."""
    from ..endpoints.batches import Batches
    from ..endpoints.request_queue import Line, Replies, run

    name = identity["respondent_id"]
    settings = {"model": identity["model"]}
    settings |= {n: how[n] for n in ("temperature", "max_tokens") if how[n] is not None}

    async def whole() -> None:
        line = Line(endpoint, identity, settings, bar)
        replies = {own: Replies(what) for own, what in kept.items()}

        async def answered(questionnaire: Questionnaire, batch: dict) -> None:
            talk = conversation(questionnaire, batch, name, "chat", how)
            asked, sent = next(talk), False
            while True:
                reply = await line.ask(replies[questionnaire.id], *asked)
                sent |= asked[1].get("sent", False)
                try:
                    asked = talk.send(reply)
                except StopIteration as end:
                    left = sum(row["status"] == "unasked" for row in end.value)
                    bar.count_unasked(left)
                    (bar.update if sent else bar.count_stored)(len(end.value) - left)
                    rows[questionnaire.id] += end.value
                    return

        jobs = [(questionnaire, batch) for questionnaire, plan in plans for batch in plan]
        if endpoint.batch and not endpoint.dry_run:
            with open_answers(store, "chat-batches", "sent", name, identity) as log:
                there = replies.values()
                line.batches = Batches(line, log, lambda key: any(key in r.known for r in there))
                await line.all(answered, jobs)
        else:
            await line.all(answered, jobs)

    run(whole())


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
        As :func:`psychometrics.modes.replies.parse_reply`.

    Yields
    ------
    messages, about : list of dict, dict
        What to send, and what it is about (``run, attempt, items``, and ``response_format`` where
        the reply has a schema); is to be sent the reply, or None where there is none. Where ``cut``
        has been set in the latter, the reply was cut off, and where ``unasked`` has, it was not
        asked for. Returns one row per item.
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
            read = [("unasked" if about.get("unasked") else "no_reply", None)] * len(items)
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


def check_conditions(how: dict) -> None:
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
    check_conditions(how)
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
    if how["endpoint"] and how["endpoint"].max_cost is not None and how["max_tokens"] is None:
        raise ParameterError(
            "max_cost needs max_tokens, the most that a reply may have: else a reply has no bound."
        )
    return how


def _here(respondent: str | Path) -> Source | None:
    """The model on this machine that a name means, None where it is an endpoint's."""
    from ..models.local_chat import found_here

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


class Chat(Mode):
    """Chat models, on this machine or behind an endpoint."""

    name, conditions = "chat", CONDITIONS
    identify, open = staticmethod(identify), staticmethod(opened)
    answer, answer_all = staticmethod(put), staticmethod(put_all)
