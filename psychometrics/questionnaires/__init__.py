"""Questionnaires: what one holds, where it is read from, the prompts it makes, its wording."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["drafts", "library", "model", "perturbations", "prompts", "readers", "wording"],
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
