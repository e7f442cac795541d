"""Resolve what was passed to ``ask``: questionnaires, respondents, mode and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ..exceptions import ParameterError, RespondentError
from ..modes import conditions_of, mode_named
from ..modes.mode import Mode
from ..questionnaires import Questionnaire, load_questionnaires
from .failures import Failures
from .population import population


class Plan(NamedTuple):
    """What is to be asked of whom, and who has failed so far."""

    questionnaires: list[Questionnaire]
    respondents: list[tuple[dict, object, Mode]]
    """Each respondent's identity, itself or its name, and its mode."""
    conditions: dict
    failures: Failures


def resolve(
    questionnaires: object,
    respondents: object,
    mode: str,
    dtype: str | None,
    conditions: dict,
    failures: str | Path | None,
) -> Plan:
    """Load the questionnaires and identify the respondents, before anything is asked."""
    loaded = load_questionnaires(questionnaires)
    if not loaded:
        raise ParameterError("There is no questionnaire to ask: name at least one.")
    if repeated := _repeated(questionnaire.id for questionnaire in loaded):
        raise ParameterError(f"The questionnaire {repeated} is given twice: keep one.")
    listed = isinstance(respondents, Path) and respondents.suffix in (".yaml", ".yml")
    if isinstance(respondents, str) or listed:
        respondents = population(respondents)
    else:
        one = isinstance(respondents, pd.DataFrame | Path | bytes) or hasattr(respondents, "answer")
        if one or not isinstance(respondents, Iterable):
            respondents = [respondents]
    conditions = conditions_of(mode, conditions)
    plan = Plan(loaded, [], conditions, Failures(failures, mode, dtype, conditions))
    for respondent in respondents:
        own_mode, own_conditions = mode, conditions
        try:
            if mode == "nli" and hasattr(respondent, "answer"):
                own_mode = respondent.identity["mode"]
            if own_mode != mode:
                own_conditions = conditions_of(own_mode, {})
            how = mode_named(own_mode)
            identity = how.identify(respondent, dtype, **own_conditions)
            plan.respondents.append((identity, respondent, how))
        except RespondentError as error:
            plan.failures.add(str(respondent), error)
    if not plan.respondents:
        missing = RespondentError("There is no respondent to ask: name at least one.")
        raise next(iter(plan.failures.errors.values()), missing)
    if repeated := _repeated(identity["respondent_id"] for identity, *_ in plan.respondents):
        raise RespondentError(
            f"Two respondents are called '{repeated}': keep one, or rename a folder."
        )
    return plan


def _repeated(names: Iterable[str]) -> str | None:
    return min((name for name, count in Counter(names).items() if count > 1), default=None)
