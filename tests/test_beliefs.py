"""Beliefs: what counts as hurtful, HONEST by hand, gaps with their nulls, sheets for readers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psychometrics import data
from psychometrics.exceptions import ParameterError
from psychometrics.measures import beliefs
from psychometrics.modes.completions import lexicon, templates
from psychometrics.paths import data_dir
from psychometrics_book.studies.content import rater_agreement
from psychometrics_book.studies.hits import unpack_bits
from tests.conftest import needs

KEYS = [key for key in data.registry() if key.startswith(("fairbelief_", "honest_", "hurtlex"))]
needs_text = needs(*KEYS)
FOLDER = data_dir() / "beliefs"
MODELS = pd.read_csv(FOLDER / "table1.csv")["respondent_id"].tolist()
GROUPS = pd.read_csv(FOLDER / "templates.csv")
BITS = unpack_bits(pd.read_parquet(FOLDER / "hits.parquet"))
WORDS = ["rat", "thief", "pédant", "👮", "gag reel"]


def test_honest_at_k_is_the_share_of_templates_by_hand():
    # Templates of two completions each: first rank 2 of 4 hurtful, second rank 1 of 4.
    rows = [["a thief", "a baker"], ["rat", "thief!"], ["rate", "ratty"], ["the cook", "an aunt"]]
    hits = beliefs.hurtful(rows, WORDS)
    assert hits.tolist() == [[True, False], [True, True], [False, False], [False, False]]
    assert hits.mean(axis=0).tolist() == [0.5, 0.25]  # HONEST at each rank


HURTFUL = ["rat", "what a rat.", '"rat"', "rat-like", "rat's", "love\nrat\tdog", "pedant", "pédant",
           "pe\u0301dant", "half a pair \ud83d of a rat"]  # fmt: skip
# Of a lemma of two words neither is the lemma; the separator inside a completion is no blank.
HARMLESS = ["rats", "Rat", "gag reel", "", "...", "🙂", "a\x01rat"]


def test_a_completion_is_hurtful_if_a_word_of_it_is_a_lemma():
    assert beliefs.hurtful([[text, "fine"] for text in HURTFUL], WORDS)[:, 0].all()
    assert not beliefs.hurtful([[text, "fine"] for text in HARMLESS], WORDS).any()


def test_empty_words_do_not_count():
    rows = [["fine, thanks", "so 🙂 kind"], ["good people", "�� a rat"]]
    assert beliefs.hurtful(rows, WORDS).tolist() == [[False, False], [False, True]]


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6), st.sampled_from(["rat", "thief"]))
def test_adding_a_lemma_makes_any_completion_hurtful(texts, lemma):
    assert beliefs.hurtful([[f"{text} {lemma} {text}" for text in texts]], WORDS).all()
    alone = [beliefs.hurtful([[text]], WORDS)[0, 0] for text in texts]
    assert beliefs.hurtful([texts], WORDS)[0].tolist() == alone


@pytest.mark.parametrize("mark", ["ㅇ", "♥", "♔", "・・", "℃", "ー", "👮🏽", "�", "\u0361"])
def test_a_word_without_a_letter_in_ascii_is_no_lemma(mark):
    assert not beliefs.hurtful([[f"so {mark}"]], WORDS).any()


def test_a_p_value_is_below_05_where_the_middle_of_the_null_excludes_the_value():
    null = np.concatenate([np.linspace(-1, 0, 900), np.linspace(0, 5, 100)])
    for value in (-0.99, -0.9, 0.0, 3.0, 4.5):
        row = beliefs.contrast(np.array([value]), null)
        assert (row["p"] < 0.05) == (not row["null low"] <= value <= row["null high"])
        assert np.isnan(row["low"])


KEYS_OF_SHEETS = ["instance", "respondent_id", "rank"]


def _filled(choices):
    """One sheet a person, labelled in turn from the choices."""
    rows = [(name, i // 4, "ab"[i // 2 % 2], i % 2, choices[name][i % 2])
            for name in choices for i in range(20)]  # fmt: skip
    return pd.DataFrame(rows, columns=["rater", *KEYS_OF_SHEETS, "label"])


def test_own_templates_and_own_lexicon_are_files_in_any_language(tmp_path):
    own = tmp_path / "vorlagen.tsv"
    own.write_text("template\tGruppe\nDie Frau ist [M].\tFrau\nDer Mann ist [M].\tMann\n")
    frame = templates(own)
    assert list(frame.columns) == ["template", "Gruppe"]
    words = tmp_path / "woerter.csv"
    words.write_text("lemma,category\ndämlich,cds\n")
    hits = beliefs.hurtful([["dämlich", "klug"], ["klug", "Dämlich"]], lexicon(words)["lemma"])
    assert hits.tolist() == [[True, False], [False, False]]
    own.write_text("template\nDie Frau ist.\n")
    words.write_text("word,category\nx,y\n")
    for read, file in ((templates, own), (lexicon, words)):
        with pytest.raises(ParameterError):
            read(file)


def test_wrong_input_is_refused():
    sheet = _filled({"ada": "sn", "ben": "sn"})
    for call in (
        lambda: beliefs.hurtful([["a"], ["b", "c"]], WORDS),
        lambda: beliefs.hurtful([], WORDS),
        lambda: beliefs.hurtful([["a", None]], WORDS),
        lambda: rater_agreement(sheet[sheet["rater"] == "ada"], ["label"], KEYS_OF_SHEETS, "sn"),
        lambda: rater_agreement(pd.concat([sheet, sheet]), ["label"], KEYS_OF_SHEETS, "sn"),
        lambda: rater_agreement(sheet.assign(label=""), ["label"], KEYS_OF_SHEETS, "sn"),
        lambda: rater_agreement(sheet.drop(columns="label"), ["label"], KEYS_OF_SHEETS, "sn"),
    ):
        with pytest.raises(ParameterError):
            call()


def test_letters_with_a_bar_are_spelled_out_in_ascii_alone_and_other_scripts_stay():
    assert not beliefs.hurtful([["đồ"]], ["do", "👮"]).any()
    for text, lemma in (("naïve", "naive"), ("Ｆｕｌｌ", "Full"), ("приве́т", "привет")):
        assert beliefs.hurtful([[text]], [lemma]).all()


def test_the_projects_own_words_are_plain_and_its_templates_treat_all_groups_alike():
    words, frame = lexicon("own"), templates("own")
    assert not words["lemma"].duplicated().any()
    assert words["lemma"].str.fullmatch("[a-z]+").all()
    pairs = zip(frame["template"], frame["identity"], strict=True)
    bare = [text.lower().replace(identity, "PERSON") for text, identity in pairs]
    assert pd.Series(bare).value_counts().tolist() == [10] * 5
    assert frame["gender"].value_counts()["woman"] == frame["gender"].value_counts()["man"]


def test_a_contrast_by_hand_from_its_samples_and_draws():
    # The value, three bootstrap samples and three draws of the null in one array.
    row = beliefs.contrast(np.array([2.0, 1.0, 2.0, 3.0, 0.0, 0.0, 1.0]))
    assert (row["value"], row["null"]) == (2.0, 0.0)
    assert (row["low"], row["high"]) == pytest.approx((1.05, 2.95))
    assert (row["null low"], row["null high"]) == pytest.approx((0.0, 0.95))
    assert row["p"] == 0.5  # no draw is as large: 2 (1 + 0) / (1 + 3)


def test_draws_that_equal_the_value_but_for_rounding_are_in_both_tails():
    assert beliefs.contrast(np.array([0.1 + 0.2]), null=np.full(39, 0.3))["p"] == 1.0
    above_by_one, below_by_one = np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, -1.0])
    for null in (above_by_one, below_by_one):
        assert beliefs.contrast(np.array([0.0]), null)["p"] == 1.0  # 2 (1 + 2) / 4, at most 1


def test_packed_bits_come_back_by_respondent_template_and_rank():
    bits = np.random.default_rng(0).random((2, 2, 100)) < 0.5  # 100 ranks fill 13 bytes
    rows = [np.packbits(row).tobytes() for row in bits.reshape(4, 100)]
    table = pd.DataFrame(
        {"respondent_id": list("aabb"), "template": [1, 2] * 2, "hits": rows, "turned": rows[::-1]}
    )
    found = unpack_bits(table)
    assert set(found) == {"hits", "turned"}
    np.testing.assert_array_equal(found["hits"], bits)
    np.testing.assert_array_equal(found["turned"], bits[::-1, ::-1])


OWN = pd.DataFrame(
    {
        "respondent_id": list("aaaabbbb"),
        "template": ["She is [M].", "He is [M]."] * 4,
        "identity": ["she", "he"] * 4,
        "rank": [1, 1, 2, 2] * 2,
        "completion": ["a nurse", "a thief", "kind", "tall", "a nurse", "kind", "a thief", "tall"],
    }
)
"""Two models, two templates, two ranks."""


def test_shares_by_rank_are_counted_by_model_and_theme():
    words = pd.DataFrame({"lemma": ["nurse", "thief"], "category": ["care", "crime"]})
    found = beliefs.shares_by_rank(OWN, words).set_index(["category", "respondent_id", "rank"])
    by_hand = {("care", "a", 1): 0.5, ("care", "b", 1): 0.5, ("care", "a", 2): 0.0}
    by_hand |= {("crime", "a", 1): 0.5, ("crime", "b", 1): 0.0, ("crime", "b", 2): 0.5}
    for cell, share in by_hand.items():
        assert found.loc[cell, "mean"] == share
        assert found.loc[cell, "n"] == 2


def test_a_column_called_like_a_category_changes_nothing():
    said = pd.DataFrame({"respondent_id": "m", "template": ["a", "b"], "rank": 1})
    said["completion"] = ["thief", "kind"]
    marked = said.assign(hurtful=[True, False])
    pd.testing.assert_frame_equal(
        beliefs.shares_by_rank(marked, ["thief"]), beliefs.shares_by_rank(said, ["thief"])
    )


def test_a_difference_of_groups_is_theirs_and_its_null_deals_identities():
    said = pd.DataFrame({"template": [f"{n}" for n in range(16)], "rank": 1, "respondent_id": "m"})
    said["identity"] = said["template"].astype(int) // 2  # eight identities, two templates each
    said["gender"] = np.where(said["identity"] < 4, "female", "male")
    said["completion"] = np.where(said["gender"] == "female", "nurse", "guard")
    found = beliefs.group_differences(said, ["nurse"], "gender", ("female", "male"))
    row = found.iloc[0]
    assert (row["first"], row["second"], row["value"]) == (1.0, 0.0, 1.0)
    # Of the 70 ways to deal eight identities to four and four, one has all four nurses first.
    assert row["p"] == pytest.approx(2 / 70, abs=0.012)
    assert row[["low", "high"]].isna().all(), "resampling units that agree shows no variation"
    with pytest.raises(ParameterError):
        beliefs.group_differences(said.assign(identity=1), ["nurse"], "gender", ("female", "male"))
    with pytest.raises(ParameterError):
        beliefs.group_differences(said, ["nurse"], "gender", ("female", "old"))


def test_models_agree_by_the_same_word_and_at_chance_by_that_of_another_template():
    found = beliefs.agreement(OWN).set_index("rank")
    assert found["group"].tolist() == ["a, b", "a, b"]
    assert found["mean"].tolist() == [0.5, 0.5]
    assert found["chance"].tolist() == [0.0, 0.0]
    for wrong in (OWN[OWN["respondent_id"] == "a"], OWN.iloc[1:], pd.concat([OWN, OWN])):
        with pytest.raises(ParameterError):
            beliefs.agreement(wrong)


def _completed(**columns) -> pd.DataFrame:
    """Completions of one model at the first rank, one template per row."""
    frame = pd.DataFrame({"respondent_id": "m", "rank": 1, **columns})
    return frame.assign(template=[f"{number} [M]" for number in range(len(frame))])


def test_groups_of_one_unit_have_no_interval_and_no_p():
    said = _completed(completion=["rat", "kind", "kind"], identity=list("abc"), gender=list("fmm"))
    row = beliefs.group_differences(said, WORDS, "gender", "fm").iloc[0]
    assert row[["first", "second", "value"]].tolist() == [1.0, 0.0, 1.0]
    assert row[["low", "high", "p"]].isna().all()
    both = pd.concat([said, said.assign(identity=list("def"), template=list("xyz"))])
    both.loc[0, "completion"] = ["rat", "kind"]  # of two templates, each of another identity
    row = beliefs.group_differences(both, WORDS, "gender", "fm").iloc[0]
    assert row[["low", "high", "p"]].notna().all()


def test_a_model_that_lacks_a_group_is_refused():
    said = _completed(completion=["rat", "kind"], identity=list("ab"), gender=list("fm"))
    said = pd.concat([said, said.iloc[:1].assign(respondent_id="n")])
    with pytest.raises(ParameterError, match="gender"):
        beliefs.group_differences(said, WORDS, "gender", "fm")


def test_templates_that_name_nobody_belong_to_no_group():
    named = _completed(completion=["rat", "kind"], identity=list("ab"), gender=list("fm"))
    other = _completed(completion=["rat"], identity=[None], gender=[None]).assign(template="x [M]")
    found = beliefs.group_differences(pd.concat([named, other]), WORDS, "gender", "fm")
    assert found[["first", "second"]].to_numpy().tolist() == [[1.0, 0.0]]


def test_intervals_of_agreement_stay_within_their_range():
    said = _completed(completion=["kind", "tall"])
    both = pd.concat([said, said.assign(respondent_id="n", completion=["kind", "small"])])
    assert beliefs.agreement(both)[["mean", "low", "high"]].to_numpy().tolist() == [[0.5, 0, 1]]


def test_a_share_of_units_that_all_agree_has_wilsons_interval():
    # none of 4 hurtful: from 0 to z² / (4 + z²) = 3.8415 / 7.8415
    table = _completed(completion=["kind", "tall", "mild", "calm"])
    row = beliefs.shares_by_rank(table, WORDS).iloc[0]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx([0, 0, 0.4899], abs=1e-4)
    row = beliefs.shares_by_rank(table.assign(completion="rat"), WORDS).iloc[0]
    assert row[["mean", "low", "high"]].tolist() == pytest.approx([1, 0.5101, 1], abs=1e-4)
    alone = beliefs.shares_by_rank(table.iloc[:1], WORDS)
    assert alone[["low", "high"]].isna().all(axis=None), "one unit shows no variation"


def test_categories_stay_in_the_order_of_the_lexicon():
    words = pd.DataFrame({"lemma": ["rat", "thief"], "category": ["z", "a"]})
    found = beliefs.shares_by_rank(_completed(completion=["rat", "kind"]), words)
    assert found["category"].tolist() == ["z", "a"]
