"""Published answers: readers and the traps of the files, what is shipped, what is computed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics import data
from psychometrics.exceptions import ParameterError
from psychometrics.measures.groups import congruence, standardised_dif
from psychometrics.paths import data_dir
from psychometrics.questionnaires.answers import COLUMNS
from recipes import invariance, published
from recipes.published import by_score
from tests.conftest import needs

IPIP = pm.load_questionnaire("ipip50")
FILES = [key for key in data.registry() if key.startswith("llm_questionnaires")]
SMALL = ("llmpersonality", "ai_like_humans", "students_mexico", "students_bmi", "adults_peru")
REGISTERED = [*FILES, *(key for source in SMALL for key in published._keys_of(source))]
needs_mirror = needs(*REGISTERED)


def _raw(condition: str, model: str) -> pd.DataFrame:
    """A file of runs, its columns named by the header that it has."""
    return pd.read_csv(data.fetch(f"llm_questionnaires_{condition}_{model}"))


def _shipped(name: str) -> pd.DataFrame:
    (path,) = (data_dir() / "published").glob(f"{name}.*")
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def _agreement(first: pd.Series, second: pd.Series) -> float:
    return float(np.corrcoef(first, second)[0, 1])


@pytest.fixture(scope="module")
def small() -> dict[str, pd.DataFrame]:
    return {source: published.answers(source) for source in SMALL}


@needs_mirror
def test_every_small_set_is_a_table_of_answers_to_known_items(small):
    people = {"students_mexico": 783, "students_bmi": 223, "adults_peru": 155}
    for source, table in small.items():
        assert list(table.columns) == [*COLUMNS, "condition"], source
        assert not table.duplicated(["respondent_id", "questionnaire", "item_id", "run"]).any()
        if source in people:
            assert table["respondent_id"].nunique() == people[source]
    assert set(small["students_bmi"]["questionnaire"]) == {"phq9", "gad7", "pss10"}
    assert small["llmpersonality"].groupby("respondent_id")["item_id"].nunique().tolist() == (
        [50] * 12
    )
    assert small["ai_like_humans"].groupby("respondent_id")["value"].count().tolist() == [44] * 8


@needs_mirror
def test_a_ten_in_the_anxiety_items_is_a_one(small):
    raw = pd.read_csv(data.fetch("students_mexico"))
    place = int(np.flatnonzero(raw["gad5"] == 10).item())
    table = small["students_mexico"]
    cell = table[(table["respondent_id"] == f"mexico-{place + 1:05d}")]
    assert cell.set_index("item_id").loc["gad7_5", "value"] == 1
    assert set(table["status"]) == {"ok", "missing"}


@needs_mirror
def test_a_label_counts_more_than_the_number_beside_it(small):
    table = small["llmpersonality"].set_index(["respondent_id", "item_id"])["value"]
    assert table["llama-3.1-8b", "ipip50_12"] == 1  # "5. Very Inaccurate", of insulting people


@needs_mirror
def test_scores_of_the_sense_of_coherence_are_those_that_the_file_has(small):
    raw = pd.read_csv(data.fetch("adults_peru"))
    items = pm.item_scores(small["adults_peru"]).drop(columns=["mode", "run"])
    keyed = pm.scoring.keyed_items(items, pm.load_questionnaire("soc13"))
    shift = keyed.sum(axis=1).to_numpy() - raw["TOTAL_SOC"].to_numpy()
    assert np.ptp(shift) == 0  # turned items are negative, not 8 less the answer


@needs_mirror
def test_inverted_answers_are_turned_round():
    raw = _raw("inverted", "qwen2.5-72b").mean().to_numpy()
    assert _agreement(raw, _raw("history", "qwen2.5-72b").mean().to_numpy()) < -0.9
    counts = _shipped("counts").set_index(["respondent_id", "condition"])
    part = counts.loc[("qwen2.5-72b", "inverted")].set_index("item_id")
    own = part[list("12345")].mul([1, 2, 3, 4, 5]).sum(axis=1) / part[list("12345")].sum(axis=1)
    assert own[list(published._asked_order())].to_numpy() == pytest.approx(6 - raw)


def test_a_list_of_answers_that_repeats_the_statements_is_matched_by_them():
    said = ["Am shy.", "Talk.", "Like order."]
    found = published._listed("1. Talk. - 5. Very Accurate\n2. Am shy. - 2", said)
    assert found[:2] == [2, 5]
    assert np.isnan(found[2])


def test_an_unknown_source_is_refused():
    with pytest.raises(ParameterError):
        published.answers("gallup")


def test_what_is_shipped_item_by_item_is_under_the_mit_licence():
    shipped = _shipped("answers")
    assert set(shipped["source"]) == set(SMALL)
    keys = [key for source in SMALL for key in published._keys_of(source)]
    assert {data.registry()[key]["licence"] for key in keys} == {"MIT"}


def _factors(n: int, seed: int, items: int = 12) -> pd.DataFrame:
    """Answers with two factors, of six items each."""
    rng = np.random.default_rng(seed)
    traits = np.repeat(rng.normal(size=(n, 2)), items // 2, axis=1)
    return pd.DataFrame(traits + rng.normal(size=(n, items)), columns=list("abcdefghijkl")[:items])


def test_congruence_is_one_for_the_same_table_and_matches_columns_by_label():
    table = _factors(300, 1)
    found = congruence(table, table[list("lkjihgfedcba")], factors=2, draws=50)
    assert found["congruence"] == pytest.approx(1)
    assert found["low"] <= found["congruence"]
    assert found["p"] == pytest.approx(1 / 51)


def test_the_interval_of_a_congruence_holds_it_although_turned_noise_agrees_more():
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(200, 12)), columns=list("abcdefghijkl"))
    for seed in range(3):
        found = congruence(_factors(300, 1), noise, factors=3, draws=200, seed=seed)
        below, above = found["congruence"] - found["low"], found["high"] - found["congruence"]
        assert 0.4 < below / above < 2.5


def test_blocks_of_neighbours_are_no_more_than_chance_when_neighbours_stay_neighbours():
    rng = np.random.default_rng(5)
    steps = rng.normal(size=(2000, 13))
    walk = pd.DataFrame(steps[:, 1:] + steps[:, :-1], columns=list("abcdefghijkl"))
    table = _factors(2000, 1)
    exchanged = congruence(table, walk, factors=2, draws=200)
    pushed = congruence(table, walk, factors=2, order=list("abcdefghijkl"))
    assert exchanged["chance"] < pushed["chance"]
    assert pushed["p"] > 0.05


def test_congruence_leaves_out_items_that_do_not_vary_and_needs_enough_others():
    table = _factors(100, 1)
    assert congruence(table, table.assign(a=3.0), factors=2, draws=20)["items"] == 11
    with pytest.raises(ParameterError):
        congruence(table[["a", "b", "c"]], table, factors=2)
    with pytest.raises(ParameterError):
        congruence(table, table, factors=2, order=["a", "b"])
    found = congruence(_factors(100, 1), _factors(10, 2), factors=2, draws=20)
    assert np.isnan(found["low"])
    assert np.isfinite(found["congruence"])


def test_standardised_dif_is_the_difference_at_the_same_score_by_hand():
    gad = pm.load_questionnaire("gad7")
    ids = [item.id for item in gad.items]
    reference = pd.DataFrame([[2, 0, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0, 0]] * 10, columns=ids)
    focal = pd.DataFrame([[2, 0, 0, 0, 0, 0, 0]] * 8 + [[0, 3, 0, 0, 0, 0, 0]] * 2, columns=ids)
    found = standardised_dif(by_score(reference, gad), by_score(focal, gad))
    first = found.loc["gad7_1"]  # at score 2 people have 1 on average, the others 2
    assert first["smd"] == pytest.approx(1)
    assert first["effect"] == pytest.approx(1)
    assert (first["n"], first["dif"]) == (8, "C")
    assert np.isnan(found.loc["gad7_7", "effect"])  # nobody has it: no spread, no statement


def test_groups_without_a_common_score_have_no_dif():
    gad = pm.load_questionnaire("gad7")
    ids = [item.id for item in gad.items]
    low, high = (pd.DataFrame([[v] * 7, [v] * 6 + [1]] * 10, columns=ids) for v in (0, 3))
    found = standardised_dif(by_score(low, gad), by_score(high, gad))
    assert found["smd"].isna().all()
    assert (found["n"] == 0).all()


def test_distance_of_people_from_themselves_is_one_on_average_and_scipy_agrees():
    from scipy.spatial.distance import mahalanobis

    table = _factors(200, 7)
    found = published.person_fit(table, table.mean(), table.cov())
    assert found["distance"].mean() == pytest.approx(199 / 200)
    own = mahalanobis(table.iloc[0], table.mean(), np.linalg.inv(table.cov()))
    assert found["distance"].iloc[0] == pytest.approx(own**2 / 12)
    profile = np.corrcoef(table.iloc[0], table.mean())[0, 1]
    assert found["profile"].iloc[0] == pytest.approx(profile)


def test_a_sheet_with_a_gap_or_without_variation_has_no_profile():
    table = _factors(50, 7)
    sheet = table.iloc[:2].copy()
    sheet.iloc[0, 3] = np.nan
    sheet.iloc[1] = 3.0
    found = published.person_fit(sheet, table.mean(), table.cov())
    assert found["profile"].isna().all()
    assert found["distance"].isna().tolist() == [True, False]


@needs_mirror
def test_what_is_shipped_of_the_small_sets_is_what_the_readers_give(small):
    shipped = _shipped("answers")
    for source, answers in small.items():
        own = shipped[shipped["source"] == source].drop(columns="source")
        table = answers[answers["questionnaire"] != "pss10"]
        pd.testing.assert_frame_equal(
            own.reset_index(drop=True), table.reset_index(drop=True), check_dtype=False
        )


@needs_mirror
def test_counts_and_moments_that_are_shipped_are_those_of_the_files():
    raw = _raw("baseline", "qwen2.5-7b").set_axis(published._asked_order(), axis=1)
    counts = _shipped("counts").query(
        "respondent_id == 'qwen2.5-7b' and condition == 'baseline'"
    ).set_index("item_id")  # fmt: skip
    assert (counts["missing"] == raw.isna().sum()[counts.index]).all()
    assert (counts["5"] == (raw == 5).sum()[counts.index]).all()
    part = _shipped("moments").query(
        "respondent_id == 'qwen2.5-7b' and condition == 'baseline'"
    ).set_index("item_id")  # fmt: skip
    turned = {item for scale in IPIP.scales for item in scale.reverse}
    whole = raw.dropna()
    own = whole.mean().where(~whole.columns.isin(turned), 6 - whole.mean())
    assert part["mean"].to_numpy() == pytest.approx(own[part.index].to_numpy())
    assert part["n"].iloc[0] == len(whole)


def test_people_pass_the_ladder_of_invariance_and_a_moved_item_fails_its_last_step():
    a = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    S = np.outer(a, a) + np.diag(1 - a**2)
    value, own = invariance.misfit(S, 0 * a)
    assert [value, *np.abs(own)] == pytest.approx([0, *a], abs=1e-3)
    people = pd.DataFrame({"mean": 0.0, "loading": a, "SD": 1.0})
    # another mean and unit of the trait
    table = pd.DataFrame(np.random.default_rng(1).multivariate_normal(a / 2, 2 * S, 400))
    for moved in (0, 0.5):
        group = [(table.mean() + moved * np.eye(5)[2], table.cov(ddof=0))]
        one, loadings, intercepts = invariance.compare(400, group, people)[0]
        assert (max(one, loadings) < 3, intercepts > 3) == (True, moved > 0)
