"""The embedded models in data/: NLI members, a masked-LM head and an acceptability head.

A member is a low-rank adapter (or, for a frozen base, a head), stored in fp16 under
``data/population/<name>/``; the other two heads are under ``data/heads/``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import NLI_LABELS, shipped
from ..exceptions import IncompleteModelError, RespondentError
from ..paths import data_dir
from .loading import load_config, load_model, load_tokenizer
from .sources import SMOLLM2, base_path, find

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


def load_embedded(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an embedded member, with its adapter merged and the label names in the config.

    Parameters
    ----------
    name : str
        A name in ``population("embedded")``.

    Returns
    -------
    model, tokenizer
        The model, in float32 and evaluation mode: a ``transformers`` sequence classifier on the
        encoder, or a causal model on smollm2. All members on the same base share one tokenizer
        object.

    Raises
    ------
    RespondentError
        The member is unknown.

    Examples
    --------
    >>> model, tokenizer = load_embedded("minilm-mnli-l3-s16")
    >>> model.config.id2label[0]
    'entailment'
    """
    source = find(name)

    if source.kind != "embedded":
        raise RespondentError(f"There is no member '{name}': see `psychometrics population`.")
    folder = source.local_folder
    recipe = source.recipe
    if not any(folder.glob("*.safetensors")):
        raise IncompleteModelError(
            f"{name} is installed without weights: `pip install ./decoders`."
        )

    if recipe.get("base") == SMOLLM2:
        base = find(SMOLLM2)
        config = load_config(base, num_hidden_layers=recipe["layers"])
        model, tokenizer = load_model(base, "causal", config=config, tokenizer=_tokenizer(base))
        _merge(model.state_dict(), folder)
        return model.eval(), tokenizer

    weights, tokenizer, config = embedded_weights(name)
    model, _ = load_model(
        # Eager attention as in training, so that answers are the measured ones.
        base_path(), "classifier", config=config, tokenizer=tokenizer,
        fresh=True, attn_implementation="eager",
    )  # fmt: skip
    model.load_state_dict(weights)

    return model.float().eval(), tokenizer


def embedded_weights(
    name: str,
) -> tuple[dict[str, torch.Tensor], PreTrainedTokenizerBase, PreTrainedConfig]:
    """Return the weights of an embedded member on the encoder, its tokenizer and its config.

    The weights are float32, with the adapter merged, under their names in transformers.
    """
    import torch

    source = find(name)
    config = load_config(
        base_path(),
        num_labels=len(NLI_LABELS),
        id2label=dict(enumerate(NLI_LABELS)),
        label2id={label: index for index, label in enumerate(NLI_LABELS)},
    )
    config.num_hidden_layers = source.recipe["layers"]
    encoder = _weights(find(base_path()).fetch() / "model.safetensors")
    encoder.pop("embeddings.position_ids")
    weights = {
        f"bert.{name}": weight
        for name, weight in encoder.items()
        if _layer(name) < config.num_hidden_layers
    }
    weights["classifier.weight"] = torch.empty(len(NLI_LABELS), config.hidden_size)
    weights["classifier.bias"] = torch.empty(len(NLI_LABELS))

    if source.recipe["tuning"] == "frozen":
        weights |= _weights(source.local_folder / "head.safetensors")
    else:
        _merge(weights, source.local_folder)

    return weights, _tokenizer(base_path()), config


def load_masked_lm() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the embedded masked language model.

    Returns
    -------
    model, tokenizer
        The base encoder with an adapter and a head trained on MNLI's sentences, in fp32 and
        evaluation mode, and its tokenizer.

    Raises
    ------
    RespondentError
        The embedded head is missing.

    Examples
    --------
    >>> model, tokenizer = load_masked_lm()
    >>> tokenizer.mask_token
    '[MASK]'
    """
    folder = embedded_head("mlm")[0]
    model, tokenizer = load_model(base_path(), "masked", fresh=True)
    _merge(model.state_dict(), folder)

    # The weights that do not belong to the base's body.
    weights = _weights(folder / "head.safetensors")
    body = f"{model.base_model_prefix}."
    outside = (name for name, _ in model.named_parameters() if not name.startswith(body))
    _check_complete(folder.name, outside, weights)
    model.load_state_dict(weights, strict=False)
    return model.float().eval(), tokenizer


def embedded_head(name: str) -> tuple[Path, dict[str, Any]]:
    """Return the folder of an embedded head, and the record of its training and performance.

    Raises
    ------
    RespondentError
        The head's weights are missing.

    Examples
    --------
    >>> embedded_head("cola")[0].name
    'cola'
    """
    folder = data_dir() / "heads" / name
    for path in folder.glob("*.safetensors"):
        shipped(path)
    if not (folder / "adapter_model.safetensors").is_file():
        raise RespondentError(f"data/heads has no '{name}': install the project again.")
    return folder, json.loads((folder / "recipe.json").read_text(encoding="utf-8"))


def acceptability(sentences: Sequence[str], name: str | Path = "embedded") -> NDArray[np.float32]:
    """Return the probability that each sentence is linguistically acceptable.

    Parameters
    ----------
    sentences : sequence of str
        n sentences. Repeated sentences are scored once.
    name : str or Path
        ``"embedded"``, SmolLM2 with an adapter and a head trained on CoLA; or a local folder or a
        hub id of a model with two outputs, of which the second means acceptable.

    Returns
    -------
    ndarray of float32, shape (n,)

    Raises
    ------
    RespondentError
        The embedded head or SmolLM2 is missing, or the model does not have two outputs.

    Examples
    --------
    >>> acceptability(["I feel calm.", "Calm I the of."]).round(1)
    array([0.9, 0. ], dtype=float32)
    """
    import torch

    if name == "embedded":
        folder, recipe = embedded_head("cola")
        wording = recipe["wording"]
        config = load_config(SMOLLM2, num_labels=2, num_hidden_layers=recipe["layers"])
        model, tokenizer = load_model(SMOLLM2, "classifier", config=config, fresh=True)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token

        # A decoder's answer is at the last token that is not padding.
        model.config.pad_token_id = tokenizer.pad_token_id
        tokenizer.padding_side = "right"
        _merge(model.state_dict(), folder)
    else:
        wording = "{sentence}"
        model, tokenizer = load_model(find(name), "classifier", what="an acceptability classifier")
        if model.config.num_labels != 2:
            raise RespondentError(f"{name} has {model.config.num_labels} outputs, not two.")

    unique = sorted(set(sentences), key=len)
    values = []
    with torch.inference_mode():
        for start in range(0, len(unique), 128):
            texts = [wording.format(sentence=text) for text in unique[start : start + 128]]
            inputs = tokenizer(
                texts, padding=True, truncation=True, max_length=128, return_tensors="pt"
            )
            values.append(model(**inputs).logits.float().softmax(dim=-1)[:, 1])

    answers = dict(zip(unique, torch.cat(values).numpy(), strict=True))
    return np.array([answers[sentence] for sentence in sentences], dtype=np.float32)


def is_wording(text: object) -> bool:
    """Return whether a text has the gaps of a pair and no other gaps.

    Examples
    --------
    >>> is_wording("{premise} So: {hypothesis}"), is_wording("{premise} {label}")
    (True, False)
    """
    gaps = re.findall(r"{[^}]*}?|}", text) if isinstance(text, str) else []
    return set(gaps) == {"{premise}", "{hypothesis}"}


def worded(pairs: Iterable[tuple[str, ...]], wording: str) -> list[str]:
    """Turn pairs into texts with a wording that has ``{premise}`` and ``{hypothesis}``.

    Examples
    --------
    >>> worded([("It rained. ", "It was wet.")], "{premise} So: {hypothesis}")
    ['It rained. So: It was wet.']
    """
    return [
        wording.format(premise=premise.strip(), hypothesis=hypothesis.strip())
        for premise, hypothesis in pairs
    ]


def _merge(into: dict[str, torch.Tensor], folder: Path) -> None:
    """Merge one of our adapters into weights: add low-rank matrices, replace whole matrices.

    The result equals that of peft's ``merge_and_unload`` bit for bit, but merging is faster: peft
    builds a new model with its own layers for each member of a population.
    """
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    scale = config["lora_alpha"] / config["r"]
    weights = _weights(folder / "adapter_model.safetensors")
    weights = {name.removeprefix("base_model.model."): weights[name] for name in weights}
    ends = config["target_modules"]
    layers = config.get("layers_to_transform")
    adapted = [
        name.removesuffix(".weight")
        for name in into
        if name.endswith(tuple(f".{end}.weight" for end in ends))
        and (layers is None or _layer(name) in layers)
    ]
    required = (f"{name}.lora_{half}.weight" for name in adapted for half in "AB")
    _check_complete(folder.name, required, weights)

    for name, weight in weights.items():
        if name.endswith("lora_B.weight"):
            below = weights[name.replace("lora_B", "lora_A")]
            change = (weight @ below).mul_(scale)
            # GPT-2 stores its weights transposed, and older adapters do not record this.
            change = change.T if config.get("fan_in_fan_out") else change
            into[name.replace("lora_B.", "")] += change
        elif not name.endswith("lora_A.weight"):
            into[name].copy_(weight)


def _layer(name: str) -> int:
    """Return the number of a weight's layer, or -1 for weights outside the layers.

    Examples
    --------
    >>> _layer("encoder.layer.11.output.dense.weight"), _layer("embeddings.word_embeddings.weight")
    (11, -1)
    """
    number = re.search(r"\.(\d+)\.", name)
    return int(number[1]) if number else -1


def _check_complete(name: str, required: Iterable[str], weights: Iterable[str]) -> None:
    """Refuse an adapter or a head that lacks some of its weights."""
    missing = sorted(set(required) - set(weights))
    if missing:
        raise IncompleteModelError(f"{name} lacks {missing[0]}: recopy its folder.")


# A tokenizer takes a third of a member's loading time.
_tokenizer = functools.lru_cache(maxsize=2)(load_tokenizer)


def _weights(path: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {name: weight.float() for name, weight in load_file(path).items()}
