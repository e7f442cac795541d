"""Write a questionnaire: draft it from items, and check its wording and content."""

from ..paths import attach_modules

__getattr__, __dir__, __all__ = attach_modules(__name__, __path__)
