"""Train respondents: NLI heads on encoders or decoders, and masked-LM adaptation of encoders.

The functions are a thin layer over ``transformers.Trainer`` and ``peft``. Each training run writes
a folder with a manifest, which ``load_respondent`` can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding, set_seed

from ..checks import check_flags
from ..data import NLI_LABELS
from ..exceptions import DataError
from .heads import _classifier_with_adapter, _fresh_model, _tuned_classifier, with_adapter
from .loop import (
    Settings,
    _make_folder,
    _MaskedTokensTrainer,
    _train_into,
    _trains_on_gpu,
    tokenised,
)
from .pairs import _labelled_pairs, _measure_accuracy


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
        tokens), and ``seed`` (0) of the head's initial weights, of the order of the data and of
        dropout.

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

    source = _labelled_pairs(data, split=True)
    labels = set(source.frame["label"])
    absent = [name for number, name in enumerate(NLI_LABELS) if number not in labels]
    if absent:
        raise DataError(f"No pair is labelled {absent[0]}, and two classes cannot teach three.")

    pairs = source.frame[~source.frame["held_out"]]
    held_out = source.frame[source.frame["held_out"]]
    model, tokenizer = _tuned_classifier(base, adapter, settings)

    if shuffled:
        permuted = np.random.default_rng(settings.seed).permutation(pairs["label"].to_numpy())
        pairs = pairs.assign(label=permuted)

    table = pairs[["premise", "hypothesis", "label"]].to_dict("list")
    dataset = tokenised(tokenizer, table, settings.max_length)
    collator = DataCollatorWithPadding(tokenizer)
    facts = {"base": str(base), "pairs": len(pairs), "shuffled": shuffled, **asdict(settings)}
    facts |= {"left_out": source.left_out, "labels_without_names": source.unnamed}

    def describe() -> dict:
        if held_out.empty:
            return facts
        majority = (held_out["label"] == pairs["label"].mode()[0]).mean()
        accuracy = _measure_accuracy(Path(output), held_out)
        return facts | accuracy | {"majority": round(float(majority), 4)}

    return _train_into(output, model, tokenizer, dataset, collator, settings, describe, progress)


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
    return _train_into(
        output, model, tokenizer, dataset, collator, Settings(epochs=epochs, lr=lr), save_head,
        progress, trainer=_MaskedTokensTrainer, optimizers=(optimizer, None),
    )  # fmt: skip


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
    settings = Settings.of(options, lr=5e-4, dropout=0.0)
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
