"""The builder of heads trained on growing numbers of pairs: its pieces, on small real vectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import psychometrics as pm
from data.make import dose
from psychometrics.measures import evidence, nulls
from psychometrics.models.vectors import layer_vectors

NAMES = ("gad7", "soc13")
NEEDS_PAIRS = pytest.mark.skipif(
    not pm.data.available("mnli_entailment", "mnli_neutral", "mnli_contradiction", "snli_s1_dev"),
    reason="needs the samples of MNLI and SNLI",
)


@pytest.fixture(scope="module")
def asked():
    """Prompts, the places of their templates, and the encoder's vectors after two layers."""
    table, places = dose.templates(NAMES)
    texts = tuple(table[["premise", "hypothesis"]].itertuples(index=False, name=None))
    return table, places, layer_vectors("embedded", {2}, (texts,))[2]


def test_heads_at_their_start_and_their_scores_are_those_of_null_respondents(asked):
    _, places, vectors = asked
    answers = nulls.null_answers(NAMES, respondents=3, layers=2, seed=5)
    head = dose.untrained(range(5, 8), vectors.shape[1], linear=False)
    logs = dose.centred_logs(dose.answer(head, torch.from_numpy(vectors.copy())))
    assert np.abs(logs.mean(axis=1)).max() < 1e-6
    own = answers["entailment"].to_numpy().reshape(3, -1)
    found = dose.score(own, places)
    profile = evidence.profiles(answers, [pm.load_questionnaire(name) for name in NAMES])
    for kind, values in found.items():
        assert values == pytest.approx(profile[kind].to_numpy(), abs=1e-9), kind
    again = dose.score(dose.shares(logs, "entailment"), places)["source"]
    r = np.corrcoef(again.ravel(), found["source"].ravel())[0, 1]
    assert r > 0.999, "two-way normalisation removes what centring removes"


def test_contrasts_have_the_semantic_kernel_as_their_products(asked):
    _, places, vectors = asked
    phi = dose.contrasts(vectors, places)
    known = nulls.kernel(NAMES, layers=2).droplevel([0, 1]).T.droplevel([0, 1])
    items = list(dict.fromkeys(place.item for place in places))
    found, known = phi @ phi.T, known.loc[items, items].to_numpy()
    assert found / np.trace(found) == pytest.approx(known / np.trace(known), abs=1e-5)


def test_who_reads_the_hypothesis_alone_scores_zero_on_every_item():
    table, places = dose.templates()
    codes, _ = pd.factorize(table["hypothesis"])
    entailment = np.random.default_rng(0).uniform(0.05, 0.95, (4, codes.max() + 1))[:, codes]
    found = dose.score(entailment, places)
    assert np.abs(found["source"]).max() < 1e-12
    assert np.abs(found["inverse"]).max() < 1e-12


@pytest.mark.parametrize("linear", [True, False])
def test_training_learns_labels_that_vectors_tell_and_none_that_are_shuffled(linear):
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=1200)
    vectors = rng.normal(size=(1200, 12)) + 3 * np.eye(12)[labels]
    vectors, truth = torch.from_numpy(vectors).float(), torch.from_numpy(labels)
    rows = rng.integers(1000, size=(2, 400))
    told = labels[rows]
    told[1] = rng.permutation(told[1])
    drawn = torch.from_numpy(np.stack([rows, told], axis=1))
    stop = vectors[1000:], truth[1000:]
    start = dose.untrained(range(2), 12, linear)
    head, loss, step = dose.train(start, vectors, drawn, stop, 0.01, 200)
    right = (dose.answer(head, stop[0]).argmax(axis=2) == stop[1].numpy()).mean(axis=1)
    assert right[0] > 0.9
    assert right[1] < 0.6
    logits = torch.from_numpy(dose.answer(head, stop[0]))
    at_best = [float(torch.nn.functional.cross_entropy(one, stop[1])) for one in logits]
    assert loss == pytest.approx(at_best, rel=0.02), "bfloat16 in training"
    assert step[0] > 0
    assert loss[1] <= np.log(3) + 0.01, "the step with the lowest loss, the start included"
    kept, _, at = dose.train(start, vectors, drawn, stop, 0.01, 200, np.array([step[0], 50]))
    assert at.tolist() == [step[0], 50]
    assert np.array_equal(kept[-1][0], head[-1][0]), "the same head at the same step"


def test_statistics_of_scores_that_have_the_kernel_itself():
    rng = np.random.default_rng(0)
    scale = np.repeat(np.arange(7), [7, 9, 13, 7, 7, 7, 7])
    phi = rng.normal(size=(57, 60)) + 1
    scores = rng.normal(size=(400, 60)) @ phi.T
    kernel = {"kernel": np.cov(scores.T), "sampling kernel": np.eye(57) + 0.1 * phi @ phi.T}
    scores = {"source": scores, "inverse": -scores, "silhouette": np.full(scores.shape, 0.25)}
    found = dose.statistics(scores, scale, kernel)
    for name in ("kernel", "kernel, within scales", "kernel, between scales", "covariance"):
        assert found[name] == pytest.approx(1), name
    assert found["silhouette"] == 0.25
    assert found["source and inverse"] == pytest.approx(-1)
    expected = [
        pm.reliability.alpha(pd.DataFrame(scores["source"][:, scale == k]))["alpha"]
        for k in range(3)
    ]
    assert found["alpha"] == pytest.approx(np.mean(expected))
    means = pd.DataFrame({k: scores["source"][:, scale == k].mean(axis=1) for k in range(7)})
    r = means.corr("spearman").to_numpy()
    three = np.array([r[0, 1], -r[0, 2], -r[1, 2]])
    assert found["correlations"] == pytest.approx(three.min())
    assert found["discriminant"] == pytest.approx(three.mean() - np.abs(r[:3, 3:]).mean())


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(0).normal(size=30)
    without = pd.DataFrame({"mean": [np.delete(values, k).mean() for k in range(30)]})
    found = dose.interval(pd.Series({"mean": values.mean()}), without).loc["mean"]
    half = 1.959964 * values.std(ddof=1) / np.sqrt(30)
    assert found.tolist() == pytest.approx(
        [values.mean(), values.mean() - half, values.mean() + half]
    )


@NEEDS_PAIRS
def test_no_premise_of_the_pool_stops_training_or_gives_the_accuracy():
    pairs = dose.pool()
    premises = pairs.groupby("part")["premise"].agg(set)
    assert pairs["part"].value_counts().to_dict() == {"train": 16000, "stop": 800, "test": 800}
    assert not premises["train"] & (premises["stop"] | premises["test"])


@NEEDS_PAIRS
def test_a_member_trained_on_hypotheses_is_trained_once_and_judged_with_and_without_premise(
    monkeypatch, tmp_path
):
    few, held = dose.nli_pairs(["mnli"])[:36], dose.mnli_sample().query("held_out")[:24]
    seen, train = [], dose.train_nli
    monkeypatch.setattr(dose, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(dose, "nli_pairs", lambda names: few)
    monkeypatch.setattr(dose, "mnli_sample", lambda: held)
    monkeypatch.setattr(dose, "train_nli", lambda *a, **k: seen.append(a[1]) or train(*a, **k))
    respondent, right = dose.member(3)
    assert len(seen) == 1
    assert (seen[0]["premise"] == "").all()
    assert len(seen[0]) == 12, "a third of the pairs"
    given = list(zip(held["premise"], held["hypothesis"], strict=True))
    expected = (respondent.answer(given).argmax(axis=1) == held["label"].to_numpy()).mean()
    assert right["accuracy"] == pytest.approx(expected)
    again, same = dose.member(3)
    assert len(seen) == 1, "the merged model is read from its folder"
    assert same == right
    assert np.abs(again.answer(given[:3]) - respondent.answer(given[:3])).max() < 1e-6


@NEEDS_PAIRS
def test_members_that_are_the_populations_own_have_its_values(monkeypatch):
    """Two of the population's members stand for those trained on hypotheses."""
    table = pm.population_table().query("family == 'MiniLM' and layers == 6 and tuning == 'lora'")
    names = list(table["respondent_id"])
    asked = pm.ask(list(dose.QUESTIONNAIRES), names, progress=False)
    own = [asked.loc[asked["respondent_id"] == name, dose.PROBABILITIES] for name in names]

    class Member:
        def __init__(self, answers):
            self.answers = answers.to_numpy()

        def answer(self, pairs):
            assert len(pairs) == len(self.answers)
            return self.answers

    right = {"accuracy": 0.5, "accuracy without premise": 0.4}
    pairs = np.random.default_rng(0).normal(size=(2, len(dose.pool()), 384)).astype("float32")
    monkeypatch.setattr(dose, "cached", lambda *a: pairs)  # for a secondary statistic alone
    monkeypatch.setattr(dose, "member", lambda seed: (Member(own[seed]), right))
    monkeypatch.setattr(dose, "POPULATIONS", 4)
    found = dose.compared_members(range(3))
    members = found["members"].set_index("respondent_id")
    kind = members["trained on"].value_counts()
    assert kind.to_dict() == {"whole pairs": len(names), "hypotheses": 3}
    twins = members.loc[names[:3], ["decisiveness", "silhouette"]].to_numpy()
    np.testing.assert_allclose(
        members.loc[["s0", "s1", "s2"], ["decisiveness", "silhouette"]], twins
    )
    loaded = [pm.load_questionnaire(name) for name in dose.QUESTIONNAIRES]
    three = asked[asked["respondent_id"].isin(names[:3])]
    sizes = np.sqrt((evidence.logits(three) ** 2).mean(axis=(1, 2)))
    three = evidence.resized(three, sizes)  # without a preference for a class
    known = evidence.profiles(three, loaded)["silhouette"].iloc[:, :29].mean(axis=1)
    values = found["member statistics"].set_index("statistic")
    row = values.loc["silhouette"]
    assert row["value"] == pytest.approx(known.mean(), abs=1e-3)
    half = 1.959964 * known.std() / np.sqrt(3)
    assert row["high"] - row["value"] == pytest.approx(half, rel=0.02)
    assert row["whole low"] <= row["whole"] <= row["whole high"]
    assert row["matched high"] < row["value"], "untrained heads have lower silhouettes"
