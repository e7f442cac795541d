"""Describe how answers change over the intensifiers."""

from __future__ import annotations

import pandas as pd

from ..exceptions import ParameterError
from .intervals import merge_near_ties
from .normalisation import _check_answers

# Mean PSS that differ by less count as constant: the difference is rounding.
_LEAST_RANGE = 1e-9


def monotony(shares: pd.DataFrame) -> pd.DataFrame:
    """Return the Spearman correlation of mean PSS with the intensifiers' weights, per respondent.

    Parameters
    ----------
    shares : DataFrame
        PSS per prompt, as :func:`psychometrics.measures.normalisation.pss` returns it.

    Returns
    -------
    DataFrame
        ``source, inverse`` (correlations from -1 to 1), indexed by ``respondent_id``. A correlation
        is missing if the PSS do not vary, or if there are no terms of this kind. Shares that differ
        by less than a hundred-thousandth of their range count as tied. If ``shares`` covers only
        some intensifiers, the correlations are over these alone.

    Raises
    ------
    ParameterError
        There are no answers, a column is missing, a value is not a finite number, or a polarity is
        neither 1 nor -1.

    References
    ----------
    Spearman (1904).

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.measures.normalisation import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> monotony(pss(answers)).to_numpy().round(2).tolist()
    [[1.0, -1.0]]
    """
    names = ["respondent_id", "intensifier", "weight"]
    _check_answers(shares, names, ["polarity", "weight", "pss"])
    stray = shares.loc[~shares["polarity"].isin([1, -1]), "polarity"]
    if len(stray):
        raise ParameterError(f"polarity must be 1 (source) or -1 (inverse), got {stray.iloc[0]}.")

    keys = ["respondent_id", "polarity"]
    means = shares.groupby([*keys, "intensifier", "weight"])["pss"].mean().astype(float)
    curves = means.unstack(["intensifier", "weight"])
    spread = curves.max(axis=1) - curves.min(axis=1)
    varies = (spread > _LEAST_RANGE) & (curves.count(axis=1) > 2)
    curves = curves[varies]
    steps = pd.DataFrame(merge_near_ties(curves, axis=1), curves.index, curves.columns)
    ranks = steps.rank(axis=1)
    weights = 0 * ranks + ranks.columns.get_level_values("weight").to_numpy(dtype=float)
    trends = ranks.corrwith(weights.rank(axis=1), axis=1).clip(-1, 1).reindex(spread.index)
    table = trends.unstack().rename(columns={1: "source", -1: "inverse"}).rename_axis(columns=None)

    return table.reindex(columns=["source", "inverse"])
