"""The store of answers: what it keeps, its folders, and the places where it may lie."""

import pkgutil

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[module.name for module in pkgutil.iter_modules(__path__)],
    submod_attrs={
        "answers": ["CHUNK", "StoredAnswers", "compact", "key_of", "manifests"],
        "watching": ["watched"],
    },
)
