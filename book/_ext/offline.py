"""Keep pages small, without scripts and icons that they do not use, and code out of the search."""

import re
from pathlib import Path

from docutils import nodes

ICON = re.compile(
    r'"?([\w-]+)"?:\[\d+,\d+,(\[[^\]]*\]),"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)  # name: [width, height, aliases, code point, path or paths]


def setup(app):
    app.connect("builder-inited", _search_prose)
    app.connect("html-page-context", _without_unused_scripts, priority=900)
    app.connect("build-finished", _without_unused_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


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


def _without_unused_scripts(app, pagename, templatename, context, doctree):
    """Drop thebe's loader, which names a content network, and MathJax from pages without math."""
    unused = ["thebe"]
    if not re.search(r'class="[^"]*\bmath\b|\\\(|\\\[', context.get("body", "")):
        unused.append("mathjax")
    scripts = context.get("script_files", [])
    context["script_files"] = [
        script
        for script in scripts
        if not any(
            name
            in f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', '')}".lower()
            for name in unused
        )
    ]


def _without_unused_icons(app, exception):
    """Keep the icons that some page or script names; the others weigh 1.4 MB a page."""
    scripts = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    if exception or not scripts.is_file():
        return
    files = [path for end in ("html", "js") for path in Path(app.outdir).rglob(f"*.{end}")]
    named = set()
    for path in files:
        if path != scripts and "mathjax" not in path.parts:
            named |= set(re.findall(r"\bfa-([a-z0-9-]+)", path.read_text("utf-8", "replace")))

    def kept(icon):
        names = {icon[1], *re.findall(r'"([\w-]+)"', icon[2])}
        return icon[0] if names & named else ""

    text = scripts.read_text(encoding="utf-8")
    scripts.write_text(ICON.sub(kept, text), encoding="utf-8")
