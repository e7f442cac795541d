"""Simulated respondents with known traits.

Their answers are not stored, since computing them from the seed is faster than reading them.

Conditions
----------
``discrimination``: slope of the items. ``difficulty_sd``: standard deviation, over items, of the
shift in their thresholds. ``acquiescence``: standard deviation, over respondents, of the tendency
to agree, whatever the key. ``runs``: number of times that each respondent is asked; traits stay the
same, and each run has new draws from ``seed``.

With the same seed, adding respondents leaves the first respondents unchanged, and adding runs
leaves the first runs unchanged: traits, items and answers each have a separate stream of
random numbers, in the order of the respondents.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, NonNegativeInt
from scipy.special import softmax

from ..checks import check_columns, check_numbers
from ..exceptions import ParameterError
from ..questionnaires import Questionnaire, load_questionnaire
from ..questionnaires.answers import tidy
from ..store import key_of
from .mode import Asking, Conditions, Identity, Mode, Runs

# Numbers of the streams of random numbers.
_TRAITS, _STYLES, _SHIFTS, _ANSWERS = 1, 3, 4, 5


class _SimulatedConditions(Conditions):
    """The properties of the items, and the respondents' ways of answering."""

    discrimination: FiniteFloat = 1.5
    difficulty_sd: Annotated[FiniteFloat, Field(ge=0)] = 0.5
    acquiescence: FiniteFloat = 0.0
    runs: Runs = 1
    seed: NonNegativeInt = 0


class Simulated(Mode):
    """Simulated respondents with known traits.

    Respondents are given as a number, in which case their traits are drawn, or as a DataFrame of
    their trait levels in standard units, as :func:`draw_traits` returns it.
    """

    conditions_type = _SimulatedConditions
    needs_options = True

    def named(self, text: str) -> int:
        """Return the number of respondents that a text specifies."""
        if not text.isdecimal():
            raise ParameterError(f"In mode simulated, --respondents is a number, got '{text}'.")
        return int(text)

    def identify(
        self, respondent: int | pd.DataFrame, dtype: str | None = None, **conditions: Any
    ) -> Identity:
        """Return the identity of the simulated respondents, and refuse invalid traits."""
        if isinstance(respondent, pd.DataFrame):
            axes = {"column": respondent.columns, "respondent": respondent.index}
            for axis, index in axes.items():
                if index.has_duplicates:
                    twice = index[index.duplicated()][0]
                    raise ParameterError(f"traits: two {axis}s {twice}; keep one.")

            numbers = respondent.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
            if not len(respondent) or not np.isfinite(numbers).all():
                raise ParameterError("traits must have at least one row, and only numbers.")

            content = respondent.to_csv()
        else:
            check_numbers(respondents=respondent)
            content = str(respondent)
        fingerprint = key_of(content, repr(sorted(conditions.items())))
        who = "simulated", "simulated", "graded response"
        return Identity(*who, mode=self.name, fingerprint=fingerprint)

    def answer(self, questionnaire: Questionnaire, asking: Asking) -> pd.DataFrame:
        """Return answers drawn by :func:`answers`, with three of the conditions as columns."""
        traits = asking.respondent
        conditions = asking.conditions
        if not isinstance(traits, pd.DataFrame):
            check_numbers(answers=traits * conditions["runs"] * len(questionnaire.items))
            traits = draw_traits(questionnaire, traits, seed=conditions["seed"])

        table = answers(questionnaire, traits, **conditions)
        asking.bar.expect(len(table))
        asking.bar.update(len(table))
        names = ("discrimination", "difficulty_sd", "acquiescence")
        return table.assign(**{name: conditions[name] for name in names})


def draw_traits(
    questionnaire: str | Path | Questionnaire,
    respondents: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw trait levels for simulated respondents.

    Parameters
    ----------
    questionnaire : str, Path or Questionnaire
    respondents : int
        Number of respondents.
    seed : int

    Returns
    -------
    DataFrame, shape (respondents, scales)
        Standard normal levels. The columns are the ids of the scales (of the categories if answers
        add to categories; ``trait`` if there are neither), and the index names the respondents.

    Raises
    ------
    ParameterError
        A number is out of range.

    Examples
    --------
    >>> draw_traits("ipip20", 3).shape
    (3, 5)
    """
    check_numbers(respondents=respondents, seed=seed)
    questionnaire = load_questionnaire(questionnaire, texts=False)

    names = (
        [scale.id for scale in questionnaire.scales] or list(questionnaire.categories) or ["trait"]
    )
    levels = _stream(seed, _TRAITS).standard_normal((respondents, len(names)))
    width = len(str(respondents))
    index = [f"simulated-{i:0{width}d}" for i in range(1, respondents + 1)]

    return pd.DataFrame(levels, columns=names, index=pd.Index(index, name="respondent_id"))


def answers(questionnaire: Questionnaire, traits: pd.DataFrame, **conditions: Any) -> pd.DataFrame:
    """Draw the answers of simulated respondents with known trait levels.

    Items follow the graded-response model: the same slope for all, reversed for reverse-keyed
    items, and evenly spread thresholds with a random shift for each item. If answers add to
    categories instead of scales, an option's log-odds are the sum, over categories, of the trait
    times the option's score (a nominal model). An item in several scales depends on the first scale
    that contains it; an item without a scale is answered by chance alone.

    Parameters
    ----------
    questionnaire : Questionnaire, name or path
    traits : DataFrame, shape (respondents, scales)
    **conditions
        Conditions of :class:`Simulated`.

    Returns
    -------
    DataFrame
        ``respondent_id, questionnaire, mode, run, item_id, value, status``.

    Raises
    ------
    ParameterError
        The traits lack a scale.

    References
    ----------
    Samejima (1969); Bock (1972) for the nominal model.

    Examples
    --------
    >>> from psychometrics.questionnaires import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> answers(mini, draw_traits(mini, 3), seed=1)["value"].notna().all()
    np.True_
    """
    questionnaire = load_questionnaire(questionnaire, texts=False)
    check_columns(traits, ())
    settings: dict[str, Any] = Simulated.conditions | conditions
    items = questionnaire.items
    options = list(_options(questionnaire, traits, settings))

    size = settings["runs"], len(items), len(traits)
    chosen = np.empty(size)
    for run in range(settings["runs"]):
        chances = _stream(settings["seed"], _ANSWERS, run).random((len(traits), len(items)))
        for number, (values, shares) in enumerate(options):
            below = chances[:, [number]] > shares.cumsum(axis=1)[:, :-1]
            chosen[run, number] = values[below.sum(axis=1)]

    who, runs, numbers = (indices.ravel() for indices in np.indices((size[2], *size[:2])))
    table = pd.DataFrame(
        {
            "respondent_id": traits.index.take(who),
            "mode": "simulated",
            "run": runs + 1,
            "item_id": pd.Index([item.id for item in items]).take(numbers),
            "value": chosen.transpose(2, 0, 1).ravel(),
            "status": "ok",
        }
    )

    return tidy(table, questionnaire)


def _options(
    questionnaire: Questionnaire, traits: pd.DataFrame, settings: dict[str, Any]
) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
    """Yield the values of each item's options, and respondents' probabilities of choosing them."""
    items = questionnaire.items
    categories = list(questionnaire.categories)
    # The first scale that contains an item, and the item's key there.
    keys: dict[str, tuple[str, int]] = {}
    for scale in reversed(questionnaire.scales):
        keys |= {name: (scale.id, -1 if name in scale.reverse else 1) for name in scale.items}
    if not questionnaire.scales and not categories:
        keys = {item.id: ("trait", 1) for item in items}

    needed = {keys[item.id][0] for item in items if item.id in keys}
    if any(item.id not in keys for item in items):
        needed |= set(categories)
    lacking = needed - set(traits.columns)
    if lacking:
        raise ParameterError(f"traits lacks the column '{min(lacking)}': add the column.")

    seed = settings["seed"]
    slope = settings["discrimination"]
    style = settings["acquiescence"] * _stream(seed, _STYLES).standard_normal(len(traits))
    shifts = settings["difficulty_sd"] * _stream(seed, _SHIFTS).standard_normal(len(items))
    for item, shift in zip(items, shifts, strict=True):
        values = np.array([option.value for option in questionnaire.choices(item)])
        if item.id not in keys and categories:  # the nominal model
            weights = np.array(item.weights, dtype=float)
            largest = max(np.abs(weights).max(), 1e-12)  # files differ in the unit of their scores
            utility = slope * traits[categories].to_numpy() @ (weights / largest).T
            utility += style[:, None] * np.linspace(-1, 1, len(weights))
            yield values, softmax(utility, axis=1)
            continue

        trait = style
        if item.id in keys:
            name, key = keys[item.id]
            trait = style + key * traits[name].to_numpy()
        yield np.sort(values), graded_shares(trait, len(values), slope, shift)


def graded_shares(
    trait: NDArray[np.float64], count: int, slope: float = 1.5, shift: float = 0.0
) -> NDArray[np.float64]:
    """Return the probabilities of rising options under the graded-response model.

    Thresholds are evenly spread between -1.5 and 1.5 trait units, and then shifted.

    Parameters
    ----------
    trait : ndarray, shape (R,)
        Trait levels in standard units.
    count : int
        Number of options.
    slope, shift : float
        Slope of the item, and shift of its thresholds.

    Returns
    -------
    ndarray, shape (R, count)

    Examples
    --------
    >>> graded_shares(np.array([0.0]), 2)
    array([[0.5, 0.5]])
    """
    thresholds = np.linspace(-1.5, 1.5, count + 1)[1:-1] + shift
    direction = np.sign(slope) or 1.0
    above = 1 / (1 + np.exp(-abs(slope) * (direction * trait[:, None] - thresholds)))
    at_least = np.pad(above, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0)))
    shares: NDArray[np.float64] = at_least[:, :-1] - at_least[:, 1:]
    return shares


def _stream(*numbers: int) -> np.random.Generator:
    """Return the random generator for a seed, a stream and optionally a run."""
    return np.random.default_rng(numbers)
