"""Models that know nothing get pages whose every verdict follows from the page's own numbers."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

import psychometrics as pm
from tests.families import save_family

FAMILIES = ("albert", "bert", "deberta", "distilbert", "gpt2", "roberta")
pytestmark = pytest.mark.filterwarnings("ignore:.* the same answer .*:UserWarning")
HEADS = 99
STUDY = """
title: Contrary models
question: What does a study say of models that know nothing?
planned:
  date: 2026-11-28
  alpha: 0.05
  correction: holm
  expectations:
    - says: Extraversion is higher as an expected value.
      questionnaire: ipip20
      scale: extraversion
      of: {{choose: expected}}
      than: {{choose: argmax}}
      expect: higher
    - says: Neuroticism differs as an expected value.
      questionnaire: ipip20
      scale: neuroticism
      of: {{choose: expected}}
      than: {{choose: argmax}}
      expect: different
questionnaires: [ipip20]
respondents: {respondents}
mode: options
conditions: {{choose: [argmax, expected]}}
analyses: [scores, expectations, reliability, evidence]
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory, save_tiny_model):
    """Random models of six families, one of two classes, and one that always says neutral."""
    folder = tmp_path_factory.mktemp("contrary")
    paths = [save_family(folder, family) for family in FAMILIES]
    paths.append(save_tiny_model(folder / "two-classes", labels=("entailment", "not_entailment")))
    neutral = save_tiny_model(folder / "always-neutral", seed=1)
    weights = load_file(neutral / "model.safetensors")
    weights["classifier.weight"] = torch.zeros_like(weights["classifier.weight"])
    weights["classifier.bias"] = torch.tensor([0.0, 9.0, 0.0])
    save_file(weights, neutral / "model.safetensors", {"format": "pt"})
    return [*paths, neutral]


def _table(page: str, name: str) -> pd.DataFrame:
    return pd.read_csv(f"runs/{page}/tab-{name}.csv", keep_default_na=False, na_values=[""])


def _text(page: str) -> str:
    body = Path(f"{page}.html").read_text(encoding="utf-8").partition("<main>")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def _is_rare(counts: list[str], level: float) -> list[bool]:
    assert {int(total) for _, total in counts} == {HEADS}
    return [(int(reached) + 1) / (int(total) + 1) <= level for reached, total in counts]


def _mark_of_flag(check: str, words: str, level: float, scales: int) -> str:
    """Return the mark that a flag's own sentence implies, by the rules of the page."""
    if words.startswith("not judged"):
        return "–"
    if check == "terms":
        counted = r"and \d+ of (\d+) have as much \((\d+) on" if scales > 1 else (
            r"and (\d+) of (\d+) have as much"
        )  # fmt: skip
        counts = re.findall(counted, words)
        passes = _is_rare([pair[::-1] for pair in counts] if scales > 1 else counts, level)
        assert len(passes) == 3
        return "✓" if all(passes) else "!" if any(passes) else "✗"
    if check in ("score", "trend"):
        counts = re.findall(r"(\d+) of (\d+) random heads", words)
        return "✓" if counts and _is_rare(counts, 0.05)[0] else "!"
    if check == "agreeing":
        common, content = map(float, re.findall(r"\((\d\.\d+)\)", words))
        assert ("is larger than" in words) == (common > content) or common == content
        return "!" if "is larger than" in words else "✓"
    low, high, guess = map(int, re.findall(r"interval (\d+)% to (\d+)%; guessing (\d+)%", words)[0])
    assert low <= high
    assert (check == "guessing") == (low <= guess)
    return "✗" if check == "guessing" else "!" if low < 50 else "✓"


def _verdict(flags: pd.DataFrame) -> tuple[str, str]:
    """Return the mark of a scale by its flags, and the words with which its verdict begins."""
    marks = dict(zip(flags["check"], flags["mark"], strict=True))
    if marks["terms"] == "✗":
        return "✗", "indistinguishable from a random head; do not interpret"
    if "✗" in marks.values():
        return "✗", "no better than guessing at inference; do not interpret"
    reserved = [check for check, mark in marks.items() if mark == "!" and check != "terms"]
    reserved += ["not compared with random heads on its own base"] * (marks["terms"] == "–")
    more = f"with reservations: {', '.join(reserved)}" if reserved else ""
    if marks["terms"] == "!":
        return "!", "; ".join(filter(None, ["depends on the size of the head", more]))
    return ("!", more) if reserved else ("✓", "no flag, which is not a proof")


def _words(flags: pd.DataFrame) -> str:
    """Return the verdict in words that the page gives a scale with these flags."""
    marks = dict(zip(flags["check"], flags["mark"], strict=True))
    if "✗" in marks.values():
        return "Do not interpret"
    if marks["terms"] == "–":
        return "Not compared"
    if marks["terms"] == "!":
        return "Depends on the impostors"
    if marks["score"] == "!":
        return "As far as impostors"
    return "With reservations" if "!" in marks.values() else "May be reported"


def _check_scores(scores: pd.DataFrame, flags: pd.DataFrame, level: float, text: str) -> None:
    """Recompute every mark of flags, and every verdict of scores, and find them on the page."""
    scales = scores.groupby("questionnaire")["scale"].nunique()
    for row in flags.itertuples():
        count = scales[row.questionnaire]
        assert row.mark == _mark_of_flag(row.check, row.words, level, count), row
        assert row.words in text

    keys = ["questionnaire", *(["model"] if "model" in scores else [])]
    for row in scores.itertuples():
        own = flags[(flags[keys] == [getattr(row, key) for key in keys]).all(axis=1)]
        own = own[own["scale"].isna() | (own["scale"] == row.scale)]
        assert (row.mark, row.verdict) == _verdict(own)
        assert _words(own) in text
        assert row.low <= row.score <= row.high or np.isnan(row.low)


def _check_agreement(table: pd.DataFrame) -> None:
    for row in table.itertuples():
        if np.isnan(row.agreement):
            assert "agreement needs two independent respondents" in row.note
            continue
        assert -1 / (row.respondents - 1) - 1e-9 <= row.agreement <= 1
        assert (row.p <= 0.05) == (row.agreement > row.null) or abs(row.agreement - row.null) < 1e-6


@pytest.fixture
def command(ended, monkeypatch, tmp_path_factory):
    """Function that runs the command with one store for all tests."""
    store = tmp_path_factory.getbasetemp() / "contrary-store"
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(store))
    return ended


def test_every_verdict_of_a_comparison_follows_from_its_own_tables(command, models):
    asked = ["--questionnaires", "challenges", "--against", "nobody"]
    code, said, errors = command("compare", *models, *asked)
    assert code == 0, errors
    text = _text("compare")
    scores = _table("compare", "compare-scores")
    _check_scores(scores, _table("compare", "compare-flags"), 0.05, text)
    marks = scores.set_index("model")["mark"]
    assert "✓" not in set(marks)

    value = scores.set_index("model")["score"]
    differences = _table("compare", "compare-differences")
    own_base = {*FAMILIES}
    for row in differences.itertuples():
        assert row.difference == pytest.approx(value[row.model] - value.iloc[0], abs=1e-9)
        is_rare = (round(row._8 * HEADS) + 1) / (HEADS + 1) <= 0.05
        expected = "differ" if is_rare else "no clearer than between random heads"
        if row.model not in own_base:
            expected = "cannot be judged: no random heads on their own bases"
        if row.low <= 0 <= row.high:
            expected = "no difference shown"
        assert row.verdict == expected
        assert row.verdict in text

    agreement = _table("compare", "compare-agreement")
    _check_agreement(agreement)
    assert agreement["p"].item() > 0.01, "random models agree about nothing"
    assert agreement["note"].item() == "left out: 1 with one score for all items"
    assert f"{agreement['agreement'].item():.3f}" in said


@pytest.mark.parametrize("number", [0, 6, 7], ids=["family", "two-classes", "neutral"])
def test_every_verdict_of_a_profile_follows_from_its_own_tables(command, models, number):
    asked = ["--questionnaires", "challenges", "--against", str(models[1])]
    code, _, errors = command("profile", models[number], *asked, "-o", "page.html")
    assert code == 0, errors
    scores = _table("page", "profile-scores")
    _check_scores(scores, _table("page", "profile-flags"), 0.05, _text("page"))
    assert scores["mark"].tolist() != ["✓"]
    _check_agreement(_table("page", "profile-agreement"))


def test_every_verdict_on_answers_of_contrary_models_follows_from_its_own_tables(command, models):
    names = ",".join(map(str, models))
    asked = ["--mode", "options", "--respondents", names, "-o", "answers.csv"]
    code, _, errors = command("ask", "ipip20", *asked)
    assert code == 0, errors
    file = ["--answers", "answers.csv", "--questionnaires", "ipip20"]
    code, _, errors = command("profile", *file, "-o", "page.html")
    assert code == 0, errors
    text = _text("page")
    for row in _table("page", "answers-scales").itertuples():
        if np.isnan(row.alpha):
            expected = "no alpha: it needs three respondents that differ, and two items"
        elif row.alpha <= row.independent:
            expected = "no more consistent than independent answers"
        elif row.alpha <= row.habit:
            expected = "no more consistent than a habit"
        else:
            expected = "more consistent than independent answers and habits, which is not a proof"
        assert row.reading == expected
        assert expected in text
        assert np.isnan(row.low) or row.low <= row.score <= row.high

    verdicts = _table("page", "answers-verdicts")
    assert (verdicts[["✗", "!", "✓"]].sum(axis=1) == verdicts["judged"]).all()
    answers = pm.read_answers("answers.csv", "ipip20")
    judged = pm.profiles.judge_respondents(answers, "ipip20", answers["respondent_id"].unique())
    marks = pd.concat([each.scores for each in judged.values()]).groupby("scale")["mark"]
    for row in verdicts.itertuples():
        counts = marks.get_group(row.scale).value_counts()
        assert [row._4, row._5, row._6] == [counts.get(mark, 0) for mark in "✗!✓"]
    _check_agreement(_table("page", "answers-agreement"))


def test_every_verdict_of_a_study_of_contrary_models_follows_from_its_own_tables(command, models):
    Path("study.yaml").write_text(STUDY.format(respondents=[str(path) for path in models[:6]]))
    assert command("study", "run", "study.yaml")[0] == 0
    code, _, errors = command("study", "report", "study.yaml")
    assert code == 0, errors
    text = _text("study/report")
    table = pd.read_csv("study/report/tab-study-expectations.csv")
    sides = {"higher": table["low"] > 0, "different": (table["low"] > 0) | (table["high"] < 0)}
    assert table["respondents"].eq(6).all()
    for number, expected in enumerate(["higher", "different"]):
        row = table.iloc[number]
        verdict = "! open: the interval includes zero"
        if sides[expected][number]:
            is_significant = row["p corrected"] < 0.05
            verdict = "✓ as expected" if is_significant else "! open: p is not below alpha"
        elif sides["different"][number]:
            verdict = "✗ the other way round"
        assert row["verdict"] == verdict
        assert verdict in text

    assert not Path("study/report/tab-study-reliability.csv").exists()
    assert "Alpha is not printed below 8" in text, "there are six respondents"
    evidence = pd.read_csv("study/report/tab-study-evidence.csv")
    assert len(evidence) == 6 * 5
    assert all(verdict in text for verdict in evidence["verdict"].unique())
