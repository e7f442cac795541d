"""Compute scores of categories, to which the options of every item contribute."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..checks import check_columns
from ..exceptions import ParameterError
from ..questionnaires import AnyQuestionnaires, Questionnaire, load_questionnaires
from .normalisation import _check_answers
from .scoring import _KEYS, _answer_values, _answers_to


def category_scores(answers: pd.DataFrame, questionnaires: AnyQuestionnaires) -> pd.DataFrame:
    r"""Return category scores: the options' expected weights, summed over items.

    .. math:: S_c = b_c + \sum_i \sum_o p_{io}\, w_{ioc}, \qquad
       \mathrm{sd}_c^2 = \sum_i \Bigl(\sum_o p_{io} w_{ioc}^2 - (\textstyle\sum_o p_{io}
       w_{ioc})^2\Bigr)

    Parameters
    ----------
    answers : DataFrame
        Answers to items, as :func:`psychometrics.asking.ask` returns them; or a table with a column
        ``probability`` and one row per option (a missing ``run`` counts as 1). Probabilities over
        several orders of the options (``permutation``) are first averaged as logarithms; then the
        probabilities of an item are divided by their sum.
    questionnaires : Questionnaire, name or path, or several of them
        Questionnaires with ``categories``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, category, score, share, sd, low, high, answered,
        items``. ``share`` is the score divided by the sum over the categories (the library's
        ``normalize_res``; missing if the sum is 0); ``sd`` is the score's standard deviation if
        each answer were drawn from its probabilities; ``low`` and ``high`` are the smallest and
        largest possible scores of the category. If a question is unanswered, the score is missing,
        since leaving the question out would mean answering it with 0.

    Raises
    ------
    ParameterError
        The questionnaire has no categories, an item or option is unknown, or a probability is out
        of range.

    References
    ----------
    The question_llm library (third document), ``evaluate()`` and the bias term.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> two = load_questionnaire("two_axes")
    >>> yes = pd.DataFrame({"respondent_id": "r", "questionnaire": "two_axes", "mode": "human",
    ...     "run": 1, "item_id": [item.id for item in two.items], "value": 4.0, "status": "ok"})
    >>> category_scores(yes, "two_axes")["score"].tolist()
    [0.0, 0.0]
    """
    _check_answers(answers, ("questionnaire",))
    loaded = load_questionnaires(questionnaires, texts=False)
    tables = [_category_table(answers, questionnaire) for questionnaire in loaded]
    return pd.concat(tables, ignore_index=True)


def _category_table(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    if not questionnaire.categories:
        raise ParameterError(f"{questionnaire.id} has no categories; use scale_scores.")
    by_option = {
        (item.id, float(option.value)): weights
        for item in questionnaire.items
        for option, weights in zip(questionnaire.choices(item), item.weights or (), strict=True)
    }
    weights = pd.DataFrame(by_option, index=list(questionnaire.categories)).T
    options = _option_shares(answers, questionnaire, weights.index)
    items = options.groupby([*_KEYS, "item_id"], sort=False)
    share = options["probability"] / items["probability"].transform("sum")

    if share.isna().any():
        raise ParameterError(f"{questionnaire.id}: probabilities are all 0; leave the item out.")
    places = pd.MultiIndex.from_frame(options[["item_id", "value"]])
    values = weights.loc[places].set_axis(options.index)
    by = [options[name] for name in (*_KEYS, "item_id")]
    mean = values.mul(share, axis=0).groupby(by, sort=False).sum()
    square = (values**2).mul(share, axis=0).groupby(by, sort=False).sum()
    runs = {"level": list(_KEYS), "sort": False}
    bias = pd.Series(questionnaire.bias or 0.0, weights.columns)
    ends = weights.groupby(level=0)
    answered = mean.groupby(**runs).size()
    is_complete = answered == len(questionnaire.items)
    score = (mean.groupby(**runs).sum() + bias).where(is_complete)
    statistics = {
        "score": score,
        "share": score.div(score.sum(axis=1).replace(0, np.nan), axis=0),
        "sd": np.sqrt((square - mean**2).clip(lower=0).groupby(**runs).sum()),
    }
    table = pd.concat({name: wide.stack() for name, wide in statistics.items()}, axis=1)
    table = table.rename_axis([*_KEYS, "category"]).reset_index()
    table["low"] = table["category"].map(ends.min().sum() + bias)
    table["high"] = table["category"].map(ends.max().sum() + bias)
    table["answered"] = answered.repeat(len(bias)).to_numpy()

    return table.assign(items=len(questionnaire.items))


def _option_shares(
    answers: pd.DataFrame, questionnaire: Questionnaire, options: pd.Index
) -> pd.DataFrame:
    """Return one row per answer or option with its probability, after checking them."""
    rows = _answers_to(questionnaire, answers)
    if "run" not in rows:
        rows = rows.assign(run=1)

    if "probability" not in rows:
        chosen = _answer_values(rows, list(_KEYS)).rename(columns={"score": "value"}).dropna()
        rows = chosen.assign(probability=1.0)
    elif "status" in rows:
        rows = rows[rows["status"] == "ok"]

    _check_answers(rows, (*_KEYS, "item_id"), ["value", "probability"])
    if not (rows["probability"] >= 0).all():
        raise ParameterError(f"{questionnaire.id}: probabilities must be numbers of at least 0.")

    rows = rows.astype({"value": float}).reset_index(drop=True)
    places = pd.MultiIndex.from_frame(rows[["item_id", "value"]])
    is_option = places.isin(options)
    if not is_option.all():
        item, option = places[~is_option][0]
        raise ParameterError(f"{questionnaire.id}, item {item}: no option {option:g}; correct it.")

    keys = [*_KEYS, "item_id", "value"]
    orders = ["permutation"] if "permutation" in rows else []
    check_columns(rows, (), once=[*keys, *orders])
    if orders:
        logs = np.log(rows["probability"].clip(lower=1e-300))
        if "log_probability" in rows:  # long texts have it, since their probability rounds to 0
            logs = rows["log_probability"].fillna(logs)

        rows = rows.assign(log=logs).groupby(keys, sort=False, as_index=False)["log"].mean()
        most = rows.groupby([*_KEYS, "item_id"])["log"].transform("max")
        rows["probability"] = np.exp(rows["log"] - most)

    return rows
