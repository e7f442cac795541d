"""The built pages as a reader meets them: in a browser, by keyboard, on a phone, dark, on paper.

Pages come from ``make book``; the browser is Chromium or Chrome, wherever it is installed.
"""

from __future__ import annotations

import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from sphinx_external_toc.parsing import parse_toc_yaml

from psychometrics.exceptions import ParameterError, PsychometricsError
from psychometrics.paths import book_dir
from psychometrics.reports.printing import find_browser
from psychometrics_book import printing
from tests.conftest import foreign_sources, loads_from_elsewhere, policy_of, wait_until

HTML = book_dir() / "_build" / "html"
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if path.relative_to(HTML).parts[0] != "_static"
) or ["index.html"]
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]
LONG = "chapters/06-other-explanations.html"
SMALLEST = 9.0  # points of a label, at the width of a page
JUDGED = ["chapters/03-assessment.html", "index.html", "using.html", "ask.html", "search.html",
          "reference/items.html"]  # fmt: skip
"""A page of each kind, which axe judges; what all others hold is tested as files, below."""
HEAVIEST = 1.5  # MB of a page with its pictures, without what all pages share
built = pytest.mark.skipif(not (HTML / "index.html").is_file(), reason="not built: make book")


@pytest.fixture(scope="module")
def tab(browser):
    """One tab for all pages of this module."""
    opened = browser.new_context(reduced_motion="reduce").new_page()
    opened.set_default_timeout(120_000)
    return opened


@pytest.fixture
def visit(tab):
    """Function that opens a page of the book, light, at a width."""

    def open_page(page: str, width: int = 1300):
        tab.emulate_media(media="screen")
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(page if "://" in page else (HTML / page).as_uri())
        _put_theme(tab, "light")
        return tab

    return open_page


def _put_theme(page, theme: str) -> None:
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)


def _resize(page, width: int) -> None:
    """Another width, once what watches it has been told."""
    page.set_viewport_size({"width": width, "height": 900})
    wait_until(page, f"innerWidth === {width}")
    frame = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
    for _ in range(2):
        page.evaluate(frame)


def _findings(page, *rules: str) -> list[str]:
    """Serious findings of axe; code looks alike on all pages, and is left out."""
    import axe_playwright_python

    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text())
    about = {"include": [["html"]], "exclude": [["div.highlight"]]}
    options = {"resultTypes": ["violations"], "preload": False, "iframes": False}
    options |= {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    run = "([about, o]) => axe.run(about, o).then(r => r.violations)"
    return [
        f"{v['impact']}: {v['id']} ({len(v['nodes'])}), such as {v['nodes'][0]['html'][:150]}"
        for v in page.evaluate(run, [about, options])
        if v["impact"] in ("serious", "critical")
    ]


# --- in a browser ----------------------------------------------------------------------------


WIDE = """() => [...document.querySelectorAll('.bd-article *')].filter(e =>
    e.scrollWidth > e.clientWidth + 2 && /auto|scroll/.test(getComputedStyle(e).overflowX)
    && e.clientWidth > 0 && e.checkVisibility()).map(e => ({
        what: e.className, tab: e.tabIndex, label: e.getAttribute('aria-label'),
        note: e.matches('.explorer-scroll')
            || Boolean(e.nextElementSibling?.classList.contains('scroll-note'))}))"""
PALE = """() => [...document.querySelectorAll('.cell_output .output.text_html, .cell_output td')]
    .filter(e => { const c = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
                   return (c[3] ?? 1) > 0.5 && (c[0] + c[1] + c[2]) / 3 > 160; }).length"""
CUT = """() => [...document.querySelectorAll('.table-region table, .bd-article pre')]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 662)
    .map(e => e.innerText.slice(0, 60))"""
SHOWN = """() => [...document.querySelectorAll('details.hide:not([open])')]
    .filter(e => e.checkVisibility()).length"""


@built
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible_light_dark_on_a_phone_and_by_keyboard_and_prints_whole(page, visit):
    pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    opened = visit(page, 400)
    _resize(opened, 400)  # until what watches widths has been told
    wide = opened.evaluate(WIDE)
    assert wide or page != LONG, "this chapter has code or a table that is wider than a phone"
    if page in CHAPTERS:
        assert [one for one in wide if one["tab"] or not one["label"] or not one["note"]] == []
    style = opened.add_style_tag(content="* { letter-spacing: 0.06em !important }")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 402, "the page itself scrolls"
    style.evaluate("style => style.remove()")
    for closed in ("details.hide > summary", "button.toggle-button"):
        fold = opened.locator(closed).first
        assert fold.count() or page != LONG
        if fold.count():
            fold.press("Enter")
            said = "e => e.ariaExpanded ?? String(e.parentElement.open)"
            assert fold.evaluate(said) == "true", closed
    _resize(opened, 660)
    opened.emulate_media(media="print")
    opened.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.evaluate(CUT) == []
    assert opened.evaluate(SHOWN) == 0
    opened.emulate_media(media="screen")
    opened.evaluate("window.dispatchEvent(new Event('afterprint'))")
    if page in JUDGED:
        _resize(opened, 400)
        assert _findings(opened, "scrollable-region-focusable", "target-size") == []
        _resize(opened, 1300)
        assert _findings(opened) == []
    _put_theme(opened, "dark")
    assert page not in JUDGED or _findings(opened, "color-contrast") == []
    assert opened.evaluate(PALE) == 0, "tables are dark, too"


FOCUS = """() => { const e = document.activeElement, s = getComputedStyle(e);
    return {name: e.innerText, where: e.className, place: Number(e.dataset.place),
            seen: s.outlineStyle !== 'none' || s.boxShadow !== 'none'}; }"""
NUMBER = """all => all.filter(e => !e.disabled && e.checkVisibility({visibilityProperty: true}))
    .map((e, i) => { e.dataset.place = i; return i; })"""


def _walk(page, steps: int) -> list[dict]:
    """What the tabulator key reaches, step by step."""
    reached = [page.keyboard.press("Tab") or page.evaluate(FOCUS) for _ in range(steps)]
    assert [one for one in reached if not one["seen"]] == []
    return reached


@built
def test_the_keyboard_reaches_the_content_the_search_and_the_theme_and_its_place_is_seen(visit):
    reached = _walk(visit("using.html"), 80)
    assert "Skip to main content" in reached[0]["name"]
    classes = " ".join(one["where"] for one in reached)
    assert "search-button" in classes
    assert "theme-switch" in classes


@built
@pytest.mark.parametrize("width", [1300, 400])
def test_the_keyboard_walks_through_ask_a_model_in_order_and_its_place_is_seen(visit, width):
    page = visit("ask.html", width)
    there = page.locator(
        "article :is(a[href], button, input, select, textarea, summary, [tabindex='0'])"
    )
    expected = there.evaluate_all(NUMBER)
    page.locator("article h1").evaluate("e => { e.tabIndex = -1; e.focus(); }")
    assert [one["place"] for one in _walk(page, len(expected))] == expected


@built
def test_dark_figures_stand_on_the_dark_page(visit):
    import io

    from PIL import Image

    page = visit(LONG)
    _put_theme(page, "dark")
    figure = page.locator("figure img.drawn").first
    figure.scroll_into_view_if_needed()
    wait_until(page, "document.querySelector('figure img.drawn').complete")
    picture = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    corner = picture.getpixel((1, 1))
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    there = [int(part) for part in re.findall(r"\d+", background)[:3]]
    assert max(abs(a - b) for a, b in zip(corner, there, strict=True)) <= 6
    assert max(picture.convert("L").getextrema()) > 150, "its lines and letters are light"


@built
def test_a_search_on_a_served_book_shows_where_the_words_stand(visit):
    handler = partial(_Quiet, directory=str(HTML))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        page = visit(f"http://127.0.0.1:{server.server_address[1]}/search.html?q=placebo")
        excerpt = page.locator("#search-results p.context, #search-results .context").first
        excerpt.wait_for(timeout=20_000)
        assert "placebo" in excerpt.inner_text().lower()
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


# --- as files --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parsed() -> dict[Path, BeautifulSoup]:
    """All pages by their files."""
    return {
        (HTML / page).resolve(): BeautifulSoup((HTML / page).read_text("utf-8"), "html.parser")
        for page in PAGES
    }


@built
def test_every_link_inside_the_book_leads_somewhere(parsed):
    ids = {path: {e["id"] for e in page.find_all(id=True)} for path, page in parsed.items()}
    lost = []
    for own, page in parsed.items():
        links = [e.get("href") or e.get("src", "") for e in page.find_all(["a", "img"])]
        for link in links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or "=" in parts.fragment:  # a state
                continue
            target = (own.parent / unquote(parts.path)).resolve() if parts.path else own
            there = not parts.fragment or unquote(parts.fragment) in ids.get(target, ())
            if not target.exists() or (target.suffix == ".html" and not there):
                lost.append(f"{own.name}: {link}")
    assert lost == []


@built
def test_pages_load_nothing_from_elsewhere_and_forbid_it(parsed):
    example = HTML / "_static" / "profile-example.html"
    pages = parsed | {example: BeautifulSoup(example.read_text("utf-8"), "html.parser")}
    for path, page in pages.items():
        policy = policy_of(page)
        assert loads_from_elsewhere(page) == [], path.name
        assert policy["default-src"], path.name
        assert foreign_sources(policy) == set(), path.name
    sheets = {sheet: loads_from_elsewhere(sheet.read_text()) for sheet in HTML.rglob("*.css")}
    assert not any(sheets.values())


@built
def test_pictures_tables_and_pages_are_described_and_chapters_offer_their_data(parsed):
    lists = {"genindex.html", "py-modindex.html", "search.html"}
    heads = [page.head for path, page in parsed.items() if path.name not in lists]
    said = [head.find("meta", attrs={"name": "description"})["content"] for head in heads]
    assert [text for text in said if not 20 <= len(text) <= 165] == []
    assert all(head.find("meta", property="og:image:alt") for head in heads)
    assert len(set(said)) == len(said)
    for path, page in parsed.items():
        for picture in page.find_all("img"):
            assert picture.has_attr("alt"), (path.name, picture)
            assert not re.search(r"\.(png|svg|jpe?g)$|_images/|^Figure without", picture["alt"])
        if path.parent.name == "chapters":
            assert "Traceback" not in page.text
            assert "UserWarning" not in page.text
            assert page.find("figure"), path.name
            for figure in page.find_all("figure"):
                assert ".csv" in str(figure), (path.name, figure.get("id"))
            for table in page.select("table.dataframe"):
                assert table.find_parent("figure", class_="cell-table"), "a table has a caption"
                assert all(cell.has_attr("scope") for cell in table.find_all("th")), path.name


@built
def test_a_chapter_weighs_little(parsed):
    for path, page in parsed.items():
        sources = {one["src"] for one in page.find_all("img") if "_images" in one.get("src", "")}
        weight = sum(file.stat().st_size for file in [path, *map(path.parent.joinpath, sources)])
        assert path.parent.name != "chapters" or weight < HEAVIEST * 1e6, f"{path.name}: {weight}"


@built
def test_labels_of_figures_have_nine_points_on_the_page():
    small = []
    for path in (book_dir() / "chapters").glob("*.ipynb"):
        for number, cell in enumerate(json.loads(path.read_text())["cells"]):
            for output in cell.get("outputs", []):
                size = output.get("metadata", {}).get("psychometrics", {}).get("smallest_label", 99)
                small += [f"{path.stem}, cell {number}: {size}"] if size < SMALLEST else []
    assert small == []


# --- the whole book as a PDF -----------------------------------------------------------------


@pytest.fixture
def small_book(tmp_path, monkeypatch):
    """Three pages that name each other, themselves and a file; one is only for the screen."""
    html = tmp_path / "_build" / "html"
    html.mkdir(parents=True)
    names = ["index", "using", "numbers"]
    links = [
        f"<a href='{file}'>it</a>" for file in ["#here", "a.csv", *map("{}.html".format, names)]
    ]
    for name in names:
        text = f"<title>{name.title()} &#8212; A Book</title><p id='here'>See {' '.join(links)}."
        (html / f"{name}.html").write_text(text, encoding="utf-8")
    toc = "format: jb-book\nroot: index\nparts:\n- chapters:\n  - file: using\n  - file: numbers\n"
    (tmp_path / "_toc.yml").write_text(toc)
    monkeypatch.setattr(printing, "book_dir", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("online", ["", "https://noether.github.io/book/"])
def test_the_book_is_printed_in_its_order_and_no_link_is_dead(online, small_book):
    pypdf = pytest.importorskip("pypdf")
    if find_browser() is None:
        pytest.skip("neither Chromium nor Chrome is installed")
    first = small_book / "_build" / "html" / "index.html"
    first.write_text(f'<link rel="canonical" href="{online}index.html">' + first.read_text())
    printed = pypdf.PdfReader(printing.print_book(small_book / "book.pdf"))
    assert printed.page_labels == ["i", "1", "2"]
    assert [mark.title for mark in printed.outline] == ["Contents", "Index", "Using"]
    assert f"{online}numbers.html" in printed.pages[0].extract_text()
    for number, expected in enumerate(([1, 2], [1, 1, 2], [2, 1, 2])):
        links = [note.get_object() for note in printed.pages[number]["/Annots"]]
        inside = [link["/Dest"][0].get_object() for link in links if "/Dest" in link]
        assert [printed.get_page_number(page) for page in inside] == expected
        outside = {link["/A"]["/URI"] for link in links if "/Dest" not in link}
        files = ["a.csv", "numbers.html"] if number else ["numbers.html"]
        assert outside == {online + file for file in files if online}


def test_paper_has_what_is_read_and_leaves_out_what_is_looked_up():
    names = [f"{name}.html" for name in parse_toc_yaml(book_dir() / "_toc.yml")]
    left_out = set(filter(printing._ONLY_ON_SCREEN.fullmatch, names))
    assert left_out >= {"reference/scores.html", "chapters/records-12.html", "execution.html"}
    kept = "five-tests|glossary|using|bibliography|reference/formulas|primers/.*|chapters/[01].*"
    assert not [name for name in left_out if re.fullmatch(f"({kept}).html", name)]


@pytest.mark.parametrize("name", ["no/book.pdf", "book.html", "."])
def test_a_book_is_not_printed_into_what_is_no_pdf_file(name, small_book, monkeypatch):
    monkeypatch.chdir(small_book)
    with pytest.raises(ParameterError):
        printing.print_book(name)


def test_a_pdf_needs_a_browser_and_a_built_book_and_says_so(small_book, monkeypatch):
    monkeypatch.setenv("PATH", str(small_book))
    with pytest.raises(PsychometricsError, match="Chromium or Chrome"):
        printing.print_book(small_book / "book.pdf")
    (small_book / "_build" / "html" / "using.html").unlink()
    with pytest.raises(PsychometricsError, match=r"no page using.html: run `psychometrics book`"):
        printing.print_book(small_book / "book.pdf")
