"""The command: what it prints, and how it fails."""

from __future__ import annotations

import io
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics.cli import app


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Function that runs the command in this process and gives what it printed."""
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_check_prints_the_counts(command):
    shown = command("check", "soc13")
    assert "13 items, 4 scales, 1248 prompts" in shown
    assert "terms per template: 3.00 source, 3.00 inverse" in shown


def test_prompts_are_printed_or_written(command, tmp_path):
    assert command("prompts", "gad7").startswith("questionnaire,item_id,template,term,polarity,")
    path = tmp_path / "prompts.parquet"
    assert "672 prompts" in command("prompts", "gad7", "-o", path)
    pd.testing.assert_frame_equal(pd.read_parquet(path), pm.prompts(pm.load_questionnaire("gad7")))


def test_ask_fills_the_store_that_scores_reads(command, tiny_model, tmp_path):
    shown = command("ask", "gad7", "challenges", "--respondents", tiny_model)
    assert "1 respondent(s), 864 answers" in shown
    assert len(list((tmp_path / "store").rglob("*.parquet"))) == 2
    lines = command("scores", "gad7", "--respondents", tiny_model).splitlines()
    assert lines[0] == "respondent_id,questionnaire,scale,score"
    assert lines[1].startswith(f"{tiny_model.name},gad7,gad7,")
    items = command("scores", "gad7", "--respondents", tiny_model, "--items").splitlines()
    assert len(items) == 1 + 7


def test_an_own_questionnaire_is_scored_by_path(command, tiny_model, tmp_path):
    text = (pm.paths.questionnaires_dir() / "gad7.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("id: gad7\n", "id: mine\n", 1))
    assert ",mine,gad7," in command("scores", path, "--respondents", tiny_model)


def test_train_nli_makes_a_respondent(command, tiny_model, tmp_path):
    rows = [["I feel calm.", "I feel calm.", "entailment"], ["I feel calm.", "It is.", "neutral"]]
    pairs = pd.DataFrame(rows * 8, columns=["premise", "hypothesis", "label"])
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    output = tmp_path / "trained"
    data = tmp_path / "pairs.csv"
    shown = command("train-nli", tiny_model, output, "--data", data, "--epochs", "1", "--lr", "0")
    assert "trained on 16 pairs" in shown
    assert pm.load_respondent(output).answer([("I feel calm.", "It is.")]).shape == (1, 3)


def test_population_prints_the_table(command):
    assert command("population").startswith("respondent_id,data,share,genre,layers")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "gda7"], "did you mean 'gad7'?"),
        (["scores", "gad7", "--respondents", "./nowhere"], "nowhere"),
        (["scores", "gad7", "--temperature", "0"], "temperature must be a positive number"),
        (["run", "02-assessment", "-p", "sore=contrast"], "did you mean 'score'?"),
        (["run", "02-assessment", "-p", "score"], "name=value"),
        (["train-nli", "minilm", "out", "--paper", "--lr", "1"], "--paper sets lr itself"),
    ],
)
def test_mistakes_end_in_one_sentence_without_a_traceback(arguments, said, tmp_path):
    code = "from psychometrics.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("psychometrics: ")
    assert said in last
    assert "Traceback" not in run.stderr


def test_inventories_are_listed(command):
    lines = command("questionnaires").splitlines()
    assert lines[0] == "questionnaire,scale,items,reversed,low,high,mode,groups"
    assert any(line.startswith("bfi,Extraversion,8,3,1.0,5.0,mean,1") for line in lines)


def test_chat_prints_the_scores_of_a_model_behind_an_endpoint(command, monkeypatch):
    from psychometrics.questionnaires import load_questionnaire
    from psychometrics.respondents.endpoint import simulated_endpoint
    from psychometrics.respondents.simulated import draw_traits
    from psychometrics.scoring import scale_scores

    questionnaire = load_questionnaire("ipip20")
    traits = draw_traits(questionnaire, 1, seed=1)
    with simulated_endpoint(questionnaire, traits) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none needed")
        answers = command("chat", "ipip20", traits.index[0], "--runs", "2", "--items")
        scores = command("chat", "ipip20", traits.index[0], "--runs", "2")
    answers = pd.read_csv(io.StringIO(answers))
    assert len(answers) == 40
    assert set(answers["status"]) == {"ok"}
    expected = scale_scores(answers, questionnaire)["score"].tolist()
    assert pd.read_csv(io.StringIO(scores))["score"].tolist() == pytest.approx(expected)


def test_fill_in_asks_a_person_and_goes_on_later(command, tmp_path):
    path = str(tmp_path / "me.csv")
    arguments = ["fill-in", "ipip20", "--path", path, "--items"]
    CliRunner().invoke(app, arguments, input="5\n" * 12 + "q\n")
    shown = CliRunner().invoke(app, arguments, input="4\n" * 8 + "\n").stdout
    assert shown.count(",5.0,ok") == 12
    assert shown.count(",4.0,ok") == 8
