"""The built pages as a reader meets them: in a browser, by keyboard, on a phone, dark, on paper.

Pages come from ``make book``; the browser is Chromium or Chrome, wherever it is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from psychometrics import book
from psychometrics.exceptions import PsychometricsError
from psychometrics.paths import book_dir

HTML = book_dir() / "_build" / "html"
PAGES = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if path.relative_to(HTML).parts[0] != "_static"
) or ["index.html"]
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]
LONG = "chapters/04-validity.html"
SMALLEST = 9.0  # points of a label, at the width of a page
WITH_CODE = "chapters/03-assessment.html"
HEAVIEST = 1.5  # MB of a page with its pictures, without what all pages share
built = pytest.mark.skipif(not (HTML / "index.html").is_file(), reason="not built: make book")


@pytest.fixture(scope="module")
def browser():
    """A Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, book.BROWSERS)), None)
    if path is None:
        pytest.skip("neither Chromium nor Chrome is installed")
    options = ["--no-sandbox", "--disable-quic", "--disable-gpu"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Function that opens a page of the book in a theme, at a width."""
    contexts = []

    def open_page(page: str, theme: str = "light", width: int = 1300):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
        )
        script = f"for (const k of ['mode', 'theme']) localStorage.setItem(k, '{theme}')"
        context.add_init_script(script)
        contexts.append(context)
        address = page if "://" in page else (HTML / page).as_uri()
        context.set_default_timeout(120_000)
        opened = context.new_page()
        opened.goto(address)
        opened.wait_for_timeout(200)
        return opened

    yield open_page
    for context in contexts:
        context.close()


@cache
def _axe() -> str:
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


# Contrast is a matter of colours and letters: three texts of each look show what thousands
# alike would show, in a tenth of the time.
LOOKS = """code => {
    const seen = new Map(), grounds = new Map([[document.documentElement.parentNode, '']]);
    for (const e of document.querySelectorAll('*')) {
        const own = getComputedStyle(e);
        const ground = own.backgroundColor === 'rgba(0, 0, 0, 0)' && own.backgroundImage === 'none'
            && own.opacity === '1' ? '' : [own.backgroundColor, own.backgroundImage, own.opacity];
        grounds.set(e, grounds.get(e.parentNode) + '|' + ground);
        e.removeAttribute('data-look');
        const says = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
            || e.matches('input, select, textarea');
        const look = [own.color, own.fontSize, own.fontWeight, own.textShadow,
                      grounds.get(e).replace(/\\|+/g, '|')].join();
        const often = seen.get(look) ?? 0;
        if (!says || often === 3 || !e.checkVisibility()) continue;
        if (!code && e.closest('div.highlight')) continue;
        seen.set(look, often + 1);
        e.dataset.look = '';
    }
}"""


def _findings(page, code: bool, rules: tuple[str, ...] = ()) -> list[str]:
    """Serious findings; the letters of code, which look alike everywhere, are left to one page."""
    include = "html"
    if rules == ("color-contrast",):
        page.evaluate(LOOKS, code)
        include = "[data-look]"
    about = {"include": [[include]]} | ({} if code else {"exclude": [["div.highlight"]]})
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": False}}}
    if rules:
        options |= {"runOnly": {"type": "rule", "values": list(rules)}, "rules": {}}
    run = "([about, o]) => axe.run(about, o).then(r => r.violations)"
    found = page.evaluate(run, [about, options])
    return [
        f"{v['impact']}: {v['id']} ({len(v['nodes'])}), such as {v['nodes'][0]['html'][:150]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


# --- in a browser ----------------------------------------------------------------------------


@built
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_serious_finding_of_accessibility_light_dark_or_on_a_phone(page, visit):
    pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    code, opened = page == WITH_CODE, visit(page)
    opened.evaluate(_axe())
    assert _findings(opened, code) == []
    assert _findings(opened, code, ("color-contrast",)) == []
    opened.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert _findings(opened, code, ("color-contrast",)) == []
    opened.evaluate("document.documentElement.dataset.theme = 'light'")
    opened.set_viewport_size({"width": 400, "height": 900})
    opened.wait_for_timeout(200)
    assert _findings(opened, code, ("scrollable-region-focusable", "target-size")) == []
    opened.add_style_tag(content="* { letter-spacing: 0.06em !important }")  # a reader's wider font
    opened.wait_for_timeout(200)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 402, "the page itself scrolls"


@built
def test_what_is_wider_than_a_phone_scrolls_by_keyboard_and_says_so(visit):
    page = visit(LONG, width=400)
    page.wait_for_timeout(1500)
    wide = page.evaluate(
        """() => [...document.querySelectorAll('.bd-article *')].filter(e =>
        e.scrollWidth > e.clientWidth + 2 && /auto|scroll/.test(getComputedStyle(e).overflowX)
        && e.clientWidth > 0 && e.checkVisibility()).map(e => ({
            what: e.className, tab: e.tabIndex, label: e.getAttribute('aria-label'),
            note: e.nextElementSibling?.classList.contains('scroll-note')}))"""
    )
    wide = [one for one in wide if "MathJax" not in one["what"]]  # within a line
    assert wide, "a chapter has code or a table that is wider than a phone"
    assert [one for one in wide if one["tab"] != 0 or not one["label"] or not one["note"]] == []


@built
def test_the_keyboard_reaches_the_content_the_search_and_the_theme_and_its_place_is_seen(visit):
    page = visit("using.html")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => { const e = document.activeElement, s = getComputedStyle(e);
            return {name: (e.getAttribute('aria-label') || e.innerText || '').trim(),
                    where: e.className,
                    seen: s.outlineStyle !== 'none' || s.boxShadow !== 'none'}; }"""
            )
        )
    assert "Skip to main content" in reached[0]["name"]
    classes = " ".join(one["where"] for one in reached)
    assert "search-button" in classes
    assert "theme-switch" in classes
    assert [one for one in reached if not one["seen"]] == []


@built
def test_folded_code_and_solutions_open_by_keyboard(visit):
    opened = {"folds": 0, "solutions": 0}
    for chapter in CHAPTERS:
        page = visit(chapter)
        fold = page.locator("details.hide > summary").first
        if fold.count():
            fold.focus()
            page.keyboard.press("Enter")
            assert page.evaluate("document.querySelector('details.hide').open"), chapter
            opened["folds"] += 1
        button = page.locator("button.toggle-button").first
        if button.count():
            button.focus()
            page.keyboard.press("Enter")
            assert button.get_attribute("aria-expanded") == "true", chapter
            opened["solutions"] += 1
    assert all(opened.values()), opened


@built
def test_dark_figures_stand_on_the_dark_page(visit):
    import io

    from PIL import Image

    page = visit(LONG, "dark")
    figure = page.locator("figure img.drawn").first
    figure.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    corner = picture.getpixel((1, 1))
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    there = [int(part) for part in re.findall(r"\d+", background)[:3]]
    assert max(abs(a - b) for a, b in zip(corner, there, strict=True)) <= 6
    assert max(picture.convert("L").getextrema()) > 150, "its lines and letters are light"


@built
def test_dark_tables_are_dark(visit):
    page = visit(LONG, "dark")
    light = page.evaluate(
        """() => [...document.querySelectorAll('.cell_output .output.text_html, .cell_output td')]
        .filter(e => { const c = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
                       return (c[3] ?? 1) > 0.5 && (c[0] + c[1] + c[2]) / 3 > 160; }).length"""
    )
    assert light == 0


@built
@pytest.mark.parametrize("page", CHAPTERS)
def test_on_paper_no_table_and_no_code_is_cut_and_what_is_folded_stays_away(page, visit):
    opened = visit(page, width=660)
    opened.emulate_media(media="print")
    opened.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    cut = opened.evaluate(
        """() => [...document.querySelectorAll('.table-region table, .bd-article pre')]
        .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 662)
        .map(e => e.innerText.slice(0, 60))"""
    )
    assert cut == []
    folded = "[...document.querySelectorAll('details.hide:not([open])')]"
    assert opened.evaluate(f"{folded}.filter(e => e.checkVisibility()).length") == 0


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


class _Page(HTMLParser):
    """Anchors, links, pictures, tables and descriptions of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.pictures: list[dict] = []
        self.bare_tables = 0
        self.unscoped = 0
        self.description = ""
        self.titles: list[str] = []
        self._open: list[str] = []
        self._figures: list[bool] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        about = {name: value or "" for name, value in attributes}
        if "id" in about:
            self.ids.add(about["id"])
        if tag == "a" and "href" in about:
            self.links.append(about["href"])
        if tag == "img":
            self.pictures.append(about)
            self.links.append(about.get("src", ""))
        if tag == "figure":
            self._figures.append("cell-table" in about.get("class", ""))
        if tag == "table" and "dataframe" in about.get("class", "") and not any(self._figures):
            self.bare_tables += 1
        if tag == "th" and "scope" not in about and any(self._figures):
            self.unscoped += 1
        if tag == "meta" and about.get("name") == "description":
            self.description = about.get("content", "")

    def handle_endtag(self, tag):
        if tag == "figure" and self._figures:
            self._figures.pop()


@cache
def _read(path: Path) -> _Page:
    return _Page(path)


@built
@pytest.mark.parametrize("page", PAGES)
def test_every_link_inside_the_book_leads_somewhere(page):
    own = HTML / page
    lost = []
    for link in _read(own).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link.startswith("data:"):
            continue
        target = (own.parent / unquote(parts.path)).resolve() if parts.path else own
        if not target.exists():
            lost.append(link)
        elif parts.fragment and target.suffix == ".html":
            lost += [link] if unquote(parts.fragment) not in _read(target).ids else []
    assert lost == []


@built
@pytest.mark.parametrize("page", PAGES)
def test_every_picture_says_what_is_to_be_seen(page):
    for picture in _read(HTML / page).pictures:
        alt = picture.get("alt")
        assert alt is not None, picture
        assert not re.search(r"\.(png|svg|jpe?g)$|_images/|^Figure without", alt), picture


@built
@pytest.mark.parametrize("page", CHAPTERS)
def test_every_table_of_a_chapter_has_number_caption_and_headers_with_their_scope(page):
    read = _read(HTML / page)
    assert read.bare_tables == 0, "tables without a caption: give their cells the metadata table"
    assert read.unscoped == 0


@built
def test_every_figure_and_captioned_table_of_a_chapter_offers_its_data():
    for page in CHAPTERS:
        text = (HTML / page).read_text(encoding="utf-8")
        for block in re.findall(r"<figure.*?</figure>", text, re.S):
            name = re.search(r'id="([\w-]+)"', block)
            assert ".csv" in block, (page, name and name.group(1))


@built
def test_descriptions_are_there_short_and_of_one_page_only():
    found = {page: _read(HTML / page).description for page in PAGES}
    assert [page for page, text in found.items() if not 20 <= len(text) <= 165] == []
    assert len(set(found.values())) == len(found)


@built
@pytest.mark.parametrize("page", CHAPTERS)
def test_a_page_weighs_little(page):
    own = HTML / page
    sources = {picture.get("src", "") for picture in _read(own).pictures}
    files = {(own.parent / source).resolve() for source in sources if "_images" in source}
    weight = own.stat().st_size + sum(file.stat().st_size for file in files)
    assert weight < HEAVIEST * 1e6, f"{weight / 1e6:.2f} MB"


@pytest.mark.parametrize("chapter", book._notebook_names())
def test_labels_of_figures_have_nine_points_on_the_page(chapter):
    path = book_dir() / "chapters" / f"{chapter}.ipynb"
    if not path.is_file():
        pytest.skip("not executed: make book")
    small = []
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", f"cell {number}")
        for output in cell.get("outputs", []):
            size = output.get("metadata", {}).get("psychometrics", {}).get("smallest_label", 99)
            small += [f"{name}: {size:.1f}"] if size < SMALLEST else []
    assert small == []


# --- the whole book as a PDF -----------------------------------------------------------------


@pytest.fixture
def small_book(tmp_path, monkeypatch):
    """Two pages that name each other."""
    html = tmp_path / "_build" / "html"
    html.mkdir(parents=True)
    for name, other in (("index", "using"), ("using", "index")):
        text = f"<title>{name.title()} &#8212; A Book</title><p>See <a href='{other}.html'>it</a>."
        (html / f"{name}.html").write_text(text, encoding="utf-8")
    toc = "root: index\nparts:\n- chapters:\n  - file: using\n"
    (tmp_path / "_toc.yml").write_text(toc)
    monkeypatch.setattr(book, "book_dir", lambda: tmp_path)
    return tmp_path


def test_the_book_is_printed_in_its_order_with_bookmarks_and_links_inside(small_book):
    pypdf = pytest.importorskip("pypdf")
    if not any(map(shutil.which, book.BROWSERS)):
        pytest.skip("neither Chromium nor Chrome is installed")
    printed = pypdf.PdfReader(book.print_book(small_book / "book.pdf", progress=False))
    assert len(printed.pages) == 2
    assert [mark.title for mark in printed.outline] == ["Index", "Using"]
    links = [note.get_object() for page in printed.pages for note in page["/Annots"]]
    aims = [printed.get_page_number(link["/Dest"][0].get_object()) for link in links]
    assert aims == [1, 0]


def test_a_pdf_needs_a_browser_and_a_built_book_and_says_so_in_one_sentence(
    small_book, monkeypatch
):
    monkeypatch.setenv("PATH", str(small_book))
    with pytest.raises(PsychometricsError, match=r"^Chromium or Chrome prints the book, and .*\.$"):
        book.print_book(small_book / "book.pdf", progress=False)
    (small_book / "_build" / "html" / "using.html").unlink()
    with pytest.raises(PsychometricsError, match=r"no page using.html: run `psychometrics book`"):
        book.print_book(small_book / "book.pdf", progress=False)
