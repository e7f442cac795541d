"""Answers without a conversation: probabilities of options from a model's logits or by entailment.

Both ways give a probability for every option of every item; an answer is the most probable one,
or is drawn.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..answers import tidy
from ..ask import answered, identified
from ..exceptions import ParameterError, RespondentError
from ..messages import messages, option_labels
from ..paths import store_dir
from ..questionnaires import Questionnaire
from ..store import answers_path, write_answers

if TYPE_CHECKING:
    from .nli import NLIRespondent

HANDLING = "logits-1"
"""Version of all that this file does to an answer; part of the key of stored ones."""
CHOICES = ("argmax", "draw", "expected")
PERMUTATIONS = ("given", "reversed", "cyclic", "all")
MAX_PERMUTATIONS = 120
BATCH = 16


def likert_by_nli(
    questionnaire: Questionnaire,
    respondents: str | Path | NLIRespondent | Iterable = "embedded",
    choose: str = "argmax",
    runs: int = 1,
    seed: int = 0,
    store: str | Path | None = None,
    progress: bool = False,
    **how,
) -> pd.DataFrame:
    """Answers of NLI respondents to a questionnaire: which option does the statement entail?

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : str or respondent, or several
        As in :func:`psychometrics.ask`; ``"embedded"`` is the population that comes along.
    choose : {"argmax", "draw", "expected"}
        The most probable option, one drawn by the probabilities, or the mean of the values
        weighted by them.
    runs : int
        How often an answer is drawn; the other choices come out the same each time.
    seed : int
        Of the draws.
    store, progress
        As in :func:`psychometrics.ask`.
    **how
        ``hypothesis``, ``score``, ``baseline``, ``persona`` and ``dtype`` of
        :func:`nli_probabilities`.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status, probability`` (of the
        option chosen; missing with ``expected``).

    Raises
    ------
    RespondentError, ParameterError, StoreError
        A respondent, parameter or store is not usable.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> likert_by_nli(load_questionnaire("ipip20"), "minilm-mnli-l6-s2")  # doctest: +SKIP
    """
    _check_choice(choose, runs)
    shares = nli_probabilities(questionnaire, respondents, store=store, progress=progress, **how)
    return answers_from(shares, questionnaire, choose, runs, seed)


def nli_probabilities(
    questionnaire: Questionnaire,
    respondents: str | Path | NLIRespondent | Iterable = "embedded",
    hypothesis: str | None = None,
    score: str = "entailment",
    baseline: str | None = None,
    persona: str | None = None,
    store: str | Path | None = None,
    dtype: str | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Probability of every option by natural language inference.

    The premise is the item as a whole sentence, the hypothesis is made from the option ("As a
    description of me, this is very accurate."). Scores over the options of an item are divided by
    their sum. An answer says which option the sentence makes believable to the model: the
    model has not been asked about itself.

    With a ``persona`` it is another question. The premise is the persona's sentences, the
    hypothesis is the item, and the answer is where the persona would stand: with
    :math:`p = (1 + P_e - P_c) / 2`, the options have the probabilities of a binomial distribution
    over their ranks. That rule is this project's, not the papers'.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents, store, dtype, progress
        As in :func:`psychometrics.ask`.
    hypothesis : str, optional
        A sentence with ``{label}`` for the option; by default made by :func:`option_sentence`.
    score : {"entailment", "contrast"}
        The probability of entailment, or entailment over entailment and contradiction.
    baseline : str, optional
        A premise without content. Scores are divided by the option's score after it, which
        takes away a liking for the option's words; not with a persona.
    persona : str, optional
        Sentences in the first person.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, item_id, option`` (place in the questionnaire, from 1)
        ``, label, value, probability``.

    Raises
    ------
    RespondentError, ParameterError, StoreError
        A respondent, parameter or store is not usable.
    """
    if score not in ("entailment", "contrast"):
        raise ParameterError(f"score must be one of entailment, contrast, got {score!r}.")
    if hypothesis is not None and "{label}" not in hypothesis:
        raise ParameterError(f"hypothesis must have {{label}} in it, got {hypothesis!r}.")
    if persona is not None and (baseline or hypothesis):
        raise ParameterError("A persona takes neither baseline nor hypothesis: leave them out.")
    rows = _option_rows(questionnaire)
    if persona is not None:
        premises = [persona] * len(rows)
        sentences = [questionnaire.statement(questionnaire.item(i)) for i in rows["item_id"]]
    else:
        premises = [questionnaire.statement(questionnaire.item(i)) for i in rows["item_id"]]
        sentences = [
            option_sentence(label) if hypothesis is None else hypothesis.replace("{label}", label)
            for label in rows["label"]
        ]
    table = pd.DataFrame(
        {"questionnaire": questionnaire.id, "premise": premises, "hypothesis": sentences}
    )
    if baseline:
        table = pd.concat([table, table.assign(premise=baseline)], ignore_index=True)
    unique = table.drop_duplicates(ignore_index=True)
    store = Path(store).expanduser() if store is not None else store_dir()
    parts = []
    known = identified(respondents, "nli", dtype)
    with tqdm(total=len(unique) * len(known), unit="prompt", disable=not progress) as bar:
        for identity, respondent in known:
            answers, _ = answered(unique, identity, respondent, store, bar)
            answers = table.merge(answers, on=["questionnaire", "premise", "hypothesis"])
            values = _score(answers, score)
            if persona is not None:
                shares = _binomial(answers, rows)
            else:
                shares = values[: len(rows)] / (values[len(rows) :] if baseline else 1.0)
                shares = _normalised(shares, rows["item_id"])
            part = rows.assign(probability=shares)
            part.insert(0, "respondent_id", identity["respondent_id"])
            parts.append(part)
    shares = pd.concat(parts, ignore_index=True)
    shares.insert(1, "questionnaire", questionnaire.id)
    shares.insert(2, "mode", "nli")
    return shares


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


def ask_logits(
    questionnaire: Questionnaire,
    model: str | Path,
    labels: str = "numeric",
    score: str = "label",
    permutations: str | int = "cyclic",
    choose: str = "argmax",
    runs: int = 1,
    seed: int = 0,
    role: str = "default",
    wording: str = "v1",
    mean: str = "sum",
    store: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Answers of a local language model by the probabilities of the options.

    Parameters
    ----------
    questionnaire : Questionnaire
    model, labels, score, permutations, role, wording, mean, store, progress, seed
        As in :func:`logit_probabilities`.
    choose, runs
        As in :func:`likert_by_nli`.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status, probability``.

    Raises
    ------
    RespondentError, ParameterError
        The model or a parameter is not usable.

    References
    ----------
    The question_llm library's description (third document), the local HuggingFace module.

    Examples
    --------
    >>> ask_logits(load_questionnaire("ipip20"), "owner/model")  # doctest: +SKIP
    """
    _check_choice(choose, runs)
    shares = logit_probabilities(
        questionnaire,
        model,
        labels,
        score,
        permutations,
        role,
        wording,
        mean,
        seed,
        store,
        progress,
    )
    return answers_from(pooled(shares), questionnaire, choose, runs, seed)


def logit_probabilities(
    questionnaire: Questionnaire,
    model: str | Path,
    labels: str = "numeric",
    score: str = "label",
    permutations: str | int = "cyclic",
    role: str = "default",
    wording: str = "v1",
    mean: str = "sum",
    seed: int = 0,
    store: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Probability of every option as the next words of a local language model.

    Parameters
    ----------
    questionnaire : Questionnaire
    model : str or Path
        A folder or hub id of a causal or an encoder-decoder model; its chat template is used if
        it has one.
    labels : {"numeric", "alphabetical"}
        What stands before the options; see :func:`psychometrics.messages.option_labels`.
    score : {"label", "text"}
        Whether the option's label or its text is scored as the reply.
    permutations : {"given", "reversed", "cyclic", "all"} or int
        Orders in which the options are shown: each once, or so many drawn with ``seed``. Over
        cyclic shifts every option stands at every place once.
    role, wording : str
        As in :func:`psychometrics.messages.messages`.
    mean : {"sum", "token"}
        Log-probability of a reply of several tokens: their sum, or their mean, which does not
        put long texts at a disadvantage.
    seed : int
        Of drawn orders.
    store : str or Path, optional
        Folder of the response store, as in :func:`psychometrics.ask`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, item_id, permutation, position`` (place where the option
        was shown, from 1) ``, option, label, value, log_probability, probability`` (over the
        options, within a permutation). :func:`pooled` averages the permutations.

    Raises
    ------
    RespondentError, ParameterError
        The model or a parameter is not usable.
    """
    if score not in ("label", "text"):
        raise ParameterError(f"score must be one of label, text, got {score!r}.")
    if mean not in ("sum", "token"):
        raise ParameterError(f"mean must be one of sum, token, got {mean!r}.")
    rows = []
    rng = np.random.default_rng(seed)
    for item in questionnaire.items:
        options = questionnaire.choices(item)
        names = option_labels(options, labels)
        for number, order in enumerate(orders_of(len(options), permutations, rng), start=1):
            prompt = messages(questionnaire, [item], role, wording, labels=labels, orders=[order])
            for place, i in enumerate(order):
                rows.append(
                    {
                        "item_id": item.id,
                        "permutation": number,
                        "position": place + 1,
                        "option": i + 1,
                        "label": options[i].label,
                        "value": options[i].value,
                        "prompt": _one_item(prompt),
                        "reply": names[place] if score == "label" else options[i].label,
                    }
                )
    rows = pd.DataFrame(rows)
    name, values = _log_probabilities(questionnaire, model, rows, mean, store, progress)
    rows["log_probability"] = values
    by = [rows["item_id"], rows["permutation"]]
    rows["probability"] = _normalised(_exp_within(rows["log_probability"], by), by)
    rows = rows.drop(columns=["prompt", "reply"])
    rows.insert(0, "respondent_id", name)
    rows.insert(1, "questionnaire", questionnaire.id)
    rows.insert(2, "mode", "option_logits")
    return rows


def pooled(shares: pd.DataFrame) -> pd.DataFrame:
    """Average the permutations of :func:`logit_probabilities`, in log-probabilities.

    What the model adds to the log-probability of a place, whatever stands there, is the same
    for all options after all cyclic shifts, and so falls out exactly.

    Parameters
    ----------
    shares : DataFrame
        Of :func:`logit_probabilities`.

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
        Of :func:`logit_probabilities` with permutations in which each option stands at each place
        equally often; items with the same number of options.

    Returns
    -------
    DataFrame
        ``respondent_id, position, probability`` (mean), ``even`` (what no bias gives).
    """
    out = shares.groupby(["respondent_id", "position"], as_index=False)["probability"].mean()
    return out.assign(even=1 / out["position"].nunique())


def orders_of(
    count: int, permutations: str | int, rng: np.random.Generator | None = None
) -> list[tuple[int, ...]]:
    """Orders of options: which option stands at which place.

    Examples
    --------
    >>> orders_of(3, "cyclic")
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
        f"permutations must be one of {', '.join(PERMUTATIONS)} or a number from 1, got "
        f"{permutations!r}."
    )


def answers_from(
    shares: pd.DataFrame,
    questionnaire: Questionnaire,
    choose: str = "argmax",
    runs: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Turn probabilities of options into answers.

    Parameters
    ----------
    shares : DataFrame
        Of :func:`nli_probabilities` or :func:`pooled`.
    questionnaire : Questionnaire
    choose, runs, seed
        As in :func:`likert_by_nli`. Of equally probable options the first is taken.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status, probability``.
    """
    _check_choice(choose, runs)
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
    place = {name: i for i, name in enumerate(shares["respondent_id"].unique())}
    answers = answers.sort_values(
        "respondent_id", key=lambda column: column.map(place), kind="stable"
    )
    return tidy(answers, questionnaire)


def _check_choice(choose: str, runs: int) -> None:
    if choose not in CHOICES:
        raise ParameterError(f"choose must be one of {', '.join(CHOICES)}, got {choose!r}.")
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise ParameterError(f"runs must be a whole number from 1, got {runs!r}.")


def _option_rows(questionnaire: Questionnaire) -> pd.DataFrame:
    rows = [
        (item.id, place, option.label, option.value)
        for item in questionnaire.items
        for place, option in enumerate(questionnaire.choices(item), start=1)
    ]
    return pd.DataFrame(rows, columns=["item_id", "option", "label", "value"])


def _score(answers: pd.DataFrame, score: str) -> np.ndarray:
    entailed = answers["entailment"].to_numpy(dtype=float)
    if score == "entailment":
        return entailed
    return entailed / (entailed + answers["contradiction"].to_numpy(dtype=float))


def _binomial(answers: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    from scipy.stats import binom

    p = (1 + answers["entailment"] - answers["contradiction"]).to_numpy(dtype=float) / 2
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


def _one_item(prompt: list[dict[str, str]]) -> tuple[str, str]:
    """System and user text for a single item, whose reply is the label or text alone."""
    system, user = (message["content"] for message in prompt)
    form = "Write one line for each statement: its number, a colon, the label you choose."
    return system.replace(form, "Reply with your choice alone."), user


def _log_probabilities(questionnaire, model, rows, mean, store, progress) -> tuple[str, np.ndarray]:
    """Log-probability of each row's reply after its prompt, from the store where it is there."""
    from .sources import digest_text, find

    source = find(model)
    if source.kind == "embedded":
        raise RespondentError(
            f"{source.name} is an NLI model and continues no text: ask it with mode 'nli', or name "
            "the folder or hub id of a causal or encoder-decoder model."
        )
    store = Path(store).expanduser() if store is not None else store_dir()
    path = answers_path(store, source.name, questionnaire.id, "option_logits")
    known = _read_logs(path)
    fingerprint = digest_text(source.digest, HANDLING, mean)
    keys = [digest_text(fingerprint, *p, r) for p, r in zip(rows["prompt"], rows["reply"])]  # noqa: B905
    rows = rows.assign(key=keys)
    new = rows[~rows["key"].isin(known.index)].drop_duplicates("key")
    if len(new):
        scorer = _Scorer(source, mean)
        groups = list(new.groupby("prompt", sort=False))
        for start in tqdm(range(0, len(groups), BATCH), desc=source.name, disable=not progress):
            chunk = groups[start : start + BATCH]
            part = pd.concat([group for _, group in chunk])
            logs = scorer([(prompt, list(group["reply"])) for prompt, group in chunk])
            rows_new = pd.DataFrame(
                {
                    "premise": ["\n".join(prompt) for prompt in part["prompt"]],
                    "hypothesis": part["reply"].to_list(),
                    "log_probability": logs,
                },
                index=pd.Index(part["key"], name="key"),
            )
            known = pd.concat([known, rows_new]) if len(known) else rows_new
        write_answers(
            path,
            known,
            {
                "questionnaire": questionnaire.id,
                "respondent_id": source.name,
                "model": source.model,
                "revision": source.revision,
                "mode": "option_logits",
                "answers": len(known),
            },
        )
    return source.name, known.loc[keys, "log_probability"].to_numpy(dtype=float)


def _read_logs(path: Path) -> pd.DataFrame:
    """Log-probabilities of a file of the store; probabilities of long texts would be 0."""
    columns = ["premise", "hypothesis", "log_probability"]
    empty = pd.DataFrame(columns=columns, index=pd.Index([], name="key", dtype=str))
    try:
        known = pd.read_parquet(path)
    except (OSError, ValueError):  # none, or cut short: what it held is computed again
        return empty
    return known if known.index.name == "key" and list(known.columns) == columns else empty


class _Scorer:
    """A causal or encoder-decoder model that scores replies after prompts."""

    def __init__(self, source, mean: str) -> None:
        import torch
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForSeq2SeqLM,
            AutoTokenizer,
        )

        from .nli import quietly, resolve_device
        from .sources import fetched

        folder = fetched(source)
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        self.decodes = bool(config.is_encoder_decoder)
        kind = AutoModelForSeq2SeqLM if self.decodes else AutoModelForCausalLM
        with quietly():
            try:
                model, report = kind.from_pretrained(
                    folder,
                    use_safetensors=True,
                    trust_remote_code=False,
                    output_loading_info=True,
                    dtype=torch.float32,
                )
            except (ValueError, OSError) as error:
                raise RespondentError(
                    f"{source.name} cannot continue a text: name a causal or an encoder-decoder "
                    f"model ({str(error).splitlines()[0][:150]})."
                ) from error
        if report["missing_keys"]:
            raise RespondentError(
                f"{source.name} has no trained language-model head: its checkpoint lacks "
                f"{min(report['missing_keys'])}."
            )
        self.device = resolve_device(None)
        self.model = model.to(self.device).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        self.mean = mean

    def __call__(self, asked: Sequence[tuple[tuple[str, str], list[str]]]) -> np.ndarray:
        sequences = []
        for prompt, replies in asked:
            context, space = self._context(prompt)
            for reply in replies:
                text = f"{space}{reply}"
                ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
                if not ids:
                    raise RespondentError(f"The tokenizer has no tokens for {reply!r}.")
                sequences.append((context, ids))
        return self._seq2seq(sequences) if self.decodes else self._causal(sequences)

    def _context(self, prompt: tuple[str, str]) -> tuple[list[int], str]:
        """Token ids of what is read, and what stands between it and the reply."""
        system, user = prompt
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

    def _causal(self, sequences) -> np.ndarray:
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
                width = max(map(len, part))
                ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in part])
                mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in part])
                places = sorted(set().union(*wanted[start : start + BATCH]))
                logits = self._logits_at(ids, mask, places)
                for row in range(len(part)):
                    for place in wanted[start + row]:
                        logs[start + row, place] = logits[row, places.index(place)]
        out = []
        for context, ids in sequences:
            row, last = row_of[tuple(context + ids[:-1])], len(context) - 1
            steps = [logs[row, last + i].log_softmax(dim=-1)[token] for i, token in enumerate(ids)]
            out.append(self._together(torch.stack(steps)))
        return np.array(out)

    def _logits_at(self, ids, mask, places: list[int]):
        """Logits at some places only, where the model can do so: the vocabulary is large."""
        import inspect

        import torch

        inputs = {"input_ids": ids.to(self.device), "attention_mask": mask.to(self.device)}
        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            keep = torch.tensor(places, device=self.device)
            return self.model(**inputs, logits_to_keep=keep).logits.float()
        return self.model(**inputs).logits[:, places].float()

    def _seq2seq(self, sequences) -> np.ndarray:
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
                out.append(self._together(logs[range(len(ids)), ids]))
        return np.array(out)

    def _together(self, logs) -> float:
        return float(logs.sum() if self.mean == "sum" else logs.mean())
