"""Surveys: put a questionnaire with attention checks to people, and screen their answers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..answers.files import read_all
from ..answers.tables import read_table
from ..checks import check_columns, check_numbers
from ..data import write_csv, write_text
from ..exceptions import ParameterError, check_file
from ..modes.messages import attention_text
from ..questionnaires import Item, Questionnaire, load_questionnaire
from ..questionnaires.answers import IDENTITY, check_loaded

_CHECK = "attention_"
# The fewest seconds in which a person can read an item (Huang et al. 2012).
_FASTEST = 2.0
# The largest share of items without an answer.
_MOST_MISSING = 0.1
_PAGE = (Path(__file__).parent / "templates" / "survey.html").read_text(encoding="utf-8")


def survey(
    questionnaire: str | Path | Questionnaire, checks: int = 2, seed: int = 0
) -> Questionnaire:
    """Add attention checks to a questionnaire: items that ask for a particular answer.

    No scale contains the checks, so scores do not change.

    Parameters
    ----------
    questionnaire : str, Path or Questionnaire
        A questionnaire with options.
    checks : int
        Number of checks, which are spread over the items.
    seed : int
        Seed that determines the answers that the checks ask for.

    Returns
    -------
    Questionnaire
        The questionnaire with the checks, under the same id.

    Raises
    ------
    ParameterError
        The questionnaire has no options, there are more checks than items, or an item has the name
        of a check.

    References
    ----------
    Meade and Craig (2012).

    Examples
    --------
    >>> [item.id for item in survey("gad7").items][1:4]
    ['gad7_2', 'attention_1', 'gad7_3']
    """
    loaded = load_questionnaire(questionnaire)
    check_numbers(checks=checks, seed=seed)
    if checks > len(loaded.items):
        raise ParameterError(f"{loaded.id}: use at most {len(loaded.items)} checks, got {checks}.")
    if any(item.id.startswith(_CHECK) for item in loaded.items):
        raise ParameterError(f"{loaded.id}: {_CHECK}1, ... are ids of checks; rename the items.")

    rng = np.random.default_rng(seed)
    items = list(loaded.items)
    places = np.linspace(0, len(items), checks + 2)[1:-1].round().astype(int)
    for number in range(checks, 0, -1):  # from the end, to keep earlier positions valid
        before = loaded.items[max(places[number - 1] - 1, 0)]
        loaded.ends(before)  # raises an error if there are no options
        choices = loaded.choices(before)
        option = choices[rng.integers(len(choices))]
        text = attention_text(loaded, option)
        check = Item(id=f"{_CHECK}{number}", text=text, options=choices)
        items.insert(places[number - 1], check)

    return loaded.model_copy(update={"items": tuple(items)})


def write_survey(questionnaire: Questionnaire, path: str | Path) -> None:
    """Write a survey as a page to fill in, or as a table for a different survey tool.

    Parameters
    ----------
    questionnaire : Questionnaire
        The survey, as :func:`survey` returns it.
    path : str or Path
        ``.html``: a page that works without a server; its button saves the answers and the seconds
        taken in a CSV file. ``.csv``: a table with the columns ``item_id, item, options``.

    Raises
    ------
    ParameterError
        The file has a different extension, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "gad7.csv"
    >>> write_survey(survey("gad7"), file)
    >>> len(pd.read_csv(file))
    9
    """
    path = check_file(path, (".html", ".csv"))
    if path.suffix == ".html":
        groups = []
        for item in questionnaire.items:
            buttons = "\n".join(
                f'<label><input type="radio" name="{item.id}" value="{option.value:g}"> '
                f"{escape(option.label)}</label>"
                for option in questionnaire.choices(item)
            )
            text = escape(_write_item(questionnaire, item))
            groups.append(f'<fieldset id="{item.id}"><legend>{text}</legend>\n{buttons}</fieldset>')

        page = _PAGE.format(
            language=escape(questionnaire.language),
            title=escape(questionnaire.title),
            instructions=escape(questionnaire.instructions or ""),
            items="\n".join(groups),
            name=questionnaire.id,
        )
        write_text(path, page)
        return

    rows = [
        {
            "item_id": item.id,
            "item": _write_item(questionnaire, item),
            "options": "; ".join(f"{o.value:g}={o.label}" for o in questionnaire.choices(item)),
        }
        for item in questionnaire.items
    ]
    write_csv(pd.DataFrame(rows), path)


def screen(answers: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Apply rules fixed in advance to determine which people answered a survey carefully.

    Parameters
    ----------
    answers : DataFrame
        Answers to a :func:`survey`, as :func:`psychometrics.read_answers` returns them. If there is
        a column ``seconds`` with the time that a person took, include it in ``conditions`` when
        you read the file; at least two seconds per item are required.
    questionnaire : Questionnaire
        The survey. At most a tenth of its items may lack an answer.

    Returns
    -------
    DataFrame
        One row per person and run: ``respondent_id, run``; ``failed``, the attention checks with a
        wrong answer; ``alike``, whether all items have the same answer although some are
        reverse-keyed (without reverse-keyed items, equal answers may be sincere); ``pace``, seconds
        per item; ``missing``, the share without an answer; ``why``, the broken rules, or *seconds*
        if the column has no number for this person; and ``kept``.

    Raises
    ------
    ParameterError
        A column is missing, the questionnaire has no attention check, or nobody answered one.

    References
    ----------
    Meade and Craig (2012) for checks and equal answers; Huang et al. (2012) for the minimum of two
    seconds.

    Examples
    --------
    >>> asked = survey("ipip20")
    >>> rows = [{"item_id": item.id, "value": 3.0} for item in asked.items]
    >>> answers = pd.DataFrame(rows).assign(respondent_id="a", questionnaire="ipip20", mode="file",
    ...                                     run=1, status="ok")
    >>> screen(answers, asked)["why"].tolist()
    ['attention, alike']
    """
    check_columns(answers, IDENTITY, ["value"])
    check_loaded([questionnaire])
    required = {  # the value that each attention check asks for
        item.id: option.value
        for item in questionnaire.items
        if item.id.startswith(_CHECK)
        for option in questionnaire.choices(item)
        if attention_text(questionnaire, option) == item.text
    }
    if not required:
        raise ParameterError(f"{questionnaire.id} has no attention check; use survey() first.")

    checks = answers[answers["item_id"].isin(required)]
    if (checks["status"] == "missing").all():
        raise ParameterError(
            f"answers: nobody answered {' or '.join(required)}; export these columns, too."
        )

    item_ids = [item.id for item in questionnaire.items if item.id not in required]
    signs = {key for scale in questionnaire.scales for key in questionnaire.keys(scale).values()}
    rows = []
    for (who, run), group in answers.groupby(["respondent_id", "run"], sort=False):
        values = group.set_index("item_id")["value"].where(group["status"].to_numpy() == "ok")
        item_values = values.reindex(item_ids)
        row = {"respondent_id": who, "run": run}
        row["failed"] = sum(values.get(name) != value for name, value in required.items())
        row["alike"] = len(signs) == 2 and item_values.nunique() == 1
        cell = group["seconds"].iloc[0] if "seconds" in group else np.nan
        took = float(pd.to_numeric(cell, errors="coerce"))
        row["pace"] = took / len(questionnaire.items)
        row["missing"] = item_values.isna().mean()

        broken = {"attention": row["failed"] > 0, "alike": row["alike"]}
        broken |= {"pace": row["pace"] < _FASTEST, "seconds": "seconds" in group and np.isnan(took)}
        broken |= {"missing": row["missing"] > _MOST_MISSING}
        row["why"] = ", ".join(name for name, is_broken in broken.items() if is_broken)
        rows.append(row | {"kept": not row["why"]})

    return pd.DataFrame(rows)


def read_survey(
    files: Sequence[str | Path], questionnaire: Questionnaire, **settings: object
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read people's answers to a survey, and keep the careful ones.

    Parameters
    ----------
    files : sequence of str or Path
        Files that the page saved, or tables of a survey tool; a column ``seconds``, if there is
        one, has the time that each person took.
    questionnaire : Questionnaire
        The survey.
    **settings
        As in :func:`psychometrics.read_answers`.

    Returns
    -------
    answers : DataFrame
        The answers of the careful people, without the attention checks.
    screened : DataFrame
        The result of :func:`screen` for everyone.

    Raises
    ------
    ParameterError
        No file is named, a file cannot be read, or two files have a respondent in common.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("respondent,seconds,gad7_1,attention_1\\na,90,3,3\\n")
    >>> answers, screened = read_survey([file], survey("gad7"), progress=False)
    >>> len(answers), screened["why"].tolist()
    (0, ['attention, missing'])
    """
    if not len(files):
        raise ParameterError("files: no file is named; name files of answers.")

    parts = []
    for file in files:
        has_seconds = "seconds" in read_table(file).cells
        options: dict[str, Any] = {"conditions": "seconds" if has_seconds else (), "progress": True}
        parts.append(read_all(file, [questionnaire], **(options | settings)))

    answers = pd.concat(parts, ignore_index=True)
    check_columns(answers, IDENTITY, ["value"], ["respondent_id", "run", "item_id"])
    screened = screen(answers, questionnaire)
    careful = screened.loc[screened["kept"], ["respondent_id", "run"]]
    without_checks = answers[~answers["item_id"].str.startswith(_CHECK)]
    return without_checks.drop(columns="seconds", errors="ignore").merge(careful), screened


def _write_item(questionnaire: Questionnaire, item: Item) -> str:
    """Return the text that a person reads; a check gets no stem and no full stop."""
    return item.text if item.id.startswith(_CHECK) else questionnaire.statement(item)
