"""Untidy input: every statistic gives what it documents, or one clear error, and never warns.

A table is messed up in ways that users' tables are: gaps, constants, ties, too few rows, text,
infinity, rows that are there twice, rows in another order. What comes back is a result in which
nothing missing has an interval or a p-value, or a ParameterError. Statistics of further rooms join
by a line in ``CASES``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psychometrics as pm
import psychometrics_book as book
from psychometrics.exceptions import ParameterError
from tests.test_validity import THREE, scored, traits

MINI = pm.load_questionnaire("ipip20")
AXES = pm.load_questionnaire("two_axes")
SPOILT = pm.load_questionnaire("challenges")


def _matrix(rng) -> pd.DataFrame:
    """Respondents by items on one factor."""
    values = rng.normal(size=(9, 1)) + rng.normal(size=(9, 4))
    return pd.DataFrame(values, columns=list("abcd"), index=[f"r{n}" for n in range(9)])


def _whole(rng, respondents: int = 4) -> pd.DataFrame:
    """Answers to the prompts of a questionnaire, as they come."""
    table = pm.prompts(SPOILT)
    parts = [
        table.assign(respondent_id=f"r{n}", entailment=rng.uniform(0.05, 0.95, len(table)))
        for n in range(respondents)
    ]
    return pd.concat(parts, ignore_index=True)


def _prompted(rng) -> pd.DataFrame:
    table = _whole(rng, 3)
    return table[table["item_id"].isin(table["item_id"].unique()[:2])].reset_index(drop=True)


def _shares(rng) -> pd.DataFrame:
    return pm.pss(_prompted(rng))


def _answers(rng) -> pd.DataFrame:
    """Answers of five respondents to the items of a questionnaire, in two modes."""
    parts = [
        pd.DataFrame(
            {
                "respondent_id": f"r{n}", "questionnaire": "ipip20", "mode": mode, "run": 1,
                "item_id": [item.id for item in MINI.items],
                "value": rng.integers(1, 6, len(MINI.items)).astype(float), "status": "ok",
            }
        )
        for n in range(5) for mode in ("chat", "nli")
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _axes(rng) -> pd.DataFrame:
    ids = [item.id for item in AXES.items]
    frame = pd.DataFrame({"respondent_id": np.repeat(["a", "b"], len(ids)), "item_id": ids * 2})
    frame["value"] = [float(rng.choice([o.value for o in AXES.choices(i)])) for i in ids * 2]
    return frame.assign(questionnaire=AXES.id, mode="human", run=1, status="ok")


def _one_mode(rng) -> pd.DataFrame:
    return _answers(rng).query("mode == 'chat'").reset_index(drop=True)


def _items(rng) -> pd.DataFrame:
    return _one_mode(rng).rename(columns={"value": "score"}).drop(columns="status")


def _items_of_runs(rng) -> pd.DataFrame:
    return pd.concat([_items(rng).assign(run=run) for run in (1, 2, 3)], ignore_index=True)


def _crossed(rng) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([list("abcde"), [1, 2, 3]], names=["respondent_id", "run"])
    scores = rng.normal(size=15) + np.repeat(rng.normal(size=5), 3)
    return pd.DataFrame({"score": scores}, index=index).reset_index().assign(
        questionnaire="q", scale="s"
    )  # fmt: skip


def _ratings(rng) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([list("ABC"), range(6)], names=["rater", "item_id"])
    return pd.DataFrame({"natural": rng.integers(0, 2, 18)}, index=index).reset_index()


def _summary(rng) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "respondent_id": list("aabb"), "questionnaire": "bfi",
            "scale": ["extraversion", "openness"] * 2,
            "mean": rng.uniform(1, 5, 4), "sd": rng.uniform(0.1, 1, 4), "n": [10, 10, 1, 5],
        }
    )  # fmt: skip


def _three(rng) -> pd.DataFrame:
    return scored(8, traits(8, 0.5))


def _compared(rng) -> pd.DataFrame:
    return pm.norms.compare_norms(_summary(rng), pm.norms.norm_table())


def _pairs(rng) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(8, 2)), columns=["x", "y"])


@dataclass(frozen=True)
class Case:
    """A statistic, a table that it is made for, and which of its columns are numbers."""

    call: Callable
    table: Callable
    numbers: tuple[str, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    """A statistic and its interval, where the names do not tell."""
    order: bool = True
    """Whether rows in another order give the same."""


LOW_HIGH = (("mean", "low", "high"),)
CASES = {
    "alpha": Case(pm.reliability.alpha, _matrix, triples=(("alpha", "low", "high"),)),
    "omega": Case(pm.reliability.omega, _matrix, triples=(("omega", "low", "high"),)),
    "reliability_table": Case(lambda t: pm.reliability.reliability_table(t, [MINI]), _items,
        ("score",), (("alpha", "low", "high"),)),
    "generalisability": Case(lambda t: pm.reliability.generalisability(t, ["respondent_id", "run"]),
        _crossed, ("score",)),
    "design_study": Case(lambda t: pm.reliability.design_study(t, ["respondent_id", "run"],
        {"run": [1, 7]}), _crossed, ("score",)),
    "bias_shares": Case(lambda t: pm.bias.bias_shares(t, MINI, draws=2)[["scale", "statistic",
        "value", "low", "high"]], _items, ("score",), (("value", "low", "high"),)),
    "runs_and_units": Case(lambda t: pm.bias.runs_and_units(t, MINI), _items_of_runs, ("score",),
        (("share", "low", "high"),)),
    "runs_needed": Case(lambda t: pm.intervals.runs_needed(t, "score", 0.5), _crossed,
        ("score",)),
    "mean_interval": Case(
        lambda t: pd.Series(pm.intervals.mean_interval(t["x"].to_numpy()), ["low", "high"]), _pairs,
        ("x",)),
    "correlation_interval": Case(lambda t: pm.intervals.correlation_interval(t["x"], t["y"]),
        _pairs, ("x", "y"), (("r", "low", "high"),)),
    "pearson": Case(lambda t: pm.intervals.correlation_interval(t["x"], t["y"], "pearson"), _pairs,
        ("x", "y"), (("r", "low", "high"),)),
    "mean_table": Case(lambda t: pm.intervals.mean_table(t, "score", ["respondent_id"]), _items,
        ("score",), LOW_HIGH),
    "scale_intervals": Case(lambda t: pm.intervals.scale_intervals(t, MINI), _items, ("score",),
        (("score", "low", "high"),)),
    "monotony": Case(pm.trends.monotony, _shares, ("pss",)),
    "decisiveness": Case(pm.styles.decisiveness, _shares, ("pss",)),
    "response_styles": Case(lambda t: pm.styles.response_styles(t, MINI), _one_mode, ("value",)),
    "balanced_pairs": Case(lambda t: pm.styles.balanced_pairs(t, [SPOILT]), _whole,
        ("entailment",)),
    "compare_norms": Case(lambda t: pm.norms.compare_norms(t, pm.norms.norm_table()), _summary,
        ("mean", "sd"), (("difference", "low", "high"),)),
    "compare_means": Case(
        lambda t: pm.norms.compare_means(t["mean"], t["sd"], t["n"], 3.0, 0.5, 100), _summary,
        ("mean", "sd"), (("difference", "low", "high"),), order=False),
    "corrected": Case(pm.norms.corrected, _compared, ("p",)),
    "pss": Case(lambda t: pm.pss(t)[["respondent_id", "term", "intensifier", "pss"]], _prompted,
        ("entailment",)),
    "item_scores": Case(pm.item_scores, _prompted, ("entailment",)),
    "item_scores_of_items": Case(pm.item_scores, _one_mode, ("value",)),
    "scale_scores": Case(lambda t: pm.scale_scores(t, MINI, least_answered=0.5), _one_mode,
        ("value",)),
    "category_scores": Case(lambda t: pm.categories.category_scores(t, AXES), _axes, ("value",)),
    "term_silhouettes": Case(pm.validity.term_silhouettes, _shares, ("pss",)),
    "htmt": Case(lambda t: pm.structure.heterotrait_monotrait(t, THREE), _three, ("score",)),
    "rater_agreement": Case(lambda t: book.content.rater_agreement(t, ["natural"]), _ratings,
        ("natural",)),
}  # fmt: skip


def _put(t, column: str, value: object):
    """A table with another value in the last row of a column."""
    column = t.columns.get_loc(column)
    t.isetitem(column, t.iloc[:, column].astype(object if isinstance(value, str) else float))
    t.iloc[-1, column] = value
    return t


def _gap(t, columns, rng):
    return t.assign(**{c: t[c].astype(float).mask(rng.random(len(t)) < 0.15) for c in columns})


MESSES = {
    "gap": _gap,
    "an empty column": lambda t, columns, _: t.assign(**{columns[0]: np.nan}),
    "constant, with a spread by rounding": lambda t, c, _: t.assign(**{c[0]: 0.1 + 0.2}),
    "ties": lambda t, columns, _: t.assign(**{c: t[c].astype(float).round() for c in columns}),
    "few": lambda t, _, rng: t.iloc[: rng.integers(1, 5)],
    "none": lambda t, *_: t.iloc[:0],
    "text": lambda t, columns, _: _put(t, columns[-1], "n/a"),
    "numbers as text": lambda t, c, _: t.assign(**{c[-1]: t[c[-1]].astype(str)}),
    "infinite": lambda t, columns, _: _put(t, columns[-1], np.inf),
    "twice": lambda t, *_: pd.concat([t, t.iloc[:2]]),
    "lost": lambda t, _, rng: t.iloc[rng.permutation(len(t))[: max(len(t) - 2, 1)]],
    "nullable": lambda t, c, rng: t.assign(
        **{c[0]: t[c[0]].astype("Float64").mask(rng.random(len(t)) < 0.1)}
    ),
}


def nothing_missing_is_certain(result, triples) -> None:
    """A missing statistic has no interval and no p-value, and is not significant."""
    if isinstance(result, pd.Series):
        result = result.to_frame().T
    if not isinstance(result, pd.DataFrame):
        return
    own = [(c.removesuffix("_low"), c, c.replace("_low", "_high"))
           for c in map(str, result.columns) if c.endswith("_low")]  # fmt: skip
    for statistic, low, high in [*own, *triples]:
        if statistic in result:
            value, ends = result[statistic].astype(float), result[[low, high]].astype(float)
            assert ends[value.isna()].isna().all(axis=None), statistic
            assert (ends[low].isna() == ends[high].isna()).all(), statistic
            inside = (ends[low] - 1e-9 <= value) & (value <= ends[high] + 1e-9)
            assert (inside | ends[low].isna()).all(), statistic
    for p in [c for c in map(str, result.columns) if c == "p" or c.startswith("p_")]:
        for statistic in [c for c in ("t", "r", "spearman") if c in result]:
            assert result.loc[result[statistic].isna(), p].isna().all(), (statistic, p)
    for flag in [c for c in map(str, result.columns) if c.startswith("significant")]:
        assert not result.loc[result["p"].isna(), flag].any()


def of(case: Case, table: pd.DataFrame):
    """What a statistic gives; warnings are errors, and only a ParameterError may come instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return case.call(table)
        except ParameterError:
            return None


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=6, deadline=None)
@given(
    messes=st.lists(st.sampled_from([*MESSES]), min_size=1, max_size=2), seed=st.integers(0, 999)
)
def test_untidy_input_gives_a_documented_result_or_one_clear_error(name, messes, seed):
    case, rng = CASES[name], np.random.default_rng(seed)
    table = case.table(rng)
    columns = list(case.numbers) or list(table.columns)
    for mess in messes:
        try:
            table = MESSES[mess](table.copy(), columns, rng)
        except (TypeError, ValueError, IndexError):
            break  # two messes that exclude each other
    result = of(case, table)
    nothing_missing_is_certain(result, case.triples)


def _sorted(result):
    if isinstance(result, float):
        return pd.DataFrame({"value": [result]})
    frame = result.to_frame("value") if isinstance(result, pd.Series) else result
    counted = frame.index.name is None and pd.api.types.is_integer_dtype(frame.index)
    frame = frame.reset_index(drop=counted)
    words = [c for c in sorted(frame, key=str) if not pd.api.types.is_float_dtype(frame[c])]
    return frame.reindex(columns=sorted(frame.columns, key=str)).sort_values(
        words or list(frame), ignore_index=True
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mess", [None, _gap])
def test_the_order_of_rows_and_columns_changes_nothing(name, mess):
    case, rng = CASES[name], np.random.default_rng(11)
    table = case.table(rng)
    if mess:
        table = mess(table, list(case.numbers) or list(table.columns), rng)
    other = table.iloc[rng.permutation(len(table))]
    other = other[list(rng.permutation(other.columns))]
    first, second = of(case, table), of(case, other)
    assert first is not None or mess, "tidy input gives a result"
    assert (first is None) == (second is None) or not case.order
    nothing_missing_is_certain(first, case.triples)
    if first is not None and case.order:
        pd.testing.assert_frame_equal(_sorted(first), _sorted(second), check_dtype=False)


@pytest.mark.parametrize(
    "measure",
    [
        lambda table: pm.scoring.keyed_items(table, "gad7"),
        lambda table: pm.intervals.scale_intervals(table, "gad7"),
    ],
)
def test_a_name_in_the_place_of_a_loaded_questionnaire_is_refused_with_the_way_to_load_it(measure):
    row = {"respondent_id": "a", "questionnaire": "gad7", "item_id": "gad7_1", "score": 1.0}
    with pytest.raises(ParameterError, match="load_questionnaire"):
        measure(pd.DataFrame([row]))
