from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from psychometrics.exceptions import ParameterError
from psychometrics.measures import irt
from psychometrics.measures import marginal_likelihood as marginal


def truth(n: int = 12, seed: int = 0, guessing: float = 0.0, slopes: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "discrimination": rng.uniform(0.7, 1.8, n) if slopes else np.ones(n),
            "difficulty": rng.normal(0, 1, n),
            "guessing": guessing,
        }
    )


def drawn(parameters: pd.DataFrame, respondents: int = 1500, seed: int = 1) -> pd.DataFrame:
    """0/1 answers of respondents with standard normal abilities, shape (R, I)."""
    rng = np.random.default_rng(seed)
    p = irt.probability(rng.standard_normal(respondents), parameters)
    return pd.DataFrame((rng.random(p.shape) < p).astype(np.int8), columns=parameters.index)


@pytest.mark.parametrize("gaps", [0, 0.2])
@pytest.mark.parametrize("model", irt._MODELS)
def test_the_likelihood_is_that_of_the_written_sum_and_its_gradient_is_its_slope(model, gaps):
    rng = np.random.default_rng(5)
    x = drawn(truth(4), 30).astype(float).mask(rng.random((30, 4)) < gaps)
    filled, observed = marginal._fill_gaps(x)
    theta, weights = marginal._ability_grid(4)
    sizes = {"rasch": 4, "1pl": 5, "2pl": 8, "3pl": 12}
    vector = rng.normal(0.5, 0.7, sizes[model])

    data = marginal._Data(*marginal._patterns(filled, observed, model), theta, weights)

    def written(at):
        intercept, slope, guess = marginal._unpack(at, 4, model)
        p = guess + (1 - guess) / (1 + np.exp(-(theta[:, None] * slope + intercept)))
        each = np.where(x.to_numpy()[:, None] == 1, p, 1 - p)
        each = np.where(x.isna().to_numpy()[:, None], 1.0, each)
        return -np.log(each.prod(axis=2) @ weights).sum()

    assert marginal._loss(vector, data, model)[0] == pytest.approx(written(vector), rel=1e-12)
    moves = 1e-5 * np.eye(len(vector))
    slopes = [(written(vector + move) - written(vector - move)) / 2e-5 for move in moves]
    assert marginal._loss(vector, data, model)[1] == pytest.approx(slopes, abs=1e-6)


def _minus_log_likelihood(slopes, difficulties, x):
    """Return minus the marginal log likelihood of the 2PL, on a fine grid of its own."""
    theta = np.linspace(-9, 9, 2001)
    density = stats.norm.pdf(theta) * (theta[1] - theta[0])
    p = 1 / (1 + np.exp(-slopes * (theta[:, None] - difficulties)))
    each = np.where(x[:, None] == 1, p, 1 - p).prod(axis=2)
    return -np.log(each @ density).sum()


def _errors_by_curvature(loss, at, step=1e-3):
    """Return standard errors from the second differences of minus a log likelihood."""
    moves = step * np.eye(len(at))
    curvature = [
        [loss(at + a + b) - loss(at + a - b) - loss(at - a + b) + loss(at - a - b) for b in moves]
        for a in moves
    ]
    return np.sqrt(np.diag(np.linalg.inv(np.array(curvature) / (4 * step**2))))


def test_standard_errors_are_the_curvature_in_slopes_and_difficulties():
    known = pd.DataFrame({"discrimination": [0.8, 1.5, 1.1, 1.3], "guessing": 0.0})
    known["difficulty"] = [-1.6, 1.2, 0.3, 2.0]
    x = drawn(known, 600)
    values = x.to_numpy()

    fitted = irt.fit(x, "2pl")
    at = fitted[["discrimination", "difficulty"]].to_numpy().T.ravel()
    errors = _errors_by_curvature(
        lambda place: _minus_log_likelihood(place[:4], place[4:], values), at
    )
    ours = fitted[["se_discrimination", "se"]].to_numpy().T.ravel()
    assert ours == pytest.approx(errors, rel=1e-3)

    fitted = irt.fit(x, "1pl")
    at = np.r_[fitted["discrimination"].iloc[0], fitted["difficulty"]]
    errors = _errors_by_curvature(
        lambda place: _minus_log_likelihood(place[:1], place[1:], values), at
    )
    assert fitted["se"].to_numpy() == pytest.approx(errors[1:], rel=1e-3)


def test_the_log_likelihood_is_that_of_a_normal_population():
    x = drawn(truth(4, slopes=False), 50)
    fitted = irt.fit(x)
    ones = np.ones(4)
    expected = -_minus_log_likelihood(ones, fitted["difficulty"].to_numpy(), x.to_numpy())
    row = irt.compare(x, ("rasch",)).loc["rasch"]
    assert row["log_likelihood"] == pytest.approx(expected, abs=1e-4)
    assert row["aic"] == pytest.approx(2 * 4 - 2 * expected, abs=1e-3)
    assert marginal._ability_grid(4)[1].sum() == pytest.approx(1)


def test_items_without_variance_are_at_infinity_and_change_nothing_else():
    x = drawn(truth(5), 200)
    plain, more = irt.fit(x), irt.fit(x.assign(all=1, none=0))
    assert more["difficulty"].iloc[:5].to_numpy() == pytest.approx(plain["difficulty"], abs=1e-6)
    assert more.loc["all", "difficulty"] == -np.inf
    assert more.loc["none", "difficulty"] == np.inf
    assert irt.probability(np.array([-3.0, 3.0]), more).T[-2:].tolist() == [[1, 1], [0, 0]]
    compared = [irt.compare(t, ["rasch", "1pl"]) for t in (x, x.assign(all=1, none=0))]
    assert compared[0].to_numpy(float) == pytest.approx(
        compared[1].to_numpy(float), abs=1e-4, nan_ok=True
    )
    assert compared[1]["parameters"].tolist() == [5, 6], "of the five items that vary"
    assert (irt.information(np.array([0.0]), more)[0, -2:] == 0).all()


@pytest.mark.parametrize(("ours", "theirs"), [("rasch", "1PL"), ("2pl", "2PL")])
def test_fits_are_mirts_where_mirts_limits_are_not_reached(ours, theirs):
    import mirt

    x = drawn(truth())
    known = mirt.fit_mirt(
        x.to_numpy().astype(int), model=theirs, n_quadpts=61, tol=1e-6,
        compute_standard_errors=False,
    ).model.parameters  # fmt: skip
    found = irt.fit(x, ours)
    assert found["difficulty"].to_numpy() == pytest.approx(known["difficulty"].ravel(), abs=1e-3)
    assert found["discrimination"].to_numpy() == pytest.approx(
        known["discrimination"].ravel(), abs=1e-3
    )


def test_2pl_recovers_slopes_of_either_sign():
    parameters = truth(10)
    parameters.loc[[2, 7], "discrimination"] *= -1
    found = irt.fit(drawn(parameters, 4000), "2pl")
    assert (
        np.sign(found["discrimination"]).tolist() == np.sign(parameters["discrimination"]).tolist()
    )
    assert np.abs(found["discrimination"] - parameters["discrimination"]).max() < 0.35
    theta = np.linspace(-2, 2, 17)
    gap = irt.probability(theta, found) - irt.probability(theta, parameters)
    assert np.abs(gap).max() < 0.05  # about three standard errors of a share of 1,000


def test_3pl_recovers_curves_with_guessing():
    parameters = truth(12, guessing=0.25).assign(discrimination=1.6)
    found = irt.fit(drawn(parameters, 5000), "3pl")
    theta = np.linspace(-1.5, 2, 15)
    gap = irt.probability(theta, found) - irt.probability(theta, parameters)
    assert np.abs(gap).max() < 0.08
    assert found["guessing"].median() == pytest.approx(0.25, abs=0.08)


def test_information_is_the_expected_curvature():
    parameters = truth(4, guessing=0.2)
    theta, step = np.array([-1.0, 0.3, 1.2]), 1e-4
    p = irt.probability(theta, parameters)
    slope = (
        irt.probability(theta + step, parameters) - irt.probability(theta - step, parameters)
    ) / (2 * step)
    assert irt.information(theta, parameters) == pytest.approx(slope**2 / (p * (1 - p)), rel=1e-5)


def test_abilities_follow_the_true_ones_and_know_their_error():
    rng = np.random.default_rng(3)
    parameters = truth(30)
    theta = rng.standard_normal(800)
    p = irt.probability(theta, parameters)
    found = irt.abilities(pd.DataFrame((rng.random(p.shape) < p).astype(int)), parameters)
    inside = np.abs(found["theta"] - theta) < 1.96 * found["se"]
    assert inside.mean() == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 800))


def test_the_likelihood_ratio_keeps_a_true_model_and_drops_a_false_one():
    right = irt.compare(drawn(truth(8, slopes=False), 600), ("1pl", "2pl"))
    wrong = irt.compare(drawn(truth(8).assign(discrimination=[0.4, 2.5] * 4), 600), ("1pl", "2pl"))
    assert right.loc["2pl", "p"] > 0.01 > wrong.loc["2pl", "p"]
    assert right["parameters"].tolist() == [9, 16]
    row = right.loc["1pl"]
    assert row["aic"] == pytest.approx(18 - 2 * row["log_likelihood"])
    assert row["bic"] == pytest.approx(9 * np.log(600) - 2 * row["log_likelihood"])


def test_item_fit_names_the_item_that_is_noise():
    x = drawn(truth(10, slopes=False), 500)
    x[4] = np.random.default_rng(9).integers(0, 2, 500)
    found = irt.item_fit(x, irt.fit(x, "1pl"), simulations=450)
    assert found["infit"].idxmax() == 4
    assert found.loc[4, "p_fdr"] < 0.05
    assert (found.drop(index=4)["infit"] < 1.1).all()


def test_a_weak_common_slope_is_not_mistaken_for_none():
    # From a start at 1 alone the search overshoots to zero, where the slope's gradient is zero.
    from psychometrics_book.studies import diagnostic

    for category, least in (("RLS", 0.2), ("PS", 0.3), ("WK", 0.1)):
        x = diagnostic.answers("transformers", category)
        found = irt.fit(x, "1pl")
        slope = found["discrimination"].iloc[0]
        assert slope > least
        assert found["se_discrimination"].between(0.01, 0.3).all()
        fits = [irt.compare(x, (model,))["log_likelihood"].iloc[0] for model in ("1pl", "rasch")]
        share = x.mean()
        alone = len(x) * (share * np.log(share) + (1 - share) * np.log(1 - share)).sum()
        assert fits[0] > max(fits[1], alone)


def test_abilities_from_hundreds_of_items_do_not_fall_between_the_nodes():
    parameters = pd.DataFrame(
        {"discrimination": 1.0, "difficulty": np.linspace(-2, 2, 800), "guessing": 0.0}
    )
    x = drawn(parameters, 20)
    found = irt.abilities(x, parameters)
    theta = np.linspace(-5, 5, 8001)
    p = irt.probability(theta, parameters)
    joint = x.to_numpy() @ np.log(p).T + (1 - x.to_numpy()) @ np.log1p(-p).T - theta**2 / 2
    weights = np.exp(joint - joint.max(axis=1, keepdims=True))
    expected = weights @ theta / weights.sum(axis=1)
    assert found["theta"].to_numpy() == pytest.approx(expected, abs=1e-6)


def test_standard_errors_are_asked_for_by_yes_or_no():
    answers = pd.DataFrame({"easy": [1, 1, 1, 0], "hard": [1, 0, 0, 0]})
    with pytest.raises(ParameterError):
        irt.fit(answers, errors="yes")


@pytest.mark.parametrize("use", [irt.fit, irt.compare])
def test_answers_other_than_0_and_1_are_refused(use):
    rng = np.random.default_rng(0)
    answers = pd.DataFrame(rng.integers(0, 2, (200, 4)), columns=list("abcd"))
    use(answers)
    answers.iloc[0, 0] = 2
    with pytest.raises(ParameterError):
        use(answers)


def test_guessing_beyond_six_in_ten_is_held_there_and_marked():
    rng = np.random.default_rng(0)
    ability = rng.normal(size=(600, 1))
    solved = rng.random((600, 4)) < 1 / (1 + np.exp(-3 * ability))
    guessed = rng.random((600, 1)) < 0.9
    x = pd.DataFrame(
        np.c_[solved[:, :3], solved[:, 3:] | guessed].astype(int), columns=list("abcd")
    )
    found = irt.fit(x, "3pl", errors=False)
    assert found.loc["d", "guessing"] == pytest.approx(0.6, abs=1e-4)
    assert found["guessing"].max() <= 0.6 + 1e-9
    assert found.loc["d", "at_limit"]


def test_a_3pl_model_has_three_parameters_an_item():
    rng = np.random.default_rng(0)
    x = (rng.random((300, 4)) < rng.random((300, 1))).astype(int)
    found = irt.compare(pd.DataFrame(x, columns=list("abcd")), ("2pl", "3pl"))
    assert found["parameters"].tolist() == [8, 12]
