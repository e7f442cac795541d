"""Validity statistics, against values worked by hand or by another library."""

from __future__ import annotations

import ast
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import silhouette_score

import psychometrics as pm
from psychometrics.measures import structure, validity
from psychometrics.measures.normalisation import pss
from psychometrics.paths import notebooks_dir
from tests.test_scoring import answered


def cell_of(chapter: str, begins: str) -> dict[str, object]:
    """Return the names that a code cell of a chapter defines, without what its last lines run."""
    cells = json.loads((notebooks_dir() / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    (source,) = [text for cell in cells if (text := "".join(cell["source"])).startswith(begins)]
    names: dict[str, object] = {"np": np, "pd": pd}
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(functions, []), chapter, "exec"), names)
    return names


def test_silhouette_is_scikit_learns_on_correlation_distance():
    shares = pss(answered("challenges", ["r1"]))
    found = validity.term_silhouettes(shares).set_index("item_id")["silhouette"]
    for item, part in shares.groupby("item_id"):
        table = part.pivot(index=["polarity", "term"], columns="intensifier", values="pss")
        labels = table.index.get_level_values("polarity")
        expected = silhouette_score(table.to_numpy(), labels, metric="correlation")
        assert found[item] == pytest.approx(expected)


@pytest.mark.parametrize("kinds", [(2, 2), (1, 3), (5, 4), (6, 1)])
def test_silhouettes_of_all_respondents_at_once_are_scikit_learns_of_each(kinds):
    labels = np.repeat([1, -1], kinds)
    cube = np.random.default_rng(0).dirichlet(np.ones(8), size=(20, len(labels)))
    found = validity.silhouettes(cube, labels)
    expected = [silhouette_score(table, labels, metric="correlation") for table in cube]
    assert found == pytest.approx(expected, abs=1e-8)


def test_silhouettes_of_chapter_8_are_scikit_learns_where_all_items_vary():
    own = cell_of("08-items", "def silhouette(far")["silhouette"]
    rng = np.random.default_rng(0)
    for clusters in (2, 5, 14):
        answers = pd.DataFrame(rng.integers(0, 2, (40, 15)))
        far = (1 - answers.corr().to_numpy()).clip(0, 2)
        labels = rng.permutation(np.arange(15) % clusters)
        expected = silhouette_score(far, labels, metric="precomputed")
        assert own(far, labels) == pytest.approx(expected, abs=1e-8)

    far[0, 0] = 1  # chapter 8: an item without variance, which scikit-learn refuses
    with pytest.raises(ValueError, match="diagonal"):
        silhouette_score(far, labels, metric="precomputed")


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
    one = structure.heterotrait_monotrait(scored(24, traits(24, 1.0)), THREE)
    assert one["htmt"].between(one["dealt_low"], one["dealt_high"]).all()
    apart = structure.heterotrait_monotrait(scored(24, traits(24, 0.0)), THREE)
    assert (apart["htmt"] < apart["dealt_low"]).all()


def test_the_ratio_of_many_matrices_is_that_of_each_and_missing_where_items_do_not_go_together():
    matrices = np.random.default_rng(0).uniform(0.1, 0.6, (5, 6, 6))
    matrices = (matrices + np.swapaxes(matrices, 1, 2)) / 2
    matrices[:, range(6), range(6)] = 1
    matrices[4, 0, 1] = matrices[4, 1, 0] = -0.2
    ratios = structure.as_correlations(structure.block_means(matrices, [2, 4]))[:, 0, 1]
    for r, ratio in zip(matrices[:4], ratios, strict=False):
        within = r[0, 1] * r[2:, 2:][np.triu_indices(4, 1)].mean()
        assert ratio == pytest.approx(r[:2, 2:].mean() / np.sqrt(within))
    assert np.isnan(ratios[4])


def test_an_items_contrast_is_worked_by_hand():
    # Without term and intensifier means, the source term's row is (-0.75, 0.75).
    words = {"questionnaire": "q", "item_id": "q1", "template": "t"}
    prompts = pd.DataFrame(
        {"term": ["s", "s", "i", "i"], "intensifier": ["never", "often"] * 2}
    ).assign(**words, weight=[-1.0, 1.0] * 2, polarity=[1, 1, -1, -1])
    found = validity.item_contrasts(prompts, np.array([[1.0], [2.0], [5.0], [3.0]]))
    assert np.asarray(found).ravel() == pytest.approx([3 / 2**2 * 1.5])


def test_percentiles_of_values_that_are_mostly_undefined_are_missing():
    assert np.isnan(structure._percentiles(np.array([np.nan, np.nan, 1.0]))).all()
    low, high = structure._percentiles(np.array([np.nan, 0.0, 1.0]))
    assert (low, high) == pytest.approx((0.025, 0.975))


def test_answers_that_are_all_alike_have_a_silhouette_of_zero():
    alike = np.tile([1.0, 2.0, 4.0], (1, 4, 1))
    assert validity.silhouettes(alike, ["a", "a", "b", "b"]).tolist() == [0.0]


def test_two_scales_of_one_item_each_have_the_correlation_of_the_items():
    means = structure.block_means(np.array([[1.0, 0.3], [0.3, 1.0]]), [1, 1])
    assert means[0, 1] == pytest.approx(0.3)
    assert np.isnan(np.diag(means)).all()
