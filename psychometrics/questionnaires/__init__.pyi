from . import answers, library, model, perturbations, prompts, psychobench, readers, schema
from .library import (
    COMPASS,
    AnyQuestionnaires,
    counts,
    load_questionnaire,
    load_questionnaires,
    questionnaire_names,
)
from .model import Item, Option, Questionnaire, Scale
from .perturbations import perturbed
from .psychobench import psychobench_keys

__all__ = [
    "AnyQuestionnaires",
    "COMPASS",
    "Item",
    "Option",
    "Questionnaire",
    "Scale",
    "answers",
    "counts",
    "library",
    "load_questionnaire",
    "load_questionnaires",
    "model",
    "perturbations",
    "perturbed",
    "prompts",
    "psychobench",
    "psychobench_keys",
    "questionnaire_names",
    "readers",
    "schema",
]
