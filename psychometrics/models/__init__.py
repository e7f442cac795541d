"""Find, load and speed up models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "decoder",
        "embedded",
        "fast_bert",
        "loading",
        "packed",
        "sources",
        "untrained",
        "vectors",
    ],
)
