"""Psychometrics on frames: scores, reliability, validity, items, norms, nulls."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "beliefs",
        "content",
        "correlations",
        "evidence",
        "groups",
        "intervals",
        "irt",
        "items",
        "norms",
        "nulls",
        "reliability",
        "scoring",
        "structure",
        "styles",
        "trends",
        "validity",
    ],
)
