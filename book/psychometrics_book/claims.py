"""Claims of papers, results behind sentences of the book, and findings of the chapters.

``data/claims/*.csv`` lists the claims, one file per study; ``data/expectations.csv`` lists the
sentences of the book that depend on a number. Both refer to cells of the displayed tables by the
addresses of :mod:`psychometrics_book.record`.

Claims and sentences share this file, because they are judged by the same rules.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics.data import available
from psychometrics.exceptions import DataError
from psychometrics.paths import book_dir, data_dir

from .record import _find_row, _match_stars, _own_folder, cell, number, with_interval

STUDIES = {
    "empalc": "EMPALC",
    "diagnostic": "Psychometric properties",
    "questionnaires": "Questionnaire library",
    "psychobench": "PsychoBench",
    "fairbelief": "FairBelief",
    "literature": "Papers of 2025 and 2026",
}
VERDICTS = (
    "reproduced",
    "reproduced, null set aside",
    "reproduced and also in the null",
    "inconclusive",
    "contradicted",
    "cannot be tested here",
)
BASES = {
    "published data": "recomputed from published data",
    "our respondents": "tested on our respondents",
    "our scoring": "published data, our scoring",
    "feature parity": "features of this package",
}
SENTENCE_VERDICTS = (
    "holds here",
    "published data, not this run",
    "cannot be judged here",
    "does not hold here",
)
"""The verdicts on a sentence of the book in a different run, from the mildest to the worst."""
_LEVELS = {"psychobench": 0.01}  # a paper's own level of significance; otherwise .05
_NULL = ["null", "null_low", "null_high"]
_RESULTS = ["value", "low", "high", *_NULL, "p"]


def published() -> pd.DataFrame:
    """Return all claims in the order of the studies.

    Returns
    -------
    DataFrame
        Indexed by ``claim_id``: ``study, claim, source`` (citation key), the claim's ``place`` in
        the source, ``published`` (the number, if the claim has one), ``rule`` with its ``bar`` and
        ``tolerance``, ``bar_of`` (``paper`` or ``ours``), ``made`` (whether the rule was committed
        ``before`` or ``after`` its result), ``cluster`` (the sentence or table that claims share),
        ``chapter``, ``reason`` (why the claim cannot be tested), ``basis`` (of :data:`BASES`),
        ``support`` (``arithmetic`` on published numbers, or a ``feature``; neither needs an
        interval), ``no_null`` (why a null that reaches the value does not count against the claim,
        for example a claim that something is absent), ``cell``, the address of the chapter's
        result, and the ``level`` of significance.

    Examples
    --------
    >>> "study" in published().columns
    True
    """
    words = [
        "claim_id", "claim", "source", "place", "rule", "bar_of", "made", "cluster", "chapter",
        "reason", "basis", "support", "no_null", "cell",
    ]  # fmt: skip
    folder = data_dir() / "claims"
    tables = {
        study: pd.read_csv(folder / f"{study}.csv", dtype=dict.fromkeys(words, str))
        for study in STUDIES
    }
    table = pd.concat(tables, names=["study"]).reset_index("study")
    table[words] = table[words].fillna("")
    table["level"] = table["study"].map(_LEVELS).fillna(0.05)
    table = table.astype({"published": float, "bar": float, "tolerance": float})
    return table.set_index("claim_id")


def verdicts(claims: pd.DataFrame) -> pd.Series:
    r"""Return the verdict on each claim.

    A claim ``above`` (or ``below``) a bar is *reproduced* if the whole 95 % interval lies on the
    claimed side and the test reaches the ``level``, *contradicted* if the interval lies on the
    other side, and *inconclusive* otherwise. With a ``support`` only the value is compared with the
    bar, without an interval or a test. A claim ``equal`` to a number is reproduced within the
    ``tolerance``, inconclusive if an interval still contains the number, and otherwise
    contradicted. A reproduced claim is *also in the null* if the null's central 95 % reaches the
    value, or, for ``equal``, contains it. If ``no_null`` gives a reason to disregard such a null,
    the null is *set aside*, which is a separate verdict.

    Parameters
    ----------
    claims : DataFrame
        ``published, rule, bar, tolerance, support, level, no_null, value, low, high, null,
        null_low, null_high, p``.

    Returns
    -------
    Series
        One of :data:`VERDICTS` for each claim.

    Examples
    --------
    >>> claims = pd.DataFrame({"published": [0.8, 0.1], "rule": ["above", "equal"], "bar": 0.0,
    ...     "tolerance": 0.01, "support": "", "level": 0.05, "no_null": "",
    ...     "value": [0.7, None], "low": [0.5, None], "high": [0.9, None],
    ...     "null": [0.9, None], "null_low": [0.8, None], "null_high": [0.95, None], "p": None})
    >>> verdicts(claims).tolist()
    ['reproduced and also in the null', 'cannot be tested here']
    """
    claims = claims.astype(dict.fromkeys(["published", "bar", "tolerance", *_RESULTS], float))
    value, low, high, rule = (claims[name] for name in ("value", "low", "high", "rule"))
    exact = claims["support"] != ""
    equal = rule == "equal"
    above = np.where(rule == "above", value - claims["bar"], claims["bar"] - value)
    far = (low > claims["bar"]) | (high < claims["bar"])
    enough = ~(claims["p"] >= claims["level"]) & far
    met = (value - claims["published"]).abs() <= claims["tolerance"] + 1e-12
    near = claims["tolerance"].fillna(0)
    within = (low - near <= claims["published"]) & (claims["published"] <= high + near)
    held = np.where(equal, met & (exact | low.notna()), (above > 0) & (exact | enough))
    against = np.where(equal, ~met & ~within, (above <= 0) & (exact | enough))
    # A null of few orders often equals the value itself: count this as a tie despite rounding.
    reached_up = claims["null_high"] >= value - 1e-9
    reached_down = claims["null_low"] <= value + 1e-9
    reached = reached_up & reached_down
    empty = np.where(equal, reached, np.where(rule == "above", reached_up, reached_down))
    aside = claims["no_null"] != ""
    untested = (rule == "untestable") | value.isna()
    cases = [untested, held & empty & aside, held & empty, held, against]
    chosen = np.select(cases, [5, 1, 2, 0, 4], 3)

    return pd.Series([VERDICTS[i] for i in chosen], index=claims.index, name="verdict")


def scorecard(runs: str | Path = "book") -> pd.DataFrame:
    """Return every claim with its result in the executed chapters, and its verdict.

    Parameters
    ----------
    runs : str or Path
        The folder of executed chapters; ``"book"`` is the folder into which ``psychometrics book``
        writes them. Claims of chapters that are neither in the folder nor being executed are not
        tested.

    Returns
    -------
    DataFrame
        The columns of :func:`published`, with ``value, low, high, null, null_low, null_high``,
        ``verdict`` and ``p``, two-sided against the bar (the chapter's ``p of the claim``, or a
        normal approximation from the interval) or 1 if the value lies on the side that is not
        claimed.

    Raises
    ------
    DataError
        No chapter was executed, or a chapter does not show a cell that a claim refers to.

    Examples
    --------
    >>> scorecard("a-folder-without-notebooks")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: ... run the chapters, with `psychometrics book`.
    """
    runs = _folder(runs)
    executed = {path.stem for path in runs.glob("*.ipynb")}

    if not executed:
        raise DataError(f"{runs} has no notebooks: run the chapters, with `psychometrics book`.")
    claims = published()
    now = _own_folder()  # a chapter's own claims
    executed.add(now.name)
    testable = claims[(claims["rule"] != "untestable") & claims["chapter"].isin(executed)]
    folders = testable["chapter"].map(lambda name: now.parent if name == now.name else runs)
    rows = {name: with_interval(testable["cell"][name], folders[name]) for name in testable.index}
    results = pd.DataFrame.from_dict(rows, orient="index").rename(columns={"p_of_the_claim": "p"})
    results = results.reindex(index=claims.index, columns=_RESULTS)
    table = claims.join(results.apply(pd.to_numeric, errors="coerce"))

    return table.assign(verdict=verdicts(table), p=_p_values(table))


def expectations(runs: str | Path = "book") -> pd.DataFrame:
    """Return the sentences that depend on a number, and whether they hold.

    Parameters
    ----------
    runs : str or Path
        The folder of chapters executed with their default parameters.

    Returns
    -------
    DataFrame
        ``data/expectations.csv``: ``chapter``; ``sentence``, a quotation from the chapter's text or
        captions; ``cell``, in which a star matches any label; ``rule``, which is ``above``,
        ``below``, ``at least``, ``below a hundredth of``, ``within a tenth of``, ``equal``, ``has
        the sign of``, ``nearer zero than`` or ``farther from zero than``, or, for the cell's
        interval, ``excludes`` or ``includes``; ``bar``, a number or an address, whose stars are
        replaced by the labels that the cell's stars match; and ``needs``, external data that change
        the chapter's result. Also ``value`` (None if the chapter does not show the cell) and
        ``holds``. A cell with stars has one row for each match. Sentences whose chapter is not in
        the folder, or whose data are missing, are left out.

    Examples
    --------
    >>> expectations("a-folder-without-notebooks").empty
    True
    """
    runs = _folder(runs)
    table = pd.read_csv(data_dir() / "expectations.csv", dtype=str, keep_default_na=False)
    at_hand = table["needs"].map(lambda key: not key or available(key))
    executed = table["chapter"].isin([path.stem for path in runs.glob("*.ipynb")])
    table = table[executed & at_hand]
    rows = []
    for row in table.itertuples(index=False):
        rows += _expand_stars(row, runs, row.chapter)

    table = pd.DataFrame(rows, columns=table.columns)
    judged = [_rule_met(row, runs, row.chapter) for row in rows]
    table["value"] = [value for value, _, _ in judged]
    table["holds"] = [bool(holds) for _, _, holds in judged]
    return table


def own_parameters(executed: str | Path) -> dict[str, object]:
    """Return an executed chapter's parameters that differ from the published run's.

    Parameters
    ----------
    executed : str or Path
        An executed copy that papermill wrote.

    Returns
    -------
    dict
        Values by name; empty for the book's own parameters, or if papermill recorded no parameters.
    """
    notebook = _notebook(executed)
    values = notebook.get("metadata", {}).get("papermill", {}).get("parameters") or {}
    usual = {}
    for entry in notebook.get("cells", []):
        if "parameters" not in entry.get("metadata", {}).get("tags", []):
            continue

        for node in ast.parse("".join(entry["source"])).body:
            if isinstance(node, ast.Assign):
                with contextlib.suppress(ValueError):  # an expression cannot be a default
                    usual[node.targets[0].id] = ast.literal_eval(node.value)

    return {name: value for name, value in values.items() if usual.get(name) != value}


def judged_sentences(executed: str | Path) -> pd.DataFrame:
    """Judge which of the book's sentences about a chapter hold for a different run of it.

    Parameters
    ----------
    executed : str or Path
        A copy that papermill wrote; the run's tables are in the folder of the same name.

    Returns
    -------
    DataFrame
        One row per sentence of ``data/expectations.csv`` about this chapter: ``sentence``,
        ``verdict`` (of :data:`SENTENCE_VERDICTS`; a sentence holds if it holds in each of its
        cells that the run computed anew), ``why`` (the first decisive cell) and ``shown``, the
        table or figure of that cell.
        The table is empty for a notebook that is not a chapter.

    Examples
    --------
    >>> judged_sentences("a-folder-without-runs/03-assessment.ipynb").columns.tolist()
    ['sentence', 'verdict', 'why', 'shown']
    """
    executed = Path(executed)
    table = pd.read_csv(data_dir() / "expectations.csv", dtype=str, keep_default_na=False)
    chapter = _chapter_of(executed)
    table = table[table["chapter"] == chapter]
    is_other = executed.is_file() and bool(own_parameters(executed))
    compared_with = chapter if is_other else ""
    rows = []
    for sentence, rules in table.groupby("sentence", sort=False):
        cells = []
        for row in rules.itertuples():
            cells += _judged_cells(row, executed, compared_with)

        of_this_run = [judged for judged in cells if judged[0] != SENTENCE_VERDICTS[1]]
        verdict, why, output = max(
            of_this_run or cells, key=lambda judged: SENTENCE_VERDICTS.index(judged[0])
        )
        rows.append({"sentence": sentence, "verdict": verdict, "why": why, "shown": output})

    return pd.DataFrame(rows, columns=["sentence", "verdict", "why", "shown"])


def _chapter_of(executed: Path) -> str:
    """Return the name of the notebook behind an executed copy."""
    if executed.is_file():
        notebook = _notebook(executed)
        source = notebook.get("metadata", {}).get("papermill", {}).get("input_path")
        if source:
            return Path(source).stem
    return executed.stem


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count claims, or clusters, by study and verdict, separately for each kind of data.

    Recomputing a number from the authors' data and looking for a finding in other models are
    different tests, so there is no total over the kinds of data.

    Parameters
    ----------
    table : DataFrame
        The result of :func:`scorecard`, or one row per cluster.

    Returns
    -------
    DataFrame
        :data:`BASES` and studies (and ``all``, if a basis has several) by :data:`VERDICTS` and
        ``claims``, their sum.

    Examples
    --------
    >>> table = pd.DataFrame({"study": "empalc", "basis": "our respondents",
    ...     "verdict": VERDICTS[:2]})
    >>> counts(table).loc[("tested on our respondents", "EMPALC")].tolist()
    [1, 1, 0, 0, 0, 0, 2]
    """
    parts = {}
    for basis, title in BASES.items():
        rows = table[table["basis"] == basis]
        numbers = pd.crosstab(rows["study"], rows["verdict"]).reindex(
            index=[study for study in STUDIES if study in set(rows["study"])],
            columns=list(VERDICTS),
            fill_value=0,
        )
        if len(numbers) > 1:
            numbers.loc["all"] = numbers.sum()

        if len(numbers):
            parts[title] = numbers.rename(index=STUDIES)

    if not parts:
        return pd.DataFrame(0, table.index[:0], [*VERDICTS, "claims"])

    numbers = pd.concat(parts, names=["how", "study"]).rename_axis(columns=None)
    return numbers.assign(claims=numbers.sum(axis=1))


def listed(table: pd.DataFrame) -> pd.DataFrame:
    """Return claims for readers, with the published number, ours, the null's, and the verdict.

    Parameters
    ----------
    table : DataFrame
        Rows of :func:`scorecard`.

    Returns
    -------
    DataFrame
        ``verdict, claim, place, paper, ours, null, rule made, bar, cell``, all as text; the place
        begins with the study.

    Examples
    --------
    >>> row = {"study": "empalc", "claim": "It rises.", "place": "table 1", "published": 0.5,
    ...     "value": 0.4, "low": 0.1, "high": 0.7, "null": 0.0, "null_low": -0.2, "null_high": 0.2,
    ...     "reason": "", "verdict": VERDICTS[0], "chapter": "04-own", "cell": "04/tab-a[b, c]",
    ...     "made": "after", "bar": 0.0, "bar_of": "ours", "no_null": ""}
    >>> listed(pd.DataFrame([row]))["ours"].tolist()
    ['0.4 (0.10 to 0.70)']
    """
    reason = table["reason"].map(lambda text: f" ({text})" if text else "")
    nulls = pd.Series([_words(*row) for row in table[_NULL].to_numpy()], table.index)
    aside = table["verdict"].eq(VERDICTS[1])
    reasons = nulls + "; set aside: " + table["no_null"]
    shown = {
        "verdict": table["verdict"],
        "claim": table["claim"] + reason,
        "place": table["study"].map(STUDIES) + ", " + table["place"],
        "paper": table["published"].map(_words),
        "ours": [_words(*row) for row in table[["value", "low", "high"]].to_numpy()],
        "null": nulls.where(~aside, reasons),
        "rule made": table["made"],
        "bar": [
            f"{_words(bar)} ({whose})" if whose else ""
            for bar, whose in zip(table["bar"], table["bar_of"], strict=True)
        ],
        "cell": table["chapter"] + table["cell"].str[2:],
    }

    return pd.DataFrame(shown).reset_index(drop=True)


def _notebook(executed: str | Path) -> dict:
    """Read an executed notebook; refuse any other file."""
    try:
        notebook = json.loads(Path(executed).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0][:100]
        message = f"{executed} is not an executed notebook ({reason}): run it again."
        raise DataError(message) from None

    if not isinstance(notebook, dict):
        raise DataError(f"{executed} is not an executed notebook: run it again.")
    return notebook


def _folder(runs: str | Path) -> Path:
    return book_dir() / "chapters" if runs == "book" else Path(runs)


def _p_values(claims: pd.DataFrame) -> pd.Series:
    """Return two-sided p values against the bar (1 on the side not claimed)."""
    from scipy.special import ndtr  # slow to load

    value = claims["value"]
    bar = claims["bar"]
    end = claims["low"].where(value > bar, claims["high"])
    half = (value - end).abs().replace(0, np.nan)
    derived = 2 * ndtr(-1.959964 * (value - bar).abs() / half)
    claimed = (value - bar) * claims["rule"].map({"above": 1, "below": -1}) > 0
    p = claims["p"].fillna(pd.Series(derived, claims.index))

    return p.where(claimed | p.isna(), 1.0).where(claims["rule"].isin(["above", "below"]))


def _cell_or_none(address: str, runs: Path, chapter: str) -> float | str | None:
    try:
        return cell(address, runs, chapter)
    except DataError:
        return None


def _holds(value: float | str, rule: str, bar: float | str) -> bool:
    if rule == "equal" and isinstance(value, str):
        return value == bar
    bar = float(bar)
    rules = {
        "above": value > bar,
        "below": value < bar,
        "below a hundredth of": value < abs(bar) / 100,
        "equal": math.isclose(value, bar),
        "has the sign of": value * bar > 0,
        "at least": value >= bar - 1e-9,
        "nearer zero than": abs(value) < abs(bar),
        "farther from zero than": abs(value) > abs(bar),
        "within a tenth of": abs(value - bar) <= abs(bar) / 10,
    }

    return rules[rule]


def _judged_cells(row: tuple, executed: Path, compared_with: str) -> list[tuple[str, str, str]]:
    """Return the verdict on each cell of a rule, the reason, and the cell's table.

    ``compared_with`` is the chapter whose published run this run is compared with; empty for the
    published run itself.
    """
    address = _without_chapter(row.cell, row.chapter)
    output = address.partition("[")[0]

    if row.needs and not available(row.needs):
        return [(SENTENCE_VERDICTS[2], f"it needs {row.needs}", output)]

    here = row._replace(cell=address, bar=_without_chapter(row.bar, row.chapter))
    if any("/" in text.partition("[")[0] for text in (here.cell, here.bar) if "[" in text):
        return [(SENTENCE_VERDICTS[2], "it also depends on another chapter", output)]

    rows = _expand_stars(here, executed.parent, executed.stem)
    return [(*_judged_cell(rule, executed, compared_with), output) for rule in rows]


def _judged_cell(row: tuple, executed: Path, compared_with: str) -> tuple[str, str]:
    """Return the verdict on one cell and the reason."""
    value, bar, met = _rule_met(row, executed.parent, executed.stem)
    if met is None:
        return SENTENCE_VERDICTS[2], f"this run has no value in {row.cell} or {bar}"

    addresses = [text for text in (row.cell, row.bar) if "[" in text]
    if compared_with and all(_is_published(text, executed, compared_with) for text in addresses):
        return SENTENCE_VERDICTS[1], f"{row.cell} does not depend on this run"

    words = value if isinstance(value, str) else number(value, ".3g")
    needed = number(bar, ".3g") if isinstance(bar, float) else bar
    reason = f"{row.cell} is {words}; the rule is “{row.rule} {needed}”"
    return SENTENCE_VERDICTS[0 if met else 3], reason


def _is_published(address: str, executed: Path, chapter: str) -> bool:
    """Return whether a run shows the published run's cell, which it then did not compute anew.

    Six equal digits of a fraction are no coincidence; of a whole number or a word, the whole row
    must be equal.
    """
    run = executed.parent, executed.stem
    published_run = data_dir() / "tables", chapter
    try:
        value = cell(address, *run)
        if isinstance(value, float) and value % 1:
            here = with_interval(address, *run)
            published_row = with_interval(address, *published_run)
        else:
            here, _ = _find_row(address, *run)
            published_row, _ = _find_row(address, *published_run)
    except DataError:
        return False

    return here.keys() == published_row.keys() and all(
        _is_equal(here[name], published_row[name]) for name in here
    )


def _is_equal(value: object, other: object) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-6) or (math.isnan(value) and math.isnan(other))
    return value == other


def _expand_stars(row: tuple, runs: Path, chapter: str) -> list[tuple]:
    """Return a rule for each row of the table that the rule's stars match, or the rule itself."""
    if "*" not in row.cell:
        return [row]

    try:
        matches = _match_stars(row.cell, runs, chapter)
    except DataError:
        return [row]

    rows = []
    for labels in matches:
        filled = row
        for label in labels:
            written = f'"{label}"' if "," in label else label
            cell, bar = (address.replace("*", written, 1) for address in (filled.cell, filled.bar))
            filled = filled._replace(cell=cell, bar=bar)

        rows.append(filled)

    return rows or [row]


def _rule_met(row: tuple, runs: Path, chapter: str) -> tuple[object, object, bool | None]:
    """Return a cell's value, the bar, and whether the rule holds (None if there is no value).

    The rules ``excludes`` and ``includes`` use the interval of the cell.
    """
    value = _cell_or_none(row.cell, runs, chapter)
    bar = _cell_or_none(row.bar, runs, chapter) if "[" in row.bar else row.bar

    if _is_missing(value) or _is_missing(bar):
        return value, bar if bar is not None else row.bar, None

    if row.rule in ("excludes", "includes"):
        interval = with_interval(row.cell, runs, chapter)
        low = interval["low"]
        high = interval["high"]
        if _is_missing(low) or _is_missing(high):
            return value, bar, None

        is_apart = not low <= float(bar) <= high
        return value, bar, is_apart if row.rule == "excludes" else not is_apart

    try:
        return value, bar, _holds(value, row.rule, bar)
    except (TypeError, ValueError):  # a word instead of the published run's number
        return value, bar, None


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _without_chapter(address: str, chapter: str) -> str:
    """Remove the sentence's own chapter from an address."""
    where, slash, address_here = address.partition("/")
    return address_here if slash and chapter.startswith(where) else address


def _words(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Format a value with its interval, whose ends have two digits of the interval's width."""
    if math.isnan(value):
        return ""
    value, low, high = (round(end, 4) + 0.0 for end in (value, low, high))  # 0.00002 is 0
    text = number(value, ".4g" if abs(value) >= 1000 else ".3g")
    if math.isnan(low) and math.isnan(high):
        return text

    form = f".{max(0, 1 - math.floor(math.log10(high - low)))}f" if high > low else ".2g"
    return f"{text} ({number(low, form)} to {number(high, form)})"
