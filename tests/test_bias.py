"""Trait, bias and error between respondents: by hand, in closed form, and as the authors do it."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures import bias, printed, reliability, styles
from psychometrics.questionnaires import load_questionnaire
from tests.test_scoring import own_questionnaire

FIFTY = load_questionnaire("ipip50")
KEYS = np.array([1, 1, 1, 1, 1, -1, -1, -1, -1, -1])


def of_model(rng, n, trait, direction, error, keys=KEYS):
    """Raw answers of n respondents by a trait, a bias and errors with these variances."""
    traits = rng.normal(0, np.sqrt(trait), (n, 1))
    biases = rng.normal(0, np.sqrt(direction), (n, 1))
    return traits * keys + biases + rng.normal(0, np.sqrt(error), (n, len(keys)))


def one_scale(reverse=("c",), options=5, items="abc"):
    """A questionnaire with one scale of these items."""
    named = [{"id": one, "text": one.upper()} for one in items]
    scale = {"id": "own", "title": "Own", "items": "all", "reverse": list(reverse)}
    levels = [{"value": i, "label": f"option {i}"} for i in range(1, options + 1)]
    return own_questionnaire(items=named, scales=[scale], options=levels)


def scores(values, questionnaire, **more):
    """Item scores of a table of respondents by items."""
    ids = [item.id for item in questionnaire.items]
    wide = pd.DataFrame(np.asarray(values, dtype=float), columns=ids)
    wide["respondent_id"] = more.get("respondent_id", [f"r{n}" for n in range(len(wide))])
    wide["run"] = more.get("run", 1)
    wide = wide.assign(questionnaire=questionnaire.id, mode="human")
    return wide.melt(["respondent_id", "questionnaire", "mode", "run"], ids, "item_id", "score")


def statistic(table, name):
    return table[table["statistic"] == name].set_index("scale")


def as_the_authors_do(items, questionnaire, scale):
    """The share, as ``pi_b_from_data`` of Meyer, Garcia and Wulff (2026) computes it."""
    keys = pd.Series(questionnaire.keys(scale))
    part = items[items["item_id"].isin(keys.index)]
    reverse = part["item_id"].map(keys) < 0
    plain_means = part[~reverse].groupby("respondent_id")["score"].mean()
    reverse_means = part[reverse].groupby("respondent_id")["score"].mean()
    both = plain_means.index.intersection(reverse_means.index)
    return (1 + np.corrcoef(plain_means.loc[both], reverse_means.loc[both])[0, 1]) / 2


def test_shares_of_a_small_table_are_worked_by_hand():
    # Plain means 1, 2, 4, 5 and reversed means 4, 5, 1, 2: deviations ∓2, ∓1, ±1, ±2, so that the
    # products -2 · 1 - 1 · 2 - 1 · 2 - 2 · 1 add up to -8, the squares to 10 each: r = -0.8.
    plain, other = np.array([1.0, 2, 4, 5]), np.array([4.0, 5, 1, 2])
    sheet = np.stack([plain, plain, other, other], axis=1)
    found = bias.bias_statistics(np.cov(sheet.T), [1, 1, -1, -1]).iloc[0]
    assert found["bias"] == pytest.approx(0.1)
    assert found[["trait_part", "bias_part", "error_part"]].tolist() == pytest.approx([0.9, 0.1, 0])
    # An item's variance is 10/3, 40/3 in all; the sum of keyed items varies by 8 · 10/3 within
    # kinds and 8 · 8/3 between them, that of raw ones by the difference: 144/3 and 16/3.
    assert found["alpha"] == pytest.approx(4 / 3 * (1 - 40 / 144))
    assert found["alpha_raw"] == pytest.approx(4 / 3 * (1 - 40 / 16))


def test_shares_are_those_of_the_authors_code():
    values = np.clip(
        np.round(of_model(np.random.default_rng(1), 30, 0.2, 0.6, 1, [1] * 50) + 3), 1, 5
    )
    items = scores(values, FIFTY)
    found = statistic(bias.bias_shares(items, FIFTY, draws=2), "bias")["value"]
    for scale in FIFTY.scales:
        assert found[scale.id] == pytest.approx(as_the_authors_do(items, FIFTY, scale))


def test_nulls_and_intervals_are_drawn_with_the_seed_0_unless_told_otherwise():
    values = np.random.default_rng(3).integers(1, 6, (12, 3))
    items = scores(values, one_scale())
    drawn = [bias.bias_shares(items, one_scale(), draws=9, **of) for of in ({}, {"seed": 0})]
    pd.testing.assert_frame_equal(*drawn)
    assert not drawn[0].equals(bias.bias_shares(items, one_scale(), draws=9, seed=1))


def test_the_disattenuated_share_is_spearmans_with_the_alphas_of_the_two_kinds():
    values = of_model(np.random.default_rng(2), 60, 1, 0.4, 2)
    found = bias.bias_statistics(np.cov(values.T), KEYS).iloc[0]
    plain, other = pd.DataFrame(values[:, :5]), pd.DataFrame(values[:, 5:])
    r = np.corrcoef(plain.mean(axis=1), other.mean(axis=1))[0, 1]
    reliable = reliability.alpha(plain)["alpha"] * reliability.alpha(other)["alpha"]
    assert found["bias"] == pytest.approx((1 + r) / 2)
    assert found["bias_disattenuated"] == pytest.approx((1 + r / np.sqrt(reliable)) / 2)


@pytest.mark.parametrize(("trait", "direction"), [(1, 0.3), (0.2, 0.8), (0.5, 0), (0, 0.5)])
def test_parts_recover_the_variances_behind_the_answers(trait, direction):
    values = of_model(np.random.default_rng(3), 40_000, trait, direction, 2)
    found = bias.bias_statistics(np.cov(values.T), KEYS).iloc[0]
    whole = trait + direction + 2 / 5  # of the mean of five items
    parts = [trait / whole, direction / whole, 2 / 5 / whole]
    assert found[["trait_part", "bias_part", "error_part"]].tolist() == pytest.approx(
        parts, abs=0.02
    )
    assert found["bias_disattenuated"] == pytest.approx(direction / (trait + direction), abs=0.02)
    # half of the error counts as bias where it is not removed
    assert found["bias"] == pytest.approx(parts[1] + parts[2] / 2, abs=0.02)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 5), st.floats(-3, 3))
def test_shares_do_not_depend_on_unit_or_direction(seed, unit, shift):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(12, 10))
    first = bias.bias_statistics(np.cov(values.T), KEYS).iloc[0]
    scaled = bias.bias_statistics(np.cov((unit * values + shift).T), KEYS).iloc[0]
    turned = bias.bias_statistics(np.cov(-values.T), KEYS).iloc[0]
    other_key = bias.bias_statistics(np.cov(values.T), -KEYS).iloc[0]
    for other in (scaled, turned, other_key):
        assert other.to_numpy() == pytest.approx(first.to_numpy(), nan_ok=True)
    assert 0 <= first["bias"] <= 1
    assert first[["trait_part", "bias_part", "error_part"]].sum() == pytest.approx(1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_reversing_the_answers_to_one_kind_swaps_trait_and_bias(seed):
    values = np.random.default_rng(seed).normal(size=(12, 10))
    first = bias.bias_statistics(np.cov(values.T), KEYS).iloc[0]
    second = bias.bias_statistics(np.cov((values * KEYS).T), KEYS).iloc[0]
    assert second["bias"] == pytest.approx(1 - first["bias"])
    assert second["trait_part"] == pytest.approx(first["bias_part"])
    assert second["alpha"] == pytest.approx(first["alpha_raw"])


def test_answers_at_random_have_half_as_share_with_the_spread_of_the_formula():
    # every way of dealing four answers out: the mean and the variance are exact
    plain, other = np.array([1.0, 2, 4, 9]), np.array([3.0, 0, 5, 5])
    shares = [
        (1 + np.corrcoef(plain, other[list(order)])[0, 1]) / 2
        for order in itertools.permutations(range(4))
    ]
    found = bias.random_share(4)
    assert np.mean(shares) == pytest.approx(found["share"])
    assert np.std(shares) == pytest.approx(found["sd"]) == pytest.approx(1 / (2 * np.sqrt(3)))

    rng = np.random.default_rng(4)
    sheets = rng.integers(1, 6, (4000, 56, 10))
    drawn = bias.bias_statistics(np.stack([np.cov(sheet.T) for sheet in sheets]), KEYS)["bias"]
    found = bias.random_share(56)
    assert found.round(2)[["low", "high"]].tolist() == [0.37, 0.63]
    assert drawn.mean() == pytest.approx(0.5, abs=0.004)
    assert drawn.std() == pytest.approx(found["sd"], rel=0.04)
    assert drawn.quantile([0.025, 0.975]).tolist() == pytest.approx(
        found[["low", "high"]], abs=0.01
    )


@pytest.mark.parametrize("name", ["ipip50", "ipip20", "esteem10"])
def test_habits_reach_the_share_and_the_alpha_of_the_formula(name):
    questionnaire = load_questionnaire(name, texts=False)
    answers = styles.empty_answers(questionnaire, "habit", respondents=6000, runs=1)
    wide = answers.pivot(index="respondent_id", columns="item_id", values="value")
    expected = bias.orthogonality(questionnaire).set_index("scale")
    for scale in questionnaire.scales:
        keys = questionnaire.keys(scale)
        found = bias.bias_statistics(wide[list(keys)].cov(), keys.values()).iloc[0]
        row = expected.loc[scale.id]
        assert found["bias"] == pytest.approx(row["bias_habit"], abs=0.02)
        share = 1 / (1 + len(questionnaire.choices(scale.items[0])))
        habit = printed.alpha_of_habit(share, len(keys), len(scale.reverse))
        assert found["alpha"] == pytest.approx(habit, abs=0.06)


def test_orthogonality_is_the_share_of_the_rarer_kind():
    found = bias.orthogonality([one_scale(), one_scale("abc"), one_scale(())])
    assert found["orthogonality"].tolist() == pytest.approx([1 / 3, 0, 0])
    assert found["reversed"].tolist() == [1, 3, 0]
    assert found["bias_habit"].isna().tolist() == [False, True, True]
    # one reversed of three items: r = sqrt(2/7 · 1/6)
    assert found["bias_habit"].iloc[0] == pytest.approx((1 + np.sqrt(2 / 42)) / 2)
    with pytest.raises(ParameterError, match="no scale"):
        bias.orthogonality("two_axes")


def test_nulls_hold_what_they_are_made_of():
    answers = styles.empty_answers(FIFTY, "random", respondents=40, runs=1, seed=5)
    found = bias.bias_shares(pm.item_scores(answers), FIFTY, draws=150, seed=1)
    shares = statistic(found, "bias")
    chance = bias.random_share(40)
    for null in ("random", "middle", "ends", "permuted"):
        assert shares[null].to_numpy() == pytest.approx(0.5, abs=0.03), null
        assert shares[f"{null}_low"].to_numpy() == pytest.approx(chance["low"], abs=0.06), null
        assert shares[f"{null}_high"].to_numpy() == pytest.approx(chance["high"], abs=0.06), null
    expected = bias.orthogonality(FIFTY).set_index("scale")
    assert shares["habit"].to_numpy() == pytest.approx(expected["bias_habit"], abs=0.03)
    assert (shares["agreeing"] > 0.65).all()
    parts = found[found["statistic"].isin(["trait_part", "bias_part", "error_part"])]
    random = parts.groupby("statistic")["random"].mean()
    assert random["error_part"] == pytest.approx(1, abs=0.1)
    assert statistic(found, "alpha_raw")["agreeing"].min() > 0.5


def test_a_null_has_as_many_runs_as_there_are_and_a_habit_that_stays():
    who = np.repeat(["a", "b", "c", "d", "e", "f"], 50)
    values = np.random.default_rng(6).integers(1, 6, (300, 3))
    items = scores(values, one_scale(), respondent_id=who, run=np.tile(range(50), 6))
    found = bias.bias_shares(items, one_scale(), draws=60)
    assert (found["n"] == 6).all()
    assert (found["rows"] == 300).all()
    # fifty runs by one habit measure it almost without error
    share = found.set_index("statistic").loc["bias"]
    assert share["habit"] > 0.9
    assert share["random"] == pytest.approx(0.5, abs=0.12)


def test_runs_of_a_model_are_averaged_before_they_are_respondents():
    rng = np.random.default_rng(7)
    models = rng.integers(1, 6, (8, 3)).astype(float)
    runs = np.repeat(models, 4, axis=0)
    of = {"respondent_id": np.repeat([f"m{n}" for n in range(8)], 4), "run": [1, 2, 3, 4] * 8}
    several = bias.bias_shares(scores(runs, one_scale(), **of), one_scale(), draws=2)
    once = bias.bias_shares(scores(models, one_scale()), one_scale(), draws=2)
    columns = ["value", "low", "high", "n"]
    pd.testing.assert_frame_equal(several[columns], once[columns])


def test_answers_to_prompts_have_shares_and_only_the_null_of_permuted_respondents():
    own = load_questionnaire("soc13")
    ids = [item.id for item in own.items]
    wide = pd.DataFrame(np.random.default_rng(12).normal(size=(12, len(ids))), columns=ids)
    long = wide.rename_axis("respondent_id").reset_index()
    long = long.melt("respondent_id", ids, "item_id", "score").assign(questionnaire="soc13")
    shares = statistic(bias.bias_shares(long, own, draws=30), "bias")
    keys = own.keys(own.scales[0])
    assert shares["value"].iloc[0] == pytest.approx(
        bias.bias_statistics(wide[list(keys)].cov(), keys.values())["bias"].iloc[0]
    )
    assert 0.3 < shares["permuted"].iloc[0] < 0.7
    assert shares["random"].isna().all()


def test_what_cannot_be_known_is_missing():
    rng = np.random.default_rng(8)
    one_kind = bias.bias_shares(
        scores(rng.normal(3, 0.5, (9, 3)), one_scale(())), one_scale(()), draws=2
    )
    table = one_kind.set_index("statistic")["value"]
    assert table.index[table.isna()].tolist() == ["bias", "bias_disattenuated", "trait_part",
                                                  "bias_part", "error_part"]  # fmt: skip
    assert table["alpha"] == table["alpha_raw"]
    # one item of a kind says nothing about its error
    single = bias.bias_shares(scores(rng.normal(3, 0.5, (9, 3)), one_scale()), one_scale(), draws=2)
    table = single.set_index("statistic")["value"]
    assert table.index[table.isna()].tolist() == ["bias_disattenuated", "trait_part", "bias_part",
                                                  "error_part"]  # fmt: skip
    for rows in (1, 2):
        few = bias.bias_shares(scores(np.full((rows, 3), 2.0), one_scale()), one_scale(), draws=2)
        assert few["value"].isna().all()
    alike = bias.bias_shares(scores(np.full((6, 3), 5.0), one_scale()), one_scale(), draws=2)
    assert alike[["value", "low", "high"]].isna().all(axis=None)


def test_a_wrong_setting_is_named():
    items = scores(np.full((6, 3), 5.0), one_scale())
    with pytest.raises(ParameterError, match="draws"):
        bias.bias_shares(items, one_scale(), draws=0)
    with pytest.raises(ParameterError, match="keys"):
        bias.bias_statistics(np.eye(3), [1, -1])
    with pytest.raises(ParameterError, match="at least three"):
        bias.random_share(2)


@pytest.mark.parametrize(("people", "trait", "direction"), [(18, 1, 0.3), (40, 0.3, 1)])
def test_intervals_of_the_share_hold_it_as_often_as_they_say(people, trait, direction):
    rng, samples = np.random.default_rng(9), 80
    truth = (direction + 0.2) / (trait + direction + 0.4)
    held = 0
    for _ in range(samples):
        values = of_model(rng, people, trait, direction, 2)
        row = bias._add_intervals(values, KEYS).loc["bias"]
        held += row["low"] <= truth <= row["high"]
    assert held / samples >= 0.925 - 3 * np.sqrt(0.925 * 0.075 / samples)


def test_variance_within_and_between_models_is_the_intraclass_correlation_of_pingouin():
    rng = np.random.default_rng(10)
    values = np.clip(np.round(3 + rng.normal(size=(6, 1, 1)) + rng.normal(size=(6, 5, 3))), 1, 5)
    of = {"respondent_id": np.repeat([f"m{n}" for n in range(6)], 5), "run": [*range(5)] * 6}
    row = bias.runs_and_units(scores(values.reshape(30, 3), one_scale(), **of), one_scale()).iloc[0]

    keyed = values.copy()
    keyed[..., 2] = 6 - keyed[..., 2]
    long = pd.DataFrame({"score": keyed.mean(axis=2).ravel(), "model": of["respondent_id"],
                         "run": of["run"]})  # fmt: skip
    with warnings.catch_warnings(action="ignore"):  # pingouin's own, of pandas
        theirs = pingouin.intraclass_corr(long, "model", "run", "score").iloc[0]
    assert row["share"] == pytest.approx(theirs["ICC"])
    interval = next(theirs[name] for name in theirs.index if name.startswith("CI95"))
    assert [row["low"], row["high"]] == pytest.approx(interval, abs=0.006)
    assert row["effective"] == pytest.approx(30 / (1 + 4 * max(row["share"], 0)))
    assert (row["units"], row["rows"]) == (6, 30)


def test_a_thousand_runs_of_two_unlike_models_are_worth_little_more_than_two_respondents():
    rng = np.random.default_rng(11)
    values = np.r_[rng.integers(1, 3, (500, 3)), rng.integers(4, 6, (500, 3))]
    values[:, 2] = 6 - values[:, 2]
    of = {"respondent_id": ["m1"] * 500 + ["m2"] * 500, "run": [*range(500)] * 2}
    row = bias.runs_and_units(scores(values, one_scale(), **of), one_scale()).iloc[0]
    assert row["rows"] == 1000
    assert 2 < row["effective"] < 2.2
    once = bias.runs_and_units(scores(values[:9], one_scale()), one_scale()).iloc[0]
    assert once[["between", "within", "share", "effective"]].isna().all()


def test_unequal_numbers_of_runs_are_weighted_by_hand():
    # Scores 0, 1 | 2, 3, 4 on the scale from -1 to 1 by a factor: means 0.5 and 3, of all 2.
    # MSb = 2 · 1.5² + 3 · 1² = 7.5; MSw = (0.5 + 2) / 3 = 0.8333; n0 = 5 - 13/5 = 2.4
    series = pd.Series([0.0, 1, 2, 3, 4], ["a", "a", "b", "b", "b"])
    found = bias._variance_components(series)
    assert found["within"] == pytest.approx(2.5 / 3)
    assert found["between"] == pytest.approx((7.5 - 2.5 / 3) / 2.4)


def test_a_disattenuated_share_is_at_most_one():
    covariances = np.full((4, 4), 0.5)
    covariances[[0, 1, 2, 3], [1, 0, 3, 2]] = 0.2  # less alike within a direction than between
    np.fill_diagonal(covariances, 1.0)
    found = bias.bias_statistics(covariances, [1, 1, -1, -1]).iloc[0]
    assert found["bias_disattenuated"] == 1
    assert found["bias"] < 1
