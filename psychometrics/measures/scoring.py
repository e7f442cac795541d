"""Compute scores of items and scales from answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ..checks import as_numbers, check_columns, check_kinds, check_names
from ..exceptions import ParameterError, QuestionnaireError
from ..questionnaires import (
    AnyQuestionnaires,
    Questionnaire,
    Scale,
    load_questionnaire,
    load_questionnaires,
)
from ..questionnaires.answers import check_loaded
from .normalisation import _check_answers, pss

# Columns that identify the askings of a questionnaire in a table of answers to items.
_KEYS = ("respondent_id", "questionnaire", "mode", "run")


def item_scores(
    answers: pd.DataFrame,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
    by: Sequence[str] = (),
) -> pd.DataFrame:
    r"""Return the score of each item and respondent, before the item's key is applied.

    For answers to prompts the score is

    .. math::

        \mathrm{score} = \frac{\sum_{s_i \in S^+} \sum_j \mathrm{PSS}(l_j | s_i)\, w_j}{|S^+|\,|L|}

    averaged over the item's templates. With eight intensifiers and weights from −4 to +4 it lies
    between −0.5 and +0.5; uniform shares over symmetric weights give 0. For answers to items the
    score is the value of the answer, or missing if there is no answer.

    Parameters
    ----------
    answers : DataFrame
        Answers to prompts or to items, as :func:`psychometrics.asking.ask` returns them.
    score, temperature
        Settings for answers to prompts, as in :func:`pss`.
    by : sequence of str
        Further columns that distinguish administrations of items, such as an order or a role.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, score``, R · I rows in the answers' order, in units
        of the weights divided by L; for answers to items also ``mode, run`` and the columns of
        `by`, in units of the options' values. A single answer has no interval; ``psychometrics
        scores --items`` adds an interval over the source terms of an item's prompts.

    Raises
    ------
    ParameterError
        A parameter's value is unknown or does not apply, or answers are missing or duplicated.

    References
    ----------
    Reuben et al. (2024), section 3.2.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> even = prompts(load_questionnaire("challenges")).assign(respondent_id="r", probability=0.5)
    >>> item_scores(even)["score"].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    check_names(by=by)
    if _to_items(answers):
        _refuse("items", score=(score, "entailment"), temperature=(temperature, 1.0))
        return _answer_values(answers, [*_KEYS, *by])

    _refuse("prompts", by=(tuple(by), ()))
    shares = pss(answers, score, temperature).query("polarity == 1")
    keys = ["respondent_id", "questionnaire", "item_id"]
    shares = shares.assign(score=shares["pss"] * shares["weight"])
    # Each template has |S|·|L| rows, so the mean over them is the formula's sum and denominator.
    per_template = shares.groupby([*keys, "template"], sort=False)["score"].mean()

    return per_template.groupby(level=keys, sort=False).mean().reset_index()


def scale_scores(
    answers: pd.DataFrame | Iterator[pd.DataFrame],
    questionnaires: AnyQuestionnaires | None = None,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
    by: Sequence[str] = (),
    least_answered: float = 1.0,
) -> pd.DataFrame:
    r"""Score each scale and subscale by averaging or summing its keyed item scores.

    For answers to prompts, whose midpoint is 0, a reversed item's score changes sign; for answers
    to items it becomes :math:`v'_i = \min + \max - v_i` over the item's options.

    Parameters
    ----------
    answers : DataFrame or iterator of them
        Answers to prompts or to items, as :func:`psychometrics.asking.ask` returns them. If there
        are several tables, each must contain all answers of its respondents; only one table is in
        memory at a time.
    questionnaires : Questionnaire, name or path, or several of them, optional
        The questionnaires that were asked; by default those of the project's questionnaires that
        the answers name.
    score, temperature
        Settings for answers to prompts, as in :func:`pss`.
    by : sequence of str
        Further columns that distinguish administrations of items, such as an order or a role.
    least_answered : float
        For answers to items: the share of a scale's items that must be answered, above 0. Below 1,
        the mean of the answered items replaces missing answers (a sum is scaled up); at 1, a scale
        with a missing answer has no score.

    Returns
    -------
    DataFrame
        For answers to prompts: ``respondent_id, questionnaire, scale, score``, where the score is a
        mean in the units of item scores. For answers to items: ``respondent_id, questionnaire,
        mode, run``, the columns of `by`, and ``scale, title, score, answered, items``; a score is
        missing if too few items were answered.

    Raises
    ------
    ParameterError
        A questionnaire is unknown, a prompt of a scale was not asked, an item is unknown or was
        answered twice in a run, an answer is not one of the options, or a parameter does not apply.

    References
    ----------
    Reuben et al. (2024), section 3.2; Huang et al. (2024), Table 5.

    Examples
    --------
    >>> mini = load_questionnaire("ipip20")
    >>> frame = pd.DataFrame({"respondent_id": "a", "questionnaire": "ipip20", "mode": "human",
    ...     "run": 1, "item_id": [item.id for item in mini.items], "value": 5.0, "status": "ok"})
    >>> float(scale_scores(frame).set_index("scale").loc["extraversion", "score"])
    3.0
    """
    if isinstance(answers, Iterator):
        settings = questionnaires, score, temperature, by, least_answered
        tables = [scale_scores(table, *settings) for table in answers]
        return pd.concat(tables, ignore_index=True)

    likert = _to_items(answers)
    if not likert:
        _refuse("prompts", least_answered=(least_answered, 1.0))
    elif not 0 < as_numbers("least_answered", least_answered, axes=0) <= 1:
        raise ParameterError(f"least_answered must be above 0 and at most 1, got {least_answered}.")

    items = item_scores(answers, score, temperature, by)
    loaded = _load_answered(questionnaires, items["questionnaire"].unique())
    tables = []
    for name, of_questionnaire in items.groupby("questionnaire", sort=False):
        questionnaire = loaded[name]
        if not questionnaire.scales:
            raise ParameterError(f"{name} has categories, not scales; use category_scores.")

        matrix = _item_matrix(of_questionnaire, questionnaire)
        for scale in questionnaire.scales:
            keyed = _key_items(matrix, questionnaire, scale)
            rows = keyed.index.to_frame(index=False)
            rows["scale"] = scale.id
            mean = keyed.mean(axis=1).to_numpy()

            if likert:
                answered = keyed.notna().sum(axis=1).to_numpy()
                size = len(scale.items)
                enough = answered >= max(1, np.ceil(least_answered * size - 1e-9))
                score_of_scale = mean * size if scale.mode == "sum" else mean
                rows["title"] = scale.title
                rows["score"] = np.where(enough, score_of_scale, np.nan)
                rows["answered"] = answered
                rows["items"] = size
            else:
                rows = rows.assign(questionnaire=name, score=mean)
                rows = rows[["respondent_id", "questionnaire", "scale", "score"]]

            tables.append(rows)

    return pd.concat(tables, ignore_index=True)


def keyed_items(
    items: pd.DataFrame | Iterator[pd.DataFrame],
    questionnaire: Questionnaire,
    scale: Scale | None = None,
) -> pd.DataFrame:
    """Return the keyed item scores of one questionnaire as a matrix.

    Parameters
    ----------
    items : DataFrame or iterator of them
        Item scores, as :func:`item_scores` returns them, in one table or several, as in
        :func:`scale_scores`.
    questionnaire : Questionnaire
    scale : Scale, optional
        A scale of the questionnaire, to use only its items and keys.

    Returns
    -------
    DataFrame, shape (R, I)
        Respondents (or runs, for answers to items) by items in the questionnaire's order; high
        values mean a high level of the construct.

    Raises
    ------
    ParameterError
        A prompt of an item was not asked, an item is unknown or was answered twice, an answer is
        not one of the options, or a value is not a finite number.
    """
    if isinstance(items, Iterator):
        return pd.concat([keyed_items(table, questionnaire, scale) for table in items])
    check_columns(items, ["questionnaire"])
    check_loaded([questionnaire])
    check_kinds({"scale": scale}, {"scale": Scale | None})
    scores = _answers_to(questionnaire, items)
    check_columns(scores, ["respondent_id", "item_id"], ["score"])
    scores = scores.astype({"score": float})
    check_columns(scores, (), once=[column for column in scores if column != "score"])
    return _key_items(_item_matrix(scores, questionnaire), questionnaire, scale)


def _answers_to(questionnaire: Questionnaire, answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to one questionnaire, or their scores; refuse a table without any."""
    rows = answers[answers["questionnaire"] == questionnaire.id]
    if rows.empty:
        raise ParameterError(f"There are no answers to {questionnaire.id}; leave it out.")
    return rows


def _to_items(answers: pd.DataFrame) -> bool:
    """Return whether a table has answers to items, not to prompts."""
    _check_answers(answers, ())
    return "term" not in answers and "value" in answers


def _refuse(kind: str, **settings: tuple[object, object]) -> None:
    """Refuse parameters that have no effect on this kind of answers."""
    for name, (value, default) in settings.items():
        if value != default:
            raise ParameterError(f"{name} does not apply to answers to {kind}; leave it out.")


def _answer_values(answers: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the item scores of answers to items: the value of each valid answer."""
    check_columns(answers, (*keys, "item_id", "status"), once=[*keys, "item_id"], gaps=["value"])
    value = answers[["value"]].where(answers["status"] == "ok").infer_objects()
    check_columns(value, (), ["value"])
    return answers[[*keys, "item_id"]].assign(score=value["value"].astype("float64"))


def _item_matrix(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the unkeyed item scores of one questionnaire, runs by items."""
    ids = [item.id for item in questionnaire.items]
    if "run" not in items:  # answers to prompts
        table = items.pivot(index="respondent_id", columns="item_id", values="score")
        missing = [item for item in ids if item not in table.columns]
        if missing:
            why = "has no answer: ask all items"
            if not questionnaire.item(missing[0]).templates:
                why = "has no prompts: write its terms and template, or score items, not scales"

            raise ParameterError(f"{questionnaire.id}: item {missing[0]} {why}.")

        return table.loc[items["respondent_id"].unique(), ids]

    strange = set(items["item_id"].unique()) - set(ids)
    if strange:
        item_id = min(map(str, strange))
        raise ParameterError(f"{questionnaire.id} has no item '{item_id}'; correct the item_id.")

    keys = [column for column in items if column not in ("item_id", "score")]
    check_columns(items, keys)
    table = items.pivot(index=keys, columns="item_id", values="score").reindex(columns=ids)
    ends = np.array([questionnaire.ends(item) for item in questionnaire.items])
    outside = ((table < ends[:, 0]) | (table > ends[:, 1])).to_numpy().any(axis=0)
    if outside.any():  # a mean of options is an answer too
        place = outside.argmax()
        low, high = ends[place]
        raise ParameterError(f"{ids[place]}: an answer is not in {low:g} to {high:g}; correct it.")

    return table


def _key_items(
    matrix: pd.DataFrame, questionnaire: Questionnaire, scale: Scale | None
) -> pd.DataFrame:
    """Select a scale's items from a matrix, and reverse those with key -1."""
    keys = pd.Series(questionnaire.keys(scale))
    table = matrix[list(keys.index)]
    if matrix.index.nlevels == 1:  # answers to prompts
        return table * keys
    ends = np.array([sum(questionnaire.ends(name)) for name in table], dtype=float)
    return table * keys.to_numpy() + np.where(keys == -1, ends, 0.0)


def _load_answered(
    questionnaires: AnyQuestionnaires | None, names: Iterable[str]
) -> dict[str, Questionnaire]:
    """Return the questionnaires by name; by default, load those of the project with these names."""
    if questionnaires is None:
        by_name = {}
        for name in names:
            with contextlib.suppress(QuestionnaireError):
                by_name[name] = load_questionnaire(name, texts=False)
    else:
        loaded = load_questionnaires(questionnaires, texts=False)
        by_name = {questionnaire.id: questionnaire for questionnaire in loaded}

    missing = [str(name) for name in names if name not in by_name]
    if missing:
        raise ParameterError(f"'{missing[0]}' is missing: add it to `questionnaires`.")

    return by_name
