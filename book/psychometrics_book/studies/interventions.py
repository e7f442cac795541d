"""Interventions: change a respondent by domain adaptation, and measure which scores change."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from psychometrics.data import available, fetch, text_table
from psychometrics.exceptions import DataError, ParameterError, RespondentError
from psychometrics.measures.scoring import scale_scores
from psychometrics.models.embedded import embedded_head
from psychometrics.models.model_files import read_json
from psychometrics.models.sources import SMOLLM2, base_path, find
from psychometrics.modes import identify, load_respondent
from psychometrics.modes.nli import PROBABILITIES, NLIRespondent
from psychometrics.paths import cache_dir, data_dir
from psychometrics.questionnaires import Questionnaire
from psychometrics.questionnaires.prompts import prompts
from psychometrics.store import StoredAnswers, key_of
from psychometrics.training.heads import nli_classifier
from psychometrics.training.pairs import mnli_sample, nli_pairs
from psychometrics_book.workers import worker_pool

from .adapting import adapt

ARMS = ("depressive", "coherence", "negative", "neutral")
"""The texts that were written for this project, in ``data/texts``."""
# Number of negative sentences in the paper's control.
_HATE_SPEECH = 1003
# Number of MNLI pairs that measure the cost of an intervention in inference.
_HELD_OUT_PAIRS = 600
_SHIPPED = "interventions.csv"
_COLUMNS = ["run", "epoch", "questionnaire", "scale", "score"]
# Version of this file's treatment of measurements; part of a run's digest.
_HANDLING = "interventions-3"


def intervention_texts(arm: str, seed: int = 0) -> list[str]:
    """Return the sentences of an arm of an intervention study.

    Parameters
    ----------
    arm : str
        One of ``ARMS``; a file of your own, either .txt with one sentence per line or a table
        (.csv, .tsv) with a column ``text``; or ``"hate_speech"``: 1,003 offensive sentences from
        published hate-speech data that VADER classifies as negative (compound score of at most
        -0.05, the threshold of VADER's authors).
    seed : int
        Seed for choosing the hate-speech sentences.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        The arm is unknown, the file has no text, or the hate-speech data cannot be fetched.
    ParameterError
        The file has no column ``text``.

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

    path = Path(arm).expanduser()
    if path.suffix in (".txt", ".csv", ".tsv"):
        if path.suffix == ".txt":
            lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        else:
            lines = text_table(path, ["text"])["text"]

        sentences = [line.strip() for line in lines if line.strip()]
        if not sentences:
            raise DataError(f"{arm} is missing or has no text: write one sentence per line.")
        return sentences

    if arm != "hate_speech":
        names = ", ".join([*ARMS, "hate_speech"])
        raise DataError(f"There is no arm '{arm}': name one of {names}, or a .txt or .csv file.")

    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyser = SentimentIntensityAnalyzer()
    tweets = pd.read_csv(fetch("hate_speech"))["tweet"].sample(frac=1, random_state=seed)
    negative = (text for text in tweets if analyser.polarity_scores(text)["compound"] <= -0.05)
    return [text for text, _ in zip(negative, range(_HATE_SPEECH), strict=False)]


def trajectories(
    respondents: Sequence[str],
    questionnaires: Sequence[Questionnaire],
    arms: Sequence[str] = ARMS,
    *,
    measure_at: Iterable[int] | None = None,
    epochs: int = 20,
    lr: float = 2e-5,
    masked_lm: str = "embedded",
    seeds: Sequence[int] = (0,),
    refit: int = 0,
    store: str | Path | None = None,
    shipped: bool = True,
    progress: bool = True,
) -> pd.DataFrame:
    """Adapt each respondent to each arm's text, and measure all scales between epochs.

    Parameters
    ----------
    respondents : sequence of str
        Names, folders or hub ids. Each respondent starts every arm from its original state.
    questionnaires : sequence of Questionnaire
    arms : sequence of str
        Arms, as in :func:`intervention_texts`; the arm of a file has the file's name.
    measure_at : iterable of int, optional
        Epochs after which to measure, besides 0; by default all epochs.
    epochs, lr, masked_lm
        As in :func:`adapt`; by default, a model that this package trained uses the language model
        that it was trained from.
    seeds : sequence of int
        Every arm is run with each seed.
    refit : int
        Number of MNLI pairs to which the last layer of the NLI head is fitted before every
        measurement. With them, a respondent may also be a base without inference training,
        including ``"minilm"``.
    store : str or Path, optional
        The store of answers, which also contains the measurements; unfinished training is kept in
        the user's cache. A stopped study resumes where it stopped and measures nothing twice.
    shipped : bool
        Whether the project's shipped measurements count as stored.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    DataFrame
        ``respondent_id, base, arm, seed, epoch, questionnaire, scale, score`` and ``run``, a digest
        of all inputs of the measurement; if held-out MNLI pairs are available, also one row per
        epoch whose questionnaire and scale are ``nli_accuracy``.

    Raises
    ------
    ParameterError
        There is nothing to measure, or two arms have the same name.
    RespondentError
        No respondent can be measured.

    Warns
    -----
    UserWarning
        A respondent failed; the warning gives the reason. The others were measured.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 5, who fit the head once, before the model reads any
    text.
    """
    settings = {"lr": lr, "batch_size": 8, "masked_lm": masked_lm}
    epochs_after = range(1, epochs + 1) if measure_at is None else measure_at
    measured = sorted({0, *epochs_after})
    if not respondents or not arms or not seeds or epochs < 1 or measured[-1] > epochs:
        raise ParameterError("Name respondents, arms and seeds; keep measure_at within epochs.")

    texts = {Path(arm).stem if Path(arm).suffix else arm: arm for arm in arms}
    if len(texts) < len(arms):
        raise ParameterError("Two arms have the same name: rename a file.")

    errors: dict[str, RespondentError] = {}
    before, runs = _runs(respondents, questionnaires, texts, seeds, settings, refit, errors)
    stored = pd.read_csv(data_dir() / _SHIPPED)[_COLUMNS]
    stored = stored if shipped else stored.head(0)
    refit_settings = {"refit": refit}
    work = [(store, name, questionnaires, refit_settings, [0], run) for name, run in before.items()]
    tables = [stored, *_all(work, stored, "before", progress, errors)]
    later = [epoch for epoch in measured if epoch]
    work = [
        (store, name, questionnaires, run_settings, later, run)
        for (name, *_), (run, run_settings) in runs.items()
        if name not in errors
    ]
    tables += _all(work, stored, "adapting", progress, errors)

    runs = {key: run for key, run in runs.items() if key[0] not in errors}
    RespondentError.tell(errors, runs)
    table = pd.concat([scores for scores in tables if len(scores)], ignore_index=True)
    table = table.drop_duplicates(["run", "epoch", "scale"])  # shipped measurements come first

    return _by_run(table[table["epoch"].isin(measured)], before, runs)


def _by_run(table: pd.DataFrame, before: dict, runs: dict) -> pd.DataFrame:
    """Return each run's settings and measurements, starting before the intervention."""
    parts = []
    for (name, arm, seed), (run, settings) in runs.items():
        rows = table[table["run"].isin([before[name], run])]
        model = settings["masked_lm"]
        base = "minilm" if model == "embedded" else Path(model).name
        labels = {"arm": arm, "seed": seed, "respondent_id": name, "base": base}
        parts.append(rows.sort_values("epoch", kind="stable").assign(**labels))

    columns = ["respondent_id", "base", "arm", "seed", "epoch"]
    columns += ["questionnaire", "scale", "score", "run"]
    return pd.concat(parts, ignore_index=True)[columns]


def _runs(respondents, questionnaires, texts, seeds, training, refit, errors) -> tuple[dict, dict]:
    """Return the digests of first measurements and of runs, with the runs' settings."""
    common = {
        "prompts": key_of(*(str(x) for q in questionnaires for x in prompts(q).to_numpy().flat)),
        "handling": _HANDLING,
    }
    if refit:
        common["refit"] = refit

    before = {}
    runs = {}
    for name in respondents:
        masked_lm = training["masked_lm"]
        try:
            base = _own_base(name) if masked_lm == "embedded" else masked_lm
            if base != "embedded":
                identify(base, "mlm")  # reports a classifier before the first measurement
            head = str(embedded_head("mlm")[1]) if base == "embedded" else find(base).digest
            fingerprint = identify(_place(name), dtype="float32")["fingerprint"]
        except RespondentError as error:
            errors[name] = error
            continue

        before[name] = key_of(fingerprint, json.dumps(common))
        for (arm, text), seed in product(texts.items(), seeds):
            settings = {"arm": arm, "sentences": intervention_texts(text, seed)} | training
            settings |= {"masked_lm": base, "seed": seed}
            inputs = json.dumps(common | settings | {"head": head})
            runs[name, arm, seed] = key_of(fingerprint, inputs), settings | {"refit": refit}

    return before, runs


def _place(name: str) -> str:
    return base_path() if name == "minilm" else name


def _own_base(name: str) -> str:
    """Return the language model that a respondent was trained from, if it is known."""
    source = find(_place(name))
    if source.kind == "embedded":
        return SMOLLM2 if source.recipe.get("base") == SMOLLM2 else "embedded"
    written = Path(source.folder or "") / "manifest.json"
    if source.base is not None:
        base = str(source.base.folder)
    else:
        base = read_json(name, written).get("base") if written.is_file() else None
    return "embedded" if base in (None, "minilm", base_path()) else str(base)


def _all(work: list[tuple], shipped, desc: str, progress: bool, errors: dict) -> list[pd.DataFrame]:
    """Return the measurements of all runs, and perform missing runs, one per core.

    A run of a small model leaves a second core idle, whereas one run keeps a GPU busy. A respondent
    that fails is added to the errors.
    """
    from tqdm import tqdm

    tables = []
    todo = []
    for item in work:
        store, name, _, _, epochs, run = item
        stored = _measurements(store, name, run)
        tables.append(stored)

        if set(epochs) - set(stored["epoch"]) - set(shipped.loc[shipped["run"] == run, "epoch"]):
            todo.append(item)

    workers = 1 if torch.cuda.is_available() else min(len(todo), os.cpu_count() or 1)
    with tqdm(total=len(todo), desc=desc, unit="run", disable=not progress) as bar:

        def take(name: str, result: Callable[[], pd.DataFrame]) -> None:
            try:
                tables.append(result())
            except BrokenProcessPool:  # the respondent is unknown
                raise
            except Exception as error:
                errors[name] = RespondentError.of(name, error)
            bar.update()

        if workers <= 1:
            for item in todo:
                take(item[1], partial(_run, *item))
        else:
            with worker_pool(workers, partial(torch.set_num_threads, 1)) as pool:
                runs = {pool.submit(_run, *item): item[1] for item in todo}
                for done in as_completed(runs):
                    take(runs[done], done.result)

    return tables


def _run(store, name, questionnaires, settings, wanted, run) -> pd.DataFrame:
    """Adapt one respondent, measure it after each requested epoch, and save every measurement."""
    table = pd.concat([prompts(questionnaire) for questionnaire in questionnaires])
    measured = set(_measurements(store, name, run)["epoch"])
    missing = sorted(set(wanted) - measured)
    respondent = _open(name, settings["refit"])
    manifest = {**respondent.identity, "mode": "interventions", "handling": _HANDLING, "run": run}
    manifest |= settings
    manifest.pop("sentences", None)
    stored = StoredAnswers(store, "interventions", "scales", name, manifest)

    def measure(epoch: int) -> None:
        if epoch in missing:
            if settings["refit"]:
                _refit(respondent, settings["refit"])
            rows = pd.DataFrame(_measured(respondent, table, questionnaires))
            rows = rows.assign(run=run, epoch=epoch)[_COLUMNS]
            rows.index = pd.Index([key_of(run, str(epoch), s) for s in rows["scale"]], name="key")
            stored.add(rows)

    if "arm" not in settings:
        measure(0)
    else:
        checkpoint = cache_dir() / "interventions" / f"{run}.safetensors"
        chosen = {key: settings[key] for key in ("masked_lm", "lr", "seed")}
        chosen |= {"epochs": missing[-1], "checkpoint": checkpoint, "first": missing[0]}
        adapt(respondent, settings["sentences"], measure, **chosen)

    return _measurements(store, name, run)


def _measurements(store, name: str, run: str) -> pd.DataFrame:
    """Return the stored measurements of a run."""
    rows = StoredAnswers(store, "interventions", "scales", name, {}).rows
    if rows.empty:
        return pd.DataFrame(columns=_COLUMNS)
    return rows.loc[rows["run"] == run, _COLUMNS].reset_index(drop=True)


def _measured(respondent, table, questionnaires) -> list[dict]:
    answers = table.assign(respondent_id=respondent.identity["respondent_id"])
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    answers[list(PROBABILITIES)] = respondent.answer(pairs)
    rows = scale_scores(answers, questionnaires=questionnaires).to_dict("records")

    if available("mnli_entailment", "mnli_neutral", "mnli_contradiction"):
        pairs = mnli_sample().query("held_out").sample(_HELD_OUT_PAIRS, random_state=0)
        chances = respondent.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
        label = pairs["label"].to_numpy()
        right = chances.argmax(axis=1) == label

        if np.isnan(chances).any():  # two outputs, entailment or not
            right = (chances[:, 0] > 0.5) == (label == 0)

        score = float(right.mean())
        rows.append({"questionnaire": "nli_accuracy", "scale": "nli_accuracy", "score": score})

    return rows


def _open(name: str, refit: int) -> NLIRespondent:
    """Load a respondent, or a base whose head is then refitted."""
    try:
        return load_respondent(_place(name), dtype="float32")
    except RespondentError as error:
        if not refit or error.kind not in ("architecture", "labels"):
            raise
    torch.manual_seed(0)
    model, tokenizer = nli_classifier(name)
    return NLIRespondent(model.eval(), tokenizer, identify(_place(name), dtype="float32"))


@torch.inference_mode()
def _refit(respondent: NLIRespondent, pairs: int) -> None:
    """Fit the last layer of the NLI head to MNLI pairs, as the respondent reads them now."""
    from sklearn.linear_model import LogisticRegression

    model = respondent.model
    tokenizer = respondent.tokenizer
    named = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    *path, last = named[-1].split(".")
    parent = model.get_submodule(".".join(path))
    layer = getattr(parent, last)

    if layer.out_features != len(respondent.order):
        raise RespondentError("The model has no head with three outputs to refit: use refit=0.")
    sample = nli_pairs("mnli")
    sample = sample.sample(min(pairs, len(sample)), random_state=0)
    if sample["label"].nunique() < len(respondent.order):
        raise ParameterError(f"refit: {pairs} pairs do not cover all labels; use more pairs.")

    sample = sample.sort_values("premise", key=lambda texts: texts.str.len())
    options = {"truncation": True, "max_length": 128, "padding": True, "return_tensors": "pt"}
    setattr(parent, last, torch.nn.Identity())  # the model then returns its last layer's inputs
    vectors = []
    for start in range(0, len(sample), 64):
        batch = sample.iloc[start : start + 64]
        inputs = tokenizer(batch["premise"].tolist(), batch["hypothesis"].tolist(), **options)
        vectors.append(model(**inputs.to(model.device)).logits.float().cpu().numpy())

    setattr(parent, last, layer)
    vectors = np.concatenate(vectors)
    size = vectors.std()
    biased = layer.bias is not None
    fitted = LogisticRegression(max_iter=1000, fit_intercept=biased)
    fitted.fit(vectors / size, sample["label"])
    layer.weight[respondent.order] = torch.tensor(fitted.coef_ / size).to(layer.weight)

    if biased:
        layer.bias[respondent.order] = torch.tensor(fitted.intercept_).to(layer.bias)
