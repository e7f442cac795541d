"""The two-way normalisation, which turns answers to prompts into probabilities of intensifiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ..checks import as_numbers, check_choice, check_columns, check_three
from ..exceptions import ParameterError

_TEMPLATE = ("questionnaire", "item_id", "template")


def two_way(p: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    r"""Normalise scores over terms, then over intensifiers; the result is the PSS.

    With scores :math:`P(s_i, l_j)` of terms :math:`s_i` and intensifiers :math:`l_j`,

    .. math::

        q(s_i | l_j) = \frac{P(s_i, l_j)^{1/\tau}}{\sum_k P(s_k, l_j)^{1/\tau}}, \qquad
        \mathrm{PSS}(l_j | s_i) = \frac{q(s_i | l_j)}{\sum_k q(s_i | l_k)}.

    The first step is a softmax of the log scores over the terms, so that a factor common to an
    intensifier's scores cancels exactly.

    Parameters
    ----------
    p : ndarray, shape (..., T, L)
        Scores from 0 to 1 of T terms by L intensifiers.
    temperature : float
        :math:`\tau` > 0; Reuben et al. (2024) use 1. Values above 1 flatten the probabilities, and
        values below 1 sharpen them.

    Returns
    -------
    ndarray, shape (..., T, L)
        Probabilities; each term's row sums to one over the intensifiers.

    Raises
    ------
    ParameterError
        The temperature is not positive, or the scores are not numbers from 0 to 1 with at least two
        dimensions.

    References
    ----------
    Reuben et al. (2024), section 3.2.

    Examples
    --------
    >>> two_way(np.array([[0.2, 0.4], [0.3, 0.1]])).round(3)
    array([[0.333, 0.667],
           [0.75 , 0.25 ]])
    """
    p = as_numbers("scores", p)
    if p.ndim < 2 or not p.size or not ((p >= 0) & (p <= 1)).all():
        raise ParameterError("Scores must be from 0 to 1, of shape (..., terms, intensifiers).")
    # smaller temperatures overflow
    if not 1e-300 < as_numbers("temperature", temperature, axes=0) < np.inf:
        raise ParameterError(f"temperature must be a number above 1e-300, got {temperature!r}.")

    logs = np.log(np.maximum(p, 1e-12)) / temperature
    shifted = np.exp(logs - logs.max(axis=-2, keepdims=True))
    over_terms = shifted / shifted.sum(axis=-2, keepdims=True)
    over_terms = np.maximum(over_terms, np.finfo(np.float64).tiny)
    return over_terms / over_terms.sum(axis=-1, keepdims=True)


def pss(
    answers: pd.DataFrame,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
) -> pd.DataFrame:
    """Add raw scores and PSS to answers to prompts, by respondent and template.

    Parameters
    ----------
    answers : DataFrame
        Answers to prompts, as :func:`psychometrics.asking.ask` returns them.
    score : {"entailment", "contrast"}
        The score of a prompt: P(entailment) among the three classes, or P(entailment) /
        (P(entailment) + P(contradiction)), which leaves neutral out. Answers in modes other than
        NLI have a single probability, which is their score.
    temperature : float
        As in :func:`two_way`.

    Returns
    -------
    DataFrame
        The rows of `answers` in their order, with the columns ``raw`` and ``pss``.

    Raises
    ------
    ParameterError
        The answers are empty or lack a column, the score is unknown, a respondent did not answer
        every prompt of a template exactly once, or a contrast is requested for a respondent with
        only two outputs.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> even = prompts(load_questionnaire("challenges")).assign(respondent_id="r", probability=0.5)
    >>> pss(even)["pss"].unique()
    array([0.125])
    """
    needed = ["respondent_id", *_TEMPLATE, "term", "intensifier", "polarity", "weight"]
    _check_answers(answers, needed, ["polarity", "weight"])
    frame = answers.assign(raw=raw_scores(answers, score)).reset_index(drop=True)
    shares = np.full(len(frame), np.nan)
    raw = frame["raw"].to_numpy()
    for rows, places, cube in template_cubes(frame, raw):
        if len(rows) != cube.size or np.isnan(cube).any():
            place = "{}, item {}, template {}".format(*frame[list(_TEMPLATE)].iloc[rows[0]])
            raise ParameterError(f"{place}: a prompt has no answer or several; give it one.")

        shares[rows] = two_way(cube, temperature)[places]

    frame["pss"] = shares
    return frame.set_index(answers.index)


def template_cubes(
    answers: pd.DataFrame, values: np.ndarray
) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray]]:
    """Arrange answers to prompts in cubes, one per template in the order of the answers.

    Parameters
    ----------
    answers : DataFrame
        Answers to prompts, as :func:`psychometrics.asking.ask` returns them.
    values : ndarray, shape (n,) or (n, K)
        Values of the answers, which fill the cubes.

    Yields
    ------
    rows : ndarray
        Positions of the template's answers.
    places : tuple of ndarray
        Respondents, terms and intensifiers of these answers, as positions in the cube.
    cube : ndarray, shape (R, T, L) or (R, T, L, K)
        The values. A value is missing if there is no answer; of several answers, the last one
        counts.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> table = prompts(load_questionnaire("challenges")).assign(respondent_id="r")
    >>> [cube.shape for _, _, cube in template_cubes(table, np.zeros(len(table)))]
    [(1, 6, 8), (1, 6, 8), (1, 6, 8), (1, 6, 8)]
    """
    # Texts are turned into numbers once: grouping by text for each template takes ten times as
    # long.
    template = _number_rows(answers, _TEMPLATE)
    codes = [
        _number_rows(answers, columns)
        for columns in (["respondent_id"], ["polarity", "term"], ["intensifier"])
    ]
    order = np.argsort(template, kind="stable")
    order = order[np.searchsorted(template[order], 0) :]  # drop rows without a template
    for rows in np.split(order, np.flatnonzero(np.diff(template[order])) + 1):
        if not len(rows):
            continue
        places = tuple(pd.factorize(code[rows])[0] for code in codes)
        shape = tuple(place.max() + 1 for place in places)
        cube = np.full(shape + values.shape[1:], np.nan)
        cube[places] = values[rows]
        yield rows, places, cube


def _number_rows(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Number each row's combination of values in order of appearance; -1 marks a missing value."""
    number = np.zeros(len(table), dtype=np.int64)
    for column in columns:
        codes, values = table[column].factorize()
        number = np.where((codes < 0) | (number < 0), -1, number * (len(values) + 1) + codes)
    return np.where(number < 0, -1, pd.factorize(number)[0])


def raw_scores(answers: pd.DataFrame, score: str) -> np.ndarray:
    """Return the score of each answer to a prompt before normalisation, from 0 to 1."""
    check_choice(("entailment", "contrast"), score=score)
    names = ["entailment"] if score == "entailment" else ["entailment", "contradiction"]
    names = ["probability"] if "probability" in answers else names
    check_columns(answers, (), names)
    columns = {"probability", "entailment", "neutral", "contradiction"} & set(answers)
    shares = answers[sorted(columns)].apply(pd.to_numeric, errors="coerce")

    if ((shares < 0) | (shares > 1)).any(axis=None) or (shares.sum(axis=1) > 1.02).any():
        raise ParameterError(f"{', '.join(shares)} must be probabilities that sum to 1 or less.")
    probability = answers[names[0]].to_numpy(dtype=np.float64)
    if len(names) == 1:
        return probability

    check_three(answers)
    total = probability + answers["contradiction"].to_numpy(dtype=np.float64)
    return np.divide(probability, total, out=np.full_like(total, 0.5), where=total != 0)


def _check_answers(
    table: pd.DataFrame, columns: Iterable[str], numbers: Iterable[str] = ()
) -> None:
    """Check the columns of a table of answers, and refuse an empty table."""
    check_columns(table, columns, numbers)
    if table.empty:
        raise ParameterError("There are no answers to score: ask a questionnaire first.")
