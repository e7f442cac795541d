"""Turn typed results into the content of their pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import pandas as pd

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

_AGREEMENT = {
    "about": "questionnaire",
    "respondents": ("respondents", "d"),
    "items": ("items", "d"),
    "agreement": ("agreement", ".3f"),
    "low": ("95 % from", ".3f"),
    "high": ("to", ".3f"),
    "null": ("dealt at random, up to", ".3f"),
    "p": ("p", "p"),
    "scale_by_key": ("of it, scale by key", ".3f"),
    "share": ("share", ".0%"),
    "p_beyond": ("p beyond", "p"),
    "with_others": ("this model with others", ".3f"),
    "null_with_others": ("its answers dealt at random, up to", ".3f"),
    "note": "note",
}
_AGREEMENT_NOTE = (
    "Agreement is the mean correlation of item scores over pairs of respondents. Scale by key is "
    "the part that lies between items of different scales or keys; p beyond tests the rest. "
)
_FLAGS_NOTE = (
    "✗ means that the score must not be interpreted, ! that it needs a reservation, ✓ that the "
    "check speaks for it, – that it could not be tested."
)
_RULES_NOTE = (
    "The rules are the same for all models. A model that knows nothing gets ✓ on any scale of this "
    "page with a probability of at most 5 %. Even a score without flags may not measure what its "
    "name says."
)
_CHECKLIST_NOTE = (
    "Items A.1 to G.1 are the core items of GUIDE-LLM (llm-checklist.com), in our words; N.1 to "
    "N.4 are added. An item is known from the record, has to be added by the author, or is missing."
)
_READINGS = {
    "no alpha": ("no score", "No alpha"),
    "no more consistent than independent answers": ("fails", "As random answers"),
    "no more consistent than a habit": ("fails", "As a mere habit"),
    "more consistent than independent answers and habits": ("passes", "Consistent"),
}
_MARKS = {"no score": "✗", "fails": "✗", "reservations": "!", "passes": "✓", "placebo": "–"}

# Tables on which verdicts about answers rest: name, title, columns and note, by their key.
_DETAILS_OF_ANSWERS: dict[str, tuple[str, str, dict, str]] = {
    "scales": (
        "coefficients", "Other coefficients.",
        {"about": "questionnaire", "title": "scale", "items": ("items", "d"),
         "reversed": ("reversed", "d"), "alpha_ordinal": ("ordinal alpha", ".2f"),
         "omega_total": ("omega total", ".2f"),
         "omega_hierarchical": ("omega hierarchical", ".2f"),
         "reliability_graded": ("graded reliability", ".2f"), "at_limit": "at a limit"},
        "Report alpha for sums of answers. Ordinal alpha describes tendencies behind answers "
        "to few options. Where omega hierarchical is much lower than omega total, the sum "
        "mixes several things. Graded reliability is of abilities in a graded response model; "
        "use it only if no item is at a limit.",
    ),
    "runs": (
        "runs", "Runs are not respondents.",
        {"about": "questionnaire", "title": "scale", "units": ("respondents", "d"),
         "rows": ("rows", "d"), "between": ("variance between", ".3f"),
         "within": ("within", ".3f"), "share": ("share between respondents", ".2f"),
         "low": ("95 % from", ".2f"), "high": ("to", ".2f"),
         "effective": ("independent rows", ".1f")},
        "A thousand runs of one model tell much about that model and nothing about others.",
    ),
    "bias": (
        "bias", "Trait or bias?",
        {"about": "questionnaire", "title": "scale", "n": ("respondents", "d"),
         "bias": ("share of bias", ".2f"), "low": ("95 % from", ".2f"), "high": ("to", ".2f"),
         "random_low": ("random answers from", ".2f"), "random_high": ("to", ".2f"),
         "habit": ("a habit", ".2f"), "error_part": ("error", ".2f"),
         "alpha": ("alpha", ".2f"), "alpha_raw": ("alpha unreversed", ".2f")},
        "A trait pushes answers to plain and to reversed items apart; a bias pushes both the "
        "same way. If alpha without reversing is as high as alpha, it is not evidence of the "
        "trait.",
    ),
    "styles": (
        "styles", "Ways of answering.",
        {"about": "questionnaire", "who": "respondents", "agreeing": ("agreeing", ".2f"),
         "acquiescence": ("acquiescence", ".2f"), "extreme": ("extreme", ".2f"),
         "middle": ("middle", ".2f"), "commonest": ("commonest", ".2f")},
        "Agreeing and acquiescence run from −1 to 1; the others are shares of answers.",
    ),
    "verdicts": (
        "verdicts", "Single respondents.",
        {"about": "questionnaire", "scale_title": "scale", "judged": ("judged", "d"),
         "✗": ("✗ not to be interpreted", "d"), "!": ("! with reservations", "d"),
         "✓": ("✓ no flag", "d")},
        "Each respondent is judged by its own answers; of more than 40, 40 are drawn.",
    ),
}  # fmt: skip


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
    shown = []
    for key, spec in columns.items():
        heading, form = (spec, "") if isinstance(spec, str) else spec
        has_values = key in frame and (frame[key].notna() & (frame[key].astype(object) != "")).any()
        if has_values:
            shown.append(Column(key=key, heading=heading, form=form))

    rows = [
        {str(key): _plain_value(value) for key, value in row.items()}
        for row in frame.to_dict("records")
    ]
    return Table(name=name, title=title, columns=shown, rows=rows, note=note)


def _plain_value(value: object) -> str | float | int | bool | None:
    """Return a cell as JSON can hold it."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, str | float | int | bool) else str(value)


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
    how = assessment.asked["how"] if assessment.asked is not None else pd.Series(dtype=str)
    title = how.get("respondent", "a respondent")
    parts = [f"mode {assessment.mode}", how.get("asked", ""), how.get("null respondents", "")]
    unread = how.get("refused or unreadable", "0")
    if unread != "0" or assessment.mode == "chat":
        parts.append(f"refused or unreadable: {unread}")
    if "cost" in how:
        parts.append(f"cost: {how['cost']}")

    details = [_people(assessment), _flags(assessment.flags, assessment), *_learnt(assessment)]
    checklist = None
    if assessment.asked is not None:
        names = [each.id for each in assessment.questionnaires]
        checklist = make_checklist(of_profile(assessment.asked, names))
        asked = assessment.asked.reset_index()
        details.append(
            make_table("asked", "How it was asked.", asked, {"what": "what", "how": "how"})
        )

    return Report(
        kind="profile",
        title=title,
        about=" · ".join(filter(None, parts)),
        statements=_statements({title: assessment}),
        tests=examine_model(assessment),
        results=_results({title: assessment}),
        details=[table for table in details if table is not None and table.rows],
        checklist=checklist,
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
            about = title if len(assessments) == 1 else f"{name}, {title}"
            text = state_questionnaire(title, readings)
            statements.append(
                Statement(about=about, case=worst.case, verdict=worst.verdict, text=text)
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
                about = {"about": questionnaire.short_title, "verdict": reading.verdict}
                about |= {"case": reading.case, "reason": reading.reason, "model": name}
                about["scale_title"] = row["title"]
                about["interval"] = _interval(row["low"], row["high"])
                if to_prompts and reading.drawn:
                    about["impostors"] = f"{reading.impostors} of {reading.drawn}"

                rows.append({**row.to_dict(), **about})

    frame = pd.DataFrame(rows)
    frame["mark"] = frame["case"].map(_MARKS).fillna("!")
    columns = {"verdict": "verdict", "about": "questionnaire", "scale_title": "scale"}
    if len(assessments) > 1:
        columns["model"] = "model"
        frame = frame.sort_values("questionnaire", kind="stable", key=_first_places)

    columns |= {
        "score": ("score", ".3f"),
        "interval": "95 % interval",
        "impostors": "impostors as far from zero",
        "place": ("others below", ".0%"),
        "n": ("items", "d"),
    }
    note = "The interval is over items: other items of the same kind would give other scores."
    return make_table("scores", "Scores and verdicts.", frame, columns, note)


def _first_places(names: pd.Series) -> pd.Series:
    """Return each name's place of first occurrence, to sort in the order of asking."""
    return names.map({name: place for place, name in enumerate(names.unique())})


def _interval(low: float, high: float) -> str:
    """Return an interval in words, or that a single item has none."""
    if math.isnan(low):
        return "none"
    return f"{number(low, '.3f')} to {number(high, '.3f')}"


def _people(assessment: Assessment) -> Table | None:
    """Return the comparison with people's norms."""
    if assessment.norms is None:
        return None

    titles = {
        (each.id, scale.id): f"{each.short_title}, {scale.title}"
        for each in assessment.questionnaires
        for scale in each.scales
    }
    norms = assessment.norms
    keys = zip(norms["questionnaire"], norms["scale"], strict=True)
    norms = norms.assign(about=[titles[key] for key in keys])
    columns = {
        "about": "scale",
        "group": "people",
        "mean": ("this model", ".2f"),
        "norm_mean": ("their mean", ".2f"),
        "norm_sd": ("their SD", ".2f"),
        "norm_n": ("n", ",.0f"),
        "delta": ("distance (SD)", "+.2f"),
        "p": ("p", "p"),
    }
    note = (
        "p is the share of people who would be as far from their mean as the model, counted as one "
        "more person. A score near the norm does not make the model such a person."
    )
    return make_table("norms", "The scores and people's norms.", norms, columns, note)


def _flags(flags: pd.DataFrame, assessment: Assessment, model: bool = False) -> Table:
    """Return the checks on which the verdicts rest."""
    titles = {scale.id: scale.title for each in assessment.questionnaires for scale in each.scales}
    about = [assessment.short_title(name) for name in flags["questionnaire"]]
    frame = flags.assign(about=about, scale_title=flags["scale"].map(titles).fillna("all scales"))
    columns = {"mark": "mark", "about": "questionnaire", "scale_title": "scale"}
    columns |= {"model": "model"} if model else {}
    columns |= {"check": "check", "words": "what was found"}
    return make_table("flags", "The checks behind the verdicts.", frame, columns, _FLAGS_NOTE)


def _agreement(table: pd.DataFrame, titles: Mapping[str, str]) -> Table:
    """Return the agreement of respondents."""
    frame = table.assign(about=table["questionnaire"].map(titles).fillna(table["questionnaire"]))
    title = "Agreement of independent respondents."
    return make_table("agreement", title, frame, _AGREEMENT, _AGREEMENT_NOTE + INDEPENDENT)


def _learnt(assessment: Assessment) -> list[Table | None]:
    """Return the tables about agreement, about models that learnt nothing, and the rules."""
    tables = []
    titles = {each.id: each.short_title for each in assessment.questionnaires}
    if assessment.agreement is not None:
        tables.append(_agreement(assessment.agreement, titles))

    if assessment.kernel is not None:
        columns = {
            "statistic": "statistic", "scale": "scale", "other": "with", "value": ("value", ".2f"),
            "low": ("95 % from", ".2f"), "high": ("to", ".2f"),
        }  # fmt: skip
        note = (
            "One model has no alpha and no correlation of scales. Before you report them for "
            "several models on this base, compare them with these values of untrained answering "
            "layers; the intervals are for samples of 24."
        )
        title = "Reliability and correlations if nothing had been learnt."
        tables.append(make_table("kernel", title, assessment.kernel, columns, note))

    if assessment.sizes is not None:
        columns = {
            "questionnaire": "questionnaire", "respondents": "respondents",
            "million parameters": ("million parameters", ".0f"),
            "silhouette": ("silhouette", ".2f"), "silhouette low": ("95 % from", ".2f"),
            "silhouette high": ("to", ".2f"), "alpha": ("alpha", ".2f"),
            "alpha low": ("95 % from", ".2f"), "alpha high": ("to", ".2f"),
        }  # fmt: skip
        note = (
            "The silhouette says how well opposite words are told apart. The size of an untrained "
            "answering layer is arbitrary, so three sizes are shown, and the three bases nearest "
            "in size. The values do not always rise with size, so these rows are not a norm."
        )
        title = "Models that know nothing, on this base and on others."
        tables.append(make_table("sizes", title, assessment.sizes, columns, note))

    tables.append(_rules(assessment.base is not None))
    return tables


def _rules(to_prompts: bool) -> Table:
    """Return the rules of the verdicts."""
    frame = rules(to_prompts).reset_index()
    columns = {"check": "check", "mark": "mark", "when": "when"}
    return make_table("rules", "The rules.", frame, columns, _RULES_NOTE)


def make_checklist(table: pd.DataFrame) -> Table:
    """Return the reporting checklist as a table of a page.

    Examples
    --------
    >>> from psychometrics.reports.checklist import checklist
    >>> len(make_checklist(checklist({})).rows)
    18
    """
    columns = {"item": "item", "asks": "asks", "status": "status", "answer": "answer"}
    columns["source"] = "source"
    frame = table.reset_index()
    return make_table("checklist", "The reporting checklist.", frame, columns, _CHECKLIST_NOTE)


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
    first = next(iter(assessments))
    assessment = assessments[first]
    titles = {each.id: each.short_title for each in comparison.questionnaires}
    scales = {
        (each.id, scale.id): scale.title
        for each in comparison.questionnaires
        for scale in each.scales
    }
    gaps = comparison.differences
    keys = zip(gaps["questionnaire"], gaps["scale"], strict=True)
    gaps = gaps.assign(about=gaps["questionnaire"].map(titles), title=[scales[key] for key in keys])
    columns = {
        "verdict": "verdict", "about": "questionnaire", "title": "scale", "model": "model",
        "difference": (f"difference from {first}", "+.3f"), "low": ("95 % from", "+.3f"),
        "high": ("to", "+.3f"), "n": ("items", "d"), "null": ("heads differ", ".0%"),
    }  # fmt: skip
    note = (
        "The models answered the same items, so the intervals are paired over items. Heads differ "
        "is the share of pairs of models that know nothing that differ at least as clearly. A "
        "difference is not evidence that the models differ in a trait."
    )
    flags = pd.concat({name: each.flags for name, each in assessments.items()}, names=["model"])
    details = [
        make_table("differences", "Differences from the first model.", gaps, columns, note),
        _flags(flags.reset_index("model"), assessment, model=True),
        _agreement(comparison.agreement, titles),
        _rules(assessment.base is not None),
        *_how_compared(comparison),
    ]
    return Report(
        kind="compare",
        title=" and ".join([", ".join([*assessments][:-1]), [*assessments][-1]])
        if len(assessments) > 1
        else first,
        about=f"mode {assessment.mode} · {', '.join(titles.values())}",
        statements=[*_state_gaps(gaps, assessments), *_statements(assessments)],
        tests=examine_models(assessments),
        results=_results(assessments),
        details=[table for table in details if table.rows],
        command=command,
    )


def _state_gaps(gaps: pd.DataFrame, assessments: Mapping[str, Assessment]) -> list[Statement]:
    """Return the statements about differences; scales of one verdict share one."""
    first = next(iter(assessments))
    unread = [
        ", ".join(n for n in (first, row["model"]) if _is_unread(assessments[n].scores, row))
        for _, row in gaps.iterrows()
    ]
    keys = ["model", "about", "verdict", "unread"]
    statements = []
    for (model, about, verdict, names), rows in gaps.assign(unread=unread).groupby(
        keys, sort=False
    ):
        text = state_differences(rows, first, model, names.split(", ") if names else ())
        case = "passes" if text.startswith("You may") else "as impostors"
        statements.append(
            Statement(about=f"{model}, {about}", case=case, verdict=verdict, text=text)
        )

    return statements


def _is_unread(scores: pd.DataFrame, row: pd.Series) -> bool:
    """Return whether a model's score on the row's scale must not be interpreted."""
    is_scale = (scores[["questionnaire", "scale"]] == row[["questionnaire", "scale"]]).all(axis=1)
    return bool((scores.loc[is_scale, "mark"] == "✗").any())


def _how_compared(comparison: Comparison) -> list[Table]:
    """Return how the models were asked, what was read, and which models failed."""
    tables = []
    if comparison.failures:
        frame = pd.DataFrame(comparison.failures.items(), columns=["model", "reason"])
        columns = {"model": "model", "reason": "reason"}
        tables.append(make_table("failed", "Models that could not be asked.", frame, columns))

    if comparison.read is not None:
        tables.append(_read(comparison.read))
        return tables

    asked = {name: each.asked for name, each in comparison.assessments.items()}
    frame = pd.concat(asked, names=["model"]).reset_index()
    columns = {"model": "model", "what": "what", "how": "how"}
    tables.append(make_table("asked", "How the models were asked.", frame, columns))
    return tables


def _read(read: pd.DataFrame) -> Table:
    """Return what was read from a table of answers; a count of nothing is not shown."""
    frame = read.assign(count=read["count"].astype(object).where(read["count"] > 0))
    columns = {"what": "what", "count": ("number", "d"), "said": "what was decided or left out"}
    return make_table("read", "What was read, and what was left out.", frame, columns)


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
    titles = {each.id: each.short_title for each in questionnaires}
    scales = _join_bias(tables)
    respondents = answers["respondent_id"].nunique()
    runs = answers[["respondent_id", "run"]].drop_duplicates().shape[0]
    about = [f"{respondents} respondents", ", ".join(titles.values())]
    if runs > respondents:
        about.insert(1, f"{runs} runs, averaged for each respondent")

    cases = [_read_alpha(row) for _, row in scales.iterrows()]
    statements = []
    for (questionnaire, (case, verdict)), rows in scales.assign(case=cases).groupby(
        ["questionnaire", "case"], sort=False
    ):
        about = titles[questionnaire]
        unnamed = rows["title"] == about
        named = rows.assign(title=rows["title"].mask(unnamed, f"scores of {about}"))
        text = state_scales_of_answers(named)
        statements.append(Statement(about=about, case=case, verdict=verdict, text=text))

    read = answers.attrs.get("summary", {}).get("read", [])
    details = [
        *([_read(pd.DataFrame(read))] if read else []),
        *_details_of_answers(tables, titles),
        _rules(False),
    ]
    return Report(
        kind="answers",
        title=name,
        about=" · ".join(about),
        statements=statements,
        tests=examine_answers(tables, titles),
        results=_results_of_answers(scales, titles, cases),
        details=[table for table in details if table.rows],
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
    columns = {
        "verdict": "verdict", "about": "questionnaire", "title": "scale",
        "respondents": ("respondents", "d"), "score": ("mean", ".2f"),
        "interval": "95 % interval", "sd": ("SD", ".2f"), "shown_alpha": "alpha",
        "alpha_interval": "95 % interval of alpha",
        "independent": ("random answers reach", ".2f"), "habit": ("habits reach", ".2f"),
    }  # fmt: skip
    note = (
        "The mean is over respondents like these. Alpha shows how far items agree on the order of "
        "respondents; it is shown with the values below which it stays on all scales in 95 of 100 "
        "samples of respondents who answer at random or merely prefer some options."
    )
    return make_table("scales", "Scales.", frame, columns, note)


def _details_of_answers(
    tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]
) -> list[Table]:
    """Return the tables on which the verdicts about answers rest."""
    titled = {
        name: table.assign(about=table["questionnaire"].map(titles))
        for name, table in tables.items()
        if len(table)
    }
    scale_titles = tables["scales"].set_index(["questionnaire", "scale"])["title"]
    made = []
    for key, (name, title, columns, note) in _DETAILS_OF_ANSWERS.items():
        if key in titled:
            frame = titled[key]
            if "scale_title" in columns:
                keys = zip(frame["questionnaire"], frame["scale"], strict=True)
                frame = frame.assign(scale_title=[scale_titles[pair] for pair in keys])

            made.append(make_table(name, title, frame, columns, note))

    made.insert(-1, _agreement(tables["agreement"], titles))
    return made


def profile_tables(assessment: Assessment) -> dict[str, pd.DataFrame]:
    """Return the tables of a model's page as frames, by the names of their files.

    Examples
    --------
    >>> from psychometrics.reports.profiles import assess
    >>> list(profile_tables(assess("minilm-mnli-l3-s16", "challenges", against=None)))[:2]
    ['profile-scores', 'profile-flags']
    """
    tables = {
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
        tables["asked"] = assessment.asked.reset_index()
        tables["checklist"] = of_profile(assessment.asked, names).reset_index()

    return {f"profile-{name}": table for name, table in tables.items() if table is not None}


def comparison_tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Return the tables of a page about several models as frames, by the names of their files."""

    def join(kind: str) -> pd.DataFrame:
        tables = {name: getattr(each, kind) for name, each in comparison.assessments.items()}
        return pd.concat(tables, names=["model"]).reset_index("model")

    scores = join("scores").sort_values("questionnaire", kind="stable", key=_first_places)
    first = next(iter(comparison.assessments.values()))
    tables = {
        "scores": scores.rename(columns={"n": "items"}),
        "flags": join("flags"),
        "differences": comparison.differences.rename(columns={"null": "heads differ"}),
        "agreement": comparison.agreement,
        "rules": rules(first.base is not None).reset_index(),
        "read": comparison.read,
    }
    if comparison.read is None:
        tables["asked"] = pd.concat(
            {name: each.asked for name, each in comparison.assessments.items()}, names=["model"]
        ).reset_index()

    if comparison.failures:
        tables["failed"] = pd.DataFrame(comparison.failures.items(), columns=["model", "reason"])

    return {f"compare-{name}": table for name, table in tables.items() if table is not None}


def answer_tables(
    answers: pd.DataFrame, tables: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Return the tables of a page about answers as frames, by the names of their files."""
    made = dict(tables) | {
        "rules": rules(False).reset_index(),
        "checklist": of_answers(answers).reset_index(),
        "read": pd.DataFrame(answers.attrs.get("summary", {}).get("read", [])),
    }
    return {f"answers-{name}": table for name, table in made.items() if len(table)}
