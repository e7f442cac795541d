"""Questionnaires, scores and null respondents in inspect, and logs that are read back."""

from __future__ import annotations

import pytest

import psychometrics as pm

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402

from psychometrics.exceptions import ParameterError  # noqa: E402
from psychometrics_inspect import questionnaire  # noqa: E402

SCORES = {"extraversion": 3, "agreeableness": 3, "conscientiousness": 3, "neuroticism": 3}
SCORES |= {"intellect": 2}


def _evaluate(task, model, folder):
    (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=str(folder))
    assert log.status == "success", log.error
    return log, {name: one.value for name, one in log.results.scores[0].metrics.items()}


@pytest.mark.parametrize("reversed_options", [False, True])
@pytest.mark.parametrize("labels", ["numeric", "alphabetical"])
def test_a_null_scores_in_inspect_as_it_does_elsewhere(tmp_path, reversed_options, labels):
    task = questionnaire("ipip20", reversed_options=reversed_options, labels=labels)
    log, values = _evaluate(task, "null/agrees", tmp_path)
    assert {scale: values[scale] for scale in SCORES} == SCORES
    assert (values["answered"], values["refused"]) == (1, 0)
    first = values["extraversion low"], values["extraversion high"]
    table = pm.score_table(pm.styles.empty_answers("ipip20", "agree", runs=1), [
        pm.load_questionnaire("ipip20")])  # fmt: skip
    row = table.set_index("scale").loc["extraversion"]
    assert first == pytest.approx((row["low"], row["high"]))

    answers = pm.read_answers(log.location, "ipip20")
    scores = pm.scale_scores(answers).set_index("scale")["score"]
    assert scores.to_dict() == SCORES


def test_runs_differ_and_their_alpha_comes_with_its_nulls(tmp_path):
    log, values = _evaluate(questionnaire("gad7", runs=10), "null/random", tmp_path)
    assert values["gad7 alpha"] < max(values["gad7 random alpha"], values["gad7 habit's alpha"])
    # a hundred answers at random are far from people's, a single respondent is not
    assert values["gad7 p, runs as people"] < 0.001 < values["gad7 p, one respondent"]
    answers = pm.read_answers(log.location, "gad7")
    assert answers.groupby("run").size().tolist() == [7] * 10
    assert values["gad7"] == pytest.approx(pm.scale_scores(answers)["score"].mean())


def test_refusals_and_unreadable_replies_have_no_value_and_are_counted(tmp_path):
    replies = ["As an AI, I have no moods.", "2", "9", "1", "I refuse.", "0", "3"]
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    outputs = [ModelOutput.from_content("mockllm", reply) for reply in replies]
    for output in outputs:
        output.usage = usage

    model = get_model("mockllm/model", custom_outputs=outputs)
    log, values = _evaluate(questionnaire("gad7", shuffle=False), model, tmp_path)
    scores = [sample.scores["option_scorer"] for sample in log.samples]
    reasons = sorted(str(score.reason) for score in scores)
    assert reasons == ["None"] * 4 + ["invalid_response_format", "refusal", "refusal"]
    assert [score.value for score in scores].count("N") == 3
    assert values["refused"] == pytest.approx(2 / 7)
    assert values["answered"] == pytest.approx(4 / 7)
    statuses = pm.read_answers(log.location, "gad7")["status"].value_counts()
    assert statuses["ok"] == 4


def test_items_are_shuffled_by_the_seed_and_roles_are_sent():
    orders = [
        [sample.id for sample in questionnaire("gad7", seed=seed).dataset] for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]
    sample = questionnaire("gad7", role="liar").dataset[0]
    assert "liar" in sample.input[0].content


def test_an_unknown_null_is_refused():
    with pytest.raises(ParameterError, match="first-option"):
        get_model("null/gpt-4")
