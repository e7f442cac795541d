"""Interventions: change a respondent by domain adaptation and see which scores move."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from .asking.answers import check_columns, check_once
from .asking.store import StoredAnswers, key_of
from .data import available, fetch, mnli_sample
from .exceptions import DataError, ParameterError, RespondentError
from .measures.items import adjust
from .measures.scoring import scale_scores
from .models.embedded import embedded_head, load_masked_lm
from .models.loading import resolve_dtype
from .models.sources import find
from .modes import identify, load_respondent
from .modes.nli import PROBABILITIES, NLIRespondent
from .paths import cache_dir, data_dir
from .questionnaires import Questionnaire
from .questionnaires.prompts import prompts

ARMS = ("depressive", "coherence", "negative", "neutral")
"""Texts written for this project, in ``data/texts``."""
_HATE_SPEECH = 1003
"""Negative sentences of the paper's control."""
_HELD_OUT_PAIRS = 600
"""MNLI pairs that show what an intervention costs in inference."""
SHIPPED = "interventions.csv"
_COLUMNS = ["run", "epoch", "questionnaire", "scale", "score"]
_HANDLING = "interventions-2"
"""Version of all that this file does to a measurement; part of its run's digest."""
_BATCH = 8
_CHECKPOINT_SECONDS = 60
"""Training that a stopped run may lose."""


def intervention_texts(arm: str, seed: int = 0) -> list[str]:
    """Sentences of an arm.

    Parameters
    ----------
    arm : str
        One of ``ARMS``, or ``"hate_speech"``: 1,003 sentences of the hate-speech data that VADER
        finds negative (compound score of -0.05 or less, its authors' threshold), which belong to
        others and are offensive.
    seed : int
        Of the choice of hate-speech sentences.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        There is no such arm, or the hate-speech data cannot be had.

    References
    ----------
    Reuben et al. (2024), section 3.3.5; Hutto and Gilbert (2014) for VADER.

    Examples
    --------
    >>> len(intervention_texts("neutral")) >= 200
    True
    """
    if arm in ARMS:
        return pd.read_csv(data_dir() / "texts" / f"{arm}.csv")["text"].tolist()
    if arm != "hate_speech":
        raise DataError(f"There is no arm '{arm}': name one of {', '.join(ARMS)}, hate_speech.")
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyser = SentimentIntensityAnalyzer()
    tweets = pd.read_csv(fetch("hate_speech"))["tweet"].sample(frac=1, random_state=seed)
    negative = (text for text in tweets if analyser.polarity_scores(text)["compound"] <= -0.05)
    return [text for text, _ in zip(negative, range(_HATE_SPEECH), strict=False)]


def adapt(
    respondent: NLIRespondent,
    sentences: Sequence[str],
    after_epoch: Callable[[int], None],
    *,
    masked_lm: str = "embedded",
    epochs: int = 20,
    lr: float = 2e-5,
    seed: int = 0,
    checkpoint: Path | None = None,
) -> None:
    """Train a respondent's encoder on text by masked language modelling, its NLI head untouched.

    Parameters
    ----------
    respondent : NLIRespondent
        In float32; its encoder is changed in place, but for the word embeddings: they cost half of
        the time, and the masked-LM head's output is tied to them.
    sentences : sequence of str
        The text.
    after_epoch : callable
        Called with the number of the epoch after each.
    masked_lm : str
        Where the masked-LM head comes from, ``"embedded"``, a folder or a hub id; of the same
        architecture as the respondent. It is trained along.
    epochs, lr
        The paper's settings by default, as is the batch size of 8; the learning rate is constant.
    seed : int
        Of the order of sentences and of the masks.
    checkpoint : Path, optional
        File in which the state is kept from time to time; a stopped run goes on from it, to the
        same end as one that was not stopped, and calls ``after_epoch`` for the later epochs only.

    Raises
    ------
    RespondentError
        The head is of another architecture, or the respondent is not in float32.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 4 (criterion validity).
    """
    from transformers import DataCollatorForLanguageModeling

    who = respondent.identity
    if who["dtype"] != "float32":
        raise RespondentError(f"{who['respondent_id']} must be loaded in float32 to be trained.")
    model, tokenizer = _masked_model(respondent, masked_lm)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = [tokenizer(text, truncation=True, max_length=128) for text in sentences]
    collator = DataCollatorForLanguageModeling(tokenizer)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0.01, fused=True)
    done = _resume(checkpoint, model, optimizer, generator)
    saved = time.monotonic()
    for epoch in range(done + 1, epochs + 1):
        model.train()
        order = torch.randperm(len(features), generator=generator).tolist()
        for start in range(0, len(order), _BATCH):
            loss = _masked_loss(model, collator([features[i] for i in order[start:][:_BATCH]]))
            if loss is not None:
                loss.backward()
                torch.nn.utils.clip_grad_norm_(trained, 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        model.eval()
        respondent.model.eval()
        after_epoch(epoch)
        if checkpoint and time.monotonic() - saved > _CHECKPOINT_SECONDS:
            _keep(checkpoint, model, optimizer, generator, epoch)
            saved = time.monotonic()
    if checkpoint:
        checkpoint.unlink(missing_ok=True)


def _masked_model(respondent: NLIRespondent, masked_lm: str):
    """The masked-LM head on the respondent's own encoder, and its tokenizer."""
    model, tokenizer = load_masked_lm(masked_lm)
    kinds = model.config.model_type, respondent.model.config.model_type
    if kinds[0] != kinds[1]:
        raise RespondentError(f"masked_lm is {kinds[0]}, the respondent {kinds[1]}: name another.")
    encoder = respondent.model.base_model
    shapes = [one.get_input_embeddings().weight.shape for one in (model, encoder)]
    if shapes[0] != shapes[1]:
        said = " and ".join(" × ".join(map(str, shape)) for shape in shapes)
        raise RespondentError(
            f"masked_lm and the respondent have other vocabularies ({said}): name the masked "
            "language model that the respondent was trained from."
        )
    setattr(model, model.base_model_prefix, encoder)
    model.tie_weights()
    model.requires_grad_(True)  # merged adapters come frozen
    encoder.get_input_embeddings().weight.requires_grad_(False)
    return model.to(respondent.model.device), tokenizer


def _masked_loss(model, batch):
    """Cross entropy at the masked tokens of a batch, None without any."""
    batch = batch.to(model.device)
    labels = batch.pop("labels")
    masked = labels != -100
    if not masked.any():
        return None
    low = resolve_dtype(None, model.device) == "bfloat16"
    with torch.autocast(model.device.type, torch.bfloat16, enabled=low):
        logits = _head(model)(model.base_model(**batch).last_hidden_state[masked])
    return torch.nn.functional.cross_entropy(logits.float(), labels[masked])


def trajectories(
    respondents: Sequence[str],
    questionnaires: Sequence[Questionnaire],
    arms: Sequence[str] = ARMS,
    *,
    measure_at: Iterable[int] | None = None,
    store: str | Path | None = None,
    shipped: bool = True,
    progress: bool = True,
    **training: object,
) -> pd.DataFrame:
    """Adapt each respondent to each arm's text, and measure all scales along the way.

    Parameters
    ----------
    respondents : sequence of str
        Names, folders or hub ids; each starts every arm as it is.
    questionnaires : sequence of Questionnaire
    arms : sequence of str
        As in :func:`intervention_texts`.
    measure_at : iterable of int, optional
        Epochs after which to measure, besides 0; by default all.
    store : str or Path, optional
        The store of answers, where measurements are kept; unfinished training lies in the user's
        cache. A stopped study goes on where it was and measures nothing twice.
    shipped : bool
        Whether measurements that come with the project count as being in the store.
    progress : bool
        Show a progress bar.
    **training
        ``epochs``, ``lr``, ``masked_lm`` and ``seed``, as in :func:`adapt`.

    Returns
    -------
    DataFrame
        ``respondent_id, arm, epoch, questionnaire, scale, score`` and ``run``, a digest of all that
        determines the measurement; besides, one row per epoch with questionnaire and scale
        ``nli_accuracy`` where held-out MNLI pairs are at hand.

    Raises
    ------
    ParameterError
        There is nothing to measure.
    """
    defaults = {"lr": 2e-5, "batch_size": _BATCH, "masked_lm": "embedded", "seed": 0}
    epochs = training.pop("epochs", 20)
    if strange := set(training) - set(defaults):
        raise ParameterError(f"Training has no setting '{min(strange)}'.")
    training = defaults | training
    wanted = sorted({0, *(measure_at if measure_at is not None else range(1, epochs + 1))})
    if not respondents or not arms or epochs < 1 or wanted[-1] > epochs:
        raise ParameterError("Name a respondent, an arm and an epoch, and measure within these.")
    before, runs = _runs(respondents, questionnaires, arms, training)
    known = _shipped() if shipped else pd.DataFrame(columns=_COLUMNS)
    work = [(store, name, questionnaires, None, [0], run) for name, run in before.items()]
    found = [known, *_all(work, known, "before", progress)]
    later = [epoch for epoch in wanted if epoch]
    work = [
        (store, name, questionnaires, how, later, run) for (name, _), (run, how) in runs.items()
    ]
    found += _all(work, known, "adapting", progress)
    table = pd.concat([part for part in found if len(part)], ignore_index=True)
    table = table.drop_duplicates(["run", "epoch", "scale"])  # what is shipped comes first
    parts = []
    for (name, arm), (run, _) in runs.items():
        part = table[table["run"].isin([before[name], run]) & table["epoch"].isin(wanted)]
        parts.append(part.sort_values("epoch", kind="stable").assign(arm=arm, respondent_id=name))
    columns = ["respondent_id", "arm", "epoch", "questionnaire", "scale", "score", "run"]
    return pd.concat(parts, ignore_index=True)[columns]


def before_after(scores: pd.DataFrame, n_resamples: int = 5000, seed: int = 0) -> pd.DataFrame:
    """Paired comparison of the last with the first measurement, per arm and scale.

    Parameters
    ----------
    scores : DataFrame
        As :func:`trajectories` gives it.
    n_resamples, seed : int
        Of the sign flips, where there are more than twelve respondents; else all are tried.

    Returns
    -------
    DataFrame
        ``arm, scale, n`` (respondents with both measurements; the others are left out), ``t0, t1``
        (means), ``change`` with its 95 % interval ``low, high``, ``t, p, p_holm`` over all rows
        with a p value, ``dz``, the mean change over the standard deviation of changes, and the
        null: ``null_low, null_high``, the middle 95 % of the mean change when the sign of each
        respondent's change is drawn at random, and ``p_flip``, two-sided, of these flips. Where all
        changes are the same, ``low, high, t, p, dz`` are missing: there is no spread to judge by.

    Raises
    ------
    ParameterError
        A column is missing, a measurement is there twice, or fewer than two respondents have both
        measurements.

    References
    ----------
    Reuben et al. (2024), table 3; Cohen (1988) for dz; Holm (1979). Computed by scipy.
    """
    from scipy.stats import ttest_rel

    check_columns(scores, ["respondent_id", "arm", "epoch", "scale"], ["score"])
    check_once(scores, ["respondent_id", "arm", "epoch", "scale"])
    rows = []
    for (arm, scale), part in scores.groupby(["arm", "scale"], sort=False):
        wide = part.pivot(index="respondent_id", columns="epoch", values="score")
        if wide.shape[1] < 2:
            raise ParameterError(f"{scale} was measured once in {arm}: measure before and after.")
        wide = wide[[wide.columns.min(), wide.columns.max()]].dropna().astype(float)
        first, last = wide.iloc[:, 0], wide.iloc[:, -1]
        change = last - first
        if len(change) < 2:
            raise ParameterError("A paired test needs at least two respondents: name more.")
        spread = change.std()
        row = {"arm": arm, "scale": scale, "n": len(change), "t0": first.mean(),
               "t1": last.mean(), "change": change.mean()}  # fmt: skip
        row |= dict.fromkeys(("low", "high", "t", "p", "dz"), np.nan)
        if spread > 1e-9 * max(1.0, change.abs().max()):
            test = ttest_rel(last, first)
            row["low"], row["high"] = test.confidence_interval()
            row |= {"t": test.statistic, "p": test.pvalue, "dz": change.mean() / spread}
        flipped = _flipped_means(change.to_numpy(), n_resamples, seed)
        row["null_low"], row["null_high"] = np.quantile(flipped, [0.025, 0.975])
        row["p_flip"] = (np.abs(flipped) >= abs(change.mean()) - 1e-12).mean()
        rows.append(row)
    if not rows:
        raise ParameterError("There are no scores to compare.")
    frame = pd.DataFrame(rows)
    frame.insert(frame.columns.get_loc("p") + 1, "p_holm", adjust(frame["p"]))
    return frame


def _flipped_means(change: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """Mean change under all flips of signs, or under drawn ones and those that were found."""
    n = len(change)
    if n <= 12:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    else:
        signs = np.random.default_rng(seed).choice([-1, 1], size=(n_resamples, n))
        signs = np.vstack([np.ones(n, dtype=int), signs])
    return signs @ change / n


def _runs(respondents, questionnaires, arms, training: dict) -> tuple[dict, dict]:
    """Digests of each respondent's first measurement and of each run, with the run's settings."""
    common = {
        "prompts": key_of(*(str(x) for q in questionnaires for x in prompts(q).to_numpy().flat)),
        "handling": _HANDLING,
    }
    masked_lm = training["masked_lm"]
    head = str(embedded_head("mlm")[1]) if masked_lm == "embedded" else find(masked_lm).digest
    before, runs = {}, {}
    for name in respondents:
        fingerprint = identify(name, dtype="float32")["fingerprint"]
        before[name] = key_of(fingerprint, json.dumps(common))
        for arm in arms:
            settings = {"arm": arm, "sentences": intervention_texts(arm, training["seed"])}
            settings |= training
            what = json.dumps(common | settings | {"head": head})
            runs[name, arm] = key_of(fingerprint, what), settings
    return before, runs


def _all(work: list[tuple], shipped: pd.DataFrame, what: str, progress: bool) -> list[pd.DataFrame]:
    """The store's measurements of all runs; what is nowhere yet is done, a run on each core.

    Small models leave a second core idle; a GPU is kept busy by one run.
    """
    from tqdm import tqdm

    found, todo = [], []
    for item in work:
        store, name, _, _, wanted, run = item
        kept = _measurements(store, name, run)
        found.append(kept)
        if set(wanted) - set(kept["epoch"]) - set(shipped.loc[shipped["run"] == run, "epoch"]):
            todo.append(item)
    workers = 1 if torch.cuda.is_available() else min(len(todo), os.cpu_count() or 1)
    with tqdm(total=len(todo), desc=what, unit="run", disable=not progress) as bar:
        if workers <= 1:
            for item in todo:
                found.append(_run(*item))
                bar.update()
        else:
            spawn = get_context("spawn")
            with ProcessPoolExecutor(workers, spawn, torch.set_num_threads, (1,)) as pool:
                for done in as_completed([pool.submit(_run, *item) for item in todo]):
                    found.append(done.result())
                    bar.update()
    return found


def _run(store, name, questionnaires, settings, wanted, run) -> pd.DataFrame:
    """Measure one respondent where needed, adapting in between; every measurement is saved."""
    table = pd.concat([prompts(questionnaire) for questionnaire in questionnaires])
    known = set(_measurements(store, name, run)["epoch"])
    missing = sorted(set(wanted) - known)
    respondent = load_respondent(name, dtype="float32")
    manifest = respondent.identity | {"mode": "interventions", "handling": _HANDLING, "run": run}
    manifest |= settings or {}
    manifest.pop("sentences", None)
    kept = StoredAnswers(store, "interventions", "scales", name, manifest)

    def measure(epoch: int) -> None:
        if epoch in missing:
            rows = pd.DataFrame(_measured(respondent, table, questionnaires))
            rows = rows.assign(run=run, epoch=epoch)[_COLUMNS]
            rows.index = pd.Index([key_of(run, str(epoch), s) for s in rows["scale"]], name="key")
            kept.add(rows)

    if settings is None:
        measure(0)
    else:
        checkpoint = cache_dir() / "interventions" / f"{run}.safetensors"
        if _epoch(checkpoint) >= missing[0]:
            checkpoint.unlink()  # it is past an epoch that is to be measured now
        chosen = {key: settings[key] for key in ("masked_lm", "lr", "seed")}
        chosen |= {"epochs": missing[-1], "checkpoint": checkpoint}
        adapt(respondent, settings["sentences"], measure, **chosen)
    return _measurements(store, name, run)


def _measurements(store, name: str, run: str) -> pd.DataFrame:
    """What the store has of a run."""
    rows = StoredAnswers(store, "interventions", "scales", name, {}).rows
    if rows.empty:
        return pd.DataFrame(columns=_COLUMNS)
    return rows.loc[rows["run"] == run, _COLUMNS].reset_index(drop=True)


def _shipped() -> pd.DataFrame:
    """Measurements that come with the project."""
    path = data_dir() / SHIPPED
    return pd.read_csv(path)[_COLUMNS] if path.is_file() else pd.DataFrame(columns=_COLUMNS)


def _keep(path: Path, model, optimizer, generator, epoch: int) -> None:
    """Everything that the next epoch depends on, in one file of tensors."""
    from safetensors.torch import save_file

    tensors = {f"model.{name}": p.detach() for name, p in model.named_parameters()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in state.items()}
    tensors |= {"order": generator.get_state(), "random": torch.get_rng_state()}
    tensors["epoch"] = torch.tensor(epoch)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    save_file(tensors, part)
    part.replace(path)


def _resume(path: Path | None, model, optimizer, generator) -> int:
    """Take up a kept state; gives the number of epochs that it has behind it."""
    from safetensors.torch import load_file

    if path is None or not path.is_file():
        return 0
    tensors = load_file(path)
    model.load_state_dict(
        {name[6:]: value for name, value in tensors.items() if name.startswith("model.")},
        strict=False,  # tied weights are kept once
    )
    content, states = optimizer.state_dict(), {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            states.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict(content | {"state": states})
    generator.set_state(tensors["order"])
    torch.set_rng_state(tensors["random"])
    return int(tensors["epoch"])


def _epoch(path: Path) -> int:
    from safetensors import safe_open

    if not path.is_file():
        return 0
    with safe_open(path, framework="pt") as file:
        return int(file.get_tensor("epoch"))


def _measured(respondent, table, questionnaires) -> list[dict]:
    # The scores need no more precision than when the questionnaires are asked otherwise.
    dtype = resolve_dtype(None, respondent.model.device)
    model = copy.deepcopy(respondent.model).to(getattr(torch, dtype))
    asked = NLIRespondent(model, respondent.tokenizer, respondent.identity | {"dtype": dtype})
    answers = table.assign(respondent_id=respondent.identity["respondent_id"])
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    answers[list(PROBABILITIES)] = asked.answer(pairs)
    rows = scale_scores(answers, questionnaires=questionnaires).to_dict("records")
    if available("mnli_entailment", "mnli_neutral", "mnli_contradiction"):
        pairs = mnli_sample().query("held_out").sample(_HELD_OUT_PAIRS, random_state=0)
        found = asked.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
        right = float((found.argmax(axis=1) == pairs["label"].to_numpy()).mean())
        rows.append({"questionnaire": "nli_accuracy", "scale": "nli_accuracy", "score": right})
    return rows


def _head(model):
    """The masked-LM head: hidden states in, logits over the vocabulary out."""
    for name in ("cls", "lm_head", "predictions"):
        if hasattr(model, name):
            return getattr(model, name)
    if hasattr(model, "vocab_projector"):  # DistilBERT has its parts side by side
        return lambda hidden: model.vocab_projector(
            model.vocab_layer_norm(model.activation(model.vocab_transform(hidden)))
        )
    if hasattr(model, "generator_lm_head"):
        return lambda hidden: model.generator_lm_head(model.generator_predictions(hidden))
    raise RespondentError(f"The masked-LM head of {model.config.model_type} is not known.")
