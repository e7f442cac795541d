"""The twin test: its arms have the members of six bases with other labels, and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

from psychometrics.paths import data_dir
from recipes import twins, twins_tests
from recipes.six_bases import plan, storage, training
from recipes.six_bases.labels import ARMS, half_permuted, of_teacher, of_texts
from recipes.six_bases.plan import Base, Member
from tests.test_data import needs_nli_text

WORDS = ("good", "bad", "calm", "tense", "warm", "cold")


@pytest.fixture
def tiny(tiny_model, tmp_path, monkeypatch):
    """A tiny base with two blocks, of which nothing has been trained."""
    rows = [(f"I am {a}.", f"I am {b}.", n % 3) for n, a in enumerate(WORDS) for b in WORDS]
    pairs = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    storage._places.cache_clear()
    small = {"PAIRS": 32, "TRIED": 32, "RATES": (1e-3,), "pool": lambda part: pairs}
    for name, value in small.items():
        monkeypatch.setattr(training, name, value)

    for name in ("ASKED", "REAL"):
        monkeypatch.setattr(plan, name, ("challenges",))

    for module in (plan, training):
        monkeypatch.setattr(module, "cache_dir", lambda: tmp_path / "cache")

    (tmp_path / "data").mkdir()
    monkeypatch.setattr(plan, "data_dir", lambda: tmp_path / "data")
    monkeypatch.setattr(storage, "OWN_HEADS", 2)
    monkeypatch.setattr(plan, "BASES", {str(tiny_model): Base("tiny encoder", 2)})
    monkeypatch.setattr(twins, "BLOCKS", {str(tiny_model): 2})
    yield str(tiny_model)
    storage._places.cache_clear()


@pytest.mark.parametrize("arm", ["length", "teacher"])
def test_a_member_of_an_arm_with_the_true_labels_is_the_member_on_inference(
    tiny, tmp_path, monkeypatch, arm
):
    prompted = plan.asked_of_members()
    answers = {}
    for group in (arm, "inference"):
        training.make(Member(tiny, group, 1), prompted, tmp_path / "other labels" / group)
        answers[group] = pd.read_parquet(tmp_path / "other labels" / group / "answers.parquet")

    assert not answers[arm][["e", "n", "c"]].equals(answers["inference"][["e", "n", "c"]])

    true = training.pool("train")["label"].to_numpy()
    for name in ("of_texts", "of_teacher"):
        monkeypatch.setattr(training, name, lambda *given: true)

    training.make(Member(tiny, arm, 1), prompted, tmp_path / "true labels")
    again = pd.read_parquet(tmp_path / "true labels" / "answers.parquet")
    pd.testing.assert_frame_equal(again, answers["inference"])


@pytest.mark.parametrize("arm", ARMS)
def test_the_pairs_of_an_arm_are_those_of_inference_in_the_same_order(tiny, arm):
    texts = ["premise", "hypothesis"]
    members = Member(tiny, arm, 2), Member(tiny, "inference", 2)
    other, true = (
        training.drawn(member, training.relabelled(member, "train"), 30) for member in members
    )
    pd.testing.assert_frame_equal(other[texts], true[texts])
    assert set(other["label"]) <= {0, 1, 2}
    assert other["label"].tolist() != true["label"].tolist()


@needs_nli_text
def test_the_code_repeats_a_kept_member_on_true_labels(tmp_path):
    member = Member("embedded", "inference", 1)
    facts = training.make(member, plan.prompted(plan.CRITERION), tmp_path)
    answers = pd.read_parquet(tmp_path / "answers.parquet")[["e", "n", "c"]].to_numpy(float)
    criterion = storage.criterion_of(np.log(answers)[None]).iloc[0]
    kept = storage.kept_rows("embedded").query(
        "group == 'inference' and block == 1 and head == 'own'"
    )
    expected = kept.iloc[0][criterion.index.tolist()].to_dict()
    assert criterion.to_dict() == pytest.approx(expected, abs=1e-4)
    assert facts["last loss"] == pytest.approx(kept["last loss"].item(), abs=1e-4)
    assert facts["accuracy, own"] == pytest.approx(kept["accuracy"].item(), abs=0.003)


def test_rows_of_arms_have_their_own_table_and_a_second_run_makes_nothing(tiny, monkeypatch):
    monkeypatch.setattr(twins, "KEPT", ())
    twins.run([tiny])
    table = storage.kept_rows(tiny, storage.TWINS)
    planned = set(twins.arms(tiny))
    assert "premise sentiment" not in planned
    assert table.groupby(["group", "block"])["head"].agg(set).to_dict() == {
        (arm, block): {"own", "untrained"} for arm in planned for block in (1, 2)
    }
    assert not storage.rows_path(tiny).exists()
    own = table[table["head"] == "own"]
    assert own[["accuracy", "accuracy true", "majority"]].notna().all(axis=None)
    assert set(own["device"]) == {"cpu"}
    items = [name for name in table if name.startswith("source: ")]
    assert len(items) == len(storage._places(("challenges",)))

    monkeypatch.setattr(training, "train", None)
    before = storage.rows_path(tiny, storage.TWINS).read_bytes()
    twins.run([tiny])
    assert storage.rows_path(tiny, storage.TWINS).read_bytes() == before


def test_a_block_of_all_arms_is_complete_before_the_next_begins(tiny):
    members = list(twins.order(tiny))
    arms = twins.arms(tiny)
    assert [member.block for member in members] == [1] * len(arms) + [2] * len(arms)
    assert [member.group for member in members] == [*arms, *arms]


def test_the_digest_of_the_plan_leaves_out_its_commit_and_deviations():
    fields = yaml.safe_load((data_dir() / storage.TWINS.plan).read_text(encoding="utf-8"))
    assert {*storage.TWINS.notes} < {*fields}
    assert storage.plan_digest(storage.TWINS) != storage.plan_digest()


def test_the_plan_names_the_arms_and_blocks_of_the_code():
    fields = yaml.safe_load((data_dir() / storage.TWINS.plan).read_text(encoding="utf-8"))
    assert {*fields["arms"]} - {"rule", "classes"} == {*twins.KEPT, *ARMS}
    planned = [*fields["blocks"].values()]
    assert planned == [12, 8, 6, 6, 4]
    assert [*twins.BLOCKS.values()] == [12, 8, 4, 4]  # the rest is among the deviations
    assert "noise" in twins.arms("mpnet")
    assert "noise" not in twins.arms("smollm2")


# --- labels

PAIRS = pd.DataFrame(
    {
        "premise": ["A man eats a red apple.", "Two dogs run.", "It is a wonderful day."],
        "hypothesis": ["A man eats.", "Two dogs sleep in the terrible heat.", "They love it."],
        "label": [0, 2, 1],
    }
)


@pytest.mark.parametrize(
    ("arm", "labels"),
    [
        ("overlap", [0, 2, 1]),  # 3 of 3 words, 2 of 7, 1 of 3
        ("length", [0, 2, 1]),  # 11, 37 and 13 characters
        ("sentiment", [1, 2, 0]),
        ("premise sentiment", [1, 1, 0]),
    ],
)
def test_labels_of_texts_follow_the_words_of_the_pair(arm, labels):
    assert of_texts(arm, PAIRS, PAIRS).tolist() == labels


def test_limits_come_from_the_training_pool_and_ties_stay_together():
    train = pd.DataFrame({"hypothesis": ["a" * n for n in (1, 5, 5, 5, 9, 9)]})
    other = pd.DataFrame({"hypothesis": ["a" * n for n in (2, 5, 6, 7, 99)]})
    # The limits are the values at places 5/3 and 10/3 of the sorted lengths: 5 and 6.33.
    assert of_texts("length", other, train).tolist() == [0, 0, 1, 2, 2]


@pytest.mark.parametrize("linear", [True, False])
def test_a_teacher_takes_the_class_with_the_greatest_standardised_logit(linear):
    rng = np.random.default_rng(0)
    train = rng.normal(3, 1, size=(600, 16)).astype("float32")
    labels = of_teacher(40_000, linear, train[:50], train)
    drawn = np.random.default_rng([0, 40_000])
    layers = [drawn.normal(0, 0.02, (16, size)) for size in ([3] if linear else [16, 3])]
    logits = (train if linear else np.tanh(train @ layers[0])) @ layers[-1]
    z = (logits - logits.mean(axis=0)) / logits.std(axis=0)
    assert labels.tolist() == z[:50].argmax(axis=1).tolist()
    assert np.bincount(z.argmax(axis=1), minlength=3).min() > 100

    other = of_teacher(40_001, linear, train, train)
    same = (other == z.argmax(axis=1)).mean()
    assert 0.2 < same < 0.5


def test_noise_permutes_the_labels_of_half_of_the_pairs():
    labels = pd.Series(np.arange(2000))
    noisy = half_permuted(labels, 3)
    moved = noisy != labels
    assert sorted(noisy) == labels.tolist()
    assert 990 <= moved.sum() <= 1000
    assert half_permuted(labels, 3).tolist() == noisy.tolist()
    assert half_permuted(labels, 4).tolist() != noisy.tolist()


# --- power


def test_the_test_of_a_share_between_bases_holds_its_level():
    rng = np.random.default_rng(0)
    base = rng.normal(0, np.sqrt(0.5), (4000, 5))
    parts = [base[:, [k]] + rng.normal(0, np.sqrt(0.5), (4000, 7)) for k in range(5)]
    p = twins_tests.p_of_share(parts)
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.015)


# --- what the kept rows say


def test_agreement_of_kept_rows_is_the_mean_of_correlations():
    for base in ("embedded", "gemma-3-270m"):
        rows = storage.kept_rows(base).query("group == 'inference' and head == 'own'")
        scores = storage.item_scores(rows, "source")
        pairs = np.corrcoef(scores)[np.triu_indices(len(scores), 1)]
        table = pd.read_csv(plan.tables_dir() / "agreement.csv").fillna({"less": ""})
        row = table.query("group == 'inference' and items == 'real' and less == ''")
        value = row.set_index("base").loc[plan.BASES[base].label, "value"]
        assert value == pytest.approx(pairs.mean(), abs=1e-4)


def test_the_share_between_bases_is_that_of_the_mean_squares():
    # Means 2 and 6, mean squares 16 between and 2 within, two members in each group.
    parts = [np.array([1.0, 3.0]), np.array([5.0, 7.0])]
    assert twins_tests.share_between(parts) == pytest.approx((16 - 2) / (16 + 2))
    # F of 8 with 1 and 2 degrees of freedom, whose 97.5 % point is 38.506 and 2.5 % point .0012508.
    low, high = 8 / 38.506, 8 / 0.0012508
    expected = [(low - 1) / (low + 1), (high - 1) / (high + 1)]
    assert twins_tests.share_interval(parts) == pytest.approx(expected, rel=1e-3)
    uneven = [np.array([0.0, 2.0, 4.0]), np.array([5.0])]
    # Mean squares 6.75 and 4; the mean group size is (4 - 10 / 4) / 1 = 1.5.
    assert twins_tests.share_between(uneven) == pytest.approx(2.75 / (6.75 + 0.5 * 4))
