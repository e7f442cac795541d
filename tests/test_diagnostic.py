from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from psychometrics import data, irt
from psychometrics import items as classical
from psychometrics.exceptions import ParameterError, PsychometricsError
from psychometrics.paths import data_dir
from psychometrics.studies import diagnostic as items
from psychometrics.studies import diagnostic_figures as item_figures

POPULATIONS = list(items.POPULATIONS)


@pytest.fixture(scope="module")
def table1() -> pd.DataFrame:
    return items.difficulty_table(draws=2000)


def test_the_matrices_are_as_large_as_the_study():
    assert items.model_answers().shape == (240, 812)
    assert items.models()["population"].value_counts().to_dict() == {
        "transformers": 183,
        "lstms": 57,
    }
    assert items.model_answers().isin([0, 1]).all(axis=None)
    assert items.models().index.is_unique


def test_people_are_as_many_as_were_accepted():
    phase = [len(items.people_answers(category)) for category in items.CATEGORIES]
    assert phase == [45, 35, 35, 20, 20, 19, 19]
    for category in items.CATEGORIES:
        assert items.people_answers(category, "completers").shape[0] == 19
        expected = 14 if category == "LE" else 15
        assert items.people_answers(category).shape[1] == expected
        asked = items.model_answers(category=category).columns
        assert items.people_answers(category).columns.equals(asked)


def test_asked_items_are_of_the_subcategory_they_stand_for():
    table = items.items()
    asked = table[table["asked"] != ""]
    assert (asked["asked"].map(items.CATEGORIES) == asked["subcategory"]).all()
    assert set(table["label"]) == {"entailment", "neutral", "contradiction"}


def test_a_few_answers_are_those_of_the_authors_figures():
    # The first three people of the phase on items 10, 22, 11, 23 (all right), from their script.
    first = items.people_answers("MN").loc[[0, 1, 2], [10, 22, 11, 23]]
    assert (first == 1).all(axis=None)
    # The last person on world knowledge, items in their order.
    order = [565, 688, 564, 566, 689, 580, 567, 692, 581, 590, 693, 671, 591, 704, 674]
    last = items.people_answers("WK")[order].iloc[-1]
    assert last.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1]


def test_models_know_how_they_were_trained():
    table = items.models()
    row = table.loc["roberta-large-nopretrain-finetune-snli+mnli+anli"]
    assert (row["family"], row["pretrained"], row["finetuned"]) == ("roberta", False, True)
    assert row["data"] == "snli+mnli+anli"
    assert row["builds_on"] == "roberta-large-nopretrain-nofinetune"
    assert set(table["data"]) == {"", "snli", "mnli", "snli+mnli", "snli+mnli+anli"}
    assert (table["data"] == "").equals(~table["finetuned"])
    assert table["family"].nunique() == 11


def test_table_1_is_the_papers_in_all_fourteen_cells(table1):
    gap = table1[POPULATIONS].round(2) - items.published("table1")[POPULATIONS]
    assert gap.abs().max(axis=None) < 0.01


def test_table_1s_nulls_hold_what_they_should(table1):
    # Spearman of 15 independent values has standard deviation 1 / sqrt(14).
    expected = 1.96 / np.sqrt(14)
    assert table1["null_high"].mean() == pytest.approx(expected, abs=0.04)
    assert table1["null_low"].mean() == pytest.approx(-expected, abs=0.04)
    random = items.published("table1")["random"]
    assert random.between(table1["null_low"], table1["null_high"]).all()
    strong = table1["p_transformers"] < 0.05
    assert table1.index[strong].tolist() == ["PP", "LE", "Q", "PS", "WK"]


def test_table_3_is_the_papers_to_the_second_decimal_with_infinities_where_r_stops():
    gap = items.rasch_table()[POPULATIONS].round(2) - items.published("table3")[POPULATIONS]
    assert gap.abs().max(axis=None) < 0.0051


def test_table_3_stays_within_the_tolerance_wherever_a_solver_might_have_stopped():
    published = items.published("table3")[POPULATIONS]
    for place in (18, 40):
        gap = items.rasch_table(extreme=place)[POPULATIONS] - published
        assert gap.abs().max(axis=None) < 0.06


def test_table_3_without_infinite_items_is_another_table():
    without = items.rasch_table(extreme=None)
    infinite = items.rasch_table()["infinite"]
    assert infinite.tolist() == [2, 3, 0, 4, 4, 7, 1]
    published = items.published("table3")[POPULATIONS]
    assert without.loc["LE", POPULATIONS].round(2).tolist() == published.loc["LE"].tolist()
    # The two cells in which the paper finds LSTMs ahead of transformers fall back behind them.
    for category in ("PP", "WK"):
        assert published.loc[category, "lstms"] > published.loc[category, "transformers"]
        assert without.loc[category, "lstms"] < without.loc[category, "transformers"]


def test_infinite_difficulties_are_the_items_that_all_or_none_solved():
    table = items.rasch_difficulties("WK")["people"]
    shares = classical.difficulty(items.people_answers("WK"))
    assert np.isposinf(table).equals(shares == 0)
    assert np.isneginf(table).equals(shares == 1)


def test_table_2_is_the_papers_in_ten_cells_by_the_papers_own_procedure():
    found = items.cluster_table(
        restarts=100, constant="self", method="alternating", choose="silhouette"
    )
    gap = (found[POPULATIONS].round(2) - items.published("table2")[POPULATIONS]).abs()
    assert (gap.loc[["PP", "LE", "Q", "PS", "RLS"]] < 0.0051).all(axis=None)


def test_table_2_is_the_papers_in_six_cells_by_least_cost():
    found = items.cluster_table(restarts=40)
    gap = (found[POPULATIONS].round(2) - items.published("table2")[POPULATIONS]).abs()
    assert (gap < 0.0051).sum(axis=None) == 6
    assert found[["k_people", "k_transformers", "k_lstms"]].min(axis=None) >= 2


def test_every_choice_of_partition_is_among_those_found():
    found = classical.cluster_items(items.people_answers("PS"), restarts=20)
    by_cost = items.chosen_partition(found)
    same_k = found[found["k"] == by_cost["k"]]
    assert by_cost["cost"] == same_k["cost"].min()
    assert items.chosen_partition(found, "silhouette")["silhouette"] == found["silhouette"].max()
    with pytest.raises(ParameterError, match="choose='best'"):
        items.chosen_partition(found, "best")


def test_architectures_are_differences_from_all_transformers(table1):
    found = items.architecture_table()
    assert found.shape == (7, 10)
    only = items.model_answers("transformers", "MN")
    t5 = only[items.models().loc[only.index, "family"] == "t5"].mean()
    people = classical.difficulty(items.people_answers("MN", "completers"))
    expected = people.corr(t5, method="spearman") - table1.loc["MN", "transformers"]
    assert found.loc["MN", "t5"] == pytest.approx(expected)
    # What the paper says of its figure: RoBERTa gains most on morphological negation.
    assert found.loc["MN"].idxmax() == "roberta"


def test_negative_results_are_negative():
    rest = items.item_rest_table(draws=200)
    assert (rest["transformers"] < rest["null_high"]).all()
    means = items.inter_item_table()
    assert abs(means.corr().loc["people", "transformers"]) < 0.5


def test_pairs_go_together_for_transformers_but_mostly_through_the_right_answer():
    found = items.pairs_of_items(draws=300)
    assert found.loc["transformers", "p"] < 0.05 < found.loc["lstms", "p"]
    inside = found.loc["transformers", ["same_label", "other_label"]]
    assert (inside < found.loc["transformers", "r"]).all()


def test_subsets_of_items_are_measured_on_both_sides_alike():
    found = items.subset_inter_item(size=15, draws=30, seed=2)
    people = pd.concat([items.people_answers(c, "completers") for c in items.CATEGORIES], axis=1)
    chosen = np.random.default_rng(2).choice(people.shape[1], 15, replace=False)
    assert found["people"].iloc[0] == pytest.approx(
        classical.mean_inter_item(people.iloc[:, chosen])
    )
    turned = items.subset_inter_item(size=15, draws=30, seed=2, turned=True)
    assert turned["people"].iloc[0] == pytest.approx(
        classical.mean_inter_item(people.iloc[:, chosen].T)
    )
    assert turned["transformers"].equals(found["transformers"])


def test_chosen_models_beat_random_ones_on_items_that_did_not_choose_them():
    curve = items.subset_curve(sizes=(30, 183), draws=40)
    wide = curve.set_index(["size", "way"])["whole"]
    assert wide[30, "chosen"] > wide[30, "random"]
    assert wide[183, "random"] == pytest.approx(1)
    assert wide[183, "chosen"] == pytest.approx(1)


def test_chosen_models_are_distinct_and_grow_by_one():
    ten = items.choose_models(count=10)
    assert len(set(ten)) == 10
    assert items.choose_models(count=4) == ten[:4]


def test_dif_covers_all_items_and_corrects_over_all_of_them():
    found = items.people_dif()
    assert len(found) == 104
    one = items.people_dif(category="LE")
    assert found.loc[one.index, "delta"].equals(one["delta"])
    assert (found.loc[one.index, "p_holm"] >= one["p_holm"]).all()
    bert = items.family_dif("bert", "MN")
    assert len(bert) == 15
    with pytest.raises(ParameterError, match="focal='gpt'"):
        items.family_dif("gpt")


def test_both_kinds_of_dif_are_in_one_table_and_unknown_ones_are_refused():
    found = items.dif_table(families=("roberta",))
    assert found.index.tolist() == [
        "transformers against people",
        "lstms against people",
        "roberta against other transformers",
    ]
    assert found["models"].tolist() == [183, 57, 21]
    assert (found["mh_holm"] <= found["mh_fdr"]).all()
    assert (found[["mh_tested", "lr_tested"]] <= 104).all(axis=None)
    one = items.people_dif(method="logistic")
    assert found.loc["transformers against people", "lr_C"] == (one["size"] == "C").sum()
    with pytest.raises(ParameterError, match="method='anova'"):
        items.people_dif(method="anova")


def test_table_2_moves_as_far_as_its_nearly_best_partitions_differ():
    found = items.partition_range(restarts=100)
    assert (found["low"] <= found["best"]).all()
    assert (found["best"] <= found["high"]).all()
    # With no margin there is one value, but for exact ties.
    exact = items.partition_range(margin=0.0, restarts=10)
    assert exact.loc[("LE", "transformers"), ["low", "high"]].nunique() == 1
    paper = np.array([items.published("table2").loc[c, p] for c, p in found.index])
    assert (paper >= found["low"] - 0.0051).all()
    assert (paper <= found["high"] + 0.0051).all()


def test_figures_of_the_paper_stand_beside_ours(table1):
    found = items.beside(table1, "table1")
    assert found.columns.tolist() == [
        (p, c) for p in POPULATIONS for c in ("paper", "here", "difference")
    ]
    assert found.loc["MN", ("transformers", "paper")] == -0.28


def test_world_knowledge_has_no_common_trait_and_negation_has():
    found = items.trait_table()
    assert found.loc["WK", "slope_transformers"] == pytest.approx(0, abs=0.01)
    assert abs(found.loc["WK", "alpha_transformers"]) < 0.2
    assert found.loc["MN", "slope_transformers"] > 1.5
    # Alpha by its formula, on the items that have variance.
    x = items.model_answers("lstms", "Q")
    x = x.loc[:, x.nunique() > 1]
    k = x.shape[1]
    by_hand = k / (k - 1) * (1 - x.var().sum() / x.sum(axis=1).var())
    assert found.loc["Q", "alpha_lstms"] == pytest.approx(by_hand)


def test_categories_as_graded_items_use_every_level_and_keep_the_order():
    found = items.category_levels(levels=3)
    assert found.shape == (183, 7)
    for name, column in found.items():
        assert set(column) == {0, 1, 2}
        scores = items.model_answers("transformers", name).sum(axis=1)
        assert scores[column == 0].max() < scores[column == 1].min()
        assert scores[column == 1].max() < scores[column == 2].min()


def test_regimes_are_the_papers_four():
    counts = items.regimes(items.models()).value_counts().to_dict()
    assert counts == {
        "both": 155,
        "fine-tuned from scratch": 47,
        "pre-trained only": 26,
        "untrained": 12,
    }


def test_models_of_this_book_are_in_all_regimes_and_join_the_published_ones():
    live = items.live_models()
    assert set(items.regimes(live)) == set(items.REGIMES.values())
    assert not live.index.intersection(items.models().index).size
    assert items.live_answers().shape == (len(live), 812)
    assert live["accuracy"].between(live["low"], live["high"]).all()
    trained = live[live["finetuned"] & (live["population"] == "lstms")]
    assert len(trained) >= 8
    assert (trained["low"] > 1 / 3).all()
    table = items.regime_table()
    assert table["live_models"].sum() == len(live)
    assert table["models"].sum() == 240
    joined = items.joined_table()
    x = pd.concat([items.model_answers("lstms", "PP"), items.live_answers("lstms", "PP")])
    people = items.people_answers("PP", "completers").mean()
    assert joined.loc["PP", "joined_lstms"] == pytest.approx(people.corr(x.mean(), "spearman"))


def test_new_answers_take_their_place_among_the_published_ones():
    perfect = pd.DataFrame(1, index=["perfect"], columns=items.items().index)
    table = items.live_table(perfect)
    assert table.loc["perfect", "rank"] == 1
    assert table.loc["perfect", "theta"] == table["theta"].max()
    assert np.isnan(table.loc["perfect", "people"])  # it cannot be in order with anyone
    name = items.live_models().index[0]
    again = items.live_table(items.live_answers().loc[[name]])
    assert again.loc[name, "share"] == items.live_table().loc[name, "share"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"category": "negation"}, "MN, PP"),
        ({"draws": 10}, "draws must be a whole number from 100"),
        ({"restarts": 2.5}, "restarts must be a whole number"),
        ({"seed": True}, "seed"),
        ({"respondents": ""}, "respondents must be text"),
        ({"respondents": "no-such-model-anywhere"}, "no-such-model-anywhere"),
    ],
)
def test_parameters_are_checked_before_anything_is_computed(given, said):
    with pytest.raises(PsychometricsError, match=said):
        items.check_item_parameters(**given)


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
    found = items.check_people(survey())
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
    assert items.check_people(table).loc["parrot", "reason"].endswith("pasted from the question")


def test_a_shared_address_counts_as_a_second_submission_and_limits_are_exact():
    table = survey().query("submission in ('good', 'middling')").assign(ip="10.0.0.1")
    found = items.check_people(table)
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
    assert items.check_people(edge)["accepted"].tolist() == [True, False]


def test_the_check_says_what_a_table_lacks():
    with pytest.raises(ParameterError, match=r"\['attention'\]"):
        items.check_people(survey().drop(columns="attention"))
    with pytest.raises(ParameterError, match="0 and 1"):
        items.check_people(survey().assign(correct=2))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="transformers, lstms"):
        items.model_answers("gpt")
    with pytest.raises(ParameterError, match="MN, PP"):
        items.people_answers("negation")
    with pytest.raises(ParameterError, match="completers, phase"):
        items.people_answers("MN", "all")
    with pytest.raises(ParameterError, match="table1"):
        items.published("table4")


@pytest.mark.skipif(
    not data.available("glue_diagnostic") and os.environ.get("CI") != "true",
    reason="the diagnostic's file is neither in the mirror nor in the cache",
)
def test_the_committed_matrices_come_out_of_the_authors_file_again(tmp_path):
    rows = [
        (sample, items.CATEGORIES[category], item, participant, value)
        for sample in items.SAMPLES
        for category in items.CATEGORIES
        for participant, row in items.people_answers(category, sample).iterrows()
        for item, value in row.items()
    ]
    columns = ["sample", "category", "item_id", "participant", "correct"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "people.csv", index=False)
    items.build_diagnostic(tmp_path / "people.csv", tmp_path / "again")
    for name in ("items.csv", "models.csv.gz", "people.csv.gz"):
        committed = (data_dir() / "diagnostic" / name).read_bytes()
        if name.endswith(".gz"):  # zlib's bytes may differ, what is inside may not
            import gzip

            again = gzip.decompress((tmp_path / "again" / name).read_bytes())
            assert again == gzip.decompress(committed), name
        else:
            assert (tmp_path / "again" / name).read_bytes() == committed


def test_figures_draw_what_they_are_given():
    import matplotlib.pyplot as plt

    table = items.difficulty_table(draws=100)
    answers = items.model_answers("transformers", "WK")
    fits = {model: irt.fit(answers, model) for model in ("1pl", "2pl")}
    theta = irt.abilities(answers, fits["1pl"])["theta"]
    curve = items.extreme_curve(np.array([5.0, 10.0])).query("population == 'lstms'")
    drawn = [
        (item_figures.correlations_with_null, (table,)),
        (item_figures.change_heatmap, (items.architecture_table(),)),
        (item_figures.extreme_lines, (curve, 7.0)),
        (item_figures.characteristic_curves, (fits["2pl"],)),
        (item_figures.information_curves, (fits,)),
        (
            item_figures.live_strip,
            (items.models(), items.model_answers(), items.live_table()),
        ),
        (item_figures.wright_map, (theta, items.rasch_difficulties("WK")["people"])),
        (item_figures.dif_plot, (items.people_dif(category="WK"),)),
        (item_figures.subset_lines, (items.subset_curve((5, 10), draws=5),)),
        (item_figures.difficulty_scatter, (answers.mean(), answers.mean())),
    ]
    for function, arguments in drawn:
        figure, axes = plt.subplots()
        assert function(*arguments, ax=axes) is axes
        assert axes.get_ylabel(), function.__name__
        plt.close(figure)
    _, axes = plt.subplots()
    item_figures.characteristic_curves(fits["2pl"], ax=axes)
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert len(dashed) == (fits["2pl"]["discrimination"] < 0).sum()
    plt.close("all")
