"""Things to try in the page: exercises that are checked, explorers, a model; in Chromium."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

import psychometrics as pm
from psychometrics.authoring.wording import word_lists, wording
from psychometrics.exceptions import ParameterError
from psychometrics.measures import score_tables
from psychometrics.nulls.kernels import kernel_statistics
from psychometrics.paths import book_dir, data_dir, notebooks_dir, questionnaires_dir
from psychometrics_book import exercises
from psychometrics_book.sphinx import explorer_data as explorers
from psychometrics_book.sphinx import live_model, page_model
from psychometrics_book.sphinx.explorers import data_text
from psychometrics_book.studies import psychobench as bench
from psychometrics_book.studies.hits import unpack_bits
from recipes.explorers import multiverse
from tests.conftest import asked_paths, foreign_sources, loads_from_elsewhere, policy_of, wait_until
from tests.killing import build_book
from tests.test_web import HTML, PAGES, _Quiet
from tests.test_web import built as of_the_built_book

BOX = "# A page\n\n```{{ask-a-model}}\n{}\n```\n\n```{{ask-a-model-error}}\n```\n"
HOSTILE = {
    "text": 'A "quoted" item\'s text: \N{SLIGHTLY SMILING FACE}',
    "premise": 'When I\'m "there" & 1 < 2: caf\u00e9, \N{FACE WITH TEARS OF JOY}, I feel {term}.',
    "hypothesis": "It {intensifier} is so # yes.",
    "source": "tense, l'anxi\u00e9t\u00e9",
    "inverse": "calm, \u5b89\u5fc3",
    "words": "never: -4, often 2, al\\ways 4",
}


THEME = "Got invalid theme mode"  # the theme says so at a first visit; nothing of ours
CHECKED = ["ex-first-range", "ex-first-paper"]
PAGE = """# A page with exercises

````{{exercise}}
:label: {name}

What is it?

```{{check}} {name}
```
````
"""


@pytest.mark.parametrize(
    ("answer", "said", "right"),
    [
        (-1515.25, "-1515.25", True), (-1515.25, "\N{MINUS SIGN}1 515,6", True),
        (-1515.25, "-1515.8", False), (-1515.25, "1515.25", False), (0.42, "0,425", True),
        (0.42, "42 %", True), (0.42, "4.2e-1", True), (0.42, "0.426", False), (0.42, "21/50", True),
        ("PHQ-9|depression", " phq 9 ", True), ("PHQ-9|depression", "Depression", True),
        ("PHQ-9|depression", "GAD-7", False),
    ],
)  # fmt: skip
def test_what_was_typed_is_read_as_it_was_meant(monkeypatch, answer, said, right):
    tolerance = 0.5 if answer == -1515.25 else 0.005
    monkeypatch.setattr(exercises, "answer", lambda name: (answer, tolerance))
    assert exercises.is_right("ex-own", said) is right


def test_a_typical_mistake_gets_its_hint_and_another_number_none():
    assert "column" in exercises.hint("ex-first-paper", "0.73")
    assert "sign" in exercises.hint("ex-first-paper", "-2/3")
    assert "share" in exercises.hint("ex-first-paper", "66.7")
    assert exercises.hint("ex-first-paper", "0.5") == ""


def test_the_command_says_right_or_not_yet_with_its_status(ended):
    assert ended("check-answer", "ex-first-range", "0,4")[0] == 0
    assert ended("check-answer", "ex-first-range", "0.6")[0] == 1
    assert ended("check-answer", "ex-first-range", "high")[0] == 1
    code, _, errors = ended("check-answer", "ex-first-rang", "0.4")
    assert code == 1
    assert "ex-first-range" in errors


def test_every_checked_exercise_of_a_chapter_has_its_answer_in_the_file():
    asked = {}
    for path in notebooks_dir().glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for line in cell["source"]:
                if found := re.match(r"\s*[`:]{3,}\{check\}\s*(\S+)", line):
                    asked[found[1]] = path.stem
    known = exercises.listed()["chapter"].to_dict()
    assert {name: known.get(name) for name in asked} == asked
    assert set(known) == set(asked), "every answer is asked for in a chapter"


@pytest.mark.parametrize("name", exercises.listed().index)
def test_the_answer_of_every_exercise_is_found_in_the_kept_tables(name):
    exercises.answer(name)


# --- in the page


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, str]:
    """Folder of a trial book, of which one page names what is not there, and what is said of it."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "exercises.md").write_text("\n".join(PAGE.format(name=name) for name in CHECKED))
    (folder / "index.md").write_text("# Trial\n")
    for name in explorers.EXPLORERS:
        (folder / f"{name}.md").write_text(f"# A page\n\n```{{explorer}} {name}\n```\n")
    two = [f"```{{explorer}} {name}\n```\n" for name in ("two-way", "item-curve")]
    (folder / "two.md").write_text("\n".join(["# A page with two explorers\n", *two]))
    dead = "\n\nIt is {num}`04/tab-nowhere[a, b]:.2f`.\n"
    (folder / "dead.md").write_text(PAGE.format(name="ex-nowhere") + dead)
    pages = ["exercises", "dead", "two", *explorers.EXPLORERS]
    if find_spec("onnxscript") and live_model.files():
        boxes = ("ask", ""), ("small", ":small:\n:words: seldom -2"), ("whole", ":questionnaire:")
        for name, how in boxes:
            (folder / f"{name}.md").write_text(BOX.format(how))
            pages.append(name)
    pages = "".join(f"- file: '{page}'\n" for page in pages)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{pages}")
    for name in ("_config.yml", "_static", "references.bib"):
        source = book_dir() / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    status, printed = build_book(folder)
    assert status, "what is not there fails the build"
    return folder / "_build" / "html", printed


@pytest.fixture(scope="module")
def site(built) -> Path:
    return built[0]


@pytest.fixture
def visit(browser, site):
    """Function that opens a page from its file; nothing may fail, or be loaded from elsewhere."""
    contexts, wrong = [], []

    def page(name: str, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and THEME not in m.text and wrong.append(m))
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or wrong.append(r.url))
        page.goto((site / name).as_uri())
        return page

    yield page
    for context in contexts:
        context.close()
    assert not wrong


def test_an_exercise_and_a_number_that_are_not_there_fail_the_build_and_nothing_else(built):
    warnings = [line for line in built[1].splitlines() if "WARNING" in line or "ERROR" in line]
    assert len(warnings) == 2, warnings
    assert all(any(name in line for line in warnings) for name in ("ex-nowhere", "tab-nowhere"))


def test_every_page_of_a_trial_book_forbids_to_load_from_elsewhere_and_loads_nothing_there(site):
    pages = {
        path.name: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in site.glob("*.html")
    }
    assert {"index.html", "two.html", "search.html", "genindex.html"} <= set(pages)
    for name, page in pages.items():
        policy = policy_of(page)
        assert policy["default-src"] == ["'self'", "file:"], name
        assert foreign_sources(policy) == set(), name
        assert loads_from_elsewhere(page) == [], name
        first = page.head.find(["script", "link", "style", "img"])
        order = str(page.head)
        assert order.index("Content-Security-Policy") < order.index(str(first)), name


def test_a_browser_asks_no_other_host_whatever_a_page_of_the_book_holds(site, browser):
    text = (site / "index.html").read_text(encoding="utf-8")
    with asked_paths() as (host, asked):
        loads = (
            f"<img src='{host}/i'><script src='{host}/s'></script><iframe src='{host}/f'></iframe>"
        )
        calls = f"<script>fetch('{host}/c').catch(() => 0); new Image().src = '{host}/n'</script>"
        (site / "loads.html").write_text(text.replace("</body>", f"{loads}{calls}</body>"), "utf-8")
        tab = browser.new_page()
        tab.goto((site / "loads.html").as_uri(), wait_until="networkidle")
        tab.close()
    assert asked == []


# --- the data of explorers, and boxes that draw or say why not


WITH_DATA = re.compile(
    r'data-explorer="([\w-]+)".*?<script [^>]*class="explorer-data">(.*?)</script>', re.DOTALL
)
WHEN_DRAWN = """async box => {
    for (let tries = 0; tries < 200; tries += 1) {
        const failure = box.querySelector('[role=alert]');
        if (failure) return failure.textContent;
        const plots = [...box.querySelectorAll('.explorer-plot')]
            .filter(plot => plot.checkVisibility());
        const filled = plots.every(plot => plot.querySelector('svg > *'));
        if (filled && box.querySelector('.explorer-body > *')) return 'drawn';
        await new Promise(done => setTimeout(done, 100));
    }
    return 'empty after 20 seconds';
}"""
DAMAGES = {
    "letters of base64 are replaced": (r'("answers":\[\["[\w+/]{40})[\w+/]{3}', r"\1null"),
    "three numbers are left out": (r'("answers":\[\["[\w+/]{40})[\w+/]{16}', r"\1"),
    "the JSON is cut": (r"\}</script>", "</script>"),
    "the script is missing": (r"<script [^>]*explorers/two-way\.js[^>]*></script>", ""),
    "a plot fails later": (
        r"<script [^>]*explorers/two-way\.js[^>]*></script>",
        "<script>(window.explorerScripts ||= {})['two-way'] = (body, data, tools) => body.append("
        "tools.plot(100, () => { throw new Error('no plot'); }).element);</script>",
    ),
}
"""Pattern in a page, and what replaces it there, so that the first explorer cannot be drawn."""
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_infinity=False) | st.text()


def _refuse(word: str):
    raise ValueError(f"{word} is not JSON, and a browser refuses it")


def _box_data(page: Path) -> dict[str, dict]:
    """Return the data of each box of a page, read as strictly as a browser reads them."""
    boxes = WITH_DATA.findall(page.read_text(encoding="utf-8"))
    return {name: json.loads(text, parse_constant=_refuse) for name, text in boxes}


def _arrays(name: str, data: dict) -> dict[str, np.ndarray]:
    """Return the numbers behind each base64 text of an explorer, as many as its script reads."""
    if name == "two-way":
        terms = [len(one["terms"]) for item in data["items"] for one in item["templates"]]
        shape = (sum(terms), len(data["intensifiers"]))
        texts = [text for pair in data["answers"] for text in pair]
        kind = "<f4"
    elif name == "honest":
        shape = (len(data["scorings"]), len(data["sizes"]), len(data["models"]), 100)
        texts = [data["counts"]]
        kind = "<u2"
    else:
        return {}

    decoded = {text: base64.b64decode(text, validate=True) for text in texts}
    return {text: np.frombuffer(some, kind).reshape(shape) for text, some in decoded.items()}


def _packed_texts(value) -> set[str]:
    """Return the strings inside a value that are too long for a word."""
    if isinstance(value, str):
        return {value} if re.fullmatch(r"\S{200,}", value) else set()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return set().union(*map(_packed_texts, value))
    return set()


def _explorers_with_whole_data(pages: list[Path]) -> set[str]:
    """Return the names of the boxes on some pages, after all of their base64 is decoded."""
    names = set()
    for page in pages:
        for name, data in _box_data(page).items():
            arrays = _arrays(name, data)
            assert set(arrays) == _packed_texts(data), f"{page.name}, {name}"
            for array in arrays.values():
                assert np.isfinite(array).all(), f"{page.name}, {name}"
                assert array.dtype == "<u2" or ((array >= 0) & (array <= 1)).all()
            names.add(name)
    return names


def _drawn(browser, pages: list[Path]) -> dict[tuple[str, str], str]:
    """Return for each box of some pages whether it is drawn, or its message."""
    context = browser.new_context()
    tab = context.new_page()
    states = {}
    for page in pages:
        tab.goto(page.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        for box in tab.locator("[data-explorer]").all():
            name = box.get_attribute("data-explorer")
            states[page.name, name] = box.evaluate(WHEN_DRAWN)
    context.close()
    return states


@settings(deadline=None)
@given(st.binary(), st.binary())
def test_base64_that_spells_nan_is_written_letter_by_letter(before, after):
    whole = before[: len(before) // 3 * 3]  # three bytes are four letters
    content = whole + base64.b64decode("NaNs") + after
    packed = base64.b64encode(content).decode()
    assert "NaN" in packed
    text = data_text("own", {"packed": packed, "values": [float("nan"), np.float32("nan"), 1.5]})
    read = json.loads(text, parse_constant=_refuse)
    assert read["values"] == [None, None, 1.5]
    assert base64.b64decode(read["packed"], validate=True) == content


@settings(max_examples=30, deadline=None)
@given(st.recursive(PLAIN, lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_missing_numbers_become_null_at_any_depth_and_all_else_stays(value):
    text = data_text("own", {"value": value})
    expected = json.loads(json.dumps(value), parse_constant=lambda _: None)
    assert json.loads(text, parse_constant=_refuse) == {"value": expected}
    assert "<" not in text, "no string closes the element that holds the data"


def test_arrays_and_missing_values_of_numpy_and_pandas_are_written_as_json():
    data = {
        "matrix": np.array([[0.5, np.nan], [1.0, 2.0]]),
        "numbers": (np.float64("nan"), np.int64(3), np.bool_(True)),
        "others": [pd.NA, None],
    }
    assert json.loads(data_text("own", data), parse_constant=_refuse) == {
        "matrix": [[0.5, None], [1.0, 2.0]],
        "numbers": [None, 3, True],
        "others": [None, None],
    }


def test_an_infinite_number_is_named_with_its_explorer():
    with pytest.raises(ParameterError, match="explorer own: a number is infinite"):
        data_text("own", {"r": [0.5, np.float32("-inf")]})


@pytest.mark.parametrize("name", explorers.EXPLORERS)
def test_two_builds_write_the_same_data(site, name):
    boxes = WITH_DATA.findall((site / f"{name}.html").read_text(encoding="utf-8"))
    assert boxes == [(name, data_text(name, explorers.EXPLORERS[name].data()))]


def test_every_box_of_a_trial_book_has_whole_data_and_draws(browser, site):
    pages = [site / f"{name}.html" for name in explorers.EXPLORERS]
    assert _explorers_with_whole_data(pages) == set(explorers.EXPLORERS)
    states = _drawn(browser, pages)
    assert len(states) == len(pages)
    assert set(states.values()) == {"drawn"}, states


@of_the_built_book
def test_every_box_of_the_built_book_has_whole_data_and_draws(browser):
    pages = [HTML / name for name in PAGES]
    pages = [page for page in pages if "data-explorer=" in page.read_text(encoding="utf-8")]
    assert _explorers_with_whole_data(pages) >= set(explorers.EXPLORERS)
    states = _drawn(browser, pages)
    assert {name for _, name in states} >= set(explorers.EXPLORERS)
    assert set(states.values()) == {"drawn"}, states


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_box_that_fails_says_so_shows_its_picture_and_the_next_one_draws(browser, site, damage):
    whole = (site / "two.html").read_text(encoding="utf-8")
    text, times = re.subn(*DAMAGES[damage], whole, count=1)
    assert times == 1
    (site / "damaged.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    logged, uncaught = [], []
    page.on("console", lambda message: message.type == "error" and logged.append(message.text))
    page.on("pageerror", lambda error: uncaught.append(str(error)))
    page.goto((site / "damaged.html").as_uri())

    assert page.locator("#explorer-item-curve").evaluate(WHEN_DRAWN) == "drawn"
    box = page.locator("#explorer-two-way")
    assert "This box could not be drawn" in box.evaluate(WHEN_DRAWN)
    assert box.get_by_role("alert").is_visible()
    assert box.locator(".explorer-body select").count() == 0, "no control that moves nothing"
    picture = box.locator(".explorer-body img")
    assert picture.get_attribute("alt") == explorers.EXPLORERS["two-way"].alternative
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 200
    assert any("explorer two-way:" in line for line in logged), logged
    assert not uncaught
    page.close()


# --- explorers


def _values(page) -> dict[str, float]:
    """What the sentence of an explorer says, in full precision."""
    found = page.locator(".explorer-said [data-value]")
    return {
        one.get_attribute("data-name"): float(one.get_attribute("data-value"))
        for one in found.all()
    }


def _cells(page, table: int = 0) -> np.ndarray:
    rows = page.locator(".explorer-table").nth(table).locator("tbody tr").all()
    cells = [[c.get_attribute("data-value") for c in row.locator("td").all()] for row in rows]
    return np.array(cells, dtype=float)


def _slide(page, label: str, value: float) -> None:
    page.get_by_role("slider", name=label).evaluate(
        "(input, x) => { input.value = x; input.dispatchEvent(new Event('input')); }", str(value)
    )


def test_the_pages_normalisation_is_the_packages(visit):
    _, answers, named = explorers._two_way_answers()
    page, data = visit("two-way.html"), explorers.EXPLORERS["two-way"].data()
    for item, respondent, score, temperature in (
        ("soc13_3", 0, "entailment", 1.0),
        ("phq9_6", 3, "contrast", 0.5),
        ("gad7_7", 5, "entailment", 5.0),
    ):
        who, how = list(named)[respondent], {"score": score, "temperature": temperature}
        own = answers[(answers["respondent_id"] == who) & (answers["item_id"] == item)]
        number = next(i for i, one in enumerate(data["items"]) if one["id"] == item)
        page.get_by_role("combobox", name="Item").select_option(str(number))
        page.get_by_role("combobox", name="Respondent").select_option(label=named[who])
        page.get_by_label(score).check()
        _slide(page, "Temperature", temperature)
        expected = pm.item_scores(own, **how)["score"].iloc[0]
        assert _values(page)["item"] == pytest.approx(expected, abs=1e-6)
        shares = pm.pss(own, **how).query("template == 1")
        for table, column in ((0, "raw"), (2, "pss")):
            wanted = shares[column].to_numpy().reshape(-1, len(data["intensifiers"]))
            np.testing.assert_allclose(_cells(page, table), wanted, atol=1e-6)
        np.testing.assert_allclose(_cells(page, 1).sum(axis=0), 1)
        assert f"{abs(expected):.3f}" in page.locator(".explorer-said").inner_text()


def test_the_share_of_null_populations_is_the_packages_and_moves_by_keyboard(visit):
    page = visit("null.html")
    table = explorers._null_table()
    for base in ("encoders", "decoders"):
        for statistic, title in explorers.STATISTICS.items():
            ours = table.loc[[(base, "trained")], statistic].iloc[0]
            if np.isnan(ours):  # eight decoders have no omega of nine items
                assert page.get_by_text(f"{title}, {base}").count() == 0
                continue
            drawn = [table.loc[(base, size), [statistic]] for size in explorers.SIZES]
            as_far = [((part if ours >= 0 else -part) >= abs(ours)).mean().item() for part in drawn]
            label = f"{title}, {base}"
            page.get_by_role("combobox", name="Statistic").select_option(label=label)
            np.testing.assert_allclose(_cells(page)[:, 3], as_far, atol=1e-6)
            null = drawn[-1][statistic].quantile([0.025, 0.5, 0.975])
            np.testing.assert_allclose(_cells(page)[-1, :3], null, atol=1e-6)
    label = f"{explorers.STATISTICS['silhouette']}, encoders"
    page.get_by_role("combobox", name="Statistic").select_option(label=label)
    page.get_by_role("slider", name="Value").focus()
    page.keyboard.press("Home")
    assert (_cells(page)[:, 3] > 0.5).all() or _values(page)["observed"] < 0
    page.keyboard.press("End")
    assert (_cells(page)[:, 3] == 0).all()
    page.get_by_text("Back to our population").click()
    observed = table.loc[[("encoders", "trained")], "silhouette"].iloc[0]
    assert _values(page)["observed"] == pytest.approx(observed, abs=1e-6)


@pytest.mark.parametrize(("base", "layers"), [("MiniLM, 4 layers", 4), ("MiniLM, 6 layers", 6)])
def test_what_no_training_gives_in_the_page_is_what_the_kernel_gives(visit, base, layers):
    two = [pm.load_questionnaire(name) for name in ("gad7", "soc13")]
    K = pm.nulls.kernel(two, "embedded", layers)
    members = pm.population_table().query("family == 'MiniLM' and layers == @layers")
    implied = pm.nulls.kernel_statistics(K, len(members)).set_index(["statistic", "scale", "other"])
    page = visit("kernel.html")
    page.get_by_role("combobox", name="Questionnaire").select_option(label="SOC-13")
    page.get_by_role("combobox", name="Base and depth").select_option(label=base)
    alpha, said = implied.loc[("alpha", "soc13", "")], _values(page)
    assert said["untrained"] == pytest.approx(alpha["value"], abs=1e-3)
    assert [said["low"], said["high"]] == pytest.approx([alpha["low"], alpha["high"]], abs=0.05)
    items = pm.item_scores(pm.ask("soc13", list(members["respondent_id"]), progress=False))
    trained = pm.reliability.alpha(pm.scoring.keyed_items(items, two[1]))["alpha"]
    assert said["trained"] == pytest.approx(trained, abs=2e-3)
    with_gad = page.locator("tr", has=page.get_by_text("GAD-7 with SOC-13", exact=True))
    found = float(with_gad.locator("td").first.get_attribute("data-value"))
    assert found == pytest.approx(implied.loc[("correlation", "gad7", "soc13"), "value"], abs=1e-3)
    size = np.sqrt(np.diag(K))
    r = (K.to_numpy() / size / size[:, None])[7:, 7:]
    page.get_by_text("The correlations as a table").click()
    np.testing.assert_allclose(_cells(page), r, atol=0.006)
    told = page.locator(".explorer-plot svg").first.get_attribute("aria-label")
    assert f"{(r[np.triu_indices(13, 1)] < 0).sum()} below zero" in told
    page.get_by_role("combobox", name="Base and depth").select_option(label="MiniLM, 5 layers")
    assert "too few trained members" in page.locator(".explorer-said").inner_text()
    assert "trained" not in _values(page)


def test_the_curve_in_the_page_is_the_packages(visit):
    page, grid = visit("item-curve.html"), np.linspace(-4, 4, 801)
    names = ["difficulty", "discrimination", "guessing"]
    for *values, theta in ((0.0, 1.0, 0.0, 0.0), (1.25, 2.5, 0.2, 0.5), (-1.0, -0.8, 0.33, 2.0)):
        for name, value in zip([*names, "ability"], [*values, theta], strict=True):
            _slide(page, name.capitalize(), value)
        item, at, found = pd.DataFrame([values], columns=names), np.array([theta]), _values(page)
        assert found["probability"] == pytest.approx(pm.irt.probability(at, item).item(), abs=1e-6)
        assert found["information"] == pytest.approx(pm.irt.information(at, item).item(), abs=1e-6)
        assert found["peak"] == pytest.approx(pm.irt.information(grid, item).max(), abs=1e-6)


def test_honest_in_the_page_is_the_packages_and_the_papers(visit):
    folder = pm.paths.data_dir() / "beliefs"
    page = visit("honest.html")
    models = pd.read_csv(folder / "table1.csv").set_index("model")
    templates = pd.read_csv(folder / "templates.csv")
    for model in ("BERT", "VICUNA 13b"):  # the paper cuts off after three decimals
        page.get_by_role("combobox", name="Model").select_option(label=model)
        assert 0 <= _values(page)["honest"] - models.loc[model, "mean"] < 0.001
    hits = unpack_bits(pd.read_parquet(folder / "hits.parquet"))["lexicon"]
    women = templates.query("subset == 'binary' and gender == 'female'").index
    curve = hits[models.index.get_loc("VICUNA 13b")][women].mean(axis=0)
    page.get_by_role("combobox", name="Scoring").select_option(label="words in the lexicon")
    page.get_by_role("combobox", name="Templates about").select_option(
        label="women (binary subset)"
    )
    _slide(page, "Rank k", 20)
    assert _values(page)["honest"] == pytest.approx(curve[:20].mean(), abs=1e-6)
    page.get_by_label("the k-th alone").check()
    assert _values(page)["honest"] == pytest.approx(curve[19], abs=1e-6)


def test_a_completion_is_judged_in_the_page_as_by_the_package(visit):
    page = visit("honest.html")
    for completion, lexicon, in_lexicon in (
        ("kind \N{SLIGHTLY SMILING FACE}", "thief, \N{POLICE OFFICER}", False),
        ("a Thief, thief!", "thief, \N{POLICE OFFICER}", True),
        ("caf\u00e9 owner", "cafe", True),
    ):
        page.get_by_label("A completion").fill(completion)
        page.get_by_label("A lexicon").fill(lexicon)
        assert pm.beliefs.hurtful([[completion]], lexicon.split(", "))[0, 0] == in_lexicon
        # in ASCII, nothing is left of an emoji: two of them are the same word
        for name, hit in (("words, in ASCII", True), ("words in the lexicon", in_lexicon)):
            said = page.locator(f'.explorer-said [data-name="{name}"]').inner_text()
            assert said == ("hurtful" if hit else "not hurtful")


def test_the_multiverse_in_the_page_is_filtered_as_by_pandas(visit):
    page = visit("multiverse.html")
    table = explorers._shipped("multiverse")
    page.get_by_role("combobox", name="Correlation of").select_option(label="GAD-7 and SOC-13")
    for value in ("contrast", "2.0", "first", "last"):
        page.get_by_label(value, exact=True).uncheck()
    kept = table.query(
        "first == 'gad7' and second == 'soc13' and score == 'entailment' and temperature != 2.0 "
        "and templates == 'all'"
    )
    found = _values(page)
    assert found["number"] == len(kept) == 12
    assert found["median"] == pytest.approx(kept["r"].median(), abs=1e-9)
    assert found["least"] == pytest.approx(kept["r"].min(), abs=1e-9)
    assert found["share"] == pytest.approx(100 * (kept["r"] < 0).mean())
    null = kept["heads, start"]
    assert found["null"] == pytest.approx(null.median(), abs=1e-9)
    for value in ("source", "inverse", "both"):
        page.get_by_label(value, exact=True).uncheck()
    assert "No specification is left" in page.locator(".explorer-said").inner_text()
    page.get_by_text("All choices").click()
    assert _values(page)["number"] == 108


SIX = ["mean", "sd", "n", "norm_mean", "norm_sd", "norm_n"]
WHEN_TYPED = """rows => {
    const inputs = [...document.querySelectorAll('.explorer-numbers input')];
    return rows.map(row => {
        inputs.forEach((input, i) => { input.value = row[i]; });
        inputs[0].dispatchEvent(new Event('input'));
        const said = [...document.querySelectorAll('.explorer-said [data-value]')];
        return Object.fromEntries(said.map(one => [one.dataset.name, Number(one.dataset.value)]));
    });
}"""


def _as_python(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of runs as people and as one respondent, with the page's names."""
    people = pm.norms.compare_means(*rows[SIX].to_numpy().T)
    one = pm.norms.compare_means(*rows[SIX].assign(n=1).to_numpy().T)
    both = {"people": people, "one": one}
    tests = {
        name if column == "p" else f"{name}, {column}": test[column]
        for name, test in both.items()
        for column in ("p", "t", "df")
    }
    return pd.DataFrame(tests)


def test_the_456_published_comparisons_in_the_page_are_those_of_the_chapter(visit):
    published = bench.published_tests("models")
    page = visit("ten-runs.html")
    found = pd.DataFrame(page.evaluate(WHEN_TYPED, published[SIX].to_numpy().tolist()))
    expected = _as_python(published)
    np.testing.assert_allclose(found[expected.columns], expected, rtol=1e-6, atol=1e-12)
    counted = (found[["people", "one"]] < 0.01).sum().tolist()
    assert [len(found), *counted] == [456, 277, 4]

    listed = {
        (*cell, *scale["norm"])
        for scale in explorers.EXPLORERS["ten-runs"].data()["scales"]
        for cell in scale["cells"]
    }
    assert listed == set(published[SIX].itertuples(index=False, name=None))


def test_the_tails_of_t_and_f_in_the_page_are_those_of_python(visit):
    rng = np.random.default_rng(0)
    draws = 300
    random = {
        "mean": rng.normal(0, 3, draws), "sd": rng.lognormal(0, 1, draws),
        "n": rng.integers(2, 2000, draws), "norm_mean": rng.normal(0, 1, draws),
        "norm_sd": rng.lognormal(0, 1, draws), "norm_n": rng.integers(2, 200_000, draws),
    }  # fmt: skip
    edges = [[0, 0, 10, 0, 1, 50], [5, 0, 2, 0, 1, 2], [1, 1, 2, 1.001, 1, 2], [40, 1, 9, 0, 1, 9]]
    rows = pd.concat([pd.DataFrame(random), pd.DataFrame(edges, columns=SIX)])
    found = visit("ten-runs.html").evaluate(WHEN_TYPED, rows.to_numpy().tolist())
    expected = _as_python(rows)
    np.testing.assert_allclose(
        pd.DataFrame(found)[expected.columns], expected, rtol=1e-6, atol=1e-12
    )


def test_numbers_are_chosen_typed_pasted_or_linked_and_what_is_doubtful_is_refused(visit):
    page = visit("ten-runs.html")
    said = page.locator(".explorer-said")
    cell = bench.published_tests("models").query(
        "questionnaire == 'epq-r' and scale == 'lying' and norm_mean < 7"
    )
    cell = cell.set_index("respondent_id").loc[["gpt-4"]]
    page.get_by_label("A published scale").select_option(label="EPQ-R: Lying, male")
    page.get_by_label("Model", exact=True).select_option(label="GPT-4")
    assert _values(page)["people"] == pytest.approx(cell["p"].item(), rel=1e-6)

    page.get_by_label("Runs").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("1")
    assert "One run cannot be counted" in said.inner_text()
    assert "numbers of your own" in page.locator("select").first.evaluate(
        "list => list.selectedOptions[0].textContent"
    )

    example = [3.6, 0.2, 10, 3.2, 0.8, 500]
    expected = _as_python(pd.DataFrame([example], columns=SIX)).iloc[0].to_dict()
    for text in (
        "3.6, .2, 10, 3.2, .8, 500",
        "3,6\t0,2\t10\t3,2\t0,8\t500",
        "3,6; 0,2; 10; 3,2; 0,8; 500",
    ):
        page.get_by_label("Or paste").fill(text)
        assert _values(page) == pytest.approx(expected, rel=1e-6)
        page.get_by_label("Runs").fill("20")
    ends = pm.norms.compare_means(*example)[["low", "high"]].to_numpy()[0] + 3.2
    page.get_by_label("Runs").fill("10")
    drawn = page.locator(".explorer-plot svg").get_attribute("aria-label")
    assert f"as 10 people {ends[0]:.2f} to {ends[1]:.2f}" in drawn

    link = page.get_by_text("Link to this comparison")
    address = page.url.partition("#")[0] + link.get_attribute("href")
    page.goto("about:blank")
    page.goto(address)
    assert _values(page) == pytest.approx(expected, rel=1e-6)

    for field, text in (
        ("Runs", "2.5"),
        ("People", "6,076"),
        ("People\u2019s SD", "0"),
        ("Model\u2019s mean", ""),
    ):
        before = page.get_by_label(field, exact=True).input_value()
        page.get_by_label(field, exact=True).fill(text)
        assert field in said.inner_text()
        assert link.is_hidden()
        page.get_by_label(field, exact=True).fill(before)


@pytest.fixture(scope="module")
def impostors() -> pd.DataFrame:
    return pd.read_csv(data_dir() / "impostors.csv").set_index(["base", "scale"])


def test_the_table_of_impostors_has_what_the_tables_of_its_parts_have(impostors):
    kernels = pd.read_csv(data_dir() / "kernels.csv").query("statistic == 'alpha'")
    kernels = kernels.set_index(["base", "scale"])["value"]
    np.testing.assert_allclose(impostors.loc[kernels.index, "alpha"], kernels, atol=2e-4)
    nulls = pd.read_csv(data_dir() / "bases" / "nulls.csv").query(
        "kind == 'heads' and size == 'start' and statistic == 'silhouette' "
        "and questionnaire != 'all'"
    )
    nulls = nulls.set_index(["base", "questionnaire"])["mean"]
    np.testing.assert_allclose(impostors.loc[nulls.index, "silhouette"], nulls, atol=2e-4)


def test_the_smaller_correlation_of_an_impostor_has_its_sign_in_people(impostors):
    three = ["gad7", "phq9", "soc13"]
    K = pm.nulls.kernel(three, "embedded", 6)
    pairs = kernel_statistics(K).query("statistic == 'correlation'")
    r = {frozenset(row[["scale", "other"]]): row["value"] for _, row in pairs.iterrows()}
    with_phq = r[frozenset(("gad7", "phq9"))]
    with_soc = -r[frozenset(("gad7", "soc13"))]
    found = impostors.loc[("MiniLM, 6 layers", "gad7"), "correlation"]
    assert found == pytest.approx(min(with_phq, with_soc), abs=1e-4)
    others = impostors.drop(index=three, level="scale")
    assert others["correlation"].isna().all()


def test_a_row_of_the_table_of_impostors_is_searched_cited_saved_and_linked(visit, impostors):
    page = visit("impostors.html")
    rows = page.locator(".impostor-table tbody tr")
    assert rows.count() == len(impostors)
    page.get_by_label("Search for").fill("mpnet gad")
    assert "1 of" in page.locator(".explorer-said").inner_text()
    page.get_by_role("button", name="Cite GAD-7 on MPNet").press("Enter")

    row = impostors.loc[("MPNet", "gad7")]
    cited = page.locator(".impostor-cited")
    assert cited.evaluate("box => box === document.activeElement")
    sentence = cited.locator("q").inner_text()
    for number in row:
        assert f"{number:.2f}" in sentence
    with page.expect_download() as saved:
        page.get_by_text("This row as CSV").press("Enter")
    read = pd.read_csv(saved.value.path())
    assert read[["base", "scale"]].to_numpy().tolist() == [["MPNet", "GAD-7"]]
    np.testing.assert_allclose(read[row.index].to_numpy()[0], row)

    address = page.url.partition("#")[0] + page.get_by_text("Link to this row").get_attribute(
        "href"
    )
    page.goto("about:blank")
    page.goto(address)
    assert cited.locator("q").inner_text() == sentence
    page.get_by_label("Search for").fill("no such base")
    assert "No row" in page.locator(".explorer-said").inner_text()


@pytest.mark.parametrize("name", explorers.EXPLORERS)
def test_an_explorer_is_labelled_light_and_fits_a_phone(visit, site, name):
    page = visit(f"{name}.html", viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    box = page.locator(f"#explorer-{name}")
    assert len(box.inner_html()) < 250_000
    for control in box.locator("input, select").all():
        assert control.evaluate("input => input.labels.length") == 1
        control.focus()
        assert control.evaluate("input => input === document.activeElement")
    for picture in box.locator("svg").all():
        assert len(picture.get_attribute("aria-label")) > 20
    scripts = [s.get_attribute("src") or "" for s in page.locator("script").all()]
    own = {Path(s.partition("?")[0]).stem for s in scripts if "explorers/" in s}
    assert own == {"explorers", name}
    assert not re.search(r"explorers/[\w-]+\.js", (site / "index.html").read_text())


def test_the_shipped_table_of_the_multiverse_is_what_is_computed():
    loaded = [pm.load_questionnaire(name) for name in ("gad7", "soc13")]
    answers = pm.ask(loaded, "encoders", progress=False)
    worlds = multiverse(answers, loaded, [("gad7", "soc13")])
    shipped = explorers._shipped("multiverse").query("first == 'gad7' and second == 'soc13'")
    np.testing.assert_allclose(worlds["r"], shipped["r"], rtol=0, atol=1e-5)


def test_the_page_checks_an_answer_as_the_command_by_keyboard_alone_and_does_not_tell_it(visit):
    page = visit("exercises.html")
    field = page.get_by_label("Your answer").first
    said = page.locator("form.check-answer output").first
    field.focus()
    for typed in ("0,6", "0,4", "2/5", "40 %", "-0.4", "40"):
        field.fill(typed)
        page.keyboard.press("Enter")
        right = exercises.is_right("ex-first-range", typed)
        assert ("Right" if right else "Not yet") in said.inner_text()
        assert right or exercises.hint("ex-first-range", typed) in said.inner_text()
    assert said.get_attribute("aria-live") == "polite"
    assert page.get_by_text("psychometrics check-answer").first.is_hidden()


def test_without_scripts_pages_name_the_command_and_show_pictures_with_words(visit, site):
    page = visit("exercises.html", java_script_enabled=False)
    assert page.locator("form.check-answer").first.is_hidden()
    assert page.get_by_text("psychometrics check-answer ex-first-range VALUE").is_visible()
    for name in explorers.EXPLORERS:
        page.goto((site / f"{name}.html").as_uri())
        picture = page.locator(f"#explorer-{name} noscript img")
        assert picture.is_visible()
        assert picture.get_attribute("alt") == explorers.EXPLORERS[name].alternative
        assert picture.bounding_box()["height"] > 200


# --- ask a model: a real one, its numbers, and what can go wrong


@pytest.fixture(scope="module")
def model():
    return pm.load_respondent(page_model.MEMBER, dtype="float32")


@pytest.fixture(scope="module")
def tab(browser, site):
    """The page as it was first served, and the addresses that it asked for."""
    if not (site / "ask.html").is_file():
        pytest.skip("the exporter is not installed, or the npm packages cannot be had here")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    context = browser.new_context(viewport={"width": 400, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, asked = context.new_page(), []
    page.set_default_timeout(240_000)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{server.server_address[1]}/ask.html")
    yield page, asked
    context.close()
    server.shutdown()
    server.server_close()


def _ask(page, **typed) -> pd.DataFrame:
    """Type an item, ask it by the keyboard alone, and return Python's prompts of it."""
    for name, text in typed.items():
        page.get_by_label(live_model.LABELS[name], exact=True).fill(text)
    page.get_by_label(live_model.LABELS["source"]).press("Enter")
    page.locator(".ask-null").wait_for(state="attached")
    page.get_by_role("button", name="Copy as YAML").press("Enter")
    page.get_by_text("The questionnaire is copied.").wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def _prompts(text: str, folder) -> pd.DataFrame:
    file = folder / f"{re.search('^id: (.+)$', text, re.M)[1]}.yaml"
    file.write_text(text, encoding="utf-8")
    return pm.prompts(pm.load_questionnaire(file))


def test_a_typed_item_has_a_file_name_of_its_own_and_a_limit_said_before_it_is_asked(
    browser, tmp_path
):
    page = browser.new_page()
    page.add_script_tag(path=book_dir() / "_static" / "explorers" / "ask.score.js")
    typed = {
        "text": "Grübeln: worrying a lot, often", "premise": "I feel {term}.",
        "hypothesis": "It is {intensifier} so.", "source": "sad", "inverse": "glad",
        "words": "never -1, often 1",
    }  # fmt: skip
    text = page.evaluate("typed => askScore.yaml(askScore.read(typed))", typed)
    name = page.evaluate("typed => askScore.fileName(askScore.read(typed))", typed)
    (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert pm.load_questionnaire(tmp_path / f"{name}.yaml").id == name
    assert name.startswith("item-gr")

    judge = "typed => askScore.mistakes(askScore.read(typed))"
    assert page.evaluate(judge, typed) == []
    many = typed | {"source": ", ".join(f"sad{n}" for n in range(200))}
    assert any("402 pairs" in one for one in page.evaluate(judge, many))
    page.close()


def test_the_measured_error_is_of_this_model_and_small():
    row = pd.read_csv(data_dir() / "page_model.csv").iloc[0]
    assert row["fingerprint"] == page_model.fingerprint(), "python -m recipes.page_model"
    assert row["largest"] < 0.005


def test_a_link_of_the_page_fills_the_fields_that_it_names(tab):
    field = tab[0].get_by_label(live_model.LABELS["premise"], exact=True)
    for premise in ("I am {term}.", field.input_value()):
        tab[0].evaluate("p => { location.hash = new URLSearchParams({premise: p}) }", premise)
        tab[0].wait_for_timeout(200)
        assert field.input_value() == premise


def test_nothing_is_loaded_before_start_and_all_of_it_once(tab, site, model, tmp_path):
    page, asked = tab
    assert not any("/live/" in url or "worker" in url for url in asked)
    page.get_by_role("button", name="Start the model").press("Enter")
    page.locator(".ask-null").wait_for(state="attached")
    loaded = [url.rpartition("/")[2] for url in asked if "/live/" in url]
    assert sorted(loaded) == sorted(live_model.files())
    del asked[:]
    table = _prompts(_ask(page), tmp_path)
    python = model.answer(list(zip(table["premise"], table["hypothesis"], strict=True)))[:, 0]
    raw = _cells(page)
    np.testing.assert_allclose(raw.ravel(), python, atol=0.005)
    pss = pm.two_way(raw)
    np.testing.assert_allclose(_cells(page, 2), pss, atol=1e-9)
    each = pss[:3] @ table["weight"].to_numpy()[:8] / 8
    low, high = pm.intervals.mean_interval(each)
    expected = {"item": each.mean(), "low": low, "high": high}
    assert _values(page) == pytest.approx(expected, abs=1e-6)
    assert not asked, "nothing is loaded for an answer"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_the_untrained_head_reads_the_untouched_base(tab):
    page, _ = tab
    frame = page.locator(".explorer-table").nth(3).locator("td")
    values = [float(cell.get_attribute("data-value")) for cell in frame.all()]
    trained, start, matched = np.reshape(values, (3, 4))
    assert matched[3] == pytest.approx(trained[3], rel=1e-3)
    assert abs(start[0]) < 0.01 < start[3] < 2


def test_hostile_text_is_asked_copied_and_linked_as_it_was_typed(tab, model, tmp_path):
    page, _ = tab
    table = _prompts(_ask(page, **HOSTILE), tmp_path)
    assert len(table) == 12
    python = model.answer(list(zip(table["premise"], table["hypothesis"], strict=True)))[:, 0]
    np.testing.assert_allclose(_cells(page).ravel(), python, atol=0.005)
    linked = {name: text[0] for name, text in parse_qs(urlsplit(page.url).fragment).items()}
    assert linked == HOSTILE | {"seed": "1"}
    long = {"premise": "I feel {term}. " + "so " * 3333, "words": "never -1, often 1"}
    table = _prompts(_ask(page, **long, source="sad", inverse="glad"), tmp_path)
    with pytest.warns(UserWarning, match="longer"):
        python = model.answer(list(zip(table["premise"], table["hypothesis"], strict=True)))[:, 0]
    np.testing.assert_allclose(_cells(page).ravel(), python, atol=0.005)
    page.get_by_label(live_model.LABELS["premise"]).fill("<b>I feel</b> sad {term}.")
    assert "tag" in page.locator(".ask-findings").inner_text()
    assert page.get_by_role("button", name="Ask", exact=True).is_disabled()


def test_a_second_visit_loads_from_the_cache_and_a_link_restores_the_item(tab):
    page, asked = tab
    address = page.url.replace("premise=", "premise=I+feel+%7Bterm%7D.&old=")
    page.goto("about:blank")
    del asked[:]
    page.goto(address)
    assert page.get_by_label(live_model.LABELS["premise"]).input_value() == "I feel {term}."
    page.get_by_role("button", name="Start the model").press("Enter")
    page.locator(".ask-null").wait_for(state="attached")
    assert not any("/live/" in url for url in asked)


def test_the_rules_in_the_page_find_what_python_finds(tab):
    page, _ = tab
    judge = "([items, rules]) => items.map(i => askRules(askScore.read(i), rules).map(f => f.rule))"
    for name in live_model.LISTED:
        found = page.evaluate(judge, [live_model.templates(name), word_lists()])
        python = wording(name)
        places = [(item.id, [0, number]) for item in pm.load_questionnaire(name).items
                  for number in range(1, len(item.templates) + 1)]  # fmt: skip
        for (item, own), rules in zip(places, found, strict=True):
            expected = python[(python["item_id"] == item) & python["template"].isin(own)]["rule"]
            assert sorted(rules) == sorted(expected), item


# --- a whole questionnaire


@pytest.fixture(scope="module")
def whole(browser, tab):
    """The page of a whole questionnaire, as it was first served."""
    context = browser.new_context(viewport={"width": 400, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(240_000)
    page.goto(tab[0].url.partition("#")[0].replace("ask.html", "whole.html"))
    yield page
    context.close()


def _ask_all(page, text: str) -> dict[str, float]:
    """Paste a questionnaire, ask it, and return the numbers of the sentence."""
    page.get_by_label("The questionnaire, as CSV or YAML").fill(text)
    page.get_by_role("button", name="Ask all items").click()
    page.get_by_text("Answered in").wait_for()
    return _values(page)


def _expected(questionnaire, member: str) -> dict[str, float]:
    """Return what Python says of the questionnaire's first scale."""
    answers = pm.ask(questionnaire, [member], dtype="float32", progress=False)
    table = score_tables.score_table(answers, [questionnaire]).iloc[0]
    statistics = kernel_statistics(pm.nulls.kernel(questionnaire))
    alpha = statistics.loc[statistics["statistic"] == "alpha", "value"].iloc[0]
    return {"scale": table["score"], "low": table["low"], "high": table["high"], "alpha": alpha}


def test_a_pasted_file_gets_the_scores_of_python_and_the_alpha_of_its_kernel(whole, tmp_path):
    text = (questionnaires_dir() / "gad7.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    content |= {"id": "three", "items": content["items"][:3]}  # each with two templates
    for part in content["items"] + [one for item in content["items"] for one in item["templates"]]:
        if "terms" in part:  # two of each kind: each prompt takes the page 50 ms
            part["terms"] = {kind: terms[:2] for kind, terms in part["terms"].items()}
    file = tmp_path / "three.yaml"
    file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    questionnaire = pm.load_questionnaire(file)
    found = _ask_all(whole, file.read_text(encoding="utf-8"))
    assert found == pytest.approx(_expected(questionnaire, page_model.MEMBER), abs=0.003)

    answers = pm.ask(questionnaire, [page_model.MEMBER], dtype="float32", progress=False)
    items = score_tables.score_table(answers, [questionnaire], items=True)
    cells = _cells(whole, 1)
    np.testing.assert_allclose(cells[:, :3], items[["score", "low", "high"]], atol=0.01)
    assert whole.locator(".explorer-plot circle").count() == 3
    assert whole.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_pasted_table_has_reversed_items_and_is_copied_as_a_file_that_python_scores_alike(
    whole, tmp_path
):
    table = pd.read_csv(questionnaires_dir() / "trust10.csv").head(4)
    table["reverse"] = ["", "yes", "", "no"]
    for kind in ("source", "inverse"):
        table[kind] = table[kind].str.split("; ").str[:2].str.join("; ")
    bare = pd.DataFrame({"item": ["Suspect, with a comma, others."], "reverse": ["x"]})
    text = pd.concat([table, bare]).to_csv(index=False, sep=";", quoting=csv.QUOTE_ALL)
    found = _ask_all(whole, text)
    assert "not asked and not scored: 5" in whole.locator(".ask-findings").inner_text()

    found = _ask_all(whole, table.to_csv(index=False))
    whole.get_by_role("button", name="Copy as YAML").click()
    name = whole.get_by_text("Save it as").inner_text().rpartition("Save it as ")[2].strip(".")
    file = tmp_path / name
    file.write_text(whole.evaluate("navigator.clipboard.readText()"), encoding="utf-8")
    questionnaire = pm.load_questionnaire(file)
    assert questionnaire.scales[0].reverse == (questionnaire.items[1].id,)
    assert found == pytest.approx(_expected(questionnaire, page_model.MEMBER), abs=0.003)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Paste a questionnaire"), ("item,colour\nA,red", "column \u201ccolour\u201d"),
        ("premise\nA", "no column"), ("item,reverse\nA,maybe", "reverse is yes or no"),
        ("item\nA", "No item has prompts"), ("items: [", "cannot be read"),
        ("items: 5", "no items"),
        ("items: [{id: a}]\nscales: [{title: S, items: [b]}]", "names \u201cb\u201d"),
        ("items: [{id: a, terms: 5, templates: [{premise: 7}]}]", "Item 1: "),
        ("items: [5, null]", "No item has prompts"),
        ("categories: [a]\nitems: [{id: a}]", "categories"),
        ('item,premise\n"<b>A</b>,{term}', "No item has prompts"),
    ],
)  # fmt: skip
def test_what_is_no_questionnaire_is_said_and_not_asked(whole, text, said):
    whole.get_by_label("The questionnaire, as CSV or YAML").fill(text)
    whole.locator(".ask-wrong", has_text=said).first.wait_for()
    assert whole.get_by_role("button", name="Ask all items").is_disabled()


def test_too_many_pairs_and_another_language_are_said_before_asking(whole):
    head = "item;source;inverse;premise;hypothesis\n"
    row = "Tea {};{};bad;I think of {{term}}.;It is {{intensifier}} so."
    many = "; ".join(f"good{n}" for n in range(40)).replace(";", "\\")
    rows = [row.format(n, many) for n in range(9)]
    field = whole.get_by_label("The questionnaire, as CSV or YAML")
    field.fill(head.replace(";", ",") + "\n".join(rows).replace(";", ",").replace("\\", ";"))
    whole.locator(".ask-wrong", has_text="too many for this page").wait_for()

    field.fill((questionnaires_dir() / "gad7_es.yaml").read_text(encoding="utf-8"))
    whole.locator("[data-rule=language]", has_text="\u201ces\u201d").wait_for()
    assert whole.locator(".ask-findings li").count() == 1
    field.fill(
        head
        + "Ich bin traurig und m\u00fcde;traurig;froh;Ich bin oft {term}.;Das ist {intensifier} so."
    )
    whole.locator("[data-rule=language]", has_text="reads as German").first.wait_for()


@pytest.fixture
def visitor(browser, tab):
    """A reader who has been here never before."""
    context = browser.new_context()
    yield context.new_page(), tab[0].url.partition("#")[0]
    context.close()


def test_on_a_slow_network_the_page_shows_progress_answers_keys_and_starts_once(visitor):
    page, address = visitor
    asked = []
    page.on("request", lambda request: "/live/" in request.url and asked.append(request.url))
    page.goto(address)
    slow = {"offline": False, "latency": 100, "downloadThroughput": 5e5, "uploadThroughput": 5e5}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    start = page.get_by_role("button", name="Start the model")
    start.dblclick()
    wait_until(page, "document.querySelector('progress').value > 0.002")
    first = page.locator("progress").evaluate("e => e.value")
    wait_until(page, f"document.querySelector('progress').value > {first}")
    page.get_by_label(live_model.LABELS["premise"]).fill("<b>I feel</b> {term}.", timeout=2000)
    assert "tag" in page.locator(".ask-findings").inner_text()
    assert start.is_disabled()
    assert "Loading the model" in page.locator(".ask-status").inner_text()
    assert len(asked) == len(set(asked)), "one download, however often it is pressed"


def test_what_is_missing_is_said_and_the_page_stays_as_it_was(visitor):
    page, address = visitor
    page.route("**/*.onnx", lambda route: route.fulfill(status=404))
    page.goto(address)
    page.get_by_role("button", name="Start the model").click()
    page.get_by_text("The model could not be loaded or run: model").wait_for()
    assert page.get_by_role("button", name="Start the model").is_enabled()
    bare = re.sub(r'"files":\[.*?\]', '"files":[]', page.request.get(address).text())
    page.route("**/ask.html", lambda route: route.fulfill(body=bare, content_type="text/html"))
    page.goto("about:blank")
    page.goto(address)
    assert page.locator(".ask-status").inner_text() == live_model.MISSING
    assert page.get_by_role("button", name="Start the model").count() == 0


def test_a_page_from_a_file_says_how_to_serve_it_and_a_build_without_the_model_that_it_is_missing(
    browser, site, tmp_path, monkeypatch
):
    page = browser.new_page()
    page.goto((site / "ask.html").as_uri())
    page.get_by_role("button", name="Start the model").click()
    assert "python -m http.server" in page.locator(".ask-status").inner_text()
    page.close()
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    assert live_model.files.__wrapped__() == {}
