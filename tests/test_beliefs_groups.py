"""Groups in the study of beliefs: themes, scales, families, gender by age, likelihood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from psychometrics import claims, data
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.measures.beliefs import honest_by_likelihood, honest_summary, hurtful
from psychometrics.models.sources import find
from psychometrics.modes.completions import completion_rows, mine, require
from psychometrics.studies import fairbelief, fairbelief_groups
from psychometrics.studies.fairbelief import published, published_hits
from psychometrics.studies.fairbelief_groups import (
    family_matrix,
    gender_by_age,
    mined_standing,
    scale_gaps,
    theme_gaps,
)

GROUPS = published("templates")
MODELS = published()["respondent_id"].tolist()


def test_p_is_below_a_twentieth_where_a_lopsided_null_leaves_the_value_out():
    null = np.random.default_rng(0).exponential(size=4000) - 1
    low, high = np.quantile(null, [0.025, 0.975])
    for value, beyond in (
        (low - 0.02, True),
        (low + 0.02, False),
        (high + 0.2, True),
        (high - 0.2, False),
    ):
        assert (fairbelief.two_sided_p(value, null) < 0.05) == beyond
    assert fairbelief.two_sided_p(float(np.median(null)), null) == pytest.approx(1, abs=0.01)


def test_shares_of_a_theme_are_those_of_the_shipped_bits():
    found = theme_gaps(seed=1, n_resamples=50)
    hits = fairbelief.shipped_bits("themes")["collectives"][:, :, :10].mean(axis=(0, 2))
    queer = (GROUPS["subset"] == "queer").to_numpy()
    they = queer & (GROUPS["whom"] == "they").to_numpy()
    row = found.loc["fb-read-they"]
    assert row["first"] == pytest.approx(hits[they].mean())
    assert row["second"] == pytest.approx(hits[queer & ~they].mean())
    assert np.isnan(row["low"]), "one identity has no interval"
    assert (row["templates"], they.sum()) == (705, 15)
    known = claims.published().loc[found.index]
    assert (known["rule"] == "above").all()
    assert (known["chapter"] == "08-beliefs").all()


def test_a_question_of_ones_own_may_be_about_a_scoring():
    asked = {"old": ("unnamed", "age", ("old", "young"), "")}
    row = theme_gaps(1, 100, asked, top=100).loc["old"]
    share = published_hits("unnamed").mean(axis=(0, 2))
    means = [share[(GROUPS["age"] == age).to_numpy()].mean() for age in ("old", "young")]
    assert row["first"] == pytest.approx(means[0])
    assert row["value"] == pytest.approx(means[0] - means[1])
    assert row["null_low"] < 0 < row["null_high"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("nothing", "gender", ("female", "male"), ""), "scoring must be one of"),
        (("care", "height", ("tall", "small"), ""), "height is no column"),
        (("care", "gender", ("female", "nobody"), ""), "no template has gender 'nobody'"),
        (("care", "gender", ("female", "male"), "flies"), "no template has gender 'female'"),
    ],
)
def test_a_question_that_nothing_answers_says_so(question, message):
    with pytest.raises(ParameterError, match=message):
        theme_gaps(1, 10, {"mine": question})
    with pytest.raises(ParameterError, match="top is 101"):
        theme_gaps(1, 10, top=101)


def test_every_choice_of_predicates_is_dealt_once_and_the_real_one_is_among_them():
    square = np.random.default_rng(0).random((6, 6))
    square = np.triu(square, 1) + np.triu(square, 1).T
    np.fill_diagonal(square, np.nan)
    every = fairbelief_groups._all_dealt(square, 2)
    inside, outside = fairbelief_groups._inside_outside(square, [0, 1])
    assert len(every) == 15
    assert inside == pytest.approx(square[0, 1])
    rest = (np.nansum(square) - 2 * square[0, 1]) / (30 - 2)
    assert outside == pytest.approx(rest)
    assert every[0] == pytest.approx(inside - outside)


def test_wordings_of_work_are_compared_within_an_identity():
    table = published("predicates")
    table = table[table["first"].astype(str) != table["second"].astype(str)]
    assert (table.groupby(["subset", "identity"], observed=True).size() == 105).all()
    row = theme_gaps(1, 20).loc["fb-read-tenses"]
    work = table["first"].str.contains("work|hired|earned") & table["second"].str.contains(
        "work|hired|earned"
    )
    assert row["first"] == pytest.approx(table.loc[work, "similarity"].mean(), abs=1e-4)
    assert row["second"] == pytest.approx(table.loc[~work, "similarity"].mean(), abs=1e-4)


@pytest.mark.skipif(not data.available("hurtlex_en"), reason="needs the published text")
def test_the_shipped_themes_are_those_of_the_published_text():
    words = fairbelief.THEMES["trades"].split()
    rows = fairbelief.completions("bert", "queer")[:60]
    shipped = fairbelief.shipped_bits("themes")["trades"][MODELS.index("bert"), 810:870]
    hand = np.array([[bool(set(text.lower().split()) & set(words)) for text in r] for r in rows])
    assert (shipped == hand).all(), "BERT says one word at a time"


def test_the_gap_of_a_scale_is_that_of_table_1():
    table = scale_gaps("published", n_resamples=200).set_index("family")
    ours = honest_summary(published_hits(), GROUPS["subset"], MODELS).set_index("respondent_id")
    for family, small, large in (("BART", "bart-small", "bart-large"),
                                 ("VICUNA", "vicuna-7b", "vicuna-33b")):  # fmt: skip
        gap = ours.loc[large, "mean"] - ours.loc[small, "mean"]
        assert table.loc[family, "value"] == pytest.approx(gap)
    families = table.drop("all families")
    assert table.loc["all families", "value"] == pytest.approx(families["value"].mean())
    assert (table["null_low"] < 0).all()
    assert (table["null_high"] > 0).all()
    assert table.loc["VICUNA", "p"] == pytest.approx(2 / 201)


def test_gender_by_age_is_the_difference_of_two_differences():
    cells, effects = gender_by_age("unnamed", n_resamples=300)
    share = published_hits("unnamed").mean(axis=(0, 2))
    for row in cells.itertuples():
        inside = (GROUPS["gender"] == row.gender) & (GROUPS["age"] == row.age)
        inside &= GROUPS["subset"] == "binary"
        assert row.honest == pytest.approx(share[inside.to_numpy()].mean())
        assert row.templates == inside.sum()
    value = effects.set_index("effect")["value"]
    joint = value["female less male, old"] - value["female less male, young"]
    assert value["gender by age"] == pytest.approx(joint)
    assert (effects["null_low"] < 0).all()
    assert (effects["null_high"] > 0).all()


def test_families_agree_more_within_than_chance_and_the_sample_is_like_all():
    cells, contrasts = family_matrix(n_resamples=200)
    assert len(cells) == 28
    words = published("words").query("first == 'bart' and second == 'bart-large'")
    by_subset = [
        np.average(part["similarity"], weights=part["templates"])
        for _, part in words.groupby("subset", observed=True)
    ]
    pairs = [("bart", "bart-large"), ("bart-small", "bart"), ("bart-small", "bart-large")]
    every = published("words")
    means = []
    for first, second in pairs:
        part = every[(every["first"] == first) & (every["second"] == second)]
        halves = part.groupby("subset", observed=True)[["similarity", "templates"]]
        means.append(halves.apply(lambda h: np.average(h.iloc[:, 0], weights=h.iloc[:, 1])).mean())
    assert np.mean(by_subset) == pytest.approx(means[0])
    inside = cells.set_index(["first", "second"]).loc[("BART", "BART")]
    assert inside["words"] == pytest.approx(np.mean(means))
    assert (cells["low"] <= cells["words"]).all()
    assert (cells["words"] <= cells["high"]).all()
    assert contrasts.loc["within less between, words", "p"] == pytest.approx(2 / 201)
    assert abs(contrasts.loc["sample less all", "value"]) < 0.01


def test_likely_hits_weigh_more_and_equal_likelihoods_change_nothing():
    groups = pd.DataFrame({"subset": "one", "identity": [0, 0, 1, 1]})
    hits = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=bool)
    p = np.array([[0.5, 0.2, 0.1]] * 4)
    found = honest_by_likelihood(hits, np.log(p), groups, n_resamples=500)
    expected = np.mean([5 / 8, 2 / 8, 7 / 8, 0])
    assert found["by_probability"] == pytest.approx(expected)
    assert found["by_rank"] == pytest.approx(4 / 12)
    assert found["value"] == pytest.approx(expected - 4 / 12)
    assert found["null"] == pytest.approx(0, abs=0.08)
    assert found["covered"] == pytest.approx(0.8)
    flat = honest_by_likelihood(hits, np.log(np.full((4, 3), 0.1)), groups, n_resamples=20)
    assert flat["value"] == pytest.approx(0)
    assert flat["p"] == 1


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        (np.full((4, 2), -1.0), "shape"),
        (np.full((4, 3), np.nan), "at most 0"),
        (np.full((4, 3), 0.5), "at most 0"),
    ],
)
def test_a_likelihood_that_is_none_is_refused(logprobs, message):
    groups = pd.DataFrame({"subset": "one", "identity": [0, 0, 1, 1]})
    with pytest.raises(ParameterError, match=message):
        honest_by_likelihood(np.ones((4, 3), bool), logprobs, groups)
    with pytest.raises(ParameterError, match="one identity alone"):
        honest_by_likelihood(
            np.ones((4, 3), bool), np.full((4, 3), -1.0), groups.assign(identity=0)
        )


def test_the_conversational_model_stands_beside_the_others_on_the_same_templates():
    models, gaps = mined_standing(n_resamples=100)
    mined = published("mined")
    assert len(mined) == 480
    assert mined["template"].is_unique
    assert (np.stack(mined["logprob"]) <= 0).all()
    assert len(mined["digest"].iloc[0]) == 64
    of = published_hits("unnamed")[MODELS.index("gpt2")][mined["template"], :20]
    halves = GROUPS.loc[mined["template"], "subset"].to_numpy()
    hand = np.mean([of[halves == name].mean() for name in ("binary", "queer")])
    assert models.set_index("respondent_id").loc["gpt2", "honest"] == pytest.approx(hand)
    own = np.stack([np.frombuffer(row, np.uint8) for row in mined["unnamed"]])
    own = np.unpackbits(own, axis=1)[:, :20]
    hand = np.mean([own[halves == name].mean() for name in ("binary", "queer")])
    assert models.iloc[-1]["honest"] == pytest.approx(hand)
    assert models["null"].notna().sum() == 1
    assert set(gaps["pair"]) == {
        "female less male", "old less young", "queer less binary", "queer less nonqueer"
    }  # fmt: skip


def _at_hand() -> bool:
    try:
        require("smollm2")
    except RespondentError:
        return False
    return data.available("honest_templates_binary", "hurtlex_en")


@pytest.mark.skipif(not _at_hand(), reason="needs the model and the published text")
def test_the_conversational_model_completes_a_template_as_it_did(tmp_path):
    shipped = published("mined").iloc[0]
    assert shipped["digest"] == find("smollm2").revision
    asked = fairbelief.templates("binary")["template"].iloc[[shipped["template"]]]
    mined = mine("smollm2", asked, k=20, whole_words=True, store=tmp_path, progress=False)
    assert mined["respondent_id"].unique().tolist() == ["smollm2"]
    assert mined["logprob"].to_numpy() == pytest.approx(shipped["logprob"], abs=0.02)
    hits = hurtful(completion_rows(mined), fairbelief.lexicon()["lemma"].unique())
    assert np.packbits(hits, axis=1).tobytes() == shipped["lexicon"]


@pytest.mark.parametrize(
    ("options", "message"), [({"scoring": "published"}, "scoring"), ({"k": 21}, "k is 21")]
)
def test_only_what_was_mined_can_be_compared(options, message):
    with pytest.raises(ParameterError, match=message):
        mined_standing(**options)
