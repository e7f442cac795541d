"""The command: what it prints, and how it fails."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import psychometrics as pm
import psychometrics_book as book
from psychometrics import cli
from psychometrics.cli import app
from psychometrics.endpoints import request_queue
from psychometrics.modes import MODES
from psychometrics.progress import Progress
from tests.conftest import needs
from tests.endpoint import served
from tests.killing import run_fresh


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Function that runs the command in this process and gives what it printed."""
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_a_store_removed_while_answers_are_added_is_not_counted_and_ends_in_an_error(
    ended, tiny_model, tmp_path, monkeypatch
):
    expect = Progress.expect

    def remove_before_the_second(bar, *counts):
        if bar.begun == 1:
            shutil.rmtree(tmp_path / "store")
        expect(bar, *counts)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "expect", remove_before_the_second)
        code, shown, errors = ended("ask", "challenges", "gad7", "--respondents", tiny_model)
    assert code == 1
    assert "672 answers in the store" in shown
    assert "192 of its answers were removed" in errors
    code, shown, _ = ended("ask", "challenges", "gad7", "--respondents", tiny_model)
    assert code == 0
    assert "864 answers in the store" in shown


def test_prompts_are_printed_or_written(command, tmp_path):
    assert command("prompts", "gad7").startswith("questionnaire,item_id,template,term,polarity,")
    path = tmp_path / "prompts.parquet"
    assert "672 prompts" in command("prompts", "gad7", "-o", path)
    pd.testing.assert_frame_equal(pd.read_parquet(path), pm.prompts(pm.load_questionnaire("gad7")))


@pytest.mark.parametrize(
    "how",
    [
        "--mode chat", "--mode options",
        "--mode options -c labels=alphabetical -c permutations=given",
        "--mode chat -c batch_size=7 -c runs=2 -c order=reversed -c role=hero",
    ],
)  # fmt: skip
def test_messages_are_printed_as_they_are_sent(command, how, monkeypatch):
    with served() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        printed = pd.read_csv(io.StringIO(command("prompts", "ipip20", *how.split())))
        assert not server.requests
        more = ["-c", "choose=expected"] if "options" in how else []
        command("ask", "ipip20", *how.split(), *more, "--respondents", "m", "-c", "concurrency=1")
        texts = [[part["content"] for part in sent["messages"]] for sent in server.requests]
    assert printed.groupby("request")["content"].agg(list).tolist() == texts


def test_every_mode_shows_what_it_sends_or_says_that_it_sends_nothing(command, ended):
    for mode in MODES:
        arguments = ["prompts", "gad7", "--mode", mode]
        if mode == "simulated":
            code, _, errors = ended(*arguments)
            assert (code, len(_sentences(errors))) == (1, 1)
        else:
            assert "nervous" in command(*arguments)


def test_ask_fills_the_store_that_scores_reads(command, tiny_model, tmp_path):
    shown = command("ask", "gad7", "challenges", "--respondents", tiny_model)
    assert "1 respondent(s), 864 answers" in shown
    assert {path.parts[-3] for path in (tmp_path / "store").rglob("*.parquet")} == {
        "gad7", "challenges",
    }  # fmt: skip
    lines = command("scores", "gad7", "--respondents", tiny_model).splitlines()
    assert lines[0] == "respondent_id,questionnaire,scale,score,low,high,n,precision"
    assert lines[1].startswith(f"{tiny_model.name},gad7,gad7,")
    assert lines[1].endswith(",7,float32")
    items = command("scores", "gad7", "--respondents", tiny_model, "--items")
    items = pd.read_csv(io.StringIO(items))
    assert items["n"].tolist() == [6] * 7  # two templates of three source terms
    assert (items["low"].lt(items["score"]) & items["high"].gt(items["score"])).all()
    for name, read in (("s.csv", pd.read_csv), ("s.json", pd.read_json)):
        assert command("scores", "gad7", "--respondents", tiny_model, "-o", tmp_path / name) == ""
        assert read(tmp_path / name).shape == (1, 8)
    shown = command("scores", "ipip20", "--mode", "simulated", "--respondents", 2, "--json")
    rows = pd.read_json(io.StringIO(shown))
    within = rows["low"].le(rows["score"]) & rows["high"].ge(rows["score"])
    assert (within & rows["low"].ge(1) & rows["high"].le(5) & rows["n"].eq(4)).all()
    assert "precision" not in rows


def test_answers_are_written_with_what_was_sent_and_no_formula(command, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    file, how = tmp_path / "log.csv", ("--respondents", "=m", "-c", "runs=1", "-o")
    with served() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for mode in ("chat", "options"):
            more = ("-c", "choose=expected") if mode == "options" else ()
            command("ask", "ipip20", "--mode", mode, *more, *how, file)
            log = pd.read_csv(file)
            assert set(log["respondent_id"]) == {"'=m"}
            assert all("I am the life of the party." in text for text in log["sent"][:1])
    assert pd.read_csv(file)["sent"].map(json.loads).map(len).eq(5).all()  # orders of the options


def test_a_dry_run_writes_what_would_be_sent_and_sends_nothing(command, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    for mode, orders in (("chat", 1), ("options", 5)):
        file = tmp_path / f"{mode}.csv"
        how = ("--mode", mode, "--respondents", "m", "--dry-run", "-o", file)
        assert "requests that would be sent" in command("ask", "ipip20", *how)
        table = pd.read_csv(file)
        assert table["status"].eq("unasked").all()
        assert len(table) == 20
        sent = table["sent"].map(json.loads)
        texts = sent.map(lambda messages: json.dumps(messages[-1]))
        assert texts.str.contains("1. ", regex=False).all()
        assert mode == "chat" or sent.map(len).eq(orders).all()


def test_the_version_is_printed(command):
    assert command("--version").strip() == pm.__version__


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (["run", "01-first-score"], "papermill", "[book]"),
        (["profile", "no-such-model", "-o", "page.html"], "matplotlib", "[figures]"),
    ],
)
def test_a_missing_package_is_named_with_its_extra_before_any_model_is_looked_up(
    words, package, extra, tmp_path
):
    arguments = ["psychometrics", *words]
    code = f"import sys; sys.argv = {arguments}; from psychometrics.cli import main; main()"
    status, printed = run_fresh(code, tmp_path / "printed", without=package)
    assert status == 1
    assert extra in printed
    assert "no-such-model" not in printed
    assert "Traceback" not in printed


def test_verdicts_are_printed_without_what_only_the_page_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pm.ask("ipip20", 3, mode="simulated", store="memory://s", progress=False)
    pm.write_answers(table, "answers.csv")
    asked = ["--questionnaires", "challenges", "--against", "nobody"]
    members = ["minilm-mnli-l3-s16", "minilm-snli-l3-s17"]
    commands = {
        "profile": ["profile", members[0], *asked],
        "compare": ["compare", *members, *asked],
        "answers": ["profile", "--answers", "answers.csv", "--questionnaires", "ipip20"],
    }
    printed = {}
    for name, arguments in commands.items():
        code = f"import sys; sys.argv = {['psychometrics', *arguments]}; "
        code += "from psychometrics.cli import main; main()"
        status, printed[name] = run_fresh(code, tmp_path / name, without="matplotlib")
        assert status == 0
        assert "no page is written: matplotlib" in printed[name]
        assert "Traceback" not in printed[name]

    assert not list(tmp_path.glob("*.html"))
    assert "challenges, terms: " in printed["profile"]
    assert "agreement needs two independent respondents" in printed["profile"]
    assessment = pm.profiles.assess(members[0], "challenges", against=None)
    assert assessment.scores["verdict"].iloc[0] in printed["profile"]
    assert re.search(r"challenges, challenges: minilm-snli-l3-s17 [+-]0\.", printed["compare"])
    assert re.search(r"challenges +2 +4 +-?[01]\.", printed["compare"]), (
        "respondents, items, agreement"
    )
    assert "extraversion: alpha " in printed["answers"]
    assert re.search(r"ipip20 +3 +20 +-?0\.", printed["answers"])
    assert pm.agreement.INDEPENDENT in printed["answers"]


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("datasets", "train", "pm.training.loop.tokenised(None, {})"),
        ("matplotlib", "figures", "pm.figures.style()"),
        ("seaborn", "figures", "pm.figures.style()"),
        ("sentence_transformers", "book", "load_sentence_encoder('x')"),
    ],
)
def test_a_missing_extra_is_named_from_python_too(package, extra, call, tmp_path):
    code = (
        "import psychometrics as pm\n"
        "from psychometrics_book.studies.sentence_encoders import load_sentence_encoder\n"
        f"try: {call}\nexcept pm.exceptions.PsychometricsError as error: print(error)"
    )
    status, printed = run_fresh(code, tmp_path / "printed", without=package)
    assert status == 0
    assert printed.startswith(f"{package}: ")
    assert f"[{extra}]" in printed


def test_train_nli_makes_a_respondent(command, tiny_model, tmp_path):
    rows = [["I feel calm.", "I feel calm.", "entailment"], ["I feel calm.", "It is.", "neutral"]]
    rows += [["I feel calm.", "I do not.", "contradiction"]]
    pairs = pd.DataFrame(rows * 8, columns=["premise", "hypothesis", "label"])
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    output = tmp_path / "trained"
    data = tmp_path / "pairs.csv"
    shown = command(
        "train-nli", tiny_model, output, "--data", data, "--epochs", "1", "--lr", "1e-9"
    )
    assert "trained on 24 pairs" in shown
    assert pm.load_respondent(output).answer([("I feel calm.", "It is.")]).shape == (1, 3)


def test_scores_of_categories_are_printed_by_category(command):
    arguments = ["scores", "two_axes", "--mode", "simulated", "--respondents", 2]
    shown = pd.read_csv(io.StringIO(command(*arguments)))
    assert sorted(set(shown["category"])) == ["economic", "social"]
    assert shown["score"].between(shown["low"], shown["high"]).all()


def test_fill_in_asks_a_person_and_goes_on_later_from_the_store(command, tmp_path):
    arguments = ["fill-in", "ipip20", "--name", "ann", "--items"]
    CliRunner().invoke(app, arguments, input="5\n" * 12 + "q\n")
    shown = CliRunner().invoke(app, arguments, input="4\n" * 8 + "\n").stdout
    assert shown.count(",5.000000,ok") == 12
    assert shown.count(",4.000000,ok") == 8
    other = CliRunner().invoke(app, ["fill-in", "ipip20", "--name", "bob"], input="q\n").stdout
    assert "1 of 20" in other, "another person begins anew"
    again = CliRunner().invoke(app, arguments[:-1], input="\n").stdout
    lines = [line for line in again.splitlines() if line.startswith("ann,ipip20,human,1,")]
    assert len(lines) == 5, "scores of the five scales"


@pytest.mark.parametrize("name", ["ask", "scores"])
def test_no_readable_answer_is_one_sentence_and_status_1(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path))
    arguments = [name, "gad7", "--mode", "human", "--respondents", "ann"]
    result = CliRunner().invoke(app, arguments, input="")
    assert result.exit_code == 1
    assert _sentences(result.stderr) == ["psychometrics: no answer can be read: 7 missing."]


def test_scores_say_why_one_is_missing(ended, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with served() as server:  # which likes a place, whatever option stands there
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        arguments = ["scores", "ipip20", "--mode", "options", "--respondents", "m"]
        code, shown, errors = ended(*arguments)
    table = pd.read_csv(io.StringIO(shown))
    assert table["score"].isna().all()
    assert set(table["note"]) == {"no score: 4 tied"}
    assert (code, _sentences(errors)) == (1, ["psychometrics: no answer can be read: 20 tied."])


def test_one_item_has_a_score_and_no_interval_and_says_so(command, tmp_path):
    rows = ["item,scale,options"]
    rows += [f"I am {word}.,{word.title()},1=Never; 2=Often" for word in ("angry", "calm")]
    (tmp_path / "one.csv").write_text("\n".join(rows))
    command("new-questionnaire", tmp_path / "one.csv")
    shown = command("scores", tmp_path / "one.yaml", "--mode", "simulated", "--respondents", "2")
    table = pd.read_csv(io.StringIO(shown))
    assert table["score"].notna().all()
    assert table[["low", "high"]].isna().all(axis=None)
    assert set(table["note"]) == {"no interval: one item"}


def test_one_of_two_that_fails_gives_status_1(ended, tiny_model, tmp_path, save_tiny_model):
    torn = save_tiny_model(tmp_path / "torn")
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    code, shown, errors = ended("scores", "challenges", "--respondents", f"{torn},{tiny_model}")
    assert code == 1
    assert shown.splitlines()[1].startswith(f"{tiny_model.name},challenges,")
    assert len(_sentences(errors)) == 1
    assert "torn did not answer everything (incomplete)" in errors
    assert "192 asked, 0 from the store or shipped, 0 refused or unreadable, 1 failed" in errors
    code, shown, _ = ended("ask", "challenges", "--respondents", f"{torn},{tiny_model}")
    assert (code, shown) == (1, "1 respondent(s), 192 answers in the store\n")
    assert ended("ask", "challenges", "--respondents", tiny_model)[0] == 0


def _sentences(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line.startswith("psychometrics: ")]


def test_a_dead_endpoint_is_one_sentence_and_status_1(ended, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "not-to-be-shown")
    monkeypatch.setattr(request_queue, "_FIRST_TRIES", 1)  # nothing is sent again
    code, shown, errors = ended("scores", "ipip20", "--mode", "chat", "--respondents", "m")
    assert (code, shown) == (1, "")
    assert len(_sentences(errors)) == 1
    assert "http://127.0.0.1:9/v1" in errors
    assert "Traceback" not in errors
    assert "not-to-be-shown" not in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("check gda7", "gad7"),
        ("scores gad7 --temperature 0", "temperature"),
        ("scores gad7 -c temperature=2", "temperature"),
        ("ask gad7 --mode chat --respondents m -c api_key=k", "OPENAI_API_KEY"),
        ("train-nli minilm out -c rnk=2", "rnk"),
        (f"train-nli minilm {__file__}/model", "test_cli.py is a file"),
        ("ask gad7 --mode wild", ", ".join(MODES)),
        ("ask gad7 -c role", "name=value"),
        (f"ask gad7 --store {__file__}", "test_cli.py is a file"),
        ("ask gad7 gad7", "twice"),
        ("ask gad7 --mode chat -c max_cost=1", "price_in"),
        ("scores ipip50 --respondents minilm-mnli-l3-s16", "no prompts"),
        ("scores ipip20 --mode simulated", "a number, got 'embedded'"),
        ("scores ipip20 two_axes --mode simulated", "score each alone"),
        ("scores ipip20 --mode options -c choose=none --respondents minilm-mnli-l3-s16", "--items"),
        ("scores ipip20 --mode simulated --respondents 2 --score contrast", "score does not"),
        ("scores ipip20 --mode chat --respondents m", "There is no endpoint"),
        ("run 03-assessment -o .", "is a folder"),
        ("scores gad7 -o scores.txt", ".csv or .json"),
        (f"scores gad7 -o {'x' * 300}.csv", "its name is too long"),
        ("prompts gad7 -o prompts.txt", ".csv or .parquet"),
        ("fill-in gad7 --name ''", "A person needs a name"),
        ("prompts ipip50", "--mode chat"),
        ("prompts ipip20 --mode chat -c role=clown", "no role 'clown'"),
        (f"scores gad7 --mode human --respondents {__file__}", "name a person"),
        (f"ask gad7 --mode human --respondents ann,{shlex.quote(__file__)}", "name a person"),
        ("fill-in ipip20 --plot me.txt", "end the file's name"),
        ("fill-in ipip20 --plot no/me.png", "there is no folder"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, said, ended):
    code, shown, errors = ended(*shlex.split(arguments))
    assert (code, shown) == (1, "")
    assert [said in line for line in _sentences(errors)] == [True]


@pytest.mark.parametrize("options", ["-o profile.html --pdf", "-o profile.pdf"])
def test_a_pdf_without_a_browser_is_refused_before_anything_is_asked(
    options, ended, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    arguments = f"profile minilm-both-l6-s1 --questionnaires gad7 {options}"

    code, shown, errors = ended(*shlex.split(arguments))

    assert (code, shown) == (1, "")
    assert _sentences(errors) == [errors.strip()]
    assert errors.startswith("psychometrics: profile.pdf: a PDF is printed by Chromium or Chrome")
    assert list(tmp_path.iterdir()) == []


def test_a_persons_compass_and_the_profiles_of_others_are_drawn_in_one_command(command, tmp_path):
    path = tmp_path / "me.png"
    arguments = ["fill-in", "two_axes", "--name", "ann", "--plot", str(path)]
    shown = CliRunner().invoke(app, arguments, input="3\n" * 20 + "\n")
    assert shown.exit_code == 0, shown.output
    assert path.read_bytes().startswith(b"\x89PNG")
    path = tmp_path / "profile.svg"
    command("scores", "ipip20", "--mode", "simulated", "--respondents", 2, "--plot", path)
    assert "<svg" in path.read_text()


@needs("glue_diagnostic")
def test_a_person_takes_the_diagnostics_subset_and_is_scored_right_or_wrong(tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))
    table = book.studies.diagnostic.item_table()
    labels = table.loc[table["asked"] == "MN", "label"]
    right = {"entailment": "1", "neutral": "2", "contradiction": "3"}
    keys = [right[label] for label in labels]
    keys[0] = "1" if keys[0] != "1" else "2"  # one wrong answer
    result = CliRunner().invoke(
        app, ["fill-in", "diagnostic-mn", "--plot", str(tmp_path / "x.png")],
        input="\n".join(keys) + "\n\n",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"1 of {len(labels)}" in result.stdout
    line = result.stdout.splitlines()[-1]
    assert line.startswith("me,diagnostic-mn,human,1,morphological negation,14.000000,")
    bad = CliRunner().invoke(app, ["fill-in", "diagnostic-xy"])
    assert "category must be one of MN" in str(bad.exception)


def test_the_table_of_scores_is_one_call_and_loads_nothing_of_the_book(tmp_path):
    arguments = ["scores", "gad7", "--respondents", "minilm-both-l6-s1", "--temperature", "2"]
    arguments += ["--output", str(tmp_path / "scores.csv")]
    code = (
        "import sys; from psychometrics import cli; "
        f"cli.app({arguments!r}, standalone_mode=False); "
        "book = [name for name in sys.modules if name.startswith('psychometrics_book.')]; "
        "print([name for name in book if not name.startswith('psychometrics_book.cli')])"
    )
    status, printed = run_fresh(code, tmp_path / "printed")
    assert (status, printed.splitlines()[-1]) == (0, "[]")

    gad7 = pm.load_questionnaire("gad7")
    answers = pm.ask(gad7, "minilm-both-l6-s1")
    table = pm.score_table(answers, [gad7], temperature=2.0)
    expected = pm.scale_scores(answers, questionnaires=[gad7], temperature=2.0)
    assert table["score"].tolist() == expected["score"].tolist()
    assert table[["n", "precision"]].to_numpy().tolist() == [[7, "float32"]]
    assert table["low"].item() < table["score"].item() < table["high"].item()
    stored = pd.read_csv(tmp_path / "scores.csv")
    assert stored.columns.tolist() == table.columns.tolist()


def test_without_a_command_three_lines_say_what_to_type(command):
    lines = command().splitlines()
    assert len(lines) == 3
    for line in lines:
        words = line.partition(": ")[2].partition("#")[0].split()
        assert words[0] == "psychometrics"
        assert CliRunner().invoke(app, [words[1], "--help"]).exit_code == 0


def test_a_terminal_gets_a_line_for_each_questionnaire_and_a_pipe_all_scales_as_csv(command):
    scales = pd.read_csv(io.StringIO(command("questionnaires")))
    names = scales["questionnaire"].unique().tolist()

    for options, expected in (([], names), (["--scales"], scales["questionnaire"].tolist())):
        words = [sys.executable, "-m", "psychometrics", "questionnaires", *options]
        lines = _in_terminal(words)
        assert all(len(line) <= 80 for line in lines)
        assert [line.split()[0] for line in lines[1 : len(expected) + 1]] == expected


def _in_terminal(command: list[str]) -> list[str]:
    """Return the lines that a command prints to a terminal of 80 columns."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    reader, writer = pty.openpty()
    environment = os.environ | {"COLUMNS": "80"}
    with subprocess.Popen(command, stdout=writer, env=environment) as process:
        os.close(writer)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is reported
            while part := os.read(reader, 4096):
                shown += part

    os.close(reader)
    assert process.returncode == 0
    return shown.decode().splitlines()


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EISDIR, errno.EADDRINUSE])
def test_an_error_of_the_system_names_its_place_and_what_to_do(number, monkeypatch, capsys):
    def fail():
        raise OSError(number, os.strerror(number), "/some/place")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    place = f"psychometrics: /some/place: {os.strerror(number)}; "
    assert re.match(f"{place}.+[.]", capsys.readouterr().err)
