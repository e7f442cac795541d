"""Assess a model: compare its scores with those of null respondents, other models and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from .. import __version__
from ..asking.ask import ask
from ..asking.population import population, population_table
from ..checks import check_choice, check_columns, check_names
from ..data import shipped
from ..endpoints.secrets import mask_conditions
from ..exceptions import ParameterError
from ..measures.intervals import mean_interval, scale_intervals
from ..measures.norms import compare_norms, norm_table
from ..measures.scoring import item_scores, keyed_items, scale_scores
from ..models.devices import computing_on
from ..modes import identify, load_respondent
from ..modes.mode import Identity
from ..nulls.kernels import kernel_statistics
from ..nulls.respondents import kernel, null_answers
from ..questionnaires import AnyQuestionnaires, Questionnaire, Scale, load_questionnaire
from ..questionnaires.prompts import prompts
from ..store import key_of
from .agreement import agreement_table
from .assessments import Assessment, load_with_scales
from .controls import ask_controls, flag_controls
from .own_base import (
    _HEADS,
    UntouchedBase,
    _compare_with_bases,
    _recording_failure,
    _study_bases,
    _substitute,
    equal_member,
    keep_possible_twins,
    untouched_base,
)
from .rules import (
    _flag_items,
    _flag_prompts,
    _heads_of_sizes,
    _is_rare,
    _item_means,
    verdict,
)

if TYPE_CHECKING:
    from ..modes.nli import NLIRespondent

_ERROR = 0.05  # probability that a know-nothing respondent passes on a page
_SAMPLE = 24  # sample size for a statistic's interval without learning
_NO_FLAGS = pd.DataFrame(columns=["scale", "check", "mark", "words", "value", "questionnaire"])
_OTHER_BASE = "not judged, as the random heads are built on another base: "


def assess(
    model: str | Path,
    questionnaires: AnyQuestionnaires,
    mode: str = "nli",
    against: str | None = "default",
    base: str | Path | None = None,
    store: str | Path | None = None,
    dtype: str | None = None,
    device: str | None = None,
    controls: bool = True,
    **conditions: object,
) -> Assessment:
    """Ask a model, score its answers, and judge the scores by :mod:`psychometrics.reports.rules`.

    Parameters
    ----------
    model : str or Path
        A member of the embedded population, a folder or a hub id; in mode chat, the model's name at
        the endpoint.
    questionnaires : str, Path or Questionnaire, or several
        Questionnaires with scales.
    mode, store, dtype, device, **conditions
        Settings of :func:`psychometrics.asking.ask`; null respondents are computed on the same
        device.
    against : str, optional
        Respondents to compare with, which are asked in the same way: ``"embedded"``, or names. By
        default the embedded population in mode ``nli``, whose scores on the book's questionnaires
        are shipped, and no respondents in the other modes. None means no respondents.
    base : str or Path, optional
        The untouched model from which this model was trained, a folder or a hub id. The random
        heads with which answers to prompts are compared are built on it. By default, it is a
        member's base, the base in the manifest of a model that this package trained, or the base
        that the model's configuration names. Without a known base, heads on the embedded encoder
        are shown but do not affect the verdict.
    controls : bool
        Whether a chat model is also asked the control questions of
        :mod:`psychometrics.reports.controls`.

    Returns
    -------
    Assessment

    Raises
    ------
    RespondentError
        The model cannot answer.
    ParameterError, QuestionnaireError
        A questionnaire, a mode or a condition cannot be used.

    Examples
    --------
    >>> assessment = assess(
    ...     "minilm-mnli-l3-s16", "challenges", against=None, store="memory://doctest"
    ... )
    >>> assessment.scores["scale"].tolist()
    ['challenges']
    """
    named: list[Any] = [questionnaires]
    is_single = isinstance(questionnaires, str | Path | Questionnaire)
    if not is_single and isinstance(questionnaires, Iterable):
        named = list(questionnaires)

    loaded = load_with_scales(named)
    arguments: dict[str, Any] = {"model": str(model), "mode": mode, "against": against}
    arguments |= {"questionnaires": [getattr(q, "id", str(q)) for q in named]}
    arguments |= {"base": base, "controls": controls}
    arguments["conditions"] = mask_conditions(conditions)
    if against == "default":
        against = "embedded" if mode == "nli" else None

    failures: dict[str, str] = {}
    with computing_on(device):
        identity = identify(model, mode, None if dtype == "auto" else dtype, **conditions)
        settings: dict[str, Any] = {"mode": mode, "store": store, "dtype": dtype, **conditions}
        answers = ask(loaded, [model], **settings)
        if "option" in answers:
            raise ParameterError("choose=none gives probabilities, not answers: leave it out.")

        rivals = pd.DataFrame()
        with _recording_failure(failures, "others"):
            rivals = _ask_others(against, str(model), identity.respondent_id, loaded, settings)

        if "term" in answers:
            assessment = _assess_prompts(
                model, loaded, answers, rivals, base, identity, conditions, failures
            )
        else:
            control_answers = None
            if controls and mode == "chat":
                with _recording_failure(failures, "controls"):
                    spent = answers.attrs["summary"].get("cost", 0.0)
                    control_answers = ask_controls(loaded, model, settings, spent)

            assessment = _assess_items(identity, loaded, answers, rivals, control_answers, failures)

    twins = rivals if assessment.base is None else keep_possible_twins(rivals, assessment.base)
    everybody = pd.concat([assessment.items, twins], ignore_index=True)
    agreement = agreement_table(everybody, loaded, identity.respondent_id)
    texts = _describe_asking(identity, loaded, answers, conditions, assessment.controls)
    if assessment.base is not None:
        heads = assessment.null_items["respondent_id"].nunique()
        texts["null respondents"] = f"{heads} random heads {assessment.base.description}"

    if len(rivals):
        texts["others"] = f"{rivals['respondent_id'].nunique()} respondents of '{against}'"

    reasons = answers.attrs["summary"]["failed"] | failures
    texts |= {f"left out: {section}": reason for section, reason in reasons.items()}
    descriptions = pd.DataFrame({"how": texts}).rename_axis("what")
    return replace(assessment, agreement=agreement, asked=descriptions, settings=arguments)


def _assess_prompts(
    model: str | Path,
    loaded: list[Questionnaire],
    answers: pd.DataFrame,
    others: pd.DataFrame,
    named_base: str | Path | None,
    identity: Identity,
    conditions: Mapping[str, Any],
    failures: dict[str, str],
) -> Assessment:
    """Judge answers to prompts against random heads, and compare the heads on several bases."""
    # enough heads for a level of .05, divided among the questionnaires, to be attainable
    number_of_heads = max(_HEADS, 40 * len(loaded) - 1)
    base = untouched_base(str(model), named_base)
    null = pd.DataFrame()
    with _recording_failure(failures, "its own base"):
        null = null_answers(loaded, "random-heads", number_of_heads, **base.reading)
    if null.empty:
        base = _substitute("cannot be read")
        null = null_answers(loaded, "random-heads", number_of_heads, **base.reading)

    accuracy = None
    if identity.mode == "nli":
        with _recording_failure(failures, "accuracy"):
            accuracy = _measure_accuracy(identity, model)

    heads = {
        name: _heads_of_sizes(answered, null[null["questionnaire"] == name])
        for name, answered in answers.groupby("questionnaire", sort=False)
    }
    assessment = _judge(loaded, answers, others, base, heads, accuracy)

    kernels = None
    with _recording_failure(failures, "kernel"):  # a scale of one item has no alpha
        kernels = kernel_statistics(kernel(loaded, **base.reading), _SAMPLE)

    sizes = None
    with _recording_failure(failures, "sizes"):
        names = set(heads) & set(_study_bases().index.get_level_values("questionnaire"))
        in_study = [q for q in loaded if q.id in names and q == load_questionnaire(q.id)]
        if in_study:
            respondent = load_respondent(model, identity.mode, dtype=identity.dtype, **conditions)
            million = sum(weight.numel() for weight in respondent.model.parameters()) / 1e6
            own_heads = heads if base.is_own else {}
            sizes = _compare_with_bases(
                in_study, million, assessment.flags, own_heads, kernels, base.title
            )

    return replace(assessment, kernel=kernels, sizes=sizes)


def _assess_items(
    identity: Identity,
    loaded: list[Questionnaire],
    answers: pd.DataFrame,
    others: pd.DataFrame,
    controls: pd.DataFrame | None,
    failures: dict[str, str],
) -> Assessment:
    """Judge answers to items, and compare the scores over runs and with people's norms."""
    assessment = _judge(loaded, answers, others, controls=controls)
    norms = None
    with _recording_failure(failures, "norms"):
        norms = _compare_with_norms(assessment.scores, loaded, identity.respondent_id)

    keys = ["questionnaire", "scale", "title"]
    scores = scale_scores(answers, loaded).groupby(keys, sort=False)["score"]
    runs = scores.agg(runs="count", mean="mean", sd="std").reset_index()
    return replace(assessment, runs=runs, norms=norms)


def name_models(models: Sequence[str | Path]) -> list[str]:
    """Return the names under which models are compared: folders' names, or the ids.

    Raises
    ------
    ParameterError
        There are fewer than two models, or two have one name.

    Examples
    --------
    >>> name_models(["minilm-mnli-l3-s16", "org/model"])
    ['minilm-mnli-l3-s16', 'org/model']
    """
    check_names(models=models)
    if len(models) < 2:
        raise ParameterError("Name at least two models to compare.")

    names = [Path(m).resolve().name if Path(m).is_dir() else str(m) for m in models]
    short = [Path(name).name for name in names]
    for name in short:
        if short.count(name) > 1:
            raise ParameterError(f"Two models are called '{name}': keep one of them.")
    return names


def judge_respondents(
    answers: pd.DataFrame,
    questionnaires: AnyQuestionnaires,
    names: Sequence[str],
) -> dict[str, Assessment]:
    """Judge respondents by their own answers to items.

    Parameters
    ----------
    answers : DataFrame
        Answers, as :func:`psychometrics.answers.files.read_answers` returns them.
    questionnaires : str, Path or Questionnaire, or several
        All questionnaires that were answered; each has scales.
    names : sequence of str
        Names of the respondents to judge.

    Returns
    -------
    dict of Assessment
        For each respondent, ``scores, flags, nulls, items`` and ``null_items``. The null
        respondents have the same answers, shuffled over the items.

    Raises
    ------
    ParameterError
        A respondent has no answers.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> answers = empty_answers("gad7", "agree")
    >>> name = answers["respondent_id"].iloc[0]
    >>> judge_respondents(answers, "gad7", [name])[name].scores["mark"].tolist()
    ['✗']
    """
    check_columns(answers, ["respondent_id"])
    check_names(names=names)
    loaded = load_with_scales(questionnaires)
    respondents = answers["respondent_id"].unique()
    for name in names:
        check_choice(respondents, respondent=name)

    return {name: _judge(loaded, answers[answers["respondent_id"] == name]) for name in names}


def differences(
    assessments: Mapping[str, Assessment],
    questionnaires: AnyQuestionnaires,
) -> pd.DataFrame:
    """Return the differences between the first model's scores and the others', paired by item.

    Parameters
    ----------
    assessments : mapping of str to Assessment
        Results of :func:`assess`, by the names of the models.
    questionnaires : str, Path or Questionnaire, or several
        The questionnaires that were asked.

    Returns
    -------
    DataFrame
        One row per scale and model after the first: ``questionnaire, scale, model``; the
        ``difference`` from the first model with its 95 % interval ``low, high``, paired over the
        ``n`` items; ``null``, for answers to prompts: the share of pairs of random heads that
        differ at least as clearly, in standard errors; and the ``verdict``. Models *differ* if the
        interval excludes 0 and at most 5 % of pairs of random heads on their own bases differ as
        clearly. Answers to items have no random heads, so their models differ *on these items*.
    """
    (_, baseline), *rivals = assessments.items()
    rows = []
    for questionnaire in load_with_scales(questionnaires):
        for scale in questionnaire.scales:
            for name, rival in rivals:
                row = {"questionnaire": questionnaire.id, "scale": scale.id, "model": name}
                rows.append(row | _compare_pair(baseline, rival, questionnaire, scale))

    columns = ["questionnaire", "scale", "model", "difference", "low", "high", "n", "null"]
    return pd.DataFrame(rows, columns=[*columns, "verdict"])


def _compare_pair(
    first: Assessment, second: Assessment, questionnaire: Questionnaire, scale: Scale
) -> dict[str, object]:
    """Return the paired difference between two models on a scale, with its verdict."""
    scores = [_keyed(each.items, questionnaire, scale) for each in (first, second)]
    pairs = scores[1].reset_index(drop=True) - scores[0].reset_index(drop=True)
    to_prompts = first.base is not None
    gaps = pairs.stack().dropna().to_numpy(dtype=float) * _items_in_sum(scale, to_prompts)
    row = {"difference": np.nan, "low": np.nan, "high": np.nan, "n": len(gaps), "null": np.nan}
    if not len(gaps):
        return row | {"verdict": "cannot be tested"}

    row["difference"] = gaps.mean()
    row["low"], row["high"] = map(float, mean_interval(gaps))
    is_rare = True
    if to_prompts:
        heads = [
            _keyed(each.null_items, questionnaire, scale).to_numpy(dtype=float)
            for each in (first, second)
        ]
        # pair with the next head, as heads of the same number are equal on one base
        of_heads = _clearness(heads[0] - np.roll(heads[1], 1, axis=0))
        row["null"] = float((of_heads >= _clearness(gaps)).mean())
        is_rare = _is_rare(float(_clearness(gaps)), of_heads)

    if np.isnan(row["low"]):
        verdict_on_pair = "cannot be tested"
    elif row["low"] <= 0 <= row["high"]:
        verdict_on_pair = "no difference shown"
    elif not to_prompts:
        verdict_on_pair = "differ on these items"
    elif not (first.is_judged_on_own_base and second.is_judged_on_own_base):
        verdict_on_pair = "cannot be judged: no random heads on their own bases"
    else:
        verdict_on_pair = "differ" if is_rare else "no clearer than between random heads"

    return row | {"verdict": verdict_on_pair}


def _clearness(gaps: np.ndarray) -> np.ndarray:
    """Return how many standard errors the means over the last axis are from 0."""
    size = np.abs(gaps.mean(axis=-1))
    error = gaps.std(axis=-1, ddof=1) / np.sqrt(gaps.shape[-1])
    clearness = np.where(size > 0, np.inf, 0.0)  # if there is no error
    np.divide(size, error, out=clearness, where=error > 0)
    return clearness


def _judge(
    loaded: list[Questionnaire],
    answers: pd.DataFrame,
    others: pd.DataFrame | None = None,
    base: UntouchedBase | None = None,
    heads: Mapping[str, Mapping[str, pd.DataFrame]] | None = None,
    accuracy: tuple[float, ...] | None = None,
    controls: pd.DataFrame | None = None,
) -> Assessment:
    """Judge a respondent's answers to questionnaires, which share the page's error probability.

    Answers to prompts are judged against ``heads``, by questionnaire and size, and answers to items
    against the same answers shuffled over the items, and against answers to control questions.
    """
    level = _ERROR / len(loaded)
    names = ("scores", "flags", "nulls", "others", "items", "null_items")
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in names}

    for questionnaire in loaded:
        answered = answers[answers["questionnaire"] == questionnaire.id]
        if answered.empty:
            empty = pd.DataFrame()
            tables["scores"].append(_score_scales(empty, empty, empty, questionnaire, False))
            continue

        items = _item_means(item_scores(answered))
        if heads is None:
            flags = _flag_items(answered, questionnaire, level)
            if controls is not None:
                more = flag_controls(answered, controls, questionnaire, level)
                flags = pd.concat([flags, more], ignore_index=True)

            null_items = _shuffle_items(items, questionnaire)
        else:
            of_sizes = heads[questionnaire.id]
            flags = _flag_prompts(answered, of_sizes, questionnaire, accuracy, level)
            # heads as decisive as the model, since even answers score 0
            null_items = _item_means(item_scores(of_sizes["as decisive"]))

        if base is not None and not base.is_own:
            rests_on_heads = flags["check"].isin(["terms", "score", "trend"])
            flags.loc[rests_on_heads, "words"] = _OTHER_BASE + flags.loc[rests_on_heads, "words"]
            flags.loc[rests_on_heads, "mark"] = "–"

        to_prompts = base is not None
        rivals = _scale_scores(others, questionnaire, to_prompts)
        tables["scores"].append(_score_scales(items, flags, rivals, questionnaire, to_prompts))
        tables["flags"].append(flags.assign(questionnaire=questionnaire.id))
        tables["nulls"].append(_scale_scores(null_items, questionnaire, to_prompts))
        tables["others"].append(rivals)
        tables["items"].append(items)
        tables["null_items"].append(null_items)

    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items() if parts}
    joined = dict.fromkeys(names, pd.DataFrame()) | {"flags": _NO_FLAGS} | joined
    return Assessment(**joined, base=base, controls=controls, questionnaires=tuple(loaded))


def _score_scales(
    items: pd.DataFrame,
    flags: pd.DataFrame,
    others: pd.DataFrame,
    questionnaire: Questionnaire,
    to_prompts: bool,
) -> pd.DataFrame:
    """Return each scale's score with its interval, its place among others, and its verdict."""
    rows = []
    for scale in questionnaire.scales:
        interval = pd.Series({"n": 0})
        if len(items):
            interval = scale_intervals(items, questionnaire, scale.id).iloc[0]

        answered = int(interval["n"])
        row: dict[str, Any] = {"questionnaire": questionnaire.id, "scale": scale.id}
        row |= {"title": scale.title} | dict.fromkeys(("score", "low", "high"), np.nan)
        row |= {"n": answered, "place": np.nan, "mark": "✗"}
        row["verdict"] = f"no score: {answered} of {len(scale.items)} items answered"
        if answered == len(scale.items):  # a missing item leaves no score
            values = interval[["score", "low", "high"]] * _items_in_sum(scale, to_prompts)
            row |= values.to_dict()
            row["mark"], row["verdict"] = verdict(flags, scale)
            rivals = others.loc[others["scale"] == scale.id, "score"].dropna()
            if len(rivals) and np.isfinite(row["score"]):
                row["place"] = float((rivals < row["score"]).mean())

        rows.append(row)

    return pd.DataFrame(rows)


def _items_in_sum(scale: Scale, to_prompts: bool) -> int:
    """Return the number of item scores that a scale adds up, or 1 if it is a mean."""
    return len(scale.items) if scale.mode == "sum" and not to_prompts else 1


def _keyed(items: pd.DataFrame, questionnaire: Questionnaire, scale: Scale) -> pd.DataFrame:
    if "questionnaire" not in items or questionnaire.id not in set(items["questionnaire"]):
        return pd.DataFrame()
    return keyed_items(items, questionnaire, scale)


def _scale_scores(
    items: pd.DataFrame | None, questionnaire: Questionnaire, to_prompts: bool
) -> pd.DataFrame:
    """Return the scores of respondents on all scales: ``questionnaire, scale, who, score``."""
    columns = ["questionnaire", "scale", "who", "score"]
    tables = [pd.DataFrame(columns=columns)]
    for scale in questionnaire.scales if items is not None else []:
        keyed = _keyed(items, questionnaire, scale)
        if len(keyed):
            factor = _items_in_sum(scale, to_prompts)
            scores = factor * keyed.mean(axis=1, skipna=False).to_numpy()
            who = keyed.index.get_level_values("respondent_id")
            table = pd.DataFrame({"who": who, "score": scores})
            table = table.assign(questionnaire=questionnaire.id, scale=scale.id)
            tables.append(table[columns])

    return pd.concat(tables[1:] or tables, ignore_index=True)


def _shuffle_items(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Shuffle answers over items; return the item scores of respondents with such answers."""
    ranges = {
        tuple(option.value for option in questionnaire.choices(questionnaire.item(name)))
        for name in items["item_id"]
    }

    if len(ranges) > 1 or items["score"].isna().any():  # answers do not fit other items
        return pd.DataFrame()

    rng = np.random.default_rng(0)
    scores = items["score"].to_numpy()
    deals = [
        items.assign(respondent_id=f"deal {number + 1}", score=rng.permutation(scores))
        for number in range(_HEADS)
    ]
    return pd.concat(deals, ignore_index=True)


def _compare_with_norms(
    scores: pd.DataFrame, loaded: list[Questionnaire], respondent: str
) -> pd.DataFrame | None:
    """Compare each scale score with the norms, as if it were one person's score."""
    tables = []
    for questionnaire in loaded:
        if not questionnaire.norms:
            continue

        norms = norm_table(questionnaire)
        for scale in questionnaire.scales:
            if scale.mode == "mean":  # a mean is compared with norms of sums
                sums = (norms["scale"] == scale.id) & norms["group"].str.contains("sums of ticks")
                norms.loc[sums, ["norm_mean", "norm_sd"]] /= len(scale.items)
                norms.loc[sums, "group"] += ", here as means"

        scored = scores[scores["questionnaire"] == questionnaire.id].dropna(subset="score")
        if set(scored["scale"]) & set(norms["scale"]):
            means = scored[["questionnaire", "scale", "score"]].rename(columns={"score": "mean"})
            means = means.assign(respondent_id=respondent, sd=np.nan, n=1)
            tables.append(compare_norms(means, norms))

    return pd.concat(tables, ignore_index=True) if tables else None


def _measure_accuracy(identity: Identity, model: str | Path) -> tuple[float, ...]:
    """Return the accuracy at inference, on held-out pairs (members) or on labelled pairs."""
    members = population_table().set_index("respondent_id")
    member = identity.respondent_id if identity.source == "embedded" else equal_member(str(model))
    if member in members.index:
        return tuple(members.loc[member, ["accuracy", "low", "high"]])
    respondent = cast("NLIRespondent", load_respondent(model, "nli", dtype=identity.dtype))
    return respondent.accuracy()


def _describe_asking(
    identity: Identity,
    loaded: list[Questionnaire],
    answers: pd.DataFrame,
    conditions: Mapping[str, object],
    controls: pd.DataFrame | None,
) -> dict[str, str]:
    """Return how a model was asked, as pairs of a heading and its text."""
    summary = answers.attrs["summary"]
    titles = {questionnaire.id: questionnaire.short_title for questionnaire in loaded}
    kind = "prompts" if "term" in answers else "answers"
    counts = answers.groupby("questionnaire", sort=False).size()
    masked = mask_conditions(conditions)
    tables = [answers] if controls is None else [answers, controls]
    summaries = [table.attrs["summary"] for table in tables]
    more = {}
    if controls is not None:
        more["controls"] = f"{len(controls):,} answers: options turned round, weather, empty item"

    tokens = [each["tokens"] for each in summaries if "tokens" in each]
    if tokens:
        sent, received = (sum(each[name] for each in tokens) for name in ("prompt", "completion"))
        more["tokens"] = f"{sent:,} sent, {received:,} received, in this call"

    statuses: Counter[str] = Counter()
    for each in summaries:
        statuses.update(each.get("statuses", {}))

    unanswered = "0"
    if statuses:
        number_of_answers = sum(map(len, tables))
        share = statuses.total() / number_of_answers
        reasons = ", ".join(f"{count:,} {status}" for status, count in statuses.items())
        unanswered = f"{statuses.total():,} of {number_of_answers:,} ({share:.0%}): {reasons}"

    if "cost" in summary:
        more["cost"] = f"{sum(each.get('cost', 0.0) for each in summaries):.4g}, in this call"

    return {
        "respondent": identity.respondent_id,
        "model": f"{identity.model or ''} ({identity.source or 'unknown source'})",
        "revision": str(identity.revision or "not known"),
        "mode": identity.mode,
        "conditions": ", ".join(f"{k}={v}" for k, v in masked.items()) or "the mode's own",
        "asked": "; ".join(f"{titles[name]}: {n:,} {kind}" for name, n in counts.items()),
        "precision": str(identity.dtype or "the endpoint's"),
        "answers": f"{summary['asked']:,} asked now, {summary['from_store']:,} from the store, in "
        f"{summary['seconds']:.1f} s",
        "refused or unreadable": unanswered,
        **more,
        "package": f"psychometrics {__version__}",
    }


def _ask_others(
    against: str | None,
    model: str,
    respondent: str,
    loaded: list[Questionnaire],
    settings: Mapping[str, Any],
) -> pd.DataFrame:
    """Return the item scores of the other respondents, which are shipped or newly collected."""
    rivals = [] if against is None else population(against)
    # a member that was saved to a folder is not its own twin
    itself = {respondent, equal_member(model) if settings["mode"] == "nli" else None}
    names = [name for name in rivals if Path(name).name not in itself]
    tables = []
    for questionnaire in loaded if names else []:
        stored = pd.DataFrame({"respondent_id": []})
        if settings["mode"] == "nli":  # the embedded population's scores of the same prompts
            stored = pd.read_parquet(shipped("profile.parquet"))
            digest = key_of(prompts(questionnaire).to_csv(index=False))
            stored = stored[stored.pop("prompts") == digest]

        if set(names) <= set(stored["respondent_id"]):
            tables.append(stored[stored["respondent_id"].isin(names)])
        else:
            tables.append(_item_means(item_scores(ask(questionnaire, names, **settings))))

    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
