"""Simulated respondents, whose traits are known.

What they answer is computed from the seed faster than it could be read, so it is not kept.

Conditions
----------
``discrimination``: slope of the items. ``difficulty_sd``: standard deviation over items of what
moves their thresholds. ``acquiescence``: standard deviation over respondents of a tendency to
agree, whatever the key. ``missing``: share of answers that are left out, at random. ``runs``: how
often each is asked; traits stay, chance is drawn anew with ``seed``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..asking.answers import check_numbers, tidy
from ..asking.store import key_of
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from .mode import Mode

if TYPE_CHECKING:
    from ..asking.progress import Progress

CONDITIONS = {
    "discrimination": 1.5,
    "difficulty_sd": 0.5,
    "acquiescence": 0.0,
    "missing": 0.0,
    "runs": 1,
    "seed": 0,
}
SPREAD = 1.5
"""Thresholds of the simulated items lie evenly between minus and plus this, in trait units."""


def draw_traits(
    questionnaire: Questionnaire, respondents: int = 100, correlation: float = 0.0, seed: int = 0
) -> pd.DataFrame:
    """Draw trait levels for simulated respondents.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : int
        How many.
    correlation : float
        Between any two traits, from 0 to below 1.
    seed : int

    Returns
    -------
    DataFrame, shape (respondents, scales)
        Standard normal levels; columns are the scales' ids (the categories where answers add to
        categories, ``trait`` where there are neither), the index names the respondents.

    Raises
    ------
    ParameterError
        A number is impossible.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> draw_traits(load_questionnaire("ipip20"), 3).shape
    (3, 5)
    """
    _check_count(respondents)
    if not 0 <= correlation < 1:
        raise ParameterError(f"correlation must be from 0 to below 1, got {correlation!r}.")
    names = (
        [scale.id for scale in questionnaire.scales] or list(questionnaire.categories) or ["trait"]
    )
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((respondents, 1))
    own = rng.standard_normal((respondents, len(names)))
    levels = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    width = len(str(respondents))
    index = [f"simulated-{i:0{width}d}" for i in range(1, respondents + 1)]
    return pd.DataFrame(levels, columns=names, index=pd.Index(index, name="respondent_id"))


def graded_probabilities(
    trait: np.ndarray, discrimination: float, thresholds: np.ndarray
) -> np.ndarray:
    """Probability of each option under the graded-response model.

    Parameters
    ----------
    trait : ndarray, shape (R,)
    discrimination : float
        Slope; negative where agreement lowers the trait.
    thresholds : ndarray, shape (K - 1,)
        Rising: the trait level at which an option or a higher one is as probable as not.

    Returns
    -------
    ndarray, shape (R, K)
        Each row sums to one.

    References
    ----------
    Samejima (1969).

    Examples
    --------
    >>> graded_probabilities(np.array([0.0]), 1.0, np.array([0.0]))
    array([[0.5, 0.5]])
    """
    sign = np.sign(discrimination) or 1.0
    steps = abs(discrimination) * (sign * np.asarray(trait)[:, None] - np.asarray(thresholds))
    above = 1 / (1 + np.exp(-steps))
    edges = np.ones((len(above), 1)), np.zeros((len(above), 1))
    above = np.hstack([edges[0], above, edges[1]])
    return above[:, :-1] - above[:, 1:]


def identify(
    respondent: int | pd.DataFrame, dtype: str | None = None, **conditions: object
) -> dict:
    """Say which simulated respondents answer, and refuse impossible numbers.

    Parameters
    ----------
    respondent : int or DataFrame, shape (respondents, scales)
        How many, with traits drawn; or their trait levels in standard units, as
        :func:`draw_traits` gives them.
    dtype : None
        Has no part in it.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    dict
        ``respondent_id, source, model, revision, mode, dtype, fingerprint``.

    Raises
    ------
    ParameterError
        A number or the frame is impossible.

    Examples
    --------
    >>> identify(100)["respondent_id"]
    'simulated'
    """
    how = CONDITIONS | conditions
    if not 0 <= _number(how, "missing") < 1:
        raise ParameterError(f"missing must be a share from 0 to below 1, got {how['missing']!r}.")
    for name in ("discrimination", "difficulty_sd", "acquiescence"):
        _number(how, name)
    check_numbers(runs=how["runs"], seed=how["seed"])
    if isinstance(respondent, pd.DataFrame):
        _check_traits(respondent)
        content = respondent.to_csv()
    else:
        _check_count(respondent)
        content = str(respondent)
    return {
        "respondent_id": "simulated",
        "source": "simulated",
        "model": "graded response",
        "revision": None,
        "mode": "simulated",
        "dtype": None,
        "fingerprint": key_of(content, repr(sorted(how.items()))),
    }


def put(
    questionnaire: Questionnaire,
    respondent: int | pd.DataFrame,
    identity: dict,
    store: str | Path | None,
    bar: Progress,
    **conditions: object,
) -> pd.DataFrame:
    """Answers of simulated respondents whose trait levels are known.

    Items follow the graded-response model: the same slope for all, turned round for reverse-keyed
    items, thresholds evenly spread and moved by an amount drawn for each item. Where answers add
    to categories instead of scales, an option's log-odds are the sum over categories of trait
    times the option's score (a nominal model). An item in several scales follows the first that
    holds it; one in none follows chance alone.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondent
        As in :func:`identify`.
    identity, store
        Are not needed: nothing is kept.
    bar : tqdm
        Is moved on by the answers.
    **conditions
        Of ``CONDITIONS``.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``, then the conditions
        ``discrimination, difficulty_sd, acquiescence``.

    Raises
    ------
    ParameterError
        A number is impossible, or the traits lack a scale.

    References
    ----------
    Samejima (1969); Bock (1972) for the nominal model.
    """
    how = CONDITIONS | conditions
    traits = respondent
    if not isinstance(traits, pd.DataFrame):
        traits = draw_traits(questionnaire, respondent, seed=how["seed"])
    table = answers(questionnaire, traits, **how)
    bar.expect(len(table))
    bar.update(len(table))
    shown = ("discrimination", "difficulty_sd", "acquiescence")
    return table.assign(**{name: how[name] for name in shown})


def answers(
    questionnaire: Questionnaire, traits: pd.DataFrame, **conditions: object
) -> pd.DataFrame:
    """Draw the answers of :func:`put`, without its last columns.

    Parameters
    ----------
    questionnaire : Questionnaire
    traits : DataFrame, shape (respondents, scales)
    **conditions
        Of ``CONDITIONS``.

    Raises
    ------
    ParameterError
        The traits lack a scale.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> answers(mini, draw_traits(mini, 3), seed=1)["value"].notna().all()
    np.True_
    """
    how = CONDITIONS | conditions
    discrimination, runs, seed = how["discrimination"], how["runs"], how["seed"]
    rng = np.random.default_rng([seed, 1])  # another stream than the traits'
    style = how["acquiescence"] * rng.standard_normal(len(traits))
    places = {item.id: _place(questionnaire, item.id) for item in questionnaire.items}
    if lacking := {scale for scale, _ in places.values() if scale} - set(traits.columns):
        raise ParameterError(f"traits has no column '{min(lacking)}': it needs one per scale.")
    shifts = dict(zip(places, how["difficulty_sd"] * rng.standard_normal(len(places)), strict=True))
    size = (runs, len(questionnaire.items), len(traits))
    drawn, missing = np.empty(size), np.empty(size, dtype=bool)
    for run in range(runs):
        for number, item in enumerate(questionnaire.items):
            values = np.array([option.value for option in questionnaire.choices(item)])
            scale, sign = places[item.id]
            if scale is None and questionnaire.categories:
                shares = _nominal(traits, questionnaire, item, discrimination, style)
                ordered = values
            else:
                level = traits[scale].to_numpy() if scale else np.zeros(len(traits))
                ordered = np.sort(values)
                thresholds = np.linspace(-SPREAD, SPREAD, len(values) + 1)[1:-1] + shifts[item.id]
                shares = graded_probabilities(sign * level + style, discrimination, thresholds)
            picked = (rng.random((len(shares), 1)) > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
            missing[run, number] = rng.random(len(shares)) < how["missing"]
            drawn[run, number] = ordered[picked]
    ids = pd.Index([item.id for item in questionnaire.items])
    who, run, item = (part.ravel() for part in np.indices((size[2], *size[:2])))
    table = pd.DataFrame(
        {
            "respondent_id": traits.index.take(who),
            "mode": "simulated",
            "run": run + 1,
            "item_id": ids.take(item),
            "value": drawn.transpose(2, 0, 1).ravel(),
            "status": pd.Index(["ok", "missing"]).take(
                missing.transpose(2, 0, 1).ravel().astype(int)
            ),
        }
    )
    return tidy(table, questionnaire)


def _place(questionnaire: Questionnaire, item_id: str) -> tuple[str | None, int]:
    """First scale that holds an item, and -1 where it is reverse-keyed there."""
    for scale in questionnaire.scales:
        if item_id in scale.items:
            return scale.id, -1 if item_id in scale.reverse else 1
    return ("trait", 1) if not questionnaire.scales and not questionnaire.categories else (None, 1)


def _nominal(traits, questionnaire, item, slope, style) -> np.ndarray:
    if lacking := set(questionnaire.categories) - set(traits.columns):
        raise ParameterError(f"traits has no column '{min(lacking)}': it needs one per category.")
    weights = np.array(item.weights, dtype=float)
    largest = max(np.abs(weights).max(), 1e-12)  # files differ in the unit of their scores
    utility = slope * traits[list(questionnaire.categories)].to_numpy() @ (weights / largest).T
    utility += style[:, None] * np.linspace(-1, 1, len(weights))
    utility = np.exp(utility - utility.max(axis=1, keepdims=True))
    return utility / utility.sum(axis=1, keepdims=True)


def _check_count(respondents: object) -> None:
    if not isinstance(respondents, int) or isinstance(respondents, bool) or respondents < 1:
        raise ParameterError(
            f"respondents must be a whole number from 1, or a frame of traits, got {respondents!r}."
        )


def _check_traits(traits: pd.DataFrame) -> None:
    for what, index in {"column": traits.columns, "respondent": traits.index}.items():
        if index.has_duplicates:
            raise ParameterError(
                f"traits has the {what} '{index[index.duplicated()][0]}' twice: keep one."
            )
    try:
        finite = bool(np.isfinite(traits.to_numpy(dtype=float)).all())
    except (TypeError, ValueError):
        finite = False
    if not finite or not len(traits):
        raise ParameterError("traits must have at least one row, and a number in each place.")


def _number(how: dict, name: str) -> float:
    value = how[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ParameterError(f"{name} must be a number, got {value!r}.")
    return float(value)


class Simulated(Mode):
    """Simulated respondents with known traits."""

    name, conditions = "simulated", CONDITIONS
    identify, answer = staticmethod(identify), staticmethod(put)
