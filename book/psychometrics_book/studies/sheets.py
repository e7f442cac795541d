"""Published answers to a questionnaire as tables with a row for each run or person.

Chapter 12 and its records read them: some are shipped as answers, some as means and covariances.
"""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd

from psychometrics.measures.scoring import keyed_items
from psychometrics.questionnaires import Questionnaire


def name_groups(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the readable names of models and of groups to a published table.

    Parameters
    ----------
    frame : pandas.DataFrame
        A published table with the columns ``respondent_id`` and ``condition``.

    Returns
    -------
    pandas.DataFrame
        The table with the columns ``model`` and ``group``, a model under a condition.

    Examples
    --------
    >>> frame = pd.DataFrame({"respondent_id": ["qwen2.5-7b"], "condition": ["history"]})
    >>> name_groups(frame)["group"].item()
    'Qwen 2.5 7B, history'
    """
    gap = r"(?<=[a-z])(?=\d)|[-_]"
    names = frame["respondent_id"].str.replace(gap, " ", regex=True).str.title()
    conditions = (", " + frame["condition"]).replace(", people", "")
    return frame.assign(model=names, group=names + conditions)


def stand_in(moments: pd.DataFrame, group: str, rows: int | None = None) -> pd.DataFrame:
    """Return normal rows with exactly the published means and covariances of a group.

    Parameters
    ----------
    moments : pandas.DataFrame
        A row for each group and item, by item: the ``mean``, the number of rows ``n``, and the
        covariances with all items.
    group : str
        The name of the group.
    rows : int, optional
        How many rows; by default, as many as the group has.

    Returns
    -------
    pandas.DataFrame
        Rows by items. They are nobody's answers.

    Examples
    --------
    >>> moments = pd.DataFrame({"group": "a", "mean": [1.0, 2.0], "n": 9, "x": [1.0, 0.5],
    ...                         "y": [0.5, 1.0]}, ["x", "y"])
    >>> stand_in(moments, "a").cov().round(6).to_numpy().tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    of_group = moments[moments["group"] == group]
    count = rows or of_group["n"].iloc[0]
    items = list(of_group.index)

    values, vectors = np.linalg.eigh(of_group[items].to_numpy(dtype=float))
    root = vectors * np.sqrt(values.clip(min=0))
    rng = np.random.default_rng(zlib.crc32(group.encode()))
    normal = rng.normal(size=(count, len(items)))
    basis = np.linalg.qr(normal - normal.mean(axis=0))[0]

    table = np.sqrt(count - 1) * basis @ root.T
    table[:, np.diag(of_group[items]) == 0] = 0
    return pd.DataFrame(table + of_group["mean"].to_numpy(), columns=items)


def complete_rows(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return keyed answers of all respondents who answered every item of every scale.

    Parameters
    ----------
    items : pandas.DataFrame
        Item scores, as ``psychometrics.item_scores`` returns them.
    questionnaire : Questionnaire
        The questionnaire with its scales.

    Returns
    -------
    pandas.DataFrame
        Respondents by items.
    """
    parts = [keyed_items(items, questionnaire, scale) for scale in questionnaire.scales]
    rows = pd.concat(parts, axis=1).dropna().reset_index(drop=True)
    return rows.loc[:, ~rows.columns.duplicated()]
