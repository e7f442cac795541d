"""Questionnaire files: what is read from them, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from psychometrics.exceptions import QuestionnaireError
from psychometrics.paths import questionnaires_dir
from psychometrics.questionnaires import counts, load_questionnaire, questionnaire_names


@pytest.fixture
def mistaken(tmp_path: Path):
    """Function that writes GAD-7 with a change made to it, and gives the error's lines."""

    def write(change, name: str = "gad7.yaml") -> list[str]:
        content = yaml.safe_load((questionnaires_dir() / "gad7.yaml").read_text())
        change(content)
        path = tmp_path / name
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        with pytest.raises(QuestionnaireError) as error:
            load_questionnaire(path)
        lines = str(error.value).splitlines()
        assert all(line.startswith(f"{path}, ") and line.endswith(".") for line in lines)
        return [line.removeprefix(f"{path}, ") for line in lines]

    return write


def test_all_shipped_instruments_load_under_their_names():
    names = questionnaire_names()
    assert {"gad7", "phq9", "soc13", "challenges"} <= set(names)
    assert [load_questionnaire(name).id for name in names] == names


def test_soc13_subscales_have_the_published_items_and_split_the_scale():
    soc = load_questionnaire("soc13")
    parts = {scale.id: [item.id for item in soc.members(scale)] for scale in soc.scales[1:]}
    # Positions of the items in SOC-13; Antonovsky (1993).
    published = {
        "comprehensibility": [2, 6, 8, 9, 11],
        "manageability": [3, 5, 10, 13],
        "meaningfulness": [1, 4, 7, 12],
    }
    assert parts == {name: [f"soc13_{n}" for n in numbers] for name, numbers in published.items()}
    assert [item.keying for item in soc.items].count(1) == 2


def test_counts_multiply_terms_by_intensifiers_by_templates():
    table = counts(load_questionnaire("phq9"))
    assert table.loc["phq9_6"].tolist() == [3, 3.0, 3.0, 8, 3 * 6 * 8]


def test_an_unknown_placeholder_is_named_with_item_and_template(mistaken):
    def change(content):
        content["items"][2]["templates"][0]["premise"] = "I {feeling} things."

    assert mistaken(change) == [
        "item 3 (gad7_3), template 1, premise: unknown placeholder {feeling}: "
        "templates know {term} and {intensifier}."
    ]


def test_a_template_without_a_term_says_how_often_it_needs_one(mistaken):
    def change(content):
        content["items"][0]["templates"][1]["premise"] = "Something is so."

    assert mistaken(change) == [
        "item 1 (gad7_1), template 2: premise and hypothesis together need {term} exactly once, "
        "they have it 0 times."
    ]


def test_a_lone_brace_is_refused(mistaken):
    def change(content):
        content["items"][0]["templates"][0]["premise"] = "I {term} and {"

    assert mistaken(change) == [
        "item 1 (gad7_1), template 1, premise: has a brace without its partner: "
        "write {term} or {intensifier}."
    ]


def test_every_mistake_is_told_at_once(mistaken):
    def change(content):
        del content["licence"]
        content["itmes"] = []
        content["items"][1]["keying"] = 2
        content["items"][4]["text"] = True

    assert mistaken(change) == [
        "licence: is missing; add it.",
        "item 2 (gad7_2), keying: input should be 1 or -1, got 2.",
        "item 5 (gad7_5), text: input should be a valid string, got True; put it in quotes.",
        "itmes: is not a known key; remove or rename it.",
    ]


def test_parts_that_do_not_fit_together_are_told_at_once(mistaken):
    def change(content):
        content["scales"].append({"id": "x", "title": "X", "items": ["gad7_9"], "parent": "y"})
        content["norms"][0]["scale"] = "z"
        content["items"][0].pop("terms")
        content["items"][6]["id"] = "gad7_6"
        content["intensifiers"][5]["weight"] = 1

    lines = mistaken(change)
    assert "items: the id 'gad7_6' occurs more than once; rename one." in lines
    assert (
        "item 1 (gad7_1), template 1: has no terms; give the item source and inverse terms."
        in lines
    )
    assert (
        "intensifiers: the weights must rise from level to level, "
        "got [-4.0, -3.0, -2.0, 2.0, 3.0, 1.0]." in lines
    )
    assert "scale x: its parent 'y' is no scale; correct it." in lines
    assert "scale x: there is no item 'gad7_9'; correct it." in lines
    assert "norms: there is no scale 'z'; correct it." in lines


def test_a_term_on_both_sides_is_refused(mistaken):
    def change(content):
        content["items"][0]["terms"]["inverse"][0] = "nervous"

    assert mistaken(change) == [
        "item 1 (gad7_1), terms: 'nervous' occurs more than once: keep one of them."
    ]


def test_an_intensifier_in_two_levels_is_refused(mistaken):
    def change(content):
        content["intensifiers"][0]["terms"] = ["never", "seldom"]

    assert mistaken(change) == ["intensifiers: 'seldom' is in two places; keep one."]


def test_the_id_must_be_the_files_name(mistaken):
    assert "must be the file's name" in mistaken(lambda content: None, "other.yaml")[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id: a\n  title: b: c\n", "line 2, column 8: not valid YAML"),
        ("id: a\nid: b\n", "line 2, column 1: not valid YAML ('id' is given twice: keep one)"),
        ("", "holds no questionnaire"),
        ("- a\n- b\n", "holds no questionnaire"),
        ("id: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ],
)
def test_malformed_yaml_ends_in_one_sentence_with_its_place(tmp_path, text, said):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(QuestionnaireError) as error:
        load_questionnaire(path)
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QuestionnaireError, match="UTF-8"):
        load_questionnaire(path)


def test_a_wrong_name_gets_the_nearest_one():
    with pytest.raises(QuestionnaireError, match=r"did you mean 'phq9'\?"):
        load_questionnaire("phq-9")
