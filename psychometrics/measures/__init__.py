"""Psychometrics with data frames: scores, reliability, validity, items, norms, nulls."""

from ..paths import attach_modules

__getattr__, __dir__, __all__ = attach_modules(__name__, __path__)
