"""Train respondents: NLI heads on encoders or decoders, and masked-LM adaptation of encoders.

The functions are a thin layer over ``transformers.Trainer`` and ``peft``. Each training run writes
a folder with a manifest, which ``load_respondent`` can read.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import yaml
from safetensors.torch import save_file
from statsmodels.stats.proportion import proportion_confint
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PreTrainedTokenizerBase,
    set_seed,
)

from ..asking.population import population
from ..checks import check_flags
from ..data import NLI_LABELS
from ..exceptions import DataError, ParameterError
from ..models.devices import resolve_device
from ..modes import load_respondent
from .heads import _classifier_with_adapter, _fresh_model, _start_from, nli_classifier, with_adapter
from .loop import (
    Settings,
    _make_folder,
    _MaskedTokensTrainer,
    _stopping,
    _train_into,
    _trains_on_gpu,
    tokenised,
)
from .pairs import _labelled_pairs

_LABELLED = ["premise", "hypothesis", "label"]
_MEASURED = (0.1, 0.5, 0.9)
"""The positions, in order of length, of the batches whose steps are timed."""


def train_nli(
    base: str | Path,
    data: str | Sequence[str] | pd.DataFrame,
    output: str | Path,
    *,
    adapter: str | Path | None = None,
    shuffled: bool = False,
    progress: bool = True,
    **options: object,
) -> dict:
    """Put an NLI head on a base model and train it.

    Parameters
    ----------
    base : str or Path
        Base encoder or decoder: a hub id, a local folder, or ``"minilm"``, the embedded encoder. In
        a decoder, the head reads a pair's last token; a decoder without a padding token uses its
        end token for padding, which is saved with the model.
    data : str, sequence of str, or DataFrame
        ``"mnli"`` and ``"snli"`` are the project's samples (MNLI without its held-out pairs); a
        path is a CSV, JSON-lines or Parquet file with columns ``premise, hypothesis, label``;
        anything else is a hub id (``"nyu-mll/multi_nli"``). Several sources are concatenated.
        Labels are names (*entailment*, *neutral*, *contradiction*, their verbs or first letters, in
        any case), in data sets the names of their classes, or 0, 1 and 2 in this order. The
        pairs of one premise in ten are held out by the hash of the premise (for MNLI's sample, the
        fixed held-out pairs; at most about 2,000 per source). All pairs of a DataFrame are used for
        training.
    output : str or Path
        Folder for the model, its tokenizer, ``manifest.json`` and a ``README.md`` with the code
        that loads it without this package. A stopped run resumes from its last epoch when called
        again with the same folder.
    adapter : str or Path, optional
        LoRA adapter of the same base from which to start (see :func:`adapt_encoder`).
    shuffled : bool
        Whether to shuffle the labels over the pairs, by the seed: a control that is trained in the
        same way on the same texts but cannot learn inference. Held-out pairs keep their labels.
    progress : bool
        Whether to show a progress bar.
    **options
        ``tuning``: train everything (*unfrozen*, the default), only the head (*frozen*), or
        low-rank adapters on every linear layer and the head (*lora*); in this case the folder holds
        only the adapter, which names its base. ``epochs`` (3), ``lr`` (5e-5; linear decay, 6 %
        warm-up), ``batch_size`` (32 pairs), ``rank`` of the adapters (16), ``layers`` (number of
        first layers to keep), ``dropout`` (by default the base's own dropout), ``max_length`` (128
        tokens), ``seed`` (0) of the head's initial weights, of the order of the data and of
        dropout, and ``stop_on``: the *accuracy* or Matthews' correlation (*matthews*), measured
        after each epoch on half of the held-out premises. Training then stops after two epochs
        without improvement, the best epoch is kept, and the other half measures the result. By
        default all epochs are trained.

    Returns
    -------
    dict
        The manifest: settings, number of pairs, of pairs ``left_out`` as they have no label (empty,
        -1 or "-") or lack a text, the sources whose ``labels_without_names`` were taken in the
        order entailment, neutral, contradiction, steps, the step ``resumed_at`` (0 for a new run),
        seconds, final loss, versions; if pairs were held out, their number, the share that the
        saved model labels correctly (``accuracy`` with Wilson's 95 % interval ``low, high``), and
        ``majority``, the accuracy of always giving the most frequent training label.

    Raises
    ------
    DataError
        The data cannot be read, lack a column, or have a label of another kind or of two classes.
    ParameterError
        A setting is unknown, or not possible for this base; the folder holds a model with a
        different base, other data or other settings; or the device is not the first GPU.

    References
    ----------
    Reuben et al. (2024), sections 3.2 and 5. Hu et al. (2022) for LoRA.

    Examples
    --------
    >>> import tempfile
    >>> pairs = pd.DataFrame({"premise": ["I am calm."] * 3,
    ...                       "hypothesis": ["I am at ease.", "I am not.", "It rains."],
    ...                       "label": ["entailment", "contradiction", "neutral"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_nli("minilm", pairs, folder, layers=1, epochs=1, progress=False)["pairs"]
    3
    """
    check_flags(shuffled=shuffled, progress=progress)
    settings = Settings.of(options)
    _trains_on_gpu()  # refuse an unusable device before reading anything
    _make_folder(output)
    set_seed(settings.seed)
    read = _labelled_pairs(data, split=True)
    labels = set(read.frame["label"])
    absent = [name for number, name in enumerate(NLI_LABELS) if number not in labels]
    if absent:
        raise DataError(f"No pair is labelled {absent[0]}, and two classes cannot teach three.")

    pairs, stop_pairs, held_out = _split_pairs(read.frame, settings.stop_on)
    model, tokenizer = _tuned_classifier(base, adapter, settings)

    if shuffled:
        permuted = np.random.default_rng(settings.seed).permutation(pairs["label"].to_numpy())
        pairs = pairs.assign(label=permuted)

    dataset = tokenised(tokenizer, pairs[_LABELLED].to_dict("list"), settings.max_length)
    collator = DataCollatorWithPadding(tokenizer)
    stopping = {}
    if settings.stop_on:
        stopping = _stopping(tokenizer, stop_pairs[_LABELLED].to_dict("list"), settings)

    facts = {"base": str(base), "pairs": len(pairs), "shuffled": shuffled, **asdict(settings)}
    facts |= {"left_out": read.left_out, "labels_without_names": read.unnamed}

    def describe() -> dict:
        if held_out.empty:
            return facts
        majority = (held_out["label"] == pairs["label"].mode()[0]).mean()
        accuracy = _measure_accuracy(Path(output), held_out)
        return facts | accuracy | {"majority": round(float(majority), 4)}

    return _train_into(
        output, model, tokenizer, dataset, collator, settings, describe, progress, **stopping
    )


def _split_pairs(
    pairs: pd.DataFrame, stop_on: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the pairs to train on, to choose an epoch on, and to measure the result on."""
    train = pairs[~pairs["held_out"]]
    held_out = pairs[pairs["held_out"]]
    if not stop_on:
        return train, held_out[:0], held_out

    is_first = held_out["premise"].factorize()[0] % 2 == 0
    stop, measure = held_out[is_first], held_out[~is_first]
    if stop.empty or measure.empty:
        raise ParameterError("stop_on: too few pairs are held out; give a larger file.")
    return train, stop, measure


def training_cost(
    base: str | Path, data: str | Sequence[str] | pd.DataFrame, **options: object
) -> dict[str, float]:
    """Estimate the time of :func:`train_nli` on this machine from a few steps; keep no model.

    Parameters
    ----------
    base, data, **options
        As in :func:`train_nli`.

    Returns
    -------
    dict
        ``pairs``; ``steps`` of the whole training, its ``seconds``, and ``gigabytes``, the peak
        memory of this process or of the graphics card; ``measured``, the number of timed steps, on
        batches of short, medium and long pairs, after one untimed step.

    Examples
    --------
    >>> pairs = pd.DataFrame({"premise": ["I am calm."] * 2, "hypothesis": ["I am.", "I am not."],
    ...                       "label": ["entailment", "contradiction"]})
    >>> training_cost("minilm", pairs, layers=1, epochs=2)["steps"]
    2
    """
    _trains_on_gpu()  # refuses a card that training would not use
    settings = Settings.of(options)
    pairs = _labelled_pairs(data, split=True).frame
    table = pairs.loc[~pairs["held_out"], _LABELLED].to_dict("list")
    model, tokenizer = _tuned_classifier(base, None, settings)
    tokens = tokenised(tokenizer, table, settings.max_length)
    rows = sorted(tokens, key=lambda row: len(row["input_ids"]))

    latest = max(0, len(rows) - settings.batch_size)
    starts = [latest // 2, *(round(latest * share) for share in _MEASURED)]
    collate = DataCollatorWithPadding(tokenizer)
    batches = [collate(rows[start : start + settings.batch_size]) for start in starts]
    _, *seconds = _step_seconds(model.to(resolve_device(None)), batches)

    steps = int(np.ceil(len(rows) / settings.batch_size) * settings.epochs)
    return {"pairs": len(rows), "steps": steps, "seconds": steps * float(np.mean(seconds)),
            "gigabytes": _peak_memory(model.device), "measured": len(seconds)}  # fmt: skip


def _tuned_classifier(
    base: str | Path, adapter: str | Path | None, settings: Settings
) -> tuple[torch.nn.Module, PreTrainedTokenizerBase]:
    """Return a classifier in which only the chosen parts are trained, and its tokenizer."""
    model, tokenizer = nli_classifier(base, settings.layers, settings.dropout)

    if settings.tuning == "frozen":
        # BERT's pooler counts as part of the head
        for name, parameter in model.base_model.named_parameters():
            parameter.requires_grad_(name.startswith("pooler."))
    elif settings.tuning == "lora":
        model = _classifier_with_adapter(model, base, settings.rank)
        if adapter is not None:
            _start_from(model, adapter)

    return model, tokenizer


def _step_seconds(model: torch.nn.Module, batches: list) -> Iterator[float]:
    """Yield the seconds of a training step on each batch."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-9)
    model.train()

    for batch in batches:
        began = time.perf_counter()
        loss = model(**batch.to(model.device)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # waits until the card has finished
        yield time.perf_counter() - began


def _peak_memory(device: torch.device) -> float:
    """Return the peak memory of a graphics card, or of this process, in gigabytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    if sys.platform == "win32":
        return float("nan")
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def train_heads(
    file: str | Path,
    data: str | Sequence[str] | pd.DataFrame,
    output: str | Path,
    **options: object,
) -> Iterator[tuple[Path, dict | Exception]]:
    """Train an NLI head for every base that a population's file lists, one after the other.

    Parameters
    ----------
    file : str or Path
        A population's file with the bases as respondents.
    data, **options
        As in :func:`train_nli`.
    output : str or Path
        Folder with a subfolder for each base and ``population.yaml``, the list of trained models.
        Existing heads are kept, and a stopped run resumes where it stopped.

    Yields
    ------
    folder : Path
    result : dict or Exception
        The folder of the model, and the manifest or the error that says why this base cannot be
        trained.

    Raises
    ------
    ParameterError
        The file cannot be read, or two bases have the same name.
    """
    bases = {}
    trained = []
    for base in population(file):
        name = Path(base).name if Path(base).expanduser().is_dir() else base
        name = re.sub(r"[^\w.-]", "-", name)
        if bases.setdefault(name, base) != base:
            raise ParameterError(f"{file}: two bases are called {name}; rename one.")

    for name, base in bases.items():
        try:
            result = train_nli(base, data, Path(output) / name, **options)
        except Exception as error:  # out of memory, or an odd base: continue with the others
            result = error
        else:
            trained.append({"model": name})
            content = {"title": f"NLI heads for the bases of {file}", "respondents": trained}
            text = yaml.safe_dump(content, sort_keys=False)
            (Path(output) / "population.yaml").write_text(text, encoding="utf-8")

        yield Path(output) / name, result


def adapt_encoder(
    base: str | Path,
    sentences: Sequence[str],
    output: str | Path,
    *,
    epochs: float = 3.0,
    lr: float = 2e-4,
    rank: int = 16,
    progress: bool = True,
) -> dict:
    """Adapt an encoder to a kind of text by masked language modelling, with a LoRA adapter.

    Parameters
    ----------
    base : str or Path
        Encoder: a hub id or a local folder. If the checkpoint lacks a masked-LM head, a new head is
        also trained, with its output tied to the word embeddings.
    sentences : sequence of str
        Sentences on which to train.
    output : str or Path
        Folder for the adapter, the masked-LM head (``head.safetensors``) and ``manifest.json``.
    epochs, rank, progress
        As in :func:`train_nli`.
    lr : float
        Peak learning rate of the adapter; the learning rate of the masked-LM head is 0.001.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    DataError
        There are no sentences.

    References
    ----------
    Devlin et al. (2019) for masked language modelling; Hu et al. (2022) for LoRA.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     adapt_encoder("minilm", ["I feel calm."], folder, epochs=1, progress=False)["steps"]
    1
    """
    if not len(sentences):
        raise DataError("There are no sentences to adapt to: give at least one.")

    set_seed(0)
    model, tokenizer = _fresh_model(base, "masked", dropout=0.0)
    # Everything outside of the encoder; weights tied to the embeddings are named there.
    encoder = f"{model.base_model_prefix}."
    head = {name: p for name, p in model.named_parameters() if not name.startswith(encoder)}
    model = with_adapter(model, rank, base)

    for parameter in head.values():
        parameter.requires_grad_(True)

    of_head = {id(parameter) for parameter in head.values()}
    adapted = [p for p in model.parameters() if p.requires_grad and id(p) not in of_head]
    optimizer = torch.optim.AdamW(
        [{"params": adapted, "lr": lr}, {"params": list(head.values()), "lr": 1e-3}],
        weight_decay=0.01,
    )

    def save_head() -> dict:
        weights = {name: parameter.detach().clone() for name, parameter in head.items()}
        save_file(weights, Path(output) / "head.safetensors")
        return {"base": str(base), "sentences": len(sentences), "rank": rank}

    dataset = tokenised(tokenizer, {"text": list(sentences)}, return_special_tokens_mask=True)
    collator = DataCollatorForLanguageModeling(tokenizer)
    settings = Settings(epochs=epochs, lr=lr)
    options = {"trainer": _MaskedTokensTrainer, "optimizers": (optimizer, None)}
    return _train_into(
        output, model, tokenizer, dataset, collator, settings, save_head, progress, **options
    )


def train_acceptability(
    base: str | Path,
    sentences: pd.DataFrame,
    output: str | Path,
    *,
    first: int = 0,
    wording: str = "{sentence}",
    progress: bool = True,
    **options: object,
) -> dict:
    """Train an acceptability classifier, that is, low-rank adapters and a head.

    Parameters
    ----------
    base : str or Path
        Encoder or decoder: a hub id or a local folder. In a decoder, the head reads a sentence's
        last token.
    sentences : DataFrame
        ``sentence`` and ``acceptable`` (0 or 1), such as CoLA's.
    output, progress
        As in :func:`train_nli`.
    first : int
        First layer (from 0) to train; earlier layers stay unchanged.
    wording : str
        Text that the model reads, with ``{sentence}``.
    **options
        As in :func:`train_nli`, with a learning rate of 5e-4 and no dropout, but without
        ``stop_on``.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    ParameterError
        ``stop_on`` is set, but no sentences are held out.

    References
    ----------
    Warstadt et al. (2019) for the task; Hu et al. (2022) for LoRA.

    Examples
    --------
    >>> import tempfile
    >>> judged = pd.DataFrame({"sentence": ["I feel calm.", "Calm I the."], "acceptable": [1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_acceptability("minilm", judged, folder, epochs=1, progress=False)["sentences"]
    2
    """
    settings = Settings.of(options, lr=5e-4, dropout=0.0)
    if settings.stop_on:
        raise ParameterError("stop_on: no sentences are held out for stopping; leave stop_on out.")

    _make_folder(output)
    set_seed(settings.seed)
    labels = ("unacceptable", "acceptable")
    model, tokenizer = _fresh_model(base, "classifier", labels, settings.layers, settings.dropout)
    model = _classifier_with_adapter(model, base, settings.rank, first)
    texts = [wording.format(sentence=sentence) for sentence in sentences["sentence"]]
    table = {"text": texts, "label": sentences["acceptable"].tolist()}
    facts = {"base": str(base), "sentences": len(sentences), "rank": settings.rank, "first": first}
    facts |= {"layers": model.config.num_hidden_layers, "wording": wording}

    dataset = tokenised(tokenizer, table, settings.max_length)
    collator = DataCollatorWithPadding(tokenizer)
    return _train_into(
        output, model, tokenizer, dataset, collator, settings, lambda: facts, progress
    )


def _measure_accuracy(folder: Path, pairs: pd.DataFrame) -> dict:
    """Measure the saved model as a respondent, on held-out pairs."""
    respondent = load_respondent(folder, dtype="float32")
    answers = respondent.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
    correct = int((answers.argmax(axis=1) == pairs["label"].to_numpy()).sum())
    low, high = proportion_confint(correct, len(pairs), method="wilson")
    shares = {"accuracy": correct / len(pairs), "low": low, "high": high}
    return {"held_out": len(pairs)} | {name: round(float(x), 4) for name, x in shares.items()}
