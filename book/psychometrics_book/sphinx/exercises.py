"""The directive ``check``: a reader's answer to an exercise, compared in the page.

Inside an exercise, ```` ```{check} ex-label ```` gives a field and a button. Without scripts, and
in print, the command that checks the answer appears instead.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from psychometrics.exceptions import PsychometricsError

from ..exercises import answer as known
from ..exercises import hints


class Check(SphinxDirective):
    """A field, a button and the verdict on the answer."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        try:
            answer, tolerance = known(name, Path(self.env.srcdir) / "chapters")
        except PsychometricsError as error:
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]

        if isinstance(answer, str):
            kind = 'type="text"'
            wanted = f'data-answer="{escape(answer)}"'
        else:
            kind = 'type="text" inputmode="decimal"'
            wanted = f'data-answer="{float(answer)!r}" data-tolerance="{float(tolerance)!r}"'
            wanted += f' data-hints="{escape(json.dumps(hints(name)))}"'

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
