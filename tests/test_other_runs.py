"""Chapters run by respondents for whom the book's findings are false claim none of them."""

from __future__ import annotations

import csv
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

import psychometrics as pm
import psychometrics_book as book
from psychometrics.modes import nli
from psychometrics.paths import data_dir, notebooks_dir
from psychometrics_book import claims, runs
from psychometrics_book.prose import _normal
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
        "respondents": "{all}", "models": 3, "live": 0, "epochs": 1, "measure_at": "1",
        "masked_lm": "{masked}", "arms": "{arms}",
    },
    # What transformers, people and models of 2024 solved is data; own models answer one row.
    "08-items": {"respondents": "{first}", "draws": 100},
    # The published completions are data; fewer draws and another scoring leave some findings out.
    "09-beliefs": {
        "models": "{masked}", "scoring": "sifted", "k": 5, "n_resamples": 50,
        "live_lexicon": "own",
    },
    "10-self-report": {"respondent": "{first}", "runs": 3},
    "11-ways-of-asking": {"respondents": "{all}", "people": 20},
    # Published answers are data; a table joins them, and the book's populations answer at random.
    "12-published-answers": {"answers": "{table}", "draws": 20},
    "records-12": {"answers": "{table}", "draws": 20, "permutations": 99},
    # These read the tables of the runs above; heads, doses and a second reading are data. (Chapter
    # 15 and the records of Chapters 11 and 14 are data alone; those of Chapter 5 need more models.)
    "13-finding": {"executed": "{read}"},
    "records-13": {"executed": "{read}"},
    "14-scorecard": {"executed": "{read}"},
    "16-high-alpha": {"people": 20},
    "17-rasch": {"category": "WK", "simulations": 20},
}  # fmt: skip
READ = ["04-consistency", "05-relations", "06-other-explanations"]

pytestmark = [pytest.mark.timeout(1800), pytest.mark.xdist_group("other_runs")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory, save_tiny_model):
    """Function that runs a chapter by three models with random weights, once: its copy and page."""
    folder = tmp_path_factory.mktemp("other")
    base = save_tiny_model(folder / "base", "bert", seed=9)
    models = [str(save_tiny_model(folder / f"tiny{n}", "bert", seed=n)) for n in range(3)]
    for model in models:
        (Path(model) / "manifest.json").write_text(json.dumps({"base": str(base)}))
    masked = str(save_tiny_masked_lm(folder / "masked", like=Path(models[0])))
    judge = str(save_tiny_model(folder / "judge", "bert", ("unacceptable", "acceptable")))
    for name in ("read", "runs"):  # what is read is the same, whichever chapters ran before
        (folder / name).mkdir()
    table = _agreeing_table(folder / "table.csv")
    places = {"first": models[0], "all": ",".join(models), "masked": masked, "judge": judge}
    places |= {"table": str(table), "read": str(folder / "read"), "arms": _short_arms(folder)}
    made: dict[str, tuple[Path, str]] = {}

    def run(chapter: str) -> tuple[Path, str]:
        if chapter not in made:
            for earlier in READ if "executed" in CHAPTERS[chapter] else []:
                run(earlier)
            if chapter == "records-12":
                _let_the_population_guess()

            parameters = {
                name: value.format(**places) if isinstance(value, str) else value
                for name, value in CHAPTERS[chapter].items()
            }
            output = folder / ("read" if chapter in READ else "runs") / f"{chapter}.ipynb"
            page = output.with_suffix(".html")
            runs.run_notebook(chapter, parameters, output, progress=False, page=page)
            made[chapter] = output, page.read_text(encoding="utf-8")
        return made[chapter]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSYCHOMETRICS_STORE", str(folder / "store"))
        yield run


def _short_arms(folder: Path) -> str:
    """Write the first sentences of each arm into a file of its name, and return the files."""
    files = [folder / f"{arm}.txt" for arm in book.interventions.ARMS]
    for file in files:
        file.write_text("\n".join(book.interventions.intervention_texts(file.stem)[:24]))
    return ",".join(map(str, files))


def _agreeing_table(path: Path) -> Path:
    """Write sixty sheets on the IPIP-50 that differ in agreeing alone, whatever is asked."""
    rng = np.random.default_rng(0)
    items = [item.id for item in pm.load_questionnaire("ipip50").items]
    levels = 3 + 1.2 * rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, len(items)))
    sheets = pd.DataFrame(levels.round().clip(1, 5).astype(int), columns=items)
    sheets.rename_axis("respondent_id").reset_index().to_csv(path, index=False)
    return path


class _Guesser:
    """Answers prompts at random, in the place of a model."""

    def __init__(self, identity) -> None:
        self.identity = identity

    def batches(self, prompts):
        rng = np.random.default_rng(zlib.crc32(self.identity.respondent_id.encode()))
        unique = sorted(set(prompts))
        yield unique, rng.dirichlet(np.ones(3), len(unique)).astype(np.float32)


def _let_the_population_guess() -> None:
    """Fill the store with random answers of the book's respondents; no model is loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            nli.NLI, "build", lambda self, source, identity, device, **_: _Guesser(identity)
        )
        for family in ("encoders", "decoders"):
            pm.ask(["gad7", "phq9", "soc13"], pm.population(family), progress=False)


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
    text = re.sub(r"\[ ([^\[\]]+? here|published data, not this run) \]", r"[\1]", text)
    marked = 0
    fails = claims.SENTENCE_VERDICTS[2:]
    for row in judged[judged["verdict"].isin(fails)].itertuples():
        fragment = _normal(row.sentence).rstrip(".")
        for found in re.finditer(re.escape(fragment), text):
            marked += 1
            marks = "|".join(map(re.escape, claims.SENTENCE_VERDICTS))
            end = re.search(rf"\[({marks})\]", text[found.end() :])
            assert end, row.sentence
            assert end[1] in fails, row.sentence
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
    assert "fewer than 8 on one base rarely show any" in html


def test_a_table_of_ones_own_is_not_taken_for_the_books_models(pages):
    executed, _ = pages("12-published-answers")
    bias = pd.read_csv(executed.with_suffix("") / "tab-bias.csv").set_index("trait")

    assert (bias["respondents"] == 60).all()
    items = pm.item_scores(pm.read_answers(executed.parent.parent / "table.csv", "ipip50"))
    own = pm.bias.bias_shares(items, "ipip50", draws=1).query("statistic == 'bias'")
    assert bias["share of bias"].tolist() == pytest.approx(own["value"].tolist())
    judged = claims.judged_sentences(executed).set_index("sentence")["verdict"]
    assert judged["is as low as people's"] == "does not hold here"


@pytest.mark.parametrize("chapter", ["08-items", "records-12", "records-13"])
def test_a_plan_and_its_deviations_are_said_to_be_those_of_the_published_run(pages, chapter):
    text = _normal(_prose(pages(chapter)[1]).get_text(" "))
    plans = [found.start() for found in re.finditer("the plan, committed before", text)]

    assert plans
    for start in plans:
        assert text[:start].rstrip().endswith("written for the published run.")


def test_a_title_that_is_a_finding_is_marked(pages):
    body = BeautifulSoup(pages("13-finding")[1], "html.parser").find("main")
    title = body.find("h1").get_text("")
    assert re.search("|".join(map(re.escape, claims.SENTENCE_VERDICTS)), title)


def test_what_each_chapter_found_is_said_of_the_published_run(pages):
    body = _prose(pages("14-scorecard")[1])
    answers = [one for one in body.find_all("blockquote") if "equally decisive" in one.get_text()]

    assert answers
    assert all("Written for the published run." in one.get_text() for one in answers)
    assert ":header-rows:" not in body.get_text()


def _read_cell(text: str, folder: Path, chapter: str) -> dict[str, float] | float | None:
    """Return a row of a run's CSV with its ``value``, without the code that pages use; or a bar."""
    where, bracket, inside = text.rstrip("]").partition("[")
    if not bracket:
        return pd.to_numeric(pd.Series([text]), errors="coerce").iloc[0]
    number, _, table = where.rpartition("/")
    if "*" in inside or not chapter.startswith(number) or not (folder / f"{table}.csv").is_file():
        return None

    (words,) = csv.reader([inside], skipinitialspace=True)
    *labels, column = words
    rows = csv.DictReader((folder / f"{table}.csv").read_text(encoding="utf-8").splitlines())
    matches = [row for row in rows if list(row.values())[: len(labels)] == labels]
    if len(matches) != 1 or column not in matches[0]:
        return None

    row = {name: pd.to_numeric(value, errors="coerce") for name, value in matches[0].items()}
    prefix = f"{column} " if f"{column} low" in row else ""
    return {"value": row[column], "low": row.get(f"{prefix}low"), "high": row.get(f"{prefix}high")}


def _follows(rule: str, cell: dict[str, float], bar: float) -> bool | None:
    match rule:
        case "above":
            return cell["value"] > bar
        case "below":
            return cell["value"] < bar
        case "has the sign of":
            return cell["value"] * bar > 0
        case "includes" if cell["low"] is not None:
            return cell["low"] <= bar <= cell["high"]
        case "excludes" if cell["low"] is not None:
            return not cell["low"] <= bar <= cell["high"]
    return None


@every_chapter
def test_each_verdict_on_a_sentence_follows_from_the_tables_of_the_run(pages, chapter):
    executed, _ = pages(chapter)
    verdicts = claims.judged_sentences(executed).set_index("sentence")["verdict"]
    rules = pd.read_csv(data_dir() / "expectations.csv", dtype=str, keep_default_na=False)
    recomputed = 0
    for sentence, part in rules[rules["chapter"] == chapter].groupby("sentence"):
        results = []
        for row in part.itertuples():
            cell = _read_cell(row.cell, executed.with_suffix(""), chapter)
            bar = _read_cell(row.bar, executed.with_suffix(""), chapter)
            bar = bar["value"] if isinstance(bar, dict) else bar
            is_known = cell is not None and not pd.isna([cell["value"], bar or 0.0]).any()
            results.append(_follows(row.rule, cell, bar) if is_known and bar is not None else None)

        if None in results:
            continue
        recomputed += 1
        if verdicts[sentence] == "holds here":
            assert all(results), sentence
        elif verdicts[sentence] == "does not hold here":
            assert not all(results), sentence
    assert recomputed
