"""Assign a meaning to each output of an NLI classifier, from the outputs' names or plain pairs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data import NLI_LABELS
from ..exceptions import RespondentError
from .prompting import _Probabilities


def labels_from_names(names: Sequence[str | None], model: str = "The model") -> list[int] | None:
    """Read the meaning of each output from the outputs' names.

    Parameters
    ----------
    names : sequence of str
        The three outputs' names, in order.
    model : str
        Name of the model, for error messages.

    Returns
    -------
    list of int or None
        Positions of entailment, neutral and contradiction; None if a name is missing or has no
        meaning (``LABEL_0``).

    Raises
    ------
    RespondentError
        The names belong to a different kind of classifier.

    Examples
    --------
    >>> labels_from_names(["CONTRADICTION", "neutral", "Entailment"])
    [2, 1, 0]
    >>> labels_from_names(["LABEL_0", "LABEL_1", "LABEL_2"]) is None
    True
    """
    plain = [
        re.sub(r"^(label|class)?[\s\d:._-]*", "", str(name or "").strip().lower()) for name in names
    ]

    if any(name in ("", "none") for name in plain):
        return None
    stems = [label[:6] for label in NLI_LABELS]  # entail(ed), neutra(l), contra(dictory)
    if sorted(plain) == ["c", "e", "n"]:
        stems = ["e", "n", "c"]
    places = [[i for i, name in enumerate(plain) if name.startswith(stem)] for stem in stems]
    if any(len(positions) != 1 for positions in places):
        raise RespondentError(
            f"{model} has the outputs {', '.join(map(str, names))}, not entailment, neutral and "
            "contradiction: name an NLI model, or correct id2label in its config.json.",
            kind="labels",
        )

    return [positions[0] for positions in places]


def output_names(config: Mapping[str, Any], model: str = "The model") -> dict[int, str] | None:
    """Read the outputs' names from the contents of a ``config.json``, or return None.

    Raises
    ------
    RespondentError
        ``id2label`` and ``label2id`` contradict each other, or one of them does not map numbers to
        names or names to numbers.

    Examples
    --------
    >>> output_names({"id2label": {"0": "entailment", "1": "neutral", "2": "contradiction"}})
    {0: 'entailment', 1: 'neutral', 2: 'contradiction'}
    """
    try:
        names = {int(i): str(name) for i, name in (config.get("id2label") or {}).items()}
        named = {int(i): str(name) for name, i in (config.get("label2id") or {}).items()}
    except (AttributeError, TypeError, ValueError):
        raise RespondentError(
            f"{model}, config.json: id2label does not map numbers to names, or label2id names to "
            "numbers; correct them.",
            kind="labels",
        ) from None

    if not names or not named:
        return names or named or None
    if {i: name.casefold() for i, name in names.items()} != {
        i: name.casefold() for i, name in named.items()
    }:
        raise RespondentError(
            f"{model}, config.json: id2label contradicts label2id; correct one of them.",
            kind="labels",
        )

    return named


def _infer_labels(
    answers: _Probabilities, labels: Sequence[str], model: str = "The model"
) -> list[int]:
    """Infer the meaning of each output from answers to plain pairs with known labels.

    The most accurate of the six possible assignments must be right for at least two thirds of the
    pairs, and must beat the second-best assignment by at least a quarter of the pairs. Guessing
    would be right for a third.

    Parameters
    ----------
    answers : ndarray, shape (n, 3)
        Probabilities in the model's own order of outputs.
    labels : sequence of str
        Labels of the n pairs: entailment, neutral or contradiction.
    model : str
        Name of the model, for error messages.

    Returns
    -------
    list of int
        Positions of entailment, neutral and contradiction among the outputs.

    Raises
    ------
    RespondentError
        No assignment is clearly the best.

    Examples
    --------
    >>> _infer_labels(np.eye(3), ["neutral", "contradiction", "entailment"])
    [2, 0, 1]
    """
    chosen = np.argmax(answers, axis=1)
    truth = np.array([NLI_LABELS.index(label) for label in labels])
    accuracy = {
        order: float((chosen == np.array(order)[truth]).mean())
        for order in itertools.permutations(range(3))
    }
    best, second = sorted(accuracy, key=accuracy.__getitem__, reverse=True)[:2]

    if accuracy[best] < 2 / 3 or accuracy[best] - accuracy[second] < 1 / 4:
        raise RespondentError(
            f"{model} does not name its outputs, and answers to plain pairs do not show which "
            f"means entailment (best assignment {accuracy[best]:.0%} right, next "
            f"{accuracy[second]:.0%}): write the labels into id2label of its config.json, or name "
            "a trained NLI model.",
            kind="labels",
        )

    return list(best)
