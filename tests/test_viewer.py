"""The list of a store's runs in the browser: what it shows, and whom it refuses."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import threading
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

import psychometrics as pm
from psychometrics.exceptions import StoreError
from psychometrics.reports.viewer import Viewer
from psychometrics.store import StoredAnswers, key_of

EVIL = '<script>document.title = "run"</script><img src=x onerror="document.title = 1">'
PAGE = "<!doctype html><title>page</title><p>The page.</p><script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def store(tiny_model, tmp_path_factory) -> Path:
    """A store with the answers of a tiny model, and with a reply that is HTML."""
    folder = tmp_path_factory.mktemp("store")
    pm.ask("challenges", [tiny_model], store=folder, progress=False)
    pm.ask("ipip20", [tiny_model], store=folder, mode="options", progress=False)
    manifest = {"role": EVIL, "source": "endpoint"}
    with StoredAnswers(folder, "chat", "ipip50", f"org/{EVIL}", manifest) as stored:
        index = pd.Index([key_of(str(number)) for number in range(150)], name="key")
        replies = {"request": "r" * 9999, "reply": [f"{EVIL} {n}" for n in range(150)]}
        stored.add(pd.DataFrame(replies, index=index))
    return folder


@pytest.fixture
def pages(tiny_model, tmp_path) -> Path:
    """A folder with a page about the tiny model, and with a file that is no page of ours."""
    rows = [
        {"questionnaire": "ipip20", "model": tiny_model.name, "mark": mark, "verdict": verdict}
        for mark, verdict in (("✓", "passes"), ("✗", "as impostors"), ("!", "reserved"))
    ]
    report = {"kind": "profile", "title": tiny_model.name, "about": "mode options · 1 run"}
    (tmp_path / "profile.html").write_text(PAGE)
    (tmp_path / "profile.json").write_text(json.dumps(report | {"results": {"rows": rows}}))
    (tmp_path / "other.html").write_text("another program's")
    (tmp_path / "other.json").write_text("[]")
    return tmp_path


@pytest.fixture
def viewer(store, pages):
    with Viewer(store, pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetch(viewer, path: str, host: str = "", method: str = "GET"):
    """Status, headers and text of the answer to a request below the secret address."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_port, timeout=30)
    headers = {"Host": host or f"127.0.0.1:{viewer.server_port}"}
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def below(viewer, path: str = "") -> str:
    return f"/{viewer.secret}/{path}"


def rows_of(text: str) -> list[list[str]]:
    """Texts of the cells of a page's table."""
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td.*?>(.*?)</td>", row, re.S)]
        for row in re.findall("<tr>(.*?)</tr>", text.partition("<tbody>")[2], re.S)
    ]


def test_the_list_shows_each_run_the_last_one_first_with_the_verdict_of_its_worst_scale(
    viewer, tiny_model
):
    status, _, text = fetch(viewer, below(viewer))
    rows = rows_of(text)
    assert status == 200
    assert [[row[0], row[1], row[3], row[5]] for row in rows] == [
        ["IPIP-50", "not judged", "chat", "150"],
        ["Mini-IPIP", "✗ as impostors", "options", "100"],
        ["Challenges", "not judged", "nli", "192"],
    ]
    assert rows[1][2] == tiny_model.name


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("?q=impostors", ["Mini-IPIP"]),
        ("?q=IPIP", ["IPIP-50", "Mini-IPIP"]),
        ("?q=ipip+not+judged", ["IPIP-50"]),
        ("?mode=nli", ["Challenges"]),
        ("?mode=nli&q=ipip", []),
        ("?mode=&q=", ["IPIP-50", "Mini-IPIP", "Challenges"]),
    ],
)
def test_a_search_and_a_mode_narrow_the_list(viewer, query, shown):
    assert [row[0] for row in rows_of(fetch(viewer, below(viewer, query))[2])] == shown


def test_pages_that_no_run_leads_to_are_listed_searched_and_filtered(viewer, pages):
    rows = [{"questionnaire": "gad7", "about": "GAD-7", "mark": "✗", "verdict": "As a mere habit"}]
    report = {"kind": "answers", "title": "my-table", "about": "40 respondents"}
    (pages / "profile-my-table.html").write_text(PAGE)
    text = json.dumps(report | {"results": {"rows": rows}})
    (pages / "profile-my-table.json").write_text(text)
    for query in ("", "?q=my-table+habit", "?mode=page%3A+answers"):
        shown = fetch(viewer, below(viewer, query))[2]
        first = rows_of(shown)[0]
        assert first[:4] == ["GAD-7", "✗ As a mere habit", "my-table", "page: answers"]
        assert "page?name=profile-my-table.html" in shown
    assert not rows_of(fetch(viewer, below(viewer, "?q=my-table&mode=nli"))[2])


def test_answers_are_one_click_deep(viewer):
    link = re.search(r"answers\?run=\w+(?=.>Challenges)", fetch(viewer, below(viewer))[2])
    text = fetch(viewer, below(viewer, link[0]))[2]
    prompts = pm.prompts("challenges")
    premises, hypotheses = set(prompts["premise"]), set(prompts["hypothesis"])
    rows = rows_of(text)
    assert len(rows) == 100
    assert all(row[0] in premises and row[1] in hypotheses for row in rows)
    assert "Answers 1 to 100 of 192" in text
    assert "psychometrics profile FOLDER/" in text
    assert len(rows_of(fetch(viewer, below(viewer, f"{link[0]}&start=100"))[2])) == 92


def test_a_verdict_opens_its_page_in_which_no_script_may_run(viewer):
    link = re.search(r"page\?name=[\w.]+", fetch(viewer, below(viewer))[2])
    status, headers, text = fetch(viewer, below(viewer, link[0]))
    assert (status, text) == (200, PAGE)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "script" not in policy


def test_html_in_a_reply_a_name_or_a_condition_is_text(viewer):
    shown = fetch(viewer, below(viewer))[2]
    link = re.search(r"answers\?run=\w+(?=.>IPIP-50)", shown)
    answers = fetch(viewer, below(viewer, link[0]))[2]
    searched = fetch(viewer, below(viewer, "?q=%22%3E%3Cscript%3E"))[2]
    for text in (shown, answers, searched):
        tags = set()
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, _, tags=tags: tags.add(tag)
        parser.feed(text)
        assert "table" in tags
        assert not {"script", "img"} & tags
    assert answers.count("&lt;script&gt;") > 100


def test_no_script_runs_in_the_browser(viewer, browser):
    page = browser.new_page()
    page.goto(viewer.url)
    page.click("text=IPIP-50")
    page.wait_for_url("**/answers?*")
    assert page.title().startswith("IPIP-50, org/<script>")
    page.go_back()
    page.fill("input", "impostors")
    page.click("button")
    assert page.locator("tbody tr").count() == 1
    page.click("text=as impostors")
    assert page.title() == "page"
    page.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_pages_are_accessible_and_fit_a_phone(viewer, browser, width, scheme):
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text()
    page = browser.new_page(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page.goto(viewer.url)
    for _ in range(2):
        page.evaluate(script)
        result = page.evaluate("axe.run()")
        assert [violation["id"] for violation in result["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.click("text=IPIP-50")
    page.close()


@pytest.mark.parametrize(
    "path",
    [
        "page?name=../profile.html",
        "page?name=/etc/passwd",
        "page?name=other.html",
        "page?name=profile.json",
        "answers?run=../../nli",
        "..%2f..%2fprofile.html",
        "../profile.html",
        "profile.html",
    ],
)
def test_nothing_but_listed_runs_and_pages_can_be_opened(viewer, path):
    status, _, text = fetch(viewer, below(viewer, path))
    assert status == 404
    assert "The page." not in text


@pytest.mark.parametrize("path", ["/", "/wrong/", "/favicon.ico", "//", "/%00/"])
def test_without_the_secret_nothing_is_shown(viewer, path):
    assert fetch(viewer, path)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1:1", "[::1]"])
def test_a_site_that_points_its_name_at_this_machine_is_refused(viewer, host):
    assert fetch(viewer, below(viewer), host)[0] == 403
    assert fetch(viewer, below(viewer), f"localhost:{viewer.server_port}")[0] == 200


def test_another_address_of_the_machine_is_not_served(viewer):
    assert viewer.server_address[0] == "127.0.0.1"
    with socket.socket() as other:
        other.settimeout(5)
        assert other.connect_ex(("127.0.0.2", viewer.server_port)) != 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_methods_that_could_change_something_are_refused(viewer, method):
    assert fetch(viewer, below(viewer), method=method)[0] == 501


def test_nothing_in_the_store_changes_even_if_a_part_is_damaged(tiny_model, tmp_path):
    pm.ask("challenges", [tiny_model], store=tmp_path, progress=False)
    part = next(tmp_path.rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    before = sorted(tmp_path.rglob("*"))

    with Viewer(tmp_path) as viewer:
        assert viewer.runs() == []

    assert sorted(tmp_path.rglob("*")) == before


def test_answers_that_arrive_later_are_shown_and_removed_ones_are_not(tmp_path):
    rows = pd.DataFrame({"reply": ["4"]}, index=pd.Index([key_of("a")], name="key"))
    with Viewer(tmp_path) as viewer, StoredAnswers(tmp_path, "chat", "gad7", "m") as stored:
        assert viewer.runs() == []
        stored.add(rows)
        assert [(run.title, run.answers) for run in viewer.runs()] == [("GAD-7", 1)]
        shutil.rmtree(tmp_path / "chat")
        assert viewer.runs() == []


def test_the_same_question_under_other_conditions_is_another_run(tmp_path):
    for role, reply in (("hero", "4"), ("liar", None)):
        rows = pd.DataFrame({"reply": [reply, "5"], "run": [1, 2]})
        rows.index = pd.Index([key_of(role, "1"), key_of(role, "2")], name="key")
        with StoredAnswers(tmp_path, "chat", "gad7", "m", {"role": role}) as stored:
            stored.add(rows)

    with Viewer(tmp_path) as viewer:
        assert [run.manifest["role"] for run in viewer.runs()] == ["liar", "hero"]
        thread = threading.Thread(target=viewer.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        path = below(viewer, f"answers?run={viewer.runs()[0].name}")
        assert rows_of(fetch(viewer, path)[2]) == [["", "1"], ["5", "2"]]
        viewer.shutdown()


def test_a_file_is_not_a_store(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        Viewer(tmp_path / "file")
