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

from psychometrics.asking.ask import ask
from psychometrics.asking.population import FAMILIES, population, population_table
from psychometrics.data import shipped
from psychometrics.exceptions import PsychometricsError
from psychometrics.nulls.evidence import (
    evidence,
    evidence_of_draws,
    jackknife,
    profiles,
)
from psychometrics.paths import data_dir
from psychometrics.questionnaires import Questionnaire, load_questionnaire
from psychometrics.reports.populations import (
    FEWEST_POPULATIONS,
    SIZES,
    UNJUDGED,
    UNKNOWN_BASE,
    base_table,
    combine_draws,
    compare_draws,
    head_profiles,
    number_heads,
    size_verdicts,
)
from psychometrics.reports.rules import FEWEST_RESPONDENTS

REAL = ("gad7", "phq9", "soc13")
"""The questionnaires of Reuben et al. (2024), in contrast to placebos."""
EXPECTED = {("gad7", "phq9"): 1, ("gad7", "soc13"): -1, ("phq9", "soc13"): -1}
"""The signs of the correlations between the three questionnaires in people."""
PLACEBOS = tuple(f"placebo_{kind}" for kind in ("defects", "pleasures", "habits", "weather"))
_OF_SINGLE_RESPONDENTS = ("silhouette", "lowest", "items at")
"""The prefixes of kinds of evidence that do not depend on differences between respondents."""
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
            if kind not in self.enough and kind != UNKNOWN_BASE
        ]

        if (self.found["verdict"] == UNJUDGED).any():
            remarks.append(
                f"{UNJUDGED}: the untouched base of a model is not known or cannot be read; name "
                "it in the population's file or the model's manifest.json with the key base."
            )
        return remarks

    def rows(self, labels: dict[str, str], value: str) -> pd.DataFrame:
        """Return rows of ``found`` by label and base, with the observed values named `value`."""
        table = self.found.swaplevel()[_SHOWN].loc[[*labels]].copy()
        table = table.rename(labels, level="evidence")
        return table.rename_axis(["label", "base"]).rename(columns={"observed": value})


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
    scoring = {"score": score, "temperature": temperature}
    loaded = [load_questionnaire(name) for name in (*REAL, *PLACEBOS)]
    answers = ask(loaded, respondents, dtype=dtype, progress=False)
    scores = profiles(answers, loaded, **scoring)
    untouched = _untouched(scores.index, respondents)
    base = untouched["label"].rename("base")
    usual = scoring == {"score": "entailment", "temperature": 1}
    is_published = usual and list(scores.index) == population("all")
    observed = evidence(scores, loaded, EXPECTED, base)
    if is_published:
        draws = _shipped()
    else:
        draws = _draws(answers, untouched, observed, loaded, scoring, populations, seed)

    draws = with_beyond(draws)
    observed = with_beyond(observed)
    half = jackknife(lambda part: _statistics(part, loaded), scores, base)
    every_size = compare_draws(observed, half, draws, base)

    depth = pd.read_csv(data_dir() / "within_depth.csv").replace({"base": _BASES}, regex=True)
    depth = depth.set_index(["size", "base", "evidence"])
    by_base = size_verdicts(every_size)
    by_depth = size_verdicts(depth)
    by_depth = by_depth.reindex(by_base.index).fillna(by_base) if is_published else by_base
    other = (" (by base: " + by_base + ")").where(by_depth != by_base, "")
    rows = every_size.loc["matched"].assign(verdict=by_depth + other)

    # drop statistics that so few respondents cannot support
    hidden = [kind for kind in observed.columns if not kind.startswith(_OF_SINGLE_RESPONDENTS)]
    for kind in _too_few(base):
        observed.loc[kind, hidden] = np.nan
        cells = [(kind, name) for name in hidden]
        rows.loc[cells, ["observed", "low", "high", "p", "reach"]] = np.nan
        rows.loc[cells, "verdict"] = "not printed"

    unjudged = [
        kind for kind in observed.index if draws.loc[[("matched", kind)], "silhouette"].isna().all()
    ]
    rows.loc[unjudged, "verdict"] = UNJUDGED
    few = rows["draws"].between(1, FEWEST_POPULATIONS - 1)
    rows.loc[few, ["null low", "null high", "p"]] = np.nan

    return _Comparison(
        loaded, answers, scores, base, untouched, draws, observed, rows, depth, scoring
    )


def _untouched(names: pd.Index, respondents: str) -> pd.DataFrame:
    """Return each respondent's untouched base, layers and wording, and the label of its base."""
    families = population_table().set_index("respondent_id")["family"].map(_BASES)
    table = base_table(names, respondents).drop(columns="note")
    table["label"] = families.reindex(names).fillna(table["label"])
    return table


def null_bases(names: list[str], respondents: str) -> tuple[dict[str, list], str]:
    """Return the untouched bases of respondents' heads, and what is missing if one is not known.

    Parameters
    ----------
    names : list of str
        The respondents, as :func:`psychometrics.population` lists them.
    respondents : str
        The population that was named.

    Returns
    -------
    dict of list
        ``base, layers, wording``, as :func:`psychometrics.null_answers` accepts them; the embedded
        encoder stands in for a base that is not known.
    str
        A sentence for each respondent that cannot be compared with heads, or an empty text.

    Examples
    --------
    >>> bases, unjudged = null_bases(["minilm-snli-l3-s17"], "minilm-snli-l3-s17")
    >>> bases["layers"], unjudged
    ([3], '')
    """
    table = base_table(names, respondents)
    notes = table.loc[table["note"] != "", "note"]
    unjudged = "\n".join(f"{name}: {note}." for name, note in notes.items())
    return table[["base", "layers", "wording"]].to_dict("list"), unjudged


def _too_few(base: pd.Series) -> list[str]:
    """Return the bases with too few respondents and, if there are any, the mean over bases.

    Respondents of unknown bases may not share one.
    """
    counts = base.value_counts()
    kinds = list(counts.index[(counts < FEWEST_RESPONDENTS) | (counts.index == UNKNOWN_BASE)])
    return [*kinds, "both"] if kinds else []


def _shipped() -> pd.DataFrame:
    """Return the shipped populations by size and base, and the mean of both bases."""
    table = pd.read_parquet(shipped("null_populations.parquet")).replace({"base": _BASES})
    table = table[~table["size"].isin(["trained"])]
    counts = population_table()["family"].map({v: k for k, v in FAMILIES.items()}).value_counts()
    weighted = []
    for size in SIZES:
        parts = [
            table[(table["size"] == size) & (table["base"] == base)]
            .set_index("population")
            .select_dtypes("number")
            * (counts[base] / counts.sum())
            for base in counts.index
        ]
        weighted.append(sum(parts).reset_index().assign(size=size, base="both"))

    return pd.concat([table, *weighted]).set_index(["size", "base"])


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

    Rows are missing for bases that are not known or cannot be read, and then for the mean over
    bases.
    """
    missing = pd.DataFrame(np.nan, [*SIZES], [*observed.columns, "single"])
    items = sum(len(questionnaire.items) for questionnaire in loaded[: len(REAL)])
    by_base = {}

    for kind, members, first_seed in number_heads(untouched, populations, seed):
        by_base[kind] = by_base["both"] = missing
        if kind == UNKNOWN_BASE:
            continue

        with contextlib.suppress(PsychometricsError):
            of_base = answers[answers["respondent_id"].isin(members.index)]
            rows = []
            heads = head_profiles(of_base, members, loaded, populations, first_seed, **how)
            for size, cubes in heads.items():
                single = cubes[2][:, :, :items].mean(axis=2)
                draws = evidence_of_draws(*cubes, loaded, EXPECTED)
                rows.append(draws.assign(single=list(single), size=size))

            by_base[kind] = pd.concat(rows).set_index("size")

    counts = untouched["label"].value_counts()
    if all(by_base[kind] is not missing for kind in counts.index):
        kinds = {kind: by_base[kind][observed.columns] for kind in counts.index}
        by_base["both"] = combine_draws(kinds, counts).assign(single=np.nan)

    return pd.concat(by_base, names=["base", "size"]).swaplevel()


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
