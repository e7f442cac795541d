"""The psychometrics of language models: questionnaires, respondents, answers, scores."""

from __future__ import annotations

# The submodules `prompts` and `population` are imported first and then give their names to the
# functions, which is what users mean by them.
from .ask import ask
from .population import population
from .prompts import prompts
from .questionnaires import load_questionnaire
from .respondents import load_respondent
from .scoring import item_scores, scale_scores, two_way

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "ask",
    "item_scores",
    "load_questionnaire",
    "load_respondent",
    "population",
    "prompts",
    "scale_scores",
    "two_way",
]
