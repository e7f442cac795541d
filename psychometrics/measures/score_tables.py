"""The table that ``psychometrics scores`` prints: scores with intervals and notes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ..checks import check_columns, check_flags
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from ..questionnaires.answers import check_loaded
from .categories import category_scores
from .intervals import mean_table, scale_intervals
from .normalisation import pss
from .scoring import item_scores, scale_scores


def score_table(
    answers: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    items: bool = False,
    **scoring: Any,
) -> pd.DataFrame:
    """Return each score with its interval, its number of items and the model's precision.

    Parameters
    ----------
    answers : DataFrame
        Answers, as :func:`psychometrics.asking.ask` returns them.
    questionnaires : sequence of Questionnaire
        The questionnaires that were answered.
    items : bool
        Whether to score items instead of scales.
    **scoring
        ``score`` and ``temperature`` for answers to prompts, as in
        :func:`psychometrics.measures.scoring.scale_scores`.

    Returns
    -------
    DataFrame
        The columns of the scores; for a scale score, the 95 % interval over its items, ``low,
        high``, and the number of items, ``n``; a ``note`` if a score or interval is missing; and
        the ``precision`` of the model's numbers, if known. An item asked through prompts has an
        interval over its source terms. A questionnaire with categories has only the scores of the
        categories.

    Raises
    ------
    ParameterError
        The answers lack a column, or a setting does not apply to them.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, null_answers
    >>> challenges = load_questionnaire("challenges")
    >>> table = score_table(null_answers(challenges, "noise", 2), [challenges])
    >>> table["n"].tolist()
    [4, 4]
    """
    check_columns(answers, ())
    check_loaded(questionnaires)
    check_flags(items=items)
    by_prompts = "term" in answers
    if items and scoring and not by_prompts:
        raise ParameterError(f"{min(scoring)} does not apply to answers to items; leave it out.")

    conditions = answers.attrs.get("summary", {}).get("conditions", ())  # of a table that was read
    if "persona_row" in answers:
        scoring = scoring | {"by": ["persona_row"]}
    elif conditions and not items:
        scoring = scoring | {"by": list(conditions)}

    if items and by_prompts:
        keys = ["respondent_id", "questionnaire", "item_id"]
        sources = pss(answers, **scoring).query("polarity == 1")
        sources = sources.assign(value=sources["pss"] * sources["weight"])
        terms = sources.groupby([*keys, "template", "term"], sort=False)["value"].mean()
        terms = terms.reset_index()
        # the normalisation makes a template's terms dependent, so the interval is somewhat too wide
        terms["term"] = terms["template"].astype(str) + terms["term"]
        ends = mean_table(terms, "value", keys, "term").drop(columns="mean")
        table = item_scores(answers, **scoring).merge(ends, on=keys)
    elif items:
        table = answers
    elif any(questionnaire.categories for questionnaire in questionnaires):
        table = category_scores(answers, questionnaires)
    elif "option" in answers:
        raise ParameterError("choose=none gives probabilities, not answers: add --items.")
    else:
        table = _score_scales(answers, questionnaires, scoring)

    precisions = answers.attrs.get("summary", {}).get("precision", {})
    precision = table["respondent_id"].map(precisions)

    return table.assign(precision=precision) if precision.notna().any() else table


def _score_scales(
    answers: pd.DataFrame, questionnaires: Sequence[Questionnaire], scoring: dict[str, Any]
) -> pd.DataFrame:
    """Return the scores of scales with their intervals, notes and (if any) personas."""
    table = scale_scores(answers, questionnaires=questionnaires, **scoring)
    by_name = {questionnaire.id: questionnaire for questionnaire in questionnaires}
    table = _add_intervals(table, item_scores(answers, **scoring), by_name)

    # Why scores or intervals are missing.
    keys = ["respondent_id", "questionnaire", "run", "persona_row"]
    keys = [key for key in keys if key in table and key in answers]
    notes = []
    for row in table.to_dict("records"):
        note = ""
        if math.isnan(row["score"]) and "status" in answers:
            items = by_name[row["questionnaire"]].scale(row["scale"]).items
            asking = answers[(answers[keys] == [row[key] for key in keys]).all(axis=1)]
            unanswered = asking[asking["item_id"].isin(items) & (asking["status"] != "ok")]
            counts = unanswered["status"].value_counts()
            note = "no score: " + ", ".join(f"{n} {status}" for status, n in counts.items())
        elif math.isnan(row["low"]) and row["n"] == 1:
            note = "no interval: one item"

        notes.append(note)

    table = table.assign(note=notes) if any(notes) else table
    if "persona_row" not in answers:
        return table

    traits = answers.columns[answers.columns.get_loc("persona_row") :]
    personas = answers[traits].drop_duplicates("persona_row")

    return table.merge(personas, on="persona_row", suffixes=("", "_of_persona"))


def _add_intervals(
    table: pd.DataFrame, items: pd.DataFrame, by_name: Mapping[str, Questionnaire]
) -> pd.DataFrame:
    """Add the interval of each score over its items, and the number of items."""
    parts = []
    for name in items["questionnaire"].unique():
        for scale in by_name[name].scales:
            intervals = scale_intervals(items, by_name[name], scale.id)
            size = len(scale.items) if "run" in items and scale.mode == "sum" else 1
            parts.append(intervals[["low", "high", "n"]] * [size, size, 1])

    intervals = pd.concat(parts, ignore_index=True)
    after_score = table.columns.get_loc("score") + 1
    for place, column in enumerate(intervals, start=after_score):
        table.insert(place, column, intervals[column])

    table[["low", "high"]] = table[["low", "high"]].where(table["score"].notna())
    return table.drop(columns="answered", errors="ignore")
