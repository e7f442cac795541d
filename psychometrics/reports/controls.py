"""Ask a chat model control questions: the options turned round, the weather, and an empty item.

Every item is asked once more with its options in the reverse order, mixed with statements about the
weather and an empty item that have the same options. One request asks it all, as far as they fit,
so a model that repeats itself within a reply repeats itself in the controls, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..asking.ask import ask
from ..endpoints.endpoint import Endpoint
from ..formats import fill
from ..measures.scoring import item_scores
from ..modes.messages import as_filed
from ..questionnaires import Item, Questionnaire, load_questionnaire
from .rules import _WORDS, _Row
from .sentences import show_p

_EMPTY_ITEM = "I am a person."
_EMPTY_ID = "empty_item"
_DRAWS = 999
_FEWEST = 5  # with four items, chance turns all answers the same way in 1 of 16 cases
_NO_WORDING = {"wording": None, "labels": "numeric"}


def with_weather(
    questionnaire: Questionnaire, conditions: Mapping[str, Any] = _NO_WORDING
) -> Questionnaire:
    """Return a questionnaire with statements about the weather and an empty item among its items.

    Seven statements say that it is wet and seven that it is dry. None are added to a questionnaire
    in another language than English, to one whose items differ in their options, or to a placebo.

    Parameters
    ----------
    questionnaire : Questionnaire
    conditions : mapping
        The conditions of asking, whose ``wording`` may leave the stem out.

    Examples
    --------
    >>> controls = with_weather(load_questionnaire("gad7"))
    >>> [item.text for item in controls.items[:3]]
    ['Feeling nervous, anxious or on edge.', 'The weather in the valley is rainy.', 'The weather \
in the valley is dry.']
    >>> controls.items[-1].text
    'I am a person.'
    """
    options = {questionnaire.choices(item) for item in questionnaire.items}
    is_english = questionnaire.language.partition("-")[0].lower() == "en"
    changes: dict[str, Any] = {"id": f"{questionnaire.id}_controls", "scales": (), "norms": ()}
    if len(options) > 1 or not is_english or "placebo" in questionnaire.id:
        return questionnaire.model_copy(update=changes)

    items = list(questionnaire.items)
    if as_filed(questionnaire, _NO_WORDING | dict(conditions))["wording"] != "file":
        items = [item.model_copy(update={"text": questionnaire.statement(item)}) for item in items]

    weather = []
    for item in load_questionnaire("placebo_weather").items:
        if item.terms is None:
            continue

        premise = item.templates[0].premise
        wet = premise.format(term=item.terms.source[0])
        dry = premise.format(term=item.terms.inverse[0])
        weather.append(Item(id=f"{item.id}_wet", text=wet))
        weather.append(Item(id=f"{item.id}_dry", text=dry, keying=-1))

    weather.append(Item(id=_EMPTY_ID, text=_EMPTY_ITEM))
    # spread evenly, as an order that is not shuffled would ask them last
    places = [*np.linspace(0, 0.99, len(items)), *np.linspace(0.001, 1, len(weather))]
    placed = sorted(zip(places, items + weather, strict=True), key=itemgetter(0))
    options_of_all = options.pop()
    return questionnaire.model_copy(
        update=changes
        | {"items": tuple(item for _, item in placed), "options": options_of_all, "stem": None}
    )


def control_call(
    questionnaires: Sequence[Questionnaire], conditions: Mapping[str, Any]
) -> tuple[list[Questionnaire], dict[str, Any]]:
    """Return the questionnaires and the conditions of the control questions, asked once.

    The list is empty if there is nothing to ask: no weather, and options that are shuffled anyway.

    Examples
    --------
    >>> asked, conditions = control_call([load_questionnaire("gad7")], {"runs": 10})
    >>> [len(each.items) for each in asked], conditions
    ([22], {'runs': 1, 'order': 'reversed'})
    """
    once = dict(conditions) | {"runs": 1}
    order = conditions.get("order", "given")
    asked = [with_weather(questionnaire, conditions) for questionnaire in questionnaires]
    if order == "shuffled":
        return [each for each in asked if _weather_keys(each)], once
    return asked, once | {"order": "given" if order == "reversed" else "reversed"}


def ask_controls(
    questionnaires: Sequence[Questionnaire],
    model: str | Path,
    settings: Mapping[str, Any],
    spent: float = 0.0,
) -> pd.DataFrame | None:
    """Ask the control questions, and return the answers; None if there is nothing to ask.

    Parameters
    ----------
    questionnaires : sequence of Questionnaire
    model : str or Path
    settings : mapping
        Settings and conditions of :func:`psychometrics.asking.ask`.
    spent : float
        The cost so far, which ``max_cost`` covers, too.
    """
    asked, once = control_call(questionnaires, settings)
    if not asked:
        return None

    gathered = Endpoint.gathered(once)
    endpoint = gathered.get("endpoint")
    if endpoint is not None and endpoint.max_cost is not None:
        rest = max(0.0, endpoint.max_cost - spent)
        once = gathered | {"endpoint": replace(endpoint, max_cost=rest)}

    return ask(asked, [model], **once)


def flag_controls(
    answers: pd.DataFrame, controls: pd.DataFrame, questionnaire: Questionnaire, level: float
) -> pd.DataFrame:
    """Return the flags of a model's answers to the control questions.

    Parameters
    ----------
    answers, controls : DataFrame
        One model's answers to a questionnaire, and its answers to all control questions.
    questionnaire : Questionnaire
    level : float
        The probability that a check passes by chance.

    Returns
    -------
    DataFrame
        Rows of :func:`psychometrics.reports.rules.flags`, with the checks *turned* and *weather*.
    """
    with_items = with_weather(questionnaire)
    controls = controls[controls["questionnaire"] == with_items.id]
    rows: list[_Row] = []
    if "shuffled" not in set(controls["order"]):
        rows.append(_check_turned(answers, controls, questionnaire, level))

    keys = _weather_keys(with_items)
    if keys:
        shares = _shares(controls, with_items)
        for scale in questionnaire.scales:
            of_scale = questionnaire.keys(scale)
            compared = _compare_with_weather(shares, of_scale, keys)
            if compared is None:
                rows.append((scale.id, "weather", "–", _WORDS["few to compare"], np.nan))
                continue

            share, weather, p = compared
            words = fill(_WORDS["weather"], share=share, weather=weather, p=show_p(p))
            mark = "✓" if p <= level / len(questionnaire.scales) else "!"
            rows.append((scale.id, "weather", mark, words, weather))

    return pd.DataFrame(rows, columns=["scale", "check", "mark", "words", "value"])


def _check_turned(
    answers: pd.DataFrame, controls: pd.DataFrame, questionnaire: Questionnaire, level: float
) -> _Row:
    """Test whether answers follow the options or their places, when the options are reversed.

    Each answer to the reversed options is compared with the first answer and with its mirror
    image, which a respondent gives that reports a place in the list. Under the null both are
    equally likely, item by item.
    """
    first = _shares(answers, questionnaire)
    pairs = pd.DataFrame({"first": first, "turned": _shares(controls, questionnaire)}).dropna()
    kept = (pairs["first"] - pairs["turned"]).abs().to_numpy()
    mirrored = (pairs["first"] - (1 - pairs["turned"])).abs().to_numpy()
    gains = mirrored - kept
    deciding = np.abs(gains) > 1e-9  # a middle answer is its own mirror image
    if deciding.sum() < _FEWEST:
        counts = {"deciding": deciding.sum(), "pairs": len(pairs), "fewest": _FEWEST}
        words = fill(_WORDS["few turned"], **counts)
        return "", "turned", "–", words, np.nan

    signs = np.random.default_rng(0).choice([-1, 1], (_DRAWS, len(gains)))
    drawn = signs @ gains
    p_stays = float(((drawn >= gains.sum() - 1e-9).sum() + 1) / (_DRAWS + 1))
    p_turns = float(((drawn <= gains.sum() + 1e-9).sum() + 1) / (_DRAWS + 1))
    nearer = int((gains[deciding] > 0).sum())
    p = show_p(min(p_stays, p_turns))
    words = fill(_WORDS["turned"], nearer=nearer, deciding=deciding.sum(), p=p)

    mark = "!"
    if p_stays <= level:
        mark = "✓"
    elif p_turns <= level:
        mark = "✗"

    return "", "turned", mark, words, nearer / int(deciding.sum())


def _compare_with_weather(
    shares: pd.Series, keys: Mapping[str, int], weather_keys: Mapping[str, int]
) -> tuple[float, float, float] | None:
    """Return the keyed means of a scale and of the weather, and the p value of their difference.

    Statements that it is wet stand for plain items, and statements that it is dry for reversed
    items, in the scale's proportion. The null deals the answers to items and statements of one key
    out at random.
    """
    rng = np.random.default_rng(0)
    means = np.zeros(2)
    drawn = np.zeros(_DRAWS)
    for key in set(keys.values()):
        items, statements = (
            shares.reindex([name for name, value in of_all.items() if value == key]).dropna()
            for of_all in (keys, weather_keys)
        )
        if items.empty or statements.empty:
            return None

        keyed = np.concatenate([items, statements])
        keyed = keyed if key > 0 else 1 - keyed
        weight = list(keys.values()).count(key) / len(keys)
        dealt = rng.permuted(np.tile(keyed, (_DRAWS, 1)), axis=1)
        count = len(items)
        means += weight * np.array([keyed[:count].mean(), keyed[count:].mean()])
        drawn += weight * (dealt[:, :count].mean(axis=1) - dealt[:, count:].mean(axis=1))

    reached = np.abs(drawn) >= abs(means[0] - means[1]) - 1e-9
    return float(means[0]), float(means[1]), float((reached.sum() + 1) / (_DRAWS + 1))


def _weather_keys(questionnaire: Questionnaire) -> dict[str, int]:
    """Return the keys of the statements about the weather that a questionnaire has."""
    keys = questionnaire.keys()
    if _EMPTY_ID not in keys:
        return {}
    return {name: key for name, key in keys.items() if name.startswith("weather_")}


def _shares(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.Series:
    """Return the first run's answers as shares of the way to the highest option, by item."""
    names = {item.id for item in questionnaire.items}
    is_first = answers["run"] == answers["run"].min()
    items = item_scores(answers[is_first & answers["item_id"].isin(names)])
    low, high = np.array([questionnaire.ends(name) for name in items["item_id"]]).T
    shares = (items["score"].to_numpy() - low) / (high - low)
    return pd.Series(shares, index=items["item_id"].to_numpy())
