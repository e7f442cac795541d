"""Ask respondents questionnaires, and store the answers."""

from ..paths import attach_modules

__getattr__, __dir__, __all__ = attach_modules(__name__, __path__)
