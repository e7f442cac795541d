"""The directive ``check``: a reader's answer to an exercise, compared in the page.

Inside an exercise, ```` ```{check} ex-label ```` gives a field and a button. The answer is what the
executed notebook recorded by ``pm.book.answer``, or what ``data/exercises.csv`` has. Where scripts
are off, and in print, the command that checks it stands there instead.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from psychometrics.pages.exercises import known, recorded


class Check(SphinxDirective):
    """A field, a button and what is said of the answer."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        page = Path(self.env.doc2path(self.env.docname))
        tables = [recorded(page)] if page.suffix == ".ipynb" else []
        tables.append(known())
        table = next((table for table in tables if name in table.index), None)
        if table is None:
            return [
                self.state.document.reporter.warning(
                    f"No cell records the answer of the exercise '{name}' by pm.book.answer.",
                    line=self.lineno,
                )
            ]
        answer, tolerance = table.answer[name], table.tolerance[name]
        if isinstance(answer, str):
            kind, wanted = 'type="text"', f'data-answer="{escape(answer)}"'
        else:
            kind = 'type="text" inputmode="decimal"'
            wanted = f'data-answer="{float(answer)!r}" data-tolerance="{float(tolerance)!r}"'
        key = f"check-{escape(name)}"
        html = (
            f'<form class="check-answer" {wanted} hidden>\n'
            f'<label for="{key}">Your answer</label>\n'
            f'<input id="{key}" {kind} autocomplete="off" spellcheck="false"'
            f' aria-describedby="{key}-said">\n'
            '<button type="submit">Check</button>\n'
            f'<output id="{key}-said" for="{key}" role="status" aria-live="polite"></output>\n'
            "</form>\n"
            '<p class="check-answer-command">Check your answer: '
            f"<code>psychometrics check-answer {escape(name)} VALUE</code></p>\n"
        )
        return [nodes.raw("", html, format="html")]


def setup(app):
    app.add_directive("check", Check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
