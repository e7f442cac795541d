"""Ask under several conditions, crossed or named one by one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..exceptions import ParameterError
from ..questionnaires import Questionnaire
from .ask import ask


def ask_crossed(
    questionnaires: str | Path | Questionnaire | Sequence[str | Path | Questionnaire],
    respondents: object,
    conditions: Mapping[str, Sequence],
    mode: str = "chat",
    store: str | Path | None = None,
    **how: object,
) -> pd.DataFrame:
    """Ask under every combination of conditions.

    Parameters
    ----------
    questionnaires, respondents, mode, store
        As in :func:`psychometrics.asking.ask.ask`.
    conditions : mapping of str to sequence
        Values of each condition that is varied, such as ``role``, ``wording`` or ``order``.
    **how
        Conditions that stay the same, and ``dtype``.

    Returns
    -------
    DataFrame
        Answers of all combinations, with a column for each condition that is varied.
        ``attrs["summary"]`` holds the sums over combinations.

    Raises
    ------
    ParameterError
        A condition has no values, is given twice, or is unknown to the mode; nobody is asked.

    References
    ----------
    Huang et al. (2024), sections 3 and 4: roles, wordings, runs, labels, order, cipher.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> mini = load_questionnaire("ipip20")
    >>> table = ask_crossed(mini, 2, {"runs": [1, 2]}, mode="simulated")
    >>> len(table) == 2 * 20 * (1 + 2)
    True
    """
    if twice := sorted(set(conditions) & set(how)):
        raise ParameterError(f"'{twice[0]}' is varied and held at once: leave one out.")
    for name, values in conditions.items():
        if isinstance(values, str) or not len(values):
            raise ParameterError(f"'{name}' needs a list of values, got {values!r}.")
    how = {"progress": False} | how
    if not isinstance(respondents, str) and hasattr(respondents, "__next__"):
        respondents = list(respondents)
    parts, summary = [], {"asked": 0, "from_store": 0, "unanswered": 0, "seconds": 0.0}
    for values in itertools.product(*conditions.values()):
        varied = dict(zip(conditions, values, strict=True))
        answers = ask(questionnaires, respondents, store, mode, **how, **varied)
        summary = {name: summary[name] + answers.attrs["summary"][name] for name in summary}
        parts.append(answers.assign(**varied))
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {"summary": summary}
    return table


def ask_ways(
    questionnaire: str | Path | Questionnaire,
    respondents: object,
    ways: Mapping[str, Mapping],
    mode: str = "chat",
    store: str | Path | None = None,
    **how: object,
) -> pd.DataFrame:
    """Ask in several named ways.

    In mode ``chat`` each item is asked once, alone, in its order, and not asked again.

    Parameters
    ----------
    questionnaire, respondents, mode, store
        As in :func:`psychometrics.asking.ask.ask`.
    ways : mapping of str to mapping
        Conditions of each way.
    **how
        Conditions that all ways share, unless a way has its own.

    Returns
    -------
    DataFrame
        Answers of all ways, with a column ``way``.

    Examples
    --------
    >>> ways = {"sentence": {}, "this is": {"wording": "This is {label}."}}
    >>> table = ask_ways("ipip20", ["minilm-mnli-l3-s16"], ways, mode="options")
    >>> table["way"].value_counts().to_dict()
    {'sentence': 20, 'this is': 20}
    """
    usual = {"runs": 1, "ask_again": 0, "shuffle": False, "batch_size": 1} if mode == "chat" else {}
    parts = []
    for way, own in ways.items():
        given = {"progress": False, **usual, **how, **own}
        parts.append(ask(questionnaire, respondents, store, mode, **given).assign(way=way))
    return pd.concat(parts, ignore_index=True)
