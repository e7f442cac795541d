"""Reports: pages about one's own models, runs and studies, in one design."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submodules=[
        "pages",
        "plans",
        "profiles",
        "sweeps",
    ],
)
