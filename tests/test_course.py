"""The teacher's items: forty, different, and right by arithmetic of another kind."""

import re

import pandas as pd
import pytest

from recipes import lab
from recipes.course import items


@pytest.mark.parametrize("seed", [0, 7])
def test_forty_items_have_answers_that_plain_arithmetic_gives_too(seed):
    table = items(seed)
    assert len(table) == 40
    assert table["question"].is_unique
    assert table["answer"].between(-9, 99).all()
    for question, found in zip(table["question"], table["answer"], strict=True):
        x = [float(n.replace("−", "-")) for n in re.findall(r"[-−]?\d+(?:\.\d+)?", question)]
        if "PSS of *often*" in question:
            a, b = x[0] / (x[0] + x[2]), x[1] / (x[1] + x[3])
            assert found == pytest.approx(b / (a + b))
        elif "On a line" in question:
            near, far = abs(x[0] - x[1]), (abs(x[0] - x[2]) + abs(x[0] - x[3])) / 2
            assert found == pytest.approx((far - near) / max(near, far))
        elif "attenuation" in question:
            assert found**2 == pytest.approx(x[0] ** 2 / (x[1] * x[2]))
        elif "probability is it solved" in question:
            assert found == pytest.approx(1 / (1 + 2.718281828459045 ** (x[1] - x[0])))
        elif "What is δ" in question:
            assert found * x[3] == pytest.approx(x[0] - x[2])


def test_the_lab_has_twenty_links_and_the_scores_that_python_gets():
    folder = lab.data_dir() / "lab"
    sheet, answers = pd.read_csv(folder / "sheet.csv"), pd.read_csv(folder / "answers.csv")
    assert sheet["link"].str.contains("premise=.+&hypothesis=.+").sum() == 20
    found = lab.scores(lab.wordings()[:2]).to_numpy()
    assert answers.iloc[:2, 1:].to_numpy() == pytest.approx(found, abs=6e-4)
