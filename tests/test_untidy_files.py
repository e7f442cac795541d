"""Untidy files: whatever a file holds, it is read, or refused by one clear error, and soon."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress

import nbformat
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nbformat import v4

import psychometrics as pm
import psychometrics_book as book
from psychometrics import exceptions
from psychometrics.asking.ask import _KINDS
from psychometrics.authoring.drafts import draft
from psychometrics.checks import check_kinds
from psychometrics.cli.asking import _show_scores
from psychometrics.exceptions import PsychometricsError, RespondentError
from psychometrics.models import chat_templates
from psychometrics.models.chat_templates import _check_template, fill_template
from psychometrics.models.loading import load_tokenizer
from psychometrics.models.sources import find
from psychometrics.modes import mode_named
from psychometrics.paths import data_dir, questionnaires_dir
from psychometrics.questionnaires.readers import read
from psychometrics_book.record import _html
from tests.test_questionnaires import LIKERT, PSYCHOBENCH

STUDY = """\
title: t
question: q
planned:
  date: 2026-01-01
  expectations:
    - {says: x, questionnaire: ipip20, scale: neuroticism, of: {choose: expected},
       than: {choose: argmax}, expect: higher}
questionnaires: [ipip20]
respondents: [minilm-mnli-l3-s16]
mode: options
conditions: {choose: [expected, argmax]}
seeds: [0, 1]
"""
POPULATION = """\
title: p
respondents:
  - {model: minilm-mnli-l3-s16}
  - {model: owner/model, revision: abc, downloads: 3, licence: mit, labels: [a, b]}
left_out:
  - {model: x/y, kind: licence, reason: none}
"""


def _draft_again(file):
    """Draft a questionnaire in place of an earlier draft."""
    path = file.with_suffix(".yaml")
    path.unlink(missing_ok=True)
    return draft(file, path)


ITEMS = 'item,scale,reverse,options\nI am calm,a,,0=no;1=yes\n"I, too",b,yes,\n'
FILES: dict[str, tuple[str, Callable]] = {
    "gad7.yaml": (
        (questionnaires_dir() / "gad7.yaml").read_text(encoding="utf-8"),
        pm.load_questionnaire,
    ),
    "likert.json": (json.dumps(LIKERT, indent=0), pm.load_questionnaire),
    "psychobench.json": (json.dumps(PSYCHOBENCH, indent=0), pm.load_questionnaire),
    "study.yaml": (STUDY, book.study_files.load_study),
    "population.yaml": (POPULATION, lambda file: (pm.population(file), pm.population_table(file))),
    "items.csv": (ITEMS, _draft_again),
}
ODD = (
    "null", "-1", "1e400", ".nan", "[]", "{}", "''", "!!int foo", "!!python/object:os.system x",
    "&a [*a]", "2020-13-45", '"\\x00"', "*nope", "? ", "|", "9" * 40, "🙂", "'" + "x" * 3000 + "'",
    "<<: *a", "---", "...", "%YAML 9.9", "a: !!binary x", "x: " + "[" * 3000, "\u200b", "NaN",
    "9" * 5000, "a\u2028b", "{term}", "}", '"\\ud800"', "!!set x", "!!timestamp x", "1:30",
)  # fmt: skip


@contextmanager
def soon(seconds: int = 10):
    def stop(*_: object) -> None:
        raise TimeoutError("a file was read for too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@st.composite
def damaged(draw, text: str) -> bytes:
    """A file's bytes after some of the slips that people and programs make."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at, other = draw(st.tuples(*[st.integers(0, len(lines) - 1)] * 2))
        odd = draw(st.sampled_from(ODD))
        line = lines[at]
        lines[at] = draw(
            st.sampled_from(
                [
                    "", lines[other], f"{line.partition(':')[0]}: {odd}", "  " + line,
                    line.lstrip(), line[: len(line) // 2], f"{line}\n{line}", f"{odd}\n{line}",
                    line.replace('"', ""), line.replace(",", ""), line.replace(" ", "\t"),
                ]
            )
        )  # fmt: skip
        lines = "\n".join(lines).split("\n")
    raw = "\n".join(lines).encode()
    if draw(st.integers(0, 7)) == 0:
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        raw = raw[:at] + bytes([draw(st.integers(0, 255))]) + raw[at + 1 :]
    return raw


@pytest.mark.filterwarnings("ignore:.*(above the headers|Windows-1252):UserWarning")
@pytest.mark.parametrize("name", FILES)
@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_by_an_error_of_ours(name, data, tmp_path):
    text, put = FILES[name]
    file = tmp_path / name
    file.write_bytes(data.draw(damaged(text)))
    said = ""
    with soon(), suppress(PsychometricsError):
        try:
            put(file)
        except exceptions.QuestionnaireError as error:
            said = str(error) if name != "items.csv" else ""
    assert all(line.startswith(str(file)) for line in said.splitlines()), said


@pytest.mark.parametrize("name", FILES)
def test_the_file_that_is_damaged_is_read_as_it_is(name, tmp_path):
    text, put = FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    put(tmp_path / name)


LINES = {
    "study.yaml": [
        ("[0, 1]", "[0, 0]"), ("[0, 1]", "[-1]"), ("[0, 1]", "[true]"), ("2026-01-01", ""),
        ("2026-01-01", "2026-13-01"), ("2026-01-01", "soon"), ("[ipip20]", "[ipip20, ipip20]"),
        ("[expected, argmax]", "[expected, argmax, argmax]"),
    ],
    "gad7.yaml": [
        ("mean: 2.95", "mean: 22"), ("sd: 3.41", "sd: 1e9"), ("- id: gad7_1", "- id: g\u0430d7_1"),
        ("items: all", "items: all, reverse: maybe"), ("language: en", "language: ../en"),
    ],
    "items.csv": [(",yes,", ",maybe,"), ("item,", "item,Item,"), ("0=no;", "nan=no;")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new"), [(name, *pair) for name in LINES for pair in LINES[name]]
)
def test_what_a_field_cannot_hold_is_refused(name, old, new, tmp_path):
    text, put = FILES[name]
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(PsychometricsError):
        put(tmp_path / name)


SETTINGS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**12), st.floats(), st.text(max_size=5),
    st.lists(st.integers(), max_size=2), st.complex_numbers(), st.binary(max_size=3), st.dates(),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_value_of_any_option_is_taken_or_refused_by_an_error_of_ours(data):
    mode = data.draw(st.sampled_from(["simulated", "options", "chat", "custom"]))
    known = [*mode_named(mode).conditions, "dtype", "progress", "failures", "mode", "nonsense"]
    how = data.draw(st.dictionaries(st.sampled_from(known), SETTINGS, max_size=2))
    with soon(), suppress(PsychometricsError):
        check_kinds(how, {name: kind for name, kind in _KINDS.items() if name in how})
        mode_named(how.pop("mode", mode)).complete(how)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(SETTINGS, min_size=1, max_size=3))
@example(values=[complex("nan")])
def test_any_values_of_a_frame_are_scored_or_refused_by_an_error_of_ours(values):
    mini = pm.load_questionnaire("ipip20")
    ids = [item.id for item in mini.items]
    frame = pd.DataFrame({"respondent_id": "a", "questionnaire": mini.id, "mode": "human", "run": 1,
                          "item_id": ids, "status": "ok"})  # fmt: skip
    frame["value"] = pd.Series([values[n % len(values)] for n in range(len(ids))], dtype=object)
    prompts = pm.prompts("challenges").assign(respondent_id="a")
    prompts["probability"] = [values[n % len(values)] for n in range(len(prompts))]
    for call in (pm.scale_scores, lambda t: pm.styles.response_styles(t, mini)):
        with soon(), suppress(PsychometricsError):
            call(frame)
    with soon(), suppress(PsychometricsError):
        assert pm.pss(prompts)["pss"].between(0, 1).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda frame: pm.scale_scores(frame.assign(status="OK")),
        lambda frame: pm.scale_scores(frame.assign(status=None)),
        lambda frame: pm.asking.ask.ask_ways("ipip20", 2, {}, "simulated"),
        lambda frame: pm.null_answers("gad7", "random-heads", respondents="2"),
        lambda frame: pm.ask("ipip20", ["a"], mode="human", role="{age}", personas=[30]),
        lambda frame: draft(pd.DataFrame({"item": ["a"], "options": ["1_0=x;2=y"]}), "a.yaml"),
        lambda frame: draft(frame.assign(item="a")[["item"]], "/dev/null/a.yaml"),
        lambda frame: pm.ask("ipip20", "smollm2", mode="chat", judge=" "),
        *(lambda frame, mode=mode: pm.ask(
            pm.load_questionnaire("ipip20").model_copy(update={"options": ()}), ["a"], mode=mode)
          for mode in ("chat", "custom", "options", "simulated")),
    ],
)  # fmt: skip
def test_what_was_accepted_or_raised_is_refused_by_an_error_of_ours(call):
    mini = pm.load_questionnaire("ipip20")
    frame = pd.DataFrame({"respondent_id": "a", "questionnaire": mini.id, "mode": "human", "run": 1,
                          "item_id": [i.id for i in mini.items], "value": 3.0})  # fmt: skip
    with soon(), pytest.raises(PsychometricsError):
        call(frame)


TEMPLATES = [
    "{{ 9**9**9 }}", "{{ 'a' * 99999999999 }}", "{% set n = 9 ** 9 %}", "{{ 'x' * 99999 * 999 }}",
    "{{ '%99999999d' % 1 }}", "{{ '%99999999d' | format(1) }}",
]  # fmt: skip
ENDLESS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}.{% endfor %}{% endfor %}",
    "{{ lipsum(n=99999) }}",
    "{% set s = 'x' * 9999 %}{% for i in range(99999) %}{{ s | upper }}{% endfor %}",
    "{% set n = 9999 %}{{ 'x' * n * 999 }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_that_would_never_be_filled_is_refused(template):
    with soon(), pytest.raises(RespondentError):
        _check_template("a model", template)
    _check_template("a model", "**Bold** {{ m['content'] }} {% for m in ms[:10] %}{% endfor %}")


@pytest.mark.parametrize("template", ENDLESS)
def test_a_template_that_loops_or_writes_without_end_is_stopped(template, tiny_talker, monkeypatch):
    monkeypatch.setattr(chat_templates, "_SECONDS", 0.5)
    tokenizer = load_tokenizer(tiny_talker)
    tokenizer.chat_template = template
    said = [{"role": "user", "content": "How are you?"}]

    with soon(), pytest.raises(RespondentError) as error:
        fill_template(tokenizer, said)

    assert error.value.kind == "incomplete"


def test_filling_a_template_leaves_a_debuggers_trace_as_it_was(tiny_talker):
    tokenizer, before = load_tokenizer(tiny_talker), sys.gettrace()
    fill_template(tokenizer, [{"role": "user", "content": "How are you?"}])
    assert sys.gettrace() is before


def test_a_template_that_takes_texts_as_parts_gets_them_so(tiny_talker):
    tokenizer = load_tokenizer(tiny_talker)
    tokenizer.chat_template = (
        "{% for m in messages %}{% for part in m['content'] | selectattr('type', 'equalto', 'text')"
        " %}<{{ m['role'] }}>{{ part['text'] }}{% endfor %}{% endfor %}"
    )
    said = [{"role": "user", "content": "How are you?"}]
    assert fill_template(tokenizer, said) == "<user>How are you?"


@pytest.mark.parametrize("place", ["additional_chat_templates/tool.jinja", "chat_template.jinja"])
def test_a_pipe_in_a_models_folder_is_refused_and_not_read(place, tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / place).parent.mkdir(exist_ok=True)
    os.mkfifo(folder / place)

    with soon(), pytest.raises(RespondentError, match="not a file"):
        find(folder)


@pytest.mark.parametrize("modules", ["(a+)+$", "(a|aa)*b", "x" * 2000, ["(q|v)+.*"]])
def test_an_adapter_whose_pattern_may_never_end_is_refused(modules, tmp_path):
    (tmp_path / "adapter_model.safetensors").touch()
    settings = {"base_model_name_or_path": "minilm", "target_modules": modules}
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings))
    with soon(), pytest.raises(RespondentError, match="target_modules"):
        find(tmp_path)


BOMBS = {
    "aliases": "a0: &a0 [x, x]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 3)}]\n" for i in range(1, 30)),
    "an alias of itself": "a: &a [*a]",
    "brackets": "x: " + "[" * 5000,
    "braces": "x: " + "{a: " * 5000,
    "steps": "".join(" " * i + "a:\n" for i in range(1500)),
    "too long": "x: " + "a" * (9 << 20),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_would_fill_the_memory_is_refused_soon(bomb, tmp_path):
    (tmp_path / "a.yaml").write_text(BOMBS[bomb])
    with soon(), pytest.raises(PsychometricsError):
        read(tmp_path / "a.yaml", "a.yaml")


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    os.mkfifo(tmp_path / "pipe.csv")
    with soon():
        for path in (tmp_path / "pipe.yaml", tmp_path):
            with pytest.raises(PsychometricsError):
                read(path, "it")
        with pytest.raises(PsychometricsError):
            draft(tmp_path / "pipe.csv", tmp_path / "a.yaml")


def test_a_draft_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.csv").write_text("item,options\nI like tea, and coffee,0=no;1=yes\n")
    with pytest.raises(PsychometricsError, match="line 2"):
        draft(tmp_path / "a.csv", tmp_path / "a.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


EVIL = "=<img src=x onerror=alert(1)>$x_{$"


def test_what_a_reply_or_a_name_holds_is_text_on_every_page_and_in_every_export(tmp_path, capsys):
    frame = pd.DataFrame({EVIL: [EVIL], "n": [1]}, index=pd.Index([EVIL], name=EVIL))
    html = _html(frame, {})
    assert "<img" not in html
    cells = [
        v4.new_markdown_cell(f"# {EVIL}\n\n[x](javascript:alert(1))\n\n> <table><td>1</table>"),
        v4.new_code_cell(outputs=[v4.new_output("display_data", {"text/html": EVIL + html})]),
    ]
    nbformat.write(v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    for kind in ("page", "slides"):
        page = book.page.write_page(
            tmp_path / "a.ipynb", tmp_path / f"{kind}.html", kind
        ).read_text()
        body = page[page.index("<body") :]
        assert not re.search(r"onerror=(?!alert\(1\)&gt;)|href=.javascript", body)
        assert "<blockquote>" in body
        assert 'class="dataframe' in body
    text = (questionnaires_dir() / "ipip20.yaml").read_text().replace("ipip20", "odd")
    (tmp_path / "odd.yaml").write_text(text.replace("Extraversion", "'=1+$x_{$'"))
    odd = pm.load_questionnaire(tmp_path / "odd.yaml")
    answers = pm.ask(odd, 2, tmp_path, "simulated", progress=False)
    pm.figures.draw_scores(answers, [odd], tmp_path / "a.png")
    _show_scores(answers, [odd], False, None, {})
    assert ",'=1+$x_{$," in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": 3}', '{"nbformat": 99, "cells": []}', "\udcff"], ids=repr
)
def test_what_is_no_notebook_makes_no_slides(text, tmp_path):
    (tmp_path / "a.ipynb").write_text(text, errors="surrogateescape")
    with pytest.raises(exceptions.ParameterError):
        book.page.write_page(tmp_path / "a.ipynb", tmp_path / "a.html", "slides")


def test_a_shipped_file_whose_bytes_were_changed_is_refused(tmp_path, monkeypatch):
    lines = (data_dir() / "SHA256SUMS").read_text().splitlines()
    known = {line.split()[1] for line in lines}
    files = {p.relative_to(data_dir()).as_posix() for p in data_dir().rglob("*.[ps]a[rf][qe]*t*")}
    assert known == {name for name in files if not name.startswith("answers/")}
    for name in ("profile.parquet", "SHA256SUMS"):
        shutil.copy(data_dir() / name, tmp_path)
    monkeypatch.setattr("psychometrics.data.data_dir", lambda: tmp_path)
    assert pm.data.shipped("profile.parquet").is_file()
    flipped = bytearray((tmp_path / "profile.parquet").read_bytes())
    flipped[999] ^= 1
    (tmp_path / "profile.parquet").write_bytes(flipped)
    with pytest.raises(exceptions.DataError):
        pm.data.shipped("profile.parquet")
