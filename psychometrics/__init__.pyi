from . import (
    asking,
    authoring,
    checks,
    data,
    endpoints,
    exceptions,
    figures,
    files,
    interventions,
    measures,
    models,
    modes,
    paths,
    questionnaires,
    store,
    studies,
    training,
)
from .asking import nulls
from .asking.answer_files import read_answers, write_answers
from .asking.ask import ask, ask_ways
from .asking.nulls import null_answers, null_distribution
from .asking.population import population, population_table, readable_names, untouched_bases
from .authoring import content, improving
from .measures import (
    beliefs,
    bias,
    evidence,
    groups,
    intervals,
    irt,
    items,
    norms,
    reliability,
    scoring,
    structure,
    styles,
    trends,
    validity,
)
from .measures.score_tables import score_table
from .measures.scoring import item_scores, pss, scale_scores, two_way
from .modes import load_respondent, messages, replies
from .publishing import book, claims, exercises, page, printing, record, runs
from .publishing.parameters import check_parameters
from .questionnaires import answers
from .questionnaires.library import load_questionnaire, questionnaire_names
from .questionnaires.prompts import prompts
from .reports import answer_profiles, checklist, profiles, rules, study, study_files
from .store import compact, manifests

__version__: str

__all__ = [
    "__version__",
    "answer_profiles",
    "answers",
    "ask",
    "ask_ways",
    "asking",
    "authoring",
    "beliefs",
    "bias",
    "book",
    "check_parameters",
    "checklist",
    "checks",
    "claims",
    "compact",
    "content",
    "data",
    "endpoints",
    "evidence",
    "exceptions",
    "files",
    "exercises",
    "figures",
    "groups",
    "improving",
    "intervals",
    "interventions",
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
    "norms",
    "null_answers",
    "null_distribution",
    "nulls",
    "page",
    "paths",
    "population",
    "population_table",
    "profiles",
    "printing",
    "prompts",
    "pss",
    "questionnaire_names",
    "questionnaires",
    "read_answers",
    "readable_names",
    "record",
    "reliability",
    "replies",
    "rules",
    "runs",
    "scale_scores",
    "score_table",
    "scoring",
    "store",
    "structure",
    "studies",
    "study",
    "study_files",
    "styles",
    "training",
    "trends",
    "two_way",
    "untouched_bases",
    "validity",
    "write_answers",
]
