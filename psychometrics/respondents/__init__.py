"""Respondents: models that answer. One file per response mode; all answer the same call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import RespondentError
from .sources import find

if TYPE_CHECKING:
    import torch

    from .lm import LMRespondent
    from .nli import NLIRespondent

MODES = ("nli", "mlm", "causal", "causal_geometric", "causal_harmonic", "nsp", "acceptability")


def load_respondent(
    name_or_path: str | Path,
    mode: str = "nli",
    device: str | torch.device | None = None,
    dtype: str | None = None,
) -> NLIRespondent | LMRespondent:
    """Load a model that answers prompts.

    Parameters
    ----------
    name_or_path : str or Path
        Looked for in this order: a member of the embedded population, a local folder written by
        ``save_pretrained``, a hub id such as ``"owner/model"``.
    mode : str
        How it answers: ``"nli"`` by entailment; ``"mlm"``, ``"causal"`` (also
        ``"causal_geometric"``, ``"causal_harmonic"``), ``"nsp"`` and ``"acceptability"`` by the
        probability that a language model gives to the prompt; see
        :mod:`psychometrics.respondents.lm`.
    device : str or torch.device, optional
        Where it computes; by default the GPU if there is one, else the processor.
    dtype : {"float32", "bfloat16"}, optional
        Precision of its computations; by default bfloat16 where the device computes in it
        natively, else float32. Probabilities are float32 either way.

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
        an NLI model, or the mode, device or dtype is unknown.

    Examples
    --------
    >>> respondent = load_respondent("minilm-both-l6-s1")  # doctest: +SKIP
    >>> respondent.answer([("I feel nervous.", "I am calm.")]).round(2)  # doctest: +SKIP
    array([[0.01, 0.04, 0.95]], dtype=float32)
    """
    _check_mode(mode)
    if mode != "nli":
        from .lm import load_lm

        return load_lm(find(name_or_path), mode, device, dtype)
    from .nli import load_nli

    return load_nli(find(name_or_path), device, dtype)


def identify(name_or_path: str | Path, mode: str = "nli", dtype: str | None = None) -> dict:
    """Say who a respondent is, without loading its weights.

    Parameters
    ----------
    name_or_path, mode, dtype
        As in :func:`load_respondent`; the device is the default one.

    Returns
    -------
    dict
        ``respondent_id``; ``source`` ("embedded", "local" or "hub"); ``model``; ``revision``
        (commit on the hub, else SHA-256 of the weight files); ``mode``; ``dtype``;
        ``fingerprint``, a digest of all that determines an answer.

    Raises
    ------
    RespondentError
        As in :func:`load_respondent`, as far as it shows without the weights.

    Examples
    --------
    >>> identify("minilm-both-l6-s1", dtype="float32")["source"]  # doctest: +SKIP
    'embedded'
    """
    _check_mode(mode)
    from .nli import identity, resolve_device, resolve_dtype

    dtype = resolve_dtype(dtype, resolve_device(None))
    if mode != "nli":
        from .lm import identity as lm_identity

        return lm_identity(find(name_or_path), mode, dtype)
    return identity(find(name_or_path), dtype)


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise RespondentError(f"mode must be one of {', '.join(MODES)}, got '{mode}'.")
