"""One model's page: its scores, what nothing would give, and what may not be read from them.

:func:`flags` holds the rules, which were fixed before any page was looked at. :func:`profile` and
:func:`compare` ask, score, judge by them, and write the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from .. import __version__
from ..asking.answers import check_columns
from ..asking.ask import ask
from ..asking.population import population, population_table, readable_names, untouched_bases
from ..exceptions import ParameterError, RespondentError
from ..measures.intervals import mean_interval, scale_intervals
from ..measures.norms import compare_norms, norm_table
from ..measures.nulls import null_answers
from ..measures.reliability import alpha
from ..measures.scoring import item_scores, keyed_items, pss
from ..measures.styles import balanced_pairs, response_styles
from ..measures.trends import monotony
from ..measures.validity import term_silhouettes
from ..models.packed import SMOLLM2
from ..models.sources import find, read_json
from ..modes import identify
from ..paths import data_dir
from ..questionnaires import Questionnaire, Scale, load_questionnaires
from ..questionnaires.prompts import prompts
from .pages import checked_path, page, paragraph, strip, table

QUESTIONNAIRES = ("gad7", "phq9", "soc13")
"""What is asked if nothing is named: the questionnaires of the first chapters."""
HEADS, DEALS = 99, 999
"""Random heads that a model is compared with, and deals of its answers to items."""
REFERENCE = "profile.parquet"
_CHANCE, _AGREE, _RIGHT, _COMMON, _YES = 0.05, 0.7, 0.5, 0.8, 1 / 3
_TO_PROMPTS = ("nli", "mlm", "causal", "nsp", "acceptability")
_NO_NORMS = (
    "There are no norms beside these scores. A norm is the distribution of people's sums of ticks; "
    "a score by entailment is a mean weight of words, on another scale and of another thing, so "
    "that the one cannot be set against the other. Questionnaires with norms have them in modes "
    "that tick an option (--mode options, chat)."
)


def flags(
    answers: pd.DataFrame,
    questionnaire: Questionnaire,
    nulls: pd.DataFrame | None = None,
    others: pd.DataFrame | None = None,
    accuracy: tuple[float, float, float] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """What speaks against reading one respondent's scores, by rules that are the same for all.

    Parameters
    ----------
    answers : DataFrame
        Of one respondent to one questionnaire, as :func:`psychometrics.asking.ask` gives them.
    questionnaire : Questionnaire
        With scales.
    nulls : DataFrame, optional
        Answers of null respondents to the same prompts; needed for answers to prompts.
    others : DataFrame, optional
        Item scores of a population, as :func:`psychometrics.measures.scoring.item_scores` gives
        them.
    accuracy : tuple of float, optional
        Share of held-out pairs that are answered rightly, with its 95 % interval.
    seed : int
        Of the deals of answers to items.

    Returns
    -------
    DataFrame
        ``scale`` (empty where it is about all of them), ``check``, ``mark`` (✗ forbids to read the
        score, ! is a reservation, ✓ none, – could not be tested), ``words`` and the ``value``
        behind them.

    Raises
    ------
    ParameterError
        The answers are of several respondents, or nulls are lacking.

    Notes
    -----
    The rules. Answers to prompts:

    - **terms** ✗ The silhouette of source against inverse terms, a mean over the scale's items, is
      no larger than in 95 % of random heads: with *k* of *n* heads as large or larger,
      (k + 1) / (n + 1) is above .05. Of all evidence this alone told trained respondents from
      random heads, so it alone forbids to read a score.
    - **trend** ! Source and inverse terms do not run apart over the intensifiers more orderly than
      in 95 % of random heads, by the same count. The statistic is half the difference of their
      Spearman correlations with the weights.
    - **agreeing** ! What source and inverse terms are given alike, before they are set against each
      other, is larger than what the one is given against the other.
    - **alpha** ! Over the population, the lower end of the interval of alpha is below .70, or the
      random heads' alpha is not below it.
    - **accuracy** ! The lower end of the interval of its accuracy at inference is below .50, where
      guessing gives .33.

    Answers to items:

    - **content** ✗ Answers within scales, turned by their keys, are no more alike than in 95 % of
      999 deals of the same answers to other items, counted in the same way; or all answers are the
      same. Scales whose items are all keyed alike and that stand alone cannot be tested so.
    - **commonest** ! One option makes up 80 % of the answers or more.
    - **acquiescence** ! Agreement whatever the item's key is a third of the way to the end, or
      more, of the range from full disagreement (-1) to full agreement (+1).
    - **answered** ! An item was refused, not readable or not answered.

    A score with ✗ is not to be interpreted; one with ! is with reservations. No flag is no proof
    that a score measures what its name says.

    References
    ----------
    Reuben et al. (2024), section 3.3; Rousseeuw (1987); Phipson and Smyth (2010) for the count.

    Examples
    --------
    >>> challenges = load_questionnaire("challenges")
    >>> drawn = null_answers("challenges", "noise", respondents=20)
    >>> first = drawn["respondent_id"] == drawn["respondent_id"].iloc[0]
    >>> found = flags(drawn[first], challenges, drawn[~first])
    >>> found["check"].tolist()
    ['terms', 'trend', 'agreeing']
    """
    check_columns(answers, ["respondent_id"])
    if answers["respondent_id"].nunique() != 1:
        raise ParameterError("Flags are of one respondent's answers; choose one.")
    if "term" not in answers:
        rows = _item_flags(answers, questionnaire, seed)
    elif nulls is None:
        raise ParameterError("Answers to prompts are judged beside null respondents; give some.")
    else:
        rows = _prompt_flags(answers, questionnaire, nulls, others, accuracy)
    return pd.DataFrame(rows, columns=["scale", "check", "mark", "words", "value"])


def assess(
    model: str | Path,
    questionnaires: str | Path | Questionnaire | Iterable = QUESTIONNAIRES,
    mode: str = "nli",
    against: str | None = "default",
    store: str | Path | None = None,
    dtype: str | None = None,
    progress: bool = False,
    base: str | Path | None = None,
    **conditions: object,
) -> dict[str, pd.DataFrame]:
    """Ask a model, score it, and set the scores beside others, null respondents and norms.

    Parameters
    ----------
    model : str or Path
        A member of the embedded population, a folder, a hub id; for chat a model's name at the
        endpoint.
    questionnaires : str, Path or Questionnaire, or several
        With scales.
    mode, store, dtype, progress, **conditions
        As in :func:`psychometrics.asking.ask`.
    against : str, optional
        Respondents that stand behind the model in the figures, asked in the same way:
        ``"embedded"``, or names. By default the embedded population in mode ``nli``, whose scores
        on the book's questionnaires come with it, and nobody in the others. None is nobody.
    base : str or Path, optional
        The untouched model that this one was trained from, a folder or a hub id; its random heads
        judge the answers to prompts. By default that of a member, or what the manifest of a model
        trained here says. Where that is not known, heads on the embedded encoder are shown and
        decide nothing.

    Returns
    -------
    dict of DataFrame
        ``scores``: ``questionnaire, scale, title, score, low, high`` (over items), ``n`` (items),
        ``place`` among the others, ``mark`` and ``verdict``; ``flags``, as :func:`flags` gives
        them, with ``questionnaire``; ``others`` and ``nulls``: ``questionnaire, scale, who,
        score``; ``norms``, of answers to items; ``items`` and ``null_items``, item scores of the
        model and the null respondents; ``asked``: ``what, how``.

    Raises
    ------
    RespondentError
        The model cannot answer.
    ParameterError, QuestionnaireError
        A questionnaire, a mode or a condition is not usable.

    Examples
    --------
    >>> found = assess("minilm-mnli-l3-s16", "challenges", against=None, store="memory://doctest")
    >>> found["scores"]["scale"].tolist()
    ['challenges']
    """
    loaded = _loaded(questionnaires)
    who = identify(model, mode, None if dtype == "auto" else dtype, **conditions)
    for questionnaire in loaded:
        if mode not in _TO_PROMPTS and not all(map(questionnaire.choices, questionnaire.items)):
            raise ParameterError(
                f"{questionnaire.id} has no options to tick, which mode '{mode}' needs: name other "
                "questionnaires."
            )
    answers = ask(loaded, [model], store, mode, dtype, progress, **conditions)
    summary = answers.attrs["summary"]
    to_prompts = "term" in answers
    if "option" in answers:
        raise ParameterError("choose=none gives probabilities, no answers to score: leave it out.")
    base = _base_of(str(model), base) if to_prompts else {}
    drawn = None
    if to_prompts:
        stands = {"base": base["base"], "layers": base["layers"]}
        drawn = null_answers(loaded, "random-heads", HEADS, **stands)
    chosen = ("embedded" if mode == "nli" else None) if against == "default" else against
    how = {"store": store, "mode": mode, "dtype": dtype, "progress": progress, **conditions}
    others = _others(chosen, who["respondent_id"], loaded, **how)
    kinds = ("scores", "flags", "others", "nulls", "null_items", "norms", "items")
    parts = {name: [] for name in kinds}
    for questionnaire in loaded:
        own = answers[answers["questionnaire"] == questionnaire.id]
        beside = others[others["questionnaire"] == questionnaire.id] if len(others) else others
        null = None if drawn is None else drawn[drawn["questionnaire"] == questionnaire.id]
        found = flags(own, questionnaire, null, beside if len(beside) else None, _accuracy(who))
        if not base.get("own", True):
            terms = found["check"].isin(["terms", "trend"])
            found.loc[terms, "words"] = _STRANGE + found.loc[terms, "words"]
            found.loc[terms, "mark"] = "–"
        items = _scored(own)
        dealt = _scored(null) if to_prompts else _dealt_scores(items, questionnaire)
        parts["flags"].append(found.assign(questionnaire=questionnaire.id))
        parts["items"].append(items)
        parts["null_items"].append(dealt)
        for scale in questionnaire.scales:
            size = len(scale.items) if scale.mode == "sum" and not to_prompts else 1
            own_score = scale_intervals(items, questionnaire, scale.id).iloc[0]
            clouds = {
                "others": _cloud(beside, questionnaire, scale, size),
                "nulls": _cloud(dealt, questionnaire, scale, size),
            }
            for name, cloud in clouds.items():
                parts[name].append(cloud)
            mark, verdict = _verdict(found, scale, to_prompts)
            n, of = int(own_score["n"]), len(scale.items)
            whole = n == of  # a score with an item missing is no score
            values = own_score[["score", "low", "high"]] * (size if whole else np.nan)
            if not to_prompts:  # no other items could bring it beyond its ends
                values = values.clip(*questionnaire.span(scale))
            row = {"questionnaire": questionnaire.id, "scale": scale.id, "title": scale.title}
            row |= values.to_dict() | {"n": n, "place": _place(values["score"], clouds["others"])}
            if not whole:
                mark, verdict = "✗", f"no score: {n} of {of} items answered"
            parts["scores"].append(row | {"mark": mark, "verdict": verdict})
        if not to_prompts and questionnaire.norms:
            parts["norms"].append(_beside_norms(parts["scores"], questionnaire, who))
    tables = {
        "scores": pd.DataFrame(parts.pop("scores")),
        "asked": _how(who, loaded, answers, summary, conditions, base, chosen, others),
    }
    for name, frames in parts.items():
        tables[name] = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    return tables


def profile(
    model: str | Path,
    path: str | Path,
    questionnaires: str | Path | Questionnaire | Iterable = QUESTIONNAIRES,
    **how: object,
) -> pd.DataFrame:
    """Write the page of one model.

    Parameters
    ----------
    model, questionnaires, **how
        As in :func:`assess`.
    path : str or Path
        Ends in .html or .pdf.

    Returns
    -------
    DataFrame
        The ``scores`` of :func:`assess`.

    Raises
    ------
    ParameterError
        The page cannot be written, which is found out before anything is asked.
    RespondentError, QuestionnaireError
        As in :func:`assess`.

    Examples
    --------
    >>> profile("minilm-mnli-l3-s16", "profile.txt")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: profile.txt: end the page's name in .html or .pdf.
    """
    path = checked_path(path)
    loaded = _loaded(questionnaires)
    found = assess(model, loaded, **how)
    name = _short(model)
    sections = [("Verdicts", [_verdict_list(found, loaded), paragraph(_READ, note=True)])]
    for questionnaire in loaded:
        sections.append((questionnaire.short_title, _blocks(questionnaire, {name: found})))
    sections += _closing([found["asked"]], [name], "prompts" if _by_prompts(found) else "items")
    known = readable_names([str(model)])[str(model)]
    lead = f"{known}. " if known != name else ""
    lead += "What questionnaires find in it, beside what they find in nothing."
    page(f"Profile of {name}", sections, path, lead)
    return found["scores"]


def compare(
    models: Sequence[str | Path],
    path: str | Path,
    questionnaires: str | Path | Questionnaire | Iterable = QUESTIONNAIRES,
    **how: object,
) -> pd.DataFrame:
    """Write a page with several models side by side, and how far they differ from the first.

    Parameters
    ----------
    models : sequence of str or Path
        Two or more.
    path : str or Path
        Ends in .html or .pdf.
    questionnaires, **how
        As in :func:`assess`.

    Returns
    -------
    DataFrame
        One row per scale and model after the first: ``questionnaire, scale, first, second``;
        ``difference`` of the second from the first, with its 95 % interval ``low, high``, paired
        over the n items; ``null``, of answers to prompts the share of pairs of random heads whose
        interval leaves out 0, too. ``attrs["failed"]`` names models that could not answer, and why.

    Raises
    ------
    ParameterError
        There are fewer than two models, or the page cannot be written.
    RespondentError
        Fewer than two can answer.

    Examples
    --------
    >>> compare(["minilm-mnli-l3-s16"], "compare.html")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.ParameterError: Name at least two models to compare.
    """
    path = checked_path(path)
    names = [_short(model) for model in models]
    if len(names) < 2:
        raise ParameterError("Name at least two models to compare.")
    if twice := {name for name in names if names.count(name) > 1}:
        raise ParameterError(f"Two models are called '{min(twice)}': keep one, or rename a folder.")
    loaded = _loaded(questionnaires)
    found, failed = {}, {}
    for name, model in zip(names, models, strict=True):
        try:
            found[name] = assess(model, loaded, **how)
        except RespondentError as error:
            failed[name] = str(error)
    if len(found) < 2:
        raise RespondentError(f"Fewer than two can answer: {next(iter(failed.values()))}")
    rows = _differences(found, loaded)
    sections = [("Verdicts", [_compared_verdicts(found, loaded)])]
    if failed:
        said = [f"{name} could not be asked: {reason}" for name, reason in failed.items()]
        sections.insert(0, ("Not compared", [paragraph(text) for text in said]))
    for questionnaire in loaded:
        own = rows[rows["questionnaire"] == questionnaire.id]
        blocks = _blocks(questionnaire, found)
        blocks.insert(1, _difference_table(own, questionnaire))
        sections.append((questionnaire.short_title, blocks))
    one = next(iter(found.values()))
    asked = [tables["asked"] for tables in found.values()]
    sections += _closing(asked, list(found), "prompts" if _by_prompts(one) else "items")
    lead = "The same questions to each; differences are taken item by item from the first."
    page(" and ".join(found), sections, path, lead)
    rows.attrs["failed"] = failed
    return rows


def _loaded(questionnaires) -> list[Questionnaire]:
    loaded = load_questionnaires(questionnaires)
    for questionnaire in loaded:
        if not questionnaire.scales:
            raise ParameterError(
                f"{questionnaire.id} has categories, not scales, and no profile: use "
                "`psychometrics scores --plot`."
            )
    if not loaded:
        raise ParameterError("There is no questionnaire to ask: name at least one.")
    return loaded


def _scored(answers: pd.DataFrame) -> pd.DataFrame:
    """Item scores of each respondent, over runs; missing where an item has no answer."""
    items = item_scores(answers)
    if "run" not in items:
        return items
    keys = ["respondent_id", "questionnaire", "mode", "item_id"]
    return items.groupby(keys, sort=False)["score"].mean().reset_index().assign(run=1)


def _prompt_flags(answers, questionnaire, nulls, others, accuracy) -> list[tuple]:
    shares = {"own": pss(answers), "null": pss(nulls)}
    table = {name: term_silhouettes(part) for name, part in shares.items()}
    rows = []
    for scale in questionnaire.scales:
        own, null = (
            part[part["item_id"].isin(scale.items)].groupby("respondent_id")["silhouette"].mean()
            for part in table.values()
        )
        value, drawn = own.iloc[0], null.dropna().to_numpy()
        if np.isnan(value) or not len(drawn):
            words = "the terms of its items are of one kind, so that they cannot be set apart."
            rows.append((scale.id, "terms", "–", words, value))
            continue
        far = int((drawn >= value).sum())
        beside = (
            f"silhouette of source against inverse terms {_number(value)}; random heads have "
            f"{_number(np.median(drawn))} in the median, and {far} of {len(drawn)} have as much."
        )
        told = _as_far(value, drawn) <= _CHANCE
        words = "told from random heads" if told else "indistinguishable from a random head"
        rows.append((scale.id, "terms", "✓" if told else "✗", f"{words}: {beside}", value))
    apart = {
        name: ((own := monotony(part))["source"] - own["inverse"]).abs() / 2
        for name, part in shares.items()
    }
    rhos = monotony(shares["own"]).iloc[0]
    value, drawn = apart["own"].iloc[0], apart["null"].dropna().to_numpy()
    if np.isfinite(value) and len(drawn):
        far = int((drawn >= value - 1e-12).sum())
        told = _as_far(value - 1e-12, drawn) <= _CHANCE
        words = (
            f"over the intensifiers, source terms run at a rank correlation of "
            f"{_number(rhos['source'])} and inverse terms at {_number(rhos['inverse'])}; {far} of "
            f"{len(drawn)} random heads are as orderly."
        )
        rows.append(("", "trend", "✓" if told else "!", words, value))
    elif len(drawn):
        words = "once normalised, its answers do not run over the intensifiers at all."
        rows.append(("", "trend", "!", words, value))
    pair = {
        name: balanced_pairs(part, [questionnaire])
        for name, part in (("own", answers), ("null", nulls))
        if (questionnaire_is_balanced := set(part["polarity"]) == {1, -1})
    }
    if pair and questionnaire_is_balanced:
        size = {name: part[["content", "agreeing"]].abs() for name, part in pair.items()}
        own = size["own"].iloc[0]
        drawn = (size["null"]["agreeing"] > size["null"]["content"]).mean()
        more = own["agreeing"] > own["content"]
        words = (
            f"what both kinds of terms are given alike ({own['agreeing']:.3f}) is "
            f"{'larger' if more else 'no larger'} than what the one is given against the other "
            f"({own['content']:.3f}); it is larger in {drawn:.0%} of random heads."
        )
        rows.append(("", "agreeing", "!" if more else "✓", words, own["agreeing"]))
    if others is not None and others["respondent_id"].nunique() > 2:
        rows.append(_alpha_flag(questionnaire, others, _scored(nulls)))
    if accuracy is not None:
        value, low, high = accuracy
        words = (
            f"at inference it is right on {value:.0%} of held-out pairs (95 % interval {low:.0%} "
            f"to {high:.0%}; guessing 33%)."
        )
        rows.append(("", "accuracy", "!" if low < _RIGHT else "✓", words, value))
    return [row for row in rows if row is not None]


def _alpha_flag(questionnaire, others, nulls) -> tuple | None:
    """Alpha of the first scale over the population, beside that over random heads."""
    scale = questionnaire.scales[0]
    if len(scale.items) < 2:
        return None
    found = alpha(keyed_items(others, questionnaire, scale))
    null = alpha(keyed_items(nulls, questionnaire, scale))["alpha"]
    if not np.isfinite(found["low"]):
        return None
    fine = found["low"] >= _AGREE and not null >= found["low"]
    words = (
        f"over {found['n']:.0f} others, alpha of the {len(scale.items)} items is "
        f"{_number(found['alpha'])} (95 % interval {_number(found['low'])} to "
        f"{_number(found['high'])}); over random heads it is {_number(null)}"
        + (", so that agreement of items needs no ability." if null >= found["low"] else ".")
    )
    return ("", "alpha", "✓" if fine else "!", words, found["alpha"])


def _item_flags(answers: pd.DataFrame, questionnaire: Questionnaire, seed: int) -> list[tuple]:
    items = _scored(answers).set_index("item_id")["score"]
    styles = response_styles(answers, questionnaire)
    common, yes = styles["commonest"].mean(), styles["acquiescence"].mean()
    answered = int((answers["status"] == "ok").sum())
    rows = []
    if items.notna().sum() > 1:
        rows.append(("", *_content_flag(items.dropna(), questionnaire, seed)))
    if np.isfinite(common):
        words = f"the commonest answer makes up {common:.0%} of all."
        rows.append(("", "commonest", "!" if common >= _COMMON else "✓", words, common))
    if np.isfinite(yes):
        side = "agrees" if yes > 0 else "disagrees"
        words = f"whatever an item's key, it {side} at {abs(yes):.2f} of the way to the end."
        rows.append(("", "acquiescence", "!" if abs(yes) >= _YES else "✓", words, yes))
    words = f"{answered} of {len(answers)} answers could be read."
    mark = "✓" if answered == len(answers) else "!"
    return [*rows, ("", "answered", mark, words, answered / len(answers))]


def _content_flag(items: pd.Series, questionnaire: Questionnaire, seed: int) -> tuple:
    """Whether keyed answers are more alike within scales than the same answers dealt out."""
    ends = {
        name: [o.value for o in questionnaire.choices(questionnaire.item(name))]
        for name in items.index
    }
    shares = pd.Series(
        {name: (v - min(ends[name])) / np.ptp(ends[name]) for name, v in items.items()}
    )
    rng = np.random.default_rng(seed)
    dealt = rng.permuted(np.tile(shares.to_numpy(), (DEALS, 1)), axis=1)
    values = np.vstack([shares.to_numpy()[None], dealt])
    spread = []
    for scale in _own_scales(questionnaire):
        keys = questionnaire.keys(scale)
        places = [i for i, name in enumerate(shares.index) if name in keys]
        if len(places) > 1:
            signs = np.array([keys[shares.index[i]] for i in places])
            part = np.where(signs > 0, values[:, places], 1 - values[:, places])
            spread.append(((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    total = np.sum(spread, axis=0) if spread else np.zeros(1)
    if np.ptp(shares) < 1e-9:
        return "content", "✗", "it gives the same answer to every item.", 0.0
    if np.ptp(total) < 1e-9:
        words = "cannot be tested: the items are one scale and keyed alike."
        return "content", "–", words, np.nan
    far = int((total[1:] <= total[0] + 1e-12).sum())
    told = _as_far(-total[0] - 1e-12, -total[1:]) <= _CHANCE
    words = (
        "answers of a scale are more alike than the same answers dealt out at random"
        if told
        else "indistinguishable from the same answers dealt out to the items at random"
    )
    words += f": {far} of {DEALS} deals are as much alike within scales."
    return "content", "✓" if told else "✗", words, float(total[0])


def _own_scales(questionnaire: Questionnaire) -> list[Scale]:
    """Scales that are no whole of others: the finest that there are."""
    parents = {scale.parent for scale in questionnaire.scales}
    return [scale for scale in questionnaire.scales if scale.id not in parents]


def _as_far(value: float, drawn: np.ndarray) -> float:
    return ((drawn >= value).sum() + 1) / (len(drawn) + 1)


def _verdict(found: pd.DataFrame, scale: Scale, to_prompts: bool) -> tuple[str, str]:
    own = found[found["scale"].isin(["", scale.id])]
    marks = own.set_index("check")["mark"]
    if (marks == "✗").any():
        said = (
            "indistinguishable from a random head"
            if to_prompts
            else "the same answer to every item"
            if "same answer" in own.loc[own["mark"] == "✗", "words"].iloc[0][:28]
            else "indistinguishable from answers dealt out at random"
        )
        return "✗", f"{said}; do not interpret"
    reserved = marks.index[marks == "!"].tolist()
    if marks.get("terms", marks.get("content")) == "–":
        reserved.append("it was not told from a null")
    if reserved:
        return "!", f"with reservations: {', '.join(reserved)}"
    return "✓", "no flag, which is no proof"


def _base_of(model: str, named: str | Path | None = None) -> dict:
    """The untouched base that a model's random heads stand on, and what to say of it."""
    members = set(population_table()["respondent_id"])
    if named is not None:
        find(str(named))
        said = f"on the untouched base that was named, {_short(named)}"
        return {"base": str(named), "layers": None, "own": True, "said": said}
    if model == SMOLLM2:
        return {"base": SMOLLM2, "layers": None, "own": True,
                "said": "on the model itself, SmolLM2-135M"}  # fmt: skip
    if model in members:
        own = untouched_bases([model])
        base, layers = own["base"][0], own["layers"][0]
        said = "SmolLM2-135M" if base == SMOLLM2 else "MiniLM"
        said += f" with {layers} layers" if layers else ""
        said = f"on its own untouched base, {said}"
        return {"base": base, "layers": layers, "own": True, "said": said}
    folder = Path(model).expanduser()
    if (written := folder / "manifest.json").is_file():  # as training here writes it
        base = str(read_json(model, written).get("base", ""))
        if base == "minilm":
            return {"base": "embedded", "layers": None, "own": True,
                    "said": "on its own base, MiniLM"}  # fmt: skip
        try:
            find(base)
            said = f"on its own untouched base, {_short(base)}"
            return {"base": base, "layers": None, "own": True, "said": said}
        except RespondentError:
            pass
    return {
        "base": "embedded",
        "layers": None,
        "own": False,
        "said": "on MiniLM, since the untouched base of this model is not known here; they decide "
        "nothing (name the base by --base)",
    }


def _accuracy(who: dict) -> tuple[float, float, float] | None:
    if who["mode"] != "nli":
        return None
    known = population_table().set_index("respondent_id")
    if who.get("source") != "embedded" or who["respondent_id"] not in known.index:
        return None
    return tuple(known.loc[who["respondent_id"], ["accuracy", "low", "high"]])


def _others(against: str | None, own: str, loaded: list, mode: str, **how) -> pd.DataFrame:
    """Item scores of those behind the model, from the table that comes with the book or asked."""
    if against is None:
        return pd.DataFrame()
    names = [name for name in population(against) if _short(name) != own]
    parts = []
    for questionnaire in loaded:
        known = _reference(questionnaire) if mode == "nli" else pd.DataFrame()
        if set(names) <= set(known.get("respondent_id", ())):
            parts.append(known[known["respondent_id"].isin(names)])
        elif names:
            parts.append(_scored(ask(questionnaire, names, mode=mode, **how)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _reference(questionnaire: Questionnaire) -> pd.DataFrame:
    """The embedded population's item scores, if they are of these very prompts."""
    path = data_dir() / REFERENCE
    if not path.is_file():
        return pd.DataFrame()
    table = pd.read_parquet(path)
    own = table[table["questionnaire"] == questionnaire.id]
    if own.empty or own["prompts"].iloc[0] != prompts_digest(questionnaire):
        return pd.DataFrame()
    return own.drop(columns="prompts")


def prompts_digest(questionnaire: Questionnaire) -> str:
    """Digest of a questionnaire's prompts and weights, by which shipped scores are known as its.

    Parameters
    ----------
    questionnaire : Questionnaire

    Returns
    -------
    str

    Examples
    --------
    >>> len(prompts_digest(load_questionnaire("challenges")))
    16
    """
    import hashlib

    table = prompts(questionnaire)
    return hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()[:16]


def _cloud(items: pd.DataFrame, questionnaire, scale: Scale, size: int) -> pd.DataFrame:
    columns = ["questionnaire", "scale", "who", "score"]
    if not len(items):
        return pd.DataFrame(columns=columns)
    keyed = keyed_items(items, questionnaire, scale)
    frame = pd.DataFrame(
        {
            "who": keyed.index.get_level_values("respondent_id"),
            "score": size * keyed.mean(axis=1, skipna=False).to_numpy(),
        }
    )
    return frame.assign(questionnaire=questionnaire.id, scale=scale.id)[columns]


def _dealt_scores(items: pd.DataFrame, questionnaire: Questionnaire) -> pd.DataFrame:
    """Item scores of as many respondents as random heads, who give the same answers by chance."""
    own = items.dropna(subset="score")
    rng = np.random.default_rng(0)
    parts = [
        own.assign(respondent_id=f"deal {n + 1}", score=rng.permutation(own["score"].to_numpy()))
        for n in range(HEADS)
    ]
    ranges = {
        name: tuple(o.value for o in questionnaire.choices(questionnaire.item(name)))
        for name in own["item_id"]
    }
    if len(set(ranges.values())) > 1 or len(own) < len(items):  # answers that do not fit elsewhere
        return pd.DataFrame()
    return pd.concat(parts, ignore_index=True)


def _place(score: float, others: pd.DataFrame) -> float:
    """Share of the others that score lower."""
    known = others["score"].dropna()
    return float((known < score).mean()) if len(known) and np.isfinite(score) else np.nan


def _beside_norms(scores: list[dict], questionnaire: Questionnaire, who: dict) -> pd.DataFrame:
    """Each scale as one person's score among those of the norms."""
    own = [row for row in scores if row["questionnaire"] == questionnaire.id]
    norms = norm_table(questionnaire)
    for row in questionnaire.scales:
        # norms of sums, where the scale's score is a mean
        sums = (norms["scale"] == row.id) & norms["group"].str.contains("sums of ticks")
        if row.mode == "mean":
            norms.loc[sums, ["norm_mean", "norm_sd"]] /= len(row.items)
            norms.loc[sums, "group"] += ", here as means"
    single = pd.DataFrame(own)[["questionnaire", "scale", "score"]].dropna()
    if single.empty or not set(single["scale"]) & set(norms["scale"]):
        return pd.DataFrame()
    single = single.rename(columns={"score": "mean"})
    single = single.assign(respondent_id=who["respondent_id"], sd=np.nan, n=1)
    return compare_norms(single, norms)


def _how(who, loaded, answers, summary, conditions, base, against, others) -> pd.DataFrame:
    per = answers.groupby("questionnaire", sort=False).size()
    titles = {q.id: q.short_title for q in loaded}
    kind = "prompts" if "term" in answers else "answers"
    asked = "; ".join(f"{titles[name]}: {n:,} {kind}" for name, n in per.items())
    rows = {
        "respondent": who["respondent_id"],
        "model": f"{who.get('model', '')} ({who.get('source', 'unknown source')})",
        "revision": str(who.get("revision") or "not known"),
        "mode": who["mode"],
        "conditions": ", ".join(f"{k}={v}" for k, v in conditions.items()) or "the mode's own",
        "asked": asked,
        "precision": str(who.get("dtype") or "the endpoint's"),
        "answers": f"{summary['asked']:,} asked now, {summary['from_store']:,} from the store, in "
        f"{summary['seconds']:.1f} s",
        "refused or unreadable": f"{summary['unanswered']:,}",
        "package": f"psychometrics {__version__}",
    }
    if base:
        rows["null respondents"] = f"{HEADS} random heads {base['said']}"
    if len(others):
        rows["others"] = f"{others['respondent_id'].nunique()} respondents of '{against}'"
    return pd.DataFrame({"what": list(rows), "how": list(rows.values())})


def _by_prompts(found: dict) -> bool:
    return bool((found["flags"]["check"] == "terms").any())


def _verdict_list(found: dict, loaded: list[Questionnaire]) -> str:
    lines = []
    for title, row in _titled(found["scores"], loaded):
        lines.append((row.mark, f"{title}: {row.verdict}."))
    return _marked(lines)


def _titled(scores: pd.DataFrame, loaded: list[Questionnaire]):
    """Each row of the scores with a title that can be read alone."""
    for row in scores.itertuples():
        questionnaire = next(q for q in loaded if q.id == row.questionnaire)
        whole = len(questionnaire.scales) == 1 or (
            row.scale == questionnaire.scales[0].id
            and any(scale.parent == row.scale for scale in questionnaire.scales)
        )
        yield (
            questionnaire.short_title if whole else f"{questionnaire.short_title}, {row.title}",
            row,
        )


def _marked(lines: Iterable[tuple[str, str]]) -> str:
    kinds = {"✗": "bad", "!": "fair", "✓": "good", "–": ""}
    names = {"✗": "forbids: ", "!": "reservation: ", "✓": "fine: ", "–": "not tested: "}
    return (
        "<ul class='said'>"
        + "".join(
            f"<li><span class='mark {kinds[mark]}' aria-hidden='true'>{mark}</span>"
            f"<span class='unseen'>{names[mark]}</span>{escape(text)}</li>"
            for mark, text in lines
        )
        + "</ul>"
    )


def _blocks(questionnaire: Questionnaire, found: dict[str, dict]) -> list[str]:
    """Figure, table and flags of one questionnaire, for one model or several."""
    points, clouds = [], {"nulls": [], "others": []}
    for name, tables in found.items():
        own = tables["scores"]
        own = own[own["questionnaire"] == questionnaire.id]
        points.append(own.assign(who=name))
        for kind, parts in clouds.items():
            part = tables[kind]
            if len(part):
                parts.append(part[part["questionnaire"] == questionnaire.id])
    points = pd.concat(points).rename(columns={"title": "label"})
    titles = {scale.id: scale.title for scale in questionnaire.scales}
    one = next(iter(found.values()))
    to_prompts = _by_prompts(one)
    shown = {"nulls": "random heads" if to_prompts else "the same answers dealt out at random",
             "others": "others"}  # fmt: skip
    behind = {}
    for kind, parts in clouds.items():
        if parts and len(cloud := pd.concat(parts).drop_duplicates(["scale", "who"])):
            behind[shown[kind]] = cloud.assign(label=cloud["scale"].map(titles))
    blocks = []
    unit = "mean item score (weight of words)" if to_prompts else "score"
    if points["score"].notna().any():
        reach = ", ".join(
            f"{row.label} {row.score:.3f} ({row.low:.3f} to {row.high:.3f})"
            for row in points.itertuples()
            if np.isfinite(row.score)
        )
        blocks.append(
            strip(
                points, behind,
                f"Scores of {questionnaire.short_title} with their 95 % intervals over items"
                + (f", before {' and '.join(behind)}." if behind else "."),
                f"Scores with intervals: {reach}.",
                unit, 0.0 if to_prompts else None,
            )
        )  # fmt: skip
    if len(found) > 1:
        shown = points[["label", "who", "score", "low", "high", "mark", "verdict"]]
        blocks.append(_score_table(shown.rename(columns={"who": "model"}), questionnaire))
        for name, tables in found.items():
            blocks.append(f"<h3>{escape(name)}</h3>")
            blocks.append(_flag_list(tables, questionnaire))
        return blocks
    extra = ["place"] if points["place"].notna().any() else []
    shown = points[["label", "score", "low", "high", "n", *extra, "mark", "verdict"]]
    blocks.append(_score_table(shown.rename(columns={"n": "items"}), questionnaire))
    blocks.append(_flag_list(one, questionnaire))
    if not to_prompts:
        blocks.append(_norm_block(one, questionnaire))
    return blocks


def _score_table(points: pd.DataFrame, questionnaire: Questionnaire) -> str:
    frame = points.rename(
        columns={"label": "scale", "place": "others below", "low": "from", "high": "to"}
    )
    frame["verdict"] = frame.pop("mark") + " " + frame["verdict"]
    formats = dict.fromkeys(["score", "from", "to"], "{:.3f}") | {"others below": "{:.0%}"}
    caption = f"Scores of {questionnaire.short_title}, each with its 95 % interval over items."
    return table(frame, caption, formats)


def _flag_list(found: dict, questionnaire: Questionnaire) -> str:
    own = found["flags"]
    own = own[own["questionnaire"] == questionnaire.id]
    titles = {scale.id: scale.title for scale in questionnaire.scales}
    several = len(questionnaire.scales) > 1
    return _marked(
        (row.mark, f"{row.check}{f' of {titles[row.scale]}' if row.scale and several else ''}: "
                   f"{row.words}")
        for row in own.itertuples()
    )  # fmt: skip


def _norm_block(found: dict, questionnaire: Questionnaire) -> str:
    own = found["norms"]
    own = own[own["questionnaire"] == questionnaire.id] if len(own) else own
    if not len(own):
        return paragraph(f"No norms of {questionnaire.short_title} come with the book.", note=True)
    titles = {scale.id: scale.title for scale in questionnaire.scales}
    frame = pd.DataFrame(
        {
            "scale": own["scale"].map(titles),
            "people": own["group"],
            "score": own["mean"],
            "their mean": own["norm_mean"],
            "their SD": own["norm_sd"],
            "n": own["norm_n"].astype(int),
            "distance (SD)": own["delta"],
            "p": own["p"],
        }
    )
    text = (
        "The score is set among people as one more person's: p is the share of such people that "
        "would be as far from their mean. A model near a norm is no such person."
    )
    caption = f"{questionnaire.short_title} beside people's norms."
    return table(frame, caption, {"n": "{:.0f}", "p": "{:.3f}"}) + paragraph(text, note=True)


def _differences(found: dict[str, dict], loaded: list[Questionnaire]) -> pd.DataFrame:
    """Each model against the first, over the items that both answered."""
    first, *rest = found
    rows = []
    for questionnaire in loaded:
        for scale in questionnaire.scales:
            keyed = {
                name: keyed_items(
                    tables["items"].query("questionnaire == @questionnaire.id"),
                    questionnaire, scale,
                ).iloc[0]
                for name, tables in found.items()
            }  # fmt: skip
            for name in rest:
                apart = (keyed[name] - keyed[first]).dropna().to_numpy(dtype=float)
                size = len(scale.items) if _sums(found[first], scale) else 1
                row = {"questionnaire": questionnaire.id, "scale": scale.id}
                row |= {"first": first, "second": name, "n": len(apart)}
                row |= dict.fromkeys(("difference", "low", "high"), np.nan)
                if len(apart):
                    low, high = mean_interval(apart)
                    row |= {"difference": size * apart.mean(), "low": size * float(low),
                            "high": size * float(high)}  # fmt: skip
                row["null"] = _null_share(found[first], found[name], questionnaire, scale)
                rows.append(row)
    return pd.DataFrame(rows)


def _null_share(first: dict, second: dict, questionnaire, scale: Scale) -> float:
    """Share of pairs of random heads, one of each, whose paired interval leaves out 0."""
    if not _by_prompts(first):
        return np.nan
    one, two = (
        keyed_items(
            tables["null_items"].query("questionnaire == @questionnaire.id"), questionnaire, scale
        ).to_numpy(dtype=float)
        for tables in (first, second)
    )
    # the next one, as heads of one number are the same where two models have one base
    low, high = mean_interval(one - np.roll(two, 1, axis=0))
    return float(((low > 0) | (high < 0)).mean())


def _sums(found: dict, scale: Scale) -> bool:
    return scale.mode == "sum" and not _by_prompts(found)


def _difference_table(rows: pd.DataFrame, questionnaire: Questionnaire) -> str:
    titles = {scale.id: scale.title for scale in questionnaire.scales}
    frame = rows.assign(scale=rows["scale"].map(titles))
    told = (frame["low"] > 0) | (frame["high"] < 0)
    frame["verdict"] = np.where(
        frame["low"].isna(), "cannot be told",
        np.where(told, "differ", "cannot be told apart"),
    )  # fmt: skip
    columns = {
        "scale": "scale", "second": "model", "difference": "difference", "low": "from",
        "high": "to", "n": "items", "verdict": "verdict", "null": "heads that differ",
    }  # fmt: skip
    frame = frame[list(columns)].rename(columns=columns)
    formats = dict.fromkeys(["difference", "from", "to"], "{:+.3f}")
    caption = (
        f"Differences on {questionnaire.short_title} from {rows['first'].iloc[0]}, with 95 % "
        "intervals paired over items."
    )
    if rows["null"].isna().all():
        return table(frame.drop(columns="heads that differ"), caption, formats)
    told = paragraph(
        "The last column is the share of pairs of random heads whose interval leaves out 0, too: "
        "that two models differ on these items is no evidence that a trait differs.",
        note=True,
    )
    return table(frame, caption, formats | {"heads that differ": "{:.0%}"}) + told


def _compared_verdicts(found: dict[str, dict], loaded: list[Questionnaire]) -> str:
    frame = pd.DataFrame(
        {
            name: {
                title: f"{row.mark} {row.verdict}"
                for title, row in _titled(tables["scores"], loaded)
            }
            for name, tables in found.items()
        }
    )
    frame = frame.rename_axis("scale").reset_index()
    return table(frame, "What may be read from each score, by the rules below.")


def _closing(asked: list[pd.DataFrame], names: list[str], kind: str) -> list[tuple]:
    """The rules, and how it was asked."""
    notes = flags.__doc__.partition("The rules. ")[2].partition("References")[0]
    prompts_part, _, rest = notes.partition("Answers to items:")
    chosen = prompts_part if kind == "prompts" else rest
    rules = re.findall(r"- \*\*(\w+)\*\* (.) (.+?)(?=\n\s*- \*\*|\n\n|\Z)", chosen, re.DOTALL)
    lines = [
        (mark, f"{name}: {' '.join(text.replace('*', '').split())}") for name, mark, text in rules
    ]
    last = " ".join(rest.partition("\n\n    A score")[2].split())
    blocks = [paragraph("Each rule was fixed before any page was looked at, and is the same for "
                        "all models."), _marked(lines), paragraph(f"A score {last}")]  # fmt: skip
    tables = [
        table(part, f"How {name} was asked.") for part, name in zip(asked, names, strict=True)
    ]
    sections = [("The rules", blocks), ("How it was asked", tables)]
    return [("Norms", [paragraph(_NO_NORMS)]), *sections] if kind == "prompts" else sections


def _short(model: str | Path) -> str:
    path = Path(str(model)).expanduser()
    return path.resolve().name if path.is_dir() else str(model)


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


_STRANGE = "not judged, as the random heads stand on another base: "
_READ = (
    "✗ forbids to read the score, ! is a reservation, ✓ is the absence of both. Intervals are over "
    "the items: how far the score would move with other items of the same kind."
)
