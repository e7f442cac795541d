"""What is a score worth without learning: null respondents, kernels, evidence, agreement."""

import pkgutil

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[module.name for module in pkgutil.iter_modules(__path__)],
    submod_attrs={
        "kernels": ["kernel_statistics"],
        "respondents": [
            "head_logits",
            "kernel",
            "null_answers",
            "null_distribution",
            "shuffled",
        ],
    },
)
