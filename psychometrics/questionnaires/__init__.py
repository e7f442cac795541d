"""Questionnaires: what one holds, where it is read from, the prompts it makes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["answers", "library", "model", "perturbations", "prompts", "readers"],
    submod_attrs={
        "library": [
            "COMPASS",
            "load_questionnaire",
            "load_questionnaires",
            "questionnaire_names",
            "counts",
        ],
        "model": ["Questionnaire", "Item", "Option", "Scale"],
        "perturbations": ["perturbed", "shuffled_words"],
        "readers": ["psychobench_keys"],
    },
)
