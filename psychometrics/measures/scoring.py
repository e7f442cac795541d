"""From answers to scores: two-way normalisation; item, scale and category scores.

One file: every score is read off the same tables of answers, which the same functions check.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from ..checks import as_numbers, check_choice, check_columns, check_names, check_three
from ..exceptions import ParameterError, QuestionnaireError
from ..questionnaires import (
    Item,
    Option,
    Questionnaire,
    Scale,
    load_questionnaire,
    load_questionnaires,
)
from ..questionnaires.answers import check_loaded

# What tells the askings of a questionnaire apart, in a table of answers to items.
_KEYS = ("respondent_id", "questionnaire", "mode", "run")
_ASKED = ("questionnaire", "item_id", "template")


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
    p = as_numbers("scores", p)
    if p.ndim < 2 or not p.size or not ((p >= 0) & (p <= 1)).all():
        raise ParameterError("Scores must be from 0 to 1, of shape (..., terms, intensifiers).")
    number = isinstance(temperature, int | float | np.number) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < np.inf:
        raise ParameterError(f"temperature must be a positive number, got {temperature!r}.")

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
    """Answers to prompts with their raw score and PSS, normalised within respondent and template.

    Parameters
    ----------
    answers : DataFrame
        To prompts, as :func:`psychometrics.asking.ask` gives them.
    score : {"entailment", "contrast"}
        P(entailment) among three, or P(entailment) / (P(entailment) + P(contradiction)), which
        leaves neutral out. Answers in other modes than NLI have one probability, which is their
        score.
    temperature : float
        As in :func:`two_way`.

    Returns
    -------
    DataFrame
        The rows of `answers` in their order, with the columns ``raw`` and ``pss``.

    Raises
    ------
    ParameterError
        The answers are empty or lack a column, there is no such score, or a respondent has not
        answered every prompt of a template once, or has two outputs and so no contrast.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> even = prompts(load_questionnaire("challenges")).assign(respondent_id="r", probability=0.5)
    >>> pss(even)["pss"].unique()
    array([0.125])
    """
    needed = ["respondent_id", *_ASKED, "term", "intensifier"]
    _check(answers, needed, ["polarity", "weight"])
    lacking = [c for c in ("polarity", "weight") if answers[c].isna().any()]

    if lacking:
        raise ParameterError(f"{lacking[0]} is missing in some answers; fill it in.")
    frame = answers.assign(raw=_raw_scores(answers, score)).reset_index(drop=True)
    shares = np.full(len(frame), np.nan)
    raw = frame["raw"].to_numpy()
    for rows, places, cube in template_cubes(frame, raw):
        if len(rows) != cube.size or np.isnan(cube).any():
            place = "{}, item {}, template {}".format(*frame[list(_ASKED)].iloc[rows[0]])
            raise ParameterError(f"{place}: a prompt has no answer, or two; ask it again.")

        shares[rows] = two_way(cube, temperature)[places]

    frame["pss"] = shares
    return frame.set_index(answers.index)


def template_cubes(
    answers: pd.DataFrame, values: np.ndarray
) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray]]:
    """Return the answers to prompts as cubes, one a template in the order of the answers.

    Parameters
    ----------
    answers : DataFrame
        To prompts, as :func:`psychometrics.asking.ask` gives them.
    values : ndarray, shape (n,) or (n, K)
        What to put into the cubes, for each answer.

    Yields
    ------
    rows : ndarray
        Positions of the template's answers.
    places : tuple of ndarray
        Their respondents, terms and intensifiers in the cube.
    cube : ndarray, shape (R, T, L) or (R, T, L, K)
        The values there; missing where there is no answer, the last where there are several.

    Examples
    --------
    >>> from psychometrics import load_questionnaire, prompts
    >>> table = prompts(load_questionnaire("challenges")).assign(respondent_id="r")
    >>> [cube.shape for _, _, cube in template_cubes(table, np.zeros(len(table)))]
    [(1, 6, 8), (1, 6, 8), (1, 6, 8), (1, 6, 8)]
    """
    # Texts are turned into numbers once: grouping by them template for template takes ten times
    # as long.
    template = _numbered(answers, _ASKED)
    codes = [
        _numbered(answers, columns)
        for columns in (["respondent_id"], ["polarity", "term"], ["intensifier"])
    ]
    order = np.argsort(template, kind="stable")
    order = order[np.searchsorted(template[order], 0) :]  # those of no template are missing
    for rows in np.split(order, np.flatnonzero(np.diff(template[order])) + 1):
        if not len(rows):
            continue
        places = tuple(pd.factorize(code[rows])[0] for code in codes)
        shape = tuple(place.max() + 1 for place in places)
        cube = np.full(shape + values.shape[1:], np.nan)
        cube[places] = values[rows]
        yield rows, places, cube


def _numbered(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Number of each row's combination, in order of appearance; -1 where something is missing."""
    number = np.zeros(len(table), dtype=np.int64)
    for column in columns:
        codes, known = table[column].factorize()
        number = np.where((codes < 0) | (number < 0), -1, number * (len(known) + 1) + codes)
    return np.where(number < 0, -1, pd.factorize(number)[0])


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
    check_names(by=by)
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
    elif not 0 < as_numbers("least_answered", least_answered, axes=0) <= 1:
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
    _check(own, ("respondent_id", "item_id"), ["score"])
    own = own.astype({"score": float})
    twice = own.duplicated([column for column in own if column != "score"])
    if twice.any():
        row = own[twice].iloc[0]
        raise ParameterError("{respondent_id} has two scores of {item_id}.".format(**row))
    return _keyed(_matrix(own, questionnaire), questionnaire, scale)


def category_scores(
    answers: pd.DataFrame,
    questionnaires: str | Path | Questionnaire | Iterable[str | Path | Questionnaire],
) -> pd.DataFrame:
    r"""Return the score of each category: what the options add, weighed by how probable they are.

    .. math:: S_c = b_c + \sum_i \sum_o p_{io}\, w_{ioc}, \qquad
       \mathrm{sd}_c^2 = \sum_i \Bigl(\sum_o p_{io} w_{ioc}^2 - (\textstyle\sum_o p_{io}
       w_{ioc})^2\Bigr)

    Parameters
    ----------
    answers : DataFrame
        To items, as :func:`psychometrics.asking.ask` gives them; or with a column ``probability``
        and one
        row per option, in which case ``run`` is 1 if it lacks. The probabilities of an item are
        divided by their sum, after the mean of their logarithms over ``permutation``, if there are
        several orders of the options.
    questionnaires : Questionnaire, name or path, or several of them
        With ``categories``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, category, score, share, sd, low, high,
        answered, items``. ``share`` is the score divided by the sum over the categories (the
        library's ``normalize_res``; missing where the sum is 0);
        ``sd`` is that of the score if each answer were drawn from its probabilities;
        ``low`` and ``high`` are the least and greatest score that the category can take. With a
        question unanswered the score is missing: to leave it out would be to answer it with 0.

    Raises
    ------
    ParameterError
        The questionnaire has no categories, or an item, option or probability is impossible.

    References
    ----------
    The question_llm library (third document), ``evaluate()`` and the bias term.

    Examples
    --------
    >>> two = load_questionnaire("two_axes")
    >>> yes = pd.DataFrame({"respondent_id": "r", "questionnaire": "two_axes", "mode": "human",
    ...     "run": 1, "item_id": [item.id for item in two.items], "value": 4.0, "status": "ok"})
    >>> category_scores(yes, "two_axes")["score"].tolist()
    [0.0, 0.0]
    """
    _check(answers, ("questionnaire",))
    parts = [_category_rows(answers, q) for q in load_questionnaires(questionnaires, texts=False)]
    return pd.concat(parts, ignore_index=True)


def ideal_answers(
    questionnaire: str | Path | Questionnaire,
    category: str,
    within: float = 0.0,
    opposite: bool = False,
) -> pd.DataFrame:
    """List the options that speak most for a category.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
        With ``categories``.
    category : str
    within : float
        How far an option's weight may be from the greatest of all the questionnaire's weights.
    opposite : bool
        List the options that speak most against it instead: weights near the least of all.

    Returns
    -------
    DataFrame
        ``item_id, value, label, weight``; several rows, or none, for an item.

    Raises
    ------
    ParameterError
        The questionnaire has no such category.

    References
    ----------
    The question_llm library (third document), ``get_optim_answers()``.

    Examples
    --------
    >>> ideal_answers("two_axes", "economic")["label"].unique().tolist()
    ['strongly disagree', 'strongly agree']
    """
    questionnaire = load_questionnaire(questionnaire, texts=False)
    check_choice(questionnaire.categories, category=category)
    at = questionnaire.categories.index(category)
    sign = -1 if opposite else 1
    weights = [w for item in questionnaire.items for row in item.weights or () for w in row]
    bar = max(sign * w for w in weights) - within
    rows = [
        (item.id, option.value, option.label, row[at])
        for item, option, row in _weighted_options(questionnaire)
        if sign * row[at] >= bar
    ]

    return pd.DataFrame(rows, columns=["item_id", "value", "label", "weight"])


def _weighted_options(
    questionnaire: Questionnaire,
) -> Iterator[tuple[Item, Option, tuple[float, ...]]]:
    """Yield each option of each item with its weights for the categories."""
    for item in questionnaire.items:
        for option, weights in zip(questionnaire.choices(item), item.weights or (), strict=True):
            yield item, option, weights


def _category_rows(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    if not questionnaire.categories:
        raise ParameterError(f"{questionnaire.id} has no categories; use scale_scores.")
    rows = {
        (item.id, float(option.value)): row
        for item, option, row in _weighted_options(questionnaire)
    }
    weights = pd.DataFrame(rows, index=list(questionnaire.categories)).T
    part = _option_shares(answers, questionnaire, weights.index)
    items = part.groupby([*_KEYS, "item_id"], sort=False)
    share = part["probability"] / items["probability"].transform("sum")

    if share.isna().any():
        raise ParameterError(f"{questionnaire.id}: probabilities are all 0; leave the item out.")
    places = pd.MultiIndex.from_frame(part[["item_id", "value"]])
    values = weights.loc[places].to_numpy()
    by = [part[name] for name in (*_KEYS, "item_id")]
    weighted = (share.to_numpy()[:, None] * x for x in (values, values**2))
    frames = (pd.DataFrame(x, part.index, weights.columns) for x in weighted)
    mean, square = (frame.groupby(by, sort=False).sum() for frame in frames)
    runs = {"level": list(_KEYS), "sort": False}
    bias = pd.Series(questionnaire.bias or 0.0, weights.columns)
    ends = weights.groupby(level=0)
    answered = mean.groupby(**runs).size()
    whole = answered == len(questionnaire.items)
    score = (mean.groupby(**runs).sum() + bias).where(whole)
    found = {
        "score": score,
        "share": score.div(score.sum(axis=1).replace(0, np.nan), axis=0),
        "sd": np.sqrt((square - mean**2).clip(lower=0).groupby(**runs).sum()),
    }
    table = pd.concat({name: wide.stack() for name, wide in found.items()}, axis=1)
    table = table.rename_axis([*_KEYS, "category"]).reset_index()
    table["low"] = table["category"].map(ends.min().sum() + bias)
    table["high"] = table["category"].map(ends.max().sum() + bias)
    table["answered"] = answered.repeat(len(bias)).to_numpy()

    return table.assign(items=len(questionnaire.items))


def _option_shares(
    answers: pd.DataFrame, questionnaire: Questionnaire, options: pd.Index
) -> pd.DataFrame:
    """Return one row per answer or option with its probability, checked."""
    part = answers[answers["questionnaire"] == questionnaire.id]
    if part.empty:
        raise ParameterError(f"There are no answers to {questionnaire.id}.")

    if "run" not in part:
        part = part.assign(run=1)

    if "probability" not in part:
        chosen = _values(part, list(_KEYS)).rename(columns={"score": "value"}).dropna()
        part = chosen.assign(probability=1.0)
    elif "status" in part:
        part = part[part["status"] == "ok"]

    _check(part, (*_KEYS, "item_id"), ["value", "probability"])
    if not (part["probability"] >= 0).all():
        raise ParameterError(f"{questionnaire.id}: probabilities must be numbers from 0.")

    part = part.astype({"value": float}).reset_index(drop=True)
    places = pd.MultiIndex.from_frame(part[["item_id", "value"]])
    inside = places.isin(options)
    if not inside.all():
        item, option = places[~inside][0]
        raise ParameterError(f"{questionnaire.id}, item {item}: {option:g} is no option's value.")

    keys = [*_KEYS, "item_id", "value"]
    check_columns(part, (), once=[*keys, *({"permutation"} & {*part})])
    if "permutation" in part:
        logs = np.log(part["probability"].clip(lower=1e-300))
        if "log_probability" in part:  # which long texts have, where a probability is 0
            logs = part["log_probability"].fillna(logs)

        part = part.assign(log=logs).groupby(keys, sort=False, as_index=False)["log"].mean()
        most = part.groupby([*_KEYS, "item_id"])["log"].transform("max")
        part["probability"] = np.exp(part["log"] - most)

    return part


def _check(table: pd.DataFrame, columns: Iterable[str], numbers: Iterable[str] = ()) -> None:
    check_columns(table, columns, numbers)
    if table.empty:
        raise ParameterError("There are no answers to score: ask a questionnaire first.")


def _to_items(answers: pd.DataFrame) -> bool:
    """Return whether answers are to items, not to prompts."""
    _check(answers, ())
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


def _raw_scores(answers: pd.DataFrame, score: str) -> np.ndarray:
    """Return the score of each answer to a prompt before normalisation, from 0 to 1."""
    check_choice(("entailment", "contrast"), score=score)
    names = ["entailment"] if score == "entailment" else ["entailment", "contradiction"]
    names = ["probability"] if "probability" in answers else names
    check_columns(answers, (), names)
    shown = {"probability", "entailment", "neutral", "contradiction"} & set(answers)
    shown = answers[sorted(shown)].apply(pd.to_numeric, errors="coerce")

    if ((shown < 0) | (shown > 1)).any(axis=None) or (shown.sum(axis=1) > 1.02).any():
        raise ParameterError(f"{', '.join(shown)} must be probabilities, up to 1 together.")
    first, *other = (answers[name].to_numpy(dtype=np.float64) for name in names)
    if not other:
        return first

    check_three(answers)
    total = first + other[0]
    return np.divide(first, total, out=np.full_like(total, 0.5), where=total != 0)
