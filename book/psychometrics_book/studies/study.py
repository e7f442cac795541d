"""Run the plan in a study's file, and compare the results with the expectations.

All tables of a report come from the answers and the record of one run, so they are in this one
file.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from psychometrics import __version__
from psychometrics.answers.files import read_all
from psychometrics.asking.ask import ask
from psychometrics.asking.population import readable_names
from psychometrics.data import write_text
from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.exceptions import ParameterError, PsychometricsError, writing
from psychometrics.measures.intervals import (
    mean_interval,
    runs_needed,
    scale_intervals,
)
from psychometrics.measures.items import adjust
from psychometrics.measures.reliability import design_study, reliability_table
from psychometrics.measures.scoring import item_scores, keyed_items, scale_scores
from psychometrics.models.devices import computing_on
from psychometrics.modes import identify
from psychometrics.questionnaires import Questionnaire
from psychometrics.reports.answer_profiles import assess_answers
from psychometrics.reports.assessments import Assessment
from psychometrics.reports.five_tests import examine_answers, examine_models
from psychometrics.reports.profiles import assess, judge_respondents
from psychometrics.reports.rules import ENOUGH_RESPONDENTS, FEWEST_RESPONDENTS, _item_means
from psychometrics.store import key_of

from .crossed_samples import interval_over_ways
from .study_files import Study, _record_path, load_study


def runs_for(answers: pd.DataFrame, width: float) -> pd.DataFrame:
    """Estimate from a pilot how many runs a study needs, for every scale.

    Parameters
    ----------
    answers : DataFrame
        Answers to items of a pilot with at least two runs of a respondent, as
        :func:`psychometrics.asking.ask` or :func:`psychometrics.answers.files.read_answers`
        returns them.
    width : float
        Width of the 95 % interval of one respondent's score, in points of the scale.

    Returns
    -------
    DataFrame
        ``questionnaire, scale``; ``needed`` and ``assured`` as in
        :func:`psychometrics.measures.intervals.runs_needed`, for the respondent that needs the most
        runs; ``order``, the reliability of ranking the respondents by their means over the needed
        runs, from :func:`psychometrics.measures.reliability.design_study`. Values that the pilot
        does not determine are missing, such as the order of a single respondent.

    Raises
    ------
    ParameterError
        The width is not positive, or there are no scores.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> pilot = empty_answers("gad7", "habit", respondents=4, runs=6)
    >>> narrow, wide = (runs_for(pilot, width)["needed"].iloc[0] for width in (2, 8))
    >>> bool(narrow > wide)
    True
    """
    scores = scale_scores(answers).dropna(subset="score")
    by = ["questionnaire", "scale"]
    runs = runs_needed(scores, "score", width, ["respondent_id", *by])
    table = runs.groupby(by, sort=False)[["needed", "assured"]].max().reset_index()
    orders = []

    for row in table.itertuples():
        is_scale = (scores[by] == [row.questionnaire, row.scale]).all(axis=1)
        try:
            sizes = {"run": int(row.needed)}
            order = design_study(scores[is_scale], ["respondent_id", "run"], sizes)["relative"]
            orders.append(order.iloc[0])
        except (ParameterError, ValueError):  # one respondent, or unequal runs
            orders.append(np.nan)

    return table.assign(order=orders)


def run_study(
    path: str | Path,
    store: str | Path | None = None,
    progress: bool = True,
    answers: str | Path | None = None,
    **limits: object,
) -> dict:
    """Ask all questions that a study plans; a stopped run resumes where it stopped.

    Parameters
    ----------
    path : str or Path
        The study's file. A folder of the same name next to it holds the record of its runs.
    store : str or Path, optional
        As in :func:`psychometrics.asking.ask`.
    progress : bool
        Whether to show a progress bar for each combination.
    answers : str or Path, optional
        In mode ``file``, the table of answers, with the conditions as columns.
    **limits
        Settings that the plan leaves open: the ``device``, and settings of the endpoint, such as
        prices, ``timeout``, ``concurrency`` and ``max_cost`` of the whole run; a ``dry_run``
        records nothing. In mode ``file``, the settings of
        :func:`psychometrics.answers.files.read_answers`.

    Returns
    -------
    dict
        ``asked``, ``from_store``, ``unanswered``, ``seconds``, ``failed`` (reasons by respondent
        and combination), ``plan``, whether the plan is unchanged since the first run,
        ``exploratory``, whether there is no plan, and ``changed``, the names of all other changes.

    Raises
    ------
    ParameterError
        As in :func:`~psychometrics_book.studies.study_files.load_study`, or the record cannot be
        written.

    Examples
    --------
    >>> run_study("nowhere.yaml")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml: cannot be read (No such \
file or directory); name a readable file.
    """
    study = load_study(path)
    if (answers is not None) != study.reads_answers:
        raise ParameterError(f"{path}: give mode 'file' and a table of answers together.")

    table = None
    device = limits.pop("device", None)
    if answers is not None:
        file = str(Path(answers).expanduser().absolute())
        table = {"file": file, "settings": limits}
        limits = {}

    planned = sorted(Endpoint.gathered(limits).keys() - {"endpoint"})

    if planned:
        raise ParameterError(f"{planned[0]} is part of the plan: write it into {path}.")
    dry = bool(limits.get("dry_run"))
    record = None if dry else _record(path, study, table)
    summary = {"asked": 0, "from_store": 0, "unanswered": 0, "seconds": 0.0, "failed": {}}
    settings = store, progress, summary["failed"], limits, table
    with computing_on(device):
        for answered in _answers(study, Path(path), *settings):
            summary_of_part = answered.attrs["summary"]
            for name in ("asked", "from_store", "unanswered", "seconds"):
                summary[name] = round(summary[name] + summary_of_part[name], 2)

    if dry:
        return summary | {"changed": [], "plan": True}
    record["answers"] = table
    summary["changed"] = _changed(path, study, record)
    summary["plan"] = "planned" not in summary["changed"]
    summary["exploratory"] = study.is_exploratory
    record["runs"].append({"at": _now(), "version": __version__, **summary})
    _write_record(_record_path(path), record)

    return summary


def study_tables(
    path: str | Path, store: str | Path | None = None
) -> dict[str, pd.DataFrame | str]:
    """Analyse a completed study.

    Parameters
    ----------
    path : str or Path
        The study's file.
    store : str or Path, optional
        The store of the answers. Questions without a stored answer are asked.

    Returns
    -------
    dict of DataFrame or str
        The tables ``plan`` and ``asked``, and the study's analyses by name; with ``evidence``, the
        five ``tests``, too. An analysis without a result is a text that gives the reason.

    Raises
    ------
    ParameterError
        As in :func:`~psychometrics_book.studies.study_files.load_study`; or the study was not run,
        or no
        respondent answered.

    Notes
    -----
    An expectation is tested on the differences between two combinations, averaged over seeds. The
    interval and the p value treat respondents, items and ways of asking, such as wordings, as
    samples (:func:`~psychometrics_book.studies.crossed_samples.interval_over_ways`); the widest
    interval counts. A single respondent or way is not a sample: a model, or a wording, that shifts
    all items together then looks like an effect. So a verdict about one respondent ends with *this
    model only*. With a single respondent and a single way, the p value is from 9,999 random sign
    flips of the items' differences. An expectation is met if the interval excludes zero on the
    expected side.

    Examples
    --------
    >>> study_tables("nowhere.yaml")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml: cannot be read (No such \
file or directory); name a readable file.
    """
    study = load_study(path, was_run=True)
    folder = Path(path).parent
    record = _read_record(_record_path(path))
    failed: dict[str, str] = {}
    table = record.get("answers")
    answers = list(_answers(study, Path(path), store, False, failed, {}, table))

    if not answers:
        raise ParameterError(f"{path}: no respondent answered. {' '.join(failed.values())}")
    loaded = study.load_questionnaires(folder)
    scores = [
        item_scores(answered.drop(columns="_combination")).assign(
            _combination=answered["_combination"].iloc[0]
        )
        for answered in answers
    ]
    scored = pd.concat(scores, ignore_index=True)
    makers = {"scores": _scores, "expectations": _expectations, "effects": _effects}
    assessed = functools.cache(partial(_assess_respondents, folder, store, answers, study, loaded))
    makers |= {"reliability": _reliability, "evidence": lambda *_: _evidence(*assessed())}
    makers["tests"] = lambda *_: _examine(answers[0], study, loaded, assessed()[0])
    tables = {
        "plan": _plan(study, study.power(folder), record, _changed(path, study, record)),
        "asked": _describe_runs(study, record, failed),
    }

    for name in [*study.analyses, *(["tests"] if "evidence" in study.analyses else [])]:
        try:
            tables[name] = makers[name](study, loaded, scored)
        except Exception as error:  # show the other analyses
            tables[name] = str(error)

    return tables


def _answers(
    study: Study, path: Path, store, progress: bool, failed: dict, limits: dict, table: dict | None
) -> Iterator[pd.DataFrame]:
    """Return each combination's answers, by seed, and add failures to ``failed``."""
    loaded = study.load_questionnaires(path.parent)
    who = study.list_respondents(path.parent)
    if study.reads_answers:
        yield from _answers_of_table(study, loaded, table, progress, failed)
        return

    failures = _record_path(path).with_name("failures.csv")

    for chosen, seed in itertools.product(study.combinations, study.seeds):
        settings = dict(chosen) | ({"seed": seed} if study.seeds != (0,) else {})
        words = _words(settings) if settings else "as it is"
        settings |= {"progress": progress, "failures": None if limits.get("dry_run") else failures}
        settings |= limits

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # reported below, with the reasons
                answers = ask(loaded, who, store, study.mode, **settings)
        except PsychometricsError as error:
            failed[words] = str(error)
            continue

        summary = answers.attrs["summary"]
        if limits.get("max_cost") is not None:
            remaining = max(0.0, limits["max_cost"] - summary.get("cost", 0.0))
            limits = limits | {"max_cost": remaining}

        failed |= {f"{name}, {words}": reason for name, reason in summary["failed"].items()}
        answers = answers.assign(_combination=json.dumps(chosen))
        answers.attrs = {"summary": summary}
        yield answers


def _answers_of_table(
    study: Study, loaded: list[Questionnaire], table: dict, progress: bool, failed: dict
) -> Iterator[pd.DataFrame]:
    """Return the answers of each combination that are in the table."""
    names = list(study.conditions)
    settings = {"conditions": names} | table["settings"]
    answers = read_all(table["file"], loaded, progress, **settings)
    summary = answers.attrs["summary"]

    for name in set(study.respondents) - set(answers["respondent_id"]):
        failed[name] = f"{table['file']} has no answers of this respondent"

    answers = answers[answers["respondent_id"].isin(study.respondents)]
    for chosen in study.combinations:
        fits = pd.Series(True, answers.index)
        for name, value in chosen.items():
            fits &= answers[name].map(partial(_is_value, value=value))

        if not fits.any():
            failed[_words(chosen)] = f"{table['file']} has no row with these conditions"
            continue

        chosen_rows = answers[fits].drop(columns=names)
        chosen_rows = chosen_rows.assign(_combination=json.dumps(chosen))
        unanswered = int((chosen_rows["status"] != "ok").sum())
        chosen_rows.attrs = {"summary": summary | {"failed": {}, "unanswered": unanswered}}
        yield chosen_rows


def _is_value(cell: object, value: object) -> bool:
    """Return whether a cell holds a condition's value, as a number or as text."""
    try:
        return float(cell) == float(value)
    except (TypeError, ValueError):
        return str(cell).strip().casefold() == str(value).casefold()


def _mean_items(scored: pd.DataFrame, questionnaire: Questionnaire, chosen: dict) -> pd.DataFrame:
    """Return item scores, averaged over seeds and combinations with the chosen conditions."""
    combinations = scored["_combination"].unique()
    fits = [name for name in combinations if chosen.items() <= json.loads(name).items()]
    rows = scored[scored["_combination"].isin(fits) & (scored["questionnaire"] == questionnaire.id)]
    return _item_means(rows)


def _matrix(scored, questionnaire, scale, chosen: dict) -> pd.DataFrame:
    """Return keyed answers, respondents by items, or an empty table if all respondents failed."""
    items = _mean_items(scored, questionnaire, chosen)
    if items.empty:
        return pd.DataFrame()
    keyed = keyed_items(items, questionnaire, scale)
    return keyed.set_axis(keyed.index.get_level_values("respondent_id"))


def _difference(scored, questionnaire, scale, of: dict, than: dict) -> dict[str, float]:
    """Return a mean difference, its interval, its p value and the numbers of respondents and ways.

    Respondents, ways of asking and items are samples, as in
    :func:`~psychometrics_book.studies.crossed_samples.interval_over_ways`. With one respondent and
    one way, the interval is over items and the p value from sign flips.
    """
    values, ways = _differences(scored, questionnaire, scale, of, than)
    counts = {"ways": values.shape[1], "respondents": values.shape[0]}
    if values.shape[2] < 2:
        return dict.fromkeys(("difference", "low", "high", "p"), np.nan) | counts
    if max(counts.values()) > 1:
        return interval_over_ways(values, ways) | {"respondents": counts["respondents"]}

    low, high = map(float, mean_interval(values[0, 0]))
    mean = float(values.mean())
    signs = np.random.default_rng(0).choice([-1, 1], size=(9999, values.size))
    extreme = np.abs((signs * values[0, 0]).mean(axis=1)) >= abs(mean) - 1e-12
    p = (extreme.sum() + 1) / (len(signs) + 1)

    return {"difference": mean, "low": low, "high": high, "p": p} | counts


def _differences(
    scored, questionnaire, scale, of: dict, than: dict
) -> tuple[np.ndarray, np.ndarray]:
    """Return differences by respondent, way and item, and the levels of each way's conditions.

    Differences of questions that were not answered on both sides are missing; respondents and items
    without any difference are left out.
    """
    combinations = [json.loads(name) for name in scored["_combination"].unique()]
    compared = {*of, *than}
    ways = [
        {name: value for name, value in chosen.items() if name not in compared}
        for chosen in combinations
    ]
    rows = {}
    for way in [way for place, way in enumerate(ways) if way not in ways[:place]]:
        first, second = (_matrix(scored, questionnaire, scale, way | side) for side in (of, than))
        apart = (first - second).dropna(how="all")
        if len(apart):
            rows[tuple(json.dumps(value) for value in way.values())] = apart

    if not rows:
        return np.empty((0, 0, 0)), np.empty((0, 0))

    levels = pd.DataFrame(list(rows)).apply(lambda column: column.factorize()[0])
    respondents = pd.concat(list(rows.values())).index.unique()
    by_way = [apart.reindex(respondents).to_numpy(dtype=float) for apart in rows.values()]
    values = np.stack(by_way, axis=1)
    answered = ~np.isnan(values).all(axis=(0, 1))
    return values[:, :, answered], levels.to_numpy()


def _words(chosen: dict) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items()) or "all"


def _plan(study: Study, power: list[float], record: dict, changed: list[str]) -> pd.DataFrame:
    planned = study.planned
    other_changes = ", ".join(name for name in changed if name != "planned")
    plan = "the plan of the first run"
    if study.is_exploratory:
        plan = "none: what follows is exploratory, not a test"
    elif "planned" in changed:
        plan = "CHANGED AFTER THE FIRST RUN: what follows is exploratory, not a test"

    rows = {
        "planned on": planned.date,
        "first run": record["first"],
        "plan": plan,
        "changed since the first run": other_changes or "nothing",
        "alpha": ""
        if study.is_exploratory
        else f"{planned.alpha:g}, correction: {planned.correction}",
        **_rules(study),
        "smallest effect of interest": planned.smallest_effect,
        "exclusions": planned.exclusions,
        "stopping": planned.stopping,
    }

    for number, e in enumerate(planned.expectations, start=1):
        expectation = f"{e.says} ({_words(e.of)} {e.expect} than {_words(e.than)})"
        rows[f"expectation {number}"] = expectation

    basis = (
        "simulated for the smallest effect, with the interval of the report; respondents shift all "
        f"items by SD {planned.spread_of_respondents or 0:g}, and ways of asking by SD "
        f"{planned.spread_of_ways:g}"
    )
    for number, share in enumerate(power, start=1):
        rows[f"power of expectation {number}"] = f"{share:.0%}, {basis}"

    stated = {name: value for name, value in rows.items() if value not in (None, "")}
    return pd.DataFrame({"value": stated}).rename_axis("what")


def _rules(study: Study) -> dict[str, str]:
    """Describe when an expectation is met, and how its p value is corrected."""
    planned = study.planned
    if study.is_exploratory:
        met = "it was planned, but this study is exploratory and expects nothing"
        return {"an expectation is met if": met, "p values of expectations": "not computed"}

    met = "the interval excludes zero on the expected side"
    p_value = "p value" if planned.correction == "none" else "corrected p value"

    if planned.model_fields_set & {"alpha", "correction"}:
        met += f" and the {p_value} is below {planned.alpha:g}"

    names = {"holm": "Holm's method", "fdr_bh": "Benjamini and Hochberg's method"}
    if planned.correction == "none":
        correction = "not corrected for the number of expectations"
    else:
        number = len(planned.expectations)
        correction = f"corrected for {number} expectation(s) by {names[planned.correction]}"

    return {"an expectation is met if": met, "p values of expectations": correction}


def _scores(study: Study, loaded: list, scored: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for questionnaire, chosen in itertools.product(loaded, study.combinations):
        items = _mean_items(scored, questionnaire, chosen)
        for scale in questionnaire.scales if len(items) else ():
            intervals = scale_intervals(items, questionnaire, scale.id)
            names = readable_names(intervals["respondent_id"])
            for row in intervals.itertuples():
                rows.append({"questionnaire": questionnaire.short_title, "scale": scale.title,
                             "conditions": _words(chosen), "respondent": names[row.respondent_id],
                             "score": row.score, "low": row.low, "high": row.high,
                             "items": f"{row.n:.0f} of {len(scale.items)}"})  # fmt: skip

    return pd.DataFrame(rows)


def _expectations(study: Study, loaded: list, scored: pd.DataFrame) -> pd.DataFrame:
    questionnaires = {questionnaire.id: questionnaire for questionnaire in loaded}
    planned = study.planned
    rows = []

    for e in planned.expectations:
        questionnaire = questionnaires[e.questionnaire]
        scale = e.scale_in(questionnaire)
        test = _difference(scored, questionnaire, scale, e.of, e.than)
        rows.append({"expectation": e.says, "scale": scale.title, **test})

    if not rows:
        reason = "study is exploratory, and" if study.is_exploratory else "plan"
        raise ParameterError(f"The {reason} has no expectations.")
    table = pd.DataFrame(rows)

    if planned.correction != "none":
        table["p corrected"] = adjust(table["p"], planned.correction)

    tested = table["p corrected" if "p corrected" in table else "p"]
    has_level = bool(planned.model_fields_set & {"alpha", "correction"})
    significant = (tested < planned.alpha) | (not has_level)
    verdicts = []
    for e, (place, row) in zip(planned.expectations, table.iterrows(), strict=True):
        verdicts.append(_verdict(row, e.expect, significant[place], planned.smallest_effect))

    return table.assign(verdict=verdicts)


def _verdict(row: pd.Series, expected: str, significant: bool, smallest: float | None) -> str:
    if np.isnan(row["p"]):
        return "– not answered"

    sides = {"higher": row["low"] > 0, "lower": row["high"] < 0}
    sides["different"] = sides["higher"] or sides["lower"]
    if smallest is not None and max(abs(row["low"]), abs(row["high"])) < smallest:
        verdict = "✗ smaller than the smallest effect of interest"
    elif sides[expected]:
        verdict = "✓ as expected" if significant else "! open: p is not below alpha"
    elif sides["different"]:
        verdict = "✗ the other way round"
    else:
        verdict = "! open: the interval includes zero"

    # Items of one model are no evidence about others.
    return verdict if row["respondents"] > 1 else f"{verdict}, this model only"


def _effects(study: Study, loaded: list, scored: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name, values in study.conditions.items():
        for value, questionnaire in itertools.product(values[1:], loaded):
            for scale in questionnaire.scales:
                sides = {name: value}, {name: values[0]}
                if _is_planned(study, questionnaire, scale, sides):
                    continue

                test = _difference(scored, questionnaire, scale, *sides)
                rows.append({"condition": f"{name}: {value} less {values[0]}",
                             "scale": scale.title, **test})  # fmt: skip

    if not rows:
        raise ParameterError("No condition has two values that no expectation compares.")

    table = pd.DataFrame(rows)
    if study.is_exploratory:
        apart = (table["low"] > 0) | (table["high"] < 0)
        verdicts = apart.map(
            {True: "the interval excludes zero", False: "the interval includes zero"}
        )
        verdicts = verdicts.mask(table["p"].isna(), "not answered")
        only = table["respondents"].map(lambda number: "" if number > 1 else ", this model only")
        table["verdict"] = "exploratory: " + verdicts + only

    return table


def _is_planned(study: Study, questionnaire, scale, sides: tuple[dict, dict]) -> bool:
    return any(
        e.questionnaire == questionnaire.id
        and scale == e.scale_in(questionnaire)
        and sides in ((e.of, e.than), (e.than, e.of))
        for e in study.planned.expectations
    )


def _reliability(study: Study, loaded: list, scored: pd.DataFrame) -> pd.DataFrame:
    """Return each scale's alpha over the respondents, if there are enough respondents."""
    items = pd.concat([_mean_items(scored, questionnaire, {}) for questionnaire in loaded])
    table = reliability_table(items, loaded)
    table = table[table["items"] > 1]
    too_few = table["n"] < FEWEST_RESPONDENTS

    if too_few.all():
        raise ParameterError(
            f"At most {table['n'].max() if len(table) else 0} respondents answered all items of a "
            f"scale. Alpha is not printed below {FEWEST_RESPONDENTS}: its interval would "
            "be uninformative, whatever the scale."
        )

    table.loc[too_few, ["alpha", "low", "high"]] = np.nan
    table["note"] = ""
    few = f"fewer than {ENOUGH_RESPONDENTS}: too few for a conclusion"
    table.loc[table["n"] < ENOUGH_RESPONDENTS, "note"] = few
    table.loc[too_few, "note"] = f"not printed: fewer than {FEWEST_RESPONDENTS}"
    columns = ["title", "n", "alpha", "low", "high", "note"]
    return table[columns].rename(columns={"title": "scale", "n": "respondents"})


def _evidence(assessments: dict[str, Assessment], failures: dict[str, str]) -> pd.DataFrame:
    """Return the verdicts on each respondent's scores, by the rules of a profile."""
    rows = []
    for name, assessment in assessments.items():
        scores = assessment.scores[["title", "mark", "verdict"]].rename(columns={"title": "scale"})
        rows += scores.assign(respondent=name).to_dict("records")

    for name, reason in failures.items():
        rows.append({"respondent": name, "scale": "", "mark": "–", "verdict": reason})

    return pd.DataFrame(rows)[["respondent", "scale", "mark", "verdict"]]


def _assess_respondents(
    folder: Path, store, answers: list[pd.DataFrame], study: Study, loaded: list
) -> tuple[dict[str, Assessment], dict[str, str]]:
    """Assess each respondent under the first conditions, without asking anything unplanned."""
    first = study.combinations[0]
    if study.seeds != (0,):
        first = first | {"seed": study.seeds[0]}

    assessments = {}
    failures = {}
    for name in study.list_respondents(folder):
        who = readable_names([name])[name]
        try:
            if study.reads_answers:
                assessments[who] = judge_respondents(answers[0], loaded, [name])[name]
            else:
                assessments[who] = assess(
                    name, loaded, study.mode, None, store=store, controls=False, **first
                )
        except Exception as error:
            failures[who] = str(error)

    return assessments, failures


def _examine(
    answers: pd.DataFrame, study: Study, loaded: list, assessments: dict[str, Assessment]
) -> pd.DataFrame:
    """Return the five tests under the first conditions, with a line for each result."""
    if not assessments:
        raise ParameterError("No respondent could be tested.")

    if study.reads_answers:
        titles = {questionnaire.id: questionnaire.short_title for questionnaire in loaded}
        tables = assess_answers(answers.drop(columns="_combination"), loaded)
        tests = examine_answers(tables, titles)
    else:
        tests = examine_models(assessments)

    table = pd.DataFrame([test.model_dump() for test in tests])
    table["results"] = table["results"].str.join("\n")
    if study.combinations[0]:
        table["done"] += f" Conditions: {_words(study.combinations[0])}."

    return table


def _describe_runs(study: Study, record: dict, failed: dict[str, str]) -> pd.DataFrame:
    runs = record["runs"]
    rows = {
        "questionnaires": ", ".join(study.questionnaires),
        "respondents": ", ".join(study.respondents),
        "mode": study.mode,
        "conditions": "; ".join(_words(chosen) for chosen in study.combinations),
        "seeds": ", ".join(map(str, study.seeds)),
        "runs": f"{len(runs)}, the last on {runs[-1]['at'] if runs else '–'}",
        "asked in all": str(sum(run["asked"] for run in runs)),
        "without an answer": str(runs[-1]["unanswered"] if runs else 0),
        "seconds in all": f"{sum(run['seconds'] for run in runs):.0f}",
        "package": f"psychometrics {__version__}",
    }
    if study.reads_answers:
        rows["table of answers"] = Path(record["answers"]["file"]).name

    rows |= {f"failed: {who}": reason for who, reason in failed.items()}

    return pd.DataFrame({"how": rows}).rename_axis("what")


def _as_run(path: str | Path, study: Study, table: dict | None) -> dict:
    """Return all that determines a study's results: its file, its questionnaires, the models."""
    folder = Path(path).parent
    conditions = study.combinations[0]
    models = {}
    for name in study.list_respondents(folder) if not study.reads_answers else []:
        try:
            identity = identify(name, study.mode, **conditions)
        except PsychometricsError as error:
            identity = {"revision": str(error)}

        models[name] = str(identity.get("fingerprint") or identity.get("revision") or "")

    texts = {q.id: key_of(q.model_dump_json()) for q in study.load_questionnaires(folder)}
    more = {"models": models, "texts of questionnaires": texts, "package": __version__}
    if table is not None and Path(table["file"]).is_file():
        more["table of answers"] = key_of(Path(table["file"]).read_bytes().hex())

    return json.loads(study.model_dump_json()) | more


def _changed(path: str | Path, study: Study, record: dict) -> list[str]:
    """Return the names of the parts that have changed since the first run."""
    now = _as_run(path, study, record.get("answers"))
    # The record of an older version lacks what has been added to plans.
    added = {"spread_of_ways": 0.0, "spread_of_respondents": None}
    then = record["study"] | {"planned": added | record["study"]["planned"]}
    return [name for name, value in now.items() if then.get(name) != value]


def _record(path: str | Path, study: Study, table: dict | None) -> dict:
    """Return the record of a study's runs, with a copy of the study as it was at the first run."""
    file = _record_path(path)
    if file.is_file():
        return _read_record(file)
    record = {"first": _now(), "study": _as_run(path, study, table), "runs": []}
    _write_record(file, record)
    return record


def _read_record(file: Path) -> dict:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        if {"first", "study", "runs"} <= set(record):
            return record
    except (OSError, ValueError, TypeError):
        pass
    raise ParameterError(f"{file} is damaged or of an older version: move it away and run again.")


def _write_record(file: Path, record: dict) -> None:
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(record, indent=1))  # a killed run leaves the record unchanged


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M")
