"""Evidence of the validity of respondents, compared with untrained heads in their place.

Three chapters begin with :func:`compare`; ``data/make/null_populations.py`` makes the 200 shipped
populations of heads by the same steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..asking.ask import ask
from ..asking.population import population, population_table, untouched_bases
from ..data import shipped
from ..measures.evidence import evidence, jackknife, profiles, reached, resized
from ..measures.nulls import null_answers
from ..paths import data_dir
from ..questionnaires import Questionnaire, load_questionnaire

EXPECTED = {("gad7", "phq9"): 1, ("gad7", "soc13"): -1, ("phq9", "soc13"): -1}
"""Signs of the correlations of the three questionnaires in people."""
PLACEBOS = tuple(f"placebo_{kind}" for kind in ("defects", "pleasures", "habits", "weather"))
SIZES = {"start": None, "quarter": 0.25, "matched": 1.0, "fourfold": 4.0}
"""Sizes of untrained heads as multiples of a member's; None leaves their starting values."""
_REAL = ("gad7", "phq9", "soc13")
_BASES = {"MiniLM": "encoders", "SmolLM2": "decoders"}


@dataclass
class _Comparison:
    """Evidence of respondents and of untrained heads, as :func:`compare` makes it.

    Attributes
    ----------
    questionnaires : list of Questionnaire
        GAD-7, PHQ-9 and SOC-13, then the placebos.
    answers, profiles : DataFrame
        Answers of the respondents to all of them, and what
        :func:`psychometrics.measures.evidence.profiles` returns for these.
    base : Series
        *encoders*, *decoders* or *others*, by respondent.
    draws : DataFrame
        Evidence of one population of heads a row, indexed by size of the heads and base; the
        column ``single`` lists the mean silhouette of each head.
    observed : DataFrame
        Evidence of the respondents, by base.
    found : DataFrame
        The comparison with matched heads, indexed by base and evidence, with 95 % intervals and
        the verdict over heads of every size: by depth where the shipped comparison fits, and
        in parentheses by base where it differs.
    depth : DataFrame
        The shipped comparison of all members within base and depth, by size, base and evidence.
    how : dict
        The score and the temperature.
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
        """Bases with three respondents or more, without whom nothing is said of differences."""
        counts = self.base.value_counts()
        return list(counts.index[counts > 2])

    @property
    def remarks(self) -> list[str]:
        """What to know of respondents that are few, or no members of the book."""
        counts = self.base.value_counts()
        few = [
            f"{kind} ({counts[kind]}): only silhouettes are shown. What rests on differences "
            "between respondents needs three on one base."
            for kind in counts.index.difference(self.enough)
        ]
        others = "others: their untrained heads stand on the book's encoder, not on their own base."
        return few + [others] * ("others" in counts)

    def rows(self, labels: dict[str, str], value: str) -> pd.DataFrame:
        """Return rows of ``found`` by label and base, with the observed values named `value`."""
        part = self.found.swaplevel()[_SHOWN].loc[[*labels]].rename(labels, level="evidence")
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
    """Compare the evidence of validity of respondents with that of untrained heads in their place.

    Parameters
    ----------
    respondents : str
        As :func:`psychometrics.population` takes them.
    score, temperature, dtype
        As in :func:`psychometrics.measures.scoring.item_scores` and :func:`psychometrics.ask`.
    populations : int
        How many populations of heads are made of every size, unless the 200 shipped ones fit.
    seed : int
        Seed of these heads.

    Returns
    -------
    _Comparison

    Examples
    --------
    >>> found = compare("minilm-both-l6-s1,minilm-mnli-l6-s2", populations=2)
    >>> found.draws.index.unique("size").tolist()
    ['start', 'quarter', 'matched', 'fourfold']
    """
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
    draws = _with_beyond(draws)
    observed = _with_beyond(evidence(own, loaded, EXPECTED, base))
    every_size = {
        (size, kind): reached(observed.loc[kind], draws.loc[[(size, kind)]])
        for size, kind in itertools.product(SIZES, observed.index)
        if (size, kind) in draws.index
    }
    every_size = pd.concat(every_size, names=["size", "base", "evidence"])
    depth = pd.read_csv(data_dir() / "within_depth.csv").replace({"base": _BASES}, regex=True)
    depth = depth.set_index(["size", "base", "evidence"])
    by_base, by_depth = _verdicts(every_size), _verdicts(depth)
    by_depth = by_depth.reindex(by_base.index).fillna(by_base) if whole else by_base
    other = (" (by base: " + by_base + ")").where(by_depth != by_base, "")
    found = every_size.loc["matched"].assign(verdict=by_depth + other)
    half = jackknife(lambda part: _statistics(part, loaded), own, base)
    ratio = found.index.get_level_values("evidence").str.contains("htmt|items at")
    for end, sign in {"low": -1, "high": 1}.items():
        found[end] = (observed + sign * half)[observed.columns].stack()
        found[end] = found[end].where(ratio, found[end].clip(-1, 1))
    found.loc[found["low"] == found["high"], ["low", "high"]] = np.nan  # ranks alike in all
    return _Comparison(loaded, answers, own, base, draws, observed, found, depth, how)


def _verdicts(compared: pd.DataFrame) -> pd.Series:
    """Return the plan's verdict by base and evidence, from a comparison by size, base and evidence.

    *Higher* or *lower* needs p < .05 in the same direction at all four sizes of the heads.
    """
    higher = compared["observed"] > compared["null"]
    by = compared.assign(clear=compared["p"] < 0.05, higher=higher, unknown=compared["p"].isna())
    share = by.groupby(level=["base", "evidence"])[["clear", "higher", "unknown"]].mean()
    found = pd.Series("depends on the size", share.index).mask(share["clear"] == 0, "not separated")
    for side, verdict in {1: "higher", 0: "lower"}.items():
        found = found.mask((share["clear"] == 1) & (share["higher"] == side), verdict)
    return found.mask(share["unknown"] > 0, "–")


def _shipped() -> pd.DataFrame:
    table = pd.read_parquet(shipped("null_populations.parquet")).replace({"base": _BASES})
    return table[table["size"] != "trained"].set_index(["size", "base"])


def _draws(answers, base, loaded, how: dict, numbers: range) -> pd.DataFrame:
    """Return evidence of populations with an untrained head in the place of each respondent."""
    bases, members, rows = untouched_bases(list(base.index)), len(base), []
    items = [item.id for q in loaded[: len(_REAL)] for item in q.items]
    for number in numbers:
        heads = null_answers(loaded, "random-heads", members, seed=number * members, **bases)
        for size, factor in SIZES.items():
            table = heads if factor is None else resized(heads, answers, factor)
            table = profiles(table, loaded, **how)
            single = table["silhouette"][items].mean(axis=1).groupby(base.to_numpy()).agg(list)
            found = evidence(table, loaded, EXPECTED, base)
            rows.append(found.assign(size=size, single=single.reindex(found.index)))
    return pd.concat(rows).rename_axis("base").set_index("size", append=True).swaplevel()


def _with_beyond(found: pd.DataFrame) -> pd.DataFrame:
    """Add the mean size of correlations between scales, less that of those with placebos."""
    placebos = [f"ρ {a} {b}" for a, b in itertools.product(_REAL, PLACEBOS)]
    between = found[[f"ρ {a} {b}" for a, b in EXPECTED]].abs().mean(axis=1)
    return found.assign(**{"beyond placebos": between - found[placebos].abs().mean(axis=1)})


def _statistics(table: pd.DataFrame, loaded: list[Questionnaire]) -> pd.Series:
    return _with_beyond(evidence(table, loaded, EXPECTED).to_frame().T).iloc[0]
