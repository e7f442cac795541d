"""From answers to scores: two-way normalisation, item scores, scale scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import pandas as pd

from .exceptions import ParameterError
from .questionnaires import Questionnaire, load_questionnaire

SCORES = ("entailment", "contrast")
TERMS = ("source", "both")
_SMALLEST = 1e-12


def two_way(p: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    r"""Normalise scores over terms, then over intensifiers: the PSS.

    With scores :math:`P(s_i, l_j)` of terms :math:`s_i` and intensifiers :math:`l_j`,

    .. math::

        q(s_i | l_j) = \frac{P(s_i, l_j)^{1/\tau}}{\sum_k P(s_k, l_j)^{1/\tau}}, \qquad
        \mathrm{PSS}(l_j | s_i) = \frac{q(s_i | l_j)}{\sum_k q(s_i | l_k)}.

    The first step is a softmax of the log scores over the terms, so that a factor common to an
    intensifier cancels exactly.

    Parameters
    ----------
    p : ndarray, shape (..., T, L)
        Scores from 0 to 1 of T terms by L intensifiers.
    temperature : float
        :math:`\tau` > 0; 1 is the paper's. Above 1 it flattens, below it sharpens.

    Returns
    -------
    ndarray, shape (..., T, L)
        Probabilities; each term's row sums to one over the intensifiers.

    Raises
    ------
    ParameterError
        The temperature is not positive, or the scores are not from 0 to 1 in at least two
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
    logs = _log_scores(p) / _positive(temperature)
    shifted = np.exp(logs - logs.max(axis=-2, keepdims=True))
    over_terms = shifted / shifted.sum(axis=-2, keepdims=True)
    over_terms = np.maximum(over_terms, np.finfo(np.float64).tiny)
    return over_terms / over_terms.sum(axis=-1, keepdims=True)


def raw_scores(responses: pd.DataFrame, score: str = "entailment") -> np.ndarray:
    """The score of each answer before normalisation.

    Parameters
    ----------
    responses : DataFrame
        As :func:`psychometrics.ask` gives them.
    score : {"entailment", "contrast"}
        P(entailment) among three, or P(entailment) / (P(entailment) + P(contradiction)), which
        leaves neutral out. Responses in other modes than NLI have one probability, which is
        their score.

    Returns
    -------
    ndarray of float64, shape (rows,)
        From 0 to 1.

    Raises
    ------
    ParameterError
        There is no such score.
    """
    if score not in SCORES:
        raise ParameterError(f"score must be one of {', '.join(SCORES)}, got '{score}'.")
    if "probability" in responses:
        return responses["probability"].to_numpy(dtype=np.float64)
    entailment = responses["entailment"].to_numpy(dtype=np.float64)
    if score == "entailment":
        return entailment
    total = entailment + responses["contradiction"].to_numpy(dtype=np.float64)
    return np.divide(entailment, total, out=np.full_like(total, 0.5), where=total > 0)


def pss(
    responses: pd.DataFrame, score: str = "entailment", temperature: float = 1.0
) -> pd.DataFrame:
    """The responses with their raw score and PSS, normalised within respondent and template.

    Parameters
    ----------
    responses : DataFrame
        As :func:`psychometrics.ask` gives them.
    score, temperature
        As in :func:`raw_scores` and :func:`two_way`.

    Returns
    -------
    DataFrame
        The rows of `responses` in their order, with the columns ``raw`` and ``pss``.

    Raises
    ------
    ParameterError
        The responses are empty, or a respondent has not answered every prompt of a template once.

    Examples
    --------
    >>> from psychometrics import ask
    >>> shares = pss(ask("gad7", "minilm-mnli-l6-s2", progress=False))  # doctest: +SKIP
    """
    if responses.empty:
        raise ParameterError("There are no responses to score: ask a questionnaire first.")
    frame = responses.assign(raw=raw_scores(responses, score)).reset_index(drop=True)
    shares = np.full(len(frame), np.nan)
    keys = ["questionnaire", "item_id", "template"]
    for (questionnaire, item, number), part in frame.groupby(keys, sort=False):
        terms = part.groupby(["polarity", "term"], sort=False).ngroup().to_numpy()
        words = part["intensifier"].factorize()[0]
        who = part["respondent_id"].factorize()[0]
        shape = (who.max() + 1, terms.max() + 1, words.max() + 1)
        cube = np.full(shape, np.nan)
        cube[who, terms, words] = part["raw"]
        if len(part) != cube.size or np.isnan(cube).any():
            raise ParameterError(
                f"{questionnaire}, item {item}, template {number}: every respondent must have "
                f"answered each of its {shape[1] * shape[2]} prompts once; ask it again."
            )
        shares[part.index] = two_way(cube, temperature)[who, terms, words]
    frame["pss"] = shares
    return frame.set_index(responses.index)


def item_scores(
    responses: pd.DataFrame,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
    terms: Literal["source", "both"] = "source",
) -> pd.DataFrame:
    r"""Score of each item and respondent.

    .. math::

        \mathrm{score} = \frac{\sum_{s_i \in S^+} \sum_j \mathrm{PSS}(l_j | s_i)\, w_j}{|S^+|\,|L|}

    averaged over the item's templates. With eight intensifiers and weights from −4 to +4 it lies
    between −0.5 and +0.5; an even spread over symmetric weights gives 0.

    Parameters
    ----------
    responses : DataFrame
        As :func:`psychometrics.ask` gives them.
    score, temperature
        As in :func:`raw_scores` and :func:`two_way`.
    terms : {"source", "both"}
        Source terms only, as in the paper, or inverse terms too, with their weights negated.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, score``, R · I rows in the responses' order; in
        units of the weights divided by L.

    Raises
    ------
    ParameterError
        A parameter's value is unknown, or responses are missing.

    References
    ----------
    Reuben et al. (2024), section 3.2.

    Examples
    --------
    >>> from psychometrics import ask
    >>> item_scores(ask("gad7", "minilm-mnli-l6-s2", progress=False))  # doctest: +SKIP
    """
    if terms not in TERMS:
        raise ParameterError(f"terms must be one of {', '.join(TERMS)}, got '{terms}'.")
    shares = pss(responses, score, temperature)
    if terms == "source":
        shares = shares[shares["polarity"] == 1]
    weighted = shares.assign(score=shares["pss"] * shares["weight"] * shares["polarity"])
    keys = ["respondent_id", "questionnaire", "item_id"]
    # Each template has |S|·|L| rows, so the mean over them is the formula's sum and denominator.
    per_template = weighted.groupby([*keys, "template"], sort=False)["score"].mean()
    return per_template.groupby(level=keys, sort=False).mean().reset_index()


def scale_scores(
    responses: pd.DataFrame,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
    terms: Literal["source", "both"] = "source",
    questionnaires: Questionnaire | Iterable[Questionnaire] | None = None,
) -> pd.DataFrame:
    """Score of each scale and subscale: the mean of its items' scores times their keys.

    Parameters
    ----------
    responses : DataFrame
        As :func:`psychometrics.ask` gives them.
    score, temperature, terms
        As in :func:`item_scores`.
    questionnaires : Questionnaire or iterable of Questionnaire, optional
        The instruments answered; by default those that come with the project under the names in
        the responses.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, scale, score``, in the units of item scores.

    Raises
    ------
    ParameterError
        A scale has an item that was not asked, or an instrument is not given.

    Examples
    --------
    >>> from psychometrics import ask
    >>> scale_scores(ask("soc13", "minilm-mnli-l6-s2", progress=False))  # doctest: +SKIP
    """
    items = item_scores(responses, score, temperature, terms)
    instruments = _instruments(questionnaires, items["questionnaire"].unique())
    parts = []
    for name, part in items.groupby("questionnaire", sort=False):
        instrument = instruments[name]
        table = keyed_items(part, instrument)
        for scale in instrument.scales:
            ids = [item.id for item in instrument.members(scale)]
            parts.append(table[ids].mean(axis=1).rename("score").reset_index().assign(
                questionnaire=name, scale=scale.id
            ))  # fmt: skip
    columns = ["respondent_id", "questionnaire", "scale", "score"]
    return pd.concat(parts, ignore_index=True)[columns]


def keyed_items(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Item scores of one instrument as a matrix, each times its key.

    Parameters
    ----------
    items : DataFrame
        As :func:`item_scores` gives them.
    questionnaire : Questionnaire

    Returns
    -------
    DataFrame, shape (R, I)
        Respondents in the order of `items`, items in the instrument's; high values are high on
        the construct.

    Raises
    ------
    ParameterError
        An item of the instrument was not asked.
    """
    own = items[items["questionnaire"] == questionnaire.id]
    table = own.pivot(index="respondent_id", columns="item_id", values="score")
    keys = {item.id: item.keying for item in questionnaire.items}
    if missing := [item for item in keys if item not in table.columns]:
        raise ParameterError(
            f"{questionnaire.id}: the responses lack item {missing[0]}; ask the whole instrument."
        )
    return table.loc[own["respondent_id"].unique(), list(keys)] * pd.Series(keys)


def _instruments(questionnaires, names: Iterable[str]) -> dict[str, Questionnaire]:
    if questionnaires is None:
        return {name: load_questionnaire(name) for name in names}
    given = [questionnaires] if isinstance(questionnaires, Questionnaire) else questionnaires
    known = {questionnaire.id: questionnaire for questionnaire in given}
    if missing := [name for name in names if name not in known]:
        raise ParameterError(
            f"The responses are to {', '.join(missing)} too: add it to `questionnaires`."
        )
    return known


def _log_scores(p: np.ndarray) -> np.ndarray:
    p = np.asarray(p, dtype=np.float64)
    if p.ndim < 2 or not p.size or not ((p >= 0) & (p <= 1)).all():
        raise ParameterError(
            f"Scores must be probabilities from 0 to 1 of shape (..., terms, intensifiers), "
            f"got shape {p.shape}."
        )
    return np.log(np.maximum(p, _SMALLEST))


def _positive(temperature: float) -> float:
    if not (np.isscalar(temperature) and np.isfinite(temperature) and temperature > 0):
        raise ParameterError(f"temperature must be a positive number, got {temperature!r}.")
    return float(temperature)
