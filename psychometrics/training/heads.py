"""Make models ready for training, with new heads and with adapters on their layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import safe_open
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.pytorch_utils import Conv1D

from ..data import NLI_LABELS
from ..exceptions import ParameterError
from ..models.loading import counts_its_blocks, load_config, load_model
from ..models.sources import Source, base_path, find
from .loop import Settings

# The names that families of models give to their shares of dropout.
_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout",
             "resid_pdrop", "embd_pdrop", "attn_pdrop")  # fmt: skip


def nli_classifier(
    base: str | Path, layers: int | None = None, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a three-way classifier on a base model, with a new head if the model has none.

    The parameters are those of :func:`psychometrics.training.train_nli`; the outputs are
    entailment, neutral and contradiction. The tokenizer is also returned.
    """
    source = _source_of(base)
    config = load_config(
        source,
        num_labels=len(NLI_LABELS),
        id2label=dict(enumerate(NLI_LABELS)),
        label2id={label: index for index, label in enumerate(NLI_LABELS)},
    )
    if layers is not None:
        if not 1 <= layers <= config.num_hidden_layers:
            raise ParameterError(f"layers must be 1 to {config.num_hidden_layers}, got {layers}.")
        if counts_its_blocks(type(config)):
            raise ParameterError(f"A {config.model_type} keeps all its blocks: leave layers out.")

        config.num_hidden_layers = layers

    for name in _DROPOUTS if dropout is not None else ():
        if isinstance(getattr(config, name, None), float):
            setattr(config, name, dropout)

    # Eager attention trains small encoders 1.4 times as fast as the fused kernel on a CPU.
    model, tokenizer = load_model(
        source, "classifier", config=config, fresh=True, attn_implementation="eager"
    )

    # Batches have texts of several lengths, and decoders' tokenizers may have no padding.
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            problem = f"{base}'s tokenizer has neither a padding nor an end token"
            raise ParameterError(f"{problem}: set pad_token and save the tokenizer again.")
        tokenizer.pad_token = tokenizer.eos_token

    # A decoder's classifier uses it to find the last token that is not padding.
    model.config.pad_token_id = tokenizer.pad_token_id
    if getattr(model.config, "summary_type", None) != "last":  # XLNet reads the last position
        tokenizer.padding_side = "right"  # learned positions count from the left

    return model, tokenizer


def _tuned_classifier(
    base: str | Path, settings: Settings
) -> tuple[PreTrainedModel | PeftModel, PreTrainedTokenizerBase]:
    """Return a classifier in which only the chosen parts are trained, and its tokenizer."""
    model, tokenizer = nli_classifier(base, settings.layers, settings.dropout)
    if settings.tuning == "lora":
        return _classifier_with_adapter(model, base, settings.rank), tokenizer

    if settings.tuning == "frozen":
        # BERT's pooler counts as part of the head
        for name, parameter in model.base_model.named_parameters():
            parameter.requires_grad_(name.startswith("pooler."))

    return model, tokenizer


def _source_of(base: str | Path) -> Source:
    return find(base_path() if base == "minilm" else base)


def _classifier_with_adapter(model: PreTrainedModel, base: str | Path, rank: int) -> PeftModel:
    """Return a classifier with adapters on its layers; its new parts are trained in full."""
    prefix = model.base_model_prefix
    stored = set()  # the names of the weights in the base's checkpoint
    for path in _source_of(base).fetch().glob("*.safetensors"):
        with safe_open(path, "pt") as weights:
            stored |= set(weights.keys())

    children = [name for name, module in model.named_children() if list(module.parameters())]
    in_full = [name for name in children if name != prefix]
    has_pooler = "pooler" in dict(model.base_model.named_children())
    if has_pooler and not any("pooler." in weight for weight in stored):
        in_full.append(f"{prefix}.pooler")

    lower = [name for name in _linears(model) if not name.startswith(tuple(in_full))]
    return with_adapter(
        model,
        rank,
        base,
        task_type="SEQ_CLS",
        target_modules=lower,
        modules_to_save=in_full,
        # GPT-2 stores its weights transposed.
        fan_in_fan_out=any(isinstance(module, Conv1D) for module in model.modules()),
    )


def with_adapter(
    model: PreTrainedModel, rank: int, base: str | Path | None = None, **settings: Any
) -> PeftModel:
    """Add an adapter, which names its base, to linear layers of a model, by default to all."""
    settings = {"target_modules": _linears(model)} | settings
    adapter = get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, **settings))
    if base is not None:
        # During training the settings name an existing folder, since peft asks the hub about any
        # other name.
        path = Path(base_path() if str(base) == "minilm" else base).expanduser()
        name = str(path.resolve()) if path.is_dir() else str(base)
        adapter.peft_config["default"].base_model_name_or_path = name

    return adapter


def _linears(model: PreTrainedModel) -> list[str]:
    """Return the names of the linear layers (Conv1D in GPT-2) below the head."""
    prefix = model.base_model_prefix
    return [
        f"{prefix}.{name}"
        for name, module in model.base_model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D)
    ]
