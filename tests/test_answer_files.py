"""Answers that one already has: what is read, said, refused and written."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics import data
from psychometrics.answers.item_names import _ItemNames
from psychometrics.cli import app
from psychometrics.exceptions import DataError, ParameterError
from psychometrics.measures.omega import omega_hierarchical
from psychometrics.questionnaires.answers import COLUMNS
from tests.conftest import needs

GAD = pm.load_questionnaire("gad7")
MINI = pm.load_questionnaire("ipip20")
ITEMS = [item.id for item in GAD.items]
ROWS = {"a": [0, 1, 2, 3, 0, 1, 2], "b": [3, 2, 1, 0, 3, 2, 1]}
IPIP_FILE = {f"{letter}{number}" for letter in "ENACO" for number in range(1, 11)}


def _wide(columns=None, rows=None, **more) -> pd.DataFrame:
    """A row for each respondent."""
    rows = rows or ROWS
    table = pd.DataFrame(rows.values(), columns=columns or ITEMS)
    table.insert(0, "id", list(rows))
    return table.assign(**more)


def _long(table: pd.DataFrame | None = None) -> pd.DataFrame:
    table = _wide() if table is None else table
    return table.melt("id", var_name="item", value_name="resp")


def _read(source, questionnaire="gad7", **how) -> pd.DataFrame:
    return pm.read_answers(source, questionnaire, progress=False, **how)


def _values(answers: pd.DataFrame) -> dict[str, list[float]]:
    """Values by respondent, in the questionnaire's order."""
    return {name: part["value"].tolist() for name, part in answers.groupby("respondent_id")}


def _said(answers: pd.DataFrame, what: str) -> list[dict]:
    return [row for row in answers.attrs["summary"]["read"] if row["what"] == what]


def _people(respondents: int = 60) -> pd.DataFrame:
    """Answers to the Mini-IPIP with traits, as people would give them."""
    rng = np.random.default_rng(0)
    keys = {item: key for scale in MINI.scales for item, key in MINI.keys(scale).items()}
    trait = rng.normal(size=respondents)
    table = pd.DataFrame({"id": range(respondents)})
    for item in MINI.items:
        value = 3 + keys[item.id] * trait + 0.7 * rng.normal(size=respondents)
        table[item.id] = value.round().clip(1, 5)
    return table


@pytest.fixture(scope="module")
def of_people() -> dict[str, pd.DataFrame]:
    """What is said of the answers of people with traits."""
    return pm.answer_profiles.assess_answers(_read(_people(), "ipip20"), "ipip20")


# What is read -----------------------------------------------------------------------------------


NAMES = {
    "ids": ITEMS,
    "ids in other letters": [f"GAD-7.{number}" for number in range(1, 8)],
    "texts": [item.text for item in GAD.items],
    "the questionnaire's name and places": [f"gad_{number}" for number in range(1, 8)],
    "places": [f"Q{number:02d}" for number in range(1, 8)],
    "numbers": [str(number) for number in range(1, 8)],
}


@pytest.mark.parametrize("columns", NAMES.values(), ids=NAMES)
def test_a_wide_table_is_read_whatever_its_items_are_called(columns):
    answers = _read(_wide(columns))
    assert _values(answers) == ROWS
    assert list(answers.columns) == list(COLUMNS)


@pytest.mark.parametrize("columns", NAMES.values(), ids=NAMES)
def test_a_long_table_is_read_whatever_its_items_are_called(columns):
    assert _values(_read(_long(_wide(columns)))) == ROWS


def test_what_is_read_is_the_frame_of_asking_and_every_measure_takes_it():
    answers = _read(_people(), "ipip20")
    asked = pm.ask("ipip20", 2, mode="simulated", store="memory://same", progress=False)
    assert set(COLUMNS) <= set(answers.columns) <= set(asked.columns)
    assert set(answers.attrs["summary"]) >= {"asked", "from_store", "unanswered", "failed"}
    scores = pm.scale_scores(answers)
    assert len(scores) == 60 * 5
    assert scores["score"].notna().all()
    styles = pm.styles.response_styles(answers, MINI)
    assert len(styles) == 60
    matrix = pm.scoring.keyed_items(pm.item_scores(answers), MINI, MINI.scales[0])
    assert pm.reliability.alpha(matrix)["alpha"] > 0.5


def test_the_headers_before_numbers_may_be_named():
    table = _wide([f"A{number}" for number in range(1, 8)])
    with pytest.raises(ParameterError, match="columns=a"):
        _read(table)
    assert _values(_read(table, columns="A")) == ROWS


def test_items_may_be_named_by_a_mapping_or_a_table(tmp_path):
    names = list("tuvwxyz")
    mapping = dict(zip(names, reversed(ITEMS), strict=True))
    turned = {name: row[::-1] for name, row in ROWS.items()}
    assert _values(_read(_wide(names), columns=mapping)) == turned
    path = tmp_path / "columns.csv"
    pd.DataFrame(mapping.items(), columns=["column", "item_id"]).to_csv(path, index=False)
    assert _values(_read(_wide(names), columns=path)) == turned
    with pytest.raises(ParameterError, match="gad9_1"):
        _read(_wide(names), columns={"t": "gad9_1"})


def test_places_beyond_the_last_item_are_another_questionnaires():
    table = pd.DataFrame({f"q{number}": [1] for number in range(1, 21)})
    with pytest.raises(ParameterError, match="columns"):
        _read(table)


CELLS = {
    "labels": lambda value: GAD.options[value].label,
    "labels in capitals": lambda value: GAD.options[value].label.upper(),
    "number and label": lambda value: f"{value} - {GAD.options[value].label}",
    "label and number from 1": lambda value: f"{GAD.options[value].label} ({value + 1})",
    "texts of numbers": lambda value: f"{value}.0",
}


@pytest.mark.parametrize("write", CELLS.values(), ids=CELLS)
def test_cells_are_labels_or_numbers_or_both(write):
    table = _wide()
    table[ITEMS] = table[ITEMS].map(write)
    assert _values(_read(table)) == ROWS


@pytest.mark.parametrize("cell", ["-2", "−2", "–2", "--2", "(−2)", "−2 = none"])
def test_a_number_below_zero_is_no_option_however_its_sign_is_written(cell):
    table = _wide(rows={"a": [cell, 1, 2, 3, 0, 1, 2], "b": [3, 2, 1, 0, 3, 2, 1]})
    first = _read(table).iloc[0]
    assert first["status"] in ("out_of_range", "unreadable")
    assert np.isnan(first["value"])


@pytest.mark.parametrize("name", ["nowhere/a.csv", "a.doc", "a"])
def test_answers_are_not_written_into_a_missing_folder_or_an_unknown_form(name, tmp_path):
    with pytest.raises(ParameterError):
        pm.write_answers(_read(_wide()), tmp_path / name)


def test_numbers_that_fit_only_the_places_of_the_options_are_asked_for():
    table = _people()
    items = table.columns[1:]
    shifted = table.assign(**{item: table[item] - 1 for item in items})
    with pytest.raises(ParameterError, match="numbers='from 0'"):
        _read(shifted, "ipip20")
    values = _read(table, "ipip20")["value"]
    places = _read(shifted, "ipip20", numbers="from 0")["value"]
    pd.testing.assert_series_equal(places, values)
    as_values = _read(shifted, "ipip20", numbers="values")
    assert (as_values["status"] == "out_of_range").sum() == (shifted[items] == 0).sum().sum()


def test_where_the_numbers_leave_a_doubt_both_readings_are_said_and_one_can_be_set():
    rows = {"a": [1, 2, 1, 1, 2, 1, 2]}
    answers = _read(_wide(rows=rows))
    assert _values(answers) == rows
    assert "numbers='from 1'" in _said(answers, "numbers")[0]["said"]
    shifted = _values(_read(_wide(rows=rows), numbers="from 1"))
    assert shifted == {"a": [value - 1 for value in rows["a"]]}


def test_rows_of_a_model_are_runs_and_rows_of_people_are_people():
    table = _wide().rename(columns={"id": "model"}).assign(model="m")
    answers = _read(table)
    assert answers.groupby("run")["respondent_id"].unique().map(list).tolist() == [["m"], ["m"]]
    assert _said(answers, "runs")
    nameless = _read(_wide().drop(columns="id"))
    assert nameless["respondent_id"].nunique() == 2


@pytest.mark.parametrize("runs", ["run", "Seed", "repetition"])
def test_rows_with_numbered_runs_and_no_respondent_are_runs_of_one(runs):
    answers = _read(_wide().drop(columns="id").assign(**{runs: [3, 5]}))
    assert answers["respondent_id"].nunique() == 1
    assert sorted(answers["run"].astype(str).unique()) == ["3", "5"]
    of_people = _wide().drop(columns="id")
    assert _read(of_people.assign(**{runs: 1}))["respondent_id"].nunique() == 2
    assert _read(of_people.assign(session_id=["k3", "m9"]))["respondent_id"].nunique() == 2
    personas = of_people.assign(**{runs: [3, 5], "persona": ["a", "b"]})
    assert _read(personas)["respondent_id"].nunique() == 2, "nobody knows what persona means"


def test_rows_of_a_respondent_whose_column_is_named_are_runs():
    table = _wide().rename(columns={"id": "engine"}).assign(engine="m")
    assert _read(table)["respondent_id"].nunique() == 2, "nobody knows what engine means"
    answers = _read(table, respondent="engine")
    assert answers.groupby("run")["respondent_id"].unique().map(list).tolist() == [["m"], ["m"]]


def test_columns_of_runs_and_conditions_are_kept():
    table = pd.concat(
        [_wide(seed=seed, heat=heat) for seed in (11, 12) for heat in ("low", "high")]
    )
    answers = _read(table, run="seed", conditions="heat")
    assert answers.groupby("respondent_id")["run"].nunique().tolist() == [4, 4]
    assert answers.groupby(["respondent_id", "run"])["heat"].nunique().eq(1).all()
    assert len(pm.scale_scores(answers)) == 8


def test_answers_to_other_questionnaires_in_a_long_table_are_left_out():
    phq = _long().assign(item="phq9_1", questionnaire="phq9")
    both = pd.concat([_long().assign(questionnaire="gad7"), phq], ignore_index=True)
    answers = _read(both)
    assert _values(answers) == ROWS
    assert _said(answers, "rows")[0]["count"] == len(phq)
    with pytest.raises(ParameterError, match="phq9"):
        _read(phq)


# Reversed items ----------------------------------------------------------------------------------


def _turned(table: pd.DataFrame) -> pd.DataFrame:
    reverse = [item for scale in MINI.scales for item in scale.reverse]
    return table.assign(**{item: 6 - table[item] for item in reverse})


def test_answers_that_were_reversed_before_are_found_out_and_turned_back_on_request():
    table = _people()
    once, twice = _read(table, "ipip20"), _read(_turned(table), "ipip20")
    assert _said(once, "reversed")
    assert not _said(once, "keyed twice")
    assert _said(twice, "keyed twice")[0]["count"] == 5
    back = _read(_turned(table), "ipip20", already_reversed=True)
    pd.testing.assert_series_equal(back["value"], once["value"])


@pytest.mark.parametrize("mark", ["{}_R", "{}R", "{}_INV", "{}.rev"])
def test_a_mark_of_reversal_is_asked_for_unless_its_column_is_not_needed(mark):
    table = _people()
    reverse = {item: mark.format(item) for scale in MINI.scales for item in scale.reverse}
    known = _read(table, "ipip20")
    for turned, as_given in ((True, _turned(table)), (False, table)):
        marked = as_given.rename(columns=reverse)
        with pytest.raises(ParameterError, match="already_reversed"):
            _read(marked, "ipip20")
        answers = _read(marked, "ipip20", already_reversed=turned)
        pd.testing.assert_series_equal(answers["value"], known["value"])

    marked = _turned(table).rename(columns=reverse)
    both = table.join(marked[list(reverse.values())])
    pd.testing.assert_series_equal(_read(both, "ipip20")["value"], known["value"])


def test_a_header_that_ends_in_r_by_chance_is_not_taken_as_reversed():
    names = ["never", "other", "clear", "near", "far", "dear", "bar"]
    mapping = dict(zip(names, ITEMS, strict=True))
    assert _values(_read(_wide(names), columns=mapping)) == ROWS


# What is wrong is said, with its place ------------------------------------------------------------


def _file(tmp_path, text: str):
    path = tmp_path / "answers.csv"
    path.write_text(text, encoding="utf-8")
    return path


HEAD = f"id,{','.join(ITEMS)}\n"


def test_a_value_outside_the_options_is_named_with_line_and_column(tmp_path):
    answers = _read(_file(tmp_path, f"{HEAD}a,0,1,2,3,0,1,10\nb,0,1,2,3,0,1,2\n"))
    assert answers["status"].value_counts().to_dict() == {"ok": 13, "out_of_range": 1}
    (row,) = _said(answers, "out_of_range")
    assert row["count"] == 1
    assert "line 2, column gad7_7: '10'" in row["said"]


def test_a_misspelt_label_is_named_with_the_nearest(tmp_path):
    answers = _read(_file(tmp_path, f"{HEAD}a,0,1,2,3,0,1,Nearly evry day\n"))
    (row,) = _said(answers, "unreadable")
    assert "line 2, column gad7_7" in row["said"]
    assert "'Nearly every day'" in row["said"]


def test_means_are_kept_and_said_and_dates_are_unreadable():
    table = _wide(rows={"a": [0, 1, 2.5, 3, 0, 1, 2]}).astype(object)
    table.loc[0, "gad7_7"] = pd.Timestamp("2026-01-03")
    answers = _read(table)
    assert answers["value"].tolist()[2] == 2.5
    assert _said(answers, "means")[0]["count"] == 1
    assert answers["status"].tolist()[-1] == "unreadable"


def test_an_unknown_item_is_named_with_the_nearest(tmp_path):
    head = HEAD.replace("gad7_7", "gad7_77")
    wide = _read(_file(tmp_path, f"{head}a,0,1,2,3,0,1,2\n"))
    assert "is it gad7_7?" in _said(wide, "unknown item")[0]["said"]
    long = _read(_file(tmp_path, "id,item,resp\na,gad7_1,2\na,gad7_22,1\n"))
    (row,) = _said(long, "unknown item")
    assert "line 3, column item: 'gad7_22'" in row["said"]
    assert (long["status"] == "ok").sum() == 1


def test_doubled_rows_are_left_out_and_contradicting_ones_refused(tmp_path):
    row = "a,0,1,2,3,0,1,2\n"
    answers = _read(_file(tmp_path, HEAD + row * 2 + "b,3,2,1,0,3,2,1\n"))
    assert _values(answers) == ROWS
    assert "line 3" in _said(answers, "doubled")[0]["said"]
    with pytest.raises(ParameterError, match=r"line 3: .a. .* line 2"):
        _read(_file(tmp_path, f"{HEAD}{row}a,3,2,1,0,3,2,1\n"))


def test_who_lacks_items_and_who_answers_all_alike_is_counted():
    rows = {"a": [1] * 7, "b": [0, 1, None, 3, 0, 1, 2], "c": [0, 1, 2, 3, 0, 1, 2]}
    answers = _read(_wide(rows=rows))
    assert _said(answers, "alike")[0]["count"] == 1
    assert _said(answers, "incomplete")[0]["count"] == 1
    assert len(answers) == 21, "a row for each item, answered or not"


def test_the_count_comes_first():
    first = _read(_wide(age=[20, 30])).attrs["summary"]["read"][0]
    assert first["what"] == "count"
    assert "14 answers" in first["said"]
    assert "2 respondents" in first["said"]


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (pd.DataFrame({"x": [1]}), ParameterError),
        (_wide().head(0), ParameterError),
        (_wide(rows={"a": [None] * 7}), ParameterError),
        (pm.null_answers("gad7", "noise", respondents=2), ParameterError),
        (_wide().set_axis(["id", *ITEMS[:-1], ITEMS[0]], axis=1), ParameterError),
        (_wide([*ITEMS[:-1], "GAD7 1"]), ParameterError),
        ("nowhere.csv", DataError),
        (f"{'x' * 4000}.csv", DataError),
        ("answers.pdf", ParameterError),
        (3, ParameterError),
    ],
)
def test_a_table_without_answers_is_refused(table, error):
    with pytest.raises(error):
        _read(table)


def test_a_file_with_a_zero_byte_is_damaged(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_bytes(_wide().to_csv().encode() + b"\0")
    with pytest.raises(ParameterError, match="not text"):
        _read(path)


@pytest.mark.parametrize(
    "how", [{"respondent": "who"}, {"numbers": "from 2"}, {"item": "id"}, {"conditions": ["heat"]}]
)
def test_a_setting_that_does_not_fit_is_refused(how):
    with pytest.raises(ParameterError):
        _read(_wide(), **how)


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".wide.csv", ".irw.csv", ".parquet", ".sav", ".json"])
def test_what_is_written_is_read_again_as_it_was(ending, tmp_path):
    if ending == ".sav":
        pytest.importorskip("pyreadstat", reason="SPSS is read and written by pyreadstat")
    answers = _read(_people(12), "ipip20")
    answers.loc[3, ["value", "status"]] = [np.nan, "missing"]
    path = tmp_path / f"answers{ending}"
    if ending == ".json":
        answers.to_json(path, orient="records")
    else:
        pm.write_answers(answers, path, [MINI])
    again = _read(path, "ipip20")
    keys = ["respondent_id", "item_id"]
    one, other = (table.set_index(keys)["value"].sort_index() for table in (answers, again))
    pd.testing.assert_series_equal(one, other)


def test_spss_keeps_labels_and_texts_and_labels_decide(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "survey.sav"
    labels = {number: GAD.options[number - 1].label for number in (1, 2, 3, 4)}
    names = [f"V{number + 20}" for number in range(7)]
    table = _wide(names)
    table[names] += 1
    pyreadstat.write_sav(
        table,
        str(path),
        column_labels=["who", *(item.text for item in GAD.items)],
        variable_value_labels=dict.fromkeys(names, labels),
    )
    assert _values(_read(path)) == ROWS
    written = tmp_path / "again.sav"
    pm.write_answers(_read(path), written, [GAD])
    _, about = pyreadstat.read_sav(str(written))
    assert about.variable_value_labels["gad7_1"][3.0] == "Nearly every day"
    assert about.column_names_to_labels["gad7_2"].startswith("Not being able to stop")


def test_labels_of_spss_that_are_not_the_options_leave_the_numbers(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "survey.sav"
    labels = {0: "nie", 3: "immer"}
    pyreadstat.write_sav(_wide(), str(path), variable_value_labels=dict.fromkeys(ITEMS, labels))
    answers = _read(path)
    assert _values(answers) == ROWS
    assert len(_said(answers, "labels")) == 1


@pytest.mark.parametrize("labelled", ["all", "ends"])
@pytest.mark.parametrize("turned", [False, True])
def test_labels_of_spss_decide_beside_a_code_for_no_answer(labelled, turned, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "survey.sav"
    options = {option.value: option.label for option in GAD.options}
    if labelled == "ends":
        options = {value: options[value] for value in (0, 3)}

    def code(value):
        return 4 - value if turned else value + 1

    table = _wide().assign(**{item: code(_wide()[item]) for item in ITEMS})
    table.loc[0, ["gad7_3", "gad7_4"]] = [9, 7]
    labels = {code(value): label for value, label in options.items()} | {9: "keine Angabe"}
    pyreadstat.write_sav(table, str(path), variable_value_labels=dict.fromkeys(ITEMS, labels))
    if labelled == "ends":
        with pytest.raises(ParameterError, match="numbers"):
            _read(path)
        if turned:
            return

    answers = _read(path, numbers="auto" if labelled == "all" else "from 1")
    first, second = _values(answers).values()
    assert second == ROWS["b"]
    assert np.isnan(first[2:4]).all()
    assert [*first[:2], *first[4:]] == [*ROWS["a"][:2], *ROWS["a"][4:]]


def test_descriptions_of_columns_decide_over_their_numbers(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "survey.sav"
    texts = [item.text for item in GAD.items][::-1]
    table = _wide([f"v{number}" for number in range(1, 8)])
    pyreadstat.write_sav(table, str(path), column_labels=["who", *texts])
    assert _values(_read(path)) == {name: row[::-1] for name, row in ROWS.items()}


def test_a_described_column_that_says_it_is_reversed_is_turned_back(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS is read by pyreadstat")
    path = tmp_path / "survey.sav"
    people = _people(3)
    names = ["who", *(f"v{number}" for number in range(1, 21))]
    table = people.set_axis(names, axis=1)
    table["v6"] = 6 - table["v6"]
    table = table.rename(columns={"v6": "v6_r"})
    texts = ["who", *(item.text for item in MINI.items)]
    pyreadstat.write_sav(table, str(path), column_labels=texts)
    with pytest.raises(ParameterError, match="already_reversed"):
        _read(path, "ipip20")
    read = _values(_read(path, "ipip20", already_reversed=True))
    assert list(read.values()) == people.drop(columns="id").to_numpy().tolist()


def test_spreadsheets_are_read(tmp_path):
    pytest.importorskip("openpyxl", reason="Excel is read by openpyxl")
    path = tmp_path / "answers.xlsx"
    with pd.ExcelWriter(path) as file:
        _wide().to_excel(file, sheet_name="answers", index=False)
        _wide().to_excel(file, sheet_name="other", index=False)
    answers = _read(path)
    assert _values(answers) == ROWS
    assert "other" in _said(answers, "read")[0]["said"]
    (tmp_path / "no.xlsx").write_text("no sheet")
    with pytest.raises(DataError):
        _read(tmp_path / "no.xlsx")


def test_a_sheet_may_have_a_title_and_no_header_twice(tmp_path):
    pytest.importorskip("openpyxl", reason="Excel is read by openpyxl")
    path = tmp_path / "answers.xlsx"
    header = ["id", *ITEMS]
    rows = [[name, *row] for name, row in ROWS.items()]
    title = [["A survey", 2026, *[None] * 6], [None] * 8]
    pd.DataFrame([*title, header, *rows]).to_excel(path, header=False, index=False)
    answers = _read(path)
    assert _values(answers) == ROWS
    assert any(row["said"].startswith("2 rows above") for row in _said(answers, "read"))

    # a second "gad7_1" is not item 11 of a longer questionnaire
    header[2] = header[1]
    pd.DataFrame([header, *rows]).to_excel(path, header=False, index=False)
    with pytest.raises(ParameterError, match="twice"):
        _read(path)


def test_a_missing_library_is_named_with_the_command_that_installs_it(tmp_path, monkeypatch):
    path = tmp_path / "answers.sav"
    path.write_bytes(b"$FL2")
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(ParameterError, match="pip install pyreadstat"):
        _read(path)


def _lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_samples_of_lm_evaluation_harness_are_read(tmp_path):
    folder = tmp_path / "org__model"
    folder.mkdir()
    chosen = ROWS["a"]
    rows = []
    for item, value in zip(GAD.items, chosen, strict=True):
        options = {
            f"gen_args_{place}": {"arg_0": item.text, "arg_1": f" {option.label}"}
            for place, option in enumerate(GAD.options)
        }
        scores = [[str(-abs(place - value) - 1.0), "False"] for place in range(4)]
        doc = {"statement": item.text}
        rows.append({"doc": doc, "arguments": options, "filtered_resps": scores, "filter": "none"})
    by_options = _read(_lines(folder / "samples_gad.jsonl", rows))
    assert _values(by_options) == {"org__model": chosen}

    generated = [
        row | {"filtered_resps": [reply], "filter": name}
        for name in ("first", "other")
        for row, reply in zip(rows, ["0", "1", "2", "3", "Not at all", "**1**", "2."], strict=True)
    ]
    assert _values(_read(_lines(folder / "samples_gen.jsonl", generated))) == {"org__model": chosen}


def _reply(api: str, model: str, text: str) -> dict:
    """One reply in the layers of an API, with its reasoning."""
    if api == "messages":
        content = [{"type": "thinking", "thinking": "3?"}, {"type": "text", "text": text}]
        return {"result": {"type": "succeeded", "message": {"model": model, "content": content}}}

    said = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "3?"}]}
    body = {"model": model, "output": [thought, said]}
    if api == "chat":
        body = {"model": model, "choices": [{"message": {"content": text}}]}

    return {"response": {"status_code": 200, "body": body}, "error": None}


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("form", ["{item}", "{item}-run{run}", "{run}|{item}", "{place}-{item}"])
def test_batches_of_three_apis_are_read_whatever_is_written_beside_an_items_id(api, form, tmp_path):
    rows = []
    for run, values in enumerate(ROWS.values()):
        for item, value in zip(ITEMS, values, strict=True):
            name = form.format(item=item, run=run, place=len(rows))
            rows.append({"custom_id": name} | _reply(api, "m", str(value)))

    if "{run}" in form:
        rows = rows[::-1]  # a batch's results come in any order
    runs = _read(_lines(tmp_path / "batch.jsonl", rows)).groupby("run")["value"].apply(list)
    assert sorted(runs) == sorted(ROWS.values())


def test_the_output_of_a_batch_is_read(tmp_path):
    rows = [
        {
            "custom_id": item,
            "response": {"body": {"model": "m", "choices": [{"message": {"content": reply}}]}},
        }
        for item, reply in zip(ITEMS, ["0", "1", "2", "3", "0", "I'm sorry, I can't.", "2"],
                               strict=True)
    ]  # fmt: skip
    answers = _read(_lines(tmp_path / "batch.jsonl", rows))
    assert answers["status"].tolist() == ["ok"] * 5 + ["refused", "ok"]
    rows[0]["response"]["body"]["choices"] = None
    answers = _read(_lines(tmp_path / "batch.jsonl", rows))
    assert answers["status"].tolist() == ["missing", *["ok"] * 4, "refused", "ok"]


def test_logs_of_inspect_are_read(tmp_path):
    log = pytest.importorskip("inspect_ai.log", reason="logs of inspect are read by inspect-ai")
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.model import ModelOutput

    replies = ["0", "Several days", "2", "3", "0", "1", "I cannot answer that, as an AI."]
    samples = [
        log.EvalSample(
            id=number,
            epoch=1,
            input=f"How often: {item.text}? Answer with a number from 0 to 3.",
            target="",
            output=ModelOutput.from_content("m", reply),
        )
        for number, (item, reply) in enumerate(zip(GAD.items, replies, strict=True), start=1)
    ]
    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="gad",
        dataset=log.EvalDataset(name="gad", samples=len(MemoryDataset([]))),
        model="org/m",
        config=log.EvalConfig(),
    )
    path = tmp_path / "run.eval"
    log.write_eval_log(log.EvalLog(eval=spec, samples=samples), str(path), format="eval")
    answers = _read(path)
    assert answers["respondent_id"].unique().tolist() == ["org/m"]
    assert answers["status"].tolist() == ["ok"] * 6 + ["refused"]


@pytest.mark.parametrize("name", ["sample", "item", "question_id"])
def test_a_prompts_text_decides_over_the_number_of_its_sample(name):
    prompts = [f"From 0 to 3: {item.text}?" for item in GAD.items][::-1]
    table = pd.DataFrame({name: range(1, 8), "prompt": prompts, "response": ROWS["a"][::-1]})
    assert _values(_read(table.assign(model="m"))) == {"m": ROWS["a"]}

    # one that was changed is left out, and the others are not taken by their numbers
    table.loc[0, "prompt"] = "From 0 to 3: I fear the worst?"
    read = _read(table.assign(model="m"))
    assert np.array_equal(_values(read)["m"], [*ROWS["a"][:6], np.nan], equal_nan=True)
    assert _said(read, "unknown item")[0]["count"] == 1


def test_a_remark_that_has_an_items_text_does_not_decide_over_numbers():
    remarks = ["", "", f"{GAD.items[0].text}, and more", "", "", "", ""]
    table = pd.DataFrame({"item": range(1, 8), "text": remarks, "response": ROWS["a"]})
    assert _values(_read(table.assign(model="m"))) == {"m": ROWS["a"]}


def test_the_longest_id_in_a_requests_id_is_its_item():
    items = [item.model_copy(update={"id": name}) for item, name in
             zip(GAD.items, ["a", "a_b", "c", "c_d", "e", "e_f", "g"], strict=True)]  # fmt: skip
    names = _ItemNames(GAD.model_copy(update={"items": tuple(items), "scales": ()}))
    assert names.within("a_b-run1") == "a_b"
    assert names.within("run-2|e") == "e"


def test_exports_of_qualtrics_and_edsl_are_read(tmp_path):
    texts = ",".join(f'"Over the last 2 weeks - {item.text}"' for item in GAD.items)
    ids = ",".join(f'"{{""ImportId"":""QID{number}""}}"' for number in range(8))
    names = ",".join(f"QID{number}_4" for number in range(7))
    rows = "".join(
        f"{who},{','.join(GAD.options[value].label for value in row)}\n"
        for who, row in ROWS.items()
    )
    path = _file(tmp_path, f"ResponseId,{names}\nResponse ID,{texts}\n{ids}\n{rows}")
    assert _values(_read(path)) == ROWS

    edsl = pd.DataFrame(
        {"answer.worry": [2, 1], "model.model": "m", "iteration.iteration": [0, 1], "prompt.x": ""}
    ).assign(**{"question_text.worry_question_text": GAD.items[1].text})
    answers = _read(edsl)
    own = answers[answers["item_id"] == "gad7_2"]
    assert own["value"].tolist() == [2, 1]
    assert own["run"].tolist() == [1, 2]

    agents = _read(edsl.assign(**{"iteration.iteration": 0, "agent.agent_name": ["shy", "bold"]}))
    own = agents[agents["item_id"] == "gad7_2"].set_index("agent_name")
    assert own["value"].to_dict() == {"shy": 2, "bold": 1}


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (_long().set_axis(["who", "what", "rated"], axis=1), "item=what"),
        (_wide().set_index("id").T.rename_axis("item").reset_index(), "transpose the table"),
        (pd.DataFrame(), "empty"),
        (_long().drop(columns="id"), "respondent"),
    ],
)
def test_a_table_that_is_not_understood_names_the_setting_that_mends_it(table, word):
    with pytest.raises(ParameterError, match=word):
        _read(table)


# Published files ----------------------------------------------------------------------------------


@needs("students_mexico")
def test_a_published_file_of_students_gives_the_answers_that_its_own_reader_gives():
    from recipes import published

    known = published.answers("students_mexico")
    known = known[known["questionnaire"] == "gad7"]
    answers = _read(data.fetch("students_mexico"))
    (row,) = _said(answers, "out_of_range")
    assert "line 497, column gad5: '10'" in row["said"], "which the other reader mends"
    mended = answers["value"].where(answers["status"] != "out_of_range", 1.0)
    np.testing.assert_array_equal(mended, known["value"])


@needs("llm_questionnaires_people")
def test_a_published_survey_whose_headers_are_no_places_needs_a_table_of_its_columns():
    path = data.fetch("llm_questionnaires_people")
    with pytest.raises(ParameterError, match="column,item_id"):
        _read(path, "ipip50")
    head = pd.read_csv(path, skipinitialspace=True, nrows=300, dtype=str)
    items = {f"{letter}{number + 1}": 5 * number + place + 1
             for place, letter in enumerate("EACNO") for number in range(10)}  # fmt: skip
    answers = _read(head, "ipip50", columns=items)
    assert set(items) == IPIP_FILE
    assert not _said(answers, "keyed twice")
    assert (answers["status"] == "ok").mean() > 0.99


# The command --------------------------------------------------------------------------------------


def _command(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_scores_reads_a_file_and_writes_answers_in_the_form_of_the_name(tmp_path):
    path = _file(tmp_path, f"{HEAD}a,0,1,2,3,0,1,2\nb,3,2,1,0,3,2,1\n")
    result = _command("scores", "gad7", "--answers", path)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 3
    assert "14 answers" in result.stderr
    target = tmp_path / "out.irw.csv"
    assert _command("scores", "gad7", "--answers", path, "--items", "-o", target).exit_code == 0
    assert list(pd.read_csv(target)) == ["id", "item", "resp"]
    shifted = _command("scores", "gad7", "--answers", path, "--items", "-c", "numbers=from 1")
    assert "out_of_range" in shifted.stdout


@pytest.mark.parametrize(
    "more", [["--respondents", "m"], ["--mode", "chat"], ["-c", "runs=2"], ["-o", "x.wide.csv"]]
)
def test_scores_refuses_what_does_not_fit_a_file(more, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = _file(tmp_path, f"{HEAD}a,0,1,2,3,0,1,2\n")
    result = _command("scores", "gad7", "--answers", path, *more)
    assert isinstance(result.exception, ParameterError)


def test_a_file_is_not_taken_for_a_persons_name(tmp_path):
    path = _file(tmp_path, HEAD)
    with pytest.raises(ParameterError, match="--answers"):
        pm.ask("gad7", str(path), mode="human", store="memory://person", read=None, progress=False)


# The page -----------------------------------------------------------------------------------------


def _empty(kind: str, questionnaire: str = "gad7", **how) -> pd.DataFrame:
    how = {"respondents": 30, "runs": 1, "seed": 3} | how
    return pm.styles.empty_answers(questionnaire, kind, **how)


@pytest.mark.parametrize(
    ("answers", "reading"),
    [
        (_empty("random"), "no more consistent than independent answers"),
        (_empty("habit"), "no more consistent than a habit"),
        (_empty("random", respondents=2), "no alpha: it needs three respondents that differ, and "
         "two items"),
    ],
)  # fmt: skip
def test_respondents_that_know_nothing_are_told_to_be_such(answers, reading):
    found = pm.answer_profiles.assess_answers(answers, "gad7")
    assert found["scales"]["reading"].tolist() == [reading]


def test_respondents_with_traits_are_more_consistent_than_either(of_people):
    scales = of_people["scales"]
    assert (scales["alpha"] > scales[["independent", "habit"]].max(axis=1)).all()
    assert scales["respondents"].eq(60).all()
    assert (scales["alpha_ordinal"] > scales["alpha"]).all()
    assert of_people["verdicts"][["✗", "!", "✓"]].sum(axis=1).eq(40).all()
    assert of_people["runs"].empty


def test_omega_is_told_of_scales_with_items_enough_and_is_the_measures_own(of_people):
    answers = _empty("habit", "gad7", respondents=60)
    (scale,) = pm.answer_profiles.assess_answers(answers, "gad7")["scales"].to_dict("records")
    keyed = pm.scoring.keyed_items(pm.item_scores(answers), pm.load_questionnaire("gad7"))
    expected = omega_hierarchical(keyed.droplevel("run") if "run" in keyed.index.names else keyed)
    for name in ("omega_total", "omega_hierarchical"):
        assert scale[name] == pytest.approx(expected[name])
    assert of_people["scales"]["omega_total"].isna().all(), "four items are too few"


def test_graded_scores_have_a_reliability_from_two_hundred_respondents_on_who_answered_once():
    habits = _empty("habit", respondents=200)
    (scale,) = pm.answer_profiles.assess_answers(habits, "gad7")["scales"].to_dict("records")
    keyed = pm.scoring.keyed_items(pm.item_scores(habits), pm.load_questionnaire("gad7"))
    fitted = pm.graded.fit(keyed)
    expected = pm.graded.score_reliability(keyed, fitted)["reliability"]
    assert scale["reliability_graded"] == pytest.approx(expected)
    assert scale["at_limit"] == ""

    copies = keyed.assign(gad7_2=keyed["gad7_1"])
    assert pm.answer_profiles._graded(copies)["at_limit"] == "gad7_1, gad7_2"
    missing = [keyed.head(199), keyed[["gad7_1", "gad7_2"]], keyed * 0, keyed.assign(gad7_3=np.nan)]
    for table in missing:
        assert np.isnan(pm.answer_profiles._graded(table)["reliability_graded"])


def test_the_bound_of_independent_answers_is_exceeded_in_one_of_twenty_samples():
    pool = _empty("random", "ipip20", respondents=3000)
    scale = MINI.scales[0]
    keyed = pm.scoring.keyed_items(pm.item_scores(pool), MINI, scale).to_numpy()
    alphas = [pm.reliability.alphas(np.cov(part.T)) for part in keyed.reshape(150, 20, -1)]
    found = pm.answer_profiles.assess_answers(_empty("random", "ipip20", respondents=20), "ipip20")
    bound = found["scales"]["independent"].iloc[0]
    assert 0.01 <= np.mean(np.array(alphas) > bound) <= 0.11


def test_runs_of_one_model_are_within_it_and_never_respondents():
    runs = _empty("random", respondents=1, runs=50)
    found = pm.answer_profiles.assess_answers(runs, "gad7")
    assert found["scales"]["alpha_ordinal"].isna().all(), "means of runs are no options"
    assert found["scales"]["respondents"].tolist() == [1]
    assert np.isnan(found["scales"]["alpha"].iloc[0])
    (row,) = found["runs"].to_dict("records")
    assert (row["units"], row["rows"]) == (1, 50)
    assert row["within"] > 0
    several = _empty("random", respondents=8, runs=50)
    assert pm.answer_profiles.assess_answers(several, "gad7")["runs"]["share"].iloc[0] < 0.1


def test_the_share_of_bias_is_shown_beside_chance_where_a_scale_has_items_of_both_kinds(
    of_people,
):
    bias = of_people["bias"].set_index("scale")
    assert list(bias.index) == [scale.id for scale in MINI.scales]
    assert (bias["bias"] < bias["random_low"]).all()  # these people have traits
    keys = pd.Series(MINI.keys(MINI.scales[0]))
    wide = _people()[list(keys.index)]
    r = np.corrcoef(*(wide[keys.index[keys == sign]].mean(axis=1) for sign in (1, -1)))[0, 1]
    assert bias["bias"].iloc[0] == pytest.approx((1 + r) / 2)
    of_one_kind = _empty("random", respondents=3)
    assert pm.answer_profiles.assess_answers(of_one_kind, "gad7")["bias"].empty


def test_profile_writes_a_page_about_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _people(12).to_csv("people.csv", index=False)
    asked = ["profile", "--answers", "people.csv", "--questionnaire", "ipip20"]
    result = _command(*asked)
    assert result.exit_code == 0, result.output
    printed = [line for line in result.stdout.splitlines() if line.startswith("ipip20, ")]
    assert len(printed) == len(MINI.scales)
    page = (tmp_path / "profile-people.html").read_text(encoding="utf-8")
    assert "240 answers" in page
    lines = (tmp_path / "profile-people-checklist.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + 18
    kept = pd.read_csv("runs/profile-people/tab-answers-scales.csv")
    assert kept["scale"].tolist() == [scale.id for scale in MINI.scales]


def test_compare_puts_the_respondents_of_a_file_side_by_side(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = _people(3).rename(columns={"id": "model"}).assign(model=["a", "b", "c"])
    items = [item.id for item in MINI.items]
    reverse = [item for scale in MINI.scales for item in scale.reverse]
    table.loc[0, items] = 3
    table.loc[1, items] = [2 if item in reverse else 4 for item in items]
    table.to_csv("models.csv", index=False)

    words = "compare a b --answers models.csv --questionnaire ipip20 -o both.html"
    result = _command(*words.split())
    assert result.exit_code == 0, result.output
    differences = pd.read_csv("runs/both/tab-compare-differences.csv")
    assert differences["model"].unique().tolist() == ["b"]
    assert differences["difference"].tolist() == [1.0] * len(MINI.scales)
    assert "60 answers" in (tmp_path / "both.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        "compare --answers people.csv --questionnaire ipip20",
        "compare 1 --answers people.csv --questionnaire ipip20",
        "compare 1 nobody --answers people.csv --questionnaire ipip20",
        "compare 1 2 --answers people.csv",
        "profile",
        "profile --answers people.csv",
        "profile m --answers people.csv --questionnaire gad7",
        "profile --answers people.csv --questionnaire gad7",
        "profile --answers people.csv --questionnaire ipip20 --mode chat",
        "profile --answers nowhere.csv --questionnaire ipip20",
    ],
)
def test_pages_refuse_what_does_not_fit_a_file(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _people(13).to_csv("people.csv", index=False)
    result = _command(*words.split())
    assert isinstance(result.exception, ParameterError | DataError)
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize("runs", [1, 10])
def test_habits_are_no_more_consistent_than_a_habit_however_often_they_are_asked(runs):
    answers = pm.styles.empty_answers("gad7", "habit", respondents=60, runs=runs, seed=3)
    (row,) = pm.answer_profiles.assess_answers(answers, "gad7")["scales"].to_dict("records")
    assert row["alpha"] < row["habit"]


def test_the_interval_of_a_score_stays_within_the_range_of_its_scale():
    same = {"a": 0, "b": 1, "c": 3}
    rows = [{"model": name} | dict.fromkeys(ITEMS, value) for name, value in same.items()]
    answers = _read(pd.DataFrame(rows))
    scale = pm.answer_profiles.assess_answers(answers, "gad7")["scales"].iloc[0]
    assert scale["low"] == 0
    assert scale["high"] == 3
