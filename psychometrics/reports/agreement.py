"""Show how well independent respondents agree about the items of a questionnaire."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from ..checks import check_columns
from ..measures.scoring import keyed_items
from ..nulls.evidence import profile_agreement
from ..questionnaires import AnyQuestionnaires, Questionnaire, load_questionnaires

INDEPENDENT = (
    "Agreement speaks for a score only if the respondents were trained apart from one network, as "
    "seeds and fine-tunes are. Families and versions of chat models, and runs of a model, are not "
    "independent respondents."
)
"""The sentence to print with every agreement."""
_DRAWS = 999
_FEWER_DRAWS = 99
# Number of scores above which fewer draws are enough, since the null of many respondents is narrow.
_LARGE = 100_000


def agreement_table(
    items: pd.DataFrame,
    questionnaires: AnyQuestionnaires,
    respondent: str | None = None,
) -> pd.DataFrame:
    """Return the agreement of respondents about each questionnaire's items, with its null.

    Parameters
    ----------
    items : DataFrame
        Item scores, as :func:`psychometrics.measures.scoring.item_scores` returns them. Runs of a
        respondent are averaged.
    questionnaires : str, Path or Questionnaire, or several
        Questionnaires with scales.
    respondent : str, optional
        A respondent whose mean correlation with the others is shown, too.

    Returns
    -------
    DataFrame
        One row per questionnaire: ``questionnaire, respondents, items``; ``agreement, low, high,
        null, p``, from :func:`psychometrics.nulls.evidence.profile_agreement` of item scores with
        the keys of their scales (of the last one, if an item belongs to several);
        ``scale_by_key``, the part of the agreement that lies between items of different scales or
        keys, and ``share``, from 0 to 1, that part divided by the agreement, if it is positive;
        ``p_beyond``, of the rest; ``with_others``, the named respondent's mean correlation with the
        others, and ``null_with_others``, the 95 % point of it if only this respondent's scores are
        dealt anew; and ``note``, which says who was left out or why there is no agreement. The
        parts are missing if all items belong to one scale and are keyed alike.

    Examples
    --------
    >>> from psychometrics.measures.scoring import item_scores
    >>> from psychometrics.measures.styles import empty_answers
    >>> items = item_scores(empty_answers("ipip20", "random", respondents=3, runs=1))
    >>> agreement_table(items, "ipip20")[["respondents", "items", "note"]].values.tolist()
    [[3, 20, '']]
    """
    check_columns(items, ["respondent_id", "questionnaire", "item_id"], gaps=["score"])
    rows = []
    for questionnaire in load_questionnaires(questionnaires, texts=False):
        row = _agree(items[items["questionnaire"] == questionnaire.id], questionnaire, respondent)
        rows.append({"questionnaire": questionnaire.id} | row)

    columns = ["questionnaire", "respondents", "items", "agreement", "low", "high", "null", "p"]
    columns += ["scale_by_key", "share", "p_beyond"]
    columns += ["note"] if respondent is None else ["with_others", "null_with_others", "note"]
    return pd.DataFrame(rows).reindex(columns=columns)


def _agree(
    items: pd.DataFrame, questionnaire: Questionnaire, respondent: str | None
) -> dict[str, object]:
    """Return one row of the table."""
    if items.empty:
        return {"respondents": 0, "note": "nobody answered"}

    keyed = keyed_items(items, questionnaire)
    cells = pd.Series("", keyed.columns)  # alike for items of one scale and key
    for scale in questionnaire.scales:
        keys = questionnaire.keys(scale)
        keyed[[*keys]] = keyed_items(items, questionnaire, scale)[[*keys]]
        cells[[*keys]] += [f"{scale.id} {key:+d}, " for key in keys.values()]

    scores = keyed.groupby(level="respondent_id", sort=False).mean()
    if "run" in items:  # answers to items, whose ranges may differ
        low, high = np.array([questionnaire.ends(name) for name in scores.columns]).T
        scores = (scores - low) / (high - low)

    if scores.shape[1] < 2:
        return {"respondents": len(scores), "items": 1, "note": "agreement needs two items"}

    usable, notes = _leave_out(scores, items)
    row = {"respondents": len(usable), "items": scores.shape[1]}
    if len(usable) < 2:
        return row | {"note": "; ".join([*notes, "agreement needs two independent respondents"])}

    draws = _DRAWS if usable.size <= _LARGE else _FEWER_DRAWS
    result = profile_agreement(usable, cells=cells, draws=draws)
    row |= {"agreement": result["value"]} | result[["low", "high", "null", "p"]].to_dict()
    if cells.nunique() > 1:
        row |= {"scale_by_key": result["between"], "p_beyond": result["p_within"]}
        share = result["between"] / result["value"] if result["value"] > 0 else np.nan
        row["share"] = np.clip(share, 0, 1)

    if respondent is not None and respondent in usable.index:
        row |= _agree_with_others(usable, respondent, draws)
    return row | {"note": "; ".join(notes)}


def _leave_out(scores: pd.DataFrame, items: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the scores of respondents that can agree, and notes on the others."""
    complete = scores.dropna()
    answers = items.groupby(["respondent_id", "item_id"])["score"].mean().unstack()
    spread = np.minimum(np.ptp(complete, axis=1), np.ptp(answers.loc[complete.index], axis=1))
    usable = complete[spread > 1e-9 * complete.abs().max(axis=1)]
    is_copy = (usable / usable.abs().max(axis=None)).round(4).duplicated()
    notes = []
    if len(complete) < len(scores):
        notes.append(f"left out: {len(scores) - len(complete)} with gaps")
    if len(usable) < len(complete):
        notes.append(f"left out: {len(complete) - len(usable)} with one score for all items")

    if is_copy.any() and "run" not in items:  # answers to prompts: the same model twice
        notes.append(f"left out: {is_copy.sum()} with the same scores as another")
        usable = usable[~is_copy]
    elif is_copy.sum() == len(usable) - 1 > 0:
        notes.append("all gave the same answers")

    return usable, notes


def _agree_with_others(scores: pd.DataFrame, respondent: str, draws: int) -> dict[str, float]:
    """Return a respondent's mean correlation with the others, with its null."""
    profiles = stats.zscore(scores.to_numpy(), axis=1)
    place = scores.index.get_loc(respondent)
    mean_of_others = np.delete(profiles, place, axis=0).mean(axis=0) / profiles.shape[1]
    dealt = np.random.default_rng(0).permuted(np.tile(profiles[place], (draws, 1)), axis=1)
    return {
        "with_others": profiles[place] @ mean_of_others,
        "null_with_others": np.quantile(dealt @ mean_of_others, 0.95),
    }
