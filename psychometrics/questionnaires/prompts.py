"""Expand items into prompts, which combine every template, term and intensifier."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..exceptions import QuestionnaireError
from .library import load_questionnaire
from .model import Questionnaire


def prompts(questionnaire: str | Path | Questionnaire) -> pd.DataFrame:
    """Expand a questionnaire into its prompt table.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path

    Returns
    -------
    DataFrame
        One row per prompt. Items and templates are in the questionnaire's order, source terms come
        before inverse terms, and intensifiers go from least to most. The columns are
        ``questionnaire, item_id, template`` (from 1 within the item)``, term, polarity`` (+1 for
        S+, −1 for S−)``, intensifier, level`` (from 1)``, weight, premise, hypothesis``. A template
        with T terms and L intensifiers gives T · L rows.

    Raises
    ------
    QuestionnaireError
        No item has a template.

    References
    ----------
    Reuben et al. (2024), section 3.1.

    Examples
    --------
    >>> prompts("challenges").loc[0, "premise"]
    'People whom I counted on disappointed me.'
    """
    questionnaire = load_questionnaire(questionnaire)
    rows = [
        (
            questionnaire.id, item.id, number, term, polarity, word, place, level.weight,
            _fill(template.premise, term, word), _fill(template.hypothesis, term, word),
        )
        for item in questionnaire.items
        for number, template in enumerate(item.templates, start=1)
        for polarity, side in ((1, "source"), (-1, "inverse"))
        for term in getattr(template.terms or item.terms, side)
        for place, level in enumerate(questionnaire.levels(item), start=1)
        for word in level.terms
    ]  # fmt: skip

    if not rows:
        raise QuestionnaireError(
            f"{questionnaire.id} has no prompts; add templates and terms, or ask in mode options."
        )
    columns = ["questionnaire", "item_id", "template", "term", "polarity", "intensifier", "level"]
    return pd.DataFrame(rows, columns=[*columns, "weight", "premise", "hypothesis"])


def _fill(template: str, term: str, intensifier: str) -> str:
    """Fill the gaps of a sentence, which then begins with a capital letter."""
    text = template.replace("{term}", term).replace("{intensifier}", intensifier)
    return text[:1].upper() + text[1:]
