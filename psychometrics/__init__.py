"""The psychometrics of language models: questionnaires, respondents, answers, scores, evidence.

The stub next to this file lists the public names. Each is imported on first use, so that importing
the package is fast.
"""

import warnings
from importlib.metadata import entry_points

import lazy_loader

__version__ = "1.0.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    """Import a public name; names of 1.0 that moved to the book's package work with a warning."""
    has_moved = not name.startswith("_") and name not in __all__
    for point in entry_points(group="psychometrics.moved", name=name) if has_moved else ():
        text = f"psychometrics.{name} is {point.value} now, and works here until version 2."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return point.load()

    from .exceptions import naming_extras

    with naming_extras():
        return _load(name)
