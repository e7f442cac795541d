"""What the book's pages hold beside text: answers of exercises, explorers."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submodules=[
        "exercises",
        "explorers",
    ],
)
