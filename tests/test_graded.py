"""Graded response and generalised partial credit models of ordered answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.special import expit, softmax

from psychometrics.exceptions import ParameterError
from psychometrics.measures import graded, irt
from psychometrics.measures import marginal_likelihood as marginal
from tests.test_irt import drawn, truth
from tests.test_r import FINE, _keyed

MODELS = tuple(graded._WORDS)


def known(items: int, options: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and ordered places of the options, shapes (I,) and (I, K - 1)."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.normal(0, 0.9, (items, options - 1)), axis=1)
    places = places + 0.4 * np.arange(options - 1) - 0.2 * (options - 2)
    return rng.uniform(0.8, 2.0, items), places


def shares(theta: np.ndarray, slopes: np.ndarray, places: np.ndarray, model: str) -> np.ndarray:
    """Probabilities of options as the models are written, shape (R, I, K)."""
    steps = slopes[:, None] * (theta[:, None, None] - places)
    if model == "graded":
        curves = expit(steps)
        ends = np.ones((*curves.shape[:2], 1))
        return -np.diff(np.concatenate([ends, curves, 0 * ends], axis=2), axis=2)
    return softmax(np.concatenate([0 * steps[..., :1], steps.cumsum(axis=2)], axis=2), axis=2)


def simulated(people: int, model: str, slopes, places, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = shares(rng.standard_normal(people), slopes, places, model)
    chosen = (rng.random((*p.shape[:2], 1)) > p.cumsum(axis=2)[..., :-1]).sum(axis=2)
    return pd.DataFrame(chosen).add_prefix("i")


def numbers(fitted: pd.DataFrame) -> np.ndarray:
    return fitted.drop(columns="at_limit").to_numpy(dtype=float)


@pytest.mark.parametrize("gaps", [0, 0.2])
@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_is_that_of_the_written_models_and_its_gradient_is_its_slope(model, gaps):
    slopes, places = known(4, 4)
    x = simulated(40, model, slopes, places)
    x = x.astype(float).mask(np.random.default_rng(2).random(x.shape) < gaps)
    fitted = pd.DataFrame({"discrimination": slopes}, index=x.columns)
    fitted[[f"{graded._WORDS[model]}{k}" for k in (1, 2, 3)]] = places
    row = graded.score_reliability(x, fitted.assign(at_limit=False))

    theta, weights = marginal._ability_grid(12)
    p = shares(theta, slopes, places, model)
    items = np.arange(4)
    written = [
        np.log(np.prod(p[:, items[~gap], answers[~gap].astype(int)], axis=1) @ weights)
        for answers, gap in zip(x.to_numpy(), x.isna().to_numpy(), strict=True)
    ]
    assert row["log_likelihood"] == pytest.approx(sum(written), rel=1e-12)

    known_options = np.ones((4, 3), dtype=bool)
    known_options[2, 2] = False  # the last option of this item counts as the one below
    indicators = graded._indicators(x, np.array([1, 2, 3]), known_options)
    data = marginal._Data(*marginal._patterns(indicators, indicators, "2pl"), theta, weights)
    vector = np.random.default_rng(3).normal(0.3, 0.6, 15)
    value, slope = (lambda at, part=part: graded._loss(at, data, known_options, model)[part]
                    for part in (0, 1))  # fmt: skip
    assert check_grad(value, slope, vector) < 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_with_two_options_both_models_are_the_two_parameter_model(model):
    parameters = truth(6)
    parameters.loc[2, "discrimination"] *= -1
    x = drawn(parameters, 400)
    x = x.astype(float).mask(np.random.default_rng(1).random(x.shape) < 0.1)
    binary = irt.fit(x, "2pl", errors=False)
    ours = graded.fit(x, model)
    assert numbers(ours) == pytest.approx(
        binary[["discrimination", "difficulty"]].to_numpy(), abs=1e-4
    )
    theirs = irt.abilities(x, binary)
    assert graded.abilities(x, ours).to_numpy() == pytest.approx(theirs.to_numpy(), abs=1e-4)
    likelihood = irt.compare(x, ("2pl",)).loc["2pl", ["log_likelihood", "parameters"]]
    row = graded.score_reliability(x, ours)[["log_likelihood", "parameters"]]
    assert row.to_numpy() == pytest.approx(likelihood.to_numpy(dtype=float), abs=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_known_parameters_and_the_reliability_of_known_abilities_are_recovered(model):
    slopes, places = known(8, 4)
    slopes[3] *= -1
    places[3] = places[3, ::-1]  # thresholds of a reversed item fall
    x = simulated(4000, model, slopes, places)
    fitted = graded.fit(x, model)
    assert np.abs(numbers(fitted)[:, 0] - slopes).max() < 0.2
    assert np.abs(numbers(fitted)[:, 1:] - places).max() < 0.25
    theta = np.random.default_rng(1).standard_normal(4000)
    scores = graded.abilities(x, fitted)
    agreement = np.corrcoef(theta, scores["theta"])[0, 1] ** 2
    assert graded.score_reliability(x, fitted)["reliability"] == pytest.approx(agreement, abs=0.02)
    covered = (np.abs(scores["theta"] - theta) < 1.96 * scores["se"]).mean()
    assert covered == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("model", "theirs"), [("graded", "GRM"), ("partial credit", "GPCM")])
@pytest.mark.parametrize("source", ["simulated", "phq9", "gad7"])
def test_fits_are_those_of_the_library_mirt_where_its_limits_are_not_reached(model, theirs, source):
    import mirt

    x = _keyed(source, {"phq9": "students_bmi", "gad7": "students_mexico"}[source]) if (
        source != "simulated") else simulated(800, model, *known(7, 5))  # fmt: skip
    result = mirt.fit_mirt(x, model=theirs, compute_standard_errors=False, **FINE)
    places = result.model.parameters["thresholds" if model == "graded" else "steps"]
    known_ones = np.column_stack([result.model.parameters["discrimination"], places])
    inside = (known_ones[:, 0] < 4.9) & (np.abs(places).max(axis=1) < 5.9)
    assert inside.sum() > 5
    ours = graded.fit(x, model)
    near = 0.04 if source == "gad7" and model == "graded" else 0.01  # an item is held at 5 there
    assert numbers(ours)[inside] == pytest.approx(known_ones[inside], abs=near)


def test_estimates_are_those_of_a_grid_with_steps_of_a_quarter(monkeypatch):
    for model in MODELS:
        x = simulated(300, model, *known(10, 5))
        fitted = graded.fit(x, model)
        with monkeypatch.context() as patch:
            patch.setattr(graded, "_ability_grid", lambda n: marginal._ability_grid(16 * n + 2500))
            finer = graded.fit(x, model)
        assert numbers(fitted) == pytest.approx(numbers(finer), abs=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_posterior_variances_add_up_to_the_populations_at_the_maximum(model):
    x = simulated(300, model, *known(5, 3))
    scores = graded.abilities(x, graded.fit(x, model))
    assert scores["theta"].mean() == pytest.approx(0, abs=1e-4)
    assert scores["theta"].var(ddof=0) + (scores["se"] ** 2).mean() == pytest.approx(1, abs=1e-4)


ANSWERS = simulated(120, "graded", *known(4, 3))


@given(
    values=st.lists(st.integers(-50, 50), min_size=3, max_size=3, unique=True),
    order=st.permutations(range(120)),
    model=st.sampled_from(MODELS),
)
@settings(max_examples=6, deadline=None)
def test_only_the_order_of_options_counts_and_no_order_of_rows(values, order, model):
    fitted = graded.fit(ANSWERS, model)
    other = graded.fit(ANSWERS.iloc[order].replace(dict(enumerate(sorted(values)))), model)
    assert numbers(other) == pytest.approx(numbers(fitted), abs=1e-3)
    names = [f"{graded._WORDS[model]}{value}" for value in sorted(values)[1:]]
    assert list(other) == ["discrimination", *names, "at_limit"]


@pytest.mark.parametrize("model", MODELS)
def test_reversed_items_have_the_other_slope_and_doubled_rows_the_same_estimates(model):
    fitted = numbers(graded.fit(ANSWERS, model))
    doubled = numbers(graded.fit(pd.concat([ANSWERS, ANSWERS]), model))
    assert doubled == pytest.approx(fitted, abs=1e-3)
    one = numbers(graded.fit(ANSWERS.assign(i2=2 - ANSWERS["i2"]), model))
    assert one[2] == pytest.approx(fitted[2, [0, 2, 1]] * [-1, 1, 1], abs=1e-3)
    assert one[[0, 1, 3]] == pytest.approx(fitted[[0, 1, 3]], abs=1e-3)
    # if all are reversed, abilities change their sign, so that most slopes stay positive
    every = numbers(graded.fit(2 - ANSWERS, model))
    assert every == pytest.approx(fitted[:, [0, 2, 1]] * [1, -1, -1], abs=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_options_that_nobody_chose_and_constant_items_leave_gaps_and_change_nothing_else(model):
    word = graded._WORDS[model]
    more = ANSWERS.assign(i1=ANSWERS["i1"].replace({1: 2, 2: 3}), same=7)
    fitted = graded.fit(more, model)
    assert list(fitted) == ["discrimination", f"{word}1", f"{word}2", f"{word}3", "at_limit"]
    assert fitted.loc["i1"].isna().tolist() == [False, True, False, False, False]
    assert fitted.loc["same"].isna().tolist() == [True] * 4 + [False]
    plain = graded.fit(ANSWERS, model)
    assert numbers(fitted)[[0, 2, 3], :3] == pytest.approx(numbers(plain)[[0, 2, 3]], abs=1e-3)
    both = graded.abilities(more, fitted), graded.abilities(ANSWERS, plain)
    assert both[0].to_numpy() == pytest.approx(both[1].to_numpy(), abs=1e-3)
    # an option that the fit has not seen counts as the next lower one
    unseen = graded.abilities(more.assign(i1=more["i1"].replace({0: 1, 3: 9})), fitted)
    assert unseen.to_numpy() == pytest.approx(both[0].to_numpy())


def test_respondents_without_answers_are_at_the_mean_and_do_not_count():
    fitted = graded.fit(ANSWERS)
    empty = pd.concat([ANSWERS, pd.DataFrame(np.nan, ["nobody"], ANSWERS.columns)])
    assert numbers(graded.fit(empty)) == pytest.approx(numbers(fitted), abs=1e-3)
    assert graded.abilities(empty, fitted).loc["nobody"].tolist() == pytest.approx([0, 1])
    rows = [graded.score_reliability(table, fitted) for table in (empty, ANSWERS)]
    assert rows[0].to_numpy() == pytest.approx(rows[1].to_numpy())


def test_estimates_that_run_away_are_held_and_named():
    # two items say the same: their slopes have no finite maximum
    rng = np.random.default_rng(5)
    first = rng.integers(0, 3, 200)
    x = pd.DataFrame({"a": first, "b": first, "c": rng.integers(0, 3, 200)})
    x["d"] = (first + rng.integers(0, 3, 200)) // 2
    fitted = graded.fit(x)
    assert fitted.index[fitted["at_limit"]].tolist() == ["a", "b"]
    assert fitted.loc[["a", "b"], "discrimination"].max() == pytest.approx(8)
    # So does one item in people's answers to six items of SOC-13, but not in those to all thirteen.
    # Without a limit its slope depends on the steps of the grid, and so does the likelihood.
    people = _keyed("soc13", "adults_peru")
    six = graded.fit(people.iloc[:, :6])
    assert six["discrimination"].max() == pytest.approx(8)
    assert six.index[six["at_limit"]].tolist() == ["soc13_3"]
    assert not graded.fit(people)["at_limit"].any()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (ANSWERS.replace({0: "never", 1: "at times", 2: "often"}), "must be numbers"),
        (ANSWERS * 0, "graded needs three items that vary, got 0"),
        (ANSWERS[["i0", "i1"]], "three items that vary, got 2"),
        (ANSWERS.assign(i1=np.nan), "No one answered 'i1'"),
        (ANSWERS.assign(i1=np.arange(120) / 7), "'i1' has 120 different answers"),
        (ANSWERS.assign(i1=np.inf), "finite"),
        (ANSWERS.iloc[:0], "empty"),
        (ANSWERS.to_numpy(), "DataFrame"),
        (ANSWERS.set_axis(["a", "a", "b", "c"], axis=1), "two columns 'a'"),
    ],
)
def test_tables_that_cannot_be_fitted_are_refused_with_the_reason(answers, message):
    with pytest.raises(ParameterError, match=message):
        graded.fit(answers)


def test_other_models_and_other_tables_of_parameters_are_refused():
    with pytest.raises(ParameterError, match="model must be one of graded, partial credit"):
        graded.fit(ANSWERS, "rasch")
    fitted = graded.fit(ANSWERS)
    with pytest.raises(ParameterError, match="'i3' lacks answers or parameters"):
        graded.abilities(ANSWERS.drop(columns="i3"), fitted)
    for wrong in (irt.fit((ANSWERS > 0).astype(int)), fitted[["discrimination"]]):
        with pytest.raises(ParameterError, match=r"result of graded.fit\(\)"):
            graded.abilities(ANSWERS, wrong)
    for wrong in (ANSWERS, None, fitted.drop(columns="discrimination")):
        with pytest.raises(ParameterError, match=r"no column 'disc|must be a DataFrame"):
            graded.abilities(ANSWERS, wrong)
