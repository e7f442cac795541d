"""Reports on respondents and on a user's own study: profiles, comparisons, rules."""

from ..paths import attach_modules

__getattr__, __dir__, __all__ = attach_modules(__name__, __path__)
