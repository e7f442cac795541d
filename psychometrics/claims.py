"""What papers claim, what sentences of the book rest on, and what the chapters found.

``data/claims/*.csv`` lists the claims, one file a study; ``data/expectations.csv`` lists the
sentences of the book that depend on a number. Both point at cells of shown tables, by
the addresses of :mod:`psychometrics.record`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from .exceptions import DataError
from .paths import book_dir, data_dir
from .record import cell, number, with_interval

STUDIES = {
    "empalc": "EMPALC",
    "diagnostic": "Psychometric properties",
    "questionnaires": "Questionnaire library",
    "psychobench": "PsychoBench",
    "fairbelief": "FairBelief",
}
VERDICTS = (
    "reproduced",
    "reproduced but also found in the null",
    "not reproduced",
    "cannot be tested here",
)
BASES = {
    "published data": "recomputed from published data",
    "our respondents": "tested on our respondents",
    "our scoring": "published data, our scoring",
}
_RULES = ("equal", "above", "below", "untestable")
_FOUND = ["value", "low", "high", "null", "null_low", "null_high"]


def published() -> pd.DataFrame:
    """Return the claims in the order of the studies.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``: ``study, claim, source`` (citation key), ``place`` in it,
        ``published`` (the number, if it has one), ``rule`` with its ``bar`` and ``tolerance``,
        ``chapter``, ``reason`` (why it cannot be tested), ``basis`` (of :data:`BASES`; published
        data if a file names none) and ``cell``, the address of what the chapter found.

    Raises
    ------
    DataError
        A claim is listed twice, or lacks what its rule needs.

    Examples
    --------
    >>> "study" in published().columns
    True
    """
    words = ["claim_id", "claim", "source", "place", "rule", "chapter", "reason", "basis", "cell"]
    folder = data_dir() / "claims"
    tables = {
        study: pd.read_csv(folder / f"{study}.csv", dtype=dict.fromkeys(words, str))
        for study in STUDIES
    }
    table = pd.concat(tables, names=["study"]).reset_index("study")
    table["basis"] = table.get("basis", "")
    table[words] = table[words].fillna("")
    table["basis"] = table["basis"].replace("", "published data")
    table = table.astype({"published": float, "bar": float, "tolerance": float})
    untestable = table["rule"] == "untestable"
    wrong = {
        "is listed twice": table["claim_id"].duplicated(),
        f"has no rule of {', '.join(_RULES)}": ~table["rule"].isin(_RULES),
        f"has no basis of {', '.join(BASES)}": ~table["basis"].isin(BASES),
        "lacks its text, its source or its place": (table[["claim", "source", "place"]] == "").any(
            axis=1
        ),
        "has no chapter": ~untestable & (table["chapter"] == ""),
        "has no cell": ~untestable & (table["cell"] == ""),
        "has no reason": untestable & (table["reason"] == ""),
        "has no number to equal": (table["rule"] == "equal")
        & table[["published", "tolerance"]].isna().any(axis=1),
        "has no bar": table["rule"].isin(["above", "below"]) & table["bar"].isna(),
    }
    for what, rows in wrong.items():
        if rows.any():
            row = table[rows].iloc[0]
            raise DataError(
                f"data/claims/{row['study']}.csv: the claim '{row['claim_id']}' {what}."
            )
    return table.set_index("claim_id")


def verdicts(claims: pd.DataFrame) -> pd.Series:
    r"""Return the verdict on each claim.

    A claim with the rule ``equal`` is reproduced if the value lies within ``tolerance`` of the
    published one; with ``above`` (``below``) if the whole interval, or the value itself if it has
    none (a count, or a whole population), lies above (below) the ``bar``. Such a claim is *also
    found in the null* if the null's central 95 % reaches the value.

    Parameters
    ----------
    claims : DataFrame
        ``published, rule, bar, tolerance, value, low, high, null, null_low, null_high``.

    Returns
    -------
    Series
        One of :data:`VERDICTS` each.

    Examples
    --------
    >>> claims = pd.DataFrame({"published": [0.8, 0.1], "rule": ["above", "equal"], "bar": 0.0,
    ...     "tolerance": 0.01, "value": [0.7, None], "low": [0.5, None], "high": [0.9, None],
    ...     "null": [0.9, None], "null_low": [0.8, None], "null_high": [0.95, None]})
    >>> verdicts(claims).tolist()
    ['reproduced but also found in the null', 'cannot be tested here']
    """
    claims = claims.astype(dict.fromkeys(["published", "bar", "tolerance", *_FOUND], float))
    value = claims["value"]
    low, high = claims["low"].fillna(value), claims["high"].fillna(value)
    holds = {
        "equal": (value - claims["published"]).abs() <= claims["tolerance"] + 1e-12,
        "above": low > claims["bar"],
        "below": high < claims["bar"],
    }
    # A null of few orders often holds the value itself: a tie is a tie whatever its last bit.
    reached = {
        "above": claims["null_high"] >= value - 1e-9,
        "below": claims["null_low"] <= value + 1e-9,
    }
    rule = claims["rule"]
    held = np.select([rule == name for name in holds], list(holds.values()), False)
    empty = np.select([rule == name for name in reached], list(reached.values()), False)
    untested = (rule == "untestable") | value.isna()
    chosen = np.select([untested, held & empty, held], [3, 1, 0], 2)
    return pd.Series([VERDICTS[i] for i in chosen], index=claims.index, name="verdict")


def scorecard(runs: str | Path = "book") -> pd.DataFrame:
    """Return every claim with what the executed chapters found, and its verdict.

    Parameters
    ----------
    runs : str or Path
        The folder of executed chapters; ``"book"`` is where ``psychometrics book`` puts them. A
        claim of a chapter that is not in the folder cannot be tested there.

    Returns
    -------
    DataFrame
        As :func:`published`, with ``value, low, high, null, null_low, null_high, verdict``.

    Raises
    ------
    DataError
        No chapter was executed, or a chapter does not show a cell that a claim points at.

    Examples
    --------
    >>> scorecard("a-folder-without-notebooks")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: ... run the chapters first, with `psychometrics book`.
    """
    runs = _folder(runs)
    executed = {path.stem for path in runs.glob("*.ipynb")}
    if not executed:
        raise DataError(
            f"No chapter was executed in {runs}: run the chapters first, with `psychometrics book`."
        )
    claims = published()
    testable = claims[(claims["rule"] != "untestable") & claims["chapter"].isin(executed)]
    rows = {name: with_interval(address, runs) for name, address in testable["cell"].items()}
    found = pd.DataFrame.from_dict(rows, orient="index", columns=_FOUND).reindex(claims.index)
    table = claims.join(found.apply(pd.to_numeric, errors="coerce"))
    return table.assign(verdict=verdicts(table))


def expectations(runs: str | Path = "book") -> pd.DataFrame:
    """Return the sentences that depend on a number, and whether they hold.

    Parameters
    ----------
    runs : str or Path
        The folder of chapters that were executed with their default parameters.

    Returns
    -------
    DataFrame
        ``data/expectations.csv`` (``chapter, sentence, cell, rule, bar``, the bar a number or an
        address), with ``value`` (None if the chapter does not show the cell) and ``holds``.
        Chapters that are not in the folder are left out.

    Examples
    --------
    >>> expectations("a-folder-without-notebooks").empty
    True
    """
    runs = _folder(runs)
    table = pd.read_csv(data_dir() / "expectations.csv", dtype=str, keep_default_na=False)
    table = table[table["chapter"].isin([path.stem for path in runs.glob("*.ipynb")])].copy()
    table["value"] = [_shown(row.cell, runs, row.chapter) for row in table.itertuples()]
    bars = [
        _shown(row.bar, runs, row.chapter) if "[" in row.bar else row.bar
        for row in table.itertuples()
    ]
    table["holds"] = [
        _holds(row.value, row.rule, bar) for row, bar in zip(table.itertuples(), bars, strict=True)
    ]
    return table


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count claims by study and verdict, apart for what they were tested on.

    A number that is computed again from the authors' data and a finding that is looked for in
    other models are different tests, so that there is no sum over them.

    Parameters
    ----------
    table : DataFrame
        As :func:`scorecard` returns it.

    Returns
    -------
    DataFrame
        :data:`BASES` and studies (and ``all``, where a basis has several) by :data:`VERDICTS` and
        ``claims``, their sum.

    Examples
    --------
    >>> table = pd.DataFrame({"study": "empalc", "basis": "our respondents",
    ...     "verdict": VERDICTS[:2]})
    >>> counts(table).loc[("tested on our respondents", "EMPALC")].tolist()
    [1, 1, 0, 0, 2]
    """
    parts = {}
    for basis, title in BASES.items():
        part = table[table["basis"] == basis]
        found = pd.crosstab(part["study"], part["verdict"]).reindex(
            index=[study for study in STUDIES if study in set(part["study"])],
            columns=list(VERDICTS),
            fill_value=0,
        )
        if len(found) > 1:
            found.loc["all"] = found.sum()
        if len(found):
            parts[title] = found.rename(index=STUDIES)
    found = pd.concat(parts, names=["how", "study"]).rename_axis(columns=None)
    return found.assign(claims=found.sum(axis=1))


def listed(table: pd.DataFrame) -> pd.DataFrame:
    """Return claims as a reader wants them: the paper's number, ours, the null's and the verdict.

    Parameters
    ----------
    table : DataFrame
        Rows of :func:`scorecard`.

    Returns
    -------
    DataFrame
        ``claim, place, paper, ours, null, verdict, cell``, all of them words.

    Examples
    --------
    >>> row = {"claim": "It rises.", "place": "table 1", "published": 0.5, "value": 0.4,
    ...     "low": 0.1, "high": 0.7, "null": 0.0, "null_low": -0.2, "null_high": 0.2,
    ...     "reason": "", "verdict": VERDICTS[0], "chapter": "04-own", "cell": "04/tab-a[b, c]"}
    >>> listed(pd.DataFrame([row]))["ours"].tolist()
    ['0.4 (0.1 to 0.7)']
    """
    reason = table["reason"].map(lambda text: f" ({text})" if text else "")
    shown = {
        "claim": table["claim"] + reason,
        "place": table["place"],
        "paper": table["published"].map(lambda value: _words(value)),
        "ours": [_words(*row) for row in table[["value", "low", "high"]].to_numpy()],
        "null": [_words(*row) for row in table[["null", "null_low", "null_high"]].to_numpy()],
        "verdict": table["verdict"],
        "cell": table["chapter"] + table["cell"].str[2:],
    }
    return pd.DataFrame(shown).reset_index(drop=True)


def _folder(runs: str | Path) -> Path:
    return book_dir() / "chapters" if runs == "book" else Path(runs)


def _shown(address: str, runs: Path, chapter: str) -> float | str | None:
    try:
        return cell(address, runs, chapter)
    except DataError:
        return None


def _holds(value: float | str | None, rule: str, bar: float | str | None) -> bool:
    if value is None or bar is None:
        return False
    if rule == "equal" and isinstance(value, str):
        return value == bar
    bar = float(bar)
    return {"above": value > bar, "below": value < bar, "equal": math.isclose(value, bar)}[rule]


def _words(value: float, low: float = math.nan, high: float = math.nan) -> str:
    if math.isnan(value):
        return ""
    text = number(value, ".4g" if abs(value) >= 1000 else ".3g")
    if math.isnan(low) and math.isnan(high):
        return text
    return f"{text} ({number(low, '.2g')} to {number(high, '.2g')})"
