"""Studies: the code and figures of single papers and chapters, and a study as one file."""

from __future__ import annotations

import pkgutil

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submodules=[module.name for module in pkgutil.iter_modules(__path__)]
)
