"""Studies: the code and figures of individual papers."""

from __future__ import annotations

import pkgutil

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submodules=[module.name for module in pkgutil.iter_modules(__path__)]
)
