"""Turn typed results into the content of their pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ..formats import number
from ..questionnaires import Questionnaire
from .agreement import INDEPENDENT
from .assessments import Assessment, Comparison
from .checklist import of_answers, of_profile
from .five_tests import examine_answers, examine_model, examine_models
from .report import Column, Report, Statement, Table
from .rules import ENOUGH_RESPONDENTS, rules
from .sentences import (
    VERDICTS,
    read_questionnaire,
    show_alpha,
    state_differences,
    state_questionnaire,
    state_scales_of_answers,
)

_READINGS = {
    "no alpha": ("no score", "No alpha"),
    "no more consistent than independent answers": ("fails", "As random answers"),
    "no more consistent than a habit": ("fails", "As a mere habit"),
    "more consistent than independent answers and habits": ("passes", "Consistent"),
}
_MARKS = {"no score": "✗", "fails": "✗", "reservations": "!", "passes": "✓", "placebo": "–"}


_TABLES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "templates" / "tables.yml").read_text(encoding="utf-8")
)


def make_table(
    name: str,
    title: str,
    frame: pd.DataFrame,
    columns: Mapping[str, str | tuple[str, str]],
    note: str = "",
) -> Table:
    """Return a table of a page; columns without any value are left out.

    Parameters
    ----------
    name, title, note : str
    frame : DataFrame
        The rows, whose other columns are kept in the rows but not shown.
    columns : mapping
        The headings of the shown columns, each alone or with a number format.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [0.5], "b": [float("nan")]})
    >>> table = make_table("t", "Two columns.", frame, {"a": ("first", ".2f"), "b": "second"})
    >>> [column.heading for column in table.columns], table.rows
    (['first'], [{'a': 0.5, 'b': None}])
    """
    visible = []
    for key, spec in columns.items():
        heading, form = (spec, "") if isinstance(spec, str) else spec
        has_values = key in frame and (frame[key].notna() & (frame[key].astype(object) != "")).any()
        if has_values:
            visible.append(Column(key=key, heading=heading, form=form))

    cells = frame.astype(object).replace([np.inf, -np.inf], np.nan)
    rows = cells.where(cells.notna(), None).to_dict("records")
    return Table(name=name, title=title, columns=visible, rows=rows, note=note)


def _show(name: str, frame: pd.DataFrame, **changes: Any) -> Table:
    """Return a table as the file ``tables.yml`` describes it, but for changes."""
    form = _TABLES[name] | changes
    note = form.get("note", "").format(independent=INDEPENDENT)
    return make_table(name, form["title"], frame, form["columns"], note)


def report_profile(assessment: Assessment) -> Report:
    """Return the content of a model's page.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> from psychometrics.reports.profiles import judge_respondents
    >>> answers = empty_answers("gad7", "agree")
    >>> name = answers["respondent_id"].iloc[0]
    >>> report = report_profile(judge_respondents(answers, "gad7", [name])[name])
    >>> report.statements[0].text
    "Do not write about this model's anxiety: it gave the same answer to every item."
    """
    conditions = assessment.asked["how"] if assessment.asked is not None else pd.Series(dtype=str)
    title = conditions.get("respondent", "a respondent")
    parts = [f"mode {assessment.mode}", conditions.get("asked", "")]
    parts.append(conditions.get("null respondents", ""))
    unread = conditions.get("refused or unreadable", "0")
    if unread != "0" or assessment.mode == "chat":
        parts.append(f"refused or unreadable: {unread}")
    if "cost" in conditions:
        parts.append(f"cost: {conditions['cost']}")

    frames = profile_tables(assessment)
    if "norms" in frames:
        norms = frames["norms"]
        keys = zip(norms["questionnaire"], norms["scale"], strict=True)
        titles = _scale_titles(assessment.questionnaires)
        names_of_scales = [f"{assessment.short_title(key[0])}, {titles[key]}" for key in keys]
        frames["norms"] = norms.assign(about=names_of_scales)

    names = ("norms", "flags", "agreement", "kernel", "sizes", "rules", "asked")
    return Report(
        kind="profile",
        title=title,
        about=" · ".join(filter(None, parts)),
        statements=_statements({title: assessment}),
        tests=examine_model(assessment),
        results=_results({title: assessment}),
        details=_make_details(frames, names, assessment.questionnaires),
        checklist=_show("checklist", frames["checklist"]) if "checklist" in frames else None,
        command=assessment.command(),
    )


def _statements(assessments: Mapping[str, Assessment]) -> list[Statement]:
    """Return what may be written about each questionnaire, for each model."""
    order = list(VERDICTS)
    statements = []
    for name, assessment in assessments.items():
        for questionnaire in assessment.questionnaires:
            readings = read_questionnaire(assessment, questionnaire.id)
            title = questionnaire.short_title
            worst = min(readings, key=lambda each: order.index(each.case))
            place = title if len(assessments) == 1 else f"{name}, {title}"
            text = state_questionnaire(title, readings)
            statements.append(
                Statement(about=place, case=worst.case, verdict=worst.verdict, text=text)
            )

    return statements


def _results(assessments: Mapping[str, Assessment]) -> Table:
    """Return the main table, with a row for each scale and model."""
    rows = []
    for name, assessment in assessments.items():
        to_prompts = assessment.base is not None
        for questionnaire in assessment.questionnaires:
            readings = read_questionnaire(assessment, questionnaire.id)
            scores = assessment.scores
            scores = scores[scores["questionnaire"] == questionnaire.id]
            for reading, (_, row) in zip(readings, scores.iterrows(), strict=True):
                reading_of_row = {"about": questionnaire.short_title, "verdict": reading.verdict}
                reading_of_row |= {"case": reading.case, "reason": reading.reason, "model": name}
                reading_of_row["scale_title"] = row["title"]
                reading_of_row["interval"] = _interval(row["low"], row["high"])
                if to_prompts and reading.drawn:
                    reading_of_row["impostors"] = f"{reading.impostors} of {reading.drawn}"

                rows.append({**row.to_dict(), **reading_of_row})

    frame = pd.DataFrame(rows)
    frame["mark"] = frame["case"].map(_MARKS).fillna("!")
    columns = dict(_TABLES["scores"]["columns"])
    if len(assessments) > 1:
        frame = frame.sort_values("questionnaire", kind="stable", key=_first_places)
    else:
        del columns["model"]

    return _show("scores", frame, columns=columns)


def _first_places(names: pd.Series) -> pd.Series:
    """Return each name's place of first occurrence, to sort in the order of asking."""
    return names.map({name: place for place, name in enumerate(names.unique())})


def _interval(low: float, high: float) -> str:
    """Return an interval in words, or that a single item has none."""
    if math.isnan(low):
        return "none"
    return f"{number(low, '.3f')} to {number(high, '.3f')}"


def _scale_titles(questionnaires: Iterable[Questionnaire]) -> dict[tuple[str, str], str]:
    """Return the titles of scales, by the ids of their questionnaire and their own."""
    return {(each.id, scale.id): scale.title for each in questionnaires for scale in each.scales}


def _make_details(
    frames: Mapping[str, pd.DataFrame],
    names: Iterable[str],
    questionnaires: Sequence[Questionnaire],
) -> list[Table]:
    """Return the named tables as pages show them, without empty ones; add the titles of ids."""
    titles = {each.id: each.short_title for each in questionnaires}
    scale_titles = _scale_titles(questionnaires)
    details = []
    for name in names:
        frame = frames.get(name, pd.DataFrame())
        if frame.empty:
            continue

        columns = _TABLES[name]["columns"]
        if "about" in columns and "about" not in frame:
            frame = frame.assign(about=frame["questionnaire"].map(titles))
        if "scale_title" in columns:
            keys = zip(frame["questionnaire"], frame["scale"], strict=True)
            frame = frame.assign(scale_title=[scale_titles.get(k, "all scales") for k in keys])

        details.append(_show(name, frame))

    return details


def make_checklist(table: pd.DataFrame) -> Table:
    """Return the reporting checklist as a table of a page.

    Examples
    --------
    >>> from psychometrics.reports.checklist import checklist
    >>> len(make_checklist(checklist({})).rows)
    18
    """
    return _show("checklist", table.reset_index())


def report_comparison(comparison: Comparison, command: str = "") -> Report:
    """Return the content of a page about several models.

    Examples
    --------
    >>> from psychometrics.reports.comparisons import compare_models
    >>> names = ["minilm-mnli-l3-s16", "minilm-snli-l3-s17"]
    >>> comparison = compare_models(names, "challenges", against=None)
    >>> report_comparison(comparison).title
    'minilm-mnli-l3-s16 and minilm-snli-l3-s17'
    """
    assessments = comparison.assessments
    questionnaires = comparison.questionnaires
    titles = {each.id: each.short_title for each in questionnaires}
    scale_titles = _scale_titles(questionnaires)
    gaps = comparison.differences
    keys = zip(gaps["questionnaire"], gaps["scale"], strict=True)
    gaps = gaps.assign(
        about=gaps["questionnaire"].map(titles), title=[scale_titles[key] for key in keys]
    )

    frames = comparison_tables(comparison)
    if "read" in frames:
        frames["read"] = _hide_zeros(frames["read"])
    names = ("flags", "agreement", "rules", "failed", "read")
    details = _make_details(frames, names, questionnaires)
    if len(gaps):
        columns = dict(_TABLES["differences"]["columns"])
        columns["difference"] = (f"difference from {next(iter(assessments))}", "+.3f")
        details.insert(0, _show("differences", gaps, columns=columns))

    if "asked" in frames:
        title = "How the models were asked."
        details.append(_show("asked", frames["asked"], title=title))

    *earlier, last = assessments
    return Report(
        kind="compare",
        title=f"{', '.join(earlier)} and {last}" if earlier else last,
        about=f"mode {comparison.first.mode} · {', '.join(titles.values())}",
        statements=[*_state_gaps(gaps, assessments), *_statements(assessments)],
        tests=examine_models(assessments),
        results=_results(assessments),
        details=details,
        command=command,
    )


def _state_gaps(gaps: pd.DataFrame, assessments: Mapping[str, Assessment]) -> list[Statement]:
    """Return the statements about differences; scales of one verdict share one."""
    baseline = next(iter(assessments))
    crossed = {
        (name, row.questionnaire, row.scale)
        for name, assessment in assessments.items()
        for row in assessment.scores[assessment.scores["mark"] == "✗"].itertuples()
    }
    unread = [
        ", ".join(n for n in (baseline, row.model) if (n, row.questionnaire, row.scale) in crossed)
        for row in gaps.itertuples()
    ]
    keys = ["model", "about", "verdict", "unread"]
    statements = []
    for (model, title, verdict, names), rows in gaps.assign(unread=unread).groupby(
        keys, sort=False
    ):
        text = state_differences(rows, baseline, model, names.split(", ") if names else ())
        case = "passes" if text.startswith("You may") else "as impostors"
        statements.append(
            Statement(about=f"{model}, {title}", case=case, verdict=verdict, text=text)
        )

    return statements


def _hide_zeros(read: pd.DataFrame) -> pd.DataFrame:
    """Return the notes on what was read without counts of nothing."""
    return read.assign(count=read["count"].astype(object).where(read["count"] > 0))


def report_answers(
    answers: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    questionnaires: Iterable[Questionnaire],
    name: str = "answers",
    command: str = "",
) -> Report:
    """Return the content of a page about a table of answers.

    Parameters
    ----------
    answers : DataFrame
        Answers, as :func:`psychometrics.answers.files.read_all` returns them.
    tables : mapping of str to DataFrame
        The result of :func:`psychometrics.reports.answer_profiles.assess_answers`.
    questionnaires : iterable of Questionnaire
    name, command : str
        The table's name, and the command that made the page.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> from psychometrics.measures.styles import empty_answers
    >>> from psychometrics.reports.answer_profiles import assess_answers
    >>> answers = empty_answers("gad7", "random", respondents=5, runs=1)
    >>> gad7 = load_questionnaire("gad7")
    >>> report = report_answers(answers, assess_answers(answers, "gad7"), [gad7])
    >>> report.statements[0].case
    'fails'
    """
    questionnaires = list(questionnaires)
    titles = {each.id: each.short_title for each in questionnaires}
    scales = _join_bias(tables)
    respondents = answers["respondent_id"].nunique()
    runs = answers[["respondent_id", "run"]].drop_duplicates().shape[0]
    parts = [f"{respondents} respondents", ", ".join(titles.values())]
    if runs > respondents:
        parts.insert(1, f"{runs} runs, averaged for each respondent")

    cases = [_read_alpha(row) for _, row in scales.iterrows()]
    statements = []
    for (questionnaire, (case, verdict)), rows in scales.assign(case=cases).groupby(
        ["questionnaire", "case"], sort=False
    ):
        short_title = titles[questionnaire]
        unnamed = rows["title"] == short_title
        named = rows.assign(title=rows["title"].mask(unnamed, f"scores of {short_title}"))
        text = state_scales_of_answers(named)
        statements.append(Statement(about=short_title, case=case, verdict=verdict, text=text))

    frames = answer_tables(answers, tables)
    frames["coefficients"] = scales
    if "read" in frames:
        frames["read"] = _hide_zeros(frames["read"])

    names = ("read", "coefficients", "runs", "bias", "styles", "agreement", "verdicts", "rules")
    return Report(
        kind="answers",
        title=name,
        about=" · ".join(parts),
        statements=statements,
        tests=examine_answers(tables, titles),
        results=_results_of_answers(scales, titles, cases),
        details=_make_details(frames, names, questionnaires),
        checklist=make_checklist(of_answers(answers)),
        command=command,
    )


def _join_bias(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the scales of a table of answers with their shares of bias, where these are known."""
    keys = ["questionnaire", "scale"]
    bias = tables["bias"].reindex(columns=[*keys, "bias", "random_low", "alpha_raw"])
    return tables["scales"].merge(bias.astype(dict.fromkeys(keys, str)), on=keys, how="left")


def _read_alpha(row: pd.Series) -> tuple[str, str]:
    """Return the case and the verdict of a scale of a table of answers."""
    case, verdict = _READINGS[row["reading"].partition(",")[0].partition(":")[0]]
    if case != "passes":
        return case, verdict
    if row["alpha_raw"] >= row["alpha"]:
        return "fails", "As high unreversed"
    if row["bias"] >= row["random_low"]:
        return "reservations", "Trait or bias"
    if row["respondents"] < ENOUGH_RESPONDENTS:
        return "reservations", "Few respondents"
    return case, verdict


def _results_of_answers(
    scales: pd.DataFrame, titles: Mapping[str, str], cases: list[tuple[str, str]]
) -> Table:
    """Return the main table, with the case and the verdict of each scale."""
    frame = scales.assign(
        about=scales["questionnaire"].map(titles),
        mark=[_MARKS[case] for case, _ in cases],
        case=[case for case, _ in cases],
        verdict=[verdict for _, verdict in cases],
        reason=scales["reading"],
        interval=[_interval(row.low, row.high) for row in scales.itertuples()],
        alpha_interval=[
            f"{show_alpha(row.alpha_low)} to {show_alpha(row.alpha_high)}"
            if row.alpha == row.alpha
            else ""
            for row in scales.itertuples()
        ],
        shown_alpha=[show_alpha(value) if value == value else "" for value in scales["alpha"]],
    )
    return _show("scales", frame)


def profile_tables(assessment: Assessment) -> dict[str, pd.DataFrame]:
    """Return the tables of a model's page as frames, by their names.

    Examples
    --------
    >>> from psychometrics.reports.profiles import assess
    >>> list(profile_tables(assess("minilm-mnli-l3-s16", "challenges", against=None)))[:2]
    ['scores', 'flags']
    """
    frames = {
        "scores": assessment.scores.rename(columns={"n": "items", "place": "others below"}),
        "flags": assessment.flags,
        "agreement": assessment.agreement,
        "kernel": assessment.kernel,
        "sizes": assessment.sizes,
        "norms": assessment.norms,
        "rules": rules(assessment.base is not None).reset_index(),
    }
    if assessment.asked is not None:
        names = [each.id for each in assessment.questionnaires]
        frames["asked"] = assessment.asked.reset_index()
        frames["checklist"] = of_profile(assessment.asked, names).reset_index()

    return {name: frame for name, frame in frames.items() if frame is not None}


def comparison_tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Return the tables of a page about several models as frames, by their names."""

    def join(kind: str) -> pd.DataFrame:
        tables = {name: getattr(each, kind) for name, each in comparison.assessments.items()}
        return pd.concat(tables, names=["model"]).reset_index("model")

    scores = join("scores").sort_values("questionnaire", kind="stable", key=_first_places)
    frames = {
        "scores": scores.rename(columns={"n": "items"}),
        "flags": join("flags"),
        "differences": comparison.differences.rename(columns={"null": "heads differ"}),
        "agreement": comparison.agreement,
        "rules": rules(comparison.first.base is not None).reset_index(),
    }
    if comparison.read is None:
        frames["asked"] = join("asked").reset_index()[["model", "what", "how"]]
    else:
        frames["read"] = comparison.read
    if comparison.failures:
        frames["failed"] = pd.DataFrame(comparison.failures.items(), columns=["model", "reason"])

    return frames


def answer_tables(
    answers: pd.DataFrame, tables: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Return the tables of a page about answers as frames, by their names."""
    frames = dict(tables) | {
        "rules": rules(to_prompts=False).reset_index(),
        "checklist": of_answers(answers).reset_index(),
        "read": pd.DataFrame(answers.attrs.get("summary", {}).get("read", [])),
    }
    return {name: frame for name, frame in frames.items() if len(frame)}
