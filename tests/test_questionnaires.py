"""Questionnaire files: what is read from them, and what is said about mistakes."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from psychometrics import data, prompts, scale_scores
from psychometrics.exceptions import ParameterError, QuestionnaireError
from psychometrics.measures.categories import category_scores
from psychometrics.paths import book_dir, questionnaires_dir
from psychometrics.questionnaires import (
    COMPASS,
    counts,
    load_questionnaire,
    perturbed,
    psychobench_keys,
    questionnaire_names,
)
from psychometrics.questionnaires.answers import COLUMNS, tidy
from psychometrics.questionnaires.perturbations import _PERTURBATIONS, _mistype
from psychometrics.questionnaires.schema import questionnaire_schema
from tests.conftest import needs

needs_wording = needs("psychobench")
needs_compass = needs(COMPASS)


def test_all_shipped_questionnaires_load_under_their_names():
    names = questionnaire_names()
    assert {"gad7", "phq9", "soc13", "challenges"} <= set(names)
    assert [load_questionnaire(name, texts=False).id for name in names if name != COMPASS] == [
        name for name in names if name != COMPASS
    ]


def test_counts_multiply_terms_by_intensifiers_by_templates():
    table = counts(load_questionnaire("phq9"))
    assert table.loc["phq9_6"].tolist() == [3, 3.0, 3.0, 8, 3 * 6 * 8, 4]


def test_every_mistake_is_told_at_once(lines):
    content = yaml.safe_load((questionnaires_dir() / "gad7.yaml").read_text())
    del content["licence"]
    content["itmes"] = []
    content["items"][1]["keying"] = 2
    content["items"][4]["text"] = True
    assert lines(content, "gad7.yaml") == [
        "licence: is missing; add this key.",
        "item 2 (gad7_2), keying: must be 1 or -1, got 2.",
        "item 5 (gad7_5), text: must be text in quotes, got True.",
        "itmes: is not a known key; remove or rename it.",
    ]


# Mistakes of single parts, and mistakes in how parts fit together: place, wrong value, place named.
OF_PARTS = [
    (("licence",), ..., "licence"),
    (("itmes",), [], "itmes"),
    (("options", 1, "label"), False, "option 2, label"),
    (("intensifiers", 5, "weight"), 1, "intensifiers"),
    (("scales", 0, "mode"), "median", "scale 1 (gad7), mode"),
    (("items", 0, "terms"), ..., "item 1 (gad7_1)"),
    (("items", 1, "keying"), 2, "item 2 (gad7_2), keying"),
    (("items", 4, "text"), True, "item 5 (gad7_5), text"),
    (("items", 6, "colour"), "red", "item 7 (gad7_7), colour"),
]
BETWEEN_PARTS = [
    (("scales", 0, "parent"), "nix", "scale gad7"),
    (("scales", 0, "items"), ["gad7_1", "nix"], "scale gad7"),
    (("items", 3, "weights"), [[1]], "item 4 (gad7_4)"),
    (("norms", 0, "scale"), "z", "norms"),
    (("bias",), [1], "bias"),
]


@pytest.mark.parametrize("mistakes", [OF_PARTS, BETWEEN_PARTS])
def test_all_mistakes_of_one_kind_are_told_at_once_each_with_its_place(lines, mistakes):
    content = yaml.safe_load((questionnaires_dir() / "gad7.yaml").read_text())
    for (*places, last), value, _ in mistakes:
        part = functools.reduce(lambda inner, key: inner[key], places, content)
        if value is ...:
            del part[last]
        else:
            part[last] = value

    told = {line.partition(": ")[0] for line in lines(content, "gad7.yaml")}
    assert told == {place for *_, place in mistakes}


def test_a_questionnaire_has_the_name_of_its_file(lines):
    text = (questionnaires_dir() / "gad7.yaml").read_text()
    assert "must be the file's name" in lines(text, "other.yaml")[0]


# --- the three layouts

PSYCHOBENCH = {
    "name": "Own scale",
    "questions": {"1": "I like tea.", "2": "I dislike tea.", "3": "I drink it daily."},
    "inner_setting": "You reply with numbers.",
    "prompt": "Reply from 0 to 4. 0 denotes 'not at all', 4 denotes 'wholly'.",
    "scale": 4,
    "compute_mode": "AVG",
    "reverse": [2],
    "categories": [{"cat_name": "Tea Love", "cat_questions": [1, 2, 3],
                    "crowd": [{"crowd_name": "Drinkers", "mean": 3.0, "std": 0.5, "n": 100}]}],
}  # fmt: skip
LIKERT = {
    "categories": ["left", "right"],
    "categories_bias": [0.5, 0],
    "choice_descs": ["no", "yes"],
    "data": {"a": {"question": "Tea?", "scores": [[0, 1], [2, 0]]}},
}
CHOICE = {
    "categories": ["left", "right"],
    "data": {
        "a": {"question": "Which?", "choices": ["tea", "milk"], "scores": [[0, 1], [2, 0]]},
        "b": {"question": "Which?", "choices": ["a", "b", "c"], "scores": [[0, 1], [2, 0], [0, 0]]},
    },
}
SCORED = {"categories": ["left"], "data": {"a": {"question": "Tea is hot.", "scores": [[1], [0]]}}}
ANSWERED = {
    "data": {
        "a": {"question": "Tea is hot.", "answer": "True"},
        "b": {"question": "Tea is blue.", "answer": False},
    }
}


def own_yaml() -> dict:
    """ipip20 under another name, with a norm."""
    content = yaml.safe_load((questionnaires_dir() / "ipip20.yaml").read_text())
    norm = {
        "scale": "extraversion", "group": "All", "n": 50, "mean": 3, "sd": 1, "citation": "user",
    }  # fmt: skip
    return content | {"id": "own", "norms": [norm]}


@pytest.fixture
def write(tmp_path: Path):
    """Function that writes a file and gives its path."""

    def put(content, name: str = "own.json") -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif path.suffix == ".json":
            path.write_text(json.dumps(content))
        else:
            path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    return put


@pytest.fixture
def lines(write):
    """Function that gives what is said of a file, without the file's name before each line."""

    def read(content, name: str = "own.json") -> list[str]:
        path = write(content, name)
        with pytest.raises(QuestionnaireError) as error:
            load_questionnaire(path)
        said = str(error.value).splitlines()
        assert all(line.startswith(str(path)) and line.endswith(".") for line in said)
        return [line.removeprefix(str(path)).lstrip(",: ") for line in said]

    return read


@pytest.mark.parametrize("wrap", [lambda entry: entry, lambda entry: [entry]])
def test_a_file_of_psychobenchs_layout_keeps_its_range_keys_labels_and_norms(write, wrap):
    own = load_questionnaire(write(wrap(PSYCHOBENCH), "My Tea.json"))
    assert (own.id, own.title, own.measures) == ("my-tea", "Own scale", "Tea Love")
    assert [(o.value, o.label) for o in own.options] == [
        (0, "not at all"), (1, "1"), (2, "2"), (3, "3"), (4, "wholly")
    ]  # fmt: skip
    (scale,) = own.scales
    assert (scale.id, scale.title, scale.mode) == ("tea_love", "Tea Love", "mean")
    assert own.keys(scale) == {"my-tea_1": 1, "my-tea_2": -1, "my-tea_3": 1}
    assert (own.instructions, own.system) == (PSYCHOBENCH["prompt"], PSYCHOBENCH["inner_setting"])
    assert own.norms[0].model_dump() == {
        "scale": "tea_love", "group": "Drinkers", "n": 100, "mean": 3, "sd": 0.5, "citation": "user"
    }  # fmt: skip


def test_a_file_of_psychobenchs_layout_may_have_sums_nameless_scales_and_no_words(write):
    two = [{"cat_name": "茶", "cat_questions": [1, 2]}, {"cat_name": "!", "cat_questions": [3]}]
    bare = {"compute_mode": "SUM", "prompt": "Reply from 0 to 5.", "categories": two}
    own = load_questionnaire(write(PSYCHOBENCH | bare))
    assert [(scale.id, scale.mode) for scale in own.scales] == [("s1", "sum"), ("s2", "sum")]
    assert own.keys(own.scales[0]) == {"own_1": 1, "own_2": -1}
    # From 0 to 5 would add up to 5: the range that adds up to 4 begins with 1.
    assert [(o.value, o.label) for o in own.options] == [(1, "1"), (2, "2"), (3, "3")]
    assert own.norms == ()


@pytest.mark.parametrize(
    ("scale", "options"), [(2, None), (3, 2), (102, 101), (103, None), (-5, None)]
)
def test_a_psychobench_scale_has_2_to_101_answers(write, lines, scale, options):
    entry = PSYCHOBENCH | {"scale": scale, "prompt": "Reply."}
    if options is None:
        assert any(f"plus the highest answer, got {scale}" in line for line in lines(entry))
    else:
        assert len(load_questionnaire(write(entry)).options) == options


@needs_wording
@pytest.mark.parametrize("at", range(13))
def test_each_entry_of_psychobenchs_own_file_reads_with_the_shipped_keys_and_norms(write, at):
    entry = json.loads(data.fetch("psychobench").read_text())[at]
    read = load_questionnaire(write([entry]))
    shipped = {keys["upstream"]: name for name, keys in psychobench_keys().items()}
    ours = load_questionnaire(shipped[entry["name"]], texts=False)
    count = len(read.scales)
    assert [o.value for o in read.options] == [o.value for o in ours.options]
    for mine, theirs in zip(read.scales, ours.scales[:count], strict=True):
        assert list(read.keys(mine).values()) == list(ours.keys(theirs).values())
        assert mine.mode == theirs.mode
    figures = [[(n.mean, round(n.sd, 4), n.n) for n in q.norms] for q in (read, ours)]
    assert figures[0] == figures[1]
    assert len(read.items) == len(ours.items)


def test_likert_choice_and_true_false_files_of_question_llm_are_read(write):
    likert = load_questionnaire(write(LIKERT))
    assert [option.label for option in likert.choices("a")] == ["no", "yes"]
    assert likert.bias == (0.5, 0)
    choice = load_questionnaire(write(CHOICE))
    assert [option.label for option in choice.choices("b")] == ["a", "b", "c"]
    assert choice.bias == (0, 0)
    scored = load_questionnaire(write(SCORED))
    assert [option.label for option in scored.choices("a")] == ["True", "False"]
    assert scored.items[0].weights == ((1,), (0,))
    answered = load_questionnaire(write(ANSWERED))
    assert answered.categories == ("Correct", "Incorrect")
    assert [item.weights for item in answered.items] == [((1, 0), (0, 1)), ((0, 1), (1, 0))]


def test_the_examples_of_the_readme_load(write):
    text = (questionnaires_dir() / "README.md").read_text()
    shown = re.findall(r"```(yaml|json)\n(.*?)```", text, flags=re.DOTALL)
    assert [kind for kind, _ in shown] == ["yaml", "json", "json", "json"]
    for kind, content in shown:
        assert load_questionnaire(write(content, f"tea.{kind}")).id == "tea"


def test_a_shipped_questionnaires_copy_loads_and_another_under_its_name_is_refused(write, lines):
    text = (questionnaires_dir() / "gad7.yaml").read_text()
    assert load_questionnaire(write(text, "gad7.yaml")) == load_questionnaire("gad7")
    (said,) = lines(text.replace("Feeling nervous", "Being nervous"), "gad7.yaml")
    assert "is the name of a shipped questionnaire: rename yours" in said
    assert "is the name of a shipped" in lines(PSYCHOBENCH, "bfi.json")[0]


# --- norms, keys and categories of one's own file


def test_categories_of_ones_own_file_are_scored_by_its_path(write):
    path = write(CHOICE)
    row = {"respondent_id": "r", "mode": "human", "run": 1, "status": "ok"}
    answers = [row | {"item_id": "a", "value": 2}, row | {"item_id": "b", "value": 1}]
    table = category_scores(tidy(answers, load_questionnaire(path)), path)
    assert table.set_index("category")["score"].to_dict() == {"left": 2, "right": 1}


# --- what is refused, and what is said


def changed(content: dict, *path, to) -> dict:
    """A copy with another value at a place; ``to=...`` takes the place away."""
    copy = json.loads(json.dumps(content))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    if to is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = to
    return copy


def gad7(*path, to) -> dict:
    content = yaml.safe_load((questionnaires_dir() / "gad7.yaml").read_text())
    return changed(content | {"id": "own"}, *path, to=to)


WEIGHT, TERM = ("intensifiers", 5, "weight"), ("items", 0, "terms", "source", 0)


BAD = {
    "infinite weight": (gad7(*WEIGHT, to=float("inf")), "intensifier 6, weight: "),
    "term with a gap": (gad7(*TERM, to="{intensifier}"), "brace"),
    "a tag": (gad7(*TERM, to="<script>alert(1)</script>"), "tag"),
    "line break in a term": (gad7(*TERM, to="ner\nvous"), "line break"),
    "zero width space": (gad7(*TERM, to="nervous\u200b"), "U+200B"),
    "capitals": (gad7("intensifiers", 5, "terms", to=["Never"]), "'Never'"),
    "own parent": (gad7("scales", 0, "parent", to="gad7"), "a scale without a parent"),
    "norm n true": (gad7("norms", 0, "n", to=True), "norm 1, n: "),
    "value twice": (gad7("options", 0, "value", to=1), "options: 'value 1.0' occurs twice"),
    "one option": (gad7("options", to=[{"value": 1, "label": "x"}]), "one option"),
    "item twice": (gad7("scales", 0, "items", to=["gad7_1"] * 2), "'gad7_1' occurs twice"),
    "no items": (gad7("items", to=[]), "items: "),
    "weights only": (gad7("items", 0, "weights", to=[[1]]), "categories"),
    "a sign": ("id: own\ntitle: \x07", "line 2: has the invisible character U+0007"),
    "deep YAML": ("[" * 2000, "nested too deeply"),
    "merge key": ("<<: {id: own}", "<<: is not a known key"),
    "a key that is no text": ("1: x", "the key 1 "),
    "a tag of YAML": ("a: !!int maybe", "a tag (!!...)"),
    "an alias of itself": ("items: &a [*a]\n", "nested too deeply"),
}
BAD_JSON = {
    "nan": (json.dumps(changed(PSYCHOBENCH, "scale", to=float("nan"))), "NaN is not a number"),
    "overflow": (json.dumps(LIKERT).replace("0.5", "1e999"), "finite number"),
    "key twice": ('{"data": {}, "data": {}}', "'data' occurs twice"),
    "unknown key": (LIKERT | {"seeds": 1}, "seeds: is not a known key"),
    "a row too few": (changed(CHOICE, "data", "a", "scores", to=[[1, 0]]), "2 options by 2"),
    "no categories": (changed(CHOICE, "categories", to=...), "data, a: "),
    "another answer": (changed(ANSWERED, "data", "a", "answer", to="maybe"), "must be one of True"),
    "reversing nothing": (PSYCHOBENCH | {"reverse": [7]}, "reverse: there is no question 7"),
    "no data": ({"categories": ["a"]}, "data: is missing"),
    "scale as text": (PSYCHOBENCH | {"scale": "6"}, "scale: "),
    "no such item": (changed(PSYCHOBENCH, "categories", 0, "cat_questions", to=[9]), "'own_9'"),
    "crowd": (changed(PSYCHOBENCH, "categories", 0, "crowd", 0, "std", to=0), "norm 1, sd: "),
    "deep": ("[" * 100_000, "nested too deeply"),
    "not JSON": ("{", "line 1, column 2: "),
    "a number": ("5", "holds no questionnaire"),
    "two of them": ([PSYCHOBENCH, PSYCHOBENCH], "holds 2 questionnaires; split the file"),
    "no scale": (PSYCHOBENCH | {"categories": []}, "categories: "),
    "answer and scores": (
        changed(SCORED, "data", "a", "answer", to="True"),
        "either an `answer` or scores",
    ),
    "neither": (changed(ANSWERED, "data", "a", "answer", to=...), "either an `answer` or scores"),
    "an invisible key": (
        ANSWERED | {"data": {"\x1b": {"question": "Do you like tea?"}}},
        r"data, \x1b: needs either",
    ),
    "a seed for nothing": (ANSWERED | {"seed": 1}, "seed: shuffles"),
}


@pytest.mark.parametrize("case", [*BAD, *BAD_JSON])
def test_a_mistake_is_named_with_its_place(lines, case):
    content, said = (BAD | BAD_JSON)[case]
    found = lines(content, "own.yaml" if case in BAD else "own.json")
    assert any(said in line for line in found), found


def test_yaml_reads_dates_and_ratios_as_text_and_long_numbers_not_at_all(write, lines):
    text = yaml.safe_dump(own_yaml(), sort_keys=False)
    dated = text.replace("title: ", "title: 2020-13-45 #", 1)
    assert load_questionnaire(write(dated, "own.yaml")).title == "2020-13-45"
    for number in ("1:30", "9" * 100_000):
        (said,) = lines(text.replace("value: 5", f"value: {number}", 1), "own.yaml")
        assert said.startswith("option 5, value: must be a number, got")
        assert len(said) < 200


@pytest.mark.parametrize("name", ["x" * 5000, "~nosuchuser/x", "a\0b", "", "/", "a\nb", "../gad7"])
def test_a_name_that_is_no_file_ends_in_one_line(name):
    with pytest.raises(QuestionnaireError, match="No questionnaire '") as error:
        load_questionnaire(name)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 700


# --- what comes with the project


@needs_compass
def test_the_compass_file_is_read_with_categories_weights_and_bias():
    compass = load_questionnaire(COMPASS)
    assert (len(compass.items), compass.categories) == (62, ("economic", "social"))
    assert compass.bias == (0.38, 2.41)
    assert all(np.shape(item.weights) == (4, 2) for item in compass.items)


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
    assert frame["value"].fillna(0).tolist() == [3, 0]
    assert tidy([], mini).columns.tolist() == list(COLUMNS)
    whole = row | {"status": "ok"}
    changes = ({"value": 6}, {"value": None}, {"value": "often"}, {"status": "x"}, {"item_id": "x"})
    gaps = [{k: v for k, v in whole.items() if k != column} for column in COLUMNS[2:]]
    for wrong in (5, *([whole | change] for change in changes), *([gap] for gap in gaps)):
        with pytest.raises(ParameterError):
            tidy(wrong, mini)


# --- asked in other words --------------------------------------------------------------------

WAYS = st.sampled_from(_PERTURBATIONS)
shipped = functools.cache(load_questionnaire)
NAMES = "ipip20 ipip50 gad7 phq9 soc13 two_axes gender8 esteem10 placebo_habits"
ENGLISH = st.sampled_from(NAMES.split())


@given(ENGLISH, st.sampled_from(["order", "typos", "paraphrase"]), st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test_what_leaves_the_meaning_leaves_keys_options_and_scales_as_they_are(name, how, seed):
    before = shipped(name)
    after = perturbed(before, how, seed)
    assert after.keys() == before.keys()
    assert [s.model_dump() for s in after.scales] == [s.model_dump() for s in before.scales]
    assert after.options == before.options
    for scale in before.scales:
        assert after.keys(after.scale(scale.id)) == before.keys(scale)
    for item in before.items:
        assert after.item(item.id).weights == item.weights
        assert [t.terms for t in after.item(item.id).templates] == [t.terms for t in item.templates]
    assert after != before


@given(ENGLISH)
@settings(max_examples=9, deadline=None)
def test_a_denial_turns_every_key_and_weight_round(name):
    before, after = shipped(name), perturbed(shipped(name), "negation")
    assert after.keys() == {item: -key for item, key in before.keys().items()}
    for scale in before.scales:
        turned = {item: -key for item, key in before.keys(scale).items()}
        assert after.keys(after.scale(scale.id)) == turned
    for item in before.items:
        if item.weights:
            assert after.item(item.id).weights == item.weights[::-1]
        if before.choices(item):
            assert after.statement(after.item(item.id)) != before.statement(item)


@given(ENGLISH, WAYS, st.integers(0, 999))
@settings(max_examples=6, deadline=None)
def test_the_same_draw_gives_the_same_questionnaire_which_its_name_finds(name, how, seed):
    after = perturbed(shipped(name), how, seed)
    assert after == perturbed(shipped(name), how, seed) == load_questionnaire(after.id)
    assert sorted(item.id for item in after.items) == sorted(
        item.id for item in shipped(name).items
    )
    if any(item.templates for item in after.items):
        order = ["item_id", "template", "term", "level", "intensifier"]
        weights = [prompts(q).sort_values(order)["weight"].tolist() for q in (after, shipped(name))]
        assert weights[0] == weights[1]


@given(st.text(alphabet="abcdefg hijkl{term}.'ñ", max_size=60), st.integers(0, 99))
@settings(deadline=None)
def test_slips_change_no_gap_no_first_letter_and_at_most_one_sign_of_a_word(text, seed):
    typed = _mistype(text, np.random.default_rng(seed))
    assert typed.count("{term}") == text.count("{term}")
    assert len(typed.split()) == len(text.split())
    for before, after in zip(text.split(), typed.split(), strict=True):
        assert before[0] == after[0]
    words = len(re.findall(r"[^\W\d_]{4,}", re.sub(r"{[^{}]*}", " ", text)))
    assert abs(len(typed) - len(text)) <= max(1, round(words / 6)) * bool(words)


def test_a_text_of_the_files_own_comes_before_a_rule(write):
    own = {**own_yaml(), "id": "own"}
    own["items"][0] |= {"paraphrases": ["Make a party go."], "negated": "Spoil a party."}
    own = load_questionnaire(write(own, "own.yaml"))
    assert perturbed(own, "paraphrase", 5).items[0].text == "I make a party go."
    assert perturbed(own, "negation").items[0].text == "I spoil a party."
    assert not perturbed(own, "negation").norms  # of the old wording


def test_a_perturbed_questionnaire_is_scored_by_its_name_and_its_turned_keys():
    values = {item.id: 4.0 for item in load_questionnaire("ipip20").items}
    rows = [{"respondent_id": "r", "mode": "human", "run": 1, "item_id": i, "value": v,
             "status": "ok"} for i, v in values.items()]  # fmt: skip
    plain = scale_scores(tidy(rows, load_questionnaire("ipip20")))
    denied = scale_scores(tidy(rows, load_questionnaire("ipip20-negation")))
    assert denied["questionnaire"].unique().tolist() == ["ipip20-negation"]
    # Who agrees with all denials has the scores of one who disagrees with all statements.
    assert np.allclose(denied["score"], 6 - plain["score"])


# --- the schema for editors ------------------------------------------------------------------

SCHEMA = book_dir() / "_static" / "questionnaire.schema.json"


def test_the_books_schema_is_what_the_model_makes():
    """Renew the file as the docstring of psychometrics.questionnaires.schema says."""
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == questionnaire_schema()


@pytest.mark.parametrize("path", sorted(questionnaires_dir().glob("*.yaml")), ids=lambda p: p.stem)
def test_shipped_questionnaires_are_valid_by_the_schema(path):
    jsonschema = pytest.importorskip("jsonschema")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(questionnaire_schema()).validate(content)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("itmes",), []),
        (("items", 1, "keying"), 2),
        (("items", 4, "text"), True),
        (("scales", 0, "mode"), "median"),
        (("scales", 0, "items"), "some"),
        (("norms", 0, "n"), 0),
    ],
)
def test_the_schema_refuses_what_the_model_refuses_at_the_same_place(lines, place, value):
    jsonschema = pytest.importorskip("jsonschema")
    content = gad7(*place, to=value)
    (mistake,) = jsonschema.Draft202012Validator(questionnaire_schema()).iter_errors(content)
    assert tuple(mistake.absolute_path) in (place, place[:-1])
    assert len(lines(content, "own.yaml")) == 1


# --- more questionnaires ---------------------------------------------------------------------


def test_a_chat_model_can_be_asked_the_weather_with_the_options_of_anxiety():
    weather, anxiety = (load_questionnaire(name) for name in ("placebo_weather", "gad7"))
    options = [weather.choices(item) for item in weather.items]
    assert options == [anxiety.choices(anxiety.items[0])] * len(anxiety.items)
