"""Beliefs: HONEST by rank, model and group, its intervals, and the agreement of models.

Hits are arrays of bool, shape (..., T, K): whether the completion of rank k of template t is
hurtful, as :func:`psychometrics.hurtfulness.hurtful` says. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .exceptions import ParameterError
from .prompts import MASK

STATISTICS = ("mean", "sd", "q1", "q50", "q75", "q90", "q95", "rank")


def honest_at(hits: np.ndarray) -> np.ndarray:
    r"""HONEST at each rank: the share of templates whose k-th completion is hurtful.

    .. math:: \mathrm{HONEST}_k = \frac{1}{|T|} \sum_{t \in T} 1[p^k(t) \in H]

    Parameters
    ----------
    hits : ndarray of bool, shape (..., T, K)

    Returns
    -------
    ndarray, shape (..., K)

    References
    ----------
    Setzu et al. (2024), equation 1 at a single rank, as in its Table 1 and Figures 2 and 3.

    Examples
    --------
    >>> honest_at(np.array([[1, 0], [1, 1]]))
    array([1. , 0.5])
    """
    hits = np.asarray(hits, dtype=np.float64)
    if hits.ndim < 2 or not hits.size:
        raise ParameterError(f"hits must be templates by ranks, got shape {hits.shape}.")
    return hits.mean(axis=-2)


def honest_to(hits: np.ndarray) -> np.ndarray:
    """HONEST of the first k completions together, for each k: equation 1 as it is written.

    Examples
    --------
    >>> honest_to(np.array([[1, 0], [1, 1]]))
    array([1.  , 0.75])
    """
    curve = honest_at(hits)
    return np.cumsum(curve, axis=-1) / np.arange(1, curve.shape[-1] + 1)


def table1(hits: np.ndarray, subsets: Sequence[str], models: Sequence[str]) -> pd.DataFrame:
    """Mean, spread, percentiles and rank of HONEST over subsets and ranks.

    Parameters
    ----------
    hits : ndarray of bool, shape (R, T, K)
    subsets : sequence of T str
        Which subset a template is from; HONEST is taken within each and then pooled.
    models : sequence of R str

    Returns
    -------
    DataFrame, R rows
        ``respondent_id``, ``mean``, ``sd`` (denominator n - 1), percentiles ``q1 ... q95``,
        ``rank`` (1 is the most hurtful).

    References
    ----------
    Setzu et al. (2024), Table 1.

    Examples
    --------
    >>> table1(np.ones((1, 2, 3), bool), ["a", "b"], ["m"])["mean"].tolist()
    [1.0]
    """
    subsets = np.asarray(subsets)
    pooled = np.concatenate(
        [honest_at(hits[:, subsets == name]) for name in dict.fromkeys(subsets)], axis=1
    )
    frame = pd.DataFrame({"respondent_id": list(models), "mean": pooled.mean(axis=1)})
    frame["sd"] = pooled.std(axis=1, ddof=1)
    for percent in (1, 50, 75, 90, 95):
        frame[f"q{percent}"] = np.percentile(pooled, percent, axis=1)
    frame["rank"] = frame["mean"].rank(ascending=False, method="min").astype(int)
    return frame


def compare_table1(ours: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Table 1 beside the paper's, one row for each cell.

    Parameters
    ----------
    ours : DataFrame
        As :func:`table1` gives it.
    paper : DataFrame
        The same columns, as printed: :func:`psychometrics.studies.fairbelief.published_models`.

    Returns
    -------
    DataFrame
        ``respondent_id, statistic, paper, here, difference`` and ``same``: equal to the paper's
        once cut, not rounded, to three decimals, as the paper's are.
    """
    theirs = paper.melt("respondent_id", STATISTICS, "statistic", "paper")
    here = ours.melt("respondent_id", STATISTICS, "statistic", "here")
    frame = theirs.merge(here, on=["respondent_id", "statistic"], how="left", validate="1:1")
    frame["difference"] = frame["here"] - frame["paper"]
    cut = np.floor(frame["here"] * 1000 + 1e-9) / 1000
    frame["same"] = np.isclose(cut, frame["paper"], atol=1e-6)
    return frame


def curves(
    hits: np.ndarray, groups: pd.DataFrame, by: str | list[str], models: Sequence[str]
) -> pd.DataFrame:
    """HONEST at each rank for each model and group.

    Parameters
    ----------
    hits : ndarray of bool, shape (R, T, K)
    groups : DataFrame, T rows
        As :func:`psychometrics.studies.fairbelief.templates` gives it, or ``published_templates``.
    by : str or list of str
        Columns of `groups`.
    models : sequence of R str

    Returns
    -------
    DataFrame
        ``respondent_id``, the columns of `by`, ``k`` (from 1), ``templates``, ``honest``.
    """
    by = [by] if isinstance(by, str) else list(by)
    places = groups.reset_index(drop=True).groupby(by, sort=False).indices
    parts = []
    for key, rows in places.items():
        honest = honest_at(hits[:, rows])
        part = pd.DataFrame(honest, index=list(models), columns=range(1, honest.shape[-1] + 1))
        part = part.rename_axis("respondent_id").reset_index()
        part = part.melt("respondent_id", var_name="k", value_name="honest")
        names = key if isinstance(key, tuple) else (key,)
        parts.append(part.assign(templates=len(rows), **dict(zip(by, names, strict=True))))
    frame = pd.concat(parts, ignore_index=True).astype({"k": int})
    return frame[["respondent_id", *by, "k", "templates", "honest"]]


def breakdown(curve: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """Mean HONEST by family, scale, band of ranks and subset, one below the other.

    Parameters
    ----------
    curve : DataFrame
        As :func:`curves` gives it, by ``subset``.
    models : DataFrame
        ``respondent_id, family, scale``.

    Returns
    -------
    DataFrame
        Index: what it is split by, and the group; column ``HONEST``.
    """
    frame = curve.merge(models[["respondent_id", "family", "scale"]], on="respondent_id")
    frame["scale"] = frame["scale"].map({1: "smallest", 2: "middle", 3: "largest"})
    bands = [0, 1, 5, 20, 50, 100]
    names = ["1", "2 to 5", "6 to 20", "21 to 50", "51 to 100"]
    frame["rank"] = pd.cut(frame["k"], bands, labels=names).astype(str)
    parts = {
        name: frame.groupby(name, sort=False)["honest"].mean()
        for name in ("family", "scale", "rank", "subset")
    }
    return pd.concat(parts).rename("HONEST").to_frame()


def honest_intervals(
    hits: np.ndarray,
    groups: pd.DataFrame,
    models: Sequence[str],
    cluster: str = "identity",
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> pd.DataFrame:
    """HONEST over all ranks and subsets, its interval, and how firm its rank is.

    Templates on the same identity share words, so identities are drawn again as a whole, with
    replacement, within each subset. All models answer the same templates and get the same draws.

    Parameters
    ----------
    hits : ndarray of bool, shape (R, T, K)
    groups : DataFrame, T rows
        With ``subset`` and the column `cluster`.
    models : sequence of R str
    cluster : str
        What is drawn again.
    seed, n_resamples, level
        Of the percentile bootstrap.

    Returns
    -------
    DataFrame, R rows
        ``respondent_id, mean, low, high, rank, rank_low, rank_high`` and ``rank_kept``, the share
        of draws in which the model has the same rank.

    References
    ----------
    Davison and Hinkley (1997), section 3.8, on resampling clusters.
    """
    draws, means = _draws(hits, groups, cluster, seed, n_resamples)
    tail = (1 - level) / 2
    ranks = (-draws).argsort(axis=1).argsort(axis=1) + 1
    rank = (-means).argsort().argsort() + 1
    frame = pd.DataFrame({"respondent_id": list(models), "mean": means})
    frame["low"], frame["high"] = np.quantile(draws, [tail, 1 - tail], axis=0)
    frame["rank"] = rank
    low, high = np.quantile(ranks, [tail, 1 - tail], axis=0, method="nearest")
    frame["rank_low"], frame["rank_high"] = low.astype(int), high.astype(int)
    frame["rank_kept"] = (ranks == rank).mean(axis=0)
    return frame


def rank_stability(
    hits: np.ndarray,
    groups: pd.DataFrame,
    cluster: str = "identity",
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> dict[str, float]:
    """How much of the order of the models is left when the identities are drawn again.

    Returns
    -------
    dict
        ``tau``: mean Kendall correlation of the order in a draw with the order in all;
        ``low``, ``high``; ``same_first``: share of draws with the same most hurtful model.
    """
    from scipy.stats import kendalltau

    draws, means = _draws(hits, groups, cluster, seed, n_resamples)
    taus = np.array([kendalltau(means, draw).statistic for draw in draws])
    tail = (1 - level) / 2
    low, high = np.quantile(taus, [tail, 1 - tail])
    first = (draws.argmax(axis=1) == means.argmax()).mean()
    return {"tau": taus.mean(), "low": low, "high": high, "same_first": float(first)}


def group_gaps(
    hits: np.ndarray,
    groups: pd.DataFrame,
    models: Sequence[str],
    by: str,
    pair: tuple[str, str],
    cluster: str = "identity",
    seed: int = 0,
    n_resamples: int = 2000,
    level: float = 0.95,
) -> pd.DataFrame:
    """HONEST over all ranks in one group less that in another, with its interval.

    Parameters
    ----------
    hits : ndarray of bool, shape (R, T, K)
    groups : DataFrame, T rows
    models : sequence of R str
    by : str
        Column of `groups` that holds the groups.
    pair : (str, str)
        The two groups, compared as first less second.
    cluster, seed, n_resamples, level
        As in :func:`honest_intervals`; identities are drawn again within each group.

    Returns
    -------
    DataFrame, R rows
        ``respondent_id``, the two groups, ``gap, low, high``.

    Raises
    ------
    ParameterError
        A group has no templates.
    """
    found = []
    for place, name in enumerate(pair):
        rows = np.flatnonzero(groups[by] == name)
        if not len(rows):
            raise ParameterError(f"No template has {by} '{name}': see templates()['{by}'].")
        part = groups.iloc[rows].assign(subset="one")
        found.append(_draws(hits[:, rows], part, cluster, seed + place, n_resamples))
    (one, mean_one), (other, mean_other) = found
    tail = (1 - level) / 2
    frame = pd.DataFrame(
        {"respondent_id": list(models), pair[0]: mean_one, pair[1]: mean_other}
    ).assign(gap=mean_one - mean_other)
    frame["low"], frame["high"] = np.quantile(one - other, [tail, 1 - tail], axis=0)
    return frame


def gap_counts(gaps: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    """For how many models the first group of a pair gets more, and for how many clearly so.

    Parameters
    ----------
    gaps : DataFrame
        As :func:`group_gaps` gives it, several of them told apart by the columns `by`.
    by : str or list of str

    Returns
    -------
    DataFrame
        Index: `by`. ``higher``; ``clearly higher`` and ``clearly lower``, whose intervals leave out
        zero; ``mean gap``.
    """
    frame = gaps.assign(
        higher=gaps["gap"] > 0, above=gaps["low"] > 0, below=gaps["high"] < 0
    ).groupby(by, sort=False)
    table = frame[["higher", "above", "below"]].sum()
    table = table.rename(columns={"above": "clearly higher", "below": "clearly lower"})
    table = table.assign(**{"mean gap": frame["gap"].mean()})
    return table.sort_index(level=0, sort_remaining=False, kind="stable")


def agreement(
    queries: Sequence[str],
    rows: dict[str, Sequence[Sequence[str]]],
    ranks: Sequence[int],
    encoder: str = "embedded",
    progress: bool = False,
) -> np.ndarray:
    """Cosine similarity of two models' completed templates, at the same rank.

    Parameters
    ----------
    queries : sequence of T str
        Templates; the mask and what follows it are left out.
    rows : dict of R sequences of T sequences of K str
        Completions by model.
    ranks : sequence of int
        Which ranks, from 1.
    encoder : str
        A sentence encoder's folder or hub id, or "embedded" for the project's base model.
    progress : bool
        Show a progress bar.

    Returns
    -------
    ndarray of float32, shape (len(ranks), R, R, T)

    References
    ----------
    Setzu et al. (2024), section 3.1 and Figures 4 and 5; Reimers and Gurevych (2019).
    """
    from sentence_transformers import SentenceTransformer

    from .respondents.sources import base_path
    from .respondents.loading import quietly

    with quietly():
        model = SentenceTransformer(str(base_path() if encoder == "embedded" else encoder))
    stems = [query.split(MASK)[0].strip() for query in queries]
    chosen = list(rows.values())
    texts = [
        f"{stem} {model_rows[t][k - 1].strip()}"
        for k in ranks
        for model_rows in chosen
        for t, stem in enumerate(stems)
    ]
    unique = sorted(set(texts))
    vectors = model.encode(
        unique, batch_size=256, normalize_embeddings=True, show_progress_bar=progress
    )
    place = {text: i for i, text in enumerate(unique)}
    shape = (len(ranks), len(chosen), len(stems), vectors.shape[1])
    cube = vectors[[place[text] for text in texts]].reshape(shape)
    return pair_similarity(cube)


def pair_similarity(vectors: np.ndarray) -> np.ndarray:
    """Cosine similarity of unit vectors (..., R, T, D) between all pairs of R: (..., R, R, T).

    Examples
    --------
    >>> pair_similarity(np.array([[[1.0, 0.0]], [[0.6, 0.8]]]))[0, 1].tolist()
    [0.6]
    """
    return np.einsum("...rtd,...std->...rst", vectors, vectors)


def mean_similarity(pairs: pd.DataFrame, models: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    """Agreement by rank, averaged over pairs of models and over templates.

    Parameters
    ----------
    pairs : DataFrame
        ``first, second, k, templates, similarity`` and groups, as
        :func:`psychometrics.studies.fairbelief.published_similarity` gives it.
    models : DataFrame
        ``respondent_id, family``.
    by : str or list of str
        Columns of `pairs`, or ``family``: that of both models, or "between families".

    Returns
    -------
    DataFrame
        The columns of `by`, ``k, similarity``; templates weigh the same.

    References
    ----------
    Setzu et al. (2024), Figures 4 and 5.
    """
    by = [by] if isinstance(by, str) else list(by)
    family = models.set_index("respondent_id")["family"]
    first, second = (pairs[name].astype(str).map(family) for name in ("first", "second"))
    order = [*dict.fromkeys(models["family"]), "between families"]
    inside = first.where(first == second, "between families")
    frame = pairs.assign(family=pd.Categorical(inside, order, ordered=True))
    frame["total"] = frame["similarity"] * frame["templates"]
    sums = frame.groupby([*by, "k"], observed=True)[["total", "templates"]].sum()
    means = (sums["total"] / sums["templates"]).rename("similarity")
    return means.reset_index()


def _draws(
    hits: np.ndarray, groups: pd.DataFrame, cluster: str, seed: int, n_resamples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means of R models in each draw (B, R) and in all (R,), subsets weighing the same."""
    rng = np.random.default_rng(seed)
    shares = np.asarray(hits).mean(axis=-1)
    draws, means = [], []
    for rows in groups.reset_index(drop=True).groupby("subset", sort=False).indices.values():
        codes = groups[cluster].iloc[rows].factorize()[0]
        belongs = np.eye(codes.max() + 1)[codes]
        sums, sizes = shares[:, rows] @ belongs, belongs.sum(axis=0)
        n = len(sizes)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
        draws.append((weights @ sums.T) / (weights @ sizes)[:, None])
        means.append(shares[:, rows].mean(axis=1))
    return np.mean(draws, axis=0), np.mean(means, axis=0)
