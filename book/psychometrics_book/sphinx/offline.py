"""Keep pages small and to themselves.

Formulas are MathML, there are no scripts or icons without use, the search has no code, and each
page forbids the browser to load anything from another host.
"""

import re
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number

ICON = re.compile(
    r'"?([\w-]+)"?:\[\d+,\d+,(\[[^\]]*\]),"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)  # name: [width, height, aliases, code point, path or paths]

HERE = "'self' file:"  # a book is also read from its files, which not every browser takes for self
POLICY = "; ".join(
    [
        f"default-src {HERE}",
        f"script-src {HERE} 'unsafe-inline' 'wasm-unsafe-eval' blob:",  # of the theme; of the model
        f"style-src {HERE} 'unsafe-inline'",
        f"img-src {HERE} data:",
        f"font-src {HERE} data:",
        f"connect-src {HERE} blob:",
        f"worker-src {HERE} blob:",
        f"form-action {HERE}",
        f"base-uri {HERE}",
        "object-src 'none'",
    ]
)
"""What a page may load: its own files, and what its scripts make of them."""


def setup(app):
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))
    app.connect("builder-inited", _search_prose)
    app.connect("html-page-context", _forbid_other_hosts)
    app.connect("html-page-context", _without_unused_scripts, priority=900)
    app.connect("build-finished", _without_unused_icons)
    app.connect("build-finished", _search_on_its_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline_formula(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _formula(self, node):
    """A formula on lines of its own, with its number."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(convert(node.astext().strip(), display="block") + "</div>")
    raise nodes.SkipNode


def _search_prose(app):
    """Index pages without their code, where a word such as alpha is a plot's transparency."""
    index_page = getattr(app.builder, "index_page", None)
    if index_page is None:
        return

    def index_prose(pagename, doctree, title):
        prose = doctree.deepcopy()
        for code in list(prose.findall(nodes.literal_block)):
            code.parent.remove(code)
        index_page(pagename, prose, title)

    app.builder.index_page = index_prose


def _forbid_other_hosts(app, pagename, templatename, context, doctree):
    """Put the policy before all else that a page's head names."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    context["metatags"] = f"{policy}\n{context.get('metatags', '')}"


def _without_unused_scripts(app, pagename, templatename, context, doctree):
    """Drop thebe's loader, which names a content network."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in f"{script.filename} {script.attributes}".lower()
    ]


def _without_unused_icons(app, exception):
    """Keep the icons that some page or script names; the others weigh 1.4 MB a page."""
    scripts = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    if exception or not scripts.is_file():
        return

    files = [path for end in ("html", "js") for path in Path(app.outdir).rglob(f"*.{end}")]
    named = set()
    for path in files:
        if path != scripts:
            named |= set(re.findall(r"\bfa-([a-z0-9-]+)", path.read_text("utf-8", "replace")))

    def kept(icon):
        names = {icon[1], *re.findall(r'"([\w-]+)"', icon[2])}
        return icon[0] if names & named else ""

    text = scripts.read_text(encoding="utf-8")
    scripts.write_text(ICON.sub(kept, text), encoding="utf-8")


def _search_on_its_page(app, exception):
    """Drop the index of words from pages other than the search, which alone reads it."""
    names = "searchtools|language_data|searchindex"
    scripts = re.compile(rf'<script src="[^"]*({names})\.js"></script>')
    for path in [] if exception else Path(app.outdir).rglob("*.html"):
        if path.name != "search.html":
            path.write_text(scripts.sub("", path.read_text("utf-8")), "utf-8")
