"""Signs that a model knows a questionnaire by heart: what is compared, and what is shipped."""

from __future__ import annotations

import numpy as np
import pandas as pd

from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from recipes import contamination


class OneWord:
    """Stands in for a model that answers the key of items with a word, and else by length."""

    def contrast(self, before: str, first: str, second: str) -> float:
        return -1.0 if "not" in before.splitlines()[-1] else 1.0


def test_every_item_has_a_paraphrase_of_other_words_in_the_order_of_its_questionnaire():
    written = pd.read_csv(data_dir() / "texts" / "paraphrases.csv")
    for name, part in written.groupby("questionnaire"):
        questionnaire = load_questionnaire(name)
        assert part["item_id"].tolist() == [item.id for item in questionnaire.items]
        own = [questionnaire.statement(item) for item in questionnaire.items]
        assert not set(own) & set(part["text"])


def test_a_key_that_is_known_has_the_area_one():
    texts = [f"Item {n}{' not' * (n % 2)}." for n in range(20)]
    reverse = np.array([n % 2 == 1 for n in range(20)])
    found = contamination._key(OneWord(), texts, reverse)
    assert found["value"] == 1
    assert found["p"] < 0.01
    assert contamination._key(OneWord(), texts, ~reverse)["value"] == 0


def test_both_models_are_shipped_with_all_three_signs():
    table = pd.read_csv(data_dir() / "contamination.csv")
    assert set(table["model"]) == set(contamination.MODELS)
    assert table.groupby("model")["sign"].nunique().tolist() == [3, 3]
