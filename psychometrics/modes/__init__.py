"""Response modes: the ways in which respondents answer.

``MODES`` lists each mode's class. :class:`psychometrics.modes.mode.Mode` defines the interface of a
mode; to add a mode here, write a subclass and add a line to ``MODES``. Another package adds a mode
through an entry point::

    [project.entry-points."psychometrics.modes"]
    coin = "wellbeing.coin:Coin"
"""

from __future__ import annotations

import functools
import pkgutil
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import lazy_loader

from ..exceptions import ParameterError, needed
from .mode import Identity, Mode

if TYPE_CHECKING:
    import torch

    from .prompting import _PromptRespondent


__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submodules=[module.name for module in pkgutil.iter_modules(__path__)]
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
"""The file and class of each mode; a file is imported when its mode is first used."""
# Group of the entry points through which other packages add modes.
_ADDED = "psychometrics.modes"


def mode_names() -> list[str]:
    """Return the names of all modes: the package's own, then those of other packages.

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
        A name from :func:`mode_names`; the package's own mode takes precedence over another
        package's mode of the same name.

    Raises
    ------
    ParameterError
        The mode is unknown, or another package's entry point is not a mode or cannot be imported.
    MissingPackageError
        The mode needs a package of an extra, such as torch of ``models``.

    Examples
    --------
    >>> mode_named("causal").conditions
    {'mean': 'product'}
    """
    if name in MODES:
        file, _, class_name = MODES[name].partition(".")
        mode: Mode = getattr(needed(f"{__name__}.{file}"), class_name)(name)
        return mode

    for point in entry_points(group=_ADDED, name=name):
        try:
            added = point.load()
        except Exception as error:  # whatever another package's module raises
            raise ParameterError(
                f"mode {name!r}: {point.value} cannot be imported ({type(error).__name__}: "
                f"{error}); correct or uninstall the package that adds it."
            ) from error

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
        A member of the embedded population, a local folder written by ``save_pretrained``, an ONNX
        file or its folder (in mode nli), or a hub id such as ``"owner/model"``, looked up in this
        order.
    mode : str
        ``"nli"`` answers by entailment; ``"mlm"``, ``"causal"``, ``"nsp"`` and ``"acceptability"``
        by a language model's probability of the prompt.
    device : str or torch.device, optional
        Device to compute on; by default the device in ``PSYCHOMETRICS_DEVICE``, or else the GPU if
        there is one, or else the processor.
    dtype : {"float32", "bfloat16", "float16"}, optional
        Precision of the model's computations, by default float32. Probabilities are always float32.
    **conditions
        Conditions of the mode, such as ``mean`` for ``"causal"``.

    Returns
    -------
    PromptRespondent
        A respondent with ``.identity`` and ``.answer(prompts, progress=False)``. In mode ``nli``
        prompts are pairs of premise and hypothesis, and answers have three columns; in the other
        modes prompts are triples of premise, hypothesis and intensifier, and answers have one
        column.

    Raises
    ------
    RespondentError
        The model is not found, is incomplete, needs pickle weights or remote code, or is of the
        wrong kind for the mode; or the device or dtype is unknown.
    ParameterError
        The mode is unknown, loads no model, or lacks one of the conditions.

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
        raise ParameterError(f"Mode '{mode}' loads no model: use ask, or a mode with prompts.")
    return loader.load(name_or_path, device, dtype, **complete)


def identify(
    name_or_path: str | Path, mode: str = "nli", dtype: str | None = None, **conditions: object
) -> Identity:
    """Return a respondent's identity without loading its weights.

    Parameters
    ----------
    name_or_path, mode, dtype, **conditions
        As in :func:`load_respondent`, on the default device.

    Returns
    -------
    Identity
        The identity, as :class:`psychometrics.modes.mode.Identity` describes it.

    Raises
    ------
    RespondentError, ParameterError
        As in :func:`load_respondent`, except for faults in the weights.

    Examples
    --------
    >>> identify("minilm-mnli-l3-s16", dtype="float32").source
    'embedded'
    """
    identifier = mode_named(mode)
    return identifier.identify(name_or_path, dtype, **identifier.complete(conditions))
