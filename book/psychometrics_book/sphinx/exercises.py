"""The directive ``check``: a reader's answer to an exercise, compared in the page.

Inside an exercise, ```` ```{check} ex-label ```` gives a field and a button. Without scripts, and
in print, the command that checks the answer appears instead.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from psychometrics.exceptions import PsychometricsError

from ..exercises import answer, hints
from ..templating import fill_template


class Check(SphinxDirective):
    """A field, a button and the verdict on the answer."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        try:
            right, tolerance = answer(name, Path(self.env.srcdir) / "chapters")
        except PsychometricsError as error:
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]

        kind = "text"
        data = {"answer": right}
        if not isinstance(right, str):
            kind = "decimal"
            data |= {"tolerance": tolerance, "hints": json.dumps(hints(name))}

        html = fill_template("check.html.j2", name=name, kind=kind, data=data)
        return [nodes.raw("", html, format="html")]


def setup(app):
    app.add_directive("check", Check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
