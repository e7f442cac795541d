"""Chat models, on this machine or over HTTP; each reply is stored as soon as it arrives.

A model on this machine (``"smollm2"``, a folder, an adapter) replies in this process, in batches.
If ``endpoint`` is given, or if the name belongs to an endpoint's model, requests are sent to the
endpoint.

Each request asks about a batch of statements, in the order of its run. The reply is stored before
use, under a key made from everything that determines the reply. A killed run resumes where it
stopped: no request with a stored reply is sent again. If two runs would send the same requests, the
second waits for the first, even on a different machine that shares the store's folder.

Conditions
----------
``role``, ``wording``, ``think``, ``labels``, ``cipher`` and ``reply`` as in
:func:`psychometrics.modes.messages.messages`; replies in cipher are deciphered before they are
read. A ``wording`` of None is the questionnaire's own prompt if its file has one, or else v1.
``reply="json_schema"`` also sends the replies' JSON schema as ``response_format``, so that the
endpoint allows only such replies; not all endpoints support it. ``order``: order of the options,
which is ``"given"``, ``"reversed"``, or ``"shuffled"`` (drawn for each run); letters replace
numeric labels if options that are numbers change their places. ``temperature``,
``max_tokens``, ``top_p``, ``reasoning_effort`` and ``sampling_seed`` (the seed of the first run;
each further run has the next seed) go to the endpoint; None or ``"none"`` leaves the choice to the
endpoint. Huang et al. (2024) use temperature 0, or 0.01 if an endpoint refuses 0. ``shuffle``:
whether each run has its own order of the statements, drawn with ``seed``. ``batch_size``:
statements per request. ``history``: whether a batch is sent with the earlier batches of its run and
their replies, as one conversation. ``runs``: number of times that the whole questionnaire is asked,
each time in a new order; 1 by default (10 in Huang et al., 2024). ``ask_again``: number of times
that statements without a valid answer are asked again, on their own. ``log``: whether to add a
column ``sent`` with the messages as JSON.
``endpoint``: an :class:`Endpoint`; its settings can also be conditions (``timeout=30``).
``constrained``, only for models on this machine: whether a reply must consist of one line for each
statement, with a valid label, so that every reply can be read; the model still chooses among the
labels.

On this machine a ``temperature`` of None means 1, and ``max_tokens`` of None means as many tokens
as the lines need (plus 512 for thinking). Each reply is drawn with a seed made from ``seed``, the
run and the question, so a reply does not depend on other respondents. Batches can still change a
reply through rounding in bfloat16, but hardly ever in float32.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import pandas as pd
from pydantic import Field, FiniteFloat, InstanceOf, NonNegativeInt, PositiveInt

from ..endpoints.endpoint import Endpoint
from ..endpoints.request_queue import RequestQueue
from ..exceptions import ParameterError, RespondentError
from ..files import digest_text
from ..models.devices import resolve_device, resolve_dtype
from ..models.loading import load_model, to_device
from ..models.sources import Source, find
from ..progress import Progress
from ..questionnaires import Questionnaire
from ..store import StoredAnswers, key_of
from ..store.replies import Reply, StoredReplies, Turn
from . import generation
from .conversations import (
    ENDED_WITHOUT_ANSWER,
    _ConversationConditions,
    _ConversationMode,
    _Row,
    _Talk,
)
from .generation import _WrittenReply
from .messages import as_filed, caesar, option_labels
from .mode import Asking, Identity
from .places import _identify_at_endpoint, model_here

_Writer = Callable[..., list[_WrittenReply]]  # like generation.replies
# Limit of a reply's tokens if ``max_tokens`` is None.
_TOKENS = {"statement": 16, "before": 32, "thought": 512}
# Conditions that are sent in a request; the endpoint decides about None.
_OF_REQUEST = ("temperature", "max_tokens", "top_p", "reasoning_effort", "sampling_seed")
# Settings of a request for the log-probabilities of a reply's first tokens.
_OF_FIRST_TOKENS = {"max_tokens": 1, "logprobs": True, "top_logprobs": 20}


class _ChatConditions(_ConversationConditions):
    """The conditions of a conversation and of a request."""

    temperature: Annotated[FiniteFloat, Field(ge=0)] | None = 0.0
    max_tokens: PositiveInt | None = None
    ask_again: NonNegativeInt = 2
    constrained: bool = False
    top_p: Annotated[FiniteFloat, Field(gt=0, le=1)] | None = None
    reasoning_effort: str | None = None
    sampling_seed: NonNegativeInt | None = None
    endpoint: InstanceOf[Endpoint] | None = None


class _Job(NamedTuple):
    """A questionnaire, with the conversations about it in all runs."""

    questionnaire: Questionnaire
    begin: Callable[[], list[_Talk]]  # begins the conversations
    questions: int
    key: str  # equal for all processes that would send the same requests


class Chat(_ConversationMode):
    """Chat models, on this machine or behind an endpoint."""

    conditions_type = _ChatConditions
    asked_once: ClassVar[dict[str, object]] = {
        "runs": 1,
        "ask_again": 0,
        "shuffle": False,
        "batch_size": 1,
    }

    def complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return all conditions; refuse conditions that conflict."""
        settings = Endpoint.gathered(settings)
        off = [
            name for name in ("temperature", "max_tokens", "top_p") if settings.get(name) == "none"
        ]
        conditions = super().complete(settings | dict.fromkeys(off))

        more_than_lines = conditions["think"] or conditions["reply"] != "lines"
        if conditions["constrained"] and more_than_lines:
            raise ParameterError("Constrained replies are lines only: leave out think and reply.")

        endpoint = conditions["endpoint"]
        has_budget = endpoint is not None and endpoint.max_cost is not None
        if has_budget and conditions["max_tokens"] is None:
            raise ParameterError("max_cost needs max_tokens, to limit replies: set max_tokens.")

        return conditions

    def identify(
        self, respondent: str | Path, dtype: str | None = None, **conditions: Any
    ) -> Identity:
        """Return the identity of the model, before anything is sent."""
        if not isinstance(respondent, str | Path) or not str(respondent).strip():
            raise ParameterError(f"A model's name must be text or a folder, got {respondent!r}.")

        endpoint = conditions["endpoint"]
        source = model_here(respondent) if endpoint is None else None
        if source is not None:
            return self._identify_here(source, resolve_dtype(dtype), conditions)

        if conditions["constrained"]:
            raise ParameterError("constrained needs a model on this machine: leave it out.")
        return _identify_at_endpoint(respondent, endpoint, self.name)

    def _identify_here(self, source: Source, dtype: str, conditions: dict[str, Any]) -> Identity:
        """Return the identity of a local model; refuse conditions that only endpoints know."""
        if conditions["reply"] == "json_schema":
            raise ParameterError("Only an endpoint can enforce a schema: use reply='json'.")

        for name in ("top_p", "reasoning_effort", "sampling_seed"):
            if conditions[name] is not None:
                raise ParameterError(f"{name} is for an endpoint: drop it, or name an endpoint.")

        if source.kind == "embedded":
            raise RespondentError(
                f"{source.name} judges pairs and cannot reply: name a chat model."
            )

        template = ""
        if source.folder and source.kind != "packed":  # a packed model's digest covers it
            file = source.folder / "chat_template.jinja"
            template = file.read_text("utf-8") if file.is_file() else ""

        handling = "chat-here-1", generation.HANDLING
        fingerprint = digest_text(*handling, source.digest, dtype, template)
        return Identity.from_source(source, self.name, dtype, fingerprint)

    def open(self, respondent: str | Path, identity: Identity, **conditions: Any) -> Any:
        """Return a local model, to be loaded at its first question, or an endpoint's name."""
        if identity.source == "endpoint":
            return respondent

        def load() -> _Writer:
            source = find(respondent)
            kind = "a causal language model, which can reply"
            model, tokenizer = load_model(source, "causal", dtype=identity.precision, what=kind)
            tokenizer.name_or_path = source.name
            model = to_device(model, resolve_device(None), identity.precision, source.name)
            return functools.partial(generation.replies, (model, tokenizer))

        return self._when_asked(load)

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Put one questionnaire to a chat model, as :meth:`answer_all` does for several."""
        (answers,) = self.answer_all([questionnaire], asking)
        return answers

    def answer_all(
        self, questionnaires: Iterable[Questionnaire], asking: Asking
    ) -> Iterator[pd.DataFrame]:
        """Put questionnaires to a chat model, here or behind an OpenAI-compatible endpoint.

        Parameters
        ----------
        questionnaires : iterable of Questionnaire
            Questionnaires. An endpoint gets the requests about all questionnaires together.
        asking : Asking
            The respondent and the conditions, with a progress bar that counts statements.

        Yields
        ------
        DataFrame
            The answers to each questionnaire, in turn: ``respondent_id, questionnaire, mode, run,
            item_id, value, status``, then ``position`` (in the run's order, from 1), ``options``
            (the order of the options shown), ``attempts``, ``raw`` (the last reply about the item)
            and the conditions. Statuses are those of
            :func:`psychometrics.modes.replies.parse_reply`, ``no_reply`` if no reply came,
            ``no_choice`` if replies had no choices, ``unasked`` if the budget was too small,
            ``cut_off`` if a reply reached ``max_tokens`` before answering the statement,
            ``refused`` also if the endpoint's filter (``content_filter``) ended the reply first,
            and ``tool_call`` if the reply only calls a tool.

        Raises
        ------
        ParameterError
            A condition has an invalid value.
        RespondentError
            The endpoint refuses the key, the model or the request, or does not answer at all; or
            the local model has no chat template. Earlier answers are stored, and completed
            questionnaires are yielded.
        StoreError
            Replies cannot be written or read.

        References
        ----------
        Huang et al. (2024), section 3.1, for prompts, shuffled statements and temperature. Use
        ``runs=10`` for the ten runs of Huang et al. (2024).
        """
        conditions = dict(asking.conditions)
        endpoint = conditions.pop("endpoint") or Endpoint()
        asking = asking._replace(conditions=conditions)
        jobs = []
        # Calls that differ only in their number of runs would send the same requests.
        shared = {name: value for name, value in conditions.items() if name != "runs"}
        for questionnaire in questionnaires:
            text = questionnaire.model_dump_json()
            key = key_of(asking.identity.fingerprint, text, repr(shared))
            begin = functools.partial(self.talks, questionnaire, asking)
            questions = conditions["runs"] * len(questionnaire.items)
            jobs.append(_Job(questionnaire, begin, questions, key))

        if asking.identity.source != "endpoint":
            for job in jobs:
                yield self.table(self._ask_here(job, asking), job.questionnaire, conditions)

            return

        settings = {name: conditions[name] for name in _OF_REQUEST if conditions[name] is not None}
        if "sampling_seed" in settings:
            settings["seed"] = settings.pop("sampling_seed")

        rows, error = _ask_endpoint(jobs, endpoint.resolved(), asking, settings)
        for job in jobs:
            answers = rows[job.questionnaire.id]
            is_complete = len(answers) == job.questions
            has_replies = any(row["raw"] is not None for row in answers)
            if error is None or (is_complete and has_replies):
                yield self.table(answers, job.questionnaire, conditions)

        if error is not None:
            raise error

    def _ask_here(self, job: _Job, asking: Asking) -> list[_Row]:
        """Ask a local model one questionnaire; each reply is saved at once."""
        cut_off: set[str] = set()
        asking.bar.expect(job.questions)

        with _open_replies(job, asking) as replies:

            def reply_to_all(turns: list[Turn]) -> list[Reply]:
                keys = []
                new = {}
                for turn in turns:
                    request = _write_request(job.questionnaire, turn, asking)
                    key = replies.key(json.dumps(request, sort_keys=True), turn)
                    keys.append(key)
                    if key not in replies.by_key:
                        new[key] = turn, request

                # Requests of one length form a batch, since a reply depends only on its own length.
                for length in sorted({request["max_tokens"] for _, request in new.values()}):
                    batch = {k: pair for k, pair in new.items() if pair[1]["max_tokens"] == length}
                    _generate_replies(batch, asking.respondent, replies)

                cut_off.update(k for k in keys if replies.by_key[k].finish_reason == "length")
                return [replace(replies.by_key[key], is_new=key in new) for key in keys]

            rows = self.hold(job.begin(), asking, reply_to_all)

        if cut_off:
            warnings.warn(
                f"{asking.identity.respondent_id}: {len(cut_off)} replies about "
                f"{job.questionnaire.id} were cut off; the unanswered statements are 'cut_off': "
                "raise max_tokens, or ask fewer statements at a time (batch_size).",
                stacklevel=2,
            )

        return rows


def _write_request(questionnaire: Questionnaire, turn: Turn, asking: Asking) -> dict[str, Any]:
    """Return everything that determines a reply."""
    conditions = as_filed(questionnaire, asking.conditions)
    temperature = conditions["temperature"]
    most_tokens = _TOKENS["statement"] * len(turn.items) + _TOKENS["before"]
    most_tokens += _TOKENS["thought"] if conditions["think"] else 0
    request = {
        "model": asking.identity.model,
        "temperature": 1.0 if temperature is None else float(temperature),
        "max_tokens": conditions["max_tokens"] or most_tokens,
        "messages": turn.messages,
    }
    if request["temperature"]:
        request["seed"] = conditions["seed"]

    if conditions["constrained"]:  # to lines of numbers and labels
        form = []
        for number, item in enumerate(turn.items, start=1):
            start = "" if number == 1 else "\n"
            labels = option_labels(questionnaire.choices(item), conditions["labels"])
            form += [[f"{start}{number}:"], [f" {label}" for label in labels]]

        cipher = conditions["cipher"]
        request["form"] = [[caesar(text, cipher) for text in texts] for texts in form]

    return request


def _generate_replies(
    new: dict[str, tuple[Turn, dict[str, Any]]], write: _Writer, replies: StoredReplies
) -> None:
    """Generate the replies to requests, and save each reply."""
    keys = list(new)
    requests = [request for _, request in new.values()]
    began = time.perf_counter()

    def keep(place: int, reply: _WrittenReply) -> None:
        nonlocal began
        turn, request = new[keys[place]]
        columns = {
            "reply": reply["reply"],
            "finish_reason": reply["finish_reason"],
            "usage": json.dumps({"completion_tokens": reply["tokens"]}),
        }
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        row = turn, json.dumps(request, sort_keys=True), columns
        replies.add({keys[place]: row}, seconds)

    write(
        [request["messages"] for request in requests],
        requests[0]["temperature"],
        requests[0]["max_tokens"],
        # The seed depends on the question and the run, so other respondents do not matter.
        seeds=[int(key[:15], 16) for key in keys],
        forms=[request["form"] for request in requests if "form" in request] or None,
        keep=keep,
    )


@contextlib.contextmanager
def _open_replies(job: _Job, asking: Asking) -> Iterator[StoredReplies]:
    """Wait for other processes with the same run, to pay for it only once; then read the store."""
    name = asking.identity.respondent_id
    manifest = {**asking.identity, **asking.conditions}
    waits = functools.partial(
        asking.bar.set_postfix_str, "waiting for the same run in another process"
    )
    with (
        StoredAnswers(asking.store, "chat", job.questionnaire.id, name, manifest) as stored,
        stored.alone(job.key, waits=waits),
    ):
        yield StoredReplies(stored, asking.identity.fingerprint)


def _ask_endpoint(
    jobs: list[_Job], endpoint: Endpoint, asking: Asking, settings: dict[str, Any]
) -> tuple[dict[str, list[_Row]], RespondentError | None]:
    """Hold all conversations; return the answers by questionnaire, and what ended the run early."""
    identity = asking.identity
    bar = asking.bar
    name = identity.respondent_id
    settings = {"model": identity.model, **settings}
    rows: dict[str, list[_Row]] = {job.questionnaire.id: [] for job in jobs}
    failure = None

    def finish(questionnaire: str, answers: list[_Row], is_new: bool) -> None:
        unasked = sum(row["status"] == "unasked" for row in answers)
        bar.count_unasked(unasked)
        count = bar.update if is_new else bar.count_stored
        count(len(answers) - unasked)
        rows[questionnaire] += answers

    def begin_talks() -> Iterator[tuple[str, _Talk]]:
        return ((job.questionnaire.id, talk) for job in jobs for talk in job.begin())

    with contextlib.ExitStack() as stack:
        in_order = sorted(jobs, key=lambda job: job.key)  # or two runs could block each other
        stored = {
            j.questionnaire.id: stack.enter_context(_open_replies(j, asking)) for j in in_order
        }
        for job in jobs:
            bar.expect(job.questions)

        queue = RequestQueue(endpoint, name, settings, bar, stored)
        _print_plan(queue, begin_talks(), bar)
        try:
            queue.work(list(begin_talks()), finish)
        except RespondentError as error:
            failure = error

    models = sorted(queue.models)
    if len(models) > 1:
        warnings.warn(
            f"{queue.client.where}: {len(models)} models replied ({', '.join(models)}), "
            "so the answers are not those of one respondent: name one version of the model, with "
            "a name of its own (name).",
            stacklevel=2,
        )

    return rows, failure


def _print_plan(queue: RequestQueue, talks: Iterator[tuple[str, _Talk]], bar: Progress) -> None:
    """Announce the number of requests to a paid endpoint, and their price.

    Raises
    ------
    RespondentError
        ``max_cost`` does not cover a single request, and no reply is stored.
    """
    endpoint = queue.endpoint
    is_priced = bar.spending.priced
    is_shown = not bar.disable and (is_priced or bool(endpoint.api_key))
    limit = endpoint.max_cost
    place = queue.client.where

    if endpoint.dry_run or (limit is None and not is_shown):
        return
    requests, stored = queue.unstored(talks)
    if not requests:
        return

    budget = queue.budget
    tokens = [budget.estimate(*request) for request in requests]
    prompt, completion = (sum(counts) for counts in zip(*tokens, strict=True))
    cost = budget.cost(prompt, completion)
    cheapest = min(budget.cost(*budget.most_tokens(text)) for text, _ in requests)

    if limit is not None and cheapest > limit:
        warning = (
            f"{place}: max_cost={limit:g} is less than one request may cost ({cheapest:.4g}); "
            "raise it, or ask fewer statements at a time (batch_size) with lower max_tokens."
        )
        if not stored:
            raise RespondentError(warning)

        warnings.warn(warning, stacklevel=2)

    if is_shown:
        count = "1 request" if len(requests) == 1 else f"{len(requests)} requests"
        price = f"for about {cost:.4g}" if is_priced else "at an unknown price (price_in=…)"
        line = f"{place}: {count} to be sent, of about {prompt:,} tokens, about {completion:,} "
        line += f"to be received, {price}"
        if limit is not None and cost > limit:
            line += f"; max_cost={limit:g} is less, so some will not be sent"

        bar.write(f"{line}.", file=sys.stderr)


def _ask_first_tokens(
    questionnaire: Questionnaire,
    asking: Asking,
    endpoint: Endpoint,
    prompts: dict[tuple[str, str], str],
) -> dict[tuple[str, str], tuple[str, dict[str, float]]]:
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
        For each prompt, a status and the log-probabilities by token. The status is "ok", or the
        reason why there are no tokens: no_reply, no_choice, unasked, refused (by a filter),
        tool_call.

    Raises
    ------
    RespondentError
        The endpoint gives no log-probabilities.
    """

    def talk(prompt: tuple[str, str], item: str) -> _Talk:
        pairs = zip(("system", "user"), prompt, strict=True)
        messages = [{"role": role, "content": content} for role, content in pairs if content]
        reply = yield Turn(messages, 1, 1, (item,))
        tokens: Any = None
        with contextlib.suppress(ValueError):
            tokens = json.loads(reply.text or "")

        status = "ok"
        if reply.text is None:
            status = reply.status
        elif not (isinstance(tokens, dict) and tokens):
            status = ENDED_WITHOUT_ANSWER.get((reply.finish_reason or "").lower(), "cut_off")
            if status == "cut_off":  # all replies of one token end at their length
                raise RespondentError(
                    "The endpoint gives no log-probabilities, or some that are not finite or "
                    "exceed 1 in all: use mode chat."
                )

        return [{"prompt": prompt, "status": status, "tokens": tokens if status == "ok" else {}}]

    def begin() -> list[_Talk]:
        return [talk(*pair) for pair in prompts.items()]

    key = key_of("first tokens", asking.identity.fingerprint, questionnaire.model_dump_json())
    job = _Job(questionnaire, begin, len(prompts), key)
    rows, error = _ask_endpoint([job], endpoint, asking, _OF_FIRST_TOKENS)
    if error is not None:
        raise error
    return {row["prompt"]: (row["status"], row["tokens"]) for row in rows[questionnaire.id]}
