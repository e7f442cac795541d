"""One runner for what is varied in asking: conditions crossed, how much of it can be read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..asking.answers import check_columns
from ..asking.ask import ask
from ..exceptions import ParameterError
from ..modes import conditions_of
from ..questionnaires import Questionnaire


def crossed(
    questionnaires: str | Path | Questionnaire | Sequence[str | Path | Questionnaire],
    respondents: object,
    conditions: Mapping[str, Sequence],
    mode: str = "chat",
    store: str | Path | None = None,
    **how: object,
) -> pd.DataFrame:
    """Ask under every combination of conditions: roles by scales, wordings by runs, and so on.

    Parameters
    ----------
    questionnaires, respondents, mode, store
        As in :func:`psychometrics.asking.ask.ask`.
    conditions : mapping of str to sequence
        What is varied: the values of each condition of the mode, such as ``role``, ``wording``,
        ``think``, ``cipher``, ``temperature``, ``order``, ``labels`` or ``permutations``.
    **how
        What stays the same: other conditions of the mode, and ``dtype``.

    Returns
    -------
    DataFrame
        What :func:`psychometrics.asking.ask.ask` gives, one combination below another, with a
        column of
        its own for each condition varied. ``attrs["summary"]`` has the sums over combinations.

    Raises
    ------
    ParameterError
        A condition has no values, is given twice, or is none of the mode; nobody is asked.

    References
    ----------
    Huang et al. (2024), sections 3 and 4: roles, wordings, runs, labels, order, cipher.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> table = crossed(mini, 2, {"runs": [1, 2]}, mode="simulated")
    >>> len(table) == 2 * 20 * (1 + 2)
    True
    """
    if twice := sorted(set(conditions) & set(how)):
        raise ParameterError(f"'{twice[0]}' is varied and held at once: leave one out.")
    for name, values in conditions.items():
        if isinstance(values, str) or not len(values):
            raise ParameterError(f"'{name}' needs a list of values, got {values!r}.")
    options = {name: how.pop(name) for name in ("dtype", "progress") if name in how}
    options = {"progress": False} | options
    conditions_of(mode, dict.fromkeys([*conditions, *how]))
    if not isinstance(respondents, str) and hasattr(respondents, "__next__"):
        respondents = list(respondents)
    parts, summary = [], {"asked": 0, "from_store": 0, "unanswered": 0, "seconds": 0.0}
    for values in itertools.product(*conditions.values()):
        varied = dict(zip(conditions, values, strict=True))
        answers = ask(questionnaires, respondents, store, mode, **options, **how, **varied)
        summary = {name: summary[name] + answers.attrs["summary"][name] for name in summary}
        parts.append(answers.assign(**varied))
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {"summary": summary}
    return table


def rates(
    answers: pd.DataFrame, by: Sequence[str], statuses: Sequence[str] = ("ok", "refused")
) -> pd.DataFrame:
    """How many answers could be read, how many were refused, with Wilson 95 % intervals.

    Parameters
    ----------
    answers : DataFrame
        One row per item and run, with ``status``.
    by : sequence of str
        What tells ways of asking apart.
    statuses : sequence of str
        Which shares are wanted.

    Returns
    -------
    DataFrame
        ``by``, ``status, n`` (answers asked for), ``count, share, low, high``. Answers to several
        items in one reply stand or fall together, which the interval does not know.

    Raises
    ------
    ParameterError
        A column is missing.

    References
    ----------
    Wilson (1927).

    Examples
    --------
    >>> given = pd.DataFrame({"role": ["hero"] * 4, "status": ["ok", "ok", "ok", "refused"]})
    >>> rates(given, ["role"])[["count", "share", "low", "high"]].round(2).iloc[0].tolist()
    [3.0, 0.75, 0.3, 0.95]
    """
    from statsmodels.stats.proportion import proportion_confint

    check_columns(answers, [*by, "status"])
    rows = []
    for names, part in answers.groupby(list(by), sort=False, dropna=False):
        for status in statuses:
            n, count = len(part), int((part["status"] == status).sum())
            low, high = proportion_confint(count, n, method="wilson")
            row = dict(zip(by, names, strict=True)) | {"status": status, "n": n, "count": count}
            rows.append(row | {"share": count / n, "low": low, "high": high})
    columns = [*by, "status", "n", "count", "share", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


CHAT_WAYS = {
    "one at a time": {},
    "letters": {"labels": "alphabetical"},
    "JSON": {"reply": "json"},
    "all at once": {"batch_size": 100},
    "temperature 1": {"temperature": 1.0},
    "thinking first": {"think": True, "max_tokens": 96},
    "cipher": {"cipher": 3},
    "constrained": {"constrained": True},
    "constrained, options reversed": {"constrained": True, "order": "reversed"},
    "constrained, psychopath": {"constrained": True, "role": "psychopath"},
}
"""Ways of asking in a conversation: what differs from one statement at a time, greedily."""

CROSSING = {
    "wording": ["v1", "v2", "v4"],
    "permutations": ["given", "reversed"],
    "role": ["default", "hero", "psychopath"],
}
"""What is crossed with the items where a model is asked for its options' labels."""


def by_way(
    questionnaire: str | Path | Questionnaire,
    respondents: object,
    ways: Mapping[str, Mapping] = CHAT_WAYS,
    mode: str = "chat",
    store: str | Path | None = None,
    **how: object,
) -> pd.DataFrame:
    """Ask in several named ways, each once and without asking again.

    Parameters
    ----------
    questionnaire, respondents, mode, store
        As in :func:`psychometrics.asking.ask.ask`.
    ways : mapping of str to mapping
        What each way has for conditions.
    **how
        What all have in common, which a way's own conditions go before.

    Returns
    -------
    DataFrame
        What :func:`psychometrics.asking.ask.ask` gives, one way below another, with a column
        ``way``.
    """
    usual = {"runs": 1, "ask_again": 0, "shuffle": False, "batch_size": 1} if mode == "chat" else {}
    parts = []
    for way, own in ways.items():
        given = {"progress": False, **usual, **how, **own}
        parts.append(ask(questionnaire, respondents, store, mode, **given).assign(way=way))
    return pd.concat(parts, ignore_index=True)
