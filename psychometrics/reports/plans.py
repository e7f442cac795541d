"""A study as one file: what is asked of whom and how, what was planned, and its report."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .. import __version__
from ..asking.ask import ask
from ..asking.population import population, readable_names
from ..asking.store import key_of
from ..exceptions import ParameterError, PsychometricsError
from ..measures.intervals import mean_interval, scale_intervals
from ..measures.reliability import alpha
from ..measures.scoring import item_scores, keyed_items
from ..modes import conditions_of, identify
from ..questionnaires import Questionnaire, load_questionnaire
from .pages import page, paragraph, table
from .profiles import assess

FLIPS = 9999
"""Signs of the differences are dealt anew so often."""
ANALYSES = ("scores", "expectations", "effects", "reliability", "evidence")
"""Sections of a report, in its order."""
Value = str | float | int | bool | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Expectation(_Part):
    says: str
    questionnaire: str
    scale: str | None = None
    of: dict[str, Value]
    than: dict[str, Value]
    expect: Literal["higher", "lower", "different"]


class _Planned(_Part):
    date: str
    expectations: tuple[_Expectation, ...] = ()


class Study(_Part):
    """What a study's file holds; :func:`load_study` reads one."""

    title: str
    question: str
    planned: _Planned
    questionnaires: Annotated[tuple[str, ...], Field(min_length=1)]
    respondents: Annotated[tuple[str, ...], Field(min_length=1)]
    mode: str = "nli"
    conditions: dict[str, Annotated[list[Value], Field(min_length=1)]] = {}
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    analyses: Annotated[tuple[Literal[ANALYSES], ...], Field(min_length=1)] = ANALYSES


def load_study(path: str | Path) -> Study:
    """Read and check a study's file; nobody is asked.

    Parameters
    ----------
    path : str or Path
        YAML: ``title``; ``question``; ``planned`` with a ``date`` and ``expectations``, each of
        which ``says`` in words that the scores of a ``questionnaire`` (and ``scale``) under the
        conditions ``of`` are ``higher``, ``lower`` or ``different`` (``expect``) ``than`` under
        others; ``questionnaires`` and ``respondents``, as the commands take them; ``mode``;
        ``conditions``, a list of values for each, of which all combinations are asked; ``seeds``;
        ``analyses``, some of :data:`ANALYSES`.

    Returns
    -------
    Study

    Raises
    ------
    ParameterError
        The file cannot be read, or a part of it names what there is not; every mistake is listed.

    Examples
    --------
    >>> load_study("nowhere.yaml")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml cannot be read: No such file or directory.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from None
    except yaml.YAMLError as error:
        raise ParameterError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
    if isinstance(content, dict) and isinstance(content.get("planned"), dict):
        content["planned"]["date"] = str(content["planned"].get("date", ""))
    try:
        study = Study.model_validate(content)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise ParameterError("\n".join(f"{path}, {line}." for line in lines)) from None
    if mistakes := _mistakes(study, path.parent):
        raise ParameterError("\n".join(f"{path}, {line}" for line in mistakes))
    return study


def run_study(path: str | Path, store: str | Path | None = None, progress: bool = True) -> dict:
    """Ask all that a study asks; what is in the store is not asked again, so that it resumes.

    Parameters
    ----------
    path : str or Path
        The study's file. Beside it, a folder of its name keeps the record of its runs.
    store : str or Path, optional
        As in :func:`psychometrics.asking.ask`.
    progress : bool
        Show a progress bar for each combination.

    Returns
    -------
    dict
        ``asked``, ``from_store``, ``unanswered``, ``seconds``, ``failed`` (reasons by respondent
        and combination) and ``plan``: whether the planned part is the one of the first run.

    Raises
    ------
    ParameterError
        As :func:`load_study`, or the record cannot be written.

    Examples
    --------
    >>> run_study("nowhere.yaml")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml cannot be read: No such file or directory.
    """
    study = load_study(path)
    record = _record(path, study)
    summary = {"asked": 0, "from_store": 0, "unanswered": 0, "seconds": 0.0, "failed": {}}
    for answers in _answers(study, Path(path), store, progress, summary["failed"]):
        told = answers.attrs["summary"]
        for name in ("asked", "from_store", "unanswered", "seconds"):
            summary[name] = round(summary[name] + told[name], 2)
    summary["plan"] = record["plan"] == _plan_key(study)
    record["runs"].append({"at": _now(), "version": __version__, **summary})
    _record_path(path).write_text(json.dumps(record, indent=1), encoding="utf-8")
    return summary


def report_study(
    path: str | Path, output: str | Path | None = None, store: str | Path | None = None
) -> Path:
    """Write the page of a study that was run.

    Parameters
    ----------
    path : str or Path
        The study's file.
    output : str or Path, optional
        Ends in .html or .pdf; by default ``report.html`` in the study's folder.
    store : str or Path, optional
        Where the answers are. What is not there yet is asked.

    Returns
    -------
    Path

    Raises
    ------
    ParameterError
        As :func:`load_study`, or the study was not run.

    Notes
    -----
    An expectation is tested on the differences of the scale's items between two combinations,
    each a mean over respondents and seeds: their mean with a 95 % interval over items, and a p
    value from 9,999 deals of their signs. It is met if the interval leaves zero out on the
    expected side. A plan that was changed after the first run is marked on the page.

    Examples
    --------
    >>> report_study("nowhere.yaml")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: nowhere.yaml cannot be read: No such file or directory.
    """
    study, folder = load_study(path), Path(path).parent
    if not _record_path(path).is_file():
        raise ParameterError(f"{path} was not run: psychometrics study run {path}")
    record = json.loads(_record_path(path).read_text(encoding="utf-8"))
    failed: dict[str, str] = {}
    answers = list(_answers(study, Path(path), store, False, failed))
    if not answers:
        raise ParameterError(f"{path}: nobody answered. {' '.join(failed.values())}")
    loaded = _loaded(study, folder)
    scored = pd.concat([_scored(part) for part in answers], ignore_index=True)
    makers = {
        "scores": lambda: _scores(study, loaded, scored),
        "expectations": lambda: _expectations(study, loaded, scored),
        "effects": lambda: _effects(study, loaded, scored),
        "reliability": lambda: _reliability(study, loaded, scored),
        "evidence": lambda: _evidence(study, folder, loaded, store),
    }
    sections = [("Plan", _plan(study, record))]
    for name in ANALYSES:
        if name in study.analyses and (blocks := makers[name]()):
            sections.append((name.capitalize(), blocks))
    sections.append(("How it was asked", _how(study, record, failed)))
    output = output or _record_path(path).with_name("report.html")
    return page(study.title, sections, output, study.question)


def combinations(study: Study) -> list[dict[str, Value]]:
    """All combinations of a study's conditions, seeds aside, in order.

    Examples
    --------
    >>> combinations(Study(title="t", question="q", planned={"date": "2026"},
    ...                    questionnaires=["gad7"], respondents=["x"],
    ...                    conditions={"role": ["a", "b"], "wording": ["v1"]}))
    [{'role': 'a', 'wording': 'v1'}, {'role': 'b', 'wording': 'v1'}]
    """
    names, values = list(study.conditions), list(study.conditions.values())
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)]


def _loaded(study: Study, folder: Path) -> list[Questionnaire]:
    """Files are looked for beside the study."""
    beside = [folder / name for name in study.questionnaires]
    return [
        load_questionnaire(path if path.is_file() else name)
        for path, name in zip(beside, study.questionnaires, strict=True)
    ]


def _respondents(study: Study, folder: Path, listed: bool = True) -> list[str]:
    """All by name, with those of populations' files, which are looked for beside the study."""
    names = []
    for name in study.respondents:
        if name.endswith((".yaml", ".yml")):
            members = population(folder / name)
            names += members if listed else []
        else:
            names += population(name) if study.mode in ("nli", "mlm", "options") else [name]
    return list(dict.fromkeys(names))


def _mistakes(study: Study, folder: Path) -> list[str]:
    found = []

    def tried(place: str, call) -> object:
        try:
            return call()
        except PsychometricsError as error:
            found.append(f"{place}: {error}")

    loaded = tried("questionnaires", lambda: _loaded(study, folder)) or []
    known = {questionnaire.id: questionnaire for questionnaire in loaded}
    first = combinations(study)[0]
    conditions = tried("conditions", lambda: conditions_of(study.mode, first))
    if conditions is not None:
        # Of those that a file lists some may fail: the run finds out, and records it.
        for name in tried("respondents", lambda: _respondents(study, folder, listed=False)) or []:
            tried("respondents", lambda name=name: identify(name, study.mode, **first))
        if study.seeds != (0,) and "seed" not in conditions:
            found.append(f"seeds: answers in mode {study.mode} know no seed; leave them out.")
    for number, wanted in enumerate(study.planned.expectations, start=1):
        place = f"planned, expectation {number}"
        questionnaire = known.get(wanted.questionnaire)
        if questionnaire is None:
            found.append(f"{place}: {wanted.questionnaire} is not among the questionnaires.")
        elif wanted.scale:
            tried(place, lambda q=questionnaire, w=wanted: q.scale(w.scale))
        for side in (wanted.of, wanted.than):
            for name, value in side.items():
                if value not in study.conditions.get(name, ()):
                    found.append(f"{place}: {name}={value} is not among the conditions.")
        if wanted.of == wanted.than:
            found.append(f"{place}: of and than are the same.")
    return found


def _answers(study: Study, path: Path, store, progress: bool, failed: dict):
    """Answers of each combination and seed, with their conditions; failures into ``failed``."""
    import warnings

    loaded, who = _loaded(study, path.parent), _respondents(study, path.parent)
    failures = _record_path(path).with_name("failures.csv")
    for chosen in combinations(study):
        for seed in study.seeds:
            how = dict(chosen) | ({"seed": seed} if study.seeds != (0,) else {})
            said = ", ".join(f"{k}={v}" for k, v in how.items()) or "as it is"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # told below, with the reasons
                    answers = ask(
                        loaded,
                        ",".join(who) if study.mode == "nli" else who,
                        store,
                        study.mode,
                        progress=progress,
                        failures=failures,
                        **how,
                    )
            except PsychometricsError as error:
                failed[said] = str(error)
                continue
            for name, reason in answers.attrs["summary"]["failed"].items():
                failed[f"{name}, {said}"] = reason
            summary = answers.attrs["summary"]
            answers = answers.assign(_combination=json.dumps(chosen), _seed=seed)
            answers.attrs = {"summary": summary}
            yield answers


def _scored(answers: pd.DataFrame) -> pd.DataFrame:
    items = item_scores(answers.drop(columns=["_combination", "_seed"]))
    told = {name: answers[name].iloc[0] for name in ("_combination", "_seed")}
    return items.assign(**told)


def _own(scored: pd.DataFrame, questionnaire: Questionnaire, chosen: dict) -> pd.DataFrame:
    """Item scores, over seeds and over the combinations that have the chosen conditions."""
    fits = [
        name
        for name in scored["_combination"].unique()
        if chosen.items() <= json.loads(name).items()
    ]
    own = scored[scored["_combination"].isin(fits) & (scored["questionnaire"] == questionnaire.id)]
    keys = ["respondent_id", "questionnaire", "item_id"]
    if "run" not in own:  # answers to prompts
        return own.groupby(keys, sort=False)["score"].mean().reset_index()
    means = own.groupby([*keys, "mode"], sort=False)["score"].mean().reset_index()
    return means.assign(run=1)  # with its way of asking, by which reversed items are turned round


def _matrix(scored, questionnaire, scale, chosen: dict) -> pd.DataFrame:
    """Respondents by items, by their keys; empty where all of them failed."""
    items = _own(scored, questionnaire, chosen)
    return pd.DataFrame() if items.empty else keyed_items(items, questionnaire, scale)


def _difference(scored, questionnaire, scale, of: dict, than: dict) -> dict[str, float]:
    """Mean difference of items, its interval over items, and its p value by signs dealt anew."""
    first, second = (_matrix(scored, questionnaire, scale, side) for side in (of, than))
    both = first.index.intersection(second.index)
    if both.empty:
        return dict.fromkeys(("difference", "from", "to", "p"), np.nan)
    values = (first.loc[both] - second.loc[both]).mean(axis=0).dropna().to_numpy()
    if len(values) < 2:
        return dict.fromkeys(("difference", "from", "to", "p"), np.nan)
    low, high = mean_interval(values)
    signs = np.random.default_rng(0).choice([-1, 1], size=(FLIPS, len(values)))
    dealt = np.abs((signs * values).mean(axis=1))
    extreme = (dealt >= abs(values.mean()) - 1e-12).sum()
    return {"difference": values.mean(), "from": low, "to": high,
            "p": (extreme + 1) / (FLIPS + 1)}  # fmt: skip


def _said(chosen: dict) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items()) or "all"


def _plan(study: Study, record: dict) -> list[str]:
    kept = record["plan"] == _plan_key(study)
    words = f"Planned on {study.planned.date}; first run on {record['first']}. "
    words += (
        "The plan is the one of the first run."
        if kept
        else "THE PLAN WAS CHANGED AFTER THE FIRST RUN: what follows explores, it does not test."
    )
    blocks = [paragraph(words)]
    if study.planned.expectations:
        rows = [
            {"expectation": e.says, "of": _said(e.of), "expected": e.expect, "than": _said(e.than)}
            for e in study.planned.expectations
        ]
        blocks.append(table(pd.DataFrame(rows), "What was expected before anything was asked."))
    return blocks


def _scores(study: Study, loaded: list, scored: pd.DataFrame) -> list[str]:
    blocks = []
    for questionnaire in loaded:
        rows = []
        for chosen in combinations(study):
            for scale in questionnaire.scales:
                items = _own(scored, questionnaire, chosen)
                if items.empty:
                    continue
                found = scale_intervals(items, questionnaire, scale.id)
                names = readable_names(found["respondent_id"])
                for row in found.itertuples():
                    rows.append({"scale": scale.title, **chosen,
                                 "respondent": names[row.respondent_id], "score": row.score,
                                 "from": row.low, "to": row.high,
                                 "items": f"{row.n:.0f} of {len(scale.items)}"})  # fmt: skip
        blocks.append(table(pd.DataFrame(rows), f"{questionnaire.short_title}: mean item scores "
                            "over seeds, with 95 % intervals over items."))  # fmt: skip
    return blocks


def _expectations(study: Study, loaded: list, scored: pd.DataFrame) -> list[str]:
    known = {questionnaire.id: questionnaire for questionnaire in loaded}
    rows = []
    for wanted in study.planned.expectations:
        questionnaire = known[wanted.questionnaire]
        scale = questionnaire.scale(wanted.scale) if wanted.scale else questionnaire.scales[0]
        found = _difference(scored, questionnaire, scale, wanted.of, wanted.than)
        sides = {"higher": found["from"] > 0, "lower": found["to"] < 0}
        sides["different"] = sides["higher"] or sides["lower"]
        other = {"higher": "lower", "lower": "higher"}.get(wanted.expect)
        verdict = (
            "✓ as expected" if sides[wanted.expect]
            else "✗ the other way round" if other and sides[other]
            else "– not answered" if np.isnan(found["p"])
            else "! open: the interval holds zero"
        )  # fmt: skip
        rows.append({"expectation": wanted.says, "scale": scale.title, **found, "verdict": verdict})
    if not rows:
        return []
    return [table(pd.DataFrame(rows), "Expectations and what was found: differences of mean item "
                  "scores with 95 % intervals over items; p by signs dealt anew.",
                  {"p": "{:.4f}"})]  # fmt: skip


def _effects(study: Study, loaded: list, scored: pd.DataFrame) -> list[str]:
    rows = []
    for name, values in study.conditions.items():
        for value in values[1:]:
            for questionnaire in loaded:
                for scale in questionnaire.scales:
                    found = _difference(scored, questionnaire, scale, {name: value},
                                        {name: values[0]})  # fmt: skip
                    rows.append({"condition": f"{name}: {value} less {values[0]}",
                                 "scale": scale.title, **found})  # fmt: skip
    if not rows:
        return []
    return [
        table(pd.DataFrame(rows), "Each condition's values against its first, over the others.",
              {"p": "{:.4f}"}),
        paragraph(f"{len(rows)} comparisons that were not planned: of so many, about "
                  f"{0.05 * len(rows):.1f} are below p = .05 where nothing is.", note=True),
    ]  # fmt: skip


def _reliability(study: Study, loaded: list, scored: pd.DataFrame) -> list[str]:
    rows = []
    for questionnaire in loaded:
        for scale in questionnaire.scales:
            matrix = _matrix(scored, questionnaire, scale, {}).dropna()
            if len(matrix) >= 3 and matrix.shape[1] >= 2:
                found = alpha(matrix)
                rows.append({"scale": scale.title, "respondents": len(matrix),
                             "alpha": found["alpha"], "from": found["low"],
                             "to": found["high"]})  # fmt: skip
    if not rows:
        return [paragraph("Reliability is a property of a population; here are fewer than three "
                          "respondents with answers to all items.", note=True)]  # fmt: skip
    return [table(pd.DataFrame(rows), "Cronbach's alpha over respondents, with Feldt's interval.",
                  {"respondents": "{:.0f}"})]  # fmt: skip


def _evidence(study: Study, folder: Path, loaded: list, store) -> list[str]:
    """Each respondent against null respondents, by the rules of a profile."""
    first = combinations(study)[0]
    if study.seeds != (0,):
        first = first | {"seed": study.seeds[0]}
    rows = []
    for name in _respondents(study, folder):
        try:
            found = assess(name, loaded, study.mode, None, store, **first)
        except PsychometricsError as error:
            rows.append({"respondent": name, "scale": "", "verdict": f"– {error}"})
            continue
        for row in found["scores"].itertuples():
            rows.append({"respondent": readable_names([name])[name], "scale": row.title,
                         "verdict": f"{row.mark} {row.verdict}"})  # fmt: skip
    caption = f"Each respondent's scores ({_said(first)}) beside what null respondents or answers "
    return [table(pd.DataFrame(rows), caption + "dealt anew give, by the rules of a profile.")]


def _how(study: Study, record: dict, failed: dict[str, str]) -> list[str]:
    runs = record["runs"]
    rows = [
        ("questionnaires", ", ".join(study.questionnaires)),
        ("respondents", ", ".join(study.respondents)),
        ("mode", study.mode),
        ("conditions", "; ".join(_said(chosen) for chosen in combinations(study))),
        ("seeds", ", ".join(map(str, study.seeds))),
        ("runs", f"{len(runs)}, the last on {runs[-1]['at'] if runs else '–'}"),
        ("asked in all", str(sum(run["asked"] for run in runs))),
        ("without an answer", str(runs[-1]["unanswered"] if runs else 0)),
        ("seconds in all", f"{sum(run['seconds'] for run in runs):.0f}"),
        ("package", f"psychometrics {__version__}"),
        *((f"failed: {who}", reason) for who, reason in failed.items()),
    ]
    return [table(pd.DataFrame(rows, columns=["what", "how"]), "How it was asked.")]


def _plan_key(study: Study) -> str:
    return key_of(study.planned.model_dump_json())


def _record_path(path: str | Path) -> Path:
    return Path(path).with_suffix("") / "record.json"


def _record(path: str | Path, study: Study) -> dict:
    """The record of runs; the first run fixes the plan."""
    file = _record_path(path)
    if file.is_file():
        return json.loads(file.read_text(encoding="utf-8"))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        record = {"plan": _plan_key(study), "first": _now(), "runs": []}
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"{file} cannot be written: {error.strerror}.") from None
    return record


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M")
