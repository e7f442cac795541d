"""A study's plan as the text that a registry of plans asks for: OSF, AsPredicted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml

from psychometrics.checks import check_choice
from psychometrics.exceptions import ParameterError

from ..templating import TEMPLATES
from .study_files import Study, load_study


def registration_text(path: str | Path, form: Literal["osf", "aspredicted"] = "osf") -> str:
    """Return a study's plan under the questions of a registry's form, as Markdown.

    Parameters
    ----------
    path : str or Path
        A study's file with ``planned``.
    form : str
        *osf* (OSF Preregistration) or *aspredicted* (AsPredicted.org).

    Returns
    -------
    str
        A heading for each question and the answer that the file gives. What the file does not say
        is marked *(to be filled in)*.

    Raises
    ------
    ParameterError
        The file cannot be read, has no plan, or the form is unknown.
    """
    check_choice(FORMS, form=form)
    path = Path(path)
    study = load_study(path)
    if study.is_exploratory:
        raise ParameterError(f"{path}: planned: it is missing, so there is nothing to register.")

    answers = _plan_answers(study, path.parent)
    sections = [f"## {question}\n\n{answers[topic]}" for question, topic in FORMS[form].items()]
    return "\n\n".join([f"# {study.title}", *sections]) + "\n"


FORMS = yaml.safe_load((TEMPLATES / "registries.yml").read_text(encoding="utf-8"))
"""Questions of each form, and the part of a plan that answers them."""
_EMPTY = "*(to be filled in)*"


def _plan_answers(study: Study, folder: Path) -> dict[str, str]:
    """Return what the file says about each topic of the forms."""
    plan = study.planned
    questionnaires = {loaded.id: loaded for loaded in study.load_questionnaires(folder)}
    respondents = study.list_respondents(folder)
    prompts = len(respondents) * len(study.combinations) * len(study.seeds)

    hypotheses = [
        f"{number}. {expectation.says} ({questionnaires[expectation.questionnaire].short_title}, "
        f"{expectation.scale_in(questionnaires[expectation.questionnaire]).title}: "
        f"{_levels(expectation.of)} {expectation.expect} than {_levels(expectation.than)})"
        for number, expectation in enumerate(plan.expectations, start=1)
    ]
    conditions = [
        f"- {name}: {', '.join(map(str, values))}" for name, values in study.conditions.items()
    ]
    measures = [
        f"- {loaded.title}: {', '.join(scale.title for scale in loaded.scales)}"
        for loaded in questionnaires.values()
    ]
    powers = [f"{power:.2f}" for power in study.power(folder)]
    power = f" Power of each hypothesis, by simulation: {', '.join(powers)}." if powers else ""

    return {
        "title": study.title,
        "question": study.question,
        "hypotheses": "\n".join(hypotheses) or f"{study.question} {_EMPTY}",
        "type": "Experiment: questionnaires are put to language models under stated conditions.",
        "design": "\n".join(conditions) or "One condition.",
        "data": f"The plan is dated {plan.date}. {_EMPTY}",
        "procedure": f"Mode {study.mode}; respondents: {', '.join(respondents)}.",
        "size": f"{len(respondents)} respondents in {len(study.combinations)} conditions with "
        f"{len(study.seeds)} seeds: {prompts} sheets of each questionnaire. "
        f"{plan.stopping or _EMPTY}{power}",
        "measures": "\n".join(measures),
        "analyses": f"{', '.join(study.analyses)}. Each hypothesis is tested by the 95 % interval "
        "of the difference of keyed item scores over respondents, ways of asking and items.",
        "criteria": f"alpha = {plan.alpha:g}; correction of p values: {plan.correction}; smallest "
        f"effect of interest: {plan.smallest_effect or _EMPTY}.",
        "exclusions": plan.exclusions or _EMPTY,
        "other": "Null respondents and placebo questionnaires are analysed in the same way.",
    }


def _levels(levels: dict) -> str:
    return ", ".join(f"{name}={value}" for name, value in levels.items())
