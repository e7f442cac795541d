"""The reader of the page *Your answers* computes in the browser what Python computes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.paths import book_dir, data_dir

SCRIPT = book_dir() / "_static" / "trait-or-bias.js"
IPIP = pm.load_questionnaire("ipip50")
TELL = (
    "const fs = require('fs'); const page = require(process.argv[1]); "
    "try { const shares = page.shares(fs.readFileSync(0, 'utf8'), process.argv[2]); "
    "console.log(JSON.stringify({...shares, sentence: page.sentence(shares)})) } "
    "catch (error) { console.log(JSON.stringify({error: error.message})) }"
)


def in_node(text: str, reverse: list[str]) -> dict:
    """What the page's script says of a CSV text."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    command = ["node", "-e", TELL, str(SCRIPT), " ".join(reverse)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def sheet(scale: str) -> tuple[pd.DataFrame, list[str]]:
    """Answers of twelve published models to a scale, and its reverse-keyed items."""
    table = pd.read_csv(data_dir() / "published" / "answers.csv.gz")
    table = table.query("source == 'llmpersonality'")
    wide = table.pivot(index="respondent_id", columns="item_id", values="value")
    one = IPIP.scale(scale)
    return wide[list(one.items)].rename_axis("model").reset_index(), list(one.reverse)


@pytest.mark.parametrize("scale", [scale.id for scale in IPIP.scales])
def test_shares_intervals_and_alphas_of_the_page_are_those_of_python(scale):
    wide, reverse = sheet(scale)
    theirs = in_node(wide.to_csv(index=False), reverse)
    answers = pm.read_answers(wide, "ipip50", progress=False)
    ours = pm.bias.bias_shares(pm.item_scores(answers), IPIP, draws=1)
    ours = ours[ours["scale"] == scale].set_index("statistic")
    assert theirs["n"] == ours["n"].iloc[0]
    for name in ("bias", "trait_part", "bias_part", "error_part", "alpha", "alpha_raw"):
        assert theirs[name] == pytest.approx(ours.loc[name, ["value", "low", "high"]], abs=1e-6)
    chance = pm.bias.random_share(len(wide))
    assert theirs["random"] == pytest.approx(chance[["share", "low", "high"]], abs=1e-6)


def test_rows_of_one_model_count_once_and_rows_with_a_gap_are_left_out_and_counted():
    wide, reverse = sheet("extraversion")
    twice = pd.concat([wide, wide])
    gap = wide.head(1).assign(ipip50_1=None)
    theirs = in_node(pd.concat([twice, gap]).to_csv(index=False, sep=";"), reverse)
    once = in_node(wide.to_csv(index=False), reverse)
    assert (theirs["n"], theirs["rows"], theirs["left"]) == (12, 24, 1)
    assert theirs["bias"] == pytest.approx(once["bias"])


@pytest.mark.parametrize(
    ("change", "reverse", "said"),
    [
        ({"ipip50_1": ["often", *"12345123451"]}, ["ipip50_6"], "Line 2, column ipip50_1"),
        ({}, ["ipip50_99"], "ipip50_99"),
        ({}, [], "reverse-keyed"),
    ],
)
def test_a_mistake_is_said_with_its_place(change, reverse, said):
    wide, _ = sheet("extraversion")
    assert said in in_node(wide.assign(**change).to_csv(index=False), reverse)["error"]


def test_an_empty_table_is_refused_with_what_to_do():
    assert "paste a table" in in_node("", [])["error"]
    assert "paste a table" in in_node("model,E1,E6", ["E6"])["error"]


@pytest.mark.parametrize(
    ("second", "place"),
    [([1, 2, 3, 4, 5, 5], "above"), ([5, 4, 3, 2, 1, 1], "below"), ([3, 1, 4, 2, 3, 3], "within")],
)
def test_a_sentence_says_whether_the_share_of_bias_is_beyond_random_answers(second, place):
    first = [1, 2, 3, 4, 5, 4]
    table = pd.DataFrame({"E1": first, "E2": [*first[1:], 5], "E6": second, "E7": second})
    assert f"lies {place} the range" in in_node(table.to_csv(index=False), ["E6", "E7"])["sentence"]


def test_the_script_is_short_and_the_page_has_its_form():
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 210
    page = (Path(book_dir()) / "your-answers.md").read_text(encoding="utf-8")
    assert 'class="trait-or-bias"' in page
    assert SCRIPT.name in page
