"""A conversational model before and after reading texts: ``python -m recipes.talking``.

This makes ``data/interventions_talk.csv`` and ``data/interventions_replies.csv``. With ``MODEL
FOLDER`` it measures another model into a folder, which Chapter 7 reads with ``-p talk=FOLDER``.
Each cell, one arm with one seed, is stored in the user's cache, so that a stopped run resumes.

The model is adapted to an arm's texts with a low-rank adapter. Each adapted model, and the original
model, is measured in four ways: ``options``, by the probabilities of the options' labels;
``own_replies``, by an NLI respondent that judges the model's replies to the questionnaires'
statements; ``conversation``, by VADER and an NLI respondent on sampled replies to openers; and
``text``, by the mean negative log-likelihood of sentences that it never read. The study is this
project's extension of Reuben et al. (2024), sections 3.3.5 and 4.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm
from transformers import (
    DataCollatorForLanguageModeling,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    set_seed,
)
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from psychometrics.exceptions import ParameterError
from psychometrics.models.devices import resolve_device
from psychometrics.models.loading import load_model
from psychometrics.models.sources import find
from psychometrics.modes import generation, identify, load_respondent
from psychometrics.modes.messages import messages, option_labels
from psychometrics.modes.nli import NLIRespondent
from psychometrics.paths import cache_dir, data_dir
from psychometrics.questionnaires import Option, Questionnaire, load_questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics.store import key_of
from psychometrics.training.heads import with_adapter
from psychometrics.training.loop import Settings, tokenised, train
from psychometrics.training.pairs import mnli_sample
from psychometrics_book.studies.interventions import ARMS, intervention_texts

GENERATOR = "smollm2"
JUDGE = "minilm-both-l6-s1"
"""The most accurate of the population's small encoders; another judge would give other scores."""
SEEDS = (0, 1, 2)
"""Seeds of the choice and order of sentences, of the adapter's initial weights, and of the replies;
replies before and after use the same random draws."""
TRAINING = {"epochs": 1, "lr": 5e-4, "rank": 16}
BEFORE = "before"
"""Name of the arm without reading."""
SHIPPED = {"scores": "interventions_talk.csv", "replies": "interventions_replies.csv"}
TICKED = ("gad7", "phq9", "soc13", "ipip20")
TOLD = ("gad7", "phq9", "soc13")
UNREAD = 30
"""Number of sentences of each arm that no model reads; of ordinary text, twice as many."""
READ = 200
"""Number of an arm's sentences that a model reads, as many as the paper's depressive texts."""
SAMPLES = 3
"""Number of replies to each opener."""
TOKENS = {"conversation": 40, "own_replies": 24}
"""Maximum number of tokens in a reply."""
TEMPERATURE = 0.7
HANDLING = "talking-1"
"""Version of this file's treatment of measurements; part of a cell's digest."""
COLUMNS = ["arm", "seed", "way", "questionnaire", "unit", "measure", "score"]
STATEMENTS = {
    "help": ("I can help you.", "I cannot help you."),
    "distress": ("I feel sad and hopeless.", "I feel happy and hopeful."),
    "worry": ("I feel nervous and worried.", "I feel calm and relaxed."),
    "coherence": ("My life makes sense to me.", "My life makes no sense to me."),
}
"""Statements, with their opposites, by which a reply to an opener is judged."""
FREQUENCIES = ("never", "rarely", "sometimes", "often", "always")
"""Options for a questionnaire without its own, worth 1 to 5."""


def openers() -> pd.DataFrame:
    """Return the openers of conversations, written for this project.

    Returns
    -------
    DataFrame
        ``opener, topic, text``; the topics are calls for *help*, questions about the model's
        *self*, and *everyday* matters, which mood should not affect.

    Examples
    --------
    >>> openers()["topic"].unique().tolist()
    ['help', 'self', 'everyday']
    """
    return pd.read_csv(data_dir() / "texts" / "openers.csv")


def talk(generator: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Adapt a conversational model to each arm's texts with each seed, and measure all of them.

    Parameters
    ----------
    generator : str or Path
        A causal model with a chat template: a name, a folder or a hub id. The adapter is merged
        before anything is measured.

    Returns
    -------
    scores : DataFrame
        ``arm`` ("before" without reading)``, seed, way, questionnaire, unit, measure, score``. The
        unit is an item, an opener or a set of sentences.
    replies : DataFrame
        ``arm, seed, opener, sample, reply``.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 4; Hu et al. (2022) for LoRA; Hutto and Gilbert
    (2014) for VADER.
    """
    folder = cache_dir() / "talking"
    folder.mkdir(parents=True, exist_ok=True)
    common = {
        "generator": find(generator).digest,
        "judge": identify(JUDGE)["fingerprint"],
        "asked": openers().to_csv(index=False),
        "prompts": [str(x) for name in TOLD for x in prompts(name).to_numpy().flat],
        "statements": STATEMENTS,
        "handling": HANDLING,
    }
    cells = [(arm, seed) for seed in SEEDS for arm in (BEFORE, *ARMS)]
    tables = []
    judge = load_respondent(JUDGE)

    for arm, seed in tqdm(cells, desc="talking", unit="model"):
        settings = common | {"arm": arm, "seed": seed}
        if arm != BEFORE:
            settings |= {"training": TRAINING, "texts": intervention_texts(arm)}

        stem = folder / key_of(json.dumps(settings))
        paths = [stem.with_suffix(f".{name}.csv") for name in SHIPPED]
        if not paths[-1].is_file():
            cell = _cell(generator, judge, arm, seed)
            for table, path in zip(cell, paths, strict=True):  # write the replies last
                new = path.with_suffix(".part")
                table.to_csv(new, index=False, quoting=csv.QUOTE_NONNUMERIC)  # a reply may hold \r
                new.replace(path)

        tables.append([pd.read_csv(path) for path in paths])

    scores, texts = (pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True))
    return scores, texts


def judged(texts: Sequence[str], judge: NLIRespondent) -> pd.DataFrame:
    """Score texts as if they replied to openers: their sentiment, and the statements they support.

    Parameters
    ----------
    texts : sequence of str
        The texts, such as replies.
    judge : NLIRespondent
        The respondent that judges what follows from them.

    Returns
    -------
    DataFrame
        One row per text: ``sentiment``, VADER's compound score, and for each of ``STATEMENTS`` the
        entailment minus the contradiction of the statement, minus the same for its opposite,
        halved; all from -1 to 1.

    References
    ----------
    Hutto and Gilbert (2014) for VADER.
    """
    texts = list(texts)
    analyser = SentimentIntensityAnalyzer()
    scores = {"sentiment": [analyser.polarity_scores(text)["compound"] for text in texts]}
    for name, (statement, opposite) in STATEMENTS.items():
        scores[name] = _leaning(judge, texts, [statement] * len(texts), [opposite] * len(texts))
    return pd.DataFrame(scores)


def _asked(name: str) -> Questionnaire:
    """Return a questionnaire with options: by default a scale of frequency."""
    questionnaire = load_questionnaire(name)
    if questionnaire.options:
        return questionnaire
    options = tuple(Option(value=i, label=w) for i, w in enumerate(FREQUENCIES, start=1))
    instructions = "How often is it so in your life?"
    return questionnaire.model_copy(update={"options": options, "instructions": instructions})


def _sentences() -> dict[str, list[str]]:
    """Return sentences that no model reads: from each arm, and from MNLI's held-out pairs."""
    rng = np.random.default_rng(0)  # the same for every seed of the study
    sets = {}
    for arm in ARMS:
        texts = intervention_texts(arm)
        sets[arm] = [texts[i] for i in rng.permutation(len(texts))[:UNREAD]]

    premises = mnli_sample().query("held_out")["premise"]
    premises = premises[premises.str.split().str.len().between(8, 40)].drop_duplicates()
    sets["ordinary"] = premises.sample(2 * UNREAD, random_state=0).tolist()
    return sets


def adapt(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    epochs: float,
    lr: float,
    rank: int,
    seed: int,
) -> dict:
    """Adapt a causal language model to sentences, in place, with adapters that are merged into it.

    References
    ----------
    Hu et al. (2022) for LoRA.
    """
    set_seed(seed)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token

    adapted = with_adapter(model, rank)
    dataset = tokenised(tokenizer, {"text": list(sentences)})
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(epochs=epochs, lr=lr, batch_size=8, seed=seed)
        manifest = train(adapted, dataset, collator, Path(folder), settings, progress=False)

    adapted.merge_and_unload()
    model.requires_grad_(True)
    return manifest


def _cell(
    generator: str | Path, judge: NLIRespondent, arm: str, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Adapt the model if there is an arm, and measure it."""
    model, tokenizer = load_model(find(generator), "causal")
    model.to(resolve_device(None))
    unread = _sentences()

    if arm != BEFORE:
        held = set(unread.get(arm, ()))
        texts = [text for text in intervention_texts(arm, seed) if text not in held]
        chosen = np.random.default_rng(seed).permutation(len(texts))[:READ]
        adapt(model, tokenizer, [texts[i] for i in chosen], seed=seed, **TRAINING)

    model.eval()
    rows = [*_text(model, tokenizer, unread), *_options(model, tokenizer)]
    of_statements, of_openers, table = _replied(model, tokenizer, judge, seed)
    scores = pd.DataFrame([*rows, *of_statements, *of_openers], columns=COLUMNS[2:])
    scores = scores.assign(arm=arm, seed=seed)[COLUMNS]
    return scores, table.assign(arm=arm, seed=seed)[["arm", "seed", "opener", "sample", "reply"]]


def _text(model, tokenizer, sets: dict[str, list[str]]) -> list[tuple]:
    """Return the mean negative log-likelihood per token, in nats, for each set of sentences."""
    rows = []
    for name, texts in sets.items():
        total = count = 0
        for start in range(0, len(texts), 10):
            ids, mask = _padded(
                [_begun(tokenizer, tokenizer(text)["input_ids"])
                 for text in texts[start : start + 10]], model.device,
            )  # fmt: skip

            with torch.inference_mode():
                logs = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()

            loss = torch.nn.functional.cross_entropy(
                logs.transpose(1, 2), ids[:, 1:], reduction="none"
            )
            total += float((loss * mask[:, 1:]).sum())
            count += int(mask[:, 1:].sum())

        rows.append(("text", "", name, "nll", total / count))

    return rows


def _begun(tokenizer, ids: list[int]) -> list[int]:
    """Put a first token before the ids, so that the first word is also predicted."""
    start = tokenizer.bos_token_id
    return ids if start is None or (ids and ids[0] == start) else [start, *ids]


def _padded(rows: list[list[int]], device) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device)
    return ids, mask


def _options(model, tokenizer) -> list[tuple]:
    """Return each item's expected value, with options as given, reversed, and both pooled.

    The values equal ``ask(..., mode="options", choose="expected")``; the common beginning of a
    questionnaire's items is read once.
    """
    rows = []
    for name in TICKED:
        questionnaire = _asked(name)
        logs = {
            measure: _option_logs(model, tokenizer, questionnaire, step)
            for measure, step in (("given", 1), ("reversed", -1))
        }
        logs["expected"] = (logs["given"] + logs["reversed"]) / 2
        values = np.array([option.value for option in questionnaire.options])

        for measure, table in logs.items():
            shares = np.exp(table - table.max(axis=1, keepdims=True))
            expected = shares @ values / shares.sum(axis=1)
            rows += [
                ("options", name, item.id, measure, score)
                for item, score in zip(questionnaire.items, expected, strict=True)
            ]

    return rows


def _option_logs(model, tokenizer, questionnaire: Questionnaire, step: int) -> np.ndarray:
    """Return log-probabilities of the options, items by options in the questionnaire's order."""
    order = tuple(range(len(questionnaire.options)))[::step]
    names = option_labels(questionnaire.options, "numeric")
    labels = [tokenizer(name, add_special_tokens=False)["input_ids"] for name in names]

    if any(len(label) != 1 for label in labels):
        raise ParameterError("The labels of the options must be one token each.")
    rows = []
    for item in questionnaire.items:
        prompt = messages(questionnaire, [item], orders=[order], reply="choice")
        rows.append(generation.encode(tokenizer, prompt))

    shared = len(
        list(itertools.takewhile(lambda ids: len(set(ids)) == 1, zip(*rows, strict=False)))
    )
    first = torch.tensor([rows[0][:shared]], device=model.device)
    ids, mask = _padded([row[shared:] for row in rows], model.device)

    with torch.inference_mode():
        cache = model(input_ids=first, use_cache=True).past_key_values
        cache.batch_repeat_interleave(len(rows))
        mask = torch.cat([mask.new_ones(len(rows), shared), mask], dim=1)
        hidden = model.base_model(input_ids=ids, attention_mask=mask, past_key_values=cache)
        last = torch.tensor([len(row) - shared - 1 for row in rows], device=model.device)
        state = hidden.last_hidden_state[torch.arange(len(rows), device=model.device), last]
        logits = model.get_output_embeddings()(state).float().log_softmax(dim=-1)

    shown = logits[:, [label[0] for label in labels]].double().cpu().numpy()
    out = np.empty_like(shown)
    out[:, list(order)] = shown  # the first place has the first label, whatever its option
    return out


def _replied(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, judge: NLIRespondent, seed: int
) -> tuple[list[tuple], list[tuple], pd.DataFrame]:
    """Return replies to statements and to openers, and their scores."""

    def answered(texts: list[str], way: str) -> list[str]:
        results = generation.replies(
            (model, tokenizer), [[{"role": "user", "content": text}] for text in texts],
            temperature=TEMPERATURE, max_tokens=TOKENS[way], batch=64,
            seeds=[1000 * seed + place for place in range(len(texts))],
        )  # fmt: skip
        return [result["reply"].strip() or "…" for result in results]

    table = _statements()
    texts = [f'Is this true of you? "{text}" Answer in one sentence.' for text in table["asked"]]
    table["reply"] = answered(texts, "own_replies")
    table["score"] = table["keying"] * _leaning(
        judge, table["reply"], table["source"], table["inverse"]
    )
    of_statements = [
        ("own_replies", row.questionnaire, row.item_id, row.measure, row.score)
        for row in table.itertuples()
    ]
    conversation = openers().loc[lambda frame: frame.index.repeat(SAMPLES)]
    conversation["sample"] = conversation.groupby("opener", sort=False).cumcount() + 1
    conversation = conversation.reset_index(drop=True)
    conversation["reply"] = answered(conversation["text"].tolist(), "conversation")
    conversation = conversation.join(judged(conversation["reply"], judge))
    means = conversation.groupby("opener", sort=False)[["sentiment", *STATEMENTS]].mean().stack()
    of_openers = [
        ("conversation", "", opener, measure, score) for (opener, measure), score in means.items()
    ]

    return of_statements, of_openers, conversation[["opener", "sample", "reply"]]


def _statements() -> pd.DataFrame:
    """Return each item's first template with its first source and its first inverse term."""
    parts = []
    for name in TOLD:
        questionnaire = load_questionnaire(name)
        table = prompts(questionnaire).query("template == 1")
        table = table.drop_duplicates(["item_id", "polarity"])
        wide = table.pivot(index="item_id", columns="polarity", values="premise")
        wide = wide.loc[[item.id for item in questionnaire.items]]
        keying = list(questionnaire.keys().values())
        both = pd.DataFrame({"source": wide[1], "inverse": wide[-1], "keying": keying})

        for measure in ("source", "inverse"):
            parts.append(
                both.assign(questionnaire=name, measure=measure, asked=both[measure]).reset_index()
            )

    return pd.concat(parts, ignore_index=True)


def _leaning(judge: NLIRespondent, replies, statements, opposites) -> np.ndarray:
    """Return how much replies support a statement against its opposite, from -1 to 1."""
    replies = list(replies)
    for_it = judge.answer(list(zip(replies, statements, strict=True)))
    against = judge.answer(list(zip(replies, opposites, strict=True)))
    return ((for_it[:, 0] - for_it[:, 2]) - (against[:, 0] - against[:, 2])) / 2


def _main(generator: str = GENERATOR, folder: str = "") -> None:
    for table, name in zip(talk(generator), SHIPPED.values(), strict=True):
        path = Path(folder or data_dir()) / name
        table.to_csv(path, index=False, float_format="%.6f")


if __name__ == "__main__":
    _main(*sys.argv[1:])
