"""Answers without a conversation: probabilities of options from logits or by entailment.

A language model is asked for the probability of each option as its next words, an NLI classifier
for whether a sentence made from the option follows. Both give a probability for every option of
every item; an answer is the most probable one, is drawn, or is their mean.

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
``"given"``, ``"reversed"``, ``"cyclic"`` (each option stands at every place once), ``"all"``, or so
many drawn with ``seed``; ``score``, what is scored as the reply: the option's ``"label"``, its
``"text"``, or ``"text_mean"``, the mean over the text's tokens, which does not put long texts at a
disadvantage. ``wording="voice"`` asks nothing: the statement is the beginning of a text, which goes
on with :func:`voice_sentence` of each option, and the chat template is left out. A ``persona``,
sentences in the first person, then stands before the statement, and before that of ``baseline``.

Of NLI classifiers: ``wording``, a sentence with ``{label}`` for the option, by default that of
:func:`option_sentence`; ``score``, the probability of ``"entailment"``, or ``"contrast"``,
entailment over entailment and contradiction; ``persona``, which makes it another question: it is
the premise, the item is the hypothesis, and the answer is where the persona would stand. With
:math:`p = (1 + P_e - P_c) / 2` the options have the probabilities of a binomial distribution over
their ranks. That rule is this project's, not the papers'.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..asking.answers import check_numbers, tidy
from ..asking.store import StoredAnswers, key_of, open_answers
from ..exceptions import ParameterError, RespondentError
from ..models.loading import load_config, load_model, resolve_device, to_device
from ..models.sources import digest_text, fetched, find, read_json
from ..questionnaires import Questionnaire
from .messages import messages, option_labels
from .mode import Mode
from .nli import NLI, PROBABILITIES
from .prompting import Buffer

if TYPE_CHECKING:
    import torch

    from ..asking.progress import Progress
    from .nli import NLIRespondent

CONDITIONS = {
    "role": "default",
    "wording": None,
    "labels": "numeric",
    "permutations": "cyclic",
    "score": None,
    "persona": None,
    "baseline": None,
    "choose": "argmax",
    "runs": 1,
    "seed": 0,
}
HANDLING = "options-1"
"""Version of all that this file does to an answer; part of the fingerprint, so raise it with it."""
_CHOICES = ("argmax", "draw", "expected", "none")
_PERMUTATIONS = ("given", "reversed", "cyclic", "all")
_SCORES = {"logits": ("label", "text", "text_mean"), "entailment": ("entailment", "contrast")}
_ONLY = {
    "logits": ("role", "labels", "permutations"),
    "entailment": (),
}
MAX_PERMUTATIONS = 120
BATCH = 16
SHARED = 32
"""Fewest tokens at which it pays to read what all rows of a batch begin with by itself."""


def identify(
    respondent: str | Path | NLIRespondent, dtype: str | None = None, **conditions: object
) -> dict:
    """Say who answers, by logits or by entailment, and refuse conditions that do not go with it.

    Parameters
    ----------
    respondent : str, Path or NLIRespondent
        An embedded member, a folder or a hub id; a classifier is asked by entailment, a causal or
        an encoder-decoder model by its logits.
    dtype : {"float32", "bfloat16"}, optional
        Precision of the computations; of logits float32 if left out.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    dict
        ``respondent_id, source, model, revision, mode, dtype, fingerprint`` and ``by``, which is
        ``"logits"`` or ``"entailment"``.

    Raises
    ------
    RespondentError, ParameterError
        The model or a condition is not usable.

    Examples
    --------
    >>> identify("minilm-mnli-l3-s16")["by"]
    'entailment'
    """
    by = "entailment"
    if not hasattr(respondent, "answer"):
        source = find(respondent)
        if source.kind != "embedded" and not _is_classifier(source):
            by, dtype = "logits", dtype or "float32"
    who = NLI().identify(respondent, dtype) | {"by": by}
    _checked(who, **(CONDITIONS | conditions))
    return who | {
        "mode": "options",
        "fingerprint": digest_text(who["fingerprint"], HANDLING, who["by"]),
    }


def opened(respondent: str | Path | NLIRespondent, identity: dict, **_: object) -> object:
    """The respondent, to be loaded at its first question and then kept for all questionnaires."""
    if identity["by"] == "entailment":
        return NLI().open(respondent, identity)
    return _Scorer(respondent, identity["dtype"])


def put(
    questionnaire: Questionnaire,
    respondent: str | Path | NLIRespondent,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> pd.DataFrame:
    """Ask for the probability of every option of every item, keeping them as they come.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent, identity
        As in :func:`identify`, and what it gave.
    store : str or Path, optional
        Folder or URL of the store.
    bar : Progress
        Is moved on by what was asked or found in the store.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``, ``probability`` (of
        the option chosen; missing with ``"expected"``), then ``by`` and the conditions. With
        ``choose="none"`` one row per option, its ``value`` and ``probability``, ``option`` (place
        in the questionnaire, from 1) and ``label``; of logits once per ``permutation``, with the
        ``position`` where it was shown and its ``log_probability``, which :func:`pooled` averages.

    Raises
    ------
    RespondentError, StoreError
        The model cannot answer, or the store cannot be read or written.

    References
    ----------
    The question_llm library's description (third document), the local HuggingFace module.
    """
    how = _checked(identity, **(CONDITIONS | conditions))
    who = {"respondent_id": identity["respondent_id"], "mode": "options", "run": 1}
    manifest = {**identity, "device": str(resolve_device(None)), **how}
    with open_answers(store, "options", questionnaire.id, who["respondent_id"], manifest) as kept:
        if identity["by"] == "logits":
            shares = _by_logits(questionnaire, respondent, identity, kept, bar, **how)
        else:
            shares = _by_entailment(questionnaire, respondent, identity, kept, bar, **how)
    shares = shares.assign(**who, status="ok", questionnaire=questionnaire.id)
    if how["choose"] == "none":
        answers = tidy(shares, questionnaire)
    else:
        if identity["by"] == "logits":
            shares = pooled(shares)
        answers = _chosen(shares, questionnaire, how["choose"], how["runs"], how["seed"])
    shown = {k: v for k, v in how.items() if k not in ("runs", "seed")}
    return answers.assign(by=identity["by"], **shown)


def option_sentence(label: str) -> str:
    """A response option as a sentence in the first person, to follow a statement.

    Examples
    --------
    >>> option_sentence("very inaccurate")
    'As a description of me, this is very inaccurate.'
    >>> option_sentence("Strongly agree")
    'I strongly agree with this.'
    >>> option_sentence("yes")
    'Yes, this is true of me.'
    >>> option_sentence("Paris")
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


def voice_sentence(label: str) -> str:
    """A response option as the sentence with which a speaker goes on after a statement of theirs.

    Examples
    --------
    >>> voice_sentence("very inaccurate")
    'This describes me very inaccurately.'
    >>> voice_sentence("neither accurate nor inaccurate")
    'This describes me neither accurately nor inaccurately.'
    >>> voice_sentence("Strongly agree")
    'I strongly agree with this.'
    """
    words = label.strip().rstrip(".").lower()
    if re.search(r"\b(in)?accurate\b", words):
        return f"This describes me {re.sub('accurate', 'accurately', words)}."
    return option_sentence(label)


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
    out["probability"] = _normalised(_exp_within(out["log"], by), by)
    out = out.sort_values(["respondent_id", "order", "option"], kind="stable", ignore_index=True)
    return out.drop(columns=["log", "order"])


def position_bias(shares: pd.DataFrame) -> pd.DataFrame:
    """How much probability each place gets over all items and permutations, whatever stands there.

    Parameters
    ----------
    shares : DataFrame
        Of ``ask(..., mode="options", choose="none")`` with permutations in which each option stands
        at each place equally often; items with the same number of options.

    Returns
    -------
    DataFrame
        ``respondent_id, position, probability`` (mean), ``even`` (what no bias gives).
    """
    out = shares.groupby(["respondent_id", "position"], as_index=False)["probability"].mean()
    return out.assign(even=1 / out["position"].nunique())


def _orders_of(
    count: int, permutations: str | int, rng: np.random.Generator | None = None
) -> list[tuple[int, ...]]:
    """Orders of options: which option stands at which place.

    Examples
    --------
    >>> _orders_of(3, "cyclic")
    [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    """
    given = tuple(range(count))
    if permutations == "given":
        return [given]
    if permutations == "reversed":
        return [given[::-1]]
    if permutations == "cyclic":
        return [given[i:] + given[:i] for i in range(count)]
    if permutations == "all":
        found = list(itertools.permutations(given))
        if len(found) > MAX_PERMUTATIONS:
            raise ParameterError(
                f"{count} options have {len(found)} orders: use permutations='cyclic', or a number."
            )
        return found
    if isinstance(permutations, int) and not isinstance(permutations, bool) and permutations > 0:
        rng = rng or np.random.default_rng(0)
        return [tuple(int(i) for i in rng.permutation(count)) for _ in range(permutations)]
    raise ParameterError(
        f"permutations must be one of {', '.join(_PERMUTATIONS)} or a number from 1, got "
        f"{permutations!r}."
    )


def _chosen(
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
                value, chosen = float(p @ values), np.nan
            else:
                pick = int(p.argmax()) if choose == "argmax" else rng.choice(len(p), p=p / p.sum())
                value, chosen = values[pick], p[pick]
            rows.append((who, mode, run, item_id, value, "ok", chosen))
    columns = ["respondent_id", "mode", "run", "item_id", "value", "status", "probability"]
    answers = pd.DataFrame(rows, columns=columns)
    return tidy(answers, questionnaire)


def _checked(identity: dict, **conditions: object) -> dict:
    """The conditions that the kind of respondent has, checked and with its own defaults."""
    by = identity["by"]
    other = "entailment" if by == "logits" else "logits"
    how = {name: value for name, value in conditions.items() if name not in _ONLY[other]}
    for name in _ONLY[other]:
        if conditions[name] != CONDITIONS[name]:
            kind = "a language model" if other == "logits" else "an NLI classifier"
            raise ParameterError(
                f"{identity['respondent_id']} answers by {by}, and {name} is a condition of "
                f"{kind}: leave it out."
            )
    voice = by == "logits" and how["wording"] == "voice"
    how["score"] = how["score"] or ("text" if voice else _SCORES[by][0])
    how["wording"] = how["wording"] or ("v1" if by == "logits" else "sentence")
    for name, known in {"choose": _CHOICES, "score": _SCORES[by]}.items():
        if how[name] not in known:
            raise ParameterError(f"{name} must be one of {', '.join(known)}, got {how[name]!r}.")
    check_numbers(runs=how["runs"], seed=how["seed"])
    if voice and how["score"] == "label":
        raise ParameterError("A voice shows no labels: use score='text' or 'text_mean'.")
    if by == "logits" and how["persona"] is not None and not voice:
        raise ParameterError("A persona speaks in a voice: use role, or wording='voice'.")
    if by == "logits":
        _orders_of(2, how["permutations"])
    elif how["wording"] != "sentence" and "{label}" not in str(how["wording"]):
        raise ParameterError(f"wording must have {{label}} in it, got {how['wording']!r}.")
    elif how["persona"] is not None and (how["baseline"] or how["wording"] != "sentence"):
        raise ParameterError("A persona takes neither baseline nor wording: leave them out.")
    for name in ("persona", "baseline"):
        if how.get(name) is not None and (not isinstance(how[name], str) or not how[name].strip()):
            raise ParameterError(f"{name} must be a sentence, got {how[name]!r}.")
    return how


def _is_classifier(source) -> bool:
    config = read_json(source.name, fetched(source) / "config.json")
    kinds = config.get("architectures") or []
    return any(str(kind).endswith("ForSequenceClassification") for kind in kinds)


def _by_entailment(
    questionnaire,
    respondent,
    identity,
    kept: StoredAnswers,
    bar,
    wording,
    score,
    persona,
    baseline,
    **_,
) -> pd.DataFrame:
    """Options with their probabilities by an NLI classifier."""
    rows = pd.DataFrame(
        [
            (item.id, place, option.label, option.value)
            for item in questionnaire.items
            for place, option in enumerate(questionnaire.choices(item), start=1)
        ],
        columns=["item_id", "option", "label", "value"],
    )
    statements = [questionnaire.statement(questionnaire.item(i)) for i in rows["item_id"]]
    if persona is not None:
        pairs = [(persona, statement) for statement in statements]
    else:
        sentences = [
            option_sentence(label) if wording == "sentence" else wording.replace("{label}", label)
            for label in rows["label"]
        ]
        pairs = list(zip(statements, sentences, strict=True))
        if baseline is not None:
            pairs += [(baseline, sentence) for sentence in sentences]
    key = {pair: key_of(identity["fingerprint"], *pair) for pair in pairs}
    NLI().ask_missing(respondent, key, kept, bar, len(key))
    e, _, c = kept.rows.loc[[key[pair] for pair in pairs], list(PROBABILITIES)].to_numpy().T
    if persona is not None:
        return rows.assign(probability=_binomial((1 + e - c).astype(float) / 2, rows))
    e, c = e.astype(float), c.astype(float)
    values = e if score == "entailment" else e / (e + c)
    shares = values[: len(rows)] / (values[len(rows) :] if baseline is not None else 1.0)
    return rows.assign(probability=_normalised(shares, rows["item_id"]))


def _by_logits(
    questionnaire, model, identity, kept, bar, labels, score, permutations, role, wording,
    persona, baseline, seed, **_,
) -> pd.DataFrame:  # fmt: skip
    """Options with their probabilities as a language model's next words, per permutation."""
    rows = []
    rng = np.random.default_rng(seed)
    bare = questionnaire.model_copy(update={"stem": None})  # a baseline is a whole sentence
    for item in questionnaire.items:
        options = questionnaire.choices(item)
        names = option_labels(options, labels)
        orders = [tuple(range(len(options)))]  # a voice shows no options
        if wording != "voice":
            orders = _orders_of(len(options), permutations, rng)
        for number, order in enumerate(orders, start=1):
            asked = [(questionnaire, item)]
            if baseline is not None:
                asked.append((bare, item.model_copy(update={"text": baseline})))
            prompts = [_prompt(*what, role, wording, labels, order, persona) for what in asked]
            for place, i in enumerate(order):
                reply = names[place] if score == "label" else options[i].label
                row = {
                    "item_id": item.id,
                    "permutation": number,
                    "position": place + 1,
                    "option": i + 1,
                    "label": options[i].label,
                    "value": options[i].value,
                    "reply": voice_sentence(reply) if wording == "voice" else reply,
                }
                rows += [row | {"prompt": text, "empty": n > 0} for n, text in enumerate(prompts)]
    rows = pd.DataFrame(rows)
    rows["key"] = [
        key_of(identity["fingerprint"], score, *prompt, reply)
        for prompt, reply in zip(rows["prompt"], rows["reply"], strict=True)
    ]
    new = rows[[key not in kept for key in rows["key"]]].drop_duplicates("key")
    bar.expect(rows["key"].nunique(), rows["key"].nunique() - len(new))
    groups = [group for _, group in new.groupby("prompt")]  # alike ones together
    buffer = Buffer(kept)
    try:
        for start in range(0, len(groups), BATCH):
            chunk = groups[start : start + BATCH]
            asked = [(part["prompt"].iloc[0], list(part["reply"])) for part in chunk]
            found = pd.concat(chunk)
            done = pd.DataFrame({"prompt": ["\n".join(prompt) for prompt in found["prompt"]]})
            done["reply"] = found["reply"].to_list()
            done["log_probability"] = model(asked, score == "text_mean")
            buffer.add(done, list(found["key"]), len(done))
            bar.update(len(done))
    finally:  # also if it is stopped
        buffer.save()
    # StoredAnswers as logarithms: probabilities of long texts would be 0.
    rows["log_probability"] = kept.rows.loc[rows["key"], "log_probability"].to_numpy(dtype=float)
    empty = rows.pop("empty")
    if empty.any():
        without = rows.loc[empty, "log_probability"].to_numpy()
        rows = rows[~empty].reset_index(drop=True)
        rows["log_probability"] -= without
    by = [rows["item_id"], rows["permutation"]]
    rows["probability"] = _normalised(_exp_within(rows["log_probability"], by), by)
    return rows.drop(columns=["prompt", "reply", "key"])


def _prompt(questionnaire, item, role, wording, labels, order, persona) -> tuple[str, str]:
    """System and user text about an item; without the first, the text that a voice goes on from."""
    if wording == "voice":
        statement = questionnaire.statement(item)
        return "", f"{persona} {statement}" if persona else statement
    prompt = messages(
        questionnaire, [item], role, wording, labels=labels, orders=[order], reply="choice"
    )
    return tuple(message["content"] for message in prompt)


def _binomial(p: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    from scipy.stats import binom

    groups = rows.groupby("item_id")["value"]
    rank = groups.rank(method="first").to_numpy() - 1
    return binom.pmf(rank, groups.transform("size").to_numpy() - 1, p)


def _exp_within(logs: pd.Series, by) -> np.ndarray:
    """Exponentials, scaled within each group so that none of them underflows all of it."""
    return np.exp((logs - logs.groupby(by).transform("max")).to_numpy())


def _normalised(values: np.ndarray, by) -> np.ndarray:
    values = pd.Series(np.asarray(values, dtype=float))
    by = [pd.Series(np.asarray(part)) for part in by] if isinstance(by, list) else np.asarray(by)
    return (values / values.groupby(by).transform("sum")).to_numpy()


def _same_start(rows: list[tuple[int, ...]]) -> int:
    """How many tokens all rows have in common at their start; the least and the greatest tell."""
    first, last = min(rows), max(rows)
    pairs = enumerate(zip(first, last, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(last)))


class _Scorer:
    """A causal or encoder-decoder model that scores replies after prompts; loaded when asked."""

    def __init__(self, name_or_path: str | Path, dtype: str) -> None:
        self.name_or_path, self.dtype, self.model = name_or_path, dtype, None

    def load(self) -> None:
        source = find(self.name_or_path)
        self.decodes = bool(load_config(source).is_encoder_decoder)
        head = "encoder-decoder" if self.decodes else "causal"
        what = "a causal or an encoder-decoder model, which continues a text"
        model, self.tokenizer = load_model(source, head, what=what)
        self.device = resolve_device(None)
        self.model = to_device(model, self.device, self.dtype, source.name)

    def __call__(
        self, asked: Sequence[tuple[tuple[str, str], list[str]]], mean: bool
    ) -> np.ndarray:
        """Log-probability of each reply, summed over its tokens or their mean."""
        if self.model is None:
            self.load()
        sequences = []
        for prompt, replies in asked:
            context, space = self._context(prompt)
            for reply in replies:
                text = f"{space}{reply}"
                ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
                if not ids:
                    raise RespondentError(f"The tokenizer has no tokens for {reply!r}.")
                sequences.append((context, ids))
        steps = self._seq2seq(sequences) if self.decodes else self._causal(sequences)
        return np.array([float(logs.mean() if mean else logs.sum()) for logs in steps])

    def _context(self, prompt: tuple[str, str]) -> tuple[list[int], str]:
        """Token ids of what is read, and what stands between it and the reply."""
        system, user = prompt
        if not system and not self.decodes:  # a text that is gone on with
            ids = self.tokenizer(user, add_special_tokens=False)["input_ids"]
            start = self.tokenizer.bos_token_id
            return ([start, *ids] if start is not None else ids), " "
        if getattr(self.tokenizer, "chat_template", None):
            text = self.tokenizer.apply_chat_template(
                [{"role": "system", "content": system}, {"role": "user", "content": user}],
                add_generation_prompt=True,
                tokenize=False,
            )
            return self.tokenizer(text, add_special_tokens=False)["input_ids"], ""
        text = f"{system}\n{user}\n" + ("" if self.decodes else "Answer:")
        if self.decodes:
            return self.tokenizer(text)["input_ids"], ""
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        start = self.tokenizer.bos_token_id
        return ([start, *ids] if start is not None else ids), " "

    def _causal(self, sequences) -> list[torch.Tensor]:
        """Replies of one token share a single pass over their prompt."""
        import torch

        read = list(dict.fromkeys(tuple(context + ids[:-1]) for context, ids in sequences))
        row_of = {tokens: row for row, tokens in enumerate(read)}
        wanted = [set() for _ in read]
        for context, ids in sequences:
            last = len(context) - 1
            wanted[row_of[tuple(context + ids[:-1])]].update(range(last, last + len(ids)))
        limit = getattr(self.model.config, "max_position_embeddings", None)
        if limit and max(map(len, read)) > limit:
            raise RespondentError(
                f"A prompt has {max(map(len, read))} tokens and the model reads {limit}: choose a "
                "shorter wording or another model."
            )
        logs = {}
        with torch.inference_mode():
            for start in range(0, len(read), BATCH):
                part = read[start : start + BATCH]
                places = sorted(set().union(*wanted[start : start + BATCH]))
                logits = self._logits_at(part, places)
                for row in range(len(part)):
                    for place in wanted[start + row]:
                        logs[start + row, place] = logits[row, places.index(place)]
        out = []
        for context, ids in sequences:
            row, last = row_of[tuple(context + ids[:-1])], len(context) - 1
            steps = [logs[row, last + i].log_softmax(dim=-1)[token] for i, token in enumerate(ids)]
            out.append(torch.stack(steps))
        return out

    def _logits_at(self, rows: list[tuple[int, ...]], places: list[int]) -> torch.Tensor:
        """Logits at some places only, (rows, places), as the vocabulary is large.

        What all rows begin with is read once: prompts differ in their last line only.
        """
        import inspect

        import torch

        shared = min(_same_start(rows), places[0])
        past = None
        if shared >= SHARED and len(rows) > 1:
            begun = torch.tensor([rows[0][:shared]], device=self.device)
            past = self.model(input_ids=begun, use_cache=True).past_key_values
            past = past if hasattr(past, "batch_repeat_interleave") else None
        if past is None:
            shared = 0
        else:
            past.batch_repeat_interleave(len(rows))
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])[:, shared:]
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        inputs = {"input_ids": ids.to(self.device), "attention_mask": mask.to(self.device)}
        if past is not None:
            inputs |= {"past_key_values": past, "use_cache": True}
        places = [place - shared for place in places]
        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            keep = torch.tensor(places, device=self.device)
            return self.model(**inputs, logits_to_keep=keep).logits.float()
        return self.model(**inputs).logits[:, places].float()

    def _seq2seq(self, sequences) -> list[torch.Tensor]:
        import torch

        out = []
        start = self.model.config.decoder_start_token_id
        with torch.inference_mode():
            for context, ids in sequences:
                logits = self.model(
                    input_ids=torch.tensor([context], device=self.device),
                    decoder_input_ids=torch.tensor([[start, *ids[:-1]]], device=self.device),
                ).logits
                logs = logits[0].float().log_softmax(dim=-1)
                out.append(logs[range(len(ids)), ids])
        return out


class Options(Mode):
    """Models that give every option of an item a probability."""

    name, conditions = "options", CONDITIONS
    identify, answer = staticmethod(identify), staticmethod(put)
    open = staticmethod(opened)
