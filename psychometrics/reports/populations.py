"""Compare a population's scores and evidence with untrained heads on each model's own base."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from ..asking.ask import ask
from ..asking.population import named_bases, population, readable_names
from ..checks import check_flags, check_numbers
from ..exceptions import PsychometricsError
from ..measures.score_tables import score_table
from ..models.devices import computing_on
from ..modes import identify
from ..nulls.evidence import evidence, evidence_of_draws, jackknife, profiles, reached, resized
from ..nulls.respondents import null_answers
from ..questionnaires import AnyQuestionnaires, Questionnaire
from .assessments import load_with_scales
from .own_base import UntouchedBase, untouched_base
from .rules import FEWEST_RESPONDENTS

SIZES = {"start": None, "quarter": 0.25, "matched": 1.0, "fourfold": 4.0}
"""The sizes of untrained heads, as multiples of a model's size; None keeps the starting values."""
FEWEST_POPULATIONS = 39
"""The fewest populations of heads with which p = 2 / (1 + populations) is at most .05."""
UNJUDGED = "cannot be judged here"
"""The verdict where no heads could be built on a respondent's own base."""
_BASE_UNKNOWN = (
    f"{UNJUDGED}: its untouched base is not known; name it in the population's file or in its "
    "manifest.json"
)
UNKNOWN_BASE = "others"
"""The group of respondents whose untouched base is not known."""
SUMMARIES = ("bases combined", "all models")
"""The entries in place of a base for statistics over several bases."""
_WORDS = "words"  # in place of a size for a decoder's random words, which have their own size
_HEADS_AT_ONCE = 48  # number of heads whose answers are held in memory together
_KINDS = ("source", "inverse", "silhouette")
_COMBINED, _POOLED = SUMMARIES
_TOO_FEW = f"too few models: fewer than {FEWEST_RESPONDENTS} on a base"
_STATISTICS = ["value", "low", "high", "null", "null low", "null high", "p", "verdict"]


def tabulate(
    questionnaires: AnyQuestionnaires = ("gad7", "phq9", "soc13"),
    respondents: str = "embedded",
    standardised: bool = False,
    populations: int = 200,
    seed: int = 1,
    **asking: Any,
) -> dict[str, pd.DataFrame]:
    """Return a population's scores, silhouettes, alphas and correlations, each with its null.

    These are the statistics by which Reuben et al. (2024) validate their questionnaires with 88
    models. The null is an untrained head on each model's own base in the model's place, as decisive
    as the model. A model is a unit within its base, and bases are combined by a mean that is
    weighted by their numbers of models.

    Parameters
    ----------
    questionnaires : str, Path or Questionnaire, or several
        Questionnaires with prompts and scales.
    respondents : str
        A population's file, or what else :func:`psychometrics.asking.population.population` takes.
        A model's untouched base is the one in the file, in the model's ``manifest.json``, or that
        of an embedded member.
    standardised : bool
        Whether to treat all models as one sample, as the paper does: the scores of a scale, and the
        ends of their intervals and nulls, are standardised to mean 0 and standard deviation 1 over
        the models, and statistics over all models are added. Alphas and rank correlations do not
        depend on this unit.
    populations : int
        Number of populations of heads of each size; with fewer than 39 no p value can be .05.
    seed : int
        Seed of the heads.
    **asking
        Settings of :func:`psychometrics.asking.ask`, such as ``store``, ``dtype`` and ``engine``.

    Returns
    -------
    dict of DataFrame
        ``scores``: ``respondent_id, base, questionnaire, scale, score, low, high`` (over ``n``
        items), the null's central 95 % ``null low, null high`` and ``p``; the mean ``silhouette``
        of the scale's items with the same columns; and a ``note`` on what is missing, also for
        models that did not answer.
        ``statistics``: ``statistic`` (silhouette, alpha, correlation), ``scale, other, base,
        models, value`` with its 95 % interval ``low, high`` over models (over bases for three or
        more combined bases), the ``null`` with its central 95 %, ``p``, and the ``verdict`` over
        heads of every size. Alphas and correlations need eight models on a base.

    Raises
    ------
    ParameterError, QuestionnaireError, RespondentError
        As in :func:`psychometrics.asking.ask`; or a questionnaire has no scales.

    References
    ----------
    Reuben et al. (2024), sections 3.3 and 4.2.

    Examples
    --------
    >>> tables = tabulate("challenges", "minilm-mnli-l3-s16", populations=2, progress=False)
    >>> tables["statistics"]["statistic"].tolist()
    ['silhouette', 'alpha']
    """
    check_numbers(populations=populations, seed=seed)
    check_flags(standardised=standardised)
    loaded = load_with_scales(questionnaires)
    answers = ask(loaded, respondents, **asking)
    summary = answers.attrs["summary"]
    answers = answers[~answers["respondent_id"].isin(summary["failed"])]
    answers.attrs["summary"] = summary
    observed = profiles(answers, loaded)
    bases = base_table(observed.index, respondents)
    heads = {}

    for label, members, number in number_heads(bases, populations, seed):
        if label == UNKNOWN_BASE:
            continue
        of_base = answers[answers["respondent_id"].isin(members.index)]
        try:
            with computing_on(asking.get("device")):
                heads[label] = head_profiles(of_base, members, loaded, populations, number)
        except PsychometricsError as error:
            bases.loc[members.index, "note"] = f"{UNJUDGED}: {error}"

    scores = _scores(answers, loaded, observed, bases, heads, standardised)
    failed = pd.Series(summary["failed"], dtype=object).rename_axis("respondent_id")
    failed = ("did not answer everything: " + failed).rename("note").reset_index()
    return {
        "scores": pd.concat([scores, failed], ignore_index=True),
        "statistics": _statistics(loaded, observed, bases, heads, standardised),
    }


def base_table(names: Iterable[str], respondents: str) -> pd.DataFrame:
    """Return each respondent's untouched base, its label, and a note if it is not known.

    Parameters
    ----------
    names : iterable of str
        The ``respondent_id`` of each respondent.
    respondents : str
        As in :func:`psychometrics.asking.population.population`.

    Returns
    -------
    DataFrame
        ``base, layers, wording``, as :func:`psychometrics.null_answers` accepts them, ``label`` and
        ``note`` by respondent.

    Examples
    --------
    >>> base_table(["minilm-snli-l3-s17"], "embedded")["label"].tolist()
    ['MiniLM']
    """
    names = list(names)
    models = {name: name for name in names}
    for model in set(population(respondents)) - set(names):  # folders
        with contextlib.suppress(PsychometricsError):  # it was not asked either
            models[identify(model, "nli")["respondent_id"]] = model

    named = named_bases(respondents)
    rows = {}
    for name in names:
        try:
            base = untouched_base(models[name], named.get(models[name]))
        except PsychometricsError as error:  # the file's base is another model's, or cannot be read
            base = UntouchedBase("embedded", is_own=False)
            note = f"{UNJUDGED}: {error}"
        else:
            note = "" if base.is_own else _BASE_UNKNOWN

        rows[name] = base.reading | {"is_own": base.is_own, "note": note}

    table = pd.DataFrame(rows).T.rename_axis("respondent_id")
    is_own = table["is_own"].astype(bool)
    labels = readable_names(table.loc[is_own, "base"])
    table["label"] = table["base"].map(labels | {"embedded": "MiniLM"}).where(is_own, UNKNOWN_BASE)
    return table[["base", "layers", "wording", "label", "note"]]


def number_heads(
    bases: pd.DataFrame, populations: int, seed: int
) -> Iterator[tuple[str, pd.DataFrame, int]]:
    """Yield each base's label, its respondents and the number of its first head.

    No two bases share the number of a head. Heads take their respondents' bases in turn, by their
    numbers, so the first number is a multiple of the number of respondents.

    Parameters
    ----------
    bases : DataFrame
        The result of :func:`base_table`.
    populations, seed : int

    Examples
    --------
    >>> bases = pd.DataFrame({"label": ["a", "b", "b"]})
    >>> [(label, first) for label, _, first in number_heads(bases, 5, seed=1)]
    [('a', 0), ('b', 6)]
    """
    start = 0
    for label, members in bases.groupby("label", sort=False):
        number = (-(-start // len(members)) + seed - 1) * len(members)
        start = number + populations * len(members)
        yield label, members, number


def head_profiles(
    answers: pd.DataFrame,
    members: pd.DataFrame,
    questionnaires: list[Questionnaire],
    populations: int,
    first: int,
    **how: Any,
) -> dict[str, np.ndarray]:
    """Return the profiles of populations that have an untrained head in each respondent's place.

    Populations are made in parts, whose answers fit into memory.

    Parameters
    ----------
    answers : DataFrame
        The respondents' answers, to whose sizes the heads are rescaled.
    members : DataFrame
        ``base, layers, wording`` of each respondent, in the order of the answers.
    questionnaires : list of Questionnaire
    populations : int
    first : int
        Number of the first head, a multiple of the number of respondents.
    **how
        ``score`` and ``temperature``, as in :func:`psychometrics.nulls.evidence.profiles`.

    Returns
    -------
    dict of ndarray, shape (3, populations, R, items)
        Scores from source and inverse terms, and silhouettes, by size of the heads; also of random
        words for decoders that answer with words.

    Examples
    --------
    >>> from psychometrics import load_questionnaire
    >>> loaded = [load_questionnaire("challenges")]
    >>> members = base_table(["minilm-snli-l3-s17"], "embedded")
    >>> answers = ask(loaded, "minilm-snli-l3-s17", progress=False)
    >>> head_profiles(answers, members, loaded, 2, 0)["matched"].shape
    (3, 2, 1, 4)
    """
    n_models = len(members)
    reads = members[["base", "layers", "wording"]].to_dict("list")
    parts: dict[str, list[np.ndarray]] = {}

    while populations:
        size = min(populations, max(1, _HEADS_AT_ONCE // n_models))
        like = [
            answers.assign(respondent_id=f"{k} " + answers["respondent_id"]) for k in range(size)
        ]
        heads = null_answers(questionnaires, "random-heads", size * n_models, seed=first, **reads)
        tables = {
            name: heads if factor is None else resized(heads, pd.concat(like), factor)
            for name, factor in SIZES.items()
        }
        if members["wording"].notna().all():
            tables[_WORDS] = null_answers(
                questionnaires, "random-words", size * n_models, seed=first, **reads
            )

        for name, table in tables.items():
            scores = profiles(table, questionnaires, **how)
            cubes = [scores[kind].to_numpy().reshape(size, n_models, -1) for kind in _KINDS]
            parts.setdefault(name, []).append(np.stack(cubes))

        populations -= size
        first += size * n_models

    return {name: np.concatenate(cubes, axis=1) for name, cubes in parts.items()}


def compare_draws(
    observed: pd.DataFrame, half: pd.DataFrame, draws: pd.DataFrame, base: pd.Series
) -> pd.DataFrame:
    """Compare evidence by base with its draws of every size.

    Parameters
    ----------
    observed, half : DataFrame
        Evidence by base and its half widths, with a row ``both`` for the mean over bases, as
        :func:`psychometrics.nulls.evidence.evidence` and ``jackknife`` return them.
    draws : DataFrame
        Evidence of null respondents, one population per row, indexed by size and base.
    base : Series
        The base of each respondent.

    Returns
    -------
    DataFrame
        The columns of :func:`psychometrics.nulls.evidence.reached` with ``low, high``, by size,
        base and evidence.

    Examples
    --------
    >>> observed = pd.DataFrame({"alpha": [0.9, 0.9]}, ["a", "both"])
    >>> index = pd.MultiIndex.from_product([["matched"], ["a", "both"]], names=["size", "base"])
    >>> draws = pd.DataFrame({"alpha": [0.5, 0.5]}, index)
    >>> compared = compare_draws(observed, observed / 10, draws, pd.Series(["a"] * 3))
    >>> float(compared.loc[("matched", "a", "alpha"), "low"].round(2))
    0.81
    """
    compared = {
        (size, kind): reached(observed.loc[kind], draws.loc[[(size, kind)]])
        for size, kind in itertools.product([*SIZES, _WORDS], observed.index)
        if (size, kind) in draws.index
    }
    half.loc["both", half.drop(index="both").isna().all(axis=1).any()] = np.nan
    ends = pd.DataFrame(
        {
            "low": (observed - half)[observed.columns].stack(future_stack=True),
            "high": (observed + half)[observed.columns].stack(future_stack=True),
        }
    ).rename_axis(["base", "evidence"])
    bounded = ~ends.index.get_level_values("evidence").str.contains("htmt|items at")
    ends[bounded] = ends[bounded].clip(-1, 1)
    ends[ends["low"] == ends["high"]] = np.nan  # the ranks never change

    table = pd.concat(compared, names=["size", "base", "evidence"])
    return _with_intervals_over_bases(table.join(ends, on=["base", "evidence"]), base)


def combine_draws(by_base: Mapping[str, pd.DataFrame], counts: pd.Series) -> pd.DataFrame:
    """Return the mean of draws over bases, weighted by numbers of respondents.

    Parameters
    ----------
    by_base : mapping of str to DataFrame
        By base: evidence of null respondents, one population per row, indexed by size.
    counts : Series
        The number of respondents of each base.

    Returns
    -------
    DataFrame
        Draws of the sizes that all bases share.

    Examples
    --------
    >>> draws = {name: pd.DataFrame({"alpha": value}, list(SIZES))
    ...          for name, value in {"a": 0.2, "b": 0.5}.items()}
    >>> float(combine_draws(draws, pd.Series({"a": 2, "b": 1}))["alpha"].round(2).iloc[0])
    0.3
    """
    tables = [by_base[label].loc[[*SIZES]] for label in counts.index]
    weighted = zip(tables, counts, strict=True)
    total = sum(table.fillna(0) * count for table, count in weighted)
    respondents = sum(table.notna() * count for table, count in zip(tables, counts, strict=True))
    return total / respondents.where(respondents > 0)


def _with_intervals_over_bases(compared: pd.DataFrame, base: pd.Series) -> pd.DataFrame:
    """Replace the intervals of means over three or more bases by intervals with bases as sample."""
    counts = base.value_counts()
    if len(counts) < 3:
        return compared

    weights = counts / counts.sum()
    apart = (compared["observed"] - compared["null"]).unstack("base")[counts.index]
    away = apart.sub((apart * weights).sum(axis=1, skipna=False), axis=0)
    variance = ((away * weights) ** 2).sum(axis=1, skipna=False) * len(counts) / (len(counts) - 1)
    half = special.stdtrit(len(counts) - 1, 0.975) * np.sqrt(variance)
    is_mean = compared.index.get_level_values("base") == "both"
    half = half.reindex(compared.index[is_mean].droplevel("base")).to_numpy()
    compared.loc[is_mean, "low"] = compared.loc[is_mean, "observed"] - half
    compared.loc[is_mean, "high"] = compared.loc[is_mean, "observed"] + half
    return compared


def size_verdicts(compared: pd.DataFrame) -> pd.Series:
    """Return the verdict by base and evidence, from comparisons with heads of every size.

    *Higher* or *lower* requires a p of at most .05 in the same direction at all sizes of the heads
    and for random words, and an interval over respondents that excludes the median of each of these
    nulls. If only the interval fails, the difference holds for *these members only*.

    Parameters
    ----------
    compared : DataFrame
        The result of :func:`compare_draws`.

    Returns
    -------
    Series

    Examples
    --------
    >>> names = pd.MultiIndex.from_tuples([("a", "alpha")], names=["base", "evidence"])
    >>> row = {"observed": 0.9, "low": 0.8, "high": 1.0, "null": 0.5, "p": 0.01, "draws": 200}
    >>> size_verdicts(pd.DataFrame(row, names)).tolist()
    ['higher']
    """
    above = compared["low"] > compared["null"]
    below = compared["high"] < compared["null"]
    by = compared.assign(
        clear=compared["p"] <= 0.05,
        higher=compared["observed"] > compared["null"],
        apart=above | below,
        unknown=compared["p"].isna(),
    )
    columns = ["clear", "higher", "apart", "unknown"]
    share = by.groupby(level=["base", "evidence"])[columns].mean()

    verdicts = pd.Series("depends on the size", share.index).mask(
        share["clear"] == 0, "not separated"
    )

    for side, verdict in {1: "higher", 0: "lower"}.items():
        clear = (share["clear"] == 1) & (share["higher"] == side)
        verdicts = verdicts.mask(clear, f"{verdict}, these members only")
        verdicts = verdicts.mask(clear & (share["apart"] == 1), verdict)

    draws = compared["draws"].groupby(level=["base", "evidence"]).min()
    verdicts = verdicts.mask(draws < FEWEST_POPULATIONS, "too few populations to say")
    return verdicts.mask(share["unknown"] > 0, "–")


def _scores(
    answers: pd.DataFrame,
    loaded: list[Questionnaire],
    own: pd.DataFrame,
    bases: pd.DataFrame,
    heads: Mapping[str, dict[str, np.ndarray]],
    standardised: bool,
) -> pd.DataFrame:
    """Return each model's scores and silhouettes, with those of heads in its place."""
    table = score_table(answers, loaded)
    table = table[["respondent_id", "questionnaire", "scale", "score", "low", "high", "n"]]
    items = {(q.id, scale.id): list(scale.items) for q in loaded for scale in q.scales}
    place = {item: number for number, item in enumerate(own["source"].columns)}
    rows = []

    for row in table.to_dict("records"):
        name = row["respondent_id"]
        label = bases.loc[name, "label"]
        chosen = items[row["questionnaire"], row["scale"]]
        silhouette = own["silhouette"].loc[name, chosen].mean()
        observed = pd.Series({"score": row["score"], "silhouette": silhouette})
        draws = pd.DataFrame(np.nan, [0], observed.index)

        if label in heads:
            number = bases.index[bases["label"] == label].get_loc(name)
            cube = heads[label]["matched"][:, :, number, [place[item] for item in chosen]]
            source, _, separation = cube.mean(axis=2)
            draws = pd.DataFrame({"score": source, "silhouette": separation})

        null = _hide_few(reached(observed, draws))[["null low", "null high", "p"]]
        of_silhouette = null.loc["silhouette"].add_prefix("silhouette ")
        added = {**null.loc["score"], "silhouette": silhouette, **of_silhouette}
        rows.append(row | added | {"base": label, "note": bases.loc[name, "note"]})

    table = pd.DataFrame(rows)
    if standardised:
        by_scale = table.groupby(["questionnaire", "scale"])["score"]
        mean = by_scale.transform("mean")
        spread = by_scale.transform("std")
        for column in ("score", "low", "high", "null low", "null high"):
            table[column] = (table[column] - mean) / spread.where(spread > 0)

    table.insert(1, "base", table.pop("base").replace(UNKNOWN_BASE, "not known"))
    return table


def _hide_few(compared: pd.DataFrame) -> pd.DataFrame:
    """Remove p values and ends of nulls that rest on too few populations."""
    few = compared["draws"] < FEWEST_POPULATIONS
    return compared.assign(**compared[["null low", "null high", "p"]].astype(float).mask(few))


def _statistics(
    loaded: list[Questionnaire],
    own: pd.DataFrame,
    bases: pd.DataFrame,
    heads: dict[str, dict[str, np.ndarray]],
    standardised: bool,
) -> pd.DataFrame:
    """Return the statistics within bases, over bases combined, and (if wanted) over all models."""
    label = bases.loc[bases["label"].isin(heads), "label"]
    parts = []

    if len(label):
        within = _compare(loaded, own, label, heads)
        of_bases = within.drop(index="both", level="base")
        models = of_bases.index.get_level_values("base").map(label.value_counts())
        parts.append(_hide_small(of_bases, models))
        if label.nunique() > 1:
            combined = within.loc[["both"]]
            large = label[label.map(label.value_counts()) >= FEWEST_RESPONDENTS]
            differences = combined
            if len(large):
                differences = _compare(loaded, own, large, heads).loc[["both"]]

            is_of_differences = _is_of_differences(combined)
            silhouettes = combined[~is_of_differences].assign(models=len(label))
            differences = _hide_small(differences[is_of_differences], len(large))
            over_bases = pd.concat([silhouettes, differences])
            parts.append(over_bases.rename({"both": _COMBINED}, level="base"))

    if standardised and len(label):
        names = label.unique()
        pooled = {size: np.concatenate([heads[name][size] for name in names], 2) for size in SIZES}
        everyone = pd.Series(_POOLED, label.index)
        over_all = _compare(loaded, own, everyone, {_POOLED: pooled})
        parts.append(_hide_small(over_all.drop(index="both", level="base"), len(label)))

    unjudged = bases["label"].drop(label.index).replace(UNKNOWN_BASE, "not known").value_counts()
    empty = pd.DataFrame({"models": unjudged, "verdict": UNJUDGED})
    empty.index = pd.MultiIndex.from_product([unjudged.index, ["all"]], names=["base", "evidence"])
    table = pd.concat([*parts, empty]).rename(columns={"observed": "value"}).reset_index()

    words = table.pop("evidence").str.split(" ", expand=True)
    words = words.reindex(columns=range(3), fill_value="").fillna("")
    table.insert(0, "statistic", words[0].replace("ρ", "correlation"))
    table.insert(1, "scale", words[1])
    table.insert(2, "other", words[2])
    return table.reindex(columns=["statistic", "scale", "other", "base", "models", *_STATISTICS])


def _compare(
    loaded: list[Questionnaire],
    of_models: pd.DataFrame,
    label: pd.Series,
    heads: Mapping[str, dict[str, np.ndarray]],
) -> pd.DataFrame:
    """Return the comparison with matched heads and the verdict over all sizes, by base."""
    # every questionnaire is paired with itself, too, so that a single one is enough
    names = [questionnaire.id for questionnaire in loaded]
    expected = dict.fromkeys(itertools.combinations_with_replacement(names, 2), 1)
    of_models = of_models.loc[label.index]
    observed = evidence(of_models, loaded, expected, label)
    kinds = observed.columns[observed.columns.str.match("(silhouette|alpha|ρ) ")]
    half = jackknife(lambda part: evidence(part, loaded, expected)[kinds], of_models, label)

    draws = {}
    for name in label.unique():
        by_size = {
            size: evidence_of_draws(source, inverse, width, loaded, expected)[kinds]
            for size, (source, inverse, width) in heads[name].items()
        }
        draws[name] = pd.concat(by_size).droplevel(1)

    draws["both"] = combine_draws(draws, label.value_counts())
    table = pd.concat(draws, names=["base", "size"]).swaplevel()
    compared = compare_draws(observed[kinds], half, table, label)
    return _hide_few(compared.loc["matched"].assign(verdict=size_verdicts(compared)))


def _hide_small(compared: pd.DataFrame, models: pd.Index | int) -> pd.DataFrame:
    """Add the numbers of models, and hide statistics of differences between too few models."""
    compared = compared.assign(models=models)
    is_small = _is_of_differences(compared) & (compared["models"] < FEWEST_RESPONDENTS)
    compared.loc[is_small, ["observed", *_STATISTICS[1:-1]]] = np.nan
    compared.loc[is_small, "verdict"] = _TOO_FEW
    return compared


def _is_of_differences(compared: pd.DataFrame) -> np.ndarray:
    """Return which rows are about differences between models, unlike silhouettes."""
    kinds = compared.index.get_level_values("evidence")
    is_silhouette: np.ndarray = kinds.str.startswith("silhouette")
    return ~is_silhouette
