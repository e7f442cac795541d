"""Read existing answers from any table into a frame like that of ``ask``, and write answers.

No decision is silent. The notes begin with the contents of the table, continue with each decision
and the setting that changes it, and end with the omissions and their reasons.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ..checks import check_choice, check_columns, check_kinds
from ..data import write_csv, write_text
from ..exceptions import DataError, ParameterError, check_file, writing
from ..files import replacing
from ..measures.intervals import correlation_interval
from ..questionnaires import Questionnaire, load_questionnaire
from ..questionnaires.answers import COLUMNS, check_loaded, tidy
from .cells import _CellReader
from .layout import _Layout, _LayoutReader
from .tables import _Notes, library, listed, read_table, several

# The value of the column ``mode`` for answers from a file, unless the table has its own.
_MODE = "file"
# Fewest respondents for a correlation over respondents.
_LEAST = 10
_SPSS_KEYWORDS = ("ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH")
_NAMES = ("respondent", "run", "item", "value")
_SETTINGS = dict.fromkeys(_NAMES, str | None) | {
    "conditions": str | Sequence[str], "columns": str | Path | Mapping[Any, Any] | None,
    "numbers": Literal["auto", "values", "labels", "from 0", "from 1", "letters"],
    "already_reversed": bool | None,
    "progress": bool}  # fmt: skip
"""The settings of :func:`read_answers`, with their types."""


def read_answers(
    source: str | Path | pd.DataFrame,
    questionnaire: str | Path | Questionnaire,
    respondent: str | None = None,
    run: str | None = None,
    conditions: str | Sequence[str] = (),
    item: str | None = None,
    value: str | None = None,
    columns: str | Path | Mapping[str, str | int] | None = None,
    numbers: str = "auto",
    already_reversed: bool | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Read answers to a questionnaire from an existing table.

    The table is *wide*, with a row for each respondent or run and a column for each item, or
    *long*, with a row for each answer. Items are recognised by id, text or position.

    Parameters
    ----------
    source : str, Path or DataFrame
        A frame or a file: CSV, TSV, Excel, Parquet, SPSS or Stata, rows in JSON, an inspect log
        (``.eval``), samples of lm-evaluation-harness, results of EDSL, or the output of a batch
        API.
    questionnaire : str, Path or Questionnaire
        A questionnaire with options.
    respondent, run : str, optional
        The columns that name the respondents (several, separated by commas, are joined) and the
        runs (likewise); by default the first columns with a common name, such as ``model``, ``id``
        and ``seed``. If no column names the respondents, each row of a wide table is a respondent.
    conditions : str or sequence of str
        Further columns to keep. The runs of a respondent are then numbered over all conditions.
    item, value : str, optional
        Columns of a long table; by default the columns with common names, such as ``item`` and
        ``resp``.
    columns : str, Path or mapping, optional
        Item columns of a wide table: item ids or numbers by header, a table with the columns
        ``column`` and ``item_id``, or the beginning of the headers, such as ``"D"`` for D1, D2, ...
    numbers : {"auto", "values", "labels", "from 0", "from 1", "letters"}
        Meaning of numbers: the values of the questionnaire's options, their labels, or their
        positions counted from 0 or 1. By default the values; a table whose numbers fit only the
        positions is refused. ``letters``: A is the first option, also if it could abbreviate a
        label, such as *agree*. Labels in a file of SPSS or Stata count only by default.
    already_reversed : bool, optional
        Whether reverse-keyed items are already reversed in the table: those whose headers are
        marked, as in ``E5_R``, or else all. The reversal is then undone, since scores are computed
        from the original answers. By default no item is; a table whose headers are marked is
        refused, since a mark may also stand for the item's key.
    progress : bool
        Whether to print the contents and decisions.

    Returns
    -------
    DataFrame
        The columns of :func:`psychometrics.asking.ask` for answers to items: ``respondent_id,
        questionnaire, mode`` (``"file"``), ``run, item_id, value, status`` and the conditions, with
        a row for each item of each run. ``attrs["summary"]["read"]`` lists contents, decisions and
        omissions: ``what``, ``count`` and ``said``.

    Raises
    ------
    ParameterError
        The table has no item or no answer, a respondent has two different answers to an item,
        numbers or columns have two possible meanings, a setting does not fit, or a library is not
        installed.
    DataError
        The file cannot be read.

    Examples
    --------
    >>> table = pd.DataFrame({"model": ["a", "b"], "gad1": [1, "Not at all"], "gad2": [3, 0]})
    >>> answers = read_answers(table, "gad7", progress=False)
    >>> answers.loc[answers["status"] == "ok", ["respondent_id", "item_id", "value"]].to_numpy()
    array([['a', 'gad7_1', 1.0],
           ['a', 'gad7_2', 3.0],
           ['b', 'gad7_1', 0.0],
           ['b', 'gad7_2', 0.0]], dtype=object)
    """
    began = time.perf_counter()
    check_kinds(locals(), _SETTINGS)
    questionnaire = _with_options(questionnaire)
    table = read_table(source)
    notes = _Notes(table.place)

    for note in table.notes:
        notes.add("read", note)

    settings: dict[str, Any] = {"respondent": respondent, "run": run, "item": item, "value": value}
    settings["conditions"] = conditions
    if numbers != "auto":
        table.labels = {}
    layout = _LayoutReader(table, questionnaire, settings, columns, notes).read()
    if layout.answers.empty:
        raise ParameterError(f"{table.place}: has no rows below its headers; save the table again.")

    reader = _CellReader(questionnaire, numbers, already_reversed, table.replies)
    answers = reader.read(layout, notes)
    answers = _keep_each_once(answers, layout, notes)
    _note_doubts(answers, questionnaire, already_reversed, notes)

    frame = _complete_runs(answers, layout, questionnaire)

    if not (frame["status"] == "ok").any():
        raise ParameterError(f"{table.place}: no readable answer to {questionnaire.id}.\n{notes}")

    notes.begin(_describe_counts(frame, questionnaire))
    unread = int((frame["status"] != "ok").sum())
    summary: dict[str, Any] = dict.fromkeys(("asked", "from_store"), 0) | {"unanswered": unread}
    summary |= {"failed": {}, "kinds": {}, "precision": {}, "conditions": layout.conditions}
    summary |= {"seconds": round(time.perf_counter() - began, 2), "read": notes.rows}
    frame.attrs = {"summary": summary}
    if progress:
        print(notes, file=sys.stderr)

    return frame


def read_all(
    source: str | Path | pd.DataFrame,
    questionnaires: Sequence[str | Path | Questionnaire],
    progress: bool = False,
    **settings: Any,
) -> pd.DataFrame:
    """Read the answers to several questionnaires from one table.

    Parameters
    ----------
    source : str, Path or DataFrame
    questionnaires : sequence of str, Path or Questionnaire
    progress, **settings
        As in :func:`read_answers`.

    Returns
    -------
    DataFrame
        As :func:`read_answers` returns it; ``attrs["summary"]["read"]`` covers all questionnaires.

    Raises
    ------
    ParameterError, DataError
        As for :func:`read_answers`, or a setting is unknown.

    Examples
    --------
    >>> table = pd.DataFrame({"model": ["a"], "gad1": [1], "phq1": [2]})
    >>> read_all(table, ["gad7", "phq9"])["questionnaire"].unique().tolist()
    ['gad7', 'phq9']
    """
    for name in settings:
        check_choice(_SETTINGS, condition=name)

    tables = [read_answers(source, q, progress=progress, **settings) for q in questionnaires]
    answers = pd.concat(tables, ignore_index=True)
    summary = dict(tables[0].attrs["summary"])
    summary["read"] = [row for table in tables for row in table.attrs["summary"]["read"]]
    answers.attrs = {"summary": summary}
    return answers


def write_answers(
    table: pd.DataFrame, path: str | Path, questionnaires: Sequence[Any] = ()
) -> None:
    """Write answers, or a table of scores, in the format of the file's extension.

    Parameters
    ----------
    table : DataFrame
        Answers, as :func:`psychometrics.asking.ask` or :func:`read_answers` returns them. Formats
        that do not need items also accept a table of scores.
    path : str or Path
        ``.wide.csv``, a row for each run and a column for each item; ``.irw.csv``, the long format
        of the Item Response Warehouse (``id, item, resp``, with runs as ``wave``); ``.parquet``;
        SPSS's ``.sav`` (wide if the table has items); any other ``.csv`` is long, and so are the
        rows of ``.json``.
    questionnaires : sequence of Questionnaire
        The questionnaires that were answered. An SPSS file contains the texts of their items and
        the labels of their options.

    Raises
    ------
    ParameterError
        The format does not fit the table, a library is missing, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "answers.irw.csv"
    >>> frame = pd.DataFrame({"model": ["a"], "gad1": [1], "gad2": [3]})
    >>> write_answers(read_answers(frame, "gad7", progress=False), file)
    >>> pd.read_csv(file).to_dict("list")
    {'id': ['a', 'a'], 'item': ['gad7_1', 'gad7_2'], 'resp': [1, 3]}
    """
    check_columns(table, ())
    check_loaded(questionnaires)
    has_items = {"respondent_id", "run", "item_id", "value", "status"} <= set(table.columns)
    path = check_answers_file(path, has_items)
    name = path.name.lower()
    plain_table = table.copy(deep=False)
    plain_table.attrs = {}  # Parquet would write them

    if name.endswith(".wide.csv"):
        write_csv(_pivot_runs(plain_table), path)
    elif name.endswith(".irw.csv"):
        write_csv(_list_responses(plain_table), path)
    elif name.endswith(".csv"):
        write_csv(plain_table, path)
    elif name.endswith(".json"):
        write_text(path, plain_table.to_json(orient="records", indent=2))
    elif name.endswith(".sav"):
        _write_sav(_pivot_runs(plain_table) if has_items else plain_table, path, questionnaires)
    else:
        try:
            with writing(path), replacing(path) as temporary:
                plain_table.to_parquet(temporary, index=False)
        except (TypeError, ValueError) as error:  # Arrow's last argument names the column
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(f"{path}: {error.args[-1]}; correct the column.") from None


def check_answers_file(path: str | Path, has_items: bool) -> Path:
    """Refuse a file of answers that could not be written, before anything is asked.

    Parameters
    ----------
    path : str or Path
    has_items : bool
        Whether the table to write has answers to items.

    Returns
    -------
    Path
        The path, with its extension in lower case.

    Raises
    ------
    ParameterError
        As for :func:`write_answers`.

    Examples
    --------
    >>> check_answers_file("scores.irw.csv", has_items=False)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: scores.irw.csv: the table has no answers to items; ...
    """
    path = check_file(path, (".csv", ".json", ".parquet", ".sav"))
    if path.name.lower().endswith((".wide.csv", ".irw.csv")) and not has_items:
        raise ParameterError(f"{path}: the table has no answers to items; end its name in .csv.")
    if path.suffix == ".sav":
        library("pyreadstat", f"{path.name}: an SPSS file")
    return path


def _with_options(questionnaire: str | Path | Questionnaire) -> Questionnaire:
    try:
        loaded = load_questionnaire(questionnaire)
    except DataError:  # without the wording, ids and positions are still known
        loaded = load_questionnaire(questionnaire, texts=False)
    for entry in loaded.items:
        loaded.ends(entry)  # raises an error if there are no options
    return loaded


def _keep_each_once(answers: pd.DataFrame, layout: _Layout, notes: _Notes) -> pd.DataFrame:
    """Number the runs, drop repeated rows, and refuse contradictory rows."""
    keys = ["respondent_id", "run", *layout.conditions, "item_id"]
    again = answers.duplicated(keys, keep=False)
    if again.any() and layout.repeats_are_runs and not layout.has_runs:
        runs = answers.groupby(keys, dropna=False).cumcount() + 1
        text = "the rows of one respondent are its runs, in order (else set run or respondent)"
        notes.add("runs", text, runs.max())
        answers = answers.assign(run=runs)
    elif again.any():
        # Drop rows that repeat an answer; refuse rows that contradict an answer.
        answers = answers.reset_index(drop=True)
        is_repeated = answers.duplicated(keys)
        originals = answers.drop_duplicates(keys)
        pairs = answers[is_repeated].merge(originals, on=keys, suffixes=("", "_first"), how="left")
        is_copy = pairs[["value", "value_first"]].nunique(axis=1, dropna=False) == 1
        if not is_copy.all():
            row = pairs[~is_copy].iloc[0]
            raise ParameterError(
                f"{notes.place}, {row['place']}: '{row['respondent_id']}' has a different answer "
                f"to {row['item_id']} in {row['place_first']}; name the column that distinguishes "
                "the rows (respondent, run or conditions), or leave one row out."
            )

        places = answers.loc[is_repeated, "place"].unique().tolist()
        text = f"{listed(places, 3)}: repeated with the same answers; left out"
        notes.add("doubled", text, len(places))
        answers = originals

    return answers.assign(run=_run_numbers(answers, layout.conditions))


def _run_numbers(answers: pd.DataFrame, conditions: Sequence[str]) -> pd.Series:
    """Number the runs of each respondent from 1, over all conditions."""
    runs = answers["run"]
    numbers = pd.to_numeric(runs, errors="coerce")
    if not conditions and numbers.notna().all() and (numbers % 1 == 0).all() and numbers.min() > 0:
        return numbers.astype(int)
    parts = [answers[name].map(str) for name in conditions]
    label = runs.map(str).str.cat(parts, sep="\x1f") if parts else runs.map(str)
    return label.groupby(answers["respondent_id"]).transform(lambda name: pd.factorize(name)[0] + 1)


def _complete_runs(
    answers: pd.DataFrame, layout: _Layout, questionnaire: Questionnaire
) -> pd.DataFrame:
    """Give each run of a respondent a row for every item, in the questionnaire's order."""
    items = [item.id for item in questionnaire.items]
    asking = ["respondent_id", "run", *layout.conditions]
    askings = answers[asking].drop_duplicates(asking[:2])
    frame = askings.merge(pd.DataFrame({"item_id": items}), how="cross")
    keys = ["respondent_id", "run", "item_id"]
    frame = frame.merge(answers[[*keys, "value", "status"]], on=keys, how="left")
    frame["status"] = frame["status"].fillna("missing")

    modes = answers.assign(mode=answers.get("given_mode", _MODE)).groupby("respondent_id")["mode"]
    frame["mode"] = frame["respondent_id"].map(modes.first())
    return tidy(frame, questionnaire)


def _note_doubts(
    answers: pd.DataFrame, questionnaire: Questionnaire, already: bool | None, notes: _Notes
) -> None:
    """Report possible mistakes in the answers without leaving any answer out."""
    askings = answers.groupby(["respondent_id", "run"], sort=False)
    spread = askings["value"].agg(["min", "max", "count"])
    is_run = spread.index.get_level_values(0).duplicated().any()
    units = several(len(spread), "run" if is_run else "respondent")
    alike = spread[(spread["min"] == spread["max"]) & (spread["count"] > 2)]
    if len(alike):
        who = listed([name for name, _ in alike.index], 3)
        text = f"the same answer to every item in {len(alike)} of {units} ({who}); kept"
        notes.add("alike", text, len(alike))

    size = len(questionnaire.items)
    fewer = spread[spread["count"] < size]
    if len(fewer):
        name, run = fewer["count"].idxmin()
        text = f"items missing in {len(fewer)} of {units}; fewest answers: '{name}', "
        notes.add("incomplete", f"{text}run {run}, {fewer['count'].min()} of {size}", len(fewer))

    ok = answers[answers["status"] == "ok"]
    means = ok.groupby(["respondent_id", "item_id"])["value"].mean().unstack()
    together = []  # scales whose halves correlate clearly
    for scale in questionnaire.scales:
        keys = questionnaire.keys(scale)
        halves = [
            means.filter(items=[item for item, key in keys.items() if key == sign]).mean(axis=1)
            for sign in (1, -1)
        ]
        n, r, low, _ = correlation_interval(halves[0], halves[1], "pearson")
        if n >= _LEAST and r > 0 and not low <= 0:
            together.append(f"{scale.title} ({r:.2f})")

    if together:
        mend = "are reversed already (then set already_reversed, for all scales)"
        mend = "had not been reversed (then set already_reversed=false)" if already else mend
        notes.add(
            "keyed twice",
            f"reversed items correlate positively with the others in {', '.join(together)} (over "
            f"{len(means)} respondents): either these agree with anything, or the answers {mend}",
            len(together),
        )


def _describe_counts(frame: pd.DataFrame, questionnaire: Questionnaire) -> str:
    """Describe how many answers, respondents and runs there are."""
    status = frame["status"].value_counts()
    ok = int(status.get("ok", 0))
    respondents = frame["respondent_id"].nunique()
    askings = len(frame) // len(questionnaire.items)
    text = f"{several(ok, 'answer')} to {questionnaire.short_title} by "
    text += several(respondents, "respondent")

    if askings > respondents:
        text += f" in {askings:,} runs (runs of one respondent are not respondents)"

    unanswered = ", ".join(
        f"{n:,} {name.replace('_', ' ')}" for name, n in status.items() if name != "ok"
    )
    return f"{text}; {unanswered or 'none missing'}"


def _pivot_runs(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a row for each run and a column for each item."""
    keys = ["respondent_id", "run", *_constant_columns(answers)]
    check_columns(answers, (), once=[*keys, "item_id"])
    wide = answers.pivot(index=keys, columns="item_id", values="value")
    items = answers["item_id"].unique()
    return wide[items].reset_index().rename_axis(columns=None)


def _constant_columns(answers: pd.DataFrame) -> list[str]:
    """Return the further columns that are constant within each run."""
    extra = [name for name in answers.columns if name not in COLUMNS]
    askings = answers.groupby(["respondent_id", "run"], sort=False)
    return [name for name in extra if (askings[name].nunique(dropna=False) == 1).all()]


def _list_responses(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the long format of the Item Response Warehouse, without the missing answers."""
    answers = answers[answers["status"] == "ok"]
    frame = answers[["respondent_id", "item_id", "value"]].set_axis(["id", "item", "resp"], axis=1)
    if (frame["resp"] % 1 == 0).all():
        frame["resp"] = frame["resp"].astype(int)
    if answers["run"].nunique() > 1:
        frame["wave"] = answers["run"]
    for name in _constant_columns(answers):
        frame[f"cov_{name}"] = answers[name]
    return frame


def _write_sav(table: pd.DataFrame, path: Path, questionnaires: Sequence[Any]) -> None:
    """Write an SPSS file; a column whose name is no variable's is labelled with its name."""
    import pyreadstat

    names = _spss_names(table.columns)
    texts = {name: "" if name == column else str(column)[:250] for column, name in names.items()}
    labels = {}
    for questionnaire in questionnaires:
        for item in questionnaire.items:
            if item.id in names:
                texts[names[item.id]] = questionnaire.statement(item)[:250]
                options = {option.value: option.label for option in questionnaire.choices(item)}
                labels[names[item.id]] = options

    table = table.rename(columns=names)
    column_labels: list[str | None] = list(texts.values())
    try:
        with writing(path), replacing(path) as temporary:
            pyreadstat.write_sav(
                table, str(temporary), column_labels=column_labels, variable_value_labels=labels
            )
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        mend = "free some space, correct the column, or name another file"
        raise ParameterError(f"{path} cannot be written ({error}): {mend}.") from None


def _spss_names(columns: Iterable[str]) -> dict[str, str]:
    """Return distinct names of variables: letters, digits and _, at most 64 bytes, no keyword.

    Examples
    --------
    >>> _spss_names(["a.b", "a_b", "1a", "with"])
    {'a.b': 'a_b', 'a_b': 'a_b_2', '1a': 'v1a', 'with': 'vwith'}
    """
    names: dict[str, str] = {}
    taken = set()
    for column in columns:
        plain = "".join(sign if sign.isalnum() else "_" for sign in str(column))
        if not plain[:1].isalpha() or plain.upper() in _SPSS_KEYWORDS:
            plain = f"v{plain}"

        name = plain.encode()[:64].decode(errors="ignore")
        for number in itertools.count(2):
            if name.upper() not in taken:  # SPSS ignores case
                break
            end = f"_{number}"
            name = plain.encode()[: 64 - len(end)].decode(errors="ignore") + end

        taken.add(name.upper())
        names[column] = name

    return names
