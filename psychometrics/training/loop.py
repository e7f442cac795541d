"""The training loop, its checkpoints, and the resulting folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import numpy as np
import torch
from peft import PeftModel
from pydantic import Field, FiniteFloat, PositiveInt
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from ..checks import check_choice, check_kinds
from ..data import NLI_LABELS
from ..exceptions import ParameterError, needed
from ..files import replacing
from ..models.devices import resolve_device
from ..models.loading import OF_HEADS, counts_its_blocks
from ..models.model_files import read_json
from ..models.sources import BASE_MODEL, base_path

if TYPE_CHECKING:
    from datasets import Dataset

_README = (Path(__file__).parent / "templates" / "README.md").read_text(encoding="utf-8")


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

    def __post_init__(self) -> None:
        check_kinds(vars(self), get_type_hints(type(self), include_extras=True))

    @classmethod
    def of(cls, options: dict[str, Any]) -> Settings:
        """Return settings from names and values; refuse unknown names."""
        for name in options:
            check_choice([setting.name for setting in fields(cls)], setting=name)

        return cls(**options)


def tokenised(
    tokenizer: PreTrainedTokenizerBase, table: dict[str, list[Any]], max_length: int = 128
) -> Dataset:
    """Return the tokens and labels of texts as a data set."""
    datasets = needed("datasets")
    texts = [name for name in table if name != "label"]
    return datasets.Dataset.from_dict(table).map(
        lambda rows: tokenizer(
            *(rows[name] for name in texts), truncation=True, max_length=max_length
        ),
        batched=True,
        remove_columns=texts,
    )


def _train_into(
    output: str | Path,
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    dataset: Dataset,
    collator: Callable[..., Any],
    settings: Settings,
    describe: Callable[[], dict[str, Any]],
    progress: bool,
) -> dict[str, Any]:
    """Train into a folder, unless the folder already holds the result; return the manifest.

    Once the model is saved, ``describe`` returns further entries for the manifest.
    """
    # The digest of all that determines the result: settings, tokens, labels and weights.
    sha256 = hashlib.sha256(f"_{settings!r}".encode())  # the form in older folders
    for start in range(0, len(dataset), 10_000):
        sha256.update(repr(dataset[start : start + 10_000]).encode())
    for name, weights in model.state_dict().items():
        sha256.update(name.encode())
        sha256.update(weights.detach().cpu().reshape(-1).view(torch.uint8).numpy())

    digest = sha256.hexdigest()
    checkpoints = Path(output) / f"checkpoints-{digest[:16]}"
    finished = _read_finished(Path(output), digest, checkpoints)
    if finished:
        return finished

    manifest = train(model, dataset, collator, checkpoints, settings, progress)
    _save(model, tokenizer, output)
    manifest |= {"digest": digest} | describe()
    with replacing(Path(output) / "manifest.json") as temporary:
        temporary.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    shutil.rmtree(checkpoints, ignore_errors=True)
    return manifest


def train(
    model: PreTrainedModel | PeftModel,
    data: Dataset,
    collator: Callable[..., Any],
    checkpoints: Path,
    settings: Settings,
    progress: bool = True,
) -> dict[str, Any]:
    """Train a model in place; return the facts of the run for its manifest."""
    lengths = [len(ids) for ids in data["input_ids"]]
    loop = Trainer(
        model=model,
        args=_training_arguments(checkpoints, settings, len(data), progress),
        train_dataset=data.add_column("length", lengths),
        data_collator=collator,
    )

    if not progress:
        loop.remove_callback(PrinterCallback)  # the Trainer adds it instead of a progress bar

    started = time.perf_counter()
    checkpoint = _last_checkpoint(checkpoints)
    result = loop.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    if not np.isfinite(result.training_loss):
        raise ParameterError("The loss is not finite: choose a smaller learning rate (lr).")
    return {
        "steps": result.global_step,
        "resumed_at": _step_of(checkpoint) if checkpoint else 0,
        "loss": round(result.training_loss, 4),
        "seconds": round(time.perf_counter() - started, 1),
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
    }


def _training_arguments(
    checkpoints: Path, settings: Settings, rows: int, progress: bool
) -> TrainingArguments:
    steps = int(np.ceil(rows / settings.batch_size) * settings.epochs)
    on_gpu = _trains_on_gpu()
    arguments = TrainingArguments(
        output_dir=str(checkpoints),
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


def _read_finished(folder: Path, digest: str, checkpoints: Path) -> dict[str, Any] | None:
    """Return the manifest of a training run if it was completed before, otherwise None.

    Raises
    ------
    ParameterError
        The folder holds a different model, or checkpoints of a different training run.
    """
    manifest = folder / "manifest.json"
    files = ("checkpoints*", "config.json", "adapter_config.json")
    if manifest.is_file():
        facts: dict[str, Any] = read_json(str(folder), manifest)
        if facts.get("digest") == digest:
            return facts | {"resumed_at": facts["steps"]}
    elif checkpoints.is_dir() or not any(path for name in files for path in folder.glob(name)):
        return None

    raise ParameterError(
        f"{folder} holds a model that was trained from another base, on other data or with other "
        "settings: name another folder, or remove this one."
    )


def _last_checkpoint(folder: Path) -> Path | None:
    """Return the last complete checkpoint; one whose writing was stopped is removed."""
    for checkpoint in sorted(folder.glob("checkpoint-[0-9]*"), key=_step_of, reverse=True):
        try:
            # the Trainer writes this file last
            json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
        else:
            return checkpoint

    return None


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _save(
    model: PreTrainedModel | PeftModel, tokenizer: PreTrainedTokenizerBase, output: str | Path
) -> None:
    """Save a model so that plain transformers or peft load it, and explain how in its README."""
    output = Path(output)
    config = model.config
    arguments = ""
    library = "transformers"
    builder = "AutoModelForSequenceClassification"
    model.save_pretrained(str(output))
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
        if counts_its_blocks(type(config)):
            del recipe["num_hidden_layers"]

        numbers = {name: value for name, value in recipe.items() if isinstance(value, int)}
        arguments = "".join(f", {name}={value}" for name, value in numbers.items())

    labels = ", ".join(NLI_LABELS)
    text = _README.format(library=library, builder=builder, arguments=arguments, labels=labels)
    (output / "README.md").write_text(text, encoding="utf-8")
