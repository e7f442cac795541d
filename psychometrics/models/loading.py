"""Load models from safetensors only, without running a model's own code.

Every failure is a :class:`~psychometrics.exceptions.RespondentError` that names the model and the
remedy. A source is the result of :func:`psychometrics.models.sources.find`, a folder, or a hub id.
Torch and transformers are imported inside the functions, because importing them takes seconds. This
module loads configurations, weights and tokenizers, because damage in any of the three raises the
same error; other modules handle devices and lengths.
"""

from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..checks import check_choice
from ..exceptions import IncompleteModelError, RespondentError, out_of_memory
from .chat_templates import _check_template
from .model_files import _TOKENIZER_FILES, _check_token_limit, read_json
from .sources import Source, find

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

# Kinds of heads: the class in transformers, and the name of such a model in messages.
_HEADS = {
    "classifier": ("AutoModelForSequenceClassification", "a sequence classifier"),
    "masked": ("AutoModelForMaskedLM", "a masked language model"),
    "causal": ("AutoModelForCausalLM", "a causal language model"),
    "permutation": ("AutoModelForCausalLM", "a permutation language model"),
    "encoder-decoder": ("AutoModelForSeq2SeqLM", "an encoder-decoder"),
    "next-sentence": ("AutoModelForNextSentencePrediction", "a next-sentence predictor"),
    "encoder": ("AutoModel", "an encoder"),
}
_MOST_LAYERS = 2000
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
OF_HEADS = ("id2label", "label2id", "num_labels", "num_hidden_layers", "pad_token_id")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while libraries are imported and a model is built.

    The collector would scan hundreds of thousands of new objects, almost all of which are in use.
    Such a scan would take a tenth of the time needed to load the first model of a process.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_no_garbage_collection()
def load_model(
    source: Source | str | Path,
    head: str,
    *,
    config: PreTrainedConfig | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    dtype: str = "float32",
    fresh: bool = False,
    what: str = "",
    **options: object,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model with a head, and its tokenizer.

    Parameters
    ----------
    source : Source, str or Path
        A source, a folder, or a hub id.
    head : {"classifier", "masked", "causal", "permutation", "encoder-decoder", "next-sentence",
        "encoder"}
    config : PreTrainedConfig, optional
        A configuration; by default the model's own, as :func:`load_config` returns it.
    tokenizer : PreTrainedTokenizerBase, optional
        A loaded tokenizer, for models that share one.
    dtype : str
        Precision in which the weights are read. An adapter is always merged in float32.
    fresh : bool
        Whether weights that are missing from the checkpoint may be random, to be trained; by
        default, missing weights are an error.
    what : str
        Kind of model, for error messages.
    **options
        Options of transformers' ``from_pretrained``, such as ``attn_implementation``.

    Returns
    -------
    model, tokenizer
        The model, on the processor, in evaluation mode; and its tokenizer. An encoder whose
        checkpoint lacks the pooler is loaded without it.

    Raises
    ------
    RespondentError
        The model is missing, damaged or of a different kind, its head was never trained, or it
        needs pickle weights or code of its own.

    Examples
    --------
    >>> from psychometrics.models.sources import base_path
    >>> model, tokenizer = load_model(base_path(), "encoder")
    >>> model.config.num_hidden_layers
    6
    """
    import torch

    check_choice(tuple(_HEADS), head=head)
    kind = what or _HEADS[head][1]
    source = find(source)
    name = source.name
    if config is None:
        config = load_config(source)

    builder = _choose_builder(name, kind, head, config)
    precision = "float32" if source.base is not None else dtype
    with quietly(), loading_errors(name, kind):
        model, report = builder.from_pretrained(
            source.fetch(),
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            # The error would otherwise refer to a report that is not shown.
            ignore_mismatched_sizes=True,
            dtype=getattr(torch, precision),
            **options,
        )

    missing = set(report["missing_keys"])
    of_pooler = {key for key in missing if key.startswith("pooler.")}
    if head == "encoder" and of_pooler:
        # Checkpoints of masked language models lack it, and hidden states do not need it.
        model.pooler = None
        missing -= of_pooler

    if source.base is not None:
        merged = _merge_adapter(model, source, kind, missing)
        return merged, tokenizer or load_tokenizer(source)

    _check_depth(source, model, config, report["unexpected_keys"])
    if not fresh:
        correction = _suggest_correction(head, config, bool(report["unexpected_keys"]))
        _check_trained(name, kind, report["mismatched_keys"], missing, correction)

    return model.eval(), tokenizer or load_tokenizer(source)


def _choose_builder(name: str, kind: str, head: str, config: PreTrainedConfig) -> Any:
    """Return transformers' class for a head; refuse an architecture that cannot have it."""
    import transformers

    builder = getattr(transformers, _HEADS[head][0])
    if head == "causal" and _sees_and_writes(config):
        builder = transformers.AutoModelForImageTextToText  # used with text only

    if type(config) not in builder._model_mapping:
        raise RespondentError(
            f"{name} cannot be loaded as {kind}: it is a {config.model_type}; "
            f"{_suggest_correction(head, config)}.",
            kind="architecture",
        )

    if head == "causal" and not decodes(config):
        raise RespondentError(f"{name} ({config.model_type}): name a decoder.", kind="architecture")
    return builder


def _suggest_correction(head: str, config: PreTrainedConfig, has_own_head: bool = True) -> str:
    """Suggest what to do with a model that lacks a head."""
    from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

    if head != "classifier":
        return "name another model"

    suggestions = []
    if config.is_encoder_decoder:
        suggestions.append("ask it with --mode options")
    elif decodes(config):
        suggestions.append("ask it with --mode options, --mode causal or --mode chat")
    elif has_own_head and type(config) in AutoModelForMaskedLM._model_mapping:
        suggestions.append("ask it with --mode mlm")
    if type(config) in AutoModelForSequenceClassification._model_mapping:
        suggestions.append("train a head on it with `psychometrics train-nli`")

    return ", or ".join(suggestions or ["name an NLI model"])


def _check_depth(
    source: Source, model: PreTrainedModel, config: PreTrainedConfig, unexpected: Iterable[str]
) -> None:
    """Refuse a model whose files hold weights for more layers than its configuration has."""
    depth = getattr(load_config(source), "num_hidden_layers", 0)
    if getattr(config, "num_hidden_layers", 0) != depth:
        return  # the model was cut on purpose

    names = [f".{name}" for name, _ in model.named_modules()]
    for key in sorted(unexpected):
        place = re.search(r"(\.\w+\.)(\d+)\.", key)
        if place is None:
            continue

        layers, number = place.groups()
        has_list = any(name.endswith(f"{layers}0") for name in names)
        if has_list and not any(name.endswith(f"{layers}{number}") for name in names):
            raise IncompleteModelError(
                f"{source.name} has weights of {key[: place.end() - 1]} and {depth} layers: copy "
                "the model again."
            )


def _check_trained(
    name: str, kind: str, mismatched: Iterable[tuple[Any, ...]], missing: set[str], correction: str
) -> None:
    """Refuse weights that have the wrong shape or are missing from the checkpoint."""
    if mismatched:
        key, *shapes = min(mismatched)
        stored, configured = (" × ".join(map(str, shape)) for shape in shapes)
        raise IncompleteModelError(
            f"{name} cannot be loaded as {kind}: its {key} is {stored}, but its config.json asks "
            f"for {configured}; copy both files again from one model."
        )

    if missing:
        raise RespondentError(
            f"{name} is not trained as {kind}: it lacks {min(missing)}; {correction}.",
            kind="architecture",
        )


def _sees_and_writes(config: PreTrainedConfig) -> bool:
    """Return whether a vision-language model has a decoder that can answer from text alone."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    inner = text_config(config)
    return (
        type(config) in AutoModelForImageTextToText._model_mapping
        and type(config) not in AutoModelForCausalLM._model_mapping
        and inner is not config
        and not (config.is_encoder_decoder or inner.is_encoder_decoder)
    )


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """Return the text part of a configuration, which is the whole for a text-only model."""
    return getattr(config, "text_config", None) or config


@_no_garbage_collection()
def load_config(source: Source | str | Path, **changes: object) -> PreTrainedConfig:
    """Load a model's configuration, with changes; errors as in :func:`load_model`.

    An adapter has its base's configuration, with the outputs named by its ``recipe.json`` (or, in
    older folders, its ``config.json``).
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    source = find(source)
    name = source.name
    family = source.config.get("model_type")

    if family and (not isinstance(family, str) or family not in CONFIG_MAPPING):
        raise RespondentError(f"transformers does not know {family} ({name}).", kind="architecture")

    for key, value in source.config.items():
        if "layer" in key and isinstance(value, int) and value > _MOST_LAYERS:
            raise IncompleteModelError(f"{name} has {value} as {key}: correct it.")
        if key in _LAYERS and (not isinstance(value, int) or value < 1):
            raise IncompleteModelError(
                f"{name}, config.json: {key} is {value!r} instead of a positive number of layers; "
                "correct this number."
            )

    if source.config.get("return_dict") is False:  # outputs are accessed by name
        changes = {"return_dict": True} | changes

    if source.base is not None:
        settings = source.local_folder / "config.json"
        recorded = (read_json(name, settings) if settings.is_file() else {}) | source.recipe
        of_head = {key: recorded[key] for key in OF_HEADS if key in recorded}
        outputs = None if of_head else _outputs(source)
        if outputs:
            of_head = {"num_labels": outputs}

        if family and counts_its_blocks(CONFIG_MAPPING[family]):
            of_head.pop("num_hidden_layers", None)

        changes = of_head | changes
        names = changes.get("id2label")
        if isinstance(names, dict):
            changes["id2label"] = {int(number): label for number, label in names.items()}

    with loading_errors(name, "a model"):
        config: PreTrainedConfig = AutoConfig.from_pretrained(
            source.fetch(), trust_remote_code=False, **changes
        )

    return config


def counts_its_blocks(kind: type[PreTrainedConfig]) -> bool:
    """Return whether the number of layers follows from blocks, as in Funnel, and cannot be set."""
    return isinstance(getattr(kind, "num_hidden_layers", None), property)


def _outputs(adapter: Source) -> int:
    """Return the number of outputs of the classifier in a peft adapter, or 0 if it has none."""
    from safetensors import safe_open

    heads = re.compile(r".*\b(classifier|score|out_proj|logits_proj)(\.\w+)?\.weight")
    path = adapter.local_folder / "adapter_model.safetensors"
    with loading_errors(adapter.name, "an adapter"), safe_open(path, "np") as weights:
        names = [name for name in weights.keys() if "lora_" not in name]  # noqa: SIM118
        shapes = [weights.get_slice(name).get_shape() for name in names if heads.match(name)]
    return shapes[-1][0] if shapes else 0


def load_tokenizer(source: Source | str | Path) -> PreTrainedTokenizerBase:
    """Load a model's tokenizer; errors as in :func:`load_model`.

    A tokenizer of a class unknown to transformers is refused: transformers would silently use a
    different one, which would change the answers.
    """
    from transformers import AutoTokenizer
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    source = find(source)
    name = source.name
    folder = source.fetch()

    if source.base is not None:
        adapter = source.local_folder
        if any((adapter / file).is_file() for file in _TOKENIZER_FILES):
            folder = adapter  # it may have a padding token that the base lacks

    settings = folder / "tokenizer_config.json"
    recorded = read_json(name, settings) if settings.is_file() else {}
    kind = recorded.get("tokenizer_class")
    own_code = "AutoTokenizer" in (recorded.get("auto_map") or {})

    with loading_errors(name, "a tokenizer"):
        if (own_code or kind) and (not kind or tokenizer_class_from_name(str(kind)) is None):
            raise RespondentError(
                f"{name} has a tokenizer that transformers does not know ({kind or 'auto_map'} in "
                "tokenizer_config.json), and program code of its own is never run: choose a model "
                "whose tokenizer transformers knows.",
                kind="remote code",
            )

        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        _check_token_limit(name, tokenizer.model_max_length)
        templates = getattr(tokenizer, "chat_template", None) or {}
        for text in templates.values() if isinstance(templates, dict) else [templates]:
            _check_template(name, text)

    return tokenizer


def to_device(
    model: PreTrainedModel, device: torch.device, dtype: str, name: str = "The model"
) -> PreTrainedModel:
    """Move a model to its device and precision; raise an error if it does not fit."""
    import torch

    module: torch.nn.Module = model
    with loading_errors(name, f"a model in {dtype} on {device}"):
        module.to(device=device, dtype=getattr(torch, dtype))
        module.eval()

    return model


@contextmanager
def quietly() -> Iterator[None]:
    """Silence the libraries' progress bars and notes to developers while a model loads."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft uses deprecated calls
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def loading_errors(name: str, what: str) -> Iterator[None]:
    """Turn a library's error about a damaged or unusual model into a RespondentError."""
    try:
        yield
    except RespondentError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise RespondentError.of(name, error) from error
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"{type(error).__name__}: " + (lines or [""])[0][:200].rstrip(".:")
        if isinstance(error, AttributeError | LookupError | TypeError | ArithmeticError):
            reason = "one of its settings has an impossible value"  # Python does not name it

        raise IncompleteModelError(
            f"{name} cannot be loaded as {what}: check or replace its files, or name another model "
            f"({reason})."
        ) from error


def _merge_adapter(
    model: PreTrainedModel, adapter: Source, kind: str, missing: set[str]
) -> PreTrainedModel:
    """Merge an adapter into its base, after checking that no weights are missing."""
    from peft import PeftModel

    with quietly(), loading_errors(adapter.name, kind):
        warnings.filterwarnings("error", "Found missing adapter keys")
        wrapped = PeftModel.from_pretrained(model, str(adapter.local_folder))
        saved = {name for name, _ in wrapped.named_parameters() if "modules_to_save" in name}
        merged: PreTrainedModel = wrapped.merge_and_unload()

    saved = {re.sub(r"^base_model\.model\.|modules_to_save\.default\.", "", name) for name in saved}
    random = sorted(key for key in missing - saved if not key.endswith("position_ids"))
    if random:
        base = adapter.base.name if adapter.base else ""
        raise RespondentError(
            f"{adapter.name} is not trained as {kind}: neither it nor its base "
            f"{base} has {random[0]}, which would be random; name a trained model.",
            kind="architecture",
        )

    merged.eval()
    return merged


def decodes(config: PreTrainedConfig) -> bool:
    """Return whether a model is a decoder, whose last token alone has seen the whole text."""
    from transformers.models.auto import modeling_auto

    if _sees_and_writes(config):
        return True
    causal = config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    looks_back = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    other = looks_back or config.is_encoder_decoder or config.model_type == "xlnet"
    return causal and (not other or bool(getattr(config, "is_decoder", False)))
