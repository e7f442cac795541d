"""Tables of others: what a name, a cell, a column or a row means is read rightly, or asked for.

The files in ``exports/`` have the forms in which survey tools save tables, with the same answers of
two people to the GAD-7.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics.answers.item_names import _ItemNames, _numbered_names, _OptionNames
from psychometrics.cli import app
from psychometrics.exceptions import ParameterError
from psychometrics.questionnaires.layout import _make_identifier

EXPORTS = Path(__file__).parent / "exports"
GAD = pm.load_questionnaire("gad7")
ITEMS = [item.id for item in GAD.items]
TEXTS = [item.text for item in GAD.items]
LABELS = [option.label for option in GAD.options]
ROWS = {"a": [0, 1, 2, 3, 0, 1, 2], "b": [3, 2, 1, 0, 3, 2, 1]}
SEVEN = GAD.model_copy(
    update={
        "options": tuple(
            GAD.options[0].model_copy(update={"value": float(n), "label": str(n)})
            for n in range(1, 8)
        )
    }
)


def _read(source, questionnaire="gad7", **how) -> pd.DataFrame:
    return pm.read_answers(source, questionnaire, progress=False, **how)


def _values(answers: pd.DataFrame) -> dict[str, list[float]]:
    return {name: part["value"].tolist() for name, part in answers.groupby("respondent_id")}


def _table(cells, names=ITEMS, **more) -> pd.DataFrame:
    """A row for each respondent, with cells of any kind."""
    frame = pd.DataFrame(cells, columns=list(names), dtype=object)
    frame.insert(0, "id", [chr(ord("a") + row) for row in range(len(frame))])
    return frame.assign(**more)


def _with_options(*options: tuple[float, str]):
    part = GAD.options[0]
    made = tuple(part.model_copy(update={"value": v, "label": label}) for v, label in options)
    return GAD.model_copy(update={"options": made})


def _whats(answers: pd.DataFrame) -> dict[str, str]:
    return {row["what"]: row["said"] for row in answers.attrs["summary"]["read"]}


# Exports of survey tools --------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(EXPORTS.glob("*.csv")), ids=lambda path: path.stem)
def test_an_export_has_the_known_answers_of_the_known_people(path):
    how = {"numbers": "from 1"} if path.stem in ("qualtrics-legacy", "sosci") else {}
    answers = _read(path, **how)
    assert _values(answers) == ROWS
    assert answers.groupby("respondent_id")["run"].nunique().tolist() == [1, 1]
    scores = pm.scale_scores(answers).set_index("respondent_id")["score"]
    assert scores.to_dict() == {"a": np.mean(ROWS["a"]), "b": np.mean(ROWS["b"])}


@pytest.mark.parametrize("name", ["qualtrics-legacy", "sosci"])
def test_answers_of_two_people_from_1_to_4_are_not_taken_for_0_to_3_or_4_for_a_mistake(name):
    with pytest.raises(ParameterError, match="numbers='from 1'"):
        _read(EXPORTS / f"{name}.csv")


def _grid(place: int) -> str:
    return f"How often? [{TEXTS[place]}]"


HEADERS = {
    "ids": lambda place: ITEMS[place],
    "texts": lambda place: TEXTS[place],
    "capitals": lambda place: TEXTS[place].upper() + ":",
    "grid": _grid,
    "code and text": lambda place: f"G1[SQ00{place + 1}]. {_grid(place)}",
    "subquestions": lambda place: f"GAD7[SQ00{place + 1}]",
    "name and word": lambda place: f"gad7_item{place + 1:02d}",
    "question and text": lambda place: f"Q{place + 1} - {TEXTS[place]}",
}
CELLS = {
    "values": lambda value: value,
    "texts of values": str,
    "labels": lambda value: LABELS[value],
    "labels in capitals": lambda value: f" {LABELS[value].upper()}. ",
    "places": lambda value: value + 1,
    "letters": lambda value: "ABCD"[value],
    "letters and labels": lambda value: f"{'abcd'[value]}) {LABELS[value]}",
    "codes": lambda value: f"A{value + 1}",
    "long codes": lambda value: f"AO0{value + 1}",
    "numbers and labels": lambda value: f"[{value}] {LABELS[value]}",
}
NO_ANSWER = [None, "", "NA", -9, "99", 9, "-77", "no comment", "2-3", "1/3"]


@settings(max_examples=150, deadline=None)
@given(
    header=st.sampled_from([*HEADERS]),
    cell=st.sampled_from([*CELLS]),
    rows=st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=5),
    lost=st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 6)),
                         st.sampled_from(NO_ANSWER), max_size=4),
    long=st.booleans(),
)  # fmt: skip
@example(header="ids", cell="places", rows=[[0, 1, 2, 3, 0, 1, 2]], lost={}, long=False)
def test_a_known_table_in_any_form_is_read_as_it_is_or_the_doubt_is_named(
    header, cell, rows, lost, long
):
    cells = [[CELLS[cell](value) for value in row] for row in rows]
    known = np.array(rows, dtype=float)
    for (row, place), odd in lost.items():
        if row < len(rows):
            cells[row][place] = odd
            known[row, place] = np.nan

    table = _table(cells, map(HEADERS[header], range(7)))
    if long:
        table = table.melt("id", var_name="item", value_name="resp")

    try:
        answers = _read(table)
    except ParameterError as error:
        said = str(error)
        assert "numbers=" in said or "no readable answer" in said, said
        return

    values = answers["value"].to_numpy().reshape(len(rows), 7)
    is_right = np.isnan(values) | (values == known)
    doubt = "set numbers=" in _whats(answers).get("numbers", "")
    assert is_right.all() or (cell == "places" and doubt)
    if cell not in ("places", "letters", "codes", "long codes"):
        np.testing.assert_array_equal(values, known)


# Names --------------------------------------------------------------------------------------------

SIGNS = st.text(alphabet="ab<>+-=≤€ कीिуй1. ", min_size=1, max_size=5)


def _different(names: list[str]) -> bool:
    return len({unicodedata.normalize("NFC", name.strip()) for name in names}) == len(names)


@settings(max_examples=200, deadline=None)
@given(st.lists(SIGNS, min_size=2, max_size=4).filter(_different))
@example(["< 1 hour", "1 hour", "> 1 hour"])
@example(["+", "++", "-"])
@example(["कि", "की"])
@example(["A-", "A", "A+"])
@example(["1.5 a", "1-5 a", "15 a"])
def test_a_label_as_written_is_its_own_option_and_never_another(labels):
    assume(all(map(str.strip, labels)))
    questionnaire = _with_options(*enumerate(labels, start=1))
    options = _OptionNames(questionnaire, questionnaire.items[0])
    for value, label in enumerate(labels, start=1):
        cell = options.read(label)
        assert cell.kind == "number" or cell.value == value

    for text in ("++", "A+", "15 a", "कु", "≥ 1 hour", "a b c"):
        if text not in labels:
            cell = options.read(text)
            near = {re.sub(r"[ .]", "", label).upper() for label in labels}
            assert re.sub(r"[ .]", "", text).upper() in near or cell.kind != "value", (text, cell)


@settings(max_examples=100, deadline=None)
@given(st.lists(SIGNS, min_size=7, max_size=7).filter(_different))
def test_an_items_text_as_written_is_its_own_item_and_never_another(texts):
    assume(all(map(str.strip, texts)))
    items = [
        item.model_copy(update={"text": text, "id": f"x{place}y"})
        for place, (item, text) in enumerate(zip(GAD.items, texts, strict=True))
    ]
    names = _ItemNames(GAD.model_copy(update={"items": tuple(items), "scales": ()}))
    for item, text in zip(items, texts, strict=True):
        assert names.find(text) in (item.id, None)  # 1 with a full stop is the text '1.'
        assert names.find(item.id) == item.id


def test_an_item_within_a_prompt_is_a_word_of_its_own():
    items = [item.model_copy(update={"text": text}) for item, text in
             zip(GAD.items, ["One.", "Two.", "很开心", "x < 3", "x > 3", "Six", "Sixty"],
                 strict=True)]  # fmt: skip
    names = _ItemNames(GAD.model_copy(update={"items": tuple(items), "scales": ()}))
    assert names.within("Would someone agree?") is None
    assert names.within("Answer: one, or not?") == ITEMS[0]
    assert names.within("请评价:很开心。") == ITEMS[2]
    assert names.within("How true is 'x > 3'?") == ITEMS[4]
    assert names.within("Sixty or more?") == ITEMS[6]


@pytest.mark.parametrize("sign", ["_", ".", "[", "(", " ", "1", "a_", "1_"])
def test_headers_of_any_length_are_compared_soon(sign):
    began = time.process_time()
    table = _table([ROWS["a"]]).assign(**{sign * 60_000: 1, f"r{sign * 60_000}r": 2})
    assert _values(_read(table)) == {"a": ROWS["a"]}
    assert time.process_time() - began < 5


def test_columns_whose_names_differ_in_capitals_alone_are_not_chosen_between():
    table = _table([*ROWS.values()]).rename(columns={"id": "Model"}).assign(MODEL=["x", "y"])
    with pytest.raises(ParameterError, match="Model"):
        _read(table)
    assert set(_values(_read(table.assign(model=["u", "v"])))) == {"u", "v"}


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ([f"gad_q{n}" for n in range(1, 8)], None),
        ([f"gad_{n}" for n in range(1, 8)], None),
        ([f"q{n}" for n in range(1, 8)], None),
        ([f"item {n}" for n in range(1, 8)], None),
        ([f"anx{n}" for n in range(1, 8)], "anx"),
    ],
)
@pytest.mark.parametrize("total", ["gad7", "GAD-7", "GAD7"])
def test_a_column_with_the_questionnaires_name_is_a_total(names, columns, total):
    table = _table([*ROWS.values()], names, **{total: [9, 12]})
    answers = _read(table, columns=columns)
    assert _values(answers) == ROWS
    assert "total" in _whats(answers)


def test_the_last_of_a_series_is_an_item_and_alone_it_is_a_total():
    assert _values(_read(_table([*ROWS.values()], [f"gad{n}" for n in range(1, 8)]))) == ROWS
    names = _numbered_names(["gad1", "gad2", "gad7"])["gad"]
    assert list(_ItemNames(GAD).find_all(names)) == ["gad1", "gad2"]
    with pytest.raises(ParameterError):
        _read(pd.DataFrame({"id": ["a", "b"], "gad7": [9, 12]}))


def test_a_lone_column_with_a_number_is_no_item_unless_the_settings_say_so():
    table = pd.DataFrame({"id": ["a", "b"], "Q4": [3, 1]})
    with pytest.raises(ParameterError, match="columns=q"):
        _read(table)
    answers = _read(table, columns="q")
    assert answers.loc[answers["status"] == "ok", "item_id"].unique().tolist() == ["gad7_4"]
    long = _table([*ROWS.values()], ITEMS).melt("id", var_name="item").assign(Q4=[23] * 14)
    assert _values(_read(long)) == ROWS


@pytest.mark.parametrize("label", ["Mean", "total", "SD:", "Summe", "n = 3"])
def test_a_row_of_totals_means_or_counts_below_the_answers_is_asked_for(label):
    table = _table([*ROWS.values(), [3, 3, 0, 1, 1, 2, 0]], ITEMS)
    for cells in ([label, *[1.5] * 7], [label, 3, *[None] * 6]):
        below = pd.DataFrame([cells], columns=["id", *ITEMS], dtype=object)
        with pytest.raises(ParameterError, match="row 3"):
            _read(pd.concat([table, below], ignore_index=True))


@pytest.mark.parametrize("name", ["", None])
def test_a_row_without_a_name_below_the_answers_is_no_respondent(name):
    table = _table([*ROWS.values()], ITEMS)
    below = table[ITEMS].sum().to_frame().T.assign(id=name)
    answers = _read(pd.concat([table, below], ignore_index=True))
    assert _values(answers) == ROWS
    assert "unnamed" in _whats(answers)


def test_two_series_that_may_both_be_the_items_are_asked_for():
    two = {f"v{n}": [n % 4, 1] for n in range(1, 8)}
    table = _table([*ROWS.values()], [f"q{n}" for n in range(1, 8)], **two)
    with pytest.raises(ParameterError, match="columns="):
        _read(table)
    assert _values(_read(table, columns="q")) == ROWS


@settings(max_examples=100)
@given(st.text(min_size=1), st.text(min_size=1))
@example("чай", "кофе")
@example("Té", "T")
def test_two_file_names_that_differ_in_letters_have_different_ids(one, other):
    plain = [unicodedata.normalize("NFC", name) for name in (one, other)]
    assume(plain[0] != plain[1] and not (one.isascii() and other.isascii()))
    assert _make_identifier(one) != _make_identifier(other)


# Cells --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["json", "jsonl", "parquet", "xlsx", "frame", "csv"])
@pytest.mark.parametrize("labels", [("True", "False"), ("No", "Yes"), ("yes", "no")])
def test_a_truth_value_is_the_label_that_says_it(kind, labels, tmp_path):
    questionnaire = _with_options((1.0, labels[0]), (2.0, labels[1]))
    table = pd.DataFrame([[True] * 7, [False] * 7], columns=ITEMS)
    table.insert(0, "id", ["says_true", "says_false"])
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind in ("json", "jsonl"):
        rows = table.to_dict("records")
        text = json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows))
        path.write_text(text, encoding="utf-8")
    elif kind == "parquet":
        table.to_parquet(path)
    elif kind == "xlsx":
        pytest.importorskip("openpyxl", reason="Excel is read by openpyxl")
        table.to_excel(path, index=False)

    answers = _values(_read(table if kind == "frame" else path, questionnaire))
    true = 1.0 + ([label.lower() in ("true", "yes") for label in labels].index(True))
    assert answers == {"says_true": [true] * 7, "says_false": [3 - true] * 7}


def test_a_truth_value_among_numbers_is_no_number():
    table = _table([[True, 1, 1.0, "1", False, 0, 2], [1, True, True, 1, 0, False, 3]])
    answers = _read(table)
    unreadable = np.array([[1, 0, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 1, 0]], dtype=bool)
    assert ((answers["status"] == "unreadable").to_numpy().reshape(2, 7) == unreadable).all()


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("3,5", 3.5), ("3.5", 3.5), ("2,4", 2.4), ("3.0", 3), ("(3)", 3), ("3.", 3),
        ("3/7", None), ("1-5", None), ("1 - 5", None), ("3!", None), ("3 4", None), ("1,000", None),
        ("1_0", None), ("--3", None), ("3=5", None), ("3 (5)", None), ("[3, 5]", None),
        ("5 3", None),
    ],
)  # fmt: skip
def test_a_number_with_a_rest_has_its_decimal_meaning_or_none(cell, value):
    answers = _read(_table([[cell, 1, 2, 3, 4, 5, 6]]), SEVEN)
    first = answers["value"].iloc[0]
    assert first == value if value is not None else np.isnan(first)


@pytest.mark.parametrize("stray", [0, "0", -1, 6, 9, 99])
@pytest.mark.parametrize("copies", [1, 3])
def test_strays_do_not_recode_a_file(stray, copies):
    mini = pm.load_questionnaire("ipip20")
    given = [2, 4, 3, 4, 2, 3, 1, 4, 2, 5, 4, 3, 2, 4, 1, 3, 3, 2, 4, 2]
    names = [item.id for item in mini.items]
    cells = [stray] * copies + given[copies:]
    assert _values(_read(_table([cells], names), "ipip20"))["a"][copies:] == given[copies:]

    cells = [min(value, 4) for value in given]  # nobody gave 5: a 0 may be the first option
    cells[:copies] = [stray] * copies
    if stray in (0, "0"):
        with pytest.raises(ParameterError, match="numbers='from 0'"):
            _read(_table([cells], names), "ipip20")
        answers = _read(_table([cells], names), "ipip20", numbers="values")
    else:
        answers = _read(_table([cells], names), "ipip20")

    assert _values(answers)["a"][copies:] == cells[copies:]
    assert answers["value"].isna().sum() == copies


def test_an_option_labelled_by_another_options_value_is_asked_for():
    odd = _with_options((1.0, "0"), (2.0, "1"), (3.0, "2 or more"))
    table = _table([[0, 1, 1, 0, 1, 0, "2 or more"]])
    with pytest.raises(ParameterError, match="numbers=labels"):
        _read(table, odd)
    assert _values(_read(table, odd, numbers="labels")) == {"a": [1, 2, 2, 1, 2, 1, 3]}
    assert _values(_read(table, odd, numbers="values"))["a"][1:3] == [1, 1]


AGREE = _with_options((1.0, "disagree"), (2.0, "neither"), (3.0, "agree"), (4.0, "agree strongly"))


def test_letters_are_places_unless_they_may_be_the_beginnings_of_labels():
    assert _values(_read(_table([list("ABCDABC")]))) == {"a": [0, 1, 2, 3, 0, 1, 2]}
    assert _values(_read(_table([list("ABBAABB")]))) == {"a": [0, 1, 1, 0, 0, 1, 1]}

    table = _table([list("ADDAADD")])
    with pytest.raises(ParameterError, match="numbers=letters"):
        _read(table, AGREE)
    places = _values(_read(table, AGREE, numbers="letters"))
    assert places == {"a": [1, 4, 4, 1, 1, 4, 4]}
    with pytest.raises(ParameterError, match="numbers=letters"):
        _read(_table([list("ABCDADD")]), AGREE)


def test_a_mark_before_a_label_is_left_out_and_letters_that_are_none_are_no_answer():
    marked = [
        "0 (Not at all)",
        "B - Several days",
        "2 – More than half the days",
        "(3) Nearly every day",
    ]
    assert _values(_read(_table([[*marked, 0, 1, 2]]))) == {"a": [0, 1, 2, 3, 0, 1, 2]}
    options = _OptionNames(_with_options((1, "a"), (2, "b")), _with_options((1, "a")).items[0])
    assert [options.read(text).kind for text in ("n.a.", "k.A.", "15 a")] == ["unreadable"] * 3


def test_a_truth_value_is_a_label_only_where_both_have_one():
    for labels, values in ((("No", "Yes"), [1, 2]), (("No", "Sí"), [None, None])):
        questionnaire = _with_options(*enumerate(labels, start=1))
        options = _OptionNames(questionnaire, questionnaire.items[0])
        assert [options.read(text).value for text in ("False", "TRUE")] == values


@pytest.mark.parametrize("header", ["GAD[{}]", "GAD.SQ00{}.", "GAD_SQ00{}"])
def test_a_series_in_brackets_or_with_stops_has_all_of_its_items(header):
    names = [header.format(number) for number in range(1, 8)]
    assert _values(_read(_table([ROWS["a"]], names))) == {"a": ROWS["a"]}


@pytest.mark.parametrize("mark", ["(R)", " (reversed)"])
def test_a_mark_in_brackets_is_asked_about(mark):
    names = [f"ipip20_{n}{mark * (n in (6, 7, 8, 9, 10))}" for n in range(1, 21)]
    table = _table([[2] * 20], names)
    with pytest.raises(ParameterError, match="already_reversed"):
        _read(table, "ipip20")
    assert _values(_read(table, "ipip20", already_reversed=False)) == {"a": [2] * 20}


def test_a_header_with_a_comma_can_be_named():
    table = _table([ROWS["a"]]).rename(columns={"id": "who, when"})
    assert _values(_read(table, respondent="who, when")) == {"a": ROWS["a"]}


def test_a_single_letter_or_code_among_numbers_is_no_answer():
    for stray in ("A", "B", "A1", "X2"):
        answers = _read(_table([[stray, 1, 2, 3, 0, 1, 2]]))
        assert answers["status"].tolist() == ["unreadable", *["ok"] * 6]


def _samples(folder: Path, orders: list[list[int]], answers: list[int], **more) -> Path:
    """Samples of lm-evaluation-harness, each with its own order of choices and a letter."""
    lines = []
    for text, order, value in zip(TEXTS, orders, answers, strict=True):
        choices = [LABELS[place] for place in order]
        shown = {f"gen_args_{n}": {"arg_0": text, "arg_1": f" {'ABCD'[n]}"} for n in range(4)}
        scores = [[str(-1.0 - (place != value)), "False"] for place in order]
        doc = {"question": text, "choices": choices}
        lines.append({"doc": doc, "arguments": shown, "filtered_resps": scores, "filter": "none"})
        if more.get("generated"):
            lines[-1]["filtered_resps"] = [f"({'ABCD'[order.index(value)]})"]

    path = folder / "samples_gad.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.mark.parametrize("generated", [False, True])
def test_a_letter_in_a_log_is_the_choice_of_its_own_sample(generated, tmp_path):
    orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] * 2
    path = _samples(tmp_path, orders[:7], ROWS["a"], generated=generated)
    assert list(_values(_read(path)).values()) == [ROWS["a"]]


# Rows and columns ---------------------------------------------------------------------------------


def test_rows_of_headers_and_of_texts_are_no_respondents():
    names = [f"V{n}" for n in range(1, 8)]
    table = _table([TEXTS, *ROWS.values(), names], names)
    table["id"] = ["", *ROWS, "id"]
    answers = _read(table)
    assert _values(answers) == ROWS
    assert len(answers) == 14


def test_an_answer_that_has_the_texts_of_items_stays_a_respondent():
    assert _values(_read(_table([LABELS + LABELS[:3]]))) == {"a": [0, 1, 2, 3, 0, 1, 2]}


PERSONS = ["record_id", "token", "code", "pid", "subj", "Patient ID", "session", "Participant Code"]


@pytest.mark.parametrize("name", PERSONS)
def test_two_events_of_one_person_are_not_two_people(name):
    table = _table([*ROWS.values(), ROWS["b"]]).rename(columns={"id": name})
    table[name] = ["1", "2", "1"]
    with pytest.raises(ParameterError, match="respondent, run or conditions"):
        _read(table)
    answers = _read(table.assign(redcap_event_name=["first", "first", "second"]))
    assert answers["respondent_id"].nunique() == 2
    assert answers.groupby("respondent_id")["run"].nunique().tolist() == [2, 1]


@pytest.mark.parametrize("text", ["Response", "Model", "Person"])
def test_a_description_that_columns_share_names_no_role(text, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "a.sav"
    frame = pd.DataFrame([*ROWS.values()], columns=ITEMS).assign(x1=[1, 1], x2=[2, 2])
    pyreadstat.write_sav(frame, str(path), column_labels=[*TEXTS, text, text])
    assert list(_values(_read(path)).values()) == [*ROWS.values()]


def test_an_unknown_column_that_may_name_people_is_named():
    table = _table([*ROWS.values()]).rename(columns={"id": "fish_code"}).assign(fish_code="x")
    answers = _read(table)
    assert answers["respondent_id"].nunique() == 2
    said = [row["said"] for row in answers.attrs["summary"]["read"]]
    assert any("respondent=fish_code" in line for line in said)


def test_a_condition_that_was_read_is_a_column_of_the_scores(tmp_path):
    table = pd.concat([_table([*ROWS.values()]).assign(temperature=t) for t in (0, 1)])
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    out = tmp_path / "scores.csv"
    words = ["scores", "gad7", "--answers", path, "-c", "conditions=temperature", "-o", out]
    assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0
    scores = pd.read_csv(out)
    assert scores["temperature"].tolist() == [0, 1, 0, 1]
    assert scores["respondent_id"].tolist() == ["a", "a", "b", "b"]


def test_a_series_from_0_that_looks_like_ids_is_refused_and_its_mend_works():
    table = pd.DataFrame([[0, 1, 2, 3, 0, 1, 2]], columns=[f"gad7_{n}" for n in range(7)])
    for columns in (None, "gad7_"):
        with pytest.raises(ParameterError, match="columns"):
            _read(table, columns=columns)
    answers = _read(table, columns=dict(zip(table, ITEMS, strict=True)))
    assert answers["value"].tolist() == [0, 1, 2, 3, 0, 1, 2]


# One reading of two -------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [TEXTS, ITEMS, [text.upper() for text in TEXTS]])
@pytest.mark.parametrize("number", ["item", "question_id", "sample"])
def test_texts_and_ids_of_items_count_before_the_order_of_presentation(number, texts):
    columns = {"id": "a", number: range(7, 0, -1), "resp": ROWS["a"]}
    table = pd.DataFrame(columns)
    assert _values(_read(table.assign(statement=texts))) == {"a": ROWS["a"]}
    assert _values(_read(table.assign(statement=texts), item=number)) == {"a": ROWS["a"][::-1]}
    with pytest.raises(ParameterError, match="item=shown"):
        _read(table.assign(shown=[f"How often? '{text}'" for text in TEXTS]))
    with pytest.raises(ParameterError, match="item=shown"):
        _read(table.assign(shown=texts))
    assert _values(_read(table.assign(shown=texts), item="shown")) == {"a": ROWS["a"]}
    # numbers that agree with the texts leave no doubt
    assert _values(_read(table.assign(shown=texts[::-1]))) == {"a": ROWS["a"][::-1]}


def test_two_columns_that_name_different_items_are_not_chosen_between():
    table = pd.DataFrame({"id": "a", "item": ITEMS, "question": TEXTS, "resp": ROWS["a"]})
    assert _values(_read(table)) == {"a": ROWS["a"]}
    with pytest.raises(ParameterError, match="item=question"):
        _read(table.assign(question=TEXTS[::-1]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 4), min_size=7, max_size=7), min_size=1, max_size=4),
       st.integers(1, 3))  # fmt: skip
def test_answers_from_1_with_0_for_no_answer_are_never_taken_for_values(rows, lost):
    cells = [[0] * lost + [4] + row[lost + 1 :] for row in rows]
    with pytest.raises(ParameterError, match="numbers='from 1'"):
        _read(_table(cells))
    answers = _values(_read(_table(cells), numbers="from 1"))
    assert answers["a"][lost:] == [value - 1 for value in cells[0][lost:]]


STATISTICS = {
    "Moyenne": "mean", "平均": "mean", "Item mean": "mean", "": "mean", "Σ": "sum", "SD": "std",
    "Min": "min", "Maximum": "max", "máx.": "max",
}  # fmt: skip


@pytest.mark.parametrize("label", STATISTICS)
@pytest.mark.parametrize("further", [[], ["x"], ["x", "y"]])
def test_a_row_of_statistics_below_the_answers_is_refused_whatever_its_label(label, further):
    table = _table([*ROWS.values(), [3, 3, 3, 1, 1, 2, 0], [1, 0, 0, 2, 3, 3, 1]])
    row = table[ITEMS].astype(float).agg(STATISTICS[label]).round(2)
    below = [row.to_frame().T.assign(id=label), *(table[:1].assign(id=name) for name in further)]
    whole = pd.concat([table, *below], ignore_index=True)
    with pytest.raises(ParameterError, match="row 4"):
        _read(whole if label else whole.drop(columns="id"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=9))
@example([[0] * 7, [2] * 7, [1] * 7])
@example([[0] * 7, [3] * 7, [3] * 7, [0] * 7])
@example([[1, 2, 3, 0, 1, 2, 3]] * 3)
def test_a_last_respondent_who_answers_with_options_is_none_of_the_statistics(rows):
    assert _values(_read(_table(rows))) == {chr(ord("a") + n): row for n, row in enumerate(rows)}


def test_people_called_like_a_statistic_are_people_and_times_are_no_series():
    table = _table([*ROWS.values(), [0] * 7, [1, 2] * 3 + [1]])
    for names in (["a", "b", "Max", "c"], ["a", "b", "Media", "c"], ["RI", "TN", "SD", "TX"]):
        assert _read(table.assign(id=names))["respondent_id"].nunique() == 4
    numbered = table.rename(columns={item: f"q{n}" for n, item in enumerate(ITEMS, 1)})
    times = {f"t{n}": 800 + n for n in range(1, 8)}
    assert _values(_read(numbered.assign(**times))) == _values(_read(table))


def test_a_last_respondent_called_max_is_kept_unless_all_its_answers_are_the_highest():
    table = _table([*ROWS.values(), [1] * 7]).assign(id=["a", "b", "Max"])
    assert _values(_read(table))["Max"] == [1] * 7
    alike = (
        _table([ROWS["a"]] * 3)
        .assign(id=["qwen-max", "qwen-max", "mini"])
        .rename(columns={"id": "model"})
    )
    assert _read(alike)["respondent_id"].nunique() == 2
    tier = _table([*ROWS.values(), ROWS["a"]], tier=["low", "average", "high"])
    assert _read(tier)["respondent_id"].nunique() == 3
    level = _table([*ROWS.values(), [1] * 7] * 3).assign(id=range(9), level=["low", "mean", ""] * 3)
    assert _read(level)["respondent_id"].nunique() == 9


@pytest.mark.parametrize("letter", ["I", "i_", "V", "x", "Q"])
def test_a_series_of_one_letter_is_none_of_the_items_beside_another_such_series(letter):
    other = {f"{'W'}{n}": [0, 1] for n in range(1, 8)}
    table = _table([*ROWS.values()], [f"{letter}{n}" for n in range(1, 8)])
    assert _values(_read(table)) == ROWS
    with pytest.raises(ParameterError, match="columns="):
        _read(table.assign(**other))
    assert _values(_read(table.assign(**other), columns=letter)) == ROWS
    # shorter series, such as questions about a person, are something else
    few = {name: other[name] for name in ("W1", "W2", "W3")}
    assert _values(_read(table.assign(**few))) == ROWS


def test_the_beginning_of_one_scale_of_several_is_no_advice():
    table = pd.DataFrame({f"{trait}{n}": [1] for trait in ("EX", "AG", "IN") for n in range(1, 5)})
    with pytest.raises(ParameterError) as caught:
        _read(table, "ipip20")
    assert "columns=" not in str(caught.value)
    assert "column,item_id" in str(caught.value)


MINI = pm.load_questionnaire("ipip20")
REVERSE = {item for scale in MINI.scales for item in scale.reverse}
MARKS = ["-{}", "{}-", "{} −", "{}_recode", "{} (reverse)", "inv.{}", "{}_polung", "u_{}", "{}u"]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("name", ["ipip20_{}", "item{}", "Q{}"])
def test_a_mark_on_reverse_keyed_items_alone_is_asked_about(mark, name):
    values = [1 + n % 5 for n in range(20)]
    names = {item.id: name.format(n) for n, item in enumerate(MINI.items, start=1)}
    marked = {item: mark.format(name) if item in REVERSE else name for item, name in names.items()}
    table = _table([values], marked.values())
    with pytest.raises(ParameterError, match="already_reversed"):
        _read(table, "ipip20")
    assert _values(_read(table, "ipip20", already_reversed=False)) == {"a": values}
    # a dash before each item is a list's
    assert _values(_read(_table([values], map("- {}".format, names.values())), "ipip20"))


@pytest.mark.parametrize("mark", [" (R)", " [reversed]", " *", " - rev.", " (umgepolt)", " (-)"])
def test_a_mark_after_an_items_text_is_asked_about(mark):
    names = [item.text + mark * (item.id in REVERSE) for item in MINI.items]
    table = _table([[2] * 20], names)
    with pytest.raises(ParameterError, match="already_reversed"):
        _read(table, "ipip20")
    assert _values(_read(table, "ipip20", already_reversed=True))["a"].count(4) == 11
    assert _values(_read(_table([ROWS["a"]], [f"{text}. Clear" for text in TEXTS])))


@pytest.mark.parametrize("cell", ["01.02.", "1.5.", "31.12.:", "3,5."])
def test_a_stop_after_decimals_makes_a_date_of_a_number(cell):
    assert _read(_table([[cell, 1, 2, 3, 0, 1, 2]]))["status"].iloc[0] == "unreadable"


@pytest.mark.parametrize(
    ("cell", "value"),
    [("(2)", None), ("(-2)", -2), ("(0)", 0), ("2)", 2), ("- 1", -1), ("‐1", -1), ("– 2", -2),
     ("+2", 2), (".5", 0.5), ("-,5", -0.5), ("2 - 1", None), (".", None)],
)  # fmt: skip
def test_a_sign_before_a_number_is_read_and_brackets_may_be_one(cell, value):
    labels = ["no", "rather no", "neither", "rather yes", "yes"]
    odd = _with_options(*enumerate(labels, start=-2))
    first = _read(_table([[cell, 1, 2, -2, 0, 1, 2]]), odd)["value"].iloc[0]
    assert first == value if value is not None else np.isnan(first)


@pytest.mark.parametrize("length", [18, 25, 40])
@pytest.mark.parametrize("before", ["", "Over the last 2 weeks: "])
def test_texts_that_are_cut_off_name_their_items(length, before, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "a.sav"
    labels = [before + text[:length] for text in TEXTS[::-1]]
    frame = pd.DataFrame([ROWS["a"]], columns=[f"v{n}" for n in range(1, 8)])
    pyreadstat.write_sav(frame, str(path), column_labels=labels)
    assert list(_values(_read(path)).values()) == [ROWS["a"][::-1]]

    # a recoded copy is not needed
    labels = [*TEXTS, TEXTS[0] + " (recoded)"]
    frame = pd.DataFrame([ROWS["a"] + [3]], columns=[*ITEMS, "new"])
    pyreadstat.write_sav(frame, str(path), column_labels=labels)
    assert list(_values(_read(path)).values()) == [ROWS["a"]]

    names = _ItemNames(GAD)
    assert names.described("Feeling ner") is None
    assert names.described("Feeling nervous, anxious or sad") is None


def test_a_header_and_a_description_of_different_items_are_not_chosen_between(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "a.sav"
    frame = pd.DataFrame([ROWS["a"]], columns=ITEMS)
    for texts in (TEXTS[::-1], [*TEXTS[:5], TEXTS[6], TEXTS[5][:30]]):
        pyreadstat.write_sav(frame, str(path), column_labels=texts)
        with pytest.raises(ParameterError, match="column,item_id"):
            _read(path)
        answers = _read(path, columns=dict(zip(ITEMS, ITEMS, strict=True)))
        assert list(_values(answers).values()) == [ROWS["a"]]


@pytest.mark.parametrize("person", ["pid", "Participant", "subject_id", "User ID"])
def test_persons_within_a_model_are_not_its_runs_unless_a_setting_says_so(person):
    table = _table([*ROWS.values(), ROWS["a"]]).rename(columns={"id": person}).assign(model="B")
    with pytest.raises(ParameterError, match="respondent="):
        _read(table)
    assert _read(table, respondent=person)["respondent_id"].nunique() == 3
    assert _read(table, respondent="model").groupby("respondent_id")["run"].nunique().item() == 3
    assert _read(table, run=person)["respondent_id"].nunique() == 1
    assert _read(table.assign(model=list("xyz")))["respondent_id"].nunique() == 3


@pytest.mark.parametrize("name", ["", "vp", "Teilnehmer", "persona", "agent"])
def test_a_column_of_texts_before_the_items_that_repeats_may_name_respondents(name):
    frame = _table([*ROWS.values(), ROWS["b"]]).assign(id=["m1", "m1", "m2"])
    table = frame.rename(columns={"id": name}) if name else frame.set_index("id").rename_axis(None)
    notes = [row["said"] for row in _read(table).attrs["summary"]["read"]]
    assert any(f"respondent={name or 'index'}" in note for note in notes)
    named = [
        row["said"]
        for row in _read(frame.assign(id=list("abc"), town="x")).attrs["summary"]["read"]
    ]
    assert not any("respondent=town" in note for note in named)


@pytest.mark.parametrize("form", ["{}", "{}-run1", "{}|b"])
def test_each_choice_of_a_batch_is_a_run(form, tmp_path):
    lines = []
    for item, values in zip(ITEMS, zip(*ROWS.values(), strict=True), strict=True):
        for copy in (form, form.replace("1", "2").replace("b", "c")) if form != "{}" else (form,):
            choices = [{"index": n, "message": {"content": str(v)}} for n, v in enumerate(values)]
            body = {"model": "m", "choices": choices}
            lines.append({"custom_id": copy.format(item), "response": {"body": body}})

    path = tmp_path / "batch.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    runs = _read(path).groupby("run")["value"].apply(list)
    assert sorted(runs) == sorted([*ROWS.values()] * (1 if form == "{}" else 2))


def test_sparse_columns_are_read_as_dense_ones():
    table = _table([*ROWS.values()])
    sparse = table.assign(
        **{name: pd.arrays.SparseArray(table[name].astype(int)) for name in ITEMS}
    )
    assert _values(_read(sparse)) == ROWS


def test_a_dash_in_a_label_may_be_of_any_kind():
    questionnaire = _with_options((1, "none"), (2, "1-2 hours"), (3, "3 – 4 hours"))
    row = ["1–2 hours", "1 — 2 hours", "3-4 hours", "none", "1-2 Hours", "3‐4 hours", "12 hours"]
    values = _values(_read(_table([row]), questionnaire))["a"]
    assert values[:6] == [2, 2, 3, 1, 2, 3]
    assert np.isnan(values[6])


def test_a_questionnaire_of_many_items_is_read():
    items = tuple(
        GAD.items[0].model_copy(update={"id": f"long_{n}", "text": f"Statement {n}x"})
        for n in range(1, 301)
    )
    long = GAD.model_copy(update={"id": "long", "items": items, "scales": ()})
    rows = [[n % 4 for n in range(300)], [0] * 300]
    answers = _read(_table(rows, [item.id for item in items]), long)
    assert _values(answers) == {"a": rows[0], "b": rows[1]}
