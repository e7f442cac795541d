"""Chapters run by respondents for whom the book's findings are false claim none of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from psychometrics import claims, runs
from psychometrics.paths import notebooks_dir
from psychometrics.publishing.prose import _normal
from tests.tiny import save_tiny_masked_lm

CHAPTERS = {
    "01-first-score": {"respondent": "{first}", "null_respondents": 20},
    "02-prompt-design": {"respondents": "{all}"},
    "03-assessment": {"respondents": "{all}"},
    "04-consistency": {
        "respondents": "{all}", "populations": 2, "acceptability_model": "{judge}",
    },
    "05-relations": {"respondents": "{all}", "populations": 2},
    "06-other-explanations": {"respondents": "{all}", "populations": 2},
    "07-interventions": {
        "respondents": "{all}", "models": 3, "live": 0, "epochs": 2, "measure_at": "2",
        "masked_lm": "{masked}",
    },
    "10-self-report": {"respondent": "{first}", "runs": 3},
    "11-ways-of-asking": {"respondents": "{all}", "people": 20},
}  # fmt: skip

pytestmark = [pytest.mark.timeout(1800), pytest.mark.xdist_group("other_runs")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory, save_tiny_model):
    """Function that runs a chapter by three models with random weights, once: its copy and page."""
    folder = tmp_path_factory.mktemp("other")
    models = [str(save_tiny_model(folder / f"tiny{n}", "bert", seed=n)) for n in range(3)]
    masked = str(save_tiny_masked_lm(folder / "masked", like=Path(models[0])))
    judge = str(save_tiny_model(folder / "judge", "bert", ("unacceptable", "acceptable")))
    made: dict[str, tuple[Path, str]] = {}

    def run(chapter: str) -> tuple[Path, str]:
        if chapter not in made:
            parameters = {
                name: value.format(
                    first=models[0], masked=masked, judge=judge, all=",".join(models)
                )
                if isinstance(value, str)
                else value
                for name, value in CHAPTERS[chapter].items()
            }
            output = folder / "runs" / f"{chapter}.ipynb"
            page = output.with_suffix(".html")
            runs.run_notebook(chapter, parameters, output, progress=False, pages=[page])
            made[chapter] = output, page.read_text(encoding="utf-8")
        return made[chapter]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSYCHOMETRICS_STORE", str(folder / "store"))
        yield run


every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)


def _prose(html: str) -> BeautifulSoup:
    """The page without code and the tables and pictures of its own run."""
    body = BeautifulSoup(html, "html.parser").find("main")
    for part in body.select("pre, table, img, math"):
        part.decompose()
    return body


def _paragraphs(chapter: str) -> list[str]:
    """What the chapter says about its results: its text without exercises and directives."""
    cells = json.loads((notebooks_dir() / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    text = re.sub(r"^([`:]{3,})\{.*?^\1$", "", "\n\n".join(texts), flags=re.M | re.S)
    blocks = [block for block in re.split(r"\n\s*\n", text) if not block.startswith(("#", "("))]
    first = (re.split(r"(?<=[.!?])\s", block)[0] for block in blocks)
    return [one for one in map(_normal, first) if len(one) > 40 and not re.search(r"[$…`{[]", one)]


@every_chapter
def test_no_text_of_the_published_run_is_outside_of_a_quotation(pages, chapter):
    body = _prose(pages(chapter)[1])
    for quotation in body.find_all("blockquote"):
        quotation.decompose()
    for caption in body.find_all("p"):
        if re.match(r"(Table|Figure) \d+\. Written for the published run\.", caption.get_text()):
            for listed in caption.find_next_siblings("ul"):
                listed.decompose()
            caption.decompose()
    left = _normal(body.get_text(" "))
    told = [sentence for sentence in _paragraphs(chapter) if sentence in left]
    assert not told


@every_chapter
def test_a_sentence_that_does_not_hold_is_marked_wherever_it_is_said(pages, chapter):
    executed, html = pages(chapter)
    judged = claims.judged_sentences(executed)
    assert (judged["verdict"] != "holds here").any(), "random weights make some of them false"
    body = _prose(html)
    body.find("blockquote").decompose()  # the banner, which lists them
    for listed in body.find_all("li"):
        if listed.get_text().startswith("“"):
            listed.decompose()
    text = _normal(body.get_text(" "))
    text = re.sub(r"\[ (.*? here) \]", r"[\1]", text)
    marked = 0
    for row in judged[judged["verdict"] != "holds here"].itertuples():
        fragment = _normal(row.sentence).rstrip(".")
        for found in re.finditer(re.escape(fragment), text):
            marked += 1
            end = re.search(r"\[(holds|does not hold|cannot be said) here\]", text[found.end() :])
            assert end, row.sentence
            assert end[1] != "holds", row.sentence
    assert marked


@every_chapter
def test_a_number_that_this_run_lacks_is_no_dash(pages, chapter):
    _, html = pages(chapter)
    text = " ".join(quotation.get_text() for quotation in _prose(html).find_all("blockquote"))
    assert "(–" not in text
    assert not re.search(r"(^|\s)–[.,;]?(\s|$)", text)


@pytest.mark.parametrize(
    ("chapter", "table", "hidden", "shown"),
    [
        ("04-consistency", "reliability", ["alpha", "low", "high", "p", "omega"], "null"),
        ("04-consistency", "silhouettes", [], "mean"),
        ("05-relations", "correlations", ["ρ", "low", "high", "p", "corrected"], "null"),
        ("05-relations", "placebos", ["ρ", "low", "high", "p"], "null"),
        ("05-relations", "multiverse", ["min", "median", "max"], "untrained, median"),
        ("06-other-explanations", "tab-power", [], "null"),
    ],
)
def test_what_three_respondents_cannot_show_is_not_printed_and_the_page_says_why(
    pages, chapter, table, hidden, shown
):
    executed, html = pages(chapter)
    found = pd.read_csv(executed.with_suffix("") / f"tab-{table.removeprefix('tab-')}.csv")

    assert found[hidden].isna().all(axis=None)
    assert found[shown].notna().any()
    assert "below 10 on one base their intervals would say nothing" in html
