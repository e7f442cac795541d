"""Audit a paper's table without its data: what is possible, what needs no trait, what is the unit.

A finding is no accusation. Numbers that do not fit may be a typing error, or were made otherwise
than the table says; numbers that a habit explains may still come from the trait.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from scipy import stats

from ..data import check_size, shipped, text_table
from ..exceptions import ParameterError
from ..measures.norms import compare_means
from ..measures.printed import (
    alpha_of_chance,
    habit_of_alpha,
    habit_of_correlation,
    possible_squares,
    possible_totals,
    reconstruct_answers,
    repeated_answers_test,
)
from ..questionnaires import load_questionnaire, questionnaire_names
from .contents import make_table
from .report import _MARKS, Report, Statement, _load_texts
from .sentences import show_p

_Text = Annotated[str, BeforeValidator(str)]
_Number = Annotated[str, BeforeValidator(str), Field(pattern=r"^[-+]?\d{0,30}\.?\d{1,30}$")]
"""A number as it is printed."""
_TEXTS = _load_texts("audit")
_EMPTY = ("", "None", "nan", "<NA>", "~", "null")
_LARGEST_SAMPLE = 200
# Most totals whose sums of squares are listed.
_MOST_TOTALS = 10_000


class PrintedScale(BaseModel):
    """What a paper prints about the scores of one scale; all but the name may be missing."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: _Text = Field(description="Name of the row.")
    questionnaire: _Text | None = Field(
        None, description="Its name here, which fills the next six."
    )
    scale: _Text | None = Field(None, description="The questionnaire's scale, if it has several.")
    items: int | None = Field(None, ge=1, le=10_000, description="Number of items.")
    reverse_keyed: int | None = Field(None, ge=0, description="Number of reverse-keyed items.")
    lowest: int | None = Field(None, description="Lowest answer to an item.")
    highest: int | None = Field(None, description="Highest answer to an item.")
    score: Literal["mean", "sum"] | None = Field(None, description="Mean or sum of the items.")
    n: int | None = Field(None, ge=1, description="Number of rows: people, or runs of all models.")
    models: int | None = Field(None, ge=1, description="Number of models that gave these rows.")
    mean: _Number | None = Field(None, description="Mean, with all printed decimals.")
    sd: _Number | None = Field(None, description="Standard deviation, with all printed decimals.")
    alpha: float | None = Field(None, description="Cronbach's alpha.")
    correlates_with: _Text | None = Field(None, description="Name of another row.")
    r: float | None = Field(None, ge=-1, le=1, description="The correlation with that row.")
    norm_mean: float | None = Field(None, description="Mean of people.")
    norm_sd: float | None = Field(None, gt=0, description="Standard deviation of people.")
    norm_n: int | None = Field(None, ge=2, description="Number of people.")
    t: float | None = Field(None, description="t of a test between models or conditions.")
    f: float | None = Field(None, ge=0, description="F of such a test.")
    df: int = Field(1, ge=1, description="First degrees of freedom of F.")

    @property
    def parts(self) -> int | None:
        """Number of items that are averaged; None if that is not known."""
        return 1 if self.score == "sum" else self.items

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Lowest and highest score in whole answers: of an item, or of the sum of the items."""
        if self.lowest is None or self.highest is None:
            return None
        if self.score != "sum":
            return self.lowest, self.highest
        return (self.lowest * self.items, self.highest * self.items) if self.items else None

    @property
    def respondents(self) -> int | None:
        """Number of respondents: runs of a model are one respondent."""
        return self.models or self.n


class Finding(NamedTuple):
    """What one check says about a row."""

    check: str
    result: str
    sentence: str
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan


def audit(table: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Audit the printed statistics of a paper.

    Parameters
    ----------
    table : str, Path or DataFrame
        A CSV or YAML file, or a frame, with one row per printed scale: the fields of
        :class:`PrintedScale`. Numbers are read as they are printed: ``2.50`` is not ``2.5``.

    Returns
    -------
    DataFrame
        One row per check that the printed numbers allow: ``name``; ``check``; ``result``, which is
        *fits*, *does not fit*, *cannot tell*, *also without the trait*, *not explained by it*,
        *stays* or *changes*; ``sentence``; and the numbers behind it, ``value, low, high``.

    Raises
    ------
    ParameterError
        The file is no table, has an unknown column, a value out of its range, contradictory values,
        or nothing that can be checked.

    Examples
    --------
    Ten runs of one model on ten items of 1 to 5, against 500 people.

    >>> row = {"name": "E", "items": 10, "lowest": 1, "highest": 5, "n": 10, "models": 1}
    >>> row |= {"mean": "3.94", "sd": "0.21", "norm_mean": 3.4, "norm_sd": 0.8, "norm_n": 500}
    >>> audit(pd.DataFrame([row])).set_index("check")["result"].to_dict()
    {'possible mean': 'cannot tell', 'possible SD': 'fits', 'unit': 'changes'}
    """
    rows = _printed_scales(table)
    findings = []
    for row in rows.values():
        checks = itertools.chain(
            _check_mean(row), _check_sd(row), _check_alpha(row), _check_correlation(row, rows),
            _check_unit(row), _check_repeats(row),
        )  # fmt: skip
        findings += [(row.name, *finding) for finding in checks]

    if not findings:
        raise ParameterError(
            "There is nothing to check: give mean, items and n; alpha; r; or t with models."
        )
    return pd.DataFrame(findings, columns=["name", *Finding._fields])


def report_audit(findings: pd.DataFrame, title: str = "", command: str = "") -> Report:
    """Return what a page shows of an audit.

    Parameters
    ----------
    findings : DataFrame
        As :func:`audit` returns them.
    title : str
        Name of the paper or the file.
    command : str
        The command that repeats the audit.

    Examples
    --------
    >>> rows = pd.DataFrame([{"name": "E", "items": 1, "n": 28, "mean": "5.19"}])
    >>> report_audit(audit(rows)).statements[0].verdict
    'does not fit'
    """
    statements = []
    for name, rows in findings.groupby("name", sort=False):
        worst = next(case for case in _MARKS if case in set(rows["result"]))
        sentences = rows.loc[rows["result"] == worst, "sentence"]
        statements.append(
            Statement(about=str(name), case=worst, verdict=worst, text=" ".join(sentences))
        )

    columns = {"name": "Line", "verdict": "Result", "check": "Check", "sentence": "Why"}
    marks = findings["result"].map(_MARKS)
    rows = findings.assign(verdict=findings["result"], case=findings["result"], mark=marks)
    note = (
        "Numbers that do not fit may be a typing error, or were made otherwise than the table "
        "says. Numbers that a habit explains may still come from the trait."
    )
    rows = rows[[*columns, "case", "mark"]]
    results = make_table("findings", "All checks", rows, columns, note)
    summary = f"without the answers; printed lines: {len(statements)}, checks: {len(findings)}"
    return Report(kind="audit", title=title, about=summary, statements=statements, tests=[],
                  results=results, command=command)  # fmt: skip


# --- what is possible


def _check_mean(row: PrintedScale) -> Iterator[Finding]:
    """Yield whether whole answers can have the mean (GRIM)."""
    if row.mean is None or row.n is None or row.parts is None:
        return

    mean = float(row.mean)
    answers = row.n * row.parts
    result = case = "does not fit"
    if row.bounds and not row.bounds[0] <= mean <= row.bounds[1]:
        case = "outside"
    elif answers >= 10 ** len(row.mean.partition(".")[2]):
        result = case = "cannot tell"
    elif len(possible_totals(row.mean, row.n, row.parts)):
        result = case = "fits"

    sentence = _TEXTS["possible mean"][case].format(row=row, answers=answers)
    yield Finding("possible mean", result, sentence, mean)


def _check_sd(row: PrintedScale) -> Iterator[Finding]:
    """Yield whether whole answers can have both mean and SD (GRIMMER, SPRITE)."""
    if row.mean is None or row.sd is None or row.parts is None or row.bounds is None:
        return
    if row.n is None or row.n < 2:
        return
    if not 0 < len(possible_totals(row.mean, row.n, row.parts)) <= _MOST_TOTALS:
        return

    numbers = row.mean, row.sd, row.n, *row.bounds, row.parts
    scores = ""
    result = case = "does not fit"
    if possible_squares(*numbers):
        result = "fits"
        case = "large"
        if row.n <= _LARGEST_SAMPLE:
            sample = reconstruct_answers(*numbers)
            result = case = "cannot tell" if sample is None else "fits"
            counts = {} if sample is None else sample.items()
            scores = ", ".join(f"{count} × {score / row.parts:g}" for score, count in counts)

    sentence = _TEXTS["possible SD"][case].format(row=row, scores=scores)
    yield Finding("possible SD", result, sentence, float(row.sd))


# --- what needs no trait


def _check_alpha(row: PrintedScale) -> Iterator[Finding]:
    """Yield whether alpha needs more than chance, a habit of agreeing, or untrained heads."""
    if row.alpha is None:
        return
    if row.alpha > 1:
        sentence = _TEXTS["possible alpha"].format(row=row)
        yield Finding("possible alpha", "does not fit", sentence, row.alpha)
        return

    if row.items and row.items > 1 and row.respondents and row.respondents > 1:
        low, high = alpha_of_chance(row.items, row.respondents)
        whose = "models" if row.models else "respondents"
        result = _without_trait(row.alpha <= high)
        sentence = _TEXTS["alpha of chance"].format(row=row, low=low, high=high, whose=whose)
        yield Finding("alpha of chance", result, sentence, row.alpha, low, high)

    if row.items and row.items > 1 and row.reverse_keyed is not None:
        share = habit_of_alpha(row.alpha, row.items, row.reverse_keyed)
        yield _find_habit("alpha of a habit", share, f"an alpha of {row.alpha:g}")

    heads = pd.read_csv(shipped("impostors.csv"))
    heads = heads[heads["scale"].isin([row.questionnaire, f"{row.questionnaire} {row.scale}"])]
    if len(heads):
        low, high = heads["alpha low"].min(), heads["alpha high"].max()
        result = _without_trait(row.alpha <= high)
        sentence = _TEXTS["alpha of impostors"].format(bases=len(heads), low=low, high=high)
        yield Finding("alpha of impostors", result, sentence, row.alpha, low, high)


def _check_correlation(row: PrintedScale, rows: dict[str, PrintedScale]) -> Iterator[Finding]:
    """Yield whether a correlation is beyond the reliabilities, chance and a habit of agreeing."""
    if row.r is None or row.correlates_with is None:
        return

    other = rows[row.correlates_with]
    if row.alpha is not None and other.alpha is not None and min(row.alpha, other.alpha) > 0:
        limit = float(np.sqrt(row.alpha * other.alpha))
        is_within = abs(row.r) <= limit
        beyond = "within" if is_within else "beyond"
        sentence = _TEXTS["possible correlation"].format(row=row, beyond=beyond, high=limit)
        result = "fits" if is_within else "cannot tell"
        yield Finding("possible correlation", result, sentence, row.r, -limit, limit)

    if row.respondents is not None and row.respondents > 3:
        df = row.respondents - 2
        t = float(stats.t.ppf(0.975, df))
        limit = t / np.sqrt(df + t**2)
        result = _without_trait(abs(row.r) <= limit)
        sentence = _TEXTS["correlation of chance"].format(row=row, low=-limit, high=limit)
        yield Finding("correlation of chance", result, sentence, row.r, -limit, limit)

    if row.items and other.items and None not in (row.reverse_keyed, other.reverse_keyed):
        reverse_keyed = (row.reverse_keyed or 0, other.reverse_keyed or 0)
        share = habit_of_correlation(row.r, (row.items, other.items), reverse_keyed)
        yield _find_habit("correlation of a habit", share, f"r = {row.r:g} with {other.name}")


def _without_trait(is_reached: bool) -> str:
    return "also without the trait" if is_reached else "not explained by it"


def _find_habit(check: str, share: float, statistic: str) -> Finding:
    """Return whether a habit of agreeing would also give a statistic."""
    result = _without_trait(not np.isnan(share))
    sentence = _TEXTS["habit"][result].format(share=share, statistic=statistic)
    return Finding(check, result, sentence, share)


# --- what is the unit


def _check_unit(row: PrintedScale) -> Iterator[Finding]:
    """Yield whether a difference from people stays if the runs are one respondent."""
    printed = (row.mean, row.sd, row.n, row.norm_mean, row.norm_sd, row.norm_n)
    values = [float(value) for value in printed if value is not None]
    if len(values) < len(printed) or row.models != 1:
        return

    mean, sd, n, norm_mean, norm_sd, norm_n = values
    as_people, as_one = compare_means(mean, [sd, 0], [n, 1], norm_mean, norm_sd, norm_n)["p"]
    p_values = {"as_people": show_p(as_people), "as_one": show_p(as_one)}
    sentence = _TEXTS["unit"].format(row=row, **p_values)
    yield Finding("unit", _compare_units(as_people, as_one), sentence, as_one)


def _check_repeats(row: PrintedScale) -> Iterator[Finding]:
    """Yield whether a test stays if the runs of a model are copies of one another."""
    f = row.t**2 if row.t is not None else row.f
    if f is None or row.n is None or row.models is None or row.n <= row.models:
        return

    statistic, p = repeated_answers_test(f, row.df, row.n, row.models)
    printed = repeated_answers_test(f, row.df, row.n, row.n)[1]
    result = "cannot tell" if np.isnan(p) else _compare_units(p, printed)
    words = {"printed": show_p(printed), "repeated": show_p(p), "statistic": statistic}
    words |= {"needed": row.df + 2, "copies": row.n / row.models}
    sentence = _TEXTS["unit of the test"][result].format(row=row, **words)
    yield Finding("unit of the test", result, sentence, p)


def _compare_units(p: float, other: float) -> str:
    return "stays" if (p < 0.05) == (other < 0.05) else "changes"


# --- reading


def _printed_scales(table: str | Path | pd.DataFrame) -> dict[str, PrintedScale]:
    """Read and check the rows, and fill them from questionnaires that are known here."""
    rows: dict[str, PrintedScale] = {}
    for place, values in _records(table):
        filled = {"score": "mean"} | _values_of_questionnaire(values, place) | values
        try:
            row = PrintedScale.model_validate(filled)
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"]))
            wrong = problem["msg"]
            if problem["type"] == "string_pattern_mismatch":
                wrong = f"{problem['input']!r:.40} is not a number such as 3.52"
            raise ParameterError(f"{place}: {field}: {wrong}; correct it.") from None

        if row.name in rows:
            raise ParameterError(f"{place}: the name {row.name!r} occurs twice: rename one.")
        _check_consistency(row, place)
        rows[row.name] = row

    for row in rows.values():
        if row.correlates_with is not None and row.correlates_with not in rows:
            names = ", ".join(rows)
            raise ParameterError(
                f"{row.name}: correlates_with: no row is named {row.correlates_with!r}; "
                f"there are {names}."
            )
    return rows


def _records(table: str | Path | pd.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the non-empty values of each row."""
    if isinstance(table, pd.DataFrame):
        if not table.columns.is_unique:
            raise ParameterError("table: a column occurs twice; keep one.")
        for name, dtype in table.dtypes.items():
            if dtype in (np.float32, np.float16):
                raise ParameterError(f"table: {name}: {dtype} adds decimals; give it as text.")

        records = table.to_dict("records")
        places = [f"row {number}" for number in range(1, len(records) + 1)]
    elif not isinstance(table, str | Path):
        raise ParameterError(f"table: {table!r:.40} is no table; name a file, or give a DataFrame.")
    elif Path(table).suffix.lower() in (".yaml", ".yml"):
        check_size(Path(table))
        # all numbers as text, so that 2.50 keeps its decimals
        try:
            records = yaml.load(Path(table).read_text(encoding="utf-8"), Loader=_TextLoader)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            reason = " ".join(str(getattr(error, "problem", None) or error).split())
            raise ParameterError(
                f"{table}: not valid YAML ({reason:.100}); correct the file, in UTF-8."
            ) from None

        places = [f"{table}, row {number}" for number in range(1, len(records or []) + 1)]
        if not isinstance(records, list) or not all(isinstance(row, dict) for row in records):
            raise ParameterError(f"{table}: give a list of rows, each with name and values.")
    else:
        frame = text_table(table, ["name"])
        records = frame.to_dict("records")
        places = [f"{table}, line {line}" for line in frame.attrs["lines"]]

    for place, record in zip(places, records, strict=True):
        values = {}
        for name, value in record.items():
            is_text = isinstance(value, str)
            values[str(name)] = value.strip().replace("−", "-") if is_text else value

        yield place, {name: value for name, value in values.items() if str(value) not in _EMPTY}


class _TextLoader(yaml.BaseLoader):
    """Reads all values of YAML as text, and refuses names that occur twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Return a mapping, unless one of its names occurs twice."""
        names = [str(key.value) for key, _ in node.value]
        if len(set(names)) < len(names):
            problem = f"a name occurs twice in {names}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

        mapping: dict[str, Any] = super().construct_mapping(node, deep)
        return mapping


def _values_of_questionnaire(values: dict[str, Any], place: str) -> dict[str, Any]:
    """Return what is known here about a row's questionnaire, if it names one."""
    if "questionnaire" not in values:
        return {}

    name = str(values["questionnaire"])
    if name not in questionnaire_names():
        raise ParameterError(
            f"{place}: questionnaire {name!r} is not known here: leave it out, and give items, "
            "reverse_keyed, lowest and highest."
        )

    questionnaire = load_questionnaire(name, texts=False)
    names = [scale.id for scale in questionnaire.scales]
    if "scale" not in values and len(names) != 1:
        raise ParameterError(f"{place}: scale: give one of {', '.join(names)}.")

    scale = questionnaire.scale(str(values.get("scale", names[0])))
    defaults: dict[str, Any] = {"scale": scale.id, "items": len(scale.items), "score": scale.mode}
    defaults["reverse_keyed"] = len(scale.reverse)
    if questionnaire.options:
        options = [option.value for option in questionnaire.options]
        defaults |= {"lowest": int(min(options)), "highest": int(max(options))}

    norms = [norm for norm in questionnaire.norms if norm.scale == scale.id]
    if len(norms) == 1:
        defaults |= {"norm_mean": norms[0].mean, "norm_sd": norms[0].sd, "norm_n": norms[0].n}
    return defaults


def _check_consistency(row: PrintedScale, place: str) -> None:
    """Refuse values of one row that contradict each other."""
    pairs = (("reverse_keyed", "items"), ("lowest", "highest"), ("models", "n"))
    for smaller, larger in pairs:
        low, high = getattr(row, smaller), getattr(row, larger)
        if None not in (low, high) and (low > high or (smaller == "lowest" and low == high)):
            raise ParameterError(
                f"{place}: {smaller} is {low} and {larger} is {high}: correct one of them."
            )

    if row.sd is not None and row.sd.startswith("-"):
        raise ParameterError(f"{place}: sd: {row.sd} is negative: correct it.")
    if row.correlates_with == row.name:
        raise ParameterError(f"{place}: correlates_with: names its own row; name another.")
    if (row.r is None) != (row.correlates_with is None):
        raise ParameterError(f"{place}: r and correlates_with belong together: give both.")
    if row.t is not None and row.f is not None:
        raise ParameterError(f"{place}: t and f are the same test: give one of them.")
