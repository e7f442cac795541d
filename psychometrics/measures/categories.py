"""Compute scores of categories, to which the options of every item contribute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ..checks import as_numbers, check_choice, check_columns, check_flags
from ..exceptions import ParameterError
from ..questionnaires import Item, Option, Questionnaire, load_questionnaire, load_questionnaires
from .normalisation import _check_answers
from .scoring import _KEYS, _values


def category_scores(
    answers: pd.DataFrame,
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire],
) -> pd.DataFrame:
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
    >>> two = load_questionnaire("two_axes")
    >>> yes = pd.DataFrame({"respondent_id": "r", "questionnaire": "two_axes", "mode": "human",
    ...     "run": 1, "item_id": [item.id for item in two.items], "value": 4.0, "status": "ok"})
    >>> category_scores(yes, "two_axes")["score"].tolist()
    [0.0, 0.0]
    """
    _check_answers(answers, ("questionnaire",))
    parts = [_category_rows(answers, q) for q in load_questionnaires(questionnaires, texts=False)]
    return pd.concat(parts, ignore_index=True)


def ideal_answers(
    questionnaire: str | Path | Questionnaire,
    category: str,
    within: float = 0.0,
    opposite: bool = False,
) -> pd.DataFrame:
    """List the options that most favour a category.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        A questionnaire with ``categories``.
    category : str
    within : float
        Largest distance of an option's weight from the questionnaire's greatest weight.
    opposite : bool
        Whether to list instead the options whose weights are near the questionnaire's smallest
        weight.

    Returns
    -------
    DataFrame
        ``item_id, value, label, weight``; an item may have several rows, or none.

    Raises
    ------
    ParameterError
        The questionnaire does not have the category.

    References
    ----------
    The question_llm library (third document), ``get_optim_answers()``.

    Examples
    --------
    >>> ideal_answers("two_axes", "economic")["label"].unique().tolist()
    ['strongly disagree', 'strongly agree']
    """
    questionnaire = load_questionnaire(questionnaire, texts=False)
    check_choice(questionnaire.categories, category=category)
    check_flags(opposite=opposite)
    at = questionnaire.categories.index(category)
    sign = -1 if opposite else 1
    weights = [w for item in questionnaire.items for row in item.weights or () for w in row]
    bar = max(sign * w for w in weights) - as_numbers("within", within, axes=0)
    rows = [
        (item.id, option.value, option.label, row[at])
        for item, option, row in _weighted_options(questionnaire)
        if sign * row[at] >= bar
    ]

    return pd.DataFrame(rows, columns=["item_id", "value", "label", "weight"])


def _weighted_options(
    questionnaire: Questionnaire,
) -> Iterator[tuple[Item, Option, tuple[float, ...]]]:
    """Yield each option of each item with its weights for the categories."""
    for item in questionnaire.items:
        for option, weights in zip(questionnaire.choices(item), item.weights or (), strict=True):
            yield item, option, weights


def _category_rows(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    if not questionnaire.categories:
        raise ParameterError(f"{questionnaire.id} has no categories; use scale_scores.")
    rows = {
        (item.id, float(option.value)): row
        for item, option, row in _weighted_options(questionnaire)
    }
    weights = pd.DataFrame(rows, index=list(questionnaire.categories)).T
    part = _option_shares(answers, questionnaire, weights.index)
    items = part.groupby([*_KEYS, "item_id"], sort=False)
    share = part["probability"] / items["probability"].transform("sum")

    if share.isna().any():
        raise ParameterError(f"{questionnaire.id}: probabilities are all 0; leave the item out.")
    places = pd.MultiIndex.from_frame(part[["item_id", "value"]])
    values = weights.loc[places].to_numpy()
    by = [part[name] for name in (*_KEYS, "item_id")]
    weighted = (share.to_numpy()[:, None] * x for x in (values, values**2))
    frames = (pd.DataFrame(x, part.index, weights.columns) for x in weighted)
    mean, square = (frame.groupby(by, sort=False).sum() for frame in frames)
    runs = {"level": list(_KEYS), "sort": False}
    bias = pd.Series(questionnaire.bias or 0.0, weights.columns)
    ends = weights.groupby(level=0)
    answered = mean.groupby(**runs).size()
    whole = answered == len(questionnaire.items)
    score = (mean.groupby(**runs).sum() + bias).where(whole)
    found = {
        "score": score,
        "share": score.div(score.sum(axis=1).replace(0, np.nan), axis=0),
        "sd": np.sqrt((square - mean**2).clip(lower=0).groupby(**runs).sum()),
    }
    table = pd.concat({name: wide.stack() for name, wide in found.items()}, axis=1)
    table = table.rename_axis([*_KEYS, "category"]).reset_index()
    table["low"] = table["category"].map(ends.min().sum() + bias)
    table["high"] = table["category"].map(ends.max().sum() + bias)
    table["answered"] = answered.repeat(len(bias)).to_numpy()

    return table.assign(items=len(questionnaire.items))


def _option_shares(
    answers: pd.DataFrame, questionnaire: Questionnaire, options: pd.Index
) -> pd.DataFrame:
    """Return one row per answer or option with its probability, after checking them."""
    part = answers[answers["questionnaire"] == questionnaire.id]
    if part.empty:
        raise ParameterError(f"There are no answers to {questionnaire.id}; add them.")

    if "run" not in part:
        part = part.assign(run=1)

    if "probability" not in part:
        chosen = _values(part, list(_KEYS)).rename(columns={"score": "value"}).dropna()
        part = chosen.assign(probability=1.0)
    elif "status" in part:
        part = part[part["status"] == "ok"]

    _check_answers(part, (*_KEYS, "item_id"), ["value", "probability"])
    if not (part["probability"] >= 0).all():
        raise ParameterError(f"{questionnaire.id}: probabilities must be numbers of at least 0.")

    part = part.astype({"value": float}).reset_index(drop=True)
    places = pd.MultiIndex.from_frame(part[["item_id", "value"]])
    inside = places.isin(options)
    if not inside.all():
        item, option = places[~inside][0]
        raise ParameterError(f"{questionnaire.id}, item {item}: no option {option:g}; correct it.")

    keys = [*_KEYS, "item_id", "value"]
    check_columns(part, (), once=[*keys, *({"permutation"} & {*part})])
    if "permutation" in part:
        logs = np.log(part["probability"].clip(lower=1e-300))
        if "log_probability" in part:  # long texts have it, since their probability rounds to 0
            logs = part["log_probability"].fillna(logs)

        part = part.assign(log=logs).groupby(keys, sort=False, as_index=False)["log"].mean()
        most = part.groupby([*_KEYS, "item_id"])["log"].transform("max")
        part["probability"] = np.exp(part["log"] - most)

    return part
