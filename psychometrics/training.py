"""Train what answers: an NLI head on any encoder or decoder, and masked-LM adaptation of encoders.

Everything here is a thin use of ``transformers.Trainer`` and ``peft``: data in, a folder out that
``load_respondent`` can read, with a manifest of how it was made.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pandas as pd
import torch
import yaml
from peft import LoraConfig, PeftModel, get_peft_model, load_peft_weights
from pydantic import Field, FiniteFloat, PositiveInt
from safetensors import safe_open
from safetensors.torch import save_file
from statsmodels.stats.proportion import proportion_confint
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.pytorch_utils import Conv1D
from transformers.trainer_utils import get_last_checkpoint

from .asking.population import population
from .checks import check_kinds, check_numbers
from .data import NLI_LABELS, fetch, text_table
from .exceptions import DataError, ParameterError, needed, out_of_memory, writing
from .models.devices import resolve_device
from .models.loading import OF_HEADS, counts_its_blocks, load_config, load_model
from .models.sources import BASE_MODEL, Source, base_path, find, read_json
from .modes import load_respondent

if TYPE_CHECKING:
    from datasets import Dataset


_README = """To load this folder without the package that trained it:

    from transformers import AutoTokenizer
    from {library} import {builder}

    tokenizer = AutoTokenizer.from_pretrained("this folder")
    model = {builder}.from_pretrained("this folder"{given})

Outputs, in order: {labels}.
"""
_MEASURED = (0.1, 0.5, 0.9)
"""Places, in order of length, of the batches whose steps are timed."""
_KINDS = {
    "tuning": Literal["unfrozen", "frozen", "lora"],
    "epochs": Annotated[FiniteFloat, Field(gt=0, le=1000)],
    "lr": Annotated[FiniteFloat, Field(gt=0, lt=1)],
    **dict.fromkeys(("batch_size", "rank"), PositiveInt),
    "layers": PositiveInt | None,
    "dropout": Annotated[FiniteFloat, Field(ge=0, lt=1)] | None,
    "max_length": Annotated[int, Field(ge=8)],
    "seed": Annotated[int, Field(ge=0, lt=2**32)],
}


@dataclass(frozen=True)
class _Settings:
    tuning: str = "unfrozen"
    epochs: float = 3.0
    lr: float = 5e-5
    batch_size: int = 32
    rank: int = 16
    layers: int | None = None
    dropout: float | None = None
    max_length: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        check_kinds(vars(self), _KINDS)

    @classmethod
    def of(cls, given: dict[str, object], **defaults: object) -> _Settings:
        known = [field.name for field in fields(cls)]
        strange = [name for name in given if name not in known]
        if strange:
            raise ParameterError(f"There is no setting '{strange[0]}': use {', '.join(known)}.")
        return cls(**(defaults | given))


def train_nli(
    base: str | Path,
    data: str | Sequence[str] | pd.DataFrame,
    output: str | Path,
    *,
    adapter: str | Path | None = None,
    shuffled: bool = False,
    progress: bool = True,
    **settings: object,
) -> dict:
    """Put an NLI head on a base model and train it.

    Parameters
    ----------
    base : str or Path
        Encoder or decoder to start from: a hub id, a local folder, or ``"minilm"``, the embedded
        encoder. A decoder is read at a pair's last token; one without a padding token is padded
        with its end token, and is saved so.
    data : str, sequence of str, or DataFrame
        ``"mnli"`` and ``"snli"`` are the project's samples (MNLI without its held-out pairs); a
        path is a CSV, JSON-lines or Parquet file with columns ``premise, hypothesis, label``;
        anything else is a hub id (``"nyu-mll/multi_nli"``). Several are concatenated. The pairs
        of one premise in ten are held out by the hash of the premise (MNLI's sample: those that
        nobody is trained on; at most about 2,000 of each source). A DataFrame is trained on whole.
    output : str or Path
        Folder for the model, its tokenizer, ``manifest.json`` and a ``README.md`` with the lines
        that load it without this package. A run that was stopped resumes from its last epoch when
        called again with the same folder.
    adapter : str or Path, optional
        LoRA adapter of the same base (see :func:`adapt_encoder`) to start from.
    shuffled : bool
        Deal the labels to the pairs at random, by the seed: a control that is trained in the same
        way on the same texts and cannot learn inference. Pairs that are held out keep theirs.
    progress : bool
        Show a progress bar.
    **settings
        ``tuning``: train everything (*unfrozen*, the default), the head alone (*frozen*), or
        low-rank adapters on every linear layer and the head (*lora*), of which the folder holds
        only the adapter, which names its base. ``epochs`` (3), ``lr`` (5e-5; linear decay, 6 %
        warm-up), ``batch_size`` (32 pairs), ``rank`` of the adapters (16), ``layers`` (keep only
        the first ones), ``dropout`` (by default the base's own), ``max_length`` (128 tokens), and
        ``seed`` (0) of the head's initial weights, the order of the data and dropout.

    Returns
    -------
    dict
        The manifest: settings, number of pairs, steps, the step ``resumed_at`` (0 for a new run),
        seconds, final loss, versions; where pairs were held out, their number, the share that the
        saved folder labels rightly (``accuracy`` with Wilson's 95 % interval ``low, high``), and
        ``majority``, the share right of whoever always gives the commonest label of training.

    Raises
    ------
    DataError
        The data cannot be read or lack a column or a label.
    ParameterError
        A setting is unknown, or impossible for this base; the folder holds the result of another
        base, other data or other settings; the device is not the first GPU.

    References
    ----------
    Reuben et al. (2024), sections 3.2 and 5. Hu et al. (2022) for LoRA.

    Examples
    --------
    >>> import tempfile
    >>> pairs = pd.DataFrame({"premise": ["I am calm."] * 2, "hypothesis": ["I am.", "I am not."],
    ...                       "label": ["entailment", "contradiction"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train_nli("minilm", pairs, folder, layers=1, epochs=1, progress=False)["pairs"]
    2
    """
    chosen = _Settings.of(settings)
    _trains_on_gpu()  # a device that cannot be trained on is refused before anything is read
    _make_folder(output)
    set_seed(chosen.seed)
    pairs = _labelled(data, split=True)
    pairs, held_out = pairs[~pairs["held_out"]], pairs[pairs["held_out"]]
    model, tokenizer = _tuned_classifier(base, adapter, chosen)

    if shuffled:
        labels = np.random.default_rng(chosen.seed).permutation(pairs["label"].to_numpy())
        pairs = pairs.assign(label=labels)

    table = pairs[["premise", "hypothesis", "label"]].to_dict("list")
    facts = {"base": str(base), "pairs": len(pairs), "shuffled": shuffled, **asdict(chosen)}
    facts |= {"majority": (held_out["label"] == pairs["label"].mode()[0]).mean()}
    how = output, chosen, progress, facts
    return _train_classifier(model, tokenizer, table, *how, held_out=held_out)


def training_cost(
    base: str | Path,
    data: str | Sequence[str] | pd.DataFrame,
    *,
    adapter: str | Path | None = None,
    **settings: object,
) -> dict[str, float]:
    """Say how long :func:`train_nli` will take here, by a few of its steps; nothing is kept.

    Parameters
    ----------
    base, data, adapter, **settings
        As in :func:`train_nli`.

    Returns
    -------
    dict
        ``pairs``; ``steps`` of the whole training, its ``seconds``, and ``gigabytes``, the most
        memory that this process, or the card, has had in use; ``measured``, the steps that were
        timed, on batches of short, medium and long pairs, after one that was not.

    Examples
    --------
    >>> pairs = pd.DataFrame({"premise": ["I am calm."] * 2, "hypothesis": ["I am.", "I am not."],
    ...                       "label": ["entailment", "contradiction"]})
    >>> training_cost("minilm", pairs, layers=1, epochs=2)["steps"]
    2
    """
    _trains_on_gpu()  # refuses a card that training would not take
    chosen = _Settings.of(settings)
    pairs = _labelled(data, split=True)
    pairs = pairs[~pairs["held_out"]]
    model, tokenizer = _tuned_classifier(base, adapter, chosen)
    table = pairs[["premise", "hypothesis", "label"]].to_dict("list")
    rows = list(_tokens(tokenizer, table, chosen.max_length))
    rows.sort(key=lambda row: len(row["input_ids"]))
    latest = max(0, len(rows) - chosen.batch_size)
    starts = [latest // 2, *(round(latest * share) for share in _MEASURED)]
    collate = DataCollatorWithPadding(tokenizer)
    batches = [collate(rows[start : start + chosen.batch_size]) for start in starts]
    _, *seconds = _step_seconds(model.to(resolve_device(None)), batches)
    steps = int(np.ceil(len(rows) / chosen.batch_size) * chosen.epochs)
    return {"pairs": len(rows), "steps": steps, "seconds": steps * float(np.mean(seconds)),
            "gigabytes": _most_memory(model.device), "measured": len(seconds)}  # fmt: skip


def _tuned_classifier(
    base: str | Path, adapter: str | Path | None, chosen: _Settings
) -> tuple[torch.nn.Module, PreTrainedTokenizerBase]:
    """Return a classifier of which what the settings name is trained, and its tokenizer."""
    model, tokenizer = nli_classifier(base, chosen.layers, chosen.dropout)

    if chosen.tuning == "frozen":
        # BERT's pooler counts as part of the head
        for name, parameter in model.base_model.named_parameters():
            parameter.requires_grad_(name.startswith("pooler."))
    elif chosen.tuning == "lora":
        model = _classifier_with_adapter(model, base, chosen.rank)
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
        loss.item()  # a card computes on until it is asked
        yield time.perf_counter() - began


def _most_memory(device: torch.device) -> float:
    """Return the most gigabytes that a card, or this process, has had in use."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    if sys.platform == "win32":
        return float("nan")
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def train_heads(
    file: str | Path, data: str | Sequence[str] | pd.DataFrame, output: str | Path, **how: object
) -> Iterator[tuple[Path, dict | Exception]]:
    """Train an NLI head for every base that a population's file lists, one after the other.

    Parameters
    ----------
    file : str or Path
        A population's file, whose respondents are the bases.
    data, **how
        As in :func:`train_nli`.
    output : str or Path
        Folder for a folder of each base and for ``population.yaml``, which lists what is trained.
        Heads that were trained before are kept, and a run that was stopped goes on.

    Yields
    ------
    folder : Path
    result : dict or Exception
        The manifest, or why this base cannot be trained.

    Raises
    ------
    ParameterError
        The file cannot be read, or two bases have one name.
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
            result = train_nli(base, data, Path(output) / name, **how)
        except Exception as error:  # memory that ran out, or a base that is odd: the others go on
            result = error
        else:
            trained.append({"model": name})
            listed = {"title": f"NLI heads for the bases of {file}", "respondents": trained}
            text = yaml.safe_dump(listed, sort_keys=False)
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
    """Adapt an encoder to a kind of text by masked language modelling, into a LoRA adapter.

    Parameters
    ----------
    base : str or Path
        Encoder: a hub id or a local folder. A masked-LM head that the checkpoint lacks is
        initialised and trained along, its output tied to the word embeddings.
    sentences : sequence of str
        The text.
    output : str or Path
        Folder for the adapter, the masked-LM head (``head.safetensors``) and ``manifest.json``.
    epochs, rank, progress
        As in :func:`train_nli`.
    lr : float
        Peak learning rate of the adapter; that of the masked-LM head is 0.001.

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
    model, tokenizer = _fresh(base, "masked", dropout=0.0)
    # All that lies outside of the encoder; weights tied to the embeddings are named there.
    encoder = f"{model.base_model_prefix}."
    head = {name: p for name, p in model.named_parameters() if not name.startswith(encoder)}
    model = get_peft_model(model, _lora(rank, None, _linears(model)))
    _name_base(model, base)

    for parameter in head.values():
        parameter.requires_grad_(True)

    own = {id(parameter) for parameter in head.values()}
    adapted = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    optimizer = torch.optim.AdamW(
        [{"params": adapted, "lr": lr}, {"params": list(head.values()), "lr": 1e-3}],
        weight_decay=0.01,
    )
    dataset = _tokens(tokenizer, {"text": list(sentences)}, return_special_tokens_mask=True)
    collator = DataCollatorForLanguageModeling(tokenizer)
    chosen = _Settings(epochs=epochs, lr=lr)
    digest = _digest(model, dataset, chosen)
    known = _finished(Path(output), digest)

    if known:
        return known
    how = collator, output, chosen, digest, _MaskedTokensTrainer, progress
    manifest = _train(model, dataset, *how, optimizers=(optimizer, None))
    manifest |= {"base": str(base), "sentences": len(sentences), "rank": rank}
    _save(model, tokenizer, output)
    weights = {name: parameter.detach().clone() for name, parameter in head.items()}
    save_file(weights, Path(output) / "head.safetensors")

    return _finish(manifest, output)


def train_acceptability(
    base: str | Path,
    sentences: pd.DataFrame,
    output: str | Path,
    *,
    first: int = 0,
    wording: str = "{sentence}",
    progress: bool = True,
    **settings: object,
) -> dict:
    """Train an acceptability classifier by low-rank adapters and a head.

    Parameters
    ----------
    base : str or Path
        Encoder or decoder: a hub id or a local folder. A decoder is read at a sentence's last
        token.
    sentences : DataFrame
        ``sentence`` and ``acceptable`` (0 or 1), such as CoLA's.
    output, progress
        As in :func:`train_nli`.
    first : int
        Layers before this one (from 0) stay as they are in the base.
    wording : str
        What the model reads, with ``{sentence}``.
    **settings
        As in :func:`train_nli`, with a learning rate of 5e-4 and no dropout.

    Returns
    -------
    dict
        The manifest.

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
    chosen = _Settings.of(settings, lr=5e-4, dropout=0.0)
    _make_folder(output)
    set_seed(chosen.seed)
    labels = ("unacceptable", "acceptable")
    model, tokenizer = _fresh(base, "classifier", labels, chosen.layers, chosen.dropout)
    model = _classifier_with_adapter(model, base, chosen.rank, first)
    texts = [wording.format(sentence=sentence) for sentence in sentences["sentence"]]
    table = {"text": texts, "label": sentences["acceptable"].tolist()}
    facts = {"base": str(base), "sentences": len(sentences), "rank": chosen.rank, "first": first}
    facts |= {"layers": model.config.num_hidden_layers, "wording": wording}

    return _train_classifier(model, tokenizer, table, output, chosen, progress, facts)


def adapt_causal(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    *,
    epochs: float = 3.0,
    lr: float = 2e-5,
    batch_size: int = 8,
    rank: int | None = None,
    seed: int = 0,
) -> dict:
    """Adapt a causal language model to a kind of text, in place.

    Parameters
    ----------
    model, tokenizer
        The model; a tokenizer without a pad token uses its end token.
    sentences : sequence of str
        The text.
    epochs, lr, batch_size, seed
        As in :func:`train_nli`.
    rank : int, optional
        Train low-rank adapters on every linear layer, in float32 whatever the model's precision,
        and merge them into its weights; a learning rate ten times as high suits them. By default
        all weights are trained.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    DataError
        There are no sentences.
    ParameterError
        The rank is no whole number from 1.

    References
    ----------
    Hu et al. (2022) for LoRA.
    """
    if not len(sentences):
        raise DataError("There are no sentences to adapt to: give at least one.")

    if rank is not None:
        check_numbers(rank=rank)

    set_seed(seed)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token

    trained = model if rank is None else get_peft_model(model, _lora(rank, None, _linears(model)))
    dataset = _tokens(tokenizer, {"text": list(sentences)})
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)

    with tempfile.TemporaryDirectory() as folder:
        settings = _Settings(epochs=epochs, lr=lr, batch_size=batch_size, seed=seed)
        manifest = _train(trained, dataset, collator, folder, settings, "", progress=False)

    if rank is not None:
        trained.merge_and_unload()
        model.requires_grad_(True)

    return manifest | {"sentences": len(sentences), "rank": rank}


def mnli_sample() -> pd.DataFrame:
    """Load the 18,000 labelled MNLI pairs, with the project's fixed split.

    A pair is held out if the SHA-256 of its premise is 0 modulo 10: no premise is on both sides,
    and the split depends on the text alone.

    Returns
    -------
    DataFrame
        ``premise, hypothesis, label`` (0 entailment, 1 neutral, 2 contradiction), ``genre``,
        ``held_out``.
    """
    frame = pd.concat(
        [pd.read_csv(fetch(f"mnli_{label}"), dtype={"premise": str}) for label in NLI_LABELS],
        ignore_index=True,
    ).dropna(subset=["premise", "hypothesis"])
    frame["held_out"] = _hash_split(frame["premise"])
    return frame[["premise", "hypothesis", "label", "genre", "held_out"]].reset_index(drop=True)


def nli_pairs(data: str | Sequence[str] | pd.DataFrame) -> pd.DataFrame:
    """Labelled pairs to train on: ``premise, hypothesis, label`` (0 entailment ... 2).

    Sources are named as in :func:`train_nli`; MNLI's held-out pairs are never among them.
    """
    pairs = _labelled(data)
    return pairs[~pairs["held_out"]].drop(columns="held_out").reset_index(drop=True)


def _labelled(data: str | Sequence[str] | pd.DataFrame, split: bool = False) -> pd.DataFrame:
    """Labelled pairs and which are ``held_out``: MNLI's; if split, some of other sources, too."""
    if isinstance(data, pd.DataFrame):
        frame = data.assign(held_out=False)
    else:
        frames = [_source(name, split) for name in ([data] if isinstance(data, str) else data)]
        frame = pd.concat(frames, ignore_index=True)

    missing = {"premise", "hypothesis", "label"} - set(frame.columns)
    if missing:
        raise DataError(f"NLI data lack the column(s) {', '.join(sorted(missing))}: add them.")

    if frame["label"].dtype.kind not in "iu":
        names = frame["label"].astype(str).str.lower()
        numbers = {name: i for i, name in enumerate(NLI_LABELS)} | {str(i): i for i in range(-1, 3)}
        unknown = sorted(set(names) - set(numbers))
        if unknown:
            raise DataError(f"labels must be {', '.join(NLI_LABELS)} or 0-2; found {unknown[0]}.")

        frame = frame.assign(label=names.map(numbers))

    frame = frame[frame["label"].between(0, 2)].dropna(subset=["premise", "hypothesis"])
    if frame.empty:
        raise DataError("There are no labelled pairs to train on: give at least one.")

    if frame["held_out"].all():
        frame = frame.assign(held_out=False)

    return frame.reset_index(drop=True)


def nli_classifier(
    base: str | Path, layers: int | None = None, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A three-way classifier on a base model, with a fresh head if it lacks one; its tokenizer.

    Parameters are those of :func:`train_nli`; outputs are entailment, neutral, contradiction.
    """
    return _fresh(base, "classifier", NLI_LABELS, layers, dropout)


def _fresh(
    base: str | Path,
    head: str,
    labels: Sequence[str] = (),
    layers: int | None = None,
    dropout: float | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A base with a head to be trained, which may be random; and its tokenizer."""
    source = _source_of(base)
    changes = {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
    }
    config = load_config(source, **(changes if labels else {}))
    _shape(config, layers, dropout)
    # Eager attention trains small encoders 1.4 times as fast as the fused kernel on a CPU.
    model, tokenizer = load_model(
        source, head, config=config, fresh=True, attn_implementation="eager"
    )
    _make_paddable(model, tokenizer, base)

    return model, tokenizer


def _make_paddable(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, base: str | Path
) -> None:
    """Let texts of several lengths be one batch, which decoders' tokenizers are not made for."""
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            said = f"{base}'s tokenizer has neither a padding nor an end token"
            raise ParameterError(f"{said}: set pad_token and save it again.")
        tokenizer.pad_token = tokenizer.eos_token
    # A decoder's classifier looks from here for the last token that is no padding.
    model.config.pad_token_id = tokenizer.pad_token_id
    if getattr(model.config, "summary_type", None) != "last":  # XLNet reads the last place
        tokenizer.padding_side = "right"  # learned positions count from the left


def _tokens(
    tokenizer: PreTrainedTokenizerBase,
    table: dict[str, list],
    max_length: int = 128,
    **options: bool,
) -> Dataset:
    datasets = needed("datasets")
    texts = [name for name in table if name != "label"]
    options |= {"truncation": True, "max_length": max_length}
    return datasets.Dataset.from_dict(table).map(
        lambda rows: tokenizer(*(rows[name] for name in texts), **options),
        batched=True, remove_columns=texts,
    )  # fmt: skip


def _train_classifier(
    model, tokenizer, table, output, settings, progress, facts: dict, held_out=()
) -> dict:
    """Train on texts with labels, and save the model with a manifest of these facts."""
    dataset = _tokens(tokenizer, table, settings.max_length)
    digest = _digest(model, dataset, settings)
    known = _finished(Path(output), digest)
    if known:
        return known

    collator = DataCollatorWithPadding(tokenizer)
    manifest = _train(model, dataset, collator, output, settings, digest, progress=progress)
    _save(model, tokenizer, output)
    majority = facts.pop("majority", None)

    if len(held_out):
        facts |= _accuracy(Path(output), held_out) | {"majority": round(float(majority), 4)}

    return _finish(manifest | facts, output)


def _accuracy(folder: Path, pairs: pd.DataFrame) -> dict:
    """Measure the saved model as a respondent, on pairs that it was not trained on."""
    asked = load_respondent(folder, dtype="float32")
    answers = asked.answer(list(zip(pairs["premise"], pairs["hypothesis"], strict=True)))
    right = int((answers.argmax(axis=1) == pairs["label"].to_numpy()).sum())
    low, high = proportion_confint(right, len(pairs), method="wilson")
    found = {"accuracy": right / len(pairs), "low": low, "high": high}
    return {"held_out": len(pairs)} | {name: round(float(x), 4) for name, x in found.items()}


def _source_of(base: str | Path) -> Source:
    return find(base_path() if base == "minilm" else base)


def _source(name: str, split: bool) -> pd.DataFrame:
    if name == "mnli":
        return mnli_sample()
    frame = _read_source(name)
    held_out = split and "premise" in frame and _hash_split(frame["premise"], len(frame) // 2000)
    return frame.assign(held_out=held_out)


def _hash_split(texts: Sequence[str], one_in: int = 10) -> list[bool]:
    """Say which texts are held out: one in ten, or in more, by the SHA-256 of the text alone."""
    hashes = [hashlib.sha256(str(text).strip().encode()).hexdigest() for text in texts]
    return [int(found, 16) % max(10, one_in) == 0 for found in hashes]


def _snli_sample() -> pd.DataFrame:
    """Load SNLI's dev and test pairs: ``premise, hypothesis, label``, as in :func:`mnli_sample`."""
    names = ["premise", "hypothesis", "label"]
    parts = []
    for split in ("dev", "test"):
        files = (fetch(f"snli_{name}_{split}") for name in ("s1", "s2", "labels"))
        columns = [file.read_text(encoding="utf-8").splitlines() for file in files]
        if len({len(column) for column in columns}) != 1:
            raise DataError(f"e-SNLI's {split} files differ in length: fetch them again.")

        parts.append(pd.DataFrame(dict(zip(names, columns, strict=True))))

    frame = pd.concat(parts, ignore_index=True)
    for name in names[:2]:
        frame[name] = frame[name].str.replace(r"\s+([.,!?;:])", r"\1", regex=True).str.strip()

    frame["label"] = frame["label"].map(NLI_LABELS.index)
    return frame


def _read_source(name: str) -> pd.DataFrame:
    if name == "snli":
        return _snli_sample()
    path = Path(name)
    if path.suffix in (".csv", ".tsv"):
        return text_table(path).replace("", None)

    if path.suffix in (".jsonl", ".parquet"):
        if not path.is_file():
            raise DataError(f"{name} does not exist: name a file of labelled pairs.")

        try:
            return (
                pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_parquet(path)
            )
        except (ValueError, OSError) as error:  # pyarrow's errors are of these kinds, too
            raise DataError(f"{path} cannot be read ({error}): correct it.") from None

    datasets = needed("datasets")

    try:
        return datasets.load_dataset(name, split="train").to_pandas()
    except Exception as error:
        said = f"'{name}' is neither mnli, snli, a .csv/.tsv/.jsonl/.parquet file nor on the hub"
        raise DataError(f"{said} ({type(error).__name__}): check it, or the network.") from error


def _shape(config: PreTrainedConfig, layers: int | None, dropout: float | None) -> None:
    if layers is not None:
        if not 1 <= layers <= config.num_hidden_layers:
            raise ParameterError(f"layers must be from 1 to {config.num_hidden_layers}.")
        if counts_its_blocks(type(config)):
            raise ParameterError(f"A {config.model_type} keeps all its blocks: leave layers out.")

        config.num_hidden_layers = layers

    if dropout is not None:
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout",
                     "attention_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"):  # fmt: skip
            if isinstance(getattr(config, name, None), float):
                setattr(config, name, dropout)


def _classifier_with_adapter(
    model: PreTrainedModel, base: str | Path, rank: int, first: int = 0
) -> PeftModel:
    """A classifier with adapters from a layer on; what its base lacks is trained and kept whole."""
    prefix = model.base_model_prefix
    stored = _stored_names(base)
    children = [
        name for name, part in model.named_children() if any(True for _ in part.parameters())
    ]
    whole = [name for name in children if name != prefix]
    pooled = "pooler" in dict(model.base_model.named_children())
    if pooled and not any("pooler." in weight for weight in stored):
        whole.append(f"{prefix}.pooler")

    lower = [name for name in _linears(model) if not name.startswith(tuple(whole))]
    adapted = [name for name in lower if _layer(name) >= first]
    settings = _lora(rank, "SEQ_CLS", adapted, whole)
    # GPT-2 keeps its weights turned round.
    settings.fan_in_fan_out = any(isinstance(module, Conv1D) for module in model.modules())
    adapter = get_peft_model(model, settings)
    _name_base(adapter, base)

    return adapter


def _lora(
    rank: int, task: str | None, targets: list[str], whole: list[str] | None = None
) -> LoraConfig:
    return LoraConfig(
        task_type=task, r=rank, lora_alpha=2 * rank, target_modules=targets, modules_to_save=whole
    )


def _linears(model: PreTrainedModel) -> list[str]:
    """Names of the linear layers below the head; Conv1D is what GPT-2 calls them."""
    prefix = model.base_model_prefix
    return [
        f"{prefix}.{name}"
        for name, module in model.base_model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D)
    ]


def _layer(name: str) -> int:
    """Number of the layer that a module belongs to; one outside of them comes after all."""
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    return numbers[0] if numbers else sys.maxsize


def _name_base(model: PeftModel, base: str | Path) -> None:
    """Write into the adapter's settings where its base is found again.

    A folder stands there while it is trained: peft asks the hub about any other name.
    """
    path = Path(base_path() if str(base) == "minilm" else base).expanduser()
    name = str(path.resolve()) if path.is_dir() else str(base)
    model.peft_config["default"].base_model_name_or_path = name


def _stored_names(base: str | Path) -> set[str]:
    """Names of the weights that a base's checkpoint has."""
    names = set()
    for path in _source_of(base).fetch().glob("*.safetensors"):
        with safe_open(path, "pt") as weights:
            names |= set(weights.keys())
    return names


def _start_from(model: torch.nn.Module, adapter: str | Path) -> None:
    weights = load_peft_weights(str(adapter), device="cpu")
    weights = {name.replace(".weight", ".default.weight"): w for name, w in weights.items()}
    if model.load_state_dict(weights, strict=False).unexpected_keys:
        raise ParameterError(f"{adapter} is an adapter of another architecture or depth.")


class _MaskedTokensTrainer(Trainer):
    """Computes the vocabulary's logits at the masked tokens alone, a sixth of the work."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        if not hasattr(inner, "cls"):
            return super().compute_loss(model, {**inputs, "labels": labels}, return_outputs)
        hidden = inner.base_model(**inputs).last_hidden_state
        masked = labels != -100
        logits = inner.cls(hidden[masked])
        return torch.nn.functional.cross_entropy(logits.float(), labels[masked])


def _train(
    model, data, collator, output, settings: _Settings, digest, trainer=None, progress=True, **own
) -> dict:
    checkpoints = str(Path(output) / "checkpoints")
    lengths = [len(ids) for ids in data["input_ids"]]
    trainer = trainer or Trainer
    loop = trainer(
        model=model,
        args=_training_arguments(checkpoints, settings, len(data), progress),
        train_dataset=data.add_column("length", lengths),
        data_collator=collator,
        **own,
    )

    if not progress:
        loop.remove_callback(PrinterCallback)  # the Trainer puts it in the progress bar's place

    started = time.perf_counter()
    last = _checkpoint(Path(checkpoints), digest)
    done = int(last.rpartition("-")[2]) if last else 0

    try:
        result = loop.train(resume_from_checkpoint=last)
    except Exception as error:
        if loop.state.global_step > done or not last or out_of_memory(error):
            raise
        raise ParameterError(f"{last} cannot be read: remove it and call again.") from error

    if not np.isfinite(result.training_loss):
        raise ParameterError("The loss is not finite: choose a smaller learning rate (lr).")
    return {
        "steps": result.global_step,
        "resumed_at": done,
        "loss": round(result.training_loss, 4),
        "seconds": round(time.perf_counter() - started, 1),
        "digest": digest,
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
    }


def _training_arguments(
    checkpoints: str, settings: _Settings, rows: int, progress: bool
) -> TrainingArguments:
    steps = int(np.ceil(rows / settings.batch_size) * settings.epochs)
    on_gpu = _trains_on_gpu()
    arguments = TrainingArguments(
        output_dir=checkpoints,
        num_train_epochs=settings.epochs,
        learning_rate=settings.lr,
        warmup_steps=round(0.06 * steps),
        weight_decay=0.01,
        per_device_train_batch_size=settings.batch_size,
        train_sampling_strategy="group_by_length",
        length_column_name="length",
        use_cpu=not on_gpu,
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=50,
        report_to="none",
        disable_tqdm=not progress,
        dataloader_pin_memory=on_gpu,
        seed=settings.seed,
    )
    # The Trainer would use all of several GPUs, each with a batch of its own.
    arguments._n_gpu = min(1, arguments.n_gpu)

    return arguments


def _trains_on_gpu() -> bool:
    """Return whether training computes on a GPU, which is the first that the process sees.

    Raises
    ------
    ParameterError
        Another one was named, which the Trainer would not take.
    """
    device = resolve_device(None)
    if device.index:
        raise ParameterError(
            f"device: training takes the first GPU and not '{device}'; set "
            f"CUDA_VISIBLE_DEVICES={device.index} and name device='cuda'."
        )

    return device.type == "cuda"


def _make_folder(folder: str | Path) -> None:
    """Make a folder before anything is read for it, which can take minutes."""
    with writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)


def _finished(folder: Path, digest: str) -> dict | None:
    """Return the manifest of this training if it was done before; none if it was not.

    Raises
    ------
    ParameterError
        The folder holds another model.
    """
    manifest = folder / "manifest.json"
    files = ("config.json", "adapter_config.json")
    if manifest.is_file():
        known = read_json(str(folder), manifest)
        if known.get("digest") == digest:
            return known | {"resumed_at": known["steps"]}
    elif (folder / "checkpoints").is_dir() or not any((folder / name).exists() for name in files):
        return None
    raise ParameterError(_other(folder))


def _other(folder: Path) -> str:
    return (
        f"{folder} holds a model that was trained from another base, on other data or with other "
        "settings: name another folder, or remove this one."
    )


def _checkpoint(folder: Path, digest: str) -> str | None:
    """Return the last checkpoint of this training, whose digest lies beside it; none if it is new.

    Raises
    ------
    ParameterError
        The folder holds checkpoints of another training.
    """
    made_of = folder / "made_of.txt"
    last = get_last_checkpoint(folder) if folder.is_dir() else None
    if last and not (made_of.is_file() and made_of.read_text(encoding="utf-8") == digest):
        raise ParameterError(_other(folder.parent))
    folder.mkdir(parents=True, exist_ok=True)
    made_of.write_text(digest, encoding="utf-8")
    return last


def _digest(model, dataset: Dataset, settings: _Settings) -> str:
    """Return a digest of all that training starts from: weights, tokens, labels and settings."""
    digest = hashlib.sha256(repr(settings).encode())
    for start in range(0, len(dataset), 10_000):
        digest.update(repr(dataset[start : start + 10_000]).encode())
    for name, weights in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weights.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _save(model, tokenizer: PreTrainedTokenizerBase, output: str | Path) -> None:
    """Save a model so that plain transformers or peft load it, and say how in its README."""
    output = Path(output)
    config = model.config
    given = ""
    library = "transformers"
    builder = "AutoModelForSequenceClassification"
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)

    if isinstance(model, PeftModel):
        path = output / "adapter_config.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        if settings["base_model_name_or_path"] == str(Path(base_path()).resolve()):
            settings["base_model_name_or_path"] = BASE_MODEL  # wherever it lies elsewhere
            path.write_text(json.dumps(settings, indent=2), encoding="utf-8")

        # A config.json beside an adapter would be taken for the base's.
        kept = {name: getattr(config, name) for name in OF_HEADS}
        (output / "recipe.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
        library = "peft"
        builder = "AutoPeftModelForSequenceClassification"
        if not settings["task_type"]:  # a masked language model's, whose head is a file of its own
            return (output / "README.md").unlink(missing_ok=True)

        if counts_its_blocks(type(config)):
            del kept["num_hidden_layers"]

        numbers = {name: value for name, value in kept.items() if isinstance(value, int)}
        given = "".join(f", {name}={value}" for name, value in numbers.items())

    labels = ", ".join(config.id2label.values())
    text = _README.format(library=library, builder=builder, given=given, labels=labels)
    (output / "README.md").write_text(text, encoding="utf-8")


def _finish(manifest: dict, output: str | Path) -> dict:
    """Write the manifest; the checkpoints are no longer needed."""
    text = json.dumps(manifest, indent=1)
    (Path(output) / "manifest.json").write_text(text, encoding="utf-8")
    shutil.rmtree(Path(output) / "checkpoints", ignore_errors=True)
    return manifest
