"""The psychometrics of language models: questionnaire, respondent, answers, scores, evidence.

What is used most stands here by name; every room of the package is an attribute (``pm.irt``). Both
load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable

__version__ = "0.1.0"

_DOOR = {
    "ask": "ask",
    "check_parameters": "parameters",
    "compact": "store",
    "item_scores": "scoring",
    "load_questionnaire": "questionnaires",
    "load_respondent": "respondents",
    "manifests": "store",
    "null_answers": "nulls",
    "null_distribution": "nulls",
    "population": "population",
    "population_table": "population",
    "readable_names": "population",
    "prompts": "prompts",
    "pss": "scoring",
    "questionnaire_names": "questionnaires",
    "scale_scores": "scoring",
    "two_way": "scoring",
    "untouched_bases": "population",
}
"""Names of the front door, and the room each comes from."""
_ROOMS = (
    "answers", "beliefs", "book", "claims", "content", "data", "exceptions", "figures",
    "interventions", "intervals", "irt", "items", "messages", "norms", "nulls", "paths",
    "questionnaires", "reliability", "reports", "respondents", "scoring", "store", "studies",
    "styles", "training", "trends", "validity",
)  # fmt: skip

__all__ = ["__version__", *_DOOR, *_ROOMS]


def rooms_of(package: str) -> Callable[[str], types.ModuleType]:
    """A package's ``__getattr__`` that imports its rooms on first use, as ``pm.studies.asking``."""

    def room(name: str) -> types.ModuleType:
        if name.startswith("_") or importlib.util.find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"{package} has no '{name}'.")
        return importlib.import_module(f"{package}.{name}")

    return room


class _Package(types.ModuleType):
    """The package, on which a function keeps its name when the room of that name is imported."""

    def __getattr__(self, name: str) -> object:
        if name in _DOOR:
            value = getattr(importlib.import_module(f".{_DOOR[name]}", __name__), name)
        elif name in _ROOMS:
            value = importlib.import_module(f".{name}", __name__)
        else:
            raise AttributeError(f"psychometrics has no '{name}'; it has {', '.join(__all__)}.")
        types.ModuleType.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # An import of psychometrics.ask would otherwise put the module in the function's place.
        if isinstance(value, types.ModuleType) and name in _DOOR:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
