"""Questionnaires: their model and files, the prompts they make, the wording of their items."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "drafts",
        "model",
        "prompts",
        "wording",
    ],
    submod_attrs={
        "model": [
            "Questionnaire",
            "load_questionnaire",
            "psychobench_keys",
            "counts",
            "overview",
            "corrections",
        ]
    },
)
