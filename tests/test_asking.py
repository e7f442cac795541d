from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from psychometrics.exceptions import ParameterError
from psychometrics.measures.reliability import answer_agreement
from psychometrics.measures.scoring import scale_scores
from psychometrics.measures.styles import response_styles
from psychometrics.modes.simulated import answers as simulate
from psychometrics.modes.simulated import draw_traits
from psychometrics.questionnaires import load_questionnaire
from psychometrics.studies import asking, asking_figures

mpl.use("Agg")
MINI = load_questionnaire("ipip20")


@pytest.fixture(scope="module")
def simulated():
    traits = draw_traits(MINI, 400, seed=2)
    answers = simulate(MINI, traits, seed=2)
    return traits, answers, scale_scores(answers, MINI)


def test_recovery_is_the_correlation_and_meets_the_root_of_alpha(simulated):
    traits, answers, scores = simulated
    table = asking.recovery(scores, traits).set_index("scale")
    mine = scores[scores["scale"] == "neuroticism"].set_index("respondent_id")["score"]
    r = np.corrcoef(mine.loc[traits.index], traits["neuroticism"])[0, 1]
    assert table.loc["neuroticism", "r"] == pytest.approx(r)
    half = 1.959964 / np.sqrt(400 - 3)
    assert table.loc["neuroticism", "low"] == pytest.approx(np.tanh(np.arctanh(r) - half))
    ceiling = asking.ceiling(answers, MINI).set_index("scale")
    assert np.allclose(ceiling["ceiling"] ** 2, ceiling["alpha"])
    assert (table["r"] - ceiling["ceiling"]).abs().max() < 0.05
    with pytest.raises(ParameterError, match="4 are the least"):
        asking.recovery(scores[scores["respondent_id"].isin(traits.index[:3])], traits)


def test_ways_differ_in_nothing_but_the_way(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(tmp_path))
    ways = {"one": {}, "same": {}, "other": {"wording": "It is {label}."}}
    table = asking.nli_ways(MINI, [tiny_model], ways, choose="expected")
    one, same, other = (table[table["way"] == w]["value"].to_numpy() for w in ways)
    assert (one == same).all()
    assert (one != other).any()


def test_role_shifts_are_means_of_differences_with_student_intervals():
    rows = [("default", "a", 3.0), ("default", "b", 2.0), ("hero", "a", 4.0), ("hero", "b", 2.5)]
    scores = pd.DataFrame(rows, columns=["role", "respondent_id", "score"])
    scores = scores.assign(scale="x", title="X")
    table = asking.role_shifts(scores)
    assert table["shift"].tolist() == [0.75]
    # differences 1 and 0.5: sd 0.35355, t(0.975, 1) = 12.7062, half width 12.7062 * 0.25
    assert table["low"].iloc[0] == pytest.approx(0.75 - 12.7062 * 0.25, abs=1e-3)
    with pytest.raises(ParameterError, match="no role 'default'"):
        asking.role_shifts(scores.query("role == 'hero'"))


def test_the_papers_shifts_are_differences_of_its_table_8():
    table = asking.published_role_shifts().set_index(["role", "scale"])["shift"]
    assert table["psychopath", "agreeableness"] == pytest.approx(1.9 - 4.4)
    assert table["psychopath", "intellect"] == pytest.approx(3.7 - 4.2)
    assert len(table) == 20


def test_a_null_model_is_saved_once_and_hangs_on_its_seed(tmp_path):
    first = asking.null_model(tmp_path, 1)
    stamp = (first / "model.safetensors").stat().st_mtime_ns
    assert asking.null_model(tmp_path, 1) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == stamp
    other = asking.null_model(tmp_path, 2)
    assert (other / "model.safetensors").read_bytes() != (first / "model.safetensors").read_bytes()
    again = asking.null_model(tmp_path / "again", 1)
    assert (again / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()


def test_the_most_accurate_members_come_first_and_strangers_stay():
    from psychometrics.asking.population import population_table

    table = population_table().set_index("respondent_id")["accuracy"]
    best = asking.best_members(list(table.index), 3)
    assert table[best].min() >= table.drop(best).max()
    assert asking.best_members([*table.index, "my/model"], 2)[0] == "my/model"


def test_figures_show_what_they_are_given(simulated):
    import matplotlib.pyplot as plt

    traits, answers, scores = simulated
    fig, axes = plt.subplots(1, 3)
    asking_figures.recovery_scatter(scores, traits, "neuroticism", ax=axes[0])
    assert len(axes[0].collections[0].get_offsets()) == 400
    assert axes[0].get_ylabel() == "Neuroticism score"
    shares = pd.DataFrame({"option": [1, 2, 1, 2], "asked": list("aabb"),
                           "probability": [0.9, 0.1, 0.5, 0.5]})  # fmt: skip
    asking_figures.share_bars(shares, "option", "asked", ax=axes[1])
    assert [bar.get_height() for bar in axes[1].patches] == [0.9, 0.1, 0.5, 0.5]
    styles = response_styles(answers.assign(way="one"), MINI, by=["way"])
    asking_figures.style_dots(styles, "way", ax=axes[2])
    assert len(axes[2].lines[0].get_xdata()) == 400
    plt.close(fig)


def _two_ways(first, second, who="a"):
    parts = [
        pd.DataFrame({"item_id": range(len(values)), "value": values}).assign(way=way)
        for way, values in (("one", first), ("two", second))
    ]
    return pd.concat(parts).assign(respondent_id=who, questionnaire="q", status="ok")


def test_kappa_of_two_ways_stands_beside_what_mixed_items_give():
    rng = np.random.default_rng(1)
    truth = rng.integers(1, 6, 20).astype(float)
    other = np.clip(truth + rng.integers(-1, 2, 20), 1, 5)
    answers = pd.concat([_two_ways(truth, other), _two_ways(truth, rng.permutation(truth), "b")])
    alone = asking.agreement_null(answers[answers["respondent_id"] == "a"], n_resamples=400)
    library = answer_agreement(answers, by="way", n_resamples=0)
    expected = library.set_index("respondent_id")["kappa"]
    assert alone["kappa"][0] == pytest.approx(expected["a"])
    assert alone["p"][0] < 0.01
    assert alone["null_low"][0] < 0 < alone["null_high"][0] < alone["kappa"][0]
    assert np.isnan(alone["low"][0]), "one respondent has no interval"
    both = asking.agreement_null(answers, n_resamples=200)
    assert both["kappa"][0] == pytest.approx(expected.mean())
    assert both["low"][0] < both["kappa"][0] < both["high"][0]
    flat = asking.agreement_null(_two_ways(truth, np.full(20, 3.0)), n_resamples=20)
    assert flat["n"][0] == 0
    assert flat[["kappa", "p"]].isna().all(axis=None)
    with pytest.raises(ParameterError, match="answered twice"):
        asking.agreement_null(pd.concat([answers, answers]))
    with pytest.raises(ParameterError, match="no column 'way'"):
        asking.agreement_null(answers.drop(columns="way"))


def _scores(values):
    names = [f"r{i}" for i in range(len(values))]
    return pd.DataFrame({"respondent_id": names, "scale": "s", "title": "S", "score": values})


def test_ways_differ_by_chance_alone_where_they_share_a_trait_and_not_where_one_lost_it():
    rng = np.random.default_rng(2)
    trait = rng.normal(size=60)
    traits = pd.DataFrame({"s": trait}, index=[f"r{i}" for i in range(60)])
    same = {way: _scores(trait + rng.normal(size=60)) for way in ("chat", "custom", "simulated")}
    table = asking.exchange_null(same, traits, n_resamples=300)
    r = [np.corrcoef(part["score"], trait)[0, 1] for part in same.values()]
    assert table[["lowest", "highest"]].iloc[0].tolist() == pytest.approx([min(r), max(r)])
    assert table["p"][0] > 0.05
    lost = same | {"lost": _scores(rng.normal(size=60))}
    assert asking.exchange_null(lost, traits, n_resamples=300)["p"][0] < 0.02
    with pytest.raises(ParameterError, match="Two ways"):
        asking.exchange_null({"chat": same["chat"]}, traits)
    with pytest.raises(ParameterError, match="4 are the least"):
        asking.exchange_null(same, traits.iloc[:3])


def test_what_the_library_says_of_its_files_holds_of_ours(tmp_path, monkeypatch):
    assert (asking.library_findings(tmp_path)["value"] == 1).all()
    wrong = {"question": "Two is odd.", "answer": "False"}
    files = asking.LIBRARY_FILES | {"true-false": {"data": {"id_0": wrong}}}
    monkeypatch.setattr(asking, "LIBRARY_FILES", files)
    found = asking.library_findings(tmp_path)["value"]
    # True or false: two of its three tries now fail; thirteen were made in all.
    assert found["ql-evaluate"] == pytest.approx(11 / 13)


def test_formats_ask_each_item_with_and_without_its_words_order_and_reading_compares_the_keys(
    tmp_path,
):
    model = asking.null_model(tmp_path, 4)
    ways = {name: asking.FORMATS[name] for name in ("digits", "yes or no", "own voice")}
    table = asking.formats(MINI, model, tmp_path / "store", ways)
    assert table.groupby(["format", "baseline", "items"]).size().tolist() == [20] * 12
    assert table["value"].between(1, 5).all()
    assert table["reverse"].sum() == 12 * sum(len(scale.reverse) for scale in MINI.scales)
    one = table[table["format"].eq("digits") & table["baseline"].eq("none")]
    read = asking.reading(table).set_index(["format", "baseline", "items"])
    mine = one[one["items"] == "as written"].groupby("reverse")["value"].mean()
    row = read.loc[("digits", "none", "as written")]
    assert row[["plain", "reverse"]].tolist() == pytest.approx(mine.tolist())
    assert row["low"] < row["difference"] < row["high"]


def test_reading_is_welchs_interval_and_says_nothing_where_there_is_nothing_to_compare():
    given = pd.DataFrame({"reverse": [False] * 3 + [True] * 3, "value": [4.0, 5, 3, 1, 1, 2]})
    row = asking.reading(given, by=[]).iloc[0]
    # variances 1 and 1/3; standard error 2/3; t(0.975, 3.2) = 3.0700
    assert row["difference"] == pytest.approx(8 / 3)
    assert row["high"] - row["difference"] == pytest.approx(3.07 * 2 / 3, abs=0.01)
    assert row["p"] == pytest.approx(0.1)  # of 20 ways to deal the keys the two extreme ones
    assert row["null_low"] == pytest.approx(-row["null_high"])  # each deal has its opposite
    alone = asking.reading(given.iloc[2:], by=[]).iloc[0]
    assert alone[["low", "high", "p"]].isna().all()
