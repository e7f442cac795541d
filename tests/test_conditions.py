from __future__ import annotations

import pandas as pd
import pytest

from psychometrics.endpoints.endpoint import Endpoint
from psychometrics.endpoints.server import simulated_endpoint
from psychometrics.exceptions import ParameterError
from psychometrics.modes.simulated import draw_traits
from psychometrics.questionnaires import load_questionnaire
from psychometrics.studies.conditions import crossed, rates

MINI = load_questionnaire("ipip20")


def test_every_combination_is_asked_once_and_told_apart(tmp_path):
    traits = draw_traits(MINI, 1, seed=3)
    varied = {"role": ["default", "hero"], "order": ["given", "reversed"], "cipher": [0, 3]}
    with simulated_endpoint(MINI, traits, refuses=0.3, seed=1) as url:
        how = {"endpoint": Endpoint(url), "runs": 2, "ask_again": 0, "batch_size": 5}
        table = crossed(MINI, list(traits.index), varied, store=tmp_path, **how)
    assert table.groupby(list(varied)).size().tolist() == [40] * 8
    assert table.attrs["summary"]["asked"] == 320
    read = rates(table, ["role", "cipher"], ["ok", "refused"])
    assert read.groupby(["role", "cipher"])["count"].sum().tolist() == [80] * 4
    assert (read["low"] < read["share"]).all()
    assert (read["share"] < read["high"]).all()


def test_wilsons_interval_is_that_of_the_textbook_also_at_the_ends():
    given = pd.DataFrame({"way": "a", "status": ["ok"] * 10})
    found = rates(given, ["way"]).set_index("status")
    # z² = 3.8415: 1 - z² / (10 + z²) = 0.7225
    assert found.loc["ok", "low"] == pytest.approx(0.7225, abs=1e-4)
    assert found.loc["refused", "high"] == pytest.approx(1 - 0.7225, abs=1e-4)
    assert rates(given.iloc[:0], ["way"]).empty


def test_what_cannot_be_crossed_is_refused_before_anybody_is_asked():
    for varied, how, message in (
        ({"role": []}, {}, "list of values"),
        ({"role": "hero"}, {}, "list of values"),
        ({"role": ["hero"]}, {"role": "liar"}, "varied and held"),
        ({"weather": ["rain"]}, {}, "no condition 'weather'"),
    ):
        with pytest.raises(ParameterError, match=message):
            crossed(MINI, "nobody", varied, **how)
    with pytest.raises(ParameterError, match="'status'"):
        rates(pd.DataFrame({"way": ["a"]}), ["way"])
