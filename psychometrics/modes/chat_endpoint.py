"""Hold conversations with an endpoint: announce and send requests, and store replies.

An endpoint can also return the log-probabilities of a reply's first tokens.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..endpoints.batches import Batches
from ..endpoints.endpoint import Endpoint
from ..endpoints.request_queue import RequestQueue
from ..endpoints.secrets import mask_conditions
from ..exceptions import RespondentError
from ..progress import Progress
from ..questionnaires import Questionnaire
from ..store import StoredAnswers, key_of
from ..store.replies import Reply, StoredReplies, Turn
from .conversations import ENDED_WITHOUT_ANSWER, _Batch
from .mode import Asking

if TYPE_CHECKING:
    from .conversations import Row, Talk

# Limit of a reply's tokens if ``max_tokens`` is None.
_TOKENS = {"statement": 16, "before": 32, "thought": 512}
# Conditions that are sent in a request; the endpoint decides about None.
_OF_REQUEST = ("temperature", "max_tokens", "top_p", "reasoning_effort", "sampling_seed")


class _Job(NamedTuple):
    """A questionnaire, with the conversations about it in all runs."""

    questionnaire: Questionnaire
    begin: Callable[[], list[tuple[_Batch, Talk]]]  # begins the conversations
    questions: int
    key: str  # equal for all processes that would send the same requests


@contextlib.contextmanager
def _stored_replies(job: _Job, asking: Asking) -> Iterator[StoredReplies]:
    """Wait for other processes with the same run, to pay for it only once; then read the store."""
    name = asking.identity.respondent_id
    manifest = {**asking.identity, **mask_conditions(asking.conditions)}
    waits = functools.partial(
        asking.bar.set_postfix_str, "waiting for the same run in another process"
    )
    with (
        StoredAnswers(asking.store, "chat", job.questionnaire.id, name, manifest) as stored,
        stored.alone(job.key, waits=waits),
    ):
        yield StoredReplies(stored, asking.identity.fingerprint)


def _request_settings(conditions: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of each request to an endpoint, except model and messages."""
    settings = {}
    for name in _OF_REQUEST:
        if conditions[name] is not None:
            settings["seed" if name == "sampling_seed" else name] = conditions[name]

    body: dict[str, Any] = json.loads(conditions["body"] or "{}")
    return settings | body


def _ask_endpoint(
    jobs: list[_Job],
    endpoint: Endpoint,
    asking: Asking,
    rows: dict[str, list[Row]],
    settings: dict[str, Any],
) -> None:
    """Hold all conversations with an endpoint; append the answers to ``rows``."""
    _, identity, store, bar, conditions = asking
    name = identity.respondent_id
    settings = {"model": identity.model, **settings}
    if conditions["raw"] and not settings.keys() & {"max_tokens", "max_completion_tokens"}:
        # otherwise most endpoints take 16
        settings["max_tokens"] = _most_tokens(conditions, conditions["batch_size"])

    models: set[str] = set()

    async def converse(questionnaire: str, talk: Talk) -> None:
        turn = next(talk)
        is_asked = False
        while True:
            reply = await queue.ask(questionnaire, turn)
            is_asked |= reply.is_new
            models.update([reply.model] if reply.model else [])
            try:
                turn = talk.send(reply)
            except StopIteration as end:
                unasked = sum(row["status"] == "unasked" for row in end.value)
                bar.count_unasked(unasked)
                count = bar.update if is_asked else bar.count_stored
                count(len(end.value) - unasked)
                rows[questionnaire] += end.value
                return

    with contextlib.ExitStack() as stack:
        in_order = sorted(jobs, key=lambda job: job.key)  # or two runs could block each other
        stored = {
            j.questionnaire.id: stack.enter_context(_stored_replies(j, asking)) for j in in_order
        }
        for job in jobs:
            bar.expect(job.questions)

        queue = RequestQueue(endpoint, name, settings, bar, stored, conditions["raw"])
        if endpoint.batch and not endpoint.dry_run:
            log = StoredAnswers(store, "chat-batches", "sent", name, dict(identity))
            queue.batches = Batches(queue, stack.enter_context(log))

        _announce(queue, jobs, endpoint, bar)
        queue.work(converse, _begun(jobs))

    if len(models) > 1:
        warnings.warn(
            f"{queue.client.where}: {len(models)} models replied ({', '.join(sorted(models))}), "
            "so the answers are not those of one respondent: name one version of the model, with "
            "a name of its own (name).",
            stacklevel=2,
        )


def _begun(jobs: list[_Job]) -> list[tuple[str, Talk]]:
    return [(job.questionnaire.id, talk) for job in jobs for _, talk in job.begin()]


def _announce(queue: RequestQueue, jobs: list[_Job], endpoint: Endpoint, bar: Progress) -> None:
    """Announce the number of requests to a paid endpoint, and their price.

    Raises
    ------
    RespondentError
        ``max_cost`` does not cover a single request, and no reply is stored.
    """
    priced = endpoint.price_in is not None or endpoint.price_out is not None
    shown = not bar.disable and (priced or bool(endpoint.api_key))
    limit = endpoint.max_cost
    where = queue.client.where

    if endpoint.dry_run or (limit is None and not shown):
        return
    forecast = queue.forecast(_begun(jobs))
    if not forecast.requests:
        return

    if limit is not None and forecast.least > limit:
        warning = (
            f"{where}: max_cost={limit:g} is less than one request may cost ({forecast.least:.4g})"
            "; raise it, or ask fewer statements at a time (batch_size) with lower max_tokens."
        )
        if not forecast.stored:
            raise RespondentError(warning)

        warnings.warn(warning, stacklevel=2)

    if not shown:
        return

    requests = "request" if forecast.requests == 1 else "requests"
    line = f"{where}: {forecast.requests} {requests} to be sent, of "
    line += f"about {forecast.prompt:,} tokens, about {forecast.completion:,} to be received, "
    line += f"for about {forecast.cost:.4g}" if priced else "at an unknown price (price_in=…)"

    if limit is not None and forecast.cost > limit:
        line += f"; max_cost={limit:g} is less, so some will not be sent"

    bar.write(f"{line}.", file=sys.stderr)


class _FirstTokens(NamedTuple):
    """The likeliest first tokens of a reply.

    Parameters
    ----------
    status : str
        "ok", or the reason why there are no tokens: no_reply, no_choice, unasked, refused (by a
        filter), tool_call.
    tokens : dict of str to float
        Log-probabilities by token.
    """

    status: str
    tokens: dict[str, float]


def _first_tokens(
    questionnaire: Questionnaire,
    asking: Asking,
    endpoint: Endpoint,
    prompts: dict[tuple[str, str], str],
) -> dict[tuple[str, str], _FirstTokens]:
    """Ask an endpoint for the log-probabilities of its replies' first tokens.

    Parameters
    ----------
    questionnaire : Questionnaire
    asking : Asking
    endpoint : Endpoint
    prompts : dict
        Prompts, which are pairs of a system text and a user text, with their items.

    Returns
    -------
    dict
        For each prompt, the ``status`` and the log-probabilities of the ``tokens``.
    """

    def talk(prompt: tuple[str, str], item: str) -> Talk:
        pairs = zip(("system", "user"), prompt, strict=True)
        sent = [{"role": role, "content": content} for role, content in pairs if content]
        reply = yield Turn(sent, 1, 1, (item,))
        first = _read_tokens(reply)
        return [{"prompt": prompt, "status": first.status, "first": first}]

    body = json.loads(asking.conditions["body"] or "{}")
    settings: dict[str, Any] = {"logprobs": True, "top_logprobs": 20} | body
    if asking.conditions["raw"]:
        settings["logprobs"] = settings.pop("top_logprobs")

    if "max_completion_tokens" not in body:
        settings = {"max_tokens": 1} | settings

    def begin() -> list[tuple[_Batch, Talk]]:
        return [(_Batch(1, ()), talk(*pair)) for pair in prompts.items()]

    key = key_of("first tokens", asking.identity.fingerprint, questionnaire.model_dump_json())
    rows: dict[str, list[Row]] = {questionnaire.id: []}
    job = _Job(questionnaire, begin, len(prompts), key)
    _ask_endpoint([job], endpoint, asking, rows, settings)
    return {row["prompt"]: row["first"] for row in rows[questionnaire.id]}


def _read_tokens(reply: Reply) -> _FirstTokens:
    """Read log-probabilities from the reply to a prompt."""
    if reply.text is None:
        return _FirstTokens(reply.status, {})

    tokens = None
    with contextlib.suppress(ValueError):
        tokens = json.loads(reply.text)

    if isinstance(tokens, dict) and tokens:
        return _FirstTokens("ok", tokens)
    status = ENDED_WITHOUT_ANSWER.get((reply.finish_reason or "").lower(), "cut_off")
    if status != "cut_off":  # all replies of one token end at their length
        return _FirstTokens(status, {})

    raise RespondentError(
        "The endpoint gives no log-probabilities, or some that are not finite or exceed 1 in all: "
        "use mode chat."
    )


def _most_tokens(conditions: dict[str, Any], statements: int) -> int:
    """Return the maximum number of tokens in a reply about a given number of statements."""
    thought = _TOKENS["thought"] if conditions["think"] else 0
    return _TOKENS["statement"] * statements + _TOKENS["before"] + thought
