"""A study's plan as the text that a registry of plans asks for: OSF, AsPredicted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml

from psychometrics.checks import check_choice
from psychometrics.exceptions import ParameterError

from ..templating import TEMPLATES, fill_template
from .study_files import load_study


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

    folder = path.parent
    return fill_template(
        "registration.md.j2",
        form=FORMS[form],
        study=study,
        plan=study.planned,
        questionnaires={loaded.id: loaded for loaded in study.load_questionnaires(folder)},
        respondents=study.list_respondents(folder),
        powers=study.power(folder),
    )


FORMS = yaml.safe_load((TEMPLATES / "registries.yml").read_text(encoding="utf-8"))
"""Questions of each form, and the part of a plan that answers them."""
