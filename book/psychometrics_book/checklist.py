"""Fill in a reporting checklist from a page, and mark the items that its author must add.

Fourteen items are the core items of GUIDE-LLM, in our words; this book adds four items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from psychometrics import __version__
from psychometrics.checks import check_columns
from psychometrics.data import shipped, write_text

_STATUSES = ("known", "to be added by the author", "missing")
"""The statuses of an item: answered, left to the author, or missing from the record."""
_LOCAL = ("nli", "mlm", "nsp", "acceptability", "causal")
"""The modes that use only models on this machine; other modes may ask an endpoint."""
_PAGE = f"the notebook behind this page, run with psychometrics {__version__}"


def checklist(entries: Mapping[str, str]) -> pd.DataFrame:
    """Return the reporting checklist with the known answers filled in.

    Parameters
    ----------
    entries : mapping of str to str
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
    table["answer"] = pd.Series(entries, dtype=object).reindex(table.index).fillna("")

    by_author = table["known_by"] == "author"
    table["status"] = by_author.map({True: _STATUSES[1], False: _STATUSES[2]})
    table.loc[table["answer"] != "", "status"] = _STATUSES[0]

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
    run = asked["how"]
    entries = _of_asking(run["mode"], questionnaires)
    entries["B.1"] = f"{run['model']}, revision {run['revision']}"
    entries["B.3"] = f"conditions: {run['conditions']}; precision: {run['precision']}"
    entries["E.2"] = f"left out, as refused or unreadable: {run['refused or unreadable']}"
    entries["F.1"] = _PAGE
    entries["N.1"] = run.get("null respondents", "the same answers dealt to other items at random")
    return checklist(entries)


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
    entries = _placebos(answers["questionnaire"].unique())
    entries["E.2"] = f"answers that are missing or cannot be read: {left_out} (see What was read)"
    entries["N.1"] = "random answers, and respondents with nothing but a habit"
    entries["N.3"] = f"{respondents} respondents; {runs} runs, averaged for each respondent"
    return checklist(entries)


def of_study(study, tables: Mapping[str, object]) -> pd.DataFrame:
    """Return the reporting checklist of a completed study.

    Parameters
    ----------
    study : Study
        The study, as :func:`psychometrics_book.studies.study_files.load_study` returns it.
    tables : mapping
        The tables of :func:`psychometrics_book.studies.study.study_tables`.
    """
    run = tables["asked"]["how"]
    plan = tables["plan"]["value"]
    entries = _of_asking(study.mode, study.questionnaires)
    entries["A.1"] = study.question
    entries["E.2"] = (
        f"answers refused or unreadable, which are left out: {run['without an answer']}"
    )
    if study.mode != "file":  # a table does not say who was asked, and by which code
        entries["B.1"] = f"{run['respondents']}; the record keeps their fingerprints; {run['runs']}"
        entries["B.3"] = f"conditions: {run['conditions']}; seeds: {run['seeds']}"
        entries["F.1"] = f"the study's file and {_PAGE}"
    planned = "no plan" if study.is_exploratory else f"planned on {plan['planned on']}"
    entries["N.4"] = f"{planned}; {plan['plan']}"

    if isinstance(tables.get("evidence"), pd.DataFrame):
        entries["N.1"] = "null respondents, or the same answers dealt at random: see Evidence"
    if isinstance(tables.get("reliability"), pd.DataFrame):
        entries["N.3"] = "alpha over respondents; expectations over items"

    return checklist(entries)


def to_markdown(table: pd.DataFrame, path: str | Path) -> None:
    """Write a checklist as a Markdown table.

    Parameters
    ----------
    table : DataFrame
        The checklist, as :func:`checklist` returns it, with or without its index.
    path : str or Path

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "checklist.md"
    >>> to_markdown(checklist({}), path)
    >>> path.read_text().splitlines()[2]
    '| A.1 | What the language models were used for | to be added by the author |  | GUIDE-LLM |'
    """
    frame = table if "item" in table else table.reset_index()
    rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.fillna("").to_numpy().tolist()]
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    write_text(Path(path), "\n".join([*lines, ""]))


def _of_asking(mode: str, questionnaires: Iterable[str]) -> dict[str, str]:
    """Return the checklist items about how a mode asks; a table of answers lacks them."""
    names = list(questionnaires)
    entries = _placebos(names)
    if mode == "file":
        return entries

    entries["A.2"] = "fully automated"
    entries["C.1"] = f"psychometrics prompts {names[0]} --mode {mode} prints them; others likewise"

    if mode in _LOCAL:
        entries["B.2"] = f"weights on this machine, mode {mode}, a separate call for each prompt"
        entries["B.5"] = "no state is kept"
        entries["C.2"] = "none"
    else:
        entries["B.2"] = f"mode {mode}"

    return entries


def _placebos(questionnaires: Iterable[str]) -> dict[str, str]:
    placebos = [name for name in map(str, questionnaires) if "placebo" in name]
    return {"N.2": ", ".join(placebos)} if placebos else {}
