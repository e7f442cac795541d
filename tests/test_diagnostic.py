from __future__ import annotations

import os

import pytest

from psychometrics.asking.population import population
from psychometrics.exceptions import ParameterError, RespondentError
from psychometrics.modes import identify
from psychometrics_book.studies import diagnostic
from tests.conftest import needs

needs_text = needs("glue_diagnostic")


def test_people_are_as_many_as_were_accepted():
    phase = [len(diagnostic.answers("people", category)) for category in diagnostic.CATEGORIES]
    assert phase == [45, 35, 35, 20, 20, 19, 19]
    for category in diagnostic.CATEGORIES:
        assert diagnostic.answers("people", category, "completers").shape[0] == 19
        expected = 14 if category == "LE" else 15
        assert diagnostic.answers("people", category).shape[1] == expected
        asked = diagnostic.answers(category=category).columns
        assert diagnostic.answers("people", category).columns.equals(asked)


def test_a_few_answers_are_those_of_the_authors_figures():
    # The first three people of the phase on items 10, 22, 11, 23 (all right), from their script.
    first = diagnostic.answers("people", "MN").loc[[0, 1, 2], [10, 22, 11, 23]]
    assert (first == 1).all(axis=None)
    # The last person on world knowledge, items in their order.
    order = [565, 688, 564, 566, 689, 580, 567, 692, 581, 590, 693, 671, 591, 704, 674]
    last = diagnostic.answers("people", "WK")[order].iloc[-1]
    assert last.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1]


def test_models_know_how_they_were_trained():
    table = diagnostic.models()
    row = table.loc["roberta-large-nopretrain-finetune-snli+mnli+anli"]
    assert (row["family"], row["pretrained"], row["finetuned"]) == ("roberta", False, True)
    assert row["data"] == "snli+mnli+anli"
    assert row["builds_on"] == "roberta-large-nopretrain-nofinetune"
    assert set(table["data"]) == {"", "snli", "mnli", "snli+mnli", "snli+mnli+anli"}
    assert (table["data"] == "").equals(~table["finetuned"])
    assert table["family"].nunique() == 11


def test_items_are_twins_two_directions_of_one_pair_of_sentences():
    table = diagnostic.item_table()
    pairs = table.groupby("pair")
    assert (pairs.size() == 2).all()
    assert table["pair"].nunique() == 406
    # What contradicts a sentence is contradicted by it.
    mixed = pairs["label"].agg(lambda x: (x == "contradiction").sum())
    assert set(mixed) == {0, 2}
    assert (pairs["subcategory"].nunique() == 1).all()


def test_models_of_this_book_are_in_all_regimes_and_join_the_published_ones():
    live = diagnostic.models(live=True)
    assert set(live["regime"]) == set(diagnostic._REGIMES.values())
    assert not live.index.intersection(diagnostic.models().index).size
    assert diagnostic.answers(live=True).shape == (len(live), 812)
    assert live["accuracy"].between(live["low"], live["high"]).all()
    trained = live[live["finetuned"] & (live["population"] == "lstms")]
    assert len(trained) >= 8
    assert (trained["low"] > 1 / 3).all()


def test_unknown_names_are_refused_with_the_known_ones():
    for said, *given in (
        ("transformers, lstms", "gpt"),
        ("MN, PP", "people", "negation"),
        ("phase, completers", "people", "MN", "all"),
        ("name a category, or 'completers'", "people"),
    ):
        with pytest.raises(ParameterError, match=said):
            diagnostic.answers(*given)


def test_committed_answers_are_those_of_the_embedded_population_as_it_is():
    table = diagnostic.models(live=True)
    members = table[table["fingerprint"] != ""]
    assert set(members.index) == set(population("encoders"))
    now = {name: identify(name, dtype="float32")["fingerprint"] for name in members.index}
    assert members["fingerprint"].to_dict() == now


@needs_text
def test_an_embedded_respondent_gives_the_committed_answers_again(tmp_path, monkeypatch):
    table = diagnostic.models(live=True)
    members = table[table["fingerprint"] != ""]
    name = members.index[members.index.str.contains("-l3-")][0]
    asked = diagnostic.ask_diagnostic(name, store=tmp_path, progress=False)
    changed = (asked.loc[name] != diagnostic.answers(live=True).loc[name]).sum()
    assert changed <= 4  # a logit in the balance may fall differently on another processor

    def refuse(*_args, **_options):
        raise AssertionError("asked a second time")

    monkeypatch.setattr("psychometrics.modes.nli.NLIRespondent.answer", refuse)
    assert diagnostic.ask_diagnostic(name, store=tmp_path, progress=False).equals(asked)


@needs_text
@pytest.mark.filterwarnings("ignore:.*are longer than")
def test_who_knows_no_neutral_or_is_torn_is_left_out(save_tiny_model, tiny_model, tmp_path):
    two = save_tiny_model(tmp_path / "two", labels=("entailment", "not_entailment"))
    os.truncate(save_tiny_model(tmp_path / "torn") / "model.safetensors", 1000)
    how = {"store": tmp_path, "progress": False}
    with pytest.warns(UserWarning, match="(torn|two) did not answer everything"):
        asked = diagnostic.ask_diagnostic([two, tmp_path / "torn", tiny_model], **how)
    assert asked.index.tolist() == [tiny_model.name]
    with pytest.raises(RespondentError, match="two has two outputs"):
        diagnostic.ask_diagnostic(two, **how)


def test_nobody_and_the_same_respondent_twice_are_refused():
    for given in ([], [population("encoders")[0]] * 2):
        with pytest.raises(RespondentError):
            diagnostic.ask_diagnostic(given)
