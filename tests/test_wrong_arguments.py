"""Words, one name for a list, and other wrong arguments end in an error that names them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
import psychometrics_book as book
from psychometrics.exceptions import (
    DataError,
    ParameterError,
    PsychometricsError,
    QuestionnaireError,
    RespondentError,
)
from psychometrics.measures.factor import one_factor
from psychometrics_book.studies import crossed_samples

PARAMETERS = pd.DataFrame({"discrimination": [1.0], "difficulty": [0.0], "guessing": [0.0]})
SOLVED = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 0, 0, 0], "c": [0, 1, 0, 1]})
SAID = pd.DataFrame(
    {
        "respondent_id": list("aabb"),
        "rank": 1,
        "template": ["She is [M].", "He is [M]."] * 2,
        "completion": ["kind", "tall"] * 2,
        "identity": list("xyxy"),
        "gender": list("fmfm"),
    }
)
LOADED = [pm.load_questionnaire(name) for name in ("challenges", "gad7")]
SIGN = {("challenges", "gad7"): 1}
CUBE = np.ones((2, 5, sum(len(one.items) for one in LOADED)))


@pytest.fixture(scope="module")
def answers():
    return pm.ask("ipip20", 12, mode="simulated", progress=False)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pm.beliefs.contrast("words"),
        lambda: pm.beliefs.contrast(["a", "b", "c"]),
        lambda: pm.beliefs.contrast([1.0], null=["x"]),
        lambda: pm.irt.probability("words", PARAMETERS),
        lambda: pm.irt.probability(["a", "b"], PARAMETERS),
        lambda: pm.irt.probability(0.5, PARAMETERS),
        lambda: pm.irt.information(["x"], PARAMETERS),
        lambda: pm.irt.probability([0.0], PARAMETERS.assign(difficulty="hard")),
        lambda: pm.intervals.mean_interval(["a"]),
        lambda: crossed_samples.crossed_interval([["a", "b"], ["c", "d"]]),
        lambda: pm.intervals.fisher_interval("x", 10),
        lambda: pm.intervals.jackknife_half_width(["a", "b"]),
        lambda: pm.intervals.merge_near_ties(["a", "b"]),
        lambda: pm.intervals.row_correlations([["a", "b"]], [["a", "b"]]),
        lambda: pm.intervals.correlation_interval(["a", "b", "c"], [1, 2, 3]),
        lambda: pm.reliability.alphas("words"),
        lambda: one_factor([["a", "b"], ["c", "d"]]),
        lambda: pm.bias.bias_statistics("x", [1]),
        lambda: pm.bias.bias_statistics(np.eye(2), ["a", "b"]),
        lambda: pm.evidence.rank_correlations(np.ones(3)),
        lambda: pm.validity.silhouettes("x", "y"),
        lambda: pm.two_way("x"),
    ],
)
def test_words_where_numbers_belong_are_told_by_the_argument(call):
    with pytest.raises(ParameterError) as error:
        call()
    assert "could not convert" not in str(error.value)
    assert "ufunc" not in str(error.value)


@pytest.mark.parametrize("values", [[], [1.0], [np.nan, 1.0, 2.0], [1.0, 2.0], np.ones((3, 3))])
def test_a_contrast_needs_a_value_and_draws_of_its_null(values):
    with pytest.raises(ParameterError):
        pm.beliefs.contrast(values)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("by", lambda a: pm.intervals.mean_table(a, "value", "respondent_id")),
        ("by", lambda a: pm.intervals.mean_table(a, "value", a)),
        ("by", lambda a: pm.intervals.runs_needed(a, "value", 1.0, by="respondent_id")),
        ("by", lambda a: pm.item_scores(a, by="run")),
        ("by", lambda a: pm.item_scores(a, by=3)),
        ("by", lambda a: pm.styles.response_styles(a, "ipip20", by="run")),
        ("lexicon", lambda a: pm.beliefs.shares_by_rank(SAID, "kind")),
        ("words", lambda a: pm.beliefs.hurtful([["a rat"]], "rat")),
        ("facets", lambda a: pm.reliability.generalisability(a, "run")),
        ("least_answered", lambda a: pm.scale_scores(a, least_answered=None)),
        ("questionnaires", lambda a: pm.score_table(a, "ipip20")),
        ("questionnaires", lambda a: pm.score_table(a, pm.load_questionnaire("ipip20"))),
        ("questionnaires", lambda a: pm.score_table(a, None)),
        ("questionnaires", lambda a: pm.write_answers(a, "x.sav", "ipip20")),
        ("facets", lambda a: pm.reliability.design_study(a, "run", {})),
        ("order", lambda a: pm.groups.congruence(SOLVED, SOLVED, order="abc")),
        ("keys", lambda a: pm.bias.bias_statistics(np.eye(2), 3)),
        ("criteria", lambda a: book.content.rater_agreement(a, "natural")),
        ("by", lambda a: book.improving.held_out(a, by="questionnaire")),
        ("names", lambda a: pm.profiles.judge_respondents(a, "ipip20", "minilm")),
    ],
)
def test_one_name_is_not_taken_for_a_list_of_its_letters(name, call, answers):
    with pytest.raises(ParameterError) as error:
        call(answers)
    assert str(error.value).startswith(f"{name} ")


@pytest.mark.parametrize(
    "call",
    [
        lambda: pm.irt.compare(SOLVED, ("rasch", "conditional")),
        lambda: pm.irt.compare(SOLVED, 3),
        lambda: pm.irt.abilities(SOLVED, "parameters"),
        lambda: pm.irt.probability([0.0], PARAMETERS.assign(guessing=2.0)),
        lambda: pm.beliefs.hurtful([["a rat"]], [1, 2]),
        lambda: pm.beliefs.group_differences(SAID, ["kind"], "gender", None),
        lambda: pm.nulls.shuffled(pm.prompts("challenges"), seed="x"),
        lambda: pm.null_answers([]),
        lambda: pm.null_answers("gad7", base=3),
        lambda: pm.null_distribution(lambda _: None, "challenges", "noise", 2, draws=2),
        lambda: pm.ask_ways("gad7", 3, {"a": 3}, mode="simulated"),
    ],
)
def test_other_wrong_arguments_are_told(call):
    with pytest.raises(PsychometricsError):
        call()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("n", lambda: pm.intervals.fisher_interval(0.5, "ten")),
        ("xs", lambda: pm.intervals.row_correlations(np.ones((2, 3)), np.ones((2, 4)))),
        ("xs", lambda: pm.intervals.row_correlations(np.ones((1, 3)), np.eye(3))),
        ("labels", lambda: pm.validity.silhouettes(np.ones((2, 4, 3)), [1])),
        ("labels", lambda: pm.validity.silhouettes(np.ones((2, 4, 3)), [1, 1, -1, -1, 1])),
        ("temperature", lambda: pm.two_way(np.full((2, 2), 0.5), 1e-320)),
        ("wording", lambda: pm.null_answers("challenges", wording=3)),
        ("wording", lambda: pm.nulls.kernel("challenges", "smollm2", 1, "{premise} {x}")),
        ("source", lambda: pm.evidence.evidence_of_draws("a", CUBE, CUBE, LOADED, SIGN)),
        ("width", lambda: pm.evidence.evidence_of_draws(CUBE, CUBE, CUBE[:1], LOADED, SIGN)),
        ("expected", lambda: pm.evidence.evidence_of_draws(CUBE, CUBE, CUBE, LOADED, {})),
        ("expected", lambda: pm.evidence.evidence_of_draws(CUBE, CUBE, CUBE, LOADED, "gad7")),
        ("cipher", lambda: pm.messages.messages(LOADED[1], LOADED[1].items, cipher="x")),
        ("orders", lambda: pm.messages.messages(LOADED[1], LOADED[1].items, orders=[(0, 0)])),
        ("gad7", lambda: pm.questionnaires.perturbed("gad7", "order")),
        ("exercise", lambda: book.exercises.is_right(3, 3)),
        ("names", lambda: pm.readable_names(3)),
        ("names", lambda: pm.readable_names("minilm")),
    ],
)
def test_a_value_that_does_not_fit_is_told_by_the_argument(name, call):
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        pm.questionnaires.counts,
        lambda q: pm.modes.simulated.draw_traits(q, 3),
        lambda q: pm.modes.simulated.answers(q, pm.modes.simulated.draw_traits(LOADED[1], 3)),
        book.studies.candidates.wordings,
        lambda q: pm.rules.flags(pm.styles.empty_answers("gad7", runs=3), q),
        lambda q: pm.evidence.profiles(pm.null_answers("gad7", "noise", 2), q),
    ],
)
def test_a_questionnaires_name_stands_for_the_questionnaire(call):
    named, loaded = call("gad7"), call(LOADED[1])
    pd.testing.assert_frame_equal(named, loaded)
    for wrong in (3, None, SOLVED):
        with pytest.raises(PsychometricsError):
            call(wrong)


IPIP = pm.load_questionnaire("ipip20")


def _of_two_axes(answers: pd.DataFrame) -> pd.DataFrame:
    """Turn answers to the last items of the IPIP-20 into answers to the items of two axes."""
    items = pm.load_questionnaire("two_axes").items
    ids = [item.id for item in IPIP.items[-len(items) :]]
    names = dict(zip(ids, [item.id for item in items], strict=True))
    table = answers[answers["item_id"].isin(ids) | answers["item_id"].isna()]
    item_ids = table["item_id"].map(names)
    return table.assign(questionnaire="two_axes", item_id=item_ids, value=1.0)


OF_ANSWERS = {
    "item_scores": pm.item_scores,
    "scale_scores": pm.scale_scores,
    "score_table": lambda table: pm.score_table(table, [pm.load_questionnaire("ipip20")]),
    "response_styles": lambda table: pm.styles.response_styles(table, "ipip20"),
    "assess_answers": lambda table: pm.answer_profiles.assess_answers(table, "ipip20"),
    "category_scores": lambda table: pm.categories.category_scores(_of_two_axes(table), "two_axes"),
}  # fmt: skip
OF_SCORES = {
    "scale_intervals": lambda table: pm.intervals.scale_intervals(table, IPIP),
    "keyed_items": lambda table: pm.scoring.keyed_items(table, IPIP),
    "bias_shares": lambda table: pm.bias.bias_shares(table, "ipip20", draws=2),
    "runs_and_units": lambda table: pm.bias.runs_and_units(table, "ipip20"),
    "reliability_table": lambda table: pm.reliability.reliability_table(table, [IPIP]),
}


@pytest.mark.parametrize("column", ["respondent_id", "run", "item_id"])
@pytest.mark.parametrize("name", [*OF_ANSWERS, *OF_SCORES])
def test_every_measure_refuses_a_row_without_a_name(name, column, answers):
    table = answers if name in OF_ANSWERS else pm.item_scores(answers)
    call = (OF_ANSWERS | OF_SCORES)[name]
    named = table[column] != table[column].iloc[-1]
    table = table.assign(**{column: table[column].astype(object).where(named)})
    with pytest.raises(ParameterError, match=column):
        call(table)


def test_a_sheet_without_the_name_of_an_item_is_refused():
    sheets = pd.DataFrame({"rater": list("aabb"), "item_id": [1, None] * 2, "natural": [0, 1] * 2})
    with pytest.raises(ParameterError, match="item_id"):
        book.content.rater_agreement(sheets, ["natural"])
    whole = sheets.assign(item_id=[1, 2] * 2, natural=[0, 1, 0, None])
    assert book.content.rater_agreement(whole, ["natural"])["items"].tolist() == [2]


@pytest.mark.parametrize("path", [3, None, "a\0.csv"])
def test_what_is_no_name_of_a_file_is_refused_before_writing(path, answers):
    with pytest.raises(ParameterError):
        pm.write_answers(answers, path)


@pytest.mark.parametrize("column", [[1, "x"], [1, [2]], [object(), 1]])
def test_a_column_that_parquet_cannot_hold_is_named(column, tmp_path):
    file = tmp_path / "x.parquet"
    with pytest.raises(ParameterError, match=r"x\.parquet.*odd"):
        pm.write_answers(pd.DataFrame({"odd": column}), file)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("texts", lambda how: pm.load_questionnaire("gad7", **how)),
        ("texts", lambda how: pm.questionnaires.perturbed(LOADED[0], "order", **how)),
        ("measured", lambda how: pm.authoring.wording.wording("challenges", **how)),
        ("to_prompts", lambda how: pm.rules.rules(**how)),
        ("shuffled", lambda how: pm.training.train_nli("minilm", SAID, "x", **how)),
        ("whole_words", lambda how: pm.modes.completions.mine("embedded", ["a [M]"], **how)),
        ("think", lambda how: pm.messages.messages(LOADED[0], LOADED[0].items, **how)),
    ],
)
def test_a_text_is_neither_true_nor_false(name, call):
    with pytest.raises(ParameterError, match=f"^{name} "):
        call({name: "no"})


@pytest.mark.parametrize(
    "call",
    [
        lambda: pm.null_answers("gad7", respondents=5_000_000),
        lambda: pm.ask("gad7", 10_000_000, mode="simulated", progress=False),
        lambda: pm.styles.empty_answers("ipip20", runs=10_000_000),
    ],
)
def test_more_answers_than_fit_are_refused_at_once(call):
    with pytest.raises(ParameterError, match="answers must be at most"):
        call()


def test_answers_that_are_there_twice_are_not_written_wide(answers, tmp_path):
    with pytest.raises(ParameterError, match="twice"):
        pm.write_answers(pd.concat([answers, answers]), tmp_path / "x.wide.csv")
    with pytest.raises(ParameterError):
        pm.write_answers(answers.drop(columns="respondent_id"), tmp_path / "x.irw.csv")


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ('{"model": "a", "gad7_1": ' + "9" * 5000 + "}", DataError),
        ('{"custom_id": "x", "response": 3}', ParameterError),
    ],
)
def test_odd_rows_in_json_are_told_with_their_file(row, kind, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(row)
    with pytest.raises(kind, match=r"answers\.jsonl"):
        pm.read_answers(file, "gad7", progress=False)


def test_lists_in_the_cells_of_a_table_are_read_as_text(tmp_path):
    file = tmp_path / "answers.parquet"
    pd.DataFrame({"model": ["a"], "gad7_1": [[1, 2]], "gad7_2": [[3]]}).to_parquet(file)
    with pytest.raises(ParameterError, match="gad7"):
        pm.read_answers(file, "gad7", progress=False)


def test_headers_on_two_levels_are_no_items():
    table = pd.DataFrame({("x", "model"): ["a"], ("x", "gad7_1"): [1]})
    with pytest.raises(ParameterError, match="item"):
        pm.read_answers(table, "gad7", progress=False)


def test_missing_items_are_told_as_missing_not_as_a_fault_of_the_scale(tmp_path):
    from psychometrics.paths import questionnaires_dir

    text = (questionnaires_dir() / "gad7.yaml").read_text(encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(text.replace("id: gad7\n", "id: mine\n").replace("\nitems:\n", "\nitms:\n"))
    with pytest.raises(QuestionnaireError) as error:
        pm.load_questionnaire(file)
    assert "scale 1" not in str(error.value)


def test_a_notebook_is_not_begun_with_an_impossible_value(monkeypatch, tmp_path):
    monkeypatch.setattr("psychometrics_book.runs._execute_notebook", pytest.fail)
    with pytest.raises(ParameterError, match="item"):
        book.runs.run_notebook("01-first-score", {"item": np.nan}, tmp_path / "x.ipynb")


def test_an_exercise_takes_a_number_as_well_as_its_text():
    assert book.exercises.is_right("ex-self-report-1", 4.5)


def test_a_folder_of_a_classifier_is_told_before_it_is_loaded(tiny_model, monkeypatch):
    monkeypatch.setattr("psychometrics.modes.language_models.load_model", pytest.fail)
    for mode in ("mlm", "nsp"):
        with pytest.raises(RespondentError, match="classifier") as error:
            pm.modes.identify(tiny_model, mode)
        assert error.value.kind == "architecture"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "01-first-score", "-p", "item=nan"),
        ("run", "01-first-score", "-p", "seed=-1"),
        ("profile", "minilm-mnli-l3-s16", "--questionnaires", ""),
        ("survey", "gad7", "w.csv", "-c", "seconds=x"),
        ("behaviour", "m", "-o", "x.doc", "-c", "base_url=http://127.0.0.1:9/v1"),
        ("behaviour", "m", "-o", "no/x.csv", "-c", "base_url=http://127.0.0.1:9/v1"),
    ],
)
def test_a_mistake_on_the_command_line_has_words_of_the_project(arguments, ended, tmp_path):
    (tmp_path / "w.csv").write_text("model,gad7_1\na,1\n")
    code, _, errors = ended(*arguments)
    assert code == 1
    assert errors.splitlines()[-1].startswith("psychometrics: ")
    assert "Input should" not in errors
    assert "List should" not in errors
    assert "Connect" not in errors


def test_a_full_disk_is_told_without_a_traceback(ended, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pandas.DataFrame.to_csv", full)
    code, _, errors = ended("questionnaires")
    assert (code, errors.count("\n")) == (1, 1)
    assert errors.startswith("psychometrics: ")


def test_an_intervention_tells_of_a_classifier_before_the_first_measurement(
    tiny_model, monkeypatch, tmp_path
):
    def begin(work, *_):
        assert not work
        return []

    monkeypatch.setattr("psychometrics_book.studies.interventions._all", begin)
    loaded = [pm.load_questionnaire("challenges")]
    how = {"measure_at": [0, 1], "store": tmp_path, "masked_lm": str(tiny_model), "epochs": 1}
    with pytest.raises(RespondentError, match="classifier"):
        book.interventions.trajectories(["minilm-mnli-l3-s16"], loaded, ["neutral"], **how)


def test_models_may_be_named_by_any_sequence():
    answers = pd.DataFrame({"a": [1, 1, 1, 0], "b": [1, 0, 0, 0], "c": [0, 1, 0, 1]})
    table = pm.irt.compare(answers, pd.Index(["rasch", "1pl"]))
    assert table["parameters"].tolist() == [3, 4]
