"""The page of a study: what was expected, what was found, and the reporting checklist."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from psychometrics import __version__
from psychometrics.data import write_csv, write_text
from psychometrics.formats import number
from psychometrics.reports.checklist import checklist, describe_asking
from psychometrics.reports.contents import make_checklist, make_table
from psychometrics.reports.five_tests import QUESTIONS
from psychometrics.reports.pages import (
    Picture,
    draw_differences,
    format_markdown,
    make_notebook,
    write_page,
)
from psychometrics.reports.printing import check_page
from psychometrics.reports.report import NamedTest, Report, Statement, Table

from .study import study_tables
from .study_files import Study, load_study

_TITLES = {
    "expectations": "Expectations and results.",
    "plan": "What was expected before anything was asked.",
    "scores": "Mean item scores over seeds, with 95 % intervals over items.",
    "effects": "Effects that were not planned.",
    "reliability": "Cronbach's alpha over respondents, with Feldt's 95 % interval.",
    "evidence": "Whether each respondent's scores may be interpreted.",
    "asked": "How the study was run, and which respondents failed.",
}
_NOTES = {
    "expectations": "An expectation is tested on the differences in the scale's items, averaged "
    "over seeds. The interval and p treat respondents, ways of asking and items as sampled, and "
    "the widest interval counts. A verdict on one respondent is about this model only.",
    "plan": "The first run fixes the plan. The date is the one that the author typed; the record "
    "is no older than the first run.",
    "effects": "Each value of a condition is compared with the first value. These effects were not "
    "predicted, and p is not corrected: about one comparison in 20 has p below .05 by chance.",
    "evidence": "✗ means that a score must not be interpreted, ! that it needs reservations.",
}
_FORMS = {"p": "p", "p corrected": "p"}


def write_study_report(
    path: str | Path, page: str | Path, store: str | Path | None = None
) -> list[Path]:
    """Write the page of a completed study, with its tables, its checklist and its notebook.

    Parameters
    ----------
    path : str or Path
        The study's file.
    page : str or Path
        The page, .html or .pdf. The checklist is written beside it, and the tables and the notebook
        into the study's folder.
    store : str or Path, optional
        The store of the answers.

    Returns
    -------
    list of Path
        The page and the checklist.

    Raises
    ------
    ParameterError
        As in :func:`~psychometrics_book.studies.study.study_tables`, or the page cannot be written.

    Examples
    --------
    >>> write_study_report("nowhere.yaml", "report.html")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml: cannot be read (No such \
file or directory); name a readable file.
    """
    study = load_study(path, was_run=True)
    page = check_page(page)
    tables = study_tables(path, store)
    report = report_study(study, tables, f"psychometrics study report {path}")
    cells = [
        "import psychometrics_book as book",
        f"tables = book.study.study_tables({str(path)!r}, {store!r})",
        'tables["scores"]',
    ]
    notebook = make_notebook(report, cells)
    write_page(report, _draw(tables), [page], notebook)

    folder = Path(path).with_suffix("")
    write_text(folder / "report.ipynb", notebook)
    write_text(page.with_suffix(".json"), report.to_json())
    saved = folder / "report"
    saved.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame):
            is_indexed = table.index.name is not None
            write_csv(table.reset_index() if is_indexed else table, saved / f"tab-study-{name}.csv")

    markdown = page.with_name("checklist.md")
    write_text(markdown, format_markdown(report.checklist))
    return [page, markdown]


def report_study(
    study: Study, tables: Mapping[str, pd.DataFrame | str], command: str = ""
) -> Report:
    """Return the content of a study's page.

    Parameters
    ----------
    study : Study
    tables : mapping
        The tables of :func:`psychometrics_book.studies.study.study_tables`.
    command : str
        The command that made the page.
    """
    main = "expectations" if isinstance(tables.get("expectations"), pd.DataFrame) else "scores"
    if main not in tables:
        main = "asked"

    reason = "The study leaves this analysis out."
    details = [_table(name, tables.get(name, reason)) for name in _TITLES if name != main]
    kind = "exploratory: it has no plan" if study.is_exploratory else "planned"
    statements = []
    if study.is_exploratory:
        text = "Write that this study is exploratory: it had no plan, so its results test nothing."
        statements.append(
            Statement(about="This study", case="not compared", verdict="Exploratory", text=text)
        )

    if main == "expectations":
        rows = tables["expectations"].iterrows()
        statements += [state_expectation(row) for _, row in rows]

    return Report(
        kind="study",
        title=study.title,
        about=f"{study.question} · {kind} · mode {study.mode}",
        statements=statements,
        tests=_list_tests(tables),
        results=_table(main, tables[main]),
        details=details,
        checklist=make_checklist(study_checklist(study, tables)),
        command=command,
    )


def _list_tests(tables: Mapping[str, pd.DataFrame | str]) -> list[NamedTest]:
    """Return the five tests of the page; without the analysis *evidence* none was done."""
    table = tables.get("tests", "The study leaves the analysis evidence out.")
    if isinstance(table, pd.DataFrame):
        rows = table.assign(results=table["results"].str.split("\n")).to_dict("records")
        return [NamedTest(**row) for row in rows]

    not_done = {
        "status": "not done", "done": table, "results": ["Not known."],
        "meaning": "Add evidence to the analyses in the study's file, and write the report again.",
    }  # fmt: skip
    return [NamedTest(name=name, question=text, **not_done) for name, text in QUESTIONS.items()]


def state_expectation(row: pd.Series) -> Statement:
    """Return the sentence about one expectation.

    Examples
    --------
    >>> row = pd.Series({"expectation": "Anxiety is lower.", "scale": "Anxiety", "difference": -0.2,
    ...                  "low": -0.3, "high": -0.1, "verdict": "✓ as expected"})
    >>> state_expectation(row).text
    'You may write, as planned: Anxiety is lower. The difference is −0.200 (−0.300 to −0.100).'
    """
    mark, _, verdict = row["verdict"].partition(" ")
    expectation = row["expectation"].rstrip(".")
    value = f"{number(row['difference'], '.3f')} "
    value += f"({number(row['low'], '.3f')} to {number(row['high'], '.3f')})"
    text = f"Do not write: {expectation}. The difference is {value}: {verdict}."
    if mark == "✓":
        text = f"You may write, as planned: {expectation}. The difference is {value}."

    if row["verdict"].endswith("this model only") and mark == "✓":
        text += " This holds for this model only."

    case = {"✓": "passes", "✗": "fails"}.get(mark, "reservations")
    return Statement(about=row["scale"], case=case, verdict=verdict, text=text)


def _table(name: str, table: pd.DataFrame | str) -> Table:
    """Return a table of the page, or the reason why there is none."""
    if isinstance(table, str):
        return Table(name=name, title=_TITLES[name], columns=[], rows=[], note=table)

    frame = table.reset_index() if table.index.name is not None else table
    is_number = frame.dtypes.map(pd.api.types.is_float_dtype)
    columns = {
        column: (column, _FORMS.get(column, ".3f")) if is_number[column] else column
        for column in frame.columns
    }
    if "verdict" in columns:
        columns = {"verdict": columns.pop("verdict")} | columns

    return make_table(name, _TITLES[name], frame, columns, _NOTES.get(name, ""))


def _draw(tables: Mapping[str, pd.DataFrame | str]) -> Picture | None:
    """Return the picture of the expected differences, or of the effects."""
    for name, label in (("expectations", "expectation"), ("effects", "condition")):
        table = tables.get(name)
        if isinstance(table, pd.DataFrame):
            rows = table["scale"] + ": " + table[label] if name == "effects" else table[label]
            return draw_differences(table.assign(row=rows))

    return None


def study_checklist(study: Study, tables: Mapping[str, object]) -> pd.DataFrame:
    """Return the reporting checklist of a completed study.

    Parameters
    ----------
    study : Study
        The study, as :func:`~psychometrics_book.studies.study_files.load_study` returns it.
    tables : mapping
        The tables of :func:`psychometrics_book.studies.study.study_tables`.
    """
    run = tables["asked"]["how"]
    plan = tables["plan"]["value"]
    facts = describe_asking(study.mode, study.questionnaires)
    facts["A.1"] = study.question
    facts["E.2"] = f"answers refused or unreadable, which are left out: {run['without an answer']}"
    if study.mode != "file":  # a table does not say who was asked, and by which code
        facts["B.1"] = f"{run['respondents']}; the record keeps their fingerprints; {run['runs']}"
        facts["B.3"] = f"conditions: {run['conditions']}; seeds: {run['seeds']}"
        facts["F.1"] = f"the study's file and its notebook, for psychometrics {__version__}"
    planned = "no plan" if study.is_exploratory else f"planned on {plan['planned on']}"
    facts["N.4"] = f"{planned}; {plan['plan']}"

    if isinstance(tables.get("evidence"), pd.DataFrame):
        facts["N.1"] = "null respondents, or the same answers dealt at random: see Evidence"
    if isinstance(tables.get("reliability"), pd.DataFrame):
        facts["N.3"] = "alpha over respondents; expectations over items"

    return checklist(facts)
