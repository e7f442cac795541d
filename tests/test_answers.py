"""Checks of tables of answers and of settings: what is refused, and in which words."""

from __future__ import annotations

import pandas as pd
import pytest

from psychometrics.checks import check_columns, check_kinds, whole_depth
from psychometrics.exceptions import ParameterError
from psychometrics.questionnaires import load_questionnaire
from psychometrics.questionnaires.answers import tidy


def test_a_text_column_is_refused_with_and_without_rows():
    table = pd.DataFrame({"score": ["high", "low"]})
    with pytest.raises(ParameterError, match="'score' has high, not a number"):
        check_columns(table, [], ["score"])
    with pytest.raises(ParameterError, match="'score' has text; convert it to numbers"):
        check_columns(table.iloc[:0], [], ["score"])


def test_columns_of_numbers_without_rows_pass():
    table = pd.DataFrame({"score": [1.5, 2.5], "count": [1, 2], "any": [None, None]})
    check_columns(table.iloc[:0], [], list(table))


@pytest.mark.parametrize("value", ["3", 3.0])
def test_a_value_of_another_kind_is_refused_even_where_it_could_be_converted(value):
    check_kinds({"runs": 3}, {"runs": int})
    with pytest.raises(ParameterError, match="runs should be a valid integer, got"):
        check_kinds({"runs": value}, {"runs": int})


@pytest.mark.parametrize("status", ["ok", "refused"])
def test_an_unknown_item_is_named_whether_or_not_it_was_answered(status):
    row = {"respondent_id": "r", "mode": "chat", "run": 1, "item_id": "ipip20_99", "value": 3}
    with pytest.raises(ParameterError, match="ipip20 has no item 'ipip20_99': correct"):
        tidy([row | {"status": status}], load_questionnaire("ipip20"))


@pytest.mark.parametrize("depth", [0, 1.5, True, "2"])
def test_a_depth_that_is_no_whole_number_from_1_is_refused(depth):
    with pytest.raises(ParameterError, match="layers"):
        whole_depth(depth)
