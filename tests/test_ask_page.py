"""The page *Ask a model* in headless Chromium: a real model, its numbers, and what can go wrong."""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.paths import book_dir, data_dir
from psychometrics.questionnaires.wording import word_lists, wording
from tests.test_explorers import _cells, _values, build
from tests.test_web import _Quiet

sys.path.insert(0, str(book_dir() / "_ext"))
import live_model
import page_model

BOX = "# A page\n\n```{{ask-a-model}}\n{}\n```\n\n```{{ask-a-model-error}}\n```\n"
HOSTILE = {
    "text": 'A "quoted" item\'s text: \N{SLIGHTLY SMILING FACE}',
    "premise": 'When I\'m "there" & 1 < 2: caf\u00e9, \N{FACE WITH TEARS OF JOY}, I feel {term}.',
    "hypothesis": "It {intensifier} is so # yes.",
    "source": "tense, l'anxi\u00e9t\u00e9",
    "inverse": "calm, \u5b89\u5fc3",
    "words": "never: -4, often 2, al\\ways 4",
}


@pytest.fixture(scope="module")
def model():
    return pm.load_respondent(page_model.MEMBER, dtype="float32")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("onnxscript", reason="the exporter is not installed")
    if not live_model.files():
        pytest.skip("the npm packages cannot be had here")
    folder = tmp_path_factory.mktemp("book")
    (folder / "index.md").write_text(BOX.format(":small:\n:words: seldom -2"))
    (folder / "ask.md").write_text(BOX.format(""))
    (folder / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n- file: ask\n")
    run = build(folder)
    assert run.returncode == 0, run.stderr[-3000:]
    return folder / "_build" / "html"


@pytest.fixture(scope="module")
def tab(browser, site):
    """The page as it was first served, and the addresses that it asked for."""
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
    (folder / "my-item.yaml").write_text(text, encoding="utf-8")
    return pm.prompts(pm.load_questionnaire(folder / "my-item.yaml"))


def test_the_measured_error_is_of_this_model_and_small():
    row = pd.read_csv(data_dir() / "page_model.csv").iloc[0]
    assert row["fingerprint"] == page_model.fingerprint(), "python -m data.make.page_model"
    assert row["largest"] < 0.005


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
