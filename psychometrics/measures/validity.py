"""Evidence that a scale measures only its construct: silhouettes of terms, and item contrasts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..checks import as_numbers, check_columns
from ..exceptions import ParameterError
from .normalisation import template_cubes


def term_silhouettes(shares: pd.DataFrame) -> pd.DataFrame:
    r"""Return the silhouettes of source against inverse terms by respondent and item.

    With the mean distance :math:`a_i` of a term's PSS row to rows of its own kind and :math:`b_i`
    to rows of the other kind,

    .. math:: s = \frac1T \sum_i \frac{b_i - a_i}{\max(a_i, b_i)}

    Parameters
    ----------
    shares : DataFrame
        PSS per prompt, as :func:`psychometrics.measures.normalisation.pss` returns it.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, silhouette``, from -1 (each term is closer to the
        other kind) to 1 (two tight groups). The silhouette uses the correlation distance, and is
        the mean over the item's templates. Rows without variance count as uncorrelated with all
        other rows. The silhouette is missing if a template has only one kind of terms, a single
        term of each kind, or a missing answer.

    Raises
    ------
    ParameterError
        A column is missing or not numeric, or a respondent answered a prompt twice.

    Notes
    -----
    To get an interval for a respondent's mean over items, as if the items were sampled, compute
    ``wide = silhouettes.pivot(index="respondent_id", columns="item_id", values="silhouette")``,
    then :func:`psychometrics.measures.intervals.mean_interval` of ``wide.to_numpy()``. For a scale,
    use ``wide.mean()``, the items' means over respondents.

    References
    ----------
    Reuben et al. (2024), section 3.3 (intra-question consistency); Rousseeuw (1987). Silhouettes
    are computed here for all respondents at once; scikit-learn's are the same for one table at a
    time, and undefined for rows without variance.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> from psychometrics.measures.normalisation import pss
    >>> table = prompts(load_questionnaire("challenges"))
    >>> answers = table.assign(respondent_id="a",
    ...                        entailment=0.5 + 0.1 * table["polarity"] * table["weight"])
    >>> term_silhouettes(pss(answers))["silhouette"].round(2).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    keys = ["questionnaire", "item_id", "template"]
    order = ["respondent_id", "polarity", "term", "level", "intensifier"]
    check_columns(shares, [*keys, *order], ["level", "pss"])
    rows: list[tuple[str, str, str, float]] = []
    # A fixed order, so that the last bits of sums do not depend on the table's order.
    number = shares.groupby(keys, sort=False).ngroup()
    shares = shares.assign(number=number).sort_values(["number", *order], kind="stable")
    names = [shares[name].to_numpy() for name in (*keys, "respondent_id", "polarity")]

    for positions, places, cube in template_cubes(shares, shares["pss"].to_numpy(dtype=float)):
        questionnaire, item, template, respondent, kind = (values[positions] for values in names)
        if len(np.unique(np.ravel_multi_index(places, cube.shape))) < len(positions):
            place = f"{questionnaire[0]}, item {item[0]}, template {template[0]}"
            raise ParameterError(f"{place}: a respondent answered a prompt twice; keep one answer.")

        respondents, terms = (np.unique(place, return_index=True)[1] for place in places[:2])
        values = silhouettes(cube, kind[terms])
        rows += zip(respondent[respondents], questionnaire, item, values, strict=False)

    columns = ["respondent_id", "questionnaire", "item_id", "silhouette"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.groupby(columns[:3], sort=False)["silhouette"].mean().reset_index()


def silhouettes(cube: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the mean silhouettes of R tables of T rows that share one set of labels.

    Parameters
    ----------
    cube : ndarray, shape (R, T, L)
        PSS of each term (row) on each intensifier (column), for R respondents or choices of terms.
    labels : ndarray, shape (T,)
        The kind of each term; there are two kinds.

    Returns
    -------
    ndarray, shape (R,)
        Mean silhouettes, as in :func:`term_silhouettes` for one template.

    Examples
    --------
    >>> rows = np.array([[0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1], [0.7, 0.2, 0.1]])
    >>> silhouettes(rows[None], np.array([1, 1, -1, -1])).round(2).tolist()
    [0.99]
    """
    cube = as_numbers("cube", cube, axes=3)
    labels = np.asarray(labels)
    if labels.shape != cube.shape[1:2]:
        raise ParameterError(f"labels: the cube has {cube.shape[1]} rows; give one label for each.")
    is_alike = labels[:, None] == labels[None, :]
    if not 1 < len(np.unique(labels)) < len(labels):
        return np.full(len(cube), np.nan)
    centred = cube - cube.mean(axis=2, keepdims=True)
    length = np.linalg.norm(centred, axis=2, keepdims=True)
    units = np.divide(centred, length, out=np.zeros_like(centred), where=length > 1e-12)
    distance = np.clip(1 - units @ units.transpose(0, 2, 1), 0, 2)
    diagonal = np.arange(len(labels))
    distance[:, diagonal, diagonal] = 0
    alone = is_alike.sum(axis=1) == 1
    inside = (distance * is_alike).sum(axis=2) / np.maximum(is_alike.sum(axis=1) - 1, 1)
    outside = (distance * ~is_alike).sum(axis=2) / (~is_alike).sum(axis=1)
    larger = np.maximum(inside, outside)
    width = np.divide(outside - inside, larger, out=np.zeros_like(larger), where=larger > 0)
    means = np.where(alone, 0.0, width).mean(axis=1)

    return np.where(np.isnan(cube).any(axis=(1, 2)), np.nan, means)


def item_contrasts(prompts: pd.DataFrame, vectors: np.ndarray) -> pd.DataFrame:
    r"""Return the direction in vector space that each item's score measures to first order.

    .. math:: \phi = \frac{3}{|S^+| L^2} \sum_{s_i \in S^+} \sum_j w_j \ddot h_{ij}

    with the vectors :math:`\ddot h_{ij}` of term and intensifier, minus their means over terms and
    over intensifiers; *w_j* is the weight of intensifier *j*, and :math:`S^+` are the source terms.
    See :func:`psychometrics.nulls.respondents.kernel`.

    Parameters
    ----------
    prompts : DataFrame
        Prompts, as :func:`psychometrics.prompts` returns them, of one or more questionnaires.
    vectors : ndarray, shape (prompts, width)
        The vectors that the base gives these prompts.

    Returns
    -------
    DataFrame, shape (I, width)
        Directions, indexed by ``questionnaire, item_id``: means over the item's templates, before
        the key is applied.

    Raises
    ------
    ParameterError
        The table lacks a column, or the numbers of vectors and prompts differ.

    References
    ----------
    Reuben et al. (2024), section 3.2, for the score.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> table = prompts(load_questionnaire("challenges"))
    >>> item_contrasts(table, np.random.default_rng(0).normal(size=(len(table), 5))).shape
    (4, 5)
    """
    words = ["questionnaire", "item_id", "template", "term", "intensifier"]
    check_columns(prompts, words, ["weight", "polarity"])
    if np.ndim(vectors) != 2 or len(vectors) != len(prompts):
        raise ParameterError(f"vectors: {len(prompts)} are needed, got shape {np.shape(vectors)}.")
    weight = prompts["weight"].to_numpy()
    polarity = prompts["polarity"].to_numpy()
    answers = prompts.assign(respondent_id="base").reset_index(drop=True)
    contrasts: dict[tuple[str, str], list[np.ndarray]] = {}

    for rows, (_, terms, intensifiers), cube in template_cubes(answers, vectors):
        h = cube[0]
        h = h - h.mean(axis=0) - h.mean(axis=1, keepdims=True) + h.mean(axis=(0, 1))

        weights = np.zeros(h.shape[1])
        source = np.zeros(h.shape[0], dtype=bool)
        weights[intensifiers] = weight[rows]
        source[terms] = polarity[rows] == 1

        item = tuple(answers.loc[rows[0], ["questionnaire", "item_id"]])
        contrast = 3 / len(weights) ** 2 * weights @ h[source].mean(axis=0)
        contrasts.setdefault(item, []).append(contrast)

    names = pd.MultiIndex.from_tuples(contrasts, names=["questionnaire", "item_id"])
    return pd.DataFrame([np.mean(templates, axis=0) for templates in contrasts.values()], names)
