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
from tests.conftest import needs

NAMES = ("gad7", "challenges")
NEEDS_PAIRS = needs("mnli_entailment", "mnli_neutral", "mnli_contradiction", "snli_s1_dev")


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


def test_who_reads_the_hypothesis_alone_scores_zero_on_every_item():
    table, places = dose.templates()
    codes, _ = pd.factorize(table["hypothesis"])
    entailment = np.random.default_rng(0).uniform(0.05, 0.95, (4, codes.max() + 1))[:, codes]
    found = dose.score(entailment, places)
    assert np.abs(found["source"]).max() < 1e-12
    assert np.abs(found["inverse"]).max() < 1e-12


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
    three = evidence.resized(three, three)  # without a preference for a class
    known = evidence.profiles(three, loaded)["silhouette"].iloc[:, :29].mean(axis=1)
    values = found["member statistics"].set_index("statistic")
    row = values.loc["silhouette"]
    assert row["value"] == pytest.approx(known.mean(), abs=1e-3)
    half = 1.959964 * known.std() / np.sqrt(3)
    assert row["high"] - row["value"] == pytest.approx(half, rel=0.02)
    assert row["whole low"] <= row["whole"] <= row["whole high"]
    assert row["matched high"] < row["value"], "untrained heads have lower silhouettes"
