# ruff: noqa: F401
from . import (
    answer_profiles,
    asking,
    book,
    checklist,
    claims,
    data,
    endpoints,
    exceptions,
    exercises,
    figures,
    improving,
    interventions,
    measures,
    models,
    modes,
    page,
    paths,
    profiles,
    questionnaires,
    record,
    rules,
    runs,
    studies,
    study,
    training,
)
from .asking import answers, store
from .asking.answer_files import read_answers, write_answers
from .asking.ask import ask, ask_ways
from .asking.population import population, population_table, readable_names, untouched_bases
from .asking.store import compact, manifests
from .measures import (
    beliefs,
    bias,
    content,
    evidence,
    groups,
    intervals,
    irt,
    items,
    norms,
    nulls,
    ordinal,
    reliability,
    scoring,
    structure,
    styles,
    trends,
    validity,
)
from .measures.nulls import null_answers, null_distribution
from .measures.scoring import item_scores, pss, scale_scores, two_way
from .modes import load_respondent, messages, replies
from .parameters import check_parameters
from .questionnaires.library import load_questionnaire, questionnaire_names
from .questionnaires.prompts import prompts
