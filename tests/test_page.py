"""The page of an executed notebook: what stands in it, and that no MyST is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pandas as pd
import papermill
import pytest
from bs4 import BeautifulSoup

from psychometrics.exceptions import ParameterError
from psychometrics.paths import data_dir, notebooks_dir
from psychometrics.reports import printing
from psychometrics_book import claims, page, record
from psychometrics_book.prose import references
from psychometrics_book.record import _kernel_arguments
from tests.conftest import asked_paths, loads_from_elsewhere, needs_browser, policy_of, wait_until

PROSE = """(trial)=
# A chapter about {term}`alpha`

:::{admonition} In this chapter
:class: chapter-head
**Question.** Does it come from the model?
:::

What {cite:t}`reuben2024` found: {num}`tab-found[a, share]:.2f`. See {numref}`fig-one`
and [](alpha-note).
A dead one: {num}`tab-found[c, share]`. Prices such as $5 stay.

## Method

$$\\alpha = \\frac{k}{k - 1}$$ (eq-alpha)

````{exercise}
:label: ex-word

What is it?

```{check} ex-word
```
````

```{solution} ex-word
:class: dropdown

It is {num}`tab-found[b, share] :.1f`.
```
"""
CODE = """
print("UserWarning: torn did not answer everything: no weights", file=sys.stderr)
frame = pd.DataFrame({"share": [n / 7, n / 4]}, index=pd.Index(["a", "b"], name="who"))
book.table(frame, "tab-found", "Shares of {term}`alpha`.")
"""
FIGURE = """
fig, ax = plt.subplots()
ax.plot([1, n])
book.figure(fig, frame, "fig-one", "Two **points**.", "A line")
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    code = nbformat.v4.new_code_cell
    cells = [
        code("n = 1  # a number", metadata={"tags": ["parameters"]}),
        code("import sys\nimport matplotlib.pyplot as plt\nimport pandas as pd\n"
             "import psychometrics_book as book",
             metadata={"tags": ["hide-input"]}),
        nbformat.v4.new_markdown_cell(PROSE),
        code(CODE),
        code(FIGURE),
    ]  # fmt: skip
    path = folder / "trial.ipynb"
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    nbformat.write(notebook, path)
    papermill.execute_notebook(
        str(path),
        str(path),
        {"n": 3},
        kernel_name="python3",
        progress_bar=False,
        extra_arguments=_kernel_arguments(folder / "trial"),
    )
    return path


def _words(path) -> str:
    body = path.read_text(encoding="utf-8").partition("<main>")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


@pytest.mark.parametrize(
    ("key", "authors"),
    [
        ("reuben2024", "Reuben et al."),
        ("martinlof1973", "Martin-Löf"),
        ("song2023", "Song et al."),
        ("questionllm", "question_llm project"),
    ],
)
def test_authors_are_cited_by_surname(key, authors):
    assert references()[key][0] == authors


def test_the_prose_has_the_numbers_of_its_own_run(executed):
    text = _words(page.write_page(executed))
    assert "Reuben et al. (2024) found: 0.43." in text, "three sevenths, by the parameter n"
    assert "A dead one: –." in text
    assert "See Figure 1" in text
    assert "torn did not answer everything: no weights" in text
    assert text.index("Table 1. Shares of alpha") < text.index("0.75") < text.index("Figure 1. Two")
    assert "Prices such as $5 stay" in text
    assert not re.search(r"\{[a-z:]+\}`|:class:|:label:|```|\(eq-alpha\)|HELD", text)


def test_tables_and_figures_of_an_executed_notebook_are_found_and_dead_roles_named(executed):
    assert [one["name"] for one in record.shown(executed)] == ["tab-found", "fig-one"]
    said = record._mistakes("trial", executed.parent)
    assert sum("tab-found[c, share]" in line for line in said) == 1


def test_a_page_needs_no_network_and_folds_what_only_sets_up(executed):
    text = page.write_page(executed).read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["']https?://""", text)
    assert "<mfrac>" in text
    assert text.count("<details>") == 1
    report = page.write_page(executed, executed.with_name("r.html"), "report")
    assert report.read_text(encoding="utf-8").count("<details>") == 5  # the injected cell, too


def test_slides_have_sections_tables_and_figures_and_no_code(executed):
    path = page.write_page(executed, executed.with_name("slides.html"), "slides")
    text = path.read_text(encoding="utf-8").partition("<body")[2]
    assert text.count("<section>") >= 4
    assert "import pandas" not in text
    assert text.index('class="notes"') < text.index("found: 0.43.") < text.index('id="Two-points')


def _run_of_the_fifth_chapter(folder, parameters: dict):
    """A copy of chapter 5 with the published tables, as if it had been run with parameters."""
    notebook = nbformat.read(notebooks_dir() / "05-relations.ipynb", as_version=4)
    notebook.metadata["papermill"] = {
        "input_path": "notebooks/05-relations.ipynb",
        "parameters": parameters,
    }
    about = {"name": "tab-correlations", "caption": "All signs are as in people. *p*: a test."}
    shown = nbformat.v4.new_output(
        "display_data", {"text/html": "<table></table>"}, metadata={"record": about}
    )
    next(cell for cell in notebook.cells if "tab-correlations" in cell.source).outputs = [shown]
    path = folder / "05-own.ipynb"
    nbformat.write(notebook, path)
    shutil.copytree(data_dir() / "tables" / "05-relations", folder / "05-own")
    return path


def test_a_run_with_other_parameters_says_of_each_sentence_with_a_rule_whether_it_holds(tmp_path):
    path = _run_of_the_fifth_chapter(tmp_path, {"seed": 2})
    tables = path.with_suffix("")
    found = pd.read_csv(tables / "tab-correlations.csv")
    found.loc[found["scales"] == "PHQ-9 and SOC-13", "ρ"] = 0.5
    found.to_csv(tables / "tab-correlations.csv", index=False)
    found = pd.read_csv(tables / "tab-one-or-three.csv")
    found["high"] = found["high"].where(found["respondents"] != "students, Mexico", 0.5)
    found.to_csv(tables / "tab-one-or-three.csv", index=False)
    (tables / "tab-mtmm.csv").unlink()

    text = _words(page.write_page(path))
    assert text.startswith("This is not the published run. It was run with seed = 2 .")
    assert re.search(r"All signs are as in people, and [^.]*\. \[ does not hold here \]", text)
    assert "In our respondents it separates no two constructs: the ratio is around 1" in text
    assert "ends at 0.85 (here 0.50). [ holds here ]" in text
    assert "reach up to +0.69. [ cannot be judged here ]" in text
    caption = "Table 1. Written for the published run. All signs are as in people. [ does not hold"
    assert caption in text
    assert "–." not in text


def test_no_finding_of_the_published_run_is_outside_a_quotation_on_the_page_of_another(tmp_path):
    path = _run_of_the_fifth_chapter(tmp_path, {"seed": 2})
    html = page.write_page(path).read_text(encoding="utf-8").partition("<main>")[2]
    outside = re.sub(r"(?s)<blockquote>.*?</blockquote>|<p><strong>Table 1.*?</ul>", "", html)
    for claim in ("signs", "correlate", "separate", "agree", "our "):
        told = re.findall(rf"<p>[^<]*\b{claim}[^<]*", outside)
        assert not told, "only headings are left"
    assert "<strong>All signs" not in html


def test_slides_of_another_run_say_so_in_every_headline(tmp_path):
    path = _run_of_the_fifth_chapter(tmp_path, {"seed": 2})
    html = page.write_page(path, tmp_path / "slides.html", "slides").read_text(encoding="utf-8")
    assert "This is not the published run." in html.partition("</section>")[0]
    assert re.search(r"<h2[^>]*>All signs are as in people \(in the published run\)", html)
    assert not re.search(r"<h2[^>]*>All signs are as in people<", html)


def test_the_page_of_the_published_run_is_as_the_book_has_it(tmp_path):
    path = _run_of_the_fifth_chapter(tmp_path, {"seed": 1})
    text = _words(page.write_page(path))
    assert "This is not the published run" not in text
    assert "holds here" not in text
    assert claims.own_parameters(path) == {}


def _of_another(host: str) -> nbformat.NotebookNode:
    """A notebook that tries to load from a host in each way that a notebook has."""
    code, markdown = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    output, widget = nbformat.v4.new_output, "application/vnd.jupyter.widget-view+json"
    html = (
        f"<img src='{host}/img'><script src='{host}/s'></script><iframe src='{host}/i'></iframe>"
        f"<link rel=stylesheet href='{host}/link'><style>@import '{host}/style';</style>"
        f"<p style='background: url({host}/p)' onclick='x()'>a</p><object data='{host}'></object>"
        f"<svg><image href='{host}/g'/></svg><video poster='{host}/v'></video><base href='{host}'>"
    )
    shown = [
        {"text/html": html},
        {"text/markdown": f"![i]({host}/markdown) <img src={host}/m>"},
        {widget: {"model_id": "a", "version_major": 2, "version_minor": 0}, "text/plain": "Slider"},
        {"application/javascript": f"fetch('{host}/js')"},
        {"text/vnd.mermaid": "graph TD"},
        {"image/svg+xml": f"<svg><image href='{host}/in-svg'/></svg>"},
        {"image/png": "aaaa"},
    ]
    shown = [output("display_data", data) for data in shown]
    shown[-1]["metadata"]["filenames"] = {"image/png": f"{host}/file"}
    cells = [
        markdown(f"# A ![title]({host}/t)\n\n$\\text{{<img/src={host}/f>}}$ HELDFORMULA7X"),
        markdown(f"$$\\href{{{host}}}{{x}}$$ <img src=/{host}> <svg/onload=x()> [](<{host}/x>)"),
        nbformat.v4.new_raw_cell(html, metadata={"raw_mimetype": "text/html"}),
        code("1", outputs=shown),
        code("1", outputs=[output("stream", name="stderr", text="UserWarning: ![n](" + host + "/n)"
             " did not answer everything: <img src=" + host + "/e>")]),
    ]  # fmt: skip
    state = {"state": {"a": {"model_name": "M", "model_module": host}}}
    metadata = {"widgets": {"application/vnd.jupyter.widget-state+json": state}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


@pytest.mark.parametrize("kind", ["page", "report", "slides"])
def test_a_page_of_anothers_notebook_loads_nothing_and_runs_nothing_of_it(kind, tmp_path):
    nbformat.write(_of_another("http://elsewhere.test"), tmp_path / "other.ipynb")

    text = page.write_page(tmp_path / "other.ipynb", kind=kind).read_text(encoding="utf-8")

    soup = BeautifulSoup(text, "html.parser")
    assert loads_from_elsewhere(soup) == []
    assert not soup.find_all(["iframe", "object", "base", "link", "svg", "video"])
    assert [name for one in soup.find_all(True) for name in one.attrs if name[:2] == "on"] == []
    scripts = [one.string for one in soup.find_all("script")]
    assert scripts == ([page._TURN_SLIDES] if kind == "slides" else [])
    assert policy_of(soup)["default-src"] == ["'none'"]
    assert ("script-src" in policy_of(soup)) == (kind == "slides")
    assert "model_module" not in text
    assert "Slider" in text, "the text of a widget is shown"
    assert "HELDFORMULA7X" in text


@pytest.mark.parametrize("address", [
    "javascript:1", "javascript:alert(1)", "JaVaScRiPt:1", "java&#9;script:1", "&#x6a;avascript:1",
    " &#1;javascript:1", "javascript&colon;alert(1)", "vbscript:1", "data:text/html,x",
    " DATA:text/html,x", "file:///etc/passwd", "https://kept.test/a?b=1", "mailto:a@kept.test",
    "#kept", "kept.html",
])  # fmt: skip
def test_a_link_of_anothers_notebook_is_kept_if_it_leads_to_a_page(address, tmp_path):
    shown = [
        nbformat.v4.new_output("display_data", {"text/markdown": f"[a](<{address}>)"}),
        nbformat.v4.new_output("display_data", {"text/html": f"<a href='{address}'>a</a>"}),
    ]
    code = nbformat.v4.new_code_cell("1", outputs=shown)
    cells = [nbformat.v4.new_markdown_cell(f"# T\n\n[a](<{address}>)"), code]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "other.ipynb")

    html = page.write_page(tmp_path / "other.ipynb").read_text(encoding="utf-8")

    links = [one.get("href") for one in BeautifulSoup(html, "html.parser").main.find_all("a")]
    kept = [link for link in links if link not in (None, "#T")]
    if "kept" in address:
        assert kept == [address] * 3
    else:  # an address without a scheme is a file's name
        assert [link for link in kept if urlsplit(link).scheme] == []


@pytest.mark.parametrize("html", [
    "<scr<script>ipt>alert(1)</scr</script>ipt>", "<script>alert(1)", "<style>@import 'x'",
    "<noscript><p title='</noscript><img src=x onerror=1>'>", "<svg><a onclick=x()>a</a></svg>",
    "<title><a href='</title><img src=x onerror=1>'>", "<template><img src=x onerror=1></template>",
    "<math><mtext><table><mglyph><style><img src=x onerror=1>", "<xmp><img src=x onerror=1></xmp>",
    "<textarea></textarea><img src=x onerror=1>", "<iframe srcdoc='<script>1</script>'></iframe>",
    "<!--[if IE]><script>1</script><![endif]-->", "<?php <script>1</script> ?>",
    "<meta http-equiv=refresh content='0;url=javascript:1'>", "<img src='/\t/elsewhere.test/x'>",
    "<img src='h\nttp://elsewhere.test'>", "<img srcset='http://elsewhere.test 1x' src=a.png>",
    "<form action='x'><button formaction='javascript:1'>b</button></form>", "<plaintext><script>",
])  # fmt: skip
def test_nothing_of_anothers_html_runs_or_loads(html, tmp_path):
    output = nbformat.v4.new_output("display_data", {"text/html": html + "<p>kept</p>"})
    cells = [nbformat.v4.new_code_cell("1", outputs=[output])]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "other.ipynb")

    text = page.write_page(tmp_path / "other.ipynb").read_text(encoding="utf-8")

    main = BeautifulSoup(text, "html.parser").main
    assert {one.name for one in main.find_all(True)} - set(page._TAGS) <= {"main", "template"}
    attributes = {name for one in main.find_all(True) for name in one.attrs}
    assert not {name for name in attributes if name.startswith("on")}
    assert not attributes & {"srcset", "srcdoc", "formaction", "content", "style", "action"}
    assert all(one["src"] in ("x", "a.png") for one in main.find_all("img", src=True))


@pytest.mark.parametrize("executed", [5, None, b"x.ipynb", ["x.ipynb"]])
def test_a_page_is_made_of_a_name_alone(executed):
    with pytest.raises(ParameterError, match="executed"):
        page.write_page(executed)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["[", "[]", "![a]("])
def test_a_cell_of_brackets_keeps_nobody_waiting(tmp_path, text):
    cells = [nbformat.v4.new_markdown_cell(text * 10_000)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "other.ipynb")

    began = time.process_time()  # of this process alone: others may keep the processor busy
    html = page.write_page(tmp_path / "other.ipynb").read_text(encoding="utf-8")

    assert time.process_time() - began < 15
    assert html.count("[") >= 10_000


@needs_browser
@pytest.mark.parametrize("kind", ["page", "slides"])
def test_a_browser_asks_no_host_for_a_page_of_anothers_notebook(kind, tmp_path, browser):
    with asked_paths() as (host, asked):
        nbformat.write(_of_another(host), tmp_path / "other.ipynb")
        path = page.write_page(tmp_path / "other.ipynb", kind=kind)
        tab = browser.new_page()
        tab.goto(path.as_uri(), wait_until="networkidle")
        tab.close()
    assert asked == []


@needs_browser
def test_the_keys_turn_slides_and_open_their_notes(executed, browser):
    path = page.write_page(executed, executed.with_name("turned.html"), "slides")
    tab = browser.new_page()
    tab.goto(path.as_uri())
    tab.keyboard.press("ArrowRight")
    wait_until(tab, "scrollY > 0")
    assert not tab.locator(".notes").first.is_visible()
    tab.keyboard.press("s")
    assert tab.locator(".notes").first.is_visible()
    tab.close()


@pytest.mark.parametrize("name", [
    "![i](http://elsewhere.test/b)", "<img src=http://elsewhere.test/c>", "O'Neill & Söhne",
    "a_b_c *d* `e` ~~f~~", "[x](http://elsewhere.test)", "$a$ and $b$",
    "{num}`tab-found[a, share]`", "# one", "FORMULA", "a\\b", "<b>", "&lt;",
])  # fmt: skip
@pytest.mark.parametrize("kind", ["report", "slides"])
def test_a_name_is_shown_as_it_is_whatever_markup_it_holds(name, kind, tmp_path):
    (tmp_path / "own").mkdir()
    table = pd.DataFrame({"name": [name]}, index=pd.Index(["a"], name="who"))
    table.to_csv(tmp_path / "own" / "tab-found.csv")
    text = "# Profile of {num}`tab-found[a, name]`\n\nOf {num}`tab-found[a, name]` itself."
    cells = [nbformat.v4.new_markdown_cell(text)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "own.ipynb")

    path = page.write_page(tmp_path / "own.ipynb", kind=kind)

    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    assert soup.title.text == f"Profile of {name}"
    assert soup.h1.text.removesuffix("¶") == f"Profile of {name}"
    assert f"Of {name} itself." in soup.text or kind == "slides"
    assert not soup.main.find(["img", "code", "em", "del", "b"])


@pytest.mark.parametrize("name", [
    "p.txt", "no/p.html", ".", "fifo.html", "folder.html", "a\0b.html", "\ud800.html",
    "x" * 300 + ".html", "",
], ids=ascii)  # fmt: skip
def test_a_page_that_cannot_be_written_is_refused(name, executed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo.html")
    Path("folder.html").mkdir()
    with pytest.raises(ParameterError):
        printing.check_page(name)
    if name:  # by default beside the notebook
        with pytest.raises(ParameterError):
            page.write_page(executed, name)


@pytest.mark.parametrize(
    "name", ["not-run.ipynb", "fifo", "folder", "a\0b", "\ud800", "x" * 300], ids=ascii
)
def test_what_was_not_executed_has_no_page(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    Path("folder").mkdir()
    with pytest.raises(ParameterError):
        page.write_page(name)


def _cells(*sources: str, **more: object) -> str:
    cells = [nbformat.v4.new_markdown_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.cells[0].update(more)
    return json.dumps(notebook)


@pytest.mark.parametrize("text", [
    "", "null", "[1]", "[" * 100_000, '{"cells": NaN}', '{"nbformat": "4", "cells": []}',
    _cells("a", source=5), _cells("a", id="'><script>"), _cells("a", metadata=[]),
    _cells("![a](attachment:x.png)"), _cells("a", attachments=5),
], ids=lambda text: text[:12])  # fmt: skip
def test_what_is_no_notebook_is_said_in_one_line(text, tmp_path):
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError) as error:
        page.write_page(tmp_path / "a.ipynb")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [
    "half a character \ud800", "<style " * 20_000, "<script>" * 20_000, "$" + "{" * 5000 + "$",
    "```{note}\n" * 3000, "> " * 3000 + "x", "{num}`tab-x[a, b]:%s{}` {num}`../../x[a]`",
], ids=lambda text: ascii(text[:12]))  # fmt: skip
@pytest.mark.timeout(20)
def test_odd_prose_of_a_notebook_still_has_a_page(text, tmp_path):
    (tmp_path / "a.ipynb").write_text(_cells("# Title", text), encoding="utf-8")
    assert "Title" in _words(page.write_page(tmp_path / "a.ipynb"))


def test_a_picture_that_is_attached_to_a_cell_is_in_the_page(tmp_path):
    picture = {"x.png": {"image/png": "aaaa"}}
    text = _cells("![a](attachment:x.png)", attachments=picture)
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    path = page.write_page(tmp_path / "a.ipynb")
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    assert soup.img["src"] == "data:image/png;base64,aaaa"


def test_a_pdf_without_a_browser_is_refused_with_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ParameterError, match=r"^p\.pdf: .* neither is on the PATH; install one"):
        printing.check_page("p.pdf")
