"""The book's package: record every number, execute the notebooks, build the pages.

The instrument, ``psychometrics``, asks and scores; this package is what only the book needs. The
stub next to this file lists the public names, which are imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
