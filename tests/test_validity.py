"""Validity statistics, against values worked by hand or by another library."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import silhouette_score

import psychometrics as pm
from psychometrics.measures import structure, validity
from psychometrics.measures.scoring import pss
from tests.test_scoring import answered


def test_silhouette_is_scikit_learns_on_correlation_distance():
    shares = pss(answered("challenges", ["r1"]))
    found = validity.term_silhouettes(shares).set_index("item_id")["silhouette"]
    for item, part in shares.groupby("item_id"):
        table = part.pivot(index=["polarity", "term"], columns="intensifier", values="pss")
        labels = table.index.get_level_values("polarity")
        expected = silhouette_score(table.to_numpy(), labels, metric="correlation")
        assert found[item] == pytest.approx(expected)


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
