from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
import yaml

from psychometrics import data
from psychometrics.answers import COLUMNS, tidy
from psychometrics.ask import answer
from psychometrics.exceptions import DataError, ParameterError, QuestionnaireError
from psychometrics.paths import questionnaires_dir
from psychometrics.ask import MODES
from psychometrics.questionnaires import (
    COMPASS,
    corrections,
    load_questionnaire,
    psychobench_keys,
    questionnaire_names,
    read_categories,
)
from psychometrics.studies.psychobench import overview, upstream_differences


def _have(key: str) -> bool:
    try:
        data.fetch(key)
    except DataError:
        return False
    return True


needs_wording = pytest.mark.skipif(
    os.environ.get("CI") != "true" and not _have(UPSTREAM),
    reason="PsychoBench's file is neither in the mirror nor downloadable",
)
needs_compass = pytest.mark.skipif(
    os.environ.get("CI") != "true" and not _have(COMPASS),
    reason="question_llm's file is neither in the mirror nor downloadable",
)
TABLE_5 = {
    "bfi": 44, "epq-r": 100, "dtdd": 12, "bsri": 60, "cabin": 164, "icb": 8, "ecr-r": 36,
    "gse": 10, "lot-r": 10, "lms": 9, "eis": 33, "wleis": 16, "empathy": 10,
}  # fmt: skip


def test_the_thirteen_scales_have_the_papers_item_counts_and_load_without_any_download():
    assert {n: len(load_questionnaire(n, texts=False).items) for n in psychobench_keys()} == TABLE_5


def test_subscales_have_the_counts_of_table_5():
    table = overview().set_index(["questionnaire", "scale"])["items"]
    assert table["bfi"].to_dict() == {
        "Openness": 10, "Conscientiousness": 9, "Extraversion": 8, "Agreeableness": 9,
        "Neuroticism": 8,
    }  # fmt: skip
    assert table["epq-r"].sort_values().tolist() == [21, 23, 24, 32]
    assert table["dtdd"].tolist() == [4, 4, 4]
    assert table["ecr-r"].tolist() == [18, 18]
    interests = table["cabin"]
    assert (interests == 4).sum() == 41


@needs_wording
def test_keys_and_norms_equal_the_upstream_file_where_no_correction_is_listed():
    found = upstream_differences()
    listed = set(corrections()["questionnaire"])
    assert set(found["questionnaire"]) <= listed, found
    for name in psychobench_keys():
        texts = [item.text for item in load_questionnaire(name).items]
        assert not any(text.startswith("(") and text.endswith(")") for text in texts)


@needs_compass
def test_the_compass_file_is_read_with_categories_weights_and_bias():
    compass = load_questionnaire(COMPASS)
    assert (len(compass.items), compass.categories) == (62, ("economic", "social"))
    assert compass.bias == (0.38, 2.41)
    assert all(np.shape(item.weights) == (4, 2) for item in compass.items)


def test_a_category_file_of_the_users_is_read_with_choices_of_each_question(tmp_path):
    path = tmp_path / "my test.json"
    question = {"question": "Which?", "choices": ["this", "that"], "scores": [[1, 0], [0, 1]]}
    path.write_text(json.dumps({"categories": ["a", "b"], "data": {"q": question}}))
    questionnaire = load_questionnaire(path)
    assert questionnaire.id == "my-test"
    assert [(o.value, o.label) for o in questionnaire.choices("q")] == [
        (1.0, "this"),
        (2.0, "that"),
    ]
    assert questionnaire.bias == (0.0, 0.0)
    question["scores"] = [[1, 0]]
    path.write_text(json.dumps({"categories": ["a", "b"], "data": {"q": question}}))
    with pytest.raises(QuestionnaireError, match="item q: scores must be options by categories"):
        load_questionnaire(path)
    path.write_text('{"categories": ["a"], "data": {"q": {"question": "?"}}}')
    with pytest.raises(QuestionnaireError, match="needs `categories` and `data`"):
        read_categories(path)


def test_own_instruments_are_whole_and_balanced():
    for name, count in {"ipip20": 20, "ipip50": 50}.items():
        questionnaire = load_questionnaire(name)
        held = [item for scale in questionnaire.scales for item in scale.items]
        assert sorted(held) == sorted(item.id for item in questionnaire.items)
        assert len(held) == count
        assert "ublic domain" in questionnaire.licence
    two = load_questionnaire("two_axes")
    weights = np.array([item.weights for item in two.items])  # items, options, categories
    assert weights.sum(axis=(0, 1)).tolist() == [0, 0]
    assert weights[:, -1].sum(axis=0).tolist() == [0, 0]  # who agrees with all is in the middle
    assert np.abs(weights[:, -1]).sum(axis=0).tolist() == [10, 10]


def test_mistakes_in_a_file_are_named_one_by_one(tmp_path):
    content = yaml.safe_load((questionnaires_dir() / "questionnaires" / "ipip20.yaml").read_text())
    content["items"][1]["id"] = content["items"][0]["id"]
    content["scales"][0]["reverse"].append("ipip20_99")
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(QuestionnaireError) as caught:
        load_questionnaire(path)
    assert "item id 'ipip20_1' occurs twice" in str(caught.value)
    assert "scale extraversion reverses 'ipip20_99'" in str(caught.value)
    path.write_text("a: [")
    with pytest.raises(QuestionnaireError, match="not valid YAML"):
        load_questionnaire(path)
    with pytest.raises(QuestionnaireError, match="No questionnaire 'bif'"):
        load_questionnaire("bif")
    assert "two_axes" in questionnaire_names()


def test_an_item_becomes_a_sentence_with_stem_and_full_stop():
    mini = load_questionnaire("ipip20")
    assert mini.statement(mini.items[0]) == "I am the life of the party."
    two = load_questionnaire("two_axes")
    assert two.statement(two.items[0]) == two.items[0].text


def test_tidy_keeps_extra_columns_and_no_value_without_an_answer():
    mini = load_questionnaire("ipip20")
    row = {"respondent_id": "r", "mode": "chat", "run": 1, "item_id": "ipip20_1", "value": 3}
    frame = tidy([row | {"status": "ok", "raw": "3"}, row | {"status": "refused"}], mini)
    assert frame.columns.tolist() == [*COLUMNS, "raw"]
    assert frame["value"].tolist()[:1] == [3.0]
    assert pd.isna(frame["value"].iloc[1])
    for wrong in ({"value": 6}, {"value": None}, {"status": "fine"}, {"item_id": "x"}):
        with pytest.raises(ParameterError):
            tidy([row | {"status": "ok"} | wrong], mini)
    assert tidy([], mini).columns.tolist() == list(COLUMNS)


def test_there_are_six_ways_of_asking_and_another_is_refused():
    assert len(MODES) == 6
    with pytest.raises(ParameterError, match="chat, option_logits, nli, human, simulated, custom"):
        answer(load_questionnaire("ipip20"), "telepathy")
