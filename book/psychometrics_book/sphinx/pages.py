"""Footers, licences, citation labels, and links that open a chapter elsewhere."""

import json
import os
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle

from ..prose import references
from ..templating import fill_template

BRANCH = "gh-pages"  # where the publishing workflow puts the built book
STABLE = "stable"
VERSIONS = {STABLE: "", "development": "dev/"}
"""Where the workflow puts each version, below the book's address."""


class AuthorYearLabels(BaseLabelStyle):
    """Label the entries of the list as the text cites them."""

    def format_labels(self, sorted_entries):
        labels = [", ".join(references()[entry.key]) for entry in sorted_entries]
        counts = Counter(labels)
        seen = Counter()
        for label in labels:
            seen[label] += 1
            yield label + (chr(96 + seen[label]) if counts[label] > 1 else "")


class AuthorYearStyle(PlainStyle):
    """Plain entries under labels of authors and year."""

    default_label_style = AuthorYearLabels


register_plugin("pybtex.style.formatting", "author_year", AuthorYearStyle)


def setup(app):
    app.add_config_value("book_repository", os.environ.get("GITHUB_REPOSITORY", ""), "html", [str])
    app.add_config_value("book_version", os.environ.get("BOOK_VERSION", STABLE), "html", [str])
    app.connect("builder-inited", _on_all_cores)
    app.connect("config-inited", _say)
    app.connect("html-page-context", _mend)
    app.connect("html-page-context", _launch, priority=901)
    app.connect("html-page-context", _switch_version, priority=902)
    app.connect("build-finished", _notebooks)
    app.connect("build-finished", _sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}


def _on_all_cores(app):
    """Read and write pages on up to four cores, where Jupyter Book would use one.

    Two of its extensions do not declare that they allow this: one is for LaTeX, the other numbers
    the chapters when all pages have been read.
    """
    app.parallel = min(4, os.cpu_count() or 1)
    for name in {"sphinx_jupyterbook_latex", "sphinx_multitoc_numbering"} & set(app.extensions):
        app.extensions[name].parallel_read_safe = True


def _say(app, config):
    """Set the licences and the version in each page's footer, and the book's address."""
    config.html_theme_options["extra_footer"] = (
        f"<p>Version {version('psychometrics-of-language-models')}, {config.book_version}. "
        'Text and figures under <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0'
        "</a>, code under MIT.</p>"
    )
    if config.book_repository:
        owner, name = config.book_repository.split("/")
        config.ogp_site_url = f"https://{owner}.github.io/{name}/"
        config.html_baseurl = config.ogp_site_url  # each page names its canonical address


def _mend(app, pagename, templatename, context, doctree):
    """Drop the list's role: to a screen reader the references' entries are not list items."""
    old = '<div role="list" class="citation-list">'
    new = '<div class="citation-list">'
    context["body"] = context.get("body", "").replace(old, new)


def _launch(app, pagename, templatename, context, doctree):
    """Add buttons that open a chapter on Binder and on Colab, if the repository is known."""
    repository = app.config.book_repository
    is_page = pagename in app.env.found_docs
    if not repository or not is_page or not app.env.doc2path(pagename).endswith(".ipynb"):
        return

    name = f"{Path(pagename).name}.ipynb"
    places = {
        "Binder": f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/notebooks/{name}",
        "Colab": f"https://colab.research.google.com/github/{repository}/blob/{BRANCH}/notebooks/{name}",
    }
    icons = {"Binder": "logo_binder.svg", "Colab": "logo_colab.png"}
    buttons = [
        {"text": place, "tooltip": f"Open on {place}", "url": url,
         "icon": f"_static/images/{icons[place]}"}
        for place, url in places.items()
    ]  # fmt: skip
    _add_buttons(context, "launch-buttons", "fas fa-rocket", "Run this chapter elsewhere", buttons)


def _add_buttons(context, label, icon, tooltip, buttons):
    """Add a group of buttons, each of which is a link, to the head of a page."""
    links = [{"type": "link"} | button for button in buttons]
    group = {"type": "group", "tooltip": tooltip, "icon": icon, "label": label, "buttons": links}
    context["header_buttons"].append(group)


def _switch_version(app, pagename, templatename, context, doctree):
    """Lead to this page in the other version and to the printed book, if the address is known."""
    base = app.config.html_baseurl
    if not base:
        return

    page = f"{pagename}.html" if pagename in app.env.found_docs else ""
    buttons = []
    for name, folder in VERSIONS.items():
        title = f"{name} (shown here)" if name == app.config.book_version else name
        tip = f"This page in the {name} version"
        buttons.append({"text": title, "tooltip": tip, "url": base + folder + page})

    printed = base + VERSIONS[app.config.book_version] + "book.pdf"
    tip = "This version as one file to print"
    buttons.append({"text": "PDF", "tooltip": tip, "url": printed})
    _add_buttons(context, "version-buttons", "fas fa-code-branch", "Versions of the book", buttons)


def _notebooks(app, exception):
    """Write the chapters without outputs, with a first cell that installs the package on Colab."""
    repository = app.config.book_repository
    sources = Path(app.srcdir).parent / "notebooks"
    if exception or not repository or app.builder.name != "html":
        return

    folder = Path(app.outdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in sorted(sources.glob("*.ipynb")):
        if f"chapters/{path.stem}" in app.env.found_docs:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            notebook["cells"].insert(0, install_cell(repository))
            text = json.dumps(notebook, ensure_ascii=False, indent=1)
            (folder / path.name).write_text(text, encoding="utf-8")


def _sitemap(app, exception):
    """List the addresses of all pages for search engines, if the book's address is known."""
    base = app.config.html_baseurl
    if exception or not base or app.builder.name != "html":
        return

    text = fill_template("sitemap.xml.j2", base=base, names=sorted(app.env.found_docs))
    (Path(app.outdir) / "sitemap.xml").write_text(text, encoding="utf-8")


def install_cell(repository):
    """Return a cell that installs the package unless it is installed already."""
    lines = [
        "# Installs the book's package if it is missing, as on Colab (takes some minutes).",
        "import importlib.util",
        "",
        'if importlib.util.find_spec("psychometrics") is None:',
        "    %pip install --quiet "
        f"'psychometrics-of-language-models[book] @ git+https://github.com/{repository}'",
        "    !psychometrics fetch-model",
    ]

    return {"cell_type": "code", "id": "install", "metadata": {}, "execution_count": None,
            "outputs": [], "source": "\n".join(lines)}  # fmt: skip
