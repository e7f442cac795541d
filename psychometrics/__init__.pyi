from . import (
    asking,
    authoring,
    checks,
    data,
    endpoints,
    exceptions,
    figures,
    files,
    measures,
    models,
    modes,
    paths,
    questionnaires,
    store,
    training,
)
from .asking import nulls
from .asking.answer_files import read_answers, write_answers
from .asking.ask import ask, ask_ways
from .asking.nulls import null_answers, null_distribution
from .asking.population import population, population_table, readable_names, untouched_bases
from .measures import (
    attributions,
    beliefs,
    bias,
    categories,
    evidence,
    graded,
    groups,
    intervals,
    irt,
    items,
    normalisation,
    norms,
    reliability,
    scoring,
    structure,
    styles,
    trends,
    validity,
)
from .measures.normalisation import pss, two_way
from .measures.score_tables import score_table
from .measures.scoring import item_scores, scale_scores
from .modes import load_respondent, messages, replies
from .questionnaires import answers
from .questionnaires.library import load_questionnaire, questionnaire_names
from .questionnaires.prompts import prompts
from .reports import answer_profiles, profiles, rules
from .store import compact, manifests

__version__: str

__all__ = [
    "__version__",
    "answer_profiles",
    "answers",
    "ask",
    "ask_ways",
    "asking",
    "attributions",
    "authoring",
    "beliefs",
    "bias",
    "categories",
    "checks",
    "compact",
    "data",
    "endpoints",
    "evidence",
    "exceptions",
    "files",
    "figures",
    "graded",
    "groups",
    "intervals",
    "irt",
    "item_scores",
    "items",
    "load_questionnaire",
    "load_respondent",
    "manifests",
    "measures",
    "messages",
    "models",
    "modes",
    "normalisation",
    "norms",
    "null_answers",
    "null_distribution",
    "nulls",
    "paths",
    "population",
    "population_table",
    "profiles",
    "prompts",
    "pss",
    "questionnaire_names",
    "questionnaires",
    "read_answers",
    "readable_names",
    "reliability",
    "replies",
    "rules",
    "scale_scores",
    "score_table",
    "scoring",
    "store",
    "structure",
    "styles",
    "training",
    "trends",
    "two_way",
    "untouched_bases",
    "validity",
    "write_answers",
]
