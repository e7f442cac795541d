"""The store of answers: what it keeps, its folders, and the places where it may lie."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
