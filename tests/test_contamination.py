"""Signs that a model knows a questionnaire by heart: what is compared, and what is shipped."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from psychometrics.cli import app
from psychometrics.exceptions import RespondentError
from psychometrics.paths import data_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics_book.studies import contamination
from tests.tiny import save_tiny_decoder


class OneWord:
    """Stands in for a model that knows the key by a word of the item."""

    def continuation(self, before: str, text: str) -> float:
        is_reverse = "not" in before.splitlines()[-1]
        return float((text == " (-)") == is_reverse)


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


def test_the_signs_that_are_compared_are_those_of_the_examples_and_add_up(tmp_path):
    folder = save_tiny_decoder(tmp_path / "tiny-llama")
    reader = contamination._Reader(str(folder))
    before, sign = "I feel calm.", " (+)"
    ids = reader.tokenizer(before + sign, add_special_tokens=False)["input_ids"]
    start = len(reader.tokenizer(before, add_special_tokens=False)["input_ids"])

    asked = torch.tensor([[reader.begin, *ids]])
    with torch.no_grad():
        logs = reader.model(asked).logits[0].log_softmax(-1)
    expected = sum(float(logs[place, ids[place]]) for place in range(start, len(ids)))

    assert reader.continuation(before, sign) == pytest.approx(expected, rel=1e-5)
    assert reader.per_token(before, sign) == pytest.approx(expected / (len(ids) - start), rel=1e-5)


def test_both_models_are_shipped_with_all_three_signs():
    table = pd.read_csv(data_dir() / "contamination.csv")
    assert table.groupby("model")["sign"].nunique().tolist() == [3, 3]


def test_the_command_writes_all_signs_of_an_own_model(tmp_path):
    folder = save_tiny_decoder(tmp_path / "tiny-llama")
    output = tmp_path / "signs.csv"
    result = CliRunner().invoke(app, ["contamination", str(folder), "-o", str(output)])
    assert result.exit_code == 0, result.output
    found = pd.read_csv(output)
    assert found["sign"].tolist() == ["order", *["wording"] * 3, *["key"] * 2]
    assert found["model"].unique().tolist() == [str(folder)]
    gains = found.query("sign == 'wording'").set_index("of")["value"]
    assert gains["published less placebo"] == pytest.approx(
        gains["published"] - gains["placebo"], abs=2e-6
    )


def test_a_model_that_cannot_read_the_list_is_refused(tmp_path):
    folder = save_tiny_decoder(tmp_path / "short", "gpt2")  # 130 positions
    with pytest.raises(RespondentError, match="130"):
        contamination.contamination(str(folder))


def test_a_model_that_learnt_the_published_list_prefers_its_order():
    class Memory:
        """Stands in for a model that continues the published list only."""

        def continuation(self, before: str, text: str) -> float:
            published = contamination._statements(load_questionnaire("ipip50"))
            return (
                -1.0
                if text == "\n".join(published[:25])
                else -100.0 - zlib.crc32(text.encode()) % 7
            )

    found = contamination._order(Memory())
    assert found["value"] > found["null_high"] > 0 > found["null_low"]
    assert found["p"] < 0.001
