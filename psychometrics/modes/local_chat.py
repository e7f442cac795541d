"""Chat with a model on this machine, in batches."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..asking.store import StoredAnswers, key_of
from ..exceptions import RespondentError
from ..models.loading import load_model, resolve_device, resolve_dtype, to_device
from ..models.sources import Source, digest_text, find
from ..questionnaires import Questionnaire
from . import generation
from .messages import caesar, option_labels

if TYPE_CHECKING:
    from collections.abc import Generator

    from .mode import Asking

_TOKENS = {"statement": 16, "before": 32, "thought": 512}
"""Tokens that a reply may have where ``max_tokens`` is None."""


def found_here(respondent: str | Path, may_be_on_hub: bool) -> Source | None:
    """Find a model on this machine; return None if the name may be an endpoint's.

    Raises
    ------
    RespondentError
        It is here and unusable; or with ``may_be_on_hub`` it is nowhere.
    """
    name = str(respondent).strip()
    try:
        there = Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        there = False
    if isinstance(respondent, Path) or there or may_be_on_hub:
        return find(respondent)
    try:  # a name without a slash is looked for on no hub
        return find(respondent) if "/" not in name else None
    except RespondentError as error:
        if str(error).startswith("There is no respondent"):
            return None
        raise


def precision_and_fingerprint(source: Source, dtype: str | None) -> tuple[str, str]:
    """Say what determines a model's answers: its chat template, too.

    Raises
    ------
    RespondentError
        It is an embedded member, which holds no conversation.
    """
    if source.kind == "embedded":
        raise RespondentError(
            f"{source.name} judges pairs of sentences and holds no conversation: name 'smollm2', a "
            "model's folder, or an endpoint's model with endpoint=."
        )
    dtype = resolve_dtype(dtype, resolve_device(None))
    written = ""
    if source.folder and source.kind != "packed":  # whose digest covers the template
        template = source.folder / "chat_template.jinja"
        written = template.read_text("utf-8") if template.is_file() else ""
    parts = "chat-here-1", generation.HANDLING, source.digest, dtype, written
    return dtype, digest_text(*parts)


class LocalModel:
    """A model that is loaded at its first question and kept for all questionnaires."""

    def __init__(self, respondent: str | Path, dtype: str) -> None:
        self.respondent, self.dtype, self.loaded = respondent, dtype, None

    def replies(self, *args: object, **options: object) -> list[dict]:
        """Return what :func:`psychometrics.modes.generation.replies` does, without the model."""
        if self.loaded is None:
            source = find(self.respondent)
            what = "a causal language model, which can reply"
            model, tokenizer = load_model(source, "causal", what=what)
            tokenizer.name_or_path = source.name
            self.loaded = to_device(model, resolve_device(None), self.dtype, source.name), tokenizer
        return generation.replies(*self.loaded, *args, **options)


def hold_conversations(
    talks: list[tuple[dict, Generator]],
    questionnaire: Questionnaire,
    asking: Asking,
    stored: StoredAnswers,
) -> list[dict]:
    """Hold all conversations to their ends, one reply of each at a time, saving each at once.

    Parameters
    ----------
    talks : list of (dict, generator)
        Batches and what :func:`psychometrics.modes.conversations.conversation` gives for each.
    questionnaire : Questionnaire
    asking : Asking
    stored : StoredAnswers

    Returns
    -------
    list of dict
        One row per item.
    """
    identity, bar = asking.identity, asking.bar
    known = stored.rows[["reply", "finish_reason"]].to_dict("index") if len(stored) else {}
    rows, cut = [], {}
    turns = [(batch, talk, *next(talk), False) for batch, talk in talks]
    while turns:
        keys, requests, new = [], [], {}
        for _, _, prompt, about, _ in turns:
            request = _request(questionnaire, prompt, about, asking)
            text, run = json.dumps(request, sort_keys=True), (about["run"], about["attempt"])
            keys.append(key_of(identity["fingerprint"], text, *map(str, run)))
            requests.append(request)
            if keys[-1] not in known:
                new[keys[-1]] = about, request
        # Those of one length together, as a reply's length is a matter of its own request.
        for length in sorted({request["max_tokens"] for _, request in new.values()}):
            some = {k: one for k, one in new.items() if one[1]["max_tokens"] == length}
            _generate(some, asking.respondent, stored, known)
        left = []
        for (batch, talk, _, about, sent), key, request in zip(turns, keys, requests, strict=True):
            reply, sent = known[key], sent or key in new
            if reply["finish_reason"] == "length":
                about["cut"] = True
                cut[key] = request["max_tokens"]
            try:
                left.append((batch, talk, *talk.send(reply["reply"]), sent))
            except StopIteration as end:
                (bar.update if sent else bar.count_stored)(len(batch["items"]))
                rows += end.value
        turns = left
    if cut:
        warnings.warn(
            f"{identity['respondent_id']}: {len(cut)} replies about {questionnaire.id} were cut "
            f"off at max_tokens ({min(cut.values())}); what was not answered by then is "
            "'cut_off': give more max_tokens, or fewer statements at a time (batch_size).",
            stacklevel=2,
        )
    return rows


def _request(questionnaire: Questionnaire, prompt: list, about: dict, asking: Asking) -> dict:
    """Return everything that a reply follows from."""
    how = asking.conditions
    tokens = _TOKENS["statement"] * len(about["items"]) + _TOKENS["before"]
    tokens += _TOKENS["thought"] if how["think"] else 0
    request = {
        "model": asking.identity["model"],
        "temperature": 1.0 if how["temperature"] is None else float(how["temperature"]),
        "max_tokens": how["max_tokens"] or tokens,
        "messages": prompt,
    }
    if request["temperature"]:
        request["seed"] = how["seed"]
    if how["constrained"]:
        request["form"] = _form(questionnaire, about["items"], how)
    return request


def _form(questionnaire: Questionnaire, items: list[str], how: dict) -> list[list[str]]:
    """Return lines of numbers and labels, all that a constrained reply can be."""
    form = []
    for number, item in enumerate(items, start=1):
        options = questionnaire.choices(questionnaire.item(item))
        start = "" if number == 1 else "\n"
        labels = option_labels(options, how["labels"])
        form += [[f"{start}{number}:"], [f" {label}" for label in labels]]
    return [[caesar(text, how["cipher"]) for text in part] for part in form]


def _generate(new: dict, model: LocalModel, stored: StoredAnswers, known: dict) -> None:
    """Have requests replied to; save each reply and add it to those that are known."""
    keys, requests, began = list(new), [request for _, request in new.values()], time.perf_counter()

    def keep(place: int, found: dict) -> None:
        nonlocal began
        about, request = new[keys[place]]
        row = {
            "run": about["run"],
            "attempt": about["attempt"],
            "items": " ".join(about["items"]),
            "request": json.dumps(request, sort_keys=True),
            "reply": found["reply"],
            "finish_reason": found["finish_reason"],
            "usage": json.dumps({"completion_tokens": found["tokens"]}),
        }
        took, began = time.perf_counter() - began, time.perf_counter()
        stored.add(pd.DataFrame([row], index=pd.Index([keys[place]], name="key")), seconds=took)
        known[keys[place]] = {name: row[name] for name in ("reply", "finish_reason")}

    model.replies(
        [request["messages"] for request in requests],
        requests[0]["temperature"],
        requests[0]["max_tokens"],
        # By what is asked and in which run, so that it does not matter who else is asked.
        seeds=[int(key[:15], 16) for key in keys],
        forms=[request.get("form") for request in requests],
        keep=keep,
    )
