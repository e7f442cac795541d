"""The tables of a population: each statistic, its null on own bases, and what cannot be judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics.cli import app
from psychometrics.measures.scoring import keyed_items
from psychometrics.measures.validity import term_silhouettes
from psychometrics.reports.populations import tabulate
from tests.families import save_family

ASKED = ["challenges", "placebo_weather"]
POPULATIONS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory, save_tiny_model) -> Path:
    """Eight models on one base, one on another, and one whose base nobody names."""
    folder = tmp_path_factory.mktemp("eighty-eight")
    save_family(folder, "bert")
    save_family(folder, "roberta")
    names = ["bert", "roberta", "lost"]
    for seed in range(1, 8):
        model = save_tiny_model(folder / f"bert-{seed}", "bert", seed=seed)
        (model / "manifest.json").write_text(json.dumps({"base": str(folder / "bert-base")}))
        names.append(model.name)

    save_tiny_model(folder / "lost", "bert", seed=9)
    lines = "".join(f"- model: {name}\n" for name in names)
    (folder / "all.yaml").write_text(f"title: all\nrespondents:\n{lines}")
    return folder


@pytest.fixture(scope="module")
def store(folder) -> str:
    return str(folder / "store")


@pytest.fixture(scope="module")
def answers(folder, store) -> pd.DataFrame:
    return pm.ask(ASKED, str(folder / "all.yaml"), store=store, progress=False)


@pytest.fixture(scope="module")
def tables(folder, store) -> dict[str, pd.DataFrame]:
    how = {"standardised": True, "populations": POPULATIONS, "store": store, "progress": False}
    return tabulate(ASKED, str(folder / "all.yaml"), **how)


def _items(answers: pd.DataFrame, name: str) -> pd.DataFrame:
    """Keyed item scores, respondents by items, as the package's scores add them up."""
    items = pm.item_scores(answers[answers["questionnaire"] == name])
    keyed = keyed_items(items, pm.load_questionnaire(name))
    return keyed.set_axis(keyed.index.get_level_values("respondent_id"))


def _row(tables: dict, base: str, statistic: str, scale: str = "challenges") -> pd.Series:
    table = tables["statistics"]
    chosen = (table[["base", "statistic", "scale"]] == [base, statistic, scale]).all(axis=1)
    return table[chosen].iloc[0]


def test_each_statistic_is_computed_over_the_models_of_a_base(tables, answers):
    berts = answers[answers["respondent_id"].str.startswith("bert")]
    keyed = _items(berts, "challenges")
    alpha = _row(tables, "bert-base", "alpha")
    assert alpha["models"] == 8
    assert alpha["value"] == pytest.approx(pingouin.cronbach_alpha(keyed)[0])

    sums = [_items(berts, name).mean(axis=1) for name in ASKED]
    found = _row(tables, "bert-base", "correlation")
    assert found["other"] == ASKED[1]
    assert found["value"] == pytest.approx(stats.spearmanr(*sums)[0])

    own = term_silhouettes(pm.pss(berts))
    own = own[own["item_id"].isin(keyed.columns)]["silhouette"].mean()
    assert _row(tables, "bert-base", "silhouette")["value"] == pytest.approx(own)


def test_the_null_is_a_head_on_each_models_own_base_as_decisive_as_the_model(
    tables, answers, folder
):
    berts = answers[answers["respondent_id"].str.startswith("bert")]
    loaded = [pm.load_questionnaire(name) for name in ASKED]
    how = {"base": str(folder / "bert-base"), "seed": 0}
    heads = pm.null_answers(loaded, "random-heads", 8 * POPULATIONS, **how)
    like = [berts.assign(respondent_id=f"{k} " + berts["respondent_id"]) for k in range(40)]
    heads = pm.evidence.resized(heads, pd.concat(like))
    drawn = term_silhouettes(pm.pss(heads[heads["questionnaire"] == "challenges"]))
    drawn = drawn.groupby("respondent_id")["silhouette"].mean()
    drawn = drawn[heads["respondent_id"].unique()].to_numpy()
    by_population = drawn.reshape(POPULATIONS, 8).mean(axis=1)

    found = _row(tables, "bert-base", "silhouette")
    expected = np.quantile(by_population, [0.5, 0.025, 0.975])
    np.testing.assert_allclose(
        found[["null", "null low", "null high"]].astype(float), expected, atol=1e-6
    )
    sides = (by_population >= found["value"]).sum(), (by_population <= found["value"]).sum()
    assert found["p"] == pytest.approx(min(1, 2 * (1 + min(sides)) / (1 + POPULATIONS)))

    scores = tables["scores"].query("respondent_id == 'bert' and questionnaire == 'challenges'")
    single = np.quantile(drawn[::8], [0.025, 0.975])
    row = scores.iloc[0][["silhouette null low", "silhouette null high"]]
    np.testing.assert_allclose(row.astype(float), single, atol=1e-6)


def test_bases_are_combined_where_there_are_models_enough(tables):
    parts = [_row(tables, base, "silhouette")["value"] for base in ("bert-base", "roberta-base")]
    combined = _row(tables, "bases combined", "silhouette")
    assert combined["models"] == 9
    assert combined["value"] == pytest.approx((8 * parts[0] + parts[1]) / 9)

    alone = _row(tables, "roberta-base", "alpha")
    assert np.isnan(alone["value"])
    assert "too few models" in alone["verdict"]
    alpha = _row(tables, "bases combined", "alpha")
    assert alpha["models"] == 8
    assert alpha["value"] == pytest.approx(_row(tables, "bert-base", "alpha")["value"])


def test_scores_are_standardised_and_all_models_pooled_only_if_that_is_named(
    tables, answers, folder, store
):
    scores = tables["scores"].query("questionnaire == 'challenges'").set_index("respondent_id")
    plain = _items(answers, "challenges").mean(axis=1)
    expected = (plain - plain.mean()) / plain.std()
    np.testing.assert_allclose(scores.loc[expected.index, "score"], expected, atol=1e-6)

    judged = _items(answers[answers["respondent_id"] != "lost"], "challenges")
    pooled = _row(tables, "all models", "alpha")
    assert pooled["models"] == 9
    assert pooled["value"] == pytest.approx(pingouin.cronbach_alpha(judged)[0])

    usual = tabulate(ASKED, str(folder / "all.yaml"), populations=2, store=store, progress=False)
    assert "all models" not in set(usual["statistics"]["base"])
    usual = usual["scores"].query("questionnaire == 'challenges'").set_index("respondent_id")
    np.testing.assert_allclose(usual.loc[plain.index, "score"], plain, atol=1e-6)
    assert usual["p"].isna().all(), "two populations say nothing"


def test_a_model_whose_base_is_not_known_is_not_judged_until_the_file_names_it(
    tables, folder, store
):
    lost = tables["scores"].query("respondent_id == 'lost'")
    assert lost["note"].str.startswith("cannot be judged here").all()
    assert lost[["null low", "p", "silhouette p"]].isna().all(axis=None)
    row = tables["statistics"].query("base == 'not known'").iloc[0]
    assert (row["models"], row["verdict"]) == (1, "cannot be judged here")

    how = {"populations": POPULATIONS, "store": store, "progress": False}
    notes = {}
    for base in ("lost", "roberta-base"):  # a model is its own base, or another family's
        file = folder / f"named-{base}.yaml"
        file.write_text(f"title: named\nrespondents:\n- {{model: lost, base: {base}}}\n")
        notes[base] = tabulate("challenges", str(file), **how)["scores"]["note"].iloc[0]

    assert notes["lost"] == ""
    assert notes["roberta-base"].startswith("cannot be judged here")


def test_the_command_writes_both_tables_and_asks_nothing_twice(folder, store, tmp_path):
    output = tmp_path / "tables"
    command = ["table", *ASKED, "--population", str(folder / "all.yaml"), "--populations", "2",
               "--store", store, "-o", str(output)]  # fmt: skip
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "0 asked" in result.output
    assert "bases combined (9): " in result.output
    assert "lost: cannot be judged here" in result.output
    scores = pd.read_csv(output / "scores.csv")
    assert scores.groupby("respondent_id").size().eq(2).all()
    assert set(pd.read_csv(output / "statistics.csv")["base"]) == {
        "bert-base", "roberta-base", "bases combined", "not known",
    }  # fmt: skip


def test_a_model_that_cannot_answer_is_listed_and_the_others_are_judged(folder, store, tmp_path):
    output = tmp_path / "tables"
    command = ["table", "challenges", "--population", f"{folder / 'roberta'},nobody/nothing",
               "--populations", "2", "--store", store, "-o", str(output)]  # fmt: skip
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    scores = pd.read_csv(output / "scores.csv").set_index("respondent_id")
    assert scores.loc["nobody/nothing", "note"].startswith("did not answer")
    assert scores.loc["roberta", "silhouette"] <= 1
