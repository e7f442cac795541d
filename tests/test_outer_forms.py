"""A table of answers is the same in whatever outer form others saved it, and in our own files."""

from __future__ import annotations

import csv
import io
import json
import resource
import signal
import string
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import v4
from typer.testing import CliRunner

import psychometrics as pm
import psychometrics_book as book
from psychometrics.answers.tables import read_table
from psychometrics.checks import parse_parameters
from psychometrics.cli import app
from psychometrics.data import text_table, with_formulas, write_csv, write_text
from psychometrics.exceptions import DataError, ParameterError, PsychometricsError
from psychometrics_book import runs

ITEMS = [f"gad7_{place}" for place in range(1, 8)]
TEXTS = [item.text for item in pm.load_questionnaire("gad7").items]
ROWS = {"a, the first": [0, 1, 2, 3, 0, 1, 2], "b;c": [3, 2, 1, 0, 3, 2, 1], "müde": [1] * 7}
TABLE = pd.DataFrame([[name, *row] for name, row in ROWS.items()], columns=["id", *ITEMS])


def _read(source):
    answers = pm.read_answers(source, "gad7", progress=False)
    notes = [row["said"] for row in answers.attrs["summary"]["read"] if row["what"] == "read"]
    values = answers.groupby("respondent_id", sort=False)["value"].apply(list)
    return values.to_dict(), notes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forms")


@settings(max_examples=60, deadline=None)
@given(
    separator=st.sampled_from([",", ";", "\t"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    declared=st.booleans(),
    title=st.sampled_from(["", "Survey of 2026", "Feeling nervous, anxious; wave 1"]),
    is_padded=st.booleans(),
    empty=st.integers(0, 2),
    headers=st.sampled_from([ITEMS, TEXTS, [f"Q{place}" for place in range(1, 8)]]),
)
def test_a_known_table_in_any_outer_form_of_csv_gives_its_values(
    folder, separator, quoting, encoding, newline, declared, title, is_padded, empty, headers
):
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=newline)
    width = 8 + empty
    if title and is_padded:  # as a spreadsheet saves it
        writer.writerow([title, *[""] * (width - 1)])
    elif title:
        file.write(f'"{title}"{newline}{newline}')

    for row in [["id", *headers], *TABLE.to_numpy().tolist()]:
        writer.writerow([*row, *[""] * empty])

    text = f"sep={separator}{newline}" * declared + file.getvalue()
    (folder / "a.csv").write_bytes(text.encode(encoding))
    values, notes = _read(folder / "a.csv")
    assert values == ROWS
    assert any("Windows-1252" in note for note in notes) == (encoding == "cp1252")
    assert any("above the headers" in note for note in notes) == bool(title)


@pytest.mark.parametrize("orient", ["records", "columns", "index", "split", "table"])
def test_each_form_of_pandas_own_json_gives_the_known_values(orient, tmp_path):
    TABLE.to_json(tmp_path / "a.json", orient=orient)
    assert _read(tmp_path / "a.json")[0] == ROWS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_json_is_read_in_the_encodings_of_csv(encoding, tmp_path):
    text = json.dumps(TABLE.to_dict("records"), ensure_ascii=False)
    (tmp_path / "a.json").write_bytes(text.encode(encoding))
    assert _read(tmp_path / "a.json")[0] == ROWS


def test_lists_by_column_and_separators_within_a_line_are_read(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(TABLE.to_dict("list")))
    assert _read(tmp_path / "a.json")[0] == ROWS
    rows = TABLE.assign(id=["a\u2028b", "b\x85c", "c"]).to_dict("records")
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert list(_read(tmp_path / "a.jsonl")[0].values()) == list(ROWS.values())


@pytest.mark.parametrize(
    "content",
    [
        TABLE.to_json(orient="values"),
        TABLE.set_index("id").to_json(),  # columns and rows both have names
        TABLE.set_index("id").to_json(orient="split"),
        '{"id": ["a"], "gad7_1": [1, 2]}',
        '{"responses": [{"id": "a", "gad7_1": 1}]}',
        '{"columns": ["id", "gad7_1"], "data": [["a"]]}',
    ],
)
def test_json_that_may_mean_two_tables_is_refused_with_the_form_to_write(content, tmp_path):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DataError, match="records"):
        _read(tmp_path / "a.json")


def test_a_separator_that_cannot_be_told_is_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text("id;gad7_1,gad7_2\na;1,2\n")
    with pytest.raises(ParameterError, match="sep="):
        _read(tmp_path / "a.csv")


def test_what_is_assumed_is_a_warning_where_no_notes_are_kept(tmp_path):
    (tmp_path / "a.csv").write_bytes("item\nIch bin müde\n".encode("cp1252"))
    with pytest.warns(UserWarning, match="Windows-1252"):
        assert text_table(tmp_path / "a.csv")["item"].tolist() == ["Ich bin müde"]


def test_a_column_without_a_header_is_kept_by_its_place_and_an_empty_one_is_not(tmp_path):
    (tmp_path / "a.csv").write_text(",id,x,\n0,a,,\n1,b,,\n")
    assert text_table(tmp_path / "a.csv").columns.tolist() == ["column 1", "id", "x"]


INDEXES = {
    "named": TABLE.set_index("id"),
    "several": TABLE.melt("id", var_name="item", value_name="resp").set_index(["id", "item"]),
    "of a group": TABLE.groupby("id", sort=False)[ITEMS].mean(),
}


@pytest.mark.parametrize("index", INDEXES)
def test_names_in_an_index_are_kept_in_a_frame_and_in_a_parquet_file(index, tmp_path):
    assert _read(INDEXES[index])[0] == ROWS
    INDEXES[index].to_parquet(tmp_path / "a.parquet")
    assert _read(tmp_path / "a.parquet")[0] == ROWS


def test_an_index_without_a_name_is_a_column_if_it_has_texts_and_else_numbers_the_rows():
    texts = TABLE.set_index("id").rename_axis(None)
    assert read_table(texts).cells["index"].tolist() == list(ROWS)
    assert read_table(TABLE[1:]).cells.columns.tolist() == ["id", *ITEMS]
    assert read_table(TABLE[1:]).rows == ["row 1", "row 2"]
    with pytest.raises(ParameterError, match="index"):
        read_table(TABLE.set_index("id", drop=False))


@contextmanager
def _soon(seconds=30):
    """Fail if a block takes longer than some seconds of processor time."""

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _far_sheet(path, cell):
    openpyxl = pytest.importorskip("openpyxl", reason="Excel is written by openpyxl")
    TABLE.to_excel(path, index=False)
    book = openpyxl.load_workbook(path)
    book.active[cell] = "x"
    book.save(path)


def _large_parquet(path):
    pd.DataFrame({f"c{place}": np.zeros(600_000) for place in range(10)}).to_parquet(path)


BOMBS = {
    "far.xlsx": lambda path: _far_sheet(path, "XFD1048576"),
    "low.xlsx": lambda path: _far_sheet(path, "A1048576"),
    "a.parquet": _large_parquet,
    "a.json": lambda path: path.write_text(json.dumps([{f"k{n}": 1} for n in range(20_000)])),
    "b.json": lambda path: path.write_text("[" + " " * (65 << 20) + "]"),
    "a.jsonl": lambda path: path.write_text('{"id": "a"}\n' * (6 << 20)),
    "a.csv": lambda path: path.write_text(",".join("x" * 5_500_000)),
    "b.csv": lambda path: path.write_text("x,y\n" * (17 << 20)),
    "zipped.xlsx": lambda path: _zip(path, 65 << 20),
    "zipped.ods": lambda path: _zip(path, 65 << 20),
    "zipped.eval": lambda path: _zip(path, 65 << 20),
}


def _zip(path, size):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("content.xml", b" " * size)


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_is_too_large_unpacked_or_laid_out_is_refused_soon(name, tmp_path):
    BOMBS[name](tmp_path / name)
    for library in ("odf", "inspect_ai"):
        if name.endswith({"odf": ".ods", "inspect_ai": ".eval"}[library]):
            break  # the size is looked at before any library is needed
    with _soon(), pytest.raises(PsychometricsError, match=r"64 MB|cells"):
        _read(tmp_path / name)


def test_an_open_document_is_read_and_its_repeated_cells_are_counted(tmp_path):
    pytest.importorskip("odf", reason="OpenDocument is read by odfpy")
    TABLE.to_excel(tmp_path / "a.ods", index=False, engine="odf")
    assert _read(tmp_path / "a.ods")[0] == ROWS
    row = (
        '<table:table-row table:number-rows-repeated="1000000"><table:table-cell '
        'table:number-columns-repeated="16000" office:value-type="string"><text:p>x</text:p>'
        "</table:table-cell></table:table-row></table:table>"
    )
    with (
        zipfile.ZipFile(tmp_path / "a.ods") as whole,
        zipfile.ZipFile(tmp_path / "b.ods", "w") as far,
    ):
        for member in whole.infolist():
            content = whole.read(member).replace(b"</table:table>", row.encode(), 1)
            far.writestr(member, content)
    with _soon(), pytest.raises(ParameterError, match="cells"):
        _read(tmp_path / "b.ods")


def _samples(tmp_path, change):
    rows = []
    for text, value in zip(TEXTS, ROWS["b;c"], strict=True):
        options = {f"gen_args_{n}": {"arg_0": text, "arg_1": f" {n}"} for n in range(4)}
        scores = [[str(-abs(n - value) - 1.0), "False"] for n in range(4)]
        row = {"doc": {"statement": text}, "arguments": options, "filtered_resps": scores}
        rows.append(change(row, value))

    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    answers = pm.read_answers(path, "gad7", progress=False)
    return answers.groupby("run")["value"].apply(list).to_dict()


def test_several_answers_to_a_sample_are_runs_and_numbers_are_no_log_likelihoods(tmp_path):
    first = ROWS["b;c"]
    other = [3 - value for value in first]
    for several in (lambda pair: [pair], lambda pair: pair):
        pairs = {value: several([str(value), str(3 - value)]) for value in range(4)}
        found = _samples(tmp_path, lambda row, v, of=pairs: row | {"filtered_resps": of[v]})
        assert found == {1: first, 2: other}
    assert _samples(tmp_path, lambda row, _: row) == {1: first}


def test_a_sample_without_a_response_is_missing(tmp_path):
    def without(row, value):
        return row | {"filtered_resps": None if value == 0 else [str(value)]}

    found = _samples(tmp_path, without)[1]
    np.testing.assert_array_equal(found, [value or np.nan for value in ROWS["b;c"]])


def test_options_that_are_equally_likely_are_no_answer(tmp_path):
    def tied(row, value):
        return row | {"filtered_resps": [["-1.0", "False"]] * 4} if value == 1 else row

    found = _samples(tmp_path, tied)[1]
    expected = [np.nan if value == 1 else value for value in ROWS["b;c"]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": None},
        {"arguments": []},
        {"arguments": [["x"]] * 4},
        {"arguments": {"gen_args_0": {"arg_0": "x", "arg_1": "0"}}},
        {"filtered_resps": [["nan", "False"]] * 4},
        {"filtered_resps": [["-1.0", "False"], "2"]},
        {"filtered_resps": [["-1.0", "False"]]},
    ],
)
def test_log_likelihoods_without_their_options_are_refused_at_their_line(change, tmp_path):
    with pytest.raises(DataError, match="line 1"):
        _samples(tmp_path, lambda row, _: row | change)


def test_of_two_scorers_the_one_that_can_be_read_counts_and_both_are_named(tmp_path):
    log = pytest.importorskip("inspect_ai.log", reason="logs of inspect are read by inspect-ai")
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score

    scores = [
        {"judge": Score(value="I", answer="All of it"), "match": Score(value="C", answer="2")},
        {"judge": Score(value="I", answer="1"), "match": Score(value="C", answer="3")},
        {"judge": Score(value="I", answer="?"), "match": Score(value="I")},
        {},
    ]  # fmt: skip
    samples = [
        log.EvalSample(
            id=number,
            epoch=epoch,
            input=text,
            target="",
            output=ModelOutput.from_content("m", "0"),
            scores=own,
            metadata={"sample": "x"},
        )
        for epoch in (1, 2)
        for number, (text, own) in enumerate(zip(TEXTS, scores, strict=False))
    ]
    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="gad",
        dataset=log.EvalDataset(name="gad"),
        model="org/m",
        config=log.EvalConfig(),
    )
    path = tmp_path / "run.eval"
    log.write_eval_log(log.EvalLog(eval=spec, samples=samples), str(path), format="eval")
    answers = pm.read_answers(path, "gad7", progress=False)
    for _, run in answers.groupby("run"):
        np.testing.assert_array_equal(run["value"], [2, 1, 0, 0, *[np.nan] * 3])
    notes = " ".join(row["said"] for row in answers.attrs["summary"]["read"])
    assert "judge" in notes
    assert "match" in notes


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
RISKY = st.builds(
    "".join,
    st.tuples(st.sampled_from(["=", "+", "-", "@", "\t", "'=", "''+", "'", "-1", ""]), NAMES),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(RISKY, min_size=1, max_size=4), st.lists(st.floats(-9, 9), min_size=4, max_size=4))
def test_no_cell_is_a_formula_and_reading_back_gives_every_text_and_number(folder, texts, numbers):
    frame = pd.DataFrame({"respondent_id": texts, "=x": numbers[: len(texts)]})
    write_csv(frame, folder / "f.csv")
    read = pd.read_csv(folder / "f.csv", keep_default_na=False, dtype={"respondent_id": str})
    for cell in [*read.columns, *read["respondent_id"]]:
        is_number = cell.lstrip("+-").replace(".", "", 1).isdecimal()
        assert cell[:1] not in {*"=+-@\t\r"} or is_number
    assert with_formulas(read)["respondent_id"].tolist() == texts
    assert with_formulas(read)["=x"].tolist() == frame["=x"].tolist()


@pytest.mark.parametrize("ending", [".csv", ".wide.csv", ".irw.csv"])
def test_every_writer_of_answers_guards_names_and_the_reader_restores_them(ending, tmp_path):
    names = ['=HYPERLINK("http://x")', "@SUM(1)", "+1+cmd|x", "-x", "'=a", "-1", "it's"]
    rows = [[name, *ROWS["müde"]] for name in names]
    frame = pd.DataFrame(rows, columns=["respondent_id", *ITEMS])
    answers = pm.read_answers(frame, "gad7", progress=False)
    path = tmp_path / f"a{ending}"
    pm.write_answers(answers, path)
    cells = [cell for row in csv.reader(path.read_text().splitlines()) for cell in row]
    assert not [cell for cell in cells if cell[:1] in {*"=+-@"} and cell != "-1"]
    assert set(_read(path)[0]) == set(names)


@given(
    st.lists(
        st.text(string.ascii_letters + string.digits + "._- é語", min_size=1, max_size=80),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
@settings(max_examples=40, deadline=None)
def test_any_names_of_columns_are_written_to_spss(folder, names):
    pytest.importorskip("pyreadstat", reason="SPSS is written by pyreadstat")
    import pyreadstat

    names = [
        *filter(None, map(str.strip, names)),
        "a.b",
        "a_b",
        "A_B",
        "with",
        "1a",
        "x" * 64 + "1",
        "x" * 64 + "2",
    ]
    frame = pd.DataFrame([range(len(set(names)))], columns=list(dict.fromkeys(names)))
    pm.write_answers(frame, folder / "n.sav")
    read, about = pyreadstat.read_sav(str(folder / "n.sav"))
    assert read.iloc[0].tolist() == frame.iloc[0].tolist()
    for name, label in about.column_names_to_labels.items():
        original = label or name
        assert frame[original].iloc[0] == read[name].iloc[0]


@contextmanager
def _full_disk(size=2000):
    """Let no file grow beyond some bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def _page(path):
    cell = v4.new_markdown_cell("# A page")
    notebook = path.with_suffix(".ipynb")
    nbformat.write(v4.new_notebook(cells=[cell]), notebook)
    return lambda: book.page.write_page(notebook, path)


def _writers(path):
    answers = pm.read_answers(pd.concat([TABLE] * 20).assign(id=range(60)), "gad7", progress=False)
    if path.suffix == ".html" and path.stem == "survey":
        return lambda: pm.asking.survey.write_survey(pm.asking.survey.survey("gad7"), path)
    if path.suffix == ".html":
        return _page(path)
    if path.suffix == ".md":
        return lambda: write_text(path, "x" * 3000)
    if path.suffix == ".png":
        return lambda: pm.figures.draw_scores(answers[:70], [pm.load_questionnaire("gad7")], path)
    return lambda: pm.write_answers(answers, path)


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.wide.csv", "a.irw.csv", "a.parquet", "a.json", "page.html", "survey.html",
     "list.md", "a.png", "a.sav"],
)  # fmt: skip
@pytest.mark.parametrize("old", ["older", None])
def test_a_full_disk_leaves_the_older_file_or_none(name, old, tmp_path):
    write = _writers(tmp_path / name)
    if old:
        (tmp_path / name).write_text(old)
    before = sorted(tmp_path.iterdir())
    with _full_disk(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ParameterError):
            write()
    assert sorted(tmp_path.iterdir()) == before
    if old:
        assert (tmp_path / name).read_text() == old


def test_a_replaced_file_keeps_its_permissions_and_a_link_to_it(tmp_path):
    (tmp_path / "private.txt").write_text("old")
    (tmp_path / "private.txt").chmod(0o600)
    (tmp_path / "link.txt").symlink_to("private.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "private.txt").read_text() == "new"
    assert (tmp_path / "private.txt").stat().st_mode & 0o777 == 0o600
    long = tmp_path / f"{'n' * 251}.txt"
    write_text(long, "as long as a name may be")
    assert long.is_file()


@given(st.text(max_size=8), st.sampled_from([str, str | None, str | Path | None]))
def test_a_setting_that_is_a_text_stays_as_it_is_typed(value, kind):
    if value == "None" and kind is not str:
        return
    assert parse_parameters([f"name={value}"], {"name": kind}) == {"name": value}


@pytest.mark.parametrize(
    ("value", "meant"),
    [("1", 1), ("-2", -2), ("1e3", 1000.0), (".5", 0.5), ("1_0", "1_0"), ("true", True),
     ("inf", "inf"), ("nan", "nan"), ("١", "١"), ("None", None)],
)  # fmt: skip
def test_a_setting_of_another_type_is_a_number_only_if_it_is_written_as_one(value, meant):
    found = parse_parameters([f"x={value}"], {"x": int | float | None})["x"]
    assert found == meant
    assert type(found) is type(meant)


def test_headers_that_are_numbers_can_be_named_on_the_command_line(tmp_path):
    frame = pd.DataFrame({"1": "m", "2": ITEMS, "1e3": ROWS["müde"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    words = f"scores gad7 --answers {tmp_path}/a.csv -c respondent=1 -c item=2 -c value=1e3"
    assert CliRunner().invoke(app, words.split()).exit_code == 0


def test_a_notebooks_declared_types_decide_what_a_parameter_is():
    kinds = runs.parameter_kinds("01-first-score")
    found = parse_parameters(["respondent=0012", "item=3"], kinds)
    assert found == {"respondent": "0012", "item": 3}
    grid = runs._parse_grid(["respondent=01,1", "item=1,2"], kinds)
    assert grid == {"respondent": ["01", "1"], "item": [1, 2]}


@pytest.mark.parametrize(
    "words",
    [
        "ask gad7 -o a.wide.csv", "ask gad7 -o no/a.csv", "ask gad7 -o a.txt",
        "scores gad7 -o a.irw.csv", "scores gad7 --items -o a.wide.csv",
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_asked(
    words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pm, "ask", lambda *_, **__: pytest.fail("asked"))
    result = CliRunner().invoke(app, words.split())
    assert isinstance(result.exception, ParameterError)


def test_a_protected_place_is_refused_before_anything_is_asked(tmp_path, monkeypatch):
    from psychometrics import exceptions

    (tmp_path / "a.csv").write_text("")
    monkeypatch.setattr(exceptions.os, "access", lambda place, _: place.suffix != ".csv")
    with pytest.raises(ParameterError, match="protected"):
        exceptions.check_file(tmp_path / "a.csv", (".csv",))


@pytest.mark.parametrize("name", ["thesis {draft}", "{0}", "{{", "}", "[a]*?", "%s $x"])
def test_a_notebook_runs_in_a_folder_of_any_name(name, tmp_path, monkeypatch):
    notebooks = tmp_path / name
    notebooks.mkdir()
    cell = v4.new_code_cell('x = "a"', metadata={"tags": ["parameters"]})
    nbformat.write(
        v4.new_notebook(cells=[cell, v4.new_code_cell("assert x == '1'")],
                        metadata={"kernelspec": {"name": "python3", "display_name": "",
                                                 "language": "python"}}),
        notebooks / "own.ipynb",
    )  # fmt: skip
    monkeypatch.setattr(runs, "notebooks_dir", lambda: notebooks)
    output = notebooks / "{out}.ipynb"
    page = notebooks / "page {1}.html"
    runs.run_notebook("own", {"x": 1}, output, progress=False, page=page)
    assert output.is_file()
    assert page.is_file()


def test_a_run_whose_copy_was_deleted_is_made_again_in_its_folder(tmp_path, monkeypatch):
    def run(_notebook, _values, part):
        part.write_text("{}")
        part.with_suffix("").mkdir()
        (part.with_suffix("") / "tab-x.csv").write_text("new")

    monkeypatch.setattr(runs, "run_notebook", run)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "tab-x.csv").write_text("old")
    row = runs._run_combination("01-first-score", {}, tmp_path / "one", "")
    assert row["status"] == "run now"
    assert (tmp_path / "one" / "tab-x.csv").read_text() == "new"


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_questionnaire_is_not_drafted_from_what_is_no_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new-questionnaire", name])
    assert isinstance(result.exception, PsychometricsError)


def test_slides_show_the_attached_pictures_of_each_cell(tmp_path):
    cells = [
        v4.new_markdown_cell(
            f"![{data}](attachment:image.png)",
            attachments={"image.png": {kind: data}},
        )
        for data, kind in {"Zmlyc3Q=": "image/png", "c2Vjb25k": "image/svg+xml"}.items()
    ]
    nbformat.write(v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    page = book.page.write_page(tmp_path / "a.ipynb", tmp_path / "a.html", "slides").read_text()
    assert "data:image/png;base64,Zmlyc3Q=" in page
    assert "data:image/svg+xml;base64,c2Vjb25k" in page


def test_a_name_that_a_row_of_json_has_twice_is_refused(tmp_path):
    path = tmp_path / "answers.json"
    path.write_text('[{"id": "a", "gad7_1": 1, "gad7_1": 2}]')
    with pytest.raises(PsychometricsError, match="gad7_1"):
        pm.read_answers(path, "gad7", progress=False)


def test_a_file_whose_name_begins_with_a_tilde_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~nobody.csv").write_text("id,gad7_1,gad7_2\na,1,2\n")
    answers = pm.read_answers("~nobody.csv", "gad7", progress=False)
    assert answers["value"].dropna().tolist() == [1, 2]
