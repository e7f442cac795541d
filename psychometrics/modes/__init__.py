"""Response modes: the ways in which respondents answer.

``MODES`` names each mode's class. :class:`psychometrics.modes.mode.Mode` says what a mode does and
what it declares; to add one here, write a subclass and a line in ``MODES``. Another package adds a
mode by an entry point::

    [project.entry-points."psychometrics.modes"]
    coin = "wellbeing.coin:Coin"
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import lazy_loader

from ..exceptions import ParameterError
from .mode import Mode

if TYPE_CHECKING:
    import torch

    from .mode import Identity
    from .prompting import _PromptRespondent


__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submodules=[module.name for module in pkgutil.iter_modules(__path__)],
)

MODES = {
    "acceptability": "language_models.LanguageMode",
    "causal": "language_models.Causal",
    "chat": "chat.Chat",
    "custom": "custom.Custom",
    "human": "human.Human",
    "mlm": "language_models.LanguageMode",
    "nli": "nli.NLI",
    "nsp": "language_models.LanguageMode",
    "options": "options.Options",
    "simulated": "simulated.Simulated",
}
"""Each mode's file and class; a file is imported when its mode is first used."""
# Group of the entry points by which other packages add modes.
_ADDED = "psychometrics.modes"


def mode_names() -> list[str]:
    """Return the names of all modes: the package's own, then those that other packages add.

    Examples
    --------
    >>> {"nli", "chat", "human"} <= set(mode_names())
    True
    """
    return list(dict.fromkeys([*MODES, *sorted(entry_points(group=_ADDED).names)]))


@functools.cache
def mode_named(name: str) -> Mode:
    """Return a mode by its name.

    Parameters
    ----------
    name : str
        One of :func:`mode_names`; a mode of another package is ignored if ``MODES`` has one of the
        same name.

    Raises
    ------
    ParameterError
        There is no such mode, or an entry point of another package is not a mode.

    Examples
    --------
    >>> mode_named("causal").conditions
    {'mean': 'product'}
    """
    if name in MODES:
        file, _, class_name = MODES[name].partition(".")
        mode: Mode = getattr(importlib.import_module(f"{__name__}.{file}"), class_name)(name)
        return mode

    for point in entry_points(group=_ADDED, name=name):
        added = point.load()
        if not (isinstance(added, type) and issubclass(added, Mode)):
            raise ParameterError(
                f"mode {name!r}: {point.value} is not a subclass of psychometrics.modes.mode.Mode; "
                "correct the entry point of the package that adds it."
            )

        return added(name)

    raise ParameterError(f"mode must be one of {', '.join(mode_names())}, got {name!r}.")


def load_respondent(
    name_or_path: str | Path,
    mode: str = "nli",
    device: str | torch.device | None = None,
    dtype: str | None = None,
    **conditions: object,
) -> _PromptRespondent:
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
        Where it computes; by default the one that ``PSYCHOMETRICS_DEVICE`` names, else the GPU if
        there is one, else the processor.
    dtype : {"float32", "bfloat16", "float16"}, optional
        Precision of its computations, by default float32. Probabilities are float32 either way.
    **conditions
        Of the mode, such as ``mean`` of ``"causal"``.

    Returns
    -------
    PromptRespondent
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
    from .prompting import PromptMode

    loader = mode_named(mode)
    complete = loader.complete(conditions)
    if not isinstance(loader, PromptMode):
        raise ParameterError(f"Mode '{mode}' loads no model: use ask, or a mode of prompts.")
    return loader.load(name_or_path, device, dtype, **complete)


def identify(
    name_or_path: str | Path, mode: str = "nli", dtype: str | None = None, **conditions: object
) -> Identity:
    """Say who a respondent is, without loading its weights.

    Parameters
    ----------
    name_or_path, mode, dtype, **conditions
        As in :func:`load_respondent`; the device is the default one.

    Returns
    -------
    Identity
        As :class:`psychometrics.modes.mode.Identity` describes it.

    Raises
    ------
    RespondentError, ParameterError
        As in :func:`load_respondent`, as far as it shows without the weights.

    Examples
    --------
    >>> identify("minilm-mnli-l3-s16", dtype="float32").source
    'embedded'
    """
    identifier = mode_named(mode)
    return identifier.identify(name_or_path, dtype, **identifier.complete(conditions))
