"""Respondents: who answers, and how. One file per response mode.

A module of this folder that defines ``CONDITIONS`` is a mode, and is called like its file; nothing
else names it. It has

- ``CONDITIONS``, what may be varied in it, with the defaults;
- ``identify(respondent, dtype=None, **conditions) -> dict``, who answers, cheaply and before any
  question: ``respondent_id, source, model, revision, mode, dtype, fingerprint``, a digest of all
  that determines an answer;
- ``put(questionnaire, respondent, identity, store, bar, **conditions) -> DataFrame``, which puts
  one questionnaire to one respondent and keeps every answer in the store as it comes. ``bar`` is a
  :class:`psychometrics.asking.progress.Progress`;
- optionally ``put_all``, which an endpoint's questionnaires are given to together, and which yields
  the answers of each;
- optionally ``opened(respondent, identity, **conditions)``, which is called once before a
  respondent's questionnaires; what it returns is handed to ``put`` in the respondent's place, so
  that a model is loaded at its first question and once for all questionnaires;
- optionally ``load(name_or_path, device, dtype, **conditions)`` for :func:`load_respondent`.

``identify`` and ``put`` get all conditions. Errors: RespondentError if this respondent cannot
answer (the others go on), ParameterError if a condition's value is wrong (nobody is asked).
"""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import lazy_loader

from ..exceptions import ParameterError

if TYPE_CHECKING:
    import torch

    from .nli import NLIRespondent
    from .prompting import LMRespondent


__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submodules=[
        "acceptability",
        "causal",
        "chat",
        "completions",
        "custom",
        "generation",
        "human",
        "messages",
        "mlm",
        "nli",
        "nsp",
        "options",
        "prompting",
        "replies",
        "simulated",
    ],
)


@functools.cache
def modes() -> tuple[str, ...]:
    """Names of the response modes, found by their files.

    Examples
    --------
    >>> {"nli", "mlm", "causal"} <= set(modes())
    True
    """
    files = sorted(path for folder in __path__ for path in Path(folder).glob("[!_]*.py"))
    # Their text is read, as an import of all would load torch for the list of their names.
    defines = re.compile(r"^CONDITIONS\b", re.MULTILINE)
    return tuple(path.stem for path in files if defines.search(path.read_text(encoding="utf-8")))


def mode_named(mode: str) -> ModuleType:
    """The module of a mode.

    Raises
    ------
    ParameterError
        There is no such mode.
    """
    if mode not in modes():
        raise ParameterError(f"mode must be one of {', '.join(modes())}, got {mode!r}.")
    return importlib.import_module(f"{__name__}.{mode}")


def conditions_of(mode: str, given: dict) -> dict:
    """A mode's conditions: those given, else the defaults.

    Raises
    ------
    ParameterError
        The mode does not have one of those given.

    Examples
    --------
    >>> conditions_of("causal", {"mean": "geometric"})
    {'mean': 'geometric'}
    """
    known = mode_named(mode).CONDITIONS
    if unknown := sorted(set(given) - set(known)):
        has = f"its conditions are {', '.join(known)}" if known else "it has no conditions"
        raise ParameterError(f"Mode '{mode}' has no condition '{unknown[0]}': {has}.")
    return known | given


def load_respondent(
    name_or_path: str | Path,
    mode: str = "nli",
    device: str | torch.device | None = None,
    dtype: str | None = None,
    **conditions: object,
) -> NLIRespondent | LMRespondent:
    """Load a model that answers prompts.

    Parameters
    ----------
    name_or_path : str or Path
        Looked for in this order: a member of the embedded population, a local folder written by
        ``save_pretrained``, a hub id such as ``"owner/model"``.
    mode : str
        How it answers: ``"nli"`` by entailment; ``"mlm"``, ``"causal"``, ``"nsp"`` and
        ``"acceptability"`` by the probability that a language model gives to the prompt.
    device : str or torch.device, optional
        Where it computes; by default the GPU if there is one, else the processor.
    dtype : {"float32", "bfloat16"}, optional
        Precision of its computations; by default bfloat16 where the device computes in it
        natively, else float32. Probabilities are float32 either way.
    **conditions
        Of the mode, such as ``mean`` of ``"causal"``.

    Returns
    -------
    NLIRespondent or LMRespondent
        Has ``.identity`` and ``.answer(prompts, progress=False)``. In mode ``nli`` prompts are
        pairs of premise and hypothesis, and answers have three columns; in the others prompts
        are triples of premise, hypothesis and intensifier, and answers have one.

    Raises
    ------
    RespondentError
        The model is not found, is incomplete, would need pickle weights or remote code, is not
        of the mode's kind, or the device or dtype is unknown.
    ParameterError
        The mode is unknown or loads no model, or a condition is none of its own.

    Examples
    --------
    >>> respondent = load_respondent("minilm-mnli-l3-s16", dtype="float32")
    >>> pair = "People whom I counted on disappointed me.", "It never happened to me."
    >>> respondent.answer([pair]).round(1)
    array([[0.1, 0.1, 0.8]], dtype=float32)
    """
    module = mode_named(mode)
    if not hasattr(module, "load"):
        loading = [name for name in modes() if hasattr(mode_named(name), "load")]
        raise ParameterError(
            f"In mode '{mode}' no model is loaded: use ask, or a mode of {', '.join(loading)}."
        )
    return module.load(name_or_path, device, dtype, **conditions_of(mode, conditions))


def identify(
    name_or_path: str | Path, mode: str = "nli", dtype: str | None = None, **conditions: object
) -> dict:
    """Say who a respondent is, without loading its weights.

    Parameters
    ----------
    name_or_path, mode, dtype, **conditions
        As in :func:`load_respondent`; the device is the default one.

    Returns
    -------
    dict
        ``respondent_id``; ``source`` ("embedded", "local" or "hub"); ``model``; ``revision``
        (commit on the hub, else SHA-256 of the weight files); ``mode``; ``dtype``;
        ``fingerprint``, a digest of all that determines an answer.

    Raises
    ------
    RespondentError, ParameterError
        As in :func:`load_respondent`, as far as it shows without the weights.

    Examples
    --------
    >>> identify("minilm-mnli-l3-s16", dtype="float32")["source"]
    'embedded'
    """
    return mode_named(mode).identify(name_or_path, dtype, **conditions_of(mode, conditions))
