"""Heads on frozen vectors: initial weights, answers and scores, on small real vectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import psychometrics as pm
from psychometrics.models.vectors import layer_vectors
from psychometrics.nulls import evidence
from psychometrics.nulls import respondents as nulls
from recipes import frozen_heads

NAMES = ("gad7", "challenges")


@pytest.fixture(scope="module")
def asked():
    """Prompts, the places of their templates, and the encoder's vectors after two layers."""
    table, places = frozen_heads.templates(NAMES)
    texts = tuple(table[["premise", "hypothesis"]].itertuples(index=False, name=None))
    return table, places, layer_vectors("embedded", {2}, (texts,))[2]


def test_heads_at_their_start_and_their_scores_are_those_of_null_respondents(asked):
    _, places, vectors = asked
    answers = nulls.null_answers(NAMES, respondents=3, layers=2, seed=5)
    head = frozen_heads.untrained(range(5, 8), vectors.shape[1], linear=False)
    logs = frozen_heads.centred_logs(frozen_heads.answer(head, torch.from_numpy(vectors.copy())))
    assert np.abs(logs.mean(axis=1)).max() < 1e-6
    own = answers["entailment"].to_numpy().reshape(3, -1)
    found = frozen_heads.score(own, places)
    profile = evidence.profiles(answers, [pm.load_questionnaire(name) for name in NAMES])
    for kind, values in found.items():
        assert values == pytest.approx(profile[kind].to_numpy(), abs=1e-9), kind
    again = frozen_heads.score(frozen_heads.shares(logs, "entailment"), places)["source"]
    r = np.corrcoef(again.ravel(), found["source"].ravel())[0, 1]
    assert r > 0.999, "two-way normalisation removes what centring removes"


def test_who_reads_the_hypothesis_alone_scores_zero_on_every_item():
    table, places = frozen_heads.templates()
    codes, _ = pd.factorize(table["hypothesis"])
    entailment = np.random.default_rng(0).uniform(0.05, 0.95, (4, codes.max() + 1))[:, codes]
    found = frozen_heads.score(entailment, places)
    assert np.abs(found["source"]).max() < 1e-12
    assert np.abs(found["inverse"]).max() < 1e-12
