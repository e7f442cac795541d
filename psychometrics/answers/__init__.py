"""Read answers that others collected: tables, evaluation logs, exports of survey tools."""

from ..paths import attach_modules

__getattr__, __dir__, __all__ = attach_modules(__name__, __path__)
