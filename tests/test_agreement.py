"""Reliability of self-report against textbook data, other packages and simulated respondents."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.proportion import proportion_confint

from psychometrics.agreement import (
    answer_agreement,
    desirability_contrast,
    generalisability,
    generalisability_table,
    read_choices,
    response_styles,
    retest,
    role_effects,
    role_sizes,
    score_choices,
    variance_components,
)
from psychometrics.exceptions import ParameterError, QuestionnaireError
from psychometrics.norms import norm_table, published_against, published_tables, sum_scores
from psychometrics.questionnaires import load_questionnaire

MINI = load_questionnaire("ipip20")
# Shrout and Fleiss (1979), table 2: six targets, four judges
RATINGS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
)


def crossed(cube, names):
    index = pd.MultiIndex.from_product([range(n) for n in cube.shape], names=names)
    return pd.Series(np.asarray(cube, dtype=float).ravel(), index=index, name="score").reset_index()


def test_components_of_shrout_and_fleiss_by_hand():
    # BMS = 11.24, JMS = 32.49, EMS = 1.02
    table = variance_components(
        crossed(RATINGS, ["respondent_id", "judge"]), ["respondent_id", "judge"]
    )
    assert table["ms"].round(2).tolist() == [11.24, 32.49, 1.02]
    assert table["variance"].tolist() == pytest.approx(
        [(11.2417 - 1.0194) / 4, (32.4861 - 1.0194) / 6, 1.0194], abs=1e-3
    )
    assert table["df"].tolist() == [5, 3, 15]


def test_coefficients_are_the_published_intraclass_correlations():
    frame = crossed(RATINGS, ["respondent_id", "judge"])
    facets = ["respondent_id", "judge"]
    one = generalisability(frame, facets, levels={"judge": 1}, n_resamples=0)
    four = generalisability(frame, facets, n_resamples=0)
    # Shrout and Fleiss (1979), table 4: ICC(3,1) .71, ICC(2,1) .29, ICC(3,4) .91, ICC(2,4) .62
    found = [one["relative"], one["absolute"], four["relative"], four["absolute"]]
    assert np.round(found, 2).tolist() == [0.71, 0.29, 0.91, 0.62]


def test_the_relative_coefficient_of_one_facet_is_alpha():
    rng = np.random.default_rng(1)
    cube = rng.normal(size=(30, 1)) + rng.normal(size=(30, 6))
    found = generalisability(crossed(cube, ["respondent_id", "item"]), ["item", "respondent_id"])
    assert found["relative"] == pytest.approx(pingouin.cronbach_alpha(pd.DataFrame(cube))[0])
    assert found["relative_low"] < found["relative"] < found["relative_high"]
    assert found["objects"] == 30


def test_mean_squares_of_three_facets_are_those_of_statsmodels():
    cube = np.random.default_rng(2).normal(size=(4, 3, 2))
    frame = crossed(cube, ["p", "o", "w"])
    table = variance_components(frame, ["p", "o", "w"]).set_index("source")
    fit = ols("score ~ C(p) + C(o) + C(w) + C(p):C(o) + C(p):C(w) + C(o):C(w)", frame).fit()
    theirs = anova_lm(fit)["mean_sq"]
    names = {"p": "C(p)", "o": "C(o)", "w": "C(w)", "p×o": "C(p):C(o)", "p×w": "C(p):C(w)",
             "o×w": "C(o):C(w)", "p×o×w": "Residual"}  # fmt: skip
    for ours, name in names.items():
        assert table.loc[ours, "ms"] == pytest.approx(theirs[name])


def test_known_components_are_found_again():
    rng = np.random.default_rng(3)
    p, o, w = rng.normal(0, 2, 60), rng.normal(0, 1, 30), rng.normal(0, 0.5, 20)
    po = rng.normal(0, 1, (60, 30))
    cube = p[:, None, None] + o[None, :, None] + w + po[:, :, None] + rng.normal(0, 1, (60, 30, 20))
    table = variance_components(crossed(cube, ["p", "o", "w"]), ["p", "o", "w"])
    found = table.set_index("source")["variance"]
    assert found["p"] == pytest.approx(np.var(p, ddof=1), rel=0.15)
    assert found["o"] == pytest.approx(np.var(o, ddof=1), rel=0.15)
    assert found["p×o"] == pytest.approx(1, rel=0.15)
    assert found["p×o×w"] == pytest.approx(1, rel=0.05)
    assert abs(found["p×w"]) < 0.02


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.floats(0.1, 4))
def test_coefficients_do_not_change_with_the_unit(seed, shift, scale):
    cube = np.random.default_rng(seed).normal(size=(5, 3, 2)) + np.arange(5)[:, None, None]
    names = ["respondent_id", "order", "wording"]
    first = generalisability(crossed(cube, names), names, n_resamples=0)
    second = generalisability(crossed(shift + scale * cube, names), names, n_resamples=0)
    assert first["relative"] == pytest.approx(second["relative"], abs=1e-6)
    assert first["absolute"] <= first["relative"] + 1e-12
    shares = variance_components(crossed(cube, names), names)["share"]
    assert shares.sum() == pytest.approx(1)


def test_an_unbalanced_design_is_refused():
    frame = crossed(RATINGS, ["respondent_id", "judge"])
    facets = ["respondent_id", "judge"]
    with pytest.raises(ParameterError, match="24 scores are needed"):
        variance_components(frame.iloc[1:], facets)
    with pytest.raises(ParameterError, match="filled twice"):
        variance_components(pd.concat([frame, frame.iloc[:1]]), facets)
    with pytest.raises(ParameterError, match="one level"):
        variance_components(frame[frame["judge"] == 0], facets)
    with pytest.raises(ParameterError, match="no column 'order'"):
        variance_components(frame, ["respondent_id", "order"])
    with pytest.raises(ParameterError, match="must be one of"):
        generalisability(frame, facets, target="judges")


def scores_of(wide, scale="x"):
    frame = crossed(np.asarray(wide), ["respondent_id", "run"])
    return frame.assign(questionnaire="i", scale=scale)


def test_a_table_has_one_row_per_scale():
    both = pd.concat([scores_of(RATINGS), scores_of(RATINGS[::-1] ** 2, "y")])
    table = generalisability_table(both, ["respondent_id", "run"], n_resamples=20)
    assert table["scale"].tolist() == ["x", "y"]
    assert table[["respondent_id", "run", "respondent_id×run"]].sum(axis=1).tolist() == [1, 1]


def test_retest_by_hand():
    wide = np.array([[1, 2], [2, 2], [3, 5], [4, 4], [5, 6]])
    row = retest(scores_of(wide)).iloc[0]
    change = wide[:, 1] - wide[:, 0]
    assert row["r"] == pytest.approx(np.corrcoef(wide.T)[0, 1])
    assert row["change"] == pytest.approx(0.8)
    assert row["sem"] == pytest.approx(np.std(change, ddof=1) / np.sqrt(2))
    assert row["sdc"] == pytest.approx(1.96 * np.std(change, ddof=1))
    with warnings.catch_warnings():  # pingouin calls what pandas is about to retire
        warnings.simplefilter("ignore")
        theirs = pingouin.intraclass_corr(scores_of(wide), "respondent_id", "run", "score")
    theirs = theirs.set_index("Type")["CI95"]
    assert theirs["ICC(A,1)"] == pytest.approx(
        [row["agreement_low"], row["agreement_high"]], abs=0.006
    )
    assert theirs["ICC(C,1)"] == pytest.approx(
        [row["consistency_low"], row["consistency_high"]], abs=0.006
    )
    n, k = 5, 2
    means, grand = wide.mean(1), wide.mean()
    bms = k * ((means - grand) ** 2).sum() / (n - 1)
    jms = n * ((wide.mean(0) - grand) ** 2).sum() / (k - 1)
    ems = ((wide - means[:, None] - wide.mean(0) + grand) ** 2).sum() / ((n - 1) * (k - 1))
    assert row["consistency"] == pytest.approx((bms - ems) / (bms + (k - 1) * ems))
    assert row["agreement"] == pytest.approx((bms - ems) / (bms + ems + k * (jms - ems) / n))


def test_a_retest_that_never_varies_has_no_correlation():
    assert np.isnan(retest(scores_of([[1, 1], [1, 1], [1, 1]]))["r"].item())
    same = retest(scores_of([[1, 1], [2, 2], [3, 3]])).iloc[0]
    assert [same["r"], same["agreement"], same["sem"]] == [1, 1, 0]


def test_a_retest_needs_two_occasions_and_three_respondents():
    with pytest.raises(ParameterError, match="needs two"):
        retest(scores_of([[1], [2], [3]]))
    with pytest.raises(ParameterError, match="needs 3"):
        retest(scores_of([[1, 2], [2, 3]]))


def answers_of(values, mode="human", respondent="a", run=1, **more):
    return pd.DataFrame(
        {
            "respondent_id": respondent, "questionnaire": "ipip20", "mode": mode, "run": run,
            "item_id": [i.id for i in MINI.items], "value": np.asarray(values, dtype=float),
            "status": "ok", **more,
        }
    )  # fmt: skip


def test_agreement_of_two_modes_against_scikit_learn_and_by_hand():
    rng = np.random.default_rng(5)
    first = rng.integers(1, 6, 20)
    second = np.clip(first + rng.integers(-1, 2, 20), 1, 5)
    both = pd.concat([answers_of(first, "chat"), answers_of(second, "option_logits")])
    row = answer_agreement(both).iloc[0]
    assert row["exact"] == (first == second).mean()
    assert row["difference"] == np.abs(first - second).mean()
    assert row["kappa"] == pytest.approx(cohen_kappa_score(first, second, weights="quadratic"))
    assert row["rho"] == pytest.approx(pingouin.corr(first, second, method="spearman")["r"].item())
    assert row["kappa_low"] < row["kappa"] <= row["kappa_high"] <= 1


def test_agreement_leaves_out_what_one_way_did_not_answer():
    both = pd.concat([answers_of(np.arange(20) % 5 + 1, m) for m in ("chat", "nli")])
    both.iloc[0, both.columns.get_loc("status")] = "refused"
    row = answer_agreement(both).iloc[0]
    assert row["items"] == 19
    assert row["exact"] == row["kappa"] == 1
    constant = pd.concat([answers_of(np.full(20, 3.0), m) for m in ("chat", "nli")])
    assert np.isnan(answer_agreement(constant)["kappa"].item())


def test_every_pair_of_modes_is_compared():
    several = pd.concat([answers_of(np.arange(20) % 5 + 1, m) for m in ("chat", "human", "nli")])
    assert len(answer_agreement(several, n_resamples=0)) == 3


def test_yea_saying_is_told_from_a_trait():
    reverse = {i for scale in MINI.scales for i in scale.reverse}
    ids = [item.id for item in MINI.items]
    yes = response_styles(answers_of(np.full(20, 5.0)), MINI).iloc[0]
    assert [yes["agreement"], yes["acquiescence"], yes["extreme"], yes["middle"]] == [1, 1, 1, 0]
    trait = response_styles(answers_of([1.0 if i in reverse else 5.0 for i in ids]), MINI).iloc[0]
    assert trait["acquiescence"] == pytest.approx(0)
    middle = response_styles(answers_of(np.full(20, 3.0)), MINI).iloc[0]
    assert [middle["extreme"], middle["middle"], middle["commonest"]] == [0, 1, 1]


def test_styles_of_a_refused_and_a_two_option_inventory():
    answers = answers_of(np.full(20, 4.0))
    answers.loc[:4, "status"] = "refused"
    row = response_styles(answers, MINI).iloc[0]
    assert row["answered"] == 0.75
    assert row["agreement"] == 0.5
    assert np.isnan(row["acquiescence"])  # each scale lacks its first item
    epq = load_questionnaire("epq-r", texts=False)
    yes = pd.DataFrame(
        {
            "respondent_id": "a", "questionnaire": "epq-r", "mode": "human", "run": 1,
            "item_id": [i.id for i in epq.items], "value": 1.0, "status": "ok",
        }
    )  # fmt: skip
    row = response_styles(yes, epq).iloc[0]
    assert row["acquiescence"] == pytest.approx(1)
    assert np.isnan(row["extreme"])
    # GSE has no reversed items: acquiescence and self-efficacy cannot be told apart
    gse = load_questionnaire("gse", texts=False)
    ten = yes.iloc[:10].assign(questionnaire="gse", item_id=[i.id for i in gse.items], value=4.0)
    assert np.isnan(response_styles(ten, gse)["acquiescence"].item())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=20, max_size=20))
def test_mirrored_answers_mirror_acquiescence(values):
    values = np.array(values, dtype=float)
    first = response_styles(answers_of(values), MINI).iloc[0]
    second = response_styles(answers_of(6 - values), MINI).iloc[0]
    assert first["acquiescence"] == pytest.approx(-second["acquiescence"])
    assert first["extreme"] == second["extreme"]


def test_the_contrast_turns_unflattering_scales_round():
    rows = [("a", "bfi", "agreeableness", 1.0), ("a", "bfi", "neuroticism", -2.0),
            ("a", "epq-r", "lying", 3.0), ("a", "gse", "overall", 0.5),
            ("a", "gse", "overall", 1.5),
            ("a", "icb", "overall", 9.0)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["respondent_id", "questionnaire", "scale", "delta"])
    row = desirability_contrast(frame).iloc[0]
    assert row["contrast"] == pytest.approx((1 + 2 + 1) / 3)
    assert [row["scales"], row["flattering"], row["lying"]] == [3, 1, 3]
    # t(2) = 4.303, sd = sqrt(1/3)
    assert row["high"] - row["contrast"] == pytest.approx(4.3027 / 3, abs=1e-3)
    with pytest.raises(ParameterError, match="give directions"):
        desirability_contrast(frame[frame["questionnaire"] == "icb"])


def test_roles_of_the_paper_move_scales_as_its_tables_say():
    table = published_tables().query("study == 'roles'")
    table = table.rename(columns={"respondent_id": "role"}).assign(respondent_id="gpt-3.5-turbo")
    effects = role_effects(table, norms=norm_table(paper=True))
    both = effects.merge(
        published_against("roles", "default"),
        left_on=["role", "questionnaire", "scale"], right_on=["respondent_id", "questionnaire", "scale"],
    )  # fmt: skip
    assert len(both) == 4 * 69
    pd.testing.assert_series_equal(both["p_x"], both["p_y"], check_names=False)
    row = effects.set_index(["role", "questionnaire", "scale"]).loc[
        ("psychopath", "dtdd", "machiavellianism")
    ]
    assert row["in_norm_sd"] == pytest.approx((8.4 - 5.4) / 1.63)
    sizes = role_sizes(effects).set_index("role")["mean_absolute"]
    assert sizes.idxmax() == "psychopath"
    assert sizes.idxmin() in {"ordinary", "hero", "liar"}


def test_roles_from_raw_answers():
    runs = []
    rng = np.random.default_rng(6)
    for role, run in itertools.product(("default", "hero"), range(1, 6)):
        values = np.clip(rng.integers(2, 5, 20) + (role == "hero"), 1, 5)
        runs.append(answers_of(values, run=run, role=role))
    scores = sum_scores(pd.concat(runs), MINI, by=["role"])
    effects = role_effects(scores).set_index("scale")
    a, b = (scores[(scores["role"] == r) & (scores["scale"] == "agreeableness")]["score"]
            for r in ("hero", "default"))  # fmt: skip
    theirs = pingouin.ttest(a, b, correction=effects.loc["agreeableness", "test"] == "welch")
    assert effects.loc["agreeableness", "p"] == pytest.approx(theirs["p_val"].item())
    with pytest.raises(ParameterError, match="no role 'none'"):
        role_effects(scores, baseline="none")
    with pytest.raises(ParameterError, match="asked once"):
        role_effects(scores[scores["run"] == 1])


QUESTIONS = [
    {"question": "What is the capital of Malta?",
     "mc1_targets": {"Valletta": 1, "Rome": 0, "Oslo": 0},
     "mc2_targets": {"Valletta": 1, "The city of Valletta": 1, "Rome": 0, "Oslo": 0}},
    {"question": "Is ice colder than steam?", "mc1_targets": {"Yes": 1, "No": 0},
     "mc2_targets": {"Yes": 1, "No": 0}},
]  # fmt: skip


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "mc_task.json"
    path.write_text(json.dumps(QUESTIONS), encoding="utf-8")
    return read_choices(path, seed=1)


def option(task, item, label):
    return next(o.value for o in task.choices(item) if o.label == label)


def test_a_task_is_read_with_one_best_and_all_true_options(task):
    first = task.items[0]
    assert {o.label for o in task.choices(first)} == {
        "Valletta",
        "The city of Valletta",
        "Rome",
        "Oslo",
    }
    marks = {o.label: w for o, w in zip(task.choices(first), first.weights, strict=True)}
    assert marks["Valletta"] == (1, 1)
    assert marks["The city of Valletta"] == (0, 1)
    assert marks["Rome"] == (0, 0)


def test_the_best_option_is_not_always_first(tmp_path):
    path = tmp_path / "mc.json"
    path.write_text(json.dumps(QUESTIONS * 20), encoding="utf-8")
    places = [[w[0] for w in item.weights].index(1) for item in read_choices(path).items]
    assert len(set(places)) > 2
    cut = read_choices(path, options=2)
    assert all(len(cut.choices(i)) == 2 and sum(w[1] for w in i.weights) == 1 for i in cut.items)


def test_a_csv_gives_the_same_task(tmp_path):
    path = tmp_path / "TruthfulQA.csv"
    path.write_text(
        "Question,Best Answer,Correct Answers,Incorrect Answers\n"
        "What is the capital of Malta?,Valletta,Valletta; The city of Valletta,Rome; Oslo\n",
        encoding="utf-8",
    )
    item = read_choices(path).items[0]
    assert sorted(w for w in item.weights) == [(0, 0), (0, 0), (0, 1), (1, 1)]


def test_probabilities_are_scored_by_hand(task):
    rows = [("1", "Valletta", 0.3), ("1", "The city of Valletta", 0.3), ("1", "Rome", 0.35),
            ("1", "Oslo", 0.05), ("2", "Yes", 0.8), ("2", "No", 0.2)]  # fmt: skip
    frame = pd.DataFrame(
        {
            "respondent_id": "r", "questionnaire": task.id, "mode": "option_logits", "run": 1,
            "item_id": [r[0] for r in rows], "value": [option(task, r[0], r[1]) for r in rows],
            "probability": [r[2] for r in rows],
        }
    )  # fmt: skip
    row = score_choices(frame, task).iloc[0]
    assert row["best"] == 0.5  # the most probable option of the first question is wrong
    assert row["true"] == pytest.approx((0.6 + 0.8) / 2)
    assert row["chance"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    low, high = proportion_confint(1, 2, method="wilson")
    assert [row["low"], row["high"]] == pytest.approx([low, high])


def test_answers_of_roles_are_scored_and_refusals_are_wrong(task):
    rows = [("default", "1", "Valletta", "ok"), ("default", "2", "Yes", "ok"),
            ("liar", "1", "Rome", "ok"), ("liar", "2", "Yes", "refused")]  # fmt: skip
    frame = pd.DataFrame(
        {
            "respondent_id": "r", "questionnaire": task.id, "mode": "chat", "run": 1,
            "role": [r[0] for r in rows], "item_id": [r[1] for r in rows],
            "value": [option(task, r[1], r[2]) for r in rows], "status": [r[3] for r in rows],
        }
    )  # fmt: skip
    table = score_choices(frame, task, by=["role"]).set_index("role")
    assert table["best"].to_dict() == {"default": 1, "liar": 0}
    assert table["answered"].to_dict() == {"default": 2, "liar": 1}
    with pytest.raises(ParameterError, match="no multiple-choice task"):
        score_choices(frame, MINI)


@pytest.mark.parametrize(
    ("text", "message"),
    [("[]", "no questions"), ('[{"question": "?"}]', "needs `question`"),
     ('[{"question": "?", "mc1_targets": {"a": 1}}]', "one option"), ("{", "needs `question`")],
)  # fmt: skip
def test_a_malformed_task_stops_with_a_sentence(tmp_path, text, message):
    path = tmp_path / "task.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(QuestionnaireError, match=message):
        read_choices(path)
    with pytest.raises(QuestionnaireError, match="no file"):
        read_choices(tmp_path / "none.json")
