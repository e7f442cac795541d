"""The control questions of a chat model's page, asked of respondents that know nothing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics.cli import app
from psychometrics.exceptions import RespondentError
from psychometrics.reports.contents import report_profile
from psychometrics.reports.controls import (
    ask_controls,
    control_call,
    flag_controls,
    with_weather,
)
from psychometrics.serving.server import NullServer

SIMULATED = "simulated-extraversion=2,agreeableness=2,conscientiousness=-2,neuroticism=-2"


@pytest.fixture(scope="module")
def address():
    with NullServer(port=0) as server:
        yield server.url


@pytest.fixture
def at_server(address, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _report(model: str, questionnaire: str = "ipip20", **settings):
    return report_profile(pm.profiles.assess(model, questionnaire, mode="chat", **settings))


def _tests(report) -> dict[str, str]:
    return {test.name: test.status for test in report.tests}


@pytest.mark.parametrize("questionnaire", ["ipip20", "gad7"])
@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("first-option", "turn round with the options"),
        ("repeats-last", "turn round with the options"),
        ("agrees", "the same answer to every item"),
        ("extreme", ""),
        ("random", ""),
    ],
)
def test_a_page_about_a_model_that_reads_nothing_fails_every_test_it_makes(
    at_server, model, reason, questionnaire
):
    report = _report(model, questionnaire)
    (statement,) = report.statements
    assert statement.case == "fails"
    assert reason in statement.text
    statuses = _tests(report)
    assert statuses["weather"] == statuses["turn it round"] == "failed"


def test_a_model_that_answers_by_content_passes_what_it_can(at_server):
    report = _report(SIMULATED, "ipip50", temperature=0.5)
    statuses = _tests(report)
    assert statuses["impostor"] == statuses["turn it round"] == "passed"
    assert statuses["weather"] == "open", "the fifth trait is average"
    assert report.statements[0].case in ("passes", "reservations")
    verdicts = {row["scale"]: row["reason"] for row in report.results.rows}
    assert "weather" in verdicts["intellect"]
    assert "weather" not in verdicts["extraversion"]


def test_items_that_are_keyed_alike_are_judged_by_the_controls(at_server):
    high = _report("simulated-gad7=1", "gad7")
    assert high.statements[0].case in ("reservations", "fails")
    without = _report("simulated-gad7=1", "gad7", controls=False)
    assert without.statements[0].case == "not compared"


def test_controls_left_out_are_named_with_their_command(at_server):
    tests = {test.name: test for test in _report("random", controls=False).tests}
    for name in ("weather", "turn it round"):
        assert tests[name].status == "not done"
        assert (
            tests[name].command
            == "psychometrics profile random --questionnaires ipip20 --mode chat"
        )
    repeated = pm.profiles.assess("random", "ipip20", mode="chat", controls=False).command()
    assert "--no-controls" in repeated


def test_the_number_of_statements_is_said_before_they_are_asked_and_a_dry_run_asks_none(at_server):
    arguments = ["profile", "agrees", "--mode", "chat", "--questionnaires", "gad7", "--json"]
    planned = CliRunner().invoke(app, [*arguments, "--dry-run"])
    assert planned.exit_code == 0
    assert planned.stderr.count("requests to be sent") == 2
    assert len(pm.manifests()) == 0

    asked = CliRunner().invoke(app, arguments)
    assert "22 statements more" in asked.stderr
    assert asked.stderr.index("22 statements more") < asked.stderr.index("asked")
    report = json.loads(asked.stdout)
    assert "refused or unreadable: 0" in report["about"]
    alone = CliRunner().invoke(app, [*arguments, "--no-controls"])
    assert "statements more" not in alone.stderr


def test_the_page_names_the_share_of_unread_answers_and_the_cost(at_server):
    report = _report("agrees", "gad7", wording="Good morning! {statements}", ask_again=0)
    assert "refused or unreadable: 29 of 29 (100%): 29 " in report.about
    assert "cost: " in _report("agrees", "gad7", price_in=1.0, price_out=2.0).about


def test_a_budget_that_is_used_up_leaves_no_money_for_controls(at_server):
    gad7 = pm.load_questionnaire("gad7")
    budget = {"price_in": 1.0, "price_out": 2.0, "max_cost": 1.0, "max_tokens": 200}
    settings = {"mode": "chat", "progress": False} | budget
    assert (ask_controls([gad7], "agrees", settings)["status"] == "ok").all()
    with pytest.raises(RespondentError, match="max_cost"):
        ask_controls([gad7], "random", settings, spent=1.0)


def test_controls_that_cannot_be_asked_are_left_out_with_the_reason(at_server):
    tests = {test.name: test for test in _report("people-gad7", "gad7").tests}
    assert tests["weather"].status == tests["turn it round"].status == "not done"
    assert "no answers of people" in tests["weather"].done


def test_statements_about_the_weather_have_the_form_of_the_items():
    mini = pm.load_questionnaire("ipip20")
    controls = with_weather(mini)
    assert {item.text for item in controls.items} > {mini.statement(item) for item in mini.items}
    assert len(controls.items) == len(mini.items) + 15
    assert controls.options == mini.options
    assert len(with_weather(pm.load_questionnaire("gad7_es")).items) == 7, "they are English"
    (asked,), conditions = control_call([mini], {"order": "reversed", "runs": 3})
    assert (asked.id, conditions) == ("ipip20_controls", {"order": "given", "runs": 1})


def _answered(questionnaire, value: dict[str, float], order: str) -> pd.DataFrame:
    row = {"respondent_id": "m", "questionnaire": questionnaire.id, "mode": "chat", "run": 1}
    return pd.DataFrame(
        [row | {"item_id": name, "value": v, "status": "ok"} for name, v in value.items()]
    ).assign(order=order)


@pytest.mark.parametrize(("turned", "mark"), [(0.0, "✓"), (3.0, "✗")])
def test_flags_follow_from_five_answers_or_more(turned, mark):
    """Seven answers of one option: p is 1/128 that all stay, or all turn, by chance."""
    gad7 = pm.load_questionnaire("gad7")
    names = [item.id for item in gad7.items]
    first = _answered(gad7, dict.fromkeys(names, 0.0), "given")
    with_items = with_weather(gad7)
    values = {item.id: turned for item in with_items.items}
    controls = _answered(with_items, values, "reversed")
    marks = flag_controls(first, controls, gad7, 0.05).set_index("check")["mark"]
    assert marks.to_dict() == {"turned": mark, "weather": "!"}

    few = flag_controls(first.head(4), controls, gad7, 0.05).set_index("check")["mark"]
    assert few["turned"] == "–"


def test_answers_at_random_pass_the_controls_in_five_per_cent_of_draws():
    rng = np.random.default_rng(0)
    mini = pm.load_questionnaire("ipip20")
    with_items = with_weather(mini)
    passed = {"turned": 0, "weather": 0}
    for _ in range(100):
        first = _answered(mini, {i.id: rng.integers(1, 6) for i in mini.items}, "given")
        again = {i.id: rng.integers(1, 6) for i in with_items.items}
        flags = flag_controls(first, _answered(with_items, again, "reversed"), mini, 0.05)
        for check in passed:
            passed[check] += (flags.loc[flags["check"] == check, "mark"] == "✓").any()

    assert passed["turned"] <= 9  # 5 %, and two standard deviations more
    assert passed["weather"] <= 9
