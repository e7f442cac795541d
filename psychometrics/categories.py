"""Questionnaires whose answers add to categories: from answer probabilities to category scores."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .exceptions import ParameterError
from .questionnaires import Questionnaire

KEYS = ("respondent_id", "questionnaire", "mode", "run")


def option_probabilities(answers: pd.DataFrame, over_runs: bool = False) -> pd.DataFrame:
    """Chosen options as probabilities: 1 for what was chosen, or shares over the runs.

    Parameters
    ----------
    answers : DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``.
    over_runs : bool
        Whether the runs are taken together, as ``run`` 0.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, probability``; options that were
        never chosen have no row, nor have questions without an answer.

    Examples
    --------
    >>> frame = pd.DataFrame({"respondent_id": "a", "questionnaire": "x", "mode": "chat",
    ...     "run": [1, 2, 3, 4], "item_id": "1", "value": [1.0, 2.0, 2.0, 2.0], "status": "ok"})
    >>> option_probabilities(frame, over_runs=True)["probability"].tolist()
    [0.25, 0.75]
    """
    given = answers[answers["status"] == "ok"]
    given = given.assign(value=given["value"].astype("float64"))
    if over_runs:
        given = given.assign(run=0)
    counts = given.groupby([*KEYS, "item_id", "value"], sort=False).size().rename("times")
    table = counts.reset_index()
    total = table.groupby([*KEYS, "item_id"])["times"].transform("sum")
    table["probability"] = table["times"] / total
    return table.drop(columns="times")


def category_scores(
    probabilities: pd.DataFrame, questionnaire: Questionnaire, bias: bool = True
) -> pd.DataFrame:
    r"""Score of each category: what the options add, weighed by how probable they are.

    .. math:: S_c = b_c + \sum_i \sum_o p_{io}\, w_{ioc}, \qquad
       \mathrm{sd}_c^2 = \sum_i \Bigl(\sum_o p_{io} w_{ioc}^2 - (\textstyle\sum_o p_{io}
       w_{ioc})^2\Bigr)

    Parameters
    ----------
    probabilities : DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, probability``, one row per
        option, as :func:`pooled` and :func:`option_probabilities` give them;
        without ``run`` it is 1. The probabilities of an item are divided by their sum.
    questionnaire : Questionnaire
        With ``categories``.
    bias : bool
        Whether the categories' bias is added.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, category, score, sd, low, high, answered, items``.
        ``sd`` is that of the score if each answer were drawn from its probabilities; ``low`` and
        ``high`` are the least and greatest score that the category can take. With a question
        unanswered the score is missing: to leave it out would be to answer it with 0.

    Raises
    ------
    ParameterError
        The questionnaire has no categories, or an item, option or probability is impossible.

    References
    ----------
    The question_llm library (third document), ``evaluate()`` and the bias term.

    Examples
    --------
    >>> from psychometrics.questionnaires import Questionnaire
    >>> two = Questionnaire(id="two", title="Two", short_title="Two", measures="x", citation="user",
    ...     source="example", licence="CC0", instructions="Choose.", categories=("a", "b"),
    ...     bias=(0.5, 0.0), options=({"value": 1, "label": "no"}, {"value": 2, "label": "yes"}),
    ...     items=({"id": "1", "text": "Yes?", "weights": ((0, 1), (2, 0))},))
    >>> frame = pd.DataFrame({"respondent_id": "r", "questionnaire": "two", "mode": "option_logits",
    ...     "run": 1, "item_id": "1", "value": [1.0, 2.0], "probability": [0.25, 0.75]})
    >>> category_scores(frame, two)["score"].tolist()
    [2.0, 0.25]
    """
    if not questionnaire.categories:
        raise ParameterError(f"{questionnaire.id} has no categories; use sum_scores.")
    weights = _weights(questionnaire)
    if "run" not in probabilities:
        probabilities = probabilities.assign(run=1)
    part = probabilities[probabilities["questionnaire"] == questionnaire.id]
    if part.empty:
        raise ParameterError(f"There are no answers to {questionnaire.id}.")
    p = part["probability"]
    if p.isna().any() or (p < 0).any():
        raise ParameterError(f"{questionnaire.id}: probabilities must be numbers from 0.")
    places = pd.MultiIndex.from_frame(part[["item_id", "value"]].astype({"value": float}))
    if not (inside := places.isin(weights.index)).all():
        item, option = places[~inside][0]
        raise ParameterError(f"{questionnaire.id}, item {item}: {option:g} is no option's value.")
    if part.duplicated([*KEYS, "item_id", "value"]).any():
        raise ParameterError(
            f"{questionnaire.id}: an option occurs twice in a run; number the runs."
        )
    item_keys = [*KEYS, "item_id"]
    total = p.groupby([part[k] for k in item_keys]).transform("sum")
    if (total <= 0).any():
        raise ParameterError(
            f"{questionnaire.id}: an item's probabilities are all 0; leave it out."
        )
    share = (p / total).to_numpy()[:, None]
    values = weights.loc[places].to_numpy()
    names = list(questionnaire.categories)
    moments = pd.DataFrame(
        np.hstack([share * values, share * values**2]),
        columns=[*names, *(("square", n) for n in names)],
    )
    moments = moments.join(part[item_keys].reset_index(drop=True))
    by_item = moments.groupby(item_keys, sort=False).sum()
    ends = category_ranges(questionnaire, bias=bias).set_index("category")
    rows = []
    for asked, table in by_item.groupby(level=list(KEYS), sort=False):
        for c, name in enumerate(names):
            mean = table[name].to_numpy()
            variance = np.clip(table["square", name].to_numpy() - mean**2, 0, None)
            whole = len(table) == len(questionnaire.items)
            score = mean.sum() + (questionnaire.bias[c] if bias else 0.0)
            rows.append(
                (*asked, name, score if whole else np.nan, np.sqrt(variance.sum()),
                 *ends.loc[name, ["low", "high"]], len(table), len(questionnaire.items))
            )  # fmt: skip
    columns = [*KEYS, "category", "score", "sd", "low", "high", "answered", "items"]
    return pd.DataFrame(rows, columns=columns)


def category_ranges(questionnaire: Questionnaire, bias: bool = True) -> pd.DataFrame:
    """Least, greatest and indifferent score of each category.

    Parameters
    ----------
    questionnaire : Questionnaire
        With ``categories``.
    bias : bool
        Whether the categories' bias is added.

    Returns
    -------
    DataFrame
        ``category, low, high, even``; ``even`` is the score of someone who finds all options of
        every item equally likely, which need not be the middle.
    """
    weights = _weights(questionnaire)
    by_item = weights.groupby(level="item_id")
    add = np.asarray(questionnaire.bias if bias else [0.0] * len(questionnaire.categories))
    return pd.DataFrame(
        {
            "category": list(questionnaire.categories),
            "low": by_item.min().sum().to_numpy() + add,
            "high": by_item.max().sum().to_numpy() + add,
            "even": by_item.mean().sum().to_numpy() + add,
        }
    )


def _weights(questionnaire: Questionnaire) -> pd.DataFrame:
    """Options of all items by categories."""
    index, rows = [], []
    for item in questionnaire.items:
        for option, weights in zip(questionnaire.choices(item), item.weights or (), strict=True):
            index.append((item.id, float(option.value)))
            rows.append(weights)
    index = pd.MultiIndex.from_tuples(index, names=["item_id", "value"])
    return pd.DataFrame(rows, index=index, columns=list(questionnaire.categories))
