"""Turn typed results into the content of their pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..formats import number
from ..questionnaires import Questionnaire
from .agreement import INDEPENDENT
from .assessments import Assessment, Comparison
from .checklist import of_answers, of_profile
from .five_tests import examine_answers, examine_model, examine_models
from .report import _MARKS, Column, Report, Statement, Table, _load_texts
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
_TABLES = _load_texts("tables")


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
        norms = _add_titles(frames["norms"], ["title", "about"], assessment.questionnaires)
        norms["about"] += ", " + norms.pop("title")
        frames["norms"] = norms

    names = ("norms", "flags", "agreement", "kernel", "sizes", "rules", "asked")
    statements, results = _judge_scales({title: assessment})
    return Report(
        kind="profile",
        title=title,
        about=" · ".join(filter(None, parts)),
        statements=statements,
        tests=examine_model(assessment),
        results=results,
        details=_make_details(frames, names, assessment.questionnaires),
        checklist=_show("checklist", frames["checklist"]) if "checklist" in frames else None,
        command=assessment.command(),
    )


def _judge_scales(assessments: Mapping[str, Assessment]) -> tuple[list[Statement], Table]:
    """Return what may be written about each questionnaire and model, and the table of scales."""
    order = list(VERDICTS)
    statements = []
    rows = []
    for name, assessment in assessments.items():
        for questionnaire in assessment.questionnaires:
            title = questionnaire.short_title
            readings = read_questionnaire(assessment, questionnaire.id)
            worst = min(readings, key=lambda each: order.index(each.case))
            place = title if len(assessments) == 1 else f"{name}, {title}"
            text = state_questionnaire(title, readings)
            statements.append(
                Statement(about=place, case=worst.case, verdict=worst.verdict, text=text)
            )

            scores = assessment.scores[assessment.scores["questionnaire"] == questionnaire.id]
            for reading, row in zip(readings, scores.to_dict("records"), strict=True):
                row |= {"verdict": reading.verdict, "about": title, "case": reading.case}
                row |= {"reason": reading.reason, "model": name, "scale_title": row["title"]}
                row["interval"] = _interval(row["low"], row["high"])
                if assessment.base is not None and reading.drawn:
                    row["impostors"] = f"{reading.impostors} of {reading.drawn}"

                rows.append(row)

    frame = pd.DataFrame(rows)
    frame["mark"] = frame["case"].map(_MARKS)
    columns = dict(_TABLES["scores"]["columns"])
    if len(assessments) == 1:
        del columns["model"]

    # the order of asking, with the models of a questionnaire side by side
    frame = frame.sort_values("questionnaire", kind="stable", key=lambda ids: pd.factorize(ids)[0])
    return statements, _show("scores", frame, columns=columns)


def _interval(low: float, high: float) -> str:
    """Return an interval in words, or that a single item has none."""
    if math.isnan(low):
        return "none"
    return f"{number(low, '.3f')} to {number(high, '.3f')}"


def _make_details(
    frames: Mapping[str, pd.DataFrame],
    names: Iterable[str],
    questionnaires: Iterable[Questionnaire],
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Table]:
    """Return the named tables as pages show them, without empty ones; add the titles of ids."""
    details = []
    for name in names:
        frame = frames.get(name, pd.DataFrame())
        if frame.empty:
            continue

        if name == "read":  # counts of nothing are not shown
            frame = frame.assign(count=frame["count"].astype(object).where(frame["count"] > 0))

        missing = [column for column in _TABLES[name]["columns"] if column not in frame]
        frame = _add_titles(frame, missing, questionnaires)
        details.append(_show(name, frame, **(changes or {}).get(name, {})))

    return details


def _add_titles(
    frame: pd.DataFrame, columns: Iterable[str], questionnaires: Iterable[Questionnaire]
) -> pd.DataFrame:
    """Add the titles of questionnaires (``about``) and scales, if they are among the columns."""
    titles = {}
    scale_titles: dict[tuple[str, str], str] = {}
    for each in questionnaires:
        titles[each.id] = each.short_title
        scale_titles |= {(each.id, scale.id): scale.title for scale in each.scales}

    added = {}
    for column in columns:
        if column == "about":
            added[column] = frame["questionnaire"].map(titles)
        elif column in ("title", "scale_title"):
            keys = zip(frame["questionnaire"], frame["scale"], strict=True)
            added[column] = [scale_titles.get(key, "all scales") for key in keys]

    return frame.assign(**added)


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
    gaps = _add_titles(comparison.differences, ["about", "title"], questionnaires)
    heading = f"difference from {next(iter(assessments))}", "+.3f"
    changes = {
        "differences": {"columns": _TABLES["differences"]["columns"] | {"difference": heading}},
        "asked": {"title": "How the models were asked."},
    }
    frames = comparison_tables(comparison) | {"differences": gaps}
    names = ("differences", "flags", "agreement", "rules", "failed", "read", "asked")
    statements, results = _judge_scales(assessments)
    *earlier, last = assessments
    titles = [each.short_title for each in questionnaires]
    return Report(
        kind="compare",
        title=f"{', '.join(earlier)} and {last}" if earlier else last,
        about=f"mode {comparison.first.mode} · {', '.join(titles)}",
        statements=[*_state_gaps(gaps, assessments), *statements],
        tests=examine_models(assessments, comparison.agreement),
        results=results,
        details=_make_details(frames, names, questionnaires, changes),
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
    keys = ["questionnaire", "scale"]
    bias = tables["bias"].reindex(columns=[*keys, "bias", "random_low", "alpha_raw"])
    bias = bias.astype(dict.fromkeys(keys, str))
    scales = tables["scales"].merge(bias, on=keys, how="left")
    respondents = answers["respondent_id"].nunique()
    runs = answers[["respondent_id", "run"]].drop_duplicates().shape[0]
    parts = [f"{respondents} respondents", ", ".join(titles.values())]
    if runs > respondents:
        parts.insert(1, f"{runs} runs, averaged for each respondent")

    statements, results = _judge_scales_of_answers(scales, titles)
    frames = answer_tables(answers, tables)
    frames["coefficients"] = scales
    names = ("read", "coefficients", "runs", "bias", "styles", "agreement", "verdicts", "rules")
    return Report(
        kind="answers",
        title=name,
        about=" · ".join(parts),
        statements=statements,
        tests=examine_answers(tables, titles),
        results=results,
        details=_make_details(frames, names, questionnaires),
        checklist=make_checklist(of_answers(answers)),
        command=command,
    )


def _judge_scales_of_answers(
    scales: pd.DataFrame, titles: Mapping[str, str]
) -> tuple[list[Statement], Table]:
    """Return what may be written about the scales of a table of answers, and their table."""
    cases = []
    for _, row in scales.iterrows():
        case = _READINGS[row["reading"].partition(",")[0].partition(":")[0]]
        if case[0] == "passes":
            if row["alpha_raw"] >= row["alpha"]:
                case = ("fails", "As high unreversed")
            elif row["bias"] >= row["random_low"]:
                case = ("reservations", "Trait or bias")
            elif row["respondents"] < ENOUGH_RESPONDENTS:
                case = ("reservations", "Few respondents")

        cases.append(case)

    has_alpha = scales["alpha"].notna()
    alphas = scales[["alpha", "alpha_low", "alpha_high"]].map(show_alpha)
    frame = scales.assign(
        about=scales["questionnaire"].map(titles),
        mark=[_MARKS[case] for case, _ in cases],
        case=[case for case, _ in cases],
        verdict=[verdict for _, verdict in cases],
        reason=scales["reading"],
        interval=[_interval(row.low, row.high) for row in scales.itertuples()],
        alpha_interval=(alphas["alpha_low"] + " to " + alphas["alpha_high"]).where(has_alpha, ""),
        shown_alpha=alphas["alpha"].where(has_alpha, ""),
    )
    statements = []
    keys = ["questionnaire", "case", "verdict"]
    for (questionnaire, case, verdict), rows in frame.groupby(keys, sort=False):
        short_title = titles[questionnaire]
        unnamed = rows["title"] == short_title
        named = rows.assign(title=rows["title"].mask(unnamed, f"scores of {short_title}"))
        text = state_scales_of_answers(named)
        statements.append(Statement(about=short_title, case=case, verdict=verdict, text=text))

    return statements, _show("scales", frame)


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

    scores = join("scores").sort_values(
        "questionnaire", kind="stable", key=lambda ids: pd.factorize(ids)[0]
    )
    frames = {
        "scores": scores.rename(columns={"n": "items"}),
        "flags": join("flags"),
        "differences": comparison.differences.rename(columns={"null": "heads differ"}),
        "agreement": comparison.agreement,
        "rules": rules(comparison.first.base is not None).reset_index(),
    }
    if comparison.read is not None:
        frames["read"] = comparison.read
    elif comparison.first.asked is not None:
        frames["asked"] = join("asked").reset_index()[["model", "what", "how"]]
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
