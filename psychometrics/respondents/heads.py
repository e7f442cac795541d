"""The other embedded heads of the base encoder: masked language model and acceptability."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..exceptions import RespondentError
from ..paths import cache_dir, data_dir
from ..population import BASE_MODEL, base_path

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_masked_lm(
    name: str = "embedded",
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a masked language model: the embedded one, a local folder or a hub id.

    Parameters
    ----------
    name : str
        ``"embedded"`` is the base encoder with an adapter and a head trained on MNLI's sentences.

    Returns
    -------
    model, tokenizer
        fp32, in evaluation mode.

    Raises
    ------
    RespondentError
        The embedded head is missing, or the model has no masked-LM head.

    Examples
    --------
    >>> model, tokenizer = load_masked_lm()  # doctest: +SKIP
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    if name != "embedded":
        model, report = AutoModelForMaskedLM.from_pretrained(
            name, use_safetensors=True, output_loading_info=True
        )
        if report["missing_keys"]:
            raise RespondentError(
                f"{name} has no trained masked-LM head: name a masked language model."
            )
        return model.float().eval(), AutoTokenizer.from_pretrained(name)
    from peft import PeftModel
    from safetensors.torch import load_file

    from .nli import quietly

    folder = _head_path("mlm")
    with quietly():
        model = AutoModelForMaskedLM.from_pretrained(base_path(), use_safetensors=True)
        model = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    head = {name: weight.float() for name, weight in load_file(folder / "head.safetensors").items()}
    model.load_state_dict(head, strict=False)
    return model.float().eval(), AutoTokenizer.from_pretrained(base_path())


def load_acceptability(
    name: str = "embedded",
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load an acceptability classifier: the embedded one, a local folder or a hub id.

    Parameters
    ----------
    name : str
        ``"embedded"`` is the base encoder with an adapter and a head trained on CoLA.

    Returns
    -------
    model, tokenizer
        The second of the model's two outputs means acceptable.

    Raises
    ------
    RespondentError
        The embedded head is missing, or the model does not have two outputs.

    Examples
    --------
    >>> model, tokenizer = load_acceptability()  # doctest: +SKIP
    """
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    if name != "embedded":
        model = AutoModelForSequenceClassification.from_pretrained(name, use_safetensors=True)
        if model.config.num_labels != 2:
            raise RespondentError(
                f"{name} has {model.config.num_labels} outputs, not two: name a CoLA classifier."
            )
        return model.float().eval(), AutoTokenizer.from_pretrained(name)
    from peft import PeftModel

    from .nli import quietly

    folder = _head_path("cola")
    with quietly():
        config = AutoConfig.from_pretrained(base_path(), num_labels=2)
        model = AutoModelForSequenceClassification.from_pretrained(
            base_path(), config=config, use_safetensors=True
        )
        model = PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    return model.float().eval(), AutoTokenizer.from_pretrained(base_path())


def head_table() -> dict[str, dict]:
    """How the embedded heads were trained and how well they do, by name."""
    recipes = sorted((data_dir() / "heads").glob("*/recipe.json"))
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in recipes}


def acceptability(
    sentences: Sequence[str], name: str = "embedded", batch_size: int = 128
) -> np.ndarray:
    """Probability that each sentence is linguistically acceptable.

    Parameters
    ----------
    sentences : sequence of str
        n sentences; identical ones are judged once.
    name : str
        As in :func:`load_acceptability`.
    batch_size : int
        Sentences at a time.

    Returns
    -------
    ndarray of float32, shape (n,)

    Examples
    --------
    >>> acceptability(["I feel calm.", "Calm I the of."])  # doctest: +SKIP
    array([0.99, 0.03], dtype=float32)
    """
    import torch

    model, tokenizer = load_acceptability(name)
    unique = sorted(set(sentences), key=len)
    values = []
    with torch.inference_mode():
        for start in range(0, len(unique), batch_size):
            inputs = tokenizer(
                unique[start : start + batch_size], padding=True, truncation=True,
                max_length=128, return_tensors="pt",
            )  # fmt: skip
            values.append(model(**inputs).logits.softmax(dim=-1)[:, 1])
    known = dict(zip(unique, torch.cat(values).numpy(), strict=True))
    return np.array([known[sentence] for sentence in sentences], dtype=np.float32)


def masked_perplexity(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    seed: int = 0,
    batch_size: int = 64,
) -> float:
    """Perplexity at masked tokens: exp of the mean negative log probability of the right one.

    Parameters
    ----------
    model, tokenizer
        As :func:`load_masked_lm` gives them.
    sentences : sequence of str
        The text; 15 % of its tokens are masked, none replaced at random.
    seed : int
        Of the choice of tokens.
    batch_size : int
        Sentences at a time.

    Returns
    -------
    float
        From 1 (certain and right) upwards.

    References
    ----------
    Devlin et al. (2019), section 3.1.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    total, count = 0.0, 0
    ordered = sorted(sentences, key=len)
    with torch.inference_mode():
        for start in range(0, len(ordered), batch_size):
            inputs = tokenizer(
                ordered[start : start + batch_size], padding=True, truncation=True, max_length=128,
                return_tensors="pt", return_special_tokens_mask=True,
            )  # fmt: skip
            open_to_masking = inputs.pop("special_tokens_mask") == 0
            chosen = torch.rand(open_to_masking.shape, generator=generator) < 0.15
            chosen &= open_to_masking
            if not chosen.any():
                continue
            labels = inputs["input_ids"][chosen]
            inputs["input_ids"] = inputs["input_ids"].masked_fill(chosen, tokenizer.mask_token_id)
            if hasattr(model, "cls"):  # BERT's head, put on the chosen tokens alone
                logits = model.cls(model.base_model(**inputs).last_hidden_state[chosen])
            else:
                logits = model(**inputs).logits[chosen]
            loss = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="sum")
            total, count = total + float(loss), count + len(labels)
    return float(np.exp(total / count))


def build_heads(work: str | Path | None = None, progress: bool = True) -> dict[str, dict]:
    """Train the embedded heads that are not there yet.

    Parameters
    ----------
    work : str or Path, optional
        Where unfinished training is kept.
    progress : bool
        Show progress bars.

    Returns
    -------
    dict
        As :func:`head_table` gives it.
    """
    work = Path(work) if work else cache_dir() / "training"
    for name, build in (("cola", _build_acceptability), ("mlm", _build_masked_lm)):
        if not (data_dir() / "heads" / name / "recipe.json").is_file():
            build(work / name, progress)
    return head_table()


def _build_acceptability(work: Path, progress: bool) -> None:
    from sklearn.metrics import matthews_corrcoef

    from ..data import cola
    from ..training import train_acceptability

    manifest = train_acceptability(base_path(), cola("train"), work, progress=progress)
    folder = _pack(work, "cola")
    figures = {}
    for part in ("in_domain", "out_of_domain"):
        judged = cola(part)
        chosen = acceptability(judged["sentence"].tolist()) > 0.5
        figures[f"matthews_{part}"] = round(
            float(matthews_corrcoef(judged["acceptable"], chosen)), 4
        )
    _write_recipe(folder, manifest, figures)


def _build_masked_lm(work: Path, progress: bool) -> None:
    from ..data import mnli_sample
    from ..training import adapt_encoder

    pairs = mnli_sample()
    held_out = set(pairs.loc[pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel())
    rest = pairs.loc[~pairs["held_out"], ["premise", "hypothesis"]].to_numpy().ravel()
    sentences = sorted(set(rest) - held_out)
    manifest = adapt_encoder(base_path(), sentences, work, epochs=2, progress=progress)
    folder = _pack(work, "mlm")
    model, tokenizer = load_masked_lm()
    figures = {
        "held_out_sentences": len(held_out),
        "perplexity": round(masked_perplexity(model, tokenizer, sorted(held_out)), 2),
    }
    _write_recipe(folder, manifest, figures)


def _pack(trained: Path, name: str) -> Path:
    """Keep adapter and head in fp16."""
    from safetensors.torch import load_file, save_file

    folder = data_dir() / "heads" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in ("adapter_model.safetensors", "head.safetensors"):
        if (trained / file).is_file():
            weights = load_file(trained / file)
            # The decoder's weights are the word embeddings of the base.
            kept = {k: v.half().contiguous() for k, v in weights.items() if v.numel() < 1e7}
            save_file(kept, folder / file)
    config = json.loads((trained / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = BASE_MODEL
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return folder


def _write_recipe(folder: Path, manifest: dict, figures: dict) -> None:
    manifest = {k: v for k, v in manifest.items() if k not in ("base", "versions")}
    text = json.dumps({"base": BASE_MODEL, **manifest, **figures}, indent=1)
    (folder / "recipe.json").write_text(text + "\n")


def _head_path(name: str) -> Path:
    folder = data_dir() / "heads" / name
    if not (folder / "adapter_model.safetensors").is_file():
        raise RespondentError(f"data/heads has no '{name}': run `make population`.")
    return folder
