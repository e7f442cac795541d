"""Assess a model: compare its scores with those of null respondents, other models and people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

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
from ..measures.scoring import item_scores, keyed_items
from ..models.devices import computing_on
from ..modes import identify, load_respondent
from ..questionnaires import Questionnaire, Scale, load_questionnaires
from ..questionnaires.prompts import prompts
from ..store import key_of
from .own_base import _HEADS, _beside_bases, _leaving_out, _own_null
from .rules import _heads_of_sizes, _is_rare, _item_means, flags, verdict

_ERROR = 0.05  # probability that a know-nothing respondent passes on a page
_NO_FLAGS = pd.DataFrame(columns=["scale", "check", "mark", "words", "value", "questionnaire"])
_STRANGE = "not judged, as the random heads are built on another base: "


def assess(
    model: str | Path,
    questionnaires: str | Path | Questionnaire | Iterable,
    mode: str = "nli",
    against: str | None = "default",
    base: str | Path | None = None,
    store: str | Path | None = None,
    dtype: str | None = None,
    device: str | None = None,
    **conditions: object,
) -> dict[str, pd.DataFrame]:
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
        member's base, or the base in the manifest of a model that this package trained. Without a
        known base, heads on the embedded encoder are shown but do not affect the verdict.

    Returns
    -------
    dict of DataFrame
        ``scores``: ``questionnaire, scale, title, score, low, high`` (over items), ``n`` (items),
        ``place`` (share of the other respondents that score lower), ``mark`` and ``verdict``;
        ``flags``, from :func:`psychometrics.reports.rules.flags`, with ``questionnaire``;
        ``others`` and ``nulls``: ``questionnaire, scale, who, score``; ``norms``, for answers to
        items; ``items`` and ``null_items``, item scores of the model and the null respondents;
        ``kernel``, for answers to prompts :func:`psychometrics.nulls.kernels.kernel_statistics`
        on the model's base; ``sizes``, for answers to prompts of GAD-7, PHQ-9 or SOC-13:
        ``questionnaire, respondents, million parameters``, ``silhouette`` and ``alpha`` with ``low,
        high``, for the model, for random heads of three sizes on its base, and for random heads at
        their start on the three bases of ``data/bases`` nearest in size (MiniLM with the nearest
        number of layers); ``asked``: how the model was asked, with the columns ``what`` and
        ``how``.

    Raises
    ------
    RespondentError
        The model cannot answer.
    ParameterError, QuestionnaireError
        A questionnaire, a mode or a condition cannot be used.

    Examples
    --------
    >>> found = assess("minilm-mnli-l3-s16", "challenges", against=None, store="memory://doctest")
    >>> found["scores"]["scale"].tolist()
    ['challenges']
    """
    with computing_on(device):
        return _assessed(model, questionnaires, mode, against, base, store, dtype, conditions)


def judge_respondents(
    answers: pd.DataFrame,
    questionnaires: str | Path | Questionnaire | Iterable,
    names: Sequence[str],
) -> dict[str, dict[str, pd.DataFrame]]:
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
    dict of dict of DataFrame
        For each respondent, ``scores, flags, nulls, items`` and ``null_items``, as :func:`assess`
        returns them. The null respondents have the same answers, shuffled over the items.

    Raises
    ------
    ParameterError
        A respondent has no answers.

    Examples
    --------
    >>> from psychometrics.measures.styles import empty_answers
    >>> answers = empty_answers("gad7", "agree")
    >>> name = answers["respondent_id"].iloc[0]
    >>> judge_respondents(answers, "gad7", [name])[name]["scores"]["mark"].tolist()
    ['✗']
    """
    check_columns(answers, ["respondent_id"])
    check_names(names=names)
    loaded = _load(questionnaires)
    known = answers["respondent_id"].unique()
    for name in names:
        check_choice(known, respondent=name)

    return {
        name: _judge_all(loaded, answers[answers["respondent_id"] == name], None, None, None, {})
        for name in names
    }


def differences(found: dict[str, dict[str, pd.DataFrame]], questionnaires) -> pd.DataFrame:
    """Return the differences between the first model's scores and the others', paired by item.

    Parameters
    ----------
    found : dict
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
    (_, one), *rest = found.items()
    to_prompts = "terms" in set(one["flags"]["check"])
    rows = []
    for questionnaire in _load(questionnaires):
        for scale in questionnaire.scales:
            own = _keyed(one["items"], questionnaire, scale).reset_index(drop=True)
            for name, tables in rest:
                other = _keyed(tables["items"], questionnaire, scale).reset_index(drop=True)
                apart = (other - own).stack().dropna().to_numpy(dtype=float)
                apart = apart * _size(scale, to_prompts)
                row = {"questionnaire": questionnaire.id, "scale": scale.id, "model": name}
                row |= dict.fromkeys(("difference", "low", "high"), np.nan)

                if len(apart):
                    low, high = map(float, mean_interval(apart))
                    row |= {"difference": apart.mean(), "low": low, "high": high}

                row |= {"n": len(apart), "null": np.nan}
                is_rare = True
                if len(apart) and to_prompts:
                    first, second = (
                        _keyed(both["null_items"], questionnaire, scale).to_numpy(dtype=float)
                        for both in (one, tables)
                    )
                    # pair with the next head, as heads of the same number are equal on one base
                    drawn = _clearness(first - np.roll(second, 1, axis=0))
                    row["null"] = float((drawn >= _clearness(apart)).mean())
                    is_rare = _is_rare(_clearness(apart), drawn)

                both_own = not any(_is_strange(both) for both in (one, tables))
                row["verdict"] = _verdict_on_difference(row, to_prompts, is_rare, both_own)
                rows.append(row)

    columns = ["questionnaire", "scale", "model", "difference", "low", "high", "n", "null"]
    return pd.DataFrame(rows, columns=[*columns, "verdict"])


def _clearness(apart: np.ndarray) -> np.ndarray:
    """Return how many standard errors the means over the last axis are from 0."""
    size = np.abs(apart.mean(axis=-1))
    error = apart.std(axis=-1, ddof=1) / np.sqrt(apart.shape[-1])
    without_error = np.where(size > 0, np.inf, 0.0)
    return np.divide(size, error, out=without_error, where=error > 0)


def _is_strange(tables: dict[str, pd.DataFrame]) -> bool:
    """Return whether a model's random heads are built on another base."""
    return tables["flags"]["words"].str.startswith(_STRANGE).any()


def _verdict_on_difference(row: dict, to_prompts: bool, is_rare: bool, both_own: bool) -> str:
    if np.isnan(row["low"]):
        return "cannot be tested"
    if row["low"] <= 0 <= row["high"]:
        return "no difference shown"
    if not to_prompts:
        return "differ on these items"
    if not both_own:
        return "cannot be judged: no random heads on their own bases"
    return "differ" if is_rare else "no clearer than between random heads"


def _assessed(
    model, questionnaires, mode: str, against: str | None, base, store, dtype, conditions: dict
) -> dict[str, pd.DataFrame]:
    """Return the tables of :func:`assess`, computed on the default device."""
    loaded = _load(questionnaires)
    who = identify(model, mode, None if dtype == "auto" else dtype, **conditions)
    how = {"mode": mode, "store": store, "dtype": dtype, **conditions}
    answers = ask(loaded, [model], **how)

    if "option" in answers:
        raise ParameterError("choose=none gives probabilities, not answers: leave it out.")
    left_out: dict[str, str] = {}
    stand = {}
    null = None
    accuracy = None
    if "term" in answers:
        stand, null = _own_null(str(model), base, loaded, left_out)
        with _leaving_out(left_out, "accuracy"):
            accuracy = _accuracy(who, model)

    if against == "default":
        against = "embedded" if mode == "nli" else None

    others = pd.DataFrame()
    with _leaving_out(left_out, "others"):
        others = _others(against, who["respondent_id"], loaded, how)

    tables = _judge_all(loaded, answers, null, others, accuracy, stand)
    tables |= dict.fromkeys(("norms", "kernel", "sizes"), pd.DataFrame())
    if null is None:
        with _leaving_out(left_out, "norms"):
            tables["norms"] = _norms(tables["scores"], loaded, who)

    if stand:
        asked = {"mode": mode, "dtype": who["dtype"]} | conditions
        tables |= _beside_bases(
            model, loaded, answers, stand, null, tables["flags"], left_out, asked
        )

    tables["asked"] = _asked(who, loaded, answers, conditions, stand)
    if len(others):
        count = others["respondent_id"].nunique()
        tables["asked"].loc["others"] = f"{count} respondents of '{against}'"

    for section, reason in (answers.attrs["summary"]["failed"] | left_out).items():
        tables["asked"].loc[f"left out: {section}"] = reason

    return tables


def _part_of(frame: pd.DataFrame | None, questionnaire: Questionnaire) -> pd.DataFrame | None:
    """Return the rows about a questionnaire, or None if there is no table."""
    if frame is None or frame.empty:
        return None
    return frame[frame["questionnaire"] == questionnaire.id]


def _shipped_scores(questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the embedded population's shipped item scores, or none for other prompts."""
    path = shipped("profile.parquet")
    table = pd.read_parquet(path) if path.is_file() else pd.DataFrame({"prompts": []})
    digest = key_of(prompts(questionnaire).to_csv(index=False))
    return table[table["prompts"] == digest].drop(columns="prompts")


def _load(questionnaires) -> list[Questionnaire]:
    loaded = load_questionnaires(questionnaires)
    without = [questionnaire.id for questionnaire in loaded if not questionnaire.scales]
    if without:
        raise ParameterError(f"{without[0]} has no scales: use `psychometrics scores --plot`.")
    return loaded


def _judge_all(
    loaded: list[Questionnaire], answers, null, others, accuracy, base: dict
) -> dict[str, pd.DataFrame]:
    """Return the tables of all questionnaires, which share the page's error probability."""
    level = _ERROR / len(loaded)
    parts: dict[str, list] = {}
    for questionnaire in loaded:
        own, drawn, rest = (_part_of(frame, questionnaire) for frame in (answers, null, others))
        judged = _judged(own, questionnaire, drawn, rest, accuracy, base, level)
        for name, part in judged.items():
            parts.setdefault(name, []).append(part)

    return {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}


def _judged(
    answers, questionnaire: Questionnaire, null, others, accuracy, base: dict, level: float
) -> dict:
    """Return the tables about one questionnaire."""
    if answers is None or answers.empty:
        return {"scores": _unanswered(questionnaire), "flags": _NO_FLAGS}

    to_prompts = null is not None
    found = flags(answers, questionnaire, null, accuracy, level)
    if not base.get("own", True):
        judged = found["check"].isin(["terms", "score", "trend"])
        found.loc[judged, "words"] = _STRANGE + found.loc[judged, "words"]
        found.loc[judged, "mark"] = "–"

    items = _item_means(item_scores(answers))
    if to_prompts:  # heads as decisive as the model, since even answers score 0
        drawn = _item_means(item_scores(_heads_of_sizes(answers, null)["as decisive"]))
    else:
        drawn = _dealt(items, questionnaire)

    scores = []
    clouds = {"others": [], "nulls": []}

    for scale in questionnaire.scales:
        size = _size(scale, to_prompts)
        for name, rows in (("others", others), ("nulls", drawn)):
            clouds[name].append(_cloud(rows, questionnaire, scale, size))

        row = scale_intervals(items, questionnaire, scale.id).iloc[0]
        n = int(row["n"])
        of = len(scale.items)
        values = row[["score", "low", "high"]] * (size if n == of else np.nan)
        mark, words = verdict(found, scale)

        if n < of:  # a missing item leaves no score
            mark = "✗"
            words = f"no score: {n} of {of} items answered"

        place = np.nan
        known = clouds["others"][-1]["score"].dropna()
        if len(known) and np.isfinite(values["score"]):
            place = float((known < values["score"]).mean())

        about = {"questionnaire": questionnaire.id, "scale": scale.id, "title": scale.title}
        about |= {**values, "n": n, "place": place, "mark": mark, "verdict": words}
        scores.append(about)

    return {
        "scores": pd.DataFrame(scores),
        "flags": found.assign(questionnaire=questionnaire.id),
        **{name: pd.concat(parts, ignore_index=True) for name, parts in clouds.items()},
        "items": items,
        "null_items": drawn,
    }


def _unanswered(questionnaire: Questionnaire) -> pd.DataFrame:
    """Return the rows about scales without any answer, such as after a failure."""
    rows = [
        {"questionnaire": questionnaire.id, "scale": scale.id, "title": scale.title, "n": 0,
         "mark": "✗", "verdict": f"no score: 0 of {len(scale.items)} items answered"}
        for scale in questionnaire.scales
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**dict.fromkeys(("score", "low", "high", "place"), np.nan))


def _size(scale: Scale, to_prompts: bool) -> int:
    return len(scale.items) if scale.mode == "sum" and not to_prompts else 1


def _keyed(items: pd.DataFrame, questionnaire: Questionnaire, scale: Scale) -> pd.DataFrame:
    own = items[items["questionnaire"] == questionnaire.id]
    return keyed_items(own, questionnaire, scale) if len(own) else pd.DataFrame()


def _cloud(items, questionnaire: Questionnaire, scale: Scale, size: int) -> pd.DataFrame:
    columns = ["questionnaire", "scale", "who", "score"]
    if items is None or not len(items):
        return pd.DataFrame(columns=columns)
    keyed = keyed_items(items, questionnaire, scale)
    scores = size * keyed.mean(axis=1, skipna=False).to_numpy()
    frame = pd.DataFrame({"who": keyed.index.get_level_values("respondent_id"), "score": scores})
    return frame.assign(questionnaire=questionnaire.id, scale=scale.id)[columns]


def _dealt(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Shuffle answers over items; return the item scores of respondents with such answers."""
    ranges = {
        tuple(option.value for option in questionnaire.choices(questionnaire.item(name)))
        for name in items["item_id"]
    }

    if len(ranges) > 1 or items["score"].isna().any():  # answers do not fit other items
        return pd.DataFrame()
    rng = np.random.default_rng(0)
    scores = items["score"].to_numpy()
    parts = [
        items.assign(respondent_id=f"deal {number + 1}", score=rng.permutation(scores))
        for number in range(_HEADS)
    ]

    return pd.concat(parts, ignore_index=True)


def _norms(scores: pd.DataFrame, loaded: list[Questionnaire], who: dict) -> pd.DataFrame:
    """Compare each scale score with the norms, as if it were one person's score."""
    parts = []
    for questionnaire in loaded:
        norms = norm_table(questionnaire) if questionnaire.norms else pd.DataFrame({"scale": []})
        for scale in questionnaire.scales:
            if scale.mode == "mean" and len(norms):  # a mean is compared with norms of sums
                sums = (norms["scale"] == scale.id) & norms["group"].str.contains("sums of ticks")
                norms.loc[sums, ["norm_mean", "norm_sd"]] /= len(scale.items)
                norms.loc[sums, "group"] += ", here as means"

        own = scores[scores["questionnaire"] == questionnaire.id].dropna(subset="score")
        if set(own["scale"]) & set(norms["scale"]):
            own = own[["questionnaire", "scale", "score"]].rename(columns={"score": "mean"})
            own = own.assign(respondent_id=who["respondent_id"], sd=np.nan, n=1)
            parts.append(compare_norms(own, norms))

    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _asked(who: dict, loaded: list, answers: pd.DataFrame, conditions: dict, base: dict):
    summary = answers.attrs["summary"]
    titles = {questionnaire.id: questionnaire.short_title for questionnaire in loaded}
    kind = "prompts" if "term" in answers else "answers"
    counts = answers.groupby("questionnaire", sort=False).size()
    shown = mask_conditions(conditions)
    rows = {
        "respondent": who["respondent_id"],
        "model": f"{who.get('model', '')} ({who.get('source', 'unknown source')})",
        "revision": str(who.get("revision") or "not known"),
        "mode": who["mode"],
        "conditions": ", ".join(f"{k}={v}" for k, v in shown.items()) or "the mode's own",
        "asked": "; ".join(f"{titles[name]}: {n:,} {kind}" for name, n in counts.items()),
        "precision": str(who.get("dtype") or "the endpoint's"),
        "answers": f"{summary['asked']:,} asked now, {summary['from_store']:,} from the store, in "
        f"{summary['seconds']:.1f} s",
        "refused or unreadable": f"{summary['unanswered']:,}",
        "package": f"psychometrics {__version__}",
    }

    if base:
        rows["null respondents"] = f"{base['heads']} random heads {base['said']}"

    return pd.DataFrame({"how": rows}).rename_axis("what")


def _accuracy(who: dict, model: str | Path) -> tuple[float, ...] | None:
    """Return the accuracy at inference, on held-out pairs (members) or on labelled pairs."""
    if who["mode"] != "nli":
        return None
    known = population_table().set_index("respondent_id")
    if who.get("source") == "embedded" and who["respondent_id"] in known.index:
        return tuple(known.loc[who["respondent_id"], ["accuracy", "low", "high"]])
    return load_respondent(model, dtype=who["dtype"]).accuracy()


def _others(against: str | None, own: str, loaded: list[Questionnaire], how: dict) -> pd.DataFrame:
    """Return the item scores of the other respondents, which are shipped or newly collected."""
    names = [] if against is None else [n for n in population(against) if Path(n).name != own]
    parts = []
    for questionnaire in loaded if names else []:
        known = _shipped_scores(questionnaire) if how["mode"] == "nli" else pd.DataFrame()
        if set(names) <= set(known.get("respondent_id", ())):
            parts.append(known[known["respondent_id"].isin(names)])
        else:
            parts.append(_item_means(item_scores(ask(questionnaire, names, **how))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
