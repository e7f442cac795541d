"""The table of scores as the command prints it: scores with their intervals and notes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from .intervals import mean_table, scale_intervals
from .scoring import category_scores, item_scores, pss, scale_scores


def score_table(
    answers: pd.DataFrame,
    questionnaires: Sequence[Questionnaire],
    items: bool = False,
    **how: object,
) -> pd.DataFrame:
    """Return each score with its interval, the number of items behind it and the precision.

    Parameters
    ----------
    answers : DataFrame
        As :func:`psychometrics.asking.ask` gives them.
    questionnaires : sequence of Questionnaire
        Those that were asked.
    items : bool
        Scores of items, not of scales.
    **how
        ``score`` and ``temperature`` of answers to prompts, as in
        :func:`psychometrics.measures.scoring.scale_scores`.

    Returns
    -------
    DataFrame
        The scores' columns; after a scale's score the 95 % interval from its items, ``low, high``,
        and their number ``n``; ``note`` where a score or interval is missing; ``precision`` in
        which a model answered, where that is known. An item asked by prompts has its interval from
        its source terms; a questionnaire with categories has their scores alone.

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
    by_prompts = "term" in answers
    if items and how and not by_prompts:
        raise ParameterError(f"{min(how)} does not apply to answers to items; leave it out.")

    if "persona_row" in answers:
        how = how | {"by": ["persona_row"]}

    if items:
        table = _items_with_intervals(answers, how) if by_prompts else answers
    elif any(questionnaire.categories for questionnaire in questionnaires):
        table = category_scores(answers, questionnaires)
    elif "option" in answers:
        raise ParameterError("choose=none gives probabilities, no answers to score: add --items.")
    else:
        table = _scales_with_intervals(answers, questionnaires, how)

    precisions = answers.attrs.get("summary", {}).get("precision", {})
    precision = table["respondent_id"].map(precisions)

    return table.assign(precision=precision) if precision.notna().any() else table


def _scales_with_intervals(answers, questionnaires, how: dict):
    table = scale_scores(answers, questionnaires=questionnaires, **how)
    table = _with_intervals(table, item_scores(answers, **how), questionnaires)
    table = _with_notes(table, answers, questionnaires)

    if "persona_row" not in answers:
        return table

    traits = answers.columns[answers.columns.get_loc("persona_row") :]
    personas = answers[traits].drop_duplicates("persona_row")

    return table.merge(personas, on="persona_row", suffixes=("", "_of_persona"))


def _with_intervals(table, items, questionnaires):
    """Put beside each score the interval from its items, and their number."""
    known = {questionnaire.id: questionnaire for questionnaire in questionnaires}
    found = {"low": [], "high": [], "n": []}

    for name in items["questionnaire"].unique():
        for scale in known[name].scales:
            own = scale_intervals(items, known[name], scale.id)
            size = len(scale.items) if "run" in items and scale.mode == "sum" else 1
            for column, unit in (("low", size), ("high", size), ("n", 1)):
                found[column] += (own[column] * unit).tolist()

    place = table.columns.get_loc("score")
    for column, values in found.items():
        table.insert(place := place + 1, column, values)

    table[["low", "high"]] = table[["low", "high"]].where(table["score"].notna())
    return table.drop(columns="answered", errors="ignore")


def _with_notes(table, answers, questionnaires):
    """Say of each score, or interval, that is missing why it is; no column if none is."""
    known = {questionnaire.id: questionnaire for questionnaire in questionnaires}
    keys = ["respondent_id", "questionnaire", "run", "persona_row"]
    keys = [key for key in keys if key in table and key in answers]
    notes = []
    for row in table.to_dict("records"):
        note = ""
        if math.isnan(row["score"]) and "status" in answers:
            items = known[row["questionnaire"]].scale(row["scale"]).items
            own = answers[(answers[keys] == [row[key] for key in keys]).all(axis=1)]
            own = own[own["item_id"].isin(items) & (own["status"] != "ok")]
            counts = own["status"].value_counts()
            note = "no score: " + ", ".join(f"{n} {status}" for status, n in counts.items())
        elif math.isnan(row["low"]) and row["n"] == 1:
            note = "no interval: one item"

        notes.append(note)

    return table.assign(note=notes) if any(notes) else table


def _items_with_intervals(answers, how: dict):
    """Put beside each item's score the interval from its source terms, and their number."""
    keys = ["respondent_id", "questionnaire", "item_id"]
    own = pss(answers, **how).query("polarity == 1")
    own = own.assign(value=own["pss"] * own["weight"])
    terms = own.groupby([*keys, "template", "term"], sort=False)["value"].mean().reset_index()
    # the normalisation ties a template's terms, so that the interval is rather too wide
    terms["term"] = terms["template"].astype(str) + terms["term"]
    ends = mean_table(terms, "value", keys, "term").drop(columns="mean")
    return item_scores(answers, **how).merge(ends, on=keys)
