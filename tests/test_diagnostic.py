from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from data.make.diagnostic import build_diagnostic
from psychometrics import claims, data
from psychometrics.exceptions import DataError, ParameterError, PsychometricsError
from psychometrics.measures import irt
from psychometrics.measures import items as classical
from psychometrics.measures.reliability import alpha
from psychometrics.parameters import check_parameters
from psychometrics.paths import data_dir
from psychometrics.studies import diagnostic, diagnostic_claims, diagnostic_figures

POPULATIONS = list(diagnostic.POPULATIONS)


@pytest.fixture(scope="module")
def table1() -> pd.DataFrame:
    return diagnostic.difficulty_table(draws=2000)


def test_the_matrices_are_as_large_as_the_study():
    assert diagnostic.answers().shape == (240, 812)
    assert diagnostic.models()["population"].value_counts().to_dict() == {
        "transformers": 183,
        "lstms": 57,
    }
    assert diagnostic.answers().isin([0, 1]).all(axis=None)
    assert diagnostic.models().index.is_unique


def test_people_are_as_many_as_were_accepted():
    phase = [len(diagnostic.answers("people", category)) for category in diagnostic.CATEGORIES]
    assert phase == [45, 35, 35, 20, 20, 19, 19]
    for category in diagnostic.CATEGORIES:
        assert diagnostic.answers("people", category, "completers").shape[0] == 19
        expected = 14 if category == "LE" else 15
        assert diagnostic.answers("people", category).shape[1] == expected
        asked = diagnostic.answers(category=category).columns
        assert diagnostic.answers("people", category).columns.equals(asked)


def test_asked_items_are_of_the_subcategory_they_stand_for():
    table = diagnostic.item_table()
    asked = table[table["asked"] != ""]
    assert (asked["asked"].map(diagnostic.CATEGORIES) == asked["subcategory"]).all()
    assert set(table["label"]) == {"entailment", "neutral", "contradiction"}


def test_a_few_answers_are_those_of_the_authors_figures():
    # The first three people of the phase on items 10, 22, 11, 23 (all right), from their script.
    first = diagnostic.answers("people", "MN").loc[[0, 1, 2], [10, 22, 11, 23]]
    assert (first == 1).all(axis=None)
    # The last person on world knowledge, items in their order.
    order = [565, 688, 564, 566, 689, 580, 567, 692, 581, 590, 693, 671, 591, 704, 674]
    last = diagnostic.answers("people", "WK")[order].iloc[-1]
    assert last.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1]


def test_models_know_how_they_were_trained():
    table = diagnostic.models()
    row = table.loc["roberta-large-nopretrain-finetune-snli+mnli+anli"]
    assert (row["family"], row["pretrained"], row["finetuned"]) == ("roberta", False, True)
    assert row["data"] == "snli+mnli+anli"
    assert row["builds_on"] == "roberta-large-nopretrain-nofinetune"
    assert set(table["data"]) == {"", "snli", "mnli", "snli+mnli", "snli+mnli+anli"}
    assert (table["data"] == "").equals(~table["finetuned"])
    assert table["family"].nunique() == 11


def test_table_1_is_the_papers_in_all_fourteen_cells(table1):
    gap = table1[POPULATIONS].round(2) - diagnostic.published("table1")[POPULATIONS]
    assert gap.abs().max(axis=None) < 0.01


def test_table_1s_nulls_hold_what_they_should(table1):
    # Spearman of 15 independent values has standard deviation 1 / sqrt(14).
    expected = 1.96 / np.sqrt(14)
    assert table1["null_high"].mean() == pytest.approx(expected, abs=0.04)
    assert table1["null_low"].mean() == pytest.approx(-expected, abs=0.04)
    random = diagnostic.published("table1")["random"]
    assert random.between(table1["null_low"], table1["null_high"]).all()
    strong = table1["p_transformers"] < 0.05
    assert table1.index[strong].tolist() == ["PP", "LE", "Q", "PS", "WK"]


def test_table_3_is_the_papers_to_the_second_decimal_with_infinities_where_r_stops():
    gap = (
        diagnostic.rasch_table()[POPULATIONS].round(2) - diagnostic.published("table3")[POPULATIONS]
    )
    assert gap.abs().max(axis=None) < 0.0051


def test_table_3_stays_within_the_tolerance_wherever_a_solver_might_have_stopped():
    published = diagnostic.published("table3")[POPULATIONS]
    for place in (18, 40):
        gap = diagnostic.rasch_table(extreme=place)[POPULATIONS] - published
        assert gap.abs().max(axis=None) < 0.06


def test_tables_1_and_3_have_intervals_over_items_and_nulls(table1):
    table3 = diagnostic.rasch_table()
    for table in (table1, table3):
        for name in POPULATIONS:
            assert table[name].between(table[f"low_{name}"], table[f"high_{name}"]).all()
    assert table1.loc["PS", "low_transformers"] > 0.5
    assert table1["pairs"].tolist() == [8, 9, 8, 8, 10, 8, 9]
    assert table1.index[table1["p_pairs_transformers"] < 0.05].tolist() == ["PP", "PS", "WK"]
    assert table1["ceiling"].round(1).tolist() == [0.8, 1, 0.9, 1, 1, 0.9, 0.9]
    # Extreme items are in the null of table 3, and twins stay together: eight units reach far.
    assert table3["null_high_transformers"].between(0.3, 0.9).all()
    assert table3["n_transformers"].tolist() == [15, 15, 14, 15, 15, 15, 15]
    assert diagnostic.rasch_table(None)["n_transformers"].tolist() == [13, 12, 14, 11, 11, 8, 14]


def test_populations_that_prefer_labels_reach_much_of_table_1(table1):
    assert (
        table1["label_high"] > table1["null_high"]
    ).sum() == 6  # but negation's labels are mixed
    beyond = table1.index[table1["p_label_transformers"] < 0.05]
    assert set(beyond) < set(table1.index[table1["p_transformers"] < 0.05])


@pytest.mark.parametrize(
    ("extreme", "alike", "least"), [(False, 0.0, 0.92), (True, 0.0, 0.9), (False, 0.8, 0.91)]
)
def test_intervals_over_items_hold_the_true_correlation_also_of_twins(extreme, alike, least):
    rng, both = np.random.default_rng(1), [[1, 0.5], [0.5, 1]]

    def drawn(n: int) -> list[pd.Series]:
        """Values of two populations; twins have a correlation of ``alike`` in each."""
        twins = rng.multivariate_normal([0, 0], both, (n + 1) // 2).repeat(2, axis=0)[:n]
        own = rng.multivariate_normal([0, 0], both, n)
        values = (np.sqrt(alike) * twins + np.sqrt(1 - alike) * own).T
        ids = diagnostic.item_table().index[np.arange(n) * (1 if alike else 2) % 812]
        return [pd.Series(np.where(extreme & (v < -1.3), -25.0, v), ids) for v in values]

    true = np.corrcoef(drawn(200_000))[0, 1]
    found = [diagnostic._over_items(*drawn(15), 300, 0) for _ in range(200)]
    assert np.mean([f["low"] <= true <= f["high"] for f in found]) > least
    if alike:  # as many single items would be too sure
        single = [classical.correlation_interval(f[""], 15) for f in found]
        assert np.mean([low <= true <= high for low, high in single]) < 0.92


def test_items_are_twins_two_directions_of_one_pair_of_sentences():
    table = diagnostic.item_table()
    pairs = table.groupby("pair")
    assert (pairs.size() == 2).all()
    assert table["pair"].nunique() == 406
    # What contradicts a sentence is contradicted by it.
    mixed = pairs["label"].agg(lambda x: (x == "contradiction").sum())
    assert set(mixed) == {0, 2}
    assert (pairs["subcategory"].nunique() == 1).all()


def test_agreement_of_clusters_beyond_chance_is_mostly_that_twins_stay_together():
    found = diagnostic.cluster_table()
    alone = found.index[found["p_items_transformers"] < 0.05].tolist()
    whole = found.index[found["p_transformers"] < 0.04].tolist()
    assert alone == ["MN", "LE", "Q", "PS", "WK"]
    assert whole == ["PS"]
    assert found.loc["Q", "p_transformers"] == pytest.approx(0.05, abs=0.007)
    assert (found["p_labels_transformers"] > 0.3).all()
    assert found["labels_transformers"].between(0.55, 0.8).all()


def test_bias_dealt_out_anew_within_equal_scores_is_gone():
    found = diagnostic.dif()
    dealt = diagnostic.dif(shuffle=0)
    assert (found["p_fdr"] < 0.05).sum() == 21
    assert (dealt["p_fdr"] < 0.05).sum() == 0
    assert dealt.index.equals(found.index)
    people, models = diagnostic.answers("people", "MN"), diagnostic.answers("lstms", "MN")
    one, two = diagnostic._dealt(people, models, np.random.default_rng(0))
    assert (len(one), len(two)) == (len(people), len(models))
    assert one.sum(axis=1).sort_values().tolist() == people.sum(axis=1).sort_values().tolist()


def test_equally_cheap_partitions_are_counted_and_their_range_is_told():
    found = diagnostic.cluster_table()
    for name in POPULATIONS:
        assert found[name].between(found[f"low_{name}"] - 1e-9, found[f"high_{name}"] + 1e-9).all()
        alone = (found["ties_people"] == 1) & (found[f"ties_{name}"] == 1)
        assert (found.loc[alone, f"low_{name}"] == found.loc[alone, f"high_{name}"]).all()
    assert (found["ties_people"] > 1).any()
    one = pd.DataFrame({"k": 2, "labels": [(0, 0, 1, 1)], "items": [tuple("abcd")]})
    two = pd.DataFrame({"k": 2, "labels": [(0, 1, 1), (0, 0, 1)], "items": [tuple("dca")] * 2})
    # Pairs ac, ad, cd: in the first together only cd; in the second table ac, then cd.
    assert diagnostic._agreements(one, two).tolist() == [pytest.approx([-0.5, 1])]


def test_one_published_lstm_solves_nothing():
    solved = diagnostic.answers("lstms").sum(axis=1)
    assert (solved == 0).sum() == 1


def test_table_3_without_infinite_items_is_another_table():
    without = diagnostic.rasch_table(extreme=None)
    infinite = diagnostic.rasch_table()["infinite"]
    assert infinite.tolist() == [2, 3, 0, 4, 4, 7, 1]
    published = diagnostic.published("table3")[POPULATIONS]
    assert without.loc["LE", POPULATIONS].round(2).tolist() == published.loc["LE"].tolist()
    # The two cells in which the paper finds LSTMs ahead of transformers fall back behind them.
    for category in ("PP", "WK"):
        assert published.loc[category, "lstms"] > published.loc[category, "transformers"]
        assert without.loc[category, "lstms"] < without.loc[category, "transformers"]


def test_infinite_difficulties_are_the_items_that_all_or_none_solved():
    table = diagnostic.rasch_difficulties("WK")["people"]
    shares = classical.difficulty(diagnostic.answers("people", "WK"))
    assert np.isposinf(table).equals(shares == 0)
    assert np.isneginf(table).equals(shares == 1)


def test_table_2_is_the_papers_in_ten_cells_by_the_papers_own_procedure():
    found = diagnostic.cluster_table(
        restarts=100, constant="self", method="alternating", choose="silhouette"
    )
    gap = (found[POPULATIONS].round(2) - diagnostic.published("table2")[POPULATIONS]).abs()
    assert (gap.loc[["PP", "LE", "Q", "PS", "RLS"]] < 0.0051).all(axis=None)


def test_table_2_is_the_papers_in_six_cells_by_least_cost():
    found = diagnostic.cluster_table(restarts=40)
    gap = (found[POPULATIONS].round(2) - diagnostic.published("table2")[POPULATIONS]).abs()
    assert (gap < 0.0051).sum(axis=None) == 6
    assert found[["k_people", "k_transformers", "k_lstms"]].min(axis=None) >= 2


def test_every_choice_of_partition_is_among_those_found():
    found = classical.cluster_items(diagnostic.answers("people", "PS"), restarts=20)
    by_cost = diagnostic._tied_partitions(found, "cost").iloc[0]
    same_k = found[found["k"] == by_cost["k"]]
    assert by_cost["cost"] == same_k["cost"].min()
    assert (
        diagnostic._tied_partitions(found, "silhouette").iloc[0]["silhouette"]
        == found["silhouette"].max()
    )
    with pytest.raises(ParameterError, match="choose='best'"):
        diagnostic.cluster_table(1, choose="best")


def test_architectures_are_differences_from_all_transformers(table1):
    families = dict(list(diagnostic.answers("transformers").groupby(diagnostic.models()["family"])))
    found = diagnostic.difficulty_table(families, draws=100)[list(families)]
    found = found.sub(table1["transformers"], axis=0)
    assert found.shape == (7, 10)
    only = diagnostic.answers("transformers", "MN")
    t5 = only[diagnostic.models().loc[only.index, "family"] == "t5"].mean()
    people = classical.difficulty(diagnostic.answers("people", "MN", "completers"))
    expected = people.corr(t5, method="spearman") - table1.loc["MN", "transformers"]
    assert found.loc["MN", "t5"] == pytest.approx(expected)
    # What the paper says of its figure: RoBERTa gains most on morphological negation.
    assert found.loc["MN"].idxmax() == "roberta"


def test_negative_results_are_negative():
    rest = diagnostic.item_rest_table(draws=200)
    assert (rest["transformers"] < rest["null_high"]).all()
    means = diagnostic.by_category(classical.mean_inter_item)
    assert abs(means.corr().loc["people", "transformers"]) < 0.5


def test_pairs_go_together_for_transformers_but_mostly_through_the_right_answer():
    found = diagnostic.pairs_of_items(draws=300)
    assert found.loc["transformers", "p"] < 0.05 < found.loc["lstms", "p"]
    inside = found.loc["transformers", ["same_label", "other_label"]]
    assert (inside < found.loc["transformers", "r"]).all()


def test_subsets_of_items_are_measured_on_both_sides_alike():
    found = diagnostic.subset_inter_item(size=15, draws=30, seed=2)
    people = pd.concat(
        [diagnostic.answers("people", c, "completers") for c in diagnostic.CATEGORIES], axis=1
    )
    chosen = np.random.default_rng(2).choice(people.shape[1], 15, replace=False)
    assert found["people"].iloc[0] == pytest.approx(
        classical.mean_inter_item(people.iloc[:, chosen])
    )


def test_chosen_models_beat_random_ones_on_items_that_did_not_choose_them():
    curve = diagnostic.subset_curve(sizes=(30, 183), draws=40)
    wide = curve.set_index(["size", "way"])["whole"]
    assert wide[30, "chosen"] > wide[30, "random"]
    assert wide[183, "random"] == pytest.approx(1)
    assert wide[183, "chosen"] == pytest.approx(1)


def test_chosen_models_are_distinct_and_grow_by_one():
    ten = diagnostic._choose_models(count=10)
    assert len(set(ten)) == 10
    assert diagnostic._choose_models(count=4) == ten[:4]


def test_dif_covers_all_items_and_corrects_over_all_of_them():
    found = diagnostic.dif()
    assert len(found) == 104
    one = diagnostic.dif(category="LE")
    assert found.loc[one.index, "delta"].equals(one["delta"])
    assert (found.loc[one.index, "p_holm"] >= one["p_holm"]).all()
    bert = diagnostic.dif("bert", "MN")
    assert len(bert) == 15
    with pytest.raises(ParameterError, match="focal='gpt'"):
        diagnostic.dif("gpt")


def test_both_kinds_of_dif_are_in_one_table_and_unknown_ones_are_refused():
    found = diagnostic.dif_table(families=("roberta",))
    assert found.index.tolist() == [
        "transformers against people",
        "lstms against people",
        "roberta against other transformers",
    ]
    assert found["models"].tolist() == [183, 57, 21]
    assert (found["mh_holm"] <= found["mh_fdr"]).all()
    assert (found[["mh_tested", "lr_tested"]] <= 104).all(axis=None)
    one = diagnostic.dif(method="logistic")
    assert found.loc["transformers against people", "lr_C"] == (one["size"] == "C").sum()
    with pytest.raises(ParameterError, match="method='anova'"):
        diagnostic.dif(method="anova")


def test_table_2_moves_as_far_as_its_nearly_best_partitions_differ():
    found = diagnostic.partition_range(restarts=100)
    assert (found["low"] <= found["best"]).all()
    assert (found["best"] <= found["high"]).all()
    # With no margin there is one value, but for exact ties.
    exact = diagnostic.partition_range(margin=0.0, restarts=10)
    assert exact.loc[("LE", "transformers"), ["low", "high"]].nunique() == 1
    paper = np.array([diagnostic.published("table2").loc[c, p] for c, p in found.index])
    assert (paper >= found["low"] - 0.0051).all()
    assert (paper <= found["high"] + 0.0051).all()


def test_figures_of_the_paper_stand_beside_ours(table1):
    found = diagnostic.beside(table1, "table1")
    assert found.columns.tolist() == [
        (p, c) for p in POPULATIONS for c in ("paper", "here", "difference")
    ]
    assert found.loc["MN", ("transformers", "paper")] == -0.28


def test_world_knowledge_has_no_common_trait_and_negation_has():
    def slope(who: str, category: str) -> pd.Series:
        return irt.fit(diagnostic.answers(who, category), "1pl").iloc[0]

    found = slope("transformers", "WK")
    assert found["discrimination"] < 1.96 * found["se_discrimination"]
    assert slope("people", "WK")["discrimination"] == pytest.approx(0, abs=0.01)
    assert slope("transformers", "MN")["discrimination"] > 1.5
    alphas = diagnostic.by_category(lambda x: alpha(x.loc[:, x.nunique() > 1])["alpha"])
    assert abs(alphas.loc["WK", "transformers"]) < 0.2
    # Alpha by its formula, on the items that have variance.
    x = diagnostic.answers("lstms", "Q")
    x = x.loc[:, x.nunique() > 1]
    k = x.shape[1]
    by_hand = k / (k - 1) * (1 - x.var().sum() / x.sum(axis=1).var())
    assert alphas.loc["Q", "lstms"] == pytest.approx(by_hand)


def test_categories_as_graded_items_use_every_level_and_keep_the_order():
    found = diagnostic.category_levels(levels=3)
    assert found.shape == (183, 7)
    for name, column in found.items():
        assert set(column) == {0, 1, 2}
        scores = diagnostic.answers("transformers", name).sum(axis=1)
        assert scores[column == 0].max() < scores[column == 1].min()
        assert scores[column == 1].max() < scores[column == 2].min()


def test_regimes_are_the_papers_four():
    counts = diagnostic.models()["regime"].value_counts().to_dict()
    assert counts == {
        "both": 155,
        "fine-tuned from scratch": 47,
        "pre-trained only": 26,
        "untrained": 12,
    }


def test_models_of_this_book_are_in_all_regimes_and_join_the_published_ones():
    live = diagnostic.models(live=True)
    assert set(live["regime"]) == set(diagnostic.REGIMES.values())
    assert not live.index.intersection(diagnostic.models().index).size
    assert diagnostic.answers(live=True).shape == (len(live), 812)
    assert live["accuracy"].between(live["low"], live["high"]).all()
    trained = live[live["finetuned"] & (live["population"] == "lstms")]
    assert len(trained) >= 8
    assert (trained["low"] > 1 / 3).all()
    table = diagnostic._regime_table()
    assert table["live_models"].sum() == len(live)
    assert table["models"].sum() == 240
    x = pd.concat([diagnostic.answers("lstms"), diagnostic.answers("lstms", live=True)])
    joined = diagnostic.difficulty_table({"joined": x}, draws=100)
    people = diagnostic.answers("people", "PP", "completers").mean()
    assert joined.loc["PP", "joined"] == pytest.approx(
        people.corr(x[people.index].mean(), "spearman")
    )


def test_new_answers_take_their_place_among_the_published_ones():
    perfect = pd.DataFrame(1, index=["perfect"], columns=diagnostic.item_table().index)
    table = diagnostic.live_table(perfect)
    assert table.loc["perfect", "rank"] == 1
    assert table.loc["perfect", "theta"] == table["theta"].max()
    assert np.isnan(table.loc["perfect", "people"])  # it cannot be in order with anyone
    name = diagnostic.models(live=True).index[0]
    again = diagnostic.live_table(diagnostic.answers(live=True).loc[[name]])
    assert again.loc[name, "share"] == diagnostic.live_table().loc[name, "share"]


def test_every_claim_of_the_paper_that_can_be_tested_is_computed_once(table1):
    table2 = diagnostic.cluster_table()
    table3 = diagnostic.rasch_table(draws=200)
    tables = {"table1": table1, "table2": table2, "table3": table3}
    changes = diagnostic.difficulty_table(
        dict(list(diagnostic.answers("transformers").groupby(diagnostic.models()["family"]))), 100
    ).filter(regex="^[a-z0-9]+$")
    changes = changes.drop(columns=["null", "label"]).sub(table1["transformers"], axis=0)
    means = diagnostic.by_category(classical.mean_inter_item)
    found = pd.concat(
        [
            diagnostic_claims.counts(),
            *(diagnostic_claims.cells(name, table) for name, table in tables.items()),
            *(diagnostic_claims.judgements(name, table) for name, table in tables.items()),
            diagnostic_claims.comparisons(table1, table2, draws=200),
            diagnostic_claims.rasch_comparisons(table1, table2, table3, draws=200),
            diagnostic_claims.architectures(changes, draws=3),
            diagnostic_claims.absences(
                diagnostic.item_rest_table(draws=20), means, diagnostic.subset_inter_item(draws=50)
            ),
        ]
    )
    known = claims.published().query("study == 'diagnostic'")
    assert sorted(found.index) == sorted(known.index[known["rule"] != "untestable"])
    assert set(found.columns) <= set(claims.RECORDED)
    assert found["value"].notna().all()
    inside = found.dropna(subset=["low", "high"])
    assert inside["value"].between(inside["low"] - 1e-9, inside["high"] + 1e-9).all()
    # By hand: 15 - 1 items in one category; three categories are not balanced over the labels.
    assert found.loc["diagnostic-fifteen", "value"] == 14
    assert found.loc["diagnostic-balanced", "value"] == 3
    said = claims.verdicts(known.join(found.astype(float)))
    assert said["diagnostic-table1-q-transformers-significant"] == "not reproduced"
    assert said["diagnostic-table2-le-transformers-significant"].endswith("found in the null")
    assert said["diagnostic-table2-ps-transformers-significant"] == "reproduced"
    assert said["diagnostic-table3-pp-lstms-ahead"] == "not reproduced"
    cells = known.index.str.match(r"diagnostic-table[13]-\w+-(transformers|lstms)$")
    assert (said[cells] == "reproduced").all()
    assert cells.sum() == 28


def test_log_odds_of_label_givers_follow_their_rasch_difficulties():
    rng = np.random.default_rng(0)
    x = pd.DataFrame((rng.random((20, 12)) < np.repeat([0.2, 0.5, 0.8], 4)).astype(int))
    wrong = (1 - x).sum()
    hard = np.log((wrong + 0.5) / (20 - wrong + 0.5))
    assert np.corrcoef(hard, irt.fit(x)["difficulty"])[0, 1] > 0.999


@pytest.mark.parametrize(
    ("chapter", "given", "said"),
    [
        ("06-items", {"category": "negation"}, "MN, PP"),
        ("06-items", {"draws": 10}, "draws must be a whole number from 100"),
        ("06-items", {"restarts": 2.5}, "restarts must be a whole number"),
        ("06-items", {"seed": True}, "seed"),
        ("06-items", {"respondents": ""}, "respondents must be text"),
        ("06-items", {"respondents": "no-such-model-anywhere"}, "no-such-model-anywhere"),
        ("07-rasch", {"category": "negation"}, "MN, PP"),
        ("07-rasch", {"simulations": 5}, "simulations must be a whole number from 20"),
    ],
)
def test_parameters_are_checked_before_anything_is_computed(chapter, given, said):
    with pytest.raises(PsychometricsError, match=said):
        check_parameters(chapter, given)


def survey() -> pd.DataFrame:
    """Ten answers each, the last two attention checks."""
    people = {
        "good": ("1111111111", None),
        "poor": ("0001000001", None),
        "middling": ("1110100011", None),
        "asleep": ("1111100010", None),
        "good again": ("1111111111", None),
        "curt": ("1111111111", "nice"),
        "parrot": ("1111111111", "the cat sat on the mat"),
        "same": ("1111111111", "because it follows from that"),
    }
    rows = []
    for submission, (answers, text) in people.items():
        for place, answer in enumerate(answers):
            own = f"question {place} is right for reason number {place}"
            rows.append(
                {
                    "submission": submission,
                    "worker": "w1" if submission.startswith("good") else submission,
                    "correct": int(answer),
                    "attention": place >= 8,
                    "question": "The cat sat on the mat. The dog did not.",
                    "justification": f"{text} {place}" if text in ("nice",) else text or own,
                }
            )
    return pd.DataFrame(rows)


def test_the_three_stages_drop_whom_they_should_and_say_why():
    found = diagnostic.check_people(survey())
    assert found["stage"].to_dict() == {
        "good": 0, "poor": 2, "middling": 0, "asleep": 2, "good again": 1, "curt": 3,
        "parrot": 3, "same": 3,
    }  # fmt: skip
    assert found["accepted"].equals(found["stage"] == 0)
    reasons = found["reason"]
    assert reasons["poor"] == "score 20%, below 40%"
    assert "attention checks 50%, below 75%" in reasons["asleep"]
    assert reasons["good again"] == "submitted before (same worker)"
    assert reasons["curt"] == "most justifications have fewer than 3 words"
    assert reasons["same"] == "the same justification for every question"
    assert found.loc["curt", "weak"] == 1


def test_pasted_justifications_are_found_even_when_they_vary():
    table = survey().query("submission == 'parrot'").reset_index(drop=True)
    table["justification"] = [f"{n} the cat sat on the mat" for n in range(len(table))]
    assert (
        diagnostic.check_people(table).loc["parrot", "reason"].endswith("pasted from the question")
    )


def test_a_shared_address_counts_as_a_second_submission_and_limits_are_exact():
    table = survey().query("submission in ('good', 'middling')").assign(ip="10.0.0.1")
    found = diagnostic.check_people(table)
    assert found.loc["middling", "reason"] == "submitted before (same ip)"
    # Exactly 40 % and 60 % lie between the two limits, where attention decides.
    edge = pd.DataFrame(
        {
            "submission": ["a"] * 5 + ["b"] * 5,
            "worker": ["a"] * 5 + ["b"] * 5,
            "correct": [1, 0, 0, 0, 1, 1, 1, 1, 0, 0],
            "attention": [False] * 4 + [True] + [False] * 4 + [True],
        }
    )
    assert diagnostic.check_people(edge)["accepted"].tolist() == [True, False]


def test_the_check_says_what_a_table_lacks():
    with pytest.raises(ParameterError, match=r"\['attention'\]"):
        diagnostic.check_people(survey().drop(columns="attention"))
    for name in ("correct", "attention"):
        with pytest.raises(ParameterError, match=f"'{name}' must hold 0 and 1"):
            diagnostic.check_people(survey().assign(**{name: "yes"}))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="transformers, lstms"):
        diagnostic.answers("gpt")
    with pytest.raises(ParameterError, match="MN, PP"):
        diagnostic.answers("people", "negation")
    with pytest.raises(ParameterError, match="phase, completers"):
        diagnostic.answers("people", "MN", "all")
    with pytest.raises(ParameterError, match="name a category, or 'completers'"):
        diagnostic.answers("people")
    with pytest.raises(ParameterError, match="table1"):
        diagnostic.published("table4")


@pytest.mark.skipif(
    not data.available("glue_diagnostic") and os.environ.get("CI") != "true",
    reason="the diagnostic's file is neither in the mirror nor in the cache",
)
def test_the_committed_matrices_come_out_of_the_authors_file_again(tmp_path):
    rows = [
        (sample, diagnostic.CATEGORIES[category], item, participant, value)
        for sample in ("completers", "phase")
        for category in diagnostic.CATEGORIES
        for participant, row in diagnostic.answers("people", category, sample).iterrows()
        for item, value in row.items()
    ]
    columns = ["sample", "category", "item_id", "participant", "correct"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "people.csv", index=False)
    build_diagnostic(tmp_path / "people.csv", tmp_path / "again")
    for name in ("items.csv", "models.csv.gz", "people.csv.gz"):
        committed = (data_dir() / "diagnostic" / name).read_bytes()
        if name.endswith(".gz"):  # zlib's bytes may differ, what is inside may not
            import gzip

            again = gzip.decompress((tmp_path / "again" / name).read_bytes())
            assert again == gzip.decompress(committed), name
        else:
            assert (tmp_path / "again" / name).read_bytes() == committed


def test_a_table_of_people_that_cannot_be_used_is_refused_before_anything_is_written(tmp_path):
    if not data.available("glue_diagnostic"):
        pytest.skip("the diagnostic's file is neither in the mirror nor in the cache")
    with pytest.raises(DataError, match="cannot be read"):
        build_diagnostic(tmp_path / "none.csv", tmp_path / "new")
    (tmp_path / "people.csv").write_text("item_id,correct\n1,1\n")
    with pytest.raises(DataError, match="lacks the columns sample, category, participant"):
        build_diagnostic(tmp_path / "people.csv", tmp_path / "new")
    assert not list(tmp_path.glob("new/*"))


def test_figures_draw_what_they_are_given():
    import matplotlib.pyplot as plt

    live = diagnostic.models(), diagnostic.answers(), diagnostic.live_table()
    drawn = [
        (diagnostic_figures.correlations_with_null, (diagnostic.difficulty_table(draws=100),)),
        (diagnostic_figures.live_strip, live),
        (diagnostic_figures.dif_plot, (diagnostic.dif(category="WK"),)),
        (diagnostic_figures.subset_lines, (diagnostic.subset_curve((5, 10), draws=5),)),
    ]
    for function, arguments in drawn:
        figure, axes = plt.subplots()
        assert function(*arguments, ax=axes) is axes
        assert axes.get_ylabel(), function.__name__
        plt.close(figure)
