"""Validity statistics, against values worked by hand or by another library."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import silhouette_score

import psychometrics as pm
from psychometrics.exceptions import ParameterError
from psychometrics.measures import correlations, structure, validity
from psychometrics.measures.scoring import pss
from tests.test_scoring import answered

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=24)
    frame = pd.DataFrame({"a": a, "b": a + rng.normal(size=24), "c": rng.normal(size=24)})
    return frame.rename_axis("respondent_id")


def test_silhouette_is_scikit_learns_on_correlation_distance():
    shares = pss(answered("challenges", ["r1"]))
    found = validity.term_silhouettes(shares).set_index("item_id")["silhouette"]
    for item, part in shares.groupby("item_id"):
        table = part.pivot(index=["polarity", "term"], columns="intensifier", values="pss")
        labels = table.index.get_level_values("polarity")
        expected = silhouette_score(table.to_numpy(), labels, metric="correlation")
        assert found[item] == pytest.approx(expected)


def test_correlations_agree_with_scipy_and_lie_in_their_intervals(scores):
    found = correlations.correlations(scores, PAIRS, seed=2)
    for row in found.itertuples():
        x, y = scores[row.first], scores[row.second]
        assert row.spearman == pytest.approx(stats.spearmanr(x, y).statistic)
        normal = [stats.norm.ppf(v.rank() / (len(v) + 1)) for v in (x, y)]
        assert row.pearson == pytest.approx(stats.pearsonr(*normal).statistic)
        assert row.spearman_low < row.spearman < row.spearman_high
        assert row.pearson_low < row.pearson < row.pearson_high
        exact = stats.permutation_test(
            (x,), lambda z, y=y: stats.spearmanr(z, y).statistic,
            permutation_type="pairings", n_resamples=2000, rng=np.random.default_rng(1),
        ).pvalue  # fmt: skip
        assert row.p == pytest.approx(exact, abs=0.04)
    assert found["p"].min() >= 1 / 2001
    holm = pingouin.multicomp(found["p"].tolist(), method="holm")[1]
    np.testing.assert_allclose(found["p_holm"], holm)


def test_the_bootstrap_interval_covers_the_truth_about_as_often_as_it_says():
    # Percentile intervals of a correlation run a little short with 24 respondents: 0.90 to 0.97.
    truth, hits = 0.6, 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=24)
        y = truth * x + np.sqrt(1 - truth**2) * rng.normal(size=24)
        frame = pd.DataFrame({"x": x, "y": y})
        row = correlations.correlations(frame, [("x", "y")], n_resamples=400, seed=seed).iloc[0]
        hits += row["pearson_low"] <= truth <= row["pearson_high"]
    assert 0.90 - 2 * 0.018 < hits / 150 < 0.97 + 2 * 0.018


def test_p_values_are_uniform_when_nothing_is_there():
    values = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["x", "y"])
        values.append(
            correlations.correlations(frame, [("x", "y")], n_resamples=200, seed=1)["p"][0]
        )
    assert stats.kstest(values, "uniform").pvalue > 0.01


def test_partial_correlation_is_the_correlation_of_rank_residuals(scores):
    found = correlations.partial_correlations(scores[["a", "b"]], [("a", "b")], scores["c"]).iloc[0]
    ranks = scores.rank()
    r = ranks.corr()
    expected = (r.loc["a", "b"] - r.loc["a", "c"] * r.loc["b", "c"]) / np.sqrt(
        (1 - r.loc["a", "c"] ** 2) * (1 - r.loc["b", "c"] ** 2)
    )
    assert found["partial"] == pytest.approx(expected)
    assert found["low"] < found["partial"] < found["high"]


def test_multiverse_holds_every_combination_and_the_chapters_own_value():
    names = ("gad7", "phq9")
    who = [f"r{n}" for n in range(6)]
    responses = pd.concat([answered(name, who, seed=i) for i, name in enumerate(names)])
    questionnaires = [pm.load_questionnaire(name) for name in names]
    worlds = correlations.multiverse(responses, questionnaires, [names], temperatures=(1.0, 2.0))
    assert len(worlds) == 2 * 2 * 3 * 3 * 2
    assert not worlds.duplicated(worlds.columns[:-1].tolist()).any()
    table = pm.scale_scores(
        responses, score="contrast", temperature=2.0, questionnaires=questionnaires
    )
    wide = table.pivot(index="respondent_id", columns="scale", values="score")
    own = worlds.query(
        "score == 'contrast' and temperature == 2 and terms == 'source' "
        "and templates == 'all' and transform == 'raw'"
    )["r"].item()
    # Templates of an item have equally many terms, so that both ways of averaging agree.
    assert own == pytest.approx(wide.corr().loc["gad7", "phq9"])


def test_multitrait_multimethod_cells_are_of_complete_pairs_each_with_its_interval(scores):
    noisy = scores + np.random.default_rng(1).normal(scale=0.1, size=scores.shape)
    found = correlations.multitrait_multimethod({"nli": scores, "mlm": noisy.iloc[4:]})
    assert len(found) == 6 * 7 / 2
    assert found["kind"].value_counts().to_dict() == {
        "reliability": 6, "heterotrait-monomethod": 6, "heterotrait-heteromethod": 6,
        "monotrait-heteromethod": 3,
    }  # fmt: skip
    cells = found.set_index(["method_2", "trait_2", "method_1", "trait_1"])
    cell = cells.loc[("nli", "a", "mlm", "c")]
    expected = stats.spearmanr(scores["a"].iloc[4:], noisy["c"].iloc[4:]).statistic
    assert (cell["r"], cell["n"]) == (pytest.approx(expected), 20)
    alone = correlations.correlations(
        pd.DataFrame({"a": scores["a"], "c": noisy["c"].iloc[4:]}), [("a", "c")]
    )
    assert [cell["low"], cell["high"]] == pytest.approx(
        alone[["spearman_low", "spearman_high"]].iloc[0].tolist()
    )
    assert cells.loc[("nli", "a", "mlm", "a"), "r"] > 0.9
    assert cells.loc[("nli", "a", "nli", "b"), "n"] == 24
    assert found.query("kind == 'reliability'")["r"].isna().all()
    with pytest.raises(ParameterError, match="4 respondents"):
        correlations.multitrait_multimethod({"nli": scores, "mlm": noisy.iloc[:3]})


def test_an_undefined_correlation_has_no_p_and_leaves_the_others_as_they_are(scores):
    untidy = scores.assign(constant=0.1, gap=scores["b"].where(scores.index != 3), empty=np.nan)
    pairs = [("a", "constant"), ("a", "gap"), ("a", "empty"), ("a", "b")]
    found = correlations.correlations(untidy, pairs, n_resamples=200).set_index("second")
    assert found["n"].to_dict() == {"constant": 24, "gap": 23, "empty": 0, "b": 24}
    numbers = found.drop(columns=["first", "n"])
    assert numbers.loc[["constant", "empty"]].isna().all(axis=None)
    assert numbers.loc[["gap", "b"]].notna().all(axis=None)
    alone = correlations.correlations(untidy.drop(index=3), [("a", "b")], n_resamples=200).iloc[0]
    assert found.loc["gap", "spearman"] == alone["spearman"]
    assert found.loc["gap", "p"] == alone["p"]
    # Holm over the two tests that there are.
    expected = pingouin.multicomp(found.loc[["gap", "b"], "p"].tolist(), method="holm")[1]
    assert found.loc[["gap", "b"], "p_holm"].tolist() == pytest.approx(list(expected))
    nothing = correlations.correlations(untidy, [("a", "empty")], n_resamples=10)
    assert nothing["p_holm"].isna().all()


def test_the_multiverse_leaves_out_who_lacks_an_answer_and_says_how_many_are_left():
    names = ("gad7", "challenges")
    who = [f"r{n}" for n in range(6)]
    responses = pd.concat(
        [answered(name, who, seed=i) for i, name in enumerate(names)], ignore_index=True
    )
    questionnaires = [pm.load_questionnaire(name) for name in names]
    tidy = responses[responses["respondent_id"] != "r5"]
    expected = correlations.multiverse(tidy, questionnaires, [names], (1.0,))
    assert set(expected["n"]) == {5}
    last = responses.index[responses["respondent_id"] == "r5"][-1]
    for untidy in (
        responses[~((responses["respondent_id"] == "r5") & (responses["questionnaire"] == "gad7"))],
        responses.assign(
            entailment=responses["entailment"].mask(responses["respondent_id"] == "r5")
        ),
    ):
        found = correlations.multiverse(untidy.sample(frac=1, random_state=1), questionnaires,
                                    [names], (1.0,))  # fmt: skip
        assert found["r"].to_numpy() == pytest.approx(expected["r"].to_numpy())
        assert set(found["n"]) == {5}
    one_lost = correlations.multiverse(responses.drop(index=last), questionnaires, [names], (1.0,))
    assert set(one_lost["n"]) == {5}
    with pytest.raises(ParameterError, match="twice"):
        correlations.multiverse(pd.concat([responses, responses]), questionnaires, [names])
    alike = correlations.multiverse(responses.assign(entailment=0.3, contradiction=0.3),
                                questionnaires, [names], (1.0,))  # fmt: skip
    assert alike["r"].isna().all()


def scored(respondents, loadings, noise=1.0, seed=0, names=("gad7", "phq9", "soc13")):
    """Item scores of scales, each item a loading times its scale's trait, and noise."""
    rng = np.random.default_rng(seed)
    parts = []
    for own, name in zip(loadings, names, strict=True):
        entries = pm.load_questionnaire(name).items
        values = own[:, None] + noise * rng.normal(size=(respondents, len(entries)))
        parts.append(
            pd.DataFrame(
                {
                    "respondent_id": np.repeat(
                        [f"r{n:04}" for n in range(respondents)], len(entries)
                    ),
                    "questionnaire": name,
                    "item_id": [item.id for item in entries] * respondents,
                    "score": (values * [item.keying for item in entries]).ravel(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


THREE = [pm.load_questionnaire(name) for name in ("gad7", "phq9", "soc13")]


def traits(respondents, correlation, seed=1):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=respondents)
    own = rng.normal(size=(3, respondents))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


def matrix_of(items):
    return pd.concat([pm.scoring.keyed_items(items, q) for q in THREE], axis=1)


def test_htmt_is_the_mean_between_over_the_geometric_mean_within():
    items = scored(12, traits(12, 0.3))
    found = structure.heterotrait_monotrait(items, THREE, 50).set_index(["first", "second"])
    r = matrix_of(items).corr()
    for (one, first), (two, second) in itertools.combinations(
        [(q.id, [i.id for i in q.items]) for q in THREE], 2
    ):
        between = np.mean([r.loc[a, b] for a in first for b in second])
        within = [
            np.mean([r.loc[a, b] for a, b in itertools.combinations(own, 2)])
            for own in (first, second)
        ]
        row = found.loc[(one, two)]
        assert row["htmt"] == pytest.approx(between / np.sqrt(within[0] * within[1]))
        assert row["low"] < row["htmt"] < row["high"]


def test_htmt_recovers_the_correlation_of_the_traits_and_its_interval_holds_it():
    hits, estimates = [], []
    for seed in range(20):
        items = scored(60, traits(60, 0.5, seed=seed), seed=100 + seed)
        found = structure.heterotrait_monotrait(items, THREE, 200, seed=seed)
        estimates.append(found["htmt"].mean())
        hits += list((found["low"] <= 0.5) & (found["high"] >= 0.5))
    assert np.mean(estimates) == pytest.approx(0.5, abs=0.05)
    assert np.mean(hits) > 0.88


def test_items_of_one_trait_show_the_same_dealt_at_random_as_in_their_own_scales():
    items = scored(24, traits(24, 1.0))
    dealt = structure.item_deals(items, THREE, draws=400)
    ahead = dealt.query("statistic == 'spearman'")
    assert 0.02 < (ahead["value"] >= ahead["own"]).mean() < 0.98
    apart = structure.item_deals(scored(24, traits(24, 0.0)), THREE, draws=400)
    alphas = apart.query("statistic == 'alpha'")
    assert (alphas["value"] >= alphas["own"]).mean() < 0.02
    ratios = apart.query("statistic == 'htmt'")
    assert (ratios["value"] <= ratios["own"]).mean() < 0.02


def test_components_of_unrelated_items_are_not_kept_and_of_two_traits_two_are():
    alone = structure.components(scored(60, np.zeros((3, 60))), THREE, draws=200)
    assert not alone["kept"].any()
    pair = np.random.default_rng(0).normal(size=(2, 60))
    two = structure.components(scored(60, pair[[0, 0, 1]]), THREE, draws=200)
    assert two["kept"].tolist() == [True, True] + [False] * 27
    assert two["share"].sum() == pytest.approx(1)
    values = np.linalg.eigvalsh(matrix_of(scored(60, pair[[0, 0, 1]])).corr())[::-1]
    np.testing.assert_allclose(two["eigenvalue"], values)


def test_one_factor_is_worse_where_traits_differ_and_no_worse_where_they_are_one():
    apart = structure.factor_models(scored(200, traits(200, 0.4)), THREE).iloc[1]
    assert apart["proper"]
    assert apart["difference_p"] < 1e-6
    assert apart["gad7 ~ phq9"] == pytest.approx(0.4, abs=0.2)
    # One trait by three short scales: correlations of 1 lie on the edge of what is possible.
    one = structure.factor_models(scored(200, traits(200, 1.0)), THREE).iloc[1]
    assert one["difference_p"] > 0.01


def test_omega_hierarchical_is_what_the_bifactor_model_says():
    # Loadings of root one third each on the general and one group factor, by hand.
    rng = np.random.default_rng(3)
    general, group = rng.normal(size=3000), rng.normal(size=(3, 3000))
    items = scored(3000, general + group)
    sizes = np.array([7, 9, 13])
    total = (29**2 + (sizes**2).sum() + 29) / 3
    found = structure.omega_hierarchical(items, THREE)
    assert found["hierarchical"] == pytest.approx(29**2 / 3 / total, abs=0.03)
    assert found["total"] == pytest.approx(1 - 29 / 3 / total, abs=0.01)
    assert found["explained"] == pytest.approx(0.5, abs=0.03)


UNTIDY = {
    "nothing": lambda i: i,
    "a gap": lambda i: i.assign(score=i["score"].where(i.index != 3)),
    "a constant item": lambda i: i.assign(score=i["score"].where(i["item_id"] != "gad7_2", 0.1)),
    "all alike": lambda i: i.assign(score=0.1),
    "ties": lambda i: i.assign(score=i["score"].round()),
    "another order": lambda i: i.sample(frac=1, random_state=0),
    "infinite": lambda i: i.assign(score=i["score"].where(i.index != 3, np.inf)),
    "text": lambda i: i.assign(score=i["score"].astype(str) + "x"),
    "twice": lambda i: pd.concat([i, i]),
    "an item missing": lambda i: i[i["item_id"] != "gad7_2"],
    "nobody": lambda i: i[:0],
}
REFUSED = ("text", "twice", "an item missing", "nobody", "infinite")
OF_ITEMS = {
    "item_deals": lambda i: structure.item_deals(i, THREE, draws=5),
    "heterotrait_monotrait": lambda i: structure.heterotrait_monotrait(i, THREE, 5),
    "components": lambda i: structure.components(i, THREE, draws=5),
    "factor_models": lambda i: structure.factor_models(i, THREE, parcels=2),
    "omega_hierarchical": lambda i: structure.omega_hierarchical(i, THREE, parcels=3).to_frame().T,
}


@pytest.mark.parametrize("name", OF_ITEMS)
@pytest.mark.parametrize("untidy", UNTIDY)
@pytest.mark.parametrize("respondents", [3, 4, 8, 40])
def test_a_statistic_of_items_answers_or_says_why_not(name, untidy, respondents):
    items = UNTIDY[untidy](scored(respondents, traits(respondents, 0.5)))
    if respondents - (untidy == "a gap") < 4 or untidy in REFUSED:
        with pytest.raises(ParameterError, match=r"\.$"):
            OF_ITEMS[name](items)
        return
    found = OF_ITEMS[name](items)
    assert (found["n"] == respondents - (untidy == "a gap")).all()
    numbers = found.select_dtypes("number")
    assert not np.isinf(numbers).any(axis=None)
    if untidy == "all alike":
        assert (
            numbers.filter(["value", "htmt", "share", "chi2", "hierarchical"]).isna().all(axis=None)
        )
    if untidy == "another order":
        pd.testing.assert_frame_equal(
            found, OF_ITEMS[name](scored(respondents, traits(respondents, 0.5)))
        )


untidy_numbers = st.lists(
    st.one_of(st.none(), st.sampled_from([0.1, 0.3]), st.floats(-5, 5)), min_size=24, max_size=24
)


@settings(max_examples=40, deadline=None)
@given(untidy_numbers, st.integers(1, 8))
def test_a_statistic_of_scores_is_of_complete_pairs_or_missing(values, people):
    table = pd.DataFrame(np.array(values, dtype=float).reshape(8, 3), columns=["x", "y", "z"])
    table = table.iloc[:people]
    complete = table[["x", "y"]].dropna()
    defined = len(complete) >= 4 and (complete.nunique() > 1).all()
    try:
        found = correlations.correlations(table, [("x", "y")], n_resamples=20).iloc[0]
        matrix = correlations.multitrait_multimethod({"one": table}, n_resamples=20)
    except ParameterError:
        assert people < 4
        return
    assert found["n"] == len(complete)
    assert found[["spearman", "pearson", "p", "p_holm"]].notna().all() == defined
    assert found[["spearman", "pearson", "p", "p_holm"]].isna().all() != defined
    cell = matrix.set_index(["trait_2", "trait_1"]).loc[("x", "y")]
    assert cell["n"] == len(complete)
    assert pd.notna(cell["r"]) == defined
    try:
        partial = correlations.partial_correlations(table, [("x", "y")], table["z"]).iloc[0]
    except ParameterError:
        assert table["z"].nunique() < 2
        return
    assert partial["n"] == len(table.dropna())
    known = partial[["partial", "low", "high", "p"]].notna()
    assert known.all() or not known.any()
    assert len(table.dropna()) >= 5 or not known.any()


@pytest.mark.parametrize("decimals", [0, 3], ids=["with ties", "without"])
def test_ranks_of_bootstrap_samples_and_the_permutations_p_are_those_that_scipy_gives(decimals):
    rng = np.random.default_rng(2)
    x = rng.normal(size=30).round(decimals)
    y = (x + rng.normal(size=30)).round(decimals)
    draws = rng.integers(0, 30, (40, 30))
    ranks = stats.rankdata(x), stats.rankdata(y)
    assert (correlations._ranks_of(ranks[0], draws) == stats.rankdata(x[draws], axis=1)).all()
    pairings = np.random.default_rng(7).permuted(np.tile(ranks[1], (99, 1)), axis=1)
    far = [abs(stats.spearmanr(x, pairing).statistic) for pairing in pairings]
    expected = 1 + (np.array(far) >= abs(stats.spearmanr(x, y).statistic) - 1e-12).sum()
    assert correlations._permutation_p(*ranks, 99, 7) == pytest.approx(expected / 100)
