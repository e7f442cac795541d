"""Whether answers separate plain-keyed items from reverse-keyed ones."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from scipy import stats

from psychometrics.questionnaires import Questionnaire

_SHUFFLES = 9999
_COLUMNS = ["plain", "reverse", "difference", "low", "high", "p"]


def reverse_keyed(questionnaire: Questionnaire) -> set[str]:
    """Return the items that are reverse-keyed in a scale of a questionnaire.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> len(reverse_keyed(load_questionnaire("ipip20")))
    11
    """
    return {item for scale in questionnaire.scales for item in scale.reverse}


def key_difference(answers: pd.DataFrame, reverse: Collection[str]) -> pd.Series:
    """Compare answers to plain-keyed items with answers to reverse-keyed ones.

    Parameters
    ----------
    answers : pandas.DataFrame
        The columns ``item_id`` and ``value``; rows without a value are left out.
    reverse : collection of str
        The reverse-keyed items.

    Returns
    -------
    pandas.Series
        The two means (``plain``, ``reverse``), their ``difference`` with Welch's interval (``low``,
        ``high``), and its two-sided ``p`` by shuffled keys. The last three are missing where a kind
        has fewer than two answers, or all answers are the same.

    Examples
    --------
    >>> answers = pd.DataFrame({"item_id": list("abcd"), "value": [5, 4, 2, 1]})
    >>> float(key_difference(answers, {"c", "d"})["difference"])
    3.0
    """
    answers = answers.dropna(subset=["value"])
    is_reverse = answers["item_id"].isin(reverse)
    plain, other = (answers.loc[is_reverse == key, "value"] for key in (False, True))
    row = {"plain": plain.mean(), "reverse": other.mean()}
    row["difference"] = _mean_difference(plain, other, axis=0)

    if min(len(plain), len(other)) > 1 and answers["value"].nunique() > 1:
        welch = stats.ttest_ind(plain, other, equal_var=False)
        row["low"], row["high"] = welch.confidence_interval()
        shuffled = stats.permutation_test(
            (plain, other),
            _mean_difference,
            vectorized=True,
            n_resamples=_SHUFFLES,
            rng=np.random.default_rng(0),
        )
        row["p"] = shuffled.pvalue

    return pd.Series(row, _COLUMNS)


def _mean_difference(plain, other, axis):
    return plain.mean(axis=axis) - other.mean(axis=axis)
