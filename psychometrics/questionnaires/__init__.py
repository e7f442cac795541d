"""Questionnaires: what one holds, where it is read from, the prompts it makes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
