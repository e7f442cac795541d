"""The PsychoBench study: published tables, tests and claims, conclusions, roles."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats

from psychometrics.exceptions import ParameterError
from psychometrics.measures.norms import compare_means, norm_table
from psychometrics.measures.scoring import scale_scores
from psychometrics.questionnaires import load_questionnaire
from psychometrics.studies.psychobench import (
    bsri_conclusions,
    bsri_own_median,
    cabin_dimensions,
    published_claims,
    published_conclusions,
    published_tables,
    published_tests,
    role_effects,
    role_sizes,
    significance_counts,
)

MINI = load_questionnaire("ipip20")


def answers_of(questionnaire, values, respondent="a", run=1, **more):
    ids = [item.id for item in questionnaire.items]
    return pd.DataFrame(
        {
            "respondent_id": respondent, "questionnaire": questionnaire.id, "mode": "human",
            "run": run, "item_id": ids, "value": np.asarray(values, dtype=float),
            "status": "ok", **more,
        }
    )  # fmt: skip


def test_bsri_conclusions_follow_the_two_cuts():
    bsri = load_questionnaire("bsri", texts=False)
    runs = []
    for run, (m, f) in enumerate([(1, 1), (7, 1), (1, 7), (7, 7)], start=1):
        values = np.r_[np.full(20, m), np.full(20, f), np.full(20, 4)]
        runs.append(answers_of(bsri, values, run=run))
    table = bsri_conclusions(scale_scores(pd.concat(runs), bsri))
    assert table["conclusion"].tolist() == [
        "undifferentiated", "masculine", "feminine", "androgynous"
    ]  # fmt: skip


def test_a_missing_bsri_score_has_no_conclusion():
    bsri = load_questionnaire("bsri", texts=False)
    answers = answers_of(bsri, np.full(60, 7.0)).iloc[1:]
    assert bsri_conclusions(scale_scores(answers, bsri))["conclusion"].isna().all()


def test_own_medians_call_a_very_masculine_and_unfeminine_respondent_feminine():
    # as the psychopath of Table 11: masculine 6.3, feminine 1.7, and yet 'feminine' 8 times
    bsri = load_questionnaire("bsri", texts=False)
    values = np.r_[np.full(15, 7), np.full(5, 4), np.full(14, 1), np.full(6, 3), np.full(20, 4)]
    answers = answers_of(bsri, values)
    scores = scale_scores(answers, bsri).set_index("scale")["score"]
    assert scores.round(2).to_dict() == {"masculine": 6.25, "feminine": 1.6}
    assert bsri_own_median(answers)["conclusion"].item() == "feminine"
    assert bsri_conclusions(scale_scores(answers, bsri))["conclusion"].item() == "masculine"


def test_cabin_dimensions_reproduce_the_papers_within_rounding():
    table = published_tables()
    models = table[(table["study"] == "models") & (table["questionnaire"] == "cabin")]
    ours = cabin_dimensions(models[models["table"] == 7])
    both = ours.merge(models[models["table"] == 2], on=["respondent_id", "scale"])
    assert len(both) == 48
    assert (both["mean_x"] - both["mean_y"]).abs().max() < 0.1  # two roundings of 0.05
    counts = ours.drop_duplicates("scale").groupby("model")["interests"].sum()
    assert counts.to_dict() == {"riasec": 41, "setpoint": 41}


def test_a_lacking_interest_is_named():
    table = published_tables().query("study == 'models' and table == 7 and scale != 'law'")
    with pytest.raises(ParameterError, match="'law'"):
        cabin_dimensions(table)


def test_dimension_scores_are_means_of_their_interests():
    cabin = load_questionnaire("cabin", texts=False)
    answers = answers_of(cabin, np.random.default_rng(4).integers(1, 6, 164))
    scores = scale_scores(answers, cabin).set_index("scale")["score"]
    assert len(scores) == 41 + 8 + 6
    assert scores["setpoint_nature"] == pytest.approx(
        scores[["agriculture", "nature_outdoors", "animal_service"]].mean()
    )


def test_published_tables_are_complete():
    sizes = published_tables().groupby("study").size().to_dict()
    # 28 subscales, 8 dimensions and 41 interests of six models; no dimensions for five roles
    assert sizes == {
        "models": 6 * (28 + 8 + 41), "roles": 5 * (28 + 41),
        "wordings": 30, "assistant": 10, "temperature": 25,
    }  # fmt: skip
    assert not published_tables().duplicated(["study", "table", "questionnaire", "scale",
                                              "respondent_id"]).any()  # fmt: skip


def test_published_means_lie_within_their_scales():
    for row in published_tables().itertuples():
        questionnaire = load_questionnaire(row.questionnaire, texts=False)
        low, high = questionnaire.span(questionnaire.scale(row.scale))
        assert low <= row.mean <= high, row


def test_one_published_comparison_by_hand():
    # gpt-4 on ICB: 1.9 ± 0.4 (10) against 3.66 ± 0.76 (254); F = 3.61, not significant at 0.01
    table = published_tests("models").set_index(["respondent_id", "questionnaire", "scale"])
    row = table.loc[("gpt-4", "icb", "overall")]
    assert stats.f.sf((0.76 / 0.4) ** 2, 253, 9) * 2 == pytest.approx(row["f_p"])
    t, p = stats.ttest_ind_from_stats(
        1.9, 0.4, 10, 3.66, 0.76, 254, equal_var=bool(row["f_p"] > 0.01)
    )
    assert [row["t"], row["p"]] == pytest.approx([t, p])
    assert row["significant"]
    assert row["settled"]


def test_settled_comparisons_survive_every_corner_of_the_rounding():
    table = published_tests("models")
    firm = table[table["settled"]].sample(20, random_state=1)
    for row in firm.itertuples():
        for mean in (row.mean - 0.05, row.mean + 0.05):
            for sd in (max(row.sd - 0.05, 1e-6), row.sd + 0.05):
                again = compare_means(mean, sd, row.n, row.norm_mean, row.norm_sd, row.norm_n)
                assert (again["p"].item() < 0.01) == row.significant
    assert not table["settled"].all()


def test_a_study_is_compared_with_its_own_baseline():
    table = published_tests("assistant", "with").set_index("scale")
    _, p = stats.ttest_ind_from_stats(4.06, 0.27, 10, 4.28, 0.33, 10)
    assert table.loc["conscientiousness", "p"] == pytest.approx(p)
    with pytest.raises(ParameterError, match="it has v1"):
        published_tests("wordings", "v9")
    with pytest.raises(ParameterError, match="against norms must be one of models, roles"):
        published_tests("wordings")


def test_claims_name_real_cells_and_some_do_not_hold():
    table = published_claims()
    assert set(table["expected"]) == {"higher", "lower", "same"}
    assert not table.duplicated(["claim", "respondent_id", "questionnaire", "scale", "group"]).any()
    by = table.set_index(["claim", "respondent_id", "scale"])["found"]
    assert by[("reasoning-openness", "v1+cot", "openness")] == "higher"
    assert by[("assistant-lower", "without", "conscientiousness")] == "same"
    assert by[("wordings", "v2", "agreeableness")] == "lower"
    assert 0 < table["agrees"].mean() < 1


def test_bsri_counts_cover_ten_runs():
    table = published_conclusions()
    assert (
        table[["undifferentiated", "masculine", "feminine", "androgynous"]].sum(axis=1) == 10
    ).all()


def test_counts_of_significance_are_those_of_the_table():
    table = published_tests("roles")
    counts = significance_counts(table)
    assert counts["comparisons"] == 5 * 76
    assert counts["significant"] == (table["p"] < 0.01).sum()
    assert counts["after correction"] <= counts["significant"]
    assert counts["settled"] <= counts["significant"]


def test_roles_of_the_paper_move_scales_as_its_tables_say():
    table = published_tables().query("study == 'roles'")
    table = table.rename(columns={"respondent_id": "role"}).assign(respondent_id="gpt-3.5-turbo")
    effects = role_effects(table, norms=norm_table(paper=True))
    both = effects.merge(
        published_tests("roles", "default"),
        left_on=["role", "questionnaire", "scale"],
        right_on=["respondent_id", "questionnaire", "scale"],
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
        runs.append(answers_of(MINI, values, run=run, role=role))
    scores = scale_scores(pd.concat(runs), MINI, by=["role"])
    effects = role_effects(scores).set_index("scale")
    a, b = (scores[(scores["role"] == r) & (scores["scale"] == "agreeableness")]["score"]
            for r in ("hero", "default"))  # fmt: skip
    theirs = pingouin.ttest(a, b, correction=effects.loc["agreeableness", "test"] == "welch")
    assert effects.loc["agreeableness", "p"] == pytest.approx(theirs["p_val"].item())
    with pytest.raises(ParameterError, match="no role 'default'"):
        role_effects(scores.assign(role="none"))
    with pytest.raises(ParameterError, match="asked once"):
        role_effects(scores[scores["run"] == 1])
