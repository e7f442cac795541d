"""Write the downloads of the page *Teaching* beside the pages."""

from __future__ import annotations

from pathlib import Path

from psychometrics_book.course.downloads import write_downloads


def setup(app):
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}


def _write(app, exception):
    if exception or app.builder.name != "html" or "teaching" not in app.env.found_docs:
        return

    write_downloads(Path(app.srcdir) / "chapters", Path(app.outdir) / "_static" / "course")
