"""Answers without a conversation: a probability for every option of every item.

For a language model it is the probability that the option comes next; for an NLI classifier, the
probability that a sentence made from the option follows. A chat endpoint that gives the
log-probabilities of its likeliest first tokens (``logprobs``, ``top_logprobs``) is asked for the
options' labels; a label that is not among the 20 likeliest tokens gets the probability of the last
of these. ``mass`` is the probability of all labels seen, averaged over the orders of options;
``labels_seen`` is the number of labels seen, in the order with the fewest. An answer is the most
probable option, a randomly drawn option, or the mean of all options. An endpoint's reply does not
count as an answer if the unseen labels could have more than a twentieth of the labels' probability
(status ``unseen_labels``), if fewer than a tenth of its replies would begin with a label
(``little_mass``), or if, with ``"argmax"``, its most probable options are tied after averaging over
all orders, as for an endpoint that prefers a label whatever its meaning (``tied``).
``choose="none"`` always returns the probabilities. The questionnaire's own system text, if it has
one, replaces the role ``"default"`` for an endpoint.

Conditions
----------
For both kinds of respondents: ``choose``, which is ``"argmax"`` for the most probable option (the
first of equally probable options), ``"draw"`` for an option drawn with ``seed`` in each of ``runs``
(all respondents share one random stream), ``"expected"`` for the mean of the values weighted by
their probabilities, ``"none"`` for the probabilities themselves, one row per option; ``baseline``,
a sentence without content to replace the item: each option's score is divided by its baseline
score, which removes a preference for the option's words, label or place that does not depend on the
item.

For language models: ``role``, ``wording`` and ``labels`` as in
:func:`psychometrics.modes.messages.messages`, with letters in place of numeric labels if options
that are numbers change their places; ``permutations``, the orders of the options shown,
``"given"``, ``"reversed"`` or ``"cyclic"`` (each option is at every place once); ``score``, the
text that is scored as the reply: the option's ``"label"``, its ``"text"``, or ``"text_mean"``, the
mean over the text's tokens, which does not penalise long texts. With ``wording="voice"`` no
question is asked: a text begins with the statement and continues with a sentence for each option,
without the chat template. A ``persona``, sentences in the first person, then precedes the statement
and the ``baseline``. For an endpoint, labels have one character, and ``endpoint`` works as in
mode chat.

For NLI classifiers: ``wording``, a sentence with ``{label}`` for the option, by default a sentence
that fits the label; ``score``, the probability of ``"entailment"``, or ``"contrast"``, entailment
over entailment and contradiction; ``persona``, which changes the question: the persona is the
premise, the item the hypothesis, and the answer is the persona's own. With :math:`p = (1 + P_e -
P_c) / 2` the options have the probabilities of a binomial distribution over their ranks. This rule
is the project's own and not from the papers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, InstanceOf, NonNegativeInt

from ..checks import check_choice
from ..endpoints.endpoint import Endpoint
from ..exceptions import ParameterError, naming_extras
from ..files import digest_text
from ..questionnaires import Questionnaire
from ..questionnaires.answers import tidy
from ..store import key_of
from .messages import Labels, as_filed
from .mode import Asking, Conditions, Identity, Mode, Runs
from .nli import NLI, NLIRespondent
from .option_scorers import load_scorer
from .option_table import _normalise_logs, _OptionTable
from .places import _find_endpoint_error, _identify_at_endpoint, model_here
from .prompting import _check_finite

# Version of these files' treatment of answers; part of the fingerprint, so raise it with them.
_HANDLING = "options-1"
_SCORES_OF_LOGITS = ("label", "text", "text_mean")
_SENTENCE = Annotated[str, Field(pattern=r"\S")] | None
# Least total probability of an endpoint's labels that makes an answer.
_LEAST_MASS = 0.1
# Largest share of all labels' probability that unseen labels may have.
_MOST_UNSEEN = 0.05


class _OptionsConditions(Conditions):
    """The conditions of mode options: prompts, scores, the choice of an option, the endpoint."""

    role: Any = "default"
    wording: Any = None
    labels: Labels = "numeric"
    permutations: Literal["given", "reversed", "cyclic"] = "cyclic"
    score: Any = None
    persona: _SENTENCE = None
    baseline: _SENTENCE = None
    choose: Literal["argmax", "draw", "expected", "none"] = "argmax"
    runs: Runs = 1
    seed: NonNegativeInt = 0
    log: bool = False
    endpoint: InstanceOf[Endpoint] | None = None


class Options(Mode):
    """Models that give every option of an item a probability."""

    conditions_type = _OptionsConditions
    sends = "messages"
    takes_populations = True
    needs_options = True

    def complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return all conditions, with an endpoint's settings gathered into one condition."""
        return super().complete(Endpoint.gathered(settings))

    def identify(
        self, respondent: str | Path | NLIRespondent, dtype: str | None = None, **conditions: Any
    ) -> Identity:
        """Return the identity of a respondent of any kind; refuse conditions that do not fit.

        A classifier answers by entailment, a causal or an encoder-decoder model by its logits,
        which are computed in float32 unless ``dtype`` says otherwise; an ONNX file answers in its
        own precision.
        """
        by = "entailment"

        if isinstance(respondent, str | Path):
            with naming_extras():
                source = None if conditions["endpoint"] else model_here(respondent)

            if source is None:
                _complete_conditions("endpoint", conditions)
                identity = _identify_at_endpoint(respondent, conditions["endpoint"], self.name)
                # The last text, once a condition, is still a part of the key.
                fingerprint = key_of("options-endpoint-1", identity.respondent_id, "")
                return replace(identity, by="endpoint", fingerprint=fingerprint)

            if source.kind != "embedded":  # an embedded member has no config.json of its own
                kinds = " ".join(source.config.get("architectures") or [])
                if "ForSequenceClassification" not in kinds:
                    by = "logits"
                    if source.kind != "onnx":  # whose precision is that of its weights
                        dtype = dtype or "float32"

        identity = NLI("nli").identify(respondent, dtype)
        _complete_conditions(by, conditions)
        fingerprint = digest_text(identity.fingerprint, _HANDLING, by)
        return replace(identity, mode=self.name, by=by, fingerprint=fingerprint)

    def check(
        self, questionnaire: Questionnaire, identity: Identity, conditions: dict[str, Any]
    ) -> None:
        """Refuse a role, a wording or labels that the prompts cannot contain."""
        super().check(questionnaire, identity, conditions)
        if identity.by != "entailment":
            item = questionnaire.items[0]
            order = tuple(range(len(questionnaire.choices(item))))
            complete = _complete_conditions(identity.by, as_filed(questionnaire, conditions))
            _OptionTable(questionnaire, complete, identity.by).write_prompt(item, order)

    def preview(self, questionnaire: Questionnaire, conditions: dict[str, Any]) -> pd.DataFrame:
        """Return the messages about each item, for each order of its options.

        These are the messages to an endpoint if the environment or a condition names one, or else
        the messages to a local language model. NLI classifiers get different sentences.

        Returns
        -------
        DataFrame
            A row for each message: ``request`` (from 1), ``items``, ``permutation``, ``role``
            (``text`` for a text to continue) and ``content``.
        """
        conditions = as_filed(questionnaire, self.complete(conditions))
        has_endpoint = conditions["endpoint"] or _find_endpoint_error() is None
        by = "endpoint" if has_endpoint else "logits"
        conditions = _complete_conditions(by, conditions)
        replies = _OptionTable(questionnaire, conditions, by).list_replies()
        prompts = replies.drop_duplicates("prompt")
        rows = []
        for number, row in enumerate(prompts.itertuples(), start=1):
            request = {"request": number, "items": row.item_id, "permutation": row.permutation}
            roles = ("system", "text" if conditions["wording"] == "voice" else "user")
            for role, content in zip(roles, row.prompt, strict=True):
                if content:
                    rows.append(request | {"role": role, "content": content})

        return pd.DataFrame(rows)

    def open(self, respondent: Any, identity: Identity, **conditions: Any) -> Any:
        """Return the respondent, which is loaded at its first question and then stays loaded."""
        if identity.by == "endpoint":
            return None
        if identity.by == "entailment":
            return NLI("nli").open(respondent, identity)
        return self._when_asked(lambda: load_scorer(respondent, identity))

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Ask for the probability of every option of every item.

        Returns
        -------
        DataFrame
            ``respondent_id, questionnaire, mode, run, item_id, value, status``, ``probability`` (of
            the chosen option; missing with ``"expected"``), for an endpoint ``mass`` and
            ``labels_seen``, then ``by`` and the conditions. With ``choose="none"``, and with
            ``"expected"`` for a questionnaire with categories, whose values are names, one row per
            option with its ``value`` and ``probability``, ``option`` (number in the questionnaire,
            from 1) and ``label``; for logits one row per option and ``permutation``, with the
            ``position`` shown and its ``log_probability``, which :func:`pooled` averages.

        References
        ----------
        The description of the question_llm library (third document), its local HuggingFace module.
        """
        identity = asking.identity
        conditions = asking.conditions
        if identity.by != "entailment":
            conditions = as_filed(questionnaire, conditions)

        conditions = _complete_conditions(identity.by, conditions)
        endpoint = conditions.pop("endpoint", None) or Endpoint()
        choose = conditions["choose"]
        asking = asking._replace(conditions=conditions)
        table = _OptionTable(questionnaire, conditions, identity.by)
        shares, statuses = table.score(asking, endpoint)
        sent = shares.pop("sent").groupby(shares["item_id"])
        seen = None

        if identity.by == "endpoint":
            shares, statuses, seen = _select_usable(shares, statuses, choose)

        _check_finite(shares["probability"], identity)
        if identity.by != "entailment" and choose != "none":
            shares = pooled(shares).assign(run=1, status="ok")

        if choose == "none" or (choose == "expected" and questionnaire.categories):
            answers = tidy(shares, questionnaire)
        else:
            answers = _choose_options(shares, statuses, questionnaire, identity, conditions)

        if seen is not None and choose != "none":
            answers = answers.join(seen, on="item_id")

        if conditions["log"]:
            texts = sent.agg(lambda prompts: json.dumps([*prompts.unique()], ensure_ascii=False))
            answers["sent"] = answers["item_id"].map(texts)

        hidden = ["runs", "seed", "log"]
        columns = {name: value for name, value in conditions.items() if name not in hidden}
        return answers.assign(by=identity.by, **columns)


def pooled(shares: pd.DataFrame) -> pd.DataFrame:
    """Average log-probabilities over the permutations of options shown to a language model.

    If the model adds a constant to the log-probability of a place, each option receives it once
    over all cyclic shifts, so the constant cancels out exactly.

    Parameters
    ----------
    shares : DataFrame
        The result of ``ask(..., mode="options", choose="none")``.

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
    out["probability"] = _normalise_logs(out["log"], [out["respondent_id"], out["item_id"]])
    out = out.sort_values(["respondent_id", "order", "option"], kind="stable", ignore_index=True)

    return out.drop(columns=["log", "order"])


def _choose_options(
    shares: pd.DataFrame,
    statuses: dict[str, str],
    questionnaire: Questionnaire,
    identity: Identity,
    conditions: dict[str, Any],
) -> pd.DataFrame:
    """Turn the probabilities of options into answers, in each run and in item order."""
    choose = conditions["choose"]
    rng = np.random.default_rng(conditions["seed"])
    if identity.by == "endpoint" and choose == "argmax":
        # Items whose most probable options are tied.
        highest = shares.groupby("item_id", sort=False)["probability"].transform("max")
        is_highest = np.isclose(shares["probability"], highest, rtol=1e-9, atol=0)
        counts = shares.loc[is_highest, "item_id"].value_counts()
        statuses = statuses | dict.fromkeys(counts.index[counts > 1], "tied")

    options = dict(list(shares.groupby("item_id", sort=False)))
    who = {"respondent_id": identity.respondent_id, "mode": "options"}
    rows = []
    for run in range(1, conditions["runs"] + 1):
        for item in questionnaire.items:
            row = who | {"run": run, "item_id": item.id, "status": "ok"}
            row |= {"value": np.nan, "probability": np.nan}
            if item.id in statuses:
                rows.append(row | {"status": statuses[item.id]})
            elif item.id in options:
                p = options[item.id]["probability"].to_numpy(dtype=float)
                values = options[item.id]["value"].to_numpy(dtype=float)
                if choose == "expected":
                    row["value"] = float(p @ values)
                else:
                    is_drawn = choose == "draw"
                    place = rng.choice(len(p), p=p / p.sum()) if is_drawn else int(p.argmax())
                    row |= {"value": values[place], "probability": p[place]}

                rows.append(row)

    return tidy(rows, questionnaire)


def _complete_conditions(by: str | None, conditions: dict[str, Any]) -> dict[str, Any]:
    """Return the conditions for a kind of respondent, with the defaults for this kind."""
    complete = dict(conditions)
    if by != "endpoint" and complete.pop("endpoint") is not None:
        raise ParameterError("endpoint is only for models behind one: leave it out.")

    wording = complete["wording"]
    has_persona = complete["persona"] is not None
    if by == "entailment":
        for name in ("role", "labels", "permutations"):
            if complete.pop(name) != Options.conditions[name]:
                raise ParameterError(f"{name} is a condition of a language model: leave it out.")

        scores: tuple[str, ...] = ("entailment", "contrast")
        complete |= {"wording": wording or "sentence", "score": complete["score"] or "entailment"}
        if wording not in (None, "sentence") and "{label}" not in str(wording):
            raise ParameterError(f"wording must have {{label}} in it, got {wording!r}.")
        if has_persona and (complete["baseline"] or complete["wording"] != "sentence"):
            raise ParameterError("A persona does not go with baseline or wording: drop them.")
    else:
        is_voice = wording == "voice"
        scores = ("label",) if by == "endpoint" else _SCORES_OF_LOGITS
        usual = "text" if is_voice else "label"
        complete |= {"wording": wording or "v1", "score": complete["score"] or usual}
        if is_voice and complete["score"] == "label":
            raise ParameterError("A voice shows no labels: use score='text' or 'text_mean'.")
        if has_persona and not is_voice:
            raise ParameterError("A persona needs wording='voice': set it, or use role.")

    check_choice(scores, score=complete["score"])
    return complete


def _select_usable(
    shares: pd.DataFrame, statuses: dict[str, str], choose: str
) -> tuple[pd.DataFrame, dict[str, str], pd.DataFrame]:
    """Separate items for which an endpoint shows enough labels from the other items.

    Returns
    -------
    DataFrame
        The options of the usable items.
    dict of str to str
        The statuses of the other items.
    DataFrame
        ``mass`` and ``labels_seen`` of all items with a reply.
    """
    replied = shares[~shares["item_id"].isin(statuses)]
    by_item = replied.groupby("item_id", sort=False)
    seen = by_item.agg(mass=("mass", "mean"), labels_seen=("labels_seen", "min"))
    unseen = by_item["unseen"].mean()

    if choose != "none":
        little = dict.fromkeys(seen.index[seen["mass"] < _LEAST_MASS], "little_mass")
        hidden = dict.fromkeys(unseen.index[unseen > _MOST_UNSEEN], "unseen_labels")
        statuses = little | hidden | statuses

    usable = replied[~replied["item_id"].isin(statuses)]
    return usable.drop(columns="unseen").reset_index(drop=True), statuses, seen
