"""Validity statistics, against values worked by hand or by another library."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pingouin
import pytest
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
        assert row.spearman_low < row.spearman < row.spearman_high
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
    r, hits = 0.6, 0
    truth = 6 / np.pi * np.arcsin(r / 2)  # Spearman's of a normal pair with Pearson's r
    for seed in range(100):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(24, 2)), columns=["x", "y"])
        frame["y"] = r * frame["x"] + np.sqrt(1 - r**2) * frame["y"]
        row = correlations.correlations(frame, [("x", "y")], n_resamples=400, seed=seed).iloc[0]
        hits += row["spearman_low"] <= truth <= row["spearman_high"]
    assert 0.90 - 2 * 0.022 < hits / 100 < 0.97 + 2 * 0.022


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


def test_two_methods_make_a_multitrait_multimethod_matrix_of_complete_pairs(scores):
    noisy = scores + np.random.default_rng(1).normal(scale=0.1, size=scores.shape)
    wide = pd.concat({"nli": scores, "mlm": noisy.iloc[4:]}, axis=1)
    found = correlations.correlations(wide)
    assert found["kind"].value_counts().to_dict() == {
        "heterotrait-monomethod": 6, "heterotrait-heteromethod": 6, "monotrait-heteromethod": 3,
    }  # fmt: skip
    cells = {(row.first, row.second): row for row in found.itertuples()}
    cell = cells[("nli", "a"), ("mlm", "c")]
    expected = stats.spearmanr(scores["a"].iloc[4:], noisy["c"].iloc[4:]).statistic
    assert (cell.spearman, cell.n) == (pytest.approx(expected), 20)
    assert cell.kind == "heterotrait-heteromethod"
    assert cells[("nli", "a"), ("nli", "b")].n == 24


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
    parts = [answered(name, [f"r{n}" for n in range(6)], seed=i) for i, name in enumerate(names)]
    responses = pd.concat(parts, ignore_index=True)
    own = responses["respondent_id"] == "r5"

    def worlds(table):
        questionnaires = [pm.load_questionnaire(name) for name in names]
        return correlations.multiverse(table, questionnaires, [names], (1.0,))

    expected = worlds(responses[~own])
    for untidy in (
        responses[~(own & (responses["questionnaire"] == "gad7"))],
        responses.assign(entailment=responses["entailment"].mask(own)),
        responses.drop(index=responses.index[own][-1]),
    ):
        found = worlds(untidy.sample(frac=1, random_state=1))
        assert found["r"].to_numpy() == pytest.approx(expected["r"].to_numpy())
        assert set(found["n"]) == {5}
    with pytest.raises(ParameterError, match="twice"):
        worlds(pd.concat([responses, responses]))
    alike = responses.assign(entailment=0.3, neutral=0.4, contradiction=0.3)
    assert worlds(alike)["r"].isna().all()


def scored(respondents, loadings, noise=1.0, seed=0, names=("gad7", "phq9", "soc13")):
    """Item scores of scales, each item a loading times its scale's trait, and noise."""
    rng = np.random.default_rng(seed)
    people, parts = [f"r{n:04}" for n in range(respondents)], []
    for own, name in zip(loadings, names, strict=True):
        entries = pm.load_questionnaire(name).items
        values = own[:, None] + noise * rng.normal(size=(respondents, len(entries)))
        values = values * [item.keying for item in entries]
        wide = pd.DataFrame(values, people, [item.id for item in entries]).stack()
        table = wide.rename_axis(["respondent_id", "item_id"]).rename("score").reset_index()
        parts.append(table.assign(questionnaire=name))
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
    own = {q.id: [item.id for item in q.items] for q in THREE}
    for one, two in itertools.combinations(own, 2):
        between = r.loc[own[one], own[two]].to_numpy().mean()
        within = [
            r.loc[own[q], own[q]].to_numpy()[np.triu_indices(len(own[q]), 1)].mean()
            for q in (one, two)
        ]
        row = found.loc[(one, two)]
        assert row["htmt"] == pytest.approx(between / np.sqrt(within[0] * within[1]))
        assert row["low"] < row["htmt"] < row["high"]


def test_items_of_one_trait_show_the_same_dealt_at_random_as_in_their_own_scales():
    one = structure.heterotrait_monotrait(scored(24, traits(24, 1.0)), THREE, 400)
    assert one["htmt"].between(one["dealt_low"], one["dealt_high"]).all()
    apart = structure.heterotrait_monotrait(scored(24, traits(24, 0.0)), THREE, 400)
    assert (apart["htmt"] < apart["dealt_low"]).all()


def test_one_factor_is_worse_where_traits_differ_and_no_worse_where_they_are_one():
    apart = structure.factor_models(scored(200, traits(200, 0.4)), THREE).iloc[1]
    assert apart["proper"]
    assert apart["difference_p"] < 1e-6
    assert apart["gad7 ~ phq9"] == pytest.approx(0.4, abs=0.2)
    # One trait by three short scales: correlations of 1 lie on the edge of what is possible.
    one = structure.factor_models(scored(200, traits(200, 1.0)), THREE).iloc[1]
    assert one["difference_p"] > 0.01
