"""How answers run over the intensifiers, and what normalisation leaves of them."""

from __future__ import annotations

import pandas as pd

from ..asking.answers import check_columns
from ..exceptions import ParameterError
from .intervals import mean_interval


def trends(shares: pd.DataFrame) -> pd.DataFrame:
    """Mean PSS by polarity and intensifier over respondents, with 95 % intervals.

    Parameters
    ----------
    shares : DataFrame
        PSS per prompt, as :func:`psychometrics.measures.scoring.pss` gives it.

    Returns
    -------
    DataFrame
        ``polarity, weight, intensifier, mean, low, high, n``, intensifiers from least to most;
        probabilities that sum to one over the intensifiers of a polarity. The interval is
        :func:`psychometrics.measures.intervals.mean_interval` over the n respondents, and missing
        for one.

    Raises
    ------
    ParameterError
        There are no answers, a column is missing, or something is no finite number.

    References
    ----------
    Reuben et al. (2024), figure 2; Hall (1992) for the interval.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.measures.scoring import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> trends(pss(answers))["mean"].round(2).tolist()[:4]
    [0.03, 0.05, 0.08, 0.08]
    """
    _check(shares, ["respondent_id", "polarity", "intensifier"], ["level", "weight", "pss"])
    keys = ["polarity", "level", "weight", "intensifier"]
    table = shares.groupby([*keys, "respondent_id"], sort=False)["pss"].mean().unstack()
    low, high = mean_interval(table.to_numpy(dtype=float))
    frame = table.mean(axis=1).rename("mean").reset_index()
    frame = frame.assign(low=low, high=high, n=table.notna().sum(axis=1).to_numpy())
    return frame.sort_values(["polarity", "level"], ascending=[False, True]).drop(columns="level")


def separation(shares: pd.DataFrame) -> pd.DataFrame:
    r"""Mean weight given by source terms, by inverse terms, and their difference, per item.

    With weights :math:`w_j`, over the terms :math:`s^+` and :math:`s^-` of an item,

    .. math:: d = \overline{\sum_j w_j\, \mathrm{PSS}(l_j | s^+)}
                - \overline{\sum_j w_j\, \mathrm{PSS}(l_j | s^-)}

    Parameters
    ----------
    shares : DataFrame
        PSS per prompt, as :func:`psychometrics.measures.scoring.pss` gives it.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, source, inverse, separation``, all in units of
        the weights: the expected weight when an intensifier is drawn from the PSS. Missing where
        an item has no inverse terms, or an answer is.

    Raises
    ------
    ParameterError
        There are no answers, a column is missing, or something is no finite number.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.measures.scoring import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> separation(pss(answers))["separation"].round(2).tolist()[:1]
    [3.3]
    """
    _check(shares, ["respondent_id", "questionnaire", "item_id"], ["weight", "pss"])
    weighted = shares.assign(weighted=shares["pss"] * shares["weight"])
    keys = ["respondent_id", "questionnaire", "item_id"]
    rows = weighted.groupby([*keys, "template", "polarity", "term"])["weighted"]
    # a sum without one of its words would be another sum
    per_term = rows.sum().where(rows.count() == rows.size())
    table = per_term.groupby([*keys, "polarity"]).mean(skipna=False).unstack("polarity")
    table = table.rename(columns={1: "source", -1: "inverse"})
    table = table.reindex(columns=["source", "inverse"])
    table.columns.name = None
    return table.assign(separation=table["source"] - table["inverse"]).reset_index()


def monotony(shares: pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of mean PSS with the intensifiers' weights, per respondent.

    Parameters
    ----------
    shares : DataFrame
        PSS per prompt, as :func:`psychometrics.measures.scoring.pss` gives it.

    Returns
    -------
    DataFrame
        ``source, inverse`` (correlations from -1 to 1), indexed by ``respondent_id``. Missing
        where the PSS do not vary, or there are no such terms. Of some of the intensifiers only
        if ``shares`` has only their rows.

    Raises
    ------
    ParameterError
        There are no answers, a column is missing, or something is no finite number.

    References
    ----------
    Spearman (1904).

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.measures.scoring import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> monotony(pss(answers)).to_numpy().round(2).tolist()
    [[1.0, -1.0]]
    """
    _check(shares, ["respondent_id", "polarity", "intensifier"], ["weight", "pss"])
    keys = ["respondent_id", "polarity"]
    means = shares.groupby([*keys, "intensifier", "weight"])["pss"].mean()
    curves = means.unstack(["intensifier", "weight"])
    spread = curves.max(axis=1) - curves.min(axis=1)
    varies = (spread > 1e-12 * curves.abs().max(axis=1)) & (curves.count(axis=1) > 2)
    ranks = curves[varies].astype(float).rank(axis=1)
    weights = 0 * ranks + ranks.columns.get_level_values("weight").to_numpy(dtype=float)
    found = ranks.corrwith(weights.rank(axis=1), axis=1).clip(-1, 1).reindex(curves.index)
    table = found.unstack().rename(columns={1: "source", -1: "inverse"}).rename_axis(columns=None)
    return table.reindex(columns=["source", "inverse"])


def _check(shares: pd.DataFrame, columns: list[str], numbers: list[str]) -> None:
    check_columns(shares, columns, numbers)
    if shares.empty:
        raise ParameterError("There are no answers; ask a questionnaire first.")
