"""Validity evidence of respondents, compared with the evidence of untrained heads.

Three chapters begin with :func:`compare`; ``data/recipes/null_populations.py`` makes the 2,000
shipped populations of heads by the same steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..asking.ask import ask
from ..asking.nulls import null_answers
from ..asking.population import FAMILIES, population, population_table, untouched_bases
from ..checks import check_numbers
from ..data import shipped
from ..measures.evidence import evidence, jackknife, profiles, reached, resized
from ..paths import data_dir
from ..questionnaires import Questionnaire, load_questionnaire
from ..reports.rules import FEWEST_RESPONDENTS

EXPECTED = {("gad7", "phq9"): 1, ("gad7", "soc13"): -1, ("phq9", "soc13"): -1}
"""The signs of the correlations between the three questionnaires in people."""
PLACEBOS = tuple(f"placebo_{kind}" for kind in ("defects", "pleasures", "habits", "weather"))
SIZES = {"start": None, "quarter": 0.25, "matched": 1.0, "fourfold": 4.0}
"""The sizes of untrained heads, as multiples of a member's size; None keeps the starting values."""
_OF_SINGLE_RESPONDENTS = ("silhouette", "lowest", "items at")
"""The prefixes of kinds of evidence that do not depend on differences between respondents."""
_WORDS = "words"
"""The entry in place of a size for the decoder's random words, which have their own size."""
_REAL = ("gad7", "phq9", "soc13")
_BASES = {"MiniLM": "encoders", "SmolLM2": "decoders"}


@dataclass
class _Comparison:
    """Evidence of respondents and of untrained heads, as :func:`compare` returns it.

    Attributes
    ----------
    questionnaires : list of Questionnaire
        GAD-7, PHQ-9 and SOC-13, then the placebos.
    answers, profiles : DataFrame
        The respondents' answers to all questionnaires, and their
        :func:`psychometrics.measures.evidence.profiles`.
    base : Series
        *encoders*, *decoders* or *others*, by respondent.
    draws : DataFrame
        Evidence of null respondents, one population per row, indexed by size of the heads (or
        *words*, the random words of the decoder) and base. The column ``single`` lists the mean
        silhouette of each head, in the first populations only.
    observed : DataFrame
        Evidence of the respondents, by base.
    found : DataFrame
        The comparison with matched heads, indexed by base and evidence, with 95 % intervals over
        respondents and the verdict over words and heads of every size. The verdict is within depths
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
        said = [
            f"{kind} ({counts[kind]}): only silhouettes are printed. Alpha, omega, correlations "
            f"and ratios rest on differences between respondents; with fewer than "
            f"{_fewest(kind)} on one base, their intervals would be uninformative."
            for kind in counts.index
            if kind not in self.enough
        ]

        if "others" in counts:
            said.append("others: their untrained heads use the book's encoder, not their own base.")
        return said

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
    populations: int = 20,
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
        Number of populations of heads of each size, unless the 2,000 shipped populations fit.
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
    loaded = [load_questionnaire(name) for name in (*_REAL, *PLACEBOS)]
    answers = ask(loaded, respondents, dtype=dtype, progress=False)
    own = profiles(answers, loaded, **how)
    families = population_table().set_index("respondent_id")["family"]
    base = families.reindex(own.index).map(_BASES).fillna("others").rename("base")
    usual = how == {"score": "entailment", "temperature": 1}
    whole = usual and list(own.index) == population("all")
    draws = (
        _shipped()
        if whole
        else _draws(answers, base, loaded, how, range(seed - 1, seed - 1 + populations))
    )
    draws = with_beyond(draws)
    observed = with_beyond(evidence(own, loaded, EXPECTED, base))
    every_size = {
        (size, kind): reached(observed.loc[kind], draws.loc[[(size, kind)]])
        for size, kind in itertools.product([*SIZES, _WORDS], observed.index)
        if (size, kind) in draws.index
    }
    every_size = pd.concat(every_size, names=["size", "base", "evidence"])
    ends = _intervals(observed, jackknife(lambda part: _statistics(part, loaded), own, base))
    every_size = every_size.join(ends, on=["base", "evidence"])

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

    return _Comparison(loaded, answers, own, base, draws, observed, found, depth, how)


def _fewest(kind: str) -> int:
    """Return the minimum number of respondents on a base whose differences are reported.

    The book's own members on a base are enough, as their intervals are shown.
    """
    families = population_table()["family"].map(_BASES)
    members = int((families == kind).sum())
    return min(FEWEST_RESPONDENTS, members or FEWEST_RESPONDENTS)


def _too_few(base: pd.Series) -> list[str]:
    """Return the bases with too few respondents and, if there are any, the mean over bases."""
    kinds = [kind for kind, number in base.value_counts().items() if number < _fewest(kind)]
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


def _verdicts(compared: pd.DataFrame) -> pd.Series:
    """Return the verdict under the plan, by base and evidence, from comparisons at every size.

    *Higher* or *lower* requires p < .05 in the same direction at all sizes of the heads and for
    random words, and an interval over respondents that excludes the median of each of these nulls.
    If only the interval fails, the difference holds for *these members only*.
    """
    above = compared["low"] > compared["null"]
    below = compared["high"] < compared["null"]
    by = compared.assign(
        clear=compared["p"] < 0.05,
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


def _draws(answers, base, loaded, how: dict, numbers: range) -> pd.DataFrame:
    """Return the evidence of populations that have an untrained head in each respondent's place."""
    bases = untouched_bases(list(base.index))
    members = len(base)
    rows = []
    decoders = base == "decoders"
    say = untouched_bases(list(base.index[decoders]))
    items = [item.id for q in loaded[: len(_REAL)] for item in q.items]

    for number in numbers:
        seed = number * members
        heads = null_answers(loaded, "random-heads", members, seed=seed, **bases)
        tables = {
            size: heads if factor is None else resized(heads, answers, factor)
            for size, factor in SIZES.items()
        }

        if decoders.any():
            by_words = null_answers(loaded, "random-words", int(decoders.sum()), seed=seed, **say)
            tables[_WORDS] = by_words

        for size, table_of_size in tables.items():
            table = profiles(table_of_size, loaded, **how)
            of = base[decoders] if size == _WORDS else base
            single = table["silhouette"][items].mean(axis=1).groupby(of.to_numpy()).agg(list)
            found = evidence(table, loaded, EXPECTED, of)

            if size == _WORDS:
                found = found.drop(index="both")

            rows.append(found.assign(size=size, single=single.reindex(found.index)))

    return pd.concat(rows).rename_axis("base").set_index("size", append=True).swaplevel()


def with_beyond(found: pd.DataFrame) -> pd.DataFrame:
    """Add ``beyond placebos`` to the kinds of evidence.

    It is the mean size of the correlations between scales, minus the mean size of the scales'
    correlations with placebos.
    """
    placebos = [f"ρ {a} {b}" for a, b in itertools.product(_REAL, PLACEBOS)]
    between = found[[f"ρ {a} {b}" for a, b in EXPECTED]].abs().mean(axis=1)
    return found.assign(**{"beyond placebos": between - found[placebos].abs().mean(axis=1)})


def _statistics(table: pd.DataFrame, loaded: list[Questionnaire]) -> pd.Series:
    return with_beyond(evidence(table, loaded, EXPECTED).to_frame().T).iloc[0]
