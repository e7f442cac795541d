"""Signs that a model knows a questionnaire by heart: what is compared, and what is shipped."""

from __future__ import annotations

import pandas as pd

from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire


def test_every_item_has_a_paraphrase_of_other_words_in_the_order_of_its_questionnaire():
    written = pd.read_csv(data_dir() / "texts" / "paraphrases.csv")
    for name, part in written.groupby("questionnaire"):
        questionnaire = load_questionnaire(name)
        assert part["item_id"].tolist() == [item.id for item in questionnaire.items]
        own = [questionnaire.statement(item) for item in questionnaire.items]
        assert not set(own) & set(part["text"])


def test_both_models_are_shipped_with_all_three_signs():
    table = pd.read_csv(data_dir() / "contamination.csv")
    assert table.groupby("model")["sign"].nunique().tolist() == [3, 3]
