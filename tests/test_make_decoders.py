"""The decoders' own trainer: each pair's numbers, and an adapter that answers as in training."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from data.make.decoders import _batches_of, _collated, _Decoder, train_decoder
from psychometrics import load_respondent
from psychometrics.exceptions import DataError

PAIRS = pd.DataFrame(
    {
        "premise": ["A man sleeps.", "A man sleeps.", "I lost my job last week."],
        "hypothesis": ["He is awake.", "Someone is asleep.", "I work there still."],
        "label": [2, 0, 2],
    }
)
RECIPE = {
    "data": "given", "pairs": 0, "seed": 3, "rank": 2, "layers": 2, "adapt_from": 1,
    "wording": "follow", "lr": 0.01, "epochs": 2,
}  # fmt: skip


def test_hypotheses_of_one_premise_share_a_row_and_have_the_numbers_that_they_have_alone():
    model = _Decoder(RECIPE)
    together = [batch for batch in _batches_of(RECIPE | {"epochs": 1}, PAIRS)]
    assert [len(group[1]) for group in sorted(together[0], key=lambda g: -len(g[1]))] == [2, 1]
    with torch.inference_mode():
        for head, members in together[0]:
            shared = model(_collated([(head, members)]))
            for row, member in zip(shared, members, strict=True):
                alone = model(_collated([(head, [member])]))[0]
                np.testing.assert_allclose(row, alone, atol=0.15)  # logits of about 10, bfloat16


def test_a_trained_adapter_answers_as_it_did_in_training_and_training_lowers_the_loss(tmp_path):
    made = train_decoder(RECIPE | {"epochs": 60}, tmp_path, PAIRS)
    assert made["steps"] == len(made["losses"]) == 60
    assert made["losses"][-1] < made["losses"][0]
    assert not list(tmp_path.glob("checkpoint*"))
    recipe = json.loads((tmp_path / "recipe.json").read_text())
    assert recipe["answers"] == [" yes", " maybe", " no"]
    config = tmp_path / "config.json"  # beside an adapter: how many layers of its base it has
    config.write_text(json.dumps({"num_hidden_layers": RECIPE["layers"]}))
    found = load_respondent(tmp_path).answer(
        list(PAIRS[["premise", "hypothesis"]].itertuples(index=False, name=None))
    )
    assert found.argmax(axis=1).tolist() == PAIRS["label"].tolist()


def test_training_without_pairs_is_refused():
    with pytest.raises(DataError, match="no labelled pairs"):
        _batches_of(RECIPE, PAIRS.iloc[:0])
