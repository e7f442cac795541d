"""Files of the question_llm library and PsychoBench, asked as these ask them and scored alike."""

from __future__ import annotations

import json

import pytest

import psychometrics as pm
from psychometrics.measures.categories import category_scores
from psychometrics.modes.messages import messages
from tests.test_questionnaires import CHOICE, PSYCHOBENCH

STATED = json.loads((pm.paths.data_dir() / "texts" / "library_answers.json").read_text())["stated"]


def written(tmp_path, content, name="own.json"):
    path = tmp_path / name
    path.write_text(json.dumps(content))
    return pm.load_questionnaire(path)


@pytest.mark.parametrize("case", STATED)
def test_a_file_goes_round_as_through_the_library_itself(tmp_path, case):
    sheet, sent = written(tmp_path, case["file"]), []
    shares = dict(zip([item.id for item in sheet.items], case["probabilities"], strict=True))
    keys = dict(zip(shares, case["keys"], strict=True))

    def model(prompt):
        sent.append(prompt[-1]["content"])
        return "a reply"

    def parse(reply, questionnaire, items, labels, orders):
        return [dict(zip(keys[item.id], shares[item.id], strict=True)) for item in items]

    how = {"store": tmp_path / "s", "progress": False, "shuffle": False}
    answers = pm.ask(sheet, [model], mode="custom", parse=parse, **how)
    assert sent == case["prompts"]
    found = category_scores(answers, sheet).set_index("category")
    assert found["score"].to_dict() == pytest.approx(case["evaluate"])
    assert found["share"].to_dict() == pytest.approx(case["normalised"])


def test_probabilities_of_a_scale_give_the_expected_value_and_stray_labels_are_refused(tmp_path):
    sheet = written(tmp_path, PSYCHOBENCH)

    def model(prompt):
        return "a \ud800 reply"

    model.respondent_id = "kept"
    how = {"store": tmp_path / "s", "progress": False, "mode": "custom"}
    answers = pm.ask(sheet, [model], parse=lambda _, s, items, *rest: [{"1": 1, "3": 3}] * 3, **how)
    assert answers["value"].tolist() == [2.5] * 3
    assert answers["raw"].tolist() == ["a \ufffd reply"] * 3, "a lone surrogate cannot be stored"
    for wrong in ({"9": 1.0}, {"1": -1.0}):
        with pytest.raises(pm.exceptions.ParameterError, match="parse must return"):
            pm.ask(sheet, [model], parse=lambda *_, given=wrong: [given] * 3, **how)


@pytest.mark.parametrize("choose", ["none", "expected", "argmax"])
def test_categories_are_scored_however_a_local_model_is_asked(tmp_path, tiny_talker, choose):
    sheet, asked = written(tmp_path, CHOICE | {"choice_delim": ") "}), {}
    for orders in ("given", "reversed", "cyclic"):
        asked[orders] = pm.ask(
            sheet, [tiny_talker], mode="options", permutations=orders, choose=choose,
            store=tmp_path / "s", progress=False, dtype="float32",
        )  # fmt: skip
    scores = {name: category_scores(answers, sheet) for name, answers in asked.items()}
    assert all(table["score"].notna().all() for table in scores.values())
    if choose == "expected":  # one row per option, of all orders pooled
        parts = pm.ask(sheet, [tiny_talker], mode="options", choose="none", dtype="float32",
                       store=tmp_path / "s", progress=False)  # fmt: skip
        pooled = pm.modes.options.pooled(parts)
        assert asked["cyclic"]["probability"].tolist() == pytest.approx(pooled["probability"])
        soft = category_scores(parts, sheet)["score"]
        assert scores["cyclic"]["score"].tolist() == pytest.approx(soft)


def test_own_labels_of_true_and_false_and_a_seed_where_it_means_nothing(tmp_path):
    own = {"question": "Tea is blue.", "choices": ["Yes", "No"], "answer": "No"}
    assert written(tmp_path, {"data": {"a": own}}).items[0].weights == ((0, 1), (1, 0))
    with pytest.raises(pm.exceptions.QuestionnaireError, match="seed"):
        written(tmp_path, {"data": {"a": own}, "seed": 1})


def test_psychobenchs_system_text_and_prompt_are_sent(tmp_path):
    sheet = written(tmp_path, PSYCHOBENCH)
    exact = messages(sheet, sheet.items[:2], wording="file")
    assert [m["content"] for m in exact] == [
        PSYCHOBENCH["inner_setting"],
        PSYCHOBENCH["prompt"] + "\n1. I like tea.\n2. I dislike tea.",
    ]
    assert messages(sheet, sheet.items[:1])[0]["content"].startswith("You reply with numbers. ")
    hero = messages(sheet, sheet.items[:1], role="hero")[0]["content"]
    assert "numbers" not in hero
    for how in ({"cipher": 3}, {"reply": "json"}, {"orders": [(4, 3, 2, 1, 0)]}):
        with pytest.raises(pm.exceptions.ParameterError):
            messages(sheet, sheet.items[:1], wording="file", **how)


def test_batches_of_a_run_go_on_in_one_conversation(tmp_path):
    mini, sent = pm.load_questionnaire("ipip20"), []

    def model(prompt):
        sent.append(prompt)
        return "\n".join(f"{n}: 3" for n in range(1, 11))

    answers = pm.ask(
        mini, [model], mode="custom", history=True, batch_size=10, runs=2, store=tmp_path,
        progress=False,
    )  # fmt: skip
    assert [len(prompt) for prompt in sent] == [2, 4] * 2  # system, what was said, new
    assert sent[1][:3] == [*sent[0], {"role": "assistant", "content": model([])}]
    assert (answers["value"] == 3).all()
