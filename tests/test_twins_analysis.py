"""The analysis of the twin test on simulated rows, before it reads rows of new arms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics import load_questionnaire
from recipes import twins, twins_tests
from recipes.six_bases import plan
from recipes.twins_tests import TRUE

ITEMS = [item.id for name in plan.ASKED for item in load_questionnaire(name).items]
REAL_ITEMS = 29


def _rows(rng, blocks, agreement, silhouette, profile, accuracy=0.6, placebo=0.2):
    """Rows of members that share a profile in part, with given mean silhouettes."""
    own = rng.normal(size=(blocks, len(ITEMS)))
    source = np.sqrt(agreement) * profile + np.sqrt(1 - agreement) * own
    width = np.where(np.arange(len(ITEMS)) < REAL_ITEMS, silhouette, placebo)
    width = width + rng.normal(0, 0.03, size=(blocks, len(ITEMS)))
    kinds = {"source": source, "inverse": source, "silhouette": width}
    columns = {
        f"{kind}: {item}": values[:, place]
        for kind, values in kinds.items()
        for place, item in enumerate(ITEMS)
    }
    rows = pd.DataFrame(columns).assign(accuracy=accuracy, majority=0.4, decisiveness=0.5)
    rows = rows.assign(**{"silhouette as answered": width[:, :REAL_ITEMS].mean(axis=1)})
    return rows.assign(**{"accuracy true": 0.35}).set_axis(range(1, 1 + blocks))


def _arms(seed, levels, names=tuple(twins.BLOCKS)):
    """Simulated arms of bases; members of an arm have one profile, true and sentiment the same."""
    rng = np.random.default_rng(seed)
    arms = {}
    for base in names:
        shared = rng.normal(size=len(ITEMS))
        for arm in twins.arms(base):
            agreement, silhouette = levels.get(arm, (0.05, 0.1))
            profile = shared if arm in (TRUE, "sentiment") else rng.normal(size=len(ITEMS))
            blocks = plan.BASES[base].blocks
            arms[base, arm] = _rows(rng, blocks, agreement, silhouette, profile)

    return arms


@pytest.fixture(scope="module")
def planted():
    return _arms(1, {TRUE: (0.9, 0.5), "sentiment": (0.9, 0.5)})


@pytest.fixture(scope="module")
def tests(planted):
    parts = [twins_tests.by_base(planted), twins_tests.valence_tests(planted)]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def over(tests):
    return twins_tests.over_bases(tests)


def test_every_comparison_of_the_plan_is_made_on_every_base(tests):
    made = tests.groupby(["question", "statistic", "first", "second"])["base"].agg(set).to_dict()
    everywhere = [one for one in twins_tests.COMPARISONS if one[0] not in ("premise", "noise")]
    assert all(made[one] == {*twins.BLOCKS} for one in everywhere)
    assert made["premise", "A", "premise sentiment", "sentiment"] == {"embedded"}
    assert made["noise", "A", "noise", "hypotheses"] == {"embedded", "mpnet"}
    assert made["valence of items", "rank correlation", TRUE, "teacher"] == {*twins.BLOCKS}


def test_planted_agreement_and_silhouettes_are_recovered(over):
    found = over.set_index(["question", "statistic", "first", "second"])["value"]
    for arm in ("teacher", "overlap", "length"):
        assert found["H1", "A", TRUE, arm] == pytest.approx(0.85, abs=0.07)
        assert found["H1", "S", TRUE, arm] == pytest.approx(0.4, abs=0.02)

    assert found["H1b", "A", TRUE, "sentiment"] == pytest.approx(0, abs=0.03)
    assert found["H2", "S real less placebos", TRUE, "teacher"] == pytest.approx(0.4, abs=0.03)
    assert found["H2", "S real less placebos", TRUE, "sentiment"] == pytest.approx(0, abs=0.03)
    assert found["between arms", "A with true labels", "sentiment", "teacher"] > 0.8
    assert found["no common target", "A", "own teacher", ""] == pytest.approx(0.05, abs=0.07)


def test_decisions_name_what_was_planted(planted, over):
    table = twins_tests.decisions(over, twins_tests.share_tests(planted)).set_index("hypothesis")
    verdict = table["verdict"]
    assert set(verdict[["H1, A", "H1, S", "H2, teacher"]]) == {"higher"}
    assert verdict["H2, sentiment"] == "not shown"
    assert set(verdict[["H1b, A", "H1b, S", "H3, A real less placebos"]]) == {"equivalent"}
    assert table["holm"].notna().sum() == 7


def test_one_arm_as_high_as_true_labels_overthrows_the_first_hypothesis():
    arms = _arms(2, {TRUE: (0.9, 0.5), "overlap": (0.9, 0.5)})
    over = twins_tests.over_bases(twins_tests.by_base(arms))
    table = twins_tests.decisions(over, twins_tests.share_tests(arms)).set_index("hypothesis")
    assert set(table.loc[["H1, A", "H1, S"], "verdict"]) == {"not shown"}


def test_a_hypothesis_about_three_arms_is_not_decided_by_two(planted, tests, over):
    shares = twins_tests.share_tests(planted)
    whole = twins_tests.decisions(over, shares).set_index("hypothesis")
    lacking = over[~((over["question"] == "H1") & (over["second"] == "length"))]
    table = twins_tests.decisions(lacking, shares).set_index("hypothesis")
    assert set(table.loc[["H1, A", "H1, S"], "verdict"]) == {"an arm was not learned"}
    assert table["holm"].notna().sum() == whole["holm"].notna().sum() == 7

    one = (over["question"] == "H1") & (over["second"] == "overlap")
    reversed_arm = over.assign(value=over["value"].where(~one, -over["value"]))
    table = twins_tests.decisions(reversed_arm, shares).set_index("hypothesis")
    assert set(table.loc[["H1, A", "H1, S"], "verdict"]) == {"not shown"}
    assert set(table.loc[["H1, A", "H1, S"], "second"]) == {"overlap"}


def test_what_counts_against_us_is_named_where_it_came(over):
    table = twins_tests.counts_against_us(over).set_index("result")["came"]
    assert not table[[name for name in table.index if "weather" not in name]].any()
    key = (over["question"] == "H1") & (over["statistic"] == "A") & (over["second"] == "teacher")
    close = over.assign(value=over["value"].where(~key, 0.14))
    assert twins_tests.counts_against_us(close).set_index("result")["came"][
        "less than .15 above teacher"
    ]


def test_statements_on_the_held_out_base_are_about_its_blocks_alone(planted):
    table = twins_tests.statements_on_held_out(planted)
    assert table["holds"].all()
    assert table["known before"].tolist() == [True] * 3 + [False] * 2
    others = {key: rows for key, rows in planted.items() if key[0] == twins_tests.HELD_OUT}
    pd.testing.assert_frame_equal(twins_tests.statements_on_held_out(others), table)


def test_a_share_that_one_base_makes_is_seen_when_it_is_left_out(planted):
    arms = {key: rows.copy() for key, rows in planted.items() if key[1] == TRUE}
    for (base, _), rows in arms.items():
        gad7 = [name for name in rows if name.startswith("source: gad7")]
        rows[gad7] = np.random.default_rng(0).normal(size=(len(rows), 7)) + 5 * (base == "mpnet")

    shares, between = twins_tests.whose_scores(arms)
    share = shares.set_index(["without", "scale"])["share"]
    assert share["", "gad7"] > 0.8
    assert share["MPNet", "gad7"] < 0.3
    assert between["bases"].tolist() == [4, 3, 3, 3, 3]


def test_a_base_where_an_arm_was_not_learned_or_blocks_are_few_has_no_say(tests):
    one = (tests["question"] == "H2") & (tests["second"] == "teacher")
    unlearned = tests.assign(learned=~(one & (tests["base"] == "mpnet")))
    few = tests.assign(blocks=np.where(one & (tests["base"] == "smollm2"), 3, tests["blocks"]))
    for changed in (unlearned, few):
        over = twins_tests.over_bases(changed)
        counts = over.set_index(["question", "second"])["bases"]
        assert counts["H2", "teacher"] == 3
        assert counts["H2", "sentiment"] == 4


def test_the_sensitivity_analysis_repeats_the_decisions_in_each_variant(planted, tests, over):
    table = twins_tests.sensitivity(planted, tests)
    left_out = {f"without {plan.BASES[base].label}" for base in twins.BLOCKS}
    assert set(table["variant"]) == {"other form", "arms not learned, too", *left_out}
    found = table.set_index(["variant", "question", "statistic", "second"])["value"]
    for form in twins_tests.OTHERS["A"]:
        assert found["other form", "H1", form, "length"] > 0.5

    planned = over.set_index(["question", "statistic", "second"])["value"]
    key = ("H1", "S", "teacher")
    assert found["arms not learned, too", *key] == pytest.approx(planned[key])
    unlearned = tests.assign(learned=tests["base"] != "mpnet")
    table = twins_tests.sensitivity(planted, unlearned).set_index(["variant", "question", "second"])
    bases = table["bases"]
    assert set(bases["arms not learned, too", "H1", "teacher"]) == {4}
    assert set(bases["without SmolLM2", "H1", "teacher"]) == {2}
    by_questionnaire = [found["other form", "H1", f"S {name}", "teacher"] for name in plan.REAL]
    assert np.average(by_questionnaire, weights=[7, 9, 13]) == pytest.approx(0.4, abs=0.03)


def test_an_arm_is_learned_that_is_more_often_right_than_its_most_frequent_class():
    rows = pd.DataFrame({"accuracy": [0.46, 0.5], "majority": [0.4, 0.4]})
    assert twins_tests.has_learned(rows)
    assert not twins_tests.has_learned(rows.assign(majority=0.45))
    assert twins_tests.has_learned(rows.assign(accuracy=0.45))


def test_agreement_between_arms_is_the_mean_correlation_in_different_blocks(planted):
    first, second = (planted["mpnet", arm].iloc[:3] for arm in (TRUE, "sentiment"))
    both = np.corrcoef(*(twins_tests.scores_of(rows).to_numpy() for rows in (first, second)))
    across = both[:3, 3:]
    expected = across[~np.eye(3, dtype=bool)].mean()
    assert twins_tests.agreement_between(first, second) == pytest.approx(expected)


def test_each_form_of_agreement_removes_what_it_names():
    items = twins_tests.scores_of(_rows(np.random.default_rng(0), 2, 0, 0, 0)).columns
    inverse = items.str.replace("source", "inverse")
    sign = np.array([[1.0], [-1.0]])

    def rows_of(source, other=0.0):
        values = np.broadcast_to(source, (2, 29)), np.broadcast_to(other, (2, 29))
        return pd.DataFrame(np.hstack(values), columns=[*items, *inverse])

    scales = twins_tests.scales_of().to_numpy()
    rows = rows_of(100 * (scales == "soc13") + sign * np.arange(29))
    assert twins_tests.agreement(rows) > 0.9
    assert twins_tests.agreement(rows, form="scale means removed") == pytest.approx(-1)
    assert twins_tests.agreement(rows, form="within scales") == pytest.approx(-1)

    keys = np.array([item.keying for name in plan.REAL for item in load_questionnaire(name).items])
    rows = rows_of(keys + sign * np.arange(29) / 1000)
    assert twins_tests.agreement(rows) > 0.9
    assert twins_tests.agreement(rows, form="scale and key means removed") == pytest.approx(-1)
    assert twins_tests.agreement(rows, form="without keys") == pytest.approx(-1)

    rows = rows_of(np.arange(29), np.array([[1], [-3]]) * np.arange(29))
    assert twins_tests.agreement(rows, form="both kinds of terms") == pytest.approx(-1)

    rows = rows_of(np.stack([np.arange(29.0), np.arange(29.0) ** 5]))
    assert twins_tests.agreement(rows) < 0.9
    assert twins_tests.agreement(rows, form="ranks") == pytest.approx(1)


@pytest.mark.parametrize("form", twins_tests.FORMS)
def test_forms_of_agreement_stay_high_where_members_share_a_profile(planted, form):
    assert 0.7 < twins_tests.agreement(planted["mpnet", TRUE], form=form) < 1
    assert abs(twins_tests.agreement(planted["mpnet", "length"], form=form)) < 0.35


def test_agreement_between_bases_is_found_where_bases_share_a_profile():
    rng = np.random.default_rng(0)
    profile = rng.normal(size=len(ITEMS))
    shared = {(base, TRUE): _rows(rng, 6, 0.8, 0.5, profile) for base in twins.BLOCKS}
    found = twins_tests.between_bases(shared)
    scores = pd.concat([twins_tests.scores_of(rows) for rows in shared.values()])
    centred = scores - scores.T.groupby(twins_tests.scales_of().to_numpy()).transform("mean").T
    base = np.repeat(np.arange(len(shared)), 6)
    is_apart = base[:, None] != base
    assert found["value"] == pytest.approx(np.corrcoef(centred)[is_apart].mean())
    assert found["value"] > 0.6
    assert found["low"] > 0
    assert found["p permuted"] < 0.001

    apart = {
        (base, TRUE): _rows(rng, 6, 0.8, 0.5, rng.normal(size=len(ITEMS))) for base in twins.BLOCKS
    }
    found = twins_tests.between_bases(apart)
    assert abs(found["value"]) < 0.2
    assert found["p permuted"] > 0.01


def test_shares_between_bases_are_tested_against_one_half():
    rng = np.random.default_rng(0)
    arms = {}
    for base in twins.BLOCKS:
        rows = _rows(rng, 8, 0.0, 0.5, np.zeros(len(ITEMS)))
        gad7 = [name for name in rows if name.startswith("source: gad7")]
        rows[gad7] += 5 * rng.normal()
        arms[base, TRUE] = rows

    shares = twins_tests.share_tests(arms).set_index("scale")
    assert shares.loc["gad7", "p"] < 0.01
    assert shares.loc[["phq9", "soc13"], "p"].gt(0.2).all()


def test_valence_of_items_is_that_of_the_plan():
    valence = twins_tests.valence_of_items()
    assert len(valence) == 43
    assert valence[[f"weather_{n}" for n in range(1, 8)]].mean() == pytest.approx(0.048, abs=5e-4)
    assert valence[[f"defects_{n}" for n in range(1, 8)]].mean() == pytest.approx(0.277, abs=5e-4)


def test_all_tables_are_written_when_all_bases_are_complete(planted, monkeypatch, tmp_path):
    monkeypatch.setattr(twins_tests, "tables_dir", lambda: tmp_path)
    monkeypatch.setattr(twins_tests, "is_complete", lambda base: True)
    monkeypatch.setattr(twins_tests, "kept_arms", lambda names, head="own": planted)
    twins_tests.write()
    names = ["levels", "tests", "over", "decisions", "against", "held-out", "sensitivity"]
    expected = {f"twin-{name}.csv" for name in (*names, "shares", "between")}
    assert {path.name for path in tmp_path.iterdir()} == expected
    levels = pd.read_csv(tmp_path / "twin-levels.csv")
    assert set(levels["base"]) == {plan.BASES[base].label for base in twins.BLOCKS}


def test_kept_arms_have_the_planned_blocks_and_all_facts_about_learning():
    arms = twins_tests.kept_arms(["gemma-3-270m"])
    true = arms["gemma-3-270m", TRUE]
    assert true.index.tolist() == [1, 2, 3, 4]
    assert (true["majority"] == 0.35).all()
    assert true["accuracy true"].equals(true["accuracy"].rename("accuracy true"))


def test_nothing_is_read_before_the_blocks_of_all_bases_are_complete(monkeypatch, tmp_path):
    monkeypatch.setattr(twins_tests, "tables_dir", lambda: tmp_path)
    monkeypatch.setattr(twins_tests, "is_complete", lambda base: base != "mpnet")
    monkeypatch.setattr(twins_tests, "kept_arms", None)
    with pytest.raises(ValueError, match="mpnet"):
        twins_tests.write()
    assert not [*tmp_path.iterdir()]
