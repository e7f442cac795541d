# ruff: noqa: F401
from . import (
    asking,
    authoring,
    checks,
    data,
    endpoints,
    exceptions,
    figures,
    interventions,
    measures,
    models,
    modes,
    paths,
    publishing,
    questionnaires,
    reports,
    store,
    studies,
    training,
)
from .asking import nulls
from .asking.answer_files import read_answers, write_answers
from .asking.ask import ask, ask_ways
from .asking.nulls import null_answers, null_distribution
from .asking.population import population, population_table, readable_names, untouched_bases
from .authoring import improving
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
    reliability,
    scoring,
    structure,
    styles,
    trends,
    validity,
)
from .measures.scoring import item_scores, pss, scale_scores, two_way
from .modes import load_respondent, messages, replies
from .publishing import book, claims, exercises, page, record, runs
from .publishing.parameters import check_parameters
from .questionnaires import answers
from .questionnaires.library import load_questionnaire, questionnaire_names
from .questionnaires.prompts import prompts
from .reports import answer_profiles, profiles, rules, study
from .store import compact, manifests
