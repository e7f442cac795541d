"""Chat with a model on this machine: what :mod:`.chat` does over HTTP, done here in batches."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ..asking.store import StoredAnswers, key_of
from ..exceptions import RespondentError
from ..modes import generation
from ..modes.messages import caesar, option_labels
from ..questionnaires import Questionnaire
from .loading import load_model, resolve_device, resolve_dtype, to_device
from .sources import Source, digest_text, find

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..asking.progress import Progress

A_STATEMENT, BEFORE, A_THOUGHT = 16, 32, 512
"""Tokens that a reply may have where ``max_tokens`` is None."""


def found_here(respondent: str | Path, may_be_on_hub: bool) -> Source | None:
    """A model on this machine, or None where the name is an endpoint's to know.

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


def identity_of(source: Source, dtype: str | None) -> dict:
    """Who answers; the template is part of what determines an answer.

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
    template = source.folder / "chat_template.jinja" if source.folder else None
    written = template.read_text("utf-8") if template and template.is_file() else ""
    if source.kind == "packed":  # its digest covers the template that is unpacked from it
        written = ""
    parts = "chat-here-1", generation.HANDLING, source.digest, dtype, written
    return {
        "respondent_id": source.name,
        "source": source.kind,
        "model": source.model,
        "revision": source.revision,
        "mode": "chat",
        "dtype": dtype,
        "fingerprint": digest_text(*parts),
    }


class LocalModel:
    """A model that is loaded at its first question and kept for all questionnaires."""

    def __init__(self, respondent: str | Path, dtype: str) -> None:
        self.respondent, self.dtype, self.loaded = respondent, dtype, None

    def replies(self, *args: object, **options: object) -> list[dict]:
        """As :func:`psychometrics.modes.generation.replies` without the model."""
        if self.loaded is None:
            source = find(self.respondent)
            what = "a causal language model, which can reply"
            model, tokenizer = load_model(source, "causal", what=what)
            tokenizer.name_or_path = source.name
            self.loaded = to_device(model, resolve_device(None), self.dtype, source.name), tokenizer
        return generation.replies(*self.loaded, *args, **options)


def rows_of(
    talks: list[tuple[dict, Generator]],
    questionnaire: Questionnaire,
    model: LocalModel,
    identity: dict,
    kept: StoredAnswers,
    how: dict,
    bar: Progress,
) -> list[dict]:
    """Hold all conversations to their ends, one reply of each at a time, keeping each at once.

    Parameters
    ----------
    talks : list of (dict, generator)
        Batches and what :func:`psychometrics.modes.conversations.conversation` gives for each.
    questionnaire, model, identity, kept, how, bar
        As in :func:`psychometrics.modes.chat.Chat.answer_all`.
    """
    known = kept.rows[["reply", "finish_reason"]].to_dict("index") if len(kept) else {}
    temperature = 1.0 if how["temperature"] is None else float(how["temperature"])
    rows, cut = [], {}
    turns = [(batch, talk, *next(talk), False) for batch, talk in talks]
    while turns:
        asked = [_request(turn, questionnaire, identity, how, temperature) for turn in turns]
        new = {key: (about, ask) for key, about, ask in asked if key not in known}
        # Those of one length together, as a reply's length is a matter of its own request.
        for length in sorted({ask["max_tokens"] for _, ask in new.values()}):
            _generate(
                {k: v for k, v in new.items() if v[1]["max_tokens"] == length},
                model, kept, known, temperature, length,
            )  # fmt: skip
        left = []
        for (batch, talk, _, about, sent), (key, _, ask) in zip(turns, asked, strict=True):
            reply, sent = known[key], sent or key in new
            if reply["finish_reason"] == "length":
                about["cut"] = True
                cut[key] = ask["max_tokens"]
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


def _request(turn, questionnaire, identity, how, temperature) -> tuple[str, dict, dict]:
    """A turn's key, what it is about, and all that its reply follows from."""
    _, _, prompt, about, _ = turn
    count = len(about["items"])
    thought = A_THOUGHT if how["think"] else 0
    request = {
        "model": identity["model"],
        "temperature": temperature,
        "max_tokens": how["max_tokens"] or A_STATEMENT * count + BEFORE + thought,
        "messages": prompt,
    }
    if temperature:
        request["seed"] = how["seed"]
    if how["constrained"]:
        request["form"] = _form(questionnaire, about["items"], how)
    run = str(about["run"]), str(about["attempt"])
    key = key_of(identity["fingerprint"], json.dumps(request, sort_keys=True), *run)
    return key, about, request


def _form(questionnaire: Questionnaire, items: list[str], how: dict) -> list[list[str]]:
    """Lines of numbers and labels: the only thing that a constrained reply can be."""
    form = []
    for number, item in enumerate(items, start=1):
        options = questionnaire.choices(questionnaire.item(item))
        start = "" if number == 1 else "\n"
        labels = option_labels(options, how["labels"])
        form += [[f"{start}{number}:"], [f" {label}" for label in labels]]
    return [[caesar(text, how["cipher"]) for text in part] for part in form]


def _generate(
    new: dict, model: LocalModel, kept: StoredAnswers, known: dict, temperature, length
) -> None:
    keys, began = list(new), [time.perf_counter()]

    def keep(place: int, found: dict) -> None:
        about, request = new[keys[place]]
        row = {"run": about["run"], "attempt": about["attempt"], "items": " ".join(about["items"])}
        row |= {"request": json.dumps(request, sort_keys=True), "reply": found["reply"]}
        row |= {"finish_reason": found["finish_reason"]}
        row |= {"usage": json.dumps({"completion_tokens": found["tokens"]})}
        took, began[0] = time.perf_counter() - began[0], time.perf_counter()
        kept.add(pd.DataFrame([row], index=pd.Index([keys[place]], name="key")), seconds=took)
        known[keys[place]] = {name: row[name] for name in ("reply", "finish_reason")}

    requests = [request for _, request in new.values()]
    model.replies(
        [request["messages"] for request in requests],
        temperature,
        length,
        # By what is asked and in which run, so that it does not matter who else is asked.
        seeds=[int(key[:15], 16) for key in keys],
        forms=[request.get("form") for request in requests],
        keep=keep,
    )
