"""What roles do: shares over items, differences by item, a user's own questions."""

from __future__ import annotations

from data.make import behaviour as behaving
from psychometrics import ask


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
