"""Beliefs of models asked live: templates mined, groups compared, a place among the published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..beliefs import table1
from ..exceptions import ParameterError
from ..hurtfulness import hurtful
from ..respondents.completions import completion_rows, mine


def mine_templates(
    models: Sequence[str | Path], templates: pd.DataFrame, k: int = 20, **options
) -> pd.DataFrame:
    """Completions of several models, each with the groups of its template.

    Parameters
    ----------
    models : sequence of str or Path
        As :func:`psychometrics.respondents.completions.mine` takes them.
    templates : DataFrame, T rows
        As :func:`psychometrics.studies.fairbelief.templates` gives it.
    k : int
        Completions for each template.
    **options
        Passed on to :func:`psychometrics.respondents.completions.mine`.

    Returns
    -------
    DataFrame, R times T times K rows
        What ``mine`` gives, and the other columns of `templates`.

    Examples
    --------
    >>> mine_templates(["embedded"], templates("own"), k=5)  # doctest: +SKIP
    """
    groups = templates.drop(columns="template")
    groups = groups.loc[groups.index.repeat(k)].reset_index(drop=True)
    parts = [mine(model, templates["template"], k=k, **options) for model in models]
    return pd.concat([pd.concat([part, groups], axis=1) for part in parts], ignore_index=True)


def typical_completions(mined: pd.DataFrame, group: str, n: int = 10) -> pd.DataFrame:
    """Completions that one group gets in more of its templates than the other groups do.

    Parameters
    ----------
    mined : DataFrame
        As :func:`mine_templates` gives it.
    group : str
        Column that holds the groups; two or more.
    n : int
        Completions for each.

    Returns
    -------
    DataFrame, up to n rows
        A column for each group, the most typical first. Offensive text is possible.

    Raises
    ------
    ParameterError
        There are fewer than two groups.

    Examples
    --------
    >>> mined = pd.DataFrame({"template": ["A", "A", "B", "B"], "sex": ["f", "f", "m", "m"],
    ...                       "completion": ["nurse", "kind", "pilot", "kind"]})
    >>> typical_completions(mined, "sex", n=1).to_dict("list")
    {'f': ['nurse'], 'm': ['pilot']}
    """
    counts = mined.groupby([group, "completion"]).size().unstack(0, fill_value=0)
    if counts.shape[1] < 2:
        raise ParameterError(f"{group} has only one group: there is nothing to compare it with.")
    shares = counts / mined.drop_duplicates(["template", group]).groupby(group).size()
    others = shares.rsub(shares.sum(axis=1), axis=0) / (shares.shape[1] - 1)
    lead = shares - others
    return pd.DataFrame({name: lead[name].nlargest(n).index for name in lead})


def group_scores(mined: pd.DataFrame, words: Iterable[str], group: str) -> pd.DataFrame:
    """HONEST over all ranks for each model and group.

    Parameters
    ----------
    mined : DataFrame
        As :func:`mine_templates` gives it.
    words : iterable of str
        Lemmas.
    group : str
        Column that holds the groups.

    Returns
    -------
    DataFrame
        ``respondent_id``, `group`, ``templates``, ``honest`` (mean over templates of their share of
        hurtful completions) and ``sd`` over templates.

    Examples
    --------
    >>> mined = pd.DataFrame({"respondent_id": "m", "rank": [1, 2, 1, 2], "sex": list("ffmm"),
    ...                       "completion": ["rat", "kind", "pilot", "kind"]})
    >>> group_scores(mined, ["rat"], "sex")["honest"].tolist()
    [0.5, 0.0]
    """
    words, parts = list(words), []
    for model, part in mined.groupby("respondent_id", sort=False):
        shares = hurtful(completion_rows(part), words).mean(axis=1)
        groups = part.loc[part["rank"] == 1, group].reset_index(drop=True)
        found = pd.Series(shares).groupby(groups, sort=False).agg(["size", "mean", "std"])
        parts.append(found.rename_axis(group).reset_index().assign(respondent_id=model))
    table = pd.concat(parts, ignore_index=True)
    table = table.rename(columns={"size": "templates", "mean": "honest", "std": "sd"})
    return table[["respondent_id", group, "templates", "honest", "sd"]]


def standing(
    models: Sequence[str | Path],
    subsets: dict[str, Sequence[str]],
    words: Iterable[str],
    published: pd.DataFrame,
    k: int = 100,
    **options,
) -> pd.DataFrame:
    """Table 1 of models asked live, with their rank among the published ones.

    Parameters
    ----------
    models : sequence of str or Path
    subsets : dict of sequences of str
        Templates of each subset.
    words : iterable of str
        Lemmas.
    published : DataFrame
        As :func:`psychometrics.beliefs.table1` gives it, of the published models.
    k : int
        Completions for each template.
    **options
        Passed on to :func:`psychometrics.respondents.completions.mine`.

    Returns
    -------
    DataFrame, one row a model
        As ``table1``; ``rank`` is among all models, published and live.
    """
    words, hits, names = list(words), [], []
    for model in models:
        parts = [mine(model, list(part), k=k, **options) for part in subsets.values()]
        hits.append(hurtful([row for part in parts for row in completion_rows(part)], words))
        names.append(parts[0]["respondent_id"].iloc[0])
    labels = np.repeat(list(subsets), [len(part) for part in subsets.values()])
    live = table1(np.stack(hits), labels, names)
    means = pd.concat([published["mean"], live["mean"]], ignore_index=True)
    ranks = means.rank(ascending=False, method="min").astype(int)
    return live.assign(rank=ranks[len(published) :].to_numpy())
