"""A model's profile: who gets which flag, what the reports show, and runs under many parameters."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics import profiles
from psychometrics.exceptions import ParameterError
from psychometrics.reports.contents import report_profile
from psychometrics.reports.own_base import UntouchedBase, _compare_with_bases, _study_bases
from psychometrics.reports.profiles import Assessment, assess, differences
from psychometrics.reports.rules import HEAD_SIZES, _heads_of_sizes, flags, rules, verdict
from psychometrics_book import build, runs

SMALL = "minilm-mnli-l3-s16"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def challenges():
    return pm.load_questionnaire("challenges")


@pytest.fixture(scope="module")
def noise(challenges):
    return pm.null_answers(challenges, "noise", respondents=40)


def _marks(found: pd.DataFrame) -> dict:
    return found.set_index("check")["mark"].to_dict()


def _answered(challenges, **signs) -> pd.DataFrame:
    table = pm.prompts(challenges)
    sign = table["polarity"] if signs.get("stance") else 1
    return table.assign(respondent_id="m", entailment=0.5 + 0.1 * sign * table["weight"])


def test_of_twenty_random_heads_judged_by_the_others_at_most_one_passes(challenges):
    heads = pm.null_answers(challenges, "random-heads", 20, layers=6)
    marks = [
        _marks(flags(own, challenges, heads[heads["respondent_id"] != name]))["terms"]
        for name, own in heads.groupby("respondent_id")
    ]
    assert marks.count("✓") <= 1
    assert marks.count("✗") >= 15


def test_who_answers_by_the_stance_is_told_from_noise_without_reservation(challenges, noise):
    found = flags(_answered(challenges, stance=True), challenges, noise)
    assert _marks(found) == {"terms": "✓", "score": "✓", "trend": "✓", "agreeing": "✓"}
    assert found.set_index("check").loc["terms", "value"] == pytest.approx(1)
    assert found["words"][0].count("0 of 40 have as much") == 3, "heads of three sizes"


def test_who_answers_by_the_frequency_word_alone_is_flagged_by_every_rule(challenges, noise):
    found = flags(_answered(challenges), challenges, noise)
    assert _marks(found) == {"terms": "✗", "score": "!", "trend": "!", "agreeing": "!"}


def test_the_count_of_nulls_decides_at_five_per_cent(challenges, noise):
    """One of 40 heads as large: 2 / 41 is below .05; two of 40: 3 / 41 is above."""
    own = _answered(challenges, stance=True)
    twins = pd.concat([own.assign(respondent_id=f"twin {n}") for n in range(2)])
    others = noise[noise["respondent_id"].isin(noise["respondent_id"].unique()[:38])]
    one = pd.concat([noise[~noise["respondent_id"].isin(noise["respondent_id"].unique()[:1])],
                     twins[twins["respondent_id"] == "twin 0"]])  # fmt: skip
    assert _marks(flags(own, challenges, one))["terms"] == "✓"
    assert _marks(flags(own, challenges, pd.concat([others, twins])))["terms"] == "✗"


def test_a_silhouette_that_only_large_heads_lack_depends_on_the_size_of_the_head(challenges):
    own = _answered(challenges, stance=True)
    heads = pm.null_answers(challenges, "random-heads", 40)
    by_size = {
        size: pm.validity.term_silhouettes(pm.pss(part))
        .groupby("respondent_id")["silhouette"]
        .mean()
        for size, part in _heads_of_sizes(own, heads).items()
    }
    start, large = (by_size[size].max() for size in ("at their start", "four times as large"))
    assert large < start
    assert large < start
    signs = np.random.default_rng(0).choice([-1, 1], len(own))
    for spread in np.linspace(0, 0.3, 200):  # noise lowers the silhouette until it lies between
        noisy = own.assign(entailment=0.5 + (own["entailment"] - 0.5) * 0.3 + spread * signs / 2)
        value = pm.validity.term_silhouettes(pm.pss(noisy))["silhouette"].mean()
        if value < np.sort(by_size["at their start"])[-4]:
            break
    found = flags(noisy, challenges, heads)
    assert _marks(found)["terms"] == "!"
    mark, words = verdict(found, challenges.scales[0])
    assert (mark, words.partition(";")[0]) == ("!", "depends on the size of the head")


def test_a_score_that_equally_decisive_heads_reach_is_reserved(store):
    """Chapter 1: the anxiety of this model cannot be separated from the method."""
    own = assess("minilm-both-l6-s1", "gad7", against=None, store=store)
    row = own.flags.set_index("check").loc["score"]
    nulls = own.nulls["score"].abs()
    share = (1 + (nulls >= abs(own.scores["score"].iloc[0])).sum()) / (1 + len(nulls))
    assert 0.05 < share < 0.25
    assert row["mark"] == "!"
    assert "score" in own.scores["verdict"].iloc[0]


def test_a_good_member_is_told_from_random_heads_and_a_frozen_one_marked(store):
    good = assess("minilm-both-l6-s1", "gad7", store=store)
    row = good.scores.iloc[0]
    assert row["mark"] != "✗"
    assert 0 < row["place"] < 1
    own = good.flags.set_index("check")
    assert own.loc["terms", "mark"] == own.loc["accuracy", "mark"] == "✓"
    assert good.others["who"].nunique() == len(pm.population()) - 1
    frozen = assess("minilm-both50-frozen-l6-s20", "challenges", store=store)
    assert _marks(frozen.flags)["accuracy"] == "!"
    assert frozen.scores["mark"].iloc[0] != "✓"


def test_scores_and_intervals_are_those_of_the_third_chapter(store, challenges):
    found = assess(SMALL, challenges, against=None, store=store).scores.iloc[0]
    answers = pm.ask(challenges, SMALL, store, progress=False)
    expected = pm.intervals.scale_intervals(pm.item_scores(answers), challenges).iloc[0]
    for name in ("score", "low", "high"):
        assert found[name] == expected[name]


def test_shipped_scores_are_what_asking_gives_and_nobody_is_asked(store, challenges, tmp_path):
    others = assess(SMALL, challenges, store=tmp_path).others.set_index("who")["score"]
    assert set(others.index) == set(pm.population()) - {SMALL}
    assert set(pm.manifests(tmp_path)["respondent_id"]) == {SMALL}
    member = "minilm-both50-l4-s4"
    asked = pm.item_scores(pm.ask(challenges, member, store, progress=False))
    expected = pm.intervals.scale_intervals(asked, challenges)["score"][0]
    assert others[member] == pytest.approx(expected, abs=5e-3)  # precision differs by machine


def test_shipped_scores_of_other_prompts_are_not_taken(challenges, tmp_path):
    content = challenges.model_dump()
    content["items"][0]["templates"][0]["premise"] = "People I relied on {term} me."
    changed = type(challenges).model_validate(content)
    assess(SMALL, changed, against="minilm-both50-l4-s4", store=tmp_path)
    assert "minilm-both50-l4-s4" in set(pm.manifests(tmp_path)["respondent_id"])


# Answers to items


@pytest.fixture(scope="module")
def mini():
    return pm.load_questionnaire("ipip20")


def _run(mini, values, status="ok") -> pd.DataFrame:
    return pd.DataFrame(
        {"respondent_id": "m", "questionnaire": "ipip20", "mode": "options", "run": 1,
         "item_id": [item.id for item in mini.items], "value": values, "status": status}
    )  # fmt: skip


def _faithful(mini) -> np.ndarray:
    """5 to what keys a scale up and 1 to the rest, in every other scale the other way."""
    values = {}
    for n, scale in enumerate(mini.scales):
        for name, key in mini.keys(scale).items():
            values[name] = 5.0 if (key > 0) == (n % 2 == 0) else 1.0
    return np.array([values[item.id] for item in mini.items])


def test_answers_that_follow_the_scales_are_told_from_the_same_answers_dealt_out(mini):
    found = flags(_run(mini, _faithful(mini)), mini)
    marks = _marks(found[found["check"] != "alone"])
    assert marks == {"content": "✓", "commonest": "✓", "acquiescence": "✓", "answered": "✓"}


def test_four_answers_of_two_kinds_are_too_few_to_tell_a_scale_alone_and_ten_are_enough(mini):
    found = flags(_run(mini, _faithful(mini)), mini)
    assert {verdict(found, scale)[1] for scale in mini.scales} == {"with reservations: alone"}
    long = pm.load_questionnaire("ipip50", texts=False)
    answers = _run(long, _faithful(long)).assign(questionnaire="ipip50")
    found = flags(answers, long)
    assert {verdict(found, scale)[0] for scale in long.scales[1:]} == {"✓"}


@pytest.mark.parametrize("runs", [1, 10])
def test_a_scale_answered_by_content_lifts_no_scale_that_is_answered_at_random(mini, runs):
    """Of the four scales at random none passes in more than 5 % of draws."""
    rng = np.random.default_rng(0)
    keys = mini.keys(mini.scales[0])
    places = [place for place, item in enumerate(mini.items) if item.id in keys]
    passed = []
    for _ in range(100):
        values = rng.integers(1, 6, (runs, len(mini.items))).mean(axis=0)
        values[places] = [5.0 if keys[mini.items[place].id] > 0 else 1.0 for place in places]
        found = flags(_run(mini, values), mini)
        passed.append([verdict(found, scale)[0] == "✓" for scale in mini.scales])
    by_content, *at_random = np.array(passed).T
    assert np.any(at_random, axis=0).mean() <= 0.05
    assert by_content.mean() > np.mean(at_random)


def test_answers_by_chance_pass_on_any_scale_of_a_page_in_five_per_cent_of_draws(mini):
    rng = np.random.default_rng(1)
    passed = 0
    for _ in range(100):
        found = flags(_run(mini, rng.integers(1, 6, 20) * 1.0), mini)
        passed += any(verdict(found, scale)[0] == "✓" for scale in mini.scales)
    assert passed <= 5


def test_of_twenty_random_heads_at_most_one_passes_on_any_of_several_scales():
    questionnaire = pm.load_questionnaire("soc13")
    heads = pm.null_answers(questionnaire, "random-heads", 20, layers=3)
    passed = 0
    for name, own in heads.groupby("respondent_id"):
        found = flags(own, questionnaire, heads[heads["respondent_id"] != name])
        passed += (found.query("check == 'terms'")["mark"] == "✓").any()
    assert passed <= 1


def test_a_page_about_several_questionnaires_divides_its_error_rate_among_them(store):
    found = assess(SMALL, ["gad7", "challenges"], against=None, store=store)
    assert "99 random heads" in found.asked.loc["null respondents", "how"]
    terms = found.flags.query("check == 'terms'")
    for words, mark in zip(terms["words"], terms["mark"], strict=True):
        far = [int(count) for count in re.findall(r"([0-9]+) of 99 have", words)]
        passed = [(count + 1) / 100 <= 0.025 for count in far]
        assert len(passed) == 3
        assert mark == ("✓" if all(passed) else "!" if any(passed) else "✗")


def test_answers_by_chance_are_not_to_be_interpreted(mini):
    rng = np.random.default_rng(4)
    marks = [_marks(flags(_run(mini, rng.integers(1, 6, 20) * 1.0), mini))["content"]
             for _ in range(20)]  # fmt: skip
    assert marks.count("✗") >= 17


def test_the_same_answer_to_every_item_is_flagged_as_such(mini):
    found = flags(_run(mini, 5.0), mini)
    assert _marks(found) == {"content": "✗", "commonest": "!", "acquiescence": "!", "answered": "✓"}
    assert found["words"][0] == "it gives the same answer to every item."


def test_items_keyed_alike_on_one_scale_cannot_be_told_from_a_deal():
    gse = pm.load_questionnaire("gse", texts=False)
    rows = _run(gse, np.arange(len(gse.items)) % 4 + 1.0).assign(questionnaire="gse")
    found = flags(rows, gse)
    assert _marks(found)["content"] == "–"
    assert verdict(found, gse.scales[0])[0] == "!"


def test_a_scale_with_an_item_refused_has_no_score_and_says_so(mini, monkeypatch, store):
    values, status = _faithful(mini), np.array(["ok"] * 20, dtype=object)
    values[0], status[0] = np.nan, "refused"
    answers = _run(mini, values, status)
    answers.attrs["summary"] = {"asked": 20, "from_store": 0, "unanswered": 1, "failed": {},
                                "seconds": 0.0}  # fmt: skip
    monkeypatch.setattr(profiles, "ask", lambda *a, **k: answers)
    found = assess(SMALL, mini, mode="options", against=None)
    scores = found.scores.set_index("scale")
    assert scores.loc["extraversion", "verdict"] == "no score: 3 of 4 items answered"
    assert np.isnan(scores.loc["extraversion", "score"])
    assert scores.loc["agreeableness", ["score", "mark"]].tolist() == [1.0, "!"]
    assert _marks(found.flags)["answered"] == "!"


def test_norms_of_sums_are_brought_to_the_scales_mean(store):
    found = assess(SMALL, "gad7", mode="options", store=store)
    norm = found.norms.iloc[0]
    assert norm["norm_mean"] == pytest.approx(2.95 / 7)
    assert norm["delta"] == pytest.approx((norm["mean"] - 2.95 / 7) / (3.41 / 7))
    assert norm["test"] == "single"


# Pages


@pytest.fixture
def command(ended, monkeypatch, store):
    """Function that runs the command in an own folder: exit status, output and errors."""
    monkeypatch.setenv("PSYCHOMETRICS_STORE", str(store))
    return ended


def _page(name: str) -> str:
    body = Path(f"{name}.html").read_text(encoding="utf-8").partition("<main>")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_profile_shows_scores_flags_rules_and_how_it_was_asked(command, store, challenges):
    code, said, _ = command("profile", SMALL, "--questionnaires", "challenges")
    found = assess(SMALL, challenges, store=store)
    row = found.scores.iloc[0]
    assert code == 0
    assert f"{row['score']:.3f} ({row['low']:.3f} to {row['high']:.3f}), {row['verdict']}" in said
    text = _page(f"profile-{SMALL}")
    assert text.startswith(f"Profile of a model {SMALL}")
    assert f"{row['score']:.3f}".replace("-", "−") in text
    statement = report_profile(found).statements[0]
    assert statement.verdict in text
    assert statement.text in text
    assert statement.text in said
    for rule in rules(to_prompts=True)["when"]:
        assert rule in text
    assert "99 random heads on its own untouched base, MiniLM with 3 layers" in text
    assert "192 prompts" in text
    kept = pd.read_csv(f"runs/profile-{SMALL}/tab-profile-flags.csv")
    assert kept["check"].tolist() == found.flags["check"].tolist()


def test_heads_judge_a_model_on_the_base_that_is_named_alone(store, tiny_model):
    strange = assess(tiny_model, "challenges", against=None, store=store)
    assert set(strange.flags.set_index("check").loc[["terms"], "mark"]) == {"–"}
    assert strange.asked.loc["null respondents", "how"].endswith("(name the base with --base)")
    named = assess(tiny_model, "challenges", against=None, store=store, base=tiny_model)
    assert set(named.flags.set_index("check").loc[["terms"], "mark"]) <= {"✓", "✗"}
    said = f"99 random heads on the untouched base that was named, {tiny_model.name}"
    assert named.asked.loc["null respondents", "how"] == said


def test_differences_are_paired_over_items_and_compared_with_those_of_random_heads(store):
    other = "minilm-both50-l4-s4"
    found = {name: assess(name, "challenges", against=None, store=store) for name in (SMALL, other)}
    answers = pm.ask("challenges", f"{SMALL},{other}", store, progress=False)
    wide = pm.item_scores(answers).pivot(index="item_id", columns="respondent_id", values="score")
    apart = (wide[other] - wide[SMALL]).to_numpy()
    row = differences(found, "challenges").iloc[0]
    expected = [apart.mean(), *pm.intervals.mean_interval(apart)]
    np.testing.assert_allclose(row[["difference", "low", "high"]].astype(float), expected)
    assert 0 <= row["null"] <= 1


def test_two_random_heads_differ_no_more_clearly_than_random_heads():
    questionnaire = pm.load_questionnaire("gad7")
    heads = pm.item_scores(pm.null_answers(questionnaire, "random-heads", 100))
    names = heads["respondent_id"].unique()
    none = pd.DataFrame()
    verdicts = []
    for first, second in zip(names[:40:2], names[1:40:2], strict=True):
        null = heads[~heads["respondent_id"].isin([first, second])]
        found = {
            name: Assessment(
                none,
                none,
                none,
                none,
                items=heads[heads["respondent_id"] == name],
                null_items=null,
                base=UntouchedBase("embedded"),
            )
            for name in (first, second)
        }
        row = differences(found, questionnaire).iloc[0]
        verdicts.append(row["verdict"])
        assert (row["verdict"] == "no difference shown") == (row["low"] <= 0 <= row["high"])
        assert row["verdict"] != "differ" or row["null"] <= 0.05
    assert verdicts.count("differ") <= 2
    assert verdicts.count("no clearer than between random heads") >= 5, "items are not independent"


def test_a_difference_of_models_on_unknown_bases_is_not_judged(store, tiny_model, save_tiny_model):
    other = save_tiny_model(store / "other", seed=3)
    names = {name: assess(name, "gad7", against=None, store=store) for name in (tiny_model, other)}
    for row in differences(names, "gad7").itertuples():
        assert row.verdict.startswith(("cannot be judged", "no difference shown"))


def test_a_failing_model_is_named_and_others_compared(
    command, tmp_path, tiny_model, save_tiny_model
):
    torn = save_tiny_model(tmp_path / "torn")
    (torn / "model.safetensors").write_bytes(b"nothing")
    asked = ["--questionnaires", "challenges", "--against", "nobody"]
    code, said, errors = command("compare", SMALL, torn, tiny_model, *asked)
    assert code == 1
    assert f"challenges: {tiny_model.name} " in said
    for name in (SMALL, tiny_model.name):  # its score, its interval and what may be read from it
        assert re.search(rf". challenges, challenges: {name} -?[0-9.]+ \(-?[0-9.]+ to ", said)
    assert "torn could not be asked: torn cannot be loaded" in errors
    text = _page("compare")
    assert "torn cannot be loaded" in text
    assert "heads differ" in text
    code, _, errors = command("compare", SMALL, torn, *asked, "-o", "one.html")
    assert code == 1
    assert "torn could not be asked" in errors
    assert "torn cannot be loaded" in _page("one")
    worn = shutil.copytree(torn, tmp_path / "worn")
    code, _, errors = command("compare", torn, worn, *asked, "-o", "none.html")
    assert code == 1
    assert "No model can answer" in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("profile ./nowhere", "nowhere"),
        (f"profile {SMALL} -o p.txt", ".html or .pdf"),
        (f"profile {SMALL} -o no/p.html", "there is no folder no"),
        (f"profile {SMALL} --instruments gda7", "gad7"),
        (f"profile {SMALL} --questionnaires two_axes", "two_axes has no scales"),
        (f"profile {SMALL} --questionnaires ipip50", "no prompts"),
        (f"profile {SMALL} --questionnaires ,", "no questionnaire"),
        (f"profile {SMALL} --mode options", "soc13 has no options"),
        (f"compare {SMALL}", "at least two models"),
        (f"compare {SMALL} {SMALL}", SMALL),
        ("run 03-assessment --sweep temperature", "name=value,value"),
        ("run 03-assessment --sweep temprature=1,2", "temperature"),
        ("run 03-assessment --sweep temperature=0,-1", "temperature should be"),
        ("run 03-assessment --sweep seed=1,2 -p seed=3", "seed is both swept and set"),
    ],
)
def test_what_cannot_be_profiled_is_said_in_one_sentence(arguments, said, command, tmp_path):
    code, _, errors = command(*arguments.split())
    lines = [line for line in errors.splitlines() if line.startswith("psychometrics: ")]
    assert code == 1
    assert [said in line for line in lines] == [True]
    assert not list(tmp_path.glob("*.html"))


# Sweeps


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    """A notebook that gathers its runs in a file, and fails where x is 3."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    work = (
        f"open({str(tmp_path / 'log')!r}, 'a').write(f'{{x}}{{y}} ')\nassert x != 3, 'x is 3'\n"
        "import pandas as pd\nimport psychometrics_book as book\n"
        "table = pd.DataFrame({'value': [2 * x, 5]}, index=['double', 'always'])\n"
        "book.table(table, 'tab-small', 'Two numbers.')"
    )
    code = nbformat.v4.new_code_cell
    cells = [code("x = 1\ny = 'a'", metadata={"tags": ["parameters"]}), code(work)]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), folder / "small.ipynb")
    shutil.copy(build.notebooks_dir() / "sweep.ipynb", folder)
    for module in (build, runs):
        monkeypatch.setattr(module, "notebooks_dir", lambda: folder)
    return folder / "small.ipynb"


def test_a_sweep_compares_results_names_what_failed_and_goes_on(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = runs.sweep("small", {"x": [1, 3], "y": ["a"]}, "sweep")
    assert found["status"].tolist() == ["run now", "failed"]
    assert "x is 3" in found["reason"][1]
    assert Path(f"sweep/{found['run'][1]}.failed.txt").is_file()
    wider = runs.sweep("small", {"x": [1, 2], "y": ["a"]}, "sweep")
    assert wider["status"].tolist() == ["done before", "run now"]
    assert Path("log").read_text() == "1a 3a 2a ", "each is run once"
    text = _page("sweep/index")
    assert "tab-small[double, value] 2 4" in text
    assert "1 cells do not differ" in text
    assert "tab-small[always, value]" not in text
    assert "0 sentences have a rule" in text, "this notebook is no chapter"
    notebook.write_text(notebook.read_text().replace("2 * x", "3 * x"))
    again = runs.sweep("small", {"x": [2], "y": ["a"]}, "sweep")
    assert again["status"][0] == "run now", "the notebook has changed"


@pytest.mark.parametrize("wrong", [["item=1", "item=2"], ["item=1,1"], ["item=1,"], ["=1"]])
def test_a_grid_that_cannot_be_read_is_refused(wrong, tmp_path):
    with pytest.raises(ParameterError):
        runs.sweep("02-prompt-design", wrong, tmp_path)


def test_a_profile_says_what_untrained_heads_on_the_models_base_give(store, challenges):
    found = assess(SMALL, challenges, against=None, store=store).kernel
    expected = pm.nulls.kernel_statistics(pm.nulls.kernel("challenges", layers=3), 24)
    pd.testing.assert_frame_equal(found, expected)


def test_a_profile_shows_heads_on_its_base_and_on_the_three_others_nearest_in_size(store):
    name = "minilm-both-l6-s1"
    tables = assess(name, ["gad7", "challenges"], against=None, store=store)
    found = tables.sizes
    assert found["questionnaire"].unique().tolist() == ["gad7"]  # nobody else was asked challenges
    rows = found.set_index("respondents")
    own = [f"heads on its own base, {size}" for size in HEAD_SIZES]
    on_base = own[0]
    nearest = ["heads on MPNet", "heads on SmolLM2", "heads on Gemma 3 270M"]
    assert list(rows.index) == ["this model", *own, *nearest]
    assert rows.loc[own[1:], "alpha"].isna().all(), "the closed form is of small heads"

    # The embedded encoder is one of the bases: other heads, drawn in the same way.
    same = _study_bases().loc[("gad7", "MiniLM, 6 layers")]
    assert rows.loc[on_base, "alpha"] == pytest.approx(same["alpha"], abs=1e-3)
    assert rows.loc[on_base, "silhouette"] == pytest.approx(same["silhouette"], abs=0.03)
    own = pm.evidence.profiles(pm.ask("gad7", name, store), [pm.load_questionnaire("gad7")])
    expected = own["silhouette"].mean(axis=1).iloc[0]
    assert rows.loc["this model", "silhouette"] == pytest.approx(expected, abs=1e-6)
    size = rows.loc["this model", "million parameters"]
    assert size == pytest.approx(same["million parameters"], abs=0.1)


def test_each_base_of_the_study_is_shown_once_and_never_the_models_own():
    loaded = [pm.load_questionnaire("gad7")]
    flags = pd.DataFrame({"check": ["terms"], "scale": ["gad7"], "value": [0.1]})
    others = ["SmolLM2", "Gemma 3 270M"]
    for own, more in (("", "MPNet"), ("mpnet-base", "MiniLM, 6 layers")):
        shown = [more, *others]
        found = _compare_with_bases(loaded, 100.0, flags, {}, None, own)
        assert set(found["respondents"]) == {"this model", *(f"heads on {n}" for n in shown)}


def test_a_head_without_any_trend_counts_as_less_regular_than_the_model(challenges):
    own = _answered(challenges, stance=True)
    heads = pm.null_answers(challenges, "random-heads", 40)
    constant = heads["respondent_id"].isin(heads["respondent_id"].unique()[10:])
    heads.loc[constant, ["entailment", "neutral", "contradiction"]] = 1 / 3
    row = flags(own, challenges, heads).set_index("check").loc["trend"]
    assert "of 40 random heads are as regular" in row["words"]


def test_a_questionnaire_that_the_bases_were_not_asked_leaves_the_table_out(store, challenges):
    found = assess(SMALL, challenges, against=None, store=store)
    assert found.sizes is None
    assert "left out: sizes" not in found.asked.index  # nothing failed


def test_accuracy_forbids_to_read_where_guessing_has_as_much_and_others_decide_nothing(
    challenges, noise
):
    own = _answered(challenges, stance=True)
    good = _marks(flags(own, challenges, noise, accuracy=(0.7, 0.68, 0.72)))
    bad = _marks(flags(own, challenges, noise, accuracy=(0.5, 0.48, 0.52)))
    assert (good["accuracy"], bad["accuracy"]) == ("✓", "!")
    guessing = flags(own, challenges, noise, accuracy=(0.4, 0.3, 0.5))
    assert _marks(guessing)["guessing"] == "✗"
    words = "no better than guessing at inference; do not interpret"
    assert verdict(guessing, challenges.scales[0]) == ("✗", words)
    assert set(rules(True).index) >= set(guessing["check"])
