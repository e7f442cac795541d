"""Train respondents: NLI heads on encoders or decoders.

The functions are a thin layer over ``transformers.Trainer`` and ``peft``. Each training run writes
a folder with a manifest, which ``load_respondent`` can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import DataCollatorWithPadding, set_seed

from ..checks import check_flags
from ..data import NLI_LABELS
from ..exceptions import DataError, writing
from .heads import _tuned_classifier
from .loop import Settings, _train_into, _trains_on_gpu, tokenised
from .pairs import _labelled_pairs, _measure_accuracy


def train_nli(
    base: str | Path,
    data: str | Sequence[str] | pd.DataFrame,
    output: str | Path,
    *,
    shuffled: bool = False,
    progress: bool = True,
    **options: object,
) -> dict[str, Any]:
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
        any case), in data sets the names of their classes, or 0, 1 and 2 in this order, unless
        another column has the name of each number. The pairs of one premise in ten are held out by
        the hash of the premise (for MNLI's sample, the
        fixed held-out pairs; at most about 2,000 per source). All pairs of a DataFrame are used for
        training.
    output : str or Path
        Folder for the model, its tokenizer, ``manifest.json`` and a ``README.md`` with the code
        that loads it without this package. A stopped run resumes from its last epoch when called
        again with the same folder.
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
    with writing(output):  # now, since reading the data can take minutes
        Path(output).mkdir(parents=True, exist_ok=True)
    set_seed(settings.seed)

    source = _labelled_pairs(data, split=True)
    labels = set(source.frame["label"])
    absent = [name for number, name in enumerate(NLI_LABELS) if number not in labels]
    if absent:
        raise DataError(f"No pair is labelled {absent[0]}, and two classes cannot teach three.")

    pairs = source.frame[~source.frame["held_out"]]
    held_out = source.frame[source.frame["held_out"]]
    model, tokenizer = _tuned_classifier(base, settings)

    if shuffled:
        permuted = np.random.default_rng(settings.seed).permutation(pairs["label"].to_numpy())
        pairs = pairs.assign(label=permuted)

    table = pairs[["premise", "hypothesis", "label"]].to_dict("list")
    dataset = tokenised(tokenizer, table, settings.max_length)
    collator = DataCollatorWithPadding(tokenizer)
    facts = {"base": str(base), "pairs": len(pairs), "shuffled": shuffled, **asdict(settings)}
    facts |= {"left_out": source.left_out, "labels_without_names": source.unnamed}

    def describe() -> dict[str, Any]:
        if held_out.empty:
            return facts
        majority = (held_out["label"] == pairs["label"].mode()[0]).mean()
        accuracy = _measure_accuracy(Path(output), held_out)
        return facts | accuracy | {"majority": round(float(majority), 4)}

    return _train_into(output, model, tokenizer, dataset, collator, settings, describe, progress)
