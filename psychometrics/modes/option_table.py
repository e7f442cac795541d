"""The table of options, and three ways to score it: entailment, logits, or an endpoint's tokens.

A row of the table is an option of an item, in the order in which a prompt shows the options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from ..checks import check_three
from ..endpoints.endpoint import Endpoint
from ..exceptions import ParameterError, RespondentError, naming_extras
from ..models.devices import resolve_device
from ..questionnaires import Item, Questionnaire
from ..store import StoredAnswers, key_of
from .messages import _shorten_system, messages, option_labels
from .mode import Asking
from .nli import NLI, PROBABILITIES
from .prompting import _check_finite

if TYPE_CHECKING:
    from .prompting import _Prompt

# Prompts whose replies are scored, and then stored, together.
_PROMPTS = 16


@dataclass(frozen=True)
class _OptionTable:
    """The prompts about a questionnaire's items, and the replies that choose their options.

    For an NLI classifier a prompt is a premise, and a reply a hypothesis. ``by`` is the kind of
    respondent, as in :class:`psychometrics.modes.mode.Identity`.
    """

    questionnaire: Questionnaire
    conditions: dict[str, Any]
    by: str | None

    def list_replies(self) -> pd.DataFrame:
        """Return a row for every combination of a prompt and a reply to score.

        Returns
        -------
        DataFrame
            ``item_id, permutation, position, option, label, value, reply``, the ``prompt`` (system
            and user text, or the premise), and ``is_baseline``.
        """
        baseline = self.conditions["baseline"]
        shows_options = self.by != "entailment" and self.conditions["wording"] != "voice"
        # A baseline is a whole sentence.
        bare = replace(self, questionnaire=self.questionnaire.model_copy(update={"stem": None}))
        rows: list[dict[str, Any]] = []
        for item in self.questionnaire.items:
            options = self.questionnaire.choices(item)
            orders = [tuple(range(len(options)))]
            if shows_options:
                orders = _list_orders(len(options), self.conditions["permutations"])

            for number, order in enumerate(orders, start=1):
                prompts: list[Any] = [self.write_prompt(item, order)]
                if baseline is not None and self.by == "entailment":
                    prompts.append(baseline)
                elif baseline is not None:
                    empty = item.model_copy(update={"text": baseline})
                    prompts.append(bare.write_prompt(empty, order))

                replies = self.write_replies(item, order)
                for place, (i, reply) in enumerate(zip(order, replies, strict=True), start=1):
                    row = {
                        "item_id": item.id,
                        "permutation": number,
                        "position": place,
                        "option": i + 1,
                        "label": options[i].label,
                        "value": options[i].value,
                        "reply": reply,
                    }

                    for text in prompts:
                        rows.append(row | {"prompt": text, "is_baseline": text is not prompts[0]})

        long = [row["reply"] for row in rows if len(row["reply"]) > 1]
        if self.by == "endpoint" and long:
            mend = "use labels=alphabetical"
            raise ParameterError(f"The label {long[0]} may be several tokens: {mend}.")

        return pd.DataFrame(rows)

    def write_replies(self, item: Item, order: tuple[int, ...]) -> list[str]:
        """Return the reply that chooses the option at each place."""
        options = self.questionnaire.choices(item)
        texts = [options[i].label for i in order]
        wording = self.conditions["wording"]
        if self.by == "entailment" and self.conditions["persona"] is not None:
            return [self.questionnaire.statement(item)] * len(texts)  # the persona is the premise
        if self.by == "entailment" and wording != "sentence":
            return [wording.replace("{label}", text) for text in texts]
        if self.by == "entailment":
            return [_write_sentence(text) for text in texts]

        names = option_labels(options, self.conditions["labels"])
        replies = names if self.conditions["score"] == "label" else texts
        return [_write_sentence(text, True) for text in replies] if wording == "voice" else replies

    def write_prompt(self, item: Item, order: tuple[int, ...]) -> Any:
        """Return the premise, or system and user text; for a voice, only the text to continue."""
        persona = self.conditions["persona"]
        if self.by == "entailment":
            return persona or self.questionnaire.statement(item)

        role, wording, labels = (self.conditions[name] for name in ("role", "wording", "labels"))
        if wording == "voice":
            statement = self.questionnaire.statement(item)
            return "", f"{persona} {statement}" if persona else statement

        if self.by == "endpoint" and role == "default" and wording != "file":
            role = _shorten_system(self.questionnaire, labels) or "default"

        look = {"labels": labels, "orders": [order], "reply": "choice"}
        prompt = messages(self.questionnaire, [item], role, wording, **look)
        *system, user = (message["content"] for message in prompt)
        return "".join(system), user  # a file's own prompt may have no system text

    def score(self, asking: Asking, endpoint: Endpoint) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return all options with their probabilities, and the statuses of unanswered items."""
        identity = asking.identity
        name = identity.respondent_id
        rows = self.list_replies()
        statuses: dict[str, str] = {}

        if self.by == "endpoint":
            rows, statuses = self._score_by_endpoint(rows, asking, endpoint)
        else:
            score = self._score_by_logits if self.by == "logits" else self._score_by_entailment
            manifest = {**identity, "device": identity.device, **self.conditions}
            questionnaire = self.questionnaire.id
            with StoredAnswers(asking.store, "options", questionnaire, name, manifest) as stored:
                rows = score(rows, asking, stored)

        who = {"respondent_id": name, "mode": "options", "questionnaire": self.questionnaire.id}
        return rows.assign(run=1, status="ok", **who), statuses

    def _score_by_entailment(
        self, rows: pd.DataFrame, asking: Asking, stored: StoredAnswers
    ) -> pd.DataFrame:
        """Return options with their probabilities from an NLI classifier."""
        rows = rows.sort_values("is_baseline", kind="stable", ignore_index=True)
        pairs: list[_Prompt] = list(zip(rows["prompt"], rows["reply"], strict=True))
        keys = {pair: key_of(asking.identity.fingerprint, *pair) for pair in pairs}
        NLI("nli").ask_missing(asking, keys, stored, len(keys))
        answers = stored.rows.loc[[keys[pair] for pair in pairs], list(PROBABILITIES)].to_numpy()
        e, _, c = answers.T
        count = int((~rows["is_baseline"]).sum())
        rows = rows.loc[: count - 1, ["item_id", "option", "label", "value"]].assign(
            sent=pairs[:count]
        )

        conditions = self.conditions
        has_persona = conditions["persona"] is not None
        if conditions["score"] == "contrast" or has_persona:
            check_three(pd.DataFrame({"contradiction": c}))

        if has_persona:
            values = rows.groupby("item_id")["value"]
            rank = values.rank(method="first").to_numpy() - 1
            highest = values.transform("size").to_numpy() - 1
            return rows.assign(probability=binom.pmf(rank, highest, (1 + e - c).astype(float) / 2))

        e = e.astype(float)
        c = c.astype(float)
        scores = e if conditions["score"] == "entailment" else e / (e + c)
        has_baseline = conditions["baseline"] is not None
        shares = pd.Series(scores[:count] / (scores[count:] if has_baseline else 1.0))
        return rows.assign(probability=shares / shares.groupby(rows["item_id"]).transform("sum"))

    def _score_by_logits(
        self, rows: pd.DataFrame, asking: Asking, stored: StoredAnswers
    ) -> pd.DataFrame:
        """Return each option's probability as the model's next words, for each permutation."""
        model = asking.respondent
        bar = asking.bar
        rows["key"] = [
            key_of(asking.identity.fingerprint, self.conditions["score"], *prompt, reply)
            for prompt, reply in zip(rows["prompt"], rows["reply"], strict=True)
        ]
        new = rows[[key not in stored for key in rows["key"]]].drop_duplicates("key")
        bar.expect(rows["key"].nunique(), rows["key"].nunique() - len(new))
        if new.empty:
            device = ""
        else:  # finding the device imports torch
            device = asking.identity.device or str(resolve_device(None))
            stored.describe(device=device)

        groups = [group for _, group in new.groupby("prompt")]  # prompts of similar length together
        most = 16 * _PROMPTS if device.startswith("cuda") else _PROMPTS
        for start in range(0, len(groups), most):
            batch = groups[start : start + most]
            questions = [(group["prompt"].iloc[0], list(group["reply"])) for group in batch]
            replies = pd.concat(batch)
            scored = pd.DataFrame({"prompt": ["\n".join(prompt) for prompt in replies["prompt"]]})
            scored["reply"] = replies["reply"].to_list()
            scored["log_probability"] = model(questions, self.conditions["score"] == "text_mean")
            _check_finite(scored["log_probability"], asking.identity)
            stored.collect(scored, list(replies["key"]), len(scored))
            bar.update(len(scored))

        # Kept as logarithms, because probabilities of long texts would round to 0.
        logs = stored.rows.loc[rows["key"], "log_probability"]
        rows["log_probability"] = logs.to_numpy(dtype=float)
        return _normalise_prompts(rows.drop(columns="key"))

    def _score_by_endpoint(
        self, rows: pd.DataFrame, asking: Asking, endpoint: Endpoint
    ) -> tuple[pd.DataFrame, dict[str, str]]:
        """Return options with their labels' probabilities, and the statuses of failed items.

        If there is no reply about an item, the item's rows have the prompt but no probabilities. An
        absent label gets the log-probability of the last token. ``mass`` is the probability of the
        labels that are present, ``labels_seen`` their number, and ``unseen`` an upper bound on the
        absent labels' share of the probability of all labels.
        """
        with naming_extras():
            from .chat import _ask_first_tokens

        items = rows.drop_duplicates("prompt").set_index("prompt")["item_id"].to_dict()
        replies = _ask_first_tokens(self.questionnaire, asking, endpoint.resolved(), items)

        unanswered: dict[str, str] = {}
        rows = rows.assign(log_probability=np.nan, mass=np.nan, labels_seen=np.nan, unseen=np.nan)
        for prompt, group in rows.groupby("prompt", sort=False):
            status, tokens = replies[prompt]
            if status != "ok":
                unanswered |= dict.fromkeys(group["item_id"], status)
                continue

            shares = dict.fromkeys(group["reply"], 0.0)
            for token, log in tokens.items():
                label = token.strip()
                if label in shares:  # " 1" and "1" are one label
                    shares[label] += np.exp(log)

            least = min(tokens.values())
            mass = sum(shares.values())
            seen = sum(share > 0 for share in shares.values())
            unseen = (len(shares) - seen) * np.exp(least)
            logs = {label: np.log(share) if share else least for label, share in shares.items()}
            rows.loc[group.index, "log_probability"] = group["reply"].map(logs)
            share_unseen = unseen / (mass + unseen) if mass else 1.0
            rows.loc[group.index, ["mass", "labels_seen", "unseen"]] = mass, seen, share_unseen

        if rows["mass"].max() == 0:
            tokens = next(tokens for _, tokens in replies.values() if tokens)
            raise RespondentError(
                f"{asking.identity.respondent_id} begins its reply with none of the labels "
                f"({', '.join(sorted(set(rows['reply'])))}); the likeliest tokens are "
                f"{', '.join(map(repr, list(tokens)[:3]))}: use mode chat, or labels=alphabetical."
            )

        return _normalise_prompts(rows), unanswered


def _write_sentence(label: str, in_own_voice: bool = False) -> str:
    """Turn an option into a sentence in the first person that can follow a statement.

    With ``in_own_voice`` it continues a speaker's text.

    Examples
    --------
    >>> _write_sentence("very inaccurate")
    'As a description of me, this is very inaccurate.'
    >>> _write_sentence("Strongly agree")
    'I strongly agree with this.'
    >>> _write_sentence("yes")
    'Yes, this is true of me.'
    >>> _write_sentence("Paris")
    'The answer is: Paris.'
    >>> _write_sentence("neither accurate nor inaccurate", in_own_voice=True)
    'This describes me neither accurately nor inaccurately.'
    """
    words = label.strip().rstrip(".")
    low = words.lower()

    if in_own_voice and re.search(r"\b(in)?accurate\b", low):
        return f"This describes me {re.sub('accurate', 'accurately', low)}."
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


def _list_orders(count: int, permutations: str) -> list[tuple[int, ...]]:
    """Return the orders of options; an order lists the option at each place.

    Examples
    --------
    >>> _list_orders(3, "cyclic")
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    order = tuple(range(count))
    if permutations == "cyclic":
        return [order[i:] + order[:i] for i in range(count)]
    return [order if permutations == "given" else order[::-1]]


def _normalise_prompts(rows: pd.DataFrame) -> pd.DataFrame:
    """Subtract the baseline, and normalise the options' probabilities for each prompt."""
    is_baseline = rows.pop("is_baseline")
    if is_baseline.any():
        without = rows.loc[is_baseline, "log_probability"].to_numpy()
        rows = rows[~is_baseline].reset_index(drop=True)
        rows["log_probability"] -= without
    by = [rows["item_id"], rows["permutation"]]
    rows["probability"] = _normalise_logs(rows["log_probability"], by)
    return rows.drop(columns="reply").rename(columns={"prompt": "sent"})


def _normalise_logs(logs: pd.Series, by: list[pd.Series]) -> pd.Series:
    """Turn log-probabilities into probabilities that sum to one within groups.

    Examples
    --------
    >>> _normalise_logs(pd.Series([-1000.0, -1000.0, -3.0]), [pd.Series(["a", "a", "b"])]).tolist()
    [0.5, 0.5, 1.0]
    """
    # Scaled within each group, so that no group underflows as a whole.
    odds = np.exp(logs - logs.groupby(by).transform("max"))
    return odds / odds.groupby(by).transform("sum")
