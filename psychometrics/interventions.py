"""Interventions: change a respondent by domain adaptation and see which scores move.

A respondent reads text as its family was pre-trained to: encoders (and BART) fill in masks,
decoders predict the next token, T5 fills in spans, XLNet predicts tokens in a random order.

One file: training and measuring alternate, and a run resumes from the state of both.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import DataCollatorForLanguageModeling, DataCollatorForPermutationLanguageModeling
from transformers.models.auto import modeling_auto

from .data import available, fetch, text_table
from .exceptions import DataError, ParameterError, RespondentError
from .files import replacing
from .measures.scoring import scale_scores
from .models.embedded import embedded_head, load_masked_lm
from .models.loading import load_model
from .models.model_files import read_json
from .models.sources import SMOLLM2, base_path, find
from .modes import identify, load_respondent
from .modes.nli import PROBABILITIES, NLIRespondent
from .paths import cache_dir, data_dir
from .questionnaires import Questionnaire
from .questionnaires.prompts import prompts
from .store import StoredAnswers, key_of
from .training.heads import nli_classifier
from .training.pairs import mnli_sample, nli_pairs

ARMS = ("depressive", "coherence", "negative", "neutral")
"""Texts written for this project, in ``data/texts``."""
# Negative sentences of the paper's control.
_HATE_SPEECH = 1003
# MNLI pairs that show what an intervention costs in inference.
_HELD_OUT_PAIRS = 600
_SHIPPED = "interventions.csv"
_COLUMNS = ["run", "epoch", "questionnaire", "scale", "score"]
# Version of all that this file does to a measurement; part of its run's digest.
_HANDLING = "interventions-3"
_BATCH = 8
# Training that a stopped run may lose.
_CHECKPOINT_SECONDS = 60


def intervention_texts(arm: str, seed: int = 0) -> list[str]:
    """Return the sentences of an arm.

    Parameters
    ----------
    arm : str
        One of ``ARMS``; a file of your own, .txt with a sentence a line or a table (.csv, .tsv)
        with a column ``text``; or ``"hate_speech"``: 1,003 sentences of the hate-speech data that
        VADER finds negative (compound score of -0.05 or less, its authors' threshold), which belong
        to others and are offensive.
    seed : int
        Seed of the choice of hate-speech sentences.

    Returns
    -------
    list of str

    Raises
    ------
    DataError
        There is no such arm, its file has no text, or the hate-speech data cannot be fetched.
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

    own = Path(arm).expanduser()
    if own.suffix in (".txt", ".csv", ".tsv"):
        if own.suffix == ".txt":
            lines = own.read_text(encoding="utf-8").splitlines() if own.is_file() else []
        else:
            lines = text_table(own, ["text"])["text"]

        sentences = [line.strip() for line in lines if line.strip()]
        if not sentences:
            raise DataError(f"{arm} is missing or has no text: write a sentence a line.")
        return sentences

    if arm != "hate_speech":
        known = ", ".join([*ARMS, "hate_speech"])
        raise DataError(f"There is no arm '{arm}': name one of {known}, or a .txt or .csv file.")

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
    """Train what a respondent reads with on text, as a language model; its NLI head is untouched.

    Parameters
    ----------
    respondent : NLIRespondent
        In float32; its layers are changed in place, but for the word embeddings: they cost half of
        the time, and the language model's output is often tied to them.
    sentences : sequence of str
        The text.
    after_epoch : callable
        Called with the number of the epoch after each.
    masked_lm : str
        Source of the language model's head: ``"embedded"``, a folder or a hub id. Its architecture
        is that of the respondent. The head is trained together with the network. A respondent that
        answers by a word is a language model itself.
    epochs, lr
        The paper's settings by default, as is the batch size of 8; the learning rate is constant.
    seed : int
        Seed of the order of sentences and of the masks.
    checkpoint : Path, optional
        File in which the state is kept from time to time; a stopped run goes on from it, to the
        same end as one that was not stopped, and calls ``after_epoch`` for the later epochs only.

    Raises
    ------
    RespondentError
        The head is of another architecture, the respondent's family has no language model, or it
        is not in float32.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 4 (criterion validity); for T5, Raffel et al. (2020),
    section 3.1.4; for XLNet, Yang et al. (2019), section 2.2.
    """
    who = respondent.identity

    if who["dtype"] != "float32":
        raise RespondentError(f"{who['respondent_id']} must be loaded in float32 to be trained.")
    model = _language_model(respondent, masked_lm)
    tokenizer = respondent.tokenizer
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    features = [tokenizer(text, truncation=True, max_length=128) for text in sentences]
    collator = _collator(model, tokenizer)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=0.01, fused=True)
    done = _resume(checkpoint, model, optimizer, generator)
    saved = time.monotonic()

    for epoch in range(done + 1, epochs + 1):
        model.train()
        order = torch.randperm(len(features), generator=generator).tolist()
        for start in range(0, len(order), _BATCH):
            loss = _loss(model, collator([features[i] for i in order[start:][:_BATCH]]))
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


def _language_model(respondent: NLIRespondent, name: str) -> torch.nn.Module:
    """Return a language model whose layers are the respondent's."""
    own = respondent.model
    body = own.base_model
    model = own  # one that answers by a word has its head

    if own.get_output_embeddings() is None:
        model = _load_language_model(name)
        kinds = model.config.model_type, own.config.model_type
        if kinds[0] != kinds[1]:
            said = f"masked_lm is {kinds[0]}, the model {kinds[1]}"
            raise RespondentError(f"{said}: name what it was trained from.")

        shapes = [one.get_input_embeddings().weight.shape for one in (model, body)]
        if shapes[0] != shapes[1]:
            said = " and ".join(" × ".join(map(str, shape)) for shape in shapes)
            raise RespondentError(f"masked_lm has another vocabulary than the model: {said}.")

        if hasattr(model, model.base_model_prefix):
            setattr(model, model.base_model_prefix, body)
        else:  # T5 has its halves side by side
            for part, module in body.named_children():
                setattr(model, part, module)

        model.tie_weights()

    model.requires_grad_(True)  # merged adapters come frozen
    body.get_input_embeddings().weight.requires_grad_(False)
    return model.to(own.device)


def _load_language_model(name: str) -> torch.nn.Module:
    """Load a language model of the kind that its family was pre-trained as."""
    kind = "bert" if name == "embedded" else find(name).config.get("model_type")
    if kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return load_masked_lm(name)[0]
    spans = kind in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    other = "permutation" if kind == "xlnet" else "causal"
    return load_model(name, "encoder-decoder" if spans else other)[0]


def _collator(model, tokenizer) -> Callable:
    """Return the function that makes a batch of texts, with the tokens to predict as labels."""
    kind = model.config.model_type
    masked = kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if masked or not (kind == "xlnet" or model.config.is_encoder_decoder):
        return DataCollatorForLanguageModeling(tokenizer, mlm=masked)

    if kind == "xlnet":
        permute = DataCollatorForPermutationLanguageModeling(tokenizer).torch_mask_tokens

        def permuted(features: list) -> dict:
            batch = tokenizer.pad(features, pad_to_multiple_of=2, return_tensors="pt")
            names = "input_ids", "perm_mask", "target_mapping", "labels"
            of_tokens = zip(names, permute(batch["input_ids"]), strict=True)
            return {"attention_mask": batch["attention_mask"], **dict(of_tokens)}

        return permuted

    marks = tokenizer.convert_tokens_to_ids([f"<extra_id_{number}>" for number in range(100)])
    if tokenizer.unk_token_id in marks or None in marks:
        raise RespondentError(f"The {kind}'s tokenizer has no <extra_id_0>: it cannot read spans.")

    def spans(features: list) -> dict:
        pairs = [_spans(one["input_ids"], iter(marks)) for one in features]
        texts, labels = (
            tokenizer.pad([{"input_ids": ids} for ids in part], return_tensors="pt")
            for part in zip(*pairs, strict=True)
        )
        hidden = labels["attention_mask"] == 0
        return {**texts, "labels": labels["input_ids"].masked_fill(hidden, -100)}

    return spans


def _spans(ids: list[int], marks: Iterator[int]) -> tuple[list[int], list[int]]:
    """Replace spans of 15 % of a text's tokens, and one at least, by marks; and what they hold."""
    *ids, end = ids
    chosen = torch.rand(len(ids)) < 0.15
    chosen[torch.randint(len(ids), (1,))] = True
    kept = []
    hidden = []
    for place, token in enumerate(ids):
        if chosen[place] and not (place and chosen[place - 1]):
            mark = next(marks)
            kept.append(mark)
            hidden.append(mark)

        (hidden if chosen[place] else kept).append(token)

    return [*kept, end], [*hidden, end]


def _loss(model, batch):
    """Cross entropy of what a batch hides, None where it hides nothing."""
    batch = {name: values.to(model.device) for name, values in batch.items()}
    chosen = batch["labels"] != -100
    if not chosen.any():
        return None

    if model.config.model_type not in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return model(**batch).loss

    labels = batch.pop("labels")[chosen]

    if hasattr(model, "cls"):  # at the masked tokens alone, which saves time
        logits = model.cls(model.base_model(**batch).last_hidden_state[chosen])
    else:
        logits = model(**batch).logits[chosen]

    return torch.nn.functional.cross_entropy(logits, labels)


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
        As in :func:`intervention_texts`; a file's arm is called by its name.
    measure_at : iterable of int, optional
        Epochs after which to measure, besides 0; by default all.
    store : str or Path, optional
        The store of answers, where measurements are kept; unfinished training lies in the user's
        cache. A stopped study goes on where it was and measures nothing twice.
    shipped : bool
        Whether the project's shipped measurements count as stored.
    progress : bool
        Show a progress bar.
    **training
        ``epochs``, ``lr``, ``masked_lm`` and ``seed``, as in :func:`adapt`; by default a model
        that was trained here reads with the language model that it was trained from. ``seeds``, in
        the place of ``seed``, runs every arm with each. ``refit`` (0) fits the last layer of the
        NLI head to so many pairs before every measurement: of MNLI, or of ``refit_on``, a source
        as :func:`psychometrics.training.train_nli` takes it; then a respondent may also be a
        base that was never trained to infer, ``"minilm"`` too.

    Returns
    -------
    DataFrame
        ``respondent_id, base, arm, seed, epoch, questionnaire, scale, score`` and ``run``, a digest
        of all that determines the measurement; besides, one row per epoch with questionnaire and
        scale ``nli_accuracy`` where held-out MNLI pairs are at hand.

    Raises
    ------
    ParameterError
        There is nothing to measure, or two arms have one name.
    RespondentError
        No respondent can be measured.

    Warns
    -----
    UserWarning
        A respondent failed, with the reason; the others were measured.

    References
    ----------
    Reuben et al. (2024), sections 3.3.5 and 5: there the head is fitted once, before any reading.
    """
    epochs = training.pop("epochs", 20)
    refit = _refitting(training.pop("refit", 0), training.pop("refit_on", "mnli"))
    seeds = training.pop("seeds", [training.get("seed", 0)])
    settings = _settings(training)
    epochs_after = range(1, epochs + 1) if measure_at is None else measure_at
    measured = sorted({0, *epochs_after})
    if not respondents or not arms or not seeds or epochs < 1 or measured[-1] > epochs:
        raise ParameterError("Name a respondent, an arm and an epoch, and measure within these.")

    texts = {Path(arm).stem if Path(arm).suffix else arm: arm for arm in arms}
    if len(texts) < len(arms):
        raise ParameterError("Two arms have one name: rename a file.")

    errors: dict[str, RespondentError] = {}
    before, runs = _runs(respondents, questionnaires, texts, seeds, settings, refit, errors)
    known = _shipped() if shipped else pd.DataFrame(columns=_COLUMNS)
    work = [(store, name, questionnaires, refit, [0], run) for name, run in before.items()]
    tables = [known, *_all(work, known, "before", progress, errors)]
    later = [epoch for epoch in measured if epoch]
    work = [
        (store, name, questionnaires, run_settings, later, run)
        for (name, *_), (run, run_settings) in runs.items()
        if name not in errors
    ]
    tables += _all(work, known, "adapting", progress, errors)

    runs = {key: run for key, run in runs.items() if key[0] not in errors}
    RespondentError.tell(errors, runs)
    table = pd.concat([part for part in tables if len(part)], ignore_index=True)
    table = table.drop_duplicates(["run", "epoch", "scale"])  # shipped measurements come first

    return _by_run(table[table["epoch"].isin(measured)], before, runs)


def _refitting(pairs: int, source: str | Path) -> dict:
    """Return how the head is refitted; other pairs than MNLI's with what tells them apart."""
    if str(source) == "mnli":
        return {"refit": pairs}
    texts = nli_pairs(str(source)).to_json()
    return {"refit": pairs, "refit_on": str(source), "pairs": key_of(texts)}


def _settings(training: dict) -> dict:
    """Return all settings of the training, with the usual values of those that are not given."""
    defaults = {"lr": 2e-5, "batch_size": _BATCH, "masked_lm": "embedded", "seed": 0}
    strange = set(training) - set(defaults)
    if strange:
        raise ParameterError(f"Training has no setting '{min(strange)}'.")

    return defaults | training


def _by_run(table: pd.DataFrame, before: dict, runs: dict) -> pd.DataFrame:
    """Return the measurements of each run, starting before the intervention, with the settings that
    distinguish runs."""
    parts = []
    for (name, arm, seed), (run, settings) in runs.items():
        part = table[table["run"].isin([before[name], run])]
        model = settings["masked_lm"]
        base = "minilm" if model == "embedded" else Path(model).name
        labels = {"arm": arm, "seed": seed, "respondent_id": name, "base": base}
        parts.append(part.sort_values("epoch", kind="stable").assign(**labels))

    columns = ["respondent_id", "base", "arm", "seed", "epoch"]
    columns += ["questionnaire", "scale", "score", "run"]
    return pd.concat(parts, ignore_index=True)[columns]


def _runs(respondents, questionnaires, texts, seeds, training, refit, errors) -> tuple[dict, dict]:
    """Return the digests of each respondent's first measurement and of each run, with the run's
    settings."""
    common = {
        "prompts": key_of(*(str(x) for q in questionnaires for x in prompts(q).to_numpy().flat)),
        "handling": _HANDLING,
    }
    common |= refit if refit["refit"] else {}
    before = {}
    runs = {}
    for name in respondents:
        given = training["masked_lm"]
        try:
            base = _own_base(name) if given == "embedded" else given
            if base != "embedded":
                identify(base, "mlm")  # a classifier is told before the first measurement
            head = str(embedded_head("mlm")[1]) if base == "embedded" else find(base).digest
            fingerprint = identify(_place(name), dtype="float32")["fingerprint"]
        except RespondentError as error:
            errors[name] = error
            continue

        before[name] = key_of(fingerprint, json.dumps(common))
        for (arm, text), seed in product(texts.items(), seeds):
            settings = {"arm": arm, "sentences": intervention_texts(text, seed)} | training
            settings |= {"masked_lm": base, "seed": seed}
            what = json.dumps(common | settings | {"head": head})
            runs[name, arm, seed] = key_of(fingerprint, what), settings | refit

    return before, runs


def _place(name: str) -> str:
    return base_path() if name == "minilm" else name


def _own_base(name: str) -> str:
    """Return the language model that a respondent was trained from, as far as that is known."""
    source = find(_place(name))
    if source.kind == "embedded":
        return SMOLLM2 if source.recipe.get("base") == SMOLLM2 else "embedded"
    written = Path(source.folder or "") / "manifest.json"
    if source.kind == "adapter":
        base = str(source.base.folder)
    else:
        base = read_json(name, written).get("base") if written.is_file() else None
    return "embedded" if base in (None, "minilm", base_path()) else str(base)


def _all(work: list[tuple], shipped, what: str, progress: bool, errors: dict) -> list[pd.DataFrame]:
    """Return the measurements of all runs; missing runs are done now, one per core.

    Small models leave a second core idle; a GPU is kept busy by one run. A respondent that fails is
    put among the errors.
    """
    from tqdm import tqdm

    found = []
    todo = []
    for item in work:
        store, name, _, _, wanted, run = item
        kept = _measurements(store, name, run)
        found.append(kept)

        if set(wanted) - set(kept["epoch"]) - set(shipped.loc[shipped["run"] == run, "epoch"]):
            todo.append(item)

    workers = 1 if torch.cuda.is_available() else min(len(todo), os.cpu_count() or 1)
    with tqdm(total=len(todo), desc=what, unit="run", disable=not progress) as bar:

        def take(name: str, result: Callable[[], pd.DataFrame]) -> None:
            try:
                found.append(result())
            except BrokenProcessPool:  # by which respondent is not known
                raise
            except Exception as error:
                errors[name] = RespondentError.of(name, error)
            bar.update()

        if workers <= 1:
            for item in todo:
                take(item[1], partial(_run, *item))
        else:
            spawn = get_context("spawn")
            with ProcessPoolExecutor(workers, spawn, torch.set_num_threads, (1,)) as pool:
                runs = {pool.submit(_run, *item): item[1] for item in todo}
                for done in as_completed(runs):
                    take(runs[done], done.result)

    return found


def _run(store, name, questionnaires, settings, wanted, run) -> pd.DataFrame:
    """Measure one respondent where needed, adapting in between; every measurement is saved."""
    table = pd.concat([prompts(questionnaire) for questionnaire in questionnaires])
    known = set(_measurements(store, name, run)["epoch"])
    missing = sorted(set(wanted) - known)
    respondent = _open(name, settings["refit"])
    manifest = {
        **respondent.identity,
        "mode": "interventions",
        "handling": _HANDLING,
        "run": run,
    }
    manifest |= settings
    manifest.pop("sentences", None)
    kept = StoredAnswers(store, "interventions", "scales", name, manifest)

    def measure(epoch: int) -> None:
        if epoch in missing:
            if settings["refit"]:
                _refit(respondent, settings["refit"], settings.get("refit_on", "mnli"))
            rows = pd.DataFrame(_measured(respondent, table, questionnaires))
            rows = rows.assign(run=run, epoch=epoch)[_COLUMNS]
            rows.index = pd.Index([key_of(run, str(epoch), s) for s in rows["scale"]], name="key")
            kept.add(rows)

    if "arm" not in settings:
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
    """Return the stored measurements of a run."""
    rows = StoredAnswers(store, "interventions", "scales", name, {}).rows
    if rows.empty:
        return pd.DataFrame(columns=_COLUMNS)
    return rows.loc[rows["run"] == run, _COLUMNS].reset_index(drop=True)


def _shipped() -> pd.DataFrame:
    """Return the measurements that come with the project."""
    path = data_dir() / _SHIPPED
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
    with replacing(path) as part:
        save_file(tensors, part)


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
    content = optimizer.state_dict()
    states = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".")
            states.setdefault(int(number), {})[key] = value

    optimizer.load_state_dict(content | {"state": states})
    generator.set_state(tensors["order"])
    torch.set_rng_state(tensors["random"])
    return int(tensors["epoch"])


def _epoch(path: Path) -> int:
    from safetensors.torch import load_file

    return int(load_file(path)["epoch"]) if path.is_file() else 0


def _measured(respondent, table, questionnaires) -> list[dict]:
    answers = table.assign(respondent_id=respondent.identity["respondent_id"])
    pairs = list(zip(table["premise"], table["hypothesis"], strict=True))
    answers[list(PROBABILITIES)] = respondent.answer(pairs)
    rows = scale_scores(answers, questionnaires=questionnaires).to_dict("records")

    if available("mnli_entailment", "mnli_neutral", "mnli_contradiction"):
        pairs = mnli_sample().query("held_out").sample(_HELD_OUT_PAIRS, random_state=0)
        found = respondent.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
        label = pairs["label"].to_numpy()
        right = found.argmax(axis=1) == label

        if np.isnan(found).any():  # of two outputs, entailment or not
            right = (found[:, 0] > 0.5) == (label == 0)

        score = float(right.mean())
        rows.append({"questionnaire": "nli_accuracy", "scale": "nli_accuracy", "score": score})

    return rows


def _open(name: str, refit: int) -> NLIRespondent:
    """Load a respondent; where its head is to be refitted, a base will do."""
    try:
        return load_respondent(_place(name), dtype="float32")
    except RespondentError as error:
        if not refit or error.kind not in ("architecture", "labels"):
            raise
    torch.manual_seed(0)
    model, tokenizer = nli_classifier(name)
    return NLIRespondent(model.eval(), tokenizer, identify(_place(name), dtype="float32"))


@torch.inference_mode()
def _refit(respondent: NLIRespondent, pairs: int, source: str = "mnli") -> None:
    """Fit the last layer of the NLI head to labelled pairs as the respondent reads them now."""
    from sklearn.linear_model import LogisticRegression

    model = respondent.model
    tokenizer = respondent.tokenizer
    named = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    *path, last = named[-1].split(".")
    parent = model.get_submodule(".".join(path))
    layer = getattr(parent, last)

    if layer.out_features != len(respondent.order):
        raise RespondentError("The model has no head of three outputs to refit: use refit=0.")
    sample = nli_pairs(source)
    sample = sample.sample(min(pairs, len(sample)), random_state=0)
    if sample["label"].nunique() < len(respondent.order):
        raise ParameterError(f"refit: {pairs} pairs lack a label; fit the head to more.")

    sample = sample.sort_values("premise", key=lambda texts: texts.str.len())
    how = {"truncation": True, "max_length": 128, "padding": True, "return_tensors": "pt"}
    setattr(parent, last, torch.nn.Identity())  # so that the model gives what its last layer reads
    vectors = []
    for start in range(0, len(sample), 64):
        part = sample.iloc[start : start + 64]
        inputs = tokenizer(part["premise"].tolist(), part["hypothesis"].tolist(), **how)
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
