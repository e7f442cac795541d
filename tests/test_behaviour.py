"""What roles do: shares over items, differences by item, a user's own questions."""

from __future__ import annotations

import pandas as pd

from data.make import behaviour as behaving
from psychometrics import ask
from psychometrics.paths import data_dir
from tests.endpoint import served


def test_a_question_has_its_best_answer_once_and_not_always_in_one_place():
    sheet = behaving._sheet(behaving._facts())
    places = [[option.value for option in item.options].index(1) for item in sheet.items]
    assert len(sheet.items) == 24
    assert all(sorted(o.value for o in item.options) == [1, 2, 3, 4] for item in sheet.items)
    assert [places.count(place) for place in range(4)] == [6, 6, 6, 6]


def test_a_fact_is_right_where_the_option_of_value_one_is_chosen(tmp_path):
    own = behaving._facts().iloc[:3]
    roles = {"default": "default"}
    found = behaving.known("smollm2", own, roles, tmp_path, dtype="bfloat16")
    given = ask(  # from the store: the same question has been asked
        behaving._sheet(own), "smollm2", tmp_path, "options", labels="alphabetical",
        role="default", dtype="bfloat16", progress=False,
    )  # fmt: skip
    assert given.attrs["summary"]["asked"] == 0
    assert given["value"].between(1, 4).all()
    assert found["value"].tolist() == (given["value"] == 1).astype(float).tolist()
    assert found["item"].tolist() == ["1", "2", "3"]


def test_requests_go_to_an_endpoint_and_a_judge_is_held_against_labelled_replies(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    labelled = pd.read_csv(data_dir() / "texts" / "labelled_replies.csv").dropna()
    with served() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        own = behaving._requests().iloc[:3]
        found = behaving.declined("m", own, {"default": "default"}, 2, judge="j", store=tmp_path)
        table = behaving.agreement("j", tmp_path)
    assert found["role"].value_counts().to_dict() == {"default": 6, behaving.AGAIN: 6}
    sent = [request["messages"] for request in server.requests]
    asked = [turns[-1]["content"] for turns in sent if turns[-1]["content"] in set(own["text"])]
    assert sorted(asked) == sorted([*own["text"]] * 4)
    assert table.loc["rules", "replies"] == len(labelled)
    assert table.loc["rules", "decline"] == labelled["declines"].sum() == 5
    assert 0 <= table.loc["judge", "agreement"] <= 1
