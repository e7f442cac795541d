"""Fill in a reporting checklist from a page, and mark the items that its author must add.

Fourteen items are the core items of GUIDE-LLM, in our words; this book adds four items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from .. import __version__
from ..checks import check_columns
from ..data import shipped

_LOCAL = ("nli", "mlm", "nsp", "acceptability", "causal")
"""The modes that use only models on this machine; other modes may ask an endpoint."""
_PAGE = f"the notebook beside this page, for psychometrics {__version__}"


def checklist(known: Mapping[str, str]) -> pd.DataFrame:
    """Return the reporting checklist with the known answers filled in.

    Parameters
    ----------
    known : mapping of str to str
        Answers by item, such as ``"B.1"``.

    Returns
    -------
    DataFrame
        Indexed by ``item``: ``asks``, ``status`` ("known", "to be added by the author" or
        "missing"), ``answer`` and the item's ``source``.

    References
    ----------
    GUIDE-LLM (2026), https://llm-checklist.com/checklist, for the items A.1 to G.1.

    Examples
    --------
    >>> table = checklist({"B.1": "MiniLM, revision 8b3219a"})
    >>> table.loc[["A.1", "B.1", "N.1"], "status"].tolist()
    ['to be added by the author', 'known', 'missing']
    """
    table = pd.read_csv(shipped("checklist.csv"), index_col="item")
    table["answer"] = pd.Series(known, dtype=object).reindex(table.index).fillna("")

    table["status"] = np.where(
        table["known_by"] == "author", "to be added by the author", "missing"
    )
    table.loc[table["answer"] != "", "status"] = "known"

    return table[["asks", "status", "answer", "source"]]


def of_profile(asked: pd.DataFrame, questionnaires: Iterable[str]) -> pd.DataFrame:
    """Return the reporting checklist of a profile.

    Parameters
    ----------
    asked : DataFrame
        The table ``asked`` that :func:`psychometrics.reports.profiles.assess` returns.
    questionnaires : iterable of str

    Examples
    --------
    >>> rows = {"model": "MiniLM (embedded)", "revision": "1", "mode": "nli", "conditions": "none",
    ...         "precision": "float32", "refused or unreadable": "0"}
    >>> asked = pd.DataFrame({"how": rows})
    >>> of_profile(asked, ["gad7"]).loc[["B.1", "N.2"], "status"].tolist()
    ['known', 'missing']
    """
    conditions = asked["how"]
    answered = describe_asking(conditions["mode"], questionnaires)
    answered["B.1"] = f"{conditions['model']}, revision {conditions['revision']}"
    answered["B.3"] = (
        f"conditions: {conditions['conditions']}; precision: {conditions['precision']}"
    )
    answered["E.2"] = f"left out, as refused or unreadable: {conditions['refused or unreadable']}"
    answered["F.1"] = _PAGE
    answered["N.1"] = conditions.get(
        "null respondents", "the same answers dealt to other items at random"
    )
    if "controls" in conditions:
        answered["N.2"] = f"{conditions['controls']} (see the five tests)"

    return checklist(answered)


def of_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the reporting checklist for a table of answers, whose origin is mostly unknown.

    Parameters
    ----------
    answers : DataFrame
        Answers, as :func:`psychometrics.answers.files.read_all` returns them.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> table = of_answers(empty_answers("gad7", respondents=3))
    >>> table.loc[["A.2", "B.1", "N.3"], "status"].tolist()
    ['missing', 'missing', 'known']
    """
    check_columns(answers, ["respondent_id", "questionnaire", "run", "status"])
    respondents = answers["respondent_id"].nunique()
    runs = answers[["respondent_id", "run"]].drop_duplicates().shape[0]
    left_out = int((answers["status"] != "ok").sum())
    answered = _placebos(answers["questionnaire"].unique())
    answered["E.2"] = f"answers that are missing or cannot be read: {left_out} (see What was read)"
    answered["N.1"] = "random answers, and respondents with nothing but a habit"
    answered["N.3"] = f"{respondents} respondents; {runs} runs, averaged for each respondent"
    return checklist(answered)


def describe_asking(mode: str, questionnaires: Iterable[str]) -> dict[str, str]:
    """Return the checklist items about how a mode asks; a table of answers lacks them.

    Examples
    --------
    >>> describe_asking("nli", ["gad7"])["B.5"]
    'no state is kept'
    """
    names = list(questionnaires)
    answered = _placebos(names)
    if mode == "file":
        return answered

    answered["A.2"] = "fully automated"
    answered["C.1"] = f"psychometrics prompts {names[0]} --mode {mode} prints them; others likewise"

    if mode in _LOCAL:
        answered["B.2"] = f"weights on this machine, mode {mode}, a separate call for each prompt"
        answered["B.5"] = "no state is kept"
        answered["C.2"] = "none"
    else:
        answered["B.2"] = f"mode {mode}"

    return answered


def _placebos(questionnaires: Iterable[str]) -> dict[str, str]:
    placebos = [name for name in map(str, questionnaires) if "placebo" in name]
    return {"N.2": ", ".join(placebos)} if placebos else {}
