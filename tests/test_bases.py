"""The study of six bases: its harness on tiny models, its criterion, and its combination."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from scipy.special import softmax

import psychometrics as pm
from psychometrics.measures.reliability import alphas
from psychometrics.models.embedded import worded
from psychometrics.models.loading import load_model
from psychometrics.models.vectors import last_states, pair_vectors
from psychometrics.nulls.respondents import head_logits
from recipes.six_bases import (
    comparisons,
    plan,
    progress,
    reading,
    runs,
    storage,
    tables,
    training,
)
from recipes.six_bases import criterion as criteria
from recipes.six_bases.plan import Base, Member
from tests.tiny import save_tiny_decoder

PLANNED = dict(plan.BASES)
PLANNED_PARTS = {name: getattr(plan, name) for name in ("NULLS", "ASKED", "REAL")}
WORDS = ("good", "bad", "calm", "tense", "warm", "cold")


@pytest.fixture(scope="module")
def study(tiny_model, tmp_path_factory):
    """Two tiny bases whose members of one block are made, of few pairs and two questionnaires."""
    folder = tmp_path_factory.mktemp("bases")
    decoder = save_tiny_decoder(folder / "tiny-llama", spread=1)
    rows = [(f"I am {a}.", f"I am {b}.", n % 3) for n, a in enumerate(WORDS) for b in WORDS]
    pairs = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    names = {str(tiny_model): Base("tiny encoder", 1), str(decoder): Base("tiny decoder", 1)}
    (folder / "data").mkdir()
    storage._places.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        small = {"PAIRS": 32, "TRIED": 32, "HEAD_STEPS": 20, "RATES": (1e-3, 2e-3)}
        for name, value in (small | {"pool": lambda part: pairs}).items():
            patch.setattr(training, name, value)

        for name in ("NULLS", "ASKED", "REAL"):
            patch.setattr(plan, name, ("challenges", "gad7"))

        patch.setattr(plan, "BASES", names)
        patch.setattr(plan, "DRAWN", 4)
        patch.setattr(runs, "drawn_words", lambda base, rng: rng.normal(size=(3, 32)))
        patch.setattr(plan, "cache_dir", lambda: folder / "cache")
        patch.setattr(tables, "HEADS", 4)
        patch.setattr(storage, "OWN_HEADS", 4)
        patch.setattr(tables, "EXPECTED", {("challenges", "gad7"): 1})
        patch.setattr(plan, "data_dir", lambda: folder / "data")
        runs.run()
        yield names

    storage._places.cache_clear()


def test_a_run_makes_every_member_once_and_a_second_run_nothing(study, monkeypatch):
    for base in study:
        assert progress.is_read(base)
        assert progress.is_complete(base)
    made = sorted((plan.cache_dir()).rglob("*.*"))
    times = [path.stat().st_mtime_ns for path in made]
    monkeypatch.setattr(training, "train", None)
    runs.run()
    assert [path.stat().st_mtime_ns for path in made] == times


def test_members_whose_rows_are_kept_are_not_made_again_when_the_cache_is_lost(
    study, monkeypatch, tmp_path
):
    before = {base: storage.rows_path(base).read_bytes() for base in study}
    monkeypatch.setattr(plan, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(runs, "read_untouched", lambda base: None)
    monkeypatch.setattr(training, "make", None)
    runs.run()
    assert {base: storage.rows_path(base).read_bytes() for base in study} == before


def test_a_run_of_one_base_leaves_the_other_alone(study, monkeypatch):
    longer = {name: base._replace(blocks=2) for name, base in study.items()}
    monkeypatch.setattr(plan, "BASES", longer)
    made = []
    monkeypatch.setattr(runs, "make", made.append)
    base = next(iter(study))
    runs.run([base])
    assert {member.base for member in made} == {base}
    assert len(made) == 2 * len(plan.GROUPS)


def test_rows_of_another_plan_or_of_other_prompts_are_refused(study, monkeypatch):
    base = next(iter(study))
    assert len(storage.kept_rows(base))
    for name in storage.digests():
        other = storage.digests() | {name: "other"}
        with monkeypatch.context() as patch:
            patch.setattr(storage, "digests", lambda *study, other=other: other)
            with pytest.raises(ValueError, match=f"rows of another {name}"):
                storage.kept_rows(base)


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_statistics_from_kept_rows_are_those_of_the_answers(study, family):
    base = list(study)[family == "decoder"]
    real = sum(len(plan.prompted(name)) for name in plan.REAL)
    for group in plan.GROUPS:
        folder = plan.folder_of(base) / f"{group}-1"
        for head in storage.heads_of(group):
            cell = tables.Cell(base, group, head, [1])
            logits = _logits(base, folder, head)
            scores = storage.scored(logits[:, :real])
            for kind, kept in zip(storage.KINDS, cell.scores, strict=True):
                assert kept[0] == pytest.approx(scores[kind].mean(axis=0), abs=1e-7)

            row = cell.rows.iloc[0]
            criterion = criteria.criterion(softmax(logits[:, real:], axis=2)[..., 0])
            expected = criterion.mean().to_dict() | {
                "silhouette": scores["silhouette"].mean(),
                "silhouette as answered": storage.scored(logits[:, :real], None)[
                    "silhouette"
                ].mean(),
                "silhouette gad7": scores["silhouette"][:, -7:].mean(),
                "decisiveness": scores["decisiveness"].mean(),
            }
            assert row[list(expected)].to_dict() == pytest.approx(expected, abs=1e-6)


def _logits(base, folder, head):
    """Return a respondent's logits from the files that training leaves in the cache."""
    if head == "untrained":
        vectors = load_file(folder / "vectors.safetensors")["prompts"].numpy()
        linear = "llama" in base
        numbers = range(30_000 + storage.OWN_HEADS, 30_000 + 2 * storage.OWN_HEADS)
        return np.stack(
            [head_logits(vectors, np.random.default_rng([0, n]), linear) for n in numbers]
        )
    answers = pd.read_parquet(folder / "answers.parquet")
    return np.log(answers.loc[answers["head"] == head, ["e", "n", "c"]].to_numpy(float))[None]


def test_a_row_has_scores_of_the_planned_items_and_of_placebos(tmp_path, monkeypatch):
    for name, value in (PLANNED_PARTS | {"BASES": PLANNED}).items():
        monkeypatch.setattr(plan, name, value)

    storage._places.cache_clear()
    prompted = plan.asked_of_members()
    shares = np.random.default_rng(0).dirichlet([1, 1, 1], len(prompted)).astype("float32")
    answers = pd.DataFrame(shares, columns=["e", "n", "c"]).assign(head="own")
    answers.to_parquet(tmp_path / "answers.parquet")
    facts = dict.fromkeys(storage.FACTS, 1.0) | {"accuracy, own": 0.5}
    facts["prompts"] = training.prompts_digest(prompted)
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    row = storage.respondent_row(Member("embedded", "inference", 1), "own", tmp_path)
    table = pd.DataFrame([row])
    items = [name for name in row if name.startswith("silhouette: ")]
    real = storage.item_scores(table, "silhouette")
    assert real.shape == (1, 29)
    assert row["silhouette"] == pytest.approx(real.mean())
    assert row["silhouette gad7"] == pytest.approx(real[:, :7].mean())
    assert len(items) == 29 + 7 + 7
    assert not table.isna().to_numpy().any()


def test_the_analysis_needs_nothing_but_kept_rows(study, monkeypatch, tmp_path):
    blocks = {base: [1] for base in study}
    whole = tables.member_tables(blocks)
    monkeypatch.setattr(plan, "cache_dir", lambda: tmp_path)
    alone = tables.member_tables(blocks)
    assert alone.keys() == whole.keys()
    for name, table in whole.items():
        pd.testing.assert_frame_equal(alone[name], table)


def test_nulls_of_bases_that_are_not_read_here_stay_in_the_tables(study, monkeypatch):
    folder = plan.tables_dir()
    tables.write()
    names = ("nulls", "items")
    paths = [folder.parent / "kernels.csv", *(folder / f"{name}.csv" for name in names)]
    before = [path.read_bytes() for path in paths]
    last = list(study)[-1]
    monkeypatch.setattr(progress, "is_read", lambda base: base == last)
    tables.write()
    assert [path.read_bytes() for path in paths] == before
    for path in folder.glob("*.csv"):
        if not path.name.startswith(("members-", *names, "words")):
            path.unlink()


def test_members_of_a_block_differ_in_what_adapted_them_and_share_their_start(study):
    base = next(iter(study))
    facts = plan.folder_of(base)
    vectors = {
        group: load_file(facts / f"{group}-1" / "vectors.safetensors")["prompts"]
        for group in plan.GROUPS
    }
    untouched = plan.untouched(base, "challenges")
    part = vectors["untouched"][: len(untouched)].numpy()
    assert part == pytest.approx(untouched, abs=1e-5)
    for group in set(plan.GROUPS) - {"untouched"}:
        assert not torch.allclose(vectors[group], vectors["untouched"], atol=1e-3), group

    answers = pd.read_parquet(facts / "shuffled-1" / "answers.parquet")
    assert set(answers["head"]) == {"own", "refitted"}
    assert answers[["e", "n", "c"]].sum(axis=1).to_numpy() == pytest.approx(1, abs=1e-5)


def test_a_member_that_was_stopped_after_training_is_asked_without_being_trained_again(
    study, monkeypatch, tmp_path
):
    base = next(iter(study))
    member = Member(base, "inference", 1)
    prompted = plan.asked_of_members()
    folder = tmp_path / "one"
    whole = training.make(member, prompted, folder)
    before = pd.read_parquet(folder / "answers.parquet")
    (folder / "facts.json").unlink()
    (folder / "answers.parquet").unlink()
    monkeypatch.setattr(training, "train", None)
    again = training.make(member, prompted, folder)
    assert again["last loss"] == whole["last loss"]
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "answers.parquet"), before)


def test_a_rate_at_which_training_breaks_down_is_not_chosen(study, monkeypatch, tmp_path):
    monkeypatch.setattr(plan, "data_dir", lambda: tmp_path)
    losses = {1e-3: [1.0, 0.9], 2e-3: [1.0, float("nan")]}
    monkeypatch.setattr(training, "train", lambda *given: losses[given[-1]])
    base = next(iter(study))
    assert training.learning_rate(base) == 1e-3


def test_shuffled_labels_keep_pairs_and_counts_and_hypotheses_lose_their_premises():
    rows = [(f"p{n}", f"h{n}", n % 3) for n in range(60)]
    pairs = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    true, shuffled, alone = (
        training.drawn(Member("any", group, 4), pairs, 30)
        for group in ("inference", "shuffled", "hypotheses")
    )
    assert shuffled["premise"].tolist() == true["premise"].tolist()
    assert shuffled["label"].value_counts().to_dict() == true["label"].value_counts().to_dict()
    assert shuffled["label"].tolist() != true["label"].tolist()
    assert set(alone["premise"]) == {""}
    assert alone["label"].tolist() == true["label"].tolist()


def test_the_order_has_a_block_of_every_base_before_the_next_and_all_in_the_end(
    monkeypatch,
):
    monkeypatch.setattr(plan, "BASES", PLANNED)
    turns = list(progress.order())
    planned = {
        name: base.blocks * len(plan.GROUPS) for name, base in plan.BASES.items() if base.blocks
    }
    counts = pd.Series([member.base for turn in turns for member in turn]).value_counts()
    assert counts.to_dict() == planned
    assert {member.base for member in turns[0]} == {
        "embedded", "mpnet", "smollm2", "gemma-3-270m"
    }  # fmt: skip
    assert len({member for turn in turns for member in turn}) == sum(planned.values())


def test_the_criterion_is_one_for_who_reads_the_premise_and_zero_on_average_for_random_heads():
    table = criteria.criterion_prompts()
    sign = np.where(table["end"] == "always", 1.0, -1.0)
    sides = {"plain": 1, "true": 1, "not true": -1, "always": 1, "never": -1, "bus +": 0,
             "bus -": 0, "first": -1, "second": 1}  # fmt: skip
    judge = np.exp(sign * table["version"].map(sides).to_numpy() - 3)
    found = criteria.criterion(np.stack([judge, 0.05 / judge]))
    columns = ["negation", "relevance", "sentences"]
    assert found.loc[0, columns].to_numpy(float) == pytest.approx(1)
    assert found.loc[1, columns].to_numpy(float) == pytest.approx(-1)

    vectors = np.random.default_rng(0).normal(size=(len(table), 30))
    heads = [head_logits(vectors, np.random.default_rng(n), linear=True)[:, 0] for n in range(300)]
    shares = np.exp(np.stack(heads)) / 3
    assert abs(criteria.criterion(shares)["criterion"].mean()) < 0.03


def test_who_ignores_the_premise_does_not_meet_the_criterion():
    table = criteria.criterion_prompts()
    codes, _ = pd.factorize(table["hypothesis"])
    shares = np.random.default_rng(0).uniform(0.1, 0.9, codes.max() + 1)[codes]
    assert criteria.criterion(shares[None]).iloc[0].tolist() == [0, 0, 0, 0]


def test_an_analysis_waits_for_complete_bases_and_an_interim_one_says_so(study, monkeypatch):
    folder = plan.tables_dir()
    longer = {name: base._replace(blocks=3) for name, base in study.items()}
    monkeypatch.setattr(plan, "BASES", longer)
    tables.write()
    written = {path.stem for path in folder.iterdir()}
    kept = {f"{kind}-{Path(base).name}" for kind in ("members", "rates") for base in study}
    assert written - kept == {"items", "nulls", "words", "words-components"}
    tables.write(interim=True)
    assert pd.read_csv(folder / "interim-members.csv")["interim"].all()
    assert not (folder / "members.csv").exists()

    runs.run()
    tables.write()
    tests = pd.read_csv(folder / "tests.csv")
    assert set(tests["hypothesis"]) == {f"H{n}" for n in range(1, 8)}
    single = tests[~tests["statistic"].isin(comparisons.GROUP_STATISTICS)]
    assert single["low"].le(single["value"]).all()
    assert single["value"].le(single["high"]).all()
    assert not pd.read_csv(folder / "members.csv")["interim"].any()
    over = pd.read_csv(folder / "combined.csv")
    assert set(over["bases"]) == {"all"}
    assert over["n"].eq(2).all()


def test_primary_bases_are_combined_when_all_are_complete_and_not_before(monkeypatch):
    monkeypatch.setattr(plan, "BASES", PLANNED)
    rows = [
        {"base": plan.BASES[name].label, "hypothesis": hypothesis, "statistic": "silhouette",
         "value": 0.1 * number, "error": 0.05, "learned": True}
        for number, name in enumerate(comparisons.PRIMARY, 1)
        for hypothesis in ("H2", "H5")
    ]  # fmt: skip
    by_base = pd.DataFrame(rows)
    three = comparisons.over_bases(by_base[by_base["base"] != plan.BASES["gemma-3-270m"].label])
    assert three.empty

    four = comparisons.over_bases(by_base)
    primary = four[four["bases"] == "primary"].set_index("hypothesis")
    assert primary["value"].to_list() == pytest.approx([0.25, 0.25])
    assert primary["n"].eq(4).all()
    assert primary["holm"].notna().to_dict() == {"H2": True, "H5": False}


def test_closed_form_alpha_is_that_of_simulated_heads_on_the_same_vectors(study):
    base = next(iter(study))
    loaded = [pm.load_questionnaire(name) for name in plan.NULLS]
    kernels = tables.kernel_rows("tiny", base, "prompts").set_index(["statistic", "scale"])
    vectors = np.concatenate([plan.untouched(base, name) for name in plan.NULLS])
    heads = storage.drawn_heads(vectors, 0, 400, linear=True)
    source = storage.scored(heads, None)["source"][:, -len(loaded[1].items) :]
    alpha = np.squeeze(alphas(np.cov(source.T)[None]))
    assert kernels.loc[("alpha", "gad7"), "value"] == pytest.approx(float(alpha), rel=0.1)


def test_the_table_of_alphas_without_training_has_every_base_of_the_plan():
    table = pd.read_csv(pm.paths.data_dir() / "kernels.csv")
    labels = ["MiniLM, 4 layers", "MiniLM, 6 layers", "SmolLM2", "MPNet"]
    labels += ["Gemma 3 270M", "Qwen2.5 0.5B", "Qwen2.5 1.5B"]
    alpha = table.query("statistic == 'alpha'").pivot(index="scale", columns="base")["value"]
    assert alpha[labels].notna().all().all()
    assert len(alpha) == 10


def test_a_common_size_makes_answers_as_decided_and_leaves_their_order(study):
    logits = (
        np.random.default_rng(0).normal(size=(3, 2832, 3)) * np.array([0.1, 1, 9])[:, None, None]
    )
    storage._places.cache_clear()
    found = storage.scored(logits)
    assert found["decisiveness"] == pytest.approx([0.08, 0.8, 7.2], rel=0.1)
    larger = storage.scored(logits * 5)
    assert larger["silhouette"] == pytest.approx(found["silhouette"], abs=1e-9)


def test_bases_that_agree_have_no_variance_between_and_those_that_do_not_a_wider_interval():
    variances = np.full(4, 0.01)
    alike = comparisons.combined(np.array([0.2, 0.21, 0.19, 0.2]), variances)
    apart = comparisons.combined(np.array([-0.4, 0.8, 0.1, 0.3]), variances)
    assert alike["between"] == 0
    assert apart["between"] > 0.3
    assert apart["high"] - apart["low"] > alike["high"] - alike["low"]


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_remembered_lower_layers_and_trees_of_texts_leave_vectors_as_they_are(
    family, tiny_model, tmp_path
):
    decodes = family == "decoder"
    base = save_tiny_decoder(tmp_path / "llama", spread=1) if decodes else tiny_model
    pairs = [(f"I am {a}.", f"I am {b} and {a}.") for a in WORDS for b in WORDS]
    model, tokenizer = load_model(base, "causal" if decodes else "encoder")

    if decodes:
        expected = last_states(model, tokenizer, worded(pairs, training.WORDING))
    else:
        expected = pair_vectors(model, tokenizer, pairs)[-1]

    for number in range(2):  # the second reads what the first remembered
        remembered = len(reading.lower_states(str(base), 1))
        adapted = training.Adapted(str(base), 1)
        found = adapted.reader()(pairs)
        assert np.allclose(found, expected, atol=1e-5)
        assert bool(remembered) == bool(number)


def test_training_on_remembered_lower_layers_has_the_same_losses(study, tiny_model):
    member = Member(str(tiny_model), "inference", 5)
    pairs = training.pool("train")[:32]
    losses = [
        training.train(member, training.Adapted(member.base, 5), pairs, 1e-3) for _ in range(2)
    ]
    assert reading.lower_states(member.base, 5)
    assert losses[0] == losses[1]


class Simulated:
    """A cell whose members are drawn around a mean; alpha is the mean of a column."""

    def __init__(self, mean: float, noise: np.ndarray, accuracy: float = 0.6) -> None:
        self.rows = pd.DataFrame({"block": range(len(noise)), "silhouette": mean + noise})
        self.rows["criterion"] = self.rows["silhouette"]
        self.rows["accuracy"] = accuracy
        for score in (*comparisons.SCORES, *plan.REAL):
            self.rows[f"silhouette {score}"] = self.rows["silhouette"]

    def statistics(self, chosen):
        mean = self.rows["silhouette"].to_numpy()[chosen].mean()
        return dict.fromkeys(comparisons.GROUP_STATISTICS, mean)


def _simulated_cells(seed, effect, names=comparisons.PRIMARY, accuracy=0.6, blocks=8):
    """Members whose own heads gain the effect by inference, and nothing else by anything."""
    rng = np.random.default_rng(seed)
    cells = {}
    for base in names:
        shared = rng.normal(0, 0.1, blocks)  # members of a block share their pairs
        for group in plan.GROUPS:
            for head in storage.heads_of(group):
                gain = effect if (group, head) == comparisons.INFERENCE else 0.0
                noise = shared + rng.normal(0, 0.05, blocks)
                cells[base, group, head] = Simulated(gain, noise, accuracy)
    return cells


@pytest.fixture
def planned(monkeypatch):
    only = {name: PLANNED[name] for name in comparisons.PRIMARY}
    monkeypatch.setattr(plan, "BASES", only)


def test_planted_effects_are_recovered_and_others_are_zero(planned):
    cells = _simulated_cells(1, 0.3)
    tests = comparisons.by_base(cells, comparisons.PRIMARY)
    over = comparisons.over_bases(tests).query("bases == 'primary'").set_index("hypothesis")
    planted = over.loc[["H1", "H2", "H4", "H7"]]
    assert planted["value"].to_numpy() == pytest.approx(0.3, abs=0.03)
    assert set(planted["verdict"]) == {"higher"}
    assert over.loc[["H3", "H5", "H6"], "value"].to_numpy() == pytest.approx(0, abs=0.03)

    # The jackknife of a mean is the t interval of its members.
    one = tests[tests["base"] == PLANNED["mpnet"].label].set_index("hypothesis")
    first, second = (
        cells["mpnet", *key].rows["silhouette"]
        for key in (comparisons.INFERENCE, comparisons.SHUFFLED)
    )
    gaps = first - second
    assert one.loc["H2", "value"] == pytest.approx(gaps.mean())
    assert one.loc["H2", "error"] == pytest.approx(gaps.std() / np.sqrt(len(gaps)))


def test_without_an_effect_one_test_in_twenty_is_significant(planned):
    rng = np.random.default_rng(0)
    alone = []
    over = []
    for _ in range(200):
        gaps = [
            comparisons.difference(
                *(Simulated(0, rng.normal(0, 0.1, 8)) for _ in range(2)), "silhouette"
            )
            for _ in comparisons.PRIMARY
        ]
        alone.append(gaps[0]["p"] < 0.05)
        values = np.array([gap["value"] for gap in gaps])
        errors = np.array([gap["error"] for gap in gaps])
        over.append(comparisons.combined(values, errors**2)["p"] < 0.05)

    # 5 % of 200, plus or minus three standard errors
    assert 0.004 < np.mean(alone) < 0.097
    assert 0.004 < np.mean(over) < 0.097


def test_a_base_whose_members_learned_nothing_has_no_say_in_the_criterion(planned):
    cells = _simulated_cells(2, 0.3)
    cells |= _simulated_cells(3, 0.3, ["mpnet"], accuracy=0.40)
    tests = comparisons.by_base(cells, comparisons.PRIMARY)
    criterion = tests[tests["hypothesis"] == "H1"].set_index("base")
    assert not criterion.loc[PLANNED["mpnet"].label, "learned"]
    assert criterion["holm"].notna().sum() == 1  # Gemma alone is held out and has learned
    over = comparisons.over_bases(tests).set_index(["bases", "hypothesis"])["n"]
    assert over["primary", "H1"] == 3
    assert (over["primary"].drop("H1") == 4).all()


def test_the_criterion_on_held_out_bases_is_corrected_by_holm_over_the_two(planned):
    tests = comparisons.by_base(_simulated_cells(4, 0.05), comparisons.PRIMARY)
    corrected = tests.dropna(subset="holm")
    assert set(corrected["base"]) == {PLANNED[name].label for name in comparisons.HELD_OUT}
    low, high = corrected.sort_values("p")["holm"]
    p = sorted(corrected["p"])
    assert low == pytest.approx(min(2 * p[0], 1))
    assert high == pytest.approx(max(2 * p[0], p[1]))
    first_alone = comparisons.by_base(_simulated_cells(4, 0.05), ["embedded", "mpnet"])
    assert first_alone["holm"].isna().all()


def test_a_group_meets_the_bar_above_zero_and_above_shuffled_labels(planned):
    cells = _simulated_cells(5, 0.3)
    cells["mpnet", "hypotheses", "own"].rows["criterion"] += 0.5
    cells["mpnet", "shuffled", "own"].rows["criterion"] += 0.5
    bar = comparisons.bar(cells, ["mpnet", "embedded"]).set_index(["base", "group", "head"])
    label = PLANNED["embedded"].label
    assert bar.loc[(label, *comparisons.INFERENCE), "meets the bar"]
    assert not bar.loc[(label, *comparisons.SHUFFLED), "meets the bar"]
    mpnet = bar.loc[PLANNED["mpnet"].label]["meets the bar"]
    assert not mpnet["inference", "own"]  # above zero, and below shuffled labels
    assert mpnet["shuffled", "own"]  # what speaks against the criterion
    assert not mpnet["hypotheses", "own"]


def test_sensitivity_has_every_score_of_the_plan_and_leaves_each_base_out(planned):
    cells = _simulated_cells(6, 0.3)
    tests = comparisons.by_base(cells, comparisons.PRIMARY)
    table = comparisons.sensitivity(cells, tests, comparisons.PRIMARY)
    labels = [PLANNED[name].label for name in comparisons.PRIMARY]
    others = {*comparisons.SCORES, *plan.REAL, comparisons.STARTING}
    assert set(table["variant"]) == others | {f"without {label}" for label in labels}
    left_out = table[table["variant"] == f"without {labels[1]}"].set_index("hypothesis")
    rest = tests[(tests["hypothesis"] == "H2") & (tests["base"] != labels[1])]
    expected = comparisons.combined(rest["value"].to_numpy(), rest["error"].to_numpy() ** 2)
    assert left_out.loc["H2", "value"] == pytest.approx(expected["value"])
    assert tests.loc[tests["statistic"] == "silhouette", "wilcoxon"].notna().all()


@pytest.mark.parametrize("intercepts", ["base", "block"])
def test_an_effect_that_is_all_decisiveness_is_gone_once_it_is_adjusted(intercepts):
    rng = np.random.default_rng(7)
    parts = []
    for base, block in [(base, block) for base in ("one", "two") for block in range(12)]:
        level = rng.normal()
        for group, shift in (("shuffled", 0.0), ("inference", 2.0), ("hypotheses", 1.0)):
            decided = shift + rng.normal(0, 0.5)
            value = level + decided + rng.normal(0, 0.05)
            parts.append((base, block, group, "own", value, value, decided, rng.uniform(0.3, 0.6)))

    names = ["base", "block", "group", "head", "silhouette as answered", "criterion",
             "decisiveness", "accuracy"]  # fmt: skip
    found = comparisons.adjusted(pd.DataFrame(parts, columns=names))
    rows = found[(found["intercepts"] == intercepts) & (found["statistic"] == "criterion")]
    rows = rows.set_index("adjusted")
    assert rows.loc[False, "low"] > 1
    if intercepts == "block":
        assert rows.loc[True, "value"] == pytest.approx(0, abs=0.15)
        widths = rows["high"] - rows["low"]
        assert widths[True] < 0.5
