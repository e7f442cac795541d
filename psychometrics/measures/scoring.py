"""From answers to scores of items and scales."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ..checks import check_columns
from ..exceptions import ParameterError, QuestionnaireError
from ..questionnaires import Questionnaire, Scale, load_questionnaire, load_questionnaires
from ..questionnaires.answers import check_loaded
from .normalisation import _check_answers, pss

# What tells the askings of a questionnaire apart, in a table of answers to items.
_KEYS = ("respondent_id", "questionnaire", "mode", "run")


def item_scores(
    answers: pd.DataFrame,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
    by: Sequence[str] = (),
) -> pd.DataFrame:
    r"""Return the score of each item and respondent, before its key is applied.

    Of answers to prompts

    .. math::

        \mathrm{score} = \frac{\sum_{s_i \in S^+} \sum_j \mathrm{PSS}(l_j | s_i)\, w_j}{|S^+|\,|L|}

    averaged over the item's templates. With eight intensifiers and weights from −4 to +4 it lies
    between −0.5 and +0.5; an even spread over symmetric weights gives 0. Of answers to items it is
    the value of the answer, missing where there is none.

    Parameters
    ----------
    answers : DataFrame
        As :func:`psychometrics.asking.ask` gives them, to prompts or to items.
    score, temperature
        Of answers to prompts: as in :func:`pss`.
    by : sequence of str
        Of answers to items: further columns that tell askings apart, such as an order or a role.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, item_id, score``, R · I rows in the answers' order, in
        units of the weights divided by L; of answers to items also ``mode, run`` and those of
        `by`, in units of the options' values. No interval: a single answer has none, and
        ``psychometrics scores --items`` gives one over the source terms of an item's prompts.

    Raises
    ------
    ParameterError
        A parameter's value is unknown or does not apply, or answers are missing or doubled.

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
    if _to_items(answers):
        _refuse("items", score=(score, "entailment"), temperature=(temperature, 1.0))
        return _values(answers, [*_KEYS, *by])

    _refuse("prompts", by=(tuple(by), ()))
    shares = pss(answers, score, temperature).query("polarity == 1")
    keys = ["respondent_id", "questionnaire", "item_id"]
    shares = shares.assign(score=shares["pss"] * shares["weight"])
    # Each template has |S|·|L| rows, so the mean over them is the formula's sum and denominator.
    per_template = shares.groupby([*keys, "template"], sort=False)["score"].mean()

    return per_template.groupby(level=keys, sort=False).mean().reset_index()


def scale_scores(
    answers: pd.DataFrame | Iterator[pd.DataFrame],
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire] | None = None,
    score: Literal["entailment", "contrast"] = "entailment",
    temperature: float = 1.0,
    by: Sequence[str] = (),
    least_answered: float = 1.0,
) -> pd.DataFrame:
    r"""Score of each scale and subscale: its items' scores, each by its key, averaged or added up.

    A reversed item's score changes its sign in answers to prompts, which have 0 in the middle; in
    answers to items :math:`v'_i = \min + \max - v_i` of its options.

    Parameters
    ----------
    answers : DataFrame or iterator of them
        As :func:`psychometrics.asking.ask` gives them, to prompts or to items. Of several tables,
        each with all answers of its respondents, only one is in memory at a time.
    questionnaires : Questionnaire, name or path, or several of them, optional
        What was answered; by default those that come with the project under the names in the
        answers.
    score, temperature
        Of answers to prompts: as in :func:`pss`.
    by : sequence of str
        Of answers to items: further columns that tell askings apart, such as an order or a role.
    least_answered : float
        Of answers to items: the share of a scale's items that must be answered, above 0. Below 1,
        what is missing is taken to be the mean of what is there (a sum is scaled up); at 1 a scale
        with an item missing has no score.

    Returns
    -------
    DataFrame
        Of answers to prompts ``respondent_id, questionnaire, scale, score``, a mean in the units
        of item scores. Of answers to items ``respondent_id, questionnaire, mode, run``, those of
        `by`, and ``scale, title, score, answered, items``; a score is missing where too few items
        were answered: nothing is guessed.

    Raises
    ------
    ParameterError
        A questionnaire is not given, a prompt of a scale was not asked, an item is unknown, was
        answered twice in a run or outside its options, or a parameter does not apply.

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
        how = questionnaires, score, temperature, by, least_answered
        return pd.concat([scale_scores(part, *how) for part in answers], ignore_index=True)

    likert = _to_items(answers)
    if not likert:
        _refuse("prompts", least_answered=(least_answered, 1.0))
    elif isinstance(least_answered, str) or not 0 < least_answered <= 1:
        raise ParameterError(f"least_answered must be above 0 and at most 1, got {least_answered}.")

    items = item_scores(answers, score, temperature, by)
    known = _given(questionnaires, items["questionnaire"].unique())
    parts = []
    for name, part in items.groupby("questionnaire", sort=False):
        questionnaire = known[name]
        if not questionnaire.scales:
            raise ParameterError(f"{name} has categories, not scales; use category_scores.")

        matrix = _matrix(part, questionnaire)
        for scale in questionnaire.scales:
            keyed = _keyed(matrix, questionnaire, scale)
            rows = keyed.index.to_frame(index=False)
            rows["scale"], mean = scale.id, keyed.mean(axis=1).to_numpy()

            if likert:
                answered = keyed.notna().sum(axis=1).to_numpy()
                size = len(scale.items)
                enough = answered >= max(1, np.ceil(least_answered * size - 1e-9))
                total = mean * (size if scale.mode == "sum" else 1)
                rows["title"] = scale.title
                rows["score"], rows["answered"] = np.where(enough, total, np.nan), answered
                rows["items"] = size
            else:
                rows = rows.assign(questionnaire=name, score=mean)
                rows = rows[["respondent_id", "questionnaire", "scale", "score"]]

            parts.append(rows)

    return pd.concat(parts, ignore_index=True)


def keyed_items(
    items: pd.DataFrame | Iterator[pd.DataFrame],
    questionnaire: Questionnaire,
    scale: Scale | None = None,
) -> pd.DataFrame:
    """Return the item scores of one questionnaire as a matrix, each by its key.

    Parameters
    ----------
    items : DataFrame or iterator of them
        As :func:`item_scores` gives them; several as in :func:`scale_scores`.
    questionnaire : Questionnaire
    scale : Scale, optional
        Of the questionnaire: its items and keys only.

    Returns
    -------
    DataFrame, shape (R, I)
        Respondents (of answers to items: askings) by items in the questionnaire's order; high
        values are high on the construct.

    Raises
    ------
    ParameterError
        A prompt of an item was not asked, an item is unknown, answered twice or outside its
        options, or a value is not a finite number.
    """
    if isinstance(items, Iterator):
        return pd.concat([keyed_items(part, questionnaire, scale) for part in items])
    check_columns(items, ["questionnaire"])
    check_loaded([questionnaire])
    own = items[items["questionnaire"] == questionnaire.id]
    _check_answers(own, ("respondent_id", "item_id"), ["score"])
    own = own.astype({"score": float})
    twice = own.duplicated([column for column in own if column != "score"])
    if twice.any():
        row = own[twice].iloc[0]
        raise ParameterError("{respondent_id} has two scores of {item_id}.".format(**row))
    return _keyed(_matrix(own, questionnaire), questionnaire, scale)


def _to_items(answers: pd.DataFrame) -> bool:
    """Return whether answers are to items, not to prompts."""
    _check_answers(answers, ())
    return "term" not in answers and "value" in answers


def _refuse(kind: str, **settings: tuple[object, object]) -> None:
    """Refuse parameters that would be without effect on this kind of answers."""
    for name, (value, default) in settings.items():
        if value != default:
            raise ParameterError(f"{name} does not apply to answers to {kind}; leave it out.")


def _values(answers: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the item scores of answers to items: the value, where there is an answer."""
    check_columns(answers, (*keys, "item_id", "value", "status"), once=[*keys, "item_id"])
    value = answers[["value"]].where(answers["status"] == "ok").infer_objects()
    check_columns(value, (), ["value"])
    return answers[[*keys, "item_id"]].assign(score=value["value"].astype("float64"))


def _matrix(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the item scores of one questionnaire, askings by items, as they are."""
    ids = [item.id for item in questionnaire.items]
    if "run" not in items:  # answers to prompts
        table = items.pivot(index="respondent_id", columns="item_id", values="score")
        missing = [item for item in ids if item not in table.columns]
        if missing:
            why = "is not answered: ask all items"
            if not questionnaire.item(missing[0]).templates:
                why = "has no prompts: write its terms and template, or score items, not scales"

            raise ParameterError(f"{questionnaire.id}: item {missing[0]} {why}.")

        return table.loc[items["respondent_id"].unique(), ids]

    unknown = set(items["item_id"].unique()) - set(ids)
    if unknown:
        raise ParameterError(f"{questionnaire.id} has no item '{min(map(str, unknown))}'.")

    keys = [column for column in items if column not in ("item_id", "score")]
    table = items.pivot(index=keys, columns="item_id", values="score").reindex(columns=ids)
    for item in questionnaire.items:
        low, high = questionnaire.ends(item)
        outside = (table[item.id] < low) | (table[item.id] > high)
        if outside.any():  # a mean of options is an answer too
            raise ParameterError(f"{item.id} has an answer outside {low:g} to {high:g}.")

    return table


def _keyed(matrix: pd.DataFrame, questionnaire: Questionnaire, scale: Scale | None) -> pd.DataFrame:
    """Return a matrix's items of a scale, those with key -1 turned round."""
    keys = pd.Series(questionnaire.keys(scale))
    table = matrix[list(keys.index)]
    if matrix.index.nlevels == 1:  # answers to prompts
        return table * keys
    reverse = list(keys.index[keys == -1])
    around = pd.Series({name: sum(questionnaire.ends(name)) for name in reverse}, dtype=float)
    return table.assign(**(around - table[reverse]))


def _given(
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire] | None,
    names: Iterable[str],
) -> dict[str, Questionnaire]:
    """Questionnaires of these names, by name: those given, or those that come with the project."""
    known = {}
    for name in names if questionnaires is None else ():
        with contextlib.suppress(QuestionnaireError):
            known[name] = load_questionnaire(name, texts=False)

    if questionnaires is not None:
        known = {one.id: one for one in load_questionnaires(questionnaires, texts=False)}

    missing = [str(name) for name in names if name not in known]
    if missing:
        raise ParameterError(f"'{missing[0]}' is not given: add it to `questionnaires`.")

    return known
