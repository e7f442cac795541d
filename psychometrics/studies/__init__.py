"""Studies: what belongs to one paper, with its figures."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submodules=[
        "diagnostic",
        "psychobench",
    ],
)
