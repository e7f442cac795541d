"""Choosing prompts on half of the respondents: what is chosen, held out, and refused."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import tomllib
from fnmatch import fnmatch

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

import psychometrics as pm
from psychometrics.cli import app
from psychometrics.exceptions import ParameterError, QuestionnaireError, RespondentError
from psychometrics.paths import data_dir
from psychometrics_book.cli.studies import _improve
from psychometrics_book.studies import candidates, choosing, improving

OWN = """
id: tea
title: Love of tea
short_title: Tea
measures: love of tea
citation: user
source: written for this test
licence: CC0
intensifiers:
  - {weight: -2, terms: [never]}
  - {weight: -1, terms: [seldom, rarely]}
  - {weight: 1, terms: [often]}
  - {weight: 2, terms: [always]}
items:
  - id: tea_1
    text: I like to drink tea.
    templates:
      - premise: "When there is tea, I {term} it."
        hypothesis: "It {intensifier} happens to me."
        terms: {source: [enjoy, like], inverse: [avoid, dislike]}
    candidates:
      - {premises: ["When tea is there, I {term} it."], source: [love], inverse: [hate]}
scales:
  - {id: tea, title: Love of tea, items: all}
"""


def _content(pool):
    """Measures without a model: Mars has nothing to do with tea."""
    table = pm.prompts(pool)
    similar = np.where(table["premise"].str.contains("Mars"), 0.1, 0.6)
    return table.assign(similarity=similar, acceptability=0.8)


GOOD = "When tea is there"
"""A premise whose terms a respondent may tell apart."""


class Fake:
    """Answers by chance, but tells the terms of chosen premises apart."""

    def __init__(self, name: str, good: str | None = None) -> None:
        self.good = good
        self.identity = {
            "respondent_id": name, "source": "test", "model": name, "revision": "", "mode": "nli",
            "dtype": "float32", "fingerprint": f"{name}-{good}", "device": "cpu",
        }  # fmt: skip

    def answer(self, pairs) -> np.ndarray:
        rows = []
        for premise, hypothesis in pairs:
            noise = hashlib.sha256(f"{self.identity['model']}{premise}{hypothesis}".encode())
            value = int.from_bytes(noise.digest()[:4], "big") / 2**32
            if self.good and self.good in premise:
                likes = any(word in premise for word in (" like", "enjoy", "love"))
                often = any(word in hypothesis for word in ("often", "always"))
                value = 0.8 + 0.02 * value if likes == often else 0.1 + 0.02 * value
            rows.append([0.05 + 0.9 * value, 0.02, 0.0])
        return np.array(rows, dtype="float32")


@pytest.fixture(scope="module", autouse=True)
def measures():
    """Choosing without an encoder: content, neutrality and null answers are computed here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "content_validity", _content)
        patch.setattr(choosing._Choice, "neutrality", lambda run, entries: np.ones(len(entries)))
        patch.setattr(
            choosing, "null_answers",
            lambda asked, respondents, base, seed: pm.null_answers(
                asked, "noise", respondents, seed=seed
            ),
        )  # fmt: skip
        yield


@pytest.fixture(scope="module")
def tea(tmp_path_factory):
    """Function that writes the text to a file and loads it."""

    def load(text: str = OWN):
        path = tmp_path_factory.mktemp("tea") / "tea.yaml"
        path.write_text(text)
        return pm.load_questionnaire(path)

    return load


@pytest.fixture(scope="module")
def improved(tea, tmp_path_factory):
    """Function that chooses once for all tests; by default no screen keeps a candidate out."""
    store = tmp_path_factory.mktemp("store")

    @functools.cache
    def run(good=None, held_out=GOOD, text=OWN, tolerance=9.0):
        names = ["f-1", "f-2", "f-3", "f-4", "f-5", "f-6"]
        half = improving._halves(names)["half"]
        given = [Fake(n, good if h == "chosen on" else held_out)
                 for n, h in zip(names, half, strict=True)]  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(choosing, "TOLERANCE", tolerance)
            patch.setattr(choosing, "_NULLS", 3)
            return improving.improve(tea(text), given, store=store, progress=False)

    return run


def test_halves_are_drawn_within_families_whatever_the_order_of_the_names():
    names = [f"{family}-{n}" for family in "ab" for n in range(6)] + ["c-1"]
    table = improving._halves(names)
    of = table.groupby("family")["half"].value_counts().unstack(fill_value=0)
    assert of.loc[["a", "b"]].to_numpy().tolist() == [[3, 3], [3, 3]]
    assert abs(table["half"].value_counts().diff().iloc[-1]) == 1
    again = improving._halves(names[::-1]).set_index("respondent_id")["half"]
    assert again[names].tolist() == table["half"].tolist()
    assert improving._halves(names, seed=2)["half"].tolist() != table["half"].tolist()
    members = [*pm.population("encoders")[:2], *pm.population("decoders")[:2]]
    families = improving._halves(members).groupby("half")["family"].agg(sorted)
    assert families.tolist() == [["MiniLM", "SmolLM2"]] * 2


def test_listed_wordings_and_those_by_rules_come_after_the_present_one(tea):
    for hypothesis, moved in {
        "I {intensifier} feel this way.": "I feel this way {intensifier}.",
        "{intensifier} it is so!": "It is so {intensifier}!",
        "It is {intensifier} like that": "It is like that {intensifier}",
    }.items():
        assert candidates._at_end(hypothesis) == moved, "the gap moves to the end"
    table = candidates.wordings(tea())
    assert table["rule"].tolist() == ["present", "listed", "hypothesis", "end"]


def test_the_candidate_that_separates_is_chosen_and_gains_on_the_held_out_half(improved):
    found = improved(GOOD)
    (template,) = found.questionnaire.items[0].templates
    assert template.premise == "When tea is there, I {term} it."
    row = improving.held_out(found.silhouettes).iloc[0]
    assert row["improved"] > 0.8
    assert row["gain"] > 0.3
    assert row["n"] == 3
    out = found.split.loc[found.split["half"] == "held out", "respondent_id"]
    own = found.silhouettes.query("half == 'held out'")
    assert set(own["respondent_id"]) == set(out)


def test_what_is_chosen_does_not_depend_on_the_held_out_answers(improved):
    first, second = improved(), improved(None, "When there is tea")
    assert first.questionnaire == second.questionnaire
    pd.testing.assert_frame_equal(first.candidates, second.candidates)


def test_of_those_allowed_the_one_farthest_above_the_null_is_chosen(improved):
    table = improved().candidates
    for _, part in table[table["allowed"]].groupby(["stage", "item_id", "template"]):
        assert part.loc[part["chosen"], "separation"].item() == part["separation"].max()
    difference = table["silhouette"] - table["null"] - table["separation"]
    assert difference.abs().max() < 1e-9


def test_a_candidate_that_strays_from_the_item_is_not_chosen_however_well_it_separates(improved):
    strange = OWN.replace("When tea is there, I {term} it.", "Moons of Mars whom I {term} vote.")
    found = improved("Moons of Mars", "Moons of Mars", strange, choosing.TOLERANCE)
    rows = found.candidates.query("stage == 'wording'").set_index("rule")
    assert rows["separation"].idxmax() == "listed"
    assert not rows.loc["listed", "allowed"]
    assert not rows.loc["listed", "chosen"]
    assert found.candidates.groupby("stage")["chosen"].sum().eq(1).all()


def test_other_intensifiers_are_tried_at_the_end_of_the_hypothesis(improved):
    words = OWN.replace("items:\n", "candidates:\n  - - {weight: -1, terms: [once a year, twice]}\n"
                        "    - {weight: 1, terms: [every hour, daily]}\nitems:\n", 1)  # fmt: skip
    found = improved(text=words)
    rows = found.candidates.query("stage == 'intensifiers'")
    assert rows["rule"].tolist() == ["present", "listed"]
    chosen = rows.set_index("rule")["chosen"]
    levels = found.questionnaire.intensifiers
    assert ("every hour" in levels[-1].terms) == chosen["listed"]
    if chosen["listed"]:
        (template,) = found.questionnaire.items[0].templates
        assert template.hypothesis.endswith("{intensifier}.")


def test_as_many_terms_are_chosen_as_there_were_from_those_listed(improved):
    found = improved()
    (template,) = found.questionnaire.items[0].templates
    assert len(template.terms.source) == len(template.terms.inverse) == 2
    assert set(template.terms.source) <= {"enjoy", "like", "love"}
    assert found.candidates.query("stage == 'terms'")["of"].unique().tolist() == [9]


def test_the_improved_file_loads_says_its_origin_and_is_never_overwritten(improved, tmp_path):
    found = improved(GOOD)
    path, report = tmp_path / "tea_better.yaml", tmp_path / "report.csv"
    found.write(path, report)
    again = pm.load_questionnaire(path)
    assert again.id == "tea_better"
    assert again.short_title == "Tea (improved)"
    assert again.items == found.questionnaire.items
    assert "candidates" not in yaml.safe_load(path.read_text())
    head = path.read_text().split("\nid:")[0]
    assert re.search(r"on \d{4}-\d\d-\d\d, seed 1", head)
    chose = found.split.loc[found.split["half"] == "chosen on", "respondent_id"]
    assert f"Chosen on the answers of {', '.join(chose)}" in head
    assert len(pd.read_csv(report)) == len(found.candidates)
    new = tmp_path / "new.csv"
    for place, table, said in (
        (path, new, "not overwritten"), (tmp_path / "new.yaml", report, "not overwritten"),
        (tmp_path / "Tea.yml", new, "lower-case letters"),
        (tmp_path / "no" / "tea.yaml", new, "no folder"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=said):
            found.write(place, table)


BARE = OWN.replace(OWN[OWN.index("    candidates:") : OWN.index("scales:")], "")
BARE = BARE.replace("{term}", "like", 1).replace("{intensifier}", "{intensifier} {term}", 1)
SINGLE = OWN.replace("[enjoy, like]", "[enjoy]").replace("[avoid, dislike]", "[avoid]")


@pytest.mark.parametrize(
    ("text", "respondents", "how", "error", "said"),
    [
        (OWN, "a,b,c", {}, ParameterError, "3 respondent"),
        (BARE, "a,b,c,d", {}, ParameterError, "no candidates"),
        (SINGLE, "a,b,c,d", {}, ParameterError, "item tea_1, template 1"),
        ("ipip50", "a,b,c,d", {}, QuestionnaireError, "no prompts"),
        (OWN, "a,b,c,d", {"seed": -1}, ParameterError, "seed"),
        (OWN, "nobody-1,nobody-2,nobody-3,nobody-4", {}, RespondentError, "nobody-1"),
    ],
)
def test_what_cannot_be_improved_is_refused_first(tea, text, respondents, how, error, said):
    with pytest.raises(error, match=said):
        improving.improve(text if text == "ipip50" else tea(text), respondents, **how)


def test_by_default_those_choose_whose_weights_are_in_every_installation():
    """The decoders' weights are a package of their own."""
    default = inspect.signature(improving.improve).parameters["respondents"].default
    command = inspect.signature(_improve).parameters["respondents"].default
    assert default == command == "encoders"
    settings = tomllib.loads((data_dir().parent / "pyproject.toml").read_text(encoding="utf-8"))
    left_out = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]
    names = pm.population(default)
    files = [f"data/population/{name}/adapter_model.safetensors" for name in names]
    assert not [file for file in files if any(fnmatch(file, pattern) for pattern in left_out)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("premises: [", "template: 2, premises: ["),
        ("source: [love]", "source: [enjoy]"),
        ("When tea is there, I {term} it.", "Tea is there."),
    ],
)
def test_a_mistake_in_the_candidates_is_named_with_its_place(tea, before, after):
    with pytest.raises(QuestionnaireError, match=r"item 1 \(tea_1\): in candidate 1"):
        tea(OWN.replace(before, after))


def test_held_out_by_hand():
    rows = []
    values = {
        "chosen on": {"present": [0.1, 0.3], "improved": [0.7, 0.9]},
        "held out": {"present": [0.2, 0.4], "improved": [0.5, 0.9], "chance": [0.3, 0.3]},
        "null": {"present": [0.0, 0.1], "improved": [0.2, 0.2]},
    }
    for half, kinds in values.items():
        for kind, numbers in kinds.items():
            rows += [("q", "i", half, f"{half}{n}", kind, x) for n, x in enumerate(numbers)]
    columns = ["questionnaire", "item_id", "half", "respondent_id", "prompts", "silhouette"]
    frame = pd.DataFrame(rows, columns=columns)
    row = improving.held_out(frame, ["questionnaire", "item_id"]).iloc[0]
    expected = {"present": 0.3, "improved": 0.7, "chance": 0.3, "gain": 0.4, "over_chance": 0.4,
                "gain_chosen_on": 0.6, "n": 2}  # fmt: skip
    assert {k: pytest.approx(v) for k, v in expected.items()} == row[list(expected)].to_dict()
    with pytest.raises(ParameterError, match="twice"):
        improving.held_out(pd.concat([frame, frame]))


def test_the_command_improves_a_file_of_ones_own(tmp_path, monkeypatch, improved):
    made = improved(GOOD)
    monkeypatch.setattr(improving, "improve", lambda *given, **how: made)
    path = tmp_path / "tea.yaml"
    path.write_text(OWN)
    result = CliRunner().invoke(app, ["improve", str(path)], catch_exceptions=False)
    assert "chosen_on" in result.stdout
    assert (tmp_path / "tea_improved_candidates.csv").is_file()
    assert pm.load_questionnaire(tmp_path / "tea_improved.yaml").id == "tea_improved"
    assert path.read_text() == OWN


def test_present_silhouettes_are_those_of_the_answers(improved, tea, tmp_path):
    found = improved(GOOD)
    given = [Fake(n, GOOD) for n in found.split.query("half == 'chosen on'")[
        "respondent_id"]]  # fmt: skip
    answers = pm.ask(tea(), given, store=tmp_path / "store", progress=False)
    expected = pm.validity.term_silhouettes(pm.pss(answers)).set_index("respondent_id")
    own = found.silhouettes.query("half == 'chosen on' and prompts == 'present'")
    own = own.set_index("respondent_id")["silhouette"]
    assert own.to_dict() == pytest.approx(expected["silhouette"].to_dict())


def test_shipped_results_are_of_the_shipped_prompts():
    found, candidates, words = (
        pd.read_csv(pm.paths.data_dir() / f"{name}.csv", keep_default_na=False, na_values=[""])
        for name in ("improved", "improved_candidates", "improved_words")
    )
    for name in found["questionnaire"].unique():
        present, better = pm.load_questionnaire(name), pm.load_questionnaire(f"{name}_improved")
        assert [item.id for item in present.items] == [item.id for item in better.items]
        chosen = candidates.query("questionnaire == @name and stage == 'terms' and chosen")
        said = [t.premise for item in better.items for t in item.templates]
        assert chosen["premise"].tolist() == said
        assert pm.questionnaires.counts(present)["prompts"].sum() == len(pm.prompts(better))
        halves = set(found.loc[found["questionnaire"] == name, "half"])
        assert halves == {"chosen on", "held out", "null", "another family", "its null"}
        assert set(words.loc[words["questionnaire"] == name, "place"]) == {"as it is", "end"}
    assert np.isfinite(found["silhouette"]).all()
