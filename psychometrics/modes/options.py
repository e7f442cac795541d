"""Answers without a conversation: a probability for every option of every item.

For a language model it is the probability that the option comes next; for an NLI classifier, that a
sentence made from the option follows. A chat endpoint that gives the log-probabilities of its
likeliest first tokens (``logprobs``, ``top_logprobs``) is asked for those of the options' labels; a
label that is not among the 20 likeliest counts as the last of them. ``mass`` is the probability of
all labels that are, the mean over the orders of options, and ``labels_seen`` how many are, in the
order with the fewest. An answer is the most probable option, a drawn one, or the mean of all. An
endpoint's reply is no answer if the labels that are not seen could have more than a twentieth of
the labels' probability (status ``unseen_labels``), if fewer than a tenth of its replies would begin
with a label (``little_mass``), or if its most probable options are tied after the average over all
orders, as they are where it likes a label whatever it stands for (``tied``; with ``"argmax"``).
``choose="none"`` returns the probabilities all the same. The questionnaire's own system text, if it
has one, goes to an endpoint in the place of the role ``"default"``.

Conditions
----------
Of both kinds of respondent: ``choose``, ``"argmax"`` for the most probable option (the first of
equals), ``"draw"`` for one drawn with ``seed`` in each of ``runs``, ``"expected"`` for the mean of
the values weighted by their probabilities, ``"none"`` for the probabilities themselves, one row per
option (every respondent is drawn with the same stream); ``baseline``, a sentence without content in
the item's place: each option's score is divided by its score there, which takes away a liking for
the option's words, label or place whatever the item.

Of language models: ``role``, ``wording`` and ``labels`` as in
:func:`psychometrics.modes.messages.messages`; ``permutations``, the orders of the options shown,
``"given"``, ``"reversed"`` or ``"cyclic"`` (each option stands at every place once); ``score``,
what is scored as the reply: the option's ``"label"``, its
``"text"``, or ``"text_mean"``, the mean over the text's tokens, which does not put long texts at a
disadvantage. ``wording="voice"`` asks nothing: the statement is the beginning of a text, which goes
on with a sentence for each option, and the chat template is left out. A ``persona``,
sentences in the first person, then stands before the statement, and before that of ``baseline``.
An endpoint shows labels of one character each, and takes ``endpoint``, ``body`` and ``raw`` as in
mode chat: with ``raw`` it goes on from a text that ends in *Answer:*, as a base model here does;
``body={"top_logprobs": 5}`` asks for so many tokens, where it does not give 20.

Of NLI classifiers: ``wording``, a sentence with ``{label}`` for the option, by default one
that fits the label; ``score``, the probability of ``"entailment"``, or ``"contrast"``,
entailment over entailment and contradiction; ``persona``, which makes it another question: it is
the premise, the item is the hypothesis, and the answer is where the persona would stand. With
:math:`p = (1 + P_e - P_c) / 2` the options have the probabilities of a binomial distribution over
their ranks. That rule is this project's, not the papers'.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import torch
from pydantic import Field, InstanceOf, NonNegativeInt
from scipy.stats import binom

from ..checks import check_kinds, check_three
from ..endpoints.endpoint import Endpoint
from ..exceptions import ParameterError, RespondentError
from ..models.chat_templates import fill_template
from ..models.loading import check_length, load_config, load_model, resolve_device, to_device
from ..models.sources import digest_text, find
from ..questionnaires import Questionnaire
from ..questionnaires.answers import tidy
from ..store import StoredAnswers, key_of
from .chat import first_tokens, model_here
from .messages import LABELS, as_filed, messages, option_labels, system_for_choice
from .mode import Asking, Conditions, Mode, Runs
from .nli import NLI, PROBABILITIES, NLIRespondent

# Version of all that this file does to an answer; part of the fingerprint, so raise it with it.
_HANDLING = "options-1"
_SCORES = {"logits": ("label", "text", "text_mean"), "entailment": ("entailment", "contrast")}
_SENTENCE = Annotated[str, Field(pattern=r"\S")] | None
_ONLY_OF_LOGITS = ("role", "labels", "permutations")
_BATCH = 16
# Least probability of an endpoint's labels together that makes an answer.
_LEAST_MASS = 0.1
# Most that labels which an endpoint does not show may have of all labels' probability.
_MOST_UNSEEN = 0.05
# Fewest tokens at which it pays to read the common beginning of a batch by itself.
_LEAST_SHARED = 32


class _OptionsConditions(Conditions):
    """What is shown and scored, how an option is chosen, and where an endpoint is."""

    role: Any = "default"
    wording: Any = None
    labels: Literal[LABELS] = "numeric"
    permutations: Literal["given", "reversed", "cyclic"] = "cyclic"
    score: Any = None
    persona: _SENTENCE = None
    baseline: _SENTENCE = None
    choose: Literal["argmax", "draw", "expected", "none"] = "argmax"
    runs: Runs = 1
    seed: NonNegativeInt = 0
    log: bool = False
    endpoint: InstanceOf[Endpoint] | None = None
    body: str | None = None
    raw: bool = False


class Options(Mode):
    """Models that give every option of an item a probability."""

    conditions_type = _OptionsConditions
    sends = "messages"
    takes_populations = True
    needs_options = True

    def complete(self, given: dict) -> dict:
        """Return all conditions; the settings of an endpoint are gathered."""
        return super().complete(Endpoint.gathered(given))

    def identify(
        self, respondent: str | Path | NLIRespondent, dtype: str | None = None, **conditions: object
    ) -> dict:
        """Say who answers, by logits or by entailment, and refuse conditions that do not fit.

        A classifier answers by entailment, a causal or an encoder-decoder model by its logits. The
        latter are computed in float32 unless ``dtype`` says otherwise.

        Returns
        -------
        dict
            As of every mode, and ``by``, which is ``"logits"`` or ``"entailment"``.
        """
        by = "entailment"

        if not hasattr(respondent, "answer"):
            source = None if conditions["endpoint"] else model_here(respondent)
            if source is None:
                return self._endpoint(str(respondent), conditions)

            if source.kind != "embedded":
                kinds = map(str, source.config.get("architectures") or [])
                if not any(kind.endswith("ForSequenceClassification") for kind in kinds):
                    by = "logits"
                    dtype = dtype or "float32"

        who = NLI("nli").identify(respondent, dtype) | {"by": by, "mode": "options"}
        _check_conditions(who, conditions)
        return who | {"fingerprint": digest_text(who["fingerprint"], _HANDLING, by)}

    def _endpoint(self, model: str, conditions: dict) -> dict:
        """Say which model behind an endpoint answers."""
        endpoint = (conditions["endpoint"] or Endpoint()).resolved()
        name = f"{endpoint.name}/{model}" if endpoint.name else model
        digest = key_of("options-endpoint-1", name, conditions["body"] or "")
        who = self._who(name, "endpoint", digest, model) | {"by": "endpoint"}
        _check_conditions(who, conditions)
        return who

    def check(self, questionnaire: Questionnaire, identity: dict, conditions: dict) -> None:
        """Refuse a role, a wording or labels that the prompts cannot have."""
        super().check(questionnaire, identity, conditions)
        item = questionnaire.items[0]
        order = tuple(range(len(questionnaire.choices(item))))
        if identity["by"] != "entailment":
            how = _check_conditions(identity, as_filed(questionnaire, conditions))
            _prompt(questionnaire, item, how, order)

    def preview(self, questionnaire: Questionnaire, conditions: dict) -> pd.DataFrame:
        """Return the messages about each item, in each order of its options.

        They are those to an endpoint where the environment or a condition names one, else those to
        a language model on this machine; NLI classifiers are asked by other sentences.

        Returns
        -------
        DataFrame
            A row for each message: ``request`` (from 1), ``items``, ``permutation``, ``role``
            (``text`` of what a model goes on from) and ``content``.
        """
        given = self.complete(conditions)
        by = "logits"

        if given["endpoint"] or given["body"] or given["raw"] or _has_endpoint():
            by = "endpoint"

        how = _check_conditions({"by": by}, as_filed(questionnaire, given))
        build = _endpoint_replies if by == "endpoint" else _replies
        asked = build(questionnaire, how).drop_duplicates("prompt")
        is_text = how["wording"] == "voice" or how.get("raw")
        rows = []
        for number, row in enumerate(asked.itertuples(), start=1):
            request = {"request": number, "items": row.item_id, "permutation": row.permutation}
            roles = ("system", "text" if is_text else "user")
            for role, content in zip(roles, row.prompt, strict=True):
                if content:
                    rows.append(request | {"role": role, "content": content})

        return pd.DataFrame(rows)

    def open(self, respondent: object, identity: dict, **conditions: object) -> object:
        """Return the respondent, which is loaded at its first question and then kept."""
        if identity["by"] == "endpoint":
            return None
        if identity["by"] == "entailment":
            return NLI("nli").open(respondent, identity)
        return self._when_asked(lambda: _Scorer(respondent, identity["dtype"]))

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Ask for the probability of every option of every item.

        Returns
        -------
        DataFrame
            ``respondent_id, questionnaire, mode, run, item_id, value, status``, ``probability`` (of
            the option chosen; missing with ``"expected"``), of an endpoint ``mass`` and
            ``labels_seen``, then ``by`` and the conditions. With
            ``choose="none"``, and of a questionnaire with categories, whose values are names, with
            ``"expected"``, one row per option, its ``value`` and ``probability``, ``option``
            (place in the questionnaire, from 1) and ``label``; of logits once per ``permutation``,
            with the ``position`` where it was shown and its ``log_probability``, which
            :func:`pooled` averages.

        References
        ----------
        The question_llm library's description (third document), the local HuggingFace module.
        """
        identity = asking.identity
        how = asking.conditions
        by_logits = identity["by"] != "entailment"
        how = _check_conditions(identity, as_filed(questionnaire, how) if by_logits else how)
        endpoint = how.pop("endpoint", None)
        who = {"respondent_id": identity["respondent_id"], "mode": "options", "run": 1}
        manifest = {**identity, "device": str(resolve_device(None)), **how}
        ask = _by_logits if by_logits else _by_entailment
        asked = "options", questionnaire.id, who["respondent_id"], manifest
        left: dict[str, str] = {}
        if identity["by"] == "endpoint":
            shares, left = _by_endpoint(questionnaire, asking, how, endpoint or Endpoint())
        else:
            with StoredAnswers(asking.store, *asked) as stored:
                shares = ask(questionnaire, asking, stored, how)

        shares = shares.assign(**who, status="ok", questionnaire=questionnaire.id)
        sent = shares.pop("sent").groupby(shares["item_id"])
        seen = None

        if identity["by"] == "endpoint":
            shares, left, seen = _usable(shares, left, how["choose"])

        weighed = how["choose"] == "expected" and questionnaire.categories
        if by_logits and how["choose"] != "none":
            shares = pooled(shares).assign(run=1, status="ok")

        if seen is not None and how["choose"] == "argmax":
            tied = _tied(shares)
            left |= dict.fromkeys(tied, "tied")
            shares = shares[~shares["item_id"].isin(tied)]

        if weighed or how["choose"] == "none":
            answers = tidy(shares, questionnaire)
        else:
            answers = _choose(shares, questionnaire, how["choose"], how["runs"], how["seed"])
            answers = _with_unanswered(answers, left, questionnaire, who, how["runs"])

        if seen is not None and how["choose"] != "none":
            answers = answers.join(seen, on="item_id")

        if how["log"]:
            texts = sent.agg(lambda given: json.dumps([*given.unique()], ensure_ascii=False))
            answers["sent"] = answers["item_id"].map(texts)

        off = ("runs", "seed", "log", *(name for name in ("body", "raw") if not how.get(name)))
        shown = {k: v for k, v in how.items() if k not in off}
        return answers.assign(by=identity["by"], **shown)


def _has_endpoint() -> bool:
    """Return whether the environment names an endpoint."""
    try:
        Endpoint().resolved()
    except RespondentError:
        return False
    return True


def _option_sentence(label: str) -> str:
    """A response option as a sentence in the first person, to follow a statement.

    Examples
    --------
    >>> _option_sentence("very inaccurate")
    'As a description of me, this is very inaccurate.'
    >>> _option_sentence("Strongly agree")
    'I strongly agree with this.'
    >>> _option_sentence("yes")
    'Yes, this is true of me.'
    >>> _option_sentence("Paris")
    'The answer is: Paris.'
    """
    words = label.strip().rstrip(".")
    low = words.lower()

    if re.search(r"\b(in)?accurate\b|\b(un)?true\b|\bfalse\b|\b(un)?characteristic\b", low):
        return f"As a description of me, this is {low}."
    if re.search(r"\b(dis)?agree\b", low):
        return f"I {low} with this."
    if re.search(r"\b(dis)?like\b", low):
        return f"I {low} this."

    if low in ("yes", "no"):
        return "Yes, this is true of me." if low == "yes" else "No, this is not true of me."
    if re.fullmatch(r"(almost )?(always|never)|often|sometimes|rarely|seldom|usually", low):
        return f"This is {low} true of me."

    return f"The answer is: {words}."


def _voice_sentence(label: str) -> str:
    """A response option as the sentence with which a speaker goes on after a statement of theirs.

    Examples
    --------
    >>> _voice_sentence("very inaccurate")
    'This describes me very inaccurately.'
    >>> _voice_sentence("neither accurate nor inaccurate")
    'This describes me neither accurately nor inaccurately.'
    >>> _voice_sentence("Strongly agree")
    'I strongly agree with this.'
    """
    words = label.strip().rstrip(".").lower()
    if re.search(r"\b(in)?accurate\b", words):
        return f"This describes me {re.sub('accurate', 'accurately', words)}."
    return _option_sentence(label)


def pooled(shares: pd.DataFrame) -> pd.DataFrame:
    """Average the permutations of options shown to a language model, in log-probabilities.

    What the model adds to the log-probability of a place, whatever stands there, is the same
    for all options after all cyclic shifts, and so falls out exactly.

    Parameters
    ----------
    shares : DataFrame
        Of ``ask(..., mode="options", choose="none")``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, item_id, option, label, value, probability``.
    """
    keys = ["respondent_id", "questionnaire", "mode", "item_id", "option", "label", "value"]

    if "log_probability" in shares:
        logs = shares["log_probability"]
    else:
        logs = np.log(shares["probability"].clip(lower=1e-300))

    out = shares.assign(log=logs).groupby(keys, sort=False, as_index=False)["log"].mean()
    out["order"] = out["item_id"].map({k: i for i, k in enumerate(shares["item_id"].unique())})
    by = [out["respondent_id"], out["item_id"]]
    out["probability"] = _shares(_exp_within(out["log"], by), by)
    out = out.sort_values(["respondent_id", "order", "option"], kind="stable", ignore_index=True)

    return out.drop(columns=["log", "order"])


def _orders_of(count: int, permutations: str) -> list[tuple[int, ...]]:
    """Return orders of options: which option stands at which place.

    Examples
    --------
    >>> _orders_of(3, "cyclic")
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    given = tuple(range(count))
    if permutations == "cyclic":
        return [given[i:] + given[:i] for i in range(count)]
    return [given if permutations == "given" else given[::-1]]


def _choose(
    shares: pd.DataFrame, questionnaire: Questionnaire, choose: str, runs: int, seed: int
) -> pd.DataFrame:
    """Turn the probabilities of options into answers."""
    rng = np.random.default_rng(seed)
    rows = []
    groups = list(shares.groupby(["respondent_id", "mode", "item_id"], sort=False))

    for run in range(1, runs + 1):
        for (who, mode, item_id), group in groups:
            p = group["probability"].to_numpy(dtype=float)
            values = group["value"].to_numpy(dtype=float)
            if choose == "expected":
                value = float(p @ values)
                chosen = np.nan
            else:
                pick = int(p.argmax()) if choose == "argmax" else rng.choice(len(p), p=p / p.sum())
                value = values[pick]
                chosen = p[pick]

            rows.append((who, mode, run, item_id, value, "ok", chosen))

    columns = ["respondent_id", "mode", "run", "item_id", "value", "status", "probability"]
    return tidy(pd.DataFrame(rows, columns=columns), questionnaire)


def _check_conditions(identity: dict, conditions: dict) -> dict:
    """Return the conditions that the kind of respondent has, with its own defaults."""
    by = identity["by"]
    how = dict(conditions)
    if by != "endpoint" and any([how.pop(name) for name in ("endpoint", "body", "raw")]):
        raise ParameterError("endpoint, body and raw are for models behind one: leave them out.")

    by = "logits" if by == "endpoint" else by
    if by == "entailment":
        for name in _ONLY_OF_LOGITS:
            if how.pop(name) != Options.conditions[name]:
                raise ParameterError(f"{name} is a condition of a language model: leave it out.")

    voice = by == "logits" and how["wording"] == "voice"
    how["score"] = how["score"] or ("text" if voice else _SCORES[by][0])
    how["wording"] = how["wording"] or ("v1" if by == "logits" else "sentence")
    check_kinds(how, {"score": Literal[("label",) if "endpoint" in how else _SCORES[by]]})

    if by == "logits":
        if voice and how["score"] == "label":
            raise ParameterError("A voice shows no labels: use score='text' or 'text_mean'.")
        if how["persona"] is not None and not voice:
            raise ParameterError("A persona speaks in a voice: use role, or wording='voice'.")
    elif how["wording"] != "sentence" and "{label}" not in str(how["wording"]):
        raise ParameterError(f"wording must have {{label}} in it, got {how['wording']!r}.")
    elif how["persona"] is not None and (how["baseline"] or how["wording"] != "sentence"):
        raise ParameterError("A persona takes neither baseline nor wording: leave them out.")

    return how


def _by_entailment(
    questionnaire: Questionnaire, asking: Asking, stored: StoredAnswers, how: dict
) -> pd.DataFrame:
    """Return options with their probabilities by an NLI classifier."""
    rows = pd.DataFrame(
        [
            (item.id, questionnaire.statement(item), place, option.label, option.value)
            for item in questionnaire.items
            for place, option in enumerate(questionnaire.choices(item), start=1)
        ],
        columns=["item_id", "statement", "option", "label", "value"],
    )
    statements = rows.pop("statement")
    persona = how["persona"]
    baseline = how["baseline"]

    if persona is not None:
        pairs = [(persona, statement) for statement in statements]
    else:
        word = how["wording"]
        sentences = [
            _option_sentence(label) if word == "sentence" else word.replace("{label}", label)
            for label in rows["label"]
        ]
        pairs = list(zip(statements, sentences, strict=True))

        if baseline is not None:
            pairs += [(baseline, sentence) for sentence in sentences]

    rows["sent"] = pairs[: len(rows)]
    keys = {pair: key_of(asking.identity["fingerprint"], *pair) for pair in pairs}
    NLI("nli").ask_missing(asking, keys, stored, len(keys))
    found = stored.rows.loc[[keys[pair] for pair in pairs], list(PROBABILITIES)].to_numpy()
    e, _, c = found.T

    if how["score"] == "contrast" or persona is not None:
        check_three(pd.DataFrame({"contradiction": c}))

    if persona is not None:
        values = rows.groupby("item_id")["value"]
        rank = values.rank(method="first").to_numpy() - 1
        highest = values.transform("size").to_numpy() - 1
        return rows.assign(probability=binom.pmf(rank, highest, (1 + e - c).astype(float) / 2))

    e = e.astype(float)
    c = c.astype(float)
    scores = e if how["score"] == "entailment" else e / (e + c)
    shares = scores[: len(rows)] / (scores[len(rows) :] if baseline is not None else 1.0)
    return rows.assign(probability=_shares(shares, rows["item_id"]))


def _by_logits(
    questionnaire: Questionnaire, asking: Asking, stored: StoredAnswers, how: dict
) -> pd.DataFrame:
    """Return options with their probabilities as a model's next words, per permutation."""
    model = asking.respondent
    bar = asking.bar
    rows = _replies(questionnaire, how)
    rows["key"] = [
        key_of(asking.identity["fingerprint"], how["score"], *prompt, reply)
        for prompt, reply in zip(rows["prompt"], rows["reply"], strict=True)
    ]
    new = rows[[key not in stored for key in rows["key"]]].drop_duplicates("key")
    bar.expect(rows["key"].nunique(), rows["key"].nunique() - len(new))
    groups = [group for _, group in new.groupby("prompt")]  # alike ones together
    for start in range(0, len(groups), _BATCH):
        chunk = groups[start : start + _BATCH]
        asked = [(part["prompt"].iloc[0], list(part["reply"])) for part in chunk]
        found = pd.concat(chunk)
        done = pd.DataFrame({"prompt": ["\n".join(prompt) for prompt in found["prompt"]]})
        done["reply"] = found["reply"].to_list()
        done["log_probability"] = model(asked, how["score"] == "text_mean")
        stored.collect(done, list(found["key"]), len(done))
        bar.update(len(done))

    # Kept as logarithms: probabilities of long texts would be 0.
    logs = stored.rows.loc[rows["key"], "log_probability"]
    rows["log_probability"] = logs.to_numpy(dtype=float)
    return _within_prompts(rows.drop(columns="key"))


def _by_endpoint(
    questionnaire: Questionnaire, asking: Asking, how: dict, endpoint: Endpoint
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return options with the probabilities of their labels, and the status of items without.

    Of an item without a reply, the rows have no probabilities, but what was to be sent.
    """
    rows = _endpoint_replies(questionnaire, how)
    about = rows.drop_duplicates("prompt").set_index("prompt")["item_id"].to_dict()
    asking = asking._replace(conditions=how)
    found = first_tokens(questionnaire, asking, endpoint.resolved(), about)

    statuses = rows["prompt"].map({prompt: one["status"] for prompt, one in found.items()})
    failed = statuses != "ok"
    left = dict(zip(rows.loc[failed, "item_id"], statuses[failed], strict=True))
    labels = rows.groupby("prompt")["reply"].agg(set)
    read = {
        prompt: _label_shares(one["tokens"], labels[prompt])
        for prompt, one in found.items()
        if one["status"] == "ok"
    }
    if read and not any(mass for _, mass, _, _ in read.values()):
        tokens = next(one["tokens"] for one in found.values() if one["status"] == "ok")
        raise RespondentError(
            f"{asking.identity['respondent_id']} begins its reply with none of the labels "
            f"({', '.join(sorted(set(rows['reply'])))}); likeliest are "
            f"{', '.join(map(repr, list(tokens)[:3]))}: use mode chat, or labels=alphabetical."
        )

    numbers = []
    for prompt, reply in zip(rows["prompt"], rows["reply"], strict=True):
        logs, *rest = read.get(prompt, ({}, np.nan, np.nan, np.nan))
        numbers.append((logs.get(reply, np.nan), *rest))

    rows[["log_probability", "mass", "labels_seen", "unseen"]] = np.array(numbers, dtype=float)
    return _within_prompts(rows), left


def _endpoint_replies(questionnaire: Questionnaire, how: dict) -> pd.DataFrame:
    """Return a row for every prompt to an endpoint and label to be looked for."""
    own_system = system_for_choice(questionnaire, how["labels"])
    if how["role"] == "default" and how["wording"] != "file" and own_system:
        how = how | {"role": own_system}

    rows = _replies(questionnaire, how)
    long = [label for label in rows["reply"] if len(label) > 1]
    if long:
        raise ParameterError(f"The label {long[0]} may be several tokens: use labels=alphabetical.")

    if how["raw"]:
        rows["prompt"] = [("", _as_text(prompt)) for prompt in rows["prompt"]]

    return rows


def _label_shares(
    tokens: dict[str, float], labels: set[str]
) -> tuple[dict[str, float], float, int, float]:
    """Return what an endpoint's likeliest tokens say of labels.

    Returns
    -------
    dict of str to float
        Log-probabilities of the labels; of those that are not there, the last token's.
    float
        Probability of the labels that are there.
    int
        How many are there.
    float
        The most that the others can have of the probability of all labels.
    """
    shares = dict.fromkeys(labels, 0.0)

    for token, log in tokens.items():
        label = token.strip()
        if label in shares:  # " 1" and "1" are one label
            shares[label] += np.exp(log)

    mass = sum(shares.values())
    seen = sum(share > 0 for share in shares.values())
    least = min(tokens.values())
    rest = (len(labels) - seen) * np.exp(least)
    logs = {label: np.log(share) if share else least for label, share in shares.items()}

    return logs, mass, seen, rest / (mass + rest) if mass else 1.0


def _usable(
    shares: pd.DataFrame, left: dict[str, str], choose: str
) -> tuple[pd.DataFrame, dict[str, str], pd.DataFrame]:
    """Separate the items whose labels an endpoint shows well enough from the others.

    Returns
    -------
    DataFrame
        The options of these items.
    dict of str to str
        The statuses of the others.
    DataFrame
        ``mass`` and ``labels_seen`` of all items with a reply.
    """
    replied = shares[~shares["item_id"].isin(left)]
    by_item = replied.groupby("item_id", sort=False)
    seen = by_item.agg(mass=("mass", "mean"), labels_seen=("labels_seen", "min"))
    unseen = by_item["unseen"].mean()

    if choose != "none":
        little = dict.fromkeys(seen.index[seen["mass"] < _LEAST_MASS], "little_mass")
        hidden = dict.fromkeys(unseen.index[unseen > _MOST_UNSEEN], "unseen_labels")
        left = little | hidden | left

    usable = replied[~replied["item_id"].isin(left)]
    return usable.drop(columns="unseen").reset_index(drop=True), left, seen


def _tied(shares: pd.DataFrame) -> list[str]:
    """Return the items of which two options are the most probable."""
    probability = shares["probability"]
    highest = probability.groupby(shares["item_id"]).transform("max")
    count = np.isclose(probability, highest, rtol=1e-9, atol=0)
    counts = pd.Series(count, shares.index).groupby(shares["item_id"], sort=False).sum()
    return list(counts.index[counts > 1])


def _with_unanswered(
    answers: pd.DataFrame, left: dict[str, str], questionnaire: Questionnaire, who: dict, runs: int
) -> pd.DataFrame:
    """Add the items without an answer, each with its status, in each run."""
    if not left:
        return answers

    rows = [
        who | {"run": run, "item_id": item, "status": status}
        for run in range(1, runs + 1)
        for item, status in left.items()
    ]
    place = {item.id: number for number, item in enumerate(questionnaire.items)}
    both = pd.concat([answers, pd.DataFrame(rows)]) if len(answers) else pd.DataFrame(rows)
    both = both.assign(place=both["item_id"].map(place)).sort_values(["run", "place"])
    both = both.drop(columns="place")

    for column in ("value", "probability"):
        if column not in both:
            both[column] = np.nan

    return tidy(both, questionnaire)


def _within_prompts(rows: pd.DataFrame) -> pd.DataFrame:
    """Take away the baseline, and make the options' probabilities sum to one for each prompt."""
    is_baseline = rows.pop("is_baseline")
    if is_baseline.any():
        without = rows.loc[is_baseline, "log_probability"].to_numpy()
        rows = rows[~is_baseline].reset_index(drop=True)
        rows["log_probability"] -= without
    by = [rows["item_id"], rows["permutation"]]
    rows["probability"] = _shares(_exp_within(rows["log_probability"], by), by)
    return rows.drop(columns="reply").rename(columns={"prompt": "sent"})


def _replies(questionnaire: Questionnaire, how: dict) -> pd.DataFrame:
    """Return a row for every prompt and reply to be scored."""
    voice = how["wording"] == "voice"
    baseline = how["baseline"]
    bare = questionnaire.model_copy(update={"stem": None})  # a baseline is a whole sentence
    rows = []
    for item in questionnaire.items:
        options = questionnaire.choices(item)
        names = option_labels(options, how["labels"])
        orders = [tuple(range(len(options)))]  # a voice shows no options

        if not voice:
            orders = _orders_of(len(options), how["permutations"])

        for number, order in enumerate(orders, start=1):
            prompts = [_prompt(questionnaire, item, how, order)]
            if baseline is not None:
                empty = item.model_copy(update={"text": baseline})
                prompts.append(_prompt(bare, empty, how, order))

            for place, i in enumerate(order):
                reply = names[place] if how["score"] == "label" else options[i].label
                row = {
                    "item_id": item.id,
                    "permutation": number,
                    "position": place + 1,
                    "option": i + 1,
                    "label": options[i].label,
                    "value": options[i].value,
                    "reply": _voice_sentence(reply) if voice else reply,
                }

                for text in prompts:
                    rows.append(row | {"prompt": text, "is_baseline": text is not prompts[0]})

    return pd.DataFrame(rows)


def _prompt(questionnaire, item, how: dict, order: tuple[int, ...]) -> tuple[str, str]:
    """Return system and user text about an item; of a voice only the text that it goes on from."""
    if how["wording"] == "voice":
        statement = questionnaire.statement(item)
        return "", f"{how['persona']} {statement}" if how["persona"] else statement
    prompt = messages(
        questionnaire, [item], how["role"], how["wording"], labels=how["labels"], orders=[order],
        reply="choice",
    )  # fmt: skip
    texts = [message["content"] for message in prompt]
    return ("", *texts)[-2:]  # a file's own prompt may have no system text


def _as_text(prompt: tuple[str, str]) -> str:
    """Return what a base model goes on from."""
    system, user = prompt
    return f"{system}\n{user}\nAnswer:" if system else user


def _exp_within(logs: pd.Series, by) -> np.ndarray:
    """Return exponentials, scaled within each group so that not all of a group underflow."""
    return np.exp((logs - logs.groupby(by).transform("max")).to_numpy())


def _shares(values: np.ndarray, by: pd.Series | list[pd.Series]) -> np.ndarray:
    """Divide values by the sum of their group."""
    values = pd.Series(np.asarray(values, dtype=float))
    by = [pd.Series(np.asarray(part)) for part in by] if isinstance(by, list) else np.asarray(by)
    return (values / values.groupby(by).transform("sum")).to_numpy()


class _Scorer:
    """A causal or encoder-decoder model that scores replies after prompts."""

    def __init__(self, name_or_path: str | Path, dtype: str) -> None:
        source = find(name_or_path)
        self.decodes = bool(load_config(source).is_encoder_decoder)
        head = "encoder-decoder" if self.decodes else "causal"
        what = "a causal or an encoder-decoder model, which continues a text"
        model, self.tokenizer = load_model(source, head, what=what)
        self.device = resolve_device(None)
        self.model = to_device(model, self.device, dtype, source.name)

    @torch.inference_mode()
    def __call__(
        self, asked: Sequence[tuple[tuple[str, str], list[str]]], mean: bool
    ) -> np.ndarray:
        """Return the log-probability of each reply, summed over its tokens or their mean."""
        sequences = []
        for prompt, replies in asked:
            context, space = self._context(prompt)
            for reply in replies:
                ids = self._tokens(f"{space}{reply}")
                if not ids:
                    raise RespondentError(f"The tokenizer has no tokens for {reply!r}.")

                sequences.append((context, ids))

        steps = self._encoder_decoder(sequences) if self.decodes else self._causal(sequences)
        return np.array([float(logs.mean() if mean else logs.sum()) for logs in steps])

    def _tokens(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def _context(self, prompt: tuple[str, str]) -> tuple[list[int], str]:
        """Return the token ids of what is read, and what stands between it and the reply."""
        system, user = prompt
        voice = not system and not self.decodes  # a text that is continued
        if not voice and getattr(self.tokenizer, "chat_template", None):
            said = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            return self._tokens(fill_template(self.tokenizer, said)), ""

        if self.decodes:
            return self.tokenizer(f"{system}\n{user}\n")["input_ids"], ""
        ids = self._tokens(_as_text(prompt))
        start = self.tokenizer.bos_token_id
        return ([start, *ids] if start is not None else ids), "" if user[-1:].isspace() else " "

    def _causal(self, sequences: list[tuple[list[int], list[int]]]) -> list[torch.Tensor]:
        """Score replies; those of one token share a single pass over their prompt."""
        groups = {}
        for number, (context, ids) in enumerate(sequences):
            groups.setdefault(tuple(context + ids[:-1]), []).append(number)

        read = list(groups)
        scored = {}
        check_length(read, self.model, self.tokenizer)

        for start in range(0, len(read), _BATCH):
            part = read[start : start + _BATCH]
            first = min(len(sequences[number][0]) for row in part for number in groups[row]) - 1
            logits = self._logits_from(part, first)

            for row, tokens in enumerate(part):
                for number in groups[tokens]:
                    context, ids = sequences[number]
                    last = len(context) - 1 - first
                    logs = logits[row, last : last + len(ids)].log_softmax(dim=-1)
                    scored[number] = logs[range(len(ids)), ids]

        return [scored[number] for number in range(len(sequences))]

    def _logits_from(self, rows: list[tuple[int, ...]], first: int) -> torch.Tensor:
        """Return the logits from one place on, (rows, places, V), as the vocabulary is large.

        What all rows begin with is read once: prompts differ in their last line only.
        """
        least = min(rows)
        greatest = max(rows)  # these two differ earliest
        pairs = enumerate(zip(least, greatest, strict=False))
        shared = min(first, next((i for i, (a, b) in pairs if a != b), len(least)))
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=self.device)
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        inputs = {"attention_mask": torch.tensor(mask, device=self.device)}
        past = None

        if shared >= _LEAST_SHARED and len(rows) > 1:
            begun = self.model(input_ids=ids[:1, :shared], use_cache=True)
            past = getattr(begun, "past_key_values", None)  # Mamba and RWKV keep another state

        if hasattr(past, "batch_repeat_interleave"):
            past.batch_repeat_interleave(len(rows))
            inputs |= {"past_key_values": past, "use_cache": True, "input_ids": ids[:, shared:]}
        else:
            inputs["input_ids"] = ids

        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            inputs["logits_to_keep"] = width - first

        return self.model(**inputs).logits[:, first - width :].float()

    def _encoder_decoder(self, sequences: list[tuple[list[int], list[int]]]) -> list[torch.Tensor]:
        scored = []
        start = self.model.config.decoder_start_token_id
        for context, ids in sequences:
            logits = self.model(
                input_ids=torch.tensor([context], device=self.device),
                decoder_input_ids=torch.tensor([[start, *ids[:-1]]], device=self.device),
            ).logits
            scored.append(logits[0].float().log_softmax(dim=-1)[range(len(ids)), ids])
        return scored
