"""Claims of the five studies: what a paper found, what a chapter found, and the verdict.

``data/claims/*.csv`` lists the claims, one file a study. A chapter records what it computes as an
output of its cell; the scorecard collects these outputs from the executed chapters.
"""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from .exceptions import DataError, ParameterError
from .paths import book_dir, data_dir

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
RULES = ("equal", "above", "below", "untestable")
RECORDED = ["value", "low", "high", "null", "null_low", "null_high"]
_BOOK = book_dir() / "chapters"
MIME = "application/vnd.psychometrics.claims+json"


def published() -> pd.DataFrame:
    """The claims, in the order of the studies.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``: ``study, claim, source`` (citation key), ``place`` in it,
        ``published`` (the number, if it has one), ``rule`` with its ``bar`` and ``tolerance``,
        ``chapter``, ``reason`` (why it cannot be tested) and ``basis`` (of :data:`BASES`; where a
        file names none, the study's published data). A claim of the basis ``our scoring`` repeats
        one of the paper's by a scoring that is not the paper's.

    Raises
    ------
    DataError
        A claim is there twice, or has no rule, chapter or reason that its rule needs.

    Examples
    --------
    >>> "study" in published().columns
    True
    """
    words = ["claim_id", "claim", "source", "place", "rule", "chapter", "reason", "basis"]
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
    for row in table.itertuples():
        wrong = {
            "is there twice": (table["claim_id"] == row.claim_id).sum() > 1,
            f"has no rule of {', '.join(RULES)}": row.rule not in RULES,
            f"has no basis of {', '.join(BASES)}": row.basis not in BASES,
            "says nothing": not row.claim or not row.source or not row.place,
            "has no chapter": row.rule != "untestable" and not row.chapter,
            "has no reason": row.rule == "untestable" and not row.reason,
            "has no number to equal": row.rule == "equal" and math.isnan(row.published),
            "has no tolerance": row.rule == "equal" and math.isnan(row.tolerance),
            "has no bar": row.rule in ("above", "below") and math.isnan(row.bar),
        }
        for what, is_so in wrong.items():
            if is_so:
                raise DataError(f"data/claims/{row.study}.csv: the claim '{row.claim_id}' {what}.")
    return table.set_index("claim_id")


def record(
    claims: str | pd.DataFrame,
    value: float = math.nan,
    low: float = math.nan,
    high: float = math.nan,
    null: float = math.nan,
    null_low: float = math.nan,
    null_high: float = math.nan,
) -> None:
    """Put what was found for one claim, or for many, among the outputs of the running cell.

    Parameters
    ----------
    claims : str or DataFrame
        A claim's id, or a table with the other parameters as columns (those it lacks are missing)
        and ids as index.
    value : float
        What was found.
    low, high : float
        Its 95 % interval.
    null, null_low, null_high : float
        Median and central 95 % of what is found for the same where there is nothing to find.

    Raises
    ------
    ParameterError
        There is no such claim, or it cannot be tested by its own account.

    Examples
    --------
    >>> record("no-such-claim", 1.0)
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: data/claims has no claim 'no-such-claim'.
    """
    from IPython.display import display

    if isinstance(claims, str):
        given = dict(zip(RECORDED, (value, low, high, null, null_low, null_high), strict=True))
        claims = pd.DataFrame(given, index=[claims])
    if strange := [column for column in claims if column not in RECORDED]:
        raise ParameterError(f"A claim has no '{strange[0]}'; it has {', '.join(RECORDED)}.")
    known = published()
    for name in claims.index:
        if name not in known.index:
            raise ParameterError(f"data/claims has no claim '{name}'.")
        if known.loc[name, "rule"] == "untestable":
            raise ParameterError(f"The claim '{name}' cannot be tested, says data/claims.")
    found = claims.reindex(columns=RECORDED).astype(float)
    if found.index.has_duplicates:
        raise ParameterError(f"'{found.index[found.index.duplicated()][0]}' is recorded twice.")
    plain = {
        name: {key: float(x) for key, x in row.items() if math.isfinite(x)}
        for name, row in found.iterrows()
    }
    anchors = "".join(f'<span id="claim-{escape(name)}"></span>' for name in plain)
    # The anchor is what the scorecard links to.
    display({MIME: plain, "text/html": anchors, "text/plain": ""}, raw=True)


def recorded(folder: str | Path) -> pd.DataFrame:
    """What the executed notebooks of a folder have recorded.

    Parameters
    ----------
    folder : str or Path
        Where the executed copies are.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``: ``value, low, high, null, null_low, null_high`` and ``chapter``.

    Raises
    ------
    DataError
        Two cells recorded the same claim.

    Examples
    --------
    >>> recorded("a-folder-without-notebooks").empty
    True
    """
    rows = {}
    for path in sorted(Path(folder).glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in (output for cell in cells for output in cell.get("outputs", [])):
            for name, found in output.get("data", {}).get(MIME, {}).items():
                if name in rows:
                    raise DataError(f"The claim '{name}' is recorded twice, last in {path.name}.")
                rows[name] = found | {"chapter": path.stem}
    columns = [*RECORDED, "chapter"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("claim_id")
    return table.astype(dict.fromkeys(RECORDED, float))


def verdicts(claims: pd.DataFrame) -> pd.Series:
    r"""What is to be said of each claim.

    A claim with the rule ``equal`` is reproduced where the value lies within ``tolerance`` of what
    was published; with ``above`` (``below``) where the whole interval, or the value itself if it
    has none (a count, or all there is), lies above (below) the ``bar``. Such a claim is *also found
    in the null* where the null's central 95 % reaches the value.

    Parameters
    ----------
    claims : DataFrame
        ``published, rule, bar, tolerance`` and what :func:`recorded` gives.

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
    numbers = ["published", "bar", "tolerance", *RECORDED]
    claims = claims.astype(dict.fromkeys(numbers, float))
    value = claims["value"]
    low, high = claims["low"].fillna(value), claims["high"].fillna(value)
    holds = {
        "equal": (value - claims["published"]).abs() <= claims["tolerance"] + 1e-12,
        "above": low > claims["bar"],
        "below": high < claims["bar"],
    }
    # Ties are ties, whatever the last bit: a null of few orders often holds the value itself.
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


def scorecard(folder: str | Path = "book") -> pd.DataFrame:
    """Every claim with what the executed chapters of a folder found, and its verdict.

    What chapters did not record, such as claims of the embedded population where other respondents
    were asked, cannot be tested there; of the book itself nothing may be lacking.

    Parameters
    ----------
    folder : str or Path
        Where the executed copies are; ``"book"`` is where ``psychometrics book`` puts them.

    Returns
    -------
    DataFrame
        As :func:`published` with the columns of :func:`recorded`, and ``verdict``.

    Raises
    ------
    DataError
        Nothing is recorded, a claim was recorded by another chapter than its own, or a claim that
        can be tested was not recorded in the book.

    Examples
    --------
    >>> scorecard("a-folder-without-notebooks")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: ... run the chapters first, with `psychometrics book`.
    """
    folder = _BOOK if folder == "book" else Path(folder)
    claims, found = published(), recorded(folder)
    if found.empty:
        raise DataError(
            f"No claim is recorded in {folder}: run the chapters first, with `psychometrics book`."
        )
    testable = claims.index[claims["rule"] != "untestable"]
    lacking = [name for name in testable if name not in found.index]
    if lacking and folder == _BOOK:
        raise DataError(
            f"{len(lacking)} claims were not recorded, such as '{lacking[0]}', of which "
            f"{claims.loc[lacking[0], 'chapter']} should."
        )
    elsewhere = found["chapter"] != claims["chapter"].reindex(found.index)
    if elsewhere.any():
        name = found.index[elsewhere][0]
        raise DataError(f"'{name}' was recorded in {found.loc[name, 'chapter']}: mend data/claims.")
    table = claims.join(found[RECORDED])
    return table.assign(verdict=verdicts(table))


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each study have which verdict, by what they were tested on.

    A number that is computed again from the authors' data and a finding that is looked for in
    other models are two things, and a paper did not claim what another scoring finds. So there is
    no sum over the bases.

    Parameters
    ----------
    table : DataFrame
        As :func:`scorecard` gives it.

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


def listed(table: pd.DataFrame) -> str:
    """Claims as an HTML table: what was claimed, where, and what was found, with links.

    Parameters
    ----------
    table : DataFrame
        As :func:`scorecard` gives it, or some of its rows.

    Returns
    -------
    str
        A claim's verdict links to the cell of its chapter that computed it.

    Examples
    --------
    >>> row = {"claim": "It rises.", "place": "table 1", "published": 0.5, "value": 0.4,
    ...     "low": 0.1, "high": 0.7, "null": 0.0, "null_low": -0.2, "null_high": 0.2,
    ...     "chapter": "04-validity", "reason": "", "rule": "above", "verdict": VERDICTS[0]}
    >>> "#claim-a" in listed(pd.DataFrame([row], index=["a"]))
    True
    """
    rows = []
    for name, row in table.iterrows():
        reason = f" ({escape(row['reason'])})" if row["reason"] else ""
        verdict = escape(row["verdict"])
        if row["rule"] != "untestable":
            verdict = f'<a href="{row["chapter"]}.html#claim-{escape(name)}">{verdict}</a>'
        rows.append(
            {
                "claim": escape(row["claim"]) + reason,
                "place": escape(row["place"]),
                "paper": _shown(row["published"]),
                "ours": _shown(row["value"], row["low"], row["high"]),
                "null": _shown(row["null"], row["null_low"], row["null_high"]),
                "verdict": verdict,
            }
        )
    return pd.DataFrame(rows).to_html(index=False, escape=False, border=0, classes="claims")


def _shown(value: float, low: float = math.nan, high: float = math.nan) -> str:
    if pd.isna(value):
        return ""
    text = f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3g}"
    if not (pd.isna(low) and pd.isna(high)):
        ends = ["" if pd.isna(end) else f"{end:.2g}" for end in (low, high)]
        text += f" [{ends[0]}, {ends[1]}]"
    return text.replace("-", "\u2212")
