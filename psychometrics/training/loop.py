"""The training loop, its checkpoints, and the resulting folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_type_hints
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from peft import PeftModel
from pydantic import Field, FiniteFloat, PositiveInt
from safetensors import SafetensorError, safe_open
from transformers import (
    EarlyStoppingCallback,
    EvalPrediction,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from ..checks import check_flags, check_kinds
from ..exceptions import ParameterError, needed, writing
from ..files import replacing
from ..models.devices import resolve_device
from ..models.loading import OF_HEADS, counts_its_blocks
from ..models.model_files import read_json
from ..models.sources import BASE_MODEL, base_path

if TYPE_CHECKING:
    from datasets import Dataset

_README = (Path(__file__).parent / "templates" / "README.md").read_text(encoding="utf-8")
_OTHER_MODEL = (
    "{folder} holds a model that was trained from another base, on other data or with other "
    "settings: name another folder, or remove this one."
)
_PATIENCE = 2
"""The number of epochs without improvement after which training stops."""


@dataclass(frozen=True)
class Settings:
    """Settings of a training run; see :func:`psychometrics.training.train_nli`."""

    tuning: Literal["unfrozen", "frozen", "lora"] = "unfrozen"
    epochs: Annotated[FiniteFloat, Field(gt=0, le=1000)] = 3.0
    lr: Annotated[FiniteFloat, Field(gt=0, lt=1)] = 5e-5
    batch_size: PositiveInt = 32
    rank: PositiveInt = 16
    layers: PositiveInt | None = None
    dropout: Annotated[FiniteFloat, Field(ge=0, lt=1)] | None = None
    max_length: Annotated[int, Field(ge=8)] = 128
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    stop_on: Literal["accuracy", "matthews"] | None = field(default=None, repr=False)  # see _digest

    def __post_init__(self) -> None:
        check_kinds(vars(self), get_type_hints(type(self), include_extras=True))

    @classmethod
    def of(cls, options: dict[str, object], **defaults: object) -> Settings:
        """Return settings from names and values; refuse unknown names."""
        names = [setting.name for setting in fields(cls)]
        strange = [name for name in options if name not in names]
        if strange:
            raise ParameterError(f"There is no setting '{strange[0]}': use {', '.join(names)}.")
        return cls(**(defaults | options))


def tokenised(
    tokenizer: PreTrainedTokenizerBase,
    table: dict[str, list],
    max_length: int = 128,
    **options: bool,
) -> Dataset:
    """Return the tokens and labels of texts as a data set."""
    datasets = needed("datasets")
    texts = [name for name in table if name != "label"]
    options |= {"truncation": True, "max_length": max_length}
    return datasets.Dataset.from_dict(table).map(
        lambda rows: tokenizer(*(rows[name] for name in texts), **options),
        batched=True,
        remove_columns=texts,
    )


class _MaskedTokensTrainer(Trainer):
    """A trainer that computes logits only at masked tokens, about a sixth of all tokens."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        if not hasattr(inner, "cls"):
            return super().compute_loss(model, {**inputs, "labels": labels}, return_outputs)
        hidden = inner.base_model(**inputs).last_hidden_state
        masked = labels != -100
        logits = inner.cls(hidden[masked])
        return torch.nn.functional.cross_entropy(logits.float(), labels[masked])


def _train_into(
    output: str | Path,
    model: torch.nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    collator: Callable,
    settings: Settings,
    describe: Callable[[], dict],
    progress: bool,
    trainer: type[Trainer] | None = None,
    **options: object,
) -> dict:
    """Train into a folder, unless the folder already holds the result; return the manifest.

    Once the model is saved, ``describe`` returns further entries for the manifest.
    """
    digest = _digest(model, dataset, settings, options.get("eval_dataset"))
    finished = _read_finished(Path(output), digest)
    if finished:
        return finished

    manifest = train(
        model, dataset, collator, output, settings, digest, trainer, progress, **options
    )
    _save(model, tokenizer, output)
    manifest |= describe()
    with replacing(Path(output) / "manifest.json") as temporary:
        temporary.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    shutil.rmtree(Path(output) / "checkpoints", ignore_errors=True)
    return manifest


def train(
    model, data, collator, output, settings, digest="", trainer=None, progress=True, **options
) -> dict:
    """Train a model in place; return the facts of the run for its manifest."""
    check_flags(progress=progress)
    checkpoints = str(Path(output) / "checkpoints")
    lengths = [len(ids) for ids in data["input_ids"]]
    loop = (trainer or Trainer)(
        model=model,
        args=_training_arguments(checkpoints, settings, len(data), progress),
        train_dataset=data.add_column("length", lengths),
        data_collator=collator,
        **options,
    )

    if not progress:
        loop.remove_callback(PrinterCallback)  # the Trainer adds it instead of a progress bar

    started = time.perf_counter()
    last = _last_checkpoint(Path(checkpoints), digest)
    resumed_at = _step_of(last) if last else 0
    result = loop.train(resume_from_checkpoint=last and str(last))

    if not np.isfinite(result.training_loss):
        raise ParameterError("The loss is not finite: choose a smaller learning rate (lr).")
    facts = {"best": loop.state.best_metric} if settings.stop_on else {}
    return facts | {
        "steps": result.global_step,
        "resumed_at": resumed_at,
        "loss": round(result.training_loss, 4),
        "seconds": round(time.perf_counter() - started, 1),
        "digest": digest,
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
    }


def _stopping(tokenizer, table: dict[str, list], settings: Settings) -> dict:
    """Return the settings that stop training early and keep the best epoch on labelled texts."""
    from sklearn.metrics import accuracy_score, matthews_corrcoef  # slow to load

    measure = {"accuracy": accuracy_score, "matthews": matthews_corrcoef}[settings.stop_on or ""]

    def compute_metrics(output: EvalPrediction) -> dict[str, float]:
        return {str(settings.stop_on): float(measure(output.label_ids, output.predictions))}

    def choose_labels(logits, labels):
        first = logits[0] if isinstance(logits, tuple) else logits  # BART also returns its states
        return first.argmax(dim=-1)

    return {
        "eval_dataset": tokenised(tokenizer, table, settings.max_length),
        "compute_metrics": compute_metrics,
        "preprocess_logits_for_metrics": choose_labels,
        "callbacks": [EarlyStoppingCallback(early_stopping_patience=_PATIENCE)],
    }


def _training_arguments(
    checkpoints: str, settings: Settings, rows: int, progress: bool
) -> TrainingArguments:
    steps = int(np.ceil(rows / settings.batch_size) * settings.epochs)
    on_gpu = _trains_on_gpu()
    stopping = {}
    if settings.stop_on:
        stopping = {"eval_strategy": "epoch", "load_best_model_at_end": True}
        stopping |= {"greater_is_better": True, "metric_for_best_model": settings.stop_on}

    arguments = TrainingArguments(
        **stopping,
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
    # The Trainer would use all of several GPUs, each with its own batch.
    arguments._n_gpu = min(1, arguments.n_gpu)

    return arguments


def _trains_on_gpu() -> bool:
    """Return whether training uses a GPU, always the first one that the process sees.

    Raises
    ------
    ParameterError
        The named GPU is not the first, so the Trainer would not use it.
    """
    device = resolve_device(None)
    if device.index:
        raise ParameterError(
            f"device: training uses the first GPU, not '{device}'; set "
            f"CUDA_VISIBLE_DEVICES={device.index} and name device='cuda'."
        )

    return device.type == "cuda"


def _make_folder(folder: str | Path) -> None:
    """Make the folder before the data are read, since reading can take minutes."""
    with writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)


def _read_finished(folder: Path, digest: str) -> dict | None:
    """Return the manifest of a training run if it was completed before, otherwise None.

    Raises
    ------
    ParameterError
        The folder holds a different model.
    """
    manifest = folder / "manifest.json"
    files = ("config.json", "adapter_config.json")
    if manifest.is_file():
        facts = read_json(str(folder), manifest)
        if facts.get("digest") == digest:
            return facts | {"resumed_at": facts["steps"]}
    elif (folder / "checkpoints").is_dir() or not any((folder / name).exists() for name in files):
        return None
    raise ParameterError(_OTHER_MODEL.format(folder=folder))


def _last_checkpoint(folder: Path, digest: str) -> Path | None:
    """Return the last complete checkpoint of a training run with a given digest, if there is one.

    Later checkpoints, whose writing was stopped, are removed.

    Raises
    ------
    ParameterError
        The folder holds checkpoints of a different training run.
    """
    made_of = folder / "made_of.txt"
    checkpoints = sorted(folder.glob("checkpoint-[0-9]*"), key=_step_of, reverse=True)
    if checkpoints and not (made_of.is_file() and made_of.read_text(encoding="utf-8") == digest):
        raise ParameterError(_OTHER_MODEL.format(folder=folder.parent))

    folder.mkdir(parents=True, exist_ok=True)
    with replacing(made_of) as temporary:
        temporary.write_text(digest, encoding="utf-8")

    for checkpoint in checkpoints:
        if _is_complete(checkpoint):
            return checkpoint
        shutil.rmtree(checkpoint)

    return None


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _is_complete(checkpoint: Path) -> bool:
    """Return whether the Trainer wrote all files of a checkpoint to their ends."""
    weights = list(checkpoint.glob("*.safetensors"))
    try:
        for path in weights:
            safe_open(path, "pt")  # compares the file's length with its header
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            if ZipFile(checkpoint / name).testzip() is not None:
                return False
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, SafetensorError, BadZipFile):
        return False

    return bool(weights)


def _digest(model, dataset: Dataset, settings: Settings, stop_set: Dataset | None = None) -> str:
    """Return a digest of the inputs of a training run: weights, tokens, labels and settings."""
    # the form in older folders, which did not know stop_on
    digest = hashlib.sha256(f"_{settings!r}{settings.stop_on or ''}".encode())
    for rows in (dataset, stop_set or ()):
        for start in range(0, len(rows), 10_000):
            digest.update(repr(rows[start : start + 10_000]).encode())
    for name, weights in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weights.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _save(model, tokenizer: PreTrainedTokenizerBase, output: str | Path) -> None:
    """Save a model so that plain transformers or peft load it, and explain how in its README."""
    output = Path(output)
    config = model.config
    arguments = ""
    library = "transformers"
    builder = "AutoModelForSequenceClassification"
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)

    if isinstance(model, PeftModel):
        path = output / "adapter_config.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        if settings["base_model_name_or_path"] == str(Path(base_path()).resolve()):
            settings["base_model_name_or_path"] = BASE_MODEL  # the path differs on other machines
            path.write_text(json.dumps(settings, indent=2), encoding="utf-8")

        # A config.json in an adapter's folder would be mistaken for the base's.
        recipe = {name: getattr(config, name) for name in OF_HEADS}
        (output / "recipe.json").write_text(json.dumps(recipe, indent=1), encoding="utf-8")
        library = "peft"
        builder = "AutoPeftModelForSequenceClassification"
        if not settings["task_type"]:  # a masked language model has its head in a separate file
            return (output / "README.md").unlink(missing_ok=True)

        if counts_its_blocks(type(config)):
            del recipe["num_hidden_layers"]

        numbers = {name: value for name, value in recipe.items() if isinstance(value, int)}
        arguments = "".join(f", {name}={value}" for name, value in numbers.items())

    labels = ", ".join(config.id2label.values())
    text = _README.format(library=library, builder=builder, given=arguments, labels=labels)
    (output / "README.md").write_text(text, encoding="utf-8")
