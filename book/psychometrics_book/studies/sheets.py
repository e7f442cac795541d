"""Published answers to a questionnaire as tables with a row for each run or person.

Chapter 12 and its records read them: some are shipped as answers, some as means and covariances.
"""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd

from psychometrics.measures.intervals import jackknife_half_width
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


def scale_by_key(questionnaire: Questionnaire) -> pd.Series:
    """Return each item's cell: its scale and key as a text.

    Examples
    --------
    >>> import psychometrics as pm
    >>> scale_by_key(pm.load_questionnaire("ipip20"))["ipip20_16"]
    'extraversion -1'
    """
    return pd.Series(
        {
            item: f"{scale.id} {key:+d}"
            for scale in questionnaire.scales
            for item, key in questionnaire.keys(scale).items()
        }
    )


def profiles_within(scores: pd.DataFrame, cells: pd.Series) -> pd.DataFrame:
    """Return each respondent's scores without the means of the cells, scaled to length 1.

    The product of two rows is the correlation of two respondents within cells.

    Parameters
    ----------
    scores : pandas.DataFrame
        Respondents by items.
    cells : pandas.Series
        The cell of each item.

    Returns
    -------
    pandas.DataFrame
        Respondents by items; missing for a respondent with one score in every cell.

    Examples
    --------
    >>> scores = pd.DataFrame([[1.0, 3.0, 5.0, 5.0]], columns=list("abcd"))
    >>> profiles_within(scores, pd.Series(list("xxyy"), list("abcd"))).round(3).to_numpy().tolist()
    [[-0.707, 0.707, 0.0, 0.0]]
    """
    rest = scores - scores.T.groupby(cells).transform("mean").T
    length = np.sqrt((rest**2).sum(axis=1))
    return rest.div(length.where(length > 1e-9), axis=0)


def mean_of_pairs(
    r: pd.DataFrame, chosen: np.ndarray, units: pd.Series, less: np.ndarray | None = None
) -> pd.Series:
    """Return the mean correlation of pairs, with a jackknife interval over units.

    Parameters
    ----------
    r : pandas.DataFrame
        Correlations of respondents.
    chosen : numpy.ndarray of bool
        The pairs; the order of the two does not matter.
    units : pandas.Series
        The unit of each respondent, in the order of the rows, such as its family of models. Each
        unit is left out in turn; a missing one stays.
    less : numpy.ndarray of bool, optional
        Pairs whose mean is subtracted.

    Returns
    -------
    pandas.Series
        ``value, low, high``.

    Examples
    --------
    >>> r = pd.DataFrame([[1, 0.5, 0.4], [0.5, 1, 0.6], [0.4, 0.6, 1]])
    >>> mean_of_pairs(r, np.full((3, 3), True), pd.Series(["a", "b", "c"])).round(1).tolist()
    [0.5, 0.0, 1.0]
    """
    matrix = r.to_numpy()
    groups = [np.triu(pairs | pairs.T, 1) for pairs in (chosen, less) if pairs is not None]

    def contrast(kept: np.ndarray) -> float:
        means = [matrix[pairs & kept & kept[:, None]].mean() for pairs in groups]
        return float(means[0] - sum(means[1:]))

    everybody = np.full(len(matrix), True)
    value = contrast(everybody)
    taking_part = units[sum((pairs | pairs.T).sum(axis=1) for pairs in groups) > 0]
    without = [contrast((units != unit).to_numpy()) for unit in taking_part.dropna().unique()]
    half = float(jackknife_half_width(np.array(without)))
    return pd.Series({"value": value, "low": value - half, "high": value + half})
