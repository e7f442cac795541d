"""Validity evidence of respondents, compared with the evidence of untrained heads.

Three chapters begin with :func:`compare`; ``data/recipes/null_populations.py`` makes the 2,000
shipped populations of heads by the same steps.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from psychometrics.asking.ask import ask
from psychometrics.asking.population import FAMILIES, population, population_table, readable_names
from psychometrics.checks import check_numbers
from psychometrics.data import shipped
from psychometrics.exceptions import PsychometricsError
from psychometrics.modes import identify
from psychometrics.nulls.evidence import (
    evidence,
    evidence_of_draws,
    jackknife,
    profiles,
    reached,
    resized,
)
from psychometrics.nulls.respondents import null_answers
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics.reports.own_base import untouched_base
from psychometrics.reports.rules import FEWEST_RESPONDENTS

REAL = ("gad7", "phq9", "soc13")
"""The questionnaires of Reuben et al. (2024), in contrast to placebos."""
EXPECTED = {("gad7", "phq9"): 1, ("gad7", "soc13"): -1, ("phq9", "soc13"): -1}
"""The signs of the correlations between the three questionnaires in people."""
PLACEBOS = tuple(f"placebo_{kind}" for kind in ("defects", "pleasures", "habits", "weather"))
SIZES = {"start": None, "quarter": 0.25, "matched": 1.0, "fourfold": 4.0}
"""The sizes of untrained heads, as multiples of a member's size; None keeps the starting values."""
_OF_SINGLE_RESPONDENTS = ("silhouette", "lowest", "items at")
"""The prefixes of kinds of evidence that do not depend on differences between respondents."""
_WORDS = "words"
"""The entry in place of a size for the decoder's random words, which have their own size."""
_BASES = {"MiniLM": "encoders", "SmolLM2": "decoders"}
_UNKNOWN = "others"
"""The group of respondents whose untouched base is not known."""
_UNJUDGED = "cannot be judged here"
"""The verdict where no heads could be built on a respondent's own base."""
_FEWEST_POPULATIONS = 39
"""The fewest populations of heads with which p = 2 / (1 + populations) is at most .05."""
_HEADS_AT_ONCE = 48
"""Number of heads whose answers are held in memory together."""


@dataclass
class _Comparison:
    """Evidence of respondents and of untrained heads, as :func:`compare` returns it.

    Attributes
    ----------
    questionnaires : list of Questionnaire
        GAD-7, PHQ-9 and SOC-13, then the placebos.
    answers, profiles : DataFrame
        The respondents' answers to all questionnaires, and their
        :func:`psychometrics.nulls.evidence.profiles`.
    base : Series
        By respondent: *encoders* or *decoders* for the book's members, the untouched base's name
        for respondents from outside the book, or *others* if it is not known.
    untouched : DataFrame
        ``base, layers, wording`` by respondent, as :func:`psychometrics.null_answers` accepts them.
    draws : DataFrame
        Evidence of null respondents, one population per row, indexed by size of the heads (or
        *words*, the random words of the decoder) and base. The column ``single`` lists the mean
        silhouette of each head, in the first populations only.
    observed : DataFrame
        Evidence of the respondents, by base.
    found : DataFrame
        The comparison with matched heads, indexed by base and evidence, with 95 % intervals over
        respondents (over bases for the mean of three or more bases) and the verdict over words and
        heads of every size. The verdict is within depths
        if the shipped comparison fits; a different verdict within bases follows in parentheses.
    depth : DataFrame
        The shipped comparison of all members within bases and depths, by size, base and evidence.
    how : dict
        The settings: the score and the temperature.
    """

    questionnaires: list[Questionnaire]
    answers: pd.DataFrame
    profiles: pd.DataFrame
    base: pd.Series
    untouched: pd.DataFrame
    draws: pd.DataFrame
    observed: pd.DataFrame
    found: pd.DataFrame
    depth: pd.DataFrame
    how: dict[str, str | float]

    @property
    def enough(self) -> list[str]:
        """The bases with enough respondents for statistics of differences."""
        return [kind for kind in self.base.value_counts().index if kind not in _too_few(self.base)]

    @property
    def remarks(self) -> list[str]:
        """Return notes on bases with few respondents, and on respondents from outside the book."""
        counts = self.base.value_counts()
        remarks = [
            f"{kind} ({counts[kind]}): only silhouettes are printed. Alpha, omega, correlations "
            f"and ratios rest on differences between respondents; fewer than {FEWEST_RESPONDENTS} "
            "on one base rarely show any."
            for kind in counts.index
            if kind not in self.enough and kind != _UNKNOWN
        ]

        if (self.found["verdict"] == _UNJUDGED).any():
            remarks.append(
                f"{_UNJUDGED}: the untouched base of a model is not known or cannot be read; name "
                "it in the model's folder, in manifest.json with the key base."
            )
        return remarks

    def rows(self, labels: dict[str, str], value: str) -> pd.DataFrame:
        """Return rows of ``found`` by label and base, with the observed values named `value`."""
        part = self.found.swaplevel()[_SHOWN].loc[[*labels]].copy()
        part = part.rename(labels, level="evidence")
        return part.rename_axis(["label", "base"]).rename(columns={"observed": value})


_SHOWN = ["observed", "low", "high", "null", "null low", "null high", "p", "verdict"]


def compare(
    respondents: str = "all",
    score: str = "entailment",
    temperature: float = 1.0,
    dtype: str = "auto",
    populations: int = 200,
    seed: int = 1,
) -> _Comparison:
    """Compare respondents' evidence of validity with the evidence from untrained heads.

    Parameters
    ----------
    respondents : str
        Respondents, as :func:`psychometrics.population` accepts them.
    score, temperature, dtype
        As in :func:`psychometrics.measures.scoring.item_scores` and :func:`psychometrics.ask`.
    populations : int
        Number of populations of heads of each size, unless the 2,000 shipped populations fit. With
        fewer than 39 no p value can be .05 or smaller, and the verdict says so.
    seed : int
        Seed of the heads.

    Returns
    -------
    _Comparison

    Examples
    --------
    >>> found = compare("minilm-both-l6-s1,minilm-mnli-l6-s2", populations=2)
    >>> found.draws.index.unique("size").tolist()
    ['start', 'quarter', 'matched', 'fourfold']
    """
    check_numbers(populations=populations, seed=seed)
    how = {"score": score, "temperature": temperature}
    loaded = [load_questionnaire(name) for name in (*REAL, *PLACEBOS)]
    answers = ask(loaded, respondents, dtype=dtype, progress=False)
    own = profiles(answers, loaded, **how)
    untouched = _untouched(own.index, respondents)
    base = untouched["label"].rename("base")
    usual = how == {"score": "entailment", "temperature": 1}
    whole = usual and list(own.index) == population("all")
    observed = evidence(own, loaded, EXPECTED, base)
    draws = (
        _shipped()
        if whole
        else _draws(answers, untouched, observed, loaded, how, populations, seed)
    )
    draws = with_beyond(draws)
    observed = with_beyond(observed)
    every_size = {
        (size, kind): reached(observed.loc[kind], draws.loc[[(size, kind)]])
        for size, kind in itertools.product([*SIZES, _WORDS], observed.index)
        if (size, kind) in draws.index
    }
    every_size = pd.concat(every_size, names=["size", "base", "evidence"])
    half = jackknife(lambda part: _statistics(part, loaded), own, base)
    half.loc["both", half.drop(index="both").isna().all(axis=1).any()] = np.nan
    ends = _intervals(observed, half)
    every_size = _with_intervals_over_bases(every_size.join(ends, on=["base", "evidence"]), base)

    depth = pd.read_csv(data_dir() / "within_depth.csv").replace({"base": _BASES}, regex=True)
    depth = depth.set_index(["size", "base", "evidence"])
    by_base = _verdicts(every_size)
    by_depth = _verdicts(depth)
    by_depth = by_depth.reindex(by_base.index).fillna(by_base) if whole else by_base
    other = (" (by base: " + by_base + ")").where(by_depth != by_base, "")
    found = every_size.loc["matched"].assign(verdict=by_depth + other)

    # drop statistics that so few respondents cannot support
    hidden = [kind for kind in observed.columns if not kind.startswith(_OF_SINGLE_RESPONDENTS)]
    for kind in _too_few(base):
        observed.loc[kind, hidden] = np.nan
        values = ["observed", "low", "high", "p", "reach"]
        found.loc[[(kind, name) for name in hidden], values] = np.nan
        found.loc[[(kind, name) for name in hidden], "verdict"] = "not printed"

    unjudged = [
        kind for kind in observed.index if draws.loc[[("matched", kind)], "silhouette"].isna().all()
    ]
    found.loc[unjudged, "verdict"] = _UNJUDGED
    few = found["draws"].between(1, _FEWEST_POPULATIONS - 1)
    found.loc[few, ["null low", "null high", "p"]] = np.nan

    return _Comparison(loaded, answers, own, base, untouched, draws, observed, found, depth, how)


def _untouched(names: pd.Index, respondents: str) -> pd.DataFrame:
    """Return each respondent's untouched base, layers and wording, and the label of its base."""
    models = {name: name for name in names}
    for model in set(population(respondents)) - set(names):  # folders
        with contextlib.suppress(PsychometricsError):  # it was not asked either
            models[identify(model, "nli")["respondent_id"]] = model

    families = population_table().set_index("respondent_id")["family"].map(_BASES)
    table = pd.DataFrame({name: untouched_base(models[name]) for name in names}).T
    shown = readable_names(table.loc[table["own"].astype(bool), "base"])
    label = table["base"].map(shown | {"embedded": "MiniLM"}).where(table["own"], _UNKNOWN)
    table["label"] = families.reindex(names).fillna(label)
    return table[["base", "layers", "wording", "label"]].rename_axis("respondent_id")


def _too_few(base: pd.Series) -> list[str]:
    """Return the bases with too few respondents and, if there are any, the mean over bases.

    Respondents of unknown bases may not share one.
    """
    counts = base.value_counts()
    kinds = list(counts.index[(counts < FEWEST_RESPONDENTS) | (counts.index == _UNKNOWN)])
    return [*kinds, "both"] if kinds else []


def _intervals(observed: pd.DataFrame, half: pd.DataFrame) -> pd.DataFrame:
    """Return 95 % intervals ``low, high`` over respondents, by base and evidence."""
    kinds = observed.columns
    ends = pd.DataFrame(
        {
            "low": (observed - half)[kinds].stack(future_stack=True),
            "high": (observed + half)[kinds].stack(future_stack=True),
        }
    ).rename_axis(["base", "evidence"])
    bounded = ~ends.index.get_level_values("evidence").str.contains("htmt|items at")
    ends[bounded] = ends[bounded].clip(-1, 1)
    ends[ends["low"] == ends["high"]] = np.nan  # the ranks never change

    return ends


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
    both = compared.index.get_level_values("base") == "both"
    half = half.reindex(compared.index[both].droplevel("base")).to_numpy()
    compared.loc[both, "low"] = compared.loc[both, "observed"] - half
    compared.loc[both, "high"] = compared.loc[both, "observed"] + half
    return compared


def _verdicts(compared: pd.DataFrame) -> pd.Series:
    """Return the verdict under the plan, by base and evidence, from comparisons at every size.

    *Higher* or *lower* requires a p of at most .05 in the same direction at all sizes of the heads
    and for random words, and an interval over respondents that excludes the median of each of these
    nulls. If only the interval fails, the difference holds for *these members only*.
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

    found = pd.Series("depends on the size", share.index).mask(share["clear"] == 0, "not separated")

    for side, verdict in {1: "higher", 0: "lower"}.items():
        clear = (share["clear"] == 1) & (share["higher"] == side)
        found = found.mask(clear, f"{verdict}, these members only")
        found = found.mask(clear & (share["apart"] == 1), verdict)

    draws = compared["draws"].groupby(level=["base", "evidence"]).min()
    found = found.mask(draws < _FEWEST_POPULATIONS, "too few populations to say")
    return found.mask(share["unknown"] > 0, "–")


def _shipped() -> pd.DataFrame:
    """Return the shipped populations by size and base, and the mean of both bases."""
    table = pd.read_parquet(shipped("null_populations.parquet")).replace({"base": _BASES})
    table = table[~table["size"].isin(["trained"])]
    counts = population_table()["family"].map({v: k for k, v in FAMILIES.items()}).value_counts()
    both = []
    for size in SIZES:
        parts = [
            table[(table["size"] == size) & (table["base"] == base)]
            .set_index("population")
            .select_dtypes("number")
            * (counts[base] / counts.sum())
            for base in counts.index
        ]
        both.append(sum(parts).reset_index().assign(size=size, base="both"))

    return pd.concat([table, *both]).set_index(["size", "base"])


def _draws(
    answers: pd.DataFrame,
    untouched: pd.DataFrame,
    observed: pd.DataFrame,
    loaded: list[Questionnaire],
    how: dict,
    populations: int,
    seed: int,
) -> pd.DataFrame:
    """Return the evidence of populations that have an untrained head in each respondent's place.

    Each base has its own heads, and no two bases share the number of a head. Rows are missing for
    bases that are not known or cannot be read, and then for the mean over bases.
    """
    missing = pd.DataFrame(np.nan, [*SIZES], [*observed.columns, "single"])
    by_base = {}
    start = 0

    for kind, stands in untouched.groupby("label", sort=False):
        # heads take the bases in turn, by their numbers
        first = (-(-start // len(stands)) + seed - 1) * len(stands)
        start = first + populations * len(stands)
        by_base[kind] = by_base["both"] = missing
        if kind != _UNKNOWN:
            with contextlib.suppress(PsychometricsError):
                own = answers[answers["respondent_id"].isin(stands.index)]
                by_base[kind] = _draws_on_base(own, stands, loaded, how, populations, first)

    counts = untouched["label"].value_counts()
    if all(by_base[kind] is not missing for kind in counts.index):
        tables = [by_base[kind].loc[[*SIZES], observed.columns] for kind in counts.index]
        weighted = zip(tables, counts, strict=True)
        total = sum(table.fillna(0) * count for table, count in weighted)
        known = sum(table.notna() * count for table, count in zip(tables, counts, strict=True))
        by_base["both"] = (total / known.where(known > 0)).assign(single=np.nan)

    return pd.concat(by_base, names=["base", "size"]).swaplevel()


def _draws_on_base(
    answers: pd.DataFrame,
    stands: pd.DataFrame,
    loaded: list[Questionnaire],
    how: dict,
    populations: int,
    start: int,
) -> pd.DataFrame:
    """Return the evidence of populations of heads on one base, indexed by their size.

    Populations are made in parts, whose answers fit into memory.
    """
    members = len(stands)
    reads = stands[["base", "layers", "wording"]].to_dict("list")
    items = sum(len(questionnaire.items) for questionnaire in loaded[: len(REAL)])
    rows = []

    while populations:
        number = min(populations, max(1, _HEADS_AT_ONCE // members))
        like = [
            answers.assign(respondent_id=f"{k} " + answers["respondent_id"]) for k in range(number)
        ]
        heads = null_answers(loaded, "random-heads", number * members, seed=start, **reads)
        tables = {
            size: heads if factor is None else resized(heads, pd.concat(like), factor)
            for size, factor in SIZES.items()
        }
        if stands["label"].iloc[0] == "decoders":
            tables[_WORDS] = null_answers(
                loaded, "random-words", number * members, seed=start, **reads
            )

        for size, table in tables.items():
            parts = profiles(table, loaded, **how)
            cubes = [
                parts[name].to_numpy().reshape(number, members, -1)
                for name in ("source", "inverse", "silhouette")
            ]
            single = cubes[2][:, :, :items].mean(axis=2)
            draws = evidence_of_draws(*cubes, loaded, EXPECTED)
            rows.append(draws.assign(single=list(single), size=size))

        populations -= number
        start += number * members

    return pd.concat(rows).set_index("size")


def with_beyond(found: pd.DataFrame) -> pd.DataFrame:
    """Add ``beyond placebos`` to the kinds of evidence.

    It is the mean size of the correlations between scales, minus the mean size of the scales'
    correlations with placebos.
    """
    placebos = [f"ρ {a} {b}" for a, b in itertools.product(REAL, PLACEBOS)]
    between = found[[f"ρ {a} {b}" for a, b in EXPECTED]].abs().mean(axis=1)
    return found.assign(**{"beyond placebos": between - found[placebos].abs().mean(axis=1)})


def _statistics(table: pd.DataFrame, loaded: list[Questionnaire]) -> pd.Series:
    return with_beyond(evidence(table, loaded, EXPECTED).to_frame().T).iloc[0]
