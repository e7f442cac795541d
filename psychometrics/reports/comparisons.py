"""Compare several models, or respondents of a table of answers, with each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..exceptions import ParameterError, QuestionnaireError, RespondentError
from ..questionnaires import AnyQuestionnaires
from .agreement import agreement_table
from .assessments import Assessment, Comparison
from .own_base import keep_possible_twins
from .profiles import assess, differences, judge_respondents, name_models


def compare_models(
    models: Sequence[str | Path],
    questionnaires: AnyQuestionnaires,
    **settings: Any,
) -> Comparison:
    """Assess several models, and compare each with the first.

    A model that cannot answer does not stop the others.

    Parameters
    ----------
    models : sequence of str or Path
        Models, as in :func:`psychometrics.reports.profiles.assess`.
    questionnaires, **settings
        As in :func:`psychometrics.reports.profiles.assess`.

    Raises
    ------
    ParameterError, QuestionnaireError
        A setting fails for every model, there are fewer than two models, or two have one name.
    RespondentError
        No model can answer.

    Examples
    --------
    >>> names = ["minilm-mnli-l3-s16", "minilm-snli-l3-s17"]
    >>> compare_models(names, "challenges", against=None).differences["model"].tolist()
    ['minilm-snli-l3-s17']
    """
    assessments = {}
    failures = {}
    for name, model in zip(name_models(models), models, strict=True):
        try:
            assessments[name] = assess(model, questionnaires, **settings)
        except (ParameterError, QuestionnaireError):
            raise
        except Exception as error:
            failures[name] = " ".join(str(error).split())

    if not assessments:
        raise RespondentError(f"No model can answer: {failures}")
    return _compare(assessments, failures)


def compare_respondents(
    answers: pd.DataFrame, questionnaires: AnyQuestionnaires, names: Sequence[str]
) -> Comparison:
    """Judge respondents by their own answers, and compare each with the first.

    Parameters and errors are those of :func:`psychometrics.reports.profiles.judge_respondents`.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> answers = empty_answers("ipip20", "random", respondents=2, runs=1)
    >>> names = answers["respondent_id"].unique().tolist()
    >>> comparison = compare_respondents(answers, "ipip20", names)
    >>> len(comparison.differences)
    5
    >>> names[1] in comparison._repr_html_()  # the page, as Jupyter shows it
    True
    """
    assessments = judge_respondents(answers, questionnaires, names)
    notes = answers.attrs.get("summary", {}).get("read")
    return _compare(assessments, {}, pd.DataFrame(notes) if notes else None)


def _compare(
    assessments: dict[str, Assessment], failures: dict[str, str], read: pd.DataFrame | None = None
) -> Comparison:
    """Return the comparison of assessed respondents."""
    first = next(iter(assessments.values()))
    questionnaires = first.questionnaires
    items = pd.concat([each.items for each in assessments.values()])
    twins = items if first.base is None else keep_possible_twins(items, first.base)
    agreement = agreement_table(twins, questionnaires)
    others = items["respondent_id"].nunique() - twins["respondent_id"].nunique()
    if others:
        agreement["note"] = f"left out: {others} on another network or depth; " + agreement["note"]
        agreement["note"] = agreement["note"].str.removesuffix("; ")

    return Comparison(
        assessments,
        differences(assessments, questionnaires),
        agreement,
        failures,
        read,
    )
