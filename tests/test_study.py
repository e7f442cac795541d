"""A study as one file."""

from __future__ import annotations

import json
import re
from html import unescape

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats
from typer.testing import CliRunner

import psychometrics as pm
import psychometrics_book as book
from psychometrics.cli import app
from psychometrics.exceptions import ParameterError
from psychometrics.paths import book_dir
from psychometrics.questionnaires import load_questionnaire
from psychometrics.reports.five_tests import QUESTIONS
from psychometrics_book.studies.study import _difference, _reliability, run_study, study_tables
from psychometrics_book.studies.study_files import Study, load_study, study_schema

STUDY = """
title: Argmax or expected
question: Does the way of choosing an option move the scores of three encoders?
planned:
  date: 2026-11-22
  expectations:
    - says: Neuroticism is lower where the expected option is taken.
      questionnaire: ipip20
      scale: neuroticism
      of: {choose: expected}
      than: {choose: argmax}
      expect: lower
questionnaires: [ipip20]
respondents: [minilm-mnli-l3-s16, minilm-snli-l3-s17, minilm-both50-l3-s12]
mode: options
conditions: {choose: [argmax, expected]}
analyses: [scores, expectations, effects, reliability]
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path / "store"))
    path = tmp_path / "choosing.yaml"
    path.write_text(STUDY)
    return path


@pytest.mark.parametrize("form", ["osf", "aspredicted"])
def test_a_plan_becomes_the_text_of_a_registry_with_what_it_lacks_marked(study, form):
    result = CliRunner().invoke(app, ["study", "register", str(study), "--form", form])
    assert result.exit_code == 0, result.output
    text = result.output
    assert "Neuroticism is lower where the expected option is taken." in text
    assert "choose=expected lower than choose=argmax" in text
    assert "3 respondents in 2 conditions" in text
    exclusions = text.split("xclu")[1].split("##")[0]
    assert "(to be filled in)" in exclusions


def test_a_study_without_a_plan_has_nothing_to_register(study):
    content = yaml.safe_load(STUDY)
    del content["planned"]
    study.write_text(yaml.safe_dump(content | {"analyses": ["scores"]}))
    with pytest.raises(ParameterError, match="planned"):
        book.registration.registration_text(study)


def test_the_published_schema_is_the_studys_own_and_accepts_the_example():
    schema = json.loads((book_dir() / "_static/study.schema.json").read_text(encoding="utf-8"))
    assert schema == study_schema()
    content = yaml.safe_load(STUDY)
    content["planned"]["date"] = str(content["planned"]["date"])
    jsonschema.validate(content, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {"questionaires": []}, schema)


def _report(study) -> str:
    text = (study.with_suffix("") / "report.html").read_text().partition("<main>")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_a_study_resumes_and_its_report_shows_plan_scores_and_verdicts(study):
    first, again = run_study(study, progress=False), run_study(study, progress=False)
    assert first["asked"] == 300  # 3 respondents, 20 items, 5 options; choosing asks nothing more
    assert (again["asked"], again["failed"], again["plan"]) == (0, {}, True)
    shown = CliRunner().invoke(app, ["study", "report", str(study)], catch_exceptions=False)
    assert shown.exit_code == 0
    text = _report(study)
    assert text.startswith("Report of a study Argmax or expected")
    assert "not corrected for the number of expectations" in text
    assert "the plan of the first run" in text
    assert "20k SNLI, 3 layers" in text
    assert re.search(r"(as expected|the other way round|open: the interval)", text)
    assert "The study leaves this analysis out" in text, "evidence"
    assert text.count("Add evidence to the analyses") == 5
    tables = study_tables(study)
    assert set(tables) == {"plan", "asked", "scores", "expectations", "effects", "reliability"}
    assert len(tables["scores"]) == 2 * 5 * 3
    assert tables["scores"][["low", "high"]].stack().between(1, 5).all(), "a scale ends there"


def test_a_plan_that_was_changed_after_the_first_run_is_marked(study):
    run_study(study, progress=False)
    study.write_text(STUDY.replace("expect: lower", "expect: higher"))
    assert run_study(study, progress=False)["plan"] is False
    assert study_tables(study)["plan"].loc["plan", "value"].startswith("CHANGED")


def test_what_else_was_changed_is_listed_and_a_damaged_record_is_refused(study):
    run_study(study, progress=False)
    other = STUDY.replace("minilm-both50-l3-s12", "minilm-both-l6-s1").replace("Argmax or", "A or")
    study.write_text(other)
    summary = run_study(study, progress=False)
    assert summary["plan"] is True
    assert set(summary["changed"]) == {"title", "respondents", "models"}
    plan = study_tables(study)["plan"]["value"]
    assert plan["changed since the first run"] == ", ".join(summary["changed"])
    (study.with_suffix("") / "record.json").write_text('{"first": ')
    with pytest.raises(ParameterError, match="damaged"):
        run_study(study, progress=False)


def test_a_plan_with_alpha_a_correction_and_a_smallest_effect_is_held_to_them(study):
    expected = STUDY.partition("    - says")[2].partition("questionnaires:")[0]
    again = "    - says" + expected.replace("neuroticism", "extraversion")
    stated = "  alpha: 0.01\n  correction: holm\n  smallest_effect: 2.0\n  stopping: one run\n"
    stated += "  spread_of_respondents: 0.1\n"
    study.write_text(STUDY.replace("questionnaires: [", again + stated + "questionnaires: [", 1))
    shown = CliRunner().invoke(app, ["study", "check", str(study)], catch_exceptions=False)
    assert re.search("smallest effect of interest: ([0-9]+%, )[0-9]+%", shown.stdout)
    power = load_study(study).power(study.parent)  # four items, d = 2
    assert all(0.5 < share < 1 for share in power)
    run_study(study, progress=False)
    tables = study_tables(study)
    found = tables["expectations"]
    assert (found["p corrected"] >= found["p"]).all()
    assert tables["plan"].loc["stopping", "value"] == "one run"
    shown = CliRunner().invoke(app, ["study", "report", str(study)], catch_exceptions=False)
    assert shown.exit_code == 0
    page = _report(study)
    assert "corrected for 2 expectation(s) by Holm's method" in page
    assert "and the corrected p value is below 0.01" in page
    assert "not corrected for" not in page
    assert not tables["effects"]["scale"].isin(["Neuroticism", "Extraversion"]).any()


def test_who_fails_is_named_while_the_others_are_asked(study):
    conditions = "{choose: [argmax, expected]"
    both = f"{conditions}, role: [default, hero]}}"
    study.write_text(STUDY.replace(f"{conditions}}}", both))
    summary = run_study(study, progress=False)
    assert summary["asked"] == 300
    assert all("role is a condition of a language model" in r for r in summary["failed"].values())
    assert study_tables(study)["asked"].index.str.startswith("failed: ").any()
    shown = CliRunner().invoke(app, ["study", "run", str(study)])
    assert shown.exit_code == 1
    assert "role=hero" in shown.stdout


def test_an_analysis_that_has_nothing_to_show_says_why(study):
    alone = "minilm-mnli-l3-s16, minilm-snli-l3-s17, minilm-both50-l3-s12"
    study.write_text(STUDY.replace(alone, "minilm-mnli-l3-s16"))
    run_study(study, progress=False)
    assert "Alpha is not printed below" in study_tables(study)["reliability"]


def test_a_study_of_models_has_the_five_tests_with_a_line_for_each_model(study):
    study.write_text(STUDY.replace("reliability]", "evidence]"))
    run_study(study, progress=False)
    tables = study_tables(study)
    report = book.study_report.report_study(load_study(study), tables)
    assert [test.name for test in report.tests] == list(QUESTIONS)
    impostor = report.tests[0]
    assert impostor.status in ("passed", "failed")
    assert len(impostor.results) == 3
    assert all(test.command for test in report.tests if test.status == "not done")


def _answered_by(number: int) -> pd.DataFrame:
    """Item scores of ipip20 by respondents who differ, with noise."""
    rng = np.random.default_rng(0)
    questionnaire = load_questionnaire("ipip20")
    rows = [
        (f"r{who}", "ipip20", item.id, level * item.keying + rng.normal(), "{}")
        for who, level in enumerate(rng.normal(size=number))
        for item in questionnaire.items
    ]
    columns = ["respondent_id", "questionnaire", "item_id", "score", "_combination"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(("number", "noted"), [(10, "fewer than 30"), (30, "")])
def test_alpha_over_few_respondents_is_marked(study, number, noted):
    loaded = [load_questionnaire("ipip20")]
    table = _reliability(load_study(study), loaded, _answered_by(number))
    assert table["alpha"].notna().all()
    assert table["note"].str.startswith(noted).all()
    assert table["note"].eq("").all() == (noted == "")


def test_alpha_over_seven_respondents_is_not_printed(study):
    with pytest.raises(ParameterError):
        _reliability(load_study(study), [load_questionnaire("ipip20")], _answered_by(7))
    some = _answered_by(12)
    kept = load_questionnaire("ipip20").scales[0].items
    gaps = some["respondent_id"].isin(["r0", "r1", "r2", "r3", "r4"]) & ~some["item_id"].isin(kept)
    some.loc[gaps, "score"] = np.nan
    table = _reliability(load_study(study), [load_questionnaire("ipip20")], some)
    assert table["alpha"].notna().tolist() == [True, False, False, False, False]
    assert table["note"].str.startswith("not printed").tolist() == [False, True, True, True, True]


FORM = {
    "title:": "titel:",
    "expect: lower": "expect: up",
    "date: 2026-11-22": "date: 2026-11-32",
}
PARTS = {
    "questionnaires: [ipip20]": "questionnaires: [ipip20, ipip21]",
    "minilm-snli-l3-s17": "minilm-nobody",
}


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (FORM, ["titel", "title: is missing", "'up'", "2026-11-32"]),
        (PARTS, ["ipip21", "minilm-nobody", "expectation 2: ipip20 has no scale", "choose=x"]),
    ],
    ids=["form", "parts"],
)
def test_all_mistakes_of_a_file_are_named_in_one_go(study, wrong, parts):
    text = STUDY
    for old, new in wrong.items():
        assert old in text
        text = text.replace(old, new)
    other = "    - {says: b, questionnaire: ipip20, scale: anxiety, of: {choose: x}, than: {},"
    study.write_text(
        text.replace("questionnaires: [", f"{other} expect: lower}}\nquestionnaires: [")
    )
    with pytest.raises(ParameterError) as error:
        load_study(study)
    told = str(error.value)
    assert not [part for part in parts if part not in told], told
    assert len(told.splitlines()) == len(set(told.splitlines()))


@pytest.mark.parametrize("mode", ["causal", "nsp", "acceptability"])
def test_a_study_takes_populations_in_every_mode_of_models_on_this_machine(study, mode):
    text = STUDY.replace("mode: options", f"mode: {mode}")
    study.write_text(re.sub(r"respondents: \[.*\]", "respondents: [decoders]", text))
    content = yaml.safe_load(study.read_text())
    plan = Study.model_validate(content | {"planned": {"date": "2026-11-22"}})
    assert plan.list_respondents(study.parent) == pm.population("decoders")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ipip20]", "ipip21]", "questionnaires: .*ipip21"),
        ("minilm-snli-l3-s17", "minilm-nobody", "respondents: .*minilm-nobody"),
        ("of: {choose: expected}", "of: {choose: drawn}", "choose=drawn is not among the cond"),
        ("scale: neuroticism", "scale: anxiety", "expectation 1: .*no scale 'anxiety'"),
        ("than: {choose: argmax}", "than: {choose: expected}", "'of' and 'than' are the same"),
        ("mode: options", "mode: optoins", "optoins"),
        ("title:", "titel:", "title: is missing"),
        ("analyses: [scores,", "analyses: [score,", "analyse 1"),
        ("question:", "question: [", "line [0-9]+"),
    ],
)
def test_mistakes_are_named_before_anybody_is_asked(study, old, new, said):
    study.write_text(STUDY.replace(old, new))
    with pytest.raises(ParameterError, match=said):
        run_study(study)
    assert not (study.with_suffix("") / "record.json").exists()


def test_a_report_needs_a_run(study):
    with pytest.raises(ParameterError, match="was not run"):
        study_tables(study)


def test_all_combinations_are_asked_in_order(study):
    assert load_study(study).combinations == [{"choose": "argmax"}, {"choose": "expected"}]


def test_a_difference_is_keyed_and_its_p_value_counts_the_signs_that_give_as_much():
    questionnaire = load_questionnaire("ipip20")
    scale = questionnaire.scales[0]
    keys = questionnaire.keys(scale)
    rows = [("a", "ipip20", item.id, 3 + side * keys.get(item.id, 0), json.dumps({"x": side}))
            for item in questionnaire.items for side in (0, 1)]  # fmt: skip
    columns = ["respondent_id", "questionnaire", "item_id", "score", "_combination"]
    table = pd.DataFrame(rows, columns=columns)
    found = _difference(table, questionnaire, scale, {"x": 1}, {"x": 0})
    assert found["difference"] == 1
    assert abs(found["p"] - 2 / 16) < 0.02  # of 16 signs of four items two give as much


def test_ways_of_asking_count_as_drawn_where_there_are_several():
    questionnaire = load_questionnaire("ipip20")
    scale = questionnaire.scales[0]
    keys = questionnaire.keys(scale)
    rows = [
        ("a", "ipip20", item.id, 3 + keys.get(item.id, 0) * side * shift,
         json.dumps({"x": side, "wording": wording}))
        for item in questionnaire.items
        for side in (0, 1)
        for wording, shift in (("v1", 1.0), ("v2", 0.2), ("v3", -0.6))
    ]  # fmt: skip
    columns = ["respondent_id", "questionnaire", "item_id", "score", "_combination"]
    table = pd.DataFrame(rows, columns=columns)
    found = _difference(table, questionnaire, scale, {"x": 1}, {"x": 0})
    # Each wording shifts all items alike: over items alone the interval would have no width.
    assert found["ways"] == 3
    assert found["difference"] == pytest.approx(0.2)
    assert found["high"] - 0.2 == pytest.approx(4.3027 * 0.8 / 3**0.5, abs=1e-3)
    assert found["p"] == pytest.approx(0.708, abs=1e-3)


WAYS = "conditions: {choose: [argmax, expected]"


def _power(
    folder, effect: float, ways: str = "", spread: float = 0.5, models: tuple[float, int] = (0, 3)
) -> float:
    """Return the simulated power of ten items that models and ways of asking shift."""
    spread_of_models, number = models
    planned = f"  smallest_effect: {effect}\n  spread_of_ways: {spread}\n"
    planned += f"  spread_of_respondents: {spread_of_models}\nquestionnaires: ["
    text = STUDY.replace("questionnaires: [", planned, 1).replace(WAYS, WAYS + ways)
    text = re.sub(r"respondents: \[.*\]", f"respondents: {pm.population('all')[:number]}", text)
    text = text.replace("2026-11-22", "'2026-11-22'")
    text = text.replace("ipip20", "ipip50").replace("scale: neuroticism", "scale: extraversion")
    (share,) = Study.model_validate(yaml.safe_load(text)).power(folder)
    return share


@pytest.mark.parametrize(
    "ways",
    ["", ", wording: [a, b]", ", wording: [a, b, c]", ", wording: [a, b, c], order: [1, 2, 3, 4]"],
)
def test_power_without_an_effect_is_the_share_of_false_findings_and_rises_with_the_effect(
    tmp_path, ways
):
    shares = [_power(tmp_path, effect, ways) for effect in (1e-9, 0.5, 2, 16)]
    assert shares[0] <= 0.08
    assert shares == sorted(shares)
    assert shares[0] < shares[2]
    assert shares[-1] > 0.9


def test_power_counts_ways_as_drawn_as_the_report_does(tmp_path):
    alone = _power(tmp_path, 1)
    assert _power(tmp_path, 1, ", wording: [a, b, c]", spread=0) == pytest.approx(alone, abs=0.05)
    assert _power(tmp_path, 1, ", wording: [a, b, c]") < alone - 0.2
    assert _power(tmp_path, 1, ", wording: [a, b]") < 0.2, "one degree of freedom"
    assert _power(tmp_path, 1, ", wording: [a]") == alone


def test_power_counts_models_as_drawn_and_asks_how_much_they_differ(study):
    folder = study.parent
    alone = _power(folder, 1, models=(1, 1))
    assert _power(folder, 1, models=(0, 3)) == pytest.approx(alone, abs=0.05), "no model differs"
    few, many = (_power(folder, 1, models=(1, number)) for number in (3, 12))
    assert few < 0.5 * alone
    assert few < many < alone
    study.write_text(STUDY.replace("questionnaires: [", "  smallest_effect: 1\nquestionnaires: ["))
    shown = CliRunner().invoke(app, ["study", "check", str(study)], catch_exceptions=False)
    assert "spread_of_respondents" in shown.stdout
    assert "simulated power" not in shown.stdout


def _scored(shifts: dict[str, dict[str, float]], questionnaire, scale) -> pd.DataFrame:
    """Item scores that rise at x = 1 by the model's shift of an item, or by its shift of "all"."""
    keys = questionnaire.keys(scale)
    rows = [
        (model, "ipip50", item.id,
         3 + side * keys.get(item.id, 0) * of_items.get(item.id, of_items["all"]),
         json.dumps({"x": side}))
        for model, of_items in shifts.items() for item in questionnaire.items for side in (0, 1)
    ]  # fmt: skip
    columns = ["respondent_id", "questionnaire", "item_id", "score", "_combination"]
    return pd.DataFrame(rows, columns=columns)


def test_one_model_of_six_that_rises_is_no_effect_in_models():
    questionnaire = load_questionnaire("ipip50")
    scale = questionnaire.scale("extraversion")
    items = list(questionnaire.keys(scale))
    shifts = {"a": {"all": 2.0}, "e": {"all": 0.0}, "f": {"all": 0.0}}
    shifts |= {model: {"all": 0.0, item: -1.0} for model, item in zip("bcd", items, strict=False)}
    found = _difference(_scored(shifts, questionnaire, scale), questionnaire, scale,
                        {"x": 1}, {"x": 0})  # fmt: skip
    means = np.array([2, 0, 0, -0.1, -0.1, -0.1])
    theirs = stats.ttest_1samp(means, 0)
    assert found["difference"] == pytest.approx(means.mean())
    assert found["respondents"] == 6
    assert found["p"] == pytest.approx(theirs.pvalue, abs=0.01)
    assert found["low"] == pytest.approx(theirs.confidence_interval().low)


def test_an_answer_that_one_model_lacks_leaves_the_others_in():
    questionnaire = load_questionnaire("ipip50")
    scale = questionnaire.scale("extraversion")
    first = next(iter(questionnaire.keys(scale)))
    shifts = {"a": {"all": 1.0, first: np.nan}, "b": {"all": 2.0}, "c": {"all": np.nan}}
    found = _difference(_scored(shifts, questionnaire, scale), questionnaire, scale,
                        {"x": 1}, {"x": 0})  # fmt: skip
    assert found["respondents"] == 2, "c answered nothing"
    assert found["difference"] == pytest.approx((9 + 20) / 19)


def test_a_verdict_about_one_respondent_says_so(of_a_table):
    path, table = of_a_table
    path.write_text(path.read_text().replace("[a, b, c]", "[a]"))
    run_study(path, progress=False, answers=table)
    (row,) = study_tables(path)["expectations"].to_dict("records")
    assert row["respondents"] == 1
    assert row["verdict"] == "✓ as expected, this model only"


def test_a_record_of_an_older_version_keeps_its_plan(study):
    run_study(study, progress=False)
    file = study.with_suffix("") / "record.json"
    record = json.loads(file.read_text())
    for name in ("spread_of_ways", "spread_of_respondents"):
        del record["study"]["planned"][name]
    file.write_text(json.dumps(record))
    assert run_study(study, progress=False)["plan"] is True


def test_ways_that_share_a_level_count_once():
    questionnaire = load_questionnaire("ipip20")
    scale = questionnaire.scales[0]
    keys = questionnaire.keys(scale)
    wordings = {"v1": 1.0, "v2": 0.2, "v3": -0.6}
    orders = {"given": 0.1, "reversed": -0.1, "random": 0.0, "again": 0.0}
    rows = [
        ("a", "ipip20", item.id, 3 + keys.get(item.id, 0) * side * (wordings[w] + orders[o]),
         json.dumps({"x": side, "wording": w, "order": o}))
        for item in questionnaire.items for side in (0, 1) for w in wordings for o in orders
    ]  # fmt: skip
    columns = ["respondent_id", "questionnaire", "item_id", "score", "_combination"]
    found = _difference(pd.DataFrame(rows, columns=columns), questionnaire, scale,
                        {"x": 1}, {"x": 0})  # fmt: skip
    assert found["ways"] == 3, "three wordings, and not twelve ways"
    assert found["high"] - 0.2 == pytest.approx(4.3027 * 0.8 / 3**0.5, abs=1e-3)
    assert found["p"] == pytest.approx(0.708, abs=1e-3)


OF_A_TABLE = """
title: Two temperatures
question: Does the temperature move a neuroticism that others have asked for?
planned:
  date: 2026-11-22
  expectations:
    - says: Neuroticism is higher at temperature 1.
      questionnaire: ipip20
      scale: neuroticism
      of: {temperature: 1}
      than: {temperature: 0}
      expect: higher
questionnaires: [ipip20]
respondents: [a, b, c]
mode: file
conditions: {temperature: [0, 1]}
analyses: [scores, expectations, evidence]
"""


@pytest.fixture
def of_a_table(tmp_path):
    """A study in mode file, and a table in which each neurotic answer is one point higher at 1."""
    mini = load_questionnaire("ipip20")
    keys = mini.keys(mini.scale("neuroticism"))
    rows = [
        {"model": model, "temperature": f"{degree}.0"}
        | {item.id: 3 + degree * keys.get(item.id, 0) for item in mini.items}
        for model in ("a", "b", "somebody else")
        for degree in (0, 1)
    ]
    table = tmp_path / "table.csv"
    pd.DataFrame(rows).to_csv(table, index=False)
    path = tmp_path / "degrees.yaml"
    path.write_text(OF_A_TABLE)
    return path, table


def test_a_study_reads_a_table_whose_columns_are_its_conditions(of_a_table):
    path, table = of_a_table
    summary = run_study(path, progress=False, answers=table)
    assert (summary["asked"], summary["plan"], list(summary["failed"])) == (0, True, ["c"])

    tables = study_tables(path)
    (row,) = tables["expectations"].to_dict("records")
    assert row["difference"] == pytest.approx(1)
    assert row["verdict"] == "✓ as expected"
    assert set(tables["scores"]["respondent"]) == {"a", "b"}
    assert tables["asked"].loc["table of answers", "how"] == "table.csv"
    assert set(tables["evidence"]["mark"]) <= {"✗", "!", "✓", "–"}
    report = book.study_report.report_study(load_study(path), tables)
    assert [test.name for test in report.tests] == list(QUESTIONS)
    assert report.tests[0].results != ["Not known."]
    filled = book.study_report.study_checklist(load_study(path), tables)
    assert filled.loc[["A.1", "N.1", "N.4"], "status"].eq("known").all()
    assert filled.loc[["B.1", "B.3", "C.1", "F.1"], "status"].eq("missing").all()  # others asked


def test_a_table_that_was_changed_after_the_first_run_is_listed(of_a_table):
    path, table = of_a_table
    run_study(path, progress=False, answers=table)
    table.write_text(table.read_text().replace("somebody else", "c"))
    summary = run_study(path, progress=False, answers=table)
    assert summary["changed"] == ["table of answers"]
    assert summary["failed"] == {}


def test_mode_file_and_a_table_need_each_other(of_a_table, study):
    path, table = of_a_table
    for wrong in ({"path": path}, {"path": study, "answers": table}):
        with pytest.raises(ParameterError, match="together"):
            run_study(progress=False, **wrong)


def test_check_says_from_a_pilot_how_many_runs_an_interval_needs(of_a_table, tmp_path):
    # Scores 2 and 4 in turn: s = 2/sqrt(3) of 4 runs; 2 t s/sqrt(n) <= 2 first holds for n = 8.
    path, _ = of_a_table
    mini = load_questionnaire("ipip20")
    rows = [
        {"model": model, "run": run}
        | {
            item.id: 3 + mini.keys(scale)[item.id] * (-1) ** run
            for scale in mini.scales
            for item in map(mini.item, scale.items)
        }
        for model in ("a", "b")
        for run in (1, 2, 3, 4)
    ]
    pilot = tmp_path / "pilot.csv"
    pd.DataFrame(rows).to_csv(pilot, index=False)
    words = ["study", "check", str(path), "--width", "2", "--answers", str(pilot)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "ipip20, neuroticism: 8 runs of each model for an interval of 2" in result.output

    alone = CliRunner().invoke(app, words[:5])
    assert isinstance(alone.exception, ParameterError)


def test_a_study_without_a_plan_runs_and_is_called_exploratory(study):
    content = yaml.safe_load(STUDY)
    del content["planned"]
    study.write_text(yaml.safe_dump(content | {"analyses": ["expectations", "effects"]}))
    checked = CliRunner().invoke(app, ["study", "check", str(study)])
    assert "exploratory" in checked.output
    assert run_study(study, progress=False)["exploratory"]
    record = json.loads((study.with_suffix("") / "record.json").read_text())
    assert record["runs"][0]["exploratory"]

    tables = study_tables(study)
    assert isinstance(tables["expectations"], str)
    assert "planned on" not in tables["plan"].index
    assert "alpha" not in tables["plan"].index
    effects = tables["effects"]
    apart = (effects["low"] > 0) | (effects["high"] < 0)
    expected = apart.map({True: "excludes", False: "includes"})
    for verdict, word in zip(effects["verdict"], expected, strict=True):
        assert verdict == f"exploratory: the interval {word} zero"

    result = CliRunner().invoke(app, ["study", "report", str(study)])
    assert result.exit_code == 0, result.output
    assert "exploratory: it has no plan" in _report(study)
    assert "exploratory" in (study.with_suffix("") / "checklist.md").read_text()

    study.write_text(STUDY)  # a plan that is written after the first run
    assert "planned" in run_study(study, progress=False)["changed"]


def test_a_plan_needs_its_date(study):
    study.write_text(STUDY.replace("  date: 2026-11-22\n", ""))
    with pytest.raises(ParameterError, match="date"):
        load_study(study)
