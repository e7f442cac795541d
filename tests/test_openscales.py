"""Questionnaires of OpenScales: what loads is scored as its file says, the rest is refused."""

import copy
import json
import os
from pathlib import Path

import pandas as pd
import pytest

from psychometrics import ask, load_questionnaire, scale_scores
from psychometrics.exceptions import QuestionnaireError
from psychometrics.questionnaires.answers import tidy
from tests.conftest import IN_CI

MIRROR = Path(os.environ.get("PSYCHOMETRICS_DATA_MIRROR", "."), "stmueller", "OpenScales")
FILES = sorted(MIRROR.rglob("*.osd"))
mirrored = pytest.mark.skipif(
    not FILES and not IN_CI, reason="PSYCHOMETRICS_DATA_MIRROR has no files of OpenScales"
)

SHORT = {"parameter": "form", "operator": "equals", "value": "1"}
TEA = {
    "osd_version": "1.0",
    "definition": {
        "scale_info": {"name": "Love of tea", "code": "TEA", "license": "CC BY 4.0"},
        "parameters": {"form": {"type": "integer", "default": 1}},
        "likert_options": {
            "points": 3, "min": 0, "max": 2, "labels": ["l0", None, "l2"], "question_head": "head"
        },
        "dimensions": [{"id": "love", "name": "Love"}],
        "items": [
            {"id": "intro", "type": "inst", "text_key": "intro"},
            {"id": "q1", "type": "likert", "text_key": "q1"},
            {"id": "q2", "type": "likert", "text_key": "q2", "visible_when": SHORT},
            {"id": "q3", "type": "multi", "text_key": "q1", "options": [
                {"value": "5", "text_key": "l2"}, {"value": 1, "text_key": "l0"}]},
            {"id": "age", "type": "short", "text_key": "age"},
        ],
        "scoring": {
            "love": {"method": "mean_coded", "items": {"q1": 1, "q2": -1, "q3": 0}},
            "again": {"method": "sum_coded", "items": ["q3"]},
        },
    },
    "translations": {"en": {
        "head": "How <b>true</b> is it?<br>Of you", "l0": "Not", "l2": "Wholly", "age": "Age?",
        "q1": "I like t<b>e</b>a.", "q2": "I pour tea away."}},
}  # fmt: skip


def load(folder: Path, *changes: tuple[str, object]):
    """Load the tea questionnaire after changes, each a path of keys and its new value."""
    content = copy.deepcopy(TEA)
    for path, value in changes:
        *above, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        part = content
        for key in above:
            part = part[key]
        part[last] = value

    file = folder / "gad7.osd"
    file.write_text(json.dumps(content))
    return load_questionnaire(file)


def scores(questionnaire, values: list[float]) -> dict[str, float]:
    """Scores by scale of one respondent who gives these values to the items in their order."""
    ids = [item.id for item in questionnaire.items]
    answers = pd.DataFrame({"item_id": ids, "value": values})
    answers = answers.assign(respondent_id="r", mode="human", run=1, status="ok")
    return (
        scale_scores(tidy(answers, questionnaire), questionnaire)
        .set_index("scale")["score"]
        .to_dict()
    )


def test_texts_options_keys_and_licence_are_the_files(tmp_path):
    tea = load(tmp_path)
    assert (tea.id, tea.licence, tea.instructions) == (
        "osd-gad7", "CC BY 4.0", "How true is it? Of you"
    )  # fmt: skip
    assert [item.text for item in tea.items] == ["I like tea.", "I pour tea away.", "I like tea."]
    assert [(option.value, option.label) for option in tea.choices("q1")] == [
        (0, "Not"), (1, "1"), (2, "Wholly")
    ]  # fmt: skip
    assert [(scale.title, scale.items, scale.reverse) for scale in tea.scales] == [
        ("Love", ("q1", "q2"), ("q2",)), ("again", ("q3",), ())
    ]  # fmt: skip
    assert scores(tea, [2, 0, 5]) == {"love": 2, "again": 5}


def test_an_item_that_is_asked_twice_is_answered_twice(tmp_path):
    tea = load(tmp_path, ("definition/items/3", TEA["definition"]["items"][1] | {"id": "q3"}))
    answers = ask(tea, 2, mode="simulated", store="memory://twice", progress=False)
    assert sorted(answers["item_id"].unique()) == ["q1", "q2", "q3"]


def test_one_scale_may_not_ask_an_item_twice(tmp_path):
    twice = TEA["definition"]["items"][1] | {"id": "q3"}
    items = {"q1": 1, "q2": -1, "q3": 1}
    with pytest.raises(QuestionnaireError, match="q3"):
        load(tmp_path, ("definition/items/3", twice), ("definition/scoring/love/items", items))


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("definition/scoring/love/transform", [{"op": "add", "value": 1}], "scoring, love"),
        ("definition/scoring/love/value_map", {"default": [0, 0, 1]}, "scoring, love"),
        ("definition/scoring/love/scores", ["again"], "scoring, love"),
        ("definition/scoring/love/item_coding", {"q1": -1}, "scoring, love"),
        ("definition/scoring/love/method", "weighted_sum", "scoring, love"),
        ("definition/scoring/love/items", ["q1", "age"], "item age"),
        ("definition/scoring/love/items", ["q1", "grid_1"], "item grid_1"),
        ("definition/scoring", {}, "definition, scoring"),
        ("definition/items/2/visible_when", SHORT | {"value": 0}, "item q2"),
        ("definition/items/2/visible_when", {"item": "q1", "operator": "equals"}, "item q2"),
        ("definition/items/0", {"id": "s", "type": "section", "visible_when": "q9"}, "item q1"),
        ("definition/items/1/likert_max", 100, "item q1"),
        ("definition/items/3/options", ["l0", "l2"], "item q3"),
        ("translations/en/q2", "Look: <img src='tea.png'>", "item q2"),
        ("translations/en/q2", "I pour {drink} away.", "item q2"),
        ("translations", {}, "translations"),
        ("definition/scoring/love/items", {"q1": 2}, "scoring, love"),
    ],
)
def test_what_cannot_be_scored_as_the_file_says_is_refused_at_its_place(
    tmp_path, path, value, place
):
    with pytest.raises(QuestionnaireError) as error:
        load(tmp_path, (path, value))
    (line,) = str(error.value).splitlines()
    assert f", {place}" in line


@mirrored
def test_mirrored_files_load_or_are_refused():
    refused = []
    for file in FILES:
        try:
            load_questionnaire(file)
        except QuestionnaireError:
            refused.append(file.stem)

    assert (len(FILES), len(FILES) - len(refused)) == (162, 140)


@mirrored
@pytest.mark.parametrize(
    ("name", "values", "score"),
    [
        # Items 4, 8, 12 and 16 are reversed: 0 + 1 + 2 + (3 - 3) four times, then 0 + 1 + 2 + 3.
        ("CESD", [0, 1, 2, 3] * 5, 18),
        # Items 3, 5, 8, 9 and 10 are reversed: 2 + 0 + 3 + 0 + 1, and 3 + 2 + 0 + 2 + 1.
        ("RSES", [3, 2, 1, 0, 3, 2, 1, 0, 3, 2], 14),
    ],
)
def test_scores_of_mirrored_files_are_those_worked_by_hand(name, values, score):
    (file,) = [file for file in FILES if file.stem == name]
    assert list(scores(load_questionnaire(file), values).values()) == [score]


@mirrored
def test_keys_of_the_ipip_agree_with_ours():
    (file,) = [file for file in FILES if file.stem == "IPIP-Big5-50"]
    theirs = load_questionnaire(file)
    ours = load_questionnaire("ipip50")

    keys = {}
    for questionnaire in (theirs, ours):
        for scale in questionnaire.scales:
            for item, key in questionnaire.keys(scale).items():
                text = questionnaire.item(item).text.lower().removeprefix("i ").strip(" .")
                keys.setdefault(text, []).append((scale.title, key))

    pairs = [pair for pair in keys.values() if len(pair) == 2]
    assert len(pairs) > 40, (len(pairs), [text for text, pair in keys.items() if len(pair) < 2])
    turned = {theirs for (theirs, key), (_, other) in pairs if key != other}
    assert len(turned) <= 1
